/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/check_probe.h
 * weft-info --check: UDP datagrams between all interfaces of two hosts.
 *
 * The other end names the addresses to which probes go. So probes to an address are short, and
 * their number is limited, until a probe has come from it: this end cannot be used to flood a third
 * host.
 */
#ifndef INFO_CHECK_PROBE_H
#define INFO_CHECK_PROBE_H

#include "info/check_facts.h"

/** A socket for each interface. */
struct check_probe {
	int fd[CHECK_IFACES];
};

/** Open the sockets, and store their ports in @p mine. @return 0 or a negative error */
int check_probe_open(struct check_probe *p, struct check_facts *mine);
/** Look up the routes, send and receive for @p seconds, read the ARP table, and fill in @p seen. */
void check_probe_run(struct check_probe *p, const struct check_facts *mine,
		     const struct check_facts *theirs, double seconds, struct check_seen *seen);
void check_probe_close(struct check_probe *p);

/** Bytes of IP with which an interface is probed: its MTU, at most 9216. */
uint32_t check_probe_size(const struct check_iface *i);

#endif /* INFO_CHECK_PROBE_H */
