/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/completion.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider/process.h"
#include "weft.h"

/* ------------------------------------------------------------------ completion queues */

#define SIZE_MIN 64u
#define SIZE_LIMIT (1u << 26)

int wfi_cq_grow(struct wfi_cq *cq)
{
	size_t size = cq->size * 2;
	struct wfi_completion *ring;

	if (size > SIZE_LIMIT)
		return -FI_ENOMEM;
	ring = calloc(size, sizeof(*ring));
	if (!ring)
		return -FI_ENOMEM;
	for (size_t i = cq->head; i != cq->tail; i++)
		ring[i & (size - 1)] = cq->ring[i & (cq->size - 1)];
	free(cq->ring);
	cq->ring = ring;
	cq->size = size;
	return 0;
}

int wfi_cq_trywait(struct wfi_cq *cq)
{
	if (cq->wait.epoll < 0)
		return -FI_EINVAL;
	return wfi_cq_empty(cq) ? wfi_wait_arm(&cq->wait) : -FI_EAGAIN;
}

/* ------------------------------------------------------------------ reading completion queues */

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

static inline void copy_entry(void *to, const struct fi_cq_tagged_entry *from, size_t size)
{
	/* Programs of MPI read this format: a constant size is copied by a few instructions. */
	if (size == sizeof(*from))
		memcpy(to, from, sizeof(*from));
	else
		memcpy(to, from, size);
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
		copy_entry((char *)buf + n * size, &c->entry, size);
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
	else
		weft_worker_kick(wfi.worker); /* sends frames that wait (wfi_op_polled()) */
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

/*
 * Return the address of an error's source in the application's buffer, if it has passed one.
 * Otherwise return @p address itself, which is valid until the queue returns its next error.
 */
static void give_address(struct wfi_cq *cq, struct fi_cq_err_entry *buf, void *address)
{
	size_t length = !address                                 ? 0
			: cq->domain->addr_format == FI_ADDR_STR ? strlen(address) + 1
								 : FI_NAME_MAX;

	free(cq->address);
	cq->address = address;
	/* For interfaces before 1.5 err_data and err_data_size are not an input. */
	if (cq->domain->api_version >= FI_VERSION(1, 5) && buf->err_data_size > 0 &&
	    buf->err_data) {
		if (length > buf->err_data_size)
			length = buf->err_data_size;
		if (address)
			memcpy(buf->err_data, address, length);
	} else if (address) {
		buf->err_data = address;
	}
	buf->err_data_size = length;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct wfi_cq *cq = container_of(fid, struct wfi_cq, cq);
	struct wfi_completion *c;
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
		give_address(cq, buf, c->address);
		cq->head++;
		n = 1;
	}
	wfi_unlock();
	return n;
}

/* ------------------------------------------------------------------ sleeping */

/*
 * Are @p threshold entries there, or an error? Entries behind an error cannot be read before the
 * error. Locked.
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

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

/* ------------------------------------------------------------------ open and close */

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct wfi_cq *cq = container_of(fid, struct wfi_cq, cq.fid);

	switch (command) {
	case FI_GETWAIT:
		if (cq->wait_obj != FI_WAIT_FD && cq->wait_obj != FI_WAIT_UNSPEC)
			return -FI_ENODATA;
		*(int *)arg = cq->wait.epoll;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = cq->wait_obj;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static void free_addresses(struct wfi_cq *cq)
{
	for (size_t i = cq->head; i != cq->tail; i++)
		free(cq->ring[i & (cq->size - 1)].address);
	free(cq->address);
}

static int cq_close(struct fid *fid)
{
	struct wfi_cq *cq = container_of(fid, struct wfi_cq, cq.fid);

	if (wfi_domain_is_parents(cq->domain))
		return 0;
	wfi_lock();
	if (cq->refs > 0) {
		wfi_unlock();
		return -FI_EBUSY;
	}
	wfi_wait_close(&cq->wait);
	cq->domain->refs--;
	wfi_unlock();
	free_addresses(cq);
	free(cq->ring);
	free(cq);
	return 0;
}

static struct fi_ops cq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = wfi_no_bind,
	.control = cq_control,
	.ops_open = wfi_no_ops_open,
};

static int check(const struct fi_cq_attr *attr)
{
	if (attr->flags & ~FI_AFFINITY || attr->format > FI_CQ_FORMAT_TAGGED)
		return -FI_EINVAL;
	if (attr->wait_cond != FI_CQ_COND_NONE && attr->wait_cond != FI_CQ_COND_THRESHOLD)
		return -FI_EINVAL;
	switch (attr->wait_obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static int setup(struct wfi_cq *cq, const struct fi_cq_attr *attr)
{
	cq->format = attr->format != FI_CQ_FORMAT_UNSPEC ? attr->format : FI_CQ_FORMAT_CONTEXT;
	cq->wait_obj = attr->wait_obj;
	cq->wait_threshold = attr->wait_cond == FI_CQ_COND_THRESHOLD;
	cq->wait = (struct wfi_wait)WFI_WAIT_CLOSED;
	for (cq->size = SIZE_MIN; cq->size < attr->size && cq->size < SIZE_LIMIT;)
		cq->size *= 2;
	cq->ring = calloc(cq->size, sizeof(*cq->ring));
	if (!cq->ring)
		return -FI_ENOMEM;
	return cq->wait_obj != FI_WAIT_NONE ? wfi_wait_open(&cq->wait) : 0;
}

int wfi_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **out, void *context)
{
	struct wfi_domain *domain = container_of(fid, struct wfi_domain, domain);
	struct wfi_cq *cq;
	int rc;

	rc = attr ? check(attr) : -FI_EINVAL;
	if (rc < 0)
		return rc;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	rc = setup(cq, attr);
	if (rc < 0) {
		free(cq->ring);
		free(cq);
		return rc;
	}
	cq->domain = domain;
	cq->cq.fid.fclass = FI_CLASS_CQ;
	cq->cq.fid.context = context;
	cq->cq.fid.ops = &cq_fi_ops;
	cq->cq.ops = &cq_ops;
	wfi_lock();
	domain->refs++;
	wfi_unlock();
	*out = &cq->cq;
	return 0;
}

/* ------------------------------------------------------------------ counters */

static struct wfi_cntr *cntr_of(struct fid_cntr *fid)
{
	return container_of(fid, struct wfi_cntr, cntr);
}

static uint64_t read_field(const uint64_t *field)
{
	uint64_t value;
	bool yield;

	wfi_lock();
	wfi_progress();
	value = *field;
	yield = wfi_turn_is_over();
	wfi_unlock();
	if (yield)
		sched_yield();
	return value;
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	return read_field(&cntr_of(fid)->value);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	return read_field(&cntr_of(fid)->errors);
}

static int change(struct fid_cntr *fid, uint64_t *field, uint64_t keep, uint64_t value)
{
	wfi_lock();
	*field = (*field & keep) + value;
	wfi_wait_signal(&cntr_of(fid)->wait);
	wfi_unlock();
	return 0;
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, &cntr_of(fid)->value, UINT64_MAX, value);
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, &cntr_of(fid)->value, 0, value);
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, &cntr_of(fid)->errors, UINT64_MAX, value);
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	return change(fid, &cntr_of(fid)->errors, 0, value);
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct wfi_deadline deadline = wfi_deadline(timeout);
	struct wfi_cntr *cntr = cntr_of(fid);
	uint64_t errors;
	int rc;

	wfi_lock();
	errors = cntr->errors;
	for (;;) {
		wfi_progress();
		rc = cntr->value >= threshold            ? 0
		     : cntr->errors != errors            ? -FI_EAVAIL
		     : wfi_deadline_left(&deadline) == 0 ? -FI_ETIMEDOUT
							 : 1;
		if (rc <= 0)
			break;
		rc = wfi_wait_sleep(&cntr->wait, wfi_deadline_left(&deadline));
		if (rc < 0)
			break;
	}
	wfi_unlock();
	return rc;
}

int wfi_cntr_trywait(struct wfi_cntr *cntr)
{
	return cntr->wait_obj != FI_WAIT_NONE ? wfi_wait_arm(&cntr->wait) : -FI_EINVAL;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	struct wfi_cntr *cntr = container_of(fid, struct wfi_cntr, cntr.fid);

	if (command != FI_GETWAIT || cntr->wait_obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	*(int *)arg = cntr->wait.epoll;
	return 0;
}

static int cntr_close(struct fid *fid)
{
	struct wfi_cntr *cntr = container_of(fid, struct wfi_cntr, cntr.fid);

	if (wfi_domain_is_parents(cntr->domain))
		return 0;
	wfi_lock();
	if (cntr->refs > 0) {
		wfi_unlock();
		return -FI_EBUSY;
	}
	wfi_wait_close(&cntr->wait);
	cntr->domain->refs--;
	wfi_unlock();
	free(cntr);
	return 0;
}

static struct fi_ops cntr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = wfi_no_bind,
	.control = cntr_control,
	.ops_open = wfi_no_ops_open,
};

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

int wfi_cntr_open(struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **out,
		  void *context)
{
	struct wfi_domain *domain = container_of(fid, struct wfi_domain, domain);
	struct wfi_cntr *cntr;
	int rc;

	if (attr && (attr->events != FI_CNTR_EVENTS_COMP || attr->flags != 0))
		return -FI_EINVAL;
	if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC &&
	    attr->wait_obj != FI_WAIT_FD)
		return -FI_ENOSYS;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	/* fi_cntr_wait() sleeps on these descriptors, also with FI_WAIT_NONE. */
	rc = wfi_wait_open(&cntr->wait);
	if (rc < 0) {
		free(cntr);
		return rc;
	}
	cntr->domain = domain;
	cntr->wait_obj = attr ? attr->wait_obj : FI_WAIT_NONE;
	cntr->cntr.fid.fclass = FI_CLASS_CNTR;
	cntr->cntr.fid.context = context;
	cntr->cntr.fid.ops = &cntr_fi_ops;
	cntr->cntr.ops = &cntr_ops;
	wfi_lock();
	domain->refs++;
	wfi_unlock();
	*out = &cntr->cntr;
	return 0;
}

/* ------------------------------------------------------------------ event queues */

struct wfi_event {
	STAILQ_ENTRY(wfi_event) entry;
	uint32_t event;
	int error;     /* positive; 0: none */
	size_t length; /* bytes of data */
	uint8_t data[];
};

static int event_put(struct wfi_eq *eq, uint32_t event, int error, const void *data, size_t length)
{
	struct wfi_event *e = malloc(sizeof(*e) + length);

	if (!e)
		return -FI_ENOMEM;
	e->event = event;
	e->error = error;
	e->length = length;
	memcpy(e->data, data, length);
	STAILQ_INSERT_TAIL(&eq->events, e, entry);
	wfi_wait_signal(&eq->wait);
	return 0;
}

void wfi_eq_report(struct wfi_eq *eq, uint32_t event, fid_t fid, void *context, uint64_t data)
{
	struct fi_eq_entry entry = {.fid = fid, .context = context, .data = data};

	if (event_put(eq, event, 0, &entry, sizeof(entry)) < 0)
		FI_WARN(&wfi_provider, FI_LOG_EQ, "no memory: an event is lost\n");
}

void wfi_eq_report_error(struct wfi_eq *eq, fid_t fid, void *context, uint64_t data, int error)
{
	struct fi_eq_err_entry entry = {.fid = fid, .context = context, .data = data, .err = error};

	if (event_put(eq, 0, error, &entry, sizeof(entry)) < 0)
		FI_WARN(&wfi_provider, FI_LOG_EQ, "no memory: an event is lost\n");
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t length,
			uint64_t flags)
{
	struct wfi_eq *eq = container_of(fid, struct wfi_eq, eq);
	int rc;

	if (flags != 0)
		return -FI_EBADFLAGS;
	wfi_lock_any();
	rc = event_put(eq, event, 0, buf, length);
	wfi_unlock();
	return rc < 0 ? rc : (ssize_t)length;
}

/* Locked. */
static ssize_t event_take(struct wfi_eq *eq, uint32_t *event, void *buf, size_t length,
			  uint64_t flags)
{
	struct wfi_event *e = STAILQ_FIRST(&eq->events);
	size_t n;

	if (!e)
		return -FI_EAGAIN;
	if (e->error != 0)
		return -FI_EAVAIL;
	if (length < e->length)
		return -FI_ETOOSMALL;
	n = e->length;
	*event = e->event;
	memcpy(buf, e->data, n);
	if (!(flags & FI_PEEK)) {
		STAILQ_REMOVE_HEAD(&eq->events, entry);
		free(e);
	}
	return (ssize_t)n;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t length,
		       uint64_t flags)
{
	struct wfi_eq *eq = container_of(fid, struct wfi_eq, eq);
	ssize_t n;

	wfi_lock_any();
	n = event_take(eq, event, buf, length, flags);
	wfi_unlock();
	return n;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct wfi_eq *eq = container_of(fid, struct wfi_eq, eq);
	struct wfi_event *e;
	ssize_t n = -FI_EAGAIN;

	wfi_lock_any();
	e = STAILQ_FIRST(&eq->events);
	if (e && e->error != 0) {
		memcpy(buf, e->data, sizeof(*buf));
		n = sizeof(*buf);
		if (!(flags & FI_PEEK)) {
			STAILQ_REMOVE_HEAD(&eq->events, entry);
			free(e);
		}
	}
	wfi_unlock();
	return n;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t length, int timeout,
			uint64_t flags)
{
	struct wfi_eq *eq = container_of(fid, struct wfi_eq, eq);
	struct wfi_deadline deadline = wfi_deadline(timeout);
	int left, rc = 0;
	ssize_t n;

	wfi_lock_any();
	for (;;) {
		wfi_progress(); /* a worker with events cannot be armed for the sleep below */
		n = rc < 0 ? rc : event_take(eq, event, buf, length, flags);
		left = wfi_deadline_left(&deadline);
		if (n != -FI_EAGAIN || left == 0)
			break;
		rc = wfi_wait_sleep(&eq->wait, left);
	}
	wfi_unlock();
	return n;
}

static const char *eq_strerror(struct fid_eq *eq, int prov_errno, const void *err_data, char *buf,
			       size_t length)
{
	return fi_strerror(prov_errno);
}

int wfi_eq_trywait(struct wfi_eq *eq)
{
	return STAILQ_EMPTY(&eq->events) ? wfi_wait_arm(&eq->wait) : -FI_EAGAIN;
}

/* ------------------------------------------------------------------ open and close */

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct wfi_eq *eq = container_of(fid, struct wfi_eq, eq.fid);

	if (command != FI_GETWAIT || eq->wait_obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	*(int *)arg = eq->wait.epoll;
	return 0;
}

static int eq_close(struct fid *fid)
{
	struct wfi_eq *eq = container_of(fid, struct wfi_eq, eq.fid);
	struct wfi_event *e;

	if (eq->generation != wfi.generation)
		return 0;
	wfi_lock_any();
	if (eq->refs > 0) {
		wfi_unlock();
		return -FI_EBUSY;
	}
	wfi_wait_close(&eq->wait);
	wfi_unlock();
	while ((e = STAILQ_FIRST(&eq->events))) {
		STAILQ_REMOVE_HEAD(&eq->events, entry);
		free(e);
	}
	free(eq);
	return 0;
}

static struct fi_ops eq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = wfi_no_bind,
	.control = eq_control,
	.ops_open = wfi_no_ops_open,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

int wfi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out,
		void *context)
{
	struct wfi_eq *eq;
	int rc;

	if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC &&
	    attr->wait_obj != FI_WAIT_FD)
		return -FI_ENOSYS;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	rc = wfi_wait_open(&eq->wait);
	if (rc < 0) {
		free(eq);
		return rc;
	}
	STAILQ_INIT(&eq->events);
	eq->generation = wfi.generation;
	eq->wait_obj = attr ? attr->wait_obj : FI_WAIT_NONE;
	eq->eq.fid.fclass = FI_CLASS_EQ;
	eq->eq.fid.context = context;
	eq->eq.fid.ops = &eq_fi_ops;
	eq->eq.ops = &eq_ops;
	*out = &eq->eq;
	return 0;
}
