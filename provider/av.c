/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/av.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider/completion.h"
#include "provider/name.h"
#include "provider/op.h"
#include "provider/process.h"
#include "provider/provider.h"

/* ------------------------------------------------------------------ peers */

/* A test builds the provider with another version (test/provider/meson.build). */
#ifndef WFI_ADDR_VERSION
#define WFI_ADDR_VERSION 2
#endif
#define RKEYS 256u
/* Weft's channel for addresses of senders; endpoints have the channels 0 to 511. */
#define INTRODUCTIONS 512
/* The maximum number of addresses of senders; those of later senders are not kept. */
#define SENDERS_MAX 65536u

static const uint8_t magic[3] = {'W', 'e', 'f'};

static_assert(sizeof(struct wfi_addr) == FI_NAME_MAX, "applications reserve this size");

/* All peers by the ids of their workers; the ids are random. */
static struct weft_table peers;

/* Remote keys of one peer by the low bits of the key. A key replaces one with equal low bits. */
struct wfi_rkeys {
	struct {
		uint64_t key;
		struct weft_rkey *rkey;
	} place[RKEYS];
};

/* ------------------------------------------------------------------ addresses */

void wfi_addr_unmade(struct wfi_addr *addr)
{
	*addr = (struct wfi_addr){.version = WFI_ADDR_VERSION};
	memcpy(addr->magic, magic, sizeof(magic));
}

int wfi_addr_own(struct wfi_addr *addr)
{
	size_t length = sizeof(addr->boot);
	int rc;

	wfi_addr_unmade(addr);
	rc = weft_worker_get_boot_address(wfi.worker, addr->boot, &length);
	if (rc < 0)
		return -wfi_errno(rc);
	addr->length = (uint8_t)length;
	return 0;
}

static uint8_t boot_length(const struct wfi_addr *addr)
{
	return (uint8_t)(addr->length & ~WFI_ADDR_INTRODUCE);
}

int wfi_addr_check(const struct wfi_addr *addr, uint64_t *id)
{
	struct weft_address_attr attr = {.size = sizeof(attr)};
	int rc;

	if (memcmp(addr->magic, magic, sizeof(magic)) != 0)
		return -FI_EINVAL;
	if (addr->version != WFI_ADDR_VERSION)
		return -FI_EOPNOTSUPP;
	if (boot_length(addr) > WFI_BOOT_MAX)
		return -FI_EINVAL;
	rc = weft_address_query(addr->boot, boot_length(addr), &attr);
	if (rc < 0)
		return rc == -EPROTONOSUPPORT ? -FI_EOPNOTSUPP : -FI_EINVAL;
	*id = attr.worker_id;
	return 0;
}

/* ------------------------------------------------------------------ the table */

/* Find or add the peer with this worker id, and count a user. Locked. @return NULL: no memory */
static struct wfi_peer *get_peer(const struct wfi_addr *addr, uint64_t id)
{
	struct weft_table_node *node = weft_table_find(&peers, id);
	struct wfi_peer *peer;

	if (node) {
		peer = container_of(node, struct wfi_peer, by_id);
		peer->refs++;
		return peer;
	}
	peer = calloc(1, sizeof(*peer));
	if (!peer || weft_table_add(&peers, &peer->by_id, id) < 0) {
		free(peer);
		return NULL;
	}
	peer->id = id;
	peer->refs = 1;
	peer->length = boot_length(addr);
	memcpy(peer->boot, addr->boot, sizeof(peer->boot));
	return peer;
}

static void drop_rkeys(struct wfi_peer *peer)
{
	if (!peer->rkeys)
		return;
	for (unsigned int i = 0; i < RKEYS; i++)
		weft_rkey_destroy(peer->rkeys->place[i].rkey);
	free(peer->rkeys);
	peer->rkeys = NULL;
}

int wfi_peer_rkey(struct wfi_peer *peer, uint64_t key, struct weft_rkey **rkey)
{
	struct weft_rkey *new, **place;
	int rc;

	if (!peer->rkeys)
		peer->rkeys = calloc(1, sizeof(*peer->rkeys));
	if (!peer->rkeys)
		return -FI_EAGAIN;
	place = &peer->rkeys->place[key % RKEYS].rkey;
	if (*place && peer->rkeys->place[key % RKEYS].key == key) {
		*rkey = *place;
		return 0;
	}
	rc = weft_rkey_from_key(peer->ep, key, &new);
	if (rc < 0)
		return rc == -ENOMEM ? -FI_EAGAIN : -wfi_errno(rc);
	weft_rkey_destroy(*place);
	*place = new;
	peer->rkeys->place[key % RKEYS].key = key;
	*rkey = new;
	return 0;
}

/* Undo get_peer(). The last user closes the connection and frees the peer. Locked. */
static void put_peer(struct wfi_peer *peer)
{
	if (--peer->refs > 0)
		return;
	wfi_ops_end(peer, -ECONNRESET);
	drop_rkeys(peer);
	if (peer->ep)
		wfi_connection_close(peer->ep);
	weft_table_remove(&peers, &peer->by_id);
	if (peers.num == 0)
		weft_table_fini(&peers);
	free(peer);
}

/* ------------------------------------------------------------------ addresses of senders */

/*
 * A message has the id of its sender's worker, not the address that fi_av_insert() needs. So a
 * process that sends to an endpoint with FI_SOURCE_ERR sends its address first, once for each
 * connection. The address is a tagged message of the channel INTRODUCTIONS. Tagged messages of a
 * connection have one sequence on all channels, so the address arrives before other messages.
 */

struct sender {
	struct weft_table_node by_id;
	struct wfi_addr addr;
};

static struct weft_table senders; /* by the ids of their workers */

static struct weft_request *listening; /* the posted receive */
static struct wfi_addr arrived;        /* the buffer of the posted receive */
static bool listen_on;

static int introduce(const struct wfi_peer *peer)
{
	struct weft_op_params params = {
		.size = sizeof(params), .flags = WEFT_OP_F_INJECT, .channel = INTRODUCTIONS};
	struct wfi_addr own;
	int rc;

	rc = wfi_addr_own(&own);
	if (rc == 0)
		rc = weft_tag_send(peer->ep, &own, sizeof(own), 0, &params, NULL);
	return rc < 0 ? rc : 0;
}

static void keep_sender(const struct weft_completion *c)
{
	struct sender *s;
	uint64_t id;

	if (c->status != 0 || c->length != sizeof(arrived) || wfi_addr_check(&arrived, &id) < 0 ||
	    id != c->source_id) {
		FI_WARN(&wfi_provider, FI_LOG_AV,
			"a peer has sent a malformed address of its own, which is ignored\n");
		return;
	}
	if (weft_table_find(&senders, id) || senders.num == SENDERS_MAX)
		return;
	s = calloc(1, sizeof(*s));
	if (!s)
		return;
	s->addr = arrived;
	if (weft_table_add(&senders, &s->by_id, id) < 0)
		free(s);
}

static void address_arrived(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	listening = NULL;
	if (listen_on)
		keep_sender(c);
	weft_request_free(req);
	if (listen_on && wfi_senders_listen() < 0)
		FI_WARN(&wfi_provider, FI_LOG_AV,
			"no memory: from now on addresses of new senders are not known\n");
}

int wfi_senders_listen(void)
{
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params params = {.size = sizeof(params),
					.channel = INTRODUCTIONS,
					.cb = address_arrived,
					.completion = &c};
	int rc;

	listen_on = true;
	while (!listening) {
		rc = weft_tag_recv(wfi.worker, NULL, &arrived, sizeof(arrived), 0, UINT64_MAX,
				   &params, &listening);
		if (rc < 0)
			return -wfi_errno(rc);
		if (rc == WEFT_INPROGRESS)
			return 0;
		listening = NULL;
		keep_sender(&c);
	}
	return 0;
}

bool wfi_sender_addr(struct wfi_addr *addr, uint64_t id, uint16_t source_channel)
{
	struct weft_table_node *node = weft_table_find(&senders, id);
	const struct wfi_peer *peer;

	if (node) {
		*addr = container_of(node, struct sender, by_id)->addr;
	} else {
		/* An address vector may have another endpoint of the sender's process. */
		node = weft_table_find(&peers, id);
		if (!node)
			return false;
		peer = container_of(node, struct wfi_peer, by_id);
		wfi_addr_unmade(addr);
		addr->length = peer->length;
		memcpy(addr->boot, peer->boot, sizeof(addr->boot));
	}
	addr->number = wfi_source_number(source_channel);
	addr->receiver = (uint8_t)(source_channel >> 8);
	return true;
}

static void senders_forget(void)
{
	struct weft_table_node *node;
	uint32_t i = 0;

	listen_on = false;
	if (listening)
		weft_request_cancel(listening);
	listening = NULL;
	while ((node = weft_table_any(&senders, &i)) != NULL) {
		weft_table_remove(&senders, node);
		free(container_of(node, struct sender, by_id));
	}
	weft_table_fini(&senders);
}

/* ------------------------------------------------------------------ the end of the worker */

void wfi_peers_forget(void)
{
	struct weft_table_node *node;
	struct wfi_peer *peer;

	senders_forget();
	/* weft_table_any() finds a bucket; the inner loop visits its peers. */
	for (uint32_t i = 0; (node = weft_table_any(&peers, &i)) != NULL; i++) {
		for (; node; node = SLIST_NEXT(node, link)) {
			peer = container_of(node, struct wfi_peer, by_id);
			drop_rkeys(peer);
			peer->ep = NULL;
		}
	}
}

void wfi_peers_forked(void)
{
	memset(&peers, 0, sizeof(peers));
	memset(&senders, 0, sizeof(senders));
	listening = NULL;
	listen_on = false;
}

/* ------------------------------------------------------------------ connections */

/*
 * Weft's callback: a connection has ended. -ECONNRESET means that the peer has closed it: it may
 * have removed this process's address and still run, so the next operation connects again. After
 * another error the peer is dead, and operations return this error. Receives that wait for the peer
 * need a connection (message.c); they end if it cannot be made.
 */
static void failed(struct weft_ep *ep, int status, const char *why, void *arg)
{
	struct wfi_peer *peer = arg;
	bool current = peer->ep == ep;
	int rc;

	FI_INFO(&wfi_provider, FI_LOG_EP_CTRL, "the connection to a peer has ended: %s\n", why);
	if (current) {
		drop_rkeys(peer);
		peer->ep = NULL;
	}
	if (status != -ECONNRESET)
		peer->status = status;
	weft_ep_close(ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
	if (!current || !wfi_ops_await(peer))
		return;
	rc = wfi_peer_connect(peer);
	if (rc < 0)
		wfi_ops_end(peer, rc);
}

int wfi_peer_connect_now(struct wfi_peer *peer)
{
	struct weft_ep_params params =
		WEFT_INIT(struct weft_ep_params, .address = peer->boot,
			  .address_length = peer->length, .err_cb = failed, .err_arg = peer);
	int rc;

	if (peer->status != 0)
		return -wfi_errno(peer->status);
	rc = weft_ep_create(wfi.worker, &params, &peer->ep);
	if (rc == 0 && peer->introduce) {
		rc = introduce(peer);
		if (rc < 0) {
			weft_ep_close(peer->ep, WEFT_EP_CLOSE_F_FORCE, NULL, NULL);
			peer->ep = NULL;
		}
	}
	if (rc == -ENOMEM)
		return -FI_EAGAIN;
	return rc < 0 ? -wfi_errno(rc) : 0;
}

#define SIZE_MIN 16u
#define SIZE_MAX_ (1u << 30)
#define REMOVED UINT32_MAX

/* ------------------------------------------------------------------ address vectors: the hash */

static size_t slot_of(const struct wfi_av *av, uint64_t id, uint16_t number)
{
	/* Worker ids are random, but numbers of endpoints are small: the product spreads them. */
	return (size_t)((id ^ (uint64_t)number * 0x9e3779b97f4a7c15u) & (av->hash_size - 1));
}

fi_addr_t wfi_av_find(const struct wfi_av *av, uint64_t id, uint16_t number)
{
	const struct wfi_av_entry *e;
	size_t slot;

	if (av->hash_size == 0)
		return FI_ADDR_NOTAVAIL;
	for (slot = slot_of(av, id, number); av->hash[slot] != 0;
	     slot = (slot + 1) & (av->hash_size - 1)) {
		if (av->hash[slot] == REMOVED)
			continue;
		e = &av->entries[av->hash[slot] - 1];
		if (e->peer->id == id && e->number == number)
			return av->hash[slot] - 1;
	}
	return FI_ADDR_NOTAVAIL;
}

static void hash_add(struct wfi_av *av, size_t place)
{
	const struct wfi_av_entry *e = &av->entries[place];
	size_t slot = slot_of(av, e->peer->id, e->number);

	while (av->hash[slot] != 0 && av->hash[slot] != REMOVED)
		slot = (slot + 1) & (av->hash_size - 1);
	av->hash[slot] = (uint32_t)place + 1;
}

/* Build the hash of a vector with @p size entries; the hash is at most half full. */
static int hash_make(struct wfi_av *av, size_t size)
{
	uint32_t *hash = calloc(size * 2, sizeof(*hash));

	if (!hash)
		return -FI_ENOMEM;
	free(av->hash);
	av->hash = hash;
	av->hash_size = size * 2;
	for (size_t i = 0; i < av->count; i++)
		if (av->entries[i].peer)
			hash_add(av, i);
	return 0;
}

static void hash_remove(struct wfi_av *av, size_t place)
{
	const struct wfi_av_entry *e = &av->entries[place];
	size_t slot = slot_of(av, e->peer->id, e->number);

	while (av->hash[slot] != place + 1)
		slot = (slot + 1) & (av->hash_size - 1);
	av->hash[slot] = REMOVED;
}

/* ------------------------------------------------------------------ inserting */

static int grow(struct wfi_av *av, size_t want)
{
	struct wfi_av_entry *entries;
	size_t size = av->size > SIZE_MIN ? av->size : SIZE_MIN;
	int rc;

	if (want > SIZE_MAX_)
		return -FI_ENOMEM;
	while (size < want)
		size *= 2;
	if (size == av->size)
		return 0;
	entries = realloc(av->entries, size * sizeof(*entries));
	if (!entries)
		return -FI_ENOMEM;
	memset(entries + av->size, 0, (size - av->size) * sizeof(*entries));
	av->entries = entries;
	rc = hash_make(av, size);
	if (rc == 0)
		av->size = size;
	return rc;
}

/*
 * Send this process's address to the peer: now over an existing connection, and as the first
 * message over each later one.
 */
static void introduce_to(struct wfi_peer *peer)
{
	if (peer->introduce)
		return;
	peer->introduce = true;
	if (peer->ep && introduce(peer) < 0)
		FI_WARN(&wfi_provider, FI_LOG_AV,
			"no memory: a peer does not get the address of this process\n");
}

/* Locked; the lock is released while the address for a node and service is fetched (name.h). */
static int insert_one(struct wfi_av *av, const struct wfi_addr *addr, fi_addr_t *place)
{
	struct wfi_addr fetched;
	struct wfi_av_entry *e;
	uint64_t id;
	int rc;

	if (wfi_name_is(addr, sizeof(*addr))) {
		wfi_unlock();
		rc = wfi_name_fetch(addr, wfi.seal_key, &fetched);
		wfi_lock();
		if (rc < 0)
			return rc;
		addr = &fetched;
	}
	rc = wfi_addr_check(addr, &id);
	if (rc == -FI_EOPNOTSUPP)
		wfi_options_other_version();
	if (rc == 0)
		rc = grow(av, av->count + 1);
	if (rc < 0)
		return rc;
	e = &av->entries[av->count];
	e->peer = get_peer(addr, id);
	if (!e->peer)
		return -FI_ENOMEM;
	if (addr->length & WFI_ADDR_INTRODUCE)
		introduce_to(e->peer);
	e->number = addr->number;
	e->receiver = addr->receiver;
	e->addr = *addr;
	hash_add(av, av->count);
	*place = av->count++;
	return 0;
}

static void report(struct wfi_av *av, int error, uint64_t data, void *context)
{
	if (error == 0)
		wfi_eq_report(av->eq, FI_AV_COMPLETE, &av->av.fid, context, data);
	else
		wfi_eq_report_error(av->eq, &av->av.fid, context, data, error);
}

/*
 * Copy the next address of an array. Texts follow one another, each behind the zero byte of the one
 * before, as for libfabric's shm.
 * @param[in,out] in  NULL: the text before it has no zero byte
 */
static bool next_address(uint32_t format, const char **in, struct wfi_addr *addr)
{
	size_t length = sizeof(*addr);
	const char *at = *in;

	if (format == FI_ADDR_STR && at) {
		length = strnlen(at, WFI_TEXT_MAX) + 1;
		*in = length > WFI_TEXT_MAX ? NULL : at + length;
	} else if (at) {
		*in = at + length;
	}
	if (at && wfi_address_read(format, at, length, addr))
		return true;
	FI_WARN(&wfi_provider, FI_LOG_AV, "malformed address%s\n",
		format == FI_ADDR_STR ? ": with FI_ADDR_STR the argument is the texts of "
					"fi_getname(), one behind the other, and no pointers"
				      : "");
	return false;
}

static int insert(struct wfi_av *av, uint32_t format, const void *addr, size_t count,
		  fi_addr_t *places, uint64_t flags, void *context)
{
	int rc, done = 0, *errors = flags & FI_SYNC_ERR ? context : NULL;
	const char *in = addr;
	struct wfi_addr one;
	fi_addr_t place;

	if (flags & ~(FI_MORE | FI_SYNC_ERR) || (av->events && !av->eq))
		return flags & ~(FI_MORE | FI_SYNC_ERR) ? -FI_EBADFLAGS : -FI_ENOEQ;
	wfi_lock();
	for (size_t i = 0; i < count; i++) {
		place = FI_ADDR_NOTAVAIL;
		rc = next_address(format, &in, &one) ? insert_one(av, &one, &place) : -FI_EINVAL;
		if (places)
			places[i] = place;
		if (errors)
			errors[i] = -rc;
		if (rc < 0 && av->events)
			report(av, -rc, i, context);
		done += rc == 0;
	}
	if (av->events)
		report(av, 0, (uint64_t)done, context);
	wfi_unlock();
	return av->events ? 0 : done;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *places,
		     uint64_t flags, void *context)
{
	struct wfi_av *av = container_of(fid, struct wfi_av, av);

	return insert(av, av->domain->addr_format, addr, count, places, flags, context);
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *place,
			uint64_t flags, void *context)
{
	struct wfi_av *av = container_of(fid, struct wfi_av, av);
	struct wfi_addr addr;
	bool found;

	if (!node || !service == !wfi_text_is(node))
		return -FI_EINVAL;
	found = service ? wfi_name_make(node, service, false, false, &addr)
			: wfi_text_read(node, WFI_TEXT_MAX, true, &addr);
	if (!found)
		return -FI_EADDRNOTAVAIL;
	return insert(av, FI_FORMAT_UNSPEC, &addr, 1, place, flags, context);
}

static int no_insertsym(struct fid_av *av, const char *node, size_t nodecnt, const char *service,
			size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return -FI_ENOSYS;
}

/* ------------------------------------------------------------------ removing, looking up */

static void clear_place(struct wfi_av *av, size_t place)
{
	struct wfi_peer *peer = av->entries[place].peer;

	hash_remove(av, place);
	av->entries[place].peer = NULL;
	put_peer(peer);
}

/* Places of removed addresses are not reused: an old fi_addr_t must not refer to another peer. */
static int av_remove(struct fid_av *fid, fi_addr_t *places, size_t count, uint64_t flags)
{
	struct wfi_av *av = container_of(fid, struct wfi_av, av);
	int rc = 0;

	if (flags != 0)
		return -FI_EBADFLAGS;
	wfi_lock();
	for (size_t i = 0; i < count; i++) {
		if (wfi_av_entry(av, places[i]))
			clear_place(av, places[i]);
		else
			rc = -FI_EINVAL;
	}
	wfi_unlock();
	return rc;
}

static int av_lookup(struct fid_av *fid, fi_addr_t place, void *addr, size_t *length)
{
	struct wfi_av *av = container_of(fid, struct wfi_av, av);
	const struct wfi_av_entry *e;
	char out[WFI_TEXT_MAX];
	size_t n;

	wfi_lock();
	e = wfi_av_entry(av, place);
	if (e) {
		n = wfi_address_write(av->domain->addr_format, &e->addr, out);
		memcpy(addr, out, *length < n ? *length : n);
		*length = n;
	}
	wfi_unlock();
	return e ? 0 : -FI_EINVAL;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *length)
{
	uint32_t format = container_of(fid, struct wfi_av, av)->domain->addr_format;
	char text[WFI_TEXT_MAX] = "weft:damaged address";
	struct wfi_addr a;
	uint64_t id;
	int n;

	if (wfi_address_read(format, addr, format == FI_ADDR_STR ? WFI_TEXT_MAX : sizeof(a), &a)) {
		if (format == FI_ADDR_STR || wfi_name_is(&a, sizeof(a)))
			wfi_text_make(&a, text);
		else if (wfi_addr_check(&a, &id) == 0)
			snprintf(text, sizeof(text), "weft:%016llx/%u", (unsigned long long)id,
				 a.number);
	}
	n = snprintf(buf, *length, "%s", text);
	*length = (size_t)n + 1;
	return buf;
}

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct wfi_av *av = container_of(fid, struct wfi_av, av.fid);

	if (bfid->fclass != FI_CLASS_EQ || av->eq || flags != 0)
		return -FI_EINVAL;
	av->eq = container_of(bfid, struct wfi_eq, eq.fid);
	wfi_lock();
	av->eq->refs++;
	wfi_unlock();
	return 0;
}

static int av_close(struct fid *fid)
{
	struct wfi_av *av = container_of(fid, struct wfi_av, av.fid);

	if (wfi_domain_is_parents(av->domain))
		return 0;
	wfi_lock();
	if (av->refs > 0) {
		wfi_unlock();
		return -FI_EBUSY;
	}
	for (size_t i = 0; i < av->count; i++)
		if (av->entries[i].peer)
			clear_place(av, i);
	if (av->eq)
		av->eq->refs--;
	av->domain->refs--;
	wfi_unlock();
	free(av->entries);
	free(av->hash);
	free(av);
	return 0;
}

static struct fi_ops av_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = av_bind,
	.control = wfi_no_control,
	.ops_open = wfi_no_ops_open,
};

static struct fi_ops_av av_ops = {
	/* The size ends before av_set: sets of addresses are not supported. */
	.size = offsetof(struct fi_ops_av, av_set),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = no_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
};

int wfi_av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **out, void *context)
{
	struct wfi_domain *domain = container_of(fid, struct wfi_domain, domain);
	struct wfi_av *av;

	if (!attr || attr->flags & ~FI_EVENT || attr->rx_ctx_bits != 0 || attr->name)
		return attr ? -FI_ENOSYS : -FI_EINVAL;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av->domain = domain;
	av->events = attr->flags & FI_EVENT;
	if (attr->type == FI_AV_UNSPEC)
		attr->type = domain->av_type != FI_AV_UNSPEC ? domain->av_type : FI_AV_TABLE;
	av->av.fid.fclass = FI_CLASS_AV;
	av->av.fid.context = context;
	av->av.fid.ops = &av_fi_ops;
	av->av.ops = &av_ops;
	wfi_lock();
	domain->refs++;
	wfi_unlock();
	*out = &av->av;
	return 0;
}
