/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/memif/relay.h
 * Stands between DPDK's memif and the peer on the control socket.
 *
 * The PMD of DPDK 22.11 is unforgiving there. A server that says hello to a client which has left
 * meanwhile closes a socket that the EAL's interrupt thread still polls, and the EAL aborts the
 * process (or SIGPIPE ends it). A client that is refused (the server's port is not started yet, or
 * has not noticed that its last client is gone) waits for ever. The end of a peer is handled by
 * unmapping the rings, in the interrupt thread, under the feet of whoever polls the port.
 *
 * So the PMD never has the real socket. A client's is replaced by one end of a socket pair right
 * after its start; a server's listening socket is replaced by one without a name, which gets one
 * connection of ours for each that we have accepted. In between, messages and the descriptors in
 * them are passed on as they are. When the peer leaves, nothing but a flag changes: the port's
 * owner stops touching the rings, then has the PMD's connection taken down.
 *
 * Everything here runs in the EAL's interrupt thread, but weft_memif_relay_left().
 */
#ifndef WEFT_MEMIF_RELAY_H
#define WEFT_MEMIF_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "port/memif/memif.h"
#include "port/memif/ring.h"

struct weft_memif_relay;

/**
 * Prepare a port, before its first start. A server's listening socket is taken from the PMD, and
 * stays ours until the process ends: clients that come while the port is closed are sent away.
 *
 * @param port_id  DPDK port
 * @param[out] r   to be given back with weft_memif_relay_close()
 * @return 0, -ENOMEM, or a negative error: the PMD has no such socket, descriptors ran out
 */
int weft_memif_relay_open(uint16_t port_id, const struct weft_memif_name *name,
			  struct weft_memif_relay **r);
/** After the port's last stop. NULL is allowed. */
void weft_memif_relay_close(struct weft_memif_relay *r);
/** The port has been started: step in between (client), or let a client in (server). */
int weft_memif_relay_started(struct weft_memif_relay *r);
/** The port has been stopped: drop the connection. */
void weft_memif_relay_stopped(struct weft_memif_relay *r);
/** What the port's owner sleeps on; as long as the relay. NULL = it cannot. Any thread. */
struct weft_memif_ring *weft_memif_relay_ring(const struct weft_memif_relay *r);
/** Is the connection over, for one end or the other? Any thread. */
bool weft_memif_relay_left(const struct weft_memif_relay *r);

#endif /* WEFT_MEMIF_RELAY_H */
