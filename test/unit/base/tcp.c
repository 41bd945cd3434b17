/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server for TCP clients without authentication: places of a host, and refusals that arrive.
 * Server and clients are in one thread. test/unit/worker/listen.c and test/unit/app/oob.c have the
 * greetings of its users.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/tcp.h"

static struct weft_tcp_server *server;
static uint16_t port;
static unsigned int lines;

/* The greeting is "right" or "wrong"; both have a reply. */
static int judge(void *arg, const void *bytes, size_t length, struct weft_tcp_answer *answer)
{
	(void)arg;
	if (length < 5)
		return -EAGAIN;
	*answer = (struct weft_tcp_answer){.reply = "reply", .length = 5};
	answer->accepted = memcmp(bytes, "right", 5) == 0;
	if (!answer->accepted)
		snprintf(answer->why, sizeof(answer->why), "wrong");
	return 0;
}

static void refused(void *arg, const char *client, const char *why, bool last)
{
	(void)arg;
	assert_ptr_equal(strstr(client, "127.0.0."), client); /* not ::ffff:127.0.0.1 */
	assert_int_not_equal(why[0], '\0');
	lines++;
	assert_int_equal(last, lines == 16);
}

static struct weft_tcp_server_params params(bool keeps)
{
	return (struct weft_tcp_server_params){.host = "0.0.0.0",
					       .backlog = 64,
					       .keeps = keeps,
					       .hello = 5,
					       .judge = judge,
					       .refused = refused};
}

static void server_open(bool keeps)
{
	struct weft_tcp_server_params p = params(keeps);
	char host[64];

	lines = 0;
	assert_int_equal(weft_tcp_server_open(&p, &server), 0);
	weft_tcp_server_query(server, host, sizeof(host), &port);
	assert_string_equal(host, "0.0.0.0");
}

/* Until the next event, which the caller has caused. */
static void server_run(void)
{
	assert_false(weft_tcp_server_run(server, -1, 1000));
}

/* A client at 127.0.0.@p host. */
static int client(unsigned int host)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + host - 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in.sin_port = htons(port);
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

/* It has sent the first byte of its greeting, and has a place. */
static int slow_client(unsigned int host)
{
	int fd = client(host);

	assert_int_equal(send(fd, "r", 1, 0), 1);
	server_run();
	return fd;
}

static uint64_t judged(void)
{
	return weft_tcp_server_refused(server) + weft_tcp_server_served(server);
}

/* The client's bytes are sent, and the server judges it. */
static void greet(int fd, const char *bytes, size_t length)
{
	uint64_t before = judged();

	assert_int_equal(send(fd, bytes, length, 0), length);
	for (int i = 0; i < 10 && judged() == before; i++)
		server_run();
	assert_int_equal(judged(), before + 1);
}

/* @return has the server closed it? */
static bool is_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

static void a_host_displaces_only_its_own_clients(void **state)
{
	int other, many[40], left = 0;
	char reply[5];

	(void)state;
	server_open(false);
	other = slow_client(2); /* the oldest of all */
	for (int i = 0; i < 40; i++)
		many[i] = slow_client(1);
	for (int i = 0; i < 40; i++)
		left += !is_closed(many[i]);
	assert_int_equal(left, 15);
	assert_int_equal(weft_tcp_server_refused(server), 25);
	assert_int_equal(lines, 16);
	assert_false(is_closed(other));
	greet(other, "ight", 4);
	assert_int_equal(recv(other, reply, 5, MSG_WAITALL), 5);
	assert_int_equal(weft_tcp_server_served(server), 1);
	for (int i = 0; i < 40; i++)
		close(many[i]);
	close(other);
	weft_tcp_server_close(server);
}

/* They have connected, and lose their cores before they send: none of them has a place yet. */
static void clients_that_come_at_once_are_all_served(void **state)
{
	char reply[5];
	int many[40];

	(void)state;
	server_open(false);
	for (int i = 0; i < 40; i++)
		many[i] = client(1);
	for (int i = 0; i < 5; i++)
		weft_tcp_server_run(server, -1, 10);
	for (int i = 0; i < 40; i++)
		greet(many[i], "right", 5);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(recv(many[i], reply, 5, MSG_WAITALL), 5);
		close(many[i]);
	}
	assert_int_equal(weft_tcp_server_refused(server), 0);
	weft_tcp_server_close(server);
}

/* A socket for IPv4 and IPv6 has the client's address as ::ffff:127.0.0.1. */
static void an_ipv4_client_of_both_families_has_a_plain_address(void **state)
{
	struct weft_tcp_server_params p = params(false);
	char host[64];
	int fd;

	(void)state;
	lines = 0;
	p.host = NULL;
	assert_int_equal(weft_tcp_server_open(&p, &server), 0);
	weft_tcp_server_query(server, host, sizeof(host), &port);
	fd = client(1);
	greet(fd, "wrong", 5);
	assert_int_equal(lines, 1);
	close(fd);
	weft_tcp_server_close(server);
}

/* A close with unread bytes would reset the connection, and discard the reply. */
static void a_refusal_reaches_a_client_that_sends_more(void **state)
{
	char more[2000] = "wrong", reply[6];
	int fd;

	(void)state;
	server_open(false);
	fd = client(1);
	greet(fd, more, sizeof(more));
	assert_int_equal(weft_tcp_server_refused(server), 1);
	assert_int_equal(recv(fd, reply, sizeof(reply), MSG_WAITALL), 5);
	assert_memory_equal(reply, "reply", 5);
	close(fd);
	weft_tcp_server_close(server);
}

/* It sends until the server resets the connection. */
static void a_refused_client_cannot_send_for_ever(void **state)
{
	static char more[512] = "wrong";
	size_t sent = 0;
	int fd;

	(void)state;
	server_open(false);
	fd = client(1);
	while (sent < 1u << 20 && send(fd, more, sizeof(more), MSG_NOSIGNAL) > 0) {
		sent += sizeof(more);
		server_run();
	}
	assert_true(sent < 16384);
	close(fd);
	weft_tcp_server_close(server);
}

static void accepted_clients_are_taken_one_by_one(void **state)
{
	int fd[2], taken[2];

	(void)state;
	server_open(true);
	for (int i = 0; i < 2; i++) {
		fd[i] = client(1);
		assert_int_equal(send(fd[i], "right", 5, 0), 5);
	}
	for (uint64_t i = 0; i < 2; i++) {
		while (weft_tcp_server_served(server) <= i)
			server_run();
		server_run(); /* serves no other one */
		assert_int_equal(weft_tcp_server_served(server), i + 1);
		taken[i] = weft_tcp_server_take(server);
		assert_true(taken[i] >= 0);
		assert_int_equal(weft_tcp_server_take(server), -1);
	}
	for (int i = 0; i < 2; i++) {
		close(fd[i]);
		close(taken[i]);
	}
	weft_tcp_server_close(server);
}

/* All of a long greeting, and no reply. */
static int judge_long(void *arg, const void *bytes, size_t length, struct weft_tcp_answer *answer)
{
	const char *text = bytes;

	assert_int_equal(text[0], text[length / 2]);
	*answer = (struct weft_tcp_answer){.accepted = true};
	*(size_t *)arg = length;
	return text[length - 1] == '.' ? 0 : -EAGAIN;
}

static void a_long_greeting_is_accepted_without_a_reply(void **state)
{
	struct weft_tcp_server_params p = params(true);
	char greeting[WEFT_TCP_HELLO_MAX], host[64], byte;
	size_t length = 0;
	int fd[2], taken;

	(void)state;
	p.hello = sizeof(greeting);
	p.judge = judge_long;
	p.arg = &length;
	assert_int_equal(weft_tcp_server_open(&p, &server), 0);
	weft_tcp_server_query(server, host, sizeof(host), &port);
	/* Two at once: each has its own bytes. */
	for (int i = 0; i < 2; i++)
		fd[i] = client(1);
	for (int i = 0; i < 2; i++) {
		memset(greeting, 'a' + i, sizeof(greeting));
		assert_int_equal(send(fd[i], greeting, sizeof(greeting) / 2, 0),
				 sizeof(greeting) / 2);
	}
	while (weft_tcp_server_run(server, -1, 20), length < sizeof(greeting) / 2)
		;
	greeting[sizeof(greeting) - 1] = '.';
	assert_int_equal(send(fd[1], greeting + sizeof(greeting) / 2, sizeof(greeting) / 2, 0),
			 sizeof(greeting) / 2);
	while ((taken = weft_tcp_server_take(server)) < 0)
		server_run();
	assert_int_equal(length, sizeof(greeting));
	assert_int_equal(recv(fd[1], &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(send(taken, "x", 1, 0), 1);
	assert_int_equal(recv(fd[1], &byte, 1, 0), 1);
	assert_false(is_closed(fd[0]));
	assert_int_equal(weft_tcp_server_served(server), 1);
	close(taken);
	for (int i = 0; i < 2; i++)
		close(fd[i]);
	weft_tcp_server_close(server);
}

static void wrong_parameters_are_refused(void **state)
{
	struct weft_tcp_server_params p = params(false);

	(void)state;
	p.hello = WEFT_TCP_HELLO_MAX + 1;
	assert_int_equal(weft_tcp_server_open(&p, &server), -EINVAL);
	p.hello = 5;
	p.host = "no.number";
	assert_int_equal(weft_tcp_server_open(&p, &server), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_displaces_only_its_own_clients),
		cmocka_unit_test(clients_that_come_at_once_are_all_served),
		cmocka_unit_test(an_ipv4_client_of_both_families_has_a_plain_address),
		cmocka_unit_test(a_refusal_reaches_a_client_that_sends_more),
		cmocka_unit_test(a_refused_client_cannot_send_for_ever),
		cmocka_unit_test(accepted_clients_are_taken_one_by_one),
		cmocka_unit_test(a_long_greeting_is_accepted_without_a_reply),
		cmocka_unit_test(wrong_parameters_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
