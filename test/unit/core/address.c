/* SPDX-License-Identifier: BSD-3-Clause */

/* Worker addresses, and which pairs of interfaces become lanes. */

#include <math.h>

#include "core/address.h"
#include "mock/conn_util.h"
#include "wireup/select.h"
#include "mock/rounds.h"

static struct weft_address sample(unsigned int ifaces)
{
	struct weft_address a = {.worker_id = 0x0123456789abcdefull,
				 .features = 1,
				 .secret = 0xfedcba9876543210ull,
				 .host_id = 0x1122334455667788ull,
				 .name = "somebody",
				 .num_ifaces = ifaces};
	unsigned int i;

	for (i = 0; i < ifaces; i++) {
		a.ifaces[i] = (struct weft_address_iface){
			.index = (uint8_t)i,
			.driver = "dpdk",
			.device = 77 + i,
			.features = 0x17,
			.bandwidth = 1.25e9f,
			.latency = 2e-6f,
			.send_overhead = 1e-7f,
			.recv_overhead = 2e-7f,
			.reg_cost = 1e-5f,
			.reg_growth = 1e-11f,
			.max_short = 200,
			.max_bcopy = 8900,
			.max_zcopy = 8900,
			.addr_len = WEFT_LANE_ADDR_MAX,
		};
		memset(a.ifaces[i].addr, (int)i + 1, WEFT_LANE_ADDR_MAX);
	}
	return a;
}

/*
 * @behaviour U60: addresses: at most slightly more than 2 KiB, unpacked as packed, damaged or empty
 * ones refused
 */
static void unpack_gives_what_was_packed(void **state)
{
	struct weft_address a, b;
	uint8_t buf[WEFT_ADDRESS_MAX];
	unsigned int n;

	(void)state;
	for (n = 0; n <= 16; n++) {
		a = sample(n);
		assert_int_equal(weft_address_pack(&a, buf), weft_address_size(&a));
		assert_int_equal(weft_address_unpack(&b, buf, weft_address_size(&a), NULL, 0), 0);
		assert_int_equal(b.major, WEFT_WIRE_MAJOR);
		b.major = b.minor = 0;
		assert_memory_equal(&a, &b, sizeof(a));
	}
}

/* @behaviour U60 */
static void eight_interfaces_fit_into_2_kib(void **state)
{
	struct weft_address a = sample(8);

	(void)state;
	memset(a.name, 'n', sizeof(a.name) - 1);
	assert_true(weft_address_size(&a) <= 2048);
	a = sample(16);
	memset(a.name, 'n', sizeof(a.name) - 1);
	assert_true(weft_address_size(&a) <= WEFT_ADDRESS_MAX);
}

/*
 * @behaviour X5: a wrong or truncated worker address
 * @behaviour U60
 */
static void truncated_and_changed_addresses_are_refused(void **state)
{
	struct weft_address a = sample(3), b;
	uint8_t buf[WEFT_ADDRESS_MAX], *exact;
	size_t len = weft_address_pack(&a, buf), i;
	char why[128];
	int rc;

	(void)state;
	for (i = 0; i < len; i++) {
		/* Own allocation: reading past the end is seen. */
		exact = malloc(i ? i : 1);
		memcpy(exact, buf, i);
		assert_int_equal(weft_address_unpack(&b, exact, i, why, sizeof(why)), -EINVAL);
		assert_true(strlen(why) > 10);
		free(exact);
	}
	for (i = 0; i < len * 8; i++) {
		buf[i / 8] ^= (uint8_t)(1u << i % 8);
		rc = weft_address_unpack(&b, buf, len, why, sizeof(why));
		/* Of another major version nothing else is believed. */
		assert_int_equal(rc, i / 8 == offsetof(struct weft_wire_address, major)
					     ? -EPROTONOSUPPORT
					     : -EINVAL);
		buf[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	assert_int_equal(weft_address_unpack(&b, NULL, 0, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "empty"));
}

/*
 * Damage that the checksum does not see, because its maker computed it: lengths and figures that
 * lie.
 */
static void impossible_figures_are_refused(void **state)
{
	/* The ends of what is taken, by figure: the next ones beyond them are not. */
	static const struct {
		float lowest, highest;
		size_t at;
	} figures[] = {
		{WEFT_WIRE_RATE_MIN, WEFT_WIRE_RATE_MAX,
		 offsetof(struct weft_address_iface, bandwidth)},
		{0, WEFT_WIRE_LATENCY_MAX, offsetof(struct weft_address_iface, latency)},
		{0, WEFT_WIRE_OVERHEAD_MAX, offsetof(struct weft_address_iface, send_overhead)},
		{0, WEFT_WIRE_OVERHEAD_MAX, offsetof(struct weft_address_iface, recv_overhead)},
		{0, WEFT_WIRE_REG_COST_MAX, offsetof(struct weft_address_iface, reg_cost)},
		{0, WEFT_WIRE_REG_GROWTH_MAX, offsetof(struct weft_address_iface, reg_growth)},
	};
	static const float never[] = {-1, -1e-30f, 3e38f, INFINITY, -INFINITY, NAN};
	char why[160];

	(void)state;
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		const float good[] = {0, figures[i].lowest, figures[i].highest};
		const float bad[] = {nextafterf(figures[i].lowest, -1),
				     nextafterf(figures[i].highest, INFINITY)};

		for (size_t k = 0; k < 11; k++) {
			struct weft_address a = sample(2), b;
			float x = k < 3 ? good[k] : k < 5 ? bad[k - 3] : never[k - 5];
			uint8_t buf[WEFT_ADDRESS_MAX];
			int rc;

			memcpy((char *)&a.ifaces[1] + figures[i].at, &x, sizeof(x));
			rc = weft_address_unpack(&b, buf, weft_address_pack(&a, buf), why,
						 sizeof(why));
			if (rc != (k < 3 ? 0 : -EINVAL))
				fail_msg("figure %zu: %g", i, (double)x);
			if (rc)
				assert_non_null(strstr(why, "figures"));
		}
	}
}

/* @behaviour U60, X5 */
static void hostile_addresses_are_refused(void **state)
{
	struct weft_address a = sample(2), b;
	uint8_t buf[WEFT_ADDRESS_MAX];
	uint32_t r = 1;
	unsigned int i, k, taken = 0;
	uint8_t *exact;
	size_t len;

	(void)state;
	a.ifaces[1].index = a.ifaces[0].index;
	len = weft_address_pack(&a, buf);
	assert_int_equal(weft_address_unpack(&b, buf, len, NULL, 0),
			 -EINVAL); /* one number twice */
	a = sample(1);
	a.worker_id = 0;
	len = weft_address_pack(&a, buf);
	assert_int_equal(weft_address_unpack(&b, buf, len, NULL, 0), -EINVAL);
	/* Any byte behind the magic and the length may be anything. */
	for (i = 0; i < test_rounds(100000); i++) {
		a = sample(1 + i % 3);
		len = weft_address_pack(&a, buf);
		exact = malloc(len);
		memcpy(exact, buf, len);
		for (k = 0; k < 1 + i % 4; k++) {
			r = r * 1664525u + 1013904223u;
			exact[12 + (r >> 8) % (len - 12)] = (uint8_t)(r >> 24);
		}
		weft_address_seal(exact, len);
		taken += weft_address_unpack(&b, exact, len, NULL, 0) == 0;
		free(exact);
	}
	assert_in_range(taken, 1000, 99000);
}

/* @behaviour X6: an address, a request or a frame of another version */
static void another_version_is_distinguished_from_damage(void **state)
{
	struct weft_address_attr attr = {.size = sizeof(attr)};
	struct weft_address a = sample(1), b;
	uint8_t buf[WEFT_ADDRESS_MAX];
	size_t len = weft_address_pack(&a, buf);
	char why[160], both[64];

	(void)state;
	assert_int_equal(weft_address_query(buf, len, &attr), 0);
	assert_true(attr.worker_id == a.worker_id);
	assert_int_equal(attr.num_ifaces, 1);
	assert_string_equal(attr.name, "somebody");
	attr.size = 0;
	assert_int_equal(weft_address_query(buf, len, &attr), -EINVAL);
	attr.size = sizeof(attr.size) + 4; /* an older program */
	assert_int_equal(weft_address_query(buf, len, &attr), 0);
	/* A later major, with its own checksum: the head still says so. */
	attr.size = sizeof(attr);
	buf[offsetof(struct weft_wire_address, major)] = 9;
	weft_address_seal(buf, len);
	assert_int_equal(weft_address_query(buf, len, &attr), -EPROTONOSUPPORT);
	assert_int_equal(attr.version >> 8, 9);
	/* Its layout may be another one, so neither the checksum nor the length is looked at. */
	buf[len - 1] ^= 1;
	buf[offsetof(struct weft_wire_address, minor)] = 4;
	attr.version = 0;
	assert_int_equal(weft_address_query(buf, len, &attr), -EPROTONOSUPPORT);
	assert_int_equal(attr.version, 9 << 8 | 4);
	assert_int_equal(weft_address_unpack(&b, buf, len - 1, why, sizeof(why)), -EPROTONOSUPPORT);
	snprintf(both, sizeof(both), "version 9.4, this is %u.%u", WEFT_WIRE_MAJOR,
		 WEFT_WIRE_MINOR);
	assert_non_null(strstr(why, both));
	/* Ours, damaged. */
	buf[offsetof(struct weft_wire_address, major)] = WEFT_WIRE_MAJOR;
	assert_int_equal(weft_address_query(buf, len, &attr), -EINVAL);
}

static void a_workers_address_holds_its_network_interfaces(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=2s", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0;mock:1"),
			   *alone = mock_worker(ctx, "self");
	struct weft_address_attr attr = {.size = sizeof(attr)};
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params);
	struct weft_ep *ep;
	void *address;
	size_t len;

	(void)state;
	weft_log_setup(WEFT_LOG_WARN, "/dev/null");
	assert_int_equal(weft_worker_get_address(w, &address, &len), 0);
	assert_int_equal(weft_address_query(address, len, &attr), 0);
	assert_int_equal(attr.num_ifaces, 2);
	assert_true(attr.worker_id == w->id);
	weft_worker_release_address(w, address);
	/* One without any: good for itself, politely refused by others. */
	assert_int_equal(weft_worker_get_address(alone, &address, &len), 0);
	p.address = address;
	p.address_length = len;
	assert_int_equal(weft_ep_create(w, &p, &ep), -EHOSTUNREACH);
	assert_int_equal(weft_ep_create(alone, &p, &ep), 0);
	weft_worker_release_address(alone, address);
	weft_log_setup(WEFT_LOG_WARN, NULL);
	conn_destroy(ctx, w, alone);
}

/* ------------------------------------------------------------------ selection */

static struct weft_address_iface local[16], remote[16];

static struct weft_address_iface port(uint8_t index, double bw, double lat, uint64_t device)
{
	return (struct weft_address_iface){
		.index = index,
		.driver = "dpdk",
		.device = device,
		.bandwidth = (float)bw,
		.latency = (float)lat,
		.features = WEFT_LANE_F_TO_IFACE | WEFT_LANE_F_SHORT,
		.max_short = 200,
		.max_bcopy = 8000,
	};
}

static struct weft_select all_reach(unsigned int l, unsigned int r)
{
	struct weft_select in = {.local = local, .remote = remote, .num_local = l, .num_remote = r};
	unsigned int i;

	for (i = 0; i < l; i++)
		in.reach[i] = (uint16_t)((1u << r) - 1);
	return in;
}

static void the_pair_with_the_lowest_latency_connects_first(void **state)
{
	struct weft_select in = all_reach(2, 2);
	struct weft_pair p[64];

	(void)state;
	local[0] = port(0, 1e9, 5e-6, 1);
	local[1] = port(1, 1e9, 1e-6, 2);
	remote[0] = port(0, 1e9, 1e-6, 1);
	remote[1] = port(1, 1e9, 1e-6, 2);
	assert_int_equal(weft_select_boot(&in, p, 64), 4);
	assert_int_equal(p[0].local, 1);
	assert_int_equal(p[0].remote, 0);
	/* The second try uses neither of the first one's interfaces. */
	assert_int_equal(p[1].local, 0);
	assert_int_equal(p[1].remote, 1);
	remote[0].features = WEFT_LANE_F_TO_EP | WEFT_LANE_F_SHORT; /* not bootable */
	assert_int_equal(weft_select_boot(&in, p, 64), 2);
	assert_int_equal(p[0].remote, 1);
	in.reach[0] = in.reach[1] = 0;
	assert_int_equal(weft_select_boot(&in, p, 64), 0);
}

/* @behaviour U59 */
static void each_device_is_used_once_before_any_twice(void **state)
{
	struct weft_select_lane out[16];
	struct weft_select in;
	unsigned int n, i;

	(void)state;
	/* Two ports of one card and a second card, on both sides. */
	for (i = 0; i < 3; i++)
		local[i] = remote[i] = port((uint8_t)i, 1e9, 1e-6, i < 2 ? 1 : 2);
	in = all_reach(3, 3);
	n = weft_select_lanes(&in, out, 16);
	assert_int_equal(n, 3);
	assert_int_not_equal(local[out[0].pair.local].device, local[out[1].pair.local].device);
	assert_int_not_equal(remote[out[0].pair.remote].device, remote[out[1].pair.remote].device);
	/* No interface twice when there is no bandwidth left on it. */
	for (i = 0; i < 3; i++)
		assert_int_equal(out[i].pair.local, out[i].pair.remote);
}

/* @behaviour U59 */
static void bandwidth_left_over_is_used(void **state)
{
	struct weft_select_lane out[16];
	struct weft_select in = all_reach(1, 5);
	unsigned int i, n;
	double sum = 0;

	(void)state;
	local[0] = port(0, 12.5e9, 1e-6, 1);
	for (i = 0; i < 5; i++)
		remote[i] = port((uint8_t)i, 3.125e9, 1e-6, 10 + i);
	n = weft_select_lanes(&in, out, 16);
	assert_int_equal(n, 4);
	for (i = 0; i < n; i++)
		sum += out[i].bandwidth;
	assert_true(sum > 12.4e9 && sum < 12.6e9);
	/* A remainder of less than a quarter is not worth a lane. */
	local[0] = port(0, 3.5e9, 1e-6, 1);
	assert_int_equal(weft_select_lanes(&in, out, 16), 1);
}

/* @behaviour U59 */
static void the_fast_ports_find_each_other(void **state)
{
	struct weft_select_lane out[16];
	struct weft_select in = all_reach(2, 2);

	(void)state;
	local[0] = port(0, 1e9, 1e-6, 1);
	local[1] = port(1, 10e9, 1e-6, 2);
	remote[0] = port(0, 10e9, 1e-6, 1);
	remote[1] = port(1, 1e9, 1e-6, 2);
	assert_int_equal(weft_select_lanes(&in, out, 16), 2);
	assert_int_equal(out[0].pair.local, 1);
	assert_int_equal(out[0].pair.remote, 0);
	assert_int_equal(out[1].pair.local, 0);
	assert_int_equal(out[1].pair.remote, 1);
	/* The connection that is there becomes lane 0, whatever it is. */
	in.have_boot = true;
	in.boot = (struct weft_pair){0, 0};
	weft_select_lanes(&in, out, 16);
	assert_int_equal(out[0].pair.local, 0);
	assert_int_equal(out[0].pair.remote, 0);
}

/* Both ends get the same lanes from the same numbers, whichever end computes. */
/*
 * Inside a host the lane through its memory is the only one, whatever it and the networks say of
 * their speed; if another pair had to connect, it is left out of the stripes.
 */
static void lanes_inside_a_host_are_not_mixed_with_networks(void **state)
{
	struct weft_select in = all_reach(3, 3);
	struct weft_select_lane out[WEFT_MAX_LANES];
	struct weft_pair pairs[WEFT_MAX_BOOT_PAIRS];

	(void)state;
	local[0] = remote[0] = port(0, 100e9, 1e-9, 1);
	local[1] = remote[1] = port(1, 1e9, 1e-3, 2);
	local[1].features |= WEFT_LANE_F_HOST;
	remote[1].features |= WEFT_LANE_F_HOST;
	local[2] = remote[2] = port(2, 100e9, 1e-9, 3);
	in.reach[0] = in.reach[2] = 5;
	in.reach[1] = 2;
	assert_true(weft_select_boot(&in, pairs, WEFT_MAX_BOOT_PAIRS) > 1);
	assert_int_equal(pairs[0].local, 1);
	in.have_boot = true;
	in.boot = pairs[0];
	assert_int_equal(weft_select_lanes(&in, out, WEFT_MAX_LANES), 1);
	assert_int_equal(out[0].pair.local, 1);
	in.boot = pairs[1];
	assert_int_equal(weft_select_lanes(&in, out, WEFT_MAX_LANES), 2);
	assert_int_not_equal(out[0].pair.local, 1);
	assert_int_not_equal(out[1].pair.local, 1);
}

/* @behaviour U59: selection is deterministic and the same at both ends */
static void selection_is_the_same_from_both_ends(void **state)
{
	struct weft_select_lane here[16], there[16];
	struct weft_select in, back;
	unsigned int round, i, k, l, r, n;
	uint32_t seed = 3;

	(void)state;
	for (round = 0; round < test_rounds(2000); round++) {
		seed = seed * 1664525u + 1013904223u;
		l = 1 + (seed >> 28) % 5;
		r = 1 + (seed >> 24) % 5;
		for (i = 0; i < l; i++)
			local[i] = port((uint8_t)i, 1e9 * (1 + (seed >> i) % 4),
					1e-6 * (1 + (seed >> (i + 3)) % 3), 1 + (seed >> i) % 3);
		for (i = 0; i < r; i++)
			remote[i] =
				port((uint8_t)i, 1e9 * (1 + (seed >> (i + 7)) % 4),
				     1e-6 * (1 + (seed >> (i + 9)) % 3), 1 + (seed >> (i + 2)) % 3);
		in = all_reach(l, r);
		back = all_reach(r, l);
		back.local = remote;
		back.remote = local;
		n = weft_select_lanes(&in, here, 16);
		assert_true(n >= 1 && n <= 16);
		assert_int_equal(weft_select_lanes(&back, there, 16), n);
		/*
		 * Ties are broken by number, which may pair differently; what both ends get out of
		 * it is the same.
		 */
		for (i = 0; i < n; i++) {
			assert_true(here[i].bandwidth == there[i].bandwidth);
			assert_true(here[i].latency == there[i].latency);
			for (k = 0; k < i; k++)
				assert_false(here[i].pair.local == here[k].pair.local &&
					     here[i].pair.remote == here[k].pair.remote);
		}
		assert_int_equal(weft_select_lanes(&in, there, 16), n);
		assert_memory_equal(here, there, n * sizeof(here[0]));
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(unpack_gives_what_was_packed),
		CONN_TEST(eight_interfaces_fit_into_2_kib),
		CONN_TEST(truncated_and_changed_addresses_are_refused),
		CONN_TEST(hostile_addresses_are_refused),
		CONN_TEST(another_version_is_distinguished_from_damage),
		CONN_TEST(a_workers_address_holds_its_network_interfaces),
		CONN_TEST(the_pair_with_the_lowest_latency_connects_first),
		CONN_TEST(each_device_is_used_once_before_any_twice),
		CONN_TEST(impossible_figures_are_refused),
		CONN_TEST(bandwidth_left_over_is_used),
		CONN_TEST(the_fast_ports_find_each_other),
		CONN_TEST(lanes_inside_a_host_are_not_mixed_with_networks),
		CONN_TEST(selection_is_the_same_from_both_ends),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
