/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opening paths, and changing their ports, on a connection that is up: doc/raw-lanes.md.
 *
 * Only the initiator chooses ports. It sends PROBE{PATH} from a new port, which changes nothing but
 * shows that the pair of ports carries frames in both directions. Then it sends PROBE{USE}, and the
 * responder sends to that port from then on. A responder that needs a path requests it by
 * PROBE{WANT}.
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

#include "engine/build.h"
#include "engine/conn.h"
#include "engine/connect.h"
#include "engine/engine.h"
#include "engine/iface.h"
#include "engine/multipath.h"
#include "engine/timer.h"
#include "engine/window.h"
#include "frame/frame.h"
#include "frame/parse.h"

#define OPEN_STEP 1000000u /* ns by which the wait after each probe grows */
/* after N probes a device on the path seems to drop other ports */
#define OPEN_TRIES 16u
#define OPEN_AGAIN_MIN 200000000ull   /* ns of the wait then, */
#define OPEN_AGAIN_MAX 10000000000ull /* which doubles each time up to this */
#define RESERVE_FRAMES 32u
#define USE_MIN 1000000ull /* ns to the second USE, at least; doubles */
#define USE_TRIES 4u
#define OTHER_PORTS 64u /* tries to find a port that no path has */

static bool is_ours(const struct raw_conn *c)
{
	return !c->base.passive && !c->iface->rx_filter.raw_ethertype;
}

/*
 * If ports also choose the receive queue, only the handshake finds them, for a configured number of
 * paths.
 */
bool raw_multi_can_open(const struct raw_conn *c)
{
	return c->iface->paths_auto && !raw_paths_spread(c) && c->path_count < RAW_PATHS_AUTO;
}

/* @return a port that no path has */
static uint16_t fresh_port(struct raw_conn *c)
{
	uint16_t port = 0;
	bool taken = true;

	for (unsigned int i = 0; i < OTHER_PORTS && taken; i++) {
		port = raw_paths_port(c, 1);
		taken = false;
		for (unsigned int k = 0; k < c->path_count; k++)
			taken |= c->path[k].sport == port;
	}
	return port;
}

int raw_path_probe_send(struct raw_conn *c, uint8_t k, uint16_t kind)
{
	struct weft_frame_probe p = {.frame_size = weft_put16(kind)};

	c->multi->path[k].last_id = ++c->probe_id;
	p.id = weft_put16(c->multi->path[k].last_id);
	return raw_ctl_send_on(c, k, WEFT_FRAME_PROBE, 0, &p, sizeof(p), 0);
}

/* Probe whether @p k carries frames by another port. @return 0 or -EAGAIN */
int raw_path_request(struct raw_conn *c, uint8_t k)
{
	struct raw_path *path = &c->path[k];
	uint16_t before = path->sport;
	int err;

	path->sport = fresh_port(c);
	path->dport = c->peer_port;
	err = raw_path_probe_send(c, k, WEFT_FRAME_PROBE_PATH);
	path->sport = before;
	return err;
}

/*
 * USE leaves from the path's new port. This end uses that port once the answer has arrived; until
 * then frames take the previous port. A lost USE is sent again with the same id.
 */
static void send_use(struct raw_conn *c, uint8_t k)
{
	struct raw_multi_path *m = &c->multi->path[k];
	struct weft_frame_probe p = {
		.id = weft_put16(m->last_id),
		.frame_size = weft_put16(WEFT_FRAME_PROBE_USE),
	};
	uint16_t before = c->path[k].sport;
	uint64_t wait = RTE_MAX(2ull * c->base.rtt_ns, USE_MIN);

	c->path[k].sport = m->use_port;
	raw_ctl_send_on(c, k, WEFT_FRAME_PROBE, 0, &p, sizeof(p), 0);
	c->path[k].sport = before;
	m->use_at = c->iface->tx_clock + (wait << m->use_tries++);
	raw_deadline_tx(c, m->use_at);
}

bool raw_path_using(struct raw_conn *c, uint8_t k)
{
	struct raw_multi_path *m = &c->multi->path[k];

	if (m->use_port == 0)
		return false;
	if (c->iface->tx_clock < m->use_at)
		raw_deadline_tx(c, m->use_at);
	else if (m->use_tries < USE_TRIES)
		send_use(c, k);
	else
		m->use_port = 0;
	return m->use_port != 0;
}

/*
 * Responder: only the initiator can choose a port. The request goes over the path in use, and in
 * rotation over the others.
 */
void raw_path_want(struct raw_conn *c, uint8_t k)
{
	struct weft_frame_probe p = {
		.id = weft_put16(k),
		.frame_size = weft_put16(WEFT_FRAME_PROBE_WANT),
	};

	raw_ctl_send_on(c, (uint8_t)((c->next_path + c->multi->open_tries) % c->path_count),
			WEFT_FRAME_PROBE, 0, &p, sizeof(p), 0);
}

/* ---------------------------------------------------------------- opening a path */

void raw_path_open(struct raw_conn *c)
{
	struct raw_multi *mp;

	if (!raw_multi_can_open(c) || raw_multi_need(c) != 0)
		return;
	mp = c->multi;
	if (mp->opening || c->iface->tx_clock < mp->open_again_at)
		return;
	mp->opening = true;
	mp->open_tries = 0;
	mp->open_at = c->iface->tx_clock;
	raw_deadline_tx(c, mp->open_at);
}

/*
 * Open a path before it is needed: if the direction from the peer to this end fails, a request of
 * the peer for a path could not arrive. Only where there is traffic.
 */
void raw_path_reserve(struct raw_conn *c)
{
	if (c->path[0].order + (c->rx.next - c->rx_first) >= RESERVE_FRAMES)
		raw_path_open(c);
}

void raw_path_open_timer(struct raw_conn *c)
{
	struct raw_multi *mp = c->multi;

	if (!mp->opening || raw_path_using(c, c->path_count))
		return;
	if (c->iface->tx_clock >= mp->open_at) {
		if (++mp->open_tries > OPEN_TRIES || !raw_multi_can_open(c)) {
			mp->opening = false;
			mp->open_again = RTE_MIN(RTE_MAX(2 * mp->open_again, OPEN_AGAIN_MIN),
						 OPEN_AGAIN_MAX);
			mp->open_again_at = c->iface->tx_clock + mp->open_again;
			return;
		}
		if (is_ours(c))
			raw_path_request(c, c->path_count);
		else
			raw_path_want(c, c->path_count);
		mp->open_at = c->iface->tx_clock + mp->open_tries * OPEN_STEP;
	}
	raw_deadline_tx(c, mp->open_at);
}

/* @return true: path @p k is the next one, and now open */
static bool one_more(struct raw_conn *c, uint8_t k)
{
	if (k != c->path_count || (c->cc && raw_window_more(c) != 0))
		return false;
	c->path_count++;
	c->multi->open |= (uint16_t)(1u << k);
	c->multi->opening = false;
	c->multi->open_again = 0;
	raw_count(c->iface, RAW_PATH_OPENED);
	return true;
}

/* ---------------------------------------------------------------- receiving */

void raw_path_answer(struct raw_conn *c, const struct weft_frame_view *v, uint16_t kind)
{
	uint8_t k = v->hdr->path;
	struct raw_multi_path *m = &c->multi->path[k];

	if (!is_ours(c) || k > c->path_count || (k == c->path_count && !raw_multi_can_open(c)))
		return;
	if (kind == WEFT_FRAME_PROBE_PATH) {
		if (raw_paths_ignored(c, false))
			return;
		/* The peer accepts a USE of the path only with a higher number. */
		m->last_id = ++m->use_id;
		m->use_port = v->dst_port;
		m->use_tries = 0;
		send_use(c, k);
		return;
	}
	if (m->use_port == 0)
		return;
	c->path[k].sport = m->use_port;
	c->path[k].dport = c->peer_port;
	c->path[k].rtt = (struct weft_rtt){0};
	m->use_port = 0;
	if (k < c->path_count || one_more(c, k))
		raw_multi_renewed(c, k);
}

/* Answer by the ports of the probe, whatever ports the path has. */
static void answer_trial(struct raw_conn *c, const struct weft_frame_view *v)
{
	struct raw_path *p = &c->path[v->hdr->path];
	struct raw_path before = *p;

	p->sport = v->dst_port;
	p->dport = v->src_port;
	raw_ctl_send_on(c, v->hdr->path, WEFT_FRAME_PROBE_ACK, 0, v->body,
			sizeof(struct weft_frame_probe), 0);
	p->sport = before.sport;
	p->dport = before.dport;
}

/* @return true: the probe is to be answered, over path v->hdr->path */
static bool take_port(struct raw_conn *c, const struct weft_frame_view *v, uint16_t id)
{
	struct raw_multi_path *m;
	uint8_t k = v->hdr->path;

	if (!c->base.passive || k > c->path_count || k >= WEFT_FRAME_PATHS_MAX ||
	    raw_multi_need(c) != 0)
		return false;
	/* An older USE may arrive late: its port is no longer in use. */
	m = &c->multi->path[k];
	if ((int16_t)(id - m->use_id) < 0)
		return false;
	if (k == c->path_count && !one_more(c, k))
		return false;
	m->use_id = id;
	if (c->path[k].dport == v->src_port)
		return true;
	c->path[k].sport = c->iface->rx_filter.udp_port;
	c->path[k].dport = v->src_port;
	c->path[k].rtt = (struct weft_rtt){0};
	raw_multi_probe_soon(c, k);
	return true;
}

static void give_port(struct raw_conn *c, uint16_t k)
{
	if (!is_ours(c) || k > c->path_count)
		return;
	if (k == c->path_count)
		raw_path_open(c);
	else if (c->multi && c->iface->tx_clock >= c->multi->path[k].given_at &&
		 c->multi->path[k].use_port == 0) {
		c->multi->path[k].given_at = c->iface->tx_clock + WEFT_PATH_PROBE_WAIT_MIN;
		raw_path_request(c, (uint8_t)k);
	}
}

bool raw_path_probe(struct raw_conn *c, const struct weft_frame_view *v, uint8_t *over)
{
	const struct weft_frame_probe *p = (const struct weft_frame_probe *)v->body;
	uint16_t kind = weft_get16(p->frame_size);
	uint8_t k = v->hdr->path;

	*over = 0;
	switch (kind) {
	case WEFT_FRAME_PROBE_PATH:
	case WEFT_FRAME_PROBE_PATH_ANY:
		if (raw_paths_ignored(c, kind == WEFT_FRAME_PROBE_PATH_ANY))
			return false;
		if (k >= WEFT_FRAME_PATHS_MAX) {
			raw_count(c->iface, RAW_DROP_BAD_TYPE);
			return false;
		}
		*over = k;
		if (c->state == RAW_UP) {
			answer_trial(c, v);
			return false;
		}
		break;
	case WEFT_FRAME_PROBE_USE:
		*over = k;
		return c->state == RAW_UP && take_port(c, v, weft_get16(p->id));
	case WEFT_FRAME_PROBE_OVER:
		*over = k < c->path_count ? k : 0;
		return true;
	case WEFT_FRAME_PROBE_WANT:
		if (c->state == RAW_UP)
			give_port(c, weft_get16(p->id));
		return false;
	}
	if (c->state == RAW_HALF_OPEN)
		c->path[*over].dport = v->src_port;
	else if (kind == 0 || kind >= WEFT_FRAME_SIZE_MIN - RTE_VLAN_HLEN)
		*over = raw_came_over(c, v); /* of the search for the path's MTU */
	return true;
}
