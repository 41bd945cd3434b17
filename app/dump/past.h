/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/past.h
 * Faults that began before the frames of a flight recorder's file, by the histories of its lanes.
 */
#ifndef DUMP_PAST_H
#define DUMP_PAST_H

#include "dump/delay.h"
#include "dump/history.h"

/**
 * Do the delays of the flow, as the history in its receiver's file has them, show that its path got
 * longer? @param[out] d  as for trace_delayed(); `after` is the difference
 */
bool past_delayed(const struct trace *t, const struct trace_flow *f, struct trace_delay *d);

/** @return the time from which on the port's lane counts @p what more often; 0 = none */
uint64_t past_since(const struct trace *t, const struct trace_port *port, enum history_count what);

/**
 * @return the time at which a connection of the port's lane first went on with smaller frames, as
 * larger ones did not pass; 0 = none did, or the lane's history is not that of one peer
 */
uint64_t past_lowered(const struct trace *t, const struct trace_port *port);

struct past_loss {
	uint64_t since; /**< when retransmissions became more frequent */
	/** frames after `since`: lost, sent again, all sent; slots of time with one sent again */
	unsigned int frames, again, sent, slots;
};

/**
 * Did frames of the flow get lost? The sender's history has to show more that were sent again than
 * came twice by the receiver's. @param[out] loss  filled in if they did
 */
bool past_lost(const struct trace *t, const struct trace_flow *f, struct past_loss *loss);

/** Times in which a host did not poll: the greatest share that a lane of it has. */
struct past_pauses {
	uint64_t since, ns; /**< begin of the lane's history, common clock, and its length */
	double share;       /**< of `ns`, 0 to 1 */
	unsigned int slots; /**< slots in which the host did not poll for 1 ms and more */
};

/**
 * By the history of its lanes, did the file's host not poll for 1 ms and more in several slots?
 * @param[out] pauses  filled in if it did
 */
bool past_paused(const struct trace *t, uint8_t file, struct past_pauses *pauses);

/**
 * By the history of its lanes, did the host of the file not poll for TRACE_STOP_NS and more, though
 * a lane had had frames? @param[out] stop  the longest such time, common clock
 */
bool past_stopped(const struct trace *t, uint8_t file, struct trace_gap *stop);

#endif /* DUMP_PAST_H */
