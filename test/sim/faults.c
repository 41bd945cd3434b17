/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two hosts, two lanes, messages both ways, and one fault amid them: each host writes its own
 * capture, by its own clock. With SIM_FAULTS=DIRECTORY these stay there, with what weft-dump has to
 * find (truth.json): test/proc/faults.py compares. Here the messages have to arrive.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_arp.h>

#include "scene.h"

#define MESSAGES 420u
#define EVERY_NS (150 * SIM_US)
#define CALM_NS (20 * SIM_MS)

struct fault {
	struct scene *s;
	struct sim_rng dice;
	unsigned int node, lane; /* whose way out is bad */
	uint64_t begin;          /* by the clock of the first host */
	uint64_t stopped_until;
	bool of_host;
	bool of_frames; /* it meets some of them */
	bool moved;
};

static double between(struct fault *f, double from, double to)
{
	return from + (to - from) * (double)sim_below(&f->dice, 1000001) / 1e6;
}

static struct sim_link *forth(struct fault *f)
{
	return sim_port_up(f->s->port[f->node][f->lane]);
}

static struct sim_link *back(struct fault *f)
{
	return sim_port_up(f->s->port[!f->node][f->lane]);
}

/* ---- faults --------------------------------------------------------------------------------- */

static void clean(struct fault *f)
{
	f->of_host = false;
}

static void random_loss(struct fault *f)
{
	f->of_frames = true;
	forth(f)->loss = between(f, 0.04, 0.12);
}

static void burst_loss(struct fault *f)
{
	f->of_frames = true;
	forth(f)->burst_len = between(f, 6, 14);
	forth(f)->bursts = between(f, 0.06, 0.15);
}

static void queue_or_policer_loss(struct fault *f)
{
	struct sim_link *down = sim_port_down(f->s->port[!f->node][f->lane]);

	f->of_frames = true;
	if (sim_below(&f->dice, 2)) {
		forth(f)->police_rate = (uint64_t)between(f, 70e6, 130e6);
		forth(f)->police_burst = (uint64_t)between(f, 4000, 12000);
	} else {
		down->rate = (uint64_t)between(f, 70e6, 130e6);
		down->queue_bytes = (uint64_t)between(f, 4000, 9000);
	}
}

static void duplication(struct fault *f)
{
	f->of_frames = true;
	forth(f)->dup = between(f, 0.04, 0.2);
}

static void reordering(struct fault *f)
{
	f->of_frames = true;
	forth(f)->reorder = between(f, 0.08, 0.25);
	forth(f)->reorder_ns = (uint64_t)between(f, 100e3, 400e3);
}

static void corruption(struct fault *f)
{
	f->of_frames = true;
	forth(f)->corrupt = between(f, 0.04, 0.12);
}

static void delay_or_jitter(struct fault *f)
{
	if (sim_below(&f->dice, 2))
		forth(f)->delay_ns += (uint64_t)between(f, 200e3, 2e6);
	else
		forth(f)->jitter_ns = (uint64_t)between(f, 500e3, 2e6);
}

static void blackhole_one_way(struct fault *f)
{
	forth(f)->blackhole = true;
}

static void blackhole_both_ways(struct fault *f)
{
	forth(f)->blackhole = true;
	back(f)->blackhole = true;
}

static void lane_down(struct fault *f)
{
	sim_port_carrier(f->s->port[f->node][f->lane], false);
}

static void path_mtu(struct fault *f)
{
	forth(f)->mtu = (uint32_t)between(f, 1300, 1480);
	back(f)->mtu = forth(f)->mtu;
}

/* Another MAC stands for the one host's from now on; the old one leads nowhere. */
static void put_mac(uint8_t mac[6])
{
	memcpy(mac, "\x02\x57\x46\x77\x77\x77", 6);
}

static enum sim_verdict to_moved(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				 void *arg)
{
	const struct fault *f = arg;
	const uint8_t *old = sim_port_mac(f->s->port[!f->node][f->lane]);
	uint8_t now[6];

	(void)port;
	(void)len;
	(void)room;
	put_mac(now);
	if (!f->moved)
		return SIM_PASS;
	if (!memcmp(data, old, 6))
		return SIM_DROP;
	if (!memcmp(data, now, 6))
		memcpy(data, old, 6);
	return SIM_PASS;
}

static enum sim_verdict from_moved(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
				   void *arg)
{
	const struct fault *f = arg;
	struct rte_arp_hdr *arp = (struct rte_arp_hdr *)(data + RTE_ETHER_HDR_LEN);

	(void)port;
	(void)room;
	if (!f->moved)
		return SIM_PASS;
	put_mac(data + RTE_ETHER_ADDR_LEN);
	if (*len >= RTE_ETHER_HDR_LEN + sizeof(*arp) && !memcmp(data + 12, "\x08\x06", 2))
		put_mac(arp->arp_data.arp_sha.addr_bytes);
	return SIM_PASS;
}

static void moved_mac(struct fault *f)
{
	f->moved = true;
}

static void stopped_peer(struct fault *f)
{
	uint64_t ns = (uint64_t)between(f, 12e6, 30e6);

	f->of_host = true;
	f->stopped_until = sim_now(f->s->sim) + ns;
	sim_node_pause(f->s->node[f->node], ns);
}

static bool stopped(const struct fault *f, unsigned int node)
{
	return f->of_host && f->node == node && sim_now(f->s->sim) < f->stopped_until;
}

static void slow_receiver(struct fault *f)
{
	f->of_host = true;
	sim_node_slow(f->s->node[f->node], (uint64_t)between(f, 500e3, 2e6));
}

/* ---- a run ---------------------------------------------------------------------------------- */

static size_t size_of(struct fault *f)
{
	static const size_t sizes[] = {8, 3000, 8000, 20000};

	return sizes[sim_below(&f->dice, 4)];
}

/* Messages 2 i and 2 i + 1: one each way. */
struct traffic {
	struct op *r[2], *w[2];
	size_t size[2];
};

static void post_recv(struct fault *f, struct traffic *t, unsigned int i, unsigned int n)
{
	if (!t->r[n])
		t->r[n] = op_recv(f->s, !n, t->size[n], 2 * i + n);
}

static void post_send(struct scene_ep *e[2], struct traffic *t, unsigned int i, unsigned int n)
{
	if (!t->w[n])
		t->w[n] = op_send(e[n], 2 * i + n, t->size[n], 2 * i + n);
}

/* A stopped process calls nothing: what it would have posted comes later. */
static void post(struct fault *f, struct scene_ep *e[2], struct traffic *t, unsigned int i)
{
	unsigned int n;

	for (n = 0; n < 2; n++) {
		if (!stopped(f, !n))
			post_recv(f, t, i, n);
		if (!stopped(f, n))
			post_send(e, t, i, n);
	}
}

static void exchange(struct fault *f, struct scene_ep *e[2], void (*begin)(struct fault *f))
{
	uint64_t at = sim_now(f->s->sim) + CALM_NS + sim_below(&f->dice, 10 * SIM_MS);
	static struct traffic t[MESSAGES];
	unsigned int i, n;

	memset(t, 0, sizeof(t));
	for (i = 0; i < MESSAGES; i++) {
		for (n = 0; n < 2; n++)
			t[i].size[n] = size_of(f);
		post(f, e, &t[i], i);
		if (!f->begin && sim_now(f->s->sim) + EVERY_NS >= at) {
			scene_run(f->s, at > sim_now(f->s->sim) ? at - sim_now(f->s->sim) : 0);
			f->begin = sim_node_now(f->s->node[0]);
			begin(f);
		}
		scene_run(f->s, EVERY_NS);
	}
	scene_run(f->s, f->stopped_until > sim_now(f->s->sim)
				? f->stopped_until - sim_now(f->s->sim)
				: 0);
	for (i = 0; i < MESSAGES; i++)
		post(f, e, &t[i], i);
	for (i = 0; i < MESSAGES; i++) {
		for (n = 0; n < 2; n++) {
			op_expect(t[i].r[n], 20 * SIM_S, 0);
			op_expect(t[i].w[n], 20 * SIM_S, 0);
		}
	}
}

/* Frames that the fault has met; of one that is not about single frames: many. */
static uint64_t touched(const struct fault *f)
{
	const struct sim_stats *s;
	uint64_t sum = 0;
	unsigned int n;

	for (n = 0; n < 2; n++) {
		s = sim_port_stats(f->s->port[n][f->lane]);
		sum += s->lost + s->dupped + s->reordered + s->corrupted + s->blackholed +
		       s->too_long + s->tail_drops;
	}
	return f->of_frames ? sum : 1000;
}

static void report_fault(struct sim_case *c, const struct fault *f, const char *dir)
{
	char path[600];
	FILE *out;

	snprintf(path, sizeof(path), "%s/truth.json", dir);
	out = fopen(path, "w");
	assert_non_null(out);
	fprintf(out, "{\"class\": \"%s\", \"time\": %" PRIu64 ", \"of_host\": %s, ", c->name,
		f->begin, f->of_host ? "true" : "false");
	fprintf(out, "\"touched\": %" PRIu64 ", ", touched(f));
	fprintf(out, "\"host\": \"%c\", \"lane\": [\"%c%u\", \"%c%u\"]}\n", 'a' + f->node, 'a',
		f->lane, 'b', f->lane);
	fclose(out);
}

static void run(struct sim_case *c, void (*begin)(struct fault *f))
{
	struct scene_conf conf = {.lanes = {2, 2},
				  .up = {.rate = SIM_GBIT, .delay_ns = 5 * SIM_US}};
	const char *dir = getenv("SIM_FAULTS");
	char config[2][600] = {"", ""};
	struct fault f = {0};
	struct scene_ep *e[2];
	unsigned int i;

	for (i = 0; i < 2 && dir; i++) {
		snprintf(config[i], sizeof(config[i]), "CAPTURE=%s/%c.pcapng", dir, 'a' + i);
		conf.node_config[i] = config[i];
	}
	f.s = scene_open(c, &conf);
	f.dice = sim_stream(f.s->sim, 77);
	f.node = (unsigned int)sim_below(&f.dice, 2);
	f.lane = (unsigned int)sim_below(&f.dice, 2);
	sim_filter(f.s->port[f.node][f.lane], to_moved, &f);
	sim_filter(f.s->port[!f.node][f.lane], from_moved, &f);
	f.s->accept = true;
	e[0] = scene_up(f.s, 0, 1);
	e[1] = f.s->accepted[1];
	if (!e[1])
		e[1] = scene_up(f.s, 1, 0);
	exchange(&f, e, begin);
	sim_close_nodes(f.s->sim);
	if (dir)
		report_fault(c, &f, dir);
}

#define FAULT(fault)                                 \
	static void fault##_case(struct sim_case *c) \
	{                                            \
		run(c, fault);                       \
	}
FAULT(clean)
FAULT(random_loss)
FAULT(burst_loss)
FAULT(queue_or_policer_loss)
FAULT(duplication)
FAULT(reordering)
FAULT(corruption)
FAULT(delay_or_jitter)
FAULT(blackhole_one_way)
FAULT(blackhole_both_ways)
FAULT(lane_down)
FAULT(path_mtu)
FAULT(moved_mac)
FAULT(stopped_peer)
FAULT(slow_receiver)

#define CASE(fault)                                     \
	{                                               \
#fault, fault##_case, 0, 0, NULL, false \
	}
static struct sim_case cases[] = {
	CASE(clean),
	CASE(random_loss),
	CASE(burst_loss),
	CASE(queue_or_policer_loss),
	CASE(duplication),
	CASE(reordering),
	CASE(corruption),
	CASE(delay_or_jitter),
	CASE(blackhole_one_way),
	CASE(blackhole_both_ways),
	CASE(lane_down),
	CASE(path_mtu),
	CASE(moved_mac),
	CASE(stopped_peer),
	CASE(slow_receiver),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "faults", cases, sizeof(cases) / sizeof(cases[0]));
}
