/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers: opening their interfaces, a round of progress, their address, flush, the end. */

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "base/bytes.h"
#include "base/host.h"
#include "base/log.h"
#include "base/question.h"
#include "base/text.h"
#include "context.h"
#include "core/address.h"
#include "core/lane_list.h"
#include "core/lane_show.h"
#include "core/worker.h"
#include "dispatch.h"
#include "listen.h"
#include "mem/mem.h"
#include "msg/msg.h"
#include "plan/plan.h"
#include "self/self_lane.h"
#include "shm/shm_lane.h"
#include "wait.h"
#include "wireup/wireup.h"

/* ------------------------------------------------------------------ what lanes call */

static void worker_event(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev,
			 int status, const char *text)
{
	if (ev == WEFT_LANE_EV_DOWN && weft_lanes_are_shown())
		weft_shown_failed(lane_ep, text);
	weft_wireup_event(arg, lane_ep, ev, status, text);
}

static const struct weft_ep_events ep_events = {
	.fail = weft_ep_fail_text,
	.fail_later = weft_ep_fail_later,
	.settled = weft_plan_settled,
	.recv = weft_msg_recv,
};

/* ------------------------------------------------------------------ interfaces */

/* Is this the name of the interface: "DRIVER:RESOURCE"? Drivers may shorten a resource's name. */
static bool is_named(const struct weft_lane_iface *iface, const char *resource)
{
	size_t len = strlen(iface->driver->name);

	return strncmp(iface->name, iface->driver->name, len) == 0 && iface->name[len] == ':' &&
	       strcmp(iface->name + len + 1, resource) == 0;
}

/*
 * Is the resource open? Its interface may have been opened by this name, or by another name of the
 * same resource: a port, for example, by the name of its device.
 */
static bool is_open(const struct weft_worker *w, const struct weft_lane_driver *driver,
		    const char *resource)
{
	for (unsigned int i = 0; i < w->num_ifaces; i++)
		if (w->ifaces[i]->driver == driver &&
		    (strcmp(w->resources[i], resource) == 0 || is_named(w->ifaces[i], resource)))
			return true;
	return false;
}

static void left_out(struct weft_worker *w, const struct weft_lane_driver *driver,
		     const char *resource, const char *why, enum weft_log_level level,
		     const char *what)
{
	char name[96];

	snprintf(name, sizeof(name), "%s:%.64s", driver->name, resource);
	why = weft_text_without_name(why, name);
	weft_log(level, "%s %s: %s", name, what, why);
	weft_rails_missing(w, name, why);
}

/*
 * Let captures record the messages of a lane whose driver captures no frames; not the loopback's.
 */
static void open_tap(struct weft_worker *w, struct weft_lane_iface *iface)
{
	const struct weft_lane_tap_ops *ops = weft_drivers_tap();
	char about[192];
	struct weft_lane_tap_open params = {
		.name = iface->name,
		.about = about,
		.speed = (uint64_t)(iface->attr.bandwidth * 8),
		.platform = w->ctx->platform,
		.conf = &w->ctx->conf->lane,
	};

	if (!ops || iface->driver->captures || iface->attr.features & WEFT_LANE_F_LOOPBACK)
		return;
	snprintf(about, sizeof(about),
		 "message records of worker %016" PRIx64 ", messages of up to %zu bytes", w->id,
		 iface->attr.max_bcopy > iface->attr.max_zcopy ? iface->attr.max_bcopy
							       : iface->attr.max_zcopy);
	if (!weft_lane_show_open(iface, ops, &params))
		weft_info("%s: captures will not have its messages: no memory, or too many lanes",
			  iface->name);
}

/* With a job key, no lane sends in clear over a network unless the user allows it. */
static bool would_leak(const struct weft_worker *w, const struct weft_lane_driver *driver)
{
	const struct weft_conf *conf = w->ctx->conf;

	return conf->lane.job_key && !driver->seals && weft_driver_is_network(driver) &&
	       conf->seal_allow == 0;
}

/* Texts that the driver has left out are empty. */
static void fill_texts(struct weft_lane_iface *iface)
{
	if (!iface->note)
		iface->note = "";
	if (!iface->attr.device)
		iface->attr.device = "";
	if (!iface->attr.domain)
		iface->attr.domain = "";
}

static int open_iface(struct weft_worker *w, const struct weft_lane_driver *driver,
		      const char *resource, const char *options,
		      const struct weft_lane_numbers *numbers, enum weft_log_level level)
{
	struct weft_lane_open params = {
		.resource = resource,
		.options = options,
		.worker_id = w->id,
		.iface_id = weft_iface_id(w->id, w->secret, w->num_ifaces),
		.platform = w->ctx->platform,
		.conf = &w->ctx->conf->lane,
		.copy_bw = w->ctx->conf->bcopy_bw > 0 ? w->ctx->conf->bcopy_bw
						      : weft_bcopy_bw(w->ctx->platform),
		.recv = weft_worker_recv,
		.recv_batch = weft_worker_recv_batch,
		.batch_id = WEFT_WIRE_EAGER,
		.recv_in_place = weft_worker_recv_in_place,
		.split = weft_msg_split,
		.event = worker_event,
		.iface_event = weft_iface_event,
		.arg = w,
		.report = weft_worker_report(w),
	};
	struct weft_lane_iface *iface = NULL;
	char why[512] = "", *copy;
	int rc;

	if (w->num_ifaces == WEFT_MAX_IFACES) {
		weft_warn("%s:%s is left out: a worker has at most %d lanes", driver->name,
			  resource, WEFT_MAX_IFACES);
		return -ENOSPC;
	}
	if (would_leak(w, driver)) {
		left_out(w, driver, resource,
			 "its lanes do not seal messages, and a job key is set: "
			 "WEFT_SEAL_ALLOW=roce uses them all the same",
			 level, "is left out");
		return -EPERM;
	}
	copy = strdup(resource);
	rc = copy ? driver->open(&params, &iface, why, sizeof(why)) : -ENOMEM;
	if (rc < 0) {
		free(copy);
		left_out(w, driver, resource, why[0] != '\0' ? why : weft_strerror(rc), level,
			 "cannot be opened");
		return rc;
	}
	fill_texts(iface);
	if (numbers)
		weft_lane_numbers_apply(numbers, &iface->attr);
	iface->user = w;
	w->resources[w->num_ifaces] = copy;
	w->ifaces[w->num_ifaces++] = iface;
	open_tap(w, iface);
	weft_iface_link_init(w, w->num_ifaces - 1);
	weft_mem_iface_opened(w->ctx, iface);
	/*
	 * An error is ignored: without the control channel, peers reach the worker over other
	 * interfaces.
	 */
	if (driver->control && !is_open(w, driver->control, resource))
		open_iface(w, driver->control, resource, options, NULL, WEFT_LOG_WARN);
	return 0;
}

/* "driver:*": open every usable resource whose `inside` has this value. */
static void open_all(struct weft_worker *w, const struct weft_lanes_item *item, bool inside)
{
	struct weft_found *found = weft_context_find(w->ctx, item->driver);
	const struct weft_found_resource *r;
	int i;

	for (i = 0; i < found->num; i++) {
		r = &found->list[i];
		if (r->inside != inside || is_open(w, item->driver, r->name))
			continue;
		if (r->why)
			left_out(w, item->driver, r->name, r->why, WEFT_LOG_WARN, "is left out");
		else
			open_iface(w, item->driver, r->name, item->options, &item->numbers,
				   WEFT_LOG_WARN);
	}
}

static bool has_rail(const struct weft_worker *w)
{
	for (unsigned int i = 0; i < w->num_ifaces; i++)
		if (weft_is_rail(w->ifaces[i]))
			return true;
	return false;
}

/*
 * Open the items with '*', in three steps: usual drivers, fallback drivers if the worker has no
 * interface to other hosts so far, and resources inside the host (found->list[].inside) if the
 * worker has no interface at all.
 */
static void open_wildcards(struct weft_worker *w, const struct weft_lanes_item *items, int n)
{
	bool rail;
	int i;

	for (i = 0; i < n; i++)
		if (items[i].all && !items[i].fallback && items[i].driver != &weft_self_driver)
			open_all(w, &items[i], false);
	rail = has_rail(w);
	for (i = 0; i < n; i++) {
		if (!items[i].fallback || rail)
			continue;
		weft_log_worker(w, WEFT_LOG_INFO, "%s is used: no other lane reaches other hosts",
				items[i].driver->name);
		open_all(w, &items[i], false);
	}
	for (i = 0; i < n; i++)
		if (items[i].all && w->num_ifaces == 0 && items[i].driver != &weft_self_driver)
			open_all(w, &items[i], true);
}

static int open_items(struct weft_worker *w, const char *lanes, struct weft_lanes_item *items,
		      bool *self_named, bool *network)
{
	struct weft_found *found;
	char why[320];
	int i, n, rc;

	n = weft_lanes_parse(lanes, w->ctx->drivers, items, why, sizeof(why));
	if (n < 0) {
		weft_error("WEFT_LANES: %s", why);
		return n;
	}
	/*
	 * Lanes requested by name are opened first: '*' takes the remaining resources, and lane
	 * numbers follow the order of the text.
	 */
	for (i = 0; i < n; i++) {
		*network = *network || weft_driver_is_network(items[i].driver);
		if (items[i].driver == &weft_self_driver) {
			*self_named = *self_named || strstr(lanes, "self") != NULL;
			continue;
		}
		if (items[i].all)
			continue;
		found = weft_context_find(w->ctx, items[i].driver);
		if (found->num < 0) {
			weft_error("%s:%s cannot be opened: its driver did not start: %s",
				   items[i].driver->name, items[i].resource,
				   weft_strerror(found->num));
			return -ENODEV;
		}
		rc = open_iface(w, items[i].driver, items[i].resource, items[i].options,
				&items[i].numbers, WEFT_LOG_ERROR);
		if (rc < 0)
			return rc;
	}
	open_wildcards(w, items, n);
	return 0;
}

static void close_last(struct weft_worker *w)
{
	struct weft_lane_iface *iface = w->ifaces[w->num_ifaces - 1];

	weft_mem_iface_closing(w->ctx, iface);
	w->num_ifaces--;
	weft_lane_show_close(iface);
	iface->ops->close(iface);
	free(w->resources[w->num_ifaces]);
}

/* Log why there is no capture file, so that the user need not search for the reason later. */
static void warn_no_capture(const struct weft_worker *w)
{
	const char *file = w->ctx->conf->lane.capture;
	unsigned int i;

	if (!file)
		return;
	for (i = 0; i < w->num_ifaces; i++)
		if (w->ifaces[i]->driver->captures || weft_lane_is_known(w->ifaces[i]))
			return;
	weft_warn("WEFT_CAPTURE: nothing is written (%s): there is no lane whose frames or "
		  "messages could be captured",
		  file);
}

/* Open the interfaces that WEFT_LANES requests, then the loopback, which every worker has. */
static int open_ifaces(struct weft_worker *w, const char *lanes)
{
	struct weft_lanes_item *items = calloc(WEFT_LANES_MAX_ITEMS, sizeof(*items));
	bool self_named = false, network = false;
	int rc;

	if (!items)
		return -ENOMEM;
	rc = open_items(w, lanes, items, &self_named, &network);
	free(items);
	if (rc < 0)
		return rc;
	if (w->num_ifaces == 0 && !self_named) {
		weft_error(
			"no lane could be opened (WEFT_LANES='%s'): dpdk lanes need a port, for "
			"example by WEFT_EAL_ARGS, roce lanes an RDMA device with an active "
			"Ethernet port ('rdma link' lists them), udp lanes an interface that is up "
			"and has an address ('ip -br addr' lists them); WEFT_LANES=self is for "
			"messages to the own worker only",
			lanes);
		return -ENODEV;
	}
	rc = weft_rails_opened(w, network);
	if (rc < 0)
		return rc;
	warn_no_capture(w);
	if (w->num_ifaces == WEFT_MAX_IFACES) {
		weft_warn("%s is left out: one place is for the loopback",
			  w->ifaces[w->num_ifaces - 1]->name);
		close_last(w);
	}
	return open_iface(w, &weft_self_driver, "self", "", NULL, WEFT_LOG_ERROR);
}

/* ------------------------------------------------------------------ life */

static int make_id(struct weft_worker *w)
{
	const struct weft_platform *platform = w->ctx->platform;
	int rc;

	do {
		rc = platform->random(platform->arg, &w->id, sizeof(w->id));
	} while (rc == 0 && w->id == 0);
	if (rc == 0)
		rc = platform->random(platform->arg, &w->secret, sizeof(w->secret));
	if (rc == 0)
		rc = platform->random(platform->arg, &w->hash_key, sizeof(w->hash_key));
	w->host_id = platform->host_id ? platform->host_id(platform->arg) : 0;
	return rc;
}

static void set_beside(struct weft_worker *w)
{
	unsigned int i, polled = 0;

	for (i = 0; i < w->num_ifaces; i++)
		polled += !(w->ifaces[i]->attr.features & WEFT_LANE_F_LOOPBACK);
	for (i = 0; i < w->num_ifaces; i++)
		w->ifaces[i]->beside = polled > 1;
}

/*
 * Create the state of connections and messages, and open the ifaces. On error weft_worker_destroy()
 * frees the parts that exist.
 */
static int worker_setup(struct weft_worker *w, const char *lanes)
{
	int rc;

	rc = make_id(w);
	if (rc == 0)
		rc = weft_conns_init(w);
	if (rc == 0)
		rc = weft_msg_worker_init(w);
	if (rc == 0)
		rc = open_ifaces(w, lanes);
	if (rc == 0)
		set_beside(w);
	return rc;
}

static void worker_free(struct weft_worker *w)
{
	struct weft_context *ctx = w->ctx;

	weft_wait_close(w); /* before the interfaces close their descriptors */
	pthread_mutex_lock(&ctx->lock);
	while (w->num_ifaces > 0)
		close_last(w);
	LIST_REMOVE(w, entry);
	pthread_mutex_unlock(&ctx->lock);
	weft_msg_worker_fini(w); /* after the interfaces, which use its requests */
	free(w->ep_table);
	weft_texts_free(&w->texts);
	free(w);
}

/* Can a frame wait for tx_flush()? */
static bool collects(const struct weft_worker *w)
{
	for (unsigned int i = 0; i < w->num_ifaces; i++)
		if (w->ifaces[i]->ops->tx_flush)
			return true;
	return false;
}

int weft_worker_create(struct weft_context *ctx, const struct weft_worker_params *params,
		       struct weft_worker **out)
{
	struct weft_worker_params p;
	struct weft_worker *w;
	int rc;

	if (!ctx || !out || weft_struct_in(&p, sizeof(p), params) < 0 ||
	    (p.thread_mode != WEFT_THREAD_SINGLE && p.thread_mode != WEFT_THREAD_MULTI) ||
	    (p.flags & ~WEFT_WORKER_F_SEND_NOW))
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->ctx = ctx;
	w->ep_events = &ep_events;
	w->multi = p.thread_mode == WEFT_THREAD_MULTI || ctx->conf->thread_multi ||
		   ctx->conf->heartbeat_ns != 0;
	w->accept_cb = p.accept_cb;
	w->accept_arg = p.accept_arg;
	w->now = ctx->platform->now(ctx->platform->arg);
	atomic_init(&w->wake_fd, -1);
	LIST_INIT(&w->eps);
	LIST_INIT(&w->listeners);
	pthread_mutex_lock(&ctx->lock);
	LIST_INSERT_HEAD(&ctx->workers, w, entry);
	rc = worker_setup(w, p.lanes ? p.lanes : ctx->conf->lanes);
	pthread_mutex_unlock(&ctx->lock);
	w->send_now = p.flags & WEFT_WORKER_F_SEND_NOW && collects(w);
	if (rc == 0 && ctx->conf->heartbeat_ns != 0)
		rc = weft_heartbeat_add(w);
	if (rc < 0) {
		weft_worker_destroy(w);
		return rc;
	}
	weft_answers_add(w);
	*out = w;
	return 0;
}

/*
 * Close all endpoints. Each connected peer is notified once, and the call does not wait. Requests
 * end and their callbacks run. Lanes deliver no messages from now on.
 */
static void close_endpoints(struct weft_worker *w)
{
	struct weft_ep *ep;
	unsigned int i;

	w->destroying = true;
	w->in_progress = true;
	weft_connects_cancel(w);
	LIST_FOREACH(ep, &w->eps, entry)
		if (ep->peer && (ep->state == WEFT_EP_UP || ep->state == WEFT_EP_CLOSING))
			weft_wireup_send_close(ep, WEFT_WIREUP_CLOSE);
	for (i = 0; i < w->num_ifaces; i++)
		if (w->ifaces[i]->ops->tx_flush)
			w->ifaces[i]->ops->tx_flush(w->ifaces[i]);
	while ((ep = LIST_FIRST(&w->eps)))
		weft_ep_close_now(ep);
	if (w->conns)
		weft_conns_reap(w);
}

void weft_worker_destroy(struct weft_worker *w)
{
	if (!w || !weft_context_is_ours(w->ctx))
		return;
	weft_worker_lock(w);
	if (w->in_progress || weft_dt_calls) {
		weft_log_worker(
			w, WEFT_LOG_ERROR,
			"weft_worker_destroy() called inside a callback of the worker: refused; "
			"call it after the callback has returned");
		weft_worker_unlock(w);
		return;
	}
	weft_heartbeat_remove(w); /* the heartbeat's thread never waits for the worker's lock */
	weft_answers_remove(w);   /* nor does the thread that answers weft-info */
	close_endpoints(w);
	weft_listeners_end(w);
	if (w->conns)
		weft_conns_fini(w);
	weft_msg_worker_stop(w);
	weft_worker_unlock(w);
	worker_free(w);
}

/* ------------------------------------------------------------------ progress */

/*
 * A progress call is late if an awake worker did not poll for this time: its program computed, or
 * had no core. The engine of raw lanes discards round trips measured across such a pause.
 */
#define LATE_NS 200000u

/* Count a progress call @p ns after the one before. @p work: its interfaces had events. */
static __attribute__((noinline)) void count_late(struct weft_worker *w, uint64_t ns, bool work)
{
	w->count.late++;
	w->count.late_ns += ns;
	if (work)
		w->count.late_work_ns += ns;
}

unsigned int weft_worker_progress(struct weft_worker *w)
{
	const struct weft_platform *platform = w->ctx->platform;
	/* The number is constant: no interface opens or closes while progress can be called. */
	const unsigned int num = w->num_ifaces;
	unsigned int i, n = 0;
	bool armed;
	uint64_t now, step;

	weft_worker_lock(w);
	if (__builtin_expect(w->in_progress || weft_dt_calls, 0)) {
		/* Inside a callback: callers on the stack are changing lanes and queues. */
		weft_worker_unlock(w);
		return 0;
	}
	armed = w->armed;
	if (__builtin_expect(armed, 0))
		weft_wait_disarm(w);
	w->in_progress = true;
	now = platform->now(platform->arg);
	step = now - w->now;
	w->now = now;
	for (i = 0; i < num; i++)
		if (!w->ifaces[i]->quiet)
			n += w->ifaces[i]->ops->progress(w->ifaces[i], now);
	if (__builtin_expect(armed && n > 0, 0))
		weft_wait_found(w);
	if (__builtin_expect(step > LATE_NS && !armed && step <= INT64_MAX, 0))
		count_late(w, step, n > 0);
	/* Connections send first, because queued messages use all the room of the lanes. */
	if (__builtin_expect(now >= w->next_timer, 0))
		n += weft_conns_timers(w);
	n += weft_msg_progress(w);
	weft_worker_flush_tx(w);
	if (__builtin_expect(!LIST_EMPTY(&w->conns->dead), 0))
		weft_conns_reap(w);
	if (__builtin_expect(atomic_load_explicit(&w->ctx->mem_garbage, memory_order_relaxed), 0))
		weft_regcache_reap(w->ctx->regcache);
	weft_question_poll(w->question);
	if (__builtin_expect(w->connects != NULL, 0))
		n += weft_connects_progress(w);
	w->in_progress = false;
	w->handled += n;
	if (__builtin_expect(armed, 0))
		weft_wait_after(w, n);
	weft_worker_unlock_armed(w);
	return n;
}

void weft_worker_kick(struct weft_worker *w)
{
	if (!w || weft_dt_calls)
		return;
	weft_worker_lock(w);
	/* A progress call on the stack flushes at its end. */
	if (!w->in_progress)
		weft_worker_flush_tx(w);
	weft_worker_unlock(w);
}

/* ------------------------------------------------------------------ address */

int weft_worker_get_address(struct weft_worker *w, void **address, size_t *length)
{
	struct weft_address *a;
	void *buf = NULL;

	if (!w || !address || !length)
		return -EINVAL;
	a = malloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	weft_worker_lock(w);
	weft_address_of_worker(w, a);
	weft_worker_unlock(w);
	buf = malloc(weft_address_size(a));
	if (buf) {
		*length = weft_address_pack(a, buf);
		*address = buf;
	}
	free(a);
	return buf ? 0 : -ENOMEM;
}

void weft_worker_release_address(struct weft_worker *w, void *address)
{
	(void)w;
	free(address);
}

/* ------------------------------------------------------------------ flush of all endpoints */

struct worker_flush {
	struct weft_request *req;
	unsigned int left; /* endpoints whose flush is outstanding, + 1 while flushes are started */
	int status;
};

/*
 * The first error is kept, except that any other error replaces -ECANCELED. A refusal by a peer is
 * reported only once, while -ECANCELED is no news: the application has closed an endpoint by force.
 */
static void take_status(struct worker_flush *f, int status)
{
	if (status < 0 && (f->status == 0 || f->status == -ECANCELED))
		f->status = status;
}

static void ep_flushed(void *arg, int status)
{
	struct worker_flush *f = arg;
	struct weft_request *req = f->req;

	take_status(f, status);
	if (--f->left > 0)
		return;
	status = f->status;
	free(f);
	weft_msg_request_done(req, status);
}

static int worker_flush(struct weft_worker *w, const struct weft_op_params *params,
			struct weft_request **out)
{
	struct worker_flush *f = calloc(1, sizeof(*f));
	struct weft_request *req;
	struct weft_ep *ep;
	int rc;

	req = f ? weft_msg_request_new(w, "worker flush", params, out != NULL) : NULL;
	if (!req) {
		free(f);
		return -ENOMEM;
	}
	f->req = req;
	f->left = 1;
	LIST_FOREACH(ep, &w->eps, entry) {
		/* The failure was reported before; a close flushes its endpoint. */
		if (ep->state == WEFT_EP_FAILED || ep->state == WEFT_EP_CLOSING)
			continue;
		f->left++;
		rc = weft_msg_ep_flush(ep, ep_flushed, f);
		if (rc == 0)
			continue;
		f->left--;
		take_status(f, rc);
	}
	if (--f->left > 0) {
		if (out)
			*out = req;
		return WEFT_INPROGRESS;
	}
	rc = weft_msg_request_at_once(req, f->status);
	free(f);
	if (rc == WEFT_INPROGRESS && out)
		*out = req;
	return rc;
}

int weft_worker_flush(struct weft_worker *w, const struct weft_op_params *params,
		      struct weft_request **req)
{
	int rc;

	if (req)
		*req = NULL;
	if (!w || weft_op_params_check(params))
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_worker_flush");
	weft_worker_lock(w);
	rc = worker_flush(w, params, req);
	weft_worker_unlock(w);
	return rc;
}
