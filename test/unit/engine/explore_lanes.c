/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * As explore.c, with the death of a lane: two connections join the same two ends, everything is
 * sent over the first, and after any of its frames the first is cut, for good and both ways. Then
 * both ends stop it, tell each other what they have received, take back what the other has not,
 * and send that over the second. Before the cut the wire may do something else to any one frame.
 * The first lane may come back then, and what is left of the conversation goes over its next
 * connection, while frames of the last one may still come. However it was, every message has come
 * exactly once and every completion was called once, by the end, with 0.
 */

#include "engine/ep.h"
#include "engine/iface.h"
#include "engine/outstanding.h"
#include "mock/raw_util.h"
#include "mock/rounds.h"

#define MESSAGES 6u /* of each end */
#define ITEMS 64u
#define US 1000ull
#define MS 1000000ull

enum fate { DELIVERED, LOST, DOUBLED, OVERTAKEN, GHOST, FATES };

static struct {
	unsigned int frame; /* of the first lane, in the order of sending, to which it happens */
	enum fate fate;
	unsigned int cut; /* this one and all later are lost */
	bool back;        /* the lane comes back */
	bool on;
	unsigned int frames;
	uint64_t end; /* when ghosts come */
} path;

static uint16_t (*pair_tx)(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n);

static void send_one(struct pair_end *e, struct rte_mbuf *m, uint64_t delay, double loss)
{
	e->wire.delay_ns = delay;
	e->wire.loss = loss;
	assert_int_equal(pair_tx(&e->port, &m, 1), 1);
	e->wire.delay_ns = 2 * US;
	e->wire.loss = 0;
}

static uint16_t explore_tx(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n)
{
	struct pair_end *e = (struct pair_end *)port;

	for (uint16_t i = 0; i < n; i++) {
		unsigned int frame = path.on ? path.frames++ : UINT32_MAX;
		enum fate fate = DELIVERED;

		if (path.on && frame == path.frame)
			fate = path.fate;
		if (path.on && frame >= path.cut)
			fate = LOST;
		if (fate == DOUBLED || fate == GHOST) {
			raw_ref_chain(pkts[i]);
			send_one(e, pkts[i], fate == GHOST ? path.end - pair.now : 3 * US, 0);
		}
		send_one(e, pkts[i], fate == OVERTAKEN ? 40 * US : 2 * US, fate == LOST);
	}
	return n;
}

static struct weft_frame_port_ops explore_ops;

static unsigned int came[2][MESSAGES];

static void count(struct pair_end *e, struct weft_lane_ep *lane_ep, const void *data, size_t len)
{
	uint32_t n;

	(void)lane_ep;
	assert_true(len >= sizeof(n));
	memcpy(&n, data, sizeof(n));
	assert_in_range(n, 0, MESSAGES - 1);
	came[e == B][n]++;
}

/* ---- what the protocol layer does */

struct side {
	struct pair_end *e;
	struct weft_lane_ep *lane_ep[2];
	unsigned int given, flushes;
	struct weft_lane_comp comp[4];
	struct {
		size_t length;
		struct weft_lane_comp *comp;
		uint8_t am_id;
		bool message;
		uint8_t data[1500];
	} item[ITEMS];
	unsigned int items;
};

static struct side side[2];

static void keep(void *arg, uint8_t am_id, const void *msg, size_t length,
		 struct weft_lane_comp *comp)
{
	struct side *s = arg;

	assert_true(s->items < ITEMS);
	assert_true(length <= sizeof(s->item[0].data));
	s->item[s->items].am_id = am_id;
	s->item[s->items].message = msg != NULL;
	s->item[s->items].length = length;
	s->item[s->items].comp = comp;
	if (msg)
		memcpy(s->item[s->items].data, msg, length);
	s->items++;
}

static void flush_on(struct side *s, unsigned int lane, struct weft_lane_comp *comp)
{
	int rc = s->e->iface->ops->ep_flush(s->lane_ep[lane], comp);

	assert_true(rc >= 0);
	if (rc == WEFT_LANE_IDLE)
		comp->done(comp, 0);
}

static void replay(struct side *s)
{
	for (unsigned int i = 0; i < s->items; i++) {
		while (s->item[i].message &&
		       s->e->iface->ops->am_short(s->lane_ep[1], s->item[i].am_id, s->item[i].data,
						  s->item[i].length, NULL, 0) == -EAGAIN)
			pair_step(&pair, 1 * US);
		if (s->item[i].comp)
			flush_on(s, 1, s->item[i].comp);
	}
}

static void fail_over(void)
{
	struct raw_rx_state state[2];
	int len[2];

	for (unsigned int i = 0; i < 2; i++)
		assert_true((len[i] = raw_ep_quiesce(side[i].lane_ep[0], &state[i])) > 0);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(raw_ep_reap(side[i].lane_ep[0], &state[!i], (size_t)len[!i], keep,
					     &side[i]),
				 0);
	assert_int_equal(side[0].lane_ep[0]->queued + side[1].lane_ep[0]->queued, 0);
	for (unsigned int i = 0; i < 2; i++)
		replay(&side[i]);
}

/* ---- the conversation */

/* User memory, which a zero-copy message is sent from. */
static uint8_t memory[2][1400];

static int give(struct side *s)
{
	static const uint32_t len[MESSAGES] = {8, 1100, 8, 1200, 64, 900};
	uint32_t n = s->given, hdr[2] = {n, 0};
	struct iovec iov = {memory[s == &side[1]], len[n]};

	if (n % 3 != 1)
		return pair_send(s->e, s->lane_ep[0], n, len[n]);
	s->comp[n / 3].done = on_done;
	return s->e->iface->ops->am_zcopy(s->lane_ep[0], 5, hdr, sizeof(hdr), &iov, 1, NULL,
					  &s->comp[n / 3]);
}

static bool done(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		if (side[i].given < MESSAGES || side[i].flushes < 2)
			return false;
		for (unsigned int n = 0; n < MESSAGES; n++)
			if (came[i][n] == 0)
				return false;
	}
	return done_count == 8 && side[0].lane_ep[0]->queued + side[1].lane_ep[0]->queued == 0;
}

/* Until all is there, or nothing has moved for a while after the cut. */
static void talk(void)
{
	uint64_t until = pair.now + 20 * MS;

	while (pair.now < until && !done()) {
		for (unsigned int i = 0; i < 2; i++) {
			struct side *s = &side[i];

			if (s->given < MESSAGES && give(s) == 0)
				s->given++;
			if (s->given >= 3 * (s->flushes + 1)) {
				s->comp[2 + s->flushes].done = on_done;
				flush_on(s, 0, &s->comp[2 + s->flushes]);
				s->flushes++;
			}
		}
		pair_step(&pair, A->queued + B->queued > 0 ? 1 * US : 10 * US);
	}
}

static void fail_with(const char *what)
{
	print_message("frame %u: fate %d; cut before frame %u%s\n", path.frame, (int)path.fate,
		      path.cut, path.back ? "; back" : "");
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int n = 0; n < MESSAGES; n++)
			print_message("message %u came to %c %u times\n", n, i ? 'B' : 'A',
				      came[i][n]);
	fail_msg("%s; %u completions", what, done_count);
}

static void check(void)
{
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int n = 0; n < MESSAGES; n++)
			if (came[i][n] != (n < side[i ? 0 : 1].given))
				fail_with("not exactly once");
	if (done_status != 0)
		fail_with("a completion has an error");
	if (done_count != 4 * 2 - (side[0].given <= 4) - (side[0].given <= 1) -
				  (side[1].given <= 4) - (side[1].given <= 1) -
				  (2 - side[0].flushes) - (2 - side[1].flushes))
		fail_with("not each completion, and once");
	if (A->downs || B->downs)
		fail_with("a lane ended");
	if (raw_iface_of(A->iface)->share.tx_held != 0 ||
	    raw_iface_of(B->iface)->share.tx_held != 0)
		fail_with("frames are still held");
}

static void connect_lane(unsigned int l)
{
	A->lane_ep = NULL;
	B->accepted = NULL;
	pair_connect(&pair);
	side[0].lane_ep[l] = A->lane_ep;
	side[1].lane_ep[l] = B->accepted;
}

static void connect_lanes(void)
{
	memset(side, 0, sizeof(side));
	side[0].e = A;
	side[1].e = B;
	for (unsigned int l = 0; l < 2; l++)
		connect_lane(l);
}

static void come_back(void)
{
	A->iface->ops->ep_destroy(side[0].lane_ep[0]);
	B->iface->ops->ep_destroy(side[1].lane_ep[0]);
	connect_lane(0);
	talk();
	if (!done())
		fail_with("the lane is back, and does not carry the rest");
}

/* @return frames that the first lane has sent */
static unsigned int run(void)
{
	unsigned int frames;

	memset(came, 0, sizeof(came));
	done_count = 0;
	done_status = 0;
	path.on = false;
	connect_lanes();
	A->on_message = B->on_message = count;
	pair_run(&pair, 1 * MS, NULL);
	path.frames = 0;
	path.end = pair.now + 60 * MS;
	path.on = true;
	talk();
	frames = path.frames;
	path.on = false;
	fail_over();
	if (path.back)
		come_back();
	pair_run(&pair, 2 * MS, NULL);
	pair.now = RTE_MAX(pair.now, path.end);
	pair_run(&pair, 200 * US, NULL);
	check();
	for (unsigned int l = 0; l < 2; l++) {
		A->iface->ops->ep_destroy(side[0].lane_ep[l]);
		B->iface->ops->ep_destroy(side[1].lane_ep[l]);
	}
	A->on_message = B->on_message = nothing;
	pair_run(&pair, 50 * US, NULL);
	return frames;
}

/* @behaviour F2, R30 */
static void a_lane_that_dies_anywhere_loses_and_doubles_nothing(void **state)
{
	struct pair_params pp = {
		.frame_size = {1514, 1514},
		.window = 3000,
		.first_seq = 0xfffffffc,
		.bufs = 1023,
	};
	unsigned int frames, paths = 0;

	(void)state;
	pair_open(&pair, &pp, 78);
	pair_tx = A->port.ops->tx_burst;
	explore_ops = *A->port.ops;
	explore_ops.tx_burst = explore_tx;
	A->port.ops = B->port.ops = &explore_ops;
	path.frame = path.cut = UINT32_MAX;
	path.back = false;
	frames = run();
	assert_in_range(frames, 8, 100);
	for (unsigned int f = 0; f < frames + 4; f++)
		for (enum fate fate = LOST; fate < FATES; fate++)
			for (unsigned int cut = 0; cut <= frames + 4;
			     cut += test_part() > 1 ? 3 : 1) {
				path.frame = f;
				path.fate = fate;
				path.cut = cut;
				for (path.back = false;; path.back = true) {
					run();
					paths++;
					if (path.back)
						break;
				}
			}
	print_message("%u paths\n", paths);
	pair_close(&pair);
}

/* ---- what the peer says of itself */

static void what_a_peer_claims_to_have_is_checked(void **state)
{
	struct raw_rx_state s[2], bad;
	int len;

	(void)state;
	pair_open(&pair, NULL, 79);
	connect_lanes();
	A->on_message = B->on_message = nothing;
	pair_send(A, side[0].lane_ep[0], 0, 100);
	pair_run(&pair, 1 * MS, NULL);
	B->wire.blackhole = true;
	A->wire.blackhole = true;
	for (unsigned int n = 1; n < 4; n++) {
		pair_send(A, side[0].lane_ep[0], n, 100);
		pair_run(&pair, 20 * US, NULL);
	}
	/* Still in the open frame when the lane stops: it was never sent. */
	pair_send(A, side[0].lane_ep[0], 4, 100);
	assert_int_equal(raw_ep_reap(side[0].lane_ep[0], &s[1], 8, keep, &side[0]), -EPROTO);
	assert_true(raw_ep_quiesce(side[0].lane_ep[0], &s[0]) > 0);
	assert_int_equal(raw_ep_quiesce(side[0].lane_ep[0], &s[0]), -ENOTCONN);
	len = raw_ep_quiesce(side[1].lane_ep[0], &s[1]);
	assert_int_equal(len, 8);
	for (unsigned int n = 0; n < 8; n++)
		assert_int_equal(raw_ep_reap(side[0].lane_ep[0], &s[1], n, keep, &side[0]),
				 -EPROTO);
	bad = s[1];
	bad.next = weft_put32(weft_get32(s[1].next) - 1); /* takes back what it has acknowledged */
	assert_int_equal(raw_ep_reap(side[0].lane_ep[0], &bad, 8, keep, &side[0]), -EPROTO);
	bad.next = weft_put32(weft_get32(s[1].next) + 4); /* has what was never sent */
	assert_int_equal(raw_ep_reap(side[0].lane_ep[0], &bad, 8, keep, &side[0]), -EPROTO);
	bad = s[1];
	bad.words = weft_put16(1);
	bad.word[0] = weft_put64(1ull << 40);
	assert_int_equal(raw_ep_reap(side[0].lane_ep[0], &bad, 16, keep, &side[0]), -EPROTO);
	bad.words = weft_put16(UINT16_MAX);
	assert_int_equal(raw_ep_reap(side[0].lane_ep[0], &bad, sizeof(bad), keep, &side[0]),
			 -EPROTO);
	assert_int_equal(side[0].items, 0);
	assert_int_equal(raw_ep_reap(side[0].lane_ep[0], &s[1], 8, keep, &side[0]), 0);
	assert_int_equal(side[0].items, 4);
	A->wire.blackhole = B->wire.blackhole = false;
	for (unsigned int l = 0; l < 2; l++) {
		A->iface->ops->ep_destroy(side[0].lane_ep[l]);
		B->iface->ops->ep_destroy(side[1].lane_ep[l]);
	}
	pair_run(&pair, 1 * MS, NULL);
	pair_close(&pair);
}

/* ---- a completion ends the connection that hands back */

static unsigned int until_gone;

static void keep_or_end(void *arg, uint8_t am_id, const void *msg, size_t length,
			struct weft_lane_comp *comp)
{
	(void)arg;
	(void)am_id;
	(void)msg;
	(void)length;
	assert_true(until_gone > 0); /* nothing comes of a connection that is gone */
	if (comp)
		comp->done(comp, 0);
	if (--until_gone == 0)
		A->iface->ops->ep_destroy(side[0].lane_ep[0]);
}

static void a_completion_may_end_the_connection_that_hands_back(void **state)
{
	struct raw_rx_state s[2];
	int len;

	(void)state;
	/* Six messages, of which two have completions, and two flushes between them. */
	for (unsigned int at = 1; at <= 9; at++) {
		pair_open(&pair, NULL, 80);
		connect_lanes();
		A->on_message = B->on_message = nothing;
		pair_run(&pair, 1 * MS, NULL);
		A->wire.blackhole = B->wire.blackhole = true;
		done_count = 0;
		for (unsigned int n = 0; n < MESSAGES; n++) {
			assert_int_equal(give(&side[0]), 0);
			side[0].given++;
			pair_run(&pair, 20 * US, NULL);
			if (n % 3 != 2)
				continue;
			side[0].comp[2 + n / 3].done = on_done;
			flush_on(&side[0], 0, &side[0].comp[2 + n / 3]);
		}
		raw_ep_quiesce(side[0].lane_ep[0], &s[0]);
		len = raw_ep_quiesce(side[1].lane_ep[0], &s[1]);
		until_gone = at;
		assert_int_equal(
			raw_ep_reap(side[0].lane_ep[0], &s[1], (size_t)len, keep_or_end, NULL), 0);
		assert_int_equal(until_gone, at == 9);
		if (until_gone)
			A->iface->ops->ep_destroy(side[0].lane_ep[0]);
		A->wire.blackhole = B->wire.blackhole = false;
		A->iface->ops->ep_destroy(side[0].lane_ep[1]);
		for (unsigned int l = 0; l < 2; l++)
			B->iface->ops->ep_destroy(side[1].lane_ep[l]);
		pair_run(&pair, 1 * MS, NULL);
		assert_int_equal(done_count, 4);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_peer_claims_to_have_is_checked),
		cmocka_unit_test(a_completion_may_end_the_connection_that_hands_back),
		cmocka_unit_test(a_lane_that_dies_anywhere_loses_and_doubles_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
