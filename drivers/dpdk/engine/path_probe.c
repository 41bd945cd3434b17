/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "engine/build.h"
#include "engine/conn.h"
#include "engine/handshake.h"
#include "engine/path_open.h"
#include "engine/path_probe.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "frame/parse.h"
#include "lane.h"

/* ---------------------------------------------------------------- the ports of the paths */

/*
 * From a right port, the initiator's probe reaches the right queue of the peer, and the answer
 * reaches the right queue of the initiator. If neither end hashes frames to queues, every port is
 * right, and one probe per path is enough.
 *
 * Otherwise the initiator sends probes from many ports. If its driver reports the hash, these are
 * ports by which answers arrive at its own queue (weft_path_port()). A worker hands over frames of
 * other workers that arrive at its queue. While a better port may still be found, such a probe is
 * not answered, or its answer is ignored. At last any port is accepted, with a warning: the lane is
 * slower, and depends on the other worker's polling.
 *
 * If no probe of a path is answered although small frames over path 0 are, a device drops that
 * path's frames: this path and those behind it are left out.
 */

/*
 * Probes of a path in each round after the first, where every port is right. One small frame over
 * path 0 leaves with them, so random loss does not look like a blocked path.
 */
#define TRIES 3u
/* Answers over path 0 after which a silent path is given up: more where few ports are right. */
#define SMALL_ACKS 6u
#define SMALL_ACKS_SPREAD (2 * RAW_STEER_ROUNDS)

/* ---------------------------------------------------------------- initiator */

bool raw_paths_begin(struct raw_conn *c)
{
	c->path_count = RTE_MAX(c->iface->paths, c->hs->peer_paths);
	c->hs->path_found = 1;
	if (c->path_count == 1 || c->iface->rx_filter.raw_ethertype ||
	    raw_state_paths(c, c->path_count) != 0) {
		c->path_count = 1;
		return false;
	}
	c->hs->small_acks = 0;
	c->hs->last_id = c->probe_id;
	raw_hs_enter(c, RAW_PATHS);
	return true;
}

static void search_end(struct raw_conn *c)
{
	uint8_t n = 0;

	while (n < c->path_count && c->hs->path_found & 1u << n)
		n++;
	c->path_count = n;
	raw_hs_measure(c);
}

void raw_paths_send(struct raw_conn *c)
{
	uint16_t kind =
		c->hs_tries < RAW_STEER_ROUNDS ? WEFT_FRAME_PROBE_PATH : WEFT_FRAME_PROBE_PATH_ANY;
	struct weft_frame_probe p = {.frame_size = weft_put16(kind)};
	unsigned int n, left = raw_txq_space(c->iface);

	n = raw_paths_spread(c) ? raw_paths_hellos(c) : c->hs_tries > 0 ? TRIES : 1;
	for (; n > 0; n--) {
		for (uint8_t k = 1; k < c->path_count && left > 1; k++) {
			if (c->hs->path_found & 1u << k)
				continue;
			raw_paths_next(c, k);
			p.id = weft_put16(++c->probe_id);
			raw_ctl_send_on(c, k, WEFT_FRAME_PROBE, 0, &p, sizeof(p), 0);
			left--;
		}
	}
	if (c->hs_tries > 0) {
		p.id = weft_put16(++c->probe_id);
		p.frame_size = weft_put16(0);
		raw_ctl_send(c, WEFT_FRAME_PROBE, 0, &p, sizeof(p), 0);
	}
}

void raw_paths_ack(struct raw_conn *c, const struct weft_frame_view *v, uint16_t kind)
{
	uint32_t enough = raw_paths_spread(c) ? SMALL_ACKS_SPREAD : SMALL_ACKS;
	const struct weft_frame_probe *p = (const struct weft_frame_probe *)v->body;
	uint8_t k = v->hdr->path;

	if (kind == 0 && (int16_t)(weft_get16(p->id) - c->hs->last_id) > 0 &&
	    ++c->hs->small_acks >= enough) {
		search_end(c);
		return;
	}
	if ((kind != WEFT_FRAME_PROBE_PATH && kind != WEFT_FRAME_PROBE_PATH_ANY) || k == 0 ||
	    k >= c->path_count || c->hs->path_found & 1u << k ||
	    raw_paths_ignored(c, kind == WEFT_FRAME_PROBE_PATH_ANY))
		return;
	c->path[k].sport = v->dst_port;
	c->hs->path_found |= (uint16_t)(1u << k);
	if (c->hs->path_found == (1u << c->path_count) - 1)
		search_end(c);
}

/* ---------------------------------------------------------------- READY */

uint32_t raw_paths_ready(const struct raw_conn *c, void *body)
{
	weft_le16 port;
	struct weft_frame_ready r = {
		.frame_size = weft_put16((uint16_t)(c->frame_size - c->iface->wire_less)),
		.paths = weft_put16(c->path_count),
	};
	uint8_t *p = body;

	memcpy(p, &r, sizeof(r));
	p += sizeof(r);
	for (unsigned int i = 0; i < c->path_count; i++, p += sizeof(port)) {
		port = weft_put16(c->path[i].sport);
		memcpy(p, &port, sizeof(port));
	}
	return (uint32_t)(p - (uint8_t *)body);
}

/* Responder. Path 0 leads back to the source of READY, so that a NAT's translation stays in use. */
int raw_paths_take(struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct weft_frame_ready *r = (const struct weft_frame_ready *)v->body;
	uint32_t n = weft_get16(r->paths);
	weft_le16 ports[WEFT_FRAME_PATHS_MAX];

	if (n > WEFT_FRAME_PATHS_MAX || sizeof(*r) + n * sizeof(ports[0]) > v->body_len)
		return -EPROTO;
	/* Nothing is stored before all is checked: READY may arrive again, and be valid then. */
	memcpy(ports, v->body + sizeof(*r), n * sizeof(ports[0]));
	for (uint32_t i = 1; i < n; i++)
		if (weft_get16(ports[i]) == 0)
			return -EPROTO;
	n = RTE_MAX(n, 1u);
	if (raw_state_paths(c, n) != 0)
		return -ENOMEM;
	c->path_count = (uint8_t)n;
	c->path[0].dport = v->src_port;
	for (uint32_t i = 1; i < n; i++)
		c->path[i].dport = weft_get16(ports[i]);
	return 0;
}

/* ---------------------------------------------------------------- round trip and bandwidth */

/*
 * Between the PROBE that has found the frame size and READY, the initiator sends some more PROBEs,
 * so that protocols are chosen by measured values and not by those that a driver states:
 *
 * - PING: small probes, one after the other, until the least round trip no longer falls. Longer
 *   round trips include a peer that was busy connecting, or memory that was touched for the first
 *   time.
 * - TRAIN: full frames, answered by small ones, if the bandwidth is unknown (virtual links, NICs
 *   without a link speed). The fastest stretch after the first one counts: a token bucket is empty
 *   by then, and slower stretches were interrupted.
 *
 * The responder measures, too: PINGs follow its answers, and the TRAIN arrives. The connection is
 * made without a result, too: frames may be lost, and the time is bounded. A peer that does not
 * support PING and TRAIN takes them for small probes.
 */

#define PINGS 64u
/* The least round trip counts after N pings in a row that shorten it by at most 1/8. */
#define PINGS_SAME 12u
/*
 * ns after which no further ping is sent, once PINGS_MIN were sent (LONG_PINGS on a long path). On
 * a slow path the first ping waits behind retransmitted full PROBEs.
 */
#define PING_NS 2000000u
#define PINGS_MIN 4u
/* ns: a longer round trip through memory is no measurement, since the peer was busy connecting */
#define MEMORY_RTT_MAX 4000u
#define TRAIN 96u
#define WINDOW 24u
#define AT_ONCE 4u
#define SLOW_SKIP 4u
#define STRETCH 32u
#define LIMIT_NS 12000000u /* ns of live_clock, for the whole measurement */
/*
 * A path is long from a round trip of LONG_NS on. Two pings have to do there: the responder
 * measures with the second one. At least LONG_TRIPS of the handshake's round trips replace
 * LIMIT_NS.
 */
#define LONG_NS 10000000u
#define LONG_PINGS 2u
#define LONG_TRIPS 3u

static uint64_t clock_now(const struct raw_iface *iface)
{
	const struct weft_platform *pf = iface->platform;

	return pf->now(pf->arg);
}

static void rtt_sample(struct raw_conn *c, uint64_t ns)
{
	struct raw_measure *m = &c->hs->measure;
	uint32_t rtt = c->measured.rtt;

	m->same++;
	if (ns >= UINT32_MAX || (rtt != 0 && ns >= rtt))
		return;
	if (rtt == 0 || ns < rtt - rtt / 8)
		m->same = 0;
	c->measured.rtt = ns > 0 ? (uint32_t)ns : 1;
}

static int send_probe(struct raw_conn *c, uint16_t kind, uint32_t pad_to)
{
	struct weft_frame_probe p = {
		.id = weft_put16(++c->probe_id),
		.frame_size = weft_put16(kind),
	};

	return raw_ctl_send(c, WEFT_FRAME_PROBE, 0, &p, sizeof(p), pad_to);
}

static void send_ping(struct raw_conn *c)
{
	c->hs->measure.pings++;
	c->hs->measure.sent = clock_now(c->iface);
	send_probe(c, WEFT_FRAME_PROBE_PING, 0);
}

/* @return ns per frame of the train; 0 = too few frames arrived */
static float frame_time(const struct raw_measure *m)
{
	if (m->best > 0)
		return m->best;
	if (m->done < 2 * SLOW_SKIP)
		return 0;
	return (float)(m->last - m->slow_mark) / (float)(m->done - SLOW_SKIP);
}

static void train_mark(struct raw_conn *c)
{
	struct raw_measure *m = &c->hs->measure;
	uint64_t now = clock_now(c->iface);
	float ns;

	if (++m->done % STRETCH == 0) {
		ns = (float)(now - m->mark) / STRETCH;
		if (m->done > STRETCH && (m->best <= 0 || ns < m->best))
			m->best = ns;
		m->mark = now;
	}
	/* On a slow path, which completes no second stretch, the frames after this one count. */
	if (m->done == SLOW_SKIP)
		m->slow_mark = now;
	m->last = now;
	c->measured.frame = frame_time(m);
}

/* @return ns of checking a PROBE's CRC32C, which are subtracted where data has no CRC32C */
static uint32_t check_time(struct raw_conn *c)
{
	uint64_t begin, end;

	memset(c->iface->scratch, 0, c->frame_size);
	begin = clock_now(c->iface);
	if (weft_crc32c(WEFT_CRC32C_INIT, c->iface->scratch, c->frame_size) == 1)
		return 0; /* with a use of the result the compiler keeps the call */
	end = clock_now(c->iface);
	return (uint32_t)(end - begin);
}

bool raw_measure_begin(struct raw_conn *c)
{
	if (!(c->iface->port->flags & WEFT_FRAME_PORT_MEASURE))
		return false;
	c->hs->measure = (struct raw_measure){.begin = clock_now(c->iface)};
	c->measured = (struct raw_measured){0};
	c->hs_next = c->iface->live_clock +
		     RTE_MAX(LIMIT_NS, LONG_TRIPS * (uint64_t)c->path[0].rtt.first);
	raw_deadline_live(c, c->hs_next);
	send_ping(c);
	return true;
}

static void train_begin(struct raw_conn *c)
{
	struct raw_measure *m = &c->hs->measure;

	/* On a long path the train would measure its own window. */
	if (!(c->iface->port->flags & WEFT_FRAME_PORT_GUESS) || c->measured.rtt >= LONG_NS) {
		raw_hs_ready(c);
		return;
	}
	if (m->until != 0)
		return; /* the acknowledgement arrived twice */
	m->pings = PINGS;
	c->measured.check = check_time(c);
	m->until = c->hs_next;
	c->hs_next = c->iface->live_clock;
	raw_deadline_live(c, c->iface->live_clock);
}

void raw_measure_ack(struct raw_conn *c, uint16_t id, uint16_t kind)
{
	struct raw_measure *m = &c->hs->measure;
	uint64_t now = clock_now(c->iface);

	if (kind == WEFT_FRAME_PROBE_PING && id == c->probe_id && m->out == 0) {
		rtt_sample(c, now - m->sent);
		if (m->pings < PINGS && m->same < PINGS_SAME &&
		    (m->pings < (c->measured.rtt >= LONG_NS ? LONG_PINGS : PINGS_MIN) ||
		     now - m->begin < PING_NS))
			send_ping(c);
		else
			train_begin(c);
	} else if (kind == WEFT_FRAME_PROBE_TRAIN && m->done < m->out) {
		train_mark(c);
		if (m->done == TRAIN)
			raw_hs_ready(c);
	}
}

void raw_measure_timer(struct raw_conn *c)
{
	struct raw_measure *m = &c->hs->measure;
	unsigned int room = raw_txq_space(c->iface) / 2, n;

	if (m->pings < PINGS || c->iface->live_clock >= m->until) {
		raw_hs_ready(c);
		return;
	}
	n = RTE_MIN(RTE_MIN(TRAIN - m->out, AT_ONCE), room);
	for (; n > 0 && (uint32_t)m->out - m->done < RTE_MIN(WINDOW, c->hs->peer_rx_frames / 2);
	     n--) {
		if (send_probe(c, WEFT_FRAME_PROBE_TRAIN, c->frame_size) != 0)
			break;
		m->out++;
	}
	c->hs_next = c->iface->live_clock + 1;
	raw_deadline_live(c, c->hs_next);
}

void raw_measure_probe(struct raw_conn *c, uint16_t id, uint16_t kind)
{
	struct raw_measure *m;
	uint64_t now;

	if (!c->hs)
		return; /* a late probe: the handshake is over */
	m = &c->hs->measure;
	if (kind == WEFT_FRAME_PROBE_PING) {
		now = clock_now(c->iface);
		/* Only a ping that directly follows the last answer measures a round trip. */
		if (m->sent != 0 && id == (uint16_t)(m->id + 1))
			rtt_sample(c, now - m->sent);
		m->id = id;
		m->sent = now;
	} else if (kind == WEFT_FRAME_PROBE_TRAIN && m->done < TRAIN) {
		if (m->done == 0)
			c->measured.check = check_time(c);
		train_mark(c);
	}
}

void raw_ep_measured(struct weft_lane_ep *lane_ep, struct weft_lane_measured *out)
{
	const struct raw_conn *c = raw_conn_of(lane_ep);
	const struct raw_measured *m = &c->measured;
	double ns = (double)m->frame;

	out->latency = (double)m->rtt * 0.5e-9;
	if (c->iface->port->flags & WEFT_FRAME_PORT_MEMORY && m->rtt > MEMORY_RTT_MAX)
		out->latency = 0;
	/* A window of the train took hardly longer than a round trip: it was the limit. */
	if (ns > 0 && m->rtt != 0 && ns * WINDOW < 1.5 * m->rtt)
		ns = 0;
	if (c->csum != WEFT_FRAME_CSUM_CRC32C && ns > 2.0 * m->check)
		ns -= m->check;
	out->bandwidth = ns > 0 ? c->tx.room * 1e9 / ns : 0;
}
