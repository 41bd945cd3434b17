/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One process and two peers, by the public interface alone: one of the peers is stopped or killed
 * in the middle of rendezvous both ways, and what the other one gets and sends is timed.
 *
 *	stall hub FILE MS	writes its address to FILE, waits for both, says "ready", and goes on
 *				for so long; says the worst time of 1 MiB to and from the good one
 *	stall good|bad FILE	a peer, until it is killed
 *
 * The EAL and the lanes come from WEFT_EAL_ARGS and WEFT_LANES.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weft.h"

#define LENGTH (1u << 20)
#define ADDRESS_MAX 2048
#define BAD_OPEN 4 /* messages under way with the bad one, each way */
#define PATIENCE_S 120

enum { TAG_GO = 1, TAG_UP, TAG_DOWN, TAG_BAD_UP, TAG_BAD_DOWN };

static struct weft_context *ctx;
static struct weft_worker *worker;
static struct weft_ep *good, *bad;
static unsigned char out[LENGTH], in[LENGTH], sink[LENGTH];

static void die(const char *what, int status)
{
	fprintf(stderr, "stall: %s: %s\n", what, weft_strerror(status));
	exit(1);
}

static void check(const char *what, int status)
{
	if (status < 0)
		die(what, status);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void wait_for(struct weft_request *req)
{
	double until = now() + PATIENCE_S;
	int status = 0;

	while (req && (status = weft_request_test(req, NULL)) == WEFT_INPROGRESS) {
		weft_worker_progress(worker);
		if (now() > until)
			die("nothing happens", -110);
	}
	if (req)
		weft_request_free(req);
	check("message", status);
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
	bool over;
	bool due;
};

static void again(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct stream *s = arg;

	(void)req;
	s->over = c->status != 0;
	s->due = !s->over;
}

static void go_on(struct stream *s, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct weft_op_params p =
			WEFT_INIT(struct weft_op_params, .cb = again, .cb_arg = &s[i],
				  .flags = WEFT_OP_FORCE_REQUEST);

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

static void write_address(const char *file)
{
	char tmp[4096];
	size_t len;
	void *addr;
	FILE *f;

	check("address", weft_worker_get_address(worker, &addr, &len));
	snprintf(tmp, sizeof(tmp), "%s.new", file);
	f = fopen(tmp, "w");
	if (!f || fwrite(addr, 1, len, f) != len || fclose(f) || rename(tmp, file)) {
		perror(file);
		exit(1);
	}
	weft_worker_release_address(worker, addr);
}

/* 1 MiB from the good one and 1 MiB to it. @return s, the longer one */
static double round_of(struct stream *s)
{
	struct weft_request *req;
	double t[3];

	go_on(s, 2 * BAD_OPEN);
	t[0] = now();
	req = recv_in(TAG_UP, LENGTH);
	check("send", weft_tag_send(good, out, 8, TAG_GO, NULL, NULL));
	wait_for(req);
	t[1] = now();
	check("send", weft_tag_send_sync(good, out, LENGTH, TAG_DOWN, NULL, &req));
	wait_for(req);
	t[2] = now();
	return t[2] - t[1] > t[1] - t[0] ? t[2] - t[1] : t[1] - t[0];
}

static int hub(const char *file, double ms)
{
	struct stream s[2 * BAD_OPEN];
	double until, worst = 0, t;
	unsigned int rounds = 0;

	write_address(file);
	for (until = now() + PATIENCE_S; (!good || !bad) && now() < until;)
		weft_worker_progress(worker);
	if (!good || !bad)
		die("peers", -110);
	streams(s, bad, TAG_BAD_DOWN, TAG_BAD_UP);
	for (int i = 0; i < 20; i++)
		round_of(s);
	printf("ready\n");
	fflush(stdout);
	for (until = now() + ms / 1000; now() < until; rounds++) {
		t = round_of(s);
		worst = t > worst ? t : worst;
	}
	printf("worst %.0f ms in %u rounds\n", worst * 1000, rounds);
	return 0;
}

/* ---- peers ---------------------------------------------------------------------------------- */

static struct weft_ep *connect_to(const char *file)
{
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params, .address = NULL);
	char addr[ADDRESS_MAX];
	struct weft_ep *ep;
	FILE *f = fopen(file, "r");

	if (!f) {
		perror(file);
		exit(1);
	}
	p.address = addr;
	p.address_length = fread(addr, 1, sizeof(addr), f);
	fclose(f);
	check("endpoint", weft_ep_create(worker, &p, &ep));
	return ep;
}

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
		be_good(connect_to(argv[2]));
	be_bad(connect_to(argv[2]));
	return 0;
}
