/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/unknown_sender.h
 * A peer that is connected to a worker of the mock lanes and sends wire-up messages of any content,
 * as it likes.
 */
#ifndef WEFT_TEST_UNKNOWN_SENDER_H
#define WEFT_TEST_UNKNOWN_SENDER_H

#include "mock/conn_util.h"

/* An unknown sender that is connected to worker w and knows how to speak. */
struct unknown_sender {
	struct weft_lane_ep *lane_ep;
	uint64_t id;
	uint64_t net_addr;
	uint64_t secret, remote; /* of its endpoint (0 = 99), and of the one that it speaks to */
};

static inline struct weft_wire_wireup unknown_head(struct unknown_sender *s, struct weft_worker *w,
						   enum weft_wireup_type type, uint32_t sn)
{
	return (struct weft_wire_wireup){
		.type = (uint8_t)type,
		.major = WEFT_WIRE_MAJOR,
		.minor = WEFT_WIRE_MINOR,
		.conn_sn = weft_put32(sn),
		.src_worker = weft_put64(s->id),
		.dst_worker = weft_put64(w->id),
		.src_ep = {weft_put32(3), weft_put32(5)},
		.src_secret = weft_put64(s->secret != 0 ? s->secret : 99),
		.dst_secret = weft_put64(type == WEFT_WIREUP_REQ ? w->secret : s->remote),
	};
}

static inline void unknown_send(struct unknown_sender *s, struct weft_worker *w,
				struct weft_wire_wireup *h, const struct weft_records *r)
{
	uint8_t buf[sizeof(*h) + WEFT_WIREUP_MAX];
	size_t len = r ? r->len : 0;

	h->total = weft_put16((uint16_t)len);
	memcpy(buf, h, sizeof(*h));
	if (len > 0)
		memcpy(buf + sizeof(*h), r->buf, len);
	mock_unknown_send(s->lane_ep, WEFT_WIRE_WIREUP, buf, sizeof(*h) + len);
	mock_run(3, MS, w, NULL);
}

/* Interface @p index of it, where it says that it is. */
static inline struct weft_address_iface unknown_iface(const struct unknown_sender *s,
						      unsigned int index)
{
	struct weft_address_iface f = {.index = (uint8_t)index,
				       .driver = "mock",
				       .device = 7 + index,
				       .addr_len = 16,
				       .features = WEFT_LANE_F_TO_IFACE | WEFT_LANE_F_SHORT |
						   WEFT_LANE_F_BCOPY,
				       .bandwidth = 1e9f,
				       .max_short = 256,
				       .max_bcopy = 4096};

	memcpy(f.addr, &s->net_addr, 8);
	return f;
}

/* The records of a REQ with this address, from its interface @p from. */
static inline void unknown_req(const struct weft_address *a, unsigned int from,
			       struct weft_worker *w, struct weft_records *r)
{
	struct weft_wire_boot boot = {.src_iface = (uint8_t)from, .dst_iface = 0};
	struct weft_wire_credit credit = {
		.bytes = weft_put64(1 << 20), .seq = weft_put32(4096), .small = weft_put32(1000)};
	struct weft_wire_lane lane = {.max_frag = weft_put32(4096)};
	uint8_t buf[WEFT_ADDRESS_MAX];

	r->len = 0;
	weft_records_add(r, WEFT_RECORD_ADDRESS, buf, weft_address_pack(a, buf));
	weft_records_add(r, WEFT_RECORD_BOOT, &boot, sizeof(boot));
	weft_records_add(r, WEFT_RECORD_CREDIT, &credit, sizeof(credit));
	if (a->worker_id < w->id) {
		lane.lower_iface = (uint8_t)from;
		weft_records_add(r, WEFT_RECORD_LANES, &lane, sizeof(lane));
	}
}

/* The records of a good REQ from an id above or below the worker's. */
static inline void unknown_good_req(struct unknown_sender *s, struct weft_worker *w,
				    struct weft_records *r)
{
	struct weft_address a = {.worker_id = s->id, .name = "stranger", .num_ifaces = 1};

	a.ifaces[0] = unknown_iface(s, 2);
	unknown_req(&a, 2, w, r);
}

/* Type of the last wire-up message that the unknown sender got, or 0. */
static inline unsigned int unknown_answer(struct unknown_sender *s, struct weft_wire_wireup *h)
{
	const void *data;
	uint8_t id;

	if (mock_unknown_last(s->lane_ep, &id, &data) < sizeof(*h) || id != WEFT_WIRE_WIREUP)
		return 0;
	memcpy(h, data, sizeof(*h));
	return h->type;
}

#endif /* WEFT_TEST_UNKNOWN_SENDER_H */
