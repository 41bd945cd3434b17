/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_mbuf.h>

#include "base/container.h"
#include "engine/address.h"
#include "engine/build.h"
#include "engine/conn.h"
#include "engine/engine.h"
#include "engine/ep.h"
#include "engine/handshake.h"
#include "engine/iface.h"
#include "engine/lifetime.h"
#include "engine/liveness.h"
#include "engine/mtu.h"
#include "engine/multipath.h"
#include "engine/neighbour.h"
#include "engine/outstanding.h"
#include "engine/path_probe.h"
#include "engine/rx.h"
#include "engine/sealed.h"
#include "engine/sealed_frame.h"
#include "engine/telemetry.h"
#include "engine/tx.h"
#include "engine/window.h"
#include "frame/arp.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "frame/parse.h"
#include "lane.h"
#include "lane_attr.h"

/* The least data room of a small buffer. ACKs with long SACK blocks take a large buffer. */
#define CTL_ROOM 128u

/*
 * Full frames are collected before they go to the port, whose calls are expensive: a doorbell, or
 * vhost's locks and barriers. The receiver reads one batch while the sender writes the next.
 */
#define TX_BATCH_BYTES 32768u
#define TX_BATCH_MIN 4u
#define TX_BATCH_MAX 16u
#define TX_BATCH_PORT 48u /* of a port that states a number; the queue has room for a few more */

static const char *const counter_name[RAW_COUNTERS] = {
#define RAW_COUNTER_NAME(id, name, help) [id] = name,
	RAW_COUNTER_LIST(RAW_COUNTER_NAME)};

#define OF_PATH(value, name, help) {"conn#.path#." name, help, false},
#define OF_PATH_NOW(value, name, help) {"conn#.path#." name, help, true},
/* clang-format off */
const struct weft_lane_counter weft_raw_counter_help[] = {
	RAW_COUNTER_LIST(WEFT_COUNTER_HELP)
	RAW_LEVELS(WEFT_LEVEL_HELP)
	RAW_PATH_COUNTERS(OF_PATH)
	RAW_CC_COUNTERS(OF_PATH)
	RAW_PATH_LEVELS(OF_PATH_NOW)
	RAW_PATH_BAD_LEVEL(OF_PATH_NOW)
	RAW_CC_LEVELS(OF_PATH_NOW)
	WEFT_PORT_COUNTERS(WEFT_COUNTER_HELP)
	WEFT_DMA_COUNTERS(WEFT_COUNTER_HELP)
	WEFT_DMA_LEVELS(WEFT_LEVEL_HELP)
	WEFT_PORT_INTR_COUNTERS(WEFT_COUNTER_HELP)
	WEFT_MEMIF_COUNTERS(WEFT_COUNTER_HELP)
	WEFT_UDP_COUNTERS(WEFT_COUNTER_HELP)
	WEFT_UDP_LEVELS(WEFT_LEVEL_HELP)
	WEFT_COUNTER_HELP_END
};
/* clang-format on */

/* ---------------------------------------------------------------- progress */

#define IDLE_KICK 4096u
#define REST_NS 2000u

/*
 * The port reclaims sent buffers only when it is called: right after the last frame, and then at
 * growing intervals while nothing happens. Every IDLE_KICK polls it is called in any case, since a
 * port may have to attend to a peer that arrives late.
 *
 * If a poll of a port without connections takes longer than a message over shared memory, progress
 * calls leave it out for idle_wait.
 *
 * A poll of eight idle lanes takes as long as a message. So a lane next to others that has sent and
 * received nothing in IDLE_KICK polls is polled only every REST_NS.
 */
static void idle_poll(struct raw_iface *iface)
{
	unsigned int n = ++iface->idle_polls;

	if (unlikely(iface->port->event))
		raw_port_look(iface);
	if (iface->port->idle_wait && iface->conn_count == 0 && iface->txq.count == 0)
		iface->rest_until = iface->now + iface->port->idle_wait;
	else if (n >= IDLE_KICK && iface->base.beside && iface->txq.count == 0)
		iface->rest_until = iface->now + REST_NS;
	if (n % IDLE_KICK != 0 && ((n & (n - 1)) != 0 || !iface->tx_used))
		return;
	if (iface->port->ops->tx_kick)
		iface->port->ops->tx_kick(iface->port);
	if (n >= IDLE_KICK)
		iface->tx_used = false;
}

#define WAIT_POSTS 64u   /* messages for which a frame waits at most */
#define WAIT_LATE 50000u /* ns: a longer wait is worse than a system call for each message */
/* largest number of progress calls in which no frame waits, after late ones */
#define WAIT_SKIPS 4095u

/* After a late wait no frame waits for a time: the program is assumed to compute between sends. */
static void wait_over(struct raw_iface *iface, uint64_t now)
{
	struct raw_wait *w = &iface->wait;

	if (now - w->at > WAIT_LATE) {
		raw_count(iface, RAW_TX_WAITED_LATE);
		w->back = (uint16_t)RTE_MIN(2u * w->back + 1, WAIT_SKIPS);
		w->skip = w->back;
		w->skip_at = iface->now;
	} else if (w->back > 0) {
		w->back--;
	}
	w->at = 0;
}

/* @return true: progress calls leave the port out. A send ends that: its answer may come soon. */
static bool rests(const struct raw_iface *iface)
{
	return iface->idle_polls >= IDLE_KICK || iface->conn_count == 0;
}

static unsigned int raw_progress(struct weft_lane_iface *base, uint64_t now)
{
	struct raw_iface *iface = raw_iface_of(base);
	unsigned int n;

	if (now < iface->rest_until && rests(iface))
		return 0;
	raw_clocks(iface, now);
	raw_limits_progress(iface);
	iface->slept = false;
	iface->in_progress = true;
	iface->sent_first = base->tx_open;
	if (base->tx_open) {
		if (iface->wait.at != 0)
			wait_over(iface, now);
		raw_frames_close(iface);
		raw_txq_flush(iface);
	}
	n = raw_rx_poll(iface);
	if (n == 0)
		idle_poll(iface);
	else
		iface->idle_polls = 0;
	/* Received frames come before timers, but a ring that stays full must not delay these. */
	if (n == RAW_BURST && ++iface->full_bursts < 64)
		goto acks;
	iface->full_bursts = 0;
	if (unlikely(iface->tx_clock >= iface->next_tx_clock ||
		     iface->live_clock >= iface->next_live_clock))
		raw_timers(iface);
	if (unlikely(iface->share.pressed)) {
		iface->limits.bits |= 1u << RAW_LIMIT_BUFFERS;
		raw_share_take_back(iface);
	}
acks:
	if (!TAILQ_EMPTY(&iface->ack_list) &&
	    (iface->acks_now || iface->tx_clock >= iface->acks_due))
		raw_acks_send_due(iface);
	if (iface->txq.count > 0) {
		raw_txq_flush(iface);
		if (iface->txq.count > 0)
			iface->limits.bits |= 1u << RAW_LIMIT_PORT;
	}
	if (unlikely(!STAILQ_EMPTY(&iface->zc.released)))
		n += raw_zc_complete(iface);
	if (unlikely(!LIST_EMPTY(&iface->zc.waiting) && iface->now >= iface->zc.poll_at))
		n += raw_zc_poll(iface);
	iface->in_progress = false;
	weft_question_poll(iface->telemetry);
	return n + !TAILQ_EMPTY(&iface->tx_list);
}

/* After sends with WEFT_WORKER_F_SEND_NOW, `now` is still that of the last progress(). */
static void raw_tx_flush(struct weft_lane_iface *base)
{
	struct raw_iface *iface = raw_iface_of(base);

	if (!TAILQ_EMPTY(&iface->tx_list)) {
		iface->in_progress = true;
		raw_frames_close(iface);
		iface->in_progress = false;
		iface->wait.leave = false;
		iface->wait.opened = false;
		if (iface->wait.at != 0)
			wait_over(iface, iface->platform->now(iface->platform->arg));
	}
	if (iface->txq.count > 0)
		raw_txq_flush(iface);
	base->tx_open = iface->txq.count > 0 || !TAILQ_EMPTY(&iface->tx_list);
}

static bool frames_wait(struct raw_iface *iface)
{
	struct raw_wait *w = &iface->wait;
	uint64_t now;

	if (w->leave || TAILQ_EMPTY(&iface->tx_list))
		return false;
	if (!w->opened)
		return ++w->posts < WAIT_POSTS;
	w->opened = false;
	w->posts = 0;
	if (w->skip > 0 && w->skip_at != iface->now) {
		w->skip_at = iface->now;
		w->skip--;
	}
	if (w->skip_at == iface->now)
		return false;
	now = iface->platform->now(iface->platform->arg);
	if (w->at != 0)
		wait_over(iface, now);
	if (w->skip > 0)
		return false;
	w->at = now;
	raw_count(iface, RAW_TX_WAITED);
	return true;
}

/*
 * Each of many short messages in a frame of its own would cost a system call over most ports. So
 * frames may wait: doc/raw-lanes.md, "Frames that are shared".
 */
static void raw_tx_posted(struct weft_lane_iface *base)
{
	struct raw_iface *iface = raw_iface_of(base);

	if (frames_wait(iface)) {
		if (iface->txq.count > 0)
			raw_txq_flush(iface);
		return;
	}
	raw_tx_flush(base);
}

static void raw_release(struct weft_lane_iface *base, void *desc)
{
	struct raw_iface *iface = raw_iface_of(base);

	/* The callback that may keep this buffer has not returned: deliver_each() counts later. */
	if (unlikely(desc == iface->in_hand)) {
		iface->in_hand_back++;
		return;
	}
	iface->kept--;
	rte_pktmbuf_free(desc);
}

/* ---------------------------------------------------------------- cold operations */

static bool raw_link_up(struct weft_lane_iface *base)
{
	struct weft_frame_port *port = raw_iface_of(base)->port;

	return raw_iface_of(base)->ended == 0 && port->ops->link_up(port);
}

static void raw_link_text(struct weft_lane_iface *base, char *buf, size_t size)
{
	struct raw_iface *iface = raw_iface_of(base);

	if (iface->ended != 0)
		snprintf(buf, size, "%s", iface->ended_why);
	else
		weft_frame_port_link_text(iface->port, buf, size);
}

static void raw_report_counters(struct weft_lane_iface *base, weft_lane_counter_cb cb, void *arg)
{
	struct raw_iface *iface = raw_iface_of(base);
	char name[64];
	struct raw_conn *c;
	uint32_t at = 0;

	for (unsigned int i = 0; i < RAW_COUNTERS; i++)
		cb(counter_name[i], iface->counter[i], arg);
#define REPORT(value, what, help) cb(what, value, arg);
	RAW_LEVELS(REPORT)
#undef REPORT
	while ((c = raw_table_next(iface, &at))) {
		for (unsigned int i = 0; i < c->path_count && c->state == RAW_UP; i++) {
#define REPORT(value, what, help)                                               \
	snprintf(name, sizeof(name), "conn%u.path%u." what, c->id & 0xffff, i); \
	cb(name, value, arg);
			RAW_PATH_COUNTERS(REPORT)
			RAW_PATH_LEVELS(REPORT)
#undef REPORT
			raw_window_counters(c, i, cb, arg);
			raw_multi_counters(c, i, cb, arg);
		}
	}
	if (iface->port->ops->counters)
		iface->port->ops->counters(iface->port, cb, arg);
}

static void raw_close(struct weft_lane_iface *base)
{
	struct raw_iface *iface = raw_iface_of(base);
	struct raw_conn *c;
	uint32_t at = 0;

	weft_telemetry_remove(iface->telemetry);
	raw_txq_flush(iface);
	while ((c = raw_table_next(iface, &at))) {
		raw_zc_fail(&c->tx, -ECANCELED);
		raw_conn_tx_end(c);
		raw_zc_cancel(iface, &c->tx);
		raw_flushes_end(&c->tx, -ECANCELED);
		raw_conn_free(c);
	}
	raw_txq_drop(iface);
	raw_sealed_spare_free(iface);
	weft_tap_end(iface->tap);
	iface->port->ops->close(iface->port);
	weft_tap_close(iface->tap);
	raw_zc_destroy(iface);
	weft_deadlines_fini(&iface->by_tx_clock);
	weft_deadlines_fini(&iface->by_live_clock);
	raw_table_fini(iface);
	weft_arp_fini(&iface->arp);
	raw_seal_close(iface);
	free(iface->scratch);
	free(iface);
}

static const struct weft_lane_ops raw_ops = {
	.am_short = raw_am_short,
	.am_bcopy = raw_am_bcopy,
	.am_zcopy = raw_am_zcopy,
	.progress = raw_progress,
	.tx_flush = raw_tx_flush,
	.tx_posted = raw_tx_posted,
	.release = raw_release,
	.ep_connect = raw_ep_connect,
	.ep_destroy = raw_ep_destroy,
	.ep_is_from = raw_ep_is_from,
	.ep_host = raw_ep_host,
	.ep_check = raw_ep_check,
	.ep_waits_for = raw_ep_waits_for,
	.ep_flush = raw_ep_flush,
#if WEFT_HAVE_SEAL
	.ep_export = raw_ep_export,
	.key_accept = raw_key_accept,
	.key_forget = raw_key_forget,
	.ep_connect_key = raw_ep_connect_key,
	.ep_has_key = raw_ep_has_key,
#endif
	.ep_seen = raw_ep_seen,
	.ep_quiesce = raw_ep_quiesce,
	.ep_reap = raw_ep_reap,
	.wait_fd = raw_wait_fd,
	.arm = raw_arm,
	.beat = raw_beat,
	.disarm = raw_disarm,
	.get_address = raw_get_address,
	.is_reachable = raw_is_reachable,
	.print_address = weft_raw_print_address,
	.link_up = raw_link_up,
	.link_text = raw_link_text,
	.ep_measured = raw_ep_measured,
	.ep_best_msg = raw_ep_best_msg,
	.ep_print = raw_ep_print,
	.counters = raw_report_counters,
	.close = raw_close,
};

/* ---------------------------------------------------------------- registered memory */

int weft_raw_mem_register(struct weft_lane_iface *base, void *addr, size_t len, unsigned int access,
			  struct weft_mem_lane **mem, char *why, size_t why_len)
{
	struct weft_frame_port *port = raw_iface_of(base)->port;

	(void)access; /* no access rights are needed: the NIC only reads what is sent */
	return port->ops->mem_map(port, addr, len, mem, why, why_len);
}

void weft_raw_mem_deregister(struct weft_lane_iface *base, struct weft_mem_lane *mem)
{
	(void)base;
	weft_mem_lane_put(mem);
}

/* ---------------------------------------------------------------- open */

/* With IPv6 a frame has UDP's checksum or a CRC: WEFT_CSUM_NONE is taken for WEFT_CSUM_UDP. */
static uint8_t csum_wanted(const struct weft_frame_port *port, unsigned int mode,
			   bool raw_ethertype, bool six)
{
	switch (mode) {
	case WEFT_CSUM_NONE:
		return six ? WEFT_FRAME_CSUM_UDP : WEFT_FRAME_CSUM_NONE;
	case WEFT_CSUM_UDP:
		return raw_ethertype ? WEFT_FRAME_CSUM_CRC32C : WEFT_FRAME_CSUM_UDP;
	case WEFT_CSUM_CRC32C:
		return WEFT_FRAME_CSUM_CRC32C;
	default:
		if (port->flags & WEFT_FRAME_PORT_MEMORY)
			return six ? WEFT_FRAME_CSUM_UDP : WEFT_FRAME_CSUM_NONE;
		return port->flags & WEFT_FRAME_PORT_RX_CSUM && !raw_ethertype
			       ? WEFT_FRAME_CSUM_UDP
			       : WEFT_FRAME_CSUM_CRC32C;
	}
}

/* Sends that give each connection its least share may exceed tx_held_max, up to tx_held_hard. */
static void share_buffers(struct raw_iface *iface)
{
	const struct weft_frame_port *port = iface->port;
	uint32_t size = port->pool->size, ring = RTE_MIN(port->rx_depth, size / 2),
		 rest = size - ring;

	iface->share.tx_held_max = RTE_MAX(rest / 8 * 5, 1u);
	iface->share.tx_held_hard = RTE_MAX(rest / 4 * 3, 1u);
	iface->keep_max = rest / 4;
	iface->share.hdr_held_max = port->hdr_pool->size / 4 * 3;
	iface->share.hdr_held_hard = port->hdr_pool->size / 8 * 7;
	/* Frames in other workers' rings occupy buffers of this pool, for an unbounded time. */
	iface->hand_max = rest / 2 / RTE_MAX(port->steering.queues, 2u) + 1;
	raw_share_init(iface);
}

/* UDP sockets: the engine's frames have IPv4 headers, which the kernel replaces by IPv6's. */
static void take_sizes(struct raw_iface *iface, const struct weft_raw_conf *rc)
{
	iface->l2_tag = rc->vlan != 0 ? RTE_VLAN_HLEN : 0;
	iface->wire_less = (uint8_t)(iface->l2_tag + (rc->six ? WEFT_IP6_MORE : 0));
	iface->least_size = (uint16_t)(WEFT_FRAME_SIZE_MIN - RTE_VLAN_HLEN + iface->l2_tag);
	if (iface->port->hosts && !rc->six)
		iface->least_size -= WEFT_IP6_MORE;
}

static int check_port(struct raw_iface *iface, const struct weft_raw_conf *rc, char *why,
		      size_t len)
{
	const struct weft_frame_port *port = iface->port;
	uint32_t room = rte_pktmbuf_data_room_size(port->pool) - RTE_PKTMBUF_HEADROOM;
	uint32_t small = rte_pktmbuf_data_room_size(port->hdr_pool) - RTE_PKTMBUF_HEADROOM;
	uint32_t size = rc->frame_size != 0 ? rc->frame_size : port->frame_size;
	uint32_t least;

	take_sizes(iface, rc);
	least = iface->least_size;
	size = RTE_MIN(size, (uint32_t)port->frame_size);
	size = RTE_MIN(size, room);
	size = RTE_MIN(size, WEFT_FRAME_SIZE_MAX);
	if (size < least) {
		snprintf(why, len,
			 "%s: frames of %u bytes are too small: at least %u (MTU 1280) are needed",
			 port->name, size, least);
		return -EINVAL;
	}
	if (small < CTL_ROOM) {
		snprintf(why, len, "%s: header buffers hold %u bytes, %u are needed", port->name,
			 small, CTL_ROOM);
		return -EINVAL;
	}
	iface->frame_size = (uint16_t)size;
	iface->rx_far = !(port->flags & WEFT_FRAME_PORT_COPIES);
	iface->tx_batch = RTE_MIN(RTE_MAX(TX_BATCH_BYTES / size, TX_BATCH_MIN), TX_BATCH_MAX);
	if (port->tx_batch != 0)
		iface->tx_batch = RTE_MIN(port->tx_batch, TX_BATCH_PORT);
	return 0;
}

static void take_conf(struct raw_iface *iface, const struct weft_raw_conf *rc)
{
	const struct weft_frame_port *port = iface->port;
	uint8_t paths = rc->paths != 0 ? rc->paths
				       : (uint8_t)RTE_MIN(iface->conf.paths, WEFT_FRAME_PATHS_MAX);
	uint16_t udp = rc->udp_port;

	if (port->udp_port != 0)
		udp = port->udp_port;
	else if (udp == 0)
		udp = iface->conf.udp_port != 0 ? iface->conf.udp_port : WEFT_LANE_UDP_PORT;
	iface->rx_filter = (struct weft_rx_filter){
		.raw_ethertype = rc->raw_ethertype,
		.check_ip = true,
		.vlan = rc->vlan,
		.udp_port = udp,
		.ip = rc->ip != 0 ? rc->ip : weft_lane_link_local(port->mac),
		.six = rc->six,
	};
	memcpy(iface->rx_filter.ip6, port->ip6, sizeof(iface->rx_filter.ip6));
	if (port->path_ports.mask != 0)
		iface->rx_filter.range = port->path_ports;
	else if (!rc->raw_ethertype)
		iface->rx_filter.range =
			weft_port_range((uint16_t)(udp - port->steering.queue),
					port->steering.queue, port->steering.queues);
	memcpy(iface->rx_filter.mac, port->mac, 6);
	weft_rx_pattern_init(&iface->pattern, &iface->rx_filter, false);
	weft_rx_pattern_init(&iface->sealed_pattern, &iface->rx_filter, true);
	if (iface->seal)
		iface->pattern.least = 0; /* no frame is one for plain_input() */
	iface->prefix = rc->ip != 0 ? rc->prefix : WEFT_LANE_PREFIX_LOCAL;
	iface->no_ip = rc->ip == 0;
	iface->gateway = rc->gateway;
	iface->dscp = rc->dscp;
	iface->ecn = !rc->no_ecn && !rc->raw_ethertype && !raw_window_fixed(iface);
	/* By default a memory port has one path; with WEFT_CC=delay weft-wire may be behind it. */
	iface->paths_auto = paths == 0 && !rc->raw_ethertype &&
			    !(port->flags & WEFT_FRAME_PORT_MEMORY && raw_window_fixed(iface));
	iface->paths = RTE_MIN(RTE_MAX(paths, (uint8_t)1), (uint8_t)WEFT_FRAME_PATHS_MAX);
	if (rc->raw_ethertype)
		iface->paths = 1; /* no UDP, no source ports */
	iface->csum_wanted = csum_wanted(port, iface->conf.csum, rc->raw_ethertype, rc->six);
	iface->encap_len = RTE_ETHER_HDR_LEN + (rc->vlan != 0 ? RTE_VLAN_HLEN : 0) +
			   (rc->raw_ethertype ? 0
			    : rc->six         ? WEFT_IP6_UDP_LEN
					      : WEFT_IP_UDP_LEN);
	iface->set_first_seq = rc->set_first_seq;
	iface->first_seq = rc->first_seq;
	if (iface->conf.connect_timeout_ns == 0)
		iface->conf.connect_timeout_ns = 10000000000ull;
	if (iface->conf.peer_timeout_ns == 0)
		iface->conf.peer_timeout_ns = 30000000000ull;
	/* Bounded, so that sums with times do not overflow. */
	iface->conf.peer_timeout_ns = RTE_MIN(iface->conf.peer_timeout_ns, RAW_FOREVER);
	weft_arp_init(&iface->arp, iface->rx_filter.ip, port->mac,
		      weft_siphash(&iface->key, "arp", 3), rc->six ? NULL : port->arp);
}

static int take_neighbours(struct raw_iface *iface, const struct weft_raw_conf *rc, char *why,
			   size_t len)
{
	char ip[INET6_ADDRSTRLEN];
	int err;

	for (unsigned int i = 0; i < rc->num_neigh; i++) {
		err = weft_arp_fix(&iface->arp, rc->neigh[i].ip, rc->neigh[i].mac);
		if (err == 0)
			continue;
		raw_ip_text(iface, rc->neigh[i].ip, ip, sizeof(ip));
		snprintf(why, len, "%s: lane option 'neigh': %s %s", iface->port->name, ip,
			 err == -EEXIST ? "has another MAC address on another queue of this port"
					: "is one too many for all queues of this port together");
		return -EINVAL;
	}
	return 0;
}

static int fill_identity(struct raw_iface *iface, const struct weft_lane_open *open)
{
	const struct weft_platform *pf = open->platform;

	iface->platform = pf;
	iface->worker_id = open->worker_id;
	iface->iface_id = open->iface_id;
	iface->now = pf->now(pf->arg);
	/* Far from zero, so that 0 can mean "not set". */
	iface->tx_clock = 1000000000ull;
	iface->live_clock = 1000000000ull;
	iface->next_tx_clock = RAW_NEVER;
	/* The link may come up after this query, so its state is read again after RAW_LOOK_DOWN. */
	iface->link_up = iface->port->ops->link_up(iface->port);
	iface->look_at = iface->port->ops->look ? iface->live_clock + RAW_LOOK_DOWN : RAW_NEVER;
	iface->next_live_clock = iface->look_at;
	iface->acks_due = RAW_NEVER;
	return pf->random(pf->arg, &iface->key, sizeof(iface->key));
}

/* Networks have queues. On a memory port a peer that waits for its core would be taken for one. */
static unsigned int cc_for(const struct weft_frame_port *port)
{
	return port->flags & WEFT_FRAME_PORT_MEMORY ? WEFT_CC_FIXED : WEFT_CC_DELAY;
}

static void set_recv(struct raw_iface *iface, const struct weft_lane_open *open)
{
	iface->recv = open->recv;
	iface->recv_batch = open->recv_batch;
	iface->recv_in_place = open->recv_in_place;
	iface->port->rx_in_place =
		open->recv_in_place && iface->port->flags & WEFT_FRAME_PORT_IN_PLACE;
	iface->batch_id = open->batch_id;
	iface->alone = open->recv_batch ? (uint64_t)open->batch_id << 16 : UINT64_MAX;
	iface->split = open->split;
}

static void init_lists(struct raw_iface *iface)
{
	TAILQ_INIT(&iface->tx_list);
	TAILQ_INIT(&iface->ack_list);
	STAILQ_INIT(&iface->zc.free);
	STAILQ_INIT(&iface->zc.released);
	LIST_INIT(&iface->zc.orphans);
	LIST_INIT(&iface->zc.waiting);
	TAILQ_INIT(&iface->parts);
	TAILQ_INIT(&iface->half.list);
	TAILQ_INIT(&iface->resolving);
	TAILQ_INIT(&iface->closed);
}

int weft_raw_iface_open(struct weft_frame_port *port, const struct weft_raw_conf *rc,
			const struct weft_lane_open *open, struct weft_lane_iface **out, char *why,
			size_t len)
{
	struct raw_iface *iface = calloc(1, sizeof(*iface));
	int err = -ENOMEM;

	snprintf(why, len, "%s: out of memory", port->name);
	if (!iface)
		return -ENOMEM;
	iface->scratch = malloc(WEFT_FRAME_SIZE_MAX);
	if (!iface->scratch)
		goto fail;
	iface->port = port;
	iface->base.ops = &raw_ops;
	snprintf(iface->name, sizeof(iface->name), "%s:%.50s", weft_frame_port_driver(port),
		 port->name);
	iface->base.name = iface->name;
	iface->conf = *open->conf;
	if (iface->conf.cc == WEFT_CC_AUTO)
		iface->conf.cc = cc_for(port);
	set_recv(iface, open);
	iface->event = open->event;
	iface->iface_event = open->iface_event;
	iface->cb_arg = open->arg;
	init_lists(iface);
	err = check_port(iface, rc, why, len);
	if (err != 0)
		goto fail;
	err = fill_identity(iface, open);
	if (err != 0) {
		snprintf(why, len, "%s: the system gives no random numbers", port->name);
		goto fail;
	}
	err = raw_seal_open(iface, &iface->conf, why, len);
	if (err != 0)
		goto fail;
	take_conf(iface, rc);
	err = take_neighbours(iface, rc, why, len);
	if (err != 0) {
		weft_arp_fini(&iface->arp);
		goto fail;
	}
	share_buffers(iface);
	raw_announce_begin(iface);
	iface->copy_bw = open->copy_bw;
	iface->tap = rc->tap;
	if (iface->tap) {
		iface->tap->paths_arg = iface;
		iface->tap->paths = raw_paths_record;
	}
	raw_fill_attr(iface);
	iface->telemetry = weft_telemetry_add(&iface->base, open);
	*out = &iface->base;
	why[0] = '\0';
	return 0;

fail:
	raw_seal_close(iface);
	free(iface->scratch);
	free(iface);
	return err;
}
