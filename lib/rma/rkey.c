/* SPDX-License-Identifier: BSD-3-Clause */
/* The application carries the blob, so it is validated like anything from the wire. */

#include <errno.h>
#include <stdlib.h>

#include "base/container.h"
#include "base/log.h"
#include "core/address.h"
#include "core/worker.h"
#include "mem/mem.h"
#include "msg/msg.h"
#include "rma/rma.h"

#define RIGHTS (WEFT_MEM_F_REMOTE_READ | WEFT_MEM_F_REMOTE_WRITE | WEFT_MEM_F_REMOTE_ATOMIC)
#define FEATURES (WEFT_FEATURE_RMA | WEFT_FEATURE_AMO32 | WEFT_FEATURE_AMO64)

static unsigned int list_workers(struct weft_context *ctx, weft_le64 *ids, unsigned int max)
{
	struct weft_worker *w;
	unsigned int n = 0;

	pthread_mutex_lock(&ctx->lock);
	LIST_FOREACH(w, &ctx->workers, entry) {
		if (n < max)
			ids[n++] = weft_put64(w->id);
	}
	pthread_mutex_unlock(&ctx->lock);
	return n;
}

int weft_rkey_pack(struct weft_mem *mem, void **blob, size_t *length)
{
	struct weft_mem_key keys[WEFT_RKEY_DOMAINS];
	struct weft_wire_rkey *head;
	struct weft_wire_rkey_domain *d;
	unsigned int num, workers = 0;
	size_t size;

	if (!mem || !blob || !length)
		return -EINVAL;
	if (mem->rights == 0)
		return -EACCES;
	num = mem->key_chosen ? 0 : weft_mem_keys(mem, keys, WEFT_RKEY_DOMAINS);
	size = sizeof(*head) + num * sizeof(*d) + WEFT_RKEY_WORKERS * sizeof(weft_le64);
	head = calloc(1, size);
	if (!head)
		return -ENOMEM;
	d = (struct weft_wire_rkey_domain *)(head + 1);
	for (unsigned int i = 0; i < num; i++) {
		d[i].key = weft_put64(keys[i].key);
		d[i].domain = keys[i].domain;
	}
	if (num)
		workers = list_workers(mem->ctx, (weft_le64 *)(d + num), WEFT_RKEY_WORKERS);
	size = sizeof(*head) + num * sizeof(*d) + workers * sizeof(weft_le64);
	head->magic = weft_put32(WEFT_RKEY_MAGIC);
	head->major = WEFT_WIRE_MAJOR;
	head->minor = WEFT_WIRE_MINOR;
	head->length = weft_put16((uint16_t)size);
	head->rights = weft_put32(mem->rights);
	head->key = weft_put64(mem->key);
	head->size = weft_put64(mem->length);
	head->low = (uintptr_t)mem->address & 7;
	head->num_domains = (uint8_t)num;
	head->num_workers = (uint8_t)workers;
	head->crc = weft_put32(weft_crc32c_of(head, size, offsetof(struct weft_wire_rkey, crc)));
	*blob = head;
	*length = size;
	return 0;
}

void weft_rkey_release_blob(void *blob)
{
	free(blob);
}

/* ------------------------------------------------------------------ the initiator */

static int check_blob(const void *blob, size_t length)
{
	const struct weft_wire_rkey *head = blob;
	size_t size;

	if (length < 16 || weft_get32(head->magic) != WEFT_RKEY_MAGIC)
		return -EINVAL;
	if (head->major != WEFT_WIRE_MAJOR)
		return -EPROTONOSUPPORT;
	if (length < sizeof(*head) || weft_get16(head->length) != length)
		return -EINVAL;
	if (weft_get32(head->crc) !=
	    weft_crc32c_of(blob, length, offsetof(struct weft_wire_rkey, crc)))
		return -EINVAL;
	size = sizeof(*head) + head->num_domains * sizeof(struct weft_wire_rkey_domain) +
	       head->num_workers * sizeof(weft_le64);
	if (head->num_domains > WEFT_RKEY_DOMAINS || head->num_workers > WEFT_RKEY_WORKERS ||
	    length < size)
		return -EINVAL; /* later minor versions may append fields */
	if (weft_get64(head->size) == 0 || weft_get64(head->size) > PTRDIFF_MAX || head->low > 7 ||
	    weft_get64(head->key) == 0)
		return -EINVAL;
	return 0;
}

/* Native keys are small numbers, valid only for workers of the context that made them. */
static void take_native(struct weft_rkey *rkey, const struct weft_wire_rkey *head)
{
	const struct weft_wire_rkey_domain *d = (const void *)(head + 1);
	const weft_le64 *ids = (const void *)(d + head->num_domains);
	bool found = false;

	for (unsigned int i = 0; i < head->num_workers; i++)
		found = found || weft_get64(ids[i]) == rkey->remote_id;
	if (!found)
		return;
	for (unsigned int i = 0; i < head->num_domains; i++) {
		rkey->native[i].key = weft_get64(d[i].key);
		rkey->native[i].domain = d[i].domain;
	}
	rkey->num_native = head->num_domains;
}

static bool may_use(const struct weft_ep *ep)
{
	if (ep->worker->ctx->features & FEATURES)
		return true;
	weft_error("a remote key cannot be used: the context was created without "
		   "WEFT_FEATURE_RMA, WEFT_FEATURE_AMO32 and WEFT_FEATURE_AMO64");
	return false;
}

uint64_t weft_mem_key(const struct weft_mem *mem)
{
	return mem && mem->rights ? mem->key : 0;
}

int weft_rkey_from_key(struct weft_ep *ep, uint64_t key, struct weft_rkey **out)
{
	struct weft_rkey *rkey;

	if (!ep || key == 0 || !out)
		return -EINVAL;
	if (!may_use(ep))
		return -EOPNOTSUPP;
	rkey = calloc(1, sizeof(*rkey));
	if (!rkey)
		return -ENOMEM;
	rkey->worker = ep->worker;
	rkey->remote_id = ep->remote_id;
	rkey->key = key;
	rkey->size = PTRDIFF_MAX;
	rkey->rights = RIGHTS;
	rkey->unknown = true;
	rkey->refs = 1;
	*out = rkey;
	return 0;
}

int weft_rkey_unpack(struct weft_ep *ep, const void *blob, size_t length, struct weft_rkey **out)
{
	const struct weft_wire_rkey *head = blob;
	struct weft_rkey *rkey;
	int rc;

	if (!ep || !blob || !out)
		return -EINVAL;
	if (!may_use(ep))
		return -EOPNOTSUPP;
	rc = check_blob(blob, length);
	if (rc < 0) {
		weft_error("a remote key of %zu bytes is %s", length,
			   rc == -EPROTONOSUPPORT
				   ? "of another version of Weft: both ends need the "
				     "same major version"
				   : "damaged or cut off, or it is no remote key: pass all "
				     "bytes of weft_rkey_pack()");
		return rc;
	}
	rkey = calloc(1, sizeof(*rkey));
	if (!rkey)
		return -ENOMEM;
	rkey->worker = ep->worker;
	rkey->remote_id = ep->remote_id;
	rkey->key = weft_get64(head->key);
	rkey->size = weft_get64(head->size);
	rkey->rights = weft_get32(head->rights) & RIGHTS;
	rkey->low = head->low;
	rkey->refs = 1;
	take_native(rkey, head);
	*out = rkey;
	return 0;
}

void weft_rkey_destroy(struct weft_rkey *rkey)
{
	struct weft_worker *w;

	if (!rkey)
		return;
	w = rkey->worker;
	weft_worker_lock(w);
	if (--rkey->refs == 0)
		weft_rkey_free(rkey);
	weft_worker_unlock(w);
}

/* ------------------------------------------------------------------ keys made from a number */

/*
 * Native lanes need keys of their own, and valid bounds. With such lanes the initiator requests
 * both, once, from the owner. Until the owner replies, operations go by messages, which the owner
 * checks.
 *
 *	initiator                   owner
 *	  | KEY_REQ key ------------> |
 *	  | <-------- KEY key size .. |  or nothing: no such memory, or the application's key
 *
 * An application's key may be used again for other memory, so a peer must not keep such values.
 */

static bool has_native(const struct weft_msg_ep *me)
{
	for (uint32_t m = me->lanes_up; m; m &= m - 1) {
		const struct weft_msg_lane *l = &me->lanes[__builtin_ctz(m)];

		if (l->max_get || l->max_put)
			return true;
	}
	return false;
}

static bool was_sent_over(const struct weft_rkey *rkey, const struct weft_ep *ep)
{
	return ep->slot == rkey->query_slot && ep->generation == rkey->query_generation;
}

/* Can a reply to the KEY_REQ still come? */
static bool is_queried(const struct weft_rkey *rkey)
{
	const struct weft_ep *ep;

	if (!rkey->query_sent)
		return false;
	ep = rkey->worker->ep_table[rkey->query_slot];
	return ep && ep->state != WEFT_EP_FAILED && was_sent_over(rkey, ep);
}

void weft_rkey_query(struct weft_msg_ep *me, struct weft_rkey *rkey)
{
	struct weft_wire_key_req q = {.key = weft_put64(rkey->key)};

	if (is_queried(rkey) || !has_native(me))
		return;
	if (!rkey->query_sent)
		LIST_INSERT_HEAD(&me->mw->rma->key_queries, rkey, query_link);
	rkey->query_sent = true;
	rkey->query_slot = me->ep->slot;
	rkey->query_generation = me->ep->generation;
	weft_tx_ctl(me, WEFT_WIRE_KEY_REQ, &q, sizeof(q));
}

void weft_rkey_free(struct weft_rkey *rkey)
{
	if (rkey->unknown && rkey->query_sent)
		LIST_REMOVE(rkey, query_link);
	free(rkey);
}

/* ------------------------------------------------------------------ the owner */

/*
 * Native keys for lanes to @p w. A context may have more domains than a message has room for, but a
 * worker has no more interfaces.
 */
static unsigned int keys_of_worker(const struct weft_worker *w, struct weft_mem *mem,
				   struct weft_wire_rkey_domain *d)
{
	struct weft_mem_key keys[WEFT_MAX_DOMAINS];
	unsigned int num = weft_mem_keys(mem, keys, WEFT_MAX_DOMAINS), n = 0, j;

	for (unsigned int i = 0; i < num && n < WEFT_RKEY_DOMAINS; i++) {
		for (j = 0; j < w->num_ifaces && w->ifaces[j]->domain != keys[i].domain; j++)
			;
		if (j == w->num_ifaces)
			continue;
		d[n].key = weft_put64(keys[i].key);
		d[n++].domain = keys[i].domain;
	}
	return n;
}

void weft_rma_recv_key_req(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_key_req *q = data;
	struct weft_mem_slot *slot;
	struct {
		struct weft_wire_key head;
		struct weft_wire_rkey_domain d[WEFT_RKEY_DOMAINS];
	} __attribute__((packed)) rep = {.head.key = q->key};
	unsigned int num;

	slot = weft_mem_key_enter(&me->mw->worker->ctx->keys, weft_get64(q->key));
	if (!slot) {
		me->mw->rma->bad_key++;
		return;
	}
	if (slot->mem->key_chosen) {
		weft_mem_key_leave(slot);
		return;
	}
	num = keys_of_worker(me->mw->worker, slot->mem, rep.d);
	rep.head.size = weft_put64(slot->mem->length);
	rep.head.rights = weft_put32(slot->mem->rights);
	rep.head.low = (uintptr_t)slot->mem->address & 7;
	rep.head.num_domains = (uint8_t)num;
	weft_mem_key_leave(slot);
	/* A peer that takes no replies gets no further ones. */
	if (me->num_ctl < WEFT_CTL_HELD)
		weft_tx_ctl(me, WEFT_WIRE_KEY, &rep, sizeof(rep.head) + num * sizeof(rep.d[0]));
}

/* ------------------------------------------------------------------ the initiator: request */

static void take_reply(struct weft_rkey *rkey, const struct weft_wire_key *rep)
{
	const struct weft_wire_rkey_domain *d = (const void *)(rep + 1);

	LIST_REMOVE(rkey, query_link);
	rkey->unknown = false;
	rkey->size = weft_get64(rep->size);
	rkey->rights = weft_get32(rep->rights) & (WEFT_MEM_F_REMOTE_READ | WEFT_MEM_F_REMOTE_WRITE |
						  WEFT_MEM_F_REMOTE_ATOMIC);
	rkey->low = rep->low;
	rkey->num_native = rep->num_domains;
	for (unsigned int i = 0; i < rep->num_domains; i++) {
		rkey->native[i].key = weft_get64(d[i].key);
		rkey->native[i].domain = d[i].domain;
	}
}

void weft_rma_recv_key(struct weft_msg_ep *me, const void *data, size_t payload)
{
	const struct weft_wire_key *rep = data;
	struct weft_rkey *rkey, *next;

	for (rkey = LIST_FIRST(&me->mw->rma->key_queries); rkey; rkey = next) {
		next = LIST_NEXT(rkey, query_link);
		/* Other peers may claim the owner's id, but have other endpoints. */
		if (rkey->key == weft_get64(rep->key) && was_sent_over(rkey, me->ep))
			take_reply(rkey, rep);
	}
}
