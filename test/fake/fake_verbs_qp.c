/* SPDX-License-Identifier: BSD-3-Clause */

/* The devices of fake/fake_verbs.h: requests, what they do, and completions. */

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include <cmocka.h>

#include "fake/fake_priv.h"

#define GRH 40

/* How a request ended. */
#define WAIT (-1) /* not yet */

/* ------------------------------------------------------------------ completion queues */

void fake_cq_push(struct fake_cq *cq, const struct fake_cqe *cqe)
{
	struct ibv_async_event e = {.event_type = IBV_EVENT_CQ_ERR, .element.cq = &cq->cq};

	if (cq->count == cq->depth) {
		fake.count.cq_overrun++;
		if (!cq->overrun)
			fake_event_push(cq->cq.context, &e);
		cq->overrun = true;
		return;
	}
	cq->ring[(cq->head + cq->count++) % cq->depth] = *cqe;
	if (cq->notify && cq->cq.channel)
		eventfd_write(cq->cq.channel->fd, 1);
	cq->notify = false;
}

void fake_cq_clean(struct fake_cq *cq, const struct fake_qp *qp)
{
	uint32_t i, kept = 0;

	for (i = 0; i < cq->count; i++) {
		const struct fake_cqe *c = &cq->ring[(cq->head + i) % cq->depth];

		if (c->qp != qp) {
			cq->ring[(cq->head + kept++) % cq->depth] = *c;
			continue;
		}
		fake.count.purged_recvs += c->recv;
		fake.count.purged_sends += !c->recv;
		if (c->srq)
			c->srq->rq.used--;
	}
	cq->count = kept;
}

int fake_poll_cq(struct ibv_cq *base, int num, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	struct fake_cqe *c;
	int n = 0;

	fake_lock();
	while (n < num && cq->count > 0) {
		c = &cq->ring[cq->head];
		cq->head = (cq->head + 1) % cq->depth;
		cq->count--;
		if (c->srq)
			c->srq->rq.used--;
		else if (c->recv)
			c->qp->rq.used--;
		else
			c->qp->tail = c->sq_at + 1;
		wc[n++] = c->wc;
	}
	fake_unlock();
	return n;
}

static void push_send(struct fake_qp *qp, const struct fake_send *s, enum ibv_wc_status status)
{
	static const enum ibv_wc_opcode opcodes[] = {
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
	};
	struct fake_cqe c = {.qp = qp, .sq_at = qp->next};

	c.wc.wr_id = s->wr.wr_id;
	c.wc.status = status;
	c.wc.qp_num = qp->qp.qp_num;
	/* Of a completion in error only these are defined. */
	c.wc.opcode = status == IBV_WC_SUCCESS ? opcodes[s->wr.opcode] : (enum ibv_wc_opcode)0x55;
	fake_cq_push((struct fake_cq *)qp->qp.send_cq, &c);
}

/* A receive for a message of @p qp, or NULL. */
static struct fake_recv *take_recv(struct fake_qp *qp)
{
	struct fake_rq *rq = qp->qp.srq ? &((struct fake_srq *)qp->qp.srq)->rq : &qp->rq;
	struct fake_recv *r;

	if (rq->count == 0)
		return NULL;
	r = &rq->ring[rq->head];
	rq->head = (rq->head + 1) % rq->depth;
	rq->count--;
	return r;
}

static void push_recv(struct fake_qp *qp, const struct ibv_wc *wc)
{
	struct fake_cqe c = {
		.wc = *wc,
		.qp = qp,
		.srq = (struct fake_srq *)qp->qp.srq,
		.recv = true,
	};

	c.wc.qp_num = qp->qp.qp_num;
	if (wc->status != IBV_WC_SUCCESS)
		c.wc.opcode = (enum ibv_wc_opcode)0x55;
	fake_cq_push((struct fake_cq *)qp->qp.recv_cq, &c);
}

/* ------------------------------------------------------------------ posting */

static int copy_send(struct fake_qp *qp, const struct ibv_send_wr *wr, struct fake_send *s)
{
	int i, rd = qp->d->attr.max_sge_rd;
	uint32_t n = 0;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
		return EINVAL;
	if (wr->opcode == IBV_WR_RDMA_READ && wr->num_sge > rd)
		return EINVAL;
	memset(s, 0, sizeof(*s));
	s->wr = *wr;
	if (wr->num_sge > 0)
		memcpy(s->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(s->sge[0]));
	if (!(wr->send_flags & IBV_SEND_INLINE))
		return 0;
	for (i = 0; i < wr->num_sge; i++) {
		if (s->sge[i].length > qp->cap.max_inline_data - n)
			return ENOMEM;
		memcpy(s->data + n, (const void *)(uintptr_t)s->sge[i].addr, s->sge[i].length);
		n += s->sge[i].length;
	}
	s->inlined = n;
	return 0;
}

int fake_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	unsigned int taken;
	int err, fails;

	fake_lock();
	fails = fake_fails(FAKE_POST_SEND);
	taken = fails ? fake.fail[FAKE_POST_SEND].taken : 0;
	for (err = 0; wr; wr = wr->next) {
		if (fails && taken-- == 0)
			err = fails;
		else if (qp->d->removed)
			err = EIO;
		else if (base->state != IBV_QPS_RTS && base->state != IBV_QPS_ERR &&
			 base->state != IBV_QPS_SQE)
			err = EINVAL;
		else if (qp->head - qp->tail >= qp->cap.max_send_wr)
			err = ENOMEM;
		else
			err = copy_send(qp, wr, &qp->ring[qp->head % qp->cap.max_send_wr]);
		if (err != 0)
			break;
		if (base->qp_type == IBV_QPT_UD)
			((struct fake_ah *)wr->wr.ud.ah)->pending++;
		qp->head++;
	}
	if (err != 0)
		*bad = wr;
	fake_unlock();
	return err;
}

static int add_recv(struct fake_rq *rq, const struct ibv_recv_wr *wr)
{
	if (wr->num_sge != 1)
		return EINVAL;
	if (rq->used == rq->depth)
		return ENOMEM;
	rq->ring[(rq->head + rq->count) % rq->depth] =
		(struct fake_recv){.wr_id = wr->wr_id, .sge = wr->sg_list[0]};
	rq->count++;
	rq->used++;
	return 0;
}

static int add_recvs(struct fake_rq *rq, enum fake_call call, const struct fake_device *d,
		     struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	unsigned int taken;
	int err, fails;

	fake_lock();
	fails = fake_fails(call);
	taken = fails ? fake.fail[call].taken : 0;
	for (err = 0; wr && err == 0; wr = err ? wr : wr->next)
		err = d->removed ? EIO : fails && taken-- == 0 ? fails : add_recv(rq, wr);
	if (err != 0)
		*bad = wr;
	fake_unlock();
	return err;
}

int fake_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)base;

	if (base->state == IBV_QPS_RESET || base->srq) {
		*bad = wr;
		return EINVAL;
	}
	return add_recvs(&qp->rq, FAKE_POST_RECV, qp->d, wr, bad);
}

int fake_post_srq_recv(struct ibv_srq *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return add_recvs(&((struct fake_srq *)base)->rq, FAKE_POST_SRQ_RECV,
			 ((struct fake_context *)base->context)->d, wr, bad);
}

/* ------------------------------------------------------------------ moving bytes */

static uint64_t length_of(const struct fake_send *s)
{
	uint64_t n = 0;
	int i;

	if (s->wr.send_flags & IBV_SEND_INLINE)
		return s->inlined;
	for (i = 0; i < s->wr.num_sge; i++)
		n += s->sge[i].length;
	return n;
}

/*
 * Between the request's scatter entries and @p remote. @return false = no right to the local memory
 */
static bool copy_local(struct fake_qp *qp, const struct fake_send *s, void *remote,
		       bool write_local)
{
	uint8_t *p = remote;
	void *mem;
	int i, pass;

	if (s->wr.send_flags & IBV_SEND_INLINE) {
		memcpy(p, s->data, s->inlined);
		return true;
	}
	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < s->wr.num_sge; i++) {
			if (s->sge[i].length == 0)
				continue;
			mem = fake_mem(qp->qp.pd, s->sge[i].lkey, s->sge[i].addr, s->sge[i].length,
				       write_local ? IBV_ACCESS_LOCAL_WRITE : 0);
			if (!mem)
				return false;
			if (pass == 0)
				continue;
			memcpy(write_local ? mem : p, write_local ? p : mem, s->sge[i].length);
			p += s->sge[i].length;
		}
	}
	return true;
}

/* The message lies in @p buf: into a receive of @p to. */
static int receive(struct fake_qp *to, const struct ibv_wc *like, const uint8_t *buf, uint64_t len)
{
	struct fake_recv *r = take_recv(to);
	struct ibv_wc wc = *like;
	void *mem;

	if (!r)
		return IBV_WC_RNR_RETRY_EXC_ERR;
	wc.wr_id = r->wr_id;
	wc.opcode = IBV_WC_RECV;
	wc.byte_len = (uint32_t)len;
	mem = fake_mem(to->qp.pd, r->sge.lkey, r->sge.addr, r->sge.length, IBV_ACCESS_LOCAL_WRITE);
	wc.status = len > r->sge.length ? IBV_WC_LOC_LEN_ERR
		    : mem == NULL       ? IBV_WC_LOC_PROT_ERR
					: IBV_WC_SUCCESS;
	if (wc.status == IBV_WC_SUCCESS)
		memcpy(mem, buf, len);
	push_recv(to, &wc);
	if (wc.status == IBV_WC_SUCCESS)
		return IBV_WC_SUCCESS;
	fake_qp_error(to);
	return wc.status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR;
}

static int do_send(struct fake_qp *qp, const struct fake_send *s, struct fake_qp *to)
{
	uint64_t len = length_of(s);
	uint8_t *buf = malloc(len + 1);
	struct ibv_wc wc = {0};
	int status;

	assert_non_null(buf);
	if (s->wr.opcode == IBV_WR_SEND_WITH_IMM) {
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = s->wr.imm_data;
	}
	status = copy_local(qp, s, buf, false) ? receive(to, &wc, buf, len) : IBV_WC_LOC_PROT_ERR;
	free(buf);
	if (status != IBV_WC_RNR_RETRY_EXC_ERR)
		return status;
	fake.count.rnr++;
	if (qp->first_rnr == 0)
		qp->first_rnr = fake.now;
	/* Code 12 is 0.64 ms; 7 tries mean for ever. */
	if (qp->attr.rnr_retry == 7 ||
	    fake.now - qp->first_rnr <= (uint64_t)(qp->attr.rnr_retry + 1) * 640000)
		return WAIT;
	return IBV_WC_RNR_RETRY_EXC_ERR;
}

/* Refused by the peer, whose queue pair breaks with it. */
static int refuse(struct fake_qp *to, enum ibv_wc_status status)
{
	struct ibv_async_event e = {
		.event_type = status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR
							      : IBV_EVENT_QP_REQ_ERR,
		.element.qp = &to->qp,
	};

	fake_qp_error(to);
	fake_event_push(to->qp.context, &e);
	return (int)status;
}

static int do_rma(struct fake_qp *qp, const struct fake_send *s, struct fake_qp *to)
{
	bool read = s->wr.opcode == IBV_WR_RDMA_READ;
	int right = read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
	uint64_t len = length_of(s);
	void *mem;

	if (read && qp->attr.max_rd_atomic > to->attr.max_dest_rd_atomic)
		return refuse(to, IBV_WC_REM_INV_REQ_ERR);
	if (read && qp->attr.max_rd_atomic == 0)
		return IBV_WC_LOC_QP_OP_ERR;
	mem = fake_mem(to->qp.pd, s->wr.wr.rdma.rkey, s->wr.wr.rdma.remote_addr, len, right);
	if ((!mem && len > 0) || !((int)to->attr.qp_access_flags & right))
		return refuse(to, IBV_WC_REM_ACCESS_ERR);
	return copy_local(qp, s, mem, read) ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
}

static int do_atomic(struct fake_qp *qp, const struct fake_send *s, struct fake_qp *to)
{
	uint64_t addr = s->wr.wr.atomic.remote_addr, old;
	void *mem;

	if (addr % 8 != 0 || qp->attr.max_rd_atomic > to->attr.max_dest_rd_atomic)
		return refuse(to, IBV_WC_REM_INV_REQ_ERR);
	mem = fake_mem(to->qp.pd, s->wr.wr.atomic.rkey, addr, 8, IBV_ACCESS_REMOTE_ATOMIC);
	if (!mem || !(to->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC))
		return refuse(to, IBV_WC_REM_ACCESS_ERR);
	memcpy(&old, mem, 8);
	if (length_of(s) != 8 || !copy_local(qp, s, &old, true))
		return IBV_WC_LOC_PROT_ERR;
	if (s->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		old += s->wr.wr.atomic.compare_add;
	else if (old == s->wr.wr.atomic.compare_add)
		old = s->wr.wr.atomic.swap;
	memcpy(mem, &old, 8);
	return IBV_WC_SUCCESS;
}

/* ------------------------------------------------------------------ reliable connections */

static bool alive(const struct fake_device *d)
{
	return !d->removed && !d->frozen && !d->cut && d->port.state == IBV_PORT_ACTIVE;
}

/* Does what @p qp sends arrive at the other end, and does the other end take it for its own? */
static struct fake_qp *other_end(const struct fake_qp *qp)
{
	const struct ibv_qp_attr *a = &qp->attr, *b;
	const union ibv_gid *src = fake_gid_at(qp->d, a->ah_attr.grh.sgid_index), *back;
	struct fake_qp *to = fake_qp_find(a->dest_qp_num);

	if (!src || !to || to->qp.qp_type != IBV_QPT_RC || !alive(to->d) || qp->d->cut ||
	    fake_gid_owner(&a->ah_attr.grh.dgid) != to->d)
		return NULL;
	if (to->qp.state != IBV_QPS_RTR && to->qp.state != IBV_QPS_RTS)
		return NULL;
	b = &to->attr;
	back = fake_gid_at(to->d, b->ah_attr.grh.sgid_index);
	if (!back || b->dest_qp_num != qp->qp.qp_num || b->rq_psn != a->sq_psn ||
	    b->path_mtu != a->path_mtu || memcmp(src, &b->ah_attr.grh.dgid, sizeof(*src)) != 0 ||
	    memcmp(back, &a->ah_attr.grh.dgid, sizeof(*back)) != 0 ||
	    qp->d->v1[a->ah_attr.grh.sgid_index] != to->d->v1[b->ah_attr.grh.sgid_index])
		return NULL;
	return to;
}

static int run_rc(struct fake_qp *qp, const struct fake_send *s)
{
	struct fake_qp *to = other_end(qp);
	uint64_t retry_ns = (4096ull << qp->attr.timeout) * (qp->attr.retry_cnt + 1u);

	if (qp->first_try == 0)
		qp->first_try = fake.now;
	if (!to)
		return fake.now - qp->first_try > retry_ns ? (int)IBV_WC_RETRY_EXC_ERR : WAIT;
	switch (s->wr.opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return do_send(qp, s, to);
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		return do_rma(qp, s, to);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return do_atomic(qp, s, to);
	default:
		return IBV_WC_LOC_QP_OP_ERR;
	}
}

/* ------------------------------------------------------------------ datagrams */

/* The last 20 bytes of the space hold the IPv4 header, as RoCE v2 has it. */
static void put_header(uint8_t *grh, const union ibv_gid *src, const union ibv_gid *dst)
{
	uint8_t *ip = grh + 20;
	uint32_t sum = 0;
	int i;

	memset(grh, 0xee, 20);
	memset(ip, 0, 20);
	ip[0] = 0x45;
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, src->raw + 12, 4);
	memcpy(ip + 16, dst->raw + 12, 4);
	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	ip[10] = (uint8_t)(~sum >> 8);
	ip[11] = (uint8_t)~sum;
}

static int run_ud(struct fake_qp *qp, const struct fake_send *s)
{
	const struct ibv_global_route *grh = &((struct fake_ah *)s->wr.wr.ud.ah)->attr.grh;
	const union ibv_gid *src = fake_gid_at(qp->d, grh->sgid_index);
	struct fake_qp *to = fake_qp_find(s->wr.wr.ud.remote_qpn);
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH, .src_qp = qp->qp.qp_num};
	uint64_t len = length_of(s);
	uint8_t buf[GRH + 4096];

	if (fake.ud_send_error || !src || len > 128u << qp->d->port.active_mtu) {
		fake.ud_send_error = false;
		return !src ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_LEN_ERR;
	}
	if (!copy_local(qp, s, buf + GRH, false))
		return IBV_WC_LOC_PROT_ERR;
	fake.count.datagrams++;
	put_header(buf, src, &grh->dgid);
	if (fake.ud_lose > 0) {
		fake.ud_lose--;
	} else if (to && to->qp.qp_type == IBV_QPT_UD && alive(to->d) && !qp->d->cut &&
		   fake_gid_owner(&grh->dgid) == to->d &&
		   to->attr.qkey == s->wr.wr.ud.remote_qkey &&
		   (to->qp.state == IBV_QPS_RTR || to->qp.state == IBV_QPS_RTS ||
		    to->qp.state == IBV_QPS_SQE) &&
		   len <= 128u << to->d->port.active_mtu && to->rq.count > 0) {
		receive(to, &wc, buf, len + GRH);
		return IBV_WC_SUCCESS;
	}
	fake.count.ud_dropped++;
	return IBV_WC_SUCCESS;
}

/* ------------------------------------------------------------------ queue pairs */

void fake_qp_error(struct fake_qp *qp)
{
	qp->qp.state = IBV_QPS_ERR;
}

static void ended(struct fake_qp *qp, const struct fake_send *s, enum ibv_wc_status status)
{
	if (qp->qp.qp_type == IBV_QPT_UD)
		((struct fake_ah *)s->wr.wr.ud.ah)->pending--;
	if (status != IBV_WC_SUCCESS || qp->signal_all || (s->wr.send_flags & IBV_SEND_SIGNALED))
		push_send(qp, s, status);
	qp->next++;
	qp->first_try = qp->first_rnr = 0;
}

/* Everything comes back; of a shared queue nothing. */
static unsigned int flush(struct fake_qp *qp)
{
	struct ibv_async_event e = {.event_type = IBV_EVENT_QP_LAST_WQE_REACHED};
	unsigned int n = 0;
	struct fake_recv *r;

	for (; qp->next != qp->head; n++) {
		ended(qp, &qp->ring[qp->next % qp->cap.max_send_wr], IBV_WC_WR_FLUSH_ERR);
		fake.count.flushed++;
	}
	if (qp->qp.state == IBV_QPS_SQE)
		return n;
	while (!qp->qp.srq && (r = take_recv(qp)) != NULL) {
		struct ibv_wc wc = {.wr_id = r->wr_id, .status = IBV_WC_WR_FLUSH_ERR};

		push_recv(qp, &wc);
		n++;
	}
	if (qp->qp.srq && !qp->last_wqe && !qp->d->no_last_wqe) {
		e.element.qp = &qp->qp;
		fake_event_push(qp->qp.context, &e);
	}
	qp->last_wqe = true;
	return n;
}

/* One request of a queue pair. */
static unsigned int step(struct fake_qp *qp)
{
	struct fake_send *s = &qp->ring[qp->next % qp->cap.max_send_wr];
	int status;

	if (qp->d->removed || qp->d->frozen || fake.now < qp->d->busy)
		return 0;
	if (qp->qp.state == IBV_QPS_ERR || qp->qp.state == IBV_QPS_SQE)
		return flush(qp);
	if (qp->qp.state != IBV_QPS_RTS || qp->next == qp->head)
		return 0;
	if (qp->qp.qp_type == IBV_QPT_UD)
		status = run_ud(qp, s);
	else
		status = run_rc(qp, s);
	if (status == WAIT)
		return 0;
	if (qp->d->rate)
		qp->d->busy = fake.now + length_of(s) * 1000000000ull / qp->d->rate;
	if (qp->lose_ack && status == IBV_WC_SUCCESS && qp->qp.qp_type == IBV_QPT_RC)
		status = IBV_WC_RETRY_EXC_ERR;
	ended(qp, s, (enum ibv_wc_status)status);
	if (status != IBV_WC_SUCCESS)
		qp->qp.state = qp->qp.qp_type == IBV_QPT_UD ? IBV_QPS_SQE : IBV_QPS_ERR;
	return 1;
}

unsigned int fake_pump(uint64_t now_ns)
{
	unsigned int total = 0, n;
	uint32_t i;

	fake_lock();
	fake.now = now_ns;
	do {
		/* In turn, so that all that flood a receiver do it at once. */
		for (i = 0, n = 0; i < fake_qps_end; i++)
			if (fake_qps[i])
				n += step(fake_qps[i]);
		total += n;
	} while (n > 0 && (fake.budget == 0 || total < fake.budget));
	fake_unlock();
	return total;
}
