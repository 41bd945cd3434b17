/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/capture.h
 * Captures of lanes, which WEFT_CAPTURE or a command starts (doc/capture.md).
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
 * lane's configuration, else the one that a command has started. The tap gets a recorder unless
 * WEFT_RECORDER is off. If the tap cannot join the capture, the log contains the reason, and the
 * lane goes on.
 *
 * @param platform  its clock stamps the frames. The host's clock is shown as time of day. The clock
 *   of another platform (a simulator) is shown unchanged, and there the lane itself writes the
 *   file of its configuration's capture
 * @return NULL: no memory
 */
struct weft_tap *weft_tap_open(const struct weft_frame_port *port,
			       const struct weft_platform *platform, uint64_t worker_id,
			       const struct weft_lane_conf *conf);
/** The lane closes. Frames that are still in its ring are written first. NULL is allowed. */
void weft_tap_close(struct weft_tap *tap);

/**
 * Start a capture of all lanes that are in no capture, and of those that open later and whose
 * configuration requests none.
 * @param text  as WEFT_CAPTURE
 * @return 0, or a negative errno with a sentence; -EBUSY: a command's capture, or one to this file,
 *   is running
 */
int weft_capture_start(const char *text, char *why, size_t why_len);
/**
 * From now on all running captures take only frames that match @p expression; "" = all.
 * @return 0, or a negative errno with a sentence; -ENOENT: no capture is running
 */
int weft_capture_refilter(const char *expression, char *why, size_t why_len);

struct weft_capture_state {
	char file[512], filter[512];
	char why[256]; /**< the reason why the capture has ended; "" = it goes on */
	unsigned int interfaces;
	uint64_t frames;  /**< records in the files, or in the rings before the files */
	uint64_t dropped; /**< records lost: the ring was full, or the file could not be written */
};

/**
 * End all captures of the process. First writes the frames in the rings to the files.
 * @param[out] last  the state of the oldest capture before its rings were written
 * @return 0; -ENOENT with a sentence: no capture is running
 */
int weft_capture_stop(struct weft_capture_state *last, char *why, size_t why_len);
/** State of capture @p i, where 0 is the newest. @return false: there is none */
bool weft_capture_query(unsigned int i, struct weft_capture_state *state);

#endif /* WEFT_CAPTURE_H */
