/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/gap.h
 * Gaps between two polls of a lane: acknowledgements report them, so that the peer can separate the
 * delay of this process from the delay of the path (doc/wire.md: progress block). A gap is found
 * with the clock reading of progress, and costs nothing while there is none.
 */
#ifndef WEFT_ENGINE_GAP_H
#define WEFT_ENGINE_GAP_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "frame/frame.h"

/** The owner did not poll for @p ns, and was not asleep until a frame would wake it. */
void raw_gap_note(struct raw_iface *iface, uint64_t ns);
/** The peer is known. @p reads: it accepts progress blocks. Earlier gaps are not reported to it. */
void raw_gap_init(struct raw_conn *c, bool reads);
/** Fills the block of the next ACK or BYE. @return false: it has none */
bool raw_gap_take(struct raw_conn *c, struct weft_frame_progress *block);
/** The peer's block, perhaps a repeated one. */
void raw_gap_input(struct raw_conn *c, const struct weft_frame_progress *block);

#endif /* WEFT_ENGINE_GAP_H */
