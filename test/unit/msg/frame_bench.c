/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one frame of a stream costs its sender and its receiver, over a real port. Both ends are in
 * one thread, and the calls of each end are timed apart. So no cache line crosses between cores,
 * and the figures do not depend on where the virtual cores are. The bare port is measured in the
 * same way: a frame is copied into a buffer and sent, received and copied out. Not a test: run by
 * hand. Medians of 15 rounds, and a line through the figures of all MTUs.
 *
 *	taskset -c 0 build/test/unit/frame_bench [-p memif|ring|virtio] [-s SIZE]
 *		[-E NAME=VALUE]... [-u MTU]... [MESSAGES]
 *
 * virtio: net_vhost sends to net_virtio_user, with a ring of 256. Calls that took more than 200 us
 * are left out, since another process had the core. Under callgrind the inclusive costs of
 * sender_turn() and of receiver_turn() are the instructions of each end:
 *
 *	valgrind --tool=callgrind --toggle-collect=stream build/test/unit/frame_bench -u 1500 20
 */

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "weft.h"

#define ROUNDS 15
#define MTUS 8u
#define WINDOW 2u /* messages under way */
#define BURST 32u
#define FAR_US 200u /* a longer call: another process had the core */

enum port_kind { MEMIF, RING, VIRTIO };

enum { SEND, RECEIVE, BARE_SEND, BARE_RECEIVE, FIGURES };

static const char *const figure[FIGURES] = {"sender", "receiver", "bare sender", "bare receiver"};

/* What the process of one MTU reports. */
struct result {
	double ns[FIGURES][ROUNDS];
	double frames; /* of a message */
	double acks;   /* that the sender has received, for each frame */
};

static enum port_kind kind;
static size_t size = 1u << 20;
static uint16_t port[2];
static struct weft_worker *worker[2];
static struct weft_ep *ep[2];
static uint8_t *from, *to;
static unsigned int got;
static uint64_t spent[2], longest;
static char dir[] = "/tmp/frame_bench.XXXXXX";

static void check(int ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, weft_strerror(ret));
	exit(1);
}

/* ---------------------------------------------------------------- ports */

static void start_eal(void)
{
	static char words[][32] = {"frame_bench",    "--no-huge",        "-m",       "512",
				   "--no-pci",       "--no-shconf",      "--lcores", "0",
				   "--no-telemetry", "--log-level=error"};
	static char vdev[2][192];
	char *argv[RTE_DIM(words) + RTE_DIM(vdev) + 1] = {NULL};
	cpu_set_t cpus;
	int argc = 0;

	for (size_t i = 0; i < RTE_DIM(words); i++)
		argv[argc++] = words[i];
	for (unsigned int i = 0; i < 2 && kind == MEMIF; i++) {
		snprintf(vdev[i], sizeof(vdev[i]),
			 "--vdev=net_memif%u,role=%s,id=0,socket-abstract=no,socket=%s/s,rsize=8,"
			 "bsize=9216",
			 i, i ? "client" : "server", dir);
		argv[argc++] = vdev[i];
	}
	if (kind == VIRTIO) {
		snprintf(vdev[0], sizeof(vdev[0]), "--vdev=net_vhost0,iface=%s/s", dir);
		argv[argc++] = vdev[0];
	}
	sched_getaffinity(0, sizeof(cpus), &cpus);
	check(rte_eal_init(argc, argv), "EAL");
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static struct rte_ring *make_ring(const char *name)
{
	struct rte_ring *r = rte_ring_create(name, 256, SOCKET_ID_ANY, 0);

	if (!r)
		exit(1);
	return r;
}

static void make_ring_ports(void)
{
	struct rte_ring *ab = make_ring("ab"), *ba = make_ring("ba");
	int a = rte_eth_from_rings("a", &ba, 1, &ab, 1, 0);
	int b = rte_eth_from_rings("b", &ab, 1, &ba, 1, 0);

	check(a, "port");
	check(b, "port");
	port[0] = (uint16_t)a;
	port[1] = (uint16_t)b;
}

/* net_virtio_user connects as soon as it exists, so net_vhost has to listen before. */
static void make_second_port(void)
{
	char args[128];

	snprintf(args, sizeof(args), "path=%s/s,queue_size=256", dir);
	check(rte_eal_hotplug_add("vdev", "net_virtio_user0", args), "net_virtio_user");
	check(rte_eth_dev_get_port_by_name("net_virtio_user0", &port[1]), "net_virtio_user");
}

/* ---------------------------------------------------------------- workers */

static void on_recv(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	(void)req;
	(void)c;
	(void)arg;
	got++;
}

static void open_worker(struct weft_context *ctx, unsigned int i, unsigned int mtu)
{
	char lanes[64];
	struct weft_worker_params wp = WEFT_INIT(struct weft_worker_params, .lanes = lanes);

	snprintf(lanes, sizeof(lanes), "dpdk:%u,ip=10.9.0.%u/24,mtu=%u", port[i], i + 1, mtu);
	check(weft_worker_create(ctx, &wp, &worker[i]), "worker");
}

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

static void connect_workers(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct weft_ep_params params = WEFT_INIT(struct weft_ep_params);
		void *addr;

		check(weft_worker_get_address(worker[1 - i], &addr, &params.address_length),
		      "address");
		params.address = addr;
		check(weft_ep_create(worker[i], &params, &ep[i]), "endpoint");
		weft_worker_release_address(worker[1 - i], addr);
	}
	until_up(ep[0]);
	until_up(ep[1]);
}

static void set_up(unsigned int mtu)
{
	struct weft_context *ctx;

	if (!mkdtemp(dir))
		exit(1);
	start_eal();
	port[1] = 1;
	if (kind == RING)
		make_ring_ports();
	check(weft_context_create(NULL, &ctx), "context");
	open_worker(ctx, 0, mtu);
	if (kind == VIRTIO)
		make_second_port();
	open_worker(ctx, 1, mtu);
	connect_workers();
	from = calloc(WINDOW, size);
	to = calloc(WINDOW, size);
	if (!from || !to)
		exit(1);
	longest = rte_get_tsc_hz() / 1000000 * FAR_US;
}

static void clean_up(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/s", dir);
	unlink(path);
	rmdir(dir);
}

/* ---------------------------------------------------------------- a stream */

static void on_counter(const char *name, uint64_t value, void *arg)
{
	uint64_t *sum = arg;
	const char *dot = strstr(name, "tx.data");

	if (dot && !strcmp(dot, "tx.data"))
		sum[0] += value;
	dot = strstr(name, "rx.acks");
	if (dot && !strcmp(dot, "rx.acks"))
		sum[1] += value;
}

static void add_time(unsigned int end, uint64_t begin)
{
	uint64_t took = rte_rdtsc() - begin;

	if (took < longest)
		spent[end] += took;
}

static __attribute__((noinline, noclone)) void sender_turn(unsigned int send)
{
	uint64_t begin = rte_rdtsc();
	struct weft_op_params op = WEFT_INIT(struct weft_op_params);

	while (send-- > 0)
		check(weft_tag_send(ep[0], from + send * size, size, 1, &op, NULL), "send");
	weft_worker_progress(worker[0]);
	add_time(SEND, begin);
}

/* Empties the ring: a sender that finds it full would repeat its calls. */
static __attribute__((noinline, noclone)) void receiver_turn(unsigned int post)
{
	uint64_t begin = rte_rdtsc();
	struct weft_op_params op = WEFT_INIT(struct weft_op_params, .cb = on_recv);

	while (post-- > 0)
		check(weft_tag_recv(worker[1], NULL, to + post * size, size, 1, WEFT_TAG_MASK_FULL,
				    &op, NULL),
		      "receive");
	while (weft_worker_progress(worker[1]) > 0)
		;
	add_time(RECEIVE, begin);
}

static __attribute__((noinline, noclone)) void stream(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		got = 0;
		receiver_turn(WINDOW);
		sender_turn(WINDOW);
		while (got < WINDOW) {
			receiver_turn(0);
			sender_turn(0);
		}
	}
}

static void measure_lane(struct result *r, unsigned int round, unsigned int n)
{
	uint64_t before[2] = {0}, after[2] = {0};
	double ns = 1e9 / (double)rte_get_tsc_hz(), frames;

	weft_worker_counters(worker[0], on_counter, before);
	spent[SEND] = spent[RECEIVE] = 0;
	stream(n);
	weft_worker_counters(worker[0], on_counter, after);
	frames = (double)(after[0] - before[0]);
	r->ns[SEND][round] = (double)spent[SEND] * ns / frames;
	r->ns[RECEIVE][round] = (double)spent[RECEIVE] * ns / frames;
	r->frames = frames / n / WINDOW;
	r->acks = (double)(after[1] - before[1]) / frames;
}

/* ---------------------------------------------------------------- the bare port */

static __attribute__((noinline)) void bare_send(struct rte_mempool *pool, unsigned int len,
						size_t at)
{
	uint64_t begin = rte_rdtsc();
	struct rte_mbuf *m[BURST];
	unsigned int sent;

	check(rte_pktmbuf_alloc_bulk(pool, m, BURST), "buffers");
	for (unsigned int i = 0; i < BURST; i++)
		memcpy(rte_pktmbuf_append(m[i], (uint16_t)len), from + at + (size_t)i * len, len);
	sent = rte_eth_tx_burst(port[0], 0, m, BURST);
	add_time(SEND, begin);
	if (sent < BURST)
		exit(1);
}

static __attribute__((noinline)) unsigned int bare_receive(size_t at)
{
	uint64_t begin = rte_rdtsc();
	struct rte_mbuf *m[BURST];
	unsigned int n = rte_eth_rx_burst(port[1], 0, m, BURST);

	for (unsigned int i = 0; i < n; i++) {
		memcpy(to + at + (size_t)i * m[i]->pkt_len, rte_pktmbuf_mtod(m[i], void *),
		       m[i]->data_len);
		rte_pktmbuf_free(m[i]);
	}
	add_time(RECEIVE, begin);
	return n;
}

/* The frame is as long as that of a lane. What the lanes have sent is taken out of the rings. */
static void measure_bare(struct result *r, unsigned int round, unsigned int n, unsigned int mtu)
{
	static struct rte_mempool *pool;
	double ns = 1e9 / (double)rte_get_tsc_hz();
	unsigned int len = mtu + 14, frames = 0, left;
	size_t at = 0;

	if (!pool)
		pool = rte_pktmbuf_pool_create("bare", 4095, 256, 0,
					       (uint16_t)(len + RTE_PKTMBUF_HEADROOM),
					       SOCKET_ID_ANY);
	if (!pool)
		exit(1);
	while (bare_receive(0) > 0)
		;
	spent[SEND] = spent[RECEIVE] = 0;
	while (frames < n * r->frames * WINDOW) {
		if (at + (size_t)BURST * len > WINDOW * size)
			at = 0;
		bare_send(pool, len, at);
		for (left = BURST; left > 0;)
			left -= RTE_MIN(left, bare_receive(at));
		at += (size_t)BURST * len;
		frames += BURST;
	}
	r->ns[BARE_SEND][round] = (double)spent[SEND] * ns / frames;
	r->ns[BARE_RECEIVE][round] = (double)spent[RECEIVE] * ns / frames;
}

/* ---------------------------------------------------------------- one process for each MTU */

static void run_one(unsigned int mtu, unsigned int n, int out)
{
	static struct result r;

	set_up(mtu);
	stream(n / 4 + 1);
	for (unsigned int i = 0; i < ROUNDS; i++)
		measure_lane(&r, i, n);
	for (unsigned int i = 0; i < ROUNDS; i++)
		measure_bare(&r, i, n, mtu);
	clean_up();
	_exit(write(out, &r, sizeof(r)) != sizeof(r));
}

static void run(unsigned int mtu, unsigned int n, struct result *r)
{
	int fd[2], status;

	if (pipe(fd) != 0)
		exit(1);
	if (fork() == 0)
		run_one(mtu, n, fd[1]);
	close(fd[1]);
	if (read(fd[0], r, sizeof(*r)) != sizeof(*r) || wait(&status) < 0) {
		fprintf(stderr, "MTU %u: the process has ended without a result\n", mtu);
		exit(1);
	}
	close(fd[0]);
}

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(unsigned int mtu, struct result *r)
{
	printf("MTU %u: %.1f frames a message, %.3f acknowledgements a frame\n", mtu, r->frames,
	       r->acks);
	for (int f = 0; f < FIGURES; f++) {
		qsort(r->ns[f], ROUNDS, sizeof(double), cmp);
		printf("  %-14s %7.1f ns a frame  (least %.1f, quartiles %.1f %.1f)\n", figure[f],
		       r->ns[f][ROUNDS / 2], r->ns[f][0], r->ns[f][ROUNDS / 4],
		       r->ns[f][3 * ROUNDS / 4]);
	}
}

/* Least squares through the medians. */
static void report_line(int f, const struct result *r, const unsigned int *mtu, unsigned int n)
{
	double sx = 0, sy = 0, sxx = 0, sxy = 0, x, y, slope;

	for (unsigned int i = 0; i < n; i++) {
		x = mtu[i];
		y = r[i].ns[f][ROUNDS / 2];
		sx += x;
		sy += y;
		sxx += x * x;
		sxy += x * y;
	}
	slope = (n * sxy - sx * sy) / (n * sxx - sx * sx);
	printf("%-14s %.1f ns + %.4f ns a byte of the MTU\n", figure[f], (sy - slope * sx) / n,
	       slope);
}

static void options(int argc, char **argv, unsigned int *mtu, unsigned int *n)
{
	int c;

	while ((c = getopt(argc, argv, "p:s:u:E:")) != -1) {
		if (c == 'p')
			kind = !strcmp(optarg, "ring")     ? RING
			       : !strcmp(optarg, "virtio") ? VIRTIO
							   : MEMIF;
		else if (c == 's')
			size = strtoul(optarg, NULL, 10);
		else if (c == 'u' && *n < MTUS)
			mtu[(*n)++] = (unsigned int)atoi(optarg);
		else if (c != 'E' || putenv(optarg) != 0)
			exit(2);
	}
}

int main(int argc, char **argv)
{
	static struct result r[MTUS];
	unsigned int mtu[MTUS] = {1500, 2048, 4096, 9000}, given = 0, n;

	options(argc, argv, mtu, &given);
	n = optind < argc ? (unsigned int)atoi(argv[optind]) : 100;
	if (given == 0)
		given = kind == VIRTIO ? 1 : 4;
	for (unsigned int i = 0; i < given; i++) {
		run(mtu[i], n, &r[i]);
		report(mtu[i], &r[i]);
	}
	for (int f = 0; f < FIGURES && given > 1; f++)
		report_line(f, r, mtu, given);
	return 0;
}
