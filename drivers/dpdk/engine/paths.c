/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Finds the ports of each path of a connection: those from which the initiator's probes reached the
 * peer's queue, and their answers this end's.
 *
 * If neither end hashes frames to queues, every port does, and one probe per path is enough.
 * Otherwise the initiator sends probes from many ports: those by which answers arrive at its own
 * queue, as far as its driver reports the hash (weft_path_port()). It need not know the peer's
 * hash. A worker hands over frames of other workers that arrive at its queue. While a better port
 * may still be found, such a probe is not answered, or its answer is ignored. At last any port is
 * accepted: then frames pass through the other worker, the lane is slower and depends on that
 * worker's polling, and a warning reports it.
 *
 * All further paths are searched at once. A path is left out if none of its probes is answered
 * although small frames over path 0 are: then a device on the path drops it.
 */

#include <string.h>

#include <rte_common.h>

#include "engine/build.h"
#include "engine/conn.h"
#include "engine/connect.h"
#include "engine/iface.h"
#include "engine/txq.h"
#include "frame/frame.h"
#include "frame/parse.h"
#include "frame/steering.h"

/*
 * Ports tried in a round for each small frame, if any port will do: random loss must not look like
 * a blocked path.
 */
#define TRIES 3u
/*
 * Answers over path 0 after which a silent path is given up; the second if only one of many ports
 * works.
 */
#define SMALL_ACKS 6u
#define SMALL_ACKS_SPREAD (2 * RAW_STEER_ROUNDS)

/* ---------------------------------------------------------------- initiator */

bool raw_paths_begin(struct raw_conn *c)
{
	c->path_count = RTE_MAX(c->iface->paths, c->peer_paths);
	c->path_found = 1;
	if (c->path_count == 1 || c->iface->rx_filter.raw_ethertype) {
		c->path_count = 1;
		return false;
	}
	c->path_small_acks = 0;
	c->path_id = c->probe_id;
	raw_hs_enter(c, RAW_PATHS);
	return true;
}

static void search_end(struct raw_conn *c)
{
	uint8_t n = 0;

	while (n < c->path_count && c->path_found & 1u << n)
		n++;
	c->path_count = n;
	raw_hs_measure(c);
}

void raw_paths_send(struct raw_conn *c)
{
	uint16_t kind =
		c->hs_tries < RAW_STEER_ROUNDS ? WEFT_FRAME_PROBE_PATH : WEFT_FRAME_PROBE_PATH_ANY;
	struct weft_frame_probe p = {.frame_size = weft_put16(kind)};
	unsigned int n, left = raw_txq_space(c->iface);

	n = raw_paths_spread(c) ? raw_paths_hellos(c) : c->hs_tries > 0 ? TRIES : 1;
	for (; n > 0; n--) {
		for (uint8_t k = 1; k < c->path_count && left > 1; k++) {
			if (c->path_found & 1u << k)
				continue;
			raw_paths_next(c, k);
			p.id = weft_put16(++c->probe_id);
			raw_ctl_send_on(c, k, WEFT_FRAME_PROBE, 0, &p, sizeof(p), 0);
			left--;
		}
	}
	if (c->hs_tries > 0) {
		p.id = weft_put16(++c->probe_id);
		p.frame_size = weft_put16(0);
		raw_ctl_send(c, WEFT_FRAME_PROBE, 0, &p, sizeof(p), 0);
	}
}

void raw_paths_ack(struct raw_conn *c, const struct weft_frame_view *v, uint16_t kind)
{
	uint32_t enough = raw_paths_spread(c) ? SMALL_ACKS_SPREAD : SMALL_ACKS;
	const struct weft_frame_probe *p = (const struct weft_frame_probe *)v->body;
	uint8_t k = v->hdr->path;

	if (kind == 0 && (int16_t)(weft_get16(p->id) - c->path_id) > 0 &&
	    ++c->path_small_acks >= enough) {
		search_end(c);
		return;
	}
	if ((kind != WEFT_FRAME_PROBE_PATH && kind != WEFT_FRAME_PROBE_PATH_ANY) || k == 0 ||
	    k >= c->path_count || c->path_found & 1u << k ||
	    raw_paths_ignored(c, kind == WEFT_FRAME_PROBE_PATH_ANY))
		return;
	c->path[k].sport = v->dst_port;
	c->path_found |= (uint16_t)(1u << k);
	if (c->path_found == (1u << c->path_count) - 1)
		search_end(c);
}

/* ---------------------------------------------------------------- READY */

/* @return bytes */
uint32_t raw_paths_ready(const struct raw_conn *c, void *body)
{
	uint16_t tag = c->iface->rx_filter.vlan != 0 ? RTE_VLAN_HLEN : 0;
	weft_le16 port;
	struct weft_frame_ready r = {
		.frame_size = weft_put16((uint16_t)(c->frame_size - tag)),
		.paths = weft_put16(c->path_count),
	};
	uint8_t *p = body;

	memcpy(p, &r, sizeof(r));
	p += sizeof(r);
	for (unsigned int i = 0; i < c->path_count; i++, p += sizeof(port)) {
		port = weft_put16(c->path[i].sport);
		memcpy(p, &port, sizeof(port));
	}
	return (uint32_t)(p - (uint8_t *)body);
}

/*
 * Responder. Path 0 leads back to the source of READY, so that the port translation of a NAT on the
 * path stays in use.
 */
bool raw_paths_take(struct raw_conn *c, const struct weft_frame_view *v)
{
	const struct weft_frame_ready *r = (const struct weft_frame_ready *)v->body;
	uint32_t n = weft_get16(r->paths);
	weft_le16 ports[WEFT_FRAME_PATHS_MAX];

	if (n > WEFT_FRAME_PATHS_MAX || sizeof(*r) + n * sizeof(ports[0]) > v->body_len)
		return false;
	/* Check all of it before anything is stored: READY may arrive again, and be valid then. */
	memcpy(ports, v->body + sizeof(*r), n * sizeof(ports[0]));
	for (uint32_t i = 1; i < n; i++)
		if (weft_get16(ports[i]) == 0)
			return false;
	c->path_count = (uint8_t)RTE_MAX(n, 1u);
	c->path[0].dport = v->src_port;
	for (uint32_t i = 1; i < n; i++)
		c->path[i].dport = weft_get16(ports[i]);
	return true;
}
