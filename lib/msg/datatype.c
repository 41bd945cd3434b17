/* SPDX-License-Identifier: BSD-3-Clause */
/* Datatypes: packing and unpacking contiguous memory, iovs and generic types. */

#include <errno.h>
#include <stdint.h>

#include "base/log.h"
#include "msg/datatype.h"

_Thread_local unsigned int weft_dt_calls;

int weft_dt_refuse(const char *call)
{
	static struct weft_log_limit limit;

	weft_log_limited(&limit, WEFT_LOG_ERROR,
			 "%s() called inside a callback of a datatype: refused", call);
	return -EBUSY;
}

static int init_iov(struct weft_dt *dt, const struct iovec *iov, size_t count)
{
	if (count > UINT32_MAX || (count && !iov))
		return -EINVAL;
	dt->iov = iov;
	dt->iovcnt = count;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len > SIZE_MAX - dt->length)
			return -EINVAL;
		dt->length += iov[i].iov_len;
	}
	return 0;
}

static int init_generic(struct weft_dt *dt, const struct weft_datatype *type, const void *buffer,
			size_t count, bool unpack)
{
	const struct weft_generic_ops *ops = type->ops;

	if (!ops || ops->size < sizeof(*ops))
		return -EINVAL;
	dt->ops = ops;
	weft_dt_calls++;
	dt->state = unpack ? ops->start_unpack(type->arg, (void *)(uintptr_t)buffer, count)
			   : ops->start_pack(type->arg, buffer, count);
	if (dt->state)
		dt->length = ops->packed_size(dt->state);
	weft_dt_calls--;
	return dt->state ? 0 : -ENOMEM;
}

int weft_dt_init_slow(struct weft_dt *dt, const struct weft_datatype *type, const void *buffer,
		      size_t count, bool unpack)
{
	*dt = (struct weft_dt){.dt_class = type ? type->dt_class : WEFT_DT_CONTIG};
	if (type && type->size < sizeof(*type))
		return -EINVAL;
	switch (dt->dt_class) {
	case WEFT_DT_CONTIG:
		dt->buf = (void *)(uintptr_t)buffer;
		dt->length = count;
		return count && !buffer ? -EINVAL : 0;
	case WEFT_DT_IOV:
		return init_iov(dt, buffer, count);
	case WEFT_DT_GENERIC:
		return init_generic(dt, type, buffer, count, unpack);
	default:
		return -EINVAL;
	}
}

/* Put the cursor on the entry that holds byte @off (off < length). */
static void iov_seek(struct weft_dt *dt, size_t off)
{
	while (off < dt->base)
		dt->base -= dt->iov[--dt->pos].iov_len;
	while (off >= dt->base + dt->iov[dt->pos].iov_len)
		dt->base += dt->iov[dt->pos++].iov_len;
}

/* The longest contiguous memory that begins with byte @off, at most @len bytes. */
static void *contiguous_at(struct weft_dt *dt, size_t off, size_t *len)
{
	size_t skip, here;

	iov_seek(dt, off);
	skip = off - dt->base;
	here = dt->iov[dt->pos].iov_len - skip;
	if (here < *len)
		*len = here;
	return (uint8_t *)dt->iov[dt->pos].iov_base + skip;
}

int weft_dt_pack_slow(struct weft_dt *dt, size_t off, void *dst, size_t len)
{
	uint8_t *d = dst;

	while (len) {
		size_t n = len;

		if (dt->dt_class == WEFT_DT_IOV) {
			const void *s = contiguous_at(dt, off, &n);

			memcpy(d, s, n);
		} else {
			ssize_t rc;

			weft_dt_calls++;
			rc = dt->ops->pack(dt->state, off, d, len);
			weft_dt_calls--;
			if (rc < 0)
				return (int)rc;
			/* would loop forever, or has overrun the buffer */
			if (rc == 0 || (size_t)rc > len)
				return -EINVAL;
			n = (size_t)rc;
		}
		off += n;
		d += n;
		len -= n;
	}
	return 0;
}

int weft_dt_unpack_slow(struct weft_dt *dt, size_t off, const void *src, size_t len)
{
	const uint8_t *s = src;
	int rc;

	if (dt->dt_class == WEFT_DT_GENERIC) {
		if (!len)
			return 0;
		weft_dt_calls++;
		rc = dt->ops->unpack(dt->state, off, src, len);
		weft_dt_calls--;
		return rc;
	}
	while (len) {
		size_t n = len;
		void *d = contiguous_at(dt, off, &n);

		memcpy(d, s, n);
		off += n;
		s += n;
		len -= n;
	}
	return 0;
}

unsigned int weft_dt_iov_some(struct weft_dt *dt, size_t off, size_t *len, struct iovec *out,
			      unsigned int max)
{
	unsigned int num = 0;
	size_t rest = *len;

	if (dt->dt_class == WEFT_DT_CONTIG) {
		*out = (struct iovec){dt->buf + off, rest};
		return 1;
	}
	while (rest && num < max) {
		size_t n = rest;
		void *p = contiguous_at(dt, off, &n);

		out[num++] = (struct iovec){p, n};
		off += n;
		rest -= n;
	}
	*len -= rest;
	return num;
}

unsigned int weft_dt_iov(struct weft_dt *dt, size_t off, size_t len, struct iovec *out,
			 unsigned int max)
{
	size_t some = len;
	unsigned int num;

	if (dt->dt_class == WEFT_DT_GENERIC)
		return 0;
	num = weft_dt_iov_some(dt, off, &some, out, max);
	return some == len ? num : 0;
}
