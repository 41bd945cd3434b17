/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners and connects by host and port, over TCP of the kernel: what a peer gets, and what
 * clients and servers that are not peers cannot do.
 */

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "weft.h"
#include "weft_listen.h"

static struct weft_context *ctx;
static struct weft_worker *worker;
static struct weft_listener *listener;
static uint16_t port;

static struct result {
	unsigned int calls;
	struct weft_ep *ep;
	int status;
	char why[600];
} result;

static void on_connect(struct weft_worker *w, struct weft_ep *ep, int status, const char *why,
		       void *arg)
{
	struct result *r = arg;

	(void)w;
	r->calls++;
	r->ep = ep;
	r->status = status;
	snprintf(r->why, sizeof(r->why), "%s", why);
}

static int setup(void **state)
{
	struct weft_worker_params wp = WEFT_INIT(struct weft_worker_params, .lanes = "self");
	struct weft_context_params p = WEFT_INIT(struct weft_context_params, .name = "listen");
	struct weft_config *config;

	(void)state;
	assert_int_equal(weft_config_read(&config), 0);
	weft_config_modify(config, "CONNECT_TIMEOUT", "1s");
	weft_config_modify(config, "LOG_FILE", "/dev/null");
	p.config = config;
	assert_int_equal(weft_context_create(&p, &ctx), 0);
	weft_config_release(config);
	assert_int_equal(weft_worker_create(ctx, &wp, &worker), 0);
	result = (struct result){0};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	weft_worker_destroy(worker);
	return weft_context_destroy(ctx);
}

static struct weft_listener_attr query(void)
{
	struct weft_listener_attr attr = {.size = sizeof(attr)};

	assert_int_equal(weft_listener_query(listener, &attr), 0);
	return attr;
}

static void listen_on(const char *host)
{
	struct weft_listener_params p = WEFT_INIT(struct weft_listener_params, .host = host);

	assert_int_equal(weft_listener_create(worker, &p, &listener), 0);
	port = query().port;
	assert_int_not_equal(port, 0);
}

static int start(const char *host, uint16_t to, double wait)
{
	struct weft_connect_params p =
		WEFT_INIT(struct weft_connect_params, .host = host, .port = to, .wait = wait,
			  .connect_cb = on_connect, .connect_arg = &result);

	return weft_ep_connect_to(worker, &p);
}

/* Only the wake-up of the connect ends a wait: the worker has no other event. */
static void finish(void)
{
	for (int i = 0; result.calls == 0 && i < 100; i++)
		assert_int_not_equal(weft_worker_wait(worker, 5000000000), -ETIMEDOUT);
	assert_int_equal(result.calls, 1);
}

static void connect_well(const char *host)
{
	result = (struct result){0};
	assert_int_equal(start(host, port, 0), 0);
	assert_int_equal(result.calls, 0); /* not inside the call */
	finish();
	assert_string_equal(result.why, "");
	assert_int_equal(result.status, 0);
	assert_non_null(result.ep);
	weft_ep_close(result.ep, WEFT_EP_CLOSE_FORCE, NULL, NULL);
}

static int client(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

static void await_refused(uint64_t n)
{
	for (int i = 0; query().refused < n && i < 500; i++)
		poll(NULL, 0, 10);
	assert_true(query().refused >= n);
}

static void test_addresses(void **state)
{
	(void)state;
	listen_on("127.0.0.1");
	connect_well("127.0.0.1");
	connect_well("localhost"); /* perhaps ::1 first, where no server listens */
	assert_int_equal(query().served, 2);
	weft_listener_destroy(listener);
	listen_on(NULL);
	connect_well("127.0.0.1");
	weft_listener_destroy(listener);
	listen_on("::1");
	connect_well("::1");
	assert_string_equal(query().host, "::1");
}

static void test_listen_errors(void **state)
{
	struct weft_listener_params p = WEFT_INIT(struct weft_listener_params, .host = "no.number");
	struct weft_listener *other;

	(void)state;
	assert_int_equal(weft_listener_create(worker, &p, &other), -EINVAL);
	p.host = "192.0.2.1"; /* of documentation: no interface has it */
	assert_int_equal(weft_listener_create(worker, &p, &other), -EADDRNOTAVAIL);
	listen_on("127.0.0.1");
	p.host = "127.0.0.1";
	p.port = port;
	assert_int_equal(weft_listener_create(worker, &p, &other), -EADDRINUSE);
}

static void test_connect_errors(void **state)
{
	char text[40];

	(void)state;
	assert_int_equal(start(NULL, 1, 0), -EINVAL);
	assert_int_equal(start("127.0.0.1", 0, 0), -EINVAL);
	listen_on("127.0.0.1");
	weft_listener_destroy(listener);
	assert_int_equal(start("127.0.0.1", port, 0), 0);
	finish();
	assert_int_equal(result.status, -ECONNREFUSED);
	assert_null(result.ep);
	snprintf(text, sizeof(text), "127.0.0.1 port %u: start it", port);
	assert_non_null(strstr(result.why, text));
	result = (struct result){0};
	assert_int_equal(start("300.1.2.3.invalid", port, 0), 0);
	finish();
	assert_true(result.status < 0);
	assert_non_null(strstr(result.why, "300.1.2.3.invalid"));
	assert_non_null(strstr(result.why, "numeric address"));
}

static void test_destroy(void **state)
{
	(void)state;
	assert_int_equal(start("127.0.0.1", 1, 60), 0);
	weft_worker_destroy(worker);
	worker = NULL;
	assert_int_equal(result.calls, 1);
	assert_int_equal(result.status, -ECANCELED);
}

static void test_silent_clients(void **state)
{
	int fds[40];

	(void)state;
	listen_on("127.0.0.1");
	for (unsigned int i = 0; i < 40; i++) {
		fds[i] = client();
		assert_int_equal(send(fds[i], "W", i % 2, 0), i % 2); /* half of them: 1 byte */
	}
	connect_well("127.0.0.1");
	await_refused(24);
	await_refused(40); /* the last ones after 5 s, with no client that takes their place */
	for (unsigned int i = 0; i < 40; i++)
		close(fds[i]);
}

static void test_garbage(void **state)
{
	static const char http[] = "GET / HTTP/1.0\r\n\r\n";
	char buf[64];
	int fd;

	(void)state;
	listen_on("127.0.0.1");
	fd = client();
	assert_int_equal(send(fd, http, sizeof(http), 0), sizeof(http));
	assert_true(recv(fd, buf, sizeof(buf), 0) <= 0); /* no byte of the address */
	close(fd);
	fd = client();
	assert_int_equal(send(fd, "WEFT\2\0\0\0", 8, 0), 8);
	assert_int_equal(recv(fd, buf, sizeof(buf), MSG_WAITALL), 12);
	assert_memory_equal(buf, "WEFT\1\0\0\0\0\0\0\0", 12);
	close(fd);
	await_refused(2);
	assert_int_equal(query().served, 0);
	connect_well("127.0.0.1");
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void test_no_descriptor(void **state)
{
	struct rlimit old, none;
	double before;
	char buf[12];
	int fd;

	(void)state;
	listen_on("127.0.0.1");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	close(fd);
	none = old;
	none.rlim_cur = (rlim_t)fd + 1; /* the client's is the last one */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	before = cpu_seconds();
	fd = client();
	assert_int_equal(send(fd, "WEFT\1\0\0\0", 8, 0), 8);
	poll(NULL, 0, 400);
	before = cpu_seconds() - before;
	assert_int_equal(recv(fd, buf, sizeof(buf), MSG_DONTWAIT), -1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_true(before < 0.2); /* the thread does not spin */
	assert_int_equal(recv(fd, buf, sizeof(buf), MSG_WAITALL), 12);
	close(fd);
}

/* A server that sends these bytes, and @p length of nothing; connects to it end with the status. */
static void lying_server(const void *bytes, size_t length, int status)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM, 0), conn;
	socklen_t len = sizeof(in);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&in, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	result = (struct result){0};
	assert_int_equal(start("127.0.0.1", ntohs(in.sin_port), 0), 0);
	conn = accept(fd, NULL, NULL);
	assert_int_equal(send(conn, bytes, length, 0), length);
	finish();
	assert_int_equal(result.status, status);
	assert_null(result.ep);
	assert_non_null(strstr(result.why, "127.0.0.1 port"));
	close(conn);
	close(fd);
}

static void test_lying_servers(void **state)
{
	(void)state;
	lying_server("SSH-2.0-OpenSSH\r\n", 17, -EPROTO);
	lying_server("WEFT\2\0\0\0\0\0\0\0", 12, -EPROTONOSUPPORT);
	lying_server("WEFT\1\0\0\0\1\100\0\0", 12, -EPROTO);   /* 16385 bytes */
	lying_server("WEFT\1\0\0\0\4\0\0\0abcd", 16, -EINVAL); /* no worker address */
	lying_server("WEFT\1\0\0\0\4\0\0\0abc", 15, -ETIMEDOUT);
	lying_server("", 0, -ETIMEDOUT);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_addresses),     CASE(test_listen_errors),  CASE(test_connect_errors),
		CASE(test_destroy),       CASE(test_silent_clients), CASE(test_garbage),
		CASE(test_no_descriptor), CASE(test_lying_servers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
