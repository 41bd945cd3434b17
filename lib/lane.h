/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lane.h
 * The contract between the protocol layer (lib/) and a lane driver (drivers/...). A further driver
 * can be written from this file and lane_attr.h, which it includes. The file is installed as
 * weft/lane.h: weft_lane_driver_add() registers a driver that is not part of Weft.
 *
 * Weft promises nothing but WEFT_LANE_ABI to such drivers. This number changes with every change of
 * this file that a driver can see. Any version of Weft may bring such a change. A driver with
 * another number is refused; it must be compiled, and perhaps changed, with the headers of the
 * library it runs with. A driver may call WEFT_API functions only.
 *
 * Terms: a **driver** is code; a **resource** is something the driver found and could open (a DPDK
 * port, a verbs device port); an **iface** is a resource opened for one worker; a **lane ep**
 * (lane_ep) is a connection over one iface to one remote iface.
 *
 * What a lane promises; a control channel (#WEFT_LANE_F_CONTROL) may lose and duplicate messages
 *  1. A message handed to a lane (a send call that returned >= 0) arrives at the peer's receive
 *     callback **exactly once**, in any order relative to others, or the lane fails:
 *     #WEFT_LANE_EV_DOWN is reported once, after which no callback comes for that lane_ep except
 *     completions (with the error) and no send succeeds. The completion of a zcopy send or of a
 *     flush means that the peer's receive callback has returned for the message.
 *  2. A send without room returns -EAGAIN, has no side effect, and may be repeated later. No call
 *     between open() and close() waits or sleeps. The caller finds room by trying again after
 *     progress(); #weft_lane_ep.tx_room is a hint by which it may skip attempts that would fail.
 *  3. Receive callbacks run only inside ops->progress(). A callback may send on any lane. It may
 *     keep the lane's buffer if there is a descriptor: it returns #WEFT_LANE_KEEP and releases the
 *     buffer later with ops->release(). A driver that is below its low-water mark of buffers passes
 *     desc == NULL, and the callback must copy. Kept buffers never stop acknowledgements.
 *  4. Time: progress() gets `now`, and the timers of lane_eps use no other clock. Received frames
 *     are handled before timers. If a worker has not polled for a long time, RTT samples and
 *     timeouts across this gap are discarded. A peer or an owner that does not poll is slow, not
 *     dead.
 *  5. Small messages sent to one peer between two progress() calls may share a frame. They are sent
 *     at the latest at the next progress(). If nothing is unacknowledged on the lane_ep, the first
 *     is sent at once. tx_flush(), and mostly tx_posted(), send them sooner.
 *  6. The driver validates all bytes from the wire before it uses them. It counts dropped frames by
 *     reason.
 *  7. The driver reports events of the port or the device: #weft_lane_iface_event. A lost link ends
 *     no lane_ep by itself, because it may be back in a second. A device that is gone or needs a
 *     reset ends all its lane_eps at once, with message text that names the device and the cause.
 *  8. An owner need not poll all the time: with arm(), it may sleep until wait_fd() is readable or
 *     until the time that arm() returned. No event is lost in between: an event before arm() makes
 *     arm() return -EBUSY, an event after it makes the descriptor readable.
 *
 * Threads: an iface and its lane_eps belong to their worker's thread. With WEFT_THREAD_MULTI or
 * WEFT_HEARTBEAT any thread with the worker's lock calls them. query(), open(), close() and the
 * functions of registrations (mem_...) are called under a lock of the context, the latter by any
 * thread.
 *
 * Units: bytes, seconds (double), ns (`_ns`), bytes per second.
 */
#ifndef WEFT_LANE_H
#define WEFT_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/platform.h"
#include "lane_attr.h"
#include "weft.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_LANE_ABI 26u

#define WEFT_LANE_AM_MAX 32 /**< the ids of messages (am_id) are 0..31 */
/** weft_lane_iface.domain of an iface that registers no memory, or whose driver has no mem_key() */
#define WEFT_NO_DOMAIN 0xff

struct weft_lane_iface;
struct weft_lane_ep;
struct weft_mem_lane; /* a registration; each driver defines its own */

/* ------------------------------------------------------------------ events */

enum weft_lane_event {
	WEFT_LANE_EV_UP,   /**< the connection is made; status 1: worse than configured, else 0 */
	WEFT_LANE_EV_DOWN, /**< the lane has failed: status is the error */
	/**
	 * the peer closed the connection. All its messages have been delivered. Sends of this end
	 * that the peer has not acknowledged end with -ECONNRESET. A control channel also reports
	 * this when it ends passive lane_eps that are idle or too many
	 */
	WEFT_LANE_EV_GONE,
	/**
	 * Only for lanes with ep_quiesce(): the lane may be dead. Retransmitted sends are not
	 * acknowledged, a probe was not answered, or the port has lost its link. The event is
	 * repeated while that is so. @p status 1: frames of the peer arrive, but acknowledge
	 * nothing. @p status < 0: the lane has failed, and #WEFT_LANE_EV_DOWN follows with this
	 * status unless ep_quiesce() or ep_destroy() is called in the callback. -ETIMEDOUT means
	 * that silence is the only evidence
	 */
	WEFT_LANE_EV_SUSPECT,
	/**
	 * weft_lane_ops.ep_best_msg() has changed; status 1: it is smaller; 0: it is larger.
	 * Longer messages are still accepted, up to max_msg
	 */
	WEFT_LANE_EV_SIZE,
};

/**
 * Reports a lane event, inside progress(). @p text is for humans: device, peer, and for a failure
 * the cause. With EV_UP and EV_SIZE a @p status of 1 means that the text is a warning: the lane
 * works, but not as configured, for example with smaller frames.
 */
typedef void (*weft_lane_event_cb)(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev,
				   int status, const char *text);

enum weft_lane_iface_event {
	/** the link is lost; lane_eps stay. A repetition before LINK_UP has no effect */
	WEFT_LANE_IFACE_EV_LINK_DOWN,
	/** the link is back, or is up for the first time after open() */
	WEFT_LANE_IFACE_EV_LINK_UP,
	/** attr.bandwidth has changed while the link was up */
	WEFT_LANE_IFACE_EV_SPEED,
	/**
	 * The device is gone, or unusable before a reset. Every lane_ep fails right after this
	 * event: EV_SUSPECT if it has ep_quiesce(), then EV_DOWN. Connecting is refused, and
	 * is_reachable() returns the reason. Frames that waited to be sent are dropped. The iface
	 * can only be closed. Later events of the iface have no effect.
	 */
	WEFT_LANE_IFACE_EV_ENDED,
};

/**
 * Reports an event of an iface as a whole, inside progress(). The worker writes the log line. It
 * begins with the iface's name and device, and ends with @p text.
 *
 * @param text  LINK_UP and SPEED: the speed, "10 Gb/s"; LINK_DOWN: the cause if it is known; "" =
 *   no text. ENDED: message text with the cause and the remedy
 */
typedef void (*weft_lane_iface_event_cb)(void *arg, struct weft_lane_iface *iface,
					 enum weft_lane_iface_event ev, const char *text);

/* ------------------------------------------------------------------ boot addresses */

/*
 * The form of a driver's interface in a boot address (weft_worker_get_boot_address()). A boot
 * address has room for one network interface only. It omits everything that can be requested from
 * the worker once it is reached.
 */

#define WEFT_LANE_BOOT_MAX 19 /**< most bytes of an interface in a boot address */

/** The driver whose pack() has written the bytes. Drivers that are not part of Weft use 6 and 7. */
enum weft_lane_boot_kind {
	WEFT_LANE_BOOT_NONE = 0,
	WEFT_LANE_BOOT_DPDK = 1,
	WEFT_LANE_BOOT_ROCE_UD = 2,
	/**
	 * An interface that reaches this host only (shm). It has no bytes, and a network interface
	 * may be in the same address. Peers of the same running system try it.
	 */
	WEFT_LANE_BOOT_HOST = 3,
	WEFT_LANE_BOOT_UDP = 4,
	WEFT_LANE_BOOT_OTHER = 6,
};

struct weft_lane_boot {
	uint8_t variant; /**< the driver's, 0..7 */
	uint8_t length;  /**< bytes that are used */
	uint8_t bytes[WEFT_LANE_BOOT_MAX];
};

/** For drivers whose interfaces a boot address may contain. They have #WEFT_LANE_F_TO_IFACE. */
struct weft_lane_boot_ops {
	uint8_t kind; /**< enum weft_lane_boot_kind */
	uint8_t also; /**< kind of weft_lane_driver.counterpart, if unpack() takes it; 0 = none */
	/** Write the bytes from which unpack() can restore get_address() of the interface. */
	void (*pack)(struct weft_lane_iface *iface, struct weft_lane_boot *boot);
	/**
	 * The inverse, at the peer: make an address that is_reachable() and ep_connect() accept.
	 * @param iface     the caller's, whose values replace those that the boot address omits
	 * @param iface_id  weft_lane_open.iface_id of the remote interface
	 * @param addr      out: attr.dev_addr_len bytes
	 * @return 0 or -EINVAL
	 */
	int (*unpack)(struct weft_lane_iface *iface, const struct weft_lane_boot *boot,
		      uint64_t iface_id, void *addr);
};

/* ------------------------------------------------------------------ messages and completions */

/**
 * Completion of a zero-copy send, a flush or a native operation. The lane uses it until done()
 * runs, inside progress(), ep_reap(), ep_destroy() or close(). @p status is 0; -ECANCELED: the
 * lane_ep was destroyed, or a native operation was not carried out and may be repeated over another
 * lane; -EKEYREJECTED: the peer has no such key; -ERANGE: the key's memory is shorter; -EACCES:
 * access was refused, and the reason may be any of these; -EFAULT: a fault of local memory; or the
 * error of the lane.
 */
struct weft_lane_comp {
	void (*done)(struct weft_lane_comp *comp, int status);
};

/** The most bytes that ep_quiesce() writes. */
#define WEFT_LANE_STATE_MAX 520

/**
 * Takes one message that the peer has not received; the callback copies it. With @p msg NULL there
 * is only @p comp, that of a flush: it is due when all messages before it have arrived.
 * @param comp  completion that is due when another lane has delivered the message; NULL = none
 */
typedef void (*weft_lane_reap_cb)(void *arg, uint8_t am_id, const void *msg, size_t length,
				  struct weft_lane_comp *comp);

/** The key of an endpoint's further connections, from ep_export(). It is in memory for secrets. */
struct weft_lane_key {
	const struct weft_lane_ops *ops; /**< operations of the lane_ep that exported the key */
	uint64_t bytes[16];              /**< content, which the driver defines */
};

#define WEFT_LANE_KEEP 1 /**< the receive callback keeps the buffer until ops->release() */

/**
 * Receive callback. @p data is valid during the call. If the callback returns #WEFT_LANE_KEEP, data
 * is valid until release(desc).
 *
 * @param arg   weft_lane_open.arg
 * @param lane_ep   the message came over it. lane_ep->user is NULL on a passively accepted
 *   connection until the protocol layer sets it
 * @param am_id 0 .. WEFT_LANE_AM_MAX-1, checked by the driver
 * @param desc  handle for keeping the buffer; NULL = the callback must copy
 * @return 0, or WEFT_LANE_KEEP
 */
typedef int (*weft_lane_recv_cb)(void *arg, struct weft_lane_ep *lane_ep, uint8_t am_id,
				 const void *data, size_t length, void *desc);

/** A received message: arguments of the receive callback. */
struct weft_lane_msg {
	const void *data;
	uint32_t length;
};

/** The maximum number of messages of one call of weft_lane_recv_batch_cb. */
#define WEFT_LANE_BATCH 32

/**
 * Takes messages of one frame, all with weft_lane_open.batch_id. The callback has the same effect
 * as the receive callback for each message in turn with desc == NULL, at a lower cost. It may leave
 * messages: the driver passes those to the receive callback.
 *
 * @param num  1 to WEFT_LANE_BATCH
 * @return number of messages taken, from the first one on. The call may have destroyed the lane_ep
 */
typedef unsigned int (*weft_lane_recv_batch_cb)(struct weft_lane_ep *lane_ep,
						const struct weft_lane_msg *msgs, unsigned int num);

/**
 * Takes a message in memory that another process can change during the call, as that of a shared
 * ring. The callback checks the header in @p head, which is private. It copies each byte behind the
 * header from @p shared to its destination, and reads no other bytes there.
 *
 * @param head    private copy of the message's first @p head_len bytes
 * @param shared  the whole message of @p length bytes, its header included
 * @return false: nothing was done. The driver then copies the message, and hands it over by the
 *   receive callback
 */
typedef bool (*weft_lane_recv_in_place_cb)(struct weft_lane_ep *lane_ep, uint8_t am_id,
					   const void *head, size_t head_len, const void *shared,
					   size_t length);

/** Writable bytes that a driver provides in front of a piece for weft_lane_split_fn. */
#define WEFT_LANE_PIECE_ROOM 64

/**
 * A received message that is in several buffers is delivered as several messages, if it can be
 * split. This function writes a header in front of the piece, the bytes of the next buffer.
 *
 * @param msg   the message's first bytes, #WEFT_LANE_PIECE_ROOM at least
 * @param had   bytes of the message before the piece
 * @param piece has #WEFT_LANE_PIECE_ROOM writable bytes in front of it; NULL = write nothing
 * @return length of the header; 0 = this message must be contiguous
 */
typedef size_t (*weft_lane_split_fn)(uint8_t am_id, const void *msg, size_t had, void *piece);

/** Arguments of the protocol layer for opening an iface. */
struct weft_lane_open {
	const char *resource; /**< name of a resource, e.g. "0" or "net_memif0" */
	/** options of the WEFT_LANES item, e.g. "ip=10.0.0.1/24,mtu=9000"; "" = none */
	const char *options;
	/** random, non-zero; handshakes contain it */
	uint64_t worker_id;
	/**
	 * random, non-zero, made from the worker's secret: peers identify the iface by it on the
	 * wire. It is known to processes that have the worker's address
	 */
	uint64_t iface_id;
	const struct weft_platform *platform;
	const struct weft_lane_conf *conf;
	double copy_bw; /**< bytes/s at which this CPU copies; 0 = not known */
	weft_lane_recv_cb recv;
	/** the driver may call it for messages with batch_id; NULL = each message goes to recv */
	weft_lane_recv_batch_cb recv_batch;
	uint8_t batch_id; /**< am_id of the messages that recv_batch takes */
	weft_lane_recv_in_place_cb recv_in_place; /**< NULL = the driver copies each message */
	weft_lane_split_fn split;                 /**< NULL = all messages must be contiguous */
	weft_lane_event_cb event;
	/** NULL = events of the iface are not reported */
	weft_lane_iface_event_cb iface_event;
	void *arg;
	struct weft_lane_report report;
};

/**
 * Pack callback of am_bcopy(): write at most @p max bytes. It has no side effect, because it may be
 * called again for the same message after -EAGAIN.
 * @return bytes written (> 0), or a negative error, which am_bcopy() returns
 */
typedef ssize_t (*weft_lane_pack_cb)(void *dst, size_t max, void *arg);

/** Native atomics; all return the old value. */
enum weft_lane_amo { WEFT_LANE_AMO_ADD, WEFT_LANE_AMO_CSWAP };

/**
 * Operations of an iface. Functions that are not optional are required, except those of feature
 * bits that the iface lacks. Arguments beyond the limits of attr and max_msg give -EMSGSIZE or
 * -EINVAL.
 */
struct weft_lane_ops {
	/* ---- hot */
	/**
	 * Copy header and payload into a frame. There is no completion: the lane does not use the
	 * caller's buffers after the call.
	 * @return 0, -EAGAIN, or the lane's error
	 */
	int (*am_short)(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *hdr,
			size_t hdr_len, const void *payload, size_t length);
	/**
	 * Let @p pack write the message into a frame. @return bytes packed, -EAGAIN, pack's error,
	 * or the lane's error
	 */
	ssize_t (*am_bcopy)(struct weft_lane_ep *lane_ep, uint8_t am_id, weft_lane_pack_cb pack,
			    void *arg);
	/**
	 * Send the header, which is copied, and the iov in place. After a result of 0 the memory
	 * belongs to the lane until comp->done(). Its status 0 means that the peer has acknowledged
	 * the message **and** the hardware has released the memory. @p mem is the registration that
	 * covers the iov, or NULL. A driver may copy bytes that the hardware cannot send in place.
	 * @return 0, -EAGAIN, or the lane's error
	 */
	int (*am_zcopy)(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *hdr,
			size_t hdr_len, const struct iovec *iov, unsigned int iovcnt,
			struct weft_mem_lane *mem, struct weft_lane_comp *comp);
	/**
	 * Send the frames that are still open for coalescing. The worker calls it at the end of its
	 * progress call for each iface with tx_open. Messages that callbacks and queues have sent
	 * therefore leave in the same call. NULL = the driver collects nothing, and never sets
	 * tx_open.
	 */
	void (*tx_flush)(struct weft_lane_iface *iface);
	/**
	 * Optional (NULL = tx_flush()): a call outside progress() has posted an operation with
	 * #WEFT_OP_F_POLLED, on a worker with #WEFT_WORKER_F_SEND_NOW. Frames leave as by
	 * tx_flush(). Where each of them costs far more than a message, frames behind
	 * unacknowledged ones may wait for further messages, until the next progress() or
	 * tx_flush() at the latest.
	 */
	void (*tx_posted)(struct weft_lane_iface *iface);
	/**
	 * Receive, handle timers, transmit. @return events handled; 0 only if no frame is open for
	 * coalescing
	 *
	 * The timers of a frame that was sent outside progress() start with the `now` of the next
	 * progress(). The frame gives no RTT sample.
	 */
	unsigned int (*progress)(struct weft_lane_iface *iface, uint64_t now_ns);
	/**
	 * Release a buffer that a receive callback kept. This is also allowed after the lane_ep is
	 * destroyed, until close().
	 */
	void (*release)(struct weft_lane_iface *iface, void *desc);

	/* ---- remote memory (NULL without the feature bit) */
	/**
	 * Read remote memory into @p iov, which is inside @p mem. With #WEFT_LANE_F_GET_ANY @p iov
	 * may be any memory, and @p mem may be NULL. Native reads and writes name remote memory by
	 * the registration's key (weft_lane_driver.mem_key()) and a byte offset from its start, so
	 * the wire carries no addresses. After a result of 0 the memory belongs to the lane until
	 * comp->done(). Its status 0 means that the memory has the data. The operation is not
	 * ordered against others.
	 * @return 0, -EAGAIN (outstanding operations are bounded), or the lane's error
	 */
	int (*get_zcopy)(struct weft_lane_ep *lane_ep, const struct iovec *iov, unsigned int iovcnt,
			 struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
			 struct weft_lane_comp *comp);
	/**
	 * Write remote memory. Arguments and result are as for get_zcopy(). comp->done() may mean
	 * that only the remote device has the bytes. They are visible to a remote CPU once it has
	 * received a message that was sent afterwards over this lane_ep. A message over a lane_ep
	 * of another device may arrive before the bytes are visible.
	 */
	int (*put_zcopy)(struct weft_lane_ep *lane_ep, const struct iovec *iov, unsigned int iovcnt,
			 struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
			 struct weft_lane_comp *comp);
	/**
	 * Change 8 bytes of remote memory. Arguments and result are as for get_zcopy(). @p result
	 * (host order, any memory) has the old value at comp->done() with status 0. @p compare:
	 * CSWAP only.
	 */
	int (*amo64)(struct weft_lane_ep *lane_ep, enum weft_lane_amo op, uint64_t operand,
		     uint64_t compare, uint64_t *result, uint64_t remote_offset, uint64_t key,
		     struct weft_lane_comp *comp);

	/* ---- connection */
	/**
	 * Start connecting to a remote iface whose get_address() bytes are @p addr. The call
	 * returns at once; EV_UP or EV_DOWN follows. Each ep_connect() makes a connection of its
	 * own: one active lane_ep here, one passive there. The driver never merges two connections;
	 * the protocol layer resolves crossed connects. Messages of a loopback connection (own
	 * iface's address) arrive on the passive lane_ep, or on the same one with
	 * #WEFT_LANE_F_LOOPBACK. When the peer connects first, the driver makes a lane_ep itself.
	 * EV_UP is reported for this lane_ep too, with lane_ep->user NULL and before its first
	 * message. The protocol layer must ep_destroy() every lane_ep.
	 * @return 0, or a negative error: there is no lane_ep, and no event follows
	 */
	int (*ep_connect)(struct weft_lane_iface *iface, const void *addr, size_t len, void *user,
			  struct weft_lane_ep **lane_ep);
	/**
	 * Replaces ep_connect() with #WEFT_LANE_F_TO_EP: make a lane_ep that is not connected yet,
	 * so that its address can be sent to the peer. It is not passive, whichever side connects
	 * first. Messages may arrive as soon as the peer is connected to it.
	 */
	int (*ep_create)(struct weft_lane_iface *iface, void *user, struct weft_lane_ep **lane_ep);
	/** Write attr.ep_addr_len bytes, little-endian: the peer's lane_ep connects by them. */
	void (*ep_get_address)(struct weft_lane_ep *lane_ep, void *buf);
	/**
	 * Connect to the remote lane_ep: its iface's get_address() bytes and its ep_get_address()
	 * bytes. Called once for a lane_ep. Messages of the peer are received from then on. EV_UP
	 * does not mean that the peer has connected too; only wire-up messages show that. @return
	 * 0: EV_UP or EV_DOWN follows, from progress(); or an error, such as unusable addresses
	 */
	int (*ep_connect_ep)(struct weft_lane_ep *lane_ep, const void *dev_addr, size_t dev_len,
			     const void *ep_addr, size_t ep_len);
	/**
	 * Close the connection. The call is allowed inside callbacks. No further receive or event
	 * callback comes for the lane_ep (remaining messages of the current frame included). The
	 * peer is notified. Open completions get -ECANCELED: those whose memory the hardware holds
	 * run later, from progress() or close(); others before the call returns. The driver frees
	 * the lane_ep itself, never inside a callback. Messages sent before are still transmitted,
	 * as far as the peer accepts them soon: the last one often reports that the endpoint is
	 * closed, and a worker that is destroyed cannot wait for it.
	 */
	void (*ep_destroy)(struct weft_lane_ep *lane_ep);
	/**
	 * Optional (NULL = not known): is the far end of @p lane_ep the iface with this address?
	 * The protocol layer does not trust the address that a peer reports. True requires that the
	 * lane itself has proof on the wire: the far end receives what is sent to this address.
	 */
	bool (*ep_is_from)(struct weft_lane_ep *lane_ep, const void *addr, size_t len);
	/**
	 * Optional (NULL = all peers count as one host): a number for the host at the far end of @p
	 * lane_ep. It is the same for all connections from that host, and is made from what the
	 * lane itself has observed on the wire. The worker limits by it what one host can take.
	 */
	uint64_t (*ep_host)(const struct weft_lane_ep *lane_ep);
	/**
	 * Optional (NULL = not possible): probe the far end of a lane_ep that is up, now. If the
	 * reply shows that the connection does not exist there any more, EV_DOWN follows at once.
	 * Otherwise the call has no effect.
	 */
	void (*ep_check)(struct weft_lane_ep *lane_ep);
	/**
	 * Optional: write why a lane_ep is not up yet, when the caller's timeout is over. The text
	 * names the missing thing and the remedy, as that of EV_DOWN does; "" = no text.
	 */
	void (*ep_waits_for)(const struct weft_lane_ep *lane_ep, char *buf, size_t size);
	/**
	 * Call comp->done(0) once all messages sent before are acknowledged. It gets an error
	 * instead if the lane_ep ends first. @return 0: done() will run; #WEFT_LANE_IDLE: nothing
	 * is outstanding, and comp is not used; -ENOMEM; or the lane's error
	 */
	int (*ep_flush)(struct weft_lane_ep *lane_ep, struct weft_lane_comp *comp);

	/* ---- further connections of an endpoint whose frames are sealed, optional, all or none */
	/**
	 * Write the key of further connections between the same two workers. Both ends of a lane_ep
	 * that is up, or has been, get the same key, and no other process has it. All ifaces with
	 * the same ep_export() take the key.
	 * @return 0; -ENOTSUP: frames are not sealed; -ENOTCONN; -EIO
	 */
	int (*ep_export)(struct weft_lane_ep *lane_ep, struct weft_lane_key *key);
	/**
	 * Accept connections that are made with @p key, until key_forget() or close(). The caller
	 * keeps the key in its place until then. A second call has no effect. @return 0 or -ENOMEM
	 */
	int (*key_accept)(struct weft_lane_iface *iface, const struct weft_lane_key *key);
	/** Accept no more connections with @p key. Those that exist stay. */
	void (*key_forget)(struct weft_lane_iface *iface, const struct weft_lane_key *key);
	/** As ep_connect(), for lane @p lane of an endpoint whose peer accepts @p key. */
	int (*ep_connect_key)(struct weft_lane_iface *iface, const void *addr, size_t len,
			      void *user, const struct weft_lane_key *key, uint8_t lane,
			      struct weft_lane_ep **lane_ep);
	/** Are the frames of @p lane_ep sealed with keys derived from @p key, for lane @p lane? */
	bool (*ep_has_key)(const struct weft_lane_ep *lane_ep, const struct weft_lane_key *key,
			   uint8_t lane);

	/* ---- failover, optional, all three or none; without it a failed lane ends its ep */
	/**
	 * @return when the last valid frame of the peer arrived over this lane_ep, by a clock of
	 * the driver's own. A caller may only compare it with an earlier result.
	 */
	uint64_t (*ep_seen)(const struct weft_lane_ep *lane_ep);
	/**
	 * Stop a lane_ep that is up, for good: it delivers, accepts and reports nothing any more.
	 * Unacknowledged sends stay for ep_reap(), or else for ep_destroy(). The call is allowed
	 * inside #WEFT_LANE_EV_SUSPECT, and inside receive callbacks of other lane_eps.
	 * @param[out] state  which messages were received, for the peer's ep_reap(): at most
	 *   #WEFT_LANE_STATE_MAX bytes, little-endian
	 * @return bytes of the state, > 0; -ENOTCONN: the lane_ep is not up; or an error of the
	 *   device
	 */
	int (*ep_quiesce)(struct weft_lane_ep *lane_ep, void *state);
	/**
	 * After ep_quiesce(), once: pass the messages that the peer has not received to @p cb, in
	 * the order of sending. Completions of messages that it has received run as usual. Native
	 * reads, writes and atomics under way end. They end with -ECANCELED if they cannot take
	 * effect at the peer any more, so that they may be repeated over another lane. They end
	 * with another error if their outcome is unknown.
	 * @param state  of the peer, @p length bytes from the wire: not trusted
	 * @return 0; -EPROTO: the state contradicts what the peer has acknowledged, or what was
	 *   sent, and nothing was handed out
	 */
	int (*ep_reap)(struct weft_lane_ep *lane_ep, const void *state, size_t length,
		       weft_lane_reap_cb cb, void *arg);

	/* ---- waiting, optional: without wait_fd() an owner that waits polls the iface */
	/**
	 * A descriptor that is readable, from arm() on, as soon as progress() has something to do
	 * other than timers; the same one until close(). Spurious readability is allowed. @return
	 * the descriptor, or a negative error: nothing wakes the owner for this iface, so the owner
	 * polls it, at the latest after WEFT_WAIT_SLEEP
	 */
	int (*wait_fd)(struct weft_lane_iface *iface);
	/**
	 * The owner is about to sleep. Delayed acknowledgements are sent. Messages that wait to
	 * share a frame are sent, too, or cause -EBUSY.
	 *
	 * @param now_ns  time now, as in progress()
	 * @param due_ns  lowered to the time by which progress() must be called in any case. It may
	 *   be early, never late
	 * @return 0; -EBUSY: there is something to do at once, so progress() must be called first
	 */
	int (*arm)(struct weft_lane_iface *iface, uint64_t now_ns, uint64_t *due_ns);
	/** The owner is awake: called after an arm() that returned 0, before progress(). */
	void (*disarm)(struct weft_lane_iface *iface);

	/**
	 * Optional (NULL = peers of this driver need no heartbeat): send all connected peers a
	 * frame that shows that the process is alive. A thread of the library calls this under the
	 * worker's lock while the owner computes. Nothing is received, and no callback runs.
	 */
	void (*beat)(struct weft_lane_iface *iface);

	/* ---- cold */
	/** Write attr.dev_addr_len bytes, little-endian, by which peers reach the iface. */
	void (*get_address)(struct weft_lane_iface *iface, void *buf);
	/** Is the iface with this address reachable? @return 0, or a negative error with @p why */
	int (*is_reachable)(struct weft_lane_iface *iface, const void *addr, size_t len, char *why,
			    size_t why_len);
	/** Write an address, of any iface of this driver, as text. */
	void (*print_address)(const void *addr, size_t len, char *buf, size_t size);
	/** Is there a link now? A driver that detects changes also reports them by events. */
	bool (*link_up)(struct weft_lane_iface *iface);
	/** Optional: write why there is no link, and the remedy; "" = not known. */
	void (*link_text)(struct weft_lane_iface *iface, char *buf, size_t size);
	/**
	 * Optional (NULL = nothing is measured): results of measurements, once the lane_ep is up.
	 * Protocols are chosen by these instead of by the attributes that the user has not set.
	 */
	void (*ep_measured)(struct weft_lane_ep *lane_ep, struct weft_lane_measured *out);
	/**
	 * Optional (NULL = max_msg): the largest message that the path now carries efficiently. It
	 * is less than max_msg if the path carries smaller frames than when the lane_ep came up.
	 * #WEFT_LANE_EV_SIZE reports changes.
	 */
	uint32_t (*ep_best_msg)(const struct weft_lane_ep *lane_ep);
	/** Write text about the lane_ep: peer, state, RTT. */
	void (*ep_print)(struct weft_lane_ep *lane_ep, char *buf, size_t size);
	/** Pass each counter of the iface to @p cb. Its name does not contain that of the iface. */
	void (*counters)(struct weft_lane_iface *iface, weft_lane_counter_cb cb, void *arg);
	/**
	 * Close the iface and free it. Completions that have not run yet run in the call, with
	 * -ECANCELED.
	 */
	void (*close)(struct weft_lane_iface *iface);
};

#define WEFT_LANE_IDLE 1 /**< ep_flush(): nothing is outstanding */

/** Base of an open iface; the driver embeds it as its first member and fills ops, attr and name. */
struct weft_lane_iface {
	const struct weft_lane_ops *ops;
	const struct weft_lane_driver *driver;
	void *user; /**< protocol layer: the worker */
	/** protocol layer: number of attr.domain in the context, or WEFT_NO_DOMAIN */
	uint8_t domain;
	/** protocol layer: 1 + number of attr.domain, also without mem_key(); 0 = none */
	uint8_t mem_domain;
	/**
	 * driver: a frame waits for tx_flush(). While the bit is clear the worker skips the call,
	 * because an indirect call that does nothing costs as much as a small message
	 */
	bool tx_open;
	/**
	 * driver: progress() has nothing to do until the next send or connect over this iface,
	 * which clears the bit. Until then the worker does not call progress()
	 */
	bool quiet;
	/**
	 * protocol layer: the worker polls other ifaces, too, so each poll delays their messages
	 */
	bool beside;
	/** driver: "dpdk:0". The texts here and in attr are valid until close() */
	const char *name;
	/** driver: text about how the iface was set up, and by which rule. NULL = none */
	const char *note;
	struct weft_lane_attr attr;
};

/** Base of a lane ep; the driver embeds it as its first member. Each member has one writer. */
struct weft_lane_ep {
	struct weft_lane_iface *iface;   /**< driver: over which it was made */
	const struct weft_lane_ops *ops; /**< driver: iface->ops; saves a load on the hot path */
	void *user;    /**< protocol layer: its endpoint; NULL on new passive lane_eps */
	uint8_t index; /**< protocol layer: lane index in its endpoint */
	bool up;       /**< driver: it is connected, and has not ended or been stopped */
	bool passive;  /**< driver: the peer's connect has made it */
	bool tx_room;  /**< driver: a hint; false = a send would now return -EAGAIN */
	/** driver: payload bytes sent and not acknowledged, by which striping chooses */
	uint32_t queued;
	uint32_t rtt_ns; /**< driver: smoothed round trip; 0 = not known yet */
	/**
	 * driver: limit of every message, header included, in addition to attr.max_short, max_bcopy
	 * and max_zcopy. A peer or a path that takes only smaller frames lowers it. Set before
	 * EV_UP; longer sends return -EMSGSIZE
	 */
	uint32_t max_msg;
	uint32_t retransmits; /**< driver: frames sent again */
	/**
	 * driver: feature bits of native access that the iface has and this lane_ep lacks, because
	 * the peer or the system does not permit the access. Set before EV_UP. Bits may be added
	 * later, when the system withdraws the permission. Accepted operations then end with
	 * -ECANCELED
	 */
	uint32_t lacks;
};

/** A resource that a driver found. */
struct weft_lane_resource {
	const char *name; /**< its name in WEFT_LANES, after "driver:" */
	const char *why;  /**< NULL = usable; else the reason why it is not */
	/** it reaches this host only: "driver:*" opens it only if no other lane could be opened */
	bool inside;
};

/** Takes a resource from query(), and copies its texts. @return 0 or -ENOMEM */
typedef int (*weft_lane_resource_cb)(void *arg, const struct weft_lane_resource *resource);

/** A driver. lib/context.c has the table of Weft's own ones. (Paths are those of the sources.) */
struct weft_lane_driver {
	const char *name; /**< 1 to 15 lower-case letters, digits, '_', '-' */
	uint32_t abi;     /**< WEFT_LANE_ABI */
	/**
	 * Optional: the name of another driver whose lanes have the same frames and addresses.
	 * Interfaces of the two drivers reach each other.
	 */
	const char *counterpart;
	bool captures; /**< its lanes pass their frames to captures */
	/** "*" in WEFT_LANES opens its lanes only if the worker has no other lane to other hosts */
	bool fallback;
	bool seals; /**< its lanes seal their frames if there is a job key */
	/**
	 * List resources: call @p add for each, until it returns an error. The call initialises
	 * what the driver needs for that, such as the EAL.
	 * @return 0, the error of @p add, or a negative error (the driver logs why)
	 */
	int (*query)(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg);
	/**
	 * Open an iface. On error the call leaves nothing allocated, and @p why has a text that
	 * names the cause and the remedy, or is empty.
	 * @return 0, or a negative error
	 */
	int (*open)(const struct weft_lane_open *params, struct weft_lane_iface **iface, char *why,
		    size_t why_len);
	/**
	 * Optional (NULL = no registration): register memory for zcopy in the domain of @p iface.
	 * @param access  WEFT_LANE_ACCESS_*; 0 = the lane only reads the memory. Peers get no other
	 *   access by the key; an RDMA device enforces this, and shm's initiator checks it
	 * @param why     gets a text on error: device, cause and remedy. The driver logs nothing,
	 *   because this may be called for every message
	 * @return 0; -EFAULT, -EACCES or -EPERM may mean that this process itself may not write the
	 *   memory: the caller tries without #WEFT_LANE_ACCESS_LOCAL_WRITE; or another error
	 */
	int (*mem_register)(struct weft_lane_iface *iface, void *addr, size_t len,
			    unsigned int access, struct weft_mem_lane **mem, char *why,
			    size_t why_len);
	void (*mem_deregister)(struct weft_lane_iface *iface, struct weft_mem_lane *mem);
	/**
	 * Needed by drivers whose ifaces read or write remote memory: @return the key by which the
	 * peer's lanes of the same driver access @p mem. NULL: registrations are for am_zcopy()
	 * alone, and the lane copies if one fails.
	 */
	uint64_t (*mem_key)(struct weft_lane_iface *iface, struct weft_mem_lane *mem);
	/**
	 * Optional: the driver of the control channel (#WEFT_LANE_F_CONTROL) for the same
	 * resources. After the worker has opened an iface of this driver, it also opens one of that
	 * driver, with the same resource and options.
	 */
	const struct weft_lane_driver *control;
	const struct weft_lane_boot_ops *boot; /**< optional */
	/** Names of the options of open(), comma-separated, for error messages. */
	const char *options;
	/** Optional: descriptions of the counters that counters() reports, up to a NULL name. */
	const struct weft_lane_counter *counters;
};

/**
 * Register a driver for the contexts that are created from now on. It is behind Weft's own drivers
 * in their order. Its lanes are named "NAME:..." in WEFT_LANES. Any thread may call this.
 * @param driver  static storage: a driver is never removed
 * @return 0, also when this driver is registered already; -EINVAL (a function or the name is
 *   missing, or the name is not valid in WEFT_LANES); -EPROTONOSUPPORT (compiled for another
 *   WEFT_LANE_ABI); -EEXIST (another driver has the name); -ENOSPC (#WEFT_LANE_DRIVERS_MAX)
 */
WEFT_API int weft_lane_driver_add(const struct weft_lane_driver *driver);

#define WEFT_LANE_DRIVERS_MAX 8 /**< drivers that can be added */

#ifdef __cplusplus
}
#endif

#endif /* WEFT_LANE_H */
