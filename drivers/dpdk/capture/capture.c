/* SPDX-License-Identifier: BSD-3-Clause */
/* The captures of a process, the lanes that they include, and the commands for them. */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/log.h"
#include "capture/capture.h"
#include "capture/capture_file.h"
#include "capture/recorder.h"
#include "capture/tap.h"
#include "capture/writer.h"
#include "compat.h"
#include "lane_tap.h"

/* ---- telemetry's commands ------------------------------------------------------------------- */

static void add_state(const struct weft_capture_state *s, weft_lane_tap_answer_cb cb, void *arg)
{
	/* DPDK truncates strings of dictionaries at 127 bytes. */
	cb("file", s->file, 0, arg);
	cb("filter", s->filter, 0, arg);
	cb("interfaces", NULL, s->interfaces, arg);
	cb("frames", NULL, s->frames, arg);
	cb("dropped", NULL, s->dropped, arg);
	if (s->why[0])
		cb("ended", s->why, 0, arg);
}

/*
 * The state of the newest capture, and the number of captures. There are several if the
 * configurations of lanes name several files, or if a command has started another one.
 */
static void report_state(weft_lane_tap_answer_cb cb, void *arg)
{
	struct weft_capture_state s;
	unsigned int n = 0;

	if (weft_capture_query(0, &s))
		add_state(&s, cb, arg);
	while (weft_capture_query(n, &s))
		n++;
	cb("captures", NULL, n, arg);
}

/* @return @p params begins with @p command; @p rest is what follows the comma */
static bool is_command(const char *params, const char *command, const char **rest)
{
	size_t len = strlen(command);

	if (strncmp(params, command, len) || (params[len] && params[len] != ','))
		return false;
	*rest = params + len + (params[len] == ',');
	return true;
}

/* weft_lane_tap_ops.command. */
static void capture_command(const char *words, weft_lane_tap_answer_cb cb, void *arg)
{
	struct weft_capture_state last;
	const char *rest;
	char why[512] = "a capture takes start,FILE[,OPTION=VALUE...], filter,EXPR or stop";
	int rc = -1;

	if (is_command(words, "stop", &rest)) {
		rc = weft_capture_stop(&last, why, sizeof(why));
		if (rc == 0) {
			add_state(&last, cb, arg);
			cb("captures", NULL, 0, arg);
			return;
		}
	} else if (is_command(words, "start", &rest)) {
		rc = weft_capture_start(rest, why, sizeof(why));
	} else if (is_command(words, "filter", &rest)) {
		rc = weft_capture_refilter(rest, why, sizeof(why));
	} else if (!words[0]) {
		rc = 0;
	}
	if (rc == 0)
		report_state(cb, arg);
	else
		cb(NULL, why, 0, arg);
}

/* ---- DPDK's telemetry ----------------------------------------------------------------------- */

struct answer {
	struct rte_tel_data *d;
	bool begun;
};

static void on_part(const char *name, const char *text, uint64_t number, void *arg)
{
	struct answer *a = arg;

	if (!name) {
		rte_tel_data_string(a->d, text);
		return;
	}
	if (!a->begun)
		rte_tel_data_start_dict(a->d);
	a->begun = true;
	if (text)
		rte_tel_data_add_dict_string(a->d, name, text);
	else
		rte_tel_data_add_dict_uint(a->d, name, number);
}

static int on_capture(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct answer a = {.d = d};

	(void)cmd;
	capture_command(params ? params : "", on_part, &a);
	return 0;
}

static int on_recorder(const char *cmd, const char *params, struct rte_tel_data *d)
{
	char name[512];

	(void)cmd;
	(void)params;
	if (weft_recorder_file_command("requested by telemetry", name, sizeof(name)))
		return rte_tel_data_string(d, name);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "file", name);
	return 0;
}

static void register_once(void)
{
	/* DPDK refuses help of 128 bytes and more. */
	rte_telemetry_register_cmd("/weft/capture", on_capture,
				   "Captures of raw lanes. Parameters: none, "
				   "start,FILE[,OPTIONS], filter,EXPR, or stop; see weft(7)");
	rte_telemetry_register_cmd("/weft/recorder", on_recorder,
				   "Write the flight recorder's frames to a file. Takes no "
				   "parameters");
}

static void register_commands(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_once);
}

/* Protects both lists. It is taken before a capture's lock; lanes take it to open and to close. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, weft_tap) taps = LIST_HEAD_INITIALIZER(taps);
static LIST_HEAD(, weft_capture) captures = LIST_HEAD_INITIALIZER(captures);

/* ---- lanes and captures; with the lock ------------------------------------------------------ */

/* Wait until the lane's thread has left a target or filter that it can no longer enter. */
static void wait_until_idle(struct weft_tap *tap)
{
	while (atomic_load_explicit(&tap->busy, memory_order_seq_cst))
		sched_yield();
}

/* A worker makes message records only while a recorder or a capture takes them. */
static void notify_wanted(struct weft_tap *tap)
{
	bool yes = tap->recorder ||
		   atomic_load_explicit(&tap->target, memory_order_relaxed); /* under `lock` */

	if (tap->want)
		tap->want(tap->arg, yes);
}

static struct weft_tap_target *tap_detach(struct weft_tap *tap)
{
	struct weft_tap_target *t;

	/* Sequentially consistent: see target_enter(). */
	t = atomic_exchange_explicit(&tap->target, NULL, memory_order_seq_cst);
	notify_wanted(tap);
	wait_until_idle(tap);
	return t;
}

static int tap_attach(struct weft_tap *tap, struct weft_capture *c)
{
	struct weft_capture_source *s;

	weft_capture_lock(c);
	s = weft_capture_add(c, tap);
	weft_capture_unlock(c);
	if (!s) {
		weft_error("capture: %s is not in %s: no memory, or more than %u lanes", tap->name,
			   c->options.file, WEFT_CAPTURE_SOURCES);
		return -ENOMEM;
	}
	atomic_store_explicit(&tap->target, &s->target, memory_order_seq_cst);
	notify_wanted(tap);
	return 0;
}

static void fill_state(struct weft_capture *c, struct weft_capture_state *state)
{
	const struct weft_capture_ring *r;
	uint64_t dropped;
	unsigned int i;

	weft_capture_lock(c);
	*state = (struct weft_capture_state){
		.interfaces = c->num_sources,
		.frames = c->gone_records - c->unwritten,
		.dropped = c->gone_dropped + c->unwritten,
	};
	memcpy(state->file, c->options.file, sizeof(state->file));
	memcpy(state->filter, c->options.filter, sizeof(state->filter));
	memcpy(state->why, c->why, sizeof(state->why));
	for (i = 0; i < c->num_sources; i++) {
		r = c->source[i]->target.ring;
		dropped = atomic_load_explicit(&r->dropped, memory_order_relaxed);
		state->frames += atomic_load_explicit(&r->seen, memory_order_relaxed) - dropped;
		state->dropped += dropped;
	}
	weft_capture_unlock(c);
}

/* @param[out] last  NULL = not requested */
static void end_capture(struct weft_capture *c, struct weft_capture_state *last)
{
	struct weft_tap_target *t;
	struct weft_tap *tap;

	LIST_FOREACH(tap, &taps, entry) {
		t = atomic_load_explicit(&tap->target, memory_order_relaxed);
		if (t && t->capture == c)
			tap_detach(tap);
	}
	LIST_REMOVE(c, entry);
	if (last)
		fill_state(c, last);
	weft_capture_destroy(c);
}

/* Write the contents of the rings to the files. */
static void at_exit(void)
{
	struct weft_capture *c;

	pthread_mutex_lock(&lock);
	while ((c = LIST_FIRST(&captures)))
		end_capture(c, NULL);
	pthread_mutex_unlock(&lock);
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* The child has no writer thread, and the file is the parent's. */
static void in_child(void)
{
	struct weft_capture *c;
	struct weft_tap *tap;

	LIST_FOREACH(tap, &taps, entry) {
		atomic_store_explicit(&tap->target, NULL, memory_order_seq_cst);
		notify_wanted(tap);
	}
	LIST_FOREACH(c, &captures, entry)
		close(c->out.fd);
	LIST_INIT(&captures);
	pthread_mutex_unlock(&lock);
}

/* See weft_capture_create(). */
static struct weft_capture *open_capture(const struct weft_capture_options *o,
					 struct weft_capture_filter *filter, bool threaded, int *rc,
					 char *why, size_t why_len)
{
	static bool prepared;
	struct weft_capture *c = weft_capture_create(o, filter, threaded, rc, why, why_len);

	if (!c)
		return NULL;
	if (!prepared) {
		prepared = true;
		atexit(at_exit);
		pthread_atfork(before_fork, after_fork, in_child);
	}
	LIST_INSERT_HEAD(&captures, c, entry);
	return c;
}

static struct weft_capture *capture_find(const char *file)
{
	struct weft_capture *c;

	LIST_FOREACH(c, &captures, entry)
		if (!strcmp(c->options.file, file))
			return c;
	return NULL;
}

/*
 * The options of the capture that a lane's configuration requests. The filter is made without the
 * lock: resolving a host name takes long.
 */
struct own {
	struct weft_capture_options options;
	struct weft_capture_filter *filter;
	int rc;
	char why[400];
};

static void prepare_own(struct own *own, const char *text)
{
	own->rc = weft_capture_options_parse(text, &own->options, own->why, sizeof(own->why));
	if (!own->rc)
		own->rc = weft_capture_filter_make(own->options.filter, &own->filter, own->why,
						   sizeof(own->why));
}

/* A running capture keeps its own options. Its file is created again if it was removed. */
static struct weft_capture *join_running(struct weft_capture *c, struct own *own)
{
	weft_capture_filter_free(own->filter);
	weft_capture_lock(c);
	own->rc = weft_capture_renew(c, own->why, sizeof(own->why));
	weft_capture_unlock(c);
	return own->rc ? NULL : c;
}

/* Join the capture of the lane's configuration; another lane may have opened it. */
static void join_own(struct weft_tap *tap, struct own *own)
{
	static char last[sizeof(own->why)];
	struct weft_capture *c = NULL;

	if (!own->rc) {
		c = capture_find(own->options.file);
		if (c)
			c = join_running(c, own);
		else
			c = open_capture(&own->options, own->filter,
					 tap->platform == &weft_platform_host, &own->rc, own->why,
					 sizeof(own->why));
	}
	if (c) {
		tap_attach(tap, c);
	} else if (strcmp(last, own->why)) {
		/* Lanes that fail for the same reason in sequence report it once. */
		snprintf(last, sizeof(last), "%s", own->why);
		weft_error("WEFT_CAPTURE: %s; nothing is captured", own->why);
	}
}

static void join_commanded(struct weft_tap *tap)
{
	struct weft_capture *c;

	LIST_FOREACH(c, &captures, entry) {
		if (c->by_command) {
			tap_attach(tap, c);
			return;
		}
	}
}

/* ---- lanes ---------------------------------------------------------------------------------- */

/* Join the capture of the lane's configuration, or the one that a command has started. */
static void tap_join(struct weft_tap *tap, const struct weft_lane_conf *conf)
{
	struct own own;

	register_commands();
	if (conf->capture)
		prepare_own(&own, conf->capture);
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&taps, tap, entry);
	if (conf->capture)
		join_own(tap, &own);
	else
		join_commanded(tap);
	notify_wanted(tap);
	pthread_mutex_unlock(&lock);
}

struct weft_tap *weft_tap_open(const struct weft_frame_port *port,
			       const struct weft_platform *platform, uint64_t worker_id,
			       const struct weft_lane_conf *conf)
{
	struct weft_tap *tap = calloc(1, sizeof(*tap));

	if (!tap)
		return NULL;
	tap->platform = platform;
	tap->link = WEFT_PCAPNG_ETHERNET;
	snprintf(tap->name, sizeof(tap->name), "%s:%s (%s)", weft_frame_port_driver(port),
		 port->name, port->device);
	snprintf(tap->about, sizeof(tap->about),
		 "raw lane of worker %016" PRIx64 ", frames of up to %u bytes", worker_id,
		 port->frame_size);
	memcpy(tap->mac, port->mac, sizeof(tap->mac));
	if (port->flags & WEFT_FRAME_PORT_SOCKET)
		tap->hosts = port->hosts;
	tap->speed = (uint64_t)(port->bandwidth * 8);
	*(tap->hosts ? &tap->recorder6 : &tap->recorder) = weft_recorder_open(conf, platform, tap);
	tap_join(tap, conf);
	/* Relaxed: compared only. A capture that is there now has all that the port misses. */
	tap->missed_in = atomic_load_explicit(&tap->target, memory_order_relaxed);
	return tap;
}

/* A lane without frames: it shows message records. @param tap  zeroed */
static void tap_open_messages(struct weft_tap *tap, const struct weft_lane_tap_open *params)
{
	tap->platform = params->platform;
	tap->link = WEFT_RECORD_LINKTYPE;
	snprintf(tap->name, sizeof(tap->name), "%s", params->name);
	snprintf(tap->about, sizeof(tap->about), "%s", params->about);
	tap->speed = params->speed;
	tap->want = params->want;
	tap->arg = params->arg;
	if (weft_recorder_has_messages(params->conf))
		tap->recorder = weft_recorder_open(params->conf, params->platform, tap);
	tap_join(tap, params->conf);
}

/* As weft_tap_close(), but @p tap is not freed. */
static void tap_leave(struct weft_tap *tap)
{
	struct weft_capture_source *s;
	struct weft_tap_target *t;
	struct weft_capture *c;

	pthread_mutex_lock(&lock);
	LIST_REMOVE(tap, entry);
	t = tap_detach(tap);
	if (tap->want)
		tap->want(tap->arg, false);
	if (t) {
		s = (struct weft_capture_source *)t;
		c = t->capture;
		weft_capture_lock(c);
		s->closed = true;
		/* Not left to the writer: the process may end without its exit handlers. */
		while (weft_capture_drain(c))
			;
		weft_capture_settle(c);
		weft_capture_unlock(c);
	}
	pthread_mutex_unlock(&lock);
	weft_recorder_settle();
	weft_recorder_close(tap->recorder);
	weft_recorder_close(tap->recorder6);
}

void weft_tap_close(struct weft_tap *tap)
{
	if (!tap)
		return;
	tap_leave(tap);
	free(tap);
}

/* ---- commands ------------------------------------------------------------------------------- */

int weft_capture_start(const char *text, char *why, size_t why_len)
{
	struct weft_capture_filter *filter;
	struct weft_capture_options o;
	struct weft_capture *c;
	struct weft_tap *tap;
	int rc = weft_capture_options_parse(text, &o, why, why_len);

	if (!rc)
		rc = weft_capture_filter_make(o.filter, &filter, why, why_len);
	if (rc)
		return rc;
	pthread_mutex_lock(&lock);
	LIST_FOREACH(c, &captures, entry) {
		if (c->by_command || !strcmp(c->options.file, o.file)) {
			snprintf(why, why_len, "a capture to %s is running: stop it first",
				 c->options.file);
			pthread_mutex_unlock(&lock);
			weft_capture_filter_free(filter);
			return -EBUSY;
		}
	}
	c = open_capture(&o, filter, true, &rc, why, why_len);
	if (c) {
		c->by_command = true;
		LIST_FOREACH(tap, &taps, entry)
			if (!atomic_load_explicit(&tap->target, memory_order_relaxed))
				tap_attach(tap, c);
	}
	pthread_mutex_unlock(&lock);
	return rc < 0 ? rc : 0;
}

int weft_capture_stop(struct weft_capture_state *last, char *why, size_t why_len)
{
	struct weft_capture *c;
	int rc = -ENOENT;

	snprintf(why, why_len, "no capture is running");
	pthread_mutex_lock(&lock);
	while ((c = LIST_FIRST(&captures))) {
		end_capture(c, last);
		rc = 0;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static void set_filter(struct weft_capture *c, struct weft_capture_filter *f,
		       const char *expression)
{
	struct weft_capture_filter *old = c->filter;
	struct weft_tap_target *t;
	struct weft_tap *tap;

	weft_capture_lock(c);
	c->filter = f;
	snprintf(c->options.filter, sizeof(c->options.filter), "%s", expression);
	weft_capture_unlock(c);
	LIST_FOREACH(tap, &taps, entry) {
		t = atomic_load_explicit(&tap->target, memory_order_relaxed);
		if (!t || t->capture != c)
			continue;
		atomic_store_explicit(&t->filter, f, memory_order_seq_cst);
		wait_until_idle(tap);
	}
	weft_capture_filter_free(old);
}

int weft_capture_refilter(const char *expression, char *why, size_t why_len)
{
	struct weft_capture_filter *f;
	struct weft_capture *c;
	int rc;

	if (strlen(expression) >= sizeof(c->options.filter)) {
		snprintf(why, why_len, "a filter has at most %zu bytes: give a shorter one",
			 sizeof(c->options.filter) - 1);
		return -EINVAL;
	}
	/* Before the lock, on which lanes wait: host names are resolved here. */
	rc = weft_capture_filter_make(expression, &f, why, why_len);
	if (rc)
		return rc;
	pthread_mutex_lock(&lock);
	if (LIST_EMPTY(&captures)) {
		snprintf(why, why_len, "no capture is running");
		rc = -ENOENT;
	}
	LIST_FOREACH(c, &captures, entry)
		set_filter(c, weft_capture_filter_share(f), expression);
	pthread_mutex_unlock(&lock);
	weft_capture_filter_free(f);
	return rc;
}

bool weft_capture_query(unsigned int i, struct weft_capture_state *state)
{
	struct weft_capture *c;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(c, &captures, entry)
		if (i-- == 0)
			break;
	if (c)
		fill_state(c, state);
	pthread_mutex_unlock(&lock);
	return c != NULL;
}

/* ---- lanes without frames ------------------------------------------------------------------- */

/*
 * Lanes without frames, as captures see them. The protocol layer makes message records
 * (lane_tap.h), which go into rings, files and the flight recorder as frames do.
 */

struct messages {
	struct weft_lane_tap base; /* first */
	struct weft_tap tap;
};

static struct weft_lane_tap *open_messages(const struct weft_lane_tap_open *params)
{
	struct messages *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->base.ops = &weft_capture_messages;
	tap_open_messages(&m->tap, params);
	return &m->base;
}

static void close_messages(struct weft_lane_tap *base)
{
	struct messages *m = (struct messages *)base;

	tap_leave(&m->tap);
	free(m);
}

static void messages_offer(struct weft_lane_tap *base, enum weft_lane_tap_way way,
			   const struct iovec *iov, unsigned int num, uint64_t now)
{
	struct weft_tap *tap = &((struct messages *)base)->tap;
	uint32_t len = 0;

	for (unsigned int i = 0; tap->recorder && i < num; i++)
		len += (uint32_t)iov[i].iov_len;
	if (tap->recorder)
		weft_recorder_put_bytes(tap->recorder, 0, iov, num, len,
					(enum weft_pcapng_direction)way, now);
	/* Relaxed: a hint; weft_tap_copy_bytes() checks again. */
	if (atomic_load_explicit(&tap->target, memory_order_relaxed))
		weft_tap_copy_bytes(tap, iov, num, (enum weft_pcapng_direction)way);
}

static void messages_taken(struct weft_lane_tap *base, bool yes)
{
	weft_tap_taken(&((struct messages *)base)->tap, yes);
}

static void messages_failed(struct weft_lane_tap *base, const char *reason)
{
	weft_tap_error(&((struct messages *)base)->tap, reason);
}

const struct weft_lane_tap_ops weft_capture_messages = {
	.open = open_messages,
	.close = close_messages,
	.offer = messages_offer,
	.taken = messages_taken,
	.failed = messages_failed,
	.command = capture_command,
	.record = weft_recorder_file_write,
	.record_command = weft_recorder_file_command,
};
