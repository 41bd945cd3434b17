/* SPDX-License-Identifier: BSD-3-Clause */

#include <math.h>
#include <stdlib.h>

#include "drivers/dpdk/frame/frame.h"
#include "dump/delay.h"
#include "dump/fate.h"
#include "dump/host.h"
#include "dump/plot.h"
#include "dump/trace.h"

/* ---- the fate of each frame ----------------------------------------------------------------- */

/*
 * The fate of each frame: the search for it at its receiver. Type, path, order, time stamp and
 * sequences together identify a transmission within its flow. Transmissions without a result yet
 * are in a ring, in the order in which they were seen first.
 */

#define END_NS 5000000u /* ns; frames sent this close to the captures' end may still arrive */
#define ARRIVAL_NS 100000u
#define BUCKETS (2u * TRACE_PENDING)
#define RING_LEAST 64u /* frames of the smallest usual ring of a port */
#define NEAR 32u       /* entries of a bucket; further ones are in the bucket of their id */

struct pending {
	uint64_t id;
	uint64_t out, in; /* times of sending and arrival; 0 = not seen */
	uint64_t absent;  /* the frame came after this time, as a poll shows; 0 = not known */
	uint64_t within;  /* the frame left at most this after `out`, ns */
	uint32_t flow, len, crc, next, order, bucket;
	struct trace_port at;    /* interface at which it came first */
	uint16_t port;           /* UDP port of the receiver */
	uint8_t path, outs, ins; /* outs, ins: times seen; equal probes are one entry */
	bool repeated;           /* DATA came twice at `at`: the network has duplicated it */
	bool data, bye, changed, whole, late, far;
	bool acked; /* its receiver has acknowledged it, and it was sent only once */
};

struct trace_pending {
	uint64_t head, tail; /* numbers of entries; the ring has those from tail to head */
	uint32_t num_far;    /* entries in the bucket of their id, as bucket_of() was full */
	struct pending entry[TRACE_PENDING];
	uint32_t bucket[BUCKETS];
};

struct trace_pending *trace_pending_make(void)
{
	struct trace_pending *p = calloc(1, sizeof(*p));
	unsigned int i;

	for (i = 0; p && i < BUCKETS; i++)
		p->bucket[i] = TRACE_NONE;
	return p;
}

void trace_pending_free(struct trace_pending *p)
{
	free(p);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static uint64_t id_of(uint32_t flow, const struct dump_view *v, uint32_t len)
{
	const struct weft_frame_hdr *h = v->hdr;
	uint64_t id = mix(flow, (uint64_t)weft_get32(h->seq) << 32 | weft_get32(h->order));

	id = mix(id, (uint64_t)weft_get32(h->ts) << 32 | weft_get32(h->ack));
	id = mix(id, (uint64_t)weft_get32(h->ts_echo) << 16 | weft_get16(h->ts_hold));
	return mix(id, (uint64_t)len << 16 | h->type << 8 | h->path);
}

/*
 * Frames that follow each other in a flow are in neighbouring buckets, which are in the cache. A
 * random bucket would cost a cache miss, which takes longer than all other work on a frame.
 * Frames with equal seq and ack are spread by their time stamps. A crafted capture can fill a
 * bucket, and so can a flow in which only time stamps change: from the 33rd entry on, entries go to
 * the bucket of their id.
 */
static uint32_t bucket_of(uint32_t flow, const struct dump_view *v)
{
	const struct weft_frame_hdr *h = v->hdr;
	uint64_t stamps = mix(weft_get32(h->ts), weft_get32(h->ts_echo));

	return (uint32_t)(mix(flow, 1) >> 32) + weft_get32(h->seq) + weft_get32(h->ack) +
	       (uint32_t)(stamps >> 60);
}

static struct pending *look(struct trace_pending *p, uint64_t id, uint32_t bucket, uint32_t *steps)
{
	uint32_t at;

	for (at = p->bucket[bucket % BUCKETS]; at != TRACE_NONE; at = p->entry[at].next) {
		if (p->entry[at].id == id)
			return &p->entry[at];
		++*steps;
	}
	return NULL;
}

static uint32_t far_bucket(uint64_t id)
{
	return dump_hash(id, 0);
}

/* @param[out] full  the bucket is full, so a new entry goes to the bucket of its id */
static struct pending *find(struct trace_pending *p, uint64_t id, uint32_t bucket, bool *full)
{
	uint32_t steps = 0, more = 0;
	struct pending *e = look(p, id, bucket, &steps);

	*full = steps >= NEAR;
	return e || !p->num_far ? e : look(p, id, far_bucket(id), &more);
}

/* ---- judgement ------------------------------------------------------------------------------ */

/* Least durations of a run of lost frames that is a hole. */
#define HOLE_NS 2500000u  /* ns, of a run that the captures end; retransmissions take less */
#define LONG_NS 10000000u /* ns, of a run that a frame ends that came */

static bool is_hole(const struct trace_run *r, bool open)
{
	return r->count >= TRACE_HOLE_FRAMES && r->to - r->from >= (open ? HOLE_NS : LONG_NS);
}

void trace_run_end(struct trace_flow *f, bool open)
{
	if (is_hole(&f->run, open)) {
		f->holes++;
		f->hole_lost += f->run.count;
		f->hole_ns += f->run.to - f->run.from;
	}
	if (!open)
		f->run.count = 0;
}

static void sample(struct trace_flow *f, const struct pending *e, uint32_t load)
{
	unsigned int i;

	if (f->skip++ % f->stride)
		return;
	if (f->num_came == TRACE_SAMPLES) { /* from now on keep every second one */
		for (i = 0; i < TRACE_SAMPLES / 2; i++)
			f->came[i] = f->came[2 * i];
		f->num_came = TRACE_SAMPLES / 2;
		f->stride *= 2;
	}
	f->came[f->num_came++] =
		(struct trace_sample){e->out, (int64_t)(e->in - e->out), e->len, load};
}

/* The silence of the receiver at the time when the frame could be there, or NULL. */
static const struct trace_gap *silence_of(const struct trace *t, const struct trace_flow *f,
					  uint64_t out)
{
	uint64_t delay =
		f->min_delay > 0 && f->min_delay < TRACE_WAIT_NS ? (uint64_t)f->min_delay : 0;

	return trace_host_gap(&t->host[f->in.file], out + delay);
}

static struct trace_poll *poll_of(const struct trace *t, const struct trace_flow *f)
{
	return trace_poll_of(t, &f->in);
}

/* Count a frame that came, if it waited in the ring of a silent receiver. */
static void waited(const struct trace *t, const struct trace_flow *f, uint64_t out)
{
	const struct trace_gap *g = silence_of(t, f, out);
	struct trace_poll *p = poll_of(t, f);

	if (!g)
		return;
	if (p->silence != g->from)
		p->waiting = 0;
	p->silence = g->from;
	p->waiting++;
}

/* The ns that the frame took at least, as a poll of the receiver proves; 0 = not known. */
static uint64_t proved_of(const struct pending *e)
{
	if (e->absent <= e->out || e->absent - e->out <= e->within)
		return 0;
	return e->absent - e->out - e->within;
}

static unsigned int class_of(uint64_t value)
{
	unsigned int log = value < 4 ? 0 : 63 - (unsigned int)__builtin_clzll(value), n;

	n = value < 4 ? (unsigned int)value : 4 * log - 4 + (unsigned int)(value >> (log - 2) & 3);
	return n < TRACE_RANKS ? n : TRACE_RANKS - 1;
}

/*
 * Count a frame from the first loss of its flow on. One histogram is by the load: the bytes that
 * the flow had sent just before. The other is by the delay of the last frame that came. Unlike
 * samples, the histograms include the times in which a host was silent: the queue of a busy
 * receiver drops frames that are behind many others.
 */
static void ranked(struct trace_flow *f, uint32_t load, bool came)
{
	uint64_t delay = f->last_delay > 0 ? (uint64_t)f->last_delay : 0;

	if (!f->lost)
		return;
	(came ? f->by_load.came : f->by_load.gone)[class_of(load)]++;
	(came ? f->by_delay.came : f->by_delay.gone)[class_of(delay)]++;
}

/*
 * Record the delay of a frame that came. Samples are without frames whose delay is that of a silent
 * host: a frame waits while its receiver is silent, and a silent sender has stamped its last frames
 * with the time of an earlier call.
 */
static void came(struct trace *t, struct trace_flow *f, const struct pending *e, uint32_t load)
{
	ranked(f, load, true);
	f->last_delay = (int64_t)(e->in - e->out);
	if (f->last_delay < f->min_delay)
		f->min_delay = f->last_delay;
	if (!f->lost && e->len > f->came_max_before)
		f->came_max_before = e->len;
	if (f->lost && e->len > f->came_max_since)
		f->came_max_since = e->len;
	if (f->lost && e->len >= f->lost_min)
		f->large_came_at = e->out;
	trace_run_end(f, false);
	waited(t, f, e->out);
	trace_floor_add(t, f, e->out, f->last_delay, proved_of(e), load);
	if (!trace_host_silent(&t->host[f->in.file], e->out, e->in) &&
	    !trace_host_silent(&t->host[f->out.file], e->out, e->in))
		sample(f, e, load);
}

static void lost(struct trace *t, struct trace_flow *f, const struct pending *e, uint32_t load)
{
	if (!f->lost++)
		f->first_lost = e->out;
	ranked(f, load, false);
	trace_slot(t, f, e->out)->lost++;
	plot_lost(t->plot, e->flow, (uint64_t)(e - t->pending->entry));
	if (e->len < f->lost_min)
		f->lost_min = e->len;
	if (!f->run.count++) {
		f->run.from = e->out;
		f->runs++;
	}
	f->run.to = e->out;
	if (f->run.to - f->run.from >= f->longest.to - f->longest.from)
		f->longest = f->run;
	/* As in came(), samples are without frames of times in which a host was silent. */
	if (silence_of(t, f, e->out) ||
	    trace_host_silent(&t->host[f->out.file], e->out, e->out + 1))
		return;
	if (f->num_gone < TRACE_SAMPLES)
		f->gone[f->num_gone++] = (struct trace_sample){e->out, f->last_delay, e->len, load};
}

static void first_of(uint64_t *first, uint64_t *count, uint64_t time)
{
	if (!(*count)++)
		*first = time;
}

/*
 * The frames that the ring of the flow's receiver holds, by the HELLO of any flow to its port. A
 * capture that begins later, or a flight recorder, has no HELLO: then RING_LEAST.
 * @return 0 = frames come there whose sender has no capture
 */
static uint32_t ring_of(const struct trace *t, const struct trace_flow *f)
{
	const struct trace_flow *g;
	uint32_t ring = 0;

	for (g = t->flow; g < t->flow + t->num_flows; g++) {
		if (!g->in.known || g->in.file != f->in.file || g->in.iface != f->in.iface)
			continue;
		if (!g->out.known)
			return 0;
		ring = g->rx_frames ? g->rx_frames : ring;
	}
	return ring ? ring : RING_LEAST;
}

/*
 * May the ring of a silent receiver have been full? Frames that waited there come at the end of the
 * silence. If they fill less than half of the ring, the frame was lost on its way.
 */
static bool overflowed(const struct trace *t, const struct trace_flow *f, uint64_t out)
{
	const struct trace_gap *g = silence_of(t, f, out);
	const struct trace_poll *p = poll_of(t, f);
	uint32_t waiting = g && p->silence == g->from ? p->waiting : 0, ring;

	if (!g)
		return false;
	ring = ring_of(t, f);
	return !ring || 2 * waiting >= ring;
}

/* A frame that its receiver's capture lacks. */
static void missed(struct trace *t, struct trace_flow *f, const struct pending *e, uint32_t load)
{
	const struct trace_path *path = &f->path[e->path % WEFT_FRAME_PATHS_MAX];

	if (e->acked) {
		/* A busy receiver may have taken the last frames after its capture had ended. */
		if (e->out < path->known_out)
			first_of(&f->first_unseen_in, &f->unseen_in, e->out);
	} else if (trace_buffer_full(t, &f->in, e->out)) {
		first_of(&f->first_full, &f->full, e->out);
	} else if (overflowed(t, f, e->out)) {
		f->overflowed++;
	} else {
		lost(t, f, e, load);
		f->path[e->path % WEFT_FRAME_PATHS_MAX].lost++;
	}
}

/* The ns within which a frame arrives. If a capture lost records then, the frame is not judged. */
static uint64_t arrival(const struct trace_flow *f)
{
	return f->min_delay > 0 && f->min_delay < TRACE_WAIT_NS
		       ? 4 * (uint64_t)f->min_delay + ARRIVAL_NS
		       : END_NS;
}

/*
 * Does the sender's capture reach back to this frame? A frame that was sent before the capture
 * began may wait for a busy receiver. So a frame must be in the capture if it came after another
 * one of its path that is in it. Frames of another path may overtake it: over UDP, each path has a
 * socket.
 */
static bool has_begun(const struct trace_flow *f, const struct pending *e)
{
	uint64_t known_in = f->path[e->path % WEFT_FRAME_PATHS_MAX].known_in;

	return known_in && e->in > known_in;
}

/* Did the receiver's capture run when the frame arrived, lose no records, and reach behind it? */
static bool can_be_missed(const struct trace *t, const struct trace_flow *f,
			  const struct pending *e)
{
	uint64_t late = e->within < TRACE_LOST_NS ? e->within : 0, due = e->out + late + arrival(f);

	return trace_covers(t, &f->in, e->out, due) &&
	       trace_runs(t, f->in.file, e->out + late + END_NS) &&
	       trace_was_polled(t, &f->in, e->port, e->out, due);
}

/* Has the network duplicated the frame, by its receiver's capture alone, or by both captures? */
static bool is_duplicated(const struct trace *t, const struct trace_flow *f,
			  const struct pending *e)
{
	return e->repeated ||
	       (e->out && e->ins > e->outs && trace_covers(t, &f->out, e->out, e->out));
}

/* Has the frame's receiver closed the connection before the frame was due? */
static bool has_closed(const struct trace *t, const struct trace_flow *f, const struct pending *e)
{
	const struct trace_flow *g = trace_other(t, f);

	return g && g->bye && g->out.known && e->out + arrival(f) > g->bye_at;
}

static void judge(struct trace *t, const struct pending *e)
{
	struct trace_flow *f = &t->flow[e->flow];
	struct trace_path *path = &f->path[e->path % WEFT_FRAME_PATHS_MAX];
	double idle = e->out > f->load_at ? (double)(e->out - f->load_at) : 0;
	uint32_t load;

	if (f->in.known && is_duplicated(t, f, e))
		first_of(&f->first_twice, &f->twice, e->out ? e->out : e->in);
	if ((e->out ? e->out : e->in) < f->compared_from)
		return;
	if (!e->out) { /* the sender's capture lacks it */
		if (f->out.known && e->in > arrival(f) && has_begun(f, e) &&
		    trace_covers(t, &f->out, e->in - arrival(f), e->in))
			first_of(&f->first_unseen_out, &f->unseen_out, e->in);
		return;
	}
	f->load *= exp(-idle / TRACE_LOAD_NS);
	f->load_at = e->out;
	load = (uint32_t)f->load;
	f->load += e->len;
	if (!f->in.known)
		return; /* there is no capture of the receiver */
	/* An end that has closed takes nothing more from its port, and its process may end. */
	if (e->ins < e->outs && (e->bye || has_closed(t, f, e)))
		return;
	if (e->ins < e->outs && !can_be_missed(t, f, e))
		return;
	f->judged++;
	if (e->ins >= e->outs) {
		came(t, f, e, load);
		if (f->last_delay < path->min_delay)
			path->min_delay = f->last_delay;
	} else {
		missed(t, f, e, load);
	}
	path->late += e->late;
	if (e->changed)
		first_of(&f->first_changed, &f->changed, e->in);
	if (e->late)
		first_of(&f->first_late, &f->late, e->out);
}

static void drop(struct trace_pending *p, const struct pending *e)
{
	uint32_t *at = &p->bucket[e->bucket % BUCKETS], index = (uint32_t)(e - p->entry);

	while (*at != index)
		at = &p->entry[*at].next;
	*at = e->next;
	p->num_far -= e->far;
}

/* The ns after its sending at which a frame that has not come is judged. */
static uint64_t judged_after(const struct trace *t, const struct pending *e)
{
	const struct trace_flow *f = &t->flow[e->flow];

	return f->in.known && poll_of(t, f)->sockets ? TRACE_SOCKET_NS : TRACE_LOST_NS;
}

void trace_fate_judge(struct trace *t, bool all)
{
	struct trace_pending *p = t->pending;
	struct pending *e;
	uint64_t when;

	for (; p->tail < p->head; p->tail++) {
		e = &p->entry[p->tail % TRACE_PENDING];
		when = e->out ? e->out : e->in;
		if (!all && p->head - p->tail < TRACE_PENDING && when + judged_after(t, e) > t->now)
			return;
		judge(t, e);
		drop(p, e);
	}
}

/* ---- observations --------------------------------------------------------------------------- */

static struct pending *enter(struct trace_pending *p, uint64_t id, uint32_t bucket, bool full)
{
	struct pending *e = &p->entry[p->head % TRACE_PENDING];
	uint32_t at = full ? far_bucket(id) : bucket, *first = &p->bucket[at % BUCKETS];

	*e = (struct pending){.id = id, .next = *first, .bucket = at, .far = full};
	p->num_far += full;
	*first = (uint32_t)(p->head++ % TRACE_PENDING);
	return e;
}

/* DATA frames of a path have increasing orders: one that arrives after a greater order is late. */
static void look_at_order(struct trace_flow *f, struct pending *e)
{
	uint8_t path = e->path % WEFT_FRAME_PATHS_MAX;

	if (!e->data)
		return;
	if (f->has_order[path] && (int32_t)(e->order - f->max_order[path]) < 0) {
		e->late = true;
		f->overtaken += !f->overtaken || f->late_behind[path] != f->max_order[path];
		f->late_behind[path] = f->max_order[path];
	} else {
		f->max_order[path] = e->order;
	}
	f->has_order[path] = true;
}

/* Entries are numbered from the tail of the ring to its head. */
static uint64_t number_of(const struct trace_pending *p, const struct pending *e)
{
	uint64_t index = (uint64_t)(e - p->entry), tail = p->tail % TRACE_PENDING;

	return p->tail + (index + TRACE_PENDING - tail) % TRACE_PENDING;
}

void trace_fate(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		const struct dump_view *v, uint64_t time)
{
	uint32_t flow = (uint32_t)(f - t->flow), bucket = bucket_of(flow, v), crc = 0;
	struct trace_path *path = &f->path[v->hdr->path % WEFT_FRAME_PATHS_MAX];
	uint64_t id = id_of(flow, v, frame->len);
	struct pending *e;
	bool full;

	if (!v->cut)
		crc = weft_crc32c(WEFT_CRC32C_INIT, v->hdr, v->length);
	e = find(t->pending, id, bucket, &full);
	if (!e) {
		e = enter(t->pending, id, bucket, full);
		e->flow = flow;
		e->len = frame->len;
		e->crc = crc;
		e->whole = !v->cut;
		e->order = weft_get32(v->hdr->order);
		e->path = v->hdr->path;
		e->port = v->dst_port;
		e->data = v->hdr->type == WEFT_FRAME_DATA || v->hdr->type == WEFT_FRAME_PART;
		e->bye = v->hdr->type == WEFT_FRAME_BYE || v->hdr->type == WEFT_FRAME_BYE_ACK;
	} else if (e->data && e->whole && !v->cut && e->crc != crc) {
		e->changed = true;
	}
	if (frame->way == DUMP_OUT) {
		if (!e->out) { /* probes may be equal */
			e->out = time;
			e->within = frame->within;
		}
		e->outs += e->outs < UINT8_MAX;
		t->fate = number_of(t->pending, e);
		return;
	}
	t->sent_at = e->out;
	e->repeated = e->repeated || (e->ins && v->hdr->type == WEFT_FRAME_DATA &&
				      e->at.file == frame->file && e->at.iface == frame->iface);
	if (e->ins < UINT8_MAX && e->ins++)
		return;
	e->at = (struct trace_port){frame->file, frame->iface, true};
	e->in = time;
	e->absent = t->absent_at;
	if (e->out && !path->known_in)
		path->known_in = time;
	if (e->out > path->known_out)
		path->known_out = e->out;
	if (e->out > poll_of(t, f)->sent)
		poll_of(t, f)->sent = e->out;
	if (frame->sockets)
		trace_socket_read(t, &e->at, e->port, e->out);
	look_at_order(f, e);
}

static bool is_of(const struct trace_flow *f, const struct dump_view *v)
{
	return dump_address_same(&f->src, &v->src) && dump_address_same(&f->dst, &v->dst);
}

/*
 * Count a frame that arrived changed, at the flow of its connection if its bytes name one of this
 * interface and these addresses; else at the busiest flow of these addresses, or of the interface.
 */
void trace_fate_changed(struct trace *t, const struct dump_frame *frame, const struct dump_view *v,
			uint64_t time)
{
	struct trace_flow *f, *best = NULL;
	unsigned int i, rank, most = 0;

	for (i = 0; i < t->num_flows; i++) {
		f = &t->flow[i];
		if (!f->in.known || f->in.file != frame->file || f->in.iface != frame->iface)
			continue;
		rank = 1 + 2 * is_of(f, v);
		if (rank == 3 && v->hdr && f->dst_conn == weft_get32(v->hdr->dst_conn) &&
		    f->token == weft_get32(v->hdr->token))
			rank = 4;
		if (rank > most || (rank == most && f->frames > best->frames))
			best = f;
		most = rank > most ? rank : most;
	}
	if (best)
		first_of(&best->first_changed, &best->changed, time);
}

void trace_fate_acked(struct trace *t, uint64_t number)
{
	struct trace_pending *p = t->pending;

	if (number >= p->tail && number < p->head)
		p->entry[number % TRACE_PENDING].acked = true;
}
