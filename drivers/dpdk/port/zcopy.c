/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zero-copy sends of an ethdev port: whether they are possible, and when sent memory belongs to the
 * user again. No frame is sent to find out, since other hosts may share the network.
 */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "frame/port_counters.h"
#include "port/dma.h"
#include "port/priv.h"

/*
 * A PMD frees sent mbufs when descriptors run short, so the last ones stay until more is sent. The
 * following calls can be used instead. Their support was found in the PMDs' sources (DPDK 22.11);
 * the calls themselves do not report it:
 *
 * - rte_eth_tx_descriptor_status() of the descriptor before the tail is that of the newest frame,
 *   and DONE means that all frames before it are done. The NIC writes the status back for frames
 *   with the RS bit, which is each one with tx_rs_thresh 1; igb and igc set it always. Other PMDs
 *   differ: mlx5 and sfc count the offset from the oldest frame.
 * - rte_eth_tx_done_cleanup() frees every frame that the NIC is done with (ena completes each). The
 *   Intel PMDs have it, too, but the status suffices for them.
 *
 * All of these free the frames of the ring when the port stops. PMDs with neither (virtio, vmxnet3,
 * gve, netvsc's own path), and those whose source has not been checked, get copies.
 */
static const struct {
	const char *driver;
	enum weft_port_tx_done how;
	/*
	 * NICs that QEMU emulates: behind its IOMMU it silently drops a frame if a descriptor's
	 * bytes are in pages that are not contiguous in the guest's memory.
	 */
	bool emulated;
} known[] = {
	{"net_e1000_em", WEFT_TX_DONE_STATUS, true},
	{"net_e1000_igb", WEFT_TX_DONE_STATUS, true},
	{"net_e1000_igb_vf", WEFT_TX_DONE_STATUS, true},
	{"net_igc", WEFT_TX_DONE_STATUS, false},
	{"net_ixgbe", WEFT_TX_DONE_STATUS, false},
	{"net_ixgbe_vf", WEFT_TX_DONE_STATUS, false},
	{"net_i40e", WEFT_TX_DONE_STATUS, false},
	{"net_iavf", WEFT_TX_DONE_STATUS, false},
	{"net_ice", WEFT_TX_DONE_STATUS, false},
	{"net_ena", WEFT_TX_DONE_CLEANUP, false},
};

static void find_driver(struct weft_port_dev *d)
{
	for (size_t i = 0; i < RTE_DIM(known); i++) {
		if (!d->info.driver_name || strcmp(d->info.driver_name, known[i].driver))
			continue;
		d->zcopy.done = known[i].how;
		d->zcopy.by_page = known[i].emulated;
	}
}

void weft_port_zcopy_find(struct weft_port_dev *d, const struct weft_port_opts *o)
{
	const struct weft_port_limits *l = &d->limits;

	d->zcopy = (struct weft_port_zcopy){0};
	if (o->no_extbuf || l->no_extbuf || l->no_chains || l->copies_tx || l->by_pointer ||
	    !(d->info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) || !d->info.device)
		return;
	find_driver(d);
	if (d->zcopy.done != WEFT_TX_DONE_UNKNOWN)
		d->zcopy.reach = weft_dma_open(d->port_id, d->info.device);
}

bool weft_port_wants_chains(const struct weft_port_dev *d, const struct weft_port_opts *o)
{
	const struct weft_port_limits *l = &d->limits;

	if (o->no_extbuf || l->no_extbuf || l->no_chains)
		return false;
	return l->copies_tx || d->zcopy.reach != WEFT_DMA_NONE;
}

void weft_port_zcopy_txconf(const struct weft_port_dev *d, struct rte_eth_txconf *conf)
{
	if (d->zcopy.reach != WEFT_DMA_NONE && d->zcopy.done == WEFT_TX_DONE_STATUS)
		conf->tx_rs_thresh = 1;
}

uint32_t weft_port_zcopy_flags(struct weft_port *p, const struct weft_port_opts *o)
{
	const struct weft_port_dev *d = p->dev;

	if (!weft_port_wants_chains(d, o) || !(p->fp.flags & WEFT_FRAME_PORT_MULTISEG))
		return 0;
	if (d->limits.copies_tx)
		return WEFT_FRAME_PORT_EXTBUF;
	p->fp.tx_segs = d->info.tx_desc_lim.nb_mtu_seg_max;
	if (p->fp.tx_segs == UINT16_MAX)
		p->fp.tx_segs = 0;
	if (d->zcopy.by_page)
		p->fp.tx_page_bits = (uint8_t)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
	snprintf(p->fp.mem_domain, sizeof(p->fp.mem_domain), "%s",
		 d->zcopy.reach == WEFT_DMA_USER ? "dpdk" : "dpdk-eal");
	return WEFT_FRAME_PORT_EXTBUF | WEFT_FRAME_PORT_REG;
}

bool weft_port_tx_done(struct weft_frame_port *fp)
{
	struct weft_port *p = weft_port_of(fp);
	const struct weft_port_dev *d = p->dev;

	/* A port that was stopped has returned all. */
	if (!d->started)
		return true;
	/*
	 * The PMD is not called any more; the buffers that it holds come back when the port is
	 * closed.
	 */
	if (weft_port_has_ended(d))
		return false;
	if (d->zcopy.done == WEFT_TX_DONE_CLEANUP) {
		rte_eth_tx_done_cleanup(p->port_id, p->queue, 0);
		return false; /* it has freed the frames that are done */
	}
	return rte_eth_tx_descriptor_status(p->port_id, p->queue,
					    (uint16_t)(d->zcopy.tx_ring - 1)) ==
	       RTE_ETH_TX_DESC_DONE;
}

int weft_port_mem_map(struct weft_frame_port *fp, void *addr, size_t len,
		      struct weft_mem_lane **mem, char *why, size_t why_len)
{
	struct weft_port_dev *d = weft_port_of(fp)->dev;

	return weft_dma_map(d->port_id, d->zcopy.reach, addr, len, mem, why, why_len);
}

/*
 * The last queue of a port stops it. While other queues are open, the NIC still reads this one's
 * ring.
 */
#define DRAIN_MS 20u

void weft_port_zcopy_drain(struct weft_port *p)
{
	uint64_t end = rte_rdtsc() + rte_get_tsc_hz() / 1000 * DRAIN_MS;

	if (!(p->fp.flags & WEFT_FRAME_PORT_REG) || p->dev->open_queues == 1)
		return;
	while (!weft_port_tx_done(&p->fp) && p->dev->zcopy.done == WEFT_TX_DONE_STATUS &&
	       rte_rdtsc() < end)
		rte_pause();
}

void weft_port_zcopy_counters(const struct weft_port *p, weft_frame_port_counter_cb cb, void *arg)
{
	struct weft_dma_stats s;

	if (!(p->fp.flags & WEFT_FRAME_PORT_REG))
		return;
	weft_dma_query(&s);
#define REPORT(field, name, help) cb(name, s.field, arg);
	WEFT_DMA_LEVELS(REPORT)
	WEFT_DMA_COUNTERS(REPORT)
#undef REPORT
}
