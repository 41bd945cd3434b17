/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint gets a further lane while a send is at any stage: what has not begun is chosen anew,
 * what has begun goes on, and every byte arrives once.
 */

#include "mock/msg_util.h"
#include "mock/rounds.h"

#define LANES 3

static uint8_t src[60000], dst[60000];

/* Lanes that differ, so that the choice changes with them. */
static const struct pair_lane_params lanes[LANES] = {
	{.max_short = 256, .max_bcopy = 1024, .bandwidth = 1e9, .latency = 2e-6},
	{.max_short = 128, .max_bcopy = 4096, .bandwidth = 4e9, .latency = 1e-6},
	{.max_short = 64, .max_bcopy = 2048, .max_zcopy = 8192, .bandwidth = 2e9, .latency = 3e-6},
};

/* Lanes 0 .. n-1 are there, at both ends. */
static void set_lanes(struct pair *p, unsigned int n)
{
	for (unsigned int s = 0; s < 2; s++) {
		p->ep[s].lanes_up = (uint16_t)((1u << n) - 1);
		p->ep[s].am_lane = n > 1 ? 1 : 0;
		weft_msg_ep_connected(&p->ep[s], NULL);
	}
}

static void open_with_one(struct pair *p)
{
	struct weft_wire_credit c[2];

	pair_open_unconnected(p, LANES, lanes);
	for (unsigned int s = 0; s < 2; s++)
		weft_msg_ep_grant(&p->ep[s], &c[s]);
	for (unsigned int s = 0; s < 2; s++) {
		p->ep[s].state = WEFT_EP_UP;
		p->ep[s].lanes_up = 1;
		weft_msg_ep_connected(&p->ep[s], &c[!s]);
	}
}

struct how {
	size_t len;
	bool sync, late;
	enum weft_rndv_scheme scheme;
};

/*
 * After @p steps steps of delivery and service further lanes join. @return was it under way then?
 */
static bool one_message(const struct how *how, int steps, uint64_t seed)
{
	uint64_t id = seed;
	struct op s, r;
	struct pair p;
	bool under_way;

	pair_defaults(&p);
	p.conf.rndv_scheme = how->scheme;
	open_with_one(&p);
	pair_room(&p, 0, 2); /* so that a send stops in its middle */
	memset(dst, 0xee, sizeof(dst));
	pattern_fill(id, 0, src, how->len);
	if (!how->late)
		op_recv(&r, &p.w[1], dst, sizeof(dst), 7, FULL);
	op_send_dt(&s, &p.ep[0], src, how->len, 7, how->sync, NULL);
	for (int i = 0; i < steps; i++) {
		if (p.num)
			pair_deliver(&p, pair_random(&seed) % p.num);
		pair_progress(&p);
		pair_room(&p, 0, 1);
	}
	under_way = p.num || !op_done(&s);
	set_lanes(&p, 1 + (unsigned int)steps % LANES);
	pair_room(&p, 0, -1);
	if (how->late)
		op_recv(&r, &p.w[1], dst, sizeof(dst), 7, FULL);
	pair_run_random(&p, &seed);
	set_lanes(&p, LANES);
	pair_run_random(&p, &seed);
	op_end(&s, 0);
	op_end_recv(&r, dst, how->len, 7, id);
	pair_check_empty(&p);
	pair_close(&p);
	return under_way;
}

/*
 * @behaviour U68: lanes that join during traffic, at every stage of every protocol (lanes that
 * leave: U73)
 */
static void lanes_join_at_every_stage_of_every_protocol(void **state)
{
	/* Short, packed, multi-eager, and rendezvous of a length for each. */
	static const size_t sizes[] = {1, 200, 900, 1500, 5000, 8100, 9000, 20000, 60000};
	static const enum weft_rndv_scheme schemes[] = {WEFT_RNDV_GET, WEFT_RNDV_AM};
	const int stride = 200 / (int)test_rounds(200);

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int k = 0; k < 8; k++) {
			struct how how = {sizes[i], k & 1, k & 2, schemes[k / 4]};

			for (int steps = 0; steps < 200; steps += stride)
				if (!one_message(&how, steps, (uint64_t)steps * 977 + i + 1))
					break;
		}
	}
}

/* @behaviour U68 */
static void what_has_not_begun_is_chosen_anew(void **state)
{
	struct weft_proto_info info = {.size = sizeof(info)};
	struct op s[3], r[3];
	struct pair p;

	(void)state;
	pair_defaults(&p);
	open_with_one(&p);
	assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND, 2000, &info), 0);
	assert_string_equal(info.name, "multi-eager");
	assert_int_equal(info.lanes, 1);
	/* The lane is full: three sends wait. Then a lane comes that carries them whole. */
	pair_room(&p, 0, 0);
	for (int i = 0; i < 3; i++) {
		pattern_fill((uint64_t)i, 0, src + 2000 * i, 2000);
		op_recv(&r[i], &p.w[1], dst + 2000 * i, 2000, (uint64_t)i, FULL);
		op_send(&s[i], &p.ep[0], src + 2000 * i, 2000, (uint64_t)i);
		assert_int_equal(s[i].rc, WEFT_INPROGRESS);
	}
	pair_progress(&p);
	assert_int_equal(p.num, 0);
	pair_room(&p, 0, -1);
	set_lanes(&p, 2);
	assert_int_equal(weft_ep_query_proto(&p.ep[0], WEFT_OP_TAG_SEND, 2000, &info), 0);
	assert_string_equal(info.name, "eager/bcopy");
	pair_progress(&p);
	/* One lane message each instead of two. */
	assert_int_equal(pair_count(&p, 1, WEFT_WIRE_EAGER), 3);
	assert_int_equal(pair_count(&p, 1, WEFT_WIRE_FRAG), 0);
	pair_run(&p);
	for (int i = 0; i < 3; i++) {
		op_end(&s[i], 0);
		op_end_recv(&r[i], dst + 2000 * i, 2000, (uint64_t)i, (uint64_t)i);
	}
	pair_check_empty(&p);
	pair_close(&p);
}

static void configurations_are_shared_and_given_back(void **state)
{
	struct weft_ep_config *config;
	struct pair p;

	(void)state;
	pair_defaults(&p);
	open_with_one(&p);
	config = p.ep[0].msg->config;
	set_lanes(&p, 1); /* nothing has changed */
	assert_ptr_equal(p.ep[0].msg->config, config);
	set_lanes(&p, 3);
	assert_ptr_not_equal(p.ep[0].msg->config, config);
	/* The unused one is gone. */
	assert_null(LIST_NEXT(LIST_FIRST(&p.w[0].msg->configs), link));
	assert_int_equal(p.ep[0].msg->config->refs, 1);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_join_at_every_stage_of_every_protocol),
		cmocka_unit_test(what_has_not_begun_is_chosen_anew),
		cmocka_unit_test(configurations_are_shared_and_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
