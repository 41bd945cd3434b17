/* SPDX-License-Identifier: BSD-3-Clause */

#include "core/address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/container.h"
#include "base/text.h"
#include "core/worker.h"

/* ------------------------------------------------------------------ small parts */

/* The field itself counts as 0. */
static uint32_t address_crc(const uint8_t *p, size_t n)
{
	return weft_crc32c_of(p, n, offsetof(struct weft_wire_address, crc));
}

static uint32_t clamp32(size_t v)
{
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* FNV-1a, because device identities only need to be distinguished. */
static uint64_t hash_string(const char *s)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
	return h;
}

bool weft_address_is_of(const struct weft_lane_driver *driver, const char *name)
{
	return strcmp(name, driver->name) == 0 ||
	       (driver->counterpart && strcmp(name, driver->counterpart) == 0);
}

void weft_address_from_iface(struct weft_address_iface *a, unsigned int index,
			     struct weft_lane_iface *iface)
{
	const struct weft_lane_attr *attr = &iface->attr;

	*a = (struct weft_address_iface){
		.index = (uint8_t)index,
		.device = hash_string(attr->device[0] != '\0' ? attr->device : iface->name),
		.features = (uint32_t)attr->features,
		.bandwidth = (float)attr->bandwidth,
		.latency = (float)attr->latency,
		.send_overhead = (float)attr->send_overhead,
		.recv_overhead = (float)attr->recv_overhead,
		.reg_cost = (float)attr->reg_cost,
		.reg_growth = (float)attr->reg_growth,
		.max_short = attr->features & WEFT_LANE_F_SHORT ? clamp32(attr->max_short) : 0,
		.max_bcopy = attr->features & WEFT_LANE_F_BCOPY ? clamp32(attr->max_bcopy) : 0,
		.max_zcopy = attr->features & WEFT_LANE_F_ZCOPY ? clamp32(attr->max_zcopy) : 0,
		.ep_addr_len = (uint8_t)attr->ep_addr_len,
		.domain = iface->domain,
		.addr_len = (uint8_t)attr->dev_addr_len,
	};
	snprintf(a->driver, sizeof(a->driver), "%s", iface->driver->name);
	iface->ops->get_address(iface, a->addr);
}

void weft_address_of_worker(const struct weft_worker *w, struct weft_address *a)
{
	unsigned int i;

	memset(a, 0, sizeof(*a));
	a->worker_id = w->id;
	a->features = w->ctx->features;
	a->secret = w->secret;
	a->host_id = w->host_id;
	memcpy(a->name, w->ctx->name, sizeof(a->name));
	for (i = 0; i < w->num_ifaces; i++)
		if (!(w->ifaces[i]->attr.features & WEFT_LANE_F_LOOPBACK))
			weft_address_from_iface(&a->ifaces[a->num_ifaces++], i, w->ifaces[i]);
}

uint64_t weft_address_identity(const struct weft_address *a, const struct weft_siphash_key *key)
{
	weft_le64 secret = weft_put64(a->secret);
	struct weft_siphash s;

	weft_siphash_init(&s, key);
	weft_siphash_add(&s, &secret, sizeof(secret));
	for (unsigned int i = 0; i < a->num_ifaces; i++) {
		const struct weft_address_iface *f = &a->ifaces[i];
		uint8_t lengths[] = {f->index, (uint8_t)strlen(f->driver), f->addr_len};

		weft_siphash_add(&s, lengths, sizeof(lengths));
		weft_siphash_add(&s, f->driver, strlen(f->driver));
		weft_siphash_add(&s, f->addr, f->addr_len);
	}
	return weft_siphash_end(&s);
}

uint64_t weft_address_digest(const struct weft_address *a)
{
	const struct weft_siphash_key key = {a->worker_id, a->secret};

	return weft_address_identity(a, &key);
}

uint64_t weft_iface_id(uint64_t worker_id, uint64_t secret, unsigned int index)
{
	const struct weft_siphash_key key = {worker_id, secret};
	uint8_t number = (uint8_t)index;

	return weft_siphash(&key, &number, sizeof(number)) | 1;
}

/* ------------------------------------------------------------------ pack */

size_t weft_address_size(const struct weft_address *a)
{
	size_t n = sizeof(struct weft_wire_address) + strlen(a->name);
	unsigned int i;

	for (i = 0; i < a->num_ifaces; i++)
		n += sizeof(struct weft_wire_iface) + strlen(a->ifaces[i].driver) +
		     a->ifaces[i].addr_len;
	return n;
}

static uint8_t *pack_iface(uint8_t *p, const struct weft_address_iface *a)
{
	size_t driver_len = strlen(a->driver);
	struct weft_wire_iface w = {
		.index = a->index,
		.driver_len = (uint8_t)driver_len,
		.addr_len = a->addr_len,
		.device = weft_put64(a->device),
		.features = weft_put32(a->features),
		.bandwidth = weft_put_single(a->bandwidth),
		.latency = weft_put_single(a->latency),
		.send_overhead = weft_put_single(a->send_overhead),
		.recv_overhead = weft_put_single(a->recv_overhead),
		.reg_cost = weft_put_single(a->reg_cost),
		.reg_growth = weft_put_single(a->reg_growth),
		.max_short = weft_put32(a->max_short),
		.max_bcopy = weft_put32(a->max_bcopy),
		.max_zcopy = weft_put32(a->max_zcopy),
		.ep_addr_len = a->ep_addr_len,
		.domain = a->domain,
	};

	memcpy(p, &w, sizeof(w));
	p += sizeof(w);
	memcpy(p, a->driver, driver_len);
	p += driver_len;
	memcpy(p, a->addr, a->addr_len);
	return p + a->addr_len;
}

size_t weft_address_pack(const struct weft_address *a, void *buf)
{
	size_t name_len = strlen(a->name), length = weft_address_size(a);
	struct weft_wire_address head = {
		.magic = weft_put32(WEFT_ADDRESS_MAGIC),
		.major = WEFT_WIRE_MAJOR,
		.minor = WEFT_WIRE_MINOR,
		.length = weft_put16((uint16_t)length),
		.worker_id = weft_put64(a->worker_id),
		.features = weft_put64(a->features),
		.secret = weft_put64(a->secret),
		.host_id = weft_put64(a->host_id),
		.name_len = (uint8_t)name_len,
		.num_ifaces = (uint8_t)a->num_ifaces,
	};
	uint8_t *p = buf;
	unsigned int i;

	memcpy(p, &head, sizeof(head));
	p += sizeof(head);
	memcpy(p, a->name, name_len);
	p += name_len;
	for (i = 0; i < a->num_ifaces; i++)
		p = pack_iface(p, &a->ifaces[i]);
	weft_address_seal(buf, length);
	return length;
}

void weft_address_seal(void *address, size_t length)
{
	struct weft_wire_address *head = address;

	head->crc = weft_put32(address_crc(address, length));
}

/* ------------------------------------------------------------------ unpack */

static int bad_address(char *why, size_t why_len, const char *text)
{
	if (why)
		snprintf(why, why_len, "%s", text);
	return -EINVAL;
}

/* @return false: a figure is outside the range of the wire */
static bool get_figures(struct weft_address_iface *a, const struct weft_wire_iface *w)
{
	a->bandwidth = weft_get_single(w->bandwidth);
	a->latency = weft_get_single(w->latency);
	a->send_overhead = weft_get_single(w->send_overhead);
	a->recv_overhead = weft_get_single(w->recv_overhead);
	a->reg_cost = weft_get_single(w->reg_cost);
	a->reg_growth = weft_get_single(w->reg_growth);
	return weft_wire_rate_ok(a->bandwidth) &&
	       weft_wire_time_ok(a->latency, WEFT_WIRE_LATENCY_MAX) &&
	       weft_wire_time_ok(a->send_overhead, WEFT_WIRE_OVERHEAD_MAX) &&
	       weft_wire_time_ok(a->recv_overhead, WEFT_WIRE_OVERHEAD_MAX) &&
	       weft_wire_time_ok(a->reg_cost, WEFT_WIRE_REG_COST_MAX) &&
	       weft_wire_time_ok(a->reg_growth, WEFT_WIRE_REG_GROWTH_MAX);
}

static int unpack_iface(struct weft_address_iface *a, const uint8_t **pos, const uint8_t *end)
{
	struct weft_wire_iface w;
	const uint8_t *p = *pos;

	if ((size_t)(end - p) < sizeof(w))
		return -EINVAL;
	memcpy(&w, p, sizeof(w));
	p += sizeof(w);
	if (w.driver_len == 0 || w.driver_len >= sizeof(a->driver) || w.addr_len == 0 ||
	    w.addr_len > WEFT_LANE_ADDR_MAX || w.ep_addr_len > WEFT_LANE_ADDR_MAX ||
	    (size_t)(end - p) < (size_t)w.driver_len + w.addr_len || w.index >= WEFT_MAX_IFACES)
		return -EINVAL;
	a->index = w.index;
	a->addr_len = w.addr_len;
	a->ep_addr_len = w.ep_addr_len;
	a->domain = w.domain;
	a->device = weft_get64(w.device);
	a->features = weft_get32(w.features);
	a->max_short = weft_get32(w.max_short);
	a->max_bcopy = weft_get32(w.max_bcopy);
	a->max_zcopy = weft_get32(w.max_zcopy);
	if (!get_figures(a, &w))
		return -EINVAL;
	weft_text_copy(a->driver, sizeof(a->driver), p, w.driver_len);
	p += w.driver_len;
	memcpy(a->addr, p, w.addr_len);
	*pos = p + w.addr_len;
	return 0;
}

static int unpack_ifaces(struct weft_address *a, const uint8_t *p, const uint8_t *end)
{
	uint32_t seen = 0;
	unsigned int i;

	for (i = 0; i < a->num_ifaces; i++) {
		if (unpack_iface(&a->ifaces[i], &p, end) < 0)
			return -EINVAL;
		if (seen & 1u << a->ifaces[i].index)
			return -EINVAL;
		seen |= 1u << a->ifaces[i].index;
	}
	return 0; /* a later minor version may have appended bytes */
}

/* The first 16 bytes have the same layout in every version. */
static int other_version(const struct weft_wire_address *head, char *why, size_t why_len)
{
	if (why)
		snprintf(why, why_len,
			 "the worker address was made by protocol version %u.%u, this is %u.%u: "
			 "both ends need the same major version",
			 head->major, head->minor, WEFT_WIRE_MAJOR, WEFT_WIRE_MINOR);
	return -EPROTONOSUPPORT;
}

int weft_address_unpack(struct weft_address *a, const void *buf, size_t length, char *why,
			size_t why_len)
{
	const uint8_t *p = buf, *end = p + length;
	struct weft_wire_address head = {0};
	const size_t fixed = offsetof(struct weft_wire_address, worker_id);

	memset(a, 0, sizeof(*a));
	if (!buf || length == 0)
		return bad_address(
			why, why_len,
			"the worker address is empty: pass all bytes of weft_worker_get_address()");
	if (length < fixed)
		return bad_address(why, why_len,
				   "the worker address is truncated: pass all bytes of "
				   "weft_worker_get_address()");
	memcpy(&head, p, length < sizeof(head) ? length : sizeof(head));
	if (weft_get32(head.magic) != WEFT_ADDRESS_MAGIC)
		return bad_address(
			why, why_len,
			"this is no worker address: pass the bytes of weft_worker_get_address()");
	a->major = head.major;
	a->minor = head.minor;
	if (head.major != WEFT_WIRE_MAJOR)
		return other_version(&head, why, why_len);
	if (weft_get16(head.length) != length)
		return bad_address(
			why, why_len,
			"the worker address is truncated or has something behind it: pass exactly "
			"the bytes of weft_worker_get_address()");
	if (weft_get32(head.crc) != address_crc(p, length))
		return bad_address(why, why_len,
				   "the worker address is damaged: pass the bytes of "
				   "weft_worker_get_address() unchanged");
	if (length < sizeof(head) || head.name_len >= sizeof(a->name) ||
	    length - sizeof(head) < head.name_len || head.num_ifaces > WEFT_ADDRESS_MAX_IFACES)
		return bad_address(why, why_len,
				   "the worker address contradicts itself: pass the bytes of "
				   "weft_worker_get_address() unchanged");
	a->worker_id = weft_get64(head.worker_id);
	a->features = weft_get64(head.features);
	a->secret = weft_get64(head.secret);
	a->host_id = weft_get64(head.host_id);
	a->num_ifaces = head.num_ifaces;
	weft_text_copy(a->name, sizeof(a->name), p + sizeof(head), head.name_len);
	if (a->worker_id == 0 || unpack_ifaces(a, p + sizeof(head) + head.name_len, end) < 0)
		return bad_address(
			why, why_len,
			"the worker address contradicts itself, or has impossible figures: "
			"pass the bytes of weft_worker_get_address() unchanged");
	return 0;
}

/* ------------------------------------------------------------------ weft.h */

static int query_boot(const void *address, size_t length, struct weft_address_attr *out)
{
	struct weft_boot b;
	int rc = weft_boot_unpack(&b, address, length, NULL, 0);

	out->worker_id = b.worker_id;
	out->version = (unsigned int)b.major << 8;
	out->num_ifaces = (b.kind != WEFT_LANE_BOOT_NONE) + (b.host_lane != 0);
	return rc;
}

static int query_whole(const void *address, size_t length, struct weft_address_attr *out)
{
	static _Thread_local char name[sizeof(((struct weft_address *)0)->name)];
	struct weft_address *a = malloc(sizeof(*a));
	int rc;

	if (!a)
		return -ENOMEM;
	rc = weft_address_unpack(a, address, length, NULL, 0);
	out->worker_id = a->worker_id;
	out->version = (unsigned int)a->major << 8 | a->minor;
	out->num_ifaces = a->num_ifaces;
	memcpy(name, a->name, sizeof(name));
	out->name = name;
	free(a);
	return rc;
}

int weft_address_query(const void *address, size_t length, struct weft_address_attr *attr)
{
	struct weft_address_attr out = {.name = ""};
	int rc;

	if (weft_struct_out(attr, &out, sizeof(out)) < 0)
		return -EINVAL;
	rc = weft_boot_is(address, length) ? query_boot(address, length, &out)
					   : query_whole(address, length, &out);
	if (rc == 0 || rc == -EPROTONOSUPPORT)
		weft_struct_out(attr, &out, sizeof(out));
	return rc;
}

/* ------------------------------------------------------------------ boot addresses */

static_assert(sizeof(struct weft_wire_boot_address) == WEFT_BOOT_ADDRESS_MAX, "wire");

#define HEAD offsetof(struct weft_wire_boot_address, bytes)

static uint32_t crc_of(const void *p, size_t n)
{
	return weft_crc32c_of(p, n, offsetof(struct weft_wire_boot_address, crc));
}

bool weft_boot_is(const void *buf, size_t length)
{
	weft_le16 magic;

	if (!buf || length < sizeof(magic))
		return false;
	memcpy(&magic, buf, sizeof(magic));
	return weft_get16(magic) == WEFT_BOOT_ADDRESS_MAGIC;
}

size_t weft_boot_pack(const struct weft_boot *b, void *buf)
{
	struct weft_wire_boot_address w = {
		.magic = weft_put16(WEFT_BOOT_ADDRESS_MAGIC),
		.major = WEFT_WIRE_MAJOR,
		.iface = (uint8_t)(b->kind << 5 | b->index),
		.worker_id = weft_put64(b->worker_id),
		.secret = weft_put64(b->secret),
		.digest = weft_put64(b->digest),
		.host = weft_put32(b->host),
		.host_lane = (uint8_t)(b->iface.variant << 5 | b->host_lane),
	};
	size_t length = HEAD + b->iface.length;

	memcpy(w.bytes, b->iface.bytes, b->iface.length);
	w.crc = weft_put32(crc_of(&w, length));
	memcpy(buf, &w, length);
	return length;
}

static int bad_boot(char *why, size_t why_len, const char *text)
{
	if (why)
		snprintf(why, why_len, "%s", text);
	return -EINVAL;
}

int weft_boot_unpack(struct weft_boot *b, const void *buf, size_t length, char *why, size_t why_len)
{
	struct weft_wire_boot_address w = {{0}};

	*b = (struct weft_boot){0};
	if (!weft_boot_is(buf, length))
		return bad_boot(why, why_len, "this is no boot address");
	/* Magic and major version have the same place in every version. */
	if (length < offsetof(struct weft_wire_boot_address, iface))
		return bad_boot(why, why_len,
				"the boot address is truncated: pass all bytes of "
				"weft_worker_get_boot_address()");
	memcpy(&w, buf, length < sizeof(w) ? length : sizeof(w));
	b->major = w.major;
	if (w.major != WEFT_WIRE_MAJOR) {
		if (why)
			snprintf(why, why_len,
				 "the boot address was made by protocol version %u, this is %u: "
				 "both ends need the same major version",
				 w.major, WEFT_WIRE_MAJOR);
		return -EPROTONOSUPPORT;
	}
	if (length < HEAD || length > sizeof(w))
		return bad_boot(why, why_len,
				"the boot address is truncated or has something behind it: pass "
				"exactly the bytes of weft_worker_get_boot_address()");
	if (weft_get32(w.crc) != crc_of(buf, length))
		return bad_boot(why, why_len,
				"the boot address is damaged: pass the bytes of "
				"weft_worker_get_boot_address() unchanged");
	b->worker_id = weft_get64(w.worker_id);
	b->secret = weft_get64(w.secret);
	b->digest = weft_get64(w.digest);
	b->host = weft_get32(w.host);
	b->kind = w.iface >> 5;
	b->index = w.iface & 31;
	b->host_lane = w.host_lane & 31;
	b->iface.variant = w.host_lane >> 5;
	b->iface.length = (uint8_t)(length - HEAD);
	memcpy(b->iface.bytes, w.bytes, b->iface.length);
	if (b->worker_id == 0 || b->index >= WEFT_MAX_IFACES || b->host_lane > WEFT_MAX_IFACES ||
	    b->kind == WEFT_LANE_BOOT_HOST || (b->kind && b->host_lane == b->index + 1))
		return bad_boot(why, why_len,
				"the boot address contradicts itself: pass the bytes of "
				"weft_worker_get_boot_address() unchanged");
	return 0;
}
