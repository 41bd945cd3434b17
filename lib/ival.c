/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ival.h"

void weft_ivals_fini(struct weft_ivals *s)
{
	if (s->cap)
		free(s->v);
	weft_ivals_init(s);
}

/* Index of the first interval that ends at or after @lo. */
static uint32_t lower(const struct weft_ival *v, uint32_t num, uint64_t lo)
{
	uint32_t a = 0, b = num;

	/* Pieces mostly come in order: look at the end first. */
	if (num && v[num - 1].hi <= lo)
		return v[num - 1].hi == lo ? num - 1 : num;
	while (a < b) {
		uint32_t mid = a + (b - a) / 2;

		if (v[mid].hi < lo)
			a = mid + 1;
		else
			b = mid;
	}
	return a;
}

static int grow(struct weft_ivals *s)
{
	uint32_t cap = s->cap ? s->cap * 2 : 8;
	struct weft_ival *v;

	if (s->num >= WEFT_IVAL_MAX)
		return -E2BIG;
	v = realloc(s->cap ? s->v : NULL, cap * sizeof(*v));
	if (!v)
		return -ENOMEM;
	if (s->cap == 0 && s->num)
		v[0] = s->one;
	s->v = v;
	s->cap = cap;
	return 0;
}

int weft_ivals_add(struct weft_ivals *s, uint64_t lo, uint64_t hi)
{
	struct weft_ival *v = s->cap ? s->v : &s->one;
	uint32_t i = lower(v, s->num, lo);
	int rc;

	/*
	 * v[i] is the first that may touch: v[i].hi >= lo. When it only ends at lo, the next one
	 * matters too.
	 */
	if (i < s->num && v[i].hi == lo) {
		if (i + 1 < s->num && v[i + 1].lo < hi)
			return -EEXIST;
		v[i].hi = hi;
		if (i + 1 < s->num && v[i + 1].lo == hi) {
			v[i].hi = v[i + 1].hi;
			memmove(&v[i + 1], &v[i + 2], (s->num - i - 2) * sizeof(*v));
			s->num--;
		}
		s->covered += hi - lo;
		return 0;
	}
	if (i < s->num && v[i].lo < hi)
		return -EEXIST;
	if (i < s->num && v[i].lo == hi) {
		v[i].lo = lo;
		s->covered += hi - lo;
		return 0;
	}
	if (s->num >= (s->cap ? s->cap : 1)) {
		rc = grow(s);
		if (rc)
			return rc;
		v = s->v;
	}
	memmove(&v[i + 1], &v[i], (s->num - i) * sizeof(*v));
	v[i] = (struct weft_ival){lo, hi};
	s->num++;
	s->covered += hi - lo;
	return 0;
}
