/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory of a process for each peer that it uses. Each peer is a process of its own, connects and
 * sends 8 bytes. Not a test: run by hand, also without a guest.
 *
 *	roce_peers LANES LANES_OF_PEERS PEERS
 */

#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weft.h"

static unsigned int got;

static void check(int ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, weft_strerror(ret));
	exit(1);
}

static void on_recv(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	(void)req;
	(void)arg;
	check(c->status, "receive");
	got++;
}

static struct weft_worker *open_worker(const char *lanes)
{
	struct weft_worker_params wp = WEFT_INIT(struct weft_worker_params, .lanes = lanes);
	struct weft_context *ctx;
	struct weft_worker *w;

	check(weft_context_create(NULL, &ctx), "context");
	check(weft_worker_create(ctx, &wp, &w), "worker");
	return w;
}

/* Sends one message, and stays until the pipe @p in ends. */
static void be_peer(const char *lanes, const void *addr, size_t len, int in)
{
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params, .address = addr);
	struct weft_worker *w = open_worker(lanes);
	struct weft_request *req;
	struct weft_ep *ep;
	uint64_t v = 1;
	int rc;

	p.address_length = len;
	check(weft_ep_create(w, &p, &ep), "endpoint");
	rc = weft_tag_send(ep, &v, sizeof(v), 1, NULL, &req);
	check(weft_wait(w, rc, &req, NULL), "send");
	check(fcntl(in, F_SETFL, O_NONBLOCK), "pipe");
	while (read(in, &v, 1) < 0)
		weft_worker_wait(w, 20000000);
	_exit(0);
}

/* kB of a line of /proc/self/smaps_rollup */
static long field(const char *name)
{
	char line[160];
	long kb = -1;
	FILE *f = fopen("/proc/self/smaps_rollup", "r");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			kb = strtol(line + strlen(name), NULL, 10);
	if (f)
		fclose(f);
	return kb;
}

static void show(unsigned int peers)
{
	struct mallinfo2 m = mallinfo2();

	printf("# %u peers: resident %ld kB, of it anonymous %ld kB, heap in use %zu kB\n", peers,
	       field("Rss:"), field("Anonymous:"), (m.uordblks + m.hblkhd) >> 10);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct weft_op_params op = WEFT_INIT(struct weft_op_params, .cb = on_recv);
	unsigned int n = argc == 4 ? (unsigned int)atoi(argv[3]) : 0;
	int end[2], addr_pipe[2];
	struct weft_worker *w;
	uint64_t buf[256];
	void *addr;
	size_t len;

	if (n == 0 || n > 256 || pipe(end) != 0 || pipe(addr_pipe) != 0)
		return 2;
	/* Peers are made before the worker, so that they have none of its memory. */
	for (unsigned int i = 0; i < n; i++) {
		static char theirs[4096];
		ssize_t size;

		if (fork() != 0)
			continue;
		close(end[1]);
		size = read(addr_pipe[0], theirs, sizeof(theirs));
		if (size > 0)
			be_peer(argv[2], theirs, (size_t)size, end[0]);
		exit(1);
	}
	w = open_worker(argv[1]);
	check(weft_worker_get_address(w, &addr, &len), "address");
	for (unsigned int i = 0; i < n; i++)
		check(weft_tag_recv(w, NULL, &buf[i], 8, 1, WEFT_TAG_MASK_FULL, &op, NULL),
		      "receive");
	show(0);
	for (unsigned int i = 0; i < n; i++) {
		if (write(addr_pipe[1], addr, len) < 0)
			return 1;
		while (got <= i)
			weft_worker_wait(w, 20000000);
		if (i == 0 || i + 1 == n / 4 || i + 1 == n / 2 || i + 1 == n)
			show(i + 1);
	}
	return 0;
}
