/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * Interfaces of the RoCE driver over the devices of fake/fake_verbs.h, driven by the lane contract
 * alone, in virtual time.
 */
#ifndef ROCE_WORLD_H
#define ROCE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "roce/roce.h"
#include "fake/fake_verbs.h"

#define RW_IFACES 80
#define RW_STEP_NS 10000

struct rw_iface {
	struct weft_lane_iface *lane;
	bool still;                    /**< its owner does not call progress() */
	unsigned int events;           /**< of lanes, of all kinds */
	struct weft_lane_ep *accepted; /**< the last lane_ep that the driver made itself */
};

/** One end of a lane: what happened to it. */
struct rw_end {
	struct rw_iface *iface;
	struct weft_lane_ep *lane_ep;
	unsigned int ups, downs, gones, suspects;
	bool stops; /**< is stopped when it is about to fail */
	uint8_t state[WEFT_LANE_STATE_MAX];
	int state_len; /**< > 0: it is stopped */
	int status;
	char text[320];
	uint64_t sent, received; /**< messages of rw_send(): they carry their number */
	uint64_t bytes;
	bool wrong;  /**< out of order, doubled or damaged */
	void **kept; /**< with keep_max != 0: buffers that were kept */
	unsigned int num_kept, keep_max;
};

struct rw_comp {
	struct weft_lane_comp base; /* first */
	unsigned int done;
	int status;
};

struct rw_world {
	uint64_t now;
	struct rw_iface ifaces[RW_IFACES];
	unsigned int num_ifaces;
	uint64_t rng;
};

extern struct rw_world rw;
extern const struct weft_platform rw_platform;

/**
 * Two devices, "mlx5_0" 10.0.0.1 and "mlx5_1" 10.0.0.2. cmocka's setup and teardown; at the end
 * nothing may be left.
 */
int rw_setup(void **state);
int rw_teardown(void **state);

/** Open an interface; must succeed. @p rx_bufs 0 = default */
struct rw_iface *rw_open(const struct weft_lane_driver *driver, const char *resource,
			 const char *options, unsigned int rx_bufs);
/** The same, whatever comes of it. */
int rw_try_open(const struct weft_lane_driver *driver, const char *resource, const char *options,
		unsigned int rx_bufs, struct rw_iface **out, char *why, size_t why_len);
void rw_close(struct rw_iface *f);
uint64_t rw_counter(struct rw_iface *f, const char *name);

/** Make a lane between two interfaces, and wait until both ends are up. */
void rw_connect(struct rw_iface *f, struct rw_iface *g, struct rw_end *a, struct rw_end *b);
/** The parts of it. */
void rw_create(struct rw_iface *f, struct rw_end *e);
int rw_connect_to(struct rw_end *e, struct rw_end *peer);
/**
 * Wait for the driver's threads: until the lane_ep is up or has failed; virtual time does not move.
 */
void rw_wait_up(struct rw_end *e);
void rw_destroy(struct rw_end *e);
/** ep_quiesce(), must succeed. */
void rw_stop(struct rw_end *e);

/** Pump the devices and call progress() of all interfaces, for @p ns. */
void rw_run(uint64_t ns);
/** One such round without moving the time. */
void rw_turn(void);
/**
 * Next numbered message with @p length bytes (>= 8): short, or packed into a buffer. @return as the
 * lane
 */
int rw_send(struct rw_end *e, size_t length);
void rw_release_kept(struct rw_end *e);
struct rw_comp rw_comp(void);

#endif /* ROCE_WORLD_H */
