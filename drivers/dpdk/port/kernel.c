/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports over a kernel interface. Their PMDs report "up" and "MTU 1500" whatever the interface does,
 * so its state is read from the kernel.
 *
 * net_af_packet's send has two traps. If its next slot is still in use, it sleeps in poll() until
 * the kernel has sent enough. And the kernel stops sending when the socket's bytes in flight reach
 * SO_SNDBUF, and leaves the remainder in the ring until the next send(). Both are avoided by never
 * giving the PMD more than the socket takes at once. The socket is accessible in this process, so
 * the bytes in flight are read from it (SIOCOUTQ). Frames that the kernel left behind because of a
 * full queue discipline are sent by a send() in tx_kick.
 */

#include <errno.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "port/priv.h"

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

uint32_t weft_kernel_mtu(unsigned int if_index)
{
	struct ifreq ifr;

	if (interface_ioctl(if_index, SIOCGIFMTU, &ifr) || ifr.ifr_mtu < 0)
		return 0;
	return (uint32_t)ifr.ifr_mtu;
}

/* ---- packet socket -------------------------------------------------------------------------- */

/*
 * Bytes that the kernel charges for a frame in addition to its own: the packet's structures, about
 * 0.8 to 1.2 KiB. Counting uses the high estimate (one frame too few in flight does no harm). The
 * limit on the number of frames, each of which holds a slot of the ring, uses the low one.
 */
#define CHARGE_HIGH 1280u
#define CHARGE_LOW 768u

/* Frames given to the kernel before a send() checks whether it has taken all. */
#define UNPROVEN_MAX 16u

/* Frames left behind are sent only after a while without sending: send() costs more than a poll. */
#define KICK_AFTER_US 20

/*
 * Is it bound to the interface and a member of a fanout group, as the PMD's sockets and no
 * sniffer's?
 */
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

static int packet_socket_find(unsigned int if_index, unsigned int k)
{
	long max = sysconf(_SC_OPEN_MAX);
	int fd;

	if (max < 0 || max > 65536)
		max = 65536;
	/* The PMD opens one per queue, in order; the kernel assigns the lowest descriptor first. */
	for (fd = 0; fd < max; fd++)
		if (is_pmd_socket(fd, if_index) && k-- == 0)
			return fd;
	return -1;
}

void weft_packet_socket_init(struct weft_port *p)
{
	const struct weft_port_limits *l = &p->dev->limits;
	uint32_t slots = l->tx_slots > 64 ? l->tx_slots - 32 : l->tx_slots / 2;
	socklen_t len = sizeof(int);
	int sndbuf = 0;

	p->sock = packet_socket_find(l->if_index, p->queue);
	if (p->sock >= 0 && getsockopt(p->sock, SOL_SOCKET, SO_SNDBUF, &sndbuf, &len))
		sndbuf = 0;
	if (sndbuf <= 0)
		sndbuf = 212992; /* Linux's default */
	p->sock_limit = RTE_MIN((uint32_t)sndbuf, slots * CHARGE_LOW);
	/*
	 * One frame must always fit, however small the buffer is: the kernel checks before it
	 * charges.
	 */
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
 * Frames that the kernel does not take (the interface is down, its queue is full) stay in the ring
 * without being in flight. The PMD hides the error. So now and then a send() lets the kernel take
 * all frames left, before the PMD finds no free slot and sleeps.
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
	/* 0: nothing was left. An error: the kernel still has no room. */
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
