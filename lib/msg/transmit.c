/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends pieces of messages: over which lane, by which call, at which length, and from which memory.
 * Control messages are sent whole.
 */

#include <errno.h>
#include <stdlib.h>

#include "core/lane_show.h"
#include "mem/mem.h"
#include "msg/endpoint.h"
#include "msg/credit.h"
#include "msg/send.h"
#include "msg/transmit.h"

struct pack_arg {
	const void *hdr;
	size_t hdr_len;
	struct weft_dt *dt;
	size_t off, len;
	int err; /* error of the user's pack callback; 0 = none */
};

static ssize_t pack_piece(void *dst, size_t max, void *arg)
{
	struct pack_arg *p = arg;

	if (max < p->hdr_len + p->len)
		return -EMSGSIZE;
	memcpy(dst, p->hdr, p->hdr_len);
	if (p->len)
		p->err = weft_dt_pack(p->dt, p->off, (uint8_t *)dst + p->hdr_len, p->len);
	return p->err ? p->err : (ssize_t)(p->hdr_len + p->len);
}

static void zcopy_done(struct weft_lane_comp *comp, int status)
{
	struct weft_request *req = container_of(comp, struct weft_request, send.comp);

	req->send.zcopies--;
	if (status && req->status == WEFT_INPROGRESS)
		req->status = weft_lane_status(req->me, status);
	req->ops->check(req);
}

int weft_tx_flush_lane(struct weft_request *req, struct weft_lane_ep *lane_ep)
{
	int rc;

	req->send.comp.done = zcopy_done;
	req->send.zcopies++;
	rc = lane_ep->ops->ep_flush(lane_ep, &req->send.comp);
	if (rc == 0)
		return 0;
	req->send.zcopies--;
	if (rc == -EAGAIN)
		return rc;
	if (rc < 0 && req->status == WEFT_INPROGRESS)
		req->status = weft_lane_status(req->me, rc);
	return 0;
}

/* The longest zcopy message of this request on the lane; 0 = the lane must copy it. */
static size_t zcopy_max(const struct weft_request *req, const struct weft_msg_lane *l,
			size_t hdr_len)
{
	if (!l->max_zcopy || hdr_len > l->max_zcopy_hdr || req->dt.dt_class == WEFT_DT_GENERIC ||
	    (req->flags & WEFT_REQ_INJECT) || req->length < l->min_zcopy)
		return 0;
	if (!l->zcopy_any &&
	    (!req->send.mem || !weft_mem_lane_of(req->send.mem, l->lane_ep->iface)))
		return 0;
	return l->max_zcopy;
}

/* The length from which user memory is sent: rendezvous data always, unless WEFT_ZCOPY is off. */
static size_t zcopy_from(const struct weft_request *req)
{
	if (req->flags & WEFT_REQ_RNDV)
		return req->mw->conf.zcopy ? 0 : SIZE_MAX;
	return req->me->zcopy_from;
}

size_t weft_tx_piece_max(const struct weft_request *req, unsigned int lane, size_t hdr_len)
{
	const struct weft_msg_lane *l = &req->me->lanes[lane];
	size_t max = l->max_bcopy > l->max_short ? l->max_bcopy : l->max_short;

	/*
	 * Below the threshold, zcopy is for messages that no copying call takes, and for
	 * rendezvous. Whether an iov fits into the lane's is not known here.
	 */
	if (req->dt.dt_class == WEFT_DT_CONTIG &&
	    (req->length >= zcopy_from(req) || hdr_len + req->length > max)) {
		size_t z = zcopy_max(req, l, hdr_len);

		if (z > max)
			max = z;
	}
	return max > hdr_len ? max - hdr_len : 0;
}

static int piece_zcopy(struct weft_request *req, const struct weft_msg_lane *l, uint8_t id,
		       const void *hdr, size_t hdr_len, size_t off, size_t len)
{
	struct iovec iov[32];
	unsigned int n = weft_dt_iov(&req->dt, off, len, iov, l->max_iov < 32 ? l->max_iov : 32);
	struct weft_mem_lane *mem =
		req->send.mem ? weft_mem_lane_of(req->send.mem, l->lane_ep->iface) : NULL;
	int rc;

	if (n == 0)
		return -E2BIG;
	req->send.comp.done = zcopy_done;
	req->send.zcopies++;
	rc = weft_lane_zcopy(l->lane_ep, id, hdr, hdr_len, iov, n, mem, &req->send.comp);
	if (rc)
		req->send.zcopies--;
	return rc;
}

static int piece_bcopy(struct weft_request *req, const struct weft_msg_lane *l, uint8_t id,
		       const void *hdr, size_t hdr_len, size_t off, size_t len, int *err)
{
	struct pack_arg arg = {hdr, hdr_len, &req->dt, off, len, 0};
	uint8_t buf[4096];
	ssize_t rc;

	if (hdr_len + len <= l->max_bcopy) {
		rc = weft_lane_bcopy(l->lane_ep, id, pack_piece, &arg);
		*err = arg.err;
		return rc < 0 ? (int)rc : 0;
	}
	/* This lane has short messages only. */
	rc = pack_piece(buf, sizeof(buf), &arg);
	*err = arg.err;
	if (rc < 0)
		return (int)rc;
	return weft_lane_short(l->lane_ep, id, buf, hdr_len, buf + hdr_len, len);
}

/*
 * A short whole message that leaves room for another one in its frame is copied. A frame with user
 * memory is not shared, and a second frame costs more than the copy.
 */
static bool shares_its_frame(const struct weft_request *req, const struct weft_msg_lane *l,
			     size_t whole, size_t len)
{
	return len == req->length && whole <= l->max_bcopy / 2 && !(req->flags & WEFT_REQ_RNDV) &&
	       req->mw->conf.model.zcopy_thresh == WEFT_CONF_AUTO;
}

int weft_tx_piece(struct weft_request *req, unsigned int lane, uint8_t id, const void *hdr,
		  size_t hdr_len, size_t off, size_t len)
{
	struct weft_msg_lane *l = &req->me->lanes[lane];
	struct weft_ep_lane_info *count = &req->me->ep->lane_info[lane];
	size_t whole = hdr_len + len;
	int err = 0, rc = -E2BIG;

	/* Short last pieces are copied, unless only zcopy takes them. */
	if ((len >= zcopy_from(req) || (whole > l->max_bcopy && whole > l->max_short)) &&
	    whole <= zcopy_max(req, l, hdr_len) && !shares_its_frame(req, l, whole, len))
		rc = piece_zcopy(req, l, id, hdr, hdr_len, off, len);
	if (rc == -E2BIG) {
		if (req->dt.dt_class == WEFT_DT_CONTIG && whole <= l->max_short)
			rc = weft_lane_short(l->lane_ep, id, hdr, hdr_len, req->dt.buf + off, len);
		else
			rc = piece_bcopy(req, l, id, hdr, hdr_len, off, len, &err);
		if (rc == 0)
			req->mw->count.copied_bytes += len;
	}
	if (rc == 0) {
		l->sent += whole;
		count->tx_msgs++;
		count->tx_bytes += len;
		return 0;
	}
	/* A failed lane reports this by an event; until then it appears full. */
	return err ? err : -EAGAIN;
}

size_t weft_tx_cut(const struct weft_msg_ep *me, size_t off, size_t rest, size_t max, size_t align)
{
	size_t min = me->mw->conf.min_chunk, len = max, end;

	if (rest <= max)
		return rest;
	/* A last piece smaller than a chunk is not worth a message: make two equal pieces. */
	if (rest - max < min && rest / 2 >= min)
		len = rest - rest / 2;
	end = (off + len) / align * align;
	return end > off && end - off >= min ? end - off : len;
}

/* ------------------------------------------------------------------ control messages */

/* Messages without payload are sent now, or stored until a lane has room. They have no order. */

struct small_arg {
	const void *data;
	size_t length;
};

static ssize_t pack_small(void *dst, size_t max, void *arg)
{
	const struct small_arg *s = arg;

	if (max < s->length)
		return -EMSGSIZE;
	memcpy(dst, s->data, s->length);
	return (ssize_t)s->length;
}

static int send_small_on(struct weft_msg_lane *l, uint8_t id, const void *data, size_t length)
{
	struct small_arg arg = {data, length};

	if (length <= l->max_short)
		return weft_lane_short(l->lane_ep, id, data, length, NULL, 0);
	return weft_lane_bcopy(l->lane_ep, id, pack_small, &arg) < 0 ? -EAGAIN : 0;
}

int weft_tx_envelope(struct weft_msg_ep *me, unsigned int lane, uint8_t id, const void *data,
		     size_t length)
{
	if (send_small_on(&me->lanes[lane], id, data, length))
		return -EAGAIN;
	me->ep->lane_info[lane].tx_msgs++;
	return 0;
}

int weft_tx_envelope_any(struct weft_msg_ep *me, uint8_t id, const void *data, size_t length)
{
	uint32_t rest;
	int rc;

	if (!me->up)
		return -EAGAIN;
	rc = weft_tx_envelope(me, me->am_lane, id, data, length);
	for (rest = me->lanes_up & ~(1u << me->am_lane); rc && rest; rest &= rest - 1)
		rc = weft_tx_envelope(me, (unsigned int)__builtin_ctz(rest), id, data, length);
	return rc;
}

static int ctl_send(struct weft_msg_ep *me, int lane, uint8_t id, const void *data, size_t length)
{
	if (lane == WEFT_TX_ANY_LANE || !me->up || !(me->lanes_up & 1u << lane) ||
	    (length > me->lanes[lane].max_short && length > me->lanes[lane].max_bcopy))
		return weft_tx_envelope_any(me, id, data, length);
	return weft_tx_envelope(me, (unsigned int)lane, id, data, length);
}

void weft_tx_ctl_on(struct weft_msg_ep *me, int lane, uint8_t id, const void *data, size_t length)
{
	struct weft_ctl *ctl;

	if (me->failed || !me->ep)
		return;
	if (STAILQ_EMPTY(&me->ctl) && ctl_send(me, lane, id, data, length) == 0)
		return;
	ctl = malloc(sizeof(*ctl) + length);
	if (!ctl) {
		/* The peer would wait forever: fail the endpoint, which both ends detect. */
		weft_msg_fail_later(me, -ENOMEM, "no memory for a control message");
		return;
	}
	ctl->id = id;
	ctl->lane = (int8_t)lane;
	ctl->length = (uint16_t)length;
	memcpy(ctl->data, data, length);
	STAILQ_INSERT_TAIL(&me->ctl, ctl, link);
	me->num_ctl++;
	weft_tx_kick(me);
}

void weft_tx_ctl(struct weft_msg_ep *me, uint8_t id, const void *data, size_t length)
{
	weft_tx_ctl_on(me, WEFT_TX_ANY_LANE, id, data, length);
}

unsigned int weft_tx_serve_ctl(struct weft_msg_ep *me)
{
	STAILQ_HEAD(, weft_ctl) later = STAILQ_HEAD_INITIALIZER(later);
	struct weft_ctl *ctl;
	uint32_t full = 0;
	unsigned int n = 0;
	bool all_full = false;

	/* A message that waits for its lane does not block the others. */
	while ((ctl = STAILQ_FIRST(&me->ctl))) {
		uint32_t lane = ctl->lane == WEFT_TX_ANY_LANE ? 0 : 1u << ctl->lane;
		bool sent = !(full & lane) &&
			    ctl_send(me, ctl->lane, ctl->id, ctl->data, ctl->length) == 0;

		all_full = !sent && !lane;
		if (all_full)
			break;
		STAILQ_REMOVE_HEAD(&me->ctl, link);
		full |= sent ? 0 : lane;
		n += sent;
		me->num_ctl -= sent;
		if (sent)
			free(ctl);
		else
			STAILQ_INSERT_TAIL(&later, ctl, link);
	}
	STAILQ_CONCAT(&later, &me->ctl);
	STAILQ_CONCAT(&me->ctl, &later);
	/* A message that waits for a particular lane does not block credit. */
	if (me->credit_due && !all_full)
		weft_credit_send(me);
	return n;
}

void weft_tx_drop_ctl(struct weft_msg_ep *me)
{
	struct weft_ctl *ctl;

	while ((ctl = STAILQ_FIRST(&me->ctl))) {
		STAILQ_REMOVE_HEAD(&me->ctl, link);
		free(ctl);
	}
	me->num_ctl = 0;
}

/* ------------------------------------------------------------------ load of a lane */

#define WINDOW_MIN (64u << 10)
#define SLACK_MAX (1u << 20) /* bytes: more for a fast lane on a short path only fills caches */

void weft_load_init(struct weft_lane_load *l, float per_byte, float latency)
{
	uint64_t out = l->out;

	*l = (struct weft_lane_load){.out = out, .per_byte = per_byte, .latency = latency};
	weft_rate_init(&l->rate, 1 / (double)per_byte);
	if (out)
		weft_rate_start(&l->rate);
}

/*
 * With jitter, or behind the queue of other flows, requests take longer than the least round trip,
 * whatever the window is. A window for the least one would carry less, the measured rate would
 * fall, and the window with it. The slack covers shorter round trips.
 */
static uint32_t trip_of(uint32_t least_ns, uint32_t rtt_ns)
{
	return rtt_ns > (uint32_t)(WEFT_LOAD_SLACK * 1e9) && rtt_ns > least_ns ? rtt_ns : least_ns;
}

void weft_load_set_window(struct weft_lane_load *l, uint32_t rtt_ns, uint64_t max, uint64_t now)
{
	double window, rate, slack;

	if (rtt_ns && (!l->min_rtt_ns || rtt_ns < l->min_rtt_ns))
		l->min_rtt_ns = rtt_ns;
	else
		l->min_rtt_ns += l->min_rtt_ns >> 10; /* the path's round trip may have grown */
	l->trip_ns = trip_of(l->min_rtt_ns, rtt_ns);
	rate = weft_rate_get(&l->rate, now);
	slack = rate * WEFT_LOAD_SLACK;
	if (slack > SLACK_MAX)
		slack = SLACK_MAX;
	window = rate * (1e-9 * ((double)l->min_rtt_ns + l->trip_ns) + 2 * (double)l->latency) +
		 slack;
	/* A floating-point comparison: the peer's numbers may be larger than any integer. */
	if (window >= (double)max)
		l->window = max;
	else
		l->window = window < WINDOW_MIN ? WINDOW_MIN : (uint64_t)window;
}

/* Update per_byte. A rate that no completion confirms returns slowly to the nominal rate. */
static void load_refresh(struct weft_lane_load *l, uint64_t now)
{
	l->per_byte = (float)(1 / weft_rate_get(&l->rate, now));
}

/* Bytes that were done sooner after they were given did not wait for others. */
static uint64_t round_trip(const struct weft_lane_load *l)
{
	if (l->trip_ns > l->min_rtt_ns) /* a mean: single trips are longer */
		return l->trip_ns + l->trip_ns / 4;
	return l->min_rtt_ns ? l->min_rtt_ns : (uint64_t)(2e9f * l->latency);
}

bool weft_load_done(struct weft_lane_load *l, uint64_t bytes, bool good, uint64_t given,
		    uint64_t now)
{
	bool changed = false;

	if (given != l->since && given + round_trip(l) > l->moved)
		weft_rate_limited(&l->rate);
	l->out -= bytes;
	l->moved = now;
	if (good)
		changed = weft_rate_add(&l->rate, bytes, now);
	if (l->out == 0 && !l->full)
		changed |= weft_rate_pause(&l->rate, now);
	if (changed)
		load_refresh(l, now);
	return changed;
}

/* ------------------------------------------------------------------ which lane */

#define NEVER 1e30f
#define PART_MAX (256u << 10)

static float time_of(const struct weft_msg_ep *me, unsigned int lane, const struct weft_pick *p,
		     uint64_t now)
{
	const struct weft_msg_lane *l = &me->lanes[lane];

	return weft_load_time(&l->load[p->dir], p->dir == WEFT_DIR_TX ? l->lane_ep->queued : 0,
			      p->len, now);
}

/* The lane of @p lanes that is done first; of equal ones the next behind the last one used. */
static int soonest_lane(const struct weft_msg_ep *me, uint32_t lanes, const struct weft_pick *p,
			uint64_t now, float *time)
{
	uint32_t behind = lanes & ~((2u << me->last_lane[p->dir]) - 1);
	uint32_t parts[2] = {behind, lanes & ~behind};
	int best = -1;

	*time = NEVER;
	for (int k = 0; k < 2; k++) {
		for (uint32_t m = parts[k]; m; m &= m - 1) {
			unsigned int i = (unsigned int)__builtin_ctz(m);
			float t = time_of(me, i, p, now);

			if (t < *time) {
				best = (int)i;
				*time = t;
			}
		}
	}
	return best;
}

/* Seconds until the lanes except @p lane could finish everything that is left. */
static float seconds_without(const struct weft_msg_ep *me, int lane, const struct weft_pick *p,
			     uint64_t now)
{
	float rates = 0, bytes = (float)p->left, stall = NEVER;

	for (uint32_t m = p->lanes & ~(1u << lane); m; m &= m - 1) {
		const struct weft_msg_lane *l = &me->lanes[__builtin_ctz(m)];
		const struct weft_lane_load *load = &l->load[p->dir];
		float late = weft_load_stall(load, now);

		rates += 1 / load->per_byte;
		bytes += (float)load->out;
		if (p->dir == WEFT_DIR_TX)
			bytes += (float)l->lane_ep->queued;
		if (late < stall)
			stall = late;
	}
	return bytes / rates + stall;
}

/* A lane that was too slow to get pieces is tried again: after WEFT_RATE_STALE its rate drifts. */
static void retry_slow_lanes(struct weft_msg_ep *me, const struct weft_pick *p, uint64_t now)
{
	for (uint32_t m = p->lanes; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		struct weft_lane_load *load = &me->lanes[i].load[p->dir];

		if (!load->rate.seen || now - load->rate.seen <= WEFT_RATE_STALE)
			continue;
		load_refresh(load, now);
		weft_lane_rated(me, i, p->dir);
	}
}

int weft_stripe_pick_of(struct weft_msg_ep *me, const struct weft_pick *p)
{
	uint64_t now = me->mw->worker->now;
	float time, full;
	int lane;

	retry_slow_lanes(me, p, now);
	lane = soonest_lane(me, p->lanes & ~p->full, p, now, &time);
	if (lane < 0 || !p->full)
		return lane;
	soonest_lane(me, p->full, p, now, &full);
	/* A tolerance: rates are not exact, and a lane that stalls must not stop the others. */
	if (time <= full * 1.25f + 50e-6f || time <= seconds_without(me, lane, p, now))
		return lane;
	return -1;
}

uint64_t weft_stripe_part(const struct weft_msg_ep *me, uint32_t lanes, enum weft_dir dir,
			  unsigned int lane, uint64_t left)
{
	const struct weft_lane_load *l = &me->lanes[lane].load[dir];
	uint64_t min = me->mw->conf.rndv_min_piece, len = l->window / 4;
	float rates = 0, part;

	for (uint32_t m = lanes; m; m &= m - 1)
		rates += 1 / me->lanes[__builtin_ctz(m)].load[dir].per_byte;
	part = (float)left / (rates * l->per_byte);
	if (len > PART_MAX)
		len = PART_MAX;
	if ((float)len > part)
		len = (uint64_t)part + 1;
	return len < min ? min : len;
}

/* ------------------------------------------------------------------ how fast they are */

void weft_lane_rated(struct weft_msg_ep *me, unsigned int lane, enum weft_dir dir)
{
	struct weft_msg_lane *l = &me->lanes[lane];

	if (me->up && l->load && (me->lanes_up & 1u << lane))
		weft_load_set_window(&l->load[dir], l->lane_ep->rtt_ns, me->mw->conf.rndv_window,
				     me->mw->worker->now);
}

void weft_stripe_full(struct weft_msg_ep *me, unsigned int lane)
{
	struct weft_msg_lane *l = &me->lanes[lane];
	struct weft_lane_load *load;

	weft_lane_took(l, true);
	if (!l->load || l->load[WEFT_DIR_TX].full || !l->lane_ep->queued)
		return;
	load = &l->load[WEFT_DIR_TX];
	load->full = true;
	me->tx_full |= (uint16_t)(1u << lane);
	l->sent = 0;
	l->queued_seen = l->lane_ep->queued;
	weft_rate_start(&load->rate);
}

/* Measure the bytes acknowledged since the last measurement: sent, and not in flight any more. */
static void measure_lane(struct weft_msg_ep *me, unsigned int lane, uint64_t now)
{
	struct weft_msg_lane *l = &me->lanes[lane];
	int64_t acked = (int64_t)(l->sent + l->queued_seen) - (int64_t)l->lane_ep->queued;

	if (acked <= 0)
		return;
	l->sent = 0;
	l->queued_seen = l->lane_ep->queued;
	if (!weft_rate_add(&l->load[WEFT_DIR_TX].rate, (uint64_t)acked, now))
		return;
	load_refresh(&l->load[WEFT_DIR_TX], now);
	weft_lane_rated(me, lane, WEFT_DIR_TX);
}

void weft_stripe_measure(struct weft_msg_ep *me)
{
	uint64_t now = me->mw->worker->now;

	for (uint32_t m = me->tx_full; m; m &= m - 1)
		measure_lane(me, (unsigned int)__builtin_ctz(m), now);
}

void weft_stripe_measure_end(struct weft_msg_ep *me)
{
	for (uint32_t m = me->tx_full; m; m &= m - 1) {
		struct weft_lane_load *load = &me->lanes[__builtin_ctz(m)].load[WEFT_DIR_TX];

		load->full = false;
		if (load->out)
			weft_rate_limited(&load->rate);
		else
			weft_rate_stop(&load->rate, me->mw->worker->now);
	}
	me->tx_full = 0;
}

/* ------------------------------------------------------------------ native operations */

struct weft_native *weft_native_new(struct weft_request *req, unsigned int lane, enum weft_dir dir)
{
	struct weft_native *n = SLIST_FIRST(&req->mw->free_natives);

	if (!req->me->lanes->load && weft_lane_loads(req->me) != 0)
		return NULL;
	if (__builtin_expect(n != NULL, 1))
		SLIST_REMOVE_HEAD(&req->mw->free_natives, link);
	else if (!(n = malloc(sizeof(*n))))
		return NULL;
	n->req = req;
	n->lane = (uint8_t)lane;
	n->dir = (uint8_t)dir;
	return n;
}

void weft_native_fini(struct weft_msg_worker *mw)
{
	struct weft_native *n;

	while ((n = SLIST_FIRST(&mw->free_natives))) {
		SLIST_REMOVE_HEAD(&mw->free_natives, link);
		free(n);
	}
}

void weft_native_drop(struct weft_native *n)
{
	SLIST_INSERT_HEAD(&n->req->mw->free_natives, n, link);
}

void weft_native_given(struct weft_native *n, size_t offset, size_t length)
{
	struct weft_msg_ep *me = n->req->me;

	n->offset = offset;
	n->length = length;
	n->given = me->mw->worker->now;
	n->req->send.zcopies++;
	weft_load_give(&me->lanes[n->lane].load[n->dir], length, n->given);
}

void weft_native_over(struct weft_native *n, int status)
{
	struct weft_msg_ep *me = n->req->me;
	struct weft_msg_lane *l = &me->lanes[n->lane];

	n->req->send.zcopies--;
	/*
	 * Messages that share the lane are not counted here, so the rate is a lower bound. (The
	 * lane_ep of a lane that is down may be freed already.)
	 */
	if (n->dir == WEFT_DIR_TX && me->up && (me->lanes_up & 1u << n->lane) && l->lane_ep->queued)
		weft_rate_limited(&l->load[WEFT_DIR_TX].rate);
	if (weft_load_done(&l->load[n->dir], n->length, status == 0, n->given, me->mw->worker->now))
		weft_lane_rated(me, n->lane, (enum weft_dir)n->dir);
	weft_native_drop(n);
}
