/* SPDX-License-Identifier: BSD-3-Clause */
/* A plan in the forms for users and scripts: boxes, comma-separated values, sentences. */

#include <errno.h>
#include <string.h>

#include "core/config.h"
#include "plan/plan.h"

/* ------------------------------------------------------------------ texts */

const char *weft_plan_size_text(size_t size, char *buf, size_t len)
{
	static const char *const units[] = {"", " KiB", " MiB", " GiB"};
	unsigned int i = 0;

	if (size == SIZE_MAX) {
		snprintf(buf, len, "inf");
		return buf;
	}
	while (size && size % 1024 == 0 && i < 3) {
		size /= 1024;
		i++;
	}
	snprintf(buf, len, "%zu%s", size, units[i]);
	return buf;
}

const char *weft_plan_bytes_text(size_t size, char *buf, size_t len)
{
	char text[32];

	if (size == SIZE_MAX)
		snprintf(buf, len, "no size");
	else if (size < 1024 || size % 1024)
		snprintf(buf, len, "%zu bytes", size);
	else
		snprintf(buf, len, "%s (%zu bytes)", weft_plan_size_text(size, text, sizeof(text)),
			 size);
	return buf;
}

const char *weft_plan_time_text(double s, char *buf, size_t len)
{
	if (s < 1e-6)
		snprintf(buf, len, "%.4g ns", s * 1e9);
	else if (s < 1e-3)
		snprintf(buf, len, "%.4g us", s * 1e6);
	else if (s < 1)
		snprintf(buf, len, "%.4g ms", s * 1e3);
	else
		snprintf(buf, len, "%.4g s", s);
	return buf;
}

const char *weft_plan_lane_names(const struct weft_plan *plan, uint32_t mask, const char *sep,
				 char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (; mask && n < size; mask &= mask - 1)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? sep : "",
				      plan->lanes[__builtin_ctz(mask)].name);
	return buf;
}

static const char *range_text(size_t min, size_t max, char *buf, size_t len)
{
	if (max == SIZE_MAX)
		snprintf(buf, len, "%zu..inf", min);
	else
		snprintf(buf, len, "%zu..%zu", min, max);
	return buf;
}

/* "25% ena0 + 75% ena1"; one lane without a share; many lanes as a count. */
static void shares_text(const struct weft_plan *plan, const struct weft_curve *cv, char *buf,
			size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	if (!(cv->lanes & (cv->lanes - 1))) {
		weft_plan_lane_names(plan, cv->lanes, " ", buf, size);
		return;
	}
	for (uint32_t m = cv->lanes; m && n < size; m &= m - 1) {
		int i = __builtin_ctz(m);

		n += (size_t)snprintf(buf + n, size - n, "%s%.0f%% %s", n ? " + " : "",
				      cv->share[i] * 100, plan->lanes[i].name);
	}
}

/* ------------------------------------------------------------------ boxes */

#define WIDE_SIZE 19
#define WIDE_PROTO 12
#define WIDE_DESC 67
#define WIDE_LANES 52

static void rule(FILE *out, int columns)
{
	const int wide[] = {WIDE_SIZE, WIDE_PROTO, WIDE_DESC, WIDE_LANES};

	for (int c = 0; c < 4; c++) {
		fputc(c == 0 || columns ? '+' : '-', out);
		for (int i = 0; i < wide[c] + 2; i++)
			fputc('-', out);
	}
	fputs("+\n", out);
}

/* A row. The lanes column takes as many lines as it needs, cut behind a "+" if possible. */
static void row(FILE *out, const char *size, const char *proto, const char *desc, const char *lanes)
{
	do {
		size_t n = strlen(lanes), skip = 0;

		if (n > WIDE_LANES) {
			for (n = WIDE_LANES; n > 3 && strncmp(lanes + n - 3, " + ", 3) != 0; n--)
				;
			if (n <= 3)
				n = WIDE_LANES;
			else
				skip = 1; /* the blank at the cut */
		}
		fprintf(out, "| %*s | %-*s | %-*s | %-*.*s |\n", WIDE_SIZE, size, WIDE_PROTO, proto,
			WIDE_DESC, desc, WIDE_LANES, (int)(n - skip), lanes);
		lanes += n;
		size = proto = desc = "";
	} while (*lanes);
}

static void lane_line(const struct weft_plan *plan, FILE *out, unsigned int i)
{
	const struct weft_model_lane *l = &plan->model.lanes[i];
	const struct weft_plan_lane *n = &plan->lanes[i];
	char lat[32], over[32], reg[32];

	fprintf(out, "  %-12s %-8s %8.4g Gb/s  %9s one way  %7s per message  fragments up to %zu",
		n->name, n->driver, l->bandwidth * 8e-9,
		weft_plan_time_text(l->latency, lat, sizeof(lat)),
		weft_plan_time_text(l->send_overhead, over, sizeof(over)),
		l->max_bcopy > l->max_short ? l->max_bcopy : l->max_short);
	if (l->features & WEFT_LANE_F_GET)
		fprintf(out, "  get");
	if (l->features & WEFT_LANE_F_PUT)
		fprintf(out, "  put");
	if (l->reg_cost > 0 || l->reg_growth > 0)
		fprintf(out, "  registers in %s + %.4g ns/B",
			weft_plan_time_text(l->reg_cost, reg, sizeof(reg)), l->reg_growth * 1e9);
	if (l->domain != i)
		fprintf(out, "  same domain as %s", plan->lanes[l->domain].name);
	if (l->device != i)
		fprintf(out, "  SHARES ITS DEVICE with %s", plan->lanes[l->device].name);
	if (i == plan->model.am_lane)
		fprintf(out, "  [lowest latency: small messages, control]");
	fprintf(out, "\n");
	if (n->why[0])
		fprintf(out, "  %-12s   %s\n", "", n->why);
}

static void print_lanes(const struct weft_plan *plan, FILE *out)
{
	fprintf(out, "Lanes\n");
	for (uint32_t m = plan->model.lanes_up; m; m &= m - 1)
		lane_line(plan, out, (unsigned int)__builtin_ctz(m));
	fprintf(out, "  A CPU copies %.4g GB/s (%s).\n", plan->model.conf.bcopy_bw / 1e9,
		plan->measured ? "measured here" : "as set, or agreed with the peer");
}

static const char *buf_text(weft_buf buf)
{
	static const char *const names[WEFT_NUM_BUFS] = {
		"contiguous memory",
		"contiguous registered memory",
		"an iov of up to 4 entries",
		"a registered iov of up to 4 entries",
		"an iov of 5 to 32 entries",
		"a registered iov of 5 to 32 entries",
		"an iov of more than 32 entries",
		"a registered iov of more than 32 entries",
		"a generic datatype",
		"a generic datatype",
	};

	return names[buf];
}

static void print_table(const struct weft_plan *plan, FILE *out, const struct weft_proto_key *key,
			const struct weft_proto_select *sel)
{
	char title[256], range[64], lanes[512];
	struct weft_curve cv;
	size_t min = 0;

	snprintf(title, sizeof(title), "%s from %s, %s", weft_op_name(key->op), buf_text(key->buf),
		 plan->title);
	rule(out, 0);
	fprintf(out, "| %-*.*s |\n", WIDE_SIZE + WIDE_PROTO + WIDE_DESC + WIDE_LANES + 9,
		WIDE_SIZE + WIDE_PROTO + WIDE_DESC + WIDE_LANES + 9, title);
	rule(out, 1);
	for (unsigned int i = 0; i < sel->num && sel->ranges[i].proto; i++) {
		const struct weft_proto_range *r = &sel->ranges[i];

		weft_proto_curve(&plan->model, key, r->proto, &cv);
		shares_text(plan, &cv, lanes, sizeof(lanes));
		row(out, range_text(min, r->max, range, sizeof(range)), r->proto->name,
		    r->proto->desc, lanes);
		min = r->max + 1;
	}
	rule(out, 1);
	print_lanes(plan, out);
	weft_plan_print_threshold(plan, out, key, "  ");
}

/* ------------------------------------------------------------------ sentences */

static void print_text(const struct weft_plan *plan, FILE *out, const struct weft_proto_key *key,
		       const struct weft_proto_select *sel)
{
	char range[64], lanes[512];
	struct weft_curve cv;
	size_t min = 0;

	fprintf(out, "%s from %s, %s:\n", weft_op_name(key->op), buf_text(key->buf), plan->title);
	for (unsigned int i = 0; i < sel->num && sel->ranges[i].proto; i++) {
		const struct weft_proto_range *r = &sel->ranges[i];

		weft_proto_curve(&plan->model, key, r->proto, &cv);
		shares_text(plan, &cv, lanes, sizeof(lanes));
		fprintf(out, "%s bytes: %s over %s (%s)\n",
			range_text(min, r->max, range, sizeof(range)), r->proto->name, lanes,
			r->proto->desc);
		min = r->max + 1;
	}
	print_lanes(plan, out);
	weft_plan_print_threshold(plan, out, key, "  ");
}

/* ------------------------------------------------------------------ comma-separated */

static void csv_size(FILE *out, size_t size)
{
	if (size == SIZE_MAX)
		fputs("inf", out);
	else
		fprintf(out, "%zu", size);
}

static void csv_threshold(const struct weft_plan *plan, FILE *out, const struct weft_proto_key *key,
			  bool rma)
{
	const struct weft_lane_selector *sel = rma ? &weft_lanes_rndv_get : &weft_lanes_rndv_am;
	const struct weft_model *m = &plan->model;
	uint32_t eager = weft_lanes_choose(m, &weft_lanes_eager, key, NULL, 0);
	uint32_t rndv = weft_lanes_choose(m, sel, key, NULL, 0);
	const char *name = rma ? "rma" : "am";
	struct weft_thresh t;

	if (!rndv) {
		/* No lane has native reads: there is no such line to cross. */
		bool fixed = m->conf.rndv_thresh != WEFT_CONF_AUTO &&
			     m->conf.rndv_thresh != WEFT_CONF_MODEL;

		fprintf(out,
			"threshold.%s.num=none\nthreshold.%s.den=none\n"
			"threshold.%s.quotient=none\nthreshold.%s.bytes=",
			name, name, name, name);
		csv_size(out, fixed ? m->conf.rndv_thresh : m->conf.rndv_fallback);
		fprintf(out, "\nthreshold.%s.rule=%s\n", name, fixed ? "fixed" : "fallback");
		return;
	}
	weft_threshold_of(m, eager, rndv, rma, weft_proto_single(m, key), &t);
	fprintf(out, "threshold.%s.num=%.15g\n", name, t.num);
	fprintf(out, "threshold.%s.den=%.15g\n", name, t.den);
	if (t.has_quotient)
		fprintf(out, "threshold.%s.quotient=%.15g\n", name, t.quotient);
	else
		fprintf(out, "threshold.%s.quotient=none\n", name);
	fprintf(out, "threshold.%s.bytes=", name);
	csv_size(out, t.bytes);
	fprintf(out, "\nthreshold.%s.rule=%s\n", name, weft_thresh_rule_names[t.rule]);
}

static void print_csv(const struct weft_plan *plan, FILE *out, const struct weft_proto_key *key,
		      const struct weft_proto_select *sel)
{
	struct weft_curve cv;
	char lanes[1100];
	size_t min = 0;

	fputs("min,max,protocol,lanes,shares\n", out);
	for (unsigned int i = 0; i < sel->num && sel->ranges[i].proto; i++) {
		const struct weft_proto_range *r = &sel->ranges[i];
		const char *plus = "";

		weft_proto_curve(&plan->model, key, r->proto, &cv);
		fprintf(out, "%zu,", min);
		csv_size(out, r->max);
		fprintf(out, ",%s,%s,", r->proto->name,
			weft_plan_lane_names(plan, cv.lanes, "+", lanes, sizeof(lanes)));
		for (uint32_t m = cv.lanes; m; m &= m - 1, plus = "+")
			fprintf(out, "%s%.9g", plus, cv.share[__builtin_ctz(m)]);
		fputc('\n', out);
		min = r->max + 1;
	}
	if (!((WEFT_OPS_TAG | WEFT_OPS_AM) >> key->op & 1))
		return;
	csv_threshold(plan, out, key, true);
	csv_threshold(plan, out, key, false);
}

int weft_plan_print_key(const struct weft_plan *plan, FILE *out, const struct weft_proto_key *key,
			enum weft_plan_format format)
{
	struct weft_proto_select sel;
	char why[320] = "";

	if (weft_proto_choose(&plan->model, key, &sel, why, sizeof(why)) < 0) {
		fprintf(out, "%s%s from %s over %s: %s\n", format == WEFT_PLAN_CSV ? "# " : "",
			weft_op_name(key->op), buf_text(key->buf), plan->title, why);
		return -EOPNOTSUPP;
	}
	if (format == WEFT_PLAN_CSV)
		print_csv(plan, out, key, &sel);
	else if (format == WEFT_PLAN_TEXT)
		print_text(plan, out, key, &sel);
	else
		print_table(plan, out, key, &sel);
	return 0;
}

int weft_plan_print(const struct weft_plan *plan, FILE *out, enum weft_op op,
		    enum weft_plan_format format)
{
	struct weft_proto_key key = {op, weft_buf_usual(op)};

	if (!plan || !out || (unsigned int)op >= WEFT_OP_LAST)
		return -EINVAL;
	return weft_plan_print_key(plan, out, &key, format);
}
