/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "roce.h"
#include "roce_send.h"

/* ------------------------------------------------------------------ messages */

/*
 * Short messages are copied into their place, and sent inline if the device can do so. Others are
 * packed into a registered buffer. Zero-copy messages have their header in the place, and their
 * payload stays in the user's memory. All of these bytes are kept until the peer has processed the
 * message and the device has completed it.
 */

/* Places reserved for BYE and for one count. */
#define RESERVE 2

static inline bool has_room(const struct roce_iface *r, const struct roce_chan *chan)
{
	return weft_roce_sq_room(&chan->sq, RESERVE) && weft_roce_credit_room(&chan->credit) &&
	       roce_share_place(r, chan);
}

static inline bool share_of_buffers(const struct roce_iface *r, const struct roce_chan *chan)
{
	const struct roce_pool *pool = &r->tx_pool;

	/* A queue pair has at most one buffer for each message that is not complete. */
	return roce_share(r, chan->credit.sent - chan->done, (uint32_t)pool->max,
			  (uint32_t)(pool->max - pool->in_use));
}

static struct roce_chan *pick_chan(struct roce_lane_ep *lane_ep, bool spread)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	unsigned int i, at = 0;

	if (spread && lane_ep->num_qps > 1)
		at = lane_ep->next_qp++ % lane_ep->num_qps;
	if (!roce_tx_room(r, RESERVE)) {
		r->count.no_place++;
		return NULL;
	}
	for (i = 0; i < lane_ep->num_qps; i++) {
		struct roce_chan *chan = lane_ep->chans[(at + i) % lane_ep->num_qps];

		if (has_room(r, chan))
			return chan;
	}
	if (weft_roce_credit_room(&lane_ep->chans[at]->credit))
		r->count.no_place++;
	else
		r->count.no_credit++;
	lane_ep->base.tx_room = false;
	return NULL;
}

static int not_up(const struct roce_lane_ep *lane_ep)
{
	return lane_ep->status ? lane_ep->status : -EAGAIN;
}

/* The caller has checked that there is a place, and fills in the rest of the work request. */
static struct ibv_send_wr *chan_add(struct roce_chan *chan, enum roce_slot_kind kind,
				    struct roce_slot **out)
{
	struct roce_iface *r = roce_lane_ep_iface(chan->lane_ep);
	uint32_t at = chan->sq.head, n = at - chan->sq.posted;
	struct roce_slot *slot = &chan->slots[at & (ROCE_SQ_DEPTH - 1)];
	struct ibv_send_wr *wr = &chan->wr[n];

	slot->comp = NULL;
	slot->bytes = 0;
	slot->at = at;
	slot->kind = (uint8_t)kind;
	wr->wr_id = (uintptr_t)slot;
	wr->next = wr + 1;
	wr->sg_list = chan->sge[n];
	wr->num_sge = 1;
	wr->send_flags = 0;
	if (at == chan->sq.tail)
		chan->busy_since = r->now;
	chan->sq.head++;
	r->tx_room--;
	*out = slot;
	return wr;
}

static void chan_commit(struct roce_chan *chan)
{
	struct roce_iface *r = roce_lane_ep_iface(chan->lane_ep);

	if (weft_roce_sq_ring(&chan->sq, chan->sq.head - chan->sq.tail == 1)) {
		roce_chan_ring(chan);
	} else if (!chan->in_batch) {
		chan->in_batch = true;
		TAILQ_INSERT_TAIL(&r->batches, chan, batch_link);
		r->base.tx_open = true;
	}
}

void roce_chan_ring(struct roce_chan *chan)
{
	struct roce_iface *r = roce_lane_ep_iface(chan->lane_ep);
	uint32_t n = chan->sq.head - chan->sq.posted, i;
	struct ibv_send_wr *bad = NULL;
	int err;

	if (n == 0)
		return;
	for (i = 0; i < n; i++) {
		if (chan->wr[i].opcode != IBV_WR_SEND_WITH_IMM)
			continue;
		chan->wr[i].imm_data = htonl(chan->wr[i].imm_data |
					     (chan->credit.processed & WEFT_ROCE_COUNT_MASK));
		chan->credit.reported = chan->credit.processed;
	}
	chan->wr[n - 1].next = NULL;
	chan->wr[n - 1].send_flags |= IBV_SEND_SIGNALED;
	/* After a gap nothing may be sent: the peer would take later messages for missing ones. */
	err = chan->lost ? EIO : ibv_post_send(chan->qp, chan->wr, &bad);
	r->count.doorbells++;
	if (__builtin_expect(err != 0, 0) && !chan->lost) {
		chan->lost = true;
		chan->lost_from = chan->sq.posted + (bad ? (uint32_t)(bad - chan->wr) : 0);
		chan->lane_ep->broken = err;
		r->failing = true;
	}
	chan->sq.posted = chan->sq.head;
}

static inline struct roce_unacked *next_message(struct roce_chan *chan, uint8_t am_id)
{
	struct roce_unacked *u = &chan->unacked[chan->credit.sent & chan->unacked_mask];

	*u = (struct roce_unacked){.id = am_id};
	return u;
}

static void message_sent(struct roce_chan *chan, struct roce_slot *slot, struct roce_unacked *u,
			 size_t bytes)
{
	struct roce_lane_ep *lane_ep = chan->lane_ep;
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);

	u->bytes = slot->bytes = (uint32_t)bytes;
	slot->sent = ++chan->credit.sent;
	lane_ep->base.queued += (uint32_t)bytes;
	r->count.tx++;
	r->count.tx_bytes += bytes;
	if (!chan->in_wait) {
		chan->in_wait = true;
		TAILQ_INSERT_TAIL(&r->waits, chan, wait_link);
	}
	chan_commit(chan);
}

int roce_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		  const void *payload, size_t length)
{
	struct roce_lane_ep *lane_ep = roce_lane_ep_of(base);
	size_t total = hdr_len + length;
	struct roce_chan *chan;
	struct ibv_send_wr *wr;
	struct roce_slot *slot;
	uint8_t *mem;

	if (__builtin_expect(!base->up, 0))
		return not_up(lane_ep);
	if (total > base->iface->attr.max_short || length > total)
		return -EMSGSIZE;
	/* Use the first queue pair while it has space: then most messages arrive in order. */
	chan = pick_chan(lane_ep, false);
	if (!chan)
		return -EAGAIN;
	wr = chan_add(chan, ROCE_SLOT_SEND, &slot);
	mem = roce_place(chan, chan->credit.sent);
	memcpy(mem, hdr, hdr_len);
	if (length > 0)
		memcpy(mem + hdr_len, payload, length);
	wr->opcode = IBV_WR_SEND_WITH_IMM;
	wr->send_flags = total <= roce_lane_ep_iface(lane_ep)->max_inline ? IBV_SEND_INLINE : 0;
	wr->imm_data = weft_roce_imm(0, am_id, 0);
	wr->sg_list[0] = (struct ibv_sge){
		.addr = (uintptr_t)mem,
		.length = (uint32_t)total,
		.lkey = roce_ring_of(chan, chan->credit.sent)->lkey,
	};
	message_sent(chan, slot, next_message(chan, am_id), total);
	return 0;
}

ssize_t roce_am_bcopy(struct weft_lane_ep *base, uint8_t am_id, weft_lane_pack_cb pack, void *arg)
{
	struct roce_lane_ep *lane_ep = roce_lane_ep_of(base);
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct roce_chan *chan;
	struct ibv_send_wr *wr;
	struct roce_unacked *u;
	struct roce_slot *slot;
	struct roce_buf *buf;
	ssize_t n;

	if (__builtin_expect(!base->up, 0))
		return not_up(lane_ep);
	chan = pick_chan(lane_ep, true);
	if (!chan)
		return -EAGAIN;
	buf = share_of_buffers(r, chan) ? roce_pool_get(&r->tx_pool) : NULL;
	if (!buf) {
		r->count.no_buffer++;
		return -EAGAIN;
	}
	n = pack(buf->data, base->max_msg, arg);
	if (n <= 0 || (size_t)n > base->max_msg) {
		roce_pool_put(&r->tx_pool, buf);
		return n < 0 ? n : -EINVAL;
	}
	wr = chan_add(chan, ROCE_SLOT_SEND, &slot);
	u = next_message(chan, am_id);
	u->buf = buf;
	wr->opcode = IBV_WR_SEND_WITH_IMM;
	wr->imm_data = weft_roce_imm(0, am_id, 0);
	wr->sg_list[0] = (struct ibv_sge){
		.addr = (uintptr_t)buf->data,
		.length = (uint32_t)n,
		.lkey = buf->lkey,
	};
	message_sent(chan, slot, u, (size_t)n);
	return n;
}

static ssize_t sge_fill(struct ibv_sge *sge, const struct iovec *iov, unsigned int iovcnt,
			const struct weft_mem_lane *mem)
{
	size_t total = 0;
	unsigned int i;

	for (i = 0; i < iovcnt; i++) {
		if (!roce_mem_holds(mem, iov[i].iov_base, iov[i].iov_len) ||
		    iov[i].iov_len > UINT32_MAX - total)
			return -EINVAL;
		sge[i] = (struct ibv_sge){
			.addr = roce_mem_iova(mem, iov[i].iov_base),
			.length = (uint32_t)iov[i].iov_len,
			.lkey = mem->mr->lkey,
		};
		total += iov[i].iov_len;
	}
	return (ssize_t)total;
}

int roce_am_zcopy(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		  const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		  struct weft_lane_comp *comp)
{
	struct roce_lane_ep *lane_ep = roce_lane_ep_of(base);
	struct ibv_sge sge[ROCE_MAX_SGE];
	struct roce_unacked *u;
	struct roce_chan *chan;
	struct ibv_send_wr *wr;
	struct roce_slot *slot;
	unsigned int used = 0;
	uint8_t *place;
	ssize_t n;

	if (__builtin_expect(!base->up, 0))
		return not_up(lane_ep);
	if (!mem || iovcnt > base->iface->attr.max_iov || hdr_len > base->iface->attr.max_zcopy_hdr)
		return -EINVAL;
	n = sge_fill(sge + 1, iov, iovcnt, mem);
	if (n < 0)
		return (int)n;
	if (hdr_len + (size_t)n > base->max_msg)
		return -EMSGSIZE;
	chan = pick_chan(lane_ep, true);
	if (!chan)
		return -EAGAIN;
	wr = chan_add(chan, ROCE_SLOT_SEND, &slot);
	place = roce_place(chan, chan->credit.sent);
	if (hdr_len > 0) {
		memcpy(place, hdr, hdr_len);
		wr->sg_list[used++] = (struct ibv_sge){
			.addr = (uintptr_t)place,
			.length = (uint32_t)hdr_len,
			.lkey = roce_ring_of(chan, chan->credit.sent)->lkey,
		};
	}
	memcpy(place + ROCE_ZCOPY_HDR, iov, iovcnt * sizeof(*iov));
	u = next_message(chan, am_id);
	u->comp = comp;
	u->hdr_len = (uint8_t)hdr_len;
	u->iovcnt = (uint8_t)iovcnt;
	memcpy(&wr->sg_list[used], sge + 1, iovcnt * sizeof(sge[0]));
	wr->num_sge = (int)(used + iovcnt);
	wr->opcode = IBV_WR_SEND_WITH_IMM;
	/* The user waits for the memory, so the count is requested at once. */
	wr->imm_data = weft_roce_imm(WEFT_ROCE_IMM_ACK_REQ, am_id, 0);
	message_sent(chan, slot, u, hdr_len + (size_t)n);
	return 0;
}

int roce_chan_count_send(struct roce_chan *chan)
{
	struct roce_iface *r = roce_lane_ep_iface(chan->lane_ep);
	struct weft_roce_word word = weft_roce_word(chan->credit.processed);
	struct ibv_send_wr *wr;
	struct roce_slot *slot;

	/* One place is reserved for BYE. */
	if (!weft_roce_sq_room(&chan->sq, 1) || !roce_tx_room(r, 0))
		return -EAGAIN;
	wr = chan_add(chan, ROCE_SLOT_WORD, &slot);
	memcpy(roce_slot_mem(chan, slot), &word, sizeof(word));
	wr->opcode = IBV_WR_RDMA_WRITE;
	wr->wr.rdma.remote_addr = chan->word_remote;
	wr->wr.rdma.rkey = chan->lane_ep->remote_rkey;
	wr->sg_list[0] = (struct ibv_sge){
		.addr = (uintptr_t)roce_slot_mem(chan, slot),
		.length = sizeof(word),
		.lkey = chan->rings[0]->lkey,
	};
	if (r->max_inline >= sizeof(word))
		wr->send_flags = IBV_SEND_INLINE;
	chan->credit.reported = chan->credit.processed;
	r->count.words++;
	chan_commit(chan);
	return 0;
}

void roce_chan_ping(struct roce_chan *chan)
{
	struct ibv_send_wr *wr;
	struct roce_slot *slot;

	if (!has_room(roce_lane_ep_iface(chan->lane_ep), chan))
		return;
	wr = chan_add(chan, ROCE_SLOT_SEND, &slot);
	wr->opcode = IBV_WR_SEND_WITH_IMM;
	wr->imm_data =
		weft_roce_imm(WEFT_ROCE_IMM_CONTROL | WEFT_ROCE_IMM_ACK_REQ, WEFT_ROCE_PING, 0);
	wr->num_sge = 0;
	message_sent(chan, slot, next_message(chan, ROCE_NO_MESSAGE), 0);
}

bool roce_chan_bye(struct roce_chan *chan)
{
	struct roce_iface *r = roce_lane_ep_iface(chan->lane_ep);
	struct ibv_send_wr *wr;
	struct roce_slot *slot;

	if (chan->bye_sent || !weft_roce_sq_room(&chan->sq, 0) || r->tx_room == 0)
		return false;
	chan->bye_sent = true;
	r->byes--;
	wr = chan_add(chan, ROCE_SLOT_WORD, &slot);
	wr->opcode = IBV_WR_SEND_WITH_IMM;
	wr->imm_data = weft_roce_imm(WEFT_ROCE_IMM_CONTROL, WEFT_ROCE_BYE, 0);
	wr->num_sge = 0;
	roce_chan_ring(chan);
	return true;
}

void roce_tx_flush(struct weft_lane_iface *base)
{
	struct roce_iface *r = roce_iface_of(base);
	struct roce_chan *chan;

	while ((chan = TAILQ_FIRST(&r->batches))) {
		TAILQ_REMOVE(&r->batches, chan, batch_link);
		chan->in_batch = false;
		roce_chan_ring(chan);
	}
	base->tx_open = false;
}

/* ------------------------------------------------------------------ remote memory */

/*
 * One call is one request: the limits of a device are attributes of the iface (max_get, max_put,
 * max_rma_iov), and the protocol layer splits accordingly. The hardware of both ends limits
 * outstanding reads and atomics of a queue pair. A further read would block the messages after it,
 * so it is refused with -EAGAIN.
 */

static struct roce_chan *pick_rma_chan(struct roce_lane_ep *lane_ep, bool read)
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
	n = sge_fill(sge, iov, iovcnt, mem);
	if (n < 0)
		return (int)n;
	if (n == 0)
		return -EINVAL;
	if ((size_t)n > (read ? attr->max_get : attr->max_put))
		return -EMSGSIZE;
	chan = pick_rma_chan(lane_ep, read);
	if (!chan)
		return -EAGAIN;
	wr = chan_add(chan, read ? ROCE_SLOT_READ : ROCE_SLOT_WRITE, &slot);
	memcpy(wr->sg_list, sge, iovcnt * sizeof(sge[0]));
	wr->num_sge = (int)iovcnt;
	wr->opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
	wr->send_flags = IBV_SEND_SIGNALED;
	set_remote(wr, remote_offset, key);
	slot->comp = comp;
	slot->bytes = (uint32_t)n;
	chan->reads += read;
	chan_commit(chan);
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
	/* Check the arguments: for the device they would be an error of the whole queue pair. */
	if (!result || !comp || ((key >> 32) + remote_offset) % 8 != 0 ||
	    (op != WEFT_LANE_AMO_ADD && op != WEFT_LANE_AMO_CSWAP))
		return -EINVAL;
	if (!(base->iface->attr.features & WEFT_LANE_F_AMO64))
		return -ENOTSUP;
	chan = pick_rma_chan(lane_ep, true);
	if (!chan)
		return -EAGAIN;
	wr = chan_add(chan, ROCE_SLOT_AMO, &slot);
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
	chan_commit(chan);
	return 0;
}
