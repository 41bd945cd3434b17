/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roce_host.h
 * What the behaviours of RoCE lanes share: two hosts in one process and one thread, their clock,
 * messages whose bytes can be checked, counters. Each file of behaviours ends with the list that
 * roce_lane.c runs.
 */
#ifndef WEFT_ROCE_HOST_H
#define WEFT_ROCE_HOST_H

#include <stdbool.h>
#include <stdio.h>

#include "drivers/roce/roce.h"

/** In a function that returns whether all is well. */
#define CHECK(cond)                                                                        \
	do {                                                                               \
		if (!(cond)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
			printf("# %s:%d: not so: %s\n", __FILE__, __LINE__, #cond);        \
			return false;                                                      \
		}                                                                          \
	} while (0)

/** Both hosts work until it is so. */
#define WITHIN(seconds, cond)                      \
	do {                                       \
		double end_ = now_s() + (seconds); \
		while (!(cond) && now_s() < end_)  \
			turn();                    \
		CHECK(cond);                       \
	} while (0)

struct behaviour {
	const char *name; /* NULL: the list's end */
	bool (*run)(void);
};

#define BEHAVIOUR(f)  \
	{             \
#f, f \
	}

extern const struct behaviour roce_opening[], roce_messages[], roce_memory[], roce_closing[],
	roce_hostile[], roce_broken[], roce_control[], roce_many[], roce_shared[];

/* ------------------------------------------------------------------ two hosts */

#define MAX_KEPT 4096
#define MAX_SENDERS 64
/** Numbers of messages contain their sender, and count from 0 for each sender. */
#define NUMBER(sender, n) ((uint32_t)(sender) << 24 | (uint32_t)(n))

struct host {
	struct weft_lane_iface *iface;
	struct weft_lane_ep *lane_ep, *passive;
	bool asleep; /* does not poll */
	/* events, and what the last one said */
	unsigned int up, down, gone;
	int status;
	char text[320];
	/* received */
	uint64_t got, bytes, wrong;
	uint32_t next[MAX_SENDERS]; /* in-order number expected */
	bool keep, ordered;
	void *kept[MAX_KEPT];
	unsigned int num_kept;
	size_t last_len;
	uint8_t last[70000];
};

extern struct host a, b;
/** Their devices. */
extern const char *name_a, *name_b;
/** Anew for each behaviour. */
extern struct weft_lane_conf conf;

/** s of the host's monotonic clock. */
double now_s(void);
void turn_host(struct host *h);
void turn(void);
/** Turn the world for so long, whatever happens. */
void turn_for(double seconds);

bool open_host(struct host *h, const struct weft_lane_driver *driver, const char *device,
	       const char *options);
void close_host(struct host *h);
/** A lane between two hosts, up at both ends: their lane_ep. */
bool connect_hosts(struct host *x, struct host *y);
/** Between a and b. */
bool connect_pair(void);
/** Both hosts with the same options, and a lane between them. */
bool open_pair(const char *options);

/** Callbacks of a host: as arguments of open. */
int on_recv(void *arg, struct weft_lane_ep *lane_ep, uint8_t am_id, const void *data, size_t length,
	    void *desc);
void on_event(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev, int status,
	      const char *text);

/* ------------------------------------------------------------------ operations */

struct op {
	struct weft_lane_comp comp; /* first */
	unsigned int done;
	int status;
};

void op_done(struct weft_lane_comp *comp, int status);

struct message {
	uint32_t number;
	size_t length; /* 4 at least: the number */
};

/** Every byte of a message is a function of its number and its place. */
uint8_t byte_of(uint32_t number, size_t at);
void fill(uint8_t *dst, uint32_t number, size_t length);
/** The same as a callback for am_bcopy; @p arg is a struct message. */
ssize_t pack(void *dst, size_t max, void *arg);
/** By short or bcopy; turns the world while there is no room. */
bool send_one(struct host *h, uint32_t number, size_t length);

#define ALL_RIGHTS (WEFT_LANE_ACCESS_LOCAL_WRITE | WEFT_LANE_ACCESS_REMOTE)
bool reg_mem(struct host *end, void *addr, size_t len, unsigned int access,
	     struct weft_mem_lane **reg);

/* ------------------------------------------------------------------ what is counted */

/** One of the interface's own counters. */
uint64_t counter(struct host *h, const char *name);
/** What the kernel counts of a device: "hw_counters" of its port. */
uint64_t kernel_counter(const char *device, const char *name);
/** @return the command's exit status */
__attribute__((format(printf, 1, 2))) int shell(const char *fmt, ...);

#endif /* WEFT_ROCE_HOST_H */
