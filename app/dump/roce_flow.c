/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "dump/roce_flow.h"
#include "dump/trace.h"

#define TABLE (4u * ROCE_FLOWS)
#define HALF 0x800000u  /* a PSN this far ahead is one before */
#define WINDOW 0x10000u /* packets of requests that have no answer, at most */
/* If several flows may be the other direction, this many answers that fit only one pair it. */
#define VOTES 3u
#define MTU_LEAST 256u /* of the path MTUs that queue pairs may have */
#define MTU_MOST 4096u
#define READ_REQUEST 0x0c
#define SEND_ONLY_IMM 0x05

struct roce *roce_make(void)
{
	struct roce *r = calloc(1, sizeof(*r));

	if (r)
		memset(r->table, 0xff, sizeof(r->table));
	return r;
}

/* ---- flows ---------------------------------------------------------------------------------- */

static uint32_t hash(const struct dump_address *src, const struct dump_address *dst, uint32_t qp)
{
	uint64_t a[2], b[2];

	memcpy(a, src->b, sizeof(a));
	memcpy(b, dst->b, sizeof(b));
	return dump_hash((uint64_t)dump_hash(a[0], a[1]) << 32 | dump_hash(b[0], b[1]), qp);
}

static bool is_of(const struct roce_flow *f, const struct dump_frame *frame,
		  const struct dump_view *v)
{
	return f->dst_qp == v->roce.dst_qp && f->file == frame->file && f->iface == frame->iface &&
	       dump_address_same(&f->src, &v->src) && dump_address_same(&f->dst, &v->dst);
}

/* @return NULL: no room */
static struct roce_flow *flow_of(struct roce *r, const struct dump_frame *frame,
				 const struct dump_view *v)
{
	uint32_t i, *slot;

	for (i = hash(&v->src, &v->dst, v->roce.dst_qp) % TABLE;; i = (i + 1) % TABLE) {
		slot = &r->table[i];
		if (*slot == ROCE_NONE)
			break;
		if (is_of(&r->flow[*slot], frame, v))
			return &r->flow[*slot];
	}
	if (r->num == ROCE_FLOWS)
		return NULL;
	*slot = r->num++;
	r->flow[*slot] = (struct roce_flow){.src = v->src,
					    .dst = v->dst,
					    .dst_qp = v->roce.dst_qp,
					    .file = frame->file,
					    .iface = frame->iface,
					    .other = ROCE_NONE,
					    .candidate = ROCE_NONE};
	return &r->flow[*slot];
}

static struct roce_flow *other_of(struct roce *r, const struct roce_flow *f)
{
	return f->other == ROCE_NONE ? NULL : &r->flow[f->other];
}

static void fault(struct roce_flow *f, uint64_t time)
{
	if (!f->fault)
		f->fault = time;
}

/* ---- requests ------------------------------------------------------------------------------- */

static uint32_t ahead(uint32_t psn, uint32_t of)
{
	return (psn - of) & ROCEV2_PSN_MASK;
}

/* Packets of @p bytes. */
static uint32_t packets_of(uint32_t bytes, uint32_t mtu)
{
	return bytes ? (bytes - 1) / mtu + 1 : 1;
}

static uint32_t mtu_of(struct roce *r, const struct roce_flow *f)
{
	const struct roce_flow *g = other_of(r, f);

	return f->mtu || !g ? f->mtu : g->mtu;
}

/* PSNs that a request takes. @param slack  it may take this many more */
static uint32_t span_of(struct roce *r, const struct roce_flow *f, const struct rocev2_packet *p,
			uint32_t *slack)
{
	uint32_t mtu = mtu_of(r, f), least;

	*slack = 0;
	if (p->opcode != READ_REQUEST || !(p->has & ROCEV2_RETH))
		return 1;
	least = packets_of(p->length, mtu ? mtu : MTU_MOST);
	*slack = mtu ? 0 : packets_of(p->length, MTU_LEAST) - least;
	return least;
}

/* The last read was captured before a packet that shows the path MTU: correct its PSNs. */
static void settle(struct roce *r, struct roce_flow *f)
{
	uint32_t mtu = mtu_of(r, f), more;

	if (!f->slack || !mtu)
		return;
	more = packets_of(f->read_length, mtu) - packets_of(f->read_length, MTU_MOST);
	if (f->expected == f->next)
		f->expected = (f->expected + more) & ROCEV2_PSN_MASK;
	f->next = (f->next + more) & ROCEV2_PSN_MASK;
	f->slack = 0;
}

/* The first request was lost before it came here, so its receiver has refused all others. */
static void begins_before(struct roce_flow *f, uint32_t psn)
{
	f->naks_due = f->expected != psn;
	f->begin = f->expected = f->nak_first = f->nak_last = psn;
}

/* Its receiver gets what was captured. It refuses packets behind a gap, the first one by a NAK. */
static void arrives(struct roce_flow *f, uint32_t psn, uint32_t span, bool in_order)
{
	uint32_t by = ahead(psn, f->expected);

	if (by >= HALF) {
		f->arrived++;
	} else if (by == 0 || (in_order && by <= f->slack)) {
		f->expected = (psn + span) & ROCEV2_PSN_MASK;
		f->refused = false;
	} else if (!f->refused) {
		if (!f->naks_due)
			f->nak_first = f->expected;
		f->nak_last = f->expected;
		f->refused = f->naks_due = true;
	}
}

static void request(struct roce *r, struct roce_flow *f, const struct rocev2_packet *p,
		    uint64_t time)
{
	uint32_t slack, span = span_of(r, f, p, &slack), by;

	settle(r, f);
	f->requests++;
	if (!f->has_psn)
		f->begin = f->next = f->expected = p->psn;
	f->has_psn = true;
	if (f->requests < WINDOW && ahead(p->psn, f->begin) >= HALF)
		begins_before(f, p->psn);
	arrives(f, p->psn, span, f->expected == f->next);
	by = ahead(p->psn, f->next);
	if (by >= HALF) {
		f->again++;
		fault(f, time);
		return;
	}
	if (by > f->slack) {
		f->gaps++;
		f->missing += by;
		fault(f, time);
	}
	f->next = (p->psn + span) & ROCEV2_PSN_MASK;
	f->slack = slack;
	f->read_length = p->length;
}

/* ---- answers -------------------------------------------------------------------------------- */

/* May the PSN be that of an answer to a request of @p f? */
static bool may_answer(const struct roce_flow *f, uint32_t psn)
{
	if (!f->has_psn || ahead(f->next + f->slack - 1, psn) >= WINDOW + f->slack)
		return false;
	return f->requests >= WINDOW || ahead(psn, f->begin) < HALF;
}

static bool may_pair(const struct roce_flow *f, const struct roce_flow *g)
{
	return g->other == ROCE_NONE && g->reliable && g->file == f->file && g->iface == f->iface &&
	       dump_address_same(&g->src, &f->dst) && dump_address_same(&g->dst, &f->src);
}

static void separate(struct roce *r, struct roce_flow *f)
{
	struct roce_flow *g = other_of(r, f);

	f->other = g->other = ROCE_NONE;
	f->votes = g->votes = 0;
}

/* Search for the flow with the requests that @p f answers. */
static void search(struct roce *r, struct roce_flow *f, uint32_t psn)
{
	uint32_t i, found = ROCE_NONE, all = 0, fit = 0, index = (uint32_t)(f - r->flow);

	for (i = 0; i < r->num; i++) {
		if (i == index || !may_pair(f, &r->flow[i]))
			continue;
		all++;
		if (!may_answer(&r->flow[i], psn))
			continue;
		fit++;
		found = i;
	}
	if (fit != 1)
		return;
	f->votes = found == f->candidate ? f->votes + 1 : 1;
	f->candidate = found;
	if (all > 1 && f->votes < VOTES)
		return;
	f->other = found;
	r->flow[found].other = index;
}

/*
 * Does a gap in this capture explain the NAK? A responder is later than the capture. So the missing
 * packet may have arrived before its NAK was captured, and is not missing now.
 */
static bool nak_was_due(struct roce_flow *f, uint32_t psn)
{
	if (!f->naks_due || ahead(psn, f->nak_first) > ahead(f->nak_last, f->nak_first))
		return false;
	f->naks_due = psn != f->nak_last;
	f->nak_first = (psn + 1) & ROCEV2_PSN_MASK;
	return true;
}

/* What its receiver accepts next, by this answer. */
static void expect(struct roce_flow *f, const struct rocev2_packet *p, enum rocev2_answer answer)
{
	uint32_t next = (p->psn + 1) & ROCEV2_PSN_MASK;

	if (answer == ROCEV2_RNR || (answer == ROCEV2_NAK_SEQUENCE && !nak_was_due(f, p->psn))) {
		f->expected = p->psn;
		f->refused = answer == ROCEV2_NAK_SEQUENCE;
	} else if (answer == ROCEV2_ACK && ahead(next, f->expected) < HALF) {
		f->refused = f->refused && next == f->expected;
		f->expected = next;
	}
	/* Answers are in order. */
	if (answer == ROCEV2_ACK && ahead(p->psn, f->nak_last) < HALF)
		f->naks_due = false;
}

static void read_answer(struct roce_flow *f, const struct rocev2_packet *p, uint64_t time)
{
	if (!(p->has & (ROCEV2_READ_BEGINS | ROCEV2_READ_CONTINUES)))
		return;
	if (p->has & ROCEV2_READ_CONTINUES && f->has_read && p->psn != f->read_next) {
		f->read_gaps++;
		fault(f, time);
	}
	f->has_read = true;
	f->read_next = (p->psn + 1) & ROCEV2_PSN_MASK;
}

static void response(struct roce *r, struct roce_flow *f, const struct rocev2_packet *p,
		     uint64_t time)
{
	enum rocev2_answer answer = rocev2_answer(p);
	struct roce_flow *g = other_of(r, f);

	f->responses++;
	read_answer(f, p, time);
	if (g && !may_answer(g, p->psn))
		separate(r, f);
	if (f->other == ROCE_NONE)
		search(r, f, p->psn);
	if (!(p->has & ROCEV2_AETH))
		return;
	f->answer[answer]++;
	if (answer != ROCEV2_ACK)
		fault(f, time);
	if (answer == ROCEV2_RNR && rocev2_rnr_us(p) > f->rnr_us)
		f->rnr_us = rocev2_rnr_us(p);
	g = other_of(r, f);
	if (g)
		expect(g, p, answer);
}

/* ---- messages of Weft ----------------------------------------------------------------------- */

/* The wire-up message names both workers, and the lane that its queue pair belongs to. */
static void wireup(struct roce_flow *f, const struct dump_msg *msg)
{
	const struct weft_wire_wireup *w = (const void *)msg->data;

	if (msg->cap < sizeof(*w) || w->major != WEFT_WIRE_MAJOR ||
	    (w->type != WEFT_WIREUP_ATTACH && w->type != WEFT_WIREUP_ATTACHED))
		return;
	f->named = true;
	f->lane = w->lane;
	f->worker[0] = weft_get64(w->src_worker);
	f->worker[1] = weft_get64(w->dst_worker);
}

/* doc/wire.md, "RoCE lanes": one message is one SEND, and the immediate data has its id. */
static void message(struct roce_flow *f, const struct rocev2_packet *p)
{
	struct dump_msg msg = {.id = (uint8_t)(p->imm >> 25 & 31),
			       .len = p->payload_len,
			       .cap = p->payload_cap,
			       .data = p->payload};
	const struct dump_shape *shape = dump_shape_of_msg(msg.id);

	if (p->opcode != SEND_ONLY_IMM || !(p->has & ROCEV2_IMM) || p->imm >> 31 || !shape ||
	    msg.len < shape->size || dump_msg_wrong(&msg))
		return;
	f->messages++;
	if (msg.id == WEFT_WIRE_WIREUP)
		wireup(f, &msg);
}

/*
 * Do two directions begin with one PSN?
 * @return 1; 0: not known; -1: they do not, or have other addresses
 */
static int begin_alike(const struct roce_flow *a, const struct roce_flow *b)
{
	if (!a || !b)
		return 0;
	if (!dump_address_same(&a->src, &b->src) || !dump_address_same(&a->dst, &b->dst))
		return -1;
	if (!a->has_psn || !b->has_psn)
		return 0;
	return a->begin == b->begin ? 1 : -1;
}

/* Are both connections of one lane? @p a and @p c are of one direction. The others may be NULL */
static bool of_one_lane(const struct roce_flow *a, const struct roce_flow *b,
			const struct roce_flow *c, const struct roce_flow *d)
{
	int there = begin_alike(a, c), back = begin_alike(b, d);

	return there >= 0 && back >= 0 && there + back > 0;
}

/*
 * The flow that names the lane of @p f: it, its other direction, or a flow of another queue pair of
 * the lane. The wire-up uses the first one only, and all begin with one PSN, which is random.
 * @param[out] back  that flow has the opposite direction. @return NULL: none
 */
static const struct roce_flow *named(const struct roce *r, const struct roce_flow *f, bool *back)
{
	const struct roce_flow *g = f->other == ROCE_NONE ? NULL : &r->flow[f->other], *n, *m;

	*back = !f->named;
	if (f->named || (g && g->named))
		return f->named ? f : g;
	for (n = r->flow; n < r->flow + r->num; n++) {
		if (!n->named)
			continue;
		m = n->other == ROCE_NONE ? NULL : &r->flow[n->other];
		*back = !of_one_lane(f, g, n, m);
		if (!*back || of_one_lane(f, g, m, n))
			return n;
	}
	return NULL;
}

/* ---- packets -------------------------------------------------------------------------------- */

#define ECN_CE 3u

static void count(struct roce_flow *f, const struct dump_view *v, uint64_t time)
{
	if (!f->packets)
		f->first = time;
	f->last = time;
	f->packets++;
	f->bytes += v->roce.payload_len;
	f->marked += v->ecn == ECN_CE;
}

void roce_packet(struct roce *r, const struct dump_frame *frame, const struct dump_view *v,
		 uint64_t time)
{
	const struct rocev2_packet *p = &v->roce;
	struct roce_flow *f;

	r->malformed += !p->bth;
	f = p->bth ? flow_of(r, frame, v) : NULL;
	r->too_many += p->bth && !f;
	if (!f)
		return;
	count(f, v, time);
	if (p->opcode == ROCEV2_CNP) {
		f->cnps++;
		fault(f, time);
		return;
	}
	/* A datagram's PSN counts those of its sender to all receivers. */
	if (p->opcode >> 5 > ROCEV2_UC)
		return;
	f->reliable = f->reliable || p->opcode >> 5 == ROCEV2_RC;
	if (p->has & ROCEV2_FULL && p->payload_len > f->mtu && p->payload_len <= MTU_MOST)
		f->mtu = p->payload_len;
	if (p->has & ROCEV2_REQUEST)
		request(r, f, p, time);
	else
		response(r, f, p, time);
	if (!p->cut)
		message(f, p);
}

/* ---- text ----------------------------------------------------------------------------------- */

/* Text that is composed of parts. */
struct text {
	char *buf;
	size_t size, at;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->at, t->size - t->at, fmt, ap);
	va_end(ap);
	t->at += (size_t)n;
	if (t->at >= t->size)
		t->at = t->size - 1;
}

static void add_count(struct text *t, const char **before, uint64_t n, const char *noun,
		      const char *rest)
{
	if (!n)
		return;
	add(t, "%s%" PRIu64 " %s%s%s", *before, n, noun, n == 1 ? "" : "s", rest);
	*before = ", ";
}

static uint64_t naks(const struct roce_flow *f)
{
	uint64_t sum = 0;

	for (int i = ROCEV2_NAK_SEQUENCE; i < ROCEV2_ANSWERS; i++)
		sum += f->answer[i];
	return sum;
}

static uint64_t faults_of(const struct roce_flow *f)
{
	return f->again + f->gaps + f->read_gaps + naks(f) + f->answer[ROCEV2_RNR] + f->cnps;
}

uint64_t roce_faults(const struct roce *r, unsigned int flow)
{
	const struct roce_flow *f = &r->flow[flow];

	if (f->other == ROCE_NONE)
		return faults_of(f);
	return f->other < flow ? 0 : faults_of(f) + faults_of(&r->flow[f->other]);
}

static void sent_text(struct text *t, const char **before, const struct roce_flow *f, bool known)
{
	if (f->again) {
		add(t, "%" PRIu64 " of %" PRIu64 " requests sent again", f->again, f->requests);
		if (f->arrived && known)
			add(t, " (%" PRIu64 " had arrived)", f->arrived);
		*before = ", ";
	}
	if (f->gaps)
		add_count(t, before, f->missing, "PSN", " of requests missing");
	add_count(t, before, f->read_gaps, "incomplete answer", " to reads");
	add_count(t, before, f->marked, "mark", " of congestion");
}

static void answers_text(struct text *t, const char **before, const struct roce_flow *f)
{
	static const char *const kinds[ROCEV2_ANSWERS] = {
		[ROCEV2_NAK_SEQUENCE] = " for a wrong PSN",
		[ROCEV2_NAK_REQUEST] = " for an invalid request",
		[ROCEV2_NAK_ACCESS] = " for a wrong remote key or address",
		[ROCEV2_NAK_OPERATION] = " for an error of the receiver",
		[ROCEV2_NAK_OTHER] = " of another kind",
	};

	add_count(t, before, f->answer[ROCEV2_RNR], "RNR NAK", "");
	if (f->answer[ROCEV2_RNR])
		add(t, " (wait %.2f ms)", f->rnr_us / 1e3);
	for (int i = ROCEV2_NAK_SEQUENCE; i < ROCEV2_ANSWERS; i++)
		add_count(t, before, f->answer[i], "NAK", kinds[i]);
	add_count(t, before, f->cnps, "CNP", "");
}

/*
 * What happened to the packets from an address.
 * @param sent  the flow with them. @param answers  the flow of their answers. One may be NULL
 */
static void direction_text(struct text *t, const struct roce_flow *sent,
			   const struct roce_flow *answers)
{
	char address[DUMP_ADDRESS_LEN];
	const char *before = "";

	if (!(sent && sent->again + sent->gaps + sent->read_gaps) &&
	    !(answers && naks(answers) + answers->answer[ROCEV2_RNR] + answers->cnps))
		return;
	add(t, "; from %s ", dump_address_text(sent ? &sent->src : &answers->dst, address));
	if (sent)
		sent_text(t, &before, sent, answers != NULL);
	if (answers)
		answers_text(t, &before, answers);
}

static const char *advice(const struct roce_flow *f, const struct roce_flow *g)
{
	static const struct roce_flow none;

	if (!g)
		g = &none;
	if (naks(f) + naks(g) > f->answer[ROCEV2_NAK_SEQUENCE] + g->answer[ROCEV2_NAK_SEQUENCE])
		return "find the program whose memory was not registered, or was released early";
	if (f->answer[ROCEV2_RNR] + g->answer[ROCEV2_RNR])
		return "let the receiver post more receive buffers, or give its process a core";
	if (faults_of(f) + faults_of(g) > f->cnps + g->cnps)
		return "look for packet loss: PFC, ECN and error counters of the ports on this way";
	return "reduce the load, or check the ECN thresholds of switches";
}

static void qp_text(struct text *t, const struct dump_address *a, const struct roce_flow *to)
{
	char address[DUMP_ADDRESS_LEN];

	add(t, "%s QP ", dump_address_text(a, address));
	if (to)
		add(t, "0x%x", to->dst_qp);
	else
		add(t, "?");
}

void roce_fault_text(const struct roce *r, unsigned int flow, const char *place, uint64_t begin,
		     char *buf, size_t size)
{
	const struct roce_flow *f = &r->flow[flow], *n,
			       *g = f->other == ROCE_NONE ? NULL : &r->flow[f->other];
	uint64_t since = !g || !g->fault || (f->fault && f->fault < g->fault) ? f->fault : g->fault;
	struct text t = {buf, size, 0};
	bool back;

	add(&t, "%s: RoCE ", place);
	qp_text(&t, &f->src, g);
	add(&t, " and ");
	qp_text(&t, &f->dst, f);
	n = named(r, f, &back);
	if (n)
		add(&t, ", lane %u of workers %016" PRIx64 " and %016" PRIx64, n->lane,
		    n->worker[back], n->worker[!back]);
	direction_text(&t, f, g);
	direction_text(&t, g, f);
	add(&t, "; since %.3f s after the first frame; to do: %s",
	    since > begin ? (double)(since - begin) / 1e9 : 0, advice(f, g));
}

void roce_sums_text(const struct roce *r, char *buf, size_t size)
{
	uint64_t packets = 0, again = 0, missing = 0, nak = 0, rnr = 0, cnps = 0, marked = 0;
	unsigned int i, connections = 0;
	struct text t = {buf, size, 0};
	const struct roce_flow *f;

	for (i = 0; i < r->num; i++) {
		f = &r->flow[i];
		connections += f->other == ROCE_NONE || f->other > i;
		packets += f->packets;
		again += f->again;
		missing += f->missing;
		nak += naks(f);
		rnr += f->answer[ROCEV2_RNR];
		cnps += f->cnps;
		marked += f->marked;
	}
	add(&t,
	    "%u connection%s of RoCE v2: %" PRIu64 " packets, %" PRIu64
	    " requests sent again, %" PRIu64 " PSNs missing, %" PRIu64 " NAKs, %" PRIu64
	    " RNR NAKs, %" PRIu64 " CNPs, %" PRIu64 " marks of congestion",
	    connections, connections == 1 ? "" : "s", packets, again, missing, nak, rnr, cnps,
	    marked);
	if (r->malformed)
		add(&t, "; %" PRIu64 " packets without a valid header", r->malformed);
	if (r->too_many)
		add(&t, "; %" PRIu64 " packets of directions beyond the first %u are not followed",
		    r->too_many, ROCE_FLOWS);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void times_json(struct json *j, const struct roce_flow *f)
{
	json_number(j, "first", f->first);
	json_number(j, "last", f->last);
	if (f->fault)
		json_number(j, "fault", f->fault);
}

static void worker_json(struct json *j, const char *name, uint64_t id)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%016" PRIx64, id);
	json_text(j, name, text);
}

void roce_flow_json(struct json *j, const struct roce *r, const struct roce_flow *f)
{
	static const char *const names[ROCEV2_ANSWERS] = {"acks",          "rnr_naks",
							  "naks_sequence", "naks_request",
							  "naks_access",   "naks_operation",
							  "naks_other"};
	char address[DUMP_ADDRESS_LEN];
	const struct roce_flow *n;
	bool back;

	json_text(j, "from", dump_address_text(&f->src, address));
	if (f->other != ROCE_NONE)
		json_number(j, "from_qp", r->flow[f->other].dst_qp);
	json_text(j, "to", dump_address_text(&f->dst, address));
	json_number(j, "to_qp", f->dst_qp);
	times_json(j, f);
	json_number(j, "packets", f->packets);
	json_number(j, "bytes", f->bytes);
	json_number(j, "requests", f->requests);
	json_number(j, "responses", f->responses);
	json_number(j, "sent_again", f->again);
	json_number(j, "arrived_before", f->arrived);
	json_number(j, "gaps", f->gaps);
	json_number(j, "missing", f->missing);
	json_number(j, "read_gaps", f->read_gaps);
	for (int i = 0; i < ROCEV2_ANSWERS; i++)
		json_number(j, names[i], f->answer[i]);
	json_number(j, "rnr_wait_us", f->rnr_us);
	json_number(j, "cnps", f->cnps);
	json_number(j, "marked", f->marked);
	json_number(j, "messages", f->messages);
	n = named(r, f, &back);
	if (!n)
		return;
	json_number(j, "lane", n->lane);
	worker_json(j, "from_worker", n->worker[back]);
	worker_json(j, "to_worker", n->worker[!back]);
}
