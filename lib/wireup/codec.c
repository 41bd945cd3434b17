/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/lane_show.h"
#include "wireup/codec.h"
#include "wireup/state.h"
#include "wireup/peer.h"

/* ------------------------------------------------------------------ out */

void weft_records_add(struct weft_records *r, enum weft_wire_record_type type, const void *data,
		      size_t len)
{
	struct weft_wire_record rec = {
		.type = weft_put16((uint16_t)type),
		.length = weft_put16((uint16_t)len),
	};

	if (r->len + sizeof(rec) + len > sizeof(r->buf))
		return; /* impossible: all records of a message fit in WEFT_WIREUP_MAX bytes */
	memcpy(r->buf + r->len, &rec, sizeof(rec));
	memcpy(r->buf + r->len + sizeof(rec), data, len);
	r->len += sizeof(rec) + len;
}

static inline struct weft_wire_ref ref_of(const struct weft_ep *ep)
{
	return (struct weft_wire_ref){weft_put32(ep->slot), weft_put32(ep->generation)};
}

void weft_wireup_head(const struct weft_ep *ep, enum weft_wireup_type type, unsigned int lane,
		      struct weft_wire_wireup *h)
{
	*h = (struct weft_wire_wireup){
		.type = (uint8_t)type,
		.major = WEFT_WIRE_MAJOR,
		.minor = WEFT_WIRE_MINOR,
		.lane = (uint8_t)lane,
		.conn_sn = weft_put32(ep->conn_sn),
		.src_worker = weft_put64(ep->worker->id),
		.dst_worker = weft_put64(ep->remote_id),
		.src_ep = ref_of(ep),
		.dst_ep = ep->remote,
		.src_secret = weft_put64(ep->secret),
		/* First messages: the secret in the peer's address; others: its endpoint's. */
		.dst_secret = weft_put64(type == WEFT_WIREUP_REQ || type == WEFT_WIREUP_WHO
						 ? ep->wireup->remote.secret
						 : ep->remote_secret),
	};
}

struct pack_arg {
	const struct weft_wire_wireup *head;
	const void *records;
	size_t len;
};

static ssize_t pack_piece(void *dst, size_t max, void *arg)
{
	const struct pack_arg *a = arg;

	if (sizeof(*a->head) + a->len > max)
		return -EMSGSIZE;
	memcpy(dst, a->head, sizeof(*a->head));
	if (a->len > 0)
		memcpy((char *)dst + sizeof(*a->head), a->records, a->len);
	return (ssize_t)(sizeof(*a->head) + a->len);
}

static int send_piece(struct weft_lane_ep *lane_ep, const struct weft_wire_wireup *head,
		      const void *records, size_t len)
{
	struct pack_arg arg = {head, records, len};
	ssize_t n;

	if (sizeof(*head) + len <= lane_ep->iface->attr.max_short)
		return weft_lane_short(lane_ep, WEFT_WIRE_WIREUP, head, sizeof(*head), records,
				       len);
	n = weft_lane_bcopy(lane_ep, WEFT_WIRE_WIREUP, pack_piece, &arg);
	return n < 0 ? (int)n : 0;
}

int weft_wireup_send(struct weft_lane_ep *lane_ep, struct weft_wire_wireup *head,
		     const void *records, size_t len)
{
	const struct weft_lane_attr *attr = &lane_ep->iface->attr;
	size_t max = attr->features & WEFT_LANE_F_BCOPY && attr->max_bcopy > attr->max_short
			     ? attr->max_bcopy
			     : attr->max_short;
	const char *from = records ? records : ""; /* NULL + 0 is undefined in C */
	size_t offset = 0, n;
	int rc;

	if (lane_ep->max_msg != 0 && lane_ep->max_msg < max)
		max = lane_ep->max_msg;
	if (max <= sizeof(*head))
		return -EMSGSIZE;
	max -= sizeof(*head);
	head->total = weft_put16((uint16_t)len);
	do {
		n = len - offset < max ? len - offset : max;
		head->offset = weft_put16((uint16_t)offset);
		rc = send_piece(lane_ep, head, from + offset, n);
		if (rc < 0)
			return rc;
		offset += n;
	} while (offset < len);
	return 0;
}

/* ------------------------------------------------------------------ validation */

static const char *check_lanes(const uint8_t *p, size_t len, struct weft_wireup_msg *m)
{
	const struct weft_wire_lane *l = (const void *)p;
	uint32_t seen = 0;
	unsigned int i, n = (unsigned int)(len / sizeof(*l));

	if (len % sizeof(*l) != 0 || n == 0 || n > WEFT_MAX_LANES)
		return "bad length of the lane map";
	for (i = 0; i < n; i++, l++) {
		if (l->lane >= WEFT_MAX_LANES || seen & 1u << l->lane ||
		    l->lower_iface >= WEFT_MAX_IFACES || l->higher_iface >= WEFT_MAX_IFACES ||
		    weft_get32(l->max_frag) == 0)
			return "bad entry in the lane map";
		if (!weft_wire_rate_ok(weft_get_single(l->bandwidth)) ||
		    !weft_wire_time_ok(weft_get_single(l->latency), WEFT_WIRE_LATENCY_MAX))
			return "impossible figures in the lane map";
		seen |= 1u << l->lane;
	}
	m->lanes = (const void *)p;
	m->num_lanes = n;
	return NULL;
}

static const char *check_ep_addr(const uint8_t *p, size_t len, struct weft_wireup_msg *m)
{
	struct weft_wire_ep_addr a;

	if (len <= sizeof(a) || len - sizeof(a) > WEFT_LANE_ADDR_MAX)
		return "bad length of an endpoint address";
	memcpy(&a, p, sizeof(a));
	if (a.lane >= WEFT_MAX_LANES)
		return "endpoint address of an impossible lane";
	if (m->ep_addr[a.lane].len != 0)
		return "two endpoint addresses of one lane";
	m->ep_addr[a.lane].bytes = p + sizeof(a);
	m->ep_addr[a.lane].len = (uint8_t)(len - sizeof(a));
	return NULL;
}

static const char *check_model(const uint8_t *p, size_t len, struct weft_wireup_msg *m)
{
	struct weft_wire_model model;

	if (len < sizeof(model))
		return "short MODEL record";
	memcpy(&model, p, sizeof(model));
	m->bcopy_bw = weft_get_single(model.bcopy_bw);
	return m->bcopy_bw > 0 && weft_wire_rate_ok(m->bcopy_bw) ? NULL : "bad copy bandwidth";
}

static const char *check_record(unsigned int type, const uint8_t *p, size_t len,
				struct weft_wireup_msg *m)
{
	switch (type) {
	case WEFT_RECORD_ADDRESS:
		m->address = p;
		m->address_len = len;
		return NULL;
	case WEFT_RECORD_LANES:
		return check_lanes(p, len, m);
	case WEFT_RECORD_BOOT:
		if (len < sizeof(m->boot))
			return "short BOOT record";
		memcpy(&m->boot, p, sizeof(m->boot));
		m->have_boot = true;
		return NULL;
	case WEFT_RECORD_CREDIT:
		if (len < sizeof(m->credit))
			return "short CREDIT record";
		memcpy(&m->credit, p, sizeof(m->credit));
		m->have_credit = true;
		return NULL;
	case WEFT_RECORD_MODEL:
		return check_model(p, len, m);
	case WEFT_RECORD_EP_ADDR:
		return check_ep_addr(p, len, m);
	case WEFT_RECORD_NEXT_SN:
		if (len < sizeof(struct weft_wire_next_sn))
			return "short NEXT_SN record";
		m->next_sn = weft_get32(((const struct weft_wire_next_sn *)p)->conn_sn);
		m->have_next_sn = true;
		return NULL;
	case WEFT_RECORD_RX_STATE:
		if (len == 0 || len > WEFT_LANE_STATE_MAX)
			return "bad length of the receive state of a lane";
		m->rx_state = p;
		m->rx_state_len = len;
		return NULL;
	case WEFT_RECORD_TEXT:
		weft_text_copy(m->text, sizeof(m->text), p, len);
		return NULL;
	default:
		return type & 0x8000u ? "unknown record that must be understood" : NULL;
	}
}

/* Each endpoint address must be of a lane that the same message lists, or of LANE_LINK's lane. */
static bool addrs_have_lanes(const struct weft_wireup_msg *m)
{
	uint32_t lanes = 0;
	unsigned int i;

	if (m->head.type == WEFT_WIREUP_LANE_LINK && m->head.lane < WEFT_MAX_LANES)
		lanes = 1u << m->head.lane;
	for (i = 0; i < m->num_lanes; i++)
		lanes |= 1u << m->lanes[i].lane;
	for (i = 0; i < WEFT_MAX_LANES; i++)
		if (m->ep_addr[i].len != 0 && !(lanes >> i & 1))
			return false;
	return true;
}

static const char *check_complete(const struct weft_wireup_msg *m)
{
	if (!addrs_have_lanes(m))
		return "endpoint address of a lane that is not in the map";
	switch (m->head.type) {
	case WEFT_WIREUP_REQ:
		if (weft_get64(m->head.src_secret) == 0)
			return "REQ without a secret";
		if (!m->address || !m->have_boot || !m->have_credit)
			return "REQ without address, pair or credit";
		return NULL;
	case WEFT_WIREUP_WHO:
		return weft_get64(m->head.src_secret) == 0 ? "WEFT_WIREUP_WHO without a secret"
							   : NULL;
	case WEFT_WIREUP_ADDRESS:
		return m->address ? NULL : "ADDRESS without an address";
	case WEFT_WIREUP_REP:
		if (!m->lanes || !m->have_credit)
			return "REP without lane map or credit";
		return NULL;
	case WEFT_WIREUP_LANE_LINK:
		return m->head.lane < WEFT_MAX_LANES && m->ep_addr[m->head.lane].len
			       ? NULL
			       : "LANE_LINK without an address of the lane";
	case WEFT_WIREUP_LANE_DOWN:
		if (!m->rx_state)
			return "LANE_DOWN without a receive state";
		__attribute__((fallthrough));
	case WEFT_WIREUP_LANE_DOWN_ACK:
	case WEFT_WIREUP_LANE_SUSPECT:
	case WEFT_WIREUP_ATTACH:
	case WEFT_WIREUP_ATTACHED:
		if (m->head.lane >= WEFT_MAX_LANES)
			return "bad lane number";
		return NULL;
	case WEFT_WIREUP_ERROR:
		if (weft_get16(m->head.status) == 0 || weft_get16(m->head.status) >= 4096)
			return "ERROR with a bad status";
		if (m->head.lane != WEFT_WIREUP_ALL_LANES &&
		    (m->head.lane == 0 || m->head.lane >= WEFT_MAX_LANES))
			return "ERROR with a bad lane";
		return NULL;
	case WEFT_WIREUP_ACK:
	case WEFT_WIREUP_CLOSE:
	case WEFT_WIREUP_CLOSING:
		return NULL;
	default:
		return "unknown type";
	}
}

int weft_wireup_parse(const struct weft_wire_wireup *head, const void *records, size_t len,
		      struct weft_wireup_msg *m, const char **why)
{
	const uint8_t *p = records, *end = p + len;
	struct weft_wire_record rec;
	size_t n;

	memset(m, 0, sizeof(*m));
	m->head = *head;
	*why = "truncated record";
	if (weft_get64(head->src_worker) == 0) {
		*why = "no sender";
		return -EPROTO;
	}
	while (p < end) {
		if ((size_t)(end - p) < sizeof(rec))
			return -EPROTO;
		memcpy(&rec, p, sizeof(rec));
		p += sizeof(rec);
		n = weft_get16(rec.length);
		if ((size_t)(end - p) < n)
			return -EPROTO;
		*why = check_record(weft_get16(rec.type), p, n, m);
		if (*why)
			return -EPROTO;
		*why = "truncated record";
		p += n;
	}
	*why = check_complete(m);
	return *why ? -EPROTO : 0;
}

/* ------------------------------------------------------------------ messages in pieces */

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

/* The host with the most partial messages; of several, the one that came first. */
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

	/* The lane may not report the host of a connection that has ended. */
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
			continue; /* repeated: the byte that came first is kept */
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
	/* Handling the message may destroy the lane_ep and its partial messages. */
	unlink_partial(conns, p);
	*records = p->data;
	*len = p->total;
	*done = p;
	return 1;
}
