/* SPDX-License-Identifier: BSD-3-Clause */
/* Rendezvous as a module: the state of a worker and of an endpoint. */

#include <errno.h>
#include <stdlib.h>

#include "mem/mem.h"
#include "rndv/fetch.h"
#include "rndv/pull.h"
#include "rndv/rndv.h"
#include "rndv/sender.h"

/* ------------------------------------------------------------------ worker */

static int worker_init(struct weft_msg_worker *mw)
{
	struct weft_rndv_worker *rw = calloc(1, sizeof(*rw));

	if (!rw)
		return -ENOMEM;
	STAILQ_INIT(&rw->free_pulls);
	TAILQ_INIT(&rw->free_ranges);
	TAILQ_INIT(&rw->free_fetches);
	TAILQ_INIT(&rw->fetching);
	TAILQ_INIT(&rw->fetching_later);
	for (unsigned int i = 0; i < WEFT_MAX_IFACES; i++) {
		TAILQ_INIT(&rw->ports[i].line[WEFT_RNDV_IS_SHORT]);
		TAILQ_INIT(&rw->ports[i].line[WEFT_RNDV_IS_LONG]);
		TAILQ_INIT(&rw->ports[i].ranges);
	}
	weft_share_init(&rw->pulls, mw->conf.rndv_limit < WEFT_RNDV_PULLS_MIN
					    ? mw->conf.rndv_limit
					    : WEFT_RNDV_PULLS_MIN);
	mw->rndv = rw;
	return 0;
}

static void worker_fini(struct weft_msg_worker *mw)
{
	struct weft_rndv_worker *rw = mw->rndv;
	struct weft_fetch *f;
	struct weft_pull *p;
	struct weft_pull_range *a;

	if (!rw)
		return;
	while ((f = TAILQ_FIRST(&rw->free_fetches))) {
		TAILQ_REMOVE(&rw->free_fetches, f, link);
		free(f);
	}
	while ((p = STAILQ_FIRST(&rw->free_pulls))) {
		STAILQ_REMOVE_HEAD(&rw->free_pulls, link);
		free(p);
	}
	while ((a = TAILQ_FIRST(&rw->free_ranges))) {
		TAILQ_REMOVE(&rw->free_ranges, a, link);
		free(a);
	}
	free(rw);
}

static unsigned int pump(struct weft_msg_worker *mw)
{
	const struct weft_rndv_worker *rw = mw->rndv;

	if (TAILQ_EMPTY(&rw->fetching) && TAILQ_EMPTY(&rw->fetching_later) && rw->waiting == 0)
		return 0;
	return weft_rndv_pump(mw);
}

static bool busy(const struct weft_msg_worker *mw, bool *soon)
{
	/*
	 * Endpoints that wait for a port wait until other peers deliver, or are late. No event
	 * reports that.
	 */
	if (!TAILQ_EMPTY(&mw->rndv->fetching) || mw->rndv->waiting)
		*soon = true;
	return false;
}

#define LEVELS(X)                                             \
	X(pulls->used + pulls->stalled, "rndv.outstanding",   \
	  "Bytes now that were requested and have not come.") \
	X(pulls->stalled, "rndv.outstanding_stalled",         \
	  "Bytes now that were requested and do not come: their peers are stalled.")
#define COUNTERS(X)                                                      \
	X(pulls->stalls, "rndv.peers_stalled",                           \
	  "Times that a peer sent nothing of the bytes "                 \
	  "requested.")                                                  \
	X(mw->rndv->waits, "rndv.port_waits",                            \
	  "Times that a peer's messages waited in the queue of a port.") \
	X(mw->rndv->lates, "rndv.port_late", "Pieces requested that did not come in time.")

/* clang-format off */
static const struct weft_lane_counter counter_help[] = {
	LEVELS(WEFT_LEVEL_HELP)
	COUNTERS(WEFT_COUNTER_HELP)
	WEFT_COUNTER_HELP_END
};
/* clang-format on */

static void counters(const struct weft_msg_worker *mw, weft_lane_counter_cb cb, void *arg)
{
	const struct weft_share *pulls = &mw->rndv->pulls;

#define REPORT(value, name, help) cb(name, value, arg);
	LEVELS(REPORT)
	COUNTERS(REPORT)
#undef REPORT
}

/* ------------------------------------------------------------------ endpoint */

static int ep_init(struct weft_msg_ep *me)
{
	struct weft_rndv *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->me = me;
	TAILQ_INIT(&r->data);
	TAILQ_INIT(&r->active);
	TAILQ_INIT(&r->fetches[WEFT_RNDV_IS_SHORT]);
	TAILQ_INIT(&r->fetches[WEFT_RNDV_IS_LONG]);
	for (unsigned int i = 0; i < WEFT_MAX_LANES; i++)
		STAILQ_INIT(&r->lanes[i].pulls);
	me->rndv = r;
	return 0;
}

static void ep_fini(struct weft_msg_ep *me)
{
	free(me->rndv);
}

static bool has_work(const struct weft_msg_ep *me)
{
	return !TAILQ_EMPTY(&me->rndv->data) || me->rndv->num_pulls;
}

const struct weft_module weft_rndv_module = {
	.name = "rndv",
	.worker_init = worker_init,
	.worker_fini = worker_fini,
	.after_queues = pump,
	.busy = busy,
	.counters = counters,
	.counter_help = counter_help,
	.ep_init = ep_init,
	.ep_fini = ep_fini,
	.ep_lanes = weft_rndv_ep_lanes,
	.ep_reset = weft_rndv_reset,
	.data = weft_rndv_serve,
	.has_work = has_work,
	.fail = weft_rndv_ep_fail,
	.ended = weft_rndv_ended,
};

/* ------------------------------------------------------------------ keys */

/*
 * Keys let the peer's lanes read or write the memory of one message. There is one per lane, with
 * the lane's number, which is the same at both ends. A record contains no addresses.
 */

uint32_t weft_rndv_native_lanes(const struct weft_msg_ep *me, bool put)
{
	uint32_t mask = 0;

	for (uint32_t m = me->rndv_lanes; m; m &= m - 1) {
		int i = __builtin_ctz(m);

		if (put ? me->lanes[i].max_put : me->lanes[i].max_get)
			mask |= 1u << i;
	}
	return mask;
}

size_t weft_rndv_keys_write(const struct weft_msg_ep *me, uint32_t lanes,
			    const struct weft_mem *mem, const void *buf, void *record)
{
	struct weft_wire_record *r = record;
	struct weft_wire_keys *keys = (void *)(r + 1);
	struct weft_wire_lane_key *key = (void *)(keys + 1);
	size_t length;

	for (; lanes; lanes &= lanes - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(lanes);
		struct weft_lane_iface *iface = me->lanes[i].lane_ep->iface;
		struct weft_mem_lane *ml = weft_mem_lane_of(mem, iface);

		if (!ml || !iface->driver->mem_key)
			continue;
		*key++ = (struct weft_wire_lane_key){
			.lane = (uint8_t)i,
			.key = weft_put64(iface->driver->mem_key(iface, ml)),
		};
	}
	if ((void *)key == (void *)(keys + 1))
		return 0;
	keys->offset = weft_put64((uint64_t)((const uint8_t *)buf - (const uint8_t *)mem->address));
	length = (size_t)((uint8_t *)key - (uint8_t *)keys);
	*r = (struct weft_wire_record){weft_put16(WEFT_MSG_RECORD_KEYS),
				       weft_put16((uint16_t)length)};
	return sizeof(*r) + length;
}

void weft_rndv_keys_read(struct weft_rndv_offer *offer, const void *records, size_t length)
{
	const uint8_t *p = records, *end = p + length;
	const struct weft_wire_record *r;
	const struct weft_wire_keys *keys;
	const struct weft_wire_lane_key *key;
	size_t n;

	offer->lanes = 0;
	for (; p < end; p += sizeof(*r) + weft_get16(r->length)) {
		r = (const void *)p;
		if (weft_get16(r->type) != WEFT_MSG_RECORD_KEYS)
			continue;
		keys = (const void *)(r + 1);
		key = (const void *)(keys + 1);
		offer->offset = weft_get64(keys->offset);
		n = (weft_get16(r->length) - sizeof(*keys)) / sizeof(*key);
		for (; n; n--, key++) {
			if (key->lane >= WEFT_MAX_LANES)
				continue; /* the peer's version has more lanes */
			offer->lanes |= 1u << key->lane;
			offer->key[key->lane] = weft_get64(key->key);
		}
		return;
	}
}
