/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes without frames, as captures see them. The protocol layer makes message records
 * (lane_tap.h), which go into rings, files and the flight recorder as frames do.
 */

#include <stdlib.h>

#include "capture/capture.h"
#include "capture/control.h"
#include "capture/recorder.h"
#include "lane_tap.h"

struct messages {
	struct weft_lane_tap base; /* first */
	struct weft_tap tap;
};

static struct weft_lane_tap *open_messages(const struct weft_lane_tap_open *params)
{
	struct messages *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->base.ops = &weft_capture_messages;
	weft_tap_open_messages(&m->tap, params);
	return &m->base;
}

static void close_messages(struct weft_lane_tap *base)
{
	struct messages *m = (struct messages *)base;

	weft_tap_leave(&m->tap);
	free(m);
}

static void messages_offer(struct weft_lane_tap *base, enum weft_lane_tap_way way,
			   const struct iovec *iov, unsigned int num, uint64_t now)
{
	struct weft_tap *tap = &((struct messages *)base)->tap;

	if (tap->recorder)
		weft_recorder_put_bytes(tap->recorder, iov, num, (enum weft_pcapng_direction)way,
					now);
	/* Relaxed: a hint; weft_tap_copy_bytes() checks again. */
	if (atomic_load_explicit(&tap->target, memory_order_relaxed))
		weft_tap_copy_bytes(tap, iov, num, (enum weft_pcapng_direction)way);
}

static void messages_taken(struct weft_lane_tap *base, bool yes)
{
	weft_tap_taken(&((struct messages *)base)->tap, yes);
}

static void messages_failed(struct weft_lane_tap *base, const char *reason)
{
	weft_tap_error(&((struct messages *)base)->tap, reason);
}

const struct weft_lane_tap_ops weft_capture_messages = {
	.open = open_messages,
	.close = close_messages,
	.offer = messages_offer,
	.taken = messages_taken,
	.failed = messages_failed,
	.command = weft_capture_command,
	.record = weft_recorder_file_write,
};
