/* SPDX-License-Identifier: BSD-3-Clause */

/* The devices of fake/fake_verbs.h: what tests do to them, events, and how they are found. */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake/fake_priv.h"

/* The functions behind the header's macros. */
#undef ibv_query_port
#undef ibv_get_device_list

struct fake fake;
struct fake_qp *fake_qps[FAKE_QPS];
uint32_t fake_qps_end;

static LIST_HEAD(, fake_context) contexts = LIST_HEAD_INITIALIZER(contexts);
/* The driver's threads connect queue pairs while the test pumps. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fake_lock(void)
{
	pthread_mutex_lock(&lock);
}

void fake_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* ------------------------------------------------------------------ for tests */

void fake_reset(void)
{
	assert_int_equal(fake.alive.qps + fake.alive.cqs + fake.alive.srqs + fake.alive.mrs, 0);
	assert_int_equal(fake.alive.ahs + fake.alive.pds + fake.alive.contexts, 0);
	memset(&fake, 0, sizeof(fake));
	memset(fake_qps, 0, sizeof(fake_qps));
	fake_qps_end = 0;
	fake.memlock = UINT64_MAX;
	fake.now = 1;
}

void fake_gid_set(struct fake_device *d, unsigned int index, const uint8_t ipv4[4], bool v2)
{
	fake_lock();
	memset(&d->gids[index], 0, sizeof(d->gids[index]));
	d->gids[index].raw[10] = d->gids[index].raw[11] = 0xff;
	memcpy(d->gids[index].raw + 12, ipv4, 4);
	d->v1[index] = !v2;
	fake_unlock();
}

void fake_gid_clear(struct fake_device *d, unsigned int index)
{
	fake_lock();
	memset(&d->gids[index], 0, sizeof(d->gids[index]));
	fake_unlock();
}

struct fake_device *fake_device_add(const char *name, const uint8_t ipv4[4])
{
	struct fake_device *d = &fake.device[fake.num_devices++];

	snprintf(d->base.name, sizeof(d->base.name), "%s", name);
	d->base.node_type = IBV_NODE_CA;
	d->base.transport_type = IBV_TRANSPORT_IB;
	d->attr = (struct ibv_device_attr){
		.vendor_id = 0x2c9,
		.max_qp = 8192,
		.max_qp_wr = 4096,
		.max_sge = 30,
		.max_sge_rd = 30,
		.max_cq = 1024,
		.max_cqe = 65536,
		.max_srq = 64,
		.max_srq_wr = 32767,
		.max_srq_sge = 31,
		.max_qp_rd_atom = 16,
		.max_qp_init_rd_atom = 16,
		.atomic_cap = IBV_ATOMIC_HCA,
		.phys_port_cnt = 1,
	};
	d->port = (struct ibv_port_attr){
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = FAKE_GIDS,
		.max_msg_sz = 1u << 30,
		.active_speed = 32,
		.active_width = 2,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
	d->max_inline = 256;
	fake_gid_set(d, 0, ipv4, false);
	fake_gid_set(d, 1, ipv4, true);
	return d;
}

void fake_fail(enum fake_call call, unsigned int after, unsigned int times, int err)
{
	fake_lock();
	fake.fail[call] = (struct fake_fail){.after = after, .times = times, .err = err};
	fake_unlock();
}

int fake_fails(enum fake_call call)
{
	struct fake_fail *f = &fake.fail[call];

	fake.count.calls[call]++;
	if (f->times == 0)
		return 0;
	if (f->after > 0) {
		f->after--;
		return 0;
	}
	f->times--;
	return f->err;
}

/* ------------------------------------------------------------------ events */

void fake_event_push(struct ibv_context *ctx, const struct ibv_async_event *e)
{
	struct fake_context *c = (struct fake_context *)ctx;
	struct fake_event *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->e = *e;
	STAILQ_INSERT_TAIL(&c->events, f, link);
}

static void push_all(struct fake_device *d, const struct ibv_async_event *e)
{
	struct fake_context *c;

	LIST_FOREACH(c, &contexts, link)
		if (c->d == d)
			fake_event_push(&c->ctx, e);
}

void fake_event(struct fake_device *d, enum ibv_event_type type)
{
	struct ibv_async_event e = {.event_type = type, .element.port_num = 1};

	fake_lock();
	push_all(d, &e);
	fake_unlock();
}

void fake_event_qp(uint32_t qpn, enum ibv_event_type type)
{
	struct ibv_async_event e = {.event_type = type};
	struct fake_qp *qp;

	fake_lock();
	qp = fake_qp_find(qpn);
	assert_non_null(qp);
	if (type == IBV_EVENT_CQ_ERR)
		e.element.cq = qp->qp.send_cq;
	else if (type == IBV_EVENT_SRQ_ERR || type == IBV_EVENT_SRQ_LIMIT_REACHED)
		e.element.srq = qp->qp.srq;
	else
		e.element.qp = &qp->qp;
	fake_event_push(qp->qp.context, &e);
	fake_unlock();
}

void fake_remove(struct fake_device *d)
{
	fake_event(d, IBV_EVENT_DEVICE_FATAL);
	d->removed = true;
}

void fake_qp_break(uint32_t qpn)
{
	struct fake_qp *qp;

	fake_lock();
	qp = fake_qp_find(qpn);
	assert_non_null(qp);
	fake_qp_error(qp);
	fake_unlock();
	fake_event_qp(qpn, IBV_EVENT_QP_FATAL);
}

void fake_qp_lose_ack(uint32_t qpn)
{
	struct fake_qp *qp;

	fake_lock();
	qp = fake_qp_find(qpn);
	assert_non_null(qp);
	qp->lose_ack = true;
	fake_unlock();
}

enum ibv_qp_state fake_qp_state(uint32_t qpn)
{
	struct fake_qp *qp = fake_qp_find(qpn);

	return qp ? qp->qp.state : IBV_QPS_UNKNOWN;
}

uint32_t fake_qp_receives(uint32_t qpn)
{
	struct fake_qp *qp = fake_qp_find(qpn);

	assert_non_null(qp);
	return qp->qp.srq ? ((struct fake_srq *)qp->qp.srq)->rq.count : qp->rq.count;
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	struct fake_context *c = (struct fake_context *)ctx;
	struct fake_event *f;

	fake_lock();
	f = STAILQ_FIRST(&c->events);
	if (f) {
		STAILQ_REMOVE_HEAD(&c->events, link);
		*event = f->e;
		free(f);
	}
	fake_unlock();
	if (f)
		return 0;
	errno = EAGAIN;
	return -1;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

/* The kernel takes back what was not read. */
void fake_events_forget(const struct fake_qp *qp)
{
	struct fake_context *c = (struct fake_context *)qp->qp.context;
	struct fake_event *f, *next;

	for (f = STAILQ_FIRST(&c->events); f; f = next) {
		next = STAILQ_NEXT(f, link);
		if (f->e.element.qp != &qp->qp)
			continue;
		STAILQ_REMOVE(&c->events, f, fake_event, link);
		free(f);
	}
}

/* ------------------------------------------------------------------ devices */

struct ibv_device **ibv_get_device_list(int *num)
{
	struct ibv_device **list = calloc(FAKE_DEVICES + 1, sizeof(*list));
	unsigned int i, n = 0;

	assert_non_null(list);
	for (i = 0; i < fake.num_devices; i++)
		if (!fake.device[i].removed)
			list[n++] = &fake.device[i].base;
	if (num)
		*num = (int)n;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct fake_context *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->d = (struct fake_device *)device;
	c->ctx.device = device;
	c->ctx.async_fd = eventfd(0, 0);
	c->ctx.ops.poll_cq = fake_poll_cq;
	c->ctx.ops.req_notify_cq = fake_req_notify_cq;
	c->ctx.ops.post_send = fake_post_send;
	c->ctx.ops.post_recv = fake_post_recv;
	c->ctx.ops.post_srq_recv = fake_post_srq_recv;
	STAILQ_INIT(&c->events);
	fake_lock();
	LIST_INSERT_HEAD(&contexts, c, link);
	fake.alive.contexts++;
	fake_unlock();
	return &c->ctx;
}

int ibv_close_device(struct ibv_context *ctx)
{
	struct fake_context *c = (struct fake_context *)ctx;
	struct fake_event *f;

	fake_lock();
	while ((f = STAILQ_FIRST(&c->events))) {
		STAILQ_REMOVE_HEAD(&c->events, link);
		free(f);
	}
	LIST_REMOVE(c, link);
	fake.alive.contexts--;
	fake_unlock();
	close(ctx->async_fd);
	free(c);
	return 0;
}

struct fake_device *fake_device_of(struct ibv_context *ctx)
{
	return ((struct fake_context *)ctx)->d;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	*attr = fake_device_of(ctx)->attr;
	return fake_device_of(ctx)->removed ? EIO : 0;
}

int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct fake_device *d = fake_device_of(ctx);

	if (d->removed || port != 1)
		return d->removed ? EIO : EINVAL;
	/* The caller's is of the full size: the header's inline function says so. */
	memcpy(attr, &d->port, sizeof(d->port));
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	struct fake_device *d = fake_device_of(ctx);
	static const union ibv_gid none;

	(void)flags;
	if (d->removed || port != 1 || index >= FAKE_GIDS || size != sizeof(*entry))
		return EINVAL;
	fake_lock();
	*entry = (struct ibv_gid_entry){
		.gid = d->gids[index],
		.gid_index = index,
		.port_num = port,
		.gid_type = d->v1[index] ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2,
	};
	fake_unlock();
	return memcmp(&entry->gid, &none, sizeof(none)) == 0 ? ENODATA : 0;
}

const union ibv_gid *fake_gid_at(const struct fake_device *d, unsigned int index)
{
	static const union ibv_gid none;

	if (index >= FAKE_GIDS || memcmp(&d->gids[index], &none, sizeof(none)) == 0)
		return NULL;
	return &d->gids[index];
}

struct fake_device *fake_gid_owner(const union ibv_gid *gid)
{
	unsigned int i, k;

	for (i = 0; i < fake.num_devices; i++)
		for (k = 0; k < FAKE_GIDS; k++)
			if (memcmp(&fake.device[i].gids[k], gid, sizeof(*gid)) == 0)
				return &fake.device[i];
	return NULL;
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
	return state == IBV_PORT_ACTIVE ? "active" : "down";
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
	(void)event;
	return "event";
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_SUCCESS ? "success" : "error";
}
