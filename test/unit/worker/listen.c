/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners and connects by host and port, over TCP of the kernel: what a peer gets, and what
 * clients and servers that are not peers cannot do.
 */

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
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

#include "base/thread.h"
#include "mock/fd_limit.h"
#include "weft.h"
#include "weft_listen.h"

/* ------------------------------------------------------------------ the name service */

/*
 * "slow.test" resolves when the test posts the semaphore; "two.test" has the addresses of the test.
 * Other names are the system's.
 */
static sem_t slow;
static struct sockaddr_in two_addr[2];
static struct addrinfo two[2];

int __real_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
int __wrap_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
void __real_freeaddrinfo(struct addrinfo *);
void __wrap_freeaddrinfo(struct addrinfo *);

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	if (host && strcmp(host, "two.test") == 0) {
		*list = two;
		return 0;
	}
	if (host && strcmp(host, "slow.test") == 0) {
		while (sem_wait(&slow) < 0)
			;
		return EAI_NONAME;
	}
	return __real_getaddrinfo(host, service, hints, list);
}

void __wrap_freeaddrinfo(struct addrinfo *list)
{
	if (list != two)
		__real_freeaddrinfo(list);
}

static void set_two(unsigned int i, in_addr_t addr, uint16_t to)
{
	two_addr[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(to)};
	two_addr[i].sin_addr.s_addr = htonl(addr);
	two[i] = (struct addrinfo){.ai_family = AF_INET,
				   .ai_socktype = SOCK_STREAM,
				   .ai_addr = (struct sockaddr *)&two_addr[i],
				   .ai_addrlen = sizeof(two_addr[i]),
				   .ai_next = i == 0 ? &two[1] : NULL};
}

/* ------------------------------------------------------------------ both ends */

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
	weft_log_set_callback(NULL, NULL); /* no listener's thread reads it any more */
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

static int start_for(struct result *r, const char *host, uint16_t to, double wait)
{
	struct weft_connect_params p =
		WEFT_INIT(struct weft_connect_params, .host = host, .port = to, .wait = wait,
			  .connect_cb = on_connect, .connect_arg = r);

	return weft_ep_connect_to(worker, &p);
}

static int start(const char *host, uint16_t to, double wait)
{
	return start_for(&result, host, to, wait);
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
	weft_ep_close(result.ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
}

/* A port of 127.0.0.1 on which no server listens. */
static uint16_t closed_port(void)
{
	listen_on("127.0.0.1");
	weft_listener_destroy(listener);
	return port;
}

static void client_connects(int fd)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
}

static int client(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	client_connects(fd);
	return fd;
}

/* The client can have the whole address before the listener's thread has counted it. */
static void await_served(uint64_t n)
{
	for (int i = 0; query().served < n && i < 500; i++)
		poll(NULL, 0, 10);
	assert_int_equal(query().served, n);
}

static void await_refused(uint64_t n)
{
	for (int i = 0; query().refused < n && i < 700; i++)
		poll(NULL, 0, 10);
	assert_true(query().refused >= n);
}

/* ------------------------------------------------------------------ addresses and errors */

static void test_addresses(void **state)
{
	(void)state;
	listen_on("127.0.0.1");
	connect_well("127.0.0.1");
	connect_well("localhost"); /* perhaps ::1 first, where no server listens */
	await_served(2);
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
	assert_int_equal(start("127.0.0.1", closed_port(), 0), 0);
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

/* A socket without a listener of Weft. */
static int raw_server(uint16_t *to)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(*to)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	socklen_t len = sizeof(in);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(fd, (struct sockaddr *)&in, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	*to = ntohs(in.sin_port);
	return fd;
}

/* Status and text are of the same attempt: here of the first, which had a connection. */
static void test_farthest_error(void **state)
{
	uint16_t to = 0;
	int fd, conn;

	(void)state;
	fd = raw_server(&to);
	set_two(0, INADDR_LOOPBACK, to);
	set_two(1, INADDR_LOOPBACK, closed_port());
	assert_int_equal(start("two.test", to, 0), 0);
	conn = accept(fd, NULL, NULL);
	assert_int_equal(send(conn, "SSH-2.0-OpenSSH\r\n", 17, 0), 17);
	finish();
	assert_int_equal(result.status, -EPROTO);
	assert_non_null(strstr(result.why, "is no listener of Weft"));
	close(conn);
	close(fd);
}

/* An address without a route is first; the server starts after CONNECT_TIMEOUT. */
static void test_wait(void **state)
{
	struct weft_listener_params p = WEFT_INIT(struct weft_listener_params, .host = "127.0.0.1");

	(void)state;
	p.port = closed_port();
	set_two(0, INADDR_BROADCAST, port);
	set_two(1, INADDR_LOOPBACK, port);
	assert_int_equal(start("two.test", port, 0), 0);
	finish();
	assert_int_equal(result.status, -ECONNREFUSED);
	assert_non_null(strstr(result.why, "start it first"));
	result = (struct result){0};
	assert_int_equal(start("two.test", port, 20), 0);
	assert_int_equal(weft_worker_wait(worker, 1500000000), -ETIMEDOUT);
	assert_int_equal(weft_listener_create(worker, &p, &listener), 0);
	finish();
	assert_string_equal(result.why, "");
	weft_ep_close(result.ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
}

/* The worker ends the connect before its thread; another one has more time, and is older. */
static void test_slow_name(void **state)
{
	struct result other = {0};

	(void)state;
	assert_int_equal(start_for(&other, "127.0.0.1", closed_port(), 60), 0);
	assert_int_equal(start("slow.test", 1, 0), 0);
	finish();
	assert_int_equal(result.status, -ETIMEDOUT);
	assert_non_null(strstr(result.why, "slow.test port 1: the name was not resolved"));
	assert_int_equal(other.calls, 0);
	sem_post(&slow);
	weft_worker_destroy(worker);
	worker = NULL;
	assert_int_equal(other.calls, 1);
	assert_int_equal(other.status, -ECANCELED);
}

/* They fill neither the threads of other blocking calls nor the bound of closes. */
static void test_many_connects(void **state)
{
	(void)state;
	for (int i = 0; i < 600; i++)
		assert_int_equal(start("slow.test", 1, 0), 0);
	assert_true(weft_foreign_fd_has_room());
	for (int i = 0; result.calls < 600 && i < 1000; i++)
		assert_int_not_equal(weft_worker_wait(worker, 5000000000), -ETIMEDOUT);
	assert_int_equal(result.calls, 600);
	assert_int_equal(result.status, -ETIMEDOUT);
	assert_non_null(strstr(result.why, "connect to fewer peers at once"));
	for (int i = 0; i < 600; i++)
		sem_post(&slow);
}

static void test_destroy(void **state)
{
	uint16_t to;
	int fd;

	(void)state;
	to = closed_port();
	assert_int_equal(start("127.0.0.1", to, 60), 0);
	weft_worker_destroy(worker);
	worker = NULL;
	assert_int_equal(result.calls, 1);
	assert_int_equal(result.status, -ECANCELED);
	/* The thread does not try again. */
	poll(NULL, 0, 100);
	fd = raw_server(&to);
	assert_int_equal(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 400), 0);
	close(fd);
}

/* ------------------------------------------------------------------ hostile ends */

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
	await_refused(40); /* the last ones after 6 s, with no client that takes their place */
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

/* Twice: the thread that answers weft-info may have had one for a moment. */
static unsigned int take_descriptors(int *fds, unsigned int max)
{
	unsigned int n = 0;

	for (int turn = 0; turn < 2; turn++) {
		while (n < max && (fds[n] = dup(STDERR_FILENO)) >= 0)
			n++;
		poll(NULL, 0, 100);
	}
	assert_true(n < max);
	return n;
}

/* In the thread of the listener. */
static bool count_waits(enum weft_log_level level, const char *origin, const char *text, void *arg)
{
	(void)level;
	(void)origin;
	if (strstr(text, "listener: clients wait: ") && strstr(text, "ulimit -n"))
		atomic_fetch_add((atomic_uint *)arg, 1);
	return true;
}

static void test_no_descriptor(void **state)
{
	int fd, taken[200];
	struct rlimit old, few;
	static atomic_uint waits;
	unsigned int num;
	double before;
	char buf[12];

	(void)state;
	weft_log_set_callback(count_waits, &waits);
	listen_on("127.0.0.1");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(fd >= 0);
	few = old;
	few.rlim_cur = (rlim_t)fd + 10;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	if (kernel_fd_limit() != few.rlim_cur) {
		setrlimit(RLIMIT_NOFILE, &old);
		close(fd);
		print_message("left out: the limit of descriptors is valgrind's own\n");
		skip();
	}
	num = take_descriptors(taken, 200);
	before = cpu_seconds();
	client_connects(fd);
	assert_int_equal(send(fd, "WEFT\1\0\0\0", 8, 0), 8);
	poll(NULL, 0, 400);
	before = cpu_seconds() - before;
	assert_int_equal(recv(fd, buf, sizeof(buf), MSG_DONTWAIT), -1);
	while (num > 0)
		close(taken[--num]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_true(before < 0.2); /* the thread does not spin */
	assert_int_equal(recv(fd, buf, sizeof(buf), MSG_WAITALL), 12);
	assert_in_range(atomic_load(&waits), 1, 5);
	close(fd);
}

/* A server that sends these bytes, and @p length of nothing; connects to it end with the status. */
static void lying_server(const void *bytes, size_t length, int status)
{
	uint16_t to = 0;
	int fd = raw_server(&to), conn;

	result = (struct result){0};
	assert_int_equal(start("127.0.0.1", to, 0), 0);
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
	lying_server("WEFT\3\0\0\0\0\0\0\0", 12, -EPROTONOSUPPORT);
	lying_server("WEFT\2\0\0\0\0\0\0\0", 12, -EACCES);     /* it has a job key */
	lying_server("WEFT\1\0\0\0\1\100\0\0", 12, -EPROTO);   /* 16385 bytes */
	lying_server("WEFT\1\0\0\0\4\0\0\0abcd", 16, -EINVAL); /* no worker address */
	lying_server("WEFT\1\0\0\0\4\0\0\0abc", 15, -ETIMEDOUT);
	lying_server("", 0, -ETIMEDOUT);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_addresses), CASE(test_listen_errors),  CASE(test_connect_errors),
		CASE(test_destroy),   CASE(test_farthest_error), CASE(test_wait),
		CASE(test_slow_name), CASE(test_many_connects),  CASE(test_silent_clients),
		CASE(test_garbage),   CASE(test_no_descriptor),  CASE(test_lying_servers),
	};

	sem_init(&slow, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
