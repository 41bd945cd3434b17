/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/provider.h
 * libweft-fi.so, a provider of libfabric over Weft's public API, for MPI and other users of
 * libfabric. doc/mpi.md is for users; this is the map.
 *
 *	fabric.c      entry point of the shared object, fabrics, domains, fi_trywait(); children of
 *	              fork(), which start with nothing open
 *	provider.c    functions that every object of libfabric needs; versions of libfabric: of the
 *	              headers, of the library, of requests; FI_WEFT_* variables, and Weft's
 *	              defaults for a job; properties of the job that the launcher reports
 *	info.c        the offer: fi_getinfo() and its hints
 *	process.c     state that all domains of the process share: context, worker, progress;
 *	              sleeping until an operation completes, woken by other threads' calls; the
 *	              thread that makes progress while the application computes; the lock of that
 *	              state; numbers of domains
 *	av.c          address vectors; remote processes and the connection to each
 *	completion.c  completion queues, counters, event queues
 *	op.c          operations, and how they end; buffers for several messages; numbers of
 *	              endpoints
 *	ep.c          endpoints: opening, binding, closing; shared contexts
 *	message.c     messages, the calls with and without a tag; probing messages before they are
 *	              received
 *	name.c        addresses as text; endpoints by node and service: the exchange of addresses
 *	              over TCP
 *	rma.c         remote memory: regions, reads and writes
 *	atomic.c      remote memory: atomics
 *
 * A process has one worker, whatever the number of its domains and endpoints, since a port has one
 * owner. The first endpoint to be enabled creates the worker (process.h). One lock guards the
 * worker and everything here (process.h). All calls on the worker are made with the lock held, and
 * Weft's callbacks run inside them.
 *
 * Objects begin with libfabric's fid, and are opened and closed by libfabric's calls. Domains,
 * queues, counters, address vectors and shared contexts count their users; while there are users,
 * closing them returns -FI_EBUSY.
 */
#ifndef WFI_PROVIDER_H
#define WFI_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#define WFI_NAME "weft"

/* Headers of libfabric 1.x define container_of(), those of 2.x do not. */
#ifndef container_of
#define container_of(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))
#endif

/** The maximum number of struct iovec or fi_ioc that a call passes for one buffer. */
#define WFI_IOV_MAX 16

/** Bytes of libfabric's authorization key, which is Weft's job key (doc/sealing.md). */
#define WFI_KEY_LEN 32

extern struct fi_provider wfi_provider;

/* Functions of a fid that an object does not support: they return -FI_ENOSYS. */
int wfi_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int wfi_no_control(struct fid *fid, int command, void *arg);
int wfi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

/* ------------------------------------------------------------------ versions of libfabric */

/*
 * The headers of the build and the library of the run may have different versions. A library serves
 * a request of version N only from providers that report N or more. So a provider that reported the
 * version of its headers would be absent for every application that is newer than the build.
 *
 * The provider therefore reports the version of the library that has loaded it. Three rules keep
 * that true:
 * - Structures that the provider returns are allocated by the library (fi_allocinfo()), which sets
 *   members that the headers do not have to 0. In all of them 0 is the default.
 * - Members that the headers do not have are read by declarations of our own, and only where the
 *   library is new enough to pass them.
 * - Tables of functions contain their size, by which libfabric detects functions that are absent.
 */

/** The newest libfabric that tests have used; requests for a newer version are not served. */
#define WFI_VERSION_NEWEST FI_VERSION(2, 6)

/** Set the version that the provider reports. */
void wfi_version_start(void);

/** Members of struct fi_domain_attr from tclass on, as of 1.20. */
struct wfi_domain_attr_1_20 {
	uint32_t tclass;
	size_t max_ep_auth_key;
	uint32_t max_group_id;
};

/**
 * Members of an application's hints from tclass on. The library copies hints of applications that
 * were built with older headers, so all hints have the members of the library's version.
 * @return NULL: the library is older than 1.20
 */
const struct wfi_domain_attr_1_20 *wfi_version_domain_attr(const struct fi_domain_attr *attr);

/* ------------------------------------------------------------------ variables */

/*
 * Variables of the provider, FI_WEFT_*, which `fi_info -e` lists; and defaults for Weft's own
 * variables that the user has not set.
 */

struct weft_config;

enum wfi_progress_choice {
	/**
	 * WFI_THREAD_AUTO (process.h) for applications that request FI_PROGRESS_AUTO, else
	 * WFI_THREAD_WATCH
	 */
	WFI_PROGRESS_REQUESTED,
	WFI_PROGRESS_MANUAL,
	WFI_PROGRESS_AUTO,
};

struct wfi_options {
	const char *lanes; /**< FI_WEFT_LANES; NULL: not set */
	/** WEFT_LANES and WEFT_EAL_ARGS of the launcher, for hosts without them; NULL: not set */
	const char *job_lanes, *job_eal_args;
	enum wfi_progress_choice progress;
	/** FI_PROGRESS_AUTO: interval in us of the checks whether the application polls */
	unsigned int interval_us;
	/** calls in a row without an event, after which a rank yields its core; UINT_MAX: never */
	unsigned int yield_after;
};

/** Declare the variables to libfabric; reads nothing. */
void wfi_options_define(void);

/**
 * Read the variables. The first rank of a job reports unknown variables, once. Each rank reports an
 * invalid value, since the launcher may end the first rank before it can report.
 * @return 0, or -FI_EINVAL: a value is invalid
 */
int wfi_options_read(struct wfi_options *options);

/**
 * An address comes from another version of Weft or of the provider: the first rank of the job
 * reports it. Other ranks wait for 1 s, since the launcher ends all ranks as soon as one fails.
 * Later calls have no effect.
 */
void wfi_options_other_version(void);

/** Read FI_WEFT_PROGRESS. An invalid value is WFI_PROGRESS_REQUESTED, and is not reported. */
enum wfi_progress_choice wfi_options_progress(void);

/**
 * Weft's configuration for a job: the environment's, with defaults for MPI programs. To be released
 * by weft_config_release(). @return 0 or a negative error of Weft
 */
int wfi_options_config(const struct wfi_options *options, struct weft_config **config);

/* ------------------------------------------------------------------ the job */

/*
 * Properties of the job that the launcher reports in the environment: Open MPI's and PRRTE's
 * mpirun, Hydra, Slurm.
 */

/** @return the rank of this process in its job; -1: no launcher reports it */
long wfi_job_rank(void);

/** @return number of ranks on this host, this one included; 0: no launcher reports it */
long wfi_job_local_ranks(void);

/**
 * Has this host more ranks than CPUs for them? The CPUs are those of the launcher's affinity mask,
 * since a launcher binds each of its ranks to a part of its own CPUs; if this process cannot find
 * the launcher, all CPUs of the host that are online. A lower number from Slurm has priority.
 */
bool wfi_job_is_oversubscribed(void);

#endif /* WFI_PROVIDER_H */
