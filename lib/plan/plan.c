/* SPDX-License-Identifier: BSD-3-Clause */

#include "plan/plan.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/host.h"
#include "base/log.h"
#include "core/config.h"
#include "core/config_text.h"
#include "lane_attr.h"
#include "msg/msg.h"
#include "proto/proto.h"

/* ------------------------------------------------------------------ profile files */

/* Profile files, whose lanes need not exist: weft-info(1) describes the format. */

#define LINE_LEN 512

/* Default of am_max, bytes. dpdk: an MTU of 1500 without headers. */
#define AM_MAX_DPDK 1426
#define OVERHEAD_DEFAULT 75e-9

struct lane {
	unsigned int line; /* line of the section's heading */
	uint32_t seen;     /* bit i: the section has keys[i] */
	bool roce, get, put;
	double bandwidth, latency, overhead, reg_cost, reg_growth;
	size_t am_max;
};

struct parser {
	FILE *in;
	const char *name;
	unsigned int line;
	struct weft_plan *plan;
	struct weft_conf conf; /* values of [model], which are options of the configuration */
	struct lane lanes[WEFT_MODEL_LANES];
	unsigned int num;
	enum { NOWHERE, IN_LANE, IN_MODEL } section;
	uint32_t model_seen;
	unsigned int model_line;
	char *why;
	size_t why_len;
};

static int fail_at(struct parser *p, unsigned int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail_at(struct parser *p, unsigned int line, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (line)
		snprintf(p->why, p->why_len, "%.200s:%u: %s", p->name, line, text);
	else
		snprintf(p->why, p->why_len, "%.200s: %s", p->name, text);
	return -EINVAL;
}

#define fail(p, ...) fail_at(p, (p)->line, __VA_ARGS__)

/* ------------------------------------------------------------------ keys of a lane */

enum kind { WORD, RATE, TIME, PER_BYTE, BYTES, YES_NO, NAME };

struct key {
	const char *name;
	enum kind kind;
	size_t offset; /* of the member in struct lane; NAME: in struct weft_plan_lane */
	size_t size;   /* of the member, bytes; NAME only */
	double min, max;
	const char *expected;
};

#define IN_LANE_KEY(f) .offset = offsetof(struct lane, f)
#define IN_PLAN_KEY(f)                                \
	.offset = offsetof(struct weft_plan_lane, f), \
	.size = sizeof(((struct weft_plan_lane *)0)->f)

enum { KEY_DRIVER, KEY_BANDWIDTH, KEY_LATENCY, KEY_AM_MAX = 6, KEY_GET, KEY_PUT };

static const struct key keys[] = {
	[KEY_DRIVER] = {"driver", WORD, IN_LANE_KEY(roce), .expected = "dpdk or roce"},
	[KEY_BANDWIDTH] = {"bandwidth", RATE, IN_LANE_KEY(bandwidth), .min = 1e3, .max = 1e13,
			   .expected = "a rate with its unit, such as 25Gbps, 3GBs or 1.25e9Bs, "
				       "from 1kBs to 10TBs"},
	[KEY_LATENCY] = {"latency", TIME, IN_LANE_KEY(latency), .min = 1e-9, .max = 10,
			 .expected =
				 "a time with its unit, such as 750ns or 15us, from 1ns to 10s"},
	{"overhead", TIME, IN_LANE_KEY(overhead), .min = 0, .max = 1,
	 .expected = "a time with its unit, such as 75ns, from 0ns to 1s"},
	{"reg_cost", TIME, IN_LANE_KEY(reg_cost), .min = 0, .max = 10,
	 .expected = "a time with its unit, such as 16us, from 0ns to 10s"},
	{"reg_growth", PER_BYTE, IN_LANE_KEY(reg_growth), .min = 0, .max = 1e-3,
	 .expected = "a time per byte with its unit, such as 0.06ns, from 0ns to 1ms"},
	[KEY_AM_MAX] = {"am_max", BYTES, IN_LANE_KEY(am_max), .min = 64, .max = 1u << 30,
			.expected = "bytes per fragment such as 1426, 8k or 8192, from 64 to 1G"},
	[KEY_GET] = {"get", YES_NO, IN_LANE_KEY(get), .expected = "y or n"},
	[KEY_PUT] = {"put", YES_NO, IN_LANE_KEY(put), .expected = "y or n"},
	{"domain", NAME, IN_PLAN_KEY(domain), .expected = "a name of letters, digits and . _ : -"},
	{"device", NAME, IN_PLAN_KEY(device), .expected = "a name of letters, digits and . _ : -"},
};

#define NUM_KEYS (sizeof(keys) / sizeof(keys[0]))

static const char key_names[] = "driver bandwidth latency overhead reg_cost reg_growth am_max get "
				"put domain device";

/* Only bytes may be given without a unit. */
struct unit {
	const char *name;
	double factor;
};

static const struct unit times[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {NULL, 0}};
static const struct unit per_byte[] = {{"ns", 1e-9},  {"us", 1e-6},    {"ms", 1e-3},
				       {"s", 1},      {"ns/B", 1e-9},  {"us/B", 1e-6},
				       {"ps", 1e-12}, {"ps/B", 1e-12}, {NULL, 0}};
static const struct unit bytes[] = {
	{"", 1},          {"B", 1},           {"k", 1024.0},       {"K", 1024.0}, {"KiB", 1024.0},
	{"M", 1048576.0}, {"MiB", 1048576.0}, {"G", 1073741824.0}, {NULL, 0}};

static bool with_unit(const char *text, const struct unit *units, double *value)
{
	char *end;

	if (*text != '.' && !isdigit((unsigned char)*text))
		return false;
	if (text[0] == '0' && tolower((unsigned char)text[1]) == 'x')
		return false;
	*value = strtod(text, &end);
	if (!isfinite(*value))
		return false;
	while (*end == ' ' || *end == '\t')
		end++;
	for (; units->name; units++) {
		if (strcmp(end, units->name) == 0) {
			*value *= units->factor;
			return true;
		}
	}
	return false;
}

static bool is_name(const char *s, size_t room)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-");

	return n > 0 && s[n] == '\0' && n < room;
}

static bool set_yes_no(const char *text, bool *out)
{
	bool yes = !strcmp(text, "y") || !strcmp(text, "yes");

	*out = yes;
	return yes || !strcmp(text, "n") || !strcmp(text, "no");
}

static bool set_key(struct parser *p, const struct key *k, const char *text)
{
	struct lane *lane = &p->lanes[p->num - 1];
	void *to = (char *)lane + k->offset;
	double value;

	switch (k->kind) {
	case WORD:
		*(bool *)to = strcmp(text, "roce_rc") == 0 || strcmp(text, "roce") == 0;
		return *(bool *)to || strcmp(text, "dpdk") == 0;
	case YES_NO:
		return set_yes_no(text, to);
	case NAME:
		if (!is_name(text, k->size))
			return false;
		memcpy((char *)&p->plan->lanes[p->num - 1] + k->offset, text, strlen(text) + 1);
		return true;
	case RATE:
		if (!weft_rate_parse(text, &value))
			return false;
		break;
	default:
		if (!with_unit(text,
			       k->kind == TIME       ? times
			       : k->kind == PER_BYTE ? per_byte
						     : bytes,
			       &value))
			return false;
	}
	if (value < k->min || value > k->max)
		return false;
	if (k->kind == BYTES)
		*(size_t *)to = (size_t)value;
	else
		*(double *)to = value;
	return true;
}

static int lane_key(struct parser *p, const char *name, const char *text)
{
	char near[64];

	for (size_t i = 0; i < NUM_KEYS; i++) {
		if (strcmp(keys[i].name, name) != 0)
			continue;
		if (p->lanes[p->num - 1].seen & (1u << i))
			return fail(p, "'%s' is given twice for lane %s", name,
				    p->plan->lanes[p->num - 1].name);
		p->lanes[p->num - 1].seen |= 1u << i;
		if (!set_key(p, &keys[i], text))
			return fail(p, "%s = '%.64s': expected %s", name, text, keys[i].expected);
		return 0;
	}
	if (weft_nearest_word(name, key_names, " ", near, sizeof(near)))
		return fail(p, "unknown key '%.64s' of a lane; is '%s' meant? expected one of %s",
			    name, near, key_names);
	return fail(p, "unknown key '%.64s' of a lane; expected one of %s", name, key_names);
}

/* ------------------------------------------------------------------ keys of the model */

static const char model_names[] = "bcopy_bw rndv_perf_diff rndv_thresh "
				  "zcopy_thresh multi_eager_limit max_eager_lanes max_rndv_lanes "
				  "rndv_scheme";

static int model_key(struct parser *p, const char *name, const char *text)
{
	const struct weft_option *opt = NULL;
	char why[256], near[64];
	const char *at = model_names;
	unsigned int i = 0;
	size_t len;

	for (; *at; at += len, at += *at == ' ', i++) {
		len = strcspn(at, " ");
		if (len == strlen(name) && strncmp(at, name, len) == 0)
			break;
	}
	if (*at)
		opt = weft_option_find(name);
	if (!opt && weft_nearest_word(name, model_names, " ", near, sizeof(near)))
		return fail(p,
			    "unknown key '%.64s' of the model; is '%s' meant? expected one of %s",
			    name, near, model_names);
	if (!opt)
		return fail(p, "unknown key '%.64s' of the model; expected one of %s", name,
			    model_names);
	if (p->model_seen & (1u << i))
		return fail(p, "'%s' is given twice", name);
	p->model_seen |= 1u << i;
	if (weft_option_set_as(&p->conf, opt, name, text, why, sizeof(why)) < 0)
		return fail(p, "%s", why);
	return 0;
}

/* ------------------------------------------------------------------ lines */

static char *trim(char *s)
{
	char *end;

	while (isspace((unsigned char)*s))
		s++;
	for (end = s + strlen(s); end > s && isspace((unsigned char)end[-1]); end--)
		;
	*end = '\0';
	return s;
}

static int new_lane(struct parser *p, const char *name)
{
	struct weft_plan_lane *l;

	if (!is_name(name, sizeof(l->name)))
		return fail(p,
			    "[lane %.64s]: expected a name of up to 63 letters, digits and . _ : -",
			    name);
	for (unsigned int i = 0; i < p->num; i++)
		if (strcmp(p->plan->lanes[i].name, name) == 0)
			return fail(p,
				    "there is a lane %s already, in line %u: expected another name",
				    name, p->lanes[i].line);
	if (p->num == WEFT_MODEL_LANES)
		return fail(p, "expected at most %d lanes", WEFT_MODEL_LANES);
	l = &p->plan->lanes[p->num];
	snprintf(l->name, sizeof(l->name), "%s", name);
	p->lanes[p->num++] = (struct lane){.line = p->line, .overhead = OVERHEAD_DEFAULT};
	p->section = IN_LANE;
	return 0;
}

static int section(struct parser *p, char *s)
{
	char *end = strchr(s, ']');

	if (!end || end[1])
		return fail(p, "'%.64s': expected [lane NAME] or [model]", s);
	*end = '\0';
	s = trim(s + 1);
	if (strncmp(s, "lane", 4) == 0 && (isspace((unsigned char)s[4]) || !s[4]))
		return new_lane(p, trim(s + 4));
	if (strcmp(s, "model") != 0)
		return fail(p, "unknown section [%.64s]: expected [lane NAME] or [model]", s);
	if (p->model_line)
		return fail(p, "there is a section [model] already, in line %u", p->model_line);
	p->model_line = p->line;
	p->section = IN_MODEL;
	return 0;
}

static int line(struct parser *p, char *s)
{
	char *eq;

	/* A comment begins the line, or follows a blank. */
	for (eq = s; *eq; eq++) {
		if ((*eq == '#' || *eq == ';') && (eq == s || isspace((unsigned char)eq[-1]))) {
			*eq = '\0';
			break;
		}
	}
	s = trim(s);
	if (!*s)
		return 0;
	if (*s == '[')
		return section(p, s);
	eq = strchr(s, '=');
	if (!eq)
		return fail(p, "'%.64s': expected KEY = VALUE or a [section]", s);
	*eq = '\0';
	s = trim(s);
	eq = trim(eq + 1);
	if (p->section == NOWHERE)
		return fail(p, "'%.64s' is before any section: expected [lane NAME] or [model]", s);
	return p->section == IN_LANE ? lane_key(p, s, eq) : model_key(p, s, eq);
}

static int lines(struct parser *p)
{
	char buf[LINE_LEN];
	int rc;

	while (fgets(buf, sizeof(buf), p->in)) {
		p->line++;
		/* A NUL hides the rest of its line and the line feed: refused like a long line. */
		if (!strchr(buf, '\n') && !feof(p->in))
			return fail(p, "expected text lines of at most %d characters",
				    LINE_LEN - 2);
		rc = line(p, buf);
		if (rc < 0)
			return rc;
	}
	if (ferror(p->in)) {
		snprintf(p->why, p->why_len, "%.200s cannot be read: %s", p->name, strerror(errno));
		return -EIO;
	}
	return 0;
}

/* ------------------------------------------------------------------ the model of it */

static uint32_t first_with(const struct weft_plan *plan, unsigned int i, size_t field)
{
	const char *mine = (const char *)&plan->lanes[i] + field;

	for (unsigned int k = 0; k < i; k++)
		if (strcmp((const char *)&plan->lanes[k] + field, mine) == 0)
			return k;
	return i;
}

static void set_lane(struct weft_plan *plan, unsigned int i, const struct lane *lane)
{
	bool get = lane->seen & (1u << KEY_GET) ? lane->get : lane->roce;
	bool put = lane->seen & (1u << KEY_PUT) ? lane->put : lane->roce;
	size_t am = lane->am_max ? lane->am_max : lane->roce ? WEFT_LANE_ROCE_SEG : AM_MAX_DPDK;
	struct weft_plan_lane *l = &plan->lanes[i];

	snprintf(l->driver, sizeof(l->driver), "%s", lane->roce ? "roce_rc" : "dpdk");
	if (!l->device[0])
		memcpy(l->device, l->name, sizeof(l->device));
	if (!l->domain[0])
		memcpy(l->domain, l->name, sizeof(l->domain) - 1); /* the last byte is 0 */
	plan->model.lanes[i] = (struct weft_model_lane){
		.bandwidth = lane->bandwidth,
		.latency = lane->latency,
		.send_overhead = lane->overhead,
		.recv_overhead = lane->overhead,
		.reg_cost = lane->reg_cost,
		.reg_growth = lane->reg_growth,
		.max_short = lane->roce && am > WEFT_LANE_ROCE_SHORT ? WEFT_LANE_ROCE_SHORT : am,
		.max_bcopy = am,
		.max_zcopy = am,
		.max_zcopy_hdr = 128,
		.max_iov = 8,
		.max_get = get ? (size_t)1 << 30 : 0,
		.max_put = put ? (size_t)1 << 30 : 0,
		.max_rma_iov = 8,
		.features =
			WEFT_LANE_F_SHORT | WEFT_LANE_F_BCOPY | WEFT_LANE_F_ZCOPY |
			(lane->reg_cost > 0 || lane->reg_growth > 0 ? WEFT_LANE_F_ZCOPY_REG : 0) |
			(get ? WEFT_LANE_F_GET : 0) | (put ? WEFT_LANE_F_PUT : 0) |
			(get && put ? WEFT_LANE_F_AMO64 : 0),
		.domain = first_with(plan, i, offsetof(struct weft_plan_lane, domain)),
		.device = first_with(plan, i, offsetof(struct weft_plan_lane, device)),
	};
}

static int finish(struct parser *p)
{
	static const unsigned int needed[] = {KEY_DRIVER, KEY_BANDWIDTH, KEY_LATENCY};
	struct weft_plan *plan = p->plan;
	struct weft_model *m = &plan->model;

	if (!p->num)
		return fail_at(p, 0, "there is no lane: expected at least one section [lane NAME]");
	for (unsigned int i = 0; i < p->num; i++) {
		for (size_t k = 0; k < sizeof(needed) / sizeof(needed[0]); k++)
			if (!(p->lanes[i].seen & (1u << needed[k])))
				return fail_at(p, p->lanes[i].line,
					       "lane %s has no '%s': expected %s",
					       plan->lanes[i].name, keys[needed[k]].name,
					       keys[needed[k]].expected);
		set_lane(plan, i, &p->lanes[i]);
		m->lanes_up |= 1u << i;
		if (m->lanes[i].latency < m->lanes[m->am_lane].latency)
			m->am_lane = i;
	}
	if (p->conf.bcopy_bw > 0)
		plan->measured = false;
	return 0;
}

/* Keys that [model] lacks have the configuration's values. */
static void conf_of(const struct weft_model_conf *from, struct weft_conf *to)
{
	*to = (struct weft_conf){
		.rndv_perf_diff = from->perf_diff,
		.rndv_thresh = from->rndv_thresh,
		.zcopy_thresh = from->zcopy_thresh,
		.multi_eager_limit = from->multi_eager_limit,
		.max_eager_lanes = from->max_eager_lanes,
		.max_rndv_lanes = from->max_rndv_lanes,
		.rndv_scheme = from->rndv_scheme,
		.atomic_device = from->atomic_device,
		.lane.zcopy = true,
	};
}

static int parse_profile(FILE *in, const char *name, struct weft_plan *plan, char *why,
			 size_t why_len)
{
	struct parser *p = calloc(1, sizeof(*p));
	int rc;

	if (!p) {
		snprintf(why, why_len, "no memory");
		return -ENOMEM;
	}
	*p = (struct parser){.in = in, .name = name, .plan = plan, .why = why, .why_len = why_len};
	conf_of(&plan->model.conf, &p->conf);
	rc = lines(p);
	if (rc == 0)
		rc = finish(p);
	if (rc == 0)
		weft_model_conf_read(&plan->model.conf, &p->conf, plan->model.conf.bcopy_bw,
				     plan->model.conf.protos);
	free(p);
	return rc;
}

/* ------------------------------------------------------------------ plans */

static const char *const op_names[] = {
	[WEFT_OP_TAG_SEND] = "tag_send",
	[WEFT_OP_TAG_SEND_SYNC] = "tag_send_sync",
	[WEFT_OP_AM_SEND] = "am_send",
	[WEFT_OP_PUT] = "put",
	[WEFT_OP_GET] = "get",
	[WEFT_OP_AMO] = "amo",
	[WEFT_OP_AMO_FETCH] = "amo_fetch",
	[WEFT_OP_RNDV_DATA] = "rndv_data",
};

#define NUM_NAMES (sizeof(op_names) / sizeof(op_names[0]))

const char *weft_op_name(enum weft_op op)
{
	return (size_t)op < NUM_NAMES ? op_names[op] : NULL;
}

int weft_op_find(const char *name)
{
	/* Other names of fetching atomics, for users and weft-perf's tests. */
	if (name && (strcmp(name, "fadd") == 0 || strcmp(name, "cswap") == 0))
		return WEFT_OP_AMO_FETCH;
	for (size_t i = 0; name && i < NUM_NAMES; i++)
		if (op_names[i] && strcmp(name, op_names[i]) == 0)
			return (int)i;
	return -EINVAL;
}

/* Any thread may query a plan, so all reasons are stored before it is in use. */
static int store_reasons(struct weft_plan *plan)
{
	struct weft_curve cv;

	for (unsigned int op = 0; op < WEFT_OP_LAST; op++) {
		struct weft_proto_key key = {(enum weft_op)op, weft_buf_usual((enum weft_op)op)};

		for (const struct weft_proto *const *p = plan->model.conf.protos; *p; p++) {
			if (!weft_proto_implements(*p, &key) ||
			    weft_proto_curve(&plan->model, &key, *p, &cv) >= 0)
				continue;
			weft_texts_add(&plan->reasons, cv.why);
			if (!weft_texts_find(&plan->reasons, cv.why))
				return -ENOMEM;
		}
	}
	return 0;
}

int weft_plan_read_with(const struct weft_proto *const *protos, const struct weft_config *config,
			FILE *in, const char *name, struct weft_plan **out, char *why,
			size_t why_len)
{
	struct weft_config *conf;
	struct weft_plan *plan;
	int rc;

	if (!in || !name || !out)
		return -EINVAL;
	rc = weft_config_copy(config, &conf);
	if (rc < 0) {
		snprintf(why, why_len, "%s", weft_strerror(rc));
		return rc;
	}
	plan = calloc(1, sizeof(*plan));
	if (plan) {
		snprintf(plan->title, sizeof(plan->title), "lanes of %.100s", name);
		plan->measured = !(conf->conf.bcopy_bw > 0);
		weft_model_conf_read(&plan->model.conf, &conf->conf,
				     weft_bcopy_bw(&weft_platform_host), protos);
		rc = parse_profile(in, name, plan, why, why_len);
	} else {
		rc = -ENOMEM;
		snprintf(why, why_len, "no memory");
	}
	weft_config_release(conf);
	if (rc == 0) {
		rc = store_reasons(plan);
		if (rc < 0)
			snprintf(why, why_len, "no memory");
	}
	if (rc < 0) {
		weft_plan_destroy(plan);
		return rc;
	}
	*out = plan;
	return 0;
}

static void plan_fill(const struct weft_msg_ep *me, struct weft_plan *plan)
{
	const struct weft_ep *ep = me->ep;

	memcpy(&plan->model, &me->config->model, sizeof(plan->model));
	snprintf(plan->title, sizeof(plan->title), "lanes to worker %016llx (%.64s)",
		 (unsigned long long)ep->remote_id, ep->remote_name);
	/* Both ends use the lower of their rates. */
	plan->measured = !(me->mw->worker->ctx->conf->bcopy_bw > 0) &&
			 !(ep->bcopy_bw > 0 && ep->bcopy_bw < (float)me->mw->conf.model.bcopy_bw);
	for (uint32_t left = me->lanes_up; left; left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(left);
		const struct weft_lane_iface *iface = me->lanes[i].lane_ep->iface;
		struct weft_plan_lane *l = &plan->lanes[i];

		snprintf(l->name, sizeof(l->name), "%u:%.60s", i, iface->name);
		snprintf(l->driver, sizeof(l->driver), "%.15s",
			 iface->driver ? iface->driver->name : "");
		snprintf(l->device, sizeof(l->device), "%s", iface->attr.device);
		snprintf(l->domain, sizeof(l->domain), "%s", iface->attr.domain);
		snprintf(l->why, sizeof(l->why), "%s", ep->lane_info[i].why);
	}
}

int weft_plan_of_ep(struct weft_ep *ep, struct weft_plan **out)
{
	struct weft_plan *plan;
	int rc = -ENOTCONN;

	if (!ep || !out)
		return -EINVAL;
	plan = calloc(1, sizeof(*plan));
	if (!plan)
		return -ENOMEM;
	weft_worker_lock(ep->worker);
	if (ep->msg && ep->msg->up) {
		plan_fill(ep->msg, plan);
		rc = 0;
	}
	weft_worker_unlock(ep->worker);
	if (rc == 0)
		rc = store_reasons(plan);
	if (rc < 0) {
		weft_plan_destroy(plan);
		return rc;
	}
	*out = plan;
	return 0;
}

static void print_all(const struct weft_plan *plan, FILE *out)
{
	for (unsigned int op = 0; op < WEFT_OP_LAST; op++) {
		struct weft_proto_key key = {(enum weft_op)op, weft_buf_usual((enum weft_op)op)};
		struct weft_proto_select sel;

		/* Operations without a protocol, or that no lane supports, are not printed. */
		if (weft_proto_choose(&plan->model, &key, &sel, NULL, 0) == 0)
			weft_plan_print_key(plan, out, &key, WEFT_PLAN_TABLE);
	}
}

void weft_plan_settled(struct weft_ep *ep)
{
	struct weft_plan *plan;
	char *text = NULL;
	size_t length = 0;
	FILE *out;

	if (!ep->worker->ctx->conf->proto_info || !ep->msg || !ep->msg->up ||
	    ep->msg->config->logged)
		return;
	plan = calloc(1, sizeof(*plan));
	out = plan ? open_memstream(&text, &length) : NULL;
	if (out) {
		plan_fill(ep->msg, plan);
		print_all(plan, out);
		if (fclose(out) == 0)
			weft_log_block(text, length);
		ep->msg->config->logged = true;
	}
	free(text);
	free(plan);
}

void weft_plan_destroy(struct weft_plan *plan)
{
	if (!plan)
		return;
	weft_texts_free(&plan->reasons);
	free(plan);
}

static const struct weft_proto *nth(const struct weft_plan *plan, const struct weft_proto_key *key,
				    unsigned int index)
{
	for (const struct weft_proto *const *p = plan->model.conf.protos; *p; p++)
		if (weft_proto_implements(*p, key) && index-- == 0)
			return *p;
	return NULL;
}

int weft_plan_query(const struct weft_plan *plan, enum weft_op op, size_t length,
		    unsigned int index, struct weft_proto_info *info)
{
	struct weft_proto_key key = {op, weft_buf_usual(op)};
	struct weft_proto_info full = {.min = 1, .why = ""};
	struct weft_proto_select sel;
	const struct weft_proto *proto;
	struct weft_curve cv;

	if (!plan || !info || (unsigned int)op >= WEFT_OP_LAST)
		return -EINVAL;
	proto = nth(plan, &key, index);
	if (!proto)
		return -ENOENT;
	full.name = proto->name;
	full.desc = proto->desc;
	if (weft_proto_curve(&plan->model, &key, proto, &cv) < 0) {
		full.why = weft_texts_find(&plan->reasons, cv.why);
		return weft_struct_out(info, &full, sizeof(full));
	}
	full.min = cv.min;
	full.max = cv.max;
	full.lanes = cv.lanes;
	full.usable = cv.min <= length && length <= cv.max;
	if (full.usable) {
		full.time = weft_curve_at(&cv, length);
		weft_proto_choose(&plan->model, &key, &sel, NULL, 0);
		full.chosen = weft_proto_lookup(&sel, length) == proto;
	}
	return weft_struct_out(info, &full, sizeof(full));
}
