/* SPDX-License-Identifier: BSD-3-Clause */
/* The raw-DPDK lane engine when a pool of buffers is empty. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "frame/frame.h"
#include "mock/raw_pair.h"

#define LANE_AT 42 /* the lane header in an untagged UDP frame */

static struct pair pair;

static struct pair_end *A = &pair.end[0], *B = &pair.end[1];

static unsigned int sack_words_max, sacks;

/* Every second DATA frame is lost; B's acknowledgements are noted. */
static uint32_t every_second(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	const struct weft_frame_hdr *h = (const struct weft_frame_hdr *)(frame + LANE_AT);
	const struct weft_frame_sack *sack = (const struct weft_frame_sack *)(h + 1);
	static unsigned int n;

	if (frame[12] != 8 || frame[13] != 0)
		return len;
	if (from == A && h->type == WEFT_FRAME_DATA)
		return n++ % 2 ? len : 0;
	if (from == B && weft_get16(h->flags) & WEFT_FRAME_F_SACK) {
		sacks++;
		sack_words_max = RTE_MAX(sack_words_max, (unsigned int)weft_get16(sack->words));
	}
	return len;
}

/* No buffer for the long SACK block: a short one is better than silence. */
/* @behaviour R27: Without buffers for long acknowledgements short ones are sent */
static void a_long_sack_is_cut_when_there_is_no_buffer(void **state)
{
	const struct pair_params pp = {.window = 16u << 20, .rx_depth = 1024, .cc = WEFT_CC_FIXED};
	struct rte_mempool *none, *small, *pool, *hdr_pool;
	struct rte_mbuf *last;
	uint32_t n = 0;

	(void)state;
	pair_open(&pair, &pp, 21);
	none = rte_pktmbuf_pool_create("no-buffer-none", 1, 0, 0, 2048, SOCKET_ID_ANY);
	small = rte_pktmbuf_pool_create("no-buffer-small", 255, 0, 0, RTE_PKTMBUF_HEADROOM + 128,
					SOCKET_ID_ANY);
	assert_true(none && small);
	last = rte_pktmbuf_alloc(none);
	pair_connect(&pair);
	pool = B->port.pool;
	hdr_pool = B->port.hdr_pool;
	A->wire.edit = B->wire.edit = every_second;
	sacks = sack_words_max = 0;
	for (unsigned int fruitless = 0; fruitless < 2;) {
		if (pair_send(A, A->lane_ep, n, 5000) == 0) {
			n++;
			fruitless = 0;
			continue;
		}
		A->iface->ops->tx_flush(A->iface);
		fruitless++;
	}
	assert_in_range(n, 400, 1000); /* more than six words */
	A->iface->ops->tx_flush(A->iface);
	B->port.pool = none;
	B->port.hdr_pool = small;
	pair.now += 1000000;
	for (int i = 0; i < 32; i++, pair.now += 1000)
		B->iface->ops->progress(B->iface, pair.now);
	assert_true(sacks > 4); /* of 64 frames each: the fifth has more words than fit */
	assert_int_equal(sack_words_max, 3);
	B->port.pool = pool;
	B->port.hdr_pool = hdr_pool;
	A->wire.edit = B->wire.edit = NULL;
	pair_run(&pair, 2000000000, NULL);
	assert_int_equal(B->messages, n);
	pair_close(&pair);
	rte_pktmbuf_free(last);
	rte_mempool_free(none);
	rte_mempool_free(small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_sack_is_cut_when_there_is_no_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
