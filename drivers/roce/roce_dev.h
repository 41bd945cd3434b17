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

/** An event of a device or of a queue pair, queued for the iface that it concerns. */
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
	uint8_t host[16];                  /* GID of the host that it waits for; 0 = none */
	atomic_bool done;
};

/* Calls that may run at the same time: silent hosts delay others only when all are in use. */
#define ROCE_THREADS 8
/* Calls for one host at a time: a silent host with many lanes must not use all threads. */
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
	const struct roce_job *running[ROCE_THREADS]; /* NULL = unused */
	unsigned int jobs_open;                       /* waiting or running */
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

/** The GID entries of a port that are in use. @return count */
int roce_dev_gids(struct roce_dev *dev, unsigned int port, struct weft_roce_gid *table, int max);
/**
 * Find the present index of this GID, of this type, and set @p gid->index. @return false = it is
 * not in the table
 */
bool roce_dev_gid_find(struct roce_dev *dev, unsigned int port, struct weft_roce_gid *gid);
/** Network device of a GID entry, "" when it can't be seen from here (another namespace). */
void roce_dev_netdev(struct roce_dev *dev, unsigned int port, unsigned int index, char name[64]);
/** Identity of the hardware: PCI address, or the device's name. */
void roce_dev_identity(struct roce_dev *dev, char *buf, size_t size);
/** bytes/s of the port by its attributes. */
double roce_port_rate(const struct ibv_port_attr *port);
/** The same, by a query of the device; 0 = it does not report it. */
double roce_dev_port_rate(const struct roce_dev *dev, unsigned int port);
/**
 * Check that the kernel has a route from our address to the peer's by this network device. @return
 * 0 or a negative error with @p why filled
 */
int roce_route(const char *netdev, const uint8_t own[16], const uint8_t peer[16], char *why,
	       size_t why_len);

/** The error message for a verbs object that could not be created: locked memory may be short. */
void roce_setup_failed(const struct roce_dev *dev, const char *what, int err, char *why,
		       size_t why_len);

void roce_watch_add(struct roce_dev *dev, struct roce_watch *watch, unsigned int port);
void roce_watch_remove(struct roce_dev *dev, struct roce_watch *watch);
/** Read the device's events and queue them for the ifaces that they concern. Never waits. */
void roce_watch_poll(struct roce_dev *dev);
/** Next event of @p watch. @return false = none */
bool roce_watch_next(struct roce_dev *dev, struct roce_watch *watch, struct roce_event *event);

/** The state of a port, by events of the device. */
struct roce_port_watch {
	bool up;
	uint64_t down_since; /* ns; 0 = it was up all the time */
};

/** Handle PORT_ACTIVE and PORT_ERR of the port; other events are ignored. */
void roce_port_event(struct roce_port_watch *p, enum ibv_event_type type, uint64_t now);
/** Has it been down for longer than the timeout of a lane? @p what gets a phrase for messages */
bool roce_port_gone(const struct roce_port_watch *p, unsigned int port, uint64_t now,
		    uint64_t give_up_ns, char *what, size_t len);
/**
 * The table of GIDs has changed: find the present index of ours.
 * @param gone  it is not in the table
 * @return true when existing connections can't continue, because their queue pairs name the old
 *   entry; @p what gets a phrase for messages
 */
bool roce_gid_changed(struct roce_dev *dev, unsigned int port, struct weft_roce_gid *gid,
		      bool *gone, char *what, size_t len);
/** A phrase for messages about an address that was removed. */
void roce_gid_gone_text(const struct weft_roce_gid *gid, char *what, size_t len);

#define ROCE_DEVICE_GONE "the device failed or was removed (the kernel log has the reason)"
#define ROCE_QUEUE_GONE "a queue of the device failed (the kernel log has the reason)"

/** Run @p job in one of the device's threads. @return 0, or a negative error: no thread */
int roce_job_start(struct roce_dev *dev, struct roce_job *job);
static inline bool roce_job_done(const struct roce_job *job)
{
	/* Pairs with the release in the thread, after the writes of run(). */
	return atomic_load_explicit(&job->done, memory_order_acquire);
}

/** Cancel a job: if it has not begun, it is done now, with ECANCELED. */
void roce_job_cancel(struct roce_dev *dev, struct roce_job *job);
/** Wait for running and waiting jobs, and end the threads. */
void roce_jobs_end(struct roce_dev *dev);

#endif /* WEFT_ROCE_DEV_H */
