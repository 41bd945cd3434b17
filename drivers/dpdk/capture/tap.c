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
	/* Acquire: the filter is whole. Who takes it away waits for `busy`. */
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

void weft_tap_copy(struct weft_tap *tap, struct rte_mbuf *const *pkts, unsigned int n,
		   enum weft_pcapng_direction direction)
{
	const struct weft_platform *pf = tap->platform;
	struct weft_tap_target *t;
	unsigned int i;
	uint64_t time;

	/* In one order for both sides: either we see no target, or who took it sees `busy`. */
	atomic_store_explicit(&tap->busy, true, memory_order_seq_cst);
	t = atomic_load_explicit(&tap->target, memory_order_seq_cst);
	if (!t) {
		atomic_store_explicit(&tap->busy, false, memory_order_release);
		return;
	}
	tap->in_use = t;
	time = pf->now(pf->arg) + t->offset;
	for (i = 0; i < n; i++) {
		copy_frame(t, pkts[i], time, direction);
		weft_capture_ring_offered(t->ring);
	}
}

void weft_tap_copied(struct weft_tap *tap, unsigned int n)
{
	struct weft_tap_target *t = tap->in_use;

	weft_capture_ring_commit(t->ring, n);
	if (t->written_by_lane)
		t->written_by_lane(t->capture);
	tap->in_use = NULL;
	/* Release: what was done to ring and filter comes before. */
	atomic_store_explicit(&tap->busy, false, memory_order_release);
}
