/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sender and the receiver of a flow of cross traffic; see tcp.h.
 */

#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>

#include "sim_priv.h"
#include "tcp.h"

#define RING 8192 /* packets remembered; so many may be under way */
#define SACK 256
#define RTO_MIN (200 * SIM_MS)
#define REORDER 3

struct packet {
	uint64_t sent_at, delivered, delivered_at;
	bool inflight;
};

/* Both kinds of frames; acknowledgements have what follows the number, too. */
struct wire {
	struct rte_ether_hdr eth;
	struct rte_ipv4_hdr ip;
	struct rte_tcp_hdr tcp;
	uint8_t options[12];
	uint64_t number;          /* of the packet; the greatest received */
	uint64_t sack[SACK / 64]; /* bit i: number - i has come */
} __attribute__((packed, aligned(2)));

struct tcp_flow {
	struct sim *sim;
	const struct tcp_algorithm *algorithm;
	struct sim_port *from, *to;
	union tcp_state state;
	struct tcp_window window;
	struct packet packet[RING];
	uint64_t next, una; /* numbers: next to send; all before are settled */
	unsigned int inflight;
	uint64_t delivered, delivered_at;
	uint64_t round_end, recovery_end;
	uint64_t srtt, min_rtt;
	uint64_t send_at;     /* pacing */
	uint64_t progress_at; /* last progress */
	uint64_t wake_at;     /* the earliest call that is under way; 0 = none */
	unsigned int quiet;   /* probes and timeouts without progress */
	bool stopped;
	/* receiver */
	uint64_t top;
	uint64_t sack[SACK / 64];
	uint64_t received, packets;
};

static void flow_wake(void *arg);

/* ---- frames --------------------------------------------------------------------------------- */

static void headers(struct wire *w, const struct sim_port *from, const struct sim_port *to,
		    size_t len)
{
	*w = (struct wire){.eth.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4)};
	memcpy(&w->eth.dst_addr, sim_port_mac(to), 6);
	memcpy(&w->eth.src_addr, sim_port_mac(from), 6);
	w->ip.version_ihl = RTE_IPV4_VHL_DEF;
	w->ip.total_length = rte_cpu_to_be_16((uint16_t)(len - sizeof(w->eth)));
	w->ip.time_to_live = 64;
	w->ip.next_proto_id = IPPROTO_TCP;
	w->ip.src_addr = rte_cpu_to_be_32(0x0b000000 + sim_port_index(from));
	w->ip.dst_addr = rte_cpu_to_be_32(0x0b000000 + sim_port_index(to));
	w->ip.hdr_checksum = rte_ipv4_cksum(&w->ip);
	w->tcp.src_port = rte_cpu_to_be_16((uint16_t)(40000 + sim_port_index(from)));
	w->tcp.dst_port = rte_cpu_to_be_16((uint16_t)(40000 + sim_port_index(to)));
	w->tcp.data_off = 8 << 4;
}

/* ---- sender --------------------------------------------------------------------------------- */

static struct packet *packet_at(struct tcp_flow *f, uint64_t number)
{
	return &f->packet[number % RING];
}

static void send_packet(struct tcp_flow *f)
{
	static uint8_t frame[TCP_PACKET];
	uint64_t now = sim_now(f->sim);
	struct wire w;

	headers(&w, f->from, f->to, sizeof(frame));
	w.number = f->next;
	memcpy(frame, &w, offsetof(struct wire, sack));
	*packet_at(f, f->next++) =
		(struct packet){.sent_at = now,
				.delivered = f->delivered,
				.delivered_at = f->delivered_at ? f->delivered_at : now,
				.inflight = true};
	f->inflight++;
	sim_inject(f->from, frame, sizeof(frame));
}

static uint64_t rto(const struct tcp_flow *f)
{
	uint64_t t = f->srtt * 3 > RTO_MIN ? f->srtt * 3 : RTO_MIN;

	return t << (f->quiet < 6 ? f->quiet : 6);
}

/* The first time a probe, then timeouts. */
static uint64_t quiet_limit(const struct tcp_flow *f)
{
	return f->quiet || !f->srtt ? rto(f) : 2 * f->srtt + SIM_MS;
}

static void wake_by(struct tcp_flow *f, uint64_t when)
{
	if (f->wake_at && f->wake_at <= when)
		return;
	f->wake_at = when;
	sim_at(f->sim, when, flow_wake, f);
}

static void pump(struct tcp_flow *f)
{
	uint64_t now = sim_now(f->sim), gap;

	while (!f->stopped && f->inflight < f->window.cwnd && f->next - f->una < RING) {
		if (f->window.pacing > 0 && f->send_at > now) {
			wake_by(f, f->send_at);
			break;
		}
		send_packet(f);
		gap = f->window.pacing > 0 ? (uint64_t)(TCP_PACKET * 1e9 / f->window.pacing) : 0;
		/* A little that was missed may be caught up. */
		if (f->send_at + 100 * SIM_US < now)
			f->send_at = now;
		f->send_at += gap;
	}
	if (f->inflight && !f->stopped)
		wake_by(f, f->progress_at + quiet_limit(f));
}

static void give_up_all(struct tcp_flow *f)
{
	for (; f->una < f->next; f->una++)
		packet_at(f, f->una)->inflight = false;
	f->inflight = 0;
}

static void flow_wake(void *arg)
{
	struct tcp_flow *f = arg;
	uint64_t now = sim_now(f->sim);

	if (f->wake_at > now)
		return; /* an earlier call has come in between, and will again */
	f->wake_at = 0;
	if (f->stopped)
		return;
	if (f->inflight && now >= f->progress_at + quiet_limit(f)) {
		f->progress_at = now;
		if (f->quiet++ && f->srtt) {
			give_up_all(f);
			f->algorithm->timeout(&f->state, &f->window, now);
			f->recovery_end = f->next;
		} else {
			send_packet(f);
		}
	}
	pump(f);
}

static void settle(struct tcp_flow *f, struct packet *p)
{
	p->inflight = false;
	f->inflight--;
}

/* Whatever three later ones have overtaken is lost. */
static void find_lost(struct tcp_flow *f, uint64_t top)
{
	bool cut = false;
	uint64_t n;

	for (n = f->una; n + REORDER <= top; n++) {
		if (!packet_at(f, n)->inflight)
			continue;
		settle(f, packet_at(f, n));
		cut |= n >= f->recovery_end;
	}
	while (f->una < f->next && !packet_at(f, f->una)->inflight)
		f->una++;
	if (!cut)
		return;
	f->recovery_end = f->next;
	f->algorithm->lost(&f->state, &f->window, sim_now(f->sim));
}

static void take_rtt(struct tcp_flow *f, uint64_t rtt)
{
	f->srtt = f->srtt ? (7 * f->srtt + rtt) / 8 : rtt;
	f->min_rtt = f->min_rtt && f->min_rtt < rtt ? f->min_rtt : rtt;
}

static void at_sender(struct sim_port *port, const uint8_t *data, size_t len, void *arg)
{
	struct tcp_flow *f = arg;
	struct tcp_ack ack = {.now = sim_now(f->sim)};
	const struct packet *newest = NULL;
	struct packet *p;
	struct wire w;
	uint64_t i, n;

	(void)port;
	if (len != sizeof(w) || data[12] != 8 || data[13] != 0)
		return;
	memcpy(&w, data, sizeof(w));
	for (i = 0; i < SACK && i <= w.number; i++) {
		n = w.number - i;
		p = packet_at(f, n);
		if (!(w.sack[i / 64] >> (i % 64) & 1) || n < f->una || n >= f->next || !p->inflight)
			continue;
		newest = newest ? newest : p;
		settle(f, p);
		ack.acked++;
		ack.round |= n >= f->round_end;
	}
	if (!newest)
		return;
	f->delivered += ack.acked;
	f->delivered_at = f->progress_at = ack.now;
	f->quiet = 0;
	ack.rtt_ns = ack.now - newest->sent_at;
	take_rtt(f, ack.rtt_ns);
	ack.min_rtt_ns = f->min_rtt;
	if (ack.now > newest->delivered_at)
		ack.rate = (double)(f->delivered - newest->delivered) * TCP_PACKET * 1e9 /
			   (double)(ack.now - newest->delivered_at);
	if (ack.round)
		f->round_end = f->next;
	find_lost(f, w.number);
	ack.inflight = f->inflight;
	f->algorithm->acked(&f->state, &f->window, &ack);
	pump(f);
}

/* ---- receiver ------------------------------------------------------------------------------- */

static void shift(uint64_t *sack, uint64_t by)
{
	uint64_t moved[SACK / 64] = {0}, i;

	for (i = 0; i + by < SACK; i++)
		if (sack[i / 64] >> (i % 64) & 1)
			moved[(i + by) / 64] |= 1ull << ((i + by) % 64);
	memcpy(sack, moved, sizeof(moved));
}

static void note(struct tcp_flow *f, uint64_t number)
{
	uint64_t below;

	if (!f->packets++ || number > f->top) {
		shift(f->sack, number - f->top);
		f->top = number;
	}
	below = f->top - number;
	if (below >= SACK || f->sack[below / 64] >> (below % 64) & 1)
		return;
	f->sack[below / 64] |= 1ull << (below % 64);
	f->received++;
}

static void at_receiver(struct sim_port *port, const uint8_t *data, size_t len, void *arg)
{
	struct tcp_flow *f = arg;
	struct wire w;

	(void)port;
	if (len != TCP_PACKET || data[12] != 8 || data[13] != 0)
		return;
	memcpy(&w, data, offsetof(struct wire, sack));
	note(f, w.number);
	headers(&w, f->to, f->from, sizeof(w));
	w.number = f->top;
	memcpy(w.sack, f->sack, sizeof(f->sack));
	sim_inject(f->to, &w, sizeof(w));
}

/* ---- life ----------------------------------------------------------------------------------- */

struct tcp_flow *tcp_flow_create(struct sim *sim, const struct tcp_algorithm *algorithm,
				 struct sim_port *from, struct sim_port *to)
{
	struct tcp_flow *f = sim_alloc(sizeof(*f));

	f->sim = sim;
	f->algorithm = algorithm;
	f->from = from;
	f->to = to;
	algorithm->init(&f->state, &f->window);
	sim_station(from, false, at_sender, f);
	sim_station(to, false, at_receiver, f);
	return f;
}

void tcp_flow_start(struct tcp_flow *f)
{
	f->progress_at = f->send_at = sim_now(f->sim);
	pump(f);
}

void tcp_flow_stop(struct tcp_flow *f)
{
	f->stopped = true;
}

uint64_t tcp_flow_bytes(const struct tcp_flow *f)
{
	return f->received * TCP_MSS;
}

uint64_t tcp_flow_packets(const struct tcp_flow *f)
{
	return f->next;
}

void tcp_flow_free(struct tcp_flow *f)
{
	free(f);
}
