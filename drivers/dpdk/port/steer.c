/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow rules: frames to a queue's UDP port go to that queue. rte_flow_validate() checks support, as
 * there is no other capability.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_flow.h>

#include "port/priv.h"

struct rule {
	struct rte_flow_attr attr;
	struct rte_flow_item_udp spec, mask;
	struct rte_flow_action_queue queue;
	struct rte_flow_item items[5];
	struct rte_flow_action actions[2];
};

static void make_rule(struct rule *r, bool vlan, uint16_t udp_port, uint16_t mask, uint16_t queue)
{
	int i = 0;

	memset(r, 0, sizeof(*r));
	r->attr.ingress = 1;
	r->spec.hdr.dst_port = rte_cpu_to_be_16(udp_port);
	r->mask.hdr.dst_port = rte_cpu_to_be_16(mask);
	r->queue.index = queue;
	r->items[i++].type = RTE_FLOW_ITEM_TYPE_ETH;
	if (vlan)
		r->items[i++].type = RTE_FLOW_ITEM_TYPE_VLAN;
	r->items[i++].type = RTE_FLOW_ITEM_TYPE_IPV4;
	r->items[i].type = RTE_FLOW_ITEM_TYPE_UDP;
	r->items[i].spec = &r->spec;
	r->items[i++].mask = &r->mask;
	r->items[i].type = RTE_FLOW_ITEM_TYPE_END;
	r->actions[0].type = RTE_FLOW_ACTION_TYPE_QUEUE;
	r->actions[0].conf = &r->queue;
	r->actions[1].type = RTE_FLOW_ACTION_TYPE_END;
}

bool weft_port_can_steer(const struct weft_port_dev *d, uint16_t queue)
{
	struct rte_flow_error error = {0};
	struct rule r;

	make_rule(&r, d->vlan, (uint16_t)(d->base_udp_port + queue), 0xffff, queue);
	return rte_flow_validate(d->port_id, &r.attr, r.items, r.actions, &error) == 0;
}

/*
 * The ports of connections that this queue opens: one rule for all if the NIC supports masks, else
 * one rule each for a few ports. Without rules their frames arrive at another queue and are handed
 * over.
 */
static void steer_range(struct weft_port *p)
{
	struct weft_port_range range =
		weft_port_range(p->dev->base_udp_port, p->queue, p->dev->num_queues);
	struct rte_flow_error error = {0};
	struct rule r;
	uint16_t i;

	make_rule(&r, p->dev->vlan, range.first, range.mask, p->queue);
	p->flow[1] = rte_flow_create(p->port_id, &r.attr, r.items, r.actions, &error);
	if (p->flow[1])
		return;
	p->fp.steering.range_max = WEFT_FRAME_PATHS_MAX;
	for (i = 0; i < WEFT_FRAME_PATHS_MAX; i++) {
		make_rule(&r, p->dev->vlan, (uint16_t)(range.first + i), 0xffff, p->queue);
		p->flow[1 + i] = rte_flow_create(p->port_id, &r.attr, r.items, r.actions, &error);
	}
}

int weft_port_steer(struct weft_port *p, char *why, size_t why_len)
{
	struct rte_flow_error error = {0};
	struct rule r;

	if (!p->dev->spread || p->dev->spread->hashed)
		return 0;
	make_rule(&r, p->dev->vlan, p->fp.udp_port, 0xffff, p->queue);
	p->flow[0] = rte_flow_create(p->port_id, &r.attr, r.items, r.actions, &error);
	if (p->flow[0]) {
		steer_range(p);
		return 0;
	}
	snprintf(why, why_len, "port %u (%s) can't steer UDP port %u to queue %u (%s)", p->port_id,
		 p->dev->name, p->fp.udp_port, p->queue,
		 error.message ? error.message : rte_strerror(rte_errno));
	return rte_errno ? -rte_errno : -ENOTSUP;
}

void weft_port_unsteer(struct weft_port *p)
{
	struct rte_flow_error error;

	for (size_t i = 0; i < RTE_DIM(p->flow); i++) {
		if (p->flow[i] && !weft_port_is_taken(p->dev))
			rte_flow_destroy(p->port_id, p->flow[i], &error);
		p->flow[i] = NULL;
	}
}
