/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/message.h
 * Messages followed over all lanes of their endpoint. doc/capture.md, "Messages", has the model and
 * the bounds.
 *
 *  dump/trace.c    which flows are lanes of one endpoint, and its workers
 *  dump/message.c  the table of open messages
 *  dump/follow.c   maps the messages of a frame to them
 *  dump/flight.c   frames from the first transmission to the acknowledgement
 */
#ifndef DUMP_MESSAGE_H
#define DUMP_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "dump/trace.h"

#define MSG_OPEN (1u << 16)
#define MSG_LANES 8u
#define MSG_WATCHED 32u
#define MSG_EVENTS 4096u
#define MSG_FRAMES (1u << 20)
#define FLIGHTS (1u << 18)
#define FLIGHTS_AWAITED (1u << 14)
#define LINKS (1u << 20)

enum msg_kind { MSG_TAG, MSG_AM, MSG_PUT, MSG_GET, MSG_AMO, MSG_FLUSH };

/** Observations of a message. */
enum msg_seen {
	MSG_SYNC = 1 << 0,
	MSG_FRAG = 1 << 1,
	MSG_RTS = 1 << 2,
	MSG_PULL = 1 << 3,
	MSG_RTR = 1 << 4,
	MSG_PUT_DONE = 1 << 5,
	MSG_BYTES = 1 << 6, /**< DATA messages with bytes of a rendezvous were seen */
	MSG_ENDED = 1 << 7, /**< ATS, SYNC_ACK or another end was seen */
	MSG_FAILED = 1 << 8,
	MSG_WITHDRAWN = 1 << 9,
	MSG_FETCH = 1 << 10,       /**< an atomic that returns the old value, so a reply ends it */
	MSG_FORCED = 1 << 11,      /**< retired early, because the table was full */
	MSG_AT_RECEIVER = 1 << 12, /**< `arrived` and `answered` are from the receiver's capture */
	MSG_BY_TIMEOUT =
		1 << 13, /**< the timer, not an acknowledgement, probably caused `repair` */
};

/** The three names of a message: see dump/message.c. */
enum msg_key { MSG_BY_NAME, MSG_BY_SREQ, MSG_BY_RREQ, MSG_KEYS };

/** The bytes of a message that one lane has carried. */
struct msg_lane {
	uint32_t flow;
	uint32_t frames, again, lost; /**< again: retransmissions */
	uint64_t bytes, first, last;  /**< first, last: times; last: arrival of its last byte */
};

struct msg {
	uint64_t number; /**< messages have numbers in the order of their first frames, from 1 */
	uint8_t kind;    /**< enum msg_kind */
	uint8_t num_lanes;
	uint16_t seen; /**< enum msg_seen */
	uint16_t channel;
	bool idle; /**< it is in the list of complete puts and gets, which may get more frames */
	bool used;
	uint32_t flow; /**< flow of its first frame */
	uint32_t seq;
	uint32_t pending; /**< links of frames in flight to this message */
	uint32_t watched; /**< index in trace_follow.watch; MSG_WATCHED = not watched */
	uint64_t tag;     /**< AM: the handler's id; remote memory: a part of the name */
	uint64_t total, bytes;
	uint64_t first;    /**< time of its first frame */
	uint64_t arrived;  /**< arrival of the first frame; 0 = not seen */
	uint64_t answered; /**< first PULL, RTR, native read, SYNC_ACK or ATS; 0 = none */
	uint64_t done;     /**< arrival of the last byte */
	uint64_t ended;    /**< time of the ATS, SYNC_ACK or other end; 0 = not seen */
	uint64_t touched;  /**< time of its last frame */
	uint64_t repair;   /**< ns, at most, from a first transmission to the one that arrived */
	uint32_t again, lost;
	struct msg_lane lane[MSG_LANES];
	struct msg_name {
		uint64_t a, b;
		uint32_t next;
		bool in;
	} name[MSG_KEYS];
	uint32_t before, behind; /**< neighbours in its list, in the order of `touched` */
};

enum link_kind { LINK_BYTES, LINK_ANNOUNCE, LINK_ANSWER, LINK_END };

/** An event of a frame of a watched message. */
struct msg_event {
	uint64_t time, offset;
	uint32_t flow, seq, bytes;
	uint8_t way, kind; /**< enum dump_way, enum link_kind */
	bool again, acked; /**< again: of a retransmission; acked: of the acknowledgement */
};

/** A frame in a capture. */
struct msg_frame {
	uint64_t number; /**< number of the frame in its file */
	uint8_t file;
};

struct msg_watch {
	uint64_t number;
	bool found;
	struct msg msg; /**< final state of the message */
	struct msg_event *event;
	unsigned int num_events;
	uint64_t missed; /**< events beyond the limit */
	/** frames with a part of the message, and their acknowledgements, in the order of time */
	struct msg_frame *frame;
	unsigned int num_frames, room_frames;
	uint64_t missed_frames; /**< frames not in `frame`: beyond the limit, or no memory */
};

#define MSG_PROTOCOLS 13u
/** How many messages of a protocol there were, and how long they took. */
struct msg_sum {
	uint64_t count, bytes;
	struct hist took;
};

struct flight;
struct msg_link;

struct trace_follow {
	struct msg *msg;
	uint32_t free;                 /**< first unused message */
	uint32_t oldest[2], newest[2]; /**< ends of both lists of messages, by msg.idle */
	uint32_t *bucket[MSG_KEYS];
	struct flight *flight;
	uint64_t head, tail; /**< numbers of flights; the ring has those from tail to head */
	uint32_t *flight_bucket;
	/** numbers of acknowledged flights of which transmissions may yet come: a ring */
	uint64_t awaited[FLIGHTS_AWAITED], awaited_head, awaited_tail;
	struct msg_link *link;
	uint32_t free_link;
	uint64_t messages;   /**< messages that have begun */
	uint64_t unfinished; /**< messages that are not complete when the captures end */
	uint64_t forced;     /**< messages that were retired because the table was full */
	uint64_t strays;     /**< DATA, PUT_DONE, RTR, PULL, ends and reads of unknown messages */
	/** messages with retransmissions; messages with a frame whose retransmission came first */
	uint64_t sent_again, repaired;
	struct msg_sum sum[MSG_PROTOCOLS];
	struct msg_watch watch[MSG_WATCHED];
	unsigned int num_watched;
	/** Called with each message that has ended, or that is retired without an end. */
	void (*over)(void *arg, struct trace *t, const struct msg *m);
	void *arg;
};

struct trace_follow *follow_make(void);
void follow_free(struct trace_follow *fo);
/**
 * Watch the message of this number: keep its events.
 * @return NULL: MSG_WATCHED messages are watched already, or there is no memory
 */
struct msg_watch *follow_watch(struct trace_follow *fo, uint64_t number);

/** "eager", "multi-eager", "rndv/pull", ... */
const char *msg_protocol(const struct msg *m);
const char *msg_protocol_name(unsigned int protocol); /**< @p protocol: below MSG_PROTOCOLS */
/** ns from a message's first frame to its last byte, or without bytes to its end; 0 = incomplete */
uint64_t msg_took(const struct msg *m);
/**
 * ns from the arrival of a message's announcement, or in the sender's capture from its sending, to
 * the answer; 0 = not seen
 */
uint64_t msg_match(const struct msg *m);
bool msg_complete(const struct msg *m);
/**
 * The lane whose bytes came last.
 * @param[out] by  ns from the last byte of the lane before it to that of this lane
 * @return NULL: no bytes came
 */
const struct msg_lane *msg_last_lane(const struct msg *m, uint64_t *by);

struct msg *msg_begin(struct trace *t, uint32_t flow, uint64_t time);
void msg_name(struct trace *t, struct msg *m, enum msg_key key, uint64_t a, uint64_t b);
/** A message of the flow's stream that has this name, or NULL. */
struct msg *msg_find(const struct trace *t, uint32_t flow, enum msg_key key, uint64_t a,
		     uint64_t b);
/**
 * msg_find() in other streams that may belong to the same endpoint, among messages without their
 * last byte. @param total  their length; 0 = any
 */
struct msg *msg_find_alike(const struct trace *t, uint32_t flow, enum msg_key key, uint64_t a,
			   uint64_t b, uint64_t total);
/**
 * A frame of the message was seen. End the message if it is complete and no frame of it is in
 * flight; a put or get, to which more frames may belong, ends later (msg_sweep()).
 */
void msg_touch(struct trace *t, struct msg *m, uint64_t time);
/** End complete puts and gets that had no frame for 20 ms; with @p all, end all messages. */
void msg_sweep(struct trace *t, bool all);

#endif /* DUMP_MESSAGE_H */
