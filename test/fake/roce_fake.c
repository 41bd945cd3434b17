/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <errno.h>

#include "fake/roce_fake.h"
#include "roce/roce_dev.h"

struct fake fake;

static struct {
	struct ibv_wc wc[512];
	unsigned int head, tail;
	uint64_t receives[4096]; /* posted buffers, those of all queues */
	struct ibv_sge sge[4096];
	unsigned int num_receives, receives_taken;
	uint32_t next_qpn;
} hw;

static const struct weft_lane_conf conf = {.zcopy = true, .rx_bufs = 256};

/* ------------------------------------------------------------------ verbs */

struct ibv_srq *__wrap_ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int __wrap_ibv_destroy_srq(struct ibv_srq *srq);
struct ibv_comp_channel *__wrap_ibv_create_comp_channel(struct ibv_context *ctx);
struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *ctx, int cqe, void *context,
				    struct ibv_comp_channel *channel, int vector);
int __wrap_ibv_destroy_cq(struct ibv_cq *cq);
struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int __wrap_ibv_destroy_qp(struct ibv_qp *qp);
struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
struct ibv_mr *__wrap_ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				      int access);
int __wrap_ibv_dereg_mr(struct ibv_mr *mr);
struct ibv_ah *__wrap_ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int __wrap_ibv_destroy_ah(struct ibv_ah *ah);
int __wrap_ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event);
void __wrap_ibv_ack_async_event(struct ibv_async_event *event);
int __wrap__ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
			     struct ibv_gid_entry *entry, uint32_t flags, size_t size);
/* And of the driver: */
int __wrap_roce_job_start(struct roce_dev *dev, struct roce_job *job);
int __wrap_roce_port_open(const struct weft_lane_open *params, struct roce_port_info *info,
			  char *why, size_t why_len);

struct ibv_srq *__wrap_ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq *srq = calloc(1, sizeof(*srq));

	(void)pd;
	(void)attr;
	assert_non_null(srq);
	srq->context = &fake.ctx;
	return srq;
}

int __wrap_ibv_destroy_srq(struct ibv_srq *srq)
{
	free(srq);
	return 0;
}

struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *ctx, int cqe, void *context,
				    struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *cq = calloc(1, sizeof(*cq));

	(void)cqe;
	(void)context;
	(void)channel;
	(void)vector;
	assert_non_null(cq);
	cq->context = ctx;
	return cq;
}

/* The device of this file wakes no thread. */
struct ibv_comp_channel *__wrap_ibv_create_comp_channel(struct ibv_context *ctx)
{
	(void)ctx;
	errno = ENOSYS;
	return NULL;
}

int __wrap_ibv_destroy_cq(struct ibv_cq *cq)
{
	free(cq);
	return 0;
}

struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct fake_qp *qp = calloc(1, sizeof(*qp));

	(void)pd;
	assert_non_null(qp);
	assert_true(fake.num_qps < sizeof(fake.qps) / sizeof(fake.qps[0]));
	qp->qp.context = &fake.ctx;
	qp->qp.qp_context = attr->qp_context;
	qp->qp.qp_num = ++hw.next_qpn;
	fake.qps[fake.num_qps++] = qp;
	return &qp->qp;
}

static void push_wc(const struct fake_qp *qp, uint64_t wr_id, enum ibv_wc_status status,
		    enum ibv_wc_opcode opcode)
{
	assert_true(hw.tail - hw.head < sizeof(hw.wc) / sizeof(hw.wc[0]));
	hw.wc[hw.tail++ % 512] = (struct ibv_wc){
		.wr_id = wr_id, .status = status, .opcode = opcode, .qp_num = qp->qp.qp_num};
}

void fake_complete(struct fake_qp *qp, enum ibv_wc_status status)
{
	unsigned int i;

	for (i = 0; i < qp->num_pending; i++)
		push_wc(qp, qp->pending[i], status, IBV_WC_SEND);
	qp->num_pending = 0;
}

int __wrap_ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)base;

	assert_false(qp->destroyed);
	assert_true(mask & IBV_QP_STATE);
	if (attr->qp_state == IBV_QPS_RTR && fake.connect_errno)
		return fake.connect_errno;
	/* The order of the specification; the error state can be entered from each. */
	if (attr->qp_state != IBV_QPS_ERR)
		assert_int_equal(attr->qp_state, qp->state + 1);
	else if (qp->state != IBV_QPS_ERR)
		qp->error_at = fake.now;
	qp->state = attr->qp_state;
	if (qp->state == IBV_QPS_ERR)
		fake_complete(qp, IBV_WC_WR_FLUSH_ERR);
	return 0;
}

int __wrap_ibv_destroy_qp(struct ibv_qp *base)
{
	struct fake_qp *qp = (struct fake_qp *)base;

	assert_false(qp->destroyed);
	qp->destroyed = true;
	fake.alive += qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS;
	return 0;
}

static struct ibv_mr *reg(void)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	assert_non_null(mr);
	mr->lkey = mr->rkey = 0x1234;
	return mr;
}

struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	(void)pd;
	(void)addr;
	(void)length;
	(void)access;
	return reg();
}

struct ibv_mr *__wrap_ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				      int access)
{
	(void)iova;
	return __wrap_ibv_reg_mr(pd, addr, length, access);
}

int __wrap_ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	return 0;
}

struct ibv_ah *__wrap_ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	(void)pd;
	(void)attr;
	errno = fake.connect_errno;
	return fake.connect_errno ? NULL : calloc(1, sizeof(struct ibv_ah));
}

int __wrap_ibv_destroy_ah(struct ibv_ah *ah)
{
	free(ah);
	return 0;
}

int __wrap_ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	(void)ctx;
	if (fake.events_taken == fake.num_events) {
		errno = EAGAIN;
		return -1;
	}
	*event = fake.events[fake.events_taken++];
	return 0;
}

void __wrap_ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

static const uint8_t own_gid[16] = {[10] = 255, 255, 10, 0, 0, 1};
static const uint8_t peer_gid[16] = {[10] = 255, 255, 10, 0, 0, 2};

int __wrap__ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
			     struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	(void)ctx;
	(void)port;
	(void)index;
	(void)flags;
	memset(entry, 0, size);
	if (!fake.gid_gone)
		memcpy(entry->gid.raw, own_gid, 16);
	return 0;
}

static int post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	uint32_t imm;

	assert_false(qp->destroyed);
	*bad = wr;
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR)
		return EINVAL;
	for (; wr; wr = wr->next) {
		qp->posted++;
		if (wr->opcode == IBV_WR_SEND_WITH_IMM) {
			imm = ntohl(wr->imm_data);
			qp->last_imm = imm;
			qp->byes += (imm & WEFT_ROCE_IMM_CONTROL) &&
				    weft_roce_imm_id(imm) == WEFT_ROCE_BYE;
		}
		if (wr->opcode == IBV_WR_SEND) {
			fake.num_sent++;
			memcpy(fake.sent, (const void *)(uintptr_t)wr->sg_list[0].addr,
			       wr->sg_list[0].length < sizeof(fake.sent) ? wr->sg_list[0].length
									 : sizeof(fake.sent));
		}
		if (!(wr->send_flags & IBV_SEND_SIGNALED))
			continue;
		assert_true(qp->num_pending < 256);
		qp->pending[qp->num_pending++] = wr->wr_id;
	}
	*bad = NULL;
	if (qp->state == IBV_QPS_ERR)
		fake_complete(qp, IBV_WC_WR_FLUSH_ERR);
	else if (fake.answers)
		fake_complete(qp, IBV_WC_SUCCESS);
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	int n = 0;

	(void)cq;
	/* Of one queue pair's queue: the only one, or the one of all. */
	while (n < max && hw.head != hw.tail)
		wc[n++] = hw.wc[hw.head++ % 512];
	return n;
}

static void add_receives(struct ibv_recv_wr *wr)
{
	for (; wr; wr = wr->next) {
		hw.receives[hw.num_receives % 4096] = wr->wr_id;
		hw.sge[hw.num_receives++ % 4096] = wr->sg_list[0];
	}
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)srq;
	(void)bad;
	add_receives(wr);
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)qp;
	(void)bad;
	add_receives(wr);
	return 0;
}

void fake_message(struct fake_qp *qp, const uint32_t *imm, const void *data, size_t length)
{
	unsigned int i = hw.receives_taken++ % 4096;
	struct ibv_wc *wc;

	assert_true(hw.receives_taken <= hw.num_receives);
	assert_true(length <= hw.sge[i].length);
	if (length > 0)
		memcpy((void *)(uintptr_t)hw.sge[i].addr, data, length);
	push_wc(qp, hw.receives[i], IBV_WC_SUCCESS, IBV_WC_RECV);
	wc = &hw.wc[(hw.tail - 1) % 512];
	wc->byte_len = (uint32_t)length;
	if (imm) {
		wc->wc_flags = IBV_WC_WITH_IMM;
		wc->imm_data = htonl(*imm);
	}
}

void fake_spoil(enum ibv_wc_status status)
{
	hw.wc[(hw.tail - 1) % 512].status = status;
}

void fake_again(void)
{
	hw.wc[hw.tail % 512] = hw.wc[(hw.tail - 1) % 512];
	hw.tail++;
}

void fake_datagram(struct fake_qp *qp, uint32_t src_qpn, const void *data, size_t length)
{
	struct ibv_wc *wc;

	fake_message(qp, NULL, data, length);
	wc = &hw.wc[(hw.tail - 1) % 512];
	wc->wc_flags = IBV_WC_GRH;
	wc->src_qp = src_qpn;
}

void fake_event(enum ibv_event_type type, int port)
{
	assert_true(fake.num_events < 16);
	fake.events[fake.num_events++] =
		(struct ibv_async_event){.event_type = type, .element.port_num = port};
}

/* ------------------------------------------------------------------ what the driver asks for */

int __wrap_roce_job_start(struct roce_dev *dev, struct roce_job *job)
{
	(void)dev;
	assert_true(fake.num_jobs < 16);
	atomic_store(&job->done, false);
	job->err = 0;
	fake.jobs[fake.num_jobs++] = job;
	return 0;
}

void fake_jobs(void)
{
	unsigned int i;

	for (i = 0; i < fake.num_jobs; i++) {
		fake.jobs[i]->run(fake.jobs[i]);
		atomic_store(&fake.jobs[i]->done, true);
	}
	fake.num_jobs = 0;
}

int __wrap_roce_port_open(const struct weft_lane_open *params, struct roce_port_info *info,
			  char *why, size_t why_len)
{
	memset(info, 0, sizeof(*info));
	info->dev = &fake.dev;
	fake.dev.refs++;
	info->port = 1;
	info->attr.state = IBV_PORT_ACTIVE;
	info->mtu = 5;
	memcpy(info->gid.gid, own_gid, 16);
	info->gid.index = 1;
	return weft_roce_opts_parse(params->options, &info->opts, why, why_len);
}

static uint64_t now(void *arg)
{
	(void)arg;
	/* A thread that waits in a loop continues. */
	fake.now += FAKE_MS / 10;
	if (fake.jobs_at != 0 && fake.now >= fake.jobs_at)
		fake_jobs();
	return fake.now;
}

static int number(void *arg, void *buf, size_t len)
{
	static uint8_t last;

	(void)arg;
	memset(buf, ++last | 1, len);
	return 0;
}

static const struct weft_platform platform = {.now = now, .random = number};

static int on_recv(void *arg, struct weft_lane_ep *lane_ep, uint8_t am_id, const void *data,
		   size_t length, void *desc)
{
	(void)arg;
	(void)lane_ep;
	(void)data;
	(void)desc;
	fake.got++;
	fake.am_id = am_id;
	fake.length = length;
	return 0;
}

static void on_event(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev, int status,
		     const char *text)
{
	(void)arg;
	fake.lane_ep = lane_ep;
	fake.up += ev == WEFT_LANE_EV_UP;
	fake.down += ev == WEFT_LANE_EV_DOWN;
	fake.gone += ev == WEFT_LANE_EV_GONE;
	fake.status = status;
	snprintf(fake.text, sizeof(fake.text), "%s", text);
	if (fake.destroys && ev != WEFT_LANE_EV_UP)
		lane_ep->ops->ep_destroy(lane_ep);
}

/* ------------------------------------------------------------------ scene */

int fake_setup(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	memset(&hw, 0, sizeof(hw));
	hw.next_qpn = 100;
	fake.now = 1000 * FAKE_MS;
	fake.ctx.ops.post_send = post_send;
	fake.ctx.ops.poll_cq = poll_cq;
	fake.ctx.ops.post_srq_recv = post_srq_recv;
	fake.ctx.ops.post_recv = post_recv;
	fake.dev.ctx = &fake.ctx;
	fake.dev.refs = 1; /* the test's */
	fake.dev.attr = (struct ibv_device_attr){.max_srq = 1,
						 .max_srq_wr = 1024,
						 .max_cqe = 16384,
						 .max_sge = 4,
						 .max_qp_rd_atom = 8,
						 .max_qp_init_rd_atom = 8};
	snprintf(fake.dev.name, sizeof(fake.dev.name), "mlx5_0");
	pthread_mutex_init(&fake.dev.lock, NULL);
	LIST_INIT(&fake.dev.watches);
	return 0;
}

int fake_teardown(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < fake.num_qps; i++) {
		assert_true(fake.qps[i]->destroyed);
		free(fake.qps[i]);
	}
	assert_int_equal(fake.dev.refs, 1);
	pthread_mutex_destroy(&fake.dev.lock);
	return 0;
}

struct weft_lane_iface *fake_open(const struct weft_lane_driver *driver, const char *options)
{
	struct weft_lane_open params = {.resource = "mlx5_0",
					.options = options,
					.platform = &platform,
					.conf = &conf,
					.recv = on_recv,
					.event = on_event};
	struct weft_lane_iface *iface = NULL;
	char why[256] = "";

	if (driver->open(&params, &iface, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	return iface;
}

void fake_turn(struct weft_lane_iface *iface, uint64_t ns)
{
	fake.now += ns;
	iface->ops->progress(iface, fake.now);
}

struct wanted {
	const char *name;
	uint64_t value;
	bool found;
};

static void on_counter(const char *name, uint64_t value, void *arg)
{
	struct wanted *w = arg;

	if (strcmp(name, w->name) != 0)
		return;
	w->value = value;
	w->found = true;
}

uint64_t fake_counter(struct weft_lane_iface *iface, const char *name)
{
	struct wanted w = {.name = name};

	iface->ops->counters(iface, on_counter, &w);
	assert_true(w.found);
	return w.value;
}

struct weft_lane_ep *fake_lane_ep(struct weft_lane_iface *iface)
{
	struct weft_lane_ep *lane_ep = NULL;

	assert_int_equal(iface->ops->ep_create(iface, NULL, &lane_ep), 0);
	return lane_ep;
}

int fake_connect(struct weft_lane_ep *lane_ep)
{
	struct weft_roce_ep_addr e = {
		.version = WEFT_ROCE_VERSION,
		.num_qps = WEFT_ROCE_MAX_QPS,
		.reads = 8,
		.window = weft_put32(16),
		.psn = weft_put32(5),
	};
	struct weft_roce_addr a;
	unsigned int i;

	roce_addr_fill(&a, WEFT_ROCE_RC, peer_gid, 5, 8320);
	for (i = 0; i < WEFT_ROCE_MAX_QPS; i++)
		e.qpn[i] = weft_put32(200 + i);
	return lane_ep->ops->ep_connect_ep(lane_ep, &a, sizeof(a), &e, sizeof(e));
}

struct fake_qp *fake_qp_of(struct weft_lane_ep *lane_ep, unsigned int i)
{
	return (struct fake_qp *)roce_lane_ep_of(lane_ep)->chans[i]->qp;
}
