/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The boundary to the connection half (end of core/core.h): life of the message part of workers and
 * endpoints.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/copy_bw.h"
#include "base/log.h"
#include "msg/msg.h"
#include "am/am.h"
#include "rma/rma.h"

#define MATCH_BITS 8 /* 256 buckets, 12 KiB, until there are more than 512 entries */

/* ------------------------------------------------------------------ worker */

int weft_msg_worker_init(struct weft_worker *worker)
{
	const struct weft_platform *platform = worker->ctx->platform;
	struct weft_msg_worker *mw = aligned_alloc(64, (sizeof(*mw) + 63) / 64 * 64);

	uint64_t seed;
	int rc;

	if (!mw)
		return -ENOMEM;
	rc = platform->random(platform->arg, &seed, sizeof(seed));
	if (rc) {
		free(mw);
		return rc;
	}
	*mw = (struct weft_msg_worker){.worker = worker};
	mw->match_mem = malloc(weft_match_table_size(MATCH_BITS));
	if (!mw->match_mem) {
		free(mw);
		return -ENOMEM;
	}
	weft_match_init(&mw->match, mw->match_mem, MATCH_BITS, seed);
	TAILQ_INIT(&mw->later);
	TAILQ_INIT(&mw->ready);
	TAILQ_INIT(&mw->drain);
	TAILQ_INIT(&mw->rma.gets_waiting);
	LIST_INIT(&mw->probed);
	weft_rndv_worker_init(mw);
	weft_msg_conf_read(&mw->conf, worker->ctx->conf, weft_bcopy_bw(worker->ctx->platform),
			   worker->ctx->tables->protos);
	weft_credit_worker_init(mw);
	weft_share_init(&mw->pulls, mw->conf.rndv_limit);
	weft_share_init(&mw->rma.gets, mw->conf.rma_max_gets);
	LIST_INIT(&mw->configs);
	worker->msg = mw;
	return 0;
}

void weft_msg_match_grow(struct weft_msg_worker *mw)
{
	unsigned int bits = mw->match.bits + 2;
	void *mem = malloc(weft_match_table_size(bits));

	if (!mem) {
		mw->match.crowd *= 2; /* works crowded, too; try again later */
		return;
	}
	free(weft_match_grow(&mw->match, mem, bits));
	mw->match_mem = mem;
}

void weft_msg_worker_stop(struct weft_worker *worker)
{
	struct weft_msg_worker *mw = worker->msg;
	struct weft_match_recv *recv;
	struct weft_match_msg *m;
	struct weft_message *msg;

	if (!mw)
		return;
	mw->fini = true;
	while ((recv = weft_match_any_recv(&mw->match))) {
		struct weft_request *req = container_of(recv, struct weft_request, recv.match);

		weft_match_cancel(&mw->match, recv);
		req->flags &= ~WEFT_REQ_POSTED;
		req->length = 0;
		weft_request_complete(req, -ECANCELED);
	}
	while (!TAILQ_EMPTY(&mw->later))
		weft_request_run_later(mw);
	while ((m = TAILQ_FIRST(&mw->match.msgs))) {
		weft_match_msg_remove(&mw->match, m);
		weft_message_free(container_of(m, struct weft_message, match));
		mw->count.unclaimed++;
	}
	while ((msg = LIST_FIRST(&mw->probed))) {
		LIST_REMOVE(msg, link);
		weft_message_free(msg);
		mw->count.unclaimed++;
	}
	if (mw->count.unclaimed)
		weft_log_worker(worker, WEFT_LOG_WARN,
				"%llu messages that had arrived were never received",
				(unsigned long long)mw->count.unclaimed);
	weft_am_fini(mw);
}

void weft_msg_worker_fini(struct weft_worker *worker)
{
	struct weft_msg_worker *mw = worker->msg;

	if (!mw)
		return;
	while (!TAILQ_EMPTY(&mw->later))
		weft_request_run_later(mw);
	weft_rndv_worker_fini(mw);
	weft_match_fini(&mw->match); /* refers to messages */
	weft_message_pool_fini(&mw->messages);
	weft_request_table_fini(mw);
	free(mw->match_mem);
	free(mw);
	worker->msg = NULL;
}

static __attribute__((noinline)) unsigned int serve(struct weft_msg_worker *mw)
{
	struct weft_msg_ep *me, *last;
	unsigned int n = 0;

	if (!TAILQ_EMPTY(&mw->later))
		n += weft_request_run_later(mw);
	if (!TAILQ_EMPTY(&mw->drain)) {
		me = TAILQ_FIRST(&mw->drain);
		TAILQ_REMOVE(&mw->drain, me, drain_link);
		me->draining = false;
		n += weft_rx_drain(me, WEFT_RX_DRAIN);
	}
	if (mw->num_later)
		weft_rma_gets_look(mw);
	/* Each once, in turn: who still has something queues up at the end, behind `last`. */
	last = TAILQ_LAST(&mw->ready, weft_msg_eps);
	while (last && (me = TAILQ_FIRST(&mw->ready))) {
		TAILQ_REMOVE(&mw->ready, me, ready_link);
		me->ready = false;
		if (me == last)
			last = NULL;
		n += weft_tx_service(me);
	}
	if (!TAILQ_EMPTY(&mw->fetching) || mw->num_later)
		n += weft_rndv_pump(mw);
	return n;
}

unsigned int weft_msg_progress(struct weft_worker *worker)
{
	struct weft_msg_worker *mw = worker->msg;

	if (__builtin_expect(TAILQ_EMPTY(&mw->later) && TAILQ_EMPTY(&mw->drain) &&
				     TAILQ_EMPTY(&mw->ready) && TAILQ_EMPTY(&mw->fetching) &&
				     mw->num_later == 0,
			     1))
		return 0;
	return serve(mw);
}

bool weft_msg_busy(const struct weft_worker *worker, bool *soon)
{
	const struct weft_msg_worker *mw = worker->msg;

	/*
	 * What can't go on for want of room or credit gets it by what comes in; but not all of it.
	 */
	if (!TAILQ_EMPTY(&mw->ready) || !TAILQ_EMPTY(&mw->fetching))
		*soon = true;
	return !TAILQ_EMPTY(&mw->later) || !TAILQ_EMPTY(&mw->drain);
}

void weft_msg_counters(struct weft_worker *worker, weft_lane_counter_cb cb, void *arg)
{
	const struct weft_msg_worker *mw = worker->msg;
	const struct {
		const char *name;
		uint64_t value;
	} list[] = {
		{"tag.expected", mw->count.expected},
		{"tag.unexpected", mw->count.unexpected},
		{"tag.unexpected_now", mw->messages.num},
		{"tag.unexpected_bytes", mw->messages.bytes},
		{"tag.unexpected_bytes_peak", mw->messages.bytes_peak},
		{"tag.ahead", mw->count.ahead},
		{"tag.rts", mw->count.rts},
		{"tag.truncated", mw->count.truncated},
		{"tag.withdrawn", mw->count.withdrawn},
		{"rndv.pulls", mw->count.pulls},
		{"rndv.gets", mw->count.gets},
		{"rndv.puts", mw->count.puts},
		{"rndv.native_failed", mw->count.native_failed},
		{"rndv.register_failed", mw->count.register_failed},
		{"rndv.asked_now", mw->pulls.used + mw->pulls.stalled},
		{"rndv.asked_stalled", mw->pulls.stalled},
		{"rndv.peers_stalled", mw->pulls.stalls},
		{"copied_bytes", mw->count.copied_bytes},
		{"rx_copied_bytes", mw->count.rx_copied_bytes},
		{"tag.no_eager_credit", mw->count.no_eager_credit},
		{"tag.credit_granted", mw->credit_bytes.granted},
		{"tag.messages_granted", mw->credit_msgs.granted},
		{"tag.posted_now", mw->match.num_recvs},
		{"tag.requests_now", mw->reqs.in_use},
		{"tag.drop.malformed", mw->count.malformed},
		{"tag.drop.old_sequence", mw->count.old_seq},
		{"tag.drop.far_sequence", mw->count.far_seq},
		{"tag.drop.no_credit", mw->count.no_credit},
		{"tag.wildcard_looks", mw->match.looks},
		{"tag.drop.mismatch", mw->count.mismatch},
		{"tag.drop.overlap", mw->count.overlap},
		{"tag.drop.torn", mw->count.torn},
		{"tag.drop.bad_reference", mw->count.bad_ref},
		{"msg.looks", mw->count.looks},
		{"am.received", mw->count.am_received},
		{"am.drop.unknown_id", mw->count.am_unknown},
		{"am.drop.endpoint_closed", mw->count.am_closed},
		{"am.drop.not_kept", mw->count.am_not_kept},
		{"am.drop.aborted", mw->count.am_aborted},
		{"rma.puts", mw->rma.puts},
		{"rma.put_bytes", mw->rma.put_bytes},
		{"rma.gets", mw->rma.gets_served},
		{"rma.get_bytes", mw->rma.get_bytes},
		{"rma.atomics", mw->rma.amos},
		{"rma.native_bytes", mw->rma.native_bytes},
		{"rma.gets_now", mw->rma.gets.used + mw->rma.gets.stalled},
		{"rma.gets_peak", mw->rma.gets.peak},
		{"rma.gets_stalled", mw->rma.gets.stalled},
		{"rma.gets_limited", mw->rma.gets_limited},
		{"rma.refused_by_peers", mw->rma.naks},
		{"rma.drop.bad_key", mw->rma.bad_key},
		{"rma.drop.bad_rights", mw->rma.bad_rights},
		{"rma.drop.bad_range", mw->rma.bad_range},
		{"rma.drop.misaligned", mw->rma.misaligned},
		{"rma.drop.bad_reference", mw->rma.bad_ref},
		{"rma.drop.too_many", mw->rma.too_many},
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		cb(list[i].name, list[i].value, arg);
}

/* ------------------------------------------------------------------ endpoint */

/* What endpoints have that are not connected: read, never written. */
static struct weft_msg_lane no_lane;

int weft_msg_ep_init(struct weft_ep *ep)
{
	struct weft_msg_worker *mw = ep->worker->msg;
	struct weft_msg_ep *me = aligned_alloc(64, (sizeof(*me) + 63) / 64 * 64);

	if (!me)
		return -ENOMEM;
	*me = (struct weft_msg_ep){.ep = ep, .mw = mw, .refs = 1};
	me->lanes = &no_lane;
	me->rx_seq = mw->conf.seq_start;
	me->rx_am_seq = mw->conf.seq_start;
	weft_match_source_init(&mw->match, &me->source);
	TAILQ_INIT(&me->rx_active);
	LIST_INIT(&me->probed);
	TAILQ_INIT(&me->pending);
	TAILQ_INIT(&me->data);
	TAILQ_INIT(&me->ops);
	TAILQ_INIT(&me->parked);
	STAILQ_INIT(&me->ctl);
	STAILQ_INIT(&me->flushes);
	LIST_INIT(&me->am_kept);
	weft_rndv_ep_init(me);
	ep->msg = me;
	return 0;
}

void weft_msg_ep_destroy(struct weft_msg_ep *me)
{
	weft_ep_config_put(me->config);
	weft_rma_free(me);
	free(me->am);
	if (me->lanes != &no_lane)
		free(me->lanes);
	free(me);
}

static uint32_t at_most_u32(size_t x)
{
	return x < UINT32_MAX ? (uint32_t)x : UINT32_MAX;
}

/* Lanes of which nobody knows how fast they are. */
#define UNKNOWN_PER_BYTE 1e-9f

static void set_lane(struct weft_msg_ep *me, unsigned int i)
{
	const struct weft_ep_lane *lane = &me->ep->lanes[i];
	const struct weft_lane_attr *attr = &lane->lane_ep->iface->attr;
	const uint64_t features = attr->features & ~lane->lane_ep->lacks;
	size_t max = lane->max_frag ? lane->max_frag : SIZE_MAX;
	const float per_byte =
		lane->bandwidth > 0 ? (float)(1 / lane->bandwidth) : UNKNOWN_PER_BYTE;

	if (me->lanes[i].lane_ep == lane->lane_ep)
		return; /* what was measured stays */
	if (lane->lane_ep->max_msg && lane->lane_ep->max_msg < max)
		max = lane->lane_ep->max_msg;
#define AT_MOST(x) ((uint32_t)((x) < max ? (x) : max < UINT32_MAX ? max : UINT32_MAX))
	me->lanes[i] = (struct weft_msg_lane){
		.lane_ep = lane->lane_ep,
		.max_short = attr->features & WEFT_LANE_F_SHORT ? AT_MOST(attr->max_short) : 0,
		.max_bcopy = attr->features & WEFT_LANE_F_BCOPY ? AT_MOST(attr->max_bcopy) : 0,
		.max_zcopy = attr->features & WEFT_LANE_F_ZCOPY ? AT_MOST(attr->max_zcopy) : 0,
		.max_zcopy_hdr = (uint32_t)attr->max_zcopy_hdr,
		.max_get = features & WEFT_LANE_F_GET ? at_most_u32(attr->max_get) : 0,
		.max_put = features & WEFT_LANE_F_PUT ? at_most_u32(attr->max_put) : 0,
		.align = attr->opt_align ? (uint32_t)attr->opt_align : 1,
		.max_iov = (uint16_t)(attr->max_iov < UINT16_MAX ? attr->max_iov : UINT16_MAX),
		.zcopy_any = !(attr->features & WEFT_LANE_F_ZCOPY_REG),
		/* What is outstanding stays: it ends with its completions. */
		.load = {me->lanes[i].load[0], me->lanes[i].load[1]},
	};
#undef AT_MOST
	for (unsigned int dir = 0; dir < 2; dir++)
		weft_load_init(&me->lanes[i].load[dir], per_byte, (float)lane->latency);
}

/* All that there will be: the map of lanes is agreed when the endpoint is connected. */
static int make_lanes(struct weft_msg_ep *me)
{
	if (me->lanes != &no_lane)
		return 0;
	me->lanes = calloc(me->ep->lane_room, sizeof(*me->lanes));
	if (me->lanes)
		return 0;
	me->lanes = &no_lane;
	return -ENOMEM;
}

void weft_msg_ep_connected(struct weft_ep *ep, const struct weft_wire_credit *credit)
{
	struct weft_msg_ep *me = ep->msg;
	bool first = me->config == NULL;
	int changed;

	if (credit && !me->up) {
		/* The receiver says where its numbers begin. */
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
		if (!(ep->lanes_up & (1u << i)) || !ep->lanes[i].lane_ep)
			continue;
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
	weft_rndv_ep_lanes(me);
	if (changed)
		weft_tx_reset(me);
	if (changed || first)
		weft_rndv_reset(me);
	weft_tx_update(me);
	weft_tx_kick(me);
}

void weft_msg_ep_down(struct weft_ep *ep)
{
	ep->msg->up = false;
	ep->msg->short_end = 0;
}

void weft_msg_ep_failed(struct weft_ep *ep, int status)
{
	struct weft_msg_ep *me = ep->msg;

	if (me->failed)
		return;
	weft_msg_ep_hold(me);
	me->failed = true;
	me->up = false;
	me->short_end = 0;
	if (me->ready)
		TAILQ_REMOVE(&me->mw->ready, me, ready_link);
	me->ready = false;
	weft_tx_fail(me, status);
	/* Who has closed has given up its receives, whichever end is the first to say so. */
	weft_rx_fail(me, me->closing ? -ECANCELED : status);
	weft_flush_fail(me, status);
	weft_msg_ep_release(me);
}

void weft_msg_ep_fini(struct weft_ep *ep, int status)
{
	struct weft_msg_ep *me = ep->msg;

	if (!me)
		return;
	weft_msg_ep_failed(ep, status);
	weft_rx_detach(me);
	me->ep = NULL;
	ep->msg = NULL;
	weft_msg_ep_release(me);
}
