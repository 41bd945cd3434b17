/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rma: remote memory and active messages with Weft, after hello.
 *
 * A worker makes an endpoint to its own address, so no Ethernet port, no root and no DPDK is
 * needed; between two processes the address and the remote key go from one to the other by some
 * way of the application's, here they are just handed over. See weft.h for every call.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#define AM_NOTE 1
#define SIZE 65536
#define COUNTER 0 /* the first word of the memory, which has the alignment that atomics require */
#define TEXT 64   /* offset of the text */

static void check(int status, const char *what)
{
	if (status < 0) {
		fprintf(stderr, "rma: %s: %s\n", what, weft_strerror(status));
		exit(1);
	}
}

static void expect(int right, const char *what)
{
	if (!right) {
		fprintf(stderr, "rma: %s is not what it should be\n", what);
		exit(1);
	}
}

/* The handler of active messages: the peer's progress call calls it. */
static int on_note(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	int *notes = arg;

	(void)worker;
	if (msg->header_length == 4 && msg->length == 5 && !memcmp(msg->header, "note", 4) &&
	    msg->data && !memcmp(msg->data, "done.", 5))
		++*notes;
	return 0;
}

/* Write to the peer's memory, flush, and read the text back. */
static void put_and_get(struct weft_worker *worker, struct weft_ep *ep, struct weft_rkey *rkey)
{
	static const char text[] = "written from afar";
	struct weft_request *req = NULL;
	char back[sizeof(text)];
	int ret;

	/*
	 * The put completes when `text` may be reused. With WEFT_OP_F_DELIVERED it would complete
	 * when the bytes are in the peer's memory.
	 */
	ret = weft_put(ep, text, sizeof(text), rkey, TEXT, NULL, &req);
	check(weft_wait(worker, ret, &req, NULL), "put");
	ret = weft_ep_flush(ep, NULL, &req);
	check(weft_wait(worker, ret, &req, NULL), "flush");
	ret = weft_get(ep, back, sizeof(back), rkey, TEXT, NULL, &req);
	check(weft_wait(worker, ret, &req, NULL), "get");
	expect(!memcmp(back, text, sizeof(text)), "what a get brought");
	printf("rma: put, and read back: \"%s\"\n", back);
}

/* The handler of puts that notify: all bytes have arrived. */
static void on_put(struct weft_worker *worker, const struct weft_put_event *event, void *arg)
{
	uint64_t *imm = arg;

	(void)worker;
	if (event->offset == TEXT && event->length == 8)
		*imm = event->imm;
}

/* Write to the peer's memory, and notify the peer with a number. */
static void put_and_notify(struct weft_worker *worker, struct weft_ep *ep, struct weft_rkey *rkey)
{
	struct weft_op_params params = WEFT_INIT(
		struct weft_op_params, .flags = WEFT_OP_F_IMM | WEFT_OP_F_DELIVERED, .imm = 42);
	struct weft_request *req = NULL;
	uint64_t imm = 0;
	int ret;

	check(weft_worker_set_put_handler(worker, on_put, &imm), "handler of puts");
	ret = weft_put(ep, "notified", 8, rkey, TEXT, &params, &req);
	check(weft_wait(worker, ret, &req, NULL), "put that notifies");
	expect(imm == 42, "the number that came with a put");
	weft_worker_set_put_handler(worker, NULL, NULL);
	printf("rma: a put came with the number 42\n");
}

static void count(struct weft_worker *worker, struct weft_ep *ep, struct weft_rkey *rkey)
{
	uint64_t old = 0;
	struct weft_atomic_params add = WEFT_INIT(struct weft_atomic_params, .op = WEFT_ATOMIC_ADD,
						  .width = 8, .operand = 1, .result = &old);
	struct weft_atomic_params swap =
		WEFT_INIT(struct weft_atomic_params, .op = WEFT_ATOMIC_CSWAP, .width = 8,
			  .compare = 3, .operand = 100, .result = &old);
	struct weft_request *req = NULL;
	int ret;

	for (uint64_t i = 0; i < 3; i++) {
		ret = weft_atomic(ep, &add, rkey, COUNTER, NULL, &req);
		check(weft_wait(worker, ret, &req, NULL), "fetch and add");
		expect(old == i, "what fetch and add returned");
	}
	ret = weft_atomic(ep, &swap, rkey, COUNTER, NULL, &req);
	check(weft_wait(worker, ret, &req, NULL), "compare and swap");
	expect(old == 3, "what compare and swap returned");
	printf("rma: a counter went 0, 1, 2, 3, and was swapped for 100\n");
}

static void note(struct weft_worker *worker, struct weft_ep *ep)
{
	struct weft_am_send_params am = WEFT_INIT(struct weft_am_send_params, .id = AM_NOTE,
						  .header = "note", .header_length = 4);
	struct weft_request *req = NULL;
	int notes = 0, ret;

	check(weft_worker_set_am_handler(worker, AM_NOTE, on_note, &notes, 0), "handler");
	ret = weft_am_send(ep, &am, "done.", 5, NULL, &req);
	check(weft_wait(worker, ret, &req, NULL), "active message");
	ret = weft_ep_flush(ep, NULL, &req);
	check(weft_wait(worker, ret, &req, NULL), "flush");
	expect(notes == 1, "the number of notes");
	weft_worker_set_am_handler(worker, AM_NOTE, NULL, NULL, 0);
	printf("rma: an active message came to its handler\n");
}

/* Registers memory for peers. Returns its remote key, unpacked as a peer does it. */
static struct weft_rkey *share(struct weft_context *context, struct weft_ep *ep, void *memory,
			       struct weft_mem **mem)
{
	struct weft_mem_params params =
		WEFT_INIT(struct weft_mem_params, .flags = WEFT_MEM_F_REMOTE_READ |
							   WEFT_MEM_F_REMOTE_WRITE |
							   WEFT_MEM_F_REMOTE_ATOMIC);
	struct weft_rkey *rkey;
	size_t length;
	void *blob;

	check(weft_mem_register(context, memory, SIZE, &params, mem), "register");
	check(weft_rkey_pack(*mem, &blob, &length), "pack");
	printf("rma: %d bytes of memory, a key of %zu bytes\n", SIZE, length);
	check(weft_rkey_unpack(ep, blob, length, &rkey), "unpack");
	weft_rkey_release_blob(blob);
	return rkey;
}

static struct weft_ep *connect_to_self(struct weft_worker *worker)
{
	struct weft_ep_params params = WEFT_INIT(struct weft_ep_params, .address = NULL);
	struct weft_ep *ep;
	void *address;

	check(weft_worker_get_address(worker, &address, &params.address_length), "address");
	params.address = address;
	check(weft_ep_create(worker, &params, &ep), "endpoint");
	weft_worker_release_address(worker, address);
	return ep;
}

int main(void)
{
	struct weft_context_params context_params =
		WEFT_INIT(struct weft_context_params, .name = "rma",
			  .features = WEFT_FEATURE_AM | WEFT_FEATURE_RMA | WEFT_FEATURE_AMO64);
	struct weft_worker_params worker_params =
		WEFT_INIT(struct weft_worker_params, .lanes = "self");
	struct weft_op_params delivered =
		WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_DELIVERED);
	struct weft_request *req = NULL;
	struct weft_context *context;
	struct weft_worker *worker;
	struct weft_rkey *rkey;
	struct weft_mem *mem;
	struct weft_ep *ep;
	char *memory = aligned_alloc(4096, SIZE);
	int ret;

	expect(memory != NULL, "memory");
	memset(memory, 0, SIZE);
	check(weft_context_create(&context_params, &context), "context");
	check(weft_worker_create(context, &worker_params, &worker), "worker");
	ep = connect_to_self(worker);
	rkey = share(context, ep, memory, &mem);

	put_and_notify(worker, ep, rkey);
	put_and_get(worker, ep, rkey);
	count(worker, ep, rkey);
	note(worker, ep);

	/* Puts past the end, and after the deregistration, write nothing. */
	expect(weft_put(ep, memory, 2, rkey, SIZE - 1, NULL, NULL) == -ERANGE,
	       "a put past the end");
	while ((ret = weft_mem_deregister(mem)) == -EBUSY)
		weft_worker_progress(worker);
	check(ret, "deregister");
	ret = weft_put(ep, "late", 4, rkey, TEXT, &delivered, &req);
	expect(weft_wait(worker, ret, &req, NULL) == -EKEYREJECTED,
	       "the end of a put to memory that is gone");
	expect(!strcmp(memory + TEXT, "written from afar"), "the memory");
	printf("rma: the key is dead with the registration\n");

	weft_rkey_destroy(rkey);
	ret = weft_ep_close(ep, 0, NULL, &req);
	check(weft_wait(worker, ret, &req, NULL), "close");
	weft_worker_destroy(worker);
	check(weft_context_destroy(context), "context");
	free(memory);
	return 0;
}
