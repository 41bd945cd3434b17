/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Boot addresses: packs this worker's own, and derives a provisional worker address from a peer's.
 * wireup/events.c requests the whole address.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/address.h"
#include "core/endpoint.h"
#include "wireup/boot_address.h"
#include "wireup/codec.h"
#include "wireup/connect.h"
#include "wireup/ep.h"
#include "wireup/select.h"
#include "wireup/wireup.h"

/* ------------------------------------------------------------------ own */

static const struct weft_lane_boot_ops *boot_ops(const struct weft_lane_iface *iface)
{
	return weft_address_bootable(iface->attr.features) ? iface->driver->boot : NULL;
}

/* Choose the network interface with the lowest latency, and the first interface inside the host. */
static void describe_boot(struct weft_worker *w, struct weft_boot *b)
{
	const struct weft_lane_boot_ops *ops;
	struct weft_lane_iface *best = NULL;

	for (unsigned int i = 0; i < w->num_ifaces; i++) {
		struct weft_lane_iface *iface = w->ifaces[i];

		ops = boot_ops(iface);
		if (!ops)
			continue;
		if (ops->kind == WEFT_LANE_BOOT_HOST) {
			if (b->host_lane == 0)
				b->host_lane = (uint8_t)(i + 1);
			continue;
		}
		if (best && !(iface->attr.latency < best->attr.latency))
			continue;
		best = iface;
		b->index = (uint8_t)i;
		b->kind = ops->kind;
	}
	if (best)
		best->driver->boot->pack(best, &b->iface);
}

int weft_worker_get_boot_address(struct weft_worker *w, void *buf, size_t *length)
{
	uint8_t bytes[WEFT_BOOT_ADDRESS_MAX];
	struct weft_boot b = {0};
	struct weft_address *a;
	size_t n;

	if (!w || !length || (!buf && *length))
		return -EINVAL;
	a = malloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	weft_worker_lock(w);
	weft_address_of_worker(w, a);
	b.worker_id = a->worker_id;
	b.secret = a->secret;
	b.digest = weft_address_digest(a);
	b.host = (uint32_t)a->host_id;
	describe_boot(w, &b);
	weft_worker_unlock(w);
	free(a);
	n = weft_boot_pack(&b, bytes);
	if (n <= *length)
		memcpy(buf, bytes, n);
	else
		buf = NULL;
	*length = n;
	return buf ? 0 : -EMSGSIZE;
}

/* ------------------------------------------------------------------ of a peer */

/* Our interface of that kind, or NULL. */
static struct weft_lane_iface *iface_of_kind(const struct weft_worker *w, uint8_t kind)
{
	const struct weft_lane_boot_ops *ops;

	for (unsigned int i = 0; i < w->num_ifaces; i++) {
		ops = boot_ops(w->ifaces[i]);
		if (ops && ops->kind == kind)
			return w->ifaces[i];
	}
	return NULL;
}

/*
 * Add the peer's interface; attributes that a boot address lacks are taken from ours, @p like.
 * @return false: the bytes are not usable
 */
static bool add_iface(struct weft_address *a, const struct weft_boot *b,
		      struct weft_lane_iface *like, uint8_t index)
{
	struct weft_address_iface *f = &a->ifaces[a->num_ifaces];

	weft_address_from_iface(f, index, like);
	f->domain = WEFT_NO_DOMAIN;
	memset(f->addr, 0, sizeof(f->addr));
	if (like->driver->boot->unpack(like, &b->iface,
				       weft_iface_id(b->worker_id, b->secret, index), f->addr) < 0)
		return false;
	a->num_ifaces++;
	return true;
}

int weft_learn_address(struct weft_worker *w, const struct weft_boot *b, struct weft_address *a)
{
	struct weft_lane_iface *like;

	memset(a, 0, sizeof(*a));
	a->worker_id = b->worker_id;
	a->secret = b->secret;
	a->host_id = b->host; /* the lower half, until the whole address is known */
	a->major = b->major;
	snprintf(a->name, sizeof(a->name), "worker %016" PRIx64, b->worker_id);
	like = iface_of_kind(w, WEFT_LANE_BOOT_HOST);
	if (b->host_lane && like && b->host && b->host == (uint32_t)w->host_id)
		add_iface(a, b, like, (uint8_t)(b->host_lane - 1));
	like = iface_of_kind(w, b->kind);
	if (b->kind != WEFT_LANE_BOOT_NONE && like && !add_iface(a, b, like, b->index))
		return -EINVAL;
	return 0;
}

void weft_learn_from(struct weft_ep *ep, const struct weft_address *remote)
{
	struct weft_wireup *wu = ep->wireup;

	wu->learning = false;
	wu->select.any_control = false;
	wu->remote = *remote;
	weft_lanes_describe_local(ep);
	weft_lanes_find_reachable(ep, false);
	memcpy(ep->remote_name, remote->name, sizeof(ep->remote_name));
}
