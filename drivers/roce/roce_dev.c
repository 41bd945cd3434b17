/* SPDX-License-Identifier: BSD-3-Clause */

#include "roce_dev.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/host.h"
#include "base/log.h"
#include "roce.h"
#include "roce_async.h"
#include "roce_text.h"
#include "roce_wire.h"

/* ------------------------------------------------------------------ registrations and buffers */

static struct roce_dev *dev_of(struct weft_lane_iface *iface)
{
	return roce_iface_of(iface)->dev;
}

/* Translate to verbs flags. Remote writes and atomics need local write access (IBTA 10.6.3.1). */
static int verbs_access(const struct roce_dev *dev, unsigned int access)
{
	int flags = 0;

	if (access & WEFT_LANE_ACCESS_LOCAL_WRITE)
		flags |= IBV_ACCESS_LOCAL_WRITE;
	if (access & WEFT_LANE_ACCESS_REMOTE_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	if (access & WEFT_LANE_ACCESS_REMOTE_WRITE)
		flags |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	/* A device without atomics refuses the flag; its lanes have no amo64() either. */
	if ((access & WEFT_LANE_ACCESS_REMOTE_ATOMIC) && dev->attr.atomic_cap != IBV_ATOMIC_NONE)
		flags |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
	return flags;
}

void roce_setup_failed(const struct roce_dev *dev, const char *what, int err, char *why,
		       size_t why_len)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	weft_roce_text_setup(dev->name, what, err,
			     limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur, why,
			     why_len);
}

static int mem_reg(struct roce_dev *dev, void *addr, size_t len, unsigned int access,
		   struct weft_mem_lane *m)
{
	m->start = (uintptr_t)addr;
	m->length = len;
	m->iova = roce_iova(addr);
	errno = 0;
	m->mr = ibv_reg_mr_iova(dev->pd, addr, len, m->iova, verbs_access(dev, access));
	return m->mr ? 0 : errno ? -errno : -EIO;
}

int roce_mem_register(struct weft_lane_iface *iface, void *addr, size_t len, unsigned int access,
		      struct weft_mem_lane **mem, char *why, size_t why_len)
{
	struct weft_mem_lane *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	rc = mem_reg(dev_of(iface), addr, len, access, m);
	if (rc < 0) {
		roce_setup_failed(dev_of(iface), "registration of memory", -rc, why, why_len);
		free(m);
		return rc;
	}
	*mem = m;
	return 0;
}

void roce_mem_deregister(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	int err = ibv_dereg_mr(mem->mr);

	if (err != 0)
		weft_error("%s: memory at %p can't be deregistered: %s", dev_of(iface)->name,
			   (void *)mem->start, strerror(err));
	free(mem);
}

uint64_t roce_mem_key(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	(void)iface;
	return roce_key(mem);
}

/* ------------------------------------------------------------------ the cost of registration */

static double now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* The pages of the memory exist. @return least time of several attempts in s, or -1 */
static double reg_time(struct roce_dev *dev, void *addr, size_t len)
{
	struct weft_mem_lane m;
	double t, best = 1.0;
	int i;

	for (i = 0; i < 5; i++) {
		t = now_seconds();
		if (mem_reg(dev, addr, len, WEFT_LANE_ACCESS_LOCAL_WRITE, &m) < 0)
			return -1;
		t = now_seconds() - t;
		ibv_dereg_mr(m.mr);
		if (t < best)
			best = t;
	}
	return best;
}

static void measure_registration(struct roce_dev *dev)
{
	const size_t small = 4096, large = 1 << 20;
	double t_small, t_large;
	void *p = mmap(NULL, large, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	/* If the measurement fails, UCX's assumptions remain. */
	dev->reg_cost = 16e-6;
	dev->reg_growth = 0.06e-9;
	if (p == MAP_FAILED)
		return;
	t_small = reg_time(dev, p, small);
	t_large = reg_time(dev, p, large);
	munmap(p, large);
	if (t_small <= 0 || t_large <= 0)
		return;
	dev->reg_growth = t_large > t_small ? (t_large - t_small) / (double)(large - small) : 0;
	dev->reg_cost = t_small;
}

/* ------------------------------------------------------------------ pools */

struct roce_chunk {
	struct roce_chunk *next;
	void *mem;
	size_t size;
	struct ibv_mr *mr;
};

#define POOL_FIRST 32   /* buffers of the first chunk; a further one doubles the pool, at most */
#define POOL_CHUNK 512  /* buffers of a chunk at most */
#define POOL_SKIP 65536 /* after a failure at most this number of calls fail without an attempt */

void roce_pool_init(struct roce_pool *pool, struct roce_dev *dev, size_t size, size_t max)
{
	*pool = (struct roce_pool){.dev = dev, .size = (size + 63) & ~(size_t)63, .max = max};
}

void roce_pool_fini(struct roce_pool *pool)
{
	struct roce_chunk *c;

	while ((c = pool->chunks)) {
		pool->chunks = c->next;
		ibv_dereg_mr(c->mr);
		munmap(c->mem, c->size);
		free(c);
	}
	pool->free = NULL;
}

static int pool_grow(struct roce_pool *pool)
{
	size_t stride = sizeof(struct roce_buf) + pool->size, n, i;
	struct roce_chunk *c;
	struct roce_buf *buf;
	int err = ENOMEM;

	n = pool->total == 0 ? POOL_FIRST : pool->total < POOL_CHUNK ? pool->total : POOL_CHUNK;
	if (n > pool->max - pool->total)
		n = pool->max - pool->total;
	if (n == 0)
		return -ENOBUFS;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->size = n * stride;
	c->mem = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c->mem != MAP_FAILED) {
		c->mr = ibv_reg_mr(pool->dev->pd, c->mem, c->size, IBV_ACCESS_LOCAL_WRITE);
		err = errno;
	}
	if (c->mem == MAP_FAILED || !c->mr) {
		if (c->mem != MAP_FAILED)
			munmap(c->mem, c->size);
		free(c);
		return err ? -err : -ENOMEM;
	}
	c->next = pool->chunks;
	pool->chunks = c;
	for (i = n; i-- > 0;) {
		buf = (struct roce_buf *)((char *)c->mem + i * stride);
		buf->lkey = c->mr->lkey;
		buf->next = pool->free;
		pool->free = buf;
	}
	pool->total += n;
	return 0;
}

int roce_pool_reserve(struct roce_pool *pool, size_t n)
{
	int rc = 0;

	while (rc == 0 && pool->total - pool->in_use < n)
		rc = pool_grow(pool);
	return rc;
}

bool roce_pool_more(struct roce_pool *pool)
{
	if (pool->skip > 0) {
		pool->skip--;
		return false;
	}
	if (pool_grow(pool) == 0) {
		pool->skip_next = 0;
		return true;
	}
	pool->skip_next = pool->skip_next == 0          ? 16
			  : pool->skip_next < POOL_SKIP ? pool->skip_next * 2
							: POOL_SKIP;
	pool->skip = pool->skip_next;
	return false;
}

/* ------------------------------------------------------------------ devices */

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, roce_dev) devices = LIST_HEAD_INITIALIZER(devices);

/* ------------------------------------------------------------------ open */

static void no_such_device(struct ibv_device **list, int num, const char *name, char *why,
			   size_t why_len)
{
	size_t used;
	int i;

	if (num == 0) {
		snprintf(why, why_len,
			 "there is no RDMA device '%s', and no other: is the NIC's RDMA driver "
			 "loaded ('rdma link' lists devices)?",
			 name);
		return;
	}
	used = (size_t)snprintf(why, why_len, "there is no RDMA device '%s'; there are", name);
	for (i = 0; i < num && used < why_len; i++)
		used += (size_t)snprintf(why + used, why_len - used, "%s %s", i ? "," : "",
					 ibv_get_device_name(list[i]));
}

static struct ibv_context *open_by_name(const char *name, int *err, char *why, size_t why_len)
{
	struct ibv_context *ctx = NULL;
	struct ibv_device **list;
	int num = 0, i;

	list = ibv_get_device_list(&num);
	for (i = 0; list && i < num; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			break;
	if (!list || i == num) {
		*err = -ENODEV;
		no_such_device(list, list ? num : 0, name, why, why_len);
	} else {
		errno = 0;
		ctx = ibv_open_device(list[i]);
		if (!ctx) {
			*err = errno ? -errno : -EIO;
			weft_roce_text_setup(name, "access to the device", -*err, UINT64_MAX, why,
					     why_len);
		}
	}
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

static int device_setup(struct roce_dev *dev, char *why, size_t why_len)
{
	int flags;

	if (ibv_query_device(dev->ctx, &dev->attr) != 0) {
		snprintf(why, why_len, "%s does not report its attributes", dev->name);
		return -EIO;
	}
	dev->pd = ibv_alloc_pd(dev->ctx);
	if (!dev->pd) {
		int err = errno;

		roce_setup_failed(dev, "protection domain", err, why, why_len);
		return -err;
	}
	flags = fcntl(dev->ctx->async_fd, F_GETFL);
	if (flags < 0 || fcntl(dev->ctx->async_fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		snprintf(why, why_len, "%s: its events can't be read without waiting", dev->name);
		return -EIO;
	}
	measure_registration(dev);
	return 0;
}

static void free_dev(struct roce_dev *dev)
{
	if (dev->pd && ibv_dealloc_pd(dev->pd) != 0)
		weft_warn("%s: its protection domain can't be freed: queue pairs or registrations "
			  "still use it",
			  dev->name);
	if (dev->ctx)
		ibv_close_device(dev->ctx);
	pthread_cond_destroy(&dev->wake);
	pthread_mutex_destroy(&dev->lock);
	free(dev);
}

static struct roce_dev *make_dev(const char *name, int *err, char *why, size_t why_len)
{
	struct roce_dev *dev = calloc(1, sizeof(*dev));

	if (!dev) {
		*err = -ENOMEM;
		snprintf(why, why_len, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&dev->lock, NULL);
	pthread_cond_init(&dev->wake, NULL);
	LIST_INIT(&dev->watches);
	STAILQ_INIT(&dev->jobs);
	snprintf(dev->name, sizeof(dev->name), "%s", name);
	dev->ctx = open_by_name(name, err, why, why_len);
	if (dev->ctx)
		*err = device_setup(dev, why, why_len);
	if (*err == 0)
		return dev;
	free_dev(dev);
	return NULL;
}

static struct roce_dev *dev_get(const char *name, int *err, char *why, size_t why_len)
{
	struct roce_dev *dev;

	*err = 0;
	pthread_mutex_lock(&devices_lock);
	LIST_FOREACH(dev, &devices, link)
		if (strcmp(dev->name, name) == 0)
			break;
	if (!dev) {
		dev = make_dev(name, err, why, why_len);
		if (dev)
			LIST_INSERT_HEAD(&devices, dev, link);
	}
	if (dev)
		dev->refs++;
	pthread_mutex_unlock(&devices_lock);
	return dev;
}

void roce_dev_put(struct roce_dev *dev)
{
	bool last;

	pthread_mutex_lock(&devices_lock);
	last = --dev->refs == 0;
	if (last) {
		LIST_REMOVE(dev, link);
		roce_jobs_end(dev);
		free_dev(dev);
	}
	pthread_mutex_unlock(&devices_lock);
}

/* ------------------------------------------------------------------ list */

static int list_port(struct ibv_context *ctx, const char *name, unsigned int port, bool only,
		     weft_lane_resource_cb add, void *arg)
{
	char full[64], why[96];
	struct weft_lane_resource r = {.name = full};
	struct ibv_port_attr attr;

	if (only)
		snprintf(full, sizeof(full), "%.59s", name);
	else
		snprintf(full, sizeof(full), "%.59s:%u", name, port);
	if (ibv_query_port(ctx, (uint8_t)port, &attr) != 0) {
		r.why = "its port does not report its attributes";
	} else if (attr.link_layer != IBV_LINK_LAYER_ETHERNET) {
		r.why = "it is InfiniBand: Weft drives Ethernet only";
	} else if (attr.state != IBV_PORT_ACTIVE) {
		snprintf(why, sizeof(why), "its port is %s", ibv_port_state_str(attr.state));
		r.why = why;
	}
	return add(arg, &r);
}

static int list_device(struct ibv_device *device, weft_lane_resource_cb add, void *arg)
{
	const char *name = ibv_get_device_name(device);
	struct ibv_context *ctx = ibv_open_device(device);
	struct ibv_device_attr attr = {.phys_port_cnt = 1};
	unsigned int port, ports = 1;
	char why[96];
	int rc = 0;

	if (!ctx) {
		snprintf(why, sizeof(why), "it can't be opened: %s (/dev/infiniband)",
			 strerror(errno));
		return add(arg, &(struct weft_lane_resource){.name = name, .why = why});
	}
	if (ibv_query_device(ctx, &attr) == 0 && attr.phys_port_cnt > 0)
		ports = attr.phys_port_cnt;
	for (port = 1; rc == 0 && port <= ports; port++)
		rc = list_port(ctx, name, port, ports == 1, add, arg);
	ibv_close_device(ctx);
	return rc;
}

int roce_dev_list(weft_lane_resource_cb add, void *arg)
{
	struct ibv_device **found;
	int num = 0, rc = 0, i;

	found = ibv_get_device_list(&num);
	if (!found)
		return 0; /* a kernel without RDMA has no devices, which is no error */
	for (i = 0; i < num && rc == 0; i++)
		rc = list_device(found[i], add, arg);
	ibv_free_device_list(found);
	return rc;
}

/* ------------------------------------------------------------------ attributes of a port */

static int dev_gids(struct roce_dev *dev, unsigned int port, struct weft_roce_gid *table, int max)
{
	struct ibv_gid_entry entry;
	struct ibv_port_attr attr;
	static const uint8_t none[16];
	int i, num = 0;

	if (ibv_query_port(dev->ctx, (uint8_t)port, &attr) != 0)
		return 0;
	for (i = 0; i < attr.gid_tbl_len && i < 256 && num < max; i++) {
		if (ibv_query_gid_ex(dev->ctx, port, (uint32_t)i, &entry, 0) != 0 ||
		    memcmp(entry.gid.raw, none, 16) == 0)
			continue;
		memcpy(table[num].gid, entry.gid.raw, 16);
		table[num].index = (uint8_t)i;
		table[num].v2 = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
		num++;
	}
	return num;
}

static bool gid_is_at(struct roce_dev *dev, unsigned int port, unsigned int index,
		      const struct weft_roce_gid *gid)
{
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(dev->ctx, port, index, &entry, 0) == 0 &&
	       memcmp(entry.gid.raw, gid->gid, 16) == 0 &&
	       (entry.gid_type == IBV_GID_TYPE_ROCE_V2) == gid->v2;
}

bool roce_dev_gid_find(struct roce_dev *dev, unsigned int port, struct weft_roce_gid *gid)
{
	unsigned int i;

	if (gid_is_at(dev, port, gid->index, gid))
		return true;
	for (i = 0; i < 256; i++) {
		if (!gid_is_at(dev, port, i, gid))
			continue;
		gid->index = (uint8_t)i;
		return true;
	}
	return false;
}

/* @p name is "" if the entry's network device is in another network namespace. */
static void dev_netdev(struct roce_dev *dev, unsigned int port, unsigned int index, char name[64])
{
	struct ibv_gid_entry entry;
	char ifname[IF_NAMESIZE] = "";

	if (ibv_query_gid_ex(dev->ctx, port, index, &entry, 0) == 0 && entry.ndev_ifindex != 0)
		if_indextoname(entry.ndev_ifindex, ifname);
	snprintf(name, 64, "%s", ifname);
}

void roce_gid_gone_text(const struct weft_roce_gid *gid, char *what, size_t len)
{
	char text[48];

	weft_roce_gid_print(gid->gid, text, sizeof(text));
	snprintf(what, len,
		 "its address %s (GID %u) was removed (give it back to the network device)", text,
		 gid->index);
}

void roce_dev_identity(struct roce_dev *dev, char *buf, size_t size)
{
	char path[128], target[256];
	const char *base;
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%.64s/device", dev->name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n > 0) {
		target[n] = '\0';
		base = strrchr(target, '/');
		snprintf(buf, size, "%s", base ? base + 1 : target);
	} else {
		snprintf(buf, size, "%s", dev->name);
	}
}

double roce_port_rate(const struct ibv_port_attr *port)
{
	/* Gb/s of one line without its encoding, by the code in ibv_port_attr.active_speed. */
	static const struct {
		uint8_t code;
		double gbps;
	} speeds[] = {{1, 2.0},    {2, 4.0},   {4, 8.0},   {8, 10.0},
		      {16, 13.64}, {32, 25.0}, {64, 50.0}, {128, 100.0}};
	static const struct {
		uint8_t code;
		int lines;
	} widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
	double gbps = 2.0;
	size_t i;
	int lines = 1;

	for (i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		if (speeds[i].code == port->active_speed)
			gbps = speeds[i].gbps;
	for (i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (widths[i].code == port->active_width)
			lines = widths[i].lines;
	return gbps * lines * 1e9 / 8;
}

double roce_dev_port_rate(const struct roce_dev *dev, unsigned int port)
{
	struct ibv_port_attr attr;

	return ibv_query_port(dev->ctx, (uint8_t)port, &attr) == 0 ? roce_port_rate(&attr) : 0;
}

/* ------------------------------------------------------------------ routes */

/*
 * A peer in the lane's own network can be reached. Otherwise the kernel's routes decide, and the
 * route must use the lane's network device, through which the kernel resolves addresses. Peers
 * count as reachable while that device or its networks are unknown.
 */

/* Prefix length in a GID, which has IPv4 addresses as IPv4-mapped ones: 96 bits more. */
static unsigned int mask_bits(const struct sockaddr *mask)
{
	const uint8_t *p =
		mask->sa_family == AF_INET
			? (const uint8_t *)&((const struct sockaddr_in *)mask)->sin_addr
			: (const uint8_t *)&((const struct sockaddr_in6 *)mask)->sin6_addr;
	unsigned int n = mask->sa_family == AF_INET ? 4 : 16, bits = n == 4 ? 96 : 0, i;

	for (i = 0; i < n; i++)
		bits += (unsigned int)__builtin_popcount(p[i]);
	return bits;
}

static bool is_gid(const struct sockaddr *addr, const uint8_t gid[16])
{
	if (addr->sa_family == AF_INET)
		return weft_roce_gid_is_ipv4(gid) &&
		       memcmp(&((const struct sockaddr_in *)addr)->sin_addr, gid + 12, 4) == 0;
	return addr->sa_family == AF_INET6 &&
	       memcmp(&((const struct sockaddr_in6 *)addr)->sin6_addr, gid, 16) == 0;
}

/* @return 1 yes, 0 no, -1 unknown: for example, the device is in another network namespace */
static int same_network(const char *netdev, const uint8_t own[16], const uint8_t peer[16])
{
	struct weft_roce_subnet net = {0};
	struct ifaddrs *list, *i;
	int rc = -1;

	if (getifaddrs(&list) < 0)
		return -1;
	for (i = list; i; i = i->ifa_next) {
		if (!i->ifa_addr || !i->ifa_netmask || strcmp(i->ifa_name, netdev) != 0 ||
		    !is_gid(i->ifa_addr, own))
			continue;
		memcpy(net.net, own, 16);
		net.prefix = (uint8_t)mask_bits(i->ifa_netmask);
		rc = weft_roce_gid_in(peer, &net);
		break;
	}
	freeifaddrs(list);
	return rc;
}

/* @return 0, also if unknown, or a negative error with @p why */
static int route_check(const char *netdev, const uint8_t own[16], const uint8_t peer[16], char *why,
		       size_t why_len)
{
	bool v4 = weft_roce_gid_is_ipv4(peer);
	size_t len = v4 ? sizeof(struct in_addr) : sizeof(struct in6_addr);
	char text[48];

	weft_roce_gid_print(peer, text, sizeof(text));
	if (v4 != weft_roce_gid_is_ipv4(own)) {
		snprintf(why, why_len, "%s is %s, and the address of this lane is %s", text,
			 v4 ? "IPv4" : "IPv6", v4 ? "IPv6" : "IPv4");
		return -EHOSTUNREACH;
	}
	if (netdev[0] == '\0' || same_network(netdev, own, peer) != 0)
		return 0;
	if (weft_netlink_has_route(if_nametoindex(netdev), v4 ? AF_INET : AF_INET6, own + 16 - len,
				   peer + 16 - len))
		return 0;
	snprintf(why, why_len, "%s has no route to %s", netdev, text);
	return -EHOSTUNREACH;
}

/* ------------------------------------------------------------------ ports */

static uint8_t mtu_code(unsigned int bytes)
{
	uint8_t code = 5;

	while (code > 1 && (128u << code) > bytes)
		code--;
	return code;
}

static int pick_gid(struct roce_port_info *info, char *why, size_t why_len)
{
	struct weft_roce_gid table[256];
	int num = dev_gids(info->dev, info->port, table, 256);
	char reason[320];
	int i;

	i = weft_roce_gid_pick(table, num, info->opts.gid, &info->opts.subnet, reason,
			       sizeof(reason));
	if (i < 0) {
		snprintf(why, why_len, "%s", reason);
		return i;
	}
	info->gid = table[i];
	snprintf(info->why, sizeof(info->why), "%s", reason);
	dev_netdev(info->dev, info->port, info->gid.index, info->netdev);
	return 0;
}

static int check_port(struct roce_port_info *info, char *why, size_t why_len)
{
	if (info->port > info->dev->attr.phys_port_cnt ||
	    ibv_query_port(info->dev->ctx, (uint8_t)info->port, &info->attr) != 0) {
		snprintf(why, why_len, "it has no port %u (there are %u)", info->port,
			 info->dev->attr.phys_port_cnt);
		return -ENODEV;
	}
	if (info->attr.link_layer != IBV_LINK_LAYER_ETHERNET) {
		snprintf(why, why_len, "its port is InfiniBand: Weft drives Ethernet only");
		return -ENODEV;
	}
	info->mtu = (uint8_t)info->attr.active_mtu;
	if (info->opts.mtu && mtu_code(info->opts.mtu) < info->mtu)
		info->mtu = mtu_code(info->opts.mtu);
	return 0;
}

int roce_port_open(const struct weft_lane_open *params, struct roce_port_info *info, char *why,
		   size_t why_len)
{
	char device[64];
	int rc;

	memset(info, 0, sizeof(*info));
	rc = weft_roce_opts_parse(params->options, &info->opts, why, why_len);
	if (rc < 0)
		return rc;
	if (weft_roce_resource_parse(params->resource, device, sizeof(device), &info->port) < 0) {
		snprintf(why, why_len, "'%s' is not of the form DEVICE or DEVICE:PORT",
			 params->resource);
		return -EINVAL;
	}
	info->dev = dev_get(device, &rc, why, why_len);
	if (!info->dev)
		return rc;
	rc = check_port(info, why, why_len);
	if (rc == 0)
		rc = pick_gid(info, why, why_len);
	if (rc < 0)
		roce_dev_put(info->dev);
	return rc;
}

void roce_addr_fill(struct weft_roce_addr *addr, enum weft_roce_kind kind, const uint8_t gid[16],
		    uint8_t mtu, uint32_t seg)
{
	*addr = (struct weft_roce_addr){
		.version = WEFT_ROCE_VERSION,
		.kind = (uint8_t)kind,
		.mtu = mtu,
		.seg = weft_put32(seg),
	};
	memcpy(addr->gid, gid, 16);
}

int roce_reachable(const struct weft_roce_gid *own, bool gone, const char *netdev,
		   enum weft_roce_kind kind, const void *addr, size_t len, char *why,
		   size_t why_len)
{
	struct weft_roce_addr a;
	int rc = weft_roce_addr_check(addr, len, kind, why, why_len);

	if (rc < 0)
		return rc;
	memcpy(&a, addr, sizeof(a));
	if (gone) {
		roce_gid_gone_text(own, why, why_len);
		return -EADDRNOTAVAIL;
	}
	/* RoCE v1 and v2 are incompatible: they have different Ethernet types and headers. */
	if (a.v1 == own->v2) {
		snprintf(why, why_len,
			 "the peer uses RoCE v%u and this lane v%u: choose entries of the same "
			 "version with gid=N",
			 a.v1 ? 1 : 2, own->v2 ? 2 : 1);
		return -EPROTONOSUPPORT;
	}
	return route_check(netdev, own->gid, a.gid, why, why_len);
}

void roce_print_address(const void *addr, size_t len, char *buf, size_t size)
{
	struct weft_roce_addr a;
	char gid[48];

	if (len != sizeof(a)) {
		snprintf(buf, size, "damaged RoCE address");
		return;
	}
	memcpy(&a, addr, sizeof(a));
	weft_roce_gid_print(a.gid, gid, sizeof(gid));
	if (a.kind == WEFT_ROCE_UD)
		snprintf(buf, size, "%s queue pair %u", gid, weft_get32(a.qpn));
	else
		snprintf(buf, size, "%s", gid);
}
