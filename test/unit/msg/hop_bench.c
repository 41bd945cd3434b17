/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one 8-byte message costs in code, from weft_tag_send() to the receive callback over a real
 * memif port, what a progress call costs that finds nothing, and what endpoints, receives and lanes
 * add that are idle beside it. Both ends are in one thread, so that no cache line crosses between
 * cores and the figures do not depend on where the virtual cores are. Not a test: run by hand. CPU
 * time, medians of 15 rounds.
 *
 *	taskset -c 0 build/test/unit/hop_bench [-e ENDPOINTS,...] [-r RECEIVES] [-m MASKS]
 *		[-l LANES] [-o] [-s] [-E NAME=VALUE]... [ROUND_TRIPS]
 *
 * Several numbers of endpoints are measured by a process each, whose rounds alternate: what else
 * the machine does meets all of them alike, and each round is compared with that of the first
 * number. So it is with several -E: a process for each, with this variable in its environment
 * (-E WEFT_RECORDER=off -E WEFT_RECORDER=1024). RECEIVES wildcard receives of MASKS different masks
 * wait at each end; no message is theirs. With -o the lanes have memif ports of Weft's own, and the
 * bare port, which is net_memif's, is not measured. With -s a third worker has an idle lane through
 * shared memory, whose messages may be wanted (WEFT_RECORDER_FILE=,messages). Under callgrind, a
 * small number of round trips shows the instructions per message:
 *
 *	valgrind --tool=callgrind --toggle-collect=over_one build/test/unit/hop_bench 2000
 */

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "weft.h"

#define ROUNDS 15
#define BATCH 32u
#define BURST 64u
#define LONG_SIZE 65536u
#define LANES_MAX 8u
#define FIRST 64u      /* endpoints from which on memory is counted */
#define KEEPALIVE 12.0 /* s, after which a connection has returned the memory of its traffic */
#define CASES 8u

enum { OVER_ONE, OVER_ALL, BURSTS, LONG, IDLE, BARE, FIGURES };

static const char *const figure[FIGURES] = {
	"8 B message over one endpoint", "over all endpoints in turn",
	"8 B message in a burst of 64",  "64 KiB message",
	"progress that finds nothing",   "bare port, 104 B"};

/* One number of endpoints, and the process that has them; fd[0] = from it, fd[1] = to it. */
struct one {
	unsigned int endpoints;
	char *variable; /* NAME=VALUE or NULL */
	int fd[2];
	double ns[FIGURES][ROUNDS];
	/* of an endpoint end: bytes resident, bytes of the heap; CPU time of a connection, ns */
	struct made {
		double resident, heap, ns;
	} made;
};

static struct one one[CASES];
static unsigned int num_cases;
static struct weft_worker *worker[3];
static struct weft_ep **ep[2];
static bool beside;
static bool own_ports;
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

static void post_into(unsigned int i, void *buf, size_t size, uint64_t tag, uint64_t mask)
{
	struct weft_op_params params = WEFT_INIT(struct weft_op_params, .cb = on_recv);

	check(weft_tag_recv(worker[i], NULL, buf, size, tag, mask, &params, NULL), "receive");
}

static void post(unsigned int i, uint64_t tag, uint64_t mask)
{
	static uint64_t buf[2];

	post_into(i, &buf[i], sizeof(buf[i]), tag, mask);
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

/*
 * When a credit is under way, a message waits for company until its sender's next progress: in two
 * threads that comes at once, here with every eighth poll.
 */
static void until_got(unsigned int count, unsigned int from)
{
	for (unsigned int polls = 1; got < count; polls++)
		weft_worker_progress(worker[polls % 8 ? 1 - from : from]);
}

static void hop(struct weft_ep *over, unsigned int from)
{
	unsigned int to = 1 - from;
	uint64_t v = 1;

	check(weft_tag_send(over, &v, sizeof(v), to, NULL, NULL), "send");
	post(from, from, WEFT_TAG_MASK_FULL);
	got = 0;
	until_got(1, from);
}

/* CPU time: others may want the machine, too. */
static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static __attribute__((noinline)) double over_one(unsigned int n)
{
	double t = now_ns();

	for (unsigned int i = 0; i < n; i++) {
		hop(ep[0][0], 0);
		hop(ep[1][0], 1);
	}
	return (now_ns() - t) / (2.0 * n);
}

static __attribute__((noinline)) double over_all(unsigned int n)
{
	double t = now_ns();

	for (unsigned int i = 0; i < n; i++) {
		hop(ep[0][i % endpoints], 0);
		hop(ep[1][i % endpoints], 1);
	}
	return (now_ns() - t) / (2.0 * n);
}

/* One receive is posted already. */
static __attribute__((noinline)) double bursts(unsigned int n)
{
	double t = now_ns();
	uint64_t v = 1;

	n = (n + BURST - 1) / BURST * BURST;
	for (unsigned int sent = 0; sent < n; sent += BURST) {
		for (unsigned int i = 0; i < BURST; i++)
			post(1, 1, WEFT_TAG_MASK_FULL);
		got = 0;
		for (unsigned int i = 0; i < BURST; i++)
			check(weft_tag_send(ep[0][0], &v, sizeof(v), 1, NULL, NULL), "send");
		until_got(BURST, 0);
	}
	return (now_ns() - t) / n;
}

static __attribute__((noinline)) double long_ones(unsigned int n)
{
	static uint8_t from[LONG_SIZE], to[LONG_SIZE];
	double t = now_ns();

	for (unsigned int i = 0; i < n; i++) {
		post_into(1, to, sizeof(to), 2, WEFT_TAG_MASK_FULL);
		got = 0;
		check(weft_tag_send(ep[0][0], from, sizeof(from), 2, NULL, NULL), "send");
		until_got(1, 0);
	}
	return (now_ns() - t) / n;
}

static __attribute__((noinline)) double idle(unsigned int n)
{
	double t = now_ns();

	for (unsigned int i = 0; i < n; i++)
		weft_worker_progress(worker[0]);
	return (now_ns() - t) / n;
}

static void poll_for(double seconds)
{
	uint64_t end = rte_rdtsc() + (uint64_t)(seconds * (double)rte_get_tsc_hz());

	while (rte_rdtsc() < end) {
		weft_worker_progress(worker[0]);
		weft_worker_progress(worker[1]);
	}
}

/* The port alone, one frame of 104 bytes from `a` to `b` and one back. */
static double bare(unsigned int n)
{
	static struct rte_mempool *pool;
	static uint8_t data[104];
	struct rte_mbuf *m;
	double t;

	if (!pool)
		pool = rte_pktmbuf_pool_create("bare", 1023, 64, 0, 2048, SOCKET_ID_ANY);
	if (!pool)
		exit(1);
	poll_for(0.02); /* what the lanes have sent is out of the rings */
	t = now_ns();
	for (unsigned int i = 0; i < 2 * n; i++) {
		m = rte_pktmbuf_alloc(pool);
		memcpy(rte_pktmbuf_append(m, sizeof(data)), data, sizeof(data));
		check(rte_eth_tx_burst((uint16_t)(i & 1), 0, &m, 1) == 1 ? 0 : -EIO, "bare port");
		while (rte_eth_rx_burst((uint16_t)((i & 1) ^ 1), 0, &m, 1) == 0)
			;
		memcpy(data, rte_pktmbuf_mtod(m, void *), sizeof(data));
		rte_pktmbuf_free(m);
	}
	return (now_ns() - t) / (2.0 * n);
}

static double resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long total, pages = 0;

	if (!f || fscanf(f, "%lu %lu", &total, &pages) != 2)
		fprintf(stderr, "/proc/self/statm cannot be read\n");
	if (f)
		fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static double heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return (double)m.uordblks + (double)m.hblkhd;
}

static void start_eal(const char *dir)
{
	static char words[][32] = {
		"hop_bench",      "--no-huge",         "-m",       "512", "--no-pci", "--no-shconf",
		"--no-telemetry", "--log-level=error", "--lcores", "0"};
	static char vdev[2 * LANES_MAX][192];
	char *argv[RTE_DIM(words) + RTE_DIM(vdev) + 1] = {NULL};
	cpu_set_t cpus;
	int argc = 0;

	for (size_t i = 0; i < RTE_DIM(words); i++)
		argv[argc++] = words[i];
	/* The two ends of a lane share a socket. */
	for (unsigned int i = 0; i < 2 * lanes && !own_ports; i++) {
		snprintf(vdev[i], sizeof(vdev[i]),
			 "--vdev=net_memif%u,role=%s,id=0,socket-abstract=no,socket=%s/s%u,rsize=8,"
			 "bsize=9216",
			 i, i % 2 ? "client" : "server", dir, i / 2);
		argv[argc++] = vdev[i];
	}
	sched_getaffinity(0, sizeof(cpus), &cpus);
	check(rte_eal_init(argc, argv), "EAL");
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static int lane_text(char *to, size_t size, const char *dir, unsigned int lane, unsigned int end)
{
	const char *separator = lane > 0 ? ";" : "";

	if (!own_ports)
		return snprintf(to, size, "%sdpdk:%u,mtu=9000", separator, 2 * lane + end);
	return snprintf(to, size, "%sdpdk:%s/s%u,role=%s,mtu=9000", separator, dir, lane,
			end ? "client" : "server");
}

static void open_workers(struct weft_context *ctx, const char *dir)
{
	char list[LANES_MAX * 80];
	int n;

	for (unsigned int i = 0; i < 2; i++) {
		struct weft_worker_params wp = WEFT_INIT(struct weft_worker_params, .lanes = list);

		n = 0;
		for (unsigned int l = 0; l < lanes; l++)
			n += lane_text(list + n, sizeof(list) - (size_t)n, dir, l, i);
		check(weft_worker_create(ctx, &wp, &worker[i]), "worker");
	}
	if (beside) {
		struct weft_worker_params wp =
			WEFT_INIT(struct weft_worker_params, .lanes = "shm:host");

		check(weft_worker_create(ctx, &wp, &worker[2]), "worker of shared memory");
	}
}

/* Endpoints [from, to): made at one end, and claimed at the other in the same order. */
/*
 * Another thread, DPDK's, makes the memif connection: valgrind, which runs one at a time, lets it
 * run when we sleep.
 */
static void until_up(struct weft_ep *one_ep)
{
	struct weft_ep_attr attr = WEFT_INIT(struct weft_ep_attr);

	do {
		weft_worker_progress(worker[0]);
		weft_worker_progress(worker[1]);
		check(weft_ep_query(one_ep, &attr), "endpoint");
		if (attr.status == WEFT_INPROGRESS)
			usleep(100);
	} while (attr.status == WEFT_INPROGRESS);
	check(attr.status, "no connection");
}

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

		/* An endpoint is up as soon as its peer has one, which its program claims later. */
		for (unsigned int i = 0; i < 2; i++) {
			for (unsigned int k = 0; k < n; k++)
				check(weft_ep_create(worker[i], &params[i], &ep[i][from + k]),
				      "endpoint");
			for (unsigned int k = 0; k < n; k++)
				until_up(ep[i][from + k]);
		}
		/* Messages over it pass only when both ends are up. */
		for (unsigned int k = 0; k < n; k++) {
			hop(ep[0][from + k], 0);
			hop(ep[1][from + k], 1);
		}
		from += n;
	}
	for (unsigned int i = 0; i < 2; i++)
		weft_worker_release_address(worker[1 - i], (void *)(uintptr_t)params[i].address);
}

/* ------------------------------------------------------------------ one process for each number */

static void remove_folder(const char *dir)
{
	char path[64];

	for (unsigned int l = 0; l < lanes; l++) {
		snprintf(path, sizeof(path), "%s/s%u", dir, l);
		unlink(path);
	}
	rmdir(dir);
}

/* From the first endpoints on, for which the worker itself and the ports get memory. */
static void connect_counted(unsigned int from, unsigned int to)
{
	struct made was = {resident(), heap(), now_ns()}, *made = &one->made;

	if (from >= to)
		return;
	connect_some(from, to);
	*made = (struct made){resident(), heap(), now_ns()};
	poll_for(KEEPALIVE);
	made->heap = heap();
	made->resident = (made->resident - was.resident) / 2 / (to - from);
	made->heap = (made->heap - was.heap) / 2 / (to - from);
	made->ns = (made->ns - was.ns) / (to - from);
}

static void set_up(unsigned int n, char *dir)
{
	struct weft_context *ctx;

	if (!mkdtemp(dir))
		exit(1);
	start_eal(dir);
	check(weft_context_create(NULL, &ctx), "context");
	open_workers(ctx, dir);
	for (unsigned int i = 0; i < 2; i++)
		ep[i] = calloc(endpoints, sizeof(*ep[i]));
	post(0, 0, WEFT_TAG_MASK_FULL);
	post(1, 1, WEFT_TAG_MASK_FULL);
	connect_some(0, endpoints < FIRST ? endpoints : FIRST);
	connect_counted(FIRST, endpoints);
	post_idle();
	poll_for(1);
	over_one(n / 10 + 1);
}

static double measure(int what, unsigned int n)
{
	switch (what) {
	case OVER_ONE:
		return over_one(n);
	case OVER_ALL:
		return over_all(n);
	case BURSTS:
		return bursts(2 * n);
	case LONG:
		return long_ones(n / 10 + 1);
	case IDLE:
		return idle(10 * n);
	default:
		return bare(n);
	}
}

/* Reports that it is ready, then measures what the pipe requests, until the pipe ends. */
static void serve(struct one *me, int in, int out, unsigned int n)
{
	char dir[] = "/tmp/hop_bench.XXXXXX";
	uint8_t what;
	double ns;

	endpoints = me->endpoints;
	if (me->variable && putenv(me->variable) != 0)
		exit(1);
	set_up(n, dir);
	ns = 0;
	if (write(out, &one->made, sizeof(one->made)) != sizeof(one->made))
		exit(1);
	while (write(out, &ns, sizeof(ns)) == sizeof(ns) && read(in, &what, 1) == 1)
		ns = measure(what, n);
	remove_folder(dir);
	_exit(0);
}

static double answer(struct one *c)
{
	int status = 0;
	double ns;

	if (read(c->fd[0], &ns, sizeof(ns)) != sizeof(ns)) {
		pid_t pid = wait(&status);

		fprintf(stderr, "%u endpoints: process %d ended, status %#x\n", c->endpoints, pid,
			(unsigned int)status);
		exit(1);
	}
	return ns;
}

static void start(struct one *c, unsigned int n)
{
	int to[2], from[2];

	if (pipe(to) != 0 || pipe(from) != 0)
		exit(1);
	if (fork() == 0) {
		close(to[1]);
		close(from[0]);
		serve(c, to[0], from[1], n);
	}
	close(to[0]);
	close(from[1]);
	c->fd[0] = from[0];
	c->fd[1] = to[1];
	if (read(c->fd[0], &c->made, sizeof(c->made)) == sizeof(c->made))
		answer(c);
}

static void rounds(uint8_t what)
{
	for (unsigned int r = 0; r < ROUNDS; r++) {
		for (unsigned int i = 0; i < num_cases; i++) {
			if (write(one[i].fd[1], &what, 1) != 1)
				exit(1);
			one[i].ns[what][r] = answer(&one[i]);
		}
	}
}

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The bare port is the last figure. */
static int num_figures(void)
{
	return own_ports ? FIGURES - 1 : FIGURES;
}

static double median_ratio(const struct one *c, int what)
{
	double ratio[ROUNDS];

	for (unsigned int r = 0; r < ROUNDS; r++)
		ratio[r] = c->ns[what][r] / one->ns[what][r];
	qsort(ratio, ROUNDS, sizeof(*ratio), cmp);
	return ratio[ROUNDS / 2];
}

static void report(struct one *c, double ratio[FIGURES])
{
	printf("%u endpoints, %u receives of %u masks, %u lanes %s\n", c->endpoints, receives,
	       masks, lanes, c->variable ? c->variable : "");
	for (int i = 0; i < num_figures(); i++) {
		double *ns = c->ns[i];

		qsort(ns, ROUNDS, sizeof(*ns), cmp);
		printf("%-44s %7.1f ns  (least %.1f, quartiles %.1f %.1f; %.2f x)\n", figure[i],
		       ns[ROUNDS / 2], ns[0], ns[ROUNDS / 4], ns[3 * ROUNDS / 4], ratio[i]);
	}
	if (c->endpoints > FIRST)
		printf("from endpoint 64 on: %.0f B of heap, %.0f B resident each; "
		       "%.1f us for each connection\n",
		       c->made.heap, c->made.resident, c->made.ns / 1e3);
}

static void options(int argc, char **argv)
{
	char *words = NULL;
	unsigned int variables = 0;
	int c;

	while ((c = getopt(argc, argv, "e:r:m:l:osE:")) != -1) {
		unsigned int v = optarg ? (unsigned int)atoi(optarg) : 0;

		if (c == 'e')
			words = optarg;
		else if (c == 'E' && variables < CASES)
			one[variables++].variable = optarg;
		else if (c == 'r')
			receives = v;
		else if (c == 'm')
			masks = v;
		else if (c == 'l')
			lanes = v;
		else if (c == 'o')
			own_ports = true;
		else if (c == 's')
			beside = true;
		else
			exit(2);
	}
	one->endpoints = 1;
	num_cases = words == NULL;
	for (; words && num_cases < CASES; words = strchr(words, ',')) {
		words += *words == ',';
		one[num_cases].endpoints = (unsigned int)atoi(words);
		if (one[num_cases++].endpoints == 0)
			exit(2);
	}
	for (; num_cases < variables; num_cases++)
		one[num_cases].endpoints = one->endpoints;
	if (masks == 0 || masks > 32 || lanes == 0 || lanes > LANES_MAX)
		exit(2);
}

int main(int argc, char **argv)
{
	double ratio[CASES][FIGURES];
	unsigned int n;

	options(argc, argv);
	n = optind < argc ? (unsigned int)atoi(argv[optind]) : 20000;
	for (unsigned int i = 0; i < num_cases; i++)
		start(&one[i], n);
	/* The bare port last: the lanes do not know its frames, and drop them. */
	for (uint8_t what = 0; what < num_figures(); what++)
		rounds(what);
	for (unsigned int i = 0; i < num_cases; i++)
		for (int f = 0; f < num_figures(); f++)
			ratio[i][f] = median_ratio(&one[i], f);
	for (unsigned int i = 0; i < num_cases; i++)
		report(&one[i], ratio[i]);
	for (unsigned int i = 0; i < num_cases; i++)
		close(one[i].fd[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}
