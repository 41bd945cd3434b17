/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memif's control messages: both ends against each other, and each end against a peer that sends
 * what it should not.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "memif/control.h"
#include "mock/fd_limit.h"

#define LEN 65536u
#define SECRET "the secret of this test"

enum { T_ACK = 1, T_HELLO, T_INIT, T_REGION, T_RING, T_CONNECT, T_CONNECTED, T_DISCONNECT };

struct __attribute__((packed)) message {
	uint16_t type;
	union __attribute__((packed)) {
		struct __attribute__((packed)) {
			char name[32];
			uint16_t min, max, regions, s2c, c2s;
			uint8_t log2;
		} hello;
		struct __attribute__((packed)) {
			uint16_t version;
			uint32_t id;
			uint8_t mode;
			char secret[24], name[32];
		} init;
		struct __attribute__((packed)) {
			uint16_t index;
			uint64_t size;
		} region;
		struct __attribute__((packed)) {
			uint16_t flags, index, region;
			uint32_t offset;
			uint8_t log2;
			uint16_t private_size;
		} ring;
		struct __attribute__((packed)) {
			uint32_t code;
			char text[96];
		} disconnect;
		uint8_t all[126];
	};
};

static struct weft_mconn_conf server_conf = {.server = true, .id = 3, .log2_ring = 8},
			      client_conf = {.id = 3, .log2_ring = 4, .bsize = 2048};
static int epoll, peer;
static unsigned int fds_before;

static int setup(void **state)
{
	(void)state;
	snprintf(server_conf.secret, sizeof(server_conf.secret), SECRET);
	snprintf(client_conf.secret, sizeof(client_conf.secret), SECRET);
	fds_before = count_fds();
	epoll = epoll_create1(EPOLL_CLOEXEC);
	return 0;
}

/* Another thread closes descriptors of peers. */
static int teardown(void **state)
{
	(void)state;
	close(epoll);
	for (int i = 0; i < 2000 && count_fds() != fds_before; i++)
		usleep(1000);
	return count_fds() == fds_before ? 0 : -1;
}

static void begin(struct weft_mconn *c, const struct weft_mconn_conf *conf)
{
	int pair[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	weft_mconn_init(c, conf, epoll);
	assert_int_equal(weft_mconn_start(c, pair[0]), 0);
	peer = pair[1];
}

static void give(const struct message *m, size_t len, int fd)
{
	assert_int_equal(weft_socket_send_fds(peer, m, len, &fd, fd >= 0), len);
}

static uint16_t answer(void)
{
	struct message m;

	return recv(peer, &m, sizeof(m), 0) == (ssize_t)sizeof(m) ? m.type : 0;
}

/* ---- both ends ------------------------------------------------------------------------------- */

static void one_frame(struct weft_mconn *from, struct weft_mconn *to, uint8_t byte)
{
	struct weft_mring_buf b;

	assert_true(weft_mring_poll(&from->tx) > 0);
	b = weft_mring_room(&from->tx, 0);
	assert_non_null(b.at);
	b.at[0] = byte;
	weft_mring_fill(&from->tx, 0, 60);
	weft_mring_done(&from->tx, 1);
	assert_int_equal(weft_mring_poll(&to->rx), 1);
	b = weft_mring_frame(&to->rx, 0);
	assert_int_equal(b.at[0], byte);
	assert_int_equal(b.len, 60);
	weft_mring_return(&to->rx, 1);
}

static void both_ends_connect(void **state)
{
	struct weft_mconn s, c;
	int pair[2];

	(void)state;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	weft_mconn_init(&s, &server_conf, epoll);
	weft_mconn_init(&c, &client_conf, epoll);
	assert_int_equal(weft_mconn_start(&s, pair[0]), 0);
	assert_int_equal(weft_mconn_start(&c, pair[1]), 0);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(weft_mconn_input(&c), 0);
		assert_int_equal(weft_mconn_input(&s), 0);
	}
	assert_int_equal(c.state, WEFT_MCONN_UP);
	assert_int_equal(s.state, WEFT_MCONN_UP);
	assert_int_equal(s.rx.size, 16);
	for (uint8_t i = 0; i < 100; i++) {
		one_frame(&c, &s, i);
		one_frame(&s, &c, (uint8_t)~i);
	}
	weft_mconn_end(&c, "enough");
	assert_int_equal(weft_mconn_input(&s), -ECONNRESET);
	assert_non_null(strstr(s.why, "enough"));
}

/* ---- a client that misbehaves ---------------------------------------------------------------- */

static struct message init_message(void)
{
	struct message m = {.type = T_INIT};

	m.init.version = 0x200;
	m.init.id = 3;
	memcpy(m.init.secret, server_conf.secret, sizeof(m.init.secret));
	return m;
}

static int sealed_memory(size_t len, int seals)
{
	int fd = memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* Memory with two rings of 16 entries. */
static int good_memory(void)
{
	int fd = sealed_memory(LEN, F_SEAL_SHRINK);
	uint32_t cookie = WEFT_MRING_COOKIE;

	assert_int_equal(pwrite(fd, &cookie, sizeof(cookie), 0), sizeof(cookie));
	assert_int_equal(pwrite(fd, &cookie, sizeof(cookie), 4096), sizeof(cookie));
	return fd;
}

static struct message region_message(void)
{
	return (struct message){.type = T_REGION, .region = {0, LEN}};
}

static struct message ring_message(bool sends)
{
	return (struct message){.type = T_RING, .ring = {sends, 0, 0, sends ? 0 : 4096, 4, 0}};
}

/* The server's end, after INIT and, from 1 on, the region, from 2 on a ring, from 3 on both. */
static void prepare(struct weft_mconn *s, int progress)
{
	struct message m = init_message();
	int memory = good_memory(), event = eventfd(0, EFD_CLOEXEC);

	begin(s, &server_conf);
	assert_int_equal(answer(), T_HELLO);
	give(&m, sizeof(m), -1);
	m = region_message();
	if (progress > 0)
		give(&m, sizeof(m), memory);
	for (int ring = 0; ring < 2; ring++) {
		m = ring_message(ring == 0);
		if (progress > 1 + ring)
			give(&m, sizeof(m), event);
	}
	assert_int_equal(weft_mconn_input(s), 0);
	for (int i = 0; i < 1 + progress; i++)
		assert_int_equal(answer(), T_ACK);
	close(memory);
	close(event);
}

/* The message ends the connection, and the client learns of it. */
static void ends(struct weft_mconn *s, const struct message *m, size_t len, int fd)
{
	give(m, len, fd);
	assert_int_equal(weft_mconn_input(s), -EPROTO);
	assert_int_equal(s->fd, -1);
	assert_int_equal(s->num_regions, 0);
	assert_null(s->rx.shm);
	assert_int_not_equal(s->why[0], '\0');
	assert_int_equal(answer(), T_DISCONNECT);
	close(peer);
	if (fd >= 0)
		close(fd);
}

static void wrong_init(void **state)
{
	struct weft_mconn s;
	struct message m;

	(void)state;
	for (int i = 0; i < 5; i++) {
		begin(&s, &server_conf);
		assert_int_equal(answer(), T_HELLO);
		m = init_message();
		if (i == 0)
			m.init.version = 0x100;
		else if (i == 1)
			m.init.id = 4;
		else if (i == 2)
			m.init.mode = 1;
		else if (i == 3)
			m.init.secret[23] ^= 1;
		else
			m.init.secret[0] ^= 1;
		ends(&s, &m, sizeof(m), -1);
	}
}

static void messages_of_another_state(void **state)
{
	struct message m = {0};
	struct weft_mconn s;

	(void)state;
	for (int progress = 0; progress < 4; progress++)
		for (uint16_t type = 0; type < 12; type++) {
			bool fits = type == T_REGION || type == T_RING || type == T_CONNECT ||
				    type == T_DISCONNECT;

			if (fits)
				continue;
			prepare(&s, progress);
			m.type = type;
			ends(&s, &m, sizeof(m), -1);
		}
	/* Rings are missing. */
	for (int progress = 0; progress < 3; progress++) {
		prepare(&s, progress);
		m.type = T_CONNECT;
		ends(&s, &m, sizeof(m), -1);
	}
	/* Nothing follows CONNECT. */
	for (uint16_t type = T_INIT; type <= T_CONNECT; type++) {
		prepare(&s, 3);
		m.type = T_CONNECT;
		give(&m, sizeof(m), -1);
		assert_int_equal(weft_mconn_input(&s), 0);
		assert_int_equal(s.state, WEFT_MCONN_UP);
		assert_int_equal(answer(), T_CONNECTED);
		m.type = type;
		ends(&s, &m, sizeof(m), -1);
	}
}

static void messages_of_another_length(void **state)
{
	struct {
		struct message m;
		char more[8];
	} m = {.m = init_message()};
	static const size_t lengths[] = {1, 2, 10, 127, 129, 136};
	struct weft_mconn s;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		begin(&s, &server_conf);
		assert_int_equal(answer(), T_HELLO);
		ends(&s, &m.m, lengths[i], -1);
	}
}

static void wrong_regions(void **state)
{
	struct message m = region_message();
	struct weft_mconn s;
	int pipes[2];

	(void)state;
	prepare(&s, 0);
	ends(&s, &m, sizeof(m), -1);
	prepare(&s, 0);
	ends(&s, &m, sizeof(m), sealed_memory(LEN, 0));
	prepare(&s, 0);
	ends(&s, &m, sizeof(m), sealed_memory(LEN, F_SEAL_GROW));
	prepare(&s, 0);
	ends(&s, &m, sizeof(m), sealed_memory(LEN - 1, F_SEAL_SHRINK));
	prepare(&s, 0);
	assert_int_equal(pipe(pipes), 0);
	close(pipes[1]);
	ends(&s, &m, sizeof(m), pipes[0]);
	prepare(&s, 1);
	ends(&s, &m, sizeof(m), good_memory()); /* number 0 again */
	m.region.index = 1;
	prepare(&s, 2);
	ends(&s, &m, sizeof(m), good_memory()); /* behind a ring */
	for (int i = 0; i < 3; i++) {
		m = region_message();
		m.region.size = i == 0 ? 0 : i == 1 ? WEFT_MCONN_REGIONS_MAX + 1 : UINT64_MAX;
		prepare(&s, 0);
		ends(&s, &m, sizeof(m), good_memory());
	}
	/* As many as there may be, and one more. */
	prepare(&s, 1);
	m = region_message();
	for (m.region.index = 1; m.region.index < WEFT_MRING_REGIONS; m.region.index++) {
		int fd = good_memory();

		give(&m, sizeof(m), fd);
		assert_int_equal(weft_mconn_input(&s), 0);
		assert_int_equal(answer(), T_ACK);
		close(fd);
	}
	ends(&s, &m, sizeof(m), good_memory());
}

static void wrong_rings(void **state)
{
	struct message m;
	struct weft_mconn s;

	(void)state;
	for (int i = 0; i < 9; i++) {
		m = ring_message(true);
		if (i == 0)
			m.ring.index = 1;
		else if (i == 1)
			m.ring.region = 1;
		else if (i == 2)
			m.ring.offset = 64; /* no cookie there */
		else if (i == 3)
			m.ring.offset = 4;
		else if (i == 4)
			m.ring.offset = LEN - 64;
		else if (i == 5)
			m.ring.offset = UINT32_MAX - 7;
		else if (i == 6)
			m.ring.log2 = 9; /* HELLO has stated 8 */
		else if (i == 7)
			m.ring.log2 = 255;
		prepare(&s, i == 8 ? 2 : 1); /* i == 8: the ring again */
		ends(&s, &m, sizeof(m), eventfd(0, EFD_CLOEXEC));
	}
	m = ring_message(true);
	prepare(&s, 0);
	ends(&s, &m, sizeof(m), eventfd(0, EFD_CLOEXEC)); /* without a region */
	prepare(&s, 1);
	ends(&s, &m, sizeof(m), -1);
	prepare(&s, 1);
	ends(&s, &m, sizeof(m), good_memory()); /* no eventfd */
}

/* ---- a server that misbehaves ---------------------------------------------------------------- */

static struct message hello_message(void)
{
	struct message m = {.type = T_HELLO};

	m.hello.min = m.hello.max = 0x200;
	m.hello.log2 = 14;
	return m;
}

static void client_of_another_server(void **state)
{
	struct message m;
	struct weft_mconn c;

	(void)state;
	for (uint16_t type = 0; type < 12; type++) {
		if (type == T_HELLO || type == T_DISCONNECT)
			continue;
		begin(&c, &client_conf);
		m = (struct message){.type = type};
		ends(&c, &m, sizeof(m), -1);
	}
	for (int i = 0; i < 2; i++) {
		m = hello_message();
		m.hello.min = i ? 0x201 : 0x100;
		m.hello.max = i ? 0x300 : 0x1ff;
		begin(&c, &client_conf);
		ends(&c, &m, sizeof(m), -1);
	}
	/* CONNECTED before its time, and ACKs without a message. */
	for (int acks = 0; acks < 6; acks++) {
		begin(&c, &client_conf);
		m = hello_message();
		give(&m, sizeof(m), -1);
		m.type = T_ACK;
		for (int i = 0; i < acks && i < 4; i++)
			give(&m, sizeof(m), -1);
		assert_int_equal(weft_mconn_input(&c), 0);
		assert_int_equal(answer(), T_INIT);
		for (uint16_t i = 0, types[] = {T_REGION, T_RING, T_RING, T_CONNECT};
		     i < acks && i < 4; i++)
			assert_int_equal(answer(), types[i]);
		m.type = acks < 4 ? T_CONNECTED : acks == 4 ? T_ACK : T_HELLO;
		ends(&c, &m, sizeof(m), -1);
	}
}

/* A server with small rings gets small rings. */
static void rings_are_of_both_ends(void **state)
{
	struct message m = hello_message();
	struct weft_mconn c;

	(void)state;
	m.hello.log2 = 2;
	begin(&c, &client_conf);
	give(&m, sizeof(m), -1);
	assert_int_equal(weft_mconn_input(&c), 0);
	assert_int_equal(c.tx.size, 4);
	weft_mconn_end(&c, NULL);
	close(peer);
}

static void text_of_the_peer_is_printable(void **state)
{
	struct message m = {.type = T_DISCONNECT};
	struct weft_mconn c;

	(void)state;
	memset(m.disconnect.text, 'x', sizeof(m.disconnect.text));
	memcpy(m.disconnect.text, "a\033[2Jb\n\377", 8);
	begin(&c, &client_conf);
	give(&m, sizeof(m), -1);
	assert_int_equal(weft_mconn_input(&c), -ECONNRESET);
	assert_non_null(strstr(c.why, ": a?[2Jb??xxx"));
	for (size_t i = 0; i < strlen(c.why); i++)
		assert_in_range(c.why[i], ' ', '~');
	close(peer);
}

static void end_of_the_peer_is_noticed(void **state)
{
	struct weft_mconn s;

	(void)state;
	prepare(&s, 3);
	close(peer);
	assert_int_equal(weft_mconn_input(&s), -ECONNRESET);
	assert_int_equal(s.fd, -1);
	weft_mconn_end(&s, "again");
	assert_int_equal(s.fd, -1);
}

/* An empty message looks like the end of the connection. Its descriptor is closed. */
static void empty_message_with_a_descriptor(void **state)
{
	struct weft_mconn c;
	int fd = eventfd(0, EFD_CLOEXEC);

	(void)state;
	for (int progress = 0; progress < 5; progress++) {
		if (progress < 4)
			prepare(&c, progress);
		else
			begin(&c, &server_conf);
		assert_int_equal(weft_socket_send_fds(peer, "", 0, &fd, 1), 0);
		assert_int_equal(weft_mconn_input(&c), -ECONNRESET);
		assert_int_equal(c.fd, -1);
		close(peer);
	}
	close(fd);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void blocked(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
}

/* No close() returns, up to the bound. */
static void block_closes(void)
{
	pthread_mutex_lock(&held);
	while (weft_foreign_fd_has_room())
		assert_int_equal(weft_blocking_run(blocked, NULL), 0);
}

static void unblock_closes(void)
{
	pthread_mutex_unlock(&held);
	for (int i = 0; i < 10000 && weft_blocking_pending() > 0; i++)
		usleep(1000);
}

/* While many descriptors of peers wait for their close(), no further ones are received. */
static void descriptors_have_a_bound(void **state)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	struct message m = init_message();
	struct weft_mconn s;

	(void)state;
	begin(&s, &server_conf);
	give(&m, sizeof(m), fd);
	block_closes();
	assert_int_equal(weft_mconn_input(&s), 0);
	assert_int_equal(s.state, WEFT_MCONN_INIT);
	unblock_closes();
	assert_int_equal(weft_mconn_input(&s), 0);
	assert_int_equal(s.state, WEFT_MCONN_RINGS);
	weft_mconn_end(&s, NULL);
	close(peer);
	close(fd);
}

/* The last reference to a peer's file frees its pages, which takes long: in another thread. */
static void the_owner_frees_no_pages_of_a_peer(void **state)
{
	struct weft_mconn s;
	unsigned char is_there;
	void *at;

	(void)state;
	prepare(&s, 1);
	at = s.region[0].at;
	block_closes();
	weft_mconn_end(&s, NULL);
	assert_int_equal(mincore(at, 1, &is_there), 0);
	unblock_closes();
	assert_int_equal(mincore(at, 1, &is_there), -1);
	close(peer);
}

/* Their sum counts. */
static void regions_of_too_many_bytes(void **state)
{
	const uint64_t half = WEFT_MCONN_REGIONS_MAX / 2;
	struct message m = region_message();
	struct weft_mconn s;
	int fd;

	(void)state;
	prepare(&s, 1);
	for (m.region.index = 1; m.region.index < 3; m.region.index++) {
		fd = sealed_memory(half, F_SEAL_SHRINK);
		m.region.size = half;
		if (m.region.index == 2) {
			ends(&s, &m, sizeof(m), fd);
			break;
		}
		give(&m, sizeof(m), fd);
		assert_int_equal(weft_mconn_input(&s), 0);
		assert_int_equal(answer(), T_ACK);
		close(fd);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(both_ends_connect),
		TEST(wrong_init),
		TEST(messages_of_another_state),
		TEST(messages_of_another_length),
		TEST(wrong_regions),
		TEST(wrong_rings),
		TEST(client_of_another_server),
		TEST(rings_are_of_both_ends),
		TEST(text_of_the_peer_is_printable),
		TEST(end_of_the_peer_is_noticed),
		TEST(empty_message_with_a_descriptor),
		TEST(descriptors_have_a_bound),
		TEST(the_owner_frees_no_pages_of_a_peer),
		TEST(regions_of_too_many_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
