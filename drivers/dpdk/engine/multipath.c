/* SPDX-License-Identifier: BSD-3-Clause */

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_common.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/multipath.h"
#include "engine/path_open.h"
#include "engine/reliability.h"
#include "engine/window.h"
#include "frame/frame.h"

#define JUDGE_STEP 200000u /* least ns between two walks over the outstanding frames */
/* a path that was good for this time is probed soon when it is bad again */
#define GOOD_NS 1000000000ull
/* ns in addition to two round trips: an answer to a tail probe within this time is prompt */
#define RESCUE_NS 100000u

static_assert(WEFT_PATHS_MAX == WEFT_FRAME_PATHS_MAX, "masks");

static uint16_t usable_paths(const struct raw_multi *mp)
{
	uint16_t mask = mp->active & (uint16_t)~mp->bad;

	if (mask == 0)
		mask = mp->open & (uint16_t)~mp->bad;
	return mask != 0 ? mask : mp->active;
}

/* ---------------------------------------------------------------- the next frame's path */

static void choose_next_path(struct raw_conn *c)
{
	uint32_t bytes = (uint32_t)c->frame_size - c->encap.len;
	struct weft_path_load load[WEFT_PATHS_MAX] = {{0}};

	for (unsigned int k = 0; k < c->path_count; k++) {
		load[k].srtt = c->path[k].rtt.srtt;
		load[k].inflight = c->path[k].inflight;
		load[k].full = c->tx.cc && c->path[k].inflight + bytes > c->tx.cc[k].limit;
	}
	c->next_path =
		(uint8_t)weft_path_soonest(load, usable_paths(c->multi), c->next_path, bytes);
}

/* Bytes in flight are counted for each path only while new frames take several. */
static void count_inflight(struct raw_conn *c)
{
	for (unsigned int k = 0; k < c->path_count; k++)
		c->path[k].inflight = c->path[k].acked = 0;
	for (uint32_t seq = c->tx.una; seq != c->tx.next; seq++)
		if (raw_slot(&c->tx, seq)->m && !raw_slot(&c->tx, seq)->lost)
			c->path[raw_slot(&c->tx, seq)->path].inflight +=
				raw_slot(&c->tx, seq)->bytes;
}

static void paths_changed(struct raw_conn *c)
{
	uint16_t mask = usable_paths(c->multi);
	uint8_t before = c->next_path;

	if (mask & (mask - 1u)) {
		if (!(c->path_watch & RAW_WATCH_MANY))
			count_inflight(c);
		c->path_watch |= RAW_WATCH_MANY;
	} else {
		c->path_watch &= (uint8_t)~RAW_WATCH_MANY;
	}
	if (!(mask & 1u << before)) {
		choose_next_path(c);
		raw_count(c->iface, RAW_PATH_SWITCHES);
	}
	if (c->tx.cc)
		raw_window_paths(c);
	raw_timer_learn(c);
}

int raw_multi_need(struct raw_conn *c)
{
	struct raw_multi *mp;

	if (c->multi)
		return 0;
	mp = calloc(1, sizeof(*mp));
	if (!mp)
		return -ENOMEM;
	mp->open = (uint16_t)((1u << c->path_count) - 1);
	mp->active = (uint16_t)((1u << c->paths) - 1);
	c->multi = mp;
	if (c->paths > 1)
		c->path_watch = RAW_WATCH_MANY;
	return 0;
}

int raw_multi_init(struct raw_conn *c)
{
	return c->path_count > 1 ? raw_multi_need(c) : 0;
}

void raw_multi_free(struct raw_conn *c)
{
	free(c->multi);
	c->multi = NULL;
	c->path_watch = 0;
}

uint8_t raw_multi_other(const struct raw_conn *c, uint8_t path, bool reserve)
{
	const struct raw_multi *mp = c->multi;
	uint16_t mask;

	if (!mp)
		return path;
	mask = mp->active & (uint16_t)~mp->bad;
	/* Without other frames on it, a loss on a path in reserve would be detected late. */
	if (!reserve && mask >> path & 1)
		return (uint8_t)weft_path_other(mask, path);
	mask = mp->open & (uint16_t)~mp->bad;
	if (mask & ~(1u << path))
		return (uint8_t)weft_path_other(mask, path);
	return (uint8_t)weft_path_other(mp->open, path);
}

void raw_multi_sent(struct raw_conn *c, uint8_t path, uint32_t bytes)
{
	c->path[path].inflight += bytes;
	choose_next_path(c);
}

void raw_multi_resent(struct raw_conn *c, const struct raw_slot *slot, uint8_t before, bool probe)
{
	struct raw_multi *mp = c->multi;

	if (!mp)
		return;
	if (!c->tx.cc && c->path_watch & RAW_WATCH_MANY) {
		c->path[before].inflight -= slot->bytes;
		c->path[slot->path].inflight += slot->bytes;
	}
	if (slot->path == before)
		return;
	if (probe) {
		if (mp->rescued != before)
			mp->rescues = 0;
		mp->rescued = before;
		mp->again_at = c->iface->tx_clock;
	}
	c->path_watch |= RAW_WATCH_AGAIN;
	mp->watch_end = c->tx.next;
}

/* ---------------------------------------------------------------- bad paths */

static void path_bad(struct raw_conn *c, unsigned int k)
{
	struct raw_multi *mp = c->multi;
	struct raw_multi_path *m = &mp->path[k];

	if (mp->bad & 1u << k || (mp->open & ~mp->bad & ~(1u << k)) == 0)
		return; /* the last usable path is never left */
	mp->bad |= (uint16_t)(1u << k);
	m->gone = c->path[k].order;
	m->is_late = true;
	m->strikes = 0;
	if (c->iface->tx_clock - m->good_at > GOOD_NS)
		m->probes = 0;
	m->probe_at = c->iface->tx_clock + weft_path_wait(m->probes);
	raw_deadline_tx(c, m->probe_at);
	raw_count(c->iface, RAW_PATH_BAD);
	paths_changed(c);
}

static void path_good(struct raw_conn *c, unsigned int k)
{
	struct raw_multi *mp = c->multi;
	struct raw_multi_path *m = &mp->path[k];

	mp->bad &= (uint16_t) ~(1u << k);
	m->good_at = c->iface->tx_clock;
	m->proved = c->iface->tx_clock; /* frames that were sent before are no evidence */
	m->strikes = 0;
	raw_count(c->iface, RAW_PATH_BACK);
	if (c->tx.cc)
		c->tx.cc[k].ops->on_idle(&c->tx.cc[k]);
	paths_changed(c);
}

bool raw_multi_lost(const struct raw_conn *c, const struct raw_slot *slot)
{
	const struct raw_multi_path *m;

	if (!c->multi)
		return false;
	m = &c->multi->path[slot->path];
	return m->is_late && (int32_t)(m->gone - slot->order) > 0;
}

void raw_multi_slot_acked(struct raw_conn *c, const struct raw_slot *slot)
{
	struct raw_multi_path *m = &c->multi->path[slot->path];

	if (c->path_watch & RAW_WATCH_MANY) {
		c->path[slot->path].acked += slot->bytes;
		if (!slot->lost)
			c->path[slot->path].inflight -= slot->bytes;
	}
	/* Which transmission arrived is found out by the timestamp, in path_proven(). */
	if (slot->tries > 1)
		return;
	if (slot->sent > m->proved)
		m->proved = slot->sent;
	m->strikes = 0;
	if (m->is_late && (int32_t)(slot->order - m->gone) >= 0)
		m->is_late = false;
}

/* The header names the path of the newest frame that the peer received, and when that was sent. */
static void path_proven(struct raw_conn *c, const struct weft_frame_hdr *hdr)
{
	uint32_t age = (uint32_t)c->iface->now - weft_get32(hdr->ts_echo);
	struct raw_multi_path *m = &c->multi->path[hdr->echo_path % WEFT_FRAME_PATHS_MAX];

	if (weft_get16(hdr->ts_hold) == WEFT_FRAME_NO_ECHO || age > INT32_MAX ||
	    age > c->iface->tx_clock || hdr->echo_path >= c->path_count)
		return;
	if (c->iface->tx_clock - age > m->proved) {
		m->proved = c->iface->tx_clock - age;
		m->strikes = 0;
	}
}

/* @return when the newest frame left that arrived over another path than @p k */
static uint64_t proved_beside(const struct raw_conn *c, unsigned int k)
{
	uint64_t newest = 0;

	for (unsigned int j = 0; j < c->path_count; j++)
		if (j != k)
			newest = RTE_MAX(newest, c->multi->path[j].proved);
	return newest;
}

/*
 * Finds outstanding frames that left long before frames of other paths that have arrived: they are
 * lost. Without this check only the timer would detect the loss of a path's newest frame, as no
 * frame of the same path overtakes it.
 * @return true: frames are lost
 */
static bool find_silent_paths(struct raw_conn *c)
{
	const struct weft_rtt *known = raw_timer_slowest(c), *r;
	uint64_t beside[WEFT_FRAME_PATHS_MAX], newest = 0, least = UINT64_MAX;
	struct raw_multi *mp = c->multi;
	enum weft_path_verdict verdict;
	struct raw_multi_path *m;
	struct raw_slot *slot;
	bool any = false;

	for (unsigned int k = 0; k < c->path_count; k++) {
		r = &c->path[k].rtt;
		beside[k] = proved_beside(c, k);
		newest = RTE_MAX(newest, beside[k]);
		least = RTE_MIN(least, weft_rtt_rto(r->srtt != 0 ? r : known, 0));
	}
	for (uint32_t seq = c->tx.una; seq != c->tx.next; seq++) {
		slot = raw_slot(&c->tx, seq);
		raw_count(c->iface, RAW_PATH_LOOKS);
		/* This frame is not late, and the following frames left after it. */
		if (slot->tries == 1 && newest < slot->sent + least)
			break;
		m = &mp->path[slot->path];
		r = &c->path[slot->path].rtt;
		if (!slot->m || raw_multi_lost(c, slot))
			continue;
		verdict = weft_path_judge(r->srtt != 0 ? r : known, slot->sent, m->proved,
					  beside[slot->path]);
		if (verdict == WEFT_PATH_WAIT)
			continue;
		m->gone = slot->order + 1;
		m->is_late = true;
		any = true;
		if (verdict == WEFT_PATH_SILENT && ++m->strikes >= WEFT_PATH_STRIKES)
			path_bad(c, slot->path);
	}
	return any;
}

/*
 * Frames may arrive while their acknowledgements, which take the same path back, do not. Then each
 * time only a tail probe over another path gets an answer. Only a prompt answer counts: a peer that
 * was not polling answers the last frame that it finds.
 */
static void path_rescued(struct raw_conn *c, uint8_t came_over)
{
	struct raw_multi *mp = c->multi;
	uint64_t took = c->iface->tx_clock - mp->again_at;
	bool prompt = took <= 2ull * c->path[mp->rescued].rtt.srtt + RESCUE_NS;

	if (came_over == c->next_path)
		mp->stalls = 0;
	if (mp->again_at == 0)
		return;
	mp->again_at = 0;
	if (came_over == mp->rescued) {
		mp->rescues = 0;
	} else if (prompt && ++mp->rescues >= WEFT_PATH_STRIKES) {
		mp->rescues = 0;
		path_bad(c, mp->rescued);
	}
	/* Each of the paths may lack one direction: then a further path is needed. */
	if (prompt && c->tx.backoff > 0 && came_over != c->next_path &&
	    ++mp->stalls >= WEFT_PATH_STRIKES) {
		mp->stalls = 0;
		raw_path_open(c);
		path_bad(c, c->next_path);
	}
}

bool raw_multi_acked(struct raw_conn *c, const struct weft_frame_hdr *hdr)
{
	struct raw_multi *mp = c->multi;

	path_proven(c, hdr);
	if (c->path_watch & RAW_WATCH_AGAIN) {
		path_rescued(c, hdr->path);
		if ((int32_t)(c->tx.una - mp->watch_end) >= 0)
			c->path_watch &= (uint8_t)~RAW_WATCH_AGAIN;
	}
	if (c->iface->tx_clock - mp->judged < JUDGE_STEP)
		return false;
	mp->judged = c->iface->tx_clock;
	return find_silent_paths(c);
}

/* ---------------------------------------------------------------- probes and answers */

static void probe_path(struct raw_conn *c, uint8_t k)
{
	struct raw_multi_path *m = &c->multi->path[k];

	if (m->probes < UINT8_MAX)
		m->probes++;
	/* The initiator alternates between new ports and the path's own: either may fail. */
	if (!c->base.passive && m->probes % 2) {
		raw_path_request(c, k);
	} else {
		raw_path_probe_send(c, k);
		if (c->base.passive)
			raw_path_want(c, k);
	}
	m->probe_at = c->iface->tx_clock + weft_path_wait(m->probes);
}

void raw_multi_timer(struct raw_conn *c)
{
	struct raw_multi *mp = c->multi;

	raw_path_open_timer(c);
	if (c->iface->paths_auto)
		raw_path_grow_timer(c);
	for (uint8_t k = 0; k < c->path_count; k++) {
		if (raw_path_using(c, k) || !(mp->bad & 1u << k))
			continue;
		if (c->iface->tx_clock >= mp->path[k].probe_at)
			probe_path(c, k);
		raw_deadline_tx(c, mp->path[k].probe_at);
	}
}

void raw_multi_answer(struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct weft_frame_probe *p = (const struct weft_frame_probe *)v->body;
	uint16_t kind = weft_get16(p->frame_size);
	uint8_t k = v->hdr->path;

	if (kind == WEFT_FRAME_PROBE_OVER && c->multi && c->multi->on_trial &&
	    weft_trial_answer(&c->multi->trial, weft_get16(p->id), k, c->iface->now))
		return;
	if (!c->multi || k >= WEFT_FRAME_PATHS_MAX ||
	    weft_get16(p->id) != c->multi->path[k].last_id)
		return;
	if (kind == WEFT_FRAME_PROBE_PATH || kind == WEFT_FRAME_PROBE_USE)
		raw_path_answer(c, v, kind);
	else if (kind == WEFT_FRAME_PROBE_OVER && c->multi->bad >> k & 1)
		path_good(c, k);
}

void raw_multi_activate(struct raw_conn *c, uint16_t mask)
{
	c->multi->active = mask;
	paths_changed(c);
}

void raw_multi_renewed(struct raw_conn *c, uint8_t k)
{
	if (c->multi->bad >> k & 1)
		path_good(c, k);
	/* If an acknowledgement is overdue, retransmit at once: this path may help. */
	if (c->tx.tail != RAW_TAIL_NONE || c->tx.backoff > 0) {
		c->tx.timer = c->iface->tx_clock;
		raw_deadline_tx(c, c->tx.timer);
	}
}

void raw_multi_probe_soon(struct raw_conn *c, uint8_t k)
{
	if (!(c->multi->bad >> k & 1))
		return;
	c->multi->path[k].probe_at = c->iface->tx_clock;
	raw_deadline_tx(c, c->iface->tx_clock);
}

/* ---------------------------------------------------------------- for people */

void raw_multi_counters(const struct raw_conn *c, unsigned int path, weft_lane_counter_cb cb,
			void *arg)
{
	char name[64];

	if (!c->multi)
		return;
#define REPORT(value, what, help)                                                  \
	snprintf(name, sizeof(name), "conn%u.path%u." what, c->id & 0xffff, path); \
	cb(name, value, arg);
	RAW_PATH_BAD_LEVEL(REPORT)
#undef REPORT
}

const char *raw_multi_text(const struct raw_conn *c, unsigned int path)
{
	if (!c->multi)
		return "";
	if (c->multi->bad >> path & 1)
		return ", bad";
	return c->multi->active >> path & 1 ? "" : ", in reserve";
}
