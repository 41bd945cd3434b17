/* SPDX-License-Identifier: BSD-3-Clause */

#include "lane_opts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* One "key=value" of the text, and where a complaint about it goes. */
struct item {
	const char *key, *value;
	size_t key_len, value_len;
	char *why;
	size_t why_len;
};

__attribute__((format(printf, 2, 3))) static int complain(const struct item *it, const char *fmt,
							  ...)
{
	va_list ap;

	if (it->why && it->why_len) {
		va_start(ap, fmt);
		vsnprintf(it->why, it->why_len, fmt, ap);
		va_end(ap);
	}
	return -EINVAL;
}

/* "it says 'mtu=abc', ..." needs the item as the user wrote it. */
#define ITEM_FMT "lane option '%.*s=%.*s'"
#define ITEM_ARG(it) (int)(it)->key_len, (it)->key, (int)(it)->value_len, (it)->value

/* Decimal digits only, all of the text, within [min, max]. */
static int number(const char *text, size_t len, uint32_t min, uint32_t max, uint32_t *out)
{
	uint64_t v = 0;
	size_t i;

	if (len == 0 || len > 9)
		return -EINVAL;
	for (i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		v = v * 10 + (uint64_t)(text[i] - '0');
	}
	if (v < min || v > max)
		return -EINVAL;
	*out = (uint32_t)v;
	return 0;
}

static int item_number(const struct item *it, uint32_t min, uint32_t max, uint32_t *out)
{
	if (number(it->value, it->value_len, min, max, out) == 0)
		return 0;
	return complain(it, ITEM_FMT ": a number from %" PRIu32 " to %" PRIu32 " is wanted",
			ITEM_ARG(it), min, max);
}

/* Dotted quad without leading zeros (they mean octal to some, decimal to others). */
static int address(const char *text, size_t len, uint32_t *out)
{
	const char *end = text + len, *dot;
	uint32_t part, ip = 0;
	int i;

	for (i = 0; i < 4; i++) {
		dot = i < 3 ? memchr(text, '.', (size_t)(end - text)) : end;
		if (!dot || number(text, (size_t)(dot - text), 0, 255, &part))
			return -EINVAL;
		if (*text == '0' && dot - text > 1)
			return -EINVAL;
		ip = ip << 8 | part;
		text = dot + 1;
	}
	*out = ip;
	return 0;
}

static uint32_t mask_of(unsigned int prefix)
{
	return prefix ? UINT32_MAX << (32 - prefix) : 0;
}

/* Can a host have this address? */
static bool is_unicast(uint32_t ip)
{
	return ip >> 24 != 0 && ip >> 24 != 127 && ip >> 28 < 14;
}

static int set_ip(struct weft_lane_opts *o, const struct item *it)
{
	const char *slash = memchr(it->value, '/', it->value_len);
	size_t len = slash ? (size_t)(slash - it->value) : it->value_len;
	uint32_t prefix = 0, host;

	if (address(it->value, len, &o->ip))
		return complain(it,
				ITEM_FMT ": an IPv4 address and its prefix length are wanted, "
					 "as in ip=10.0.0.1/24",
				ITEM_ARG(it));
	if (!slash)
		return complain(it, ITEM_FMT " has no prefix length; write it as in ip=10.0.0.1/24",
				ITEM_ARG(it));
	if (number(slash + 1, it->value_len - len - 1, 1, 32, &prefix))
		return complain(it, ITEM_FMT ": the prefix length goes from 1 to 32", ITEM_ARG(it));
	o->prefix = (uint8_t)prefix;
	host = o->ip & ~mask_of(prefix);
	if (!is_unicast(o->ip) || (prefix < 31 && (host == 0 || host == ~mask_of(prefix))))
		return complain(it, ITEM_FMT " is not an address that a host can have",
				ITEM_ARG(it));
	return 0;
}

static int set_gw(struct weft_lane_opts *o, const struct item *it)
{
	if (address(it->value, it->value_len, &o->gw) || !is_unicast(o->gw))
		return complain(it,
				ITEM_FMT ": the gateway's IPv4 address is wanted, as in "
					 "gw=10.0.0.254",
				ITEM_ARG(it));
	return 0;
}

static int set_port(struct weft_lane_opts *o, const struct item *it)
{
	uint32_t v = 0;
	int rc = item_number(it, 1, 65535, &v);

	if (rc == 0)
		o->udp_port = (uint16_t)v;
	return rc;
}

static int set_mtu(struct weft_lane_opts *o, const struct item *it)
{
	uint32_t v = 0;
	int rc = item_number(it, WEFT_MTU_MIN, WEFT_MTU_MAX, &v);

	if (rc == 0)
		o->mtu = (uint16_t)v;
	return rc;
}

static int set_vlan(struct weft_lane_opts *o, const struct item *it)
{
	uint32_t v = 0;
	int rc = item_number(it, 1, 4094, &v);

	if (rc == 0)
		o->vlan = (uint16_t)v;
	return rc;
}

static int set_paths(struct weft_lane_opts *o, const struct item *it)
{
	uint32_t v = 0;
	int rc = item_number(it, 1, WEFT_LANE_PATHS_MAX, &v);

	if (rc == 0)
		o->paths = (uint8_t)v;
	return rc;
}

static int set_queues(struct weft_lane_opts *o, const struct item *it)
{
	uint32_t v = 0;
	int rc = item_number(it, 1, WEFT_LANE_QUEUES_MAX, &v);

	if (rc == 0)
		o->queues = (uint16_t)v;
	return rc;
}

static bool equals(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && memcmp(text, word, len) == 0;
}

/* One of @p count words; its index. */
static int item_word(const struct item *it, const char *const *words, int count, int8_t *out)
{
	char list[64];
	size_t used = 0;
	int i;

	for (i = 0; i < count; i++)
		if (equals(it->value, it->value_len, words[i])) {
			*out = (int8_t)i;
			return 0;
		}
	for (i = 0; i < count && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 words[i]);
	return complain(it, ITEM_FMT ": one of %s is wanted", ITEM_ARG(it), list);
}

static int set_encap(struct weft_lane_opts *o, const struct item *it)
{
	static const char *const words[] = {
		[WEFT_ENCAP_UDP] = "udp",
		[WEFT_ENCAP_ETHER] = "ether",
	};

	return item_word(it, words, 2, &o->encap);
}

static int set_csum(struct weft_lane_opts *o, const struct item *it)
{
	static const char *const words[] = {
		[WEFT_CSUM_AUTO] = "auto",
		[WEFT_CSUM_NONE] = "none",
		[WEFT_CSUM_UDP] = "udp",
		[WEFT_CSUM_CRC32C] = "crc32c",
	};

	return item_word(it, words, 4, &o->csum);
}

static const struct {
	const char *key;
	int (*set)(struct weft_lane_opts *o, const struct item *it);
} keys[] = {
	{"ip", set_ip},       {"gw", set_gw},     {"port", set_port},
	{"mtu", set_mtu},     {"vlan", set_vlan}, {"paths", set_paths},
	{"encap", set_encap}, {"csum", set_csum}, {"queues", set_queues},
};

#define NUM_KEYS (sizeof(keys) / sizeof(keys[0]))

static int apply(struct weft_lane_opts *o, const struct item *it, uint32_t *seen)
{
	size_t i;

	for (i = 0; i < NUM_KEYS; i++) {
		if (!equals(it->key, it->key_len, keys[i].key))
			continue;
		if (*seen & 1u << i)
			return complain(it, "lane option '%s' is given twice", keys[i].key);
		*seen |= 1u << i;
		return keys[i].set(o, it);
	}
	return complain(it, "there is no lane option '%.*s'; there are " WEFT_LANE_OPTS_KNOWN,
			(int)it->key_len, it->key);
}

/* What only makes sense together. */
static int check_together(const struct weft_lane_opts *o, const struct item *it)
{
	if (o->gw && !o->ip)
		return complain(it, "lane option 'gw' needs 'ip': a link-local address has no "
				    "gateway");
	if (o->gw && ((o->gw ^ o->ip) & mask_of(o->prefix)))
		return complain(it, "lane option 'gw': the gateway is not in the network of 'ip', "
				    "so it can't be reached");
	if (o->gw && o->gw == o->ip)
		return complain(it, "lane option 'gw' is the lane's own address");
	if (o->encap == WEFT_ENCAP_ETHER && (o->ip || o->udp_port || o->paths > 1))
		return complain(it, "lane option 'encap=ether' has no IP and no UDP: leave out ip, "
				    "gw, port and paths");
	if (o->encap == WEFT_ENCAP_ETHER && o->csum == WEFT_CSUM_UDP)
		return complain(it, "lane option 'csum=udp' needs 'encap=udp'");
	return 0;
}

int weft_lane_opts_parse(const char *text, struct weft_lane_opts *opts, char *why, size_t why_len)
{
	struct item it = {.why = why, .why_len = why_len};
	const char *end, *equal;
	uint32_t seen = 0;
	int rc;

	*opts = (struct weft_lane_opts){.encap = -1, .csum = -1};
	while (text && *text) {
		end = strchrnul(text, ',');
		equal = memchr(text, '=', (size_t)(end - text));
		it.key = text;
		it.key_len = (size_t)((equal ? equal : end) - text);
		if (!equal || it.key_len == 0)
			return complain(&it,
					"lane option '%.*s' is not of the form name=value; "
					"there are " WEFT_LANE_OPTS_KNOWN,
					(int)(end - text), text);
		it.value = equal + 1;
		it.value_len = (size_t)(end - it.value);
		rc = apply(opts, &it, &seen);
		if (rc)
			return rc;
		if (*end && !end[1])
			return complain(&it, "lane options end with a comma");
		text = *end ? end + 1 : end;
	}
	return check_together(opts, &it);
}

uint32_t weft_lane_link_local(const uint8_t mac[6])
{
	uint32_t h = 2166136261u; /* FNV-1a: close MACs must give different addresses */
	int i;

	for (i = 0; i < 6; i++)
		h = (h ^ mac[i]) * 16777619u;
	h ^= h >> 16;
	/* 169.254.0.* and 169.254.255.* are reserved. */
	return 0xa9fe0100u + h % (254u * 256u);
}
