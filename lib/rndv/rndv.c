/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>

#include "core/worker.h"
#include "mem/mem.h"
#include "rndv/fetch.h"
#include "rndv/pull.h"
#include "rndv/rndv.h"
#include "rndv/sender.h"

/* ------------------------------------------------------------------ worker */

static int worker_init(struct weft_msg_worker *mw)
{
	struct weft_rndv_worker *rw = calloc(1, sizeof(*rw));

	if (!rw)
		return -ENOMEM;
	STAILQ_INIT(&rw->free_pulls);
	TAILQ_INIT(&rw->free_ranges);
	TAILQ_INIT(&rw->free_fetches);
	TAILQ_INIT(&rw->fetching);
	TAILQ_INIT(&rw->fetching_later);
	for (unsigned int i = 0; i < WEFT_MAX_IFACES; i++) {
		TAILQ_INIT(&rw->ports[i].line[WEFT_RNDV_IS_SHORT]);
		TAILQ_INIT(&rw->ports[i].line[WEFT_RNDV_IS_LONG]);
		TAILQ_INIT(&rw->ports[i].ranges);
	}
	weft_share_init(&rw->pulls, mw->conf.rndv_limit < WEFT_RNDV_PULLS_MIN
					    ? mw->conf.rndv_limit
					    : WEFT_RNDV_PULLS_MIN);
	mw->rndv = rw;
	return 0;
}

static void worker_fini(struct weft_msg_worker *mw)
{
	struct weft_rndv_worker *rw = mw->rndv;
	struct weft_fetch *f;
	struct weft_pull *p;
	struct weft_pull_range *a;

	if (!rw)
		return;
	while ((f = TAILQ_FIRST(&rw->free_fetches))) {
		TAILQ_REMOVE(&rw->free_fetches, f, link);
		free(f);
	}
	while ((p = STAILQ_FIRST(&rw->free_pulls))) {
		STAILQ_REMOVE_HEAD(&rw->free_pulls, link);
		free(p);
	}
	while ((a = TAILQ_FIRST(&rw->free_ranges))) {
		TAILQ_REMOVE(&rw->free_ranges, a, link);
		free(a);
	}
	free(rw);
}

static unsigned int pump(struct weft_msg_worker *mw)
{
	const struct weft_rndv_worker *rw = mw->rndv;

	if (TAILQ_EMPTY(&rw->fetching) && TAILQ_EMPTY(&rw->fetching_later) && rw->waiting == 0)
		return 0;
	return weft_rndv_pump(mw);
}

static bool busy(const struct weft_msg_worker *mw, bool *soon)
{
	/* No event reports that a peer is late. */
	if (!TAILQ_EMPTY(&mw->rndv->fetching) || mw->rndv->waiting)
		*soon = true;
	return false;
}

#define LEVELS(X)                                             \
	X(pulls->used + pulls->stalled, "rndv.outstanding",   \
	  "Bytes now that were requested and have not come.") \
	X(pulls->stalled, "rndv.outstanding_stalled",         \
	  "Bytes now that were requested and do not come: their peers are stalled.")
#define COUNTERS(X)                                                               \
	X(pulls->stalls, "rndv.peers_stalled",                                    \
	  "Times that a peer did not deliver a quarter of its requests in time.") \
	X(mw->rndv->waits, "rndv.port_waits",                                     \
	  "Times that a peer's messages waited in the queue of a port.")          \
	X(mw->rndv->lates, "rndv.port_late", "Pieces requested that did not come in time.")

/* clang-format off */
static const struct weft_lane_counter counter_help[] = {
	LEVELS(WEFT_LEVEL_HELP)
	COUNTERS(WEFT_COUNTER_HELP)
	WEFT_COUNTER_HELP_END
};
/* clang-format on */

static void counters(const struct weft_msg_worker *mw, weft_lane_counter_cb cb, void *arg)
{
	const struct weft_share *pulls = &mw->rndv->pulls;

#define REPORT(value, name, help) cb(name, value, arg);
	LEVELS(REPORT)
	COUNTERS(REPORT)
#undef REPORT
}

/* ------------------------------------------------------------------ endpoint */

static void ep_fini(struct weft_msg_ep *me)
{
	free(me->rndv);
}

static bool has_work(const struct weft_msg_ep *me)
{
	return me->rndv && (!TAILQ_EMPTY(&me->rndv->data) || me->rndv->num_pulls);
}

const struct weft_module weft_rndv_module = {
	.name = "rndv",
	.worker_init = worker_init,
	.worker_fini = worker_fini,
	.after_queues = pump,
	.busy = busy,
	.counters = counters,
	.counter_help = counter_help,
	.ep_fini = ep_fini,
	.ep_lanes = weft_rndv_ep_lanes,
	.ep_reset = weft_rndv_reset,
	.data = weft_rndv_serve,
	.has_work = has_work,
	.fail = weft_rndv_ep_fail,
	.ended = weft_rndv_ended,
};

/* ------------------------------------------------------------------ keys */

/*
 * Keys let the peer's lanes read or write the memory of one message. There is one per lane, with
 * the lane's number, which is the same at both ends. A record contains no addresses.
 */

uint32_t weft_rndv_native_lanes(const struct weft_msg_ep *me, bool put)
{
	uint32_t mask = 0;

	for (uint32_t m = me->rndv_lanes; m; m &= m - 1) {
		int i = __builtin_ctz(m);

		if (put ? me->lanes[i].max_put : me->lanes[i].max_get)
			mask |= 1u << i;
	}
	return mask;
}

size_t weft_rndv_keys_write(const struct weft_msg_ep *me, uint32_t lanes,
			    const struct weft_mem *mem, const void *buf, void *record)
{
	struct weft_wire_record *r = record;
	struct weft_wire_keys *keys = (void *)(r + 1);
	struct weft_wire_lane_key *key = (void *)(keys + 1);
	size_t length;

	for (; lanes; lanes &= lanes - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(lanes);
		struct weft_lane_iface *iface = me->lanes[i].lane_ep->iface;
		struct weft_mem_lane *ml = weft_mem_lane_of(mem, iface);

		if (!ml || !iface->driver->mem_key)
			continue;
		*key++ = (struct weft_wire_lane_key){
			.lane = (uint8_t)i,
			.key = weft_put64(iface->driver->mem_key(iface, ml)),
		};
	}
	if ((void *)key == (void *)(keys + 1))
		return 0;
	keys->offset = weft_put64((uint64_t)((const uint8_t *)buf - (const uint8_t *)mem->address));
	length = (size_t)((uint8_t *)key - (uint8_t *)keys);
	*r = (struct weft_wire_record){weft_put16(WEFT_MSG_RECORD_KEYS),
				       weft_put16((uint16_t)length)};
	return sizeof(*r) + length;
}

void weft_rndv_keys_read(struct weft_rndv_offer *offer, const void *records, size_t length)
{
	const uint8_t *p = records, *end = p + length;
	const struct weft_wire_record *r;
	const struct weft_wire_keys *keys;
	const struct weft_wire_lane_key *key;
	size_t n;

	offer->lanes = 0;
	for (; p < end; p += sizeof(*r) + weft_get16(r->length)) {
		r = (const void *)p;
		if (weft_get16(r->type) != WEFT_MSG_RECORD_KEYS)
			continue;
		keys = (const void *)(r + 1);
		key = (const void *)(keys + 1);
		offer->offset = weft_get64(keys->offset);
		n = (weft_get16(r->length) - sizeof(*keys)) / sizeof(*key);
		for (; n; n--, key++) {
			if (key->lane >= WEFT_MAX_LANES)
				continue; /* the peer's version has more lanes */
			offer->lanes |= 1u << key->lane;
			offer->key[key->lane] = weft_get64(key->key);
		}
		return;
	}
}

/* ------------------------------------------------------------------ the schedule of requests */

/*
 * An endpoint with bytes left to request is in no list while its outstanding bytes fill its lanes,
 * or its peer is stalled: the next bytes that come insert it again.
 *
 * Short messages, and the ends of long ones, precede others, in a port's queue and in an endpoint.
 * But one of WEFT_RNDV_TURNS pieces goes to the others, so that none starves. Peers that deliver
 * nothing, or next to nothing, do not occupy a port's window: a request that is late does not count
 * there, and until its data has come nothing more is requested over that lane.
 */

bool weft_rndv_wants(const struct weft_rndv *r)
{
	return !TAILQ_EMPTY(&r->fetches[WEFT_RNDV_IS_SHORT]) ||
	       !TAILQ_EMPTY(&r->fetches[WEFT_RNDV_IS_LONG]);
}

/* ------------------------------------------------------------------ bytes over one port */

#define RTT_MOST 1000000000u /* ns */

static bool is_long(const struct weft_pull_port *p)
{
	return p->trip > WEFT_PULL_SLACK_MAX;
}

static uint32_t slack_most(const struct weft_pull_port *p)
{
	uint64_t most = (uint64_t)p->trip + p->trip / 4;

	if (!is_long(p) || most <= (uint64_t)p->rtt + WEFT_PULL_SLACK_MAX)
		return WEFT_PULL_SLACK_MAX;
	return (uint32_t)(most - p->rtt);
}

static void set_window(struct weft_pull_port *p)
{
	uint32_t more = p->slack > WEFT_PULL_SLACK_MAX ? p->slack - WEFT_PULL_SLACK_MAX : 0;
	double slack = p->rate * (p->slack - more) * 1e-9;

	if (slack > WEFT_PULL_SLACK_BYTES)
		slack = WEFT_PULL_SLACK_BYTES;
	p->window = (uint64_t)(p->rate * ((double)p->rtt + more) * 1e-9 + slack) + 1;
}

static void set_slack(struct weft_pull_port *p, uint64_t slack)
{
	if (slack > slack_most(p))
		slack = slack_most(p);
	p->slack = slack < WEFT_PULL_SLACK_MIN ? WEFT_PULL_SLACK_MIN : (uint32_t)slack;
	set_window(p);
}

void weft_pull_port_init(struct weft_pull_port *p, double rate)
{
	rate = rate > 0 ? rate : 1e9;
	*p = (struct weft_pull_port){.rate = rate, .nominal = rate, .spare = true};
	set_slack(p, WEFT_PULL_SLACK_FIRST);
}

void weft_pull_port_rtt(struct weft_pull_port *p, uint32_t rtt_ns, uint32_t now_ns)
{
	bool much;

	now_ns = now_ns < RTT_MOST ? now_ns : RTT_MOST;
	if (now_ns != 0)
		p->trip = p->trip != 0 ? p->trip - p->trip / 8 + now_ns / 8 : now_ns;
	if (rtt_ns == 0 || (p->rtt != 0 && rtt_ns >= p->rtt))
		return;
	rtt_ns = rtt_ns < RTT_MOST ? rtt_ns : RTT_MOST;
	much = p->rtt == 0 || rtt_ns < p->rtt / 2;
	p->rtt = rtt_ns;
	/* The slack begins again after the first round trip, and after a much smaller least one. */
	if (much)
		set_slack(p, WEFT_PULL_SLACK_FIRST + rtt_ns / 2);
	else
		set_window(p);
}

static double rate_measured(const struct weft_pull_port *p, double rate)
{
	if (!is_long(p) || rate >= p->nominal)
		return rate;
	return 2 * rate < p->nominal ? 2 * rate : p->nominal;
}

/* In a span of @p ns less than 7/8 of the port's rate came: @p rate, bytes/s. */
static void judge_rate(struct weft_pull_port *p, double rate, uint64_t ns)
{
	if (p->slack < WEFT_PULL_SLACK_MAX || p->slack < slack_most(p) / 8 * 7) {
		p->low_ns = 0;
		p->low_rate = 0;
		return;
	}
	if (rate > p->low_rate)
		p->low_rate = rate;
	p->low_ns += ns;
	if (p->low_ns < WEFT_PULL_LOW || p->low_ns < 4ull * p->trip || p->low_rate <= 0)
		return;
	rate = rate_measured(p, p->low_rate);
	if (rate < p->rate)
		p->rate = rate;
	p->low_ns = 0;
	p->low_rate = 0;
}

/* ns that a request may take: what the window allows for, or a longer present round trip. */
static uint64_t pull_port_trip(const struct weft_pull_port *p)
{
	uint64_t allowed = (uint64_t)p->rtt + p->slack;

	return allowed > p->trip ? allowed : p->trip;
}

static void judge_round_trip(struct weft_pull_port *p, double rate, uint64_t ns)
{
	/* The path may have become longer; no path is longer than a second. */
	if (p->rtt < RTT_MOST)
		p->rtt += p->rtt >> 10;
	if (rate < p->rate / 32 * 28) {
		judge_rate(p, rate, ns);
		set_slack(p,
			  rate < p->rate / 2 ? 2ull * p->slack : (uint64_t)p->slack + p->slack / 4);
	} else if (rate > p->rate / 32 * (is_long(p) ? 29 : 30)) {
		/*
		 * From 28/32 up to this rate the slack stays. Headers take a twelfth of a frame of
		 * 1500 bytes, so such a rate may be all that the port carries.
		 */
		set_slack(p, p->slack - p->slack / 8);
	}
}

void weft_pull_port_came(struct weft_pull_port *p, uint64_t n, bool waiting, uint64_t now)
{
	uint64_t ns = now - p->at, span = 2 * pull_port_trip(p);
	double rate;

	p->came += n;
	p->spare |= !waiting;
	if (ns < WEFT_PULL_SPAN || ns < span)
		return;
	/*
	 * The rate is that of two spans. Bytes that a descheduled receiver finds in its ring did
	 * not arrive in the short time in which it polls them.
	 */
	rate = (double)(p->came + p->before_came) * 1e9 / (double)(ns + p->before_ns);
	if (p->before_ns != 0 && rate_measured(p, rate) > p->rate) {
		p->rate = rate_measured(p, rate);
		set_window(p);
	}
	if (!p->spare)
		judge_round_trip(p, (double)p->came * 1e9 / (double)ns, ns);
	p->before_ns = ns;
	p->before_came = p->came;
	p->at = now;
	p->came = 0;
	p->spare = !waiting;
}

static uint64_t pull_port_late(const struct weft_pull_port *p)
{
	return WEFT_PULL_LATE + 4 * pull_port_trip(p);
}

/* ------------------------------------------------------------------ the order of fetches */

static unsigned int first_of(uint32_t turns)
{
	return turns % WEFT_RNDV_TURNS == WEFT_RNDV_TURNS - 1 ? WEFT_RNDV_IS_LONG
							      : WEFT_RNDV_IS_SHORT;
}

struct weft_fetch *weft_rndv_next_fetch(const struct weft_rndv *r)
{
	unsigned int first = first_of(r->turns);
	struct weft_fetch *f = TAILQ_FIRST(&r->fetches[first]);

	return f ? f : TAILQ_FIRST(&r->fetches[!first]);
}

/* ------------------------------------------------------------------ lists */

void weft_rndv_unwant(struct weft_rndv *r)
{
	struct weft_rndv_worker *rw = r->me->mw->rndv;

	switch (r->fetching) {
	case WEFT_FETCHING_NOT:
		return;
	case WEFT_FETCHING:
		TAILQ_REMOVE(&rw->fetching, r, fetching_link);
		break;
	case WEFT_FETCHING_LATER:
		TAILQ_REMOVE(&rw->fetching_later, r, fetching_link);
		break;
	case WEFT_FETCHING_LINE:
		TAILQ_REMOVE(&r->line->line[r->line_size], r, fetching_link);
		r->line->waiting--;
		rw->waiting--;
		break;
	}
	r->me->mw->work--;
	r->fetching = WEFT_FETCHING_NOT;
}

void weft_rndv_want(struct weft_rndv *r)
{
	if (r->me->failed || !weft_rndv_wants(r) || r->fetching == WEFT_FETCHING ||
	    r->fetching == WEFT_FETCHING_LINE ||
	    (r->fetching == WEFT_FETCHING_LATER && r->pulls.out))
		return;
	weft_rndv_unwant(r);
	r->fetching = WEFT_FETCHING;
	r->me->mw->work++;
	TAILQ_INSERT_TAIL(&r->me->mw->rndv->fetching, r, fetching_link);
}

void weft_rndv_want_later(struct weft_rndv *r)
{
	if (r->pulls.stalled)
		return;
	r->fetching = WEFT_FETCHING_LATER;
	r->me->mw->work++;
	TAILQ_INSERT_TAIL(&r->me->mw->rndv->fetching_later, r, fetching_link);
}

void weft_rndv_want_port(struct weft_rndv *r, struct weft_rndv_port *p)
{
	struct weft_rndv_worker *rw = r->me->mw->rndv;

	weft_rndv_unwant(r);
	r->fetching = WEFT_FETCHING_LINE;
	r->line = p;
	r->line_size = TAILQ_EMPTY(&r->fetches[WEFT_RNDV_IS_SHORT]) ? WEFT_RNDV_IS_LONG
								    : WEFT_RNDV_IS_SHORT;
	TAILQ_INSERT_TAIL(&p->line[r->line_size], r, fetching_link);
	r->me->mw->work++;
	p->waiting++;
	rw->waiting++;
	rw->waits++;
}

/* ------------------------------------------------------------------ ports */

/* @return NULL: the receiving CPU moves the bytes of the lane, so no port can be overrun */
static struct weft_rndv_port *port_of(const struct weft_msg_ep *me, unsigned int lane)
{
	const struct weft_lane_iface *iface = me->lanes[lane].lane_ep->iface;
	const struct weft_worker *w = me->mw->worker;

	for (unsigned int i = 0; i < w->num_ifaces; i++)
		if (w->ifaces[i] == iface && !(iface->attr.features & WEFT_LANE_F_MEMORY))
			return &me->mw->rndv->ports[i];
	return NULL;
}

static void find_ports(struct weft_rndv *r)
{
	for (uint32_t m = r->me->lanes_up; m; m &= m - 1) {
		unsigned int lane = (unsigned int)__builtin_ctz(m);

		/* Outstanding bytes count at the port where they were requested. */
		if (r->lanes[lane].out == 0 && r->lanes[lane].late == 0)
			r->lanes[lane].port = port_of(r->me, lane);
	}
}

struct weft_rndv *weft_rndv_of(struct weft_msg_ep *me)
{
	struct weft_rndv *r = me->rndv;

	if (r)
		return r;
	if (weft_lane_loads(me) != 0)
		return NULL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->me = me;
	TAILQ_INIT(&r->data);
	TAILQ_INIT(&r->active);
	TAILQ_INIT(&r->fetches[WEFT_RNDV_IS_SHORT]);
	TAILQ_INIT(&r->fetches[WEFT_RNDV_IS_LONG]);
	for (unsigned int i = 0; i < WEFT_MAX_LANES; i++)
		STAILQ_INIT(&r->lanes[i].pulls);
	me->rndv = r;
	find_ports(r);
	weft_rndv_pull_limit(me);
	return r;
}

void weft_rndv_port_lanes(struct weft_msg_ep *me)
{
	for (uint32_t m = me->lanes_up; m; m &= m - 1) {
		unsigned int lane = (unsigned int)__builtin_ctz(m);
		struct weft_rndv_lane *l = me->rndv ? &me->rndv->lanes[lane] : NULL;
		const struct weft_lane_load *load = me->lanes[lane].load;
		uint32_t rtt = me->lanes[lane].lane_ep->rtt_ns;
		struct weft_rndv_port *p = port_of(me, lane);

		if (!p || (l && (l->out || l->late)))
			continue;
		if (p->pull.window == 0)
			weft_pull_port_init(&p->pull,
					    me->lanes[lane].lane_ep->iface->attr.bandwidth);
		weft_pull_port_rtt(&p->pull, load ? load[WEFT_DIR_RX].min_rtt_ns : rtt, rtt);
	}
	if (me->rndv)
		find_ports(me->rndv);
}

bool weft_rndv_port_shared(const struct weft_rndv *r, unsigned int lane)
{
	const struct weft_rndv_lane *l = &r->lanes[lane];

	return l->port &&
	       (l->port->waiting || r->turn == l->port || l->port->pull.users > (l->out ? 1u : 0u));
}

bool weft_rndv_port_full(const struct weft_rndv *r, unsigned int lane)
{
	const struct weft_rndv_lane *l = &r->lanes[lane];

	if (!weft_rndv_port_shared(r, lane))
		return false;
	/* Endpoints that do not wait must not overtake those in the queue. */
	return (r->turn != l->port && l->port->waiting) ||
	       !weft_pull_port_room(&l->port->pull, l->out == 0);
}

void weft_rndv_port_requested(struct weft_rndv *r, struct weft_pull_range *a)
{
	struct weft_rndv_lane *l = &r->lanes[a->lane];

	a->port = l->port;
	if (!a->port)
		return;
	weft_pull_port_rtt(&a->port->pull, r->me->lanes[a->lane].load[WEFT_DIR_RX].min_rtt_ns,
			   r->me->lanes[a->lane].lane_ep->rtt_ns);
	weft_pull_port_take(&a->port->pull, a->left, l->out == 0);
	l->out += a->left;
	TAILQ_INSERT_TAIL(&a->port->ranges, a, port_link);
}

static void range_late(struct weft_rndv *r, struct weft_pull_range *a)
{
	struct weft_rndv_lane *l = &r->lanes[a->lane];

	TAILQ_REMOVE(&a->port->ranges, a, port_link);
	l->out -= a->left;
	weft_pull_port_done(&a->port->pull, a->left, l->out == 0);
	l->late++;
	a->late = true;
	r->me->mw->rndv->lates++;
}

void weft_rndv_port_came(struct weft_rndv *r, struct weft_pull_range *a, uint64_t bytes, bool good)
{
	struct weft_rndv_lane *l = &r->lanes[a->lane];

	if (!a->port)
		return;
	if (good)
		weft_pull_port_came(&a->port->pull, bytes, a->port->waiting,
				    r->me->mw->worker->now);
	/* Single bytes do not make a late request count again. */
	if (a->late) {
		if (bytes == a->left) {
			a->late = false;
			l->late--;
		}
		return;
	}
	l->out -= bytes;
	weft_pull_port_done(&a->port->pull, bytes, l->out == 0);
	if (bytes == a->left)
		TAILQ_REMOVE(&a->port->ranges, a, port_link);
}

/* The port is full, and endpoints wait. */
static void find_late(struct weft_rndv_port *p, uint64_t now)
{
	uint64_t most = pull_port_late(&p->pull);
	struct weft_pull_range *a;

	weft_pull_port_came(&p->pull, 0, true, now);
	for (unsigned int n = 0; n < WEFT_RNDV_TURNS && (a = TAILQ_FIRST(&p->ranges)); n++) {
		struct weft_rndv *r = a->fetch->me->rndv;
		uint64_t moved = r->me->lanes[a->lane].load[WEFT_DIR_RX].moved;

		if (now - a->given < most)
			return;
		if (now - moved >= most || now - a->given >= most + WEFT_SHARE_STALL) {
			range_late(r, a);
			continue;
		}
		TAILQ_REMOVE(&p->ranges, a, port_link);
		TAILQ_INSERT_TAIL(&p->ranges, a, port_link);
	}
}

/* ------------------------------------------------------------------ the next endpoint */

static bool idle_at(const struct weft_rndv *r, const struct weft_rndv_port *p)
{
	for (uint32_t m = r->me->rndv_lanes; m; m &= m - 1) {
		const struct weft_rndv_lane *l = &r->lanes[__builtin_ctz(m)];

		if (l->port == p && l->out == 0 && l->late == 0)
			return true;
	}
	return false;
}

static struct weft_rndv *next_in_line(struct weft_msg_worker *mw, struct weft_rndv_port *p)
{
	unsigned int first = first_of(p->turns);
	struct weft_rndv *r = TAILQ_FIRST(&p->line[first]);

	if (!r)
		r = TAILQ_FIRST(&p->line[!first]);
	if (!r)
		return NULL;
	if (!weft_pull_port_room(&p->pull, idle_at(r, p))) {
		find_late(p, mw->worker->now);
		if (!weft_pull_port_room(&p->pull, idle_at(r, p)))
			return NULL;
	}
	p->turns++;
	r->turn = p;
	return r;
}

struct weft_rndv *weft_rndv_next(struct weft_msg_worker *mw, const struct weft_rndv *stuck)
{
	struct weft_rndv_worker *rw = mw->rndv;
	struct weft_rndv *r = TAILQ_FIRST(&rw->fetching);

	if (r && r != stuck)
		return r;
	for (unsigned int i = 0; rw->waiting && i < mw->worker->num_ifaces; i++) {
		r = rw->ports[i].waiting ? next_in_line(mw, &rw->ports[i]) : NULL;
		if (r)
			return r;
	}
	r = TAILQ_FIRST(&rw->fetching_later);
	return r && weft_share_free(&rw->pulls, mw->worker->now) ? r : NULL;
}
