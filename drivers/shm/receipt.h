/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file shm/receipt.h
 * Hellos, received by another thread.
 *
 * A hello brings descriptors that the peer has chosen. To receive, check or close one can block for
 * as long as the peer chooses, so a thread of base/blocking.h does it. The receipt with the result
 * goes back to the progress thread through the inbox of the iface.
 */
#ifndef WEFT_SHM_RECEIPT_H
#define WEFT_SHM_RECEIPT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "shm/shm.h"

/** Receipts that other threads have finished for an iface. */
struct shm_inbox;

/** The result of one hello; the receiving thread owns it until shm_inbox_take() returns it. */
struct shm_receipt {
	struct shm_inbox *inbox;
	struct shm_receipt *next;

	struct shm_ep *lane_ep; /**< NULL: it has ended; only for the progress thread */
	int sock;
	bool closes; /**< the connection has ended: the socket is closed with the receipt */

	/* set by the caller */
	struct shm_addr own;
	pid_t pid;
	bool is_answer;

	/* the result */
	int status; /**< 0; -EAGAIN: no hello yet, or its sender is unknown yet; or an error */
	struct shm_hello hello;
	bool is_hello; /**< else no reply is sent */
	char why[160]; /**< of an error, if is_hello */
	struct shm_segment *segment;
	const struct shm_reg_table *regs; /**< NULL = none */
};

/** @return NULL with errno */
struct shm_inbox *shm_inbox_new(void);

/** Receipts in progress are dropped when their threads have finished. NULL is allowed. */
void shm_inbox_close(struct shm_inbox *inbox);

/** Readable when shm_inbox_take() has receipts. */
int shm_inbox_fd(const struct shm_inbox *inbox);

/** @return finished receipts, linked by next, the oldest first; the caller owns them. */
struct shm_receipt *shm_inbox_take(struct shm_inbox *inbox);

/**
 * Receive the hello of @p lane_ep in another thread. lane_ep->receipt is set until it is taken.
 * @return 0; -ENOMEM; -EAGAIN: no thread can be started
 */
int shm_receipt_start(struct shm_inbox *inbox, struct shm_ep *lane_ep, const struct shm_addr *own);

/** The connection of lane_ep->receipt ends: its socket belongs to the receipt from now on. */
void shm_receipt_orphan(struct shm_ep *lane_ep);

/** Free it, with the objects that the caller has not taken out of it. */
void shm_receipt_free(struct shm_receipt *r);

#endif /* WEFT_SHM_RECEIPT_H */
