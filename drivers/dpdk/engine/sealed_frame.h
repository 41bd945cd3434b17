/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/sealed_frame.h
 * Frames of sealed connections. Of a received frame, only the fields that find its connection are
 * used before it is opened. The peer has to confirm a key before the next one may follow.
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

enum raw_sealed_event {
	RAW_SEALED_NONE,
	RAW_SEALED_TICK,  /* call raw_probe_key() */
	RAW_SEALED_SPENT, /* end the connection: too many tags were wrong */
};

#if WEFT_HAVE_SEAL

/* @return the sealed copy, to be sent now; NULL: no buffer, or the key may seal no more frames */
struct rte_mbuf *raw_sealed_copy(struct raw_conn *c, const struct rte_mbuf *m, uint8_t path);

/*
 * @return a buffer for a sealed frame of @p size bytes: the same one, if it is long enough and the
 * port has released it, else a new one. NULL: there is none, which is counted
 */
struct rte_mbuf *raw_sealed_spare(struct raw_iface *iface, uint32_t size);
/* Free the buffer of raw_sealed_spare(), before the port's pools are freed. */
void raw_sealed_spare_free(struct raw_iface *iface);
/*
 * Complete a sealed frame in a buffer of raw_sealed_spare() that has the headers of the frame on
 * the wire, except for what sealing adds.
 * @param body  of the plain frame
 * @return false: the key may seal no more frames, and the buffer is freed
 */
bool raw_sealed_fill(struct raw_conn *c, struct rte_mbuf *out, const uint8_t *body,
		     uint32_t body_len, uint8_t path);

/*
 * Verify and decrypt a frame, whose headers are validated. The received bytes may change.
 * @param desc  the buffer of the frame; NULL: the frame was copied out of several buffers
 * @param[out] plain  the validated plain frame, in the returned buffer
 * @param[out] event  unchanged if there is nothing to do
 * @return the buffer of the plain frame: @p desc, or another one that the caller frees; NULL: the
 * frame has been counted as dropped
 */
struct rte_mbuf *raw_sealed_open(struct raw_conn *c, const struct weft_frame_view *v,
				 struct rte_mbuf *desc, struct weft_frame_view *plain,
				 enum raw_sealed_event *event);
/*
 * As raw_sealed_open(), for DATA of weft_frame_head() on a port with WEFT_FRAME_PORT_RX_OWN. The
 * lane header is moved over the number, so that the plain frame is contiguous. The messages are not
 * checked.
 * @param body_len  in: bytes of number and body, without the tag; out: bytes of the body
 * @return the lane header of the plain frame; NULL: the frame has been counted as dropped
 */
const struct weft_frame_hdr *raw_sealed_open_data(struct raw_conn *c,
						  const struct weft_frame_hdr *hdr,
						  uint32_t *body_len, enum raw_sealed_event *event);

/*
 * @param[out] probe  id of the probe to be sent
 * @return true: the next key is due, the present one is not confirmed, and a probe is due
 */
bool raw_sealed_probe_due(struct raw_conn *c, uint16_t *probe);
/* The peer has answered a probe, which confirms the present key if the id belongs to that. */
void raw_sealed_answered(struct raw_conn *c, uint16_t probe);

/* Makes GONE for weft-farewell. @return bytes; 0: the peer has no GONE, or the key is used up */
uint32_t raw_sealed_farewell(struct raw_conn *c, const struct weft_encap_addr *a,
			     uint8_t frame[WEFT_FAREWELL_MAX]);
/* @return true: the key has changed since the last call, and the helper needs another GONE */
bool raw_sealed_farewell_due(struct raw_conn *c);

#else

static inline struct rte_mbuf *raw_sealed_copy(struct raw_conn *c, const struct rte_mbuf *m,
					       uint8_t path)
{
	(void)c, (void)m, (void)path;
	return NULL;
}

static inline struct rte_mbuf *raw_sealed_spare(struct raw_iface *iface, uint32_t size)
{
	(void)iface, (void)size;
	return NULL;
}

static inline void raw_sealed_spare_free(struct raw_iface *iface)
{
	(void)iface;
}

static inline bool raw_sealed_fill(struct raw_conn *c, struct rte_mbuf *out, const uint8_t *body,
				   uint32_t body_len, uint8_t path)
{
	(void)c, (void)out, (void)body, (void)body_len, (void)path;
	return false;
}

static inline struct rte_mbuf *raw_sealed_open(struct raw_conn *c, const struct weft_frame_view *v,
					       struct rte_mbuf *desc, struct weft_frame_view *plain,
					       enum raw_sealed_event *event)
{
	(void)c, (void)v, (void)desc, (void)plain, (void)event;
	return NULL;
}

static inline const struct weft_frame_hdr *raw_sealed_open_data(struct raw_conn *c,
								const struct weft_frame_hdr *hdr,
								uint32_t *body_len,
								enum raw_sealed_event *event)
{
	(void)c, (void)hdr, (void)body_len, (void)event;
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
