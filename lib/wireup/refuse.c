/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Messages that end something: refusals, failure, close. Also messages that are dropped without a
 * reply.
 */

#include <errno.h>
#include <string.h>

#include "core/config.h"
#include "wireup/wireup.h"

void weft_wireup_bad(struct weft_worker *w, struct weft_lane_ep *lane_ep, const char *why)
{
	char sender[160];

	w->count.wireup_bad++;
	if (weft_log_level < WEFT_LOG_WARN)
		return;
	lane_ep->ops->ep_print(lane_ep, sender, sizeof(sender));
	weft_log_limited(&w->conns->limit_bad, WEFT_LOG_WARN,
			 "%s: dropped a wire-up message from %s: %s", lane_ep->iface->name, sender,
			 why);
}

static void send_error(struct weft_lane_ep *lane_ep, const struct weft_wire_wireup *h,
		       const struct weft_wire_next_sn *next, const char *text)
{
	struct weft_wire_wireup head = *h;
	struct weft_records r = {.len = 0};

	if (next)
		weft_records_add(&r, WEFT_RECORD_NEXT_SN, next, sizeof(*next));
	if (text)
		weft_records_add(&r, WEFT_RECORD_TEXT, text, strnlen(text, 255));
	/* Best effort: the peer repeats its request. */
	weft_wireup_send(lane_ep, &head, r.buf, r.len);
}

/*
 * A duplicate of a message may make a connection that its sender never ends. This end destroys the
 * connection if it has no use.
 */
void weft_wireup_unwanted(struct weft_worker *w, struct weft_lane_ep *lane_ep)
{
	if (!lane_ep->user && lane_ep->iface->attr.features & WEFT_LANE_F_CONTROL)
		weft_lane_ep_destroy(w, lane_ep);
}

static void send_refusal(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			 const struct weft_wire_wireup *req, int status,
			 const struct weft_wire_next_sn *next, const char *text)
{
	struct weft_wire_wireup h = {
		.type = WEFT_WIREUP_ERROR,
		.major = WEFT_WIRE_MAJOR,
		.minor = WEFT_WIRE_MINOR,
		.lane = WEFT_WIREUP_ALL_LANES,
		.conn_sn = req->conn_sn,
		.src_worker = weft_put64(w->id),
		.dst_worker = req->src_worker,
		.dst_ep = req->src_ep,
		.dst_secret = req->src_secret,
		.status = weft_put16((uint16_t)-status),
	};

	weft_log_limited(&w->conns->limit_refused, WEFT_LOG_INFO,
			 "refused a connection over %s: %s", lane_ep->iface->name, text);
	send_error(lane_ep, &h, next, text);
	weft_wireup_unwanted(w, lane_ep);
}

void weft_wireup_refuse(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			const struct weft_wire_wireup *req, int status, const char *text)
{
	send_refusal(w, lane_ep, req, status, NULL, text);
}

void weft_wireup_refuse_stale(struct weft_worker *w, struct weft_lane_ep *lane_ep,
			      const struct weft_wire_wireup *req, const struct weft_peer *peer,
			      const char *text)
{
	struct weft_wire_next_sn next = {.conn_sn = weft_put32(peer->next_sn)};

	send_refusal(w, lane_ep, req, -ESTALE, &next, text);
}

void weft_wireup_send_failed(struct weft_ep *ep, int status, const char *text)
{
	struct weft_wire_wireup h;
	unsigned int i;

	if (weft_get32(ep->remote.generation) == 0)
		return;
	weft_wireup_head(ep, WEFT_WIREUP_ERROR, WEFT_WIREUP_ALL_LANES, &h);
	h.status = weft_put16((uint16_t)(status < 0 && status > -4096 ? -status : EIO));
	for (i = 0; i < ep->num_lanes; i++) {
		if (ep->lanes[i].up && ep->lanes[i].lane_ep->up) {
			send_error(ep->lanes[i].lane_ep, &h, NULL, text);
			return;
		}
	}
	if (ep->wireup && ep->wireup->control && ep->wireup->boot)
		send_error(ep->wireup->boot, &h, NULL, text);
}

int weft_wireup_send_close(struct weft_ep *ep, enum weft_wireup_type type)
{
	struct weft_wire_wireup h;

	weft_wireup_head(ep, type, 0, &h);
	return weft_lane_any(ep) ? weft_wireup_send(weft_lane_any(ep), &h, NULL, 0) : -ENOTCONN;
}
