/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The simulator itself, with raw frames and no Weft: rates, delays, faults, determinism, mbufs.
 */

#include <stdlib.h>
#include <string.h>

#include "sim_priv.h"
#include "sim_test.h"

#define LEN 1000

struct sink {
	unsigned int frames, wrong, disorder;
	uint64_t bytes, first, last, min_gap;
	uint32_t next;
	uint64_t sent_at[4096], longest, shortest;
};

static void make_frame(uint8_t *f, const struct sim_port *to, const struct sim_port *from,
		       uint32_t number, size_t len)
{
	size_t i;

	memcpy(f, to ? sim_port_mac(to) : (const uint8_t *)"\xff\xff\xff\xff\xff\xff", 6);
	memcpy(f + 6, sim_port_mac(from), 6);
	memcpy(f + 12, "\x88\xb5", 2);
	memcpy(f + 14, &number, 4);
	for (i = 18; i < len; i++)
		f[i] = (uint8_t)(number * 7 + i);
}

static void sink_frame(struct sim_port *port, const uint8_t *data, size_t len, void *arg)
{
	struct sink *s = arg;
	uint64_t now = sim_now(port->sim);
	uint32_t number;
	size_t i;

	s->bytes += len;
	if (!s->frames++)
		s->first = now;
	s->last = now;
	if (len < 18) {
		s->wrong++;
		return;
	}
	memcpy(&number, data + 14, 4);
	for (i = 18; i < len && data[i] == (uint8_t)(number * 7 + i); i++)
		;
	s->wrong += i < len || len != LEN;
	s->disorder += number < s->next;
	s->next = number;
	if (number < 4096) {
		now -= s->sent_at[number];
		if (now > s->longest)
			s->longest = now;
		if (!s->shortest || now < s->shortest)
			s->shortest = now;
	}
}

static struct sink sink;

/* Two stations on a net, "up" of the first as given. */
static struct sim_port *pair(struct sim *sim, const struct sim_link *up, struct sim_port **to)
{
	struct sim_port_params p = {0};
	struct sim_port *a;

	if (up)
		p.up = *up;
	a = sim_port_create(sim, &p);
	*to = sim_port_create(sim, NULL);
	memset(&sink, 0, sizeof(sink));
	sim_station(a, false, sink_frame, &sink);
	sim_station(*to, false, sink_frame, &sink);
	return a;
}

static void send_n(struct sim_port *a, const struct sim_port *b, unsigned int n)
{
	uint8_t f[LEN];
	uint32_t i;

	for (i = 0; i < n; i++) {
		make_frame(f, b, a, i, LEN);
		if (i < 4096)
			sink.sent_at[i] = sim_now(a->sim);
		sim_inject(a, f, LEN);
	}
}

/* ---- links ---------------------------------------------------------------------------------- */

static void a_perfect_link_delivers_at_once(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = pair(sim, NULL, &b);

	send_n(a, b, 100);
	sim_run(sim, 0, NULL, NULL);
	assert_int_equal(sink.frames, 100);
	assert_int_equal(sink.wrong + sink.disorder, 0);
	assert_int_equal(sink.last, 0);
}

static void delay_is_exact(struct sim_case *c)
{
	const struct sim_link up = {.delay_ns = 12345};
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = pair(sim, &up, &b);

	send_n(a, b, 1);
	sim_run(sim, 12344, NULL, NULL);
	assert_int_equal(sink.frames, 0);
	sim_run(sim, 1, NULL, NULL);
	assert_int_equal(sink.frames, 1);
	assert_int_equal(sink.last, 12345);
}

static void rate_serialises_frames(struct sim_case *c)
{
	const struct sim_link up = {.rate = SIM_GBIT, .delay_ns = 1000};
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = pair(sim, &up, &b);

	send_n(a, b, 1000);
	sim_run(sim, SIM_S, NULL, NULL);
	assert_int_equal(sink.frames, 1000);
	assert_int_equal(sink.first, 1000 + (LEN + SIM_WIRE_EXTRA) * 8);
	assert_int_equal(sink.last, 1000 + 1000 * (LEN + SIM_WIRE_EXTRA) * 8);
}

static void a_full_queue_drops_the_tail(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = pair(sim, NULL, &b);

	/* The receiver's side is the slow one: its queue holds ten frames' time. */
	sim_port_down(b)->rate = SIM_GBIT;
	sim_port_down(b)->queue_bytes = 10 * (LEN + SIM_WIRE_EXTRA);
	send_n(a, b, 100);
	sim_run(sim, SIM_S, NULL, NULL);
	assert_int_equal(sink.frames, 10);
	assert_int_equal(sink.disorder, 0);
	assert_int_equal(sim_port_stats(b)->tail_drops, 90);
	send_n(a, b, 10);
	sim_run(sim, SIM_S, NULL, NULL);
	assert_int_equal(sink.frames, 20);
}

static void jitter_varies_delay_and_keeps_order(struct sim_case *c)
{
	const struct sim_link up = {.rate = SIM_GBIT, .delay_ns = 1000, .jitter_ns = 100000};
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = pair(sim, &up, &b);
	unsigned int i;

	for (i = 0; i < 200; i++) {
		send_n(a, b, 1);
		sim_run(sim, SIM_MS, NULL, NULL);
	}
	assert_int_equal(sink.frames, 200);
	assert_int_equal(sink.disorder, 0);
	assert_true(sink.longest > 90000 + 1000 && sink.longest < 100000 + 1000 + 8192);
	assert_true(sink.shortest < 20000);
	send_n(a, b, 1000);
	sim_run(sim, SIM_S, NULL, NULL);
	assert_int_equal(sink.disorder, 0);
}

/* ---- faults --------------------------------------------------------------------------------- */

static void assert_near(uint64_t got, double n, double p)
{
	double mean = n * p, slack = 5 * __builtin_sqrt(mean * (1 - p)) + 1;

	if ((double)got < mean - slack || (double)got > mean + slack)
		fail_msg("%llu of %.0f is not near %.1f %%", (unsigned long long)got, n, p * 100);
}

static void loss_has_its_share(struct sim_case *c)
{
	const struct sim_link up = {.loss = 0.01};
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = pair(sim, &up, &b);

	send_n(a, b, 50000);
	sim_run(sim, SIM_S, NULL, NULL);
	assert_near(sim_port_stats(a)->lost, 50000, 0.01);
	assert_int_equal(sink.frames, 50000 - sim_port_stats(a)->lost);
	assert_int_equal(sink.wrong + sink.disorder, 0);
}

static void duplicates_have_their_share(struct sim_case *c)
{
	const struct sim_link up = {.dup = 0.02};
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = pair(sim, &up, &b);

	send_n(a, b, 50000);
	sim_run(sim, SIM_S, NULL, NULL);
	assert_near(sim_port_stats(a)->dupped, 50000, 0.02);
	assert_int_equal(sink.frames, 50000 + sim_port_stats(a)->dupped);
	assert_int_equal(sink.wrong, 0);
}

static void reordering_has_its_share(struct sim_case *c)
{
	const struct sim_link up = {.rate = SIM_GBIT, .reorder = 0.05};
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = pair(sim, &up, &b);

	send_n(a, b, 50000);
	sim_run(sim, SIM_S, NULL, NULL);
	assert_near(sim_port_stats(a)->reordered, 50000, 0.05);
	assert_int_equal(sink.frames, 50000);
	assert_int_equal(sink.wrong, 0);
	/* Held back by up to 100 us while a frame passes every 8 us: most are overtaken. */
	assert_true(sink.disorder > 2000 && sink.disorder <= sim_port_stats(a)->reordered);
}

static void corruption_changes_frames(struct sim_case *c)
{
	const struct sim_link up = {.corrupt = 0.02};
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = pair(sim, &up, &b);

	sim_station(b, true, sink_frame, &sink);
	send_n(a, b, 20000);
	sim_run(sim, SIM_S, NULL, NULL);
	assert_near(sim_port_stats(a)->corrupted, 20000, 0.02);
	assert_int_equal(sink.frames, 20000);
	/* Some hit the header, or one bit twice. */
	assert_true(sink.wrong > 300 && sink.wrong <= sim_port_stats(a)->corrupted);
}

static void truncation_shortens_frames(struct sim_case *c)
{
	const struct sim_link up = {.truncate = 0.02};
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = pair(sim, &up, &b);

	send_n(a, b, 20000);
	sim_run(sim, SIM_S, NULL, NULL);
	assert_near(sim_port_stats(a)->truncated, 20000, 0.02);
	/* Without a whole address a frame reaches no port. */
	assert_int_equal(sink.frames + sim_port_stats(a)->no_listener, 20000);
	assert_int_equal(sink.wrong + sim_port_stats(a)->no_listener, sim_port_stats(a)->truncated);
}

static void links_change_while_running(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = pair(sim, NULL, &b);

	sim_port_up(a)->blackhole = true;
	send_n(a, b, 10);
	sim_run(sim, SIM_MS, NULL, NULL);
	assert_int_equal(sink.frames, 0);
	assert_int_equal(sim_port_stats(a)->blackholed, 10);
	sim_port_up(a)->blackhole = false;
	sim_port_carrier(b, false);
	send_n(a, b, 10);
	sim_run(sim, SIM_MS, NULL, NULL);
	assert_int_equal(sink.frames, 0);
	sim_port_carrier(b, true);
	send_n(a, b, 10);
	sim_run(sim, SIM_MS, NULL, NULL);
	assert_int_equal(sink.frames, 10);
	sim_port_move(b, 7);
	send_n(a, b, 10);
	sim_run(sim, SIM_MS, NULL, NULL);
	assert_int_equal(sink.frames, 10);
	assert_int_equal(sim_port_stats(a)->no_listener, 10);
}

static void a_broadcast_reaches_all_others(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = pair(sim, NULL, &b), *other;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		other = sim_port_create(sim, NULL);
		sim_station(other, false, sink_frame, &sink);
	}
	send_n(a, NULL, 1);
	sim_run(sim, 0, NULL, NULL);
	assert_int_equal(sink.frames, 4);
	send_n(a, b, 1);
	sim_run(sim, 0, NULL, NULL);
	assert_int_equal(sink.frames, 5);
}

/* Drops the second frame and marks the others. */
static enum sim_verdict second(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
			       void *arg)
{
	unsigned int *count = arg;

	(void)port;
	assert_true(room >= *len);
	data[*len - 1] ^= 1;
	return ++*count == 2 ? SIM_DROP : SIM_PASS;
}

static void a_filter_drops_and_changes(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = pair(sim, NULL, &b);
	unsigned int count = 0;

	sim_filter(a, second, &count);
	send_n(a, b, 5);
	sim_run(sim, 0, NULL, NULL);
	assert_int_equal(sink.frames, 4);
	assert_int_equal(sink.wrong, 4);
	assert_int_equal(sim_port_stats(a)->filtered, 1);
}

/* ---- determinism ---------------------------------------------------------------------------- */

static uint64_t noisy_run(struct sim_case *c, uint64_t seed)
{
	const struct sim_link up = {.rate = 10 * SIM_GBIT,
				    .delay_ns = 5000,
				    .jitter_ns = 3000,
				    .loss = 0.1,
				    .dup = 0.1,
				    .reorder = 0.1,
				    .corrupt = 0.1,
				    .truncate = 0.05};
	struct sim *sim = case_sim_seed(c, seed);
	struct sim_port *b, *a = pair(sim, &up, &b);

	send_n(a, b, 2000);
	sim_run(sim, SIM_S, NULL, NULL);
	return sim_hash(sim);
}

static void the_same_seed_gives_the_same_run(struct sim_case *c)
{
	uint64_t seed = c->seed, first = noisy_run(c, seed);

	assert_true(first == noisy_run(c, seed));
	assert_true(first != noisy_run(c, seed + 1));
}

static void note_time(void *arg)
{
	unsigned int *order = arg;

	*order = *order * 10 + 1;
}

static void note_time2(void *arg)
{
	unsigned int *order = arg;

	*order = *order * 10 + 2;
}

static void calls_come_in_order_of_time(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	unsigned int order = 0;

	sim_at(sim, 300, note_time2, &order);
	sim_at(sim, 100, note_time, &order);
	sim_at(sim, 300, note_time, &order);
	sim_at(sim, 200, note_time2, &order);
	sim_run(sim, 1000, NULL, NULL);
	assert_int_equal(order, 1221);
	assert_int_equal(sim_now(sim), 1000);
}

/* ---- frame ports ---------------------------------------------------------------------------- */

static struct rte_mbuf *mbuf_frame(struct sim_port *from, struct sim_port *to, uint32_t number)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(from->fp.pool),
			*tail = rte_pktmbuf_alloc(from->fp.pool);
	uint8_t f[LEN];

	/* In two segments. */
	make_frame(f, to, from, number, LEN);
	memcpy(rte_pktmbuf_append(m, 100), f, 100);
	memcpy(rte_pktmbuf_append(tail, LEN - 100), f + 100, LEN - 100);
	rte_pktmbuf_chain(m, tail);
	return m;
}

static struct sim_port *open_pair(struct sim *sim, uint64_t rate, struct sim_port **to)
{
	const struct sim_port_params p = {
		.up = {.rate = rate}, .tx_depth = 64, .rx_depth = 128, .bufs = 512};
	struct sim_port *a = sim_port_create(sim, &p);

	*to = sim_port_create(sim, &p);
	assert_int_equal(sim_port_open(a), 0);
	assert_int_equal(sim_port_open(*to), 0);
	memset(&sink, 0, sizeof(sink));
	return a;
}

static void receive_all(struct sim_port *b)
{
	struct rte_mbuf *got[32];
	uint16_t n, i;

	while ((n = b->fp.ops->rx_burst(&b->fp, got, 32))) {
		for (i = 0; i < n; i++) {
			assert_int_equal(rte_pktmbuf_pkt_len(got[i]), rte_pktmbuf_data_len(got[i]));
			sink_frame(b, rte_pktmbuf_mtod(got[i], uint8_t *),
				   rte_pktmbuf_data_len(got[i]), &sink);
			rte_pktmbuf_free(got[i]);
		}
	}
}

static void frame_ports_carry_mbufs(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = open_pair(sim, SIM_GBIT, &b);
	struct rte_mbuf *m;
	unsigned int sent = 0;

	while (sent < 1000) {
		m = mbuf_frame(a, b, sent);
		if (a->fp.ops->tx_burst(&a->fp, &m, 1)) {
			sent++;
		} else {
			rte_pktmbuf_free(m);
			sim_run(sim, 10000, NULL, NULL);
			receive_all(b);
		}
	}
	sim_run(sim, SIM_S, NULL, NULL);
	receive_all(b);
	assert_int_equal(sink.frames, 1000);
	assert_int_equal(sink.wrong + sink.disorder, 0);
	/* A full ring says so. */
	assert_true(sim_port_stats(a)->tx_busy > 0);
	a->fp.ops->close(&a->fp);
	b->fp.ops->close(&b->fp);
	assert_int_equal(sim_leaked(sim), 0);
}

static void sent_buffers_come_back_late(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = open_pair(sim, SIM_GBIT, &b);
	struct rte_mbuf *m = mbuf_frame(a, b, 0);

	assert_int_equal(a->fp.ops->tx_burst(&a->fp, &m, 1), 1);
	assert_int_equal(rte_mempool_in_use_count(a->fp.pool), 2);
	a->fp.ops->tx_kick(&a->fp);
	assert_int_equal(rte_mempool_in_use_count(a->fp.pool), 2);
	sim_run(sim, SIM_MS, NULL, NULL);
	assert_int_equal(rte_mempool_in_use_count(a->fp.pool), 2);
	a->fp.ops->tx_kick(&a->fp);
	assert_int_equal(rte_mempool_in_use_count(a->fp.pool), 0);
	receive_all(b);
	a->fp.ops->close(&a->fp);
	b->fp.ops->close(&b->fp);
}

static void content_is_read_when_the_wire_takes_it(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = open_pair(sim, SIM_GBIT, &b);
	struct rte_mbuf *m = mbuf_frame(a, b, 0);

	assert_int_equal(a->fp.ops->tx_burst(&a->fp, &m, 1), 1);
	/* Too early: the card has not read it yet. */
	*rte_pktmbuf_mtod_offset(m, uint8_t *, 50) ^= 1;
	sim_run(sim, SIM_MS, NULL, NULL);
	receive_all(b);
	assert_int_equal(sink.wrong, 1);
	a->fp.ops->close(&a->fp);
	b->fp.ops->close(&b->fp);
}

static void a_full_receive_ring_drops(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = open_pair(sim, 0, &b);
	struct rte_mbuf *m;
	uint32_t i;

	for (i = 0; i < 200; i++) {
		m = mbuf_frame(a, b, i);
		assert_int_equal(a->fp.ops->tx_burst(&a->fp, &m, 1), 1);
		sim_run(sim, 1000, NULL, NULL);
	}
	receive_all(b);
	assert_int_equal(sink.frames, 128);
	assert_int_equal(sim_port_stats(b)->rx_full, 72);
	a->fp.ops->close(&a->fp);
	b->fp.ops->close(&b->fp);
}

static void a_kept_mbuf_is_found_at_close(struct sim_case *c)
{
	struct sim *sim = case_sim(c);
	struct sim_port *b, *a = open_pair(sim, 0, &b);
	struct rte_mbuf *m = rte_pktmbuf_alloc(a->fp.pool);

	a->fp.ops->close(&a->fp);
	b->fp.ops->close(&b->fp);
	assert_int_equal(sim_leaked(sim), 1);
	rte_pktmbuf_free(m);
	a->stats.leaked = 0;
}

static struct sim_case cases[] = {
	SIM_CASE(a_perfect_link_delivers_at_once),
	SIM_CASE(delay_is_exact),
	SIM_CASE(rate_serialises_frames),
	SIM_CASE(a_full_queue_drops_the_tail),
	SIM_CASE(jitter_varies_delay_and_keeps_order),
	SIM_CASE(loss_has_its_share),
	SIM_CASE(duplicates_have_their_share),
	SIM_CASE(reordering_has_its_share),
	SIM_CASE(corruption_changes_frames),
	SIM_CASE(truncation_shortens_frames),
	SIM_CASE(links_change_while_running),
	SIM_CASE(a_broadcast_reaches_all_others),
	SIM_CASE(a_filter_drops_and_changes),
	SIM_CASE(the_same_seed_gives_the_same_run),
	SIM_CASE(calls_come_in_order_of_time),
	SIM_CASE(frame_ports_carry_mbufs),
	SIM_CASE(sent_buffers_come_back_late),
	SIM_CASE(content_is_read_when_the_wire_takes_it),
	SIM_CASE(a_full_receive_ring_drops),
	SIM_CASE(a_kept_mbuf_is_found_at_close),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "network", cases, sizeof(cases) / sizeof(cases[0]));
}
