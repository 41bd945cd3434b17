/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file weft_rma.h
 * Memory: registration, and puts, gets and atomics on the memory of peers. Comes with weft.h, whose
 * conventions hold here.
 */
#ifndef WEFT_PUBLIC_RMA_H
#define WEFT_PUBLIC_RMA_H

#include <stddef.h>
#include <stdint.h>

#include "weft.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ memory */

/* What peers that hold the remote key may do with it. */
#define WEFT_MEM_REMOTE_READ 1u   /**< weft_get() */
#define WEFT_MEM_REMOTE_WRITE 2u  /**< weft_put() */
#define WEFT_MEM_REMOTE_ATOMIC 4u /**< weft_atomic() */

struct weft_mem_params {
	size_t size;
	unsigned int flags; /**< WEFT_MEM_REMOTE_*; 0 = no access by peers */
};

/**
 * Register memory: for zero-copy sends with every lane driver that needs it, and for access by
 * peers. The memory must stay mapped until weft_mem_deregister().
 * @return 0, -EINVAL (empty range, unknown flags), -EOPNOTSUPP (rights that the context's features
 *   do not use), -ENOMEM, or the driver's error (the log says which driver and why)
 */
WEFT_API int weft_mem_register(struct weft_context *ctx, void *address, size_t length,
			       const struct weft_mem_params *params, struct weft_mem **mem);

/**
 * Remote keys of the memory stop working at once, for what is half done as well: peers get
 * -EKEYREJECTED and the memory is not touched any more, except that bytes which a lane is sending
 * straight from it may still be read. What NICs do by themselves (RoCE) they refuse from when this
 * has returned 0 on: with -EBUSY their keys work still.
 * @return 0, or -EBUSY while operations use it, answers to peers' gets included: other remote
 *   keys are dead all the same; make progress and call again. NULL is allowed.
 */
WEFT_API int weft_mem_deregister(struct weft_mem *mem);

/* ------------------------------------------------------------------ remote memory */

/**
 * Pack what a peer needs to reach the memory: a 64-bit random key, length, rights, and the keys of
 * lanes that access memory themselves, of the workers that exist now. At most 2 KiB; no pointers
 * inside. Whoever has the blob and an endpoint can use it, so carry it over trusted channels only.
 * @param[out] blob  release with weft_rkey_release_blob()
 * @return 0; -EACCES when the memory was registered without rights for peers; -EINVAL; -ENOMEM
 */
WEFT_API int weft_rkey_pack(struct weft_mem *mem, void **blob, size_t *length);
WEFT_API void weft_rkey_release_blob(void *blob);

/**
 * Make a remote key usable on one endpoint, which must be one to a worker of the context that
 * packed it.
 * @return 0; -EINVAL damaged or cut off; -EPROTONOSUPPORT made by an incompatible version;
 *   -EOPNOTSUPP; -ENOMEM
 */
WEFT_API int weft_rkey_unpack(struct weft_ep *ep, const void *blob, size_t length,
			      struct weft_rkey **rkey);

/**
 * The 64-bit number of the registration, for places that have no room for a packed key; 0 without
 * rights for peers. Who has it and an endpoint can use the memory.
 */
WEFT_API uint64_t weft_mem_key(const struct weft_mem *mem);

/**
 * Make a remote key of weft_mem_key() alone. Bounds, rights and alignment are checked by the owner
 * of the memory: what weft_put() finds in its call comes from the peer then, as -EKEYREJECTED does.
 * The keys of lanes that access memory themselves are requested once, with the first operation over
 * an endpoint that has such lanes; until the answer, operations go by messages.
 * @return 0; -EINVAL; -EOPNOTSUPP; -ENOMEM
 */
WEFT_API int weft_rkey_from_key(struct weft_ep *ep, uint64_t key, struct weft_rkey **rkey);

/**
 * Operations under way go on. On the worker's thread, and before the worker is destroyed. NULL is
 * allowed.
 */
WEFT_API void weft_rkey_destroy(struct weft_rkey *rkey);

/**
 * Write to a peer's memory. `remote_offset` counts bytes from the start of the registered memory:
 * there are no remote addresses.
 *
 * Done means that the local buffer may be reused. The bytes are in the peer's memory when a later
 * weft_ep_flush() or weft_worker_flush() is done, or the put itself with #WEFT_OP_DELIVERED. They
 * appear there in any order, and relative to other operations in any order, unless a fence stands
 * between. On lanes without native remote memory the peer's progress writes them.
 *
 * Errors: -EOPNOTSUPP (features), -EACCES (rights), -ERANGE (past the end of the memory), -EINVAL
 * (a key of another worker; the datatype) are found in the call. -EKEYREJECTED comes from the peer:
 * the memory was deregistered, or the key is not one of its. It ends the request if that is still
 * under way (with #WEFT_OP_DELIVERED it always is), else the next flush. (A peer that refuses very
 * many at a time stops reporting which: puts and atomics of the same endpoint that are under way
 * then end with it, too.) Nothing is written outside the memory, and none of what is refused.
 *
 * With #WEFT_OP_IMM the peer's handler (weft_put_cb) is called once with `imm`, `channel` and
 * `source_channel` of @p params when all bytes are in its memory, and before a flush or
 * #WEFT_OP_DELIVERED report the put; never for a put that is refused, even in part. Such puts go by
 * messages on all lanes, may have no bytes at all, and are notified in any order unless a fence
 * is between.
 */
WEFT_API int weft_put(struct weft_ep *ep, const void *buffer, size_t count, struct weft_rkey *rkey,
		      uint64_t remote_offset, const struct weft_op_params *params,
		      struct weft_request **req);

/** A peer's put with #WEFT_OP_IMM, all of whose bytes are in memory. Valid during the call. */
struct weft_put_event {
	size_t size;
	uint64_t source_id; /**< worker it comes from */
	/** to reply on: as struct weft_am_msg's */
	struct weft_ep *ep;
	uint64_t imm;
	uint16_t channel, source_channel;
	uint64_t key;    /**< weft_mem_key() of the memory */
	uint64_t offset; /**< from the start of it */
	size_t length;
};

/** Is called inside weft_worker_progress(), and may do what other callbacks may. */
typedef void (*weft_put_cb)(struct weft_worker *worker, const struct weft_put_event *event,
			    void *arg);

/**
 * Set, replace or (NULL) remove the handler of puts with #WEFT_OP_IMM. Without one, and on an
 * endpoint that the application has closed, bytes are written and the notification is dropped and
 * counted ("rma.drop.notifications").
 * @return 0; -EINVAL; -EOPNOTSUPP (context without #WEFT_FEATURE_RMA)
 */
WEFT_API int weft_worker_set_put_handler(struct weft_worker *worker, weft_put_cb cb, void *arg);

/**
 * Read from a peer's memory; done means that the data is there. As weft_put(); a get that fails may
 * have written part of the buffer. @p count is the capacity in the sense of enum weft_dt_class, and
 * all of it is read.
 */
WEFT_API int weft_get(struct weft_ep *ep, void *buffer, size_t count, struct weft_rkey *rkey,
		      uint64_t remote_offset, const struct weft_op_params *params,
		      struct weft_request **req);

enum weft_atomic_op {
	WEFT_ATOMIC_ADD = 0,
	WEFT_ATOMIC_AND = 1,
	WEFT_ATOMIC_OR = 2,
	WEFT_ATOMIC_XOR = 3,
	WEFT_ATOMIC_SWAP = 4,
	WEFT_ATOMIC_CSWAP = 5, /**< store `operand` if the value equals `compare` */
	/* With a type only. */
	WEFT_ATOMIC_MIN = 6,
	WEFT_ATOMIC_MAX = 7,
	WEFT_ATOMIC_PROD = 8,
	WEFT_ATOMIC_LAND = 9, /**< logical: 1 or 0 */
	WEFT_ATOMIC_LOR = 10,
	WEFT_ATOMIC_LXOR = 11,
	WEFT_ATOMIC_READ = 12, /**< no operand */
	/** store `operand` if `compare` is not equal to the value; less than it; ... */
	WEFT_ATOMIC_CSWAP_NE = 13,
	WEFT_ATOMIC_CSWAP_LE = 14,
	WEFT_ATOMIC_CSWAP_LT = 15,
	WEFT_ATOMIC_CSWAP_GE = 16,
	WEFT_ATOMIC_CSWAP_GT = 17,
	WEFT_ATOMIC_MSWAP = 18, /**< store the bits of `operand` where `compare` has ones */
};

/** What the elements are; AND, OR, XOR and MSWAP are for integers. */
enum weft_atomic_type {
	WEFT_ATOMIC_WORD = 0, /**< one unsigned integer of `width` bytes */
	WEFT_ATOMIC_INT8 = 1,
	WEFT_ATOMIC_UINT8 = 2,
	WEFT_ATOMIC_INT16 = 3,
	WEFT_ATOMIC_UINT16 = 4,
	WEFT_ATOMIC_INT32 = 5,
	WEFT_ATOMIC_UINT32 = 6,
	WEFT_ATOMIC_INT64 = 7,
	WEFT_ATOMIC_UINT64 = 8,
	WEFT_ATOMIC_FLOAT = 9,
	WEFT_ATOMIC_DOUBLE = 10,
};

struct weft_atomic {
	size_t size;
	enum weft_atomic_op op;
	unsigned int width; /**< 4 or 8 bytes; with 4 the lower 4 bytes of the operands count */
	uint64_t operand;
	uint64_t compare; /**< CSWAP */
	/** `width` bytes that get the old value, in host order; NULL = not wanted */
	void *result;
	/**
	 * Another type than #WEFT_ATOMIC_WORD: not the fields from `width` to `compare` count, but
	 * those below. `result` has room for all elements.
	 */
	enum weft_atomic_type type;
	size_t count;         /**< elements, one after the other; > 0 */
	const void *operands; /**< so many; must live until the operation ends */
	const void *compares; /**< CSWAP and its kin, MSWAP; as operands */
};

/**
 * Change 4 or 8 bytes of a peer's memory atomically, exactly once. The value is in the peer's byte
 * order, naturally aligned.
 *
 * Atomic among all weft_atomic() on the same bytes, from any peer, and CPU atomics of the peer's
 * threads. With WEFT_ATOMIC_MODE=device (see weft-config(7)) only among those of the same mode,
 * with keys packed while the owner's worker had the same interfaces: all go to the first device
 * that the key has, and to a peer without a lane there -EOPNOTSUPP; then ADD and CSWAP of 8 bytes
 * exist only.
 *
 * With a type, an array of elements of 1 to 8 bytes is changed, each element atomically among all
 * weft_atomic() of its width and CPU atomics, exactly once; long arrays go in several messages, and
 * an error may come after some elements have been changed. The peer's CPU does it: not with
 * WEFT_ATOMIC_MODE=device (-EOPNOTSUPP). Elements of 8 bytes need #WEFT_FEATURE_AMO64, others
 * #WEFT_FEATURE_AMO32. Both ends have the same byte order. An operation that its type does not have
 * is -EINVAL. A cswap compares floating-point numbers by value but for #WEFT_ATOMIC_CSWAP, which
 * compares bits.
 *
 * With a result, done means that the result is there; without, as weft_put(): done means handed
 * over. Errors as weft_put(), -EINVAL also for a misaligned address. With WEFT_ATOMIC_MODE=device
 * -EIO also when the lane died on which it was under way: the outcome is not known (it was done
 * once or not at all; its device keeps no record that could be asked).
 */
WEFT_API int weft_atomic(struct weft_ep *ep, const struct weft_atomic *atomic,
			 struct weft_rkey *rkey, uint64_t remote_offset,
			 const struct weft_op_params *params, struct weft_request **req);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_PUBLIC_RMA_H */
