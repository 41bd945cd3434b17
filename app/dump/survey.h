/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/survey.h
 * What a first pass finds about captures: when each interface was captured, where records are
 * missing, and which station (MAC address) an interface is. dump/clock.c makes this pass.
 *
 * Captures of tcpdump and dumpcap have no directions. They follow from the interface's own address.
 * All frames of an interface are from it or to it. Where two hosts exchange frames, both addresses
 * are in all frames. Then the order of time stamps decides: of a frame in two captures the earlier
 * time is that of its sender. dump/clock.c compares neighbouring frames of both directions, so that
 * clocks need not agree.
 */
#ifndef DUMP_SURVEY_H
#define DUMP_SURVEY_H

#include "dump/decode.h"
#include "dump/dump.h"

#define SURVEY_HOLES 1024u
#define SURVEY_MACS 16u
#define SURVEY_NO_STATION UINT8_MAX /**< no index of an address */

/** A stretch of time in which the capture lost records of an interface; by its own clock. */
struct survey_hole {
	uint64_t from, to, count;
	uint16_t iface;
};

struct survey_port {
	uint64_t first, last; /**< times of its records; 0 = it has none */
	uint64_t frames;      /**< unicast Ethernet frames */
	uint64_t undirected;  /**< of them without a direction */
	uint8_t mac[SURVEY_MACS][6];
	uint64_t count[SURVEY_MACS]; /**< frames from or to this address */
	unsigned int num_macs;
	uint8_t station; /**< index of its own address, or SURVEY_NO_STATION */
};

struct survey_file {
	uint64_t first, last; /**< of its records */
	uint64_t end;         /**< the capture ran until then; by statistics, else @p last */
	uint64_t lost;        /**< records that the writer lost, by its own statement */
	uint64_t placed;      /**< of these, the ones that a hole contains */
	uint64_t lane_frames; /**< frames of Weft */
	uint64_t undirected;  /**< of them without a direction, after all inference */
	uint64_t too_short;   /**< frames whose lane header the capture has cut */
	uint32_t caplen;      /**< the longest captured length of these */
	struct survey_hole hole[SURVEY_HOLES];
	unsigned int num_holes;
	struct survey_port port[DUMP_IFACES];
	char comment[400]; /**< of the section: the flight recorder's reason */
};

struct survey {
	struct survey_file *file;
	unsigned int num;
	bool done;    /**< all captures were read */
	bool partial; /**< of a single capture the first frames, which have directions */
};

/** @return -ENOMEM */
int survey_make(struct survey *s, unsigned int num);
void survey_free(struct survey *s);
/** Take a frame of the first pass. */
void survey_frame(struct survey *s, const struct dump_file *file, const struct dump_frame *frame,
		  const struct dump_view *view);
/** The file has been read. */
void survey_file_end(struct survey *s, const struct dump_file *file);
/** Index of an address at a port, or SURVEY_NO_STATION. */
uint8_t survey_index(const struct survey_port *p, const uint8_t mac[6]);
/** The stations that follow from the captures one by one. */
void survey_stations(struct survey *s);
/** The two addresses in all frames of the port. @return false: it has a station, or none */
bool survey_pair(const struct survey_port *p, uint8_t index[2]);
/** Set the direction of a frame that has none, if its interface's station is known. */
void survey_way(const struct survey *s, struct dump_frame *frame);

#endif /* DUMP_SURVEY_H */
