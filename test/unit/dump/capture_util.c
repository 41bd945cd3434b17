/* SPDX-License-Identifier: BSD-3-Clause */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture_util.h"

static void add(struct capture *c, const void *data, size_t len)
{
	assert_true(c->len + len <= sizeof(c->data));
	if (len)
		memcpy(c->data + c->len, data, len);
	c->len += len;
}

void capture_block(struct capture *c, uint32_t type, const void *body, size_t len)
{
	static const uint8_t zeros[3];
	size_t pad = -len & 3;
	const uint32_t head[2] = {type, (uint32_t)(12 + len + pad)};

	add(c, head, sizeof(head));
	add(c, body, len);
	add(c, zeros, pad);
	add(c, &head[1], sizeof(head[1]));
}

void capture_begin(struct capture *c, const char *name)
{
	static const uint32_t section[4] = {0x1a2b3c4d, 1, UINT32_MAX, UINT32_MAX};
	struct {
		uint16_t link, zero;
		uint32_t snaplen;
		uint16_t res_code, res_len;
		uint8_t res[4];
		uint16_t name_code, name_len;
		char name[32];
	} iface = {.link = 1, .res_code = 9, .res_len = 1, .res = {9}, .name_code = 2};

	c->len = 0;
	capture_block(c, 0x0a0d0d0a, section, sizeof(section));
	iface.name_len = (uint16_t)strlen(name);
	assert_true(iface.name_len <= sizeof(iface.name));
	memcpy(iface.name, name, iface.name_len);
	capture_block(c, 1, &iface, sizeof(iface));
}

void capture_frame(struct capture *c, uint64_t time, enum dump_way way, const void *frame,
		   size_t len)
{
	const uint32_t head[5] = {0, (uint32_t)(time >> 32), (uint32_t)time, (uint32_t)len,
				  (uint32_t)len};
	const struct {
		uint16_t code, len;
		uint32_t flags;
	} flags = {2, 4, way};
	size_t padded = (len + 3) & ~(size_t)3;
	uint8_t body[16384] = {0};

	assert_true(sizeof(head) + padded + sizeof(flags) <= sizeof(body));
	memcpy(body, head, sizeof(head));
	memcpy(body + sizeof(head), frame, len);
	memcpy(body + sizeof(head) + padded, &flags, sizeof(flags));
	capture_block(c, 6, body, sizeof(head) + padded + sizeof(flags));
}

struct dump_file *capture_open(const struct capture *c, size_t len, char *why, size_t why_len)
{
	int fd = memfd_create("capture", MFD_CLOEXEC);
	struct dump_file *file;
	char name[64];

	assert_true(fd >= 0);
	assert_int_equal(write(fd, c->data, len), len);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	file = dump_file_open(name, 0, why, why_len);
	if (file)
		file->name = "capture";
	close(fd);
	return file;
}

struct seen capture_seen(const char *name)
{
	struct seen seen = {0};
	struct dump_frame frame;
	char why[400];
	struct dump_file *f = dump_file_open(name, 0, why, sizeof(why));

	assert_non_null(f);
	while (dump_file_next(f, &frame)) {
		seen.frames++;
		seen.in += frame.way == DUMP_IN;
		seen.records += frame.record && frame.len == 232;
		seen.caplen = frame.caplen > seen.caplen ? frame.caplen : seen.caplen;
		seen.longest = frame.len > seen.longest ? frame.len : seen.longest;
		assert_true(frame.time >= seen.last);
		seen.first = seen.first ? seen.first : frame.time;
		seen.last = frame.time;
	}
	assert_string_equal(f->why, "");
	seen.interfaces = f->num_ifaces;
	for (unsigned int i = 0; i < f->num_ifaces; i++)
		seen.dropped += f->iface[i].dropped;
	if (f->num_ifaces)
		snprintf(seen.name, sizeof(seen.name), "%s", f->iface[0].name);
	dump_file_close(f);
	return seen;
}
