/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/name.h
 * Endpoints by node and service: fi_getinfo() makes such an address, which contains an IP address
 * and a TCP port. The process of an endpoint with such a source address listens on that port, and
 * sends clients the address that fi_getname() returns. When an application inserts an address with
 * node and service into an address vector, the provider fetches the address of fi_getname().
 *
 * Addresses have FI_NAME_MAX bytes. The exchange: the client sends WFI_NAME_GREETING, the server
 * sends an address and closes.
 */
#ifndef WFI_NAME_H
#define WFI_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wfi_name_server;

#define WFI_NAME_GREETING "weft-fi2" /**< 8 bytes; the digit is the version of addresses */

/** Is @p addr an address that wfi_name_make() has made? It may have any contents. */
bool wfi_name_is(const void *addr, size_t length);

/**
 * Make an address of a node, a service or both. Resolves names, which may take time.
 * @param source   for a source address: without a node it means all addresses of this host
 * @param numeric  @p node is an IP address, not a name
 * @param out      gets FI_NAME_MAX bytes
 * @return false: they have no IPv4 or IPv6 address
 */
bool wfi_name_make(const char *node, const char *service, bool source, bool numeric, void *out);

/**
 * Fetch the address of the endpoint that listens at @p name. Waits at most 5 s, so the caller must
 * not hold the lock of the process. @return 0 or a negative error; the log has the reason
 */
int wfi_name_fetch(const void *name, void *addr);

/**
 * Reserve the port of a source address.
 * @param[out] server  NULL: the address has no port, or the port is in use
 * @return 0, also without a server; or a negative error
 */
int wfi_name_listen(const void *name, struct wfi_name_server **server);
/**
 * Start a thread that sends @p own, FI_NAME_MAX bytes, to each client. @return 0, or -FI_EAGAIN:
 * the thread cannot be started
 */
int wfi_name_serve(struct wfi_name_server *server, const void *own);
/** End the thread, and free the server and its port. NULL is allowed. */
void wfi_name_close(struct wfi_name_server *server);

/** Host and port of an address of wfi_name_make(), as text. @return @p buf */
const char *wfi_name_text(const void *name, char *buf, size_t size);

#endif /* WFI_NAME_H */
