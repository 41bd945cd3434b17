/* SPDX-License-Identifier: BSD-3-Clause */
/** An open shm iface with callbacks that write down what comes, for tests below the worker. */
#ifndef TEST_SHM_END_H
#define TEST_SHM_END_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <cmocka.h>

#include "shm/shm.h"
#include "shm/shm_lane.h"

#define END_AM 5

struct end {
	struct weft_lane_iface *iface;
	struct weft_lane_ep *lane_ep; /* the newest that came up */
	unsigned int ups, downs, gones, received, wrong;
	uint64_t next;   /* number that the next message should have */
	bool keep;       /* messages that may be kept are */
	bool destroy_in; /* the lane_ep is destroyed inside the callback */
	void *kept[SHM_BUFS];
	unsigned int num_kept;
	int status;
	char text[512];
};

void end_open(struct end *e, uint64_t iface_id);
void end_close(struct end *e);
/** Let all progress until @p *count is @p want; fails when it stood still for @p seconds. */
void end_run(struct end *a, struct end *b, const unsigned int *count, unsigned int want,
	     double seconds);
void end_connect(struct end *a, struct end *b);

/**
 * A message of @p length bytes with number @p n, whose content the receiver checks, when there is
 * room.
 */
int end_send(struct weft_lane_ep *lane_ep, uint64_t n, size_t length);
uint64_t end_counter(struct end *e, const char *name);
double end_seconds(void);
/**
 * fork() once all other threads of this process sleep: a sanitizer's lock that a running thread
 * holds stays locked in the child. The child is killed when the test process ends.
 */
pid_t end_fork(void);

#endif /* TEST_SHM_END_H */
