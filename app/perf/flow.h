/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file perf/flow.h
 * Shared by the datapaths on the library (perf/tag.c, perf/am.c, perf/rma.c): a window of
 * outstanding operations, each in a slot with its buffer.
 *
 * The state of a datapath begins with a struct perf_flow. Functions that it passes are constants to
 * the inline functions here, so no message costs an indirect call.
 */
#ifndef APP_PERF_FLOW_H
#define APP_PERF_FLOW_H

#include <errno.h>

#include "perf/limit.h"
#include "perf/perf.h"

struct perf_flow;

/** An outstanding operation. */
struct perf_slot {
	struct perf_flow *flow;
	void *buffer;
	uint64_t index; /**< number of the message or operation */
	bool busy;
	struct weft_op_params params;
};

/** One side's end of a run. */
struct perf_flow {
	struct perf_side *side;
	struct peer *peer;
	const struct perf_run *run;
	bool validate;
	int error; /**< first failure, which ends the run */
	uint64_t posted, out,
		total;          /**< own operations: posted, outstanding, to be posted in all */
	struct perf_slot *slot; /**< without -V only the first is used */
	unsigned int slots;
};

/** Bytes from one buffer to the next: no two buffers share a page. */
static inline uint64_t perf_flow_stride(const struct perf_run *run)
{
	return (run->size + 4095) / 4096 * 4096 + 4096;
}

void perf_flow_init(struct perf_flow *f, struct perf_side *side);

/**
 * Allocate slots. Their operations have @p cb as callback with the slot as argument, and buffers
 * @p stride bytes apart from @p buffers on (0 = all the same).
 * @return NULL when there is no memory
 */
struct perf_slot *perf_flow_slots(struct perf_flow *f, unsigned int count, weft_complete_cb cb,
				  void *buffers, uint64_t stride, struct weft_mem *mem);

/** Allocate memory, and touch its pages. @return NULL: no memory */
void *perf_flow_memory(uint64_t length, int value);

/** Register memory if the run has -z. @return 0 or a negative error */
int perf_flow_register(const struct perf_flow *f, void *memory, uint64_t length,
		       struct weft_mem **mem);

/**
 * Wait for the end of an operation whose call returned @p ret.
 * @return 0, or -ECANCELED with f->error or the peer's exit code set
 */
int perf_flow_finish(struct perf_flow *f, int ret, struct weft_request *req);

/** Wait until all sent messages have arrived. @return as perf_flow_finish() */
int perf_flow_flush(struct perf_flow *f);

/** Stop the clock of a stream. */
void perf_flow_stop(struct perf_flow *f);

/** Callback of operations whose end needs no action but to free the slot. */
void perf_flow_sent(struct weft_request *req, const struct weft_completion *c, void *arg);

/** The slow part of perf_flow_more(). */
int perf_flow_wait_more(struct perf_flow *f, uint64_t done);

/** Progress, checks and limits once. @return 0, or non-zero when the run is over */
static inline int perf_flow_turn(struct perf_flow *f)
{
	return peer_poll(f->peer) ? -ECANCELED : f->error;
}

/**
 * Is there an iteration after @p done ones? At the end of the total the server waits for more.
 * @return 1, 0, or -ECANCELED when the run is over
 */
static inline int perf_flow_more(struct perf_flow *f, uint64_t done)
{
	if (unlikely(perf_limit_near(f->side, done)))
		return perf_flow_wait_more(f, done);
	return done < f->side->total;
}

/** The slot for the next operation; NULL = it is still in use. */
static inline struct perf_slot *perf_flow_next(struct perf_flow *f)
{
	struct perf_slot *slot = &f->slot[f->validate ? f->posted % f->slots : 0];

	return f->validate && slot->busy ? NULL : slot;
}

/** The same for a message, with its bytes filled in. */
static inline struct perf_slot *perf_flow_next_message(struct perf_flow *f)
{
	struct perf_slot *slot = perf_flow_next(f);

	if (slot && f->validate)
		perf_fill(slot->buffer, f->run->size, f->posted);
	return slot;
}

/** Account for an operation whose call returned @p ret. @return whether it was accepted */
static inline bool perf_flow_posted(struct perf_flow *f, struct perf_slot *slot, int ret)
{
	if (ret < 0) {
		f->error = ret;
		return false;
	}
	f->posted++;
	if (ret == WEFT_INPROGRESS) {
		slot->busy = true;
		f->out++;
	}
	return true;
}

/** Account for a message that was received, or failed. */
static inline void perf_flow_received(struct perf_flow *f, int status, const void *data,
				      size_t length, uint64_t index)
{
	if (status && status != -EMSGSIZE)
		f->error = status;
	else if (status || length != f->run->size ||
		 (f->validate && !perf_check(data, length, index)))
		f->side->wrong++;
}

/** The connection of the next message: with -P, connections in rotation. */
static inline struct weft_ep *perf_flow_ep(const struct perf_flow *f)
{
	const struct peer *p = f->peer;
	uint64_t i;

	if (likely(!p->num_more))
		return p->ep;
	i = f->posted % (p->num_more + 1);
	return i ? p->more[i - 1] : p->ep;
}

/** Post one operation. @return false when there is no slot, or with f->error */
typedef bool (*perf_flow_post_fn)(struct perf_flow *f);

/** Fill the window, up to number @p total. @return operations posted */
static inline __attribute__((always_inline)) unsigned int perf_flow_fill(struct perf_flow *f,
									 uint64_t total,
									 perf_flow_post_fn post)
{
	unsigned int count = 0;

	while (count < f->run->window && f->posted < total && f->out < f->run->window && post(f))
		count++;
	f->peer->posting = count > 0;
	return count;
}

/**
 * Post the next operation when the previous one has ended.
 * @return 0, or -ECANCELED when the run is over
 */
static inline __attribute__((always_inline)) int perf_flow_one(struct perf_flow *f,
							       perf_flow_post_fn post)
{
	while (f->out)
		if (perf_flow_turn(f))
			return -ECANCELED;
	return post(f) ? 0 : -ECANCELED;
}

#endif /* APP_PERF_FLOW_H */
