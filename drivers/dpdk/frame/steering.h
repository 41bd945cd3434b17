/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/steering.h
 * Which queue of a port gets which frames, and which UDP ports a connection therefore uses.
 *
 * Queue q of a port listens on the port's UDP port + q. A connection's initiator sends each path
 * from a port of its own to the one that the peer listens on, and the peer answers the other way
 * round: a stateful firewall knows the answers, whoever spreads by flow (RSS, ECMP, a cloud's limit
 * per flow) sees as many flows as there are paths, and where a NIC hashes frames to queues the
 * initiator's port is what both ends' hashes can be satisfied by. Pure, but for rte_thash.
 */
#ifndef WEFT_STEERING_H
#define WEFT_STEERING_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT_RSS_KEY_MAX 64u
#define WEFT_RSS_RETA_MAX 1024u

struct rte_ring;

/** How a NIC hashes UDP over IPv4 to queues (Toeplitz), as its driver reports it. */
struct weft_rss {
	uint32_t key[WEFT_RSS_KEY_MAX / 4]; /**< bytes, as the driver gives them */
	uint16_t reta_size;                 /**< entries, a power of two */
	uint16_t reta[WEFT_RSS_RETA_MAX];   /**< queue of each */
};

/** The queue that a received frame comes to. Addresses and ports in host order. */
uint16_t weft_rss_queue(const struct weft_rss *rss, uint32_t src_ip, uint32_t dst_ip,
			uint16_t src_port, uint16_t dst_port);

/** Of a frame port: how its queue is found. All zero: the port has one queue. */
struct weft_steering {
	uint16_t queue, queues;
	/** the NIC hashes addresses and ports; false: what comes to our UDP ports comes here */
	bool hashed;
	/** so many ports of the range come here; 0 = all of it */
	uint16_t range_max;
	const struct weft_rss *rss; /**< NULL = not reported by the driver: found by trying */
	/**
	 * For each queue a ring of frames that came to another one, which that one's worker puts
	 * there; NULL = there is one queue
	 */
	struct rte_ring **handed;
};

/** Ports p with (p & mask) == first. */
struct weft_port_range {
	uint16_t first, mask;
};

/**
 * The ports that the initiator's side of connections takes: a quarter of all, shared out to the
 * queues in equal parts, clear of the ports [base, base + queues) that they listen on.
 */
struct weft_port_range weft_port_range(uint16_t base, uint16_t queue, uint16_t queues);

/** Queue of a port whose queues begin to listen at @p base; -1 = none. */
int weft_port_owner(uint16_t base, uint16_t queues, uint16_t udp_port);

/** What the choice of a path's source port depends on. */
struct weft_path_choice {
	struct weft_port_range range;
	uint16_t range_max;         /**< as in struct weft_steering */
	const struct weft_rss *rss; /**< our port's; NULL = any port will do, or nobody knows */
	uint16_t queue;             /**< where answers are to come to */
	bool spread;                /**< an end hashes: path 0 needs a port of its own, too */
	uint32_t ip, peer_ip;
	uint16_t port, peer_port; /**< that the ends listen on */
	uint32_t token;           /**< random: where to begin */
};

/**
 * The next candidate for the source port of @p path; its destination port is always
 * choice->peer_port, and the peer answers with both exchanged.
 *
 * Path 0 keeps the port it listens on where nobody hashes. The others walk through the range in an
 * order of the token's, so that no two paths of a connection get the same one, and take those whose
 * answers hash to our queue. When all have been offered the second round takes any: what the driver
 * told may be wrong.
 *
 * @param cursor  of the connection, begins at 0
 */
uint16_t weft_path_port(const struct weft_path_choice *choice, unsigned int path, uint32_t *cursor);

#endif /* WEFT_STEERING_H */
