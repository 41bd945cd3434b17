/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/name.h
 * Addresses as text, and addresses by node and service. For a node and service fi_getinfo() makes
 * an address that contains an IP address and a TCP port. The process of an endpoint with such a
 * source address listens on that port, and sends clients the address of fi_getname(). When an
 * application inserts an address with node and service into an address vector, the provider fetches
 * the address of fi_getname().
 *
 * Addresses have FI_NAME_MAX bytes. The exchange: the client sends WFI_NAME_GREETING, the server
 * sends an address and closes. With a job key, the messages of base/tcp.h follow WFI_NAME_SEALED:
 *
 *	client -> server  WFI_NAME_SEALED | request
 *	client <- server  WFI_NAME_SEALED | answer, whose text is the address
 *
 * A client that is refused for its key gets the greeting of the server only.
 */
#ifndef WFI_NAME_H
#define WFI_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wfi_name_server;

#define WFI_NAME_GREETING "weft-fi2" /**< 8 bytes; the digit is the version of addresses */
#define WFI_NAME_SEALED "weft-fk2"   /**< the greeting of an end with a job key */

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
 * not hold the lock of the process.
 * @param job_key  WFI_KEY_LEN bytes, or NULL
 * @return 0; -FI_EACCES: the ends do not have the same job key; or another negative error. The log
 * has the reason
 */
int wfi_name_fetch(const void *name, const uint8_t *job_key, void *addr);

/**
 * Reserve the port of a source address.
 * @param job_key  WFI_KEY_LEN bytes, which must stay until wfi_name_close(); NULL: without a key
 * @param[out] server  NULL: the address has no port, or the port is in use
 * @return 0, also without a server; or a negative error
 */
int wfi_name_listen(const void *name, const uint8_t *job_key, struct wfi_name_server **server);
/**
 * Start a thread that sends @p own, FI_NAME_MAX bytes, to each client. @return 0, or -FI_EAGAIN:
 * the thread cannot be started
 */
int wfi_name_serve(struct wfi_name_server *server, const void *own);
/** End the thread, if any, log the numbers of clients, and free the server. NULL is allowed. */
void wfi_name_close(struct wfi_name_server *server);

/* ------------------------------------------------------------------ addresses as text */

/*
 * FI_ADDR_STR: an address in the form "fi_weft://TEXT". TEXT of an address of wfi_name_make() is
 * HOST:PORT or [HOST]:PORT. TEXT of another address is its bytes up to the last one that is not 0,
 * in the base64url of RFC 4648 without padding. No other text of an address is read, except with
 * @p resolve, where HOST and PORT have any form of getaddrinfo().
 */

/** The maximum bytes of a text, with its zero byte; Mercury reserves this number. */
#define WFI_TEXT_MAX 128

/** Write an address as text. @return bytes, with the zero byte */
size_t wfi_text_make(const void *addr, char text[WFI_TEXT_MAX]);
/**
 * Read an address from text, which may have any contents. The result may be an invalid address.
 * @param size     maximum bytes: the text ends at its zero byte, or after @p size bytes
 * @param resolve  HOST may be a name, whose resolution may take time
 * @param addr     gets FI_NAME_MAX bytes
 */
bool wfi_text_read(const char *text, size_t size, bool resolve, void *addr);

/** Does a text have the form of an address, with any prefix? */
bool wfi_text_is(const char *text);

/** Read an address of FI_NAME_MAX bytes, or with FI_ADDR_STR a text, without resolution. */
bool wfi_address_read(uint32_t format, const void *in, size_t length, void *addr);
/** Write an address in this format. @return bytes of @p out */
size_t wfi_address_write(uint32_t format, const void *addr, char out[WFI_TEXT_MAX]);

#endif /* WFI_NAME_H */
