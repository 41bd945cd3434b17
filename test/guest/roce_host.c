/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the behaviours of RoCE lanes share: two hosts, their clock, messages whose bytes can be
 * checked, and counters.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/host.h"
#include "roce_host.h"

struct host a, b;
const char *name_a, *name_b;
struct weft_lane_conf conf;

double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

void turn_host(struct host *h)
{
	if (!h->iface || h->asleep)
		return;
	h->iface->ops->progress(h->iface, weft_platform_host.now(weft_platform_host.arg));
	if (h->iface->tx_open)
		h->iface->ops->tx_flush(h->iface);
}

void turn(void)
{
	turn_host(&a);
	turn_host(&b);
}

void turn_for(double seconds)
{
	double end = now_s() + seconds;

	while (now_s() < end)
		turn();
}

uint8_t byte_of(uint32_t number, size_t at)
{
	return (uint8_t)(number * 131u + at * 7u + (at >> 8));
}

int on_recv(void *arg, struct weft_lane_ep *lane_ep, uint8_t am_id, const void *data, size_t length,
	    void *desc)
{
	struct host *h = arg;
	const uint8_t *p = data;
	uint32_t number, sender;
	size_t i;

	if (lane_ep->passive)
		h->passive = lane_ep;
	h->got++;
	h->bytes += length;
	h->last_len = length;
	if (length <= sizeof(h->last))
		memcpy(h->last, data, length);
	if (am_id == 5 && length >= 4) {
		memcpy(&number, p, 4);
		sender = number >> 24;
		if (sender >= MAX_SENDERS ||
		    (h->ordered && number != NUMBER(sender, h->next[sender])))
			h->wrong++;
		if (sender < MAX_SENDERS)
			h->next[sender] = (number & 0xffffff) + 1;
		for (i = 4; i < length; i++)
			h->wrong += p[i] != byte_of(number, i);
	}
	if (h->keep && desc && h->num_kept < MAX_KEPT) {
		h->kept[h->num_kept++] = desc;
		return WEFT_LANE_KEEP;
	}
	return 0;
}

void on_event(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev, int status,
	      const char *text)
{
	struct host *h = arg;

	if (lane_ep->passive)
		h->passive = lane_ep;
	h->up += ev == WEFT_LANE_EV_UP;
	h->down += ev == WEFT_LANE_EV_DOWN;
	h->gone += ev == WEFT_LANE_EV_GONE;
	h->status = status;
	snprintf(h->text, sizeof(h->text), "%s", text);
	if (ev != WEFT_LANE_EV_UP || h->up < 3)
		printf("# event %d, status %d: %s\n", (int)ev, status, text);
}

bool open_host(struct host *h, const struct weft_lane_driver *driver, const char *device,
	       const char *options)
{
	struct weft_lane_open params = {
		.resource = device,
		.options = options,
		.worker_id = 7,
		.platform = &weft_platform_host,
		.conf = &conf,
		.recv = on_recv,
		.event = on_event,
		.arg = h,
	};
	char why[320] = "";

	memset(h, 0, sizeof(*h));
	h->ordered = true;
	if (driver->open(&params, &h->iface, why, sizeof(why)) < 0) {
		printf("# %s\n", why);
		return false;
	}
	return true;
}

void close_host(struct host *h)
{
	if (h->iface)
		h->iface->ops->close(h->iface);
	h->iface = NULL;
}

bool connect_hosts(struct host *x, struct host *y)
{
	uint8_t dev_x[WEFT_LANE_ADDR_MAX], dev_y[WEFT_LANE_ADDR_MAX];
	uint8_t ep_x[WEFT_LANE_ADDR_MAX], ep_y[WEFT_LANE_ADDR_MAX];
	const struct weft_lane_ops *ops = x->iface->ops;
	size_t dev = x->iface->attr.dev_addr_len, ep = x->iface->attr.ep_addr_len;
	unsigned int up_x = x->up, up_y = y->up;
	double end = now_s() + 10;

	CHECK(ops->ep_create(x->iface, x, &x->lane_ep) == 0);
	CHECK(ops->ep_create(y->iface, y, &y->lane_ep) == 0);
	ops->get_address(x->iface, dev_x);
	ops->get_address(y->iface, dev_y);
	ops->ep_get_address(x->lane_ep, ep_x);
	ops->ep_get_address(y->lane_ep, ep_y);
	CHECK(ops->ep_connect_ep(x->lane_ep, dev_y, dev, ep_y, ep) == 0);
	CHECK(ops->ep_connect_ep(y->lane_ep, dev_x, dev, ep_x, ep) == 0);
	CHECK(!x->lane_ep->up);
	while ((x->up == up_x || y->up == up_y) && now_s() < end) {
		turn_host(x);
		turn_host(y);
	}
	CHECK(x->up > up_x && y->up > up_y);
	CHECK(x->lane_ep->up && y->lane_ep->up);
	return true;
}

bool connect_pair(void)
{
	return connect_hosts(&a, &b);
}

bool open_pair(const char *options)
{
	return open_host(&a, &weft_roce_driver, name_a, options) &&
	       open_host(&b, &weft_roce_driver, name_b, options) && connect_pair();
}

void op_done(struct weft_lane_comp *comp, int status)
{
	struct op *op = (struct op *)comp;

	op->done++;
	op->status = status;
}

void fill(uint8_t *dst, uint32_t number, size_t length)
{
	size_t i;

	memcpy(dst, &number, 4);
	for (i = 4; i < length; i++)
		dst[i] = byte_of(number, i);
}

ssize_t pack(void *dst, size_t max, void *arg)
{
	const struct message *m = arg;

	if (m->length > max)
		return -EMSGSIZE;
	fill(dst, m->number, m->length);
	return (ssize_t)m->length;
}

bool send_one(struct host *h, uint32_t number, size_t length)
{
	struct message m = {number, length};
	uint8_t buf[256];
	double end = now_s() + 20;
	ssize_t n;

	for (;;) {
		if (length <= h->iface->attr.max_short) {
			fill(buf, number, length);
			n = h->lane_ep->ops->am_short(h->lane_ep, 5, buf, 4, buf + 4, length - 4);
		} else {
			n = h->lane_ep->ops->am_bcopy(h->lane_ep, 5, pack, &m);
		}
		if (n != -EAGAIN || now_s() > end)
			break;
		turn();
	}
	if (n < 0)
		printf("# message %u of %zu bytes: %zd\n", number, length, n);
	return n >= 0;
}

static uint64_t counter_value;
static const char *counter_name;

static void on_counter(const char *name, uint64_t value, void *arg)
{
	(void)arg;
	if (strcmp(name, counter_name) == 0)
		counter_value = value;
}

uint64_t counter(struct host *h, const char *name)
{
	counter_name = name;
	counter_value = 0;
	h->iface->ops->counters(h->iface, on_counter, NULL);
	return counter_value;
}

int shell(const char *fmt, ...)
{
	char cmd[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	return system(cmd);
}

uint64_t kernel_counter(const char *device, const char *name)
{
	char path[160];
	unsigned long long v = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s", device,
		 name);
	f = fopen(path, "r");
	if (f && fscanf(f, "%llu", &v) != 1)
		v = 0;
	if (f)
		fclose(f);
	return v;
}

bool reg_mem(struct host *end, void *addr, size_t len, unsigned int access,
	     struct weft_mem_lane **reg)
{
	char why[256] = "";
	int rc =
		weft_roce_driver.mem_register(end->iface, addr, len, access, reg, why, sizeof(why));

	if (rc != 0)
		printf("# registering: %s (%d)\n", why, rc);
	return rc == 0;
}
