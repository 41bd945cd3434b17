/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zero-copy sends over a port like a NIC's: memory is registered, and the PMD holds sent mbufs for
 * as long as it likes.
 */

#include "engine/iface.h"
#include "common/pattern.h"
#include "mock/raw_util.h"

#define PAGE 4096u

static uint8_t user[4 * PAGE] __attribute__((aligned(PAGE)));
static unsigned int unmapped;

static void on_unmap(struct weft_mem_lane *mem)
{
	(void)mem;
	unmapped++;
}

static struct weft_mem_lane registration(void)
{
	unmapped = 0;
	return (struct weft_mem_lane){
		.refs = 1,
		.start = (uintptr_t)user,
		.end = (uintptr_t)user + sizeof(user),
		.unmap = on_unmap,
	};
}

static struct {
	uint32_t n, len;
} hdr;

static int send_from(void *at, uint32_t len, struct weft_mem_lane *mem, struct weft_lane_comp *comp)
{
	struct iovec iov = {at, len};

	hdr.n = 3;
	hdr.len = len;
	pattern_fill(3, 0, at, len);
	done_count = 0;
	return A->iface->ops->am_zcopy(A->lane_ep, 5, &hdr, sizeof(hdr), &iov, 1, mem, comp);
}

static void open_lazy(const struct pair_params *more)
{
	struct pair_params pp = more ? *more : (struct pair_params){0};

	pp.reg = true;
	pair_open(&pair, &pp, 7);
	A->wire.hold_sent = true;
	A->wire.lazy = true;
	pair_connect(&pair);
	assert_true(A->iface->attr.features & WEFT_LANE_F_ZCOPY_REG);
}

static bool message_there(struct pair *p)
{
	return p->end[1].messages > 0;
}

static void memory_comes_back_though_the_pmd_keeps_its_mbufs(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};
	struct weft_mem_lane mem = registration();
	uint64_t at;

	(void)state;
	open_lazy(NULL);
	assert_int_equal(send_from(user, 8000, &mem, &comp), 0);
	assert_true(pair_run(&pair, 1000000, message_there));
	at = pair.now;
	assert_true(pair_run(&pair, 1000000, comp_done));
	/* The acknowledgement's way is 2 us. Nothing else was sent. */
	assert_true(pair.now - at <= 30000);
	assert_int_equal(done_status, 0);
	assert_int_equal(B->bad, 0);
	assert_true(A->held_count > 0);
	assert_int_equal(atomic_load(&mem.refs), 1);
	assert_int_equal(pair_counter(A, RAW_TX_ZCOPY), 1);
	assert_int_equal(pair_counter(A, RAW_TX_ZCOPY_COPIED), 0);
	assert_int_equal(pair_counter(A, RAW_TX_ZCOPY_EARLY), 1);
	pair_close(&pair);
	assert_int_equal(done_count, 1);
}

static void not_before_the_nic_has_read_it(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};
	struct weft_mem_lane mem = registration();

	(void)state;
	open_lazy(NULL);
	A->wire.busy = true;
	assert_int_equal(send_from(user, 8000, &mem, &comp), 0);
	pair_run(&pair, 10000000, NULL);
	/* Acknowledged, and asked after some 10 us each, not with every poll. */
	assert_int_equal(B->messages, 1);
	assert_int_equal(A->lane_ep->queued, 0);
	assert_int_equal(done_count, 0);
	assert_true(A->wire.reg_calls > 100 && A->wire.reg_calls < 1100);
	/* Deregistered meanwhile: it stays mapped until the NIC is through. */
	weft_mem_lane_put(&mem);
	assert_int_equal(unmapped, 0);
	A->wire.busy = false;
	pair_run(&pair, 20000, NULL);
	assert_int_equal(done_count, 1);
	assert_int_equal(unmapped, 1);
	pair_close(&pair);
}

static void nor_before_our_own_queue_has_left(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};
	struct weft_mem_lane mem = registration();

	(void)state;
	open_lazy(NULL);
	A->wire.full = true;
	assert_int_equal(send_from(user, 8000, &mem, &comp), 0);
	/* The port has all it was given; this it was not. */
	A->iface->ops->ep_destroy(A->lane_ep);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(done_count, 0);
	assert_int_equal(atomic_load(&mem.refs), 2);
	A->wire.full = false;
	pair_run(&pair, 100000, NULL);
	assert_int_equal(done_count, 1);
	assert_int_equal(done_status, -ECANCELED);
	assert_int_equal(atomic_load(&mem.refs), 1);
	pair_close(&pair);
}

static void the_end_of_the_port_gives_all_back(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};
	struct weft_mem_lane mem = registration();

	(void)state;
	open_lazy(NULL);
	A->wire.busy = true;
	assert_int_equal(send_from(user, 8000, &mem, &comp), 0);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(done_count, 0);
	weft_mem_lane_put(&mem);
	pair_close(&pair);
	assert_int_equal(done_count, 1);
	assert_int_equal(unmapped, 1);
}

static void lost_frames_go_again(void **state)
{
	static struct weft_lane_comp comp = {.done = on_done};
	struct weft_mem_lane mem = registration();
	struct iovec iov = {user, 7000};
	unsigned int sent, done = 0;
	int err;

	(void)state;
	for (unsigned int csum = WEFT_CSUM_NONE; csum <= WEFT_CSUM_CRC32C; csum++) {
		struct pair_params pp = {.csum = csum, .paths = 2};

		open_lazy(&pp);
		A->wire.loss = 0.1;
		B->wire.loss = 0.1;
		pattern_fill(3, 0, user, sizeof(user));
		hdr.n = 3; /* the same contents for all */
		hdr.len = 7000;
		done_count = 0;
		for (sent = 0; sent < 300;) {
			A->wire.busy = pair_rand(&pair) % 4;
			err = A->iface->ops->am_zcopy(A->lane_ep, 5, &hdr, sizeof(hdr), &iov, 1,
						      &mem, &comp);
			sent += err == 0;
			assert_true(err == 0 || err == -EAGAIN);
			pair_step(&pair, 5000);
			if (A->held_count > 200)
				rte_pktmbuf_free(A->held[--A->held_count]);
		}
		A->wire.busy = false;
		pair_run(&pair, 2000000000, NULL);
		assert_int_equal(done_count, 300);
		assert_int_equal(B->messages, 300);
		assert_int_equal(B->bad, 0);
		assert_int_equal(atomic_load(&mem.refs), 1);
		assert_true(pair_counter(A, RAW_TX_RETX_COPY) > 0);
		done += done_count;
		pair_close(&pair);
	}
	assert_int_equal(done, 900);
}

/* ---- what the NIC sees ---- */

static void pages_that_do_not_follow_each_other_are_segments_of_their_own(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};
	struct weft_mem_lane mem = registration();
	rte_iova_t iova[4] = {0x10000, 0x11000, 0x50000, 0x51000};
	struct rte_mbuf *m;
	unsigned int i;

	(void)state;
	mem.iova = iova;
	mem.page_bits = 12;
	open_lazy(NULL);
	assert_int_equal(send_from(user + 1000, 8000, &mem, &comp), 0);
	assert_true(pair_run(&pair, 1000000, comp_done));
	assert_int_equal(B->bad, 0);
	for (i = 0; i < A->held_count && A->held[i]->nb_segs == 1; i++)
		;
	assert_true(i < A->held_count);
	m = A->held[i];
	assert_int_equal(m->nb_segs, 3);
	m = m->next;
	assert_int_equal(rte_pktmbuf_iova(m), 0x10000 + 1000);
	assert_int_equal(m->data_len, 2 * PAGE - 1000);
	m = m->next;
	assert_int_equal(rte_pktmbuf_iova(m), 0x50000);
	assert_int_equal(m->data_len, 8000 - (2 * PAGE - 1000));
	pair_close(&pair);
}

/* QEMU's NICs behind its IOMMU drop what crosses a page. */
static void a_nic_may_want_segments_within_a_page(void **state)
{
	struct pair_params pp = {.tx_page_bits = 12};
	struct weft_lane_comp comp = {.done = on_done};
	struct weft_mem_lane mem = registration();
	struct rte_mbuf *m;
	unsigned int i;

	(void)state;
	open_lazy(&pp);
	assert_int_equal(send_from(user + 1000, 8000, &mem, &comp), 0);
	assert_true(pair_run(&pair, 1000000, comp_done));
	assert_int_equal(B->bad, 0);
	for (i = 0; i < A->held_count && A->held[i]->nb_segs == 1; i++)
		;
	assert_true(i < A->held_count);
	assert_int_equal(A->held[i]->nb_segs, 4);
	for (m = A->held[i]->next; m; m = m->next)
		assert_true((rte_pktmbuf_iova(m) & (PAGE - 1)) + m->data_len <= PAGE);
	pair_close(&pair);
}

static void what_the_nic_cannot_be_given_is_copied(void **state)
{
	struct pair_params pp = {.tx_segs = 2};
	struct weft_lane_comp comp = {.done = on_done};
	struct weft_mem_lane mem = registration();
	rte_iova_t iova[4] = {0x10000, 0x30000, 0x50000, 0x70000};
	static uint8_t other[8000];

	(void)state;
	open_lazy(&pp);
	mem.iova = iova;
	mem.page_bits = 12;
	/* More pieces than it takes; not registered at all; or not all of it. */
	assert_int_equal(send_from(user, 8000, &mem, &comp), 0);
	assert_true(pair_run(&pair, 1000000, comp_done));
	assert_int_equal(send_from(other, 8000, NULL, &comp), 0);
	assert_true(pair_run(&pair, 1000000, comp_done));
	assert_int_equal(send_from(other, 8000, &mem, &comp), 0);
	assert_true(pair_run(&pair, 1000000, comp_done));
	mem.end -= 1;
	assert_int_equal(send_from(user + sizeof(user) - 3000, 3000, &mem, &comp), 0);
	assert_true(pair_run(&pair, 1000000, comp_done));
	assert_int_equal(B->messages, 4);
	assert_int_equal(B->bad, 0);
	assert_int_equal(pair_counter(A, RAW_TX_ZCOPY), 0);
	assert_int_equal(pair_counter(A, RAW_TX_ZCOPY_COPIED), 4);
	/* One page is one piece. */
	assert_int_equal(send_from(user + PAGE, 3000, &mem, &comp), 0);
	assert_true(pair_run(&pair, 1000000, comp_done));
	assert_int_equal(pair_counter(A, RAW_TX_ZCOPY), 1);
	assert_int_equal(B->bad, 0);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_comes_back_though_the_pmd_keeps_its_mbufs),
		cmocka_unit_test(not_before_the_nic_has_read_it),
		cmocka_unit_test(nor_before_our_own_queue_has_left),
		cmocka_unit_test(the_end_of_the_port_gives_all_back),
		cmocka_unit_test(lost_frames_go_again),
		cmocka_unit_test(pages_that_do_not_follow_each_other_are_segments_of_their_own),
		cmocka_unit_test(a_nic_may_want_segments_within_a_page),
		cmocka_unit_test(what_the_nic_cannot_be_given_is_copied),
	};

	return cmocka_run_group_tests_name("raw_reg", tests, NULL, NULL);
}
