/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/thread.h"
#include "shm/shm.h"
#include "shm/shm_conn.h"
#include "shm/shm_lane.h"
#include "shm/shm_progress.h"
#include "shm/shm_socket.h"
#include "shm/shm_transfer.h"

static void shm_get_address(struct weft_lane_iface *base, void *buf)
{
	memcpy(buf, &shm_iface(base)->addr, SHM_ADDR_LEN);
}

/*
 * A boot address has no bytes of shm: unpack() takes host, place and version of our own address. If
 * the peer's place or version differ, the connection fails.
 */
static void shm_boot_pack(struct weft_lane_iface *base, struct weft_lane_boot *boot)
{
	(void)base;
	(void)boot;
}

static int shm_boot_unpack(struct weft_lane_iface *base, const struct weft_lane_boot *boot,
			   uint64_t iface_id, void *addr)
{
	struct shm_addr a = shm_iface(base)->addr;

	(void)boot;
	a.iface_id = weft_put64(iface_id);
	memcpy(addr, &a, sizeof(a));
	return 0;
}

static const struct weft_lane_boot_ops shm_boot_ops = {
	.kind = WEFT_LANE_BOOT_HOST,
	.pack = shm_boot_pack,
	.unpack = shm_boot_unpack,
};

static int shm_is_reachable(struct weft_lane_iface *base, const void *addr, size_t len, char *why,
			    size_t why_len)
{
	return shm_place_reachable(&shm_iface(base)->addr, addr, len, why, why_len);
}

/* Connecting has checked that the peer's process listens at lane_ep->peer. */
static bool shm_ep_is_from(struct weft_lane_ep *base, const void *addr, size_t len)
{
	return len == SHM_ADDR_LEN && memcmp(&shm_ep(base)->peer, addr, len) == 0;
}

static bool shm_link_up(struct weft_lane_iface *base)
{
	(void)base;
	return true;
}

static void shm_ep_print(struct weft_lane_ep *base, char *buf, size_t size)
{
	static const char *const states[] = {"connecting", "waits for the reply", "accepted", "up",
					     "ended"};
	const struct shm_ep *lane_ep = shm_ep(base);

	snprintf(buf, size, "process %d, %s, %u lines outstanding, %u chunks", (int)lane_ep->pid,
		 states[lane_ep->state], lane_ep->tx.tail - lane_ep->tx.head,
		 (unsigned int)__builtin_popcount(lane_ep->tx.out));
}

#define LEVELS(X)                                                                           \
	X(s->num_eps, "conn.open", "Connections now.")                                      \
	X(s->num_kept, "rx.kept", "Receive buffers now that the program has not released.") \
	X((uint64_t)s->num_eps * sizeof(struct shm_segment), "memory",                      \
	  "Bytes of shared memory that the connections may use now.")

/* clang-format off */
static const struct weft_lane_counter counter_help[] = {
	SHM_COUNTERS(WEFT_COUNTER_HELP)
	LEVELS(WEFT_LEVEL_HELP)
	WEFT_COUNTER_HELP_END
};
/* clang-format on */

static void shm_counters(struct weft_lane_iface *base, weft_lane_counter_cb cb, void *arg)
{
	struct shm_iface *s = shm_iface(base);

#define REPORT(field, name, help) cb(name, s->count.field, arg);
	SHM_COUNTERS(REPORT)
#undef REPORT
#define REPORT(value, name, help) cb(name, value, arg);
	LEVELS(REPORT)
#undef REPORT
}

static void iface_free(struct shm_iface *s)
{
	shm_wait_exit(s);
	/* A forked child has only a copy of its parent's iface: it must not remove the socket. */
	if (s->listen.fd >= 0) {
		if (s->owner == getpid())
			shm_socket_remove(&s->addr);
		weft_foreign_fd_close(s->listen.fd); /* its backlog may have connections */
	}
	shm_inbox_close(s->inbox);
	if (s->epoll >= 0)
		close(s->epoll);
	weft_mpool_fini(&s->bufs);
	weft_mpool_fini(&s->comps);
	weft_mpool_fini(&s->natives);
	if (s->reg_fd >= 0)
		shm_reg_close();
	free(s->table);
	free(s);
}

static void shm_close(struct weft_lane_iface *base)
{
	struct shm_iface *s = shm_iface(base);
	struct shm_ep *lane_ep;

	while ((lane_ep = TAILQ_FIRST(&s->making)) || (lane_ep = TAILQ_FIRST(&s->up)))
		shm_ep_destroy(&lane_ep->base);
	TAILQ_FOREACH(lane_ep, &s->dead, entry)
		lane_ep->destroyed = true;
	shm_reap(s);
	iface_free(s);
}

static const struct weft_lane_ops shm_ops = {
	.am_short = shm_am_short,
	.am_bcopy = shm_am_bcopy,
	.am_zcopy = shm_am_zcopy,
	.progress = shm_progress,
	.release = shm_release,
	.get_zcopy = shm_get_zcopy,
	.ep_connect = shm_ep_connect,
	.ep_destroy = shm_ep_destroy,
	.ep_is_from = shm_ep_is_from,
	.ep_flush = shm_ep_flush,
	.wait_fd = shm_wait_fd,
	.arm = shm_arm,
	.disarm = shm_disarm,
	.get_address = shm_get_address,
	.is_reachable = shm_is_reachable,
	.print_address = shm_place_print,
	.link_up = shm_link_up,
	.ep_print = shm_ep_print,
	.counters = shm_counters,
	.close = shm_close,
};

/* ------------------------------------------------------------------ driver */

static int shm_query(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg)
{
	(void)conf;
	return add(arg, &(struct weft_lane_resource){.name = "host"});
}

static void fill_attr(struct weft_lane_attr *attr, double copy_bw)
{
	/* Bytes are copied into shared memory and out of it, so the rate is half that of a copy. */
	*attr = (struct weft_lane_attr){
		.features = WEFT_LANE_F_SHORT | WEFT_LANE_F_BCOPY | WEFT_LANE_F_ZCOPY |
			    WEFT_LANE_F_TO_IFACE | WEFT_LANE_F_COPIES | WEFT_LANE_F_MEMORY |
			    WEFT_LANE_F_HOST | WEFT_LANE_F_GET_ANY,
		.bandwidth = copy_bw > 0 ? copy_bw / 2 : 5e9,
		.latency = 150e-9,
		.send_overhead = 30e-9,
		.recv_overhead = 30e-9,
		.max_short = SHM_SHORT_MAX,
		.max_bcopy = SHM_CHUNK_SIZE,
		.max_zcopy = SHM_CHUNK_SIZE,
		.max_zcopy_hdr = SHM_CHUNK_SIZE,
		.max_iov = 16,
		.max_get = SHM_NATIVE_MAX,
		.max_rma_iov = SHM_NATIVE_IOV,
		.opt_align = 1,
		.frame_size = SHM_CHUNK_SIZE,
		.dev_addr_len = SHM_ADDR_LEN,
		.device = "memory",
		.link = WEFT_LANE_LINK_PEER,
		.bandwidth_from = "copy rate of this CPU",
	};
}

static int watch_fd(struct shm_iface *s, struct shm_fd *what)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, what->fd, &ev) < 0 ? -errno : 0;
}

static int start_listening(struct shm_iface *s)
{
	int rc;

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->inbox = s->epoll < 0 ? NULL : shm_inbox_new();
	if (!s->inbox)
		return -errno;
	s->received.fd = shm_inbox_fd(s->inbox);
	s->owner = getpid();
	s->listen.fd = shm_socket_listen(&s->addr);
	if (s->listen.fd < 0)
		return s->listen.fd;
	rc = watch_fd(s, &s->listen);
	return rc < 0 ? rc : watch_fd(s, &s->received);
}

static int take_options(struct shm_iface *s, const char *options, char *why, size_t why_len)
{
	if (options[0] == '\0')
		return 0;
	if (strcmp(options, "mix") != 0) {
		snprintf(why, why_len,
			 "options '%s' are not understood: the lane's own option is 'mix', once "
			 "and without a value",
			 options);
		return -EINVAL;
	}
	/* Without this flag the lane is used like a network lane: with others, and in stripes. */
	s->base.attr.features &= ~WEFT_LANE_F_HOST;
	return 0;
}

static void iface_init(struct shm_iface *s, const struct weft_lane_open *params)
{
	s->listen = (struct shm_fd){.fd = -1};
	s->epoll = -1;
	s->reg_fd = -1;
	s->base.ops = &shm_ops;
	s->base.driver = &weft_shm_driver;
	snprintf(s->name, sizeof(s->name), "shm:%.40s", params->resource);
	s->base.name = s->name;
	fill_attr(&s->base.attr, params->copy_bw);
	s->recv = params->recv;
	s->event = params->event;
	s->arg = params->arg;
	s->connect_timeout = params->conf->connect_timeout_ns;
	TAILQ_INIT(&s->making);
	TAILQ_INIT(&s->up);
	TAILQ_INIT(&s->dead);
	LIST_INIT(&s->waiting);
	weft_mpool_init(&s->bufs, SHM_CHUNK_SIZE, 4, SHM_BUFS);
	weft_mpool_init(&s->comps, sizeof(struct shm_comp), 8, 0);
	shm_wait_init(s);
	shm_native_init(s);
}

/* Where the system forbids native reads, peers send messages instead. */
static void offer_memory(struct shm_iface *s, const struct weft_platform *platform)
{
	if (platform->random(platform->arg, &s->word, sizeof(s->word)) < 0 ||
	    !shm_native_works(s) || shm_reg_open(platform, &s->reg_fd) < 0) {
		s->reg_fd = -1;
		return;
	}
	s->base.attr.features |= SHM_NATIVE_FEATURES;
	s->base.attr.get_bandwidth = shm_native_rate();
	s->base.attr.domain = "memory";
}

static int shm_open(const struct weft_lane_open *params, struct weft_lane_iface **iface, char *why,
		    size_t why_len)
{
	struct shm_iface *s = aligned_alloc(64, sizeof(*s));
	int rc;

	if (!s) {
		snprintf(why, why_len, "out of memory");
		return -ENOMEM;
	}
	memset(s, 0, sizeof(*s));
	iface_init(s, params);
	rc = take_options(s, params->options, why, why_len);
	if (rc == 0)
		rc = shm_place_init(&s->addr, params, why, why_len);
	if (rc == 0) {
		rc = start_listening(s);
		if (rc < 0)
			snprintf(why, why_len,
				 "no socket in this user's folder (/tmp/weft-UID): %s",
				 strerror(-rc));
	}
	if (rc < 0) {
		iface_free(s);
		return rc;
	}
	offer_memory(s, params->platform);
	*iface = &s->base;
	return 0;
}

const struct weft_lane_driver weft_shm_driver = {
	.name = "shm",
	.counters = counter_help,
	.abi = WEFT_LANE_ABI,
	.boot = &shm_boot_ops,
	.query = shm_query,
	.open = shm_open,
	.mem_register = shm_mem_register,
	.mem_deregister = shm_mem_deregister,
	.mem_key = shm_mem_key,
	.options = "mix",
};
