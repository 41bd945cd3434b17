/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures the time that weft-switch adds to a memif hop. One thread sends frames from one port of
 * its process to another, over a bare memif connection between the two, or over the switch. First
 * it sends one frame at a time, until it has arrived; then full rings, for a second. CSV.
 *
 *	switch_hop EAL ARGUMENTS -- {bare MEMIF-SOCKET | switch SWITCH-SOCKET} BYTES ITERATIONS
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "drivers/dpdk/port/ports.h"

#define BURST 32
#define RING 512
#define SECONDS 1
#define WAIT_S 10

static struct rte_mempool *pool;

static void fail(const char *what)
{
	fprintf(stderr, "switch_hop: %s\n", what);
	exit(1);
}

/* ---- ports ---------------------------------------------------------------------------------- */

static uint16_t make_port(const char *name, const char *args)
{
	struct rte_eth_conf conf = {0};
	uint16_t id;

	if (rte_vdev_init(name, args) || rte_eth_dev_get_port_by_name(name, &id) ||
	    rte_eth_dev_configure(id, 1, 1, &conf) ||
	    rte_eth_rx_queue_setup(id, 0, RING, 0, NULL, pool) ||
	    rte_eth_tx_queue_setup(id, 0, RING, 0, NULL) || rte_eth_dev_start(id))
		fail("a memif port can't be made");
	return id;
}

/* The connection stays open: the port is reserved for this process while it is open. */
static void request_port(const char *path, struct weft_switch_grant *g)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&un, sizeof(un)) ||
	    recv(fd, g, sizeof(*g), 0) != (ssize_t)sizeof(*g) || g->error)
		fail("the switch gives no port");
}

static uint16_t switch_port(const char *path, const char *name, uint8_t mac[6])
{
	struct weft_switch_grant g;
	char args[400];

	request_port(path, &g);
	memcpy(mac, g.mac, 6);
	snprintf(args, sizeof(args),
		 "role=client,id=%u,socket-abstract=no,socket=%s,secret=%s,rsize=%u,bsize=%u",
		 g.port, g.socket, g.secret, g.log2_ring, g.bsize);
	return make_port(name, args);
}

static uint16_t bare_port(const char *path, const char *name, const char *role)
{
	char args[400];

	snprintf(args, sizeof(args), "role=%s,id=0,socket-abstract=no,socket=%s,rsize=8,bsize=9088",
		 role, path);
	return make_port(name, args);
}

static void wait_for_link(uint16_t id)
{
	uint64_t end = rte_get_tsc_cycles() + WAIT_S * rte_get_tsc_hz();
	struct rte_eth_link link = {0};

	while (rte_get_tsc_cycles() < end) {
		if (!rte_eth_link_get_nowait(id, &link) && link.link_status)
			return;
		usleep(1000);
	}
	fail("a port has no link");
}

/* ---- frames --------------------------------------------------------------------------------- */

static struct rte_mbuf *make_frame(const uint8_t macs[12], uint16_t bytes)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *at = m ? (uint8_t *)rte_pktmbuf_append(m, bytes) : NULL;

	if (!at)
		fail("no memory for a frame");
	memcpy(at, macs, 12);
	memcpy(at + 12, "\x88\xb5", 2); /* Weft's own ethertype */
	return m;
}

static unsigned int drain(uint16_t id)
{
	struct rte_mbuf *pkts[BURST];
	uint16_t n = rte_eth_rx_burst(id, 0, pkts, BURST);

	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

static uint64_t one_way(uint16_t from, uint16_t to, const uint8_t macs[12], uint16_t bytes)
{
	struct rte_mbuf *m = make_frame(macs, bytes);
	uint64_t begin = rte_get_tsc_cycles(), end = begin + WAIT_S * rte_get_tsc_hz();

	while (rte_eth_tx_burst(from, 0, &m, 1) == 0)
		;
	while (!drain(to))
		if (rte_get_tsc_cycles() > end)
			fail("a frame was lost");
	return rte_get_tsc_cycles() - begin;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double median_ns(uint16_t from, uint16_t to, const uint8_t macs[12], uint16_t bytes,
			unsigned int n)
{
	uint64_t *t = calloc(n, sizeof(*t));
	double median;
	unsigned int i;

	if (!t)
		fail("no memory");
	for (i = 0; i < n; i++)
		t[i] = one_way(from, to, macs, bytes);
	qsort(t, n, sizeof(*t), by_size);
	median = (double)t[n / 2] * 1e9 / (double)rte_get_tsc_hz();
	free(t);
	return median;
}

/* The rate at which frames arrive while, for SECONDS, the port gets all frames that it takes. */
static double frames_per_s(uint16_t from, uint16_t to, const uint8_t macs[12], uint16_t bytes)
{
	uint64_t begin = rte_get_tsc_cycles(), end = begin + SECONDS * rte_get_tsc_hz(), now;
	struct rte_mbuf *out[BURST];
	unsigned int num = 0, i;
	uint64_t frames = 0;
	uint16_t sent;

	do {
		while (num < BURST)
			out[num++] = make_frame(macs, bytes);
		sent = rte_eth_tx_burst(from, 0, out, BURST);
		num -= sent;
		for (i = 0; i < num; i++)
			out[i] = out[i + sent];
		frames += drain(to);
		now = rte_get_tsc_cycles();
	} while (now < end);
	rte_pktmbuf_free_bulk(out, num);
	return (double)frames * (double)rte_get_tsc_hz() / (double)(now - begin);
}

int main(int argc, char **argv)
{
	uint8_t macs[12] = "\x02\x57\0\0\0\x02\x02\x57\0\0\0\x01";
	int skip = rte_eal_init(argc, argv);
	unsigned int n;
	uint16_t from, to, bytes;
	double ns, rate;

	if (skip < 0 || argc - skip != 5)
		fail("EAL ARGUMENTS -- {bare | switch} SOCKET BYTES ITERATIONS");
	argv += skip;
	bytes = (uint16_t)strtoul(argv[3], NULL, 10);
	n = (unsigned int)strtoul(argv[4], NULL, 10);
	pool = rte_pktmbuf_pool_create("frames", 8192, 256, 0, 9600, SOCKET_ID_ANY);
	if (!pool || bytes < 60 || bytes > 9014 || !n)
		fail("memory, or the numbers given");
	if (!strcmp(argv[1], "bare")) {
		to = bare_port(argv[2], "net_memif0", "server");
		from = bare_port(argv[2], "net_memif1", "client");
	} else {
		to = switch_port(argv[2], "net_memif0", macs);
		from = switch_port(argv[2], "net_memif1", macs + 6);
	}
	wait_for_link(to);
	wait_for_link(from);
	drain(to); /* offers its buffers to the peer */
	ns = median_ns(from, to, macs, bytes, n);
	rate = frames_per_s(from, to, macs, bytes);
	printf("hop,bytes,one_way_ns,frames_per_s,bytes_per_s\n%s,%u,%.0f,%.0f,%.0f\n", argv[1],
	       bytes, ns, rate, rate * bytes);
	rte_eth_dev_stop(from);
	rte_eth_dev_stop(to);
	return 0;
}
