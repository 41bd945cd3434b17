/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/sealed.h
 * Sealed connections (doc/sealing.md). The engine builds, keeps and reads plain frames. A frame of
 * a sealed connection is sealed into a buffer of its own when it leaves. A received frame is opened
 * before any field is used but those that find its connection. A buffer that other processes can
 * write to is copied for that.
 */
#ifndef WEFT_ENGINE_SEALED_H
#define WEFT_ENGINE_SEALED_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_mbuf.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "frame/frame.h"
#include "frame/parse.h"
#include "lane.h"
#include "seal/exchange.h"
#include "weft_build.h"

/* State of an iface with a job key, whose connections are all sealed: cipher, key and mode. */
struct raw_seal;

/* What a connection of such an iface needs: the exchange while it is made, and then its keys. */
struct raw_sealed;

#if WEFT_HAVE_SEAL

/* Without a job key it does nothing. @return 0, or an error with a sentence in @p why */
int raw_seal_open(struct raw_iface *iface, const struct weft_lane_conf *conf, char *why,
		  size_t len);
void raw_seal_close(struct raw_iface *iface);

/* Operations of the lane: lane.h. */
int raw_ep_export(struct weft_lane_ep *lane_ep, struct weft_lane_key *key);
int raw_key_accept(struct weft_lane_iface *iface, const struct weft_lane_key *key);
void raw_key_forget(struct weft_lane_iface *iface, const struct weft_lane_key *key);
bool raw_ep_has_key(const struct weft_lane_ep *lane_ep, const struct weft_lane_key *key,
		    uint8_t lane);

/* ---------------------------------------------------------------- connecting */

/*
 * Complete a HELLO or HELLO_ACK, whose first WEFT_EXCHANGE_AT bytes are set. A repeated one is
 * as it was made first, apart from the cookie.
 * @return its length; 0: no memory or random bytes for the exchange, or libcrypto fails
 */
uint32_t raw_sealed_hello(struct raw_conn *c, uint8_t type, uint8_t body[WEFT_EXCHANGE_BODY]);
/*
 * Find the connection that was made for this HELLO. HELLOs of one connection of the peer may have
 * made several: one with another offer may be a replay, and replaces no connection. Only frames of
 * the genuine peer can be opened.
 * @param c  the first of them; becomes the one that was found, or NULL
 * @return false: none was found, and one of them is up, or its peer has proven its address
 */
bool raw_sealed_find_offer(struct raw_conn **c, const struct weft_frame_view *v);
/* Validate a HELLO, at the cost of one HMAC. The verdict is counted, and a refusal logged. */
enum weft_hello_verdict raw_sealed_check_hello(struct raw_iface *iface,
					       const struct weft_frame_view *v);
/*
 * Derive the keys from a valid HELLO and the HELLO_ACK that raw_sealed_hello() will complete.
 * @param ack  its first WEFT_EXCHANGE_AT bytes are set
 * @return 0; -EBADMSG: the HELLO was made without the key; -ENOMEM, -EIO
 */
int raw_sealed_answer(struct raw_conn *c, const struct weft_frame_view *v,
		      uint8_t ack[WEFT_EXCHANGE_BODY]);
/*
 * Derive the keys from HELLO_ACK. @return false: it was refused, memory is missing or libcrypto
 * fails; HELLO may be sent again
 */
bool raw_sealed_take_ack(struct raw_conn *c, const struct weft_frame_view *v);
/*
 * May the handshake begin again, with another offer? Not while the peer answers: a RESET may be
 * forged. If it may, the keys are forgotten.
 */
bool raw_sealed_restart(struct raw_conn *c);
/*
 * The connection, which is new, becomes a further lane of an endpoint.
 * @return false: there is no memory
 */
bool raw_sealed_further(struct raw_conn *c, const struct weft_lane_key *key, uint8_t lane);
/* The connection is up: what served the exchange is overwritten. */
void raw_sealed_connected(struct raw_conn *c);
void raw_sealed_free(struct raw_conn *c);

#else

static inline int raw_seal_open(struct raw_iface *iface, const struct weft_lane_conf *conf,
				char *why, size_t len)
{
	if (!conf->job_key)
		return 0;
	snprintf(
		why, len,
		"%s: this build of Weft can't seal frames (libcrypto 3 or libipsec-mb was missing)",
		iface->port->name);
	return -ENOTSUP;
}

static inline void raw_seal_close(struct raw_iface *iface)
{
	(void)iface;
}

static inline bool raw_sealed_further(struct raw_conn *c, const struct weft_lane_key *key,
				      uint8_t lane)
{
	(void)c, (void)key, (void)lane;
	return false;
}

static inline uint32_t raw_sealed_hello(struct raw_conn *c, uint8_t type, uint8_t *body)
{
	(void)c, (void)type, (void)body;
	return 0;
}

static inline bool raw_sealed_find_offer(struct raw_conn **c, const struct weft_frame_view *v)
{
	(void)c, (void)v;
	return true;
}

static inline enum weft_hello_verdict raw_sealed_check_hello(struct raw_iface *iface,
							     const struct weft_frame_view *v)
{
	(void)iface, (void)v;
	return WEFT_HELLO_OK;
}

static inline int raw_sealed_answer(struct raw_conn *c, const struct weft_frame_view *v,
				    uint8_t *ack)
{
	(void)c, (void)v, (void)ack;
	return -ENOTSUP;
}

static inline bool raw_sealed_take_ack(struct raw_conn *c, const struct weft_frame_view *v)
{
	(void)c, (void)v;
	return false;
}

static inline bool raw_sealed_restart(struct raw_conn *c)
{
	(void)c;
	return false;
}

static inline void raw_sealed_connected(struct raw_conn *c)
{
	(void)c;
}

static inline void raw_sealed_free(struct raw_conn *c)
{
	(void)c;
}

#endif

#endif /* WEFT_ENGINE_SEALED_H */
