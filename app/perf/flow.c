/* SPDX-License-Identifier: BSD-3-Clause */

#include "perf/flow.h"

#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

void perf_flow_init(struct perf_flow *f, struct perf_side *side)
{
	f->side = side;
	f->peer = side->peer;
	f->run = side->run;
	f->validate = side->run->flags & PERF_F_VALIDATE;
}

struct perf_slot *perf_flow_slots(struct perf_flow *f, unsigned int count, weft_complete_cb cb,
				  void *buffers, uint64_t stride, struct weft_mem *mem)
{
	struct perf_slot *slots = calloc(count, sizeof(*slots));

	for (unsigned int i = 0; slots && i < count; i++) {
		slots[i].flow = f;
		slots[i].buffer = (char *)buffers + i * stride;
		slots[i].params =
			WEFT_INIT(struct weft_op_params, .cb = cb, .cb_arg = &slots[i], .mem = mem);
	}
	return slots;
}

/* Write each byte once, so that the measurement includes no page faults. */
void *perf_flow_memory(uint64_t length, int value)
{
	void *memory;

	if (posix_memalign(&memory, 4096, length))
		return NULL;
	return memset(memory, value, length);
}

int perf_flow_register(const struct perf_flow *f, void *memory, uint64_t length,
		       struct weft_mem **mem)
{
	struct weft_mem_params params = WEFT_INIT(struct weft_mem_params);

	if (!(f->run->flags & PERF_F_REGISTERED))
		return 0;
	return weft_mem_register(f->peer->ctx, memory, length, &params, mem);
}

int perf_flow_finish(struct perf_flow *f, int ret, struct weft_request *req)
{
	while (ret == WEFT_INPROGRESS) {
		if (perf_flow_turn(f))
			break;
		ret = weft_request_test(req, NULL);
	}
	weft_request_free(req);
	if (ret < 0 && !f->error)
		f->error = ret;
	return ret ? -ECANCELED : 0;
}

int perf_flow_wait_more(struct perf_flow *f, uint64_t done)
{
	struct perf_side *s = f->side;

	if (perf_limit_look(s, done))
		return -ECANCELED;
	while (s->open && done >= s->total)
		if (perf_flow_turn(f) || perf_limit_look(s, done))
			return -ECANCELED;
	return done < s->total;
}

static int flush_one(struct perf_flow *f, struct weft_ep *ep)
{
	struct weft_request *req = NULL;
	int ret = weft_ep_flush(ep, NULL, &req);

	return perf_flow_finish(f, ret, req);
}

int perf_flow_flush(struct perf_flow *f)
{
	int ret = flush_one(f, f->peer->ep);

	for (unsigned int i = 0; !ret && i < f->peer->num_more; i++)
		ret = flush_one(f, f->peer->more[i]);
	return ret;
}

void perf_flow_stop(struct perf_flow *f)
{
	if (f->side->meter && !perf_is_latency(f->run->test))
		f->side->meter->last = rte_rdtsc();
}

void perf_flow_sent(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct perf_slot *slot = arg;

	(void)req;
	slot->busy = false;
	slot->flow->out--;
	if (c->status)
		slot->flow->error = c->status;
}
