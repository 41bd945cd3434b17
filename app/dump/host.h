/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/host.h
 * Hosts: when their captures ran, when they were silent, which of their requests were not answered,
 * and what frames of other protocols reveal.
 */
#ifndef DUMP_HOST_H
#define DUMP_HOST_H

#include "dump/trace.h"

/** Count a HELLO, or a request for a MAC address, that was sent; an answer resets the count. */
void trace_question(struct trace *t, const struct dump_frame *frame, const struct dump_view *view,
		    uint64_t time);

/** Take a frame of another protocol: what does it reveal about lanes? */
void trace_notice(struct trace *t, const struct dump_frame *frame, const struct dump_view *view,
		  uint64_t time);

/**
 * Take a captured frame of any kind: was the host of its capture, or a lane there, silent before?
 * @param f  the flow of the frame; NULL: it belongs to no flow
 */
void trace_host_record(struct trace *t, const struct dump_frame *frame,
		       const struct dump_view *view, struct trace_flow *f, uint64_t time);

/** Is the file one of a flight recorder? */
bool trace_is_recorder(const struct trace *t, uint8_t file);

/** Take a captured frame: when did its progress call begin, if it is of a flight recorder? */
void trace_called(struct trace *t, const struct dump_frame *frame, uint64_t time);

/**
 * A frame came to an interface.
 * @return the time of a poll that did not find it, so it came later; 0 = none is known
 */
uint64_t trace_polled(struct trace *t, const struct dump_frame *frame, const struct dump_view *view,
		      uint64_t time);

/**
 * Would the capture have a frame that was sent at @p sent and was at the port at @p due? Frames
 * wait in a port or a socket until it is polled, and later polls may be behind the capture's end.
 */
bool trace_was_polled(const struct trace *t, const struct trace_port *port, uint16_t udp_port,
		      uint64_t sent, uint64_t due);

/** A frame that was sent at @p sent came to the socket with this port. */
void trace_socket_read(struct trace *t, const struct trace_port *port, uint16_t udp_port,
		       uint64_t sent);

/** The polls of an interface. */
struct trace_poll *trace_poll_of(const struct trace *t, const struct trace_port *port);

/** Was the host silent at any time from @p from to @p to? */
bool trace_host_silent(const struct trace_host *h, uint64_t from, uint64_t to);

/**
 * The share of the time, 0 to 1, in which the host did not poll, by the progress blocks of its
 * frames: the greatest share of any of its flows.
 */
double trace_host_pauses(const struct trace *t, uint8_t file);

/** The silence of the host at this time, or NULL. */
const struct trace_gap *trace_host_gap(const struct trace_host *h, uint64_t time);

#define TRACE_STOPS 16u          /**< silences that are listed, at most */
#define TRACE_STOP_NS 100000000u /**< ns; a silence of this length or more is a stop */

/**
 * Silences that are stops, in the order of time: the longest one, and those of TRACE_STOP_NS and
 * more, the first TRACE_STOPS of them.
 * @param stop  room for TRACE_STOPS; NULL = they are only counted
 * @return the number of all of them
 */
unsigned int trace_host_stops(const struct trace_host *h, struct trace_gap *stop);

/** The ns from the first to the last record of a host's capture. */
uint64_t trace_host_time(const struct trace_host *h);

struct survey;
struct trace_clock;

/** Take over from the survey when captures ran. @return 0 or -ENOMEM */
int trace_spans(struct trace *t, const struct survey *s, const struct trace_clock *clock);
void trace_spans_free(struct trace *t);

/** Is the time not later than the last record of the file? */
bool trace_runs(const struct trace *t, uint8_t file, uint64_t time);

/** Did the port's capture run then, and report no lost records? */
bool trace_covers(const struct trace *t, const struct trace_port *port, uint64_t from, uint64_t to);

/**
 * Did the port's receive buffer drop a frame that was sent at @p sent and did not come? Its capture
 * counts the frames for which there was no room: each call that returns true takes one.
 */
bool trace_buffer_full(struct trace *t, const struct trace_port *port, uint64_t sent);

#endif /* DUMP_HOST_H */
