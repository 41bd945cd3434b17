/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters that RoCE devices keep. A device sends, acknowledges and repeats packets without the
 * library, which therefore has no counters of losses on RoCE lanes.
 */

#ifndef COMMON_ROCE_COUNTERS_H
#define COMMON_ROCE_COUNTERS_H

#define ROCE_COUNTERS 256u

struct roce_counter {
	char device[32], port[8], name[40];
	const char *text; /* what it counts; static */
	unsigned long long value;
};

struct roce_counters {
	unsigned int num;
	struct roce_counter of[ROCE_COUNTERS];
};

/* What a counter counts, or NULL: it is no counter of faults or of congestion. Static. */
const char *roce_counter_text(const char *name);

/* Read the known counters, at most ROCE_COUNTERS, in the order of device, port and name. */
void roce_counters_read(struct roce_counters *c);

/* Sort by name, then by device and port. */
void roce_counters_sort(struct roce_counters *c);

/* Print how far counters have grown. In the order of roce_counters_read() a port has one line. */
void roce_counters_print(const struct roce_counters *before, const struct roce_counters *after);

#endif /* COMMON_ROCE_COUNTERS_H */
