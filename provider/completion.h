/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/completion.h
 * Completion queues and counters, which report the ends of operations; event queues.
 */
#ifndef WFI_COMPLETION_H
#define WFI_COMPLETION_H

#include <sys/queue.h>

#include "provider/process.h"

/* ------------------------------------------------------------------ completion queues */

/*
 * An operation reserves its entry of the queue when it is posted, where an error can still be
 * returned. A buffer for several messages reserves the entry of the next message when one has
 * arrived, and ends if that fails (op.c). A peer's write reserves its entry on arrival, and is not
 * reported if that fails (rma.c).
 */

/** The end of an operation. */
struct wfi_completion {
	struct fi_cq_tagged_entry entry; /**< each shorter format is a prefix of it */
	fi_addr_t source;
	size_t cut;     /**< FI_ETRUNC: bytes that did not fit; else 0 */
	int error;      /**< positive; 0: success */
	int weft_error; /**< negative error of Weft or libfabric; 0: none, or FI_EADDRNOTAVAIL */
	/** FI_EADDRNOTAVAIL: source in the domain's address format, by malloc(); else NULL */
	void *address;
};

struct wfi_cq {
	struct fid_cq cq;
	struct wfi_domain *domain;
	unsigned int refs; /**< number of directions of endpoints that are bound to it */
	enum fi_cq_format format;
	enum fi_wait_obj wait_obj;
	bool wait_threshold;
	bool signalled; /**< by fi_cq_signal(): the next fi_cq_sread() clears it and returns */
	struct wfi_wait wait;
	size_t head, tail; /**< free-running; the entries between them are valid */
	size_t reserved;   /**< entries for operations in progress */
	size_t size;       /**< entries of the ring; a power of two */
	struct wfi_completion *ring;
	void *address; /**< source address of the last error that was read */
};

int wfi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		void *context);

/** Double the number of entries. Locked. @return 0, or -FI_ENOMEM: also with 2^26 entries */
int wfi_cq_grow(struct wfi_cq *cq);

/** Reserve an entry. Locked. @return 0, or -FI_EAGAIN: the queue is full and cannot grow */
static inline int wfi_cq_reserve(struct wfi_cq *cq)
{
	if (cq->reserved + (cq->tail - cq->head) == cq->size && wfi_cq_grow(cq) < 0)
		return -FI_EAGAIN;
	cq->reserved++;
	return 0;
}

/** An operation ends without an entry: give its reservation back. Locked. */
static inline void wfi_cq_release(struct wfi_cq *cq)
{
	cq->reserved--;
}

/** An operation has ended: use its reserved entry. Locked. @return the entry, to be filled in */
static inline struct wfi_completion *wfi_cq_push(struct wfi_cq *cq)
{
	struct wfi_completion *c = &cq->ring[cq->tail++ & (cq->size - 1)];

	cq->reserved--;
	if (cq->wait.armed)
		wfi_wait_signal(&cq->wait);
	return c;
}

static inline bool wfi_cq_empty(const struct wfi_cq *cq)
{
	return cq->head == cq->tail;
}

/**
 * Prepare the queue for a sleep of the application, for fi_trywait(). Locked.
 * @return 0: it may sleep; -FI_EAGAIN: read the queue first; -FI_EINVAL: the queue was opened
 * without a wait object; or another error
 */
int wfi_cq_trywait(struct wfi_cq *cq);

/* ------------------------------------------------------------------ counters */

struct wfi_cntr {
	struct fid_cntr cntr;
	struct wfi_domain *domain;
	/** number of bindings: of memory regions, and of kinds of operations of endpoints */
	unsigned int refs;
	enum fi_wait_obj wait_obj;
	struct wfi_wait wait;
	uint64_t value, errors;
};

int wfi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		  void *context);

/** One more operation has ended. Locked. */
static inline void wfi_cntr_count(struct wfi_cntr *cntr, bool error)
{
	if (error)
		cntr->errors++;
	else
		cntr->value++;
	if (cntr->wait.armed)
		wfi_wait_signal(&cntr->wait);
}

/**
 * Prepare the counter for a sleep of the application, for fi_trywait(). Locked.
 * @return 0: it may sleep; -FI_EAGAIN: read the counter first; -FI_EINVAL: the counter was opened
 * without a wait object; or another error
 */
int wfi_cntr_trywait(struct wfi_cntr *cntr);

/* ------------------------------------------------------------------ event queues */

/* The provider reports events of address vectors; endpoints have none. */

struct wfi_event;

struct wfi_eq {
	struct fid_eq eq;
	unsigned int refs;       /**< number of address vectors and endpoints bound to it */
	unsigned int generation; /**< generation of the process that opened it */
	enum fi_wait_obj wait_obj;
	struct wfi_wait wait;
	STAILQ_HEAD(, wfi_event) events;
};

int wfi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		void *context);

/** Append an event. Without memory the event is lost, and a warning is logged. Locked. */
void wfi_eq_report(struct wfi_eq *eq, uint32_t event, fid_t fid, void *context, uint64_t data);
/** wfi_eq_report() of an error. @param error  positive */
void wfi_eq_report_error(struct wfi_eq *eq, fid_t fid, void *context, uint64_t data, int error);

/**
 * Prepare the queue for a sleep of the application, for fi_trywait(). Locked.
 * @return 0: it may sleep; -FI_EAGAIN: read the queue first; or another error
 */
int wfi_eq_trywait(struct wfi_eq *eq);

#endif /* WFI_COMPLETION_H */
