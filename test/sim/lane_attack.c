/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A hostile host on the net of a sealed lane changes, replays, splices, strips and forges frames,
 * and answers ARP.
 */

#include <string.h>

#include "arp_frame.h"
#include "icmp_frame.h"
#include "sealed_scene.h"

/* @behaviour Y65: a replayed frame of a sealed lane has no effect, and is counted */
static void replays_are_dropped(struct sim_case *c)
{
	unsigned int n, got;
	struct sealed_scene s;

	sealed_open(&s, c, &sealed_fast, NULL);
	sealed_traffic(&s, 0, 200);
	sim_run(s.sim, 10 * SIM_MS, NULL, NULL);
	n = s.rec->n;
	got = lane_received(s.b) + lane_received(s.a);
	sim_filter(s.pa, NULL, NULL);
	sim_filter(s.pb, NULL, NULL);
	for (unsigned int i = 0; i < n; i++) {
		sim_inject(s.px, s.rec->frame[i].data, s.rec->frame[i].len);
		sim_inject(s.px, s.rec->frame[n - 1 - i].data, s.rec->frame[n - 1 - i].len);
		sim_run(s.sim, 5 * SIM_US, NULL, NULL);
	}
	sim_run(s.sim, 6 * SIM_S, NULL, NULL);
	assert_int_equal(lane_received(s.b) + lane_received(s.a), got);
	assert_true(lane_counter(s.b, "drop.seal_replay") > 100);
	sealed_traffic(&s, 1000, 200);
	sealed_close(&s);
}

/* @behaviour Y66: each flipped bit of a sealed frame is detected: nothing that was not sent is
 * delivered */
static void flipped_bits_are_detected(struct sim_case *c)
{
	unsigned int n, got, acks;
	uint8_t f[2000];
	struct sealed_scene s;
	uint64_t tags;

	sealed_open(&s, c, &sealed_fast, NULL);
	assert_true(lane_send(s.e, LANE_SHORT, 7, 40) >= 0);
	sim_run(s.sim, 10 * SIM_MS, NULL, NULL);
	n = s.rec->n;
	got = lane_received(s.b);
	sim_filter(s.pa, NULL, NULL);
	sim_filter(s.pb, NULL, NULL);
	for (unsigned int i = 0; i < n; i++) {
		size_t len = s.rec->frame[i].len;

		if (!sealed_header(s.rec, s.rec->frame[i].data, len) || len > 300)
			continue;
		for (size_t bit = 8 * RESEAL_LANE; bit < 8 * len; bit++) {
			memcpy(f, s.rec->frame[i].data, len);
			f[bit / 8] ^= (uint8_t)(1u << bit % 8);
			sim_inject(s.px, f, len);
			sim_run(s.sim, 2 * SIM_US, NULL, NULL);
		}
	}
	sim_run(s.sim, 50 * SIM_MS, NULL, NULL);
	tags = lane_counter(s.b, "drop.seal_tag") + lane_counter(s.a, "drop.seal_tag");
	assert_true(tags > 1000);
	assert_int_equal(lane_received(s.b), got);
	acks = (unsigned int)lane_counter(s.a, "drop.bad_ack");
	assert_int_equal(acks, 0);
	sealed_traffic(&s, 1000, 200);
	sealed_close(&s);
}

/* @behaviour Y67: a frame of one sealed connection has no effect on another one */
static void spliced_frames_are_detected(struct sim_case *c)
{
	struct weft_frame_hdr *h, to = {0};
	unsigned int n, first, sent = 0;
	struct lane_end *second;
	uint8_t f[2000];
	struct sealed_scene s;

	sealed_open(&s, c, &sealed_fast, NULL);
	sealed_traffic(&s, 0, 100);
	first = s.rec->n;
	second = lane_connect(s.a, s.b);
	sim_run(s.sim, 50 * SIM_MS, NULL, NULL);
	assert_true(second->up);
	assert_true(lane_send_all(second, 500, 520, SIM_S));
	n = s.rec->n;
	for (unsigned int i = first; i < n; i++) {
		h = sealed_header(s.rec, s.rec->frame[i].data, s.rec->frame[i].len);
		if (h && h->type == WEFT_FRAME_DATA &&
		    s.rec->frame[i].data[5] == sim_port_mac(s.pb)[5])
			to = *h;
	}
	assert_int_equal(to.type, WEFT_FRAME_DATA);
	for (unsigned int i = 0; i < first; i++) {
		h = sealed_header(s.rec, s.rec->frame[i].data, s.rec->frame[i].len);
		if (!h || !(weft_get16(h->flags) & WEFT_FRAME_F_SEALED))
			continue;
		memcpy(f, s.rec->frame[i].data, s.rec->frame[i].len);
		h = sealed_header(s.rec, f, s.rec->frame[i].len);
		h->dst_conn = to.dst_conn;
		h->token = to.token;
		memcpy(f, sim_port_mac(s.pb), 6);
		sim_inject(s.px, f, s.rec->frame[i].len);
		sim_run(s.sim, 5 * SIM_US, NULL, NULL);
		sent++;
	}
	sim_run(s.sim, 50 * SIM_MS, NULL, NULL);
	assert_true(lane_counter(s.b, "drop.seal_tag") > sent / 3);
	assert_int_equal(second->downs, 0);
	assert_true(lane_send_all(second, 600, 700, 5 * SIM_S));
	assert_true(lane_exactly_once(s.b, 600, 700));
	sealed_traffic(&s, 1000, 100);
	sealed_close(&s);
}

/* The newest frame to b of a type, made plain with right numbers and checksums. */
static size_t forge(struct sealed_scene *s, uint8_t type, uint8_t *f)
{
	struct weft_frame_hdr *h = NULL;
	size_t len = RESEAL_LANE + sizeof(*h) + 16 + 4;

	for (unsigned int i = s->rec->n; i-- > 0;) {
		h = sealed_header(s->rec, s->rec->frame[i].data, s->rec->frame[i].len);
		if (h && weft_get16(h->flags) & WEFT_FRAME_F_SEALED &&
		    s->rec->frame[i].len >= len &&
		    memcmp(s->rec->frame[i].data, sim_port_mac(s->pb), 6) == 0) {
			memcpy(f, s->rec->frame[i].data, len);
			break;
		}
	}
	assert_non_null(h);
	h = (struct weft_frame_hdr *)(f + RESEAL_LANE);
	h->type = type;
	h->flags = weft_put16(WEFT_FRAME_F_CRC32C);
	h->length = weft_put16((uint16_t)(sizeof(*h) + 16));
	h->ack = weft_put32(weft_get32(h->ack) + 5);
	memset(h + 1, 0, 16);
	reseal_ip(f)->total_length = rte_cpu_to_be_16((uint16_t)(len - RTE_ETHER_HDR_LEN));
	reseal_udp(f)->dgram_len =
		rte_cpu_to_be_16((uint16_t)(len - RTE_ETHER_HDR_LEN - sizeof(struct rte_ipv4_hdr)));
	reseal(f, len);
	return len;
}

/* @behaviour Y68: plain frames have no effect on a sealed connection, whatever their numbers */
static void plain_frames_are_dropped(struct sim_case *c)
{
	static const uint8_t types[] = {WEFT_FRAME_ACK,   WEFT_FRAME_BYE,   WEFT_FRAME_BYE_ACK,
					WEFT_FRAME_PROBE, WEFT_FRAME_READY, WEFT_FRAME_ALIVE,
					WEFT_FRAME_DATA,  WEFT_FRAME_PART};
	struct sealed_scene s;
	uint8_t f[2000];
	size_t len;

	sealed_open(&s, c, &sealed_fast, NULL);
	sealed_traffic(&s, 0, 100);
	for (unsigned int i = 0; i < 2000; i++) {
		len = forge(&s, types[i % sizeof(types)], f);
		sim_inject(s.px, f, len);
		sim_run(s.sim, 5 * SIM_US, NULL, NULL);
	}
	sim_run(s.sim, 50 * SIM_MS, NULL, NULL);
	assert_true(lane_counter(s.b, "drop.unsealed") > 1000);
	sealed_traffic(&s, 1000, 100);
	sealed_close(&s);
}

/* @behaviour Y69: a forged RESET ends no sealed connection */
static void forged_resets_are_hints(struct sim_case *c)
{
	struct weft_frame_reset *r;
	struct weft_frame_hdr *h, to_a = {0};
	struct sealed_scene s;
	uint8_t f[2000];
	size_t len;

	sealed_open(&s, c, &sealed_fast, NULL);
	sealed_traffic(&s, 0, 100);
	for (unsigned int i = s.rec->n; i-- > 0 && to_a.type == 0;) {
		h = sealed_header(s.rec, s.rec->frame[i].data, s.rec->frame[i].len);
		if (h && weft_get16(h->flags) & WEFT_FRAME_F_SEALED &&
		    memcmp(s.rec->frame[i].data, sim_port_mac(s.pa), 6) == 0)
			to_a = *h;
	}
	assert_int_not_equal(to_a.type, 0);
	for (unsigned int i = 0; i < 2000; i++) {
		len = forge(&s, WEFT_FRAME_RESET, f);
		h = (struct weft_frame_hdr *)(f + RESEAL_LANE);
		r = (struct weft_frame_reset *)(h + 1);
		/* What b has sent to a: the numbers that prove to b that a does not know it. */
		r->reason = weft_put16((uint16_t)(WEFT_RESET_UNKNOWN + i % 6));
		r->echo_conn = to_a.dst_conn;
		r->echo_token = to_a.token;
		h->dst_conn = weft_put32(weft_get32(h->dst_conn) & 0xffff);
		h->token = weft_put32(0);
		reseal(f, len);
		sim_inject(s.px, f, len);
		sim_run(s.sim, 100 * SIM_US, NULL, NULL);
	}
	assert_true(lane_counter(s.b, "seal.reset_hints") > 1000);
	sealed_traffic(&s, 1000, 100);
	sealed_close(&s);
}

#define PORT_UNREACHABLE 3u

/* Of a router that knows the whole connection, or its ports only. */
#define QUOTE (WEFT_IP_UDP_LEN + sizeof(struct weft_frame_hdr))
#define QUOTE_LESS (QUOTE - 2)

enum forged { RESETS, ICMP, TOO_LONG, MARKS, ARP, FORGED };

/* The same forged frame to b, 10,000 times a second. */
static struct flood {
	struct sealed_scene *s;
	enum forged kind;
	uint8_t frame[2000];
	size_t len;
	rte_be32_t address, own; /* of ARP: a's and b's */
	unsigned int sent;
	bool over;
} flooded;

static void flood_step(void *arg)
{
	struct flood *f = arg;
	const struct sealed_scene *sc = f->s;

	if (f->over)
		return;
	if (f->kind == ICMP)
		icmp_frame_inject(sc->px, sim_port_mac(sc->pb), 0, f->frame, QUOTE_LESS,
				  PORT_UNREACHABLE);
	else if (f->kind == TOO_LONG)
		icmp_frame_inject(sc->px, sim_port_mac(sc->pb), 0, f->frame, QUOTE,
				  WEFT_ICMP_TOO_LONG);
	else if (f->kind == ARP)
		arp_inject(sc->px, RTE_ARP_OP_REPLY, sim_port_mac(sc->px), f->address,
			   sim_port_mac(sc->pb), f->own);
	else
		sim_inject(sc->px, f->frame, f->len);
	f->sent++;
	sim_at(f->s->sim, sim_now(f->s->sim) + 100 * SIM_US, flood_step, f);
}

/* The newest sealed frame to this host. */
static const struct sealed_frame *newest(const struct sealed_scene *s, const uint8_t *mac)
{
	const struct sealed_frame *f;
	struct weft_frame_hdr *h;

	for (unsigned int i = s->rec->n; i-- > 0;) {
		f = &s->rec->frame[i];
		h = sealed_header(s->rec, f->data, f->len);
		if (h && weft_get16(h->flags) & WEFT_FRAME_F_SEALED && memcmp(f->data, mac, 6) == 0)
			return f;
	}
	fail_msg("no sealed frame was recorded");
	return NULL;
}

static void make_forged(struct flood *f)
{
	const struct sealed_frame *to_a = newest(f->s, sim_port_mac(f->s->pa));
	const struct sealed_frame *to_b = newest(f->s, sim_port_mac(f->s->pb));
	struct weft_frame_hdr *h = (struct weft_frame_hdr *)(f->frame + RESEAL_LANE);
	struct weft_frame_reset *r = (struct weft_frame_reset *)(h + 1);
	const struct weft_frame_hdr *known = (const void *)(to_a->data + RESEAL_LANE);

	if (f->kind == RESETS) {
		f->len = forge(f->s, WEFT_FRAME_RESET, f->frame);
		r->reason = weft_put16(WEFT_RESET_UNKNOWN);
		r->echo_conn = known->dst_conn;
		r->echo_token = known->token;
		h->dst_conn = weft_put32(weft_get32(h->dst_conn) & 0xffff);
		h->token = weft_put32(0);
		reseal(f->frame, f->len);
	} else if (f->kind == ICMP || f->kind == TOO_LONG) {
		memcpy(f->frame, to_a->data, RTE_ETHER_HDR_LEN + QUOTE);
	} else if (f->kind == ARP) {
		f->address = reseal_ip(to_a->data)->dst_addr;
		f->own = reseal_ip(to_b->data)->dst_addr;
	} else {
		f->len = to_b->len;
		memcpy(f->frame, to_b->data, f->len);
		reseal_ip(f->frame)->type_of_service |= RTE_IPV4_HDR_ECN_CE;
		reseal_ip(f->frame)->hdr_checksum = 0;
		reseal_ip(f->frame)->hdr_checksum = rte_ipv4_cksum(reseal_ip(f->frame));
	}
}

/* @return ns until b's messages have arrived */
static uint64_t time_of(struct sealed_scene *s, uint32_t from, unsigned int n)
{
	uint64_t begin = sim_now(s->sim);

	assert_true(lane_send_all(lane_passive(s->b), from, from + n, 20 * SIM_S));
	assert_true(lane_exactly_once(s->a, from, from + n));
	return sim_now(s->sim) - begin;
}

/*
 * @behaviour Y75: 10,000 forged RESETs, ICMP messages, ARP answers or marked frames in a second end
 * no sealed connection, leave it 0.9 of its goodput, and are counted
 */
static void floods_of_forged_hints_slow_nothing(struct sim_case *c)
{
	static const char *const counter[FORGED][2] = {
		[RESETS] = {"seal.reset_hints", "drop.reset"},
		[ICMP] = {"drop.icmp", "icmp.received"},
		[TOO_LONG] = {"drop.icmp", "icmp.received"},
		[MARKS] = {"drop.seal_replay", "drop.seal_old"},
		[ARP] = {"arp.received", "drop.arp"},
	};
	struct sim_port_params p = sealed_fast;
	uint64_t quiet, loud, before;
	struct sealed_scene s;

	p.up.rate = SIM_GBIT / 10;
	for (unsigned int kind = 0; kind < FORGED; kind++) {
		sealed_open(&s, c, &p, NULL);
		sealed_traffic(&s, 0, 100);
		quiet = time_of(&s, 1000, 2000);
		flooded = (struct flood){.s = &s, .kind = (enum forged)kind};
		make_forged(&flooded);
		before = lane_counter(s.b, counter[kind][0]) + lane_counter(s.b, counter[kind][1]);
		flood_step(&flooded);
		loud = time_of(&s, 4000, 2000);
		flooded.over = true;
		sim_run(s.sim, SIM_MS, NULL, NULL);
		before = lane_counter(s.b, counter[kind][0]) + lane_counter(s.b, counter[kind][1]) -
			 before;
		if (flooded.sent < 500 || loud * 9 > quiet * 10 || before != flooded.sent)
			fail_msg("%s: %u frames, %u counted, %u us without, %u us with them",
				 counter[kind][0], flooded.sent, (unsigned int)before,
				 (unsigned int)(quiet / 1000), (unsigned int)(loud / 1000));
		assert_int_equal(s.e->downs + lane_passive(s.b)->downs, 0);
		sealed_close(&s);
	}
}

/* @behaviour Y70: a replayed HELLO occupies a half-open place for 5 s, and nothing else */
static void a_replayed_hello_replaces_nothing(struct sim_case *c)
{
	struct weft_frame_hdr *h;
	struct sealed_scene s;
	unsigned int n;

	sealed_open(&s, c, &sealed_fast, NULL);
	sealed_traffic(&s, 0, 100);
	n = s.rec->n;
	for (unsigned int i = 0; i < n; i++) {
		h = sealed_header(s.rec, s.rec->frame[i].data, s.rec->frame[i].len);
		if (!h || (h->type != WEFT_FRAME_HELLO && h->type != WEFT_FRAME_HELLO_ACK))
			continue;
		for (unsigned int k = 0; k < 50; k++) {
			sim_inject(s.px, s.rec->frame[i].data, s.rec->frame[i].len);
			sim_run(s.sim, 100 * SIM_US, NULL, NULL);
		}
	}
	sim_run(s.sim, 6 * SIM_S, NULL, NULL);
	assert_int_equal(lane_num_passive(s.b), 1);
	sealed_traffic(&s, 1000, 100);
	/* The same after the connection has ended: its HELLO starts one that nothing finishes. */
	lane_destroy(s.e);
	lane_destroy(lane_passive(s.b));
	sim_run(s.sim, 5 * SIM_S, NULL, NULL);
	for (unsigned int i = 0; i < n; i++) {
		h = sealed_header(s.rec, s.rec->frame[i].data, s.rec->frame[i].len);
		if (h && h->type != WEFT_FRAME_ACK)
			sim_inject(s.px, s.rec->frame[i].data, s.rec->frame[i].len);
		sim_run(s.sim, 20 * SIM_US, NULL, NULL);
	}
	sim_run(s.sim, 8 * SIM_S, NULL, NULL);
	assert_true(lane_counter(s.b, "conn.half_open_expired") > 0);
	assert_int_equal(lane_counter(s.b, "conn.count"), 0);
	sealed_close(&s);
}

/* Sealed frames of the recording, to either host. */
static struct weft_frame_hdr *copied(const struct sealed_scene *s, unsigned int i, uint8_t *f)
{
	const struct sealed_frame *frame = &s->rec->frame[i];
	struct weft_frame_hdr *h;

	if (frame->len > 2000)
		return NULL;
	memcpy(f, frame->data, frame->len);
	h = sealed_header(s->rec, f, frame->len);
	return h && weft_get16(h->flags) & WEFT_FRAME_F_SEALED ? h : NULL;
}

/* All lengths of a frame have changed by this. */
static void lengthen(uint8_t *f, struct weft_frame_hdr *h, int by)
{
	struct rte_ipv4_hdr *ip = reseal_ip(f);
	struct rte_udp_hdr *udp = reseal_udp(f);

	h->length = weft_put16((uint16_t)(weft_get16(h->length) + by));
	udp->dgram_len = rte_cpu_to_be_16((uint16_t)(rte_be_to_cpu_16(udp->dgram_len) + by));
	ip->total_length = rte_cpu_to_be_16((uint16_t)(rte_be_to_cpu_16(ip->total_length) + by));
}

static uint64_t dropped(const struct sealed_scene *s, const char *name)
{
	return lane_counter(s->a, name) + lane_counter(s->b, name);
}

/*
 * @behaviour Y77: a sealed frame that was cut, with lengths that fit, has no effect, and is counted
 */
static void truncated_frames_are_detected(struct sim_case *c)
{
	unsigned int n, got, sent = 0;
	struct weft_frame_hdr *h;
	struct sealed_scene s;
	uint64_t before;
	uint8_t f[2000];

	sealed_open(&s, c, &sealed_fast, NULL);
	sealed_traffic(&s, 0, 50);
	sim_run(s.sim, 10 * SIM_MS, NULL, NULL);
	n = s.rec->n;
	got = lane_received(s.a) + lane_received(s.b);
	before = dropped(&s, "drop.seal_tag") + dropped(&s, "drop.bad_length");
	for (unsigned int i = 0; i < n; i += 3) {
		for (int cut = 1; (h = copied(&s, i, f)) && weft_get16(h->length) >= 42 + cut;
		     cut += 1 + cut / 4) {
			lengthen(f, h, -cut);
			reseal(f, s.rec->frame[i].len - (size_t)cut);
			sim_inject(s.px, f, s.rec->frame[i].len - (size_t)cut);
			sim_run(s.sim, 2 * SIM_US, NULL, NULL);
			sent++;
		}
	}
	sim_run(s.sim, 50 * SIM_MS, NULL, NULL);
	before = dropped(&s, "drop.seal_tag") + dropped(&s, "drop.bad_length") - before;
	if (sent < 200 || before != sent)
		fail_msg("%u of %u frames are counted", (unsigned int)before, sent);
	assert_int_equal(lane_received(s.a) + lane_received(s.b), got);
	sealed_traffic(&s, 1000, 100);
	sealed_close(&s);
}

/*
 * @behaviour Y78: a sealed frame without its flag, with or without number and tag, has no effect,
 * and is counted
 */
static void stripped_frames_are_dropped(struct sim_case *c)
{
	const size_t head = RESEAL_LANE + sizeof(struct weft_frame_hdr);
	unsigned int n, got, sent = 0;
	struct weft_frame_hdr *h;
	struct sealed_scene s;
	uint64_t before;
	uint8_t f[2000];
	size_t len;

	for (unsigned int auth = 0; auth < 2; auth++) {
		struct sim_port_params p = sealed_fast;

		p.seal_auth = auth; /* then the stripped frame is the sender's plain one */
		sealed_open(&s, c, &p, NULL);
		sealed_traffic(&s, 0, 200);
		sim_run(s.sim, 10 * SIM_MS, NULL, NULL);
		n = s.rec->n;
		got = lane_received(s.a) + lane_received(s.b);
		before = dropped(&s, "drop.unsealed");
		sent = 0;
		for (unsigned int i = 0; i < n; i++) {
			h = copied(&s, i, f);
			if (!h)
				continue;
			len = s.rec->frame[i].len;
			h->flags = weft_put16(WEFT_FRAME_F_CRC32C |
					      (weft_get16(h->flags) & WEFT_FRAME_F_KNOWN));
			if (i & 1) { /* without the number; the CRC takes the tag's place */
				memmove(f + head, f + head + 8, len - head - 8);
				lengthen(f, h, -8);
				len -= 8;
			}
			reseal(f, len);
			sim_inject(s.px, f, len);
			sim_run(s.sim, 2 * SIM_US, NULL, NULL);
			sent++;
		}
		sim_run(s.sim, 50 * SIM_MS, NULL, NULL);
		before = dropped(&s, "drop.unsealed") + dropped(&s, "drop.bad_message") - before;
		assert_true(sent > 200 && before > sent / 3);
		assert_int_equal(lane_received(s.a) + lane_received(s.b), got);
		assert_int_equal(dropped(&s, "drop.bad_ack"), 0);
		sealed_traffic(&s, 1000, 100);
		sealed_close(&s);
	}
}

/* ---- in the middle --------------------------------------------------------------------------- */

/* What the host in the middle does with the frames that it forwards. */
static struct middle {
	struct sealed_scene *s;
	uint8_t to_a[6], to_b[6];
	rte_be32_t ip_a, ip_b;
	unsigned int forwarded, changed, hellos;
	unsigned int change; /* one bit of each Nth sealed frame; 0 = of none */
	bool features;       /* of hellos are other ones */
} middle;

static void forward(struct sim_port *port, const uint8_t *data, size_t len, void *arg)
{
	const struct rte_arp_hdr *arp = arp_frame(data, len);
	struct middle *m = arg;
	struct weft_frame_hdr *h;
	struct weft_frame_hello *hello;
	uint8_t f[2000];

	if (arp_is_request(arp)) /* it is both hosts */
		arp_answer(port, sim_port_mac(port), arp);
	if (arp || len > sizeof(f) || memcmp(data, sim_port_mac(port), 6) != 0)
		return;
	memcpy(f, data, len);
	memcpy(f, memcmp(data + 6, m->to_a, 6) == 0 ? m->to_b : m->to_a, 6);
	memcpy(f + 6, sim_port_mac(port), 6);
	h = sealed_header(m->s->rec, f, len);
	if (h && h->type == WEFT_FRAME_HELLO && m->features) {
		hello = (struct weft_frame_hello *)(h + 1);
		hello->features = weft_put32(weft_get32(hello->features) ^ 1);
		reseal(f, len);
		m->hellos++;
	}
	if (h && weft_get16(h->flags) & WEFT_FRAME_F_SEALED && m->change &&
	    ++m->forwarded % m->change == 0) {
		f[len - 1 - m->forwarded % (len - RESEAL_LANE - sizeof(*h))] ^= 4;
		m->changed++;
	}
	sim_inject(port, f, len);
}

/*
 * @behaviour Y79: a host that answers ARP for both ends gets their frames, and can only forward or
 * lose them: what it changes is dropped and counted, and no handshake with a changed hello ends
 */
static void a_host_that_answers_arp_reads_and_changes_nothing(struct sim_case *c)
{
	struct sealed_scene s;

	sealed_open_hosts(&s, c, &sealed_fast, &sealed_fast, "CONNECT_TIMEOUT=20s");
	middle = (struct middle){.s = &s, .features = true, .change = 20};
	memcpy(middle.to_a, sim_port_mac(s.pa), 6);
	memcpy(middle.to_b, sim_port_mac(s.pb), 6);
	/* The hosts' own answers are lost, so that the first ones are those of the middle. */
	s.rec->no_arp = true;
	sim_station(s.px, false, forward, &middle);
	s.e = lane_connect(s.a, s.b);
	sim_run(s.sim, 2 * SIM_S, NULL, NULL);
	assert_int_equal(s.e->ups, 0);
	assert_true(middle.hellos > 2);
	assert_true(lane_counter(s.b, "seal.hello_mac") >= middle.hellos);
	middle.features = false;
	assert_true(sim_run(s.sim, 10 * SIM_S, lane_is_up, s.e));
	sealed_traffic(&s, 0, 1000);
	assert_true(middle.changed > 50);
	assert_true(dropped(&s, "drop.seal_tag") >= middle.changed / 2);
	sealed_close(&s);
}

/* ---- earlier incarnations ------------------------------------------------------------------- */

/*
 * @behaviour Y80: all frames of the processes that had a sealed connection before have no effect on
 * that of the present ones with the same addresses
 */
static void frames_of_an_earlier_incarnation_have_no_effect(struct sim_case *c)
{
	struct weft_frame_hdr *h;
	struct sealed_scene s;
	unsigned int n, got;

	sealed_open(&s, c, &sealed_fast, NULL);
	sealed_traffic(&s, 0, 200);
	n = s.rec->n;
	lane_host_kill(s.a);
	lane_host_kill(s.b);
	s.a = lane_host_create(s.sim, s.pa, NULL);
	s.b = lane_host_create(s.sim, s.pb, NULL);
	s.e = lane_up(s.a, s.b);
	assert_non_null(s.e);
	sealed_traffic(&s, 1000, 100);
	got = lane_received(s.a) + lane_received(s.b);
	for (unsigned int round = 0; round < 5; round++) {
		for (unsigned int i = 0; i < n; i++) {
			h = sealed_header(s.rec, s.rec->frame[i].data, s.rec->frame[i].len);
			/* The hellos each time, other frames once. */
			if (round > 0 && (!h || h->type > WEFT_FRAME_HELLO_ACK))
				continue;
			sim_inject(s.px, s.rec->frame[i].data, s.rec->frame[i].len);
			sim_run(s.sim, 5 * SIM_US, NULL, NULL);
		}
	}
	sim_run(s.sim, 8 * SIM_S, NULL, NULL);
	assert_int_equal(lane_received(s.a) + lane_received(s.b), got);
	assert_int_equal(lane_num_passive(s.b), 1);
	/* The hellos name an interface that is gone, others a connection with another token. */
	assert_true(lane_counter(s.b, "drop.unknown_sender") >= 5);
	assert_true(dropped(&s, "drop.stale_epoch") > 100);
	sealed_traffic(&s, 2000, 200);
	sealed_close(&s);
}

static struct sim_case cases[] = {
	SIM_CASE(replays_are_dropped),
	SIM_CASE(flipped_bits_are_detected),
	SIM_CASE(spliced_frames_are_detected),
	SIM_CASE(plain_frames_are_dropped),
	SIM_CASE(forged_resets_are_hints),
	SIM_CASE(floods_of_forged_hints_slow_nothing),
	SIM_CASE(a_replayed_hello_replaces_nothing),
	SIM_CASE(truncated_frames_are_detected),
	SIM_CASE(stripped_frames_are_dropped),
	SIM_CASE(a_host_that_answers_arp_reads_and_changes_nothing),
	SIM_CASE(frames_of_an_earlier_incarnation_have_no_effect),
};

int main(int argc, char **argv)
{
	return sealed_main(argc, argv, "lane_attack", cases, sizeof(cases) / sizeof(cases[0]));
}
