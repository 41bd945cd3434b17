/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/eq.h"

#include <stdlib.h>
#include <string.h>

#include "provider/process.h"

struct wfi_event {
	STAILQ_ENTRY(wfi_event) entry;
	uint32_t event;
	int error;     /* positive; 0: none */
	size_t length; /* bytes of data */
	uint8_t data[];
};

/* ------------------------------------------------------------------ writing */

static int put(struct wfi_eq *eq, uint32_t event, int error, const void *data, size_t length)
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

	if (put(eq, event, 0, &entry, sizeof(entry)) < 0)
		FI_WARN(&wfi_provider, FI_LOG_EQ, "no memory: an event is lost\n");
}

void wfi_eq_report_error(struct wfi_eq *eq, fid_t fid, void *context, uint64_t data, int error)
{
	struct fi_eq_err_entry entry = {.fid = fid, .context = context, .data = data, .err = error};

	if (put(eq, 0, error, &entry, sizeof(entry)) < 0)
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
	rc = put(eq, event, 0, buf, length);
	wfi_unlock();
	return rc < 0 ? rc : (ssize_t)length;
}

/* ------------------------------------------------------------------ reading */

/* Locked. */
static ssize_t take(struct wfi_eq *eq, uint32_t *event, void *buf, size_t length, uint64_t flags)
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
	n = take(eq, event, buf, length, flags);
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
		wfi_progress(); /* a worker with events could not be armed */
		n = rc < 0 ? rc : take(eq, event, buf, length, flags);
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
