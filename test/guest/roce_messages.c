/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Messages: sizes, order, flow control, flushes, zero copy, several queue pairs.
 */

#include <errno.h>
#include <string.h>

#include "roce_host.h"

static bool messages_of_every_size_arrive_once_and_whole(void)
{
	static const size_t sizes[] = {4,    5,    64,   191,  192,  193, 1000,
				       1024, 4095, 4096, 4097, 8191, 8320};
	uint32_t n = 0;
	size_t i, round;

	CHECK(open_pair(""));
	for (round = 0; round < 3; round++)
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++, n++) {
			CHECK(send_one(&a, n, sizes[i]));
			CHECK(send_one(&b, n, sizes[i]));
		}
	WITHIN(10, a.got == n && b.got == n);
	CHECK(a.wrong == 0 && b.wrong == 0);
	CHECK(a.bytes == b.bytes);
	return true;
}

static bool a_message_that_is_too_long_is_refused(void)
{
	struct message m = {0, 8321};
	uint8_t hdr[4] = {0};
	static uint8_t big[300];

	CHECK(open_pair(""));
	CHECK(a.lane_ep->ops->am_bcopy(a.lane_ep, 5, pack, &m) == -EMSGSIZE);
	CHECK(a.lane_ep->ops->am_short(a.lane_ep, 5, hdr, 4, big, sizeof(big)) == -EMSGSIZE);
	CHECK(send_one(&a, 0, 100));
	WITHIN(10, b.got == 1);
	return true;
}

/* @behaviour U89 */
static bool a_flood_both_ways_loses_nothing(void)
{
	uint32_t i, n = 3000;

	CHECK(open_pair(""));
	for (i = 0; i < n; i++) {
		CHECK(send_one(&a, i, 16 + i % 3000));
		CHECK(send_one(&b, i, 8 + i % 100));
	}
	WITHIN(30, a.got == n && b.got == n);
	CHECK(a.wrong == 0 && b.wrong == 0);
	WITHIN(5, a.lane_ep->queued == 0 && b.lane_ep->queued == 0);
	/* The shared queue never ran dry. */
	CHECK(kernel_counter(name_a, "send_rnr_err") == 0 &&
	      kernel_counter(name_b, "send_rnr_err") == 0);
	CHECK(kernel_counter(name_a, "rcvd_rnr_err") == 0 &&
	      kernel_counter(name_b, "rcvd_rnr_err") == 0);
	/* Doorbells were shared. */
	CHECK(counter(&a, "tx.doorbells") < n);
	return true;
}

/* @behaviour U89 */
static bool a_peer_that_does_not_poll_is_slow_and_not_dead(void)
{
	uint8_t buf[64];
	uint32_t n = 0;
	int rc;

	CHECK(open_pair(""));
	b.asleep = true;
	do {
		fill(buf, n, 64);
		rc = a.lane_ep->ops->am_short(a.lane_ep, 5, buf, 4, buf + 4, 60);
		n += rc == 0;
	} while (rc == 0);
	CHECK(rc == -EAGAIN && n >= 4);
	CHECK(!a.lane_ep->tx_room);
	turn_for(3);
	CHECK(a.down == 0 && a.lane_ep->queued > 0);
	CHECK(a.lane_ep->ops->am_short(a.lane_ep, 5, buf, 4, buf + 4, 60) == -EAGAIN);
	b.asleep = false;
	WITHIN(10, b.got == n && a.lane_ep->queued == 0);
	CHECK(a.lane_ep->tx_room);
	CHECK(send_one(&a, n, 64));
	WITHIN(10, b.got == n + 1);
	CHECK(b.wrong == 0);
	return true;
}

static bool a_flush_ends_when_the_peer_has_taken_everything(void)
{
	struct op op = {.comp.done = op_done}, again = {.comp.done = op_done};

	CHECK(open_pair(""));
	CHECK(a.lane_ep->ops->ep_flush(a.lane_ep, &op.comp) == WEFT_LANE_IDLE);
	b.asleep = true;
	CHECK(send_one(&a, 0, 100));
	CHECK(send_one(&a, 1, 5000));
	CHECK(a.lane_ep->ops->ep_flush(a.lane_ep, &op.comp) == 0);
	CHECK(a.lane_ep->ops->ep_flush(a.lane_ep, &again.comp) == 0);
	/* The hardware has acknowledged by now; that is not enough. */
	turn_for(1);
	CHECK(op.done == 0 && b.got == 0);
	b.asleep = false;
	WITHIN(10, op.done == 1 && again.done == 1);
	CHECK(op.status == 0 && b.got == 2);
	return true;
}

static bool zero_copy_sends_from_pieces_and_waits_for_the_peer(void)
{
	static uint8_t mem[16384];
	struct weft_mem_lane *reg = NULL;
	struct op op = {.comp.done = op_done};
	struct iovec iov[3];
	size_t at = 4, i;

	CHECK(open_pair(""));
	CHECK(reg_mem(&a, mem + 3, sizeof(mem) - 3, ALL_RIGHTS, &reg));
	fill(mem + 100, 0, 6000);
	iov[0] = (struct iovec){mem + 104, 1};
	iov[1] = (struct iovec){mem + 105, 2995};
	iov[2] = (struct iovec){mem + 3100, 3000};
	b.asleep = true;
	CHECK(a.lane_ep->ops->am_zcopy(a.lane_ep, 5, mem + 100, at, iov, 3, reg, &op.comp) == 0);
	turn_for(0.5);
	CHECK(op.done == 0);
	b.asleep = false;
	WITHIN(10, op.done == 1);
	CHECK(op.status == 0 && b.got == 1 && b.wrong == 0 && b.last_len == 6000);
	/* Outside of what is registered. */
	iov[0] = (struct iovec){mem, 4};
	CHECK(a.lane_ep->ops->am_zcopy(a.lane_ep, 5, mem, 4, iov, 1, reg, &op.comp) == -EINVAL);
	for (i = 0; i < 200; i++) {
		op.done = 0;
		fill(mem + 100, (uint32_t)i + 1, 6000);
		iov[0] = (struct iovec){mem + 104, 5996};
		CHECK(a.lane_ep->ops->am_zcopy(a.lane_ep, 5, mem + 100, 4, iov, 1, reg, &op.comp) ==
		      0);
		WITHIN(10, op.done == 1);
	}
	CHECK(b.got == 201 && b.wrong == 0);
	weft_roce_driver.mem_deregister(a.iface, reg);
	return true;
}

/* @behaviour U89 */
static bool kept_buffers_do_not_stop_the_lane(void)
{
	uint32_t i, n = 1200;

	conf.rx_bufs = 512;
	CHECK(open_pair(""));
	b.keep = true;
	for (i = 0; i < n; i++)
		CHECK(send_one(&a, i, 200));
	WITHIN(20, b.got == n);
	CHECK(b.wrong == 0);
	/* As many as could be were kept, then it had to copy. */
	CHECK(b.num_kept > 50 && b.num_kept < 512);
	CHECK(counter(&b, "rx.copied") == n - b.num_kept);
	b.keep = false;
	while (b.num_kept > 0)
		b.iface->ops->release(b.iface, b.kept[--b.num_kept]);
	b.keep = true;
	for (i = 0; i < 20; i++)
		CHECK(send_one(&a, n + i, 200));
	WITHIN(10, b.got == n + 20);
	CHECK(b.num_kept == 20);
	CHECK(kernel_counter(name_b, "send_rnr_err") == 0);
	while (b.num_kept > 0)
		b.iface->ops->release(b.iface, b.kept[--b.num_kept]);
	return true;
}

static bool several_queue_pairs_of_a_lane_share_the_load(void)
{
	uint32_t i, n = 400;
	struct op op = {.comp.done = op_done};
	struct roce_lane_ep *lane_ep;

	CHECK(open_host(&a, &weft_roce_driver, name_a, "qps=4"));
	CHECK(open_host(&b, &weft_roce_driver, name_b, "qps=3"));
	CHECK(connect_pair());
	lane_ep = roce_lane_ep_of(a.lane_ep);
	CHECK(lane_ep->num_qps == 3 && roce_lane_ep_of(b.lane_ep)->num_qps == 3);
	b.ordered = a.ordered = false;
	for (i = 0; i < n; i++)
		CHECK(send_one(&a, i, 1000));
	CHECK(a.lane_ep->ops->ep_flush(a.lane_ep, &op.comp) == 0);
	WITHIN(10, op.done == 1);
	CHECK(b.got == n && b.wrong == 0);
	for (i = 0; i < 3; i++)
		CHECK(lane_ep->chans[i]->credit.sent > n / 5);
	return true;
}

const struct behaviour roce_messages[] = {
	BEHAVIOUR(messages_of_every_size_arrive_once_and_whole),
	BEHAVIOUR(a_message_that_is_too_long_is_refused),
	BEHAVIOUR(a_flood_both_ways_loses_nothing),
	BEHAVIOUR(a_peer_that_does_not_poll_is_slow_and_not_dead),
	BEHAVIOUR(a_flush_ends_when_the_peer_has_taken_everything),
	BEHAVIOUR(zero_copy_sends_from_pieces_and_waits_for_the_peer),
	BEHAVIOUR(kept_buffers_do_not_stop_the_lane),
	BEHAVIOUR(several_queue_pairs_of_a_lane_share_the_load),
	{NULL, NULL},
};
