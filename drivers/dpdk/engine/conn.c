/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/container.h"
#include "capture/tap.h"
#include "engine/iface.h"
#include "engine/rules.h"
#include "frame/arp.h"
#include "frame/frame.h"
#include "lane.h"

/* ---------------------------------------------------------------- paths */

static void path_init(struct raw_conn *c, unsigned int k)
{
	c->path[k] = (struct raw_path){.sport = c->iface->rx_filter.udp_port};
	weft_loss_init(&c->path[k].loss);
}

static void free_paths(struct raw_conn *c)
{
	if (c->path != &c->first_path)
		free(c->path);
}

int raw_state_paths(struct raw_conn *c, unsigned int n)
{
	struct raw_path *path;

	if (n <= c->path_room)
		return 0;
	path = malloc(n * sizeof(*path));
	if (!path) {
		raw_count(c->iface, RAW_NO_MEMORY);
		return -ENOMEM;
	}
	memcpy(path, c->path, c->path_room * sizeof(*path));
	free_paths(c);
	c->path = path;
	while (c->path_room < n)
		path_init(c, c->path_room++);
	return 0;
}

/* ---------------------------------------------------------------- handshake, hints */

static int allocated(struct raw_iface *iface, const void *p)
{
	if (p)
		return 0;
	raw_count(iface, RAW_NO_MEMORY);
	return -ENOMEM;
}

void raw_state_connected(struct raw_conn *c)
{
	free(c->search);
	c->search = NULL;
	free(c->hs);
	c->hs = NULL;
}

int raw_state_move(struct raw_conn *c)
{
	if (!c->move)
		c->move = calloc(1, sizeof(*c->move));
	return allocated(c->iface, c->move);
}

/* ---------------------------------------------------------------- the peer's host */

static void hold_host(struct raw_conn *c, bool yes)
{
	struct weft_hosts *hosts = c->iface->port->hosts;

	if (hosts)
		weft_hosts_hold(hosts, c->peer_ip, yes);
}

void raw_state_peer(struct raw_conn *c, uint32_t ip)
{
	c->peer_ip = ip;
	hold_host(c, true);
}

/* ---------------------------------------------------------------- all */

int raw_state_init(struct raw_conn *c)
{
	c->hs = calloc(1, sizeof(*c->hs));
	if (allocated(c->iface, c->hs) != 0)
		return -ENOMEM;
	c->path = &c->first_path;
	c->path_room = 1;
	path_init(c, 0);
	return 0;
}

void raw_state_free(struct raw_conn *c)
{
	raw_state_connected(c);
	hold_host(c, false);
	free_paths(c);
	free(c->move);
}

/* ---------------------------------------------------------------- look-up */

/*
 * The lower half of a connection's number is an index into refs[]. A HELLO does not contain a
 * number of this end, so its connection is found by a hash of the peer's own numbers. Peers choose
 * what is hashed, so the hash is keyed.
 */

static uint64_t hello_key(const struct raw_iface *iface, uint32_t id, uint32_t token,
			  uint64_t remote_iface)
{
	const struct {
		uint64_t iface;
		uint32_t id, token;
	} key = {remote_iface, id, token};

	return weft_siphash(&iface->key, &key, sizeof(key));
}

void raw_table_hello_add(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	weft_table_add(&iface->hello, &c->by_hello,
		       hello_key(iface, c->remote_id, c->remote_token, c->remote_iface));
	c->in_hello = true;
}

void raw_table_hello_remove(struct raw_conn *c)
{
	if (c->in_hello)
		weft_table_remove(&c->iface->hello, &c->by_hello);
	c->in_hello = false;
}

struct raw_conn *raw_table_hello(struct raw_iface *iface, const struct weft_frame_hello *h,
				 const struct raw_conn *after)
{
	uint32_t id = weft_get32(h->conn), token = weft_get32(h->token);
	uint64_t remote_iface = weft_get64(h->iface_id);
	struct weft_table_node *n;
	struct raw_conn *c;

	if (after)
		n = SLIST_NEXT(&after->by_hello, link);
	else
		n = weft_table_bucket(&iface->hello, hello_key(iface, id, token, remote_iface));
	for (; n; n = SLIST_NEXT(n, link)) {
		raw_count(iface, RAW_CONN_LOOKS);
		c = container_of(n, struct raw_conn, by_hello);
		if (c->remote_id == id && c->remote_token == token &&
		    c->remote_iface == remote_iface)
			return c;
	}
	return NULL;
}

void raw_table_resolving(struct raw_conn *c, bool yes)
{
	if (c->resolving == yes)
		return;
	c->resolving = yes;
	if (yes)
		TAILQ_INSERT_TAIL(&c->iface->resolving, c, wait_link);
	else
		TAILQ_REMOVE(&c->iface->resolving, c, wait_link);
}

static struct raw_hop_list *hop_bucket(const struct raw_iface *iface, struct raw_hop_list *table,
				       uint32_t len, uint32_t hop_ip)
{
	return &table[weft_siphash(&iface->key, &hop_ip, sizeof(hop_ip)) & (len - 1)];
}

void raw_table_hop_add(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	TAILQ_INSERT_TAIL(hop_bucket(iface, iface->by_hop, iface->refs_len, c->hop_ip), c,
			  hop_link);
	c->in_hop = true;
}

void raw_table_hop_remove(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	if (c->in_hop)
		TAILQ_REMOVE(hop_bucket(iface, iface->by_hop, iface->refs_len, c->hop_ip), c,
			     hop_link);
	c->in_hop = false;
}

struct raw_hop_list *raw_table_hop(struct raw_iface *iface, uint32_t hop_ip)
{
	return iface->refs_len == 0 ? NULL
				    : hop_bucket(iface, iface->by_hop, iface->refs_len, hop_ip);
}

static int grow_hops(struct raw_iface *iface, uint32_t len)
{
	struct raw_hop_list *hops = calloc(len, sizeof(*hops));
	struct raw_conn *c;
	uint32_t at = 0;

	if (!hops)
		return -ENOMEM;
	for (uint32_t i = 0; i < len; i++)
		TAILQ_INIT(&hops[i]);
	while ((c = raw_table_next(iface, &at)))
		if (c->in_hop)
			TAILQ_INSERT_TAIL(hop_bucket(iface, hops, len, c->hop_ip), c, hop_link);
	free(iface->by_hop);
	iface->by_hop = hops;
	return 0;
}

static int table_grow(struct raw_iface *iface)
{
	uint32_t len = iface->refs_len == 0 ? 16 : 2 * iface->refs_len;
	struct raw_gone *gone;
	struct raw_ref *refs;
	uint16_t *ring;

	if (len > RAW_CONNS_MAX)
		return -ENOSPC;
	/* Reserved here, so that entering a deadline or a connection never fails. */
	if (weft_deadlines_reserve(&iface->by_tx_clock, len) != 0 ||
	    weft_deadlines_reserve(&iface->by_live_clock, len) != 0 ||
	    weft_table_reserve(&iface->hello) != 0)
		return -ENOMEM;
	refs = realloc(iface->refs, len * sizeof(*refs));
	if (!refs)
		return -ENOMEM;
	iface->refs = refs;
	gone = realloc(iface->gone, len * sizeof(*gone));
	if (!gone)
		return -ENOMEM;
	iface->gone = gone;
	ring = realloc(iface->free_ring, len * sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	iface->free_ring = ring;
	if (grow_hops(iface, len) != 0)
		return -ENOMEM;
	memset(gone + iface->refs_len, 0, (len - iface->refs_len) * sizeof(*gone));
	memset(refs + iface->refs_len, 0, (len - iface->refs_len) * sizeof(*refs));
	iface->free_first = 0;
	iface->free_num = len - iface->refs_len;
	for (uint32_t i = 0; i < iface->free_num; i++)
		ring[i] = (uint16_t)(iface->refs_len + i);
	iface->refs_len = len;
	return 0;
}

int raw_table_take(struct raw_iface *iface, uint32_t *index)
{
	int rc = iface->free_num == 0 ? table_grow(iface) : 0;

	if (rc == -ENOMEM)
		raw_count(iface, RAW_NO_MEMORY);
	if (rc != 0)
		return rc;
	*index = iface->free_ring[iface->free_first];
	iface->free_first = (iface->free_first + 1) & (iface->refs_len - 1);
	iface->free_num--;
	return 0;
}

void raw_table_give(struct raw_iface *iface, uint32_t index)
{
	uint32_t last = (iface->free_first + iface->free_num) & (iface->refs_len - 1);

	iface->refs[index] = (struct raw_ref){0};
	iface->free_ring[last] = (uint16_t)index;
	iface->free_num++;
}

struct raw_conn *raw_table_next(const struct raw_iface *iface, uint32_t *at)
{
	while (*at < iface->refs_len)
		if (iface->refs[(*at)++].conn)
			return iface->refs[*at - 1].conn;
	return NULL;
}

void raw_table_fini(struct raw_iface *iface)
{
	free(iface->refs);
	free(iface->gone);
	free(iface->free_ring);
	weft_table_fini(&iface->hello);
	free(iface->by_hop);
}

/* ---------------------------------------------------------------- generations */

/*
 * A Feistel network over two bytes: a permutation whatever its round function is. Numbers count up,
 * so a comparison shows whether a number was used. Their generations look random without the key.
 */
#define ROUNDS 6

static uint8_t mix(const struct weft_siphash_key *key, unsigned int round, uint8_t half)
{
	uint8_t in[] = {(uint8_t)round, half};

	return (uint8_t)weft_siphash(key, in, sizeof(in));
}

uint16_t raw_generation(const struct weft_siphash_key *key, uint16_t number)
{
	uint8_t a = (uint8_t)(number >> 8), b = (uint8_t)number, t;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		t = a ^ mix(key, i, b);
		a = b;
		b = t;
	}
	return (uint16_t)(a << 8 | b);
}

uint16_t raw_generation_number(const struct weft_siphash_key *key, uint16_t generation)
{
	uint8_t a = (uint8_t)(generation >> 8), b = (uint8_t)generation, t;

	for (unsigned int i = ROUNDS; i-- > 0;) {
		t = b ^ mix(key, i, a);
		b = a;
		a = t;
	}
	return (uint16_t)(a << 8 | b);
}

/* ---------------------------------------------------------------- times */

static inline uint32_t index_of(const struct raw_conn *c)
{
	return c->id & 0xffff;
}

void raw_deadline_sooner(struct raw_conn *c, uint64_t t)
{
	struct raw_iface *iface = c->iface;

	c->tx_clock_at = t;
	weft_deadlines_by(&iface->by_tx_clock, index_of(c), t);
	iface->next_tx_clock = RTE_MIN(iface->next_tx_clock, t);
}

void raw_deadline_live(struct raw_conn *c, uint64_t t)
{
	struct raw_iface *iface = c->iface;

	weft_deadlines_by(&iface->by_live_clock, index_of(c), t);
	iface->next_live_clock = RTE_MIN(iface->next_live_clock, t);
}

void raw_deadlines_forget(struct raw_conn *c)
{
	weft_deadlines_remove(&c->iface->by_tx_clock, index_of(c));
	weft_deadlines_remove(&c->iface->by_live_clock, index_of(c));
	c->tx_clock_at = RAW_NEVER;
}

/* ------------------------------------------------------------------ the receiver's half */

void raw_rx_init(struct raw_rx *rx, uint32_t first)
{
	rx->first = first;
	weft_rxwin_init(&rx->win, first);
}

void raw_rx_idle(struct raw_rx *rx)
{
	if (!weft_rxwin_has_hole(&rx->win))
		weft_rxwin_free(&rx->win);
}

void raw_rx_free(struct raw_iface *iface, struct raw_rx *rx)
{
	if (rx->on_ack_list)
		TAILQ_REMOVE(&iface->ack_list, rx, ack_link);
	rx->on_ack_list = false;
	weft_rxwin_free(&rx->win);
}

void raw_rx_hurry(struct raw_iface *iface)
{
	struct raw_rx *rx;

	TAILQ_FOREACH(rx, &iface->ack_list, ack_link)
		if (rx->ack_state == RAW_ACK_DELAYED)
			rx->ack_state = RAW_ACK_NOW;
}

void raw_counts_note(const struct raw_iface *iface)
{
	struct weft_history *history = weft_tap_history(iface->tap);
	uint32_t count[WEFT_HISTORY_COUNTS];
	const uint64_t *n = iface->counter;

	if (!history || !weft_history_is_due(history, iface->now))
		return;
	count[WEFT_HISTORY_SENT] = (uint32_t)n[RAW_TX_FRAMES];
	count[WEFT_HISTORY_RECEIVED] = (uint32_t)n[RAW_RX_FRAMES];
	count[WEFT_HISTORY_AGAIN] = (uint32_t)(n[RAW_TX_FAST] + n[RAW_TX_RTO] + n[RAW_TX_PROBE]);
	count[WEFT_HISTORY_TWICE] = (uint32_t)n[RAW_DROP_DUPLICATE];
	count[WEFT_HISTORY_DAMAGED] = (uint32_t)(n[RAW_DROP_BAD_CSUM] + n[RAW_DROP_SEAL_TAG]);
	count[WEFT_HISTORY_LOWERED] = (uint32_t)n[RAW_MTU_LOWER];
	count[WEFT_HISTORY_CONNS] = iface->conn_count;
	count[WEFT_HISTORY_LATE] = (uint32_t)(iface->gaps.late / 1000);
	count[WEFT_HISTORY_STOPPED] = (uint32_t)(iface->gaps.stopped / 1000);
	weft_history_note(history, iface->now, count);
}

/* A delay ends at @p clock, read after the port was polled: `now` may be older than the frame. */
static void note_delay(const struct raw_iface *iface, const struct raw_conn *c, uint8_t path,
		       uint32_t ts, uint64_t clock)
{
	struct weft_history *history = weft_tap_history(iface->tap);

	if (!history)
		return;
	weft_history_sample(history, (uint64_t)c->token << 32 | c->id, path, clock,
			    (uint32_t)clock - ts);
	raw_counts_note(iface);
}

void raw_conn_delay(const struct raw_conn *c, uint8_t path, uint32_t ts)
{
	struct weft_history *history = weft_tap_history(c->iface->tap);
	const struct weft_platform *pf = c->iface->platform;

	if (history && weft_history_wants(history, c->iface->now))
		note_delay(c->iface, c, path, ts, pf->now(pf->arg));
}

/* The clock is read again: the peer would take this process's time since `now` for the path's. */
uint16_t raw_rx_hold(const struct raw_iface *iface, const struct raw_rx *rx)
{
	const struct weft_platform *pf = iface->platform;
	uint64_t now = pf->now(pf->arg), hold = (now - rx->ts_at) / WEFT_FRAME_HOLD_UNIT;

	if (raw_rx_is_new(iface, rx))
		note_delay(iface, container_of(rx, const struct raw_conn, rx), rx->echo_path,
			   rx->ts_echo, now);
	return (uint16_t)RTE_MIN(hold, (uint64_t)WEFT_FRAME_NO_ECHO);
}

/* ------------------------------------------------------------------ gaps between polls */

#define UNIT_NS 16000u
#define LATE_NS 1000000u   /* a program that computes between its calls has shorter gaps */
#define STOP_NS 100000000u /* a longer gap is a stop */
/* A block may be lost: this number of frames in a row has it. */
#define TIMES 5u

void raw_gap_note(struct raw_iface *iface, uint64_t ns)
{
	struct raw_gaps *g = &iface->gaps;

	g->total += ns;
	if (ns >= LATE_NS)
		g->late += ns;
	if (ns >= STOP_NS)
		g->stopped += ns;
	g->recent[g->count++ % RAW_GAPS_KEPT] =
		(uint16_t)RTE_MIN(ns / UNIT_NS, (uint64_t)UINT16_MAX);
}

void raw_gap_init(struct raw_conn *c, bool reads)
{
	c->gap = (struct raw_conn_gap){0};
	c->rx.gap_reads = reads;
	c->rx.gap_times = 0;
	c->rx.gap_sent = c->iface->gaps.count;
}

/* The longest gap since the last block, among the newest RAW_GAPS_KEPT. */
static uint16_t longest_since(const struct raw_gaps *g, uint32_t sent)
{
	uint32_t n = RTE_MIN(g->count - sent, RAW_GAPS_KEPT);
	uint16_t most = 0;

	for (uint32_t i = 1; i <= n; i++)
		most = RTE_MAX(most, g->recent[(g->count - i) % RAW_GAPS_KEPT]);
	return most;
}

bool raw_gap_take(struct raw_conn *c, struct weft_frame_progress *block)
{
	const struct raw_gaps *g = &c->iface->gaps;
	struct raw_rx *rx = &c->rx;

	if (!rx->gap_reads)
		return false;
	if (rx->gap_sent != g->count) {
		c->gap.longest = longest_since(g, rx->gap_sent);
		rx->gap_sent = g->count;
		rx->gap_times = TIMES;
	}
	if (rx->gap_times == 0)
		return false;
	rx->gap_times--;
	block->longest = weft_put16(c->gap.longest);
	block->total = weft_put16((uint16_t)(g->total / UNIT_NS));
	return true;
}

uint32_t raw_gap_input(struct raw_conn *c, const struct weft_frame_progress *block)
{
	uint16_t longest = weft_get16(block->longest), total = weft_get16(block->total);
	uint16_t sum = (uint16_t)(total - c->gap.peer_total);

	if (c->gap.reported && (sum == 0 || (sum > INT16_MAX && longest + 1u < sum)))
		return 0; /* a repeated block, or one that a newer block has overtaken */
	/* The first total includes gaps from before. It has 16 bits, so a long gap may wrap it. */
	if (!c->gap.reported || sum < longest)
		sum = longest;
	c->gap.reported = true;
	c->gap.peer_total = total;
	raw_count(c->iface, RAW_PEER_GAPS);
	c->iface->counter[RAW_PEER_GAP_NS] += (uint64_t)sum * UNIT_NS;
	return longest * UNIT_NS;
}
