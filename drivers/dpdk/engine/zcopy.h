/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/zcopy.h
 * User memory in frames: the lifetime of zero-copy messages. engine/tx.c sends them.
 */
#ifndef WEFT_ENGINE_ZCOPY_H
#define WEFT_ENGINE_ZCOPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_mbuf.h>

#include "engine/conn_tx.h"
#include "engine/iface.h"
#include "lane.h"

/* A zero-copy message in progress. shinfo counts the mbufs that refer to user memory. */
struct raw_zc {
	struct rte_mbuf_ext_shared_info shinfo;
	struct raw_iface *iface;
	struct weft_lane_comp *comp; /* NULL = already reported */
	struct weft_mem_lane *mem;   /* with comp; NULL = the port needs no registration */
	int status;
	bool waiting;                 /* for the port: is in iface->zc.waiting */
	LIST_ENTRY(raw_zc) wait_link; /* of that */
	LIST_ENTRY(raw_zc) conn_link; /* of raw_tx.zc, or iface->zc.orphans, while comp is set */
	STAILQ_ENTRY(raw_zc) link;    /* of iface->zc.free or iface->zc.released */
};

/* shinfo.free_cb: the last mbuf that refers to the user's memory is freed. */
void raw_zc_released(void *addr, void *opaque);
/* A new message to be sent. @return NULL: no memory */
struct raw_zc *raw_zc_get(struct raw_iface *iface);
/* The message is not sent, and nothing refers to it. */
void raw_zc_put(struct raw_iface *iface, struct raw_zc *zc);
unsigned int raw_zc_complete(struct raw_iface *iface);
void raw_zc_cancel(struct raw_iface *iface, struct raw_tx *tx);
void raw_zc_fail(struct raw_tx *tx, int status);
void raw_zc_destroy(struct raw_iface *iface);
unsigned int raw_zc_poll(struct raw_iface *iface);
void raw_zc_wait(struct raw_iface *iface, struct raw_zc *zc);

/* The zero-copy message in a frame, or NULL. */
static inline struct raw_zc *raw_zc_of(const struct rte_mbuf *m)
{
	const struct rte_mbuf *user = m->next;

	return user != NULL && RTE_MBUF_HAS_EXTBUF(user) ? user->shinfo->fcb_opaque : NULL;
}

/*
 * The lane has released a frame. A port that copies, or frees at once, has released it, too. The
 * PMD of a NIC may hold its mbufs until more is sent, while the user waits for the memory.
 */
static inline void raw_zc_slot_freed(struct raw_iface *iface, struct raw_zc *zc)
{
	if (zc && iface->port->flags & WEFT_FRAME_PORT_REG &&
	    rte_mbuf_ext_refcnt_read(&zc->shinfo) != 0)
		raw_zc_wait(iface, zc);
}

#endif /* WEFT_ENGINE_ZCOPY_H */
