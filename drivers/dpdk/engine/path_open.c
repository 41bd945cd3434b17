/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

#include "engine/build.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/multipath.h"
#include "engine/path_change.h"
#include "engine/path_open.h"
#include "engine/reliability.h"
#include "engine/rules.h"
#include "engine/window.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "frame/parse.h"

/* ---------------------------------------------------------------- ports */

/* Tries of a handshake step in which ports are chosen by the hash that the driver reports. */
#define TRUST 8u
#define PATIENT 3u /* rounds of HELLO from the usual port only, where ports choose no queue */
#define HELLOS_MAX 32u

static const struct weft_rss *trusted_rss(const struct raw_conn *c)
{
	return c->hash_wrong || c->hs_tries >= TRUST ? NULL : c->iface->port->steering.rss;
}

/* @return N, if one of N tried ports leads to the right queues of both ends */
static unsigned int queue_odds(const struct raw_conn *c)
{
	const struct weft_steering *s = &c->iface->port->steering;
	unsigned int n = RTE_MAX(c->peer_queues, 1u);

	return s->hashed && !trusted_rss(c) ? n * s->queues : n;
}

bool raw_paths_spread(const struct raw_conn *c)
{
	return c->peer_queues > 0 || c->iface->port->steering.hashed;
}

unsigned int raw_paths_hellos(const struct raw_conn *c)
{
	return raw_paths_spread(c) ? RTE_MIN(4 * queue_odds(c), HELLOS_MAX) : 1;
}

/*
 * If ports choose no queue, path 0 has the port on which all listen. After PATIENT tries every
 * second HELLO takes another port, as a network may drop one flow.
 */
static uint16_t next_port(struct raw_conn *c, unsigned int path)
{
	const struct raw_iface *iface = c->iface;
	const struct weft_steering *s = &iface->port->steering;
	struct weft_path_choice choice = {
		.range = iface->rx_filter.range,
		.range_max = s->range_max,
		.rss = trusted_rss(c),
		.queue = s->queue,
		.spread = raw_paths_spread(c) || (c->hs_tries >= PATIENT && c->hs_tries % 2),
		.ip = iface->rx_filter.ip,
		.peer_ip = c->peer_ip,
		.port = iface->rx_filter.udp_port,
		.peer_port = c->peer_port,
		.token = c->token,
	};

	return weft_path_port(&choice, path, &c->port_cursor);
}

void raw_paths_next(struct raw_conn *c, unsigned int path)
{
	if (c->iface->rx_filter.raw_ethertype)
		return;
	c->path[path].sport = next_port(c, path);
	c->path[path].dport = c->peer_port;
}

bool raw_paths_ignored(struct raw_conn *c, bool any)
{
	if (!c->iface->rx_elsewhere)
		return false;
	if (any) {
		c->elsewhere = true;
		return false;
	}
	raw_count(c->iface, RAW_STEER_WRONG);
	/* The driver's report is wrong, or a device between the ends has changed the ports. */
	c->hash_wrong = true;
	return true;
}

/* ---------------------------------------------------------------- opening */

/*
 * Only the initiator chooses ports. It sends PROBE{PATH} from a new port. This changes nothing, but
 * the answer shows that both directions carry frames. Then the initiator sends PROBE{USE}, and the
 * responder sends to that port from then on. A responder that needs a path requests it by
 * PROBE{WANT}.
 */

#define OPEN_STEP 1000000u /* ns by which the wait after each probe grows */
/* An attempt ends after N probes without an answer: a device may drop all other ports. */
#define OPEN_TRIES 16u
/* ns from a failed attempt to the next: the first wait and the longest; each wait doubles */
#define OPEN_AGAIN_MIN 200000000ull
#define OPEN_AGAIN_MAX 10000000000ull
#define RESERVE_FRAMES 32u
#define USE_MIN 1000000ull /* ns from the first USE to the second, at least; then it doubles */
#define USE_TRIES 4u
#define OTHER_PORTS 64u /* tries to find a port that no path has */

static bool is_ours(const struct raw_conn *c)
{
	return !c->base.passive && !c->iface->rx_filter.raw_ethertype;
}

/* Where ports choose the receive queue, only the handshake searches ports of further paths. */
bool raw_multi_can_open(const struct raw_conn *c)
{
	return c->iface->paths_auto && !raw_paths_spread(c) && c->path_count < RAW_PATHS_AUTO;
}

/* @return a port that no path has; after OTHER_PORTS tries the last one tried */
static uint16_t fresh_port(struct raw_conn *c)
{
	uint16_t port = 0;
	bool taken = true;

	for (unsigned int i = 0; i < OTHER_PORTS && taken; i++) {
		port = next_port(c, 1);
		taken = false;
		for (unsigned int k = 0; k < c->path_count; k++)
			taken |= c->path[k].sport == port;
	}
	return port;
}

static struct weft_frame_probe new_probe(struct raw_conn *c, uint8_t k, uint16_t kind)
{
	c->multi->path[k].last_id = ++c->probe_id;
	return (struct weft_frame_probe){
		.id = weft_put16(c->multi->path[k].last_id),
		.frame_size = weft_put16(kind),
	};
}

int raw_path_probe_send(struct raw_conn *c, uint8_t k)
{
	struct weft_frame_probe p = new_probe(c, k, WEFT_FRAME_PROBE_OVER);

	return raw_ctl_send_on(c, k, WEFT_FRAME_PROBE, 0, &p, sizeof(p), 0);
}

int raw_path_request(struct raw_conn *c, uint8_t k)
{
	struct weft_frame_probe p = new_probe(c, k, WEFT_FRAME_PROBE_PATH);

	return raw_ctl_send_by(c, k, fresh_port(c), c->peer_port, WEFT_FRAME_PROBE, &p, sizeof(p));
}

/* This end uses the new port once USE is answered; until then frames take the previous one. */
static void send_use(struct raw_conn *c, uint8_t k)
{
	struct raw_multi_path *m = &c->multi->path[k];
	struct weft_frame_probe p = {
		.id = weft_put16(m->last_id),
		.frame_size = weft_put16(WEFT_FRAME_PROBE_USE),
	};
	uint64_t wait = RTE_MAX(2ull * c->base.rtt_ns, USE_MIN);

	raw_ctl_send_by(c, k, m->use_port, c->peer_port, WEFT_FRAME_PROBE, &p, sizeof(p));
	m->use_at = c->iface->tx_clock + (wait << m->use_tries++);
	raw_deadline_tx(c, m->use_at);
}

bool raw_path_using(struct raw_conn *c, uint8_t k)
{
	struct raw_multi_path *m = &c->multi->path[k];

	if (m->use_port == 0)
		return false;
	if (c->iface->tx_clock < m->use_at)
		raw_deadline_tx(c, m->use_at);
	else if (m->use_tries < USE_TRIES)
		send_use(c, k);
	else
		m->use_port = 0;
	return m->use_port != 0;
}

/* The request takes the path in use, and with each further try the next path. */
void raw_path_want(struct raw_conn *c, uint8_t k)
{
	struct weft_frame_probe p = {
		.id = weft_put16(k),
		.frame_size = weft_put16(WEFT_FRAME_PROBE_WANT),
	};

	raw_ctl_send_on(c, (uint8_t)((c->next_path + c->multi->open_tries) % c->path_count),
			WEFT_FRAME_PROBE, 0, &p, sizeof(p), 0);
}

/* ---------------------------------------------------------------- ports of a new path */

void raw_path_open(struct raw_conn *c)
{
	struct raw_multi *mp;

	if (!raw_multi_can_open(c) || raw_multi_need(c) != 0)
		return;
	mp = c->multi;
	if (mp->opening || c->iface->tx_clock < mp->open_again_at)
		return;
	mp->opening = true;
	mp->open_tries = 0;
	mp->open_at = c->iface->tx_clock;
	raw_deadline_tx(c, mp->open_at);
}

/* A path is opened in advance: if the direction to this end fails, no request for one arrives. */
void raw_path_reserve(struct raw_conn *c)
{
	if (c->path[0].order + (c->rx.win.next - c->rx.first) >= RESERVE_FRAMES)
		raw_path_open(c);
}

void raw_path_open_timer(struct raw_conn *c)
{
	struct raw_multi *mp = c->multi;

	if (!mp->opening || raw_path_using(c, c->path_count))
		return;
	if (c->iface->tx_clock >= mp->open_at) {
		if (++mp->open_tries > OPEN_TRIES || !raw_multi_can_open(c)) {
			mp->opening = false;
			mp->open_again = RTE_MIN(RTE_MAX(2 * mp->open_again, OPEN_AGAIN_MIN),
						 OPEN_AGAIN_MAX);
			mp->open_again_at = c->iface->tx_clock + mp->open_again;
			return;
		}
		if (is_ours(c))
			raw_path_request(c, c->path_count);
		else
			raw_path_want(c, c->path_count);
		mp->open_at = c->iface->tx_clock + mp->open_tries * OPEN_STEP;
	}
	raw_deadline_tx(c, mp->open_at);
}

/* Opens path @p k. @return false: k is not the next number, or there is no memory */
static bool one_more(struct raw_conn *c, uint8_t k)
{
	if (k != c->path_count || raw_state_paths(c, k + 1u) != 0 ||
	    (c->tx.cc && raw_window_more(c) != 0))
		return false;
	c->path_count++;
	c->multi->open |= (uint16_t)(1u << k);
	c->multi->opening = false;
	c->multi->open_again = 0;
	raw_count(c->iface, RAW_PATH_OPENED);
	return true;
}

/* ---------------------------------------------------------------- receiving */

/* Path @p k has other ports: its round trip is unknown. The farewell takes the ports of path 0. */
static void ports_changed(struct raw_conn *c, uint8_t k)
{
	c->path[k].rtt = (struct weft_rtt){0};
	if (k == 0 && c->state == RAW_UP)
		raw_farewell_enter(c);
}

void raw_path_answer(struct raw_conn *c, const struct weft_frame_view *v, uint16_t kind)
{
	uint8_t k = v->hdr->path;
	struct raw_multi_path *m = &c->multi->path[k];

	if (!is_ours(c) || k > c->path_count || (k == c->path_count && !raw_multi_can_open(c)))
		return;
	if (kind == WEFT_FRAME_PROBE_PATH) {
		if (raw_paths_ignored(c, false))
			return;
		/* The peer ignores a USE with a lower number than the path's last one. */
		m->last_id = ++m->use_id;
		m->use_port = v->dst_port;
		m->use_tries = 0;
		send_use(c, k);
		return;
	}
	if (m->use_port == 0)
		return;
	if (k == c->path_count && !one_more(c, k))
		return;
	c->path[k].sport = m->use_port;
	c->path[k].dport = c->peer_port;
	ports_changed(c, k);
	m->use_port = 0;
	raw_multi_renewed(c, k);
}

/* Answers by the ports of the probe, which need not be those of the path. */
static void answer_trial(struct raw_conn *c, const struct weft_frame_view *v)
{
	raw_ctl_send_by(c, v->hdr->path, v->dst_port, v->src_port, WEFT_FRAME_PROBE_ACK, v->body,
			sizeof(struct weft_frame_probe));
}

/* Takes the port of a USE. @return true: USE is to be answered over path v->hdr->path */
static bool take_port(struct raw_conn *c, const struct weft_frame_view *v, uint16_t id)
{
	struct raw_multi_path *m;
	uint8_t k = v->hdr->path;

	if (!c->base.passive || k > c->path_count || k >= WEFT_FRAME_PATHS_MAX ||
	    raw_multi_need(c) != 0)
		return false;
	/* An older USE may arrive late: its port is no longer in use. */
	m = &c->multi->path[k];
	if ((int16_t)(id - m->use_id) < 0)
		return false;
	if (k == c->path_count && !one_more(c, k))
		return false;
	m->use_id = id;
	if (c->path[k].dport == v->src_port)
		return true;
	c->path[k].sport = c->iface->rx_filter.udp_port;
	c->path[k].dport = v->src_port;
	ports_changed(c, k);
	raw_multi_probe_soon(c, k);
	return true;
}

static void give_port(struct raw_conn *c, uint16_t k)
{
	if (!is_ours(c) || k > c->path_count)
		return;
	if (k == c->path_count)
		raw_path_open(c);
	else if (c->multi && c->iface->tx_clock >= c->multi->path[k].given_at &&
		 c->multi->path[k].use_port == 0) {
		c->multi->path[k].given_at = c->iface->tx_clock + WEFT_PATH_PROBE_WAIT_MIN;
		raw_path_request(c, (uint8_t)k);
	}
}

bool raw_path_probe(struct raw_conn *c, const struct weft_frame_view *v, uint8_t *over)
{
	const struct weft_frame_probe *p = (const struct weft_frame_probe *)v->body;
	uint16_t kind = weft_get16(p->frame_size);
	uint8_t k = v->hdr->path;

	*over = 0;
	switch (kind) {
	case WEFT_FRAME_PROBE_PATH:
	case WEFT_FRAME_PROBE_PATH_ANY:
		if (raw_paths_ignored(c, kind == WEFT_FRAME_PROBE_PATH_ANY))
			return false;
		if (k >= WEFT_FRAME_PATHS_MAX)
			raw_count(c->iface, RAW_DROP_BAD_TYPE);
		else
			answer_trial(c, v);
		return false;
	case WEFT_FRAME_PROBE_USE:
		*over = k;
		return c->state == RAW_UP && take_port(c, v, weft_get16(p->id));
	case WEFT_FRAME_PROBE_OVER:
		*over = k < c->path_count ? k : 0;
		return true;
	case WEFT_FRAME_PROBE_WANT:
		if (c->state == RAW_UP)
			give_port(c, weft_get16(p->id));
		return false;
	}
	if (c->state == RAW_HALF_OPEN)
		c->path[0].dport = v->src_port;
	else if (kind == 0 || kind >= WEFT_FRAME_SIZE_FLOOR)
		*over = raw_came_over(c, v); /* a probe of the search for the MTU (engine/mtu.c) */
	return true;
}

/* ---------------------------------------------------------------- trials */

/*
 * If no number of paths is configured, one carries new frames until trials (engine/rules.h) show
 * that more help. A trial is made while the window holds frames back, a queue grows or frames are
 * lost.
 */

#define PAIR_NS 50000u     /* ns from one pair to the next, at least (pair_wait()) */
#define SILENT_TIMEOUTS 2u /* timeouts in a row that end a trial, or delay it */
/* ns from a failed trial to the next: at first and at most, as each failure doubles it */
#define AGAIN_MIN 10000000ull
#define AGAIN_MAX 10000000000ull
/* ns until half of the paths are tried: at first and at most; doubles when half are too few */
#define FEWER_MIN 1000000000ull
#define FEWER_MAX 64000000000ull
/* Spans that are compared, and the time for windows to grow: in round trips, and at least in ns. */
#define SPAN_TRIPS 32u
#define SPAN_NS 40000000ull
#define SETTLE_TRIPS 8u
#define SETTLE_NS 5000000ull
/* Frames and round trips after which losses are counted. */
#define LOOK_FRAMES 256u
#define LOOK_TRIPS 8u
/* A span of frequent losses adds 2 or 4, any other takes 1 away: from when on, and at most. */
#define POLICED 3u
#define POLICED_MOST 6u
/* Round trips exceed the least one by this part of it, or by ns if that is more; never by 1/4. */
#define CALM_PARTS 16u
#define CALM_NS 125000u
#define WAIT_SPANS 10u /* spans from a change that failed to the next one, at least */

static unsigned int count_paths(uint16_t mask)
{
	return (unsigned int)__builtin_popcount(mask);
}

static uint16_t spare_paths(const struct raw_multi *mp)
{
	return mp->open & (uint16_t) ~(mp->active | mp->bad);
}

static void probe_over(struct raw_conn *c, uint8_t k, uint16_t id)
{
	struct weft_frame_probe p = {
		.id = weft_put16(id),
		.frame_size = weft_put16(WEFT_FRAME_PROBE_OVER),
	};

	raw_ctl_send_on(c, k, WEFT_FRAME_PROBE, 0, &p, sizeof(p),
			RTE_MIN(c->tx.cut, c->frame_size));
}

/* Sends a pair of full frames: a queue with room for small frames may have none for data. */
static void begin_pair(struct raw_conn *c)
{
	struct raw_multi *mp = c->multi;
	uint16_t used = mp->active & (uint16_t)~mp->bad;
	struct weft_trial_pair *p;

	if (used == 0 || raw_txq_space(c->iface) < 4)
		return;
	mp->trial_used = (uint8_t)weft_path_other(used, mp->trial_used);
	if (!(used >> mp->trial_used & 1))
		mp->trial_used = c->next_path;
	mp->trial_spare = (uint8_t)weft_path_other(spare_paths(mp), mp->trial_spare);
	c->probe_id += 2;
	p = weft_trial_send(&mp->trial, c->iface->now, (uint16_t)(c->probe_id - 1), mp->trial_used,
			    mp->trial_spare);
	/* The two paths send first in turn. */
	if (mp->trial.sent % 2)
		probe_over(c, p->spare_path, (uint16_t)(p->id + 1));
	probe_over(c, p->used_path, p->id);
	if (mp->trial.sent % 2 == 0)
		probe_over(c, p->spare_path, (uint16_t)(p->id + 1));
}

/* @return ns to the next pair, whose two frames add at most an eighth to the bytes of a path */
static uint64_t pair_wait(const struct raw_conn *c)
{
	uint32_t window = c->tx.cc ? c->tx.cc[c->next_path].window : c->tx.inflight;
	uint64_t rtt = c->base.rtt_ns, share;

	share = 16 * rtt * c->frame_size / RTE_MAX(window, c->frame_size / 64u);
	return RTE_MAX(RTE_MAX(rtt / 2, share), PAIR_NS);
}

static void trial_begin(struct raw_multi *mp)
{
	mp->trial = (struct weft_path_trial){0};
	mp->on_trial = true;
}

/* More paths were found to help. */
static void more_paths(struct raw_multi *mp, uint64_t tx_clock)
{
	if (mp->fewer_ns != 0 && tx_clock - mp->fewer_at < FEWER_MIN)
		/* the smaller number of paths was too small: try it again later */
		mp->fewer_ns = RTE_MIN(2 * mp->fewer_ns, FEWER_MAX);
	else
		mp->fewer_ns = FEWER_MIN;
	mp->again = 0;
	mp->trial_at = tx_clock;
	mp->more_at = tx_clock;
}

static void trial_end(struct raw_conn *c, bool more)
{
	struct raw_multi *mp = c->multi;
	uint64_t tx_clock = c->iface->tx_clock;

	mp->on_trial = false;
	if (!more) {
		mp->again = RTE_MIN(RTE_MAX(2 * mp->again, AGAIN_MIN), AGAIN_MAX);
		mp->trial_at = tx_clock + mp->again;
		return;
	}
	raw_count(c->iface, RAW_PATH_MORE);
	more_paths(mp, tx_clock);
	mp->change.by_loss = false;
	raw_multi_activate(c, mp->active | spare_paths(mp));
}

/* ---------------------------------------------------------------- spans */

static void span_begin(struct raw_conn *c)
{
	struct raw_multi_change *ch = &c->multi->change;

	ch->at = c->iface->tx_clock;
	ch->next = c->tx.next;
	ch->again = c->base.retransmits;
	c->path_busy = false;
}

static struct weft_path_span span_now(const struct raw_conn *c)
{
	const struct raw_multi_change *ch = &c->multi->change;

	return (struct weft_path_span){
		.ns = c->iface->tx_clock - ch->at,
		.frames = c->tx.next - ch->next,
		.again = c->base.retransmits - ch->again,
		.busy = c->path_busy,
	};
}

/* @return ns of the present step of a change */
static uint64_t step_ns(const struct raw_conn *c)
{
	uint64_t rtt = weft_rtt_known(raw_timer_slowest(c));

	return c->multi->change.step == RAW_CHANGE_SETTLE ? RTE_MAX(SETTLE_TRIPS * rtt, SETTLE_NS)
							  : RTE_MAX(SPAN_TRIPS * rtt, SPAN_NS);
}

static void step_begin(struct raw_conn *c)
{
	span_begin(c);
	raw_deadline_tx(c, c->iface->tx_clock + step_ns(c));
}

static void change_paths(struct raw_conn *c, uint16_t mask)
{
	bool more = count_paths(mask) > count_paths(c->multi->active);

	if (mask == c->multi->active)
		return;
	raw_count(c->iface, more ? RAW_PATH_MORE : RAW_PATH_FEWER);
	raw_multi_activate(c, mask);
}

static void change_begin(struct raw_conn *c, uint16_t to)
{
	struct raw_multi *mp = c->multi;
	unsigned int n = count_paths(mp->active);

	mp->on_trial = false;
	mp->change.step = RAW_CHANGE_SPAN;
	mp->change.from = mp->active;
	mp->change.to = to;
	for (unsigned int k = 0; k < c->path_count; k++)
		mp->change.window[k] = c->tx.cc[k].window;
	weft_change_begin(&mp->change.test, n, count_paths(to) < n, mp->change.by_loss);
	step_begin(c);
}

/* The frames of a change shared a queue with those of further paths, so their losses count less. */
static void windows_back(struct raw_conn *c)
{
	const struct raw_multi_change *ch = &c->multi->change;

	for (unsigned int k = 0; k < c->path_count; k++) {
		struct weft_cc *cc = &c->tx.cc[k];

		if (!(ch->from >> k & 1))
			continue;
		cc->window = RTE_MAX(cc->window, ch->window[k]);
		cc->limit = RTE_MAX(cc->limit, cc->window);
	}
}

static void change_end(struct raw_conn *c, bool stays)
{
	struct raw_multi *mp = c->multi;
	struct raw_multi_change *ch = &mp->change;
	uint64_t tx_clock = c->iface->tx_clock, wait = WAIT_SPANS * step_ns(c);

	if (!stays)
		windows_back(c);
	change_paths(c, stays ? ch->to : ch->from);
	ch->step = RAW_CHANGE_NONE;
	ch->policed = 0;
	ch->by_loss &= count_paths(mp->active) > 1;
	if (ch->test.fewer) {
		mp->more_at = tx_clock;
		if (stays)
			mp->fewer_at = tx_clock;
		else
			mp->fewer_ns = RTE_MIN(2 * mp->fewer_ns, FEWER_MAX);
	} else if (stays) {
		more_paths(mp, tx_clock);
		ch->by_loss = true;
		ch->wait = 0;
	} else {
		ch->wait = RTE_MIN(RTE_MAX(2 * ch->wait, wait), RTE_MAX(AGAIN_MAX, wait));
		ch->try_at = tx_clock + ch->wait;
	}
	span_begin(c);
}

static void change_step(struct raw_conn *c)
{
	struct raw_multi_change *ch = &c->multi->change;
	struct weft_path_span s = span_now(c);
	enum weft_change_next next;

	if (ch->step == RAW_CHANGE_SPAN && s.ns >= step_ns(c) / 4 &&
	    weft_change_hurts(&ch->test, &s)) {
		change_end(c, false);
		return;
	}
	if (s.ns < step_ns(c)) {
		raw_deadline_tx(c, ch->at + step_ns(c));
		return;
	}
	if (ch->step == RAW_CHANGE_SETTLE) {
		ch->step = RAW_CHANGE_SPAN;
	} else {
		next = weft_change_span(&ch->test, &s);
		if (next != WEFT_CHANGE_TURN) {
			change_end(c, next == WEFT_CHANGE_STAY);
			return;
		}
		ch->step = RAW_CHANGE_SETTLE;
		change_paths(c, ch->test.spans % 2 ? ch->to : ch->from);
	}
	step_begin(c);
}

/* @return true: no path in use has a queue or jitter */
static bool is_calm(const struct raw_conn *c)
{
	for (unsigned int k = 0; k < c->path_count; k++) {
		const struct weft_rtt *r = &c->path[k].rtt;

		if (c->multi->active >> k & 1 &&
		    r->srtt - r->min > RTE_MIN(r->min / 4, RTE_MAX(r->min / CALM_PARTS, CALM_NS)))
			return false;
	}
	return true;
}

/* One span is chance: bursts of loss, or the begin of the connection. */
static bool is_policed(const struct raw_conn *c, const struct weft_path_span *s)
{
	struct raw_multi_change *ch = &c->multi->change;

	if (is_calm(c) && weft_span_policed(s, ch->by_loss))
		ch->policed = RTE_MIN(ch->policed + (4ull * s->again > s->frames ? 4u : 2u),
				      POLICED_MOST);
	else if (ch->policed > 0)
		ch->policed--;
	return ch->policed >= (ch->by_loss ? 1 : POLICED);
}

/* @return true: frames are lost as if by a policer, and a change has begun */
static bool try_more(struct raw_conn *c)
{
	struct raw_multi *mp = c->multi;
	struct weft_path_span s = span_now(c);

	if (s.frames < LOOK_FRAMES || s.ns < LOOK_TRIPS * weft_rtt_known(raw_timer_slowest(c)))
		return false;
	s.busy = true;
	mp->change.at = c->iface->tx_clock;
	mp->change.next = c->tx.next;
	mp->change.again = c->base.retransmits;
	if (!c->tx.cc || !is_policed(c, &s) || c->iface->tx_clock < mp->change.try_at)
		return false;
	if (count_paths(spare_paths(mp)) < RTE_MAX(count_paths(mp->active), 3u) &&
	    raw_multi_can_open(c)) {
		raw_path_open(c);
		return false;
	}
	if (spare_paths(mp) == 0)
		return false;
	change_begin(c, mp->active | spare_paths(mp));
	return true;
}

/* Halves the number of paths after fewer_ns: the reason for more paths may be gone. */
static bool try_fewer(struct raw_conn *c)
{
	struct raw_multi *mp = c->multi;
	uint16_t mask = mp->active;

	if (count_paths(mask) < 2 || mp->on_trial ||
	    c->iface->tx_clock - mp->more_at < mp->fewer_ns)
		return false;
	for (unsigned int n = count_paths(mask) / 2; n > 0; n--)
		mask &= (uint16_t)(mask - 1);
	if (mp->change.by_loss) {
		change_begin(c, mask);
		return true;
	}
	mp->fewer_at = c->iface->tx_clock;
	mp->more_at = c->iface->tx_clock;
	mp->trial_at = c->iface->tx_clock;
	raw_count(c->iface, RAW_PATH_FEWER);
	raw_multi_activate(c, mask);
	return false;
}

void raw_path_grow_timer(struct raw_conn *c)
{
	struct raw_multi *mp = c->multi;
	uint64_t tx_clock = c->iface->tx_clock;
	bool more;

	/* While the peer is silent no round trips can be compared. */
	if (c->tx.backoff >= SILENT_TIMEOUTS) {
		mp->on_trial = false;
		return;
	}
	if (mp->change.step != RAW_CHANGE_NONE) {
		change_step(c);
		return;
	}
	if (try_more(c))
		return;
	/* With pacing, many flows share a queue: further paths would not help. */
	if (c->tx.cc_gap != 0 || (!mp->on_trial && (!c->path_busy || tx_clock < mp->trial_at)))
		return;
	c->path_busy = false;
	if (try_fewer(c))
		return;
	/* A successful trial doubles the number of paths, so as many spare ones are needed. */
	if (count_paths(spare_paths(mp)) < count_paths(mp->active))
		raw_path_open(c);
	if (spare_paths(mp) == 0)
		return;
	if (!mp->on_trial)
		trial_begin(mp);
	if (tx_clock >= mp->pair_at) {
		more = weft_trial_result(&mp->trial) == WEFT_TRIAL_MORE;
		if (weft_trial_result(&mp->trial) != WEFT_TRIAL_ON) {
			trial_end(c, more);
			return;
		}
		begin_pair(c);
		mp->pair_at = tx_clock + pair_wait(c);
	}
	raw_deadline_tx(c, mp->pair_at);
}
