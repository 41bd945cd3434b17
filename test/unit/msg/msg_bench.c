/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the message half costs per 8-byte message, without any lane: not a test, run by hand. Median
 * of 15 rounds.
 *
 *	taskset -c 0 build/test/unit/msg_bench
 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mock/pair.h"

#define ROUNDS 15
#define N 200000

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(const char *what, double *ns)
{
	qsort(ns, ROUNDS, sizeof(*ns), cmp);
	printf("%-58s %6.1f ns  (quartiles %.1f %.1f)\n", what, ns[ROUNDS / 2], ns[ROUNDS / 4],
	       ns[3 * ROUNDS / 4]);
}

static void credit(struct pair *p)
{
	struct weft_wire_credit c = {
		.seq = weft_put32(p->ep[0].msg->tx_seq + WEFT_SEQ_WINDOW),
		.small = weft_put32(p->ep[0].msg->tx_small + WEFT_SMALL_WINDOW),
	};

	weft_msg_recv(&p->ep[0], 0, WEFT_WIRE_CREDIT, &c, sizeof(c));
}

static double send_round(struct pair *p)
{
	uint64_t v = 1;
	double t = now_ns();

	for (int i = 0; i < N; i++) {
		if (i % 4000 == 0)
			credit(p);
		if (weft_tag_send(&p->ep[0], &v, sizeof(v), (uint64_t)i, NULL, NULL))
			abort();
	}
	return (now_ns() - t) / N;
}

/* A batch of receives is posted, then their messages come. @param late  the other way round */
static double recv_round(struct pair *p, int batch, bool late, bool held)
{
	static struct weft_request *req[4096];
	struct {
		struct weft_wire_eager e;
		uint64_t v;
	} __attribute__((packed)) m;
	uint64_t got;
	double t = now_ns();

	for (int n = 0; n < N; n += batch) {
		for (int step = 0; step < 2; step++) {
			for (int i = 0; (step == late) && i < batch; i++)
				weft_tag_recv(&p->w[1], NULL, &got, sizeof(got), (uint64_t)i,
					      UINT64_MAX, NULL, held ? &req[i] : NULL);
			for (int i = 0; (step != late) && i < batch; i++) {
				m.e.seq = weft_put32(p->ep[1].msg->rx_seq.next);
				m.e.tag = weft_put64((uint64_t)i);
				m.v = (uint64_t)i;
				weft_msg_recv(&p->ep[1], 0, WEFT_WIRE_EAGER, &m, sizeof(m));
			}
		}
		for (int i = 0; held && !late && i < batch; i++)
			weft_request_free(req[i]);
	}
	return (now_ns() - t) / N;
}

int main(void)
{
	double ns[8][ROUNDS];
	struct pair p;

	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	p.null = true;
	for (int r = 0; r < ROUNDS; r++) {
		ns[0][r] = send_round(&p);
		ns[1][r] = recv_round(&p, 1, false, true);
		ns[2][r] = recv_round(&p, 64, false, true);
		ns[3][r] = recv_round(&p, 4000, false, true);
		ns[4][r] = recv_round(&p, 1, true, true);
		ns[5][r] = recv_round(&p, 64, true, true);
		ns[6][r] = recv_round(&p, 4000, true, true);
	}
	report("send, short", ns[0]);
	report("receive + match + complete + free, 1 posted", ns[1]);
	report("receive + match + complete + free, 64 posted", ns[2]);
	report("receive + match + complete + free, 4000 posted", ns[3]);
	report("unexpected: keep, find, copy, 1 waiting", ns[4]);
	report("unexpected: keep, find, copy, 64 waiting", ns[5]);
	report("unexpected: keep, find, copy, 4000 waiting", ns[6]);
	p.null = false;
	pair_close(&p);
	return 0;
}
