/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_dev.h>

#include "frame/farewell.h"
#include "frame/frame_port.h"
#include "port/ethdev.h"
#include "port/event.h"
#include "port/kernel.h"
#include "port/port.h"
#include "port/ports.h"
#include "port/rxtx.h"
#include "port/zcopy.h"

/* ---- RX interrupts -------------------------------------------------------------------------- */

/*
 * The descriptor of a PMD's RX interrupts is an eventfd (VFIO, virtio_user), an epoll set (vhost)
 * or a completion channel (mlx5). Each is emptied in another way, and some cannot be emptied. So
 * the descriptor is edge-triggered in an epoll set of the port, the result of wait_fd(): one
 * epoll_wait() takes the edge, whatever its source is. (The events of rte_eth_dev_rx_intr_ctl_q()
 * have callbacks that an application's epoll_wait() does not call.)
 *
 * arm() enables the interrupt and then polls for frames, since a PMD raises none for earlier
 * frames. Frames that it finds are kept for the next rx_burst(), by another table of operations:
 * normal polling needs no test for them.
 *
 * No PMD reports whether its interrupts arrive. Until one has arrived with frames, an owner sleeps
 * no longer than without interrupts. LONG limits the cost of a lost interrupt.
 */

#define BLIND_FIRST 50000u  /* ns */
#define BLIND_MOST 1000000u /* ns */
#define LONG 100000000u     /* ns */
/* After a lost interrupt MISTRUST + 1 must arrive with frames before interrupts are trusted. */
#define MISTRUST 8

/* ---- is it to be requested? ----------------------------------------------------------------- */

#define PCI_CAPABILITIES 0x34
#define PCI_CAP_MSIX 0x11
#define PCI_CONFIG 256

/* @return MSI-X vectors; 0: none, or not visible (only root can read more than 64 bytes) */
static unsigned int msix_vectors(const char *path)
{
	uint8_t c[PCI_CONFIG];
	unsigned int at, hops;
	size_t got = 0;
	FILE *f = fopen(path, "re");

	if (f) {
		got = fread(c, 1, sizeof(c), f);
		fclose(f);
	}
	if (got < sizeof(c))
		return 0;
	for (at = c[PCI_CAPABILITIES], hops = 0; at >= 64 && at <= PCI_CONFIG - 4 && hops < 48;
	     at = c[at + 1], hops++)
		if (c[at] == PCI_CAP_MSIX)
			return 1 + (c[at + 2] | (c[at + 3] & 7u) << 8);
	return 0;
}

unsigned int weft_port_intr_vectors(const char *sysfs, const char *device)
{
	char path[PATH_MAX], driver[PATH_MAX];
	const char *name;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s/driver", sysfs, device);
	n = readlink(path, driver, sizeof(driver) - 1);
	if (n < 0)
		return UINT_MAX;
	driver[n] = '\0';
	name = strrchr(driver, '/') ? strrchr(driver, '/') + 1 : driver;
	/* UIO has one interrupt, which link events use. */
	if (!strncmp(name, "uio", 3) || !strcmp(name, "igb_uio"))
		return 1;
	if (strcmp(name, "vfio-pci") != 0)
		return UINT_MAX;
	snprintf(path, sizeof(path), "%s/%s/config", sysfs, device);
	return msix_vectors(path);
}

/*
 * PMDs that raise RX interrupts (source of DPDK 22.11), and poll at the same speed when interrupts
 * are requested but disabled. Not em: its PMD assigns no MSI-X vector to the queue, and INTx has
 * one interrupt in 16 ms. Not i40e, iavf, ice: with interrupts they write descriptors back in
 * another way.
 */
static bool is_known(const char *driver, uint16_t queues)
{
	/* The most queues: for queue 1, ixgbe and its VF driver enable the vector of queue 0. */
	static const struct {
		const char *driver;
		uint16_t queues;
	} list[] = {
		{"net_virtio", UINT16_MAX}, {"net_virtio_user", UINT16_MAX},
		{"net_vhost", UINT16_MAX},  {"net_vmxnet3", UINT16_MAX},
		{"net_ena", UINT16_MAX},    {"net_e1000_igb", UINT16_MAX},
		{"net_ixgbe", 1},           {"net_ixgbe_vf", 1},
		{"mlx5_pci", UINT16_MAX},   {"net_mana", UINT16_MAX},
	};
	size_t i;

	for (i = 0; driver && i < RTE_DIM(list); i++)
		if (!strcmp(driver, list[i].driver))
			return queues <= list[i].queues;
	return false;
}

bool weft_port_intr_wanted(const struct weft_port_dev *d, enum weft_rx_intr mode)
{
	if (mode == WEFT_RX_INTR_NO || !d->limits.set_mtu)
		return false;
	if (mode == WEFT_RX_INTR_YES)
		return true;
	/* Link events have a vector, too: a port needs one more than it has queues. */
	return is_known(d->info.driver_name, d->num_queues) &&
	       (!d->info.device ||
		weft_port_intr_vectors("/sys/bus/pci/devices", rte_dev_name(d->info.device)) >
			d->num_queues);
}

/* ---- on and off ----------------------------------------------------------------------------- */

/*
 * Both functions hold the events of the port (port/event.h). So the port does not end during the
 * call, since a thread that ends it sets the event first and then waits. And some PMDs have one
 * word for the interrupts of all queues (ixgbe).
 */

static int turn_on(const struct weft_port *p)
{
	int rc;

	weft_port_events_hold(p->port_id);
	rc = weft_port_has_ended(p->dev) ? -EIO : rte_eth_dev_rx_intr_enable(p->port_id, p->queue);
	weft_port_events_release(p->port_id);
	return rc;
}

static void turn_off(const struct weft_port *p)
{
	weft_port_events_hold(p->port_id);
	if (!weft_port_has_ended(p->dev))
		rte_eth_dev_rx_intr_disable(p->port_id, p->queue);
	weft_port_events_release(p->port_id);
}

/* ---- opening and closing -------------------------------------------------------------------- */

static int epoll_set_new(int fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	int set = epoll_create1(EPOLL_CLOEXEC), rc;

	if (set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev) == 0)
		return set;
	rc = -errno;
	if (set >= 0)
		close(set);
	return rc;
}

void weft_port_intr_open(struct weft_port *p, const struct weft_port_intr_modes *modes)
{
	struct weft_port_intr *in;
	int fd, set;

	if (!p->dev->rx_intr)
		return;
	fd = rte_eth_dev_rx_intr_ctl_q_get_fd(p->port_id, p->queue);
	if (fd < 0) {
		snprintf(p->dev->no_intr, sizeof(p->dev->no_intr),
			 "%s has no descriptor for queue %u", p->dev->info.driver_name, p->queue);
		return;
	}
	in = calloc(1, sizeof(*in));
	set = in ? epoll_set_new(fd) : -ENOMEM;
	if (set < 0) {
		snprintf(p->dev->no_intr, sizeof(p->dev->no_intr),
			 "the descriptor of queue %u can't be watched: %s; raise the limits on "
			 "open files (ulimit -n) and fs.epoll.max_user_watches",
			 p->queue, strerror(-set));
		free(in);
		return;
	}
	in->epoll = set;
	in->blind = BLIND_FIRST;
	in->modes = *modes;
	/* Some PMDs start with interrupts enabled. */
	turn_off(p);
	p->intr = in;
	p->fp.ops = in->modes.ops;
}

void weft_port_intr_text(struct weft_frame_port *fp, char *text, size_t size)
{
	const char *why = weft_port_of(fp)->dev->no_intr;

	snprintf(text, size, "%s%s", why[0] != '\0' ? "no RX interrupts: " : "", why);
}

static void intr_off(struct weft_port *p)
{
	if (p->intr->on)
		turn_off(p);
	p->intr->on = false;
}

void weft_port_intr_close(struct weft_port *p)
{
	struct weft_port_intr *in = p->intr;

	if (!in)
		return;
	intr_off(p);
	while (in->given < in->kept)
		rte_pktmbuf_free(in->keep[in->given++]);
	close(in->epoll);
	free(in);
	p->intr = NULL;
}

static void intr_counters(const struct weft_port *p, weft_frame_port_counter_cb cb, void *arg)
{
	const struct weft_port_intr *in = p->intr;

	if (!in)
		return;
#define REPORT(field, name, help) cb(name, in->field, arg);
	WEFT_PORT_INTR_COUNTERS(REPORT)
#undef REPORT
}

/* ---- sleeping ------------------------------------------------------------------------------- */

static int intr_fd(struct weft_frame_port *fp)
{
	return weft_port_of(fp)->intr->epoll;
}

static bool take_edge(const struct weft_port_intr *in)
{
	struct epoll_event ev;

	return epoll_wait(in->epoll, &ev, 1, 0) > 0;
}

static int intr_arm(struct weft_frame_port *fp, uint64_t *within)
{
	struct weft_port *p = weft_port_of(fp);
	struct weft_port_intr *in = p->intr;

	if (in->given < in->kept)
		return -EBUSY;
	in->on = !weft_port_halted(p);
	if (in->on && turn_on(p) != 0) {
		in->on = false;
		in->refused++;
	}
	if (in->on) {
		/* Vhost enables by a plain store, which its peer must see before this poll. */
		atomic_thread_fence(memory_order_seq_cst);
		in->given = 0;
		in->kept = rte_eth_rx_burst(p->port_id, p->queue, in->keep, WEFT_PORT_KEEP);
		if (in->kept > 0) {
			intr_off(p);
			take_edge(in);
			in->late++;
			fp->ops = in->modes.first;
			return -EBUSY;
		}
	}
	/*
	 * A new peer of vhost starts with interrupts disabled. So interrupts are trusted only if a
	 * frame has arrived since the last event of the port.
	 */
	in->most = in->on && in->trust > 0 && in->life == weft_port_life(p->dev) ? LONG : in->blind;
	in->begin_tsc = rte_rdtsc();
	*within = RTE_MIN(*within, in->most);
	return 0;
}

static void intr_disarm(struct weft_frame_port *fp)
{
	struct weft_port *p = weft_port_of(fp);
	struct weft_port_intr *in = p->intr;
	double slept = (double)(rte_rdtsc() - in->begin_tsc) / (double)rte_get_tsc_hz() * 1e9;

	in->was_on = in->on;
	intr_off(p);
	in->readable = take_edge(in);
	in->ran_out = slept >= (double)in->most;
	fp->ops = in->modes.first;
}

static void judge_trust(struct weft_port_intr *in, bool frames, uint32_t life)
{
	if (frames)
		in->life = life;
	if (in->was_on && in->readable) {
		in->wakes += frames;
		in->empty += !frames;
		if (frames && in->trust <= 0)
			in->trust++;
	} else if (in->was_on && in->ran_out && frames) {
		in->missed++;
		in->trust = -MISTRUST;
	}
	if (frames)
		in->blind = BLIND_FIRST;
	else if (in->ran_out)
		in->blind = RTE_MIN(in->blind * 2, (uint64_t)BLIND_MOST);
}

static uint16_t intr_rx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct weft_port_intr *in = weft_port_of(fp)->intr;
	uint16_t got;

	if (in->given < in->kept) {
		got = RTE_MIN(n, (uint16_t)(in->kept - in->given));
		memcpy(pkts, &in->keep[in->given], got * sizeof(*pkts));
		in->given += got;
		if (in->given == in->kept)
			fp->ops = in->modes.ops;
		return got;
	}
	fp->ops = in->modes.ops;
	got = fp->ops->rx_burst(fp, pkts, n);
	judge_trust(in, got > 0, weft_port_life(weft_port_of(fp)->dev));
	return got;
}

/* ---- operations: hardware ------------------------------------------------------------------- */

static uint16_t port_rx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct weft_port *p = weft_port_of(fp);

	if (unlikely(weft_port_halted(p)))
		return 0;
	return rte_eth_rx_burst(p->port_id, p->queue, pkts, n);
}

static uint16_t port_tx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct weft_port *p = weft_port_of(fp);
	uint16_t sent;

	if (unlikely(weft_port_halted(p)))
		return 0;
	sent = rte_eth_tx_burst(p->port_id, p->queue, pkts, n);
	if (unlikely(sent < n))
		p->tx_refused += n - sent;
	p->tail = true;
	return sent;
}

/* Reclaim sent buffers once sending has paused for kick_cycles. */
static void port_kick(struct weft_frame_port *fp)
{
	struct weft_port *p = weft_port_of(fp);
	uint64_t now;

	if (!p->cleanup || weft_port_halted(p))
		return;
	now = rte_rdtsc();
	if (p->tail) {
		p->tail = false;
		p->last_tx_tsc = now;
		return;
	}
	if (!p->last_tx_tsc || now - p->last_tx_tsc < p->kick_cycles)
		return;
	p->last_tx_tsc = 0;
	if (rte_eth_tx_done_cleanup(p->port_id, p->queue, 0) == -ENOTSUP)
		p->cleanup = false;
}

static bool port_link_up(struct weft_frame_port *fp)
{
	struct weft_port *p = weft_port_of(fp);
	struct rte_eth_link link;

	if (!weft_port_is_started(p->dev) || weft_port_has_ended(p->dev))
		return false;
	if (p->dev->limits.kernel_link)
		return weft_kernel_link_up(p->dev->limits.if_index);
	return rte_eth_link_get_nowait(p->port_id, &link) == 0 &&
	       link.link_status == RTE_ETH_LINK_UP;
}

static void port_counters(struct weft_frame_port *fp, weft_frame_port_counter_cb cb, void *arg)
{
	struct weft_port *p = weft_port_of(fp);
	struct rte_eth_xstat_name *names = NULL;
	struct rte_eth_xstat *values = NULL;
	int i, n = rte_eth_xstats_get_names(p->port_id, NULL, 0);

#define REPORT(field, name, help) cb(name, p->field, arg);
	WEFT_PORT_COUNTERS(REPORT)
#undef REPORT
	weft_port_zcopy_counters(p, cb, arg);
	intr_counters(p, cb, arg);
	if (n <= 0)
		return;
	names = calloc((size_t)n, sizeof(*names));
	values = calloc((size_t)n, sizeof(*values));
	if (names && values && rte_eth_xstats_get_names(p->port_id, names, (unsigned int)n) == n &&
	    rte_eth_xstats_get(p->port_id, values, (unsigned int)n) == n)
		for (i = 0; i < n; i++)
			cb(names[i].name, values[i].value, arg);
	free(names);
	free(values);
}

static void close_port(struct weft_frame_port *fp)
{
	struct weft_port *p = weft_port_of(fp);

	p->close(p);
}

#define ETHDEV_OPS                                                                               \
	.tx_burst = port_tx, .tx_kick = port_kick, .tx_done = weft_port_tx_done,                 \
	.mem_map = weft_port_mem_map, .link_up = port_link_up, .link_text = weft_port_link_text, \
	.look = weft_port_look, .counters = port_counters, .close = close_port

const struct weft_frame_port_ops weft_port_ops = {
	ETHDEV_OPS,
	.rx_burst = port_rx,
};

#define INTR_OPS ETHDEV_OPS, .wait_fd = intr_fd, .arm = intr_arm, .disarm = intr_disarm

static const struct weft_frame_port_ops intr_ops = {
	INTR_OPS,
	.rx_burst = port_rx,
};

static const struct weft_frame_port_ops intr_first_ops = {
	INTR_OPS,
	.rx_burst = intr_rx,
};

const struct weft_port_intr_modes weft_port_intr_modes = {&intr_ops, &intr_first_ops};

/* ---- memif ---------------------------------------------------------------------------------- */

/* Polls and sends between two checks of the connection. */
#define LOOK_EVERY 16384u

static uint16_t memif_rx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct weft_port *p = weft_port_of(fp);

	if (unlikely(++p->polls % LOOK_EVERY == 0))
		weft_memif_look(&p->dev->memif);
	if (unlikely(weft_port_halted(p)))
		return 0;
	return rte_eth_rx_burst(p->port_id, p->queue, pkts, n);
}

static uint16_t memif_tx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct weft_port *p = weft_port_of(fp);

	/* An owner that only sends does not poll, and a dead peer's ring stays full. */
	if (unlikely(++p->polls % LOOK_EVERY == 0))
		weft_memif_look(&p->dev->memif);
	return port_tx(fp, pkts, n);
}

static bool memif_link_up(struct weft_frame_port *fp)
{
	return weft_memif_link_up(&weft_port_of(fp)->dev->memif);
}

static int memif_wait_fd(struct weft_frame_port *fp)
{
	return weft_memif_wait_fd(&weft_port_of(fp)->dev->memif);
}

static int memif_arm(struct weft_frame_port *fp, uint64_t *within)
{
	return weft_memif_arm(&weft_port_of(fp)->dev->memif, within);
}

static void memif_disarm(struct weft_frame_port *fp)
{
	weft_memif_disarm(&weft_port_of(fp)->dev->memif);
}

const struct weft_frame_port_ops weft_port_memif_ops = {
	.rx_burst = memif_rx,
	.tx_burst = memif_tx,
	.tx_kick = NULL,
	.link_up = memif_link_up,
	.link_text = weft_port_link_text,
	.look = weft_port_look,
	.wait_fd = memif_wait_fd,
	.arm = memif_arm,
	.disarm = memif_disarm,
	.counters = port_counters,
	.close = close_port,
};

/* ---- packet sockets ------------------------------------------------------------------------- */

/* A frame that the kernel refuses would block its slot of the ring for ever. */
static uint16_t leading_good(struct weft_port *p, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i;

	for (i = 0; i < n; i++)
		if (unlikely(pkts[i]->pkt_len > p->fp.frame_size))
			break;
	return i;
}

static uint16_t packet_tx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct weft_port *p = weft_port_of(fp);
	uint16_t good, sent;

	if (unlikely(weft_port_halted(p) || n == 0))
		return 0;
	good = leading_good(p, pkts, n);
	if (unlikely(good == 0)) {
		rte_pktmbuf_free(pkts[0]);
		p->tx_too_long++;
		return 1;
	}
	good = weft_packet_socket_room(p, pkts, good);
	sent = good ? rte_eth_tx_burst(p->port_id, p->queue, pkts, good) : 0;
	if (sent < n)
		p->tx_refused += n - sent;
	if (sent) {
		p->tail = true;
		p->last_tx_tsc = rte_rdtsc();
	}
	return sent;
}

static void packet_kick(struct weft_frame_port *fp)
{
	weft_packet_socket_kick(weft_port_of(fp));
}

/* The socket is readable while a slot of its ring is not returned, so not after an empty poll. */
static int socket_wait_fd(struct weft_frame_port *fp)
{
	struct weft_port *p = weft_port_of(fp);

	return p->sock >= 0 && !weft_port_has_ended(p->dev) ? p->sock : -ENOTSUP;
}

static int packet_arm(struct weft_frame_port *fp, uint64_t *within)
{
	return weft_packet_socket_arm(weft_port_of(fp), within);
}

static void socket_disarm(struct weft_frame_port *fp)
{
	RTE_SET_USED(fp);
}

static void port_farewell(struct weft_frame_port *fp, uint16_t *slot, const uint8_t *frame,
			  uint32_t len)
{
	const struct weft_port *p = weft_port_of(fp);
	const struct weft_farewell_way way = {.kind = WEFT_FAREWELL_PACKET,
					      .if_index = p->dev->limits.if_index};

	if (p->farewells)
		weft_farewell_set(&way, slot, frame, len);
}

const struct weft_frame_port_ops weft_port_packet_ops = {
	.rx_burst = port_rx,
	.tx_burst = packet_tx,
	.tx_kick = packet_kick,
	.link_up = port_link_up,
	.link_text = weft_port_link_text,
	.look = weft_port_look,
	.wait_fd = socket_wait_fd,
	.arm = packet_arm,
	.disarm = socket_disarm,
	.farewell = port_farewell,
	.counters = port_counters,
	.close = close_port,
};

static int xdp_arm(struct weft_frame_port *fp, uint64_t *within)
{
	RTE_SET_USED(within);
	return weft_xdp_arm(weft_port_of(fp));
}

const struct weft_frame_port_ops weft_port_xdp_ops = {
	ETHDEV_OPS,     .rx_burst = port_rx,     .wait_fd = socket_wait_fd,
	.arm = xdp_arm, .disarm = socket_disarm, .farewell = port_farewell,
};

/* ---- by pointer ----------------------------------------------------------------------------- */

#define RING_BURST 32u

/*
 * The receiver may keep the mbuf or write to it. So a frame that the sender keeps (for
 * retransmission), or whose bytes are not in the mbuf's own memory, is copied.
 */
static bool may_be_given(const struct rte_mbuf *m)
{
	return m->nb_segs == 1 && RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1;
}

static struct rte_mbuf *one_buffer(struct rte_mempool *pool, const struct rte_mbuf *m)
{
	struct rte_mbuf *copy = rte_pktmbuf_alloc(pool);
	char *to;

	if (unlikely(!copy || rte_pktmbuf_tailroom(copy) < m->pkt_len)) {
		rte_pktmbuf_free(copy);
		return NULL;
	}
	to = rte_pktmbuf_mtod(copy, char *);
	copy->data_len = (uint16_t)m->pkt_len;
	copy->pkt_len = m->pkt_len;
	for (; m; to += m->data_len, m = m->next)
		memcpy(to, rte_pktmbuf_mtod(m, const void *), m->data_len);
	return copy;
}

static uint16_t ring_tx_some(struct weft_port *p, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *out[RING_BURST];
	uint16_t i, sent, end;

	for (end = 0; end < n; end++) {
		out[end] = may_be_given(pkts[end]) ? pkts[end] : one_buffer(p->fp.pool, pkts[end]);
		if (unlikely(!out[end]))
			break;
	}
	sent = rte_eth_tx_burst(p->port_id, p->queue, out, end);
	for (i = 0; i < end; i++) {
		if (out[i] == pkts[i])
			continue;
		p->tx_copied += i < sent;
		rte_pktmbuf_free(i < sent ? pkts[i] : out[i]);
	}
	return sent;
}

static uint16_t ring_tx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct weft_port *p = weft_port_of(fp);
	uint16_t sent = 0, some, now;

	while (sent < n && weft_port_is_started(p->dev)) {
		some = (uint16_t)RTE_MIN(n - sent, RING_BURST);
		now = ring_tx_some(p, pkts + sent, some);
		sent += now;
		if (now < some)
			break;
	}
	p->tx_refused += n - sent;
	return sent;
}

const struct weft_frame_port_ops weft_port_ring_ops = {
	.rx_burst = port_rx,
	.tx_burst = ring_tx,
	.tx_kick = NULL,
	.link_up = port_link_up,
	.link_text = weft_port_link_text,
	.look = weft_port_look,
	.counters = port_counters,
	.close = close_port,
};
