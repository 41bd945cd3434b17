/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Peers that lie: immediate data and counts that can not be.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "roce_host.h"

/* By hand, past the driver: what a hostile peer's device would send. */
static bool post_raw(struct weft_lane_ep *base, enum ibv_wr_opcode opcode, uint32_t imm,
		     unsigned int times)
{
	struct roce_chan *chan = roce_lane_ep_of(base)->chans[0];
	struct ibv_send_wr wr = {.opcode = opcode}, *bad;
	struct roce_slot *slot = &chan->slots[0];

	for (; times > 0; times--) {
		slot->at = chan->sq.head++;
		slot->kind = ROCE_SLOT_WORD;
		chan->sq.posted = chan->sq.head;
		wr.wr_id = (uintptr_t)slot;
		wr.imm_data = htobe32(imm);
		if (ibv_post_send(chan->qp, &wr, &bad) != 0)
			return false;
	}
	return true;
}

static bool hostile_immediate_data_is_dropped_counted_and_ends_the_lane(void)
{
	CHECK(open_pair(""));
	CHECK(post_raw(a.lane_ep, IBV_WR_SEND, 0, 1)); /* none at all */
	WITHIN(10, b.down == 1);
	CHECK(b.status == -EPROTO && counter(&b, "drop.bad_immediate") == 1 && b.got == 0);
	CHECK(strstr(b.text, "breaks the protocol") != NULL);
	close_host(&a);
	close_host(&b);

	CHECK(open_pair(""));
	CHECK(post_raw(a.lane_ep, IBV_WR_SEND_WITH_IMM, weft_roce_imm(0, 5, 1000),
		       1)); /* acks of nothing */
	WITHIN(10, b.down == 1);
	CHECK(b.status == -EPROTO && counter(&b, "drop.bad_count") == 1 && b.got == 0);
	close_host(&a);
	close_host(&b);

	CHECK(open_pair(""));
	CHECK(post_raw(a.lane_ep, IBV_WR_SEND_WITH_IMM, weft_roce_imm(WEFT_ROCE_IMM_CONTROL, 9, 0),
		       1));
	WITHIN(10, b.down == 1);
	CHECK(b.status == -EPROTO && counter(&b, "drop.bad_immediate") == 1);
	close_host(&a);
	close_host(&b);

	/* Beyond its window. */
	CHECK(open_pair("window=4"));
	b.asleep = true;
	CHECK(post_raw(a.lane_ep, IBV_WR_SEND_WITH_IMM, weft_roce_imm(0, 5, 0), 20));
	usleep(300000);
	b.asleep = false;
	WITHIN(10, b.down == 1);
	CHECK(b.status == -EPROTO && counter(&b, "drop.bad_immediate") == 1 && b.got == 4);
	return true;
}

static bool a_count_written_by_a_liar_ends_the_lane(void)
{
	CHECK(open_pair(""));
	b.asleep = true;
	CHECK(send_one(&a, 0, 100));
	roce_lane_ep_of(a.lane_ep)->words[0] = weft_roce_word(5000);
	WITHIN(10, a.down == 1);
	CHECK(a.status == -EPROTO && counter(&a, "drop.bad_count") == 1);
	close_host(&a);
	b.asleep = false;
	close_host(&b);
	/* Half a word is no word. */
	CHECK(open_pair(""));
	b.asleep = true;
	CHECK(send_one(&a, 0, 100));
	roce_lane_ep_of(a.lane_ep)->words[0].processed = weft_put32(1);
	turn();
	CHECK(a.down == 0 && counter(&a, "rx.torn_count") > 0 && a.lane_ep->queued == 100);
	b.asleep = false;
	WITHIN(10, a.lane_ep->queued == 0);
	return true;
}

/* By a sender beyond its window, as credit never lets the queue run dry. */
static bool a_shared_queue_that_ran_dry_is_refused_until_it_is_filled(void)
{
	CHECK(open_pair("window=4"));
	b.asleep = true;
	CHECK(post_raw(a.lane_ep, IBV_WR_SEND_WITH_IMM, weft_roce_imm(0, 5, 0), 100));
	WITHIN(10, kernel_counter(name_a, "rcvd_rnr_err") > 0);
	CHECK(kernel_counter(name_b, "send_rnr_err") > 0 && a.down == 0);
	b.asleep = false;
	WITHIN(10, b.down == 1);
	CHECK(b.status == -EPROTO && counter(&b, "drop.bad_immediate") == 1 && b.got == 4);
	return true;
}

const struct behaviour roce_hostile[] = {
	BEHAVIOUR(hostile_immediate_data_is_dropped_counted_and_ends_the_lane),
	BEHAVIOUR(a_count_written_by_a_liar_ends_the_lane),
	BEHAVIOUR(a_shared_queue_that_ran_dry_is_refused_until_it_is_filled),
	{NULL, NULL},
};
