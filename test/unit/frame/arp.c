/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_byteorder.h>
#include <rte_ether.h>

#include "frame/arp.h"

#define OUR_IP 0x0a000001u
#define PEER_IP 0x0a000002u

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1}, peer_mac[6] = {2, 0, 0, 0, 0, 2},
		     other_mac[6] = {2, 0, 0, 0, 0, 3};

static struct rte_arp_hdr packet(uint16_t op, const uint8_t *sha, uint32_t sip, uint32_t tip)
{
	struct rte_arp_hdr p = {
		.arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER),
		.arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4),
		.arp_hlen = RTE_ETHER_ADDR_LEN,
		.arp_plen = 4,
		.arp_opcode = rte_cpu_to_be_16(op),
		.arp_data.arp_sip = rte_cpu_to_be_32(sip),
		.arp_data.arp_tip = rte_cpu_to_be_32(tip),
	};

	memcpy(&p.arp_data.arp_sha, sha, 6);
	return p;
}

static void requests_with_growing_pauses(void **state)
{
	static const uint64_t wait[] = {2, 4, 8, 16, 32, 64, 128, 256, 500, 500};
	struct rte_arp_hdr pkt;
	struct weft_arp a;
	uint8_t mac[6];
	uint64_t now = 1000;

	(void)state;
	weft_arp_init(&a, OUR_IP, our_mac, 42, NULL);
	assert_false(weft_arp_lookup(&a, PEER_IP, now, mac));
	for (size_t i = 0; i < sizeof(wait) / sizeof(*wait); i++) {
		assert_true(weft_arp_request(&a, PEER_IP, now, &pkt));
		assert_int_equal(rte_be_to_cpu_32(pkt.arp_data.arp_sip), OUR_IP);
		assert_int_equal(rte_be_to_cpu_32(pkt.arp_data.arp_tip), PEER_IP);
		assert_int_equal(pkt.arp_opcode, RTE_BE16(RTE_ARP_OP_REQUEST));
		assert_memory_equal(pkt.arp_data.arp_sha.addr_bytes, our_mac, 6);
		now += wait[i] * 1000000;
		assert_false(weft_arp_request(&a, PEER_IP, now - 1, &pkt));
	}
	assert_int_equal(weft_arp_unanswered(&a, PEER_IP), 10);
	weft_arp_fini(&a);
}

static void learns_only_what_was_requested(void **state)
{
	struct rte_arp_hdr pkt, reply;
	struct weft_arp a;
	uint8_t mac[6];

	(void)state;
	weft_arp_init(&a, OUR_IP, our_mac, 42, NULL);
	pkt = packet(2, peer_mac, PEER_IP, OUR_IP);
	assert_int_equal(weft_arp_input(&a, &pkt, 1, &reply), WEFT_ARP_IGNORED);
	assert_false(weft_arp_lookup(&a, PEER_IP, 1, mac));
	assert_true(weft_arp_request(&a, PEER_IP, 1, &reply));
	assert_int_equal(weft_arp_input(&a, &pkt, 2, &reply), WEFT_ARP_LEARNED);
	assert_true(weft_arp_lookup(&a, PEER_IP, 3, mac));
	assert_memory_equal(mac, peer_mac, 6);
	assert_false(weft_arp_request(&a, PEER_IP, 1ull << 40, &reply));
	weft_arp_forget(&a, PEER_IP);
	assert_false(weft_arp_lookup(&a, PEER_IP, 3, mac));
	assert_true(weft_arp_request(&a, PEER_IP, 4, &reply));
	weft_arp_fini(&a);
}

/*
 * A peer's address stays that of the reply to our request, whatever others send unrequested.
 */
/* @behaviour S8 */
static void unrequested_replies_change_nothing(void **state)
{
	struct rte_arp_hdr pkt, reply;
	struct weft_arp a;
	uint8_t mac[6];

	(void)state;
	weft_arp_init(&a, OUR_IP, our_mac, 42, NULL);
	assert_true(weft_arp_request(&a, PEER_IP, 1, &reply));
	pkt = packet(2, peer_mac, PEER_IP, OUR_IP);
	assert_int_equal(weft_arp_input(&a, &pkt, 2, &reply), WEFT_ARP_LEARNED);
	pkt = packet(2, other_mac, PEER_IP, OUR_IP); /* a second answer */
	assert_int_equal(weft_arp_input(&a, &pkt, 3, &reply), WEFT_ARP_SEVERAL);
	assert_int_equal(a.conflict.ip, PEER_IP);
	assert_memory_equal(a.conflict.mac[0], peer_mac, 6);
	assert_memory_equal(a.conflict.mac[1], other_mac, 6);
	assert_int_equal(weft_arp_input(&a, &pkt, 3, &reply), WEFT_ARP_IGNORED); /* said */
	pkt = packet(1, other_mac, PEER_IP, PEER_IP);                            /* gratuitous */
	assert_int_equal(weft_arp_input(&a, &pkt, 4, &reply), WEFT_ARP_IGNORED);
	pkt = packet(1, other_mac, PEER_IP, OUR_IP); /* a question in its name */
	assert_int_equal(weft_arp_input(&a, &pkt, 5, &reply), WEFT_ARP_ANSWER);
	assert_true(weft_arp_lookup(&a, PEER_IP, 6, mac));
	assert_memory_equal(mac, peer_mac, 6);
	/* Forgotten is not asked again; and an answer that comes long after is none. */
	weft_arp_forget(&a, PEER_IP);
	pkt = packet(2, other_mac, PEER_IP, OUR_IP);
	assert_int_equal(weft_arp_input(&a, &pkt, 7, &reply), WEFT_ARP_IGNORED);
	assert_true(weft_arp_request(&a, PEER_IP, 8, &reply));
	assert_int_equal(weft_arp_input(&a, &pkt, 8 + WEFT_ARP_RETRY_MIN + WEFT_ARP_OPEN, &reply),
			 WEFT_ARP_IGNORED);
	assert_false(weft_arp_lookup(&a, PEER_IP, 9, mac));
	weft_arp_fini(&a);
}

/* Another host sends by its address: the known MAC is requested again, once in a while. */
/* @behaviour S8 */
static void an_old_entry_is_requested_again_once_in_a_while(void **state)
{
	struct rte_arp_hdr pkt, reply;
	struct weft_arp a;
	uint8_t mac[6];

	(void)state;
	weft_arp_init(&a, OUR_IP, our_mac, 42, NULL);
	assert_false(weft_arp_recheck(&a, PEER_IP, 1));
	assert_true(weft_arp_request(&a, PEER_IP, 1, &reply));
	pkt = packet(2, peer_mac, PEER_IP, OUR_IP);
	assert_int_equal(weft_arp_input(&a, &pkt, 2, &reply), WEFT_ARP_LEARNED);
	assert_false(weft_arp_recheck(&a, PEER_IP, 2 + WEFT_ARP_FRESH - 1));
	assert_true(weft_arp_lookup(&a, PEER_IP, 3, mac));
	assert_true(weft_arp_recheck(&a, PEER_IP, 2 + WEFT_ARP_FRESH));
	assert_false(weft_arp_lookup(&a, PEER_IP, 3, mac));
	assert_true(weft_arp_request(&a, PEER_IP, 3 + WEFT_ARP_FRESH, &reply));
	assert_int_equal(weft_arp_fix(&a, PEER_IP + 1, peer_mac), 0);
	assert_false(weft_arp_recheck(&a, PEER_IP + 1, 3 * WEFT_ARP_FRESH));
	weft_arp_fini(&a);
}

static void answers_for_its_own_address_only(void **state)
{
	struct rte_arp_hdr pkt, reply;
	struct weft_arp a;
	uint8_t mac[6];

	(void)state;
	weft_arp_init(&a, OUR_IP, our_mac, 42, NULL);
	pkt = packet(1, peer_mac, PEER_IP, OUR_IP);
	assert_int_equal(weft_arp_input(&a, &pkt, 1, &reply), WEFT_ARP_ANSWER);
	assert_int_equal(reply.arp_opcode, RTE_BE16(RTE_ARP_OP_REPLY));
	assert_memory_equal(reply.arp_data.arp_sha.addr_bytes, our_mac, 6);
	assert_memory_equal(reply.arp_data.arp_tha.addr_bytes, peer_mac, 6);
	assert_int_equal(rte_be_to_cpu_32(reply.arp_data.arp_tip), PEER_IP);
	/* Anybody can ask in its name. */
	assert_false(weft_arp_lookup(&a, PEER_IP, 2, mac));
	pkt = packet(1, other_mac, PEER_IP + 9, OUR_IP + 5);
	assert_int_equal(weft_arp_input(&a, &pkt, 1, &reply), WEFT_ARP_IGNORED);
	weft_arp_fini(&a);
}

/* @behaviour X18 */
static void garbage_and_conflicts(void **state)
{
	static const uint8_t group[6] = {1, 0, 0, 0, 0, 9};
	struct rte_arp_hdr pkt, reply;
	struct weft_arp a;

	(void)state;
	weft_arp_init(&a, OUR_IP, our_mac, 42, NULL);
	pkt = packet(2, peer_mac, OUR_IP, PEER_IP);
	assert_int_equal(weft_arp_input(&a, &pkt, 1, &reply), WEFT_ARP_CONFLICT);
	assert_int_equal(a.conflict.ip, OUR_IP);
	assert_memory_equal(a.conflict.mac[0], our_mac, 6);
	assert_memory_equal(a.conflict.mac[1], peer_mac, 6);
	pkt = packet(1, our_mac, OUR_IP, PEER_IP);
	assert_int_equal(weft_arp_input(&a, &pkt, 1, &reply), WEFT_ARP_IGNORED);
	pkt = packet(7, peer_mac, PEER_IP, OUR_IP);
	assert_int_equal(weft_arp_input(&a, &pkt, 1, &reply), WEFT_ARP_IGNORED);
	pkt = packet(1, group, PEER_IP, OUR_IP);
	assert_int_equal(weft_arp_input(&a, &pkt, 1, &reply), WEFT_ARP_IGNORED);
	weft_arp_fini(&a);
}

static void a_probe_without_address_is_answered_and_not_learned(void **state)
{
	struct rte_arp_hdr pkt, reply;
	struct weft_arp a;
	uint8_t mac[6];

	(void)state;
	weft_arp_init(&a, OUR_IP, our_mac, 42, NULL);
	pkt = packet(1, peer_mac, 0, OUR_IP); /* RFC 5227: is this address taken? */
	assert_int_equal(weft_arp_input(&a, &pkt, 1, &reply), WEFT_ARP_ANSWER);
	assert_false(weft_arp_lookup(&a, 0, 2, mac));
	for (size_t i = 0; i < WEFT_ARP_KINDS; i++)
		assert_int_equal(a.own.num[i], 0);
	weft_arp_fini(&a);
}

static void learn(struct weft_arp *a, uint32_t ip, const uint8_t *from, uint64_t now)
{
	struct rte_arp_hdr pkt = packet(2, from, ip, OUR_IP), reply;

	weft_arp_input(a, &pkt, now, &reply);
}

/* A job begins: its peers are all asked for before the first of them answers. */
/*
 * @behaviour S14: ARP's table has space for the peers of a job; requests caused by unknown senders
 * evict no own entries
 */
static void hundreds_are_requested_at_once(void **state)
{
	struct rte_arp_hdr pkt;
	struct weft_arp a;
	uint8_t mac[6];

	(void)state;
	weft_arp_init(&a, OUR_IP, our_mac, 42, NULL);
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(weft_arp_request(&a, PEER_IP + i, i + 1, &pkt));
	for (uint32_t i = 0; i < 1000; i++)
		learn(&a, PEER_IP + i, peer_mac, 2000);
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(weft_arp_lookup(&a, PEER_IP + i, 3000, mac));
	weft_arp_fini(&a);
}

/* HELLOs from made-up addresses: each makes us ask. They take each other's places only. */
/* @behaviour S14 */
static void requests_for_unknown_senders_push_out_nothing_of_ours(void **state)
{
	struct rte_arp_hdr pkt;
	struct weft_arp a;
	uint8_t mac[6];
	uint32_t i;

	(void)state;
	weft_arp_init(&a, OUR_IP, our_mac, 42, NULL);
	assert_true(weft_arp_request(&a, PEER_IP, 1, &pkt));
	learn(&a, PEER_IP, peer_mac, 2);
	assert_true(weft_arp_request(&a, PEER_IP + 1, 3, &pkt)); /* under way */
	for (i = 0; i < 5000; i++)
		assert_true(weft_arp_request_theirs(&a, PEER_IP + 10 + i, 4 + i, &pkt));
	assert_true(weft_arp_lookup(&a, PEER_IP, 6000, mac));
	learn(&a, PEER_IP + 1, peer_mac, 6000);
	assert_true(weft_arp_lookup(&a, PEER_IP + 1, 6001, mac));
	assert_int_equal(a.own.num[WEFT_ARP_KIND_THEIRS], WEFT_ARP_THEIRS);
	/* The last ones have their places; one that we want, too, keeps it. */
	assert_false(weft_arp_request(&a, PEER_IP + 10 + 4999, 6002, &pkt));
	for (i = 0; i < 1000; i++)
		weft_arp_request_theirs(&a, PEER_IP + 10 + i, 7000 + i, &pkt);
	learn(&a, PEER_IP + 10 + 4999, other_mac, 9000);
	assert_true(weft_arp_lookup(&a, PEER_IP + 10 + 4999, 9001, mac));
	weft_arp_fini(&a);
}

/* All are in use: the next one has to wait until one was unused for a second. */
/* @behaviour S14 */
static void a_full_table_gives_up_what_is_unused(void **state)
{
	const uint64_t later = WEFT_ARP_BUSY + WEFT_ARP_OURS;
	struct rte_arp_hdr pkt;
	struct weft_arp a;
	uint8_t mac[6];

	(void)state;
	weft_arp_init(&a, OUR_IP, our_mac, 42, NULL);
	for (uint32_t i = 0; i < WEFT_ARP_OURS; i++) {
		assert_true(weft_arp_request(&a, PEER_IP + i, i + 1, &pkt));
		learn(&a, PEER_IP + i, peer_mac, i + 1);
	}
	assert_false(weft_arp_request(&a, OUR_IP - 1, WEFT_ARP_OURS, &pkt));
	assert_true(weft_arp_lookup(&a, PEER_IP, WEFT_ARP_OURS, mac));
	assert_true(weft_arp_request(&a, OUR_IP - 1, later, &pkt));
	learn(&a, OUR_IP - 1, other_mac, later);
	assert_true(weft_arp_lookup(&a, PEER_IP, later, mac));
	assert_false(weft_arp_lookup(&a, PEER_IP + 1, later, mac));
	assert_true(weft_arp_lookup(&a, OUR_IP - 1, later, mac));
	assert_memory_equal(mac, other_mac, 6);
	weft_arp_fini(&a);
}

/* Later replies are not trusted, but listed; of many each has its chance. */
/* @behaviour S8 */
static void further_repliers_are_listed_for_the_search_of_a_peer(void **state)
{
	uint8_t mac[WEFT_ARP_REPLIERS][6], from[6] = {2, 9, 0, 0, 0, 0};
	struct rte_arp_hdr pkt;
	struct weft_arp a;
	unsigned int seen = 0;

	(void)state;
	weft_arp_init(&a, OUR_IP, our_mac, 42, NULL);
	assert_int_equal(weft_arp_repliers(&a, PEER_IP, mac), 0);
	for (uint64_t now = 1; now < 4000; now += 20) {
		assert_true(weft_arp_request(&a, PEER_IP, now, &pkt));
		learn(&a, PEER_IP, other_mac, now + 1);
		for (from[5] = 0; from[5] < 9; from[5]++)
			learn(&a, PEER_IP, from, now + 2 + from[5]);
		learn(&a, PEER_IP, peer_mac, now + 12); /* the true one is the last of eleven */
		weft_arp_forget(&a, PEER_IP);
		assert_int_equal(weft_arp_repliers(&a, PEER_IP, mac), WEFT_ARP_REPLIERS);
		assert_memory_equal(mac[0], other_mac, 6);
		for (unsigned int i = 1; i < WEFT_ARP_REPLIERS; i++)
			seen += memcmp(mac[i], peer_mac, 6) == 0;
	}
	assert_in_range(seen, 30, 90); /* 3 places for 10 of 11, 200 times: 60 */
	weft_arp_fini(&a);
}

/* ARP comes to one queue of a port: the others know its content. */
static void queues_of_one_port_learn_from_each_other(void **state)
{
	struct rte_arp_hdr pkt, reply;
	struct weft_arp_table port;
	struct weft_arp first, second;
	uint8_t mac[6];

	(void)state;
	weft_arp_table_init(&port, 42);
	weft_arp_init(&first, OUR_IP, our_mac, 42, &port);
	weft_arp_init(&second, OUR_IP, our_mac, 42, &port);
	assert_true(weft_arp_request(&second, PEER_IP, 1, &pkt));
	/* One question is enough for both. */
	assert_false(weft_arp_request(&first, PEER_IP, 2, &pkt));
	pkt = packet(2, peer_mac, PEER_IP, OUR_IP);
	assert_int_equal(weft_arp_input(&first, &pkt, 3, &reply), WEFT_ARP_LEARNED);
	assert_true(weft_arp_lookup(&second, PEER_IP, 4, mac));
	assert_memory_equal(mac, peer_mac, 6);
	weft_arp_fini(&first);
	weft_arp_fini(&second);
	weft_arp_table_fini(&port);
}

/*
 * What the user gave stays: no reply changes it, silence does not end it, no other entry evicts it.
 */
static void a_static_neighbour_stays(void **state)
{
	struct rte_arp_hdr pkt, reply;
	struct weft_arp a;
	uint8_t mac[6];

	(void)state;
	weft_arp_init(&a, OUR_IP, our_mac, 42, NULL);
	assert_false(weft_arp_is_fixed(&a, PEER_IP));
	assert_int_equal(weft_arp_fix(&a, PEER_IP, peer_mac), 0);
	assert_int_equal(weft_arp_fix(&a, PEER_IP, peer_mac), 0);
	assert_int_equal(weft_arp_fix(&a, PEER_IP, other_mac), -EEXIST);
	assert_true(weft_arp_is_fixed(&a, PEER_IP));
	assert_false(weft_arp_request(&a, PEER_IP, 1, &pkt));
	pkt = packet(2, other_mac, PEER_IP, OUR_IP);
	weft_arp_input(&a, &pkt, 2, &reply);
	pkt = packet(1, other_mac, PEER_IP, OUR_IP);
	assert_int_equal(weft_arp_input(&a, &pkt, 2, &reply), WEFT_ARP_ANSWER);
	weft_arp_forget(&a, PEER_IP);
	for (uint32_t i = 1; i < 200; i++) {
		weft_arp_request(&a, PEER_IP + i, i + 1, &reply);
		pkt = packet(2, other_mac, PEER_IP + i, OUR_IP);
		weft_arp_input(&a, &pkt, i + 1, &reply);
	}
	assert_true(weft_arp_lookup(&a, PEER_IP, 1000, mac));
	assert_memory_equal(mac, peer_mac, 6);
	weft_arp_fini(&a);
}

/* @behaviour S14 */
static void static_neighbours_leave_room_for_others(void **state)
{
	struct rte_arp_hdr pkt;
	struct weft_arp a;

	(void)state;
	weft_arp_init(&a, OUR_IP, our_mac, 42, NULL);
	for (uint32_t i = 0; i < WEFT_ARP_FIXED_MAX; i++)
		assert_int_equal(weft_arp_fix(&a, PEER_IP + i, peer_mac), 0);
	assert_int_equal(weft_arp_fix(&a, PEER_IP + WEFT_ARP_FIXED_MAX, peer_mac), -ENOSPC);
	assert_true(weft_arp_request(&a, PEER_IP + WEFT_ARP_FIXED_MAX, 1, &pkt));
	weft_arp_fini(&a);
}

/* As Azure's fabric does: one MAC for all addresses, and ours is no exception. */
static void a_host_that_answers_for_all_takes_no_address_away(void **state)
{
	static const uint8_t fabric[6] = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc};
	struct rte_arp_hdr pkt, reply;
	struct weft_arp a;

	(void)state;
	weft_arp_init(&a, OUR_IP, our_mac, 42, NULL);
	assert_true(weft_arp_request(&a, PEER_IP, 1, &pkt));
	pkt = packet(2, fabric, PEER_IP, OUR_IP);
	assert_int_equal(weft_arp_input(&a, &pkt, 2, &reply), WEFT_ARP_LEARNED);
	pkt = packet(2, fabric, OUR_IP, OUR_IP);
	assert_int_equal(weft_arp_input(&a, &pkt, 3, &reply), WEFT_ARP_IGNORED);
	assert_int_equal(a.conflict.ip, 0);
	pkt = packet(2, other_mac, OUR_IP, OUR_IP);
	assert_int_equal(weft_arp_input(&a, &pkt, 4, &reply), WEFT_ARP_CONFLICT);
	weft_arp_fini(&a);
}

/* The probe is one that changes no table; what others send unrequested names them. */
static void what_begins_is_a_hint(void **state)
{
	struct rte_arp_hdr pkt, reply;
	struct weft_arp_hint hint;
	struct weft_arp a, b;

	(void)state;
	weft_arp_init(&a, OUR_IP, our_mac, 42, NULL);
	weft_arp_init(&b, PEER_IP, peer_mac, 42, NULL);
	weft_arp_probe(&b, &pkt);
	assert_int_equal(pkt.arp_opcode, RTE_BE16(RTE_ARP_OP_REQUEST));
	assert_int_equal(pkt.arp_data.arp_sip, 0);
	assert_int_equal(rte_be_to_cpu_32(pkt.arp_data.arp_tip), PEER_IP);
	assert_int_equal(weft_arp_input(&a, &pkt, 1, &reply), WEFT_ARP_IGNORED);
	assert_true(weft_arp_hint(&a, &pkt, &hint));
	assert_true(hint.begins && hint.ip == PEER_IP);
	assert_memory_equal(hint.mac, peer_mac, 6);
	assert_false(weft_arp_hint(&b, &pkt, &hint)); /* the link has sent it back */

	pkt = packet(1, peer_mac, PEER_IP, PEER_IP);
	assert_true(weft_arp_hint(&a, &pkt, &hint) && hint.begins && hint.ip == PEER_IP);
	pkt = packet(1, peer_mac, PEER_IP, PEER_IP + 1);
	assert_true(weft_arp_hint(&a, &pkt, &hint) && !hint.begins && hint.ip == PEER_IP);
	pkt = packet(1, peer_mac, 0, OUR_IP);
	assert_false(weft_arp_hint(&a, &pkt, &hint));
	pkt = packet(1, peer_mac, 0, 0);
	assert_false(weft_arp_hint(&a, &pkt, &hint));

	/* A host that answers a probe may answer for all. */
	pkt = packet(2, other_mac, OUR_IP, 0);
	assert_int_equal(weft_arp_input(&a, &pkt, 2, &reply), WEFT_ARP_IGNORED);
	assert_int_equal(a.conflict.ip, 0);
	weft_arp_fini(&a);
	weft_arp_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_with_growing_pauses),
		cmocka_unit_test(learns_only_what_was_requested),
		cmocka_unit_test(unrequested_replies_change_nothing),
		cmocka_unit_test(an_old_entry_is_requested_again_once_in_a_while),
		cmocka_unit_test(answers_for_its_own_address_only),
		cmocka_unit_test(garbage_and_conflicts),
		cmocka_unit_test(a_probe_without_address_is_answered_and_not_learned),
		cmocka_unit_test(hundreds_are_requested_at_once),
		cmocka_unit_test(requests_for_unknown_senders_push_out_nothing_of_ours),
		cmocka_unit_test(a_full_table_gives_up_what_is_unused),
		cmocka_unit_test(further_repliers_are_listed_for_the_search_of_a_peer),
		cmocka_unit_test(queues_of_one_port_learn_from_each_other),
		cmocka_unit_test(a_static_neighbour_stays),
		cmocka_unit_test(static_neighbours_leave_room_for_others),
		cmocka_unit_test(a_host_that_answers_for_all_takes_no_address_away),
		cmocka_unit_test(what_begins_is_a_hint),
	};

	return cmocka_run_group_tests_name("arp", tests, NULL, NULL);
}
