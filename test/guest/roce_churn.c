/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Endpoints of the library made and closed over RoCE, again and again: two workers in one process,
 * each with a device of its own, by the public interface alone.
 *
 *	roce_churn DEVICE_A DEVICE_B ROUNDS
 *
 * A round is 50 endpoints from one worker to the other, connected through the control channel, a
 * message over each, all closed. What the process holds is compared before and after. Prints TAP.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "roce_footprint.h"
#include "weft.h"

#define ENDS 50
#define TIMEOUT_S 60

struct end {
	struct weft_context *ctx;
	struct weft_worker *worker;
};

static struct end a, b;
static void *address; /* of b's worker */
static size_t address_len;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static bool good(const char *what, int status)
{
	if (status < 0)
		printf("# %s: %s\n", what, weft_strerror(status));
	return status >= 0;
}

static bool open_end(struct end *end, const char *device)
{
	struct weft_worker_params wp = WEFT_INIT(struct weft_worker_params, .accept_cb = NULL);
	struct weft_context_params cp = WEFT_INIT(struct weft_context_params, .config = NULL);
	struct weft_config *config;
	char lanes[96];
	bool ok;

	snprintf(lanes, sizeof(lanes), "roce:%s", device);
	if (!good("configuration", weft_config_read(&config)))
		return false;
	cp.config = config;
	ok = good("lanes", weft_config_modify(config, "LANES", lanes)) &&
	     good("context", weft_context_create(&cp, &end->ctx)) &&
	     good("worker", weft_worker_create(end->ctx, &wp, &end->worker));
	weft_config_release(config);
	return ok;
}

static void close_end(struct end *end)
{
	if (end->worker)
		weft_worker_destroy(end->worker);
	if (end->ctx)
		weft_context_destroy(end->ctx);
	*end = (struct end){NULL, NULL};
}

static bool open_both(const char *device_a, const char *device_b)
{
	return open_end(&a, device_a) && open_end(&b, device_b) &&
	       good("address", weft_worker_get_address(b.worker, &address, &address_len));
}

static void close_both(void)
{
	if (address)
		weft_worker_release_address(b.worker, address);
	address = NULL;
	close_end(&a);
	close_end(&b);
}

/* Both workers go on until the request is done; it is freed. */
static bool finish(const char *what, struct weft_request *req, struct weft_completion *c)
{
	double end = now() + TIMEOUT_S;
	int status;

	if (!req)
		return true;
	while ((status = weft_request_test(req, c)) == WEFT_INPROGRESS && now() < end) {
		weft_worker_progress(a.worker);
		weft_worker_progress(b.worker);
	}
	weft_request_free(req);
	if (status == WEFT_INPROGRESS)
		printf("# %s: nothing happens\n", what);
	return status != WEFT_INPROGRESS && good(what, status);
}

/* One message over each of @p eps. */
static bool talk(struct weft_ep **eps)
{
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_request *sent[ENDS] = {NULL}, *got[ENDS] = {NULL};
	static uint64_t out[ENDS], in[ENDS];
	unsigned int i;
	bool ok = true;

	for (i = 0; i < ENDS; i++) {
		out[i] = i * 1000003ull + 17;
		in[i] = 0;
		ok = ok &&
		     good("receive",
			  weft_tag_recv(b.worker, NULL, &in[i], 8, i, UINT64_MAX, NULL, &got[i])) &&
		     good("send", weft_tag_send(eps[i], &out[i], 8, i, NULL, &sent[i]));
	}
	for (i = 0; i < ENDS; i++) {
		ok = finish("send", sent[i], &c) && ok;
		ok = finish("receive", got[i], &c) && ok;
		ok = ok && in[i] == out[i];
	}
	return ok;
}

/* The final messages of lanes, and the peer's answers. */
static void settle(double seconds)
{
	for (double end = now() + seconds; now() < end;) {
		weft_worker_progress(a.worker);
		weft_worker_progress(b.worker);
	}
}

/*
 * What the process holds once nothing of it changes any more; a final message may have to be said
 * again on a busy machine.
 */
static bool settled(struct footprint *f)
{
	struct footprint before;
	int tries;

	if (!footprint_take(f))
		return false;
	for (tries = 0; tries < 10; tries++) {
		before = *f;
		settle(0.5);
		if (!footprint_take(f))
			return false;
		if (strcmp(before.objects, f->objects) == 0 && before.files == f->files &&
		    before.regions == f->regions && before.heap == f->heap)
			return true;
	}
	return true; /* what differs will be printed */
}

static bool connect_and_close(void)
{
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params, .address = address);
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_request *closed[ENDS] = {NULL};
	struct weft_ep *eps[ENDS];
	unsigned int i, n;
	bool ok = true;

	p.address_length = address_len;
	for (n = 0; n < ENDS; n++)
		if (!good("endpoint", weft_ep_create(a.worker, &p, &eps[n])))
			return false;
	ok = talk(eps);
	for (i = 0; i < n; i++)
		ok = good("close", weft_ep_close(eps[i], 0, NULL, &closed[i])) && ok;
	for (i = 0; i < n; i++)
		ok = finish("close", closed[i], &c) && ok;
	settle(0.2);
	return ok;
}

static bool churn(const char *device_a, const char *device_b, unsigned int rounds)
{
	/* Less than the smallest thing that could be left for each: 32 bytes. */
	struct footprint_slack slack = {.heap = rounds * ENDS * 24ul + FOOTPRINT_THREADS_HEAP};
	struct footprint closed, open, after;
	bool ok;
	unsigned int i;

	/* What libraries allocate once, and the first connections of a worker. */
	if (!open_both(device_a, device_b) || !connect_and_close())
		return false;
	close_both();
	ok = footprint_take(&closed);
	if (!open_both(device_a, device_b) || !connect_and_close())
		return false;
	ok = settled(&open) && ok;
	for (i = 0; i < rounds; i++)
		if (!connect_and_close())
			return false;
	ok = settled(&after) && ok;
	/*
	 * Pools grow by pieces of some MiB when more lanes than before end at the same time; they
	 * go with their worker.
	 */
	slack.regions = 8;
	slack.mapped = 16 << 20;
	ok = footprint_same("workers open", &open, &after, slack) && ok;
	close_both();
	ok = footprint_take(&after) && ok;
	slack.regions = 0;
	slack.mapped = (1 << 20) + FOOTPRINT_THREADS_MAPPED;
	return footprint_same("workers closed", &closed, &after, slack) && ok;
}

int main(int argc, char **argv)
{
	bool ok;

	if (argc != 4) {
		fprintf(stderr, "usage: roce_churn DEVICE_A DEVICE_B ROUNDS\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	ok = churn(argv[1], argv[2], (unsigned int)atoi(argv[3]));
	printf("%sok 1 - endpoints made and closed leave nothing behind: objects, files, memory\n",
	       ok ? "" : "not ");
	return ok ? 0 : 1;
}
