/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The raw-DPDK lane engine between two ifaces: what lane.h promises, below the protocol layer.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "raw_pair.h"

static struct pair pair;

static struct pair_end *A = &pair.end[0], *B = &pair.end[1];

/* ---- helpers ---- */

static uint32_t want;

static bool all_there(struct pair *p)
{
	return p->end[1].messages >= want;
}

/* Send `count` messages from A to B with lengths up to `max`, and see each arrive exactly once. */
static void stream(uint32_t count, uint32_t max, uint64_t max_ns)
{
	uint64_t end = pair.now + max_ns;
	uint32_t n = 0, len;
	int err;

	B->seen = calloc(1, count);
	B->seen_len = count;
	B->messages = 0;
	want = count;
	while (n < count && pair.now < end) {
		len = max < 8 ? max : (uint32_t)(pair_rand(&pair) % max);
		err = pair_send(A, A->lep, n, len);
		if (err == 0) {
			n++;
			if (pair_rand(&pair) % 4)
				continue;
		} else {
			assert_int_equal(err, -EAGAIN);
		}
		pair_step(&pair, 1000);
	}
	assert_int_equal(n, count);
	assert_true(pair_run(&pair, max_ns, all_there));
	pair_run(&pair, 100000000, NULL);
	for (n = 0; n < count; n++) {
		if (B->seen[n] != 1)
			fail_msg("message %u came %u times", n, B->seen[n]);
	}
	assert_int_equal(B->bad, 0);
	assert_int_equal(A->lep->queued, 0);
	free(B->seen);
	B->seen = NULL;
}

static unsigned int done_count;
static int done_status;

static void on_done(struct weft_lane_comp *comp, int status)
{
	(void)comp;
	done_count++;
	done_status = status;
}

static bool comp_done(struct pair *p)
{
	(void)p;
	return done_count > 0;
}

static void nothing(struct pair_end *e, struct weft_lane_ep *lep, const void *data, size_t len)
{
	(void)e;
	(void)lep;
	(void)data;
	(void)len;
}

/* ---- tests ---- */

static void connects_and_says_so(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 1);
	pair_connect(&pair);
	assert_int_equal(A->ups, 1);
	assert_int_equal(B->ups, 1);
	assert_true(B->accepted->passive);
	assert_null(B->accepted->user);
	assert_int_equal(A->lep->max_msg, B->accepted->max_msg);
	pair_close(&pair);
}

static void first_message_leaves_at_once_and_others_share_a_frame(void **state)
{
	uint64_t frames;

	(void)state;
	pair_open(&pair, NULL, 2);
	pair_connect(&pair);
	frames = pair_counter(A, RAW_TX_DATA);
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(pair_send(A, A->lep, i, 8), 0);
	assert_int_equal(pair_counter(A, RAW_TX_DATA) - frames, 1);
	pair_run(&pair, 10000, NULL);
	assert_int_equal(pair_counter(A, RAW_TX_DATA) - frames, 2);
	assert_int_equal(B->messages, 50);
	assert_int_equal(B->bad, 0);
	pair_close(&pair);
}

static void delivers_all_sizes(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 3);
	pair_connect(&pair);
	stream(3000, A->lep->max_msg - 8, 1000000000);
	assert_int_equal(pair_counter(A, RAW_TX_FAST) + pair_counter(A, RAW_TX_RTO), 0);
	assert_int_equal(pair_send(A, A->lep, 0, A->lep->max_msg - 7), -EMSGSIZE);
	pair_close(&pair);
}

static void survives_loss_duplication_and_reordering(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct pair_params pp = {.first_seq = 0xffffffffu - 700,
					 .paths = (uint8_t)(1 + seed % 4)};

		pair_open(&pair, &pp, seed);
		for (int i = 0; i < 2; i++) {
			pair.end[i].wire.loss = 0.02;
			pair.end[i].wire.dup = 0.02;
			pair.end[i].wire.reorder = 0.05;
		}
		pair_connect(&pair);
		stream(2000, 3000, 10000000000ull);
		pair_close(&pair);
	}
}

static void survives_heavy_loss(void **state)
{
	struct pair_params pp = {.first_seq = 0xfffffff0u};

	(void)state;
	pair_open(&pair, &pp, 7);
	A->wire.loss = 0.4;
	B->wire.loss = 0.4;
	pair_connect(&pair);
	stream(500, 8000, 100000000000ull);
	pair_close(&pair);
}

static void corrupt_frames_are_dropped_with_crc32c(void **state)
{
	struct pair_params pp = {.csum = WEFT_CSUM_CRC32C};

	(void)state;
	pair_open(&pair, &pp, 8);
	A->wire.corrupt = 0.05;
	B->wire.corrupt = 0.05;
	pair_connect(&pair);
	stream(3000, 4000, 10000000000ull);
	assert_true(pair_counter(B, RAW_DROP_BAD_CSUM) > 0);
	pair_close(&pair);
}

static void works_on_ethertype_and_vlan(void **state)
{
	struct pair_params pp = {.raw_ethertype = true, .vlan = 7};

	(void)state;
	pair_open(&pair, &pp, 9);
	pair_connect(&pair);
	stream(500, 5000, 1000000000);
	pair_close(&pair);
	pp = (struct pair_params){.vlan = 9, .csum = WEFT_CSUM_UDP};
	pair_open(&pair, &pp, 9);
	pair_connect(&pair);
	stream(500, 5000, 1000000000);
	pair_close(&pair);
}

static void frame_size_is_the_smaller_one(void **state)
{
	struct pair_params pp = {.frame_size = {9018, 1518}};

	(void)state;
	pair_open(&pair, &pp, 10);
	pair_connect(&pair);
	assert_int_equal(A->status, 0);
	assert_int_equal(A->lep->max_msg, B->accepted->max_msg);
	assert_true(A->lep->max_msg < 1500);
	stream(500, A->lep->max_msg - 8, 1000000000);
	pair_close(&pair);
}

static void narrow_way_is_found_and_named(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 11);
	A->wire.max_frame = 1518;
	B->wire.max_frame = 1518;
	pair_connect(&pair);
	assert_int_equal(A->status, 1);
	assert_non_null(strstr(A->text, "9018"));
	assert_true(A->lep->max_msg < 1500 && A->lep->max_msg > 1380);
	stream(500, A->lep->max_msg - 8, 1000000000);
	pair_close(&pair);

	pair_open(&pair, NULL, 11);
	A->wire.max_frame = 1000;
	B->iface->ops->get_address(B->iface, A->text);
	assert_int_equal(A->iface->ops->ep_connect(A->iface, A->text, B->iface->attr.dev_addr_len,
						   A, &A->lep),
			 0);
	pair_run(&pair, 3000000000ull, NULL);
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -EMSGSIZE);
	assert_non_null(strstr(A->text, "MTU"));
	pair_close(&pair);
}

static void peer_that_does_not_poll_keeps_its_frame_size(void **state)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];

	(void)state;
	pair_open(&pair, NULL, 12);
	B->iface->ops->get_address(B->iface, addr);
	assert_int_equal(A->iface->ops->ep_connect(A->iface, addr, B->iface->attr.dev_addr_len, A,
						   &A->lep),
			 0);
	for (int i = 0; i < 1000; i++) {
		A->iface->ops->progress(A->iface, pair.now);
		pair.now += 1000000;
	}
	assert_true(pair_run(&pair, 1000000000, pair_both_up));
	assert_int_equal(A->status, 0);
	assert_true(A->lep->max_msg > 8900);
	pair_close(&pair);
}

static void pause_of_ten_seconds_is_no_failure(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 13);
	pair_connect(&pair);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(pair_send(A, A->lep, 1000000 + i, 4000), 0);
	for (int i = 0; i < 100000; i++) {
		A->iface->ops->progress(A->iface, pair.now);
		pair.now += 100000;
	}
	assert_int_equal(A->downs, 0);
	assert_true(pair_counter(A, RAW_TX_RTO) < 400);
	stream(300, 4000, 1000000000);
	pair_close(&pair);
}

static void own_pause_is_no_failure(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 14);
	pair_connect(&pair);
	assert_int_equal(pair_send(A, A->lep, 1000000, 4000), 0);
	pair.now += 60000000000ull;
	stream(300, 4000, 1000000000);
	assert_int_equal(A->downs + B->downs, 0);
	pair_close(&pair);
}

static void silent_peer_is_dead_after_the_timeout(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 15);
	pair_connect(&pair);
	B->wire.blackhole = true;
	for (int i = 0; i < 40000 && A->downs == 0; i++)
		pair_step(&pair, 1000000);
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -ETIMEDOUT);
	assert_int_equal(pair_send(A, A->lep, 0, 8), -ETIMEDOUT);
	assert_in_range(pair.now, 5000000000ull + 29000000000ull, 5000000000ull + 34000000000ull);
	pair_close(&pair);
}

static void silent_peer_behind_a_full_port_is_dead_too(void **state)
{
	uint32_t n = 0;

	(void)state;
	pair_open(&pair, NULL, 115);
	pair_connect(&pair);
	A->wire.full = true; /* as memif does when its peer has gone */
	B->wire.blackhole = true;
	for (int i = 0; i < 40000 && A->downs == 0; i++) {
		while (A->downs == 0 && pair_send(A, A->lep, n, 8000) == 0)
			n++;
		pair_step(&pair, 1000000);
		B->queued = 0;
	}
	assert_in_range(n, RAW_TXQ, 2 * RAW_TXQ);
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -ETIMEDOUT);
	A->wire.full = false;
	pair_close(&pair);
}

static void way_that_becomes_too_narrow_is_said(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};

	(void)state;
	pair_open(&pair, NULL, 116);
	pair_connect(&pair);
	A->wire.max_frame = 1518;
	done_count = 0;
	assert_int_equal(pair_send(A, A->lep, 0, 8000), 0);
	assert_int_equal(A->iface->ops->ep_flush(A->lep, &comp), 0);
	for (int i = 0; i < 40000 && A->downs == 0; i++)
		pair_step(&pair, 1000000);
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -ETIMEDOUT);
	assert_non_null(strstr(A->text, "answers, but a frame of"));
	assert_int_equal(done_count, 1);
	assert_int_equal(done_status, -ETIMEDOUT);
	pair_close(&pair);
}

static void destroy_at_second(struct pair_end *e, struct weft_lane_ep *lep, const void *data,
			      size_t len)
{
	(void)data;
	(void)len;
	if (e->messages != 2)
		return;
	e->wire.blackhole = true; /* BYE is lost */
	lep->ops->ep_destroy(lep);
}

static void what_a_destroyed_ep_did_not_take_is_not_acknowledged(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};

	(void)state;
	pair_open(&pair, NULL, 117);
	pair_connect(&pair);
	/* One frame under way, so that the next two messages share one. */
	assert_int_equal(pair_send(A, A->lep, 0, 8), 0);
	for (uint32_t i = 1; i < 3; i++)
		assert_int_equal(pair_send(A, A->lep, i, 8), 0);
	done_count = 0;
	assert_int_equal(A->iface->ops->ep_flush(A->lep, &comp), 0);
	B->on_message = destroy_at_second;
	while (B->messages < 2)
		pair_step(&pair, 100);
	B->wire.blackhole = false;
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(B->messages, 2);
	assert_int_equal(done_count, 1);
	assert_int_equal(done_status, -ECONNRESET);
	pair_close(&pair);
}

static void restarted_peer_is_known_at_once(void **state)
{
	struct raw_iface *b;

	(void)state;
	pair_open(&pair, NULL, 16);
	pair_connect(&pair);
	b = (struct raw_iface *)B->iface;
	/* The peer forgets everything, as a new process would. */
	raw_conn_free(raw_conn_of(B->accepted));
	(void)b;
	assert_int_equal(pair_send(A, A->lep, 0, 8), 0);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -ECONNRESET);
	assert_int_equal(B->messages, 0);
	assert_true(pair_counter(B, RAW_DROP_STRANGER) > 0);
	pair_close(&pair);
}

static void zcopy_completes_after_ack_and_release(void **state)
{
	static uint8_t user[8000];
	struct weft_lane_comp comp = {.done = on_done};
	struct {
		uint32_t n, len;
	} hdr = {3, sizeof(user)};
	struct iovec iov[2] = {{user, 3000}, {user + 3000, 5000}};

	(void)state;
	for (uint32_t i = 0; i < sizeof(user); i++)
		user[i] = (uint8_t)(3 * 7 + i);
	for (unsigned int csum = WEFT_CSUM_NONE; csum <= WEFT_CSUM_CRC32C; csum++) {
		struct pair_params pp = {.csum = csum};

		pair_open(&pair, &pp, 17);
		pair_connect(&pair);
		A->wire.hold_sent = true;
		done_count = 0;
		assert_true(A->iface->attr.features & WEFT_LANE_F_ZCOPY);
		assert_int_equal(A->iface->ops->am_zcopy(A->lep, 5, &hdr, sizeof(hdr), iov, 2, NULL,
							 &comp),
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

static void destroy_on_done(struct weft_lane_comp *comp, int status)
{
	(void)comp;
	(void)status;
	A->lep->ops->ep_destroy(A->lep);
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
		A->iface->ops->am_zcopy(A->lep, 5, &hdr, sizeof(hdr), &iov, 1, NULL, &comp), 0);
	assert_int_equal(A->iface->ops->ep_flush(A->lep, &flush), 0);
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
	} hdr = {.len = 7000};
	struct iovec iov = {user, 7000};
	unsigned int sent = 0;
	int err;

	(void)state;
	for (int late = 0; late < 2; late++) {
		struct pair_params pp = {.csum = late ? WEFT_CSUM_CRC32C : WEFT_CSUM_AUTO,
					 .paths = 2};

		pair_open(&pair, &pp, 18);
		A->wire.loss = 0.1;
		B->wire.loss = 0.1;
		A->wire.hold_sent = late;
		pair_connect(&pair);
		for (uint32_t i = 0; i < sizeof(user); i++)
			user[i] = (uint8_t)i;
		done_count = 0;
		for (sent = 0; sent < 400;) {
			hdr.n = 256 * sent; /* the same fill for all */
			err = A->iface->ops->am_zcopy(A->lep, 5, &hdr, sizeof(hdr), &iov, 1, NULL,
						      &comp);
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
		A->iface->ops->am_zcopy(A->lep, 5, &hdr, sizeof(hdr), &iov, 1, NULL, &comp), 0);
	A->iface->ops->ep_destroy(A->lep);
	assert_int_equal(done_count, 0);
	A->wire.full = false;
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(done_count, 1);
	assert_int_equal(done_status, -ECANCELED);
	pair_close(&pair);
}

static void flush_waits_for_acknowledgement(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};

	(void)state;
	pair_open(&pair, NULL, 20);
	pair_connect(&pair);
	done_count = 0;
	assert_int_equal(A->iface->ops->ep_flush(A->lep, &comp), WEFT_LANE_IDLE);
	for (uint32_t i = 0; i < 5; i++)
		pair_send(A, A->lep, i, 100);
	assert_int_equal(A->iface->ops->ep_flush(A->lep, &comp), 0);
	assert_int_equal(done_count, 0);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(done_count, 1);
	assert_int_equal(B->messages, 5);
	pair_close(&pair);
}

static void close_in_good_order_is_gone(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 21);
	pair_connect(&pair);
	stream(50, 4000, 100000000);
	A->iface->ops->ep_destroy(A->lep);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(B->gones, 1);
	assert_int_equal(B->downs, 0);
	assert_int_equal(A->downs + A->gones, 0);
	B->iface->ops->ep_destroy(B->accepted);
	for (int i = 0; i < 3000; i++)
		pair_step(&pair, 1000000);
	assert_int_equal(((struct raw_iface *)A->iface)->conn_count, 0);
	assert_int_equal(((struct raw_iface *)B->iface)->conn_count, 0);
	pair_close(&pair);
}

static void bye_may_overtake_data(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 29);
	pair_connect(&pair);
	pair_send(A, A->lep, 0, 100);
	A->wire.delay_ns = 500000; /* the second message is slow */
	pair_send(A, A->lep, 1, 8000);
	pair_step(&pair, 1000);
	A->wire.delay_ns = 2000;
	A->iface->ops->ep_destroy(A->lep);
	pair_run(&pair, 300000, NULL);
	assert_int_equal(B->gones + B->downs, 0);
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(B->messages, 2);
	assert_int_equal(B->gones, 1);
	pair_close(&pair);
}

static void bye_before_lost_data_is_a_failure(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 30);
	pair_connect(&pair);
	A->wire.blackhole = true;
	pair_send(A, A->lep, 0, 100);
	pair_step(&pair, 1000);
	A->wire.blackhole = false;
	A->iface->ops->ep_destroy(A->lep);
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(B->downs, 1);
	assert_int_equal(B->status, -ECONNRESET);
	assert_int_equal(B->gones, 0);
	pair_close(&pair);
}

static void closed_ep_still_acknowledges(void **state)
{
	struct weft_lane_comp comp = {.done = on_done};

	(void)state;
	pair_open(&pair, NULL, 22);
	pair_connect(&pair);
	done_count = 0;
	/* B's acknowledgement is lost, B closes, A's repetition must still find it. */
	pair_send(A, A->lep, 0, 100);
	assert_int_equal(A->iface->ops->ep_flush(A->lep, &comp), 0);
	B->wire.blackhole = true;
	pair_run(&pair, 50000, NULL);
	assert_int_equal(B->messages, 1);
	B->iface->ops->ep_destroy(B->accepted);
	pair_run(&pair, 50000, NULL);
	B->wire.blackhole = false;
	pair_run(&pair, 100000000, NULL);
	assert_int_equal(done_count, 1);
	assert_int_equal(done_status, 0);
	assert_int_equal(A->gones, 1);
	pair_close(&pair);
}

static void kept_buffers_never_stop_acknowledgements(void **state)
{
	struct pair_params pp = {.bufs = 1023, .rx_depth = 128};

	(void)state;
	pair_open(&pair, &pp, 23);
	pair_connect(&pair);
	B->keep = true;
	stream(2000, 8000, 1000000000);
	assert_true(B->kept_count > 100);
	assert_true(pair_counter(B, RAW_RX_COPY_ONLY) > 0);
	pair_close(&pair);
}

static void full_tx_ring_is_an_answer(void **state)
{
	uint32_t n = 0;

	(void)state;
	pair_open(&pair, NULL, 24);
	pair_connect(&pair);
	A->wire.full = true;
	while (pair_send(A, A->lep, n, 8000) == 0)
		n++;
	assert_true(n > 1 && n < 1000);
	A->wire.full = false;
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(B->messages, n);
	assert_int_equal(pair_counter(A, RAW_TX_RTO), 0);
	pair_close(&pair);
}

static void connects_through_a_gateway(void **state)
{
	struct pair_params pp = {.off_subnet = true};
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	struct raw_iface *b;

	(void)state;
	pair_open(&pair, &pp, 25);
	/* B's wire end plays the router: it answers for the gateway's address. */
	b = (struct raw_iface *)B->iface;
	b->arp.ip = 0x0a000002;
	B->iface->ops->get_address(B->iface, addr);
	assert_int_equal(A->iface->ops->ep_connect(A->iface, addr, B->iface->attr.dev_addr_len, A,
						   &A->lep),
			 0);
	assert_true(pair_run(&pair, 1000000000, pair_both_up));
	stream(10, 100, 100000000);
	pair_close(&pair);
}

static void nobody_answers_names_the_step(void **state)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];

	(void)state;
	pair_open(&pair, NULL, 26);
	B->iface->ops->get_address(B->iface, addr);
	B->wire.blackhole = true;
	assert_int_equal(A->iface->ops->ep_connect(A->iface, addr, B->iface->attr.dev_addr_len, A,
						   &A->lep),
			 0);
	for (int i = 0; i < 4000; i++)
		pair_step(&pair, 1000000);
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -ETIMEDOUT);
	assert_non_null(strstr(A->text, "ARP"));
	assert_non_null(strstr(A->text, "10.0.0.2"));
	pair_close(&pair);
}

static void address_of_a_former_life_is_refused(void **state)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];

	(void)state;
	pair_open(&pair, NULL, 27);
	B->iface->ops->get_address(B->iface, addr);
	addr[24] ^= 0x10;
	assert_int_equal(A->iface->ops->ep_connect(A->iface, addr, B->iface->attr.dev_addr_len, A,
						   &A->lep),
			 0);
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(A->downs, 1);
	assert_int_equal(A->status, -ECONNREFUSED);
	assert_non_null(strstr(A->text, "gone"));
	pair_close(&pair);
}

enum { MANY = 600 };

static bool many_up(struct pair *p)
{
	return p->end[0].ups == MANY && p->end[1].ups == MANY;
}

/* More than may be half-open at a time: some are told to try again, all come up, each exactly once.
 */
static void six_hundred_connects_at_once(void **state)
{
	static struct weft_lane_ep *lep[MANY];
	uint8_t addr[WEFT_LANE_ADDR_MAX];

	(void)state;
	pair_open(&pair, NULL, 31);
	B->iface->ops->get_address(B->iface, addr);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(A->iface->ops->ep_connect(A->iface, addr,
							   B->iface->attr.dev_addr_len, A, &lep[i]),
				 0);
	assert_true(pair_run(&pair, 2000000000, many_up));
	assert_int_equal(A->downs + B->downs, 0);
	assert_int_equal(((struct raw_iface *)B->iface)->half_open, 0);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(pair_send(A, lep[i], i, 10), 0);
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(B->messages, MANY);
	assert_int_equal(B->bad, 0);
	pair_close(&pair);
}

static void ping_pong(struct pair_end *e, struct weft_lane_ep *lep, const void *data, size_t len)
{
	(void)len;
	if (e->messages < 1000)
		assert_int_equal(e->iface->ops->am_short(lep, 5, data, 8, NULL, 0), 0);
}

static void acknowledgements_ride_on_answers(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 28);
	pair_connect(&pair);
	A->on_message = ping_pong;
	B->on_message = ping_pong;
	pair_send(A, A->lep, 0, 0);
	pair_run(&pair, 20000000, NULL);
	assert_true(A->messages >= 999);
	assert_true(pair_counter(A, RAW_TX_ACKS) < 20);
	assert_true(pair_counter(B, RAW_TX_ACKS) < 20);
	assert_int_equal(pair_counter(A, RAW_TX_FAST) + pair_counter(A, RAW_TX_PROBE) +
				 pair_counter(A, RAW_TX_RTO),
			 0);
	assert_in_range(A->lep->rtt_ns, 1000, 20000);
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
	pair_open(&pair, NULL, 41);
	pair_connect(&pair);
	pair_run(&pair, 1000000, NULL);
	B->on_message = nothing;
	for (unsigned int i = 0; i < 20; i++) {
		done_count = 0;
		begin = pair.now;
		assert_int_equal(
			A->iface->ops->am_zcopy(A->lep, 5, "header", 6, &iov, 1, NULL, &comp), 0);
		assert_true(pair_run(&pair, 1000000, comp_done));
		/* Two ways of 2 us, and a poll in between. */
		assert_true(pair.now - begin <= 7000);
	}
	/* A stream asks once per round trip, not with each frame. */
	acks = pair_counter(B, RAW_TX_ACKS);
	done_count = 0;
	for (unsigned int i = 0; i < 64; i++)
		assert_int_equal(
			A->iface->ops->am_zcopy(A->lep, 5, "header", 6, &iov, 1, NULL, &comp), 0);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(done_count, 64);
	assert_true(pair_counter(B, RAW_TX_ACKS) - acks < 24);
	pair_close(&pair);
}

static void zcopy_pong(struct pair_end *e, struct weft_lane_ep *lep, const void *data, size_t len)
{
	static uint8_t buf[8192];
	static struct weft_lane_comp comp = {.done = on_done};
	struct iovec iov = {.iov_base = buf, .iov_len = sizeof(buf)};

	(void)len;
	if (e->messages < 500)
		assert_int_equal(e->iface->ops->am_zcopy(lep, 5, data, 8, &iov, 1, NULL, &comp), 0);
}

static void zcopy_answers_carry_the_acknowledgement(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 42);
	pair_connect(&pair);
	A->on_message = zcopy_pong;
	B->on_message = zcopy_pong;
	pair_send(A, A->lep, 0, 0);
	pair_run(&pair, 20000000, NULL);
	assert_true(A->messages >= 499);
	assert_true(pair_counter(A, RAW_TX_ACKS) < 20);
	assert_true(pair_counter(B, RAW_TX_ACKS) < 20);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connects_and_says_so),
		cmocka_unit_test(first_message_leaves_at_once_and_others_share_a_frame),
		cmocka_unit_test(delivers_all_sizes),
		cmocka_unit_test(survives_loss_duplication_and_reordering),
		cmocka_unit_test(survives_heavy_loss),
		cmocka_unit_test(corrupt_frames_are_dropped_with_crc32c),
		cmocka_unit_test(works_on_ethertype_and_vlan),
		cmocka_unit_test(frame_size_is_the_smaller_one),
		cmocka_unit_test(narrow_way_is_found_and_named),
		cmocka_unit_test(peer_that_does_not_poll_keeps_its_frame_size),
		cmocka_unit_test(pause_of_ten_seconds_is_no_failure),
		cmocka_unit_test(own_pause_is_no_failure),
		cmocka_unit_test(silent_peer_is_dead_after_the_timeout),
		cmocka_unit_test(silent_peer_behind_a_full_port_is_dead_too),
		cmocka_unit_test(way_that_becomes_too_narrow_is_said),
		cmocka_unit_test(what_a_destroyed_ep_did_not_take_is_not_acknowledged),
		cmocka_unit_test(acknowledged_zcopy_has_succeeded_though_its_ep_is_destroyed),
		cmocka_unit_test(restarted_peer_is_known_at_once),
		cmocka_unit_test(zcopy_completes_after_ack_and_release),
		cmocka_unit_test(zcopy_survives_loss),
		cmocka_unit_test(zcopy_of_destroyed_ep_waits_for_hardware),
		cmocka_unit_test(flush_waits_for_acknowledgement),
		cmocka_unit_test(close_in_good_order_is_gone),
		cmocka_unit_test(bye_may_overtake_data),
		cmocka_unit_test(bye_before_lost_data_is_a_failure),
		cmocka_unit_test(closed_ep_still_acknowledges),
		cmocka_unit_test(kept_buffers_never_stop_acknowledgements),
		cmocka_unit_test(full_tx_ring_is_an_answer),
		cmocka_unit_test(connects_through_a_gateway),
		cmocka_unit_test(nobody_answers_names_the_step),
		cmocka_unit_test(address_of_a_former_life_is_refused),
		cmocka_unit_test(six_hundred_connects_at_once),
		cmocka_unit_test(acknowledgements_ride_on_answers),
		cmocka_unit_test(zcopy_one_way_does_not_wait_for_a_delayed_ack),
		cmocka_unit_test(zcopy_answers_carry_the_acknowledgement),
	};

	return cmocka_run_group_tests_name("raw_engine", tests, NULL, NULL);
}
