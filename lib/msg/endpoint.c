/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The boundary to the connection layer: lifetime of the message part of workers and endpoints, its
 * failure, and the wait until everything sent is acknowledged.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/host.h"
#include "base/log.h"
#include "core/worker.h"
#include "msg/credit.h"
#include "msg/endpoint.h"
#include "msg/send.h"
#include "msg/transmit.h"

/* ------------------------------------------------------------------ failure */

/* Failures that the message layer detects: reported as events of the worker (core/worker.h). */

void weft_msg_fail(struct weft_msg_ep *me, int status, const char *fmt, ...)
{
	struct weft_ep *ep = me->ep;
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	ep->worker->ep_events->fail(ep, status, why);
}

void weft_msg_fail_later(struct weft_msg_ep *me, int status, const char *why)
{
	me->ep->worker->ep_events->fail_later(me->ep, status, why);
}

int weft_lane_status(const struct weft_msg_ep *me, int status)
{
	int of_ep = me->ep ? me->ep->status : 0;

	/* A lane that closes with its endpoint does not have the reason. */
	if (status == -ECANCELED)
		return of_ep ? of_ep : status;
	/* "Try later" is the result of a call, never of an operation. */
	if (status == -EAGAIN)
		return of_ep ? of_ep : -EIO;
	return status;
}

/*
 * Rights and range were checked against those of the key before a lane got the operation. A later
 * refusal by the peer's device or table means that the key is invalid: RoCE has one status for all
 * three, and shared memory finds another registration in the key's place.
 */
int weft_lane_key_status(const struct weft_msg_ep *me, int status)
{
	if (status == -EACCES || status == -ERANGE)
		return -EKEYREJECTED;
	return weft_lane_status(me, status);
}

/* ------------------------------------------------------------------ flush */

/*
 * First every send before a flush must be complete or parked, and every put, get and atomic must be
 * over. Then each lane reports when everything it has got is acknowledged. Parked sends are those
 * that wait for a receive or a handler at the peer (rendezvous, synchronous). They delay a close
 * only. Control messages are flushed, too: else a close right after an ATS leaves the peer waiting.
 */

/* A flush that waits until everything before it is at the peer. */
struct weft_flush {
	STAILQ_ENTRY(weft_flush) link;
	struct weft_msg_ep *me;
	uint64_t op_sn;                  /* sends with a lower number must be over, or parked */
	bool all;                        /* the endpoint closes: all sends must be over */
	uint64_t mark[WEFT_MODULES_MAX]; /* weft_module.flushed() */
	/* number of lanes that have not replied, + 1 while requests are sent */
	uint32_t lanes;
	int status;
	void (*done)(void *arg, int status);
	void *arg;
	struct weft_flush_lane {
		struct weft_lane_comp comp;
		struct weft_flush *flush;
	} lane[WEFT_MAX_LANES];
};

static void flush_end(struct weft_flush *f)
{
	void (*done)(void *arg, int status) = f->done;
	void *arg = f->arg;
	int status = f->status;

	free(f);
	if (done)
		done(arg, status);
}

static void lane_flushed(struct weft_lane_comp *comp, int status)
{
	struct weft_flush *f = container_of(comp, struct weft_flush_lane, comp)->flush;

	if (status && !f->status)
		f->status = weft_lane_status(f->me, status);
	if (--f->lanes == 0)
		flush_end(f);
}

/*
 * Everything is with the lanes: request their flushes. @return true when nothing is outstanding
 * there, or the flush has ended
 */
static bool flush_lanes(struct weft_msg_ep *me, struct weft_flush *f)
{
	uint32_t mask;
	int rc;

	f->lanes = 1;
	for (mask = me->lanes_up; mask; mask &= mask - 1) {
		int i = __builtin_ctz(mask);
		struct weft_lane_ep *lane_ep = me->lanes[i].lane_ep;

		f->lane[i].flush = f;
		f->lane[i].comp.done = lane_flushed;
		f->lanes++;
		rc = lane_ep->ops->ep_flush(lane_ep, &f->lane[i].comp);
		if (rc == 0)
			continue;
		f->lanes--;
		if (rc < 0 && !f->status)
			f->status = rc;
	}
	return --f->lanes == 0;
}

static bool is_ready(struct weft_msg_ep *me, struct weft_flush *f)
{
	const struct weft_request *req = TAILQ_FIRST(&me->ops);

	if ((req && req->send.op_sn < f->op_sn) || (f->all && !TAILQ_EMPTY(&me->parked)) ||
	    !STAILQ_EMPTY(&me->ctl) || weft_msg_has_replay(me) || me->ep->lanes_closing)
		return false;
	WEFT_EACH_MODULE(m, me->mw, flushed) {
		if (!m->flushed(me, &f->mark[m_at - me->mw->modules]))
			return false;
	}
	return true;
}

/* Take the modules' errors for a flush. A close takes them, too, but reports none of them. */
static void take_status(struct weft_msg_ep *me, struct weft_flush *f)
{
	int status;

	WEFT_EACH_MODULE(m, me->mw, take_status) {
		status = m->take_status(me, f->op_sn);
		if (status && !f->status && !f->all)
			f->status = status;
	}
}

int weft_msg_ep_flush(struct weft_ep *ep, void (*done)(void *arg, int status), void *arg)
{
	struct weft_msg_ep *me = ep->msg;
	struct weft_flush *f;
	int status;

	if (me->failed)
		return weft_msg_ep_why(ep);
	if ((ep->state == WEFT_EP_CLOSING || ep->closing) && !me->closing) {
		me->closing = true;
		weft_tx_update(me);
		WEFT_EACH_MODULE(m, me->mw, closing)
			m->closing(me);
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->me = me;
	f->done = done;
	f->arg = arg;
	f->op_sn = me->op_sn;
	f->all = me->closing;
	if (!is_ready(me, f) || !STAILQ_EMPTY(&me->flushes)) {
		STAILQ_INSERT_TAIL(&me->flushes, f, link);
		return 0;
	}
	take_status(me, f);
	if (me->up && !flush_lanes(me, f))
		return 0;
	status = f->status;
	free(f);
	return status ? status : WEFT_LANE_IDLE;
}

void weft_flush_check(struct weft_msg_ep *me)
{
	struct weft_flush *f;

	/* The endpoint's lanes are being destroyed: flush_fail() will end the flushes. */
	if (me->ep && me->ep->state == WEFT_EP_FAILED)
		return;
	while (!me->failed && (f = STAILQ_FIRST(&me->flushes)) && is_ready(me, f)) {
		STAILQ_REMOVE_HEAD(&me->flushes, link);
		take_status(me, f);
		if (flush_lanes(me, f))
			flush_end(f);
	}
}

static void flush_fail(struct weft_msg_ep *me, int status)
{
	struct weft_flush *f;

	while ((f = STAILQ_FIRST(&me->flushes))) {
		STAILQ_REMOVE_HEAD(&me->flushes, link);
		f->status = status;
		flush_end(f);
	}
}

/* ------------------------------------------------------------------ worker */

int weft_msg_worker_init(struct weft_worker *worker)
{
	const struct weft_tables *tables = worker->ctx->tables;
	struct weft_msg_worker *mw;
	unsigned int n = 0;
	int rc;

	while (tables->modules[n])
		if (++n > WEFT_MODULES_MAX)
			return -EINVAL;
	mw = aligned_alloc(64, (sizeof(*mw) + 63) / 64 * 64);
	if (!mw)
		return -ENOMEM;
	*mw = (struct weft_msg_worker){
		.worker = worker,
		.stalls = {.at = worker->now},
		.modules = tables->modules,
		.handlers = tables->handlers,
	};
	TAILQ_INIT(&mw->later);
	TAILQ_INIT(&mw->ready);
	SLIST_INIT(&mw->free_natives);
	LIST_INIT(&mw->configs);
	weft_msg_conf_read(&mw->conf, worker->ctx->conf, weft_bcopy_bw(worker->ctx->platform),
			   tables->protos);
	weft_credit_worker_init(mw);
	worker->msg = mw;
	WEFT_EACH_MODULE(m, mw, worker_init) {
		rc = m->worker_init(mw);
		if (rc) {
			weft_msg_worker_fini(worker);
			return rc;
		}
	}
	return 0;
}

void weft_msg_worker_stop(struct weft_worker *worker)
{
	struct weft_msg_worker *mw = worker->msg;

	if (!mw)
		return;
	mw->fini = true;
	WEFT_EACH_MODULE(m, mw, worker_stop)
		m->worker_stop(mw);
	/* A legal MPI program may end before it receives all: this is no warning. */
	if (mw->count.unclaimed)
		weft_log_worker(worker, WEFT_LOG_INFO,
				"%llu messages that had arrived were never received",
				(unsigned long long)mw->count.unclaimed);
}

void weft_msg_worker_fini(struct weft_worker *worker)
{
	struct weft_msg_worker *mw = worker->msg;

	if (!mw)
		return;
	while (!TAILQ_EMPTY(&mw->later))
		weft_request_run_later(mw);
	WEFT_EACH_MODULE(m, mw, worker_fini)
		m->worker_fini(mw);
	weft_native_fini(mw);
	weft_request_table_fini(mw);
	free(mw);
	worker->msg = NULL;
}

static __attribute__((noinline)) unsigned int serve_endpoints(struct weft_msg_worker *mw)
{
	struct weft_msg_ep *me, *last;
	unsigned int n = 0;

	if (!TAILQ_EMPTY(&mw->later))
		n += weft_request_run_later(mw);
	if (mw->work) {
		WEFT_EACH_MODULE(m, mw, before_queues)
			n += m->before_queues(mw);
	}
	/* Each endpoint is served once: one with more to send is put behind `last`. */
	last = TAILQ_LAST(&mw->ready, weft_msg_eps);
	while (last && (me = TAILQ_FIRST(&mw->ready))) {
		TAILQ_REMOVE(&mw->ready, me, ready_link);
		me->ready = false;
		if (me == last)
			last = NULL;
		n += weft_tx_service(me);
	}
	if (mw->work) {
		WEFT_EACH_MODULE(m, mw, after_queues)
			n += m->after_queues(mw);
	}
	return n;
}

unsigned int weft_msg_progress(struct weft_worker *worker)
{
	struct weft_msg_worker *mw = worker->msg;

	weft_stall_progress(&mw->stalls, worker->now);
	if (__builtin_expect(TAILQ_EMPTY(&mw->later) && TAILQ_EMPTY(&mw->ready) && !mw->work, 1))
		return 0;
	return serve_endpoints(mw);
}

bool weft_msg_busy(const struct weft_worker *worker, bool *soon)
{
	const struct weft_msg_worker *mw = worker->msg;
	bool busy = !TAILQ_EMPTY(&mw->later);

	/* Most queues continue with a message that wakes the worker, but some need a poll. */
	if (!TAILQ_EMPTY(&mw->ready))
		*soon = true;
	WEFT_EACH_MODULE(m, mw, busy)
		busy = m->busy(mw, soon) || busy;
	return busy;
}

#define LEVELS(X)                                                                                 \
	X(mw->credit_bytes.granted, "tag.credit_granted",                                         \
	  "Bytes that peers may send now before a receive is posted.")                            \
	X(mw->credit_msgs.granted, "tag.messages_granted",                                        \
	  "Messages that peers may send now before a receive is posted.")                         \
	X(mw->spilled, "tag.spilled_bytes", "Memory of messages beyond their peers' credit now.") \
	X(mw->reqs.in_use, "tag.requests_now", "Requests under way now.")

/* clang-format off */
const struct weft_lane_counter weft_msg_counter_help[] = {
	WEFT_MSG_COUNTERS(WEFT_COUNTER_HELP)
	LEVELS(WEFT_LEVEL_HELP)
	WEFT_COUNTER_HELP_END
};
/* clang-format on */

void weft_msg_report_counters(struct weft_worker *worker, weft_lane_counter_cb cb, void *arg)
{
	const struct weft_msg_worker *mw = worker->msg;

#define REPORT(field, name, help) cb(name, mw->count.field, arg);
	WEFT_MSG_COUNTERS(REPORT)
#undef REPORT
#define REPORT(value, name, help) cb(name, value, arg);
	LEVELS(REPORT)
#undef REPORT
	weft_stall_counters(&mw->stalls, cb, arg);
	WEFT_EACH_MODULE(m, mw, counters)
		m->counters(mw, cb, arg);
}

/* ------------------------------------------------------------------ endpoint */

/* The lanes of endpoints that are not connected: read, never written. */
static struct weft_msg_lane no_lane;

int weft_msg_ep_init(struct weft_ep *ep)
{
	struct weft_msg_worker *mw = ep->worker->msg;
	struct weft_msg_ep *me = aligned_alloc(64, (sizeof(*me) + 63) / 64 * 64);
	int rc;

	if (!me)
		return -ENOMEM;
	*me = (struct weft_msg_ep){.ep = ep, .mw = mw, .refs = 1, .send_now = ep->worker->send_now};
	me->lanes = &no_lane;
	me->rx_seq.next = mw->conf.seq_start;
	me->rx_am_seq.next = mw->conf.seq_start;
	TAILQ_INIT(&me->pending);
	TAILQ_INIT(&me->ops);
	TAILQ_INIT(&me->parked);
	TAILQ_INIT(&me->flush_waits);
	STAILQ_INIT(&me->ctl);
	STAILQ_INIT(&me->flushes);
	WEFT_EACH_MODULE(m, mw, ep_init) {
		rc = m->ep_init(me);
		if (rc) {
			weft_msg_ep_destroy(me);
			return rc;
		}
	}
	ep->msg = me;
	return 0;
}

struct weft_msg_rare *weft_msg_rare_get(struct weft_msg_ep *me)
{
	if (me->rare)
		return me->rare;
	me->rare = calloc(1, sizeof(*me->rare));
	if (!me->rare)
		return NULL;
	STAILQ_INIT(&me->rare->replay);
	STAILQ_INIT(&me->rare->replay_later);
	return me->rare;
}

void **weft_module_own(struct weft_msg_ep *me, const struct weft_module *module)
{
	struct weft_msg_rare *rare = weft_msg_rare_get(me);
	unsigned int i = 0;

	while (me->mw->modules[i] && me->mw->modules[i] != module)
		i++;
	return rare && me->mw->modules[i] ? &rare->own[i] : NULL;
}

void weft_msg_ep_destroy(struct weft_msg_ep *me)
{
	weft_stall_set(me, WEFT_STALL_NONE);
	weft_ep_config_put(me->config);
	WEFT_EACH_MODULE(m, me->mw, ep_fini)
		m->ep_fini(me);
	free(me->rare);
	if (me->lanes != &no_lane) {
		free(me->lanes->load);
		free(me->lanes);
	}
	free(me);
}

static uint32_t at_most_u32(size_t x)
{
	return x < UINT32_MAX ? (uint32_t)x : UINT32_MAX;
}

/* Seconds per byte of lanes whose rate is unknown. */
#define UNKNOWN_PER_BYTE 1e-9f

/* The maximum length of a message: what both ends accept, and what the path carries well now. */
static void set_sizes(struct weft_msg_lane *out, const struct weft_ep_lane *lane)
{
	const struct weft_lane_attr *attr = &lane->lane_ep->iface->attr;
	const struct weft_lane_ep *lane_ep = lane->lane_ep;
	size_t max = lane->max_frag ? lane->max_frag : SIZE_MAX;

	if (lane_ep->max_msg && lane_ep->max_msg < max)
		max = lane_ep->max_msg;
	if (lane_ep->ops->ep_best_msg && lane_ep->ops->ep_best_msg(lane_ep) < max)
		max = lane_ep->ops->ep_best_msg(lane_ep);
#define AT_MOST(x) ((uint32_t)((x) < max ? (x) : max < UINT32_MAX ? max : UINT32_MAX))
	out->max_short = attr->features & WEFT_LANE_F_SHORT ? AT_MOST(attr->max_short) : 0;
	out->max_bcopy = attr->features & WEFT_LANE_F_BCOPY ? AT_MOST(attr->max_bcopy) : 0;
	out->max_zcopy = attr->features & WEFT_LANE_F_ZCOPY ? AT_MOST(attr->max_zcopy) : 0;
#undef AT_MOST
}

static void init_loads(struct weft_msg_ep *me, unsigned int i)
{
	const struct weft_ep_lane *lane = &me->ep->lanes[i];
	const float per_byte =
		lane->bandwidth > 0 ? (float)(1 / lane->bandwidth) : UNKNOWN_PER_BYTE;

	for (unsigned int dir = 0; me->lanes[i].load && dir < 2; dir++)
		weft_load_init(&me->lanes[i].load[dir], per_byte, (float)lane->latency);
}

static int alloc_loads(struct weft_msg_ep *me)
{
	struct weft_lane_load *load = calloc(2u * me->ep->lane_room, sizeof(*load));

	for (unsigned int i = 0; load && i < me->ep->lane_room; i++)
		me->lanes[i].load = &load[2 * i];
	return load ? 0 : -ENOMEM;
}

int weft_lane_loads(struct weft_msg_ep *me)
{
	if (me->lanes == &no_lane || me->lanes->load)
		return 0;
	if (alloc_loads(me) != 0)
		return -ENOMEM;
	for (uint32_t m = me->lanes_up; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		init_loads(me, i);
		weft_lane_rated(me, i, WEFT_DIR_TX);
		weft_lane_rated(me, i, WEFT_DIR_RX);
	}
	return 0;
}

static void set_lane(struct weft_msg_ep *me, unsigned int i)
{
	const struct weft_ep_lane *lane = &me->ep->lanes[i];
	const struct weft_lane_attr *attr = &lane->lane_ep->iface->attr;
	const uint64_t features = attr->features & ~lane->lane_ep->lacks;

	if (me->lanes[i].lane_ep == lane->lane_ep) {
		set_sizes(&me->lanes[i], lane); /* measured values stay */
		return;
	}
	me->lanes[i] = (struct weft_msg_lane){
		.lane_ep = lane->lane_ep,
		.max_zcopy_hdr = (uint32_t)attr->max_zcopy_hdr,
		.min_zcopy = at_most_u32(attr->min_zcopy),
		.max_get = features & WEFT_LANE_F_GET ? at_most_u32(attr->max_get) : 0,
		.max_put = features & WEFT_LANE_F_PUT ? at_most_u32(attr->max_put) : 0,
		.align = attr->opt_align ? (uint32_t)attr->opt_align : 1,
		.max_iov = (uint16_t)(attr->max_iov < UINT16_MAX ? attr->max_iov : UINT16_MAX),
		.zcopy_any = !(attr->features & WEFT_LANE_F_ZCOPY_REG),
		/* Outstanding bytes stay until their completions. */
		.load = me->lanes[i].load,
	};
	set_sizes(&me->lanes[i], lane);
	init_loads(me, i);
}

/* The lane is gone, or not there yet. Its outstanding bytes stay until their completions. */
static void drop_lane(struct weft_msg_ep *me, unsigned int i)
{
	me->lanes[i].lane_ep = NULL;
	if (me->lanes[i].load)
		me->lanes[i].load[WEFT_DIR_TX].full = false;
	me->tx_full &= (uint16_t) ~(1u << i);
}

/* The largest number of lanes is final: both ends agree on the lane map when they connect. */
static int make_lanes(struct weft_msg_ep *me)
{
	if (me->lanes != &no_lane)
		return 0;
	me->lanes = calloc(me->ep->lane_room, sizeof(*me->lanes));
	if (me->lanes && ((me->ep->lane_room == 1 && !me->rndv) || alloc_loads(me) == 0))
		return 0;
	free(me->lanes);
	me->lanes = &no_lane;
	return -ENOMEM;
}

void weft_msg_ep_connected(struct weft_ep *ep, const struct weft_wire_credit *credit)
{
	struct weft_msg_ep *me = ep->msg;
	bool first = me->config == NULL;
	int changed;

	if (credit && !me->up) {
		/* The receiver chooses its first sequence numbers. */
		me->tx_seq_end = weft_get32(credit->seq);
		me->tx_seq = me->tx_seq_end - WEFT_SEQ_WINDOW;
		me->tx_credit = weft_get64(credit->bytes);
		me->tx_window = me->tx_credit;
		me->tx_small_end = weft_get32(credit->small);
		me->tx_am_seq_end = weft_get32(credit->am_seq);
		me->tx_am_seq = me->tx_am_seq_end - WEFT_SEQ_WINDOW;
	}
	me->lanes_up = 0;
	if (make_lanes(me) != 0) {
		weft_msg_fail_later(me, -ENOMEM, "no memory for the lanes of an endpoint");
		return;
	}
	for (unsigned int i = 0; i < ep->num_lanes; i++) {
		if (!(ep->lanes_up & (1u << i)) || !ep->lanes[i].lane_ep) {
			drop_lane(me, i);
			continue;
		}
		set_lane(me, i);
		me->lanes_up |= (uint16_t)(1u << i);
	}
	if (!me->lanes_up || me->failed) {
		me->up = false;
		weft_tx_update(me);
		return;
	}
	me->am_lane = ep->am_lane;
	if (!(me->lanes_up & (1u << me->am_lane)))
		me->am_lane = (uint8_t)__builtin_ctz(me->lanes_up);
	me->short_lane_ep = me->lanes[me->am_lane].lane_ep;
	me->short_count = &ep->lane_info[me->am_lane];
	changed = weft_proto_select_build(me);
	if (changed < 0) {
		weft_msg_fail_later(me, -ENOMEM, "no memory for the choice of protocols");
		return;
	}
	me->up = true;
	WEFT_EACH_MODULE(m, me->mw, ep_lanes)
		m->ep_lanes(me);
	if (changed)
		weft_tx_reset(me);
	if (changed || first) {
		WEFT_EACH_MODULE(m, me->mw, ep_reset)
			m->ep_reset(me);
	}
	weft_tx_update(me);
	weft_tx_kick(me);
}

void weft_msg_ep_down(struct weft_ep *ep)
{
	ep->msg->up = false;
	weft_tx_no_short(ep->msg);
}

void weft_msg_ep_failed(struct weft_ep *ep, int status)
{
	struct weft_msg_ep *me = ep->msg;

	if (me->failed)
		return;
	weft_msg_ep_hold(me);
	me->failed = true;
	me->up = false;
	weft_tx_no_short(me);
	if (me->ready)
		TAILQ_REMOVE(&me->mw->ready, me, ready_link);
	me->ready = false;
	weft_tx_fail(me, status);
	/* An endpoint that is closing has given up its receives, whichever end fails first. */
	WEFT_EACH_MODULE(m, me->mw, ended)
		m->ended(me, me->closing ? -ECANCELED : status);
	flush_fail(me, status);
	weft_msg_ep_release(me);
}

void weft_msg_ep_fini(struct weft_ep *ep, int status)
{
	struct weft_msg_ep *me = ep->msg;

	if (!me)
		return;
	weft_msg_ep_failed(ep, status);
	WEFT_EACH_MODULE(m, me->mw, detach)
		m->detach(me);
	weft_credit_fini(me);
	me->ep = NULL;
	ep->msg = NULL;
	weft_msg_ep_release(me);
}

/* ------------------------------------------------------------------ forced protocols */

static int number_of(const struct weft_msg_ep *me, const char *name, unsigned int *number)
{
	const struct weft_proto *const *protos = me->mw->conf.model.protos;

	*number = 0;
	if (!name)
		return 0;
	while (protos[*number])
		if (strcmp(protos[(*number)++]->name, name) == 0)
			return 0;
	return -ENOENT;
}

int weft_ep_force_proto(struct weft_ep *ep, const char *name)
{
	struct weft_msg_ep *me;
	unsigned int number, before;
	int rc;

	if (!ep)
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_ep_force_proto");
	me = ep->msg;
	rc = number_of(me, name, &number);
	if (rc < 0)
		return rc;
	weft_worker_lock(ep->worker);
	before = me->forced;
	me->forced = (uint16_t)number;
	if (me->up) {
		rc = weft_proto_select_build(me);
		if (rc < 0)
			me->forced = (uint16_t)before;
		else
			weft_tx_update(me);
		rc = rc < 0 ? rc : 0; /* requests that have begun keep their protocol */
	}
	weft_worker_unlock(ep->worker);
	return rc;
}
