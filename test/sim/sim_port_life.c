/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to a port while it is open, with the events for its owner. */

#include <errno.h>
#include <stdio.h>

#include "sim_priv.h"

enum weft_frame_port_what sim_port_look(struct weft_frame_port *fp,
					struct weft_frame_port_event *ev)
{
	struct sim_port *port = (struct sim_port *)fp;

	if (port->ended && !port->reported_ended) {
		port->reported_ended = true;
		ev->status = port->ended;
		snprintf(ev->text, sizeof(ev->text), "%s",
			 port->ended == -ENODEV ? "the NIC was removed" : "the NIC wants a reset");
		return WEFT_FRAME_PORT_ENDED;
	}
	snprintf(ev->text, sizeof(ev->text), "%.3g Gb/s", port->speed * 8e-9);
	if (port->carrier != port->reported_carrier) {
		port->reported_carrier = port->carrier;
		if (!port->carrier) {
			ev->text[0] = '\0';
			return WEFT_FRAME_PORT_LINK_DOWN;
		}
		fp->bandwidth = port->speed;
		return WEFT_FRAME_PORT_LINK_UP;
	}
	if (!port->carrier || fp->bandwidth == port->speed)
		return WEFT_FRAME_PORT_NOTHING;
	fp->bandwidth = port->speed;
	return WEFT_FRAME_PORT_SPEED;
}

void sim_port_renew(struct sim_port *port)
{
	port->ended = 0;
	port->reported_ended = false;
	port->reported_carrier = port->carrier;
	port->fp.bandwidth = port->speed;
	port->fp.event = false;
}

void sim_port_carrier(struct sim_port *port, bool up)
{
	port->carrier = up;
	port->fp.event = true;
}

void sim_port_speed(struct sim_port *port, double bandwidth)
{
	port->speed = bandwidth;
	port->fp.event = true;
}

void sim_port_end(struct sim_port *port, int status)
{
	port->ended = status;
	port->fp.event = true;
}
