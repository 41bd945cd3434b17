/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/multipath.h
 * The paths of a connection that is up. doc/raw-lanes.md has the reasons, engine/rules.h the rules.
 *
 * c->multi is NULL until a connection has a second path, or searches one. While c->path_watch is 0,
 * a frame costs tests of this byte only.
 */
#ifndef WEFT_ENGINE_MULTIPATH_H
#define WEFT_ENGINE_MULTIPATH_H

#include <rte_branch_prediction.h>

#include "engine/conn.h"
#include "engine/path_change.h"
#include "engine/rules.h"
#include "frame/frame.h"
#include "frame/parse.h"
#include "lane.h"

/* c->path_watch: the reasons why frames are checked. */
#define RAW_WATCH_MANY 1u  /* new frames go over several paths */
#define RAW_WATCH_AGAIN 2u /* a frame was retransmitted over another path */

struct raw_multi_path {
	uint64_t proved;   /* tx_clock; when the newest frame that arrived over the path was sent */
	uint64_t probe_at; /* tx_clock; when a bad path is probed again */
	uint64_t given_at; /* tx_clock; before it, the peer's next request for a port is ignored */
	uint64_t good_at;  /* tx_clock; when the path was last found good again; 0 = never */
	uint32_t gone;     /* with is_late: frames whose order is lower are taken for lost */
	uint64_t use_at;   /* tx_clock; when an unanswered USE (engine/path_open.c) is sent again */
	uint16_t use_port; /* new port of this end, until USE is answered; 0 = no USE is sent */
	uint8_t use_tries;
	uint16_t last_id;
	uint16_t use_id; /* id of the newest USE, sent (initiator) or accepted (responder) */
	/* probes since the path last worked for long; each makes the next wait longer */
	uint8_t probes;
	uint8_t strikes; /* WEFT_PATH_SILENT verdicts since a frame last proved the path */
	bool is_late;
};

/* Other paths take turns with those in use, as frames are lost (engine/path_open.c). */
struct raw_multi_change {
	enum {
		RAW_CHANGE_NONE, /* losses are counted */
		RAW_CHANGE_SPAN,
		RAW_CHANGE_SETTLE, /* windows of the other paths grow */
	} step;
	bool by_loss;         /* a policer is the reason for the number of paths in use */
	uint16_t from, to;    /* sets of paths */
	uint8_t policed;      /* score of the spans with frequent losses */
	uint64_t at;          /* tx_clock; begin of the step */
	uint32_t next, again; /* tx.next and base.retransmits at that time */
	uint64_t try_at;      /* tx_clock; no change for more paths begins before */
	uint64_t wait;        /* ns of the wait after the last one that failed */
	uint32_t window[WEFT_FRAME_PATHS_MAX]; /* bytes; when the change began */
	struct weft_path_change test;
};

struct raw_multi {
	uint64_t judged; /* tx_clock of the last walk over the outstanding frames */
	/* tx_clock; when a tail probe repeated a frame over another path; 0 = answered, or none */
	uint64_t again_at;
	uint32_t watch_end; /* sequence: RAW_WATCH_AGAIN ends when all before it is acknowledged */
	uint16_t open;      /* bit k: both ends know the ports of path k */
	uint16_t active;    /* bit k: path k is in use, not in reserve */
	uint16_t bad;       /* bit k: path k is bad: no new frame takes it */
	/* tail probes in a row that were soon answered over another path than `rescued` */
	uint8_t rescues;
	uint8_t rescued; /* earlier path of the frame that a tail probe repeated over another one */
	uint8_t stalls;  /* timeouts in a row, soon answered over another path than next_path */
	bool opening;
	uint8_t open_tries;
	uint64_t open_at; /* tx_clock of the next probe for a new path */
	/* no probe for a new path before this tx_clock, as none was answered; ns of that wait */
	uint64_t open_again_at, open_again;
	/* engine/path_open.c; times are tx_clock */
	bool on_trial;
	uint8_t trial_used, trial_spare;
	uint64_t trial_at, pair_at; /* of the next trial, and of its next pair */
	uint64_t again;             /* ns of the wait after the last trial without result */
	uint64_t more_at;           /* when paths were last added or removed */
	/* when half of the paths last became reserve; ns from more_at until that happens again */
	uint64_t fewer_at, fewer_ns;
	struct weft_path_trial trial;
	struct raw_multi_change change;
	struct raw_multi_path path[WEFT_FRAME_PATHS_MAX];
};

/** Called when the connection is up: allocates c->multi for several paths. @return 0 or -ENOMEM */
int raw_multi_init(struct raw_conn *c);
/** Allocate c->multi if it is missing. @return 0 or -ENOMEM */
int raw_multi_need(struct raw_conn *c);
void raw_multi_free(struct raw_conn *c);

static inline bool raw_multi_usable(const struct raw_conn *c, unsigned int path)
{
	return !c->multi || (c->multi->active & ~c->multi->bad) >> path & 1 || path == c->next_path;
}

/**
 * @return the path over which a frame that was lost on @p path is retransmitted: another one if
 * there is one, since the cause may still exist on @p path
 * @param reserve  a path in reserve is allowed, as it always is if @p path is bad or in reserve
 */
uint8_t raw_multi_other(const struct raw_conn *c, uint8_t path, bool reserve);
/** @p before: path of the transmission before. @p probe: without a detected loss, after silence. */
void raw_multi_resent(struct raw_conn *c, const struct raw_slot *slot, uint8_t before, bool probe);
/** With RAW_WATCH_MANY: a frame has left. Chooses the path of the next one. */
void raw_multi_sent(struct raw_conn *c, uint8_t path, uint32_t bytes);
/** With path_watch: a frame is acknowledged. */
void raw_multi_slot_acked(struct raw_conn *c, const struct raw_slot *slot);
/** With path_watch: an ACK came over the path in @p hdr. @return true: frames are lost */
bool raw_multi_acked(struct raw_conn *c, const struct weft_frame_hdr *hdr);
/** @return true: the frame is lost, as other paths have overtaken it, or its path became bad */
bool raw_multi_lost(const struct raw_conn *c, const struct raw_slot *slot);

void raw_multi_activate(struct raw_conn *c, uint16_t mask);

/** A path has another port, and an answer has arrived over it: the path is good. */
void raw_multi_renewed(struct raw_conn *c, uint8_t k);
/** The path has another port. If it is bad, probes at once whether it carries our frames. */
void raw_multi_probe_soon(struct raw_conn *c, uint8_t k);
/** Sends probes of bad paths that are due by tx_clock, and calls the timers of path_open.h. */
void raw_multi_timer(struct raw_conn *c);
/** Processes the answer to a probe of a path, on a connection that is up. */
void raw_multi_answer(struct raw_conn *c, const struct weft_frame_view *v);
/** Reports whether a path is bad as a counter; raw_multi_text() is for people. */
void raw_multi_counters(const struct raw_conn *c, unsigned int path, weft_lane_counter_cb cb,
			void *arg);
const char *raw_multi_text(const struct raw_conn *c, unsigned int path);

#endif /* WEFT_ENGINE_MULTIPATH_H */
