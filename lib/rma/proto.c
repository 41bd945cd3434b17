/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts, gets and atomics: native, by lanes that access remote memory, or by messages that the
 * peer's progress executes. Times are until the bytes, or the old value, are at their destination.
 *
 *	put/native   WRITE by the lane                        needs a key of the lane's domain,
 *	                                                      and registered memory here
 *	put/am       PUT key offset payload --------------->  written by the peer's CPU
 *	get/native   READ by the lane
 *	get/am       GET key offset length ---------------->
 *	             <--------------- GET_DATA over all lanes
 *	amo/native   by the device (WEFT_ATOMIC_MODE=device)
 *	amo/am       AMO key offset operand -------------->   by the peer's CPU; AMO_REP with
 *	                                                      the old value
 */

#include <errno.h>
#include <stdio.h>

#include "proto/proto.h"
#include "rma/rma.h"

/* The costs of native lanes: one way, or (@back) a round trip. */
static void cost_native(const struct weft_model *m, uint32_t lanes, bool back,
			struct weft_curve *cv)
{
	struct weft_lanes_sum sum;

	weft_curve_lanes(cv, m, lanes);
	weft_cost_native(cv, m, lanes, WEFT_STAGE_SEND_CPU);
	if (!back)
		return;
	weft_lanes_sum(m, lanes, &sum);
	weft_curve_once(cv, WEFT_STAGE_LATENCY, (struct weft_linear){sum.latency, 0}, "request",
			"the slowest lane");
}

static int cost_native_rma(const struct weft_model *m, const struct weft_proto_key *key,
			   uint32_t lanes, struct weft_curve *cv)
{
	if (!(key->buf & WEFT_BUF_REG)) {
		snprintf(cv->why, sizeof(cv->why), "the memory here is not registered");
		return -ENOTSUP;
	}
	weft_curve_begin(cv, 0, SIZE_MAX);
	cost_native(m, lanes, key->op == WEFT_OP_GET, cv);
	weft_curve_end(cv);
	return 0;
}

static int cost_put_am(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv)
{
	int rc;

	weft_curve_begin(cv, 0, SIZE_MAX);
	rc = weft_cost_fragments(cv, m, lanes, sizeof(struct weft_wire_put), key->buf);
	if (rc == 0)
		weft_curve_end(cv);
	return rc;
}

/* The peer's memory is registered and contiguous, whatever the local buffer is. */
static int cost_get_am(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv)
{
	int rc;

	weft_curve_begin(cv, 0, SIZE_MAX);
	weft_cost_control(cv, m, "GET");
	rc = weft_cost_fragments(cv, m, lanes, sizeof(struct weft_wire_data),
				 WEFT_BUF_CONTIG | WEFT_BUF_REG);
	if (rc == 0)
		weft_curve_end(cv);
	return rc;
}

#define WORD 8 /* bytes; the largest that atomics change */

static int cost_amo_native(const struct weft_model *m, const struct weft_proto_key *key,
			   uint32_t lanes, struct weft_curve *cv)
{
	if (!m->conf.atomic_device) {
		snprintf(cv->why, sizeof(cv->why),
			 "WEFT_ATOMIC_MODE: not atomic with those by CPUs");
		return -ENOTSUP;
	}
	weft_curve_begin(cv, 0, WORD);
	cost_native(m, lanes, key->op == WEFT_OP_AMO_FETCH, cv);
	weft_curve_end(cv);
	return 0;
}

static int cost_amo_am(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv)
{
	if (m->conf.atomic_device) {
		snprintf(cv->why, sizeof(cv->why),
			 "WEFT_ATOMIC_MODE=device: not atomic with those by devices");
		return -ENOTSUP;
	}
	weft_curve_begin(cv, 0, WORD);
	weft_curve_lanes(cv, m, lanes);
	weft_cost_control(cv, m, "AMO");
	if (key->op == WEFT_OP_AMO_FETCH)
		weft_cost_control(cv, m, "AMO_REP");
	weft_curve_end(cv);
	return 0;
}

const struct weft_proto weft_proto_put_native = {
	.name = "put/native",
	.desc = "written by all lanes that write remote memory themselves",
	.ops = WEFT_OP_BIT(WEFT_OP_PUT),
	.classes = 1u << WEFT_DT_CONTIG | 1u << WEFT_DT_IOV,
	.needs = WEFT_NEEDS_NATIVE,
	.lanes = &weft_lanes_put,
	.cost = cost_native_rma,
	.progress = weft_rma_native_step,
	.reset = weft_rma_reset,
};

const struct weft_proto weft_proto_put_am = {
	.name = "put/am",
	.desc = "messages over all lanes, written by the peer's progress",
	.ops = WEFT_OP_BIT(WEFT_OP_PUT),
	.classes = WEFT_CLASSES_ALL,
	.lanes = &weft_lanes_rndv_am,
	.cost = cost_put_am,
	.progress = weft_rma_put_step,
	.reset = weft_rma_reset,
};

const struct weft_proto weft_proto_get_native = {
	.name = "get/native",
	.desc = "read by all lanes that read remote memory themselves",
	.ops = WEFT_OP_BIT(WEFT_OP_GET),
	.classes = 1u << WEFT_DT_CONTIG | 1u << WEFT_DT_IOV,
	.needs = WEFT_NEEDS_NATIVE,
	.lanes = &weft_lanes_get,
	.cost = cost_native_rma,
	.progress = weft_rma_native_step,
	.reset = weft_rma_reset,
};

const struct weft_proto weft_proto_get_am = {
	.name = "get/am",
	.desc = "requested, sent by the peer's progress over all lanes",
	.ops = WEFT_OP_BIT(WEFT_OP_GET),
	.classes = WEFT_CLASSES_ALL,
	.lanes = &weft_lanes_rndv_am,
	.cost = cost_get_am,
	.progress = weft_rma_get_step,
	.reset = weft_rma_reset,
};

const struct weft_proto weft_proto_amo_native = {
	.name = "amo/native",
	.desc = "by the peer's device",
	.ops = WEFT_OPS_AMO,
	.classes = WEFT_CLASSES_ALL,
	.needs = WEFT_NEEDS_NATIVE,
	.lanes = &weft_lanes_amo,
	.cost = cost_amo_native,
	.progress = weft_rma_native_step,
	.reset = weft_rma_reset,
};

const struct weft_proto weft_proto_amo_am = {
	.name = "amo/am",
	.desc = "a message, done by the peer's progress",
	.ops = WEFT_OPS_AMO,
	.classes = WEFT_CLASSES_ALL,
	.lanes = &weft_lanes_am,
	.cost = cost_amo_am,
	.progress = weft_rma_amo_step,
	.reset = weft_rma_reset,
};
