/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/devices.h
 * Counters of RoCE devices in captures: what they have grown by while the capture ran.
 */
#ifndef DUMP_DEVICES_H
#define DUMP_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DUMP_DEVICE_COUNTERS 128u /* counters of one capture, at most */

struct dump_device_counter {
	char device[32], port[8], name[40]; /**< printable */
	uint64_t first, last;
	uint64_t since; /**< the first statistics in which it had grown, ns since 1970; 0 = none */
};

struct dump_devices {
	unsigned int num;
	struct dump_device_counter of[DUMP_DEVICE_COUNTERS];
};

/**
 * Read a comment of statistics. Counters beyond the table are left out.
 * @return false: it has no counters
 */
bool dump_devices_read(struct dump_devices *d, const void *text, size_t len, uint64_t time);

#endif /* DUMP_DEVICES_H */
