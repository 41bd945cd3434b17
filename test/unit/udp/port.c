/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two UDP ports over loopback, and a socket that sends what no peer would.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "eal.h"
#include "udp/udp.h"
#include "udp/udp_io.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define LO 0x7f000001u
#define BURST 32u

struct pair {
	struct weft_frame_port *a, *b;
};

static struct weft_frame_port *open_port(const struct weft_udp_opts *o)
{
	struct weft_frame_port *port = NULL;
	struct weft_udp_addr addr;
	char why[300] = "";

	if (weft_udp_open("lo", o, &port, &addr, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	assert_int_equal(addr.ip, LO);
	return port;
}

static int open_pair(void **state)
{
	static const struct weft_udp_opts o;
	struct pair *p = calloc(1, sizeof(*p));

	p->a = open_port(&o);
	p->b = open_port(&o);
	assert_int_not_equal(p->a->udp_port, p->b->udp_port);
	*state = p;
	return 0;
}

/* Everything that was sent and received has come back to its pool. */
static int close_pair(void **state)
{
	struct pair *p = *state;
	struct weft_frame_port *ports[] = {p->a, p->b};
	unsigned int used;

	for (unsigned int i = 0; i < 2; i++) {
		used = rte_mempool_in_use_count(ports[i]->pool) +
		       rte_mempool_in_use_count(ports[i]->hdr_pool);
		used -= weft_udp_of(ports[i])->rx.stashed;
		ports[i]->ops->close(ports[i]);
		if (used != 0)
			return -1;
	}
	free(p);
	return 0;
}

/* A frame with @p len bytes behind the headers, all of them @p value. */
static struct rte_mbuf *frame(const struct weft_frame_port *from, uint16_t src_port,
			      const struct weft_frame_port *to, uint32_t len, uint8_t value)
{
	const struct weft_udp_way way = {
		.src_ip = LO,
		.dst_ip = LO,
		.src_port = src_port,
		.dst_port = to->udp_port,
		.tos = 0x2,
	};
	struct rte_mbuf *m = rte_pktmbuf_alloc(from->pool);
	uint8_t *at;

	assert_non_null(m);
	at = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(WEFT_UDP_HEAD + len));
	assert_non_null(at);
	weft_udp_head(at, &way, len);
	memset(at + WEFT_UDP_HEAD, value, len);
	((struct weft_frame_hdr *)(at + WEFT_UDP_HEAD))->type = WEFT_FRAME_DATA;
	return m;
}

static void send_all(struct weft_frame_port *port, struct rte_mbuf **m, uint16_t n)
{
	assert_int_equal(port->ops->tx_burst(port, m, n), n);
}

/* The next frame; waits for it. */
static struct rte_mbuf *next(struct weft_frame_port *port)
{
	struct pollfd fd = {.fd = port->ops->wait_fd(port), .events = POLLIN};
	struct rte_mbuf *m;

	for (unsigned int i = 0; i < 100; i++) {
		if (port->ops->rx_burst(port, &m, 1) == 1)
			return m;
		poll(&fd, 1, 100);
	}
	fail_msg("no frame came");
	return NULL;
}

static void expect(struct weft_frame_port *port, uint32_t len, uint8_t value)
{
	struct rte_mbuf *m = next(port);
	struct weft_udp_sent sent;
	const uint8_t *at = rte_pktmbuf_mtod(m, const uint8_t *);

	assert_int_equal(m->pkt_len, WEFT_UDP_HEAD + len);
	assert_int_equal(m->nb_segs, 1);
	weft_udp_read(at, &sent);
	assert_int_equal(sent.way.dst_port, port->udp_port);
	assert_int_equal(sent.way.tos, 0x2);
	for (uint32_t i = WEFT_UDP_HEAD; i < m->pkt_len; i++)
		if (i != WEFT_UDP_HEAD + offsetof(struct weft_frame_hdr, type))
			assert_int_equal(at[i], value);
	rte_pktmbuf_free(m);
}

/* Lengths that the kernel cuts and merges, in several orders: none changes on the way. */
static void frames_arrive(void **state)
{
	static const uint32_t lens[][BURST] = {
		{1000},
		{1400, 1400, 1400, 1400, 1400, 1400, 1400, 300},
		{1400, 1400, 1400, 1400, 1400, 1400, 1400, 1400},
		{300, 300, 300, 1400, 1400, 300, 1400, 1400, 1400, 50, 50},
		{9000, 9000, 9000, 9000, 9000, 9000, 9000, 9000, 8999},
		{50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 49},
		{16000, 16000, 16000, 16000, 16000},
		{1400, 1401, 1402, 1403, 1402, 1401, 1400},
	};
	struct pair *p = *state;
	struct rte_mbuf *m[BURST];
	uint16_t n;

	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int k = 0; k < RTE_DIM(lens); k++) {
			for (n = 0; n < BURST && lens[k][n] != 0; n++)
				m[n] = frame(p->a, p->a->udp_port, p->b, lens[k][n],
					     (uint8_t)(n + 1));
			send_all(p->a, m, n);
			for (n = 0; n < BURST && lens[k][n] != 0; n++)
				expect(p->b, lens[k][n], (uint8_t)(n + 1));
		}
	}
	if (weft_udp_of(p->a)->gso) {
		assert_in_range(weft_udp_of(p->a)->stats.tx_calls, 1, 3 * RTE_DIM(lens));
		assert_true(weft_udp_of(p->a)->stats.tx_datagrams > 100);
	}
	assert_int_equal(weft_udp_of(p->b)->stats.rx_too_long, 0);
}

/* An empty poll is followed by a call for one message, and a full call by one for twice as many. */
static void calls_grow_while_they_are_full(void **state)
{
	static const uint16_t takes[] = {1, 2, 4, 8, 5, 0, 1};
	struct pair *p = *state;
	struct rte_mbuf *m[BURST];
	uint16_t n = 20;

	assert_int_equal(p->b->ops->rx_burst(p->b, m, BURST), 0);
	for (uint16_t i = 0; i < n; i++) /* of increasing length: the kernel merges none */
		m[i] = frame(p->a, p->a->udp_port, p->b, 100u + i, 1);
	send_all(p->a, m, n);
	for (unsigned int i = 0; i < RTE_DIM(takes); i++) {
		if (i + 1 == RTE_DIM(takes)) {
			m[0] = frame(p->a, p->a->udp_port, p->b, 300, 1);
			m[1] = frame(p->a, p->a->udp_port, p->b, 301, 1);
			send_all(p->a, m, 2);
		}
		n = p->b->ops->rx_burst(p->b, m, BURST);
		assert_int_equal(n, takes[i]);
		for (uint16_t k = 0; k < n; k++)
			rte_pktmbuf_free(m[k]);
	}
	expect(p->b, 301, 1);
}

/* Frames of chained buffers, and one that the sender keeps. */
static void chains_are_gathered(void **state)
{
	struct pair *p = *state;
	struct rte_mbuf *m, *tail;

	for (unsigned int i = 0; i < 3; i++) {
		m = frame(p->a, p->a->udp_port, p->b, 60, 7);
		tail = rte_pktmbuf_alloc(p->a->hdr_pool);
		memset(rte_pktmbuf_append(tail, 90), 7, 90);
		assert_int_equal(rte_pktmbuf_chain(m, tail), 0);
		rte_pktmbuf_refcnt_update(m, 1);
		send_all(p->a, &m, 1);
		expect(p->b, 150, 7);
		rte_pktmbuf_free(m);
	}
}

/* Paths: frames leave from the ports of the block, which are sockets of their own. */
static void paths_have_ports(void **state)
{
	struct pair *p = *state;
	uint16_t first = p->a->path_ports.first;
	struct weft_udp_sent sent;
	struct rte_mbuf *m;
	unsigned int came = 0;

	assert_int_equal(first % WEFT_UDP_PORTS, 0);
	for (uint16_t k = 0; k < 4; k++) {
		m = frame(p->a, (uint16_t)(first + k), p->b, 100, 1);
		send_all(p->a, &m, 1);
		if (weft_udp_of(p->a)->sock[k].fd < 0)
			continue; /* another process has it */
		m = next(p->b);
		weft_udp_read(rte_pktmbuf_mtod(m, const uint8_t *), &sent);
		assert_int_equal(sent.way.src_port, first + k);
		rte_pktmbuf_free(m);
		came++;
		/* And back: it is received there. */
		m = frame(p->b, p->b->udp_port, p->a, 100, 2);
		rte_pktmbuf_mtod_offset(m, struct rte_udp_hdr *, 34)->dst_port =
			rte_cpu_to_be_16((uint16_t)(first + k));
		send_all(p->b, &m, 1);
		rte_pktmbuf_free(next(p->a));
	}
	assert_true(came > 0);
	assert_int_equal(weft_udp_of(p->a)->stats.tx_no_port, 4 - came);
}

static int plain_socket(uint16_t *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(LO)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(a);

	a.sin_port = htons(*port);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		close(fd);
		return -1;
	}
	getsockname(fd, (struct sockaddr *)&a, &len);
	*port = ntohs(a.sin_port);
	return fd;
}

/* A port of the block that another socket has carries nothing, and is not tried again and again. */
static void taken_port(void **state)
{
	struct pair *p = *state;
	uint16_t port = (uint16_t)(p->a->path_ports.first + (p->a->udp_port + 1) % WEFT_UDP_PORTS);
	int fd = plain_socket(&port);
	struct rte_mbuf *m;

	for (unsigned int i = 0; i < 3; i++) {
		m = frame(p->a, port, p->b, 100, 1);
		send_all(p->a, &m, 1);
	}
	assert_int_equal(weft_udp_of(p->a)->stats.tx_no_port, 3);
	close(fd);
}

static void send_to_port(int fd, uint16_t port, uint32_t len, uint16_t seg)
{
	static char bytes[65507];
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(LO),
	};
	int value = seg;

	setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &value, sizeof(value));
	(void)!sendto(fd, bytes, len, 0, (struct sockaddr *)&a, sizeof(a));
}

static void send_plain(int fd, const struct weft_frame_port *to, uint32_t len, uint16_t seg)
{
	send_to_port(fd, to->udp_port, len, seg);
}

/* Kernels from 6.10 on cut and merge twice as many as those before. */
static void more_datagrams_in_one_than_the_queue_has_room_for(void **state)
{
	static const struct weft_udp_opts o = {.mtu = 1500, .rx_bufs = 8192};
	struct weft_frame_port *to = open_port(&o);
	struct weft_udp *u = weft_udp_of(to);
	uint16_t ports[3] = {to->udp_port}, any = 0;
	unsigned int num = 1, num_msgs[] = {13, 13, 16};
	struct rte_mbuf *m[BURST];
	int fd = plain_socket(&any), n;

	(void)state;
	for (uint16_t k = 1; k < WEFT_UDP_PORTS && num < 3; k++) {
		uint16_t port =
			(uint16_t)(to->path_ports.first + (to->udp_port + k) % WEFT_UDP_PORTS);

		if (weft_udp_sock(u, port))
			ports[num++] = port;
	}
	assert_int_equal(num, 3);
	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int k = 0; k < num_msgs[i]; k++)
			send_to_port(fd, ports[i], i < 2 ? 100 : 128, 1);
	u->rx.quiet = 100; /* the next poll includes all sockets */
	do {
		n = to->ops->rx_burst(to, m, BURST);
		assert_true(u->rx.count <= WEFT_UDP_QUEUE);
		rte_pktmbuf_free_bulk(m, (unsigned int)n);
	} while (n > 0);
	close(fd);
	to->ops->close(to);
}

static rlim_t limit_files(rlim_t num)
{
	struct rlimit r;
	rlim_t old;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
	old = r.rlim_cur;
	r.rlim_cur = num;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
	return old;
}

static rlim_t next_file(void)
{
	int fd = dup(0);

	assert_true(fd >= 0);
	close(fd);
	return (rlim_t)fd;
}

/* Without descriptors no text names another cause, and a port of a path is no other socket's. */
static void the_limit_on_files(void **state)
{
	static const struct weft_udp_opts o;
	struct pair *p = *state;
	struct weft_udp *u = weft_udp_of(p->a);
	uint16_t port = (uint16_t)(p->a->path_ports.first + (p->a->udp_port + 1) % WEFT_UDP_PORTS);
	struct weft_frame_port *more = NULL;
	struct weft_udp_addr addr;
	rlim_t num = next_file(), old = limit_files(num);
	char why[300];
	int rc = -1;

	assert_null(weft_udp_sock(u, port));
	limit_files(old);
	for (rlim_t i = 0; i < 20 && rc != 0; i++) {
		limit_files(num + i);
		rc = weft_udp_open("lo", &o, &more, &addr, why, sizeof(why));
		limit_files(old);
		if (rc != 0)
			assert_non_null(strstr(why, "ulimit -n"));
	}
	assert_int_equal(rc, 0);
	more->ops->close(more);
	assert_non_null(weft_udp_sock(u, port));
}

/* What no peer sends: empty, longer than a frame, cut into tiny or odd pieces. */
static void hostile_datagrams(void **state)
{
	struct pair *p = *state;
	struct rte_mbuf *m[BURST];
	uint16_t port = 0;
	int fd = plain_socket(&port), n;

	for (unsigned int i = 0; i < 200; i++) {
		send_plain(fd, p->b, 0, 0);
		send_plain(fd, p->b, 65507, 0);
		send_plain(fd, p->b, 64, 1);
		send_plain(fd, p->b, 17000, 0);
		send_plain(fd, p->b, 65000, 16400);
		send_plain(fd, p->b, 1400 * 46 - 1, 1400);
		send_plain(fd, p->b, 513 * 64, 513);
		do {
			n = p->b->ops->rx_burst(p->b, m, BURST);
			rte_pktmbuf_free_bulk(m, (unsigned int)n);
		} while (n > 0);
	}
	close(fd);
	assert_true(weft_udp_of(p->b)->stats.rx_too_long > 0);
	/* The port works. */
	m[0] = frame(p->a, p->a->udp_port, p->b, 1400, 9);
	send_all(p->a, m, 1);
	expect(p->b, 1400, 9);
}

/* Nothing is received: sending goes on, and what is lost is counted. */
static void full_socket(void **state)
{
	struct pair *p = *state;
	struct rte_mbuf *m[BURST];
	unsigned int got = 0, n;
	uint64_t missed;

	for (unsigned int i = 0; i < 2000; i++) {
		for (n = 0; n < BURST; n++)
			m[n] = frame(p->a, p->a->udp_port, p->b, 1400, 1);
		n = p->a->ops->tx_burst(p->a, m, BURST);
		for (; n < BURST; n++)
			rte_pktmbuf_free(m[n]); /* not accepted: still the sender's */
	}
	while ((n = p->b->ops->rx_burst(p->b, m, BURST)) > 0) {
		rte_pktmbuf_free_bulk(m, n);
		got += n;
	}
	assert_true(got > 0 && got < 2000 * BURST);
	missed = p->b->ops->missed(p->b); /* no later datagram has the number */
	assert_true(missed > 0);
	m[0] = frame(p->a, p->a->udp_port, p->b, 1400, 1);
	send_all(p->a, m, 1);
	rte_pktmbuf_free(next(p->b));
	assert_int_equal(weft_udp_of(p->b)->stats.rx_missed, missed);
}

/* An ARP request gets its reply at the next rx_burst(), and an owner does not sleep before. */
static void arp_is_answered(void **state)
{
	struct pair *p = *state;
	struct rte_mbuf *m = rte_pktmbuf_alloc(p->a->hdr_pool);
	struct weft_udp_arp *request = (void *)rte_pktmbuf_append(m, 60);
	uint64_t within = 1000;

	*request = (struct weft_udp_arp){
		.eth.ether_type = RTE_BE16(RTE_ETHER_TYPE_ARP),
		.arp = {.arp_opcode = RTE_BE16(RTE_ARP_OP_REQUEST),
			.arp_data = {.arp_sip = RTE_BE32(LO), .arp_tip = RTE_BE32(0x0a000002)}},
	};
	assert_int_equal(p->a->ops->arm(p->a, &within), 0);
	p->a->ops->disarm(p->a);
	send_all(p->a, &m, 1);
	assert_int_equal(p->a->ops->arm(p->a, &within), -EBUSY);
	m = next(p->a);
	request = rte_pktmbuf_mtod(m, void *);
	assert_int_equal(request->arp.arp_opcode, RTE_BE16(RTE_ARP_OP_REPLY));
	assert_int_equal(request->arp.arp_data.arp_sip, RTE_BE32(0x0a000002));
	rte_pktmbuf_free(m);
}

static void ranges(void **state)
{
	struct weft_udp_opts o = {.first = 41000, .last = 41999};
	struct weft_frame_port *a = open_port(&o), *b = open_port(&o), *c = NULL;
	struct weft_udp_addr addr;
	char why[300];

	(void)state;
	assert_in_range(a->path_ports.first, 41000, 41999 - WEFT_UDP_PORTS);
	assert_int_equal(a->udp_port & a->path_ports.mask, a->path_ports.first);
	assert_int_not_equal(a->udp_port, b->udp_port);
	o = (struct weft_udp_opts){.udp_port = a->udp_port};
	assert_int_equal(weft_udp_open("lo", &o, &c, &addr, why, sizeof(why)), -EADDRINUSE);
	assert_non_null(strstr(why, "in use by another socket"));
	o = (struct weft_udp_opts){.first = 41001, .last = 41032};
	assert_int_equal(weft_udp_open("lo", &o, &c, &addr, why, sizeof(why)), -ERANGE);
	a->ops->close(a);
	b->ops->close(b);
}

static void routes(void **state)
{
	struct pair *p = *state;
	char why[300] = "";

	assert_int_equal(p->a->ops->reach(p->a, 0x7f000002, why, sizeof(why)), 0);
	assert_int_equal(p->a->ops->reach(p->a, 0xc6336401, why, sizeof(why)), -EHOSTUNREACH);
	assert_non_null(strstr(why, "no route leads from interface lo to 198.51.100.1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(frames_arrive, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(calls_grow_while_they_are_full, open_pair,
						close_pair),
		cmocka_unit_test_setup_teardown(chains_are_gathered, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(paths_have_ports, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(taken_port, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(hostile_datagrams, open_pair, close_pair),
		cmocka_unit_test(more_datagrams_in_one_than_the_queue_has_room_for),
		cmocka_unit_test_setup_teardown(the_limit_on_files, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(full_socket, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(arp_is_answered, open_pair, close_pair),
		cmocka_unit_test(ranges),
		cmocka_unit_test_setup_teardown(routes, open_pair, close_pair),
	};

	test_eal_init("512");
	return cmocka_run_group_tests_name("udp_port", tests, NULL, NULL);
}
