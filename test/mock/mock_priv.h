/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/mock_priv.h
 * Insides of the mock lane, shared by its files:
 *   mock/mock_lane.c     the driver: opening a lane by its options, its progress and addresses
 *   mock/mock_msg.c      messages: sending, what is under way, the order of delivery
 *   mock/mock_conn.c     connections and their events
 *   mock/mock_wait.c     waking an owner that sleeps
 *   mock/mock_mem.c      registrations, native reads, writes and atomics
 *   mock/mock_control.c  what tests set, do and ask; contexts and workers for them
 */
#ifndef MOCK_PRIV_H
#define MOCK_PRIV_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/config.h"
#include "mock/mock_lane.h"
#include "self/self_lane.h"

/*
 * One network for the process. A message lies in the inbox of the iface it goes to until that
 * iface's progress delivers it; connects likewise need the progress of the iface they go to. Events
 * wait in the lane_ep they are for.
 */

struct mock_lane_ep {
	struct weft_lane_ep base; /* first */
	LIST_ENTRY(mock_lane_ep) entry;
	struct mock_lane_ep *peer; /* other end; NULL = not connected (yet), or gone */
	bool dead;                 /* destroyed: freed at the next progress */
	bool unknown_sender;
	uint64_t at; /* unknown sender: where it is; 0 = wherever it says */
	/* connecting */
	uint64_t target;   /* address id; 0 = connected or passive */
	bool connecting;   /* lies in the target's list of connects */
	uint64_t deadline; /* of the connect, or of a silent peer; UINT64_MAX = none */
	char text[512];
	/* events due */
	bool up_due, gone_due, down_due;
	int down_status;
	unsigned int outstanding; /* messages sent, not delivered */
	struct weft_lane_comp *flush[8];
	unsigned int num_flush;
	/* unknown sender: what it received */
	unsigned int received;
	uint8_t last_id;
	size_t last_len;
	uint8_t last[16384];
};

struct mock_msg {
	TAILQ_ENTRY(mock_msg) entry;
	struct mock_lane_ep *from, *to; /* from: NULL = injected, or gone */
	struct weft_lane_comp *comp;
	uint64_t ready; /* not before */
	uint8_t am_id;
	size_t length;
	uint8_t *data; /* own allocation: overruns are seen */
};

/* A completion that is due at the sender's progress. */
struct mock_done {
	STAILQ_ENTRY(mock_done) entry;
	struct mock_lane_ep *lane_ep;
	struct weft_lane_comp *comp;
	int status;
};

/* A native read or write under way. */
struct mock_rma {
	TAILQ_ENTRY(mock_rma) entry;
	struct mock_lane_ep *lane_ep;
	struct iovec iov[8];
	unsigned int iovcnt;
	size_t len;
	uint64_t offset, key;
	bool write;
	uint64_t due; /* not before */
	struct weft_lane_comp *comp;
};

struct mock_iface {
	struct weft_lane_iface base; /* first */
	char name[64], device[64], domain[32];
	LIST_ENTRY(mock_iface) entry;
	uint64_t id;
	uint32_t net;
	bool down, muted, held, no_boot, no_reads;
	unsigned int eagain;
	uint64_t delay;
	uint64_t worker_id, connect_timeout, peer_timeout;
	weft_lane_recv_cb recv;
	weft_lane_recv_in_place_cb recv_in_place;
	weft_lane_event_cb event;
	void *arg;
	LIST_HEAD(, mock_lane_ep) lane_eps;
	TAILQ_HEAD(, mock_msg) inbox;
	STAILQ_HEAD(, mock_done) done;
	TAILQ_HEAD(, mock_rma) rmas;
	struct mock_lane_ep *zombies; /* by peer */
	/* mock_set_speed() */
	double speed;
	uint64_t lag, burst, moved;
	uint64_t busy[3]; /* until when: reads, writes, messages */
	bool in_progress;
	int wake; /* eventfd; -1 = does not wake */
	bool armed;
	unsigned int arms;
	uint64_t tx, rx;
};

/* A registration: what lanes with native remote memory reach by its key. */
struct weft_mem_lane {
	LIST_ENTRY(weft_mem_lane) entry;
	uint8_t *addr;
	size_t len;
	uint64_t key;
	unsigned int access;
};

struct refusal {
	const struct mock_iface *from, *to;
	int status;
	char text[512];
};

struct mock_net {
	LIST_HEAD(, mock_iface) ifaces;
	uint64_t next_id;
	uint64_t rng;
	enum mock_order order;
	unsigned int burst, eagain, window;
	bool held, no_keep, slow_hardware;
	uint64_t delay;
	enum mock_verdict (*filter)(const struct mock_msg_view *msg, void *arg);
	void *filter_arg;
	struct refusal refusals[16];
	unsigned int num_refusals;
	unsigned int num_ifaces, num_lane_eps, num_msgs, num_kept, num_mems, native;
	const struct weft_lane_iface *last_atomic;
	unsigned int num_registers, denied;
	const uint8_t *read_only;
	size_t read_only_len;
	LIST_HEAD(, weft_mem_lane) mems;
	uint64_t next_key;
	unsigned int rma_window;
	int rma_refuse, rma_fail, register_fail, lose_status;
	unsigned int lose;
	void (*on_arm)(struct weft_lane_iface *iface, enum mock_arm_moment moment, void *arg);
	void *on_arm_arg;
	struct mock_iface unknown_iface;
};

extern struct mock_net mock_net;
extern const struct weft_lane_ops mock_ops;

static inline struct mock_iface *to_iface(struct weft_lane_iface *iface)
{
	return (struct mock_iface *)iface;
}

static inline struct mock_lane_ep *to_lane_ep(struct weft_lane_ep *lane_ep)
{
	return (struct mock_lane_ep *)lane_ep;
}

static inline struct mock_iface *iface_of(const struct mock_lane_ep *lane_ep)
{
	return lane_ep->unknown_sender ? NULL : (struct mock_iface *)lane_ep->base.iface;
}

uint64_t mock_rnd(void);

/* mock/mock_speed.c */
enum mock_kind { MOCK_READ, MOCK_WRITE, MOCK_MESSAGE };
/** The iface is given @p len bytes. @return when they are done */
uint64_t mock_due(struct mock_iface *f, enum mock_kind kind, size_t len);

/* mock/mock_msg.c */
void mock_msg_free(struct mock_msg *m);
void mock_comp_due(struct mock_lane_ep *lane_ep, struct weft_lane_comp *comp, int status);
unsigned int mock_run_done(struct mock_iface *f);
void mock_settle(struct mock_msg *m, int status);
void mock_enqueue(struct mock_lane_ep *from, struct mock_lane_ep *to, uint8_t am_id,
		  const void *data, size_t length, struct weft_lane_comp *comp);
void mock_purge_to(struct mock_lane_ep *lane_ep, int status);
int mock_check_send(struct mock_lane_ep *lane_ep, size_t length, size_t max);
int mock_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		  const void *payload, size_t length);
ssize_t mock_am_bcopy(struct weft_lane_ep *base, uint8_t am_id, weft_lane_pack_cb pack, void *arg);
int mock_am_zcopy(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		  const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		  struct weft_lane_comp *comp);
unsigned int mock_run_inbox(struct mock_iface *f);
void mock_give_back(struct weft_lane_iface *base, void *desc);

/* mock/mock_conn.c */
struct mock_lane_ep *mock_lane_ep_new(struct weft_lane_iface *iface, void *user);
int mock_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
		    struct weft_lane_ep **out);
void mock_answer_connects(struct mock_iface *f);
void mock_free_zombies(struct mock_iface *f);
void mock_ep_destroy(struct weft_lane_ep *base);
int mock_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp);
bool mock_ep_is_from(struct weft_lane_ep *base, const void *addr, size_t len);
uint64_t mock_ep_host(const struct weft_lane_ep *base);
void mock_ep_check(struct weft_lane_ep *base);
bool mock_run_event(struct mock_iface *f);

/* mock/mock_wait.c */
/** Something has come for @p f. */
void mock_ring(struct mock_iface *f);
int mock_wait_fd(struct weft_lane_iface *base);
int mock_arm(struct weft_lane_iface *base, uint64_t now_ns, uint64_t *due_ns);
void mock_disarm(struct weft_lane_iface *base);

/* mock/mock_mem.c */
int mock_get_zcopy(struct weft_lane_ep *lane_ep, const struct iovec *iov, unsigned int iovcnt,
		   struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
		   struct weft_lane_comp *comp);
int mock_put_zcopy(struct weft_lane_ep *lane_ep, const struct iovec *iov, unsigned int iovcnt,
		   struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
		   struct weft_lane_comp *comp);
void mock_run_rmas(struct mock_iface *f);
void mock_cancel_rmas(struct mock_iface *f, struct mock_lane_ep *lane_ep);
int mock_amo64(struct weft_lane_ep *lane_ep, enum weft_lane_amo op, uint64_t operand,
	       uint64_t compare, uint64_t *result, uint64_t offset, uint64_t key,
	       struct weft_lane_comp *comp);
int mock_mem_register(struct weft_lane_iface *iface, void *addr, size_t len, unsigned int access,
		      struct weft_mem_lane **mem, char *why, size_t why_len);
uint64_t mock_mem_key(struct weft_lane_iface *iface, struct weft_mem_lane *mem);
void mock_mem_deregister(struct weft_lane_iface *iface, struct weft_mem_lane *mem);

#endif /* MOCK_PRIV_H */
