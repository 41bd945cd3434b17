/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/module.h
 * What stands above the message layer and uses it: tags, active messages, remote memory,
 * rendezvous. The message layer knows none of them by name: each is a table of hooks, and a table
 * says which handler a message id has (lib/tables.c lists both). A new operation is a folder, a
 * line among the modules, and a line for each of its message ids.
 *
 * What a module keeps of an endpoint hangs behind a pointer in struct weft_msg_ep (a field for the
 * library's own, weft_module_own() for others); what a request keeps for it is in the request
 * (weft_request.recv.own, weft_request.send.own).
 */
#ifndef WEFT_MODULE_H
#define WEFT_MODULE_H

#include "lane.h"
#include "msg/request.h"

struct weft_msg_ep;
struct weft_msg_worker;

/** Ids of messages; struct weft_tables has so many handlers. */
#define WEFT_HANDLERS 32

/** Who gets a message. */
struct weft_handler {
	uint8_t header; /**< bytes before the payload */
	/** The gate: @return 0 when id, length and all fields that need no state are right */
	int (*check)(uint8_t id, const void *data, size_t length);
	/** It has come on @p me and is valid. @param payload  bytes behind the header */
	void (*recv)(struct weft_msg_ep *me, const void *data, size_t payload);
};

/** Modules that a worker can have: weft_flush keeps a number for each. */
#define WEFT_MODULES_MAX 8

/** Hooks; NULL = nothing to do. They are called in the order of the modules. */
struct weft_module {
	const char *name;

	/** @return 0, or an error: there will be no worker */
	int (*worker_init)(struct weft_msg_worker *mw);
	/** Receives end, what waits for one is dropped. Callbacks run. */
	void (*worker_stop)(struct weft_msg_worker *mw);
	/** After the lanes have closed. */
	void (*worker_fini)(struct weft_msg_worker *mw);
	/**
	 * Once per progress while mw->work is not 0, before and after the endpoints' queues are
	 * served. @return events
	 */
	unsigned int (*before_queues)(struct weft_msg_worker *mw);
	unsigned int (*after_queues)(struct weft_msg_worker *mw);
	/** As weft_msg_busy(). */
	bool (*busy)(const struct weft_msg_worker *mw, bool *soon);
	void (*counters)(const struct weft_msg_worker *mw, weft_lane_counter_cb cb, void *arg);
	const struct weft_lane_counter *counter_help; /**< of those; as a driver's */

	/** @return 0 or -ENOMEM */
	int (*ep_init)(struct weft_msg_ep *me);
	/** Nobody uses it any more: memory. Called once for each endpoint, init or not. */
	void (*ep_fini)(struct weft_msg_ep *me);
	/** Its lanes are up, or others than before. */
	void (*ep_lanes)(struct weft_msg_ep *me);
	/** Its protocols are others now. */
	void (*ep_reset)(struct weft_msg_ep *me);
	/**
	 * Serve what waits: data() takes turns with the messages in line, so that neither starves
	 * on a busy lane; serve() comes behind both. @return events
	 */
	unsigned int (*data)(struct weft_msg_ep *me);
	unsigned int (*serve)(struct weft_msg_ep *me);
	/** Would these find something to try? */
	bool (*has_work)(const struct weft_msg_ep *me);
	/** The endpoint has failed: out of all queues. No callback of the user runs. */
	void (*fail)(struct weft_msg_ep *me);
	/** All sends have ended: now what was to come. Callbacks run. */
	void (*ended)(struct weft_msg_ep *me, int status);
	/** The connection half lets go: me->ep is NULL afterwards. */
	void (*detach)(struct weft_msg_ep *me);
	/** Its owner has closed it. */
	void (*closing)(struct weft_msg_ep *me);
	/**
	 * Flush: is everything at the peer? @param mark  0 at first, and kept between calls.
	 * @return false: requested, weft_flush_check() follows
	 */
	bool (*flushed)(struct weft_msg_ep *me, uint64_t *mark);
	/** The error that a flush shall tell, once: of operations before @p op_sn. */
	int (*take_status)(struct weft_msg_ep *me, uint64_t op_sn);
};

/** For each module of @p mw that has the hook: m->hook(...) is what follows. */
#define WEFT_EACH_MODULE(m, mw, hook)                                                              \
	for (const struct weft_module *m, *const *m##_at = (mw)->modules; (m = *m##_at); m##_at++) \
		if (m->hook)

#endif /* WEFT_MODULE_H */
