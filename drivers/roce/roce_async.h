/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_async.h
 * Events of devices, and the threads of a device for kernel calls that sleep.
 */
#ifndef WEFT_ROCE_ASYNC_H
#define WEFT_ROCE_ASYNC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "roce_dev.h"
#include "roce_text.h"

void roce_watch_add(struct roce_dev *dev, struct roce_watch *watch, unsigned int port);
void roce_watch_remove(struct roce_dev *dev, struct roce_watch *watch);
/** Read the device's events and queue them for the ifaces that they may concern. Never waits. */
void roce_watch_poll(struct roce_dev *dev);
bool roce_watch_next(struct roce_dev *dev, struct roce_watch *watch, struct roce_event *event);

bool roce_is_qp_event(enum ibv_event_type type);

/** Handle PORT_ACTIVE and PORT_ERR of the port; other events are ignored. */
void roce_port_event(struct roce_port_watch *p, enum ibv_event_type type, uint64_t now);
/** Has the port been down for longer than a lane's timeout, and at least 1 s? @p what: a phrase. */
bool roce_port_gone(const struct roce_port_watch *p, unsigned int port, uint64_t now,
		    uint64_t give_up_ns, char *what, size_t len);
/**
 * The table of GIDs has changed: find the present index of ours.
 * @param[out] gone  the GID is not in the table now
 * @return true when existing connections can't continue, because their queue pairs name an entry
 *   that is gone or has another index; @p what gets a phrase for messages
 */
bool roce_gid_changed(struct roce_dev *dev, unsigned int port, struct weft_roce_gid *gid,
		      bool *gone, char *what, size_t len);

/** Run @p job in one of the device's threads. @return 0, or a negative error: no thread */
int roce_job_start(struct roce_dev *dev, struct roce_job *job);

static inline bool roce_job_done(const struct roce_job *job)
{
	/* Pairs with the release in the thread, after the writes of run(). */
	return atomic_load_explicit(&job->done, memory_order_acquire);
}

/** Cancel a waiting job: it is done now, with ECANCELED. A job that has begun runs to its end. */
void roce_job_cancel(struct roce_dev *dev, struct roce_job *job);
/** Wait for running and waiting jobs, and end the threads. */
void roce_jobs_end(struct roce_dev *dev);

#endif /* WEFT_ROCE_ASYNC_H */
