/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * An endpoint that was created with a boot address requests the whole address from the worker:
 * WEFT_WIREUP_WHO and ADDRESS, over the connection to the interface of the boot address. Afterwards
 * everything is as if the whole address had been given, and the same connection carries REQ.
 *
 *	initiator  BOOT --up--> STEP_ASKED --ADDRESS--> REQUESTED ...
 *
 * A REQ of that worker has the same effect as ADDRESS. Its sender is at the interface of the boot
 * address, or it has all the data of which the digest is made. The endpoint becomes its responder.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wireup/learn.h"

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
		return; /* bound: the reply has arrived, and the peer has continued */
	if (weft_get64(m->head.dst_secret) != w->secret) {
		w->count.wireup_denied++;
		weft_wireup_refuse(w, lane_ep, &m->head, -EACCES,
				   "a request for a worker's address must have its secret");
		return;
	}
	weft_address_of_worker(w, &a);
	weft_records_add(&r, WEFT_RECORD_ADDRESS, buf, weft_address_pack(&a, buf));
	/* Best effort: the peer repeats its request. */
	weft_wireup_send(lane_ep, &h, r.buf, r.len);
}

/* Find the pair of the existing connection among the pairs of the whole address. */
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

	if (!wu || wu->step != WEFT_STEP_ADDRESS_REQUESTED || lane_ep != wu->boot)
		return; /* a duplicate */
	if (weft_address_unpack(&remote, m->address, m->address_len, why, sizeof(why)) < 0) {
		weft_wireup_bad(ep->worker, lane_ep, why);
		return;
	}
	if (remote.worker_id != ep->remote_id || weft_address_digest(&remote) != ep->peer->digest ||
	    weft_peer_get(ep->worker, &remote) != ep->peer) {
		weft_ep_fail(ep, -ECONNREFUSED,
			     "the worker at the boot address of %s has another address: get its "
			     "boot address again",
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
