/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch/switch.h
 * weft-switch: one NIC, or none, and a port for each of many processes (doc/switch.md).
 *
 *  switch.c   options, addresses, the uplink, and start
 *  grant.c    which process gets a port, and until when; users and their limits
 *  client.c   memif's control messages; the memory of a client, until the forwarder can rely on it
 *  control.c  the control thread: events of all sockets, time limits, and counters as output; start
 *             of threads, wake-up of clients that sleep, closing of their descriptors
 *  forward.c  the destination of a frame, and whether its sender may send it
 *  pump.c     the forwarder: takes over checked rings, and carries frames
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

#include "base/container.h"
#include "drivers/dpdk/memif/control.h"
#include "switch/forward.h"

#define SW_BURST 32u
#define SW_HALF_OPEN 64u /* connections that have not sent the secret of a port yet */
#define SW_USERS 256u
#define SW_NO_UPLINK UINT16_MAX

/** Of a port or the uplink. The forwarder writes, by SW_COUNT(); others use atomic loads. */
struct sw_counters {
	uint64_t rx_frames, rx_bytes; /**< from the process or the network */
	uint64_t tx_frames, tx_bytes; /**< to the process or the network */
	uint64_t wakes;
	uint64_t farewells; /**< to the process or the network, for processes that have ended */
	/** of received frames; FULL, BAD and LONG also of frames to the process or the network */
	uint64_t drop[SW_DROP_KINDS];
};

/* relaxed: a counter orders nothing. The one writer needs no atomic addition. */
#define SW_COUNT(counter, n) __atomic_store_n(&(counter), (counter) + (n), __ATOMIC_RELAXED)

/** Control thread: one memif connection. */
struct sw_conn {
	int fd;     /**< -1 = none */
	pid_t pid;  /**< the process that connected */
	uid_t uid;  /**< user of its credentials: the secret is bound to it */
	uid_t user; /**< the user that it counts for (grant.c) */
	uint64_t since;
	struct weft_mregion region; /**< the rings point to it */
	int region_fd;
	struct weft_mring rx, tx;
	const struct weft_memif_farewell *farewells; /**< the client's table; NULL = none */
	unsigned int num_farewells;
	bool up; /**< the forwarder has the rings */
};

/** Farewells of a process that has ended: copies, which no process can change any more. */
struct sw_farewells {
	unsigned int num;
	struct sw_farewell {
		uint32_t len;
		uint8_t frame[sizeof(((struct weft_memif_farewell *)0)->frame)];
	} at[];
};

/** Control thread: the process that has a port. */
struct sw_port {
	int grant; /**< connection on the well-known socket; -1 = none */
	uid_t uid, user;
	pid_t pid;
	uint64_t idle_since; /**< time, ns, of the grant or the end of its memif connection */
	bool hung_up;        /**< the process itself has ended its memif connection */
	struct sw_farewells *farewells; /**< of the ended connection; NULL = none */
	struct sw_conn conn;
};

/** Forwarder: the rings of a port, and counters. */
struct sw_lane {
	struct weft_mring rx, tx;
	uid_t user;
	struct sw_counters counters;
	int filled, room;     /**< entries of tx: used in this round, and usable */
	unsigned int probes;  /**< number of probes sent since the process of the port has ended */
	uint64_t probe_at;    /**< time, ns, of the next probe */
	uint64_t farewell_at; /**< time, ns: no answer to the process before it */
	struct sw_farewells *farewells; /**< of the process that has ended; NULL = none */
	unsigned int next_farewell;     /**< index; each probe begins again at 0 */
	uint64_t next_farewell_at;      /**< time, ns, of the next burst of farewells */
};

/** Forwarder: the ports of one user, which are served in turn (pump.c). */
struct sw_share {
	uid_t user;
	uint64_t ports; /**< bit N: port N */
	unsigned int first;
};

struct sw_uplink {
	uint16_t id; /**< DPDK port; SW_NO_UPLINK = none */
	struct rte_mempool *pool;
	struct rte_mbuf *out[2 * SW_BURST]; /**< frames that the port has not taken yet */
	uint16_t num_out;
	uint64_t stuck;       /**< time, ns, since which the port takes no frame; 0 = it does */
	uint64_t farewell_at; /**< time, ns: no farewell to the network before it */
	struct sw_counters counters;
};

/** Control thread: limits of one user. Times in ns; see grant.c. */
struct sw_user {
	uid_t id;
	bool used;
	uint64_t seen, banned_until;
	uint64_t requests, connects, lines; /**< times at which the quota is full again */
};

/** Between control thread and forwarder (pump.c): one change at a time. */
struct sw_handover {
	atomic_bool wanted; /**< the members below hold a change */
	atomic_bool ended;  /**< the forwarder has left its loop */
	bool attach;
	bool gone; /**< the process of the port has ended */
	/** in: of the process that has ended; out: of an earlier one, to be freed; or NULL */
	struct sw_farewells *farewells;
	unsigned int port;
	uid_t user;
	struct weft_mring rx, tx;
	atomic_uint_fast64_t broken; /**< ports with an invalid index in a ring */
};

/** Between forwarder, wake-up thread and control thread (control.c). */
struct sw_wakeups {
	atomic_uint_fast64_t wanted;        /**< ports to be woken */
	atomic_uint_fast64_t full, blocked; /**< ports whose eventfd did not take the wake-up */
	atomic_bool asleep;
	atomic_int event[WEFT_SWITCH_PORTS]; /**< -1 = none */
	atomic_uint busy;                    /**< 1 + the port whose eventfd is in use; 0 = none */
	atomic_uint turn;
	int doorbell;
	pthread_t thread;
	unsigned int seen_turn; /**< control thread: `turn` at the last check */
};

struct sw {
	/* forwarder */
	struct sw_plan plan; /* constant after the start, except up and gone */
	struct sw_lane lane[WEFT_SWITCH_PORTS];
	struct sw_share share[WEFT_SWITCH_PORTS];
	unsigned int num_shares;
	struct sw_uplink uplink;
	unsigned int first; /* the share that is served first */
	uint64_t broken;    /* ports with an invalid index in this round */
	uint64_t probing;   /* bit N: peers of port N, whose process has ended, get probes */
	/* constant after the start */
	uint16_t mtu;
	uint8_t log2_ring;
	uint32_t bsize;
	size_t region_max;
	unsigned int sleep_us;
	unsigned int per_user; /* maximum number of ports of a user other than the switch's */
	mode_t mode;
	char path[108 - 8]; /* the well-known socket; with ".memif" and ".key" the other files */
	struct weft_siphash_key key;
	/* between threads */
	struct sw_handover handover;
	struct sw_wakeups wakeups;
	int control_event;    /* eventfd: wakes the control thread */
	pthread_mutex_t lock; /* protects the control thread's members */
	/* control thread */
	struct sw_port port[WEFT_SWITCH_PORTS];
	int lock_fd, grant_fd, memif_fd, epoll;
	bool granting;
	bool no_files;        /* accept() failed, other than by EAGAIN */
	uint64_t ticked;      /* time of the last check of timeouts */
	uint64_t grants_from; /* no grant before this time, ns; 0 = there was no predecessor */
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

#endif /* APP_SWITCH_H */
