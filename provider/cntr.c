/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/cntr.h"

#include <sched.h>
#include <stdlib.h>

#include "provider/process.h"

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
	/* fi_cntr_wait() sleeps on it with any wait object. */
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
