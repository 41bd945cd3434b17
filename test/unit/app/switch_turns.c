/* SPDX-License-Identifier: BSD-3-Clause
 *
 * weft-switch's forwarder: users take turns, and the ports of a user share its turn.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "switch/pump.h"
#include "switch/switch.h"
#include "switch/threads.h"

#define LOG2 8
#define SLOTS (1u << LOG2)
#define RING (sizeof(struct sw_ring_shm) + SLOTS * sizeof(struct sw_ring_desc))
#define REGION (2 * RING + 64)
#define MANY 11u

static struct sw sw;
static uint64_t memory[WEFT_SWITCH_PORTS][REGION / 8];

/* The threads beside the forwarder are not here. */
void sw_wake(struct sw *s, uint64_t ports)
{
	assert_int_equal(ports, 0);
}

void sw_control_notify(struct sw *s)
{
}

static struct sw_ring_shm *rx_ring(unsigned int port)
{
	return (struct sw_ring_shm *)memory[port];
}

/* The rings of a port go to the forwarder; its frames are too short for any header. */
static void attach(unsigned int port, uid_t user)
{
	struct sw_handover *h = &sw.handover;
	struct sw_ring_shm *shm;

	for (unsigned int i = 0; i < 2; i++) {
		shm = (struct sw_ring_shm *)((uint8_t *)memory[port] + i * RING);
		memset(shm, 0, RING);
		shm->cookie = SW_RING_COOKIE;
		assert_int_equal(sw_ring_attach(i ? &h->tx : &h->rx, memory[port], REGION, i * RING,
						LOG2, -1),
				 0);
	}
	for (unsigned int i = 0; i < SLOTS; i++)
		rx_ring(port)->desc[i] = (struct sw_ring_desc){.offset = 2 * RING, .length = 8};
	h->attach = true;
	h->port = port;
	h->user = user;
	atomic_store(&h->wanted, true);
	sw_lane_change(&sw);
	assert_false(atomic_load(&h->wanted));
}

static void detach(unsigned int port)
{
	sw.handover.attach = false;
	sw.handover.port = port;
	atomic_store(&sw.handover.wanted, true);
	sw_lane_change(&sw);
}

static int setup(void **state)
{
	memset(&sw, 0, sizeof(sw));
	sw.plan.ports = WEFT_SWITCH_PORTS;
	sw.uplink.id = SW_NO_UPLINK;
	sw.mtu = 1500;
	return 0;
}

/* Ports of the mask have full rings in each of these rounds. */
static void rounds(unsigned int n, uint64_t busy)
{
	for (unsigned int i = 0; i < n; i++) {
		for (uint64_t p = busy; p; p &= p - 1)
			rx_ring((unsigned int)__builtin_ctzll(p))->head =
				(uint16_t)(rx_ring((unsigned int)__builtin_ctzll(p))->tail + SLOTS);
		sw_round(&sw, 1);
	}
}

static uint64_t taken(unsigned int port)
{
	return sw.lane[port].counters.rx_frames;
}

static void a_user_with_many_ports_gets_as_much_as_one_with_one(void **state)
{
	unsigned int i;

	for (i = 0; i < MANY; i++)
		attach(3 * i, 1001);
	attach(1, 1002);
	rounds(10 * MANY, sw.plan.up);
	assert_int_equal(taken(1), 10 * MANY * SW_BURST);
	for (i = 0; i < MANY; i++)
		assert_int_equal(taken(3 * i), 10 * SW_BURST);
}

static void a_turn_goes_to_the_ports_that_have_frames(void **state)
{
	for (unsigned int i = 0; i < MANY; i++)
		attach(i, 1001);
	attach(63, 1002);
	rounds(20, 1ull << 7);
	assert_int_equal(taken(7), 20 * SW_BURST);
}

static void a_user_alone_sends_from_all_ports_in_each_round(void **state)
{
	unsigned int i;

	for (i = 0; i < MANY; i++)
		attach(i, 1001);
	attach(20, 1002);
	detach(20);
	rounds(5, sw.plan.up);
	for (i = 0; i < MANY; i++)
		assert_int_equal(taken(i), 5 * SW_BURST);
}

static void a_broken_ring_ends_its_port_alone(void **state)
{
	attach(0, 1001);
	attach(1, 1002);
	attach(2, 1003);
	rx_ring(1)->head = SLOTS + 1;
	rounds(4, 1 << 0 | 1 << 2);
	assert_int_equal(sw.plan.up, 1 << 0 | 1 << 2);
	assert_int_equal(atomic_load(&sw.handover.broken), 1 << 1);
	assert_int_equal(sw.num_shares, 2);
	assert_int_equal(taken(0), 4 * SW_BURST);
	assert_int_equal(taken(2), 4 * SW_BURST);
	detach(1); /* the control thread takes it back all the same */
	assert_int_equal(sw.num_shares, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_user_with_many_ports_gets_as_much_as_one_with_one, setup),
		cmocka_unit_test_setup(a_turn_goes_to_the_ports_that_have_frames, setup),
		cmocka_unit_test_setup(a_user_alone_sends_from_all_ports_in_each_round, setup),
		cmocka_unit_test_setup(a_broken_ring_ends_its_port_alone, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
