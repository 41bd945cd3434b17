/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/link.h"

/* ---- frames --------------------------------------------------------------------------------- */

/* Frames are untrusted: every length is checked. */

#define ETHER_LEN 14
#define TYPE_VLAN 0x8100
#define TYPE_QINQ 0x88a8
#define TYPE_IPV4 0x0800
#define TYPE_IPV6 0x86dd
#define PROTO_TCP 6
#define PROTO_UDP 17

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* @return the type after all tags; 0 = the frame ends before. @param[out] at  payload offset */
static uint16_t ether_type(const uint8_t *data, uint32_t len, uint32_t *at)
{
	uint16_t type;

	for (*at = ETHER_LEN; *at <= len; *at += 4) {
		type = be16(data + *at - 2);
		if (type != TYPE_VLAN && type != TYPE_QINQ)
			return type;
	}
	*at = len;
	return 0;
}

uint32_t sim_link_l2_len(const uint8_t *data, uint32_t len)
{
	uint32_t at;

	ether_type(data, len, &at);
	return at;
}

static uint32_t mix(uint32_t hash, const uint8_t *p, uint32_t n)
{
	for (; n; n--)
		hash = (hash ^ *p++) * 0x01000193u; /* FNV-1a */
	return hash;
}

/* Later fragments have no ports, so that only their addresses and protocol are hashed. */
static uint32_t hash_ipv4(const uint8_t *ip, uint32_t len)
{
	uint32_t hash = mix(mix(0x811c9dc5u, ip + 9, 1), ip + 12, 8), hdr = (ip[0] & 15) * 4u;

	if ((ip[9] == PROTO_UDP || ip[9] == PROTO_TCP) && !(be16(ip + 6) & 0x1fff) && hdr >= 20 &&
	    hdr + 4 <= len)
		hash = mix(hash, ip + hdr, 4);
	return hash;
}

uint32_t sim_link_flow_hash(const uint8_t *data, uint32_t len)
{
	uint32_t at, hash;
	uint16_t type = ether_type(data, len, &at);

	if (type == TYPE_IPV4 && at + 20 <= len)
		hash = hash_ipv4(data + at, len - at);
	else if (type == TYPE_IPV6 && at + 44 <= len)
		hash = mix(mix(0x811c9dc5u, data + at + 6, 1), data + at + 8, 36);
	else
		hash = mix(0x811c9dc5u, data, len < ETHER_LEN ? len : ETHER_LEN);
	/* The low bits of FNV are weak when few bytes differ, and callers use the remainder. */
	return (uint32_t)(sim_mix64(hash) >> 32);
}

/* RFC 1624. @param before, after  a 16-bit word of the header */
static void ipv4_checksum_update(uint8_t *ip, uint16_t before, uint16_t after)
{
	uint32_t sum = (uint16_t)~be16(ip + 10);

	sum += (uint16_t)~before + (uint32_t)after;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (uint16_t) ~((sum & 0xffff) + (sum >> 16));
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

bool sim_link_mark(struct sim_link_state *s, uint8_t *data, uint32_t len)
{
	uint32_t at;
	uint16_t type = ether_type(data, len, &at), before;
	uint8_t *ip = data + at;

	if (type == TYPE_IPV4 && at + 20 <= len) {
		if (!(ip[1] & 3))
			return false;
		before = be16(ip);
		ip[1] |= 3;
		ipv4_checksum_update(ip, before, be16(ip));
	} else if (type == TYPE_IPV6 && at + 40 <= len) {
		if (!(ip[1] & 0x30))
			return false;
		ip[1] |= 0x30; /* the low bits of the traffic class */
	} else {
		return false;
	}
	s->stats.marked++;
	return true;
}

/* ---- one direction -------------------------------------------------------------------------- */

#define SECOND 1000000000ull

void sim_link_init(struct sim_link_state *s, uint64_t seed, uint64_t purpose)
{
	*s = (struct sim_link_state){.rng = sim_rng_make(seed, purpose)};
}

/* @param rate  bit/s. @return ns. Callers pass less than 2^31 bytes: the product fits. */
static uint64_t byte_time(uint64_t bytes, uint64_t rate)
{
	return bytes * 8 * SECOND / rate;
}

/* ---- policers: GCRA ------------------------------------------------------------------------- */

/* @param cost  ns of the frame at the rate. @param burst  ns by which frames may be ahead of it */
static bool exceeds(uint64_t *at, uint64_t now, uint64_t cost, uint64_t burst)
{
	uint64_t start = *at > now ? *at : now;

	if (start + cost > now + burst)
		return true;
	*at = start + cost;
	return false;
}

static bool polices(const struct sim_link *l, struct sim_link_state *s, uint32_t len, uint64_t now)
{
	uint64_t frames = l->police_pps_burst ? l->police_pps_burst : SIM_LINK_PPS_BURST;
	uint64_t bytes = l->police_burst ? l->police_burst : SIM_LINK_BURST;

	if (l->police_pps && exceeds(&s->police_pps_at, now, SECOND / l->police_pps,
				     frames * SECOND / l->police_pps))
		return true;
	return l->police_rate && exceeds(&s->police_at, now, byte_time(len, l->police_rate),
					 byte_time(bytes, l->police_rate));
}

bool sim_link_refuses(const struct sim_link *l, struct sim_link_state *s,
		      const struct sim_link_frame *f, uint64_t now)
{
	s->stats.frames++;
	s->stats.bytes += f->len;
	if (l->mtu && f->len > l->mtu + sim_link_l2_len(f->data, f->hdr_len)) {
		s->stats.too_long++;
		return true;
	}
	if (polices(l, s, f->len, now)) {
		s->stats.policed++;
		return true;
	}
	return false;
}

/* ---- rate and queue ------------------------------------------------------------------------- */

uint64_t sim_link_serialise(const struct sim_link *l, struct sim_link_state *s, uint32_t len,
			    uint64_t now)
{
	uint64_t idle = now, burst;

	if (!l->rate) {
		s->free_at = s->free_at > now ? s->free_at : now;
		return s->free_at;
	}
	burst = l->rate_burst ? byte_time(l->rate_burst, l->rate) : 0;
	/* After a pause, free_at lags by the time of a burst, which then passes at once. */
	idle = now > burst ? now - burst : 0;
	if (s->free_at < idle)
		s->free_at = idle;
	s->free_at += byte_time((uint64_t)len + SIM_LINK_EXTRA, l->rate);
	return s->free_at > now ? s->free_at : now;
}

uint64_t sim_link_queued(const struct sim_link *l, const struct sim_link_state *s, uint64_t now)
{
	if (!l->rate || s->free_at <= now)
		return 0;
	return (uint64_t)((double)(s->free_at - now) * (double)l->rate / 8e9);
}

bool sim_link_enqueue(const struct sim_link *l, struct sim_link_state *s, uint32_t len,
		      uint64_t now, uint64_t *sent, bool *mark)
{
	uint64_t queued = sim_link_queued(l, s, now);

	if (l->queue_bytes && l->rate && queued + len > l->queue_bytes) {
		s->stats.tail_drops++;
		return false;
	}
	if (queued + len > s->max_queue)
		s->max_queue = queued + len;
	*mark = l->ecn_bytes && queued > l->ecn_bytes;
	*sent = sim_link_serialise(l, s, len, now);
	return true;
}

/* ---- faults --------------------------------------------------------------------------------- */

/* Gilbert-Elliott. bursts, burst_len and burst_loss give the two probabilities of the chain. */
static bool burst_loses(const struct sim_link *l, struct sim_link_state *s)
{
	double loss = l->burst_loss > 0 ? l->burst_loss : 1;
	double leave = 1 / (l->burst_len > 1 ? l->burst_len : l->burst_len > 0 ? 1 : 10);
	double bad = l->bursts / loss;

	if (!(l->bursts > 0)) {
		s->bad = false;
		return false;
	}
	if (s->bad)
		s->bad = !sim_chance(&s->rng, leave);
	else
		s->bad = sim_chance(&s->rng, bad < 1 ? leave * bad / (1 - bad) : 1);
	return s->bad && sim_chance(&s->rng, loss);
}

static void corrupt(const struct sim_link *l, struct sim_link_state *s, struct sim_link_copy *c)
{
	unsigned int i;

	if (sim_chance(&s->rng, l->corrupt)) {
		s->stats.corrupted++;
		c->num_flips = (unsigned int)sim_between(&s->rng, 1, 3);
		for (i = 0; i < c->num_flips; i++)
			c->flip[i] = (uint32_t)sim_below(&s->rng, (uint64_t)c->len * 8);
	}
	if (sim_chance(&s->rng, l->truncate) && c->len > 1) {
		s->stats.truncated++;
		c->len = (uint32_t)sim_between(&s->rng, 1, c->len - 1);
	}
}

/* @param[in,out] last  arrival of the last frame in order; with flow_rate, of the frame's flow */
static uint64_t arrival(const struct sim_link *l, struct sim_link_state *s, uint64_t sent,
			uint64_t *last)
{
	uint64_t when = sent + l->delay_ns;

	if (sim_chance(&s->rng, l->reorder)) {
		/* A reordered frame neither follows the order of the others nor changes it. */
		s->stats.reordered++;
		return when + 1 + sim_below(&s->rng, l->reorder_ns ? l->reorder_ns : 100000);
	}
	if (l->jitter_ns)
		when += sim_below(&s->rng, l->jitter_ns);
	if (l->turn_ns) {
		if (s->turn_at < when)
			s->turn_at = when + sim_below(&s->rng, l->turn_ns);
		when = s->turn_at;
	}
	if (when < *last)
		when = *last;
	*last = when;
	return when;
}

static bool flow_polices(const struct sim_link *l, struct sim_link_state *s, unsigned int flow,
			 uint32_t len, uint64_t now)
{
	uint64_t burst = l->flow_burst ? l->flow_burst : SIM_LINK_BURST;

	return l->flow_police &&
	       exceeds(&s->flow[flow].police_at, now, byte_time(len, l->flow_police),
		       byte_time(burst, l->flow_police));
}

static unsigned int pass(const struct sim_link *l, struct sim_link_state *s,
			 const struct sim_link_frame *f, uint64_t sent, struct sim_link_copy *c)
{
	uint64_t queue = l->flow_queue ? l->flow_queue : SIM_LINK_BURST, start;
	unsigned int flow;

	*c = (struct sim_link_copy){.len = f->len};
	corrupt(l, s, c);
	if (!l->flow_rate && !l->flow_police) {
		c->when = arrival(l, s, sent, &s->last);
		return 1;
	}
	flow = sim_link_flow_hash(f->data, f->hdr_len) % SIM_LINK_FLOWS;
	if (flow_polices(l, s, flow, f->len, sent)) {
		s->stats.flow_drops++;
		return 0;
	}
	if (!l->flow_rate) {
		c->when = arrival(l, s, sent, &s->flow[flow].last);
		return 1;
	}
	start = s->flow[flow].free_at > sent ? s->flow[flow].free_at : sent;
	if (start - sent > byte_time(queue, l->flow_rate)) {
		s->stats.flow_drops++;
		return 0;
	}
	s->flow[flow].free_at = start + byte_time((uint64_t)f->len + SIM_LINK_EXTRA, l->flow_rate);
	c->when = arrival(l, s, s->flow[flow].free_at, &s->flow[flow].last);
	return 1;
}

unsigned int sim_link_deliver(const struct sim_link *l, struct sim_link_state *s,
			      const struct sim_link_frame *f, uint64_t sent,
			      struct sim_link_copy copy[2])
{
	unsigned int n = 0;

	if (l->blackhole) {
		s->stats.blackholed++;
		return 0;
	}
	if (sim_chance(&s->rng, l->loss)) {
		s->stats.lost++;
		return 0;
	}
	if (burst_loses(l, s)) {
		s->stats.burst_lost++;
		return 0;
	}
	if (sim_chance(&s->rng, l->dup)) {
		s->stats.dupped++;
		n += pass(l, s, f, sent, &copy[n]);
	}
	return n + pass(l, s, f, sent, &copy[n]);
}

void sim_link_flip(const struct sim_link_copy *copy, uint8_t *data, uint32_t len)
{
	unsigned int i;

	for (i = 0; i < copy->num_flips; i++)
		if (copy->flip[i] / 8 < len)
			data[copy->flip[i] / 8] ^= (uint8_t)(1u << (copy->flip[i] % 8));
}

/* ---- links as text -------------------------------------------------------------------------- */

enum unit { NOTHING, SHARE, LENGTH, TIME, RATE, SIZE, FRAMES, MTU, FLAG };

struct value {
	enum unit unit;
	size_t offset;
};

struct item {
	const char *key;
	struct value value[3]; /* separated by colons in the text */
};

#define AT(unit, field)                                \
	{                                              \
		unit, offsetof(struct sim_link, field) \
	}

static const struct item items[] = {
	{"rate", {AT(RATE, rate), AT(SIZE, rate_burst)}},
	{"delay", {AT(TIME, delay_ns)}},
	{"jitter", {AT(TIME, jitter_ns)}},
	{"turn", {AT(TIME, turn_ns)}},
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
	{"flow-police", {AT(RATE, flow_police), AT(SIZE, flow_burst)}},
	{"blackout", {AT(FLAG, blackhole)}},
};

#define NUM_ITEMS (sizeof(items) / sizeof(items[0]))

const char sim_link_help[] =
	"  rate=10G[:BURST]        bit/s, and bytes that may pass at once after a pause\n"
	"  delay=50us jitter=20us  one way; jitter is added, uniform, and keeps the order\n"
	"  turn=2ms                a frame waits for up to this time, as for a vCPU, and those\n"
	"                          that follow it leave at the same time\n"
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
	"  flow-police=5G[:BURST]  bit/s of each flow, dropped at once beyond\n"
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

/* Values that the text leaves out become 0, which means their default. */
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

/* Items that have no effect without another one, or that contradict each other, are errors. */
static int together(const struct sim_link *l, char *why, size_t why_len)
{
	if ((l->queue_bytes || l->ecn_bytes) && !l->rate) {
		snprintf(why, why_len, "%s needs a rate: without one there is no queue",
			 l->queue_bytes ? "queue" : "ecn");
		return -EINVAL;
	}
	if (l->bursts > 0 && l->burst_loss > 0 && l->bursts >= l->burst_loss) {
		snprintf(why, why_len,
			 "bursts: the share of all frames must be less than the share that "
			 "a burst loses while it lasts");
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
