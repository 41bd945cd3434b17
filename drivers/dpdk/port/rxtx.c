/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of an open port. None of them waits. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "frame/port_counters.h"
#include "port/priv.h"

/* ---- hardware and memory -------------------------------------------------------------------- */

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

/* Reclaim sent buffers once sending has paused. */
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

	if (!p->dev->started || weft_port_has_ended(p->dev))
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
	weft_port_intr_counters(p, cb, arg);
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

#define INTR_OPS                                                             \
	ETHDEV_OPS, .wait_fd = weft_port_intr_fd, .arm = weft_port_intr_arm, \
		    .disarm = weft_port_intr_disarm

static const struct weft_frame_port_ops intr_ops = {
	INTR_OPS,
	.rx_burst = port_rx,
};

/* A table of its own, so that normal polling has nothing more to check. */
static const struct weft_frame_port_ops intr_first_ops = {
	INTR_OPS,
	.rx_burst = weft_port_intr_rx,
};

const struct weft_port_intr_modes weft_port_intr_modes = {&intr_ops, &intr_first_ops};

/* ---- memif ---------------------------------------------------------------------------------- */

/* Polls between two checks of the connection. */
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

/*
 * The packet or AF_XDP socket itself. The kernel reports it readable while a slot of its ring has
 * not been returned; after an rx_burst() without frames there is none.
 */
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
	.arm = xdp_arm, .disarm = socket_disarm,
};

/* ---- by pointer ----------------------------------------------------------------------------- */

/*
 * The receiver gets the mbuf itself, and may cut headers off it, keep it or write to it. So a frame
 * that the sender keeps (for retransmission), or whose bytes are not in the mbuf's own memory, is
 * copied, as a wire would do.
 */
static struct rte_mbuf *to_give_away(struct weft_port *p, struct rte_mbuf *m)
{
	struct rte_mbuf *copy;

	if (m->nb_segs == 1 && RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1)
		return m;
	copy = rte_pktmbuf_copy(m, p->fp.pool, 0, UINT32_MAX);
	p->tx_copied += copy != NULL;
	return copy;
}

static uint16_t ring_tx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct weft_port *p = weft_port_of(fp);
	struct rte_mbuf *m;
	uint16_t i;

	for (i = 0; i < n && p->dev->started; i++) {
		m = to_give_away(p, pkts[i]);
		if (unlikely(!m))
			break;
		if (unlikely(rte_eth_tx_burst(p->port_id, p->queue, &m, 1) == 0)) {
			if (m != pkts[i])
				rte_pktmbuf_free(m);
			break;
		}
		if (m != pkts[i])
			rte_pktmbuf_free(pkts[i]);
	}
	p->tx_refused += n - i;
	return i;
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
