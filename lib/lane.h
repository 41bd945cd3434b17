/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lane.h
 * The contract between the protocol layer (lib/) and a lane driver (drivers/...). A third driver
 * can be written from this file, lane_attr.h, lane_boot.h and lane_event.h, which it includes.
 * Installed as weft/lane.h: weft_lane_driver_add() makes a driver that is not part of Weft known.
 *
 * What is promised to such drivers: nothing but WEFT_LANE_ABI. It changes with every change of this
 * file that a driver can see, which any version of Weft may bring, and a driver with another number
 * is refused: it has to be compiled, and perhaps changed, with the headers of the library it runs
 * with. Only WEFT_API functions may be called.
 *
 * Words: a **driver** is code; a **resource** is something it found that could be opened (a DPDK
 * port, a verbs device port); an **iface** is a resource opened for one worker; a **lane ep**
 * (lane_ep) is a connection over one iface to one remote iface.
 *
 * What a lane promises
 *  1. A message handed to a lane (a send call that returned >= 0) arrives at the peer's receive
 *     callback **exactly once**, in any order relative to others, or the lane fails:
 *     #WEFT_LANE_EV_DOWN is reported once, after which no callback comes for that lane_ep except
 *     completions (with the error) and no send succeeds. An acknowledgement (completion of a zcopy
 *     send or of a flush) means that the peer's receive callback has returned for the message.
 *  2. No room is an answer: a send returns -EAGAIN, has no side effect, and may be tried again
 *     later. It is never a wait. No call sleeps. Room is looked for by trying again after
 *     progress(); #weft_lane_ep.tx_room is a hint that may skip useless tries.
 *  3. Receive callbacks run only inside ops->progress(). A callback may send on any lane. It may
 *     keep the lane's buffer (return #WEFT_LANE_KEEP when the descriptor is given) and give it back
 *     later with ops->release(); when the driver is below its low-water mark of buffers it passes
 *     desc == NULL and the callback must copy. Kept buffers never stop acknowledgements.
 *  4. Time: progress() gets `now`, logic never reads a clock. Receive is handled before timers, and
 *     RTT samples or timeouts across a gap between two progress calls are discarded: a peer, or an
 *     owner, that does not poll is slow, not dead.
 *  5. Small messages sent to one peer between two progress() calls may share a frame; they leave at
 *     the latest at the next progress(). When nothing is unacknowledged on the lane_ep the first
 *     leaves at once.
 *  6. Nothing from the wire is believed before the driver has validated it; what is dropped is
 *     counted by reason.
 *
 *  7. What happens to the port or the device is reported: #weft_lane_iface_event. A link that is
 *     lost ends no lane_ep by itself (it may be back in a second); a device that is gone or wants a
 *     reset ends all of them at once, with message text that names it and the cause.
 *  8. An owner need not poll all the time: with arm(), it may sleep until wait_fd() is readable or
 *     the time that arm() names has come. Nothing is lost in between: what came before arm() makes
 *     arm() say -EBUSY, what comes later makes the descriptor readable.
 *
 * Threads: an iface and its lane_eps belong to their worker's thread; the protocol layer holds the
 * worker's lock where there is one. query(), open() and close() are called under a context-wide
 * lock.
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
#include "lane_boot.h"
#include "lane_event.h"
#include "weft.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_LANE_ABI 15u

#define WEFT_LANE_AM_MAX 32 /**< active-message ids of the protocol layer are 0..31 */
/** weft_lane_iface.domain: nothing is registered, or peers need no keys */
#define WEFT_NO_DOMAIN 0xff

struct weft_lane_iface;
struct weft_lane_ep;
struct weft_mem_lane; /* driver's own per-registration state */

/**
 * Zero-copy / flush completion. Owned by the caller until done() runs; done() runs inside
 * progress() or ep_destroy(). @p status is 0; -ECANCELED: not carried out, and may be repeated over
 * another lane; -EKEYREJECTED: the peer has no such key; -EACCES: the device refused access without
 * a reason; -EFAULT: own memory; or why the lane failed. msg/lane_status.h translates it.
 */
struct weft_lane_comp {
	void (*done)(struct weft_lane_comp *comp, int status);
};

/** Bytes that ep_quiesce() writes at most. */
#define WEFT_LANE_STATE_MAX 520

/**
 * One message that the peer has not got, to be copied; or, with @p msg NULL, only a completion: of
 * a flush, due when all messages before it have arrived.
 * @param comp  of the message, due when it has arrived; NULL = nobody waits
 */
typedef void (*weft_lane_reap_cb)(void *arg, uint8_t am_id, const void *msg, size_t length,
				  struct weft_lane_comp *comp);

#define WEFT_LANE_KEEP 1 /**< receive callback: I keep the buffer; release() comes later */

/**
 * Receive callback. @p data is valid during the call, or until release(desc) when the callback
 * returns #WEFT_LANE_KEEP.
 *
 * @param arg   weft_lane_open.arg
 * @param lane_ep   lane ep it came over. lane_ep->user is NULL on a passively accepted connection
 *   until the protocol layer sets it
 * @param am_id 0 .. WEFT_LANE_AM_MAX-1, checked by the driver
 * @param desc  handle for keeping the buffer; NULL = copy what you need
 * @return 0, or WEFT_LANE_KEEP
 */
typedef int (*weft_lane_recv_cb)(void *arg, struct weft_lane_ep *lane_ep, uint8_t am_id,
				 const void *data, size_t length, void *desc);

/** Bytes that a driver has in front of a piece for weft_lane_split_fn. */
#define WEFT_LANE_PIECE_ROOM 64

/**
 * A received message that lies in several buffers is delivered as several messages, if it can be
 * taken apart: this writes a header in front of the bytes that begin the next buffer.
 *
 * @param msg   the message's first bytes, #WEFT_LANE_PIECE_ROOM at least
 * @param had   bytes of the message that came before the piece
 * @param piece has #WEFT_LANE_PIECE_ROOM writable bytes in front of it; NULL = only query
 * @return length of the header; 0 = this message must be contiguous
 */
typedef size_t (*weft_lane_split_fn)(uint8_t am_id, const void *msg, size_t had, void *piece);

/** What the protocol layer gives when it opens an iface. */
struct weft_lane_open {
	const char *resource; /**< name as query() gave it, e.g. "0" or "net_memif0" */
	/**
	 * rest of the WEFT_LANES item after the resource, e.g. "ip=10.0.0.1/24,mtu=9000"; "" = none
	 */
	const char *options;
	/** random, non-zero; part of the iface's identity on the wire */
	uint64_t worker_id;
	/**
	 * random, non-zero, made from the worker's secret: what peers name the iface by on the
	 * wire. Known to those who have the worker's address
	 */
	uint64_t iface_id;
	const struct weft_platform *platform;
	const struct weft_lane_conf *conf;
	double copy_bw; /**< bytes/s at which this CPU copies; 0 = not known */
	weft_lane_recv_cb recv;
	weft_lane_split_fn split; /**< NULL = all messages must be contiguous */
	weft_lane_event_cb event;
	/** NULL = nobody wants to know */
	weft_lane_iface_event_cb iface_event;
	void *arg;
	struct weft_lane_report report;
};

/** WEFT_UDP_PORT where nobody says another: what firewalls are told to let through. */
#define WEFT_LANE_UDP_PORT 9338

/** Settings from the configuration table that drivers obey. */
struct weft_lane_conf {
	uint64_t peer_timeout_ns;    /**< WEFT_PEER_TIMEOUT */
	uint64_t connect_timeout_ns; /**< WEFT_CONNECT_TIMEOUT */
	uint64_t keepalive_ns;       /**< WEFT_KEEPALIVE_INTERVAL */
	unsigned int csum;           /**< enum weft_csum_mode */
	unsigned int cc;             /**< WEFT_CC: enum weft_cc_number */
	size_t window;               /**< WEFT_WINDOW: bytes in flight; 0 = driver's default */
	unsigned int paths;          /**< WEFT_PATHS: UDP source ports per lane; 0 = auto */
	size_t frame_size;           /**< WEFT_FRAME_SIZE: 0 = from the port */
	bool raw_ethertype;          /**< WEFT_ENCAP=ether */
	uint16_t udp_port;           /**< WEFT_UDP_PORT */
	const char *capture;         /**< WEFT_CAPTURE, or NULL */
	uint32_t recorder;           /**< WEFT_RECORDER: frames; 0 = off */
	const char *recorder_file;   /**< WEFT_RECORDER_FILE */
	const char *recorder_signal; /**< WEFT_RECORDER_SIGNAL */
	const char *eal_args;        /**< WEFT_EAL_ARGS */
	const char *ports;           /**< WEFT_PORTS */
	bool dumpcap;                /**< WEFT_DUMPCAP */
	const char *switch_path;     /**< WEFT_SWITCH: "auto", "off", or a path */
	unsigned int rx_bufs;        /**< WEFT_RX_BUFS, per iface; 0 = driver's default */
	bool zcopy;                  /**< WEFT_ZCOPY */
	unsigned int rx_intr;        /**< WEFT_RX_INTR: 0 auto, 1 y, 2 n */
};

enum weft_csum_mode { WEFT_CSUM_AUTO, WEFT_CSUM_NONE, WEFT_CSUM_UDP, WEFT_CSUM_CRC32C };

/** Congestion control of raw lanes, in the order of WEFT_CC's words: a line here and a file. */
#define WEFT_CC_LIST(X) \
	X(FIXED, fixed) \
	X(DELAY, delay)

#define WEFT_CC_NUMBER(id, name) WEFT_CC_##id,
enum weft_cc_number { WEFT_CC_AUTO, WEFT_CC_LIST(WEFT_CC_NUMBER) WEFT_CC_COUNT };
#undef WEFT_CC_NUMBER

/**
 * Pack callback of am_bcopy(): write at most @p max bytes. It may be called again for the same
 * message after an -EAGAIN, so it has no side effect.
 * @return bytes written (> 0), or a negative error, which am_bcopy() returns
 */
typedef ssize_t (*weft_lane_pack_cb)(void *dst, size_t max, void *arg);

/** Native atomics; all return the old value. */
enum weft_lane_amo { WEFT_LANE_AMO_ADD, WEFT_LANE_AMO_CSWAP };

/** Hot and cold operations of an iface. All functions are required unless marked optional. */
struct weft_lane_ops {
	/* ---- hot */
	/**
	 * Copy header and payload into a frame. No completion: the buffers are free on return.
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
	 * Send header (copied) and iov in place. The memory belongs to the lane until comp->done():
	 * acknowledged by the peer **and** released by the hardware. @p mem is the driver's state
	 * of the registration that covers the iov, or NULL. A driver may copy what the hardware
	 * cannot be given. @return 0, -EAGAIN, or the lane's error
	 */
	int (*am_zcopy)(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *hdr,
			size_t hdr_len, const struct iovec *iov, unsigned int iovcnt,
			struct weft_mem_lane *mem, struct weft_lane_comp *comp);
	/**
	 * Send the frames that are still open for coalescing. The worker calls it for each iface at
	 * the end of its progress call, after the protocol layer has had its turn, so that what
	 * callbacks and queues sent leaves in the same call.
	 */
	void (*tx_flush)(struct weft_lane_iface *iface);
	/**
	 * Receive, timers, transmit. @return events handled; 0 only when nothing is held back for
	 * coalescing
	 *
	 * A frame sent outside progress() is stamped, and its timers start, with the `now` of the
	 * next progress(); it gives no RTT sample.
	 */
	unsigned int (*progress)(struct weft_lane_iface *iface, uint64_t now_ns);
	/**
	 * Give back a buffer that a receive callback kept. Also allowed after the lane_ep is
	 * destroyed, until close().
	 */
	void (*release)(struct weft_lane_iface *iface, void *desc);

	/* ---- remote memory (NULL without the feature bit) */
	/**
	 * Read remote memory into @p iov, which lies in @p mem, or with #WEFT_LANE_F_GET_ANY
	 * anywhere (@p mem may be NULL). Native reads and writes name remote
	 * memory by the registration's key (weft_lane_driver.mem_key()) and a byte offset from its
	 * start: no addresses on the wire. The memory belongs to the lane until comp->done(): the
	 * data is there. Nothing is ordered against other operations.
	 * @return 0, -EAGAIN (outstanding operations are bounded), or the lane's error
	 */
	int (*get_zcopy)(struct weft_lane_ep *lane_ep, const struct iovec *iov, unsigned int iovcnt,
			 struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
			 struct weft_lane_comp *comp);
	/**
	 * Write remote memory; comp->done(): the bytes are visible to a remote CPU that learns of
	 * it by a message sent afterwards over this lane_ep. (Over another, of another device, it
	 * may learn too soon: an acknowledgement can mean that the remote device has the bytes.) As
	 * get_zcopy().
	 */
	int (*put_zcopy)(struct weft_lane_ep *lane_ep, const struct iovec *iov, unsigned int iovcnt,
			 struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
			 struct weft_lane_comp *comp);
	/**
	 * @p result (host order, any memory) has the old value at comp->done(). @p compare: CSWAP
	 * only. As get_zcopy().
	 */
	int (*amo64)(struct weft_lane_ep *lane_ep, enum weft_lane_amo op, uint64_t operand,
		     uint64_t compare, uint64_t *result, uint64_t remote_offset, uint64_t key,
		     struct weft_lane_comp *comp);

	/* ---- connection */
	/**
	 * Start connecting to a remote iface whose get_address() bytes are @p addr. Returns at
	 * once; EV_UP or EV_DOWN follows. Sends are refused with -EAGAIN until EV_UP. Each
	 * ep_connect() makes a connection of its own: one active lane_ep here, one passive there;
	 * the driver never merges two (crossed connects are sorted out above). What arrives on a
	 * loopback connection (own iface's address) comes on the passive lane_ep, or on the same
	 * one with WEFT_LANE_F_LOOPBACK. When the peer connects first, the driver makes a lane_ep
	 * itself and its first message arrives with lane_ep->user NULL; EV_UP is reported for it
	 * too, before that message. The protocol layer must ep_destroy() every lane_ep.
	 */
	int (*ep_connect)(struct weft_lane_iface *iface, const void *addr, size_t len, void *user,
			  struct weft_lane_ep **lane_ep);
	/**
	 * #WEFT_LANE_F_TO_EP instead of ep_connect(): make a lane_ep that is not connected yet, so
	 * that its address can be sent to the peer. It is not passive, whichever side connects
	 * first. Receives may come as soon as the peer is connected to it.
	 */
	int (*ep_create)(struct weft_lane_iface *iface, void *user, struct weft_lane_ep **lane_ep);
	/**
	 * Write attr.ep_addr_len bytes: what the peer's lane_ep needs to connect to this one;
	 * little-endian.
	 */
	void (*ep_get_address)(struct weft_lane_ep *lane_ep, void *buf);
	/**
	 * Connect to the remote lane_ep: its iface's get_address() bytes and its ep_get_address()
	 * bytes. Once per lane_ep. @return 0: EV_UP follows, from progress(), when sends are
	 * possible; that the peer has connected too must be known from wire-up. What the peer sends
	 * is received from the return of this call on. Or an error: the addresses are not usable
	 */
	int (*ep_connect_ep)(struct weft_lane_ep *lane_ep, const void *dev_addr, size_t dev_len,
			     const void *ep_addr, size_t ep_len);
	/**
	 * Tear down. No further receive or event callback comes for the lane_ep (remaining messages
	 * of the current frame included). The peer is notified with the final acknowledgement
	 * state, and a tombstone without buffers answers its late retransmissions for some 100 ms.
	 * Completions whose memory the hardware still holds run later with -ECANCELED, from
	 * progress() or close(); others before it returns. The driver frees the lane_ep itself,
	 * never inside a callback. Allowed inside callbacks. Messages sent before still go out, as
	 * far as the peer takes them soon: the last one often says that the endpoint is closed, and
	 * nobody can wait for it when a worker goes.
	 */
	void (*ep_destroy)(struct weft_lane_ep *lane_ep);
	/**
	 * Optional (NULL = not known): is the far end of @p lane_ep the iface with this address?
	 * The protocol layer takes no peer's word for where it is. The answer must rest on what the
	 * lane itself has seen on the wire: that the far end gets what is sent to this address.
	 */
	bool (*ep_is_from)(struct weft_lane_ep *lane_ep, const void *addr, size_t len);
	/**
	 * Optional (NULL = all are one): a number for the host at the far end of @p lane_ep, the
	 * same for whatever comes from there, as the lane itself has seen on the wire. What hosts
	 * share is shared out by it.
	 */
	uint64_t (*ep_host)(const struct weft_lane_ep *lane_ep);
	/**
	 * Optional (NULL = it can't): have the far end of a lane_ep that is up give a sign of life
	 * now. If what answers there does not know the connection any more, EV_DOWN follows at
	 * once, else nothing happens.
	 */
	void (*ep_check)(struct weft_lane_ep *lane_ep);
	/**
	 * Optional: what a lane_ep that is not up has been waiting for: message text that names it
	 * and the remedy, as EV_DOWN would give it, for a caller that has no more time. Empty =
	 * nothing to say.
	 */
	void (*ep_waits_for)(const struct weft_lane_ep *lane_ep, char *buf, size_t size);
	/**
	 * comp->done(0) once all sent before is acknowledged. @return 0 = it will come,
	 * WEFT_LANE_IDLE = nothing is outstanding, comp is not used; or the lane's error
	 */
	int (*ep_flush)(struct weft_lane_ep *lane_ep, struct weft_lane_comp *comp);

	/* ---- failover, optional, all three or none: without them a lane that fails ends its ep */
	/**
	 * When the peer gave its last sign of life over this lane_ep, by a clock of the driver's
	 * own: a number that grows with each. Zero or a difference to an earlier one is all that it
	 * says.
	 */
	uint64_t (*ep_seen)(const struct weft_lane_ep *lane_ep);
	/**
	 * Stop a lane_ep that is up, for good: nothing is received, sent or reported over it any
	 * more. Sends that are not acknowledged stay, for ep_reap(); else ep_destroy() ends them.
	 * Allowed inside #WEFT_LANE_EV_SUSPECT, and inside receive callbacks of other lane_eps.
	 * @param[out] state  what was received, final, for the peer's ep_reap(): at most
	 *   #WEFT_LANE_STATE_MAX bytes, little-endian
	 * @return bytes of it, > 0; -ENOTCONN: the lane_ep is not up
	 */
	int (*ep_quiesce)(struct weft_lane_ep *lane_ep, void *state);
	/**
	 * After ep_quiesce(), once: hand out, in the order of sending, what the peer has not
	 * received. Completions of what it has received run as ever. Native reads, writes and
	 * atomics that are not over end: with -ECANCELED where nothing of them will happen at the
	 * peer any more, so that they may be done again over another lane; with another error where
	 * nobody knows.
	 * @param state  of the peer, @p length bytes from the wire: not trusted
	 * @return 0; -EPROTO: the state contradicts what the peer has acknowledged, or what was
	 *   sent, and nothing was handed out
	 */
	int (*ep_reap)(struct weft_lane_ep *lane_ep, const void *state, size_t length,
		       weft_lane_reap_cb cb, void *arg);

	/* ---- waiting; without these three an owner that waits looks every WEFT_WAIT_SLEEP */
	/**
	 * A descriptor that poll() finds readable, from arm() on, as soon as progress() has
	 * something to do that is not due at a time; the same one until close(). It may also be
	 * readable for nothing. @return it, or a negative error: nothing wakes the owner of this
	 * iface, who looks every WEFT_WAIT_SLEEP
	 */
	int (*wait_fd)(struct weft_lane_iface *iface);
	/**
	 * The owner is about to sleep. What waits only to share a frame or to be acknowledged is
	 * sent.
	 *
	 * @param now_ns  time now, as in progress()
	 * @param due_ns  lowered to when progress() must be called in any case. It may be early,
	 *   and then the next one is later; it is never late
	 * @return 0; -EBUSY when there is something to do at once: progress() comes first
	 */
	int (*arm)(struct weft_lane_iface *iface, uint64_t now_ns, uint64_t *due_ns);
	/** After an arm() that returned 0, before the next progress(): the owner is awake. */
	void (*disarm)(struct weft_lane_iface *iface);

	/**
	 * Optional (NULL = nobody would take us for dead): the owner computes, and does not call
	 * progress(). Tell all that are connected that its process lives. Called by another thread,
	 * which holds the worker's lock; nothing is received, and no callback runs.
	 */
	void (*beat)(struct weft_lane_iface *iface);

	/* ---- cold */
	/**
	 * Write attr.dev_addr_len bytes: everything a peer needs to reach this iface;
	 * little-endian.
	 */
	void (*get_address)(struct weft_lane_iface *iface, void *buf);
	/**
	 * Can a peer's address be reached from here? @return 0, or a negative error with the reason
	 * in @p why
	 */
	int (*is_reachable)(struct weft_lane_iface *iface, const void *addr, size_t len, char *why,
			    size_t why_len);
	/** Address bytes (of any iface of this driver) as text. */
	void (*print_address)(const void *addr, size_t len, char *buf, size_t size);
	/**
	 * Is there a link now? Changes are reported by events, too, but by drivers that can see
	 * none.
	 */
	bool (*link_up)(struct weft_lane_iface *iface);
	/** Optional: message text: why there is no link and what to do; "" = not known. */
	void (*link_text)(struct weft_lane_iface *iface, char *buf, size_t size);
	/**
	 * Optional (NULL = nothing is measured): what is known once the lane_ep is up. Protocols
	 * are chosen by it instead of by the attributes.
	 */
	void (*ep_measured)(struct weft_lane_ep *lane_ep, struct weft_lane_measured *out);
	/**
	 * Optional (NULL = max_msg): the largest message that goes well over the path as it is now:
	 * less than max_msg where it carries smaller frames than when the lane_ep came up.
	 * #WEFT_LANE_EV_SIZE tells of changes.
	 */
	uint32_t (*ep_best_msg)(const struct weft_lane_ep *lane_ep);
	/** Human-readable text about the lane_ep: peer, state, RTT. */
	void (*ep_print)(struct weft_lane_ep *lane_ep, char *buf, size_t size);
	void (*counters)(struct weft_lane_iface *iface, weft_lane_counter_cb cb, void *arg);
	void (*close)(struct weft_lane_iface *iface);
};

#define WEFT_LANE_IDLE 1

/** Base of an open iface; the driver embeds it as its first member and fills ops, attr and name. */
struct weft_lane_iface {
	const struct weft_lane_ops *ops;
	const struct weft_lane_driver *driver;
	void *user; /**< protocol layer's */
	/** protocol layer's: number of attr.domain in its context, or WEFT_NO_DOMAIN */
	uint8_t domain;
	/**
	 * protocol layer's: 1 + that number for whatever is registered, with keys or without; 0 =
	 * nothing is
	 */
	uint8_t mem_domain;
	/**
	 * driver: something waits for tx_flush(); the worker skips the call otherwise. An indirect
	 * call that does nothing costs as much as a small message
	 */
	bool tx_open;
	/**
	 * driver: progress() has nothing to do until the next send or connect over this iface,
	 * which clears the bit; only for lanes that need not poll
	 */
	bool quiet;
	char name[64]; /**< "dpdk:0" */
	/**
	 * driver: how it was set up and why so, human-readable: which address by which rule. "" =
	 * nothing to say
	 */
	char note[128];
	struct weft_lane_attr attr;
};

/**
 * Base of a lane ep; the driver embeds it as its first member. The protocol layer reads and writes
 * only these.
 */
struct weft_lane_ep {
	struct weft_lane_iface *iface;   /**< driver */
	const struct weft_lane_ops *ops; /**< = iface->ops, for one load less on the hot path */
	void *user;    /**< protocol layer; NULL on passive lane_eps until it sets it */
	uint8_t index; /**< protocol layer: lane index in its endpoint */
	bool up;       /**< driver */
	bool passive;  /**< driver: made by the peer's connect */
	bool tx_room;  /**< driver's hint: false = a send now returns -EAGAIN */
	/** driver: payload bytes sent and not acknowledged; for striping */
	uint32_t queued;
	uint32_t rtt_ns; /**< driver: smoothed round trip; 0 = not known yet */
	/**
	 * driver: largest message, header included, that this lane_ep takes by any call: at most
	 * attr.max_short, max_bcopy, max_zcopy, and less when the peer or the path to it takes
	 * smaller frames only. Set before EV_UP; longer sends return -EMSGSIZE
	 */
	uint32_t max_msg;
	uint32_t retransmits; /**< driver: frames sent again */
	/**
	 * driver: native access that the iface has and this lane_ep has not, as its peer takes
	 * none. Set before EV_UP; it may gain bits later, when the system takes the access away,
	 * and then operations that were accepted end with -ECANCELED
	 */
	uint32_t lacks;
};

/** One thing a driver found. */
struct weft_lane_resource {
	char name[64]; /**< what comes after "driver:" in WEFT_LANES */
	char device[64];
	char why[160]; /**< "" = usable; else why not */
};

/**
 * A driver. Those of Weft itself stand in one table, lib/drivers.c.
 * (Paths are those of the sources.)
 */
struct weft_lane_driver {
	const char *name; /**< "dpdk", "roce", "shm", "self" */
	uint32_t abi;     /**< WEFT_LANE_ABI */
	bool captures;    /**< its lanes write WEFT_CAPTURE */
	/**
	 * List resources. Initialises what the driver rests on if need be (the EAL).
	 * @param[out] list  malloc()ed array, freed by the caller; NULL with 0
	 * @return number of resources, or a negative error (the driver logs why)
	 */
	int (*query)(const struct weft_lane_conf *conf, struct weft_lane_resource **list);
	/**
	 * Open an iface. On error nothing stays behind and @p why has message text that names the
	 * thing and the remedy.
	 */
	int (*open)(const struct weft_lane_open *params, struct weft_lane_iface **iface, char *why,
		    size_t why_len);
	/**
	 * Optional (NULL = no registration): register memory for zcopy in the domain of @p iface.
	 * @param access  WEFT_LANE_ACCESS_*; 0 = the lane only reads it. The hardware enforces
	 *   them: a key does not allow more to peers than it was made for
	 * @param why     gets message text on error: device, what, and the remedy. The driver logs
	 *   nothing: this may be called with every message
	 * @return 0; -EFAULT, -EACCES or -EPERM also for memory that this process itself may not
	 *   write, which may do without #WEFT_LANE_ACCESS_LOCAL_WRITE; or another error
	 */
	int (*mem_register)(struct weft_lane_iface *iface, void *addr, size_t len,
			    unsigned int access, struct weft_mem_lane **mem, char *why,
			    size_t why_len);
	void (*mem_deregister)(struct weft_lane_iface *iface, struct weft_mem_lane *mem);
	/**
	 * Of drivers whose ifaces read or write remote memory: the key by which the peer's lanes of
	 * the same driver reach @p mem. NULL: registrations serve am_zcopy() alone, and where one
	 * fails the lane copies.
	 */
	uint64_t (*mem_key)(struct weft_lane_iface *iface, struct weft_mem_lane *mem);
	/**
	 * Optional: the driver of the control channel (#WEFT_LANE_F_CONTROL) for the same
	 * resources. Opening an iface of this driver opens one of that driver too, with the same
	 * resource and options.
	 */
	const struct weft_lane_driver *control;
	const struct weft_lane_boot_ops *boot; /**< optional: lane_boot.h */
	/** Names of options that open() knows, comma-separated, for error messages. */
	const char *options;
	/** Optional: what counters() tells, for people; it ends with a name that is NULL. */
	const struct weft_lane_counter *counters;
};

/**
 * Make a driver known to the contexts that are created from now on, after those of Weft itself; its
 * lanes are named "NAME:..." in WEFT_LANES. Any thread.
 * @param driver  static storage: it is never taken out again
 * @return 0, also when this very driver is known already; -EINVAL (a function or the name is
 *   missing, or the name cannot stand in WEFT_LANES); -EPROTONOSUPPORT (compiled for another
 *   WEFT_LANE_ABI); -EEXIST (another driver has the name); -ENOSPC (#WEFT_LANE_DRIVERS_MAX)
 */
WEFT_API int weft_lane_driver_add(const struct weft_lane_driver *driver);

#define WEFT_LANE_DRIVERS_MAX 8 /**< drivers that can be added */

#ifdef __cplusplus
}
#endif

#endif /* WEFT_LANE_H */
