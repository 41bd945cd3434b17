/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of pcapng: sections, interfaces, frames with their direction, statistics of losses. */

#include <byteswap.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "dump/file.h"
#include "lane_tap.h"

enum { SECTION = 0x0a0d0d0a, INTERFACE = 1, SIMPLE = 3, STATISTICS = 5, PACKET = 6 };
enum { OPT_END, OPT_COMMENT, IF_NAME = 2, IF_TSRESOL = 9, IF_TSOFFSET = 14 };
enum { EPB_FLAGS = 2, EPB_DROPCOUNT = 4, ISB_IFDROP = 5, ISB_OSDROP = 7 };

#define MAGIC 0x1a2b3c4du
#define LINK_ETHERNET 1
#define BLOCK_MAX (16u << 20) /* a frame has at most 64 KiB; comments may be longer */
#define NS 1000000000u

/* A block: @p data are the bytes between its two lengths. */
struct block {
	uint32_t type, len;
	const uint8_t *data;
};

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
		return damaged(file, "cut short: %zu bytes of a block's head", got);
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
		return damaged(file, "a block of %u bytes", len);
	if (!make_room(file, len))
		return false;
	memcpy(file->block, head, have);
	got = fread_unlocked(file->block + have, 1, len - have, file->f);
	if (got != len - have)
		return damaged(file, "cut short: %zu of the %u bytes of a block", got + have, len);
	if (get32(file, file->block + len - 4) != len)
		return damaged(file, "a block of %u bytes that ends with another length", len);
	b->data = file->block + 8;
	b->len = len - 12;
	return true;
}

/* Next option of a list, or false. Advances @p at. */
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
		return damaged(file, "an interface of %u bytes", b->len);
	if (file->num_ifaces == DUMP_IFACES)
		return damaged(file, "more than %u interfaces", DUMP_IFACES);
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
		else if (code == IF_TSRESOL && len == 1)
			i->per_second = resolution(data[0]);
		else if (code == IF_TSOFFSET && len == 8)
			i->offset = (int64_t)get64(file, data);
	}
	dump_iface_lane(i);
	if (i->per_second == 0)
		return damaged(file, "interface %u: an impossible unit of time", file->num_ifaces);
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

static bool packet(struct dump_file *file, const struct block *b, struct dump_frame *frame)
{
	uint32_t iface, caplen, at;
	uint16_t code, len;
	const uint8_t *data;

	if (b->len < 20)
		return damaged(file, "a packet block of %u bytes", b->len + 12);
	iface = get32(file, b->data);
	caplen = get32(file, b->data + 12);
	if (caplen > b->len - 20)
		return damaged(file, "a packet of %u bytes in a block of %u", caplen, b->len + 12);
	if (iface >= file->num_ifaces)
		return damaged(file, "a packet of interface %u, of %u", iface, file->num_ifaces);
	*frame = (struct dump_frame){.data = b->data + 20, .caplen = caplen};
	frame->iface = (uint16_t)iface;
	frame->len = get32(file, b->data + 16);
	if (frame->len < caplen)
		frame->len = caplen;
	frame->time = to_ns(&file->iface[iface],
			    (uint64_t)get32(file, b->data + 4) << 32 | get32(file, b->data + 8));
	at = 20 + ((caplen + 3) & ~3u);
	while (option(file, b, &at, &code, &len, &data)) {
		if (code == EPB_FLAGS && len == 4)
			frame->way = get32(file, data) & 3;
		else if (code == EPB_DROPCOUNT && len == 8)
			frame->dropped += get64(file, data);
	}
	file->iface[iface].reported += frame->dropped;
	if (frame->way > DUMP_OUT)
		frame->way = DUMP_WAY_UNKNOWN;
	return true;
}

static bool simple(struct dump_file *file, const struct block *b, struct dump_frame *frame)
{
	uint32_t len;

	if (b->len < 4 || file->num_ifaces == 0)
		return damaged(file, "a simple packet block of %u bytes", b->len + 12);
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
	while (iface < file->num_ifaces && option(file, b, &at, &code, &len, &data))
		if ((code == ISB_IFDROP || code == ISB_OSDROP) && len == 8)
			sum += get64(file, data);
	if (iface >= file->num_ifaces)
		return;
	file->iface[iface].dropped = sum;
	when = to_ns(&file->iface[iface],
		     (uint64_t)get32(file, b->data + 4) << 32 | get32(file, b->data + 8));
	if (when > file->end)
		file->end = when;
}

/* The flight recorder writes its reason into the section's comment. */
static void section(struct dump_file *file, const struct block *b)
{
	const uint8_t *data;
	uint16_t code, len;
	uint32_t at = 16;

	while (option(file, b, &at, &code, &len, &data))
		if (code == OPT_COMMENT && len)
			weft_text_copy(file->comment, sizeof(file->comment), data, len);
}

bool dump_pcapng_next(struct dump_file *file, struct dump_frame *frame)
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
