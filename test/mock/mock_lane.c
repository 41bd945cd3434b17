/* SPDX-License-Identifier: BSD-3-Clause */

#include <sys/eventfd.h>
#include <unistd.h>

#include "mock/mock_priv.h"

struct mock_net mock_net;
uint64_t mock_now, mock_features;

uint64_t mock_rnd(void)
{
	mock_net.rng ^= mock_net.rng << 13;
	mock_net.rng ^= mock_net.rng >> 7;
	mock_net.rng ^= mock_net.rng << 17;
	return mock_net.rng;
}

static uint64_t platform_now(void *arg)
{
	(void)arg;
	return mock_now;
}

static int platform_random(void *arg, void *buf, size_t len)
{
	uint8_t *p = buf;

	(void)arg;
	while (len-- > 0)
		*p++ = (uint8_t)(mock_rnd() >> 24);
	return 0;
}

const struct weft_platform mock_platform = {.now = platform_now, .random = platform_random};

/* ------------------------------------------------------------------ calls */

static unsigned int mock_progress(struct weft_lane_iface *base, uint64_t now_ns)
{
	struct mock_iface *f = to_iface(base);
	unsigned int events = 0;

	assert_true(now_ns == mock_now);
	assert_false(f->in_progress);
	f->in_progress = true;
	mock_free_zombies(f);
	mock_answer_connects(f);
	while (mock_run_event(f))
		events++;
	events += mock_run_inbox(f);
	mock_run_rmas(f);
	events += mock_run_done(f);
	while (mock_run_event(f))
		events++;
	f->in_progress = false;
	return events;
}

static void mock_tx_flush(struct weft_lane_iface *base)
{
	(void)base;
}

static void mock_get_address(struct weft_lane_iface *base, void *buf)
{
	struct mock_iface *f = to_iface(base);
	uint8_t *p = buf;

	memset(p, 0, 16);
	memcpy(p, &f->id, 8);
	memcpy(p + 8, &f->net, 4);
}

static void mock_boot_pack(struct weft_lane_iface *base, struct weft_lane_boot *boot)
{
	uint8_t addr[16];

	mock_get_address(base, addr);
	boot->length = 12;
	memcpy(boot->bytes, addr, 12);
}

static int mock_boot_unpack(struct weft_lane_iface *base, const struct weft_lane_boot *boot,
			    uint64_t iface_id, void *addr)
{
	(void)base;
	(void)iface_id;
	if (boot->length != 12 || boot->variant != 0)
		return -EINVAL;
	memset(addr, 0, 16);
	memcpy(addr, boot->bytes, 12);
	return 0;
}

static const struct weft_lane_boot_ops mock_boot_ops = {
	.kind = WEFT_LANE_BOOT_OTHER,
	.pack = mock_boot_pack,
	.unpack = mock_boot_unpack,
};

static int mock_is_reachable(struct weft_lane_iface *base, const void *addr, size_t len, char *why,
			     size_t why_len)
{
	uint32_t other;

	if (len != 16) {
		snprintf(why, why_len, "bad address");
		return -EINVAL;
	}
	memcpy(&other, (const char *)addr + 8, 4);
	if (other == to_iface(base)->net)
		return 0;
	snprintf(why, why_len, "net %u here, net %u there", to_iface(base)->net, other);
	return -EHOSTUNREACH;
}

static void mock_print_address(const void *addr, size_t len, char *buf, size_t size)
{
	uint64_t id = 0;

	memcpy(&id, addr, len < 8 ? len : 8);
	snprintf(buf, size, "mock-%llu", (unsigned long long)id);
}

static bool mock_link_up(struct weft_lane_iface *base)
{
	return !to_iface(base)->down;
}

static void mock_ep_print(struct weft_lane_ep *base, char *buf, size_t size)
{
	snprintf(buf, size, "mock lane_ep, %u outstanding", to_lane_ep(base)->outstanding);
}

static void mock_counters(struct weft_lane_iface *base, weft_lane_counter_cb cb, void *arg)
{
	cb("tx.messages", to_iface(base)->tx, arg);
	cb("rx.messages", to_iface(base)->rx, arg);
}

static void mock_close(struct weft_lane_iface *base)
{
	struct mock_iface *f = to_iface(base);
	struct mock_msg *m;

	while (!LIST_EMPTY(&f->lane_eps))
		mock_ep_destroy(&LIST_FIRST(&f->lane_eps)->base);
	mock_run_done(f);
	while ((m = TAILQ_FIRST(&f->inbox))) {
		TAILQ_REMOVE(&f->inbox, m, entry);
		mock_settle(m, -ECONNRESET);
		mock_msg_free(m);
	}
	mock_free_zombies(f);
	LIST_REMOVE(f, entry);
	mock_net.num_ifaces--;
	if (f->wake >= 0)
		close(f->wake);
	free(f);
}

const struct weft_lane_ops mock_ops = {
	.am_short = mock_am_short,
	.am_bcopy = mock_am_bcopy,
	.am_zcopy = mock_am_zcopy,
	.get_zcopy = mock_get_zcopy,
	.put_zcopy = mock_put_zcopy,
	.amo64 = mock_amo64,
	.tx_flush = mock_tx_flush,
	.progress = mock_progress,
	.release = mock_give_back,
	.ep_connect = mock_ep_connect,
	.ep_destroy = mock_ep_destroy,
	.ep_flush = mock_ep_flush,
	.ep_is_from = mock_ep_is_from,
	.ep_host = mock_ep_host,
	.ep_check = mock_ep_check,
	.get_address = mock_get_address,
	.is_reachable = mock_is_reachable,
	.print_address = mock_print_address,
	.link_up = mock_link_up,
	.ep_print = mock_ep_print,
	.wait_fd = mock_wait_fd,
	.arm = mock_arm,
	.disarm = mock_disarm,
	.counters = mock_counters,
	.close = mock_close,
};

/* ------------------------------------------------------------------ driver */

static int mock_query(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg)
{
	char name[8];
	int i, rc = 0;

	(void)conf;
	for (i = 0; i < 16 && rc == 0; i++) {
		snprintf(name, sizeof(name), "%d", i);
		rc = add(arg, &(struct weft_lane_resource){.name = name});
	}
	return rc;
}

/* Value of "name=value" or of the bare "name" in @p options; NULL = not there. */
static const char *option(const char *options, const char *name, char *buf, size_t size)
{
	size_t n = strlen(name), k;

	for (; *options != '\0'; options += k + (options[k] == ',')) {
		k = strcspn(options, ",");
		if (strncmp(options, name, n) != 0 || (options[n] != '=' && n != k))
			continue;
		snprintf(buf, size, "%.*s", n == k ? 0 : (int)(k - n - 1), options + n + (n != k));
		return buf;
	}
	return NULL;
}

static double number(const char *options, const char *name, double def)
{
	char buf[64];

	return option(options, name, buf, sizeof(buf)) ? atof(buf) : def;
}

static void set_attr(struct mock_iface *f, const char *o)
{
	struct weft_lane_attr *a = &f->base.attr;
	char buf[64];

	a->max_short = (size_t)number(o, "short", 256);
	a->max_bcopy = (size_t)number(o, "bcopy", 4096);
	a->max_zcopy = (size_t)number(o, "zcopy", 16384);
	a->max_zcopy_hdr = a->max_zcopy < 128 ? a->max_zcopy : 128;
	a->max_iov = (unsigned int)number(o, "iov", 8);
	a->opt_align = (size_t)number(o, "align", 1);
	a->bandwidth = number(o, "bw", 1e9);
	a->latency = number(o, "lat", 1e-6);
	a->send_overhead = number(o, "so", 1e-7);
	a->recv_overhead = number(o, "ro", 1e-7);
	a->frame_size = 9000;
	a->max_get = (size_t)number(o, "get", number(o, "native", 0));
	a->max_put = (size_t)number(o, "put", number(o, "native", 0));
	a->max_rma_iov = (unsigned int)number(o, "rmaiov", 1);
	a->dev_addr_len = 16;
	a->features =
		(a->max_short ? WEFT_LANE_F_SHORT : 0) | (a->max_bcopy ? WEFT_LANE_F_BCOPY : 0) |
		(a->max_zcopy ? WEFT_LANE_F_ZCOPY : 0) |
		(option(o, "noboot", buf, sizeof(buf)) ? WEFT_LANE_F_TO_EP : WEFT_LANE_F_TO_IFACE) |
		(option(o, "reg", buf, sizeof(buf)) ? WEFT_LANE_F_ZCOPY_REG : 0) |
		(option(o, "native", buf, sizeof(buf)) ? WEFT_LANE_F_AMO64 : 0) |
		(a->max_get ? WEFT_LANE_F_GET : 0) | (a->max_put ? WEFT_LANE_F_PUT : 0);
	if (!option(o, "dev", f->device, sizeof(f->device)))
		snprintf(f->device, sizeof(f->device), "mock-%llu", (unsigned long long)f->id);
	if (!option(o, "dom", f->domain, sizeof(f->domain)))
		snprintf(f->domain, sizeof(f->domain), "mock");
	a->device = f->device;
	a->domain = f->domain;
}

static int mock_open(const struct weft_lane_open *p, struct weft_lane_iface **iface, char *why,
		     size_t why_len)
{
	struct mock_iface *f;
	char buf[64];

	if (option(p->options, "fail", buf, sizeof(buf))) {
		snprintf(why, why_len, "told to fail");
		return -ENODEV;
	}
	if (option(p->options, "busy", buf, sizeof(buf))) {
		snprintf(why, why_len, "another worker has it");
		return -EBUSY;
	}
	f = calloc(1, sizeof(*f));
	assert_non_null(f);
	f->base.ops = &mock_ops;
	f->base.driver = &mock_driver;
	snprintf(f->name, sizeof(f->name), "mock:%.40s", p->resource);
	f->base.name = f->name;
	f->id = (uint64_t)number(p->options, "addr", (double)++mock_net.next_id);
	f->net = (uint32_t)number(p->options, "net", 0);
	f->down = option(p->options, "down", buf, sizeof(buf)) != NULL;
	f->wake = option(p->options, "wakes", buf, sizeof(buf)) != NULL
			  ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
			  : -1;
	f->no_reads = option(p->options, "noreads", buf, sizeof(buf)) != NULL;
	set_attr(f, p->options);
	f->worker_id = p->worker_id;
	f->connect_timeout = p->conf->connect_timeout_ns;
	f->peer_timeout = p->conf->peer_timeout_ns;
	f->recv = p->recv;
	f->recv_in_place = p->recv_in_place;
	f->event = p->event;
	f->arg = p->arg;
	LIST_INIT(&f->lane_eps);
	TAILQ_INIT(&f->inbox);
	STAILQ_INIT(&f->done);
	TAILQ_INIT(&f->rmas);
	LIST_INSERT_HEAD(&mock_net.ifaces, f, entry);
	mock_net.num_ifaces++;
	*iface = &f->base;
	return 0;
}

const struct weft_lane_driver mock_driver = {
	.name = "mock",
	.abi = WEFT_LANE_ABI,
	.query = mock_query,
	.open = mock_open,
	.mem_register = mock_mem_register,
	.mem_deregister = mock_mem_deregister,
	.mem_key = mock_mem_key,
	.boot = &mock_boot_ops,
	.options =
		"net,addr,dev,dom,bw,lat,so,ro,short,bcopy,zcopy,iov,align,get,put,noboot,noreads,"
		"reg,native,fail,busy,down,rmaiov,wakes",
};

const struct weft_lane_driver *const mock_drivers[] = {&mock_driver, &weft_self_driver, NULL};
