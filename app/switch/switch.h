/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch/switch.h
 * weft-switch: one NIC, or none, and a port for each of many processes (doc/switch.md).
 *
 *	switch.c   options and start
 *	listen.c   sockets, the key, and the lock of the socket's path
 *  event.c    start and wake-up of threads
 *	control.c  the control thread: events of all sockets, and everything that has a time limit
 *	grant.c    the well-known socket: which process gets a port, and until when
 *	client.c   memif's control messages
 *  region.c   the memory of a client, checked until the forwarder can rely on it
 *	user.c     the user that a connection counts for, and limits of each user
 *  handover.c hands checked rings to the forwarder and takes them back
 *	ring.c     those rings
 *	forward.c  the destination of a frame, and whether its sender may send it
 *	pump.c     the forwarder: frames between rings and uplink
 *	wake.c     the wake-up thread, for clients that sleep
 *  close.c    closes descriptors from clients, by threads that may block
 *	report.c     counters: text, telemetry
 *
 * Each member below names the thread that owns it (doc/switch.md, "Threads").
 */
#ifndef APP_SWITCH_H
#define APP_SWITCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/hash.h"
#include "switch/forward.h"
#include "switch/ring.h"

#define SW_BURST 32u
#define SW_HALF_OPEN 64u /* connections that have not sent the secret of a port yet */
#define SW_USERS 256u
#define SW_NO_UPLINK UINT16_MAX

/** Counters: one thread writes them, others read them, by SW_COUNT() and sw_counter(). */
struct sw_counters {
	uint64_t rx_frames, rx_bytes; /**< from the process or the network */
	uint64_t tx_frames, tx_bytes; /**< to the process or the network */
	uint64_t wakes;
	uint64_t drop[SW_DROP_KINDS]; /**< of received frames; SW_DROP_FULL: of frames to it */
};

/* relaxed: a counter orders nothing. The one writer needs no atomic addition. */
#define SW_COUNT(counter, n) __atomic_store_n(&(counter), (counter) + (n), __ATOMIC_RELAXED)

/** Control thread: one memif connection. */
struct sw_conn {
	int fd;     /**< -1 = none */
	pid_t pid;  /**< of the process that connected */
	uid_t uid;  /**< of its credentials: the secret is bound to it */
	uid_t user; /**< the user that it counts for (user.c) */
	uint64_t since;
	void *region;
	size_t len;
	int region_fd;
	struct sw_ring rx, tx;
	bool up; /**< the forwarder has the rings */
};

/** Control thread: the process that has a port. */
struct sw_port {
	int grant; /**< connection on the well-known socket; -1 = none */
	uid_t uid, user;
	pid_t pid;
	uint64_t idle_since; /**< the grant has had no memif connection since then */
	struct sw_conn conn;
};

/** Forwarder: the rings of a port, and counters. */
struct sw_lane {
	struct sw_ring rx, tx;
	uid_t user;
	struct sw_counters counters;
	int filled, room; /**< entries of its ring: used in this round, and there to be used */
};

/** Forwarder: the ports of one user, which are served in turn (pump.c). */
struct sw_share {
	uid_t user;
	uint64_t ports; /**< bit N: port N */
	unsigned int first;
};

struct sw_uplink {
	uint16_t id; /**< SW_NO_UPLINK */
	struct rte_mempool *pool;
	struct rte_mbuf *out[2 * SW_BURST]; /**< frames without space in the port's ring yet */
	uint16_t num_out;
	uint64_t stuck; /**< time since which it has sent nothing; 0 = it sends */
	struct sw_counters counters;
};

/** Control thread: limits of one user. Times in ns; see user.c. */
struct sw_user {
	uid_t id;
	bool used;
	uint64_t seen, banned_until;
	uint64_t requests, connects, lines; /**< times at which the quota is full again */
};

/** Between control thread and forwarder (handover.c): one change at a time. */
struct sw_handover {
	atomic_bool wanted; /**< the members below hold a change */
	atomic_bool ended;  /**< the forwarder has left its loop */
	bool attach;
	unsigned int port;
	uid_t user;
	struct sw_ring rx, tx;
	atomic_uint_fast64_t broken; /**< ports with an invalid index in a ring */
};

/** Between forwarder, wake-up thread and control thread (wake.c). */
struct sw_wakeups {
	atomic_uint_fast64_t wanted;        /**< ports to be woken */
	atomic_uint_fast64_t full, blocked; /**< ports whose eventfd did not take the wake-up */
	atomic_bool asleep;
	atomic_int event[WEFT_SWITCH_PORTS]; /**< -1 = none */
	atomic_uint busy;                    /**< 1 + the port whose eventfd is in use; 0 = none */
	atomic_uint turn;
	int doorbell;
	pthread_t thread;
	unsigned int seen_turn; /**< control thread: at the last check */
};

struct sw {
	/* forwarder */
	struct sw_plan plan; /* constant after the start, without up */
	struct sw_lane lane[WEFT_SWITCH_PORTS];
	struct sw_share share[WEFT_SWITCH_PORTS];
	unsigned int num_shares;
	struct sw_uplink uplink;
	unsigned int first; /* the share that is served first */
	uint64_t broken;    /* ports with an invalid index in this round */
	/* constant after the start */
	uint16_t mtu;
	uint8_t log2_ring;
	uint32_t bsize;
	size_t region_max;
	unsigned int sleep_us;
	unsigned int per_user; /* ports of one user that is not the switch's */
	mode_t mode;
	char path[108 - 8]; /* the well-known socket; with ".memif" and ".key" the other files */
	struct weft_siphash_key key;
	/* between threads */
	struct sw_handover handover;
	struct sw_wakeups wakeups;
	int control_event;    /* eventfd: wakes the control thread */
	pthread_mutex_t lock; /* of the control thread's members, for readers */
	/* control thread */
	struct sw_port port[WEFT_SWITCH_PORTS];
	int lock_fd, grant_fd, memif_fd, epoll;
	bool granting;
	bool no_files;        /* accept() failed */
	uint64_t ticked;      /* time of the last check of timeouts */
	uint64_t grants_from; /* no grant before: clients of the predecessor may reconnect */
	struct sw_conn half[SW_HALF_OPEN];
	struct sw_user user[SW_USERS];
	uint64_t lines, unlogged;
};

/** A clock of nanoseconds that is never 0. */
static inline uint64_t sw_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + 1;
}

/* listen.c */
/** @return APP_OK or an exit code after an error message */
int sw_listen(struct sw *s);
void sw_unlisten(struct sw *s);

/* control.c */
/** Start the control thread. @return APP_OK or an exit code after an error message */
int sw_control_start(struct sw *s);

/* event.c */
/**
 * Start a thread, on other cores than the forwarder's, if that is pinned.
 * @return APP_OK or an exit code after an error message
 */
int sw_thread_start(const char *name, void *(*run)(void *arg), struct sw *s, pthread_t *thread);
/** By any thread: wake the control thread for a check. Never waits. */
void sw_control_notify(struct sw *s);
/** Add a descriptor to epoll's set with this tag. @return the descriptor, or -1 */
int sw_watch(struct sw *s, int fd, uint64_t tag);
uint64_t sw_tag(unsigned int kind, unsigned int index);

enum { SW_TAG_NOTIFY, SW_TAG_LISTEN, SW_TAG_MEMIF, SW_TAG_GRANT, SW_TAG_HALF, SW_TAG_CONN };

/* grant.c, control thread */
void sw_grant_accept(struct sw *s, uint64_t now);
/** The connection on the well-known socket has ended, or the port goes to another user. */
void sw_grant_end(struct sw *s, unsigned int port);
void sw_secret(const struct sw *s, unsigned int port, uid_t uid, char secret[24]);
/** Free a port whose process has neither of the two connections. */
void sw_port_check(struct sw *s, unsigned int port);
/** Does the port have a process? A grant without a connection for IDLE_NS does not count. */
bool sw_port_is_taken(const struct sw_port *p, uint64_t now);
/** May this user have one port more? @return NULL = yes, or the reason */
const char *sw_user_limit(const struct sw *s, uid_t user, uint64_t now);

/* client.c, control thread */
void sw_conn_init(struct sw_conn *c);
void sw_conn_accept(struct sw *s, uint64_t now);
/** A message of a connection without a port yet, or with one. */
void sw_half_event(struct sw *s, unsigned int half, uint64_t now);
void sw_conn_event(struct sw *s, unsigned int port);
/** The connection has ended, for any reason. */
void sw_conn_end(struct sw *s, unsigned int port);
void sw_half_expire(struct sw *s, uint64_t now);

/* region.c, control thread */
/**
 * Check, map and seal the memory of a client; all of its pages are allocated afterwards.
 * @return NULL; or the reason, for the client
 */
const char *sw_region_map(const struct sw *s, int fd, uint64_t size, void **region);
/** The length of two rings of the granted sizes, in bytes. */
size_t sw_region_max(unsigned int log2_ring, uint32_t bsize);

/* user.c, control thread */
/**
 * The user that the other end of a connection counts for.
 * @return 0; -ESRCH: the process has ended
 */
int sw_user_of(int fd, struct sw_conn *c);
/** May the user do it once more? Each call counts towards the limit. */
bool sw_user_may_request(struct sw *s, uid_t user, uint64_t now);
bool sw_user_may_connect(struct sw *s, uid_t user, uint64_t now);
void sw_user_ban(struct sw *s, uid_t user, uint64_t now);
bool sw_user_is_banned(const struct sw *s, uid_t user, uint64_t now);
/** cli_error(), for lines that a user can cause: a few, then one a second. */
void sw_report(struct sw *s, uid_t user, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* handover.c */
/** By the control thread; waits for the forwarder, which never waits. */
void sw_lane_attach(struct sw *s, unsigned int port, const struct sw_conn *c);
void sw_lane_detach(struct sw *s, unsigned int port);
/** By the forwarder: apply a pending change, if there is one. */
void sw_lane_change(struct sw *s);
/** By the forwarder: these ports have invalid indices; the control thread ends them. */
void sw_lane_broken(struct sw *s, uint64_t ports);

/* pump.c */
/** One round over all ports and the uplink. @return number of frames */
unsigned int sw_round(struct sw *s, uint64_t now);

/* wake.c */
/** @return APP_OK or an exit code after an error message */
int sw_wake_start(struct sw *s);
/** By the forwarder: ports that got frames and may sleep. Never waits. */
void sw_wake(struct sw *s, uint64_t ports);
/**
 * By the control thread: set the port's eventfd; or set none, after which the old one is unused.
 */
void sw_wake_set(struct sw *s, unsigned int port, int event);
void sw_wake_forget(struct sw *s, unsigned int port);
/** By the control thread, in each tick: interrupt a write that blocks. */
void sw_wake_watch(struct sw *s);

/* close.c */
/** Before the first close; its threads avoid the core of the caller, if that is pinned to one. */
void sw_close_init(void);
/** Close a descriptor, and set it to -1. -1 is allowed. */
void sw_close(int *fd);
/** The same for a socket in epoll's set; the other end is notified at once. */
void sw_hang_up(struct sw *s, int *fd);
/** Unmap memory. NULL is allowed. */
void sw_unmap(void *at, size_t len);

/* uplink.c */
/** @return APP_OK or an exit code after an error message */
int sw_uplink_open(struct sw *s, const char *name);

/** Describe it, with the MTU, for the first line of the output. */
void sw_uplink_text(const struct sw *s, char *text, size_t len);

/* output for users and telemetry */
/** Telemetry's commands, and SIGUSR1. */
void sw_report_start(struct sw *s);
/** By the control thread: print counters if SIGUSR1 has come. */
void sw_report_wanted(struct sw *s);
/** By any thread but the forwarder at work: counters on standard output. */
void sw_report_print(struct sw *s);

#endif /* APP_SWITCH_H */
