/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Verbs devices. Each is opened once per process, and all workers share its protection domain, so
 * that memory is registered once. The first worker that polls reads the device's asynchronous
 * events and hands them to the ifaces that they concern.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "roce.h"

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, roce_dev) devices = LIST_HEAD_INITIALIZER(devices);

void roce_setup_failed(const struct roce_dev *dev, const char *what, int err, char *why,
		       size_t why_len)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	weft_roce_text_setup(dev->name, what, err,
			     limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur, why,
			     why_len);
}

/* ------------------------------------------------------------------ open */

/* The requested device is absent: list the names of all devices. */
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
	roce_mem_measure(dev);
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

struct roce_dev *roce_dev_get(const char *name, int *err, char *why, size_t why_len)
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

/* One port as a resource. */
static void list_port(struct ibv_context *ctx, const char *name, unsigned int port, bool only,
		      struct weft_lane_resource *r)
{
	struct ibv_port_attr attr;

	if (only)
		snprintf(r->name, sizeof(r->name), "%.59s", name);
	else
		snprintf(r->name, sizeof(r->name), "%.59s:%u", name, port);
	snprintf(r->device, sizeof(r->device), "%.63s", name);
	if (ibv_query_port(ctx, (uint8_t)port, &attr) != 0)
		snprintf(r->why, sizeof(r->why), "its port does not report its attributes");
	else if (attr.link_layer != IBV_LINK_LAYER_ETHERNET)
		snprintf(r->why, sizeof(r->why), "it is InfiniBand: Weft drives Ethernet only");
	else if (attr.state != IBV_PORT_ACTIVE)
		snprintf(r->why, sizeof(r->why), "its port is %s", ibv_port_state_str(attr.state));
}

/* All ports of one device. @return the new number of resources */
static int list_device(struct ibv_device *device, struct weft_lane_resource **list, int num)
{
	const char *name = ibv_get_device_name(device);
	struct ibv_context *ctx = ibv_open_device(device);
	struct ibv_device_attr attr = {.phys_port_cnt = 1};
	struct weft_lane_resource *more;
	unsigned int port, ports = 1;

	if (ctx && ibv_query_device(ctx, &attr) == 0 && attr.phys_port_cnt > 0)
		ports = attr.phys_port_cnt;
	more = realloc(*list, ((size_t)num + ports) * sizeof(*more));
	if (more) {
		*list = more;
		memset(more + num, 0, ports * sizeof(*more));
		for (port = 1; port <= ports; port++, num++) {
			if (ctx) {
				list_port(ctx, name, port, ports == 1, &more[num]);
				continue;
			}
			snprintf(more[num].name, sizeof(more[num].name), "%.63s", name);
			snprintf(more[num].device, sizeof(more[num].device), "%.63s", name);
			snprintf(more[num].why, sizeof(more[num].why),
				 "it can't be opened: %s (/dev/infiniband)", strerror(errno));
		}
	}
	if (ctx)
		ibv_close_device(ctx);
	return more ? num : -ENOMEM;
}

int roce_dev_list(struct weft_lane_resource **list)
{
	struct ibv_device **found;
	int num = 0, total = 0, i;

	*list = NULL;
	found = ibv_get_device_list(&num);
	if (!found)
		return 0; /* a kernel without RDMA has no devices, which is no error */
	for (i = 0; i < num && total >= 0; i++)
		total = list_device(found[i], list, total);
	ibv_free_device_list(found);
	if (total <= 0) {
		free(*list);
		*list = NULL;
	}
	return total;
}

/* ------------------------------------------------------------------ attributes of a port */

int roce_dev_gids(struct roce_dev *dev, unsigned int port, struct weft_roce_gid *table, int max)
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

void roce_dev_netdev(struct roce_dev *dev, unsigned int port, unsigned int index, char name[64])
{
	struct ibv_gid_entry entry;
	char ifname[IF_NAMESIZE] = "";

	if (ibv_query_gid_ex(dev->ctx, port, index, &entry, 0) == 0 && entry.ndev_ifindex != 0)
		if_indextoname(entry.ndev_ifindex, ifname);
	snprintf(name, 64, "%s", ifname);
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
	/* Gb/s of one line, by its code, after encoding. */
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
