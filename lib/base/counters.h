/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/counters.h
 * Counters are listed once: LIST(X) has X(field, "public name", "help text.") for each. The list
 * generates the fields of a struct, the code that reports them, and their help
 * (weft_counter_help()). The help text begins with the unit: "Frames dropped: ...". Lists are
 * RAW_COUNTER_LIST (engine/iface.h), WEFT_MSG_COUNTERS (msg/state.h), and others of that kind.
 *
 * A second kind of list has levels, which may fall, and which are evaluated when they are queried:
 * X(expression, "name", "help text.").
 */
#ifndef WEFT_COUNTERS_H
#define WEFT_COUNTERS_H

#include <stdint.h>

/** For a list inside a struct. */
#define WEFT_COUNTER_FIELD(field, name, help) uint64_t field;

/** For lists inside a table of struct weft_lane_counter, and its end. */
#define WEFT_COUNTER_HELP(field, name, help) {name, help, false},
#define WEFT_LEVEL_HELP(value, name, help) {name, help, true},
#define WEFT_COUNTER_HELP_END     \
	{                         \
		NULL, NULL, false \
	}

#endif /* WEFT_COUNTERS_H */
