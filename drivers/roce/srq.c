/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The shared receive queue. The number of posted buffers never falls below the sum of the windows
 * promised to all peers (roce_credit.h), except by the buffers of the current poll, for which there
 * is a margin.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "roce.h"

#define DEFAULT_BUFS 16384 /* at most; memory is allocated as peers connect */
#define MARGIN (2 * ROCE_POLL)

int roce_srq_open(struct roce_iface *r, char *why, size_t why_len)
{
	uint32_t wanted = r->rx_total ? r->rx_total : DEFAULT_BUFS;
	struct ibv_srq_init_attr attr = {.srq_context = r, .attr = {.max_sge = 1}};
	int rc;

	if (r->dev->attr.max_srq < 1) {
		snprintf(why, why_len,
			 "%s has no shared receive queues, without which RoCE lanes can't promise "
			 "buffers to many peers: use another device, or raw-DPDK lanes",
			 r->dev->name);
		return -ENOTSUP;
	}
	if (wanted > (uint32_t)r->dev->attr.max_srq_wr)
		wanted = (uint32_t)r->dev->attr.max_srq_wr;
	if (wanted < 2 * MARGIN)
		wanted = 2 * MARGIN;
	r->rx_total = wanted;
	attr.attr.max_wr = wanted;
	r->srq = ibv_create_srq(r->dev->pd, &attr);
	if (!r->srq) {
		rc = -errno;
		roce_setup_failed(r->dev, "shared receive queue", -rc, why, why_len);
		return rc;
	}
	roce_pool_init(&r->rx_pool, r->dev, r->opts.seg, wanted);
	rc = roce_pool_reserve(&r->rx_pool, MARGIN);
	if (rc < 0) {
		roce_setup_failed(r->dev, "receive buffers", -rc, why, why_len);
		return rc;
	}
	roce_srq_fill(r);
	if (r->posted < MARGIN) {
		snprintf(why, why_len, "%s: receive buffers can't be posted", r->dev->name);
		return -EIO;
	}
	return 0;
}

/* Post @p n buffers of the pool. @return the number posted */
static uint32_t post_buffers(struct roce_iface *r, uint32_t n)
{
	struct ibv_recv_wr wr[ROCE_POLL], *bad = NULL;
	struct ibv_sge sge[ROCE_POLL];
	struct roce_buf *buf[ROCE_POLL];
	uint32_t i, k;

	for (i = 0; i < n && (buf[i] = roce_pool_get(&r->rx_pool)) != NULL; i++) {
		sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)buf[i]->data,
			.length = (uint32_t)r->rx_pool.size,
			.lkey = buf[i]->lkey,
		};
		/*
		 * Bit 0 distinguishes receives from sends in failed completions, which have no
		 * opcode.
		 */
		wr[i] = (struct ibv_recv_wr){
			.wr_id = (uintptr_t)buf[i] | 1,
			.next = &wr[i + 1],
			.sg_list = &sge[i],
			.num_sge = 1,
		};
	}
	if (i == 0)
		return 0;
	wr[i - 1].next = NULL;
	if (ibv_post_srq_recv(r->srq, wr, &bad) == 0)
		return i;
	k = bad ? (uint32_t)(bad - wr) : 0;
	while (i > k)
		roce_pool_put(&r->rx_pool, buf[--i]);
	return k;
}

static uint32_t target_of(const struct roce_iface *r)
{
	uint32_t target = r->promised + MARGIN;

	return target < r->rx_total - r->kept ? target : r->rx_total - r->kept;
}

void roce_srq_fill(struct roce_iface *r)
{
	uint32_t target = target_of(r), n;

	while (r->posted < target) {
		n = target - r->posted;
		n = post_buffers(r, n < ROCE_POLL ? n : ROCE_POLL);
		if (n == 0)
			break;
		r->posted += n;
	}
}

int roce_srq_cover(struct roce_iface *r)
{
	uint32_t target = target_of(r);
	int rc = 0;

	if (r->posted < target)
		rc = roce_pool_reserve(&r->rx_pool, target - r->posted);
	roce_srq_fill(r);
	if (r->posted >= r->promised)
		return 0;
	return rc < 0 ? rc : -EIO;
}

void roce_release(struct weft_lane_iface *base, void *desc)
{
	struct roce_iface *r = roce_iface_of(base);

	r->kept--;
	roce_pool_put(&r->rx_pool, desc);
}
