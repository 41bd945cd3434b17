/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote keys that the user made from a number (weft_rkey_from_key()). Native lanes need keys of
 * their own, and valid bounds. With such lanes the initiator requests both from the owner, once.
 * Until the owner replies, or if it does not, operations go by messages, which the owner checks.
 *
 *	initiator                   owner
 *	  | KEY_REQ key ------------> |
 *	  | <-------- KEY key size .. |  or nothing: no such memory
 */

#include <errno.h>
#include <stdlib.h>

#include "core/context.h"
#include "mem/mem.h"
#include "rma/rma.h"

static bool has_native(const struct weft_msg_ep *me)
{
	for (uint32_t m = me->lanes_up; m; m &= m - 1) {
		const struct weft_msg_lane *l = &me->lanes[__builtin_ctz(m)];

		if (l->max_get || l->max_put)
			return true;
	}
	return false;
}

void weft_rkey_query(struct weft_msg_ep *me, struct weft_rkey *rkey)
{
	struct weft_wire_key_req q = {.key = weft_put64(rkey->key)};

	if (rkey->query_sent || !has_native(me))
		return;
	rkey->query_sent = true;
	rkey->query_peer = me->ep->peer;
	LIST_INSERT_HEAD(&me->mw->rma->key_queries, rkey, query_link);
	weft_tx_ctl(me, WEFT_WIRE_KEY_REQ, &q, sizeof(q));
}

void weft_rkey_free(struct weft_rkey *rkey)
{
	if (rkey->unknown && rkey->query_sent)
		LIST_REMOVE(rkey, query_link);
	free(rkey);
}

/* ------------------------------------------------------------------ the owner */

void weft_rma_recv_key_req(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_key_req *q = data;
	struct weft_mem_key keys[WEFT_RKEY_DOMAINS];
	struct weft_mem_slot *slot;
	struct {
		struct weft_wire_key head;
		struct weft_wire_rkey_domain d[WEFT_RKEY_DOMAINS];
	} __attribute__((packed)) rep = {.head.key = q->key};
	unsigned int num;

	slot = weft_mem_key_enter(&me->mw->worker->ctx->keys, weft_get64(q->key));
	if (!slot) {
		me->mw->rma->bad_key++;
		return;
	}
	num = weft_mem_keys(slot->mem, keys, WEFT_RKEY_DOMAINS);
	rep.head.size = weft_put64(slot->mem->length);
	rep.head.rights = weft_put32(slot->mem->rights);
	rep.head.low = (uintptr_t)slot->mem->address & 7;
	rep.head.num_domains = (uint8_t)num;
	weft_mem_key_leave(slot);
	for (unsigned int i = 0; i < num; i++) {
		rep.d[i].key = weft_put64(keys[i].key);
		rep.d[i].domain = keys[i].domain;
	}
	/*
	 * A peer that sends requests without limit and receives no replies gets no further replies.
	 */
	if (me->num_ctl < WEFT_CTL_HELD)
		weft_tx_ctl(me, WEFT_WIRE_KEY, &rep, sizeof(rep.head) + num * sizeof(rep.d[0]));
}

/* ------------------------------------------------------------------ the initiator */

static void take_reply(struct weft_rkey *rkey, const struct weft_wire_key *rep)
{
	const struct weft_wire_rkey_domain *d = (const void *)(rep + 1);

	LIST_REMOVE(rkey, query_link);
	rkey->unknown = false;
	rkey->size = weft_get64(rep->size);
	rkey->rights = weft_get32(rep->rights) &
		       (WEFT_MEM_REMOTE_READ | WEFT_MEM_REMOTE_WRITE | WEFT_MEM_REMOTE_ATOMIC);
	rkey->low = rep->low;
	rkey->num_native = rep->num_domains;
	for (unsigned int i = 0; i < rep->num_domains; i++) {
		rkey->native[i].key = weft_get64(d[i].key);
		rkey->native[i].domain = d[i].domain;
	}
}

void weft_rma_recv_key(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_key *rep = data;
	struct weft_rkey *rkey, *next;

	for (rkey = LIST_FIRST(&me->mw->rma->key_queries); rkey; rkey = next) {
		next = LIST_NEXT(rkey, query_link);
		/* Other peers may claim that worker's id, but have another struct weft_peer. */
		if (rkey->key == weft_get64(rep->key) && rkey->query_peer == me->ep->peer)
			take_reply(rkey, rep);
	}
}
