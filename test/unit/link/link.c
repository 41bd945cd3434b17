/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The model of a link: rate, queue, faults, policers, marks, and the frames it looks into.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "link/link.h"

#define N 100000
#define LEN 1000
#define US 1000ull
#define MS 1000000ull
#define SECOND 1000000000ull
#define GBIT 1000000000ull

static uint8_t bytes[LEN];
static const struct sim_link_frame frame = {bytes, LEN, LEN};

static struct sim_link_state fresh(void)
{
	struct sim_link_state s;

	sim_link_init(&s, 1, 2);
	return s;
}

/* Frames through all of it, @gap apart. @return copies that come out */
static unsigned int run(const struct sim_link *l, struct sim_link_state *s, unsigned int n,
			uint64_t gap)
{
	struct sim_link_copy copy[2];
	uint64_t now = SECOND, sent;
	unsigned int i, out = 0;
	bool mark;

	for (i = 0; i < n; i++, now += gap)
		if (!sim_link_refuses(l, s, &frame, now) &&
		    sim_link_enqueue(l, s, LEN, now, &sent, &mark))
			out += sim_link_deliver(l, s, &frame, sent, copy);
	return out;
}

/* ---- rate and queue ------------------------------------------------------------------------- */

static void a_perfect_link_changes_nothing(void **state)
{
	struct sim_link l = {0};
	struct sim_link_state s = fresh();
	struct sim_link_copy copy[2];
	uint64_t sent;
	bool mark;

	(void)state;
	assert_true(sim_link_enqueue(&l, &s, LEN, 5, &sent, &mark));
	assert_int_equal(sent, 5);
	assert_false(mark);
	assert_int_equal(sim_link_deliver(&l, &s, &frame, sent, copy), 1);
	assert_int_equal(copy[0].when, 5);
	assert_int_equal(copy[0].len, LEN);
	assert_int_equal(copy[0].num_flips, 0);
}

static void a_queue_holds_its_bytes(void **state)
{
	struct sim_link l = {.rate = GBIT, .queue_bytes = 10 * (LEN + SIM_LINK_EXTRA)};
	struct sim_link_state s = fresh();

	(void)state;
	assert_int_equal(run(&l, &s, 100, 0), 10);
	assert_int_equal(s.stats.tail_drops, 90);
	assert_true(s.max_queue <= l.queue_bytes);
	assert_int_equal(sim_link_queued(&l, &s, SECOND), 10 * (LEN + SIM_LINK_EXTRA));
	assert_int_equal(sim_link_queued(&l, &s, SECOND + MS), 0);
}

static void a_burst_passes_at_once_after_a_pause(void **state)
{
	struct sim_link l = {.rate = GBIT, .rate_burst = 5 * (LEN + SIM_LINK_EXTRA)};
	struct sim_link_state s = fresh();
	unsigned int i;

	(void)state;
	for (i = 0; i < 5; i++)
		assert_int_equal(sim_link_serialise(&l, &s, LEN, SECOND), SECOND);
	assert_int_equal(sim_link_serialise(&l, &s, LEN, SECOND),
			 SECOND + (LEN + SIM_LINK_EXTRA) * 8);
}

static void marks_begin_above_their_threshold(void **state)
{
	struct sim_link l = {.rate = GBIT, .ecn_bytes = 3 * (LEN + SIM_LINK_EXTRA)};
	struct sim_link_state s = fresh();
	uint64_t sent;
	unsigned int i;
	bool mark;

	(void)state;
	for (i = 0; i < 10; i++) {
		assert_true(sim_link_enqueue(&l, &s, LEN, SECOND, &sent, &mark));
		assert_int_equal(mark, i > 3);
	}
}

/* ---- faults --------------------------------------------------------------------------------- */

static void near(uint64_t got, double n, double share)
{
	double slack = 6 * __builtin_sqrt(n * share * (1 - share)) + 1;

	if ((double)got < n * share - slack || (double)got > n * share + slack)
		fail_msg("%llu of %.0f is not near %.2f %%", (unsigned long long)got, n,
			 share * 100);
}

static void faults_have_their_shares(void **state)
{
	struct sim_link l = {
		.loss = 0.02, .dup = 0.03, .reorder = 0.05, .corrupt = 0.01, .truncate = 0.04};
	struct sim_link_state s = fresh();
	unsigned int out = run(&l, &s, N, 10 * US);

	(void)state;
	near(s.stats.lost, N, 0.02);
	near(s.stats.dupped, N - (double)s.stats.lost, 0.03);
	near(s.stats.reordered, out, 0.05);
	near(s.stats.corrupted, out, 0.01);
	near(s.stats.truncated, out, 0.04);
	assert_int_equal(out, N - s.stats.lost + s.stats.dupped);
}

/* Shares and lengths of bursts are what was asked for. */
static void bursts_have_share_and_length(void **state)
{
	static const struct sim_link cases[] = {
		{.bursts = 0.01},
		{.bursts = 0.05, .burst_len = 30},
		{.bursts = 0.02, .burst_len = 10, .burst_loss = 0.5}};
	struct sim_link_copy copy[2];
	unsigned int c, i, begun, lost;
	struct sim_link_state s;
	bool gone, before;

	(void)state;
	for (c = 0; c < 3; c++) {
		const struct sim_link *l = &cases[c];
		double len = l->burst_len > 0 ? l->burst_len : 10;

		s = fresh();
		begun = lost = 0;
		before = false;
		for (i = 0; i < 10 * N; i++) {
			gone = !sim_link_deliver(l, &s, &frame, SECOND, copy);
			begun += gone && !before;
			lost += gone;
			before = gone;
		}
		assert_int_equal(lost, s.stats.burst_lost);
		if (lost < 9 * N * l->bursts || lost > 11 * N * l->bursts)
			fail_msg("case %u: %u of %u lost", c, lost, 10 * N);
		if (l->burst_loss > 0)
			continue;
		if ((double)lost / begun < 0.9 * len || (double)lost / begun > 1.1 * len)
			fail_msg("case %u: bursts of %.1f", c, (double)lost / begun);
	}
}

static void jitter_keeps_order_and_reordering_does_not(void **state)
{
	struct sim_link l = {.delay_ns = MS, .jitter_ns = 200 * US};
	struct sim_link_state s = fresh();
	struct sim_link_copy copy[2];
	uint64_t last = 0, now;
	unsigned int i, late = 0;

	(void)state;
	for (i = 0, now = SECOND; i < 10000; i++, now += US) {
		assert_int_equal(sim_link_deliver(&l, &s, &frame, now, copy), 1);
		assert_true(copy[0].when >= last && copy[0].when >= now + MS);
		assert_true(copy[0].when < now + MS + 200 * US);
		last = copy[0].when;
	}
	l = (struct sim_link){.reorder = 0.1, .reorder_ns = 50 * US};
	for (i = 0, last = 0, now = 2 * SECOND; i < 10000; i++, now += US) {
		assert_int_equal(sim_link_deliver(&l, &s, &frame, now, copy), 1);
		assert_true(copy[0].when <= now + 50 * US);
		late += copy[0].when > now;
	}
	near(late, 10000, 0.1);
}

static void frames_of_a_turn_leave_together(void **state)
{
	struct sim_link l = {.delay_ns = MS, .turn_ns = 200 * US};
	struct sim_link_state s = fresh();
	struct sim_link_copy copy[2];
	unsigned int turns = 0;
	uint64_t last = 0;

	(void)state;
	for (uint64_t now = SECOND; now < SECOND + 10 * MS; now += US) {
		assert_int_equal(sim_link_deliver(&l, &s, &frame, now, copy), 1);
		assert_true(copy[0].when >= last && copy[0].when >= now + MS);
		assert_true(copy[0].when < now + MS + 200 * US);
		turns += copy[0].when != last;
		last = copy[0].when;
	}
	/* A turn takes 100 us on average. */
	assert_in_range(turns, 70, 140);
}

static void flips_are_in_the_frame(void **state)
{
	struct sim_link l = {.corrupt = 1};
	struct sim_link_state s = fresh();
	struct sim_link_copy copy[2];
	uint8_t data[LEN];
	unsigned int i, k, changed;

	(void)state;
	for (i = 0; i < 1000; i++) {
		assert_int_equal(sim_link_deliver(&l, &s, &frame, 0, copy), 1);
		assert_in_range(copy[0].num_flips, 1, 3);
		memset(data, 0, sizeof(data));
		sim_link_flip(&copy[0], data, sizeof(data));
		for (k = 0, changed = 0; k < sizeof(data); k++)
			changed += (unsigned int)__builtin_popcount(data[k]);
		/* The same bit twice is no flip. */
		assert_true(changed % 2 == copy[0].num_flips % 2 && changed <= 3);
		sim_link_flip(&copy[0], data, 0);
	}
}

static void a_blackout_ends(void **state)
{
	struct sim_link l = {.blackhole = true};
	struct sim_link_state s = fresh();

	(void)state;
	assert_int_equal(run(&l, &s, 10, 0), 0);
	assert_int_equal(s.stats.blackholed, 10);
	l.blackhole = false;
	assert_int_equal(run(&l, &s, 10, 0), 10);
}

static void a_seed_gives_the_same_and_another_another(void **state)
{
	struct sim_link l = {.loss = 0.1, .jitter_ns = MS, .dup = 0.1, .corrupt = 0.2};
	struct sim_link_copy a[2], b[2], c[2];
	struct sim_link_state s[3];
	unsigned int i, n, differ = 0;

	(void)state;
	sim_link_init(&s[0], 7, 1);
	sim_link_init(&s[1], 7, 1);
	sim_link_init(&s[2], 8, 1);
	for (i = 0; i < 1000; i++) {
		n = sim_link_deliver(&l, &s[0], &frame, i, a);
		assert_int_equal(sim_link_deliver(&l, &s[1], &frame, i, b), n);
		assert_memory_equal(a, b, n * sizeof(a[0]));
		differ += sim_link_deliver(&l, &s[2], &frame, i, c) != n;
	}
	assert_true(differ > 50);
}

/* ---- limits --------------------------------------------------------------------------------- */

static void policers_let_their_rate_and_burst_through(void **state)
{
	struct sim_link l = {.police_rate = 80000000, .police_burst = 10 * LEN};
	struct sim_link_state s = fresh();

	(void)state;
	/* 10 MB/s: a frame each 100 us; a second at ten times that, and the burst before it. */
	near(run(&l, &s, 100000, 10 * US), 100000, 0.1);
	l = (struct sim_link){.police_pps = 1000, .police_pps_burst = 5};
	s = fresh();
	assert_in_range(run(&l, &s, 100000, 10 * US), 1000, 1006);
	s = fresh();
	assert_int_equal(run(&l, &s, 100, 0), 5);
	assert_int_equal(s.stats.policed, 95);
}

static void an_mtu_counts_without_the_ethernet_header(void **state)
{
	struct sim_link l = {.mtu = 900};
	struct sim_link_state s = fresh();
	uint8_t data[LEN] = {[12] = 0x08};
	struct sim_link_frame f = {data, 64, 914};

	(void)state;
	assert_false(sim_link_refuses(&l, &s, &f, 0));
	f.len++;
	assert_true(sim_link_refuses(&l, &s, &f, 0));
	/* A VLAN tag is none of the packet. */
	memcpy(data + 12, "\x81\x00\x00\x05\x08\x00", 6);
	f.len = 918;
	assert_false(sim_link_refuses(&l, &s, &f, 0));
	f.len++;
	assert_true(sim_link_refuses(&l, &s, &f, 0));
	assert_int_equal(s.stats.too_long, 2);
}

/* ---- frames --------------------------------------------------------------------------------- */

static size_t udp_frame(uint8_t *f, bool v6, bool vlan, uint16_t src_port, uint8_t ecn)
{
	size_t at = 12;

	memset(f, 0, 100);
	memset(f, 2, 12);
	if (vlan) {
		memcpy(f + at, "\x81\x00\x00\x05", 4);
		at += 4;
	}
	memcpy(f + at, v6 ? "\x86\xdd" : "\x08\x00", 2);
	at += 2;
	if (v6) {
		f[at] = 0x60;
		f[at + 1] = (uint8_t)(ecn << 4);
		f[at + 6] = 17;
		at += 40;
	} else {
		f[at] = 0x45;
		f[at + 1] = ecn;
		f[at + 9] = 17;
		memcpy(f + at + 12, "\x0a\x00\x00\x01\x0a\x00\x00\x02", 8);
		at += 20;
	}
	f[at] = (uint8_t)(src_port >> 8);
	f[at + 1] = (uint8_t)src_port;
	return at + 8;
}

static void a_flow_is_its_five_tuple(void **state)
{
	uint8_t a[128], b[128];
	unsigned int kind, i, bucket[4];
	size_t len;

	(void)state;
	for (kind = 0; kind < 4; kind++) {
		len = udp_frame(a, kind & 1, kind & 2, 5000, 0);
		udp_frame(b, kind & 1, kind & 2, 5000, 0);
		b[len - 1] ^= 0xff; /* the UDP checksum is none of it */
		b[0] ^= 1;          /* nor the MAC */
		assert_int_equal(sim_link_flow_hash(a, (uint32_t)len),
				 sim_link_flow_hash(b, (uint32_t)len));
		memset(bucket, 0, sizeof(bucket));
		for (i = 0; i < 4000; i++) {
			udp_frame(b, kind & 1, kind & 2, (uint16_t)(40000 + i), 0);
			bucket[sim_link_flow_hash(b, (uint32_t)len) % 4]++;
		}
		for (i = 0; i < 4; i++)
			near(bucket[i], 4000, 0.25);
		/* Cut anywhere it is read within its length (sanitizers look). */
		for (i = 0; i <= len; i++)
			sim_link_flow_hash(a, i);
	}
}

static uint16_t ipv4_sum(const uint8_t *ip)
{
	uint32_t sum = 0;
	unsigned int i;

	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void marks_are_for_capable_packets_only(void **state)
{
	struct sim_link_state s = fresh();
	uint8_t f[128];
	unsigned int kind, ecn, length;
	uint16_t sum;
	size_t len, ip;

	(void)state;
	for (kind = 0; kind < 4; kind++) {
		ip = kind & 2 ? 18 : 14;
		for (ecn = 0; ecn < 4; ecn++) {
			len = udp_frame(f, kind & 1, kind & 2, 5000, (uint8_t)ecn);
			f[ip + 10] = f[ip + 11] = 0;
			sum = (uint16_t)~ipv4_sum(f + ip);
			if (!(kind & 1)) {
				f[ip + 10] = (uint8_t)(sum >> 8);
				f[ip + 11] = (uint8_t)sum;
			}
			assert_int_equal(sim_link_mark(&s, f, (uint32_t)len), ecn != 0);
			assert_int_equal(kind & 1 ? f[ip + 1] >> 4 & 3 : f[ip + 1] & 3,
					 ecn ? 3 : 0);
			if (!(kind & 1))
				assert_int_equal(ipv4_sum(f + ip), 0xffff);
		}
		for (length = 0; length < ip + 20; length++)
			assert_false(sim_link_mark(&s, f, length));
	}
	assert_int_equal(s.stats.marked, 4 * 3);
}

static void a_flow_has_its_cap_and_others_have_theirs(void **state)
{
	struct sim_link l = {.flow_rate = GBIT, .flow_queue = 10 * LEN};
	struct sim_link_state s = fresh();
	struct sim_link_copy copy[2];
	uint8_t a[128], b[128];
	struct sim_link_frame fa = {a, 60, LEN}, fb = {b, 60, LEN};
	unsigned int i, out = 0;

	(void)state;
	udp_frame(a, false, false, 5000, 0);
	udp_frame(b, false, false, 5001, 0);
	for (i = 0; i < 100; i++)
		out += sim_link_deliver(&l, &s, &fa, SECOND, copy);
	/* Ten wait and one is on its way. */
	assert_in_range(out, 10, 11);
	assert_int_equal(s.stats.flow_drops, 100 - out);
	assert_int_equal(sim_link_deliver(&l, &s, &fb, SECOND, copy), 1);
	assert_int_equal(copy[0].when, SECOND + (LEN + SIM_LINK_EXTRA) * 8);
}

static void a_policer_of_flows_drops_without_delay(void **state)
{
	struct sim_link l = {.flow_police = GBIT, .flow_burst = 10 * LEN};
	struct sim_link_state s = fresh();
	struct sim_link_copy copy[2];
	uint8_t a[128], b[128];
	struct sim_link_frame fa = {a, 60, LEN}, fb = {b, 60, LEN};
	unsigned int out = 0;

	(void)state;
	udp_frame(a, false, false, 5000, 0);
	udp_frame(b, false, false, 5001, 0);
	for (unsigned int i = 0; i < 100; i++)
		out += sim_link_deliver(&l, &s, &fa, SECOND, copy);
	assert_int_equal(out, 10);
	assert_int_equal(s.stats.flow_drops, 90);
	assert_int_equal(sim_link_deliver(&l, &s, &fb, SECOND, copy), 1);
	assert_int_equal(copy[0].when, SECOND);
	assert_int_equal(sim_link_deliver(&l, &s, &fa, SECOND + 8 * US, copy), 1);
	assert_int_equal(copy[0].when, SECOND + 8 * US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_perfect_link_changes_nothing),
		cmocka_unit_test(a_queue_holds_its_bytes),
		cmocka_unit_test(a_burst_passes_at_once_after_a_pause),
		cmocka_unit_test(marks_begin_above_their_threshold),
		cmocka_unit_test(faults_have_their_shares),
		cmocka_unit_test(bursts_have_share_and_length),
		cmocka_unit_test(jitter_keeps_order_and_reordering_does_not),
		cmocka_unit_test(frames_of_a_turn_leave_together),
		cmocka_unit_test(flips_are_in_the_frame),
		cmocka_unit_test(a_blackout_ends),
		cmocka_unit_test(a_seed_gives_the_same_and_another_another),
		cmocka_unit_test(policers_let_their_rate_and_burst_through),
		cmocka_unit_test(an_mtu_counts_without_the_ethernet_header),
		cmocka_unit_test(a_flow_is_its_five_tuple),
		cmocka_unit_test(marks_are_for_capable_packets_only),
		cmocka_unit_test(a_flow_has_its_cap_and_others_have_theirs),
		cmocka_unit_test(a_policer_of_flows_drops_without_delay),
	};

	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
