/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Four workers in one process: two on the queues of one port, two on those of another. Each
 * connects to both of the other port.
 *
 *	nic_queues LANES LANES		as in WEFT_LANES, with queues=2; the EAL's arguments come
 *					from WEFT_EAL_ARGS
 *
 * Messages go both ways over all four connections, and every byte is compared. The counters say
 * which queue the frames came to, and whether workers handed each other frames when all connections
 * stood.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weft.h"

#define TIMEOUT_S 60
#define PORTS 2
#define QUEUES 2
#define WORKERS (PORTS * QUEUES)
#define BYTES 32768u
#define ROUNDS 6u

/* What a worker's lane has counted. */
struct counts {
	uint64_t frames, handed, elsewhere, bad;
};

struct node {
	struct weft_worker *worker;
	struct weft_ep *ep[QUEUES]; /* to the workers of the other port */
	struct counts before, now;
};

static struct weft_context *ctx;
static struct node node[WORKERS];
static uint8_t out[WORKERS][QUEUES][BYTES], in[WORKERS][QUEUES][BYTES];
static unsigned int number, failed;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static bool result(const char *name, bool well)
{
	printf("%sok %u - %s\n", well ? "" : "not ", ++number, name);
	fflush(stdout);
	failed += !well;
	return well;
}

static void progress(void)
{
	for (unsigned int i = 0; i < WORKERS; i++)
		weft_worker_progress(node[i].worker);
}

/* The k-th worker of the other port. */
static unsigned int other(unsigned int i, unsigned int k)
{
	return (i < QUEUES ? QUEUES : 0) + k;
}

static bool open_all(char *lanes[PORTS])
{
	struct weft_context_params cp = WEFT_INIT(struct weft_context_params, .config = NULL);
	struct weft_config *config;
	unsigned int i;
	int rc;

	if (weft_config_read(&config))
		return false;
	/* Emulated time jumps. */
	weft_config_modify(config, "CONNECT_TIMEOUT", "30s");
	cp.config = config;
	rc = weft_context_create(&cp, &ctx);
	weft_config_release(config);
	for (i = 0; i < WORKERS && !rc; i++) {
		struct weft_worker_params p =
			WEFT_INIT(struct weft_worker_params, .lanes = lanes[i / QUEUES]);

		rc = weft_worker_create(ctx, &p, &node[i].worker);
	}
	if (rc)
		printf("# %s\n", weft_strerror(rc));
	return rc == 0;
}

static bool connect_one(unsigned int i, unsigned int k)
{
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params, .address = NULL);
	struct weft_worker *peer = node[other(i, k)].worker;
	void *address;
	int rc;

	if (weft_worker_get_address(peer, &address, &p.address_length))
		return false;
	p.address = address;
	rc = weft_ep_create(node[i].worker, &p, &node[i].ep[k]);
	weft_worker_release_address(peer, address);
	return rc == 0;
}

static bool connect_all(void)
{
	struct weft_ep_attr attr = WEFT_INIT(struct weft_ep_attr, .status = 0);
	double until = now() + TIMEOUT_S;
	unsigned int i, k;

	for (i = 0; i < WORKERS; i++)
		for (k = 0; k < QUEUES; k++)
			if (!connect_one(i, k))
				return false;
	for (i = 0; i < WORKERS; i++) {
		for (k = 0; k < QUEUES; k++) {
			do {
				progress();
				weft_ep_query(node[i].ep[k], &attr);
			} while (attr.status == WEFT_INPROGRESS && now() < until);
			if (attr.status) {
				printf("# %u to %u: %s\n", i, other(i, k),
				       weft_strerror(attr.status));
				return false;
			}
		}
	}
	return true;
}

static void count(const char *name, uint64_t value, void *arg)
{
	struct counts *c = arg;
	const char *what = strchr(name, '.');

	if (!what)
		return;
	if (strcmp(what, ".rx.frames") == 0)
		c->frames += value;
	else if (strcmp(what, ".steer.handed_over") == 0)
		c->handed += value;
	else if (strcmp(what, ".steer.elsewhere") == 0)
		c->elsewhere += value;
	else if (strcmp(what, ".drop.bad_csum") == 0 || strcmp(what, ".drop.bad_length") == 0)
		c->bad += value;
}

static void count_all(void)
{
	for (unsigned int i = 0; i < WORKERS; i++) {
		node[i].before = node[i].now;
		memset(&node[i].now, 0, sizeof(node[i].now));
		weft_worker_counters(node[i].worker, count, &node[i].now);
	}
}

/* Each worker sends each of the other port's a message, and gets one from each. */
static bool exchange(unsigned int round)
{
	struct weft_request *req[WORKERS][2 * QUEUES] = {0};
	double until = now() + TIMEOUT_S;
	bool well = true, all = false;
	unsigned int i, k;

	for (i = 0; i < WORKERS; i++) {
		for (k = 0; k < QUEUES; k++) {
			memset(out[i][k], (int)(1 + round * 16 + i * QUEUES + k), BYTES);
			memset(in[i][k], 0, BYTES);
			weft_tag_recv(node[i].worker, NULL, in[i][k], BYTES, other(i, k),
				      UINT64_MAX, NULL, &req[i][k]);
			weft_tag_send(node[i].ep[k], out[i][k], BYTES, i, NULL,
				      &req[i][QUEUES + k]);
		}
	}
	while (!all && now() < until) {
		progress();
		all = true;
		for (i = 0; i < WORKERS; i++)
			for (k = 0; k < 2 * QUEUES; k++)
				all = all && (!req[i][k] || weft_request_test(req[i][k], NULL) !=
								    WEFT_INPROGRESS);
	}
	for (i = 0; i < WORKERS; i++) {
		for (k = 0; k < 2 * QUEUES; k++) {
			well = well && (!req[i][k] || !weft_request_test(req[i][k], NULL));
			weft_request_free(req[i][k]);
		}
		for (k = 0; k < QUEUES && well; k++)
			well = !memcmp(in[i][k], out[other(i, k)][i % QUEUES], BYTES);
	}
	return well;
}

static bool exchanges(void)
{
	count_all();
	for (unsigned int round = 0; round < ROUNDS; round++)
		if (!exchange(round))
			return false;
	count_all();
	return true;
}

#define SINCE(i, what) (node[i].now.what - node[i].before.what)

/* Of the last exchanges. */
static void show(void)
{
	for (unsigned int i = 0; i < WORKERS; i++)
		printf("# port %u, queue %u: %llu frames came to it, %llu of them for the other "
		       "one, which passed on %llu\n",
		       i / QUEUES, i % QUEUES, (unsigned long long)SINCE(i, frames),
		       (unsigned long long)SINCE(i, handed),
		       (unsigned long long)SINCE(i, elsewhere));
}

/* As many of its frames as its messages took at least: 9018 bytes are the longest. */
static bool each_queue_has_its_share(void)
{
	uint64_t least = (uint64_t)ROUNDS * QUEUES * BYTES / 9018;
	bool well = true;

	for (unsigned int i = 0; i < WORKERS; i++)
		well = well && SINCE(i, frames) - SINCE(i, handed) >= least && !SINCE(i, bad);
	return well;
}

static bool nothing_is_handed_over(void)
{
	for (unsigned int i = 0; i < WORKERS; i++)
		if (SINCE(i, handed) || SINCE(i, elsewhere))
			return false;
	return true;
}

static void close_all(void)
{
	struct weft_request *req[WORKERS][QUEUES] = {0};
	double until = now() + TIMEOUT_S;
	bool all = false;
	unsigned int i, k;

	for (i = 0; i < WORKERS; i++)
		for (k = 0; k < QUEUES; k++)
			if (node[i].ep[k])
				weft_ep_close(node[i].ep[k], 0, NULL, &req[i][k]);
	while (!all && now() < until) {
		progress();
		all = true;
		for (i = 0; i < WORKERS; i++)
			for (k = 0; k < QUEUES; k++)
				all = all && (!req[i][k] || weft_request_test(req[i][k], NULL) !=
								    WEFT_INPROGRESS);
	}
	for (i = 0; i < WORKERS; i++) {
		for (k = 0; k < QUEUES; k++)
			weft_request_free(req[i][k]);
		weft_worker_destroy(node[i].worker);
	}
	weft_context_destroy(ctx);
}

int main(int argc, char **argv)
{
	double begin;

	if (argc != 1 + PORTS)
		return 2;
	if (!result("two workers open each port", open_all(argv + 1)))
		return 1;
	begin = now();
	if (result("each connects to both of the other port", connect_all())) {
		printf("# connected after %.2f s\n", now() - begin);
		/* The first messages may still find their way. */
		if (result("messages both ways over each connection, every byte", exchanges())) {
			show();
			result("again, every byte", exchanges());
			show();
			result("each queue gets the frames of its worker",
			       each_queue_has_its_share());
			result("by then no worker hands frames to another",
			       nothing_is_handed_over());
		}
		close_all();
	}
	return failed || !number;
}
