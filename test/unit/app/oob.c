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
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "app/common/cli.h"
#include "app/common/oob.h"

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
	for (unsigned int i = 0; i < 40; i++)
		silent[i] = connect_to(oob_server_port(e.door));
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

int main(void)
{
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
	return cmocka_run_group_tests(tests, NULL, NULL);
}
