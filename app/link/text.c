/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Links as text: "loss=1%,delay=50us,rate=10G:64k". One table lists the items.
 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/link.h"

enum unit { NOTHING, SHARE, LENGTH, TIME, RATE, SIZE, FRAMES, MTU, FLAG };

/* A field with its unit, and an optional one that follows it after a colon. */
struct value {
	enum unit unit;
	size_t offset;
};

struct item {
	const char *key;
	struct value value[3];
};

#define AT(unit, field)                                \
	{                                              \
		unit, offsetof(struct sim_link, field) \
	}

static const struct item items[] = {
	{"rate", {AT(RATE, rate), AT(SIZE, rate_burst)}},
	{"delay", {AT(TIME, delay_ns)}},
	{"jitter", {AT(TIME, jitter_ns)}},
	{"queue", {AT(SIZE, queue_bytes)}},
	{"ecn", {AT(SIZE, ecn_bytes)}},
	{"loss", {AT(SHARE, loss)}},
	{"bursts", {AT(SHARE, bursts), AT(LENGTH, burst_len), AT(SHARE, burst_loss)}},
	{"dup", {AT(SHARE, dup)}},
	{"reorder", {AT(SHARE, reorder), AT(TIME, reorder_ns)}},
	{"corrupt", {AT(SHARE, corrupt)}},
	{"truncate", {AT(SHARE, truncate)}},
	{"mtu", {AT(MTU, mtu)}},
	{"police", {AT(RATE, police_rate), AT(SIZE, police_burst)}},
	{"pps", {AT(FRAMES, police_pps), AT(FRAMES, police_pps_burst)}},
	{"flow", {AT(RATE, flow_rate), AT(SIZE, flow_queue)}},
	{"blackout", {AT(FLAG, blackhole)}},
};

#define NUM_ITEMS (sizeof(items) / sizeof(items[0]))

const char sim_link_help[] =
	"  rate=10G[:BURST]        bit/s, and bytes that may pass at once after a pause\n"
	"  delay=50us jitter=20us  one way; jitter is added, uniform, and keeps the order\n"
	"  queue=150k              bytes that may wait for the rate; beyond: tail drop\n"
	"  ecn=60k                 mark ECN-capable packets when more bytes wait\n"
	"  loss=1%                 of all frames, each by itself\n"
	"  bursts=1%[:N[:SHARE]]   of all frames, in bursts of N (10) on average, in which\n"
	"                          that share (100%) is lost\n"
	"  dup=1%  reorder=5%[:T]  sent twice; held back by up to T (100us)\n"
	"  corrupt=1% truncate=1%  1 to 3 bits flipped; cut short\n"
	"  mtu=1500                longest packet, without Ethernet's header\n"
	"  police=1G[:BURST]       bit/s, dropped at once beyond; bytes of burst (65536)\n"
	"  pps=1M[:BURST]          frames a second, the same; frames of burst (64)\n"
	"  flow=5G[:QUEUE]         bit/s of each flow, and bytes of its own queue (65536)\n"
	"  blackout=yes            nothing gets through; =no ends it\n"
	"  clear                   a perfect link, before what follows\n"
	"Shares are 1% or 0.01; times take ns, us, ms, s; other numbers k, M, G (thousands).\n";

/* ---- numbers -------------------------------------------------------------------------------- */

struct suffix {
	const char *text;
	double factor;
};

static const struct suffix times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const struct suffix thousands[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {NULL, 0}};
static const struct suffix shares[] = {{"", 1}, {"%", 0.01}, {NULL, 0}};
static const struct suffix plain[] = {{"", 1}, {NULL, 0}};

struct kind {
	const struct suffix *suffix;
	double min, max;
	const char *wants;
};

static const struct kind kinds[] = {
	[SHARE] = {shares, 0, 1, "a share of frames from 0 to 1, or in %"},
	[LENGTH] = {plain, 1, 1e6, "a mean length from 1 to 1000000 frames"},
	[TIME] = {times, 0, 100e9, "a time up to 100s, in ns, us, ms or s"},
	[RATE] = {thousands, 0, 1e12, "bit/s up to 1000G"},
	[SIZE] = {thousands, 0, 1e9, "bytes up to 1G"},
	[FRAMES] = {thousands, 0, 1e9, "frames up to 1G"},
	[MTU] = {plain, 0, 65535, "bytes of a packet up to 65535"},
};

static int number(enum unit unit, const char *text, double *out)
{
	const struct kind *k = &kinds[unit];
	const struct suffix *s;
	char *end;

	/* strtod() would accept names, signs and hexadecimal digits, too. */
	if (strspn(text, "0123456789.") == 0)
		return -EINVAL;
	if (text[strspn(text, "0123456789")] == 'x' || text[strspn(text, "0123456789")] == 'X')
		return -EINVAL;
	*out = strtod(text, &end);
	/* 0 needs no unit. */
	if (*out == 0 && *end == '\0')
		return 0;
	for (s = k->suffix; s->text && strcmp(s->text, end) != 0; s++)
		;
	if (!s->text)
		return -EINVAL;
	*out *= s->factor;
	return isfinite(*out) && *out >= k->min && *out <= k->max ? 0 : -EINVAL;
}

static void store(struct sim_link *l, const struct value *v, double x)
{
	char *at = (char *)l + v->offset;

	if (v->unit == SHARE || v->unit == LENGTH)
		memcpy(at, &x, sizeof(x));
	else if (v->unit == MTU)
		memcpy(at, &(uint32_t){(uint32_t)x}, sizeof(uint32_t));
	else
		memcpy(at, &(uint64_t){(uint64_t)(x + 0.5)}, sizeof(uint64_t));
}

static double load(const struct sim_link *l, const struct value *v)
{
	const char *at = (const char *)l + v->offset;
	uint64_t whole;
	uint32_t less;
	double x;

	switch (v->unit) {
	case SHARE:
	case LENGTH:
		memcpy(&x, at, sizeof(x));
		return x;
	case MTU:
		memcpy(&less, at, sizeof(less));
		return less;
	case FLAG:
		return *(const bool *)at;
	default:
		memcpy(&whole, at, sizeof(whole));
		return (double)whole;
	}
}

/* ---- reading -------------------------------------------------------------------------------- */

static int complain(char *why, size_t why_len, const char *key, const char *text, const char *wants)
{
	snprintf(why, why_len, "%s takes %s, not '%s'", key, wants, text);
	return -EINVAL;
}

static int flag(struct sim_link *l, const struct item *it, const char *text, char *why,
		size_t why_len)
{
	bool yes = !strcmp(text, "yes");

	if (!yes && strcmp(text, "no") != 0)
		return complain(why, why_len, it->key, text, "yes or no");
	*((bool *)((char *)l + it->value[0].offset)) = yes;
	return 0;
}

/* Values that are left out at the end get their defaults. */
static int values(struct sim_link *l, const struct item *it, char *text, char *why, size_t why_len)
{
	char *next = text, *one;
	unsigned int i;
	double x;

	if (it->value[0].unit == FLAG)
		return flag(l, it, text, why, why_len);
	for (i = 0; i < 3 && it->value[i].unit != NOTHING; i++) {
		one = next ? strsep(&next, ":") : NULL;
		x = 0;
		if (one && number(it->value[i].unit, one, &x))
			return complain(why, why_len, it->key, one, kinds[it->value[i].unit].wants);
		store(l, &it->value[i], x);
	}
	if (!next)
		return 0;
	snprintf(why, why_len, "%s takes no further value ':%s'", it->key, next);
	return -EINVAL;
}

static int known(char *why, size_t why_len, const char *key)
{
	size_t i, at = (size_t)snprintf(why, why_len, "'%s' is none of", key);

	for (i = 0; i < NUM_ITEMS && at < why_len; i++)
		at += (size_t)snprintf(why + at, why_len - at, " %s", items[i].key);
	if (at < why_len)
		snprintf(why + at, why_len - at, " clear");
	return -EINVAL;
}

static int one_item(struct sim_link *l, char *text, char *why, size_t why_len)
{
	char *value = strchr(text, '=');
	size_t i;

	if (!strcmp(text, "clear")) {
		*l = (struct sim_link){0};
		return 0;
	}
	if (value)
		*value++ = '\0';
	for (i = 0; i < NUM_ITEMS && strcmp(items[i].key, text) != 0; i++)
		;
	if (i == NUM_ITEMS)
		return known(why, why_len, text);
	if (!value) {
		snprintf(why, why_len, "%s needs a value: %s=...", text, text);
		return -EINVAL;
	}
	return values(l, &items[i], value, why, why_len);
}

/* An item without effect, because another one is missing, is an error. */
static int together(const struct sim_link *l, char *why, size_t why_len)
{
	if ((l->queue_bytes || l->ecn_bytes) && !l->rate) {
		snprintf(why, why_len, "%s needs a rate: without one there is no queue",
			 l->queue_bytes ? "queue" : "ecn");
		return -EINVAL;
	}
	if (l->bursts > 0 && l->burst_loss > 0 && l->bursts >= l->burst_loss) {
		snprintf(why, why_len,
			 "bursts can't lose more of all frames than they lose while "
			 "they last");
		return -EINVAL;
	}
	return 0;
}

int sim_link_parse(const char *text, struct sim_link *l, char *why, size_t why_len)
{
	struct sim_link changed = *l;
	char copy[1024], *next = copy, *item;
	int ret = 0;

	if (strlen(text) >= sizeof(copy)) {
		snprintf(why, why_len, "the text is longer than %zu characters", sizeof(copy) - 1);
		return -EINVAL;
	}
	memcpy(copy, text, strlen(text) + 1);
	while (!ret && (item = strsep(&next, ", \t")))
		if (*item)
			ret = one_item(&changed, item, why, why_len);
	if (!ret)
		ret = together(&changed, why, why_len);
	if (!ret)
		*l = changed;
	return ret;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void print(char *buf, size_t len, enum unit unit, double x)
{
	const struct suffix *s, *best;

	if (unit == FLAG) {
		snprintf(buf, len, "yes");
		return;
	}
	if (unit == SHARE) {
		snprintf(buf, len, "%.10g%%", x * 100);
		return;
	}
	/* Choose the largest unit in which the value is a whole number. */
	best = kinds[unit].suffix;
	for (s = best; s->text; s++)
		if (x >= s->factor && fmod(x, s->factor) == 0)
			best = s;
	snprintf(buf, len, "%.12g%s", x / best->factor, best->text);
}

static void print_item(char *buf, size_t len, const struct item *it, const struct sim_link *l)
{
	char value[32];
	unsigned int i, last = 0;
	size_t at;

	for (i = 1; i < 3 && it->value[i].unit != NOTHING; i++)
		if (load(l, &it->value[i]) > 0)
			last = i;
	at = (size_t)snprintf(buf, len, "%s", it->key);
	for (i = 0; i <= last && at < len; i++) {
		print(value, sizeof(value), it->value[i].unit, load(l, &it->value[i]));
		at += (size_t)snprintf(buf + at, len - at, "%c%s", i ? ':' : '=', value);
	}
}

const char *sim_link_text(const struct sim_link *l, char *buf, size_t len)
{
	char item[128];
	size_t i, at = 0;

	for (i = 0; i < NUM_ITEMS; i++) {
		if (!(load(l, &items[i].value[0]) > 0) || at >= len)
			continue;
		print_item(item, sizeof(item), &items[i], l);
		at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? "," : "", item);
	}
	if (!at)
		snprintf(buf, len, "clear");
	return buf;
}
