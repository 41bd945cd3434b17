/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_lat and raw_bw, on a port that is opened as that of a lane. */

#include <assert.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "drivers/dpdk/frame/frame_port.h"
#include "drivers/dpdk/port/ethdev.h"
#include "drivers/dpdk/port/lane_opts.h"
#include "perf/flow.h"

/*
 * Bytes in front of the payload, as in a lane's frame: the headers of Ethernet, IPv4, UDP, lane,
 * message and protocol. Here a struct raw_hdr has the place of the last three.
 */
#define PERF_RAW_HEAD 100u

/* Data of a port that both sides exchange; on the wire as u64 each. */
struct perf_raw_hello {
	uint64_t mac;
	uint64_t frame_size;
};

struct perf_raw {
	struct weft_frame_port *port;
	struct peer *peer;
	uint32_t room; /**< payload bytes of a frame: the lower number of both ends */
	uint8_t head[PERF_RAW_HEAD];
	uint32_t ip_sum;  /**< sum of the IPv4 header with length 0 */
	uint64_t look_at; /**< TSC: when the port is checked again */
	bool linked;      /**< the link has been up */
};

/* ---- the port ------------------------------------------------------------------------------- */

#define LINK_SECONDS 10.0
#define LOOKS_PER_SECOND 10

/* What follows "dpdk:" in the first such item of a list like WEFT_LANES; "" = there is none. */
static void first_item(const char *list, char *item, size_t len)
{
	const char *end;

	item[0] = '\0';
	while (*list) {
		end = strchrnul(list, ';');
		while (*list == ' ')
			list++;
		if (!strncmp(list, "dpdk:", 5)) {
			snprintf(item, len, "%.*s", (int)(end - list - 5), list + 5);
			return;
		}
		list = *end ? end + 1 : end;
	}
}

/* Without an item, or with "dpdk:*", the first port is chosen. */
static int choose_port(struct peer *p, char *resource, size_t len, struct weft_lane_opts *opts)
{
	char list[1024] = "", item[256], why[256], *comma;

	weft_config_get(p->opts->config, "LANES", list, sizeof(list));
	first_item(list, item, sizeof(item));
	if (list[0] && !strstr(list, "dpdk") && strcmp(list, "all") && strcmp(list, "*")) {
		cli_error(
			"raw_lat and raw_bw need a DPDK port, and the lanes '%s' have none; a RoCE "
			"device is tested by ib_send_lat, ib_send_bw and ib_read_bw of perftest",
			list);
		return peer_fail(p, APP_USAGE);
	}
	comma = strchr(item, ',');
	if (comma)
		*comma++ = '\0';
	if (weft_lane_opts_parse(comma, opts, why, sizeof(why))) {
		cli_error("%s", why);
		return peer_fail(p, APP_USAGE);
	}
	snprintf(resource, len, "%s", item[0] && strcmp(item, "*") ? item : "0");
	return APP_OK;
}

static uint64_t config_number(struct peer *p, const char *name)
{
	char text[64];
	int n = weft_config_get(p->opts->config, name, text, sizeof(text));
	uint64_t v = 0;

	if (n > 0 && text[0] >= '0' && text[0] <= '9')
		cli_size(name, text, &v);
	return v;
}

static void make_head(struct perf_raw *r, uint64_t peer_mac)
{
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)r->head;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(eth + 1);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	uint8_t dst[8];
	uint16_t w[sizeof(*ip) / 2];

	memcpy(dst, &peer_mac, sizeof(dst));
	memcpy(&eth->dst_addr, dst, RTE_ETHER_ADDR_LEN);
	memcpy(&eth->src_addr, r->port->mac, RTE_ETHER_ADDR_LEN);
	eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->time_to_live = 64;
	ip->next_proto_id = IPPROTO_UDP;
	ip->fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	ip->src_addr = rte_cpu_to_be_32(weft_lane_link_local(r->port->mac));
	ip->dst_addr = rte_cpu_to_be_32(weft_lane_link_local(dst));
	udp->src_port = udp->dst_port = RTE_BE16(WEFT_LANE_UDP_PORT);
	memcpy(w, ip, sizeof(w));
	for (size_t i = 0; i < sizeof(w) / 2; i++)
		r->ip_sum += w[i];
}

static int agree(struct perf_raw *r)
{
	uint64_t mine_size = r->port->frame_size, size;
	struct perf_raw_hello mine = {.frame_size = mine_size}, theirs;
	struct peer *p = r->peer;
	int ret;

	memcpy(&mine.mac, r->port->mac, RTE_ETHER_ADDR_LEN);
	mine.mac = htole64(mine.mac);
	mine.frame_size = htole64(mine.frame_size);
	ret = peer_send(p, OOB_ADDRESS, &mine, sizeof(mine));
	if (!ret)
		ret = peer_recv(p, OOB_ADDRESS, &theirs, sizeof(theirs));
	if (ret)
		return ret;
	size = RTE_MIN(mine_size, le64toh(theirs.frame_size));
	if (size < 2 * PERF_RAW_HEAD) {
		cli_error("a port carries frames of %llu bytes only, here or at the peer: give it "
			  "a larger MTU",
			  (unsigned long long)size);
		return peer_fail(p, APP_PEER);
	}
	r->room = (uint32_t)size - PERF_RAW_HEAD;
	make_head(r, le64toh(theirs.mac));
	return APP_OK;
}

static int lost(const struct perf_raw *r, const char *cause)
{
	/* Between two processes of one host the link is the peer itself. */
	int code = r->port->link == WEFT_LANE_LINK_PEER ? APP_PEER : APP_FAIL;

	cli_error("port %s (%s) has lost its link%s%s", r->port->name, r->port->device,
		  cause[0] ? ": " : "", cause);
	return peer_fail(r->peer, code);
}

/*
 * The port is queried at once when it has noticed an event, else at most ten times a second.
 * @return an exit code when the port was removed, needs a reset, or has lost its link; else APP_OK
 */
static int perf_raw_look(struct perf_raw *r)
{
	struct weft_frame_port_event ev = {0};
	enum weft_frame_port_what what;
	uint64_t now = rte_rdtsc();

	if ((now < r->look_at && !r->port->event) || !r->port->ops->look)
		return APP_OK;
	r->look_at = now + rte_get_tsc_hz() / LOOKS_PER_SECOND;
	r->port->event = false;
	while ((what = r->port->ops->look(r->port, &ev)) != WEFT_FRAME_PORT_NOTHING) {
		if (what == WEFT_FRAME_PORT_ENDED) {
			cli_error("port %s (%s): %s", r->port->name, r->port->device, ev.text);
			return peer_fail(r->peer, APP_FAIL);
		}
		if (what == WEFT_FRAME_PORT_LINK_DOWN && r->linked)
			return lost(r, ev.text);
	}
	return APP_OK;
}

static int wait_link(struct perf_raw *r)
{
	double end = sys_seconds() + LINK_SECONDS;
	struct rte_mbuf *m;
	char why[512];

	while (!r->port->ops->link_up(r->port)) {
		if (peer_check(r->peer) || perf_raw_look(r))
			return r->peer->exit_code;
		if (r->port->ops->rx_burst(r->port, &m, 1))
			rte_pktmbuf_free(m);
		if (sys_seconds() > end) {
			weft_frame_port_link_text(r->port, why, sizeof(why));
			cli_error("%s", why);
			return peer_fail(r->peer, APP_FAIL);
		}
	}
	r->linked = true;
	return peer_barrier(r->peer);
}

int perf_raw_open(struct peer *p, struct perf_raw **raw)
{
	struct perf_raw *r = calloc(1, sizeof(*r));
	/* The UDP port of lanes, which firewall rules for Weft allow. */
	struct weft_port_opts po = {.udp_port = WEFT_LANE_UDP_PORT};
	struct weft_lane_opts lo;
	char resource[64], why[512];
	int ret;

	if (!r) {
		cli_error("no memory");
		return peer_fail(p, APP_FAIL);
	}
	r->peer = p;
	ret = choose_port(p, resource, sizeof(resource), &lo);
	if (!ret) {
		po.mtu = lo.mtu;
		po.frame_size = (uint16_t)config_number(p, "FRAME_SIZE");
		if (weft_port_ethdev_open(resource, &po, &r->port, why, sizeof(why))) {
			cli_error("%s", why);
			ret = peer_fail(p, APP_FAIL);
		}
	}
	*raw = r;
	return ret;
}

int perf_raw_connect(struct perf_raw *raw)
{
	int ret = agree(raw);

	return ret ? ret : wait_link(raw);
}

void perf_raw_close(struct perf_raw *raw)
{
	if (raw && raw->port)
		raw->port->ops->close(raw->port);
	free(raw);
}

/* ---- the datapath --------------------------------------------------------------------------- */

#define BURST 32u
#define SELDOM 255u        /* a mask of rounds or messages, for rare checks */
#define ZCOPY_MIN 1024u    /* below, copying is cheaper than a second mbuf */
#define RESEND_US 20000u   /* raw_lat: a message without a reply by then was lost */
#define FIN_EVERY_US 1000u /* interval of FIN until its reply */
#define FIN_SECONDS 5u
#define LINGER_US 20000u /* FINs are answered for this time, since a FIN_ACK may be lost */

enum { RAW_DATA = 1, RAW_FIN, RAW_FIN_ACK };

/* The header in the place of a lane's. Its magic differs, so that lanes drop these frames. */
struct raw_hdr {
	uint32_t magic;
	uint32_t type;
	uint64_t run;
	uint64_t message;
	uint64_t offset;
	uint64_t total; /* FIN_ACK: bytes received */
	uint32_t length;
} __attribute__((packed));

#define RAW_MAGIC 0x77617257u /* "Wraw" */
#define RAW_HDR_AT (RTE_ETHER_HDR_LEN + sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr))

static_assert(RAW_HDR_AT + sizeof(struct raw_hdr) <= PERF_RAW_HEAD, "header");

struct run {
	struct perf_raw *raw;
	struct weft_frame_port *port;
	struct perf_side *side;
	uint64_t id, size;
	uint8_t *tx_buf, *rx_buf;
	bool zcopy, validate;
	unsigned int turns;
	/* frames that the port has not taken yet */
	struct rte_mbuf *queue[BURST];
	unsigned int queued;
	struct rte_mbuf_ext_shared_info shinfo;
	uint64_t message, got; /* number of the last frame's message, and its bytes received */
	uint64_t whole;        /* number of the last message that was received completely */
	bool news;             /* a message was completed since this was cleared */
	uint64_t bytes;
	bool fin, fin_ack;
	uint64_t fin_bytes;
};

/* ---- frames */

static void put_head(const struct run *r, uint8_t *at, uint32_t type, uint64_t message,
		     uint64_t offset, uint64_t total, uint32_t length)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(at + RTE_ETHER_HDR_LEN);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	struct raw_hdr *h = (struct raw_hdr *)(at + RAW_HDR_AT);
	uint32_t sum, bytes = PERF_RAW_HEAD - RTE_ETHER_HDR_LEN + length;

	memcpy(at, r->raw->head, PERF_RAW_HEAD);
	ip->total_length = rte_cpu_to_be_16((uint16_t)bytes);
	udp->dgram_len = rte_cpu_to_be_16((uint16_t)(bytes - sizeof(*ip)));
	sum = r->raw->ip_sum + ip->total_length;
	sum = (sum & 0xffff) + (sum >> 16);
	ip->hdr_checksum = (uint16_t) ~((sum & 0xffff) + (sum >> 16));
	*h = (struct raw_hdr){RAW_MAGIC, type, r->id, message, offset, total, length};
}

/* The memory belongs to the run, whose end checks the reference count. */
static void extbuf_back(void *addr, void *opaque)
{
	(void)addr;
	(void)opaque;
}

static bool add_external(struct run *r, struct rte_mbuf *head, const uint8_t *data, uint32_t length)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->port->hdr_pool);

	if (!m)
		return false;
	rte_mbuf_ext_refcnt_update(&r->shinfo, 1);
	rte_pktmbuf_attach_extbuf(m, (void *)(uintptr_t)data, (rte_iova_t)(uintptr_t)data,
				  (uint16_t)length, &r->shinfo);
	m->data_off = 0;
	m->data_len = (uint16_t)length;
	m->pkt_len = length;
	head->next = m;
	head->nb_segs = 2;
	head->pkt_len += length;
	return true;
}

/* @return NULL when there is no buffer now */
static struct rte_mbuf *make_frame(struct run *r, uint32_t type, uint64_t message, uint64_t offset,
				   uint64_t total, const uint8_t *data, uint32_t length)
{
	bool zcopy = r->zcopy && length >= ZCOPY_MIN;
	struct rte_mbuf *m = rte_pktmbuf_alloc(zcopy ? r->port->hdr_pool : r->port->pool);
	uint8_t *at;

	if (unlikely(!m))
		return NULL;
	at = rte_pktmbuf_mtod(m, uint8_t *);
	put_head(r, at, type, message, offset, total, length);
	m->data_len = PERF_RAW_HEAD;
	m->pkt_len = PERF_RAW_HEAD;
	if (zcopy) {
		if (add_external(r, m, data, length))
			return m;
		rte_pktmbuf_free(m);
		return NULL;
	}
	if (length)
		memcpy(at + PERF_RAW_HEAD, data, length);
	m->data_len = (uint16_t)(PERF_RAW_HEAD + length);
	m->pkt_len = m->data_len;
	return m;
}

static void push(struct run *r)
{
	unsigned int sent = r->port->ops->tx_burst(r->port, r->queue, (uint16_t)r->queued);

	if (unlikely(sent < r->queued && sent))
		memmove(r->queue, r->queue + sent, (r->queued - sent) * sizeof(r->queue[0]));
	r->queued -= sent;
}

/*
 * Rare checks: tx_kick() is for frames that the port holds back. The peer is checked before the
 * port: the link of a dead peer is down, too, and its death is the better message.
 */
static int look_around(struct run *r)
{
	if (likely(++r->turns & SELDOM))
		return 0;
	if (r->port->ops->tx_kick)
		r->port->ops->tx_kick(r->port);
	return peer_check(r->side->peer) || perf_raw_look(r->raw) ? -ECANCELED : 0;
}

static int flush(struct run *r)
{
	while (r->queued) {
		push(r);
		if (r->queued && look_around(r))
			return -ECANCELED;
	}
	return 0;
}

static int add_frame(struct run *r, uint32_t type, uint64_t message, uint64_t offset,
		     uint64_t total, uint32_t length)
{
	struct rte_mbuf *m;

	if (r->queued == BURST)
		push(r);
	while (r->queued == BURST ||
	       !(m = make_frame(r, type, message, offset, total, r->tx_buf + offset, length))) {
		if (r->queued)
			push(r);
		if (look_around(r))
			return -ECANCELED;
	}
	r->queue[r->queued++] = m;
	return 0;
}

static int add_message(struct run *r, uint64_t message)
{
	uint64_t offset = 0;
	uint32_t length;

	if (r->validate) {
		/* External buffers refer to the message, which is about to change. */
		if (flush(r))
			return -ECANCELED;
		perf_fill(r->tx_buf, r->size, message);
	}
	do {
		length = (uint32_t)RTE_MIN(r->size - offset, (uint64_t)r->raw->room);
		if (add_frame(r, RAW_DATA, message, offset, r->size, length))
			return -ECANCELED;
		offset += length;
	} while (offset < r->size);
	return 0;
}

static int send_control(struct run *r, uint32_t type, uint64_t total)
{
	return add_frame(r, type, 0, 0, total, 0) || flush(r) ? -ECANCELED : 0;
}

static void take_data(struct run *r, const struct raw_hdr *h, struct rte_mbuf *m)
{
	uint8_t *at = r->rx_buf + h->offset;

	if (unlikely(h->offset > r->size || h->length > r->size - h->offset ||
		     PERF_RAW_HEAD + h->length > m->pkt_len)) {
		r->side->wrong++;
		return;
	}
	if (likely(m->nb_segs == 1))
		memcpy(at, rte_pktmbuf_mtod_offset(m, uint8_t *, PERF_RAW_HEAD), h->length);
	else
		for (uint32_t done = 0, part; done < h->length; done += part) {
			const uint8_t *from;
			uint8_t chunk[512];

			part = RTE_MIN(h->length - done, (uint32_t)sizeof(chunk));
			from = rte_pktmbuf_read(m, PERF_RAW_HEAD + done, part, chunk);
			memcpy(at + done, from, part);
		}
	r->bytes += h->length;
	if (h->message != r->message || h->offset == 0) {
		r->message = h->message;
		r->got = 0;
	}
	r->got += h->length;
	if (r->got == r->size) {
		r->whole = h->message;
		r->news = true;
		if (r->validate && !perf_check(r->rx_buf, r->size, h->message))
			r->side->wrong++;
	}
}

static void take_frame(struct run *r, struct rte_mbuf *m)
{
	const struct raw_hdr *h = rte_pktmbuf_mtod_offset(m, const struct raw_hdr *, RAW_HDR_AT);

	if (unlikely(m->data_len < PERF_RAW_HEAD || h->magic != RAW_MAGIC || h->run != r->id))
		return; /* a frame for the kernel, or of an earlier run */
	if (likely(h->type == RAW_DATA)) {
		take_data(r, h, m);
	} else if (h->type == RAW_FIN) {
		r->fin = true;
	} else if (h->type == RAW_FIN_ACK) {
		r->fin_ack = true;
		r->fin_bytes = h->total;
	}
}

static inline unsigned int receive(struct run *r)
{
	struct rte_mbuf *pkts[BURST];
	unsigned int i, n = r->port->ops->rx_burst(r->port, pkts, BURST);

	for (i = 0; i < n; i++) {
		if (i + 1 < n)
			rte_prefetch0(rte_pktmbuf_mtod_offset(pkts[i + 1], void *, RAW_HDR_AT));
		take_frame(r, pkts[i]);
		rte_pktmbuf_free(pkts[i]);
	}
	return n;
}

/* ---- the end of a run */

static uint64_t us_to_tsc(uint64_t us)
{
	return us * (rte_get_tsc_hz() / 1000000);
}

static int finish(struct run *r)
{
	uint64_t now = rte_rdtsc(), next = 0, end = now + FIN_SECONDS * rte_get_tsc_hz();

	while (!r->fin_ack) {
		now = rte_rdtsc();
		if (now > end) {
			cli_error(
				"frames or their replies do not arrive: the peer has not answered "
				"the end of the run for %u s; check the network between the ports",
				FIN_SECONDS);
			return peer_fail(r->side->peer, APP_PEER);
		}
		if (now >= next) {
			if (send_control(r, RAW_FIN, 0))
				return -ECANCELED;
			next = now + us_to_tsc(FIN_EVERY_US);
		}
		if (!receive(r) && look_around(r))
			return -ECANCELED;
	}
	return 0;
}

static int answer_fin(struct run *r)
{
	uint64_t end = rte_rdtsc() + us_to_tsc(LINGER_US);

	do {
		if (r->fin) {
			r->fin = false;
			if (send_control(r, RAW_FIN_ACK, r->bytes))
				return -ECANCELED;
		}
		receive(r);
		if (look_around(r))
			return -ECANCELED;
	} while (rte_rdtsc() < end);
	return 0;
}

/* ---- tests */

static void count(struct run *r, uint64_t iters)
{
	struct perf_side *s = r->side;

	if (s->meter && perf_meter_add(s->meter, rte_rdtsc(), iters) && s->tick)
		s->tick(s->meter, s->tick_arg);
}

/* Only the client checks the deadline: the server ends with the client's FIN. */
static inline bool goes_on(const struct run *r, uint64_t i)
{
	const struct perf_side *s = r->side;

	return s->open ? !s->meter || s->meter->last < s->deadline : i < s->run->iters;
}

static int ping(struct run *r)
{
	uint64_t i, resend_after = us_to_tsc(RESEND_US), sent;

	for (i = 0; goes_on(r, i); i++) {
		do {
			if (add_message(r, i) || flush(r))
				return -ECANCELED;
			sent = rte_rdtsc();
			while (r->whole != i) {
				if (receive(r))
					continue;
				if (look_around(r))
					return -ECANCELED;
				if (unlikely(rte_rdtsc() - sent > resend_after))
					break;
			}
		} while (unlikely(r->whole != i));
		count(r, 1);
	}
	return finish(r);
}

static int pong(struct run *r)
{
	while (!r->fin) {
		if (!receive(r) && look_around(r))
			return -ECANCELED;
		if (r->news) {
			r->news = false;
			if (add_message(r, r->whole) || flush(r))
				return -ECANCELED;
		}
	}
	return answer_fin(r);
}

static int stream(struct run *r)
{
	uint64_t i, each, got;

	/* Count small messages by the burst: reading the clock takes as long as one of them. */
	each = r->size >= r->raw->room ? 1 : BURST;
	for (i = 0; goes_on(r, i); i++) {
		/* Without a link a port may drop all frames: look_around() is not called then. */
		if (add_message(r, i) || (unlikely(!(i & SELDOM)) && perf_raw_look(r->raw)))
			return -ECANCELED;
		if ((i + 1) % each == 0)
			count(r, each);
	}
	if (flush(r) || finish(r))
		return -ECANCELED;
	if (!r->side->meter)
		return 0;
	/* The clock stops at the receiver's reply, and only bytes that it received count. */
	r->side->meter->last = rte_rdtsc();
	got = r->size ? r->fin_bytes / r->size : i;
	r->side->meter->iters = got ? got : 1;
	return 0;
}

static int sink(struct run *r)
{
	while (!r->fin)
		if (!receive(r) && look_around(r))
			return -ECANCELED;
	return answer_fin(r);
}

/* ---- set-up */

static int set_up(struct run *r, struct perf_raw *raw, struct perf_side *side)
{
	size_t bytes = (side->run->size + 4095) / 4096 * 4096 + 4096;

	memset(r, 0, sizeof(*r));
	r->raw = raw;
	r->port = raw->port;
	r->side = side;
	r->id = side->run->id;
	r->size = side->run->size;
	r->message = UINT64_MAX;
	r->whole = UINT64_MAX;
	r->validate = side->run->flags & PERF_F_VALIDATE;
	r->zcopy = raw->port->flags & WEFT_FRAME_PORT_EXTBUF &&
		   !(raw->port->flags & WEFT_FRAME_PORT_REG);
	r->shinfo.free_cb = extbuf_back;
	rte_mbuf_ext_refcnt_set(&r->shinfo, 1);
	if (posix_memalign((void **)&r->tx_buf, 4096, bytes) ||
	    posix_memalign((void **)&r->rx_buf, 4096, bytes))
		return -ENOMEM;
	/* Touch the pages, so that the measurement includes no page faults. */
	memset(r->tx_buf, 0x5a, bytes);
	memset(r->rx_buf, 0xa5, bytes);
	return 0;
}

/* A failed port may still use the message, so it is not freed: the process ends soon. */
static void tear_down(struct run *r, int ret)
{
	while (r->queued)
		rte_pktmbuf_free(r->queue[--r->queued]);
	if (!ret && rte_mbuf_ext_refcnt_read(&r->shinfo) == 1) {
		free(r->tx_buf);
		free(r->rx_buf);
		free(r);
	}
}

int perf_raw_run(struct perf_raw *raw, struct perf_side *side)
{
	struct run *r = malloc(sizeof(*r));
	bool latency = perf_is_latency(side->run->test);
	struct peer *p = side->peer;
	int ret;

	if (!r || set_up(r, raw, side)) {
		cli_error("no memory for messages of %llu bytes",
			  (unsigned long long)side->run->size);
		return peer_fail(p, APP_FAIL);
	}
	if (peer_barrier(p))
		return p->exit_code;
	if (side->meter)
		perf_meter_start(side->meter);
	perf_limit_begin(side);
	if (p->server)
		ret = latency ? pong(r) : sink(r);
	else
		ret = latency ? ping(r) : stream(r);
	tear_down(r, ret);
	if (!ret)
		return APP_OK;
	return p->exit_code ? p->exit_code : peer_fail(p, APP_FAIL);
}
