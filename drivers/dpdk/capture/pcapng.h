/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/pcapng.h
 * Writing pcapng: section, interfaces, packets; buffered. Pure: libc only.
 *
 * DPDK 22.11's rte_pcapng is not used: its interfaces are ethdev ports (a simulated port is none),
 * the length it writes includes padding, it copies each packet into an mbuf first, and its clock is
 * shared without a lock.
 */
#ifndef WEFT_PCAPNG_H
#define WEFT_PCAPNG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct weft_pcapng;

enum weft_pcapng_direction { WEFT_PCAPNG_IN = 1, WEFT_PCAPNG_OUT = 2 };

/**
 * Begin a section.
 *
 * @param fd          file to write to, open as long as the process
 * @param application for the section header
 * @return NULL when there is no memory
 */
struct weft_pcapng *weft_pcapng_open(int fd, const char *application);

/**
 * Add an Ethernet interface.
 *
 * @param speed  bit/s; 0 = not known
 * @return its number, counted from 0
 */
uint32_t weft_pcapng_interface(struct weft_pcapng *w, const char *name, const char *description,
			       const uint8_t mac[6], uint64_t speed);

/**
 * Add a packet.
 *
 * @param time_ns  since 1970
 * @param iov      its bytes, in pieces
 */
void weft_pcapng_packet(struct weft_pcapng *w, uint32_t interface,
			enum weft_pcapng_direction direction, uint64_t time_ns,
			const struct iovec *iov, unsigned int iovcnt);

/**
 * Write what is buffered. @return 0, or the first error of all writing: nothing is written after it
 */
int weft_pcapng_flush(struct weft_pcapng *w);

/** Bytes that wait for a flush. */
size_t weft_pcapng_pending(const struct weft_pcapng *w);

#endif /* WEFT_PCAPNG_H */
