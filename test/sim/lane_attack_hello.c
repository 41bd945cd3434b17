/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A hostile host on the net of two hosts that connect a sealed lane: it forges, repeats and changes
 * frames of the handshake.
 */

#include <string.h>

#include "arp_frame.h"
#include "seal/exchange.h"
#include "sealed_scene.h"

/* The peer begins to poll that late: the initiator has made two offers by then. */
#define LATE (3 * SIM_S)

/* What the attacker has read, and what it does. */
static struct attacker {
	struct sealed_scene *s;
	uint8_t frame[2000]; /* that it sends */
	size_t frame_len;
	unsigned int hellos, acks, sent;
	size_t ack_bytes;
	bool over;
} attacker;

static void send_frame(void *arg)
{
	struct attacker *k = arg;

	sim_inject(k->s->px, k->frame, k->frame_len);
	k->sent++;
}

/* A plain frame of a type to the host that has sent @p like, or is to receive it. */
static struct weft_frame_hdr *forge(struct attacker *k, const uint8_t *like, uint8_t type,
				    const void *body, uint16_t len)
{
	struct weft_frame_hdr *h = (struct weft_frame_hdr *)(k->frame + RESEAL_LANE);
	uint16_t lane = (uint16_t)(sizeof(*h) + len);

	memcpy(k->frame, like, RESEAL_LANE + sizeof(*h));
	if (len > 0)
		memcpy(h + 1, body, len);
	h->type = type;
	h->flags = weft_put16(WEFT_FRAME_F_CRC32C);
	h->length = weft_put16(lane);
	k->frame_len = RESEAL_LANE + lane + 4u;
	reseal_udp(k->frame)->dgram_len =
		rte_cpu_to_be_16((uint16_t)(sizeof(struct rte_udp_hdr) + lane + 4));
	reseal_ip(k->frame)->total_length =
		rte_cpu_to_be_16((uint16_t)(k->frame_len - RTE_ETHER_HDR_LEN));
	return h;
}

/* The peer does not poll when the first HELLO arrives. @return true: it is this frame */
static bool first_hello(struct attacker *k, const struct sim_port *port, const uint8_t *data)
{
	const struct weft_frame_hdr *h = (const void *)(data + RESEAL_LANE);

	if (port != k->s->pa || h->type != WEFT_FRAME_HELLO || k->hellos++ > 0)
		return false;
	lane_host_pause(k->s->b, LATE);
	return true;
}

static void sealed_hosts(struct sealed_scene *s, struct sim_case *c,
			 enum sim_verdict (*hook)(struct sim_port *, uint8_t *, size_t, void *))
{
	sealed_open_hosts(s, c, &sealed_fast, &sealed_fast, NULL);
	attacker = (struct attacker){.s = s};
	s->rec->hook = hook;
	s->rec->hook_arg = &attacker;
}

/* ---- BYE ------------------------------------------------------------------------------------- */

/* The addresses and ports of an answer to the frame. */
static void turn(uint8_t *f)
{
	struct rte_ipv4_hdr *ip = reseal_ip(f);
	struct rte_udp_hdr *udp = reseal_udp(f);
	rte_be32_t addr = ip->src_addr;
	rte_be16_t port = udp->src_port;
	uint8_t mac[6];

	memcpy(mac, f, 6);
	memcpy(f, f + 6, 6);
	memcpy(f + 6, mac, 6);
	ip->src_addr = ip->dst_addr;
	ip->dst_addr = addr;
	udp->src_port = udp->dst_port;
	udp->dst_port = port;
}

static enum sim_verdict answer_by_bye(struct sim_port *port, uint8_t *data, size_t len, void *arg)
{
	struct attacker *k = arg;
	struct weft_frame_hdr *h = sealed_header(k->s->rec, data, len);
	const struct weft_frame_hello *hello = (const void *)(h + 1);

	if (!h || port != k->s->pa || h->type != WEFT_FRAME_HELLO)
		return SIM_PASS;
	h = forge(k, data, WEFT_FRAME_BYE, NULL, 0);
	h->dst_conn = hello->conn;
	h->token = hello->token;
	turn(k->frame);
	reseal(k->frame, k->frame_len);
	sim_at(k->s->sim, sim_now(k->s->sim) + SIM_US, send_frame, k);
	return SIM_PASS;
}

/* @behaviour Y82: a forged BYE ends no handshake of an interface with a job key, and is counted */
static void a_forged_bye_ends_no_handshake(struct sim_case *c)
{
	struct sealed_scene s;

	sealed_hosts(&s, c, answer_by_bye);
	s.e = lane_connect(s.a, s.b);
	sim_run(s.sim, 5 * SIM_S, lane_is_up, s.e);
	assert_true(attacker.sent > 0);
	if (!s.e->up)
		fail_msg("the connection failed: %s", s.e->text);
	assert_true(lane_counter(s.a, "drop.unsealed") >= attacker.sent - 1);
	sealed_traffic(&s, 0, 100);
	sealed_close(&s);
}

/* ---- RESET ----------------------------------------------------------------------------------- */

/* After each frame of the responder a RESET that repeats the numbers of its HELLO_ACK. */
static enum sim_verdict answer_by_reset(struct sim_port *port, uint8_t *data, size_t len, void *arg)
{
	struct attacker *k = arg;
	struct weft_frame_hdr *h = sealed_header(k->s->rec, data, len);
	const struct weft_frame_hello *ack = (const void *)(h + 1);
	struct weft_frame_reset body = {.reason = weft_put16(WEFT_RESET_UNKNOWN)};

	if (!h || first_hello(k, port, data) || port != k->s->pb || k->over)
		return SIM_PASS;
	if (h->type == WEFT_FRAME_HELLO_ACK) {
		k->acks++;
		body.version_min = body.version_max = h->version;
		body.echo_conn = ack->conn;
		body.echo_token = ack->token;
		h = forge(k, data, WEFT_FRAME_RESET, &body, sizeof(body));
		h->dst_conn = weft_put32(weft_get32(h->dst_conn) & 0xffff);
		h->token = weft_put32(0);
		reseal(k->frame, k->frame_len);
	}
	if (k->frame_len > 0)
		sim_at(k->s->sim, sim_now(k->s->sim) + SIM_US, send_frame, k);
	return SIM_PASS;
}

/*
 * @behaviour Y83: forged RESETs, also those that a host sends after each frame of a handshake,
 * delay no connection whose peer answers
 */
static void forged_resets_delay_no_handshake(struct sim_case *c)
{
	struct sealed_scene s;

	sealed_hosts(&s, c, answer_by_reset);
	s.e = lane_connect(s.a, s.b);
	sim_run(s.sim, LATE + SIM_S, lane_is_up, s.e);
	if (!s.e->up)
		fail_msg("%u RESETs after %u HELLO_ACKs, and no connection", attacker.sent,
			 attacker.acks);
	attacker.over = true;
	assert_true(attacker.sent > 0);
	assert_true(lane_counter(s.a, "seal.reset_hints") > 0);
	sealed_traffic(&s, 0, 100);
	sealed_close(&s);
}

/* ---- an earlier offer ------------------------------------------------------------------------ */

static enum sim_verdict keep_first_hello(struct sim_port *port, uint8_t *data, size_t len,
					 void *arg)
{
	struct attacker *k = arg;
	struct weft_frame_hdr *h = sealed_header(k->s->rec, data, len);

	if (h && first_hello(k, port, data)) {
		memcpy(k->frame, data, len);
		k->frame_len = len;
	}
	return SIM_PASS;
}

static void flood_step(void *arg)
{
	struct attacker *k = arg;

	if (k->over)
		return;
	send_frame(k);
	sim_at(k->s->sim, sim_now(k->s->sim) + 10 * SIM_US, flood_step, k);
}

/*
 * @behaviour Y84: a sealed connection is made also while a host repeats its first HELLO, in whose
 * place the initiator has made another offer
 */
static void an_earlier_offer_replaces_no_later_one(struct sim_case *c)
{
	struct sealed_scene s;

	sealed_hosts(&s, c, keep_first_hello);
	s.e = lane_connect(s.a, s.b);
	sim_run(s.sim, LATE - SIM_MS, NULL, NULL);
	flood_step(&attacker);
	sim_run(s.sim, SIM_S, lane_is_up, s.e);
	if (!s.e->up)
		fail_msg("%u HELLOs, and no connection: %s", attacker.sent, s.e->text);
	attacker.over = true;
	sealed_traffic(&s, 0, 100);
	sealed_close(&s);
}

/* ---- headers that no tag covers -------------------------------------------------------------- */

enum header { PORT, ADDRESS, MAC, HEADERS };

#define CHANGED 3u /* frames of a type from each end */

static struct changer {
	struct sealed_scene *s;
	enum header header;
	uint8_t type;
	unsigned int of_a, of_b;
} changer;

/* The first frames of a type that an end sends have another source. */
static enum sim_verdict change_source(struct sim_port *port, uint8_t *data, size_t len, void *arg)
{
	struct changer *k = arg;
	struct weft_frame_hdr *h = sealed_header(k->s->rec, data, len);
	unsigned int *n = port == k->s->pa ? &k->of_a : &k->of_b;

	if (!h || h->type != k->type || *n == CHANGED)
		return SIM_PASS;
	++*n;
	if (k->header == PORT)
		reseal_udp(data)->src_port ^= RTE_BE16(2);
	else if (k->header == ADDRESS)
		reseal_ip(data)->src_addr ^= RTE_BE32(2);
	else
		data[11] ^= 2;
	reseal(data, len);
	return SIM_PASS;
}

/*
 * @behaviour Y85: a host on the path that changes the source ports or addresses of some frames of a
 * sealed connection, which no tag covers, neither prevents nor ends it
 */
static void changed_sources_end_no_connection(struct sim_case *c)
{
	static const uint8_t types[] = {
		WEFT_FRAME_HELLO, WEFT_FRAME_HELLO_ACK, WEFT_FRAME_PROBE, WEFT_FRAME_PROBE_ACK,
		WEFT_FRAME_READY, WEFT_FRAME_READY_ACK, WEFT_FRAME_DATA,  WEFT_FRAME_ACK,
	};
	struct sealed_scene s;

	for (unsigned int i = 0; i < HEADERS * sizeof(types); i++) {
		sealed_open_hosts(&s, c, &sealed_fast, &sealed_fast, NULL);
		changer = (struct changer){
			.s = &s, .type = types[i / HEADERS], .header = i % HEADERS};
		s.rec->hook = change_source;
		s.rec->hook_arg = &changer;
		s.e = lane_connect(s.a, s.b);
		sim_run(s.sim, 10 * SIM_S, lane_is_up, s.e);
		if (!s.e->up)
			fail_msg("type %u, header %u: no connection: %s", changer.type,
				 changer.header, s.e->text);
		sealed_traffic(&s, 0, 300);
		assert_true(changer.of_a + changer.of_b > 0);
		assert_true(sim_port_alone(s.pa) > 0 && sim_port_alone(s.pb) > 0);
		sealed_close(&s);
	}
}

/* ---- HELLO_ACK ------------------------------------------------------------------------------- */

/* The first HELLO goes to the attacker, and what the initiator sends behind it is lost. */
static enum sim_verdict take_first_hello(struct sim_port *port, uint8_t *data, size_t len,
					 void *arg)
{
	struct attacker *k = arg;
	const struct weft_frame_hdr *h = sealed_header(k->s->rec, data, len);

	if (!h)
		return SIM_PASS;
	if (port == k->s->pa) {
		if (h->type == WEFT_FRAME_HELLO && k->hellos++ == 0) {
			memcpy(k->frame, data, len);
			k->frame_len = len;
		}
		return SIM_DROP;
	}
	if (h->type == WEFT_FRAME_HELLO_ACK) {
		k->acks++;
		k->ack_bytes += len;
	}
	return SIM_PASS;
}

/*
 * @behaviour Y88: a host that sends HELLOs with the address of another one, and ARP frames, makes
 * no end send more bytes to that address than it has sent itself
 */
static void forged_hellos_are_not_amplified(struct sim_case *c)
{
	static const uint8_t mac[6] = {2, 9, 9, 9, 9, 9};
	struct attacker *k = &attacker;
	struct sealed_scene s;
	uint8_t to[6];
	rte_be32_t ip;

	sealed_hosts(&s, c, take_first_hello);
	lane_connect(s.a, s.b);
	sim_run(s.sim, 100 * SIM_MS, NULL, NULL);
	assert_true(k->frame_len > 0);
	/* From the attacker's own MAC address: ARP names another one, which is the initiator's. */
	memcpy(to, k->frame, 6);
	memcpy(k->frame + 6, mac, 6);
	ip = reseal_ip(k->frame)->dst_addr;
	send_frame(k);
	sim_run(s.sim, 20 * SIM_MS, NULL, NULL);
	for (unsigned int i = 0; i < 100; i++) {
		arp_inject(s.px, RTE_ARP_OP_REQUEST, mac, RTE_BE32(0x0a0000f0), to, ip);
		sim_run(s.sim, SIM_MS, NULL, NULL);
	}
	assert_int_equal(k->acks, 1);
	/* Copies, of which no MAC covers the cookie. */
	for (unsigned int i = 0; i < 20; i++) {
		k->frame[RESEAL_LANE + sizeof(struct weft_frame_hdr) + WEFT_EXCHANGE_COOKIE]++;
		reseal(k->frame, k->frame_len);
		send_frame(k);
		sim_run(s.sim, SIM_MS, NULL, NULL);
	}
	assert_in_range(k->acks, 2, k->sent);
	assert_true(k->ack_bytes <= k->sent * k->frame_len);
	/* Nor does a HELLO change how frames to that address leave. */
	assert_int_equal(sim_port_alone(s.pb), 0);
	sealed_forget(s.rec);
}

static struct sim_case cases[] = {
	SIM_CASE(forged_hellos_are_not_amplified),
	SIM_CASE(a_forged_bye_ends_no_handshake),
	SIM_CASE(forged_resets_delay_no_handshake),
	SIM_CASE(an_earlier_offer_replaces_no_later_one),
	SIM_CASE(changed_sources_end_no_connection),
};

int main(int argc, char **argv)
{
	return sealed_main(argc, argv, "lane_attack_hello", cases,
			   sizeof(cases) / sizeof(cases[0]));
}
