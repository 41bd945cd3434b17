/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lane_attr.h
 * Attributes of an interface: features, limits, rates, counters, access rights of registrations.
 * Settings of drivers. This file is a part of lane.h, which includes it.
 */
#ifndef WEFT_LANE_ATTR_H
#define WEFT_LANE_ATTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Feature bits of an iface. */
#define WEFT_LANE_F_SHORT (1ull << 0) /**< am_short() */
#define WEFT_LANE_F_BCOPY (1ull << 1) /**< am_bcopy() */
#define WEFT_LANE_F_ZCOPY (1ull << 2) /**< am_zcopy() */
/** am_zcopy() needs registered memory; without the bit it takes any memory */
#define WEFT_LANE_F_ZCOPY_REG (1ull << 3)
#define WEFT_LANE_F_TO_IFACE (1ull << 4) /**< ep_connect(): needs the remote iface's address only */
/** ep_connect_ep(): needs the remote lane_ep's address too, which wire-up exchanges */
#define WEFT_LANE_F_TO_EP (1ull << 5)
#define WEFT_LANE_F_GET (1ull << 6)      /**< get_zcopy(): native remote read */
#define WEFT_LANE_F_PUT (1ull << 7)      /**< put_zcopy(): native remote write */
#define WEFT_LANE_F_LOOPBACK (1ull << 8) /**< reaches only the iface's own worker */
#define WEFT_LANE_F_AMO64 (1ull << 9)    /**< amo64(): native atomics on aligned 64-bit words */
/**
 * An unreliable control channel: am_short() of wire-up messages only. It may lose or duplicate
 * messages, so wire-up repeats them and recognises duplicates. It is never a lane of an endpoint.
 * The iface also has #WEFT_LANE_F_TO_IFACE.
 */
#define WEFT_LANE_F_CONTROL (1ull << 10)
/** the user has set attr.bandwidth, attr.latency (WEFT_LANES); measurements do not replace them */
#define WEFT_LANE_F_BW_SET (1ull << 11)
#define WEFT_LANE_F_LAT_SET (1ull << 12)
/** the driver copies every byte of a message once at each end, with the CPU that calls it */
#define WEFT_LANE_F_COPIES (1ull << 13)
/**
 * only memory lies between the ends. The receiving CPU moves the bytes, attr.bandwidth is the rate
 * at which it does so, and several such lanes share that rate
 */
#define WEFT_LANE_F_MEMORY (1ull << 14)
/**
 * reaches processes of its own host only, faster than any network. An endpoint with such a lane has
 * no lanes of other kinds
 */
#define WEFT_LANE_F_HOST (1ull << 15)
/** get_zcopy() writes into any memory of the process: it need not be registered */
#define WEFT_LANE_F_GET_ANY (1ull << 16)

/* Limits of RoCE's lanes, which plans of lanes that do not exist use, too. */
#define WEFT_LANE_ROCE_SHORT 192        /**< bytes of a short message, at most */
#define WEFT_LANE_ROCE_SEG (8192 + 128) /**< bytes of a receive buffer, unless it is set */

/*
 * Access that a registration allows in addition to reads by the lane's own sends and puts. A key
 * that is sent to a peer allows only the access that its use needs.
 */
/** the lane's own gets write into the memory */
#define WEFT_LANE_ACCESS_LOCAL_WRITE (1u << 0)
#define WEFT_LANE_ACCESS_REMOTE_READ (1u << 1) /**< peers with the key read it: get_zcopy() */
/** peers with the key write it: put_zcopy(). LOCAL_WRITE is set, too */
#define WEFT_LANE_ACCESS_REMOTE_WRITE (1u << 2)
/** peers with the key change it: amo64(). LOCAL_WRITE is set, too */
#define WEFT_LANE_ACCESS_REMOTE_ATOMIC (1u << 3)
/** all access of peers */
#define WEFT_LANE_ACCESS_REMOTE                                         \
	(WEFT_LANE_ACCESS_REMOTE_READ | WEFT_LANE_ACCESS_REMOTE_WRITE | \
	 WEFT_LANE_ACCESS_REMOTE_ATOMIC)

#define WEFT_LANE_ADDR_MAX 64 /**< most bytes of get_address(), and of ep_get_address() */

/** Kind of an iface's link. It decides whether a link that is not up causes a warning. */
enum weft_lane_link {
	/**
	 * memory, or another process: the link is up when that process is there. A missing link
	 * causes no warning
	 */
	WEFT_LANE_LINK_PEER,
	/**
	 * an interface of the kernel or an RDMA device, which the driver does not start. A missing
	 * link causes a warning when the worker has opened the iface
	 */
	WEFT_LANE_LINK_HOST,
	/** a NIC that the driver starts. The warning comes after #WEFT_LANE_LINK_WAIT_NS */
	WEFT_LANE_LINK_NIC,
};
/** Time after open() that a #WEFT_LANE_LINK_NIC has to get a link. */
#define WEFT_LANE_LINK_WAIT_NS 5000000000ull

/**
 * Attributes of an iface. After open() the worker replaces numbers that the user has set in
 * WEFT_LANES, and the cost of registrations if it has measured that. Then the attributes are fixed.
 * Without #WEFT_LANE_F_BW_SET the driver may change bandwidth, bandwidth_from and bandwidth_known
 * with #WEFT_LANE_IFACE_EV_LINK_UP and #WEFT_LANE_IFACE_EV_SPEED.
 */
struct weft_lane_attr {
	uint64_t features;           /**< WEFT_LANE_F_* */
	double bandwidth;            /**< nominal rate of payload, bytes/s */
	double latency;              /**< one way, s; an estimate */
	double send_overhead;        /**< CPU time of the sender for a message, s */
	double recv_overhead;        /**< CPU time of the receiver for a message, s */
	double reg_cost, reg_growth; /**< time of a registration: s, and s for each byte */
	size_t max_short;            /**< most bytes of am_short(), header + payload */
	size_t max_bcopy;     /**< most bytes that the pack callback of am_bcopy() may write */
	size_t max_zcopy;     /**< most bytes of am_zcopy(), header + payload */
	size_t max_zcopy_hdr; /**< most bytes of the header of am_zcopy() */
	/** bytes of the shortest message that am_zcopy() sends faster than a copy; 0 = any */
	size_t min_zcopy;
	unsigned int max_iov; /**< most entries of the iov of one am_zcopy() */
	/** a striped message is best cut at multiples of these bytes; 1 = any offset is as good */
	size_t opt_align;
	/** largest frame on the wire, L2 header included, FCS not; without frames as max_bcopy */
	size_t frame_size;
	/** rate of get_zcopy(), bytes/s; 0 = bandwidth, or the rate of a copy (F_MEMORY) */
	double get_bandwidth;
	size_t max_get;           /**< most bytes of one get_zcopy() */
	size_t max_put;           /**< most bytes of one put_zcopy() */
	unsigned int max_rma_iov; /**< most entries of the iov of one get_zcopy() or put_zcopy() */
	/** bytes of ep_get_address(), <= WEFT_LANE_ADDR_MAX; 0 without #WEFT_LANE_F_TO_EP */
	size_t ep_addr_len;
	size_t dev_addr_len; /**< bytes that get_address() writes; <= WEFT_LANE_ADDR_MAX */
	/** identity of the NIC's port: equal strings = the same hardware. NULL = not shared */
	const char *device;
	/** name of the domain that shares registrations; NULL = this iface registers nothing */
	const char *domain;
	enum weft_lane_link link;
	/**
	 * text about the origin of bandwidth, latency and overheads: "link speed", "copy rate of
	 * this CPU". NULL = stated by the driver
	 */
	const char *bandwidth_from, *latency_from, *overhead_from;
	bool bandwidth_known; /**< the link or the user states bandwidth; it is no estimate */
};

/** What a lane ep has measured of the path to its peer so far. */
struct weft_lane_measured {
	/** half a round trip of a small message, both CPUs included, s; 0 = not known */
	double latency;
	double bandwidth; /**< payload, bytes/s; 0 = not measured, the attribute is valid */
};

/** Called by counters() for each counter of an iface. */
typedef void (*weft_lane_counter_cb)(const char *name, uint64_t value, void *arg);

/**
 * Functions that report about a worker, for drivers that have a management interface. All are
 * optional (NULL). A driver calls them inside progress(), and not inside a callback.
 */
struct weft_lane_report {
	/** Pass all counters of the worker, those of its lanes included. */
	void (*counters)(void *arg, void (*cb)(const char *name, uint64_t value, void *arg),
			 void *cb_arg);
	/** @return what a counter of this name counts: weft_counter_help(); NULL = not known */
	const char *(*help)(const char *name);
	/** Pass a line of text for each endpoint. */
	void (*endpoints)(void *arg, void (*cb)(const char *text, void *arg), void *cb_arg);
	/** Pass a line of text for each iface, those of other drivers included. */
	void (*lanes)(void *arg, void (*cb)(const char *text, void *arg), void *cb_arg);
	/** Pass a line for each range of sizes of an operation: which protocol carries it. */
	void (*thresholds)(void *arg, void (*cb)(const char *text, void *arg), void *cb_arg);
	void *arg;
};

/** Description of a counter of a driver's ifaces. */
struct weft_lane_counter {
	const char *name; /**< '#' matches a number: "conn#.path#.rtt_ns" */
	const char *help; /**< one sentence that begins with the unit */
	bool level;       /**< it is a level, which may fall; false = a count */
};

/* ------------------------------------------------------------------ settings */

/** Default of WEFT_UDP_PORT: the port that firewalls must let through. */
#define WEFT_LANE_UDP_PORT 9338

/** Settings for drivers, from the configuration; core/config_table.c has defaults and help. */
struct weft_lane_conf {
	uint64_t peer_timeout_ns;    /**< WEFT_PEER_TIMEOUT */
	uint64_t connect_timeout_ns; /**< WEFT_CONNECT_TIMEOUT */
	uint64_t keepalive_ns;       /**< WEFT_KEEPALIVE_INTERVAL */
	unsigned int csum;           /**< enum weft_csum_mode */
	unsigned int cc;             /**< WEFT_CC: enum weft_cc_number */
	size_t window;               /**< WEFT_WINDOW: bytes in flight; 0 = driver's default */
	unsigned int paths;          /**< WEFT_PATHS: pairs of UDP ports per lane; 0 = auto */
	size_t frame_size;           /**< WEFT_FRAME_SIZE: bytes; 0 = that of the port */
	bool raw_ethertype;          /**< WEFT_ENCAP=ether */
	uint16_t udp_port;           /**< WEFT_UDP_PORT */
	const char *capture;         /**< WEFT_CAPTURE, or NULL */
	uint32_t recorder;           /**< WEFT_RECORDER: frames; 0 = off */
	const char *recorder_file;   /**< WEFT_RECORDER_FILE */
	const char *eal_args;        /**< WEFT_EAL_ARGS */
	const char *ports;           /**< WEFT_PORTS */
	bool dumpcap;                /**< WEFT_DUMPCAP */
	const char *switch_path;     /**< WEFT_SWITCH: "auto", "off", or a path */
	unsigned int rx_bufs;        /**< WEFT_RX_BUFS, per iface; 0 = driver's default */
	bool zcopy;                  /**< WEFT_ZCOPY */
	unsigned int rx_intr;        /**< WEFT_RX_INTR: 0 auto, 1 y, 2 n */
	/** WEFT_JOB_KEY: 32 bytes, valid while the iface is open. NULL: frames are not sealed */
	const uint8_t *job_key;
	bool seal_auth; /**< WEFT_SEAL=auth: bodies of sealed frames stay readable */
	bool seal_dh;   /**< WEFT_SEAL_DH: keys have forward secrecy */
	/** WEFT_SEAL_REKEY: ns after which a key is replaced; 0 or UINT64_MAX = no limit of time */
	uint64_t seal_rekey_ns;
	/** WEFT_KEYLOG: descriptor, valid while the iface is open. NULL: keys are not logged */
	const int *keylog;
};

enum weft_csum_mode { WEFT_CSUM_AUTO, WEFT_CSUM_NONE, WEFT_CSUM_UDP, WEFT_CSUM_CRC32C };

/** Algorithms of congestion control for raw lanes, in the order of WEFT_CC's words. */
#define WEFT_CC_LIST(X) \
	X(FIXED, fixed) \
	X(DELAY, delay)

#define WEFT_CC_NUMBER(id, name) WEFT_CC_##id,
enum weft_cc_number { WEFT_CC_AUTO, WEFT_CC_LIST(WEFT_CC_NUMBER) WEFT_CC_COUNT };
#undef WEFT_CC_NUMBER

/* ------------------------------------------------------------------ counters */

/*
 * Counters are listed once: LIST(X) has X(field, "public name", "help text.") for each. The list
 * generates the fields of a struct, the code that reports them, and their help
 * (weft_counter_help()). The help text begins with the unit: "Frames dropped: ...". Lists are
 * RAW_COUNTER_LIST (engine/iface.h), WEFT_MSG_COUNTERS (msg/state.h), and others of that kind.
 *
 * A second kind of list has levels, which may fall, and which are evaluated when they are queried:
 * X(expression, "name", "help text.").
 */

/** Argument X of a list, for the fields of a struct. */
#define WEFT_COUNTER_FIELD(field, name, help) uint64_t field;

/** Arguments X of lists, for a table of struct weft_lane_counter; and the table's last entry. */
#define WEFT_COUNTER_HELP(field, name, help) {name, help, false},
#define WEFT_LEVEL_HELP(value, name, help) {name, help, true},
#define WEFT_COUNTER_HELP_END     \
	{                         \
		NULL, NULL, false \
	}

#endif /* WEFT_LANE_ATTR_H */
