/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages from and into parts of blocks that the program's allocator moves between them: two
 * workers of one process over shared memory.
 *
 *	realloc grow	a block of 64 MiB, of which parts were sent, is resized; fails when memory
 *			grows by a second block, which is what realloc() does without mremap()
 *	realloc random	some blocks of random sizes are allocated, filled, sent, resized and freed
 *
 * The allocator is the process' own, or the one of LD_PRELOAD.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "process.h"

#define MIB (1u << 20)
#define BLOCKS 8
#define ROUNDS 400

static struct weft_worker *a, *b;
static struct weft_ep *ep;
static uint64_t seed = 88172645463325252ull;

static size_t rnd(size_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static void fail(const char *what)
{
	fprintf(stderr, "realloc: %s\n", what);
	exit(1);
}

static struct weft_worker *new_worker(struct weft_context *ctx)
{
	struct weft_worker_params p = WEFT_INIT(struct weft_worker_params, .lanes = "shm");
	struct weft_worker *w;

	check("worker", weft_worker_create(ctx, &p, &w));
	return w;
}

static void connect_workers(void)
{
	struct weft_context_params cp = WEFT_INIT(struct weft_context_params);
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params);
	struct weft_context *ctx;
	void *address;

	check("context", weft_context_create(&cp, &ctx));
	a = new_worker(ctx);
	b = new_worker(ctx);
	check("address", weft_worker_get_address(b, &address, &p.address_length));
	p.address = address;
	check("endpoint", weft_ep_create(a, &p, &ep));
	weft_worker_release_address(b, address);
}

static void message(void *out, void *in, size_t length)
{
	struct weft_request *sent = NULL, *received = NULL;

	check("receive", weft_tag_recv(b, NULL, in, length, 1, UINT64_MAX, NULL, &received));
	check("send", weft_tag_send(ep, out, length, 1, NULL, &sent));
	while ((sent && weft_request_test(sent, NULL) == WEFT_INPROGRESS) ||
	       (received && weft_request_test(received, NULL) == WEFT_INPROGRESS)) {
		weft_worker_progress(a);
		weft_worker_progress(b);
	}
	weft_request_free(sent);
	weft_request_free(received);
	if (memcmp(out, in, length) != 0)
		fail("a message differs");
}

static long peak_kb(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss;
}

static void *resized(void *old, size_t length)
{
	void *p = realloc(old, length);

	if (!p)
		fail("realloc() returns NULL");
	return p;
}

static void grow(void)
{
	static const unsigned int sizes[] = {128, 64, 256, 96};
	unsigned char *block = malloc(64 * MIB), *in = malloc(MIB);
	long before;

	memset(in, 0, MIB);
	memset(block, 1, 64 * MIB);
	before = peak_kb();
	for (unsigned int i = 0; i < 4; i++) {
		for (unsigned int at = 0; at < 48; at += 12) {
			memset(block + at * MIB, (int)(i + at), MIB);
			message(block + at * MIB, in, MIB);
		}
		block = resized(block, (size_t)sizes[i] * MIB);
		if (block[36 * MIB] != i + 36 || block[50 * MIB] != 1)
			fail("a resized block has other content");
	}
	printf("%ld KiB more\n", peak_kb() - before);
	if (peak_kb() - before > 32 * 1024)
		fail("realloc() has copied a block");
	free(block);
	free(in);
}

static void random_blocks(void)
{
	static struct block {
		unsigned char *at;
		size_t length;
	} blocks[BLOCKS];
	struct block *p, *q;
	size_t length;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		p = &blocks[rnd(BLOCKS)];
		q = &blocks[rnd(BLOCKS)];
		length = 1 + (rnd(4) ? rnd(MIB) : rnd(8 * MIB));
		if (rnd(5) == 0) {
			free(p->at);
			*p = (struct block){NULL, 0};
		}
		p->at = resized(p->at, length);
		p->length = length;
		memset(p->at, (int)i, length);
		if (p == q || !q->at)
			continue;
		length = p->length < q->length ? p->length : q->length;
		message(p->at, q->at, 1 + rnd(length));
	}
	for (unsigned int i = 0; i < BLOCKS; i++)
		free(blocks[i].at);
}

int main(int argc, char **argv)
{
	connect_workers();
	if (argc > 1 && strcmp(argv[1], "grow") == 0)
		grow();
	else
		random_blocks();
	return 0;
}
