/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The path's MTU changes while a connection is up: nothing is lost or doubled, the size that passes
 * is found, and found again when it is larger.
 */

#include "engine/iface.h"
#include "engine/mtu.h"
#include "mock/raw_util.h"

#define MS 1000000ull
#define ROUND_TRIP (20 * 1000ull)

static void narrow(uint32_t a, uint32_t b)
{
	A->wire.max_frame = a;
	B->wire.max_frame = b;
}

static void open_pair(const struct pair_params *params, uint64_t seed)
{
	pair_open(&pair, params, seed);
	A->wire.delay_ns = B->wire.delay_ns = ROUND_TRIP / 2;
	pair_connect(&pair);
}

/* Frames that A sends now are so long at most. */
static uint32_t size_of_a(void)
{
	return raw_ep_best_msg(A->lane_ep) + 14 + 28 + 42 + 4 + 4;
}

static void expect_size(uint32_t size, uint64_t within)
{
	for (uint64_t end = pair.now + within; pair.now < end && size_of_a() != size;)
		pair_step(&pair, 100000);
	assert_int_equal(size_of_a(), size);
	assert_int_equal(A->downs + B->downs, 0);
}

/* A window full of frames is in flight when none of their size passes any more. */
static void fall(uint32_t to)
{
	uint64_t begun;

	stream(100, 8000, 1000 * MS);
	for (uint32_t i = 0; i < 60; i++)
		pair_send(A, A->lane_ep, 1000000 + i, 8000);
	narrow(to, to);
	begun = pair.now;
	stream(200, 8000, 1000 * MS);
	assert_true(pair.now - begun < 400 * MS + 100 * MS); /* stream() ends with 100 ms */
	expect_size(to, 500 * MS);
}

/*
 * @behaviour X20: the path's MTU shrinks during a transfer, also twice and in one direction only:
 * nothing is lost or duplicated, the size that passes is found in 100 ms, and larger frames are
 * used again later; loss and silence change nothing
 * @behaviour R46: A path whose MTU shrinks during a transfer, also twice, loses no message and is
 * used with the smaller MTU; larger frames are tried again
 */
static void a_path_that_becomes_narrow_is_cut_for(void **state)
{
	(void)state;
	open_pair(NULL, 501);
	assert_int_equal(size_of_a(), 9018);
	fall(1514);
	assert_true(pair_counter(A, RAW_TX_PARTS) > 0);
	assert_true(pair_counter(B, RAW_RX_PARTS) > 0);
	assert_int_equal(pair_counter(A, RAW_MTU_LOWER), 1);
	assert_non_null(strstr(A->text, "do not reach"));
	/* Longer messages go still. */
	stream(100, 8000, 1000 * MS);
	pair_close(&pair);
}

/* @behaviour X20, R46 */
static void it_may_become_narrow_again(void **state)
{
	(void)state;
	open_pair(NULL, 502);
	fall(1514);
	fall(1414);
	assert_int_equal(pair_counter(A, RAW_MTU_LOWER), 2);
	pair_close(&pair);
}

/*
 * Below IPv6's least MTU: frames go in parts of IPv4's, until the search has found what passes.
 *
 * @behaviour X20, R46
 */
static void it_may_become_narrower_than_any_lane(void **state)
{
	static const uint32_t sizes[] = {1270, 1014, 700, 590};

	(void)state;
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		open_pair(NULL, 530 + i);
		stream(100, 8000, 1000 * MS);
		for (uint32_t k = 0; k < 60; k++)
			pair_send(A, A->lane_ep, 1000000 + k, 8000);
		narrow(sizes[i], sizes[i]);
		stream(200, 8000, 1000 * MS);
		for (uint64_t end = pair.now + 500 * MS; pair.now < end;)
			pair_step(&pair, 100000);
		assert_in_range(size_of_a(), sizes[i] - 8, sizes[i]);
		assert_non_null(strstr(A->text, "New connections need an MTU of 1280"));
		assert_int_equal(pair_counter(A, RAW_MTU_LOWER), 1);
		narrow(0, 0);
		expect_size(9018, 15000 * MS);
		stream(100, 8000, 1000 * MS);
		assert_int_equal(A->downs + B->downs, 0);
		pair_close(&pair);
	}
}

/* Nothing but small frames passes for a second. They are not reported as a size that passes. */
/* @behaviour X20 */
static void the_report_claims_no_size_that_fails(void **state)
{
	(void)state;
	open_pair(NULL, 540);
	stream(100, 8000, 1000 * MS);
	narrow(400, 400);
	for (uint32_t i = 0; i < 20; i++)
		pair_send(A, A->lane_ep, 1000000 + i, 8000);
	expect_size(590, 500 * MS);
	for (uint64_t end = pair.now + 500 * MS; pair.now < end;)
		pair_step(&pair, 100000);
	assert_non_null(strstr(A->text, "No frame of this size is known to pass"));
	narrow(1014, 1014);
	stream(100, 8000, 1000 * MS);
	for (uint64_t end = pair.now + 8000 * MS; pair.now < end;)
		pair_step(&pair, 1000000);
	assert_in_range(size_of_a(), 1014 - 8, 1014);
	assert_int_equal(A->downs + B->downs, 0);
	pair_close(&pair);
}

/* @behaviour X20 */
static void one_way_is_enough(void **state)
{
	(void)state;
	open_pair(NULL, 503);
	narrow(4000, 0);
	stream(100, 8000, 1000 * MS);
	for (uint64_t end = pair.now + 500 * MS; pair.now < end;)
		pair_step(&pair, 100000);
	/* To within the grain of the search. */
	assert_in_range(size_of_a(), 4000 - 8, 4000);
	assert_int_equal(raw_ep_best_msg(B->accepted) + 92, 9018);
	pair_close(&pair);
}

/* @behaviour X20, R46 */
static void it_is_used_again_when_it_is_wide(void **state)
{
	(void)state;
	open_pair(NULL, 504);
	fall(1514);
	narrow(0, 0);
	for (uint64_t end = pair.now + 15000 * MS; pair.now < end && size_of_a() != 9018;)
		pair_step(&pair, 1000000);
	assert_int_equal(size_of_a(), 9018);
	assert_int_equal(pair_counter(A, RAW_MTU_HIGHER), 1);
	stream(100, 8000, 1000 * MS);
	assert_int_equal(A->downs + B->downs, 0);
	pair_close(&pair);
}

static unsigned int parts_with_crc;

static uint32_t count_parts_with_crc(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	const struct weft_frame_hdr *hdr = (const struct weft_frame_hdr *)(frame + 42);

	(void)from;
	if (frame[12] == 8 && frame[13] == 0 && hdr->type == WEFT_FRAME_PART)
		parts_with_crc += (weft_get16(hdr->flags) & WEFT_FRAME_F_CRC32C) != 0;
	return len;
}

/* @behaviour X20 */
static void parts_have_the_checksum_of_the_connection(void **state)
{
	static const struct pair_params params[] = {{.csum = WEFT_CSUM_CRC32C},
						    {.csum = WEFT_CSUM_UDP}};

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		open_pair(&params[i], 505 + i);
		parts_with_crc = 0;
		A->wire.edit = count_parts_with_crc;
		for (uint32_t k = 0; k < 40; k++)
			pair_send(A, A->lane_ep, 1000000 + k, 8000);
		narrow(1518, 1518);
		stream(100, 8000, 3000 * MS);
		assert_true(pair_counter(A, RAW_TX_PARTS) > 0);
		assert_true((parts_with_crc > 0) == (params[i].csum == WEFT_CSUM_CRC32C));
		pair_close(&pair);
	}
}

/* With every checksum, without IP, with a VLAN tag, with loss and disorder. */
/* @behaviour X20 */
static void whatever_the_frames_look_like(void **state)
{
	static const struct pair_params params[] = {
		{.csum = WEFT_CSUM_CRC32C},
		{.csum = WEFT_CSUM_UDP},
		{.csum = WEFT_CSUM_CRC32C, .raw_ethertype = true},
		{.vlan = 7},
		{.paths = 4},
		{.no_extbuf = true},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
		open_pair(&params[i], 510 + i);
		A->wire.loss = B->wire.loss = 0.02;
		A->wire.dup = 0.01;
		A->wire.reorder = 0.05;
		for (uint32_t k = 0; k < 40; k++)
			pair_send(A, A->lane_ep, 1000000 + k, 8000);
		narrow(1518, 1518);
		stream(200, 8000, 3000 * MS);
		stream(100, 8000, 3000 * MS);
		assert_true(pair_counter(A, RAW_TX_PARTS) > 0);
		assert_in_range(raw_ep_best_msg(A->lane_ep), 1300, 1518);
		assert_int_equal(A->downs + B->downs, 0);
		pair_close(&pair);
	}
}

/* @behaviour X20 */
static void zero_copy_frames_are_cut_too(void **state)
{
	static uint8_t mem[40][8000];
	static struct weft_lane_comp comp[40];

	(void)state;
	open_pair(&pair_fixed, 520);
	B->on_message = nothing;
	done_count = 0;
	narrow(1514, 1514);
	for (unsigned int i = 0; i < 40; i++) {
		struct iovec iov = {mem[i], sizeof(mem[i])};

		comp[i].done = on_done;
		assert_int_equal(A->iface->ops->am_zcopy(A->lane_ep, 5, "header", 6, &iov, 1, NULL,
							 &comp[i]),
				 0);
	}
	for (uint64_t end = pair.now + 1000 * MS; pair.now < end && done_count < 40;)
		pair_step(&pair, 1000);
	assert_int_equal(done_count, 40);
	assert_int_equal(done_status, 0);
	assert_int_equal(B->messages, 40);
	pair_close(&pair);
}

/* Random loss of a third, as a congested queue has it, is no narrow path. */
/* @behaviour X20 */
static void loss_is_not_taken_for_it(void **state)
{
	(void)state;
	open_pair(NULL, 521);
	A->wire.loss = 0.3;
	stream(1000, 8000, 20000 * MS);
	assert_int_equal(pair_counter(A, RAW_MTU_LOWER), 0);
	assert_int_equal(size_of_a(), 9018);
	pair_close(&pair);
}

/* Nor is a silence: the search asks more and more seldom. */
/* @behaviour X20 */
static void silence_is_not_taken_for_it(void **state)
{
	uint64_t before;

	(void)state;
	open_pair(NULL, 522);
	A->wire.blackhole = true;
	for (uint32_t i = 0; i < 20; i++)
		pair_send(A, A->lane_ep, 1000000 + i, 8000);
	for (int i = 0; i < 2000; i++)
		pair_step(&pair, MS);
	before = pair_counter(A, RAW_TX_CONTROL);
	for (int i = 0; i < 10000; i++)
		pair_step(&pair, MS);
	assert_true(pair_counter(A, RAW_TX_CONTROL) - before < 500); /* for another path, too */
	A->wire.blackhole = false;
	stream(100, 8000, 1000 * MS);
	expect_size(9018, 10 * MS);
	assert_int_equal(pair_counter(A, RAW_MTU_LOWER), 0);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_that_becomes_narrow_is_cut_for),
		cmocka_unit_test(it_may_become_narrow_again),
		cmocka_unit_test(it_may_become_narrower_than_any_lane),
		cmocka_unit_test(the_report_claims_no_size_that_fails),
		cmocka_unit_test(one_way_is_enough),
		cmocka_unit_test(it_is_used_again_when_it_is_wide),
		cmocka_unit_test(parts_have_the_checksum_of_the_connection),
		cmocka_unit_test(whatever_the_frames_look_like),
		cmocka_unit_test(zero_copy_frames_are_cut_too),
		cmocka_unit_test(loss_is_not_taken_for_it),
		cmocka_unit_test(silence_is_not_taken_for_it),
	};

	return cmocka_run_group_tests_name("raw_mtu", tests, NULL, NULL);
}
