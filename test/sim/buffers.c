/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "common/pattern.h"

#define GUARD 0xa5
#define GUARD_LEN 16

/* ---- generic datatype ----------------------------------------------------------------------- */

static void *start_pack(void *arg, const void *buffer, size_t count)
{
	struct buf *b = arg;

	if (buffer != b || count != 7)
		b->error = "start_pack() got another buffer or count";
	b->started++;
	return b;
}

static void *start_unpack(void *arg, void *buffer, size_t count)
{
	return start_pack(arg, buffer, count);
}

static size_t packed_size(void *state)
{
	return ((struct buf *)state)->size;
}

static ssize_t pack(void *state, size_t offset, void *dst, size_t max)
{
	struct buf *b = state;
	size_t n = b->size - offset;

	if (b->recv || offset >= b->size || !max || b->finished) {
		b->error = "pack() was called out of place";
		return -22;
	}
	/* Less than asked for is allowed. */
	if (n > max)
		n = max;
	if (n > 1000 && (offset & 1))
		n -= 7;
	memcpy(dst, b->mem + offset, n);
	return (ssize_t)n;
}

static int unpack(void *state, size_t offset, const void *src, size_t length)
{
	struct buf *b = state;
	size_t i;

	if (!b->recv || offset > b->size || length > b->size - offset || b->finished) {
		b->error = "unpack() was called out of place";
		return -22;
	}
	for (i = 0; i < length; i++) {
		if (b->seen[offset + i])
			b->error = "a byte was unpacked twice";
		b->seen[offset + i] = 1;
	}
	memcpy(b->mem + offset, src, length);
	return 0;
}

static void finish(void *state)
{
	((struct buf *)state)->finished++;
}

static const struct weft_generic_ops generic_ops = {
	.size = sizeof(generic_ops),
	.start_pack = start_pack,
	.start_unpack = start_unpack,
	.packed_size = packed_size,
	.pack = pack,
	.unpack = unpack,
	.finish = finish,
};

/* ---- making --------------------------------------------------------------------------------- */

static void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

/*
 * Cuts at random places, so that some entries are empty and some are single bytes; each piece has
 * its own guarded memory.
 */
static void make_iov(struct sim_rng *rng, struct buf *b)
{
	size_t left = b->size, n, max = b->size / 3 + 1;
	unsigned int i, entries = (unsigned int)sim_between(rng, 1, 12);

	b->iov = need(calloc(entries, sizeof(*b->iov)));
	b->iovcnt = entries;
	for (i = 0; i < entries; i++) {
		n = i == entries - 1       ? left
		    : sim_chance(rng, 0.2) ? 0
		    : sim_chance(rng, 0.2) ? 1
					   : sim_below(rng, max);
		if (n > left)
			n = left;
		left -= n;
		b->iov[i].iov_base = need(malloc(n + GUARD_LEN));
		b->iov[i].iov_len = n;
		memset(b->iov[i].iov_base, GUARD, n + GUARD_LEN);
	}
}

static struct buf *make(struct sim_rng *rng, enum buf_kind kind, size_t size, bool recv)
{
	struct buf *b = need(calloc(1, sizeof(*b)));

	b->kind = kind;
	b->size = size;
	b->recv = recv;
	if (kind == BUF_IOV) {
		b->dt = (struct weft_datatype){.size = sizeof(b->dt), .dt_class = WEFT_DT_IOV};
		make_iov(rng, b);
		return b;
	}
	b->mem = need(malloc(size + GUARD_LEN));
	memset(b->mem, GUARD, size + GUARD_LEN);
	if (kind == BUF_GENERIC) {
		b->dt = (struct weft_datatype){.size = sizeof(b->dt),
					       .dt_class = WEFT_DT_GENERIC,
					       .ops = &generic_ops,
					       .arg = b};
		b->seen = need(calloc(1, size + 1));
	}
	return b;
}

struct buf *buf_send(struct sim_rng *rng, enum buf_kind kind, uint64_t id, size_t size)
{
	struct buf *b = make(rng, kind, size, false);
	size_t at = 0;
	unsigned int i;

	b->id = id;
	if (b->mem)
		pattern_fill(id, 0, b->mem, size);
	for (i = 0; i < b->iovcnt; i++) {
		pattern_fill(id, at, b->iov[i].iov_base, b->iov[i].iov_len);
		at += b->iov[i].iov_len;
	}
	return b;
}

struct buf *buf_recv(struct sim_rng *rng, enum buf_kind kind, size_t size)
{
	return make(rng, kind, size, true);
}

void *buf_pointer(const struct buf *b)
{
	if (b->kind == BUF_GENERIC)
		return (void *)(uintptr_t)b;
	return b->kind == BUF_IOV ? (void *)b->iov : b->mem;
}

size_t buf_count(const struct buf *b)
{
	if (b->kind == BUF_GENERIC)
		return 7;
	return b->kind == BUF_IOV ? b->iovcnt : b->size;
}

const struct weft_datatype *buf_datatype(const struct buf *b)
{
	return b->kind == BUF_CONTIG ? NULL : &b->dt;
}

/* ---- checking ------------------------------------------------------------------------------- */

static bool guarded(const uint8_t *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != GUARD)
			return false;
	return true;
}

/* One piece of memory that holds bytes [at, at + len) of the message and a guard. */
static const char *check_piece(const uint8_t *p, size_t len, size_t at, uint64_t id, size_t length)
{
	size_t good = length > at ? length - at : 0;

	if (good > len)
		good = len;
	if (!guarded(p + len, GUARD_LEN))
		return "bytes behind the buffer were written";
	if (pattern_check(id, at, p, good) != good)
		return "a byte is wrong";
	if (!guarded(p + good, len - good))
		return "bytes of the buffer behind the message were written";
	return NULL;
}

const char *buf_verify(struct buf *b, uint64_t id, size_t length)
{
	const char *wrong = NULL;
	size_t at = 0, i;
	unsigned int e;

	if (b->error)
		return b->error;
	if (b->mem)
		wrong = check_piece(b->mem, b->size, 0, id, length);
	for (e = 0; e < b->iovcnt && !wrong; e++) {
		wrong = check_piece(b->iov[e].iov_base, b->iov[e].iov_len, at, id, length);
		at += b->iov[e].iov_len;
	}
	for (i = 0; b->seen && i < length && i < b->size && !wrong; i++)
		if (!b->seen[i])
			wrong = "a byte was not unpacked";
	return wrong;
}

const char *buf_untouched(struct buf *b)
{
	return buf_verify(b, 0, 0);
}

void buf_reuse(struct buf *b)
{
	if (b->mem)
		memset(b->mem, 0x5a, b->size);
	for (unsigned int i = 0; i < b->iovcnt; i++)
		memset(b->iov[i].iov_base, 0x5a, b->iov[i].iov_len);
}

const char *buf_free(struct buf *b)
{
	const char *wrong = b->error;
	unsigned int i;

	if (!wrong && b->started != b->finished)
		wrong = "generic states were started and finished unequally often";
	buf_reuse(b);
	for (i = 0; i < b->iovcnt; i++)
		free(b->iov[i].iov_base);
	free(b->iov);
	free(b->mem);
	free(b->seen);
	free(b);
	return wrong;
}
