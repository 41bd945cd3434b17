/* SPDX-License-Identifier: BSD-3-Clause */
/* The flight recorder: its frames in memory, and the files into which they are written. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/host.h"
#include "base/log.h"
#include "capture/capture_file.h"
#include "capture/recorder.h"
#include "capture/tap.h"

/* ---- recording ------------------------------------------------------------------------------ */

#define FRAMES_MIN 128u
/* A burst that is not committed yet overwrites at most this many of the oldest frames. */
#define MARGIN 32u

static _Atomic(struct weft_recorder *) pool[WEFT_RECORDERS];
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER; /* held to open a recorder */

/* Recorder @p i, counted from 0; NULL: there are no more. */
static struct weft_recorder *recorder_at(unsigned int i)
{
	return i < WEFT_RECORDERS ? atomic_load_explicit(&pool[i], memory_order_acquire) : NULL;
}

/* ---- writing records that are in pieces ----------------------------------------------------- */

void weft_recorder_put_bytes(struct weft_recorder *r, unsigned int behind, const struct iovec *iov,
			     unsigned int num, uint32_t len, enum weft_pcapng_direction direction,
			     uint64_t now)
{
	/* Relaxed: only this thread changes head. */
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed) + behind, word;
	struct weft_recorder_slot *s = &r->slots[head & r->mask];
	uint8_t bytes[WEFT_RECORDER_BYTES] = {0};
	uint64_t have = 0, n;
	unsigned int i;

	for (i = 0; i < num; i++) {
		n = RTE_MIN(iov[i].iov_len, sizeof(bytes) - have);
		memcpy(bytes + have, iov[i].iov_base, n);
		have += n;
	}
	/* Release: as in weft_recorder_put(). */
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&s->time, now << 2 | direction, memory_order_relaxed);
	atomic_store_explicit(&s->lengths, len | have << 32, memory_order_relaxed);
	for (i = 0; i < WEFT_RECORDER_WORDS; i++) {
		memcpy(&word, bytes + i * sizeof(word), sizeof(word));
		atomic_store_explicit(&s->word[i], word, memory_order_relaxed);
	}
}

/* ---- marks ---------------------------------------------------------------------------------- */

/*
 * Marks of a frame, above its lengths: the pause before the next progress call, and whether it is
 * damaged. The lane's thread makes them after it has committed the frame, so a reader may miss one.
 */
#define PAUSE_SHIFT 48
#define PAUSE_BITS 15
#define PAUSE_MOST ((1ull << PAUSE_BITS) - 1)
#define PAUSE_UNIT 65536u /* ns */
#define DAMAGED (1ull << 63)

#define CALL_FRAMES 256u /* frames of one progress call that can be marked */

/* @return the frame @p back places before the newest one; NULL = it is not of call @p call */
static struct weft_recorder_slot *slot_of(struct weft_recorder *r, uint64_t back, uint64_t call)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	uint64_t have = head - atomic_load_explicit(&r->begin, memory_order_relaxed);
	struct weft_recorder_slot *s;

	if (back >= CALL_FRAMES || back >= have || back > r->mask)
		return NULL;
	s = &r->slots[(head - 1 - back) & r->mask];
	return atomic_load_explicit(&s->time, memory_order_relaxed) >> 2 == call ? s : NULL;
}

static void mark(struct weft_recorder_slot *s, uint64_t bits)
{
	/* Relaxed: only this thread writes. A reader that has read `lengths` before has no mark. */
	atomic_store_explicit(&s->lengths,
			      atomic_load_explicit(&s->lengths, memory_order_relaxed) | bits,
			      memory_order_relaxed);
}

void weft_recorder_pause(struct weft_recorder *r, uint64_t call, uint64_t ns)
{
	uint64_t units = RTE_MIN((ns + PAUSE_UNIT - 1) / PAUSE_UNIT, PAUSE_MOST), i;
	struct weft_recorder_slot *s;

	for (i = 0; (s = slot_of(r, i, call)); i++)
		mark(s, units << PAUSE_SHIFT);
}

void weft_recorder_damaged(struct weft_recorder *r, const struct iovec *iov, unsigned int num,
			   uint64_t call)
{
	uint8_t bytes[WEFT_RECORDER_BYTES];
	size_t have = 0, n;
	struct weft_recorder_slot *s;
	uint64_t i;

	for (i = 0; i < num; i++) {
		n = RTE_MIN(iov[i].iov_len, sizeof(bytes) - have);
		memcpy(bytes + have, iov[i].iov_base, n);
		have += n;
	}
	for (i = 0; (s = slot_of(r, i, call)); i++)
		if ((s->time & 3) == WEFT_PCAPNG_IN && !(s->lengths & DAMAGED) &&
		    !memcmp((const void *)s->word, bytes, have))
			break;
	if (s)
		mark(s, DAMAGED);
}

/* ---- reading: any thread, a signal handler too ---------------------------------------------- */

static void copy_slot(struct weft_recorder_slot *to, struct weft_recorder_slot *from)
{
	_Atomic uint64_t *d = (_Atomic uint64_t *)to, *s = (_Atomic uint64_t *)from;
	unsigned int i;

	for (i = 0; i < sizeof(*to) / sizeof(*d); i++)
		atomic_store_explicit(&d[i], atomic_load_explicit(&s[i], memory_order_relaxed),
				      memory_order_relaxed);
}

/*
 * Copy the recorded frames. Any thread, or a signal handler; one at a time.
 * @param[out] from, to  frames [from, to) are in r->copy, each at its number & mask
 */
static void recorder_snapshot(struct weft_recorder *r, uint64_t *from, uint64_t *to)
{
	uint64_t begin = atomic_load_explicit(&r->begin, memory_order_relaxed), i, now;
	uint64_t frames = r->mask + 1;

	/* Acquire: the words of all frames before head. */
	*to = atomic_load_explicit(&r->head, memory_order_acquire);
	*from = *to > begin + frames ? *to - frames : begin;
	for (i = *from; i < *to; i++)
		copy_slot(&r->copy[i & r->mask], &r->slots[i & r->mask]);
	/* Acquire: if a word was overwritten, the head of that time or a later one is seen now. */
	atomic_thread_fence(memory_order_acquire);
	now = atomic_load_explicit(&r->head, memory_order_relaxed) + MARGIN;
	if (now > frames && now - frames > *from)
		*from = now - frames;
	if (*from > *to)
		*from = *to;
}

/* ---- the folder of the files ---------------------------------------------------------------- */

#define PREFIX "recorder-"
#define SUFFIX ".pcapng"
#define TRIES 16u

int weft_recorder_folder_find(char *path, size_t size)
{
	const char *tmp = secure_getenv("TMPDIR");
	char found[WEFT_USER_FOLDER], why[256];
	int rc;

	if (tmp && tmp[0]) {
		if (weft_user_folder(geteuid(), tmp, path, size))
			return 0;
		snprintf(path, size,
			 "%s/weft-%u is no folder that this user owns and no other user can write "
			 "to: set TMPDIR, or WEFT_RECORDER_FILE",
			 tmp, (unsigned int)geteuid());
		return -EACCES;
	}
	rc = weft_user_folder_find(found, why, sizeof(why));
	snprintf(path, size, "%s", rc ? why : found);
	return rc;
}

int weft_recorder_folder_create(const char *folder, char *name, size_t size)
{
	unsigned int i;
	uint64_t id;
	int fd;

	for (i = 0; i < TRIES; i++) {
		if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != sizeof(id))
			id = i; /* names only have to differ */
		snprintf(name, size, "%s/" PREFIX "%d-%016llx" SUFFIX, folder, (int)getpid(),
			 (unsigned long long)id);
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			break;
	}
	i = (unsigned int)errno;
	snprintf(name, size, "no file can be made in %s (%s)", folder, strerror((int)i));
	return -(int)i;
}

struct old_file {
	struct timespec when;
	uint64_t bytes;
	char name[64];
};

static bool is_ours(const char *name)
{
	size_t len = strlen(name);

	return len < sizeof(((struct old_file *)NULL)->name) &&
	       !strncmp(name, PREFIX, sizeof(PREFIX) - 1) && len > sizeof(SUFFIX) &&
	       !strcmp(name + len - (sizeof(SUFFIX) - 1), SUFFIX);
}

static int newest_first(const void *a, const void *b)
{
	const struct old_file *x = a, *y = b;

	if (x->when.tv_sec != y->when.tv_sec)
		return x->when.tv_sec < y->when.tv_sec ? 1 : -1;
	if (x->when.tv_nsec != y->when.tv_nsec)
		return x->when.tv_nsec < y->when.tv_nsec ? 1 : -1;
	return 0;
}

/* @return number of files in @p list, which the caller frees */
static size_t list_files(DIR *dir, struct old_file **list)
{
	struct old_file *more;
	const struct dirent *e;
	size_t n = 0;
	struct stat st;

	*list = NULL;
	while ((e = readdir(dir))) {
		if (!is_ours(e->d_name) || fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
			continue;
		/* The array grows by powers of two. */
		more = n & (n - 1) ? *list : realloc(*list, (n ? 2 * n : 1) * sizeof(*more));
		if (!more)
			break;
		*list = more;
		more[n].when = st.st_mtim;
		more[n].bytes = (uint64_t)st.st_size;
		memcpy(more[n].name, e->d_name, strlen(e->d_name) + 1);
		n++;
	}
	return n;
}

void weft_recorder_folder_prune(const char *folder, unsigned int files, uint64_t bytes)
{
	struct old_file *list;
	DIR *dir = opendir(folder);
	uint64_t sum = 0;
	size_t i, n;

	if (!dir)
		return;
	n = list_files(dir, &list);
	if (n > 1)
		qsort(list, n, sizeof(*list), newest_first);
	for (i = 0; i < n; i++) {
		sum += list[i].bytes;
		if (i > 0 && (i >= files || sum > bytes))
			unlinkat(dirfd(dir), list[i].name, 0);
	}
	free(list);
	closedir(dir);
}

/* ---- files ---------------------------------------------------------------------------------- */

/* The flight recorder's frames are written to a file on an error, by a call, or by a command. */

#define ERRORS_MAX 8u
#define ERRORS_APART_NS 10000000000ull
#define WITH_MESSAGES ",messages" /* WEFT_RECORDER_FILE may have it after the name */
#define EXIT_WAIT_MS 2000u

/* Files are written one at a time. The thread that set `writing` owns `out` to `reason_text`. */
static atomic_bool writing;
static struct weft_pcapng out;
static struct source {
	struct weft_recorder *r;
	/* from[0] is the next frame received, from[1] the next one sent: see time_of(). */
	uint64_t from[2], to, offset;
} sources[WEFT_RECORDERS];
static unsigned int num_sources;
static char reason_text[320];
static uint64_t host; /* number of the running system; 0 = not known */

static char file_name[512]; /* with %p and %n not replaced; "" = a new file in the folder */
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

static const struct weft_recorder_slot *slot_at(const struct source *s, uint64_t i)
{
	return &s->r->copy[i & s->r->mask];
}

static void take_snapshot(const char *reason)
{
	const struct weft_platform *real = &weft_platform_host;
	uint64_t offset = 0, until = real->now(real->arg);
	struct source *s;

	snprintf(reason_text, sizeof(reason_text), "flight recorder: %s", reason);
	for (num_sources = 0; num_sources < WEFT_RECORDERS; num_sources++) {
		s = &sources[num_sources];
		s->r = recorder_at(num_sources);
		if (!s->r)
			break;
		/* Once: the recorders of a process have one clock, see writer.c. */
		if (s->r->platform == real && !offset)
			offset = weft_capture_offset(real);
		s->offset = s->r->platform == real ? offset : 0;
		recorder_snapshot(s->r, &s->from[0], &s->to);
		/*
		 * This thread may lose its core between the snapshots of two lanes. Without a
		 * common end the first lane would seem to have received nothing in that time.
		 */
		while (s->r->platform == real && s->to > s->from[0] &&
		       slot_at(s, s->to - 1)->time >> 2 > until)
			s->to--;
		s->from[1] = s->from[0];
	}
}

/*
 * All frames of a progress call have the time at which it began. A received frame came before the
 * call polled, and a sent one left before the next call. An unmarked pause is at most NOT_MARKED,
 * unless the thread slept.
 */
#define NOT_MARKED 100000u
#define STATED 11000u /* ns: above SHORT_NS of capture_file.c, so that the comment has it */

/* @return ns from the frame's call to the next one, by its mark; or @p least without a mark */
static uint64_t pause_of(const struct source *s, uint64_t i, uint64_t least)
{
	uint64_t call = slot_at(s, i)->time >> 2, next = call;
	uint64_t units = slot_at(s, i)->lengths >> PAUSE_SHIFT & PAUSE_MOST;

	if (!units && !least)
		return 0;
	while (++i < s->to && next == call)
		next = slot_at(s, i)->time >> 2;
	least = units ? units * PAUSE_UNIT : least;
	return next > call ? RTE_MIN(least, next - call) : least;
}

/* Skips frames of the other direction. @return whether there is one */
static bool is_next(struct source *s, unsigned int way)
{
	while (s->from[way] < s->to && (slot_at(s, s->from[way])->time & 3) != WEFT_PCAPNG_IN + way)
		s->from[way]++;
	return s->from[way] < s->to;
}

/*
 * A received frame gets the latest time at which it can have come: with an earlier one it might
 * come before it was sent. A sent frame gets the earliest time.
 */
static uint64_t time_of(const struct source *s, unsigned int way)
{
	uint64_t i = s->from[way];

	return (slot_at(s, i)->time >> 2) + (way == 0 ? pause_of(s, i, 0) : 0) + s->offset;
}

/* @return the source whose next frame is the oldest; num_sources if there is none */
static unsigned int oldest_source(unsigned int *way)
{
	unsigned int i, k, found = num_sources;
	uint64_t t, least = UINT64_MAX;

	for (i = 0; i < num_sources; i++) {
		for (k = 0; k < 2; k++) {
			if (!is_next(&sources[i], k))
				continue;
			t = time_of(&sources[i], k);
			if (t < least || found == num_sources) {
				least = t;
				found = i;
				*way = k;
			}
		}
	}
	return found;
}

static void write_history(const struct source *s, unsigned int interface)
{
	static char text[WEFT_HISTORY_TEXT]; /* of the thread that has set `writing` */

	for (unsigned int i = 0; i < WEFT_HISTORY_LINES; i++)
		if (weft_history_text(s->r->history, i, s->offset, text, sizeof(text)))
			weft_pcapng_note(&out, interface, 0, text);
}

static void write_frame(struct source *s, unsigned int interface, unsigned int way)
{
	uint64_t i = s->from[way], lengths = slot_at(s, i)->lengths, within;
	char comment[96];
	struct weft_pcapng_packet p = {
		.interface = interface,
		.direction = (enum weft_pcapng_direction)(WEFT_PCAPNG_IN + way),
		.damaged = lengths & DAMAGED,
		.time_ns = time_of(s, way),
		.data = (const void *)slot_at(s, i)->word,
		.caplen = RTE_MIN((uint16_t)(lengths >> 32), WEFT_RECORDER_BYTES),
		.len = (uint32_t)lengths,
		.comment = comment,
	};

	within = way == 0 ? pause_of(s, i, 0) : RTE_MAX(pause_of(s, i, NOT_MARKED), STATED);
	weft_capture_describe(s->r->name, p.data, s->r->link == WEFT_PCAPNG_ETHERNET ? p.caplen : 0,
			      within, comment, sizeof(comment));
	weft_pcapng_packet(&out, &p);
	s->from[way]++;
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
	unsigned int i, way = 0;
	char full[512];
	int fd, rc;

	fd = open_file(name, size);
	if (fd < 0)
		return fd;
	weft_pcapng_begin(&out, fd, reason_text, host);
	for (i = 0; i < num_sources; i++)
		weft_pcapng_interface(&out, sources[i].r->link, sources[i].r->name,
				      sources[i].r->about, sources[i].r->mac, sources[i].r->speed,
				      WEFT_RECORDER_BYTES);
	for (i = 0; i < num_sources; i++)
		write_history(&sources[i], i);
	while ((i = oldest_source(&way)) < num_sources)
		write_frame(&sources[i], i, way);
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

	if (!recorder_at(0)) {
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

int weft_recorder_file_command(const char *reason, char *name, size_t size)
{
	int rc = weft_recorder_file_write(reason, name, size);

	if (!rc)
		prune_files();
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
	if (!recorder_at(0) || !write_is_due() || !writer_lock())
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

/* Bytes of the file's name, without WITH_MESSAGES. */
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
	prune_files(); /* weft_recorder_write() removes none */
	atexit(weft_recorder_settle);
}

/* Set the files' name or folder, from the configuration of the first lane. */
static void recorder_setup(const struct weft_lane_conf *conf, const struct weft_platform *platform)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool done;

	pthread_mutex_lock(&lock);
	if (!done && platform == &weft_platform_host)
		host = platform->host_id(platform->arg);
	if (!done)
		setup_paths(conf);
	done = true;
	pthread_mutex_unlock(&lock);
}

/* ---- lifetime ------------------------------------------------------------------------------- */

static void recorder_free(struct weft_recorder *r)
{
	free(r->slots);
	free(r->history);
	free(r->copy);
	free(r);
}

static struct weft_recorder *recorder_new(uint64_t frames)
{
	struct weft_recorder *r = calloc(1, sizeof(*r));
	size_t size = frames * sizeof(*r->slots);

	if (!r)
		return NULL;
	r->mask = frames - 1;
	r->slots = aligned_alloc(64, size);
	r->copy = aligned_alloc(64, size);
	r->history = calloc(1, sizeof(*r->history));
	if (!r->slots || !r->copy || !r->history) {
		recorder_free(r);
		return NULL;
	}
	memset(r->slots, 0, size);
	return r;
}

/* Under pool_lock. @return a closed lane's recorder of this size, else a new one; NULL: none */
static struct weft_recorder *recorder_get(uint64_t frames)
{
	struct weft_recorder *r;
	unsigned int i;

	for (i = 0; i < WEFT_RECORDERS; i++) {
		r = atomic_load_explicit(&pool[i], memory_order_relaxed);
		if (!r)
			return recorder_new(frames);
		/* Acquire: all that its last lane has written. */
		if (r->mask == frames - 1 && !atomic_load_explicit(&r->open, memory_order_acquire))
			return r;
	}
	return NULL;
}

static void recorder_publish(struct weft_recorder *r)
{
	unsigned int i;

	for (i = 0; atomic_load_explicit(&pool[i], memory_order_relaxed); i++)
		if (atomic_load_explicit(&pool[i], memory_order_relaxed) == r)
			return;
	/* Release: the recorder is complete before other threads see it. */
	atomic_store_explicit(&pool[i], r, memory_order_release);
}

struct weft_recorder *weft_recorder_open(const struct weft_lane_conf *conf,
					 const struct weft_platform *platform,
					 const struct weft_tap *tap)
{
	struct weft_recorder *r;
	uint64_t frames = FRAMES_MIN;

	if (!conf->recorder)
		return NULL;
	while (frames < conf->recorder)
		frames *= 2;
	recorder_setup(conf, platform);
	pthread_mutex_lock(&pool_lock);
	r = recorder_get(frames);
	if (r) {
		snprintf(r->name, sizeof(r->name), "%s", tap->name);
		snprintf(r->about, sizeof(r->about), "%s", tap->about);
		memcpy(r->mac, tap->mac, sizeof(r->mac));
		r->speed = tap->speed;
		r->link = tap->link;
		r->platform = platform;
		weft_history_reset(r->history);
		atomic_store_explicit(&r->begin,
				      atomic_load_explicit(&r->head, memory_order_relaxed),
				      memory_order_relaxed);
		atomic_store_explicit(&r->open, true, memory_order_relaxed);
		recorder_publish(r);
	}
	pthread_mutex_unlock(&pool_lock);
	if (!r)
		weft_log(
			WEFT_LOG_WARN,
			"%s: no memory for a flight recorder of %" PRIu64
			" frames, or %u lanes have one: this lane has none; WEFT_RECORDER sets the "
			"number of frames",
			tap->name, frames, WEFT_RECORDERS);
	return r;
}

void weft_recorder_close(struct weft_recorder *r)
{
	/* Release: the next lane of this recorder goes on after the frames of this one. */
	if (r)
		atomic_store_explicit(&r->open, false, memory_order_release);
}
