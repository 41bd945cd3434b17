/* SPDX-License-Identifier: BSD-3-Clause */

/* Files of captures and the flight recorder, comments of frames, threads; options and filters. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pcap/pcap.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_ether.h>
#include <rte_lcore.h>

#include "base/text.h"
#include "base/thread.h"
#include "capture/capture_file.h"
#include "frame/frame.h"

/* ---- files ---------------------------------------------------------------------------------- */

/*
 * An existing file is used only if it belongs to this user: its owner could read the frames. FIFOs
 * and devices may belong to root, too (/dev/null), since root reads everything anyway.
 */
static int make_ours(int fd, const char *name, char *why, size_t why_len)
{
	struct stat st;
	int rc;

	if (fstat(fd, &st)) {
		rc = -errno;
		snprintf(why, why_len, "the owner of the file %s can't be found (%s)", name,
			 strerror(-rc));
		return rc;
	}
	if (st.st_uid != geteuid() && (S_ISREG(st.st_mode) || st.st_uid != 0)) {
		snprintf(why, why_len,
			 "%s belongs to user %u, which could read all frames: remove it, or give "
			 "another name",
			 name, st.st_uid);
		return -EPERM;
	}
	if (S_ISBLK(st.st_mode)) {
		snprintf(why, why_len, "%s is a disk: give the name of a file", name);
		return -EINVAL;
	}
	if (!S_ISREG(st.st_mode))
		return 0;
	if (st.st_mode & 077 && fchmod(fd, 0600)) {
		snprintf(why, why_len, "others can read %s, and that can't be changed (%s)", name,
			 strerror(errno));
		return -EPERM;
	}
	/* Two processes that write one file would corrupt it for both. */
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		snprintf(
			why, why_len,
			"another capture is being written to %s; with %%p in the name each process "
			"writes its own",
			name);
		return -EBUSY;
	}
	return 0;
}

int weft_capture_file_open(const char *name, char *why, size_t why_len)
{
	/* O_NOFOLLOW: another user may have made a link. O_NONBLOCK: a FIFO may have no reader. */
	int rc, fd = open(name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
			  0600);

	if (fd < 0) {
		rc = -errno;
		if (rc == -ELOOP)
			snprintf(
				why, why_len,
				"%s is a symbolic link, which is not followed: give the file's own "
				"name",
				name);
		else if (rc == -ENXIO)
			snprintf(why, why_len,
				 "%s is a FIFO without a reader: start the reader first", name);
		else
			snprintf(why, why_len, "%s can't be written (%s)", name, strerror(-rc));
		return rc;
	}
	rc = make_ours(fd, name, why, why_len);
	if (!rc && ftruncate(fd, 0) && errno != EINVAL) {
		rc = -errno;
		snprintf(why, why_len, "%s can't be truncated (%s)", name, strerror(-rc));
	}
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

bool weft_capture_file_has_name(int fd, const char *name)
{
	struct stat ours, named;

	if (fstat(fd, &ours))
		return true;
	if (lstat(name, &named))
		return errno != ENOENT;
	return ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

int weft_capture_file_shift_names(const char *name, unsigned int files)
{
	char from[640], to[640];
	unsigned int i;

	for (i = files - 1; i > 0; i--) {
		snprintf(to, sizeof(to), "%s.%u", name, i);
		if (i > 1)
			snprintf(from, sizeof(from), "%s.%u", name, i - 1);
		else
			snprintf(from, sizeof(from), "%s", name);
		if (rename(from, to) && errno != ENOENT)
			return -errno;
	}
	return 0;
}

/* ---- time of day ---------------------------------------------------------------------------- */

uint64_t weft_capture_offset(const struct weft_platform *pf)
{
	uint64_t best = UINT64_MAX, offset = 0, before, after;
	struct timespec ts;
	unsigned int i;

	for (i = 0; i < 8; i++) {
		before = pf->now(pf->arg);
		clock_gettime(CLOCK_REALTIME, &ts);
		after = pf->now(pf->arg);
		if (after - before < best) {
			best = after - before;
			offset = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec - before -
				 best / 2;
		}
	}
	return offset;
}

/* ---- comments of frames --------------------------------------------------------------------- */

#define IP 20u
#define IP6 40u
#define UDP 8u
#define SHORT_NS 10000u /* rx and tx bursts usually take less */

/* @return offset of a lane header, if this is a lane's frame; 0 = other EtherType, or too short */
static size_t lane_header(const uint8_t *p, size_t len)
{
	size_t at = 12;
	uint16_t type;

	if (len < 18)
		return 0;
	type = (uint16_t)(p[at] << 8 | p[at + 1]);
	if (type == RTE_ETHER_TYPE_VLAN) {
		at += 4;
		type = (uint16_t)(p[at] << 8 | p[at + 1]);
	}
	at += 2;
	if (type == RTE_ETHER_TYPE_IPV4)
		at += IP + UDP;
	else if (type == RTE_ETHER_TYPE_IPV6)
		at += IP6 + UDP;
	else if (type != WEFT_FRAME_ETHERTYPE)
		return 0;
	return at + sizeof(struct weft_frame_hdr) <= len ? at : 0;
}

void weft_capture_describe(const char *lane, const void *data, size_t len, uint64_t within,
			   char *buf, size_t size)
{
	size_t at = lane_header(data, len), name = strcspn(lane, " ");
	char path[16] = "", time[40] = "";
	struct weft_frame_hdr h;

	if (at)
		memcpy(&h, (const uint8_t *)data + at, sizeof(h));
	if (at && weft_get16(h.magic) == WEFT_FRAME_MAGIC)
		snprintf(path, sizeof(path), ", path %u", h.path);
	if (within > SHORT_NS)
		snprintf(time, sizeof(time), ", within %" PRIu64 " us", within / 1000);
	snprintf(buf, size, "lane %.*s%s%s", (int)name, lane, path, time);
}

/* ---- threads -------------------------------------------------------------------------------- */

int weft_capture_thread(const char *name, void *(*run)(void *arg), void *arg, pthread_t *thread)
{
	cpu_set_t lcores, lcore;
	unsigned int id;

	CPU_ZERO(&lcores);
	RTE_LCORE_FOREACH(id) {
		lcore = rte_lcore_cpuset(id);
		CPU_OR(&lcores, &lcores, &lcore);
	}
	return weft_thread_start(name, run, arg, &lcores, thread);
}

/* ---- options -------------------------------------------------------------------------------- */

#define RING_MIN (256ull << 10)
#define RING_DEFAULT (16ull << 20)
#define RING_MAX (1ull << 32)
#define SNAPLEN_MIN 64u /* Ethernet, IPv4, UDP, and the beginning of the lane header */
#define SNAPLEN_MAX 262144u
#define FILE_MIN (1ull << 20)
#define FILE_DEFAULT (100ull << 20)
#define FILES_MAX 1000u

void weft_capture_expand(const char *name, unsigned int number, char *buf, size_t size)
{
	size_t at = 0;

	for (; *name && at + 1 < size; name++) {
		if (name[0] == '%' && (name[1] == 'p' || name[1] == 'n')) {
			at += (size_t)snprintf(buf + at, size - at, "%u",
					       name[1] == 'p' ? (unsigned int)getpid() : number);
			name++;
		} else {
			buf[at++] = *name;
		}
	}
	buf[at < size ? at : size - 1] = '\0';
}

/* "64k": digits, with or without a unit. */
static bool to_size(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	static const char units[] = "kMGT";
	unsigned long long v;
	const char *unit;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || v > 1ull << 40)
		return false;
	if (*end) {
		unit = strchr(units, *end == 'm' || *end == 'g' ? *end - 32
				     : *end == 'K'              ? 'k'
								: *end);
		if (!unit || end[1])
			return false;
		v <<= 10 * (unit - units + 1);
	}
	*out = v;
	return v >= min && v <= max;
}

static int parse_option(struct weft_capture_options *o, char *word, char *why, size_t why_len)
{
	char *value = strchr(word, '=');
	uint64_t v = 0;

	if (value)
		*value++ = '\0';
	if (!value || !*value) {
		snprintf(why, why_len, "option '%s' has no value: %s=VALUE", word, word);
	} else if (!strcmp(word, "filter")) {
		if (strlen(value) < sizeof(o->filter)) {
			snprintf(o->filter, sizeof(o->filter), "%s", value);
			return 0;
		}
		snprintf(why, why_len, "option 'filter' takes up to %zu bytes",
			 sizeof(o->filter) - 1);
	} else if (!strcmp(word, "snaplen")) {
		if (to_size(value, SNAPLEN_MIN, SNAPLEN_MAX, &v)) {
			o->snaplen = (uint32_t)v;
			return 0;
		}
		snprintf(why, why_len, "option 'snaplen=%s': bytes of each frame, %u to %u", value,
			 SNAPLEN_MIN, SNAPLEN_MAX);
	} else if (!strcmp(word, "ring")) {
		if (to_size(value, RING_MIN, RING_MAX, &o->ring))
			return 0;
		snprintf(why, why_len, "option 'ring=%s': a size, 256k to 4G", value);
	} else if (!strcmp(word, "size")) {
		if (to_size(value, FILE_MIN, 1ull << 60, &o->size))
			return 0;
		snprintf(why, why_len, "option 'size=%s': a size, 1M or more", value);
	} else if (!strcmp(word, "files")) {
		if (to_size(value, 1, FILES_MAX, &v)) {
			o->files = (uint32_t)v;
			return 0;
		}
		snprintf(why, why_len, "option 'files=%s': how many files are kept, 1 to %u", value,
			 FILES_MAX);
	} else {
		snprintf(why, why_len,
			 "no option is named '%s': there are filter, snaplen, ring, "
			 "size and files",
			 word);
	}
	return -EINVAL;
}

int weft_capture_options_parse(const char *text, struct weft_capture_options *o, char *why,
			       size_t why_len)
{
	char copy[1024], *word, *next;
	int rc;

	*o = (struct weft_capture_options){.snaplen = UINT32_MAX, .ring = RING_DEFAULT};
	if (strlen(text) >= sizeof(copy)) {
		snprintf(why, why_len, "more than %zu bytes", sizeof(copy) - 1);
		return -EINVAL;
	}
	snprintf(copy, sizeof(copy), "%s", text);
	next = copy;
	word = strsep(&next, ",");
	weft_capture_expand(word, 0, o->file, sizeof(o->file));
	if (!o->file[0] || strlen(o->file) == sizeof(o->file) - 1) {
		snprintf(why, why_len,
			 o->file[0] ? "the name of the file is too long" : "no file is named");
		return -EINVAL;
	}
	while ((word = strsep(&next, ","))) {
		rc = parse_option(o, word, why, why_len);
		if (rc)
			return rc;
	}
	if (o->files > 1 && !o->size)
		o->size = FILE_DEFAULT;
	return 0;
}

/* ---- filters -------------------------------------------------------------------------------- */

#define SNAPLEN 262144

struct weft_capture_filter {
	struct bpf_program program;
	atomic_uint users;
};

int weft_capture_filter_make(const char *expression, struct weft_capture_filter **out, char *why,
			     size_t why_len)
{
	struct weft_capture_filter *f;
	pcap_t *p;
	char shown[128];
	int rc = 0;

	*out = NULL;
	if (!expression[0])
		return 0;
	f = calloc(1, sizeof(*f));
	p = pcap_open_dead(DLT_EN10MB, SNAPLEN);
	if (!f || !p) {
		snprintf(why, why_len, "no memory for a filter");
		rc = -ENOMEM;
	} else if (pcap_compile(p, &f->program, expression, 1, PCAP_NETMASK_UNKNOWN)) {
		weft_text_copy(shown, sizeof(shown), expression, strlen(expression));
		snprintf(why, why_len, "filter '%s': %s", shown, pcap_geterr(p));
		rc = -EINVAL;
	}
	if (p)
		pcap_close(p);
	if (rc) {
		free(f);
		return rc;
	}
	atomic_init(&f->users, 1);
	*out = f;
	return 0;
}

struct weft_capture_filter *weft_capture_filter_share(struct weft_capture_filter *f)
{
	/* Relaxed: the caller holds a reference. */
	if (f)
		atomic_fetch_add_explicit(&f->users, 1, memory_order_relaxed);
	return f;
}

void weft_capture_filter_free(struct weft_capture_filter *f)
{
	/* Acquire and release: all other users have finished with the filter. */
	if (!f || atomic_fetch_sub_explicit(&f->users, 1, memory_order_acq_rel) > 1)
		return;
	pcap_freecode(&f->program);
	free(f);
}

bool weft_capture_filter_takes_bytes(const struct weft_capture_filter *f, const void *data,
				     uint32_t caplen, uint32_t len)
{
	struct pcap_pkthdr h = {.caplen = caplen, .len = len};

	return pcap_offline_filter(&f->program, &h, data) != 0;
}

bool weft_capture_filter_takes(const struct weft_capture_filter *f, const struct rte_mbuf *m)
{
	uint32_t caplen =
		m->nb_segs == 1 ? m->data_len : RTE_MIN(m->pkt_len, WEFT_CAPTURE_FILTERED);
	uint8_t copy[WEFT_CAPTURE_FILTERED];
	const uint8_t *data = rte_pktmbuf_read(m, 0, caplen, copy);

	return data && weft_capture_filter_takes_bytes(f, data, caplen, m->pkt_len);
}
