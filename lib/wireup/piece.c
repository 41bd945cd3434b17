/* SPDX-License-Identifier: BSD-3-Clause */

/* WIREUP messages that arrive in pieces. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wireup/wireup.h"

static bool same_message(const struct weft_partial *p, const struct weft_lane_ep *lane_ep,
			 const struct weft_wire_wireup *h)
{
	return p->lane_ep == lane_ep && p->head.type == h->type &&
	       weft_get32(p->head.conn_sn) == weft_get32(h->conn_sn) &&
	       weft_get64(p->head.src_worker) == weft_get64(h->src_worker) &&
	       p->total == weft_get16(h->total) &&
	       memcmp(&p->head.src_ep, &h->src_ep, sizeof(h->src_ep)) == 0;
}

static struct weft_partial_host *find_host(const struct weft_conns *conns, uint64_t number)
{
	struct weft_partial_host *host;

	LIST_FOREACH(host, &conns->partial_hosts, entry)
		if (host->number == number)
			break;
	return host;
}

static void unlink_partial(struct weft_conns *conns, struct weft_partial *p)
{
	struct weft_partial_host *host = p->host;

	TAILQ_REMOVE(&host->partials, p, entry);
	conns->num_partials--;
	if (--host->num == 0) {
		LIST_REMOVE(host, entry);
		free(host);
	}
}

static void drop_partial(struct weft_conns *conns, struct weft_partial *p)
{
	unlink_partial(conns, p);
	free(p);
}

/*
 * The host with the most partial messages. Of hosts with equal numbers it is the one that came
 * first.
 */
static struct weft_partial_host *greediest_host(const struct weft_conns *conns)
{
	struct weft_partial_host *host, *most = LIST_FIRST(&conns->partial_hosts);

	LIST_FOREACH(host, &conns->partial_hosts, entry)
		if (host->num >= most->num)
			most = host;
	return most;
}

static struct weft_partial *partial_new(struct weft_conns *conns, struct weft_lane_ep *lane_ep,
					const struct weft_wire_wireup *h)
{
	uint64_t number = weft_host_number(lane_ep);
	struct weft_partial *p = calloc(1, sizeof(*p) + weft_get16(h->total));
	struct weft_partial_host *host = find_host(conns, number);

	if (p && !host) {
		host = calloc(1, sizeof(*host));
		if (host) {
			host->number = number;
			TAILQ_INIT(&host->partials);
			LIST_INSERT_HEAD(&conns->partial_hosts, host, entry);
		}
	}
	if (!p || !host) {
		free(p);
		return NULL;
	}
	p->host = host;
	p->lane_ep = lane_ep;
	p->head = *h;
	p->total = weft_get16(h->total);
	TAILQ_INSERT_TAIL(&host->partials, p, entry);
	host->num++;
	conns->num_partials++;
	return p;
}

static struct weft_partial *partial_get(struct weft_conns *conns, struct weft_lane_ep *lane_ep,
					const struct weft_wire_wireup *h)
{
	struct weft_partial_host *host = find_host(conns, weft_host_number(lane_ep));
	struct weft_partial *p, *own = NULL;
	unsigned int n = 0;

	if (host) {
		TAILQ_FOREACH(p, &host->partials, entry) {
			if (same_message(p, lane_ep, h))
				return p;
			if (p->lane_ep == lane_ep && n++ == 0)
				own = p;
		}
	}
	if (n >= WEFT_MAX_PARTIALS_LANE_EP)
		drop_partial(conns, own);
	else if (conns->num_partials >= WEFT_MAX_PARTIALS)
		drop_partial(conns, TAILQ_FIRST(&greediest_host(conns)->partials));
	return partial_new(conns, lane_ep, h);
}

void weft_partial_done(struct weft_partial *p)
{
	free(p);
}

static struct weft_partial *partial_of(const struct weft_conns *conns,
				       const struct weft_lane_ep *lane_ep)
{
	struct weft_partial_host *host;
	struct weft_partial *p;

	/*
	 * The search is not by host, because the lane may not report the host of a connection that
	 * has ended.
	 */
	LIST_FOREACH(host, &conns->partial_hosts, entry) {
		TAILQ_FOREACH(p, &host->partials, entry) {
			if (p->lane_ep == lane_ep)
				return p;
		}
	}
	return NULL;
}

void weft_partial_forget(struct weft_conns *conns, const struct weft_lane_ep *lane_ep)
{
	struct weft_partial *p;

	while ((p = partial_of(conns, lane_ep)))
		drop_partial(conns, p);
}

void weft_partials_fini(struct weft_conns *conns)
{
	struct weft_partial_host *host;

	while ((host = LIST_FIRST(&conns->partial_hosts)))
		drop_partial(conns, TAILQ_FIRST(&host->partials));
}

static void place_bytes(struct weft_partial *p, size_t offset, const uint8_t *data, size_t n)
{
	size_t i, b;

	for (i = 0; i < n; i++) {
		b = offset + i;
		if (p->have[b / 8] >> b % 8 & 1)
			continue; /* repeated: the same bytes */
		p->have[b / 8] |= (uint8_t)(1u << b % 8);
		p->data[b] = data[i];
		p->got++;
	}
}

int weft_partial_add(struct weft_conns *conns, struct weft_lane_ep *lane_ep, const void *data,
		     size_t length, struct weft_wire_wireup *head, const void **records,
		     size_t *len, struct weft_partial **done)
{
	size_t total, offset, n;
	struct weft_partial *p;

	*done = NULL;
	if (length < sizeof(*head))
		return -EPROTO;
	memcpy(head, data, sizeof(*head));
	data = (const char *)data + sizeof(*head);
	n = length - sizeof(*head);
	total = weft_get16(head->total);
	offset = weft_get16(head->offset);
	if (total > WEFT_WIREUP_MAX || offset > total || n > total - offset ||
	    (n == 0 && total != 0))
		return -EPROTO;
	if (n == total) {
		*records = data;
		*len = n;
		return 1;
	}
	p = partial_get(conns, lane_ep, head);
	if (!p)
		return -ENOMEM;
	place_bytes(p, offset, data, n);
	if (p->got < p->total)
		return 0;
	/*
	 * Remove it from the list: handling the message may destroy the lane_ep and its partial
	 * messages.
	 */
	unlink_partial(conns, p);
	*records = p->data;
	*len = p->total;
	*done = p;
	return 1;
}
