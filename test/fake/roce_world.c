/* SPDX-License-Identifier: BSD-3-Clause */

#include "fake/roce_world.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct rw_world rw;

static const struct weft_lane_conf base_conf = {
	.peer_timeout_ns = 2000000000,
	.connect_timeout_ns = 5000000000,
};

/* A thread that waits by the clock (close) sees it go on, and the devices work. */
static uint64_t world_now(void *arg)
{
	(void)arg;
	rw.now += RW_STEP_NS;
	fake_pump(rw.now);
	return rw.now;
}

static int world_random(void *arg, void *buf, size_t len)
{
	uint8_t *p = buf;

	(void)arg;
	while (len-- > 0) {
		rw.rng = rw.rng * 6364136223846793005u + 1442695040888963407u;
		*p++ = (uint8_t)(rw.rng >> 33);
	}
	return 0;
}

const struct weft_platform rw_platform = {.now = world_now, .random = world_random};

/* ------------------------------------------------------------------ what the lanes tell */

static uint8_t pattern(uint64_t number, size_t at)
{
	return (uint8_t)(number * 31 + at * 7 + (at >> 8));
}

static int on_recv(void *arg, struct weft_lane_ep *lane_ep, uint8_t am_id, const void *data,
		   size_t length, void *desc)
{
	struct rw_end *e = lane_ep->user;
	const uint8_t *p = data;
	uint64_t number;
	size_t i;

	(void)arg;
	if (!e)
		return 0;
	if (am_id != 5 || length < sizeof(number)) {
		e->wrong = true;
		return 0;
	}
	memcpy(&number, p, sizeof(number));
	e->wrong = e->wrong || number != e->received;
	for (i = sizeof(number); i < length; i++)
		e->wrong = e->wrong || p[i] != pattern(number, i);
	e->received++;
	e->bytes += length;
	if (!desc || e->num_kept == e->keep_max)
		return 0;
	e->kept[e->num_kept++] = desc;
	return WEFT_LANE_KEEP;
}

static void on_event(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev, int status,
		     const char *text)
{
	struct rw_end *e = lane_ep->user;
	struct rw_iface *f = arg;

	f->events++;
	if (!e) {
		if (ev == WEFT_LANE_EV_UP)
			f->accepted = lane_ep;
		return;
	}
	e->ups += ev == WEFT_LANE_EV_UP;
	e->downs += ev == WEFT_LANE_EV_DOWN;
	e->gones += ev == WEFT_LANE_EV_GONE;
	e->suspects += ev == WEFT_LANE_EV_SUSPECT;
	if (ev == WEFT_LANE_EV_SUSPECT && status < 0 && e->stops)
		rw_stop(e);
	e->status = status;
	snprintf(e->text, sizeof(e->text), "%s", text);
}

static void comp_done(struct weft_lane_comp *base, int status)
{
	struct rw_comp *c = (struct rw_comp *)base;

	c->done++;
	c->status = status;
}

struct rw_comp rw_comp(void)
{
	return (struct rw_comp){.base = {.done = comp_done}};
}

/* ------------------------------------------------------------------ the world */

int rw_setup(void **state)
{
	(void)state;
	memset(&rw, 0, sizeof(rw));
	rw.now = 1000000000;
	rw.rng = 42;
	fake_reset();
	fake_device_add("mlx5_0", (const uint8_t[]){10, 0, 0, 1});
	fake_device_add("mlx5_1", (const uint8_t[]){10, 0, 0, 2});
	return 0;
}

int rw_teardown(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < rw.num_ifaces; i++)
		rw_close(&rw.ifaces[i]);
	assert_int_equal(fake.alive.qps, 0);
	assert_int_equal(fake.alive.cqs, 0);
	assert_int_equal(fake.alive.srqs, 0);
	assert_int_equal(fake.alive.mrs, 0);
	assert_int_equal(fake.alive.ahs, 0);
	assert_int_equal(fake.alive.pds, 0);
	assert_int_equal(fake.alive.contexts, 0);
	assert_int_equal(fake.count.ah_in_use, 0);
	assert_int_equal(fake.count.cq_overrun, 0);
	return 0;
}

int rw_try_open(const struct weft_lane_driver *driver, const char *resource, const char *options,
		unsigned int rx_bufs, struct rw_iface **out, char *why, size_t why_len)
{
	struct rw_iface *f = &rw.ifaces[rw.num_ifaces];
	struct weft_lane_conf conf = base_conf;
	struct weft_lane_open params = {
		.resource = resource,
		.options = options,
		.worker_id = rw.num_ifaces + 1,
		.platform = &rw_platform,
		.conf = &conf,
		.recv = on_recv,
		.event = on_event,
		.arg = f,
	};
	int rc;

	assert_true(rw.num_ifaces < RW_IFACES);
	conf.rx_bufs = rx_bufs;
	memset(f, 0, sizeof(*f));
	rc = driver->open(&params, &f->lane, why, why_len);
	if (rc < 0)
		return rc;
	rw.num_ifaces++;
	*out = f;
	return 0;
}

struct rw_iface *rw_open(const struct weft_lane_driver *driver, const char *resource,
			 const char *options, unsigned int rx_bufs)
{
	struct rw_iface *f = NULL;
	char why[320] = "";

	if (rw_try_open(driver, resource, options, rx_bufs, &f, why, sizeof(why)) < 0)
		fail_msg("%s: %s", resource, why);
	return f;
}

void rw_close(struct rw_iface *f)
{
	if (f->lane)
		f->lane->ops->close(f->lane);
	f->lane = NULL;
}

struct want {
	const char *name;
	uint64_t value;
	bool found;
};

static void look_counter(const char *name, uint64_t value, void *arg)
{
	struct want *w = arg;

	if (strcmp(name, w->name) != 0)
		return;
	w->value = value;
	w->found = true;
}

uint64_t rw_counter(struct rw_iface *f, const char *name)
{
	struct want w = {.name = name};

	f->lane->ops->counters(f->lane, look_counter, &w);
	assert_true(w.found);
	return w.value;
}

void rw_turn(void)
{
	unsigned int i;

	fake_pump(rw.now);
	for (i = 0; i < rw.num_ifaces; i++) {
		struct rw_iface *f = &rw.ifaces[i];

		if (!f->lane || f->still)
			continue;
		f->lane->ops->progress(f->lane, rw.now);
		if (f->lane->tx_open)
			f->lane->ops->tx_flush(f->lane);
	}
	fake_pump(rw.now);
}

void rw_run(uint64_t ns)
{
	uint64_t end = rw.now + ns;

	while (rw.now < end) {
		rw.now += RW_STEP_NS;
		rw_turn();
	}
}

/* ------------------------------------------------------------------ lanes */

void rw_create(struct rw_iface *f, struct rw_end *e)
{
	memset(e, 0, sizeof(*e));
	e->iface = f;
	assert_int_equal(f->lane->ops->ep_create(f->lane, e, &e->lane_ep), 0);
}

int rw_connect_to(struct rw_end *e, struct rw_end *peer)
{
	uint8_t dev[WEFT_LANE_ADDR_MAX], ep[WEFT_LANE_ADDR_MAX];

	peer->iface->lane->ops->get_address(peer->iface->lane, dev);
	peer->lane_ep->ops->ep_get_address(peer->lane_ep, ep);
	return e->lane_ep->ops->ep_connect_ep(e->lane_ep, dev, peer->iface->lane->attr.dev_addr_len,
					      ep, peer->iface->lane->attr.ep_addr_len);
}

void rw_wait_up(struct rw_end *e)
{
	time_t end = time(NULL) + 20;
	unsigned int polls = 0;

	while (e->ups + e->downs + e->gones == 0) {
		assert_true(time(NULL) < end);
		e->iface->lane->ops->progress(e->iface->lane, rw.now);
		if (++polls % 64 == 0)
			sched_yield();
	}
}

void rw_connect(struct rw_iface *f, struct rw_iface *g, struct rw_end *a, struct rw_end *b)
{
	rw_create(f, a);
	rw_create(g, b);
	assert_int_equal(rw_connect_to(a, b), 0);
	assert_int_equal(rw_connect_to(b, a), 0);
	rw_wait_up(a);
	rw_wait_up(b);
	assert_int_equal(a->ups, 1);
	assert_int_equal(b->ups, 1);
}

void rw_destroy(struct rw_end *e)
{
	e->lane_ep->ops->ep_destroy(e->lane_ep);
	e->lane_ep = NULL;
}

void rw_stop(struct rw_end *e)
{
	e->state_len = e->lane_ep->ops->ep_quiesce(e->lane_ep, e->state);
	assert_true(e->state_len > 0);
}

struct packing {
	uint64_t number;
	size_t length;
};

static ssize_t pack(void *dst, size_t max, void *arg)
{
	struct packing *p = arg;
	uint8_t *out = dst;
	size_t i;

	if (p->length > max)
		return -EMSGSIZE;
	memcpy(out, &p->number, sizeof(p->number));
	for (i = sizeof(p->number); i < p->length; i++)
		out[i] = pattern(p->number, i);
	return (ssize_t)p->length;
}

int rw_send(struct rw_end *e, size_t length)
{
	struct packing p = {.number = e->sent, .length = length};
	uint8_t buf[256];
	ssize_t rc;

	if (length <= e->iface->lane->attr.max_short && length <= sizeof(buf)) {
		pack(buf, sizeof(buf), &p);
		rc = e->lane_ep->ops->am_short(e->lane_ep, 5, buf, 8, buf + 8, length - 8);
	} else {
		rc = e->lane_ep->ops->am_bcopy(e->lane_ep, 5, pack, &p);
	}
	if (rc < 0)
		return (int)rc;
	e->sent++;
	return 0;
}

void rw_release_kept(struct rw_end *e)
{
	struct weft_lane_iface *lane = e->iface->lane;

	while (e->num_kept > 0)
		lane->ops->release(lane, e->kept[--e->num_kept]);
}
