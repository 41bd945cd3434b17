/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/mock_link_priv.h
 * Insides of the drivers of mock/mock_link.h, shared by their files:
 *   mock/mock_link.c          the drivers: opening a lane by its options, its progress and
 *   addresses
 *   mock/mock_link_msg.c      messages: sending, losing, what is under way, delivery
 *   mock/mock_link_conn.c     ends of connections and their events
 *   mock/mock_link_control.c  what tests set, do and ask
 */
#ifndef MOCK_LINK_PRIV_H
#define MOCK_LINK_PRIV_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mock/mock_link.h"

/*
 * One list of what is under way, for both drivers. A message names its ends by {iface, lane_ep}
 * numbers, as a queue pair number does: whether the end exists is seen on delivery.
 */

struct end {
	uint64_t iface;
	uint32_t lane_ep;
};

struct link_lane_ep {
	struct weft_lane_ep base; /* first */
	LIST_ENTRY(link_lane_ep) entry;
	uint32_t num;
	struct end to; /* lane_ep 0 = not known */
	bool connected;
	bool dead, delivering;
	uint64_t up_at; /* UINT64_MAX = not due */
	int down_status;
	bool down_reported;
	char text[128];
	unsigned int outstanding;
	struct weft_lane_comp *flush[8];
	unsigned int num_flush;
};

struct link_msg {
	TAILQ_ENTRY(link_msg) entry;
	struct end from, to;
	struct weft_lane_comp *comp;
	uint64_t ready, give_up;
	bool datagram;
	uint8_t am_id;
	size_t length;
	uint8_t data[];
};

struct link_done {
	STAILQ_ENTRY(link_done) entry;
	struct weft_lane_comp *comp;
	int status;
};

struct link_iface {
	struct weft_lane_iface base; /* first */
	char name[64], device[64], domain[64];
	LIST_ENTRY(link_iface) entry;
	uint64_t id;
	uint32_t net;
	bool control;
	unsigned int max_ep, num_ep;
	weft_lane_recv_cb recv;
	weft_lane_event_cb event;
	void *arg;
	LIST_HEAD(, link_lane_ep) lane_eps;
	STAILQ_HEAD(, link_done) done;
	uint64_t tx, rx;
};

struct mlink_net {
	LIST_HEAD(, link_iface) ifaces;
	TAILQ_HEAD(link_msgs, link_msg) msgs;
	uint64_t next_id, rng, sent, up_delay;
	uint32_t next_lane_ep;
	unsigned int num_ifaces, num_lane_eps, num_msgs, num_mems;
	unsigned int loss, twice, late, eagain;
	bool random;
	struct weft_lane_iface *blocked;
	int refuse;
	bool (*filter)(void *data, size_t *len, void *arg);
	void *filter_arg;
	uint8_t unknown_sender[4096];
	size_t unknown_len;
};

static inline struct link_iface *to_iface(struct weft_lane_iface *iface)
{
	return (struct link_iface *)iface;
}

static inline struct link_lane_ep *to_lane_ep(struct weft_lane_ep *lane_ep)
{
	return (struct link_lane_ep *)lane_ep;
}

static inline struct link_iface *iface_of(const struct link_lane_ep *lane_ep)
{
	return (struct link_iface *)lane_ep->base.iface;
}

extern struct mlink_net mlink_net;

uint64_t mlink_rnd(void);
bool mlink_chance(unsigned int permille);

/* mock/mock_link_msg.c */
unsigned int mlink_run_done(struct link_iface *f);
void mlink_comp_due(struct link_iface *f, struct weft_lane_comp *comp, int status);
void mlink_msg_free(struct link_msg *m);
struct link_msg *mlink_enqueue(struct end from, struct end to, uint8_t am_id, const void *data,
			       size_t len);
int mlink_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		   const void *payload, size_t length);
ssize_t mlink_am_bcopy(struct weft_lane_ep *base, uint8_t am_id, weft_lane_pack_cb pack, void *arg);
int mlink_am_zcopy(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		   const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		   struct weft_lane_comp *comp);
unsigned int mlink_run_messages(struct link_iface *f);
void mlink_release(struct weft_lane_iface *base, void *desc);

/* mock/mock_link_conn.c */
struct link_iface *mlink_find_iface(uint64_t id);
struct link_lane_ep *mlink_find_lane_ep(struct link_iface *f, uint32_t num);
struct link_lane_ep *mlink_lane_ep_new(struct link_iface *f, void *user);
void mlink_lane_ep_free(struct link_lane_ep *lane_ep);
int mctl_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
		    struct weft_lane_ep **out);
int mlink_ep_create(struct weft_lane_iface *base, void *user, struct weft_lane_ep **out);
void mlink_ep_get_address(struct weft_lane_ep *base, void *buf);
int mlink_ep_connect_ep(struct weft_lane_ep *base, const void *dev_addr, size_t dev_len,
			const void *ep_addr, size_t ep_len);
void mlink_ep_destroy(struct weft_lane_ep *base);
int mlink_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp);
bool mlink_run_event(struct link_iface *f);

#endif /* MOCK_LINK_PRIV_H */
