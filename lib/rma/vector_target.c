/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics on arrays of typed elements, at the target: see rma/vector.c. */

#include <errno.h>

#include "core/amo.h"
#include "core/context.h"
#include "rma/rma.h"

static int amov_execute(struct weft_msg_ep *me, const struct weft_wire_amov *a, size_t bytes,
			uint8_t *old)
{
	const size_t width = weft_amo_width(a->type);
	const uint8_t *operand = (const uint8_t *)(a + 1);
	const uint8_t *compare = operand + (a->op == WEFT_ATOMIC_READ ? 0 : bytes);
	struct weft_mem_slot *slot;
	uint8_t *word;
	int rc = weft_rma_enter(me, weft_get64(a->key), weft_get64(a->offset), bytes,
				WEFT_MEM_REMOTE_ATOMIC, &slot);

	if (rc)
		return rc;
	word = (uint8_t *)slot->mem->address + weft_get64(a->offset);
	if ((uintptr_t)word % width) {
		me->mw->rma->misaligned++;
		rc = -EINVAL;
	}
	for (size_t i = 0; rc == 0 && i < bytes; i += width)
		weft_amo_do(a->op, a->type, word + i,
			    a->op == WEFT_ATOMIC_READ ? NULL : operand + i,
			    weft_amo_compares(a->op) ? compare + i : NULL, old + i);
	weft_mem_key_leave(slot);
	me->mw->rma->amos += rc ? 0 : bytes / width;
	return rc;
}

void weft_rma_recv_amov(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_amov *a = data;
	uint16_t flags = weft_get16(a->flags);
	size_t bytes = (size_t)weft_get32(a->count) * weft_amo_width(a->type);
	struct {
		struct weft_wire_data head;
		uint8_t old[WEFT_WIRE_AMOV_BYTES];
	} __attribute__((packed)) rep = {.head = {a->ref, a->local}};
	int rc;

	if (!weft_rma_ready(me))
		return;
	/* Replies that cannot be sent occupy memory. */
	if ((flags & WEFT_WIRE_AMO_FETCH) && me->num_ctl >= 2 * WEFT_WIRE_ANSWERS) {
		me->mw->rma->too_many++;
		weft_msg_fail(me, -EPROTO, "the peer requests more than %u answers at a time",
			      2 * WEFT_WIRE_ANSWERS);
		return;
	}
	rc = amov_execute(me, a, bytes, rep.old);
	if (!(flags & WEFT_WIRE_AMO_FETCH))
		weft_rma_counted(me, a->ref, flags, weft_get32(a->number), rc);
	else if (rc)
		weft_rma_refuse(me, a->ref, bytes, rc, 0);
	else
		weft_tx_ctl(me, WEFT_WIRE_AMOV_REP, &rep, sizeof(rep.head) + bytes);
}
