/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/file.h
 * A capture file, frame by frame: pcapng (dump/pcapng.c) and pcap (libpcap). libpcap reads pcapng,
 * too, but says neither which interface a frame is of nor which way it went, and refuses files
 * whose interfaces differ.
 *
 * The bytes are a stranger's: every length is checked, a block has a limit, and what is damaged
 * ends the file there with a sentence. Memory does not depend on the file's size.
 */
#ifndef DUMP_FILE_H
#define DUMP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define DUMP_IFACES 256

enum dump_way { DUMP_WAY_UNKNOWN, DUMP_IN, DUMP_OUT };

/** A frame as the capture has it. Bytes are valid until the next one is read. */
struct dump_frame {
	const uint8_t *data;
	uint32_t caplen; /**< bytes that are there */
	uint32_t len;    /**< bytes that the frame had */
	uint64_t time;   /**< ns since 1970 by the capturing host's clock */
	uint64_t number; /**< in its file, from 1 */
	uint16_t iface;
	uint8_t file; /**< number of the capture, as the command line has them */
	uint8_t way;  /**< enum dump_way */
	bool record;  /**< a message record (lib/lane_tap.h), not an Ethernet frame */
};

struct dump_iface {
	char name[96]; /**< printable */
	char lane[48]; /**< its first word */
	bool ethernet;
	bool records;        /**< message records of a lane without frames */
	uint32_t snaplen;    /**< 0 = none */
	uint64_t per_second; /**< units of time; 0 = ns */
	int64_t offset;      /**< s */
	uint64_t dropped;    /**< that its statistics say were lost, in all */
	uint64_t told;       /**< that its frames say were lost before them */
};

struct dump_file {
	const char *name;
	uint8_t index;
	FILE *f;
	char *buffer;      /**< f's */
	struct pcap *pcap; /**< libpcap's reader, or NULL: pcapng */
	bool swap;         /**< the writer's byte order is not ours */
	bool section;      /**< a section header has been read */
	uint8_t *block;
	size_t room;
	uint64_t at; /**< bytes read so far */
	uint64_t frames;
	uint64_t dropped_before; /**< lost, as the writer says, in sections before this one */
	uint64_t foreign;        /**< frames of interfaces that are neither Ethernet nor records */
	unsigned int num_ifaces;
	struct dump_iface iface[DUMP_IFACES];
	char why[300]; /**< damaged: what and where; "" = whole so far */
};

/** The first word of an interface's name: Weft's are "dpdk:0 (name of the port)". */
void dump_iface_lane(struct dump_iface *iface);

/** @param name  "-" = standard input. @return NULL: @p why says which file and what is wrong */
struct dump_file *dump_file_open(const char *name, uint8_t index, char *why, size_t why_len);
/** @return whether there is one; after the last one file->why says whether the file was whole */
bool dump_file_next(struct dump_file *file, struct dump_frame *frame);
/**
 * Frames that the writer says it has lost, so far: by what is at frames, or by statistics of
 * interfaces, which have all of them.
 */
uint64_t dump_file_dropped(const struct dump_file *file);
void dump_file_close(struct dump_file *file);

/* dump/pcapng.c */
bool dump_pcapng_next(struct dump_file *file, struct dump_frame *frame);

#endif /* DUMP_FILE_H */
