/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider.h
 * libweft-fi.so: libfabric's interface over Weft's public one, for MPI and other users of
 * libfabric. doc/mpi.md is for users; this is the map.
 *
 *	provider.c        entry point of the shared object, fabrics
 *	base.c            functions that every object of libfabric needs
 *	info.c            the offer: fi_getinfo() and its hints
 *	version.c         versions of libfabric: of the headers, of the library, of requests
 *	options.c         FI_WEFT_* variables, and Weft's defaults for a job
 *	job.c             properties of the job that the launcher reports
 *	process.c         state that all domains of the process share: context, worker, progress
 *	lock.c            the lock of that state
 *	wait.c            sleeping until an operation completes, woken by other threads' calls
 *	trywait.c         fi_trywait()
 *	thread.c          the thread that makes progress while the application computes
 *	peer.c            remote processes and the connection to each
 *	fork.c            children of fork(), which start with nothing open
 *	domain.c          domains
 *	av.c              address vectors
 *	eq.c              event queues
 *	cq.c, cq_read.c   completion queues: entries, reading them
 *	cntr.c            counters
 *	mr.c              memory regions
 *	op.c              operations, and how they end
 *	ep.c              endpoints
 *	message.c         messages
 *	msg.c             calls for messages without a tag
 *	multi.c           buffers for several messages
 *	rma.c, atomic.c   remote memory
 *	tagged.c, peek.c  calls for tagged messages; probing them before they are received
 *
 * A process has one worker, whatever the number of its domains and endpoints, since a port has one
 * owner. The first endpoint to be enabled creates it. One lock guards it and everything here
 * (process.h). All calls into Weft are made with the lock held, and Weft's callbacks run inside
 * them.
 *
 * Objects begin with libfabric's fid, and are opened and closed by libfabric's calls. They count
 * their users; closing an object in use returns -FI_EBUSY.
 */
#ifndef WFI_PROVIDER_H
#define WFI_PROVIDER_H

#include <stddef.h>

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

/* Headers of libfabric 1.x define it, those of 2.x do not. */
#ifndef container_of
#define container_of(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))
#endif

/** Most pieces of a buffer, in sends and receives. */
#define WFI_IOV_MAX 16

extern struct fi_provider wfi_provider;

/* For functions of a fid that an object does not support. */
int wfi_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int wfi_no_control(struct fid *fid, int command, void *arg);
int wfi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

#endif /* WFI_PROVIDER_H */
