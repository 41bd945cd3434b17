/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/path_change.h"

/* One frame in N is lost. Few networks lose an eighth, but a policer does while windows grow. */
#define POLICED 8u
#define LOSSY 32u /* with more paths, the policers drop less */
#define SPANS 4u  /* few, more, few, more paths */

static bool loses(const struct weft_path_span *s, unsigned int part)
{
	return s->busy && s->again > 0 && (uint64_t)s->again * part >= s->frames;
}

bool weft_span_policed(const struct weft_path_span *s, bool found)
{
	return loses(s, found ? LOSSY : POLICED);
}

/*
 * Next to one flow of TCP, four flows have four shares of five, where one flow has one of two: 1.6
 * times as much. A limit of each flow allows four times as much.
 */
void weft_change_begin(struct weft_path_change *t, unsigned int paths, bool fewer, bool found)
{
	*t = (struct weft_path_change){.num = 9, .den = 8, .fewer = fewer, .last = found};
	if (paths == 1) {
		t->num = 7;
		t->den = 4;
	} else if (paths == 2) {
		t->num = 4;
		t->den = 3;
	}
}

static double span_rate(const struct weft_path_span *s)
{
	return (double)s->frames / (double)(s->ns + 1);
}

/* @return true: @p more carries about as much, with half of the loss */
static bool loses_less(const struct weft_path_span *few, const struct weft_path_span *more)
{
	return loses(few, LOSSY) && span_rate(more) * 8 >= span_rate(few) * 7 &&
	       2ull * more->again * few->frames < (uint64_t)few->again * more->frames;
}

/*
 * A policer saves up what a flow does not use, so few paths that were idle for a span carry more at
 * first. So a third span is only judged while the difference is large.
 */
enum weft_change_next weft_change_span(struct weft_path_change *t, const struct weft_path_span *s)
{
	bool other = t->spans++ % 2;
	double rate = span_rate(s);

	if (!s->busy)
		return t->fewer ? WEFT_CHANGE_STAY : WEFT_CHANGE_BACK;
	if (other)
		t->to = t->spans == 2 || rate < t->to ? rate : t->to;
	else
		t->from = rate > t->from ? rate : t->from;
	if (t->spans == 1) {
		t->first = *s;
		return WEFT_CHANGE_TURN;
	}
	if (t->fewer)
		return t->to * t->num < t->from * t->den || loses_less(s, &t->first)
			       ? WEFT_CHANGE_BACK
			       : WEFT_CHANGE_STAY;
	if (t->to * t->den < t->from * t->num && (!t->last || !loses_less(&t->first, s)))
		return WEFT_CHANGE_BACK;
	return t->spans < SPANS && !t->last ? WEFT_CHANGE_TURN : WEFT_CHANGE_STAY;
}

bool weft_change_hurts(const struct weft_path_change *t, const struct weft_path_span *s)
{
	return t->spans % 2 && !t->fewer && span_rate(s) * 2 < t->from;
}
