/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/mock_lane.h
 * Driver "mock": lanes between workers of one process, under the test's control. For tests of the
 * protocol layer, which run on virtual time (struct mock_clock, weft_platform) and see what lanes
 * are allowed to do: any order, delay, no room, death.
 *
 * Resources "0".."15" exist without set-up; everything is said in the lanes string of a worker:
 *
 *	mock:0,net=1,bw=1e9,lat=1e-6;mock:1,net=2,short=200,bcopy=1000,zcopy=0
 *
 *	net=N       ifaces reach each other when their net is the same (default 0)
 *	dev=NAME    device identity (default: "mock-<serial>", different for every iface opened)
 *	dom=NAME    registration domain (default: one for all)
 *	bw= lat= so= ro=   bytes/s, s, send and receive overhead in s
 *		    (defaults 1e9, 1e-6, 1e-7, 1e-7)
 *	short= bcopy= zcopy=   largest message of each kind (defaults 256, 4096, 16384;
 *		    0 = the iface has no such call)
 *	iov=        max_iov (default 8)
 *	align=      opt_align (default 1)
 *	addr=N      address; default: a new one. Two ifaces with one address stand for a process
 *		    and its successor
 *	get= put=   largest native read and write (default 0: no such call)
 *	rmaiov=N    pieces of memory that one such call takes (default 1, at most 8)
 *	reg         am_zcopy() needs registered memory
 *	native=N    reads and writes remote memory itself, N bytes at most at a time, and has 64-bit
 *		    atomics
 *	noreads     the peers of this iface take no native reads and atomics
 *	noboot      the iface cannot be connected to by its address (feature TO_EP instead)
 *	fail        open() fails with -ENODEV and an error message
 *	busy        open() fails with -EBUSY
 *	down        link is down
 *	wakes       an owner that sleeps is woken (mock_on_arm())
 *
 * Messages wait in the network until the *receiving* worker's progress delivers them, in order of
 * sending unless the test says otherwise. An acknowledgement (zcopy completion, flush) comes at the
 * *sender's* progress after delivery.
 */
#ifndef WEFT_TEST_MOCK_LANE_H
#define WEFT_TEST_MOCK_LANE_H

#include <stdarg.h>

#include "context.h"
#include "core/worker.h"

extern const struct weft_lane_driver mock_driver;

/** { &mock_driver, &weft_self_driver, NULL }, for weft_context_create_in(). */
extern const struct weft_lane_driver *const mock_drivers[];

/** Virtual time and repeatable randomness. */
extern const struct weft_platform mock_platform;
extern uint64_t mock_features; /* of the next contexts; 0 = the default */
extern uint64_t mock_now;      /* ns; starts at 1 s at mock_reset() */

/**
 * Forget everything (all ifaces must be closed): time 1 s, seed 1, no holds, no faults. Call it in
 * every setup.
 */
void mock_reset(void);
void mock_seed(uint64_t seed);

/** Number of ifaces, lane_eps and messages that exist: all 0 at the end of a clean test. */
unsigned int mock_num_ifaces(void);
unsigned int mock_num_lane_eps(void);
unsigned int mock_num_messages(void);

/** Iface @p index of a worker: its mock iface, to name in the calls below. */
struct weft_lane_iface *mock_iface(struct weft_worker *worker, unsigned int index);

/* ------------------------------------------------------------------ order and time of delivery */

/** What becomes of the messages in the network. */
enum mock_order {
	MOCK_FIFO,    /**< in the order of sending (default) */
	MOCK_RANDOM,  /**< any order, from the seed */
	MOCK_REVERSE, /**< the newest first */
};
void mock_set_order(enum mock_order order);

/** At most @p n messages per progress of an iface (default 0 = all). */
void mock_set_burst(unsigned int n);

/**
 * Hold back every message to @p iface (NULL = everywhere) until mock_release(). Connects and
 * acknowledgements go on.
 */
void mock_hold(struct weft_lane_iface *iface);
void mock_release(struct weft_lane_iface *iface);

/** A message travels at least @p ns of mock time from @p iface (NULL = from everywhere). */
void mock_set_delay(struct weft_lane_iface *iface, uint64_t ns);

/** A message in the network, as a filter sees it. */
struct mock_msg_view {
	const struct weft_lane_iface *from, *to;
	uint8_t am_id;
	const void *data;
	size_t length;
};

enum mock_verdict {
	MOCK_DELIVER,
	MOCK_LATER,
	MOCK_TWICE /* as if the sender had sent two */,
	MOCK_DROP /* breaks the lane contract */
};

/** Asked for each message about to be delivered; NULL = deliver. */
void mock_set_filter(enum mock_verdict (*filter)(const struct mock_msg_view *msg, void *arg),
		     void *arg);

/* ------------------------------------------------------------------ devices as they are */

/**
 * What the device behind @p iface really does, whatever it states: @p rate bytes/s, native reads,
 * native writes and messages each one after the other, then @p lag_ns on the way.
 * What native operations end is seen at multiples of @p burst_ns (0 = any time). @p rate 0 = at the
 * next progress (default).
 */
void mock_set_speed(struct weft_lane_iface *iface, double rate, uint64_t lag_ns, uint64_t burst_ns);
/** It does nothing for @p ns; what is under way ends so much later. */
void mock_stall(struct weft_lane_iface *iface, uint64_t ns);
/** Bytes of native reads and writes and of messages that @p iface has been given. */
uint64_t mock_moved(const struct weft_lane_iface *iface);

/* ------------------------------------------------------------------ waiting */

/** Moments of arm() of an iface with `wakes`. */
enum mock_arm_moment {
	MOCK_ARM_BEGINS, /**< nothing wakes its owner yet */
	/** what comes from now on does; it has not yet looked whether something is there */
	MOCK_ARM_ON,
	MOCK_ARM_ENDS, /**< it has looked */
};

/** Called at each of them, for tests that let something happen then; NULL = nothing does. */
void mock_on_arm(void (*fn)(struct weft_lane_iface *iface, enum mock_arm_moment moment, void *arg),
		 void *arg);
/** Calls of arm() of @p iface. */
unsigned int mock_num_arms(const struct weft_lane_iface *iface);

/* ------------------------------------------------------------------ no room */

/**
 * Every send from @p iface (NULL = all) returns -EAGAIN with this probability in permille, from the
 * seed; 0 = never.
 */
void mock_set_eagain(struct weft_lane_iface *iface, unsigned int permille);

/** At most @p n messages of a lane_ep unacknowledged, else -EAGAIN; 0 = no bound. */
void mock_set_window(unsigned int n);

/**
 * The hardware still holds the memory of what was sent when a lane_ep is destroyed: those
 * completions come from close(), not before.
 */
void mock_set_slow_hardware(bool on);

/** Receive callbacks get desc == NULL (must copy). */
void mock_set_no_keep(bool on);

/** The next @p n native operations are given up, undone, with @p status. */
void mock_lose_native(unsigned int n, int status);

/** Native reads, writes and atomics accepted. */
unsigned int mock_num_native(void);

/** The iface over which the last native atomic went. */
const struct weft_lane_iface *mock_last_atomic(void);

/**
 * Native reads and writes of a lane_ep that may be under way (default 16), else -EAGAIN; 0 = 16.
 */
void mock_set_rma_window(unsigned int n);

/**
 * Native reads and writes: refused inside the call with @p refuse, or end with @p status; 0 = go
 * well.
 */
void mock_fail_rma(int refuse, int status);

/** Registering fails with this; 0 = goes well. */
void mock_fail_register(int status);

/** Registrations that exist. */
unsigned int mock_num_mems(void);
/** Registrations that were tried. */
unsigned int mock_num_registers(void);
/** WEFT_LANE_ACCESS_REMOTE_* of all registrations that exist, together. */
unsigned int mock_mem_remote_rights(void);
/** Native operations that a key did not allow. */
unsigned int mock_num_denied(void);
/**
 * Registrations with write access that begin here fail with -EFAULT, as those of read-only pages
 * do.
 */
void mock_set_read_only(const void *addr, size_t len);

/** Receive buffers that callbacks have kept and not released. */
unsigned int mock_num_kept(void);

/* ------------------------------------------------------------------ connections and faults */

/**
 * Connects from @p from to @p to (NULL = any): fail at once with EV_DOWN(@p status, text), or, with
 * status 0, are never answered until the driver's connect timeout ends them with -ETIMEDOUT "no
 * answer".
 */
void mock_refuse(struct weft_lane_iface *from, struct weft_lane_iface *to, int status,
		 const char *text);
void mock_allow_all(void);

/**
 * Both ends of every lane_ep between the two ifaces (NULL = any) see EV_DOWN(status, text) at their
 * next progress; messages are lost.
 */
void mock_kill(struct weft_lane_iface *a, struct weft_lane_iface *b, int status, const char *text);

/**
 * The iface falls silent: nothing gets in or out, without an event. Its peers see
 * EV_DOWN(-ETIMEDOUT) after WEFT_PEER_TIMEOUT of mock time.
 */
void mock_mute(struct weft_lane_iface *iface);

/** As if the peer at the other end of @p lane_ep had sent this. Delivered at the next progress. */
void mock_inject(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *data, size_t length);

/**
 * An unknown sender connects to @p to; returns its end. mock_unknown_send() sends from it,
 * mock_unknown_close() closes.
 */
struct weft_lane_ep *mock_unknown(struct weft_lane_iface *to);
/** Its connection comes from this address, and an address of its that names another is a lie. */
void mock_unknown_at(struct weft_lane_ep *base, uint64_t address);
void mock_unknown_send(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *data,
		       size_t length);
void mock_unknown_close(struct weft_lane_ep *lane_ep);
/** What the unknown sender received last, and how many messages. */
size_t mock_unknown_last(struct weft_lane_ep *lane_ep, uint8_t *am_id, const void **data);
unsigned int mock_unknown_received(struct weft_lane_ep *lane_ep);

/* ------------------------------------------------------------------ helpers for tests */

/**
 * A context on mock_platform and mock_drivers with these settings ("NAME=VALUE", ..., NULL). Fails
 * the test on error.
 */
struct weft_context *mock_context(const char *setting, ...) __attribute__((sentinel));
/** As above, with other drivers. */
struct weft_context *mock_context_with(const struct weft_lane_driver *const *drivers,
				       const char *setting, va_list ap);

/** A worker with these lanes. Fails the test on error. */
struct weft_worker *mock_worker(struct weft_context *ctx, const char *lanes);

/** An ep from @p from to @p to's address, with mock_err_cb. Fails the test on error. */
struct weft_ep *mock_connect(struct weft_worker *from, struct weft_worker *to);

/** Progress the workers (NULL-terminated list) @p rounds times, @p step_ns of mock time apart. */
void mock_run(unsigned int rounds, uint64_t step_ns, struct weft_worker *worker, ...)
	__attribute__((sentinel));

/**
 * Error callback for tests: counts calls and keeps the last status and sentence. arg may be NULL.
 */
struct mock_err {
	unsigned int calls;
	int status;
	char why[512];
};
void mock_err_cb(struct weft_ep *ep, int status, const char *why, void *arg);

#endif /* WEFT_TEST_MOCK_LANE_H */
