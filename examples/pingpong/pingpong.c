/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pingpong: sends messages to examples/server, which returns them.
 *
 *	pingpong HOST PORT [ROUNDS]
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft_listen.h>

#define TAG 1

static struct weft_ep *server;

static void check(int status, const char *what)
{
	if (status < 0) {
		fprintf(stderr, "pingpong: %s: %s\n", what, weft_strerror(status));
		exit(1);
	}
}

static void on_connect(struct weft_worker *worker, struct weft_ep *ep, int status, const char *why,
		       void *arg)
{
	check(status, why);
	server = ep;
}

static void pass(struct weft_worker *worker, const char *out, char *in, size_t length)
{
	struct weft_request *sent = NULL, *received = NULL;
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params recv = WEFT_INIT(struct weft_op_params, .completion = &c);
	int sending, receiving;

	receiving = weft_tag_recv(worker, server, in, length, TAG, WEFT_TAG_MASK_FULL, &recv,
				  &received);
	check(receiving, "receive");
	sending = weft_tag_send(server, out, length, TAG, NULL, &sent);
	check(weft_wait(worker, sending, &sent, NULL), "send");
	check(weft_wait(worker, receiving, &received, &c), "receive");
	if (c.length != length || memcmp(in, out, length) != 0) {
		fprintf(stderr, "pingpong: a message of %zu bytes returned damaged\n", length);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct weft_worker_params worker_params =
		WEFT_INIT(struct weft_worker_params, .flags = WEFT_WORKER_F_SEND_NOW);
	struct weft_connect_params to =
		WEFT_INIT(struct weft_connect_params, .wait = 5, .connect_cb = on_connect);
	static char out[1 << 20], in[1 << 20];
	int rounds = argc > 3 ? atoi(argv[3]) : 100;
	struct weft_request *req = NULL;
	struct weft_context *context;
	struct weft_worker *worker;

	if (argc < 3) {
		fprintf(stderr, "usage: pingpong HOST PORT [ROUNDS]\n");
		return 2;
	}
	to.host = argv[1];
	to.port = (uint16_t)atoi(argv[2]);
	check(weft_context_create(NULL, &context), "context");
	check(weft_worker_create(context, &worker_params, &worker), "worker");
	check(weft_ep_connect_to(worker, &to), "connect");
	while (!server)
		weft_worker_wait(worker, -1);
	memset(out, 'w', sizeof(out));
	for (int i = 0; i < rounds; i++)
		pass(worker, out, in, i % 10 ? 8 : sizeof(out));
	pass(worker, out, in, 0);
	printf("pingpong: %d messages returned from %s port %s\n", rounds, argv[1], argv[2]);
	check(weft_wait(worker, weft_ep_close(server, 0, NULL, &req), &req, NULL), "close");
	weft_worker_destroy(worker);
	check(weft_context_destroy(context), "context");
	return 0;
}
