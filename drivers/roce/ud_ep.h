/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ud_ep.h
 * Connections of the control channel.
 */
#ifndef WEFT_UD_EP_H
#define WEFT_UD_EP_H

#include "ud.h"

/** End askers (hosts that get cookies) with address handles that are at least @p age ns old. */
void roce_ud_askers_end(struct ud_iface *u, uint64_t age);
/** Keep a datagram of an initiator, which a RETRY may request again. */
void roce_ud_hold(struct ud_lane_ep *lane_ep, uint8_t am_id, const void *hdr, size_t hdr_len,
		  const void *payload, size_t length);
/** Handle a RETRY: keep its cookie, and send the kept datagram again. */
void roce_ud_retry(struct ud_iface *u, const struct weft_roce_ud_packet *p, uint32_t src_qpn);

/** Find the connection of a datagram, whose source must be its peer. @return NULL = none */
struct ud_lane_ep *roce_ud_find(struct ud_iface *u, const struct weft_roce_ud_packet *p,
				uint32_t src_qpn);

int roce_ud_ep_connect(struct weft_lane_iface *iface, const void *addr, size_t len, void *user,
		       struct weft_lane_ep **lane_ep);
void roce_ud_ep_destroy(struct weft_lane_ep *lane_ep);
bool roce_ud_ep_is_from(struct weft_lane_ep *lane_ep, const void *addr, size_t len);
uint64_t roce_ud_ep_host(const struct weft_lane_ep *lane_ep);
int roce_ud_ep_flush(struct weft_lane_ep *lane_ep, struct weft_lane_comp *comp);
void roce_ud_ep_print(struct weft_lane_ep *lane_ep, char *buf, size_t size);
/** Accept a connection by its first datagram. @return true when the buffer is kept */
bool roce_ud_accept_first(struct ud_iface *u, const struct weft_roce_ud_packet *p, uint32_t src_qpn,
			  struct roce_buf *buf, size_t len);
/** Handle lane_eps whose address resolution has ended. @return events */
unsigned int roce_ud_resolved(struct ud_iface *u);
void roce_ud_lane_ep_over(struct ud_lane_ep *lane_ep, enum weft_lane_event ev, int status,
			  const char *text);
/** End at most one passive lane_ep that has received no datagram for UD_IDLE_NS. */
void roce_ud_idle(struct ud_iface *u);
/** End all lane_eps, and report WEFT_LANE_EV_DOWN. @p what: a phrase for messages */
void roce_ud_fail_all(struct ud_iface *u, int status, const char *what);
/** Free destroyed lane_eps, after all requests that may use their address handles. */
void roce_ud_reap(struct ud_iface *u);

#endif /* WEFT_UD_EP_H */
