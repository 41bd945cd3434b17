/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Who has a worker's boot address only asks the worker for the rest of its address, over the
 * connection that the boot address leads to: WHO, ADDRESS. From there on it is as if the whole one
 * had been given; the connection is used for REQ, too.
 *
 *	initiator  BOOT --up--> ASKED --ADDRESS--> REQUESTED ...
 *
 * A REQ of the worker that is asked says the same, and its sender is where the boot address says,
 * or knows all that its digest is made of: the endpoint becomes its responder.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wireup/learn.h"

/* ------------------------------------------------------------------ own */

static const struct weft_lane_boot_ops *boot_ops(const struct weft_lane_iface *iface)
{
	return weft_address_bootable(iface->attr.features) ? iface->driver->boot : NULL;
}

/* Of the interfaces of a network the one with the lowest latency; the first one of the host. */
static void describe(struct weft_worker *w, struct weft_boot *b)
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
	describe(w, &b);
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

/* The interface of ours that speaks as one of that kind does. */
static struct weft_lane_iface *speaks(const struct weft_worker *w, uint8_t kind)
{
	const struct weft_lane_boot_ops *ops;

	for (unsigned int i = 0; i < w->num_ifaces; i++) {
		ops = boot_ops(w->ifaces[i]);
		if (ops && ops->kind == kind)
			return w->ifaces[i];
	}
	return NULL;
}

/* What is not known of it is taken to be as with ours. @return false: nothing to make of it */
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
	a->host_id = b->host; /* a half of it, until it is learned */
	a->major = b->major;
	snprintf(a->name, sizeof(a->name), "worker %016" PRIx64, b->worker_id);
	like = speaks(w, WEFT_LANE_BOOT_HOST);
	if (b->host_lane && like && b->host && b->host == (uint32_t)w->host_id)
		add_iface(a, b, like, (uint8_t)(b->host_lane - 1));
	like = speaks(w, b->kind);
	if (b->kind != WEFT_LANE_BOOT_NONE && like && !add_iface(a, b, like, b->index))
		return -EINVAL;
	return 0;
}

/* ------------------------------------------------------------------ asking */

void weft_learn_ask(struct weft_ep *ep)
{
	struct weft_wireup *wu = ep->wireup;

	wu->step = WEFT_STEP_ASKED;
	wu->msg.len = 0;
	weft_wireup_send_new(ep, WEFT_WIREUP_WHO);
}

void weft_learn_answer(struct weft_worker *w, struct weft_lane_ep *lane_ep,
		       const struct weft_wireup_msg *m)
{
	struct weft_wire_wireup h = {
		.type = WEFT_WIREUP_ADDRESS,
		.major = WEFT_WIRE_MAJOR,
		.minor = WEFT_WIRE_MINOR,
		.conn_sn = m->head.conn_sn,
		.src_worker = weft_put64(w->id),
		.dst_worker = m->head.src_worker,
		.dst_ep = m->head.src_ep,
		.dst_secret = m->head.src_secret,
	};
	struct weft_records r = {.len = 0};
	uint8_t buf[WEFT_ADDRESS_MAX];
	struct weft_address a;

	if (lane_ep->user)
		return; /* bound: it was answered, and has gone on */
	if (weft_get64(m->head.dst_secret) != w->secret) {
		w->count.wireup_denied++;
		weft_wireup_refuse(w, lane_ep, &m->head, -EACCES,
				   "who asks for a worker's address must have its boot address");
		return;
	}
	weft_address_of_worker(w, &a);
	weft_records_add(&r, WEFT_RECORD_ADDRESS, buf, weft_address_pack(&a, buf));
	/* Best effort: who asks asks again. */
	weft_wireup_send(lane_ep, &h, r.buf, r.len);
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

/* The connection is there; what it is among the pairs that are known now. */
static bool find_pair(struct weft_wireup *wu, unsigned int local, unsigned int remote)
{
	wu->num_pairs = weft_select_boot(&wu->select, wu->pairs, WEFT_MAX_BOOT_PAIRS);
	memset(wu->pair_down, 0, sizeof(wu->pair_down));
	for (wu->pair = 0; wu->pair < wu->num_pairs; wu->pair++) {
		struct weft_pair p = wu->pairs[wu->pair];

		if (wu->local[p.local].index == local &&
		    wu->remote.ifaces[p.remote].index == remote)
			return true;
	}
	return false;
}

void weft_learn_answered(struct weft_ep *ep, struct weft_lane_ep *lane_ep,
			 const struct weft_wireup_msg *m)
{
	struct weft_wireup *wu = ep->wireup;
	struct weft_address remote;
	struct weft_pair pair;
	unsigned int l, r;
	char why[160];

	if (!wu || wu->step != WEFT_STEP_ASKED || lane_ep != wu->boot)
		return; /* a second one */
	if (weft_address_unpack(&remote, m->address, m->address_len, why, sizeof(why)) < 0) {
		weft_wireup_bad(ep->worker, lane_ep, why);
		return;
	}
	if (remote.worker_id != ep->remote_id || weft_address_digest(&remote) != ep->peer->digest ||
	    weft_peer_get(ep->worker, &remote) != ep->peer) {
		weft_ep_fail(ep, -ECONNREFUSED,
			     "what answers where %s should be has another address than the one it "
			     "gave",
			     ep->remote_name);
		return;
	}
	pair = wu->pairs[wu->pair];
	l = wu->local[pair.local].index;
	r = wu->remote.ifaces[pair.remote].index;
	weft_learn_from(ep, &remote);
	if (find_pair(wu, l, r))
		weft_wireup_boot_up(ep);
	else
		weft_wireup_restart(ep);
}
