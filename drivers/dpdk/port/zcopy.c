/* SPDX-License-Identifier: BSD-3-Clause */

/* rte_dev_dma_map(): in DPDK since 19.05, and still not called stable. */
#define ALLOW_EXPERIMENTAL_API

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_memory.h>

#include "frame/frame_port.h"
#include "port/port.h"
#include "port/zcopy.h"

/* ---- memory that NICs may read -------------------------------------------------------------- */

/* User memory with registrations; start and end are on page boundaries. */
struct area {
	uintptr_t start, end;
	struct rte_device *dev; /* device through which it is mapped; NULL: it is not mapped */
	uint32_t refs;
	bool stuck; /* it could not be unmapped: no other memory may be mapped there */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Sorted by address, disjoint. */
static struct area areas[WEFT_DMA_AREAS];
static unsigned int num_areas;
static struct weft_dma_stats stats;
/* Open ports for which any memory may be mapped, by number. */
static struct rte_device *devices[RTE_MAX_ETHPORTS];

static uintptr_t page_size(void)
{
	return (uintptr_t)sysconf(_SC_PAGESIZE);
}

/* DPDK's calls set rte_errno or errno, and some set none. */
static int last_error(void)
{
	if (rte_errno)
		return -rte_errno;
	return errno ? -errno : -EIO;
}

/* ---- one area; the lock is held ------------------------------------------------------------- */

/* Register with the EAL in pages of the system's size: larger pages are multiples of it. */
static int extmem_register(uintptr_t start, uintptr_t end)
{
	size_t page = page_size(), n = (end - start) / page, i;
	rte_iova_t *iova = malloc(n * sizeof(*iova));
	int rc = 0;

	if (!iova)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		iova[i] = start + i * page;
	errno = rte_errno = 0;
	if (rte_extmem_register((void *)start, end - start, iova, (unsigned int)n, page))
		rc = last_error();
	free(iova);
	return rc;
}

static int area_map(struct rte_device *dev, uintptr_t start, uintptr_t end)
{
	int rc = extmem_register(start, end);

	if (rc)
		return rc;
	errno = rte_errno = 0;
	if (!rte_dev_dma_map(dev, (void *)start, start, end - start))
		return 0;
	rc = last_error();
	rte_extmem_unregister((void *)start, end - start);
	return rc;
}

/* @return false: the NIC can still reach the memory */
static bool area_unmap(const struct area *a)
{
	if (rte_dev_dma_unmap(a->dev, (void *)a->start, a->start, a->end - a->start)) {
		RTE_LOG(ERR, USER1,
			"weft: %zu bytes at %p cannot be unmapped from DMA: they stay locked\n",
			(size_t)(a->end - a->start), (void *)a->start);
		return false;
	}
	rte_extmem_unregister((void *)a->start, a->end - a->start);
	return true;
}

static void area_insert(unsigned int i, struct rte_device *dev, uintptr_t start, uintptr_t end)
{
	memmove(&areas[i + 1], &areas[i], (num_areas - i) * sizeof(areas[0]));
	areas[i] = (struct area){.start = start, .end = end, .dev = dev};
	num_areas++;
	stats.mapped++;
	stats.bytes += end - start;
}

/* Drop one reference. @return the index of the next area */
static unsigned int area_put(unsigned int i)
{
	struct area *a = &areas[i];

	if (--a->refs > 0)
		return i + 1;
	if (a->dev && !a->stuck)
		a->stuck = !area_unmap(a);
	if (a->stuck)
		return i + 1;
	stats.unmapped++;
	stats.bytes -= a->end - a->start;
	num_areas--;
	memmove(a, a + 1, (num_areas - i) * sizeof(*a));
	return i;
}

/* @return the index of the first area that ends behind @p at; num_areas: there is none */
static unsigned int area_at(uintptr_t at)
{
	unsigned int i = 0;

	while (i < num_areas && areas[i].end <= at)
		i++;
	return i;
}

/* ---- a range of areas; the lock is held ----------------------------------------------------- */

static int lists_overlap(const struct rte_memseg_list *msl, void *arg)
{
	const struct area *want = arg;
	uintptr_t base = (uintptr_t)msl->base_va;
	unsigned int i = area_at(base);

	if (base >= want->end || base + msl->len <= want->start)
		return 0;
	/* Areas of this table are external memory of the EAL, too. */
	return i == num_areas || areas[i].start != base;
}

static int check_range(uintptr_t start, uintptr_t end, char *why, size_t why_len)
{
	struct area want = {.start = start, .end = end};
	unsigned int i, gaps = 0;

	if (rte_memseg_list_walk(lists_overlap, &want) != 0) {
		snprintf(why, why_len,
			 "a part of it belongs to the EAL, or was registered with it by the "
			 "application");
		return -EOPNOTSUPP;
	}
	for (i = area_at(start); i < num_areas && areas[i].start < end; i++) {
		if (areas[i].stuck) {
			snprintf(why, why_len,
				 "a part of it could not be unmapped from DMA before");
			return -EOPNOTSUPP;
		}
		gaps += areas[i].start > start;
		start = areas[i].end;
	}
	gaps += start < end;
	if (num_areas + gaps <= WEFT_DMA_AREAS)
		return 0;
	snprintf(why, why_len,
		 "%u areas of memory are mapped for DMA, which is the limit: use "
		 "fewer and larger buffers, or register one large area (weft_mem_register())",
		 num_areas);
	stats.no_room++;
	return -ENOSPC;
}

static void put_range(uintptr_t start, uintptr_t end)
{
	unsigned int i = area_at(start);

	while (i < num_areas && areas[i].start < end)
		i = area_put(i);
}

static int get_range(struct rte_device *dev, uintptr_t start, uintptr_t end, char *why,
		     size_t why_len)
{
	int rc = check_range(start, end, why, why_len);
	uintptr_t at = start, stop;
	unsigned int i;

	if (rc)
		return rc;
	for (i = area_at(start); at < end; i++) {
		stop = i < num_areas ? RTE_MIN(areas[i].start, end) : end;
		if (at < stop) {
			rc = area_map(dev, at, stop);
			if (rc)
				break;
			area_insert(i, dev, at, stop);
		}
		areas[i].refs++;
		at = areas[i].end;
	}
	if (!rc)
		return 0;
	stats.failed++;
	if (at > start)
		put_range(start, at);
	snprintf(why, why_len, "it cannot be mapped for DMA: %s%s", strerror(-rc),
		 rc == -ENOMEM ? " (locked memory: ulimit -l, or LimitMEMLOCK= of its unit)" : "");
	return rc;
}

/* ---- registrations -------------------------------------------------------------------------- */

/* @param[out] iova  per page; NULL: addresses are IOVAs. @return -ENOENT: not the EAL's memory */
static int eal_memory(uintptr_t start, uintptr_t end, rte_iova_t **iova, uint8_t *bits)
{
	const struct rte_memseg_list *msl = rte_mem_virt2memseg_list((void *)start);
	struct rte_memseg *ms;
	uintptr_t page;
	size_t n, i;

	if (!msl || msl->external || end - (uintptr_t)msl->base_va > msl->len)
		return -ENOENT;
	page = start & ~(uintptr_t)(msl->page_sz - 1);
	n = (end - 1 - page) / msl->page_sz + 1;
	*bits = (uint8_t)__builtin_ctzll(msl->page_sz);
	*iova = malloc(n * sizeof(**iova));
	if (!*iova)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		ms = rte_mem_virt2memseg((void *)(page + i * msl->page_sz), msl);
		if (!ms || !ms->addr || ms->iova == RTE_BAD_IOVA)
			break;
		(*iova)[i] = ms->iova;
	}
	if (i == n && rte_eal_iova_mode() != RTE_IOVA_VA)
		return 0;
	free(*iova);
	*iova = NULL;
	return i == n ? 0 : -ENOENT;
}

static void unmap_eal(struct weft_mem_lane *mem)
{
	free(mem->iova);
	free(mem);
}

static void unmap_user(struct weft_mem_lane *mem)
{
	uintptr_t page = page_size();

	pthread_mutex_lock(&lock);
	put_range(mem->start & ~(page - 1), RTE_ALIGN_CEIL(mem->end, page));
	pthread_mutex_unlock(&lock);
	free(mem);
}

static int map_user(uint16_t port, struct weft_mem_lane *mem, char *why, size_t why_len)
{
	uintptr_t page = page_size();
	int rc = -ENODEV;

	mem->unmap = unmap_user;
	snprintf(why, why_len, "the NIC of this interface was taken away, or its port was closed");
	pthread_mutex_lock(&lock);
	if (devices[port])
		rc = get_range(devices[port], mem->start & ~(page - 1),
			       RTE_ALIGN_CEIL(mem->end, page), why, why_len);
	pthread_mutex_unlock(&lock);
	return rc;
}

int weft_dma_map(uint16_t port, enum weft_dma_reach reach, void *addr, size_t len,
		 struct weft_mem_lane **out, char *why, size_t why_len)
{
	struct weft_mem_lane *mem = calloc(1, sizeof(*mem));
	int rc;

	snprintf(why, why_len, "out of memory");
	if (!mem)
		return -ENOMEM;
	atomic_init(&mem->refs, 1);
	mem->start = (uintptr_t)addr;
	mem->end = mem->start + len;
	mem->unmap = unmap_eal;
	rc = eal_memory(mem->start, mem->end, &mem->iova, &mem->page_bits);
	if (rc == -ENOENT && reach == WEFT_DMA_USER) {
		rc = map_user(port, mem, why, why_len);
	} else if (rc == -ENOENT) {
		snprintf(why, why_len,
			 "this NIC reads memory of the EAL only: there is no IOMMU that maps other "
			 "memory, or the addresses of other memory are too high for the IOMMU");
		rc = -EOPNOTSUPP;
	}
	if (rc) {
		free(mem);
		return rc;
	}
	*out = mem;
	return 0;
}

/* ---- ports ---------------------------------------------------------------------------------- */

static bool takes_maps(struct rte_device *dev)
{
	uintptr_t page = page_size();
	struct area a = {.dev = dev};
	bool takes, undone = true;
	void *p;

	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
		 0);
	if (p == MAP_FAILED)
		return false;
	a.start = (uintptr_t)p;
	a.end = a.start + page;
	takes = !area_map(dev, a.start, a.end);
	if (takes)
		undone = area_unmap(&a);
	/* Else the page is kept, so that no other memory is ever mapped there. */
	if (undone)
		munmap(p, page);
	return takes && undone;
}

/* Map the areas again that lost their device. @return false: some of them cannot be mapped */
static bool map_again(struct rte_device *dev)
{
	unsigned int i;

	for (i = 0; i < num_areas; i++) {
		if (areas[i].dev || areas[i].stuck)
			continue;
		if (area_map(dev, areas[i].start, areas[i].end))
			return false;
		areas[i].dev = dev;
	}
	return true;
}

static struct rte_device *any_device(void)
{
	unsigned int i = 0;

	while (i < RTE_MAX_ETHPORTS - 1 && !devices[i])
		i++;
	return devices[i];
}

/* @p gone will be freed. Its areas go to another device, which shares its maps, or are unmapped. */
static void reassign_areas(struct rte_device *gone)
{
	struct rte_device *heir = any_device();
	unsigned int i;

	for (i = 0; i < num_areas; i++) {
		if (areas[i].dev != gone)
			continue;
		if (!heir && !areas[i].stuck)
			areas[i].stuck = !area_unmap(&areas[i]);
		areas[i].dev = heir;
	}
}

/* Without an IOMMU a NIC uses physical addresses, and only the EAL's hugepages do not move. */
enum weft_dma_reach weft_dma_open(uint16_t port, struct rte_device *dev)
{
	enum weft_dma_reach reach = WEFT_DMA_EAL;

	if (rte_eal_iova_mode() != RTE_IOVA_VA)
		return rte_eal_has_hugepages() ? WEFT_DMA_EAL : WEFT_DMA_NONE;
	pthread_mutex_lock(&lock);
	if (takes_maps(dev)) {
		devices[port] = dev;
		if (map_again(dev)) {
			reach = WEFT_DMA_USER;
		} else {
			devices[port] = NULL;
			reassign_areas(dev);
		}
	}
	pthread_mutex_unlock(&lock);
	return reach;
}

void weft_dma_close(uint16_t port)
{
	struct rte_device *gone;

	pthread_mutex_lock(&lock);
	gone = devices[port];
	devices[port] = NULL;
	if (gone)
		reassign_areas(gone);
	pthread_mutex_unlock(&lock);
}

void weft_dma_query(struct weft_dma_stats *out)
{
	pthread_mutex_lock(&lock);
	*out = stats;
	out->areas = num_areas;
	pthread_mutex_unlock(&lock);
}

/* ---- zero-copy sends ------------------------------------------------------------------------ */

/* No frame is sent to find out what a PMD does, since other hosts may share the network. */

/*
 * A PMD frees sent mbufs when descriptors run short, so the last ones stay until more is sent. Two
 * calls are used instead, where the PMDs' sources (DPDK 22.11) show that they work:
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
	/* behind QEMU's IOMMU a frame with a descriptor across scattered pages is lost */
	bool emulated;
	enum weft_port_vector vector;
} known[] = {
	{"net_e1000_em", WEFT_TX_DONE_STATUS, true, WEFT_VECTOR_NONE},
	{"net_e1000_igb", WEFT_TX_DONE_STATUS, true, WEFT_VECTOR_NONE},
	{"net_e1000_igb_vf", WEFT_TX_DONE_STATUS, true, WEFT_VECTOR_NONE},
	{"net_igc", WEFT_TX_DONE_STATUS, false, WEFT_VECTOR_NONE},
	{"net_ixgbe", WEFT_TX_DONE_STATUS, false, WEFT_VECTOR_PLAIN},
	{"net_ixgbe_vf", WEFT_TX_DONE_STATUS, false, WEFT_VECTOR_PLAIN},
	{"net_i40e", WEFT_TX_DONE_STATUS, false, WEFT_VECTOR_PLAIN},
	{"net_iavf", WEFT_TX_DONE_STATUS, false, WEFT_VECTOR_SUMS},
	{"net_ice", WEFT_TX_DONE_STATUS, false, WEFT_VECTOR_SUMS},
	{"net_ena", WEFT_TX_DONE_CLEANUP, false, WEFT_VECTOR_NONE},
};

/*
 * A second buffer for user memory costs more than a copy of this number of bytes: measured with
 * memif and net_ring (test/unit/msg/frame_bench.c). So shorter frames are copied where the PMD
 * copies, too, and where chains, or tx_rs_thresh 1, would cost the PMD its vector path. With packet
 * sockets the copy costs more: 64 KiB and 1 MiB had 0.92 and 0.89 of the bandwidth.
 */
#define COPIED_FRAME 2048u

static void find_driver(struct weft_port_dev *d)
{
	for (size_t i = 0; i < RTE_DIM(known); i++) {
		if (!d->info.driver_name || strcmp(d->info.driver_name, known[i].driver))
			continue;
		d->zcopy.done = known[i].how;
		d->zcopy.by_page = known[i].emulated;
		d->zcopy.vector = known[i].vector;
	}
}

void weft_port_zcopy_find(struct weft_port_dev *d, bool no_extbuf)
{
	const struct weft_port_limits *l = &d->limits;

	d->zcopy = (struct weft_port_zcopy){0};
	if (no_extbuf || l->no_extbuf || l->no_chains || l->copies_tx || l->by_pointer ||
	    !(d->info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) || !d->info.device)
		return;
	find_driver(d);
	if (d->zcopy.done != WEFT_TX_DONE_UNKNOWN)
		d->zcopy.reach = weft_dma_open(d->port_id, d->info.device);
}

/* @return true: without chains the PMD sends by its vector path */
static bool sends_by_vectors(const struct weft_port_dev *d, bool sums)
{
	return d->zcopy.vector == WEFT_VECTOR_SUMS ||
	       (d->zcopy.vector == WEFT_VECTOR_PLAIN && !sums);
}

bool weft_port_wants_chains(const struct weft_port_dev *d, bool no_extbuf, bool sums)
{
	const struct weft_port_limits *l = &d->limits;

	if (no_extbuf || l->no_extbuf || l->no_chains)
		return false;
	if (d->frame_size <= COPIED_FRAME &&
	    ((l->copies_tx && !l->packet_socket) || sends_by_vectors(d, sums)))
		return false;
	return l->copies_tx || d->zcopy.reach != WEFT_DMA_NONE;
}

void weft_port_zcopy_txconf(const struct weft_port_dev *d, struct rte_eth_txconf *conf)
{
	if (conf->offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS && d->zcopy.reach != WEFT_DMA_NONE &&
	    d->zcopy.done == WEFT_TX_DONE_STATUS)
		conf->tx_rs_thresh = 1;
}

uint32_t weft_port_zcopy_flags(struct weft_port *p, bool no_extbuf)
{
	const struct weft_port_dev *d = p->dev;
	bool sums = d->offloads_tx & RTE_ETH_TX_OFFLOAD_UDP_CKSUM;

	if (!weft_port_wants_chains(d, no_extbuf, sums) ||
	    !(p->fp.flags & WEFT_FRAME_PORT_MULTISEG))
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

	/* A port that was stopped has returned all buffers. */
	if (!weft_port_is_started(d))
		return true;
	/* The PMD is not called any more; its buffers come back when the port is closed. */
	if (weft_port_has_ended(d))
		return false;
	if (d->zcopy.done == WEFT_TX_DONE_CLEANUP) {
		rte_eth_tx_done_cleanup(p->port_id, p->queue, 0);
		return false; /* the call above has freed the frames that are done */
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

/* While other queues are open, the NIC still reads the ring of a queue that closes. */
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
