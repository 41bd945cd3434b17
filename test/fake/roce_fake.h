/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file fake/roce_fake.h
 * A verbs device of the test's own, under the real driver: the verbs calls that the driver makes
 * are linked with --wrap (fake/roce_fake.c has the list). It keeps the states of queue pairs, gives
 * back what was posted when the test says so, and fills receive buffers with what the test wants.
 * Time is the test's, and so is when the device's thread gets through with a job.
 */
#ifndef WEFT_TEST_ROCE_FAKE_H
#define WEFT_TEST_ROCE_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "roce/roce.h"
#include "base/log.h"

#define FAKE_MS 1000000ull

struct fake_qp {
	struct ibv_qp qp; /* first */
	enum ibv_qp_state state;
	bool destroyed;
	/* posted, not back: numbers of requests that want a completion */
	uint64_t pending[256];
	unsigned int num_pending, posted;
	uint32_t last_imm; /* host order; of the last SEND */
	unsigned int byes; /* final messages posted */
	uint64_t error_at; /* fake.now, when it went into the error state */
};

/** All there is of the device; cleared by fake_setup(). */
struct fake {
	struct roce_dev dev;
	struct ibv_context ctx;
	uint64_t now;
	struct fake_qp *qps[64];
	unsigned int num_qps;
	/** queue pairs that were destroyed without having been in the error state */
	unsigned int alive;
	bool answers;      /**< requests come back at once */
	int connect_errno; /**< what connecting a queue pair ends with */
	struct roce_job *jobs[16];
	unsigned int num_jobs;
	uint64_t jobs_at; /**< when the thread gets through with them by itself; 0 = never */
	struct ibv_async_event events[16];
	unsigned int num_events, events_taken;
	bool gid_gone; /**< the GID table is empty */
	/* events of lanes */
	unsigned int up, down, gone;
	int status;
	char text[320];
	struct weft_lane_ep *lane_ep; /**< of the last event */
	bool destroys;                /**< the callback destroys what failed */
	/* datagrams: how many were sent, and the last one's beginning */
	unsigned int num_sent;
	uint8_t sent[64];
	/* messages */
	unsigned int got;
	uint8_t am_id;
	size_t length;
};

extern struct fake fake;

int fake_setup(void **state);
int fake_teardown(void **state);
/** An iface of the driver, opened as a worker does. */
struct weft_lane_iface *fake_open(const struct weft_lane_driver *driver, const char *options);
/** Progress, after @p ns. */
void fake_turn(struct weft_lane_iface *iface, uint64_t ns);
/** The device's thread gets through with all it has. */
void fake_jobs(void);
/** Requests of @p qp come back. */
void fake_complete(struct fake_qp *qp, enum ibv_wc_status status);
/** A message from the peer. @p imm NULL = without immediate data */
void fake_message(struct fake_qp *qp, const uint32_t *imm, const void *data, size_t length);
/** The last completion that is not taken yet ends with @p status instead. */
void fake_spoil(enum ibv_wc_status status);
/** The last completion comes again. */
void fake_again(void);
/** A datagram for a UD queue pair, network header included, from the queue pair @p src_qpn. */
void fake_datagram(struct fake_qp *qp, uint32_t src_qpn, const void *data, size_t length);
/** The device reports something of a port, or of itself. */
void fake_event(enum ibv_event_type type, int port);
/** The counter of @p iface. */
uint64_t fake_counter(struct weft_lane_iface *iface, const char *name);
/** A lane_ep of an RC iface and the address of the peer's other end. */
struct weft_lane_ep *fake_lane_ep(struct weft_lane_iface *iface);
int fake_connect(struct weft_lane_ep *lane_ep);
struct fake_qp *fake_qp_of(struct weft_lane_ep *lane_ep, unsigned int i);

#endif /* WEFT_TEST_ROCE_FAKE_H */
