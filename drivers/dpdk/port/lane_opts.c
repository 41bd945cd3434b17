/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/lane_opts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "frame/arp.h"

static bool is_ipv6(const struct weft_opt *it)
{
	return memchr(it->value, ':', it->value_len) != NULL;
}

static bool read_ipv6(const char *text, size_t len, uint8_t ip6[16])
{
	char copy[INET6_ADDRSTRLEN];

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return inet_pton(AF_INET6, copy, ip6) == 1 && weft_ip6_is_unicast(ip6);
}

static int set_ip6(struct weft_lane_opts *o, const struct weft_opt *it, const char *slash,
		   size_t len)
{
	uint32_t prefix = 0;

	if (!slash || !read_ipv6(it->value, len, o->ip6) ||
	    weft_opt_digits(slash + 1, it->value_len - len - 1, 1, 128, &prefix))
		return weft_opt_complain(it,
					 WEFT_OPT_FMT
					 ": an IPv6 address that a host can have and its prefix "
					 "length are wanted, as in ip=fd00::1/64",
					 WEFT_OPT_ARG(it));
	o->six = true;
	o->prefix = (uint8_t)prefix;
	return 0;
}

static int set_ip(void *opts, const struct weft_opt *it)
{
	struct weft_lane_opts *o = opts;
	const char *slash = memchr(it->value, '/', it->value_len);
	size_t len = slash ? (size_t)(slash - it->value) : it->value_len;
	uint32_t prefix = 0;

	if (is_ipv6(it))
		return set_ip6(o, it, slash, len);
	if (weft_opt_ipv4(it->value, len, &o->ip))
		return weft_opt_complain(it,
					 WEFT_OPT_FMT
					 ": an IPv4 address and its prefix length are wanted, "
					 "as in ip=10.0.0.1/24",
					 WEFT_OPT_ARG(it));
	if (!slash)
		return weft_opt_complain(it,
					 WEFT_OPT_FMT
					 " has no prefix length; write it as in ip=10.0.0.1/24",
					 WEFT_OPT_ARG(it));
	if (weft_opt_digits(slash + 1, it->value_len - len - 1, 1, 32, &prefix))
		return weft_opt_complain(it, WEFT_OPT_FMT ": the prefix length goes from 1 to 32",
					 WEFT_OPT_ARG(it));
	o->prefix = (uint8_t)prefix;
	if (!weft_lane_is_hosts(o->ip, prefix))
		return weft_opt_complain(it, WEFT_OPT_FMT " is not an address that a host can have",
					 WEFT_OPT_ARG(it));
	return 0;
}

static int set_gw(void *opts, const struct weft_opt *it)
{
	struct weft_lane_opts *o = opts;

	if (is_ipv6(it) && read_ipv6(it->value, it->value_len, o->gw6))
		return 0;
	if (weft_opt_ipv4(it->value, it->value_len, &o->gw) || !weft_lane_is_unicast(o->gw))
		return weft_opt_complain(it,
					 WEFT_OPT_FMT
					 ": the gateway's address is wanted, as in gw=10.0.0.254",
					 WEFT_OPT_ARG(it));
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "02:00:00:00:00:0a", of one station: neither a group address nor all zeros. */
static int parse_mac(const char *p, size_t len, uint8_t mac[6])
{
	int hi, lo, i;
	unsigned int any = 0;

	if (len != 17)
		return -EINVAL;
	for (i = 0; i < 6; i++, p += 3) {
		hi = hex_digit(p[0]);
		lo = hex_digit(p[1]);
		if (hi < 0 || lo < 0 || (i < 5 && p[2] != ':'))
			return -EINVAL;
		mac[i] = (uint8_t)(hi << 4 | lo);
		any |= mac[i];
	}
	return any == 0 || mac[0] & 1 ? -EINVAL : 0;
}

static bool read_neigh(const char *p, size_t len, struct weft_lane_neigh *e)
{
	*e = (struct weft_lane_neigh){0};
	if (memchr(p, ':', len))
		return read_ipv6(p, len, e->ip6);
	return weft_opt_ipv4(p, len, &e->ip) == 0 && weft_lane_is_unicast(e->ip);
}

static int add_neigh(struct weft_lane_opts *o, const struct weft_opt *it, const char *p, size_t len)
{
	const char *dash = memchr(p, '-', len);
	size_t n = dash ? (size_t)(dash - p) : len;
	struct weft_lane_neigh *e = &o->neigh[o->num_neigh];
	int i;

	if (o->num_neigh == WEFT_LANE_NEIGH_MAX)
		return weft_opt_complain(it,
					 "lane option 'neigh' has more than %d neighbours: give a "
					 "gateway (gw=) and its MAC address alone",
					 WEFT_LANE_NEIGH_MAX);
	if (!dash || !read_neigh(p, n, e) || parse_mac(dash + 1, len - n - 1, e->mac))
		return weft_opt_complain(it,
					 "lane option 'neigh': '%.*s' is not an IP address and "
					 "its MAC address, as in neigh=10.0.0.1-02:00:00:00:00:0a; "
					 "several are joined by +",
					 (int)len, p);
	for (i = 0; i < o->num_neigh; i++)
		if (o->neigh[i].ip == e->ip && memcmp(o->neigh[i].ip6, e->ip6, sizeof(e->ip6)) == 0)
			return weft_opt_complain(it, "lane option 'neigh': %.*s is given twice",
						 (int)n, p);
	o->num_neigh++;
	return 0;
}

static int set_neigh(void *opts, const struct weft_opt *it)
{
	const char *p = it->value, *end = p + it->value_len, *plus;
	int rc;

	do {
		plus = memchr(p, '+', (size_t)(end - p));
		rc = add_neigh(opts, it, p, (size_t)((plus ? plus : end) - p));
		p = plus ? plus + 1 : NULL;
	} while (rc == 0 && p);
	return rc;
}

static int set_ecn(void *opts, const struct weft_opt *it)
{
	struct weft_lane_opts *o = opts;
	uint32_t v = 0;
	int rc = weft_opt_number(it, 0, 1, &v);

	if (rc == 0)
		o->no_ecn = v == 0;
	return rc;
}

static bool word_equals(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && memcmp(text, word, len) == 0;
}

static int item_word(const struct weft_opt *it, const char *const *words, int count, int8_t *out)
{
	char list[64];
	size_t used = 0;
	int i;

	for (i = 0; i < count; i++)
		if (word_equals(it->value, it->value_len, words[i])) {
			*out = (int8_t)i;
			return 0;
		}
	for (i = 0; i < count && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 words[i]);
	return weft_opt_complain(it, WEFT_OPT_FMT ": one of %s is wanted", WEFT_OPT_ARG(it), list);
}

static int set_encap(void *opts, const struct weft_opt *it)
{
	struct weft_lane_opts *o = opts;
	static const char *const words[] = {
		[WEFT_ENCAP_UDP] = "udp",
		[WEFT_ENCAP_ETHER] = "ether",
	};

	return item_word(it, words, 2, &o->encap);
}

static int set_csum(void *opts, const struct weft_opt *it)
{
	struct weft_lane_opts *o = opts;
	static const char *const words[] = {
		[WEFT_CSUM_AUTO] = "auto",
		[WEFT_CSUM_NONE] = "none",
		[WEFT_CSUM_UDP] = "udp",
		[WEFT_CSUM_CRC32C] = "crc32c",
	};

	return item_word(it, words, 4, &o->csum);
}

static int set_role(void *opts, const struct weft_opt *it)
{
	struct weft_lane_opts *o = opts;
	static const char *const words[] = {
		[WEFT_MEMIF_SERVER] = "server",
		[WEFT_MEMIF_CLIENT] = "client",
	};

	return item_word(it, words, 2, &o->role);
}

#define NUMBER(name, field, least, most) \
	WEFT_OPT_NUMBER(name, struct weft_lane_opts, field, least, most)

static const struct weft_opt_key keys[] = {
	{.key = "ip", .set = set_ip},
	{.key = "gw", .set = set_gw},
	{.key = "neigh", .set = set_neigh},
	NUMBER("port", udp_port, 1, 65535),
	NUMBER("mtu", mtu, WEFT_MTU_MIN, WEFT_MTU_MAX),
	NUMBER("vlan", vlan, 1, 4094),
	NUMBER("paths", paths, 1, WEFT_LANE_PATHS_MAX),
	{.key = "encap", .set = set_encap},
	{.key = "csum", .set = set_csum},
	NUMBER("queues", queues, 1, WEFT_LANE_QUEUES_MAX),
	NUMBER("dscp", dscp, 0, 63),
	{.key = "ecn", .set = set_ecn},
	{.key = "role", .set = set_role},
	NUMBER("id", id, 0, 999999999),
	NUMBER("bsize", bsize, 1536, UINT16_MAX),
	NUMBER("rsize", rsize, 1, 14),
};

static bool is_set6(const uint8_t ip6[16])
{
	static const uint8_t none[16];

	return memcmp(ip6, none, sizeof(none)) != 0;
}

static int check_kinds(const struct weft_lane_opts *o, const struct weft_opt *it)
{
	if (o->six ? o->gw != 0 : is_set6(o->gw6))
		return weft_opt_complain(it, "lane option 'gw' needs 'ip' with an address of the "
					     "same kind, IPv4 or IPv6");
	for (int i = 0; i < o->num_neigh; i++)
		if (o->six != (o->neigh[i].ip == 0))
			return weft_opt_complain(it, "lane option 'neigh' has an address of "
						     "another kind than 'ip': IPv4, IPv6");
	if (!o->six)
		return 0;
	if (memcmp(o->gw6, o->ip6, sizeof(o->ip6)) == 0)
		return weft_opt_complain(it, "lane option 'gw' is the lane's own address");
	for (int i = 0; i < o->num_neigh; i++)
		if (memcmp(o->neigh[i].ip6, o->ip6, sizeof(o->ip6)) == 0)
			return weft_opt_complain(it,
						 "lane option 'neigh' has the lane's own address");
	if (o->queues > 1)
		return weft_opt_complain(it, "lane option 'queues' needs an IPv4 address: a port "
					     "with IPv6 has one queue");
	return 0;
}

static int check_together(const struct weft_lane_opts *o, const struct weft_opt *it)
{
	int i;

	if (o->gw && !o->ip)
		return weft_opt_complain(it,
					 "lane option 'gw' needs 'ip': a link-local address has no "
					 "gateway");
	if (o->gw && o->gw == o->ip)
		return weft_opt_complain(it, "lane option 'gw' is the lane's own address");
	if (o->gw && weft_lane_same_net(o->gw, o->ip, o->prefix) &&
	    !weft_lane_is_hosts(o->gw, o->prefix))
		return weft_opt_complain(
			it, "lane option 'gw' is the first or the last address of the network of "
			    "'ip', which no host has");
	for (i = 0; i < o->num_neigh; i++)
		if (o->ip && o->neigh[i].ip == o->ip)
			return weft_opt_complain(it,
						 "lane option 'neigh' has the lane's own address");
	if (o->encap == WEFT_ENCAP_ETHER &&
	    (o->ip || o->six || o->udp_port || o->paths > 1 || o->num_neigh))
		return weft_opt_complain(
			it, "lane option 'encap=ether' has no IP and no UDP: leave out ip, "
			    "gw, neigh, port and paths");
	if (o->encap == WEFT_ENCAP_ETHER && o->dscp != 0)
		return weft_opt_complain(it, "lane option 'dscp' needs 'encap=udp': without IP "
					     "there is no such field");
	if (o->encap == WEFT_ENCAP_ETHER && o->csum == WEFT_CSUM_UDP)
		return weft_opt_complain(it, "lane option 'csum=udp' needs 'encap=udp'");
	return 0;
}

int weft_lane_opts_parse(const char *text, struct weft_lane_opts *opts, char *why, size_t why_len)
{
	struct weft_opt it = {.why = why, .why_len = why_len};
	int rc;

	*opts = (struct weft_lane_opts){.encap = -1, .csum = -1, .role = -1};
	rc = weft_optlist_parse(text, keys, sizeof(keys) / sizeof(keys[0]), WEFT_LANE_OPTS_KNOWN,
				opts, why, why_len);
	if (rc == 0)
		rc = check_kinds(opts, &it);
	return rc ? rc : check_together(opts, &it);
}
