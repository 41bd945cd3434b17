/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of endpoints, wire-up and its records. */

#include "core/wire.h"
#include "dump/shape.h"

#define DEC DUMP_DECIMAL
#define HEX DUMP_HEXADECIMAL

/* ---- records -------------------------------------------------------------------------------- */

#define KEYS struct weft_wire_keys
#define KEY struct weft_wire_key
static const struct dump_field keys[] = {DEC(KEYS, offset)};
static const struct dump_field key[] = {DEC(KEY, lane), HEX(KEY, key)};
static const struct dump_shape key_shape = DUMP_SHAPE("key", key, KEY, DUMP_NOTHING);

struct window {
	weft_le64 window;
};
static const struct dump_field window[] = {DEC(struct window, window)};

static const struct dump_shape *msg_record(uint16_t type)
{
	static const struct dump_shape shape[] = {
		[WEFT_MSG_RECORD_KEYS] =
			DUMP_SHAPE("keys", keys, KEYS, DUMP_ITEMS, .item = &key_shape),
		[WEFT_MSG_RECORD_WINDOW] =
			DUMP_SHAPE("window", window, struct window, DUMP_NOTHING),
	};

	return type < sizeof(shape) / sizeof(shape[0]) && shape[type].name ? &shape[type] : NULL;
}

#define ADDRESS struct weft_wire_address
static const struct dump_field address[] = {
	HEX(ADDRESS, magic),    DEC(ADDRESS, major),    DEC(ADDRESS, minor),
	DEC(ADDRESS, length),   HEX(ADDRESS, crc),      HEX(ADDRESS, worker_id),
	HEX(ADDRESS, features), DEC(ADDRESS, name_len), DEC(ADDRESS, num_ifaces),
	HEX(ADDRESS, secret),   HEX(ADDRESS, host_id),
};

#define IFACE struct weft_wire_iface
#define SINGLE(type, m) DUMP_INNER(#m, DUMP_SINGLE, type, m)
static const struct dump_field iface[] = {
	DEC(IFACE, index),       DEC(IFACE, driver_len),       DEC(IFACE, addr_len),
	HEX(IFACE, device),      HEX(IFACE, features),         SINGLE(IFACE, bandwidth),
	SINGLE(IFACE, latency),  SINGLE(IFACE, send_overhead), SINGLE(IFACE, recv_overhead),
	SINGLE(IFACE, reg_cost), SINGLE(IFACE, reg_growth),    DEC(IFACE, max_short),
	DEC(IFACE, max_bcopy),   DEC(IFACE, max_zcopy),        DEC(IFACE, ep_addr_len),
	DEC(IFACE, domain),
};
const struct dump_shape dump_shape_iface = DUMP_SHAPE("iface", iface, IFACE, DUMP_NOTHING);

/* doc/wire.md, "Address of a raw-DPDK iface" */
struct raw_iface {
	uint8_t version, flags;
	weft_le16 port, vlan, frame_size;
	weft_le32 ip;
	uint8_t prefix, queues, mac[6], zero[4];
	weft_le64 iface_id;
} __attribute__((packed));
static_assert(sizeof(struct raw_iface) == 32, "address of a raw lane");
static const struct dump_field raw_iface[] = {
	DEC(struct raw_iface, version),
	DEC(struct raw_iface, flags),
	DEC(struct raw_iface, port),
	DEC(struct raw_iface, vlan),
	DEC(struct raw_iface, frame_size),
	DUMP_INNER("ip", DUMP_IP, struct raw_iface, ip),
	DEC(struct raw_iface, prefix),
	DEC(struct raw_iface, queues),
	DUMP_INNER("mac", DUMP_MAC, struct raw_iface, mac),
	HEX(struct raw_iface, iface_id),
};
const struct dump_shape dump_shape_raw_iface =
	DUMP_SHAPE("raw", raw_iface, struct raw_iface, DUMP_NOTHING);

#define LANE struct weft_wire_lane
static const struct dump_field lane[] = {
	DEC(LANE, lane),     DEC(LANE, lower_iface),  DEC(LANE, higher_iface), HEX(LANE, flags),
	DEC(LANE, max_frag), SINGLE(LANE, bandwidth), SINGLE(LANE, latency),
};
static const struct dump_shape lane_shape = DUMP_SHAPE("lane", lane, LANE, DUMP_NOTHING);

#define BOOT struct weft_wire_boot
static const struct dump_field boot[] = {DEC(BOOT, src_iface), DEC(BOOT, dst_iface),
					 DEC(BOOT, attempt)};

#define CREDIT struct weft_wire_credit
static const struct dump_field credit[] = {DEC(CREDIT, bytes), HEX(CREDIT, seq), DEC(CREDIT, small),
					   HEX(CREDIT, am_seq)};

#define EP_ADDR struct weft_wire_ep_addr
static const struct dump_field ep_addr[] = {DEC(EP_ADDR, lane)};

#define MODEL struct weft_wire_model
static const struct dump_field model[] = {SINGLE(MODEL, bcopy_bw)};

#define NEXT_SN struct weft_wire_next_sn
static const struct dump_field next_sn[] = {DEC(NEXT_SN, conn_sn)};

static const struct dump_shape *wireup_record(uint16_t type)
{
	static const struct dump_shape shape[] = {
		[WEFT_RECORD_ADDRESS] = DUMP_SHAPE("address", address, ADDRESS, DUMP_ADDRESS),
		[WEFT_RECORD_LANES] = {.name = "lanes", .rest = DUMP_ITEMS, .item = &lane_shape},
		[WEFT_RECORD_BOOT] = DUMP_SHAPE("boot", boot, BOOT, DUMP_NOTHING),
		[WEFT_RECORD_CREDIT] = DUMP_SHAPE("grant", credit, CREDIT, DUMP_NOTHING),
		[WEFT_RECORD_TEXT] = {.name = "text", .rest = DUMP_TEXT},
		[WEFT_RECORD_EP_ADDR] = DUMP_SHAPE("ep_addr", ep_addr, EP_ADDR, DUMP_BYTES),
		[WEFT_RECORD_MODEL] = DUMP_SHAPE("model", model, MODEL, DUMP_NOTHING),
		[WEFT_RECORD_NEXT_SN] = DUMP_SHAPE("next_sn", next_sn, NEXT_SN, DUMP_NOTHING),
		[WEFT_RECORD_RX_STATE] = {.name = "rx_state", .rest = DUMP_BYTES},
	};

	return type < sizeof(shape) / sizeof(shape[0]) && shape[type].name ? &shape[type] : NULL;
}

/* ---- messages ------------------------------------------------------------------------------- */

static const char *const wireup_types[] = {
	[WEFT_WIREUP_REQ] = "REQ",
	[WEFT_WIREUP_REP] = "REP",
	[WEFT_WIREUP_ATTACH] = "ATTACH",
	[WEFT_WIREUP_ATTACHED] = "ATTACHED",
	[WEFT_WIREUP_CLOSE] = "CLOSE",
	[WEFT_WIREUP_ERROR] = "ERROR",
	[WEFT_WIREUP_ACK] = "ACK",
	[WEFT_WIREUP_CLOSING] = "CLOSING",
	[WEFT_WIREUP_LANE_DOWN] = "LANE_DOWN",
	[WEFT_WIREUP_LANE_DOWN_ACK] = "LANE_DOWN_ACK",
	[WEFT_WIREUP_LANE_SUSPECT] = "LANE_SUSPECT",
	[WEFT_WIREUP_LANE_LINK] = "LANE_LINK",
	[WEFT_WIREUP_WHO] = "WHO",
	[WEFT_WIREUP_ADDRESS] = "ADDRESS",
};

#define WIREUP struct weft_wire_wireup
static const struct dump_field wireup[] = {
	DUMP_WORDS(WIREUP, type, wireup_types),
	DEC(WIREUP, major),
	DEC(WIREUP, minor),
	DEC(WIREUP, lane),
	DEC(WIREUP, conn_sn),
	HEX(WIREUP, src_worker),
	HEX(WIREUP, dst_worker),
	DUMP_REF("src_ep", WIREUP, src_ep),
	DUMP_REF("dst_ep", WIREUP, dst_ep),
	DEC(WIREUP, status),
	DEC(WIREUP, lane_epoch),
	DEC(WIREUP, total),
	DEC(WIREUP, offset),
	HEX(WIREUP, src_secret),
	HEX(WIREUP, dst_secret),
};

#define ENVELOPE(type, at) \
	DUMP_INNER("seq", DUMP_HEX, type, at.seq), DUMP_INNER("tag", DUMP_HEX, type, at.tag)
#define EAGER struct weft_wire_eager
static const struct dump_field eager[] = {HEX(EAGER, seq), HEX(EAGER, tag)};
#define EAGER_SYNC struct weft_wire_eager_sync
static const struct dump_field eager_sync[] = {ENVELOPE(EAGER_SYNC, e),
					       DUMP_REF("req", EAGER_SYNC, req)};
#define FRAG struct weft_wire_frag
static const struct dump_field frag[] = {ENVELOPE(FRAG, e), DEC(FRAG, total), DEC(FRAG, offset)};
#define FRAG_SYNC struct weft_wire_frag_sync
static const struct dump_field frag_sync[] = {ENVELOPE(FRAG_SYNC, f.e),
					      DUMP_INNER("total", DUMP_DEC, FRAG_SYNC, f.total),
					      DUMP_INNER("offset", DUMP_DEC, FRAG_SYNC, f.offset),
					      DUMP_REF("req", FRAG_SYNC, req)};
#define RTS struct weft_wire_rts
static const struct dump_field rts[] = {ENVELOPE(RTS, e), DEC(RTS, total),
					DUMP_REF("req", RTS, req), HEX(RTS, flags)};
#define RTR struct weft_wire_rtr
static const struct dump_field rtr[] = {DUMP_REF("sreq", RTR, sreq), DUMP_REF("rreq", RTR, rreq),
					DEC(RTR, offset), DEC(RTR, length), HEX(RTR, flags)};
#define PULL struct weft_wire_pull
static const struct dump_field pull[] = {DUMP_REF("sreq", PULL, sreq),
					 DUMP_REF("rreq", PULL, rreq),
					 DEC(PULL, offset),
					 DEC(PULL, length),
					 DEC(PULL, lane),
					 HEX(PULL, flags)};
#define DATA struct weft_wire_data
static const struct dump_field data[] = {DUMP_REF("rreq", DATA, rreq), DEC(DATA, offset)};
static const struct dump_field get_data[] = {DUMP_REF("ref", DATA, rreq), DEC(DATA, offset)};
#define ATS struct weft_wire_ats
static const struct dump_field ats[] = {DUMP_REF("sreq", ATS, sreq), DEC(ATS, status)};
#define ABORT struct weft_wire_abort
static const struct dump_field abort_[] = {ENVELOPE(ABORT, e), DUMP_REF("rreq", ABORT, rreq),
					   DEC(ABORT, total), DEC(ABORT, status),
					   HEX(ABORT, flags)};
#define WITHDRAW struct weft_wire_withdraw
static const struct dump_field withdraw[] = {
	ENVELOPE(WITHDRAW, e), DUMP_REF("sreq", WITHDRAW, sreq), HEX(WITHDRAW, flags)};
#define PUT_DONE struct weft_wire_put_done
static const struct dump_field put_done[] = {DUMP_REF("rreq", PUT_DONE, rreq),
					     DEC(PUT_DONE, offset), DEC(PUT_DONE, length)};
#define AM struct weft_wire_am
static const struct dump_field am[] = {HEX(AM, seq), DEC(AM, id), DEC(AM, header_length)};
#define AM_RTS struct weft_wire_am_rts
static const struct dump_field am_rts[] = {HEX(AM_RTS, seq),
					   DEC(AM_RTS, id),
					   DEC(AM_RTS, header_length),
					   DEC(AM_RTS, total),
					   DUMP_REF("req", AM_RTS, req),
					   HEX(AM_RTS, flags)};
#define AM_FRAG struct weft_wire_am_frag
static const struct dump_field am_frag[] = {
	DUMP_INNER("seq", DUMP_HEX, AM_FRAG, am.seq), DUMP_INNER("id", DUMP_DEC, AM_FRAG, am.id),
	DUMP_INNER("header_length", DUMP_DEC, AM_FRAG, am.header_length), DEC(AM_FRAG, total),
	DEC(AM_FRAG, offset)};
#define PUT struct weft_wire_put
static const struct dump_field put[] = {HEX(PUT, key), DEC(PUT, offset), DUMP_REF("ref", PUT, ref),
					HEX(PUT, flags)};
#define NOTE struct weft_wire_put_note
static const struct dump_field put_note[] = {DUMP_INNER("key", DUMP_HEX, NOTE, put.key),
					     DUMP_INNER("offset", DUMP_DEC, NOTE, put.offset),
					     DUMP_REF("ref", NOTE, put.ref),
					     DUMP_INNER("flags", DUMP_HEX, NOTE, put.flags),
					     DEC(NOTE, total),
					     DEC(NOTE, number)};
static const struct dump_shape put_note_shape = DUMP_SHAPE("put", put_note, NOTE, DUMP_BYTES);
#define EXT struct weft_wire_ext
static const struct dump_field ext[] = {DEC(EXT, id), HEX(EXT, flags), DEC(EXT, channel),
					DEC(EXT, source_channel), HEX(EXT, imm)};
#define GET struct weft_wire_get
static const struct dump_field get[] = {
	HEX(GET, key),   DEC(GET, offset),          DEC(GET, length),
	DEC(GET, local), DUMP_REF("ref", GET, ref), HEX(GET, flags)};
static const char *const amo_ops[] = {
	[WEFT_WIRE_AMO_ADD] = "add", [WEFT_WIRE_AMO_AND] = "and",   [WEFT_WIRE_AMO_OR] = "or",
	[WEFT_WIRE_AMO_XOR] = "xor", [WEFT_WIRE_AMO_SWAP] = "swap", [WEFT_WIRE_AMO_CSWAP] = "cswap",
};
#define AMO struct weft_wire_amo
static const struct dump_field amo[] = {
	HEX(AMO, key),     DEC(AMO, offset),          HEX(AMO, operand),
	HEX(AMO, compare), DUMP_REF("ref", AMO, ref), DUMP_WORDS(AMO, op, amo_ops),
	DEC(AMO, width),   HEX(AMO, flags),           DEC(AMO, number),
};
#define AMO_REP struct weft_wire_amo_rep
static const struct dump_field amo_rep[] = {DUMP_REF("ref", AMO_REP, ref), HEX(AMO_REP, value)};
#define NAK struct weft_wire_rma_nak
static const struct dump_field nak[] = {DUMP_REF("ref", NAK, ref), DEC(NAK, length),
					DEC(NAK, status), HEX(NAK, flags)};
#define FLUSH struct weft_wire_rma_flush
static const struct dump_field flush[] = {DEC(FLUSH, count), HEX(FLUSH, flags)};
#define FLUSHED struct weft_wire_rma_flushed
static const struct dump_field flushed[] = {DEC(FLUSHED, count),  DEC(FLUSHED, naks),
					    DEC(FLUSHED, errors), DEC(FLUSHED, status),
					    DEC(FLUSHED, first),  DEC(FLUSHED, last)};
#define KEY_REQ struct weft_wire_key_req
static const struct dump_field key_req[] = {HEX(KEY_REQ, key)};
#define KEY_REP struct weft_wire_key_rep
static const struct dump_field key_rep[] = {HEX(KEY_REP, key), DEC(KEY_REP, size),
					    HEX(KEY_REP, rights), DEC(KEY_REP, low),
					    DEC(KEY_REP, num_domains)};
#define DOMAIN struct weft_wire_rkey_domain
static const struct dump_field domain[] = {HEX(DOMAIN, key), DEC(DOMAIN, domain)};
static const struct dump_shape domain_shape = DUMP_SHAPE("domain", domain, DOMAIN, DUMP_NOTHING);
#define AMOV struct weft_wire_amov
static const struct dump_field amov[] = {
	HEX(AMOV, key),   DEC(AMOV, offset), DUMP_REF("ref", AMOV, ref),
	DEC(AMOV, local), DEC(AMOV, op),     DEC(AMOV, type),
	HEX(AMOV, flags), DEC(AMOV, number), DEC(AMOV, count),
};

#define RECORDS DUMP_RECORDS, .record = msg_record
static const struct dump_shape messages[] = {
	[WEFT_WIRE_WIREUP] =
		DUMP_SHAPE("wireup", wireup, WIREUP, DUMP_RECORDS, .record = wireup_record),
	[WEFT_WIRE_EAGER] = DUMP_SHAPE("eager", eager, EAGER, DUMP_BYTES),
	[WEFT_WIRE_EAGER_SYNC] = DUMP_SHAPE("eager_sync", eager_sync, EAGER_SYNC, DUMP_BYTES),
	[WEFT_WIRE_FRAG] = DUMP_SHAPE("frag", frag, FRAG, DUMP_BYTES),
	[WEFT_WIRE_FRAG_SYNC] = DUMP_SHAPE("frag_sync", frag_sync, FRAG_SYNC, DUMP_BYTES),
	[WEFT_WIRE_RTS] = DUMP_SHAPE("rts", rts, RTS, RECORDS),
	[WEFT_WIRE_RTR] = DUMP_SHAPE("rtr", rtr, RTR, RECORDS),
	[WEFT_WIRE_DATA] = DUMP_SHAPE("pulled", data, DATA, DUMP_BYTES),
	[WEFT_WIRE_ATS] = DUMP_SHAPE("ats", ats, ATS, RECORDS),
	[WEFT_WIRE_SYNC_ACK] = DUMP_SHAPE("sync_ack", ats, ATS, RECORDS),
	[WEFT_WIRE_CREDIT] = DUMP_SHAPE("credit", credit, CREDIT, RECORDS),
	[WEFT_WIRE_ABORT] = DUMP_SHAPE("abort", abort_, ABORT, RECORDS),
	[WEFT_WIRE_PULL] = DUMP_SHAPE("pull", pull, PULL, RECORDS),
	[WEFT_WIRE_WITHDRAW] = DUMP_SHAPE("withdraw", withdraw, WITHDRAW, RECORDS),
	[WEFT_WIRE_PUT_DONE] = DUMP_SHAPE("put_done", put_done, PUT_DONE, RECORDS),
	[WEFT_WIRE_AM] = DUMP_SHAPE("am", am, AM, DUMP_BYTES),
	[WEFT_WIRE_AM_RTS] =
		DUMP_SHAPE("am_rts", am_rts, AM_RTS, DUMP_AM_RECORDS, .record = msg_record),
	[WEFT_WIRE_AM_FRAG] = DUMP_SHAPE("am_frag", am_frag, AM_FRAG, DUMP_BYTES),
	[WEFT_WIRE_EXT] = DUMP_SHAPE("ext", ext, EXT, DUMP_MESSAGE),
	[WEFT_WIRE_PUT] = DUMP_SHAPE("put", put, PUT, DUMP_BYTES),
	[WEFT_WIRE_GET] = DUMP_SHAPE("get", get, GET, DUMP_NOTHING),
	[WEFT_WIRE_GET_DATA] = DUMP_SHAPE("get_data", get_data, DATA, DUMP_BYTES),
	[WEFT_WIRE_AMO] = DUMP_SHAPE("amo", amo, AMO, DUMP_NOTHING),
	[WEFT_WIRE_AMO_REP] = DUMP_SHAPE("amo_rep", amo_rep, AMO_REP, DUMP_NOTHING),
	[WEFT_WIRE_RMA_NAK] = DUMP_SHAPE("rma_nak", nak, NAK, DUMP_NOTHING),
	[WEFT_WIRE_RMA_FLUSH] = DUMP_SHAPE("rma_flush", flush, FLUSH, DUMP_NOTHING),
	[WEFT_WIRE_RMA_FLUSHED] = DUMP_SHAPE("rma_flushed", flushed, FLUSHED, DUMP_NOTHING),
	[WEFT_WIRE_KEY_REQ] = DUMP_SHAPE("key_req", key_req, KEY_REQ, DUMP_NOTHING),
	[WEFT_WIRE_KEY] =
		DUMP_SHAPE("key_answer", key_rep, KEY_REP, DUMP_ITEMS, .item = &domain_shape),
	[WEFT_WIRE_AMOV] = DUMP_SHAPE("amov", amov, AMOV, DUMP_BYTES),
	[WEFT_WIRE_AMOV_REP] = DUMP_SHAPE("amov_rep", get_data, DATA, DUMP_BYTES),
};

const struct dump_shape *dump_shape_behind_ext(uint8_t id)
{
	return id == WEFT_WIRE_PUT ? &put_note_shape : dump_shape_of_msg(id);
}

const struct dump_shape *dump_shape_of_msg(uint8_t id)
{
	return id < sizeof(messages) / sizeof(messages[0]) && messages[id].name ? &messages[id]
										: NULL;
}
