/* SPDX-License-Identifier: BSD-3-Clause */

#include "am/am.h"
#include "dispatch.h"
#include "rma/rma.h"
#include "rndv/rndv.h"
#include "tag/tag.h"

/*
 * The only list of protocols, modules and messages. (drivers.c has the drivers, because the build
 * decides which of them exist.)
 */

/* Of protocols with equal times the first is chosen. */
/* clang-format off */
static const struct weft_proto *const protos[] = {
	&weft_proto_eager_short,
	&weft_proto_eager_bcopy,
	&weft_proto_eager_zcopy,
	&weft_proto_multi_eager,
	&weft_proto_rndv_get,
	&weft_proto_rndv_pull,
	&weft_proto_rndv_put,
	&weft_proto_rndv_am,
	&weft_proto_data_get,
	&weft_proto_data_pull,
	&weft_proto_data_put,
	&weft_proto_data_am,
	&weft_proto_put_native,
	&weft_proto_put_am,
	&weft_proto_get_native,
	&weft_proto_get_am,
	&weft_proto_amo_native,
	&weft_proto_amo_am,
	NULL,
};
/* clang-format on */

/* Hooks are called in this order: a module follows the modules that it uses. */
static const struct weft_module *const modules[] = {
	&weft_rndv_module, &weft_tag_module, &weft_am_module, &weft_rma_module, NULL,
};

#define MESSAGE(type, function)                                                           \
	{                                                                                 \
		.header = sizeof(struct type), .check = weft_wire_check, .recv = function \
	}

static const struct weft_handler handlers[WEFT_HANDLERS] = {
	[WEFT_WIRE_EAGER] = MESSAGE(weft_wire_eager, weft_tag_recv_eager),
	[WEFT_WIRE_EAGER_SYNC] = MESSAGE(weft_wire_eager_sync, weft_tag_recv_eager_sync),
	[WEFT_WIRE_FRAG] = MESSAGE(weft_wire_frag, weft_tag_recv_frag),
	[WEFT_WIRE_FRAG_SYNC] = MESSAGE(weft_wire_frag_sync, weft_tag_recv_frag_sync),
	[WEFT_WIRE_RTS] = MESSAGE(weft_wire_rts, weft_tag_recv_rts),
	[WEFT_WIRE_RTR] = MESSAGE(weft_wire_rtr, weft_rndv_recv_rtr),
	[WEFT_WIRE_DATA] = MESSAGE(weft_wire_data, weft_rndv_recv_data),
	[WEFT_WIRE_ATS] = MESSAGE(weft_wire_ats, weft_rndv_recv_ats),
	[WEFT_WIRE_SYNC_ACK] = MESSAGE(weft_wire_ats, weft_rndv_recv_sync_ack),
	[WEFT_WIRE_CREDIT] = MESSAGE(weft_wire_credit, weft_credit_recv),
	[WEFT_WIRE_ABORT] = MESSAGE(weft_wire_abort, weft_recv_abort),
	[WEFT_WIRE_PULL] = MESSAGE(weft_wire_pull, weft_rndv_recv_pull),
	[WEFT_WIRE_WITHDRAW] = MESSAGE(weft_wire_withdraw, weft_tag_recv_withdraw),
	[WEFT_WIRE_PUT_DONE] = MESSAGE(weft_wire_put_done, weft_rndv_recv_put_done),
	[WEFT_WIRE_AM] = MESSAGE(weft_wire_am, weft_am_recv_whole),
	[WEFT_WIRE_AM_RTS] = MESSAGE(weft_wire_am_rts, weft_am_recv_rts),
	[WEFT_WIRE_AM_FRAG] = MESSAGE(weft_wire_am_frag, weft_am_recv_frag),
	[WEFT_WIRE_EXT] = MESSAGE(weft_wire_ext, weft_recv_ext),
	[WEFT_WIRE_PUT] = MESSAGE(weft_wire_put, weft_rma_recv_put),
	[WEFT_WIRE_GET] = MESSAGE(weft_wire_get, weft_rma_recv_get),
	[WEFT_WIRE_GET_DATA] = MESSAGE(weft_wire_data, weft_rma_recv_data),
	[WEFT_WIRE_AMO] = MESSAGE(weft_wire_amo, weft_rma_recv_amo),
	[WEFT_WIRE_AMO_REP] = MESSAGE(weft_wire_amo_rep, weft_rma_recv_amo_rep),
	[WEFT_WIRE_RMA_NAK] = MESSAGE(weft_wire_rma_nak, weft_rma_recv_nak),
	[WEFT_WIRE_RMA_FLUSH] = MESSAGE(weft_wire_rma_flush, weft_rma_recv_flush),
	[WEFT_WIRE_AMOV] = MESSAGE(weft_wire_amov, weft_rma_recv_amov),
	[WEFT_WIRE_AMOV_REP] = MESSAGE(weft_wire_data, weft_rma_recv_amov_rep),
	[WEFT_WIRE_KEY_REQ] = MESSAGE(weft_wire_key_req, weft_rma_recv_key_req),
	[WEFT_WIRE_KEY] = MESSAGE(weft_wire_key_rep, weft_rma_recv_key),
	[WEFT_WIRE_RMA_FLUSHED] = MESSAGE(weft_wire_rma_flushed, weft_rma_recv_flushed),
};

const struct weft_tables weft_tables = {
	.protos = protos,
	.modules = modules,
	.handlers = handlers,
};
