/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Links. A frame's path: TX ring -> (rate of the port's "up" direction) -> faults, delay -> switch
 * -> (trunks: queue, rate, faults, delay -> switch) -> (queue and rate of the other port's "down"
 * direction) -> faults, delay -> receive ring or station.
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

static struct sim_link_frame look(const struct sim_frame *f)
{
	return (struct sim_link_frame){.data = f->data, .hdr_len = f->len, .len = f->len};
}

/* Takes the frame, which has been on the wire at @when. */
static void impair(struct sim *sim, struct sim_wire *w, enum sim_event_kind kind, void *at,
		   struct sim_frame *f, uint64_t when)
{
	struct sim_link_frame seen = look(f);
	struct sim_link_copy copy[2];
	unsigned int n = sim_link_deliver(&w->link, &w->state, &seen, when, copy), i;
	struct sim_frame *out;

	for (i = 0; i < n; i++) {
		out = i + 1 < n ? sim_frame_new(f->data, f->len) : f;
		sim_link_flip(&copy[i], out->data, out->len);
		out->len = copy[i].len;
		sim_event_add(sim, copy[i].when, kind, at, out, NULL);
	}
	if (!n)
		free(f);
}

void sim_wire_forward(struct sim *sim, struct sim_wire *w, enum sim_event_kind kind, void *at,
		      struct sim_frame *f)
{
	struct sim_link_frame seen = look(f);
	uint64_t sent;
	bool mark;

	if (sim_link_refuses(&w->link, &w->state, &seen, sim->now) ||
	    !sim_link_enqueue(&w->link, &w->state, f->len, sim->now, &sent, &mark)) {
		free(f);
		return;
	}
	if (mark)
		sim_link_mark(&w->state, f->data, f->len);
	impair(sim, w, kind, at, f, sent);
}

/* ---- host to switch ------------------------------------------------------------------------- */

void sim_net_send(struct sim_port *port, struct sim_tx *tx, size_t len)
{
	uint64_t sent =
		sim_link_serialise(&port->up.link, &port->up.state, (uint32_t)len, port->sim->now);

	sim_event_add(port->sim, sent, SIM_EV_TX, port, tx, NULL);
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
	struct sim_link_frame seen;
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
	seen = look(f);
	if (!port->carrier) {
		port->up.state.stats.blackholed++;
		free(f);
	} else if (sim_link_refuses(&port->up.link, &port->up.state, &seen, sim->now)) {
		free(f);
	} else {
		impair(sim, &port->up, SIM_EV_SWITCH, port, f, sim->now);
	}
}

/* ---- switch to host ------------------------------------------------------------------------- */

static void forward(struct sim_port *to, struct sim_frame *f)
{
	if (to->carrier) {
		sim_wire_forward(to->sim, &to->down, SIM_EV_ARRIVE, to, f);
		return;
	}
	to->down.state.stats.blackholed++;
	free(f);
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

bool sim_net_deliver(struct sim *sim, unsigned int net, const struct sim_port *from,
		     struct sim_frame *f)
{
	struct sim_port *first = NULL, *to;
	unsigned int i;

	/* The original goes to the first taker, copies to the others. */
	for (i = 0; i < sim->num_ports; i++) {
		to = sim->ports[i];
		if (to == from || to->net != net || !wants(to, f))
			continue;
		if (first)
			forward(to, sim_frame_new(f->data, f->len));
		else
			first = to;
	}
	if (first)
		forward(first, f);
	else
		free(f);
	return first;
}

static void at_switch(struct sim *sim, struct sim_port *from, struct sim_frame *f)
{
	if (from->params.queue_of)
		from = from->params.queue_of;
	if (!sim_fabric_switch(sim, from->net, from, NULL, f))
		from->stats.no_listener++;
}

static void at_trunk_end(struct sim *sim, struct sim_trunk_end *end, struct sim_frame *f)
{
	sim_fabric_switch(sim, end->net, NULL, end->trunk, f);
}

void sim_net_event(struct sim *sim, const struct sim_event *ev)
{
	switch (ev->kind) {
	case SIM_EV_TX:
		tx_done(sim, ev->at, ev->p);
		break;
	case SIM_EV_SWITCH:
		at_switch(sim, ev->at, ev->p);
		break;
	case SIM_EV_TRUNK:
		at_trunk_end(sim, ev->at, ev->p);
		break;
	case SIM_EV_ARRIVE:
		sim_port_receive(ev->at, ev->p);
		break;
	case SIM_EV_CALL:
		break;
	}
}
