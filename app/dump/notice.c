/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What frames of other protocols reveal about lanes: ICMP errors that quote a packet, ARP requests
 * in another VLAN, and two stations that answer one ARP request.
 */

#include <string.h>

#include <rte_arp.h>

#include "dump/trace.h"

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The quoted packet follows eight bytes; addresses and ports of UDP are in it. */
static void icmp(struct trace *t, const struct dump_frame *frame, const struct dump_view *v,
		 uint64_t time)
{
	const uint8_t *quoted = v->icmp + 8;
	struct trace_icmp one = {.type = v->icmp[0],
				 .code = v->icmp[1],
				 .mtu = (uint16_t)(v->icmp[6] << 8 | v->icmp[7]),
				 .from = v->src_ip,
				 .src = be32(quoted + 12),
				 .dst = be32(quoted + 16),
				 .first = time,
				 .file = frame->file},
			  *i;

	if (frame->way == DUMP_OUT || quoted[0] != 0x45 || quoted[9] != 17)
		return;
	for (i = t->icmp; i < t->icmp + t->num_icmp; i++)
		if (i->type == one.type && i->code == one.code && i->from == one.from &&
		    i->src == one.src && i->dst == one.dst)
			break;
	if (i == t->icmp + TRACE_ICMP)
		return;
	if (i == t->icmp + t->num_icmp) {
		*i = one;
		t->num_icmp++;
	}
	i->count++;
}

static struct trace_owner *owner_of(struct trace *t, uint32_t ip)
{
	unsigned int i;

	for (i = 0; i < t->num_owners; i++)
		if (t->owner[i].ip == ip)
			return &t->owner[i];
	if (t->num_owners == TRACE_OWNERS)
		return NULL;
	t->owner[t->num_owners] = (struct trace_owner){.ip = ip};
	return &t->owner[t->num_owners++];
}

/* Two answers to one request: between two answers of one address no request went out. */
static void answer(struct trace *t, const struct dump_frame *frame, const struct rte_arp_ipv4 *a,
		   uint64_t time)
{
	struct trace_owner *o = owner_of(t, weft_be32(a->arp_sip));

	if (!o || frame->way == DUMP_OUT)
		return;
	if (o->answered && o->file == frame->file && o->answered + TRACE_WAIT_NS > time &&
	    memcmp(o->mac, a->arp_sha.addr_bytes, 6)) {
		memcpy(o->second, a->arp_sha.addr_bytes, 6);
		if (!o->conflicts++)
			o->first = time;
		return;
	}
	memcpy(o->mac, a->arp_sha.addr_bytes, 6);
	o->answered = time;
	o->file = frame->file;
}

static struct trace_tag *tag_of(struct trace *t, const struct dump_frame *frame)
{
	unsigned int i;

	for (i = 0; i < t->num_tags; i++)
		if (t->tag[i].file == frame->file && t->tag[i].iface == frame->iface)
			return &t->tag[i];
	if (t->num_tags == TRACE_TAGS)
		return NULL;
	t->tag[t->num_tags] = (struct trace_tag){.file = frame->file, .iface = frame->iface};
	return &t->tag[t->num_tags++];
}

/* A request for our address that comes in another VLAN than ours: the neighbour is there. */
static void tags(struct trace *t, const struct dump_frame *frame, const struct dump_view *v,
		 uint64_t time)
{
	struct trace_tag *tag = tag_of(t, frame);

	if (!tag)
		return;
	if (frame->way == DUMP_OUT) {
		tag->own = v->vlan;
		tag->ip = weft_be32(v->arp->arp_data.arp_sip);
		tag->has = true;
	} else if (tag->has && v->vlan != tag->own &&
		   weft_be32(v->arp->arp_data.arp_tip) == tag->ip) {
		tag->peer = weft_be32(v->arp->arp_data.arp_sip);
		tag->theirs = v->vlan;
		if (!tag->count++)
			tag->first = time;
	}
}

void trace_notice(struct trace *t, const struct dump_frame *frame, const struct dump_view *v,
		  uint64_t time)
{
	struct trace_owner *o;

	if (v->icmp)
		icmp(t, frame, v, time);
	if (v->what != DUMP_ARP)
		return;
	tags(t, frame, v, time);
	if (v->arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REPLY)) {
		answer(t, frame, &v->arp->arp_data, time);
		return;
	}
	o = owner_of(t, weft_be32(v->arp->arp_data.arp_tip));
	if (o)
		o->answered = 0;
}
