/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/counters.h
 * Counters are listed once: LIST(X) has X(field, "name that people see", "what it counts.") for
 * each. The fields of a struct come out of it, what tells them, and what explains them
 * (weft_counter_help()). What it counts begins with the unit: "Frames dropped: ...".
 *
 * A second kind of list has levels, which fall, too, and are found when somebody asks:
 * X(expression, "name", "what it is.").
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
