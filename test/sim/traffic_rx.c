/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>

#include "traffic_priv.h"

/* ---- plan ----------------------------------------------------------------------------------- */

static void plan_add(struct inbox *in, uint8_t what)
{
	if ((in->plan_len & (in->plan_len - 1)) == 0) {
		in->plan = realloc(in->plan, in->plan_len ? 2 * in->plan_len : 1);
		if (!in->plan)
			abort();
	}
	in->plan[in->plan_len++] = what;
}

/*
 * Receives for the classes of 16 messages at a time, in another order, some as wildcards. What does
 * not fit in the end is sorted out by settle().
 */
static void make_plan(struct inbox *in)
{
	unsigned int i, j, from = 0, n = 0;
	uint8_t x;

	for (i = 0; i < in->flow->messages; i++) {
		if (message_any(in->flow, i))
			continue;
		plan_add(in,
			 sim_chance(&in->rng, 0.2) ? WILD : (uint8_t)message_class(in->flow, i));
		if (++n % 16 && i + 1 < in->flow->messages)
			continue;
		for (j = in->plan_len - 1; j > from; j--) {
			unsigned int k = from + (unsigned int)sim_below(&in->rng, j - from + 1);

			x = in->plan[j];
			in->plan[j] = in->plan[k];
			in->plan[k] = x;
		}
		from = in->plan_len;
	}
}

void inbox_init(struct inbox *in, struct traffic *t, struct sim_node *node, struct flow *f,
		unsigned int messages)
{
	unsigned int i;

	*in = (struct inbox){.t = t, .node = node, .flow = f, .messages = messages};
	in->rng = sim_stream(t->sim, f ? 5000 + f->id : 7000 + (uint64_t)(in - t->any));
	if (f) {
		make_plan(in);
		in->messages = in->plan_len;
	} else {
		for (i = 0; i < messages; i++)
			plan_add(in, WILD);
	}
}

/* ---- a receive's end ------------------------------------------------------------------------ */

static struct flow *flow_of(struct traffic *t, uint64_t tag)
{
	unsigned int id = (unsigned int)(tag >> 48 & 0xff);

	return id < t->num_flows ? &t->flows[id] : NULL;
}

static void took(struct rx *rx, uint64_t tag)
{
	struct inbox *in = rx->inbox;
	struct flow *f = flow_of(in->t, tag);
	unsigned int number = (unsigned int)tag, i;

	rx->state = RX_DONE;
	rx->got = tag;
	in->done++;
	in->t->done++;
	if (!f || number >= f->messages || tag != message_tag(f, number) ||
	    (in->flow && f != in->flow) || f->dst != in->node || !!(tag & TAG_ANY) != !in->flow) {
		traffic_fail(in->t,
			     "a receive got a message with tag %llx, which nobody sent to it",
			     (unsigned long long)tag);
		return;
	}
	if ((tag ^ rx->tag) & rx->mask)
		traffic_fail(in->t, "tag %llx does not match what was asked for",
			     (unsigned long long)tag);
	if (rx->looked && rx->expect != tag)
		traffic_fail(in->t, "a probe saw tag %llx, the receive after it got %llx",
			     (unsigned long long)rx->expect, (unsigned long long)tag);
	if (f->order[number])
		traffic_fail(in->t, "message %u of flow %u was received twice", number, f->id);
	if (f->gone[number])
		traffic_fail(in->t, "message %u of flow %u was received after its withdrawal",
			     number, f->id);
	for (i = 0; i < in->num_rx && in->rx[i] != rx; i++)
		;
	f->order[number] = i + 1;
}

/* Of a message as it was sent. */
static void check_imm(struct flow *f, const struct weft_completion *c)
{
	unsigned int number = (unsigned int)c->tag;
	bool has = message_has_imm(f, number), any = message_any(f, number);

	if (c->flags != (has ? WEFT_COMPLETION_F_IMM : 0) ||
	    c->imm != (has ? ~message_id(f, number) : 0) ||
	    c->channel != (any ? 0 : flow_channel(f)) ||
	    c->source_channel != (any ? 0 : (uint16_t)number))
		traffic_fail(f->t, "message %u of flow %u came with %llx on channel %u from %u",
			     number, f->id, (unsigned long long)c->imm, c->channel,
			     c->source_channel);
}

static void check_content(struct rx *rx, const struct weft_completion *c)
{
	struct flow *f = flow_of(rx->inbox->t, c->tag);
	unsigned int number = (unsigned int)c->tag;
	const char *wrong;
	size_t size;

	if (!f || rx->inbox->t->error[0])
		return;
	size = message_size(f, number);
	rx->inbox->t->bytes += size;
	check_imm(f, c);
	if (c->length != size || c->status != (size > rx->cap ? -EMSGSIZE : 0)) {
		traffic_fail(f->t, "message %u of flow %u: %zu bytes into %zu gave length %zu, %s",
			     number, f->id, size, rx->cap, c->length, weft_strerror(c->status));
		return;
	}
	wrong = buf_verify(rx->buf, message_id(f, number), size);
	if (wrong)
		traffic_fail(f->t, "message %u of flow %u, %zu bytes into %zu, kind %d: %s", number,
			     f->id, size, rx->cap, (int)rx->buf->kind, wrong);
}

static void ended(struct rx *rx, const struct weft_completion *c)
{
	struct inbox *in = rx->inbox;
	const char *wrong = NULL;

	in->outstanding--;
	if (rx->state != RX_POSTED && !rx->msg) {
		traffic_fail(in->t, "a receive completed twice");
		return;
	}
	if (c->status == -ECANCELED) {
		rx->state = RX_CANCELLED;
		wrong = buf_untouched(rx->buf);
	} else if (c->status && c->status != -EMSGSIZE) {
		traffic_fail(in->t, "a receive ended with: %s", weft_strerror(c->status));
	} else {
		if (!rx->msg)
			took(rx, c->tag);
		else if (rx->got != c->tag)
			traffic_fail(in->t, "a probed message changed its tag");
		check_content(rx, c);
	}
	rx->msg = NULL;
	if (wrong)
		traffic_fail(in->t, "cancelled receive: %s", wrong);
	wrong = buf_free(rx->buf);
	rx->buf = NULL;
	if (wrong)
		traffic_fail(in->t, "receive: %s", wrong);
}

static void received(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct rx *rx = arg;

	rx->req = NULL;
	ended(rx, c);
	weft_request_free(req);
}

/* ---- receiving ------------------------------------------------------------------------------ */

static struct rx *new_rx(struct inbox *in, uint8_t what)
{
	struct rx *rx = calloc(1, sizeof(*rx));

	if (rx && (in->num_rx & (in->num_rx - 1)) == 0)
		in->rx = realloc(in->rx, (in->num_rx ? 2 * in->num_rx : 1) * sizeof(*in->rx));
	if (!rx || !in->rx)
		abort();
	in->rx[in->num_rx++] = rx;
	rx->inbox = in;
	rx->mask = TAG_ANY;
	rx->tag = in->flow ? 0 : TAG_ANY;
	if (in->flow) {
		rx->mask |= 0xffull << 48;
		rx->tag |= TAG_FLOW(in->flow->id);
	}
	if (what != WILD) {
		rx->mask |= 0xfull << 40;
		rx->tag |= TAG_CLASS(what);
	}
	/* What the mask leaves out may be anything. */
	rx->tag |= sim_rand(&in->rng) & ~rx->mask;
	return rx;
}

static void make_buffer(struct rx *rx)
{
	struct inbox *in = rx->inbox;
	const struct traffic_conf *conf = &in->t->conf;
	enum buf_kind kind = BUF_CONTIG;

	rx->cap = sim_chance(&in->rng, conf->trunc)
			  ? sim_below(&in->rng, 1ull << sim_between(&in->rng, 0, 15))
			  : conf->max_size + sim_below(&in->rng, 100);
	if (sim_chance(&in->rng, conf->iov))
		kind = BUF_IOV;
	else if (sim_chance(&in->rng, conf->generic))
		kind = BUF_GENERIC;
	rx->buf = buf_recv(&in->rng, kind, rx->cap);
	in->outstanding++;
}

static void post(struct rx *rx)
{
	struct inbox *in = rx->inbox;
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params p =
		WEFT_INIT(struct weft_op_params, .cb = received, .cb_arg = rx, .completion = &c);
	struct weft_ep *source =
		in->source && sim_chance(&in->rng, in->t->conf.source) ? in->source : NULL;
	int ret;

	make_buffer(rx);
	p.channel = in->flow ? flow_channel(in->flow) : 0;
	p.datatype = buf_datatype(rx->buf);
	if (rx->msg)
		ret = weft_tag_msg_recv(sim_worker(in->node), rx->msg, buf_pointer(rx->buf),
					buf_count(rx->buf), &p, &rx->req);
	else
		ret = weft_tag_recv(sim_worker(in->node), source, buf_pointer(rx->buf),
				    buf_count(rx->buf), rx->tag, rx->mask, &p, &rx->req);
	if (ret == WEFT_INPROGRESS)
		return;
	if (ret && ret != -EMSGSIZE) {
		traffic_fail(in->t, "a receive was refused: %s", weft_strerror(ret));
		return;
	}
	ended(rx, &c);
}

/*
 * Looks first; may take the message out and receive or drop it itself. @return true if a message
 * was there
 */
static bool probe(struct rx *rx)
{
	struct inbox *in = rx->inbox;
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params p = WEFT_INIT(struct weft_op_params);
	bool take = sim_chance(&in->rng, 0.5);
	struct flow *f;

	p.channel = in->flow ? flow_channel(in->flow) : 0;
	if (weft_tag_probe(sim_worker(in->node), NULL, rx->tag, rx->mask, &p,
			   take ? &rx->msg : NULL, &c))
		return false;
	f = flow_of(in->t, c.tag);
	if (!f || c.length != message_size(f, (unsigned int)c.tag)) {
		traffic_fail(in->t, "a probe gave tag %llx and length %zu",
			     (unsigned long long)c.tag, c.length);
		return true;
	}
	check_imm(f, &c);
	rx->looked = true;
	rx->expect = c.tag;
	if (!take) {
		post(rx);
		return true;
	}
	took(rx, c.tag);
	if (sim_chance(&in->rng, in->t->conf.drop)) {
		weft_tag_msg_drop(sim_worker(in->node), rx->msg);
		rx->msg = NULL;
	} else {
		post(rx);
	}
	return true;
}

static void cancel_one(struct inbox *in)
{
	struct rx *rx = in->rx[sim_below(&in->rng, in->num_rx)];
	int ret;

	if (rx->state != RX_POSTED || !rx->req)
		return;
	ret = weft_request_cancel(rx->req);
	if (!ret && rx->state != RX_CANCELLED)
		traffic_fail(in->t, "a cancelled receive did not end inside the call");
	else if (ret && ret != -EBUSY && ret != -EALREADY)
		traffic_fail(in->t, "cancel said: %s", weft_strerror(ret));
	if (ret)
		return;
	/* Another receive must take its message; the assignment is open again. */
	plan_add(in, (rx->mask & 0xfull << 40) ? (uint8_t)(rx->tag >> 40 & 0xf) : WILD);
	in->sealed = false;
}

/* ---- oracle --------------------------------------------------------------------------------- */

/*
 * For one source, what a receive gets does not depend on when things happen: messages in their
 * order, receives in theirs, each message goes to the first receive that is left and matches. (A
 * cancelled receive had no message by then, so it is as if it had never been, and so is a message
 * that its sender has withdrawn.) @want[i] becomes the
 * number + 1 of the message for receive i. @return messages without a receive
 */
static unsigned int oracle(struct inbox *in, uint32_t *want)
{
	struct flow *f = in->flow;
	unsigned int m, i, first = 0, left = 0;
	uint64_t tag;

	for (m = 0; m < f->messages; m++) {
		if (message_any(f, m) || f->gone[m])
			continue;
		tag = message_tag(f, m);
		while (first < in->num_rx && (want[first] || in->rx[first]->state == RX_CANCELLED))
			first++;
		for (i = first; i < in->num_rx; i++)
			if (!want[i] && in->rx[i]->state != RX_CANCELLED &&
			    !((tag ^ in->rx[i]->tag) & in->rx[i]->mask))
				break;
		if (i < in->num_rx)
			want[i] = m + 1;
		else
			left++;
	}
	return left;
}

/*
 * All is posted. Receives that no message will ever match must be cancellable; messages that none
 * asked for are taken by wildcards.
 */
static void settle(struct inbox *in)
{
	uint32_t *want = calloc(in->num_rx + 1, sizeof(*want));
	unsigned int i, n = in->num_rx, left;

	if (!want)
		abort();
	left = oracle(in, want);
	for (i = 0; i < n && !in->t->error[0]; i++) {
		if (want[i] || in->rx[i]->state != RX_POSTED)
			continue;
		if (weft_request_cancel(in->rx[i]->req) || in->rx[i]->state != RX_CANCELLED)
			traffic_fail(in->t,
				     "receive %u of flow %u can't match anything, but can't be "
				     "cancelled",
				     i, in->flow->id);
	}
	for (i = 0; i < left; i++)
		plan_add(in, WILD);
	in->sealed = !left;
	free(want);
}

void inbox_step(struct inbox *in)
{
	const struct traffic_conf *conf = &in->t->conf;
	uint64_t now = sim_now(in->t->sim);
	unsigned int n = (unsigned int)sim_below(&in->rng, 4);
	struct rx *rx;

	if (now < in->idle_until)
		return;
	if (sim_chance(&in->rng, conf->lag)) {
		in->idle_until = now + sim_below(&in->rng, 3 * SIM_MS);
		return;
	}
	for (; n && in->plan_next < in->plan_len && in->outstanding < conf->window &&
	       !in->t->error[0];
	     n--) {
		rx = new_rx(in, in->plan[in->plan_next++]);
		if (!sim_chance(&in->rng, conf->probe) || !probe(rx))
			post(rx);
	}
	/* Receives that wait in vain can fill the window. */
	if (in->flow && in->outstanding >= conf->window && sim_chance(&in->rng, 0.01))
		cancel_one(in);
	if (in->flow && in->num_rx && sim_chance(&in->rng, conf->cancel))
		cancel_one(in);
	/*
	 * Withdrawn messages leave receives that nothing will come for; the rest need not be
	 * posted.
	 */
	if (in->flow && in->done == in->messages && flow_sent(in->flow))
		in->plan_next = in->plan_len;
	if (in->flow && !in->sealed && in->plan_next == in->plan_len)
		settle(in);
}

void inbox_withdrawn(struct inbox *in)
{
	in->messages--;
	/* The receive that was to get it gets another, or none. */
	in->sealed = false;
}

bool inbox_finished(struct inbox *in)
{
	return in->done == in->messages && !in->outstanding && (!in->flow || in->sealed);
}

void inbox_check(struct inbox *in)
{
	uint32_t *want, last[256] = {0};
	unsigned int i, flow;

	if (!in->flow) {
		/* Any source: only the order of each flow is certain. */
		for (i = 0; i < in->num_rx; i++) {
			flow = (unsigned int)(in->rx[i]->got >> 48 & 0xff);
			if ((uint32_t)in->rx[i]->got + 1 <= last[flow])
				traffic_fail(in->t, "wildcard receives got flow %u out of order",
					     flow);
			last[flow] = (uint32_t)in->rx[i]->got + 1;
		}
		return;
	}
	want = calloc(in->num_rx + 1, sizeof(*want));
	if (!want)
		abort();
	oracle(in, want);
	for (i = 0; i < in->num_rx; i++)
		if (in->rx[i]->state == RX_DONE && (uint32_t)in->rx[i]->got + 1 != want[i])
			traffic_fail(in->t, "receive %u of flow %u got message %u, not %d", i,
				     in->flow->id, (uint32_t)in->rx[i]->got, (int)want[i] - 1);
	free(want);
}

void inbox_free(struct inbox *in)
{
	unsigned int i;

	for (i = 0; i < in->num_rx; i++) {
		if (in->rx[i]->buf)
			buf_free(in->rx[i]->buf);
		free(in->rx[i]);
	}
	free(in->rx);
	free(in->plan);
}
