/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a device reports by itself, and what becomes of lanes: every class of event, without a
 * device. The verbs calls that the driver makes here are the test's (linked with --wrap).
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "roce/roce.h"
#include "roce/roce_async.h"
#include "roce/roce_cq.h"

/* ------------------------------------------------------------------ the device */

static struct roce_dev dev;
static struct ibv_async_event queue[64];
static unsigned int queued, taken, acked;
static bool gid_gone;

int __wrap_ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event);
void __wrap_ibv_ack_async_event(struct ibv_async_event *event);
int __wrap__ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
			     struct ibv_gid_entry *entry, uint32_t flags, size_t size);

double __wrap_roce_dev_port_rate(const struct roce_dev *d, unsigned int port);

double __wrap_roce_dev_port_rate(const struct roce_dev *d, unsigned int port)
{
	assert_ptr_equal(d, &dev);
	return port == 2 ? 25e9 / 8 : 0;
}

int __wrap_ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	if (taken == queued) {
		errno = EAGAIN;
		return -1;
	}
	*event = queue[taken++];
	return 0;
}

void __wrap_ibv_ack_async_event(struct ibv_async_event *event)
{
	acked++;
}

int __wrap__ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
			     struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	memset(entry, 0, sizeof(*entry));
	if (!gid_gone)
		memcpy(entry->gid.raw, (const uint8_t[16]){[10] = 255, 255, 10, 0, 0, 1}, 16);
	return 0;
}

/*
 * ------------------------------------------------------------------ two workers' ifaces, a lane
 * each
 */

struct side {
	struct roce_iface *r;
	struct roce_lane_ep lane_ep;
	struct roce_chan chan;
	struct ibv_qp qp;
	unsigned int events;
	int status;
	char text[320];
	unsigned int iface_events;
	enum weft_lane_iface_event last;
	char iface_text[160];
};

static struct side sides[2];
static char cqs[2], srqs[2];

static void on_event(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev, int status,
		     const char *text)
{
	struct side *s = arg;

	assert_ptr_equal(lane_ep, &s->lane_ep.base);
	assert_int_equal(ev, WEFT_LANE_EV_DOWN);
	s->events++;
	s->status = status;
	snprintf(s->text, sizeof(s->text), "%s", text);
}

static void on_iface_event(void *arg, struct weft_lane_iface *iface, enum weft_lane_iface_event ev,
			   const char *text)
{
	struct side *s = arg;

	assert_ptr_equal(iface, &s->r->base);
	s->iface_events++;
	s->last = ev;
	snprintf(s->iface_text, sizeof(s->iface_text), "%s", text);
}

static int setup(void **state)
{
	int i;

	memset(&dev, 0, sizeof(dev));
	memset(sides, 0, sizeof(sides));
	queued = taken = acked = 0;
	gid_gone = false;
	snprintf(dev.name, sizeof(dev.name), "mlx5_0");
	pthread_mutex_init(&dev.lock, NULL);
	for (i = 0; i < 2; i++) {
		struct side *s = &sides[i];

		s->r = calloc(1, sizeof(*s->r));
		assert_non_null(s->r);
		s->r->dev = &dev;
		s->r->port = 1 + (unsigned int)i;
		s->r->cq = (struct ibv_cq *)&cqs[i];
		s->r->srq = (struct ibv_srq *)&srqs[i];
		s->r->event = on_event;
		s->r->iface_event = on_iface_event;
		s->r->arg = s;
		s->r->watched.up = true;
		s->r->now = 1000000000;
		s->r->give_up_ns = 1900000000;
		s->r->gid.index = 1;
		memcpy(s->r->gid.gid, (const uint8_t[16]){[10] = 255, 255, 10, 0, 0, 1}, 16);
		snprintf(s->r->name, sizeof(s->r->name), "roce:mlx5_0:%d", 1 + i);
		s->r->base.name = s->r->name;
		LIST_INIT(&s->r->lane_eps);
		s->lane_ep.base.iface = &s->r->base;
		s->lane_ep.state = ROCE_CREATED;
		snprintf(s->lane_ep.peer, sizeof(s->lane_ep.peer), "10.0.0.2");
		STAILQ_INIT(&s->lane_ep.flushes);
		LIST_INSERT_HEAD(&s->r->lane_eps, &s->lane_ep, link);
		s->qp.qp_num = 77 + (uint32_t)i;
		s->chan.qp = &s->qp;
		s->chan.lane_ep = &s->lane_ep;
		assert_int_equal(roce_chan_enter(s->r, &s->chan), 0);
		roce_watch_add(&dev, &s->r->watch, s->r->port);
	}
	return 0;
}

static int teardown(void **state)
{
	int i, k;

	for (i = 0; i < 2; i++) {
		roce_watch_remove(&dev, &sides[i].r->watch);
		for (k = 0; k < 4096; k++)
			free(sides[i].r->by_qpn[k]);
		free(sides[i].r);
	}
	pthread_mutex_destroy(&dev.lock);
	return 0;
}

static void report(enum ibv_event_type type, int side)
{
	struct ibv_async_event e = {.event_type = type};

	switch (type) {
	case IBV_EVENT_CQ_ERR:
		e.element.cq = sides[side].r->cq;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		e.element.srq = sides[side].r->srq;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		e.element.qp = &sides[side].qp;
		break;
	default:
		e.element.port_num = 1 + side;
		break;
	}
	queue[queued++] = e;
}

static void look(uint64_t later_ns)
{
	int i;

	for (i = 0; i < 2; i++) {
		sides[i].r->now += later_ns;
		sides[i].r->next_slow = 0;
		roce_slow(sides[i].r);
	}
}

/* ------------------------------------------------------------------ behaviours */

static void each_event_ends_the_lanes_it_concerns_with_a_sentence_and_no_others(void **state)
{
	static const struct {
		enum ibv_event_type type;
		int status; /* 0 = lanes live on */
		bool all;   /* of the device */
		const char *part;
	} cases[] = {
		{IBV_EVENT_QP_FATAL, -EIO, false, "queue pair failed"},
		{IBV_EVENT_QP_REQ_ERR, -EPROTO, false, "invalid request"},
		{IBV_EVENT_QP_ACCESS_ERR, -EPROTO, false, "no key"},
		{IBV_EVENT_CQ_ERR, -EIO, false, "kernel log"},
		{IBV_EVENT_SRQ_ERR, -EIO, false, "kernel log"},
		{IBV_EVENT_DEVICE_FATAL, -ENODEV, true, "kernel log"},
		{IBV_EVENT_COMM_EST, 0, false, ""},
		{IBV_EVENT_SQ_DRAINED, 0, false, ""},
		{IBV_EVENT_PATH_MIG, 0, false, ""},
		{IBV_EVENT_PATH_MIG_ERR, 0, false, ""},
		{IBV_EVENT_QP_LAST_WQE_REACHED, 0, false, ""},
		{IBV_EVENT_SRQ_LIMIT_REACHED, 0, false, ""},
		{IBV_EVENT_LID_CHANGE, 0, false, ""},
		{IBV_EVENT_PKEY_CHANGE, 0, false, ""},
		{IBV_EVENT_SM_CHANGE, 0, false, ""},
		{IBV_EVENT_CLIENT_REREGISTER, 0, false, ""},
		{IBV_EVENT_PORT_ACTIVE, 0, false, ""},
		{IBV_EVENT_PORT_ERR, 0, false, ""},   /* for a while */
		{IBV_EVENT_GID_CHANGE, 0, false, ""}, /* of another one */
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		teardown(state);
		setup(state);
		report(cases[i].type, 1);
		look(10000000);
		assert_int_equal(acked, 1);
		assert_int_equal(sides[1].status, cases[i].status);
		assert_int_equal(sides[1].events, cases[i].status != 0);
		assert_int_equal(sides[0].events, cases[i].all);
		if (cases[i].status) {
			assert_non_null(strstr(sides[1].text, "mlx5_0: "));
			assert_non_null(strstr(sides[1].text, "peer 10.0.0.2"));
			assert_non_null(strstr(sides[1].text, cases[i].part));
		}
	}
}

static void a_port_that_stays_down_ends_its_lanes_and_one_that_comes_back_does_not(void **state)
{
	report(IBV_EVENT_PORT_ERR, 0);
	report(IBV_EVENT_PORT_ERR, 1);
	look(10000000);
	report(IBV_EVENT_PORT_ACTIVE, 1);
	look(1000000000);
	assert_int_equal(sides[0].events + sides[1].events, 0);
	look(1000000000);
	assert_int_equal(sides[0].events, 1);
	assert_int_equal(sides[0].status, -ENETDOWN);
	assert_non_null(strstr(sides[0].text, "mlx5_0: port 1 has been down for 2.0 s"));
	assert_non_null(strstr(sides[0].text, "ip link"));
	assert_int_equal(sides[1].events, 0);
}

static void links_and_ends_of_devices_are_reported(void **state)
{
	report(IBV_EVENT_PORT_ERR, 1);
	look(10000000);
	assert_int_equal(sides[0].iface_events, 0);
	assert_int_equal(sides[1].iface_events, 1);
	assert_int_equal(sides[1].last, WEFT_LANE_IFACE_EV_LINK_DOWN);
	report(IBV_EVENT_PORT_ACTIVE, 1);
	look(10000000);
	assert_int_equal(sides[1].iface_events, 2);
	assert_int_equal(sides[1].last, WEFT_LANE_IFACE_EV_LINK_UP);
	/* It may have come back with another speed. */
	assert_string_equal(sides[1].iface_text, "25 Gb/s");
	assert_true(sides[1].r->base.attr.bandwidth > 3.1e9 &&
		    sides[1].r->base.attr.bandwidth < 3.2e9);
	report(IBV_EVENT_DEVICE_FATAL, 1);
	look(10000000);
	assert_int_equal(sides[0].last, WEFT_LANE_IFACE_EV_ENDED);
	assert_int_equal(sides[1].last, WEFT_LANE_IFACE_EV_ENDED);
	assert_non_null(strstr(sides[1].iface_text, "failed or was removed"));
}

static void an_address_that_vanishes_ends_the_lanes_of_its_port(void **state)
{
	gid_gone = true;
	report(IBV_EVENT_GID_CHANGE, 0);
	look(10000000);
	assert_int_equal(sides[0].events, 1);
	assert_int_equal(sides[0].status, -EADDRNOTAVAIL);
	assert_non_null(strstr(sides[0].text, "10.0.0.1 (GID 1) was removed"));
	assert_non_null(strstr(sides[0].text, "give it back"));
	assert_int_equal(sides[1].events, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(each_event_ends_the_lanes_it_concerns_with_a_sentence_and_no_others),
		T(links_and_ends_of_devices_are_reported),
		T(a_port_that_stays_down_ends_its_lanes_and_one_that_comes_back_does_not),
		T(an_address_that_vanishes_ends_the_lanes_of_its_port),
	};

	return cmocka_run_group_tests_name("RoCE, events of the device", tests, NULL, NULL);
}
