/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/conn_live.h
 * Does the peer of a connection still live? Keepalives, suspicion, and the peer's BYE. Times are
 * live_clock. engine/liveness.c has the timers.
 */
#ifndef WEFT_ENGINE_CONN_LIVE_H
#define WEFT_ENGINE_CONN_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#define RAW_BYE_GRACE 2000000ull
/* ns between two reports: a port that takes no frames is checked every 0.2 ms. */
#define RAW_SUSPECT_AGAIN_NS 5000000ull

struct raw_live {
	uint32_t pings; /* requests for an ACK since the last valid frame */
	uint64_t next_ping;
	uint64_t doomed_at;    /* WEFT_PEER_TIMEOUT is over: the last check of other lanes */
	uint64_t beat_at;      /* of the last ALIVE frame */
	uint64_t own_seen;     /* of the last frame before it that the peer's own thread sent */
	uint64_t suspect_next; /* no further EV_SUSPECT before */
};

/**
 * @param seen  of the last frame of the peer
 * @return the time of the last frame of the peer's own thread. A heartbeat does not count. It shows
 * that the peer's process computes, but not which of its lanes work: a lane without a heartbeat
 * thread gets no answer in the meantime.
 */
static inline uint64_t raw_live_seen(const struct raw_live *live, uint64_t seen)
{
	return seen == live->beat_at ? live->own_seen : seen;
}

/** A heartbeat arrives; @p seen is that of the last frame before. */
static inline void raw_live_beat(struct raw_live *live, uint64_t seen, uint64_t now)
{
	live->own_seen = raw_live_seen(live, seen);
	live->beat_at = now;
}

/** @return true: the connection may be reported as suspect, and was not a short time ago */
static inline bool raw_live_reports(const struct raw_live *live, uint64_t now)
{
	return now >= live->suspect_next;
}

/** The connection is reported as suspect. */
static inline void raw_live_reported(struct raw_live *live, uint64_t now)
{
	live->suspect_next = now + RAW_SUSPECT_AGAIN_NS;
}

struct raw_bye {
	/* until which frames that the peer sent before its BYE may still arrive; 0 = no BYE yet */
	uint64_t at;
	uint32_t seq;
	uint8_t path;
	bool done; /* the peer knows that the connection is over */
};

/** BYE has arrived over @p path, perhaps again. */
static inline void raw_bye_take(struct raw_bye *bye, uint32_t seq, uint8_t path, uint64_t now)
{
	bye->path = path;
	if (bye->at == 0) {
		bye->at = now + RAW_BYE_GRACE;
		bye->seq = seq;
	}
}

/** @return true: frames before BYE are missing at @p next, and may still arrive */
static inline bool raw_bye_waits(const struct raw_bye *bye, uint32_t next, uint64_t now)
{
	return next != bye->seq && now < bye->at;
}

#endif /* WEFT_ENGINE_CONN_LIVE_H */
