/* SPDX-License-Identifier: BSD-3-Clause */

#include "shm/receipt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/blocking.h"

struct shm_inbox {
	_Atomic(struct shm_receipt *) done; /* the newest first */
	atomic_uint refs;                   /* the iface, and each receipt in progress */
	int event;
};

/* ------------------------------------------------------------------ the other thread */

/* Check the hello and the segment of the peer. @return 0, or an error with a reason */
static int check_hello(struct shm_receipt *r, int segment_fd)
{
	const struct shm_hello *hello = &r->hello;
	const char *what = "";
	int rc;

	if (hello->version != SHM_VERSION ||
	    memcmp(hello->to, &r->own.iface_id, sizeof(hello->to)) != 0) {
		snprintf(r->why, sizeof(r->why),
			 "version %u of shared memory for this interface is here", SHM_VERSION);
		return -EPROTONOSUPPORT;
	}
	rc = shm_place_reachable(&r->own, hello->addr, SHM_ADDR_LEN, r->why, sizeof(r->why));
	if (rc < 0)
		return rc;
	r->segment = shm_segment_map(segment_fd, &what);
	if (!r->segment) {
		snprintf(r->why, sizeof(r->why), "%s", what);
		return -EPROTO;
	}
	return 0;
}

/*
 * Does the process listen at the address in its hello? Upper layers rely on that.
 * @return 0; -EAGAIN: unknown yet; -EACCES
 */
static int check_sender(const struct shm_receipt *r)
{
	struct shm_hello hello;
	struct shm_addr addr;

	/* A malformed hello is refused later, with its own reason. */
	if (!shm_socket_peek(r->sock, &hello) || hello.magic != SHM_HELLO_MAGIC)
		return 0;
	memcpy(&addr, hello.addr, sizeof(addr));
	return shm_socket_is_at(&addr, r->pid);
}

static int receive_request(struct shm_receipt *r, int fds[SHM_HELLO_FDS])
{
	int rc, sender = check_sender(r);

	/* The hello stays in the socket: the progress thread starts another receipt. */
	if (sender == -EAGAIN)
		return -EAGAIN;
	rc = shm_socket_recv(r->sock, &r->hello, fds);
	if (rc < 0)
		return rc;
	r->is_hello = true;
	rc = check_hello(r, fds[0]);
	if (rc == 0 && sender < 0) {
		snprintf(r->why, sizeof(r->why),
			 "another process listens at the address in its hello");
		return sender;
	}
	if (rc == 0 && fds[1] >= 0)
		r->regs = shm_reg_map(fds[1]);
	return rc;
}

static int receive_answer(struct shm_receipt *r, int fds[SHM_HELLO_FDS])
{
	int rc = shm_socket_recv(r->sock, &r->hello, fds);

	r->is_hello = rc == 0;
	if (rc == 0 && r->hello.status == 0 && fds[0] >= 0)
		r->regs = shm_reg_map(fds[0]);
	return rc;
}

static void inbox_unref(struct shm_inbox *inbox)
{
	struct shm_receipt *r, *next;

	/* Acquire and release: the last thread frees memory that the others have written. */
	if (atomic_fetch_sub_explicit(&inbox->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (r = atomic_load_explicit(&inbox->done, memory_order_relaxed); r; r = next) {
		next = r->next;
		r->closes = true;
		shm_receipt_free(r);
	}
	close(inbox->event);
	free(inbox);
}

static void inbox_put(struct shm_receipt *r)
{
	struct shm_inbox *inbox = r->inbox;
	const uint64_t one = 1;

	r->next = atomic_load_explicit(&inbox->done, memory_order_relaxed);
	/* Release: the progress thread sees the result. */
	while (!atomic_compare_exchange_weak_explicit(&inbox->done, &r->next, r,
						      memory_order_release, memory_order_relaxed))
		;
	/* A full counter wakes the reader, too. */
	if (write(inbox->event, &one, sizeof(one)) < 0)
		return;
}

static void receive_hello(void *arg)
{
	struct shm_receipt *r = arg;
	struct shm_inbox *inbox = r->inbox;
	int fds[SHM_HELLO_FDS] = {-1, -1};

	r->status = r->is_answer ? receive_answer(r, fds) : receive_request(r, fds);
	inbox_put(r);
	/* The progress thread need not wait for these. */
	for (unsigned int i = 0; i < SHM_HELLO_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	inbox_unref(inbox);
}

/* ------------------------------------------------------------------ the progress thread */

struct shm_inbox *shm_inbox_new(void)
{
	struct shm_inbox *inbox = calloc(1, sizeof(*inbox));

	if (!inbox)
		return NULL;
	atomic_init(&inbox->refs, 1);
	inbox->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (inbox->event < 0) {
		free(inbox);
		return NULL;
	}
	return inbox;
}

void shm_inbox_close(struct shm_inbox *inbox)
{
	if (inbox)
		inbox_unref(inbox);
}

int shm_inbox_fd(const struct shm_inbox *inbox)
{
	return inbox->event;
}

struct shm_receipt *shm_inbox_take(struct shm_inbox *inbox)
{
	struct shm_receipt *r, *next, *oldest = NULL;
	uint64_t count;

	/* Read before taking the list: later receipts make the descriptor readable again. */
	if (read(inbox->event, &count, sizeof(count)) < 0)
		return NULL;
	/* Acquire: pairs with inbox_put(). */
	r = atomic_exchange_explicit(&inbox->done, NULL, memory_order_acquire);
	for (; r; r = next) {
		next = r->next;
		r->next = oldest;
		oldest = r;
	}
	return oldest;
}

int shm_receipt_start(struct shm_inbox *inbox, struct shm_ep *lane_ep, const struct shm_addr *own)
{
	struct shm_receipt *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->inbox = inbox;
	r->lane_ep = lane_ep;
	r->sock = lane_ep->sock.fd;
	r->own = *own;
	r->pid = lane_ep->pid;
	r->is_answer = lane_ep->state == SHM_REQUESTED;
	/* Relaxed: the queue of jobs orders it. */
	atomic_fetch_add_explicit(&inbox->refs, 1, memory_order_relaxed);
	rc = weft_blocking_run(receive_hello, r);
	if (rc < 0) {
		atomic_fetch_sub_explicit(&inbox->refs, 1, memory_order_relaxed);
		free(r);
		return rc;
	}
	lane_ep->receipt = r;
	return 0;
}

void shm_receipt_orphan(struct shm_ep *lane_ep)
{
	struct shm_receipt *r = lane_ep->receipt;

	lane_ep->receipt = NULL;
	r->lane_ep = NULL;
	r->closes = true;
}

void shm_receipt_free(struct shm_receipt *r)
{
	if (r->segment)
		shm_segment_unmap(r->segment);
	if (r->regs)
		shm_reg_unmap(r->regs);
	if (r->closes)
		weft_foreign_fd_close(r->sock);
	free(r);
}
