/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/capture.h
 * Captures of raw lanes: WEFT_CAPTURE, and those that a command starts and stops (doc/capture.md).
 *
 *	tap, filter, ring    the lane's side: which frames, and copies of them into a ring
 *	capture, writer      captures and their lanes; the thread that writes a file from the rings
 *	pcapng, file,        the format; files and their names; comments; threads
 *	describe, thread
 *	messages             records of lanes without frames
 *	options              FILE[,filter=EXPR]...
 *	control              telemetry's commands
 *	recorder,            the flight recorder, its files and their folder
 *	recorder_file,
 *	recorder_folder
 */
#ifndef WEFT_CAPTURE_H
#define WEFT_CAPTURE_H

#include <stddef.h>

#include "capture/tap.h"
#include "frame/frame_port.h"
#include "base/platform.h"
#include "lane.h"
#include "lane_tap.h"

/**
 * A lane opens: what it shows its frames to. It joins the capture of its configuration, else the
 * one that a command has started, and gets a recorder. Where one of them can't be had the log says
 * why, and the lane does without.
 *
 * @param platform  whose clock stamps; the host's is shown as time of day, another (a simulator's)
 *   as it is, and there the lane itself writes the files
 * @return NULL: no memory
 */
struct weft_tap *weft_tap_open(const struct weft_frame_port *port,
			       const struct weft_platform *platform, uint64_t worker_id,
			       const struct weft_lane_conf *conf);
/** The lane closes; the writer goes on with what it has shown. NULL is allowed. */
void weft_tap_close(struct weft_tap *tap);

/** A lane without frames: it shows message records. @param tap  zeros */
void weft_tap_open_messages(struct weft_tap *tap, const struct weft_lane_tap_open *params);
/** As weft_tap_close(), but for the memory. */
void weft_tap_leave(struct weft_tap *tap);

/**
 * Start a capture of all lanes that are in none, and of those that open later.
 * @param text  as WEFT_CAPTURE
 * @return 0, or a negative errno with a sentence
 */
int weft_capture_start(const char *text, char *why, size_t why_len);
/** From now on all captures take what @p expression does. */
int weft_capture_refilter(const char *expression, char *why, size_t why_len);

struct weft_capture_state {
	char file[512], filter[512];
	char why[256]; /**< it has ended because of this; "" = it goes on */
	unsigned int interfaces;
	uint64_t frames;  /**< records that have been written, or wait to be */
	uint64_t dropped; /**< no room in the ring, or in the file */
};

/**
 * End all captures of the process; what was shown until now is in the files then.
 * @param[out] last  what the last one came to
 */
int weft_capture_stop(struct weft_capture_state *last, char *why, size_t why_len);
/** State of the capture number @p i. @return false: there is none */
bool weft_capture_query(unsigned int i, struct weft_capture_state *state);

#endif /* WEFT_CAPTURE_H */
