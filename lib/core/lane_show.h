/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/lane_show.h
 * The library calls a lane by these wrappers. For lanes whose frames no capture can see they make
 * message records (lane_tap.h). While no such lane is recorded they cost one branch per message.
 */
#ifndef WEFT_LANE_SHOW_H
#define WEFT_LANE_SHOW_H

#include <stdatomic.h>

#include "lane.h"
#include "lane_tap.h"

/** The fields are those of struct weft_record_native. */
struct weft_shown_native {
	enum weft_record_kind kind;
	uint64_t length, offset, key, local, compare;
	uint32_t ref_index, ref_generation;
};

int weft_shown_short(struct weft_lane_ep *lane_ep, uint8_t id, const void *hdr, size_t hdr_len,
		     const void *payload, size_t length);
ssize_t weft_shown_bcopy(struct weft_lane_ep *lane_ep, uint8_t id, weft_lane_pack_cb pack,
			 void *arg);
int weft_shown_zcopy(struct weft_lane_ep *lane_ep, uint8_t id, const void *hdr, size_t hdr_len,
		     const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		     struct weft_lane_comp *comp);
void weft_shown_recv(struct weft_lane_ep *lane_ep, uint8_t id, const void *data, size_t length);
void weft_shown_failed(const struct weft_lane_ep *lane_ep, const char *reason);
void weft_shown_native(struct weft_lane_ep *lane_ep, const struct weft_shown_native *n, bool over);

/** Interfaces whose messages a capture or a flight recorder records. */
extern _Atomic unsigned int weft_lanes_shown;

static inline bool weft_lanes_are_shown(void)
{
	/* Relaxed: only a hint; the lane's state belongs to its worker's thread. */
	return __builtin_expect(atomic_load_explicit(&weft_lanes_shown, memory_order_relaxed) != 0,
				0);
}

/**
 * Let captures record the messages of an interface that has no frames.
 * @return false: no memory, too many interfaces, or @p ops refuse
 */
bool weft_lane_show_open(struct weft_lane_iface *iface, const struct weft_lane_tap_ops *ops,
			 struct weft_lane_tap_open *params);
bool weft_lane_is_known(const struct weft_lane_iface *iface);
/** To be called before the interface is closed. No effect without weft_lane_show_open(). */
void weft_lane_show_close(const struct weft_lane_iface *iface);

static inline int weft_lane_short(struct weft_lane_ep *lane_ep, uint8_t id, const void *hdr,
				  size_t hdr_len, const void *payload, size_t length)
{
	if (weft_lanes_are_shown())
		return weft_shown_short(lane_ep, id, hdr, hdr_len, payload, length);
	return lane_ep->ops->am_short(lane_ep, id, hdr, hdr_len, payload, length);
}

static inline ssize_t weft_lane_bcopy(struct weft_lane_ep *lane_ep, uint8_t id,
				      weft_lane_pack_cb pack, void *arg)
{
	if (weft_lanes_are_shown())
		return weft_shown_bcopy(lane_ep, id, pack, arg);
	return lane_ep->ops->am_bcopy(lane_ep, id, pack, arg);
}

static inline int weft_lane_zcopy(struct weft_lane_ep *lane_ep, uint8_t id, const void *hdr,
				  size_t hdr_len, const struct iovec *iov, unsigned int iovcnt,
				  struct weft_mem_lane *mem, struct weft_lane_comp *comp)
{
	if (weft_lanes_are_shown())
		return weft_shown_zcopy(lane_ep, id, hdr, hdr_len, iov, iovcnt, mem, comp);
	return lane_ep->ops->am_zcopy(lane_ep, id, hdr, hdr_len, iov, iovcnt, mem, comp);
}

#endif /* WEFT_LANE_SHOW_H */
