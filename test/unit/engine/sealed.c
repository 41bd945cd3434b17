/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffer that sealed frames of a raw lane use again and again. */

#include "engine/iface.h"
#include "engine/sealed_frame.h"
#include "engine/sealed_state.h"
#include "mock/raw_util.h"

static struct raw_seal seal;
static struct raw_iface *iface;

static struct rte_mbuf *spare(uint32_t size)
{
	struct rte_mbuf *m = raw_sealed_spare(iface, size);

	assert_non_null(m);
	assert_int_equal(m->pkt_len, size);
	assert_int_equal(m->data_len, size);
	assert_int_equal(m->data_off, RTE_PKTMBUF_HEADROOM);
	return m;
}

/* It has two references: the port drops one when the frame has left. */
static void a_released_buffer_is_used_again(void **state)
{
	struct rte_mbuf *m, *other;

	(void)state;
	pair_open(&pair, NULL, 71);
	iface = raw_iface_of(A->iface);
	seal = (struct raw_seal){0};
	iface->seal = &seal;
	m = spare(100);
	assert_ptr_equal(seal.spare, m);
	assert_ptr_equal(m->pool, iface->port->hdr_pool);
	assert_int_equal(rte_mbuf_refcnt_read(m), 2);
	/* The port still has it: a buffer that stays nowhere. */
	other = spare(100);
	assert_ptr_not_equal(other, m);
	assert_int_equal(rte_mbuf_refcnt_read(other), 1);
	assert_ptr_equal(seal.spare, m);
	rte_pktmbuf_free(other);
	rte_pktmbuf_free(m);
	m->ol_flags = RTE_MBUF_F_TX_UDP_CKSUM;
	m->data_off = 0;
	assert_ptr_equal(spare(60), m);
	assert_int_equal(m->ol_flags, 0);
	assert_int_equal(rte_mbuf_refcnt_read(m), 2);
	rte_pktmbuf_free(m);
	/* The longest frame that fits, and one byte more. */
	assert_ptr_equal(spare(m->buf_len - RTE_PKTMBUF_HEADROOM), m);
	rte_pktmbuf_free(m);
	other = spare(m->buf_len - RTE_PKTMBUF_HEADROOM + 1u);
	assert_ptr_not_equal(other, m);
	assert_ptr_equal(other->pool, iface->port->pool);
	rte_pktmbuf_free(other);
	raw_sealed_spare_free(iface);
	assert_null(seal.spare);
	iface->seal = NULL;
	raw_sealed_spare_free(iface);
	pair_close(&pair);
}

/* Long frames are rare: their buffers come from the other pool, and none is kept. */
static void a_long_frame_keeps_no_buffer(void **state)
{
	struct rte_mbuf *m;

	(void)state;
	pair_open(&pair, NULL, 72);
	iface = raw_iface_of(A->iface);
	seal = (struct raw_seal){0};
	iface->seal = &seal;
	m = spare(5000);
	assert_null(seal.spare);
	assert_int_equal(rte_mbuf_refcnt_read(m), 1);
	assert_ptr_equal(m->pool, iface->port->pool);
	rte_pktmbuf_free(m);
	iface->seal = NULL;
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_released_buffer_is_used_again),
		cmocka_unit_test(a_long_frame_keeps_no_buffer),
	};

	return cmocka_run_group_tests_name("buffers of sealed frames", tests, NULL, NULL);
}
