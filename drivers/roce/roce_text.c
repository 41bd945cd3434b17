/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "lane_attr.h"
#include "roce_text.h"
#include "roce_wire.h"

/* ------------------------------------------------------------------ the GID of a lane */

bool weft_roce_gid_in(const uint8_t gid[16], const struct weft_roce_subnet *net)
{
	unsigned int bits = net->prefix, whole = bits / 8, rest = bits % 8;

	if (memcmp(gid, net->net, whole) != 0)
		return false;
	return rest == 0 || ((gid[whole] ^ net->net[whole]) >> (8 - rest)) == 0;
}

/* Kinds of GID entries, best first. */
enum rank { V2_IPV4, V2_IPV4_LOCAL, V2_IPV6, V2_IPV6_LOCAL, V1, NUM_RANKS };

static const char *const rank_words[NUM_RANKS] = {
	[V2_IPV4] = "RoCE v2 over IPv4",
	[V2_IPV4_LOCAL] = "RoCE v2 over link-local IPv4",
	[V2_IPV6] = "RoCE v2 over IPv6",
	[V2_IPV6_LOCAL] = "RoCE v2 over link-local IPv6",
	[V1] = "RoCE v1",
};

static enum rank rank_of(const struct weft_roce_gid *g)
{
	if (!g->v2)
		return V1;
	if (weft_roce_gid_is_ipv4(g->gid))
		return g->gid[12] == 169 && g->gid[13] == 254 ? V2_IPV4_LOCAL : V2_IPV4;
	return g->gid[0] == 0xfe && (g->gid[1] & 0xc0) == 0x80 ? V2_IPV6_LOCAL : V2_IPV6;
}

static const struct weft_roce_gid *nth_best(const struct weft_roce_gid *table, int num, int n)
{
	int rank, i;

	for (rank = 0; rank < NUM_RANKS; rank++)
		for (i = 0; i < num; i++)
			if (rank_of(&table[i]) == (enum rank)rank && n-- == 0)
				return &table[i];
	return NULL;
}

/* Print "0: 10.0.0.1 v2, 1: fe80::1 v1 and 3 more": entries that fit, the best ones first. */
static void print_table(const struct weft_roce_gid *table, int num, char *buf, size_t size)
{
	const struct weft_roce_gid *g;
	char addr[48], entry[80];
	size_t used = 0, len;
	int i;

	buf[0] = '\0';
	for (i = 0; i < num; i++) {
		g = nth_best(table, num, i);
		weft_roce_gid_print(g->gid, addr, sizeof(addr));
		len = (size_t)snprintf(entry, sizeof(entry), "%s%u: %s %s", i ? ", " : "", g->index,
				       addr, g->v2 ? "v2" : "v1");
		if (used + len + sizeof(" and 256 more") > size) {
			snprintf(buf + used, size - used, " and %d more", num - i);
			return;
		}
		memcpy(buf + used, entry, len + 1);
		used += len;
	}
}

static int refuse_gid(const struct weft_roce_gid *table, int num, int index,
		      const struct weft_roce_subnet *subnet, char *why, size_t why_len)
{
	char list[160], net[48];

	print_table(table, num, list, sizeof(list));
	if (num == 0)
		snprintf(why, why_len,
			 "it has no GID: give its network device an IP address and set it up");
	else if (index >= 0)
		snprintf(why, why_len, "it has no GID with index %d; there are %s", index, list);
	else if (subnet && subnet->prefix) {
		weft_roce_gid_print(subnet->net, net, sizeof(net));
		snprintf(why, why_len,
			 "it has no RoCE v2 GID in the subnet %s (first %u bits); there are %s",
			 net,
			 weft_roce_gid_is_ipv4(subnet->net) ? subnet->prefix - 96u : subnet->prefix,
			 list);
	} else
		snprintf(why, why_len,
			 "it has no RoCE v2 GID, only %s; RoCE v1 is used only when gid=N requests "
			 "it",
			 list);
	return -EADDRNOTAVAIL;
}

int weft_roce_gid_pick(const struct weft_roce_gid *table, int num, int index,
		       const struct weft_roce_subnet *subnet, char *why, size_t why_len)
{
	int best = -1, same = 0, i;

	for (i = 0; i < num; i++) {
		if (index >= 0) {
			if (table[i].index != index)
				continue;
			snprintf(why, why_len, "%s, requested by gid=%d",
				 rank_words[rank_of(&table[i])], index);
			return i;
		}
		if (rank_of(&table[i]) == V1)
			continue;
		if (subnet && subnet->prefix && !weft_roce_gid_in(table[i].gid, subnet))
			continue;
		if (best >= 0 && rank_of(&table[i]) == rank_of(&table[best]))
			same++;
		if (best < 0 || rank_of(&table[i]) < rank_of(&table[best])) {
			best = i;
			same = 1;
		}
	}
	if (best < 0)
		return refuse_gid(table, num, index, subnet, why, why_len);
	if (same > 1)
		snprintf(why, why_len, "%s%s, the first of %d", rank_words[rank_of(&table[best])],
			 subnet && subnet->prefix ? " in the subnet" : "", same);
	else
		snprintf(why, why_len, "%s%s", rank_words[rank_of(&table[best])],
			 subnet && subnet->prefix ? " in the subnet" : "");
	return best;
}

/* ------------------------------------------------------------------ options */

/* DSCP 26 (AF31), ECN-capable: the default in NIC vendors' guides for RoCE with DCQCN. */
#define DEFAULT_TC 106
/* 268 ms. With 6 retries a device gives up after 1.9 s: switches change a route in less time. */
#define DEFAULT_TIMEOUT 16
#define DEFAULT_RETRY 6
#define DEFAULT_RNR_TIMER 12 /* 0.64 ms */
#define DEFAULT_WINDOW 64

static int set_number(const struct weft_opt *it, uint32_t min, uint32_t max, unsigned int *to)
{
	uint32_t v = 0;
	int rc = weft_opt_number(it, min, max, &v);

	if (rc == 0)
		*to = v;
	return rc;
}

static int set_subnet(void *opts, const struct weft_opt *it)
{
	struct weft_roce_subnet *net = &((struct weft_roce_opts *)opts)->subnet;
	const char *slash = memchr(it->value, '/', it->value_len);
	size_t len = slash ? (size_t)(slash - it->value) : 0;
	bool v4 = memchr(it->value, ':', it->value_len) == NULL;
	char text[64];
	uint32_t ip, prefix;

	if (!slash || len >= sizeof(text) ||
	    weft_opt_digits(slash + 1, it->value_len - len - 1, 1, v4 ? 32 : 128, &prefix))
		goto bad;
	if (v4) {
		if (weft_opt_ipv4(it->value, len, &ip))
			goto bad;
		memset(net->net, 0, 10);
		net->net[10] = net->net[11] = 0xff;
		ip = htonl(ip);
		memcpy(net->net + 12, &ip, 4);
		prefix += 96;
	} else {
		memcpy(text, it->value, len);
		text[len] = '\0';
		if (inet_pton(AF_INET6, text, net->net) != 1)
			goto bad;
	}
	net->prefix = (uint8_t)prefix;
	return 0;
bad:
	return weft_opt_complain(it,
				 WEFT_OPT_FMT ": a network and its prefix length are wanted, as in "
					      "subnet=10.0.0.0/16",
				 WEFT_OPT_ARG(it));
}

static int set_mtu(void *opts, const struct weft_opt *it)
{
	unsigned int v = 0;
	int rc = set_number(it, 0, 65535, &v);

	if (rc == 0 && (v < 256 || v > 4096 || (v & (v - 1))))
		return weft_opt_complain(it,
					 WEFT_OPT_FMT
					 ": one of 256, 512, 1024, 2048, 4096 is wanted "
					 "(the network device's MTU is set elsewhere)",
					 WEFT_OPT_ARG(it));
	((struct weft_roce_opts *)opts)->mtu = v;
	return rc;
}

static int set_tc(void *opts, const struct weft_opt *it)
{
	unsigned int *tc = &((struct weft_roce_opts *)opts)->tc;
	char text[8], *end;

	/* Accept a hexadecimal number, too: guides and tools write 0x6a. */
	if (it->value_len > 2 && it->value_len <= 4 && it->value[0] == '0' &&
	    (it->value[1] | 32) == 'x') {
		snprintf(text, sizeof(text), "%.*s", (int)it->value_len, it->value);
		*tc = (unsigned int)strtoul(text, &end, 16);
		if (*end == '\0')
			return 0;
	}
	return set_number(it, 0, 255, tc);
}

static int set_retry(void *opts, const struct weft_opt *it)
{
	if (it->value_len == 1 && it->value[0] == '7')
		return weft_opt_complain(it,
					 WEFT_OPT_FMT ": a number from 0 to 6 is wanted (7 means "
						      "for ever on some devices)",
					 WEFT_OPT_ARG(it));
	return set_number(it, 0, 6, &((struct weft_roce_opts *)opts)->retry);
}

static int set_rnr_timer(void *opts, const struct weft_opt *it)
{
	if (it->value_len == 1 && it->value[0] == '0')
		return weft_opt_complain(it,
					 WEFT_OPT_FMT ": a number from 1 to 31 is wanted (0 means "
						      "655 ms)",
					 WEFT_OPT_ARG(it));
	return set_number(it, 1, 31, &((struct weft_roce_opts *)opts)->rnr_timer);
}

#define NUMBER(name, field, least, most) \
	WEFT_OPT_NUMBER(name, struct weft_roce_opts, field, least, most)

static const struct weft_opt_key keys[] = {
	NUMBER("gid", gid, 0, 255),
	{.key = "subnet", .set = set_subnet},
	{.key = "mtu", .set = set_mtu},
	{.key = "tc", .set = set_tc},
	NUMBER("timeout", timeout, 1, 31),
	{.key = "retry", .set = set_retry},
	{.key = "rnr_timer", .set = set_rnr_timer},
	NUMBER("qps", qps, 1, WEFT_ROCE_MAX_QPS),
	NUMBER("window", window, 4, WEFT_ROCE_WINDOW_MAX),
	NUMBER("seg", seg, WEFT_ROCE_SEG_MIN, WEFT_ROCE_SEG_MAX),
};

int weft_roce_opts_parse(const char *text, struct weft_roce_opts *opts, char *why, size_t why_len)
{
	struct weft_opt it = {.why = why, .why_len = why_len};
	int rc;

	*opts = (struct weft_roce_opts){
		.gid = -1,
		.tc = DEFAULT_TC,
		.timeout = DEFAULT_TIMEOUT,
		.retry = DEFAULT_RETRY,
		.rnr_timer = DEFAULT_RNR_TIMER,
		.qps = 1,
		.window = DEFAULT_WINDOW,
		.seg = WEFT_LANE_ROCE_SEG,
	};
	rc = weft_optlist_parse(text, keys, sizeof(keys) / sizeof(keys[0]), WEFT_ROCE_OPTS_KNOWN,
				opts, why, why_len);
	if (rc == 0 && opts->gid >= 0 && opts->subnet.prefix)
		return weft_opt_complain(&it, "lane options 'gid' and 'subnet' both choose the "
					      "address: give one of them");
	return rc;
}

int weft_roce_resource_parse(const char *text, char *device, size_t size, unsigned int *port)
{
	const char *colon = strchrnul(text, ':');
	size_t len = (size_t)(colon - text);
	uint32_t v = 1;

	if (len == 0 || len >= size ||
	    (*colon && weft_opt_digits(colon + 1, strlen(colon + 1), 1, 255, &v)))
		return -EINVAL;
	memcpy(device, text, len);
	device[len] = '\0';
	*port = v;
	return 0;
}

uint64_t weft_roce_give_up_ns(const struct weft_roce_opts *opts)
{
	return (4096ull << opts->timeout) * (opts->retry + 1);
}

/* ------------------------------------------------------------------ error messages */

static const struct {
	int error;
	const char *what, *hint;
} wc_words[] = {
	[IBV_WC_LOC_LEN_ERR] = {-EPROTO, "sent more than a receive buffer holds",
				"do both ends run the same version?"},
	[IBV_WC_LOC_QP_OP_ERR] = {-EIO,
				  "can't be reached any more: the local queue pair can't send",
				  "was the network device taken down, or its address removed?"},
	[IBV_WC_LOC_PROT_ERR] = {-EFAULT, "is not at fault: own memory is not registered any more",
				 "was memory unmapped while it was being sent?"},
	[IBV_WC_BAD_RESP_ERR] = {-EPROTO, "answered with something unexpected", NULL},
	[IBV_WC_LOC_ACCESS_ERR] = {-EFAULT, "is not at fault: own memory may not be written", NULL},
	[IBV_WC_REM_INV_REQ_ERR] = {-EPROTO, "refused a request as invalid", NULL},
	[IBV_WC_REM_ACCESS_ERR] = {-EACCES, "refused access to its memory",
				   "was that memory deregistered?"},
	[IBV_WC_REM_OP_ERR] = {-EREMOTEIO, "could not carry out a request", NULL},
	[IBV_WC_RETRY_EXC_ERR] = {-ETIMEDOUT, "gave no answer",
				  "is the program there, and its link up?"},
	[IBV_WC_RNR_RETRY_EXC_ERR] = {-ETIMEDOUT, "had no receive buffer", NULL},
	[IBV_WC_REM_ABORT_ERR] = {-ECONNABORTED, "ended the operation", NULL},
	[IBV_WC_FATAL_ERR] = {-EIO, "can't be reached any more: the local device failed", NULL},
	[IBV_WC_RESP_TIMEOUT_ERR] = {-ETIMEDOUT, "gave no answer", NULL},
	[IBV_WC_GENERAL_ERR] = {-EIO,
				"can't be reached any more: the local device reports an error",
				NULL},
};

#define NUM_WC (sizeof(wc_words) / sizeof(wc_words[0]))

static const char *status_words(enum ibv_wc_status status)
{
	static const char *const words[] = {
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local queue pair operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "request flushed",
		[IBV_WC_BAD_RESP_ERR] = "bad response",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "receiver-not-ready retry counter exceeded",
		[IBV_WC_REM_ABORT_ERR] = "remote abort",
		[IBV_WC_FATAL_ERR] = "fatal error",
		[IBV_WC_RESP_TIMEOUT_ERR] = "response timeout",
		[IBV_WC_GENERAL_ERR] = "general error",
	};
	unsigned int i = (unsigned int)status;

	return i < sizeof(words) / sizeof(words[0]) && words[i] ? words[i] : "unknown status";
}

int weft_roce_wc_error(enum ibv_wc_status status)
{
	unsigned int i = (unsigned int)status;

	return i < NUM_WC && wc_words[i].error ? wc_words[i].error : -EIO;
}

void weft_roce_text_wc(const struct weft_roce_names *names, enum ibv_wc_status status,
		       uint64_t waited_ns, char *buf, size_t size)
{
	unsigned int i = (unsigned int)status;
	const char *what = i < NUM_WC && wc_words[i].what
				   ? wc_words[i].what
				   : "can't be reached any more: the local queue pair is in error";
	const char *hint = i < NUM_WC ? wc_words[i].hint : NULL;
	char waited[32] = "";

	if (status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR ||
	    status == IBV_WC_RESP_TIMEOUT_ERR)
		snprintf(waited, sizeof(waited), " for %.1f s", (double)waited_ns * 1e-9);
	snprintf(buf, size, "%s: peer %s %s%s (%s)%s%s", names->device, names->peer, what, waited,
		 status_words(status), hint ? ": " : "", hint ? hint : "");
}

void weft_roce_text_connect(const struct weft_roce_names *names, int err, char *buf, size_t size)
{
	const char *why, *hint = "";

	switch (err) {
	case ETIMEDOUT:
	case EHOSTUNREACH:
		why = "does not answer address resolution";
		hint = ": is it on this network, and its link up?";
		break;
	case ENETUNREACH:
		why = "can't be reached: there is no route to it";
		break;
	case EINVAL:
		why = "can't be connected to: the kernel refuses its address or the lane's "
		      "settings";
		hint = ": did the device's own address vanish?";
		break;
	case ENODEV:
		why = "can't be connected to: the local device is gone";
		break;
	default:
		snprintf(buf, size, "%s: peer %s can't be connected to: %s", names->device,
			 names->peer, strerror(err));
		return;
	}
	snprintf(buf, size, "%s: peer %s %s%s", names->device, names->peer, why, hint);
}

void weft_roce_text_qp_event(const struct weft_roce_names *names, enum ibv_event_type type,
			     char *buf, size_t size)
{
	const char *what;

	switch (type) {
	case IBV_EVENT_QP_ACCESS_ERR:
		what = "used memory that it has no key for";
		break;
	case IBV_EVENT_QP_REQ_ERR:
		what = "sent an invalid request";
		break;
	case IBV_EVENT_QP_FATAL:
		what = "can't be reached any more: the local queue pair failed";
		break;
	default:
		what = "can't be reached any more: the local queue pair is in error";
		break;
	}
	snprintf(buf, size, "%s: peer %s %s", names->device, names->peer, what);
}

void weft_roce_text_setup(const char *device, const char *what, int err, uint64_t memlock,
			  char *buf, size_t size)
{
	if (err == ENOMEM && memlock != UINT64_MAX)
		snprintf(
			buf, size,
			"%s: no %s: %sthe limit of locked memory is %llu KiB; raise it ('ulimit -l "
			"unlimited', or memlock in /etc/security/limits.conf)",
			device, what,
			memlock < (64ull << 20) ? "" : "memory is short, most likely because ",
			(unsigned long long)(memlock >> 10));
	else if (err == EPERM || err == EACCES)
		snprintf(buf, size,
			 "%s: no %s: permission denied; give this user the right to open "
			 "/dev/infiniband/uverbs*",
			 device, what);
	else
		snprintf(buf, size, "%s: no %s: %s", device, what, strerror(err));
}
