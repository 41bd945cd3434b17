/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture/pcapng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER (256u * 1024)

enum { BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_PACKET = 6 };
enum { OPT_END = 0, SHB_APPLICATION = 4 };
enum { IF_NAME = 2, IF_DESCRIPTION = 3, IF_MAC = 6, IF_SPEED = 8, IF_TSRESOL = 9 };
enum { EPB_FLAGS = 2 };

#define LINKTYPE_ETHERNET 1

struct weft_pcapng {
	int fd;
	int error;
	uint32_t interfaces;
	size_t block; /* where the block that is being made begins */
	size_t used;
	uint8_t buffer[BUFFER];
};

/* ---- blocks. All numbers are in the writer's byte order: the section header tells which. ---- */

/* begin_block() has made room. */
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

/* @p room: at least as long as the block will be. @return non-zero when it can't be had */
static int begin_block(struct weft_pcapng *w, uint32_t type, size_t room)
{
	if (w->used + room > BUFFER)
		weft_pcapng_flush(w);
	if (w->error || room > BUFFER)
		return -1;
	w->block = w->used;
	put32(w, type);
	put32(w, 0);
	return 0;
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

/* ---- sections and interfaces ---------------------------------------------------------------- */

struct weft_pcapng *weft_pcapng_open(int fd, const char *application)
{
	struct weft_pcapng *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->fd = fd;
	begin_block(w, BLOCK_SECTION, 64 + strlen(application));
	put32(w, 0x1a2b3c4d); /* byte order */
	put16(w, 1);
	put16(w, 0);
	put32(w, UINT32_MAX); /* section length: not known */
	put32(w, UINT32_MAX);
	put_option(w, SHB_APPLICATION, application, strlen(application));
	put_option(w, OPT_END, NULL, 0);
	end_block(w);
	return w;
}

uint32_t weft_pcapng_interface(struct weft_pcapng *w, const char *name, const char *description,
			       const uint8_t mac[6], uint64_t speed)
{
	const uint8_t nanoseconds = 9;

	if (begin_block(w, BLOCK_INTERFACE, 128 + strlen(name) + strlen(description)))
		return w->interfaces++;
	put16(w, LINKTYPE_ETHERNET);
	put16(w, 0);
	put32(w, 0); /* whole packets */
	put_option(w, IF_NAME, name, strlen(name));
	put_option(w, IF_DESCRIPTION, description, strlen(description));
	put_option(w, IF_MAC, mac, 6);
	if (speed)
		put_option(w, IF_SPEED, &speed, sizeof(speed));
	put_option(w, IF_TSRESOL, &nanoseconds, 1);
	put_option(w, OPT_END, NULL, 0);
	end_block(w);
	return w->interfaces++;
}

/* ---- packets -------------------------------------------------------------------------------- */

void weft_pcapng_packet(struct weft_pcapng *w, uint32_t interface,
			enum weft_pcapng_direction direction, uint64_t time_ns,
			const struct iovec *iov, unsigned int iovcnt)
{
	uint32_t flags = (uint32_t)direction;
	size_t length = 0;
	unsigned int i;

	for (i = 0; i < iovcnt; i++)
		length += iov[i].iov_len;
	if (begin_block(w, BLOCK_PACKET, 64 + length))
		return;
	put32(w, interface);
	put32(w, (uint32_t)(time_ns >> 32));
	put32(w, (uint32_t)time_ns);
	put32(w, (uint32_t)length);
	put32(w, (uint32_t)length);
	for (i = 0; i < iovcnt; i++)
		put(w, iov[i].iov_base, iov[i].iov_len);
	pad(w);
	put_option(w, EPB_FLAGS, &flags, sizeof(flags));
	put_option(w, OPT_END, NULL, 0);
	end_block(w);
}

/* ---- the file ------------------------------------------------------------------------------- */

int weft_pcapng_flush(struct weft_pcapng *w)
{
	size_t done = 0;
	ssize_t n;

	while (done < w->used && !w->error) {
		n = write(w->fd, w->buffer + done, w->used - done);
		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && errno != EINTR)
			w->error = -errno;
	}
	w->used = 0;
	w->block = 0;
	return w->error;
}

size_t weft_pcapng_pending(const struct weft_pcapng *w)
{
	return w->used;
}
