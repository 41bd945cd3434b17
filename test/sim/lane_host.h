/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lane_host.h
 * A host with bare raw-DPDK ifaces and no protocol layer: for tests of the engine by its contract
 * (lib/lane.h).
 *
 * Messages are {number, pattern}: the receiver checks every byte and counts each number, so that
 * "exactly once" can be asserted.
 */
#ifndef SIM_LANE_HOST_H
#define SIM_LANE_HOST_H

#include "lane.h"
#include "sim.h"
#include "sim_test.h"

#define LANE_AM 5
#define LANE_MAX_NUMBERS 20000
#define LANE_HDR 8

struct lane_host;

/** A connection as the test sees it. */
struct lane_end {
	struct lane_host *host;
	struct weft_lane_ep *lane_ep;
	bool passive, up, down, gone;
	unsigned int ups, downs;
	int status;
	char text[300];
	int flushed;            /* lane_send_all(): outlives it when it gives up */
	uint64_t up_at, end_at; /* simulated time */
	struct lane_end *next;  /* of the host */
};

struct lane_host *lane_host_create(struct sim *sim, struct sim_port *port, const char *config);
/** As above, but gives the error; @p why of at least 300 bytes. */
int lane_host_try(struct sim *sim, struct sim_port *port, const char *config,
		  struct lane_host **host, char *why);
struct weft_lane_iface *lane_iface(struct lane_host *h);
void lane_host_close(struct lane_host *h);
void lane_host_kill(struct lane_host *h);
void lane_host_pause(struct lane_host *h, uint64_t ns);

/** Connect to the iface of @p to (which may be the same host). */
struct lane_end *lane_connect(struct lane_host *h, struct lane_host *to);
/** Connect to these address bytes. */
struct lane_end *lane_connect_addr(struct lane_host *h, const void *addr, size_t len);
/** The first connection that a peer made to this host, or NULL. */
struct lane_end *lane_passive(struct lane_host *h);
unsigned int lane_num_passive(const struct lane_host *h);
void lane_destroy(struct lane_end *e);
/* For sim_run(): @p end is a struct lane_end. */
bool lane_is_up(void *end);
bool lane_has_failed(void *end);

/** Connect and run until both ends are up; fails the test if they don't in 1 s. */
struct lane_end *lane_up(struct lane_host *a, struct lane_host *b);

/**
 * Send message @p number of LANE_HDR + @p size bytes by am_short, am_bcopy or am_zcopy, whatever @p
 * how says.
 * @return what the lane said (>= 0 sent)
 */
enum lane_how { LANE_SHORT, LANE_BCOPY, LANE_ZCOPY };
ssize_t lane_send(struct lane_end *e, enum lane_how how, uint32_t number, size_t size);
/** Largest payload for lane_send() this way. */
size_t lane_max(const struct lane_end *e, enum lane_how how);

/**
 * Send numbers [from, to) of mixed sizes and kinds as room allows, until all are sent and have been
 * acknowledged. @return done in time
 */
bool lane_send_all(struct lane_end *e, uint32_t from, uint32_t to, uint64_t max_ns);
/** 200 messages from @p from on arrive at @p to, exactly once, and the lane has never failed. */
void lane_talk(struct lane_end *e, struct lane_host *to, uint32_t from);

/** Zero-copy completions that are still to come, and the status of the last one. */
unsigned int lane_zcopy_pending(const struct lane_host *h);
int lane_zcopy_status(const struct lane_host *h);
/** Flush; *done becomes 1 + -status when it ends. */
int lane_flush(struct lane_end *e, int *done);

/** How often message @p number has arrived, over all connections. */
unsigned int lane_got(const struct lane_host *h, uint32_t number);
unsigned int lane_received(const struct lane_host *h);
unsigned int lane_wrong(const struct lane_host *h);
/** Every number of [from, to) exactly once, and all right? */
bool lane_exactly_once(const struct lane_host *h, uint32_t from, uint32_t to);
/** Keep the buffers that may be kept instead of releasing them, up to @p n. */
void lane_keep(struct lane_host *h, unsigned int n);
unsigned int lane_kept(const struct lane_host *h);
void lane_release(struct lane_host *h);
/** Counter of the iface whose name ends in @p suffix. */
uint64_t lane_counter(struct lane_host *h, const char *suffix);

/** Two hosts on one net, and a lane between them. */
struct lane_two {
	struct sim *sim;
	struct sim_port *pa, *pb;
	struct lane_host *a, *b;
	struct lane_end *e; /**< of a */
};

/** The lane is up. With an address in @p p the second one has the next. */
struct lane_two lane_two_up(struct sim_case *c, struct sim_port_params p, const char *config);

#endif /* SIM_LANE_HOST_H */
