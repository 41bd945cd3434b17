/* SPDX-License-Identifier: BSD-3-Clause */

#include "proto/model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ names of stages */

const char *const weft_stage_names[WEFT_NUM_STAGES] = {
	[WEFT_STAGE_SEND_CPU] = "send CPU",
	[WEFT_STAGE_SEND_COPY] = "send copy",
	[WEFT_STAGE_SEND_REG] = "registration at the sender",
	[WEFT_STAGE_WIRE] = "wire",
	[WEFT_STAGE_RECV_CPU] = "receive CPU",
	[WEFT_STAGE_RECV_COPY] = "receive copy",
	[WEFT_STAGE_RECV_REG] = "registration at the receiver",
	[WEFT_STAGE_LATENCY] = "latency",
};

/* ------------------------------------------------------------------ curves */

/* The resource that a stage occupies. Rounds overlap between resources, never within one. */
enum resource { SENDER, WIRE, RECEIVER, NOTHING, NUM_RESOURCES };

static const enum resource resource_of[WEFT_NUM_STAGES] = {
	[WEFT_STAGE_SEND_CPU] = SENDER,   [WEFT_STAGE_SEND_COPY] = SENDER,
	[WEFT_STAGE_SEND_REG] = SENDER,   [WEFT_STAGE_WIRE] = WIRE,
	[WEFT_STAGE_RECV_CPU] = RECEIVER, [WEFT_STAGE_RECV_COPY] = RECEIVER,
	[WEFT_STAGE_RECV_REG] = RECEIVER, [WEFT_STAGE_LATENCY] = NOTHING,
};

/* The stage that represents each resource in texts. */
static const enum weft_stage stage_of[NOTHING] = {
	[SENDER] = WEFT_STAGE_SEND_CPU,
	[WIRE] = WEFT_STAGE_WIRE,
	[RECEIVER] = WEFT_STAGE_RECV_CPU,
};

void weft_curve_begin(struct weft_curve *cv, size_t min, size_t max)
{
	*cv = (struct weft_curve){.min = min, .max = max, .scale = 1, .round = SIZE_MAX};
}

static void add_term(struct weft_curve *cv, const struct weft_term *term, const char *name,
		     const char *note)
{
	struct weft_term *t;

	/*
	 * A term without cost explains nothing. More terms than fit would be a bug; the last term
	 * then has the cost of the others, too.
	 */
	if (!(term->f.c > 0) && !(term->f.m > 0))
		return;
	if (cv->num_terms == WEFT_CURVE_TERMS) {
		t = &cv->terms[WEFT_CURVE_TERMS - 1];
		t->f.c += term->f.c;
		t->f.m += term->f.m;
		return;
	}
	t = &cv->terms[cv->num_terms++];
	*t = *term;
	snprintf(t->name, sizeof(t->name), "%s", name);
	snprintf(t->note, sizeof(t->note), "%s", note ? note : "");
}

void weft_curve_once(struct weft_curve *cv, enum weft_stage stage, struct weft_linear f,
		     const char *name, const char *note)
{
	add_term(cv, &(struct weft_term){.stage = stage, .f = f}, name, note);
}

void weft_curve_round(struct weft_curve *cv, enum weft_stage stage, struct weft_linear one,
		      struct weft_linear round, const char *name, const char *note)
{
	add_term(cv, &(struct weft_term){.stage = stage, .round = true, .f = round, .one = one},
		 name, note);
}

static void add_piece(struct weft_curve *cv, size_t max, struct weft_linear f, int pace)
{
	if (max > cv->max)
		max = cv->max;
	/* Pieces that end before the range of sizes, or begin after it. */
	if (max < cv->min || (cv->num_pieces && max <= cv->pieces[cv->num_pieces - 1].max))
		return;
	cv->pieces[cv->num_pieces++] = (struct weft_piece){
		.max = max,
		.f = {f.c * cv->scale, f.m * cv->scale},
		.pace = pace,
	};
}

/* Sums of terms by resource. */
struct sums {
	struct weft_linear once, one, first, round[NUM_RESOURCES];
};

static void add_up(const struct weft_curve *cv, struct sums *s)
{
	*s = (struct sums){.once = {0}};
	for (unsigned int i = 0; i < cv->num_terms; i++) {
		const struct weft_term *t = &cv->terms[i];
		struct weft_linear *to = t->round ? &s->round[resource_of[t->stage]] : &s->once;
		const struct weft_linear *one = t->round ? &t->one : &t->f;

		to->c += t->f.c;
		to->m += t->f.m;
		s->one.c += one->c;
		s->one.m += one->m;
		s->first.c += t->f.c;
		s->first.m += t->f.m;
	}
}

void weft_curve_end(struct weft_curve *cv)
{
	struct weft_linear rest = {0};
	double f = (double)cv->round, slope[NOTHING];
	int pace = SENDER;
	struct sums s;

	cv->num_pieces = 0;
	add_up(cv, &s);
	if (cv->round == SIZE_MAX) {
		add_piece(cv, cv->max, s.one, WEFT_PACE_ONE);
		return;
	}
	add_piece(cv, cv->fragment, s.one, WEFT_PACE_ONE);
	add_piece(cv, cv->round, s.first, WEFT_PACE_FIRST);
	/*
	 * From the second round on each resource adds its cost of a round, and the slowest one
	 * determines the time; the costs of the others are in the first round. The two pieces meet
	 * where the first round ends, at f bytes.
	 */
	for (int r = 0; r < NOTHING; r++) {
		slope[r] = s.round[r].m + s.round[r].c / f;
		if (slope[r] > slope[pace])
			pace = r;
	}
	rest.m = s.once.m + slope[pace];
	rest.c = weft_linear_at(s.first, f) - rest.m * f;
	add_piece(cv, cv->max, rest, (int)stage_of[pace]);
}

double weft_curve_at(const struct weft_curve *cv, size_t x)
{
	unsigned int i = 0;

	while (i + 1 < cv->num_pieces && x > cv->pieces[i].max)
		i++;
	return weft_linear_at(cv->pieces[i].f, (double)x);
}

/* ------------------------------------------------------------------ sets of lanes */

void weft_lanes_sum(const struct weft_model *m, uint32_t lanes, struct weft_lanes_sum *sum)
{
	*sum = (struct weft_lanes_sum){0};
	for (uint32_t left = lanes; left; left &= left - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(left);
		const struct weft_model_lane *l = &m->lanes[i];
		bool again = false;

		sum->num++;
		sum->bandwidth += l->bandwidth;
		sum->send_overhead += l->send_overhead;
		sum->recv_overhead += l->recv_overhead;
		if (l->latency > sum->latency)
			sum->latency = l->latency;
		for (uint32_t k = lanes & ((1u << i) - 1); k; k &= k - 1)
			again |= m->lanes[__builtin_ctz(k)].domain == l->domain;
		if (again)
			continue;
		sum->reg_cost += l->reg_cost;
		sum->reg_growth += l->reg_growth;
	}
}

void weft_curve_lanes(struct weft_curve *cv, const struct weft_model *m, uint32_t lanes)
{
	struct weft_lanes_sum sum;

	weft_lanes_sum(m, lanes, &sum);
	cv->lanes = lanes;
	for (unsigned int i = 0; i < WEFT_MODEL_LANES; i++)
		cv->share[i] = lanes >> i & 1 ? m->lanes[i].bandwidth / sum.bandwidth : 0;
}

/* ------------------------------------------------------------------ lower envelope */

/* Is line @p a a better choice than @p b at @p x? Of equal times the first line is better. */
static bool better(const struct weft_env_line *lines, int a, int b, size_t x)
{
	double ta = weft_linear_at(lines[a].f, (double)x);
	double tb = weft_linear_at(lines[b].f, (double)x);

	return ta < tb || (!(tb < ta) && a < b);
}

/*
 * The lowest rank of the lines that are valid at a size, and the largest size up to which the same
 * lines are valid.
 */
struct field {
	unsigned int rank;
	bool any;
	size_t end; /* inclusive */
};

static bool valid(const struct weft_env_line *l, size_t x)
{
	return l->min <= x && x <= l->max;
}

static struct field look(const struct weft_env_line *lines, unsigned int num, size_t x)
{
	struct field f = {.end = SIZE_MAX};

	for (unsigned int i = 0; i < num; i++) {
		const struct weft_env_line *l = &lines[i];

		if (valid(l, x) && (!f.any || l->rank < f.rank)) {
			f.rank = l->rank;
			f.any = true;
		}
		if (l->min > l->max)
			continue;
		if (l->min > x && l->min - 1 < f.end)
			f.end = l->min - 1;
		if (valid(l, x) && l->max < f.end)
			f.end = l->max;
	}
	return f;
}

static int best_at(const struct weft_env_line *lines, unsigned int num, unsigned int rank, size_t x)
{
	int best = -1;

	for (unsigned int i = 0; i < num; i++) {
		if (!valid(&lines[i], x) || lines[i].rank != rank)
			continue;
		if (best < 0 || better(lines, (int)i, best, x))
			best = (int)i;
	}
	return best;
}

/*
 * The first size in (x, end] where line @p a is better than @p b, which is better at @p x. Rounding
 * may shift the intersection, so the integers around it are compared exactly. 0 = there is none
 */
static size_t overtakes(const struct weft_env_line *lines, int a, int b, size_t x, size_t end)
{
	double at = (lines[a].f.c - lines[b].f.c) / (lines[b].f.m - lines[a].f.m);
	size_t lo = x, hi = end, mid; /* b is better at lo, a at hi */

	if (!better(lines, a, b, end))
		return 0;
	/* First narrow the bracket around the intersection, then bisect the rest. */
	if (isfinite(at) && at > (double)lo + 2 && at < (double)hi - 2) {
		mid = (size_t)at;
		if (better(lines, a, b, mid - 1))
			hi = mid - 1;
		else
			lo = mid - 1;
		if (mid + 2 < hi && better(lines, a, b, mid + 2))
			hi = mid + 2;
	}
	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (better(lines, a, b, mid))
			hi = mid;
		else
			lo = mid;
	}
	return hi;
}

static int append(const struct weft_env_line *lines, struct weft_env_range *out, unsigned int n,
		  unsigned int max_out, size_t max, int line)
{
	if (n && (out[n - 1].line == line || (line >= 0 && out[n - 1].line >= 0 &&
					      lines[out[n - 1].line].id == lines[line].id))) {
		out[n - 1].max = max;
		return (int)n;
	}
	if (n == max_out)
		return -ENOSPC;
	out[n] = (struct weft_env_range){max, line};
	return (int)n + 1;
}

int weft_envelope(const struct weft_env_line *lines, unsigned int num, struct weft_env_range *out,
		  unsigned int max_out)
{
	size_t x = 0, end, next;
	int n = 0;

	for (;;) {
		struct field f = look(lines, num, x);
		int best = f.any ? best_at(lines, num, f.rank, x) : -1;

		end = f.end;
		for (unsigned int i = 0; best >= 0 && i < num; i++) {
			if (!valid(&lines[i], x) || lines[i].rank != f.rank || (int)i == best)
				continue;
			next = overtakes(lines, (int)i, best, x, end);
			if (next)
				end = next - 1;
		}
		n = append(lines, out, (unsigned int)n, max_out, end, best);
		if (n < 0 || end == SIZE_MAX)
			return n;
		x = end + 1;
	}
}
