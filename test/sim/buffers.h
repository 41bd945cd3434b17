/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file buffers.h
 * Message buffers of test traffic in every datatype: contiguous, iov with odd cuts and empty
 * entries, generic callbacks that check how they are called. Receive buffers have guards behind
 * every piece.
 */
#ifndef SIM_BUFFERS_H
#define SIM_BUFFERS_H

#include "link/link.h"
#include "weft.h"

enum buf_kind { BUF_CONTIG, BUF_IOV, BUF_GENERIC };

struct buf {
	enum buf_kind kind;
	size_t size;
	bool recv;
	uint64_t id;  /* content, when sending */
	uint8_t *mem; /* contig and generic: size bytes, with guard */
	struct iovec *iov;
	unsigned int iovcnt;
	struct weft_datatype dt;
	/* generic: how it was called */
	unsigned int started, finished;
	uint8_t *seen; /* bytes unpacked */
	const char *error;
};

/** A send buffer holding message @p id. */
struct buf *buf_send(struct sim_rng *rng, enum buf_kind kind, uint64_t id, size_t size);
/** A receive buffer of @p size bytes, filled with guards. */
struct buf *buf_recv(struct sim_rng *rng, enum buf_kind kind, size_t size);
/** What to give to the send or receive call. */
void *buf_pointer(const struct buf *b);
size_t buf_count(const struct buf *b);
const struct weft_datatype *buf_datatype(const struct buf *b);
/**
 * A finished receive of message @p id with true length @p length: bytes right, as far as there is
 * room, everything behind untouched.
 * @return NULL or what is wrong
 */
const char *buf_verify(struct buf *b, uint64_t id, size_t length);
/** Its user writes into it: a call with WEFT_OP_F_INJECT has returned. */
void buf_reuse(struct buf *b);
/** No byte was written at all. */
const char *buf_untouched(struct buf *b);
/**
 * Overwrite and free: a lane that still reads it sends rubbish. @return NULL or what is wrong with
 * the use of callbacks
 */
const char *buf_free(struct buf *b);

#endif /* SIM_BUFFERS_H */
