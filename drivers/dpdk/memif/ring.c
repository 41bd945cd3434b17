/* SPDX-License-Identifier: BSD-3-Clause */

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memif/ring.h"

static struct weft_mring_shm *shm_at(const struct weft_mregion *region, size_t offset)
{
	return (struct weft_mring_shm *)(region->at + offset);
}

static void set_size(struct weft_mring *r, unsigned int log2)
{
	r->size = (uint16_t)(1u << log2);
	r->mask = (uint16_t)(r->size - 1u);
}

/*
 * The indices of a client's ring. On C2S the client has all entries at first, so tail counts those
 * of the round before. On S2C it hands over all entries at first, so its head is a round ahead of
 * the frames that it has taken.
 */
void weft_mring_make(struct weft_mring *r, const struct weft_mregion *region, size_t offset,
		     size_t bufs, uint32_t bsize, unsigned int log2, bool sends)
{
	struct weft_mring_shm *shm = shm_at(region, offset);
	struct weft_mring_desc *d;

	*r = (struct weft_mring){
		.shm = shm,
		.peer = &shm->tail,
		.own = &shm->head,
		.bufs = region->at + bufs,
		.bsize = bsize,
		.event = -1,
	};
	set_size(r, log2);
	r->add_peer = sends ? r->size : 0;
	r->add_own = sends ? 0 : r->size;
	/* relaxed: the control socket passes the ring on */
	for (unsigned int i = 0; i < r->size; i++) {
		d = &shm->desc[i];
		atomic_init(&d->region, 0);
		atomic_init(&d->offset, (uint32_t)(bufs + (size_t)i * bsize));
		atomic_init(&d->length, bsize);
	}
	atomic_store_explicit(&shm->flags, sends ? 0 : WEFT_MRING_MASK_INT, memory_order_relaxed);
	atomic_store_explicit(&shm->cookie, WEFT_MRING_COOKIE, memory_order_relaxed);
}

void weft_mring_open(struct weft_mring *r)
{
	r->next = r->ready = 0;
	weft_mring_done(r, 0);
}

int weft_mring_attach(struct weft_mring *r, const struct weft_mregion *regions,
		      unsigned int num_regions, unsigned int region, uint64_t offset,
		      unsigned int log2)
{
	struct weft_mring_shm *shm;

	if (log2 > WEFT_MRING_LOG2_MAX || offset % 8 != 0 || region >= num_regions ||
	    offset > regions[region].len || weft_mring_bytes(log2) > regions[region].len - offset)
		return -EINVAL;
	shm = shm_at(&regions[region], offset);
	if (atomic_load_explicit(&shm->cookie, memory_order_relaxed) != WEFT_MRING_COOKIE)
		return -EINVAL;
	*r = (struct weft_mring){
		.shm = shm,
		.peer = &shm->head,
		.own = &shm->tail,
		.regions = regions,
		.num_regions = num_regions,
		.event = -1,
	};
	set_size(r, log2);
	/* For both directions the server owns tail. */
	atomic_store_explicit(&shm->tail, 0, memory_order_relaxed);
	return 0;
}

/* ---- barriers ------------------------------------------------------------------------------- */

static void membarrier(int cmd)
{
	syscall(SYS_membarrier, cmd, 0, 0);
}

void weft_mring_take_part(void)
{
	membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

/*
 * The peer's sender reads the flag right after it has moved its index, without a barrier in
 * between. So the barrier is on all processors: either the sender sees the flag cleared, or this
 * end sees the index moved.
 */
int weft_mring_arm(struct weft_mring *r)
{
	atomic_fetch_and_explicit(&r->shm->flags, (uint16_t)~WEFT_MRING_MASK_INT,
				  memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
	membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
	if (weft_mring_poll(r) == 0)
		return 0;
	weft_mring_disarm(r);
	return -EBUSY;
}
