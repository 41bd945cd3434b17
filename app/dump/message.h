/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/message.h
 * Messages followed over all lanes of their endpoint. doc/capture.md, "Messages", has the model and
 * the bounds.
 *
 *  dump/stream.c    which flows are lanes of one endpoint, and its workers
 *  dump/message.c   the table of open messages
 *  dump/follow.c    maps the messages of a frame to them
 *	dump/flight.c    frames from the first transmission to the acknowledgement
 *	dump/native.c    native operations of lanes without frames
 *	dump/hist.c      quantiles of times
 */
#ifndef DUMP_MESSAGE_H
#define DUMP_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "dump/hist.h"
#include "dump/trace.h"

#define MSG_OPEN (1u << 16)
#define MSG_LANES 8u
#define MSG_WATCHED 32u
#define MSG_EVENTS 4096u
#define FLIGHTS (1u << 18)
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
	MSG_BYTES = 1 << 6, /**< of a rendezvous, by messages */
	MSG_ENDED = 1 << 7, /**< ATS, SYNC_ACK or another end was seen */
	MSG_FAILED = 1 << 8,
	MSG_WITHDRAWN = 1 << 9,
	MSG_FETCH = 1 << 10,  /**< an atomic that is answered */
	MSG_FORCED = 1 << 11, /**< retired early, because the table was full */
	MSG_AT_RECEIVER =
		1 << 12,          /**< @p arrived and @p answered are from the receiver's capture */
	MSG_BY_TIMEOUT = 1 << 13, /**< retransmitted without a later frame acknowledged */
};

/** The three names of a message: see dump/message.c. */
enum msg_key { MSG_BY_NAME, MSG_BY_SREQ, MSG_BY_RREQ, MSG_KEYS };

/** The bytes of a message that one lane has carried. */
struct msg_lane {
	uint32_t flow;
	uint32_t frames, again, lost;
	uint64_t bytes, first, last;
};

struct msg {
	uint64_t number; /**< in the order of their first frames, from 1 */
	uint8_t kind;    /**< enum msg_kind */
	uint8_t num_lanes;
	uint16_t seen; /**< enum msg_seen */
	uint16_t channel;
	bool idle; /**< in the list of idle ones */
	bool used;
	uint32_t flow; /**< a flow from its sender */
	uint32_t seq;
	uint32_t pending; /**< links to it */
	uint32_t watched; /**< MSG_WATCHED = no */
	uint64_t tag;     /**< AM: the handler's id; AMO: the operation */
	uint64_t total, bytes;
	uint64_t first;    /**< time of its first frame */
	uint64_t arrived;  /**< arrival of the first frame; 0 = not seen */
	uint64_t answered; /**< first PULL, RTR, SYNC_ACK, ATS; 0 = none */
	uint64_t done;     /**< arrival of the last byte */
	uint64_t ended;
	uint64_t touched;
	uint64_t repair; /**< longest time from a first transmission to the one that arrived */
	uint32_t again, lost;
	struct msg_lane lane[MSG_LANES];
	struct msg_name {
		uint64_t a, b;
		uint32_t next;
		bool in;
	} name[MSG_KEYS];
	uint32_t before, behind; /**< in its list, by @p touched */
};

enum link_kind { LINK_BYTES, LINK_ANNOUNCE, LINK_ANSWER, LINK_END };

/** An event of a frame of a watched message. */
struct msg_event {
	uint64_t time, offset;
	uint32_t flow, seq, bytes;
	uint8_t way, kind; /**< enum dump_way, enum link_kind */
	bool again, acked; /**< acked: the acknowledgement of the frame */
};

struct msg_watch {
	uint64_t number;
	bool found;
	struct msg msg; /**< its final state */
	struct msg_event *event;
	unsigned int num_events;
	uint64_t missed; /**< events beyond the limit */
};

/** How many messages of a kind there were, and how long they took. */
#define MSG_PROTOCOLS 13u
struct msg_sum {
	uint64_t count, bytes;
	struct hist took;
};

struct flight;
struct msg_link;

struct trace_follow {
	struct msg *msg;
	uint32_t free, oldest[2], newest[2]; /**< [idle] */
	uint32_t *bucket[MSG_KEYS];
	struct flight *flight;
	uint64_t head, tail; /**< numbers of flights; the ring has those from tail to head */
	uint32_t *flight_bucket;
	struct msg_link *link;
	uint32_t free_link;
	uint64_t messages;   /**< begun */
	uint64_t unfinished; /**< not complete when the captures end */
	uint64_t forced;     /**< retired because the table was full */
	uint64_t strays;     /**< fragments of messages whose begin was not captured */
	uint64_t sent_again, repaired;
	struct msg_sum sum[MSG_PROTOCOLS];
	struct msg_watch watch[MSG_WATCHED];
	unsigned int num_watched;
	/** Called with each message that has ended. */
	void (*over)(void *arg, struct trace *t, const struct msg *m);
	void *arg;
};

struct trace_follow *follow_make(void);
void follow_free(struct trace_follow *fo);
/** A lane frame of flow @p f. */
void follow_frame(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		  const struct dump_view *view, uint64_t time);
/** No more frames. */
void follow_end(struct trace *t);
/** Watch the message of this number: keep its events. @return NULL: too many */
struct msg_watch *follow_watch(struct trace_follow *fo, uint64_t number);

/** "eager", "multi-eager", "rndv/pull", ... */
const char *msg_protocol(const struct msg *m);
const char *msg_protocol_name(unsigned int protocol); /**< below MSG_PROTOCOLS */
/** From its first frame to its last byte; 0 = it is not complete. */
uint64_t msg_took(const struct msg *m);
/** From the arrival of its announcement to the answer; 0 = not seen. */
uint64_t msg_match(const struct msg *m);
bool msg_complete(const struct msg *m);
/** The lane whose bytes arrived last. @return NULL: none. @p by: ns after the one before */
const struct msg_lane *msg_last_lane(const struct msg *m, uint64_t *by);

/* dump/message.c */
struct msg *msg_begin(struct trace *t, uint32_t flow, uint64_t time);
void msg_name(struct trace *t, struct msg *m, enum msg_key key, uint64_t a, uint64_t b);
/** A message of this stream that has this name. */
struct msg *msg_find(const struct trace *t, uint32_t flow, enum msg_key key, uint64_t a,
		     uint64_t b);
/** As before, in other streams that may belong to the same endpoint. */
struct msg *msg_find_alike(const struct trace *t, uint32_t flow, enum msg_key key, uint64_t a,
			   uint64_t b, uint64_t total);
/** A frame of the message was seen; ends it when it is complete. */
void msg_touch(struct trace *t, struct msg *m, uint64_t time);
/** End messages that have been idle for long; with @p all, end all. */
void msg_sweep(struct trace *t, bool all);

/* dump/follow.c */
struct msg_link {
	uint64_t offset;
	uint32_t msg, number, next, bytes;
	uint8_t kind; /**< enum link_kind */
};
/** Read the messages of a frame that is seen first. @return its links, or TRACE_NONE */
uint32_t follow_messages(struct trace *t, struct trace_flow *f, const struct dump_view *view,
			 uint64_t time, uint8_t way);
/** The message of a link, or NULL: it has ended. */
struct msg *link_msg(const struct trace_follow *fo, const struct msg_link *l);
/** @return the counters of this lane's part of a message */
struct msg_lane *msg_lane(struct msg *m, uint32_t flow, uint64_t time);

/* dump/flight.c */
int flight_make(struct trace_follow *fo);
void flight_free(struct trace_follow *fo);
/** A DATA or PART frame. */
void flight_data(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		 const struct dump_view *view, uint64_t time);
/** Take the acknowledgements of the other direction from a frame of @p f. */
void flight_ack(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		const struct dump_view *view, uint64_t time);
/** A message record. */
void flight_record(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		   const struct dump_view *view, uint64_t time);
/** For the time line of @p m: bytes that a native operation over @p flow moves. */
void flight_note(struct trace_follow *fo, const struct msg *m, const struct msg_event *e);
void flight_end(struct trace *t);
/** Retire the oldest frame, which frees links. */
void flight_retire(struct trace *t);

/* dump/native.c */
/** A record of a native operation. */
void follow_native(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		   const struct dump_view *view, uint64_t time);

/* dump/stream.c */
uint32_t stream_of(const struct trace *t, uint32_t flow);
/** The flows are lanes of one endpoint, in the same direction. */
void stream_join(struct trace *t, uint32_t a, uint32_t b);
/** Could they be that, though no message names their endpoints? */
bool stream_may_join(const struct trace *t, uint32_t a, uint32_t b);
/** Take the lane and the workers of flow @p f from its first record. */
void stream_record(struct trace *t, struct trace_flow *f, const struct weft_record_head *r);
/** A wire-up message: learn the names of workers. */
void stream_learn(struct trace *t, const struct dump_msg *msg);
/** A wire-up message of flow @p f. */
void stream_wireup(struct trace *t, struct trace_flow *f, const struct dump_msg *msg);
/** An IPv4 or MAC address. @return buf */
const char *stream_address(uint64_t address, char *buf, size_t size);
/** The name of the sender, or (@p to) of the receiver of a flow. @return buf */
const char *stream_end_name(const struct trace *t, const struct trace_flow *f, bool to, char *buf,
			    size_t size);

#endif /* DUMP_MESSAGE_H */
