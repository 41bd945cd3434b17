/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What costs that has nothing to do: endpoints, receives and lanes that are idle beside the one that a message of 8
 * bytes goes over. Both ends in one thread, as in hop_bench.c. Not a test: run by hand. Median of 15 rounds.
 *
 *	taskset -c 0 build/test/unit/idle_bench [-e ENDPOINTS] [-r RECEIVES] [-m MASKS] [-l LANES] [ROUND_TRIPS]
 *
 * RECEIVES wildcard receives of MASKS different masks wait at each end; no message is theirs.
 */

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "weft.h"

#define ROUNDS 15
#define BATCH 32u
#define LANES_MAX 8u
#define FIRST 64u /* endpoints from which on memory is counted */

static struct weft_worker *worker[2];
static struct weft_ep **ep[2];
static unsigned int endpoints = 1, receives, masks = 1, lanes = 1, got;

static void check(int ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, weft_strerror(ret));
	exit(1);
}

static void on_recv(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	(void)req;
	(void)c;
	(void)arg;
	got++;
}

static void post(unsigned int i, uint64_t tag, uint64_t mask)
{
	static uint64_t buf[2];
	struct weft_op_params params = WEFT_INIT(struct weft_op_params, .cb = on_recv);

	check(weft_tag_recv(worker[i], NULL, &buf[i], sizeof(buf[i]), tag, mask, &params, NULL),
	      "receive");
}

/* Bit 63 is in the tags and masks of receives that wait in vain. */
static void post_idle(void)
{
	for (unsigned int n = 0; n < receives; n++) {
		uint64_t mask = ~(0xffull << n % masks);

		for (unsigned int i = 0; i < 2; i++)
			post(i, 1ull << 63 | (uint64_t)n << 16, mask);
	}
}

static void hop(struct weft_ep *over, unsigned int from)
{
	unsigned int to = 1 - from;
	uint64_t v = 1;

	check(weft_tag_send(over, &v, sizeof(v), to, NULL, NULL), "send");
	post(from, from, WEFT_TAG_MASK_FULL);
	got = 0;
	/* Once in a while a credit is under way, and the message waits for company until its sender's next progress. */
	for (unsigned int polls = 1; !got; polls++)
		weft_worker_progress(worker[polls % 64 ? to : from]);
}

/* CPU time: others may want the machine, too. */
static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double over_one(unsigned int n)
{
	double t = now_ns();

	for (unsigned int i = 0; i < n; i++) {
		hop(ep[0][0], 0);
		hop(ep[1][0], 1);
	}
	return (now_ns() - t) / (2.0 * n);
}

static double over_all(unsigned int n)
{
	double t = now_ns();

	for (unsigned int i = 0; i < n; i++) {
		hop(ep[0][i % endpoints], 0);
		hop(ep[1][i % endpoints], 1);
	}
	return (now_ns() - t) / (2.0 * n);
}

static double idle(unsigned int n)
{
	double t = now_ns();

	for (unsigned int i = 0; i < n; i++)
		weft_worker_progress(worker[0]);
	return (now_ns() - t) / n;
}

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(const char *what, double *ns)
{
	qsort(ns, ROUNDS, sizeof(*ns), cmp);
	printf("%-44s %7.1f ns  (quartiles %.1f %.1f)\n", what, ns[ROUNDS / 2], ns[ROUNDS / 4],
	       ns[3 * ROUNDS / 4]);
}

static double resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long total, pages = 0;

	if (f == NULL || fscanf(f, "%lu %lu", &total, &pages) != 2)
		fprintf(stderr, "/proc/self/statm cannot be read\n");
	if (f != NULL)
		fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void start_eal(const char *dir)
{
	static char words[][32] = {
		"idle_bench",     "--no-huge",         "-m",       "512", "--no-pci", "--no-shconf",
		"--no-telemetry", "--log-level=error", "--lcores", "0"};
	static char vdev[2 * LANES_MAX][192];
	char *argv[RTE_DIM(words) + RTE_DIM(vdev) + 1] = {NULL};
	cpu_set_t cpus;
	int argc = 0;

	for (size_t i = 0; i < RTE_DIM(words); i++)
		argv[argc++] = words[i];
	/* The two ends of a lane share a socket. */
	for (unsigned int i = 0; i < 2 * lanes; i++) {
		snprintf(
			vdev[i], sizeof(vdev[i]),
			"--vdev=net_memif%u,role=%s,id=0,socket-abstract=no,socket=%s/s%u,rsize=8,bsize=9216",
			i, i % 2 ? "client" : "server", dir, i / 2);
		argv[argc++] = vdev[i];
	}
	sched_getaffinity(0, sizeof(cpus), &cpus);
	check(rte_eal_init(argc, argv), "EAL");
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static void open_workers(struct weft_context *ctx)
{
	char list[LANES_MAX * 20];
	int n;

	for (unsigned int i = 0; i < 2; i++) {
		struct weft_worker_params wp = WEFT_INIT(struct weft_worker_params, .lanes = list);

		n = 0;
		for (unsigned int l = 0; l < lanes; l++)
			n += snprintf(list + n, sizeof(list) - (size_t)n, "%sdpdk:%u,mtu=9000",
				      l > 0 ? ";" : "", 2 * l + i);
		check(weft_worker_create(ctx, &wp, &worker[i]), "worker");
	}
}

static void poll_for(double seconds)
{
	uint64_t end = rte_rdtsc() + (uint64_t)(seconds * (double)rte_get_tsc_hz());

	while (rte_rdtsc() < end) {
		weft_worker_progress(worker[0]);
		weft_worker_progress(worker[1]);
	}
}

/* Endpoints [from, to): made at one end, and claimed at the other in the same order. */
static void connect_some(unsigned int from, unsigned int to)
{
	struct weft_ep_params params[2] = {WEFT_INIT(struct weft_ep_params),
					   WEFT_INIT(struct weft_ep_params)};
	void *addr;
	size_t len;

	for (unsigned int i = 0; i < 2; i++) {
		check(weft_worker_get_address(worker[1 - i], &addr, &len), "address");
		params[i].address = addr;
		params[i].address_length = len;
	}
	while (from < to) {
		unsigned int n = to - from < BATCH ? to - from : BATCH;

		for (unsigned int i = 0; i < 2; i++) {
			for (unsigned int k = 0; k < n; k++)
				check(weft_ep_create(worker[i], &params[i], &ep[i][from + k]),
				      "endpoint");
			poll_for(i == 0 ? 0.02 : 0);
		}
		/* Who waits for a message over it knows that it is there. */
		for (unsigned int k = 0; k < n; k++) {
			hop(ep[0][from + k], 0);
			hop(ep[1][from + k], 1);
		}
		from += n;
	}
	for (unsigned int i = 0; i < 2; i++)
		weft_worker_release_address(worker[1 - i], (void *)(uintptr_t)params[i].address);
}

static void options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "e:r:m:l:")) != -1) {
		unsigned int v = c == '?' ? 0 : (unsigned int)atoi(optarg);

		if (c == 'e')
			endpoints = v;
		else if (c == 'r')
			receives = v;
		else if (c == 'm')
			masks = v;
		else if (c == 'l')
			lanes = v;
		else
			exit(2);
	}
	if (endpoints == 0 || masks == 0 || masks > 32 || lanes == 0 || lanes > LANES_MAX)
		exit(2);
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/idle_bench.XXXXXX";
	double ns[3][ROUNDS], before = 0, after;
	struct weft_context *ctx;
	unsigned int n;

	options(argc, argv);
	n = optind < argc ? (unsigned int)atoi(argv[optind]) : 20000;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (mkdtemp(dir) == NULL)
		return 1;
	start_eal(dir);
	check(weft_context_create(NULL, &ctx), "context");
	open_workers(ctx);
	for (unsigned int i = 0; i < 2; i++)
		ep[i] = calloc(endpoints, sizeof(*ep[i]));
	post(0, 0, WEFT_TAG_MASK_FULL);
	post(1, 1, WEFT_TAG_MASK_FULL);
	connect_some(0, endpoints < FIRST ? endpoints : FIRST);
	before = resident();
	if (endpoints > FIRST)
		connect_some(FIRST, endpoints);
	after = resident();
	post_idle();
	poll_for(1);
	over_one(n / 10 + 1);
	for (unsigned int r = 0; r < ROUNDS; r++) {
		ns[0][r] = over_one(n);
		ns[1][r] = over_all(n);
		ns[2][r] = idle(10 * n);
	}
	printf("%u endpoints, %u receives of %u masks, %u lanes\n", endpoints, receives, masks,
	       lanes);
	report("8 B message over one endpoint", ns[0]);
	report("over all endpoints in turn", ns[1]);
	report("progress that finds nothing", ns[2]);
	if (endpoints > FIRST)
		printf("%-44s %7.1f KiB\n", "memory per endpoint end, from 64 on",
		       (after - before) / 2048 / (endpoints - FIRST));
	_exit(0);
}
