/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/steering.h
 * Steering: the queue of a port to which a frame comes, and the UDP ports that a connection
 * therefore uses.
 *
 * Queue q of a port listens on the port's UDP port + q. The initiator of a connection sends each
 * path from a port of its own to the port on which the peer listens. The peer answers with both
 * exchanged, so a stateful firewall passes the answers. Everything that spreads by flow (RSS, ECMP,
 * a cloud's limit per flow) finds one flow for each path. Where a NIC hashes frames to queues, the
 * initiator chooses a port with which the hashes of both ends reach the right queues. Pure, but for
 * rte_thash.
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
	uint32_t key[WEFT_RSS_KEY_MAX / 4]; /**< bytes, as the driver reports them */
	uint16_t reta_size;                 /**< entries, a power of two */
	uint16_t reta[WEFT_RSS_RETA_MAX];   /**< queue of each */
};

/** The queue to which a received frame comes. Addresses and ports in host order. */
uint16_t weft_rss_queue(const struct weft_rss *rss, uint32_t src_ip, uint32_t dst_ip,
			uint16_t src_port, uint16_t dst_port);

/** How frames reach the queue of a frame port. All zero: the port has one queue. */
struct weft_steering {
	uint16_t queue, queues;
	/** the NIC hashes addresses and ports; false: frames to our UDP ports come to this queue */
	bool hashed;
	/** number of ports of the range that come here; 0 = all of them */
	uint16_t range_max;
	const struct weft_rss *rss; /**< NULL = not reported by the driver: found by trying */
	/**
	 * For each queue a ring of frames that came to another queue: the worker of that one puts
	 * them there. NULL = there is one queue
	 */
	struct rte_ring **handed;
};

/** Ports p with (p & mask) == first. */
struct weft_port_range {
	uint16_t first, mask;
};

/**
 * The source ports that an initiator uses: a quarter of all, divided equally among the queues,
 * without the ports [base, base + queues) on which they listen.
 */
struct weft_port_range weft_port_range(uint16_t base, uint16_t queue, uint16_t queues);

/** The queue to which @p udp_port belongs, if queue 0 listens at @p base; -1 = none. */
int weft_port_owner(uint16_t base, uint16_t queues, uint16_t udp_port);

/** The input of the choice of a path's source port. */
struct weft_path_choice {
	struct weft_port_range range;
	uint16_t range_max; /**< as in struct weft_steering */
	/** our port's; NULL = every UDP port will do, or the hash is unknown */
	const struct weft_rss *rss;
	uint16_t queue; /**< the queue to which answers are to come */
	bool spread;    /**< an end hashes: path 0 needs a port of its own, too */
	uint32_t ip, peer_ip;
	uint16_t port, peer_port; /**< on which the ends listen */
	uint32_t token;           /**< random: begin of the search for a port */
};

/**
 * The next candidate for the source port of @p path. The destination port is always
 * choice->peer_port, and the peer answers with both exchanged.
 *
 * Path 0 keeps the port on which it listens if neither end hashes. The other paths walk through the
 * range in an order that the token determines, so no two paths of a connection get the same port.
 * They take the ports whose answers hash to our queue. After all have been offered, a second round
 * takes any port, since the driver's report of the hash may be wrong.
 *
 * @param cursor  of the connection, begins at 0
 */
uint16_t weft_path_port(const struct weft_path_choice *choice, unsigned int path, uint32_t *cursor);

#endif /* WEFT_STEERING_H */
