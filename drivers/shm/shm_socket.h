/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file shm/shm_socket.h
 * Addresses of ifaces, the sockets that make connections, and hellos.
 *
 * A hello brings descriptors that the peer has chosen. To receive, check or close one can block for
 * as long as the peer chooses, so a thread of base/thread.h does this. Its receipt with the result
 * goes back to the progress thread through the inbox of the iface.
 */
#ifndef WEFT_SHM_SOCKET_H
#define WEFT_SHM_SOCKET_H

#include <stdatomic.h>
#include <stdbool.h>

#include "shm/shm.h"

/* ---- addresses */

/** Fill in the address of a new iface. @return 0, or a negative error with a reason in @p why */
int shm_place_init(struct shm_addr *own, const struct weft_lane_open *params, char *why,
		   size_t why_len);
/** Can @p own connect to @p addr? @return 0, or a negative error with a reason in @p why */
int shm_place_reachable(const struct shm_addr *own, const void *addr, size_t len, char *why,
			size_t why_len);
void shm_place_print(const void *addr, size_t len, char *buf, size_t size);

/* ---- sockets */

/** @return a listening socket, or a negative error */
int shm_socket_listen(const struct shm_addr *own);
/** @return a socket; -EAGAIN: the listener's backlog is full; or a negative error */
int shm_socket_connect(const struct shm_addr *to);
/** Check that the peer's process has our user. @return 0, or -EACCES. @p pid 0 = unknown */
int shm_socket_peer(int sock, pid_t *pid);
/** Send a hello, and pass @p num descriptors of @p fds. @return 0 or a negative error */
int shm_socket_send(int sock, const struct shm_hello *hello, const int *fds, unsigned int num);
/** Is there a message? Its descriptors stay in the socket. */
bool shm_socket_has_message(int sock);
/**
 * Receive a hello. Not in the progress thread: closing descriptors of a peer may block.
 * @param[out] fds  passed descriptors, or -1; the caller closes them
 * @return 0; -EAGAIN: no message; -ECONNRESET: the peer has closed; -EPROTO: no hello
 */
int shm_socket_recv(int sock, struct shm_hello *hello, int fds[SHM_HELLO_FDS]);
void shm_socket_remove(const struct shm_addr *own);
/** @return a descriptor that is readable when the process has ended, or a negative error */
int shm_process_open(pid_t pid);

/* ---- hellos */

struct shm_inbox;

/** The result of one hello; the receiving thread owns it until shm_inbox_take() returns it. */
struct shm_receipt {
	struct shm_inbox *inbox;
	struct shm_receipt *next;

	struct shm_ep *lane_ep; /**< for the progress thread only; NULL: the lane_ep has ended */
	int sock;
	bool closes; /**< the connection has ended: the socket is closed with the receipt */

	/* set by shm_receipt_start() */
	struct shm_addr own;
	pid_t pid;
	bool is_answer;

	/* the result */
	int status; /**< 0; -EAGAIN: no hello yet, or its sender is unknown yet; or an error */
	struct shm_hello hello;
	bool is_hello; /**< a hello has arrived; an acceptor replies to nothing else */
	char why[160]; /**< reason for refusing an initiator's hello, if status < 0 */
	struct shm_segment *segment;
	const struct shm_reg_table *regs; /**< the sender's table; NULL = none */
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
 * Receive the hello of @p lane_ep in another thread. lane_ep->receipt is set until shm_inbox_take()
 * returns the receipt.
 * @return 0; -ENOMEM; -EAGAIN: no thread can be started
 */
int shm_receipt_start(struct shm_inbox *inbox, struct shm_ep *lane_ep, const struct shm_addr *own);

/** The connection of lane_ep->receipt ends: its socket belongs to the receipt from now on. */
void shm_receipt_orphan(struct shm_ep *lane_ep);

/** Free a receipt, with the objects that the caller has not taken out of it. */
void shm_receipt_free(struct shm_receipt *r);

#endif /* WEFT_SHM_SOCKET_H */
