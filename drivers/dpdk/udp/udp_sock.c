/* SPDX-License-Identifier: BSD-3-Clause */

#include "udp/udp_sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include <rte_common.h>

#include "frame/arp.h"
#include "udp/udp_io.h"

/*
 * A lane has a block of WEFT_UDP_PORTS ports. It listens on one of them. The others are the source
 * ports of its paths, bound when the engine first sends from them. Frames from a port that another
 * socket of the host has are lost: the engine then finds the path broken, and tries another port.
 *
 * IP_UNICAST_IF makes frames leave by the lane's interface, which a source address alone does not:
 * rails may be in one subnet. It needs no privilege, and does not restrict what is received.
 */

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

/* Bytes of socket buffers. Without CAP_NET_ADMIN net.core.rmem_max and wmem_max limit them. */
#define RCVBUF (8 << 20)
#define SNDBUF (4 << 20)

static int set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) < 0 ? -errno : 0;
}

static void set_iface(const struct weft_udp *u, int fd)
{
	int index = (int)htonl(u->if_index);

	/* The index is in network order. If this fails, routes alone choose the interface. */
	if (u->fp.hosts)
		set(fd, IPPROTO_IPV6, IPV6_UNICAST_IF, index);
	else
		set(fd, IPPROTO_IP, IP_UNICAST_IF, index);
}

/* No datagram is fragmented. The kernel's path MTU is ignored: the engine searches for one. */
static void set_family_options(const struct weft_udp *u, int fd)
{
	if (!u->fp.hosts) {
		set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
		set(fd, IPPROTO_IP, IP_RECVTOS, 1);
		set(fd, IPPROTO_IP, IP_RECVERR, 1);
		return;
	}
	set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
	set(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
	set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	set(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
}

static void set_options(struct weft_udp *u, int fd)
{
	set_family_options(u, fd);
	set(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	/* FORCE needs CAP_NET_ADMIN, and ignores the kernel's limits. */
	if (set(fd, SOL_SOCKET, SO_RCVBUFFORCE, RCVBUF) < 0)
		set(fd, SOL_SOCKET, SO_RCVBUF, RCVBUF);
	if (set(fd, SOL_SOCKET, SO_SNDBUFFORCE, SNDBUF) < 0)
		set(fd, SOL_SOCKET, SO_SNDBUF, SNDBUF);
	u->gro = set(fd, IPPROTO_UDP, UDP_GRO, 1) == 0;
	set_iface(u, fd);
}

socklen_t weft_udp_to(struct weft_udp *u, uint32_t ip, uint16_t port, union weft_udp_sockaddr *a)
{
	const struct in6_addr *ip6;

	if (!u->fp.hosts) {
		a->v4 = (struct sockaddr_in){
			.sin_family = AF_INET,
			.sin_port = htons(port),
			.sin_addr.s_addr = htonl(ip),
		};
		return sizeof(a->v4);
	}
	ip6 = weft_hosts_ip(u->fp.hosts, ip);
	if (!ip6)
		return 0;
	a->v6 = (struct sockaddr_in6){
		.sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = *ip6,
		.sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(ip6) ? u->if_index : 0,
	};
	return sizeof(a->v6);
}

/* @return a socket bound to @p port (0 = any), or a negative error */
static int bound(struct weft_udp *u, uint16_t port)
{
	union weft_udp_sockaddr a;
	socklen_t len = weft_udp_to(u, u->ip, port, &a);
	int fd = socket(a.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	set_options(u, fd);
	if (bind(fd, &a.any, len) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int add_sock(struct weft_udp *u, uint16_t port, int fd)
{
	unsigned int i = port % WEFT_UDP_PORTS;
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = i};

	if (epoll_ctl(u->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	u->sock[i].fd = fd;
	u->num_socks++;
	return 0;
}

struct weft_udp_sock *weft_udp_sock(struct weft_udp *u, uint16_t port)
{
	struct weft_udp_sock *s = &u->sock[port % WEFT_UDP_PORTS];
	int fd, err;

	if (s->fd >= 0)
		return s;
	if (s->taken || port - port % WEFT_UDP_PORTS != u->block)
		return NULL;
	fd = bound(u, port);
	err = fd < 0 ? fd : add_sock(u, port, fd);
	if (err == 0)
		return s;
	if (fd >= 0)
		close(fd);
	s->taken = err == -EADDRINUSE || err == -EACCES; /* other errors may pass */
	return NULL;
}

/* Bind a free port in a block of WEFT_UDP_PORTS ports that is completely in the range. */
static int bind_range(struct weft_udp *u, const struct weft_udp_opts *o, uint16_t *port)
{
	uint32_t first = RTE_ALIGN_CEIL((uint32_t)o->first, WEFT_UDP_PORTS) / WEFT_UDP_PORTS;
	uint32_t end = (o->last + 1u) / WEFT_UDP_PORTS, start = 0, at;
	int fd = -EADDRINUSE;

	if (end <= first)
		return -ERANGE;
	if (getrandom(&start, sizeof(start), 0) < 0)
		start = (uint32_t)getpid();
	/* First the first port of each block is tried, then the second port of each, and so on. */
	for (uint32_t i = 0; i < (end - first) * WEFT_UDP_PORTS && fd == -EADDRINUSE; i++) {
		at = first + (start + i) % (end - first);
		*port = (uint16_t)(at * WEFT_UDP_PORTS + i / (end - first));
		fd = bound(u, *port);
	}
	return fd;
}

#define BLOCK_TRIES 64u

/*
 * Bind the first port of a block, which other lanes of the host bind, too: so no two share a block.
 * The kernel chooses the block, since it respects reserved ports. If all tries find blocks of
 * others, any port.
 */
static int bind_block(struct weft_udp *u, uint16_t *port)
{
	union weft_udp_sockaddr a;
	socklen_t len = sizeof(a);
	uint16_t first;
	int any, fd;

	for (unsigned int i = 0;; i++) {
		any = bound(u, 0);
		if (any < 0 || getsockname(any, &a.any, &len) < 0)
			return any;
		*port = ntohs(u->fp.hosts ? a.v6.sin6_port : a.v4.sin_port);
		first = *port - *port % WEFT_UDP_PORTS;
		if (*port == first || i == BLOCK_TRIES)
			return any;
		fd = bound(u, first);
		close(any);
		if (fd < 0)
			continue;
		*port = first;
		return fd;
	}
}

static int bind_first(struct weft_udp *u, const struct weft_udp_opts *o, uint16_t *port)
{
	*port = o->udp_port;
	if (o->udp_port == 0)
		return o->last ? bind_range(u, o, port) : bind_block(u, port);
	return bound(u, o->udp_port);
}

static int explain(const struct weft_udp *u, const struct weft_udp_opts *o, int err, char *why,
		   size_t why_len)
{
	if (err == -ERANGE)
		snprintf(why, why_len,
			 "udp:%s: ports=%u-%u: a lane needs %u ports that begin at a multiple of "
			 "%u, and the range has none",
			 u->name, o->first, o->last, WEFT_UDP_PORTS, WEFT_UDP_PORTS);
	else if (err == -EADDRINUSE && o->udp_port != 0)
		snprintf(why, why_len,
			 "udp:%s: UDP port %u is in use by another socket of this host: each "
			 "process needs its own; leave port= out to take a free "
			 "one, or give a range with ports=",
			 u->name, o->udp_port);
	else if (err == -EADDRINUSE && o->last != 0)
		snprintf(why, why_len, "udp:%s: no UDP port of ports=%u-%u is free", u->name,
			 o->first, o->last);
	else if (err == -EADDRINUSE)
		snprintf(why, why_len,
			 "udp:%s: no UDP port is free: close sockets, or widen "
			 "net.ipv4.ip_local_port_range",
			 u->name);
	else if (err == -EMFILE || err == -ENFILE || err == -ENOSPC)
		snprintf(why, why_len,
			 "udp:%s: no socket can be made or watched: %s; raise the limits on open "
			 "files (ulimit -n) and fs.epoll.max_user_watches",
			 u->name, strerror(-err));
	else
		snprintf(why, why_len, "udp:%s: UDP port %u cannot be bound: %s", u->name,
			 o->udp_port, strerror(-err));
	return err;
}

int weft_udp_listen(struct weft_udp *u, const struct weft_udp_opts *o, char *why, size_t why_len)
{
	int fd, err;

	for (unsigned int i = 0; i < WEFT_UDP_PORTS; i++)
		u->sock[i].fd = -1;
	u->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (u->epoll < 0)
		return explain(u, o, -errno, why, why_len);
	fd = bind_first(u, o, &u->listens);
	if (fd < 0)
		return explain(u, o, fd, why, why_len);
	u->block = (uint16_t)(u->listens - u->listens % WEFT_UDP_PORTS);
	u->rx.hot = u->listens % WEFT_UDP_PORTS;
	u->gso = set(fd, IPPROTO_UDP, UDP_SEGMENT, 0) == 0;
	err = add_sock(u, u->listens, fd);
	if (err == 0)
		return 0;
	close(fd);
	return explain(u, o, err, why, why_len);
}

void weft_udp_sock_iface(struct weft_udp *u)
{
	for (unsigned int i = 0; i < WEFT_UDP_PORTS; i++)
		if (u->sock[i].fd >= 0)
			set_iface(u, u->sock[i].fd);
}

void weft_udp_sock_close(struct weft_udp *u)
{
	for (unsigned int i = 0; i < WEFT_UDP_PORTS; i++)
		if (u->sock[i].fd >= 0)
			close(u->sock[i].fd);
	if (u->epoll >= 0)
		close(u->epoll);
}

/* The next datagram of a socket would have the number, too, but there may be none. */
uint64_t weft_udp_missed(struct weft_frame_port *fp)
{
	struct weft_udp *u = weft_udp_of(fp);
	uint32_t info[SK_MEMINFO_VARS];
	struct weft_udp_sock *s;
	socklen_t len;

	for (s = u->sock; s < u->sock + WEFT_UDP_PORTS; s++) {
		len = sizeof(info);
		if (s->fd >= 0 && getsockopt(s->fd, SOL_SOCKET, SO_MEMINFO, info, &len) == 0 &&
		    len > SK_MEMINFO_DROPS * sizeof(info[0]))
			weft_udp_sock_missed(u, s, info[SK_MEMINFO_DROPS]);
	}
	return u->stats.rx_missed;
}
