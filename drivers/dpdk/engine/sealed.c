/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sealed connections: the exchange of keys in HELLO and HELLO_ACK, and the frames behind them.
 *
 * A plain frame stays what it is for all other files: it is kept for its retransmission, cut into
 * parts, or given back to the protocol layer. Only its copies on the wire are sealed, each with a
 * number of its own. So no frame is sealed twice with one number, and no decrypted byte is written
 * to memory that another process shares.
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "base/log.h"
#include "base/secret.h"
#include "engine/address.h"
#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/sealed.h"
#include "frame/frame.h"
#include "frame/frame_port.h"
#include "frame/parse.h"
#include "seal/exchange.h"
#include "seal/seal.h"

#define HEAD_LEN ((uint32_t)sizeof(struct weft_frame_hdr))
/* Segments of a plain frame: the head, and pieces of user memory. */
#define SEGS_MAX 64u
#define RESTART_NS 1000000000ull /* live_clock, without a frame of the peer, before another offer */
#define TICK_NS 10000000ull      /* between two checks of the age of keys */
#define PROBE_NS 100000000ull    /* between two probes that confirm a key */

static_assert(sizeof(struct weft_frame_hello) == WEFT_EXCHANGE_AT, "the exchange follows HELLO");
static_assert(WEFT_SEALED_HEAD == sizeof(struct weft_frame_hdr) + WEFT_FRAME_NUMBER_LEN, "head");
static_assert(WEFT_CIPHER_TAG_LEN == WEFT_FRAME_TAG_LEN, "tag");
static_assert(WEFT_SEALED_SLOTS_MAX == WEFT_FRAME_PATHS_MAX, "a slot for each path");
static_assert(sizeof(struct weft_exchange_key) <= RTE_SIZEOF_FIELD(struct weft_lane_key, bytes),
	      "the driver's part");

struct raw_seal {
	struct weft_cipher *cipher;
	struct weft_exchange_key *key; /* of the job */
	struct weft_exchange_conf conf;
	struct weft_keyring further; /* keys of further lanes, with which peers may connect */
	struct weft_log_limit refused_log;
	uint64_t rekey_ns; /* 0 = no limit */
	const int *keylog; /* NULL: keys are not logged */
};

/* The exchange, while the connection is made. It has keys, so it is overwritten before free(). */
struct offer {
	struct weft_exchange x;            /* initiator */
	struct weft_exchange_key key;      /* initiator of a further lane */
	uint8_t hello[WEFT_EXCHANGE_BODY]; /* ours; responder: the peer's, its cookie included */
	uint8_t ack[WEFT_EXCHANGE_BODY];   /* responder */
	uint64_t at;                       /* live_clock */
	bool made;
};

struct raw_sealed {
	struct weft_sealed *keys; /* NULL: the initiator waits for HELLO_ACK */
	struct offer *offer;      /* NULL: the connection is up */
	uint64_t tick_at;         /* iface->now of the next check of the keys' age */
	uint64_t probe_at;        /* iface->now of the next probe that confirms a key */
	uint16_t probe;           /* id of such probes: another one for each key */
	bool gone;                /* the peer reads GONE */
	bool further;             /* a lane of an endpoint that is not its first connection */
	uint8_t lane;
	uint8_t key_id[WEFT_KEY_ID_LEN];
	bool farewell_due; /* the helper's GONE is sealed with an earlier key */
	uint32_t key_from; /* first sequence that this end may have sealed with its key */
};

/* ---------------------------------------------------------------- an iface */

int raw_seal_open(struct raw_iface *iface, const struct weft_lane_conf *conf, char *why, size_t len)
{
	struct raw_seal *s;
	int rc = -ENOMEM;

	if (!conf->job_key)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->conf = (struct weft_exchange_conf){
		.version = WEFT_FRAME_VERSION,
		.mode = conf->seal_auth ? WEFT_SEAL_AUTH : WEFT_SEAL_ENCRYPT,
		.kind = conf->seal_dh ? WEFT_EXCHANGE_NOISE : WEFT_EXCHANGE_PSK,
	};
	s->rekey_ns = conf->seal_rekey_ns;
	s->keylog = conf->keylog;
	s->cipher = weft_cipher_create(why, len);
	s->key = weft_secret_alloc(sizeof(*s->key));
	if (s->cipher && s->key)
		rc = weft_exchange_key_init(s->key, conf->job_key);
	else if (!s->cipher)
		rc = -ENOTSUP;
	iface->seal = s;
	if (rc < 0)
		raw_seal_close(iface);
	return rc;
}

void raw_seal_close(struct raw_iface *iface)
{
	struct raw_seal *s = iface->seal;

	if (!s)
		return;
	weft_cipher_destroy(s->cipher);
	weft_secret_free(s->key, sizeof(*s->key));
	weft_keyring_fini(&s->further);
	free(s);
	iface->seal = NULL;
}

/* ---------------------------------------------------------------- keys of further lanes */

static const struct weft_exchange_key *exchange_key(const struct weft_lane_key *key)
{
	return (const struct weft_exchange_key *)key->bytes;
}

int raw_ep_export(struct weft_lane_ep *lane_ep, struct weft_lane_key *key)
{
	const struct raw_conn *c = raw_conn_of(lane_ep);
	uint8_t secret[WEFT_HASH_LEN];
	int rc;

	if (!c->iface->seal)
		return -ENOTSUP;
	if (!c->sealed || !c->sealed->keys)
		return -ENOTCONN;
	weft_sealed_export(c->sealed->keys, secret);
	rc = weft_exchange_key_init((struct weft_exchange_key *)key->bytes, secret);
	weft_secret_wipe(secret, sizeof(secret));
	return rc;
}

int raw_key_accept(struct weft_lane_iface *base, const struct weft_lane_key *key)
{
	return weft_keyring_add(&raw_iface_of(base)->seal->further, exchange_key(key));
}

void raw_key_forget(struct weft_lane_iface *base, const struct weft_lane_key *key)
{
	weft_keyring_remove(&raw_iface_of(base)->seal->further, exchange_key(key));
}

bool raw_ep_has_key(const struct weft_lane_ep *lane_ep, const struct weft_lane_key *key,
		    uint8_t lane)
{
	const struct raw_sealed *s = ((const struct raw_conn *)lane_ep)->sealed;

	return s && s->further && s->lane == lane &&
	       memcmp(s->key_id, exchange_key(key)->id, WEFT_KEY_ID_LEN) == 0;
}

/* ---------------------------------------------------------------- a connection */

/* @return false: there is no memory */
static bool sealed_alloc(struct raw_conn *c)
{
	struct raw_sealed *s = c->sealed;

	if (!s)
		s = c->sealed = calloc(1, sizeof(*s));
	if (s && !s->offer)
		s->offer = weft_secret_alloc(sizeof(*s->offer));
	if (s && s->offer)
		return true;
	raw_count(c->iface, RAW_NO_MEMORY);
	return false;
}

static void set_further(struct raw_sealed *s, const struct weft_exchange_key *key, uint8_t lane)
{
	s->further = true;
	s->lane = lane;
	memcpy(s->key_id, key->id, WEFT_KEY_ID_LEN);
}

bool raw_sealed_further(struct raw_conn *c, const struct weft_lane_key *key, uint8_t lane)
{
	if (!sealed_alloc(c))
		return false;
	c->sealed->offer->key = *exchange_key(key);
	set_further(c->sealed, exchange_key(key), lane);
	return true;
}

static const struct weft_exchange_key *key_of(const struct raw_conn *c)
{
	return c->sealed->further ? &c->sealed->offer->key : c->iface->seal->key;
}

static struct weft_exchange_conf conf_of(const struct raw_conn *c)
{
	struct weft_exchange_conf conf = c->iface->seal->conf;

	if (c->sealed->further) {
		conf.kind = WEFT_EXCHANGE_NEXT;
		conf.lane = c->sealed->lane;
	}
	return conf;
}

void raw_sealed_connected(struct raw_conn *c)
{
	if (!c->sealed)
		return;
	weft_secret_free(c->sealed->offer, sizeof(*c->sealed->offer));
	c->sealed->offer = NULL;
}

void raw_sealed_free(struct raw_conn *c)
{
	if (!c->sealed)
		return;
	raw_sealed_connected(c);
	weft_sealed_destroy(c->sealed->keys);
	free(c->sealed);
	c->sealed = NULL;
}

bool raw_sealed_restart(struct raw_conn *c)
{
	struct offer *o = c->sealed->offer;

	if (!o || c->iface->live_clock < RTE_MAX(o->at, c->rx.seen) + RESTART_NS)
		return false;
	weft_sealed_destroy(c->sealed->keys);
	c->sealed->keys = NULL;
	o->made = false;
	c->csum = c->iface->csum_wanted;
	return true;
}

/* Frames to an end have the connection and the token of its hello. */
static void log_keys(const struct raw_iface *iface, const struct weft_exchange_secrets *secrets,
		     const uint8_t *hello, const uint8_t *ack)
{
	const struct weft_frame_hello *i = (const void *)hello, *r = (const void *)ack;
	const struct raw_seal *seal = iface->seal;
	unsigned int mode = seal->conf.mode;

	if (!seal->keylog)
		return;
	weft_keylog_write(*seal->keylog, mode, weft_get32(i->conn), weft_get32(i->token),
			  secrets->responder);
	weft_keylog_write(*seal->keylog, mode, weft_get32(r->conn), weft_get32(r->token),
			  secrets->initiator);
}

/* @param peer  its HELLO or HELLO_ACK */
static int set_keys(struct raw_conn *c, struct weft_exchange_secrets *secrets, const uint8_t *peer)
{
	const struct raw_seal *seal = c->iface->seal;
	struct weft_sealed_conf conf = {
		.mode = seal->conf.mode,
		.initiator = !c->base.passive,
		.slots = c->iface->rx_filter.raw_ethertype ? 1 : WEFT_SEALED_SLOTS_MAX,
		.key_due = WEFT_SEALED_KEY_DUE,
		.key_due_ns = seal->rekey_ns,
		.bad_tags = WEFT_SEALED_BAD_TAGS,
		.now = c->iface->now,
	};
	int rc = weft_sealed_create(seal->cipher, &conf, secrets, &c->sealed->keys);

	weft_secret_wipe(secrets, sizeof(*secrets));
	c->sealed->key_from = c->tx.next;
	c->sealed->gone =
		weft_get32(((const struct weft_frame_hello *)peer)->features) & WEFT_HELLO_F_GONE;
	if (rc == 0)
		c->csum = RAW_CSUM_SEALED;
	else
		raw_count(c->iface, RAW_NO_MEMORY);
	return rc;
}

static int random_share(const struct raw_iface *iface, uint8_t share[WEFT_X25519_LEN])
{
	return iface->platform->random(iface->platform->arg, share, WEFT_X25519_LEN);
}

/* ---------------------------------------------------------------- connecting */

/* A share serves one offer: two HELLOs that differ must not have the same. */
static bool make_offer(struct raw_conn *c, const uint8_t body[WEFT_EXCHANGE_BODY])
{
	struct weft_exchange_conf conf = conf_of(c);
	struct offer *o = c->sealed->offer;
	uint8_t share[WEFT_X25519_LEN];
	int rc = random_share(c->iface, share);

	memcpy(o->hello, body, WEFT_EXCHANGE_AT);
	if (rc == 0)
		rc = weft_exchange_offer(&o->x, key_of(c), &conf, o->hello, share);
	weft_secret_wipe(share, sizeof(share));
	o->made = rc == 0;
	o->at = c->iface->live_clock;
	return o->made;
}

uint32_t raw_sealed_hello(struct raw_conn *c, uint8_t type, uint8_t body[WEFT_EXCHANGE_BODY])
{
	struct weft_frame_hello *h = (struct weft_frame_hello *)body;
	weft_le64 cookie = h->cookie;
	struct offer *o;

	if (!sealed_alloc(c))
		return 0;
	o = c->sealed->offer;
	if (type == WEFT_FRAME_HELLO_ACK) {
		memcpy(body, o->ack, WEFT_EXCHANGE_BODY);
		return WEFT_EXCHANGE_BODY;
	}
	h->cookie = weft_put64(0);
	if ((!o->made || memcmp(body, o->hello, WEFT_EXCHANGE_AT) != 0) && !make_offer(c, body))
		return 0;
	memcpy(body, o->hello, WEFT_EXCHANGE_BODY);
	h->cookie = cookie;
	return WEFT_EXCHANGE_BODY;
}

static bool same_hello(const struct raw_conn *c, const struct weft_frame_view *v)
{
	return c->sealed && c->sealed->offer && v->body_len == WEFT_EXCHANGE_BODY &&
	       memcmp(c->sealed->offer->hello + WEFT_EXCHANGE_AT, v->body + WEFT_EXCHANGE_AT,
		      WEFT_EXCHANGE_BODY - WEFT_EXCHANGE_AT) == 0;
}

bool raw_sealed_find_offer(struct raw_conn **conn, const struct weft_frame_view *v)
{
	const struct weft_frame_hello *h = (const struct weft_frame_hello *)v->body;
	struct raw_conn *c = *conn;
	bool taken = false;

	for (; c && !same_hello(c, v); c = raw_table_hello(c->iface, h, c))
		taken = taken || c->state != RAW_HALF_OPEN || c->hs->half_shown;
	*conn = c;
	return c || !taken;
}

static void count_verdict(struct raw_iface *iface, enum weft_hello_verdict verdict)
{
	static const enum raw_counter counter[WEFT_HELLO_COUNT] = {
		[WEFT_HELLO_PLAIN] = RAW_SEAL_HELLO_PLAIN, [WEFT_HELLO_LENGTH] = RAW_DROP_BAD_TYPE,
		[WEFT_HELLO_FORMAT] = RAW_DROP_BAD_TYPE,   [WEFT_HELLO_KEY] = RAW_SEAL_HELLO_KEY,
		[WEFT_HELLO_MAC] = RAW_SEAL_HELLO_MAC,     [WEFT_HELLO_MODE] = RAW_SEAL_HELLO_MODE,
		[WEFT_HELLO_KIND] = RAW_SEAL_HELLO_MODE,   [WEFT_HELLO_ENDED] = RAW_SEAL_HELLO_KEY,
	};

	raw_count(iface, counter[verdict]);
}

static void refuse(struct raw_iface *iface, const struct weft_frame_view *v,
		   enum weft_hello_verdict verdict)
{
	char ip[INET6_ADDRSTRLEN];

	count_verdict(iface, verdict);
	raw_ip_text(iface, v->src_ip, ip, sizeof(ip));
	weft_log_limited(&iface->seal->refused_log, WEFT_LOG_WARN,
			 "%s: a connection with %s is refused: %s", iface->base.name, ip,
			 weft_hello_verdict_text(verdict));
}

/*
 * What a HELLO has to be made with: the job key, or the key of an endpoint of which it is a further
 * lane. @return NULL: no endpoint has that key
 */
static const struct weft_exchange_key *find_key(const struct raw_iface *iface,
						const struct weft_frame_view *v,
						struct weft_exchange_conf *conf)
{
	const struct raw_seal *seal = iface->seal;

	*conf = seal->conf;
	if (!weft_exchange_is_next(v->body, v->body_len, &conf->lane))
		return seal->key;
	conf->kind = WEFT_EXCHANGE_NEXT;
	return weft_keyring_find(&seal->further, weft_exchange_key_id(v->body, v->body_len));
}

enum weft_hello_verdict raw_sealed_check_hello(struct raw_iface *iface,
					       const struct weft_frame_view *v)
{
	struct weft_exchange_conf conf;
	const struct weft_exchange_key *key = find_key(iface, v, &conf);
	enum weft_hello_verdict verdict = WEFT_HELLO_ENDED;

	if (key)
		verdict = weft_exchange_check(key, &conf, v->body, v->body_len);
	if (verdict != WEFT_HELLO_OK)
		refuse(iface, v, verdict);
	return verdict;
}

int raw_sealed_answer(struct raw_conn *c, const struct weft_frame_view *v,
		      uint8_t ack[WEFT_EXCHANGE_BODY])
{
	struct weft_exchange_conf conf;
	const struct weft_exchange_key *key = find_key(c->iface, v, &conf);
	struct weft_exchange_secrets secrets;
	uint8_t share[WEFT_X25519_LEN];
	struct offer *o;
	int rc;

	if (v->body_len != WEFT_EXCHANGE_BODY || !key)
		return -EBADMSG;
	if (!sealed_alloc(c))
		return -ENOMEM;
	o = c->sealed->offer;
	memcpy(o->hello, v->body, WEFT_EXCHANGE_BODY);
	memcpy(o->ack, ack, WEFT_EXCHANGE_AT);
	rc = random_share(c->iface, share);
	if (rc == 0)
		rc = weft_exchange_answer(key, &conf, o->hello, WEFT_EXCHANGE_BODY, o->ack, share,
					  &secrets);
	weft_secret_wipe(share, sizeof(share));
	if (rc == -EBADMSG)
		refuse(c->iface, v, WEFT_HELLO_MAC);
	if (rc < 0)
		return rc;
	if (conf.kind == WEFT_EXCHANGE_NEXT)
		set_further(c->sealed, key, conf.lane);
	log_keys(c->iface, &secrets, o->hello, o->ack);
	return set_keys(c, &secrets, o->hello);
}

bool raw_sealed_take_ack(struct raw_conn *c, const struct weft_frame_view *v)
{
	struct weft_exchange_secrets secrets;
	enum weft_hello_verdict verdict;
	int rc;

	if (!c->sealed || !c->sealed->offer || !c->sealed->offer->made)
		return false;
	verdict = weft_exchange_finish(&c->sealed->offer->x, key_of(c), v->body, v->body_len,
				       &secrets, &rc);
	if (verdict != WEFT_HELLO_OK) {
		refuse(c->iface, v, verdict);
		return false;
	}
	if (rc < 0)
		return false;
	log_keys(c->iface, &secrets, c->sealed->offer->hello, v->body);
	return set_keys(c, &secrets, v->body) == 0;
}

/* ---------------------------------------------------------------- sending */

static unsigned int body_segs(const struct rte_mbuf *m, uint32_t skip, uint32_t len, uint8_t *out,
			      struct weft_cipher_seg *segs)
{
	unsigned int n = 0;
	uint32_t part;

	for (; m && len > 0 && n < SEGS_MAX; m = m->next, skip = 0) {
		part = RTE_MIN((uint32_t)m->data_len - skip, len);
		if (part == 0)
			continue;
		segs[n++] = (struct weft_cipher_seg){
			.in = rte_pktmbuf_mtod_offset(m, const uint8_t *, skip),
			.out = out,
			.len = part,
		};
		out += part;
		len -= part;
	}
	return len == 0 ? n : 0;
}

/* Mode auth does not write the body: the tag is that of a copy. */
static void copy_segs(struct weft_cipher_seg *segs, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		memcpy(segs[i].out, segs[i].in, segs[i].len);
		segs[i].in = segs[i].out;
	}
}

static struct rte_mbuf *alloc_for(struct raw_iface *iface, uint32_t size)
{
	struct rte_mempool *pool = iface->port->hdr_pool;
	struct rte_mbuf *m;

	if (size > (uint32_t)rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM)
		pool = iface->port->pool;
	m = rte_pktmbuf_alloc(pool);
	if (!m) {
		raw_count(iface, RAW_TX_NO_BUFFER);
		return NULL;
	}
	m->data_len = (uint16_t)size;
	m->pkt_len = size;
	return m;
}

/*
 * Zero-copy with mode auth: the segments of user memory, and one for the tag, are linked behind the
 * new head. @return the place of the tag; NULL: there is no buffer
 */
static uint8_t *link_user(struct raw_iface *iface, struct rte_mbuf *head, const struct rte_mbuf *m)
{
	struct rte_mbuf **tail = &head->next, *s;

	do {
		s = *tail = alloc_for(iface, WEFT_FRAME_TAG_LEN);
		if (!s)
			return NULL;
		head->nb_segs++;
		tail = &s->next;
		m = m->next;
		if (m)
			rte_pktmbuf_attach(s, (struct rte_mbuf *)(uintptr_t)m);
	} while (m);
	return rte_pktmbuf_mtod(s, uint8_t *);
}

struct rte_mbuf *raw_sealed_copy(struct raw_conn *c, const struct rte_mbuf *m, uint8_t path)
{
	const struct weft_frame_hdr *from =
		rte_pktmbuf_mtod_offset(m, const struct weft_frame_hdr *, c->encap.len);
	uint32_t lane_len = weft_get16(from->length), front = c->encap.len + HEAD_LEN;
	uint32_t body = lane_len - HEAD_LEN, size = c->encap.len + lane_len + WEFT_FRAME_SEAL_LEN;
	const struct raw_seal *seal = c->iface->seal;
	bool auth = seal->conf.mode == WEFT_SEAL_AUTH, refer = auth && m->nb_segs > 1;
	struct rte_mbuf *out =
		alloc_for(c->iface, refer ? m->data_len + WEFT_FRAME_NUMBER_LEN : size);
	struct weft_cipher_seg segs[SEGS_MAX];
	struct weft_frame_hdr *hdr;
	struct weft_sealed_op op;
	uint8_t *p;

	if (!out)
		return NULL;
	p = rte_pktmbuf_mtod(out, uint8_t *);
	memcpy(p, rte_pktmbuf_mtod(m, const uint8_t *), front);
	hdr = raw_hdr(c, out);
	hdr->flags = weft_put16(weft_get16(hdr->flags) & (uint16_t)~WEFT_FRAME_F_CRC32C);
	hdr->length = weft_put16((uint16_t)(lane_len + WEFT_FRAME_NUMBER_LEN));
	op = (struct weft_sealed_op){
		.conn = c->sealed->keys,
		.head = p + c->encap.len,
		.segs = segs,
		.num_segs = body_segs(m, front, body, p + front + WEFT_FRAME_NUMBER_LEN, segs),
		.slot = path,
		.tag = refer ? link_user(c->iface, out, m) : p + size - WEFT_FRAME_TAG_LEN,
	};
	if (!op.tag) {
		rte_pktmbuf_free(out);
		return NULL;
	}
	if (auth)
		copy_segs(segs, refer ? m->data_len > front : op.num_segs);
	out->pkt_len = size;
	if ((body > 0 && op.num_segs == 0) || weft_sealed_seal(seal->cipher, &op, 1) != 1) {
		raw_count(c->iface, RAW_SEAL_KEY_SPENT);
		rte_pktmbuf_free(out);
		return NULL;
	}
	c->iface->counter[RAW_TX_BYTES] += size - m->pkt_len;
	return out;
}

/*
 * The helper that sends GONE has no key, so GONE is sealed now. Another key, or another address of
 * the peer, needs another GONE.
 */
uint32_t raw_sealed_farewell(struct raw_conn *c, const struct weft_encap_addr *a,
			     uint8_t frame[WEFT_FAREWELL_MAX])
{
	const uint32_t lane_len = HEAD_LEN + WEFT_FRAME_NUMBER_LEN;
	struct weft_encap_hdr encap;
	struct weft_sealed_op op;
	struct weft_frame_hdr hdr = {
		.magic = weft_put16(WEFT_FRAME_MAGIC),
		.version = WEFT_FRAME_VERSION,
		.type = WEFT_FRAME_GONE,
		.length = weft_put16((uint16_t)lane_len),
		.dst_conn = weft_put32(c->remote_id),
		.token = weft_put32(c->remote_token),
		.src_conn = weft_put16((uint16_t)c->id),
		.ts_hold = weft_put16(WEFT_FRAME_NO_ECHO),
	};

	if (!c->sealed->gone)
		return 0;
	weft_encap_build(&encap, frame, a);
	memcpy(frame + encap.len, &hdr, sizeof(hdr));
	op = (struct weft_sealed_op){
		.conn = c->sealed->keys,
		.head = frame + encap.len,
		.slot = WEFT_SEALED_SLOT_GONE,
		.tag = frame + encap.len + lane_len,
	};
	if (weft_sealed_seal(c->iface->seal->cipher, &op, 1) != 1)
		return 0;
	weft_encap_patch(&encap, frame, lane_len + WEFT_FRAME_TAG_LEN, a->src_port, a->dst_port);
	weft_encap_csum6(&encap, frame);
	return encap.len + lane_len + WEFT_FRAME_TAG_LEN;
}

/* ---------------------------------------------------------------- receiving */

static bool count_drop(struct raw_conn *c, enum weft_sealed_verdict verdict)
{
	static const enum raw_counter counter[] = {
		[WEFT_SEALED_FORMAT] = RAW_DROP_BAD_TYPE, [WEFT_SEALED_TAG] = RAW_DROP_SEAL_TAG,
		[WEFT_SEALED_SEEN] = RAW_DROP_SEAL_SEEN,  [WEFT_SEALED_OLD] = RAW_DROP_SEAL_OLD,
		[WEFT_SEALED_SPENT] = RAW_SEAL_KEY_SPENT,
	};

	raw_count(c->iface, counter[verdict]);
	return verdict == WEFT_SEALED_SPENT;
}

/*
 * The peer has this end's present key once it has acknowledged a frame that was sealed with it, or
 * answered a probe. Only then another key may follow.
 */
static void look_at_keys(struct raw_conn *c, uint32_t ack)
{
	const struct raw_iface *iface = c->iface;
	struct raw_sealed *s = c->sealed;
	uint64_t keep = 3ull * RTE_MAX((uint64_t)c->base.rtt_ns, WEFT_RTO_INITIAL);

	if (weft_seq_diff(ack, s->key_from) > 0 && c->state == RAW_UP)
		weft_sealed_confirm(s->keys);
	if (iface->now < s->tick_at)
		return;
	s->tick_at = iface->now + TICK_NS;
	if (weft_sealed_tick(s->keys, iface->seal->cipher, iface->now, keep)) {
		s->key_from = c->tx.next;
		s->probe++;
		s->farewell_due = true;
		raw_count(c->iface, RAW_SEAL_REKEYS);
	}
}

bool raw_sealed_farewell_due(struct raw_conn *c)
{
	bool due = c->sealed->farewell_due && c->state == RAW_UP;

	c->sealed->farewell_due = false;
	return due;
}

bool raw_sealed_probe_due(struct raw_conn *c, uint16_t *probe)
{
	struct raw_sealed *s = c->sealed;

	if (c->state != RAW_UP || c->iface->now < s->probe_at ||
	    !weft_sealed_unsure(s->keys, c->iface->now))
		return false;
	s->probe_at = c->iface->now + PROBE_NS;
	*probe = s->probe;
	return true;
}

void raw_sealed_answered(struct raw_conn *c, uint16_t probe)
{
	if (c->sealed && c->sealed->keys && probe == c->sealed->probe)
		weft_sealed_confirm(c->sealed->keys);
}

/* The header as it was before the frame was sealed. */
static void open_header(struct weft_frame_hdr *hdr)
{
	hdr->flags = weft_put16(weft_get16(hdr->flags) & (uint16_t)~WEFT_FRAME_F_OF_SEAL);
	hdr->length = weft_put16((uint16_t)(weft_get16(hdr->length) - WEFT_FRAME_NUMBER_LEN));
}

/* @return false: dropped and counted */
static bool read_plain(struct raw_conn *c, struct weft_frame_view *plain)
{
	enum weft_rx_verdict g;

	plain->flags = weft_get16(plain->hdr->flags);
	plain->type = plain->hdr->type;
	g = plain->flags & ~WEFT_FRAME_F_KNOWN ? WEFT_VERDICT_BAD_TYPE
					       : weft_frame_parse_body(plain);
	if (g == WEFT_VERDICT_OK)
		return true;
	raw_count(c->iface, g == WEFT_VERDICT_BAD_LENGTH    ? RAW_DROP_BAD_LENGTH
			    : g == WEFT_VERDICT_BAD_MESSAGE ? RAW_DROP_BAD_MESSAGE
							    : RAW_DROP_BAD_TYPE);
	return false;
}

/* The buffer of the plain frame: the received one, if no other process can write to it. */
struct place {
	struct rte_mbuf *m;
	struct weft_frame_hdr *hdr;
	bool received; /* m is the received buffer, which the caller owns */
};

static bool find_place(const struct raw_conn *c, const struct weft_frame_view *v,
		       struct rte_mbuf *desc, struct place *at)
{
	const struct weft_frame_port *port = c->iface->port;

	if (desc && port->flags & WEFT_FRAME_PORT_RX_OWN) {
		*at = (struct place){desc, (struct weft_frame_hdr *)(uintptr_t)v->hdr, true};
		return true;
	}
	at->received = false;
	at->m = rte_pktmbuf_alloc(port->pool);
	if (!at->m) {
		raw_count(c->iface, RAW_NO_MEMORY);
		return false;
	}
	at->hdr = raw_hdr(c, at->m);
	if (c->encap.len + HEAD_LEN + v->body_len <= rte_pktmbuf_tailroom(at->m))
		return true;
	raw_count(c->iface, RAW_DROP_BAD_LENGTH);
	rte_pktmbuf_free(at->m);
	return false;
}

/*
 * Another process may change a buffer that it can write to between two reads. So all bytes of the
 * frame are read once: the body is copied out of such a buffer before it is verified.
 */
struct rte_mbuf *raw_sealed_open(struct raw_conn *c, const struct weft_frame_view *v,
				 struct rte_mbuf *desc, struct weft_frame_view *plain, bool *spent)
{
	const bool shared = !(c->iface->port->flags & WEFT_FRAME_PORT_RX_OWN);
	const struct raw_seal *seal = c->iface->seal;
	uint8_t head[WEFT_SEALED_HEAD] __rte_aligned(8), tag[WEFT_FRAME_TAG_LEN];
	struct weft_cipher_seg seg;
	struct weft_sealed_op op;
	struct place at;

	if (!find_place(c, v, desc, &at))
		return NULL;
	memcpy(head, v->hdr, sizeof(head));
	memcpy(tag, v->body + v->body_len, sizeof(tag));
	seg = (struct weft_cipher_seg){
		.in = v->body,
		.out = at.received ? (uint8_t *)(uintptr_t)v->body : (uint8_t *)(at.hdr + 1),
		.len = v->body_len,
	};
	if (!at.received && (shared || seal->conf.mode == WEFT_SEAL_AUTH))
		copy_segs(&seg, 1);
	op = (struct weft_sealed_op){
		.conn = c->sealed->keys,
		.head = head,
		.segs = &seg,
		.num_segs = v->body_len > 0,
		.tag = tag,
		.verdict = WEFT_SEALED_FORMAT,
	};
	if (weft_get16(((struct weft_frame_hdr *)head)->length) == sizeof(head) + v->body_len)
		weft_sealed_open(seal->cipher, &op, 1, c->iface->now);
	if (op.verdict != WEFT_SEALED_OK) {
		*spent = count_drop(c, op.verdict);
		goto drop;
	}
	/* The upper byte of the number is the slot. */
	if ((head[sizeof(head) - 1] == WEFT_SEALED_SLOT_GONE) !=
	    (((struct weft_frame_hdr *)head)->type == WEFT_FRAME_GONE)) {
		raw_count(c->iface, RAW_DROP_BAD_TYPE);
		goto drop;
	}
	memcpy(at.hdr, head, HEAD_LEN);
	open_header(at.hdr);
	*plain = *v;
	plain->hdr = at.hdr;
	plain->body = seg.out;
	if (!read_plain(c, plain))
		goto drop;
	/* The header of GONE is older than the connection's frames. */
	if (at.hdr->type != WEFT_FRAME_GONE)
		look_at_keys(c, weft_get32(at.hdr->ack));
	return at.m;

drop:
	if (!at.received)
		rte_pktmbuf_free(at.m);
	return NULL;
}
