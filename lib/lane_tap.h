/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lane_tap.h
 * Message records for captures: the messages and native operations of lanes that have no frames of
 * their own (shared memory, RoCE). The protocol layer makes the records where it calls a lane
 * (core/lane_show.h) and passes them to the capture writer. The format is that of capture files
 * (core/wire.def; doc/wire.md, "Message records").
 */
#ifndef WEFT_LANE_TAP_H
#define WEFT_LANE_TAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/bytes.h"
#include "base/platform.h"
#include "core/wire_tap_def.h"

/** Link type of interfaces whose packets are message records: LINKTYPE_USER15. */
#define WEFT_RECORD_LINKTYPE 162u
#define WEFT_RECORD_NO_LANE 0xff

struct weft_lane_conf;
struct weft_lane_tap;

/** Arguments of open(): an interface whose messages captures may record. */
struct weft_lane_tap_open {
	const char *name, *about;
	uint64_t speed; /**< bit/s; 0 = not known */
	const struct weft_platform *platform;
	const struct weft_lane_conf *conf;
	/** Start or stop making records. Any thread, one at a time, calls it. */
	void (*want)(void *arg, bool yes);
	void *arg;
};

enum weft_lane_tap_way { WEFT_LANE_TAP_IN = 1, WEFT_LANE_TAP_OUT = 2 };

/** Takes a part of an answer: @p text; if NULL, @p number. @p name is NULL for a refusal. */
typedef void (*weft_lane_tap_answer_cb)(const char *name, const char *text, uint64_t number,
					void *arg);

struct weft_lane_tap_ops {
	/** @return NULL: no memory; the lane is not captured */
	struct weft_lane_tap *(*open)(const struct weft_lane_tap_open *params);
	void (*close)(struct weft_lane_tap *tap);
	/**
	 * Take a record, in pieces. taken() follows: @p yes means that the record is valid. A lane
	 * may refuse a message, whose record is offered before the send. The worker's thread calls
	 * both.
	 * @param now  the worker's time, ns
	 */
	void (*offer)(struct weft_lane_tap *tap, enum weft_lane_tap_way way,
		      const struct iovec *iov, unsigned int num, uint64_t now);
	void (*taken)(struct weft_lane_tap *tap, bool yes);
	/** Record that a connection of the interface has failed, and why. */
	void (*failed)(struct weft_lane_tap *tap, const char *reason);
	/** Execute a capture command of weft-info; "" reports the state. Any thread may call it. */
	void (*command)(const char *words, weft_lane_tap_answer_cb cb, void *arg);
	/** weft_recorder_write(). Any thread may call it. */
	int (*record)(const char *reason, char *text, size_t text_len);
	/** As record(), and remove old files. Not in a handler of a signal. */
	int (*record_command)(const char *reason, char *text, size_t text_len);
};

/** The capture writer (drivers/dpdk/capture/capture.c). In lib/, only context.c uses it. */
extern const struct weft_lane_tap_ops weft_capture_messages;

/** Base of a tap, by which the capture writer records the messages of one interface. */
struct weft_lane_tap {
	const struct weft_lane_tap_ops *ops;
};

#endif /* WEFT_LANE_TAP_H */
