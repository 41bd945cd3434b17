/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The raw-DPDK engine over the simulated network: garbage, truncated, replayed and foreign frames,
 * unknown senders, floods. All are dropped, counted by reason, and do no harm to the traffic under
 * way.
 */

#include <stdlib.h>
#include <string.h>

#include "lane_host.h"
#include "reseal.h"
#include "sim_test.h"

#define RECORD_MAX 4000

struct record {
	unsigned int n;
	size_t len[RECORD_MAX];
	uint8_t *data[RECORD_MAX];
};

struct scene {
	struct sim *sim;
	struct sim_port *pa, *pb, *px; /* px: the unknown sender's, on the same net */
	struct lane_host *a, *b;
	struct lane_end *e;
	struct record rec; /* what a sent */
	struct sim_rng rng;
};

static enum sim_verdict record(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
			       void *arg)
{
	struct record *r = arg;

	(void)port;
	(void)room;
	if (r->n < RECORD_MAX) {
		r->data[r->n] = malloc(*len);
		memcpy(r->data[r->n], data, *len);
		r->len[r->n++] = *len;
	}
	return SIM_PASS;
}

static void forget(struct record *r)
{
	while (r->n)
		free(r->data[--r->n]);
}

static void open_scene(struct scene *s, struct sim_case *c, const char *config)
{
	const struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}};

	memset(s, 0, sizeof(*s));
	s->sim = case_sim(c);
	s->rng = sim_stream(s->sim, 1);
	s->pa = sim_port_create(s->sim, &p);
	s->pb = sim_port_create(s->sim, &p);
	s->px = sim_port_create(s->sim, &p);
	sim_station(s->px, true, sim_ignore, NULL);
	sim_filter(s->pa, record, &s->rec);
	s->a = lane_host_create(s->sim, s->pa, config);
	s->b = lane_host_create(s->sim, s->pb, config);
	s->e = lane_up(s->a, s->b);
	assert_non_null(s->e);
}

static void traffic_is_unharmed(struct scene *s, uint32_t from)
{
	lane_talk(s->e, s->b, from);
	assert_true(lane_send_all(lane_passive(s->b), from + 300, from + 400, 5 * SIM_S));
	assert_true(lane_exactly_once(s->a, from + 300, from + 400));
}

/* ---- noise ---------------------------------------------------------------------------------- */

/*
 * @behaviour F10: malformed frames and messages: dropped or refused, and counted; fuzzers `frame`,
 * `session`, `msg`, `rma`, `wireup`, `address`
 * @behaviour X11: garbage, truncated, replayed and foreign frames: dropped, counted by reason
 */
static void garbage_is_dropped_and_counted(struct sim_case *c)
{
	static struct scene s;
	uint8_t f[1514];
	unsigned int i;
	size_t len;
	uint64_t before;

	open_scene(&s, c, NULL);
	before = lane_counter(s.b, "");
	for (i = 0; i < 3000; i++) {
		len = sim_between(&s.rng, 6, sizeof(f));
		sim_fill(&s.rng, f, len);
		memcpy(f, sim_port_mac(s.pb), 6);
		/* Some look like IP, ARP, or our own. */
		if (len > 60 && i % 4 == 1)
			memcpy(f + 12, "\x08\x00\x45", 3);
		if (len > 60 && i % 4 == 2)
			memcpy(f + 12, "\x08\x06\x00\x01\x08\x00\x06\x04\x00", 9);
		if (len > 60 && i % 4 == 3)
			memcpy(f + 12, "\x88\xb5\x57\x66\x01", 5);
		sim_inject(s.px, f, len);
	}
	sim_run(s.sim, 50 * SIM_MS, NULL, NULL);
	/* Counters distinguish garbage from messages. */
	assert_true(lane_counter(s.b, "") - before >= 3000 - sim_port_stats(s.pb)->rx_full);
	assert_int_equal(lane_received(s.b), 0);
	traffic_is_unharmed(&s, 0);
	forget(&s.rec);
}

/* @behaviour F10, X11 */
static void truncated_frames_are_dropped(struct sim_case *c)
{
	static struct scene s;
	unsigned int i, n;
	size_t len;

	open_scene(&s, c, NULL);
	traffic_is_unharmed(&s, 0);
	n = s.rec.n;
	sim_filter(s.pa, NULL, NULL);
	/* Every frame that a sent, cut at many places. */
	for (i = 0; i < n; i++)
		for (len = 1; len < s.rec.len[i]; len += 1 + len / 8) {
			sim_inject(s.px, s.rec.data[i], len);
			sim_run(s.sim, 2 * SIM_US, NULL, NULL);
		}
	sim_run(s.sim, 50 * SIM_MS, NULL, NULL);
	assert_true(lane_counter(s.b, "bad_length") > 0);
	traffic_is_unharmed(&s, 1000);
	forget(&s.rec);
}

/* @behaviour U87, X11, R5 */
static void replayed_frames_are_dropped(struct sim_case *c)
{
	static struct scene s;
	unsigned int i, n, received;

	open_scene(&s, c, NULL);
	traffic_is_unharmed(&s, 0);
	sim_run(s.sim, 10 * SIM_MS, NULL, NULL);
	n = s.rec.n;
	received = lane_received(s.b);
	sim_filter(s.pa, NULL, NULL);
	/* Everything again, from the sender's own port and from elsewhere, in order and not. */
	for (i = 0; i < n; i++) {
		sim_inject(s.pa, s.rec.data[i], s.rec.len[i]);
		sim_inject(s.px, s.rec.data[n - 1 - i], s.rec.len[n - 1 - i]);
		sim_run(s.sim, 5 * SIM_US, NULL, NULL);
	}
	sim_run(s.sim, 100 * SIM_MS, NULL, NULL);
	assert_int_equal(lane_received(s.b), received);
	assert_int_equal(lane_wrong(s.b), 0);
	traffic_is_unharmed(&s, 1000);
	assert_true(lane_counter(s.b, "dup") + lane_counter(s.b, "duplicate") +
			    lane_counter(s.b, "duplicates") >
		    0);
	forget(&s.rec);
}

/*
 * @behaviour U87: stale acknowledgements, ids and frames of an earlier incarnation
 * @behaviour F7: frames of an unknown sender or an earlier incarnation
 * @behaviour R5: Frames of an earlier incarnation, frames of unknown senders and repeated frames
 * change nothing
 * @behaviour S6
 */
static void frames_of_an_earlier_life_are_dropped(struct sim_case *c)
{
	static struct scene s;
	struct lane_end *e;
	unsigned int i, n;

	open_scene(&s, c, NULL);
	traffic_is_unharmed(&s, 0);
	n = s.rec.n;
	sim_filter(s.pa, NULL, NULL);
	/* Until the place of the first connection is used again; there are 16. */
	for (e = s.e, i = 0; i < 16; i++) {
		lane_destroy(e);
		lane_destroy(lane_passive(s.b));
		sim_run(s.sim, 5 * SIM_S, NULL, NULL);
		e = lane_connect(s.a, s.b);
		sim_run(s.sim, 50 * SIM_MS, NULL, NULL);
		assert_true(e->up);
	}
	for (i = 0; i < n; i++) {
		sim_inject(s.px, s.rec.data[i], s.rec.len[i]);
		sim_run(s.sim, 5 * SIM_US, NULL, NULL);
	}
	sim_run(s.sim, 100 * SIM_MS, NULL, NULL);
	assert_true(lane_counter(s.b, "drop.stale_epoch") > n / 2);
	assert_int_equal(e->downs, 0);
	assert_true(lane_send_all(e, 1000, 1200, 5 * SIM_S));
	assert_true(lane_exactly_once(s.b, 0, 200));
	assert_true(lane_exactly_once(s.b, 1000, 1200));
	forget(&s.rec);
}

/* @behaviour F10, X11 */
static void foreign_frames_are_not_ours(struct sim_case *c)
{
	static struct scene s;
	uint8_t f[200];
	unsigned int i;

	open_scene(&s, c, NULL);
	for (i = 0; i < 500; i++) {
		sim_fill(&s.rng, f, sizeof(f));
		/* A DNS answer, an IPv6 frame, LLDP, another VLAN. */
		memcpy(f, sim_port_mac(s.pb), 6);
		memcpy(f + 12,
		       (const char *[]){"\x08\x00", "\x86\xdd", "\x88\xcc", "\x81\x00"}[i % 4], 2);
		if (i % 4 == 0) {
			memcpy(f + 14, "\x45\x00\x00\xba\x00\x00\x00\x00\x40\x11\x00\x00", 12);
			memcpy(f + 34, "\x00\x35\x00\x35\x00\xa6\x00\x00", 8);
		}
		sim_inject(s.px, f, sizeof(f));
	}
	sim_run(s.sim, 50 * SIM_MS, NULL, NULL);
	assert_true(lane_counter(s.b, "not_ours") > 300);
	traffic_is_unharmed(&s, 0);
	forget(&s.rec);
}

/* ---- unknown senders ---------------------------------------------------------------------- */

static const uint8_t *find_type(struct record *r, uint8_t type, size_t *len)
{
	unsigned int i;

	for (i = 0; i < r->n; i++) {
		if (reseal_is_lane(r->data[i], r->len[i]) &&
		    reseal_header(r->data[i])->type == type) {
			*len = r->len[i];
			return r->data[i];
		}
	}
	fail_msg("no frame of type %u was recorded", type);
	*len = 0;
	return NULL;
}

/*
 * @behaviour S6: frames without a connection's random bits, or of an ended connection, are dropped
 * and counted (`drop.unknown_sender`, `drop.stale_epoch`)
 * @behaviour U87, F7, R5
 */
static void an_unknown_sender_without_the_token_is_not_accepted(struct sim_case *c)
{
	static const uint8_t types[] = {WEFT_FRAME_DATA, WEFT_FRAME_ACK,     WEFT_FRAME_RESET,
					WEFT_FRAME_BYE,  WEFT_FRAME_BYE_ACK, WEFT_FRAME_READY};
	static struct scene s;
	const uint8_t *data;
	uint8_t f[2000];
	unsigned int i;
	size_t len;

	open_scene(&s, c, NULL);
	traffic_is_unharmed(&s, 0);
	data = find_type(&s.rec, WEFT_FRAME_DATA, &len);
	assert_non_null(data);
	/* Everything right but the token, as a host off the path might guess. */
	for (i = 0; i < 6000; i++) {
		memcpy(f, data, len);
		reseal_header(f)->type = types[i % 6];
		reseal_header(f)->token = weft_put32((uint32_t)sim_rand(&s.rng));
		if (i & 1)
			reseal_header(f)->seq = weft_put32((uint32_t)sim_rand(&s.rng));
		reseal_header(f)->ack = weft_put32((uint32_t)sim_rand(&s.rng));
		reseal(f, len);
		sim_inject(s.px, f, len);
		sim_run(s.sim, 2 * SIM_US, NULL, NULL);
	}
	sim_run(s.sim, 50 * SIM_MS, NULL, NULL);
	/* RESETs are judged by what they prove, and counted so. */
	assert_true(lane_counter(s.b, "drop.unknown_sender") >=
		    5000 - sim_port_stats(s.pb)->rx_full);
	assert_int_equal(lane_wrong(s.b), 0);
	assert_true(lane_exactly_once(s.b, 0, 200));
	traffic_is_unharmed(&s, 1000);
	forget(&s.rec);
}

/*
 * @behaviour Y4: half-open peers are bounded
 * @behaviour S7
 */
static void half_open_connections_are_bounded(struct sim_case *c)
{
	static struct scene s;
	const uint8_t *hello;
	struct weft_frame_hello *body;
	uint8_t f[2000];
	unsigned int i;
	uint32_t n;
	size_t len;
	struct lane_end *e;

	open_scene(&s, c, "CONNECT_TIMEOUT=20s");
	hello = find_type(&s.rec, WEFT_FRAME_HELLO, &len);
	assert_non_null(hello);
	for (i = 0; i < 20000; i++) {
		memcpy(f, hello, len);
		n = 0x10000 + i;
		memcpy(f + 28, &n, 2); /* another host of the subnet */
		body = (struct weft_frame_hello *)(reseal_header(f) + 1);
		body->conn = weft_put32((uint32_t)sim_rand(&s.rng));
		body->token = weft_put32((uint32_t)sim_rand(&s.rng));
		body->iface_id = weft_put64(sim_rand(&s.rng));
		body->worker_id = weft_put64(sim_rand(&s.rng));
		reseal_header(f)->src_conn = weft_put16((uint16_t)weft_get32(body->conn));
		reseal(f, len);
		sim_inject(s.px, f, len);
		if (i % 8 == 0)
			sim_run(s.sim, 20 * SIM_US, NULL, NULL);
	}
	sim_run(s.sim, 10 * SIM_MS, NULL, NULL);
	assert_true(lane_num_passive(s.b) <= 1);
	traffic_is_unharmed(&s, 0);
	/* A real peer gets in at once. */
	e = lane_connect(s.a, s.b);
	sim_run(s.sim, 200 * SIM_MS, NULL, NULL);
	assert_true(e->up);
	forget(&s.rec);
}

/* @behaviour Y4 */
static void hellos_are_idempotent(struct sim_case *c)
{
	static struct scene s;
	const uint8_t *hello;
	unsigned int i;
	size_t len;

	open_scene(&s, c, NULL);
	hello = find_type(&s.rec, WEFT_FRAME_HELLO, &len);
	for (i = 0; i < 100; i++) {
		sim_inject(s.pa, hello, len);
		sim_run(s.sim, 100 * SIM_US, NULL, NULL);
	}
	sim_run(s.sim, 100 * SIM_MS, NULL, NULL);
	assert_int_equal(lane_num_passive(s.b), 1);
	assert_int_equal(lane_passive(s.b)->ups, 1);
	traffic_is_unharmed(&s, 0);
	forget(&s.rec);
}

/* @behaviour F10, X6 */
static void another_version_is_refused_with_a_sentence(struct sim_case *c)
{
	static struct scene s;
	const uint8_t *hello;
	uint8_t f[2000];
	size_t len;
	uint64_t before;

	open_scene(&s, c, NULL);
	hello = find_type(&s.rec, WEFT_FRAME_HELLO, &len);
	memcpy(f, hello, len);
	memcpy(f + 6, sim_port_mac(s.px), 6);
	reseal_header(f)->version = 9;
	reseal(f, len);
	before = sim_port_stats(s.pb)->tx_frames;
	sim_inject(s.px, f, len);
	sim_run(s.sim, SIM_MS, NULL, NULL);
	assert_true(lane_counter(s.b, "bad_version") == 1);
	assert_true(sim_port_stats(s.pb)->tx_frames - before <= 1);
	traffic_is_unharmed(&s, 0);
	forget(&s.rec);
}

/* ---- mutations of real frames --------------------------------------------------------------- */

struct mutator {
	struct sim_rng rng;
	double p;
	bool reseal;
	unsigned int n;
};

static enum sim_verdict mutate(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
			       void *arg)
{
	struct mutator *m = arg;
	unsigned int n;
	size_t at;

	(void)port;
	(void)room;
	if (!sim_chance(&m->rng, m->p) || *len < 60)
		return SIM_PASS;
	m->n++;
	for (n = (unsigned int)sim_between(&m->rng, 1, 4); n; n--) {
		at = sim_between(&m->rng, 12, *len - 1);
		data[at] = sim_chance(&m->rng, 0.5)
				   ? (uint8_t)sim_rand(&m->rng)
				   : (uint8_t)(data[at] ^ (1 << sim_below(&m->rng, 8)));
	}
	if (m->reseal && reseal_is_lane(data, *len))
		reseal(data, *len);
	return SIM_PASS;
}

/* With the checksum as the mutation left it: nothing wrong may come through. */
/* @behaviour X11 */
static void mutated_frames_with_crc32c_change_nothing(struct sim_case *c)
{
	static struct scene s;
	struct mutator ma, mb;
	uint64_t first = c->seed;

	for (; c->seed < first + 10; c->seed++) {
		open_scene(&s, c, "CSUM=crc32c");
		ma = (struct mutator){sim_stream(s.sim, 50), 0.2, false, 0};
		mb = (struct mutator){sim_stream(s.sim, 51), 0.2, false, 0};
		sim_filter(s.pa, mutate, &ma);
		sim_filter(s.pb, mutate, &mb);
		traffic_is_unharmed(&s, 0);
		assert_true(ma.n > 5 && mb.n > 5);
		forget(&s.rec);
	}
	c->seed = first;
}

/*
 * With checksums made right again the engine is lied to by its peer, sequences and contents
 * included: anything may happen to this lane, but no crash, no read outside, one end at most, and
 * others are still served.
 */
/* @behaviour F10 */
static void a_lying_peer_breaks_only_its_own_lane(struct sim_case *c)
{
	static struct scene s;
	struct mutator ma, mb;
	uint64_t first = c->seed;
	unsigned int i, seeds = c->seeds ? c->seeds : 60;

	for (; c->seed < first + seeds; c->seed++) {
		open_scene(&s, c, "PEER_TIMEOUT=2s CONNECT_TIMEOUT=2s KEEPALIVE_INTERVAL=200ms");
		ma = (struct mutator){sim_stream(s.sim, 50), 0.3, true, 0};
		mb = (struct mutator){sim_stream(s.sim, 51), 0.3, true, 0};
		sim_filter(s.pa, mutate, &ma);
		sim_filter(s.pb, mutate, &mb);
		lane_send_all(s.e, 0, 300, 3 * SIM_S);
		lane_connect(s.a, s.b);
		lane_connect(s.b, s.a);
		sim_run(s.sim, 3 * SIM_S, NULL, NULL);
		assert_true(s.e->downs <= 1);
		sim_filter(s.pa, NULL, NULL);
		sim_filter(s.pb, NULL, NULL);
		/* The iface still serves others. */
		lane_destroy(s.e);
		s.e = lane_connect(s.a, s.b);
		sim_run(s.sim, 8 * SIM_S, NULL, NULL);
		if (!s.e->up)
			fail_msg("no new connection after the storm: %s", s.e->text);
		assert_true(lane_send_all(s.e, 1000, 1100, 3 * SIM_S));
		for (i = 1000; i < 1100; i++)
			assert_int_equal(lane_got(s.b, i), 1);
		forget(&s.rec);
	}
	c->seed = first;
}

static struct sim_case cases[] = {
	SIM_CASE(garbage_is_dropped_and_counted),
	SIM_CASE(truncated_frames_are_dropped),
	SIM_CASE(replayed_frames_are_dropped),
	SIM_CASE(frames_of_an_earlier_life_are_dropped),
	SIM_CASE(foreign_frames_are_not_ours),
	SIM_CASE(an_unknown_sender_without_the_token_is_not_accepted),
	SIM_CASE(half_open_connections_are_bounded),
	SIM_CASE(hellos_are_idempotent),
	SIM_CASE(another_version_is_refused_with_a_sentence),
	SIM_CASE(mutated_frames_with_crc32c_change_nothing),
	SIM_CASE(a_lying_peer_breaks_only_its_own_lane),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_hostile", cases, sizeof(cases) / sizeof(cases[0]));
}
