/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames are copied from the lane to the capture's ring. */

#include <assert.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_arp.h>
#include <rte_common.h>
#include <rte_mbuf.h>

#include "capture/capture_file.h"
#include "capture/tap.h"
#include "frame/arp.h"
#include "frame/frame.h"

/* ---- headers of IPv6 lanes over sockets ----------------------------------------------------- */

/*
 * On IPv6 lanes over sockets the engine's frames have IPv4 headers, with numbers of hosts as
 * addresses (frame/arp.h). Captures get the headers that the network sees.
 */

static_assert(WEFT_ND_MAX >= WEFT_ENCAP_MAX, "room for both");

struct six_head {
	uint32_t len;  /**< bytes of the headers in front of the rest of the frame */
	uint32_t skip; /**< bytes of the frame that the headers replace */
	uint8_t bytes[WEFT_ND_MAX];
};

#define IP4_HEAD ((uint32_t)RTE_ETHER_HDR_LEN + WEFT_IP_UDP_LEN)

/* The kernel handles UDP checksums. A record gets the one of the whole frame, even if cut. */
static void fill_checksum(const struct rte_mbuf *m, const struct rte_ipv6_hdr *ip,
			  struct rte_udp_hdr *udp)
{
	uint16_t rest = 0;
	uint32_t sum;

	if (m->pkt_len > IP4_HEAD && rte_raw_cksum_mbuf(m, IP4_HEAD, m->pkt_len - IP4_HEAD, &rest))
		return;
	sum = (uint32_t)weft_pseudo6_sum(ip) + udp->dgram_len + rte_raw_cksum(udp, sizeof(*udp)) +
	      rest;
	udp->dgram_cksum = (uint16_t)~weft_csum_fold(sum);
	if (udp->dgram_cksum == 0)
		udp->dgram_cksum = UINT16_MAX;
}

static void lane_head(const struct weft_hosts *hosts, const struct rte_mbuf *m, uint32_t whole,
		      struct six_head *head)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(eth + 1);
	const struct in6_addr *src = weft_hosts_ip(hosts, weft_be32(ip->src_addr));
	const struct in6_addr *dst = weft_hosts_ip(hosts, weft_be32(ip->dst_addr));
	struct rte_ether_hdr *eth6 = (struct rte_ether_hdr *)head->bytes;
	struct rte_ipv6_hdr *ip6 = (struct rte_ipv6_hdr *)(eth6 + 1);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip6 + 1);

	if (ip->next_proto_id != IPPROTO_UDP || !src || !dst)
		return;
	*eth6 = *eth;
	eth6->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV6);
	memcpy(udp, ip + 1, sizeof(*udp));
	*ip6 = (struct rte_ipv6_hdr){
		.vtc_flow = rte_cpu_to_be_32(6u << 28 | (uint32_t)ip->type_of_service << 20),
		.payload_len = udp->dgram_len,
		.proto = IPPROTO_UDP,
		.hop_limits = ip->time_to_live,
	};
	memcpy(&ip6->src_addr, src, sizeof(*src));
	memcpy(&ip6->dst_addr, dst, sizeof(*dst));
	udp->dgram_cksum = 0;
	if (m->pkt_len + WEFT_IP6_MORE <= whole)
		fill_checksum(m, ip6, udp);
	head->len = (uint32_t)(sizeof(*eth6) + WEFT_IP6_UDP_LEN);
	head->skip = IP4_HEAD;
}

/* The sender of the ARP packet is the sender of the neighbour discovery frame. */
static void arp_head(const struct weft_hosts *hosts, const struct rte_mbuf *m,
		     struct six_head *head)
{
	const struct rte_arp_hdr *arp =
		rte_pktmbuf_mtod_offset(m, const struct rte_arp_hdr *, RTE_ETHER_HDR_LEN);
	struct weft_rx_filter sender = {.ip = weft_be32(arp->arp_data.arp_sip)};
	const struct in6_addr *ip = weft_hosts_ip(hosts, sender.ip);

	if (!ip && sender.ip)
		return;
	if (ip) /* else the packet is a probe */
		memcpy(sender.ip6, ip, sizeof(sender.ip6));
	memcpy(sender.mac, &arp->arp_data.arp_sha, sizeof(sender.mac));
	head->len = weft_nd_write(&sender, hosts, arp, head->bytes);
	head->skip = head->len ? m->pkt_len : 0;
}

/*
 * Make the headers of a frame; in place of an ARP packet, the frame of neighbour discovery.
 * @param whole  a longer frame gets the UDP checksum 0: no file has all of its bytes
 * @param[out] head  both lengths are 0 for other frames, and if a host has lost its number
 */
static void six_head(const struct weft_hosts *hosts, const struct rte_mbuf *m, uint32_t whole,
		     struct six_head *head)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);

	head->len = head->skip = 0;
	if (m->data_len < IP4_HEAD)
		return;
	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		lane_head(hosts, m, whole, head);
	else if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP))
		arp_head(hosts, m, head);
}

/* ---- the ring ------------------------------------------------------------------------------- */

#define HEAD sizeof(struct weft_capture_record)

struct weft_capture_ring *weft_capture_ring_create(uint64_t size)
{
	struct weft_capture_ring *r = aligned_alloc(64, sizeof(*r));
	uint64_t n = 4096;

	if (!r)
		return NULL;
	memset(r, 0, sizeof(*r));
	while (n < size)
		n *= 2;
	/* Pages that no record has reached use no memory. */
	r->data = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->data == MAP_FAILED) {
		free(r);
		return NULL;
	}
	r->size = n;
	return r;
}

void weft_capture_ring_destroy(struct weft_capture_ring *r)
{
	if (!r)
		return;
	munmap(r->data, r->size);
	free(r);
}

/* ---- the producer's side. At most WEFT_CAPTURE_BURST frames are offered between commits. ---- */

static bool has_room(struct weft_capture_ring *r, uint64_t head)
{
	if (head - r->tail_seen <= r->size)
		return true;
	/* Acquire: the consumer has read the bytes that will be overwritten. */
	r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
	return head - r->tail_seen <= r->size;
}

/* @return a record with `size` and `dropped` set; NULL: the frame is dropped and counted */
static struct weft_capture_record *ring_put(struct weft_capture_ring *r, uint32_t caplen)
{
	uint64_t need = (HEAD + caplen + 7) & ~7ull, at = r->now.head & (r->size - 1), skip = 0;
	struct weft_capture_record *rec;

	r->now.seen++;
	/* A record is contiguous. Sizes are multiples of 8, so a size 0, the end mark, has room. */
	if (r->size - at < need)
		skip = r->size - at;
	if (atomic_load_explicit(&r->dead, memory_order_relaxed) ||
	    !has_room(r, r->now.head + skip + need)) {
		r->now.dropped++;
		r->now.unreported++;
		return NULL;
	}
	if (skip) {
		((struct weft_capture_record *)(r->data + at))->size = 0;
		at = 0;
	}
	rec = (struct weft_capture_record *)(r->data + at);
	rec->size = (uint32_t)need;
	rec->dropped = r->now.unreported;
	r->now.unreported = 0;
	r->now.head += skip + need;
	return rec;
}

/* @param rec  record of the next frame; NULL: it was dropped, or does not match the filter */
static void ring_offered(struct weft_capture_ring *r, struct weft_capture_record *rec)
{
	r->put[r->offered] = rec;
	r->mark[r->offered++] = r->now;
}

/* The first @p n frames are recorded; the others are discarded. */
static void ring_commit(struct weft_capture_ring *r, unsigned int n)
{
	if (n > 0) {
		r->done = r->mark[n - 1];
		/* Release: records are complete before the consumer sees them. */
		atomic_store_explicit(&r->head, r->done.head, memory_order_release);
		/* Relaxed: readers of both counters need no consistent pair. */
		atomic_store_explicit(&r->seen, r->done.seen, memory_order_relaxed);
		atomic_store_explicit(&r->dropped, r->done.dropped, memory_order_relaxed);
	}
	r->now = r->done;
	r->offered = 0;
}

/* ---- the consumer's side -------------------------------------------------------------------- */

const struct weft_capture_record *weft_capture_ring_peek(struct weft_capture_ring *r)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	const struct weft_capture_record *rec;

	/* Acquire: the committed records are complete. */
	if (tail == atomic_load_explicit(&r->head, memory_order_acquire))
		return NULL;
	rec = (const struct weft_capture_record *)(r->data + (tail & (r->size - 1)));
	if (rec->size)
		return rec;
	tail += r->size - (tail & (r->size - 1));
	atomic_store_explicit(&r->tail, tail, memory_order_release);
	return (const struct weft_capture_record *)r->data;
}

void weft_capture_ring_next(struct weft_capture_ring *r, const struct weft_capture_record *rec)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	/* Release: the record has been read before it is overwritten. */
	atomic_store_explicit(&r->tail, tail + rec->size, memory_order_release);
}

#define PATHS_NS 10000000u /* ns between two records of a path's state, at least */

/* ---- the tap -------------------------------------------------------------------------------- */

static void copy_bytes(uint8_t *to, const struct rte_mbuf *m, uint32_t skip, uint32_t len)
{
	uint32_t n;

	for (; m && len; m = m->next) {
		if (skip >= m->data_len) {
			skip -= m->data_len;
			continue;
		}
		n = RTE_MIN(len, (uint32_t)m->data_len - skip);
		memcpy(to, rte_pktmbuf_mtod_offset(m, void *, skip), n);
		to += n;
		len -= n;
		skip = 0;
	}
}

/* The first @p len bytes of a frame with this head. */
static void copy_whole(uint8_t *to, const struct rte_mbuf *m, const struct six_head *head,
		       uint32_t len)
{
	uint32_t n = RTE_MIN(len, head->len);

	memcpy(to, head->bytes, n);
	copy_bytes(to + n, m, head->skip, len - n);
}

static bool filter_takes(struct weft_capture_filter *f, const struct rte_mbuf *m,
			 const struct six_head *head, uint32_t len)
{
	uint8_t copy[WEFT_CAPTURE_FILTERED];
	uint32_t n = RTE_MIN(len, WEFT_CAPTURE_FILTERED);

	if (head->len == 0)
		return weft_capture_filter_takes(f, m);
	copy_whole(copy, m, head, n);
	return weft_capture_filter_takes_bytes(f, copy, n, len);
}

/* @return the record, NULL = there is none */
static struct weft_capture_record *copy_frame(const struct weft_tap *tap, const struct rte_mbuf *m,
					      uint64_t time, enum weft_pcapng_direction direction)
{
	struct weft_tap_target *t = tap->in_use;
	/* Acquire: the filter is complete. A thread that removes it waits until `busy` is false. */
	struct weft_capture_filter *f = atomic_load_explicit(&t->filter, memory_order_acquire);
	struct six_head head = {.len = 0};
	struct weft_capture_record *r;
	uint32_t len, caplen;

	if (tap->hosts)
		six_head(tap->hosts, m, UINT16_MAX, &head);
	len = m->pkt_len - head.skip + head.len;
	caplen = RTE_MIN(len, t->snaplen);
	if (f && !filter_takes(f, m, &head, len))
		return NULL;
	r = ring_put(t->ring, caplen);
	if (!r)
		return NULL;
	r->caplen = caplen;
	r->len = len;
	r->direction = direction;
	r->time_ns = time;
	r->within = 0;
	copy_whole(r->data, m, &head, caplen);
	return r;
}

/* @return the target to copy to, valid until target_leave(); NULL: there is no capture any more */
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
	tap->offered_at = pf->now(pf->arg);
	*time = tap->offered_at + t->offset;
	return t;
}

/* A state is no frame: it is not counted. @return false: there is no room */
static bool put_state(const struct weft_tap *tap, uint32_t kind, const void *state, uint32_t size)
{
	struct weft_capture_ring *r = tap->in_use->ring;
	struct weft_capture_mark before = r->now;
	struct weft_capture_record *rec = ring_put(r, size);

	before.head = r->now.head;
	r->now = before;
	if (!rec)
		return false;
	rec->caplen = rec->len = size;
	rec->direction = kind;
	rec->time_ns = tap->offered_at + tap->in_use->offset;
	rec->within = rec->dropped = 0;
	memcpy(rec->data, state, size);
	ring_offered(r, NULL);
	ring_commit(r, 1);
	return true;
}

void weft_tap_path(struct weft_tap *tap, const struct weft_tap_path *path)
{
	put_state(tap, WEFT_CAPTURE_PATH, path, sizeof(*path));
}

void weft_tap_missed(struct weft_tap *tap, uint64_t total)
{
	uint64_t more = total - tap->missed;

	if (tap->missed_in != tap->in_use) { /* what was lost before the capture is not in it */
		tap->missed_in = tap->in_use;
		tap->missed = total;
	} else if (more && put_state(tap, WEFT_CAPTURE_MISSED, &more, sizeof(more))) {
		tap->missed = total;
	}
}

/* Record states of paths, every PATHS_NS. */
static void record_paths(struct weft_tap *tap)
{
	if (!tap->paths || tap->offered_at - tap->paths_at < PATHS_NS)
		return;
	tap->paths_at = tap->offered_at;
	tap->paths_next = tap->paths(tap->paths_arg, tap, tap->paths_next);
}

/* Commit the first @p n frames of the burst, and leave the target. */
static void target_leave(struct weft_tap *tap, unsigned int n)
{
	struct weft_tap_target *t = tap->in_use;

	ring_commit(t->ring, n);
	record_paths(tap);
	if (t->written_by_lane)
		t->written_by_lane(t->capture);
	tap->in_use = NULL;
	/* Release: after the last use of ring and filter. */
	atomic_store_explicit(&tap->busy, false, memory_order_release);
}

void weft_tap_end(struct weft_tap *tap)
{
	uint64_t time;

	if (!tap || !target_enter(tap, &time))
		return;
	tap->paths_at = 0;
	target_leave(tap, 0);
}

void weft_tap_copy(struct weft_tap *tap, struct rte_mbuf *const *pkts, unsigned int n,
		   enum weft_pcapng_direction direction)
{
	uint64_t time;
	struct weft_tap_target *t = target_enter(tap, &time);
	unsigned int i;

	for (i = 0; t && i < n; i++)
		ring_offered(t->ring, copy_frame(tap, pkts[i], time, direction));
}

/*
 * A thread may lose its core between the call of a port and the reading of the clock. So a record
 * has the time in between. Otherwise the pause would look like a delay of the path.
 */
static void set_within(const struct weft_capture_ring *r, uint64_t within)
{
	unsigned int i;

	for (i = 0; i < r->offered; i++)
		if (r->put[i])
			r->put[i]->within = within;
}

void weft_tap_copy_arrived(struct weft_tap *tap, struct rte_mbuf *const *pkts, unsigned int n,
			   uint64_t now)
{
	uint64_t time;
	struct weft_tap_target *t = target_enter(tap, &time);
	unsigned int i;

	if (!t)
		return;
	for (i = 0; i < n; i++)
		ring_offered(t->ring, copy_frame(tap, pkts[i], time, WEFT_PCAPNG_IN));
	set_within(t->ring, time - t->offset > now ? time - t->offset - now : 0);
	target_leave(tap, n);
}

/* The beginning of a frame with the network's headers, in two pieces. @return the frame's bytes */
static uint32_t pieces6(struct weft_tap *tap, const struct rte_mbuf *m, struct six_head *head,
			struct iovec iov[2])
{
	uint32_t len;

	six_head(tap->hosts, m, WEFT_RECORDER_BYTES, head);
	len = m->pkt_len - head->skip + head->len;
	iov[0] = (struct iovec){head->bytes, head->len};
	head->skip = RTE_MIN(head->skip, (uint32_t)m->data_len);
	iov[1] = (struct iovec){rte_pktmbuf_mtod_offset(m, void *, head->skip),
				m->data_len - head->skip};
	return len;
}

void weft_tap_record6(struct weft_tap *tap, struct rte_mbuf *const *pkts, unsigned int n,
		      enum weft_pcapng_direction direction, uint64_t now)
{
	struct six_head head;
	struct iovec iov[2];
	unsigned int i;
	uint32_t len;

	for (i = 0; i < n; i++) {
		len = pieces6(tap, pkts[i], &head, iov);
		weft_recorder_put_bytes(tap->recorder6, i, iov, 2, len, direction, now);
	}
}

void weft_tap_damaged(struct weft_tap *tap, const struct rte_mbuf *m, uint64_t call)
{
	struct six_head head;
	struct iovec iov[2];

	if (!tap)
		return;
	if (tap->recorder) {
		iov[0] = (struct iovec){rte_pktmbuf_mtod(m, void *), m->data_len};
		weft_recorder_damaged(tap->recorder, iov, 1, call);
	} else if (tap->recorder6) {
		pieces6(tap, m, &head, iov);
		weft_recorder_damaged(tap->recorder6, iov, 2, call);
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
	/*
	 * A filter matches frames only: with one, no message is recorded. Relaxed: the filter is
	 * not read.
	 */
	if (!atomic_load_explicit(&t->filter, memory_order_relaxed)) {
		r = ring_put(t->ring, caplen);
		if (r) {
			r->caplen = caplen;
			r->len = len;
			r->direction = direction;
			r->time_ns = time;
			r->within = 0;
			copy_pieces(r->data, iov, caplen);
		}
	}
	ring_offered(t->ring, NULL);
}

void weft_tap_copied(struct weft_tap *tap, unsigned int n)
{
	const struct weft_platform *pf = tap->platform;
	uint64_t now = pf->now(pf->arg);

	set_within(tap->in_use->ring, now > tap->offered_at ? now - tap->offered_at : 0);
	target_leave(tap, n);
}
