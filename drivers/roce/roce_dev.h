/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_dev.h
 * A device of the process: GIDs, routes, events, and threads for kernel calls that sleep (device.c,
 * route.c, async.c, job.c).
 */
#ifndef WEFT_ROCE_DEV_H
#define WEFT_ROCE_DEV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "lane.h"
#include "roce_gid.h"

/** What happened to a device or to a queue pair, waiting for the iface that it concerns. */
struct roce_event {
	STAILQ_ENTRY(roce_event) link;
	enum ibv_event_type type;
	uint32_t qpn; /* of a queue pair */
	const void *
		/* completion queue or shared receive queue: to be compared, never followed */
		queue;
};

struct roce_watch {
	LIST_ENTRY(roce_watch) link;
	STAILQ_HEAD(, roce_event) events; /* under the device's lock */
	atomic_bool pending;              /* events is not empty; read without the lock */
	unsigned int port;
};

struct roce_job {
	STAILQ_ENTRY(roce_job) link;
	void (*run)(struct roce_job *job); /* in one of the device's threads */
	int err;                           /* positive errno, written before done */
	bool waits;                        /* it has not begun; under the device's lock */
	uint8_t host[16];                  /* whose answer it needs, a GID; 0 = nobody's */
	atomic_bool done;
};

/* Hosts of a device that may be silent at the same time without keeping others waiting. */
#define ROCE_THREADS 8
/* Calls that wait for one host at a time: it may have many lanes, and be silent. */
#define ROCE_THREADS_HOST 2

struct roce_dev {
	LIST_ENTRY(roce_dev) link;
	unsigned int refs;
	char name[64];
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	double reg_cost, reg_growth;
	pthread_mutex_t lock; /* watches, jobs */
	LIST_HEAD(, roce_watch) watches;
	pthread_t threads[ROCE_THREADS];
	unsigned int num_threads;
	pthread_cond_t wake;
	STAILQ_HEAD(, roce_job) jobs;
	const struct roce_job *running[ROCE_THREADS]; /* NULL = a place that is free */
	unsigned int jobs_open;                       /* that wait or run */
	bool threads_end;
};

/** Open a device or take another reference. @return NULL with @p why filled and *err set */
struct roce_dev *roce_dev_get(const char *name, int *err, char *why, size_t why_len);
void roce_dev_put(struct roce_dev *dev);

/**
 * Names of all devices and their Ethernet ports as resources "rxe0" or "mlx5_0:2". @return count or
 * a negative error
 */
int roce_dev_list(struct weft_lane_resource **list);

/** The port's entries that are in use. @return count */
int roce_dev_gids(struct roce_dev *dev, unsigned int port, struct weft_roce_gid *table, int max);
/**
 * Where is this GID, of this type, in the table now? @p gid->index says it. @return false = nowhere
 */
bool roce_dev_gid_find(struct roce_dev *dev, unsigned int port, struct weft_roce_gid *gid);
/** Network device of a GID entry, "" when it can't be seen from here (another namespace). */
void roce_dev_netdev(struct roce_dev *dev, unsigned int port, unsigned int index, char name[64]);
/** Identity of the hardware: PCI address, or the device's name. */
void roce_dev_identity(struct roce_dev *dev, char *buf, size_t size);
/** bytes/s of the port as it says itself. */
double roce_port_rate(const struct ibv_port_attr *port);
/** The same, asked of the device now; 0 = it does not report it. */
double roce_dev_port_rate(const struct roce_dev *dev, unsigned int port);
/**
 * A way from our address to the peer's, as the kernel's routes have it. @return 0 or a negative
 * error with @p why filled
 */
int roce_route(const char *netdev, const uint8_t own[16], const uint8_t peer[16], char *why,
	       size_t why_len);

/** Verbs objects for which locked memory may be short: the sentence. */
void roce_setup_failed(const struct roce_dev *dev, const char *what, int err, char *why,
		       size_t why_len);

void roce_watch_add(struct roce_dev *dev, struct roce_watch *watch, unsigned int port);
void roce_watch_remove(struct roce_dev *dev, struct roce_watch *watch);
/** Read the device's events and hand them to those they concern. Never waits. */
void roce_watch_poll(struct roce_dev *dev);
/** Next event of @p watch. @return false = none */
bool roce_watch_next(struct roce_dev *dev, struct roce_watch *watch, struct roce_event *event);

/** What the device says of a port. */
struct roce_port_watch {
	bool up;
	uint64_t down_since; /* ns; 0 = it was up all the time */
};

/** PORT_ACTIVE or PORT_ERR of the port came; other events are nothing to it. */
void roce_port_event(struct roce_port_watch *p, enum ibv_event_type type, uint64_t now);
/** Has it been down for longer than a lane waits for its peer? @p what gets half a sentence */
bool roce_port_gone(const struct roce_port_watch *p, unsigned int port, uint64_t now,
		    uint64_t give_up_ns, char *what, size_t len);
/**
 * The table of GIDs has changed: look where ours is now.
 * @param gone  is it nowhere?
 * @return true when what is connected can't go on, for its queue pairs name the old entry; @p what
 *   gets half a sentence
 */
bool roce_gid_changed(struct roce_dev *dev, unsigned int port, struct weft_roce_gid *gid,
		      bool *gone, char *what, size_t len);
/** Half a sentence about an address that is gone. */
void roce_gid_gone_text(const struct weft_roce_gid *gid, char *what, size_t len);

#define ROCE_DEVICE_GONE "the device failed or was removed (the kernel log says why)"
#define ROCE_QUEUE_GONE "a queue of the device failed (the kernel log says why)"

/** Run @p job in one of the device's threads. @return 0, or a negative error: no thread */
int roce_job_start(struct roce_dev *dev, struct roce_job *job);
static inline bool roce_job_done(const struct roce_job *job)
{
	/* Pairs with the release in the thread: what run() wrote is seen. */
	return atomic_load_explicit(&job->done, memory_order_acquire);
}

/** Nobody is interested any more: if it has not begun, it is done now, with ECANCELED. */
void roce_job_cancel(struct roce_dev *dev, struct roce_job *job);
/** Wait for the jobs that run or wait, and end the threads. */
void roce_jobs_end(struct roce_dev *dev);

#endif /* WEFT_ROCE_DEV_H */
