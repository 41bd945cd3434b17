/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One process and two peers, by the public interface alone: one of the peers is stopped or killed
 * in the middle of rendezvous both ways, and what the other one gets and sends is timed.
 *
 *	stall hub FILE MS	writes its address to FILE, waits for both, times the good
 *				one alone for MS / 3, begins with the bad one, says "ready", and
 *				takes times for MS; fails if they are beyond what is promised, and
 *				says how often a peer was found stalled
 *	stall good|bad FILE	a peer, until it is killed
 *
 * The EAL and the lanes come from WEFT_EAL_ARGS and WEFT_LANES.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"

#define LENGTH (1u << 20)
#define BAD_OPEN 4 /* messages under way with the bad one, each way */
#define TIMEOUT_S 120
#define ROUNDS_MIN 20
#define ROUNDS_MAX 100000
#define BUSY 5 /* times as long as alone, where that is beyond what is promised */

enum { TAG_GO = 1, TAG_UP, TAG_DOWN, TAG_BAD_UP, TAG_BAD_DOWN };

static struct weft_context *ctx;
static struct weft_worker *worker;
static struct weft_ep *good, *bad;
static unsigned char out[LENGTH], in[LENGTH], sink[LENGTH];

static void wait_for(struct weft_request *req)
{
	check("message", wait_done(worker, req, NULL, TIMEOUT_S));
}

static struct weft_request *recv_in(uint64_t tag, size_t length)
{
	struct weft_request *req = NULL;

	check("receive", weft_tag_recv(worker, NULL, in, length, tag, UINT64_MAX, NULL, &req));
	return req;
}

/* ---- what never ends: messages one after the other with the bad one ------------------------- */

struct stream {
	struct weft_ep *ep; /* NULL = it receives */
	uint64_t tag;
	unsigned int completed;
	bool over;
	bool due;
};

static void again(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct stream *s = arg;

	(void)req;
	s->over = c->status != 0;
	s->completed += !s->over;
	s->due = !s->over;
}

static void go_on(struct stream *s, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct weft_op_params p =
			WEFT_INIT(struct weft_op_params, .cb = again, .cb_arg = &s[i],
				  .flags = WEFT_OP_F_FORCE_REQUEST);

		if (!s[i].due)
			continue;
		s[i].due = false;
		if (s[i].ep)
			s[i].over = weft_tag_send(s[i].ep, out, LENGTH, s[i].tag, &p, NULL) < 0;
		else
			s[i].over = weft_tag_recv(worker, NULL, sink, LENGTH, s[i].tag, UINT64_MAX,
						  &p, NULL) < 0;
	}
}

static void streams(struct stream *s, struct weft_ep *ep, uint64_t up, uint64_t down)
{
	for (unsigned int i = 0; i < BAD_OPEN; i++) {
		s[2 * i] = (struct stream){.ep = ep, .tag = up, .due = true};
		s[2 * i + 1] = (struct stream){.tag = down, .due = true};
	}
}

/* @return each stream has completed a message */
static bool flows(const struct stream *s)
{
	for (unsigned int i = 0; i < 2 * BAD_OPEN; i++)
		if (s[i].completed == 0)
			return false;
	return true;
}

/* ---- the hub -------------------------------------------------------------------------------- */

static void accept_ep(struct weft_worker *w, struct weft_ep *ep, uint64_t id, const char *name,
		      void *arg)
{
	(void)w;
	(void)id;
	(void)arg;
	if (!strcmp(name, "good"))
		good = ep;
	else
		bad = ep;
}

/* How long 1 MiB takes from the good one and to it. */
struct times {
	double up[ROUNDS_MAX], down[ROUNDS_MAX];
	unsigned int n;
};

static struct times alone, beside;

static void round_of(struct times *times)
{
	struct weft_request *req;
	double t[3];

	t[0] = now();
	req = recv_in(TAG_UP, LENGTH);
	check("send", weft_tag_send(good, out, 8, TAG_GO, NULL, NULL));
	wait_for(req);
	t[1] = now();
	check("send", weft_tag_send_sync(good, out, LENGTH, TAG_DOWN, NULL, &req));
	wait_for(req);
	t[2] = now();
	if (!times || times->n == ROUNDS_MAX)
		return;
	times->up[times->n] = t[1] - t[0];
	times->down[times->n++] = t[2] - t[1];
}

/* On a busy machine it takes longer until there are enough to judge by. */
static bool enough(const struct times *times, double until)
{
	return now() > until + 30 || (now() > until && times->n >= ROUNDS_MIN);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Of the message that is under way at some moment: half of the time goes to such as take longer. A
 * single one that takes seconds weighs as much as all the short ones in so many seconds, and one
 * that another process kept from its core for a while does not count. */
static double usual(double *t, unsigned int n)
{
	double all = 0, sum = 0;
	unsigned int i;

	qsort(t, n, sizeof(*t), by_value);
	for (i = 0; i < n; i++)
		all += t[i];
	for (i = 0; i < n && sum + t[i] < all / 2; i++)
		sum += t[i];
	return n ? t[i] : 0;
}

static void find_stalled(const char *name, uint64_t value, void *arg)
{
	if (!strcmp(name, "rndv.peers_stalled"))
		*(uint64_t *)arg = value;
}

/* @return is it as the promise has it? On a machine whose cores others want 1 MiB takes longer
 *         than 0.1 s alone, too. */
static bool judge(const char *way, double *with, unsigned int num_with, double *without,
		  unsigned int num_without)
{
	double t = usual(with, num_with), bound = BUSY * usual(without, num_without);

	printf("1 MiB %s: %.1f ms, %.1f ms alone\n", way, t * 1000, bound / BUSY * 1000);
	return t <= 0.1 || t <= bound;
}

static int hub(const char *file, double ms)
{
	struct stream s[2 * BAD_OPEN];
	uint64_t stalled = 0;
	bool ok;
	double until;

	write_address(worker, file);
	for (until = now() + TIMEOUT_S; (!good || !bad) && now() < until;)
		weft_worker_progress(worker);
	if (!good || !bad)
		die("peers", -ETIMEDOUT);
	for (until = now() + ms / 3000; !enough(&alone, until);)
		round_of(&alone);
	streams(s, bad, TAG_BAD_DOWN, TAG_BAD_UP);
	/* The bad peer is stopped in the middle of messages only where they flow each way. */
	until = now() + TIMEOUT_S;
	for (int i = 0; i < 20 || (!flows(s) && now() < until); i++) {
		go_on(s, 2 * BAD_OPEN);
		round_of(NULL);
	}
	printf("ready\n");
	fflush(stdout);
	for (until = now() + ms / 1000; !enough(&beside, until);) {
		go_on(s, 2 * BAD_OPEN);
		round_of(&beside);
	}
	ok = judge("up", beside.up, beside.n, alone.up, alone.n);
	ok &= judge("down", beside.down, beside.n, alone.down, alone.n);
	weft_worker_counters(worker, find_stalled, &stalled);
	printf("stalled %llu, %u rounds\n", (unsigned long long)stalled, beside.n);
	return ok ? 0 : 1;
}

/* ---- peers ---------------------------------------------------------------------------------- */

static void be_bad(struct weft_ep *hub_ep)
{
	struct stream s[2 * BAD_OPEN];

	streams(s, hub_ep, TAG_BAD_UP, TAG_BAD_DOWN);
	for (;;) {
		go_on(s, 2 * BAD_OPEN);
		weft_worker_progress(worker);
	}
}

static void be_good(struct weft_ep *hub_ep)
{
	for (;;) {
		struct weft_request *req = NULL;

		wait_for(recv_in(TAG_GO, 8));
		check("send", weft_tag_send(hub_ep, out, LENGTH, TAG_UP, NULL, &req));
		wait_for(req);
		wait_for(recv_in(TAG_DOWN, LENGTH));
	}
}

int main(int argc, char **argv)
{
	struct weft_worker_params p = WEFT_INIT(struct weft_worker_params, .accept_cb = NULL);
	struct weft_context_params cp = WEFT_INIT(struct weft_context_params, .name = argv[1]);

	if (argc < 3 || (!strcmp(argv[1], "hub") && argc < 4)) {
		fprintf(stderr, "usage: stall hub FILE MS | good FILE | bad FILE\n");
		return 2;
	}
	check("context", weft_context_create(&cp, &ctx));
	if (!strcmp(argv[1], "hub"))
		p.accept_cb = accept_ep;
	check("worker", weft_worker_create(ctx, &p, &worker));
	if (!strcmp(argv[1], "hub"))
		return hub(argv[2], atof(argv[3]));
	if (!strcmp(argv[1], "good"))
		be_good(connect_to(worker, argv[2]));
	be_bad(connect_to(worker, argv[2]));
	return 0;
}
