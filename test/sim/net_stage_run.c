/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Senders that always have a window of messages under way, and a receiver that demands each one
 * once, by the receive whose turn it is.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net_stage_priv.h"

/* Senders count from 0; answers have tags of their own. */
#define TAG(sender) (1000 + (uint64_t)(sender)->index)
#define TAG_ANSWER(sender) (100000 + (uint64_t)(sender)->index)

static void post(struct net_slot *slot);

/* ---- receiver ------------------------------------------------------------------------------- */

static void answered(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct net_slot *slot = arg;

	if (req)
		weft_request_free(req);
	slot->busy = false;
	if (c->status)
		net_stage_fail(slot->sender->s, "an answer to sender %u: %s", slot->sender->index,
			       weft_strerror(c->status));
}

static void answer(struct net_sender *sender, const struct net_stamp *stamp)
{
	struct net_slot *slot = &sender->answer_out;
	struct weft_completion c = WEFT_INIT(struct weft_completion, .status = 0);
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = answered, .cb_arg = slot);
	struct weft_request *req;

	memcpy(slot->buf, stamp, sizeof(*stamp));
	slot->busy = true;
	c.status =
		weft_tag_send(sender->back, slot->buf, sender->size, TAG_ANSWER(sender), &p, &req);
	if (c.status != WEFT_INPROGRESS)
		answered(NULL, &c, slot);
}

static void sample(struct net_sender *sender, const struct net_stamp *stamp)
{
	struct net_stage *s = sender->s;

	net_samples_add(sender->bystander ? &s->bystander : &s->message,
			sim_now(s->sim) - stamp->sent_at);
}

/* Large messages may end in another order than they are matched in. */
static void count(struct net_slot *slot, const struct net_stamp *stamp)
{
	struct net_sender *sender = slot->sender;
	struct net_stage *s = sender->s;

	if (stamp->sender != sender->index || stamp->number != slot->turn)
		net_stage_fail(s, "receive %llu of sender %u got message %llu of %llu",
			       (unsigned long long)slot->turn, sender->index,
			       (unsigned long long)stamp->number,
			       (unsigned long long)stamp->sender);
	sender->received++;
	sender->payload += sender->size;
	if (s->conf.request && !sender->bystander)
		answer(sender, stamp);
	else
		sample(sender, stamp);
	if (sender->bystander)
		sender->next_at = sim_now(s->sim) + 20 * SIM_US + sim_below(&s->rng, 20 * SIM_US);
}

static void received(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct net_slot *slot = arg;
	struct net_sender *sender = slot->sender;
	struct net_stamp stamp;

	if (req)
		weft_request_free(req);
	slot->busy = false;
	if (c->status == -ECANCELED)
		return;
	if (c->status || c->length != sender->size) {
		net_stage_fail(sender->s, "a receive from sender %u: %zu bytes, %s", sender->index,
			       c->length, weft_strerror(c->status));
		return;
	}
	memcpy(&stamp, slot->buf, sizeof(stamp));
	if (slot->answer)
		sample(sender, &stamp);
	else
		count(slot, &stamp);
	if (req)
		post(slot);
}

/* Messages that are there already are taken at once. */
static void post(struct net_slot *slot)
{
	struct net_sender *sender = slot->sender;
	struct weft_completion c = WEFT_INIT(struct weft_completion, .status = 0);
	struct weft_op_params p =
		WEFT_INIT(struct weft_op_params, .cb = received, .cb_arg = slot, .completion = &c);
	struct weft_worker *worker = sim_worker(slot->answer ? sender->node : sender->s->node);
	struct weft_request *req;
	int ret;

	do {
		slot->busy = true;
		slot->turn = slot->answer ? 0 : sender->posted++;
		ret = weft_tag_recv(worker, NULL, slot->buf, sender->size,
				    slot->answer ? TAG_ANSWER(sender) : TAG(sender),
				    WEFT_TAG_MASK_FULL, &p, &req);
		if (!ret)
			received(NULL, &c, slot);
	} while (!ret);
	if (ret != WEFT_INPROGRESS)
		net_stage_fail(sender->s, "weft_tag_recv: %s", weft_strerror(ret));
}

/* ---- senders -------------------------------------------------------------------------------- */

static void sent(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct net_slot *slot = arg;

	weft_request_free(req);
	slot->busy = false;
	if (c->status)
		net_stage_fail(slot->sender->s, "a message of sender %u: %s", slot->sender->index,
			       weft_strerror(c->status));
}

static void send_one(struct net_slot *slot)
{
	struct net_sender *sender = slot->sender;
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = sent, .cb_arg = slot);
	struct net_stamp stamp = {.sender = sender->index,
				  .number = sender->sent++,
				  .sent_at = sim_now(sender->s->sim)};
	struct weft_request *req;
	int ret;

	memcpy(slot->buf, &stamp, sizeof(stamp));
	slot->busy = true;
	ret = weft_tag_send(sender->ep, slot->buf, sender->size, TAG(sender), &p, &req);
	if (ret == WEFT_INPROGRESS)
		return;
	slot->busy = false;
	if (ret)
		net_stage_fail(sender->s, "weft_tag_send: %s", weft_strerror(ret));
}

static bool may_send(const struct net_sender *sender)
{
	const struct net_stage *s = sender->s;

	if (sender->bystander)
		return sender->received == sender->sent && sim_now(s->sim) >= sender->next_at;
	if (sim_now(s->sim) < s->started_at + sender->index * s->conf.later_ns)
		return false;
	/* The next request follows the answer: its receive is posted, and the answer is sampled. */
	return !s->conf.request || (sender->received == sender->sent && !sender->answer_out.busy);
}

void net_sender_pump(struct net_sender *sender)
{
	unsigned int i;

	for (i = 0; i < sender->window && !sender->s->error[0] && may_send(sender); i++)
		if (!sender->out[i].busy)
			send_one(&sender->out[i]);
}

bool net_sender_idle(const struct net_sender *sender)
{
	unsigned int i;

	for (i = 0; i < sender->window; i++)
		if (sender->out[i].busy)
			return false;
	return sender->received == sender->sent && !sender->answer_out.busy;
}

/* ---- life ----------------------------------------------------------------------------------- */

static void slot_init(struct net_sender *sender, struct net_slot *slot)
{
	slot->sender = sender;
	slot->buf = calloc(1, sender->size);
	if (!slot->buf)
		abort();
}

void net_sender_prepare(struct net_sender *sender)
{
	unsigned int i;

	for (i = 0; i < sender->window; i++)
		slot_init(sender, &sender->out[i]);
	for (i = 0; i < sender->window + 2; i++) {
		slot_init(sender, &sender->in[i]);
		post(&sender->in[i]);
	}
	if (!sender->s->conf.request || sender->bystander)
		return;
	slot_init(sender, &sender->answer_out);
	slot_init(sender, &sender->answer_in);
	sender->answer_in.answer = true;
	post(&sender->answer_in);
}

void net_sender_free(struct net_sender *sender)
{
	unsigned int i;

	for (i = 0; i < NET_WINDOW; i++)
		free(sender->out[i].buf);
	for (i = 0; i < NET_RECVS; i++)
		free(sender->in[i].buf);
	free(sender->answer_out.buf);
	free(sender->answer_in.buf);
}
