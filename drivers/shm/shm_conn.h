/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file shm/shm_conn.h
 * Begin and end of connections.
 */
#ifndef WEFT_SHM_CONN_H
#define WEFT_SHM_CONN_H

#include "shm/shm.h"

int shm_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
		   struct weft_lane_ep **out);
void shm_ep_destroy(struct weft_lane_ep *base);
/** Free destroyed lane_eps. Not within callbacks. */
void shm_reap(struct shm_iface *s);
/** End a lane_ep, and report EV_DOWN, or EV_GONE with status 0. Only within progress(). */
void shm_end(struct shm_ep *lane_ep, int status, const char *text);
/** Try again to make connections, and end those that have failed. @return events */
unsigned int shm_making(struct shm_iface *s, uint64_t now_ns);
/** @return events */
unsigned int shm_accept(struct shm_iface *s, uint64_t now_ns);
/** Handle an event of the socket or the process of a lane_ep. @return events */
unsigned int shm_readable(struct shm_fd *from);
/** @return events */
unsigned int shm_received(struct shm_iface *s);

#endif /* WEFT_SHM_CONN_H */
