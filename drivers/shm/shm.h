/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file shm/shm.h
 * Constants and structs that the files of the driver share.
 *
 *	shm_mem.c       the memory of a connection and its rings; tables of registered memory
 *	shm_socket.c    addresses, sockets; hellos, received in another thread
 *	shm_conn.c      making and ending connections
 *	shm_transfer.c  sends, completions, native reads of a peer's memory; waking the peer
 *	shm_progress.c  progress: messages, events of the sockets; sleeping
 *	shm_lane.c      struct weft_lane_driver of "shm"; opening and closing ifaces
 */
#ifndef WEFT_SHM_H
#define WEFT_SHM_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "base/bytes.h"
#include "base/container.h"
#include "base/log.h"
#include "lane.h"
#include "lane_attr.h"
#include "shm/shm_mem.h"

#define SHM_ADDR_LEN 32
#define SHM_EPS_MAX 16384 /* connections of an iface, with those being made or not yet freed */
#define SHM_HALF_MAX 64   /* connections of an iface accepted without a hello yet */
#define SHM_HALF_ONE 16   /* connections of one process accepted without a hello yet */
#define SHM_COMPS 128     /* outstanding completions of a lane_ep */
#define SHM_BUFS 64       /* receive buffers of an iface */
#define SHM_KEEP_MAX 32   /* receive buffers of an iface that callbacks keep at the same time */
#define SHM_NATIVES 16    /* outstanding native reads of a lane_ep */
#define SHM_NATIVE_IOV 4u
#define SHM_NATIVE_MAX (16u << 20)
#define SHM_NATIVE_FEATURES ((uint32_t)WEFT_LANE_F_GET)
#define SHM_HOT 2    /* rings that every progress() checks */
#define SHM_COLD 2   /* further rings that every progress() checks, in rotation */
#define SHM_BURST 64 /* records that one check of a ring takes at most */
#define SHM_TEXT_MAX 200
/* The sockets are checked at these intervals: in general, and while connections are made. */
#define SHM_LOOK_NS 1000000u
#define SHM_LOOK_MAKING_NS 50000u

/** Address of an iface, little-endian. */
struct shm_addr {
	weft_le64 host; /**< number of the running system: weft_platform.host_id() */
	/** hash of host, user, namespaces and sockets' folder; equal if processes share memory */
	weft_le64 place;
	weft_le64 iface_id; /**< the socket's name has this number */
	weft_le16 version;
	uint8_t zero[6];
};
static_assert(sizeof(struct shm_addr) == SHM_ADDR_LEN, "lane_attr.dev_addr_len");

#define SHM_HELLO_MAGIC 0x4f4c4548u

/** An end sends at most one hello over the socket, and then single bytes that wake the peer. */
struct shm_hello {
	uint32_t magic;
	uint16_t version;
	/** 1: the sender's system has no membarrier(), so sends to it must fence; else 0 */
	uint16_t fences;
	int32_t status; /**< in a reply: 0, or a negative error with the reason in text */
	uint32_t zero;
	uint8_t addr[SHM_ADDR_LEN]; /**< struct shm_addr of the sender */
	uint8_t to[8];              /**< iface_id of the receiver, little-endian */
	/** address and value of a random word in the sender's memory; 0 = no native access */
	uint64_t word_at, word;
	char text[128];
};
static_assert(sizeof(struct shm_hello) == 200, "as doc/shm.md has it");

/** An initiator passes its segment and table of registrations, an acceptor only its table. */
#define SHM_HELLO_FDS 2

enum shm_state {
	SHM_CONNECTING, /* initiator: the socket is not connected yet */
	SHM_REQUESTED,  /* initiator: waits for the reply */
	SHM_ACCEPTED,   /* acceptor: waits for the hello */
	SHM_UP,
	SHM_DEAD, /* ended or destroyed */
};

struct shm_ep;

struct shm_fd {
	int fd;
	struct shm_ep *lane_ep; /* NULL: the listening socket, or the inbox */
	bool is_process;        /* fd is a pidfd: readable when the peer's process has ended */
};

struct shm_native;
struct shm_inbox;
struct shm_receipt;

struct shm_comp {
	STAILQ_ENTRY(shm_comp) next;
	struct weft_lane_comp *comp;
	uint32_t position; /* due when the peer has taken all lines before it */
};

struct shm_ep {
	struct weft_lane_ep base; /* first */
	struct shm_rx rx;
	struct shm_tx tx;
	uint8_t state;
	bool destroyed;   /* its owner has destroyed it, or never had it: shm_reap() frees it */
	bool ended;       /* the peer is lost: deliver the ring's records, then report the end */
	bool fences;      /* a send must fence before it checks whether the peer sleeps */
	bool peer_fences; /* the peer's arm() has no membarrier() */
	bool starved;     /* a send was refused with -EAGAIN after the last disarm() */
	uint16_t num_comps;
	int status;     /* error of the attempt to connect, or 0; SHM_DEAD: the error of sends */
	pid_t pid;      /* the peer's process; 0 = unknown: it is in another PID namespace */
	uint64_t since; /* ns: begin of the connect timeout; 0 = the next progress() sets it */
	struct shm_segment *segment;
	const struct shm_reg_table *regs; /* the peer's table; NULL = none */
	STAILQ_HEAD(, shm_comp) comps;    /* by position */
	STAILQ_HEAD(, shm_native) natives;
	unsigned int num_natives;
	LIST_ENTRY(shm_ep) busy; /* in iface->busy, while num_natives > 0 */
	struct shm_addr peer;
	struct shm_fd sock, process;
	struct shm_receipt *receipt; /* of the hello that another thread receives, or NULL */
	TAILQ_ENTRY(shm_ep) entry;   /* in iface->making, ->up or ->dead */
	LIST_ENTRY(shm_ep) waiting;  /* in iface->waiting, while num_comps > 0 */
	uint32_t slot;               /* SHM_UP: index in iface->table */
	char text[SHM_TEXT_MAX];     /* why the attempt to connect has failed */
};
TAILQ_HEAD(shm_list, shm_ep);

#define SHM_COUNTERS(X)                                                                         \
	X(tx_messages, "tx.messages", "Messages sent.")                                         \
	X(tx_chunks, "tx.chunks",                                                               \
	  "Messages sent in a chunk: too long for the ring, or not contiguous.")                \
	X(tx_no_room, "tx.no_room",                                                             \
	  "Sends that found the ring full, no chunk, or no connection yet.")                    \
	X(tx_wakes, "tx.wakes", "Peers that slept and were woken.")                             \
	X(rx_messages, "rx.messages", "Messages received.")                                     \
	X(rx_chunks, "rx.chunks", "Messages received in a chunk.")                              \
	X(native_get_bytes, "native.get_bytes", "Bytes read from the memory of peers.")         \
	X(native_failed, "native.failed", "Reads of the memory of peers that failed.")          \
	X(rx_bad, "rx.bad", "Connections ended because of invalid data in shared memory.")      \
	X(accepted, "conn.accepted", "Connections accepted.")                                   \
	X(refused_user, "conn.refused.user", "Connections refused: a process of another user.") \
	X(refused_share, "conn.refused.share",                                                  \
	  "Connections refused: too many of one process without a hello.")                      \
	X(refused_other, "conn.refused.other",                                                  \
	  "Connections refused: malformed, another version, or too many.")                      \
	X(died, "conn.died", "Peers that ended without closing.")

struct shm_count {
	SHM_COUNTERS(WEFT_COUNTER_FIELD)
};

struct shm_iface {
	struct weft_lane_iface base; /* first */
	char name[48];
	weft_lane_recv_cb recv;
	weft_lane_event_cb event;
	void *arg;
	/* lane_eps that are up: the first SHM_HOT are checked by every progress() */
	struct shm_ep **table;
	uint32_t table_room, num_table, next_cold, next_hot;
	struct weft_log_limit full; /* of log lines about connections that lack a resource */
	uint64_t look_at;           /* time of the next check of the sockets, in ns */
	bool fences;                /* this system has no membarrier() */
	bool registered;            /* this process is registered for membarrier() of peers */
	struct shm_list making, up, dead;
	LIST_HEAD(, shm_ep) waiting;
	LIST_HEAD(, shm_ep) busy;
	struct weft_mpool comps, natives;
	int reg_fd;    /* our table of registrations; -1 = none, peers cannot read our memory */
	uint64_t word; /* random number; a peer reads it to test whether it can read our memory */
	uint32_t num_eps, num_half, num_making, num_kept;
	int epoll;
	pid_t owner; /* process that created the name of the socket */
	struct shm_fd listen, received;
	struct shm_inbox *inbox;
	pid_t registers;               /* the process that started registrar; 0 = no thread */
	pthread_t registrar;           /* registers this process for membarrier(), then ends */
	atomic_bool registration_done; /* set by register_process() if it succeeds */
	uint64_t connect_timeout;
	struct shm_addr addr;
	struct weft_mpool bufs;
	struct shm_count count;
	/* private copy of a short message, for the receive callback */
	_Alignas(64) uint8_t copy[SHM_RECORD_LINES * SHM_LINE];
};

static inline struct shm_iface *shm_iface(struct weft_lane_iface *iface)
{
	return (struct shm_iface *)iface;
}

static inline struct shm_ep *shm_ep(struct weft_lane_ep *lane_ep)
{
	return (struct shm_ep *)lane_ep;
}

#endif /* WEFT_SHM_H */
