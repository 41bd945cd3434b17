/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/clock.h
 * What a first pass finds about captures: their clocks, when each interface was captured, where
 * records are missing, and which station (MAC address) an interface is.
 *
 * Captures of tcpdump and dumpcap do not contain the direction of a frame. It follows from the
 * interface's own address: all frames of an interface are from it or to it. Where only two hosts
 * exchange frames, both addresses are in all frames. Then the order of time stamps decides: of a
 * frame in two captures the earlier time is that of its sender. This pass compares neighbouring
 * frames of both directions, so that clocks need not agree.
 *
 * The ports of a weft-switch have MAC addresses that differ in the last byte. Frames from one port
 * to another never pass its uplink. There the addresses of all its ports are one station.
 */
#ifndef DUMP_CLOCK_H
#define DUMP_CLOCK_H

#include "dump/decode.h"
#include "dump/file.h"

#define SURVEY_HOLES 1024u
#define SURVEY_MACS 64u             /**< ports of a weft-switch, and those of other hosts */
#define SURVEY_NO_STATION UINT8_MAX /**< survey_port.station: the address is not known */

/** A stretch of time, by the capture's own clock, in which it lost records of an interface. */
struct survey_hole {
	uint64_t from, to, count; /**< count: lost records */
	uint16_t iface;           /**< UINT16_MAX = any */
};

struct survey_port {
	uint64_t first;      /**< time of its first record in the file; 0 = it has none */
	uint64_t last;       /**< latest time of its records; 0 = it has none */
	uint64_t second;     /**< time of the first record that is later than `first`; 0 = none */
	uint64_t frames;     /**< unicast Ethernet frames */
	uint64_t undirected; /**< unicast Ethernet frames without a direction */
	uint8_t mac[SURVEY_MACS][6];
	uint64_t count[SURVEY_MACS]; /**< frames from or to this address */
	unsigned int num_macs;
	bool within;     /**< frames from one port of a weft-switch to another one of it */
	uint8_t station; /**< index in `mac` of the interface's address, or SURVEY_NO_STATION */
};

struct survey_file {
	uint64_t first, last; /**< earliest and latest time of its records */
	uint64_t end;         /**< the capture ran until then, by its statistics; at least `last` */
	uint64_t lost;        /**< records that the writer lost, by its own statement */
	uint64_t placed;      /**< lost records that a hole contains */
	uint64_t lane_frames; /**< valid frames of Weft */
	uint64_t undirected;  /**< valid frames of Weft without a direction in the capture */
	uint64_t too_short;   /**< frames whose lane header the capture has cut */
	uint32_t caplen;      /**< longest captured length of the `too_short` frames */
	uint32_t needed;      /**< captured length with which none of them would be too short */
	struct survey_hole hole[SURVEY_HOLES];
	unsigned int num_holes;
	struct survey_port port[DUMP_IFACES];
	uint64_t host;          /**< random number of the host's boot; 0 = not known */
	bool broken_off;        /**< Weft wrote it, and has not closed it */
	bool recorder;          /**< a flight recorder's file, which has the last frames */
	char comment[400];      /**< the comment of the section: the flight recorder's reason */
	struct history history; /**< its times are of the file's clock */
};

struct survey {
	struct survey_file *file;
	unsigned int num;
	bool done;    /**< the pass is over */
	bool partial; /**< only the first frames of a single capture, with directions, were read */
};

void survey_free(struct survey *s);
/** Set the direction of a frame without one, if the MAC address of its interface is known. */
void survey_way(const struct survey *s, struct dump_frame *frame);

/** The clock of a capture, relative to that of its base. */
struct trace_clock {
	bool known;         /**< it has frames in common with another capture, or is the only one */
	uint8_t base;       /**< the first capture with which frames connect it */
	int64_t offset;     /**< ns to subtract from a time at @p at */
	uint64_t at;        /**< a time by this capture's clock */
	double drift;       /**< ns by which the offset grows in each ns */
	double drift_error; /**< half the distance of the quartiles of measured drifts */
	bool equal;         /**< one clock, by the frames or by the host's number: offset is 0 */
};

/** Read the captures once; not standard input. @return APP_OK, or exit code after a message */
int trace_clocks(char *const *names, unsigned int num, struct trace_clock *clock,
		 struct survey *survey);

/** The time by the clock of the capture's base, which mostly is the first one. */
static inline uint64_t trace_time(const struct trace_clock *c, uint64_t time)
{
	if (!c->known)
		return time;
	return time - (uint64_t)c->offset -
	       (uint64_t)(int64_t)(c->drift * (double)(int64_t)(time - c->at));
}

#endif /* DUMP_CLOCK_H */
