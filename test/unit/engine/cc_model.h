/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cc_model.h
 * A queue, and senders that fill it: congestion control without an engine or a network. A frame
 * that a sender may send is in the queue at once, leaves it at the rate, and is acknowledged a
 * fixed time later; one that finds the queue full, or has bad luck, is known to be lost when it
 * would have been acknowledged.
 */
#ifndef UNIT_CC_MODEL_H
#define UNIT_CC_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/cc.h"

#define MODEL_SENDERS 64

struct model_sender {
	struct weft_cc cc;
	bool reno;       /* a TCP: ours is not asked */
	double cwnd;     /* of a TCP, in frames */
	uint64_t cut_at; /* of a TCP */
	uint64_t start;  /* ns; sends from then on */
	uint64_t stop;   /* until then; 0 = to the end */
	uint64_t link;   /* its own link is taken until then */
	uint64_t next;   /* a frame may leave then */
	uint32_t inflight;
	uint64_t delivered, sent, lost; /* bytes, since `from` */
	bool full; /* the window kept a frame back since the last acknowledgement */
};

struct model {
	uint64_t rate;   /* bit/s */
	uint64_t access; /* bit/s of each sender's own link; 0 = no limit */
	uint64_t base;   /* ns, without queue and the frame's own time */
	uint32_t queue;  /* bytes */
	uint32_t mark;   /* bytes beyond which frames are marked; 0 = never */
	uint32_t frame;
	uint32_t most;
	double loss;
	uint64_t hint;     /* ns: what the handshake found; 0 = nothing */
	uint32_t frame_ns; /* of the sender's link, as reported; 0 = it is not */
	uint64_t from;     /* counted from then on */
	uint64_t noise;    /* ns: added to samples, uniform */
	bool blind;        /* acknowledgements tell no round trips */
	bool meter;        /* the speed of the sender's port is a guess */
	uint32_t burst;    /* bytes: the rate is a bucket of tokens of so many; 0 = a link */
	/*
	 * Senders and receiver are off their cores for 1 to 10 ms, time and again. An end that is
	 * away neither sends nor acknowledges, and what comes meanwhile is acknowledged without a
	 * round trip.
	 */
	uint64_t away_every; /* ns from one pause's end to the next one, on average; 0 = never */
	unsigned int senders;
	struct model_sender s[MODEL_SENDERS];
	/* results */
	double mean_queue; /* ns, as frames find it */
	uint64_t seed;
};

/** Run for @p ns. Senders begin anew with the algorithm @p number. */
void model_run(struct model *m, unsigned int number, uint64_t ns);
double model_jain(const struct model *m);
/** Delivered of what the rate allows, 0 to 1; of sender @p i, or all (-1). */
double model_share(const struct model *m, int i, uint64_t ns);
double model_dropped(const struct model *m);

#endif /* UNIT_CC_MODEL_H */
