/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>

#include "core/config.h"
#include "plan/plan.h"
#include "proto/proto.h"

/* ------------------------------------------------------------------ texts */

static const char *size_text(size_t size, char *buf, size_t len)
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

static const char *bytes_text(size_t size, char *buf, size_t len)
{
	char text[32];

	if (size == SIZE_MAX)
		snprintf(buf, len, "no size");
	else if (size < 1024 || size % 1024)
		snprintf(buf, len, "%zu bytes", size);
	else
		snprintf(buf, len, "%s (%zu bytes)", size_text(size, text, sizeof(text)), size);
	return buf;
}

static const char *time_text(double s, char *buf, size_t len)
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

static const char *lane_names(const struct weft_plan *plan, uint32_t mask, const char *sep,
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

/* "25% ena0 + 75% ena1"; a single lane is printed without its share. */
static void shares_text(const struct weft_plan *plan, const struct weft_curve *cv, char *buf,
			size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	if (!(cv->lanes & (cv->lanes - 1))) {
		lane_names(plan, cv->lanes, " ", buf, size);
		return;
	}
	for (uint32_t m = cv->lanes; m && n < size; m &= m - 1) {
		int i = __builtin_ctz(m);

		n += (size_t)snprintf(buf + n, size - n, "%s%.0f%% %s", n ? " + " : "",
				      cv->share[i] * 100, plan->lanes[i].name);
	}
}

/* ------------------------------------------------------------------ explanation */

static const char *linear_text(struct weft_linear f, char *buf, size_t size)
{
	char c[32];

	if (f.m > 0 && f.c > 0)
		snprintf(buf, size, "%s + %.4g ns/B", time_text(f.c, c, sizeof(c)), f.m * 1e9);
	else if (f.m > 0)
		snprintf(buf, size, "%.4g ns/B", f.m * 1e9);
	else
		snprintf(buf, size, "%s", time_text(f.c, c, sizeof(c)));
	return buf;
}

static const struct weft_piece *piece_at(const struct weft_curve *cv, size_t x)
{
	unsigned int i = 0;

	while (i + 1 < cv->num_pieces && x > cv->pieces[i].max)
		i++;
	return &cv->pieces[i];
}

/* ------------------------------------------------------------------ the tree */

/* The cost line of a term: that of a message in one fragment, or of a round (proto/proto.h). */
static struct weft_linear part(const struct weft_term *t, int pace)
{
	return t->round && pace == WEFT_PACE_ONE ? t->one : t->f;
}

static void print_stage(FILE *out, const struct weft_curve *cv, enum weft_stage stage, int pace,
			double x)
{
	double sum = 0;
	bool any = false;
	char time[32], line[64];

	for (unsigned int i = 0; i < cv->num_terms; i++) {
		if (cv->terms[i].stage != stage)
			continue;
		sum += weft_linear_at(part(&cv->terms[i], pace), x);
		any = true;
	}
	if (!any)
		return;
	fprintf(out, "    +- %-30s %12s\n", weft_stage_names[stage],
		time_text(sum, time, sizeof(time)));
	for (unsigned int i = 0; i < cv->num_terms; i++) {
		const struct weft_term *t = &cv->terms[i];
		struct weft_linear f = part(t, pace);

		if (t->stage != stage)
			continue;
		fprintf(out, "    |    +- %-25s %12s  = %s%s%s%s%s\n", t->name,
			time_text(weft_linear_at(f, x), time, sizeof(time)),
			linear_text(f, line, sizeof(line)), t->round ? ", each round" : "",
			t->note[0] ? "  (" : "", t->note, t->note[0] ? ")" : "");
	}
}

static void print_tree(const struct weft_plan *plan, FILE *out, const struct weft_curve *cv,
		       size_t length)
{
	const struct weft_piece *p = piece_at(cv, length);
	double x = (double)length, rounds = x / (double)cv->round;
	char time[32];

	if (p->pace >= 0) {
		fprintf(out,
			"    %.4g rounds of %zu bytes. The first pays for all stages, as below; "
			"from the second on the\n"
			"    %s sets the pace: %.4g ns/B.\n",
			rounds, cv->round,
			p->pace == WEFT_STAGE_SEND_CPU   ? "sender's CPU"
			: p->pace == WEFT_STAGE_RECV_CPU ? "receiver's CPU"
							 : "wire",
			p->f.m / cv->scale * 1e9);
		x = (double)cv->round;
	}
	for (int s = 0; s < WEFT_NUM_STAGES; s++)
		print_stage(out, cv, (enum weft_stage)s, p->pace, x);
	if (p->pace >= 0)
		fprintf(out, "    +- %-30s %12s\n", "further rounds",
			time_text((weft_curve_at(cv, length) - weft_curve_at(cv, cv->round)) /
					  cv->scale,
				  time, sizeof(time)));
	if (cv->scale < 1)
		fprintf(out, "    x %.4g  (in favour of rendezvous)\n", cv->scale);
	(void)plan;
}

/* ------------------------------------------------------------------ the threshold */

static void closed_form(const struct weft_plan *plan, FILE *out, const struct weft_proto_bounds *b,
			size_t single, const char *indent)
{
	char eager[512], rndv[512], line[64];
	struct weft_thresh_in in;

	weft_threshold_in(&plan->model, b->eager, b->rndv, b->rma, single, &in);
	lane_names(plan, b->eager, " + ", eager, sizeof(eager));
	lane_names(plan, b->rndv, " + ", rndv, sizeof(rndv));
	fprintf(out, "%sClosed form: eager over %s takes %s,\n", indent, eager,
		linear_text(weft_thresh_eager_line(&in), line, sizeof(line)));
	fprintf(out, "%s  rendezvous by %s over %s takes %s.\n", indent,
		b->rma ? "remote reads" : "active messages", rndv,
		linear_text(weft_thresh_rndv_line(&in), line, sizeof(line)));
	fprintf(out, "%s  num = %.6g s, den = %.6g s/B: ", indent, b->thresh.num, b->thresh.den);
	if (b->thresh.num > 0 && b->thresh.den > 0)
		fprintf(out, "they cross at %.1f bytes.\n", b->thresh.quotient);
	else if (b->thresh.num <= 0 && b->thresh.den >= 0)
		fprintf(out, "rendezvous is cheaper at every size.\n");
	else
		fprintf(out, "no size from which rendezvous is cheaper.\n");
	if (b->eager == b->rndv && b->thresh.rule == WEFT_THRESH_CAPPED)
		fprintf(out,
			"%s  The same lanes carry both: the lines are nearly parallel, where they "
			"cross means little, and the cap decides.\n",
			indent);
}

static void used(const struct weft_plan *plan, FILE *out, const struct weft_proto_bounds *b,
		 const char *indent)
{
	char size[64];

	fprintf(out, "%sRendezvous from %s on: ", indent,
		bytes_text(b->thresh.bytes, size, sizeof(size)));
	switch (b->thresh.rule) {
	case WEFT_THRESH_CROSSING:
		fprintf(out, "crossing: there both take the same time.\n");
		break;
	case WEFT_THRESH_ALWAYS:
		fprintf(out,
			"always: it is cheaper at every size (empty messages are eager all the "
			"same).\n");
		break;
	case WEFT_THRESH_FALLBACK:
		fprintf(out, "fallback: the two never take the same time.\n");
		break;
	case WEFT_THRESH_CAPPED:
		fprintf(out, plan->model.conf.multi_eager_limit
				     ? "capped: eager carries no more (WEFT_MULTI_EAGER_LIMIT).\n"
				     : "capped: eager carries one fragment "
				       "(WEFT_MULTI_EAGER_LIMIT=0).\n");
		break;
	case WEFT_THRESH_FIXED:
		fprintf(out, "fixed: set by WEFT_RNDV_THRESH.\n");
		break;
	}
}

/* The first size at which the staged model chooses a rendezvous; SIZE_MAX = never. */
static size_t model_verdict(const struct weft_plan *plan, const struct weft_proto_key *key)
{
	struct weft_model m = plan->model;
	struct weft_proto_select sel;
	size_t from = 0;

	m.conf.rndv_thresh = WEFT_CONF_MODEL;
	if (weft_proto_choose(&m, key, &sel, NULL, 0) < 0)
		return SIZE_MAX;
	for (unsigned int i = 0; i < sel.num; i++) {
		if (sel.ranges[i].proto->flags & WEFT_PROTO_F_RNDV)
			return from;
		from = sel.ranges[i].max + 1;
	}
	return SIZE_MAX;
}

static void print_threshold(const struct weft_plan *plan, FILE *out,
			    const struct weft_proto_key *key, const char *indent)
{
	size_t single = weft_proto_single(&plan->model, key);
	struct weft_proto_bounds b;
	char size[64];

	if (!(WEFT_OP_BIT(key->op) & (WEFT_OPS_TAG | WEFT_OP_BIT(WEFT_OP_AM_SEND))))
		return;
	weft_proto_bounds(&plan->model, key, single, &b);
	fprintf(out, "Rendezvous threshold\n");
	if (b.eager && b.rndv)
		closed_form(plan, out, &b, single, indent);
	if (b.by_model) {
		fprintf(out, "%sWEFT_RNDV_THRESH=model: the staged model decides.\n", indent);
		b.thresh.rule = WEFT_THRESH_CROSSING;
	} else {
		used(plan, out, &b, indent);
	}
	fprintf(out, "%sThe staged model %s rendezvous from %s on%s.\n", indent,
		b.by_model ? "takes" : "would take",
		bytes_text(model_verdict(plan, key), size, sizeof(size)),
		b.by_model ? "" : " (WEFT_RNDV_THRESH=model)");
}

/* ------------------------------------------------------------------ candidates */

static void print_candidate(const struct weft_plan *plan, FILE *out,
			    const struct weft_proto_key *key, const struct weft_proto *proto,
			    const struct weft_proto_select *sel, size_t length)
{
	char time[32], a[32], b[32], lanes[512], line[64];
	struct weft_curve cv;

	fprintf(out, "\n  %s: %s\n", proto->name, proto->desc);
	if (weft_proto_curve(&plan->model, key, proto, &cv) < 0) {
		fprintf(out, "    cannot: %s\n", cv.why);
		return;
	}
	if (length < cv.min || length > cv.max) {
		fprintf(out, "    carries %s..%s only\n", size_text(cv.min, a, sizeof(a)),
			size_text(cv.max, b, sizeof(b)));
		return;
	}
	fprintf(out, "    %s = %s over %s%s\n",
		time_text(weft_curve_at(&cv, length), time, sizeof(time)),
		linear_text(piece_at(&cv, length)->f, line, sizeof(line)),
		lane_names(plan, cv.lanes, " + ", lanes, sizeof(lanes)),
		weft_proto_lookup(sel, length) == proto ? "   <== CHOSEN" : "");
	print_tree(plan, out, &cv, length);
}

int weft_plan_explain(const struct weft_plan *plan, FILE *out, enum weft_op op, size_t length)
{
	struct weft_proto_key key = {op, weft_buf_usual(op)};
	struct weft_proto_select sel;
	char why[320] = "", size[32];

	if (!plan || !out || (unsigned int)op >= WEFT_OP_LAST)
		return -EINVAL;
	if (weft_proto_choose(&plan->model, &key, &sel, why, sizeof(why)) < 0) {
		fprintf(out, "%s over %s: %s\n", weft_op_name(op), plan->title, why);
		return -EOPNOTSUPP;
	}
	if (!weft_proto_lookup(&sel, length)) {
		fprintf(out, "%s over %s: no protocol carries %zu bytes\n", weft_op_name(op),
			plan->title, length);
		return -EOPNOTSUPP;
	}
	fprintf(out, "%s of %s (%zu bytes), %s: %s\n", weft_op_name(op),
		size_text(length, size, sizeof(size)), length, plan->title,
		weft_proto_lookup(&sel, length)->name);
	for (const struct weft_proto *const *p = plan->model.conf.protos; *p; p++)
		if (weft_proto_implements(*p, &key))
			print_candidate(plan, out, &key, *p, &sel, length);
	fprintf(out, "\n");
	print_threshold(plan, out, &key, "  ");
	return 0;
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

/* The lanes take as many lines as needed; a line ends behind " + " if possible. */
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
		n->name, n->driver, l->bandwidth * 8e-9, time_text(l->latency, lat, sizeof(lat)),
		time_text(l->send_overhead, over, sizeof(over)),
		l->max_bcopy > l->max_short ? l->max_bcopy : l->max_short);
	if (l->features & WEFT_LANE_F_GET)
		fprintf(out, "  get");
	if (l->features & WEFT_LANE_F_PUT)
		fprintf(out, "  put");
	if (l->reg_cost > 0 || l->reg_growth > 0)
		fprintf(out, "  registers in %s + %.4g ns/B",
			time_text(l->reg_cost, reg, sizeof(reg)), l->reg_growth * 1e9);
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
	print_threshold(plan, out, key, "  ");
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
	print_threshold(plan, out, key, "  ");
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
		/* No lane supports this kind of rendezvous, so no lines cross. */
		bool fixed = m->conf.rndv_thresh != WEFT_CONF_AUTO &&
			     m->conf.rndv_thresh != WEFT_CONF_MODEL;

		fprintf(out,
			"threshold.%s.num=none\nthreshold.%s.den=none\n"
			"threshold.%s.quotient=none\nthreshold.%s.bytes=",
			name, name, name, name);
		csv_size(out, fixed ? m->conf.rndv_thresh : SIZE_MAX);
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

#define CSV_VERSION 1u /* doc/formats.md */

static void print_csv(const struct weft_plan *plan, FILE *out, const struct weft_proto_key *key,
		      const struct weft_proto_select *sel)
{
	struct weft_curve cv;
	char lanes[1100];
	size_t min = 0;

	fputs("min,max,protocol,lanes,shares,version\n", out);
	for (unsigned int i = 0; i < sel->num && sel->ranges[i].proto; i++) {
		const struct weft_proto_range *r = &sel->ranges[i];
		const char *plus = "";

		weft_proto_curve(&plan->model, key, r->proto, &cv);
		fprintf(out, "%zu,", min);
		csv_size(out, r->max);
		fprintf(out, ",%s,%s,", r->proto->name,
			lane_names(plan, cv.lanes, "+", lanes, sizeof(lanes)));
		for (uint32_t m = cv.lanes; m; m &= m - 1, plus = "+")
			fprintf(out, "%s%.9g", plus, cv.share[__builtin_ctz(m)]);
		fprintf(out, ",%u\n", CSV_VERSION);
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
