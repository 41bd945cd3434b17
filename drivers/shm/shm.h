/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file shm/shm.h
 * Shared by the files of the driver.
 *
 *	segment.c   the memory of a connection
 *	ring.h      the two ends of its rings
 *  place.c     which processes share memory; addresses
 *  socket.c    the sockets that make connections, and report the end of a peer
 *	receipt.c   hellos, received in another thread
 *	conn.c      making and ending connections
 *	send.c      sends, completions
 *  reg.c       registered memory, and the addresses of a peer's
 *  native.c    reads of a peer's memory
 *	poll.c      progress: messages, events of the sockets
 *	wait.c      sleeping, waking
 *	shm_lane.c  the driver's table
 */
#ifndef WEFT_SHM_H
#define WEFT_SHM_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "base/container.h"
#include "base/counters.h"
#include "base/log.h"
#include "core/wire_types.h"
#include "lane.h"
#include "shm/reg.h"
#include "shm/ring.h"

#define SHM_ADDR_LEN 32
#define SHM_EPS_MAX 16384 /* connections of an iface, including those being made */
#define SHM_HALF_MAX 64   /* of them accepted ones without a hello yet */
#define SHM_HALF_ONE 16   /* of these, of one process */
#define SHM_COMPS 128     /* completions that a lane_ep waits for */
#define SHM_BUFS 64       /* receive buffers of an iface */
#define SHM_KEEP_MAX 32   /* above, callbacks must copy */
#define SHM_NATIVES 16    /* outstanding native reads of a lane_ep */
#define SHM_NATIVE_IOV 4u
#define SHM_NATIVE_MAX (16u << 20)
#define SHM_NATIVE_FEATURES ((uint32_t)WEFT_LANE_F_GET)
#define SHM_HOT 2    /* rings that every progress() checks */
#define SHM_COLD 2   /* and this number of the others, in rotation */
#define SHM_BURST 64 /* consecutive records of one ring */
#define SHM_TEXT_MAX 200
/* Intervals of the checks of the sockets, in general and while connections are made. */
#define SHM_LOOK_NS 1000000u
#define SHM_LOOK_MAKING_NS 50000u

/** Address of an iface, little-endian. */
struct shm_addr {
	weft_le64 host;     /**< of the running system */
	weft_le64 place;    /**< of user and namespaces; equal for processes that share memory */
	weft_le64 iface_id; /**< the socket's name */
	weft_le16 version;  /**< SHM_VERSION */
	uint8_t zero[6];
};
static_assert(sizeof(struct shm_addr) == SHM_ADDR_LEN, "lane_attr.dev_addr_len");

#define SHM_HELLO_MAGIC 0x4f4c4548u

/** The only message of either end over the socket, except single bytes that wake. */
struct shm_hello {
	uint32_t magic;
	uint16_t version;
	uint16_t
		fences; /**< the sender's system has no membarrier(): the peer's sends must fence */
	int32_t status; /**< of a reply: 0, or a negative error and a reason */
	uint32_t zero;
	uint8_t addr[SHM_ADDR_LEN]; /**< of its sender */
	uint8_t to[8];              /**< its receiver: iface_id */
	uint64_t word_at, word; /**< a random word in its sender's memory; 0 = no native access */
	char text[128];
};
static_assert(sizeof(struct shm_hello) == 200, "as doc/shm.md has it");

/** Descriptors that come with one: from a connecting peer the segment, then the registrations. */
#define SHM_HELLO_FDS 2

enum shm_state {
	SHM_CONNECTING, /* initiator: the socket is not connected yet */
	SHM_REQUESTED,  /* initiator: waits for the reply */
	SHM_ACCEPTED,   /* acceptor: waits for the hello */
	SHM_UP,
	SHM_DEAD, /* reported, or destroyed */
};

struct shm_ep;

/** A descriptor in the iface's epoll. */
struct shm_fd {
	int fd;
	struct shm_ep *lane_ep; /* NULL: the listening socket, or the inbox */
	bool is_process;        /* readable when the peer's process has ended */
};

struct shm_native;
struct shm_inbox;
struct shm_receipt;

struct shm_comp {
	uint32_t position; /* due when the peer has taken all lines before it */
	struct weft_lane_comp *comp;
};

struct shm_ep {
	struct weft_lane_ep base; /* first */
	struct shm_rx rx;
	struct shm_tx tx;
	uint8_t state;
	bool destroyed;   /* by the protocol layer, or that never had it */
	bool ended;       /* the peer has ended: deliver the records in the ring, then report it */
	bool fences;      /* a send must fence before it checks whether the peer sleeps */
	bool peer_fences; /* the peer's arm() has no membarrier() */
	bool starved;     /* a send found the ring full since the last arm() */
	uint16_t first_comp, num_comps;
	int status;     /* of sends, once it is dead */
	pid_t pid;      /* 0 = unknown: it is in another PID namespace */
	uint64_t since; /* start of connecting */
	struct shm_segment *segment;
	const struct shm_reg_table *regs; /* the peer's; NULL = none */
	STAILQ_HEAD(, shm_native) natives;
	unsigned int num_natives;
	LIST_ENTRY(shm_ep) busy; /* in iface->busy, while num_natives > 0 */
	struct shm_addr peer;
	struct shm_fd sock, process;
	struct shm_receipt *receipt; /* in progress; NULL = none */
	TAILQ_ENTRY(shm_ep) entry;   /* in iface->making, ->up or ->dead */
	LIST_ENTRY(shm_ep) waiting;  /* in iface->waiting, while num_comps > 0 */
	uint32_t slot;               /* in iface->table */
	char text[SHM_TEXT_MAX];     /* reason of its end */
	struct shm_comp comps[SHM_COMPS];
};
TAILQ_HEAD(shm_list, shm_ep);

#define SHM_COUNTERS(X)                                                                         \
	X(tx_messages, "tx.messages", "Messages sent.")                                         \
	X(tx_chunks, "tx.chunks",                                                               \
	  "Messages sent in a chunk, since they were too long for the ring.")                   \
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
	weft_lane_recv_cb recv;
	weft_lane_event_cb event;
	void *arg;
	/* lane_eps that are up: the first SHM_HOT are checked by every progress() */
	struct shm_ep **table;
	uint32_t table_room, num_table, next_cold, next_hot;
	struct weft_log_limit full; /* lines about the limit of connections */
	uint64_t look_at;           /* time of the next check of the sockets */
	bool fences;                /* membarrier() is missing here */
	bool registered;            /* seen by the owner: peers' membarrier() reaches us */
	struct shm_list making, up, dead;
	LIST_HEAD(, shm_ep) waiting;
	LIST_HEAD(, shm_ep) busy;
	struct weft_mpool natives;
	int reg_fd;    /* our table of registrations; -1 = none, peers access no memory */
	uint64_t word; /* random: a peer that can read it can read our memory */
	uint32_t num_eps, num_half, num_making, num_kept;
	int epoll;
	pid_t owner; /* process that created the name of the socket */
	struct shm_fd listen, received;
	struct shm_inbox *inbox;
	pid_t registers;               /* the process of that thread; 0 = there is none */
	pthread_t registrar;           /* registers this process, then ends */
	atomic_bool registration_done; /* set by it */
	uint64_t connect_timeout;
	struct shm_addr addr;
	struct weft_mpool bufs;
	struct shm_count count;
	_Alignas(64) uint8_t copy[SHM_RECORD_LINES * SHM_LINE]; /* of a message in the ring */
};

static inline struct shm_iface *shm_iface(struct weft_lane_iface *iface)
{
	return (struct shm_iface *)iface;
}

static inline struct shm_ep *shm_ep(struct weft_lane_ep *lane_ep)
{
	return (struct shm_ep *)lane_ep;
}

/* ---- place.c */

/** @return 0, or a negative error with a reason in @p why */
int shm_place_init(struct shm_addr *own, const struct weft_lane_open *params, char *why,
		   size_t why_len);
int shm_place_reachable(const struct shm_addr *own, const void *addr, size_t len, char *why,
			size_t why_len);
void shm_place_print(const void *addr, size_t len, char *buf, size_t size);

/* ---- socket.c */

/** @return a listening socket, or a negative error */
int shm_socket_listen(const struct shm_addr *own);
/** @return a socket; -EAGAIN: the listener's backlog is full; or a negative error */
int shm_socket_connect(const struct shm_addr *to);
/** Check that the peer's process has our user. @return 0, or -EACCES. @p pid 0 = unknown */
int shm_socket_peer(int sock, pid_t *pid);
/** Is @p pid the process that listens at @p addr? @return 0, -EACCES; -EAGAIN: try again */
int shm_socket_is_at(const struct shm_addr *addr, pid_t pid);
/** Send a hello, and pass @p fds. */
int shm_socket_send(int sock, const struct shm_hello *hello, const int *fds, unsigned int num);
/** Peek at the next message, without its descriptors. @return false: call shm_socket_recv() */
bool shm_socket_peek(int sock, struct shm_hello *hello);
/** Is there a message? Its descriptors stay in the socket. */
bool shm_socket_has_message(int sock);
/**
 * Receive. Not in the progress thread: base/blocking.h has the reason.
 * @return 0; -EAGAIN: no message; -ECONNRESET: the end; -EPROTO. @p fds: passed descriptors, or -1
 */
int shm_socket_recv(int sock, struct shm_hello *hello, int fds[SHM_HELLO_FDS]);
/** Remove the name that shm_socket_listen() created. */
void shm_socket_remove(const struct shm_addr *own);
/** @return a descriptor that is readable when the process has ended, or a negative error */
int shm_process_open(pid_t pid);

/* ---- conn.c */

int shm_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
		   struct weft_lane_ep **out);
void shm_ep_destroy(struct weft_lane_ep *base);
/** Free destroyed lane_eps. Not within callbacks. */
void shm_reap(struct shm_iface *s);
/** End a lane_ep: EV_DOWN, or EV_GONE with status 0. Only within progress(). */
void shm_end(struct shm_ep *lane_ep, int status, const char *text);
/** Connections that are being made: try again, or end after the timeout. @return events */
unsigned int shm_making(struct shm_iface *s, uint64_t now_ns);
/** Handle events of the listening socket and of lane_eps' sockets. @return events */
unsigned int shm_accept(struct shm_iface *s, uint64_t now_ns);
unsigned int shm_readable(struct shm_fd *from);
/** Handle finished receipts. @return events */
unsigned int shm_received(struct shm_iface *s);

/* ---- send.c */

int shm_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const void *payload, size_t length);
ssize_t shm_am_bcopy(struct weft_lane_ep *base, uint8_t am_id, weft_lane_pack_cb pack, void *arg);
int shm_am_zcopy(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		 struct weft_lane_comp *comp);
int shm_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp);
/** Run the completions that are due. @return their number */
unsigned int shm_complete(struct shm_ep *lane_ep);
/** Run all others, with an error. */
void shm_cancel(struct shm_ep *lane_ep, int status);

/* ---- native.c */

void shm_native_init(struct shm_iface *s);
/** Does the system permit processes to access each other's memory? */
bool shm_native_works(const struct shm_iface *s);
/** Does it permit access to the memory of the process that sent @p hello? */
bool shm_native_reaches(const struct shm_ep *lane_ep, const struct shm_hello *hello);
int shm_get_zcopy(struct weft_lane_ep *base, const struct iovec *iov, unsigned int iovcnt,
		  struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
		  struct weft_lane_comp *comp);
/** Execute a slice of the outstanding operations. @return events */
unsigned int shm_native_work(struct shm_iface *s);
void shm_native_cancel(struct shm_ep *lane_ep, int status);

/* ---- poll.c */

unsigned int shm_progress(struct weft_lane_iface *base, uint64_t now_ns);
void shm_release(struct weft_lane_iface *base, void *desc);
/** Allocate the table for @p num connections. @return 0 or -ENOMEM */
int shm_table_reserve(struct shm_iface *s, uint32_t num);
void shm_table_add(struct shm_ep *lane_ep);
void shm_table_remove(struct shm_ep *lane_ep);

/* ---- wait.c */

/** Start what sleeping needs; until it is there, this side fences (shm_wait_look()). */
void shm_wait_init(struct shm_iface *s);
/** The iface closes: wait until nothing of the above runs. */
void shm_wait_exit(struct shm_iface *s);
/** A connection is up. @p peer_fences: the peer has no membarrier() yet */
void shm_wait_up(struct shm_ep *lane_ep, bool peer_fences);
/** From time to time: once the registration is done, fences are not needed any more. */
void shm_wait_look(struct shm_iface *s);
void shm_wake(struct shm_ep *lane_ep);
int shm_wait_fd(struct weft_lane_iface *base);
int shm_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns);
void shm_disarm(struct weft_lane_iface *base);

/**
 * After a record was written or taken: wake the peer if it sleeps and waits for @p what. The peer's
 * arm() writes its word and then checks the ring, with a fence for both sides in between
 * (membarrier()). Where the system lacks that, this side fences, too.
 */
static inline void shm_wake_peer(struct shm_ep *lane_ep, const struct shm_dir *dir,
				 unsigned int what)
{
	if (__builtin_expect(lane_ep->fences, 0))
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&dir->ctl.sleeping, memory_order_relaxed) & what,
			     0))
		shm_wake(lane_ep);
}

#endif /* WEFT_SHM_H */
