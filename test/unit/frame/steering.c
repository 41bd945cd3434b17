/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frame/frame_port.h"
#include "mock/rounds.h"

static uint64_t dice_state = 1;

static uint32_t dice(void)
{
	dice_state = dice_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(dice_state >> 32);
}

/* The key and the values of Microsoft's "Verifying the RSS Hash Calculation" (IPv4 with ports). */
static const uint8_t known_key[40] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static uint32_t ip(unsigned int a, unsigned int b, unsigned int c, unsigned int d)
{
	return a << 24 | b << 16 | c << 8 | d;
}

static void the_hash_is_the_one_that_nics_have(void **state)
{
	static struct weft_rss rss = {.reta_size = 512};

	(void)state;
	memcpy(rss.key, known_key, sizeof(known_key));
	for (uint16_t i = 0; i < 512; i++)
		rss.reta[i] = i;
	assert_int_equal(weft_rss_queue(&rss, ip(66, 9, 149, 187), ip(161, 142, 100, 80), 2794,
					1766),
			 0x51ccc178 & 511);
	assert_int_equal(weft_rss_queue(&rss, ip(199, 92, 111, 2), ip(65, 69, 140, 83), 14230,
					4739),
			 0xc626b0ea & 511);
	assert_int_equal(weft_rss_queue(&rss, ip(24, 19, 198, 95), ip(12, 22, 207, 184), 12898,
					38024),
			 0x5c2b394a & 511);
}

/*
 * Every port has one owner at most, and what a queue listens on or takes from its range is its own.
 */
static void ranges_share_the_ports_out(void **state)
{
	static const uint16_t bases[] = {1, 9338, 0x3fff, 0x4000, 0x7ffe, 0xbffe, 0xc000, 0xffc0};

	(void)state;
	for (size_t b = 0; b < sizeof(bases) / sizeof(bases[0]); b++) {
		for (uint16_t n = 1; n <= 64; n++) {
			struct weft_port_range r[64];

			for (uint16_t q = 0; q < n; q++) {
				r[q] = weft_port_range(bases[b], q, n);
				assert_int_equal(r[q].first & ~r[q].mask, 0);
				assert_in_range(r[q].mask, 0xc000, 0xff00);
			}
			for (uint32_t p = 0; p<65536; p += n> 4 ? 61 : 1) {
				int owner = weft_port_owner(bases[b], n, (uint16_t)p), takes = -1;

				for (uint16_t q = 0; q < n; q++) {
					if (p == (uint32_t)bases[b] + q ||
					    (p & r[q].mask) == r[q].first) {
						assert_int_equal(takes, -1);
						takes = q;
					}
				}
				assert_int_equal(owner, takes);
			}
		}
	}
	/* One queue, as if nothing were known of queues. */
	assert_int_equal(weft_port_range(9338, 0, 0).first, 0xc000);
	assert_int_equal(weft_port_range(9338, 0, 0).mask, 0xc000);
}

static struct weft_path_choice random_choice(struct weft_rss *rss, uint16_t queues)
{
	uint16_t queue = (uint16_t)(dice() % queues), base = (uint16_t)(1 + dice() % 65000);

	for (size_t i = 0; i < sizeof(rss->key) / 4; i++)
		rss->key[i] = dice();
	rss->reta_size = (uint16_t)(64u << dice() % 4);
	for (uint16_t i = 0; i < rss->reta_size; i++)
		rss->reta[i] = i % queues;
	return (struct weft_path_choice){
		.range = weft_port_range(base, queue, queues),
		.rss = rss,
		.queue = queue,
		.spread = true,
		.ip = dice(),
		.peer_ip = dice(),
		.port = (uint16_t)(base + queue),
		.peer_port = (uint16_t)(1 + dice() % 65535),
		.token = dice(),
	};
}

/*
 * All candidates lie in the range, differ, and bring answers to the queue, until all have been had.
 */
static void candidates_bring_answers_to_the_queue(void **state)
{
	static uint8_t had[65536];
	static struct weft_rss rss;

	(void)state;
	for (unsigned int round = 0; round < test_rounds(400); round++) {
		struct weft_path_choice c = random_choice(&rss, (uint16_t)(1 + dice() % 16));
		uint32_t cursor = 0, size = (uint16_t)~c.range.mask + 1u, good = 0, taken = 0;

		memset(had, 0, sizeof(had));
		for (uint32_t p = c.range.first; p < c.range.first + size; p++)
			good += weft_rss_queue(&rss, c.peer_ip, c.ip, c.peer_port, (uint16_t)p) ==
				c.queue;
		for (unsigned int path = 0; taken < good; path = (path + 1) % 16, taken++) {
			uint16_t p = weft_path_port(&c, path, &cursor);

			assert_int_equal(p & c.range.mask, c.range.first);
			assert_false(had[p]);
			had[p] = 1;
			assert_int_equal(weft_rss_queue(&rss, c.peer_ip, c.ip, c.peer_port, p),
					 c.queue);
		}
		/* Then any other will do, and it never ends. */
		for (unsigned int i = 0; i < 100; i++)
			assert_int_equal(weft_path_port(&c, 1, &cursor) & c.range.mask,
					 c.range.first);
	}
}

static void without_a_hash_path_0_has_the_port_that_is_listened_on(void **state)
{
	struct weft_path_choice c = {
		.range = weft_port_range(9338, 0, 1),
		.port = 9338,
		.peer_port = 9338,
		.token = 0x12345678,
	};
	uint32_t cursor = 0;
	uint16_t p[16];

	(void)state;
	assert_int_equal(weft_path_port(&c, 0, &cursor), 9338);
	assert_int_equal(weft_path_port(&c, 0, &cursor), 9338);
	for (unsigned int k = 1; k < 16; k++) {
		p[k] = weft_path_port(&c, k, &cursor);
		assert_true(p[k] >= 0xc000);
		for (unsigned int i = 1; i < k; i++)
			assert_int_not_equal(p[i], p[k]);
	}
	/* A range of which only 16 ports come to the queue. */
	c.range_max = 16;
	for (unsigned int i = 0; i < 100; i++)
		assert_in_range(weft_path_port(&c, 1 + i % 15, &cursor), 0xc000, 0xc00f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_hash_is_the_one_that_nics_have),
		cmocka_unit_test(ranges_share_the_ports_out),
		cmocka_unit_test(candidates_bring_answers_to_the_queue),
		cmocka_unit_test(without_a_hash_path_0_has_the_port_that_is_listened_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
