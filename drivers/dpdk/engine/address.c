/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "base/bytes.h"
#include "engine/address.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "frame/arp.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "lane.h"

static const uint8_t no_ip6[16];

static bool has_ip6(const struct raw_iface *iface)
{
	return iface->port->hosts != NULL;
}

/* ---------------------------------------------------------------- attributes */

/* Costs per message in s, with which protocol selection starts; measured on memif, 2.5 GHz. */
#define SEND_OVERHEAD 60e-9
#define RECV_OVERHEAD 60e-9
#define MAX_IOV 4u

/* Cost of a registration until some were measured: seconds for the call, seconds per byte. */
#define REG_COST 20e-6
#define REG_GROWTH 0.1e-9

void raw_fill_numbers(struct raw_iface *iface)
{
	const struct weft_frame_port *port = iface->port;
	struct weft_lane_attr *a = &iface->base.attr;
	bool guess = port->flags & WEFT_FRAME_PORT_GUESS;

	if (a->features & WEFT_LANE_F_BW_SET)
		return;
	a->bandwidth = port->bandwidth > 0  ? port->bandwidth
		       : iface->copy_bw > 0 ? iface->copy_bw
					    : 10e9;
	a->bandwidth *= (double)a->max_bcopy / iface->frame_size;
	a->bandwidth_known = port->bandwidth > 0 && !guess;
	if (port->bandwidth > 0)
		a->bandwidth_from = guess ? "a guess until measured" : "link speed";
	else
		a->bandwidth_from = iface->copy_bw > 0 ? "copy rate of this CPU" : "default";
}

static void fill_costs(struct raw_iface *iface)
{
	const struct weft_frame_port *port = iface->port;
	struct weft_lane_attr *a = &iface->base.attr;

	a->latency = port->latency;
	a->send_overhead = SEND_OVERHEAD;
	a->recv_overhead = RECV_OVERHEAD;
	if (port->flags & WEFT_FRAME_PORT_MEASURE)
		a->latency_from = "a guess until measured";
	if (port->flags & WEFT_FRAME_PORT_COPIES)
		a->features |= WEFT_LANE_F_COPIES;
	if (port->flags & WEFT_FRAME_PORT_MEMORY)
		a->features |= WEFT_LANE_F_MEMORY;
}

static void needs_registration(struct raw_iface *iface)
{
	struct weft_lane_attr *a = &iface->base.attr;

	a->features |= WEFT_LANE_F_ZCOPY_REG;
	a->reg_cost = REG_COST;
	a->reg_growth = REG_GROWTH;
	a->domain = iface->port->mem_domain;
}

static bool sends_user_memory(const struct raw_iface *iface)
{
	uint32_t flags = iface->port->flags;

	return iface->conf.zcopy && (flags & WEFT_FRAME_PORT_EXTBUF) &&
	       (flags & WEFT_FRAME_PORT_MULTISEG);
}

/*
 * For ports that copy each frame in a system call (af_packet, UDP sockets): a send from user memory
 * saves one of four copies. It costs one more acknowledgement, and so a system call at either end.
 * Messages between two hosts by MPI over a veth:
 *  - 8 KiB took 14.5 us one way, and 10.9 us when copied (af_packet, 4 rounds, a loaded machine);
 *  - 4 MiB had 1.19 (af_packet) and 1.15 times (UDP) the bandwidth of copies (5 trials, quiet).
 * The limit is between these lengths.
 */
#define COPYING_MIN_ZCOPY (64u << 10)

static size_t shortest_from_user_memory(const struct raw_iface *iface)
{
	uint32_t flags = iface->port->flags;
	bool copies = (flags & WEFT_FRAME_PORT_COPIES) && !(flags & WEFT_FRAME_PORT_MEMORY);

	return copies ? COPYING_MIN_ZCOPY : 0;
}

static void steering_note(struct raw_iface *iface)
{
	const struct weft_steering *s = &iface->port->steering;
	const char *how = "flow rules bring its frames";

	if (s->queues < 2)
		return;
	if (s->hashed)
		how = s->rss ? "the NIC's hash, which its driver reports, brings frames"
			     : "the NIC's hash brings frames; ports are found by trying";
	snprintf(iface->note, sizeof(iface->note), "queue %u of %u on UDP port %u: %s", s->queue,
		 s->queues, iface->rx_filter.udp_port, how);
	iface->base.note = iface->note;
}

void raw_fill_attr(struct raw_iface *iface)
{
	const struct weft_frame_port *port = iface->port;
	struct weft_lane_attr *a = &iface->base.attr;
	uint32_t room = iface->frame_size - iface->encap_len -
			(uint32_t)sizeof(struct weft_frame_hdr) - 4 -
			(uint32_t)sizeof(struct weft_frame_msg);
	uint32_t small = rte_pktmbuf_data_room_size(port->hdr_pool) - RTE_PKTMBUF_HEADROOM -
			 RAW_HEAD_MAX - 4;

	*a = (struct weft_lane_attr){
		.features = WEFT_LANE_F_SHORT | WEFT_LANE_F_BCOPY | WEFT_LANE_F_TO_IFACE,
		.max_short = room,
		.max_bcopy = room,
		.opt_align = 1,
		.frame_size = iface->frame_size,
		.dev_addr_len = has_ip6(iface) ? RAW_ADDR6_LEN : RAW_ADDR_LEN,
		.link = port->link,
	};
	a->device = port->device;
	raw_fill_numbers(iface);
	fill_costs(iface);
	if (sends_user_memory(iface)) {
		a->features |= WEFT_LANE_F_ZCOPY;
		a->max_zcopy = room;
		a->max_zcopy_hdr = RTE_MIN(small, 128u);
		a->min_zcopy = shortest_from_user_memory(iface);
		a->max_iov = MAX_IOV;
		if (port->flags & WEFT_FRAME_PORT_REG)
			needs_registration(iface);
	}
	steering_note(iface);
}

/* ---------------------------------------------------------------- address */

#define ADDR_VERSION 1
#define ADDR_VERSION_IP6 2

static_assert(sizeof(struct weft_frame_addr) == RAW_ADDR_LEN, "address of an iface");
static_assert(sizeof(struct weft_frame_addr) + sizeof(struct weft_frame_addr6) == RAW_ADDR6_LEN,
	      "address of an iface with IPv6");

static void put_ip6(const struct weft_frame_addr *w, const uint8_t ip6[16], uint8_t prefix,
		    void *buf)
{
	struct weft_frame_addr6 six = {.prefix = prefix};

	memcpy(six.ip6, ip6, sizeof(six.ip6));
	memcpy(buf, w, sizeof(*w));
	memcpy((uint8_t *)buf + sizeof(*w), &six, sizeof(six));
}

void raw_get_address(struct weft_lane_iface *base, void *buf)
{
	const struct raw_iface *iface = raw_iface_of(base);
	const struct weft_steering *s = &iface->port->steering;
	struct weft_frame_addr w = {
		.version = ADDR_VERSION,
		.flags = iface->rx_filter.raw_ethertype ? WEFT_FRAME_ADDR_F_ETHER : 0,
		.udp_port = weft_put16(iface->rx_filter.udp_port),
		.vlan = weft_put16(iface->rx_filter.vlan),
		.frame_size = weft_put16(iface->frame_size),
		.ip = weft_put32(iface->rx_filter.ip),
		.prefix = iface->prefix,
		.queues = s->hashed ? (uint8_t)s->queues : 0,
		.iface_id = weft_put64(iface->iface_id),
	};

	memcpy(w.mac, iface->rx_filter.mac, sizeof(w.mac));
	if (!has_ip6(iface)) {
		memcpy(buf, &w, sizeof(w));
		return;
	}
	/* An IPv6 iface's IPv4 address is a number of this end only. Discovery finds its MAC. */
	w.version = ADDR_VERSION_IP6;
	w.flags = WEFT_FRAME_ADDR_F_IPV6;
	w.ip = weft_put32(0);
	w.prefix = 0;
	memset(w.mac, 0, sizeof(w.mac));
	put_ip6(&w, iface->port->ip6, iface->port->prefix6, buf);
}

/* An iface in a boot address: boot_unpack() makes a struct weft_frame_addr from it. */
struct boot_wire {
	weft_le32 ip;
	weft_le16 udp_port, vlan, frame_size;
	uint8_t mac[6];
	uint8_t prefix, queues;
} __attribute__((packed));

/* With IPv6: until ADDRESS comes, the reader assumes its own iface's frame size, and no VLAN. */
struct boot6_wire {
	uint8_t ip6[16];
	weft_le16 udp_port;
	uint8_t queues;
} __attribute__((packed));

static_assert(sizeof(struct boot_wire) <= WEFT_LANE_BOOT_MAX, "boot address of an iface");
static_assert(sizeof(struct boot6_wire) <= WEFT_LANE_BOOT_MAX, "boot address with IPv6");

static void boot6_pack(const struct raw_iface *iface, struct weft_lane_boot *boot)
{
	struct boot6_wire b = {.udp_port = weft_put16(iface->rx_filter.udp_port)};

	memcpy(b.ip6, iface->port->ip6, sizeof(b.ip6));
	boot->variant = WEFT_FRAME_ADDR_F_IPV6;
	boot->length = sizeof(b);
	memcpy(boot->bytes, &b, sizeof(b));
}

static int boot6_unpack(const struct raw_iface *iface, const struct weft_lane_boot *boot,
			uint64_t iface_id, void *addr)
{
	struct weft_frame_addr a = {
		.version = ADDR_VERSION_IP6,
		.flags = WEFT_FRAME_ADDR_F_IPV6,
		.frame_size = weft_put16(iface->frame_size),
		.iface_id = weft_put64(iface_id),
	};
	struct boot6_wire b;

	if (boot->length != sizeof(b))
		return -EINVAL;
	memcpy(&b, boot->bytes, sizeof(b));
	a.udp_port = b.udp_port;
	a.queues = b.queues;
	put_ip6(&a, b.ip6, 0, addr);
	return 0;
}

static void boot_pack(struct weft_lane_iface *base, struct weft_lane_boot *boot)
{
	struct weft_frame_addr a;
	struct boot_wire b;

	if (has_ip6(raw_iface_of(base))) {
		boot6_pack(raw_iface_of(base), boot);
		return;
	}
	raw_get_address(base, &a);
	b = (struct boot_wire){
		.ip = a.ip,
		.udp_port = a.udp_port,
		.vlan = a.vlan,
		.frame_size = a.frame_size,
		.prefix = a.prefix,
		.queues = a.queues,
	};
	memcpy(b.mac, a.mac, sizeof(b.mac));
	boot->variant = a.flags;
	boot->length = sizeof(b);
	memcpy(boot->bytes, &b, sizeof(b));
}

static int boot_unpack(struct weft_lane_iface *iface, const struct weft_lane_boot *boot,
		       uint64_t iface_id, void *addr)
{
	struct boot_wire b;
	struct weft_frame_addr a;

	if (boot->variant == WEFT_FRAME_ADDR_F_IPV6)
		return boot6_unpack(raw_iface_of(iface), boot, iface_id, addr);
	if (boot->length != sizeof(b) || boot->variant & ~WEFT_FRAME_ADDR_F_ETHER)
		return -EINVAL;
	memcpy(&b, boot->bytes, sizeof(b));
	a = (struct weft_frame_addr){
		.version = ADDR_VERSION,
		.flags = boot->variant,
		.udp_port = b.udp_port,
		.vlan = b.vlan,
		.frame_size = b.frame_size,
		.ip = b.ip,
		.prefix = b.prefix,
		.queues = b.queues,
		.iface_id = weft_put64(iface_id),
	};
	memcpy(a.mac, b.mac, sizeof(a.mac));
	memcpy(addr, &a, sizeof(a));
	return 0;
}

const struct weft_lane_boot_ops weft_raw_boot_ops = {
	.kind = WEFT_LANE_BOOT_DPDK,
	.also = WEFT_LANE_BOOT_UDP,
	.pack = boot_pack,
	.unpack = boot_unpack,
};

const struct weft_lane_boot_ops weft_udp_boot_ops = {
	.kind = WEFT_LANE_BOOT_UDP,
	.also = WEFT_LANE_BOOT_DPDK,
	.pack = boot_pack,
	.unpack = boot_unpack,
};

static int addr_read(const void *buf, size_t len, struct raw_addr *a)
{
	const struct weft_frame_addr *w = buf;
	bool six;

	if (len < sizeof(*w))
		return -EINVAL;
	six = w->version == ADDR_VERSION_IP6 && w->flags == WEFT_FRAME_ADDR_F_IPV6;
	if (six ? len < RAW_ADDR6_LEN
		: w->version != ADDR_VERSION || w->flags & ~WEFT_FRAME_ADDR_F_ETHER)
		return -EINVAL;
	*a = (struct raw_addr){
		.version = w->version,
		.raw_ethertype = w->flags & WEFT_FRAME_ADDR_F_ETHER,
		.udp_port = weft_get16(w->udp_port),
		.vlan = weft_get16(w->vlan),
		.frame_size = weft_get16(w->frame_size),
		.ip = weft_get32(w->ip),
		.prefix = w->prefix,
		.queues = w->queues,
		.iface_id = weft_get64(w->iface_id),
	};
	memcpy(a->mac, w->mac, sizeof(a->mac));
	if (six) {
		memcpy(a->ip6, ((const struct weft_frame_addr6 *)(w + 1))->ip6, sizeof(a->ip6));
		a->prefix = ((const struct weft_frame_addr6 *)(w + 1))->prefix;
		a->six = true;
	}
	return 0;
}

int raw_addr_take(const struct raw_iface *iface, const void *buf, size_t len, struct raw_addr *a)
{
	int err = addr_read(buf, len, a);

	if (err == 0 && a->six != has_ip6(iface))
		return -EAFNOSUPPORT;
	if (err == 0 && a->six)
		a->ip = weft_hosts_number(iface->port->hosts, a->ip6);
	return err;
}

static bool is_on_link(const struct raw_iface *iface, uint32_t ip)
{
	const struct in6_addr *ip6;

	if (!iface->rx_filter.six)
		return weft_lane_same_net(ip, iface->rx_filter.ip, iface->prefix);
	ip6 = weft_hosts_ip(iface->port->hosts, ip);
	return ip6 && (weft_ip6_is_link_local(ip6->s6_addr) ||
		       weft_ip6_same_net(ip6->s6_addr, iface->port->ip6, iface->port->prefix6));
}

/* A static neighbour is on the link, whatever its address is. UDP sockets need no next hop. */
int raw_next_hop(const struct raw_iface *iface, uint32_t ip, uint32_t *hop)
{
	if (iface->port->ops->reach || weft_arp_is_fixed(&iface->arp, ip))
		*hop = ip;
	else if (is_on_link(iface, ip))
		*hop = ip;
	else if (iface->gateway != 0)
		*hop = iface->gateway;
	else
		return -EHOSTUNREACH;
	return 0;
}

const char *raw_ip_hint(const struct raw_iface *iface)
{
	if (!iface->no_ip || iface->rx_filter.raw_ethertype ||
	    iface->port->flags & WEFT_FRAME_PORT_MEMORY)
		return "";
	return "; without ip= this lane has a link-local address, which clouds and most networks "
	       "drop: give ip= and gw= of this NIC (weft-info --lane-options, doc/clouds.md)";
}

static const char *ip6_text(const uint8_t ip6[16], char *buf, size_t size)
{
	return inet_ntop(AF_INET6, ip6, buf, (socklen_t)size) ? buf : "?";
}

static void ip_text(uint32_t ip, char *buf, size_t size)
{
	snprintf(buf, size, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
}

void raw_ip_text(const struct raw_iface *iface, uint32_t ip, char *buf, size_t size)
{
	const void *ip6 = has_ip6(iface) ? weft_hosts_ip(iface->port->hosts, ip) : NULL;

	if (ip6)
		snprintf(buf, size, "%s",
			 ip6_text(ip6, (char[INET6_ADDRSTRLEN]){0}, INET6_ADDRSTRLEN));
	else
		ip_text(ip, buf, size);
}

static int take_explained(const struct raw_iface *iface, const void *addr, size_t len,
			  struct raw_addr *a, char *why, size_t why_len)
{
	int err = raw_addr_take(iface, addr, len, a);

	if (err == -EAFNOSUPPORT) {
		snprintf(
			why, why_len,
			"one end has an IPv4 address, the other an IPv6 address: choose two of one "
			"kind with ip=");
		return -EHOSTUNREACH;
	}
	if (err != 0)
		snprintf(why, why_len,
			 "the address is of another version of this driver: use one version of "
			 "Weft at both ends");
	if (err == 0 && a->six && a->ip == 0) {
		snprintf(why, why_len,
			 "connections with other hosts leave no room for one more: close some, or "
			 "use another interface");
		return -ENOSPC;
	}
	return err;
}

/* Frames of a port of DPDK leave this host, and the kernel takes no frame that its host sends. */
static bool is_past_kernel(const struct raw_iface *iface, const struct raw_addr *a)
{
	static const uint8_t no_mac[6];
	const uint8_t *mac = iface->port->kernel_mac;
	uint32_t ip = iface->port->kernel_ip;

	if (memcmp(mac, no_mac, sizeof(no_mac)) != 0 && memcmp(mac, a->mac, sizeof(no_mac)) == 0)
		return true;
	return ip != 0 && ip == a->ip && ip != iface->rx_filter.ip && !a->six;
}

int raw_is_reachable(struct weft_lane_iface *base, const void *addr, size_t len, char *why,
		     size_t why_len)
{
	const struct raw_iface *iface = raw_iface_of(base);
	char ours[INET6_ADDRSTRLEN], theirs[INET6_ADDRSTRLEN];
	struct raw_addr a;
	uint32_t hop;
	int err;

	if (iface->ended != 0) {
		snprintf(why, why_len, "%s", iface->ended_why);
		return iface->ended;
	}
	err = take_explained(iface, addr, len, &a, why, why_len);
	if (err != 0)
		return err;
	if (a.iface_id == iface->iface_id) {
		snprintf(why, why_len, "a raw lane does not reach its own interface");
		return -EHOSTUNREACH;
	}
	if (a.raw_ethertype != iface->rx_filter.raw_ethertype) {
		snprintf(why, why_len,
			 "one end uses UDP, the other its own ethertype: set WEFT_ENCAP alike at "
			 "both ends");
		return -EHOSTUNREACH;
	}
	if (a.raw_ethertype)
		return 0;
	raw_ip_text(iface, iface->rx_filter.ip, ours, sizeof(ours));
	raw_ip_text(iface, a.ip, theirs, sizeof(theirs));
	if (is_past_kernel(iface, &a)) {
		snprintf(why, why_len,
			 "the peer is on this host's interface, too, and one end uses sockets, the "
			 "other a port of DPDK: no frame passes between them; use the driver udp "
			 "at both ends");
		return -EHOSTUNREACH;
	}
	if (iface->port->ops->reach && a.ip == iface->rx_filter.ip &&
	    a.udp_port != iface->rx_filter.udp_port)
		return 0; /* another process of this host */
	if (a.six ? a.ip6[0] == 0xff || memcmp(a.ip6, no_ip6, sizeof(no_ip6)) == 0
		  : !weft_lane_is_unicast(a.ip)) {
		snprintf(why, why_len, "%s is no unicast address: check ip= of the peer", theirs);
		return -EINVAL;
	}
	if (a.ip == iface->rx_filter.ip) {
		snprintf(why, why_len,
			 "the peer has our own IP address %s: give one of the two another ip=",
			 ours);
		return -EHOSTUNREACH;
	}
	if (iface->port->ops->reach)
		return iface->port->ops->reach(iface->port, a.ip, why, why_len);
	if (raw_next_hop(iface, a.ip, &hop) != 0) {
		snprintf(why, why_len,
			 "%s is not in our subnet %s/%u and there is no gateway (gw=)%s", theirs,
			 ours, a.six ? iface->port->prefix6 : iface->prefix, raw_ip_hint(iface));
		return -EHOSTUNREACH;
	}
	return 0;
}

void weft_raw_print_address(const void *addr, size_t len, char *buf, size_t size)
{
	struct raw_addr a;
	char ip[INET6_ADDRSTRLEN];

	if (addr_read(addr, len, &a) != 0) {
		snprintf(buf, size, "(not a raw-DPDK address)");
		return;
	}
	ip_text(a.ip, ip, sizeof(ip));
	if (a.six)
		snprintf(buf, size, "%s/%u port %u vlan %u", ip6_text(a.ip6, ip, sizeof(ip)),
			 a.prefix, a.udp_port, a.vlan);
	else if (a.raw_ethertype)
		snprintf(buf, size, "%02x:%02x:%02x:%02x:%02x:%02x vlan %u", a.mac[0], a.mac[1],
			 a.mac[2], a.mac[3], a.mac[4], a.mac[5], a.vlan);
	else
		snprintf(buf, size, "%s/%u:%u vlan %u", ip, a.prefix, a.udp_port, a.vlan);
}

void raw_mac_text(const uint8_t mac[6], char text[RTE_ETHER_ADDR_FMT_SIZE])
{
	snprintf(text, RTE_ETHER_ADDR_FMT_SIZE, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1],
		 mac[2], mac[3], mac[4], mac[5]);
}

void raw_own_ip_text(const struct raw_iface *iface, char *text, size_t size)
{
	char ip[INET6_ADDRSTRLEN];

	raw_ip_text(iface, iface->rx_filter.ip, ip, sizeof(ip));
	if (iface->no_ip || iface->rx_filter.raw_ethertype ||
	    iface->port->flags & WEFT_FRAME_PORT_MEMORY)
		snprintf(text, size, "%s", raw_ip_hint(iface));
	else if (iface->port->ops->reach) /* UDP sockets: the address is this host's own */
		snprintf(text, size, " (weft-info --check finds out: weft-info(1))");
	else
		snprintf(text, size, ", and that ip=%s is this NIC's own (clouds drop others)", ip);
}

const char *raw_peer_text(const struct raw_conn *c, char *buf, size_t size)
{
	const struct weft_frame_port *port = c->iface->port;
	char mac[RTE_ETHER_ADDR_FMT_SIZE], text[INET6_ADDRSTRLEN];
	const void *ip6 = port->hosts ? weft_hosts_ip(port->hosts, c->peer_ip) : NULL;

	raw_mac_text(c->peer_mac, mac);
	if (ip6)
		snprintf(buf, size, "[%s]:%u", ip6_text(ip6, text, sizeof(text)), c->peer_port);
	else if (c->iface->rx_filter.raw_ethertype)
		snprintf(buf, size, "%s", mac);
	else
		snprintf(buf, size, "%u.%u.%u.%u:%u", c->peer_ip >> 24, c->peer_ip >> 16 & 255,
			 c->peer_ip >> 8 & 255, c->peer_ip & 255, c->peer_port);
	return buf;
}
