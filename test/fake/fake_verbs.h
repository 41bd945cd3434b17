/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file fake/fake_verbs.h
 * RDMA devices in this process, in the place of libibverbs: for unit tests of drivers/roce, with
 * virtual time. Not for measuring.
 *
 * Nothing moves until fake_pump() is called. What is modelled is what the driver stands on, with
 * the strictness of the InfiniBand specification, and where providers differ as mlx5 does it:
 *
 *  - rights and bounds of registrations, keys that end with them, RLIMIT_MEMLOCK;
 *  - limits: requests, scatter entries, inline data, entries of completion queues, what a shared
 *    receive queue takes. A place of a send queue is free when a completion at or after it was
 *    *polled*, a place of a shared receive queue when its completion was;
 *  - states of queue pairs and which changes are allowed; the two ends must agree on numbers, PSN,
 *    path MTU, addresses and RoCE version, or there is no answer and the retry counter runs out;
 *  - SEND, SEND with immediate data, WRITE, READ, atomics over RC, SEND over UD with its network
 *    header; requests without a completion;
 *  - an empty shared queue is "receiver not ready", counted; in the error state everything is
 *    flushed, then comes QP_LAST_WQE_REACHED;
 *  - ibv_destroy_qp() and a change to RESET remove the queue pair's completions from the completion
 *    queue, receives of a shared queue with them, without a completion (mlx5's __mlx5_cq_clean());
 *  - calls that fail when a test says so, events of any type, devices that stand still or are gone.
 *
 * Not modelled: congestion, reordering, atomics' byte order, completion channels, memory windows,
 * more than one port.
 */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define FAKE_DEVICES 4
#define FAKE_GIDS 8

enum fake_call {
	FAKE_ALLOC_PD,
	FAKE_REG_MR,
	FAKE_CREATE_CQ,
	FAKE_CREATE_SRQ,
	FAKE_CREATE_QP,
	FAKE_MODIFY_QP,
	FAKE_CREATE_AH,
	FAKE_POST_SEND,
	FAKE_POST_RECV,
	FAKE_POST_SRQ_RECV,
	FAKE_NUM_CALLS
};

struct fake_device {
	struct ibv_device base; /* first */
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gids[FAKE_GIDS]; /**< all zero = not in use */
	bool v1[FAKE_GIDS];
	uint32_t max_inline;
	bool no_last_wqe; /**< does not report QP_LAST_WQE_REACHED, as rdma_rxe before Linux 6.5 */
	bool frozen;      /**< moves nothing and answers nothing */
	bool cut;         /**< the wire carries nothing, and its port does not tell */
	bool removed;     /**< fake_remove() */
	uint64_t rate;    /**< bytes/s; 0 = no matter */
	uint64_t busy;    /**< ns: until then it works on its last request */
};

/** A call that shall fail: after @p after that succeed, @p times times, with @p err. */
struct fake_fail {
	unsigned int after, times;
	int err;
	unsigned int taken; /**< post calls: so many requests of the chain are taken before */
};

struct fake {
	uint64_t now; /**< ns, of the last fake_pump() */
	struct fake_device device[FAKE_DEVICES];
	unsigned int num_devices;
	struct fake_fail fail[FAKE_NUM_CALLS];
	uint64_t memlock;     /**< bytes that may be pinned in all */
	unsigned int ud_lose; /**< so many of the next datagrams get lost */
	unsigned int budget;  /**< requests that a pump carries out at most; 0 = all */
	bool ud_send_error;   /**< the next datagram's request ends in an error */
	uint64_t pinned;
	struct {
		uint64_t calls[FAKE_NUM_CALLS];
		uint64_t rnr; /**< requests that met no receive */
		uint64_t cq_overrun;
		uint64_t purged_sends; /**< completions that no poll returns */
		uint64_t purged_recvs; /**< and with them buffers of a shared queue */
		uint64_t flushed;
		uint64_t datagrams, ud_dropped;
		uint64_t ah_in_use; /**< address handles destroyed under requests */
	} count;
	struct {
		unsigned int contexts, pds, mrs, cqs, srqs, qps, ahs;
	} alive;
};

extern struct fake fake;

/** Forget everything. Objects must be gone. */
void fake_reset(void);
/** A device like a ConnectX with an IPv4 address, RoCE v2, in entry 1 of its table. */
struct fake_device *fake_device_add(const char *name, const uint8_t ipv4[4]);
void fake_gid_set(struct fake_device *d, unsigned int index, const uint8_t ipv4[4], bool v2);
void fake_gid_clear(struct fake_device *d, unsigned int index);
/** What hardware does, until it has nothing to do. @return requests that ended */
unsigned int fake_pump(uint64_t now_ns);
void fake_fail(enum fake_call call, unsigned int after, unsigned int times, int err);
/** An event of the port or of the whole device. */
void fake_event(struct fake_device *d, enum ibv_event_type type);
/** An event of one queue pair, or of its completion queue or shared receive queue. */
void fake_event_qp(uint32_t qpn, enum ibv_event_type type);
/** As if the NIC were pulled: DEVICE_FATAL, nothing moves any more, calls fail with EIO. */
void fake_remove(struct fake_device *d);
/** A queue pair breaks: into the error state, with a QP_FATAL. */
void fake_qp_break(uint32_t qpn);
/** Its next request is carried out, and no acknowledgement comes: it ends with RETRY_EXC_ERR. */
void fake_qp_lose_ack(uint32_t qpn);
enum ibv_qp_state fake_qp_state(uint32_t qpn);
/** What is in its receive queue or that of its shared queue. */
uint32_t fake_qp_receives(uint32_t qpn);

#endif /* FAKE_VERBS_H */
