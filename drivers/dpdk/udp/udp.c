/* SPDX-License-Identifier: BSD-3-Clause */

/* Interfaces, sockets; opening and closing a port, its events and counters. */

#include "udp/udp.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <rte_ip.h>
#include <rte_mbuf.h>

#include "base/host.h"
#include "frame/farewell.h"
#include "frame/frame_port.h"
#include "udp/udp_io.h"
#include "udp/udp_sock.h"

/* ------------------------------------------------------------------ interfaces */

static void fill_ip6(struct weft_udp_iface *i, const struct sockaddr_in6 *ip,
		     const struct sockaddr_in6 *mask)
{
	i->ip6 = ip->sin6_addr;
	for (unsigned int k = 0; k < sizeof(i->ip6); k++)
		i->prefix = (uint8_t)(i->prefix + __builtin_popcount(mask->sin6_addr.s6_addr[k]));
}

static bool fill(struct weft_udp_iface *i, const struct ifaddrs *a)
{
	const struct sockaddr_in *ip = (const void *)a->ifa_addr, *mask = (void *)a->ifa_netmask;

	if (!ip || (ip->sin_family != AF_INET && ip->sin_family != AF_INET6) || !mask)
		return false;
	*i = (struct weft_udp_iface){.flags = a->ifa_flags};
	/* "eth0:1" is a label of eth0 */
	snprintf(i->name, sizeof(i->name), "%.*s", (int)strcspn(a->ifa_name, ":"), a->ifa_name);
	i->index = if_nametoindex(i->name);
	if (ip->sin_family == AF_INET6) {
		fill_ip6(i, (const void *)ip, (const void *)mask);
		return i->index != 0;
	}
	i->ip = ntohl(ip->sin_addr.s_addr);
	i->prefix = (uint8_t)__builtin_popcount(mask->sin_addr.s_addr);
	return i->index != 0;
}

/* Lists all addresses of interfaces. @return number (*list is malloc()ed), or a negative error */
static int iface_list(struct weft_udp_iface **list)
{
	struct ifaddrs *all, *a;
	int n = 0;

	if (getifaddrs(&all) < 0)
		return -errno;
	for (a = all; a; a = a->ifa_next)
		n++;
	*list = calloc((size_t)n + 1, sizeof(**list));
	n = *list ? 0 : -ENOMEM;
	for (a = all; *list && a; a = a->ifa_next)
		n += fill(&(*list)[n], a);
	freeifaddrs(all);
	return n;
}

/* Is there /sys/class/net/NAME/WHAT? */
static bool has(const char *name, const char *what)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/net/%s/%s", name, what);
	return access(path, F_OK) == 0;
}

/* A bridge without a physical device of this host connects containers or guests, not hosts. */
static bool is_inner_bridge(const char *name)
{
	const struct dirent *e;
	bool inner = true;
	char path[128];
	DIR *dir;

	if (!has(name, "bridge"))
		return false;
	snprintf(path, sizeof(path), "/sys/class/net/%s/brif", name);
	dir = opendir(path);
	while (dir && inner && (e = readdir(dir)))
		inner = e->d_name[0] == '.' || !has(e->d_name, "device");
	if (dir)
		closedir(dir);
	return inner;
}

/* May WEFT_LANES=udp:* open the interface? Loopback, too: it is for workers without other lanes. */
static bool is_default(const struct weft_udp_iface *i)
{
	const unsigned int up = IFF_UP | IFF_RUNNING;

	/* Each interface has a link-local address, also if no peer can be reached there. */
	if (i->ip == 0 && IN6_IS_ADDR_LINKLOCAL(&i->ip6))
		return false;
	return (i->flags & up) == up && !(i->flags & IFF_POINTOPOINT) && !is_inner_bridge(i->name);
}

/* Has the interface an earlier address in the list? The lane's is the first; IPv4 comes first. */
static bool is_listed_before(const struct weft_udp_iface *all, int i)
{
	for (int k = 0; k < i; k++)
		if (strcmp(all[k].name, all[i].name) == 0 && is_default(&all[k]))
			return true;
	return false;
}

int weft_udp_list(weft_lane_resource_cb add, void *arg)
{
	struct weft_udp_iface *all = NULL;
	int n = iface_list(&all), rc = n < 0 ? n : 0;

	for (int i = 0; rc == 0 && i < n; i++)
		if (is_default(&all[i]) && !is_listed_before(all, i))
			rc = add(arg, &(struct weft_lane_resource){
					      .name = all[i].name,
					      .inside = all[i].flags & IFF_LOOPBACK,
				      });
	free(all);
	return rc;
}

static int iface_ioctl(int fd, const char *name, unsigned long request, struct ifreq *r)
{
	memset(r, 0, sizeof(*r));
	snprintf(r->ifr_name, sizeof(r->ifr_name), "%s", name);
	return ioctl(fd, request, r) < 0 ? -errno : 0;
}

/* @param fd  any socket. @return MTU, or a negative error */
static int iface_mtu(int fd, const char *name)
{
	struct ifreq r;
	int err = iface_ioctl(fd, name, SIOCGIFMTU, &r);

	return err < 0 ? err : r.ifr_mtu;
}

/* @param fd  any socket. @return IFF_* flags, or a negative error */
static int iface_flags(int fd, const char *name)
{
	struct ifreq r;
	int err = iface_ioctl(fd, name, SIOCGIFFLAGS, &r);

	return err < 0 ? err : (unsigned short)r.ifr_flags;
}

/* @return bytes/s as the interface reports; 0 = not known */
static double iface_speed(const char *name)
{
	char path[128];
	long mbit = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%ld", &mbit) != 1 || mbit < 0)
		mbit = 0;
	fclose(f);
	return (double)mbit * 1e6 / 8;
}

static const char *ip_text(uint32_t ip, const struct in6_addr *ip6, char *buf, size_t size)
{
	struct in_addr a = {.s_addr = htonl(ip)};

	return ip != 0 ? inet_ntop(AF_INET, &a, buf, (socklen_t)size)
		       : inet_ntop(AF_INET6, ip6, buf, (socklen_t)size);
}

/* ---- routes --------------------------------------------------------------------------------- */

/*
 * Does a route lead from this interface to @p ip?
 * @return 0, or -EHOSTUNREACH with a sentence in @p why
 */
static int route_check(struct weft_udp *u, uint32_t ip, char *why, size_t why_len)
{
	const struct in_addr src = {htonl(u->ip)}, dst = {htonl(ip)};
	const struct in6_addr *dst6 = u->fp.hosts ? weft_hosts_ip(u->fp.hosts, ip) : NULL;
	char text[INET6_ADDRSTRLEN];

	/* True also if the kernel does not answer: frames then show if there is a route. */
	if (dst6 ? weft_netlink_has_route(u->if_index, AF_INET6, u->fp.ip6, dst6)
		 : weft_netlink_has_route(u->if_index, AF_INET, &src, &dst))
		return 0;
	snprintf(why, why_len,
		 "no route leads from interface %s to %s: check its subnet, or add one "
		 "(ip route add ... dev %s)",
		 u->name, ip_text(dst6 ? 0 : ip, dst6, text, sizeof(text)), u->name);
	return -EHOSTUNREACH;
}

#define FRAME_BUFS_MIN (2 * WEFT_UDP_MSGS * WEFT_UDP_SEGS - 1u)

#define LATENCY 12e-6      /* s, one way over a veth: a guess until a connection measures it */
#define IDLE_WAIT 1000000u /* ns between two polls of a port without connections */
#define SPEED 1.25e9       /* bytes/s, if the interface reports none */
#define TX_DEPTH 512u
/* Bytes that the kernel's structures take in a receive buffer, in addition to each datagram. */
#define CHARGE 768u

/* ---- events --------------------------------------------------------------------------------- */

static int main_fd(const struct weft_udp *u)
{
	return u->sock[u->listens % WEFT_UDP_PORTS].fd;
}

static bool udp_link_up(struct weft_frame_port *fp)
{
	const struct weft_udp *u = weft_udp_of(fp);
	int flags = iface_flags(main_fd(u), u->name);

	return flags >= 0 && (flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

static void udp_link_text(struct weft_frame_port *fp, char *buf, size_t size)
{
	const struct weft_udp *u = weft_udp_of(fp);
	int flags = iface_flags(main_fd(u), u->name);

	if (flags < 0)
		snprintf(buf, size, "interface %s is gone", u->name);
	else if (!(flags & IFF_UP))
		snprintf(buf, size, "on this side: interface %s is down (ip link set dev %s up)",
			 u->name, u->name);
	else if (!(flags & IFF_RUNNING))
		snprintf(buf, size,
			 "on the other side, or between: interface %s is up, but has no carrier",
			 u->name);
	else
		buf[0] = '\0';
}

/* An interface that is deleted and made again has another index, which the sockets must get. */
static enum weft_frame_port_what udp_look(struct weft_frame_port *fp,
					  struct weft_frame_port_event *event)
{
	struct weft_udp *u = weft_udp_of(fp);
	unsigned int index = if_nametoindex(u->name);
	bool up = udp_link_up(fp);

	if (index != 0 && index != u->if_index) {
		u->if_index = index;
		weft_udp_sock_iface(u);
	}
	if (up == u->link_up)
		return WEFT_FRAME_PORT_NOTHING;
	u->link_up = up;
	if (!up) {
		udp_link_text(fp, event->text, sizeof(event->text));
		return WEFT_FRAME_PORT_LINK_DOWN;
	}
	snprintf(event->text, sizeof(event->text), "interface %s is up", u->name);
	return WEFT_FRAME_PORT_LINK_UP;
}

static int udp_wait_fd(struct weft_frame_port *fp)
{
	return weft_udp_of(fp)->epoll;
}

/* Only frames in the port's queue prevent sleeping: a datagram in a socket wakes the sleeper. */
static int udp_arm(struct weft_frame_port *fp, uint64_t *within)
{
	(void)within;
	return weft_udp_of(fp)->rx.count > 0 ? -EBUSY : 0;
}

static void udp_disarm(struct weft_frame_port *fp)
{
	(void)fp;
}

static int udp_reach(struct weft_frame_port *fp, uint32_t ip, char *why, size_t why_len)
{
	return route_check(weft_udp_of(fp), ip, why, why_len);
}

/* Gives the helper the payload of @p frame, and the addresses of both sockets. */
static void udp_farewell(struct weft_frame_port *fp, uint16_t *slot, const uint8_t *frame,
			 uint32_t len)
{
	struct weft_farewell_way way = {.kind = WEFT_FAREWELL_UDP};
	struct weft_udp *u = weft_udp_of(fp);
	union weft_udp_sockaddr from, to;
	struct weft_udp_sent sent = {0};

	static_assert(sizeof(from) == sizeof(way.from), "the same members");
	if (!u->farewells)
		return;
	if (len > 0) {
		weft_udp_read(frame, &sent);
		if (weft_udp_to(u, u->ip, sent.way.src_port, &from) > 0 &&
		    weft_udp_to(u, sent.way.dst_ip, sent.way.dst_port, &to) > 0) {
			memcpy(&way.from, &from, sizeof(from));
			memcpy(&way.to, &to, sizeof(to));
			frame += WEFT_UDP_HEAD;
			len -= WEFT_UDP_HEAD;
		} else {
			len = 0; /* the IPv6 host has lost its number */
		}
	}
	weft_farewell_set(&way, slot, frame, len);
}

static void udp_counters(struct weft_frame_port *fp, weft_frame_port_counter_cb cb, void *arg)
{
	const struct weft_udp *u = weft_udp_of(fp);

#define REPORT(field, name, help) cb(name, u->stats.field, arg);
	WEFT_UDP_COUNTERS(REPORT)
#undef REPORT
#define REPORT(field, name, help) cb(name, u->field, arg);
	WEFT_UDP_LEVELS(REPORT)
#undef REPORT
}

static void udp_close(struct weft_frame_port *fp)
{
	struct weft_udp *u = weft_udp_of(fp);

	if (u->farewells)
		weft_farewell_end();
	weft_udp_sock_close(u);
	weft_udp_rx_fini(u);
	weft_frame_pools_free(fp);
	free(u->fp.hosts);
	free(u);
}

static const struct weft_frame_port_ops udp_ops = {
	.rx_burst = weft_udp_rx,
	.tx_burst = weft_udp_tx,
	.link_up = udp_link_up,
	.link_text = udp_link_text,
	.look = udp_look,
	.wait_fd = udp_wait_fd,
	.arm = udp_arm,
	.disarm = udp_disarm,
	.reach = udp_reach,
	.alone = weft_udp_alone,
	.farewell = udp_farewell,
	.counters = udp_counters,
	.missed = weft_udp_missed,
	.close = udp_close,
};

/* ---- open ----------------------------------------------------------------------------------- */

static int make_pools(struct weft_udp *u, const struct weft_udp_opts *o, char *why, size_t why_len)
{
	struct weft_frame_pools conf = {
		.name = "udp",
		.frames = o->rx_bufs,
		.least = FRAME_BUFS_MIN,
		.no_extbuf = o->no_extbuf,
	};

	if (weft_frame_pools_make(&u->fp, &conf) == 0)
		return 0;
	snprintf(why, why_len,
		 "udp:%s: no memory for %u buffers of %u bytes (every lane has its own): give the "
		 "EAL more (-m MB), or set WEFT_RX_BUFS lower",
		 u->name, conf.frames, conf.room);
	return -ENOMEM;
}

/* Is this the address in the options? If they have none: may the lane have this address? */
static bool is_chosen(const struct weft_udp_iface *i, const struct weft_udp_opts *o)
{
	if (!IN6_IS_ADDR_UNSPECIFIED(&o->ip6))
		return i->ip == 0 && IN6_ARE_ADDR_EQUAL(&i->ip6, &o->ip6);
	if (o->ip != 0)
		return i->ip == o->ip;
	return i->ip != 0 || !IN6_IS_ADDR_LINKLOCAL(&i->ip6);
}

static int take_iface(struct weft_udp *u, const struct weft_udp_iface *i,
		      struct weft_udp_addr *addr)
{
	snprintf(u->name, sizeof(u->name), "%s", i->name);
	u->if_index = i->index;
	u->ip = i->ip;
	if (i->ip == 0) {
		u->fp.hosts = weft_hosts_new(&i->ip6);
		if (!u->fp.hosts)
			return -ENOMEM;
		u->ip = weft_hosts_number(u->fp.hosts, &i->ip6);
		memcpy(u->fp.ip6, &i->ip6, sizeof(u->fp.ip6));
		u->fp.prefix6 = i->prefix;
	}
	*addr = (struct weft_udp_addr){.ip = u->ip, .prefix = i->ip != 0 ? i->prefix : 8};
	return 0;
}

static int find_iface(struct weft_udp *u, const char *name, const struct weft_udp_opts *o,
		      struct weft_udp_addr *addr, char *why, size_t why_len)
{
	bool given = o->ip != 0 || !IN6_IS_ADDR_UNSPECIFIED(&o->ip6);
	struct weft_udp_iface *all = NULL;
	char text[INET6_ADDRSTRLEN];
	int n = iface_list(&all), i, err = -ENODEV;

	for (i = 0; i < n; i++)
		if (strcmp(all[i].name, name) == 0 && is_chosen(&all[i], o))
			break;
	if (i < n)
		err = take_iface(u, &all[i], addr);
	free(all);
	if (n < 0)
		err = n;
	if (err != 0 && err != -ENODEV)
		snprintf(why, why_len,
			 "udp:%s: the interface's addresses can't be read: %s; raise the limit on "
			 "open files (ulimit -n), or free memory",
			 name, strerror(-err));
	if (err != -ENODEV)
		return err;
	if (if_nametoindex(name) == 0)
		snprintf(why, why_len,
			 "udp:%s: there is no interface of this name here (ip -br addr lists them)",
			 name);
	else if (given)
		snprintf(why, why_len, "udp:%s: ip=%s is not an address of this interface", name,
			 ip_text(o->ip, &o->ip6, text, sizeof(text)));
	else
		snprintf(why, why_len,
			 "udp:%s: the interface has no IPv4 address, and no IPv6 address other "
			 "than a link-local one (ip addr add ADDRESS/BITS dev %s)",
			 name, name);
	return -ENODEV;
}

static int choose_frame(struct weft_udp *u, const struct weft_udp_opts *o, char *why,
			size_t why_len)
{
	int mtu = iface_mtu(main_fd(u), u->name);
	uint32_t size;

	if (mtu < 0) {
		snprintf(why, why_len, "udp:%s: the MTU is not known: %s", u->name, strerror(-mtu));
		return mtu;
	}
	if (o->mtu > mtu) {
		snprintf(why, why_len,
			 "udp:%s: mtu=%u is more than the interface's %d (ip link set dev %s mtu "
			 "%u)",
			 u->name, o->mtu, mtu, u->name, o->mtu);
		return -EINVAL;
	}
	size = (o->mtu != 0 ? o->mtu : (uint32_t)mtu) + RTE_ETHER_HDR_LEN;
	if (u->fp.hosts) /* the engine's headers are those of IPv4 */
		size -= (uint32_t)(sizeof(struct rte_ipv6_hdr) - sizeof(struct rte_ipv4_hdr));
	if (o->frame_size != 0)
		size = RTE_MIN(size, o->frame_size);
	u->fp.frame_size = (uint16_t)RTE_MIN(size, WEFT_FRAME_SIZE_MAX);
	return 0;
}

static void fill_port(struct weft_udp *u, const struct weft_udp_opts *o)
{
	struct weft_frame_port *fp = &u->fp;
	socklen_t len = sizeof(int);
	struct ifreq r;
	int rcvbuf = 0;

	fp->ops = &udp_ops;
	snprintf(fp->name, sizeof(fp->name), "%s", u->name);
	snprintf(fp->device, sizeof(fp->device), "%s", u->name);
	fp->flags = WEFT_FRAME_PORT_RX_CSUM | WEFT_FRAME_PORT_TX_CSUM | WEFT_FRAME_PORT_MULTISEG |
		    WEFT_FRAME_PORT_MEASURE | WEFT_FRAME_PORT_GUESS | WEFT_FRAME_PORT_COPIES |
		    WEFT_FRAME_PORT_SOCKET | WEFT_FRAME_PORT_RX_OWN |
		    (o->no_extbuf ? 0 : WEFT_FRAME_PORT_EXTBUF);
	weft_udp_mac(u->ip, fp->mac);
	/* The other end of a tap is a program of this host, with the tap's MAC address. */
	if (!has(u->name, "tun_flags") && iface_ioctl(main_fd(u), u->name, SIOCGIFHWADDR, &r) == 0)
		memcpy(fp->kernel_mac, r.ifr_hwaddr.sa_data, sizeof(fp->kernel_mac));
	fp->socket = SOCKET_ID_ANY;
	fp->tx_depth = TX_DEPTH;
	/* The kernel takes about as long for a message of one frame as to copy 16 frames. */
	if (u->gso)
		fp->tx_batch = (uint16_t)RTE_MIN(WEFT_UDP_BYTES / (fp->frame_size - WEFT_UDP_HEAD),
						 WEFT_UDP_SEGS);
	getsockopt(main_fd(u), SOL_SOCKET, SO_RCVBUF, &rcvbuf, &len);
	/* The option reads the bytes that datagrams may take, the kernel's structures included. */
	fp->rx_depth = (uint16_t)RTE_MIN(RTE_MAX((uint32_t)rcvbuf / (fp->frame_size + CHARGE), 8u),
					 UINT16_MAX);
	fp->bandwidth = iface_speed(u->name);
	if (!(fp->bandwidth > 0))
		fp->bandwidth = SPEED;
	fp->latency = LATENCY;
	fp->idle_wait = IDLE_WAIT;
	fp->link = WEFT_LANE_LINK_HOST;
	fp->udp_port = u->listens;
	fp->path_ports = (struct weft_port_range){
		.first = u->block,
		.mask = (uint16_t) ~(WEFT_UDP_PORTS - 1u),
	};
	u->link_up = udp_link_up(fp);
}

int weft_udp_open(const char *name, const struct weft_udp_opts *o, struct weft_frame_port **port,
		  struct weft_udp_addr *addr, char *why, size_t why_len)
{
	struct weft_udp *u = calloc(1, sizeof(*u));
	int err;

	if (!u) {
		snprintf(why, why_len, "udp:%s: out of memory", name);
		return -ENOMEM;
	}
	u->epoll = -1;
	err = find_iface(u, name, o, addr, why, why_len);
	if (err != 0) {
		free(u->fp.hosts);
		free(u);
		return err;
	}
	err = weft_udp_listen(u, o, why, why_len);
	if (err == 0)
		err = choose_frame(u, o, why, why_len);
	if (err == 0)
		err = make_pools(u, o, why, why_len);
	if (err == 0 && weft_udp_rx_init(u) != 0) {
		snprintf(why, why_len, "udp:%s: out of memory", name);
		err = -ENOMEM;
	}
	if (err != 0) {
		udp_close(&u->fp);
		return err;
	}
	fill_port(u, o);
	u->farewells = o->farewells && weft_farewell_begin(WEFT_FAREWELL_UDP);
	*port = &u->fp;
	return 0;
}
