/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/sealed.h
 * Sealed connections (doc/sealing.md): the exchange of keys in HELLO and HELLO_ACK.
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

/* State of a connection of such an iface: the exchange until it is up, and its keys. */
struct raw_sealed;

#if WEFT_HAVE_SEAL

/*
 * Creates iface->seal if @p conf has a job key.
 * @return 0; -ENOTSUP, with the reason in @p why; -ENOMEM or -EIO
 */
int raw_seal_open(struct raw_iface *iface, const struct weft_lane_conf *conf, char *why,
		  size_t len);
void raw_seal_close(struct raw_iface *iface);

/* Operations of the driver, as in struct weft_lane_ops (lane.h). */
int raw_ep_export(struct weft_lane_ep *lane_ep, struct weft_lane_key *key);
int raw_key_accept(struct weft_lane_iface *iface, const struct weft_lane_key *key);
void raw_key_forget(struct weft_lane_iface *iface, const struct weft_lane_key *key);
bool raw_ep_has_key(const struct weft_lane_ep *lane_ep, const struct weft_lane_key *key,
		    uint8_t lane);

/* ---------------------------------------------------------------- connecting */

/*
 * Complete a HELLO or HELLO_ACK, whose first WEFT_EXCHANGE_AT bytes are set. A repeated HELLO is a
 * new offer only if one of these bytes has changed, the cookie excepted, or after
 * raw_sealed_restart(). A HELLO_ACK is the one of raw_sealed_answer().
 * @return its length; 0: no memory or random bytes for the exchange, or libcrypto fails
 */
uint32_t raw_sealed_hello(struct raw_conn *c, uint8_t type, uint8_t body[WEFT_EXCHANGE_BODY]);
/*
 * Find the connection that was made for this HELLO. HELLOs of one connection of the peer may have
 * made several: one with another offer may be a replay, and replaces no connection.
 * @param c  in: the first connection for HELLOs of this peer's connection (raw_table_hello()); out:
 * the one that was made for this HELLO, or NULL
 * @return false: none was made for this HELLO, and another one is not half-open any more, or its
 * peer has proven its address: the caller makes no further one
 */
bool raw_sealed_find_offer(struct raw_conn **c, const struct weft_frame_view *v);
/* Validate a HELLO, at the cost of one HMAC. A refusal is counted and logged. */
enum weft_hello_verdict raw_sealed_check_hello(struct raw_iface *iface,
					       const struct weft_frame_view *v);
/*
 * Responder: complete a HELLO_ACK, keep it for raw_sealed_hello(), and derive the keys.
 * @param v    a HELLO that raw_sealed_check_hello() has accepted
 * @param ack  the first WEFT_EXCHANGE_AT bytes of the HELLO_ACK
 * @return 0; -EBADMSG: the HELLO was made without the key; -ENOMEM, -EIO
 */
int raw_sealed_answer(struct raw_conn *c, const struct weft_frame_view *v,
		      uint8_t ack[WEFT_EXCHANGE_BODY]);
/*
 * Initiator: derive the keys from HELLO_ACK. @return false: the frame was refused, memory is
 * missing or libcrypto fails; HELLO may be repeated
 */
bool raw_sealed_take_ack(struct raw_conn *c, const struct weft_frame_view *v);
/*
 * Let the handshake begin again with another offer, after a RESET, which may be forged.
 * @return false: the offer is less than 1 s old, a frame of the peer arrived in the last second, or
 * the connection is up; true: the keys are deleted
 */
bool raw_sealed_restart(struct raw_conn *c);
/*
 * Initiator: let a new connection use exchange 3, as a further lane of the endpoint with this key.
 * @return false: there is no memory
 */
bool raw_sealed_further(struct raw_conn *c, const struct weft_lane_key *key, uint8_t lane);
/* The connection is up: the state of the exchange, which has keys, is overwritten and freed. */
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
