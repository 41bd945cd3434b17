/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * User memory on the wire with the raw-DPDK engine: when it is the caller's again.
 */

#include "engine/iface.h"
#include "common/pattern.h"
#include "mock/raw_util.h"

static void zcopy_completes_after_ack_and_release(void **state)
{
	static uint8_t user[8000];
	struct weft_lane_comp comp = {.done = on_done};
	struct {
		uint32_t n, len;
	} hdr = {3, sizeof(user)};
	struct iovec iov[2] = {{user, 3000}, {user + 3000, 5000}};

	(void)state;
	pattern_fill(3, 0, user, sizeof(user));
	for (unsigned int csum = WEFT_CSUM_NONE; csum <= WEFT_CSUM_CRC32C; csum++) {
		struct pair_params pp = {.csum = csum};

		pair_open(&pair, &pp, 17);
		pair_connect(&pair);
		A->wire.hold_sent = true;
		done_count = 0;
		assert_true(A->iface->attr.features & WEFT_LANE_F_ZCOPY);
		assert_int_equal(A->iface->ops->am_zcopy(A->lane_ep, 5, &hdr, sizeof(hdr), iov, 2,
							 NULL, &comp),
				 0);
		assert_int_equal(done_count, 0);
		pair_run(&pair, 10000000, NULL);
		assert_int_equal(B->messages, 1);
		assert_int_equal(B->bad, 0);
		assert_int_equal(done_count, 1); /* idle progress kicked the port */
		assert_int_equal(done_status, 0);
		pair_close(&pair);
	}
}

/* In a port of memory the copy into a frame is one of two, with a system call one of four. */
static void ports_that_copy_in_a_system_call_send_long_messages_from_user_memory(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct pair_params pp = {.network = i & 1, .copies = i & 2};

		pair_open(&pair, &pp, 43);
		assert_true(A->iface->attr.features & WEFT_LANE_F_ZCOPY);
		assert_true(A->iface->attr.max_zcopy != 0);
		assert_int_equal(A->iface->attr.min_zcopy, i == 3 ? 65536 : 0);
		pair_close(&pair);
	}
}

static uint16_t (*pair_tx)(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n);
static unsigned int most_at_once;

static uint16_t count_tx(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n)
{
	most_at_once = RTE_MAX(most_at_once, n);
	return pair_tx(port, pkts, n);
}

/* A port states how many frames one call should have. The engine's queue limits the number. */
static void a_port_gets_the_batches_that_it_states(void **state)
{
	static const struct {
		uint16_t states, gets;
	} batch[] = {{0, 16}, {44, 44}, {1000, 48}};
	static struct weft_lane_comp comp = {.done = on_done};
	struct weft_frame_port_ops ops;
	static uint8_t user[1400];
	struct iovec iov = {user, sizeof(user)};

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(batch); i++) {
		struct pair_params pp = {
			.frame_size = {1514, 1514},
			.cc = WEFT_CC_FIXED,
			.tx_batch = batch[i].states,
		};

		pair_open(&pair, &pp, 44);
		pair_connect(&pair);
		pair_tx = A->port.ops->tx_burst;
		ops = *A->port.ops;
		ops.tx_burst = count_tx;
		A->port.ops = &ops;
		most_at_once = 0;
		for (unsigned int k = 0; k < 200; k++)
			assert_int_equal(A->iface->ops->am_zcopy(A->lane_ep, 5, "header", 6, &iov,
								 1, NULL, &comp),
					 0);
		assert_int_equal(most_at_once, batch[i].gets);
		pair_run(&pair, 10000000, NULL);
		assert_int_equal(B->messages, 200);
		pair_close(&pair);
	}
}

static void destroy_on_done(struct weft_lane_comp *comp, int status)
{
	(void)comp;
	(void)status;
	A->lane_ep->ops->ep_destroy(A->lane_ep);
}

static void acknowledged_zcopy_has_succeeded_though_its_ep_is_destroyed(void **state)
{
	static uint8_t user[8000];
	struct weft_lane_comp comp = {.done = on_done}, flush = {.done = destroy_on_done};
	struct {
		uint32_t n, len;
	} hdr = {3, sizeof(user)};
	struct iovec iov = {user, sizeof(user)};

	(void)state;
	pair_open(&pair, NULL, 118);
	pair_connect(&pair);
	done_count = 0;
	assert_int_equal(
		A->iface->ops->am_zcopy(A->lane_ep, 5, &hdr, sizeof(hdr), &iov, 1, NULL, &comp), 0);
	assert_int_equal(A->iface->ops->ep_flush(A->lane_ep, &flush), 0);
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(B->messages, 1);
	assert_int_equal(done_count, 1);
	assert_int_equal(done_status, 0);
	pair_close(&pair);
}

static void zcopy_survives_loss(void **state)
{
	static uint8_t user[8000];
	static struct weft_lane_comp comp = {.done = on_done};
	struct {
		uint32_t n, len;
	} hdr = {.n = 3, .len = 7000}; /* the same contents for all */
	struct iovec iov = {user, 7000};
	unsigned int sent = 0;
	int err;

	(void)state;
	for (int late = 0; late < 2; late++) {
		struct pair_params pp = {.csum = late ? WEFT_CSUM_CRC32C : WEFT_CSUM_AUTO,
					 .cc = WEFT_CC_FIXED,
					 .paths = 2};

		pair_open(&pair, &pp, 19);
		A->wire.loss = 0.1;
		B->wire.loss = 0.1;
		A->wire.hold_sent = late;
		pair_connect(&pair);
		pattern_fill(3, 0, user, sizeof(user));
		done_count = 0;
		for (sent = 0; sent < 400;) {
			err = A->iface->ops->am_zcopy(A->lane_ep, 5, &hdr, sizeof(hdr), &iov, 1,
						      NULL, &comp);
			if (err == 0)
				sent++;
			else
				assert_int_equal(err, -EAGAIN);
			pair_step(&pair, 1000);
		}
		pair_run(&pair, 2000000000, NULL);
		assert_int_equal(done_count, 400);
		assert_int_equal(B->messages, 400);
		assert_int_equal(B->bad, 0);
		assert_true(!late || pair_counter(A, RAW_TX_RETX_COPY) > 0);
		pair_close(&pair);
	}
}

static void zcopy_of_destroyed_ep_waits_for_hardware(void **state)
{
	static uint8_t user[8000];
	struct weft_lane_comp comp = {.done = on_done};
	struct {
		uint32_t n, len;
	} hdr = {3, sizeof(user)};
	struct iovec iov = {user, sizeof(user)};

	(void)state;
	pair_open(&pair, NULL, 19);
	pair_connect(&pair);
	done_count = 0;
	A->wire.full = true;
	assert_int_equal(
		A->iface->ops->am_zcopy(A->lane_ep, 5, &hdr, sizeof(hdr), &iov, 1, NULL, &comp), 0);
	A->iface->ops->ep_destroy(A->lane_ep);
	assert_int_equal(done_count, 0);
	A->wire.full = false;
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(done_count, 1);
	assert_int_equal(done_status, -ECANCELED);
	pair_close(&pair);
}

/*
 * One way only: nothing comes back that an acknowledgement could ride on, and the sender waits for
 * its memory.
 */
static void zcopy_one_way_does_not_wait_for_a_delayed_ack(void **state)
{
	static uint8_t buf[8192];
	struct weft_lane_comp comp = {.done = on_done};
	struct iovec iov = {.iov_base = buf, .iov_len = sizeof(buf)};
	uint64_t begin, acks;

	(void)state;
	pair_open(&pair, &pair_fixed, 41);
	pair_connect(&pair);
	pair_run(&pair, 1000000, NULL);
	B->on_message = nothing;
	for (unsigned int i = 0; i < 20; i++) {
		done_count = 0;
		begin = pair.now;
		assert_int_equal(A->iface->ops->am_zcopy(A->lane_ep, 5, "header", 6, &iov, 1, NULL,
							 &comp),
				 0);
		assert_true(pair_run(&pair, 1000000, comp_done));
		/* Two ways of 2 us, and a poll in between. */
		assert_true(pair.now - begin <= 7000);
	}
	/* A stream asks once per round trip, not with each frame. */
	acks = pair_counter(B, RAW_TX_ACKS);
	done_count = 0;
	for (unsigned int i = 0; i < 64; i++)
		assert_int_equal(A->iface->ops->am_zcopy(A->lane_ep, 5, "header", 6, &iov, 1, NULL,
							 &comp),
				 0);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(done_count, 64);
	assert_true(pair_counter(B, RAW_TX_ACKS) - acks < 24);
	pair_close(&pair);
}

static void zcopy_pong(struct pair_end *e, struct weft_lane_ep *lane_ep, const void *data,
		       size_t len)
{
	static uint8_t buf[8192];
	static struct weft_lane_comp comp = {.done = on_done};
	struct iovec iov = {.iov_base = buf, .iov_len = sizeof(buf)};

	(void)len;
	if (e->messages < 500)
		assert_int_equal(e->iface->ops->am_zcopy(lane_ep, 5, data, 8, &iov, 1, NULL, &comp),
				 0);
}

static void zcopy_answers_carry_the_acknowledgement(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 42);
	pair_connect(&pair);
	A->on_message = zcopy_pong;
	B->on_message = zcopy_pong;
	pair_send(A, A->lane_ep, 0, 0);
	pair_run(&pair, 20000000, NULL);
	assert_true(A->messages >= 499);
	assert_true(pair_counter(A, RAW_TX_ACKS) < 20);
	assert_true(pair_counter(B, RAW_TX_ACKS) < 20);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_gets_the_batches_that_it_states),
		cmocka_unit_test(acknowledged_zcopy_has_succeeded_though_its_ep_is_destroyed),
		cmocka_unit_test(zcopy_completes_after_ack_and_release),
		cmocka_unit_test(zcopy_survives_loss),
		cmocka_unit_test(zcopy_of_destroyed_ep_waits_for_hardware),
		cmocka_unit_test(zcopy_one_way_does_not_wait_for_a_delayed_ack),
		cmocka_unit_test(zcopy_answers_carry_the_acknowledgement),
		cmocka_unit_test(
			ports_that_copy_in_a_system_call_send_long_messages_from_user_memory),
	};

	return cmocka_run_group_tests_name("raw_zcopy", tests, NULL, NULL);
}
