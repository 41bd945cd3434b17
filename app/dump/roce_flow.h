/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/roce_flow.h
 * Connections of RoCE v2 in captures of network devices. A flow is one direction: what one
 * interface of a capture has from one address to a queue pair (QP) of another. Packets name only
 * the receiver's QP. Two flows are a connection when the answers of one have sequence numbers (PSN)
 * of requests of the other alone.
 *
 * PSNs count modulo 2^24. Those of requests rise by one with each packet, and by the packets of its
 * answer with a read. So a lower PSN was sent again, and a higher one follows a gap.
 *
 * "Arrived" are requests below the PSN that the receiver expects. It is computed from the requests
 * in the capture, and from NAKs that no gap in the capture explains: those packets were lost behind
 * it. A requester that does not wait for a NAK repeats such packets first, and they count wrongly.
 * The responder's own counter lacks what came to a queue pair that had failed or was closed.
 *
 * All queue pairs of a lane begin with one random PSN. The wire-up names the first of them.
 */
#ifndef DUMP_ROCE_FLOW_H
#define DUMP_ROCE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dump/decode.h"
#include "dump/json.h"

#define ROCE_FLOWS 1024u
#define ROCE_NONE UINT32_MAX

struct roce_flow {
	struct dump_address src, dst;
	uint32_t dst_qp;
	uint16_t iface;
	uint8_t file;
	bool reliable;  /**< has packets of RC, which are acknowledged */
	uint32_t other; /**< the other direction, or ROCE_NONE */
	uint64_t first, last;
	uint64_t fault; /**< time of the first packet that shows a fault; 0 = none */
	uint64_t packets, bytes;
	uint64_t requests, responses;
	uint64_t again;         /**< requests whose PSN is not above all before */
	uint64_t arrived;       /**< of them, those whose receiver has had them */
	uint64_t gaps, missing; /**< in the PSNs of requests; their packets */
	uint64_t read_gaps;     /**< in the PSNs of one answer to a read */
	uint64_t answer[ROCEV2_ANSWERS];
	uint32_t rnr_us; /**< longest time of an RNR NAK */
	uint64_t cnps, marked;
	uint64_t messages; /**< of Weft */
	/* By a wire-up message of Weft. */
	bool named;
	uint8_t lane;
	uint64_t worker[2]; /**< sender, receiver */
	/* PSNs of requests. */
	bool has_psn;
	uint32_t begin, next;
	uint32_t slack;       /**< packets by which the answer to the last read may be longer */
	uint32_t read_length; /**< bytes of that read */
	uint32_t expected;    /**< PSN that its receiver accepts next */
	bool refused;         /**< a packet behind a gap was refused, and none was accepted since */
	bool naks_due;        /**< NAKs of gaps in this capture have not come */
	uint32_t nak_first, nak_last; /**< their PSNs */
	uint32_t mtu;                 /**< path MTU; 0 = not known */
	/* Answers to reads. */
	bool has_read;
	uint32_t read_next;
	/* Search for the other direction. */
	uint32_t candidate, votes;
};

struct roce {
	struct roce_flow flow[ROCE_FLOWS];
	unsigned int num;
	uint64_t too_many;  /**< packets of flows beyond the limit */
	uint64_t malformed; /**< also those whose BTH the capture has cut */
	uint32_t table[4 * ROCE_FLOWS];
};

/** @return NULL: no memory */
struct roce *roce_make(void);

/** Take a packet, DUMP_ROCE; @p time is of the common clock. */
void roce_packet(struct roce *r, const struct dump_frame *frame, const struct dump_view *v,
		 uint64_t time);

/** What shows a fault of the connection of the flow. @return 0: none, or the other flow has it */
uint64_t roce_faults(const struct roce *r, unsigned int flow);

/**
 * The faults of a connection as text.
 * @param place  where it was captured. @param begin  time of the first frame
 */
void roce_fault_text(const struct roce *r, unsigned int flow, const char *place, uint64_t begin,
		     char *buf, size_t size);
/** Sums over all connections as text. */
void roce_sums_text(const struct roce *r, char *buf, size_t size);
/** Write a flow as members of the object that is open. */
void roce_flow_json(struct json *j, const struct roce *r, const struct roce_flow *f);

#endif /* DUMP_ROCE_FLOW_H */
