/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>

#include "base/copy.h"
#include "shm/shm.h"

/* The ring is full, there is no chunk, or the lane is not up. */
static int send_refused(struct shm_ep *lane_ep)
{
	struct shm_iface *s = shm_iface(lane_ep->base.iface);

	if (lane_ep->state == SHM_DEAD)
		return lane_ep->status < 0 ? lane_ep->status : -ECONNRESET;
	lane_ep->starved = true;
	s->count.tx_no_room++;
	return -EAGAIN;
}

static inline void record_sent(struct shm_ep *lane_ep)
{
	shm_iface(lane_ep->base.iface)->count.tx_messages++;
	shm_wake_peer(lane_ep, lane_ep->tx.dir, SHM_WAKE_RECORD);
}

int shm_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const void *payload, size_t length)
{
	struct shm_ep *lane_ep = shm_ep(base);
	unsigned int num;
	uint64_t *line;

	if (hdr_len > SHM_SHORT_MAX || length > SHM_SHORT_MAX - hdr_len)
		return -EMSGSIZE;
	num = shm_record_lines(hdr_len + length);
	line = lane_ep->state == SHM_UP ? shm_tx_reserve(&lane_ep->tx, num) : NULL;
	if (!line)
		return send_refused(lane_ep);
	weft_copy(line + 1, hdr, hdr_len);
	if (length > 0)
		weft_copy((char *)(line + 1) + hdr_len, payload, length);
	shm_tx_publish(&lane_ep->tx, line, num, hdr_len + length, am_id, 0);
	record_sent(lane_ep);
	return 0;
}

/* Reserve a chunk and its line, or return NULL. */
static uint64_t *reserve_chunk(struct shm_ep *lane_ep, int *chunk)
{
	if (lane_ep->state != SHM_UP)
		return NULL;
	*chunk = shm_tx_chunk(&lane_ep->tx);
	return *chunk < 0 ? NULL : shm_tx_reserve(&lane_ep->tx, 1);
}

static void send_chunk(struct shm_ep *lane_ep, uint64_t *line, int chunk, size_t length,
		       uint8_t am_id)
{
	shm_tx_publish_chunk(&lane_ep->tx, line, (unsigned int)chunk, length, am_id);
	shm_iface(lane_ep->base.iface)->count.tx_chunks++;
	record_sent(lane_ep);
}

ssize_t shm_am_bcopy(struct weft_lane_ep *base, uint8_t am_id, weft_lane_pack_cb pack, void *arg)
{
	struct shm_ep *lane_ep = shm_ep(base);
	uint64_t *line;
	int chunk;
	ssize_t n;

	line = reserve_chunk(lane_ep, &chunk);
	if (!line)
		return send_refused(lane_ep);
	n = pack(lane_ep->tx.dir->chunks[chunk], SHM_CHUNK_SIZE, arg);
	if (n <= 0)
		return n < 0 ? n : -EINVAL;
	send_chunk(lane_ep, line, chunk, (size_t)n, am_id);
	return n;
}

/* ------------------------------------------------------------------ completions */

/* Add a completion that is due when the peer has taken all records before it. There is a place. */
static void wait_for_head(struct shm_ep *lane_ep, struct weft_lane_comp *comp)
{
	struct shm_iface *s = shm_iface(lane_ep->base.iface);
	unsigned int i = (lane_ep->first_comp + lane_ep->num_comps) % SHM_COMPS;

	lane_ep->comps[i] = (struct shm_comp){.position = lane_ep->tx.tail, .comp = comp};
	if (lane_ep->num_comps++ == 0)
		LIST_INSERT_HEAD(&s->waiting, lane_ep, waiting);
}

static struct weft_lane_comp *next_comp(struct shm_ep *lane_ep)
{
	struct weft_lane_comp *comp = lane_ep->comps[lane_ep->first_comp].comp;

	lane_ep->first_comp = (uint16_t)((lane_ep->first_comp + 1) % SHM_COMPS);
	if (--lane_ep->num_comps == 0)
		LIST_REMOVE(lane_ep, waiting);
	return comp;
}

unsigned int shm_complete(struct shm_ep *lane_ep)
{
	struct weft_lane_comp *comp;
	unsigned int n = 0;

	if (lane_ep->num_comps > 0)
		shm_tx_look(&lane_ep->tx);
	while (lane_ep->num_comps > 0 &&
	       (int32_t)(lane_ep->tx.head - lane_ep->comps[lane_ep->first_comp].position) >= 0) {
		comp = next_comp(lane_ep);
		comp->done(comp, 0);
		n++;
	}
	return n;
}

void shm_cancel(struct shm_ep *lane_ep, int status)
{
	struct weft_lane_comp *comp;

	while (lane_ep->num_comps > 0) {
		comp = next_comp(lane_ep);
		comp->done(comp, status);
	}
	shm_native_cancel(lane_ep, status);
}

/*
 * Shared memory has no real zero copy: the bytes are copied into the ring and out of it. In spite
 * of that, the caller's buffer is released only when the message was delivered, as lane.h requires.
 */
int shm_am_zcopy(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		 struct weft_lane_comp *comp)
{
	struct shm_ep *lane_ep = shm_ep(base);
	size_t n = hdr_len;
	uint64_t *line;
	unsigned int i;
	char *to;
	int chunk;

	(void)mem;
	for (i = 0; i < iovcnt && n <= SHM_CHUNK_SIZE; i++)
		n = iov[i].iov_len > SHM_CHUNK_SIZE ? SIZE_MAX : n + iov[i].iov_len;
	if (n > SHM_CHUNK_SIZE)
		return -EMSGSIZE;
	if (n == 0)
		return -EINVAL;
	line = lane_ep->num_comps < SHM_COMPS ? reserve_chunk(lane_ep, &chunk) : NULL;
	if (!line)
		return send_refused(lane_ep);
	to = (char *)lane_ep->tx.dir->chunks[chunk];
	if (hdr_len > 0)
		memcpy(to, hdr, hdr_len);
	for (i = 0, to += hdr_len; i < iovcnt; to += iov[i++].iov_len)
		if (iov[i].iov_len > 0)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
	send_chunk(lane_ep, line, chunk, n, am_id);
	wait_for_head(lane_ep, comp);
	return 0;
}

int shm_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp)
{
	struct shm_ep *lane_ep = shm_ep(base);

	if (lane_ep->state == SHM_DEAD)
		return send_refused(lane_ep);
	if (lane_ep->state != SHM_UP)
		return WEFT_LANE_IDLE;
	shm_tx_look(&lane_ep->tx);
	if (lane_ep->tx.head == lane_ep->tx.tail)
		return WEFT_LANE_IDLE;
	if (lane_ep->num_comps == SHM_COMPS)
		return send_refused(lane_ep);
	wait_for_head(lane_ep, comp);
	return 0;
}
