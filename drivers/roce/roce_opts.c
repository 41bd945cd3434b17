/* SPDX-License-Identifier: BSD-3-Clause */

#include "roce_opts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "roce_wire.h"

/* DSCP 26 (AF31), ECN-capable: the default in NIC vendors' guides for RoCE with DCQCN. */
#define DEFAULT_TC 106
/* 268 ms; with 6 retries it gives up after 1.9 s: longer than switches need to change a route. */
#define DEFAULT_TIMEOUT 16
#define DEFAULT_RETRY 6
#define DEFAULT_RNR_TIMER 12 /* 0.64 ms */
#define DEFAULT_WINDOW 64
#define DEFAULT_SEG (8192 + 128)

static int set_number(const struct weft_opt *it, uint32_t min, uint32_t max, unsigned int *to)
{
	uint32_t v = 0;
	int rc = weft_opt_number(it, min, max, &v);

	if (rc == 0)
		*to = v;
	return rc;
}

static int set_gid(void *opts, const struct weft_opt *it)
{
	unsigned int v = 0;
	int rc = set_number(it, 0, 255, &v);

	if (rc == 0)
		((struct weft_roce_opts *)opts)->gid = (int)v;
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

	/* Also as hexadecimal number: guides and tools write 0x6a. */
	if (it->value_len > 2 && it->value_len <= 4 && it->value[0] == '0' &&
	    (it->value[1] | 32) == 'x') {
		snprintf(text, sizeof(text), "%.*s", (int)it->value_len, it->value);
		*tc = (unsigned int)strtoul(text, &end, 16);
		if (*end == '\0')
			return 0;
	}
	return set_number(it, 0, 255, tc);
}

static int set_timeout(void *opts, const struct weft_opt *it)
{
	return set_number(it, 1, 31, &((struct weft_roce_opts *)opts)->timeout);
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

static int set_qps(void *opts, const struct weft_opt *it)
{
	return set_number(it, 1, WEFT_ROCE_MAX_QPS, &((struct weft_roce_opts *)opts)->qps);
}

static int set_window(void *opts, const struct weft_opt *it)
{
	return set_number(it, 4, WEFT_ROCE_WINDOW_MAX, &((struct weft_roce_opts *)opts)->window);
}

static int set_seg(void *opts, const struct weft_opt *it)
{
	return set_number(it, WEFT_ROCE_SEG_MIN, WEFT_ROCE_SEG_MAX,
			  &((struct weft_roce_opts *)opts)->seg);
}

static const struct weft_opt_key keys[] = {
	{"gid", set_gid},
	{"subnet", set_subnet},
	{"mtu", set_mtu},
	{"tc", set_tc},
	{"timeout", set_timeout},
	{"retry", set_retry},
	{"rnr_timer", set_rnr_timer},
	{"qps", set_qps},
	{"window", set_window},
	{"seg", set_seg},
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
		.seg = DEFAULT_SEG,
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
