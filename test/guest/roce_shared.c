/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Many senders and one receiver, whose shared receive queue they all draw on.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "roce_host.h"

#define SENDERS 32
#define EACH 120 /* messages of a sender */

static struct host senders[SENDERS];
static uint32_t sent[SENDERS];

static size_t length_of(unsigned int sender, uint32_t n)
{
	return 16 + (sender * 211 + n * 37) % 2000;
}

/* Until it has sent everything, or is refused. @return 0, -EAGAIN, or an error that must not be */
static int send_on(unsigned int i)
{
	struct weft_lane_ep *lane_ep = senders[i].lane_ep;
	struct message m;
	ssize_t n;

	while (sent[i] < EACH) {
		m = (struct message){NUMBER(i, sent[i]), length_of(i, sent[i])};
		n = lane_ep->ops->am_bcopy(lane_ep, 5, pack, &m);
		if (n < 0)
			return (int)n;
		sent[i]++;
	}
	return 0;
}

static void turn_senders(void)
{
	unsigned int i;

	for (i = 0; i < SENDERS; i++)
		turn_host(&senders[i]);
}

static void close_senders(void)
{
	unsigned int i;

	/* Each waits for the receiver's answer to its final message, so that one has to go on. */
	for (i = 0; i < SENDERS; i++) {
		if (senders[i].iface && senders[i].lane_ep)
			senders[i].lane_ep->ops->ep_destroy(senders[i].lane_ep);
		senders[i].lane_ep = NULL;
	}
	for (double end = now_s() + 1; b.gone < SENDERS && now_s() < end;) {
		turn_senders();
		turn_host(&b);
	}
	for (i = 0; i < SENDERS; i++)
		close_host(&senders[i]);
}

/* "Receiver not ready", said and heard, by both devices. */
static uint64_t not_ready(void)
{
	return kernel_counter(name_a, "send_rnr_err") + kernel_counter(name_a, "rcvd_rnr_err") +
	       kernel_counter(name_b, "send_rnr_err") + kernel_counter(name_b, "rcvd_rnr_err");
}

static bool open_senders(void)
{
	unsigned int i;

	/*
	 * So few that the last peers get smaller windows, and that the receiver can't keep all
	 * messages.
	 */
	conf.rx_bufs = 4096;
	CHECK(open_host(&b, &weft_roce_driver, name_b, ""));
	b.keep = true;
	conf.rx_bufs = 128;
	for (i = 0; i < SENDERS; i++) {
		CHECK(open_host(&senders[i], &weft_roce_driver, name_a, ""));
		CHECK(connect_hosts(&senders[i], &b));
		sent[i] = 0;
	}
	return true;
}

/* As much as the receiver has promised to all of them together, while it looks at nothing. */
static bool use_all_promises(void)
{
	uint32_t promised = roce_iface_of(b.iface)->promised, total = 0;
	unsigned int i;

	for (i = 0; i < SENDERS; i++) {
		CHECK(send_on(i) == -EAGAIN);
		total += sent[i];
	}
	for (double end = now_s() + 1; now_s() < end;)
		turn_senders();
	for (i = 0; i < SENDERS; i++)
		CHECK(send_on(i) == -EAGAIN && senders[i].down == 0);
	printf("# %u messages wait in the shared queue\n", total);
	/* One more of each is promised for the lane's final message. */
	CHECK(total + SENDERS == promised && total >= 8 * SENDERS);
	CHECK(b.got == 0);
	return true;
}

static bool flood(void)
{
	unsigned int i, done, rounds = 0;
	double end = now_s() + 40;
	int rc;

	do {
		for (i = done = 0; i < SENDERS; i++) {
			rc = send_on(i);
			CHECK(rc == 0 || rc == -EAGAIN);
			done += rc == 0;
		}
		turn_senders();
		/* It polls once, for a few messages, while they have a turn each. */
		if (++rounds % 4 == 0)
			turn_host(&b);
	} while ((done < SENDERS || b.got < SENDERS * EACH) && now_s() < end);
	CHECK(b.got == SENDERS * EACH && b.wrong == 0);
	for (i = 0; i < SENDERS; i++)
		CHECK(b.next[i] == EACH && senders[i].down == 0);
	return true;
}

static bool flood_and_close(void)
{
	uint64_t before = not_ready();

	CHECK(open_senders());
	CHECK(use_all_promises());
	CHECK(flood());
	printf("# %u messages kept, %llu copied\n", b.num_kept,
	       (unsigned long long)counter(&b, "rx.copied"));
	CHECK(b.num_kept > 1000 && counter(&b, "rx.copied") == b.got - b.num_kept);
	CHECK(counter(&b, "rx.copied") > 0);
	CHECK(not_ready() == before && b.down == 0);
	return true;
}

/* @behaviour U89 */
static bool many_senders_flood_a_slow_receiver_and_none_meets_an_empty_queue(void)
{
	bool ok = flood_and_close();

	while (b.num_kept > 0)
		b.iface->ops->release(b.iface, b.kept[--b.num_kept]);
	close_senders();
	return ok;
}

const struct behaviour roce_shared[] = {
	BEHAVIOUR(many_senders_flood_a_slow_receiver_and_none_meets_an_empty_queue),
	{NULL, NULL},
};
