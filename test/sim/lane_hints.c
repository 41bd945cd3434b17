/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What says, and does not prove, that a peer is gone: a process that begins in its place, ICMP from
 * its host, from routers, from forgers. The peer is queried, and its answer counts.
 */

#include <errno.h>
#include <string.h>

#include "arp_frame.h"
#include "frame/parse.h"
#include "icmp_frame.h"
#include "lane_host.h"
#include "reseal.h"
#include "sim_test.h"

#define IP_A 0x0a000001u
#define IP_B 0x0a000002u
#define PORT_UNREACHABLE 3
#define SHORT_QUOTE WEFT_IP_UDP_LEN /* of some routers */
#define MANY 1024u

struct scene {
	struct sim *sim;
	struct sim_port *pa, *pb, *px; /* px: sends ICMP */
	struct lane_host *a, *b;
	struct lane_end *e;
	uint8_t sent[2048]; /* the newest frame of a */
	size_t sent_len;
	uint8_t (*each)[64]; /* the beginning of the newest frame of each connection; NULL = none */
	uint32_t router;     /* that sends ICMP; 0 = b's host */
	size_t quote;        /* bytes of each frame of a that ICMP brings back; 0 = no ICMP */
};

/* "This has not arrived": the first @p n bytes of it. */
static void icmp_inject(struct scene *s, uint8_t code, const uint8_t *frame, size_t n)
{
	icmp_frame_inject(s->px, sim_port_mac(s->pa), s->router, frame, n, code);
}

static enum sim_verdict seen(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
			     void *arg)
{
	struct scene *s = arg;

	(void)port;
	(void)room;
	if (!reseal_is_lane(data, *len))
		return SIM_PASS;
	memcpy(s->sent, data, *len);
	s->sent_len = *len;
	if (s->each)
		memcpy(s->each[weft_get16(reseal_header(data)->src_conn) % MANY], data, 64);
	if (s->quote > 0)
		icmp_inject(s, PORT_UNREACHABLE, data, RTE_MIN(s->quote, *len - RTE_ETHER_HDR_LEN));
	return SIM_PASS;
}

static struct scene *open_scene_of(struct sim_case *c, uint32_t port_flags)
{
	static struct scene s;
	struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000},
				    .ip = IP_A,
				    .prefix = 24,
				    .flags = port_flags};

	memset(&s, 0, sizeof(s));
	s.sim = case_sim(c);
	s.pa = sim_port_create(s.sim, &p);
	p.ip = IP_B;
	s.pb = sim_port_create(s.sim, &p);
	s.px = sim_port_create(s.sim, &p);
	sim_station(s.px, false, sim_ignore, NULL);
	s.a = lane_host_create(s.sim, s.pa, NULL);
	s.b = lane_host_create(s.sim, s.pb, NULL);
	s.e = lane_up(s.a, s.b);
	assert_true(lane_send_all(s.e, 0, 10, SIM_S));
	sim_set_poll(s.sim, 500, 150 * SIM_US);
	sim_run(s.sim, SIM_S, NULL, NULL);
	sim_filter(s.pa, seen, &s);
	return &s;
}

static struct scene *open_scene(struct sim_case *c)
{
	return open_scene_of(c, 0);
}

static void lives(struct scene *s, uint32_t from)
{
	assert_int_equal(s->e->downs + lane_passive(s->b)->downs, 0);
	assert_true(lane_send_all(s->e, from, from + 100, SIM_S));
	assert_true(lane_exactly_once(s->b, from, from + 100));
}

/* Nothing is sent: the process that begins in its place says that it does. */
/* @behaviour R42 */
static void the_restarted_peer_of_an_idle_connection_is_noticed(struct sim_case *c)
{
	struct scene *s = open_scene(c);
	uint64_t killed = sim_now(s->sim);

	lane_host_kill(s->b);
	s->b = lane_host_create(s->sim, s->pb, NULL);
	assert_true(sim_run(s->sim, 10 * SIM_S, lane_has_failed, s->e));
	assert_true(s->e->end_at - killed <= SIM_S);
	assert_int_equal(s->e->status, -ECONNRESET);
}

/* Of all connections with it, and the first word is lost. */
/* @behaviour R42 */
static void all_connections_with_it_are_noticed(struct sim_case *c)
{
	struct scene *s = open_scene(c);
	struct lane_end *e[300];
	uint64_t killed;

	for (unsigned int i = 0; i < RTE_DIM(e); i++)
		e[i] = lane_connect(s->a, s->b);
	sim_run(s->sim, SIM_S, NULL, NULL);
	killed = sim_now(s->sim);
	lane_host_kill(s->b);
	s->b = lane_host_create(s->sim, s->pb, NULL);
	sim_port_up(s->pb)->blackhole = true;
	sim_run(s->sim, 50 * SIM_MS, NULL, NULL);
	sim_port_up(s->pb)->blackhole = false;
	for (unsigned int i = 0; i < RTE_DIM(e); i++) {
		assert_int_equal(e[i]->ups, 1);
		assert_true(sim_run(s->sim, 10 * SIM_S, lane_has_failed, e[i]));
		assert_true(e[i]->end_at - killed <= SIM_S);
	}
}

/* Its host reports an unused port: it is queried at once, and suspect when it is silent. */
/*
 * @behaviour R48: ICMP, unrequested ARP and frames from another MAC are hints: the peer is probed,
 * a bounded number of times, and nothing moves or ends without its reply
 */
static void an_unreachable_port_makes_a_lane_suspect(struct sim_case *c)
{
	struct scene *s = open_scene(c);

	lane_host_kill(s->b);
	icmp_inject(s, PORT_UNREACHABLE, s->sent, SHORT_QUOTE);
	assert_int_equal(s->sent_len, 0);
	sim_run(s->sim, 100 * SIM_MS, NULL, NULL);
	assert_int_equal(lane_counter(s->a, "conn.suspect"), 0);
	s->quote =
		ICMP_QUOTE_MAX; /* from now on each frame is answered so: the next is a keepalive */
	sim_run(s->sim, 5 * SIM_S, NULL, NULL);
	assert_true(lane_counter(s->a, "icmp.received") > 0);
	assert_true(lane_counter(s->a, "conn.suspect") > 0);
	assert_int_equal(s->e->downs, 0); /* which proves nothing */
}

/* Its port is a socket: the report comes only when the process is gone. */
/*
 * @behaviour R85: a killed process with lanes over UDP sockets is noticed within a second, by its
 * host's report and its silence; a stopped process and a forged report end nothing
 */
static void a_killed_process_with_sockets_is_gone_within_a_second(struct sim_case *c)
{
	struct scene *s;
	uint64_t killed;

	for (unsigned int idle = 0; idle < 2; idle++) {
		s = open_scene_of(c, WEFT_FRAME_PORT_SOCKET);
		lane_host_kill(s->b);
		killed = sim_now(s->sim);
		s->quote = ICMP_QUOTE_MAX;
		if (!idle)
			assert_true(lane_send(s->e, LANE_SHORT, 10, 64) >= 0);
		assert_true(sim_run(s->sim, 10 * SIM_S, lane_has_failed, s->e));
		assert_in_range(s->e->end_at - killed, 300 * SIM_MS, SIM_S);
		assert_int_equal(s->e->status, -ECONNRESET);
	}
}

/* @behaviour R85 */
static void reports_about_a_living_process_end_nothing(struct sim_case *c)
{
	struct scene *s = open_scene_of(c, WEFT_FRAME_PORT_SOCKET);

	s->quote = ICMP_QUOTE_MAX;
	sim_run(s->sim, 60 * SIM_S, NULL, NULL);
	assert_true(lane_counter(s->a, "icmp.received") > 10);
	lives(s, 1000);
}

/* A process that is stopped, or a network that is cut: no report of the peer's own host. */
/* @behaviour R85 */
static void silence_without_the_peers_report_is_no_end(struct sim_case *c)
{
	struct scene *s = open_scene_of(c, WEFT_FRAME_PORT_SOCKET);

	sim_port_up(s->pb)->blackhole = true;
	s->router = 0x0a000009;
	s->quote = ICMP_QUOTE_MAX;
	sim_run(s->sim, 10 * SIM_S, NULL, NULL);
	s->router = 0;
	s->quote = SHORT_QUOTE;
	sim_run(s->sim, 10 * SIM_S, NULL, NULL);
	assert_true(lane_counter(s->a, "icmp.received") > 0);
	s->quote = 0;
	sim_port_up(s->pb)->blackhole = false;
	sim_run(s->sim, 5 * SIM_S, NULL, NULL);
	lives(s, 1000);
}

/* A kernel that shares the port with a living peer says so of each frame. */
/* @behaviour R48 */
static void a_kernel_beside_a_living_peer_harms_no_connection(struct sim_case *c)
{
	struct scene *s = open_scene(c);
	uint64_t queries;

	s->quote = SHORT_QUOTE;
	sim_run(s->sim, 60 * SIM_S, NULL, NULL);
	lives(s, 1000);
	assert_true(lane_counter(s->a, "icmp.received") > 10);
	queries = lane_counter(s->a, "hint.asked");
	assert_in_range(queries, 1, 20);
	assert_int_equal(lane_counter(s->a, "conn.suspect"), 0);
	sim_run(s->sim, 60 * SIM_S, NULL, NULL);
	assert_true(lane_counter(s->a, "hint.asked") - queries <= 10);
	lives(s, 2000);
}

static void keepalive_of_a(struct scene *s)
{
	sim_run(s->sim, 6 * SIM_S, NULL, NULL);
	assert_true(s->sent_len > 0);
}

/* A host that has seen no frame cannot quote one at length; ports can be guessed. */
/* @behaviour R48 */
static void forged_icmp_causes_few_queries(struct sim_case *c)
{
	struct scene *s = open_scene(c);
	struct weft_frame_hdr *h;
	uint64_t before, queries;

	keepalive_of_a(s);
	queries = lane_counter(s->a, "hint.asked"); /* b has begun, too */
	h = reseal_header(s->sent);
	h->token = weft_put32(weft_get32(h->token) + 1);
	for (unsigned int i = 0; i < 10000; i++) {
		icmp_inject(s, PORT_UNREACHABLE, s->sent, WEFT_IP_UDP_LEN + sizeof(*h));
		sim_run(s->sim, 10 * SIM_US, NULL, NULL);
	}
	assert_int_equal(lane_counter(s->a, "drop.icmp"), 10000);
	assert_int_equal(lane_counter(s->a, "hint.asked"), queries);
	before = lane_counter(s->a, "rx.frames");
	for (unsigned int i = 0; i < 10000; i++) {
		icmp_inject(s, PORT_UNREACHABLE, s->sent, SHORT_QUOTE);
		sim_run(s->sim, 100 * SIM_US, NULL, NULL);
	}
	assert_in_range(lane_counter(s->a, "rx.frames") - before, 10000, 10100);
	assert_in_range(lane_counter(s->a, "hint.asked") - queries, 1, 10);
	assert_int_equal(lane_counter(s->a, "conn.suspect"), 0);
	lives(s, 1000);
}

/* "Too long": the path's MTU is looked for, and found to be what it was. */
/* @behaviour R48 */
static void forged_mtus_shrink_nothing(struct sim_case *c)
{
	struct scene *s = open_scene(c);

	keepalive_of_a(s);
	for (unsigned int i = 0; i < 200; i++) {
		assert_true(lane_send(s->e, LANE_BCOPY, 500 + i, 1400) >= 0);
		icmp_inject(s, WEFT_ICMP_TOO_LONG, s->sent, SHORT_QUOTE);
		sim_run(s->sim, 10 * SIM_MS, NULL, NULL);
	}
	assert_true(lane_exactly_once(s->b, 500, 700));
	assert_int_equal(lane_counter(s->a, "mtu.lower"), 0);
	lives(s, 1000);
}

/* Connections behind one hop, and the beginning of a frame of each. @return how many */
static unsigned int many(struct scene *s, unsigned int n)
{
	static uint8_t each[MANY][64];
	unsigned int known = 0;

	memset(each, 0, sizeof(each));
	s->each = each;
	for (unsigned int i = 1; i < n; i++)
		lane_connect(s->a, s->b);
	sim_run(s->sim, 30 * SIM_S, NULL, NULL);
	s->each = NULL;
	for (unsigned int i = 0; i < MANY; i++) {
		if (each[i][12] != 0)
			memcpy(each[known++], each[i], sizeof(each[i]));
	}
	assert_int_equal(known, n);
	s->each = each;
	return known;
}

static void flood(struct scene *s, unsigned int first, unsigned int n, unsigned int times)
{
	uint8_t(*each)[64] = s->each;

	s->each = NULL;
	for (unsigned int i = 0; i < times; i++) {
		icmp_inject(s, PORT_UNREACHABLE, each[first + i % n], SHORT_QUOTE);
		sim_run(s->sim, 50 * SIM_US, NULL, NULL);
	}
	s->each = each;
}

/* Of many connections of a hop any one is found by a short quote, sooner or later. */
/* @behaviour R48 */
static void a_short_quote_reaches_any_of_many_connections(struct sim_case *c)
{
	struct scene *s = open_scene(c);
	unsigned int n = many(s, 300);
	uint64_t before;

	for (unsigned int i = 0; i < n; i += 50) {
		before = lane_counter(s->a, "icmp.received");
		flood(s, i, 1, 10);
		assert_true(lane_counter(s->a, "icmp.received") > before);
		sim_run(s->sim, SIM_S, NULL, NULL);
	}
	lives(s, 1000);
}

/* A host that floods with quotes of all ports uses up its own share: others are received. */
/* @behaviour R48 */
static void a_flood_of_short_quotes_has_a_share(struct sim_case *c)
{
	struct scene *s = open_scene(c);
	unsigned int n = many(s, 1000);
	uint64_t queries = lane_counter(s->a, "hint.asked"), limited;

	s->router = 0x0a000063;
	flood(s, 0, n, 10000); /* half a second */
	assert_in_range(lane_counter(s->a, "hint.asked") - queries, 1, 400);
	limited = lane_counter(s->a, "hint.limited");
	flood(s, 0, n, 100);
	assert_true(lane_counter(s->a, "hint.limited") - limited >= 90);
	limited = lane_counter(s->a, "hint.limited");
	s->router = 0x0a000064;
	flood(s, 0, n, 20);
	/* But for connections that were asked just now. */
	assert_true(lane_counter(s->a, "hint.limited") - limited <= 5);
	/* In the names of many others: what all may ask is bounded, too. */
	queries = lane_counter(s->a, "hint.asked");
	for (unsigned int i = 0; i < 200; i++) {
		s->router = 0x0a000100 + i;
		flood(s, i * 5, n - 995, 50);
	}
	assert_in_range(lane_counter(s->a, "hint.asked") - queries, 1, 2000);
	assert_int_equal(lane_counter(s->a, "conn.suspect"), 0);
	lives(s, 1000);
}

static struct sim_case cases[] = {
	SIM_CASE(a_short_quote_reaches_any_of_many_connections),
	SIM_CASE(a_flood_of_short_quotes_has_a_share),
	SIM_CASE(the_restarted_peer_of_an_idle_connection_is_noticed),
	SIM_CASE(all_connections_with_it_are_noticed),
	SIM_CASE(an_unreachable_port_makes_a_lane_suspect),
	SIM_CASE(a_kernel_beside_a_living_peer_harms_no_connection),
	SIM_CASE(a_killed_process_with_sockets_is_gone_within_a_second),
	SIM_CASE(reports_about_a_living_process_end_nothing),
	SIM_CASE(silence_without_the_peers_report_is_no_end),
	SIM_CASE(forged_icmp_causes_few_queries),
	SIM_CASE(forged_mtus_shrink_nothing),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_hints", cases, sizeof(cases) / sizeof(cases[0]));
}
