/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/message.h
 * Messages followed over all lanes of their endpoint. doc/capture.md, "Messages", has the model and
 * the bounds.
 *
 *	dump/stream.c    which flows are lanes of one endpoint, and whose
 *	dump/message.c   the table of open messages
 *	dump/follow.c    what the messages of a frame say of them
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

/** What was seen of a message. */
enum msg_seen {
	MSG_SYNC = 1 << 0,
	MSG_FRAG = 1 << 1,
	MSG_RTS = 1 << 2,
	MSG_PULL = 1 << 3,
	MSG_RTR = 1 << 4,
	MSG_PUT_DONE = 1 << 5,
	MSG_BYTES = 1 << 6, /**< of a rendezvous, by messages */
	MSG_ENDED = 1 << 7, /**< ATS, SYNC_ACK and such were there */
	MSG_FAILED = 1 << 8,
	MSG_WITHDRAWN = 1 << 9,
	MSG_FETCH = 1 << 10,       /**< an atomic that is answered */
	MSG_FORCED = 1 << 11,      /**< there was no room for it any more */
	MSG_AT_RECEIVER = 1 << 12, /**< @p arrived and @p answered are of the receiver's capture */
	MSG_BY_TIMEOUT = 1 << 13,  /**< nothing later was acknowledged when it was sent again */
};

/** The three names of a message: see dump/message.c. */
enum msg_key { MSG_BY_NAME, MSG_BY_SREQ, MSG_BY_RREQ, MSG_KEYS };

/** What a lane has carried of a message's bytes. */
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
	bool idle; /**< in that list */
	bool used;
	uint32_t flow; /**< one of its sender's */
	uint32_t seq;
	uint32_t pending; /**< links to it */
	uint32_t watched; /**< MSG_WATCHED = no */
	uint64_t tag;     /**< AM: the handler's id; AMO: the operation */
	uint64_t total, bytes;
	uint64_t first;    /**< time of its first frame */
	uint64_t arrived;  /**< time at which the first one came; 0 = not seen */
	uint64_t answered; /**< first PULL, RTR, SYNC_ACK, ATS; 0 = none */
	uint64_t done;     /**< last byte is there */
	uint64_t ended;
	uint64_t touched;
	uint64_t repair; /**< longest time from a first transmission to the one that came */
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

/** An observation of a frame of a message that is watched. */
struct msg_event {
	uint64_t time, offset;
	uint32_t flow, seq, bytes;
	uint8_t way, kind; /**< enum dump_way, enum link_kind */
	bool again, acked; /**< acked: not a frame, its acknowledgement */
};

struct msg_watch {
	uint64_t number;
	bool found;
	struct msg msg; /**< as it was in the end */
	struct msg_event *event;
	unsigned int num_events;
	uint64_t missed; /**< events for which there was no room */
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
	uint64_t head, tail; /**< numbers of flights; the ring has those between */
	uint32_t *flight_bucket;
	struct msg_link *link;
	uint32_t free_link;
	uint64_t messages;   /**< begun */
	uint64_t unfinished; /**< that the captures end before */
	uint64_t forced;     /**< retired because there was no room */
	uint64_t strays;     /**< pieces of messages whose begin is not there */
	uint64_t sent_again, repaired;
	struct msg_sum sum[MSG_PROTOCOLS];
	struct msg_watch watch[MSG_WATCHED];
	unsigned int num_watched;
	/** Called with each message that is over. */
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
/** The message of this number is watched: its events are kept. @return NULL: no room */
struct msg_watch *follow_watch(struct trace_follow *fo, uint64_t number);

/** "eager", "multi-eager", "rndv/pull", ... */
const char *msg_protocol(const struct msg *m);
const char *msg_protocol_name(unsigned int protocol); /**< below MSG_PROTOCOLS */
/** From its first frame to its last byte; 0 = it is not complete. */
uint64_t msg_took(const struct msg *m);
/** From the arrival of its announcement to the answer; 0 = not seen. */
uint64_t msg_match(const struct msg *m);
bool msg_complete(const struct msg *m);
/** The lane whose bytes were there last. @return NULL: none. @p by: ns behind the next one */
const struct msg_lane *msg_last_lane(const struct msg *m, uint64_t *by);

/* dump/message.c */
struct msg *msg_begin(struct trace *t, uint32_t flow, uint64_t time);
void msg_name(struct trace *t, struct msg *m, enum msg_key key, uint64_t a, uint64_t b);
/** A message of this stream that has this name. */
struct msg *msg_find(const struct trace *t, uint32_t flow, enum msg_key key, uint64_t a,
		     uint64_t b);
/** Of another stream that may be the same endpoint: the one whose piece this may be. */
struct msg *msg_find_alike(const struct trace *t, uint32_t flow, enum msg_key key, uint64_t a,
			   uint64_t b, uint64_t total);
/** Something was seen of it; ends it when it is over. */
void msg_touch(struct trace *t, struct msg *m, uint64_t time);
/** Ends what has been idle for long; with @p all the rest, too. */
void msg_sweep(struct trace *t, bool all);

/* dump/follow.c */
struct msg_link {
	uint64_t offset;
	uint32_t msg, number, next, bytes;
	uint8_t kind; /**< enum link_kind */
};
/** What the messages of a frame that is seen first say. @return its links, or TRACE_NONE */
uint32_t follow_messages(struct trace *t, struct trace_flow *f, const struct dump_view *view,
			 uint64_t time, uint8_t way);
/** The message of a link, or NULL: it is over. */
struct msg *link_msg(const struct trace_follow *fo, const struct msg_link *l);
/** @return where this lane's share of a message is counted */
struct msg_lane *msg_lane(struct msg *m, uint32_t flow, uint64_t time);

/* dump/flight.c */
int flight_make(struct trace_follow *fo);
void flight_free(struct trace_follow *fo);
/** A DATA or PART frame. */
void flight_data(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		 const struct dump_view *view, uint64_t time);
/** What a frame of @p f acknowledges of the other direction. */
void flight_ack(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		const struct dump_view *view, uint64_t time);
/** A message record. */
void flight_record(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		   const struct dump_view *view, uint64_t time);
/** For the time line of @p m: bytes that a native operation over @p flow moves. */
void flight_note(struct trace_follow *fo, const struct msg *m, const struct msg_event *e);
void flight_end(struct trace *t);
/** Makes room for links: the oldest frame goes. */
void flight_retire(struct trace *t);

/* dump/native.c */
/** A record of a native operation. */
void follow_native(struct trace *t, struct trace_flow *f, const struct dump_frame *frame,
		   const struct dump_view *view, uint64_t time);

/* dump/stream.c */
uint32_t stream_of(const struct trace *t, uint32_t flow);
/** They are lanes of one endpoint, the same way. */
void stream_join(struct trace *t, uint32_t a, uint32_t b);
/** May they be, though nothing names their endpoints? */
bool stream_may_join(const struct trace *t, uint32_t a, uint32_t b);
/** The first record of a flow: it says whose it is. */
void stream_record(struct trace *t, struct trace_flow *f, const struct weft_record_head *r);
/** A wire-up message: what workers are called. */
void stream_learn(struct trace *t, const struct dump_msg *msg);
/** A wire-up message of flow @p f. */
void stream_wireup(struct trace *t, struct trace_flow *f, const struct dump_msg *msg);
/** An IPv4 or MAC address. @return buf */
const char *stream_address(uint64_t address, char *buf, size_t size);
/** What the sender, or (@p to) the receiver of a flow is called. @return buf */
const char *stream_end_name(const struct trace *t, const struct trace_flow *f, bool to, char *buf,
			    size_t size);

#endif /* DUMP_MESSAGE_H */
