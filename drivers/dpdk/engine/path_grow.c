/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The number of paths that carry new frames, if no number is configured: one, until trials
 * (engine/path_trial.h) show that more help. A trial costs some frames. It is made while the window
 * keeps frames back, and less often after each failure. doc/raw-lanes.md.
 */

#include <rte_common.h>

#include "engine/ack.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/multipath.h"
#include "engine/path_trial.h"
#include "engine/timer.h"
#include "engine/txq.h"
#include "engine/window.h"
#include "frame/frame.h"

#define PAIR_NS 50000u           /* between two pairs, or half a round trip if that is longer */
#define AGAIN_MIN 10000000ull    /* wait after a failed trial, */
#define AGAIN_MAX 10000000000ull /* which doubles each time up to this */
#define SILENT_TIMEOUTS 2u       /* in a row, after which no trial is made */
#define FEWER_MIN 1000000000ull  /* time after which half of the paths are tried, */
#define FEWER_MAX 64000000000ull /* which doubles each time that they were too few */

static unsigned int count_paths(uint16_t mask)
{
	return (unsigned int)__builtin_popcount(mask);
}

/* Good paths that carry no new frames. */
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

	raw_ctl_send_on(c, k, WEFT_FRAME_PROBE, 0, &p, sizeof(p), RTE_MIN(c->cut, c->frame_size));
}

/* Full frames, since a queue may have room for small ones where it has none for data. */
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
	/* Neither path is always the first. */
	if (mp->trial.sent % 2)
		probe_over(c, p->spare_path, (uint16_t)(p->id + 1));
	probe_over(c, p->used_path, p->id);
	if (mp->trial.sent % 2 == 0)
		probe_over(c, p->spare_path, (uint16_t)(p->id + 1));
}

/* A trial adds an eighth at most to what the path in use carries. */
static uint64_t pair_wait(const struct raw_conn *c)
{
	uint32_t window = c->cc ? c->cc[c->next_path].window : c->inflight;
	uint64_t rtt = c->base.rtt_ns, share;

	share = 16 * rtt * c->frame_size / RTE_MAX(window, c->frame_size / 64u);
	return RTE_MAX(RTE_MAX(rtt / 2, share), PAIR_NS);
}

static void trial_begin(struct raw_multi *mp)
{
	mp->trial = (struct weft_path_trial){0};
	mp->on_trial = true;
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
	if (mp->fewer_ns != 0 && tx_clock - mp->fewer_at < FEWER_MIN)
		mp->fewer_ns = RTE_MIN(2 * mp->fewer_ns, FEWER_MAX); /* they were too few */
	else
		mp->fewer_ns = FEWER_MIN;
	mp->again = 0;
	mp->trial_at = tx_clock;
	mp->more_at = tx_clock;
	raw_multi_activate(c, mp->active | spare_paths(mp));
}

/* More paths that helped once need not help for ever. */
static void try_fewer(struct raw_conn *c)
{
	struct raw_multi *mp = c->multi;
	uint16_t mask = mp->active;

	if (count_paths(mask) < 2 || mp->on_trial ||
	    c->iface->tx_clock - mp->more_at < mp->fewer_ns)
		return;
	for (unsigned int n = count_paths(mask) / 2; n > 0; n--)
		mask &= (uint16_t)(mask - 1);
	mp->fewer_at = c->iface->tx_clock;
	mp->more_at = c->iface->tx_clock;
	mp->trial_at = c->iface->tx_clock;
	raw_count(c->iface, RAW_PATH_FEWER);
	raw_multi_activate(c, mask);
}

void raw_path_grow_timer(struct raw_conn *c)
{
	struct raw_multi *mp = c->multi;
	uint64_t tx_clock = c->iface->tx_clock;
	bool more;

	/*
	 * While the peer is silent no round trips can be compared, and full frames would be wasted.
	 */
	if (c->backoff >= SILENT_TIMEOUTS) {
		mp->on_trial = false;
		return;
	}
	/* With pacing, many flows share a queue: further paths would not help. */
	if (c->cc_gap != 0 || (!mp->on_trial && (!c->path_busy || tx_clock < mp->trial_at)))
		return;
	c->path_busy = false;
	try_fewer(c);
	/* As many spare paths as there are in use: a successful trial doubles the number. */
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
