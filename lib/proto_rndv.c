/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous by active messages: the data moves only once a receive is there, straight to its
 * place.
 *
 *	sender                                      receiver
 *	  | RTS seq tag total sreq ------------------> | matched at its turn in the sequence
 *	  | <------------- RTR sreq rreq offset length | "send these bytes"
 *	  | DATA rreq offset --------------- lane 0 -> | direct to the user's buffer
 *	  | DATA rreq offset --------------- lane 1 -> |
 *	  | <------------------------- ATS sreq status | all there, or not wanted
 *
 * Who may send what: one RTR covers one stretch; a further one must continue where the one before
 * ends. Our receivers ask for the whole message at once, the lanes' windows are the flow control. A
 * buffer that is too small takes nothing: the receive ends with -EMSGSIZE, ATS releases the sender,
 * which sees success.
 */

#include <errno.h>

#include "cost.h"
#include "msg.h"

/* ------------------------------------------------------------------ sender */

static int rts_progress(struct weft_request *req)
{
	struct weft_msg_ep *me = req->me;
	struct {
		struct weft_wire_rts rts;
		uint8_t records[WEFT_RNDV_RECORDS_MAX];
	} __attribute__((packed)) m;
	size_t length = sizeof(m.rts);
	uint32_t lanes = me->lanes_up;
	unsigned int lane = me->am_lane;

	m.rts = (struct weft_wire_rts){
		.e = {weft_put32(me->tx_seq), weft_put64(req->tag)},
		.total = weft_put64(req->length),
		.req = weft_request_ref(req),
	};
	length += weft_rndv_offer(req, &m.rts.flags, m.records);
	/* Never behind data of its own endpoint, so a lane with room is as good as the next. */
	for (;;) {
		if (weft_tx_envelope(me, lane, WEFT_WIRE_RTS, &m, length) == 0)
			break;
		lanes &= ~(1u << lane);
		if (!lanes)
			return -EAGAIN;
		lane = (unsigned int)__builtin_ctz(lanes);
	}
	weft_tx_take_seq(req, false);
	weft_rndv_offered(req);
	return 0;
}

/* ------------------------------------------------------------------ time */

/*
 * Until the receiver has the data: RTS, RTR, DATA. The ATS that ends it is only work for its CPU;
 * the sender's buffer is free one way later.
 */
static int rndv_cost(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		     struct weft_curve *cv)
{
	const struct weft_model_lane *l = &m->lanes[m->am_lane];
	int rc;

	weft_curve_begin(cv, 0, SIZE_MAX);
	weft_cost_control(cv, m, "RTS");
	weft_cost_control(cv, m, "RTR");
	rc = weft_cost_fragments(cv, m, lanes, sizeof(struct weft_wire_data), key->buf);
	if (rc)
		return rc;
	weft_curve_once(cv, WEFT_STAGE_SEND_CPU, (struct weft_linear){WEFT_COST_RNDV, 0},
			"keep the request", NULL);
	weft_curve_once(cv, WEFT_STAGE_RECV_CPU,
			(struct weft_linear){WEFT_COST_RNDV + l->send_overhead, 0}, "end, ATS",
			NULL);
	cv->scale = 1 - m->conf.perf_diff / 100;
	weft_curve_end(cv);
	return 0;
}

const struct weft_proto weft_proto_rndv = {
	.name = "rndv/am",
	.desc = "asks first; data over all lanes when the receive is there",
	.ops = WEFT_OPS_TAG,
	.classes = WEFT_CLASSES_ALL,
	.flags = WEFT_PROTO_F_RNDV,
	.lanes = &weft_lanes_rndv_am,
	.cost = rndv_cost,
	.progress = rts_progress,
};
