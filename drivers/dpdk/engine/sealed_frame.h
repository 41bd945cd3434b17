/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/sealed_frame.h
 * Frames of sealed connections (engine/sealed.h): sealed when they leave, opened when they arrive.
 * When the next key is due, and how it is confirmed.
 */
#ifndef WEFT_ENGINE_SEALED_FRAME_H
#define WEFT_ENGINE_SEALED_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "engine/conn.h"
#include "frame/frame.h"
#include "frame/parse.h"
#include "weft_build.h"

#if WEFT_HAVE_SEAL

/*
 * The sealed copy of a complete plain frame, to be sent now.
 * @return NULL: there is no buffer, or the key may seal no more frames
 */
struct rte_mbuf *raw_sealed_copy(struct raw_conn *c, const struct rte_mbuf *m, uint8_t path);

/*
 * Verify and decrypt a frame, whose headers are validated. The received bytes may change.
 * @param desc  the buffer of the frame, or NULL if the frame lies elsewhere
 * @param plain  the validated plain frame in the result
 * @param[out] spent  set when the connection has to end: too many tags were wrong
 * @return the buffer of the plain frame: @p desc, or another one that the caller frees; NULL: the
 * frame has been counted as dropped
 */
struct rte_mbuf *raw_sealed_open(struct raw_conn *c, const struct weft_frame_view *v,
				 struct rte_mbuf *desc, struct weft_frame_view *plain, bool *spent);

/*
 * Is another key due, and the present one not confirmed, since this end sends no DATA? Then a probe
 * with this id, sealed now, is to be sent.
 */
bool raw_sealed_probe_due(struct raw_conn *c, uint16_t *probe);
/* The peer has answered that probe. */
void raw_sealed_answered(struct raw_conn *c, uint16_t probe);

/*
 * The frame GONE of a connection that is up, for the helper that sends it when this process has
 * ended. @return its length; 0: the peer does not read GONE, or the key may seal no more frames
 */
uint32_t raw_sealed_farewell(struct raw_conn *c, const struct weft_encap_addr *a,
			     uint8_t frame[WEFT_FAREWELL_MAX]);
/* Has the key changed since the last call? Then the helper needs another GONE. */
bool raw_sealed_farewell_due(struct raw_conn *c);

#else

static inline struct rte_mbuf *raw_sealed_copy(struct raw_conn *c, const struct rte_mbuf *m,
					       uint8_t path)
{
	(void)c, (void)m, (void)path;
	return NULL;
}

static inline struct rte_mbuf *raw_sealed_open(struct raw_conn *c, const struct weft_frame_view *v,
					       struct rte_mbuf *desc, struct weft_frame_view *plain,
					       bool *spent)
{
	(void)c, (void)v, (void)desc, (void)plain, (void)spent;
	return NULL;
}

static inline bool raw_sealed_probe_due(struct raw_conn *c, uint16_t *probe)
{
	(void)c, (void)probe;
	return false;
}

static inline void raw_sealed_answered(struct raw_conn *c, uint16_t probe)
{
	(void)c, (void)probe;
}

static inline uint32_t raw_sealed_farewell(struct raw_conn *c, const struct weft_encap_addr *a,
					   uint8_t *frame)
{
	(void)c, (void)a, (void)frame;
	return 0;
}

static inline bool raw_sealed_farewell_due(struct raw_conn *c)
{
	(void)c;
	return false;
}

#endif

#endif /* WEFT_ENGINE_SEALED_FRAME_H */
