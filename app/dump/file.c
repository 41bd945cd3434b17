/* SPDX-License-Identifier: BSD-3-Clause */

#include <byteswap.h>
#include <errno.h>
#include <inttypes.h>
#include <pcap/pcap.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "dump/file.h"
#include "lane_tap.h"

/* ---- counters of RoCE devices --------------------------------------------------------------- */

#define HEAD "hw_counters "
#define TEXT_MAX 4096u

static struct dump_device_counter *counter_of(struct dump_devices *d, const char *device,
					      const char *port, const char *name, uint64_t value)
{
	struct dump_device_counter *c;

	for (c = d->of; c < d->of + d->num; c++)
		if (!strcmp(c->name, name) && !strcmp(c->port, port) && !strcmp(c->device, device))
			return c;
	if (d->num == DUMP_DEVICE_COUNTERS)
		return NULL;
	d->num++;
	*c = (struct dump_device_counter){.first = value, .last = value};
	snprintf(c->device, sizeof(c->device), "%s", device);
	snprintf(c->port, sizeof(c->port), "%s", port);
	snprintf(c->name, sizeof(c->name), "%s", name);
	return c;
}

/*
 * Read the comment of a statistics block. Counters beyond the table are left out.
 * @return false: the comment is no list of counters
 */
static bool dump_devices_read(struct dump_devices *d, const void *text, size_t len, uint64_t time)
{
	char copy[TEXT_MAX], device[32], port[8], name[40], *word, *rest;
	struct dump_device_counter *c;
	uint64_t value;

	if (len <= strlen(HEAD) || memcmp(text, HEAD, strlen(HEAD)) != 0)
		return false;
	weft_text_copy(copy, sizeof(copy), text, len);
	word = strtok_r(copy + strlen(HEAD), " ", &rest);
	snprintf(device, sizeof(device), "%.31s", word ? word : "?");
	while ((word = strtok_r(NULL, " ", &rest))) {
		if (sscanf(word, "%7[^/]/%39[^=]=%" SCNu64, port, name, &value) != 3)
			continue;
		c = counter_of(d, device, port, name, value);
		if (!c)
			return true;
		/* A device that was reset begins again. */
		if (value < c->last)
			c->first = value;
		if (value > c->last && !c->since)
			c->since = time;
		c->last = value;
	}
	return true;
}

/* ---- pcapng --------------------------------------------------------------------------------- */

/* Blocks of pcapng: sections, interfaces, frames with their direction, statistics of losses. */

enum { SECTION = 0x0a0d0d0a, INTERFACE = 1, SIMPLE = 3, STATISTICS = 5, PACKET = 6 };
enum {
	OPT_END,
	OPT_COMMENT,
	IF_NAME = 2,
	IF_DESCRIPTION = 3,
	SHB_OS = 3,
	SHB_APPLICATION = 4,
	IF_TSRESOL = 9,
	IF_TSOFFSET = 14
};
enum { EPB_FLAGS = 2, EPB_DROPCOUNT = 4, ISB_IFDROP = 5, ISB_OSDROP = 7 };

#define MAGIC 0x1a2b3c4du
#define FLAG_CRC_ERROR (1u << 24)
#define LINK_ETHERNET 1
#define BLOCK_MAX (16u << 20) /* a frame has at most 64 KiB; comments may be longer */
#define NS 1000000000u

/* A block: @p data are the bytes between its two lengths. */
struct block {
	uint32_t type, len;
	const uint8_t *data;
};

/* Set lane to the first word of the name: names of Weft are "dpdk:0 (name of the port)". */
static void dump_iface_lane(struct dump_iface *iface)
{
	weft_text_copy(iface->lane, sizeof(iface->lane), iface->name, strcspn(iface->name, " "));
	if (!iface->lane[0])
		snprintf(iface->lane, sizeof(iface->lane), "?");
}

/* "raw lane of worker 00deadbeef000000, ...": @return 0 = it names none */
static uint64_t worker_of(const char *text, size_t len)
{
	char start[96];
	uint64_t id;

	snprintf(start, sizeof(start), "%.*s", (int)(len < 80 ? len : 80), text);
	return sscanf(start, "raw lane of worker %16" SCNx64, &id) == 1 ? id : 0;
}

static uint32_t get32(const struct dump_file *file, const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return file->swap ? bswap_32(v) : v;
}

static uint16_t get16(const struct dump_file *file, const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return file->swap ? bswap_16(v) : v;
}

static uint64_t get64(const struct dump_file *file, const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return file->swap ? bswap_64(v) : v;
}

__attribute__((format(printf, 2, 3))) static bool damaged(struct dump_file *file, const char *fmt,
							  ...)
{
	size_t at = (size_t)snprintf(file->why, sizeof(file->why), "%s: byte %" PRIu64 ": ",
				     file->name, file->at);
	va_list ap;

	if (at >= sizeof(file->why))
		return false;
	va_start(ap, fmt);
	vsnprintf(file->why + at, sizeof(file->why) - at, fmt, ap);
	va_end(ap);
	return false;
}

static bool make_room(struct dump_file *file, size_t len)
{
	uint8_t *more;

	if (len <= file->room)
		return true;
	more = realloc(file->block, len);
	if (!more)
		return damaged(file, "no memory for a block of %zu bytes", len);
	file->block = more;
	file->room = len;
	return true;
}

/* The first word of a section, which follows its length, indicates its byte order. */
static bool section_order(struct dump_file *file, uint8_t head[12])
{
	uint32_t magic;

	if (fread_unlocked(head + 8, 1, 4, file->f) != 4)
		return damaged(file, "cut short in a section header");
	memcpy(&magic, head + 8, sizeof(magic));
	if (magic != MAGIC && magic != bswap_32(MAGIC))
		return damaged(file, "no pcapng: a section header without its magic");
	file->swap = magic != MAGIC;
	file->section = true;
	return true;
}

static bool read_block(struct dump_file *file, struct block *b)
{
	uint8_t head[12];
	size_t got = fread_unlocked(head, 1, 8, file->f), have = 8;
	uint32_t len;

	if (got == 0 && !ferror(file->f))
		return false; /* the end */
	if (got != 8)
		return damaged(file, "cut short: only %zu of the 8 bytes of a block's head", got);
	memcpy(&b->type, head, sizeof(b->type));
	if (b->type == SECTION) {
		if (!section_order(file, head))
			return false;
		have = 12;
	} else if (!file->section) {
		return damaged(file, "no pcapng: a block before the section header");
	}
	b->type = get32(file, head);
	len = get32(file, head + 4);
	if (len < 12 || len % 4 || len < have + 4 || len > BLOCK_MAX)
		return damaged(
			file,
			"a block claims %u bytes: weft-dump reads multiples of 4 from 12 bytes "
			"to 16 MiB",
			len);
	if (!make_room(file, len))
		return false;
	memcpy(file->block, head, have);
	got = fread_unlocked(file->block + have, 1, len - have, file->f);
	if (got != len - have)
		return damaged(file, "cut short: %zu of the %u bytes of a block", got + have, len);
	if (get32(file, file->block + len - 4) != len)
		return damaged(file, "a block of %u bytes has another length at its end", len);
	b->data = file->block + 8;
	b->len = len - 12;
	return true;
}

/* Read the next option of a list, and advance @p at. @return false: there is none */
static bool option(const struct dump_file *file, const struct block *b, uint32_t *at,
		   uint16_t *code, uint16_t *len, const uint8_t **data)
{
	if (*at > b->len || b->len - *at < 4)
		return false;
	*code = get16(file, b->data + *at);
	*len = get16(file, b->data + *at + 2);
	*data = b->data + *at + 4;
	if (*code == OPT_END || b->len - *at - 4 < *len)
		return false;
	*at += 4 + ((*len + 3u) & ~3u);
	return true;
}

static uint64_t resolution(uint8_t code)
{
	uint64_t units = 1;

	if (code & 0x80)
		return (code & 0x7f) < 64 ? 1ull << (code & 0x7f) : 0;
	if (code > 19)
		return 0;
	while (code--)
		units *= 10;
	return units;
}

static bool add_interface(struct dump_file *file, const struct block *b)
{
	struct dump_iface *i = &file->iface[file->num_ifaces];
	uint32_t at = 8;
	const uint8_t *data;
	uint16_t code, len;

	if (b->len < 8)
		return damaged(file, "an interface block has only %u bytes", b->len + 12);
	if (file->num_ifaces == DUMP_IFACES)
		return damaged(file, "a section has more than %u interfaces", DUMP_IFACES);
	*i = (struct dump_iface){.ethernet = get16(file, b->data) == LINK_ETHERNET,
				 .records = get16(file, b->data) == WEFT_RECORD_LINKTYPE,
				 .snaplen = get32(file, b->data + 4),
				 .per_second = 1000000};
	snprintf(i->name, sizeof(i->name), "%u", file->num_ifaces);
	while (option(file, b, &at, &code, &len, &data)) {
		/* Fields of a fixed length may have zeros behind the name. */
		if (code == IF_NAME)
			weft_text_copy(i->name, sizeof(i->name), data,
				       strnlen((const char *)data, len));
		else if (code == IF_DESCRIPTION)
			i->worker = worker_of((const char *)data, len);
		else if (code == IF_TSRESOL && len == 1)
			i->per_second = resolution(data[0]);
		else if (code == IF_TSOFFSET && len == 8)
			i->offset = (int64_t)get64(file, data);
	}
	dump_iface_lane(i);
	i->sockets = i->worker && !strncmp(i->lane, "udp:", 4);
	if (i->per_second == 0)
		return damaged(file, "the time unit (if_tsresol) of interface %u is not supported",
			       file->num_ifaces);
	if (i->per_second == NS)
		i->per_second = 0;
	file->num_ifaces++;
	return true;
}

static uint64_t to_ns(const struct dump_iface *i, uint64_t t)
{
	if (i->per_second)
		t = t / i->per_second * NS +
		    (uint64_t)((__uint128_t)(t % i->per_second) * NS / i->per_second);
	return t + (uint64_t)i->offset * NS;
}

/* The ns of ", within 3200 us" in a frame's comment; 0 = the comment has no such text. */
static uint64_t within_of(const char *comment, uint16_t len)
{
	static const char word[] = ", within ";
	const char *at = memmem(comment, len, word, sizeof(word) - 1), *end = comment + len;
	uint64_t us = 0;

	if (!at)
		return 0;
	for (at += sizeof(word) - 1; at < end && *at >= '0' && *at <= '9' && us < 1u << 30; at++)
		us = 10 * us + (uint64_t)(*at - '0');
	return us * 1000;
}

/*
 * How exact the time of a frame is. Weft states longer times than 10 us. A flight recorder has the
 * time at which a progress call began, and states for each sent frame how long after it that left.
 */
static void set_within(const struct dump_file *file, struct dump_frame *frame)
{
	if (!file->weft)
		return;
	if (frame->comment)
		frame->within = within_of(frame->comment, frame->comment_len);
	if (frame->way == DUMP_OUT && file->comment[0] && !frame->within)
		frame->within = UINT64_MAX;
}

static bool packet(struct dump_file *file, const struct block *b, struct dump_frame *frame)
{
	uint32_t iface, caplen, at;
	uint16_t code, len;
	const uint8_t *data;

	if (b->len < 20)
		return damaged(file, "a packet block has only %u bytes", b->len + 12);
	iface = get32(file, b->data);
	caplen = get32(file, b->data + 12);
	if (caplen > b->len - 20)
		return damaged(file, "a packet claims %u bytes in a block of %u", caplen,
			       b->len + 12);
	if (iface >= file->num_ifaces)
		return damaged(file, "a packet claims interface %u, and there are %u", iface,
			       file->num_ifaces);
	*frame = (struct dump_frame){.data = b->data + 20, .caplen = caplen};
	frame->iface = (uint16_t)iface;
	frame->worker = file->iface[iface].worker;
	frame->sockets = file->iface[iface].sockets;
	frame->len = get32(file, b->data + 16);
	if (frame->len < caplen)
		frame->len = caplen;
	frame->time = to_ns(&file->iface[iface],
			    (uint64_t)get32(file, b->data + 4) << 32 | get32(file, b->data + 8));
	at = 20 + ((caplen + 3) & ~3u);
	while (option(file, b, &at, &code, &len, &data)) {
		if (code == EPB_FLAGS && len == 4) {
			frame->way = get32(file, data) & 3;
			frame->damaged = get32(file, data) & FLAG_CRC_ERROR;
		} else if (code == EPB_DROPCOUNT && len == 8) {
			frame->dropped += get64(file, data);
		} else if (code == OPT_COMMENT) {
			frame->comment = (const char *)data;
			frame->comment_len = len;
		}
	}
	file->iface[iface].reported += frame->dropped;
	file->last_iface = (uint16_t)iface;
	file->closed = false;
	if (frame->way > DUMP_OUT)
		frame->way = DUMP_WAY_UNKNOWN;
	set_within(file, frame);
	return true;
}

static bool simple(struct dump_file *file, const struct block *b, struct dump_frame *frame)
{
	uint32_t len;

	if (file->num_ifaces == 0)
		return damaged(file, "a simple packet block is before any interface block");
	if (b->len < 4)
		return damaged(file, "a simple packet block has only %u bytes", b->len + 12);
	len = get32(file, b->data);
	*frame = (struct dump_frame){.data = b->data + 4, .len = len};
	frame->caplen = len < b->len - 4 ? len : b->len - 4;
	if (file->iface[0].snaplen && frame->caplen > file->iface[0].snaplen)
		frame->caplen = file->iface[0].snaplen;
	return true;
}

/* Statistics are totals: the last block of an interface counts. */
static void statistics(struct dump_file *file, const struct block *b)
{
	uint32_t at = 12, iface;
	const uint8_t *data;
	uint16_t code, len;
	uint64_t sum = 0, when;

	if (b->len < 12)
		return;
	iface = get32(file, b->data);
	if (iface >= file->num_ifaces)
		return;
	when = to_ns(&file->iface[iface],
		     (uint64_t)get32(file, b->data + 4) << 32 | get32(file, b->data + 8));
	while (option(file, b, &at, &code, &len, &data)) {
		if ((code == ISB_IFDROP || code == ISB_OSDROP) && len == 8)
			sum += get64(file, data);
		/* Counters of its device come in blocks of their own. */
		if (code == OPT_COMMENT && dump_devices_read(&file->devices, data, len, when))
			return;
		if (code == OPT_COMMENT &&
		    history_read(&file->history, (uint16_t)iface, data, len, when))
			return;
		if (code == OPT_COMMENT &&
		    state_read(&file->states, (uint16_t)iface, data, len, when))
			return;
	}
	file->iface[iface].dropped = sum;
	file->closed = file->closed || iface == file->last_iface;
	if (when > file->end)
		file->end = when;
}

/* "Linux, boot 0123456789abcdef": @return 0 = it has no number */
static uint64_t host_of(const uint8_t *text, uint16_t len)
{
	char start[40];
	uint64_t id;

	snprintf(start, sizeof(start), "%.*s", len, (const char *)text);
	return sscanf(start, "Linux, boot %16" SCNx64, &id) == 1 ? id : 0;
}

/* The flight recorder writes its reason into the section's comment. */
static void section(struct dump_file *file, const struct block *b)
{
	const uint8_t *data;
	uint16_t code, len;
	uint32_t at = 16;

	file->closed = false;
	file->weft = false;
	file->host = 0;
	while (option(file, b, &at, &code, &len, &data)) {
		if (code == OPT_COMMENT && len)
			weft_text_copy(file->comment, sizeof(file->comment), data, len);
		if (code == SHB_OS)
			file->host = host_of(data, len);
		if (code == SHB_APPLICATION)
			file->weft = len == 4 && !memcmp(data, "weft", 4);
	}
}

static bool dump_pcapng_next(struct dump_file *file, struct dump_frame *frame)
{
	struct block b;
	bool found = false;

	while (!found && read_block(file, &b)) {
		if (b.type == SECTION) {
			section(file, &b);
			file->dropped_before = dump_file_dropped(file);
			file->num_ifaces = 0;
		}
		if (b.type == INTERFACE && !add_interface(file, &b))
			return false;
		else if (b.type == STATISTICS)
			statistics(file, &b);
		else if (b.type == PACKET || b.type == SIMPLE)
			found = (b.type == PACKET ? packet : simple)(file, &b, frame);
		if (file->why[0])
			return false;
		file->at += b.len + 12;
	}
	return found;
}

/* ---- a capture file ------------------------------------------------------------------------- */

#define BUFFER (256u << 10)
#define PCAPNG_FIRST 0x0a

volatile sig_atomic_t dump_file_stop;

static int open_pcap(struct dump_file *file, char *why, size_t why_len)
{
	char text[PCAP_ERRBUF_SIZE] = "";

	file->pcap =
		pcap_fopen_offline_with_tstamp_precision(file->f, PCAP_TSTAMP_PRECISION_NANO, text);
	if (!file->pcap) {
		snprintf(why, why_len, "%s is no capture, neither pcapng nor pcap (%s)", file->name,
			 text);
		return -EBADMSG;
	}
	file->f = NULL; /* libpcap closes it */
	file->num_ifaces = 1;
	snprintf(file->iface[0].name, sizeof(file->iface[0].name), "0");
	dump_iface_lane(&file->iface[0]);
	file->iface[0].ethernet = pcap_datalink(file->pcap) == DLT_EN10MB;
	file->iface[0].records = pcap_datalink(file->pcap) == WEFT_RECORD_LINKTYPE;
	return 0;
}

/* setvbuf() respects the size only with memory of the caller: without, glibc takes 4096 bytes. */
static void set_buffer(struct dump_file *file)
{
	static char input[BUFFER]; /* stdin is not closed, so its buffer stays */

	if (file->f != stdin)
		file->buffer = malloc(BUFFER);
	if (file->f == stdin)
		setvbuf(file->f, input, _IOFBF, BUFFER);
	else if (file->buffer)
		setvbuf(file->f, file->buffer, _IOFBF, BUFFER);
}

static int open_stream(struct dump_file *file, char *why, size_t why_len)
{
	int first;

	file->f = strcmp(file->name, "-") ? fopen(file->name, "rbe") : stdin;
	if (!file->f) {
		snprintf(why, why_len, "%s: %s", file->name, strerror(errno));
		return -errno;
	}
	set_buffer(file);
	first = getc(file->f);
	if (first == EOF) {
		snprintf(why, why_len, "%s: %s", file->name,
			 ferror(file->f) ? strerror(errno) : "an empty file, no capture");
		return -EBADMSG;
	}
	ungetc(first, file->f);
	return first == PCAPNG_FIRST ? 0 : open_pcap(file, why, why_len);
}

struct dump_file *dump_file_open(const char *name, uint8_t index, char *why, size_t why_len)
{
	struct dump_file *file = calloc(1, sizeof(*file));

	if (!file) {
		snprintf(why, why_len, "no memory");
		return NULL;
	}
	file->name = name;
	file->index = index;
	if (open_stream(file, why, why_len)) {
		dump_file_close(file);
		return NULL;
	}
	return file;
}

static bool pcap_one(struct dump_file *file, struct dump_frame *frame)
{
	struct pcap_pkthdr *head;
	const uint8_t *data;
	int rc = pcap_next_ex(file->pcap, &head, &data);

	if (rc == PCAP_ERROR)
		snprintf(file->why, sizeof(file->why), "%s: damaged after frame %ju: %s",
			 file->name, (uintmax_t)file->frames, pcap_geterr(file->pcap));
	if (rc != 1)
		return false;
	*frame = (struct dump_frame){
		.data = data,
		.caplen = head->caplen,
		.len = head->len < head->caplen ? head->caplen : head->len,
		/* tv_usec holds nanoseconds */
		.time = (uint64_t)head->ts.tv_sec * 1000000000u + (uint64_t)head->ts.tv_usec,
	};
	file->at += 16 + (uint64_t)head->caplen;
	return true;
}

bool dump_file_broken_off(const struct dump_file *file)
{
	return file->weft && !file->comment[0] && !file->closed;
}

uint64_t dump_file_dropped(const struct dump_file *file)
{
	uint64_t sum = file->dropped_before;
	const struct dump_iface *i;
	unsigned int n;

	for (n = 0; n < file->num_ifaces; n++) {
		i = &file->iface[n];
		sum += i->dropped > i->reported ? i->dropped : i->reported;
	}
	return sum;
}

bool dump_file_next(struct dump_file *file, struct dump_frame *frame)
{
	for (;;) {
		if (file->why[0])
			return false;
		if (dump_file_stop)
			return false;
		if (!(file->pcap ? pcap_one(file, frame) : dump_pcapng_next(file, frame))) {
			if (dump_file_stop) /* the signal has interrupted a read: no damage */
				file->why[0] = '\0';
			return false;
		}
		frame->number = ++file->frames;
		frame->file = file->index;
		frame->record = file->iface[frame->iface].records;
		if (frame->record || file->iface[frame->iface].ethernet)
			return true;
		file->foreign++;
	}
}

void dump_file_close(struct dump_file *file)
{
	if (file->pcap)
		pcap_close(file->pcap);
	if (file->f && file->f != stdin)
		fclose(file->f);
	history_free(&file->history);
	state_free(&file->states);
	free(file->block);
	free(file->buffer);
	free(file);
}

/* ---- filters -------------------------------------------------------------------------------- */

/* tcpdump's filter expressions, by libpcap's compiler. */

struct dump_filter {
	struct bpf_program program;
};

struct dump_filter *dump_filter_make(const char *expression, char *why, size_t why_len)
{
	struct dump_filter *filter = calloc(1, sizeof(*filter));
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 65535);

	if (!filter || !pcap) {
		snprintf(why, why_len, "no memory");
	} else if (pcap_compile(pcap, &filter->program, expression, 1, PCAP_NETMASK_UNKNOWN)) {
		snprintf(why, why_len, "filter '%s': %s", expression, pcap_geterr(pcap));
	} else {
		pcap_close(pcap);
		return filter;
	}
	if (pcap)
		pcap_close(pcap);
	free(filter);
	return NULL;
}

bool dump_filter_takes(const struct dump_filter *filter, const struct dump_frame *frame)
{
	const struct pcap_pkthdr head = {.caplen = frame->caplen, .len = frame->len};

	/* An expression applies to Ethernet frames only. */
	if (frame->record)
		return false;
	return pcap_offline_filter(&filter->program, &head, frame->data) != 0;
}

void dump_filter_free(struct dump_filter *filter)
{
	if (!filter)
		return;
	pcap_freecode(&filter->program);
	free(filter);
}

/* ---- progress ------------------------------------------------------------------------------- */

/* How far a large file has been read. */

#define STEP (256u << 20)

void dump_progress_begin(struct dump_progress *p, const struct dump_file *file)
{
	struct stat st;

	*p = (struct dump_progress){.next = isatty(STDERR_FILENO) ? STEP : UINT64_MAX};
	if (stat(file->name, &st) == 0 && S_ISREG(st.st_mode))
		p->size = (uint64_t)st.st_size;
}

void dump_progress(struct dump_progress *p, const struct dump_file *file)
{
	if (file->at < p->next)
		return;
	p->next = file->at + STEP;
	p->shown = true;
	if (p->size)
		fprintf(stderr, "\r%s: %u %%\033[K", file->name,
			(unsigned int)(100 * file->at / p->size));
	else
		fprintf(stderr, "\r%s: %u MiB\033[K", file->name, (unsigned int)(file->at >> 20));
}

void dump_progress_end(struct dump_progress *p)
{
	if (p->shown)
		fprintf(stderr, "\r\033[K");
}
