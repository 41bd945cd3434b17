/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/stray.h"

#include "engine/build.h"
#include "engine/handover.h"
#include "engine/handshake.h"
#include "engine/neighbour.h"

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
			iface->counter[RAW_STEER_ELSEWHERE]--; /* not a frame for this worker */
			raw_hint_arp(iface, v->arp); /* the first queue has done the rest */
			return;
		}
		raw_hand_hint(iface, m, v->arp);
		raw_arp_input(iface, v);
		return;
	}
	if (g == WEFT_VERDICT_ICMP) {
		raw_hint_icmp(iface, v);
		return;
	}
	if (g == WEFT_VERDICT_NOT_OURS && raw_hand_over(iface, m, v->dst_port))
		return;
	raw_count(iface, reason[g]);
	if (g == WEFT_VERDICT_BAD_VERSION && v->type == WEFT_FRAME_HELLO)
		raw_reset_send(iface, v, WEFT_RESET_VERSION);
}
