/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two frame ports over one memif connection, and a peer that writes into the rings what it should
 * not.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_mbuf.h>

#include "eal.h"
#include "memif/control.h"
#include "memif/memif.h"
#include "mock/rounds.h"
#include "weft.h"

#define BURST 32u

struct pair {
	struct weft_frame_port *server, *client;
	char dir[32], path[64];
};

static struct weft_mconn *conn_of(struct weft_frame_port *port)
{
	return &weft_mport_of(port)->conn;
}

static struct weft_frame_port *open_port(const struct pair *p, bool server, uint8_t log2)
{
	const struct weft_mport_opts o = {.server = server, .log2_ring = log2};
	struct weft_frame_port *port = NULL;
	char why[300] = "";

	if (weft_mport_open(p->path, &o, &port, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	return port;
}

static int open_pair(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	snprintf(p->dir, sizeof(p->dir), "/tmp/weft-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->path, sizeof(p->path), "%s/m", p->dir);
	p->client = open_port(p, false, 4);
	p->server = open_port(p, true, 8);
	*state = p;
	return 0;
}

static void close_port(struct weft_frame_port *port, unsigned int *used)
{
	if (!port)
		return;
	*used += rte_mempool_in_use_count(port->pool) + rte_mempool_in_use_count(port->hdr_pool);
	port->ops->close(port);
}

/* Everything that was sent and received has come back to its pool. */
static int close_pair(void **state)
{
	struct pair *p = *state;
	unsigned int used = 0;

	close_port(p->client, &used);
	close_port(p->server, &used);
	used += rmdir(p->dir) != 0;
	free(p);
	return used == 0 ? 0 : -1;
}

static void connect_pair(struct pair *p)
{
	bool client, server;

	for (int i = 0; i < 20000; i++) {
		client = p->client->ops->link_up(p->client);
		server = p->server->ops->link_up(p->server);
		if (client && server)
			return;
		usleep(100);
	}
	fail_msg("not connected");
}

static struct rte_mbuf *make_frame(struct weft_frame_port *port, uint32_t len, uint8_t seed)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(port->pool);
	uint8_t *at = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)len);

	assert_non_null(at);
	for (uint32_t i = 0; i < len; i++)
		at[i] = (uint8_t)(i * 7 + seed);
	return m;
}

static void check_frame(struct rte_mbuf *m, uint32_t len, uint8_t seed)
{
	const uint8_t *at = rte_pktmbuf_mtod(m, const uint8_t *);

	assert_int_equal(m->pkt_len, len);
	assert_int_equal(m->data_len, len);
	assert_int_equal(m->nb_segs, 1);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(at[i], (uint8_t)(i * 7 + seed));
	rte_pktmbuf_free(m);
}

static uint64_t counted;
static const char *counter_name;

static void on_counter(const char *name, uint64_t value, void *arg)
{
	(void)arg;
	if (strcmp(name, counter_name) == 0)
		counted = value;
}

static uint64_t counter(struct weft_frame_port *port, const char *name)
{
	counter_name = name;
	counted = UINT64_MAX;
	port->ops->counters(port, on_counter, NULL);
	return counted;
}

static void pass_one(struct weft_frame_port *from, struct weft_frame_port *to, uint32_t len,
		     uint8_t seed)
{
	struct rte_mbuf *m = make_frame(from, len, seed), *got[BURST];

	assert_int_equal(from->ops->tx_burst(from, &m, 1), 1);
	assert_int_equal(to->ops->rx_burst(to, got, BURST), 1);
	check_frame(got[0], len, seed);
}

static void frames_of_each_length(void **state)
{
	struct pair *p = *state;

	connect_pair(p);
	assert_int_equal(p->client->frame_size, 9014);
	for (uint32_t len = 1; len <= 9014; len += len < 200 ? 1 : 551) {
		pass_one(p->client, p->server, len, (uint8_t)len);
		pass_one(p->server, p->client, len, (uint8_t)~len);
	}
	assert_int_equal(counter(p->client, "memif.tx_frames"),
			 counter(p->server, "memif.rx_frames"));
	assert_int_equal(counter(p->client, "memif.connects"), 1);
}

/* A frame in several buffers, of which the sender keeps references, is one frame. */
static void chains_are_one_frame(void **state)
{
	struct pair *p = *state;
	struct rte_mbuf *m, *tail, *got[BURST];

	connect_pair(p);
	m = make_frame(p->client, 100, 5);
	tail = make_frame(p->client, 50, (uint8_t)(5 + 100 * 7));
	rte_pktmbuf_chain(m, tail);
	rte_mbuf_refcnt_update(m, 1);
	rte_mbuf_refcnt_update(tail, 1);
	assert_int_equal(p->client->ops->tx_burst(p->client, &m, 1), 1);
	assert_int_equal(rte_mbuf_refcnt_read(m), 1);
	assert_int_equal(rte_mbuf_refcnt_read(tail), 1);
	assert_int_equal(p->server->ops->rx_burst(p->server, got, BURST), 1);
	check_frame(got[0], 150, 5);
	rte_pktmbuf_free(m);
}

static void full_ring_takes_a_prefix(void **state)
{
	struct pair *p = *state;
	struct rte_mbuf *m[BURST], *got[BURST];
	struct weft_frame_port *ends[] = {p->client, p->server};
	uint16_t n;

	connect_pair(p);
	for (unsigned int e = 0; e < 2; e++) {
		for (unsigned int i = 0; i < BURST; i++)
			m[i] = make_frame(ends[e], 64, (uint8_t)i);
		assert_int_equal(ends[e]->ops->tx_burst(ends[e], m, BURST), 16);
		assert_int_equal(counter(ends[e], "memif.tx_full"), 16);
		n = ends[!e]->ops->rx_burst(ends[!e], got, 3);
		assert_int_equal(n, 3);
		for (unsigned int i = 0; i < 3; i++)
			check_frame(got[i], 64, (uint8_t)i);
		assert_int_equal(ends[e]->ops->tx_burst(ends[e], m + 16, 16), 3);
		n = ends[!e]->ops->rx_burst(ends[!e], got, BURST);
		assert_int_equal(n, 16);
		for (unsigned int i = 0; i < n; i++)
			check_frame(got[i], 64, (uint8_t)(i + 3));
		for (unsigned int i = 19; i < BURST; i++)
			rte_pktmbuf_free(m[i]);
	}
}

/* A frame that does not fit the peer's buffer is lost, and the next one arrives. */
static void too_long_frames_are_dropped(void **state)
{
	struct pair *p = *state;
	struct weft_mconn *c;
	struct rte_mbuf *m[2], *got[BURST];

	connect_pair(p);
	/* The client's buffers become shorter, as the server sees them. */
	assert_int_equal(p->client->ops->rx_burst(p->client, got, BURST), 0);
	c = conn_of(p->client);
	atomic_store(&weft_mring_desc(&c->rx, 0)->length, 99);
	m[0] = make_frame(p->server, 100, 1);
	m[1] = make_frame(p->server, 99, 2);
	assert_int_equal(p->server->ops->tx_burst(p->server, m, 2), 2);
	assert_int_equal(counter(p->server, "memif.tx_too_long"), 1);
	assert_int_equal(p->client->ops->rx_burst(p->client, got, BURST), 1);
	check_frame(got[0], 99, 2);
}

/* Descriptors that name other memory are dropped; the frames around them arrive. */
static void invalid_descriptors_are_dropped(void **state)
{
	struct pair *p = *state;
	struct weft_mconn *c;
	struct rte_mbuf *m[3], *got[BURST];

	connect_pair(p);
	c = conn_of(p->client);
	for (unsigned int i = 0; i < 3; i++)
		m[i] = make_frame(p->client, 70, (uint8_t)i);
	assert_int_equal(p->client->ops->tx_burst(p->client, m, 3), 3);
	atomic_store(&c->tx.shm->desc[1].offset, UINT32_MAX - 10);
	assert_int_equal(p->server->ops->rx_burst(p->server, got, BURST), 2);
	check_frame(got[0], 70, 0);
	check_frame(got[1], 70, 2);
	assert_int_equal(counter(p->server, "memif.rx_invalid"), 1);
	/* A chain longer than a frame, of all entries, is one invalid frame. */
	for (unsigned int i = 0; i < c->tx.size; i++) {
		atomic_store(&c->tx.shm->desc[i].offset, 8192);
		atomic_store(&c->tx.shm->desc[i].length, 9000);
		atomic_store(&c->tx.shm->desc[i].flags, WEFT_MRING_NEXT);
	}
	atomic_store(&c->tx.shm->head, (uint16_t)(3 + c->tx.size));
	assert_int_equal(p->server->ops->rx_burst(p->server, got, BURST), 0);
	assert_int_equal(counter(p->server, "memif.rx_invalid"), 2);
}

/* A peer may send a frame as several descriptors. */
static void frames_of_several_entries(void **state)
{
	struct pair *p = *state;
	struct weft_mconn *c;
	struct rte_mbuf *m[2], *got[BURST];

	connect_pair(p);
	c = conn_of(p->client);
	m[0] = make_frame(p->client, 100, 5);
	m[1] = make_frame(p->client, 50, (uint8_t)(5 + 100 * 7));
	assert_int_equal(p->client->ops->tx_burst(p->client, m, 2), 2);
	atomic_store(&c->tx.shm->desc[0].flags, WEFT_MRING_NEXT);
	assert_int_equal(p->server->ops->rx_burst(p->server, got, BURST), 1);
	check_frame(got[0], 150, 5);
}

/* An index that no peer can have ends the connection; the client comes back. */
static void invalid_index_ends_the_connection(void **state)
{
	struct pair *p = *state;
	struct rte_mbuf *m, *got[BURST];
	char text[200];

	for (int end = 0; end < 3; end++) {
		connect_pair(p);
		pass_one(p->client, p->server, 60, 1);
		if (end == 0) {
			atomic_store(&conn_of(p->client)->tx.shm->head, 40000);
			assert_int_equal(p->server->ops->rx_burst(p->server, got, BURST), 0);
			p->server->ops->link_text(p->server, text, sizeof(text));
			assert_non_null(strstr(text, "index"));
		} else if (end == 1) {
			atomic_store(&conn_of(p->server)->tx.shm->tail, 40000);
			assert_int_equal(p->client->ops->rx_burst(p->client, got, BURST), 0);
		} else {
			atomic_store(&conn_of(p->client)->rx.shm->head, 40000);
			m = make_frame(p->server, 60, 1);
			assert_int_equal(p->server->ops->tx_burst(p->server, &m, 1), 0);
			rte_pktmbuf_free(m);
		}
	}
	connect_pair(p);
	pass_one(p->client, p->server, 60, 9);
	assert_int_equal(counter(p->server, "memif.connects"), 4);
}

static bool readable(struct weft_frame_port *port)
{
	struct pollfd f = {.fd = port->ops->wait_fd(port), .events = POLLIN};

	return poll(&f, 1, 0) == 1;
}

static void frames_wake_a_sleeper(void **state)
{
	struct pair *p = *state;
	struct weft_frame_port *ends[] = {p->client, p->server};
	struct rte_mbuf *m, *got[BURST];
	uint64_t within = UINT64_MAX;

	connect_pair(p);
	for (int round = 0; round < 6; round++) {
		struct weft_frame_port *to = ends[round % 2], *from = ends[!(round % 2)];

		assert_int_equal(to->ops->arm(to, &within), 0);
		assert_false(readable(to));
		m = make_frame(from, 60, 1);
		assert_int_equal(from->ops->tx_burst(from, &m, 1), 1);
		assert_int_equal(counter(from, "memif.wakes"), 1 + round / 2);
		assert_true(readable(to));
		to->ops->disarm(to);
		assert_false(readable(to));
		assert_int_equal(to->ops->arm(to, &within), -EBUSY);
		assert_int_equal(to->ops->rx_burst(to, got, BURST), 1);
		check_frame(got[0], 60, 1);
		/* Without a sleeper there is no system call. */
		m = make_frame(from, 60, 1);
		assert_int_equal(from->ops->tx_burst(from, &m, 1), 1);
		assert_int_equal(counter(from, "memif.wakes"), 1 + round / 2);
		assert_int_equal(to->ops->rx_burst(to, got, BURST), 1);
		check_frame(got[0], 60, 1);
	}
	assert_int_equal(within, UINT64_MAX);
}

/* A peer makes its eventfd blocking, and fills the counter. */
static void a_full_eventfd_delays_no_sender(void **state)
{
	const uint64_t full = UINT64_MAX - 1;
	struct pair *p = *state;
	struct weft_frame_port *ends[] = {p->client, p->server};
	struct rte_mbuf *m, *got[BURST];
	uint64_t within = UINT64_MAX;

	connect_pair(p);
	for (int round = 0; round < 200; round++) {
		struct weft_frame_port *to = ends[round % 2], *from = ends[!(round % 2)];
		struct weft_mport *f = weft_mport_of(from);
		int event = conn_of(to)->rx.event;

		if (round == 150) {
			/* As in a sandbox. */
			weft_mwake_close(&f->wake);
			weft_mwake_close(&weft_mport_of(to)->wake);
		}
		assert_int_equal(to->ops->arm(to, &within), 0);
		if (round < 2) {
			assert_int_equal(fcntl(event, F_SETFL, 0), 0);
			assert_int_equal(write(event, &full, sizeof(full)), sizeof(full));
		}
		alarm(20);
		m = make_frame(from, 60, 1);
		assert_int_equal(from->ops->tx_burst(from, &m, 1), 1);
		alarm(0);
		assert_true(round >= 150 || readable(to));
		to->ops->disarm(to);
		assert_int_equal(to->ops->rx_burst(to, got, BURST), 1);
		check_frame(got[0], 60, 1);
	}
}

/* A sleeping server is woken by its client's arrival; a client without a server tries again. */
static void arrivals_wake_a_sleeper(void **state)
{
	struct pair *p = *state;
	struct weft_frame_port *c = p->client;
	uint64_t within = UINT64_MAX;
	unsigned int used = 0;

	connect_pair(p);
	close_port(p->server, &used);
	assert_int_equal(used, 0);
	p->server = NULL;
	for (int i = 0; i < 2000 && c->ops->link_up(c); i++)
		usleep(1000);
	assert_int_equal(c->ops->arm(c, &within), 0);
	assert_in_range(within, 1, 100000000);
	c->ops->disarm(c);
	p->server = open_port(p, true, 8);
	assert_int_equal(p->server->ops->arm(p->server, &within), 0);
	for (int i = 0; i < 2000 && !readable(p->server); i++) {
		c->ops->link_up(c);
		usleep(1000);
	}
	assert_true(readable(p->server));
	p->server->ops->disarm(p->server);
	connect_pair(p);
	pass_one(p->server, p->client, 60, 9);
}

static uint32_t next_random(void)
{
	static uint64_t seed = 7;

	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33);
}

/* What a peer can do with the memory, the eventfds and the socket that it has open. */
static void spoil(struct weft_mconn *c)
{
	static const uint32_t values[] = {0, 1, 15, 16, 17, 255, 256, 32768, 65535, 0xffff0000};
	const struct weft_mregion *r = &c->region[0];
	uint32_t what = next_random() % 64, value = values[next_random() % RTE_DIM(values)];
	uint8_t bytes[128] = {(uint8_t)(next_random() % 10)};
	uint64_t full = UINT64_MAX - 1;
	size_t at;

	if (c->state != WEFT_MCONN_UP)
		return;
	at = next_random() % (2 * weft_mring_bytes(4)) & ~(size_t)1;
	if (what == 0)
		shutdown(c->fd, SHUT_RDWR);
	else if (what == 1)
		send(c->fd, bytes, next_random() % 2 ? 128 : next_random() % 128, MSG_DONTWAIT);
	else if (what == 2 && fcntl(c->rx.event, F_SETFL, O_NONBLOCK) == 0)
		(void)!write(c->rx.event, &full, sizeof(full));
	else if (what < 20) /* the begin: indices, flags */
		memcpy(r->at + at % 128, &value, 2);
	else
		memcpy(r->at + at, &value, 2 + 2 * (next_random() % 2));
}

static void send_any(struct weft_frame_port *port)
{
	struct rte_mbuf *m = make_frame(port, 1 + next_random() % 9014, 1);

	if (port->ops->tx_burst(port, &m, 1) == 0)
		rte_pktmbuf_free(m);
}

/* The memory of frames in place stays, whatever the peer does before they are read. */
static void receive_any(struct weft_frame_port *port)
{
	struct rte_mbuf *got[BURST];
	uint16_t n = port->ops->rx_burst(port, got, BURST);

	if (n > 0 && next_random() % 2) {
		spoil(conn_of(port));
		send_any(port);
		port->ops->link_up(port);
	}
	for (uint16_t i = 0; i < n; i++) {
		if (got[i]->nb_segs == 2)
			weft_in_place_copy(got[i]);
		assert_int_equal(got[i]->nb_segs, 1);
		assert_int_equal(got[i]->data_len, got[i]->pkt_len);
		assert_in_range(got[i]->pkt_len, 1, port->frame_size);
		rte_pktmbuf_free(got[i]);
	}
}

static void one_step(struct weft_frame_port *port)
{
	struct weft_mport *p = weft_mport_of(port);
	uint64_t within = UINT64_MAX;

	p->try_tsc = p->look_tsc = 0; /* time does not pass here */
	port->ops->link_up(port);
	switch (next_random() % 4) {
	case 0:
		if (port->ops->arm(port, &within) == 0)
			port->ops->disarm(port);
		break;
	case 1:
		receive_any(port);
		break;
	default:
		send_any(port);
	}
}

/* Both ends are Weft's, and what each receives from the other is spoilt. */
static void a_hostile_peer_harms_itself_alone(void **state)
{
	struct pair *p = *state;

	p->client->rx_in_place = p->server->rx_in_place = true;
	connect_pair(p);
	for (unsigned int i = 0; i < test_rounds(100000); i++) {
		one_step(next_random() % 2 ? p->client : p->server);
		if (i % 4 == 0)
			spoil(conn_of(next_random() % 2 ? p->client : p->server));
	}
	assert_true(counter(p->server, "memif.connects") > 50);
	assert_true(counter(p->server, "memif.rx_invalid") > 50);
	for (int i = 0; i < 2; i++)
		shutdown(conn_of(i ? p->client : p->server)->fd, SHUT_RDWR);
	for (int i = 0; i < 100; i++) {
		receive_any(p->client);
		receive_any(p->server);
		p->client->ops->link_up(p->client);
		p->server->ops->link_up(p->server);
	}
	connect_pair(p);
	pass_one(p->client, p->server, 60, 9);
	pass_one(p->server, p->client, 60, 9);
}

static void second_port_of_an_end(void **state)
{
	const struct weft_mport_opts o = {.server = true};
	struct pair *p = *state;
	struct weft_frame_port *port = NULL;
	char why[300] = "";

	assert_int_equal(weft_mport_open(p->path, &o, &port, why, sizeof(why)), -EADDRINUSE);
	if (!strstr(why, "the server's end of id=0 is in use by "))
		fail_msg("%s", why);
	assert_null(port);
}

/* A received frame fits a buffer of the pool, whatever the options are. */
static void buffers_hold_a_frame(void **state)
{
	static const struct {
		uint32_t bsize;
		uint16_t mtu, frame;
	} cases[] = {{0, 0, 9014}, {2048, 0, 2048}, {65535, 9000, 9014}, {65535, 65500, 16384}};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		const struct weft_mport_opts o = {.bsize = cases[i].bsize, .mtu = cases[i].mtu};
		struct weft_frame_port *port = NULL;
		char why[300] = "";

		if (weft_mport_open("/tmp/weft-test-none", &o, &port, why, sizeof(why)) != 0)
			fail_msg("%s", why);
		assert_int_equal(port->frame_size, cases[i].frame);
		assert_true(rte_pktmbuf_data_room_size(port->pool) - RTE_PKTMBUF_HEADROOM >=
			    port->frame_size);
		port->ops->close(port);
	}
}

static void wrong_options(void **state)
{
	struct weft_mport_opts o = {.server = true, .mtu = 9000, .bsize = 9013};
	struct weft_frame_port *port = NULL;
	char why[300] = "", path[200];

	(void)state;
	assert_int_equal(weft_mport_open("/tmp/weft-none", &o, &port, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "bsize="));
	o.mtu = 0;
	assert_true(weft_mport_open("/proc/weft-none", &o, &port, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "/proc/weft-none can't be made"));
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(weft_mport_open(path, &o, &port, why, sizeof(why)), -EINVAL);
	assert_null(port);
}

static int watch_error; /* of epoll_ctl() */

int __real_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	if (watch_error == 0 || op != EPOLL_CTL_ADD)
		return __real_epoll_ctl(epoll, op, fd, event);
	errno = watch_error;
	return -1;
}

static bool count_warnings(enum weft_log_level level, const char *source, const char *text,
			   void *arg)
{
	unsigned int *n = arg;

	(void)source;
	*n += level == WEFT_LOG_WARN && strstr(text, "fs.epoll.max_user_watches") != NULL;
	return true;
}

static void a_limit_of_the_kernel_is_reported(void **state)
{
	struct pair *p = *state;
	unsigned int warnings = 0;
	char text[300] = "";

	weft_log_set_callback(count_warnings, &warnings);
	watch_error = ENOSPC;
	for (int i = 0; i < 2000 && warnings == 0; i++) {
		p->client->ops->link_up(p->client);
		p->server->ops->link_up(p->server);
		usleep(1000);
	}
	watch_error = 0;
	weft_log_set_callback(NULL, NULL);
	assert_true(warnings > 0);
	p->client->ops->link_text(p->client, text, sizeof(text));
	assert_non_null(strstr(text, "No space left on device"));
	connect_pair(p);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_pair, close_pair)

/* ---- frames in place ------------------------------------------------------------------------ */

static struct rte_mbuf *receive_in_place(struct weft_frame_port *from, struct weft_frame_port *to,
					 uint32_t len, uint8_t seed)
{
	struct rte_mbuf *m = make_frame(from, len, seed), *got[BURST];

	to->rx_in_place = true;
	assert_int_equal(from->ops->tx_burst(from, &m, 1), 1);
	assert_int_equal(to->ops->rx_burst(to, got, BURST), 1);
	return got[0];
}

/* A copy of what is behind the head, then as any other frame. */
static void check_in_place(struct rte_mbuf *m, uint32_t len, uint8_t seed)
{
	assert_int_equal(m->nb_segs, 2);
	assert_int_equal(m->pkt_len, len);
	assert_int_equal(m->data_len + m->next->data_len, len);
	assert_true(m->data_len >= 124); /* headers of a FRAG in a VLAN */
	weft_in_place_copy(m);
	check_frame(m, len, seed);
}

/* @behaviour S24 */
static void long_frames_stay_in_the_ring(void **state)
{
	struct pair *p = *state;
	struct weft_frame_port *ends[] = {p->client, p->server}, *to;
	struct rte_mbuf *m, *got[BURST];
	struct weft_mring *r;
	uint8_t *slot;
	uint16_t own;

	connect_pair(p);
	for (int i = 0; i < 40; i++) {
		to = ends[i % 2];
		r = &conn_of(to)->rx;
		own = atomic_load(r->own);
		m = receive_in_place(ends[!(i % 2)], to, 2048 + (uint32_t)i * 150, (uint8_t)i);
		slot = (uint8_t *)(uintptr_t)weft_in_place_at(m);
		/* The peer overwrites the headers, which have been copied. */
		memset(slot, 0xff, m->data_len);
		assert_int_equal(atomic_load(r->own), own);
		check_in_place(m, 2048 + (uint32_t)i * 150, (uint8_t)i);
		assert_int_equal(to->ops->rx_burst(to, got, BURST), 0);
		assert_int_equal((uint16_t)(atomic_load(r->own) - own), 1);
	}
	/* Shorter ones do not, nor does one of several entries. */
	pass_one(p->client, p->server, 2047, 3);
	got[0] = make_frame(p->client, 3000, 5);
	got[1] = make_frame(p->client, 50, (uint8_t)(5 + 3000 * 7));
	r = &conn_of(p->client)->tx;
	own = r->next;
	assert_int_equal(p->client->ops->tx_burst(p->client, got, 2), 2);
	atomic_store(&r->shm->desc[own & r->mask].flags, WEFT_MRING_NEXT);
	assert_int_equal(p->server->ops->rx_burst(p->server, got, BURST), 1);
	check_frame(got[0], 3050, 5);
}

/* A peer that sends what the ring holds: bursts are bounded, and nothing is lost. */
static void a_ring_full_of_long_frames(void **state)
{
	struct pair *p = *state;
	struct rte_mbuf *m, *got[BURST];
	unsigned int sent = 0, n;
	uint8_t seed = 0;

	connect_pair(p);
	p->server->rx_in_place = true;
	for (int round = 0; round < 50; round++) {
		for (;;) {
			m = make_frame(p->client, 9000, (uint8_t)sent);
			if (p->client->ops->tx_burst(p->client, &m, 1) == 0)
				break;
			sent++;
		}
		rte_pktmbuf_free(m);
		n = p->server->ops->rx_burst(p->server, got, BURST);
		assert_in_range(n, 1, 4);
		for (unsigned int i = 0; i < n; i++)
			check_in_place(got[i], 9000, seed++);
	}
	assert_true(sent > 100);
	assert_int_equal(counter(p->server, "memif.rx_frames"), seed);
	while ((n = p->server->ops->rx_burst(p->server, got, BURST)) > 0)
		for (unsigned int i = 0; i < n; i++)
			check_in_place(got[i], 9000, seed++);
	assert_int_equal((uint8_t)sent, seed);
}

/* The memory of frames in place is there until the next burst, whatever the peer does. */
static void the_ring_outlives_its_frames(void **state)
{
	struct pair *p = *state;
	struct weft_frame_port *s = p->server;
	struct rte_mbuf *m, *out, *got[BURST];
	unsigned int used = 0;

	connect_pair(p);
	m = receive_in_place(p->client, s, 6000, 7);
	/* A ring whose index is invalid ends the connection, but not now. */
	atomic_store(&conn_of(p->client)->rx.shm->head, 40000);
	out = make_frame(s, 60, 1);
	for (int i = 0; i < 40000; i++)
		assert_int_equal(s->ops->tx_burst(s, &out, 1), 0);
	close_port(p->client, &used);
	p->client = NULL;
	assert_true(s->ops->link_up(s));
	check_in_place(m, 6000, 7);
	assert_int_equal(s->ops->rx_burst(s, got, BURST), 0);
	assert_int_equal(s->ops->tx_burst(s, &out, 1), 0);
	assert_false(s->ops->link_up(s));
	rte_pktmbuf_free(out);
	assert_int_equal(used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(frames_of_each_length),
		TEST(chains_are_one_frame),
		TEST(full_ring_takes_a_prefix),
		TEST(too_long_frames_are_dropped),
		TEST(invalid_descriptors_are_dropped),
		TEST(frames_of_several_entries),
		TEST(invalid_index_ends_the_connection),
		TEST(frames_wake_a_sleeper),
		TEST(a_full_eventfd_delays_no_sender),
		TEST(arrivals_wake_a_sleeper),
		TEST(a_hostile_peer_harms_itself_alone),
		TEST(second_port_of_an_end),
		TEST(long_frames_stay_in_the_ring),
		TEST(a_ring_full_of_long_frames),
		TEST(the_ring_outlives_its_frames),
		TEST(a_limit_of_the_kernel_is_reported),
		cmocka_unit_test(buffers_hold_a_frame),
		cmocka_unit_test(wrong_options),
	};

	test_eal_init("256");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
