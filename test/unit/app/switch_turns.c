/* SPDX-License-Identifier: BSD-3-Clause
 *
 * weft-switch's forwarder: users take turns, and the ports of a user share its turn. It sends the
 * farewells of processes that have ended.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "switch/pump.h"
#include "switch/switch.h"
#include "switch/control.h"

#define LOG2 8
#define SLOTS (1u << LOG2)
#define RING (sizeof(struct weft_mring_shm) + SLOTS * sizeof(struct weft_mring_desc))
#define FRAME 256u
#define REGION (2 * RING + 2 * FRAME) /* the frames sent, and those received */
#define MANY 11u

static struct sw sw;
static uint64_t memory[WEFT_SWITCH_PORTS][REGION / 8];
static struct weft_mregion region[WEFT_SWITCH_PORTS];

/* The threads beside the forwarder are not here. */
void sw_wake(struct sw *s, uint64_t ports)
{
	assert_int_equal(ports, 0);
}

void sw_control_notify(struct sw *s)
{
}

static struct weft_mring_shm *rx_ring(unsigned int port)
{
	return (struct weft_mring_shm *)memory[port];
}

/* The rings of a port go to the forwarder; its frames are too short for any header. */
static void attach(unsigned int port, uid_t user)
{
	struct sw_handover *h = &sw.handover;
	struct weft_mring_shm *shm;

	region[port] = (struct weft_mregion){(uint8_t *)memory[port], REGION};
	for (unsigned int i = 0; i < 2; i++) {
		shm = (struct weft_mring_shm *)((uint8_t *)memory[port] + i * RING);
		memset(shm, 0, RING);
		shm->cookie = WEFT_MRING_COOKIE;
		assert_int_equal(weft_mring_attach(i ? &h->tx : &h->rx, &region[port], 1, 0,
						   i * RING, LOG2),
				 0);
	}
	for (unsigned int i = 0; i < SLOTS; i++)
		rx_ring(port)->desc[i] = (struct weft_mring_desc){.offset = 2 * RING, .length = 8};
	h->attach = true;
	h->gone = false;
	h->port = port;
	h->user = user;
	atomic_store(&h->wanted, true);
	sw_lane_change(&sw, 1);
	assert_false(atomic_load(&h->wanted));
}

static void detach(unsigned int port)
{
	sw.handover.attach = sw.handover.gone = false;
	sw.handover.port = port;
	atomic_store(&sw.handover.wanted, true);
	sw_lane_change(&sw, 1);
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

/* Each frame of @p port is the announcement of its address, to all ports. */
static void announce(unsigned int port)
{
	static const uint8_t eth[] = {255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 8, 6},
			     arp[] = {0, 1, 8, 0, 6, 4, 0, 1};
	uint8_t *at = (uint8_t *)memory[port] + 2 * RING;

	memcpy(at, eth, sizeof(eth));
	memcpy(at + sizeof(eth), arp, sizeof(arp));
	at[11] = at[27] = (uint8_t)(port + 1);
	for (unsigned int i = 0; i < SLOTS; i++)
		rx_ring(port)->desc[i].length = 60;
}

/* Else the copies of one user's frames take the time of the others. */
static void a_frame_for_all_ports_counts_for_each(void **state)
{
	unsigned int i;

	for (i = 0; i < 16; i++)
		attach(i, 1001);
	attach(50, 1002);
	announce(0);
	rounds(10, 1ull << 0 | 1ull << 50);
	assert_int_equal(sw.lane[0].counters.drop[SW_DROP_SOURCE], 0);
	assert_int_equal(sw.lane[7].counters.drop[SW_DROP_FULL], taken(0));
	assert_int_equal(taken(0), 10 * SW_BURST / 16);
	assert_int_equal(taken(50), 10 * SW_BURST);
	/* Its last ones, too. */
	rx_ring(0)->head = (uint16_t)(rx_ring(0)->tail + SLOTS);
	detach(0);
	assert_int_equal(taken(0), 10 * SW_BURST / 16 + SLOTS / 16);
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

/* ---- ports whose process has ended ---------------------------------------------------------- */

#define BASE 9338

static uint8_t *sent(unsigned int port)
{
	return (uint8_t *)memory[port] + 2 * RING;
}

static uint8_t *received(unsigned int port)
{
	return sent(port) + FRAME;
}

/* Its process sends a frame of a connection with port 1, and has a buffer for each answer. */
static void send_to_port_1(unsigned int port)
{
	struct weft_mring_shm *tx = (struct weft_mring_shm *)((uint8_t *)memory[port] + RING);
	const struct weft_frame_hdr hdr = {.type = WEFT_FRAME_ACK, .token = weft_put32(0x12345678)};
	struct weft_encap_addr a = {.src_ip = sw.plan.ip[port],
				    .dst_ip = sw.plan.ip[1],
				    .src_port = BASE,
				    .dst_port = BASE};

	sw_plan_mac(&sw.plan, port, a.src_mac);
	sw_plan_mac(&sw.plan, 1, a.dst_mac);
	for (unsigned int i = 0; i < SLOTS; i++) {
		rx_ring(port)->desc[i].length = weft_frame_write(sent(port), &a, &hdr, NULL, 0);
		tx->desc[i] = (struct weft_mring_desc){.offset = 2 * RING + FRAME, .length = FRAME};
	}
	tx->head = (uint16_t)(tx->tail + SLOTS);
	tx->flags = WEFT_MRING_MASK_INT;
	memset(received(port), 0, FRAME);
}

static void end_process(unsigned int port)
{
	detach(port);
	sw.handover.gone = true;
	atomic_store(&sw.handover.wanted, true);
	sw_lane_change(&sw, 1);
}

static void round_at(uint64_t now, unsigned int frames)
{
	rx_ring(0)->head = (uint16_t)(rx_ring(0)->tail + frames);
	sw_round(&sw, now);
}

static void begin(void)
{
	memcpy(sw.plan.mac, (const uint8_t[]){2, 0x57, 1, 2, 3}, 5);
	for (uint32_t i = 0; i < 3; i++)
		sw.plan.ip[i] = 0x0a000001u + i;
	attach(0, 1001);
	attach(1, 1001);
	send_to_port_1(0);
}

/* @behaviour R86 */
static void peers_of_an_ended_process_are_notified(void **state)
{
	const uint64_t now = 1000000000, ms = 1000000;

	begin();
	end_process(1);
	round_at(now, 0);
	assert_int_equal(received(0)[0], 0xff); /* an ARP probe, to all */
	assert_int_equal(received(0)[13], 0x06);
	assert_int_equal(sw.lane[0].counters.tx_frames, 1);
	round_at(now + 99 * ms, 0);
	assert_int_equal(sw.lane[0].counters.tx_frames, 1);
	round_at(now + 100 * ms, 0);
	round_at(now + 300 * ms, 0);
	round_at(now + 900 * ms, 0);
	assert_int_equal(sw.lane[0].counters.tx_frames, 3);
	round_at(now + 900 * ms, 1);
	assert_int_equal(sw.lane[0].counters.farewells, 1);
	assert_int_equal(received(0)[14 + 28 + offsetof(struct weft_frame_hdr, type)],
			 WEFT_FRAME_RESET);
	/* No flood: a burst, and then one in a tenth of a millisecond. */
	for (unsigned int i = 0; i < 10; i++)
		round_at(now + 900 * ms, SW_BURST);
	assert_in_range(sw.lane[0].counters.farewells, 2, SW_BURST + 1);
}

static void a_flood_uses_up_no_farewells_of_others(void **state)
{
	const uint64_t now = 1000000000;

	begin();
	attach(2, 1002);
	send_to_port_1(2);
	end_process(1);
	for (unsigned int i = 0; i < 10; i++)
		round_at(now, SW_BURST);
	rx_ring(2)->head = (uint16_t)(rx_ring(2)->tail + 1);
	sw_round(&sw, now);
	assert_int_equal(sw.lane[2].counters.farewells, 1);
}

static void a_port_that_only_lost_its_rings_gets_no_farewell(void **state)
{
	begin();
	detach(1);
	round_at(1000000000, 4);
	assert_int_equal(sw.lane[0].counters.tx_frames, 0);
	end_process(1);
	attach(1, 1001); /* the next process answers for itself */
	round_at(2000000000, 4);
	assert_int_equal(sw.lane[0].counters.tx_frames, 0);
	assert_int_equal(sw.lane[0].counters.farewells, 0);
}

/*
 * A process may end before the forwarder has read its last frames. These reach the peer all the
 * same. Without its BYE the peer would get the answer that the process has ended.
 */
static void the_last_frames_of_a_process_arrive(void **state)
{
	struct weft_mring_shm *peer = (struct weft_mring_shm *)((uint8_t *)memory[1] + RING);

	begin();
	for (unsigned int i = 0; i < SLOTS; i++)
		peer->desc[i] = (struct weft_mring_desc){.offset = 2 * RING, .length = FRAME};
	peer->head = SLOTS;
	peer->flags = WEFT_MRING_MASK_INT;
	rx_ring(0)->head = SW_BURST + 5;
	end_process(0);
	assert_int_equal(sw.lane[1].counters.tx_frames, SW_BURST + 5);
	assert_int_equal(taken(0), SW_BURST + 5);
	assert_int_equal(sw.plan.up, 1 << 1);
}

static void a_process_that_ends_with_a_broken_ring_is_dropped(void **state)
{
	attach(0, 1001);
	rx_ring(0)->head = SLOTS + 1;
	end_process(0);
	assert_int_equal(sw.plan.up, 0);
	assert_int_equal(taken(0), 0);
	sw_round(&sw, 2);
	assert_int_equal(atomic_load(&sw.handover.broken), 0);
}

/* Farewells that process 1 has left for process 0; every second one has another's source. */
static struct sw_farewells *farewells_of_1(unsigned int num)
{
	struct sw_farewells *all = malloc(sizeof(*all) + num * sizeof(all->at[0]));
	const struct weft_frame_hdr hdr = {.type = WEFT_FRAME_GONE};
	struct weft_encap_addr a = {.src_ip = sw.plan.ip[1],
				    .dst_ip = sw.plan.ip[0],
				    .src_port = BASE,
				    .dst_port = BASE};

	sw_plan_mac(&sw.plan, 1, a.src_mac);
	sw_plan_mac(&sw.plan, 0, a.dst_mac);
	all->num = num;
	for (unsigned int i = 0; i < num; i++) {
		all->at[i].len = weft_frame_write(all->at[i].frame, &a, &hdr, NULL, 0);
		if (i % 2)
			all->at[i].frame[11]++;
	}
	return all;
}

/* @behaviour R86 */
static void farewells_of_an_ended_process_are_forwarded(void **state)
{
	const uint64_t now = 1000000000, ms = 1000000;
	struct sw_counters *from = &sw.lane[1].counters, *to = &sw.lane[0].counters;
	struct sw_farewells *all;

	begin();
	all = farewells_of_1(100);
	sw.handover.farewells = all;
	end_process(1);
	assert_null(sw.handover.farewells);
	round_at(now, 0);
	round_at(now, 0);
	assert_int_equal(to->farewells, SW_BURST / 2); /* no flood */
	assert_int_equal(from->drop[SW_DROP_SOURCE], SW_BURST / 2);
	assert_int_equal(received(0)[14 + 28 + offsetof(struct weft_frame_hdr, type)],
			 WEFT_FRAME_GONE);
	for (unsigned int i = 1; i < 2000; i++)
		round_at(now + i * ms, 0);
	assert_int_equal(to->farewells, 4 * 50); /* before each of three probes, and afterwards */
	assert_int_equal(to->tx_frames, 4 * 50 + 3);
	attach(1, 1001); /* the control thread frees them */
	assert_ptr_equal(sw.handover.farewells, all);
	sw.handover.farewells = NULL;
	free(all);
}

/* Else a process that has ended sends more than its turn allowed. */
static void a_farewell_is_for_one_peer(void **state)
{
	struct sw_farewells *all;

	begin();
	attach(2, 1002);
	announce(1);
	all = farewells_of_1(1);
	memcpy(all->at[0].frame, sent(1), 60);
	all->at[0].len = 60;
	sw_plan_mac(&sw.plan, 1, all->at[0].frame + 6);
	sw_plan_mac(&sw.plan, 1, all->at[0].frame + 22);
	sw.handover.farewells = all;
	end_process(1);
	round_at(1000000000, 0);
	assert_int_equal(sw.lane[1].counters.drop[SW_DROP_KIND], 1);
	assert_int_equal(sw.lane[0].counters.farewells + sw.lane[2].counters.farewells, 0);
	attach(1, 1001);
	sw.handover.farewells = NULL;
	free(all);
}

static void the_next_process_stops_the_farewells(void **state)
{
	struct sw_farewells *all;

	begin();
	all = farewells_of_1(100);
	sw.handover.farewells = all;
	end_process(1);
	attach(1, 1001);
	assert_ptr_equal(sw.handover.farewells, all);
	sw.handover.farewells = NULL;
	free(all);
	round_at(1000000000, 0);
	assert_int_equal(sw.lane[0].counters.tx_frames, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_user_with_many_ports_gets_as_much_as_one_with_one, setup),
		cmocka_unit_test_setup(a_turn_goes_to_the_ports_that_have_frames, setup),
		cmocka_unit_test_setup(a_user_alone_sends_from_all_ports_in_each_round, setup),
		cmocka_unit_test_setup(a_frame_for_all_ports_counts_for_each, setup),
		cmocka_unit_test_setup(a_broken_ring_ends_its_port_alone, setup),
		cmocka_unit_test_setup(peers_of_an_ended_process_are_notified, setup),
		cmocka_unit_test_setup(a_flood_uses_up_no_farewells_of_others, setup),
		cmocka_unit_test_setup(a_port_that_only_lost_its_rings_gets_no_farewell, setup),
		cmocka_unit_test_setup(farewells_of_an_ended_process_are_forwarded, setup),
		cmocka_unit_test_setup(a_farewell_is_for_one_peer, setup),
		cmocka_unit_test_setup(the_next_process_stops_the_farewells, setup),
		cmocka_unit_test_setup(the_last_frames_of_a_process_arrive, setup),
		cmocka_unit_test_setup(a_process_that_ends_with_a_broken_ring_is_dropped, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
