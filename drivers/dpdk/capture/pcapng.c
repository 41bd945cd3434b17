/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture/pcapng.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_STATISTICS = 5, BLOCK_PACKET = 6 };
enum { OPT_END = 0, OPT_COMMENT = 1, SHB_OS = 3, SHB_APPLICATION = 4 };
enum { IF_NAME = 2, IF_DESCRIPTION = 3, IF_MAC = 6, IF_SPEED = 8, IF_TSRESOL = 9 };
enum { EPB_FLAGS = 2, EPB_DROPCOUNT = 4 };
enum { ISB_IFRECV = 4, ISB_IFDROP = 5 };

#define FLAG_CRC_ERROR (1u << 24)
#define STATISTICS_ROOM 4096u
/*
 * ms that a write waits for the reader of a FIFO, which may be slow but not blocked. Frames that
 * find no room in the meantime are dropped and counted.
 */
#define READER_MS 2000

/* ---- blocks --------------------------------------------------------------------------------- */

/* All numbers are in the writer's byte order, which the section header indicates. */

/* The caller has made room by begin_block(). */
static void put(struct weft_pcapng *w, const void *data, size_t len)
{
	if (len)
		memcpy(w->buffer + w->used, data, len);
	w->used += len;
}

static void put32(struct weft_pcapng *w, uint32_t v)
{
	put(w, &v, sizeof(v));
}

static void put16(struct weft_pcapng *w, uint16_t v)
{
	put(w, &v, sizeof(v));
}

static void pad(struct weft_pcapng *w)
{
	static const uint8_t zeros[3];

	put(w, zeros, -w->used & 3);
}

/* @p room: at least the block's length. @return false: it exceeds the buffer, or writes failed */
static bool begin_block(struct weft_pcapng *w, uint32_t type, size_t room)
{
	if (w->used + room > WEFT_PCAPNG_BUFFER)
		weft_pcapng_flush(w);
	if (w->error || room > WEFT_PCAPNG_BUFFER)
		return false;
	w->block = w->used;
	put32(w, type);
	put32(w, 0);
	return true;
}

static void end_block(struct weft_pcapng *w)
{
	uint32_t length = (uint32_t)(w->used + 4 - w->block);

	memcpy(w->buffer + w->block + 4, &length, sizeof(length));
	put32(w, length);
}

static void put_option(struct weft_pcapng *w, uint16_t code, const void *data, size_t len)
{
	put16(w, code);
	put16(w, (uint16_t)len);
	put(w, data, len);
	pad(w);
}

static void put_text(struct weft_pcapng *w, uint16_t code, const char *text)
{
	if (text)
		put_option(w, code, text, strlen(text));
}

/* ---- sections and interfaces ---------------------------------------------------------------- */

void weft_pcapng_begin(struct weft_pcapng *w, int fd, const char *comment, uint64_t host)
{
	char boot[40];

	snprintf(boot, sizeof(boot), "Linux, boot %016" PRIx64, host);
	w->fd = fd;
	w->error = 0;
	w->interfaces = 0;
	w->written = 0;
	memset(w->lost, 0, sizeof(w->lost));
	w->block = w->used = 0;
	begin_block(w, BLOCK_SECTION, 128 + (comment ? strlen(comment) : 0));
	put32(w, 0x1a2b3c4d); /* byte order */
	put16(w, 1);
	put16(w, 0);
	put32(w, UINT32_MAX); /* section length: unknown */
	put32(w, UINT32_MAX);
	put_text(w, OPT_COMMENT, comment);
	put_text(w, SHB_OS, host ? boot : NULL);
	put_text(w, SHB_APPLICATION, "weft");
	put_option(w, OPT_END, NULL, 0);
	end_block(w);
}

uint32_t weft_pcapng_interface(struct weft_pcapng *w, uint16_t link, const char *name,
			       const char *description, const uint8_t mac[6], uint64_t speed,
			       uint32_t snaplen)
{
	const uint8_t nanoseconds = 9;

	if (!begin_block(w, BLOCK_INTERFACE, 128 + strlen(name) + strlen(description)))
		return w->interfaces++;
	put16(w, link);
	put16(w, 0);
	put32(w, snaplen);
	put_text(w, IF_NAME, name);
	put_text(w, IF_DESCRIPTION, description);
	if (link == WEFT_PCAPNG_ETHERNET && mac)
		put_option(w, IF_MAC, mac, 6);
	if (speed)
		put_option(w, IF_SPEED, &speed, sizeof(speed));
	put_option(w, IF_TSRESOL, &nanoseconds, 1);
	put_option(w, OPT_END, NULL, 0);
	end_block(w);
	return w->interfaces++;
}

/* ---- packets -------------------------------------------------------------------------------- */

void weft_pcapng_packet(struct weft_pcapng *w, const struct weft_pcapng_packet *p)
{
	uint32_t flags = (uint32_t)p->direction | (p->damaged ? FLAG_CRC_ERROR : 0);

	if (!begin_block(w, BLOCK_PACKET, 96 + p->caplen + (p->comment ? strlen(p->comment) : 0))) {
		w->lost[p->interface % WEFT_PCAPNG_INTERFACES]++;
		return;
	}
	put32(w, p->interface);
	put32(w, (uint32_t)(p->time_ns >> 32));
	put32(w, (uint32_t)p->time_ns);
	put32(w, p->caplen);
	put32(w, p->len);
	put(w, p->data, p->caplen);
	pad(w);
	put_text(w, OPT_COMMENT, p->comment);
	put_option(w, EPB_FLAGS, &flags, sizeof(flags));
	if (p->dropped)
		put_option(w, EPB_DROPCOUNT, &p->dropped, sizeof(p->dropped));
	put_option(w, OPT_END, NULL, 0);
	end_block(w);
}

void weft_pcapng_statistics(struct weft_pcapng *w, uint32_t interface, uint64_t time_ns,
			    uint64_t seen, uint64_t dropped)
{
	if (!begin_block(w, BLOCK_STATISTICS, 64))
		return;
	put32(w, interface);
	put32(w, (uint32_t)(time_ns >> 32));
	put32(w, (uint32_t)time_ns);
	put_option(w, ISB_IFRECV, &seen, sizeof(seen));
	put_option(w, ISB_IFDROP, &dropped, sizeof(dropped));
	put_option(w, OPT_END, NULL, 0);
	end_block(w);
}

void weft_pcapng_note(struct weft_pcapng *w, uint32_t interface, uint64_t time_ns, const char *text)
{
	if (!begin_block(w, BLOCK_STATISTICS, 64 + strlen(text)))
		return;
	put32(w, interface);
	put32(w, (uint32_t)(time_ns >> 32));
	put32(w, (uint32_t)time_ns);
	put_text(w, OPT_COMMENT, text);
	put_option(w, OPT_END, NULL, 0);
	end_block(w);
}

/* ---- the file ------------------------------------------------------------------------------- */

/* @return bytes of the buffer that have been written */
static size_t write_all(struct weft_pcapng *w)
{
	struct pollfd p = {.fd = w->fd, .events = POLLOUT};
	size_t done = 0;
	ssize_t n;

	while (done < w->used && !w->error) {
		n = write(w->fd, w->buffer + done, w->used - done);
		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && errno == EAGAIN && poll(&p, 1, READER_MS) == 0)
			w->error = -ETIMEDOUT;
		else if (n < 0 && errno != EINTR && errno != EAGAIN)
			w->error = -errno;
	}
	return done;
}

/* @return bytes of the whole blocks within @p room; packets after them are counted as lost */
static size_t whole_blocks(struct weft_pcapng *w, size_t room)
{
	size_t at = 0, keep = 0;
	uint32_t type, len, interface;

	while (at < w->used) {
		memcpy(&type, w->buffer + at, sizeof(type));
		memcpy(&interface, w->buffer + at + 8, sizeof(interface));
		memcpy(&len, w->buffer + at + 4, sizeof(len));
		at += len;
		if (at <= room)
			keep = at;
		else if (type == BLOCK_PACKET)
			w->lost[interface % WEFT_PCAPNG_INTERFACES]++;
	}
	return keep;
}

int weft_pcapng_flush(struct weft_pcapng *w)
{
	size_t done, keep;

	if (w->error) {
		whole_blocks(w, 0);
		w->used = w->block = 0;
		return w->error;
	}
	done = write_all(w);
	if (w->error) {
		keep = whole_blocks(w, done > STATISTICS_ROOM ? done - STATISTICS_ROOM : 0);
		if (ftruncate(w->fd, (off_t)(w->written + keep)) == 0)
			lseek(w->fd, (off_t)(w->written + keep), SEEK_SET);
		done = keep;
	}
	w->written += done;
	w->used = w->block = 0;
	return w->error;
}
