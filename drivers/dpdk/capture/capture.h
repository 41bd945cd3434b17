/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/capture.h
 * Captures of raw lanes: WEFT_CAPTURE, and those that a command starts and stops (doc/capture.md).
 *
 *	capture/capture.c          captures and their lanes; telemetry's commands; records of lanes
 *	                           without frames
 *	capture/tap.c              the lane's side: copies of frames into a ring; headers of IPv6
 *	                           lanes over sockets
 *	capture/writer.c           the thread that writes a file from the rings; counters
 *	                           of RoCE devices
 *	capture/pcapng.c           the format
 *	capture/capture_file.c     FILE[,filter=EXPR]...; files and their names; comments of frames;
 *	                           threads
 *	capture/history.c          the last minute of a lane, for the flight recorder's files
 *	capture/recorder.c         the flight recorder, its files and their folder
 *
 * DPDK's telemetry has the commands /weft/capture and /weft/recorder (weft(7)). The socket of a
 * process without raw lanes has them, too (lib/answer.h).
 */
#ifndef WEFT_CAPTURE_H
#define WEFT_CAPTURE_H

#include <stddef.h>

#include "base/platform.h"
#include "capture/tap.h"
#include "frame/frame_port.h"
#include "lane.h"
#include "lane_tap.h"

/**
 * A lane opens: create the tap to which it shows its frames. The tap joins the capture of the
 * lane's configuration, else the one that a command has started, and gets a recorder. If the tap
 * cannot join the capture, the log contains the reason, and the lane goes on.
 *
 * @param platform  its clock stamps the frames. The host's clock is shown as time of day. The clock
 *   of another platform (a simulator) is shown unchanged, and there the lane itself writes the
 *   files
 * @return NULL: no memory
 */
struct weft_tap *weft_tap_open(const struct weft_frame_port *port,
			       const struct weft_platform *platform, uint64_t worker_id,
			       const struct weft_lane_conf *conf);
/** The lane closes. First writes the frames that it has shown to the capture. NULL is allowed. */
void weft_tap_close(struct weft_tap *tap);

/**
 * Start a capture of all lanes that are in no capture, and of those that open later and whose
 * configuration requests none.
 * @param text  as WEFT_CAPTURE
 * @return 0; -EBUSY: a command has started a capture already, or one to this file is running; or
 * another negative errno. All with a sentence
 */
int weft_capture_start(const char *text, char *why, size_t why_len);
/**
 * From now on all captures take the frames that match @p expression.
 * @return 0, or a negative errno with a sentence; -ENOENT: no capture is running
 */
int weft_capture_refilter(const char *expression, char *why, size_t why_len);

struct weft_capture_state {
	char file[512], filter[512];
	char why[256]; /**< the reason why it has ended; "" = it goes on */
	unsigned int interfaces;
	uint64_t frames;  /**< records that have been written, or wait to be */
	uint64_t dropped; /**< records lost: no room in the ring, or in the file */
};

/**
 * End all captures of the process; the frames shown until now are in the files then.
 * @param[out] last  the final state of the last one
 * @return 0; -ENOENT with a sentence: no capture is running
 */
int weft_capture_stop(struct weft_capture_state *last, char *why, size_t why_len);
/** State of the capture number @p i. @return false: there is none */
bool weft_capture_query(unsigned int i, struct weft_capture_state *state);

#endif /* WEFT_CAPTURE_H */
