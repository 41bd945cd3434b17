/* SPDX-License-Identifier: BSD-3-Clause */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"
#include "mock_lane.h"
#include "self_lane.h"

/*
 * One network for the process. A message lies in the inbox of the iface it goes to until that
 * iface's progress delivers it; connects likewise need the progress of the iface they go to. Events
 * wait in the lep they are for.
 */

struct mock_lep {
	struct weft_lane_ep base; /* first */
	LIST_ENTRY(mock_lep) entry;
	struct mock_lep *peer; /* other end; NULL = not connected (yet), or gone */
	bool dead;             /* destroyed: freed at the next progress */
	bool stranger;
	/* connecting */
	uint64_t target;   /* address id; 0 = connected or passive */
	bool asked;        /* lies in the target's list of connects */
	uint64_t deadline; /* of the connect, or of a silent peer; UINT64_MAX = none */
	char text[128];
	/* events due */
	bool up_due, gone_due, down_due;
	int down_status;
	unsigned int outstanding; /* messages sent, not delivered */
	struct weft_lane_comp *flush[8];
	unsigned int num_flush;
	/* stranger: what it received */
	unsigned int received;
	uint8_t last_id;
	size_t last_len;
	uint8_t last[16384];
};

struct mock_msg {
	TAILQ_ENTRY(mock_msg) entry;
	struct mock_lep *from, *to; /* from: NULL = injected, or gone */
	struct weft_lane_comp *comp;
	uint64_t ready; /* not before */
	uint8_t am_id;
	size_t length;
	uint8_t *data; /* own allocation: overruns are seen */
};

/* A completion that is due at the sender's progress. */
struct mock_done {
	STAILQ_ENTRY(mock_done) entry;
	struct mock_lep *lep;
	struct weft_lane_comp *comp;
	int status;
};

/* A native read or write under way. */
struct mock_rma {
	TAILQ_ENTRY(mock_rma) entry;
	struct mock_lep *lep;
	struct iovec iov[8];
	unsigned int iovcnt;
	size_t len;
	uint64_t offset, key;
	bool write;
	struct weft_lane_comp *comp;
};

struct mock_iface {
	struct weft_lane_iface base; /* first */
	LIST_ENTRY(mock_iface) entry;
	uint64_t id;
	uint32_t net;
	bool down, muted, held, no_boot;
	unsigned int eagain;
	uint64_t delay;
	uint64_t worker_id, connect_timeout, peer_timeout;
	weft_lane_recv_cb recv;
	weft_lane_event_cb event;
	void *arg;
	LIST_HEAD(, mock_lep) leps;
	TAILQ_HEAD(, mock_msg) inbox;
	STAILQ_HEAD(, mock_done) done;
	TAILQ_HEAD(, mock_rma) rmas;
	struct mock_lep *zombies; /* by peer */
	bool in_progress;
	uint64_t tx, rx;
};

/* A registration: what lanes with native remote memory reach by its key. */
struct weft_mem_lane {
	LIST_ENTRY(weft_mem_lane) entry;
	uint8_t *addr;
	size_t len;
	uint64_t key;
	unsigned int access;
};

struct refusal {
	const struct mock_iface *from, *to;
	int status;
	char text[128];
};

static struct {
	LIST_HEAD(, mock_iface) ifaces;
	uint64_t next_id;
	uint64_t rng;
	enum mock_order order;
	unsigned int burst, eagain, window;
	bool held, no_keep;
	uint64_t delay;
	enum mock_verdict (*filter)(const struct mock_msg_view *msg, void *arg);
	void *filter_arg;
	struct refusal refusals[16];
	unsigned int num_refusals;
	unsigned int num_ifaces, num_leps, num_msgs, num_kept, num_mems, native;
	unsigned int num_registers, denied;
	const uint8_t *read_only;
	size_t read_only_len;
	LIST_HEAD(, weft_mem_lane) mems;
	uint64_t next_key;
	unsigned int rma_window;
	int rma_refuse, rma_fail, register_fail;
	struct weft_lane_iface stranger_iface;
} net;

uint64_t mock_now, mock_features;

static uint64_t rnd(void)
{
	net.rng ^= net.rng << 13;
	net.rng ^= net.rng >> 7;
	net.rng ^= net.rng << 17;
	return net.rng;
}

static uint64_t platform_now(void *arg)
{
	(void)arg;
	return mock_now;
}

static int platform_random(void *arg, void *buf, size_t len)
{
	uint8_t *p = buf;

	(void)arg;
	while (len-- > 0)
		*p++ = (uint8_t)(rnd() >> 24);
	return 0;
}

const struct weft_platform mock_platform = {.now = platform_now, .random = platform_random};

static inline struct mock_iface *to_iface(struct weft_lane_iface *iface)
{
	return (struct mock_iface *)iface;
}

static inline struct mock_lep *to_lep(struct weft_lane_ep *lep)
{
	return (struct mock_lep *)lep;
}

static inline struct mock_iface *iface_of(const struct mock_lep *lep)
{
	return lep->stranger ? NULL : (struct mock_iface *)lep->base.iface;
}

/* ------------------------------------------------------------------ messages */

static void msg_free(struct mock_msg *m)
{
	free(m->data);
	free(m);
	net.num_msgs--;
}

static void comp_due(struct mock_lep *lep, struct weft_lane_comp *comp, int status)
{
	struct mock_done *d = malloc(sizeof(*d));

	assert_non_null(d);
	*d = (struct mock_done){.lep = lep, .comp = comp, .status = status};
	STAILQ_INSERT_TAIL(&iface_of(lep)->done, d, entry);
}

/* The sender learns that its message was delivered, or that it never will be. */
static void settle(struct mock_msg *m, int status)
{
	unsigned int i;

	if (m->from == NULL)
		return;
	m->from->outstanding--;
	m->from->base.queued -= (uint32_t)m->length;
	if (m->from->stranger)
		return;
	if (m->comp != NULL)
		comp_due(m->from, m->comp, status);
	if (m->from->outstanding == 0) {
		for (i = 0; i < m->from->num_flush; i++)
			comp_due(m->from, m->from->flush[i], status);
		m->from->num_flush = 0;
	}
}

static void stranger_take(struct mock_lep *lep, uint8_t am_id, const void *data, size_t length)
{
	lep->received++;
	lep->last_id = am_id;
	lep->last_len = length;
	assert_true(length <= sizeof(lep->last));
	memcpy(lep->last, data, length);
}

static void enqueue(struct mock_lep *from, struct mock_lep *to, uint8_t am_id, const void *data,
		    size_t length, struct weft_lane_comp *comp)
{
	struct mock_iface *src = from != NULL ? iface_of(from) : NULL;
	struct mock_msg *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	*m = (struct mock_msg){
		.from = from, .to = to, .comp = comp, .am_id = am_id, .length = length};
	m->ready = mock_now + (src != NULL && src->delay ? src->delay : net.delay);
	m->data = malloc(length > 0 ? length : 1);
	assert_non_null(m->data);
	memcpy(m->data, data, length);
	net.num_msgs++;
	if (from != NULL) {
		from->outstanding++;
		from->base.queued += (uint32_t)length;
	}
	if (to->stranger) {
		stranger_take(to, am_id, data, length);
		settle(m, 0);
		msg_free(m);
		return;
	}
	TAILQ_INSERT_TAIL(&iface_of(to)->inbox, m, entry);
}

/* Messages to a lep that is no more. */
static void purge_to(struct mock_lep *lep, int status)
{
	struct mock_iface *f = iface_of(lep);
	struct mock_msg *m, *next;

	if (f == NULL)
		return;
	for (m = TAILQ_FIRST(&f->inbox); m != NULL; m = next) {
		next = TAILQ_NEXT(m, entry);
		if (m->to != lep)
			continue;
		TAILQ_REMOVE(&f->inbox, m, entry);
		settle(m, status);
		msg_free(m);
	}
}

/* ------------------------------------------------------------------ send */

static int check_send(struct mock_lep *lep, size_t length, size_t max)
{
	struct mock_iface *f = iface_of(lep);
	unsigned int p = f->eagain ? f->eagain : net.eagain;

	if (lep->base.user != NULL)
		assert_false(lep->dead);
	if (length > max)
		return -EMSGSIZE;
	if (lep->down_due)
		return lep->down_status;
	if (!lep->base.up || lep->peer == NULL)
		return -EAGAIN;
	if ((p && rnd() % 1000 < p) || (net.window && lep->outstanding >= net.window))
		return -EAGAIN;
	return 0;
}

static int mock_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
			 const void *payload, size_t length)
{
	struct mock_lep *lep = to_lep(base);
	int rc = check_send(lep, hdr_len + length, base->iface->attr.max_short);
	uint8_t buf[65536];

	if (rc < 0)
		return rc;
	memcpy(buf, hdr, hdr_len);
	if (length > 0)
		memcpy(buf + hdr_len, payload, length);
	iface_of(lep)->tx++;
	enqueue(lep, lep->peer, am_id, buf, hdr_len + length, NULL);
	return 0;
}

static ssize_t mock_am_bcopy(struct weft_lane_ep *base, uint8_t am_id, weft_lane_pack_cb pack,
			     void *arg)
{
	struct mock_lep *lep = to_lep(base);
	size_t max = base->iface->attr.max_bcopy;
	int rc = check_send(lep, 0, max);
	uint8_t *buf;
	ssize_t n;

	if (rc < 0)
		return rc;
	buf = malloc(max);
	assert_non_null(buf);
	n = pack(buf, max, arg);
	if (n > 0) {
		iface_of(lep)->tx++;
		enqueue(lep, lep->peer, am_id, buf, (size_t)n, NULL);
	}
	free(buf);
	return n != 0 ? n : -EINVAL;
}

static int mock_am_zcopy(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
			 const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
			 struct weft_lane_comp *comp)
{
	const struct weft_lane_attr *attr = &base->iface->attr;
	struct mock_lep *lep = to_lep(base);
	size_t n = hdr_len;
	unsigned int i;
	uint8_t *buf;
	int rc;

	assert_true(iovcnt <= attr->max_iov);
	if (attr->features & WEFT_LANE_F_ZCOPY_REG)
		assert_non_null(mem);
	for (i = 0; i < iovcnt; i++)
		n += iov[i].iov_len;
	rc = check_send(lep, n, attr->max_zcopy);
	if (rc < 0)
		return rc;
	buf = malloc(n);
	assert_non_null(buf);
	memcpy(buf, hdr, hdr_len);
	for (i = 0, n = hdr_len; i < iovcnt; n += iov[i++].iov_len)
		memcpy(buf + n, iov[i].iov_base, iov[i].iov_len);
	iface_of(lep)->tx++;
	enqueue(lep, lep->peer, am_id, buf, n, comp);
	free(buf);
	return 0;
}

/* ------------------------------------------------------------------ remote memory */

static bool allowed(const struct weft_mem_lane *m, unsigned int access)
{
	bool yes = (m->access & access) == access;

	net.denied += !yes;
	return yes;
}

/* Done at once at the target; the asker learns of it at its next progress. */
static int native(struct weft_lane_ep *base, size_t len, uint64_t offset, uint64_t key,
		  struct weft_lane_comp *comp, uint8_t **at)
{
	struct mock_lep *lep = to_lep(base);
	int rc = check_send(lep, len, SIZE_MAX);
	struct weft_mem_lane *m;

	if (rc < 0)
		return rc;
	net.native++;
	LIST_FOREACH(m, &net.mems, entry) {
		if (m->key == key && offset <= m->len && len <= m->len - offset &&
		    allowed(m, WEFT_LANE_ACCESS_REMOTE_ATOMIC))
			break;
	}
	comp_due(lep, comp, m != NULL ? 0 : -EKEYREJECTED);
	*at = m != NULL ? m->addr + offset : NULL;
	return 0;
}

static int rma(struct weft_lane_ep *base, const struct iovec *iov, unsigned int iovcnt,
	       struct weft_mem_lane *mem, uint64_t offset, uint64_t key, bool write,
	       struct weft_lane_comp *comp)
{
	struct mock_lep *lep = to_lep(base);
	struct mock_iface *f = iface_of(lep);
	unsigned int n = 0, i;
	struct mock_rma *r;
	size_t len = 0;
	int rc;

	assert_in_range(iovcnt, 1, base->iface->attr.max_rma_iov);
	assert_non_null(mem);
	for (i = 0; i < iovcnt; i++) {
		assert_true((uint8_t *)iov[i].iov_base >= mem->addr &&
			    (uint8_t *)iov[i].iov_base + iov[i].iov_len <= mem->addr + mem->len);
		assert_true(iov[i].iov_len > 0);
		len += iov[i].iov_len;
	}
	assert_true(write || (mem->access & WEFT_LANE_ACCESS_LOCAL_WRITE));
	rc = check_send(lep, len, write ? base->iface->attr.max_put : base->iface->attr.max_get);
	if (rc == 0 && net.rma_refuse)
		rc = net.rma_refuse;
	TAILQ_FOREACH(r, &f->rmas, entry)
		n += r->lep == lep;
	if (rc == 0 && n >= (net.rma_window ? net.rma_window : 16))
		rc = -EAGAIN;
	if (rc)
		return rc;
	r = malloc(sizeof(*r));
	assert_non_null(r);
	*r = (struct mock_rma){.lep = lep, .iovcnt = iovcnt, .offset = offset, .key = key};
	memcpy(r->iov, iov, iovcnt * sizeof(*iov));
	r->len = len;
	r->write = write;
	r->comp = comp;
	f->tx++;
	net.native++;
	TAILQ_INSERT_TAIL(&f->rmas, r, entry);
	return 0;
}

static int mock_get_zcopy(struct weft_lane_ep *lep, const struct iovec *iov, unsigned int iovcnt,
			  struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
			  struct weft_lane_comp *comp)
{
	return rma(lep, iov, iovcnt, mem, remote_offset, key, false, comp);
}

static int mock_put_zcopy(struct weft_lane_ep *lep, const struct iovec *iov, unsigned int iovcnt,
			  struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
			  struct weft_lane_comp *comp)
{
	return rma(lep, iov, iovcnt, mem, remote_offset, key, true, comp);
}

/* A key that is gone, or bytes outside: as the hardware would say. */
static int rma_do(const struct mock_rma *r)
{
	struct weft_mem_lane *m;
	unsigned int i;
	uint8_t *at;

	if (!r->lep->base.up || r->lep->down_due || r->lep->peer == NULL)
		return -ECONNRESET;
	if (net.rma_fail)
		return net.rma_fail;
	LIST_FOREACH(m, &net.mems, entry)
		if (m->key == r->key)
			break;
	if (m == NULL || r->offset > m->len || r->len > m->len - r->offset)
		return -EKEYREJECTED;
	if (!allowed(m, r->write ? WEFT_LANE_ACCESS_REMOTE_WRITE : WEFT_LANE_ACCESS_REMOTE_READ))
		return -EACCES;
	at = m->addr + r->offset;
	for (i = 0; i < r->iovcnt; at += r->iov[i++].iov_len) {
		if (r->write)
			memcpy(at, r->iov[i].iov_base, r->iov[i].iov_len);
		else
			memcpy(r->iov[i].iov_base, at, r->iov[i].iov_len);
	}
	return 0;
}

static void run_rmas(struct mock_iface *f)
{
	struct mock_rma *r;

	while (!f->held && !net.held && !f->muted && (r = TAILQ_FIRST(&f->rmas)) != NULL) {
		TAILQ_REMOVE(&f->rmas, r, entry);
		comp_due(r->lep, r->comp, rma_do(r));
		free(r);
	}
}

static void cancel_rmas(struct mock_iface *f, struct mock_lep *lep)
{
	struct mock_rma *r, *next;

	for (r = TAILQ_FIRST(&f->rmas); r != NULL; r = next) {
		next = TAILQ_NEXT(r, entry);
		if (r->lep != lep)
			continue;
		TAILQ_REMOVE(&f->rmas, r, entry);
		comp_due(lep, r->comp, -ECANCELED);
		free(r);
	}
}

static int mock_amo64(struct weft_lane_ep *lep, enum weft_lane_amo op, uint64_t operand,
		      uint64_t compare, uint64_t *result, uint64_t offset, uint64_t key,
		      struct weft_lane_comp *comp)
{
	uint8_t *at = NULL;
	int rc = native(lep, 8, offset, key, comp, &at);
	uint64_t word;

	assert_int_equal(offset % 8, 0);
	if (rc < 0 || at == NULL)
		return rc;
	memcpy(&word, at, 8);
	*result = word;
	if (op == WEFT_LANE_AMO_ADD)
		word += operand;
	else if (word == compare)
		word = operand;
	memcpy(at, &word, 8);
	return 0;
}

/* ------------------------------------------------------------------ connections */

static struct mock_lep *lep_new(struct weft_lane_iface *iface, void *user)
{
	struct mock_lep *lep = calloc(1, sizeof(*lep));

	assert_non_null(lep);
	lep->base.iface = iface;
	lep->base.ops = iface->ops;
	lep->base.user = user;
	lep->base.max_msg =
		(uint32_t)(iface->attr.max_zcopy > iface->attr.max_bcopy ? iface->attr.max_zcopy
									 : iface->attr.max_bcopy);
	if (lep->base.max_msg < iface->attr.max_short)
		lep->base.max_msg = (uint32_t)iface->attr.max_short;
	lep->deadline = UINT64_MAX;
	net.num_leps++;
	return lep;
}

static struct mock_iface *find_iface(uint64_t id)
{
	struct mock_iface *f;

	LIST_FOREACH(f, &net.ifaces, entry)
		if (f->id == id)
			return f;
	return NULL;
}

static const struct refusal *refusal_of(const struct mock_iface *from, const struct mock_iface *to)
{
	unsigned int i;

	for (i = 0; i < net.num_refusals; i++)
		if ((net.refusals[i].from == NULL || net.refusals[i].from == from) &&
		    (net.refusals[i].to == NULL || net.refusals[i].to == to))
			return &net.refusals[i];
	return NULL;
}

static int mock_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
			   struct weft_lane_ep **out)
{
	struct mock_iface *f = to_iface(base);
	struct mock_lep *lep;

	if (len != 16)
		return -EINVAL;
	if (f->down)
		return -ENETDOWN;
	lep = lep_new(base, user);
	memcpy(&lep->target, addr, sizeof(lep->target));
	lep->deadline = mock_now + f->connect_timeout;
	snprintf(lep->text, sizeof(lep->text), "mock-%llu gave no answer",
		 (unsigned long long)lep->target);
	LIST_INSERT_HEAD(&f->leps, lep, entry);
	*out = &lep->base;
	return 0;
}

/* Connects that go to @p f: its progress answers them. */
static void answer_connects(struct mock_iface *f)
{
	const struct refusal *no;
	struct mock_lep *lep, *passive;
	struct mock_iface *g;

	if (f->muted || f->down)
		return;
	LIST_FOREACH(g, &net.ifaces, entry) {
		LIST_FOREACH(lep, &g->leps, entry) {
			if (lep->target != f->id || lep->dead || g->muted || find_iface(f->id) != f)
				continue;
			no = refusal_of(g, f);
			if (no != NULL && no->status == 0)
				continue;
			lep->target = 0;
			lep->deadline = UINT64_MAX;
			if (no != NULL) {
				lep->down_due = true;
				lep->down_status = no->status;
				snprintf(lep->text, sizeof(lep->text), "%s", no->text);
				continue;
			}
			passive = lep_new(&f->base, NULL);
			passive->base.passive = true;
			passive->peer = lep;
			lep->peer = passive;
			passive->up_due = lep->up_due = true;
			LIST_INSERT_HEAD(&f->leps, passive, entry);
		}
	}
}

static void mock_ep_destroy(struct weft_lane_ep *base)
{
	struct mock_lep *lep = to_lep(base);
	struct mock_iface *f = to_iface(base->iface), *g;
	struct mock_done *d;
	struct mock_msg *m;
	unsigned int i;

	assert_false(lep->dead);
	LIST_REMOVE(lep, entry);
	lep->dead = true;
	base->up = false;
	net.num_leps--;
	purge_to(lep, -ECONNRESET);
	/* Own messages go on; nobody is told of their fate any more. */
	LIST_FOREACH(g, &net.ifaces, entry) {
		TAILQ_FOREACH(m, &g->inbox, entry) {
			if (m->from != lep)
				continue;
			m->from = NULL;
			if (m->comp != NULL)
				comp_due(lep, m->comp, -ECANCELED);
		}
	}
	for (i = 0; i < lep->num_flush; i++)
		comp_due(lep, lep->flush[i], -ECANCELED);
	lep->num_flush = 0;
	cancel_rmas(f, lep);
	for (d = STAILQ_FIRST(&f->done); d != NULL;
	     d = d == NULL ? STAILQ_FIRST(&f->done) : STAILQ_NEXT(d, entry)) {
		if (d->lep != lep)
			continue;
		STAILQ_REMOVE(&f->done, d, mock_done, entry);
		d->comp->done(d->comp, d->status);
		free(d);
		d = NULL; /* the callback may have changed the list */
		if (STAILQ_EMPTY(&f->done))
			break;
	}
	if (lep->peer != NULL) {
		lep->peer->gone_due = true;
		lep->peer->peer = NULL;
	}
	lep->peer = f->zombies;
	f->zombies = lep;
}

static int mock_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp)
{
	struct mock_lep *lep = to_lep(base);

	if (lep->down_due)
		return lep->down_status;
	if (lep->outstanding == 0)
		return WEFT_LANE_IDLE;
	if (lep->num_flush == 8)
		return -EAGAIN;
	lep->flush[lep->num_flush++] = comp;
	return 0;
}

static bool mock_ep_is_from(struct weft_lane_ep *base, const void *addr, size_t len)
{
	struct mock_lep *lep = to_lep(base);
	uint64_t id;

	if (len != 16 || lep->peer == NULL || lep->peer->stranger)
		return false;
	memcpy(&id, addr, sizeof(id));
	return iface_of(lep->peer)->id == id;
}

/* ------------------------------------------------------------------ progress */

static void free_zombies(struct mock_iface *f)
{
	struct mock_lep *lep;

	while ((lep = f->zombies) != NULL) {
		f->zombies = lep->peer;
		free(lep);
	}
}

static unsigned int run_done(struct mock_iface *f)
{
	struct mock_done *d;
	unsigned int n = 0;

	while ((d = STAILQ_FIRST(&f->done)) != NULL) {
		STAILQ_REMOVE_HEAD(&f->done, entry);
		d->comp->done(d->comp, d->status);
		free(d);
		n++;
	}
	return n;
}

static bool has_messages(struct mock_iface *f, const struct mock_lep *lep)
{
	struct mock_msg *m;

	TAILQ_FOREACH(m, &f->inbox, entry)
		if (m->to == lep)
			return true;
	return false;
}

/* One event of one lep. @return false when there is none */
static bool run_event(struct mock_iface *f)
{
	struct mock_lep *lep;

	LIST_FOREACH(lep, &f->leps, entry) {
		if (lep->up_due) {
			lep->up_due = false;
			lep->base.up = lep->base.tx_room = true;
			f->event(f->arg, &lep->base, WEFT_LANE_EV_UP, 0, "connected");
			return true;
		}
		if (mock_now >= lep->deadline && !lep->down_due) {
			lep->down_due = true;
			lep->down_status = -ETIMEDOUT;
		}
		if (lep->down_due && lep->deadline != 0) {
			lep->deadline = 0; /* reported */
			lep->base.up = false;
			f->event(f->arg, &lep->base, WEFT_LANE_EV_DOWN, lep->down_status,
				 lep->text);
			return true;
		}
		if (lep->gone_due && !has_messages(f, lep)) {
			lep->gone_due = false;
			lep->base.up = false;
			f->event(f->arg, &lep->base, WEFT_LANE_EV_GONE, 0,
				 "the peer closed the connection");
			return true;
		}
	}
	return false;
}

static enum mock_verdict judge(struct mock_iface *f, const struct mock_msg *m)
{
	struct mock_msg_view v = {
		.from = m->from != NULL && !m->from->stranger ? m->from->base.iface : NULL,
		.to = &f->base,
		.am_id = m->am_id,
		.data = m->data,
		.length = m->length,
	};

	if (m->ready > mock_now || !m->to->base.up)
		return MOCK_LATER;
	if (m->from != NULL && !m->from->stranger && iface_of(m->from)->muted)
		return MOCK_LATER;
	return net.filter != NULL ? net.filter(&v, net.filter_arg) : MOCK_DELIVER;
}

/* The next message that may be delivered, of the first @p n in the inbox. */
static struct mock_msg *pick(struct mock_iface *f, unsigned int n, bool *twice, bool *drop)
{
	struct mock_msg *m, *found = NULL;
	unsigned int i = 0, seen = 0;
	enum mock_verdict v, kept = MOCK_DELIVER;

	TAILQ_FOREACH(m, &f->inbox, entry) {
		if (i++ == n)
			break;
		v = judge(f, m);
		if (v == MOCK_LATER)
			continue;
		seen++;
		if (found == NULL || net.order == MOCK_REVERSE ||
		    (net.order == MOCK_RANDOM && rnd() % seen == 0)) {
			found = m;
			kept = v;
		}
		if (net.order == MOCK_FIFO)
			break;
	}
	*twice = kept == MOCK_TWICE;
	*drop = kept == MOCK_DROP;
	return found;
}

static void deliver(struct mock_iface *f, struct mock_msg *m, bool twice)
{
	struct mock_lep *to = m->to;
	int rc;

	f->rx++;
	if (twice && !to->dead)
		f->recv(f->arg, &to->base, m->am_id, m->data, m->length, NULL);
	if (to->dead) {
		settle(m, -ECONNRESET);
		msg_free(m);
		return;
	}
	rc = f->recv(f->arg, &to->base, m->am_id, m->data, m->length, net.no_keep ? NULL : m);
	settle(m, 0);
	if (rc == WEFT_LANE_KEEP) {
		assert_false(net.no_keep);
		net.num_kept++;
		m->from = m->to = NULL;
	} else {
		msg_free(m);
	}
}

static unsigned int mock_progress(struct weft_lane_iface *base, uint64_t now_ns)
{
	struct mock_iface *f = to_iface(base);
	unsigned int n = 0, events = 0, limit;
	struct mock_msg *m;
	bool twice, drop;

	assert_true(now_ns == mock_now);
	assert_false(f->in_progress);
	f->in_progress = true;
	free_zombies(f);
	answer_connects(f);
	while (run_event(f))
		events++;
	/* What callbacks send now is for the next call. */
	TAILQ_FOREACH(m, &f->inbox, entry)
		n++;
	limit = net.burst != 0 && net.burst < n ? net.burst : n;
	while (!f->held && !net.held && !f->muted && limit-- > 0 &&
	       (m = pick(f, n, &twice, &drop)) != NULL) {
		TAILQ_REMOVE(&f->inbox, m, entry);
		n--;
		if (drop) {
			settle(m, 0);
			msg_free(m);
			continue;
		}
		deliver(f, m, twice);
		events++;
	}
	run_rmas(f);
	events += run_done(f);
	while (run_event(f))
		events++;
	f->in_progress = false;
	return events;
}

static void mock_tx_flush(struct weft_lane_iface *base)
{
	(void)base;
}

static void mock_give_back(struct weft_lane_iface *base, void *desc)
{
	(void)base;
	assert_true(net.num_kept > 0);
	net.num_kept--;
	msg_free(desc);
}

/* ------------------------------------------------------------------ cold */

static void mock_get_address(struct weft_lane_iface *base, void *buf)
{
	struct mock_iface *f = to_iface(base);
	uint8_t *p = buf;

	memset(p, 0, 16);
	memcpy(p, &f->id, 8);
	memcpy(p + 8, &f->net, 4);
}

static int mock_is_reachable(struct weft_lane_iface *base, const void *addr, size_t len, char *why,
			     size_t why_len)
{
	uint32_t other;

	if (len != 16) {
		snprintf(why, why_len, "bad address");
		return -EINVAL;
	}
	memcpy(&other, (const char *)addr + 8, 4);
	if (other == to_iface(base)->net)
		return 0;
	snprintf(why, why_len, "net %u here, net %u there", to_iface(base)->net, other);
	return -EHOSTUNREACH;
}

static void mock_print_address(const void *addr, size_t len, char *buf, size_t size)
{
	uint64_t id = 0;

	memcpy(&id, addr, len < 8 ? len : 8);
	snprintf(buf, size, "mock-%llu", (unsigned long long)id);
}

static bool mock_link_up(struct weft_lane_iface *base)
{
	return !to_iface(base)->down;
}

static void mock_ep_print(struct weft_lane_ep *base, char *buf, size_t size)
{
	snprintf(buf, size, "mock lep, %u outstanding", to_lep(base)->outstanding);
}

static void mock_counters(struct weft_lane_iface *base, weft_lane_counter_cb cb, void *arg)
{
	cb("tx.messages", to_iface(base)->tx, arg);
	cb("rx.messages", to_iface(base)->rx, arg);
}

static void mock_close(struct weft_lane_iface *base)
{
	struct mock_iface *f = to_iface(base);
	struct mock_msg *m;

	while (!LIST_EMPTY(&f->leps))
		mock_ep_destroy(&LIST_FIRST(&f->leps)->base);
	run_done(f);
	while ((m = TAILQ_FIRST(&f->inbox)) != NULL) {
		TAILQ_REMOVE(&f->inbox, m, entry);
		settle(m, -ECONNRESET);
		msg_free(m);
	}
	free_zombies(f);
	LIST_REMOVE(f, entry);
	net.num_ifaces--;
	free(f);
}

static const struct weft_lane_ops mock_ops = {
	.am_short = mock_am_short,
	.am_bcopy = mock_am_bcopy,
	.am_zcopy = mock_am_zcopy,
	.get_zcopy = mock_get_zcopy,
	.put_zcopy = mock_put_zcopy,
	.amo64 = mock_amo64,
	.tx_flush = mock_tx_flush,
	.progress = mock_progress,
	.release = mock_give_back,
	.ep_connect = mock_ep_connect,
	.ep_destroy = mock_ep_destroy,
	.ep_flush = mock_ep_flush,
	.ep_is_from = mock_ep_is_from,
	.get_address = mock_get_address,
	.is_reachable = mock_is_reachable,
	.print_address = mock_print_address,
	.link_up = mock_link_up,
	.ep_print = mock_ep_print,
	.counters = mock_counters,
	.close = mock_close,
};

/* ------------------------------------------------------------------ driver */

static int mock_query(const struct weft_lane_conf *conf, struct weft_lane_resource **list)
{
	struct weft_lane_resource *r = calloc(16, sizeof(*r));
	int i;

	(void)conf;
	assert_non_null(r);
	for (i = 0; i < 16; i++)
		snprintf(r[i].name, sizeof(r[i].name), "%d", i);
	*list = r;
	return 16;
}

/* Value of "name=value" or of the bare "name" in @p options; NULL = not there. */
static const char *option(const char *options, const char *name, char *buf, size_t size)
{
	size_t n = strlen(name), k;

	for (; *options != '\0'; options += k + (options[k] == ',')) {
		k = strcspn(options, ",");
		if (strncmp(options, name, n) != 0 || (options[n] != '=' && n != k))
			continue;
		snprintf(buf, size, "%.*s", n == k ? 0 : (int)(k - n - 1), options + n + (n != k));
		return buf;
	}
	return NULL;
}

static double number(const char *options, const char *name, double def)
{
	char buf[64];

	return option(options, name, buf, sizeof(buf)) != NULL ? atof(buf) : def;
}

static void set_attr(struct mock_iface *f, const char *o)
{
	struct weft_lane_attr *a = &f->base.attr;
	char buf[64];

	a->max_short = (size_t)number(o, "short", 256);
	a->max_bcopy = (size_t)number(o, "bcopy", 4096);
	a->max_zcopy = (size_t)number(o, "zcopy", 16384);
	a->max_zcopy_hdr = a->max_zcopy < 128 ? a->max_zcopy : 128;
	a->max_iov = (unsigned int)number(o, "iov", 8);
	a->opt_align = (size_t)number(o, "align", 1);
	a->bandwidth = number(o, "bw", 1e9);
	a->latency = number(o, "lat", 1e-6);
	a->send_overhead = number(o, "so", 1e-7);
	a->recv_overhead = number(o, "ro", 1e-7);
	a->frame_size = 9000;
	a->max_get = (size_t)number(o, "get", number(o, "native", 0));
	a->max_put = (size_t)number(o, "put", number(o, "native", 0));
	a->max_rma_iov = (unsigned int)number(o, "rmaiov", 1);
	a->dev_addr_len = 16;
	a->features =
		(a->max_short ? WEFT_LANE_F_SHORT : 0) | (a->max_bcopy ? WEFT_LANE_F_BCOPY : 0) |
		(a->max_zcopy ? WEFT_LANE_F_ZCOPY : 0) |
		(option(o, "noboot", buf, sizeof(buf)) ? WEFT_LANE_F_TO_EP : WEFT_LANE_F_TO_IFACE) |
		(option(o, "reg", buf, sizeof(buf)) ? WEFT_LANE_F_ZCOPY_REG : 0) |
		(option(o, "native", buf, sizeof(buf)) ? WEFT_LANE_F_AMO64 : 0) |
		(a->max_get ? WEFT_LANE_F_GET : 0) | (a->max_put ? WEFT_LANE_F_PUT : 0);
	if (option(o, "dev", buf, sizeof(buf)) != NULL)
		snprintf(a->device, sizeof(a->device), "%s", buf);
	else
		snprintf(a->device, sizeof(a->device), "mock-%llu", (unsigned long long)f->id);
	snprintf(a->domain, sizeof(a->domain), "mock");
}

static int mock_open(const struct weft_lane_open *p, struct weft_lane_iface **iface, char *why,
		     size_t why_len)
{
	struct mock_iface *f;
	char buf[64];

	if (option(p->options, "fail", buf, sizeof(buf)) != NULL) {
		snprintf(why, why_len, "told to fail");
		return -ENODEV;
	}
	if (option(p->options, "busy", buf, sizeof(buf)) != NULL) {
		snprintf(why, why_len, "another worker has it");
		return -EBUSY;
	}
	f = calloc(1, sizeof(*f));
	assert_non_null(f);
	f->base.ops = &mock_ops;
	f->base.driver = &mock_driver;
	snprintf(f->base.name, sizeof(f->base.name), "mock:%.40s", p->resource);
	f->id = (uint64_t)number(p->options, "addr", (double)++net.next_id);
	f->net = (uint32_t)number(p->options, "net", 0);
	f->down = option(p->options, "down", buf, sizeof(buf)) != NULL;
	set_attr(f, p->options);
	f->worker_id = p->worker_id;
	f->connect_timeout = p->conf->connect_timeout_ns;
	f->peer_timeout = p->conf->peer_timeout_ns;
	f->recv = p->recv;
	f->event = p->event;
	f->arg = p->arg;
	LIST_INIT(&f->leps);
	TAILQ_INIT(&f->inbox);
	STAILQ_INIT(&f->done);
	TAILQ_INIT(&f->rmas);
	LIST_INSERT_HEAD(&net.ifaces, f, entry);
	net.num_ifaces++;
	*iface = &f->base;
	return 0;
}

/* Not the pages that a test has said are for reading. */
static bool writable(const uint8_t *addr)
{
	return addr < net.read_only || addr >= net.read_only + net.read_only_len;
}

static int mock_mem_register(struct weft_lane_iface *iface, void *addr, size_t len,
			     unsigned int access, struct weft_mem_lane **mem, char *why,
			     size_t why_len)
{
	(void)iface;
	net.num_registers++;
	if (net.register_fail) {
		snprintf(why, why_len, "the mock was told to refuse: tell it not to");
		return net.register_fail;
	}
	if ((access & (WEFT_LANE_ACCESS_LOCAL_WRITE | WEFT_LANE_ACCESS_REMOTE_WRITE |
		       WEFT_LANE_ACCESS_REMOTE_ATOMIC)) &&
	    !writable(addr))
		return -EFAULT;
	*mem = malloc(sizeof(**mem));
	assert_non_null(*mem);
	**mem = (struct weft_mem_lane){
		.addr = addr, .len = len, .key = ++net.next_key, .access = access};
	LIST_INSERT_HEAD(&net.mems, *mem, entry);
	net.num_mems++;
	return 0;
}

static uint64_t mock_mem_key(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	(void)iface;
	return mem->key;
}

static void mock_mem_deregister(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	(void)iface;
	LIST_REMOVE(mem, entry);
	free(mem);
	net.num_mems--;
}

const struct weft_lane_driver mock_driver = {
	.name = "mock",
	.abi = WEFT_LANE_ABI,
	.query = mock_query,
	.open = mock_open,
	.mem_register = mock_mem_register,
	.mem_deregister = mock_mem_deregister,
	.mem_key = mock_mem_key,
	.options =
		"net,addr,dev,bw,lat,so,ro,short,bcopy,zcopy,iov,align,get,put,noboot,reg,native,fail,busy,down,rmaiov",
};

const struct weft_lane_driver *const mock_drivers[] = {&mock_driver, &weft_self_driver, NULL};

/* ------------------------------------------------------------------ control */

void mock_reset(void)
{
	/* What a failed test has left is forgotten, so that only that test fails. */
	memset(&net, 0, sizeof(net));
	net.rng = 88172645463325252ull;
	net.next_id = 100;
	mock_now = 1000000000ull;
	mock_features = 0;
}

void mock_set_rma_window(unsigned int n)
{
	net.rma_window = n;
}

void mock_fail_rma(int refuse, int status)
{
	net.rma_refuse = refuse;
	net.rma_fail = status;
}

void mock_fail_register(int status)
{
	net.register_fail = status;
}

void mock_seed(uint64_t seed)
{
	net.rng = seed * 0x9e3779b97f4a7c15ull + 1;
}

unsigned int mock_num_ifaces(void)
{
	return net.num_ifaces;
}

unsigned int mock_num_leps(void)
{
	return net.num_leps;
}

unsigned int mock_num_messages(void)
{
	return net.num_msgs;
}

unsigned int mock_num_kept(void)
{
	return net.num_kept;
}

unsigned int mock_num_native(void)
{
	return net.native;
}

void mock_set_read_only(const void *addr, size_t len)
{
	net.read_only = addr;
	net.read_only_len = len;
}

unsigned int mock_num_registers(void)
{
	return net.num_registers;
}

unsigned int mock_num_denied(void)
{
	return net.denied;
}

unsigned int mock_mem_remote_rights(void)
{
	struct weft_mem_lane *m;
	unsigned int access = 0;

	LIST_FOREACH(m, &net.mems, entry)
		access |= m->access & WEFT_LANE_ACCESS_REMOTE;
	return access;
}

unsigned int mock_num_mems(void)
{
	return net.num_mems;
}

struct weft_lane_iface *mock_iface(struct weft_worker *worker, unsigned int index)
{
	assert_true(index < worker->num_ifaces);
	return worker->ifaces[index];
}

void mock_set_order(enum mock_order order)
{
	net.order = order;
}

void mock_set_burst(unsigned int n)
{
	net.burst = n;
}

void mock_hold(struct weft_lane_iface *iface)
{
	*(iface != NULL ? &to_iface(iface)->held : &net.held) = true;
}

void mock_release(struct weft_lane_iface *iface)
{
	*(iface != NULL ? &to_iface(iface)->held : &net.held) = false;
}

void mock_set_delay(struct weft_lane_iface *iface, uint64_t ns)
{
	*(iface != NULL ? &to_iface(iface)->delay : &net.delay) = ns;
}

void mock_set_filter(enum mock_verdict (*filter)(const struct mock_msg_view *msg, void *arg),
		     void *arg)
{
	net.filter = filter;
	net.filter_arg = arg;
}

void mock_set_eagain(struct weft_lane_iface *iface, unsigned int permille)
{
	*(iface != NULL ? &to_iface(iface)->eagain : &net.eagain) = permille;
}

void mock_set_window(unsigned int n)
{
	net.window = n;
}

void mock_set_no_keep(bool on)
{
	net.no_keep = on;
}

void mock_refuse(struct weft_lane_iface *from, struct weft_lane_iface *to, int status,
		 const char *text)
{
	struct refusal *r;

	assert_true(net.num_refusals < 16);
	r = &net.refusals[net.num_refusals++];
	*r = (struct refusal){from != NULL ? to_iface(from) : NULL,
			      to != NULL ? to_iface(to) : NULL, status, ""};
	snprintf(r->text, sizeof(r->text), "%s", text != NULL ? text : "");
}

void mock_allow_all(void)
{
	net.num_refusals = 0;
}

static void kill_end(struct mock_lep *lep, int status, const char *text)
{
	lep->down_due = true;
	lep->down_status = status;
	lep->deadline = UINT64_MAX;
	snprintf(lep->text, sizeof(lep->text), "%s", text);
	purge_to(lep, status);
}

void mock_kill(struct weft_lane_iface *a, struct weft_lane_iface *b, int status, const char *text)
{
	struct mock_iface *f;
	struct mock_lep *lep;

	LIST_FOREACH(f, &net.ifaces, entry) {
		LIST_FOREACH(lep, &f->leps, entry) {
			if (lep->peer == NULL || lep->peer->stranger || lep->down_due)
				continue;
			if (!((a == NULL || a == &f->base) &&
			      (b == NULL || b == lep->peer->base.iface)))
				continue;
			kill_end(lep->peer, status, text);
			kill_end(lep, status, text);
			lep->peer->peer = NULL;
			lep->peer = NULL;
		}
	}
}

void mock_mute(struct weft_lane_iface *iface)
{
	struct mock_iface *f = to_iface(iface);
	struct mock_lep *lep;

	f->muted = true;
	LIST_FOREACH(lep, &f->leps, entry) {
		if (lep->peer == NULL || lep->peer->stranger)
			continue;
		lep->deadline = mock_now + f->peer_timeout;
		lep->peer->deadline = mock_now + iface_of(lep->peer)->peer_timeout;
		snprintf(lep->text, sizeof(lep->text), "the peer gave no sign of life");
		snprintf(lep->peer->text, sizeof(lep->text), "the peer gave no sign of life");
	}
}

void mock_inject(struct weft_lane_ep *lep, uint8_t am_id, const void *data, size_t length)
{
	enqueue(NULL, to_lep(lep), am_id, data, length, NULL);
}

struct weft_lane_ep *mock_stranger(struct weft_lane_iface *to)
{
	struct mock_iface *f = to_iface(to);
	struct mock_lep *lep, *passive;

	net.stranger_iface.ops = &mock_ops;
	lep = lep_new(&net.stranger_iface, NULL);
	lep->stranger = true;
	passive = lep_new(to, NULL);
	passive->base.passive = true;
	passive->up_due = true;
	passive->peer = lep;
	lep->peer = passive;
	LIST_INSERT_HEAD(&f->leps, passive, entry);
	return &lep->base;
}

void mock_stranger_send(struct weft_lane_ep *base, uint8_t am_id, const void *data, size_t length)
{
	struct mock_lep *lep = to_lep(base);

	if (lep->peer != NULL)
		enqueue(NULL, lep->peer, am_id, data, length, NULL);
}

void mock_stranger_close(struct weft_lane_ep *base)
{
	struct mock_lep *lep = to_lep(base);

	if (lep->peer != NULL) {
		lep->peer->gone_due = true;
		lep->peer->peer = NULL;
	}
	net.num_leps--;
	free(lep);
}

size_t mock_stranger_last(struct weft_lane_ep *base, uint8_t *am_id, const void **data)
{
	struct mock_lep *lep = to_lep(base);

	if (am_id != NULL)
		*am_id = lep->last_id;
	if (data != NULL)
		*data = lep->last;
	return lep->last_len;
}

unsigned int mock_stranger_received(struct weft_lane_ep *base)
{
	return to_lep(base)->received;
}

/* ------------------------------------------------------------------ helpers */

struct weft_context *mock_context(const char *setting, ...)
{
	struct weft_context_params p = WEFT_INIT(struct weft_context_params, .name = "test");
	struct weft_config *config;
	struct weft_context *ctx;
	char name[64];
	va_list ap;
	size_t n;

	assert_int_equal(weft_config_read(&config), 0);
	va_start(ap, setting);
	for (; setting != NULL; setting = va_arg(ap, const char *)) {
		n = strcspn(setting, "=");
		assert_true(n < sizeof(name) && setting[n] == '=');
		memcpy(name, setting, n);
		name[n] = '\0';
		assert_int_equal(weft_config_modify(config, name, setting + n + 1), 0);
	}
	va_end(ap);
	p.config = config;
	p.features = mock_features;
	assert_int_equal(weft_context_create_in(&p, &mock_platform, mock_drivers, &ctx), 0);
	weft_config_release(config);
	return ctx;
}

struct weft_worker *mock_worker(struct weft_context *ctx, const char *lanes)
{
	struct weft_worker_params p = WEFT_INIT(struct weft_worker_params, .lanes = lanes);
	struct weft_worker *w;

	assert_int_equal(weft_worker_create(ctx, &p, &w), 0);
	return w;
}

struct weft_ep *mock_connect(struct weft_worker *from, struct weft_worker *to)
{
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params, .err_cb = mock_err_cb);
	struct weft_ep *ep;
	void *address;

	assert_int_equal(weft_worker_get_address(to, &address, &p.address_length), 0);
	p.address = address;
	assert_int_equal(weft_ep_create(from, &p, &ep), 0);
	weft_worker_release_address(to, address);
	return ep;
}

void mock_run(unsigned int rounds, uint64_t step_ns, struct weft_worker *worker, ...)
{
	struct weft_worker *w;
	va_list ap;

	while (rounds-- > 0) {
		va_start(ap, worker);
		for (w = worker; w != NULL; w = va_arg(ap, struct weft_worker *))
			weft_worker_progress(w);
		va_end(ap);
		mock_now += step_ns;
	}
}

void mock_err_cb(struct weft_ep *ep, int status, const char *why, void *arg)
{
	struct mock_err *err = arg;

	(void)ep;
	if (err == NULL)
		return;
	err->calls++;
	err->status = status;
	snprintf(err->why, sizeof(err->why), "%s", why);
}
