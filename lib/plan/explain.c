/* SPDX-License-Identifier: BSD-3-Clause */
/* The origin of every number of a plan: protocol, stage, term. */

#include <errno.h>
#include <string.h>

#include "core/config.h"
#include "proto/proto.h"
#include "plan/plan.h"

/* "12.5 us + 0.08 ns/B" */
static const char *linear_text(struct weft_linear f, char *buf, size_t size)
{
	char c[32];

	if (f.m > 0 && f.c > 0)
		snprintf(buf, size, "%s + %.4g ns/B", weft_plan_time_text(f.c, c, sizeof(c)),
			 f.m * 1e9);
	else if (f.m > 0)
		snprintf(buf, size, "%.4g ns/B", f.m * 1e9);
	else
		snprintf(buf, size, "%s", weft_plan_time_text(f.c, c, sizeof(c)));
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

/* The part of a term that belongs to a piece. */
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
		weft_plan_time_text(sum, time, sizeof(time)));
	for (unsigned int i = 0; i < cv->num_terms; i++) {
		const struct weft_term *t = &cv->terms[i];
		struct weft_linear f = part(t, pace);

		if (t->stage != stage)
			continue;
		fprintf(out, "    |    +- %-25s %12s  = %s%s%s%s%s\n", t->name,
			weft_plan_time_text(weft_linear_at(f, x), time, sizeof(time)),
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
			weft_plan_time_text(
				(weft_curve_at(cv, length) - weft_curve_at(cv, cv->round)) /
					cv->scale,
				time, sizeof(time)));
	if (cv->scale < 1)
		fprintf(out, "    x %.4g  (1 - WEFT_RNDV_PERF_DIFF/100)\n", cv->scale);
	(void)plan;
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
		fprintf(out, "    carries %s..%s only\n", weft_plan_size_text(cv.min, a, sizeof(a)),
			weft_plan_size_text(cv.max, b, sizeof(b)));
		return;
	}
	fprintf(out, "    %s = %s over %s%s\n",
		weft_plan_time_text(weft_curve_at(&cv, length), time, sizeof(time)),
		linear_text(piece_at(&cv, length)->f, line, sizeof(line)),
		weft_plan_lane_names(plan, cv.lanes, " + ", lanes, sizeof(lanes)),
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
		fprintf(out, "%s over %s: never of %zu bytes\n", weft_op_name(op), plan->title,
			length);
		return -EOPNOTSUPP;
	}
	fprintf(out, "%s of %s (%zu bytes), %s: %s\n", weft_op_name(op),
		weft_plan_size_text(length, size, sizeof(size)), length, plan->title,
		weft_proto_lookup(&sel, length)->name);
	for (const struct weft_proto *const *p = plan->model.conf.protos; *p; p++)
		if (weft_proto_implements(*p, &key))
			print_candidate(plan, out, &key, *p, &sel, length);
	fprintf(out, "\n");
	weft_plan_print_threshold(plan, out, &key, "  ");
	return 0;
}

/* ------------------------------------------------------------------ the threshold */

static void closed_form(const struct weft_plan *plan, FILE *out, const struct weft_proto_bounds *b,
			size_t single, const char *indent)
{
	char eager[512], rndv[512], line[64];
	struct weft_thresh_in in;

	weft_threshold_in(&plan->model, b->eager, b->rndv, b->rma, single, &in);
	weft_plan_lane_names(plan, b->eager, " + ", eager, sizeof(eager));
	weft_plan_lane_names(plan, b->rndv, " + ", rndv, sizeof(rndv));
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
		weft_plan_bytes_text(b->thresh.bytes, size, sizeof(size)));
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
		fprintf(out, "fallback: WEFT_RNDV_THRESH_FALLBACK.\n");
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

void weft_plan_print_threshold(const struct weft_plan *plan, FILE *out,
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
		weft_plan_bytes_text(model_verdict(plan, key), size, sizeof(size)),
		b.by_model ? "" : " (WEFT_RNDV_THRESH=model)");
}
