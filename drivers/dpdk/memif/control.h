/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file memif/control.h
 * A memif connection: the messages on its control socket, and the memory with its rings.
 *
 * The server sends HELLO. The client makes the memory and sends INIT, ADD_REGION, an ADD_RING for
 * each direction, and CONNECT: each but the first after the server's ACK of the previous one.
 * CONNECTED is the last answer. To weft-switch a third ADD_RING names a table of farewells. A
 * message that does not fit the state ends the connection.
 *
 * Only the owner's thread makes these calls. None waits, but weft_mwake_signal() without
 * asynchronous I/O. Everything from the peer is checked here.
 */
#ifndef WEFT_MEMIF_CONTROL_H
#define WEFT_MEMIF_CONTROL_H

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------ rings */

/*
 * The client makes the memory and moves `head`, the server moves `tail`. On C2S the client sends:
 * the entries from tail to head are frames. On S2C the server sends: the entries from tail to head
 * are empty buffers, which the server fills.
 *
 * Another process writes to the memory at any time, so each value in it is read once, checked, and
 * used as it was read. The client never reads where its buffers are: it has laid them out itself.
 */

#define WEFT_MRING_LOG2_MAX 14u
#define WEFT_MRING_COOKIE 0x3E31F20u
#define WEFT_MRING_MASK_INT 1u /**< flag of a ring: its receiver polls */
#define WEFT_MRING_NEXT 1u     /**< flag of a descriptor: the frame goes on in the next one */
#define WEFT_MRING_REGIONS 16u

struct weft_mring_desc {
	_Atomic uint16_t flags, region;
	_Atomic uint32_t length, offset;
	uint32_t metadata;
};

struct weft_mring_shm {
	_Atomic uint32_t cookie;
	_Atomic uint16_t flags, head;
	uint8_t pad0[56];
	_Atomic uint16_t tail;
	uint8_t pad1[62];
	struct weft_mring_desc desc[];
};

static_assert(sizeof(struct weft_mring_desc) == 16 && offsetof(struct weft_mring_shm, head) == 6 &&
		      offsetof(struct weft_mring_shm, tail) == 64 &&
		      offsetof(struct weft_mring_shm, desc) == 128,
	      "memif's layout");

struct weft_mregion {
	uint8_t *at;
	size_t len;
};

struct weft_mring {
	struct weft_mring_shm *shm; /**< NULL = there is none */
	const _Atomic uint16_t *peer;
	_Atomic uint16_t *own;
	/** added to the peer's index and to this end's: `size` or 0, see weft_mring_make() */
	uint16_t add_peer, add_own;
	uint16_t size, mask;
	uint16_t next;
	uint16_t ready; /**< number of entries from `next` on that belong to this end */
	/** client: its buffers, in the order of the entries; NULL: this end is the server */
	uint8_t *bufs;
	uint32_t bsize;
	const struct weft_mregion *regions;
	unsigned int num_regions;
	int event; /**< eventfd that wakes the receiver; -1 = none */
};

struct weft_mring_buf {
	uint8_t *at; /**< NULL = the descriptor is invalid */
	uint32_t len;
	bool more;
};

static inline size_t weft_mring_bytes(unsigned int log2)
{
	return sizeof(struct weft_mring_shm) + ((size_t)1 << log2) * sizeof(struct weft_mring_desc);
}

/**
 * Client: write an empty ring at @p offset of region 0, whose buffers begin at @p bufs.
 * @param sends  this end sends: C2S. Else the peer gets the buffers by weft_mring_open()
 */
void weft_mring_make(struct weft_mring *r, const struct weft_mregion *region, size_t offset,
		     size_t bufs, uint32_t bsize, unsigned int log2, bool sends);

/** Client: begin with the ring. The server is ready, and may have reset both indices before. */
void weft_mring_open(struct weft_mring *r);

/**
 * Server: use a ring of the client.
 * @return 0; -EINVAL: the ring is malformed or exceeds its region, and @p r is unchanged
 */
int weft_mring_attach(struct weft_mring *r, const struct weft_mregion *regions,
		      unsigned int num_regions, unsigned int region, uint64_t offset,
		      unsigned int log2);

/** Allow weft_mring_arm() of other processes to order the accesses of this one. */
void weft_mring_take_part(void);

/**
 * Receiver: let the peer signal the eventfd.
 * @return 0; -EBUSY: there are frames, or the peer's index is invalid; the ring is disarmed then
 */
int weft_mring_arm(struct weft_mring *r);

static inline void weft_mring_disarm(struct weft_mring *r)
{
	/* relaxed: a signal too many is harmless */
	atomic_fetch_or_explicit(&r->shm->flags, WEFT_MRING_MASK_INT, memory_order_relaxed);
}

/**
 * Read the peer's index.
 * @return number of entries that belong to this end; -EPROTO: the index is invalid
 */
static inline int weft_mring_poll(struct weft_mring *r)
{
	/* acquire: pairs with the peer's release, after which its entries are valid */
	uint16_t at = atomic_load_explicit(r->peer, memory_order_acquire);
	uint16_t n = (uint16_t)(at + r->add_peer - r->next);

	if (n > r->size)
		return -EPROTO;
	r->ready = n;
	return n;
}

/* relaxed in the functions below: weft_mring_poll() and weft_mring_done() order the accesses */

static inline struct weft_mring_desc *weft_mring_desc(const struct weft_mring *r, unsigned int i)
{
	return &r->shm->desc[(r->next + i) & r->mask];
}

/** Server: the bytes that the client's descriptor names; at == NULL: they exceed its region. */
static inline struct weft_mring_buf weft_mring_foreign(const struct weft_mring *r, unsigned int i)
{
	const struct weft_mring_desc *d = weft_mring_desc(r, i);
	uint32_t length = atomic_load_explicit(&d->length, memory_order_relaxed);
	uint32_t offset = atomic_load_explicit(&d->offset, memory_order_relaxed);
	uint16_t region = atomic_load_explicit(&d->region, memory_order_relaxed);
	uint16_t flags = atomic_load_explicit(&d->flags, memory_order_relaxed);

	if (region >= r->num_regions || offset > r->regions[region].len ||
	    length > r->regions[region].len - offset)
		return (struct weft_mring_buf){0};
	return (struct weft_mring_buf){r->regions[region].at + offset, length,
				       flags & WEFT_MRING_NEXT};
}

static inline uint8_t *weft_mring_own(const struct weft_mring *r, unsigned int i)
{
	return r->bufs + (size_t)((r->next + i) & r->mask) * r->bsize;
}

static inline struct weft_mring_buf weft_mring_frame(const struct weft_mring *r, unsigned int i)
{
	const struct weft_mring_desc *d = weft_mring_desc(r, i);
	uint32_t length;

	if (!r->bufs)
		return weft_mring_foreign(r, i);
	length = atomic_load_explicit(&d->length, memory_order_relaxed);
	if (length > r->bsize)
		return (struct weft_mring_buf){0};
	return (struct weft_mring_buf){weft_mring_own(r, i), length,
				       atomic_load_explicit(&d->flags, memory_order_relaxed) &
					       WEFT_MRING_NEXT};
}

static inline struct weft_mring_buf weft_mring_room(const struct weft_mring *r, unsigned int i)
{
	if (!r->bufs)
		return weft_mring_foreign(r, i);
	return (struct weft_mring_buf){weft_mring_own(r, i), r->bsize, false};
}

static inline void weft_mring_fill(const struct weft_mring *r, unsigned int i, uint32_t len)
{
	struct weft_mring_desc *d = weft_mring_desc(r, i);

	atomic_store_explicit(&d->length, len, memory_order_relaxed);
	atomic_store_explicit(&d->flags, 0, memory_order_relaxed);
}

/** Hand the first @p n ready entries over to the peer. */
static inline void weft_mring_done(struct weft_mring *r, unsigned int n)
{
	r->next = (uint16_t)(r->next + n);
	r->ready = (uint16_t)(r->ready - n);
	/* release: the peer sees the entries before the index that hands them over */
	atomic_store_explicit(r->own, (uint16_t)(r->next + r->add_own), memory_order_release);
}

/** Receiver: weft_mring_done() for frames that were read. */
static inline void weft_mring_return(struct weft_mring *r, unsigned int n)
{
	/* The server takes a descriptor's length for that of the buffer. */
	for (unsigned int i = 0; r->bufs && i < n; i++)
		weft_mring_fill(r, i, r->bsize);
	weft_mring_done(r, n);
}

/** Sender, after weft_mring_done(): must it signal the receiver? weft_mring_arm() has the fence. */
static inline bool weft_mring_sleeps(const struct weft_mring *r)
{
	return !(atomic_load_explicit(&r->shm->flags, memory_order_relaxed) & WEFT_MRING_MASK_INT);
}

/* ------------------------------------------------------------------ control messages */

/* Messages on a control socket of memif 2.0, with the size that DPDK's net_memif sends. */

#define WEFT_MEMIF_VERSION 0x0200u
#define WEFT_MEMIF_SECRET 24u
/** Flag of ADD_RING: the client sends over this ring. */
#define WEFT_MEMIF_RING_C2S 1u
/** Index of ADD_RING for weft-switch: not a ring, but a table of farewells; without an eventfd. */
#define WEFT_MEMIF_FAREWELLS 1u
#define WEFT_MEMIF_LOG2_FAREWELLS 10u

/** A frame of one connection, which weft-switch forwards when the client's process has ended. */
struct weft_memif_farewell {
	_Atomic uint32_t len; /**< bytes of the frame; 0 = none, or it is being written */
	uint8_t frame[124];
};

enum weft_memif_type {
	WEFT_MEMIF_ACK = 1,
	WEFT_MEMIF_HELLO,
	WEFT_MEMIF_INIT,
	WEFT_MEMIF_ADD_REGION,
	WEFT_MEMIF_ADD_RING,
	WEFT_MEMIF_CONNECT,
	WEFT_MEMIF_CONNECTED,
	WEFT_MEMIF_DISCONNECT,
};

struct __attribute__((packed)) weft_memif_hello {
	char name[32];
	uint16_t min_version, max_version, max_region, max_s2c, max_c2s;
	uint8_t max_log2_ring;
};

struct __attribute__((packed)) weft_memif_init {
	uint16_t version;
	uint32_t id;
	uint8_t mode; /**< 0 = Ethernet frames */
	char secret[WEFT_MEMIF_SECRET], name[32];
};

struct __attribute__((packed)) weft_memif_add_region {
	uint16_t index;
	uint64_t size;
};

struct __attribute__((packed)) weft_memif_add_ring {
	uint16_t flags, index, region;
	uint32_t offset;
	uint8_t log2_size;
	uint16_t private_size;
};

struct __attribute__((packed)) weft_memif_disconnect {
	uint32_t code;
	char text[96];
};

struct __attribute__((packed)) weft_memif_message {
	uint16_t type; /**< enum weft_memif_type */
	union {
		struct weft_memif_hello hello;
		struct weft_memif_init init;
		struct weft_memif_add_region region;
		struct weft_memif_add_ring ring;
		struct weft_memif_disconnect disconnect;
		char connected[32];
		uint8_t all[126];
	};
};

static_assert(sizeof(struct weft_memif_message) == 128, "memif's messages");

/** Compare secrets in constant time. */
bool weft_memif_same_secret(const char a[WEFT_MEMIF_SECRET], const char b[WEFT_MEMIF_SECRET]);

/** @return @p fd is an eventfd. A write to another file of the peer could block, or change it. */
bool weft_memif_is_eventfd(int fd);

/* ------------------------------------------------------------------ connection */

/** Most bytes of a client's regions. Missing pages are charged to the process that touches them. */
#define WEFT_MCONN_REGIONS_MAX (1ull << 30)

struct weft_mconn_conf {
	bool server;
	uint32_t id;
	uint32_t bsize;    /**< client: bytes of each buffer */
	uint8_t log2_ring; /**< log2 of a ring's entries, at most: a peer may have smaller rings */
	char secret[24];   /**< the same at both ends; may have no zero byte */
	/** client of weft-switch: the table whose copy each connection has; NULL = it has none */
	const struct weft_memif_farewell *farewells;
};

enum weft_mconn_state {
	WEFT_MCONN_NONE,
	WEFT_MCONN_HELLO,
	WEFT_MCONN_STEPS, /**< client: it sends its messages, up to CONNECT */
	WEFT_MCONN_INIT,
	WEFT_MCONN_RINGS,
	WEFT_MCONN_UP,
};

struct weft_mconn {
	const struct weft_mconn_conf *conf;
	int epoll; /**< the owner's set; the end of the connection removes fd and rx.event */
	enum weft_mconn_state state;
	int fd;
	unsigned int step; /**< client: the message that was sent last, STEP_ in control.c */
	int file;          /**< client: memfd of the region until it is sent; -1 = none */
	unsigned int num_regions;
	struct weft_mregion region[WEFT_MRING_REGIONS];
	struct weft_mring rx, tx;
	struct weft_memif_farewell *farewells; /**< client: the table in region 0; NULL = none */
	char why[160];
};

void weft_mconn_init(struct weft_mconn *c, const struct weft_mconn_conf *conf, int epoll);

/**
 * Begin on a connected control socket, which @p c owns from now on.
 * @return 0, or a negative error: the connection has ended, and the reason is in c->why
 */
int weft_mconn_start(struct weft_mconn *c, int fd);

/** Handle the messages that have arrived. @return as weft_mconn_start() */
int weft_mconn_input(struct weft_mconn *c);

/** End a connection, if there is one. @p why, if not NULL, is sent to the peer, and kept. */
void weft_mconn_end(struct weft_mconn *c, const char *why);

/** Client: replace an entry of a table of farewells. @p len 0: the entry becomes free */
void weft_memif_farewell_write(struct weft_memif_farewell *f, const uint8_t *frame, uint32_t len);

/* ------------------------------------------------------------------ signals of an eventfd */

/*
 * The eventfd that is signalled is open in another process, too. That process can remove O_NONBLOCK
 * and fill the counter: a write() then blocks for good, also right after a poll(). The kernel's
 * asynchronous I/O never blocks for an eventfd's counter. So the signal is the end of a write of no
 * bytes to /dev/null.
 */

struct weft_mwake {
	unsigned long aio; /**< 0 = the kernel or a sandbox forbids it: then poll() and write() */
	int null;
};

void weft_mwake_open(struct weft_mwake *w);
void weft_mwake_close(struct weft_mwake *w);

/** @return false: the eventfd was not signalled; errno is set */
bool weft_mwake_signal(struct weft_mwake *w, int event);

#endif /* WEFT_MEMIF_CONTROL_H */
