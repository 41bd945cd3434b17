/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/raw.h"

const char *raw_peer_text(const struct raw_conn *c, char *buf, size_t size)
{
	const uint8_t *m = c->peer_mac;

	if (c->iface->gate.raw_ethertype)
		snprintf(buf, size, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4],
			 m[5]);
	else
		snprintf(buf, size, "%u.%u.%u.%u:%u", c->peer_ip >> 24, c->peer_ip >> 16 & 255,
			 c->peer_ip >> 8 & 255, c->peer_ip & 255, c->peer_port);
	return buf;
}

struct raw_conn *raw_conn_new(struct raw_iface *iface, bool passive)
{
	const struct weft_platform *pf = iface->platform;
	struct raw_conn *c;
	struct {
		uint64_t secret;
		uint32_t token, seq;
	} rnd;
	uint32_t index;

	if (pf->random(pf->arg, &rnd, sizeof(rnd)) != 0 || raw_table_take(iface, &index) != 0)
		return NULL;
	c = aligned_alloc(64, sizeof(*c));
	if (!c) {
		raw_table_give(iface, index);
		return NULL;
	}
	memset(c, 0, sizeof(*c));
	c->base.iface = &iface->base;
	c->base.ops = iface->base.ops;
	c->base.passive = passive;
	c->iface = iface;
	/* The generation is a permuted number: whoever knows his own does not know others'. */
	c->id = index | (uint32_t)raw_generation(&iface->key, (uint16_t)iface->generation++) << 16;
	c->token = rnd.token;
	c->secret = rnd.secret;
	c->et_at = RAW_NEVER;
	c->snd_next = iface->set_first_seq ? iface->first_seq : rnd.seq;
	c->snd_una = c->snd_next;
	c->sack_high = c->snd_next;
	c->csum = iface->csum_wish;
	c->paths = 1;
	c->path_count = 1;
	c->seen = iface->lt;
	c->state = RAW_HALF_OPEN;
	for (unsigned int i = 0; i < WEFT_FRAME_PATHS_MAX; i++) {
		c->path[i].sport = iface->gate.udp_port;
		weft_loss_init(&c->path[i].loss);
	}
	raw_timer_learn(c);
	LIST_INIT(&c->zc);
	STAILQ_INIT(&c->flushes);
	TAILQ_INSERT_TAIL(&iface->conns, c, link);
	iface->refs[index] = (struct raw_ref){.id = c->id, .token = c->token, .conn = c};
	iface->conn_count++;
	raw_count(iface, passive ? RAW_CONN_PASSIVE : RAW_CONN_ACTIVE);
	return c;
}

/* Its peer is told of the end, if it asks: see answers_for(). */
static void remember_peer(struct raw_conn *c)
{
	struct raw_gone *gone = &c->iface->gone[c->id & 0xffff];
	bool half = c->state == RAW_HALF_OPEN;

	/* Those who only begin do not make us forget those who were here. */
	if (half && gone->known && !gone->half)
		return;
	*gone = (struct raw_gone){.ip = c->peer_ip, .known = true, .half = half};
	memcpy(gone->mac, c->peer_mac, 6);
}

/* In TIME_WAIT it counts as one of those that stay a while. */
static void linger(struct raw_conn *c, bool yes)
{
	struct raw_iface *iface = c->iface;

	if (c->lingers == yes)
		return;
	c->lingers = yes;
	if (yes) {
		iface->time_wait++;
		TAILQ_INSERT_TAIL(&iface->closed, c, wait_link);
	} else {
		iface->time_wait--;
		TAILQ_REMOVE(&iface->closed, c, wait_link);
	}
}

/* Only for connections that the protocol layer does not know (any more). */
void raw_conn_free(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;

	remember_peer(c);
	raw_slots_release(c);
	if (c->on_tx_list)
		TAILQ_REMOVE(&iface->tx_list, c, tx_link);
	if (c->on_ack_list)
		TAILQ_REMOVE(&iface->ack_list, c, ack_link);
	if (c->state == RAW_HALF_OPEN)
		raw_half_remove(c);
	raw_resolving(c, false);
	linger(c, false);
	raw_table_hello_remove(c);
	raw_deadlines_forget(c);
	TAILQ_REMOVE(&iface->conns, c, link);
	raw_table_give(iface, c->id & 0xffff);
	iface->conn_count--;
	free(c->slots);
	free(c);
}

/*
 * @p n is a power of two, and what is outstanding fits. @return false: no memory, all is as before
 */
static bool resize_slots(struct raw_conn *c, uint32_t n)
{
	struct raw_slot *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return false;
	for (uint32_t seq = c->snd_una; seq != c->snd_next; seq++)
		slots[seq & (n - 1)] = *raw_slot(c, seq);
	free(c->slots);
	c->slots = slots;
	c->slot_mask = n - 1;
	return true;
}

bool raw_slots_grow(struct raw_conn *c)
{
	return resize_slots(c, 2 * (c->slot_mask + 1));
}

void raw_slots_shrink(struct raw_conn *c)
{
	if (c->slot_mask >= RAW_SLOTS_MIN)
		resize_slots(c, RAW_SLOTS_MIN);
}

/*
 * The fixed window: what the configuration says, and never more frames than half the peer's receive
 * ring, so that one sender alone cannot overrun it.
 */
static int make_window(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	uint32_t frames = RTE_MIN(c->peer_rx_frames / 2, RAW_WIN_FRAMES_MAX);

	frames = RTE_MIN(frames, iface->tx_held_max);
	c->win_frames = RTE_MAX(frames, 1u);
	c->win_bytes = iface->conf.window != 0
			       ? (uint32_t)RTE_MIN(iface->conf.window, (size_t)INT32_MAX)
			       : RAW_WIN_BYTES;
	c->win_whole = c->win_frames;
	return resize_slots(c, RAW_SLOTS_MIN) ? 0 : -ENOMEM;
}

/* @return less than what was wanted: worth a warning */
static bool up_text(const struct raw_conn *c, char *text, size_t size)
{
	const char *name = c->iface->base.name;
	char peer[64];

	raw_peer_text(c, peer, sizeof(peer));
	if (c->search.full != 0 && c->frame_size < c->search.full)
		snprintf(text, size,
			 "%s: frames of %u bytes do not reach %s, so %u are used: check the MTU of "
			 "every link and switch between",
			 name, c->search.full, peer, c->frame_size);
	else if (c->elsewhere)
		snprintf(text, size,
			 "%s: no UDP port was found by which frames between %s and us come to the "
			 "right queue at both ends, so they go through another worker of the port, "
			 "slower and only while that one polls: use fewer queues=, or a port for "
			 "each worker",
			 name, peer);
	else if (!c->base.passive && c->path_count < RTE_MAX(c->iface->paths, c->peer_paths))
		snprintf(text, size,
			 "%s: %u of %u paths to %s are used, the next one has no answer: does a "
			 "firewall between stop UDP from other ports than %u, or its answers?",
			 name, c->path_count, RTE_MAX(c->iface->paths, c->peer_paths), peer,
			 c->iface->gate.udp_port);
	else
		return snprintf(text, size, "%s: connected with %s, frames of %u bytes, %s", name,
				peer, c->frame_size,
				c->csum == WEFT_FRAME_CSUM_CRC32C ? "CRC32C"
				: c->csum == WEFT_FRAME_CSUM_UDP  ? "UDP checksum"
								  : "no checksum") < 0;
	return true;
}

void raw_conn_up(struct raw_conn *c, uint16_t frame_size)
{
	struct raw_iface *iface = c->iface;
	char text[400];

	c->frame_size = frame_size;
	if (make_window(c) != 0) {
		raw_conn_fail(c, -ENOMEM, "out of memory for a connection's send window");
		return;
	}
	if (c->state == RAW_HALF_OPEN)
		raw_half_remove(c);
	/* The CRC's place is kept in any case, so that sizes do not depend on what was agreed. */
	c->room = frame_size - c->encap.len - (uint32_t)sizeof(struct weft_frame_hdr) - 4;
	c->base.max_msg = c->room - (uint32_t)sizeof(struct weft_frame_msg);
	c->state = RAW_UP;
	c->paths = RTE_MIN(iface->paths, c->path_count);
	c->base.up = true;
	c->base.tx_room = true;
	c->seen = iface->lt;
	c->next_ping = iface->lt + iface->conf.keepalive_ns;
	raw_deadline_lt(c, RTE_MIN(c->next_ping, iface->lt + iface->conf.peer_timeout_ns));
	raw_count(iface, RAW_CONN_UP);
	iface->event(iface->cb_arg, &c->base, WEFT_LANE_EV_UP, up_text(c, text, sizeof(text)),
		     text);
}

/* Nothing more is sent or delivered; completions come with the error; the event is the last word.
 */
static void go_down(struct raw_conn *c, int error)
{
	if (c->state == RAW_HALF_OPEN)
		raw_half_remove(c);
	c->state = RAW_DOWN;
	c->error = error;
	c->base.up = false;
	c->base.tx_room = false;
	c->ack_state = RAW_ACK_NONE;
	raw_zc_fail(c, error);
	raw_slots_release(c);
}

void raw_conn_fail(struct raw_conn *c, int status, const char *text)
{
	struct raw_iface *iface = c->iface;
	bool known = c->state != RAW_HALF_OPEN; /* to the protocol layer */

	raw_count(iface, RAW_CONN_FAILED);
	go_down(c, status);
	if (!known) {
		raw_conn_free(c);
		return;
	}
	raw_flushes_end(c, status);
	if (c->state == RAW_DOWN)
		iface->event(iface->cb_arg, &c->base, WEFT_LANE_EV_DOWN, status, text);
}

/*
 * The peer closed. When all that it sent is here, the connection is gone in good order, even though
 * sends of ours that it did not acknowledge end with an error. When not, BYE may have overtaken the
 * rest: it has RAW_BYE_GRACE to arrive. After that messages are lost (the peer keeps none) and the
 * lane has failed.
 */
void raw_conn_bye(struct raw_conn *c)
{
	struct raw_iface *iface = c->iface;
	char text[256], peer[64];

	if (c->rx.next != c->bye_seq && iface->lt < c->bye_at) {
		raw_deadline_lt(c, c->bye_at);
		return;
	}
	raw_ctl_send(c, WEFT_FRAME_BYE_ACK, 0, NULL, 0, 0);
	c->bye_done = true;
	raw_peer_text(c, peer, sizeof(peer));
	if (c->rx.next != c->bye_seq) {
		snprintf(text, sizeof(text),
			 "%s: %s closed the connection before %u of its frames arrived",
			 iface->base.name, peer, c->bye_seq - c->rx.next);
		raw_conn_fail(c, -ECONNRESET, text);
		return;
	}
	raw_count(iface, RAW_CONN_GONE);
	snprintf(text, sizeof(text), "%s: %s closed the connection", iface->base.name, peer);
	go_down(c, -ECONNRESET);
	raw_flushes_end(c, -ECONNRESET);
	if (c->state == RAW_DOWN)
		iface->event(iface->cb_arg, &c->base, WEFT_LANE_EV_GONE, 0, text);
}

void raw_conn_bye_input(struct raw_conn *c, const struct weft_frame_view *v)
{
	if (c->bye_at == 0) {
		c->bye_at = c->iface->lt + RAW_BYE_GRACE;
		c->bye_seq = weft_le32(v->hdr->seq);
	}
	raw_conn_bye(c);
}

int raw_ep_connect(struct weft_lane_iface *base, const void *addr, size_t len, void *user,
		   struct weft_lane_ep **lane_ep)
{
	struct raw_iface *iface = raw_iface_of(base);
	struct raw_addr a;
	struct raw_conn *c;
	char why[160];
	uint32_t hop = 0;
	int err;

	err = raw_is_reachable(base, addr, len, why, sizeof(why));
	if (err != 0)
		return err;
	raw_addr_read(addr, len, &a);
	if (!a.raw_ethertype)
		raw_next_hop(iface, a.ip, &hop);
	c = raw_conn_new(iface, false);
	if (!c)
		return -ENOMEM;
	c->base.user = user;
	c->peer_ip = a.ip;
	c->hop_ip = hop;
	c->peer_port = a.udp_port;
	c->path[0].dport = a.udp_port;
	c->peer_queues = a.queues;
	memcpy(c->peer_mac, a.mac, 6);
	c->remote_iface = a.iface_id;
	raw_conn_template(c);
	raw_hs_start(c);
	*lane_ep = &c->base;
	return 0;
}

/*
 * When there are too many, the oldest goes early: then a late frame finds nobody and is answered
 * with RESET. It is freed by the timers, never here: we may be called from the middle of a walk
 * over the connections.
 */
static void expire_oldest(struct raw_iface *iface)
{
	struct raw_conn *c = TAILQ_FIRST(&iface->closed);

	raw_count(iface, RAW_CONN_LOOKS);
	linger(c, false);
	c->hs_expire = iface->lt;
	raw_deadline_lt(c, iface->lt);
}

static void enter_time_wait(struct raw_conn *c, bool met)
{
	struct raw_iface *iface = c->iface;

	raw_resolving(c, false);
	if (met && iface->time_wait >= RAW_TIME_WAIT_MAX)
		expire_oldest(iface);
	linger(c, met);
	c->state = RAW_TIME_WAIT;
	c->hs_tries = 0;
	c->hs_next = iface->lt + RAW_HS_RETRY_MIN;
	c->hs_expire = iface->lt + (met ? RAW_TIME_WAIT_NS : 0);
	raw_deadline_lt(c, met ? c->hs_next : iface->lt);
}

/*
 * What was sent before leaves the queue in any case; what was not acknowledged is forgotten. The
 * entry stays a while, to acknowledge what the peer sends again and to repeat BYE.
 */
void raw_ep_destroy(struct weft_lane_ep *lane_ep)
{
	struct raw_conn *c = raw_conn_of(lane_ep);
	struct raw_iface *iface = c->iface;
	bool met = c->state == RAW_UP || c->state == RAW_PROBE || c->state == RAW_PATHS ||
		   c->state == RAW_MEASURE || c->state == RAW_READY;
	bool lingers = met || c->state == RAW_DOWN;
	bool reaped = c->state == RAW_QUIET && !c->slots; /* the peer has what is left */

	c->base.up = false;
	c->base.tx_room = false;
	c->base.user = NULL;
	if (c->open)
		raw_seal(c, 0);
	if (met)
		raw_bye_send(c);
	else
		c->bye_done = true;
	enter_time_wait(c, lingers);
	if (!reaped)
		raw_zc_fail(c, -ECANCELED);
	raw_slots_release(c);
	raw_zc_cancel(c);
	raw_flushes_end(c, -ECANCELED);
	raw_txq_flush(iface);
}

/*
 * The far end as frames have shown it: what answered with the token of our HELLO, or what sent the
 * HELLO and then the token of our answer to it. So it gets what goes to its address.
 */
bool raw_ep_is_from(struct weft_lane_ep *lane_ep, const void *addr, size_t len)
{
	const struct raw_conn *c = raw_conn_of(lane_ep);
	struct raw_addr a;

	if (c->remote_token == 0 && c->remote_id == 0)
		return false; /* nobody has answered yet */
	if (raw_addr_read(addr, len, &a) != 0 || a.raw_ethertype != c->iface->gate.raw_ethertype)
		return false;
	if (a.iface_id != c->remote_iface)
		return false;
	if (a.raw_ethertype)
		return memcmp(a.mac, c->peer_mac, sizeof(a.mac)) == 0;
	return a.ip == c->peer_ip && a.udp_port == c->peer_port;
}

/* Its IP address, whatever ports it uses; else its MAC. */
uint64_t raw_ep_host(const struct weft_lane_ep *lane_ep)
{
	const struct raw_conn *c = (const struct raw_conn *)lane_ep;
	uint64_t mac = 0;

	if (!c->iface->gate.raw_ethertype)
		return c->peer_ip;
	memcpy(&mac, c->peer_mac, sizeof(c->peer_mac));
	return mac;
}

void raw_ep_check(struct weft_lane_ep *lane_ep)
{
	struct raw_conn *c = raw_conn_of(lane_ep);

	if (c->state == RAW_UP && raw_ack_send(c, WEFT_FRAME_F_ACK_REQ) == 0)
		raw_count(c->iface, RAW_TX_PING);
}

void raw_ep_print(struct weft_lane_ep *lane_ep, char *buf, size_t size)
{
	static const char *const names[] = {
		[RAW_RESOLVE] = "asking ARP",
		[RAW_HELLO] = "connecting",
		[RAW_PROBE] = "probing the frame size",
		[RAW_PATHS] = "trying the ports of its paths",
		[RAW_MEASURE] = "measuring the way",
		[RAW_READY] = "connecting",
		[RAW_HALF_OPEN] = "half open",
		[RAW_UP] = "up",
		[RAW_QUIET] = "stopped",
		[RAW_DOWN] = "down",
		[RAW_TIME_WAIT] = "closed",
	};
	const struct raw_conn *c = raw_conn_of(lane_ep);
	char peer[64];
	int n;

	n = snprintf(buf, size,
		     "%s -> %s: %s, frames of %u bytes, %u outstanding (%u bytes), window %u "
		     "frames or %u bytes",
		     c->iface->base.name, raw_peer_text(c, peer, sizeof(peer)), names[c->state],
		     c->frame_size, c->snd_next - c->snd_una, c->inflight, c->win_frames,
		     c->win_bytes);
	for (unsigned int i = 0; i < c->paths && n > 0 && (size_t)n < size; i++)
		n += snprintf(buf + n, size - (size_t)n,
			      "; path %u: ports %u to %u, rtt %.1f us +- %.1f, %u sent, %u again",
			      i, c->path[i].sport, c->path[i].dport, c->path[i].rtt.srtt / 1e3,
			      c->path[i].rtt.var / 1e3, c->path[i].order, c->path[i].retransmits);
}
