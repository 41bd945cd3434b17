/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints that accept_cb reports, whose error callback and user data weft_ep_modify() replaces,
 * by the public interface alone:
 *
 *	accepted server FILE COUNT	writes its address to FILE, prints "ready NAME" when the
 *					callback of a client is replaced, "ended NAME: STATUS" when
 *					it has run, and exits after COUNT clients
 *	accepted client FILE stay	sends a message, waits for the answer, stays until killed
 *	accepted client FILE close	the same, and closes
 *
 * NAME is the process id of the client. The server fails when another callback than the last one
 * runs, with other user data, or twice.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process.h"

#define TAG_HELLO 1
#define TAG_ANSWER 2
#define CLIENTS_MAX 8
#define TIMEOUT_S 60

struct client {
	char name[32];
	struct weft_ep *ep;
	bool ready;
	unsigned int ended;
};

static struct weft_context *ctx;
static struct weft_worker *worker;
static struct client clients[CLIENTS_MAX];
static unsigned int num_clients;

static void at_accept_cb(struct weft_ep *ep, int status, const char *why, void *arg)
{
	(void)ep;
	(void)why;
	fprintf(stderr, "the callback of accept_cb ran for %s: %s\n", (const char *)arg,
		weft_strerror(status));
	exit(1);
}

static void replaced_cb(struct weft_ep *ep, int status, const char *why, void *arg)
{
	struct weft_ep_modify_params again = WEFT_INIT(struct weft_ep_modify_params);
	struct weft_ep_attr attr = WEFT_INIT(struct weft_ep_attr);
	struct client *c = arg;

	check("query", weft_ep_query(ep, &attr));
	if (ep != c->ep || attr.user_data != c || attr.status != status || c->ended++)
		die("another endpoint, other user data, or a second call", -EINVAL);
	if (weft_tag_send(ep, c->name, 1, TAG_ANSWER, NULL, NULL) != status ||
	    weft_ep_modify(ep, &again) != status)
		die("an operation of the failed endpoint has another status", -EINVAL);
	if (!*why)
		die("there is no reason", -EINVAL);
	printf("ended %s: %d: %s\n", c->name, status, why);
	fflush(stdout);
	weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
	c->ep = NULL;
}

static void modify(struct weft_ep *ep, weft_ep_err_cb cb, void *arg, void *user_data)
{
	struct weft_ep_modify_params p =
		WEFT_INIT(struct weft_ep_modify_params,
			  .fields = WEFT_EP_MODIFY_F_ERR_CB | WEFT_EP_MODIFY_F_USER_DATA,
			  .err_cb = cb, .err_arg = arg, .user_data = user_data);

	check("modify", weft_ep_modify(ep, &p));
}

static void accept_ep(struct weft_worker *w, struct weft_ep *ep, uint64_t id, const char *name,
		      void *arg)
{
	struct client *c;

	(void)w;
	(void)id;
	(void)arg;
	if (num_clients == CLIENTS_MAX)
		die("more clients than expected", -ENOMEM);
	c = &clients[num_clients++];
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->ep = ep;
	modify(ep, at_accept_cb, c->name, NULL);
}

/* The message shows that the endpoint is connected and in use. */
static void replace(struct weft_ep *ep)
{
	struct weft_request *req = NULL;
	struct client *c = clients;

	while (c < clients + num_clients && c->ep != ep)
		c++;
	if (!ep || c == clients + num_clients)
		die("a message of no accepted endpoint", -EINVAL);
	modify(ep, replaced_cb, c, c);
	check("answer", weft_tag_send(ep, NULL, 0, TAG_ANSWER, NULL, &req));
	check("answer", wait_done(worker, req, NULL, TIMEOUT_S));
	c->ready = true;
	printf("ready %s\n", c->name);
	fflush(stdout);
}

static unsigned int number_ended(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < num_clients; i++)
		n += clients[i].ended;
	return n;
}

static void serve(unsigned int count)
{
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .completion = &c);
	struct weft_request *req = NULL;

	for (unsigned int i = 0; i < count; i++) {
		check("receive",
		      weft_tag_recv(worker, NULL, NULL, 0, TAG_HELLO, UINT64_MAX, &p, &req));
		check("message", wait_done(worker, req, &c, TIMEOUT_S));
		replace(c.ep);
	}
	for (double until = now() + TIMEOUT_S; number_ended() < count;) {
		weft_worker_wait(worker, 100000000);
		if (now() > until)
			die("no error callback", -ETIMEDOUT);
	}
	for (unsigned int i = 0; i < 1000; i++)
		weft_worker_progress(worker);
	if (number_ended() != count)
		die("a second call of an error callback", -EINVAL);
}

static void visit(const char *file, bool closes)
{
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_request *req = NULL;
	struct weft_ep *ep;

	ep = connect_to(worker, file);
	check("send", weft_tag_send(ep, NULL, 0, TAG_HELLO, NULL, &req));
	check("send", wait_done(worker, req, &c, TIMEOUT_S));
	req = NULL;
	check("receive", weft_tag_recv(worker, ep, NULL, 0, TAG_ANSWER, UINT64_MAX, NULL, &req));
	check("answer", wait_done(worker, req, &c, TIMEOUT_S));
	while (!closes)
		weft_worker_wait(worker, -1);
	/* The server's timeout begins again, and the acknowledgement of the answer is sent. */
	for (double until = now() + 0.1; now() < until;)
		weft_worker_progress(worker);
	req = NULL;
	check("close", weft_ep_close(ep, 0, NULL, &req));
	check("close", wait_done(worker, req, &c, TIMEOUT_S));
}

int main(int argc, char **argv)
{
	struct weft_context_params context = WEFT_INIT(struct weft_context_params);
	struct weft_worker_params p = WEFT_INIT(struct weft_worker_params);
	char name[32];

	if (argc != 4) {
		fprintf(stderr, "usage: accepted server FILE COUNT | client FILE stay|close\n");
		return 2;
	}
	snprintf(name, sizeof(name), "%ld", (long)getpid());
	context.name = name;
	check("context", weft_context_create(&context, &ctx));
	if (!strcmp(argv[1], "server"))
		p.accept_cb = accept_ep;
	check("worker", weft_worker_create(ctx, &p, &worker));
	if (!strcmp(argv[1], "server")) {
		write_address(worker, argv[2]);
		serve((unsigned int)strtoul(argv[3], NULL, 10));
	} else {
		visit(argv[2], !strcmp(argv[3], "close"));
	}
	weft_worker_destroy(worker);
	weft_context_destroy(ctx);
	return 0;
}
