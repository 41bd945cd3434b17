/* SPDX-License-Identifier: BSD-3-Clause */

#include "msg/stall.h"

#include <stdio.h>

#include "base/counters.h"
#include "msg/state.h"

/* ------------------------------------------------------------------ stalls */

static void count(struct weft_stalls *s, enum weft_stall stall, int32_t more)
{
	s->num[stall] += (uint32_t)more;
	s->all += (uint32_t)more;
}

void weft_stall_set(struct weft_msg_ep *me, enum weft_stall stall)
{
	if (me->stall == stall)
		return;
	if (me->stall != WEFT_STALL_NONE)
		count(&me->mw->stalls, (enum weft_stall)me->stall, -1);
	if (stall != WEFT_STALL_NONE)
		count(&me->mw->stalls, stall, 1);
	me->stall = (uint8_t)stall;
}

void weft_stall_offered(struct weft_request *req)
{
	if (req->flags & WEFT_REQ_OFFERED)
		return;
	req->flags |= WEFT_REQ_OFFERED;
	count(&req->mw->stalls, WEFT_STALL_RECEIVE, 1);
}

void weft_stall_requested(struct weft_request *req)
{
	if (!(req->flags & WEFT_REQ_OFFERED))
		return;
	req->flags &= ~WEFT_REQ_OFFERED;
	count(&req->mw->stalls, WEFT_STALL_RECEIVE, -1);
}

void weft_stall_account(struct weft_stalls *s, uint64_t ns)
{
	for (unsigned int i = 1; i < WEFT_STALLS; i++)
		if (s->num[i])
			s->ns[i] += ns;
}

/* ------------------------------------------------------------------ latencies */

/* The longest message of each class but the last. */
static const size_t sizes[WEFT_LATENCY_SIZES - 1] = {64, 4096, 65536, 1048576};

void weft_latency_begin(struct weft_request *req)
{
	req->send.begin = req->mw->worker->now;
	req->flags |= WEFT_REQ_TIMED;
}

/* Powers of four from 1 us on; the last step has no end. */
static unsigned int step_of(uint64_t ns)
{
	uint64_t us = ns / 1000;
	unsigned int bits = us ? 64 - (unsigned int)__builtin_clzll(us) : 0, step = (bits + 1) / 2;

	return step < WEFT_LATENCY_STEPS ? step : WEFT_LATENCY_STEPS - 1;
}

void weft_latency_end(const struct weft_request *req)
{
	unsigned int size = 0;

	/* Operations of modules end here, too. */
	if (!(req->flags & WEFT_REQ_TIMED))
		return;
	while (size < WEFT_LATENCY_SIZES - 1 && req->dt.length > sizes[size])
		size++;
	req->mw->stalls.latency[size][step_of(req->mw->worker->now - req->send.begin)]++;
}

/* ------------------------------------------------------------------ counters */

#define STALLS(X)                                                            \
	X(WEFT_STALL_CONNECT, "stall.connect_ns",                            \
	  "ns in which sends of an endpoint waited for its connection.")     \
	X(WEFT_STALL_CREDIT, "stall.credit_ns",                              \
	  "ns in which sends of an endpoint waited for credit of the peer.") \
	X(WEFT_STALL_LANE, "stall.lane_ns",                                  \
	  "ns in which sends of an endpoint waited for room on its lanes.")  \
	X(WEFT_STALL_RECEIVE, "stall.receive_ns",                            \
	  "ns in which an announced message waited for the receiver to request its data.")

/* clang-format off */
const struct weft_lane_counter weft_stall_counter_help[] = {
	STALLS(WEFT_COUNTER_HELP)
	{"latency.size#.step#",
	 "Sends that ended after their call, by length (64, 4k, 64k, 1M, more), within 4^step us.",
	 false},
	WEFT_COUNTER_HELP_END
};
/* clang-format on */

void weft_stall_counters(const struct weft_stalls *s, weft_lane_counter_cb cb, void *arg)
{
	char name[40];

#define REPORT(stall, name, help) cb(name, s->ns[stall], arg);
	STALLS(REPORT)
#undef REPORT
	for (unsigned int i = 0; i < WEFT_LATENCY_SIZES; i++)
		for (unsigned int k = 0; k < WEFT_LATENCY_STEPS; k++) {
			if (!s->latency[i][k])
				continue;
			snprintf(name, sizeof(name), "latency.size%u.step%u", i, k);
			cb(name, s->latency[i][k], arg);
		}
}
