/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads, writes and atomics that a lane executes natively: the capture of the process that posts
 * them has their records. A read of a rendezvous moves bytes of the message whose sender's request
 * it names. The end of a write is seen by its PUT_DONE.
 */

#include "dump/message.h"

static void of_message(struct trace *t, const struct trace_flow *f, const struct dump_view *v,
		       uint64_t time, bool over)
{
	const struct weft_record_native *n = (const void *)v->body;
	uint64_t ref = (uint64_t)weft_get32(n->ref_index) << 32 | weft_get32(n->ref_generation);
	uint32_t length = weft_get32(v->record->length);
	struct msg *m = NULL;
	struct msg_lane *lane;

	if (!ref || f->other == TRACE_NONE)
		return;
	m = msg_find(t, f->other, MSG_BY_SREQ, 0, ref);
	if (!m) {
		t->follow->strays++;
		return;
	}
	if (!m->answered)
		m->answered = time;
	flight_note(t->follow, m,
		    &(struct msg_event){.time = time,
					.offset = weft_get64(n->local),
					.flow = f->other,
					.bytes = length,
					.way = over ? DUMP_IN : DUMP_OUT,
					.kind = over ? LINK_BYTES : LINK_ANSWER});
	if (!over)
		return;
	lane = msg_lane(m, f->other, time);
	lane->frames++;
	lane->bytes += length;
	lane->last = time;
	m->bytes += length;
	m->done = time;
	msg_touch(t, m, time);
}

void follow_native(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		   const struct dump_view *v, uint64_t time)
{
	bool over = weft_get16(v->record->flags) & WEFT_RECORD_F_DONE;

	if (!f->first)
		f->first = time;
	f->last = time;
	f->out = (struct trace_port){frame->file, frame->iface, true};
	if (!over) {
		f->natives[v->record->kind]++;
		f->native_bytes[v->record->kind] += weft_get32(v->record->length);
	}
	if (v->record->kind == WEFT_RECORD_READ && v->body_cap >= sizeof(struct weft_record_native))
		of_message(t, f, v, time, over);
}
