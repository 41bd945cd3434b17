/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/seq_window.h
 * Sequence numbers of received messages of one class (tags, active messages): the next number, and
 * which numbers the peer may send. Pure; numbers wrap.
 */
#ifndef WEFT_SEQ_WINDOW_H
#define WEFT_SEQ_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/wire.h"

struct weft_seq_window {
	uint32_t next;       /**< of the next message in sequence */
	uint32_t advertised; /**< first number not advertised to the peer; at most a window ahead */
};

/**
 * May a message with this number begin now? Smaller numbers are over, larger ones not yet allowed.
 */
static inline bool weft_seq_inside(const struct weft_seq_window *w, uint32_t seq)
{
	return seq - w->next < w->advertised - w->next;
}

/** Is it over already? */
static inline bool weft_seq_old(const struct weft_seq_window *w, uint32_t seq)
{
	return (int32_t)(seq - w->next) < 0;
}

/** The first number that the peer may not use, to be advertised. */
static inline uint32_t weft_seq_end(const struct weft_seq_window *w)
{
	return w->next + WEFT_SEQ_WINDOW;
}

/** Has the window moved enough to advertise it? */
static inline bool weft_seq_due(const struct weft_seq_window *w)
{
	return weft_seq_end(w) - w->advertised >= WEFT_SEQ_WINDOW / 4;
}

#endif /* WEFT_SEQ_WINDOW_H */
