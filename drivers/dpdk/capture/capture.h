/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/capture.h
 * WEFT_CAPTURE: every frame of every raw lane, both directions, into one pcapng file per process.
 *
 * A captured port is a frame port that stands in front of the real one, so a port that is not
 * captured has nothing of this on its way. Ports of several workers share a file; each is an
 * interface in it.
 *
 *	capture/capture.c  the port in front, and the file that ports share
 *	capture/pcapng.c   the format
 *
 * Frames stand in the file as the port got or gave them: what a NIC fills in (checksums) is not
 * there yet, and frames that the port did not accept are not in it. Times are those of the burst.
 */
#ifndef WEFT_CAPTURE_H
#define WEFT_CAPTURE_H

#include <stddef.h>

#include "frame/frame_port.h"
#include "base/platform.h"

/**
 * Put a capture in front of @p port.
 *
 * @param file      name of the file; %p in it becomes the process id. It is made anew by the first
 *   port of a process
 * @param platform  whose clock stamps; the host's is shown as time of day, another (a simulator's)
 *   as it is
 * @param worker_id shown in the interface's description
 * @param[out] out  to be used, and closed, instead of @p port
 * @return 0, or a negative errno with a sentence; @p port is then as before
 */
int weft_capture_port(const char *file, const struct weft_platform *platform, uint64_t worker_id,
		      struct weft_frame_port *port, struct weft_frame_port **out, char *why,
		      size_t why_len);

#endif /* WEFT_CAPTURE_H */
