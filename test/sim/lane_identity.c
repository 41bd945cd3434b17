/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unknown senders, impostors and neighbours with another host's address: connections that are
 * there go on, and new ones are made (doc/wire.md, "Identity and trust").
 */

#include <stdlib.h>
#include <string.h>

#include "arp_frame.h"
#include "lane_host.h"
#include "reseal.h"
#include "sim_test.h"

#define IP_A 0x0a000001u
#define IP_B 0x0a000002u
#define IP_X 0x0a000009u

struct scene {
	struct sim *sim;
	struct sim_port *pa, *pb, *px; /* px: the unknown sender's, on the same net */
	struct lane_host *a, *b;
	struct lane_end *e;
	struct sim_rng rng;
	/* the HELLO that a has sent: what the unknown sender's are made of */
	uint8_t hello[256];
	size_t hello_len;
	/* what the unknown sender has seen */
	unsigned int retries, acks, data, dropped;
	uint64_t cookie;
	bool follows;      /* it answers HELLO_RETRY as it should */
	bool mute;         /* and no ARP */
	bool no_reset;     /* what a says of connections that it does not know is lost */
	unsigned int macs; /* that it has, 0 = 1: by address */
};

static enum sim_verdict keep_hello(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				   void *arg)
{
	struct scene *s = arg;

	(void)port;
	(void)room;
	if (s->hello_len == 0 && *len <= sizeof(s->hello) && reseal_is_lane(data, *len) &&
	    reseal_header(data)->type == WEFT_FRAME_HELLO) {
		memcpy(s->hello, data, *len);
		s->hello_len = *len;
	}
	if (s->no_reset && reseal_is_lane(data, *len) &&
	    reseal_header(data)->type == WEFT_FRAME_RESET)
		return SIM_DROP;
	return SIM_PASS;
}

static uint8_t mac_of(const struct scene *s, uint32_t ip)
{
	return (uint8_t)(sim_port_mac(s->px)[3] + (s->macs > 1 ? 16 * (ip % s->macs) : 0));
}

/* A HELLO of the unknown sender's own, from this address. */
static size_t make_hello(struct scene *s, uint8_t *f, uint32_t ip, uint64_t number, uint64_t cookie)
{
	struct weft_frame_hello *body;

	memcpy(f, s->hello, s->hello_len);
	memcpy(f + 6, sim_port_mac(s->px), 6);
	f[9] = mac_of(s, ip);
	reseal_ip(f)->src_addr = rte_cpu_to_be_32(ip);
	body = (struct weft_frame_hello *)(reseal_header(f) + 1);
	body->conn = weft_put32((uint32_t)number);
	body->token = weft_put32((uint32_t)(number * 2654435761u));
	body->iface_id = weft_put64(number | 1);
	body->worker_id = weft_put64(number);
	body->cookie = weft_put64(cookie);
	reseal_header(f)->dst_conn = body->conn;
	reseal_header(f)->token = body->token;
	reseal_header(f)->src_conn = weft_put16((uint16_t)number);
	reseal(f, s->hello_len);
	return s->hello_len;
}

static void send_arp(struct scene *s, uint16_t op, uint32_t sip, const uint8_t *tha, uint32_t tip)
{
	uint8_t mac[RTE_ETHER_ADDR_LEN];

	memcpy(mac, sim_port_mac(s->px), sizeof(mac));
	mac[3] = mac_of(s, sip);
	arp_inject(s->px, op, mac, rte_cpu_to_be_32(sip), tha, rte_cpu_to_be_32(tip));
}

static void answer_as(struct scene *s, uint32_t ip, const struct rte_arp_hdr *request)
{
	send_arp(s, RTE_ARP_OP_REPLY, ip, request->arp_data.arp_sha.addr_bytes,
		 rte_be_to_cpu_32(request->arp_data.arp_sip));
}

/* It has every address that no other host has. */
static void answer_for_others(struct scene *s, const uint8_t *data, size_t len)
{
	const struct rte_arp_hdr *arp = arp_frame(data, len);
	uint32_t ip;

	if (!arp_is_request(arp) || s->mute)
		return;
	ip = rte_be_to_cpu_32(arp->arp_data.arp_tip);
	if (ip != IP_A && ip != IP_B)
		answer_as(s, ip, arp);
}

static void unknown_sees(struct sim_port *port, const uint8_t *data, size_t len, void *arg)
{
	struct scene *s = arg;
	const struct weft_frame_hdr *h;
	const struct rte_ipv4_hdr *ip;
	uint8_t f[256];

	answer_for_others(s, data, len);
	if (!reseal_is_lane(data, len) || memcmp(data, sim_port_mac(port), 3) != 0 ||
	    memcmp(data + 4, sim_port_mac(port) + 4, 2) != 0)
		return;
	h = (const struct weft_frame_hdr *)(data + RESEAL_LANE);
	s->acks += h->type == WEFT_FRAME_HELLO_ACK;
	s->data += h->type == WEFT_FRAME_DATA;
	if (h->type != WEFT_FRAME_HELLO_RETRY)
		return;
	ip = (const struct rte_ipv4_hdr *)(data + RTE_ETHER_HDR_LEN);
	s->retries++;
	s->cookie = weft_get64(((const struct weft_frame_retry *)(h + 1))->cookie);
	if (s->follows) {
		len = make_hello(s, f, rte_be_to_cpu_32(ip->dst_addr), weft_get32(h->dst_conn),
				 s->cookie);
		sim_inject(port, f, len);
	}
}

static void open_scene(struct scene *s, struct sim_case *c, const char *config)
{
	struct sim_port_params p = {
		.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}, .ip = IP_A, .prefix = 24};

	memset(s, 0, sizeof(*s));
	s->sim = case_sim(c);
	s->rng = sim_stream(s->sim, 1);
	s->pa = sim_port_create(s->sim, &p);
	p.ip = IP_B;
	s->pb = sim_port_create(s->sim, &p);
	s->px = sim_port_create(s->sim, &p);
	sim_station(s->px, true, unknown_sees, s);
	sim_filter(s->pa, keep_hello, s);
	s->a = lane_host_create(s->sim, s->pa, config);
	s->b = lane_host_create(s->sim, s->pb, config);
	s->e = lane_up(s->a, s->b);
	assert_non_null(s->e);
	assert_true(s->hello_len > 0);
	s->data = s->acks = 0;
}

static void traffic_is_unharmed(struct scene *s, uint32_t from)
{
	lane_talk(s->e, s->b, from);
	assert_true(lane_send_all(lane_passive(s->b), from + 300, from + 400, 5 * SIM_S));
	assert_true(lane_exactly_once(s->a, from + 300, from + 400));
}

/*
 * @p ns of HELLOs, @p gap apart; in the middle of it a connects to b once more: how long does it
 * take?
 */
static uint64_t connects_under(struct scene *s, uint64_t ns, uint64_t gap, bool forged)
{
	struct lane_end *e = NULL;
	uint64_t number = 1000, begun = 0, t;
	uint8_t f[256];
	size_t len;

	for (t = 0; t < ns; t += gap) {
		number++;
		len = make_hello(s, f, forged ? 0x0a010000u + (uint32_t)(number % 65000) : IP_X,
				 number, 0);
		sim_inject(s->px, f, len);
		sim_run(s->sim, gap, NULL, NULL);
		if (!e && t >= ns / 2) {
			e = lane_connect(s->a, s->b);
			begun = sim_now(s->sim);
		}
		if (e && e->up)
			return sim_now(s->sim) - begun;
	}
	return UINT64_MAX;
}

/*
 * @behaviour S7: HELLOs do not block other peers, neither from forged source addresses nor from one
 * or several hosts that never complete a handshake
 */
static void hellos_from_made_up_addresses_keep_no_peer_away(struct sim_case *c)
{
	static struct scene s;

	open_scene(&s, c, NULL);
	/* 500 a second for 6 s: more than there are places, and they stay for 5 s. */
	assert_true(connects_under(&s, 6 * SIM_S, 2 * SIM_MS, true) < 100 * SIM_MS);
	assert_true(lane_counter(s.b, "hello.retry") > 1000);
	traffic_is_unharmed(&s, 0);
}

/* @behaviour S7 */
static void one_host_that_begins_and_never_goes_on_keeps_no_peer_away(struct sim_case *c)
{
	static struct scene s;

	open_scene(&s, c, NULL);
	s.follows = true;
	assert_true(connects_under(&s, 6 * SIM_S, 2 * SIM_MS, false) < 100 * SIM_MS);
	assert_true(s.retries > 1000); /* it has shown its address each time */
	assert_true(lane_counter(s.b, "half_open_full") > 1000);
	traffic_is_unharmed(&s, 0);
}

/* Hosts that show their addresses and take all places: the one with least gets one at once. */
/*
 * @behaviour T3: the same holds for half-open and unclaimed slots (S7, S9, S10) and RoCE's buffers
 * @behaviour S7
 */
static void many_hosts_share_the_places(struct sim_case *c)
{
	static struct scene s;
	struct lane_end *e;
	uint64_t number = 1000;
	unsigned int i;
	uint8_t f[256];

	open_scene(&s, c, NULL);
	s.follows = true;
	for (i = 0; i < 600; i++) {
		number++;
		make_hello(&s, f, 0x0a010000u + i % 12, number, 0);
		sim_inject(s.px, f, s.hello_len);
		sim_run(s.sim, 200 * SIM_US, NULL, NULL);
	}
	e = lane_connect(s.a, s.b);
	sim_run(s.sim, 100 * SIM_MS, NULL, NULL);
	assert_true(e->up);
	assert_true(lane_counter(s.b, "half_open_evicted") > 0);
	traffic_is_unharmed(&s, 0);
}

/*
 * HELLOs that stay, a few times a second, and then more; a connects to b in the middle of them.
 * @return how long it takes
 */
static uint64_t connects_among(struct scene *s, uint32_t ip, uint32_t addresses, uint64_t slow)
{
	struct lane_end *e = NULL;
	uint64_t number = 1000, begun = 0, t, gap;
	uint8_t f[256];

	for (t = 0; t < 20 * SIM_S; t += gap) {
		gap = t < 5 * SIM_S ? slow : SIM_MS / 2; /* the places end one by one */
		number++;
		make_hello(s, f, ip + (uint32_t)(number % addresses), number, 0);
		sim_inject(s->px, f, s->hello_len);
		sim_run(s->sim, gap, NULL, NULL);
		if (!e && t >= 6 * SIM_S) {
			e = lane_connect(s->a, s->b);
			begun = sim_now(s->sim);
		}
		if (e && e->up)
			return sim_now(s->sim) - begun;
	}
	return UINT64_MAX;
}

/*
 * From off the path, by a's own address: no answer is seen, but the places without a cookie are
 * always taken.
 */
/* @behaviour S7 */
static void hellos_in_a_hosts_name_keep_it_not_away(struct sim_case *c)
{
	static struct scene s;

	open_scene(&s, c, NULL);
	s.no_reset = true;
	assert_true(connects_among(&s, IP_A, 1, 156 * SIM_MS) < 100 * SIM_MS);
	assert_true(lane_counter(s.b, "hello.retry") > 10);
	traffic_is_unharmed(&s, 0);
}

/* A neighbour shows every address that it makes up: all places are its own. */
/* @behaviour S7 */
static void one_mac_with_many_addresses_keeps_no_peer_away(struct sim_case *c)
{
	static struct scene s;

	open_scene(&s, c, NULL);
	s.follows = true;
	assert_true(connects_among(&s, 0x0a010000u, 65000, 15 * SIM_MS) < 100 * SIM_MS);
	assert_true(lane_counter(s.b, "half_open_evicted") > 0);
	traffic_is_unharmed(&s, 0);
}

/*
 * Several neighbours do, none of which has more than half of the places. Each address is seen once,
 * so no address has many.
 */
/* @behaviour S15 */
static void several_macs_with_many_addresses_keep_no_peer_away(struct sim_case *c)
{
	struct lane_end *e = NULL;
	uint64_t number = 1000, begun = 0, took = UINT64_MAX;
	static struct scene s;
	uint8_t f[256];

	open_scene(&s, c, NULL);
	s.follows = true;
	s.macs = 4;
	for (uint64_t t = 0; t < 8 * SIM_S && took == UINT64_MAX; t += SIM_MS / 2) {
		number++;
		make_hello(&s, f, 0x0a010000u + (uint32_t)(number % 65000), number, 0);
		sim_inject(s.px, f, s.hello_len);
		sim_run(s.sim, SIM_MS / 2, NULL, NULL);
		if (!e && t >= 6 * SIM_S) {
			e = lane_connect(s.a, s.b);
			begun = sim_now(s.sim);
		}
		if (e && e->up)
			took = sim_now(s.sim) - begun;
	}
	assert_true(took < 100 * SIM_MS);
	assert_true(lane_counter(s.b, "half_open_evicted") > 0);
	traffic_is_unharmed(&s, 0);
}

/* A cookie is good for the address, the numbers and the time that it was made for. */
/* @behaviour S7 */
static void a_cookie_is_of_its_sender(struct sim_case *c)
{
	static struct scene s;
	uint64_t number = 1000, cookie;
	uint8_t f[256];
	unsigned int i;

	open_scene(&s, c, NULL);
	for (i = 0; i < 40; i++) {
		number++;
		make_hello(&s, f, 0x0a010000u + i, number, 0);
		sim_inject(s.px, f, s.hello_len);
		sim_run(s.sim, 100 * SIM_US, NULL, NULL);
	}
	number++;
	make_hello(&s, f, IP_X, number, 0);
	sim_inject(s.px, f, s.hello_len);
	sim_run(s.sim, SIM_MS, NULL, NULL);
	assert_true(s.retries > 0);
	cookie = s.cookie;
	s.acks = 0;
	make_hello(&s, f, IP_X + 1, number, cookie); /* another address */
	sim_inject(s.px, f, s.hello_len);
	make_hello(&s, f, IP_X, number + 1, cookie); /* another connection */
	sim_inject(s.px, f, s.hello_len);
	make_hello(&s, f, IP_X, number, cookie ^ 2);
	sim_inject(s.px, f, s.hello_len);
	sim_run(s.sim, SIM_MS, NULL, NULL);
	assert_int_equal(s.acks, 0);
	make_hello(&s, f, IP_X, number, cookie);
	sim_inject(s.px, f, s.hello_len);
	sim_run(s.sim, SIM_MS, NULL, NULL);
	assert_int_equal(s.acks, 1);
	/* Later it is none any more. */
	sim_run(s.sim, 4500 * SIM_MS, NULL, NULL);
	for (i = 0; i < 40; i++) {
		make_hello(&s, f, 0x0a010000u + i, 5000 + i, 0);
		sim_inject(s.px, f, s.hello_len);
	}
	sim_run(s.sim, 15 * SIM_S, NULL, NULL);
	for (i = 0; i < 40; i++) {
		make_hello(&s, f, 0x0a010000u + i, 6000 + i, 0);
		sim_inject(s.px, f, s.hello_len);
	}
	sim_run(s.sim, SIM_MS, NULL, NULL);
	s.acks = 0;
	make_hello(&s, f, IP_X, number, cookie);
	sim_inject(s.px, f, s.hello_len);
	sim_run(s.sim, SIM_MS, NULL, NULL);
	assert_int_equal(s.acks, 0);
	traffic_is_unharmed(&s, 0);
}

/* ---- a neighbour with b's address ----------------------------------------------------------- */

/*
 * @behaviour S8: a neighbour that claims a peer's IP address neither gets its frames nor ends its
 * connections; a peer behind another MAC is found
 */
static void a_neighbour_that_claims_an_address_gets_no_frame(struct sim_case *c)
{
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	static struct scene s;
	unsigned int i;

	open_scene(&s, c, NULL);
	for (i = 0; i < 50; i++) {
		send_arp(&s, RTE_ARP_OP_REQUEST, IP_B, all, IP_B); /* gratuitous */
		send_arp(&s, RTE_ARP_OP_REPLY, IP_B, sim_port_mac(s.pa),
			 IP_A);                                    /* an unrequested reply */
		send_arp(&s, RTE_ARP_OP_REQUEST, IP_B, all, IP_A); /* "who are you?" */
		if (i % 10 == 0)
			traffic_is_unharmed(&s, i * 400);
		sim_run(s.sim, 20 * SIM_MS, NULL, NULL);
	}
	assert_int_equal(s.data, 0);
}

/* It has b's worker address, and connects to a from its own MAC by b's IP address. */
/* @behaviour S8 */
static void a_claim_to_be_a_neighbour_gets_no_answer(struct sim_case *c)
{
	struct weft_frame_hello *body;
	uint8_t f[256], addr[64];
	static struct scene s;
	unsigned int i;

	open_scene(&s, c, NULL);
	sim_run(s.sim, 2 * SIM_S, NULL, NULL); /* what a knows of b is old */
	for (i = 0; i < 20; i++) {
		make_hello(&s, f, IP_B, 4242, 0);
		memcpy(f, sim_port_mac(s.pa), 6);
		reseal_ip(f)->dst_addr = rte_cpu_to_be_32(IP_A);
		body = (struct weft_frame_hello *)(reseal_header(f) + 1);
		lane_iface(s.b)->ops->get_address(lane_iface(s.b), addr);
		memcpy(&body->iface_id, addr + 24, 8);
		lane_iface(s.a)->ops->get_address(lane_iface(s.a), addr);
		memcpy(&body->peer_iface, addr + 24, 8);
		reseal(f, s.hello_len);
		sim_inject(s.px, f, s.hello_len);
		sim_run(s.sim, 100 * SIM_MS, NULL, NULL);
	}
	assert_int_equal(s.acks, 0);
	assert_int_equal(lane_num_passive(s.a), 0);
	traffic_is_unharmed(&s, 0);
}

/* No host answers ARP for the sender: the answer goes where the HELLO came from, later. */
/* @behaviour S8 */
static void a_host_that_answers_no_arp_gets_its_answer_later(struct sim_case *c)
{
	static struct scene s;
	uint8_t f[256];
	unsigned int i;

	open_scene(&s, c, NULL);
	s.mute = true;
	for (i = 0; i < 12; i++) {
		assert_int_equal(s.acks, 0);
		make_hello(&s, f, IP_X, 4242, 0);
		sim_inject(s.px, f, s.hello_len);
		sim_run(s.sim, 100 * SIM_MS, NULL, NULL);
		if (i > 8 && s.acks > 0)
			break;
	}
	assert_int_equal(s.acks, 1);
	traffic_is_unharmed(&s, 0);
}

/* px says by ARP that it is b. */
static void answer_arp(struct scene *s, const uint8_t *data, size_t len)
{
	const struct rte_arp_hdr *arp = arp_frame(data, len);

	if (arp_is_request(arp) && arp->arp_data.arp_tip == rte_cpu_to_be_32(IP_B))
		answer_as(s, IP_B, arp);
}

static void impostor_sees(struct sim_port *port, const uint8_t *data, size_t len, void *arg)
{
	struct scene *s = arg;

	answer_arp(s, data, len);
	if (!reseal_is_lane(data, len) || memcmp(data, sim_port_mac(port), 6) != 0)
		return;
	s->data +=
		((const struct weft_frame_hdr *)(data + RESEAL_LANE))->type != WEFT_FRAME_CHALLENGE;
	s->retries +=
		((const struct weft_frame_hdr *)(data + RESEAL_LANE))->type == WEFT_FRAME_CHALLENGE;
}

/* b is not heard for a while, and its neighbour says that it has b's address. */
/* @behaviour S8, R45 */
static void an_impostor_in_a_silence_gets_no_frame(struct sim_case *c)
{
	static struct scene s;
	uint32_t i;

	open_scene(&s, c, NULL);
	traffic_is_unharmed(&s, 0);
	sim_station(s.px, true, impostor_sees, &s);
	sim_port_up(s.pb)->blackhole = true;
	sim_port_down(s.pb)->blackhole = true;
	for (i = 1000; i < 1010; i++)
		assert_true(lane_send(s.e, LANE_SHORT, i, 100) >= 0);
	sim_run(s.sim, 3 * SIM_S, NULL, NULL);
	assert_true(s.retries > 0); /* it was asked */
	assert_int_equal(s.data, 0);
	sim_port_up(s.pb)->blackhole = false;
	sim_port_down(s.pb)->blackhole = false;
	sim_run(s.sim, SIM_S, NULL, NULL);
	assert_true(lane_exactly_once(s.b, 1000, 1010));
	assert_int_equal(lane_counter(s.a, "mac.changed"), 0);
	traffic_is_unharmed(&s, 2000);
	assert_int_equal(s.data, 0);
}

struct relay {
	struct scene *s;
	struct sim_port *inner; /* on b's new net */
};

/* From a's net to b's: what px gets is b's. */
static void relay_in(struct sim_port *port, const uint8_t *data, size_t len, void *arg)
{
	struct relay *r = arg;
	uint8_t f[2048];

	answer_arp(r->s, data, len);
	if (len > sizeof(f) || memcmp(data, sim_port_mac(port), 6) != 0)
		return;
	memcpy(f, data, len);
	memcpy(f, sim_port_mac(r->s->pb), 6);
	sim_inject(r->inner, f, len);
}

static void relay_out(struct sim_port *port, const uint8_t *data, size_t len, void *arg)
{
	struct relay *r = arg;
	uint8_t f[2048];

	(void)port;
	if (len > sizeof(f) || memcmp(data, sim_port_mac(r->s->pa), 6) != 0)
		return;
	memcpy(f, data, len);
	memcpy(f + 6, sim_port_mac(r->s->px), 6);
	sim_inject(r->s->px, f, len);
}

/* b is behind another MAC: its machine has moved, or the gateway before it has changed. */
/* @behaviour X22, S8, R45 */
static void a_peer_behind_a_new_mac_is_found_and_goes_on(struct sim_case *c)
{
	struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}, .net = 1};
	static struct scene s;
	static struct relay r;

	open_scene(&s, c, NULL);
	traffic_is_unharmed(&s, 0);
	r = (struct relay){.s = &s, .inner = sim_port_create(s.sim, &p)};
	sim_station(s.px, true, relay_in, &r);
	sim_station(r.inner, true, relay_out, &r);
	sim_port_move(s.pb, 1);
	traffic_is_unharmed(&s, 1000);
	assert_int_equal(lane_counter(s.a, "mac.changed"), 1);
	traffic_is_unharmed(&s, 2000);
}

/* ---- main ----------------------------------------------------------------------------------- */

static struct sim_case cases[] = {
	SIM_CASE(hellos_from_made_up_addresses_keep_no_peer_away),
	SIM_CASE(one_host_that_begins_and_never_goes_on_keeps_no_peer_away),
	SIM_CASE(many_hosts_share_the_places),
	SIM_CASE(hellos_in_a_hosts_name_keep_it_not_away),
	SIM_CASE(one_mac_with_many_addresses_keeps_no_peer_away),
	SIM_CASE(several_macs_with_many_addresses_keep_no_peer_away),
	SIM_CASE(a_cookie_is_of_its_sender),
	SIM_CASE(a_neighbour_that_claims_an_address_gets_no_frame),
	SIM_CASE(a_claim_to_be_a_neighbour_gets_no_answer),
	SIM_CASE(a_host_that_answers_no_arp_gets_its_answer_later),
	SIM_CASE(an_impostor_in_a_silence_gets_no_frame),
	SIM_CASE(a_peer_behind_a_new_mac_is_found_and_goes_on),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_identity", cases, sizeof(cases) / sizeof(cases[0]));
}
