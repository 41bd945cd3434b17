/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/codec.h
 * WIREUP messages as bytes: records, pieces, and the validation of received messages.
 */
#ifndef WEFT_WIREUP_CODEC_H
#define WEFT_WIREUP_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/wire.h"
#include "core/worker.h"
#include "lane.h"

struct weft_conns;
struct weft_ep;

/** A validated WIREUP message. Pointers point into the received bytes. */
struct weft_wireup_msg {
	struct weft_wire_wireup head;
	const void *address;
	size_t address_len;
	/* num_lanes of them; each lane number < WEFT_MAX_LANES, once */
	const struct weft_wire_lane *lanes;
	unsigned int num_lanes;
	bool have_boot, have_credit;
	struct weft_wire_boot boot;
	struct weft_wire_credit credit;
	float bcopy_bw; /* bytes/s; 0 = not in the message */
	bool have_next_sn;
	uint32_t next_sn; /* with ESTALE: a number that is free at the sender */
	/* by lane number: address of the sender's lane endpoint; len 0 = none */
	struct {
		const uint8_t *bytes;
		uint8_t len;
	} ep_addr[WEFT_MAX_LANES];
	/* in LANE_DOWN and LANE_DOWN_ACK: the driver validates the contents; NULL = none */
	const void *rx_state;
	size_t rx_state_len;
	char text[256]; /* fit for printing */
};

struct weft_records {
	size_t len;
	uint8_t buf[WEFT_WIREUP_MAX];
};

void weft_records_add(struct weft_records *r, enum weft_wire_record_type type, const void *data,
		      size_t len);
/** @return 0, or the lane's error. After -EAGAIN the caller sends the whole message again */
int weft_wireup_send(struct weft_lane_ep *lane_ep, struct weft_wire_wireup *head,
		     const void *records, size_t len);
/** Validate a whole message by itself. @return 0, or -EPROTO with a reason in @p why */
int weft_wireup_parse(const struct weft_wire_wireup *head, const void *records, size_t len,
		      struct weft_wireup_msg *m, const char **why);
/** status, lane_epoch, total and offset become 0. */
void weft_wireup_head(const struct weft_ep *ep, enum weft_wireup_type type, unsigned int lane,
		      struct weft_wire_wireup *h);

/* ------------------------------------------------------------------ messages in pieces */

struct weft_partial {
	TAILQ_ENTRY(weft_partial) entry; /* in host->partials */
	struct weft_partial_host *host;
	struct weft_lane_ep *lane_ep;
	struct weft_wire_wireup head; /* of the piece that arrived first */
	size_t total, got;
	uint8_t have[WEFT_WIREUP_MAX / 8]; /* bit b: byte b of data has arrived */
	uint8_t data[];
};

struct weft_partial_host {
	LIST_ENTRY(weft_partial_host) entry;
	uint64_t number; /* weft_host_number() */
	unsigned int num;
	TAILQ_HEAD(, weft_partial) partials; /* oldest first */
};

/**
 * The maximum number of partial messages of a worker, and of one connection. When a worker has its
 * maximum, the host with the most of them loses its oldest one. A connection at its own limit loses
 * its own oldest one. So a host that has none always gets a place, however many the other hosts
 * have. An honest peer sends one message after the other; there are two when a repeated message
 * follows one of another step.
 */
#define WEFT_MAX_PARTIALS 128
#define WEFT_MAX_PARTIALS_LANE_EP 2

/**
 * Add a received piece.
 * @param[out] records  the whole message's records when it is complete: valid until
 *   weft_partial_done(), or the end of the callback
 * @param[out] done     to be passed to weft_partial_done() after use; NULL = nothing to do
 * @return 1 complete, 0 incomplete, -EPROTO malformed, -ENOMEM
 */
int weft_partial_add(struct weft_conns *conns, struct weft_lane_ep *lane_ep, const void *data,
		     size_t length, struct weft_wire_wireup *head, const void **records,
		     size_t *len, struct weft_partial **done);
void weft_partial_done(struct weft_partial *p);
/** Free the partial messages of @p lane_ep, which is being destroyed. */
void weft_partial_forget(struct weft_conns *conns, const struct weft_lane_ep *lane_ep);
void weft_partials_fini(struct weft_conns *conns);

#endif /* WEFT_WIREUP_CODEC_H */
