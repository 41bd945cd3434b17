/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sealed lanes (doc/sealing.md) over the simulated network. Each frame that either end sends is
 * recorded: no frame but those of the exchange is plain, and no key and nonce is used twice. A
 * hostile host then changes, replays, splices and forges them.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/keylog.h"
#include "base/secret.h"
#include "frame/frame_port.h"
#include "icmp_frame.h"
#include "lane_host.h"
#include "reseal.h"
#include "seal/exchange.h"
#include "sim_test.h"

static const uint8_t key[32] = "a job key of the sealed lanes 01";
static const uint8_t other_key[32] = "a job key of the sealed lanes 02";

#define RECORD_MAX 20000
#define NUMBERS 65536u

struct frame {
	size_t len;
	uint8_t *data;
};

/* What has crossed the wire. */
struct record {
	struct frame frame[RECORD_MAX];
	unsigned int n, plain, sealed, twice;
	/* Connection and number of each sealed frame: a hash table, of which none is deleted. */
	struct {
		uint32_t conn;
		uint64_t number;
	} seen[NUMBERS];
	struct sim_link *down;
	size_t mtu; /* longer frames vanish; 0 = none */
	bool ether;
};

struct scene {
	struct sim *sim;
	struct sim_port *pa, *pb, *px; /* px: another host on the same net */
	struct lane_host *a, *b;
	struct lane_end *e;
	struct record *rec;
};

static struct record recorded;

static size_t lane_at(const struct record *r)
{
	return r->ether ? RTE_ETHER_HDR_LEN : RESEAL_LANE;
}

static struct weft_frame_hdr *lane_header(const struct record *r, uint8_t *f, size_t len)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)f;

	if (len < lane_at(r) + sizeof(struct weft_frame_hdr) ||
	    eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP))
		return NULL;
	return (struct weft_frame_hdr *)(f + lane_at(r));
}

static bool may_be_plain(uint8_t type)
{
	return type == WEFT_FRAME_HELLO || type == WEFT_FRAME_HELLO_ACK ||
	       type == WEFT_FRAME_HELLO_RETRY || type == WEFT_FRAME_RESET ||
	       type == WEFT_FRAME_CHALLENGE;
}

/* Keys belong to a connection and a direction, and so to the receiver's number of it. */
static void note_number(struct record *r, const struct weft_frame_hdr *h)
{
	uint32_t conn = weft_get32(h->dst_conn) ^ weft_get32(h->token), i;
	weft_le64 wire;
	uint64_t number;

	memcpy(&wire, h + 1, sizeof(wire));
	number = weft_get64(wire);
	for (i = (uint32_t)(number * 2654435761u + conn) % NUMBERS; r->seen[i].conn != 0;
	     i = (i + 1) % NUMBERS) {
		if (r->seen[i].conn == conn && r->seen[i].number == number) {
			r->twice++;
			return;
		}
	}
	r->seen[i].conn = conn;
	r->seen[i].number = number;
}

static enum sim_verdict record(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
			       void *arg)
{
	struct record *r = arg;
	const struct weft_frame_hdr *h = lane_header(r, data, *len);

	(void)port;
	(void)room;
	if (h && weft_get16(h->flags) & WEFT_FRAME_F_SEALED) {
		r->sealed++;
		if (r->sealed < NUMBERS / 2)
			note_number(r, h);
	} else if (h && !may_be_plain(h->type)) {
		r->plain++;
	}
	if (r->n < RECORD_MAX) {
		r->frame[r->n].data = malloc(*len);
		memcpy(r->frame[r->n].data, data, *len);
		r->frame[r->n++].len = *len;
	}
	return r->mtu != 0 && *len > r->mtu + RTE_ETHER_HDR_LEN ? SIM_DROP : SIM_PASS;
}

static void forget(struct record *r)
{
	while (r->n)
		free(r->frame[--r->n].data);
	memset(r, 0, sizeof(*r));
}

static struct sim_port_params fast = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000},
				      .job_key = key};

/* Ports and hosts, without a connection. */
static void open_hosts(struct scene *s, struct sim_case *c, const struct sim_port_params *pa,
		       const struct sim_port_params *pb, const char *config)
{
	memset(s, 0, sizeof(*s));
	s->rec = &recorded;
	forget(s->rec);
	s->rec->ether = pa->raw_ethertype;
	s->sim = case_sim_seed(c, c->seed);
	s->pa = sim_port_create(s->sim, pa);
	s->pb = sim_port_create(s->sim, pb);
	s->px = sim_port_create(s->sim, pa);
	sim_station(s->px, false, sim_ignore, NULL);
	sim_filter(s->pa, record, s->rec);
	sim_filter(s->pb, record, s->rec);
	s->a = lane_host_create(s->sim, s->pa, config);
	s->b = lane_host_create(s->sim, s->pb, config);
}

static void open_scene(struct scene *s, struct sim_case *c, const struct sim_port_params *p,
		       const char *config)
{
	open_hosts(s, c, p, p, config);
	s->e = lane_up(s->a, s->b);
	assert_non_null(s->e);
}

/* Both ways, messages of all kinds and sizes. */
static void traffic(struct scene *s, uint32_t from, unsigned int n)
{
	assert_int_equal(s->e->downs + lane_passive(s->b)->downs, 0);
	if (!lane_send_all(s->e, from, from + n, 20 * SIM_S))
		fail_msg("traffic stopped: %u received, %s", lane_received(s->b), s->e->text);
	assert_true(lane_exactly_once(s->b, from, from + n));
	if (!lane_send_all(lane_passive(s->b), from + n, from + 2 * n, 20 * SIM_S))
		fail_msg("traffic back stopped: %u received", lane_received(s->a));
	assert_true(lane_exactly_once(s->a, from + n, from + 2 * n));
	assert_int_equal(lane_wrong(s->a) + lane_wrong(s->b), 0);
}

/* Of all that was recorded: nothing plain, no number twice. */
static void only_sealed(const struct scene *s)
{
	assert_int_equal(s->rec->plain, 0);
	assert_int_equal(s->rec->twice, 0);
	assert_true(s->rec->sealed > 0);
	assert_int_equal(sim_port_stats(s->pa)->oversize + sim_port_stats(s->pb)->oversize, 0);
}

static void close_scene(struct scene *s)
{
	only_sealed(s);
	forget(s->rec);
}

/* ---- every mode ------------------------------------------------------------------------------ */

/* @behaviour Y62: with a job key every frame behind the handshake is sealed, in all modes */
static void every_mode_seals_all_frames(struct sim_case *c)
{
	struct scene s;

	for (unsigned int i = 0; i < 16; i++) {
		struct sim_port_params p = fast;

		p.seal_auth = i & 1;
		p.seal_psk = i & 2;
		p.raw_ethertype = i & 4;
		p.flags = i & 8 ? WEFT_FRAME_PORT_MEMORY : 0;
		p.frame_size = i & 1 ? 9014 : 0;
		open_scene(&s, c, &p, i & 8 ? NULL : "CSUM=udp");
		traffic(&s, 0, 300);
		close_scene(&s);
	}
}

static bool contains(const struct frame *f, const void *text, size_t len)
{
	for (size_t i = 0; i + len <= f->len; i++)
		if (memcmp(f->data + i, text, len) == 0)
			return true;
	return false;
}

/* @behaviour Y63: with WEFT_SEAL=encrypt no byte of a message can be read on the wire, and with
 * auth they can */
static void bodies_are_readable_with_auth_only(struct sim_case *c)
{
	struct scene s;

	for (unsigned int auth = 0; auth < 2; auth++) {
		struct sim_port_params p = fast;
		unsigned int readable = 0;
		uint8_t text[LANE_HDR + 16];
		uint32_t head[2] = {7, 600};

		p.seal_auth = auth;
		open_scene(&s, c, &p, NULL);
		assert_true(lane_send(s.e, LANE_SHORT, 7, 600) >= 0);
		sim_run(s.sim, 10 * SIM_MS, NULL, NULL);
		assert_int_equal(lane_got(s.b, 7), 1);
		memcpy(text, head, sizeof(head));
		for (unsigned int i = 0; i < s.rec->n; i++)
			readable += contains(&s.rec->frame[i], text, sizeof(head));
		assert_int_equal(readable > 0, auth);
		close_scene(&s);
	}
}

/* @behaviour Y64: a sealed lane survives loss, duplicates, reordering and corruption */
static void faults_of_the_network_are_repaired(struct sim_case *c)
{
	static const struct sim_link links[] = {
		{.rate = 10 * SIM_GBIT, .delay_ns = 5000, .loss = 0.05},
		{.rate = 10 * SIM_GBIT, .delay_ns = 5000, .dup = 0.1},
		{.rate = 10 * SIM_GBIT, .delay_ns = 5000, .reorder = 0.2, .reorder_ns = 200000},
		{.rate = 10 * SIM_GBIT, .delay_ns = 5000, .corrupt = 0.05},
		{.rate = 10 * SIM_GBIT, .delay_ns = 5000, .truncate = 0.05},
	};
	struct scene s;

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		struct sim_port_params p = fast;

		p.up = links[i];
		open_hosts(&s, c, &p, &p, "CONNECT_TIMEOUT=10s");
		s.e = lane_connect(s.a, s.b);
		sim_run(s.sim, 2 * SIM_S, NULL, NULL);
		assert_true(s.e->up);
		traffic(&s, 0, 1000);
		if (links[i].dup > 0)
			assert_true(lane_counter(s.b, "drop.seal_replay") > 0);
		if (links[i].corrupt > 0)
			assert_true(lane_counter(s.b, "drop.seal_tag") > 0);
		close_scene(&s);
	}
}

static void parts_and_an_mtu_that_falls(struct sim_case *c)
{
	struct sim_port_params p = fast;
	struct scene s;

	p.frame_size = 9014;
	open_scene(&s, c, &p, NULL);
	traffic(&s, 0, 200);
	s.rec->mtu = 1500;
	traffic(&s, 1000, 300);
	assert_true(lane_counter(s.a, "tx.parts") > 0);
	s.rec->mtu = 0;
	traffic(&s, 3000, 100);
	close_scene(&s);
}

static void several_paths(struct sim_case *c)
{
	struct sim_port_params p = fast;
	struct scene s;

	p.paths = 4;
	p.up.reorder = 0.05;
	p.up.reorder_ns = 100000;
	open_scene(&s, c, &p, NULL);
	traffic(&s, 0, 2000);
	close_scene(&s);
}

/*
 * @behaviour Y73: a sealed connection replaces its keys by their age in both directions, also those
 * of an end that sends no DATA
 */
static void keys_are_replaced_when_old(struct sim_case *c)
{
	struct sim_port_params p = fast;
	struct scene s;

	p.up.loss = 0.01;
	p.up.reorder = 0.05;
	p.up.reorder_ns = 100000;
	p.seal_rekey_ns = 20 * SIM_MS;
	open_scene(&s, c, &p, NULL);
	for (unsigned int i = 0; i < 200; i++) {
		if (!lane_send_all(s.e, 10 * i, 10 * (i + 1), 20 * SIM_S))
			fail_msg("traffic stopped: %s", s.e->text);
		sim_run(s.sim, 10 * SIM_MS, NULL, NULL);
	}
	assert_true(lane_exactly_once(s.b, 0, 2000));
	assert_true(lane_counter(s.a, "seal.rekeys") > 20);
	assert_true(lane_counter(s.b, "seal.rekeys") > 10);
	assert_int_equal(s.e->downs + lane_passive(s.b)->downs, 0);
	traffic(&s, 5000, 100);
	close_scene(&s);
}

/* Frames in which a window is closed and buffers are short. */
static void few_buffers(struct sim_case *c)
{
	struct sim_port_params p = fast;
	struct scene s;

	p.bufs = 256;
	p.rx_depth = 64;
	p.hdr_bufs = 128;
	open_scene(&s, c, &p, NULL);
	lane_keep(s.b, 20);
	traffic(&s, 0, 2000);
	lane_release(s.b);
	close_scene(&s);
}

/* ---- a hostile host -------------------------------------------------------------------------- */

/* @behaviour Y65: a replayed frame of a sealed lane has no effect, and is counted */
static void replays_are_dropped(struct sim_case *c)
{
	unsigned int n, got;
	struct scene s;

	open_scene(&s, c, &fast, NULL);
	traffic(&s, 0, 200);
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
	traffic(&s, 1000, 200);
	close_scene(&s);
}

/* @behaviour Y66: each flipped bit of a sealed frame is detected: nothing that was not sent is
 * delivered */
static void flipped_bits_are_detected(struct sim_case *c)
{
	unsigned int n, got, acks;
	uint8_t f[2000];
	struct scene s;
	uint64_t tags;

	open_scene(&s, c, &fast, NULL);
	assert_true(lane_send(s.e, LANE_SHORT, 7, 40) >= 0);
	sim_run(s.sim, 10 * SIM_MS, NULL, NULL);
	n = s.rec->n;
	got = lane_received(s.b);
	sim_filter(s.pa, NULL, NULL);
	sim_filter(s.pb, NULL, NULL);
	for (unsigned int i = 0; i < n; i++) {
		size_t len = s.rec->frame[i].len;

		if (!lane_header(s.rec, s.rec->frame[i].data, len) || len > 300)
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
	traffic(&s, 1000, 200);
	close_scene(&s);
}

/* @behaviour Y67: a frame of one sealed connection has no effect on another one */
static void spliced_frames_are_detected(struct sim_case *c)
{
	struct weft_frame_hdr *h, to = {0};
	unsigned int n, first, sent = 0;
	struct lane_end *second;
	uint8_t f[2000];
	struct scene s;

	open_scene(&s, c, &fast, NULL);
	traffic(&s, 0, 100);
	first = s.rec->n;
	second = lane_connect(s.a, s.b);
	sim_run(s.sim, 50 * SIM_MS, NULL, NULL);
	assert_true(second->up);
	assert_true(lane_send_all(second, 500, 520, SIM_S));
	n = s.rec->n;
	for (unsigned int i = first; i < n; i++) {
		h = lane_header(s.rec, s.rec->frame[i].data, s.rec->frame[i].len);
		if (h && h->type == WEFT_FRAME_DATA &&
		    s.rec->frame[i].data[5] == sim_port_mac(s.pb)[5])
			to = *h;
	}
	assert_int_equal(to.type, WEFT_FRAME_DATA);
	for (unsigned int i = 0; i < first; i++) {
		h = lane_header(s.rec, s.rec->frame[i].data, s.rec->frame[i].len);
		if (!h || !(weft_get16(h->flags) & WEFT_FRAME_F_SEALED))
			continue;
		memcpy(f, s.rec->frame[i].data, s.rec->frame[i].len);
		h = lane_header(s.rec, f, s.rec->frame[i].len);
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
	traffic(&s, 1000, 100);
	close_scene(&s);
}

/* The newest frame to b of a type, made plain with right numbers and checksums. */
static size_t forge(struct scene *s, uint8_t type, uint8_t *f)
{
	struct weft_frame_hdr *h = NULL;
	size_t len = RESEAL_LANE + sizeof(*h) + 16 + 4;

	for (unsigned int i = s->rec->n; i-- > 0;) {
		h = lane_header(s->rec, s->rec->frame[i].data, s->rec->frame[i].len);
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
	struct scene s;
	uint8_t f[2000];
	size_t len;

	open_scene(&s, c, &fast, NULL);
	traffic(&s, 0, 100);
	for (unsigned int i = 0; i < 2000; i++) {
		len = forge(&s, types[i % sizeof(types)], f);
		sim_inject(s.px, f, len);
		sim_run(s.sim, 5 * SIM_US, NULL, NULL);
	}
	sim_run(s.sim, 50 * SIM_MS, NULL, NULL);
	assert_true(lane_counter(s.b, "drop.unsealed") > 1000);
	traffic(&s, 1000, 100);
	close_scene(&s);
}

/* @behaviour Y69: a forged RESET ends no sealed connection */
static void forged_resets_are_hints(struct sim_case *c)
{
	struct weft_frame_reset *r;
	struct weft_frame_hdr *h, to_a = {0};
	struct scene s;
	uint8_t f[2000];
	size_t len;

	open_scene(&s, c, &fast, NULL);
	traffic(&s, 0, 100);
	for (unsigned int i = s.rec->n; i-- > 0 && to_a.type == 0;) {
		h = lane_header(s.rec, s.rec->frame[i].data, s.rec->frame[i].len);
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
	traffic(&s, 1000, 100);
	close_scene(&s);
}

#define PORT_UNREACHABLE 3u

enum forged { RESETS, ICMP, MARKS, FORGED };

/* The same forged frame to b, 10,000 times a second. */
static struct flood {
	struct scene *s;
	enum forged kind;
	uint8_t frame[2000];
	size_t len;
	unsigned int sent;
	bool over;
} flooded;

static void flood_step(void *arg)
{
	struct flood *f = arg;

	if (f->over)
		return;
	if (f->kind == ICMP)
		icmp_frame_inject(f->s->px, sim_port_mac(f->s->pb), 0, f->frame, 68,
				  PORT_UNREACHABLE);
	else
		sim_inject(f->s->px, f->frame, f->len);
	f->sent++;
	sim_at(f->s->sim, sim_now(f->s->sim) + 100 * SIM_US, flood_step, f);
}

/* The newest sealed frame to this host. */
static const struct frame *newest(const struct scene *s, const uint8_t *mac)
{
	const struct frame *f;
	struct weft_frame_hdr *h;

	for (unsigned int i = s->rec->n; i-- > 0;) {
		f = &s->rec->frame[i];
		h = lane_header(s->rec, f->data, f->len);
		if (h && weft_get16(h->flags) & WEFT_FRAME_F_SEALED && memcmp(f->data, mac, 6) == 0)
			return f;
	}
	fail_msg("no sealed frame was recorded");
	return NULL;
}

static void make_forged(struct flood *f)
{
	const struct frame *to_a = newest(f->s, sim_port_mac(f->s->pa));
	const struct frame *to_b = newest(f->s, sim_port_mac(f->s->pb));
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
	} else if (f->kind == ICMP) {
		memcpy(f->frame, to_a->data, 14 + 68);
	} else {
		f->len = to_b->len;
		memcpy(f->frame, to_b->data, f->len);
		reseal_ip(f->frame)->type_of_service |= RTE_IPV4_HDR_ECN_CE;
		reseal_ip(f->frame)->hdr_checksum = 0;
		reseal_ip(f->frame)->hdr_checksum = rte_ipv4_cksum(reseal_ip(f->frame));
	}
}

/* @return ns until b's messages have arrived */
static uint64_t time_of(struct scene *s, uint32_t from, unsigned int n)
{
	uint64_t begin = sim_now(s->sim);

	assert_true(lane_send_all(lane_passive(s->b), from, from + n, 20 * SIM_S));
	assert_true(lane_exactly_once(s->a, from, from + n));
	return sim_now(s->sim) - begin;
}

/*
 * @behaviour Y75: 10,000 forged RESETs, ICMP messages or marked frames in a second end no sealed
 * connection, leave it 0.9 of its goodput, and are counted
 */
static void floods_of_forged_hints_slow_nothing(struct sim_case *c)
{
	static const char *const counter[FORGED][2] = {
		[RESETS] = {"seal.reset_hints", "drop.reset"},
		[ICMP] = {"drop.icmp", "icmp.received"},
		[MARKS] = {"drop.seal_replay", "drop.seal_old"},
	};
	struct sim_port_params p = fast;
	uint64_t quiet, loud, before;
	struct scene s;

	p.up.rate = SIM_GBIT / 10;
	for (unsigned int kind = 0; kind < FORGED; kind++) {
		open_scene(&s, c, &p, NULL);
		traffic(&s, 0, 100);
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
		close_scene(&s);
	}
}

/* @behaviour Y70: a replayed HELLO occupies a half-open place for 5 s, and nothing else */
static void a_replayed_hello_replaces_nothing(struct sim_case *c)
{
	struct weft_frame_hdr *h;
	struct scene s;
	unsigned int n;

	open_scene(&s, c, &fast, NULL);
	traffic(&s, 0, 100);
	n = s.rec->n;
	for (unsigned int i = 0; i < n; i++) {
		h = lane_header(s.rec, s.rec->frame[i].data, s.rec->frame[i].len);
		if (!h || (h->type != WEFT_FRAME_HELLO && h->type != WEFT_FRAME_HELLO_ACK))
			continue;
		for (unsigned int k = 0; k < 50; k++) {
			sim_inject(s.px, s.rec->frame[i].data, s.rec->frame[i].len);
			sim_run(s.sim, 100 * SIM_US, NULL, NULL);
		}
	}
	sim_run(s.sim, 6 * SIM_S, NULL, NULL);
	assert_int_equal(lane_num_passive(s.b), 1);
	traffic(&s, 1000, 100);
	/* The same after the connection has ended: its HELLO starts one that nothing finishes. */
	lane_destroy(s.e);
	lane_destroy(lane_passive(s.b));
	sim_run(s.sim, 5 * SIM_S, NULL, NULL);
	for (unsigned int i = 0; i < n; i++) {
		h = lane_header(s.rec, s.rec->frame[i].data, s.rec->frame[i].len);
		if (h && h->type != WEFT_FRAME_ACK)
			sim_inject(s.px, s.rec->frame[i].data, s.rec->frame[i].len);
		sim_run(s.sim, 20 * SIM_US, NULL, NULL);
	}
	sim_run(s.sim, 8 * SIM_S, NULL, NULL);
	assert_true(lane_counter(s.b, "conn.half_open_expired") > 0);
	assert_int_equal(lane_counter(s.b, "conn.count"), 0);
	close_scene(&s);
}

/* ---- refusals -------------------------------------------------------------------------------- */

struct refusal {
	const char *counter; /* of the responder */
	struct sim_port_params a, b;
};

/*
 * @behaviour Y71: ends with different job keys, modes or exchanges, or of which one has no key, do
 * not connect; both report the reason
 */
static void ends_that_do_not_seal_alike_are_refused(struct sim_case *c)
{
	struct sim_port_params none = fast, other = fast, auth = fast, psk = fast;
	struct scene s;

	none.job_key = NULL;
	other.job_key = other_key;
	auth.seal_auth = true;
	psk.seal_psk = true;
	const struct refusal refusals[] = {
		{"seal.hello_plain", none, fast}, {"seal.hello_plain", fast, none},
		{"seal.hello_key", other, fast},  {"seal.hello_mode", auth, fast},
		{"seal.hello_mode", fast, auth},  {"seal.hello_mode", psk, fast},
	};

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		open_hosts(&s, c, &refusals[i].a, &refusals[i].b, "CONNECT_TIMEOUT=2s");
		s.e = lane_connect(s.a, s.b);
		sim_run(s.sim, 3 * SIM_S, NULL, NULL);
		assert_true(s.e->down && !s.e->ups);
		assert_int_equal(s.e->status, -ECONNREFUSED);
		assert_non_null(strstr(s.e->text, "WEFT_JOB_KEY, WEFT_SEAL and WEFT_SEAL_DH"));
		assert_true(lane_counter(s.b, refusals[i].counter) > 0);
		assert_int_equal(lane_num_passive(s.b), 0);
		assert_int_equal(s.rec->sealed, 0);
		forget(s.rec);
	}
}

/* Hellos that are lost, and a peer that forgets the half-open connection meanwhile. */
static void a_handshake_with_losses(struct sim_case *c)
{
	struct sim_port_params p = fast;
	struct scene s;

	p.up.loss = 0.4;
	for (unsigned int i = 0; i < 20; i++, c->seed++) {
		open_hosts(&s, c, &p, &p, "CONNECT_TIMEOUT=30s");
		s.e = lane_connect(s.a, s.b);
		for (unsigned int k = 0; k < 100 && !s.e->up; k++)
			sim_run(s.sim, 100 * SIM_MS, NULL, NULL);
		assert_true(s.e->up);
		close_scene(&s);
	}
	/* The initiator does not poll while its half-open entry expires at the peer. */
	open_hosts(&s, c, &fast, &fast, "CONNECT_TIMEOUT=30s");
	s.e = lane_connect(s.a, s.b);
	sim_run(s.sim, 15 * SIM_US, NULL, NULL);
	while (lane_counter(s.b, "conn.count") == 0)
		sim_run(s.sim, SIM_US, NULL, NULL);
	sim_run(s.sim, 12 * SIM_US, NULL, NULL);
	lane_host_pause(s.a, 7 * SIM_S);
	sim_run(s.sim, 9 * SIM_S, NULL, NULL);
	assert_true(s.e->up);
	traffic(&s, 0, 100);
	close_scene(&s);
}

static struct sim_case cases[] = {
	SIM_CASE(every_mode_seals_all_frames),
	SIM_CASE(bodies_are_readable_with_auth_only),
	SIM_CASE(faults_of_the_network_are_repaired),
	SIM_CASE(parts_and_an_mtu_that_falls),
	SIM_CASE(several_paths),
	SIM_CASE(keys_are_replaced_when_old),
	SIM_CASE(few_buffers),
	SIM_CASE(replays_are_dropped),
	SIM_CASE(flipped_bits_are_detected),
	SIM_CASE(spliced_frames_are_detected),
	SIM_CASE(plain_frames_are_dropped),
	SIM_CASE(forged_resets_are_hints),
	SIM_CASE(floods_of_forged_hints_slow_nothing),
	SIM_CASE(a_replayed_hello_replaces_nothing),
	SIM_CASE(ends_that_do_not_seal_alike_are_refused),
	SIM_CASE(a_handshake_with_losses),
};

/* With SIM_KEYLOG=FILE the keys are in that file, so that weft-dump reads a capture (-w). */
int main(int argc, char **argv)
{
	const char *path = getenv("SIM_KEYLOG");
	char why[300];
	int fd = path ? weft_keylog_open(path, why, sizeof(why)) : -1, ret;

	fast.keylog = path ? &fd : NULL;
	ret = sim_test_main(argc, argv, "lane_sealed", cases, sizeof(cases) / sizeof(cases[0]));
	return path && weft_keylog_flush() > 0 ? 1 : ret;
}
