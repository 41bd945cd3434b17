/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets. A lane has a block of WEFT_UDP_PORTS ports. It listens on one of them; the others are
 * the source ports of its paths, bound when the engine first sends from them. A port that another
 * socket of the host has is skipped: the engine takes a path that carries nothing for broken, and
 * tries another port.
 *
 * IP_UNICAST_IF makes frames leave by the lane's interface, which a source address alone does not:
 * rails may be in one subnet. It needs no privilege, and does not restrict what is received.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "udp/udp_socket.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

/* Bytes of socket buffers; the kernel's limits (net.core.rmem_max, wmem_max) may lower them. */
#define RCVBUF (8 << 20)
#define SNDBUF (4 << 20)

static int set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) < 0 ? -errno : 0;
}

static void set_iface(const struct weft_udp *u, int fd)
{
	/* The index is in network order. Not set: routes alone choose the interface. */
	set(fd, IPPROTO_IP, IP_UNICAST_IF, (int)htonl(u->if_index));
}

static void set_options(struct weft_udp *u, int fd)
{
	/* DF is set, and the kernel's own idea of the path's MTU is ignored: the engine searches */
	set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
	set(fd, IPPROTO_IP, IP_RECVTOS, 1);
	set(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	/* FORCE needs CAP_NET_ADMIN, and passes the limits */
	if (set(fd, SOL_SOCKET, SO_RCVBUFFORCE, RCVBUF) < 0)
		set(fd, SOL_SOCKET, SO_RCVBUF, RCVBUF);
	if (set(fd, SOL_SOCKET, SO_SNDBUFFORCE, SNDBUF) < 0)
		set(fd, SOL_SOCKET, SO_SNDBUF, SNDBUF);
	u->gro = set(fd, IPPROTO_UDP, UDP_GRO, 1) == 0;
	set_iface(u, fd);
}

/* @return a socket bound to @p port (0 = any), or a negative error */
static int bound(struct weft_udp *u, uint16_t port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(u->ip),
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	set_options(u, fd);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int add(struct weft_udp *u, uint16_t port, int fd)
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
	int fd;

	if (s->fd >= 0)
		return s;
	if (s->taken || port - port % WEFT_UDP_PORTS != u->block)
		return NULL;
	fd = bound(u, port);
	if (fd >= 0 && add(u, port, fd) == 0)
		return s;
	if (fd >= 0)
		close(fd);
	s->taken = true;
	return NULL;
}

/* Binds a free port of the range, in a whole block of it. */
static int bind_range(struct weft_udp *u, const struct weft_udp_opts *o, uint16_t *port)
{
	uint32_t first = RTE_ALIGN_CEIL((uint32_t)o->first, WEFT_UDP_PORTS) / WEFT_UDP_PORTS;
	uint32_t end = (o->last + 1u) / WEFT_UDP_PORTS, start = 0, at;
	int fd = -EADDRINUSE;

	if (end <= first)
		return -ERANGE;
	if (getrandom(&start, sizeof(start), 0) < 0)
		start = (uint32_t)getpid();
	/* The second port of each block is tried after the first ones of all, and so on. */
	for (uint32_t i = 0; i < (end - first) * WEFT_UDP_PORTS && fd == -EADDRINUSE; i++) {
		at = first + (start + i) % (end - first);
		*port = (uint16_t)(at * WEFT_UDP_PORTS + i / (end - first));
		fd = bound(u, *port);
	}
	return fd;
}

static int bind_first(struct weft_udp *u, const struct weft_udp_opts *o, uint16_t *port)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	int fd;

	*port = o->udp_port;
	if (o->udp_port == 0 && o->last != 0)
		return bind_range(u, o, port);
	fd = bound(u, o->udp_port);
	if (fd >= 0 && getsockname(fd, (struct sockaddr *)&a, &len) == 0)
		*port = ntohs(a.sin_port);
	return fd;
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
	else if (err == -EADDRINUSE)
		snprintf(why, why_len, "udp:%s: no UDP port of ports=%u-%u is free", u->name,
			 o->first, o->last);
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
	err = add(u, u->listens, fd);
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
