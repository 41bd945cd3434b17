/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/pcapng.h
 * Writing pcapng: section, interfaces, packets, statistics; buffered. The functions need libc only,
 * without allocations and locks, so a signal handler may call them.
 *
 * DPDK 22.11's rte_pcapng is not used. Its interfaces are ethdev ports, which a simulated port is
 * not. The length that it writes includes padding, it first copies each packet into an mbuf, and
 * its clock is shared without a lock.
 */
#ifndef WEFT_PCAPNG_H
#define WEFT_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_PCAPNG_ETHERNET 1
#define WEFT_PCAPNG_BUFFER (256u * 1024)
#define WEFT_PCAPNG_INTERFACES 256u /**< in one file at most, also for weft-dump */

enum weft_pcapng_direction { WEFT_PCAPNG_IN = 1, WEFT_PCAPNG_OUT = 2 };

struct weft_pcapng {
	int fd;
	int error; /**< negative errno of a write; while it is set, nothing is written; 0 = none */
	uint32_t interfaces;
	uint64_t written; /**< bytes written to the file */
	/** packets of each interface that the file did not take, because of errors */
	uint64_t lost[WEFT_PCAPNG_INTERFACES];
	size_t block; /**< offset in `buffer` of the block that is being made */
	size_t used;  /**< bytes in `buffer` */
	uint8_t buffer[WEFT_PCAPNG_BUFFER];
};

struct weft_pcapng_packet {
	uint32_t interface;
	enum weft_pcapng_direction direction;
	bool damaged;     /**< the packet's checksum is wrong */
	uint64_t time_ns; /**< ns since 1970; in a simulator, ns of its clock */
	const void *data;
	uint32_t caplen;  /**< bytes of data */
	uint32_t len;     /**< original length of the packet */
	uint64_t dropped; /**< packets of this interface lost since its last one in the file */
	const char *comment;
};

/**
 * Begin a section.
 *
 * @param fd       file to write to
 * @param comment  of the section; NULL = none
 * @param host     number of the running system (struct weft_platform), whose processes have one
 *   clock; 0 = not known
 */
void weft_pcapng_begin(struct weft_pcapng *w, int fd, const char *comment, uint64_t host);

/**
 * Add an interface.
 *
 * @param link     type of its packets: WEFT_PCAPNG_ETHERNET, WEFT_RECORD_LINKTYPE
 * @param mac      of Ethernet; NULL = not known
 * @param speed    bit/s; 0 = not known
 * @param snaplen  0 = whole packets
 * @return number of the interface, counted from 0
 */
uint32_t weft_pcapng_interface(struct weft_pcapng *w, uint16_t link, const char *name,
			       const char *description, const uint8_t mac[6], uint64_t speed,
			       uint32_t snaplen);

void weft_pcapng_packet(struct weft_pcapng *w, const struct weft_pcapng_packet *p);

/** Statistics of an interface: @p seen = packets in this file + @p dropped. */
void weft_pcapng_statistics(struct weft_pcapng *w, uint32_t interface, uint64_t time_ns,
			    uint64_t seen, uint64_t dropped);

/** Add a text about an interface at a time: a statistics block without numbers. */
void weft_pcapng_note(struct weft_pcapng *w, uint32_t interface, uint64_t time_ns,
		      const char *text);

/**
 * Write the buffer. After an error (a full disk) the file is cut to whole blocks. The cut frees
 * room for statistics.
 * @return 0, or the first write error of this file
 */
int weft_pcapng_flush(struct weft_pcapng *w);

#endif /* WEFT_PCAPNG_H */
