/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The raw-DPDK lane engine at its edges: ends, other versions, ways that change frames, times that
 * are not what they seem.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/address.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/window.h"
#include "frame/arp.h"
#include "frame/frame.h"
#include "mock/raw_pair.h"
#include "mock/rounds.h"

#define LANE_AT 42 /* the lane header in an untagged UDP frame */

static struct pair pair;

static struct pair_end *A = &pair.end[0], *B = &pair.end[1];

/* ---- helpers ---- */

static bool no_memory;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return no_memory ? NULL : __real_malloc(size);
}

static unsigned int done_count, failed_count;

static void on_done(struct weft_lane_comp *comp, int status)
{
	(void)comp;
	done_count++;
	failed_count += status != 0;
}

static struct weft_frame_hdr *lane_hdr(uint8_t *frame)
{
	return (struct weft_frame_hdr *)(frame + LANE_AT);
}

static bool is_lane(const uint8_t *frame)
{
	return frame[12] == 8 && frame[13] == 0;
}

/* The CRC behind a control frame, anew. */
static void reseal(uint8_t *frame)
{
	struct weft_frame_hdr *h = lane_hdr(frame);
	weft_le32 crc = weft_put32(~weft_crc32c(WEFT_CRC32C_INIT, h, weft_get16(h->length)));

	memcpy((uint8_t *)h + weft_get16(h->length), &crc, 4);
}

static struct raw_conn *conn_of(struct weft_lane_ep *lane_ep)
{
	return (struct raw_conn *)lane_ep;
}

/* ---- times ---- */

/*
 * A polls each microsecond. B polls, too, until a message comes; then it computes, answers, and
 * polls again.
 */
static void a_computing_peer_does_not_lengthen_the_round_trip(void **state)
{
	uint64_t busy_until = 0, b_seen = 0, a_seen = 0;

	(void)state;
	pair_open(&pair, NULL, 1);
	pair_connect(&pair);
	pair_send(A, A->lane_ep, 0, 8);
	for (unsigned int i = 0; i < 60000; i++, pair.now += 1000) {
		A->iface->ops->progress(A->iface, pair.now);
		if (A->messages > a_seen) {
			a_seen = A->messages;
			pair_send(A, A->lane_ep, 0, 8);
		}
		A->iface->ops->tx_flush(A->iface);
		if (pair.now < busy_until)
			continue;
		if (B->messages > b_seen) {
			b_seen = B->messages;
			pair_send(B, B->accepted, 0, 8);
		}
		B->iface->ops->progress(B->iface, pair.now);
		B->iface->ops->tx_flush(B->iface);
		if (B->messages > b_seen)
			busy_until = pair.now + 50000;
	}
	assert_true(a_seen > 900);
	/* Two ways of 2 us, polls of 1 us. */
	assert_in_range(A->lane_ep->rtt_ns, 3000, 8000);
	pair_close(&pair);
}

/* B looks at its port every 50 us only: how long frames wait there is not the network's time. */
static void a_peer_that_polls_seldom_does_not_lengthen_the_round_trip(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 2);
	pair_connect(&pair);
	for (unsigned int i = 0; i < 1000; i++)
		pair_step(&pair, 1000);
	for (unsigned int i = 0; i < 100; i++) {
		pair_send(A, A->lane_ep, i, 8);
		pair_send(B, B->accepted, i, 8);
		pair_run(&pair, 30000, NULL);
	}
	assert_in_range(A->lane_ep->rtt_ns, 3000, 8000);
	for (unsigned int i = 0; i < 50000; i++, pair.now += 1000) {
		if (i % 97 == 0)
			pair_send(A, A->lane_ep, i, 8);
		A->iface->ops->progress(A->iface, pair.now);
		A->iface->ops->tx_flush(A->iface);
		if (i % 50 == 0) {
			B->iface->ops->progress(B->iface, pair.now);
			B->iface->ops->tx_flush(B->iface);
		}
	}
	assert_in_range(A->lane_ep->rtt_ns, 3000, 8000);
	pair_close(&pair);
}

/* ---- ends ---- */

static uint64_t drop_data;

static uint32_t lose_one_data(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	(void)from;
	return is_lane(frame) && lane_hdr(frame)->type == WEFT_FRAME_DATA && drop_data++ == 0 ? 0
											      : len;
}

static uint32_t lose_acks(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	(void)from;
	return is_lane(frame) && lane_hdr(frame)->type == WEFT_FRAME_ACK ? 0 : len;
}

static void bye_reports_what_came_out_of_order(void **state)
{
	static uint8_t buf[2000];
	struct weft_lane_comp comp[3] = {{on_done}, {on_done}, {on_done}};
	struct iovec iov = {.iov_base = buf, .iov_len = sizeof(buf)};

	(void)state;
	pair_open(&pair, NULL, 3);
	pair_connect(&pair);
	done_count = failed_count = 0;
	drop_data = 0;
	A->wire.edit = lose_one_data;
	B->wire.edit = lose_acks;
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(A->iface->ops->am_zcopy(A->lane_ep, 5, "header", 6, &iov, 1, NULL,
							 &comp[i]),
				 0);
	pair_run(&pair, 20000, NULL);
	assert_int_equal(B->messages, 2);
	assert_int_equal(done_count, 0);
	B->iface->ops->ep_destroy(B->accepted);
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(A->gones, 1);
	assert_int_equal(done_count, 3);
	assert_int_equal(failed_count, 1);
	pair_close(&pair);
}

static void a_zero_copy_send_without_data_is_sent_or_refused(void **state)
{
	struct weft_lane_comp comp = {on_done};
	int err;

	(void)state;
	pair_open(&pair, NULL, 4);
	pair_connect(&pair);
	done_count = 0;
	no_memory = true;
	err = A->iface->ops->am_zcopy(A->lane_ep, 5, "header", 6, NULL, 0, NULL, &comp);
	no_memory = false;
	assert_int_equal(err, -ENOMEM);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(B->messages, 0);
	assert_int_equal(A->iface->ops->am_zcopy(A->lane_ep, 5, "header", 6, NULL, 0, NULL, &comp),
			 0);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(B->messages, 1);
	assert_int_equal(done_count, 1);
	pair_close(&pair);
}

static void a_closed_connection_keeps_no_window(void **state)
{
	struct raw_conn *a, *b;

	(void)state;
	pair_open(&pair, NULL, 5);
	pair_connect(&pair);
	a = conn_of(A->lane_ep);
	b = conn_of(B->accepted);
	pair_send(A, A->lane_ep, 0, 100);
	A->iface->ops->ep_destroy(A->lane_ep);
	assert_int_equal(a->state, RAW_TIME_WAIT);
	assert_null(a->tx.slots);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(B->gones, 1);
	B->iface->ops->ep_destroy(B->accepted);
	assert_int_equal(b->state, RAW_TIME_WAIT);
	assert_null(b->tx.slots);
	pair_close(&pair);
}

static void a_buffer_may_be_released_before_the_callback_returns(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 6);
	pair_connect(&pair);
	B->keep = true;
	B->release_at_once = true;
	/* Alone in its frame, and several in one. */
	for (unsigned int i = 0; i < 30; i++) {
		assert_int_equal(pair_send(A, A->lane_ep, i, 100), 0);
		if (i % 7 == 0)
			pair_run(&pair, 20000, NULL);
	}
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(B->messages, 30);
	assert_int_equal(B->bad, 0);
	assert_int_equal(((struct raw_iface *)B->iface)->kept, 0);
	/* Of messages in one frame, earlier ones are given back while a later one is delivered. */
	B->release_at_once = false;
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(pair_send(A, A->lane_ep, i, 100), 0);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(((struct raw_iface *)B->iface)->kept, 5);
	while (B->kept_count > 0)
		B->iface->ops->release(B->iface, B->kept[--B->kept_count]);
	assert_int_equal(((struct raw_iface *)B->iface)->kept, 0);
	pair_close(&pair);
}

/* ---- paths ---- */

static unsigned int readys;

/* The first READY names a port 0 for its last path. */
static uint32_t first_ready_is_bad(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	struct weft_frame_hdr *h = lane_hdr(frame);

	(void)from;
	if (is_lane(frame) && h->type == WEFT_FRAME_READY && readys++ == 0) {
		memset((uint8_t *)h + weft_get16(h->length) - 2, 0, 2);
		reseal(frame);
	}
	return len;
}

static bool bad_ready_came(struct pair *p)
{
	return readys > 0 && pair_counter(&p->end[1], RAW_DROP_BAD_TYPE) > 0;
}

static void of_a_ready_with_a_bad_port_nothing_is_taken(void **state)
{
	const struct pair_params params = {.paths = 4};
	const struct raw_conn *c;
	uint32_t at = 0;

	(void)state;
	pair_open(&pair, &params, 12);
	readys = 0;
	A->wire.edit = first_ready_is_bad;
	pair_begin_connect(&pair);
	assert_true(pair_run(&pair, 100000000, bad_ready_came));
	c = raw_table_next((struct raw_iface *)B->iface, &at);
	assert_int_equal(c->state, RAW_HALF_OPEN);
	assert_int_not_equal(c->path_count, 4);
	/* The next one is good. */
	assert_true(pair_run(&pair, 1000000000, pair_both_up));
	c = conn_of(B->accepted);
	assert_int_equal(c->path_count, 4);
	pair_close(&pair);
}

/* ---- other versions ---- */

static uint32_t hello_of_another_version(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	(void)from;
	/* Not even the CRC is where ours looks for it. */
	if (is_lane(frame) && lane_hdr(frame)->type == WEFT_FRAME_HELLO)
		lane_hdr(frame)->version = WEFT_FRAME_VERSION + 1;
	return len;
}

static uint32_t reset_of_another_version(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	(void)from;
	if (is_lane(frame) && lane_hdr(frame)->type == WEFT_FRAME_RESET) {
		lane_hdr(frame)->version = WEFT_FRAME_VERSION + 1;
		reseal(frame);
	}
	return len;
}

/* @behaviour X6 */
static void a_peer_of_another_version_reports_it(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		pair_open(&pair, NULL, 7);
		A->wire.edit = hello_of_another_version;
		B->wire.edit = i == 0 ? NULL : reset_of_another_version;
		pair_begin_connect(&pair);
		pair_run(&pair, 5000000, NULL);
		assert_int_equal(A->downs, 1);
		assert_int_equal(A->status, -ECONNREFUSED);
		assert_non_null(strstr(A->text, "version"));
		pair_close(&pair);
	}
}

static uint32_t reset_without_proof(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	struct weft_frame_reset *r = (struct weft_frame_reset *)(lane_hdr(frame) + 1);

	if (is_lane(frame) && lane_hdr(frame)->type == WEFT_FRAME_RESET) {
		r->echo_token = weft_put32(weft_get32(r->echo_token) ^ 1);
		reseal(frame);
	}
	return hello_of_another_version(from, frame, len);
}

/* @behaviour S6 */
static void a_reset_without_proof_is_not_believed(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 8);
	A->wire.edit = hello_of_another_version;
	B->wire.edit = reset_without_proof;
	pair_begin_connect(&pair);
	pair_run(&pair, 5000000, NULL);
	assert_int_equal(A->downs, 0);
	assert_true(pair_counter(A, RAW_DROP_RESET) > 0);
	pair_close(&pair);
}

/* ---- ways ---- */

static void loss_is_not_taken_for_a_narrow_way(void **state)
{
	(void)state;
	/* One side is wrong about one connect of some hundred when each size is tried as often. */
	for (uint64_t seed = 300; seed < 300 + test_rounds(401); seed++) {
		pair_open(&pair, NULL, seed);
		A->wire.loss = B->wire.loss = 0.4;
		pair_begin_connect(&pair);
		pair_run(&pair, 3000000000ull, pair_both_up);
		if (A->status != 0 && A->status != -ETIMEDOUT)
			fail_msg("seed %llu: %s", (unsigned long long)seed, A->text);
		if (A->ups == 1)
			assert_true(A->lane_ep->max_msg > 8900);
		pair_close(&pair);
	}
}

static uint32_t tag_off(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	(void)from;
	if (len < 18 || frame[12] != 0x81)
		return len;
	memmove(frame + 12, frame + 16, len - 16);
	return len - 4;
}

/* The card of the other side takes frames of its own size at most. */
static uint32_t tag_on(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	static const uint8_t tag[4] = {0x81, 0, 0, 7};

	memmove(frame + 16, frame + 12, len - 12);
	memcpy(frame + 12, tag, 4);
	return len + 4 > from->peer->port.frame_size ? 0 : len + 4;
}

static void a_switch_may_take_the_tag_off(void **state)
{
	const struct pair_params pp = {.vlan = 7, .untagged_1 = true};

	(void)state;
	pair_open(&pair, &pp, 9);
	A->wire.edit = tag_off;
	B->wire.edit = tag_on;
	pair_connect(&pair);
	assert_int_equal(A->status, 0);
	assert_int_equal(A->lane_ep->max_msg, B->accepted->max_msg);
	/* The largest message goes both ways. */
	assert_int_equal(pair_send(A, A->lane_ep, 1, A->lane_ep->max_msg - 8), 0);
	assert_int_equal(pair_send(B, B->accepted, 2, B->accepted->max_msg - 8), 0);
	pair_run(&pair, 50000000, NULL);
	assert_int_equal(A->messages + B->messages, 2);
	assert_int_equal(A->bad + B->bad, 0);
	pair_close(&pair);
}

/* @behaviour S2 */
static void the_far_end_is_known_by_its_frames(void **state)
{
	uint8_t a[WEFT_LANE_ADDR_MAX], b[WEFT_LANE_ADDR_MAX];
	const struct weft_lane_ops *ops;
	size_t len;

	(void)state;
	for (int i = 0; i < 2; i++) {
		const struct pair_params pp = {.raw_ethertype = i == 1};

		pair_open(&pair, &pp, 10);
		ops = A->iface->ops;
		len = A->iface->attr.dev_addr_len;
		ops->get_address(A->iface, a);
		ops->get_address(B->iface, b);
		pair_begin_connect(&pair);
		assert_false(ops->ep_is_from(A->lane_ep, b, len)); /* nothing heard yet */
		assert_true(pair_run(&pair, 1000000000, pair_both_up));
		assert_true(ops->ep_is_from(A->lane_ep, b, len));
		assert_false(ops->ep_is_from(A->lane_ep, a, len));
		assert_true(ops->ep_is_from(B->accepted, a, len));
		assert_false(ops->ep_is_from(B->accepted, b, len));
		assert_false(ops->ep_is_from(B->accepted, a, 3));
		/* Hosts are distinguished by address, not by port. */
		assert_true(ops->ep_host(A->lane_ep) != 0 && ops->ep_host(B->accepted) != 0);
		assert_true(ops->ep_host(A->lane_ep) != ops->ep_host(B->accepted));
		/* The port opened anew: another iface. */
		a[RAW_ADDR_LEN - 1] ^= 1;
		assert_false(ops->ep_is_from(B->accepted, a, len));
		pair_close(&pair);
	}
}

static void sockets_and_a_port_of_one_interface_do_not_connect(void **state)
{
	struct weft_frame_addr b;
	struct weft_frame_port *port;
	char why[320] = "";

	(void)state;
	pair_open(&pair, NULL, 13);
	port = raw_iface_of(A->iface)->port;
	B->iface->ops->get_address(B->iface, &b);
	assert_int_equal(A->iface->ops->is_reachable(A->iface, &b, sizeof(b), why, sizeof(why)), 0);
	for (unsigned int i = 0; i < 2; i++) {
		if (i == 0)
			memcpy(port->kernel_mac, b.mac, sizeof(b.mac));
		else
			port->kernel_ip = weft_get32(b.ip);
		assert_int_equal(A->iface->ops->is_reachable(A->iface, &b, sizeof(b), why,
							     sizeof(why)),
				 -EHOSTUNREACH);
		assert_non_null(strstr(why, "use the driver udp at both ends"));
		memset(port->kernel_mac, 0, sizeof(port->kernel_mac));
		port->kernel_ip = 0;
	}
	pair_close(&pair);
}

/* ---- IPv6 ---- */

static const uint8_t peer_ip6[16] = {0xfd, [15] = 7};

static int reaches(struct weft_frame_port *port, uint32_t ip, char *why, size_t why_len)
{
	const void *ip6 = weft_hosts_ip(port->hosts, ip);

	(void)why;
	(void)why_len;
	return ip6 && memcmp(ip6, peer_ip6, sizeof(peer_ip6)) == 0 ? 0 : -EHOSTUNREACH;
}

/* Connections hold all places that the address could have. */
static void leave_no_room(struct weft_hosts *hosts, const uint8_t ip6[16])
{
	uint8_t other[16] = {0xfe};
	uint32_t number;

	for (uint32_t i = 0; i < 4 * WEFT_HOSTS; i++) {
		memcpy(other + 12, &i, sizeof(i));
		number = weft_hosts_number(hosts, other);
		weft_hosts_hold(hosts, number, true);
	}
	assert_int_equal(weft_hosts_find(hosts, ip6), 0);
}

/* An address with IPv6, also as boot address, reaches its like, and no interface with IPv4. */
static void addresses_with_ipv6(void **state)
{
	uint8_t a[WEFT_LANE_ADDR_MAX], b[WEFT_LANE_ADDR_MAX], unpacked[WEFT_LANE_ADDR_MAX];
	struct weft_frame_port_ops port_ops;
	const struct weft_lane_ops *ops;
	struct weft_frame_port *port;
	struct weft_lane_boot boot;
	struct raw_iface *iface;
	char text[200], why[200];

	(void)state;
	pair_open(&pair, NULL, 12);
	ops = A->iface->ops;
	iface = raw_iface_of(A->iface);
	port = iface->port;
	ops->get_address(B->iface, b);
	port_ops = *port->ops;
	port_ops.reach = reaches;
	port->ops = &port_ops;
	memcpy(port->ip6, peer_ip6, sizeof(peer_ip6));
	port->prefix6 = 64;
	port->hosts = weft_hosts_new(peer_ip6);
	raw_fill_attr(iface);
	assert_int_equal(A->iface->attr.dev_addr_len, RAW_ADDR6_LEN);
	ops->get_address(A->iface, a);
	ops->print_address(a, RAW_ADDR6_LEN, text, sizeof(text));
	assert_non_null(strstr(text, "fd00::7/64 port "));

	/* One of IPv4 at the other end, in both directions; a short one. */
	assert_int_equal(ops->is_reachable(A->iface, b, RAW_ADDR_LEN, why, sizeof(why)),
			 -EHOSTUNREACH);
	assert_non_null(strstr(why, "IPv6"));
	assert_int_equal(ops->is_reachable(B->iface, a, RAW_ADDR6_LEN, why, sizeof(why)),
			 -EHOSTUNREACH);
	assert_non_null(strstr(why, "IPv6"));
	assert_int_equal(ops->is_reachable(A->iface, a, RAW_ADDR_LEN, why, sizeof(why)), -EINVAL);

	/* Another interface at that address. */
	weft_udp_boot_ops.pack(A->iface, &boot);
	assert_int_equal(boot.length, 19);
	assert_int_equal(weft_udp_boot_ops.unpack(A->iface, &boot, 99, unpacked), 0);
	assert_int_equal(ops->is_reachable(A->iface, unpacked, RAW_ADDR6_LEN, why, sizeof(why)), 0);
	ops->print_address(unpacked, RAW_ADDR6_LEN, text, sizeof(text));
	assert_non_null(strstr(text, "fd00::7/0 port "));
	unpacked[32] = 0xff; /* multicast */
	assert_int_equal(ops->is_reachable(A->iface, unpacked, RAW_ADDR6_LEN, why, sizeof(why)),
			 -EINVAL);
	unpacked[32] = 0xfd;
	unpacked[47] = 8;
	leave_no_room(port->hosts, unpacked + 32);
	assert_int_equal(ops->is_reachable(A->iface, unpacked, RAW_ADDR6_LEN, why, sizeof(why)),
			 -ENOSPC);
	assert_non_null(strstr(why, "no room"));
	boot.length = 18;
	assert_int_equal(weft_udp_boot_ops.unpack(A->iface, &boot, 99, unpacked), -EINVAL);
	free(port->hosts);
	port->hosts = NULL;
	pair_close(&pair);
}

/* ---- probes ---- */

static uint32_t longest;

/* A full PROBE becomes as short as a frame can be, and says all the same that it is full. */
static uint32_t short_probe(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(frame + RTE_ETHER_HDR_LEN);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	struct weft_frame_hdr *h = lane_hdr(frame);
	uint16_t length = sizeof(*h) + sizeof(struct weft_frame_probe);

	(void)from;
	if (!is_lane(frame) || h->type != WEFT_FRAME_PROBE || len < WEFT_FRAME_SIZE_MIN)
		return len;
	h->length = weft_put16(length);
	ip->total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*ip) + sizeof(*udp) + length + 4));
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	udp->dgram_len = rte_cpu_to_be_16((uint16_t)(sizeof(*udp) + length + 4));
	reseal(frame);
	return LANE_AT + length + 4u;
}

static uint32_t note_longest(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	(void)from;
	(void)frame;
	longest = len > longest ? len : longest;
	return len;
}

static void a_probe_is_not_answered_by_more_than_came(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 11);
	longest = 0;
	A->wire.edit = short_probe;
	B->wire.edit = note_longest;
	pair_begin_connect(&pair);
	pair_run(&pair, 100000000, NULL);
	assert_in_range(longest, 60, 200);
	assert_true(pair_counter(B, RAW_DROP_PROBE) > 0);
	assert_int_equal(A->ups, 0);
	pair_close(&pair);
	/* With a tag on one side only, what is said and what came still agree. */
	for (int i = 0; i < 2; i++) {
		const struct pair_params pp = {.vlan = 7, .untagged_1 = i == 1};

		pair_open(&pair, &pp, 12);
		A->wire.edit = i == 1 ? tag_off : NULL;
		B->wire.edit = i == 1 ? tag_on : NULL;
		pair_connect(&pair);
		assert_int_equal(pair_counter(B, RAW_DROP_PROBE), 0);
		pair_close(&pair);
	}
}

static bool window_is_fixed(unsigned int cc, bool network)
{
	const struct pair_params pp = {.cc = cc, .network = network};
	bool fixed;

	pair_open(&pair, &pp, 9);
	fixed = raw_window_fixed((const struct raw_iface *)A->iface);
	pair_close(&pair);
	return fixed;
}

/* Without a configured congestion control: where there are queues of others it follows them. */
static void windows_follow_networks_and_not_memory(void **state)
{
	(void)state;
	assert_true(window_is_fixed(WEFT_CC_AUTO, false));
	assert_false(window_is_fixed(WEFT_CC_AUTO, true));
	assert_true(window_is_fixed(WEFT_CC_FIXED, true));
	assert_false(window_is_fixed(WEFT_CC_DELAY, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sockets_and_a_port_of_one_interface_do_not_connect),
		cmocka_unit_test(addresses_with_ipv6),
		cmocka_unit_test(windows_follow_networks_and_not_memory),
		cmocka_unit_test(a_computing_peer_does_not_lengthen_the_round_trip),
		cmocka_unit_test(a_peer_that_polls_seldom_does_not_lengthen_the_round_trip),
		cmocka_unit_test(bye_reports_what_came_out_of_order),
		cmocka_unit_test(a_zero_copy_send_without_data_is_sent_or_refused),
		cmocka_unit_test(a_closed_connection_keeps_no_window),
		cmocka_unit_test(a_buffer_may_be_released_before_the_callback_returns),
		cmocka_unit_test(a_peer_of_another_version_reports_it),
		cmocka_unit_test(a_reset_without_proof_is_not_believed),
		cmocka_unit_test(loss_is_not_taken_for_a_narrow_way),
		cmocka_unit_test(a_switch_may_take_the_tag_off),
		cmocka_unit_test(the_far_end_is_known_by_its_frames),
		cmocka_unit_test(a_probe_is_not_answered_by_more_than_came),
		cmocka_unit_test(of_a_ready_with_a_bad_port_nothing_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
