/* SPDX-License-Identifier: BSD-3-Clause */
/* The programs' out-of-band connection: both ends in one process, the server's in a thread. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "app/common/cli.h"
#include "app/common/oob.h"
#include "weft_build.h"

/* ---- the name service: "two.test" has two addresses */

static struct sockaddr_in two_addr[2];
static struct addrinfo two[2];

int __real_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
int __wrap_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
void __real_freeaddrinfo(struct addrinfo *);
void __wrap_freeaddrinfo(struct addrinfo *);

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	if (!host || strcmp(host, "two.test") != 0)
		return __real_getaddrinfo(host, service, hints, list);
	*list = two;
	return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *list)
{
	if (list != two)
		__real_freeaddrinfo(list);
}

static void set_two(unsigned int i, uint16_t port)
{
	two_addr[i] = (struct sockaddr_in){.sin_family = AF_INET,
					   .sin_port = htons(port),
					   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	two[i] = (struct addrinfo){.ai_family = AF_INET,
				   .ai_socktype = SOCK_STREAM,
				   .ai_addr = (struct sockaddr *)&two_addr[i],
				   .ai_addrlen = sizeof(two_addr[i]),
				   .ai_next = i == 0 ? &two[1] : NULL};
}

/* ---- both ends */

struct ends {
	struct oob_server *door;
	struct oob *server, *client;
	int result;
};

static int stop_after(void *arg)
{
	int *left = arg;

	return --*left > 0 ? 0 : -EINTR;
}

static void *accept_thread(void *arg)
{
	struct ends *e = arg;

	e->result = oob_server_accept(e->door, NULL, NULL, &e->server);
	return NULL;
}

static void join_ends(struct ends *e, const char *host)
{
	pthread_t thread;

	assert_int_equal(oob_server_open(host, 0, &e->door), 0);
	assert_int_equal(pthread_create(&thread, NULL, accept_thread, e), 0);
	assert_int_equal(oob_connect(host, oob_server_port(e->door), 1, NULL, NULL, &e->client), 0);
	pthread_join(thread, NULL);
	assert_int_equal(e->result, 0);
}

static void part_ends(struct ends *e)
{
	oob_close(e->client);
	oob_close(e->server);
	oob_server_close(e->door);
}

static void messages_keep_order_and_bytes(void **state)
{
	static uint8_t out[OOB_MAX], in[OOB_MAX];
	struct ends e = {0};
	size_t length;

	(void)state;
	join_ends(&e, "127.0.0.1");
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 7);
	assert_int_equal(oob_send(e.client, OOB_ADDRESS, out, 0), 0);
	assert_int_equal(oob_send(e.client, OOB_PARAMS, out, 5), 0);
	assert_int_equal(oob_send(e.client, OOB_RESULT, out, sizeof(out)), 0);
	assert_int_equal(oob_send(e.client, OOB_RESULT, out, sizeof(out) + 1), -EMSGSIZE);
	length = sizeof(in);
	assert_int_equal(oob_recv(e.server, OOB_ADDRESS, in, &length, 1, NULL, NULL), 0);
	assert_int_equal(length, 0);
	length = 4;
	assert_int_equal(oob_recv(e.server, OOB_PARAMS, in, &length, 1, NULL, NULL), -EPROTO);
	length = sizeof(in);
	assert_int_equal(oob_recv(e.server, OOB_PARAMS, in, &length, 1, NULL, NULL), 0);
	assert_int_equal(length, 5);
	length = sizeof(in);
	while (oob_next(e.server) == 0)
		assert_int_equal(oob_poll(e.server), 0);
	assert_int_equal(oob_take(e.server, OOB_BARRIER, in, &length), -EPROTO);
	assert_int_equal(oob_recv(e.server, OOB_RESULT, in, &length, 1, NULL, NULL), 0);
	assert_int_equal(length, sizeof(out));
	assert_memory_equal(in, out, sizeof(out));
	assert_int_equal(oob_take(e.server, OOB_RESULT, in, &length), -EAGAIN);
	part_ends(&e);
}

static void works_over_ipv6(void **state)
{
	struct ends e = {0};
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in6 lo = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int ret = bind(fd, (struct sockaddr *)&lo, sizeof(lo));

	(void)state;
	close(fd);
	if (ret) {
		print_message("left out: there is no address ::1\n");
		skip();
	}
	join_ends(&e, "::1");
	part_ends(&e);
}

static void waits_no_longer_than_requested(void **state)
{
	struct ends e = {0};
	size_t length = 0;
	int turns = 5;

	(void)state;
	join_ends(&e, "127.0.0.1");
	assert_int_equal(oob_recv(e.server, OOB_RESULT, NULL, &length, 0.05, NULL, NULL),
			 -ETIMEDOUT);
	assert_int_equal(oob_recv(e.server, OOB_RESULT, NULL, &length, 0, stop_after, &turns),
			 -EINTR);
	part_ends(&e);
}

static void a_barrier_holds_both(void **state)
{
	struct ends e = {0};
	size_t length = 4;
	uint8_t number[4];

	(void)state;
	join_ends(&e, "127.0.0.1");
	assert_int_equal(oob_barrier(e.client, 0.05, NULL, NULL), -ETIMEDOUT);
	assert_int_equal(oob_barrier(e.server, 1, NULL, NULL), 0);
	assert_int_equal(oob_recv(e.client, OOB_BARRIER, number, &length, 1, NULL, NULL), 0);
	part_ends(&e);
}

static void the_end_of_the_peer_is_noticed(void **state)
{
	struct ends e = {0};
	size_t length = 0;

	(void)state;
	join_ends(&e, "127.0.0.1");
	assert_int_equal(oob_poll(e.server), 0);
	oob_close(e.client);
	e.client = NULL;
	assert_int_equal(oob_recv(e.server, OOB_RESULT, NULL, &length, 1, NULL, NULL), -ECONNRESET);
	assert_int_equal(oob_poll(e.server), -ECONNRESET);
	assert_int_equal(oob_peer_bye(e.server, NULL, NULL, 0), 0);
	part_ends(&e);
}

/* @behaviour T10 */
static void bye_is_seen_behind_other_messages(void **state)
{
	struct ends e = {0};
	char text[64];
	size_t length = sizeof(text);
	int code = 0;

	(void)state;
	join_ends(&e, "127.0.0.1");
	assert_int_equal(oob_send(e.client, OOB_RESULT, "abc", 3), 0);
	assert_int_equal(oob_bye(e.client, 7, "no lane \033[2J"), 0);
	usleep(20000);
	assert_int_equal(oob_poll(e.server), 0);
	assert_int_equal(oob_peer_bye(e.server, &code, text, sizeof(text)), 1);
	assert_int_equal(code, 7);
	assert_string_equal(text, "no lane ?[2J");
	assert_int_equal(oob_take(e.server, OOB_RESULT, text, &length), 0);
	assert_int_equal(length, 3);
	assert_int_equal(oob_take(e.server, OOB_RESULT, text, &length), -ESHUTDOWN);
	part_ends(&e);
}

/* Whatever connects and is no peer is sent away, and the next one is served. */
struct intruder {
	uint16_t port;
	const char *sends;
	size_t length;
};

static void *unknown_thread(void *arg)
{
	struct intruder *s = arg;
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(s->port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char byte;

	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
	    send(fd, s->sends, s->length, MSG_NOSIGNAL) >= 0)
		while (s->length && read(fd, &byte, 1) > 0)
			;
	close(fd);
	return NULL;
}

/* @behaviour X9 */
static void strangers_are_sent_away(void **state)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	/* Our header with a length past the limit, and one of another program's HELLO. */
	static const char huge[] = "WFTO\1\0\0\0\377\377\377\377";
	static const char other[] =
		"WFTO\1\0\0\0\40\0\0\0\1\0\0\0netcat\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
	static const char old[] =
		"WFTO\1\0\0\0\40\0\0\0\0\0\0\0test\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
	struct intruder all[] = {
		{.sends = http, .length = sizeof(http) - 1},
		{.sends = huge, .length = sizeof(huge) - 1},
		{.sends = other, .length = 44},
		{.sends = old, .length = 44},
		{.sends = "", .length = 0},
	};
	const unsigned int count = sizeof(all) / sizeof(all[0]);
	pthread_t threads[sizeof(all) / sizeof(all[0])], accepter;
	struct ends e = {0};

	(void)state;
	assert_int_equal(oob_server_open("127.0.0.1", 0, &e.door), 0);
	pthread_create(&accepter, NULL, accept_thread, &e);
	for (unsigned int i = 0; i < count; i++) {
		all[i].port = oob_server_port(e.door);
		pthread_create(&threads[i], NULL, unknown_thread, &all[i]);
		pthread_join(threads[i], NULL);
	}
	assert_int_equal(
		oob_connect("127.0.0.1", oob_server_port(e.door), 1, NULL, NULL, &e.client), 0);
	pthread_join(accepter, NULL);
	assert_int_equal(e.result, 0);
	part_ends(&e);
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* More of them than there are places, and they stay connected. */
/* @behaviour T11: silent TCP connections block no clients; a server continues with `-k` */
static void silent_connections_keep_no_peer_out(void **state)
{
	struct ends e = {0};
	int silent[40];
	pthread_t accepter;
	double begin;

	(void)state;
	assert_int_equal(oob_server_open("127.0.0.1", 0, &e.door), 0);
	pthread_create(&accepter, NULL, accept_thread, &e);
	for (unsigned int i = 0; i < 40; i++) {
		silent[i] = connect_to(oob_server_port(e.door));
		assert_int_equal(send(silent[i], "W", i % 2, 0), i % 2); /* half of them: 1 byte */
	}
	begin = sys_seconds();
	assert_int_equal(
		oob_connect("127.0.0.1", oob_server_port(e.door), 1, NULL, NULL, &e.client), 0);
	pthread_join(accepter, NULL);
	/* Long before the silent ones' time of 5 s is over. */
	assert_true(sys_seconds() - begin < 3);
	assert_int_equal(e.result, 0);
	for (unsigned int i = 0; i < 40; i++)
		close(silent[i]);
	part_ends(&e);
}

#define HELLO "WFTO\1\0\0\0\40\0\0\0\1\0\0\0test"
#define HELLO_BYTES 44

static int client_with_greeting(uint16_t port)
{
	static const char hello[HELLO_BYTES] = HELLO;
	int fd = connect_to(port);

	assert_int_equal(send(fd, hello, sizeof(hello), 0), sizeof(hello));
	return fd;
}

/* A port scan does not learn which program listens. */
static void no_byte_before_a_greeting(void **state)
{
	struct ends e = {0};
	pthread_t accepter;
	int silent, peer;
	char byte;

	(void)state;
	assert_int_equal(oob_server_open("127.0.0.1", 0, &e.door), 0);
	pthread_create(&accepter, NULL, accept_thread, &e);
	silent = connect_to(oob_server_port(e.door));
	assert_int_equal(send(silent, "W", 1, 0), 1);
	peer = client_with_greeting(oob_server_port(e.door));
	pthread_join(accepter, NULL);
	assert_int_equal(e.result, 0);
	/* The silent client was accepted before the one that is served. */
	assert_int_equal(recv(silent, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	close(silent);
	close(peer);
	part_ends(&e);
}

/* The greeting of the second one is there before the first one is served. */
static void two_peers_at_once(void **state)
{
	char got[HELLO_BYTES];
	struct ends e = {0};
	int fd[2], served;

	(void)state;
	assert_int_equal(oob_server_open("127.0.0.1", 0, &e.door), 0);
	for (int i = 0; i < 2; i++)
		fd[i] = client_with_greeting(oob_server_port(e.door));
	assert_int_equal(oob_server_accept(e.door, NULL, NULL, &e.server), 0);
	for (int i = 0; i < 200; i++) {
		oob_server_refuse(e.door, "busy");
		if (poll(&(struct pollfd){.fd = fd[1], .events = POLLIN}, 1, 10) > 0)
			break;
	}
	served = recv(fd[0], got, sizeof(got), 0) == HELLO_BYTES ? 0 : 1;
	assert_int_equal(served, 0);
	assert_memory_equal(got, HELLO, 20);
	assert_int_equal(recv(fd[1], got, sizeof(got), 0), 12 + 4 + 4);
	assert_memory_equal(got, "WFTO\6\0\0\0\10\0\0\0\1\0\0\0busy", 20);
	close(fd[0]);
	close(fd[1]);
	part_ends(&e);
}

static void *ssh_thread(void *arg)
{
	int fd = accept(*(int *)arg, NULL, NULL);

	assert_int_equal(send(fd, "SSH-2.0-OpenSSH\r\n", 17, MSG_NOSIGNAL), 17);
	close(fd);
	return NULL;
}

/* The first address of the name has another server on the port. */
static void a_name_with_two_addresses(void **state)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(in);
	pthread_t ssh, accepter;
	struct ends e = {0};

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&in, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	assert_int_equal(oob_server_open("127.0.0.1", 0, &e.door), 0);
	set_two(0, ntohs(in.sin_port));
	set_two(1, oob_server_port(e.door));
	pthread_create(&ssh, NULL, ssh_thread, &fd);
	pthread_create(&accepter, NULL, accept_thread, &e);
	assert_int_equal(oob_connect("two.test", 1, 1, NULL, NULL, &e.client), 0);
	pthread_join(ssh, NULL);
	pthread_join(accepter, NULL);
	assert_int_equal(e.result, 0);
	close(fd);
	part_ends(&e);
}

static int refuse(void *arg)
{
	struct ends *e = arg;

	oob_server_refuse(e->door, "busy with another client");
	return 0;
}

/* @behaviour T11 */
static void a_busy_server_reports_it(void **state)
{
	struct ends e = {0};
	struct oob *second = NULL;

	(void)state;
	join_ends(&e, "127.0.0.1");
	assert_int_equal(oob_connect("127.0.0.1", oob_server_port(e.door), 1, refuse, &e, &second),
			 -EPROTO);
	assert_non_null(strstr(cli_last_error(), "busy with another client"));
	assert_null(second);
	/* And the first one goes on. */
	assert_int_equal(oob_send(e.client, OOB_RESULT, "abc", 3), 0);
	part_ends(&e);
}

/* @behaviour X9 */
static void no_listener_and_port_taken(void **state)
{
	struct oob *oob = NULL;
	struct oob_server *door, *second;
	uint16_t port;

	(void)state;
	assert_int_equal(oob_server_open("127.0.0.1", 0, &door), 0);
	port = oob_server_port(door);
	assert_int_equal(oob_server_open("127.0.0.1", port, &second), -EADDRINUSE);
	assert_non_null(strstr(cli_last_error(), "in use"));
	oob_server_close(door);
	assert_int_equal(oob_connect("127.0.0.1", port, 0, NULL, NULL, &oob), -ECONNREFUSED);
	assert_non_null(strstr(cli_last_error(), "no server listens"));
	assert_null(oob);
}

/* ---- with a job key */

static const uint8_t job_key[32] = "the job key of both ends, 32 by";
static const uint8_t other_key[32] = "the job key of another job, 32 ";

/* It is between the ends, which it connects, and has what they send. */
struct middle {
	uint16_t port; /* of the server */
	int door;
	size_t change; /* byte from the server that it changes; 0 = none */
	size_t n[2];
	uint8_t seen[2][64 * 1024]; /* of the client, of the server */
};

static bool relay(struct middle *m, int from, int to, unsigned int side)
{
	uint8_t buf[4096];
	ssize_t n = recv(from, buf, sizeof(buf), 0);

	if (n <= 0)
		return false;
	for (ssize_t i = 0; i < n; i++) {
		if (m->n[side] < sizeof(m->seen[side]))
			m->seen[side][m->n[side]] = buf[i];
		if (++m->n[side] == m->change && side == 1)
			buf[i] ^= 1;
	}
	return send(to, buf, (size_t)n, MSG_NOSIGNAL) == n;
}

static void *middle_thread(void *arg)
{
	struct middle *m = arg;
	int client = accept(m->door, NULL, NULL), server = connect_to(m->port);
	struct pollfd fds[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
	bool more = true;

	while (more && poll(fds, 2, -1) > 0) {
		if (fds[0].revents)
			more = relay(m, client, server, 0);
		if (more && fds[1].revents)
			more = relay(m, server, client, 1);
	}
	close(client);
	close(server);
	close(m->door);
	return NULL;
}

static uint16_t open_middle(struct middle *m, uint16_t port, pthread_t *thread)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);

	m->port = port;
	m->door = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(m->door, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(m->door, 1), 0);
	assert_int_equal(getsockname(m->door, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(pthread_create(thread, NULL, middle_thread, m), 0);
	return ntohs(at.sin_port);
}

#define SECRET_TEXT "an address and a key of memory"

/* Both ends, with the middle between them. */
static void join_through(struct ends *e, struct middle *m, pthread_t *thread)
{
	pthread_t accepter;
	uint16_t port;

	assert_int_equal(oob_server_open("127.0.0.1", 0, &e->door), 0);
	port = open_middle(m, oob_server_port(e->door), thread);
	assert_int_equal(pthread_create(&accepter, NULL, accept_thread, e), 0);
	assert_int_equal(oob_connect("127.0.0.1", port, 1, NULL, NULL, &e->client), 0);
	pthread_join(accepter, NULL);
	assert_int_equal(e->result, 0);
}

static bool was_seen(const struct middle *m)
{
	return memmem(m->seen[0], m->n[0], SECRET_TEXT, strlen(SECRET_TEXT)) ||
	       memmem(m->seen[1], m->n[1], SECRET_TEXT, strlen(SECRET_TEXT));
}

static void exchange_secrets(struct ends *e)
{
	char in[64];
	size_t length = sizeof(in);

	assert_int_equal(oob_send(e->client, OOB_ADDRESS, SECRET_TEXT, sizeof(SECRET_TEXT)), 0);
	assert_int_equal(oob_recv(e->server, OOB_ADDRESS, in, &length, 5, NULL, NULL), 0);
	assert_string_equal(in, SECRET_TEXT);
	length = sizeof(in);
	assert_int_equal(oob_send(e->server, OOB_KEY, SECRET_TEXT, sizeof(SECRET_TEXT)), 0);
	assert_int_equal(oob_recv(e->client, OOB_KEY, in, &length, 5, NULL, NULL), 0);
	assert_string_equal(in, SECRET_TEXT);
}

static void with_a_key_nothing_is_readable(void **state)
{
	static struct middle m[2];

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct ends e = {0};
		pthread_t thread;

		assert_int_equal(oob_set_key(i ? job_key : NULL), 0);
		join_through(&e, &m[i], &thread);
		exchange_secrets(&e);
		part_ends(&e);
		pthread_join(thread, NULL);
		assert_true(m[i].n[0] < sizeof(m[i].seen[0]) && m[i].n[1] < sizeof(m[i].seen[1]));
		assert_int_equal(was_seen(&m[i]), i == 0);
	}
	messages_keep_order_and_bytes(state);
	the_end_of_the_peer_is_noticed(state);
	assert_int_equal(oob_set_key(NULL), 0);
}

static void a_changed_byte_ends_the_connection(void **state)
{
	static struct middle m;
	struct ends e = {0};
	pthread_t thread;
	char in[64];
	size_t length = sizeof(in);

	(void)state;
	assert_int_equal(oob_set_key(job_key), 0);
	join_through(&e, &m, &thread);
	exchange_secrets(&e);
	m.change = m.n[1] + 20; /* in the next message of the server */
	assert_int_equal(oob_send(e.server, OOB_KEY, SECRET_TEXT, sizeof(SECRET_TEXT)), 0);
	assert_int_equal(oob_recv(e.client, OOB_KEY, in, &length, 5, NULL, NULL), -EPROTO);
	part_ends(&e);
	pthread_join(thread, NULL);
	assert_int_equal(oob_set_key(NULL), 0);
}

#define KEY_REMEDY \
	"it does not have this job key: give both the same WEFT_JOB_KEY, copies of one file"

/* An end with a raw socket has none of the keys of the process. */
static void *server_thread(void *arg)
{
	struct ends *e = arg;
	int left = 100; /* 10 s */

	e->result = oob_server_accept(e->door, stop_after, &left, &e->server);
	return NULL;
}

/* One end's greeting, and zeros instead of a handshake, or its end. */
static void greet_without_key(uint16_t port, uint8_t tls, size_t num_zeros)
{
	char hello[HELLO_BYTES] = "WFTO\1\0\0\0\40\0\0\0\1\0\0\0test", got[HELLO_BYTES];
	static const char zeros[300];
	int fd = connect_to(port);

	hello[HELLO_BYTES - 1] = (char)tls;
	assert_int_equal(send(fd, hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
	assert_int_equal(send(fd, zeros, num_zeros, MSG_NOSIGNAL), num_zeros);
	if (tls && num_zeros == 0)
		shutdown(fd, SHUT_WR);
	while (recv(fd, got, sizeof(got), 0) > 0)
		;
	close(fd);
}

static void a_client_without_the_key_is_refused(void **state)
{
	struct ends e = {0};
	pthread_t thread;
	uint16_t port;

	(void)state;
	assert_int_equal(oob_set_key(job_key), 0);
	assert_int_equal(oob_server_open("127.0.0.1", 0, &e.door), 0);
	port = oob_server_port(e.door);
	assert_int_equal(pthread_create(&thread, NULL, server_thread, &e), 0);
	greet_without_key(port, 0, 0);
	assert_non_null(strstr(cli_last_error(), "it has no job key, and this program has one"));
	greet_without_key(port, 1, 300);
	assert_non_null(strstr(cli_last_error(), KEY_REMEDY));
	greet_without_key(port, 1, 0);
	assert_non_null(strstr(cli_last_error(), "the log there has the reason"));
	/* The server still waits for a client that has it. */
	assert_int_equal(oob_connect("127.0.0.1", port, 1, NULL, NULL, &e.client), 0);
	pthread_join(thread, NULL);
	assert_int_equal(e.result, 0);
	exchange_secrets(&e);
	part_ends(&e);
	assert_int_equal(oob_set_key(NULL), 0);
}

/* The server is a child, with another key or none. */
static void client_of(const uint8_t *servers, const uint8_t *clients, const char *why)
{
	struct ends e = {0};
	int left = 40, status;
	pid_t child;

	assert_int_equal(oob_set_key(servers), 0);
	assert_int_equal(oob_server_open("127.0.0.1", 0, &e.door), 0);
	child = fork();
	if (child == 0) {
		assert_int_equal(oob_set_key(servers), 0); /* pages of keys are not inherited */
		_exit(oob_server_accept(e.door, stop_after, &left, &e.server) == -EINTR ? 0 : 1);
	}
	assert_int_equal(oob_set_key(clients), 0);
	assert_int_not_equal(
		oob_connect("127.0.0.1", oob_server_port(e.door), 1, NULL, NULL, &e.client), 0);
	if (!strstr(cli_last_error(), why))
		fail_msg("'%s' has no '%s'", cli_last_error(), why);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	oob_server_close(e.door);
	assert_int_equal(oob_set_key(NULL), 0);
}

static void a_server_without_the_key_is_refused(void **state)
{
	(void)state;
	client_of(other_key, job_key, KEY_REMEDY);
	client_of(NULL, job_key, "it has no job key, and this program has one");
	client_of(job_key, NULL, "this program has no job key, and it has one");
}

int main(void)
{
	const struct CMUnitTest keyed[] = {
		cmocka_unit_test(with_a_key_nothing_is_readable),
		cmocka_unit_test(a_changed_byte_ends_the_connection),
		cmocka_unit_test(a_client_without_the_key_is_refused),
		cmocka_unit_test(a_server_without_the_key_is_refused),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_keep_order_and_bytes),
		cmocka_unit_test(works_over_ipv6),
		cmocka_unit_test(waits_no_longer_than_requested),
		cmocka_unit_test(a_barrier_holds_both),
		cmocka_unit_test(the_end_of_the_peer_is_noticed),
		cmocka_unit_test(bye_is_seen_behind_other_messages),
		cmocka_unit_test(strangers_are_sent_away),
		cmocka_unit_test(silent_connections_keep_no_peer_out),
		cmocka_unit_test(no_byte_before_a_greeting),
		cmocka_unit_test(two_peers_at_once),
		cmocka_unit_test(a_name_with_two_addresses),
		cmocka_unit_test(a_busy_server_reports_it),
		cmocka_unit_test(no_listener_and_port_taken),
	};

	cli_program = "test";
	if (WEFT_HAVE_SEAL && cmocka_run_group_tests(keyed, NULL, NULL) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
