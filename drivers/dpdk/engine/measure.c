/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * How long is the way, and how wide? Between the PROBE that has found the frame size and READY the
 * initiator asks by some more PROBEs, so that protocols are chosen by what is there and not by what
 * a driver states:
 *
 *   PING   small, one after the other, each answered at once, until the least round trip gets no
 *   less: others had a peer
 *          in them that was busy connecting, or memory touched for the first time.
 *   TRAIN  of full frames, answered by small ones, where nobody knows the bandwidth (virtual links,
 *   NICs without a link
 *          speed). Some are always on their way; the fastest stretch behind the first one counts: a
 *          bucket of tokens is empty by then, and slower ones were interrupted.
 *
 * The responder sees the same from its side: PINGs follow its answers, the TRAIN arrives. Nothing
 * depends on any of it: frames may get lost, time is bounded, peers that don't know PING and TRAIN
 * take them for small probes.
 */

#include <string.h>

#include <rte_common.h>

#include "engine/build.h"
#include "engine/conn.h"
#include "engine/connect.h"
#include "engine/timer.h"
#include "engine/txq.h"
#include "frame/csum.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "lane.h"

#define PINGS 64u
#define PINGS_SAME 12u   /* so many without result after the best one are enough */
#define PING_NS 2000000u /* no further ping is begun after so long, unless there were */
#define PINGS_MIN \
	4u /* fewer: on a narrow way the first waits behind full PROBEs that were sent again */
/*
 * Memory is not that far: the peer was busy with connecting all the time, and what is stated is
 * nearer to the truth.
 */
#define MEMORY_RTT_MAX 4000u
#define TRAIN 96u
#define WINDOW 24u
#define AT_ONCE 4u
#define SLOW_SKIP 4u
#define STRETCH 32u
#define LIMIT_NS 12000000u /* of lt: for all of it */

static uint64_t clock_now(const struct raw_conn *c)
{
	const struct weft_platform *pf = c->iface->platform;

	return pf->now(pf->arg);
}

static void sample(struct raw_measure *m, uint64_t ns)
{
	m->same++;
	if (ns >= UINT32_MAX || (m->rtt != 0 && ns >= m->rtt))
		return;
	if (m->rtt == 0 || ns < m->rtt - m->rtt / 8)
		m->same = 0;
	m->rtt = ns > 0 ? (uint32_t)ns : 1;
}

static int send_probe(struct raw_conn *c, uint16_t kind, uint32_t pad_to)
{
	struct weft_frame_probe p = {
		.id = weft_put16(++c->probe_id),
		.frame_size = weft_put16(kind),
	};

	return raw_ctl_send(c, WEFT_FRAME_PROBE, 0, &p, sizeof(p), pad_to);
}

static void ping(struct raw_conn *c)
{
	c->measure.pings++;
	c->measure.sent = clock_now(c);
	send_probe(c, WEFT_FRAME_PROBE_PING, 0);
}

/*
 * A frame of the train is over. Of the stretches behind the first one the fastest counts: slower
 * ones were interrupted.
 */
static void mark(struct raw_conn *c)
{
	struct raw_measure *m = &c->measure;
	uint64_t now = clock_now(c);
	float ns;

	if (++m->done % STRETCH == 0) {
		ns = (float)(now - m->mark) / STRETCH;
		if (m->done > STRETCH && (m->best <= 0 || ns < m->best))
			m->best = ns;
		m->mark = now;
	}
	/* What a slow way has let through by the end has to do. */
	if (m->done == SLOW_SKIP)
		m->slow_mark = now;
	m->last = now;
}

/* PROBEs are checked by CRC32C wherever they come from; data may not be. */
static uint32_t check_time(struct raw_conn *c)
{
	uint64_t begin, end;

	memset(c->iface->scratch, 0, c->frame_size);
	begin = clock_now(c);
	if (weft_crc32c(WEFT_CRC32C_INIT, c->iface->scratch, c->frame_size) == 1)
		return 0; /* cannot be optimised away */
	end = clock_now(c);
	return (uint32_t)(end - begin);
}

bool raw_measure_begin(struct raw_conn *c)
{
	if (!(c->iface->port->flags & WEFT_FRAME_PORT_MEASURE))
		return false;
	c->measure = (struct raw_measure){.begin = clock_now(c)};
	c->hs_next = c->iface->lt + LIMIT_NS;
	raw_deadline_lt(c, c->hs_next);
	ping(c);
	return true;
}

static void train_begin(struct raw_conn *c)
{
	struct raw_measure *m = &c->measure;

	if (!(c->iface->port->flags & WEFT_FRAME_PORT_GUESS)) {
		raw_hs_ready(c);
		return;
	}
	if (m->until != 0)
		return; /* the acknowledgement came twice */
	m->pings = PINGS;
	m->check = check_time(c);
	m->until = c->hs_next;
	c->hs_next = c->iface->lt;
	raw_deadline_lt(c, c->iface->lt);
}

void raw_measure_ack(struct raw_conn *c, uint16_t id, uint16_t kind)
{
	struct raw_measure *m = &c->measure;
	uint64_t now = clock_now(c);

	if (kind == WEFT_FRAME_PROBE_PING && id == c->probe_id && m->out == 0) {
		sample(m, now - m->sent);
		if (m->pings < PINGS && m->same < PINGS_SAME &&
		    (m->pings < PINGS_MIN || now - m->begin < PING_NS))
			ping(c);
		else
			train_begin(c);
	} else if (kind == WEFT_FRAME_PROBE_TRAIN && m->done < m->out) {
		mark(c);
		if (m->done == TRAIN)
			raw_hs_ready(c);
	}
}

/* hs_next has come: the train goes on a little with each call, or it has taken too long. */
void raw_measure_timer(struct raw_conn *c)
{
	struct raw_measure *m = &c->measure;
	unsigned int room = raw_txq_space(c->iface) / 2, n;

	if (m->pings < PINGS || c->iface->lt >= m->until) {
		raw_hs_ready(c);
		return;
	}
	n = RTE_MIN(RTE_MIN(TRAIN - m->out, AT_ONCE), room);
	for (; n > 0 && (uint32_t)m->out - m->done < RTE_MIN(WINDOW, c->peer_rx_frames / 2); n--) {
		if (send_probe(c, WEFT_FRAME_PROBE_TRAIN, c->frame_size) != 0)
			break;
		m->out++;
	}
	c->hs_next = c->iface->lt + 1;
	raw_deadline_lt(c, c->hs_next);
}

void raw_measure_probe(struct raw_conn *c, uint16_t id, uint16_t kind)
{
	struct raw_measure *m = &c->measure;
	uint64_t now;

	if (kind == WEFT_FRAME_PROBE_PING) {
		now = clock_now(c);
		/* Only the one that followed our answer: it is a round trip old. */
		if (m->sent != 0 && id == (uint16_t)(m->id + 1))
			sample(m, now - m->sent);
		m->id = id;
		m->sent = now;
	} else if (kind == WEFT_FRAME_PROBE_TRAIN && m->done < TRAIN) {
		if (m->done == 0)
			m->check = check_time(c);
		mark(c);
	}
}

/* ns per frame of the train, or 0 = too few came */
static double frame_time(const struct raw_measure *m)
{
	if (m->best > 0)
		return (double)m->best;
	if (m->done < 2 * SLOW_SKIP)
		return 0;
	return (double)(m->last - m->slow_mark) / (m->done - SLOW_SKIP);
}

void raw_ep_measured(struct weft_lane_ep *lane_ep, struct weft_lane_measured *out)
{
	const struct raw_conn *c = raw_conn_of(lane_ep);
	const struct raw_measure *m = &c->measure;
	double ns = frame_time(m);

	out->latency = (double)m->rtt * 0.5e-9;
	if (c->iface->port->flags & WEFT_FRAME_PORT_MEMORY && m->rtt > MEMORY_RTT_MAX)
		out->latency = 0;
	/* Too short a way between too few frames: the window was the limit, the lane is faster. */
	if (ns > 0 && m->rtt != 0 && ns * WINDOW < 1.5 * m->rtt)
		ns = 0;
	if (c->csum != WEFT_FRAME_CSUM_CRC32C && ns > 2.0 * m->check)
		ns -= m->check;
	out->bandwidth = ns > 0 ? c->room * 1e9 / ns : 0;
}
