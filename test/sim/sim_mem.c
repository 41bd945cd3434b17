/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registered memory of simulated NICs: what the wire reads must be mapped when it reads it, and
 * named by the addresses that the NIC sees.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim_priv.h"

#define PAGE_BITS 12u

struct sim_mem {
	struct weft_mem_lane lane; /* first */
	struct sim_port *port;
	LIST_ENTRY(sim_mem) entry;
};

/* Of all ports: registrations move between those of a node. */
static LIST_HEAD(, sim_mem) mems = LIST_HEAD_INITIALIZER(mems);

static void unmap(struct weft_mem_lane *lane)
{
	struct sim_mem *mem = (struct sim_mem *)lane;

	LIST_REMOVE(mem, entry);
	mem->port->num_mems--;
	free(lane->iova);
	free(mem);
}

/* Pages as physical memory has them: hardly two in a row. */
static rte_iova_t *scatter(uintptr_t start, uintptr_t end)
{
	size_t n = ((end - 1) >> PAGE_BITS) - (start >> PAGE_BITS) + 1, i;
	rte_iova_t *iova = sim_alloc(n * sizeof(*iova));

	for (i = 0; i < n; i++)
		iova[i] = (rte_iova_t)((start >> PAGE_BITS) + i + (i / 3) * 7) << PAGE_BITS;
	return iova;
}

int sim_mem_map(struct weft_frame_port *fp, void *addr, size_t len, struct weft_mem_lane **out,
		char *why, size_t why_len)
{
	struct sim_port *port = (struct sim_port *)fp;
	struct sim_mem *mem;

	if (port->params.max_mems && port->num_mems >= port->params.max_mems) {
		snprintf(why, why_len, "%u registrations are all that there may be",
			 port->num_mems);
		return -ENOSPC;
	}
	mem = sim_alloc(sizeof(*mem));
	atomic_init(&mem->lane.refs, 1);
	mem->lane.start = (uintptr_t)addr;
	mem->lane.end = mem->lane.start + len;
	mem->lane.unmap = unmap;
	if (port->params.scattered) {
		mem->lane.page_bits = PAGE_BITS;
		mem->lane.iova = scatter(mem->lane.start, mem->lane.end);
	}
	mem->port = port;
	port->num_mems++;
	LIST_INSERT_HEAD(&mems, mem, entry);
	*out = &mem->lane;
	return 0;
}

bool sim_mem_readable(const struct rte_mbuf *seg)
{
	uintptr_t at = (uintptr_t)rte_pktmbuf_mtod(seg, const uint8_t *);
	const struct sim_mem *mem;
	rte_iova_t iova;

	LIST_FOREACH(mem, &mems, entry) {
		if (at < mem->lane.start || at + seg->data_len > mem->lane.end)
			continue;
		if (weft_mem_lane_iova(&mem->lane, (const void *)at, seg->data_len, &iova) ==
			    seg->data_len &&
		    iova == rte_pktmbuf_iova(seg))
			return true;
	}
	return false;
}
