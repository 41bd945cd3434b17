/* SPDX-License-Identifier: BSD-3-Clause */
/* Tagged messages as a module: the state of a worker and of an endpoint. */

#include <errno.h>
#include <stdlib.h>

#include "tag/tag.h"

#define MATCH_BITS 8 /* 256 buckets, 12 KiB, until there are more than 512 entries */

/* ------------------------------------------------------------------ worker */

static int worker_init(struct weft_msg_worker *mw)
{
	const struct weft_platform *platform = mw->worker->ctx->platform;
	struct weft_tag_worker *tw = calloc(1, sizeof(*tw));
	int rc;

	if (!tw)
		return -ENOMEM;
	rc = platform->random(platform->arg, &tw->seed, sizeof(tw->seed));
	tw->match_mem = malloc(weft_match_table_size(MATCH_BITS));
	if (rc || !tw->match_mem) {
		free(tw->match_mem);
		free(tw);
		return rc ? rc : -ENOMEM;
	}
	tw->mw = mw;
	weft_match_init(&tw->match, tw->match_mem, MATCH_BITS, tw->seed);
	TAILQ_INIT(&tw->drain);
	LIST_INIT(&tw->probed);
	mw->tag = tw;
	return weft_tag_sources_init(tw); /* worker_fini() follows an error */
}

void weft_tag_match_grow(struct weft_tag_worker *tw)
{
	unsigned int bits = tw->match.bits + 2;
	void *mem = malloc(weft_match_table_size(bits));

	if (!mem) {
		tw->match.load_limit *= 2; /* matching works, if slower; try again later */
		return;
	}
	free(weft_match_grow(&tw->match, mem, bits));
	tw->match_mem = mem;
}

static void worker_stop(struct weft_msg_worker *mw)
{
	struct weft_tag_worker *tw = mw->tag;
	struct weft_match_recv *recv;
	struct weft_match_msg *m;
	struct weft_message *msg;

	while ((recv = weft_match_any_recv(&tw->match))) {
		struct weft_request *req = weft_tag_req_of(recv);

		weft_match_cancel(&tw->match, recv);
		req->flags &= ~WEFT_REQ_POSTED;
		req->length = 0;
		weft_request_complete(req, -ECANCELED);
	}
	while (!TAILQ_EMPTY(&mw->later))
		weft_request_run_later(mw);
	while ((m = TAILQ_FIRST(&tw->match.msgs))) {
		weft_match_msg_remove(&tw->match, m);
		weft_message_free(container_of(m, struct weft_message, match));
		mw->count.unclaimed++;
	}
	while ((msg = LIST_FIRST(&tw->probed))) {
		LIST_REMOVE(msg, link);
		weft_message_free(msg);
		mw->count.unclaimed++;
	}
}

static void worker_fini(struct weft_msg_worker *mw)
{
	struct weft_tag_worker *tw = mw->tag;

	if (!tw)
		return;
	weft_tag_sources_fini(tw);
	weft_match_fini(&tw->match); /* its memory refers to messages */
	weft_message_pool_fini(&tw->messages);
	free(tw->match_mem);
	free(tw);
}

static unsigned int drain(struct weft_msg_worker *mw)
{
	struct weft_tag *t = TAILQ_FIRST(&mw->tag->drain);

	if (!t)
		return 0;
	TAILQ_REMOVE(&mw->tag->drain, t, drain_link);
	mw->work--;
	t->draining = false;
	return weft_rx_drain(t->me, WEFT_RX_DRAIN);
}

static bool busy(const struct weft_msg_worker *mw, bool *soon)
{
	return !TAILQ_EMPTY(&mw->tag->drain);
}

#define LEVELS(X)                                                                          \
	X(tw->messages.num, "tag.unexpected_now", "Messages that wait for a receive now.") \
	X(tw->messages.bytes, "tag.unexpected_bytes",                                      \
	  "Bytes of messages that wait for a receive now.")                                \
	X(tw->messages.bytes_peak, "tag.unexpected_bytes_peak",                            \
	  "Bytes of messages that waited for a receive, at most so far.")                  \
	X(tw->match.num_recvs, "tag.posted_now", "Receives that wait for a message now.")
#define SEARCHES(X)                              \
	X(tw->match.looks, "tag.wildcard_looks", \
	  "Receives checked, one after the other, because some have wildcards.")

/* clang-format off */
static const struct weft_lane_counter counter_help[] = {
	LEVELS(WEFT_LEVEL_HELP)
	SEARCHES(WEFT_COUNTER_HELP)
	WEFT_COUNTER_HELP_END
};
/* clang-format on */

static void counters(const struct weft_msg_worker *mw, weft_lane_counter_cb cb, void *arg)
{
	const struct weft_tag_worker *tw = mw->tag;

#define REPORT(value, name, help) cb(name, value, arg);
	LEVELS(REPORT)
	SEARCHES(REPORT)
#undef REPORT
}

/* ------------------------------------------------------------------ endpoint */

static int ep_init(struct weft_msg_ep *me)
{
	struct weft_tag *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->me = me;
	t->open.seed = me->mw->tag->seed;
	TAILQ_INIT(&t->active);
	LIST_INIT(&t->probed);
	t->source = weft_tag_source_get(me->mw->tag, me->ep->remote_id);
	if (!t->source) {
		free(t);
		return -ENOMEM;
	}
	t->source->eps++;
	me->tag = t;
	return 0;
}

static void ep_fini(struct weft_msg_ep *me)
{
	/* not initialized completely: weft_tag_detach() was not called */
	if (me->tag && me->tag->source)
		weft_tag_source_leave(me->mw->tag, me->tag->source);
	free(me->tag);
}

const struct weft_module weft_tag_module = {
	.name = "tag",
	.worker_init = worker_init,
	.worker_stop = worker_stop,
	.worker_fini = worker_fini,
	.before_queues = drain,
	.busy = busy,
	.counters = counters,
	.counter_help = counter_help,
	.ep_init = ep_init,
	.ep_fini = ep_fini,
	.ended = weft_tag_ended,
	.detach = weft_tag_detach,
	.closing = weft_tag_closing,
};
