/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/trace.h
 * The analysis of several captures together: the directions of lanes (flows), the fate of each
 * frame, and silences of hosts. doc/capture.md, "Analysis", has the model and the bounds.
 *
 *  dump/network.c  addresses, ARP, neighbour discovery, ICMP
 *  dump/clock.c    what the captures are; their clocks relative to each other
 *  dump/trace.c    flows, lanes and streams: which one a frame belongs to
 *  dump/fate.c     each frame at its sender and at its receiver
 *  dump/delay.c    paths that got longer
 *  dump/past.c     faults older than the frames of a flight recorder's file, by its history
 *  dump/host.c     when captures ran, silences, unanswered requests, other protocols
 *  dump/fault.c    names of faults; faults of hosts and of captures
 *  dump/anomaly.c  faults of lanes; which faults explain the observations
 *  dump/plot.c     frames over time, for pictures
 *  dump/options.c  several captures in the order of one clock
 *  dump/report.c   prints the analysis
 *
 * dump/message.h has the messages in the frames.
 */
#ifndef DUMP_TRACE_H
#define DUMP_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "dump/decode.h"
#include "dump/file.h"

/* ---- histograms of times: the error of a quantile is at most 1/16 */

#define HIST_SUB 8u /**< buckets of a power of two */

struct hist {
	uint64_t count, max;
	uint32_t bucket[(64 - 2) * HIST_SUB];
};

void hist_add(struct hist *h, uint64_t ns);
/** @param q  0 .. 1. @return the middle of the quantile's bucket, at most the maximum */
uint64_t hist_quantile(const struct hist *h, double q);

/* ---- hashes */

/*
 * Hashes for tables whose keys come from captures, which may be crafted. Each run draws new random
 * numbers, so the author of a capture cannot choose keys that collide. Two different keys share one
 * of N buckets with a probability of 1/N (pair-multiply-shift, M. Thorup, "High speed hashing for
 * integers and strings"). Output does not depend on hashes: tables are searched for exact keys
 * only.
 */

extern uint64_t dump_seed[5];

static inline uint32_t dump_hash(uint64_t x, uint64_t y)
{
	uint64_t h = dump_seed[4];

	h += (dump_seed[0] + (uint32_t)x) * (dump_seed[1] + (x >> 32));
	h += (dump_seed[2] + (uint32_t)y) * (dump_seed[3] + (y >> 32));
	return (uint32_t)(h >> 32);
}

/**
 * Consecutive sequences get neighbouring buckets, which share cache lines: 1024 have one hash.
 * @param key   the object that has the sequences
 * @param more  a second part of the key
 */
static inline uint32_t dump_hash_near(uint64_t key, uint32_t more, uint32_t seq)
{
	return dump_hash(key, (uint64_t)more << 32 | seq >> 10) + seq;
}

/* ---- flows */

#define TRACE_FLOWS 4096
/** A flow has at most this many samples of frames that came, and of frames that did not. */
#define TRACE_SAMPLES 1024
#define TRACE_PENDING (1u << 18)
#define TRACE_GAPS 4096
#define TRACE_NONE UINT32_MAX
#define TRACE_HOLE_FRAMES 4u /**< a hole has at least this many frames, all lost in a row */

/** A frame that arrived, or did not. */
struct trace_sample {
	uint64_t time; /**< time of sending, common clock */
	int64_t delay; /**< ns; of a lost frame: that of the last arrived frame before it */
	uint32_t len;
	uint32_t load; /**< bytes that its flow had sent just before (TRACE_LOAD_NS) */
};

/** ns for which a message record waits for the record of the message's other end */
#define TRACE_WAIT_NS 1000000000u
/**
 * ns after its sending at which a frame that has not come is judged. If the receiver has no free
 * CPU core, frames wait in its ring for a second.
 */
#define TRACE_LOST_NS 4000000000u
/**
 * TRACE_LOST_NS of lanes over sockets. A host with many more ranks than cores reads one message of
 * a socket each time it has a core, so the last of a few hundred waits for ten seconds and more.
 */
#define TRACE_SOCKET_NS 16000000000u

/** Time constant, ns, of the exponential decay of trace_flow.load. */
#define TRACE_LOAD_NS 500000.0

/** Consecutive frames of a flow, none of which arrived. */
struct trace_run {
	uint64_t from, to; /**< when the first and the last were sent */
	uint64_t count;
};

/** Where frames were seen: an interface of a capture. */
struct trace_port {
	uint8_t file;
	uint16_t iface;
	bool known;
};

/**
 * Histograms of frames that came, and of frames that did not (gone), from the first loss on. The
 * class of a frame is that of the flow's load, or of the last delay, before the frame. Each power
 * of two has four classes.
 */
#define TRACE_RANKS 128u
struct trace_ranks {
	uint32_t came[TRACE_RANKS], gone[TRACE_RANKS];
};

/** Counters of one path of a flow. */
struct trace_path {
	/** again: retransmissions; late: frames that came after a later one */
	uint64_t frames, bytes, again, lost, late;
	int64_t min_delay;  /**< ns; INT64_MAX = not known */
	uint64_t known_in;  /**< when the first frame came that is in its sender's capture, too */
	uint64_t known_out; /**< when the newest frame that came was sent; 0 = not known */
};

/** The number of intervals of a series over time: intervals grow with the capture. */
#define TRACE_SERIES 256u
struct trace_slot {
	uint64_t bytes;
	uint32_t again, lost;
	float rtt_least, rtt_most; /**< us; 0 = none */
	uint32_t in_flight;        /**< the most bytes that were sent and not acknowledged */
};

/** The least delay of a slot of time. The first slot begins with the first captured frame. */
struct trace_floor {
	uint64_t first; /**< when the slot's first frame was sent */
	int64_t least;  /**< ns */
	int64_t proved; /**< a frame took longer than this, ns, as a poll of its receiver shows */
	uint32_t load;  /**< load of the frame with the least delay */
	uint32_t frames;
};

#define TRACE_FLOORS 256u
#define TRACE_FLOOR_NS 250000u /**< interval of slots at first; it doubles as the capture grows */
struct trace_floors {
	uint64_t interval; /**< ns */
	struct trace_floor slot[TRACE_FLOORS];
};

/** ns of a unit of a progress block */
#define PROGRESS_UNIT 16000ull

/** One direction of a lane. */
struct trace_flow {
	uint32_t dst_conn, token;
	uint16_t src_conn;
	bool record;                  /**< the lane has message records, and no frames */
	struct dump_address src, dst; /**< with `record` the workers */
	uint32_t other;               /**< the other direction, or TRACE_NONE */
	struct trace_port out, in;
	struct trace_port at;   /**< where frames without a direction were seen */
	uint8_t dst_mac[6];     /**< destination of the first frame in its sender's capture */
	uint64_t moved_at;      /**< when a frame first had another destination; 0 = never */
	uint64_t first, last;   /**< times of the first and the last frame */
	uint64_t unanswered;    /**< first DATA sent since a frame of `other` came; 0 = none */
	uint64_t frames, bytes; /**< at the sender, or at the receiver without a sender's capture */
	uint64_t judged, lost, twice, late, changed, again;
	/**
	 * The number of frames that have overtaken others. So a late burst counts once: a thread
	 * that moves to another core leaves one behind in the kernel's queue of the first core.
	 */
	uint64_t overtaken;
	uint64_t first_lost, first_twice, first_late, first_changed;
	/** frames not in `lost`, which the full ring of a silent receiver may have dropped */
	uint64_t overflowed;
	uint64_t full,
		first_full; /**< the same where the receiver's capture reports a full buffer */
	/** frames that came, and that a capture lacks: that of the receiver, of the sender */
	uint64_t unseen_in, unseen_out, first_unseen_in, first_unseen_out;
	/** runs of lost frames that are holes (dump/fate.c): their number, frames, and ns */
	uint64_t holes, hole_lost, hole_ns;
	uint64_t owed; /**< when the first DATA came that its receiver has not answered */
	uint32_t owed_frames;
	uint64_t answered; /**< its sender has answered DATA that had come by then */
	uint64_t data_at;  /**< when its sender sent DATA last */
	uint16_t port;     /**< UDP port that its last frame came from; 0 = it has none */
	bool bye;          /**< its sender has closed the connection */
	uint64_t bye_at;   /**< when @p bye was seen first */
	/** when the last frame was sent that came with lost_min bytes or more, after a loss */
	uint64_t large_came_at;
	uint32_t lost_min; /**< bytes of the shortest lost frame */
	/** bytes of the longest frame that came before the first loss, and of one sent behind it */
	uint32_t came_max_before, came_max_since;
	double load; /**< bytes sent until @p load_at; older ones count less (TRACE_LOAD_NS) */
	uint64_t load_at;
	int64_t last_delay, min_delay;
	uint32_t max_order[WEFT_FRAME_PATHS_MAX];
	/** max_order when a frame of the path was last late */
	uint32_t late_behind[WEFT_FRAME_PATHS_MAX];
	bool has_order[WEFT_FRAME_PATHS_MAX];
	struct trace_run run, longest;
	uint64_t runs;
	/** by the bytes that the flow had sent just before; by the delay of the last arrival */
	struct trace_ranks by_load, by_delay;
	struct trace_sample *came, *gone;
	unsigned int num_came, num_gone, stride, skip;
	struct trace_floors *floors;
	/** more than 4096 frames, and only one end has a capture: fates are not judged */
	bool alone;
	uint64_t compared_from; /**< fates of frames before this time are not judged */
	struct trace_path path[WEFT_FRAME_PATHS_MAX];
	struct trace_slot series[TRACE_SERIES];
	/* dump/trace.c */
	uint32_t parent;    /**< an earlier flow of its stream, or itself: stream_of() */
	bool named;         /**< wire-up or a record has named its endpoint */
	uint8_t lane;       /**< number of the lane, if named */
	uint64_t worker[2]; /**< ids of the sender and of the receiver, if named */
	uint32_t conn_sn;
	uint64_t messages, message_bytes; /**< ended messages whose first frame was in this flow */
	/* dump/flight.c */
	bool has_una, acked;
	uint32_t una; /**< the lowest sequence that is not acknowledged */
	uint64_t flight_bytes, most_bytes;
	uint32_t flight_frames, most_frames;
	uint32_t open_frames; /**< frames in flight when the captures end */
	uint64_t flight_at;
	double flight_area; /**< bytes in flight x ns */
	struct hist rtt;
	uint64_t acked_at,
		sacked_at; /**< times of the newest acknowledgement, of the newest SACK */
	uint32_t sack_ack, sack_words;
	uint64_t sack[WEFT_FRAME_SACK_WORDS];
	/** ns in which this flow's sender did not poll, by its progress blocks; blocks with news */
	uint64_t gap_ns, gaps;
	uint16_t gap_total, gap_longest; /**< in units of PROGRESS_UNIT */
	/* dump/follow.c: operations that the sender has posted, by kind */
	uint64_t natives[WEFT_RECORD_KINDS], native_bytes[WEFT_RECORD_KINDS];
	uint32_t rx_frames; /**< capacity of the receiver's ring, from its HELLO; 0 = not seen */
};

/**
 * A silence of a host: its capture has no record although frames were sent to it, or DATA came and
 * a lane sent nothing.
 */
struct trace_gap {
	uint64_t from, to;
	uint32_t frames;
};

/** Entries of an interface: one, and 32 for its sockets, by the last five bits of their ports. */
#define TRACE_POLLS (1u + 32u)

/** The polls of an interface or of a socket, as far as received frames show them: host.c. */
struct trace_poll {
	uint64_t worker; /**< id of the worker that polls; 0 = not known, or a socket */
	/* Of an interface. */
	uint64_t time;   /**< of the newest frame */
	uint64_t polled; /**< the poll that found it was at this time or later */
	uint32_t burst;  /**< frames whose time is `time` */
	/* Of an interface, or of each of its sockets. */
	uint32_t frames; /**< frames whose time is `newest` */
	uint64_t newest; /**< time of the newest frame */
	uint64_t found;  /**< the poll that found the newest frame was at this time or later */
	uint64_t empty;  /**< a poll at this time or later, before the newest frames, left none */
	bool drained;    /**< the poll before that of the newest frames left no frame */
	/* Of an interface. */
	uint64_t silence; /**< begin of the silence of its host that was judged last */
	uint32_t waiting; /**< frames that came, and had waited for the end of this silence */
	/* Of an interface of a flight recorder's file, whose times are those of progress calls. */
	uint64_t owner;        /**< id of the worker, by the newest record; 0 = sockets */
	uint64_t call, before; /**< the newest call with a record, and the one before it */
	uint64_t full;         /**< the first of the newest calls in which whole bursts came */
	uint32_t calls;        /**< frames that came in the newest call */
	bool sockets;          /**< of a lane over sockets */
	/** of any interface, and of each socket: when the newest frame that came was sent */
	uint64_t sent;
};

/** A silence that may be the host's: the frames that come next decide. */
struct trace_wake {
	struct trace_gap gap; /**< to = 0: none */
	uint64_t until;       /**< frames that come later decide nothing */
	uint64_t sent_first, sent_last;
	/** bits: interfaces with a frame that was sent before the second half of the silence */
	uint64_t ifaces;
	uint32_t frames; /**< frames that came until then and were sent before the silence ended */
};

struct trace_host {
	uint64_t first, last; /**< times of the first and of the last record of its capture */
	uint32_t since;       /**< frames sent to it after @p last */
	uint64_t due;         /**< when the first of these could have been there */
	struct trace_wake wake;
	struct trace_gap gap[TRACE_GAPS], longest;
	unsigned int num_gaps;
	uint64_t silences, silent; /**< number, and ns in all */
	bool seen;
};

/** A stretch of time in which a capture has gaps, by the common clock. */
struct trace_missing {
	uint64_t from, to;
	uint16_t iface; /**< UINT16_MAX = any */
};

/** Frames for which the receive buffer of an interface had no room: a record of its capture. */
struct trace_full {
	uint64_t time; /**< common clock; the frames came in the TRACE_FULL_NS before it */
	uint64_t left; /**< frames of the record that no lost frame has taken yet */
	uint16_t iface;
};
#define TRACE_FULL_NS 10000000000u

/**
 * When a capture ran, by the first pass over it (struct survey). If that pass did not read all of
 * the capture, trace.span is NULL, and the capture counts as always running.
 */
struct trace_span {
	uint64_t end;       /**< time of its last record */
	uint64_t ran_until; /**< it ran until then, by its statistics */
	uint64_t begin[DUMP_IFACES];
	struct trace_missing *missing;
	struct trace_full *full; /**< in the order of their times */
	unsigned int num_missing, num_full;
	bool unplaced; /**< the capture lost records at unknown times */
};

/** HELLO, or a request for a MAC address, from one address to another. */
struct trace_question {
	bool hello;
	struct dump_address from, to;
	uint64_t unanswered; /**< requests since the last answer */
	uint64_t since;      /**< time of the first of these */
};
#define TRACE_QUESTIONS 256u

/** An ICMP error that came to a host, with the addresses of the packet that it quotes. */
struct trace_icmp {
	struct dump_icmp error;
	struct dump_address from;
	uint8_t file;
	uint64_t count, first;
};
#define TRACE_ICMP 64u

/** The station that answers requests for an address: ARP, or neighbour discovery. */
struct trace_owner {
	struct dump_address ip;
	uint8_t mac[6], second[6], file;
	uint64_t answered; /**< time of the last answer; 0 = a request followed */
	uint64_t conflicts, first;
};
#define TRACE_OWNERS 256u

/** The VLAN of an interface, and another one in which requests for its address come. */
struct trace_tag {
	uint8_t file, kind; /**< kind: enum dump_address_kind */
	bool has;
	uint16_t iface, own, theirs;
	struct dump_address ip, peer;
	uint64_t count, first;
};
#define TRACE_TAGS 256u

struct trace_pending;
struct trace_follow;
struct plot;
struct stream_name;

/** Values from a HELLO about its sender, for the flow towards that sender. */
struct trace_hello {
	uint32_t conn, token, rx_frames;
};
#define TRACE_HELLOS 1024u

struct trace {
	struct trace_flow *flow;
	unsigned int num_flows;
	uint64_t too_many; /**< frames of flows beyond the limit */
	uint32_t *table;   /**< hash of flows, by connection and token */
	struct trace_pending *pending;
	struct trace_host *host; /**< by file */
	struct trace_poll *poll; /**< by file and interface, TRACE_POLLS each */
	struct trace_span *span; /**< by file; NULL = they ran always */
	const struct survey *survey;
	const struct trace_clock *clock; /**< by file; set with `survey` */
	/** when the frame that was taken last was sent, if it was received; 0 = not known */
	uint64_t sent_at;
	uint64_t absent_at; /**< that frame came after this time; 0 = not known */
	uint64_t fate;   /**< number of that sent frame in the ring of fate.c; UINT64_MAX = none */
	uint64_t number; /**< number of that frame in its file */
	uint8_t file;    /**< file of that frame */
	/** number of the first message in that frame; 0 = none, or not known */
	uint64_t message;
	struct plot *plot; /**< NULL = nothing is drawn */
	unsigned int num_files;
	uint64_t now, begin; /**< time of the newest and of the first frame */
	uint64_t interval;   /**< ns of an interval of the series */
	struct trace_follow *follow;
	struct stream_name *names;
	struct trace_hello hello[TRACE_HELLOS];
	struct trace_question question[TRACE_QUESTIONS];
	unsigned int num_questions;
	struct trace_icmp icmp[TRACE_ICMP];
	struct trace_owner owner[TRACE_OWNERS];
	struct trace_tag tag[TRACE_TAGS];
	unsigned int num_icmp, num_owners, num_tags;
};

/** @return NULL: no memory */
struct trace *trace_make(unsigned int num_files);
void trace_free(struct trace *t);

/** Take a frame, in the order of the common clock; @p time is of that clock. */
void trace_frame(struct trace *t, const struct dump_frame *frame, const struct dump_view *view,
		 uint64_t time);
/** End the trace: there are no more frames. */
void trace_end(struct trace *t);

/** The slot of the flow's series that contains the time. Longer captures widen all slots. */
struct trace_slot *trace_slot(struct trace *t, struct trace_flow *f, uint64_t time);

/** The other direction of the flow's lane, or NULL. */
static inline struct trace_flow *trace_other(const struct trace *t, const struct trace_flow *f)
{
	return f->other == TRACE_NONE ? NULL : &t->flow[f->other];
}

static inline uint32_t trace_index(const struct trace *t, const struct trace_flow *f)
{
	return (uint32_t)(f - t->flow);
}

/** Is @p g from and to the ports of @p f, by both captures? */
static inline bool trace_same_ports(const struct trace_flow *f, const struct trace_flow *g)
{
	return !g->record && g->in.known && g->out.known && g->in.file == f->in.file &&
	       g->out.file == f->out.file && g->in.iface == f->in.iface &&
	       g->out.iface == f->out.iface;
}

/* ---- streams: flows in the same direction that are lanes of one endpoint */

/** The flow that represents the stream of @p flow: the first one of the stream. */
uint32_t stream_of(const struct trace *t, uint32_t flow);

/** Record that the flows are lanes of one endpoint, in the same direction. */
void stream_join(struct trace *t, uint32_t a, uint32_t b);

/** May the flows be lanes of one endpoint? False if wire-up has named the endpoints of both. */
bool stream_may_join(const struct trace *t, uint32_t a, uint32_t b);

/** Take a wire-up message of flow @p f: names of workers, and the endpoint of the flow. */
void stream_wireup(struct trace *t, struct trace_flow *f, const struct dump_msg *msg);

/** The name of the sender, or (@p to) of the receiver of a flow. @return buf */
const char *stream_end_name(const struct trace *t, const struct trace_flow *f, bool to, char *buf,
			    size_t size);

#endif /* DUMP_TRACE_H */
