/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A peer is behind another MAC than before, and unknown senders at both ends do what they can
 * against its being found: they say that they have its address, before it does, and repeat the
 * questions that they get.
 */

#include <string.h>

#include "arp_frame.h"
#include "lane_host.h"
#include "reseal.h"
#include "sim_test.h"

#define IP_A 0x0a000001u
#define IP_B 0x0a000002u
#define STRANGERS 3

struct scene {
	struct sim *sim;
	struct sim_port *pa, *pb;
	struct sim_port *px, *inner; /* the way to b once it has moved: on a's net, on b's */
	struct sim_port *py[STRANGERS], *pz; /* unknown senders: on a's net, on b's */
	unsigned int liars;                  /* those of them that answer ARP as b */
	struct lane_host *a, *b;
	struct lane_end *e;
	uint8_t question[256]; /* the last one that an unknown sender got */
	size_t question_len;
	uint64_t flood;                 /* ns between two copies of it; 0 = none */
	unsigned int questions, others; /* frames that unknown senders got */
};

/* It says that it is b. */
static void answer_arp(struct sim_port *port, const uint8_t *data, size_t len)
{
	const struct rte_arp_hdr *arp = arp_frame(data, len);

	if (arp_is_request(arp) && arp->arp_data.arp_tip == rte_cpu_to_be_32(IP_B))
		arp_answer(port, sim_port_mac(port), arp);
}

static void pass_on(struct sim_port *to, const uint8_t *data, size_t len, const uint8_t *dst,
		    const uint8_t *src)
{
	uint8_t f[2048];

	if (len > sizeof(f))
		return;
	memcpy(f, data, len);
	if (dst)
		memcpy(f, dst, 6);
	if (src)
		memcpy(f + 6, src, 6);
	sim_inject(to, f, len);
}

/* The path between the nets: what px gets is b's. */
static void way_in(struct sim_port *port, const uint8_t *data, size_t len, void *arg)
{
	struct scene *s = arg;

	answer_arp(port, data, len);
	if (memcmp(data, sim_port_mac(port), 6) == 0)
		pass_on(s->inner, data, len, sim_port_mac(s->pb), NULL);
}

static void way_out(struct sim_port *port, const uint8_t *data, size_t len, void *arg)
{
	struct scene *s = arg;

	(void)port;
	if (memcmp(data, sim_port_mac(s->pa), 6) == 0)
		pass_on(s->px, data, len, NULL, sim_port_mac(s->px));
}

static void unknown_sees(struct sim_port *port, const uint8_t *data, size_t len, void *arg)
{
	struct scene *s = arg;

	answer_arp(port, data, len);
	if (!reseal_is_lane(data, len) || memcmp(data, sim_port_mac(port), 6) != 0)
		return;
	if (((const struct weft_frame_hdr *)(data + RESEAL_LANE))->type != WEFT_FRAME_CHALLENGE) {
		s->others++;
		return;
	}
	s->questions++;
	if (len <= sizeof(s->question)) {
		memcpy(s->question, data, len);
		s->question_len = len;
	}
}

/*
 * What the unknown senders have got goes to b, again and again, and so does what they make of it.
 */
static void repeat(void *arg)
{
	struct scene *s = arg;
	struct weft_frame_challenge *body;

	if (s->question_len > 0) {
		pass_on(s->pz, s->question, s->question_len, sim_port_mac(s->pb), NULL);
		body = (struct weft_frame_challenge *)(reseal_header(s->question) + 1);
		body->number = weft_put64(weft_get64(body->number) + (1ull << 32));
		reseal(s->question, s->question_len);
		pass_on(s->pz, s->question, s->question_len, sim_port_mac(s->pb), NULL);
		body->number = weft_put64(weft_get64(body->number) - (1ull << 32));
		reseal(s->question, s->question_len);
	}
	sim_at(s->sim, sim_now(s->sim) + s->flood, repeat, s);
}

static void open_scene(struct scene *s, struct sim_case *c, unsigned int liars)
{
	struct sim_port_params near = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 500}};
	struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}, .prefix = 24};
	unsigned int i;

	memset(s, 0, sizeof(*s));
	s->sim = case_sim(c);
	s->liars = liars;
	p.ip = IP_A;
	s->pa = sim_port_create(s->sim, &p);
	p.ip = IP_B;
	s->pb = sim_port_create(s->sim, &p);
	s->px = sim_port_create(s->sim, &p);
	for (i = 0; i < STRANGERS; i++)
		s->py[i] = sim_port_create(s->sim, &near);
	p.net = near.net = 1;
	s->inner = sim_port_create(s->sim, &p);
	s->pz = sim_port_create(s->sim, &near);
	sim_station(s->pz, false, sim_ignore, NULL);
	s->a = lane_host_create(s->sim, s->pa, NULL);
	s->b = lane_host_create(s->sim, s->pb, NULL);
	s->e = lane_up(s->a, s->b);
	sim_station(s->px, true, way_in, s);
	sim_station(s->inner, true, way_out, s);
}

/* b is not heard for a while, and unknown senders are asked for it. */
static void be_silent(struct scene *s)
{
	sim_port_up(s->pb)->blackhole = sim_port_down(s->pb)->blackhole = true;
	assert_true(lane_send(s->e, LANE_SHORT, 500, 100) >= 0);
	sim_run(s->sim, SIM_S, NULL, NULL);
	sim_port_up(s->pb)->blackhole = sim_port_down(s->pb)->blackhole = false;
	sim_run(s->sim, SIM_S, NULL, NULL);
	assert_true(s->question_len > 0);
}

static void moves(struct scene *s)
{
	uint64_t begun;

	lane_talk(s->e, s->b, 0);
	for (unsigned int i = 0; i < s->liars; i++)
		sim_station(s->py[i], true, unknown_sees, s);
	be_silent(s);
	if (s->flood > 0)
		sim_at(s->sim, sim_now(s->sim) + s->flood, repeat, s);
	sim_port_move(s->pb, 1);
	begun = sim_now(s->sim);
	lane_talk(s->e, s->b, 1000);
	assert_true(sim_now(s->sim) - begun < SIM_S);
	assert_int_equal(lane_counter(s->a, "mac.changed"), 1);
	assert_true(s->questions > 0);
	assert_int_equal(s->others, 0);
	sim_run(s->sim, 10 * SIM_MS, NULL, NULL);
	s->flood = SIM_S;
	lane_talk(s->e, s->b, 2000);
}

/* An unknown sender's answer to ARP comes first each time: the peer's is heard, too. */
/* @behaviour S8, R45 */
static void the_first_reply_keeps_no_peer_out(struct sim_case *c)
{
	static struct scene s;

	open_scene(&s, c, 1);
	moves(&s);
}

/* @behaviour S8 */
static void several_that_answer_first_keep_no_peer_out(struct sim_case *c)
{
	static struct scene s;

	open_scene(&s, c, STRANGERS);
	moves(&s);
}

/* Half a million copies a second of a question, and as many with a number of their own. */
/* @behaviour S8 */
static void repeated_questions_keep_no_answer_away(struct sim_case *c)
{
	static struct scene s;

	open_scene(&s, c, 1);
	s.flood = 2 * SIM_US;
	moves(&s);
	/* Each was answered once. */
	assert_true(lane_counter(s.b, "drop.unknown_sender") > 1000);
	assert_true(lane_counter(s.a, "drop.state") < 100);
}

static void announce(struct sim_port *port, uint16_t op)
{
	static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	arp_inject(port, op, sim_port_mac(port), rte_cpu_to_be_32(IP_B), everybody,
		   rte_cpu_to_be_32(IP_B));
}

/* No silence is needed first: the new MAC gets a CHALLENGE as soon as it is announced. */
/* @behaviour R48 */
static void an_announcement_starts_a_validation(struct sim_case *c)
{
	static struct scene s;

	open_scene(&s, c, 0);
	lane_talk(s.e, s.b, 0);
	sim_port_move(s.pb, 1);
	announce(s.px, RTE_ARP_OP_REQUEST);
	sim_run(s.sim, 10 * SIM_MS, NULL, NULL);
	assert_int_equal(lane_counter(s.a, "mac.changed"), 1);
	lane_talk(s.e, s.b, 1000);
	assert_int_equal(lane_counter(s.a, "tx.retransmit.rto"), 0);
}

/* So does an unrequested reply. */
/* @behaviour R48 */
static void an_answer_without_a_question_starts_a_validation(struct sim_case *c)
{
	static struct scene s;

	open_scene(&s, c, 0);
	lane_talk(s.e, s.b, 0);
	sim_port_move(s.pb, 1);
	announce(s.px, RTE_ARP_OP_REPLY);
	sim_run(s.sim, 10 * SIM_MS, NULL, NULL);
	assert_int_equal(lane_counter(s.a, "mac.changed"), 1);
	lane_talk(s.e, s.b, 1000);
}

/* a has nothing to say, and the frames of b come from another MAC. */
/* @behaviour R48 */
static void a_new_source_starts_a_validation(struct sim_case *c)
{
	static struct scene s;

	open_scene(&s, c, 0);
	lane_talk(s.e, s.b, 0);
	sim_port_move(s.pb, 1);
	assert_true(lane_send(lane_passive(s.b), LANE_SHORT, 500, 100) >= 0);
	sim_run(s.sim, 100 * SIM_MS, NULL, NULL);
	assert_int_equal(lane_got(s.a, 500), 1);
	assert_int_equal(lane_counter(s.a, "mac.changed"), 1);
	lane_talk(s.e, s.b, 1000);
}

static void forge(void *arg)
{
	struct scene *s = arg;

	if (s->flood == 0)
		return;
	for (unsigned int i = 0; i < STRANGERS; i++)
		announce(s->py[i], i % 2 ? RTE_ARP_OP_REPLY : RTE_ARP_OP_REQUEST);
	sim_at(s->sim, sim_now(s->sim) + s->flood, forge, s);
}

/* Some 100,000 a second: a few challenges, only to the sender, and nothing moves. */
/* @behaviour R48 */
static void forged_announcements_move_nothing(struct sim_case *c)
{
	static struct scene s;

	open_scene(&s, c, STRANGERS);
	for (unsigned int i = 0; i < STRANGERS; i++)
		sim_station(s.py[i], true, unknown_sees, &s);
	s.flood = 30 * SIM_US;
	sim_at(s.sim, sim_now(s.sim), forge, &s);
	lane_talk(s.e, s.b, 0);
	sim_run(s.sim, SIM_S, NULL, NULL);
	lane_talk(s.e, s.b, 1000);
	s.flood = 0;
	assert_int_equal(lane_counter(s.a, "mac.changed"), 0);
	assert_in_range(lane_counter(s.a, "mac.requests"), 1, 10);
	assert_in_range(lane_counter(s.a, "hint.asked"), 1, 10);
	assert_true(lane_counter(s.a, "hint.limited") > 10000);
	assert_true(s.questions > 0);
	assert_int_equal(s.others, 0);
}

static struct sim_case cases[] = {
	SIM_CASE(an_announcement_starts_a_validation),
	SIM_CASE(an_answer_without_a_question_starts_a_validation),
	SIM_CASE(a_new_source_starts_a_validation),
	SIM_CASE(forged_announcements_move_nothing),
	SIM_CASE(the_first_reply_keeps_no_peer_out),
	SIM_CASE(several_that_answer_first_keep_no_peer_out),
	SIM_CASE(repeated_questions_keep_no_answer_away),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_move", cases, sizeof(cases) / sizeof(cases[0]));
}
