/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Links and switches. A frame's way: TX ring -> (rate of the port's "up" direction) -> faults,
 * delay -> switch -> (queue and rate of the other port's "down" direction) -> faults, delay ->
 * receive ring or station.
 */

#include <stdlib.h>
#include <string.h>

#include "sim_priv.h"

struct sim_frame *sim_frame_new(const void *data, size_t len)
{
	struct sim_frame *f = sim_alloc(sizeof(*f) + len);

	f->len = (uint32_t)len;
	if (data)
		memcpy(f->data, data, len);
	return f;
}

static uint64_t wire_time(const struct sim_wire *w, size_t len)
{
	/* The product fits: frames are shorter than 2^14 bytes. */
	return w->link.rate ? (uint64_t)(len + SIM_WIRE_EXTRA) * 8 * SIM_S / w->link.rate : 0;
}

/* ---- faults --------------------------------------------------------------------------------- */

static void flip_bits(struct sim_rng *rng, struct sim_frame *f)
{
	unsigned int n = (unsigned int)sim_between(rng, 1, 3);
	uint64_t bit;

	while (n--) {
		bit = sim_below(rng, (uint64_t)f->len * 8);
		f->data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
}

/* One copy of a frame leaves for the other end of a direction. */
static void pass(struct sim_port *port, struct sim_wire *w, enum sim_event_kind kind,
		 struct sim_frame *f, uint64_t when)
{
	const struct sim_link *l = &w->link;

	if (sim_chance(&w->rng, l->corrupt)) {
		port->stats.corrupted++;
		flip_bits(&w->rng, f);
	}
	if (sim_chance(&w->rng, l->truncate) && f->len > 1) {
		port->stats.truncated++;
		f->len = (uint32_t)sim_between(&w->rng, 1, f->len - 1);
	}
	when += l->delay_ns;
	if (sim_chance(&w->rng, l->reorder)) {
		/* Not bound to the order of the others, and they not to it. */
		port->stats.reordered++;
		when += 1 + sim_below(&w->rng, l->reorder_ns ? l->reorder_ns : 100 * SIM_US);
	} else {
		if (l->jitter_ns)
			when += sim_below(&w->rng, l->jitter_ns);
		if (when < w->last)
			when = w->last;
		w->last = when;
	}
	sim_event_add(port->sim, when, kind, port, f, NULL);
}

/* Takes the frame, which has been on the wire at @when. */
static void impair(struct sim_port *port, struct sim_wire *w, enum sim_event_kind kind,
		   struct sim_frame *f, uint64_t when)
{
	struct sim_stats *s = &port->stats;

	if (w->link.blackhole || !port->carrier) {
		s->blackholed++;
		free(f);
		return;
	}
	if (sim_chance(&w->rng, w->link.loss)) {
		s->lost++;
		free(f);
		return;
	}
	if (sim_chance(&w->rng, w->link.dup)) {
		s->dupped++;
		pass(port, w, kind, sim_frame_new(f->data, f->len), when);
	}
	pass(port, w, kind, f, when);
}

/* ---- host to switch ------------------------------------------------------------------------- */

void sim_net_send(struct sim_port *port, struct sim_tx *tx, size_t len)
{
	struct sim_wire *w = &port->up;
	uint64_t start = w->free_at > port->sim->now ? w->free_at : port->sim->now;

	w->free_at = start + wire_time(w, len);
	sim_event_add(port->sim, w->free_at, SIM_EV_TX, port, tx, NULL);
}

static bool filtered(struct sim_port *port, struct sim_frame **f)
{
	size_t len = (*f)->len;
	struct sim_frame *big;

	if (!port->filter)
		return false;
	big = sim_frame_new(NULL, SIM_FRAME_MAX);
	memcpy(big->data, (*f)->data, len);
	free(*f);
	*f = big;
	if (port->filter(port, big->data, &len, SIM_FRAME_MAX, port->filter_arg) == SIM_DROP)
		return true;
	big->len = (uint32_t)len;
	return false;
}

/*
 * The last bit is on the wire: only now is the buffer's content read, as a NIC might, so that a
 * sender that reuses memory too early is caught by its receiver.
 */
static void tx_done(struct sim *sim, struct sim_port *port, struct sim_tx *tx)
{
	struct sim_frame *f = tx->frame;
	bool dead = tx->dead || port->mute;

	if (tx->mbuf) {
		f = sim_tx_read(tx);
		port->unsent -= tx->len;
	}
	tx->frame = NULL;
	tx->sent = true;
	sim_tx_put(tx);
	if (dead) {
		free(f);
		return;
	}
	sim_queue_sent(port, f);
	port->stats.tx_frames++;
	port->stats.tx_bytes += f->len;
	sim_hash_frame(sim, 1, port, f->data, f->len);
	if (sim->pcap)
		sim_pcap_frame(sim->pcap, port, true, sim->now, f->data, f->len);
	if (filtered(port, &f)) {
		port->stats.filtered++;
		free(f);
		return;
	}
	impair(port, &port->up, SIM_EV_SWITCH, f, sim->now);
}

/* ---- switch to host ------------------------------------------------------------------------- */

static void forward(struct sim_port *to, struct sim_frame *f)
{
	struct sim_wire *w = &to->down;
	uint64_t now = to->sim->now, start = w->free_at > now ? w->free_at : now;

	/* What waits is the time that the direction is taken, in bytes. */
	if (w->link.rate && w->link.queue_bytes &&
	    (double)(start - now) * (double)w->link.rate / 8e9 + f->len >
		    (double)w->link.queue_bytes) {
		to->stats.tail_drops++;
		free(f);
		return;
	}
	w->free_at = start + wire_time(w, f->len);
	impair(to, w, SIM_EV_ARRIVE, f, w->free_at);
}

static bool wants(const struct sim_port *port, const struct sim_frame *f)
{
	if (port->params.queue_of)
		return false; /* its port gets it, and steers */
	if (port->promisc)
		return true;
	if (f->len < 6)
		return false;
	return (f->data[0] & 1) || !memcmp(f->data, port->fp.mac, 6);
}

static void at_switch(struct sim *sim, struct sim_port *from, struct sim_frame *f)
{
	struct sim_port *first = NULL, *to;
	unsigned int i;

	if (from->params.queue_of)
		from = from->params.queue_of;
	/* The original goes to the first taker, copies to the others. */
	for (i = 0; i < sim->num_ports; i++) {
		to = sim->ports[i];
		if (to == from || to->net != from->net || !wants(to, f))
			continue;
		if (first)
			forward(to, sim_frame_new(f->data, f->len));
		else
			first = to;
	}
	if (first) {
		forward(first, f);
	} else {
		from->stats.nobody++;
		free(f);
	}
}

void sim_net_event(struct sim *sim, const struct sim_event *ev)
{
	switch (ev->kind) {
	case SIM_EV_TX:
		tx_done(sim, ev->port, ev->p);
		break;
	case SIM_EV_SWITCH:
		at_switch(sim, ev->port, ev->p);
		break;
	case SIM_EV_ARRIVE:
		sim_port_receive(ev->port, ev->p);
		break;
	case SIM_EV_CALL:
		break;
	}
}
