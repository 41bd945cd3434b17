/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes with IPv6: frames, neighbour discovery, and what other hosts may forge of it. */

#include <arpa/inet.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "engine/conn.h"
#include "frame/arp.h"
#include "lane_host.h"
#include "sim_test.h"

#define SOLICIT 135
#define ADVERTISE 136
#define TOO_BIG 2

static const uint8_t key[32] = {9};

struct world {
	struct sim *sim;
	struct sim_port *pa, *pb, *px; /* px: a host that forges */
	struct lane_host *a, *b;
	struct lane_end *e;
};

static void open_world(struct world *w, struct sim_case *c, struct sim_port_params p,
		       const char *config)
{
	memset(w, 0, sizeof(*w));
	w->sim = case_sim_seed(c, c->seed);
	p.up = (struct sim_link){.rate = 10 * SIM_GBIT, .delay_ns = 5000};
	p.ip6 = "fd00::a";
	w->pa = sim_port_create(w->sim, &p);
	p.ip6 = "fd00::b";
	w->pb = sim_port_create(w->sim, &p);
	w->px = sim_port_create(w->sim, &p);
	w->a = lane_host_create(w->sim, w->pa, config);
	w->b = lane_host_create(w->sim, w->pb, config);
}

/* The sum of 16-bit words in ones' complement, as RFC 1071 describes it. */
static uint32_t add_words(uint32_t sum, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	return sum;
}

static bool checksum_ok(const uint8_t *ip, const uint8_t *data, size_t n, uint8_t proto)
{
	uint32_t sum = add_words((uint32_t)n + proto, ip + 8, 32);

	sum = add_words(sum, data, n);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

struct seen {
	unsigned int lane, solicits, advertises, probes, marks;
	uint16_t vlan;
	uint8_t tos;
};

/* Every byte of the headers, read without the product's structs. */
static enum sim_verdict check_frame(struct sim_port *port, uint8_t *f, size_t *len, size_t room,
				    void *arg)
{
	struct seen *seen = arg;
	size_t at = seen->vlan ? 18 : 14, n;
	const uint8_t *ip = f + at, *next = ip + 40;

	(void)port;
	(void)room;
	assert_int_equal(f[at - 2] << 8 | f[at - 1], 0x86dd);
	if (seen->vlan)
		assert_int_equal(f[14] << 8 | f[15], seen->vlan);
	n = (size_t)(ip[4] << 8 | ip[5]);
	assert_true(at + 40 + n <= *len);
	assert_int_equal(ip[0] >> 4, 6);
	assert_int_equal((ip[1] & 15) << 16 | ip[2] << 8 | ip[3], 0); /* flow label */
	assert_true(checksum_ok(ip, next, n, ip[6]));
	if (ip[6] == 17) {
		assert_int_equal(ip[7], 64);
		assert_int_equal(next[4] << 8 | next[5], n);
		assert_int_not_equal(next[6] << 8 | next[7], 0);
		assert_int_equal(next[8] | next[9] << 8, 0x6657);
		if (seen->tos)
			assert_int_equal(((ip[0] & 15) << 4 | ip[1] >> 4) & ~3, seen->tos);
		seen->lane++;
		return SIM_PASS;
	}
	assert_int_equal(ip[6], 58);
	assert_int_equal(ip[7], 255);
	if (next[0] == SOLICIT) {
		seen->solicits++;
		seen->probes += memcmp(ip + 8, (uint8_t[16]){0}, 16) == 0;
		assert_memory_equal(f, ((uint8_t[]){0x33, 0x33, 0xff}), 3);
		assert_memory_equal(f + 3, next + 21, 3);
	} else {
		assert_int_equal(next[0], ADVERTISE);
		assert_memory_equal(next + 26, sim_port_mac(port), 6);
		seen->advertises++;
	}
	return SIM_PASS;
}

/*
 * @behaviour R89: lanes with IPv6 alone carry messages with each checksum, in a VLAN, sealed, and
 * over the least MTU
 */
static void messages_arrive_over_ipv6(struct sim_case *c)
{
	static const char *const csum[] = {"CSUM=none", "CSUM=udp", "CSUM=crc32c", "CSUM=auto"};
	struct sim_port_params p = {0};
	struct world w;

	for (unsigned int i = 0; i < 12; i++) {
		struct seen seen = {0};

		p = (struct sim_port_params){.frame_size = i % 2 ? 9014 : 1514};
		if (i >= 4)
			p.vlan = seen.vlan = 7;
		if (i >= 8)
			p.job_key = key;
		if (i == 5)
			p.flags = WEFT_FRAME_PORT_RX_CSUM | WEFT_FRAME_PORT_TX_CSUM;
		open_world(&w, c, p, csum[i % 4]);
		sim_filter(w.pa, check_frame, &seen);
		sim_filter(w.pb, check_frame, &seen);
		w.e = lane_up(w.a, w.b);
		assert_true(lane_send_all(w.e, 0, 2000, 2 * SIM_S));
		assert_true(lane_exactly_once(w.b, 0, 2000));
		sim_run(w.sim, SIM_S, NULL, NULL);
		assert_true(seen.lane > 100 && seen.solicits > 0 && seen.advertises > 0);
		assert_int_equal(seen.probes, 6);
		assert_int_equal(
			lane_counter(w.a, "drop.bad_csum") + lane_counter(w.b, "drop.bad_csum"), 0);
	}
}

/* A host keeps its number as long as it has connections. */
static void a_connection_holds_its_host(struct sim_case *c)
{
	const struct raw_iface *iface;
	const struct weft_hosts *hosts;
	uint32_t number;
	struct world w;
	uint8_t ip6[16];

	open_world(&w, c, (struct sim_port_params){0}, NULL);
	w.e = lane_up(w.a, w.b);
	iface = (const struct raw_iface *)lane_iface(w.b);
	hosts = iface->port->hosts;
	inet_pton(AF_INET6, "fd00::a", ip6);
	number = weft_hosts_find(hosts, ip6);
	assert_int_not_equal(number, 0);
	assert_int_equal(hosts->host[number % WEFT_HOSTS].held, 1);
	lane_destroy(w.e);
	sim_run(w.sim, 10 * SIM_S, NULL, NULL);
	if (lane_passive(w.b))
		lane_destroy(lane_passive(w.b));
	sim_run(w.sim, 10 * SIM_S, NULL, NULL);
	assert_int_equal(hosts->host[number % WEFT_HOSTS].held, 0);
}

static void messages_arrive_in_spite_of_loss(struct sim_case *c)
{
	const struct sim_link bad = {
		.rate = SIM_GBIT, .delay_ns = 20000, .loss = 0.02, .dup = 0.01, .corrupt = 0.01};
	struct world w;

	open_world(&w, c, (struct sim_port_params){0}, "CSUM=udp");
	sim_link_set(w.pa, w.pb, &bad);
	w.e = lane_up(w.a, w.b);
	assert_true(lane_send_all(w.e, 0, 5000, 20 * SIM_S));
	assert_true(lane_exactly_once(w.b, 0, 5000));
	assert_int_equal(lane_wrong(w.b), 0);
	assert_true(lane_counter(w.a, "drop.bad_csum") + lane_counter(w.b, "drop.bad_csum") > 0);
}

struct spoil {
	unsigned int n, spoilt;
	uint16_t csum; /* 0: none; else it is added */
};

static enum sim_verdict spoil_csum(struct sim_port *port, uint8_t *f, size_t *len, size_t room,
				   void *arg)
{
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(f + 54);
	struct spoil *s = arg;

	(void)port;
	(void)len;
	(void)room;
	if (f[20] != 17 || ++s->n % 5 != 0)
		return SIM_PASS;
	udp->dgram_cksum = s->csum == 0 ? 0 : (uint16_t)(udp->dgram_cksum + s->csum);
	s->spoilt++;
	return SIM_PASS;
}

/*
 * A wrong UDP checksum is no drop where the frame has a CRC-32C or a tag, too: the kernel of a peer
 * with sockets leaves it to a device, and a veth has none that adds it.
 */
static void a_wrong_or_missing_udp_checksum_is_a_drop(struct sim_case *c)
{
	struct spoil s;
	uint64_t drops;
	struct world w;

	for (unsigned int i = 0; i < 6; i++) {
		const struct sim_port_params p = {.job_key = i >= 4 ? key : NULL};

		s = (struct spoil){.csum = i % 2};
		open_world(&w, c, p, i < 2 ? "CSUM=crc32c" : "CSUM=udp");
		w.e = lane_up(w.a, w.b);
		sim_filter(w.pa, spoil_csum, &s);
		assert_true(lane_send_all(w.e, 0, 500, 10 * SIM_S));
		sim_run(w.sim, SIM_S, NULL, NULL);
		sim_filter(w.pa, NULL, NULL);
		assert_true(lane_exactly_once(w.b, 0, 500));
		assert_true(s.spoilt > 10);
		drops = lane_counter(w.b, "drop.bad_csum");
		if (i == 3) /* acknowledgements have a CRC-32C */
			assert_true(drops > 10 && drops <= s.spoilt);
		else
			assert_int_equal(drops, i == 1 || i == 5 ? 0 : s.spoilt);
	}
}

/* ---- forged neighbour discovery -------------------------------------------------------------- */

struct forgery {
	struct rte_ether_hdr eth;
	struct rte_ipv6_hdr ip;
	uint8_t type, code;
	rte_be16_t checksum;
	uint8_t flags[4];
	uint8_t target[16];
	uint8_t option, units, mac[6];
} __attribute__((packed, aligned(2)));

static void finish(struct forgery *f)
{
	uint32_t sum = add_words(32 + 58, (const uint8_t *)&f->ip + 8, 32);

	f->checksum = 0;
	sum = add_words(sum, &f->type, 32);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	f->checksum = rte_cpu_to_be_16((uint16_t)~sum);
}

/* "@p target is at px": an advertisement, or a solicitation from there. */
static struct forgery forge(const struct world *w, uint8_t type, const struct sim_port *to,
			    const char *src, const char *dst, const char *target)
{
	struct forgery f = {
		.eth.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV6),
		.ip = {.vtc_flow = RTE_BE32(6u << 28),
		       .payload_len = RTE_BE16(32),
		       .proto = 58,
		       .hop_limits = 255},
		.type = type,
		.flags[0] = type == ADVERTISE ? 0x60 : 0,
		.option = type == ADVERTISE ? 2 : 1,
		.units = 1,
	};

	memcpy(&f.eth.dst_addr, sim_port_mac(to), 6);
	memcpy(&f.eth.src_addr, sim_port_mac(w->px), 6);
	inet_pton(AF_INET6, src, &f.ip.src_addr);
	inet_pton(AF_INET6, dst, &f.ip.dst_addr);
	inet_pton(AF_INET6, target, f.target);
	memcpy(f.mac, sim_port_mac(w->px), 6);
	finish(&f);
	return f;
}

static void inject(const struct world *w, const struct forgery *f, size_t less)
{
	sim_inject(w->px, f, sizeof(*f) - less);
	sim_run(w->sim, SIM_MS, NULL, NULL);
}

/* Before a connects to b, px claims b's address: only an answer to a's own question counts. */
static void an_unrequested_advertisement_teaches_nothing(struct sim_case *c)
{
	struct forgery f;
	struct world w;

	open_world(&w, c, (struct sim_port_params){0}, NULL);
	sim_station(w.px, false, NULL, NULL);
	sim_run(w.sim, SIM_S, NULL, NULL);
	f = forge(&w, ADVERTISE, w.pa, "fd00::b", "fd00::a", "fd00::b");
	inject(&w, &f, 0);
	f = forge(&w, SOLICIT, w.pa, "fd00::b", "fd00::a", "fd00::a");
	inject(&w, &f, 0);
	assert_true(lane_counter(w.a, "arp.answered") > 0);
	w.e = lane_up(w.a, w.b);
	assert_true(lane_send_all(w.e, 0, 100, SIM_S));
	assert_true(lane_exactly_once(w.b, 0, 100));
	/* Afterwards it is a hint at most: the new MAC address must prove what it claims. */
	f = forge(&w, ADVERTISE, w.pa, "fd00::b", "fd00::a", "fd00::b");
	for (unsigned int i = 0; i < 100; i++)
		inject(&w, &f, 0);
	assert_true(lane_counter(w.a, "mac.requests") > 0);
	assert_int_equal(lane_counter(w.a, "mac.changed"), 0);
	assert_true(lane_send_all(w.e, 100, 200, SIM_S));
	assert_true(lane_exactly_once(w.b, 0, 200));
}

/* RFC 4861, 7.1: each rule drops a message, and a counter shows it. */
static void invalid_messages_are_dropped_and_counted(struct sim_case *c)
{
	uint64_t in, ip, csum, length, other;
	struct forgery f, good;
	struct world w;

	open_world(&w, c, (struct sim_port_params){0}, NULL);
	sim_station(w.px, false, NULL, NULL);
	sim_run(w.sim, SIM_S, NULL, NULL);
	good = forge(&w, SOLICIT, w.pa, "fd00::77", "fd00::a", "fd00::a");
	in = lane_counter(w.a, "arp.received");
	inject(&w, &good, 0);
	assert_int_equal(lane_counter(w.a, "arp.received"), in + 1);
	ip = lane_counter(w.a, "drop.bad_ip");
	csum = lane_counter(w.a, "drop.bad_csum");
	length = lane_counter(w.a, "drop.bad_length");
	other = lane_counter(w.a, "drop.not_ours");
	f = good;
	f.ip.hop_limits = 254; /* from beyond a router */
	inject(&w, &f, 0);
	f = good;
	f.code = 1;
	finish(&f);
	inject(&w, &f, 0);
	f = good;
	f.target[0] = 0xff;
	finish(&f);
	inject(&w, &f, 0);
	f = forge(&w, SOLICIT, w.pa, "::", "fd00::a", "fd00::a"); /* a probe to no group */
	inject(&w, &f, 0);
	f = forge(&w, ADVERTISE, w.pa, "fd00::77", "ff02::1", "fd00::77"); /* solicited, to all */
	inject(&w, &f, 0);
	assert_int_equal(lane_counter(w.a, "drop.bad_ip"), ip + 5);
	f = good;
	f.checksum ^= 1;
	inject(&w, &f, 0);
	assert_int_equal(lane_counter(w.a, "drop.bad_csum"), csum + 1);
	f = good;
	f.units = 0; /* an option without end */
	finish(&f);
	inject(&w, &f, 0);
	f = good;
	f.units = 2; /* beyond the message */
	finish(&f);
	inject(&w, &f, 0);
	inject(&w, &good, 8); /* cut */
	assert_int_equal(lane_counter(w.a, "drop.bad_length"), length + 3);
	f = good;
	f.type = 133; /* of routers */
	finish(&f);
	inject(&w, &f, 0);
	assert_int_equal(lane_counter(w.a, "drop.not_ours"), other + 1);
	assert_int_equal(lane_counter(w.a, "arp.received"), in + 1);
}

/* @behaviour R45 */
static void a_duplicate_address_is_reported(struct sim_case *c)
{
	struct forgery f;
	struct world w;

	open_world(&w, c, (struct sim_port_params){0}, NULL);
	sim_station(w.px, false, NULL, NULL);
	w.e = lane_up(w.a, w.b);
	sim_log_begin();
	/* The answer of another owner to the probe of RFC 4862. */
	f = forge(&w, ADVERTISE, w.pa, "fd00::a", "ff02::1", "fd00::a");
	f.flags[0] = 0x20;
	memcpy(&f.eth.dst_addr, ((uint8_t[]){0x33, 0x33, 0, 0, 0, 1}), 6);
	finish(&f);
	for (unsigned int i = 0; i < 200; i++)
		inject(&w, &f, 0);
	assert_in_range(sim_log_count("address conflict: fd00::a "), 1, 10);
	sim_log_end();
	assert_int_equal(lane_counter(w.a, "arp.conflict"), 200);
	lane_talk(w.e, w.b, 0);
}

/* ---- packet too big -------------------------------------------------------------------------- */

struct router {
	struct world *w;
	size_t mtu;
	bool speaks;
	unsigned int dropped;
};

/* Of px, in the name of a router: the frame was too long. */
static void too_big(const struct router *r, const uint8_t *f)
{
	struct {
		struct rte_ether_hdr eth;
		struct rte_ipv6_hdr ip;
		uint8_t type, code;
		rte_be16_t checksum;
		rte_be32_t mtu;
		uint8_t quote[200];
	} __attribute__((packed, aligned(2))) m = {
		.eth.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV6),
		.ip = {.vtc_flow = RTE_BE32(6u << 28),
		       .payload_len = RTE_BE16(208),
		       .proto = 58,
		       .hop_limits = 64},
		.type = TOO_BIG,
		.mtu = rte_cpu_to_be_32((uint32_t)r->mtu),
	};
	uint32_t sum;

	memcpy(&m.eth.dst_addr, f + 6, 6);
	memcpy(&m.eth.src_addr, sim_port_mac(r->w->px), 6);
	inet_pton(AF_INET6, "fd00::ee", &m.ip.src_addr);
	memcpy(&m.ip.dst_addr, f + 22, 16);
	memcpy(m.quote, f + 14, sizeof(m.quote));
	sum = add_words(208 + 58, (const uint8_t *)&m.ip + 8, 32);
	sum = add_words(sum, &m.type, 208);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	m.checksum = rte_cpu_to_be_16((uint16_t)~sum);
	sim_inject(r->w->px, &m, sizeof(m));
}

static enum sim_verdict narrow(struct sim_port *port, uint8_t *f, size_t *len, size_t room,
			       void *arg)
{
	struct router *r = arg;

	(void)port;
	(void)room;
	if (r->mtu == 0 || *len <= r->mtu + 14)
		return SIM_PASS;
	r->dropped++;
	if (r->speaks)
		too_big(r, f);
	return SIM_DROP;
}

static uint64_t time_to_shrink(struct sim_case *c, bool speaks, size_t mtu)
{
	struct world w;
	struct router r = {.w = &w, .speaks = speaks};
	uint64_t from;

	open_world(&w, c, (struct sim_port_params){.frame_size = 9014}, NULL);
	sim_station(w.px, false, NULL, NULL);
	w.e = lane_up(w.a, w.b);
	sim_filter(w.pa, narrow, &r);
	assert_true(lane_send_all(w.e, 0, 100, SIM_S));
	r.mtu = mtu;
	from = sim_now(w.sim);
	assert_true(lane_send_all(w.e, 100, 1000, 10 * SIM_S));
	assert_true(lane_exactly_once(w.b, 0, 1000));
	from = sim_now(w.sim) - from;
	sim_run(w.sim, SIM_S, NULL, NULL);
	assert_true(r.dropped > 0);
	assert_true(lane_counter(w.a, "mtu.lower") > 0);
	assert_int_equal(lane_counter(w.a, "icmp.received") > 0, speaks);
	assert_int_equal(lane_counter(w.a, "drop.icmp"), 0);
	return from;
}

/* Without its reports the search finds the size, too. */
static void packet_too_big_is_heeded(struct sim_case *c)
{
	time_to_shrink(c, false, 1280);
	time_to_shrink(c, true, 1280);
	time_to_shrink(c, true, 1500);
}

/* A quote that names no connection of this host is no report. */
static void a_forged_report_is_dropped(struct sim_case *c)
{
	uint8_t quote[214] = {0};
	struct world w;
	struct router r = {.w = &w, .mtu = 1280};
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(quote + 14);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);

	open_world(&w, c, (struct sim_port_params){.frame_size = 9014}, NULL);
	sim_station(w.px, false, NULL, NULL);
	w.e = lane_up(w.a, w.b);
	memcpy(quote + 6, sim_port_mac(w.pa), 6);
	ip->vtc_flow = RTE_BE32(6u << 28);
	ip->proto = 17;
	inet_pton(AF_INET6, "fd00::a", &ip->src_addr);
	inet_pton(AF_INET6, "fd00::b", &ip->dst_addr);
	udp->src_port = udp->dst_port = RTE_BE16(9338);
	for (unsigned int i = 0; i < 100; i++) {
		too_big(&r, quote);
		sim_run(w.sim, SIM_MS, NULL, NULL);
	}
	assert_int_equal(lane_counter(w.a, "drop.icmp"), 100);
	assert_int_equal(lane_counter(w.a, "mtu.lower"), 0);
	assert_true(lane_send_all(w.e, 0, 100, SIM_S));
}

/* @behaviour R89 */
static void the_least_mtu_is_enough(struct sim_case *c)
{
	struct world w;
	struct router r = {.w = &w, .mtu = 1280};

	open_world(&w, c, (struct sim_port_params){.frame_size = 1514}, NULL);
	sim_filter(w.pa, narrow, &r);
	sim_filter(w.pb, narrow, &r);
	w.e = lane_up(w.a, w.b);
	assert_true(lane_send_all(w.e, 0, 1000, 10 * SIM_S));
	assert_true(lane_exactly_once(w.b, 0, 1000));
	open_world(&w, c, (struct sim_port_params){.frame_size = 1294}, NULL);
	w.e = lane_up(w.a, w.b);
	assert_true(lane_send_all(w.e, 0, 1000, 10 * SIM_S));
}

static struct sim_case cases[] = {
	SIM_CASE(messages_arrive_over_ipv6),
	SIM_CASE(a_connection_holds_its_host),
	SIM_CASE(messages_arrive_in_spite_of_loss),
	SIM_CASE(a_wrong_or_missing_udp_checksum_is_a_drop),
	SIM_CASE(an_unrequested_advertisement_teaches_nothing),
	SIM_CASE(invalid_messages_are_dropped_and_counted),
	SIM_CASE(a_duplicate_address_is_reported),
	SIM_CASE(packet_too_big_is_heeded),
	SIM_CASE(a_forged_report_is_dropped),
	SIM_CASE(the_least_mtu_is_enough),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_ip6", cases, sizeof(cases) / sizeof(cases[0]));
}
