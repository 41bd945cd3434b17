/* SPDX-License-Identifier: BSD-3-Clause */
/* The lower envelope of lines over 0..SIZE_MAX (proto/model.h). */

#include <errno.h>
#include <math.h>

#include "proto/model.h"

/* Is line @a a better choice than @b at @x? Of equal times the first line is better. */
static bool better(const struct weft_env_line *lines, int a, int b, size_t x)
{
	double ta = weft_linear_at(lines[a].f, (double)x);
	double tb = weft_linear_at(lines[b].f, (double)x);

	return ta < tb || (!(tb < ta) && a < b);
}

/* Lines valid at @x, of the lowest rank that has one; and up to which size this is the same. */
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
 * The first size in (x, end] where line @a is better than @b, which is better at @x; 0 = there is
 * none. Rounding may shift the intersection, so the integers around it are compared exactly.
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
