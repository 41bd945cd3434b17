/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>

#include "msg/msg.h"

/*
 * A message of n bytes may cost n * 1.1 + 256 bytes. Envelope and payload up to the last size share
 * a slot; the steps are small enough for the bound. malloc() would do nearly as well in memory, but
 * not in time when 10^5 envelopes come and go.
 */
static const uint16_t slot_payload[WEFT_MSG_SLOTS] = {0, 8, 48, 96, 160, 208, 256};

#define CHUNK_SIZE (64u << 10)

static_assert(sizeof(struct weft_message) <= 200, "payload x 1.1 + 256 bytes per message");

static size_t slot_size(unsigned int i)
{
	return sizeof(struct weft_message) + slot_payload[i];
}

void weft_message_pool_fini(struct weft_message_pool *pool)
{
	void *chunk;

	while ((chunk = pool->chunks)) {
		pool->chunks = *(void **)chunk;
		free(chunk);
	}
}

/* Cut a new chunk into slots of one size. */
static int add_chunk(struct weft_message_pool *pool, unsigned int slot)
{
	size_t size = slot_size(slot);
	uint8_t *chunk = malloc(CHUNK_SIZE);

	if (!chunk)
		return -ENOMEM;
	*(void **)chunk = pool->chunks;
	pool->chunks = chunk;
	pool->slot_bytes += CHUNK_SIZE;
	for (uint8_t *p = chunk + 16; p + size <= chunk + CHUNK_SIZE; p += size) {
		struct weft_message *msg = (void *)p;

		msg->link.le_next = pool->free[slot];
		pool->free[slot] = msg;
	}
	return 0;
}

static unsigned int slot_for(uint64_t total)
{
	unsigned int i = 0;

	while (slot_payload[i] < total)
		i++;
	return i;
}

struct weft_message *weft_message_alloc(struct weft_msg_worker *mw, struct weft_msg_ep *me,
					uint64_t total, bool with_data)
{
	struct weft_message_pool *pool = &mw->messages;
	bool in_slot = with_data && total <= slot_payload[WEFT_MSG_SLOTS - 1];
	unsigned int slot = in_slot ? slot_for(total) : 0;
	struct weft_message *msg = pool->free[slot];
	uint8_t *data = NULL;

	if (!msg) {
		if (add_chunk(pool, slot))
			return NULL;
		msg = pool->free[slot];
	}
	if (in_slot) {
		data = (uint8_t *)(msg + 1);
	} else if (with_data) {
		data = malloc(total);
		if (!data)
			return NULL;
	}
	pool->free[slot] = msg->link.le_next;
	msg->mw = mw;
	msg->me = me;
	msg->recv = NULL;
	msg->total = total;
	msg->source_id = me->ep->remote_id;
	msg->data = data;
	weft_ivals_init(&msg->got);
	msg->error = 0;
	msg->flags = 0;
	msg->slot = (uint8_t)slot;
	pool->num++;
	if (with_data) {
		pool->bytes += total;
		if (pool->bytes > pool->bytes_peak)
			pool->bytes_peak = pool->bytes;
	}
	return msg;
}

void weft_message_free_data(struct weft_message *msg)
{
	if (!msg->data)
		return;
	msg->mw->messages.bytes -= msg->total;
	if (msg->data != (uint8_t *)(msg + 1))
		free(msg->data);
	msg->data = NULL;
}

void weft_message_free(struct weft_message *msg)
{
	struct weft_message_pool *pool = &msg->mw->messages;

	weft_message_free_data(msg);
	if (msg->flags & WEFT_MSG_RTS)
		free(msg->rts.keys);
	else
		weft_rx_forget(msg->me, &msg->got);
	pool->num--;
	msg->link.le_next = pool->free[msg->slot];
	pool->free[msg->slot] = msg;
}

void weft_message_set_offer(struct weft_message *msg, const struct weft_rndv_offer *offer)
{
	msg->flags |= WEFT_MSG_RTS;
	msg->sreq = offer->sreq;
	msg->rts.flags = offer->flags;
	msg->rts.withdrawn = false;
	msg->rts.keys = NULL;
	if (!offer->lanes)
		return;
	/* Without memory the keys are forgotten, and the data comes another way. */
	msg->rts.keys = malloc(sizeof(*offer));
	if (msg->rts.keys)
		*msg->rts.keys = *offer;
}

void weft_message_get_offer(const struct weft_message *msg, struct weft_rndv_offer *offer)
{
	if (msg->rts.keys) {
		*offer = *msg->rts.keys;
		return;
	}
	offer->sreq = msg->sreq;
	offer->flags = msg->rts.flags;
	offer->lanes = 0;
}

/* ------------------------------------------------------------------ messages by sequence */

/* Which messages stay open is the peer's choice, so it must not know who meets whom. */
static struct weft_message_list *bucket_of(const struct weft_msg_ep *me, uint32_t seq)
{
	return &me->rx_table[weft_match_bucket(&me->mw->match, seq, me->rx_table_bits)];
}

struct weft_message *weft_rx_lookup(const struct weft_msg_ep *me, uint32_t seq)
{
	struct weft_message *msg;

	if (!me->rx_open)
		return NULL;
	LIST_FOREACH(msg, bucket_of(me, seq), link) {
		if (msg->seq == seq)
			return msg;
	}
	return NULL;
}

static int table_grow(struct weft_msg_ep *me)
{
	size_t old_n = me->rx_table ? (size_t)1 << me->rx_table_bits : 0;
	unsigned int bits = old_n ? me->rx_table_bits + 2 : 4;
	struct weft_message_list *old = me->rx_table, *table;
	struct weft_message *msg;

	table = calloc((size_t)1 << bits, sizeof(*table));
	if (!table)
		return old ? 0 : -ENOMEM; /* a crowded table works too */
	me->rx_table = table;
	me->rx_table_bits = bits;
	for (size_t i = 0; i < old_n; i++) {
		while ((msg = LIST_FIRST(&old[i]))) {
			LIST_REMOVE(msg, link);
			LIST_INSERT_HEAD(bucket_of(me, msg->seq), msg, link);
		}
	}
	free(old);
	return 0;
}

int weft_rx_hash(struct weft_msg_ep *me, struct weft_message *msg)
{
	if ((!me->rx_table || me->rx_open >> me->rx_table_bits >= 2) && table_grow(me))
		return -ENOMEM;
	LIST_INSERT_HEAD(bucket_of(me, msg->seq), msg, link);
	msg->flags |= WEFT_MSG_HASHED;
	me->rx_open++;
	return 0;
}

void weft_rx_unhash(struct weft_message *msg)
{
	if (!(msg->flags & WEFT_MSG_HASHED))
		return;
	LIST_REMOVE(msg, link);
	msg->flags &= ~WEFT_MSG_HASHED;
	msg->me->rx_open--;
}

void weft_rx_hold_probed(struct weft_message *msg)
{
	LIST_INSERT_HEAD(msg->me ? &msg->me->probed : &msg->mw->probed, msg, link);
	msg->flags |= WEFT_MSG_HELD;
}

void weft_rx_free(struct weft_message *msg)
{
	weft_rx_unhash(msg);
	if (msg->flags & WEFT_MSG_HELD)
		LIST_REMOVE(msg, link);
	if (!msg->me)
		weft_credit_left(msg, false);
	weft_message_free(msg);
}
