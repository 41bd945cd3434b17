/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What choosing the protocol costs a send: not a test, run by devtools/bench.sh select. Prints
 * comma-separated values: what, median and quartiles of 15 rounds in ns per look-up, the loop
 * around it included.
 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/config.h"
#include "dispatch.h"
#include "msg/msg.h"

#define ROUNDS 15
#define N 2000000
#define SIZES 4096

static size_t sizes[SIZES];

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

/*
 * The next length depends on the answer, so that look-ups do not overlap: what a single send waits
 * for.
 */
static double contiguous(struct weft_ep_config *config)
{
	const struct weft_proto *proto = NULL;
	double t = now_ns();

	for (unsigned int i = 0; i < N; i++) {
		size_t length = sizes[(i + (proto == NULL)) % SIZES];

		proto = weft_proto_lookup(&config->select[WEFT_OP_TAG_SEND][WEFT_BUF_CONTIG],
					  length);
		__asm__ volatile("" : "+r"(proto));
	}
	return (now_ns() - t) / N;
}

static double of_an_iov(struct weft_ep_config *config)
{
	const struct weft_proto *proto = NULL;
	double t = now_ns();

	for (unsigned int i = 0; i < N; i++) {
		size_t length = sizes[(i + (proto == NULL)) % SIZES];

		proto = weft_proto_lookup(
			weft_ep_config_select(config, WEFT_OP_TAG_SEND,
					      weft_buf_make(WEFT_DT_IOV, length % 64, false)),
			length);
		__asm__ volatile("" : "+r"(proto));
	}
	return (now_ns() - t) / N;
}

static void measure(const char *what, struct weft_ep_config *config,
		    double (*run)(struct weft_ep_config *), unsigned int spread)
{
	double ns[ROUNDS];

	srand(1);
	for (unsigned int i = 0; i < SIZES; i++)
		sizes[i] = spread ? (size_t)1 << (rand() % 22) : 8;
	for (int r = 0; r < ROUNDS; r++)
		ns[r] = run(config);
	qsort(ns, ROUNDS, sizeof(*ns), cmp);
	printf("%s,%.2f,%.2f,%.2f\n", what, ns[ROUNDS / 2], ns[ROUNDS / 4], ns[3 * ROUNDS / 4]);
}

int main(void)
{
	struct weft_ep_configs list = LIST_HEAD_INITIALIZER(list);
	struct weft_ep_config *config;
	struct weft_model m = {
		.lanes_up = 15,
		.conf = {.protos = weft_tables.protos,
			 .bcopy_bw = 9e9,
			 .perf_diff = 1,
			 .rndv_thresh = WEFT_CONF_AUTO,
			 .zcopy_thresh = WEFT_CONF_AUTO,
			 .multi_eager_limit = 262144,
			 .max_eager_lanes = 16,
			 .max_rndv_lanes = 16},
	};

	for (int i = 0; i < 4; i++)
		m.lanes[i] = (struct weft_model_lane){
			.bandwidth = 3e9,
			.latency = 12e-6,
			.send_overhead = 1e-7,
			.recv_overhead = 1e-7,
			.max_short = 1000,
			.max_bcopy = 8192,
			.max_zcopy = 8192,
			.max_zcopy_hdr = 128,
			.max_iov = 8,
			.features = WEFT_LANE_F_SHORT | WEFT_LANE_F_BCOPY | WEFT_LANE_F_ZCOPY};
	config = weft_ep_config_get(&list, &m);
	if (!config)
		return 1;
	measure("contiguous_8B", config, contiguous, 0);
	measure("contiguous_1B_to_2MiB_at_random", config, contiguous, 1);
	measure("iov_1B_to_2MiB_at_random", config, of_an_iov, 1);
	weft_ep_config_put(config);
	return 0;
}
