/* SPDX-License-Identifier: BSD-3-Clause */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "dispatch.h"
#include "mem/mem.h"
#include "mock/in_place.h"
#include "mock/pair.h"

/* ------------------------------------------------------------------ lanes */

static bool take_room(struct pair_lane_ep *l)
{
	if (l->room == 0)
		return false;
	if (l->room > 0)
		l->room--;
	return true;
}

static uint8_t *add(struct pair_lane_ep *l, uint8_t id, size_t length, struct weft_lane_comp *comp)
{
	struct pair *p = l->pair;
	struct pair_msg *m;

	p->sent++;
	if (p->num == p->cap) {
		p->cap = p->cap ? p->cap * 2 : 64;
		p->msgs = realloc(p->msgs, p->cap * sizeof(*p->msgs));
		assert_non_null(p->msgs);
	}
	m = &p->msgs[p->num++];
	*m = (struct pair_msg){!l->side, l->lane, id,   malloc(length ? length : 1),
			       length,   comp,    false};
	l->base.queued += (uint32_t)length;
	return m->data;
}

static int fake_short(struct weft_lane_ep *lane_ep, uint8_t id, const void *hdr, size_t hdr_len,
		      const void *payload, size_t length)
{
	struct pair_lane_ep *l = (struct pair_lane_ep *)lane_ep;
	uint8_t *d;

	if (l->pair->null) {
		static uint8_t sink[512];

		memcpy(sink, hdr, hdr_len);
		if (length)
			memcpy(sink + hdr_len, payload, length);
		l->pair->sent++;
		return 0;
	}
	assert_true(hdr_len + length <= lane_ep->iface->attr.max_short);
	if (!take_room(l))
		return -EAGAIN;
	d = add(l, id, hdr_len + length, NULL);
	memcpy(d, hdr, hdr_len);
	if (length)
		memcpy(d + hdr_len, payload, length);
	return 0;
}

static ssize_t fake_bcopy(struct weft_lane_ep *lane_ep, uint8_t id, weft_lane_pack_cb pack,
			  void *arg)
{
	struct pair_lane_ep *l = (struct pair_lane_ep *)lane_ep;
	size_t max = lane_ep->iface->attr.max_bcopy;
	uint8_t *buf;
	ssize_t n;

	assert_true(max > 0);
	if (l->room == 0)
		return -EAGAIN;
	buf = malloc(max);
	n = pack(buf, max, arg);
	if (n > 0) {
		take_room(l);
		memcpy(add(l, id, (size_t)n, NULL), buf, (size_t)n);
	}
	free(buf);
	return n;
}

static int fake_zcopy(struct weft_lane_ep *lane_ep, uint8_t id, const void *hdr, size_t hdr_len,
		      const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		      struct weft_lane_comp *comp)
{
	struct pair_lane_ep *l = (struct pair_lane_ep *)lane_ep;
	size_t length = hdr_len;
	uint8_t *d;

	assert_true(iovcnt <= lane_ep->iface->attr.max_iov);
	if (lane_ep->iface->attr.features & WEFT_LANE_F_ZCOPY_REG)
		assert_non_null(mem);
	for (unsigned int i = 0; i < iovcnt; i++)
		length += iov[i].iov_len;
	assert_true(length <= lane_ep->iface->attr.max_zcopy);
	if (!take_room(l))
		return -EAGAIN;
	d = add(l, id, length, comp);
	memcpy(d, hdr, hdr_len);
	d += hdr_len;
	for (unsigned int i = 0; i < iovcnt; i++) {
		memcpy(d, iov[i].iov_base, iov[i].iov_len);
		d += iov[i].iov_len;
	}
	return 0;
}

static int fake_flush(struct weft_lane_ep *lane_ep, struct weft_lane_comp *comp)
{
	struct pair_lane_ep *l = (struct pair_lane_ep *)lane_ep;

	if (lane_ep->queued == 0)
		return WEFT_LANE_IDLE;
	if (l->num_flush == PAIR_FLUSHES)
		return -EAGAIN;
	l->flush[l->num_flush++] = comp;
	return 0;
}

static const struct weft_lane_ops fake_ops = {
	.am_short = fake_short,
	.am_bcopy = fake_bcopy,
	.am_zcopy = fake_zcopy,
	.ep_flush = fake_flush,
};

/* ------------------------------------------------------------------ delivery */

void pair_receive(struct pair *p, unsigned int to, unsigned int lane, uint8_t id, const void *data,
		  size_t length)
{
	if (!p->ep[to].msg ||
	    mock_in_place(weft_worker_recv_in_place, &p->lane_ep[to][lane].base, id, data, length))
		return;
	weft_msg_recv(&p->ep[to], lane, id, data, length);
}

/* The data is an allocation of its own, so that reading past its end is seen. */
static void hand_over(struct pair *p, const struct pair_msg *m)
{
	pair_receive(p, m->to, m->lane, m->id, m->data, m->length);
}

void pair_deliver_copy(struct pair *p, size_t i)
{
	hand_over(p, &p->msgs[i]);
}

void pair_drop(struct pair *p, size_t i)
{
	free(p->msgs[i].data);
	memmove(&p->msgs[i], &p->msgs[i + 1], (p->num - i - 1) * sizeof(*p->msgs));
	p->num--;
}

void pair_flushed(struct pair_lane_ep *l, int status)
{
	struct weft_lane_comp *flush[PAIR_FLUSHES];
	unsigned int n = l->num_flush;

	memcpy(flush, l->flush, sizeof(flush));
	l->num_flush = 0;
	for (unsigned int i = 0; i < n; i++)
		flush[i]->done(flush[i], status);
}

void pair_deliver(struct pair *p, size_t i)
{
	struct pair_msg m = p->msgs[i];
	struct pair_lane_ep *from = &p->lane_ep[!m.to][m.lane];

	memmove(&p->msgs[i], &p->msgs[i + 1], (p->num - i - 1) * sizeof(*p->msgs));
	p->num--;
	hand_over(p, &m);
	free(m.data);
	from->base.queued -= (uint32_t)m.length;
	if (m.comp)
		m.comp->done(m.comp, 0);
	if (from->base.queued == 0)
		pair_flushed(from, 0);
}

void pair_progress(struct pair *p)
{
	for (int s = 0; s < 2; s++)
		weft_msg_progress(&p->w[s]);
}

void pair_run(struct pair *p)
{
	for (int idle = 0; idle < 3; idle++) {
		while (p->num) {
			pair_deliver(p, 0);
			idle = 0;
		}
		pair_progress(p);
		if (p->num)
			idle = 0;
	}
}

void pair_run_random(struct pair *p, uint64_t *seed)
{
	for (int idle = 0; idle < 3; idle++) {
		while (p->num) {
			pair_deliver(p, pair_random(seed) % p->num);
			if (pair_random(seed) % 8 == 0)
				pair_progress(p);
			idle = 0;
		}
		pair_progress(p);
		if (p->num)
			idle = 0;
	}
}

size_t pair_count(const struct pair *p, unsigned int to, uint8_t id)
{
	size_t n = 0;

	for (size_t i = 0; i < p->num; i++)
		n += p->msgs[i].to == to && (!id || p->msgs[i].id == id);
	return n;
}

void pair_room(struct pair *p, unsigned int side, int room)
{
	for (unsigned int i = 0; i < p->num_lanes; i++)
		p->lane_ep[side][i].room = room;
}

/* ------------------------------------------------------------------ life */

void pair_defaults(struct pair *p)
{
	weft_log_level = WEFT_LOG_ERROR; /* messages left over on purpose are warned about */
	memset(p, 0, sizeof(*p));
	p->conf = (struct weft_conf){
		.rndv_thresh = WEFT_CONF_AUTO,
		.rndv_perf_diff = 1,
		.zcopy_thresh = 512,
		.multi_eager_limit = 8192,
		.max_eager_lanes = 4,
		.max_rndv_lanes = 4,
		.min_chunk = 64,
		.unexp_limit = 64u << 20,
		.eager_credit = 1u << 20,
		.seq_start = 0,
		.rndv_min_piece = 512,
		.rndv_window = 6000, /* several pieces per lane, several pulls per message */
		.rndv_limit = 64u << 10,
		.rma_max_gets = 64,
		.lane.zcopy = true,
	};
}

static void open_lane(struct pair *p, unsigned int side, unsigned int i,
		      const struct pair_lane_params *lp)
{
	struct pair_iface *f = &p->iface[side][i];
	struct pair_lane_ep *l = &p->lane_ep[side][i];

	f->pair = p;
	f->base.ops = &fake_ops;
	f->base.name = f->base.note = "";
	f->base.attr = (struct weft_lane_attr){
		.device = "",
		.domain = "",
		.features = (lp->max_short ? WEFT_LANE_F_SHORT : 0) |
			    (lp->max_bcopy ? WEFT_LANE_F_BCOPY : 0) |
			    (lp->max_zcopy ? WEFT_LANE_F_ZCOPY : 0) |
			    (lp->zcopy_reg ? WEFT_LANE_F_ZCOPY_REG : 0),
		.max_short = lp->max_short,
		.max_bcopy = lp->max_bcopy,
		.max_zcopy = lp->max_zcopy,
		.max_zcopy_hdr = 64,
		.min_zcopy = lp->min_zcopy,
		.max_iov = lp->max_iov ? (unsigned int)lp->max_iov : 4,
		.opt_align = lp->align ? lp->align : 1,
	};
	*l = (struct pair_lane_ep){.pair = p, .side = side, .lane = i, .room = -1};
	l->base.iface = &f->base;
	l->base.user = &p->ep[side];
	l->base.ops = &fake_ops;
	l->base.up = true;
	l->base.tx_room = true;
	l->base.index = (uint8_t)i;
	p->ep[side].lanes[i] = (struct weft_ep_lane){
		.lane_ep = &l->base,
		.up = true,
		.bandwidth = lp->bandwidth ? lp->bandwidth : 1e9,
		.latency = lp->latency ? lp->latency : 1e-6,
	};
}

static int platform_random(void *arg, void *buf, size_t len)
{
	(void)arg;
	memset(buf, 0x5a, len);
	return 0;
}

static const struct weft_platform platform = {.random = platform_random};

static void ep_failed(struct weft_ep *ep, int status, const char *why)
{
	struct pair *p = ep->user_data;

	(void)why;
	pair_fail(p, ep == &p->ep[1], status);
}

static const struct weft_ep_events ep_events = {.fail = ep_failed, .fail_later = ep_failed};

void pair_open_unconnected(struct pair *p, unsigned int num_lanes,
			   const struct pair_lane_params *lanes)
{
	static const struct pair_lane_params one = {.max_short = 256, .max_bcopy = 1024};

	p->num_lanes = num_lanes;
	p->ctx.conf = &p->conf;
	p->ctx.platform = &platform;
	p->ctx.pid = getpid();
	if (!p->ctx.tables)
		p->ctx.tables = &weft_tables;
	for (unsigned int s = 0; s < 2; s++) {
		struct weft_ep *ep = &p->ep[s];

		p->w[s].ctx = &p->ctx;
		p->w[s].ep_events = &ep_events;
		p->w[s].id = s + 1;
		p->table[s][0] = ep;
		p->w[s].ep_table = p->table[s];
		p->w[s].ep_table_size = 1;
		assert_int_equal(weft_msg_worker_init(&p->w[s]), 0);
		ep->worker = &p->w[s];
		ep->lanes = p->lanes[s];
		ep->lane_info = p->info[s];
		ep->lane_room = num_lanes > 1 ? WEFT_MAX_LANES : 1;
		ep->owned = true;
		ep->generation = 1;
		ep->remote_id = !s + 1;
		ep->num_lanes = (uint8_t)num_lanes;
		ep->user_data = p;
		for (unsigned int i = 0; i < num_lanes; i++)
			open_lane(p, s, i, lanes ? &lanes[i] : &one);
		assert_int_equal(weft_msg_ep_init(ep), 0);
	}
}

void pair_connect(struct pair *p)
{
	struct weft_wire_credit c[2];

	for (unsigned int s = 0; s < 2; s++)
		weft_msg_ep_grant(&p->ep[s], &c[s]);
	for (unsigned int s = 0; s < 2; s++) {
		p->ep[s].state = WEFT_EP_UP;
		p->ep[s].lanes_up = (uint16_t)((1u << p->num_lanes) - 1);
		weft_msg_ep_connected(&p->ep[s], &c[!s]);
	}
}

void pair_open(struct pair *p, unsigned int num_lanes, const struct pair_lane_params *lanes)
{
	pair_open_unconnected(p, num_lanes, lanes);
	pair_connect(p);
}

/* What lanes still hold ends as in ops->ep_destroy(). */
static void drop_all(struct pair *p)
{
	for (unsigned int s = 0; s < 2; s++)
		for (unsigned int i = 0; i < p->num_lanes; i++)
			pair_flushed(&p->lane_ep[s][i], -ECANCELED);
	while (p->num) {
		struct weft_lane_comp *comp = p->msgs[0].comp;

		pair_drop(p, 0);
		if (comp)
			comp->done(comp, -ECANCELED);
	}
}

void pair_close(struct pair *p)
{
	for (unsigned int s = 0; s < 2; s++) {
		if (p->ep[s].msg)
			weft_msg_ep_fini(&p->ep[s], -ECANCELED);
		p->table[s][0] = NULL;
	}
	drop_all(p);
	for (unsigned int s = 0; s < 2; s++) {
		weft_msg_worker_stop(&p->w[s]);
		weft_msg_worker_fini(&p->w[s]);
	}
	free(p->msgs);
	memset(p, 0, sizeof(*p));
	p->ctx.pid = getpid(); /* or what is deregistered after this would stay */
}

void pair_fail(struct pair *p, unsigned int side, int status)
{
	p->ep[side].state = WEFT_EP_FAILED;
	p->ep[side].status = status;
	p->fail_status[side] = status;
	weft_msg_ep_failed(&p->ep[side], status);
}

/* Memory's, where it is not linked. */
__attribute__((weak)) struct weft_mem_lane *weft_mem_lane_of(const struct weft_mem *mem,
							     const struct weft_lane_iface *iface)
{
	/* A registration covers all of the pair's lanes. */
	return mem->address;
}
