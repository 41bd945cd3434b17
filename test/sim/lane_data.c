/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The raw-DPDK engine over the simulated network: messages, each exactly once, whatever the network
 * does.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lane_host.h"
#include "reseal.h"
#include "sim_test.h"

static struct lane_two connected(struct sim_case *c, const char *config)
{
	return lane_two_up(
		c, (struct sim_port_params){.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}},
		config);
}

/* Both ways, n messages of all kinds and sizes. */
static void exchange(struct lane_two *t, unsigned int n, uint64_t max_ns)
{
	if (!lane_send_all(t->e, 0, n, max_ns))
		fail_msg("not sent in time: %u of %u received", lane_received(t->b), n);
	assert_true(lane_exactly_once(t->b, 0, n));
	if (!lane_send_all(lane_passive(t->b), n, 2 * n, max_ns))
		fail_msg("not sent in time: %u of %u received", lane_received(t->a), n);
	assert_true(lane_exactly_once(t->a, n, 2 * n));
	/* The card may give user memory back a little after the peer's acknowledgement. */
	sim_run(t->sim, 10 * SIM_MS, NULL, NULL);
	assert_int_equal(lane_zcopy_pending(t->a) + lane_zcopy_pending(t->b), 0);
	assert_int_equal(sim_port_stats(t->pa)->oversize + sim_port_stats(t->pb)->oversize, 0);
	assert_int_equal(sim_port_stats(t->pa)->not_allowed + sim_port_stats(t->pb)->not_allowed,
			 0);
}

static void messages_of_all_sizes_and_kinds(struct sim_case *c)
{
	struct lane_two t = connected(c, NULL);
	enum lane_how how;
	uint32_t n = 0;
	size_t size, max;

	for (how = LANE_SHORT; how <= LANE_ZCOPY; how++) {
		max = lane_max(t.e, how);
		for (size = how == LANE_ZCOPY; size <= max;
		     size = size < 300 || size > max - 50 ? size + 1 : size + 97) {
			while (lane_send(t.e, how, n, size) == -EAGAIN)
				sim_run(t.sim, 50 * SIM_US, NULL, NULL);
			n++;
		}
		/* One byte more is refused, for good. */
		assert_true(lane_send(t.e, how, n, max + 1) < 0);
		assert_int_not_equal(lane_send(t.e, how, n, max + 1), -EAGAIN);
	}
	sim_run(t.sim, 50 * SIM_MS, NULL, NULL);
	assert_true(lane_exactly_once(t.b, 0, n));
	assert_int_equal(lane_zcopy_pending(t.a), 0);
}

/* The least that a lane takes, with a tag and without. */
static void frames_of_mtu_1280(struct sim_case *c)
{
	for (uint16_t vlan = 0; vlan < 6; vlan += 5) {
		struct lane_two t = lane_two_up(
			c,
			(struct sim_port_params){.up = {.rate = SIM_GBIT, .delay_ns = 5000},
						 .frame_size = vlan ? 1298 : 1294,
						 .vlan = vlan},
			NULL);

		exchange(&t, 200, SIM_S);
	}
}

/* @behaviour R6: On a clean link there are no retransmissions */
static void a_clean_link_needs_no_retransmission(struct sim_case *c)
{
	struct lane_two t = connected(c, NULL);

	exchange(&t, 3000, 5 * SIM_S);
	assert_int_equal(t.e->lane_ep->retransmits, 0);
	assert_int_equal(lane_passive(t.b)->lane_ep->retransmits, 0);
}

static void faulty(struct sim_case *c, const struct sim_link *link, const char *config,
		   unsigned int seeds, unsigned int n)
{
	uint64_t first = c->seed;

	if (c->seeds)
		seeds = c->seeds;
	for (; c->seed < first + seeds; c->seed++) {
		struct lane_two t = connected(c, config);

		sim_link_set(t.pa, t.pb, link);
		exchange(&t, n, 60 * SIM_S);
	}
	c->seed = first;
}

/* @behaviour U86 */
static void exactly_once_under_loss(struct sim_case *c)
{
	faulty(c, &(struct sim_link){.rate = 10 * SIM_GBIT, .delay_ns = 5000, .loss = 0.01}, NULL,
	       20, 1000);
}

/* @behaviour U51: nothing is delivered twice, whatever frames the network duplicates */
static void exactly_once_under_duplication(struct sim_case *c)
{
	faulty(c, &(struct sim_link){.rate = 10 * SIM_GBIT, .delay_ns = 5000, .dup = 0.3}, NULL, 10,
	       1000);
}

static void exactly_once_under_reordering(struct sim_case *c)
{
	faulty(c, &(struct sim_link){.rate = 10 * SIM_GBIT, .delay_ns = 5000, .reorder = 0.2}, NULL,
	       10, 1000);
}

/*
 * @behaviour F1: loss, duplication, reordering, corruption: exact data in bounded time (`sim_soak
 * --seeds 1000`: tagged and active messages, remote memory, rendezvous, withdrawn sends)
 * @behaviour R1
 */
static void exactly_once_under_everything(struct sim_case *c)
{
	faulty(c,
	       &(struct sim_link){.rate = SIM_GBIT,
				  .delay_ns = 50000,
				  .jitter_ns = 50000,
				  .loss = 0.05,
				  .dup = 0.05,
				  .reorder = 0.1,
				  .reorder_ns = SIM_MS,
				  .corrupt = 0.02,
				  .truncate = 0.01},
	       "CSUM=crc32c", 20, 500);
}

/* @behaviour F1, R1 */
static void exactly_once_under_one_third_loss(struct sim_case *c)
{
	faulty(c, &(struct sim_link){.rate = SIM_GBIT, .delay_ns = 50000, .loss = 0.33}, NULL, 5,
	       200);
}

/* @behaviour F1, R3 */
static void corruption_with_crc32c_delivers_nothing_wrong(struct sim_case *c)
{
	struct lane_two t = connected(c, "CSUM=crc32c");

	sim_link_set(t.pa, t.pb,
		     &(struct sim_link){.rate = SIM_GBIT, .delay_ns = 5000, .corrupt = 0.02});
	exchange(&t, 4000, 60 * SIM_S);
	assert_true(lane_counter(t.a, "bad_csum") + lane_counter(t.b, "bad_csum") > 20);
}

/*
 * @behaviour R3: Changed frames are dropped and counted; no wrong byte is delivered (with CRC-32C:
 * of any frame)
 */
static void corruption_with_udp_checksums_delivers_nothing_wrong(struct sim_case *c)
{
	struct lane_two t = connected(c, "CSUM=udp");

	/* Single flips: the Internet checksum sees them all; it does not see every pair. */
	sim_link_set(t.pa, t.pb,
		     &(struct sim_link){.rate = SIM_GBIT, .delay_ns = 5000, .truncate = 0.02});
	exchange(&t, 2000, 60 * SIM_S);
}

/* @behaviour U86 */
static void a_slow_link_is_filled(struct sim_case *c)
{
	struct lane_two t = connected(c, NULL);
	uint64_t start, bytes;

	sim_link_set(t.pa, t.pb, &(struct sim_link){.rate = SIM_GBIT, .delay_ns = 100000});
	sim_run(t.sim, SIM_MS, NULL, NULL);
	start = sim_now(t.sim);
	bytes = sim_port_stats(t.pa)->tx_bytes;
	assert_true(lane_send_all(t.e, 0, 10000, 10 * SIM_S));
	bytes = sim_port_stats(t.pa)->tx_bytes - bytes;
	/* At least 85 % of the rate, start and end counted. */
	assert_true((double)bytes * 8 / (double)(sim_now(t.sim) - start) > 0.85);
}

/* Also those of ARP and of the handshake. */
static void frames_and_bytes_sent_are_those_of_the_port(struct sim_case *c)
{
	struct lane_two t = connected(c, NULL);

	assert_true(lane_send_all(t.e, 0, 100, SIM_S));
	assert_int_equal(lane_counter(t.a, "tx.frames"), sim_port_stats(t.pa)->tx_frames);
	assert_int_equal(lane_counter(t.a, "tx.bytes"), sim_port_stats(t.pa)->tx_bytes);
}

/* @behaviour U86 */
static void a_queue_that_drops_its_tail_is_survived(struct sim_case *c)
{
	struct lane_two t = connected(c, NULL);

	/* Ten times slower behind the switch, with room for 30 frames there. */
	sim_port_down(t.pb)->rate = SIM_GBIT;
	sim_port_down(t.pb)->queue_bytes = 45000;
	exchange(&t, 5000, 60 * SIM_S);
}

/* ---- window, rings, buffers ----------------------------------------------------------------- */

static void full_window(struct sim_case *c, const char *config, size_t least)
{
	struct lane_two t = connected(c, config);
	size_t size = lane_max(t.e, LANE_BCOPY);
	uint32_t n = 0, again;

	lane_host_pause(t.b, 5 * SIM_MS);
	while (lane_send(t.e, LANE_BCOPY, n, size) >= 0) {
		n++;
		assert_true(n < 2000);
		sim_run(t.sim, 20 * SIM_US, NULL, NULL);
	}
	again = n;
	assert_int_equal(lane_send(t.e, LANE_BCOPY, n, size), -EAGAIN);
	assert_true(n * size >= least && n * size < 200000);
	sim_run(t.sim, 10 * SIM_MS, NULL, NULL);
	for (; n < again + 1000; n++)
		while (lane_send(t.e, LANE_BCOPY, n, size) == -EAGAIN)
			sim_run(t.sim, 20 * SIM_US, NULL, NULL);
	sim_run(t.sim, 20 * SIM_MS, NULL, NULL);
	assert_true(lane_exactly_once(t.b, 0, n));
}

/* @behaviour U83: a full window returns "again", and opens after acknowledgements */
static void a_full_window_is_repeated_and_opens(struct sim_case *c)
{
	full_window(c, "WINDOW=64k CC=fixed", 32000);
}

/* Nothing has come back yet that would make its first window larger. */
static void the_first_window_is_repeated_and_opens(struct sim_case *c)
{
	full_window(c, "WINDOW=64k CC=delay", 10000);
}

/* @behaviour U91: no deadlock for the last descriptor or buffer */
static void tiny_rings_are_enough(struct sim_case *c)
{
	struct lane_two t =
		lane_two_up(c,
			    (struct sim_port_params){.up = {.rate = SIM_GBIT, .delay_ns = 5000},
						     .tx_depth = 8,
						     .rx_depth = 16,
						     .bufs = 512},
			    NULL);

	exchange(&t, 2000, 60 * SIM_S);
}

/* @behaviour U91 */
static void a_port_that_takes_few_bytes_is_enough(struct sim_case *c)
{
	struct lane_two t =
		lane_two_up(c,
			    (struct sim_port_params){.up = {.rate = SIM_GBIT, .delay_ns = 5000},
						     .tx_bytes_max = 4000},
			    NULL);

	exchange(&t, 2000, 60 * SIM_S);
}

static void ports_without_chains_or_external_buffers(struct sim_case *c)
{
	struct lane_two t = lane_two_up(
		c,
		(struct sim_port_params){.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000},
					 .no_flags = ~0u},
		NULL);

	exchange(&t, 1000, 10 * SIM_S);
}

/* @behaviour U91 */
static void kept_buffers_do_not_stop_acknowledgements(struct sim_case *c)
{
	struct lane_two t =
		lane_two_up(c,
			    (struct sim_port_params){
				    .up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000}, .bufs = 512},
			    NULL);

	lane_keep(t.b, 4000);
	assert_true(lane_send_all(t.e, 0, 5000, 20 * SIM_S));
	assert_true(lane_exactly_once(t.b, 0, 5000));
	assert_true(lane_kept(t.b) > 0);
	lane_release(t.b);
	assert_true(lane_send_all(t.e, 5000, 6000, 20 * SIM_S));
	assert_true(lane_exactly_once(t.b, 5000, 6000));
	lane_release(t.b);
}

/* @behaviour U88 */
static void kept_buffers_survive_their_connection(struct sim_case *c)
{
	struct lane_two t = connected(c, NULL);

	lane_keep(t.b, 50);
	assert_true(lane_send_all(t.e, 0, 100, SIM_S));
	assert_true(lane_kept(t.b) > 0);
	lane_destroy(lane_passive(t.b));
	lane_destroy(t.e);
	sim_run(t.sim, SIM_S, NULL, NULL);
	lane_release(t.b);
}

static void user_memory_comes_back_after_acknowledgement_only(struct sim_case *c)
{
	struct lane_two t = connected(c, NULL);
	unsigned int i;

	/* The receiver does not poll: frames leave the card, but nothing is acknowledged. */
	lane_host_pause(t.b, 20 * SIM_MS);
	for (i = 0; i < 10; i++)
		assert_int_equal(lane_send(t.e, LANE_ZCOPY, i, 1000), 0);
	sim_run(t.sim, 10 * SIM_MS, NULL, NULL);
	assert_int_equal(lane_zcopy_pending(t.a), 10);
	sim_run(t.sim, 50 * SIM_MS, NULL, NULL);
	assert_int_equal(lane_zcopy_pending(t.a), 0);
	assert_int_equal(lane_zcopy_status(t.a), 0);
	assert_true(lane_exactly_once(t.b, 0, 10));
}

/* @behaviour U88 */
static void user_memory_comes_back_after_the_card_only(struct sim_case *c)
{
	struct lane_two t = connected(c, "WINDOW=1M");
	unsigned int i;

	/*
	 * A very slow card: acknowledgements of duplicates can't come before, so destroy while the
	 * ring is full.
	 */
	sim_port_up(t.pa)->rate = 10000000;
	for (i = 0; i < 12; i++)
		assert_int_equal(lane_send(t.e, LANE_ZCOPY, i, 1000), 0);
	sim_run(t.sim, 3 * SIM_MS, NULL, NULL);
	lane_destroy(t.e);
	/*
	 * Still in the ring: a user that gets it back now would overwrite it, and the receiver
	 * would see that.
	 */
	assert_true(lane_zcopy_pending(t.a) > 0);
	sim_run(t.sim, SIM_S, NULL, NULL);
	assert_int_equal(lane_zcopy_pending(t.a), 0);
	assert_int_equal(lane_wrong(t.b), 0);
}

static void flush_waits_for_the_peer(struct sim_case *c)
{
	struct lane_two t = connected(c, NULL);
	int done = 0;

	assert_int_equal(lane_flush(t.e, &done), WEFT_LANE_IDLE);
	lane_host_pause(t.b, 5 * SIM_MS);
	assert_true(lane_send(t.e, LANE_BCOPY, 0, 100) > 0);
	assert_int_equal(lane_flush(t.e, &done), 0);
	sim_run(t.sim, 4 * SIM_MS, NULL, NULL);
	assert_int_equal(done, 0);
	sim_run(t.sim, 20 * SIM_MS, NULL, NULL);
	assert_int_equal(done, 1);
	assert_int_equal(lane_got(t.b, 0), 1);
}

static void small_messages_share_frames(struct sim_case *c)
{
	struct lane_two t = connected(c, NULL);
	uint64_t frames = sim_port_stats(t.pa)->tx_frames;
	unsigned int i;

	for (i = 0; i < 100; i++)
		assert_int_equal(lane_send(t.e, LANE_SHORT, i, 8), 0);
	sim_run(t.sim, 5 * SIM_MS, NULL, NULL);
	assert_true(lane_exactly_once(t.b, 0, 100));
	assert_true(sim_port_stats(t.pa)->tx_frames - frames < 20);
}

/* ---- sequences, paths, encapsulations ------------------------------------------------------- */

/*
 * @behaviour Y6: sequences wrap, of frames and of messages
 * @behaviour R2
 */
static void frame_sequences_wrap(struct sim_case *c)
{
	struct sim_port_params p = {.up = {.rate = SIM_GBIT,
					   .delay_ns = 5000,
					   .loss = 0.02,
					   .dup = 0.02,
					   .reorder = 0.05},
				    .set_first_seq = true,
				    .first_seq = UINT32_MAX - 200};
	struct lane_two t = lane_two_up(c, p, NULL);

	exchange(&t, 2000, 60 * SIM_S);
}

struct port_count {
	unsigned int frames[65536];
};

static enum sim_verdict count_ports(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				    void *arg)
{
	struct port_count *p = arg;

	(void)port;
	(void)room;
	/* DATA frames only. */
	if (reseal_is_lane(data, *len) && reseal_header(data)->type == WEFT_FRAME_DATA)
		p->frames[rte_be_to_cpu_16(reseal_udp(data)->src_port)]++;
	return SIM_PASS;
}

/* @behaviour Y7: several paths per lane */
static void paths_use_their_own_source_ports(struct sim_case *c)
{
	struct sim_port_params p = {.up = {.rate = SIM_GBIT, .delay_ns = 5000, .loss = 0.01},
				    .paths = 4};
	struct lane_two t = lane_two_up(c, p, NULL);
	struct port_count *count = calloc(1, sizeof(*count));
	unsigned int i, used = 0, most = 0;

	sim_filter(t.pa, count_ports, count);
	exchange(&t, 2000, 20 * SIM_S);
	for (i = 0; i < 65536; i++) {
		used += count->frames[i] > 0;
		if (count->frames[i] > most)
			most = count->frames[i];
	}
	free(count);
	assert_int_equal(used, 4);
	assert_true(most < 1500);
}

static enum sim_verdict slow_path(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				  void *arg)
{
	static unsigned int n;

	(void)port;
	(void)room;
	(void)arg;
	/* One of the source ports loses half of its frames. */
	if (*len > 60 && data[12] == 8 && data[13] == 0 && (data[35] & 3) == 1 && n++ % 2)
		return SIM_DROP;
	return SIM_PASS;
}

/* @behaviour Y7 */
static void a_bad_path_does_not_stop_the_lane(struct sim_case *c)
{
	struct sim_port_params p = {.up = {.rate = SIM_GBIT, .delay_ns = 5000}, .paths = 4};
	struct lane_two t = lane_two_up(c, p, NULL);

	sim_filter(t.pa, slow_path, NULL);
	assert_true(lane_send_all(t.e, 0, 2000, 30 * SIM_S));
	assert_true(lane_exactly_once(t.b, 0, 2000));
}

static void over_a_vlan(struct sim_case *c)
{
	struct sim_port_params p = {.up = {.rate = SIM_GBIT, .delay_ns = 5000, .loss = 0.01},
				    .vlan = 7};
	struct lane_two t = lane_two_up(c, p, NULL);

	exchange(&t, 500, 10 * SIM_S);
}

static void over_an_own_ethertype(struct sim_case *c)
{
	struct sim_port_params p = {
		.up = {.rate = SIM_GBIT, .delay_ns = 5000, .loss = 0.01, .corrupt = 0.01},
		.raw_ethertype = true};
	struct lane_two t = lane_two_up(c, p, "CSUM=crc32c");

	exchange(&t, 500, 10 * SIM_S);
}

static void with_big_frames(struct sim_case *c)
{
	struct sim_port_params p = {
		.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000, .loss = 0.01, .reorder = 0.05},
		.frame_size = 9014,
		.bufs = 1024};
	struct lane_two t = lane_two_up(c, p, NULL);

	assert_true(lane_max(t.e, LANE_BCOPY) > 8000);
	exchange(&t, 2000, 20 * SIM_S);
}

static void with_checksums_of_the_card(struct sim_case *c)
{
	struct sim_port_params p = {
		.up = {.rate = SIM_GBIT, .delay_ns = 5000, .loss = 0.01, .truncate = 0.01},
		.flags = 6 /* RX_CSUM | TX_CSUM */};
	struct lane_two t = lane_two_up(c, p, "CSUM=udp");

	exchange(&t, 1000, 10 * SIM_S);
	t = lane_two_up(c, p, NULL);
	exchange(&t, 1000, 10 * SIM_S);
}

static uint64_t run_hash(struct sim_case *c)
{
	struct sim_port_params p = {.up = {.rate = SIM_GBIT,
					   .delay_ns = 5000,
					   .loss = 0.03,
					   .dup = 0.03,
					   .reorder = 0.1}};
	struct lane_two t = lane_two_up(c, p, NULL);

	exchange(&t, 500, 10 * SIM_S);
	return sim_hash(t.sim);
}

/* @behaviour Y8: the same seed gives the same run */
static void the_same_seed_gives_the_same_frames(struct sim_case *c)
{
	uint64_t first = run_hash(c);

	assert_true(first == run_hash(c));
}

static struct sim_case cases[] = {
	SIM_CASE(messages_of_all_sizes_and_kinds),
	SIM_CASE(frames_of_mtu_1280),
	SIM_CASE(a_clean_link_needs_no_retransmission),
	SIM_CASE(exactly_once_under_loss),
	SIM_CASE(exactly_once_under_duplication),
	SIM_CASE(exactly_once_under_reordering),
	SIM_CASE(exactly_once_under_everything),
	SIM_CASE(exactly_once_under_one_third_loss),
	SIM_CASE(corruption_with_crc32c_delivers_nothing_wrong),
	SIM_CASE(corruption_with_udp_checksums_delivers_nothing_wrong),
	SIM_CASE(a_slow_link_is_filled),
	SIM_CASE(frames_and_bytes_sent_are_those_of_the_port),
	SIM_CASE(a_queue_that_drops_its_tail_is_survived),
	SIM_CASE(a_full_window_is_repeated_and_opens),
	SIM_CASE(the_first_window_is_repeated_and_opens),
	SIM_CASE(tiny_rings_are_enough),
	SIM_CASE(a_port_that_takes_few_bytes_is_enough),
	SIM_CASE(ports_without_chains_or_external_buffers),
	SIM_CASE(kept_buffers_do_not_stop_acknowledgements),
	SIM_CASE(kept_buffers_survive_their_connection),
	SIM_CASE(user_memory_comes_back_after_acknowledgement_only),
	SIM_CASE(user_memory_comes_back_after_the_card_only),
	SIM_CASE(flush_waits_for_the_peer),
	SIM_CASE(small_messages_share_frames),
	SIM_CASE(frame_sequences_wrap),
	SIM_CASE(paths_use_their_own_source_ports),
	SIM_CASE(a_bad_path_does_not_stop_the_lane),
	SIM_CASE(over_a_vlan),
	SIM_CASE(over_an_own_ethertype),
	SIM_CASE(with_big_frames),
	SIM_CASE(with_checksums_of_the_card),
	SIM_CASE(the_same_seed_gives_the_same_frames),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "lane_data", cases, sizeof(cases) / sizeof(cases[0]));
}
