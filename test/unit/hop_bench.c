/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one 8-byte message costs in code, from weft_tag_send() to the receive callback over a real memif port, and what
 * a progress call costs that finds nothing: both ends in one thread, so that no cache line crosses between cores and the
 * figures do not depend on where the virtual cores are. Not a test: run by hand. Median of 15 rounds.
 *
 *	taskset -c 0 build/test/unit/hop_bench [-2] [ROUND_TRIPS]
 *
 * -2 gives each end two ports. Under callgrind, a small number of round trips tells instructions per message:
 *
 *	valgrind --tool=callgrind --toggle-collect=round_trips build/test/unit/hop_bench 2000
 */

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "weft.h"

#define ROUNDS 15

static struct weft_worker *worker[2];
static struct weft_ep *ep[2];
static unsigned int got;

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

static void post(unsigned int i)
{
	static uint64_t buf[2];
	struct weft_op_params params = WEFT_INIT(struct weft_op_params, .cb = on_recv);

	check(weft_tag_recv(worker[i], NULL, &buf[i], sizeof(buf[i]), i, WEFT_TAG_MASK_FULL,
			    &params, NULL),
	      "receive");
}

static void hop(unsigned int from, unsigned int to)
{
	uint64_t v = 1;

	check(weft_tag_send(ep[from], &v, sizeof(v), to, NULL, NULL), "send");
	post(from);
	got = 0;
	/* Once in a while a credit is under way, and the message waits for company until its sender's next progress. */
	for (unsigned int polls = 1; !got; polls++)
		weft_worker_progress(worker[polls % 64 ? to : from]);
}

static __attribute__((noinline)) void round_trips(unsigned int n)
{
	while (n-- > 0) {
		hop(0, 1);
		hop(1, 0);
	}
}

static __attribute__((noinline)) void idle(unsigned int n)
{
	while (n-- > 0)
		weft_worker_progress(worker[0]);
}

/* The port alone, one frame of 104 bytes from `a` to `b` and one back. */
static __attribute__((noinline)) void bare(struct rte_mempool *pool, unsigned int n)
{
	static uint8_t data[104];
	struct rte_mbuf *m;

	for (unsigned int i = 0; i < 2 * n; i++) {
		m = rte_pktmbuf_alloc(pool);
		memcpy(rte_pktmbuf_append(m, sizeof(data)), data, sizeof(data));
		if (rte_eth_tx_burst((uint16_t)(i & 1), 0, &m, 1) != 1)
			exit(1);
		while (rte_eth_rx_burst((uint16_t)((i & 1) ^ 1), 0, &m, 1) == 0)
			;
		memcpy(data, rte_pktmbuf_mtod(m, void *), sizeof(data));
		rte_pktmbuf_free(m);
	}
}

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(const char *what, double *ns)
{
	qsort(ns, ROUNDS, sizeof(*ns), cmp);
	printf("%-44s %6.1f ns  (quartiles %.1f %.1f)\n", what, ns[ROUNDS / 2], ns[ROUNDS / 4],
	       ns[3 * ROUNDS / 4]);
}

static double since(uint64_t t)
{
	return (double)(rte_rdtsc() - t) * 1e9 / (double)rte_get_tsc_hz();
}

static void start_eal(const char *dir, unsigned int lanes)
{
	static char words[][32] = {
		"hop_bench",      "--no-huge",         "-m",       "512", "--no-pci", "--no-shconf",
		"--no-telemetry", "--log-level=error", "--lcores", "0"};
	static char vdev[4][192];
	char *argv[RTE_DIM(words) + RTE_DIM(vdev) + 1] = {NULL};
	int argc = 0;
	cpu_set_t cpus;

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

static void connect_both(struct weft_context *ctx, unsigned int lanes)
{
	static const char *const list[2][2] = {{"dpdk:0,mtu=9000", "dpdk:1,mtu=9000"},
					       {"dpdk:0,mtu=9000;dpdk:2,mtu=9000",
						"dpdk:1,mtu=9000;dpdk:3,mtu=9000"}};
	void *addr;
	size_t len;

	for (unsigned int i = 0; i < 2; i++) {
		struct weft_worker_params wp =
			WEFT_INIT(struct weft_worker_params, .lanes = list[lanes - 1][i]);

		check(weft_worker_create(ctx, &wp, &worker[i]), "worker");
	}
	for (unsigned int i = 0; i < 2; i++) {
		struct weft_ep_params ep_params = WEFT_INIT(struct weft_ep_params);

		check(weft_worker_get_address(worker[1 - i], &addr, &len), "address");
		ep_params.address = addr;
		ep_params.address_length = len;
		check(weft_ep_create(worker[i], &ep_params, &ep[i]), "endpoint");
		weft_worker_release_address(worker[1 - i], addr);
	}
	for (uint64_t end = rte_rdtsc() + 2 * rte_get_tsc_hz(); rte_rdtsc() < end;) {
		weft_worker_progress(worker[0]);
		weft_worker_progress(worker[1]);
	}
}

int main(int argc, char **argv)
{
	unsigned int lanes = argc > 1 && strcmp(argv[1], "-2") == 0 ? 2 : 1;
	unsigned int n = argc > (int)lanes ? (unsigned int)atoi(argv[lanes]) : 20000;
	char dir[] = "/tmp/hop_bench.XXXXXX";
	double ns[3][ROUNDS];
	struct rte_mempool *pool;
	struct weft_context *ctx;

	if (mkdtemp(dir) == NULL)
		return 1;
	start_eal(dir, lanes);
	check(weft_context_create(NULL, &ctx), "context");
	connect_both(ctx, lanes);
	pool = rte_pktmbuf_pool_create("bare", 1023, 64, 0, 2048, SOCKET_ID_ANY);
	if (pool == NULL)
		return 1;
	post(0);
	post(1);
	round_trips(n / 10 + 1);
	for (unsigned int r = 0; r < ROUNDS; r++) {
		uint64_t t = rte_rdtsc();

		round_trips(n);
		ns[0][r] = since(t) / (2.0 * n);
		t = rte_rdtsc();
		idle(10 * n);
		ns[1][r] = since(t) / (10.0 * n);
		for (unsigned int i = 0; i < 200000; i++)
			weft_worker_progress(worker[i & 1]);
	}
	/* Last: the lanes do not know these frames, and drop them. */
	for (unsigned int r = 0; r < ROUNDS; r++) {
		uint64_t t = rte_rdtsc();

		bare(pool, n);
		ns[2][r] = since(t) / (2.0 * n);
	}
	printf("%u lane%s\n", lanes, lanes > 1 ? "s" : "");
	report("8 B message, send to callback", ns[0]);
	report("bare port, 104 B", ns[2]);
	report("progress that finds nothing", ns[1]);
	fflush(stdout);
	_exit(0);
}
