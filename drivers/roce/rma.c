/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Remote memory. One call is one request: the limits of a device are attributes of the iface
 * (max_get, max_put, max_rma_iov), and the protocol layer splits accordingly. The hardware of both
 * ends limits outstanding reads and atomics of a queue pair. One beyond that would block the
 * messages after it, so it is refused instead.
 */

#include <errno.h>
#include <string.h>

#include "roce.h"

#define RESERVE 2

/* Choose a queue pair for a request, which with @p read needs a read resource. */
static struct roce_chan *pick_chan(struct roce_lane_ep *lane_ep, bool read)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	unsigned int i, at = lane_ep->next_qp++ % lane_ep->num_qps;

	for (i = 0; i < lane_ep->num_qps && roce_tx_room(r, RESERVE); i++) {
		struct roce_chan *chan = lane_ep->chans[(at + i) % lane_ep->num_qps];

		if (weft_roce_sq_room(&chan->sq, RESERVE) && roce_share_place(r, chan) &&
		    (!read || chan->reads < chan->max_reads))
			return chan;
	}
	r->count.no_place++;
	return NULL;
}

static void set_remote(struct ibv_send_wr *wr, uint64_t offset, uint64_t key)
{
	wr->wr.rdma.remote_addr = (key >> 32) + offset;
	wr->wr.rdma.rkey = (uint32_t)key;
}

static int transfer_start(struct weft_lane_ep *base, bool read, const struct iovec *iov,
			  unsigned int iovcnt, struct weft_mem_lane *mem, uint64_t remote_offset,
			  uint64_t key, struct weft_lane_comp *comp)
{
	struct roce_lane_ep *lane_ep = roce_lane_ep_of(base);
	const struct weft_lane_attr *attr = &base->iface->attr;
	struct ibv_sge sge[ROCE_MAX_SGE];
	struct roce_chan *chan;
	struct ibv_send_wr *wr;
	struct roce_slot *slot;
	ssize_t n;

	if (__builtin_expect(!base->up, 0))
		return lane_ep->status ? lane_ep->status : -EAGAIN;
	if (!mem || iovcnt == 0 || iovcnt > attr->max_rma_iov || !comp)
		return -EINVAL;
	n = roce_sge_fill(sge, iov, iovcnt, mem);
	if (n < 0)
		return (int)n;
	if (n == 0)
		return -EINVAL;
	if ((size_t)n > (read ? attr->max_get : attr->max_put))
		return -EMSGSIZE;
	chan = pick_chan(lane_ep, read);
	if (!chan)
		return -EAGAIN;
	wr = roce_chan_add(chan, read ? ROCE_SLOT_READ : ROCE_SLOT_WRITE, &slot);
	memcpy(wr->sg_list, sge, iovcnt * sizeof(sge[0]));
	wr->num_sge = (int)iovcnt;
	wr->opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
	wr->send_flags = IBV_SEND_SIGNALED;
	set_remote(wr, remote_offset, key);
	slot->comp = comp;
	slot->bytes = (uint32_t)n;
	chan->reads += read;
	roce_chan_commit(chan);
	return (int)n;
}

int roce_get_zcopy(struct weft_lane_ep *base, const struct iovec *iov, unsigned int iovcnt,
		   struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
		   struct weft_lane_comp *comp)
{
	struct roce_iface *r = roce_iface_of(base->iface);
	int n = transfer_start(base, true, iov, iovcnt, mem, remote_offset, key, comp);

	if (n < 0)
		return n;
	r->count.gets++;
	r->count.get_bytes += (unsigned int)n;
	return 0;
}

int roce_put_zcopy(struct weft_lane_ep *base, const struct iovec *iov, unsigned int iovcnt,
		   struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
		   struct weft_lane_comp *comp)
{
	struct roce_iface *r = roce_iface_of(base->iface);
	int n = transfer_start(base, false, iov, iovcnt, mem, remote_offset, key, comp);

	if (n < 0)
		return n;
	r->count.puts++;
	r->count.put_bytes += (unsigned int)n;
	return 0;
}

int roce_amo64(struct weft_lane_ep *base, enum weft_lane_amo op, uint64_t operand, uint64_t compare,
	       uint64_t *result, uint64_t remote_offset, uint64_t key, struct weft_lane_comp *comp)
{
	struct roce_lane_ep *lane_ep = roce_lane_ep_of(base);
	struct roce_chan *chan;
	struct ibv_send_wr *wr;
	struct roce_slot *slot;

	if (__builtin_expect(!base->up, 0))
		return lane_ep->status ? lane_ep->status : -EAGAIN;
	/* Check here: the device would report these as an error of the whole queue pair. */
	if (!result || !comp || ((key >> 32) + remote_offset) % 8 != 0 ||
	    (op != WEFT_LANE_AMO_ADD && op != WEFT_LANE_AMO_CSWAP))
		return -EINVAL;
	if (!(base->iface->attr.features & WEFT_LANE_F_AMO64))
		return -ENOTSUP;
	chan = pick_chan(lane_ep, true);
	if (!chan)
		return -EAGAIN;
	wr = roce_chan_add(chan, ROCE_SLOT_AMO, &slot);
	wr->opcode =
		op == WEFT_LANE_AMO_ADD ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
	wr->send_flags = IBV_SEND_SIGNALED;
	wr->wr.atomic.remote_addr = (key >> 32) + remote_offset;
	wr->wr.atomic.rkey = (uint32_t)key;
	wr->wr.atomic.compare_add = op == WEFT_LANE_AMO_ADD ? operand : compare;
	wr->wr.atomic.swap = operand;
	wr->sg_list[0] = (struct ibv_sge){
		.addr = (uintptr_t)roce_slot_mem(chan, slot),
		.length = 8,
		.lkey = chan->rings[0]->lkey,
	};
	slot->comp = comp;
	slot->result = result;
	chan->reads++;
	roce_iface_of(base->iface)->count.amos++;
	roce_chan_commit(chan);
	return 0;
}
