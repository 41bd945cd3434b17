/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/raw_pair.h
 * Two raw-DPDK ifaces connected by a wire in memory, with a clock that the test moves. Small on
 * purpose: what is tested is the engine alone, below the protocol layer; the simulator (test/sim)
 * does everything else.
 */
#ifndef RAW_PAIR_H
#define RAW_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/iface.h"
#include "frame/frame_port.h"

struct pair_end;

struct pair_wire {
	double loss, dup, reorder, corrupt;
	uint32_t max_frame; /* longer frames vanish; 0 = none do */
	uint64_t delay_ns;
	bool blackhole;
	bool full; /* tx_burst takes nothing */
	/* Change a frame under way; new length, 0 = it is lost. */
	uint32_t (*edit)(struct pair_end *from, uint8_t *frame, uint32_t len);
	bool hold_sent; /* sent mbufs are freed only by tx_kick, as by a lazy NIC */
	bool lazy;      /* with hold_sent: not even then, but at the port's end */
	bool busy;      /* tx_done(): the NIC has not read all */
	unsigned int reg_calls;
};

struct pair_end {
	struct weft_frame_port port;
	struct pair *pair;
	struct pair_end *peer;
	struct pair_wire wire; /* of what this end sends */
	struct weft_lane_iface *iface;
	struct weft_lane_ep *lane_ep;  /* the active one */
	struct weft_lane_ep *accepted; /* the passive one, newest */
	unsigned int ups, downs, gones, suspects;
	void (*on_suspect)(struct pair_end *e, struct weft_lane_ep *lane_ep, int status);
	int status;
	char text[512];
	unsigned int kicks, polls;
	uint64_t rx_verdict; /* with nic_csum: the NIC says so of what comes */

	/* what came: checked by the test */
	uint64_t messages, bytes, bad;
	/* the farewell of its connection; farewell_len 0 = none */
	uint8_t farewell[128];
	uint32_t farewell_len;
	uint8_t *seen; /* one counter per message number, when set */
	uint32_t seen_len;
	bool keep;
	bool release_at_once; /* with keep: inside the callback already */
	void *kept[4096];
	unsigned int kept_count;
	void (*on_message)(struct pair_end *e, struct weft_lane_ep *lane_ep, const void *data,
			   size_t len);

	/* with in_place: each leave-th message is left to the receive callback; 0 = none is */
	unsigned int offered, leave;
	void (*on_in_place)(struct pair_end *e, struct weft_lane_ep *lane_ep);
	struct pair_shared *shared; /* frames of the last burst */
	unsigned int num_shared;

	/* frames under way to this end, and sent ones that the "NIC" holds */
	struct {
		struct rte_mbuf *m;
		uint64_t due;
	} queue[4096];
	unsigned int queued;
	struct rte_mbuf *held[8192];
	unsigned int held_count;
};

struct pair_params {
	uint16_t frame_size[2]; /* 0 = 9018 */
	unsigned int csum;      /* enum weft_csum_mode */
	bool raw_ethertype;
	uint16_t vlan;
	bool untagged_1; /* the vlan is that of end 0 only */
	uint8_t paths;
	uint32_t first_seq;
	size_t window;
	unsigned int cc; /* enum weft_cc_number */
	uint32_t bufs;
	uint32_t rx_depth;
	bool no_extbuf;
	bool reg;      /* memory must be registered */
	bool nic_csum; /* the NIC looks at checksums */
	bool network;  /* the port is none in memory */
	bool copies;   /* the PMD copies each frame */
	bool in_place; /* frames of 300 bytes or more are left in place */
	uint16_t tx_segs;
	uint16_t tx_batch;
	uint8_t tx_page_bits;
	bool off_subnet;
	uint64_t peer_timeout_ns; /* 0 = 30 s */
};

struct pair {
	struct pair_end end[2];
	uint64_t now;
	uint64_t rng;
};

/* A whole window may be sent at once, whatever the way is. */
extern const struct pair_params pair_fixed;

/** End 0 begins to connect to end 1. */
void pair_begin_connect(struct pair *p);
void pair_open(struct pair *p, const struct pair_params *params, uint64_t seed);
void pair_close(struct pair *p);
uint64_t pair_rand(struct pair *p);
/* A frame that the engine of @p from does not know of arrives at the other end. */
void pair_inject(struct pair_end *from, const uint8_t *frame, uint32_t len);
/* One progress of both ends, then the clock goes on. */
void pair_step(struct pair *p, uint64_t ns);
/* Until cond or for max_ns in steps of 1 us. */
bool pair_run(struct pair *p, uint64_t max_ns, bool (*cond)(struct pair *p));
/* Connect end 0 to end 1; fails the test when it does not come up. */
void pair_connect(struct pair *p);
bool pair_both_up(struct pair *p);
uint64_t pair_counter(struct pair_end *e, enum raw_counter c);
/*
 * Message number n of len bytes, filled so that the receiver can check it; -EAGAIN as the lane
 * says.
 */
int pair_send(struct pair_end *e, struct weft_lane_ep *lane_ep, uint32_t n, uint32_t len);

#endif /* RAW_PAIR_H */
