/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "capture/pcapng.h"
#include "base/platform_host.h"

/* What is captured reaches the file after this long at the latest, if the owner polls. */
#define FLUSH_NS 100000000ull
#define IDLE_POLLS 4096u
#define MAX_SEGS 64u

/* A file; it stays open until the process ends, so that a later worker goes on in it. */
struct file {
	LIST_ENTRY(file) entry;
	char name[4096];
	struct weft_pcapng *pcapng;
	pthread_mutex_t lock;
	uint64_t flush_at; /* ns, real */
	bool failed;
};

struct captured {
	struct weft_frame_port fp; /* first */
	struct weft_frame_port *inner;
	struct file *file;
	const struct weft_platform *platform;
	uint64_t offset; /* from the platform's time to that of the file */
	uint32_t interface;
	uint32_t polls;
};

static LIST_HEAD(, file) files = LIST_HEAD_INITIALIZER(files);
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- files ---------------------------------------------------------------------------------- */

static void expand(const char *name, char *buf, size_t size)
{
	size_t at = 0;

	for (; *name && at + 1 < size; name++) {
		if (name[0] == '%' && name[1] == 'p') {
			at += (size_t)snprintf(buf + at, size - at, "%d", (int)getpid());
			name++;
		} else {
			buf[at++] = *name;
		}
	}
	buf[at < size ? at : size - 1] = '\0';
}

/* A file that was there before: readers of what comes now are ours to choose, not its maker's. */
static int make_ours(int fd, const char *name, char *why, size_t why_len)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return 0;
	if (st.st_uid != geteuid()) {
		snprintf(why, why_len,
			 "WEFT_CAPTURE: %s belongs to user %u, who could read all frames: remove "
			 "it, or give another name",
			 name, st.st_uid);
		return -EPERM;
	}
	if (st.st_mode & 077 && fchmod(fd, 0600)) {
		snprintf(why, why_len,
			 "WEFT_CAPTURE: others can read %s, and that can't be changed (%s)", name,
			 strerror(errno));
		return -EPERM;
	}
	return 0;
}

static int create(const char *name, char *why, size_t why_len)
{
	/* Frames hold secrets and keys. A link here was perhaps laid by somebody else. */
	int fd = open(name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), rc;

	if (fd < 0 && errno == ELOOP) {
		snprintf(why, why_len,
			 "WEFT_CAPTURE: %s is a symbolic link, which is not followed: give the "
			 "file's own name",
			 name);
		return -ELOOP;
	}
	if (fd < 0) {
		rc = -errno;
		snprintf(why, why_len, "WEFT_CAPTURE: %s can't be written (%s)", name,
			 strerror(-rc));
		return rc;
	}
	rc = make_ours(fd, name, why, why_len);
	if (rc) {
		close(fd);
		return rc;
	}
	/* Two processes in one file would spoil it for both. */
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		snprintf(why, why_len,
			 "WEFT_CAPTURE: another process is writing %s; with %%p in the name each "
			 "writes "
			 "its own",
			 name);
		close(fd);
		return -EBUSY;
	}
	if (ftruncate(fd, 0) && errno != EINVAL) {
		rc = -errno;
		snprintf(why, why_len, "WEFT_CAPTURE: %s can't be made anew (%s)", name,
			 strerror(-rc));
		close(fd);
		return rc;
	}
	return fd;
}

static struct file *file_make(const char *name, int *rc, char *why, size_t why_len)
{
	struct file *f = calloc(1, sizeof(*f));
	int fd;

	*rc = -ENOMEM;
	snprintf(why, why_len, "WEFT_CAPTURE: no memory");
	if (!f)
		return NULL;
	fd = create(name, why, why_len);
	if (fd < 0) {
		*rc = fd;
		free(f);
		return NULL;
	}
	f->pcapng = weft_pcapng_open(fd, "weft");
	if (!f->pcapng) {
		close(fd);
		free(f);
		return NULL;
	}
	snprintf(f->name, sizeof(f->name), "%s", name);
	pthread_mutex_init(&f->lock, NULL);
	LIST_INSERT_HEAD(&files, f, entry);
	return f;
}

static struct file *file_get(const char *name, int *rc, char *why, size_t why_len)
{
	char full[sizeof(((struct file *)0)->name)];
	struct file *f;

	expand(name, full, sizeof(full));
	pthread_mutex_lock(&files_lock);
	LIST_FOREACH(f, &files, entry)
		if (!strcmp(f->name, full))
			break;
	if (!f)
		f = file_make(full, rc, why, why_len);
	pthread_mutex_unlock(&files_lock);
	return f;
}

/* With the file's lock. */
static void flush(struct file *f, uint64_t now)
{
	int rc = weft_pcapng_flush(f->pcapng);

	f->flush_at = now + FLUSH_NS;
	if (!rc || f->failed)
		return;
	f->failed = true;
	weft_error("WEFT_CAPTURE: %s can't be written any more (%s): the capture ends here",
		   f->name, strerror(-rc));
}

/* ---- frames --------------------------------------------------------------------------------- */

static uint64_t time_of_file(const struct captured *c)
{
	return c->platform->now(c->platform->arg) + c->offset;
}

static void record(struct captured *c, struct rte_mbuf *const *pkts, uint16_t n,
		   enum weft_pcapng_direction direction)
{
	uint64_t now = time_of_file(c);
	struct iovec iov[MAX_SEGS];
	const struct rte_mbuf *m;
	unsigned int segs;
	uint16_t i;

	pthread_mutex_lock(&c->file->lock);
	for (i = 0; i < n; i++) {
		segs = 0;
		for (m = pkts[i]; m && segs < MAX_SEGS; m = m->next) {
			iov[segs].iov_base = rte_pktmbuf_mtod(m, void *);
			iov[segs++].iov_len = m->data_len;
		}
		weft_pcapng_packet(c->file->pcapng, c->interface, direction, now, iov, segs);
	}
	if (now >= c->file->flush_at)
		flush(c->file, now);
	pthread_mutex_unlock(&c->file->lock);
}

/* Nothing comes, so nothing would be written: look at the clock now and then. */
static void idle(struct captured *c)
{
	uint64_t now;

	if (++c->polls % IDLE_POLLS)
		return;
	now = time_of_file(c);
	pthread_mutex_lock(&c->file->lock);
	if (now >= c->file->flush_at && weft_pcapng_pending(c->file->pcapng))
		flush(c->file, now);
	pthread_mutex_unlock(&c->file->lock);
}

static struct captured *captured_of(struct weft_frame_port *fp)
{
	return (struct captured *)fp;
}

static uint16_t captured_rx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct captured *c = captured_of(fp);
	uint16_t got = c->inner->ops->rx_burst(c->inner, pkts, n);

	if (got)
		record(c, pkts, got, WEFT_PCAPNG_IN);
	else
		idle(c);
	fp->event = c->inner->event;
	return got;
}

/*
 * The port frees what it sends, and says only afterwards how much that is: hold on to all of it
 * meanwhile.
 */
static uint16_t captured_tx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct captured *c = captured_of(fp);
	uint16_t i, sent, done = 0, part;
	struct rte_mbuf *held[32];

	do {
		part = RTE_MIN((uint16_t)(n - done), (uint16_t)RTE_DIM(held));
		for (i = 0; i < part; i++) {
			held[i] = pkts[done + i];
			rte_pktmbuf_refcnt_update(held[i], 1);
		}
		sent = c->inner->ops->tx_burst(c->inner, pkts + done, part);
		if (sent)
			record(c, held, sent, WEFT_PCAPNG_OUT);
		for (i = 0; i < part; i++)
			rte_pktmbuf_free(held[i]);
		done += sent;
	} while (sent == part && done < n);
	return done;
}

static void captured_kick(struct weft_frame_port *fp)
{
	struct weft_frame_port *inner = captured_of(fp)->inner;

	if (inner->ops->tx_kick)
		inner->ops->tx_kick(inner);
}

static bool captured_tx_done(struct weft_frame_port *fp)
{
	struct weft_frame_port *inner = captured_of(fp)->inner;

	return inner->ops->tx_done(inner);
}

static int captured_mem_map(struct weft_frame_port *fp, void *addr, size_t len,
			    struct weft_mem_lane **mem, char *why, size_t why_len)
{
	struct weft_frame_port *inner = captured_of(fp)->inner;

	return inner->ops->mem_map(inner, addr, len, mem, why, why_len);
}

static bool captured_link_up(struct weft_frame_port *fp)
{
	struct weft_frame_port *inner = captured_of(fp)->inner;

	return inner->ops->link_up(inner);
}

static void captured_link_text(struct weft_frame_port *fp, char *buf, size_t size)
{
	weft_frame_port_link_text(captured_of(fp)->inner, buf, size);
}

static enum weft_frame_port_what captured_look(struct weft_frame_port *fp,
					       struct weft_frame_port_event *event)
{
	struct weft_frame_port *inner = captured_of(fp)->inner;
	enum weft_frame_port_what what = WEFT_FRAME_PORT_NOTHING;

	if (inner->ops->look)
		what = inner->ops->look(inner, event);
	fp->event = inner->event;
	fp->bandwidth = inner->bandwidth;
	fp->flags = inner->flags;
	return what;
}

static void captured_counters(struct weft_frame_port *fp, weft_frame_port_counter_cb cb, void *arg)
{
	struct weft_frame_port *inner = captured_of(fp)->inner;

	inner->ops->counters(inner, cb, arg);
}

static void captured_close(struct weft_frame_port *fp)
{
	struct captured *c = captured_of(fp);

	pthread_mutex_lock(&c->file->lock);
	flush(c->file, time_of_file(c));
	pthread_mutex_unlock(&c->file->lock);
	c->inner->ops->close(c->inner);
	free(c);
}

static const struct weft_frame_port_ops captured_ops = {
	.rx_burst = captured_rx,
	.tx_burst = captured_tx,
	.tx_kick = captured_kick,
	.tx_done = captured_tx_done,
	.mem_map = captured_mem_map,
	.link_up = captured_link_up,
	.link_text = captured_link_text,
	.look = captured_look,
	.counters = captured_counters,
	.close = captured_close,
};

/* ---- set-up --------------------------------------------------------------------------------- */

static uint64_t real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void add_interface(struct captured *c, uint64_t worker_id)
{
	char name[160], about[192];

	snprintf(name, sizeof(name), "dpdk:%s (%s)", c->fp.name, c->fp.device);
	snprintf(about, sizeof(about),
		 "raw lane of worker %016" PRIx64 ", frames of up to %u bytes", worker_id,
		 c->fp.frame_size);
	pthread_mutex_lock(&c->file->lock);
	c->interface = weft_pcapng_interface(c->file->pcapng, name, about, c->fp.mac,
					     (uint64_t)(c->fp.bandwidth * 8));
	pthread_mutex_unlock(&c->file->lock);
}

int weft_capture_port(const char *file, const struct weft_platform *platform, uint64_t worker_id,
		      struct weft_frame_port *port, struct weft_frame_port **out, char *why,
		      size_t why_len)
{
	struct captured *c = calloc(1, sizeof(*c));
	int rc = -ENOMEM;

	if (!c) {
		snprintf(why, why_len, "WEFT_CAPTURE: no memory");
		return rc;
	}
	c->file = file_get(file, &rc, why, why_len);
	if (!c->file) {
		free(c);
		return rc;
	}
	c->fp = *port;
	c->fp.ops = &captured_ops;
	c->inner = port;
	c->platform = platform;
	if (platform == &weft_platform_host)
		c->offset = real_ns() - platform->now(platform->arg);
	add_interface(c, worker_id);
	*out = &c->fp;
	return 0;
}
