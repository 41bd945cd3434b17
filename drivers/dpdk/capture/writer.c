/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/host.h"
#include "base/log.h"
#include "capture/capture_file.h"
#include "capture/tap.h"

/* ns after which the writer flushes the file again, even if the buffer is not full */
#define FLUSH_NS 100000000ull
/* ns after which the writer writes statistics, if frames were dropped, and devices' counters */
#define STATS_NS 1000000000ull
#define ROUND 4096u /* most records between two checks of the clock and of `waiting` */
/* The writer sleeps for this time; without a record each sleep is twice as long as the last. */
#define SLEEP_MIN_NS 250000
#define SLEEP_MAX_NS 4000000
#define LET_ROUNDS 40u /* see weft_capture_lock() */

static uint64_t real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* ---- counters of RoCE devices --------------------------------------------------------------- */

/*
 * The counters that a RoCE device keeps itself, as text in captures: the library sees no
 * retransmission, NAK or CNP of a device.
 */

#define HW_COUNTERS_TEXT 2048u

#define PATH 160
#define DEVICE 32

struct text {
	char *buf;
	size_t len, size;
};

/* @return false: the file cannot be read, or does not begin with a number */
static bool read_value(int dir, const char *name, uint64_t *value)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	char text[32], *end;
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	*value = strtoull(text, &end, 10);
	return end != text;
}

static void add_counter(struct text *t, const char *port, const char *name, uint64_t value)
{
	int n = snprintf(t->buf + t->len, t->size - t->len, " %s/%s=%" PRIu64, port, name, value);

	if (n > 0 && (size_t)n < t->size - t->len)
		t->len += (size_t)n;
	t->buf[t->len] = '\0';
}

static void add_port(struct text *t, const char *device, const char *port)
{
	const struct dirent *d;
	char path[PATH];
	uint64_t value;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%.8s/hw_counters", device,
		 port);
	dir = opendir(path);
	if (!dir)
		return;
	/* `lifespan` is no counter: it is the interval at which the kernel reads the device. */
	while ((d = readdir(dir)))
		if (d->d_name[0] != '.' && strcmp(d->d_name, "lifespan") &&
		    read_value(dirfd(dir), d->d_name, &value))
			add_counter(t, port, d->d_name, value);
	closedir(dir);
}

/*
 * "hw_counters DEVICE PORT/NAME=VALUE PORT/NAME=VALUE ...", as many as fit.
 * @param lane  name of an interface: "roce:DEVICE..."
 * @return length; 0 = no RoCE lane, or the device has no counters
 */
static size_t hw_counters_text(const char *lane, char *buf, size_t size)
{
	struct text t = {.buf = buf, .size = size};
	char device[DEVICE], path[PATH];
	const struct dirent *d;
	size_t begin;
	DIR *dir;

	if (sscanf(lane, "roce:%31[^:, /]", device) != 1)
		return 0;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports", device);
	dir = opendir(path);
	if (!dir)
		return 0;
	t.len = begin = (size_t)snprintf(buf, size, "hw_counters %s", device);
	while ((d = readdir(dir)))
		if (d->d_name[0] != '.')
			add_port(&t, device, d->d_name);
	closedir(dir);
	return t.len > begin ? t.len : 0;
}

/* ---- the file ------------------------------------------------------------------------------- */

static uint64_t dropped_of(const struct weft_capture_source *s)
{
	return atomic_load_explicit(&s->target.ring->dropped, memory_order_relaxed);
}

static void capture_fail(struct weft_capture *c, const char *why)
{
	unsigned int i;

	if (c->why[0])
		return;
	snprintf(c->why, sizeof(c->why), "%s", why);
	weft_error("capture: %s: the capture ends here, the process goes on", why);
	for (i = 0; i < c->num_sources; i++)
		atomic_store_explicit(&c->source[i]->target.ring->dead, true, memory_order_relaxed);
}

/* Write what the device of a RoCE lane has counted until now. */
static void put_counters(struct weft_capture *c, const struct weft_capture_source *s)
{
	char text[HW_COUNTERS_TEXT];

	if (hw_counters_text(s->name, text, sizeof(text)))
		weft_pcapng_note(&c->out, s->interface, real_ns(), text);
}

static void put_statistics(struct weft_capture *c)
{
	struct weft_capture_source *s;
	uint64_t lost, now = real_ns();
	unsigned int i;

	for (i = 0; i < c->num_sources; i++) {
		s = c->source[i];
		lost = dropped_of(s) - s->reported + c->out.lost[s->interface];
		s->dropped_at_stats = dropped_of(s);
		weft_pcapng_statistics(&c->out, s->interface, now,
				       s->records + dropped_of(s) - s->reported, lost);
	}
}

/* The file did not take the last records. Statistics, if they fit, count these as dropped. */
static void after_error(struct weft_capture *c)
{
	char why[sizeof(c->why)];
	int error = c->out.error;
	unsigned int i;

	if (c->why[0])
		return;
	for (i = 0; i < WEFT_PCAPNG_INTERFACES; i++)
		c->unwritten += c->out.lost[i];
	snprintf(why, sizeof(why), "%.150s can't be written any more (%s)", c->options.file,
		 strerror(-error));
	capture_fail(c, why);
	c->out.error = 0;
	put_statistics(c);
	weft_pcapng_flush(&c->out);
	c->out.error = error;
}

static void flush_file(struct weft_capture *c)
{
	if (weft_pcapng_flush(&c->out))
		after_error(c);
}

static void put_interface(struct weft_capture *c, struct weft_capture_source *s)
{
	s->interface =
		weft_pcapng_interface(&c->out, s->link, s->name, s->about, s->mac, s->speed,
				      c->options.snaplen == UINT32_MAX ? 0 : c->options.snaplen);
	put_counters(c, s);
}

/*
 * Close the file and begin another one of this name. Frames that were dropped before the last
 * statistics count in the old file; the new one counts from 0.
 */
static int begin_file(struct weft_capture *c, char *why, size_t why_len)
{
	int fd = weft_capture_file_open(c->options.file, why, why_len);
	struct weft_capture_source *s;
	unsigned int i;

	if (fd < 0)
		return fd;
	close(c->out.fd);
	weft_pcapng_begin(&c->out, fd, NULL, c->host);
	for (i = 0; i < c->num_sources; i++) {
		s = c->source[i];
		s->reported = s->dropped_at_stats;
		s->records = 0;
		put_interface(c, s);
	}
	return 0;
}

static void rotate_file(struct weft_capture *c)
{
	char why[200];
	int rc;

	put_statistics(c);
	flush_file(c);
	if (c->why[0])
		return;
	if (c->options.files <= 1) {
		snprintf(why, sizeof(why), "%.120s has reached its size", c->options.file);
		capture_fail(c, why);
		return;
	}
	rc = weft_capture_file_shift_names(c->options.file, c->options.files);
	if (rc) {
		snprintf(why, sizeof(why), "%.120s can't be renamed (%s)", c->options.file,
			 strerror(-rc));
		capture_fail(c, why);
		return;
	}
	if (begin_file(c, why, sizeof(why)))
		capture_fail(c, why);
}

void weft_capture_settle(struct weft_capture *c)
{
	for (unsigned int i = 0; !c->why[0] && i < c->num_sources; i++)
		put_counters(c, c->source[i]);
	if (!c->why[0])
		put_statistics(c);
	flush_file(c);
}

/* ---- from the rings ------------------------------------------------------------------------- */

static void remove_source(struct weft_capture *c, unsigned int i)
{
	struct weft_capture_source *s = c->source[i];

	if (!c->why[0])
		put_counters(c, s);
	if (!c->why[0])
		weft_pcapng_statistics(&c->out, s->interface, real_ns(),
				       s->records + dropped_of(s) - s->reported,
				       dropped_of(s) - s->reported);
	c->gone_records += s->all;
	c->gone_dropped += dropped_of(s);
	weft_capture_ring_destroy(s->target.ring);
	free(s);
	c->source[i] = c->source[--c->num_sources];
}

static void write_missed(struct weft_capture *c, const struct weft_capture_source *s,
			 const struct weft_capture_record *r)
{
	char text[96];
	uint64_t n;

	memcpy(&n, r->data, sizeof(n));
	snprintf(text, sizeof(text), "missed %" PRIu64 ": the receive buffer was full", n);
	weft_pcapng_note(&c->out, s->interface, r->time_ns, text);
}

static void write_path(struct weft_capture *c, const struct weft_capture_source *s,
		       const struct weft_capture_record *r)
{
	struct weft_tap_path p;
	char text[256];

	memcpy(&p, r->data, sizeof(p));
	snprintf(text, sizeof(text),
		 "path %u of %08x %08x: window %u in_flight %u rtt %u least %u base %u noise %u "
		 "target %u mode %s",
		 p.path, p.conn, p.token, p.window, p.in_flight, p.rtt, p.least, p.base, p.noise,
		 p.target, p.mode[0] ? p.mode : "-");
	weft_pcapng_note(&c->out, s->interface, r->time_ns, text);
}

static void write_record(struct weft_capture *c, struct weft_capture_source *s,
			 const struct weft_capture_record *r)
{
	char comment[96];
	struct weft_pcapng_packet p = {
		.interface = s->interface,
		.direction = (enum weft_pcapng_direction)r->direction,
		.time_ns = r->time_ns,
		.data = r->data,
		.caplen = r->caplen,
		.len = r->len,
		.dropped = r->dropped,
		.comment = comment,
	};

	if (r->direction == WEFT_CAPTURE_PATH || r->direction == WEFT_CAPTURE_MISSED) {
		if (!c->why[0])
			(r->direction == WEFT_CAPTURE_PATH ? write_path : write_missed)(c, s, r);
		return;
	}
	s->all++;
	if (c->why[0]) {
		c->unwritten++;
		return;
	}
	weft_capture_describe(s->name, r->data, s->link == WEFT_PCAPNG_ETHERNET ? r->caplen : 0,
			      r->within, comment, sizeof(comment));
	weft_pcapng_packet(&c->out, &p);
	s->records++;
	if (c->out.error)
		after_error(c);
	else if (c->options.size && c->out.written + c->out.used >= c->options.size)
		rotate_file(c);
}

/* @param[out] out  the oldest record of all rings. @return its source; NULL: all are empty */
static struct weft_capture_source *oldest_record(struct weft_capture *c,
						 const struct weft_capture_record **out)
{
	struct weft_capture_source *found = NULL;
	const struct weft_capture_record *r;
	unsigned int i;

	for (i = 0; i < c->num_sources; i++) {
		r = weft_capture_ring_peek(c->source[i]->target.ring);
		if (r && (!found || r->time_ns < (*out)->time_ns)) {
			found = c->source[i];
			*out = r;
		}
	}
	return found;
}

unsigned int weft_capture_drain(struct weft_capture *c)
{
	const struct weft_capture_record *r = NULL;
	struct weft_capture_source *s;
	unsigned int n, i;

	for (n = 0; n < ROUND && (s = oldest_record(c, &r)); n++) {
		write_record(c, s, r);
		weft_capture_ring_next(s->target.ring, r);
	}
	for (i = 0; i < c->num_sources && n < ROUND;) {
		if (c->source[i]->closed && !weft_capture_ring_peek(c->source[i]->target.ring))
			remove_source(c, i);
		else
			i++;
	}
	return n;
}

int weft_capture_renew(struct weft_capture *c, char *why, size_t why_len)
{
	struct weft_capture_source *s;
	unsigned int i;
	int rc;

	if (weft_capture_file_has_name(c->out.fd, c->options.file))
		return 0;
	while (weft_capture_drain(c))
		;
	weft_capture_settle(c);
	for (i = 0; i < c->num_sources; i++) /* reported, or dropped after the file's end */
		c->source[i]->dropped_at_stats = dropped_of(c->source[i]);
	rc = begin_file(c, why, why_len);
	if (rc)
		return rc;
	c->why[0] = '\0';
	for (i = 0; i < c->num_sources; i++) {
		s = c->source[i];
		atomic_store_explicit(&s->target.ring->dead, false, memory_order_relaxed);
	}
	return 0;
}

/* ---- the thread ----------------------------------------------------------------------------- */

static bool more_dropped(const struct weft_capture *c)
{
	unsigned int i;

	for (i = 0; i < c->num_sources; i++)
		if (dropped_of(c->source[i]) != c->source[i]->dropped_at_stats)
			return true;
	return false;
}

/* Flush now and then, so that a process that is killed leaves a valid file. */
static void keep_up(struct weft_capture *c)
{
	uint64_t now = real_ns();

	if (c->why[0] || now < c->flush_at)
		return;
	c->flush_at = now + FLUSH_NS;
	if (now >= c->counters_at) {
		for (unsigned int i = 0; c->counters_at && i < c->num_sources; i++)
			put_counters(c, c->source[i]);
		c->counters_at = now + STATS_NS;
	}
	if (now >= c->stats_at && more_dropped(c)) {
		c->stats_at = now + STATS_NS;
		put_statistics(c);
	}
	if (c->out.used)
		flush_file(c);
}

/*
 * A mutex is not fair: a thread that unlocks it and locks it again at once gets it before a thread
 * that must be woken. So waiting threads are counted, and the writer sleeps while there are any;
 * LET_ROUNDS limits that, since more threads may arrive.
 */
void weft_capture_lock(struct weft_capture *c)
{
	/* Relaxed: a hint; the lock protects the data. */
	atomic_fetch_add_explicit(&c->waiting, 1, memory_order_relaxed);
	pthread_mutex_lock(&c->lock);
	atomic_fetch_sub_explicit(&c->waiting, 1, memory_order_relaxed);
}

void weft_capture_unlock(struct weft_capture *c)
{
	pthread_mutex_unlock(&c->lock);
}

static void let_others(struct weft_capture *c)
{
	static const struct timespec ts = {.tv_nsec = SLEEP_MIN_NS};

	for (unsigned int i = 0;
	     i < LET_ROUNDS && atomic_load_explicit(&c->waiting, memory_order_relaxed); i++)
		nanosleep(&ts, NULL);
}

static void *write_loop(void *arg)
{
	struct timespec ts = {.tv_nsec = SLEEP_MIN_NS};
	struct weft_capture *c = arg;
	unsigned int n;

	while (!atomic_load_explicit(&c->stop, memory_order_acquire)) {
		pthread_mutex_lock(&c->lock);
		n = weft_capture_drain(c);
		keep_up(c);
		pthread_mutex_unlock(&c->lock);
		let_others(c);
		if (n) {
			ts.tv_nsec = SLEEP_MIN_NS;
			continue;
		}
		nanosleep(&ts, NULL);
		ts.tv_nsec = RTE_MIN(ts.tv_nsec * 2, (long)SLEEP_MAX_NS);
	}
	return NULL;
}

/* A simulator's lane writes the file once a ring is used by more than a quarter. */
static void written_by_lane(struct weft_capture *c)
{
	struct weft_capture_ring *r;
	unsigned int i;

	for (i = 0; i < c->num_sources; i++) {
		r = c->source[i]->target.ring;
		if (r->done.head - atomic_load_explicit(&r->tail, memory_order_relaxed) >
		    r->size / 4) {
			while (weft_capture_drain(c))
				;
			return;
		}
	}
}

/* ---- lifetime ------------------------------------------------------------------------------- */

struct weft_capture_source *weft_capture_add(struct weft_capture *c, const struct weft_tap *tap)
{
	const struct weft_platform *pf = tap->platform;
	struct weft_capture_source *s;

	if (c->num_sources == WEFT_CAPTURE_SOURCES || c->out.interfaces >= WEFT_CAPTURE_SOURCES)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->target.ring = weft_capture_ring_create(c->options.ring);
	if (!s->target.ring) {
		free(s);
		return NULL;
	}
	snprintf(s->name, sizeof(s->name), "%s", tap->name);
	snprintf(s->about, sizeof(s->about), "%s", tap->about);
	memcpy(s->mac, tap->mac, sizeof(s->mac));
	s->speed = tap->speed;
	s->link = tap->link;
	s->target.filter = c->filter;
	s->target.snaplen = c->options.snaplen;
	s->target.capture = c;
	if (pf == &weft_platform_host) {
		/*
		 * Lanes of a process have one clock, and its offset to the time of day is set once
		 * for a capture. An offset set again for a later lane would differ by the clocks'
		 * drift since then, and a message could be received before it was sent.
		 */
		if (!c->offset)
			c->offset = weft_capture_offset(pf);
		s->target.offset = c->offset;
	}
	if (!c->threaded)
		s->target.written_by_lane = written_by_lane;
	s->target.ring->dead = c->why[0] != '\0';
	if (!c->why[0])
		put_interface(c, s);
	c->source[c->num_sources++] = s;
	return s;
}

struct weft_capture *weft_capture_create(const struct weft_capture_options *o,
					 struct weft_capture_filter *filter, bool threaded, int *rc,
					 char *why, size_t why_len)
{
	struct weft_capture *c = calloc(1, sizeof(*c));
	int fd;

	*rc = -ENOMEM;
	snprintf(why, why_len, "no memory");
	if (!c)
		goto free_filter;
	c->options = *o;
	c->filter = filter;
	pthread_mutex_init(&c->lock, NULL);
	fd = weft_capture_file_open(o->file, why, why_len);
	*rc = fd;
	if (fd < 0)
		goto free_capture;
	c->threaded = threaded;
	c->host = threaded ? weft_platform_host.host_id(NULL) : 0;
	weft_pcapng_begin(&c->out, fd, NULL, c->host);
	*rc = threaded ? weft_capture_thread("weft-capture", write_loop, c, &c->thread) : 0;
	if (!*rc)
		return c;
	snprintf(why, why_len, "no thread that writes (%s)", strerror(-*rc));
	close(fd);
free_capture:
	free(c);
free_filter:
	weft_capture_filter_free(filter);
	return NULL;
}

void weft_capture_destroy(struct weft_capture *c)
{
	if (c->threaded) {
		atomic_store_explicit(&c->stop, true, memory_order_release);
		pthread_join(c->thread, NULL);
	}
	while (weft_capture_drain(c))
		;
	weft_capture_settle(c);
	close(c->out.fd);
	while (c->num_sources)
		remove_source(c, 0);
	weft_capture_filter_free(c->filter);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
