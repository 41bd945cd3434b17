/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file weft_msg.h
 * Messages: datatypes, operations and their requests, tagged messages, active messages. Comes with
 * weft.h, whose conventions hold here.
 */
#ifndef WEFT_PUBLIC_MSG_H
#define WEFT_PUBLIC_MSG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "weft.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ datatypes */

/** Class of a datatype. */
enum weft_dt_class {
	WEFT_DT_CONTIG = 0, /**< buffer = first byte, count = bytes */
	/**
	 * buffer = const struct iovec *, count = entries (empty ones are allowed); the array, too,
	 * must live until the operation ends
	 */
	WEFT_DT_IOV = 1,
	WEFT_DT_GENERIC = 2, /**< pack/unpack callbacks, buffer and count are passed to start_*() */
};

/**
 * Callbacks of a generic datatype. Each operation has a state of its own. pack() and unpack() may
 * be called with any offsets, in any order. pack() may be called again for the same bytes. So the
 * result of a call must not depend on earlier calls.
 *
 * They run in the middle of an operation and must not call into the library. Calls that would
 * start, end or progress an operation are refused, with a log line: they return -EBUSY and do
 * nothing (weft_worker_progress() returns 0, weft_worker_destroy() and weft_tag_msg_drop() just
 * return).
 *
 * When pack() fails, the send or put ends with its error. The message keeps its place in the peer's
 * sequence: the receive that matches it ends with the same error, whatever the size and the
 * protocol. No handler is called for an active message, except with #WEFT_AM_F_RNDV: there
 * weft_am_recv_data() ends with the error. A part of a put may have been written.
 */
struct weft_generic_ops {
	size_t size;
	/** @return state for packing, or NULL on failure: the send or put returns -ENOMEM */
	void *(*start_pack)(void *arg, const void *buffer, size_t count);
	/** @return state for unpacking, or NULL on failure: the receive or get returns -ENOMEM */
	void *(*start_unpack)(void *arg, void *buffer, size_t count);
	/** @return packed size in bytes of the whole operation (capacity, when unpacking) */
	size_t (*packed_size)(void *state);
	/**
	 * Pack up to @p max bytes from packed offset @p offset into @p dst. @return bytes packed (>
	 * 0), or a negative error (above -4096)
	 */
	ssize_t (*pack)(void *state, size_t offset, void *dst, size_t max);
	/**
	 * Unpack @p length bytes at packed offset @p offset. Each byte is passed once. @return 0,
	 * or a negative error with which the receive ends
	 */
	int (*unpack)(void *state, size_t offset, const void *src, size_t length);
	/** Called exactly once per state. */
	void (*finish)(void *state);
};

/**
 * A datatype: class and, for generic ones, its callbacks. Must stay valid while operations use it.
 */
struct weft_datatype {
	size_t size;
	enum weft_dt_class dt_class;
	const struct weft_generic_ops *ops;
	void *arg;
};

/* ------------------------------------------------------------------ operations and requests */

/** Result of a finished operation. */
struct weft_completion {
	/** set by the caller that passes the struct; in a callback by the library */
	size_t size;
	/**
	 * 0; -EMSGSIZE truncated; -ECANCELED; -ETIMEDOUT peer dead; -ECONNRESET peer closed; ...
	 */
	int status;
	/** tag receives: the sender's full tag; weft_am_recv_data(): the id of the message */
	uint64_t tag;
	/**
	 * receives: true length of the message, even if truncated; 0 if no message was matched.
	 * Sends: bytes sent; 0 after an error
	 */
	size_t length;
	/**
	 * receives: endpoint that the message came from; NULL if it has been closed since, or if
	 * the library owns it (see weft_worker_params.accept_cb)
	 */
	struct weft_ep *ep;
	uint64_t source_id; /**< receives: id of the worker it came from */
	/** receives: the sender's immediate data, with #WEFT_COMPLETION_F_IMM */
	uint64_t imm;
	uint32_t flags;          /**< WEFT_COMPLETION_F_* */
	uint16_t channel;        /**< receives: the message's channel */
	uint16_t source_channel; /**< receives: the sender's own, see struct weft_op_params */
};

#define WEFT_COMPLETION_F_IMM 1u /**< the message has immediate data */

/**
 * Completion callback. @p req is NULL when the call had req == NULL, or #WEFT_OP_F_LENT. Otherwise
 * the caller owns the request, and the callback may free it.
 */
typedef void (*weft_complete_cb)(struct weft_request *req, const struct weft_completion *c,
				 void *arg);

/*
 * Flags of operations, WEFT_OP_F_*. They begin at 0x100, so an enum weft_op passed as flags returns
 * -EINVAL.
 */

/** the call never returns 0: an operation that is done at once ends at the next progress */
#define WEFT_OP_F_FORCE_REQUEST 0x100u
/**
 * Puts, and atomics without result: done only when they are visible in the peer's memory. Tagged
 * and active messages: done only when the peer's protocol layer has the message, so that a receive
 * posted then matches it. A rendezvous is done when its data has arrived there.
 */
#define WEFT_OP_F_DELIVERED 0x200u
/**
 * Tagged and active messages: `imm` is sent with the message, whatever its length and protocol.
 * Puts: the peer's handler is called with it, see weft_put_cb
 */
#define WEFT_OP_F_IMM 0x400u
/** receives and probes with a source, or a source id: only messages from its `source_channel` */
#define WEFT_OP_F_SOURCE_CHANNEL 0x800u
/**
 * Receives and probes without a source: only messages of the worker with the id `source_id`
 * (weft_address_query()), over any of its endpoints. An endpoint to that worker is not needed.
 */
#define WEFT_OP_F_SOURCE_ID 0x1000u
/**
 * Tagged and active messages, puts: the buffer, and an iov's array, may be reused when the call
 * returns, whatever it returns. At most #WEFT_INJECT_MAX bytes, else -EMSGSIZE. The library makes
 * an additional copy only if no lane takes the bytes in the call, or if the datatype is generic.
 */
#define WEFT_OP_F_INJECT 0x2000u
/** messages, puts, gets, atomics: another operation follows soon, see #WEFT_WORKER_F_SEND_NOW */
#define WEFT_OP_F_MORE 0x4000u
/**
 * messages, puts, gets, atomics: a call of weft_worker_progress() or weft_worker_kick() follows
 * soon, so the operation may share a frame with others, see #WEFT_WORKER_F_SEND_NOW
 */
#define WEFT_OP_F_POLLED 0x8000u
/**
 * tagged receives: the library keeps the request, and the callback's `req` is NULL. Until the
 * callback begins the caller may cancel the request, and must not free it.
 */
#define WEFT_OP_F_LENT 0x10000u

#define WEFT_INJECT_MAX 16384 /**< bytes */

/**
 * Parameters of an operation; NULL = contiguous bytes, no callback. Read during the call only.
 * The call returns -EINVAL for flags that the operation does not support.
 */
struct weft_op_params {
	size_t size;
	uint32_t flags;      /**< WEFT_OP_F_* */
	weft_complete_cb cb; /**< called only if the call returns #WEFT_INPROGRESS */
	void *cb_arg;
	const struct weft_datatype *datatype; /**< NULL = contiguous bytes */
	struct weft_mem *mem; /**< registration that covers the buffer; NULL = none */
	/** receives: filled when the call returns 0; may be NULL */
	struct weft_completion *completion;
	WEFT_EXTENSION union {
		uint64_t imm; /**< #WEFT_OP_F_IMM: 64 bits for the peer's completion or handler */
		uint64_t source_id; /**< #WEFT_OP_F_SOURCE_ID: id of a worker */
	};
	/**
	 * Messages match receives of the same channel only, so several users of a worker do not
	 * receive each other's messages. All channels of an endpoint share one sequence, and a
	 * receive gets the earliest message of its channel. The handlers of active messages and of
	 * puts with #WEFT_OP_F_IMM serve all channels and get the channel as an argument.
	 */
	uint16_t channel;
	/** sends: number of the sender's own channel; receives: #WEFT_OP_F_SOURCE_CHANNEL */
	uint16_t source_channel;
};

/**
 * Status of a request: #WEFT_INPROGRESS, or the status with which it ended. @p c may be NULL. The
 * call makes no progress.
 */
WEFT_API int weft_request_test(struct weft_request *req, struct weft_completion *c);

/**
 * Release a request. If it is still under way it goes on, without its callback. NULL is allowed.
 */
WEFT_API void weft_request_free(struct weft_request *req);

/**
 * Cancel an operation that is not matched yet.
 *  - A posted receive that is not matched yet ends with -ECANCELED. Its callback runs inside this
 *    call. A send of which no byte has been sent ends likewise.
 *  - A tagged rendezvous send that waits for its receive is withdrawn. If no receive had matched
 *    it, it ends later with -ECANCELED, and no receive will match it. Otherwise it goes on as
 *    without the call. An active message that was announced cannot be withdrawn.
 * @return 0 if cancelled or withdrawn; -EBUSY if matched, under way, about to complete, or of a
 *   kind that cannot be cancelled; -EALREADY when it is complete (weft_request_test() has its
 *   status)
 */
WEFT_API int weft_request_cancel(struct weft_request *req);

/**
 * Wait until an operation has ended, and release its request. The call makes progress, and sleeps
 * while there is no event (weft_worker_wait()):
 *
 *	int rc = weft_tag_send(ep, buf, length, tag, NULL, &req);
 *	rc = weft_wait(worker, rc, &req, NULL);
 *
 * weft_worker_signal() does not end the call.
 * @param status  what the call that began the operation has returned
 * @param req     its request; NULL afterwards. Not used if @p status is 0 or an error
 * @param[out] c  as in weft_request_test(). Not filled if @p status is 0 or an error: a receive
 *                that ends in its call fills weft_op_params.completion, which may be this struct
 * @return the status of the operation. An error after which the request still exists is one of the
 *   wait: -EDEADLK inside a callback of the worker, -EBUSY inside a callback of a datatype
 */
WEFT_API int weft_wait(struct weft_worker *worker, int status, struct weft_request **req,
		       struct weft_completion *c);

/**
 * One line about a request in any state ("tag send, rndv/am, tag 0x7, 1048576 bytes, 524288 handed
 * to lanes, ..."). @return as snprintf()
 */
WEFT_API int weft_request_query(const struct weft_request *req, char *buf, size_t size);

/* ------------------------------------------------------------------ tagged messages */

/**
 * Send. Messages of one endpoint match in the order of their send calls, whatever their size. Done
 * means that the buffer may be reused, not that the peer has the message; see weft_tag_send_sync()
 * and weft_ep_flush().
 *
 * Messages without a receive wait at the peer. Beyond WEFT_UNEXP_LIMIT short messages and
 * announcements wait there in memory that WEFT_UNEXP_MEMORY bounds. When this memory is full, an
 * endpoint that uses more than an even share of it fails with -ENOMEM at the peer. With
 * WEFT_UNEXP_MEMORY=0 further messages wait here until the peer posts receives.
 * @param count  see enum weft_dt_class
 * @param req    NULL = no request is wanted (a callback may still be)
 */
WEFT_API int weft_tag_send(struct weft_ep *ep, const void *buffer, size_t count, uint64_t tag,
			   const struct weft_op_params *params, struct weft_request **req);

/** As weft_tag_send(), but done only when a receive at the peer has matched it. Never returns 0. */
WEFT_API int weft_tag_send_sync(struct weft_ep *ep, const void *buffer, size_t count, uint64_t tag,
				const struct weft_op_params *params, struct weft_request **req);

/**
 * Receive: matches a message with `((sender_tag ^ tag) & mask) == 0`. Of several it is the one that
 * arrived first; messages of one endpoint match in the order of their sends. A message matches the
 * earliest posted receive.
 *
 * A message longer than the buffer ends with -EMSGSIZE and its true length. The buffer is filled,
 * bytes past it stay untouched, and the send succeeds. If the receive also fails for another
 * reason, that reason is its status, and the contents of the buffer are undefined. 0 is returned
 * only for a message that has arrived completely and without an error. An error found in the call
 * makes a request that ends at the next progress.
 *
 * A message that has arrived stays matchable after its endpoint has failed or closed, until a
 * receive takes it. A receive that names a source also matches messages of earlier endpoints to the
 * same worker. If no message matches, it ends with an error when its endpoint ends. A receive by
 * #WEFT_OP_F_SOURCE_ID needs no endpoint and does not end with one: the application cancels it when
 * no more messages can arrive.
 * @param source  only messages of the worker that this endpoint is connected to; NULL = of any
 * @return also -EINVAL: #WEFT_OP_F_SOURCE_ID together with a source, or #WEFT_OP_F_SOURCE_CHANNEL
 *   without a source or source id; the error of a source that has failed, if no message matches
 */
WEFT_API int weft_tag_recv(struct weft_worker *worker, struct weft_ep *source, void *buffer,
			   size_t count, uint64_t tag, uint64_t mask,
			   const struct weft_op_params *params, struct weft_request **req);

/**
 * Test whether a message has arrived; the call makes no progress. The length is that of the whole
 * message, even while parts of it are still missing.
 * @param source  as in weft_tag_recv()
 * @param params  channel, #WEFT_OP_F_SOURCE_CHANNEL and #WEFT_OP_F_SOURCE_ID; NULL = channel 0
 * @param[out] message  NULL = the message stays; else it is taken out of matching and must be
 *                      received with weft_tag_msg_recv() or dropped with weft_tag_msg_drop()
 * @param[out] c        tag, length, source, immediate data, channels; may be NULL
 * @return 0; -ENOMSG when there is none; -EINVAL as in weft_tag_recv(), or for other flags
 */
WEFT_API int weft_tag_probe(struct weft_worker *worker, struct weft_ep *source, uint64_t tag,
			    uint64_t mask, const struct weft_op_params *params,
			    struct weft_message **message, struct weft_completion *c);

/**
 * Receive a message that a probe took out, as weft_tag_recv() does. After -EINVAL, -ENOMEM or
 * -EBUSY (in a callback of a datatype) the caller still owns the message.
 */
WEFT_API int weft_tag_msg_recv(struct weft_worker *worker, struct weft_message *message,
			       void *buffer, size_t count, const struct weft_op_params *params,
			       struct weft_request **req);

/** Drop a message that a probe took out; its send succeeds. */
WEFT_API void weft_tag_msg_drop(struct weft_worker *worker, struct weft_message *message);

/* ------------------------------------------------------------------ active messages */

/** Longest header, bytes. */
#define WEFT_AM_HEADER_MAX 256

#define WEFT_AM_F_KEEPABLE 1u /**< the handler may keep the data until weft_am_data_release() */
#define WEFT_AM_F_RNDV 2u     /**< data is still at the sender: weft_am_recv_data() gets it */
#define WEFT_AM_F_IMM 4u      /**< the message has immediate data */

/** Argument of a handler. Valid during the call, except the data that a handler keeps. */
struct weft_am_msg {
	size_t size;
	unsigned int id;
	unsigned int flags; /**< WEFT_AM_F_* */
	const void *header;
	size_t header_length;
	const void *data;          /**< payload, unaligned; NULL with #WEFT_AM_F_RNDV */
	size_t length;             /**< of the payload */
	struct weft_am_data *desc; /**< NULL: nothing can be kept */
	uint64_t source_id;        /**< id of the worker that sent it */
	/**
	 * To reply on, during the call. After the call it is valid only if the application owns the
	 * endpoint (created it, or got it from accept_cb), until the application closes it.
	 */
	struct weft_ep *ep;
	uint64_t imm;                     /**< #WEFT_AM_F_IMM */
	uint16_t channel, source_channel; /**< as the sender gave them, see struct weft_op_params */
};

/**
 * A message has arrived. Messages of one endpoint are delivered in the order of their send calls,
 * whatever their size. Messages with #WEFT_AM_F_RNDV are in the same order, but their data comes
 * when it is requested.
 * @return 0: the message is consumed; data that was not received is dropped, and the send succeeds.
 *   #WEFT_INPROGRESS: `desc` and `data` are kept until weft_am_data_release() or
 *   weft_am_recv_data(); as 0 if `desc` is NULL. A negative error (above -4096): done, and the send
 *   of a message with #WEFT_AM_F_RNDV ends with it
 */
typedef int (*weft_am_cb)(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg);

#define WEFT_AM_HANDLER_F_PERSISTENT_DATA \
	1u /**< data can always be kept; costs a copy per message */

/**
 * Set, replace or (NULL) remove the handler of an id. Messages with an id that has no handler are
 * dropped and counted ("am.drop.unknown_id"), and their sends succeed.
 * @param id     0..65535
 * @param flags  #WEFT_AM_HANDLER_F_PERSISTENT_DATA; without it only data with #WEFT_AM_F_RNDV, and
 *   data that arrived out of order or in pieces, can be kept
 * @return 0; -EINVAL; -EOPNOTSUPP (context without #WEFT_FEATURE_AM); -ENOMEM
 */
WEFT_API int weft_worker_set_am_handler(struct weft_worker *worker, unsigned int id, weft_am_cb cb,
					void *arg, unsigned int flags);

/**
 * Send without rendezvous. The message ends with -EMSGSIZE if it is longer than the longest eager
 * message (see WEFT_MULTI_EAGER_LIMIT), or than the credit that the peer can grant. The peer grants
 * this endpoint WEFT_EAGER_CREDIT bytes, or less if it has many peers. Up to three quarters of them
 * are always available in the end.
 *
 * On a connected endpoint the call itself returns -EMSGSIZE, whatever waits before the message. On
 * a connecting endpoint both limits are unknown, so the request ends with -EMSGSIZE later. A
 * request that waits for credit ends with -EMSGSIZE when the peer reduces its credit below the
 * payload.
 */
#define WEFT_AM_SEND_F_EAGER 1u
#define WEFT_AM_SEND_F_RNDV 2u /**< send by rendezvous, even if there is no data */

struct weft_am_send_params {
	size_t size;
	unsigned int id;
	unsigned int flags; /**< WEFT_AM_SEND_F_* */
	const void *header; /**< may be reused when the call returns */
	size_t header_length;
};

/**
 * Send an active message. Done means that the buffer may be reused; with rendezvous that the
 * handler has received or refused the data. The protocols are those of tagged messages: short ones
 * leave at once, medium ones in pieces over several lanes, long ones by rendezvous
 * (WEFT_RNDV_THRESH); weft_ep_query_proto() reports the choice.
 * @return 0, #WEFT_INPROGRESS, -EINVAL, -EMSGSIZE (header too long; #WEFT_AM_SEND_F_EAGER),
 *   -EOPNOTSUPP, -ENOMEM, or the endpoint's error
 */
WEFT_API int weft_am_send(struct weft_ep *ep, const struct weft_am_send_params *am,
			  const void *buffer, size_t count, const struct weft_op_params *params,
			  struct weft_request **req);

/**
 * Get the data of a message with #WEFT_AM_F_RNDV, inside its handler or later. The descriptor is
 * used up unless the call returns -EINVAL, -ENOMEM or -EBUSY. Buffers, truncation and completion
 * are as with weft_tag_recv(); the completion's `tag` is the id.
 * @return 0; #WEFT_INPROGRESS; -ECONNRESET when the endpoint has failed or was closed; -EINVAL: the
 *   descriptor has no #WEFT_AM_F_RNDV, or is used up; -ENOMEM; -EBUSY in a callback of a datatype;
 *   another error with which the receive has ended
 */
WEFT_API int weft_am_recv_data(struct weft_worker *worker, struct weft_am_data *desc, void *buffer,
			       size_t count, const struct weft_op_params *params,
			       struct weft_request **req);

/**
 * Release a message that a handler has kept. A message with #WEFT_AM_F_RNDV is dropped, and its
 * send succeeds.
 * @return 0; -EINVAL when it was used up inside its handler; -EBUSY in a callback of a datatype
 */
WEFT_API int weft_am_data_release(struct weft_worker *worker, struct weft_am_data *desc);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_PUBLIC_MSG_H */
