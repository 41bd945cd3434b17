/* SPDX-License-Identifier: BSD-3-Clause
 *
 * server: returns each message of one client. The other end is examples/pingpong.
 *
 *	server [PORT]		0 or none: a free port, which it prints
 */

#include <stdio.h>
#include <stdlib.h>

#include <weft_listen.h>

#define TAG 1

static struct weft_ep *client;

static void check(int status, const char *what)
{
	if (status < 0) {
		fprintf(stderr, "server: %s: %s\n", what, weft_strerror(status));
		exit(1);
	}
}

static void on_accept(struct weft_worker *worker, struct weft_ep *ep, uint64_t id, const char *name,
		      void *arg)
{
	printf("server: %s has connected\n", name);
	fflush(stdout);
	if (client) /* busy: the second one gets an error */
		weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
	else
		client = ep;
}

int main(int argc, char **argv)
{
	struct weft_worker_params worker_params = WEFT_INIT(
		struct weft_worker_params, .accept_cb = on_accept, .flags = WEFT_WORKER_F_SEND_NOW);
	struct weft_listener_params listen_params =
		WEFT_INIT(struct weft_listener_params, .port = argc > 1 ? atoi(argv[1]) : 0);
	struct weft_listener_attr attr = {.size = sizeof(attr)};
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params recv = WEFT_INIT(struct weft_op_params, .completion = &c);
	struct weft_listener *listener;
	struct weft_context *context;
	struct weft_worker *worker;
	struct weft_request *req;
	static char buf[1 << 20];
	int rc;

	check(weft_context_create(NULL, &context), "context");
	check(weft_worker_create(context, &worker_params, &worker), "worker");
	check(weft_listener_create(worker, &listen_params, &listener), "listener");
	check(weft_listener_query(listener, &attr), "listener");
	printf("server: port %u\n", attr.port);
	fflush(stdout);
	while (!client)
		weft_worker_wait(worker, -1);
	do { /* an empty message is the last one */
		/* from this client only, so that the receive ends when the client does */
		rc = weft_tag_recv(worker, client, buf, sizeof(buf), TAG, WEFT_TAG_MASK_FULL, &recv,
				   &req);
		check(weft_wait(worker, rc, &req, &c), "receive");
		rc = weft_tag_send(client, buf, c.length, TAG, NULL, &req);
		check(weft_wait(worker, rc, &req, NULL), "send");
	} while (c.length > 0);
	check(weft_wait(worker, weft_ep_close(client, 0, NULL, &req), &req, NULL), "close");
	weft_worker_destroy(worker); /* also destroys the listener */
	check(weft_context_destroy(context), "context");
	return 0;
}
