/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/stray.h"

#include <stdbool.h>
#include <stdint.h>

#include <rte_arp.h>
#include <rte_common.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "engine/build.h"
#include "engine/handshake.h"
#include "engine/neighbour.h"
#include "engine/outstanding.h"
#include "frame/arp.h"
#include "frame/frame_port.h"

/* ---------------------------------------------------------------- other workers of the port */

/* A hint is dropped if N or more frames wait in the worker's ring: old hints are of no use. */
#define HINTS_MAX 32u

static bool enqueue_frame(struct raw_iface *iface, struct rte_mbuf *m, unsigned int queue,
			  uint32_t max)
{
	struct rte_ring *ring = iface->port->steering.handed[queue];

	if (rte_ring_count(ring) >= max)
		return false;
	raw_ref_chain(m); /* the caller frees its own reference */
	if (rte_ring_enqueue(ring, m) != 0) {
		rte_pktmbuf_free(m);
		return false;
	}
	return true;
}

/*
 * The NIC's hash brings frames of other workers here: until the connection changes its port, or
 * always if no better port was found. A frame that came by a ring is not handed over again.
 * @return false: no worker of this process has the port, or its ring is full
 */
static bool hand_over(struct raw_iface *iface, struct rte_mbuf *m, uint16_t udp_port)
{
	const struct weft_steering *s = &iface->port->steering;
	int owner;

	if (!s->handed || iface->rx_elsewhere || udp_port == 0)
		return false;
	owner = weft_port_owner((uint16_t)(iface->rx_filter.udp_port - s->queue), s->queues,
				udp_port);
	if (owner < 0 || owner == s->queue)
		return false;
	if (enqueue_frame(iface, m, (unsigned int)owner, iface->hand_max)) {
		raw_count(iface, RAW_STEER_HANDED);
		return true;
	}
	raw_count(iface, RAW_STEER_FULL);
	return false;
}

/*
 * ARP comes to the first queue only, and is of interest to all workers if one of them has requested
 * that host. The ring of a queue without a worker is never emptied: a few hints wait in it, and
 * dropping further ones is no loss.
 */
static void hand_hint(struct raw_iface *iface, struct rte_mbuf *m, const struct rte_arp_hdr *arp)
{
	const struct weft_steering *s = &iface->port->steering;
	struct weft_arp_hint hint;

	if (!s->handed || !weft_arp_hint(&iface->arp, arp, &hint) ||
	    !weft_arp_has(&iface->arp, hint.ip))
		return;
	for (unsigned int q = 0; q < s->queues; q++)
		if (q != s->queue &&
		    enqueue_frame(iface, m, q, RTE_MIN(iface->hand_max / 2 + 1, HINTS_MAX)))
			raw_count(iface, RAW_STEER_HINTS);
}

/* ---------------------------------------------------------------- frames of no connection */

void raw_stray_input(struct raw_iface *iface, const struct weft_frame_view *v)
{
	uint32_t id = weft_get32(v->hdr->dst_conn), index = id & 0xffff;

	if (v->type == WEFT_FRAME_HELLO) {
		raw_hello_input(iface, v);
		return;
	}
	if (v->type == WEFT_FRAME_RESET) {
		raw_reset_input(iface, v);
		return;
	}
	if (v->type == WEFT_FRAME_CHALLENGE && v->flags & WEFT_FRAME_F_CRC32C) {
		raw_challenge_input(iface, v);
		return;
	}
	raw_count(iface,
		  index < iface->refs_len && iface->refs[index].conn && iface->refs[index].id != id
			  ? RAW_DROP_STALE
			  : RAW_DROP_UNKNOWN);
	if (v->type != WEFT_FRAME_BYE_ACK)
		raw_reset_send(iface, v, WEFT_RESET_UNKNOWN);
}

void raw_invalid_input(struct raw_iface *iface, enum weft_rx_verdict g,
		       const struct weft_frame_view *v, struct rte_mbuf *m)
{
	static const enum raw_counter reason[WEFT_VERDICT_COUNT] = {
		[WEFT_VERDICT_NOT_OURS] = RAW_DROP_NOT_OURS,
		[WEFT_VERDICT_BAD_LENGTH] = RAW_DROP_BAD_LENGTH,
		[WEFT_VERDICT_BAD_IP] = RAW_DROP_BAD_IP,
		[WEFT_VERDICT_BAD_MAGIC] = RAW_DROP_BAD_MAGIC,
		[WEFT_VERDICT_BAD_VERSION] = RAW_DROP_BAD_VERSION,
		[WEFT_VERDICT_BAD_TYPE] = RAW_DROP_BAD_TYPE,
		[WEFT_VERDICT_BAD_MESSAGE] = RAW_DROP_BAD_MESSAGE,
		[WEFT_VERDICT_BAD_CSUM] = RAW_DROP_BAD_CSUM,
	};

	if (g == WEFT_VERDICT_ARP) {
		if (iface->rx_elsewhere) {
			iface->counter[RAW_STEER_ELSEWHERE]--; /* a hint is no misdirected frame */
			raw_hint_arp(iface, v->arp); /* the first queue's worker answers */
			return;
		}
		hand_hint(iface, m, v->arp);
		raw_arp_input(iface, v);
		return;
	}
	if (g == WEFT_VERDICT_ICMP) {
		raw_hint_icmp(iface, v);
		return;
	}
	if (g == WEFT_VERDICT_NOT_OURS && hand_over(iface, m, v->dst_port))
		return;
	raw_count(iface, reason[g]);
	if (g == WEFT_VERDICT_BAD_VERSION && v->type == WEFT_FRAME_HELLO)
		raw_reset_send(iface, v, WEFT_RESET_VERSION);
}
