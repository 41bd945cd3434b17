/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture/tap.h"

#include <rte_common.h>

#include "capture/filter.h"
#include "capture/ring.h"

static void copy_bytes(uint8_t *to, const struct rte_mbuf *m, uint32_t len)
{
	uint32_t n;

	for (; m && len; m = m->next, to += n, len -= n) {
		n = RTE_MIN(len, (uint32_t)m->data_len);
		memcpy(to, rte_pktmbuf_mtod(m, void *), n);
	}
}

static void copy_frame(struct weft_tap_target *t, const struct rte_mbuf *m, uint64_t time,
		       enum weft_pcapng_direction direction)
{
	/* Acquire: the filter is complete. A thread that removes it waits until `busy` is false. */
	struct weft_capture_filter *f = atomic_load_explicit(&t->filter, memory_order_acquire);
	uint32_t caplen = RTE_MIN(m->pkt_len, t->snaplen);
	struct weft_capture_record *r;

	if (f && !weft_capture_filter_takes(f, m))
		return;
	r = weft_capture_ring_put(t->ring, caplen);
	if (!r)
		return;
	r->caplen = caplen;
	r->len = m->pkt_len;
	r->direction = direction;
	r->time_ns = time;
	copy_bytes(r->data, m, caplen);
}

/* @return the target to copy to, until weft_tap_copied(); NULL: there is no capture any more */
static struct weft_tap_target *target_enter(struct weft_tap *tap, uint64_t *time)
{
	const struct weft_platform *pf = tap->platform;
	struct weft_tap_target *t;

	/*
	 * Sequentially consistent on both sides: this thread sees no target, or the thread that
	 * removed the target sees `busy`.
	 */
	atomic_store_explicit(&tap->busy, true, memory_order_seq_cst);
	t = atomic_load_explicit(&tap->target, memory_order_seq_cst);
	if (!t) {
		atomic_store_explicit(&tap->busy, false, memory_order_release);
		return NULL;
	}
	tap->in_use = t;
	*time = pf->now(pf->arg) + t->offset;
	return t;
}

void weft_tap_copy(struct weft_tap *tap, struct rte_mbuf *const *pkts, unsigned int n,
		   enum weft_pcapng_direction direction)
{
	uint64_t time;
	struct weft_tap_target *t = target_enter(tap, &time);
	unsigned int i;

	for (i = 0; t && i < n; i++) {
		copy_frame(t, pkts[i], time, direction);
		weft_capture_ring_offered(t->ring);
	}
}

static void copy_pieces(uint8_t *to, const struct iovec *iov, uint32_t len)
{
	uint32_t n;

	for (; len; iov++, to += n, len -= n) {
		n = RTE_MIN(len, (uint32_t)iov->iov_len);
		memcpy(to, iov->iov_base, n);
	}
}

void weft_tap_copy_bytes(struct weft_tap *tap, const struct iovec *iov, unsigned int num,
			 enum weft_pcapng_direction direction)
{
	struct weft_capture_record *r;
	uint64_t time;
	struct weft_tap_target *t = target_enter(tap, &time);
	uint32_t len = 0, caplen;
	unsigned int i;

	if (!t)
		return;
	for (i = 0; i < num; i++)
		len += (uint32_t)iov[i].iov_len;
	caplen = RTE_MIN(len, t->snaplen);
	/* A filter expression applies to frames only. Relaxed: a hint. */
	if (!atomic_load_explicit(&t->filter, memory_order_relaxed)) {
		r = weft_capture_ring_put(t->ring, caplen);
		if (r) {
			r->caplen = caplen;
			r->len = len;
			r->direction = direction;
			r->time_ns = time;
			copy_pieces(r->data, iov, caplen);
		}
	}
	weft_capture_ring_offered(t->ring);
}

void weft_tap_copied(struct weft_tap *tap, unsigned int n)
{
	struct weft_tap_target *t = tap->in_use;

	weft_capture_ring_commit(t->ring, n);
	if (t->written_by_lane)
		t->written_by_lane(t->capture);
	tap->in_use = NULL;
	/* Release: after all changes of ring and filter. */
	atomic_store_explicit(&tap->busy, false, memory_order_release);
}
