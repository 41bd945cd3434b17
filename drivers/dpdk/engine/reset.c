/* SPDX-License-Identifier: BSD-3-Clause */

/* RESET frames that end connections. */

#include <errno.h>
#include <stdio.h>

#include "engine/conn.h"
#include "engine/conn_table.h"
#include "engine/connect.h"
#include "engine/hint.h"
#include "engine/iface.h"
#include "engine/peer.h"
#include "frame/frame.h"
#include "frame/parse.h"

static const char *reset_text(uint16_t reason)
{
	switch (reason) {
	case WEFT_RESET_IFACE:
		return "the worker whose address this is has gone (its process ended or was "
		       "restarted)";
	case WEFT_RESET_VERSION:
		return "it speaks another version of the lane protocol";
	case WEFT_RESET_REFUSED:
		return "it refused the connection";
	default:
		return "it does not know this connection any more: it was restarted, or gave the "
		       "connection up";
	}
}

void raw_reset_input(struct raw_iface *iface, const struct weft_frame_view *v)
{
	const struct weft_frame_reset *r = (const struct weft_frame_reset *)v->body;
	uint32_t index = weft_get32(v->hdr->dst_conn) & 0xffff;
	struct raw_conn *c = index < iface->refs_len ? iface->refs[index].conn : NULL;
	uint16_t reason = weft_get16(r->reason);
	char text[320], peer[64];
	bool early;

	if (!c) {
		raw_count(iface, RAW_DROP_RESET);
		return;
	}
	early = c->state == RAW_HELLO;
	if (weft_get32(r->echo_conn) != (early ? c->id : c->remote_id) ||
	    weft_get32(r->echo_token) != (early ? c->token : c->remote_token) ||
	    c->state == RAW_RESOLVE) {
		raw_count(iface, RAW_DROP_RESET);
		return;
	}
	if (c->state == RAW_TIME_WAIT) {
		c->bye_done = true;
		return;
	}
	if (c->state == RAW_DOWN || c->state == RAW_QUIET || reason == WEFT_RESET_BUSY)
		return; /* busy: HELLO is sent again anyway */
	if (c->state == RAW_HALF_OPEN) {
		raw_conn_free(c);
		return;
	}
	if (reason == WEFT_RESET_UNKNOWN && (c->state == RAW_PROBE || c->state == RAW_PATHS ||
					     c->state == RAW_MEASURE || c->state == RAW_READY)) {
		/* The half-open entry at the peer expired while this end did not poll. Nothing was
		 * sent on it: begin again. */
		raw_hs_enter(c, RAW_HELLO);
		return;
	}
	raw_count(iface, RAW_RESET_IN);
	if (reason == WEFT_RESET_VERSION)
		snprintf(text, sizeof(text),
			 "%s: %s answers that %s (%u to %u, this side speaks %u)", iface->base.name,
			 raw_peer_text(c, peer, sizeof(peer)), reset_text(reason), r->version_min,
			 r->version_max, WEFT_FRAME_VERSION);
	else
		snprintf(text, sizeof(text), "%s: %s answers that %s", iface->base.name,
			 raw_peer_text(c, peer, sizeof(peer)), reset_text(reason));
	raw_hint_siblings(c);
	raw_conn_fail(c, early ? -ECONNREFUSED : -ECONNRESET, text);
}
