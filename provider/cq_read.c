/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading completion queues, with and without sleeping. */

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "provider/cq.h"
#include "provider/process.h"
#include "weft.h"

/* The shorter formats are the beginning of the longest. */
static size_t entry_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	default:
		return sizeof(struct fi_cq_entry);
	}
}

/*
 * Locked. Reads up to the first error. Not inline: most reads find the queue empty, and do not call
 * it.
 */
static __attribute__((noinline)) ssize_t take(struct wfi_cq *cq, void *buf, size_t count,
					      fi_addr_t *source)
{
	size_t size = entry_size(cq->format), n = 0;
	const struct wfi_completion *c;

	while (n < count && !wfi_cq_empty(cq)) {
		c = &cq->ring[cq->head & (cq->size - 1)];
		if (c->error != 0)
			return n > 0 ? (ssize_t)n : -FI_EAVAIL;
		memcpy((char *)buf + n * size, &c->entry, size);
		if (source)
			source[n] = c->source;
		cq->head++;
		n++;
	}
	if (n > 0)
		return (ssize_t)n;
	return wfi_cq_empty(cq) ? -FI_EAGAIN : 0;
}

static inline ssize_t read_now(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source)
{
	struct wfi_cq *cq = container_of(fid, struct wfi_cq, cq);
	bool yield = false;
	ssize_t n;

	wfi_lock();
	if (wfi_cq_empty(cq) || count == 0)
		wfi_progress();
	if (wfi_cq_empty(cq)) {
		n = -FI_EAGAIN;
		yield = wfi_turn_is_over();
	} else {
		n = take(cq, buf, count, source);
	}
	wfi_unlock();
	if (yield)
		sched_yield();
	return n;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source)
{
	return read_now(fid, buf, count, source);
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return read_now(fid, buf, count, NULL);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct wfi_cq *cq = container_of(fid, struct wfi_cq, cq);
	const struct wfi_completion *c;
	ssize_t n = -FI_EAGAIN;

	wfi_lock();
	c = &cq->ring[cq->head & (cq->size - 1)];
	if (!wfi_cq_empty(cq) && c->error != 0) {
		buf->op_context = c->entry.op_context;
		buf->flags = c->entry.flags;
		buf->len = c->entry.len;
		buf->buf = c->entry.buf;
		buf->data = c->entry.data;
		buf->tag = c->entry.tag;
		buf->olen = c->cut;
		buf->err = c->error;
		buf->prov_errno = c->weft_error;
		buf->err_data_size = 0; /* always */
		cq->head++;
		n = 1;
	}
	wfi_unlock();
	return n;
}

/* ------------------------------------------------------------------ sleeping */

/*
 * Locked. Are @threshold entries there, or an error? Entries behind an error cannot be read before
 * it.
 */
static bool is_enough(const struct wfi_cq *cq, size_t threshold)
{
	for (size_t i = cq->head; i != cq->tail; i++)
		if (cq->ring[i & (cq->size - 1)].error != 0)
			return true;
	return cq->tail - cq->head >= threshold;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source,
			    const void *cond, int timeout)
{
	struct wfi_cq *cq = container_of(fid, struct wfi_cq, cq);
	struct wfi_deadline deadline = wfi_deadline(timeout);
	size_t threshold = cq->wait_threshold && cond ? *(const size_t *)cond : 1;
	int left, rc;
	ssize_t n;

	if (cq->wait.epoll < 0)
		return -FI_ENOSYS; /* opened without a wait object */
	wfi_lock();
	for (;;) {
		wfi_progress();
		left = wfi_deadline_left(&deadline);
		if (is_enough(cq, threshold) || left == 0 || cq->signalled) {
			cq->signalled = false;
			n = take(cq, buf, count, source);
			break;
		}
		rc = wfi_wait_sleep(&cq->wait, left);
		if (rc < 0) {
			n = rc;
			break;
		}
	}
	wfi_unlock();
	return n;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct wfi_cq *cq = container_of(fid, struct wfi_cq, cq);

	if (cq->wait.epoll < 0)
		return -FI_ENOSYS;
	wfi_lock_any(); /* The caller may be another thread, even if calls are serialized. */
	cq->signalled = true;
	wfi_wait_signal(&cq->wait);
	wfi_unlock_armed();
	return 0;
}

static const char *cq_strerror(struct fid_cq *cq, int prov_errno, const void *err_data, char *buf,
			       size_t length)
{
	const char *text = weft_strerror(prov_errno);

	if (buf && length > 0)
		snprintf(buf, length, "%s", text);
	return text;
}

struct fi_ops_cq wfi_cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};
