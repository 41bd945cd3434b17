/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The UDP port from which the next probe leaves, so that its answer arrives at this worker's queue.
 */

#include <rte_common.h>

#include "engine/connect.h"
#include "engine/iface.h"
#include "frame/steering.h"

#define TRUST 8u   /* rounds in which the driver's report of its hash is trusted */
#define PATIENT 3u /* rounds of HELLO from the usual port only */
#define HELLOS_MAX 32u

static const struct weft_rss *trusted_rss(const struct raw_conn *c)
{
	return c->hash_wrong || c->hs_tries >= TRUST ? NULL : c->iface->port->steering.rss;
}

/* @return N, if one of N ports leads to the right queues */
static unsigned int queue_odds(const struct raw_conn *c)
{
	const struct weft_steering *s = &c->iface->port->steering;
	unsigned int n = RTE_MAX(c->peer_queues, 1u);

	return s->hashed && !trusted_rss(c) ? n * s->queues : n;
}

bool raw_paths_spread(const struct raw_conn *c)
{
	return c->peer_queues > 0 || c->iface->port->steering.hashed;
}

unsigned int raw_paths_hellos(const struct raw_conn *c)
{
	return raw_paths_spread(c) ? RTE_MIN(4 * queue_odds(c), HELLOS_MAX) : 1;
}

/*
 * @return the next candidate. If the port makes no difference, path 0 has the port on which all
 * listen. If HELLO is not answered from there, others are tried, too, since a flow may be
 * black-holed.
 */
uint16_t raw_paths_port(struct raw_conn *c, unsigned int path)
{
	const struct raw_iface *iface = c->iface;
	const struct weft_steering *s = &iface->port->steering;
	struct weft_path_choice choice = {
		.range = iface->rx_filter.range,
		.range_max = s->range_max,
		.rss = trusted_rss(c),
		.queue = s->queue,
		.spread = raw_paths_spread(c) || (c->hs_tries >= PATIENT && c->hs_tries % 2),
		.ip = iface->rx_filter.ip,
		.peer_ip = c->peer_ip,
		.port = iface->rx_filter.udp_port,
		.peer_port = c->peer_port,
		.token = c->token,
	};

	return weft_path_port(&choice, path, &c->port_cursor);
}

void raw_paths_next(struct raw_conn *c, unsigned int path)
{
	if (c->iface->rx_filter.raw_ethertype)
		return;
	c->path[path].sport = raw_paths_port(c, path);
	c->path[path].dport = c->peer_port;
}

bool raw_paths_ignored(struct raw_conn *c, bool any)
{
	if (!c->iface->rx_elsewhere)
		return false;
	if (any) {
		c->elsewhere = true;
		return false;
	}
	raw_count(c->iface, RAW_STEER_WRONG);
	c->hash_wrong = true; /* or the return path uses other ports than the forward path */
	return true;
}
