/* SPDX-License-Identifier: BSD-3-Clause */

#include <dirent.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "base/host.h"
#include "port/kernel.h"
#include "port/port.h"

/* ---- the other end of a veth ---------------------------------------------------------------- */

/* A veth refuses a frame that exceeds its other end's MTU. net_af_packet then sends no more. */

#ifndef IFLA_TARGET_NETNSID
#define IFLA_TARGET_NETNSID IFLA_IF_NETNSID
#endif

struct link {
	uint32_t mtu, peer; /* peer: interface index of the other end, 0 = none */
	int32_t netns;      /* number of the other end's namespace; -1 = this one */
	bool is_veth;
};

static void take_kind(struct link *l, struct rtattr *info)
{
	int left = (int)RTA_PAYLOAD(info);
	struct rtattr *a;

	for (a = RTA_DATA(info); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_INFO_KIND && RTA_PAYLOAD(a) >= 4)
			l->is_veth = !memcmp(RTA_DATA(a), "veth", 4);
}

static void take_attribute(struct link *l, struct rtattr *a)
{
	switch (a->rta_type) {
	case IFLA_LINKINFO:
		take_kind(l, a);
		break;
	case IFLA_MTU:
		l->mtu = weft_netlink_u32(a);
		break;
	case IFLA_LINK:
		l->peer = weft_netlink_u32(a);
		break;
	case IFLA_LINK_NETNSID:
		l->netns = (int32_t)weft_netlink_u32(a);
		break;
	}
}

static void take_link(const struct nlmsghdr *msg, void *arg)
{
	struct rtattr *a;
	int left;

	for (a = weft_netlink_attrs(msg, sizeof(struct ifinfomsg), &left); RTA_OK(a, left);
	     a = RTA_NEXT(a, left))
		take_attribute(arg, a);
}

/* @param netns  -1 = this one. @return false: the kernel does not report the interface */
static bool read_link(uint32_t if_index, int32_t netns, struct link *l)
{
	const struct ifinfomsg info = {.ifi_family = AF_UNSPEC, .ifi_index = (int)if_index};
	struct weft_netlink n;

	*l = (struct link){.netns = -1};
	weft_netlink_init(&n, RTM_GETLINK, 0, &info, sizeof(info));
	if (netns >= 0)
		weft_netlink_add(&n, IFLA_TARGET_NETNSID, &netns, sizeof(netns));
	return weft_netlink_call(NETLINK_ROUTE, &n, RTM_NEWLINK, sizeof(info), take_link, l) == 0;
}

uint32_t weft_veth_peer_mtu(unsigned int if_index)
{
	struct link own, peer;

	if (!read_link(if_index, -1, &own) || !own.is_veth || !own.peer ||
	    !read_link(own.peer, own.netns, &peer))
		return 0;
	return peer.mtu;
}

/* ---- kernel interfaces ---------------------------------------------------------------------- */

/*
 * PMDs over a kernel interface report "up" and "MTU 1500" whatever the interface does, so the state
 * is read from the kernel.
 *
 * net_af_packet's send has two traps. If its next slot is still in use, it sleeps in poll() until
 * the kernel has sent enough. And the kernel stops sending when the socket's bytes in flight reach
 * SO_SNDBUF, and leaves the remainder in the ring until the next send(). Both are avoided by never
 * giving the PMD more than the socket takes at once. The bytes in flight are read from the socket
 * (SIOCOUTQ). A send() in tx_kick sends frames that a full queue discipline left behind.
 */

static int interface_ioctl(unsigned int if_index, unsigned long request, struct ifreq *ifr)
{
	int fd, rc;

	memset(ifr, 0, sizeof(*ifr));
	if (!if_indextoname(if_index, ifr->ifr_name))
		return -errno;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = ioctl(fd, request, ifr) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

bool weft_kernel_link_up(unsigned int if_index)
{
	struct ifreq ifr;

	if (interface_ioctl(if_index, SIOCGIFFLAGS, &ifr))
		return false;
	return (ifr.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

uint32_t weft_kernel_ip(unsigned int if_index)
{
	struct sockaddr_in ip;
	struct ifreq ifr;

	if (interface_ioctl(if_index, SIOCGIFADDR, &ifr))
		return 0;
	memcpy(&ip, &ifr.ifr_addr, sizeof(ip));
	return ntohl(ip.sin_addr.s_addr);
}

void weft_kernel_link_why(unsigned int if_index, char *buf, size_t size)
{
	char name[IF_NAMESIZE] = "?";
	struct ifreq ifr;

	if (!if_indextoname(if_index, name) || interface_ioctl(if_index, SIOCGIFFLAGS, &ifr))
		snprintf(buf, size, "its kernel interface is gone");
	else if (!(ifr.ifr_flags & IFF_UP))
		snprintf(buf, size,
			 "on this side: its kernel interface %s is down (ip link set dev %s up)",
			 name, name);
	else
		snprintf(buf, size,
			 "on the other side, or between: its kernel interface %s is up, but has no "
			 "carrier",
			 name);
}

int weft_kernel_join(unsigned int if_index, uint8_t mac[2][6])
{
	struct packet_mreq group = {
		.mr_ifindex = (int)if_index,
		.mr_type = PACKET_MR_MULTICAST,
		.mr_alen = 6,
	};
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	for (unsigned int i = 0; i < 2; i++) {
		memcpy(group.mr_address, mac[i], 6);
		if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &group, sizeof(group))) {
			err = -errno;
			close(fd);
			return err;
		}
	}
	return fd;
}

uint32_t weft_kernel_mtu(unsigned int if_index)
{
	struct ifreq ifr;

	if (interface_ioctl(if_index, SIOCGIFMTU, &ifr) || ifr.ifr_mtu < 0)
		return 0;
	return (uint32_t)ifr.ifr_mtu;
}

/* ---- packet socket -------------------------------------------------------------------------- */

/*
 * Bytes that the kernel charges for a frame in addition to its own: about 0.8 to 1.2 KiB. The bytes
 * in flight use the high estimate; the number of frames, each with a slot of the ring, the low one.
 */
#define CHARGE_HIGH 1280u
#define CHARGE_LOW 768u

/* The most frames given to the kernel before a send() checks whether it has taken all. */
#define UNPROVEN_MAX 16u

/* Frames left behind are sent only after a while without sending: send() costs more than a poll. */
#define KICK_AFTER_US 20

/* The PMD's sockets, and no sniffer's, are bound to the interface and in a fanout group. */
static bool is_pmd_socket(int fd, unsigned int if_index)
{
	struct sockaddr_ll ll = {0};
	socklen_t len = sizeof(ll);
	int fanout = 0;

	if (getsockname(fd, (struct sockaddr *)&ll, &len) || ll.sll_family != AF_PACKET ||
	    (unsigned int)ll.sll_ifindex != if_index)
		return false;
	len = sizeof(fanout);
	return getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &fanout, &len) == 0 && fanout;
}

int weft_packet_socket_find(unsigned int if_index, unsigned int k)
{
	long max = sysconf(_SC_OPEN_MAX);
	int fd;

	if (max < 0 || max > 65536)
		max = 65536;
	/* The PMD opens a socket per queue, in order. The kernel assigns low descriptors first. */
	for (fd = 0; fd < max; fd++)
		if (is_pmd_socket(fd, if_index) && k-- == 0)
			return fd;
	return -1;
}

uint32_t weft_packet_socket_lost(int sock)
{
	struct tpacket_stats stats = {0};
	socklen_t len = sizeof(stats);

	return getsockopt(sock, SOL_PACKET, PACKET_STATISTICS, &stats, &len) ? 0 : stats.tp_drops;
}

void weft_packet_socket_init(struct weft_port *p)
{
	const struct weft_port_limits *l = &p->dev->limits;
	uint32_t slots = l->tx_slots > 64 ? l->tx_slots - 32 : l->tx_slots / 2;
	socklen_t len = sizeof(int);
	int sndbuf = 0;

	p->sock = weft_packet_socket_find(l->if_index, p->queue);
	if (p->sock >= 0 && getsockopt(p->sock, SOL_SOCKET, SO_SNDBUF, &sndbuf, &len))
		sndbuf = 0;
	if (sndbuf <= 0)
		sndbuf = 212992; /* Linux's default */
	p->sock_limit = RTE_MIN((uint32_t)sndbuf, slots * CHARGE_LOW);
	/* One frame fits even the smallest buffer: the kernel checks before it charges. */
	p->sock_limit = RTE_MAX(p->sock_limit, p->fp.frame_size + CHARGE_HIGH);
	p->fp.tx_bytes_max = p->sock_limit / (p->fp.frame_size + CHARGE_HIGH) * p->fp.frame_size;
	p->fp.tx_bytes_max = RTE_MAX(p->fp.tx_bytes_max, (uint32_t)p->fp.frame_size);
	p->unproven_max = RTE_MIN(UNPROVEN_MAX, l->tx_slots / 8);
	p->kick_cycles = rte_get_tsc_hz() * KICK_AFTER_US / 1000000;
}

static void refresh_queued(struct weft_port *p)
{
	int used = 0;

	if (p->sock < 0 || ioctl(p->sock, SIOCOUTQ, &used) < 0 || used < 0)
		used = 0;
	p->sock_used = (uint32_t)used;
}

/*
 * Frames that the kernel does not take (the interface is down, its queue is full) stay in the ring,
 * and the PMD hides the error. So now and then a send() lets the kernel take all frames left,
 * before the PMD finds no free slot and sleeps.
 */
static bool is_stuck(struct weft_port *p)
{
	uint64_t now;

	if (p->sock < 0 || p->unproven < p->unproven_max)
		return false;
	now = rte_rdtsc();
	if (p->stuck && now - p->last_tx_tsc < p->kick_cycles)
		return true;
	p->stuck = send(p->sock, NULL, 0, MSG_DONTWAIT) < 0;
	if (p->stuck)
		p->last_tx_tsc = now;
	else
		p->unproven = 0;
	return p->stuck;
}

uint16_t weft_packet_socket_room(struct weft_port *p, struct rte_mbuf **pkts, uint16_t n)
{
	uint32_t need, mine = 0;
	bool fresh = false;
	uint16_t i;

	if (is_stuck(p))
		return 0;
	for (i = 0; i < n; i++) {
		need = pkts[i]->pkt_len + CHARGE_HIGH;
		if (p->sock_used + mine + need > p->sock_limit && !fresh) {
			refresh_queued(p);
			fresh = true;
		}
		/* With nothing in flight one frame may go, whatever the estimate is. */
		if (p->sock_used + mine + need > p->sock_limit && p->sock_used + mine)
			break;
		mine += need;
	}
	p->sock_used += mine;
	p->unproven += i;
	return i;
}

void weft_packet_socket_kick(struct weft_port *p)
{
	ssize_t sent;

	if (!p->tail || p->sock < 0 || rte_rdtsc() - p->last_tx_tsc < p->kick_cycles)
		return;
	sent = send(p->sock, NULL, 0, MSG_DONTWAIT);
	p->last_tx_tsc = rte_rdtsc();
	/* 0: the ring is empty. An error: the kernel's queue is full, or the interface is down. */
	p->stuck = sent < 0;
	if (sent >= 0)
		p->unproven = 0;
	if (sent == 0)
		p->tail = false;
}

int weft_packet_socket_arm(struct weft_port *p, uint64_t *within)
{
	socklen_t len = sizeof(int);
	int error;

	if (p->tail) {
		/* A few microseconds after the last frame the kernel may still be sending. */
		weft_packet_socket_kick(p);
		if (p->tail)
			*within = RTE_MIN(*within, (uint64_t)KICK_AFTER_US * 1000);
	}
	/* Clear the error, or an interface that went down would wake the owner for ever. */
	getsockopt(p->sock, SOL_SOCKET, SO_ERROR, &error, &len);
	return 0;
}

/* ---- AF_XDP sockets ------------------------------------------------------------------------- */

/*
 * net_af_xdp does not export its sockets, and these do not report their interface. So the port
 * takes the socket that is new after the queue was set up. poll() on it also wakes a driver that
 * requires it (XDP_USE_NEED_WAKEUP).
 */

#define FDS_MAX 65536u

/* AF_XDP sockets that existed before the setup of the queue: a bit for each descriptor. */
static uint8_t known[FDS_MAX / 8];

static bool is_xdp_socket(int fd)
{
	socklen_t len = sizeof(int);
	int domain = 0;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_XDP;
}

/* Without /proc no socket is found, and no frame wakes the owner. */
static void for_each(void (*fn)(int fd, void *arg), void *arg)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	long fd;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		fd = strtol(entry->d_name, NULL, 10);
		if (entry->d_name[0] != '.' && fd >= 0 && is_xdp_socket((int)fd))
			fn((int)fd, arg);
	}
	closedir(dir);
}

static void fd_learn(int fd, void *arg)
{
	RTE_SET_USED(arg);
	if (fd < (int)FDS_MAX)
		known[fd / 8] |= (uint8_t)(1u << fd % 8);
}

struct found {
	unsigned int count;
	int fd;
};

static void fd_look(int fd, void *arg)
{
	struct found *f = arg;

	if (fd < (int)FDS_MAX && known[fd / 8] >> fd % 8 & 1)
		return;
	f->fd = fd;
	/* For numbers from FDS_MAX on it is unknown whether the socket is new. */
	f->count += fd < (int)FDS_MAX ? 1 : 2;
}

void weft_xdp_before(const struct weft_port_dev *d)
{
	if (!d->limits.xdp_queues)
		return;
	memset(known, 0, sizeof(known));
	for_each(fd_learn, NULL);
}

void weft_xdp_after(struct weft_port_dev *d, uint16_t queue)
{
	struct found f = {.fd = -1};

	if (!d->limits.xdp_queues)
		return;
	for_each(fd_look, &f);
	/* If another thread has created an AF_XDP socket, too, the right one is unknown. */
	d->xdp_socks[queue] = f.count == 1 ? f.fd : -1;
}

int weft_xdp_arm(const struct weft_port *p)
{
	struct pollfd fd = {.fd = p->sock, .events = POLLIN};

	/* The application may have closed the port: the number may refer to another file. */
	return p->sock >= 0 && !weft_port_has_ended(p->dev) && poll(&fd, 1, 0) > 0 &&
			       fd.revents & POLLIN
		       ? -EBUSY
		       : 0;
}
