/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages beside the tagged ones: numbered per flow, handled in order and once each, read
 * in the handler, kept for later, dropped or refused.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/pattern.h"
#include "traffic_priv.h"

#define AM_ID 7
#define KEPT_MAX 16

/** Begins every header; the rest of the header is pattern. */
struct head {
	uint32_t flow, number;
};

struct am_tx {
	struct am_flow *a;
	unsigned int number;
	struct buf *buf;
};

/** Data on its way into a buffer. */
struct am_rx {
	struct am_flow *a;
	unsigned int number;
	struct buf *buf;
	size_t cap;
};

/** A message that the handler has kept. */
struct kept {
	struct weft_am_data *desc;
	const void *data; /* NULL: still at the sender */
	unsigned int number;
};

struct am_flow {
	struct flow *f;
	struct sim_rng tx_rng, rx_rng;
	unsigned int messages, next, under_way; /* sender */
	unsigned int expect, receiving;         /* receiver */
	uint8_t *refused;                       /* by the receiver: the sender must hear of it */
	struct kept kept[KEPT_MAX];
	unsigned int num_kept;
};

static struct sim_rng am_dice(const struct am_flow *a, unsigned int number)
{
	return sim_rng_make(sim_seed(a->f->t->sim) ^ 0x616d616d616dull,
			    ((uint64_t)a->f->id << 32) + number);
}

static uint64_t am_content(const struct am_flow *a, unsigned int number)
{
	struct sim_rng r = am_dice(a, number);

	return sim_rand(&r);
}

static size_t am_size(const struct am_flow *a, unsigned int number)
{
	struct sim_rng r = am_dice(a, number);
	size_t max = a->f->t->conf.max_size;

	r.state ^= 1;
	if (sim_chance(&r, 0.1))
		return sim_below(&r, max);
	return sim_below(&r, 1ull << sim_between(&r, 0, 13));
}

static size_t am_head_size(const struct am_flow *a, unsigned int number)
{
	struct sim_rng r = am_dice(a, number);

	r.state ^= 2;
	return sizeof(struct head) +
	       (sim_chance(&r, 0.2) ? sim_below(&r, WEFT_AM_HEADER_MAX - sizeof(struct head) + 1)
				    : 0);
}

static bool am_has_imm(const struct am_flow *a, unsigned int number)
{
	struct sim_rng r = am_dice(a, number);

	r.state ^= 3;
	return sim_chance(&r, 0.5);
}

/* ---- sending -------------------------------------------------------------------------------- */

static void finish(struct am_tx *tx, int status)
{
	struct am_flow *a = tx->a;
	int want = a->refused[tx->number] ? -EPERM : 0;
	const char *wrong = buf_free(tx->buf);

	a->under_way--;
	if (status != want)
		traffic_fail(a->f->t, "active message %u of flow %u: %s, not %s", tx->number,
			     a->f->id, weft_strerror(status), weft_strerror(want));
	if (wrong)
		traffic_fail(a->f->t, "active message %u of flow %u: %s", tx->number, a->f->id,
			     wrong);
	free(tx);
}

static void sent(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	finish(arg, c->status);
	weft_request_free(req);
}

static enum buf_kind dice_kind(const struct traffic_conf *conf, struct sim_rng *r)
{
	return sim_chance(r, conf->iov)       ? BUF_IOV
	       : sim_chance(r, conf->generic) ? BUF_GENERIC
					      : BUF_CONTIG;
}

static void send_one(struct am_flow *a)
{
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = sent);
	struct am_tx *tx = calloc(1, sizeof(*tx));
	unsigned int n = a->next++;
	uint8_t header[WEFT_AM_HEADER_MAX];
	struct weft_am_send_params am =
		WEFT_INIT(struct weft_am_send_params, .id = AM_ID, .header = header,
			  .header_length = am_head_size(a, n));
	const struct head head = {a->f->id, n};
	int ret;

	if (!tx)
		abort();
	memcpy(header, &head, sizeof(head));
	pattern_fill(am_content(a, n), sizeof(head), header + sizeof(head),
		     am.header_length - sizeof(head));
	am.flags = sim_chance(&a->tx_rng, 0.05) ? WEFT_AM_SEND_F_RNDV : 0;
	*tx = (struct am_tx){.a = a, .number = n};
	tx->buf = buf_send(&a->tx_rng, dice_kind(&a->f->t->conf, &a->tx_rng), am_content(a, n),
			   am_size(a, n));
	p.cb_arg = tx;
	p.datatype = buf_datatype(tx->buf);
	if (sim_chance(&a->tx_rng, 0.2))
		p.flags |= WEFT_OP_F_MORE;
	if (sim_chance(&a->tx_rng, 0.2))
		p.flags |= WEFT_OP_F_DELIVERED;
	if (am_size(a, n) <= WEFT_INJECT_MAX && sim_chance(&a->tx_rng, 0.2))
		p.flags |= WEFT_OP_F_INJECT;
	if (am_has_imm(a, n))
		p.flags |= WEFT_OP_F_IMM;
	p.imm = ~am_content(a, n);
	p.channel = (uint16_t)(n % 3);
	p.source_channel = (uint16_t)n;
	a->under_way++;
	ret = weft_am_send(a->f->ep, &am, buf_pointer(tx->buf), buf_count(tx->buf), &p, NULL);
	/* "May be reused when the call returns". */
	memset(header, 0x5a, sizeof(header));
	if (p.flags & WEFT_OP_F_INJECT)
		buf_reuse(tx->buf);
	if (ret != WEFT_INPROGRESS)
		finish(tx, ret);
}

/* ---- receiving ------------------------------------------------------------------------------ */

static void data_came(struct am_rx *rx, const struct weft_completion *c)
{
	struct am_flow *a = rx->a;
	size_t size = am_size(a, rx->number);
	const char *wrong = NULL;

	a->receiving--;
	if (c->length != size || c->status != (size > rx->cap ? -EMSGSIZE : 0))
		traffic_fail(a->f->t,
			     "data of active message %u of flow %u: %zu bytes into %zu gave %zu, "
			     "%s",
			     rx->number, a->f->id, size, rx->cap, c->length,
			     weft_strerror(c->status));
	else
		wrong = buf_verify(rx->buf, am_content(a, rx->number), size);
	if (!wrong)
		wrong = buf_free(rx->buf);
	if (wrong)
		traffic_fail(a->f->t, "data of active message %u of flow %u: %s", rx->number,
			     a->f->id, wrong);
	a->f->t->bytes += size;
	free(rx);
}

static void received(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	data_came(arg, c);
	weft_request_free(req);
}

static void fetch(struct am_flow *a, unsigned int number, struct weft_am_data *desc)
{
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params p =
		WEFT_INIT(struct weft_op_params, .cb = received, .completion = &c);
	struct am_rx *rx = calloc(1, sizeof(*rx));
	int ret;

	if (!rx)
		abort();
	*rx = (struct am_rx){.a = a, .number = number};
	rx->cap = sim_chance(&a->rx_rng, a->f->t->conf.trunc)
			  ? sim_below(&a->rx_rng, am_size(a, number) + 1)
			  : am_size(a, number) + sim_below(&a->rx_rng, 100);
	rx->buf = buf_recv(&a->rx_rng, dice_kind(&a->f->t->conf, &a->rx_rng), rx->cap);
	p.cb_arg = rx;
	p.datatype = buf_datatype(rx->buf);
	a->receiving++;
	ret = weft_am_recv_data(sim_worker(a->f->dst), desc, buf_pointer(rx->buf),
				buf_count(rx->buf), &p, NULL);
	if (ret != WEFT_INPROGRESS) {
		c.status = ret;
		data_came(rx, &c);
	}
}

static void check_data(struct am_flow *a, unsigned int number, const void *data, const char *when)
{
	size_t size = am_size(a, number);
	size_t good = pattern_check(am_content(a, number), 0, data, size);

	if (good != size)
		traffic_fail(a->f->t, "active message %u of flow %u: byte %zu of %zu is wrong %s",
			     number, a->f->id, good, size, when);
}

static int keep(struct am_flow *a, unsigned int number, const struct weft_am_msg *msg)
{
	a->kept[a->num_kept++] = (struct kept){msg->desc, msg->data, number};
	return WEFT_INPROGRESS;
}

static int answer_request(struct am_flow *a, unsigned int number, const struct weft_am_msg *msg)
{
	unsigned int dice = (unsigned int)sim_below(&a->rx_rng, 100);

	if (dice < 10)
		return 0;
	if (dice < 20) {
		a->refused[number] = 1;
		return -EPERM;
	}
	if (dice < 40 && a->num_kept < KEPT_MAX)
		return keep(a, number, msg);
	fetch(a, number, msg->desc);
	return 0;
}

static void check_imm(struct am_flow *a, unsigned int number, const struct weft_am_msg *msg)
{
	bool has = am_has_imm(a, number);

	if (!(msg->flags & WEFT_AM_F_IMM) == has ||
	    msg->imm != (has ? ~am_content(a, number) : 0) || msg->channel != number % 3 ||
	    msg->source_channel != (uint16_t)number)
		traffic_fail(a->f->t, "active message %u of flow %u came with %llx", number,
			     a->f->id, (unsigned long long)msg->imm);
}

static int handler(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	const struct inbox *in = arg;
	struct traffic *t = in->t;
	struct am_flow *a = NULL;
	struct head head = {0};
	size_t rest;

	if (msg->header_length >= sizeof(head))
		memcpy(&head, msg->header, sizeof(head));
	if (head.flow < t->num_flows && t->flows[head.flow].dst == in->node)
		a = t->flows[head.flow].am;
	if (!a || worker != sim_worker(in->node) || head.number >= a->messages ||
	    msg->header_length != am_head_size(a, head.number) ||
	    msg->length != am_size(a, head.number)) {
		traffic_fail(t, "an active message came that nobody sent");
		return 0;
	}
	if (head.number != a->expect)
		traffic_fail(t, "active message %u of flow %u came when %u was next", head.number,
			     head.flow, a->expect);
	a->expect = head.number + 1;
	check_imm(a, head.number, msg);
	t->done++;
	rest = msg->header_length - sizeof(head);
	if (pattern_check(am_content(a, head.number), sizeof(head),
			  (const uint8_t *)msg->header + sizeof(head), rest) != rest)
		traffic_fail(t, "the header of active message %u of flow %u is damaged",
			     head.number, head.flow);
	if (msg->flags & WEFT_AM_F_RNDV)
		return answer_request(a, head.number, msg);
	t->bytes += msg->length;
	check_data(a, head.number, msg->data, "in the handler");
	if (msg->flags & WEFT_AM_F_KEEPABLE && a->num_kept < KEPT_MAX &&
	    sim_chance(&a->rx_rng, 0.3))
		return keep(a, head.number, msg);
	return 0;
}

static void let_go(struct am_flow *a)
{
	unsigned int i = (unsigned int)sim_below(&a->rx_rng, a->num_kept);
	struct kept k = a->kept[i];

	a->kept[i] = a->kept[--a->num_kept];
	if (k.data) {
		check_data(a, k.number, k.data, "after it was kept");
	} else if (sim_chance(&a->rx_rng, 0.8)) {
		fetch(a, k.number, k.desc);
		return;
	}
	if (weft_am_data_release(sim_worker(a->f->dst), k.desc))
		traffic_fail(a->f->t, "kept active message %u of flow %u can't be released",
			     k.number, a->f->id);
}

/* ---- the flow ------------------------------------------------------------------------------- */

void am_listen(struct inbox *in)
{
	int ret = weft_worker_set_am_handler(sim_worker(in->node), AM_ID, handler, in,
					     WEFT_AM_HANDLER_F_PERSISTENT_DATA);

	if (ret)
		traffic_fail(in->t, "weft_worker_set_am_handler: %s", weft_strerror(ret));
}

struct am_flow *am_create(struct flow *f, unsigned int messages)
{
	struct am_flow *a = calloc(1, sizeof(*a));

	if (!a)
		abort();
	a->f = f;
	a->messages = messages;
	a->tx_rng = sim_stream(f->t->sim, 9000 + f->id);
	a->rx_rng = sim_stream(f->t->sim, 11000 + f->id);
	a->refused = calloc(messages + 1, 1);
	if (!a->refused)
		abort();
	return a;
}

void am_step(struct am_flow *a)
{
	unsigned int n = (unsigned int)sim_below(&a->tx_rng, 3);

	for (; a->f->ep && n && a->next < a->messages && a->under_way < a->f->t->conf.window; n--)
		send_one(a);
	if (a->num_kept && sim_chance(&a->rx_rng, 0.1))
		let_go(a);
}

bool am_finished(const struct am_flow *a)
{
	return a->next == a->messages && !a->under_way && a->expect == a->messages &&
	       !a->receiving && !a->num_kept;
}

void am_free(struct am_flow *a)
{
	if (a)
		free(a->refused);
	free(a);
}
