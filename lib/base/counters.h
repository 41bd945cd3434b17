/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/counters.h
 * Counters are listed once: LIST(X) has X(field, "name that people see") for each. The fields of a
 * struct come out of it, and what tells them.
 */
#ifndef WEFT_COUNTERS_H
#define WEFT_COUNTERS_H

#include <stdint.h>

/** For a list inside a struct. */
#define WEFT_COUNTER_FIELD(field, name) uint64_t field;

#endif /* WEFT_COUNTERS_H */
