/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/memif/relay.h
 * A relay between DPDK's memif and the peer on the control socket.
 *
 * The PMD of DPDK 22.11 has three faults. A server may send HELLO to a client which has left in the
 * meantime. Then the PMD closes a socket that the EAL's interrupt thread still polls, and the EAL
 * aborts the process (or SIGPIPE ends it). A client that is refused waits for ever; the server's
 * port may not be started yet, or may not have noticed that its last client is gone. When a peer
 * ends, the PMD unmaps the rings in the interrupt thread, while the thread that polls the port may
 * use them.
 *
 * So the PMD does not have the real socket of a port with a relay. A client's is replaced by one
 * end of a socket pair right after its start. A server's listening socket is replaced by one
 * without a name, which gets one connection from the relay for each accepted client. Messages, and
 * the descriptors in them, are passed on unchanged, except the peer's DISCONNECT. When the peer
 * leaves, only a flag changes: the port's owner stops using the rings, and then has the PMD's
 * connection removed.
 *
 * Everything here runs in the EAL's interrupt thread, except weft_memif_relay_ring() and _left().
 */
#ifndef WEFT_MEMIF_RELAY_H
#define WEFT_MEMIF_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "port/memif/memif.h"

struct weft_memif_relay;

/**
 * Prepare a port, before its first start. The relay takes a server's listening socket from the PMD,
 * and keeps it until the process ends: clients that connect while the port is closed are rejected.
 * @param[out] r   to be freed by weft_memif_relay_close()
 * @return 0, -ENOMEM, or a negative error: the PMD has no such socket, or no descriptors are left
 */
int weft_memif_relay_open(uint16_t port_id, const struct weft_memif_name *name,
			  struct weft_memif_relay **r);
/** After the port's last stop. NULL is allowed. */
void weft_memif_relay_close(struct weft_memif_relay *r);
/**
 * Replace the socket (client), or accept a client from now on (server), after the port's start.
 * @return 0, or a negative error: the port must be stopped
 */
int weft_memif_relay_started(struct weft_memif_relay *r);
void weft_memif_relay_stopped(struct weft_memif_relay *r);
/** The ring on which the owner sleeps, until weft_memif_relay_close(); NULL = none. Any thread. */
struct weft_memif_ring *weft_memif_relay_ring(const struct weft_memif_relay *r);
/** Has one of the ends closed the connection? Any thread. */
bool weft_memif_relay_left(const struct weft_memif_relay *r);

#endif /* WEFT_MEMIF_RELAY_H */
