/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One worker and 128 peers, through the whole library: those that stop, die or trickle in the
 * middle of all operations with them slow down no other peer. Each case prints its row of
 * the table in doc/results/2026-11-22-peers.md.
 */

#include <stdlib.h>
#include <string.h>

#include "mock/rounds.h"
#include "sim_test.h"

#define PEERS 128
#define GOOD (peers() - 1)
#define MIB (1u << 20)

/*
 * All of them, or a part with TEST_ROUNDS in the environment, and of the bad ones as large a part.
 */
static unsigned int peers(void)
{
	return test_rounds(PEERS);
}

enum how_bad { STOPPED, DEAD, TRICKLING };

enum what { SEND_8, SEND, RECV, PUT, GET, NUM_WHAT };

static const char *const what_name[NUM_WHAT] = {"8 B send", "1 MiB send", "1 MiB receive",
						"1 MiB put", "1 MiB get"};

struct many {
	struct sim *sim;
	struct sim_node *a, *peer[PEERS];
	struct sim_port *port[PEERS];
	struct weft_ep *to[PEERS];   /* a's endpoints */
	struct weft_ep *from[PEERS]; /* and theirs */
	struct weft_rkey *rkey[PEERS];
	unsigned int bad; /* the first so many */
	uint8_t *src, *dst;
};

/* ------------------------------------------------------------------ operations */

struct wait {
	bool done;
	int status;
};

static void done(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct wait *w = arg;

	(void)req;
	w->done = true;
	w->status = c->status;
}

static bool is_done(void *arg)
{
	return ((struct wait *)arg)->done;
}

static struct weft_op_params to_wait(struct wait *w, unsigned int flags)
{
	*w = (struct wait){0};
	return WEFT_INIT(struct weft_op_params, .cb = done, .cb_arg = w, .flags = flags);
}

static void send_recv(struct weft_ep *ep, struct sim_node *to, struct wait *w, struct many *c,
		      size_t length, uint64_t tag)
{
	struct weft_op_params p = to_wait(w, WEFT_OP_F_FORCE_REQUEST);
	struct weft_request *req;

	assert_int_equal(weft_tag_recv(sim_worker(to), NULL, c->dst, length, tag,
				       WEFT_TAG_MASK_FULL, &p, &req),
			 WEFT_INPROGRESS);
	assert_in_range(weft_tag_send(ep, c->src, length, tag, NULL, NULL), 0, 1);
}

/* A program that does not know which peers are stopped goes on sending to all. */
static void feed_bad(struct many *c)
{
	for (unsigned int i = 0; i < c->bad; i++)
		weft_tag_send(c->to[i], c->src, 1000, 77, NULL, NULL);
}

/* @return ns that one operation with peer @p i takes */
static uint64_t takes(struct many *c, unsigned int i, enum what what)
{
	uint64_t begin = sim_now(c->sim);
	struct wait w;
	struct weft_op_params p;

	feed_bad(c);
	switch (what) {
	case SEND_8:
	case SEND:
		send_recv(c->to[i], c->peer[i], &w, c, what == SEND ? MIB : 8, 5);
		break;
	case RECV:
		send_recv(c->from[i], c->a, &w, c, MIB, 6);
		break;
	case PUT:
		p = to_wait(&w, WEFT_OP_F_FORCE_REQUEST | WEFT_OP_F_DELIVERED);
		assert_int_equal(weft_put(c->to[i], c->src, MIB, c->rkey[i], 0, &p, NULL), 1);
		break;
	default:
		p = to_wait(&w, WEFT_OP_F_FORCE_REQUEST);
		assert_int_equal(weft_get(c->to[i], c->dst, MIB, c->rkey[i], 0, &p, NULL), 1);
		break;
	}
	if (!sim_run(c->sim, 60 * SIM_S, is_done, &w))
		fail_msg("%s takes more than a minute", what_name[what]);
	assert_int_equal(w.status, 0);
	return sim_now(c->sim) - begin;
}

/* The median of some tries. */
static uint64_t typically(struct many *c, enum what what)
{
	uint64_t t[7];

	for (unsigned int k = 0; k < 7; k++)
		t[k] = takes(c, GOOD, what);
	qsort(t, 7, sizeof(t[0]), sim_by_value);
	return t[3];
}

/* ------------------------------------------------------------------ many peers */

static void offer(struct many *c, unsigned int i)
{
	struct weft_mem_params mp = WEFT_INIT(
		struct weft_mem_params, .flags = WEFT_MEM_F_REMOTE_READ | WEFT_MEM_F_REMOTE_WRITE);
	size_t length;
	struct weft_mem *mem;
	void *blob;

	assert_int_equal(weft_mem_register(sim_context(c->peer[i]), c->dst, MIB, &mp, &mem), 0);
	/* Operations hold it until the worker's end. */
	sim_node_keep(c->peer[i], mem);
	assert_int_equal(weft_rkey_pack(mem, &blob, &length), 0);
	assert_int_equal(weft_rkey_unpack(c->to[i], blob, length, &c->rkey[i]), 0);
	weft_rkey_release_blob(blob);
}

static void gather(struct many *c, struct sim_case *sc)
{
	struct sim_port_params p = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000},
				    .down = {.rate = 10 * SIM_GBIT},
				    .bufs = 1024};
	struct sim_port_params pa = p;
	struct sim_port *port;

	*c = (struct many){.sim = case_sim_seed(sc, sc->seed)};
	c->src = calloc(1, MIB);
	c->dst = calloc(1, MIB);
	pa.bufs = 0;
	port = sim_port_create(c->sim, &pa);
	c->a = sim_node_create(c->sim, &(struct sim_node_params){.ports = &port, .num_ports = 1});
	for (unsigned int i = 0; i < peers(); i++) {
		c->port[i] = sim_port_create(c->sim, &p);
		c->peer[i] = sim_node_create(c->sim, &(struct sim_node_params){.ports = &c->port[i],
									       .num_ports = 1});
		c->to[i] = sim_ep_up(c->sim, c->a, c->peer[i]);
		c->from[i] = sim_ep_up(c->sim, c->peer[i], c->a);
		offer(c, i);
	}
}

static void part(struct many *c)
{
	for (unsigned int i = 0; i < peers(); i++)
		weft_rkey_destroy(c->rkey[i]);
	sim_node_kill(c->a);
	for (unsigned int i = 0; i < peers(); i++)
		sim_node_kill(c->peer[i]);
	sim_run(c->sim, SIM_MS, NULL, NULL);
	free(c->src);
	free(c->dst);
}

/* Everything is under way with each of them, in both directions. */
static void occupy(struct many *c)
{
	struct weft_worker *a = sim_worker(c->a);

	for (unsigned int k = 0; k < 4; k++) {
		for (unsigned int i = 0; i < c->bad; i++) {
			weft_tag_recv(a, NULL, c->dst, MIB, 1000 + i, WEFT_TAG_MASK_FULL, NULL,
				      NULL);
			weft_tag_send(c->from[i], c->src, MIB, 1000 + i, NULL, NULL);
			weft_tag_send(c->to[i], c->src, MIB, 78, NULL, NULL);
			weft_tag_send(c->to[i], c->src, 8000, 79, NULL, NULL);
			weft_get(c->to[i], c->dst, MIB, c->rkey[i], 0, NULL, NULL);
			weft_put(c->to[i], c->src, MIB, c->rkey[i], 0, NULL, NULL);
		}
	}
	sim_run(c->sim, 300 * SIM_US, NULL, NULL);
}

static void spoil(struct many *c, unsigned int bad, enum how_bad how)
{
	c->bad = bad;
	occupy(c);
	for (unsigned int i = 0; i < bad; i++) {
		if (how == STOPPED)
			sim_node_pause(c->peer[i], 1000 * SIM_S);
		else if (how == DEAD)
			sim_node_kill(c->peer[i]);
		else if (i % 2) /* it hears a frame every 9 s */
			*sim_port_down(c->port[i]) =
				(struct sim_link){.rate = 1300 * 8 / 9, .queue_bytes = 3000};
		else /* it says a frame every 10 ms */
			*sim_port_up(c->port[i]) =
				(struct sim_link){.rate = 1300 * 8 * 100, .queue_bytes = 3000};
	}
}

/* ------------------------------------------------------------------ cases */

static void others_are_not_slowed(struct sim_case *sc, unsigned int bad, enum how_bad how)
{
	static const char *const names[] = {"stopped", "dead", "trickling"};
	uint64_t alone[NUM_WHAT], with[NUM_WHAT], worst = 0, t;
	struct many c;

	bad = test_rounds(bad);
	gather(&c, sc);
	for (enum what k = 0; k < NUM_WHAT; k++)
		alone[k] = typically(&c, k);
	spoil(&c, bad, how);
	/* While it is not known yet. */
	for (int k = 0; k < 8; k++) {
		t = takes(&c, GOOD, k % 2 ? RECV : k % 4 ? GET : SEND);
		worst = t > worst ? t : worst;
	}
	/* And later. */
	sim_run(c.sim, 200 * SIM_MS, NULL, NULL);
	for (enum what k = 0; k < NUM_WHAT; k++)
		with[k] = typically(&c, k);
	printf("# %2u %-9s worst 1 MiB %6.2f ms", bad, names[how], (double)worst / 1e6);
	for (enum what k = 0; k < NUM_WHAT; k++)
		printf("; %s %.1f us (%.2f)", what_name[k], (double)with[k] / 1e3,
		       (double)with[k] / (double)alone[k]);
	printf("\n");
	if (worst > 100 * SIM_MS)
		fail_msg("1 MiB took %.1f ms", (double)worst / 1e6);
	for (enum what k = 0; k < NUM_WHAT; k++)
		if (with[k] > alone[k] * 3 / 2)
			fail_msg("%s takes %.1f us, %.1f us alone", what_name[k],
				 (double)with[k] / 1e3, (double)alone[k] / 1e3);
	part(&c);
}

/*
 * @behaviour T5: 1, 8 and 64 of 128 peers stop or die: the others' messages, puts and gets take the
 * same time as before; also with three real processes
 * @behaviour T39: measurement: the stall table
 */
static void one_stopped_peer_slows_down_no_peer(struct sim_case *c)
{
	others_are_not_slowed(c, 1, STOPPED);
}

/* @behaviour T2 */
static void eight_stopped_peers_slow_down_no_peer(struct sim_case *c)
{
	others_are_not_slowed(c, 8, STOPPED);
}

/*
 * @behaviour R43: A slow, stopped or dead peer slows down no other peer
 * @behaviour T5, R84
 */
static void sixty_four_stopped_peers_slow_down_no_peer(struct sim_case *c)
{
	others_are_not_slowed(c, 64, STOPPED);
}

/* @behaviour T5 */
static void one_dead_peer_slows_down_no_peer(struct sim_case *c)
{
	others_are_not_slowed(c, 1, DEAD);
}

/* @behaviour T5 */
static void eight_dead_peers_slow_down_no_peer(struct sim_case *c)
{
	others_are_not_slowed(c, 8, DEAD);
}

/* @behaviour T5, T39, R43 */
static void sixty_four_dead_peers_slow_down_no_peer(struct sim_case *c)
{
	others_are_not_slowed(c, 64, DEAD);
}

/* @behaviour T4 */
static void one_trickling_peer_slows_down_no_peer(struct sim_case *c)
{
	others_are_not_slowed(c, 1, TRICKLING);
}

/* @behaviour T4 */
static void eight_trickling_peers_slow_down_no_peer(struct sim_case *c)
{
	others_are_not_slowed(c, 8, TRICKLING);
}

/* @behaviour T4, T39 */
static void sixty_four_trickling_peers_slow_down_no_peer(struct sim_case *c)
{
	others_are_not_slowed(c, 64, TRICKLING);
}

static struct sim_case cases[] = {
	SIM_CASE(one_stopped_peer_slows_down_no_peer),
	SIM_CASE(eight_stopped_peers_slow_down_no_peer),
	SIM_CASE(sixty_four_stopped_peers_slow_down_no_peer),
	SIM_CASE(one_dead_peer_slows_down_no_peer),
	SIM_CASE(eight_dead_peers_slow_down_no_peer),
	SIM_CASE(sixty_four_dead_peers_slow_down_no_peer),
	SIM_CASE(one_trickling_peer_slows_down_no_peer),
	SIM_CASE(eight_trickling_peers_slow_down_no_peer),
	SIM_CASE(sixty_four_trickling_peers_slow_down_no_peer),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_share", cases, sizeof(cases) / sizeof(cases[0]));
}
