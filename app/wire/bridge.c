/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread serves all pairs. A frame is held from the verdict of the link until it is due. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>

#include "common/cli.h"
#include "wire/bridge.h"

#define POOL_CACHE 256

static int find_ports(char *const *names, unsigned int num, uint16_t *ports, unsigned int *found)
{
	uint16_t port;
	unsigned int i, k;

	for (*found = 0; *found < num; (*found)++) {
		i = *found;
		if (rte_eth_dev_get_port_by_name(names[i], &ports[i])) {
			cli_error("there is no port '%s'; name ports in the EAL's arguments, "
				  "before --",
				  names[i]);
			return APP_USAGE;
		}
		for (k = 0; k < i; k++) {
			if (ports[k] == ports[i]) {
				cli_error("port '%s' is named twice", names[i]);
				return APP_USAGE;
			}
		}
	}
	if (num)
		return APP_OK;
	RTE_ETH_FOREACH_DEV(port) {
		if (*found < 2 * WIRE_PAIRS)
			ports[*found] = port;
		(*found)++;
	}
	return APP_OK;
}

/* Without --mtu, w->mtu becomes the smallest MTU of the ports, at most 1500. */
static int choose_mtu(struct wire *w, const uint16_t *ports, unsigned int num, uint16_t *room)
{
	struct weft_passing_limits limits;
	bool given = w->mtu;
	int ret = APP_OK;
	unsigned int i;

	w->mtu = given ? w->mtu : RTE_ETHER_MTU;
	for (i = 0; i < num && !ret && !given; i++) {
		ret = eth_port_find(ports[i], 0, &limits);
		if (!ret)
			w->mtu = RTE_MIN(w->mtu, limits.mtu);
	}
	/* For its own MTU, a memory port would request data room for 9000 bytes. */
	*room = 0;
	for (i = 0; i < num && !ret; i++) {
		ret = eth_port_find(ports[i], w->mtu, &limits);
		if (!ret)
			*room = RTE_MAX(*room, limits.room);
	}
	return ret;
}

static int make_pool(struct wire *w, unsigned int ports, uint16_t room)
{
	uint32_t rings = ports * (2 * ETH_PORT_RING + POOL_CACHE);

	w->limit = w->mbufs;
	w->mbufs += rings;
	room = eth_port_room(w->mtu, room);
	w->pool = rte_pktmbuf_pool_create("wire", w->mbufs, POOL_CACHE, 0, room, SOCKET_ID_ANY);
	if (w->pool)
		return APP_OK;
	cli_error("there is no memory for %u buffers of %u bytes: %s; give more to the EAL (-m), "
		  "or fewer with --mbufs",
		  w->mbufs, room, rte_strerror(rte_errno));
	return APP_FAIL;
}

int wire_ports_open(struct wire *w, char *const *names, unsigned int num_names)
{
	uint16_t ports[2 * WIRE_PAIRS], room = 0;
	unsigned int num, i;
	int ret;

	if (num_names > 2 * WIRE_PAIRS) {
		cli_error("weft-wire bridges %d pairs of ports at most", WIRE_PAIRS);
		return APP_USAGE;
	}
	ret = find_ports(names, num_names, ports, &num);
	if (ret)
		return ret;
	if (num < 2 || num % 2 || num > 2 * WIRE_PAIRS) {
		cli_error("ports are bridged in pairs, 1 to %d of them, but %s %u; name ports in "
			  "the EAL's arguments, before --, e.g. "
			  "--vdev=net_memif0,role=server,socket=/run/a",
			  WIRE_PAIRS, num_names ? "these are" : "there are", num);
		return APP_USAGE;
	}
	ret = choose_mtu(w, ports, num, &room);
	if (!ret)
		ret = make_pool(w, num, room);
	for (i = 0; i < num && !ret; i++) {
		w->pair[i / 2].dir[i % 2].from = ports[i];
		w->pair[i / 2].dir[!(i % 2)].to = ports[i];
		ret = eth_port_open(ports[i], w->mtu, w->pool);
		if (!ret)
			eth_port_ring_init(ports[i], &w->pair[i / 2].dir[i % 2].ring);
	}
	w->num_pairs = num / 2;
	return ret;
}

void wire_ports_stop(const struct wire *w)
{
	unsigned int i;

	for (i = 0; i < 2 * w->num_pairs; i++)
		rte_eth_dev_stop(w->pair[i / 2].dir[i % 2].from);
}

/* ---- counters ------------------------------------------------------------------------------- */

#define PORT(name, field)                                       \
	{                                                       \
		name, offsetof(struct wire_dir, counters.field) \
	}
#define LINK(name, field)                                          \
	{                                                          \
		name, offsetof(struct wire_dir, state.stats.field) \
	}

const char *const wire_dir_name[2] = {[WIRE_FORTH] = "forth", [WIRE_BACK] = "back"};

const struct wire_counter wire_counter[WIRE_COUNTERS] = {
	PORT("rx", rx_frames),
	PORT("tx", tx_frames),
	PORT("tx_bytes", tx_bytes),
	LINK("lost", lost),
	LINK("lost_in_bursts", burst_lost),
	LINK("blackout", blackholed),
	LINK("queue_full", tail_drops),
	LINK("policed", policed),
	LINK("flow_queue_full", flow_drops),
	LINK("beyond_mtu", too_long),
	LINK("marked", marked),
	LINK("duplicated", dupped),
	LINK("reordered", reordered),
	LINK("corrupted", corrupted),
	LINK("truncated", truncated),
	PORT("oversize", oversize),
	PORT("no_room", no_room),
	PORT("ring_full", ring_full),
	PORT("port_busy", port_busy),
};

/* ---- the trace ------------------------------------------------------------------------------ */

#define TRACE_FROM 3                 /* the counters before it change with each frame */
#define TRACE_TO (WIRE_COUNTERS - 2) /* no link changes ring_full and port_busy */

struct trace_before {
	uint64_t value[WIRE_COUNTERS];
};

static void read_counters(const struct wire_dir *d, struct trace_before *b)
{
	for (unsigned int i = TRACE_FROM; i < TRACE_TO; i++)
		b->value[i] = wire_counter_value(d, i);
}

static void trace_head(struct wire *w, const struct wire_dir *d, uint32_t len)
{
	struct timespec ts;
	unsigned int pair = 0;

	while (d != &w->pair[pair].dir[WIRE_FORTH] && d != &w->pair[pair].dir[WIRE_BACK])
		pair++;
	clock_gettime(CLOCK_REALTIME, &ts);
	fprintf(w->trace, "%" PRIu64 ".%09ld %u %s %u", (uint64_t)ts.tv_sec, ts.tv_nsec, pair,
		wire_dir_name[d - w->pair[pair].dir], len);
}

static void trace(struct wire *w, const struct wire_dir *d, const struct trace_before *b,
		  uint32_t len, uint64_t delay)
{
	bool found = delay != 0;
	unsigned int i;

	for (i = TRACE_FROM; i < TRACE_TO && !found; i++)
		found = wire_counter_value(d, i) != b->value[i];
	if (!found)
		return;
	trace_head(w, d, len);
	for (i = TRACE_FROM; i < TRACE_TO; i++)
		if (wire_counter_value(d, i) != b->value[i])
			fprintf(w->trace, " %s", wire_counter[i].name);
	if (delay)
		fprintf(w->trace, " delay %.3fus", (double)delay / 1e3);
	fputc('\n', w->trace);
}

int wire_trace_open(struct wire *w, const char *name)
{
	w->trace = fopen(name, "we");
	if (w->trace)
		return APP_OK;
	cli_error("%s: %s", name, strerror(errno));
	return APP_FAIL;
}

int wire_trace_close(struct wire *w, const char *name)
{
	bool failed = ferror(w->trace);

	if (!fclose(w->trace) && !failed)
		return APP_OK;
	cli_error("%s: not all lines could be written", name);
	return APP_FAIL;
}

/* ---- forwarding ----------------------------------------------------------------------------- */

#define INPUT_NS 10000000 /* least time between two checks of standard input */
#define IDLE_ROUNDS 200   /* rounds without a frame, after which the thread sleeps */

/* ---- from the port -------------------------------------------------------------------------- */

static void hold(struct wire_dir *d, struct rte_mbuf *m, uint64_t when)
{
	struct wire_held h = {{when, d->number++}, m};

	sim_heap_add(d->held, &d->num_held, &h, sizeof(h));
}

static void flip(const struct sim_link_copy *copy, struct rte_mbuf *m)
{
	sim_link_flip(copy, rte_pktmbuf_mtod(m, uint8_t *), m->data_len);
}

/* Cut, flipped and duplicated frames are copies: a PMD may share the buffer of the original. */
static void pass(struct wire *w, struct wire_dir *d, struct rte_mbuf *m,
		 const struct sim_link_copy *copy, bool last)
{
	struct rte_mbuf *out = m;

	if (!last || copy->num_flips || copy->len != m->pkt_len) {
		out = rte_pktmbuf_copy(m, w->pool, 0, copy->len);
		if (last)
			rte_pktmbuf_free(m);
		if (!out) {
			d->counters.no_room++;
			return;
		}
		flip(copy, out);
	}
	hold(d, out, copy->when);
}

static bool fits(struct wire *w, struct wire_dir *d, struct rte_mbuf *m)
{
	uint32_t l2 = sim_link_l2_len(rte_pktmbuf_mtod(m, uint8_t *), m->data_len);
	char name[RTE_ETH_NAME_MAX_LEN];

	if (m->pkt_len <= (uint32_t)w->mtu + l2 && rte_pktmbuf_linearize(m) == 0)
		return true;
	d->counters.oversize++;
	if (!d->oversize_logged)
		cli_error("%s: a frame of %u bytes is longer than --mtu %u allows; such frames "
			  "are dropped",
			  eth_port_name(d->from, name), m->pkt_len, w->mtu);
	d->oversize_logged = true;
	return false;
}

static size_t all_held(const struct wire *w)
{
	size_t sum = 0;
	unsigned int i;

	for (i = 0; i < 2 * w->num_pairs; i++)
		sum += w->pair[i / 2].dir[i % 2].num_held + w->pair[i / 2].dir[i % 2].num_out;
	return sum;
}

static bool has_room(struct wire *w, struct wire_dir *d, size_t held)
{
	char name[RTE_ETH_NAME_MAX_LEN];

	if (held < w->limit)
		return true;
	d->counters.no_room++;
	if (!d->no_room_logged)
		cli_error("%s: all %u buffers hold delayed frames, and further ones are dropped; "
			  "give more with --mbufs, or set rate and queue",
			  eth_port_name(d->from, name), w->limit);
	d->no_room_logged = true;
	return false;
}

/* @return ns at which the first copy is due; 0 = the frame was dropped */
static uint64_t carry(struct wire *w, struct wire_dir *d, struct rte_mbuf *m, uint64_t now,
		      size_t held)
{
	struct sim_link_frame f;
	struct sim_link_copy copy[2];
	uint64_t sent;
	unsigned int n, i;
	bool mark;

	if (!fits(w, d, m) || !has_room(w, d, held)) {
		rte_pktmbuf_free(m);
		return 0;
	}
	f = (struct sim_link_frame){rte_pktmbuf_mtod(m, uint8_t *), m->data_len, m->pkt_len};
	m->ol_flags = 0;
	if (sim_link_refuses(&d->link, &d->state, &f, now) ||
	    !sim_link_enqueue(&d->link, &d->state, f.len, now, &sent, &mark)) {
		rte_pktmbuf_free(m);
		return 0;
	}
	if (mark)
		sim_link_mark(&d->state, rte_pktmbuf_mtod(m, uint8_t *), m->data_len);
	n = sim_link_deliver(&d->link, &d->state, &f, sent, copy);
	for (i = 0; i < n; i++)
		pass(w, d, m, &copy[i], i + 1 == n);
	if (!n)
		rte_pktmbuf_free(m);
	return n ? copy[0].when : 0;
}

static void take(struct wire *w, struct wire_dir *d, struct rte_mbuf *m, uint64_t now, size_t held)
{
	uint32_t len = m->pkt_len;
	struct trace_before before;
	uint64_t when;

	d->counters.rx_frames++;
	if (!w->trace) {
		carry(w, d, m, now, held);
		return;
	}
	read_counters(d, &before);
	when = carry(w, d, m, now, held);
	trace(w, d, &before, len, when > now ? when - now : 0);
}

static uint16_t receive(struct wire *w, struct wire_dir *d, uint64_t now)
{
	struct rte_mbuf *pkts[WIRE_BURST];
	uint16_t n = rte_eth_rx_burst(d->from, 0, pkts, WIRE_BURST), i;
	size_t held = n ? all_held(w) : 0;

	for (i = 0; i < n; i++)
		take(w, d, pkts[i], now, held + i);
	return n;
}

/* ---- to the port ---------------------------------------------------------------------------- */

static uint16_t transmit(struct wire_dir *d, uint64_t now)
{
	uint16_t waited = d->num_out, sent, i;
	struct wire_held h;

	while (d->num_out < WIRE_BURST && d->num_held && d->held[0].due.when <= now) {
		sim_heap_take(d->held, &d->num_held, &h, sizeof(h));
		d->out[d->num_out++] = h.mbuf;
	}
	if (!d->num_out)
		return 0;
	for (i = 0; i < d->num_out; i++)
		d->counters.tx_bytes += d->out[i]->pkt_len;
	sent = rte_eth_tx_burst(d->to, 0, d->out, d->num_out);
	/* Frames without space in the port's ring stay in front of all others. */
	for (i = sent; i < d->num_out; i++) {
		d->counters.tx_bytes -= d->out[i]->pkt_len;
		d->out[i - sent] = d->out[i];
	}
	d->num_out = (uint16_t)(d->num_out - sent);
	waited = waited > sent ? (uint16_t)(waited - sent) : 0;
	d->counters.port_busy += (uint64_t)(d->num_out - waited);
	d->counters.tx_frames += sent;
	return sent;
}

/* ---- the loop ------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	static uint64_t begin;
	static double factor;

	if (!begin) {
		begin = rte_get_timer_cycles();
		factor = 1e9 / (double)rte_get_timer_hz();
	}
	/* A double is exact for 100 days of ns. The clock starts at 1 s, because 0 means never. */
	return (uint64_t)((double)(rte_get_timer_cycles() - begin) * factor) + 1000000000;
}

static uint64_t next_due(const struct wire *w)
{
	uint64_t next = UINT64_MAX;
	unsigned int i;

	for (i = 0; i < 2 * w->num_pairs; i++) {
		const struct wire_dir *d = &w->pair[i / 2].dir[i % 2];

		if (d->num_out)
			return 0;
		if (d->num_held && d->held[0].due.when < next)
			next = d->held[0].due.when;
	}
	return next;
}

static void doze(const struct wire *w, uint64_t now)
{
	uint64_t next = next_due(w), ns = w->sleep_us * 1000ull;

	if (next <= now)
		return;
	if (next - now < ns)
		ns = next - now;
	nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

/* The links have not seen the frames that the rings of the ports have lost. */
static void count_ring_losses(struct wire *w)
{
	struct wire_dir *d;
	uint64_t lost;

	rte_ticketlock_lock(&w->lock);
	for (unsigned int i = 0; i < 2 * w->num_pairs; i++) {
		d = &w->pair[i / 2].dir[i % 2];
		lost = eth_port_ring_lost(d->from, &d->ring) - d->counters.ring_full;
		d->counters.ring_full += lost;
		if (!lost || !w->trace)
			continue;
		trace_head(w, d, 0);
		fprintf(w->trace, " ring_full %" PRIu64 "\n", lost);
	}
	rte_ticketlock_unlock(&w->lock);
}

static unsigned int one_round(struct wire *w, uint64_t now)
{
	unsigned int frames = 0, i;

	rte_ticketlock_lock(&w->lock);
	for (i = 0; i < 2 * w->num_pairs; i++) {
		frames += receive(w, &w->pair[i / 2].dir[i % 2], now);
		frames += transmit(&w->pair[i / 2].dir[i % 2], now);
	}
	rte_ticketlock_unlock(&w->lock);
	return frames;
}

void wire_bridge_run(struct wire *w, void (*input)(struct wire *w))
{
	uint64_t now, look_at = 0;
	unsigned int idle = 0;

	while (!w->ended && !sys_signal()) {
		now = now_ns();
		idle = one_round(w, now) ? 0 : idle + 1;
		if (now >= look_at) {
			input(w);
			count_ring_losses(w);
			if (w->trace)
				fflush(w->trace);
			look_at = now + INPUT_NS;
		}
		if (w->sleep_us && idle > IDLE_ROUNDS)
			doze(w, now);
	}
	count_ring_losses(w);
}

/* ---- start ---------------------------------------------------------------------------------- */

int wire_bridge_init(struct wire *w)
{
	unsigned int i;

	rte_ticketlock_init(&w->lock);
	for (i = 0; i < 2 * w->num_pairs; i++) {
		struct wire_dir *d = &w->pair[i / 2].dir[i % 2];

		sim_link_init(&d->state, w->seed, i);
		d->held = calloc(w->mbufs, sizeof(*d->held));
		if (!d->held) {
			cli_error("there is no memory for %u frames under way; give fewer with "
				  "--mbufs",
				  w->mbufs);
			return APP_FAIL;
		}
	}
	return APP_OK;
}
