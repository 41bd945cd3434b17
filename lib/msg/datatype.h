/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/datatype.h
 * The buffer of one operation, of any datatype, as a sequence of packed bytes with random access.
 *
 * An iov has a cursor. A forward walk, or a short jump, does not start from the first entry. The
 * iovec array remains the caller's and must exist as long as the operation.
 */
#ifndef WEFT_DT_H
#define WEFT_DT_H

#include <stdbool.h>
#include <string.h>

#include "base/copy.h"
#include "weft.h"

struct weft_dt {
	uint8_t *buf;  /* contig: first byte */
	size_t length; /* packed bytes; capacity when unpacking */
	uint32_t dt_class;
	uint32_t pos; /* iov: entry the cursor is in */
	size_t base;  /* iov: packed offset of that entry */
	union {
		struct {
			const struct iovec *iov;
			size_t iovcnt;
		};
		struct {
			const struct weft_generic_ops *ops;
			void *state; /* generic: NULL = finished */
		};
	};
};

/**
 * The number of callbacks of generic datatypes on this thread's stack. Inside a callback the
 * operation, its queue and perhaps a lane are in an intermediate state, so calls that would change
 * them are refused.
 */
extern _Thread_local unsigned int weft_dt_calls __attribute__((tls_model("initial-exec")));

/** Log that @p call was made inside such a callback. @return -EBUSY */
int weft_dt_refuse(const char *call) __attribute__((cold));

int weft_dt_init_slow(struct weft_dt *dt, const struct weft_datatype *type, const void *buffer,
		      size_t count, bool unpack);

/**
 * @return 0; -EINVAL (a class that does not exist, lengths that overflow); -ENOMEM when a generic
 * type's start fails
 */
static inline int weft_dt_init(struct weft_dt *dt, const struct weft_datatype *type,
			       const void *buffer, size_t count, bool unpack)
{
	if (type || (count && !buffer))
		return weft_dt_init_slow(dt, type, buffer, count, unpack);
	/* Contiguous memory, the common case, needs these three fields only. */
	dt->dt_class = WEFT_DT_CONTIG;
	dt->buf = (uint8_t *)(uintptr_t)buffer;
	dt->length = count;
	return 0;
}

/** End the state of a generic type, once even if called again. */
static inline void weft_dt_finish(struct weft_dt *dt)
{
	void *state;

	if (dt->dt_class != WEFT_DT_GENERIC)
		return;
	state = dt->state;
	dt->state = NULL;
	if (!state)
		return;
	weft_dt_calls++;
	dt->ops->finish(state);
	weft_dt_calls--;
}

/** Write bytes [off, off + len) to @p dst. @return 0 or the pack callback's error */
int weft_dt_pack_slow(struct weft_dt *dt, size_t off, void *dst, size_t len);
/** Take bytes [off, off + len) from @p src. @return 0 or the unpack callback's error */
int weft_dt_unpack_slow(struct weft_dt *dt, size_t off, const void *src, size_t len);

static inline int weft_dt_pack(struct weft_dt *dt, size_t off, void *dst, size_t len)
{
	if (dt->dt_class != WEFT_DT_CONTIG)
		return weft_dt_pack_slow(dt, off, dst, len);
	weft_copy(dst, dt->buf + off, len);
	return 0;
}

static inline int weft_dt_unpack(struct weft_dt *dt, size_t off, const void *src, size_t len)
{
	if (dt->dt_class != WEFT_DT_CONTIG)
		return weft_dt_unpack_slow(dt, off, src, len);
	weft_copy(dt->buf + off, src, len);
	return 0;
}

/**
 * Describe bytes [off, off + len) as at most @p max pieces. @return the number of pieces; 0 = they
 * are more, or the type is generic
 */
unsigned int weft_dt_iov(struct weft_dt *dt, size_t off, size_t len, struct iovec *out,
			 unsigned int max);

/**
 * The same for the bytes from @p off on, as far as @p max pieces describe them. Not for generic
 * types; *len > 0.
 * @param[in,out] len  bytes wanted; bytes described
 * @return pieces
 */
unsigned int weft_dt_iov_some(struct weft_dt *dt, size_t off, size_t *len, struct iovec *out,
			      unsigned int max);

#endif /* WEFT_DT_H */
