/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hello: the smallest program that sends and receives with Weft.
 *
 * A worker makes an endpoint to its own address, so no Ethernet port, no root and no DPDK is
 * needed; between two processes only the means changes by which the address gets from one to the
 * other. See weft.h for every call.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#define BIG (1 << 20)

static void check(int status, const char *what)
{
	if (status < 0) {
		fprintf(stderr, "hello: %s: %s\n", what, weft_strerror(status));
		exit(1);
	}
}

/* Sends one message of this length from the worker to itself. Returns its tag. */
static uint64_t pass(struct weft_worker *worker, struct weft_ep *ep, const void *out, void *in,
		     size_t length, uint64_t tag)
{
	struct weft_request *sent = NULL, *received = NULL;
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params recv_params = WEFT_INIT(struct weft_op_params, .completion = &c);
	int sending, receiving;

	/*
	 * Matches any message with these lower 32 bits of the tag. The completion is filled in if
	 * the message has already arrived.
	 */
	receiving =
		weft_tag_recv(worker, NULL, in, length, tag, 0xffffffff, &recv_params, &received);
	check(receiving, "receive");
	sending = weft_tag_send(ep, out, length, tag | (7ull << 32), NULL, &sent);
	check(weft_wait(worker, sending, &sent, NULL), "send");
	check(weft_wait(worker, receiving, &received, &c), "receive");
	if (c.length != length || memcmp(in, out, length)) {
		fprintf(stderr, "hello: what came is not what was sent\n");
		exit(1);
	}
	return c.tag;
}

int main(void)
{
	struct weft_context_params context_params =
		WEFT_INIT(struct weft_context_params, .name = "hello");
	struct weft_worker_params worker_params =
		WEFT_INIT(struct weft_worker_params, .lanes = "self");
	struct weft_ep_params ep_params = WEFT_INIT(struct weft_ep_params, .address = NULL);
	struct weft_proto_info proto = {.size = sizeof(proto)};
	static const char text[] = "hello, weft";
	struct weft_request *req = NULL;
	struct weft_context *context;
	struct weft_worker *worker;
	struct weft_ep *ep;
	char *out, *in;
	void *address;
	uint64_t tag;
	size_t i;

	check(weft_context_create(&context_params, &context), "context");
	check(weft_worker_create(context, &worker_params, &worker), "worker");
	check(weft_worker_get_address(worker, &address, &ep_params.address_length), "address");
	printf("hello: Weft %s, worker address of %zu bytes\n", weft_version_string(),
	       ep_params.address_length);

	ep_params.address = address;
	check(weft_ep_create(worker, &ep_params, &ep), "endpoint");
	weft_worker_release_address(worker, address);

	out = malloc(BIG);
	in = malloc(BIG);
	if (!out || !in) {
		fprintf(stderr, "hello: no memory\n");
		return 1;
	}
	for (i = 0; i < BIG; i++)
		out[i] = (char)(i * 2654435761u >> 24);

	tag = pass(worker, ep, text, in, sizeof(text), 42);
	printf("hello: received \"%s\" with tag 0x%llx\n", in, (unsigned long long)tag);
	pass(worker, ep, out, in, BIG, 43);
	if (weft_ep_query_proto(ep, WEFT_OP_TAG_SEND, BIG, &proto) == 0)
		printf("hello: 1 MiB went by protocol %s, and is right\n", proto.name);

	check(weft_wait(worker, weft_ep_close(ep, 0, NULL, &req), &req, NULL), "close");
	weft_worker_destroy(worker);
	check(weft_context_destroy(context), "context");
	free(out);
	free(in);
	return 0;
}
