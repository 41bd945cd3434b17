/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/cq.h"

#include <stdlib.h>
#include <string.h>

#include "provider/process.h"

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
	cq->cq.ops = &wfi_cq_ops;
	wfi_lock();
	domain->refs++;
	wfi_unlock();
	*out = &cq->cq;
	return 0;
}
