/* SPDX-License-Identifier: BSD-3-Clause */

#include "msg/credit_pool.h"

/*
 * The limit divided by this is a window's floor; the quarter of the limit is reserved for floors.
 */
#define FLOOR_PART 2048
#define RESERVE_PART 4
/* The part of the remaining pool that a new peer gets. */
#define FIRST_PART 32
/* A window that grows by less than this part is not worth a message. */
#define WORTH_PART 8

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void weft_credit_pool_init(struct weft_credit_pool *p, uint64_t limit, uint64_t least,
			   uint64_t first, uint64_t max)
{
	*p = (struct weft_credit_pool){
		.limit = limit,
		.floor = limit / FLOOR_PART > least ? limit / FLOOR_PART : least,
		.least = less(least, max),
		.first = less(first, max),
		.max = max,
	};
	p->floor = less(p->floor, max);
}

/* Credit that is neither granted nor reserved for the floors of future peers. */
static uint64_t credit_left(const struct weft_credit_pool *p)
{
	uint64_t peers = p->limit / RESERVE_PART / p->floor;

	return minus(p->limit, p->granted + minus(peers, p->peers) * p->floor);
}

uint64_t weft_credit_pool_join(struct weft_credit_pool *p)
{
	uint64_t window = p->granted + p->floor <= p->limit ? p->floor : p->least;

	p->peers++;
	p->granted += window;
	if (window < p->first) {
		uint64_t more = less(p->first - window, credit_left(p) / FIRST_PART);

		p->granted += more;
		window += more;
	}
	return window;
}

void weft_credit_pool_leave(struct weft_credit_pool *p, uint64_t window)
{
	p->peers--;
	p->granted -= window;
}

uint64_t weft_credit_pool_grow(struct weft_credit_pool *p, uint64_t window)
{
	uint64_t more = less(window, minus(p->max, window));

	more = less(more, minus(2 * credit_left(p), window) / 3);
	if (more == 0 || more < window / WORTH_PART)
		return 0;
	p->granted += more;
	return more;
}

uint64_t weft_credit_pool_keep(struct weft_credit_pool *p, uint64_t window, uint64_t back)
{
	uint64_t even = (p->limit - p->limit / RESERVE_PART) / (p->peers ? p->peers : 1);

	if (credit_left(p) > p->limit / 16)
		return 0;
	back = less(back, minus(window, even > p->floor ? even : p->floor));
	p->granted -= back;
	return back;
}
