/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/mock_link.h
 * Two more mock drivers, in the manner of RoCE's RC and UD, beside the one of mock/mock_lane.h and
 * on its
 * virtual time:
 *
 *	mlink   lanes that connect to an endpoint (WEFT_LANE_F_TO_EP). Reliable. What is sent to an
 *	        end that is not connected is tried for a while; then the sender's end fails. An end
 *	        that is destroyed notifies no peer, like an RC queue pair.
 *	mctl    a control channel (WEFT_LANE_F_CONTROL): datagrams that are lost, doubled and
 *	        reordered, from the seed.
 *
 * Options: net=N (as in mock/mock_lane.h), dev=NAME, dom=NAME, bw=, lat=, short=, bcopy=, zcopy=,
 * and for
 * mlink eplen=N (bytes of an endpoint address, default 12), maxep=N (ep_create() fails beyond).
 */
#ifndef WEFT_TEST_MOCK_LINK_H
#define WEFT_TEST_MOCK_LINK_H

#include "mock/mock_lane.h"

extern const struct weft_lane_driver mlink_driver, mctl_driver;

/** mock, mlink, mctl and self. */
extern const struct weft_lane_driver *const mlink_drivers[];

void mlink_reset(uint64_t seed);
unsigned int mlink_num_ifaces(void);
unsigned int mlink_num_lane_eps(void); /**< of both drivers */
unsigned int mlink_num_messages(void); /**< under way */
unsigned int mlink_num_mems(void);

/**
 * Datagrams: lost, delivered twice (the second one up to 50 ms later), delayed by up to 5 ms; in
 * permille.
 */
void mctl_set_faults(unsigned int loss, unsigned int twice, unsigned int late);
uint64_t mctl_sent(void);

/** mlink: messages of a lane arrive in any order; off = as sent. */
void mlink_set_random(bool on);
/** mlink: sends say "no room" with this probability, in permille. */
void mlink_set_eagain(unsigned int permille);
/** mlink: from ep_connect_ep() to EV_UP, ns. */
void mlink_set_up_delay(uint64_t ns);
/** mlink: ends over this iface never come up (NULL = none): their peers fail after the retries. */
void mlink_block(struct weft_lane_iface *iface);
/** Every connected end of this iface fails at its next progress. */
void mlink_fail(struct weft_lane_iface *iface, int status, const char *text);
/** ep_connect_ep() returns @p rc. */
void mlink_refuse_addresses(int rc);

/** An unknown sender's datagram to @p to; its sender's lane_ep number @p lane_ep exists nowhere. */
void mctl_unknown(struct weft_lane_iface *to, uint32_t lane_ep, uint8_t am_id, const void *data,
		  size_t len);
/** What was last sent to a stranger. @return its length, 0 = nothing */
size_t mctl_unknown_last(const void **data);

/** Sees and may change each datagram before it is sent; returns false to drop it. */
void mctl_set_filter(bool (*filter)(void *data, size_t *len, void *arg), void *arg);

/** A context with these drivers. */
struct weft_context *mlink_context(const char *setting, ...) __attribute__((sentinel));

#endif /* WEFT_TEST_MOCK_LINK_H */
