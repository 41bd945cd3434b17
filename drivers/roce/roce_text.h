/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_text.h
 * Error messages: the meaning of a completion error or of an event of the device, with device, peer
 * and time. Pure: it uses codes of verbs, and no calls.
 */
#ifndef WEFT_ROCE_TEXT_H
#define WEFT_ROCE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

/** The device and peer of a message. */
struct weft_roce_names {
	const char *device; /**< "rxe0" */
	const char *peer;   /**< "10.0.0.2" */
};

/**
 * "rxe0: peer 10.0.0.2 gave no answer for 1.9 s (transport retry counter exceeded)".
 * @param waited_ns  time since the oldest request without a completion on the queue pair
 */
void weft_roce_text_wc(const struct weft_roce_names *names, enum ibv_wc_status status,
		       uint64_t waited_ns, char *buf, size_t size);

/** The error of a lane that ends by this status. @return negative errno */
int weft_roce_wc_error(enum ibv_wc_status status);

/**
 * Why a queue pair could not be connected: @p err is the positive errno of ibv_modify_qp() or
 * ibv_create_ah().
 */
void weft_roce_text_connect(const struct weft_roce_names *names, int err, char *buf, size_t size);

/** The message for an event of a queue pair. */
void weft_roce_text_qp_event(const struct weft_roce_names *names, enum ibv_event_type type,
			     char *buf, size_t size);

/**
 * Why a verbs call failed at set-up, with the remedy where there is one.
 * @param what      "a completion queue for 8192 entries"
 * @param memlock   RLIMIT_MEMLOCK in bytes, UINT64_MAX = unlimited
 */
void weft_roce_text_setup(const char *device, const char *what, int err, uint64_t memlock,
			  char *buf, size_t size);

#endif /* WEFT_ROCE_TEXT_H */
