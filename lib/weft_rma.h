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

/* Operations on the memory that are allowed to peers that have its remote key. */
#define WEFT_MEM_F_REMOTE_READ 1u   /**< weft_get() */
#define WEFT_MEM_F_REMOTE_WRITE 2u  /**< weft_put() */
#define WEFT_MEM_F_REMOTE_ATOMIC 4u /**< weft_atomic() */
/**
 * The application chooses weft_mem_key(): some protocols need keys that peers can derive. Other
 * keys are random, and a peer without the key has no access. A connected peer can guess a chosen
 * key. Operations by a chosen key go by messages on every lane, so the key may be used again for
 * other memory after weft_mem_deregister().
 */
#define WEFT_MEM_F_KEY 8u

struct weft_mem_params {
	size_t size;
	unsigned int flags; /**< WEFT_MEM_F_*; 0 = no access by peers */
	/**
	 * The chosen key, with #WEFT_MEM_F_KEY: not 0, and not that of other memory of the context.
	 * Keys with different low bits are found fastest.
	 */
	uint64_t key;
};

/**
 * Register memory: for zero-copy sends with every lane driver that needs it, and for access by
 * peers. The memory must stay mapped until weft_mem_deregister().
 * @return 0, -EINVAL (empty range, unknown flags, a chosen key that is 0 or without rights),
 *   -EEXIST (a key that other memory has), -EOPNOTSUPP (rights for which the context lacks the
 *   feature), -ENOMEM (also for a chosen key: other keys have the same low bits; choose another
 *   key), or the driver's error (the log names the driver and the reason)
 */
WEFT_API int weft_mem_register(struct weft_context *ctx, void *address, size_t length,
			       const struct weft_mem_params *params, struct weft_mem **mem);

/**
 * Deregister memory. Remote keys of it stop working at once, also for operations that are half
 * done: peers get -EKEYREJECTED, and the memory is not accessed any more. One exception: a lane may
 * still read bytes that it is sending straight from the memory. Keys for native access by NICs
 * (RoCE) stop working when the call returns 0; after -EBUSY they still work.
 * @param mem  NULL is allowed
 * @return 0, or -EBUSY while operations use the memory, replies to peers' gets included: make
 *   progress and call again
 */
WEFT_API int weft_mem_deregister(struct weft_mem *mem);

/* ------------------------------------------------------------------ remote memory */

/**
 * Pack what a peer needs to access the memory: its 64-bit key (weft_mem_key()), length, rights, and
 * the keys for native access by lanes of the workers that exist now (of 64 at most: operations on
 * others go by messages). A blob has at most 2 KiB and contains no pointers. Any process that
 * has the blob and an endpoint can use the memory, so carry the blob over trusted channels only.
 * @param[out] blob  release with weft_rkey_release_blob()
 * @return 0; -EACCES when the memory was registered without rights for peers; -EINVAL; -ENOMEM
 */
WEFT_API int weft_rkey_pack(struct weft_mem *mem, void **blob, size_t *length);
/** Free a blob of weft_rkey_pack(). NULL is allowed. */
WEFT_API void weft_rkey_release_blob(void *blob);

/**
 * Make a remote key usable on one endpoint, which must be one to a worker of the context that
 * packed it.
 * @return 0; -EINVAL damaged or cut off; -EPROTONOSUPPORT made by an incompatible version;
 *   -EOPNOTSUPP: the context has no feature of remote memory; -ENOMEM
 */
WEFT_API int weft_rkey_unpack(struct weft_ep *ep, const void *blob, size_t length,
			      struct weft_rkey **rkey);

/**
 * The 64-bit key of the registration, for applications without room for a packed key; 0 without
 * rights for peers. Any process that has the key and an endpoint can use the memory.
 */
WEFT_API uint64_t weft_mem_key(const struct weft_mem *mem);

/**
 * Make a remote key from weft_mem_key() alone. The owner of the memory checks bounds, rights and
 * alignment. Errors that weft_put() would return from its call therefore come from the peer later,
 * as -EKEYREJECTED does. The keys for native access are requested with the first operation over an
 * endpoint whose lanes support it, and again over another one if that endpoint ends first. Until
 * the reply arrives, operations go by messages.
 * @return 0; -EINVAL: @p key is 0; -EOPNOTSUPP: the context has no feature of remote memory;
 *   -ENOMEM
 */
WEFT_API int weft_rkey_from_key(struct weft_ep *ep, uint64_t key, struct weft_rkey **rkey);

/**
 * Destroy a remote key. Operations under way go on. Call it on the worker's thread, before the
 * worker is destroyed. NULL is allowed.
 */
WEFT_API void weft_rkey_destroy(struct weft_rkey *rkey);

/**
 * Write to a peer's memory. `remote_offset` counts bytes from the start of the registered memory:
 * there are no remote addresses.
 *
 * Done means that the local buffer may be reused. The bytes are in the peer's memory when a later
 * weft_ep_flush() or weft_worker_flush() is done, or the put itself with #WEFT_OP_F_DELIVERED. They
 * appear there in any order, and in any order relative to other operations unless a fence separates
 * them. On lanes without native remote memory the peer's progress writes them.
 *
 * Errors: -EOPNOTSUPP (features), -EACCES (rights), -ERANGE (past the end of the memory), -EINVAL
 * (a key of another worker; the datatype) are returned by the call. -EKEYREJECTED comes from the
 * peer: the memory was deregistered, or the peer has no such key. The request ends with it if it is
 * still under way (with #WEFT_OP_F_DELIVERED it always is), else the next flush. If a peer refuses
 * more operations at a time than it can report one by one, other puts and atomics under way on the
 * same endpoint end with -EKEYREJECTED, too. Nothing is written outside the memory, and no refused
 * byte is written. Bytes of earlier messages of a put that ends so may have been written.
 *
 * With #WEFT_OP_F_IMM the peer's handler (weft_put_cb) is called once with `imm`, `channel` and
 * `source_channel` of @p params. The call comes when all bytes are in the peer's memory, and before
 * a flush or #WEFT_OP_F_DELIVERED reports the put. It is not called for a put of which any part is
 * refused. Such puts go by messages on all lanes and may have no bytes at all. The handler is
 * called for them in any order unless a fence separates them.
 */
WEFT_API int weft_put(struct weft_ep *ep, const void *buffer, size_t count, struct weft_rkey *rkey,
		      uint64_t remote_offset, const struct weft_op_params *params,
		      struct weft_request **req);

/** A peer's put with #WEFT_OP_F_IMM, after all its bytes are in memory. Valid during the call. */
struct weft_put_event {
	size_t size;
	uint64_t source_id; /**< id of the worker that sent it */
	/** to reply on; valid as weft_am_msg.ep is */
	struct weft_ep *ep;
	uint64_t imm;
	uint16_t channel, source_channel;
	uint64_t key;    /**< weft_mem_key() of the memory */
	uint64_t offset; /**< of the first byte, from the start of the memory */
	size_t length;
};

/** Is called inside weft_worker_progress(), and may do what other callbacks may. */
typedef void (*weft_put_cb)(struct weft_worker *worker, const struct weft_put_event *event,
			    void *arg);

/**
 * Set, replace or (NULL) remove the handler of puts with #WEFT_OP_F_IMM. Without one, and on an
 * endpoint that the application has closed, bytes are written and the notification is dropped and
 * counted ("rma.drop.notifications").
 * @return 0; -EINVAL; -EOPNOTSUPP (context without #WEFT_FEATURE_RMA)
 */
WEFT_API int weft_worker_set_put_handler(struct weft_worker *worker, weft_put_cb cb, void *arg);

/**
 * Read from a peer's memory; done means that the data is in the buffer. Otherwise as weft_put(). A
 * get that fails may have written part of the buffer. @p count is the capacity in the sense of enum
 * weft_dt_class, and all of it is read.
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
	/* The operations from here on need a `type`. */
	WEFT_ATOMIC_MIN = 6,
	WEFT_ATOMIC_MAX = 7,
	WEFT_ATOMIC_PROD = 8,
	WEFT_ATOMIC_LAND = 9, /**< logical: 1 or 0 */
	WEFT_ATOMIC_LOR = 10,
	WEFT_ATOMIC_LXOR = 11,
	WEFT_ATOMIC_READ = 12, /**< no operand */
	/* Conditional swaps: `compare` is on the left of the comparison. */
	WEFT_ATOMIC_CSWAP_NE = 13, /**< store `operand` if `compare` != the value */
	WEFT_ATOMIC_CSWAP_LE = 14, /**< store `operand` if `compare` <= the value */
	WEFT_ATOMIC_CSWAP_LT = 15, /**< store `operand` if `compare` < the value */
	WEFT_ATOMIC_CSWAP_GE = 16, /**< store `operand` if `compare` >= the value */
	WEFT_ATOMIC_CSWAP_GT = 17, /**< store `operand` if `compare` > the value */
	WEFT_ATOMIC_MSWAP = 18,    /**< store the bits of `operand` where `compare` has ones */
};

/** Type of the elements; AND, OR, XOR and MSWAP are for integers. */
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

struct weft_atomic_params {
	size_t size;
	enum weft_atomic_op op;
	unsigned int width; /**< 4 or 8 bytes; with 4 the lower 4 bytes of the operands count */
	uint64_t operand;
	uint64_t compare; /**< CSWAP only */
	/** `width` bytes that get the old value, in host order; NULL = not wanted */
	void *result;
	/**
	 * With another type than #WEFT_ATOMIC_WORD the fields from `width` to `compare` are
	 * ignored, and those below are used. `result` has room for all elements.
	 */
	enum weft_atomic_type type;
	size_t count;         /**< number of elements, which are contiguous; > 0 */
	const void *operands; /**< one for each element; must live until the operation ends */
	const void *compares; /**< CSWAP operations and MSWAP: like `operands` */
};

/**
 * Change 4 or 8 bytes of a peer's memory atomically, exactly once. The value is in the peer's byte
 * order, naturally aligned.
 *
 * The operation is atomic among all weft_atomic() on the same bytes, from any peer, and among CPU
 * atomics of the peer's threads. With WEFT_ATOMIC_MODE=device (see weft-config(7)) it is atomic
 * only among operations of the same mode whose keys were packed while the owner's worker had the
 * same interfaces. All these operations go to the first device of the key; without a lane to that
 * device they return -EOPNOTSUPP. Only ADD and CSWAP of 8 bytes exist in this mode.
 *
 * With a type, an array of elements of 1 to 8 bytes is changed, each element exactly once,
 * atomically among all weft_atomic() of its width and CPU atomics. A long array goes in several
 * messages, and an error may come after some elements have been changed. The peer's CPU executes
 * the operation, so WEFT_ATOMIC_MODE=device returns -EOPNOTSUPP. Elements of 8 bytes need
 * #WEFT_FEATURE_AMO64, others #WEFT_FEATURE_AMO32. Both ends have the same byte order. An operation
 * that its type does not support returns -EINVAL. #WEFT_ATOMIC_CSWAP compares the bits of
 * floating-point numbers; the other operations with a condition (CSWAP_NE, CSWAP_LE, ...) compare
 * their values.
 *
 * With a result, done means that the result is there. Without a result, done means that the
 * operation is handed over, as with weft_put(). Errors are those of weft_put(); a misaligned
 * address is -EINVAL, too. With WEFT_ATOMIC_MODE=device the operation also ends with -EIO when its
 * lane dies. Its outcome is then unknown: it was executed once or not at all, because the device
 * keeps no record of executed operations.
 */
WEFT_API int weft_atomic(struct weft_ep *ep, const struct weft_atomic_params *atomic,
			 struct weft_rkey *rkey, uint64_t remote_offset,
			 const struct weft_op_params *params, struct weft_request **req);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_PUBLIC_RMA_H */
