/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/module.h
 * Modules are the users of the message layer: tags, active messages, remote memory, rendezvous. The
 * message layer knows none of them by name. Each module is a table of hooks, and a second table
 * contains the handler of each message id (lib/dispatch.c has both). A new operation needs a
 * folder, a line in the table of modules, and a line for each of its message ids.
 *
 * A module's state of an endpoint is behind a pointer in struct weft_msg_ep: a field for the
 * library's modules, weft_module_own() for others. Its state of a request is in the request
 * (weft_request.recv.own, weft_request.send.own).
 */
#ifndef WEFT_MODULE_H
#define WEFT_MODULE_H

#include "lane.h"
#include "msg/request.h"

struct weft_msg_ep;
struct weft_msg_worker;

/** Number of message ids: struct weft_tables has a handler for each. */
#define WEFT_HANDLERS 32

/** The receiver of a message. */
struct weft_handler {
	uint8_t header; /**< bytes before the payload */
	/**
	 * Validation, as far as no state is needed: @return 0: id, length and all fields are
	 * correct. Otherwise the message is dropped, and its endpoint fails with -EPROTO.
	 */
	int (*check)(uint8_t id, const void *data, size_t length);
	/** A valid message has come on @p me. @param payload  bytes behind the header */
	void (*recv)(struct weft_msg_ep *me, const void *data, size_t payload);
	/**
	 * As recv(), but another process can change the payload during the call. Each byte of it is
	 * read once, and only to be copied to its destination. check() reads no byte behind the
	 * header.
	 * weft_dt_in_place is true. NULL = there is only recv().
	 */
	void (*recv_in_place)(struct weft_msg_ep *me, const void *header, const void *payload,
			      size_t length);
};

/** Modules that a worker can have: weft_flush keeps a number for each. */
#define WEFT_MODULES_MAX 8

/** Hooks; NULL = nothing to do. They are called in the order of the table. */
struct weft_module {
	const char *name;

	/** @return 0, or an error: the worker is not created */
	int (*worker_init)(struct weft_msg_worker *mw);
	/** All receives end; messages that wait for one are dropped. Callbacks run. */
	void (*worker_stop)(struct weft_msg_worker *mw);
	/** After the lanes have closed: free memory. Called even if worker_init() was not. */
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
	/** help texts of counters(), as a driver's */
	const struct weft_lane_counter *counter_help;

	/** @return 0 or -ENOMEM */
	int (*ep_init)(struct weft_msg_ep *me);
	/**
	 * The endpoint is unused: free memory. Called once per endpoint, even if ep_init() was not.
	 */
	void (*ep_fini)(struct weft_msg_ep *me);
	/** The endpoint's lanes are up, or have changed. */
	void (*ep_lanes)(struct weft_msg_ep *me);
	/** The endpoint's protocols have been chosen, or have changed. */
	void (*ep_reset)(struct weft_msg_ep *me);
	/**
	 * Serve queues. data() alternates with the queue of messages, so that neither starves on a
	 * busy lane; serve() is called after both. @return events
	 */
	unsigned int (*data)(struct weft_msg_ep *me);
	unsigned int (*serve)(struct weft_msg_ep *me);
	/** Is there something that data() or serve() could send? */
	bool (*has_work)(const struct weft_msg_ep *me);
	/**
	 * The endpoint has failed: remove its entries from all queues. No callback of the user
	 * runs.
	 */
	void (*fail)(struct weft_msg_ep *me);
	/** Sends have ended, except those that a lane still holds: end receives. Callbacks run. */
	void (*ended)(struct weft_msg_ep *me, int status);
	/** The connection half is freed: me->ep is NULL afterwards. */
	void (*detach)(struct weft_msg_ep *me);
	/** The user has closed the endpoint. */
	void (*closing)(struct weft_msg_ep *me);
	/**
	 * Flush: is everything at the peer? @param mark  0 at first, and preserved between calls.
	 * @return false: a query is sent, and weft_flush_check() is called later
	 */
	bool (*flushed)(struct weft_msg_ep *me, uint64_t *mark);
	/** The error that a flush reports, once: of operations before @p op_sn. */
	int (*take_status)(struct weft_msg_ep *me, uint64_t op_sn);
};

/**
 * The statement behind it runs for each module of @p mw that has the hook; it calls m->hook(...).
 */
#define WEFT_EACH_MODULE(m, mw, hook)                                                              \
	for (const struct weft_module *m, *const *m##_at = (mw)->modules; (m = *m##_at); m##_at++) \
		if (m->hook)

#endif /* WEFT_MODULE_H */
