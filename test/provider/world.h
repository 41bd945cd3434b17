/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file world.h
 * Two processes that test the provider through libfabric, in lockstep: both run every test, and a
 * socket between them carries addresses and barriers. Side 0 is the test program, side 1 its child;
 * what fails there fails the next barrier here.
 */
#ifndef PROVIDER_WORLD_H
#define PROVIDER_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#define CHECK(call) check_rc(call, #call, __FILE__, __LINE__)

/** What a test wants; zero is the ordinary thing. */
struct world_params {
	uint64_t caps;
	enum fi_cq_format format;
	enum fi_wait_obj wait_obj;
	uint64_t cq_flags; /**< FI_SELECTIVE_COMPLETION */
	uint64_t tx_flags; /**< default operation flags */
	uint64_t order;    /**< of tx_attr, besides FI_ORDER_SAS */
	size_t inject_size;
	enum fi_progress progress;
	bool counters;        /**< instead of completion queues */
	bool app_keys;        /**< without FI_MR_PROV_KEY */
	const void *auth_key; /**< 32 bytes of the domain; NULL: none */
	bool text;            /**< addresses are texts (FI_ADDR_STR) */
};

/** A process's side of a test. */
struct world {
	int me, other;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cntr *sent, *received;
	struct fid_cntr *written, *read; /**< FI_RMA_EVENT: by the peer, anywhere */
	struct fid_ep *ep;
	fi_addr_t peer, self;
};

/** Which side this is; before the first test. */
extern int world_side;
/** The process of side 1; 0 there. */
extern pid_t world_child;

/** Before anything else in main(): the second process, and what both need. */
void world_begin(void);
/** At the end of main(). @return what it returns: the other side's failures count */
int world_end(int failed);

struct fi_info *world_hints(const struct world_params *world_params);
/** Everything open, by node and service as for fi_getinfo(); no addresses exchanged. */
void world_open_at(struct world *w, const struct world_params *world_params, const char *node,
		   const char *service, uint64_t flags);
/** Close everything, whatever the other side does. */
void world_shut(struct world *w);
/** The number of a TCP port that is free, the same on both sides. */
void world_free_port(char port[8]);
/** Everything open, addresses exchanged. */
void world_open(struct world *w, const struct world_params *world_params);
void world_close(struct world *w);
/** The endpoint alone, before the rest. */
void world_close_ep(struct world *w);

/** Both sides are here. */
void world_barrier(void);
/** The same while this side makes progress. */
void world_barrier_progress(struct world *w);
void world_give(const void *data, size_t length);
void world_take(void *data, size_t length);

void check_rc(ssize_t rc, const char *call, const char *file, int line);

/** The next completion, which must be a success. */
struct fi_cq_tagged_entry world_next(struct world *w, fi_addr_t *source);
/** The next one, which must be an error. */
struct fi_cq_err_entry world_next_error(struct world *w);

/** A side's memory for the other, and the key of the other's. */
struct world_region {
	uint8_t *memory, *local; /**< zeros */
	struct fid_mr *mr;
	uint64_t key;
};

void world_region_open(struct world *w, struct world_region *r, size_t length, uint64_t access);
/** When both sides are through; makes progress. */
void world_region_close(struct world *w, struct world_region *r);

/** Tagged, each until it is complete. */
void world_send(struct world *w, const void *buf, size_t length, uint64_t tag);
struct fi_cq_tagged_entry world_recv(struct world *w, void *buf, size_t length, uint64_t tag);

void world_fill(void *buf, size_t length, unsigned int seed);
void world_compare(const void *buf, size_t length, unsigned int seed);

#endif /* PROVIDER_WORLD_H */
