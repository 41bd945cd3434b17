/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/seq_window.h
 * Sequence numbers of one class of messages (tags, active messages) as they come: which is next,
 * and which the peer may send. Pure; numbers wrap.
 */
#ifndef WEFT_SEQ_WINDOW_H
#define WEFT_SEQ_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/wire.h"

struct weft_seq_window {
	uint32_t next; /**< of the next message in sequence */
	uint32_t told; /**< first one not allowed, as the peer knows it; at most a window ahead */
};

/**
 * May a message with this sequence begin now? Those before are over, those behind come too soon.
 */
static inline bool weft_seq_inside(const struct weft_seq_window *w, uint32_t seq)
{
	return seq - w->next < w->told - w->next;
}

/** Is it over already? */
static inline bool weft_seq_old(const struct weft_seq_window *w, uint32_t seq)
{
	return (int32_t)(seq - w->next) < 0;
}

/** What the peer could be told. */
static inline uint32_t weft_seq_end(const struct weft_seq_window *w)
{
	return w->next + WEFT_SEQ_WINDOW;
}

/** Has enough passed to tell it? */
static inline bool weft_seq_due(const struct weft_seq_window *w)
{
	return weft_seq_end(w) - w->told >= WEFT_SEQ_WINDOW / 4;
}

#endif /* WEFT_SEQ_WINDOW_H */
