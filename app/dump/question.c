/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of hosts before they have a lane, ARP and HELLO, and whether they are answered. */

#include <rte_arp.h>

#include "dump/trace.h"

static struct trace_question *find(struct trace *t, bool hello, uint64_t from, uint64_t to)
{
	struct trace_question *q;
	unsigned int i;

	for (i = 0; i < t->num_questions; i++) {
		q = &t->question[i];
		if (q->hello == hello && q->from == from && q->to == to)
			return q;
	}
	return NULL;
}

static void add_request(struct trace *t, const struct dump_frame *frame, bool hello, uint64_t from,
			uint64_t to, uint64_t time)
{
	struct trace_question *q = find(t, hello, from, to);

	/* A host receives requests of others (broadcasts), but not the answers to them. */
	if (frame->way == DUMP_IN || (!q && t->num_questions == TRACE_QUESTIONS))
		return;
	if (!q) {
		q = &t->question[t->num_questions++];
		*q = (struct trace_question){.hello = hello, .from = from, .to = to};
	}
	if (!q->unanswered++)
		q->since = time;
}

static void answered(struct trace *t, bool hello, uint64_t from, uint64_t to)
{
	struct trace_question *q = find(t, hello, to, from);

	if (q)
		q->unanswered = 0;
}

static void arp(struct trace *t, const struct dump_frame *frame, const struct rte_arp_hdr *a,
		uint64_t time)
{
	uint32_t from = weft_be32(a->arp_data.arp_sip), to = weft_be32(a->arp_data.arp_tip);

	if (a->arp_opcode == RTE_BE16(RTE_ARP_OP_REPLY))
		answered(t, false, from, to);
	else if (from && from != to) /* probes and announcements get no answer */
		add_request(t, frame, false, from, to, time);
}

void trace_question(struct trace *t, const struct dump_frame *frame, const struct dump_view *v,
		    uint64_t time)
{
	uint64_t from, to;

	if (v->what == DUMP_ARP)
		return arp(t, frame, v->arp, time);
	from = trace_address(v->src_ip, v->src_mac);
	to = trace_address(v->dst_ip, v->dst_mac);
	if (v->hdr->type == WEFT_FRAME_HELLO)
		add_request(t, frame, true, from, to, time);
	else if (v->hdr->type == WEFT_FRAME_HELLO_ACK || v->hdr->type == WEFT_FRAME_HELLO_RETRY ||
		 v->hdr->type == WEFT_FRAME_RESET)
		answered(t, true, from, to);
}
