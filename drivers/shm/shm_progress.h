/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file shm/shm_progress.h
 * Progress of an iface, and sleeping.
 */
#ifndef WEFT_SHM_PROGRESS_H
#define WEFT_SHM_PROGRESS_H

#include "shm/shm.h"

unsigned int shm_progress(struct weft_lane_iface *base, uint64_t now_ns);
void shm_release(struct weft_lane_iface *base, void *desc);
/** Make room in the table for @p num connections. @return 0 or -ENOMEM */
int shm_table_reserve(struct shm_iface *s, uint32_t num);
void shm_table_add(struct shm_ep *lane_ep);
void shm_table_remove(struct shm_ep *lane_ep);

/** Register this process for membarrier() of peers. Until that is done, its sends fence. */
void shm_wait_init(struct shm_iface *s);
/** The iface closes: wait until the thread that shm_wait_init() started has ended. */
void shm_wait_exit(struct shm_iface *s);
/** Set whether sends of a new connection fence. @p peer_fences: the peer has no membarrier() */
void shm_wait_up(struct shm_ep *lane_ep, bool peer_fences);
int shm_wait_fd(struct weft_lane_iface *base);
int shm_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns);
void shm_disarm(struct weft_lane_iface *base);

#endif /* WEFT_SHM_PROGRESS_H */
