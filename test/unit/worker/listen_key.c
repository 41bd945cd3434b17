/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners and connects by host and port with a job key: what is readable, and what is refused. */

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
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/tcp.h"
#include "weft.h"
#include "weft_listen.h"

#define HEAD 8u   /* of the client's greeting */
#define REPLY 12u /* of the listener's */

static const uint8_t key[32] = "a job key of the listener's test", other_key[32] = "another one";

struct end {
	struct weft_context *ctx;
	struct weft_worker *worker;
};

static struct end server;
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

static struct end end_open(const uint8_t *job_key)
{
	struct weft_worker_params wp = WEFT_INIT(struct weft_worker_params, .lanes = "self");
	struct weft_context_params p =
		WEFT_INIT(struct weft_context_params, .name = "listen", .job_key = job_key);
	struct weft_config *config;
	struct end e;

	assert_int_equal(weft_config_read(&config), 0);
	weft_config_modify(config, "CONNECT_TIMEOUT", "1s");
	weft_config_modify(config, "LOG_FILE", "/dev/null");
	p.config = config;
	assert_int_equal(weft_context_create(&p, &e.ctx), 0);
	weft_config_release(config);
	assert_int_equal(weft_worker_create(e.ctx, &wp, &e.worker), 0);
	return e;
}

static void end_close(struct end *e)
{
	weft_worker_destroy(e->worker);
	assert_int_equal(weft_context_destroy(e->ctx), 0);
}

static struct weft_listener_attr query(void)
{
	struct weft_listener_attr attr = {.size = sizeof(attr)};

	assert_int_equal(weft_listener_query(listener, &attr), 0);
	return attr;
}

static void serve(const uint8_t *job_key)
{
	struct weft_listener_params p = WEFT_INIT(struct weft_listener_params, .host = "127.0.0.1");

	server = end_open(job_key);
	assert_int_equal(weft_listener_create(server.worker, &p, &listener), 0);
	port = query().port;
}

static void begin(struct weft_worker *w, uint16_t to)
{
	struct weft_connect_params p =
		WEFT_INIT(struct weft_connect_params, .host = "127.0.0.1", .port = to,
			  .connect_cb = on_connect, .connect_arg = &result);

	result = (struct result){0};
	assert_int_equal(weft_ep_connect_to(w, &p), 0);
}

static void finish(struct weft_worker *w)
{
	for (int i = 0; result.calls == 0 && i < 100; i++)
		assert_int_not_equal(weft_worker_wait(w, 5000000000), -ETIMEDOUT);
	assert_int_equal(result.calls, 1);
}

/* The worker of the listener connects to itself. */
static void connect_well(void)
{
	begin(server.worker, port);
	finish(server.worker);
	assert_string_equal(result.why, "");
	assert_int_equal(result.status, 0);
	weft_ep_close(result.ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
}

static void refused_because(struct end *client, uint16_t to, const char *why)
{
	char text[80];

	snprintf(text, sizeof(text), "127.0.0.1 port %u ", to);
	assert_int_equal(result.status, -EACCES);
	assert_null(result.ep);
	if (!strstr(result.why, why) || !strstr(result.why, text) ||
	    !strstr(result.why, "the same WEFT_JOB_KEY"))
		fail_msg("'%s'", result.why);
	end_close(client);
}

static int client(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

static void await(uint64_t served, uint64_t refused)
{
	for (int i = 0; (query().served < served || query().refused < refused) && i < 1000; i++)
		poll(NULL, 0, 10);
	assert_int_equal(query().served, served);
	assert_int_equal(query().refused, refused);
}

static struct weft_greeting_key key_of(const uint8_t job_key[32])
{
	struct weft_greeting_key k = {.random = "32 bytes that are not random...."};

	memcpy(k.job_key, job_key, sizeof(k.job_key));
	return k;
}

/* A greeting with the request of this key, of which @p bit is changed; -1 = none. */
static void greet(int fd, const uint8_t job_key[32], int bit)
{
	const struct weft_greeting_key k = key_of(job_key);
	uint8_t m[HEAD + WEFT_GREETING_REQUEST] = "WEFT\2\0\0";

	assert_int_equal(weft_sealed_greeting.request(&k, m + HEAD), 0);
	if (bit >= 0)
		m[HEAD + bit / 8] ^= (uint8_t)(1 << bit % 8);
	assert_int_equal(send(fd, m, sizeof(m), 0), sizeof(m));
}

/* ------------------------------------------------------------------ what is sent */

/*
 * @behaviour Y89: with a job key a listener's reply has no readable address, and only a client with
 * the key gets one
 */
static void the_address_is_sealed(void **state)
{
	const struct weft_greeting_key k = key_of(key);
	uint8_t got[2][8192], text[8192];
	size_t length, n[2];
	void *address;

	(void)state;
	serve(key);
	connect_well();
	assert_int_equal(weft_worker_get_address(server.worker, &address, &length), 0);
	for (int i = 0; i < 2; i++) {
		int fd = client();

		greet(fd, key, -1);
		n[i] = REPLY + WEFT_GREETING_OVERHEAD + length;
		assert_int_equal(recv(fd, got[i], n[i], MSG_WAITALL), n[i]);
		assert_int_equal(recv(fd, text, 1, 0), 0);
		close(fd);
		assert_memory_equal(got[i], "WEFT\2\0\0", 8);
		for (size_t at = 0; at + 8 <= length; at++)
			assert_null(memmem(got[i], n[i], (uint8_t *)address + at, 8));
		assert_int_equal(weft_sealed_greeting.open(&k, got[i] + REPLY, n[i] - REPLY, text),
				 0);
		assert_memory_equal(text, address, length);
	}
	/* The request was the same: its answers have no byte of the address in common. */
	assert_memory_not_equal(got[0] + REPLY, got[1] + REPLY, 32);
	assert_memory_not_equal(got[0] + n[0] - 64, got[1] + n[1] - 64, 64);
	weft_worker_release_address(server.worker, address);
	await(3, 0);
	end_close(&server);
}

/* ------------------------------------------------------------------ ends that do not match */

/* @behaviour Y89 */
static void a_client_without_the_key_is_refused(void **state)
{
	struct end e;

	(void)state;
	serve(key);
	e = end_open(NULL);
	begin(e.worker, port);
	finish(e.worker);
	refused_because(&e, port, "has a job key, and this end has none");
	e = end_open(other_key);
	begin(e.worker, port);
	finish(e.worker);
	refused_because(&e, port, "has another job key");
	await(0, 2);
	connect_well();
	end_close(&server);
}

/*
 * @behaviour Y90: with a job key a connect by host and port uses no address that a process without
 * the key has sent or changed
 */
static void a_listener_without_the_key_is_refused(void **state)
{
	struct end e;

	(void)state;
	serve(NULL);
	e = end_open(key);
	begin(e.worker, port);
	finish(e.worker);
	refused_because(&e, port, "has no job key, and this end has one");
	await(0, 1);
	connect_well();
	end_close(&server);
}

/* ------------------------------------------------------------------ hostile ends */

/* A server that changes one bit of an answer, or cuts it to @p length bytes. */
static void answer_badly(struct end *e, int bit, size_t length, int status)
{
	uint8_t m[HEAD + WEFT_GREETING_REQUEST],
		text[100] = "no address",
		reply[REPLY + WEFT_GREETING_OVERHEAD + sizeof(text)] = "WEFT\2\0\0";
	const struct weft_greeting_key k = key_of(key);
	int fd = socket(AF_INET, SOCK_STREAM, 0), conn;
	struct sockaddr_in in = {.sin_family = AF_INET};
	socklen_t len = sizeof(in);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&in, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	begin(e->worker, ntohs(in.sin_port));
	conn = accept(fd, NULL, NULL);
	assert_int_equal(recv(conn, m, sizeof(m), MSG_WAITALL), sizeof(m));
	assert_int_equal(
		weft_sealed_greeting.answer(&k, m + HEAD, text, sizeof(text), reply + REPLY), 0);
	if (bit >= 0)
		reply[REPLY + bit / 8] ^= (uint8_t)(1 << bit % 8);
	reply[8] = (uint8_t)length;
	assert_int_equal(send(conn, reply, REPLY + length, 0), REPLY + length);
	finish(e->worker);
	if (result.status != status)
		fail_msg("bit %d, %zu bytes: %d, %s", bit, length, result.status, result.why);
	assert_null(result.ep);
	close(conn);
	close(fd);
}

/* @behaviour Y90 */
static void a_changed_answer_is_refused(void **state)
{
	static const int bits[] = {0, 255, 256, 383, 384, 700, 8 * 164 - 1};
	const size_t all = WEFT_GREETING_OVERHEAD + 100;
	struct end e = end_open(key);

	(void)state;
	/* Unchanged, it is opened: the text is no address. */
	answer_badly(&e, -1, all, -EINVAL);
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		answer_badly(&e, bits[i], all, -EACCES);
		assert_non_null(strstr(result.why, "changed on its way"));
	}
	answer_badly(&e, -1, all - 1, -EACCES);
	answer_badly(&e, -1, WEFT_GREETING_OVERHEAD, -EPROTO);
	answer_badly(&e, -1, 1, -EPROTO);
	answer_badly(&e, -1, 0, -EACCES);
	end_close(&e);
}

/* @behaviour Y89 */
static void bad_requests_get_no_address_and_hold_no_client(void **state)
{
	static const int bits[] = {0, 255, 256, 383};
	uint8_t got[64];
	int fds[40];

	(void)state;
	serve(key);
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		int fd = client();

		greet(fd, key, bits[i]);
		assert_int_equal(recv(fd, got, sizeof(got), MSG_WAITALL), REPLY);
		assert_memory_equal(got, "WEFT\2\0\0\0\0\0\0\0", REPLY);
		close(fd);
	}
	await(0, 4);
	/* Requests that do not end; half of them have no byte. */
	for (unsigned int i = 0; i < 40; i++) {
		fds[i] = client();
		if (i % 2)
			assert_int_equal(send(fds[i], "WEFT\2\0\0\0abc", 11, 0), 11);
	}
	connect_well();
	await(1, 44); /* the last ones after 5 s */
	for (unsigned int i = 0; i < 40; i++)
		close(fds[i]);
	end_close(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_address_is_sealed),
		cmocka_unit_test(a_client_without_the_key_is_refused),
		cmocka_unit_test(a_listener_without_the_key_is_refused),
		cmocka_unit_test(a_changed_answer_is_refused),
		cmocka_unit_test(bad_requests_get_no_address_and_hold_no_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
