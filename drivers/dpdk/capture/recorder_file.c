/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the flight recorder's frames to a file: on an error, by a call, or by a command. */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/host.h"
#include "base/log.h"
#include "capture/describe.h"
#include "capture/file.h"
#include "capture/options.h"
#include "capture/recorder.h"
#include "capture/recorder_folder.h"
#include "capture/thread.h"

#define ERRORS_MAX 8u
#define ERRORS_APART_NS 10000000000ull
#define WITH_MESSAGES ",messages" /* after the name of the file */
#define EXIT_WAIT_MS 2000u

/* Files are written one at a time: the thread that has set `writing` owns all of this. */
static atomic_bool writing;
static struct weft_pcapng out;
static struct source {
	struct weft_recorder *r;
	uint64_t from, to, offset;
} sources[WEFT_RECORDERS];
static unsigned int num_sources;
static char reason_text[320];

static char file_name[512]; /* before %p and %n; "" = a new file in the folder */
static char folder[256];    /* or the reason why there is no folder */
static int folder_error;
static _Atomic unsigned int number;

/* ---- the file. Only calls that a signal handler may make. ---- */

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static bool writer_lock(void)
{
	bool no = false;

	/* Acquire, paired with the release in writer_unlock(): one writer after the other. */
	return atomic_compare_exchange_strong_explicit(&writing, &no, true, memory_order_acquire,
						       memory_order_relaxed);
}

static void writer_unlock(void)
{
	atomic_store_explicit(&writing, false, memory_order_release);
}

static void take_snapshot(const char *reason)
{
	const struct weft_platform *host = &weft_platform_host;
	uint64_t offset = 0;
	struct source *s;

	snprintf(reason_text, sizeof(reason_text), "flight recorder: %s", reason);
	for (num_sources = 0; num_sources < WEFT_RECORDERS; num_sources++) {
		s = &sources[num_sources];
		s->r = weft_recorder_at(num_sources);
		if (!s->r)
			break;
		/* Once: the recorders of a process have one clock, see writer.c. */
		if (s->r->platform == host && !offset)
			offset = clock_ns(CLOCK_REALTIME) - host->now(host->arg);
		s->offset = s->r->platform == host ? offset : 0;
		weft_recorder_snapshot(s->r, &s->from, &s->to);
	}
}

static uint64_t time_of(const struct source *s)
{
	return (s->r->copy[s->from & s->r->mask].time >> 2) + s->offset;
}

/* @return the source whose next frame is the oldest; num_sources if there is none */
static unsigned int oldest_source(void)
{
	unsigned int i, found = num_sources;
	uint64_t t, least = UINT64_MAX;

	for (i = 0; i < num_sources; i++) {
		if (sources[i].from == sources[i].to)
			continue;
		t = time_of(&sources[i]);
		if (t < least || found == num_sources) {
			least = t;
			found = i;
		}
	}
	return found;
}

static void write_frame(struct source *s, unsigned int interface)
{
	const struct weft_recorder_slot *slot = &s->r->copy[s->from & s->r->mask];
	uint64_t lengths = slot->lengths;
	char comment[96];
	struct weft_pcapng_packet p = {
		.interface = interface,
		.direction = (enum weft_pcapng_direction)(slot->time & 3),
		.time_ns = time_of(s),
		.data = (const void *)slot->word,
		.caplen = RTE_MIN((uint16_t)(lengths >> 32), WEFT_RECORDER_BYTES),
		.len = (uint32_t)lengths,
		.comment = comment,
	};

	weft_capture_describe(s->r->name, p.data, s->r->link == WEFT_PCAPNG_ETHERNET ? p.caplen : 0,
			      comment, sizeof(comment));
	weft_pcapng_packet(&out, &p);
	s->from++;
}

/* @return a descriptor, or an error with a sentence in @p name */
static int open_file(char *name, size_t size)
{
	char full[512];
	int fd;

	if (!file_name[0] && folder_error) {
		snprintf(name, size, "%s", folder);
		return folder_error;
	}
	if (!file_name[0])
		return weft_recorder_folder_create(folder, name, size);
	weft_capture_expand(file_name, atomic_fetch_add_explicit(&number, 1, memory_order_relaxed),
			    full, sizeof(full));
	fd = weft_capture_file_open(full, name, size);
	if (fd >= 0)
		snprintf(name, size, "%s", full);
	return fd;
}

/* @return 0, or an error with a sentence in @p name */
static int write_file(char *name, size_t size)
{
	char full[512];
	unsigned int i;
	int fd, rc;

	fd = open_file(name, size);
	if (fd < 0)
		return fd;
	weft_pcapng_begin(&out, fd, reason_text);
	for (i = 0; i < num_sources; i++)
		weft_pcapng_interface(&out, sources[i].r->link, sources[i].r->name,
				      sources[i].r->about, sources[i].r->mac, sources[i].r->speed,
				      WEFT_RECORDER_BYTES);
	while ((i = oldest_source()) < num_sources)
		write_frame(&sources[i], i);
	rc = weft_pcapng_flush(&out);
	close(fd);
	if (rc) {
		snprintf(full, sizeof(full), "%s", name);
		snprintf(name, size, "%s can't be written (%s)", full, strerror(-rc));
	}
	return rc;
}

static void prune_files(void)
{
	if (!file_name[0] && !folder_error)
		weft_recorder_folder_prune(folder, WEFT_RECORDER_FILES, WEFT_RECORDER_FILES_BYTES);
}

int weft_recorder_file_write(const char *reason, char *name, size_t size)
{
	int rc;

	if (!weft_recorder_at(0)) {
		snprintf(name, size, "there is no raw lane, or WEFT_RECORDER is off");
		return -ENOENT;
	}
	if (!writer_lock()) {
		snprintf(name, size, "another file is being written");
		return -EBUSY;
	}
	take_snapshot(reason);
	rc = write_file(name, size);
	writer_unlock();
	return rc;
}

/* ---- errors --------------------------------------------------------------------------------- */

static void *write_thread(void *arg)
{
	char name[640];

	(void)arg;
	if (write_file(name, sizeof(name)))
		weft_error("WEFT_RECORDER: %s", name);
	else
		weft_warn("the flight recorder's frames are in %s (%s); weft-dump reads it, best "
			  "with the file of the other host",
			  name, reason_text);
	prune_files();
	writer_unlock();
	return NULL;
}

static bool write_is_due(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static unsigned int errors;
	static uint64_t last;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	bool yes;

	pthread_mutex_lock(&lock);
	yes = errors < ERRORS_MAX && (!last || now - last >= ERRORS_APART_NS);
	if (yes) {
		last = now;
		errors++;
	}
	pthread_mutex_unlock(&lock);
	return yes;
}

void weft_recorder_error(const char *reason)
{
	if (!weft_recorder_at(0) || !write_is_due() || !writer_lock())
		return;
	take_snapshot(reason);
	if (weft_capture_thread("weft-recorder", write_thread, NULL, NULL))
		writer_unlock();
}

void weft_recorder_settle(void)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	unsigned int i;

	for (i = 0; i < EXIT_WAIT_MS; i++) {
		if (!atomic_load_explicit(&writing, memory_order_acquire))
			return;
		nanosleep(&ms, NULL);
	}
}

/* ---- set-up --------------------------------------------------------------------------------- */

/* Bytes of the file's name, without the options behind it. */
static size_t name_length(const struct weft_lane_conf *conf)
{
	size_t len = conf->recorder_file ? strlen(conf->recorder_file) : 0;
	size_t end = sizeof(WITH_MESSAGES) - 1;

	return len >= end && !strcmp(conf->recorder_file + len - end, WITH_MESSAGES) ? len - end
										     : len;
}

bool weft_recorder_has_messages(const struct weft_lane_conf *conf)
{
	return conf->recorder_file && conf->recorder_file[name_length(conf)] != '\0';
}

static void setup_paths(const struct weft_lane_conf *conf)
{
	if (name_length(conf) > 0)
		snprintf(file_name, sizeof(file_name), "%.*s", (int)name_length(conf),
			 conf->recorder_file);
	else
		folder_error = weft_recorder_folder_find(folder, sizeof(folder));
	prune_files(); /* a signal handler of an earlier process could not */
	atexit(weft_recorder_settle);
}

void weft_recorder_setup(const struct weft_lane_conf *conf)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool done;

	pthread_mutex_lock(&lock);
	if (!done)
		setup_paths(conf);
	done = true;
	pthread_mutex_unlock(&lock);
}
