/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/name.h
 * Endpoints by node and service: fi_getinfo() makes such an address, which contains an IP address
 * and a TCP port. The process of an endpoint with such a source address listens on that port, and
 * sends the address of fi_getname(). Inserting the address into an address vector fetches it.
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

/** Does @p addr name a node and a service? */
bool wfi_name_is(const void *addr, size_t length);

/**
 * Make an address of a node, a service or both. Resolves names, which may take time.
 * @param source  of this process: no node means all addresses
 * @return false: they have no address
 */
bool wfi_name_make(const char *node, const char *service, bool source, bool numeric, void *out);

/**
 * Fetch the address of the endpoint that listens there: waits, without the provider's lock, at most
 * 5 s. @return 0 or a negative libfabric error; the log has the reason
 */
int wfi_name_fetch(const void *name, void *addr);

/**
 * Reserve the port of a source address. @return 0, without a server if the address has no port, or
 * if the port is in use; or a negative libfabric error
 */
int wfi_name_listen(const void *name, struct wfi_name_server **server);
/** Send @p own to each client from now on. @return 0 or -FI_EAGAIN */
int wfi_name_serve(struct wfi_name_server *server, const void *own);
/** NULL is allowed. */
void wfi_name_close(struct wfi_name_server *server);

/** Host and port as text. @return @p buf */
const char *wfi_name_text(const void *name, char *buf, size_t size);

#endif /* WFI_NAME_H */
