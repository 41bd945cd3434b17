/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/file.h
 * A capture file, frame by frame: pcapng and pcap (libpcap). libpcap reads pcapng, too, but it
 * reports neither the interface nor the direction of a frame, and it refuses files whose interfaces
 * differ.
 *
 * The bytes are untrusted: every length is checked, and a block has a limit. A damaged part ends
 * the file there with an error message. Memory does not depend on the size of the file.
 */
#ifndef DUMP_FILE_H
#define DUMP_FILE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "dump/history.h"
#include "dump/state.h"

#define DUMP_DEVICE_COUNTERS 128u /* counters of one capture, at most */

struct dump_device_counter {
	char device[32], port[8], name[40]; /**< printable */
	uint64_t first, last;
	uint64_t since; /**< time of the statistics that first show growth, ns; 0 = none */
};

struct dump_devices {
	unsigned int num;
	struct dump_device_counter of[DUMP_DEVICE_COUNTERS];
};

#define DUMP_FILES 64 /* most captures that are read together */
#define DUMP_IFACES 256

enum dump_way { DUMP_WAY_UNKNOWN, DUMP_IN, DUMP_OUT };

/** A captured frame. Bytes are valid until the next one is read. */
struct dump_frame {
	const uint8_t *data;
	uint32_t caplen;  /**< bytes that were captured */
	uint32_t len;     /**< bytes that the frame had */
	uint64_t time;    /**< ns since 1970 by the capturing host's clock */
	uint64_t number;  /**< number of the frame in its file, from 1 */
	uint64_t dropped; /**< records of its interface that the writer lost just before it */
	uint16_t iface;
	uint8_t file; /**< place of the capture on the command line, from 0 */
	uint8_t way;  /**< enum dump_way */
	/** the keys of sealed frames; NULL = none are known */
	struct dump_keylog *keylog;
	uint64_t worker; /**< id of the worker whose lane its interface is; 0 = not known */
	/**
	 * How exact `time` is, ns. A sent frame left at most this after `time`; for a received
	 * frame the port was polled at most this before `time`. UINT64_MAX = not known; 0 = at most
	 * 10 us, or not written by Weft
	 */
	uint64_t within;
	bool sockets; /**< its interface is of a lane over sockets (struct dump_iface) */
	bool damaged; /**< its receiver found a wrong checksum, by the flags of its block */
	bool record;  /**< a message record (lib/lane_tap.h), not an Ethernet frame */
	/** comment of the frame's block in pcapng, without a NUL at its end; NULL = none */
	const char *comment;
	uint16_t comment_len;
};

struct dump_iface {
	char name[96]; /**< printable */
	char lane[48]; /**< the first word of the name */
	bool ethernet;
	bool records;        /**< its frames are message records of a lane without frames */
	bool sockets;        /**< a lane over UDP sockets, which are polled one by one */
	uint64_t worker;     /**< id of the lane's worker, from the description; 0 = not known */
	uint32_t snaplen;    /**< most captured bytes of a frame; 0 = no limit */
	uint64_t per_second; /**< units of the time stamps in a second; 0 means 10^9 */
	int64_t offset;      /**< seconds to add to the time stamps */
	uint64_t dropped;    /**< frames that the writer lost, by the newest statistics block */
	uint64_t reported;   /**< sum of dump_frame.dropped of its frames */
};

struct dump_file {
	const char *name;
	uint8_t index;
	FILE *f;
	char *buffer;      /**< buffer of f, allocated; NULL = none */
	struct pcap *pcap; /**< libpcap's reader, or NULL: pcapng */
	bool swap;         /**< the file's byte order is not this machine's */
	bool section;      /**< a section header has been read */
	uint8_t *block;
	size_t room;
	uint64_t at; /**< bytes read so far */
	uint64_t frames;
	uint64_t dropped_before; /**< frames that the writer lost in earlier sections */
	uint64_t foreign;        /**< frames of interfaces that are neither Ethernet nor records */
	bool weft;               /**< the writer of the section is Weft */
	uint64_t host; /**< random id of the host's boot, which Weft writes; 0 = not known */
	bool closed;   /**< a statistics block of the last frame's interface follows that frame */
	uint16_t last_iface; /**< interface of the last frame */
	unsigned int num_ifaces;
	struct dump_iface iface[DUMP_IFACES];
	uint64_t end; /**< time of the newest statistics block, ns since 1970; 0 = no such block */
	struct dump_devices devices;
	struct history history; /**< of lanes */
	struct states states;   /**< of paths */
	char comment[400];      /**< comment of the last section that has one; printable */
	char why[300];          /**< the error and its place; "" = no error so far */
};

/** Set by a signal handler: dump_file_next() then returns false for all captures, without error. */
extern volatile sig_atomic_t dump_file_stop;

/** @param name  "-" = standard input. @return NULL: @p why names the file and the error */
struct dump_file *dump_file_open(const char *name, uint8_t index, char *why, size_t why_len);
/**
 * @return whether there is a frame. After the last one, file->why is "" if the file was complete
 */
bool dump_file_next(struct dump_file *file, struct dump_frame *frame);
/**
 * Number of frames that the writer has lost so far. Of each interface the greater number counts:
 * the sum of the frames' options, or the total in the statistics.
 */
uint64_t dump_file_dropped(const struct dump_file *file);
/**
 * Did Weft fail to close the file, which has been read? Weft writes statistics behind the last
 * frame, except in files of the flight recorder, which have a comment.
 */
bool dump_file_broken_off(const struct dump_file *file);
void dump_file_close(struct dump_file *file);

/** tcpdump's filter expressions. */
struct dump_filter;

/** @return NULL: @p why names the error in the expression */
struct dump_filter *dump_filter_make(const char *expression, char *why, size_t why_len);
bool dump_filter_takes(const struct dump_filter *filter, const struct dump_frame *frame);
void dump_filter_free(struct dump_filter *filter);

/** How far a large file has been read: on standard error, if that is a terminal. */
struct dump_progress {
	uint64_t size; /**< bytes of the file; 0 = not known */
	uint64_t next; /**< bytes read at which the line is printed again */
	bool shown;
};

void dump_progress_begin(struct dump_progress *p, const struct dump_file *file);
void dump_progress(struct dump_progress *p, const struct dump_file *file);
void dump_progress_end(struct dump_progress *p);

#endif /* DUMP_FILE_H */
