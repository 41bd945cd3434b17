/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file weft.h
 * Weft: messages between processes over Ethernet, woven over several lanes at once.
 *
 * The objects are those of UCX's UCP:
 *  - a *context* holds configuration and lane drivers;
 *  - a *worker* is one progress engine (for one thread, or for several behind its lock) with one
 *    interface per network or device that it uses;
 *  - an *endpoint* (ep) is a connection from a worker to a remote worker over one or more lanes;
 *  - a *request* is one operation under way.
 *
 * This file declares contexts, workers and endpoints. It includes the operations: weft_msg.h
 * (datatypes, requests, tagged and active messages), weft_rma.h (registered and remote memory).
 * Programs that connect by host and port include weft_listen.h. Tools that explain the choice of
 * protocols include weft_plan.h. Lane drivers include weft/lane.h.
 *
 * Paths such as lib/lane.h are those of the sources; share/doc/weft is installed.
 *
 * Conventions, valid for every call unless its description differs:
 *  - **Errors** are negative errno values; weft_strerror() has their texts. A missing pointer is
 *    -EINVAL. Some calls do not check for it: weft_tag_*(), weft_worker_progress(),
 *    weft_request_query(), weft_ep_query_proto(). Nothing that arrives from the wire or the
 *    environment aborts the process.
 *  - **Non-blocking calls** return 0 when the operation is done: no callback is invoked and no
 *    request exists. They return a negative error when the operation was not started; the call has
 *    then changed nothing. They return #WEFT_INPROGRESS when the operation goes on; `*req`, if
 *    wanted, is then its request. The callback runs in a later call, never before this call has
 *    returned, even if the operation fails in the call.
 *  - **Parameter structs** start with `size`, which the caller sets to the size it was compiled
 *    with (the WEFT_INIT() macro does that). The library takes fields beyond that size as zero.
 *    Zero always means the default, so later versions can add fields.
 *  - **Texts** in the result of a query belong to its object: context, worker, endpoint, listener
 *    or plan. They are valid and stay the same until the object is closed or destroyed; a later
 *    query may return other texts. They are never NULL. An object keeps 256 different texts, and a
 *    query returns a fixed text in place of a further one.
 *  - **Units**: bytes, seconds (double) or nanoseconds (names end in `_ns`), bytes per second.
 *  - **Threads**: a context may be used from any thread for worker creation. A worker and
 *    everything that belongs to it (endpoints, requests, probes, progress) belongs to one thread at
 *    a time with #WEFT_THREAD_SINGLE, to any thread with #WEFT_THREAD_MULTI.
 *  - **fork()**: a child may use no object of its parent, and may create contexts of its own. A
 *    child that closes, destroys or deregisters an object of its parent changes nothing, and the
 *    call returns 0.
 *  - **Callbacks** run inside a call on the worker: weft_worker_progress(), weft_worker_wait(),
 *    weft_wait(), weft_request_cancel(), weft_ep_close(), weft_worker_destroy(). They may post and
 *    cancel operations, free requests, create endpoints, and close them, the endpoint of the
 *    callback included. Progress inside a callback does nothing and returns 0; destroying the
 *    worker there is refused, with a log line. Callbacks of a *datatype* may do none of this: see
 *    struct weft_generic_ops.
 */
#ifndef WEFT_H
#define WEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "weft_version.h"

/*
 * The headers compile as C99 and later, and as C++11 and later. WEFT_INIT() needs C99 or C++20,
 * where designated initialisers stand in the order of the members.
 */
#ifdef __cplusplus
/** C++ accepts this type in an expression, but not the words `struct NAME`. */
template <typename T> struct weft_type {
	typedef T type;
};
#define WEFT_INIT_LIST(name, ...) (weft_type<name>::type{.size = sizeof(name), __VA_ARGS__})
extern "C" {
#else
#define WEFT_INIT_LIST(name, ...) ((name){.size = sizeof(name), __VA_ARGS__})
#endif

/** A non-blocking operation goes on; its callback comes, or weft_request_test() reports its end. */
#define WEFT_INPROGRESS 1

/** Mask of a receive: every bit of the tag must match. */
#define WEFT_TAG_MASK_FULL UINT64_MAX

/**
 * Initialiser of a parameter struct: `struct weft_ep_params p = WEFT_INIT(struct weft_ep_params,
 * .address = a);`
 */
#define WEFT_INIT(...) WEFT_INIT_LIST(__VA_ARGS__, )

/** Precedes an anonymous union, so that a C99 compiler does not warn of the extension. */
#if defined(__GNUC__)
#define WEFT_EXTENSION __extension__
#else
#define WEFT_EXTENSION
#endif

struct weft_context;
struct weft_worker;
struct weft_ep;
struct weft_request;
struct weft_mem;     /**< registered memory */
struct weft_am_data; /**< an active message that its handler may keep, or has yet to receive */
struct weft_rkey;    /**< a peer's memory, as its remote key describes it */
struct weft_message; /**< a message taken out of matching by a probe */
struct weft_config;
struct weft_op_params; /**< weft_msg.h */

/* ------------------------------------------------------------------ library */

/**
 * How the library was built: a line each for version, compiler, sanitizers, DPDK, sealed frames,
 * rdma-core and lane drivers. Static storage. Any thread.
 */
WEFT_API const char *weft_build_info(void);

/**
 * Text of a status (0, #WEFT_INPROGRESS, negative error). Static storage, never NULL. Any thread.
 */
WEFT_API const char *weft_strerror(int status);

/** Level of a log line. `WEFT_LOG_LEVEL` names the last of these levels that is written. */
enum weft_log_level { WEFT_LOG_ERROR, WEFT_LOG_WARN, WEFT_LOG_INFO, WEFT_LOG_DEBUG };

/**
 * Receives a line of the log, of a level that is written.
 *
 * @param source  worker or endpoint in brackets, or "" for the process
 * @param text    the sentence, printable, without time and line feed. Both texts are valid during
 *   the call
 * @return true: the application handled the line; false: the library writes it too
 *
 * Any thread of the process calls it, several at a time, perhaps with a worker's lock held. So the
 * callback must return at once and must not call functions of Weft.
 */
typedef bool (*weft_log_cb)(enum weft_log_level level, const char *source, const char *text,
			    void *arg);

/**
 * Set the process's log callback, or remove it (NULL). No other thread may use Weft during the
 * call.
 */
WEFT_API void weft_log_set_callback(weft_log_cb callback, void *arg);

/**
 * Write the frames that the flight recorder has to a file now. A program calls it when it detects a
 * failure by other means than Weft. Any thread, also in a handler of a signal; the call returns
 * when the file is written.
 *
 * @param reason    a sentence for the file's comment
 * @param text      out: the name of the file (WEFT_RECORDER_FILE), or the reason of the error
 * @param text_len  size of @p text, bytes
 * @return 0; -ENOENT: there is no raw lane, WEFT_RECORDER=off, or the build has no recorder;
 *   -EBUSY: another thread writes a file; or the error of the file
 */
WEFT_API int weft_recorder_write(const char *reason, char *text, size_t text_len);

/* ------------------------------------------------------------------ configuration */

/**
 * Read the configuration. The sources, by rising precedence: the default, `/etc/weft.conf`, the
 * user's `weft.conf` in XDG_CONFIG_HOME or `~/.config`, the file of `WEFT_CONFIG`, the environment
 * (`WEFT_*`), weft_config_modify(). weft-config(7) describes the files. An unknown variable causes
 * a warning with the nearest known name. So does one of the first two files that cannot be used,
 * for example because other users can write it.
 *
 * @param[out] config  to be released with weft_config_release()
 * @return 0, -ENOMEM, or -EINVAL when a value is malformed or the file of `WEFT_CONFIG` can't be
 *   used (the log names the variable, or file and line, and the expected form)
 */
WEFT_API int weft_config_read(struct weft_config **config);

/**
 * Set one option by name, with or without the `WEFT_` prefix, from text. A removed option has no
 * effect, and the log reports it.
 * @return 0; -ENOENT for an unknown name; -EINVAL for a malformed value, or an option that has an
 *   effect in the environment only; -ENOMEM
 */
WEFT_API int weft_config_modify(struct weft_config *config, const char *name, const char *value);

/** Write one option as text into @p buf, terminated. @return length as snprintf(), or -ENOENT */
WEFT_API int weft_config_get(const struct weft_config *config, const char *name, char *buf,
			     size_t size);

/**
 * Source of an option's value as text into @p buf (always terminated): "default", "FILE:LINE",
 * "environment", or "program" after weft_config_modify(). A program that has defaults of its own
 * sets them where the source is "default". @return length as snprintf() would, or -ENOENT.
 */
WEFT_API int weft_config_origin(const struct weft_config *config, const char *name, char *buf,
				size_t size);

#define WEFT_CONFIG_PRINT_F_HELP 1u    /**< with unit, default and help of each option */
#define WEFT_CONFIG_PRINT_F_CHANGED 2u /**< only options that differ from their default */
#define WEFT_CONFIG_PRINT_F_ORIGIN 4u  /**< with the source of each value, as a comment */
#define WEFT_CONFIG_PRINT_F_ALL 8u     /**< also options for tests with their default value */

/**
 * Print options as `NAME=value` lines that a shell or a configuration file can contain. Without
 * flags these are all options of users, and the options for tests that differ from their default.
 */
WEFT_API void weft_config_print(const struct weft_config *config, FILE *out, unsigned int flags);

/** Release a configuration. NULL is allowed. */
WEFT_API void weft_config_release(struct weft_config *config);

/* ------------------------------------------------------------------ context */

/**
 * Features that the application will use. The worker's address contains them. An active message, a
 * registration with rights for peers, or an operation on remote memory whose feature was not
 * requested returns -EOPNOTSUPP, and the log names the feature. Tagged messages need no feature.
 */
#define WEFT_FEATURE_TAG 1ull
#define WEFT_FEATURE_AM (1ull << 1)    /**< active messages */
#define WEFT_FEATURE_RMA (1ull << 2)   /**< weft_put(), weft_get() */
#define WEFT_FEATURE_AMO32 (1ull << 3) /**< weft_atomic() on 4 bytes */
#define WEFT_FEATURE_AMO64 (1ull << 4) /**< weft_atomic() on 8 bytes */

struct weft_context_params {
	size_t size;
	uint64_t features;                /**< WEFT_FEATURE_*; 0 = WEFT_FEATURE_TAG */
	const struct weft_config *config; /**< copied; NULL = as weft_config_read() reads it */
	/** shown in logs and to peers; copied; NULL = program name and pid */
	const char *name;
	/**
	 * 32 random bytes that all processes of a job share: lanes seal their frames with them
	 * (doc/sealing.md). Copied. NULL = from the file of WEFT_JOB_KEY. Not used with
	 * WEFT_SEAL=off
	 */
	const void *job_key;
};

/**
 * Create a context, and read the configuration if none is given. A lane driver looks for its
 * resources when the first worker uses its lanes, or when weft_context_query() is called.
 *
 * Raw-DPDK lanes need the EAL. If the application has initialised the EAL, it is used as it is.
 * Otherwise the library initialises it from `WEFT_EAL_ARGS` when a driver looks for its ports.
 * The thread in which this happens keeps its CPU affinity, whatever cores the EAL's own threads
 * get.
 * @param params  NULL = defaults
 * @return 0, -ENOMEM, -EINVAL (configuration; the log names the variable), -EACCES (other users may
 *   use the file of WEFT_JOB_KEY), -EPERM (WEFT_JOB_KEY is in the environment of a program with
 *   more rights than its user), -ENOTSUP (a job key, and a build that cannot seal), or the error of
 *   opening that file, or the file of WEFT_KEYLOG
 */
WEFT_API int weft_context_create(const struct weft_context_params *params,
				 struct weft_context **ctx);

/**
 * Destroy a context. NULL is allowed.
 * @return 0; -EBUSY while workers or registrations of the context exist, and nothing has changed
 */
WEFT_API int weft_context_destroy(struct weft_context *ctx);

struct weft_context_attr {
	size_t size;
	uint64_t features;
	const char *name;           /**< as in struct weft_context_params; the context owns it */
	unsigned int num_resources; /**< usable resources of the drivers in WEFT_LANES */
};

/**
 * Fill @p attr (its `size` must be set). The call starts the lane drivers of `WEFT_LANES`, which
 * look for their resources. A driver that serves as a fallback (udp) is started only if the others
 * have no usable resource of a network. @return 0 or -EINVAL
 */
WEFT_API int weft_context_query(const struct weft_context *ctx, struct weft_context_attr *attr);

/** Print the configuration a context runs with. */
WEFT_API void weft_context_print_config(const struct weft_context *ctx, FILE *out,
					unsigned int flags);

/* ------------------------------------------------------------------ worker */

enum weft_thread_mode {
	WEFT_THREAD_SINGLE = 0, /**< one thread at a time; no lock, except with WEFT_HEARTBEAT */
	WEFT_THREAD_MULTI = 1,  /**< any thread; every call takes the worker's lock */
};

struct weft_worker_params {
	size_t size;
	enum weft_thread_mode thread_mode;
	/**
	 * Which lanes, as in `WEFT_LANES` (see weft(7)); NULL = the context's configuration. Raw
	 * lanes of several workers need different ports, or a port that can steer to queues.
	 */
	const char *lanes;
	/**
	 * A peer connected and no endpoint here was waiting for it. The application becomes the
	 * owner of @p ep and must close it. weft_ep_modify() gives it an error callback and user
	 * data. Without that callback, operations and weft_ep_query() report a later failure.
	 *
	 * NULL: such endpoints belong to the library. They receive, weft_ep_create() to that worker
	 * adopts one, and the library frees them when the peer closes. Completions have ep == NULL
	 * for them.
	 */
	void (*accept_cb)(struct weft_worker *worker, struct weft_ep *ep, uint64_t remote_id,
			  const char *remote_name, void *arg);
	void *accept_arg;
	unsigned int flags; /**< WEFT_WORKER_F_* */
};

/**
 * A posted operation is sent inside the call, as far as the lanes have room. Without the flag a
 * frame may wait for further messages until the next progress call. #WEFT_OP_F_MORE permits such a
 * wait for one operation in spite of the flag. Operations that a callback posts are sent at the end
 * of the progress call.
 *
 * #WEFT_OP_F_POLLED permits a shorter wait. Over raw lanes the operation's frame waits if the peer
 * has not acknowledged the four frames before it. It leaves with 64 messages, when it is full, or
 * with the next progress call. If that call comes later than 50 us, the frames of the next
 * intervals between progress calls do not wait. An operation without the flag, and
 * weft_worker_kick(), send the frame in any case.
 */
#define WEFT_WORKER_F_SEND_NOW 1u

/**
 * Create a worker and open its interfaces.
 * @return 0; -ENODEV when no lane at all could be opened, fewer lanes to other hosts than
 *   WEFT_MIN_LANES requires, or the driver of a lane requested by name did not start; -EINVAL for a
 *   malformed lane list; -EBUSY when a port is taken by another worker and cannot steer; -EPERM
 *   when a lane requested by name does not seal its frames, and a job key is set (WEFT_SEAL_ALLOW);
 *   another error of the driver if a lane requested by name cannot be opened (the log has the
 *   reason); -EAGAIN with WEFT_HEARTBEAT, when its thread cannot be started; -ENOMEM; the error of
 *   the system's random numbers
 */
WEFT_API int weft_worker_create(struct weft_context *ctx, const struct weft_worker_params *params,
				struct weft_worker **worker);

/**
 * Destroy a worker: endpoints still open are force-closed (their peers are notified once, without
 * waiting), requests end with -ECANCELED, unmatched messages are freed (the log counts them at
 * level info). NULL is allowed.
 */
WEFT_API void weft_worker_destroy(struct weft_worker *worker);

/**
 * Make progress: receive, deliver, acknowledge, retransmit, and send queued operations. Never
 * sleeps. Peers regard a program that stops calling it as slow: over raw lanes for their
 * `WEFT_PEER_TIMEOUT`, over RoCE lanes for as long as its NIC answers.
 * @param worker  not NULL: the call has no error to return
 * @return number of events (messages, completions) handled; 0 = nothing happened
 */
WEFT_API unsigned int weft_worker_progress(struct weft_worker *worker);

/**
 * Send the frames that wait for further messages: those of operations with #WEFT_OP_F_MORE or
 * #WEFT_OP_F_POLLED, and of a worker without #WEFT_WORKER_F_SEND_NOW. The call receives nothing and
 * invokes no callback.
 */
WEFT_API void weft_worker_kick(struct weft_worker *worker);

/**
 * Make progress, and sleep while there is no event. Returns when weft_worker_progress() has handled
 * an event. It may be another event than the one that the caller waits for, so call it in a loop:
 *
 *	while (weft_request_test(req, NULL) == WEFT_INPROGRESS)
 *		weft_worker_wait(worker, -1);
 *
 * The call polls first, for up to 10 us (WEFT_WAIT_SPIN), unless other threads sleep already. After
 * a poll without result the next waits, up to 64, omit the poll. Then the call sleeps in the
 * kernel. Lanes with weft_iface_info.wakes wake it at once. It polls other lanes at least every
 * `WEFT_WAIT_SLEEP`. Retransmissions and keepalives continue in time.
 *
 * @param timeout_ns  sleep no longer than this; negative = for ever; 0 = progress once
 * @return number of events handled, > 0; 0 after weft_worker_signal(), a signal handler, or, with
 *   #WEFT_THREAD_MULTI, a call of another thread; -ETIMEDOUT; -EDEADLK inside a callback of the
 *   worker; -EBUSY inside a callback of a datatype; -EMFILE, -ENFILE or -ENOMEM when there is no
 *   descriptor to be had
 */
WEFT_API int weft_worker_wait(struct weft_worker *worker, int64_t timeout_ns);

/**
 * A descriptor for the application's own poll(), select() or epoll set. After weft_worker_arm() has
 * returned 0 it is readable while weft_worker_progress() may have something to do. Poll it for
 * reading only. The worker owns it.
 * @return the descriptor; -EMFILE, -ENFILE, -ENOMEM
 */
WEFT_API int weft_worker_get_fd(struct weft_worker *worker);

/**
 * Get ready to sleep on weft_worker_get_fd(). The loop is: progress until it returns 0, arm, sleep,
 * and again. An event after this call makes the descriptor readable. An event before the call makes
 * the call return -EBUSY. After any other call on the worker, the same thread must arm it again
 * before it sleeps.
 *
 * The descriptor also becomes readable when a timer is due (a retransmission, a keepalive), and
 * when a lane without weft_iface_info.wakes must be polled (`WEFT_WAIT_SLEEP`).
 * @return 0; -EBUSY: there was an event or a weft_worker_signal(), call weft_worker_progress()
 *   first; -EDEADLK inside a callback of the worker; -EMFILE, -ENFILE, -ENOMEM
 */
WEFT_API int weft_worker_arm(struct weft_worker *worker);

/**
 * Wake the threads that sleep in weft_worker_wait() or on weft_worker_get_fd(). If no thread
 * sleeps, the next weft_worker_wait() or weft_worker_arm() returns at once. Several signals before
 * that count as one. Any thread may call it in every thread mode, and signal handlers may, too.
 */
WEFT_API void weft_worker_signal(struct weft_worker *worker);

/**
 * The worker's address, which the application carries to peers by any means. It has at most 2 KiB
 * for 8 interfaces, contains no pointers, is independent of byte order, and is versioned.
 * @param[out] address  release with weft_worker_release_address()
 * @return 0, -ENOMEM
 */
WEFT_API int weft_worker_get_address(struct weft_worker *worker, void **address, size_t *length);
/** Free an address of weft_worker_get_address(). NULL is allowed. */
WEFT_API void weft_worker_release_address(struct weft_worker *worker, void *address);

/** The maximum length of a boot address, in bytes. */
#define WEFT_BOOT_ADDRESS_MAX 56

/**
 * A short address, for launchers without room for a whole one. weft_ep_create() accepts it, and
 * requests the whole address from the worker, which takes one round trip before connecting. The
 * short address names the network interface with the lowest latency, if there is one, and the
 * shared-memory interface. It is a capability as the whole address is. It contains lanes of drivers
 * outside Weft if the driver supports boot addresses.
 * @param[in,out] length  room in @p buf; bytes of the address
 * @return 0; -EMSGSIZE: there is no room, @p length has the required size; -ENOMEM
 */
WEFT_API int weft_worker_get_boot_address(struct weft_worker *worker, void *buf, size_t *length);

struct weft_address_attr {
	size_t size;
	uint64_t worker_id;
	unsigned int version;
	unsigned int num_ifaces;
	/**
	 * of the worker's context. The text belongs to the calling thread: it is valid until this
	 * thread calls weft_address_query() again
	 */
	const char *name;
};

/**
 * Look into a worker address. A boot address has no name, and at most two interfaces.
 * @return 0; -EINVAL truncated or damaged; -EPROTONOSUPPORT made by an incompatible version, which
 *   @p attr has; -ENOMEM
 */
WEFT_API int weft_address_query(const void *address, size_t length, struct weft_address_attr *attr);

/** One local interface of a worker. */
struct weft_iface_info {
	size_t size;
	const char *driver;
	const char *name;    /**< as in WEFT_LANES, e.g. "dpdk:0" */
	const char *device;  /**< card or port identity; two lanes with the same device share it */
	const char *address; /**< network address as text */
	const char *why;     /**< reason for its use, or for its being down */
	bool up;             /**< link is up */
	double bandwidth;    /**< bytes/s */
	double latency;      /**< s, one way */
	double send_overhead, recv_overhead; /**< s per message */
	double reg_cost, reg_growth;         /**< registration: s, s/byte */
	size_t max_short, max_bcopy, max_zcopy;
	unsigned int max_iov;
	size_t frame_size; /**< bytes of the largest frame (L2 header included, FCS not) */
	uint64_t features; /**< WEFT_LANE_F_* of lib/lane_attr.h */
	/** sources of the bandwidth, the latency and the overheads, as text */
	const char *bandwidth_from, *latency_from, *overhead_from;
	/**
	 * the link is not up, but may come up soon: the NIC was started less than 5 s ago. Call
	 * progress, then query again
	 */
	bool link_expected;
	/** s from opening until there was a link; 0 = at once, or there is none */
	double up_after;
	/** wakes weft_worker_wait(); else the wait polls this interface each `WEFT_WAIT_SLEEP` */
	bool wakes;
};

/** Describe interface @p index (see *Texts*). @return 0, or -ENOENT past the last one. */
WEFT_API int weft_worker_query_iface(struct weft_worker *worker, unsigned int index,
				     struct weft_iface_info *info);

/**
 * Walk all counters of the worker, its lanes and paths: frames and messages sent, received,
 * retransmitted, and dropped with the reason. Names look like "dpdk:0.drop.bad_csum" or
 * "tag.unexpected_bytes". Counters with the prefix "regcache." belong to the context's registration
 * cache. Each of its workers reports the same values, so they must not be added up.
 * The callback must not call into the worker.
 */
WEFT_API void weft_worker_counters(struct weft_worker *worker,
				   void (*cb)(const char *name, uint64_t value, void *arg),
				   void *arg);

/**
 * Meaning of a counter: one sentence that begins with the unit.
 *
 * @param name        as weft_worker_counters() reports it; '/' may replace '.'
 * @param[out] level  true: a present value, which may fall; false: a total since the worker was
 *   created. May be NULL
 * @return static storage; NULL for counters of a port's PMD and for unknown names
 */
WEFT_API const char *weft_counter_help(const char *name, bool *level);

/* ------------------------------------------------------------------ endpoint */

/**
 * Called once when an endpoint fails (peer dead or gone, last lane lost), unless the application
 * has called weft_ep_close() for it, perhaps in a callback of one of its requests. All its requests
 * end with @p status, in no particular order; new operations return it. The endpoint must still be
 * closed by its owner. @p why is a human-readable message text, valid during the call.
 */
typedef void (*weft_ep_err_cb)(struct weft_ep *ep, int status, const char *why, void *arg);

struct weft_ep_params {
	size_t size;
	const void *address; /**< remote worker's address, or its boot address; copied */
	size_t address_length;
	weft_ep_err_cb err_cb; /**< may be NULL */
	void *err_arg;
	void *user_data; /**< returned by weft_ep_query() */
};

/**
 * Create an endpoint to a remote worker (the own worker's address makes a loopback). Returns at
 * once; operations posted before the connection is up are queued and go out in order.
 *
 * The peer need not create an endpoint back. When it does, both ends share one connection: a new
 * endpoint adopts the oldest live and unowned connection that the peer has made to this worker. Two
 * endpoints that are created at the same time share one connection, too. A connection is live until
 * the peer's close has arrived. An endpoint may adopt a connection that the peer has already closed
 * with #WEFT_EP_CLOSE_F_FORCE. It then fails with -ECONNRESET, and the next endpoint adopts a later
 * connection.
 * @return 0; -EINVAL damaged address; -EPROTONOSUPPORT; -EHOSTUNREACH when no local interface
 * reaches any of the peer's (the log lists each pair with its reason); -ENOMEM
 */
WEFT_API int weft_ep_create(struct weft_worker *worker, const struct weft_ep_params *params,
			    struct weft_ep **ep);

/* What weft_ep_modify() changes; the rest of the endpoint's parameters stays as it is. */
#define WEFT_EP_MODIFY_F_ERR_CB (1u << 0)    /**< err_cb and err_arg */
#define WEFT_EP_MODIFY_F_USER_DATA (1u << 1) /**< user_data */

struct weft_ep_modify_params {
	size_t size;
	unsigned int fields;   /**< WEFT_EP_MODIFY_F_* */
	weft_ep_err_cb err_cb; /**< NULL = none from now on */
	void *err_arg;
	void *user_data;
};

/**
 * Change the error callback and the user data of an endpoint that the application owns. An endpoint
 * that accept_cb of struct weft_worker_params reports has neither before this call.
 * @return 0; -EINVAL unknown fields, or an endpoint that the application does not own; the status
 *   of an endpoint that has failed: its user data is changed, and the error callback of this call
 *   does not run
 */
WEFT_API int weft_ep_modify(struct weft_ep *ep, const struct weft_ep_modify_params *params);

#define WEFT_EP_CLOSE_F_FORCE 1u /**< do not flush: outstanding operations end with -ECANCELED */

/**
 * Close an endpoint. The endpoint must not be used afterwards, and no completion, probe or handler
 * contains it any more.
 *
 * Without FORCE everything sent before is first delivered to the peer. The close waits for what
 * weft_ep_flush() waits for. It also waits until receives match the messages whose data or
 * completion depends on the match: synchronous sends, and sends whose data is still here. If both
 * ends close, as both ends of a loopback do, unmatched messages of this kind end with -ECONNRESET.
 * A close does not report refused puts; weft_ep_flush() before the close does.
 *
 * With FORCE outstanding operations end with -ECANCELED. Operations whose memory the hardware still
 * holds end a little later, from progress.
 *
 * Receives that name this endpoint as their source end with -ECANCELED when the connection ends,
 * and so do receives that are matched but not complete. This is so too if the peer or a failure
 * ends the connection first. Messages from the peer that no receive has matched, those that a probe
 * has taken included, are treated as follows:
 *  - A message that has arrived completely stays, for receives from any endpoint. The `ep` of its
 *    completion is NULL.
 *  - A message whose sender waits for the match (synchronous, or its data still at the sender) is
 *    dropped, and its send ends with -ECONNRESET. If a probe has taken it, receiving it returns an
 *    error. A close without FORCE drops such messages in the call. Otherwise they are dropped when
 *    the connection ends, also when the peer closes or the endpoint fails.
 *  - A message of which a part is missing when the connection ends is dropped. If a probe has taken
 *    it, receiving it returns an error.
 *  - Active messages are not passed to handlers from the call on. Sends whose data is still at the
 *    sender end with -ECONNRESET, also if a handler has kept their descriptor. Kept data that has
 *    arrived stays.
 * @return 0, #WEFT_INPROGRESS with a request, or an error. The endpoint is gone in every case
 *   except -EINVAL (unknown flags, parameters, an endpoint that the application does not own) and
 *   -EBUSY (inside a datatype's callback)
 */
WEFT_API int weft_ep_close(struct weft_ep *ep, unsigned int flags,
			   const struct weft_op_params *params, struct weft_request **req);

/**
 * Complete when every operation posted on the endpoint before the flush has reached the peer's
 * protocol layer: puts and atomics are visible in the peer's memory, gets have their data, and each
 * message has arrived in sequence, so that a receive posted now matches it. The flush does not wait
 * for that receive. A synchronous send, or a rendezvous whose data stays here until it is matched,
 * goes on after the flush; its buffer must not be reused until its request ends.
 *
 * A put that a NIC wrote (RoCE) is at the peer's NIC, and visible before any message that arrives
 * over the same NIC afterwards. A message over another NIC may arrive a moment before the bytes are
 * visible: roce.md in share/doc/weft.
 *
 * The flush ends with the error of a put or atomic whose request had already ended (see
 * weft_put()). The error is reported once, by the first flush posted after the operation and by
 * none posted before. If a peer refuses more operations than it can report one by one, flushes
 * posted between the first and the last may report it, too.
 */
WEFT_API int weft_ep_flush(struct weft_ep *ep, const struct weft_op_params *params,
			   struct weft_request **req);

/**
 * As weft_ep_flush(), for all endpoints of the worker that are neither closed nor failed when it is
 * called (weft_ep_err_cb has reported a failure). It ends with the first error of any endpoint. It
 * ends with -ECANCELED if the only error is that an endpoint was closed by force before the end.
 */
WEFT_API int weft_worker_flush(struct weft_worker *worker, const struct weft_op_params *params,
			       struct weft_request **req);

/**
 * Puts, gets and atomics posted on the endpoint after this call take effect after all those posted
 * before it. The call does not wait. Later operations are held back here until the peer has
 * confirmed the earlier ones, which takes one round trip if any were outstanding. Messages are not
 * affected.
 * @return 0, or the endpoint's error
 */
WEFT_API int weft_ep_fence(struct weft_ep *ep);

/** As weft_ep_fence(), between all operations of the worker, whatever their endpoints. */
WEFT_API int weft_worker_fence(struct weft_worker *worker);

enum weft_lane_state {
	WEFT_LANE_STATE_CONNECTING = 0,
	WEFT_LANE_STATE_UP = 1,
	WEFT_LANE_STATE_DOWN = 2,
};

/** @return "connecting", "up", "down"; "?" for other numbers. Static storage */
WEFT_API const char *weft_lane_state_name(enum weft_lane_state state);

/** One lane of an endpoint. */
struct weft_lane_info {
	size_t size;
	const char *name;   /**< local interface, e.g. "dpdk:0" */
	const char *remote; /**< remote network address as text */
	enum weft_lane_state state;
	const char *why;             /**< why this lane is here and what it carries */
	double bandwidth;            /**< bytes/s, as used for choices */
	double latency;              /**< s */
	uint64_t tx_bytes, rx_bytes; /**< payload bytes of messages, headers of Weft not counted */
	uint64_t tx_msgs, rx_msgs;   /**< lane-level messages (fragments) */
	uint64_t retransmits;        /**< frames sent again over the lane's present connection */
	/** origin of the numbers of choices: configured, measured, or as the driver states */
	const char *bandwidth_from, *latency_from;
	/** bytes of the longest frame that the path carries; 0 = not connected, or no raw lane */
	size_t frame_size;
};

struct weft_ep_attr {
	size_t size;
	void *user_data;
	uint64_t remote_id;      /**< remote worker id */
	const char *remote_name; /**< name of the peer's context */
	/** 0 connected, WEFT_INPROGRESS connecting, or the error it failed with */
	int status;
	unsigned int num_lanes;
};

/** Describe the endpoint (see *Texts*). @return 0 or -EINVAL */
WEFT_API int weft_ep_query(struct weft_ep *ep, struct weft_ep_attr *attr);

/** Describe lane @p index (see *Texts*). @return 0, or -ENOENT past the last one. */
WEFT_API int weft_ep_query_lane(struct weft_ep *ep, unsigned int index,
				struct weft_lane_info *info);

enum weft_op {
	WEFT_OP_TAG_SEND = 0,
	WEFT_OP_TAG_SEND_SYNC = 1,
	WEFT_OP_AM_SEND = 2, /**< active message */
	WEFT_OP_PUT = 3,
	WEFT_OP_GET = 4,
	WEFT_OP_AMO = 5,       /**< atomic without a result */
	WEFT_OP_AMO_FETCH = 6, /**< atomic with a result */
	/**
	 * the data of a rendezvous, as its receiver gets it: the second half of tag and
	 * active-message sends that use rendezvous
	 */
	WEFT_OP_RNDV_DATA = 7,
	WEFT_OP_LAST, /**< number of operations; grows with versions */
};

struct weft_proto_info {
	size_t size;
	const char *name; /**< e.g. "eager/short", "multi-eager", "rndv/am"; static storage */
	const char *desc; /**< human-readable; static storage */
	/**
	 * weft_ep_query_proto(): sizes around the given one for which the same protocol is used,
	 * inclusive; weft_plan_query(): all that it can carry, min > max = none
	 */
	size_t min, max;
	uint32_t lanes; /**< bit i = lane i of weft_ep_query_lane() may carry it */
	bool chosen;    /**< used now for the given size */
	/**
	 * time that the model predicts for the given size, from the call to the last byte in place,
	 * s; 0 = not known
	 */
	double time;
	bool usable;     /**< it can carry the given size */
	const char *why; /**< the reason, if it can carry nothing; else "" */
};

/**
 * Which protocol an operation of @p length contiguous bytes (put and get: registered ones) would
 * use now. #WEFT_OP_RNDV_DATA: how the data of a rendezvous comes to this end if its sender offers
 * every scheme. weft_plan_of_ep() and weft_plan_query() report the others that could.
 * @return 0; -ENOTCONN while not connected; -EOPNOTSUPP when none can; -EINVAL
 */
WEFT_API int weft_ep_query_proto(struct weft_ep *ep, enum weft_op op, size_t length,
				 struct weft_proto_info *info);

/**
 * For measurements: use one protocol for everything that it can carry, regardless of the model. A
 * message without credit is still sent by rendezvous. The call affects this end only, and only
 * messages of which no byte has been sent.
 * @param name  as in struct weft_proto_info; NULL = choose again
 * @return 0; -ENOENT: there is no such protocol; -EBUSY in a callback of a datatype; -ENOMEM. After
 *   an error nothing has changed
 */
WEFT_API int weft_ep_force_proto(struct weft_ep *ep, const char *name);

#ifdef __cplusplus
}
#endif

#include "weft_msg.h"
#include "weft_rma.h"

#endif /* WEFT_H */
