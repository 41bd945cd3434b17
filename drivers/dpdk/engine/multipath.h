/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/multipath.h
 * The paths of a connection that is up: which one the next frame takes, which ones are bad and are
 * left, and when they are tried again. doc/multipath.md says what and why; the rules are
 * engine/path_rules.h.
 *
 * A connection with one path (c->multi NULL) pays nothing; with c->path_watch 0 frames pay nothing.
 */
#ifndef WEFT_ENGINE_MULTIPATH_H
#define WEFT_ENGINE_MULTIPATH_H

#include <rte_branch_prediction.h>

#include "engine/conn.h"
#include "engine/path_rules.h"
#include "engine/path_trial.h"
#include "frame/frame.h"
#include "frame/parse.h"
#include "lane.h"

/* c->path_watch: why frames are checked. */
#define RAW_WATCH_MANY 1u  /* new frames go over several paths */
#define RAW_WATCH_AGAIN 2u /* a frame was sent again over another path */

struct raw_multi_path {
	uint64_t proved;   /* et; when the newest of its frames that arrived was sent */
	uint64_t ask_at;   /* et; bad: when it is asked again whether it carries frames */
	uint64_t given_at; /* et; not before it gets another port for the peer's sake */
	uint64_t good_at;  /* et; since when it has not been bad */
	uint32_t gone;     /* with is_late: frames of lower orders are lost */
	uint64_t use_at;   /* et; when USE is said again */
	uint16_t use_port; /* what USE says, until it is answered; 0 = nothing */
	uint8_t use_tries;
	uint16_t ask_id; /* of the last question */
	uint16_t use_id; /* of the newest USE: that was said (initiator), or taken (responder) */
	uint8_t asked;   /* questions; the wait between two grows with it */
	uint8_t strikes; /* frames in a row that did not arrive in time */
	bool is_late;
};

struct raw_multi {
	uint64_t judged;    /* et; of the last walk over what is outstanding */
	uint64_t again_at;  /* et; a tail probe went over another path than the frame before */
	uint32_t watch_end; /* acknowledged up to here: RAW_WATCH_AGAIN is over */
	uint16_t open;      /* bit k: both ends know the ports of path k */
	uint16_t active;    /* new frames go over these */
	uint16_t bad;       /* but not over these */
	uint8_t rescues;    /* tail probes in a row that had to help path `rescued` */
	uint8_t rescued;
	uint8_t stalls; /* timeouts in a row after which no answer came over the path in use */
	bool opening;   /* the next path's port is looked for */
	uint8_t open_tries;
	uint64_t open_at;                   /* et; of the next question */
	uint64_t open_again_at, open_again; /* et; no questions before, since none was answered */
	/* engine/path_grow.c; times are et */
	bool on_trial;
	uint8_t trial_used, trial_spare;
	uint64_t trial_at, pair_at; /* not before the next trial, the next pair of it */
	uint64_t again;             /* ns between two trials */
	uint64_t more_at;           /* when paths were added last, or taken away */
	uint64_t fewer_at, fewer_ns;
	struct weft_path_trial trial;
	struct raw_multi_path path[WEFT_FRAME_PATHS_MAX];
};

/** The connection is up. @return 0 or -ENOMEM */
int raw_multi_init(struct raw_conn *c);
/** c->multi is there. @return 0 or -ENOMEM */
int raw_multi_need(struct raw_conn *c);
void raw_multi_free(struct raw_conn *c);

/** New frames may take it. */
static inline bool raw_multi_usable(const struct raw_conn *c, unsigned int path)
{
	return !c->multi || (c->multi->active & ~c->multi->bad) >> path & 1 || path == c->next_path;
}

/**
 * A frame is to be sent again that was sent over @p path: what ate it may eat it again.
 * @param reserve  a path in reserve will do: there may be more to it than a frame that is lost
 */
uint8_t raw_multi_other(const struct raw_conn *c, uint8_t path, bool reserve);
/** It is, over slot->path; before over @p before. @p probe: nothing was heard, no loss found. */
void raw_multi_resent(struct raw_conn *c, const struct raw_slot *slot, uint8_t before, bool probe);
/** With RAW_WATCH_MANY: a frame has left. Chooses the path of the next one. */
void raw_multi_sent(struct raw_conn *c, uint8_t path, uint32_t bytes);
/** With path_watch: a frame is acknowledged. */
void raw_multi_slot_acked(struct raw_conn *c, const struct raw_slot *slot);
/**
 * With path_watch: an acknowledgement has been taken, which came over the path in @p hdr.
 * @return frames are lost
 */
bool raw_multi_acked(struct raw_conn *c, const struct weft_frame_hdr *hdr);
/** Its path has fallen silent behind it: it is lost, whatever newer frames tell. */
bool raw_multi_lost(const struct raw_conn *c, const struct raw_slot *slot);

/* ---- engine/path_open.c: ports */

bool raw_multi_can_open(const struct raw_conn *c);
/** One path more is looked for, unless it is already; at either end. */
void raw_path_open(struct raw_conn *c);
/** Initiator, now and then: is it time for a reserve? */
void raw_path_reserve(struct raw_conn *c);
void raw_path_open_timer(struct raw_conn *c);
/** Initiator: USE of path @p k is said again when it is due. @return no other port is looked for */
bool raw_path_using(struct raw_conn *c, uint8_t k);
/** Initiator: may path @p k have a new port? @return 0 or -EAGAIN */
int raw_path_ask(struct raw_conn *c, uint8_t k);
/** Responder: path @p k should have one. */
void raw_path_want(struct raw_conn *c, uint8_t k);
/** A question over a path, by the ports that it has. @return 0 or -EAGAIN */
int raw_path_probe_send(struct raw_conn *c, uint8_t k, uint16_t kind);
/** PROBE_ACK{PATH}: it may; PROBE_ACK{USE}: it has. */
void raw_path_answer(struct raw_conn *c, const struct weft_frame_view *v, uint16_t kind);
/** PROBE. @return it is to be answered over path @p over */
bool raw_path_probe(struct raw_conn *c, const struct weft_frame_view *v, uint8_t *over);

/* ---- engine/path_grow.c */

/** By et, while c->path_busy: is it time for a trial, or for its next frames? */
void raw_path_grow_timer(struct raw_conn *c);

/* ---- engine/multipath.c */

/** New frames take these. */
void raw_multi_activate(struct raw_conn *c, uint16_t mask);

/** A path has another port, and an answer has come back by it. */
void raw_multi_renewed(struct raw_conn *c, uint8_t k);
/** It has another port; whether it carries anything from here is to be found out. */
void raw_multi_ask_soon(struct raw_conn *c, uint8_t k);
/** Questions to paths that are due, by et. */
void raw_multi_timer(struct raw_conn *c);
/** PROBE_ACK over a connection that is up. */
void raw_multi_answer(struct raw_conn *c, const struct weft_frame_view *v);
/** State of a path, as counters and for people. */
void raw_multi_counters(const struct raw_conn *c, unsigned int path, weft_lane_counter_cb cb,
			void *arg);
const char *raw_multi_text(const struct raw_conn *c, unsigned int path);

#endif /* WEFT_ENGINE_MULTIPATH_H */
