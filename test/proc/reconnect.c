/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One server that lives long, and clients that come one after the other, by the public interface
 * alone (the programs' servers end with their client):
 *
 *	reconnect server FILE		writes its address to FILE, answers until SIGTERM
 *	reconnect client FILE COUNT	sends COUNT messages, has each answered, closes in good
 *					order
 *	reconnect client FILE 0		sends until it is killed
 *
 * The EAL and the lanes come from WEFT_EAL_ARGS and WEFT_LANES. Every byte is compared. The
 * server says how many clients it has served whole.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process.h"

#define LENGTH 20000
#define TAG_HELLO 1ull /* plus the number of the message, from bit 8 on */
#define TAG_LAST 2ull
#define TIMEOUT_S 20

static struct weft_context *ctx;
static struct weft_worker *worker;
static volatile sig_atomic_t ended;
static unsigned char data[LENGTH], in[LENGTH];

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

static void fill(unsigned char *buf, uint64_t number)
{
	size_t i;

	for (i = 0; i < LENGTH; i++)
		buf[i] = (unsigned char)((i + number) * 2654435761u >> 13);
}

static int wait_for(struct weft_request *req, struct weft_completion *c)
{
	return wait_done(worker, req, c, TIMEOUT_S);
}

/* ---- the server ----------------------------------------------------------------------------- */

static struct weft_ep *eps[64];

/* Endpoints whose client has left, in good order or not. */
static void sweep(void)
{
	struct weft_ep_attr attr = {.size = sizeof(attr)};
	size_t i;

	for (i = 0; i < sizeof(eps) / sizeof(eps[0]); i++) {
		if (!eps[i] || weft_ep_query(eps[i], &attr) || attr.status >= 0)
			continue;
		weft_ep_close(eps[i], WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
		eps[i] = NULL;
	}
}

static void accept_ep(struct weft_worker *w, struct weft_ep *ep, uint64_t id, const char *name,
		      void *arg)
{
	size_t i;

	(void)w;
	(void)id;
	(void)name;
	(void)arg;
	sweep();
	for (i = 0; i < sizeof(eps) / sizeof(eps[0]); i++) {
		if (eps[i])
			continue;
		eps[i] = ep;
		return;
	}
	die("more clients at a time than expected", -ENOMEM);
}

static void answer(struct weft_ep *ep, uint64_t tag)
{
	struct weft_op_params p =
		WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_FORCE_REQUEST);
	struct weft_request *req = NULL;

	/*
	 * It is copied before the call returns, or fails with its endpoint: no call waits for it.
	 */
	if (ep && weft_tag_send(ep, &tag, sizeof(tag), tag, &p, &req) >= 0)
		weft_request_free(req);
}

static int serve(const char *file)
{
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .completion = &c);
	struct weft_request *req = NULL;
	unsigned int whole = 0, wrong = 0, messages = 0;
	int status;

	write_address(worker, file);
	while (!ended) {
		status = weft_tag_recv(worker, NULL, in, sizeof(in), 0, 0, &p, &req);
		check("receive", status);
		while (req && (status = weft_request_test(req, &c)) == WEFT_INPROGRESS && !ended)
			weft_worker_progress(worker);
		if (ended)
			break;
		weft_request_free(req);
		req = NULL;
		if (status)
			continue;
		fill(data, c.tag >> 8);
		wrong += c.length != LENGTH || memcmp(in, data, LENGTH);
		messages++;
		whole += (c.tag & 0xff) == TAG_LAST;
		answer(c.ep, c.tag);
	}
	printf("served %u clients whole, %u messages, %u wrong\n", whole, messages, wrong);
	return wrong ? 1 : 0;
}

/* ---- the client ----------------------------------------------------------------------------- */

static int request_all(const char *file, uint64_t count)
{
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_ep *ep = connect_to(worker, file);
	struct weft_request *sent, *got;
	uint64_t i, tag, echo;

	for (i = 0; !count || i < count; i++) {
		tag = i << 8 | (i + 1 == count ? TAG_LAST : TAG_HELLO);
		fill(data, i);
		sent = got = NULL;
		check("receive", weft_tag_recv(worker, NULL, &echo, sizeof(echo), tag, UINT64_MAX,
					       NULL, &got));
		check("send", weft_tag_send(ep, data, LENGTH, tag, NULL, &sent));
		check("message", wait_for(sent, &c));
		check("answer", wait_for(got, &c));
		if (echo != tag)
			die("another answer", -EPROTO);
	}
	sent = NULL;
	check("close", weft_ep_close(ep, 0, NULL, &sent));
	check("close", wait_for(sent, &c));
	return 0;
}

int main(int argc, char **argv)
{
	struct weft_worker_params p = WEFT_INIT(struct weft_worker_params, .accept_cb = NULL);
	int rc;

	if (argc < 3 || (argc < 4 && strcmp(argv[1], "server"))) {
		fprintf(stderr, "usage: reconnect server FILE | client FILE COUNT\n");
		return 2;
	}
	signal(SIGTERM, on_signal);
	check("context", weft_context_create(NULL, &ctx));
	if (!strcmp(argv[1], "server"))
		p.accept_cb = accept_ep;
	check("worker", weft_worker_create(ctx, &p, &worker));
	if (!strcmp(argv[1], "server"))
		rc = serve(argv[2]);
	else
		rc = request_all(argv[2], strtoull(argv[3], NULL, 10));
	weft_worker_destroy(worker);
	weft_context_destroy(ctx);
	return rc;
}
