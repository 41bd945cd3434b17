/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the devices of fake/fake_verbs.h. */
#ifndef FAKE_PRIV_H
#define FAKE_PRIV_H

#include <sys/queue.h>

#include "fake/fake_verbs.h"

#define FAKE_QPS 16384
#define FAKE_MRS 16384
#define FAKE_QPN_FIRST 0x100
#define FAKE_INLINE_MAX 512
#define FAKE_SGE_MAX 16

struct fake_event {
	STAILQ_ENTRY(fake_event) link;
	struct ibv_async_event e;
};

struct fake_context {
	struct ibv_context ctx; /* first */
	struct fake_device *d;
	STAILQ_HEAD(, fake_event) events;
	LIST_ENTRY(fake_context) link;
};

struct fake_pd {
	struct ibv_pd pd; /* first */
	struct fake_device *d;
	unsigned int users;
};

struct fake_mr {
	struct ibv_mr mr; /* first */
	uint64_t iova;
	int access;
	size_t pinned;
};

struct fake_cqe {
	struct ibv_wc wc;
	struct fake_qp *qp;
	struct fake_srq *srq; /* a place of it is free when this was polled */
	bool recv;
	uint32_t sq_at; /* a send: all places up to this one are */
};

struct fake_cq {
	struct ibv_cq cq; /* first */
	struct fake_cqe *ring;
	uint32_t depth, count, head;
	unsigned int users;
	bool overrun;
	bool notify; /* the next completion is an event of its channel */
	unsigned int unacked;
};

/* Of one queue, as the driver makes them; the descriptor counts its events. */
struct fake_channel {
	struct ibv_comp_channel channel; /* first */
	struct ibv_cq *cq;
};

struct fake_recv {
	uint64_t wr_id;
	struct ibv_sge sge;
};

/* Of a queue pair or shared. */
struct fake_rq {
	struct fake_recv *ring;
	uint32_t depth, head, count; /* posted and not taken */
	uint32_t used;               /* not polled */
};

struct fake_srq {
	struct ibv_srq srq; /* first */
	struct fake_rq rq;
	unsigned int users;
};

struct fake_ah {
	struct ibv_ah ah; /* first */
	struct ibv_ah_attr attr;
	unsigned int pending;
};

struct fake_send {
	struct ibv_send_wr wr;
	struct ibv_sge sge[FAKE_SGE_MAX];
	uint8_t data[FAKE_INLINE_MAX];
	uint32_t inlined;
};

struct fake_qp {
	struct ibv_qp qp; /* first */
	struct fake_device *d;
	struct ibv_qp_cap cap;
	bool signal_all;
	struct fake_send *ring;
	uint32_t head, next, tail; /* posted, executed, polled; cumulative */
	struct fake_rq rq;
	struct ibv_qp_attr attr;
	uint64_t first_try, first_rnr;
	bool last_wqe, lose_ack;
};

extern struct fake_qp *fake_qps[FAKE_QPS];
extern uint32_t fake_qps_end;

void fake_lock(void);
void fake_unlock(void);
/** Does the call fail now? @return its errno or 0 */
int fake_fails(enum fake_call call);
struct fake_qp *fake_qp_find(uint32_t qpn);
struct fake_device *fake_gid_owner(const union ibv_gid *gid);
/** The GID that a queue pair or address handle sends from. @return NULL when the entry is empty */
const union ibv_gid *fake_gid_at(const struct fake_device *d, unsigned int index);
void fake_event_push(struct ibv_context *ctx, const struct ibv_async_event *e);
/** Memory behind a scatter entry. @return NULL without the right @p access */
void *fake_mem(const struct ibv_pd *pd, uint32_t key, uint64_t addr, uint64_t len, int access);
/** What the kernel takes back when a queue pair goes. */
void fake_events_forget(const struct fake_qp *qp);
struct fake_device *fake_device_of(struct ibv_context *ctx);
void fake_cq_push(struct fake_cq *cq, const struct fake_cqe *cqe);
void fake_cq_clean(struct fake_cq *cq, const struct fake_qp *qp);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int fake_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void fake_qp_error(struct fake_qp *qp);

#endif /* FAKE_PRIV_H */
