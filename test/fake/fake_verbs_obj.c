/* SPDX-License-Identifier: BSD-3-Clause */

/* The devices of fake/fake_verbs.h: objects, and the states of queue pairs. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake/fake_priv.h"

/* The functions behind the header's macros. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static struct fake_mr *mrs[FAKE_MRS];
static uint8_t mr_gen[FAKE_MRS];

/* ------------------------------------------------------------------ memory */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct fake_pd *pd;
	int err;

	fake_lock();
	err = fake_device_of(ctx)->removed ? EIO : fake_fails(FAKE_ALLOC_PD);
	fake_unlock();
	if (err != 0) {
		errno = err;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	assert_non_null(pd);
	pd->pd.context = ctx;
	pd->d = fake_device_of(ctx);
	fake.alive.pds++;
	return &pd->pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	if (((struct fake_pd *)pd)->users > 0)
		return EBUSY;
	fake.alive.pds--;
	free(pd);
	return 0;
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	uintptr_t first = (uintptr_t)addr & ~(uintptr_t)4095;
	size_t pinned = (((uintptr_t)addr + length + 4095) & ~(uintptr_t)4095) - first;
	struct fake_mr *mr;
	uint32_t i;
	int err;

	fake_lock();
	err = ((struct fake_pd *)pd)->d->removed ? EIO : fake_fails(FAKE_REG_MR);
	if (err == 0 && (iova & 4095) != ((uintptr_t)addr & 4095))
		err = EINVAL;
	if (err == 0 && (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		err = EINVAL;
	if (err == 0 && (pinned > fake.memlock || fake.pinned > fake.memlock - pinned))
		err = ENOMEM;
	for (i = 0; err == 0 && i < FAKE_MRS && mrs[i]; i++)
		;
	if (err == 0 && i == FAKE_MRS)
		err = ENOMEM;
	if (err != 0) {
		fake_unlock();
		errno = err;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	assert_non_null(mr);
	mr->mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length};
	mr->mr.lkey = mr->mr.rkey = (i + 1) << 8 | ++mr_gen[i];
	mr->iova = iova;
	mr->access = access;
	mr->pinned = pinned;
	mrs[i] = mr;
	fake.pinned += pinned;
	fake.alive.mrs++;
	((struct fake_pd *)pd)->users++;
	fake_unlock();
	return &mr->mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return reg(pd, addr, length, (uintptr_t)addr, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return reg(pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	return reg(pd, addr, length, iova, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *base)
{
	struct fake_mr *mr = (struct fake_mr *)base;

	fake_lock();
	assert_ptr_equal(mrs[(base->lkey >> 8) - 1], mr);
	mrs[(base->lkey >> 8) - 1] = NULL;
	fake.pinned -= mr->pinned;
	fake.alive.mrs--;
	((struct fake_pd *)base->pd)->users--;
	fake_unlock();
	free(mr);
	return 0;
}

void *fake_mem(const struct ibv_pd *pd, uint32_t key, uint64_t addr, uint64_t len, int access)
{
	uint32_t i = (key >> 8) - 1;
	struct fake_mr *mr = i < FAKE_MRS ? mrs[i] : NULL;

	if (!mr || mr->mr.lkey != key || mr->mr.pd != pd || (mr->access & access) != access)
		return NULL;
	if (addr < mr->iova || len > mr->mr.length || addr - mr->iova > mr->mr.length - len)
		return NULL;
	return (char *)mr->mr.addr + (addr - mr->iova);
}

/* ------------------------------------------------------------------ queues */

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct fake_device *d = fake_device_of(ctx);
	struct fake_cq *cq;
	int err;

	(void)comp_vector;
	fake_lock();
	err = d->removed ? EIO : fake_fails(FAKE_CREATE_CQ);
	fake_unlock();
	if (err == 0 && (cqe < 1 || cqe > d->attr.max_cqe))
		err = EINVAL;
	if (err != 0) {
		errno = err;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	assert_non_null(cq);
	cq->cq = (struct ibv_cq){
		.context = ctx, .channel = channel, .cq_context = cq_context, .cqe = cqe};
	if (channel) {
		assert_int_equal(channel->refcnt, 0);
		channel->refcnt = 1;
		((struct fake_channel *)channel)->cq = &cq->cq;
	}
	cq->depth = (uint32_t)cqe;
	cq->ring = calloc(cq->depth, sizeof(*cq->ring));
	assert_non_null(cq->ring);
	fake.alive.cqs++;
	return &cq->cq;
}

/* ------------------------------------------------------------------ completion channels */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct fake_channel *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->channel.context = ctx;
	c->channel.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	assert_true(c->channel.fd >= 0);
	return &c->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	assert_int_equal(channel->refcnt, 0);
	close(channel->fd);
	free(channel);
	return 0;
}

int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	assert_false(solicited_only);
	fake_lock();
	((struct fake_cq *)cq)->notify = true;
	fake_unlock();
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	uint64_t one;

	if (read(channel->fd, &one, sizeof(one)) != sizeof(one))
		return -1;
	*cq = ((struct fake_channel *)channel)->cq;
	assert_non_null(*cq);
	*cq_context = (*cq)->cq_context;
	((struct fake_cq *)*cq)->unacked++;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	assert_true(((struct fake_cq *)cq)->unacked >= nevents);
	((struct fake_cq *)cq)->unacked -= nevents;
}

int ibv_destroy_cq(struct ibv_cq *base)
{
	struct fake_cq *cq = (struct fake_cq *)base;

	if (cq->users > 0)
		return EBUSY;
	assert_int_equal(cq->unacked, 0); /* it would hang */
	if (base->channel)
		base->channel->refcnt--;
	fake.alive.cqs--;
	free(cq->ring);
	free(cq);
	return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct fake_device *d = ((struct fake_pd *)pd)->d;
	struct fake_srq *srq;
	int err;

	fake_lock();
	err = d->removed ? EIO : fake_fails(FAKE_CREATE_SRQ);
	fake_unlock();
	if (err == 0 && d->attr.max_srq == 0)
		err = EOPNOTSUPP;
	if (err == 0 &&
	    (attr->attr.max_wr > (uint32_t)d->attr.max_srq_wr || attr->attr.max_sge > 1))
		err = EINVAL;
	if (err != 0) {
		errno = err;
		return NULL;
	}
	srq = calloc(1, sizeof(*srq));
	assert_non_null(srq);
	srq->srq = (struct ibv_srq){
		.context = pd->context,
		.srq_context = attr->srq_context,
		.pd = pd,
	};
	srq->rq.depth = attr->attr.max_wr;
	srq->rq.ring = calloc(srq->rq.depth, sizeof(*srq->rq.ring));
	assert_non_null(srq->rq.ring);
	fake.alive.srqs++;
	((struct fake_pd *)pd)->users++;
	return &srq->srq;
}

int ibv_destroy_srq(struct ibv_srq *base)
{
	struct fake_srq *srq = (struct fake_srq *)base;

	if (srq->users > 0)
		return EBUSY;
	((struct fake_pd *)base->pd)->users--;
	fake.alive.srqs--;
	free(srq->rq.ring);
	free(srq);
	return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct fake_device *d = ((struct fake_pd *)pd)->d;
	struct fake_ah *ah;
	int err;

	fake_lock();
	err = d->removed ? EIO : fake_fails(FAKE_CREATE_AH);
	if (err == 0 && !fake_gid_at(d, attr->grh.sgid_index))
		err = EINVAL;
	if (err == 0 && !fake_gid_owner(&attr->grh.dgid))
		err = ETIMEDOUT;
	if (err == 0)
		fake.alive.ahs++;
	fake_unlock();
	if (err != 0) {
		errno = err;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	assert_non_null(ah);
	ah->ah = (struct ibv_ah){.context = pd->context, .pd = pd};
	ah->attr = *attr;
	return &ah->ah;
}

int ibv_destroy_ah(struct ibv_ah *base)
{
	struct fake_ah *ah = (struct fake_ah *)base;

	fake_lock();
	fake.count.ah_in_use += ah->pending > 0;
	fake.alive.ahs--;
	fake_unlock();
	free(ah);
	return 0;
}

/* ------------------------------------------------------------------ queue pairs */

struct fake_qp *fake_qp_find(uint32_t qpn)
{
	return qpn >= FAKE_QPN_FIRST && qpn - FAKE_QPN_FIRST < fake_qps_end
		       ? fake_qps[qpn - FAKE_QPN_FIRST]
		       : NULL;
}

static int check_caps(const struct fake_device *d, const struct ibv_qp_init_attr *attr)
{
	if (attr->cap.max_inline_data > d->max_inline ||
	    attr->cap.max_send_sge > (uint32_t)d->attr.max_sge ||
	    attr->cap.max_send_sge > FAKE_SGE_MAX ||
	    attr->cap.max_send_wr > (uint32_t)d->attr.max_qp_wr ||
	    (!attr->srq && attr->cap.max_recv_wr > (uint32_t)d->attr.max_qp_wr))
		return EINVAL;
	return attr->qp_type == IBV_QPT_RC || attr->qp_type == IBV_QPT_UD ? 0 : EOPNOTSUPP;
}

static void use(struct fake_qp *qp, int by)
{
	((struct fake_pd *)qp->qp.pd)->users += (unsigned int)by;
	((struct fake_cq *)qp->qp.send_cq)->users += (unsigned int)by;
	((struct fake_cq *)qp->qp.recv_cq)->users += (unsigned int)by;
	if (qp->qp.srq)
		((struct fake_srq *)qp->qp.srq)->users += (unsigned int)by;
	fake.alive.qps += (unsigned int)by;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct fake_device *d = ((struct fake_pd *)pd)->d;
	struct fake_qp *qp;
	int err;

	fake_lock();
	err = d->removed ? EIO : fake_fails(FAKE_CREATE_QP);
	if (err == 0)
		err = check_caps(d, attr);
	if (err == 0 && fake_qps_end == FAKE_QPS)
		err = ENOMEM;
	if (err != 0) {
		fake_unlock();
		errno = err;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	assert_non_null(qp);
	qp->qp = (struct ibv_qp){
		.context = pd->context,
		.qp_context = attr->qp_context,
		.pd = pd,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.qp_num = FAKE_QPN_FIRST + fake_qps_end,
		.state = IBV_QPS_RESET,
		.qp_type = attr->qp_type,
	};
	qp->d = d;
	qp->cap = attr->cap;
	qp->signal_all = attr->sq_sig_all != 0;
	qp->ring = calloc(attr->cap.max_send_wr, sizeof(*qp->ring));
	qp->rq.depth = !attr->srq ? attr->cap.max_recv_wr : 0;
	qp->rq.ring = calloc(qp->rq.depth + 1, sizeof(*qp->rq.ring));
	assert_true(qp->ring != NULL && qp->rq.ring != NULL);
	fake_qps[fake_qps_end++] = qp;
	use(qp, 1);
	fake_unlock();
	return &qp->qp;
}

static void release_ahs(struct fake_qp *qp)
{
	if (qp->qp.qp_type != IBV_QPT_UD)
		return;
	for (; qp->next != qp->head; qp->next++)
		((struct fake_ah *)qp->ring[qp->next % qp->cap.max_send_wr].wr.wr.ud.ah)->pending--;
}

int ibv_destroy_qp(struct ibv_qp *base)
{
	struct fake_qp *qp = (struct fake_qp *)base;

	fake_lock();
	fake_cq_clean((struct fake_cq *)base->recv_cq, qp);
	if (base->send_cq != base->recv_cq)
		fake_cq_clean((struct fake_cq *)base->send_cq, qp);
	fake_events_forget(qp);
	release_ahs(qp);
	fake_qps[base->qp_num - FAKE_QPN_FIRST] = NULL;
	use(qp, -1);
	fake_unlock();
	free(qp->ring);
	free(qp->rq.ring);
	free(qp);
	return 0;
}

/*
 * Which attributes a change needs (InfiniBand specification, table 91). @return -1 = there is no
 * such change
 */
static int needed(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
	const int rc[] = {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
			  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
			  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				  IBV_QP_MAX_QP_RD_ATOMIC};
	const int ud[] = {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN};
	const int *t = type == IBV_QPT_RC ? rc : ud;

	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return 0;
	if (from == IBV_QPS_RESET && to == IBV_QPS_INIT)
		return t[0];
	if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
		return t[1];
	if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
		return t[2];
	if (from == IBV_QPS_SQE && to == IBV_QPS_RTS)
		return 0;
	return -1;
}

static void take_attr(struct fake_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ibv_qp_attr *o = &qp->attr;

	o->qp_access_flags = mask & IBV_QP_ACCESS_FLAGS ? a->qp_access_flags : o->qp_access_flags;
	o->qkey = mask & IBV_QP_QKEY ? a->qkey : o->qkey;
	o->ah_attr = mask & IBV_QP_AV ? a->ah_attr : o->ah_attr;
	o->path_mtu = mask & IBV_QP_PATH_MTU ? a->path_mtu : o->path_mtu;
	o->dest_qp_num = mask & IBV_QP_DEST_QPN ? a->dest_qp_num : o->dest_qp_num;
	o->rq_psn = mask & IBV_QP_RQ_PSN ? a->rq_psn : o->rq_psn;
	o->sq_psn = mask & IBV_QP_SQ_PSN ? a->sq_psn : o->sq_psn;
	o->timeout = mask & IBV_QP_TIMEOUT ? a->timeout : o->timeout;
	o->retry_cnt = mask & IBV_QP_RETRY_CNT ? a->retry_cnt : o->retry_cnt;
	o->rnr_retry = mask & IBV_QP_RNR_RETRY ? a->rnr_retry : o->rnr_retry;
	o->min_rnr_timer = mask & IBV_QP_MIN_RNR_TIMER ? a->min_rnr_timer : o->min_rnr_timer;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		o->max_rd_atomic = a->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		o->max_dest_rd_atomic = a->max_dest_rd_atomic;
}

static int check_attr(const struct fake_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	const struct ibv_device_attr *d = &qp->d->attr;

	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > d->max_qp_rd_atom)
		return EINVAL;
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > d->max_qp_init_rd_atom)
		return EINVAL;
	if ((mask & IBV_QP_PATH_MTU) && a->path_mtu > qp->d->port.active_mtu)
		return EINVAL;
	if (!(mask & IBV_QP_AV))
		return 0;
	if (!fake_gid_at(qp->d, a->ah_attr.grh.sgid_index))
		return EINVAL;
	return fake_gid_owner(&a->ah_attr.grh.dgid) ? 0 : ETIMEDOUT;
}

static void reset_qp(struct fake_qp *qp)
{
	fake_cq_clean((struct fake_cq *)qp->qp.recv_cq, qp);
	if (qp->qp.send_cq != qp->qp.recv_cq)
		fake_cq_clean((struct fake_cq *)qp->qp.send_cq, qp);
	release_ahs(qp);
	qp->head = qp->next = qp->tail = 0;
	qp->rq.head = qp->rq.count = qp->rq.used = 0;
	qp->first_try = qp->first_rnr = 0;
	qp->last_wqe = false;
}

int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	int err, need;

	fake_lock();
	err = qp->d->removed ? EIO : fake_fails(FAKE_MODIFY_QP);
	need = needed(base->qp_type, base->state, attr->qp_state);
	if (err == 0 && (!(mask & IBV_QP_STATE) || need < 0 || (mask & ~IBV_QP_STATE) != need))
		err = EINVAL;
	if (err == 0)
		err = check_attr(qp, attr, mask);
	if (err == 0) {
		take_attr(qp, attr, mask);
		base->state = attr->qp_state;
		if (attr->qp_state == IBV_QPS_RESET)
			reset_qp(qp);
	}
	fake_unlock();
	return err;
}
