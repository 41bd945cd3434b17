/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stage for congestion: its network, connections, and what is counted.
 */

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "net_stage_priv.h"
#include "sim_priv.h"

#define LONG_SIZE (256u << 10)
#define NET_OF_SENDERS 0
#define NET_OF_RECEIVER 1

void net_stage_fail(struct net_stage *s, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (s->error[0])
		return;
	n = snprintf(s->error, sizeof(s->error),
		     "t=%llu us: ", (unsigned long long)(sim_now(s->sim) / SIM_US));
	va_start(ap, fmt);
	vsnprintf(s->error + n, sizeof(s->error) - (size_t)n, fmt, ap);
	va_end(ap);
}

static void need(struct net_stage *s, int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "net_stage: %s: %s %s\n", what, weft_strerror(ret), s->error);
	exit(1);
}

/* ---- network -------------------------------------------------------------------------------- */

static void complete(struct net_conf *c)
{
	c->senders = c->senders ? c->senders : 1;
	c->size = c->size ? c->size : 65536;
	c->window = c->request ? 1 : c->window ? c->window : 4;
	c->mtu = c->mtu ? c->mtu : 1500;
	c->rate = c->rate ? c->rate : 10 * SIM_GBIT;
	c->host_rate = c->host_rate ? c->host_rate : c->rate;
	c->rtt_ns = c->rtt_ns ? c->rtt_ns : 10 * SIM_US;
	c->start_ns = c->start_ns ? c->start_ns : 5 * SIM_MS;
	c->run_ns = c->run_ns ? c->run_ns : 100 * SIM_MS;
	if (c->size < sizeof(struct net_stamp) || c->window > NET_WINDOW ||
	    c->senders > NET_SENDERS || c->trunks > NET_TRUNKS) {
		fprintf(stderr,
			"net_stage: messages of at least %zu bytes, at most %d at a time, "
			"%d senders, %d trunks\n",
			sizeof(struct net_stamp), NET_WINDOW, NET_SENDERS, NET_TRUNKS);
		exit(2);
	}
}

static struct sim_port *make_port(struct net_stage *s, unsigned int index, unsigned int net,
				  const struct sim_link *up, const struct sim_link *down)
{
	struct sim_port_params p = {
		.net = net,
		.ip = 0x0a000001 + index,
		.prefix = 16,
		.up = *up,
		.down = *down,
		.frame_size = (uint16_t)(s->conf.mtu + 14),
		.rx_depth = (uint16_t)s->conf.ring,
		.bufs = s->conf.mtu > 1500 ? 512 : 1024,
		.paths = (uint8_t)s->conf.paths,
		.bandwidth = (double)s->conf.rate / 8,
		.flags = WEFT_FRAME_PORT_MEASURE, /* as all ports of DPDK */
	};
	char name[16];

	/* Behind several trunks it carries what they do. */
	if (!index && s->conf.trunks)
		p.bandwidth *= s->conf.trunks;
	/* A few have what ports have by default; a receiver of all has more under way. */
	if (!index || s->conf.senders <= 8)
		p.bufs = s->conf.ring > 1920 ? 2 * s->conf.ring + 255 : 4095;
	p.hdr_bufs = 3 * p.bufs < 16383 ? 3 * p.bufs : 16383;
	snprintf(name, sizeof(name), "h%u", index);
	p.name = name;
	return sim_port_create(s->sim, &p);
}

/*
 * A quarter of the round trip for each direction of each port. The bottleneck is the receiver's
 * port, or the trunks before it.
 */
static void make_network(struct net_stage *s)
{
	struct sim_link host = {.rate = s->conf.host_rate, .delay_ns = s->conf.rtt_ns / 4};
	struct sim_link plain = {.delay_ns = s->conf.rtt_ns / 4}, up = host, down = plain;
	unsigned int i;

	if (!s->conf.trunks)
		down.rate = up.rate = s->conf.rate;
	s->port = make_port(s, 0, net_stage_net(s, true), &up, &down);
	for (i = 0; i < s->num; i++)
		s->sender[i].port = make_port(s, i + 1, NET_OF_SENDERS, &host, &plain);
	for (i = 0; i < s->conf.trunks; i++)
		s->trunk[i] = sim_trunk_create(s->sim, NET_OF_SENDERS, NET_OF_RECEIVER,
					       &(struct sim_link){.rate = s->conf.rate},
					       &(struct sim_link){.rate = s->conf.rate});
}

/* Rate and delay are the stage's; all else is the scenario's. */
static void impair(struct sim_link *l, const struct sim_link *faults)
{
	struct sim_link changed = *faults;

	changed.rate = l->rate;
	changed.delay_ns = l->delay_ns + faults->delay_ns;
	*l = changed;
}

static void make_faults(struct net_stage *s)
{
	unsigned int i;

	for (i = 0; i < s->conf.trunks; i++) {
		impair(sim_trunk_link(s->trunk[i], NET_OF_SENDERS), &s->conf.path);
		impair(sim_trunk_link(s->trunk[i], NET_OF_RECEIVER), &s->conf.back);
	}
	if (s->conf.trunks)
		return;
	impair(sim_port_down(s->port), &s->conf.path);
	impair(sim_port_up(s->port), &s->conf.back);
}

struct sim_port *net_stage_more(struct net_stage *s, bool receiver)
{
	const struct sim_link up = {.rate = s->conf.host_rate, .delay_ns = s->conf.rtt_ns / 4};
	const struct sim_link down = {.delay_ns = s->conf.rtt_ns / 4};

	return make_port(s, s->sim->num_ports, net_stage_net(s, receiver), &up, &down);
}

/* ---- connections ---------------------------------------------------------------------------- */

static void ep_error(struct weft_ep *ep, int status, const char *why, void *arg)
{
	(void)ep;
	if (((struct net_stage *)arg)->sending)
		net_stage_fail(arg, "an endpoint failed: %s: %s", weft_strerror(status), why);
}

static struct weft_ep *connect_to(struct net_stage *s, struct sim_node *from, struct sim_node *to)
{
	struct weft_ep_params p =
		WEFT_INIT(struct weft_ep_params, .err_cb = ep_error, .err_arg = s);
	struct weft_ep *ep = NULL;

	need(s, sim_ep_create(from, to, &p, &ep), "weft_ep_create");
	return ep;
}

static bool connected(void *arg)
{
	struct net_stage *s = arg;
	struct weft_ep_attr a = {.size = sizeof(a)};
	unsigned int i;

	for (i = 0; i < s->num; i++) {
		need(s, weft_ep_query(s->sender[i].ep, &a), "weft_ep_query");
		if (a.status && a.status != WEFT_INPROGRESS)
			need(s, a.status, "an endpoint");
		if (a.status)
			return false;
	}
	return true;
}

static void make_hosts(struct net_stage *s)
{
	struct sim_node_params p = {.num_ports = 1, .config = s->conf.config, .ports = &s->port};
	unsigned int i;

	need(s, sim_node_try(s->sim, &p, &s->node), "the receiver");
	for (i = 0; i < s->num; i++) {
		struct net_sender *sender = &s->sender[i];

		p.ports = &sender->port;
		need(s, sim_node_try(s->sim, &p, &sender->node), "a sender");
		sender->ep = connect_to(s, sender->node, s->node);
		if (s->conf.request && !sender->bystander)
			sender->back = connect_to(s, s->node, sender->node);
	}
	if (!sim_run(s->sim, 5 * SIM_S, connected, s))
		need(s, -1, "not connected after 5 s");
}

struct net_stage *net_stage_open(uint64_t seed, const struct net_conf *conf)
{
	struct net_stage *s = calloc(1, sizeof(*s));
	unsigned int i;

	if (!s)
		abort();
	s->conf = *conf;
	complete(&s->conf);
	s->sim = sim_create(seed);
	if (conf->request) /* the clients poll, and would see timers up to 0.1 ms late */
		sim_set_poll(s->sim, 500, 5 * SIM_US);
	s->rng = sim_stream(s->sim, 20);
	s->num = s->conf.senders + s->conf.bystander;
	for (i = 0; i < s->num; i++) {
		s->sender[i].s = s;
		s->sender[i].index = i;
		s->sender[i].bystander = i == s->conf.senders;
		s->sender[i].size = s->sender[i].bystander ? BYSTANDER_SIZE : s->conf.size;
		s->sender[i].window = s->sender[i].bystander ? 1 : s->conf.window;
	}
	make_network(s);
	/* Connecting is no part of the figures: faults come with the traffic. */
	make_hosts(s);
	make_faults(s);
	for (i = 0; i < s->num; i++)
		net_sender_prepare(&s->sender[i]);
	sim_node_slow(s->node, s->conf.slow_ns);
	return s;
}

/* ---- runs ----------------------------------------------------------------------------------- */

static bool pump(void *arg)
{
	struct net_stage *s = arg;
	unsigned int i;

	for (i = s->idle ? s->conf.senders : 0; i < s->num && s->sending; i++)
		net_sender_pump(&s->sender[i]);
	return s->error[0];
}

static void pause(void *arg)
{
	struct net_stage *s = arg;
	uint64_t host = sim_below(&s->rng, s->conf.all_pause ? s->conf.senders + 1 : 2);

	if (!s->sending)
		return;
	if (s->conf.rx_pause)
		host = 1;
	sim_node_pause(host == 1 ? s->node : s->sender[host ? host - 1 : 0].node,
		       s->conf.pause_least_ns +
			       sim_below(&s->rng, s->conf.pause_most_ns - s->conf.pause_least_ns));
	sim_at(s->sim, sim_now(s->sim) + 5 * SIM_MS + sim_below(&s->rng, 40 * SIM_MS), pause, s);
}

void net_stage_start(struct net_stage *s, bool idle)
{
	if (s->conf.pause_most_ns > s->conf.pause_least_ns)
		sim_at(s->sim, sim_now(s->sim) + SIM_MS, pause, s);
	s->idle = idle;
	s->started_at = sim_now(s->sim);
	s->sending = true;
	net_stage_mark(s);
}

void net_stage_run(struct net_stage *s, uint64_t ns)
{
	uint64_t end = s->started_at + ns, now = sim_now(s->sim);

	if (end > now)
		sim_run(s->sim, end - now, pump, s);
}

static bool all_came(void *arg)
{
	struct net_stage *s = arg;
	unsigned int i;

	for (i = 0; i < s->num; i++)
		if (!net_sender_idle(&s->sender[i]))
			return s->error[0];
	return true;
}

const char *net_stage_close(struct net_stage *s)
{
	static char error[sizeof(s->error)];
	unsigned int i;

	s->sending = false;
	if (!sim_run(s->sim, 30 * SIM_S, all_came, s))
		net_stage_fail(s, "messages under way have not come within 30 s");
	sim_close_nodes(s->sim);
	if (sim_leaked(s->sim))
		net_stage_fail(s, "%llu mbufs were lost", (unsigned long long)sim_leaked(s->sim));
	if (sim_stuck_contexts(s->sim))
		net_stage_fail(s, "a context was still in use when its host had ended");
	snprintf(error, sizeof(error), "%s", s->error);
	sim_destroy(s->sim);
	for (i = 0; i < s->num; i++)
		net_sender_free(&s->sender[i]);
	net_samples_free(&s->bystander);
	net_samples_free(&s->message);
	free(s);
	return error[0] ? error : NULL;
}

/* ---- figures -------------------------------------------------------------------------------- */

/* The bottleneck's directions. */
static const struct sim_wire *bottleneck(const struct net_stage *s, unsigned int i)
{
	return s->conf.trunks ? &s->trunk[i]->end[NET_OF_SENDERS].out : &s->port->down;
}

static unsigned int bottlenecks(const struct net_stage *s)
{
	return s->conf.trunks ? s->conf.trunks : 1;
}

/*
 * Long messages are counted by what has left their sender, else a message of which all but the last
 * byte came would be none: 64 of 1 MiB at a time take 54 ms.
 */
static uint64_t payload_of(const struct net_sender *sender)
{
	struct weft_lane_info info = {.size = sizeof(info)};
	uint64_t sum = 0;

	if (sender->size < LONG_SIZE)
		return sender->payload;
	for (unsigned int i = 0; weft_ep_query_lane(sender->ep, i, &info) == 0; i++)
		sum += info.tx_bytes;
	return sum;
}

static void sum_up(const struct net_stage *s, struct net_sums *sums)
{
	unsigned int i;

	*sums = (struct net_sums){.when = sim_now(s->sim), .drops = sim_congestion_drops(s->sim)};
	for (i = 0; i < bottlenecks(s); i++) {
		sums->marks += bottleneck(s, i)->state.stats.marked;
		sums->frames += bottleneck(s, i)->state.stats.frames;
	}
	for (i = 0; i < s->conf.senders; i++) {
		sums->again += sim_node_counter(s->sender[i].node, "tx.retransmit.fast") +
			       sim_node_counter(s->sender[i].node, "tx.retransmit.rto") +
			       sim_node_counter(s->sender[i].node, "tx.retransmit.probe");
		sums->payload[i] = payload_of(&s->sender[i]);
	}
}

void net_stage_mark(struct net_stage *s)
{
	sum_up(s, &s->mark);
	s->bystander.num = 0;
	s->message.num = 0;
}

struct net_figures net_stage_figures(struct net_stage *s)
{
	struct net_figures f = {0};
	double share[NET_SENDERS], frames;
	struct net_sums now;
	unsigned int i;

	sum_up(s, &now);
	f.seconds = (double)(now.when - s->mark.when) * 1e-9;
	for (i = 0; i < s->conf.senders; i++) {
		share[i] = (double)(now.payload[i] - s->mark.payload[i]);
		f.bits += share[i] * 8 / f.seconds;
	}
	f.jain = net_jain(share, s->conf.senders);
	frames = (double)(now.frames - s->mark.frames);
	if (frames > 0) {
		f.dropped = (double)(now.drops - s->mark.drops) / frames;
		f.again = (double)(now.again - s->mark.again) / frames;
		f.marked = (double)(now.marks - s->mark.marks) / frames;
	}
	for (i = 0; i < bottlenecks(s); i++)
		if (f.queue < (double)bottleneck(s, i)->state.max_queue)
			f.queue = (double)bottleneck(s, i)->state.max_queue;
	f.bystander_p50 = net_samples_at(&s->bystander, 0.5);
	f.bystander_p99 = net_samples_at(&s->bystander, 0.99);
	f.message_p50 = net_samples_at(&s->message, 0.5);
	f.message_p99 = net_samples_at(&s->message, 0.99);
	f.message_p999 = net_samples_at(&s->message, 0.999);
	f.message_p9999 = net_samples_at(&s->message, 0.9999);
	f.message_max = net_samples_at(&s->message, 1);
	return f;
}

struct sim *net_stage_sim(const struct net_stage *s)
{
	return s->sim;
}

struct sim_port *net_stage_receiver(const struct net_stage *s)
{
	return s->port;
}

unsigned int net_stage_net(const struct net_stage *s, bool receiver)
{
	return receiver && s->conf.trunks ? NET_OF_RECEIVER : NET_OF_SENDERS;
}

struct sim_trunk *net_stage_trunk(const struct net_stage *s, unsigned int i)
{
	return i < s->conf.trunks ? s->trunk[i] : NULL;
}
