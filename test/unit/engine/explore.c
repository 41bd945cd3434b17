/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model check of the raw lane's reliability over its real code: a short conversation between two
 * ends is run again and again, and each time the wire does something else to its frames. A frame
 * may be delivered, lost, doubled, overtaken by later ones, or come once more when all is over. All
 * ways to do so to at most FAULTS of the conversation's frames are tried, retransmissions and
 * acknowledgements included, at a window of two frames and with sequence numbers that wrap in
 * mid-conversation. Whatever the wire did: every message has come exactly once, every completion
 * once and without an error, no buffer is left over, and all of it within a bound (no deadlock).
 *
 *	test_explore [FAULTS]     3 by default, where sequence numbers wrap; 4 takes minutes
 */

#include "engine/iface.h"
#include "engine/outstanding.h"
#include "mock/raw_util.h"
#include "mock/rounds.h"

#define A_MESSAGES 7u
#define B_MESSAGES 3u
#define FAULTS_MAX 4u
#define FRAMES_MAX 64u

#define US 1000ull
#define MS 1000000ull

enum fate { DELIVERED, LOST, DOUBLED, OVERTAKEN, GHOST, FATES };

struct fault {
	unsigned int frame; /* of the conversation, in the order of sending */
	enum fate fate;
};

static unsigned int most_faults = 3;

static struct {
	struct fault fault[FAULTS_MAX];
	unsigned int faults;
	bool on;             /* frames count */
	unsigned int frames; /* sent so far */
	uint64_t end;        /* when ghosts come */
} path;

static uint16_t (*pair_tx)(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n);

static enum fate fate_of(unsigned int frame)
{
	for (unsigned int i = 0; i < path.faults; i++)
		if (path.fault[i].frame == frame)
			return path.fault[i].fate;
	return DELIVERED;
}

/* The pair's own wire does it: certain loss, or a delay. */
static void send_one(struct pair_end *e, struct rte_mbuf *m, uint64_t delay, double loss)
{
	e->wire.delay_ns = delay;
	e->wire.loss = loss;
	assert_int_equal(pair_tx(&e->port, &m, 1), 1);
	e->wire.delay_ns = 2 * US;
	e->wire.loss = 0;
}

static void twice(struct pair_end *e, struct rte_mbuf *m, uint64_t delay)
{
	raw_ref_chain(m);
	send_one(e, m, 2 * US, 0);
	send_one(e, m, delay, 0);
}

static uint16_t explore_tx(struct weft_frame_port *port, struct rte_mbuf **pkts, uint16_t n)
{
	struct pair_end *e = (struct pair_end *)port;

	for (uint16_t i = 0; i < n; i++) {
		switch (path.on ? fate_of(path.frames++) : DELIVERED) {
		case LOST:
			send_one(e, pkts[i], 2 * US, 1);
			break;
		case DOUBLED:
			twice(e, pkts[i], 3 * US);
			break;
		case OVERTAKEN:
			send_one(e, pkts[i], 40 * US, 0);
			break;
		case GHOST:
			twice(e, pkts[i], path.end > pair.now ? path.end - pair.now : 2 * US);
			break;
		default:
			send_one(e, pkts[i], 2 * US, 0);
		}
	}
	return n;
}

static struct weft_frame_port_ops explore_ops;

static unsigned int came[2][8];

static void count(struct pair_end *e, struct weft_lane_ep *lane_ep, const void *data, size_t len)
{
	uint32_t n;

	(void)lane_ep;
	assert_true(len >= sizeof(n));
	memcpy(&n, data, sizeof(n));
	assert_in_range(n, 0, 7);
	came[e == B][n]++;
}

static bool settled(void)
{
	unsigned int i;

	for (i = 0; i < A_MESSAGES; i++)
		if (came[1][i] == 0)
			return false;
	for (i = 0; i < B_MESSAGES; i++)
		if (came[0][i] == 0)
			return false;
	return done_count == 2 && A->lane_ep->queued == 0 && B->accepted->queued == 0;
}

/* A frame each; what has no room is tried again, as the protocol layer does. */
static void talk(void)
{
	static const uint32_t a_len[A_MESSAGES] = {8, 1100, 900, 1200, 200, 1300, 64};
	static const uint32_t b_len[B_MESSAGES] = {8, 900, 1400};
	static struct weft_lane_comp comp[2];
	unsigned int a = 0, b = 0, rc;
	uint64_t until = pair.now + 400 * MS;
	bool flushed[2] = {false, false};

	comp[0].done = comp[1].done = on_done;
	while (pair.now < until) {
		if (a < A_MESSAGES && pair_send(A, A->lane_ep, a, a_len[a]) == 0)
			a++;
		if (b < B_MESSAGES && came[1][b] && pair_send(B, B->accepted, b, b_len[b]) == 0)
			b++;
		if (a == A_MESSAGES && !flushed[0]) {
			rc = (unsigned int)A->iface->ops->ep_flush(A->lane_ep, &comp[0]);
			done_count += rc == WEFT_LANE_IDLE;
			flushed[0] = true;
		}
		if (b == B_MESSAGES && !flushed[1]) {
			rc = (unsigned int)B->iface->ops->ep_flush(B->accepted, &comp[1]);
			done_count += rc == WEFT_LANE_IDLE;
			flushed[1] = true;
		}
		if (flushed[0] && flushed[1] && settled())
			return;
		pair_step(&pair, A->queued + B->queued > 0 ? 1 * US : 10 * US);
	}
}

static void fail_with(const char *what)
{
	static const char *const name[FATES] = {
		[DELIVERED] = "delivered", [LOST] = "lost",   [DOUBLED] = "doubled",
		[OVERTAKEN] = "overtaken", [GHOST] = "ghost",
	};

	for (unsigned int i = 0; i < path.faults; i++)
		print_message("frame %u: %s\n", path.fault[i].frame, name[path.fault[i].fate]);
	for (unsigned int e = 0; e < 2; e++)
		for (unsigned int i = 0; i < (e ? A_MESSAGES : B_MESSAGES); i++)
			print_message("message %u of %c came %u times\n", i, e ? 'A' : 'B',
				      came[e][i]);
	fail_msg("%s", what);
}

static void check(void)
{
	unsigned int i;

	for (i = 0; i < A_MESSAGES; i++)
		if (came[1][i] != 1)
			fail_with("not exactly once");
	for (i = 0; i < B_MESSAGES; i++)
		if (came[0][i] != 1)
			fail_with("not exactly once");
	if (done_count != 2 || done_status != 0)
		fail_with("a flush did not end well, and once");
	if (A->downs || B->downs || A->gones || B->gones)
		fail_with("the lane ended");
	if (raw_iface_of(A->iface)->share.tx_held != 0 ||
	    raw_iface_of(B->iface)->share.tx_held != 0)
		fail_with("frames are still held");
}

static bool both_reported(struct pair *p)
{
	return pair_both_up(p) && p->end[0].ups > 0 && p->end[1].ups > 0;
}

/* Connecting itself: frames that ask, probe and measure. */
static unsigned int run_connect(void)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];

	A->lane_ep = NULL;
	B->accepted = NULL;
	A->ups = B->ups = 0;
	path.frames = 0;
	path.end = pair.now + 450 * MS;
	path.on = true;
	B->iface->ops->get_address(B->iface, addr);
	assert_int_equal(A->iface->ops->ep_connect(A->iface, addr, B->iface->attr.dev_addr_len, A,
						   &A->lane_ep),
			 0);
	if (!pair_run(&pair, 2000 * MS, both_reported))
		fail_with("not connected");
	path.on = false;
	if (path.end > pair.now && A->queued + B->queued > 0) {
		pair_run(&pair, 200 * US, NULL);
		pair.now = RTE_MAX(path.end, pair.now);
		pair_run(&pair, 200 * US, NULL);
	}
	if (A->ups != 1 || B->ups != 1)
		fail_with("up was not said once at each end");
	if (A->downs || B->downs || A->gones || B->gones)
		fail_with("the lane ended");
	A->iface->ops->ep_destroy(A->lane_ep);
	B->iface->ops->ep_destroy(B->accepted);
	pair_run(&pair, 50 * US, NULL);
	A->gones = B->gones = 0;
	return path.frames;
}

/* One path. @return frames that were sent, which is what further faults can be done to */
static unsigned int run_talk(void)
{
	memset(came, 0, sizeof(came));
	done_count = 0;
	done_status = 0;
	A->lane_ep = NULL;
	B->accepted = NULL;
	path.on = false;
	pair_connect(&pair);
	A->on_message = B->on_message = count;
	pair_run(&pair, 1 * MS, NULL);
	path.frames = 0;
	path.end = pair.now + 450 * MS;
	path.on = true;
	talk();
	path.on = false;
	/* Delayed acknowledgements, and then the ghosts. */
	pair_run(&pair, 200 * US, NULL);
	if (A->queued + B->queued > 0) {
		pair.now = path.end;
		pair_run(&pair, 200 * US, NULL);
	}
	check();
	A->iface->ops->ep_destroy(A->lane_ep);
	B->iface->ops->ep_destroy(B->accepted);
	A->on_message = B->on_message = nothing;
	pair_run(&pair, 50 * US, NULL);
	return path.frames;
}

static unsigned long paths;
static unsigned int (*run)(void);

/* All that can be done to frames from @p first on, with what path has already. */
static void explore(unsigned int first, unsigned int left)
{
	unsigned int frames = run(), f;

	paths++;
	assert_true(frames < FRAMES_MAX);
	if (left == 0)
		return;
	for (f = first; f < frames; f++) {
		for (enum fate fate = LOST; fate < FATES; fate++) {
			path.fault[path.faults++] = (struct fault){f, fate};
			explore(f + 1, left - 1);
			path.faults--;
		}
	}
}

static void all_paths(unsigned int (*of)(void), uint32_t first_seq, unsigned int faults)
{
	struct pair_params pp = {
		.frame_size = {1514, 1514},
		.window = 2000,
		.first_seq = first_seq,
		.bufs = 1023,
		/* Questions about further paths would be most of the frames. */
		.paths = 1,
	};

	pair_open(&pair, &pp, 77);
	pair_tx = A->port.ops->tx_burst;
	explore_ops = *A->port.ops;
	explore_ops.tx_burst = explore_tx;
	A->port.ops = B->port.ops = &explore_ops;
	paths = 0;
	path.faults = 0;
	run = of;
	explore(0, faults);
	print_message("%lu paths, at most %u faults each\n", paths, faults);
	pair_close(&pair);
}

/*
 * @behaviour R1: Each message arrives exactly once, whatever frames are lost, duplicated, delayed
 * or overtaken
 */
static void every_path_ends_well(void **state)
{
	(void)state;
	all_paths(run_talk, 1000, most_faults - 1);
}

/* The conversation is the same, and harder, so only here it has the most faults. */
/* @behaviour R2: The same holds where sequence numbers wrap */
static void every_path_ends_well_across_the_wrap(void **state)
{
	(void)state;
	all_paths(run_talk, 0xfffffffc, most_faults);
}

/* @behaviour R4: Connecting survives the loss of any frame */
static void every_path_connects(void **state)
{
	(void)state;
	all_paths(run_connect, 1000, most_faults - 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_path_ends_well),
		cmocka_unit_test(every_path_ends_well_across_the_wrap),
		cmocka_unit_test(every_path_connects),
	};

	if (argc > 1)
		most_faults = (unsigned int)strtoul(argv[1], NULL, 10);
	if (most_faults > FAULTS_MAX)
		most_faults = FAULTS_MAX;
	if (test_part() > 1 && most_faults > 2)
		most_faults = 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
