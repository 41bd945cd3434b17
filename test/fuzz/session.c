/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A whole session of two simulated nodes, wire-up, messages, close, with frames changed on their
 * way and their checksums made right again: what a peer could do that lies at any layer. An input
 * is a row of 6-byte commands
 *
 *	which   frame of a side: skip so many, low bit of "how" says which side
 *	how     2..: flip, set, add, edge value of 1, 2 or 4 bytes; drop; repeat; cut
 *	offset  two bytes
 *	value   two bytes
 *
 * Nothing may crash, hang, read outside or leak, and both nodes end. What arrives may be wrong: the
 * peer is.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/reseal.h"
#include "sim/sim.h"

#define COMMAND 6
#define MESSAGES 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Changes of the frames that one side sends. */
struct side {
	const uint8_t *data;
	size_t size, at;
	unsigned int me, wait;
};

/* The next command for this side. */
static const uint8_t *next_command(struct side *s)
{
	const uint8_t *c;

	for (; s->at + COMMAND <= s->size; s->at += COMMAND) {
		c = s->data + s->at;
		if ((c[1] & 1) == s->me) {
			s->at += COMMAND;
			return c;
		}
	}
	return NULL;
}

static void change(uint8_t how, uint8_t *f, size_t len, uint16_t offset, uint16_t value)
{
	static const uint32_t edge[] = {0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff};
	size_t width = (size_t)1 << (how >> 2 & 3) % 3, at;
	uint64_t x = 0;

	/* Behind the lane header's first bytes more often than in front. */
	if (len <= 14 + width)
		return;
	at = 14 + offset % (len - 14 - width + 1);
	memcpy(&x, f + at, width);
	switch (how >> 4 & 3) {
	case 0:
		x ^= 1ull << value % (8 * width);
		break;
	case 1:
		x = value;
		break;
	case 2:
		x += (uint64_t)(int64_t)(int16_t)value % 9;
		break;
	default:
		x = edge[value % 8];
		break;
	}
	memcpy(f + at, &x, width);
	if (reseal_is_lane(f, len))
		reseal(f, len);
}

static enum sim_verdict meddle(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
			       void *arg)
{
	struct side *s = arg;
	const uint8_t *c;

	(void)room;
	if (s->wait) {
		s->wait--;
		return SIM_PASS;
	}
	c = next_command(s);
	if (!c)
		return SIM_PASS;
	s->wait = c[0] % 16;
	switch (c[1] >> 6) {
	case 0:
		if (c[1] & 2)
			return SIM_DROP;
		break;
	case 1:
		if (c[1] & 2 && s->wait)
			sim_inject(port, data, *len);
		break;
	case 2:
		if (c[1] & 2)
			*len = 14 + (c[2] | c[3] << 8) % (*len - 13);
		break;
	}
	change(c[1], data, *len, (uint16_t)(c[2] | c[3] << 8), (uint16_t)(c[4] | c[5] << 8));
	return SIM_PASS;
}

static uint8_t out[2][60000], in[2][MESSAGES][60000];

static struct weft_ep *start(struct sim_node *from, struct sim_node *to, unsigned int me)
{
	static const size_t sizes[MESSAGES] = {0, 8, 300, 1400, 5000, 20000, 60000, 100};
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params);
	struct weft_ep *ep = NULL;
	void *address;
	size_t len;
	unsigned int i;

	if (weft_worker_get_address(sim_worker(to), &address, &len))
		abort();
	p.address = address;
	p.address_length = len;
	if (weft_ep_create(sim_worker(from), &p, &ep))
		abort();
	weft_worker_release_address(sim_worker(to), address);
	for (i = 0; i < MESSAGES; i++) {
		/* Some come unexpected. */
		if (i & 1)
			weft_tag_recv(sim_worker(from), i & 2 ? ep : NULL, in[me][i], sizes[i], i,
				      i & 4 ? 0xff : UINT64_MAX, NULL, NULL);
		(i == 2 || i == 6 ? weft_tag_send_sync : weft_tag_send)(ep, out[me], sizes[i], i,
									NULL, NULL);
	}
	return ep;
}

static void finish(struct sim_node *node, unsigned int me)
{
	unsigned int i;

	for (i = 0; i < MESSAGES; i += 2)
		weft_tag_recv(sim_worker(node), NULL, in[me][i], sizeof(in[me][i]), i, UINT64_MAX,
			      NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const config =
		"PEER_TIMEOUT=400ms CONNECT_TIMEOUT=400ms KEEPALIVE_INTERVAL=50ms RNDV_THRESH=16k "
		"EAGER_CREDIT=16k UNEXP_LIMIT=64k LOG_LEVEL=error LOG_FILE=/dev/null CSUM=crc32c";
	struct sim_port_params pp = {.up = {.rate = SIM_GBIT, .delay_ns = 5000}, .bufs = 512};
	struct side side[2] = {{data, size, 0, 0, 0}, {data, size, 0, 1, 0}};
	struct sim *sim = sim_create(1);
	struct sim_port *port[2][2];
	struct sim_node *node[2];
	struct weft_ep *ep[2];
	unsigned int i, l;

	for (i = 0; i < 2; i++) {
		struct sim_node_params np = {.ports = port[i], .num_ports = 2, .config = config};

		for (l = 0; l < 2; l++) {
			pp.net = l;
			pp.ip = 0x0a000001 + (l << 16) + i;
			pp.prefix = 24;
			port[i][l] = sim_port_create(sim, &pp);
			sim_filter(port[i][l], meddle, &side[i]);
		}
		node[i] = sim_node_create(sim, &np);
	}
	for (i = 0; i < 2; i++)
		ep[i] = start(node[i], node[!i], i);
	sim_run(sim, 5 * SIM_MS, NULL, NULL);
	for (i = 0; i < 2; i++)
		finish(node[i], i);
	sim_run(sim, 600 * SIM_MS, NULL, NULL);
	for (i = 0; i < 2; i++)
		weft_ep_close(ep[i], i && size & 1 ? WEFT_EP_CLOSE_F_FORCE : 0, NULL, NULL);
	sim_run(sim, 600 * SIM_MS, NULL, NULL);
	sim_close_nodes(sim);
	if (sim_leaked(sim))
		abort();
	sim_destroy(sim);
	return 0;
}
