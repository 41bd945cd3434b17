/* SPDX-License-Identifier: BSD-3-Clause */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_common.h>

#include "base/log.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/multipath.h"
#include "engine/window.h"
#include "frame/parse.h"

/* With a smaller limit the sender requests ACKs: unrequested, one comes for every eighth frame. */
#define ACK_REQ_FRAMES (4 * RAW_ACK_FRAMES)

/* Timeouts with less than 1/N of the window in flight do not show that the window is too large. */
#define QUIET_PARTS 4u

/* Number of ACKs that report a mark, since some of them may be lost. */
#define MARK_ACKS 4u

static uint32_t full_frame(const struct raw_conn *c)
{
	return (uint32_t)c->frame_size - c->encap.len;
}

/*
 * A frame may leave while less than win_bytes is in flight: a full frame then stays within the
 * limit, or is the only one. With a gap, or with lost frames to be retransmitted, win_bytes is 0,
 * so that each send calls raw_window_paced().
 */
static void limits_update(struct raw_conn *c)
{
	uint64_t limit = 0, per_s = 0;
	uint32_t ack_req = INT32_MAX;
	bool paced = true;

	for (unsigned int i = 0; i < c->path_count; i++) {
		const struct weft_cc *cc = &c->tx.cc[i];
		struct raw_path *p = &c->path[i];

		if (!raw_multi_usable(c, i))
			continue;
		limit += cc->limit;
		paced &= cc->gap != 0;
		if (cc->gap != 0)
			per_s += 1000000000ull / cc->gap + 1;
		p->ack_req_bytes = cc->limit < ACK_REQ_FRAMES * full_frame(c)
					   ? RTE_MAX(cc->limit / 4, full_frame(c))
					   : 0;
		if (p->ack_req_bytes != 0)
			ack_req = RTE_MIN(ack_req, p->ack_req_bytes - 1);
	}
	limit = RTE_MIN(limit, (uint64_t)c->tx.cc[0].conf.most * c->paths);
	c->tx.cc_limit = (uint32_t)RTE_MIN(limit, (uint64_t)INT32_MAX);
	c->tx.cc_gap =
		paced ? (uint32_t)RTE_MIN(1000000000ull / per_s + 1, (uint64_t)INT32_MAX) : 0;
	if (c->tx.cc_gap != 0 || (ack_req != INT32_MAX && c->path_watch & RAW_WATCH_MANY))
		ack_req = 0;
	c->tx.cc_left = RTE_MIN(c->tx.cc_left, (int32_t)ack_req);
	if (c->tx.cc_gap != 0 || c->tx.cc_lost != 0)
		c->tx.win_bytes = 0;
	else
		c->tx.win_bytes = c->tx.cc_limit - RTE_MIN(c->tx.cc_limit, full_frame(c)) + 1;
}

bool raw_window_fixed(const struct raw_iface *iface)
{
	return weft_cc_ops(iface->conf.cc) == weft_cc_ops(WEFT_CC_FIXED);
}

/* @return ns of a full frame on the port's link, or else as measured; 0 = neither is known */
static uint32_t frame_ns(const struct raw_conn *c, float measured)
{
	const struct weft_frame_port *port = c->iface->port;
	double ns = measured > 0 ? (double)measured : 0;

	if (port->bandwidth > 0 && !(port->flags & WEFT_FRAME_PORT_GUESS))
		ns = full_frame(c) * 1e9 / port->bandwidth;
	return ns < INT32_MAX ? (uint32_t)ns : INT32_MAX;
}

int raw_window_init(struct raw_conn *c, uint32_t rtt, float ns)
{
	const struct weft_cc_ops *ops = weft_cc_ops(c->iface->conf.cc);
	struct weft_cc_conf conf = {
		.frame = full_frame(c),
		/* WEFT_WINDOW limits the lane, so each path has a share of it. */
		.most = RTE_MAX(c->tx.win_bytes / c->paths, full_frame(c)),
		.rtt = rtt,
		.frame_ns = frame_ns(c, ns),
		.meter = c->iface->port->flags & WEFT_FRAME_PORT_GUESS,
	};

	c->tx.cc_left = INT32_MAX;
	if (raw_window_fixed(c->iface))
		return 0;
	c->tx.cc = calloc(c->path_count, sizeof(*c->tx.cc));
	if (!c->tx.cc)
		return -ENOMEM;
	for (unsigned int i = 0; i < c->path_count; i++)
		weft_cc_init(&c->tx.cc[i], ops, &conf);
	limits_update(c);
	return 0;
}

int raw_window_more(struct raw_conn *c)
{
	struct weft_cc *cc = realloc(c->tx.cc, (c->path_count + 1u) * sizeof(*cc));
	struct weft_cc_conf conf;

	if (!cc)
		return -ENOMEM;
	c->tx.cc = cc;
	conf = cc[0].conf;
	weft_cc_init(&cc[c->path_count], cc[0].ops, &conf);
	return 0;
}

void raw_window_free(struct raw_tx *tx)
{
	free(tx->cc);
	tx->cc = NULL;
}

/* ---------------------------------------------------------------- sending */

static bool has_room(const struct raw_tx *tx, uint32_t bytes)
{
	return tx->inflight == 0 || tx->inflight + bytes <= tx->cc_limit;
}

bool raw_window_paced(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	c->tx.cc_full = true;
	if (c->tx.cc_lost != 0 || !has_room(&c->tx, full_frame(c)))
		return false;
	if (c->tx.cc_gap == 0 || iface->tx_clock >= c->tx.cc_next)
		return true;
	raw_deadline_tx(c, c->tx.cc_next);
	return false;
}

/* Sets the time of the next frame. A late sender catches up by at most one frame. */
static void pace_next(struct raw_conn *c, uint32_t bytes)
{
	uint64_t now = c->iface->tx_clock, gap = (uint64_t)c->tx.cc_gap * bytes / full_frame(c);

	c->tx.cc_next = RTE_MAX(c->tx.cc_next, now - RTE_MIN(now, gap)) + gap;
}

uint16_t raw_window_ack_req(struct raw_conn *c, uint8_t path, uint32_t bytes)
{
	struct raw_path *p = &c->path[path];

	c->tx.cc_left = INT32_MAX;
	if (!c->tx.cc)
		return 0;
	if (c->tx.cc_gap != 0)
		pace_next(c, bytes);
	if (c->path_watch & RAW_WATCH_MANY) {
		c->tx.cc_left = 0;
		if (p->ack_req_bytes == 0)
			return 0;
		p->since_ack_req += bytes;
		if (p->since_ack_req < p->ack_req_bytes && c->tx.cc_gap == 0)
			return 0;
		p->since_ack_req = 0;
		return WEFT_FRAME_F_ACK_REQ;
	}
	if (p->ack_req_bytes == 0)
		return 0;
	c->tx.cc_left = c->tx.cc_gap != 0 ? 0 : (int32_t)p->ack_req_bytes - 1;
	/* A sender that uses less than half of the window does not wait for acknowledgements. */
	return c->tx.cc_gap != 0 || c->tx.inflight + bytes > c->tx.cc_limit / 2
		       ? WEFT_FRAME_F_ACK_REQ
		       : 0;
}

/* ---------------------------------------------------------------- acknowledgements and losses */

static bool cc_on_ack(struct weft_cc *cc, const struct weft_cc_ack *a)
{
	uint32_t limit = cc->limit, gap = cc->gap;

	cc->ops->on_ack(cc, a);
	return cc->limit != limit || cc->gap != gap;
}

/* @return bytes for the reported marks, as full frames: at most the acknowledged bytes */
static uint32_t take_marks(const struct raw_conn *c, struct raw_path *p, uint32_t acked)
{
	uint64_t bytes = (uint64_t)p->marks * full_frame(c);

	if (acked == 0)
		return 0; /* the marks count with the next bytes */
	p->marks = 0;
	return (uint32_t)RTE_MIN(bytes, (uint64_t)acked);
}

void raw_window_marked(struct raw_conn *c, const struct weft_frame_view *v)
{
	uint8_t k = v->hdr->path % WEFT_FRAME_PATHS_MAX;

	if (v->type != WEFT_FRAME_DATA && v->type != WEFT_FRAME_PART)
		return;
	raw_count(c->iface, RAW_RX_MARKED);
	/* The peer may use a path before its PROBE_ACK{USE} has opened the path here. */
	if (raw_state_paths(c, k + 1u) != 0)
		return;
	c->path[k].marked++;
	c->rx.mark_acks = MARK_ACKS;
}

void raw_window_marks(struct raw_conn *c, const struct weft_frame_ecn *ecn)
{
	const struct weft_frame_ecn_path *e = (const struct weft_frame_ecn_path *)(ecn + 1);

	for (unsigned int i = weft_get16(ecn->paths); i > 0; i--, e++) {
		struct raw_path *p;
		uint16_t n;

		if (e->path >= c->path_count) {
			raw_count(c->iface, RAW_DROP_BAD_ACK);
			continue;
		}
		p = &c->path[e->path];
		n = (uint16_t)(weft_get16(e->marked) - p->echoed);
		if (n <= INT16_MAX) { /* else: the report was overtaken by a newer one */
			c->iface->counter[RAW_TX_MARKED] += n;
			p->echoed = (uint16_t)(p->echoed + n);
			p->marks = RTE_MIN(p->marks + n, (uint32_t)WEFT_FRAME_SEQS << 4);
		}
	}
}

void raw_window_peer_gap(struct raw_conn *c, uint32_t ns)
{
	struct weft_cc *cc = c->tx.cc;

	if (!cc || ns == 0 || !cc->ops->on_peer_gap)
		return;
	for (unsigned int i = 0; i < c->path_count; i++)
		cc[i].ops->on_peer_gap(&cc[i], ns);
}

/* @return bytes of the newest acknowledged frame, if its timestamp is the echo; or 0 */
static uint32_t sample_size(const struct raw_iface *iface, const struct raw_tx *tx,
			    const struct weft_frame_hdr *hdr)
{
	const struct raw_slot *slot = raw_slot(tx, tx->sack_high - 1);
	uint32_t age = (uint32_t)iface->now - weft_get32(hdr->ts_echo);

	if (slot->path != hdr->echo_path || iface->tx_clock - slot->sent != age)
		return 0;
	return slot->bytes;
}

static bool cc_on_ack_all(struct raw_conn *c, struct weft_cc_ack *a, uint8_t path, uint32_t rtt)
{
	bool changed = false;

	for (unsigned int i = 0; i < c->path_count; i++) {
		struct raw_path *p = &c->path[i];

		if (p->acked == 0 && (i != path || rtt == 0))
			continue;
		a->acked = p->acked;
		a->marked = take_marks(c, p, p->acked);
		a->inflight = p->inflight + p->acked;
		a->rtt = i == path ? rtt : 0;
		p->acked = 0;
		changed |= cc_on_ack(&c->tx.cc[i], a);
	}
	return changed;
}

void raw_window_acked(struct raw_conn *c, const struct weft_frame_hdr *hdr, uint32_t rtt,
		      uint32_t before)
{
	uint8_t path = hdr->echo_path;
	struct weft_cc_ack a = {
		.size = rtt != 0 ? sample_size(c->iface, &c->tx, hdr) : 0,
		.now = c->iface->now,
		.limited = c->tx.cc_full,
		.acked = c->tx.cc_acked,
		.inflight = before,
		.rtt = path == c->next_path ? rtt : 0,
	};
	bool changed;

	if (unlikely(c->path_watch & RAW_WATCH_MANY)) {
		changed = cc_on_ack_all(c, &a, path, rtt);
	} else {
		a.marked = take_marks(c, &c->path[c->next_path], a.acked);
		changed = cc_on_ack(&c->tx.cc[c->next_path], &a);
	}
	c->tx.cc_acked = 0;
	c->tx.cc_full = c->tx.cc_lost != 0;
	if (changed || (c->tx.win_bytes == 0 && !c->tx.cc_full))
		limits_update(c);
}

void raw_window_found(struct raw_tx *tx, struct raw_slot *slot)
{
	slot->lost = false;
	tx->cc_lost--;
	tx->cc_full = true; /* so that on_ack() is called even without a round-trip sample */
	tx->cc_acked += slot->bytes;
}

void raw_window_lost(struct raw_conn *c, struct raw_slot *slot)
{
	c->tx.cc_quiet = 0;
	slot->lost = true;
	c->tx.cc_lost++;
	c->tx.cc_full = true;
	c->tx.inflight -= slot->bytes;
	if (c->path_watch & RAW_WATCH_MANY)
		c->path[slot->path].inflight -= slot->bytes;
	c->tx.cc[slot->path].ops->on_loss(&c->tx.cc[slot->path], slot->bytes, c->iface->now);
	c->tx.win_bytes = 0;
}

bool raw_window_again(const struct raw_tx *tx, uint64_t tx_clock, uint32_t bytes, uint64_t *when)
{
	if (!has_room(tx, bytes))
		return false;
	if (tx->cc_gap == 0 || tx_clock >= tx->cc_next)
		return true;
	*when = RTE_MIN(*when, tx->cc_next);
	return false;
}

void raw_window_resent(struct raw_conn *c, struct raw_slot *slot, uint8_t before)
{
	bool many = c->path_watch & RAW_WATCH_MANY;

	if (slot->lost) {
		slot->lost = false;
		c->tx.cc_lost--;
		c->tx.inflight += slot->bytes;
	} else if (many) {
		c->path[before].inflight -= slot->bytes;
	}
	if (many)
		c->path[slot->path].inflight += slot->bytes;
	if (c->tx.cc_gap != 0)
		pace_next(c, slot->bytes);
	if (c->tx.cc_lost == 0)
		limits_update(c);
}

void raw_window_paths(struct raw_conn *c)
{
	limits_update(c);
}

/*
 * After timeouts, a frame is acknowledged that was sent before them and not retransmitted. So the
 * peer was silent, or its acknowledgements were lost: the timeouts were spurious.
 */
void raw_window_quiet_over(struct raw_conn *c, uint32_t ack)
{
	const struct raw_slot *slot;
	bool early;

	for (uint32_t seq = c->tx.una; seq != ack; seq++) {
		slot = raw_slot(&c->tx, seq);
		if (!slot->m || slot->tries != 1)
			continue;
		early = slot->sent < c->tx.cc_quiet;
		c->tx.cc_quiet = 0;
		if (!early)
			return; /* the frames after this one were sent later still */
		for (unsigned int i = 0; i < c->path_count; i++)
			c->tx.cc[i].ops->on_spurious(&c->tx.cc[i]);
		limits_update(c);
		return;
	}
}

void raw_window_timeout(struct raw_conn *c)
{
	if (c->tx.backoff == 1)
		c->tx.cc_quiet = c->iface->tx_clock;
	if (c->tx.backoff > 1 && c->tx.inflight < c->tx.cc_limit / QUIET_PARTS) {
		if (c->tx.backoff == 2)
			raw_window_idle(c);
		return;
	}
	for (unsigned int i = 0; i < c->path_count; i++)
		c->tx.cc[i].ops->on_timeout(&c->tx.cc[i], c->tx.backoff, c->iface->now);
	limits_update(c);
}

void raw_window_idle(struct raw_conn *c)
{
	for (unsigned int i = 0; i < c->path_count; i++)
		c->tx.cc[i].ops->on_idle(&c->tx.cc[i]);
	limits_update(c);
}

void raw_window_over(struct raw_conn *c)
{
	c->tx.cc_lost = 0;
	for (unsigned int i = 0; i < c->path_count; i++)
		c->path[i].inflight = 0;
}

void raw_window_counters(const struct raw_conn *c, unsigned int path, weft_lane_counter_cb cb,
			 void *arg)
{
	char name[64];

	if (!c->tx.cc)
		return;
#define REPORT(field, what, help)                                                  \
	snprintf(name, sizeof(name), "conn%u.path%u." what, c->id & 0xffff, path); \
	cb(name, c->tx.cc[path].field, arg);
	RAW_CC_LEVELS(REPORT)
	RAW_CC_COUNTERS(REPORT)
#undef REPORT
}

void raw_window_print(const struct raw_tx *tx, unsigned int path, char *buf, size_t size)
{
	const struct weft_cc *cc;

	buf[0] = '\0';
	if (!tx->cc)
		return;
	cc = &tx->cc[path];
	snprintf(buf, size,
		 ", %s %s window %u target %.1f us, marked %" PRIu64 ", lost %" PRIu64
		 " + %" PRIu64,
		 cc->ops->name, weft_cc_mode_name(cc), cc->window, cc->target / 1e3, cc->marked,
		 cc->lost_queue, cc->lost_random);
}

void raw_window_delays(const struct raw_tx *tx, unsigned int path, char *buf, size_t size)
{
	const struct weft_cc *cc;

	buf[0] = '\0';
	if (!tx->cc || tx->cc[path].delay.base == 0)
		return;
	cc = &tx->cc[path];
	snprintf(buf, size, "base %.1f us, now %.1f, noise %.1f, target %.1f, last cut by %s",
		 cc->delay.base / 1e3, cc->delay.srtt / 1e3, cc->delay.jitter.noise / 1e3,
		 cc->target / 1e3, weft_cc_cut_name(cc));
}

/* ---------------------------------------------------------------- what holds frames back */

static_assert(RAW_TIME_BUFFERS - RAW_TIME_CONGESTION == RAW_LIMITS - 1, "a counter for each limit");

static enum raw_limit limit_of(const struct raw_conn *c)
{
	const struct raw_tx *tx = &c->tx;

	if (raw_tx_outstanding(tx) >= tx->win_frames) {
		if (tx->win_frames < tx->win_whole)
			return RAW_LIMIT_SILENT;
		return tx->win_whole == c->iface->share.tx_held_max ? RAW_LIMIT_WINDOW
								    : RAW_LIMIT_PEER;
	}
	if (!tx->cc || tx->cc_limit >= (uint64_t)tx->cc[0].conf.most * c->paths)
		return RAW_LIMIT_WINDOW;
	return RAW_LIMIT_CONGESTION;
}

void raw_limit_begin(struct raw_conn *c)
{
	struct raw_limits *l = &c->iface->limits;
	enum raw_limit limit;

	if (c->tx.limit != 0)
		return;
	limit = limit_of(c);
	WEFT_PROBE4(window_limit, c,
		    limit == RAW_LIMIT_CONGESTION ? "congestion"
		    : limit == RAW_LIMIT_WINDOW   ? "window"
		    : limit == RAW_LIMIT_PEER     ? "peer ring"
						  : "silent",
		    c->tx.inflight, raw_tx_outstanding(&c->tx));
	c->tx.limit = (uint8_t)(1 + limit);
	l->num[limit]++;
	l->bits |= 1u << limit;
}

void raw_limit_end(struct raw_conn *c)
{
	struct raw_limits *l = &c->iface->limits;
	unsigned int limit = c->tx.limit - 1u;

	if (c->tx.limit == 0)
		return;
	c->tx.limit = 0;
	if (--l->num[limit] == 0)
		l->bits &= ~(1u << limit);
}

void raw_limits_account(struct raw_iface *iface)
{
	for (unsigned int i = 0; i < RAW_LIMITS; i++)
		if (iface->limits.bits >> i & 1)
			iface->counter[RAW_TIME_CONGESTION + i] += iface->step;
	/* Limits of the iface, not of connections, are set again in each progress call. */
	iface->limits.bits &= (1u << RAW_LIMIT_CONNS) - 1;
}
