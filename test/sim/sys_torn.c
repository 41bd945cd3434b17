/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hostile peers tear messages into as many islands as they may, all that a worker keeps track of
 * together. An honest peer over eight lanes, whose pieces come in any order, is not harmed by it.
 */

#include <stdlib.h>
#include <string.h>

#include "msg/msg.h"
#include "sim_test.h"

#define HOSTILE 9
#define LANES 8
#define MIB (1u << 20)
/* All of them together leave less than a hundred beyond the floors. */
#define RANGES (WEFT_RX_RANGES_LIMIT / HOSTILE + WEFT_RX_RANGES_FLOOR - 4)
/* With a window that follows the network there are fewer islands. */
#define CONF "UNEXP_LIMIT=256M EAGER_CREDIT=16M RNDV_THRESH=inf MULTI_EAGER_LIMIT=4M CC=fixed"

struct many {
	struct sim *sim;
	struct sim_node *a, *honest, *bad[HOSTILE];
	struct sim_port *lane[LANES];
	struct weft_ep *to_a, *from[HOSTILE];
	uint8_t *src, *dst;
	uint32_t peak; /* of the honest peer's islands */
};

/*
 * One-byte pieces of the next message, a hole behind each, until the lane has them or its endpoint
 * has ended.
 */
static void tear(struct many *c, struct weft_ep *ep)
{
	static const uint8_t byte = 1;
	struct weft_msg_ep *me = ep->msg;
	struct weft_lane_ep *lane_ep = me->lanes[0].lane_ep;
	struct weft_wire_frag f = {.e = {.seq = weft_put32(me->tx_seq), .tag = weft_put64(99)},
				   .total = weft_put64(2 * RANGES + 2)};

	for (uint32_t n = 0; n <= RANGES && !me->failed;) {
		f.offset = weft_put64(2 * n);
		if (lane_ep->ops->am_short(lane_ep, WEFT_WIRE_FRAG, &f, sizeof(f), &byte, 1) == 0)
			n++;
		else
			sim_run(c->sim, 20 * SIM_US, NULL, NULL);
	}
	sim_run(c->sim, 2 * SIM_MS, NULL, NULL);
}

struct wait {
	struct many *c;
	unsigned int left;
	int status;
};

static void done(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct wait *w = arg;

	(void)req;
	w->left--;
	if (c->status)
		w->status = c->status;
}

static bool all_done(void *arg)
{
	struct wait *w = arg;
	struct weft_ep *ep;

	LIST_FOREACH(ep, &sim_worker(w->c->a)->eps, entry) {
		if (ep->remote_id == sim_worker(w->c->honest)->id &&
		    ep->msg->rx_ranges > w->c->peak)
			w->c->peak = ep->msg->rx_ranges;
	}
	return w->left == 0;
}

static void honest_messages(struct many *c, unsigned int rounds)
{
	struct wait w = {.c = c};
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = done, .cb_arg = &w,
					    .flags = WEFT_OP_F_FORCE_REQUEST);
	struct weft_request *req;

	for (unsigned int k = 0; k < rounds; k++) {
		memset(c->dst, 0, 4 * MIB);
		w.left = 8;
		for (unsigned int i = 0; i < 4; i++)
			assert_int_equal(weft_tag_recv(sim_worker(c->a), NULL, c->dst + i * MIB,
						       MIB, i, WEFT_TAG_MASK_FULL, &p, &req),
					 WEFT_INPROGRESS);
		for (unsigned int i = 0; i < 4; i++)
			assert_in_range(weft_tag_send(c->to_a, c->src + i * MIB, MIB, i, &p, &req),
					0, 1);
		if (!sim_run(c->sim, 20 * SIM_S, all_done, &w))
			fail_msg("%u of 8 requests are open after 20 s", w.left);
		assert_int_equal(w.status, 0);
		assert_memory_equal(c->src, c->dst, 4 * MIB);
	}
}

static void gather(struct many *c, struct sim_case *sc)
{
	/*
	 * So many overtake each other that messages of several lanes come in hundreds of islands.
	 */
	const struct sim_link link = {
		.rate = 10 * SIM_GBIT, .delay_ns = 5000, .reorder = 0.5, .reorder_ns = 2000000};
	struct sim_port_params p = {.up = link, .bufs = 0};
	struct sim_port *port[LANES], *one;
	unsigned int i;

	*c = (struct many){.sim = case_sim_seed(sc, sc->seed)};
	c->src = malloc(4 * MIB);
	c->dst = malloc(4 * MIB);
	for (i = 0; i < 4 * MIB; i++)
		c->src[i] = (uint8_t)(i * 31 + (i >> 9));
	for (i = 0; i < LANES; i++)
		port[i] = sim_port_create(c->sim, &p);
	for (i = 0; i < LANES; i++)
		c->lane[i] = sim_port_create(c->sim, &p);
	c->a = sim_node_create(c->sim, &(struct sim_node_params){
					       .ports = port, .num_ports = LANES, .config = CONF});
	c->honest = sim_node_create(c->sim, &(struct sim_node_params){.ports = c->lane,
								      .num_ports = LANES,
								      .config = CONF});
	p.up.reorder = 0;
	for (i = 0; i < HOSTILE; i++) {
		one = sim_port_create(c->sim, &p);
		c->bad[i] = sim_node_create(c->sim, &(struct sim_node_params){.ports = &one,
									      .num_ports = 1,
									      .config = CONF});
		c->from[i] = sim_ep_up(c->sim, c->bad[i], c->a);
	}
	c->to_a = sim_ep_up(c->sim, c->honest, c->a);
	sim_run(c->sim, 50 * SIM_MS, NULL, NULL);
}

/*
 * @behaviour S16: a peer that fragments messages takes no received ranges from a peer that needs
 * more than the floor: the peer with most ranges ends
 */
static void ranges_of_hostile_peers_leave_an_honest_one_its_own(struct sim_case *sc)
{
	uint64_t fragmented;
	struct many c;

	gather(&c, sc);
	honest_messages(&c, 1);
	/* It needs more than the floor. */
	assert_true(c.peak > WEFT_RX_RANGES_FLOOR + 64);
	for (unsigned int i = 0; i < HOSTILE; i++)
		tear(&c, c.from[i]);
	assert_true(sim_worker(c.a)->msg->rx_ranges > WEFT_RX_RANGES_LIMIT - 100);
	honest_messages(&c, 2);
	fragmented = sim_node_counter(c.a, "tag.drop.torn");
	assert_in_range(fragmented, 1, HOSTILE);
	/* And once more while the last of them goes on. */
	tear(&c, c.from[HOSTILE - 1]);
	honest_messages(&c, 1);
	sim_node_kill(c.a);
	sim_node_kill(c.honest);
	for (unsigned int i = 0; i < HOSTILE; i++)
		sim_node_kill(c.bad[i]);
	sim_run(c.sim, SIM_MS, NULL, NULL);
	free(c.src);
	free(c.dst);
}

static struct sim_case cases[] = {
	SIM_CASE(ranges_of_hostile_peers_leave_an_honest_one_its_own),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_torn", cases, sizeof(cases) / sizeof(cases[0]));
}
