/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file proto/cost.h
 * Costs of protocols, as terms of a curve (proto/model.h): the parts that several protocols have,
 * and the times of rendezvous protocols.
 */
#ifndef WEFT_PROTO_COST_H
#define WEFT_PROTO_COST_H

#include "proto/proto.h"

/* ------------------------------------------------------------------ parts */

/*
 * Parts of the costs of several protocols: a control message, data in fragments, registration. Each
 * adds terms to a curve (proto/model.h).
 */

/*
 * Costs of the protocol layer itself per piece, s. Lanes' overheads are numbers of the lanes. These
 * are estimates, of the size in UCX's model (5..60 ns); weft-perf --sweep verifies them.
 */
#define WEFT_COST_PACK 10e-9 /**< the pack callback of am_bcopy() against am_short()'s plain copy */
#define WEFT_COST_ZCOPY 250e-9  /**< a zero-copy piece: describe the memory, complete later */
#define WEFT_COST_KERNEL 600e-9 /**< a native read or write in memory: calls of the kernel */
#define WEFT_COST_RNDV 60e-9    /**< request allocated, looked up, ended: per end of a rendezvous */

/**
 * The measured rate is that of copies within a cache. Above this size a copy is one of three, and
 * displaces other data from the cache, even if it is fast. Pieces of 64 KiB messages over net_memif
 * with frames of 9 KB take 0.77 of the CPU time [0.71-0.84] without the copy, where copies are
 * estimated at 40 GB/s.
 */
#define WEFT_ZCOPY_MOST 4096

/**
 * The size from which zero-copy pays: the setting, or where the copy takes as long as
 * WEFT_COST_ZCOPY.
 */
size_t weft_cost_zcopy_from(const struct weft_model *m);

/**
 * Can the lane send this buffer type from user memory behind a header of @p hdr bytes? @return
 * longest payload, 0 = no
 */
size_t weft_cost_zcopy_max(const struct weft_model *m, unsigned int lane, size_t hdr, weft_buf buf);
/** The longest payload that the lane accepts by copying. */
size_t weft_cost_copy_max(const struct weft_model *m, unsigned int lane, size_t hdr);

/** A message without payload on the lowest-latency lane: both CPUs and the latency. */
void weft_cost_control(struct weft_curve *cv, const struct weft_model *m, const char *name);

/**
 * Registering memory on @p lanes at one end. @p stage: WEFT_STAGE_SEND_REG or WEFT_STAGE_RECV_REG
 */
void weft_cost_register(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes,
			enum weft_stage stage);

/**
 * The rate of native reads and writes over @p lanes. In memory the initiator's CPU copies, once.
 */
double weft_cost_native_rate(const struct weft_model *m, uint32_t lanes, bool *in_memory);

/**
 * Data in native reads or writes over @p lanes: posting by the CPU of stage @p poster, the wire,
 * the latency. Sets lanes and shares.
 */
void weft_cost_native(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes,
		      enum weft_stage poster);

/**
 * Data in fragments over @p lanes by active messages with headers of @p hdr bytes: send CPU, copy
 * (unless pieces go from user memory), wire, receive CPU, receive copy, and latency. Lanes that
 * cannot carry it are excluded. Sets lanes, shares, fragment and round.
 * @return 0, or -ENOTSUP with the reason in cv->why
 */
int weft_cost_fragments(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes,
			size_t hdr, weft_buf buf);

/* ------------------------------------------------------------------ rendezvous */

/*
 * The times of rendezvous protocols, by the scheme of their data: struct weft_proto.cost() of each.
 * The sender uses them for its estimate. The receiver, which decides on the scheme, compares the
 * same numbers (operation WEFT_OP_RNDV_DATA: all of it without RTS). Time ends when the receiver
 * has the data. The ATS is only work for the receiver's CPU; the sender's buffer is free one
 * latency later.
 */

/** RTS, RTR, DATA as active messages. */
int weft_rndv_cost_am(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		      struct weft_curve *cv);
/**
 * RTS, requests of the receiver for ranges of the data, DATA as active messages from user memory
 * where possible.
 */
int weft_rndv_cost_pull(const struct weft_model *m, const struct weft_proto_key *key,
			uint32_t lanes, struct weft_curve *cv);
/** RTS with keys, native remote reads by the receiver. */
int weft_rndv_cost_get(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv);
/** RTS, RTR with keys, native remote writes by the sender, and a message that they are done. */
int weft_rndv_cost_put(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv);

#endif /* WEFT_PROTO_COST_H */
