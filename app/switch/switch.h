/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch/switch.h
 * weft-switch: one NIC, or none, and a port for each of many processes (doc/switch.md).
 *
 *	switch.c   options and start
 *	grant.c    the well-known socket: who gets which port, and for how long
 *	client.c   memif's control messages, up to two rings in checked memory
 *	ring.c     those rings
 *	forward.c  where a frame goes, and whether its sender may send it
 *	pump.c     frames: from rings and uplink, to rings and uplink
 *	wake.c     clients that sleep
 *	close.c    what clients gave is closed by a thread that may wait
 *	tell.c     counters: text, telemetry
 *
 * One thread does it all but for telemetry's questions, the watch over wake-ups, and closing.
 */
#ifndef APP_SWITCH_H
#define APP_SWITCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ticketlock.h>

#include "base/siphash.h"
#include "switch/forward.h"
#include "switch/ring.h"

#define SW_BURST 32u
#define SW_HALF_OPEN 16u /* connections that have not said which port they are */
#define SW_BANS 8u
#define SW_NO_UPLINK UINT16_MAX

struct sw_counters {
	uint64_t rx_frames, rx_bytes; /**< from the process, or the network */
	uint64_t tx_frames, tx_bytes; /**< to it */
	uint64_t wakes;
	uint64_t drop[SW_DROP_KINDS]; /**< of what came from it; SW_DROP_FULL: of what went to it */
};

/** One memif connection. */
struct sw_conn {
	int fd; /**< -1 = none */
	uid_t uid;
	uint64_t since; /**< when it was accepted */
	void *region;
	size_t len;
	int region_fd;
	struct sw_ring rx, tx;
	bool up;
};

struct sw_port {
	int grant; /**< connection on the well-known socket; -1 = none */
	uid_t uid;
	pid_t pid;
	struct sw_conn conn;
	struct sw_counters counters;
	bool wake;        /**< has got frames in this round, and may sleep */
	int filled, room; /**< entries of its ring: used in this round, and there to be used */
};

struct sw_uplink {
	uint16_t id; /**< SW_NO_UPLINK */
	struct rte_mempool *pool;
	struct rte_mbuf *out[2 * SW_BURST]; /**< the port had no room yet */
	uint16_t num_out;
	uint64_t stuck; /**< since when it has taken nothing; 0 = it takes */
	struct sw_counters counters;
};

/** A user whose eventfd has made us wait gets no port for some time. */
struct sw_ban {
	uid_t uid;
	uint64_t until;
};

struct sw {
	rte_ticketlock_t lock; /* between the thread that forwards and telemetry */
	struct sw_plan plan;
	struct sw_port port[WEFT_SWITCH_PORTS];
	struct sw_uplink uplink;
	uint16_t mtu;
	uint8_t log2_ring;
	uint32_t bsize;
	unsigned int sleep_us;
	unsigned int per_user; /* ports that a user other than ours may have */
	mode_t mode;
	unsigned int first; /* whose turn it is to be served first */
	/* grant.c and client.c */
	char path[108 - 8]; /* the well-known socket; ".memif" and ".key" stand beside it */
	int lock_fd, grant_fd, memif_fd, epoll;
	uint64_t grants_from; /* none before: those of the switch before may come back */
	struct weft_siphash_key key;
	struct sw_conn half[SW_HALF_OPEN];
	struct sw_ban ban[SW_BANS];
};

/** A clock of nanoseconds that does not stand still at 0. */
uint64_t sw_now(void);

/* grant.c */
/** @return APP_OK or an exit code after a sentence */
int sw_listen(struct sw *s);
void sw_unlisten(struct sw *s);
/** What has happened on sockets. Without waiting. */
void sw_serve(struct sw *s, uint64_t now);
void sw_secret(const struct sw *s, unsigned int port, uid_t uid, char secret[24]);
/** @return a descriptor in epoll's set with this tag, or -1; it is closed then */
int sw_watch(struct sw *s, int fd, uint64_t tag);
uint64_t sw_tag(unsigned int kind, unsigned int index);
/** Has the port's process neither connection any more? Then it is free. */
void sw_port_check(struct sw *s, unsigned int port);
/** Has the user as many ports as one may have? */
bool sw_user_has_all(const struct sw *s, uid_t uid);
void sw_ban(struct sw *s, uid_t uid, uint64_t now);
bool sw_is_banned(const struct sw *s, uid_t uid, uint64_t now);

enum { SW_TAG_LISTEN, SW_TAG_MEMIF, SW_TAG_GRANT, SW_TAG_HALF, SW_TAG_CONN };

/* client.c */
void sw_conn_init(struct sw_conn *c);
void sw_conn_accept(struct sw *s, uint64_t now);
/** A message of a connection that has no port yet (@p half), or has one. */
void sw_half_event(struct sw *s, unsigned int half);
void sw_conn_event(struct sw *s, unsigned int port);
/** It is over, for whatever reason. */
void sw_conn_end(struct sw *s, unsigned int port);
void sw_half_expire(struct sw *s, uint64_t now);

/* pump.c */
/** Everything once. @return frames */
unsigned int sw_round(struct sw *s, uint64_t now);

/* wake.c */
/** By the thread that forwards. @return APP_OK or an exit code after a sentence */
int sw_wake_start(void);
void sw_wake(struct sw *s, uint64_t now);

/* close.c */
/** @return APP_OK or an exit code after a sentence */
int sw_close_start(void);
/** -1 = nothing; it is -1 afterwards. */
void sw_close(int *fd);
/** The same of a socket in epoll's set; the other end knows at once. */
void sw_hang_up(struct sw *s, int *fd);
/** NULL = nothing. */
void sw_unmap(void *at, size_t len);

/* uplink.c */
/** @return APP_OK or an exit code after a sentence */
int sw_uplink_open(struct sw *s, const char *name);

/* tell.c */
void sw_tell(const struct sw *s, char *buf, size_t len);
void sw_telemetry(struct sw *s);

#endif /* APP_SWITCH_H */
