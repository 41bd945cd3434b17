/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the data of a rendezvous is transferred: the receiver's choice, from its lanes and from the
 * sender's offer. Tagged and active messages use the same protocols. The sender's table of
 * rendezvous protocols (rndv/proto.c) uses the same cost functions.
 *
 *	data/get    lanes with native reads read, the other lanes pull; PULL needs no key
 *	data/pull   all bytes are requested piece by piece, over all lanes
 *	data/put    RTR with keys: the sender writes, and sends over lanes that cannot write
 *	data/am     RTR: the sender sends
 */

#include "proto/proto.h"
#include "rndv/rndv.h"

const struct weft_proto weft_proto_data_get = {
	.name = "data/get",
	.desc = "read from the sender's memory over all lanes that can",
	.ops = WEFT_OP_BIT(WEFT_OP_RNDV_DATA),
	.classes = 1u << WEFT_DT_CONTIG,
	.needs = WEFT_NEEDS_NATIVE | WEFT_NEEDS_PULL,
	.lanes = &weft_lanes_rndv_get,
	.cost = weft_rndv_cost_get,
	.progress = weft_rndv_begin_get,
	.reset = weft_rndv_reset_get,
};

const struct weft_proto weft_proto_data_pull = {
	.name = "data/pull",
	.desc = "pulled piece by piece over all lanes",
	.ops = WEFT_OP_BIT(WEFT_OP_RNDV_DATA),
	.classes = WEFT_CLASSES_ALL,
	.needs = WEFT_NEEDS_PULL,
	.lanes = &weft_lanes_rndv_am,
	.cost = weft_rndv_cost_pull,
	.progress = weft_rndv_begin_pull,
	.reset = weft_rndv_reset_pull,
};

const struct weft_proto weft_proto_data_put = {
	.name = "data/put",
	.desc = "written by the sender over all lanes that can",
	.ops = WEFT_OP_BIT(WEFT_OP_RNDV_DATA),
	.classes = 1u << WEFT_DT_CONTIG,
	.needs = WEFT_NEEDS_PUT,
	.lanes = &weft_lanes_rndv_put,
	.cost = weft_rndv_cost_put,
	.progress = weft_rndv_begin_put,
};

const struct weft_proto weft_proto_data_am = {
	.name = "data/am",
	.desc = "requested at once, sent over all lanes",
	.ops = WEFT_OP_BIT(WEFT_OP_RNDV_DATA),
	.classes = WEFT_CLASSES_ALL,
	.lanes = &weft_lanes_rndv_am,
	.cost = weft_rndv_cost_am,
	.progress = weft_rndv_begin_am,
};
