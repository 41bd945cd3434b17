/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file scene.h
 * Stages for system tests: nodes with lanes, endpoints that remember their errors, operations that
 * remember their end.
 */
#ifndef SIM_SCENE_H
#define SIM_SCENE_H

#include "common/pattern.h"
#include "sim_test.h"

#define SCENE_NODES 8
#define SCENE_LANES 4

struct scene_conf {
	unsigned int nodes;              /**< 0 = 2 */
	unsigned int lanes[SCENE_NODES]; /**< of each node; 0 = 1 */
	/** all ports on one switch and in one subnet; else lane i of all is on net i */
	bool one_net;
	struct sim_link up;          /**< all zero: 10 Gbit/s, 5 us */
	struct sim_port_params port; /**< the rest of a port */
	const char *config;
	const uint8_t *job_key;               /**< of all nodes; NULL = plain frames */
	const char *node_config[SCENE_NODES]; /**< instead of config */
	bool lazy;                            /**< make ports, but no nodes */
	/** of each node: struct sim_node_params.wrap */
	int (*wrap)(const struct weft_lane_driver *bare, const struct weft_lane_open *open,
		    struct weft_lane_iface **iface, char *why, size_t why_len);
};

struct scene_ep {
	struct scene *s;
	struct weft_ep *ep;
	unsigned int errors;
	int status;
	char why[300];
	uint64_t error_at;
};

struct scene {
	struct sim *sim;
	struct scene_conf conf;
	struct sim_port *port[SCENE_NODES][SCENE_LANES];
	struct sim_node *node[SCENE_NODES];
	/** the last endpoint that a peer's connect made there, with accept */
	struct scene_ep *accepted[SCENE_NODES];
	bool accept;
	struct scene_ep **eps;
	unsigned int num_eps;
	struct op **ops;
	unsigned int num_ops;
};

/** An operation. Owned by the scene. */
struct op {
	struct scene *s;
	struct weft_request *req;
	bool done;
	unsigned int completions;
	struct weft_completion c;
	uint64_t done_at;
	uint8_t *buf;
	size_t cap;
	bool no_request;
};

/** The scene lives until the case's next one, or its end. */
struct scene *scene_open(struct sim_case *c, const struct scene_conf *conf);
/** Start (again) node @p i on its ports. */
struct sim_node *scene_start(struct scene *s, unsigned int i);
struct weft_worker *scene_worker(const struct scene *s, unsigned int i);
/** An endpoint of node @p from to node @p to; fails the test when weft_ep_create() does. */
struct scene_ep *scene_connect(struct scene *s, unsigned int from, unsigned int to);
/** Run until the endpoint is up or has failed. @return its status */
int scene_wait_up(struct scene_ep *e, uint64_t max_ns);
/** As the two above, with 1 s, and a failed test when it does not come up. */
struct scene_ep *scene_up(struct scene *s, unsigned int from, unsigned int to);
/** For sim_run(): has the endpoint, a struct scene_ep, failed? */
bool scene_ep_has_failed(void *ep);
void scene_run(struct scene *s, uint64_t ns);
/** Number of lanes up, and a lane's description. */
unsigned int scene_lanes_up(struct scene_ep *e);
struct weft_lane_info scene_lane(struct scene_ep *e, unsigned int i);

/** Send @p size bytes of pattern @p id with tag @p tag. */
struct op *op_send(struct scene_ep *e, uint64_t id, size_t size, uint64_t tag);
struct op *op_send_sync(struct scene_ep *e, uint64_t id, size_t size, uint64_t tag);
/** Receive into a buffer of @p cap bytes; mask: all bits. */
struct op *op_recv(struct scene *s, unsigned int node, size_t cap, uint64_t tag);
struct op *op_recv_mask(struct scene *s, unsigned int node, struct weft_ep *source, size_t cap,
			uint64_t tag, uint64_t mask);
struct op *op_msg_recv(struct scene *s, unsigned int node, struct weft_message *msg, size_t cap);
struct op *op_flush(struct scene_ep *e);
/** Close; the endpoint is gone. */
struct op *op_close(struct scene_ep *e, unsigned int flags);
/** Run until it is done; false when it takes longer. */
bool op_wait(struct op *op, uint64_t max_ns);
/** Wait, and fail the test unless it ends with @p status. */
void op_expect(struct op *op, uint64_t max_ns, int status);
/** A receive that ended well with message @p id of @p size bytes. */
void op_holds(struct op *op, uint64_t id, size_t size);
/** A message of 3000 bytes with @p tag as its contents arrives at node @p to. */
void scene_talk(struct scene *s, struct scene_ep *e, unsigned int to, uint64_t tag);
/** scene_talk() with a message of 300,000 bytes: a rendezvous, in pieces over all lanes. */
void scene_talk_long(struct scene *s, struct scene_ep *e, unsigned int to, uint64_t tag);

#endif /* SIM_SCENE_H */
