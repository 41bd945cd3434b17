/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file proto/cost.h
 * Parts that the costs of several protocols are made of: a control message, data in fragments,
 * registration. Each adds terms to a curve (proto/model.h).
 */
#ifndef WEFT_COST_H
#define WEFT_COST_H

#include "proto/proto.h"

/*
 * What the protocol layer itself costs per piece, s. Lanes' overheads are the lanes' own numbers.
 * Estimates, of the size that UCX's model has (5..60 ns); weft-perf --sweep is how to judge them.
 */
#define WEFT_COST_PACK 10e-9 /**< the pack callback of am_bcopy() against am_short()'s plain copy */
#define WEFT_COST_ZCOPY 250e-9  /**< a zero-copy piece: describe the memory, complete later */
#define WEFT_COST_KERNEL 600e-9 /**< a native read or write in memory: calls of the kernel */
#define WEFT_COST_RNDV 60e-9    /**< request kept, looked up, ended: per end of a rendezvous */

/**
 * The measured rate is that of copies within a cache. Above this size a copy is one more of three,
 * and takes room there, however fast it is: pieces of 64 KiB messages over net_memif with frames of
 * 9 KB cost 0.77 of the CPU time [0.71-0.84] without it, where copies are taken for 40 GB/s.
 */
#define WEFT_ZCOPY_MOST 4096

/**
 * Zero-copy pays for pieces of at least so many bytes: the setting, or where the copy costs as much
 * as WEFT_COST_ZCOPY.
 */
size_t weft_cost_zcopy_from(const struct weft_model *m);

/**
 * Can the lane send this buffer type from user memory behind a header of @p hdr bytes? @return
 * longest payload, 0 = no
 */
size_t weft_cost_zcopy_max(const struct weft_model *m, unsigned int lane, size_t hdr, weft_buf buf);
/** Longest payload that the lane takes by copying. */
size_t weft_cost_copy_max(const struct weft_model *m, unsigned int lane, size_t hdr);

/** A message without payload on the lowest-latency lane: both CPUs and its way. */
void weft_cost_control(struct weft_curve *cv, const struct weft_model *m, const char *name);

/**
 * Registering memory on @p lanes at one end. @p stage: WEFT_STAGE_SEND_REG or WEFT_STAGE_RECV_REG
 */
void weft_cost_register(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes,
			enum weft_stage stage);

/** How fast @p lanes read and write by themselves. In memory the CPU that asks copies, once. */
double weft_cost_native_rate(const struct weft_model *m, uint32_t lanes, bool *in_memory);

/**
 * Data that @p lanes read or write by themselves: posting by the CPU of stage @p poster, the wire,
 * the way. Sets lanes and shares.
 */
void weft_cost_native(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes,
		      enum weft_stage poster);

/**
 * Data in fragments over @p lanes by active messages with headers of @p hdr bytes: send CPU, copy
 * (unless pieces go from user memory), wire, receive CPU, receive copy, and the way. Lanes that
 * cannot carry it are left out. Sets lanes, shares, fragment and round.
 * @return 0, or -ENOTSUP with the reason in cv->why
 */
int weft_cost_fragments(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes,
			size_t hdr, weft_buf buf);

#endif /* WEFT_COST_H */
