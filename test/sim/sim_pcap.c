/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every frame of a simulation as pcapng: one interface per port, ns, with direction. Frames going
 * out are as the sender gave them; those coming in are as they reached the receiver's ring.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim_priv.h"

struct sim_pcap {
	FILE *f;
	unsigned int ports; /* interfaces described so far: all with a lower index */
};

struct block_head {
	uint32_t type, length;
};

static void put_block(FILE *f, uint32_t type, const void *body, size_t len)
{
	struct block_head h = {type, (uint32_t)(12 + len)};

	fwrite(&h, sizeof(h), 1, f);
	fwrite(body, len, 1, f);
	fwrite(&h.length, sizeof(h.length), 1, f);
}

struct sim_pcap *sim_pcap_open(const char *path)
{
	static const uint32_t section[4] = {0x1a2b3c4d, 1 /* 1.0 */, UINT32_MAX, UINT32_MAX};
	struct sim_pcap *p = sim_alloc(sizeof(*p));

	p->f = fopen(path, "wb");
	if (!p->f) {
		free(p);
		return NULL;
	}
	put_block(p->f, 0x0a0d0d0a, section, sizeof(section));
	return p;
}

void sim_pcap_close(struct sim_pcap *p)
{
	if (!p)
		return;
	fclose(p->f);
	free(p);
}

static void describe(struct sim_pcap *p, const struct sim_port *port)
{
	struct {
		uint16_t linktype, reserved;
		uint32_t snaplen;
		uint16_t name_code, name_len; /* if_name */
		char name[32];
		uint16_t res_code, res_len; /* if_tsresol: ns */
		uint8_t res[4];
		uint32_t end;
	} b = {.linktype = 1,
	       .name_code = 2,
	       .name_len = sizeof(b.name),
	       .res_code = 9,
	       .res_len = 1,
	       .res = {9}};

	memcpy(b.name, port->name, sizeof(b.name));
	put_block(p->f, 1, &b, sizeof(b));
}

void sim_pcap_frame(struct sim_pcap *p, const struct sim_port *port, bool out, uint64_t now,
		    const uint8_t *data, size_t len)
{
	struct {
		uint32_t iface, high, low, caplen, len;
	} h = {port->index, (uint32_t)(now >> 32), (uint32_t)now, (uint32_t)len, (uint32_t)len};
	const struct {
		uint16_t code, len;
		uint32_t flags, end;
	} opt = {2, 4, out ? 2 : 1, 0}; /* epb_flags: direction */
	uint8_t body[sizeof(h) + SIM_FRAME_MAX + 4 + sizeof(opt)];
	size_t padded = (len + 3) & ~(size_t)3;

	for (; p->ports <= port->index; p->ports++)
		describe(p, port->sim->ports[p->ports]);
	memset(body, 0, sizeof(h) + padded);
	memcpy(body, &h, sizeof(h));
	memcpy(body + sizeof(h), data, len);
	memcpy(body + sizeof(h) + padded, &opt, sizeof(opt));
	put_block(p->f, 6, body, sizeof(h) + padded + sizeof(opt));
}
