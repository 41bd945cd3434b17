/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture_util.h
 * Captures built in memory, block by block, and read by weft-dump's reader.
 */
#ifndef DUMP_CAPTURE_UTIL_H
#define DUMP_CAPTURE_UTIL_H

#include <stddef.h>
#include <stdint.h>

#include "dump/file.h"

struct capture {
	uint8_t data[1 << 16];
	size_t len;
};

/** A block of pcapng around @p len bytes. */
void capture_block(struct capture *c, uint32_t type, const void *body, size_t len);
/** Section header, and one Ethernet interface of this name with times in ns. */
void capture_begin(struct capture *c, const char *name);
/** A frame of interface 0. */
void capture_frame(struct capture *c, uint64_t time, enum dump_way way, const void *frame,
		   size_t len);
/** The reader on the first @p len bytes; what dump_file_open() says. */
struct dump_file *capture_open(const struct capture *c, size_t len, char *why, size_t why_len);

/** What is in a file that is whole. */
struct seen {
	uint64_t frames, records, dropped, in, longest, caplen, first, last;
	unsigned int interfaces;
	char name[96];
};

struct seen capture_seen(const char *name);

#endif /* DUMP_CAPTURE_UTIL_H */
