/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/ports.h
 * The ports of DPDK, those that are open, and the process that has one; and a port of weft-switch.
 */
#ifndef WEFT_PORT_PORTS_H
#define WEFT_PORT_PORTS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port/port.h"

/**
 * List the ports of the running EAL, and the virtual devices of its arguments that are no ports.
 * @param add  as in query() of struct weft_lane_driver. @return how many, or a negative errno
 */
int weft_port_ethdev_list(weft_lane_resource_cb add, void *arg);

/**
 * Reserve the devices of the port for this process.
 * @return 0, also if they cannot be reserved: then d->shared is set; -EADDRINUSE: another process
 * has one; or -ENOMEM; with @p why
 */
int weft_port_claim(struct weft_port_dev *d, char *why, size_t why_len);
void weft_port_unclaim(struct weft_port_dev *d);

/** @return @p rc */
__attribute__((format(printf, 4, 5))) int weft_port_fail(int rc, char *why, size_t why_len,
							 const char *fmt, ...);
void weft_port_link_text(struct weft_frame_port *fp, char *buf, size_t size);

/** Protects weft_port_devs, their queues and pools: several threads may open and close ports. */
extern pthread_mutex_t weft_port_lock;
/** by port number; NULL = not open */
extern struct weft_port_dev *weft_port_devs[RTE_MAX_ETHPORTS];

void weft_port_name(uint16_t id, char name[RTE_ETH_NAME_MAX_LEN]);
/** Find a port by number or name. @return 0, or an error with @p why */
int weft_port_find(const char *resource, uint16_t *id, char *why, size_t why_len);

/* ------------------------------------------------------------------ a port of weft-switch */

/*
 * A port of weft-switch (doc/switch.md) is requested once, and kept until the process ends. A
 * forked child has none.
 */

#define WEFT_SWITCH_RESOURCE "switch"

struct weft_switch_place {
	uint16_t mtu;
	uint32_t ip, gw; /**< 0 = none */
	uint8_t prefix;
	/** WEFT_SWITCH_F_SINGLE: the UDP port on which the process listens; else 0 */
	uint16_t udp_port;
	/** WEFT_SWITCH_F_SINGLE: as for a NIC's queue (frame/frame_port.h); else 0 */
	uint16_t queue, queues;
	bool uplink;
	bool farewells;
	/* The memif connection: */
	uint32_t id, bsize;
	uint8_t log2_ring, mac[6];
	char socket[108], secret[24];
};

/** @param conf  WEFT_SWITCH: "auto", "off", or a path, which is not checked. @return NULL = none */
const char *weft_switch_socket(const char *conf);

/** A second call uses the port of the first one. @return 0 or a negative error with a sentence */
int weft_switch_join(const char *socket, char *why, size_t why_len);

/** @return NULL: this process has no port of a switch */
const struct weft_switch_place *weft_switch_place(void);

/* ------------------------------------------------------------------ the grant */

/*
 * The answer of weft-switch to a process that connects to the well-known socket (SOCK_SEQPACKET).
 * The process owns the port as long as it keeps that connection, or the memif connection that it
 * then makes. But a port without a memif connection for 5 s may go to another process.
 */

#define WEFT_SWITCH_SOCKET "/run/weft/switch.sock"

#define WEFT_SWITCH_MAGIC 0x77536657u /* "WfSw" */
#define WEFT_SWITCH_VERSION 1u
/** Ports of a switch at most: each has a bit of a word, and a share of the UDP ports. */
#define WEFT_SWITCH_PORTS 64u

/** All ports share one MAC and one IP address: a frame belongs to the owner of its UDP port. */
#define WEFT_SWITCH_F_SINGLE 0x1u
/** The switch has an uplink to a network: frames leave the host. */
#define WEFT_SWITCH_F_UPLINK 0x2u
/** The switch takes a table of farewells (frame/farewell.h); it sends them after the process. */
#define WEFT_SWITCH_F_FAREWELLS 0x4u

/** In the host's byte order: both ends are on the same host. */
struct weft_switch_grant {
	uint32_t magic;
	uint16_t version, size;
	int32_t error; /**< 0, or a negative errno with a sentence in text */
	uint32_t flags;
	uint16_t port, ports;
	uint16_t udp_port; /**< F_SINGLE: UDP port of port 0; the others have the following ones */
	uint16_t mtu;
	uint32_t ip, gw; /**< 0 = none: a link-local address of the MAC */
	uint8_t prefix;
	uint8_t log2_ring; /**< log2 of the entries of a memif ring */
	uint8_t mac[6];
	uint32_t bsize;   /**< bytes of a memif buffer */
	char socket[108]; /**< path of the memif socket; the connection's id is `port` */
	char secret[24];
	char text[256];
};

static_assert(sizeof(struct weft_switch_grant) == 432, "a grant has no holes");

#endif /* WEFT_PORT_PORTS_H */
