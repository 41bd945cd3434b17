/* SPDX-License-Identifier: BSD-3-Clause */

#include "mock/mock_link_priv.h"
#include "self/self_lane.h"

struct mlink_net mlink_net;

uint64_t mlink_rnd(void)
{
	mlink_net.rng ^= mlink_net.rng << 13;
	mlink_net.rng ^= mlink_net.rng >> 7;
	mlink_net.rng ^= mlink_net.rng << 17;
	return mlink_net.rng;
}

bool mlink_chance(unsigned int permille)
{
	return permille != 0 && mlink_rnd() % 1000 < permille;
}

/* ------------------------------------------------------------------ calls */

static unsigned int link_progress(struct weft_lane_iface *base, uint64_t now_ns)
{
	struct link_iface *f = to_iface(base);
	unsigned int n = 0;

	assert_true(now_ns == mock_now);
	while (mlink_run_event(f))
		n++;
	n += mlink_run_messages(f);
	n += mlink_run_done(f);
	while (mlink_run_event(f))
		n++;
	return n;
}

static void link_tx_flush(struct weft_lane_iface *base)
{
	(void)base;
}

static void link_get_address(struct weft_lane_iface *base, void *buf)
{
	memset(buf, 0, 16);
	memcpy(buf, &to_iface(base)->id, 8);
	memcpy((uint8_t *)buf + 8, &to_iface(base)->net, 4);
}

static void ctl_boot_pack(struct weft_lane_iface *base, struct weft_lane_boot *boot)
{
	uint8_t addr[16];

	link_get_address(base, addr);
	boot->variant = 5;
	boot->length = 12;
	memcpy(boot->bytes, addr, 12);
}

static int ctl_boot_unpack(struct weft_lane_iface *base, const struct weft_lane_boot *boot,
			   uint64_t iface_id, void *addr)
{
	(void)base;
	(void)iface_id;
	assert_int_equal(boot->variant, 5);
	memset(addr, 0, 16);
	memcpy(addr, boot->bytes, 12);
	return 0;
}

static const struct weft_lane_boot_ops ctl_boot_ops = {
	.kind = WEFT_LANE_BOOT_OTHER + 1,
	.pack = ctl_boot_pack,
	.unpack = ctl_boot_unpack,
};

static int link_is_reachable(struct weft_lane_iface *base, const void *addr, size_t len, char *why,
			     size_t why_len)
{
	uint32_t other;

	assert_int_equal(len, 16);
	memcpy(&other, (const uint8_t *)addr + 8, 4);
	snprintf(why, why_len, "net %u here, net %u there", to_iface(base)->net, other);
	return other == to_iface(base)->net ? 0 : -EHOSTUNREACH;
}

static void link_print_address(const void *addr, size_t len, char *buf, size_t size)
{
	uint64_t id = 0;

	memcpy(&id, addr, len < 8 ? len : 8);
	snprintf(buf, size, "mlink-%llu", (unsigned long long)id);
}

static bool link_link_up(struct weft_lane_iface *base)
{
	(void)base;
	return true;
}

static void link_ep_print(struct weft_lane_ep *base, char *buf, size_t size)
{
	snprintf(buf, size, "mlink end %u", to_lane_ep(base)->num);
}

static void link_counters(struct weft_lane_iface *base, weft_lane_counter_cb cb, void *arg)
{
	cb("tx.messages", to_iface(base)->tx, arg);
	cb("rx.messages", to_iface(base)->rx, arg);
}

static void link_close(struct weft_lane_iface *base)
{
	struct link_iface *f = to_iface(base);
	struct link_msg *m, *next;

	while (!LIST_EMPTY(&f->lane_eps))
		mlink_ep_destroy(&LIST_FIRST(&f->lane_eps)->base);
	mlink_run_done(f);
	LIST_REMOVE(f, entry);
	mlink_net.num_ifaces--;
	/* With the last one goes what is under way; what others sent here ends as it would have. */
	for (m = TAILQ_FIRST(&mlink_net.msgs); m; m = next) {
		next = TAILQ_NEXT(m, entry);
		if (mlink_net.num_ifaces == 0 || m->from.iface == f->id ||
		    (m->datagram && m->to.iface == f->id))
			mlink_msg_free(m);
	}
	free(f);
}

static const struct weft_lane_ops link_ops = {
	.am_short = mlink_am_short,
	.am_bcopy = mlink_am_bcopy,
	.am_zcopy = mlink_am_zcopy,
	.tx_flush = link_tx_flush,
	.progress = link_progress,
	.release = mlink_release,
	.ep_create = mlink_ep_create,
	.ep_get_address = mlink_ep_get_address,
	.ep_connect_ep = mlink_ep_connect_ep,
	.ep_destroy = mlink_ep_destroy,
	.ep_flush = mlink_ep_flush,
	.get_address = link_get_address,
	.is_reachable = link_is_reachable,
	.print_address = link_print_address,
	.link_up = link_link_up,
	.ep_print = link_ep_print,
	.counters = link_counters,
	.close = link_close,
};

static const struct weft_lane_ops ctl_ops = {
	.am_short = mlink_am_short,
	.tx_flush = link_tx_flush,
	.progress = link_progress,
	.release = mlink_release,
	.ep_connect = mctl_ep_connect,
	.ep_destroy = mlink_ep_destroy,
	.ep_flush = mlink_ep_flush,
	.get_address = link_get_address,
	.is_reachable = link_is_reachable,
	.print_address = link_print_address,
	.link_up = link_link_up,
	.ep_print = link_ep_print,
	.counters = link_counters,
	.close = link_close,
};

/* ------------------------------------------------------------------ memory */

static int link_mem_register(struct weft_lane_iface *iface, void *addr, size_t len,
			     unsigned int access, struct weft_mem_lane **mem, char *why,
			     size_t why_len)
{
	uint64_t *key = malloc(sizeof(*key));

	(void)addr;
	(void)access;
	(void)why;
	(void)why_len;
	assert_non_null(key);
	*key = to_iface(iface)->id << 32 | len;
	*mem = (struct weft_mem_lane *)key;
	mlink_net.num_mems++;
	return 0;
}

static void link_mem_deregister(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	(void)iface;
	free(mem);
	mlink_net.num_mems--;
}

static uint64_t link_mem_key(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	(void)iface;
	return *(uint64_t *)mem;
}

/* ------------------------------------------------------------------ drivers */

static int link_query(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg)
{
	char name[8];
	int i, rc = 0;

	(void)conf;
	for (i = 0; i < 4 && rc == 0; i++) {
		snprintf(name, sizeof(name), "%d", i);
		rc = add(arg, &(struct weft_lane_resource){.name = name});
	}
	return rc;
}

static double number(const char *options, const char *name, double def)
{
	const char *p = strstr(options, name);

	return p ? atof(p + strlen(name)) : def;
}

static void text(const char *options, const char *name, char *buf, size_t size, uint64_t def)
{
	const char *p = strstr(options, name);

	if (!p)
		snprintf(buf, size, "mlink-%llu", (unsigned long long)def);
	else
		snprintf(buf, size, "%.*s", (int)strcspn(p + strlen(name), ","), p + strlen(name));
}

static void set_attr(struct link_iface *f, const char *o)
{
	struct weft_lane_attr *a = &f->base.attr;

	a->max_short = (size_t)number(o, "short=", f->control ? 400 : 200);
	a->bandwidth = number(o, "bw=", 5e9);
	a->latency = number(o, "lat=", 2e-6);
	a->opt_align = 1;
	a->dev_addr_len = 16;
	a->features = WEFT_LANE_F_SHORT;
	text(o, "dev=", f->device, sizeof(f->device), f->id);
	text(o, "dom=", f->domain, sizeof(f->domain), f->id);
	a->device = f->device;
	a->domain = f->domain;
	if (f->control) {
		a->features |= WEFT_LANE_F_TO_IFACE | WEFT_LANE_F_CONTROL;
		return;
	}
	a->max_bcopy = (size_t)number(o, "bcopy=", 4096);
	a->max_zcopy = (size_t)number(o, "zcopy=", 32768);
	a->max_zcopy_hdr = 128;
	a->max_iov = 4;
	a->ep_addr_len = (size_t)number(o, "eplen=", 12);
	a->features |=
		WEFT_LANE_F_BCOPY | WEFT_LANE_F_ZCOPY | WEFT_LANE_F_ZCOPY_REG | WEFT_LANE_F_TO_EP;
}

static int open_any(const struct weft_lane_open *p, bool control, struct weft_lane_iface **iface)
{
	struct link_iface *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->control = control;
	f->base.ops = control ? &ctl_ops : &link_ops;
	f->base.driver = control ? &mctl_driver : &mlink_driver;
	snprintf(f->name, sizeof(f->name), "%s:%.40s", f->base.driver->name, p->resource);
	f->base.name = f->name;
	f->id = ++mlink_net.next_id;
	f->net = (uint32_t)number(p->options, "net=", 0);
	f->max_ep = (unsigned int)number(p->options, "maxep=", 1000);
	set_attr(f, p->options);
	f->recv = p->recv;
	f->event = p->event;
	f->arg = p->arg;
	LIST_INIT(&f->lane_eps);
	STAILQ_INIT(&f->done);
	LIST_INSERT_HEAD(&mlink_net.ifaces, f, entry);
	mlink_net.num_ifaces++;
	*iface = &f->base;
	return 0;
}

static int link_open(const struct weft_lane_open *p, struct weft_lane_iface **iface, char *why,
		     size_t why_len)
{
	(void)why;
	(void)why_len;
	return open_any(p, false, iface);
}

static int ctl_open(const struct weft_lane_open *p, struct weft_lane_iface **iface, char *why,
		    size_t why_len)
{
	(void)why;
	(void)why_len;
	return open_any(p, true, iface);
}

const struct weft_lane_driver mlink_driver = {
	.name = "mlink",
	.abi = WEFT_LANE_ABI,
	.query = link_query,
	.open = link_open,
	.mem_register = link_mem_register,
	.mem_deregister = link_mem_deregister,
	.mem_key = link_mem_key,
	.options = "net,dev,dom,bw,lat,short,bcopy,zcopy,eplen,maxep",
};

const struct weft_lane_driver mctl_driver = {
	.name = "mctl",
	.abi = WEFT_LANE_ABI,
	.query = link_query,
	.open = ctl_open,
	.boot = &ctl_boot_ops,
	.options = "net,dev,dom,bw,lat,short",
};

const struct weft_lane_driver *const mlink_drivers[] = {&mock_driver, &mlink_driver, &mctl_driver,
							&weft_self_driver, NULL};
