/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file proto/rndv_cost.h
 * The times of rendezvous protocols, by the scheme of their data: struct weft_proto.cost() of each.
 * The sender uses them for its estimate. The receiver, which decides on the scheme, compares the
 * same numbers (operation WEFT_OP_RNDV_DATA: all of it without RTS). Time ends when the receiver
 * has the data. The ATS is only work for the receiver's CPU; the sender's buffer is free one
 * latency later.
 */
#ifndef WEFT_RNDV_COST_H
#define WEFT_RNDV_COST_H

#include "proto/proto.h"

/** RTS, RTR, DATA as active messages. */
int weft_rndv_cost_am(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		      struct weft_curve *cv);
/**
 * RTS, requests of the receiver for ranges of the data, DATA as active messages from user memory
 * where possible.
 */
int weft_rndv_cost_pull(const struct weft_model *m, const struct weft_proto_key *key,
			uint32_t lanes, struct weft_curve *cv);
/** RTS with keys, native remote reads by the receiver. */
int weft_rndv_cost_get(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv);
/** RTS, RTR with keys, native remote writes by the sender, and a message that they are done. */
int weft_rndv_cost_put(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv);

#endif /* WEFT_RNDV_COST_H */
