/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices of the mock lane that are as fast as a test says, not as they state. */

#include "mock/mock_priv.h"

void mock_set_speed(struct weft_lane_iface *iface, double rate, uint64_t lag_ns, uint64_t burst_ns)
{
	struct mock_iface *f = to_iface(iface);

	f->speed = rate;
	f->lag = lag_ns;
	f->burst = burst_ns;
}

uint64_t mock_due(struct mock_iface *f, enum mock_kind kind, size_t len)
{
	uint64_t *busy = &f->busy[kind], due;

	f->moved += len;
	if (f->speed <= 0)
		return mock_now;
	*busy = (*busy > mock_now ? *busy : mock_now) + (uint64_t)((double)len * 1e9 / f->speed);
	due = *busy + f->lag;
	if (f->burst && kind != MOCK_MESSAGE)
		due = (due + f->burst - 1) / f->burst * f->burst;
	return due;
}

void mock_stall(struct weft_lane_iface *iface, uint64_t ns)
{
	struct mock_iface *f = to_iface(iface), *g;
	struct mock_msg *m;
	struct mock_rma *r;

	for (unsigned int i = 0; i < 3; i++)
		f->busy[i] = (f->busy[i] > mock_now ? f->busy[i] : mock_now) + ns;
	TAILQ_FOREACH(r, &f->rmas, entry)
		r->due += ns;
	LIST_FOREACH(g, &mock_net.ifaces, entry)
		TAILQ_FOREACH(m, &g->inbox, entry)
			if (m->from && !m->from->unknown_sender && iface_of(m->from) == f)
				m->ready += ns;
}

uint64_t mock_moved(const struct weft_lane_iface *iface)
{
	return ((const struct mock_iface *)iface)->moved;
}
