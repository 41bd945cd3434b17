/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Seeds of the frame fuzzer from real frames: runs short sessions in the simulator and writes what
 * is on the wire, one file for each kind of frame, with the fuzzer's byte of settings in front.
 *
 *	make_frames DIRECTORY
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "frame/frame.h"
#include "frame/frame_port.h"
#include "frame/parse.h"
#include "sim/sim.h"
#include "sim/traffic.h"

static const char *dir;
static unsigned int written, pings;
static uint64_t seen[4096];

/* Type, flags and length class: a second of the same kind teaches nothing. */
static bool is_new(uint8_t settings, const uint8_t *f, size_t len)
{
	size_t lane = 14 + (settings & 2 ? 4 : 0) + (settings & 1 ? 0 : 28), bits = 0, n;
	uint64_t key = settings;

	for (n = len; n; n >>= 1)
		bits++;
	key = key << 8 | bits;
	if (len > lane + 8)
		key = key << 32 | (uint64_t)f[lane + 3] << 16 | (uint64_t)f[lane + 4] << 8 |
		      f[lane - 1];
	if (len > lane + 46)
		key ^= (uint64_t)f[lane + 44] << 24;
	key = key % 4093;
	if (seen[key])
		return false;
	seen[key] = 1;
	return true;
}

/* Of the measure of the way, before a connection is up. */
static bool is_ping(uint8_t settings, const uint8_t *f, size_t len)
{
	const uint8_t *lane = f + sizeof(struct rte_ether_hdr) + (settings & 2 ? 4 : 0) +
			      (settings & 1 ? 0 : WEFT_IP_UDP_LEN);
	const struct weft_frame_probe *p =
		(const struct weft_frame_probe *)(lane + sizeof(struct weft_frame_hdr));

	return (const uint8_t *)(p + 1) <= f + len &&
	       ((const struct weft_frame_hdr *)lane)->type == WEFT_FRAME_PROBE &&
	       weft_get16(p->frame_size) == WEFT_FRAME_PROBE_PING;
}

static void write_seed(uint8_t settings, const uint8_t *data, size_t len)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%04u", dir, written++);
	f = fopen(path, "wb");
	if (!f || fwrite(&settings, 1, 1, f) != 1 || fwrite(data, len, 1, f) != 1 || fclose(f)) {
		fprintf(stderr, "make_frames: can't write %s: %s\n", path, strerror(errno));
		exit(1);
	}
}

static enum sim_verdict keep(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
			     void *arg)
{
	uint8_t settings = *(uint8_t *)arg | 0x78; /* all repairs */

	(void)port;
	(void)room;
	if (is_ping(settings, data, *len))
		pings++;
	if (!is_new(settings, data, *len))
		return SIM_PASS;
	write_seed(settings, data, *len);
	return SIM_PASS;
}

static void session(bool raw, bool vlan, const char *config)
{
	const struct traffic_conf conf = {
		.messages = 30, .max_size = 60000, .window = 8, .large = 0.1, .sync = 0.2};
	struct sim_link up = {
		.rate = 10 * SIM_GBIT, .delay_ns = 5000, .loss = 0.03, .reorder = 0.05};
	struct sim_port_params pp = {.up = up,
				     .ip = 0x0a000001,
				     .prefix = 24,
				     .vlan = vlan ? 5 : 0,
				     .raw_ethertype = raw,
				     .flags = WEFT_FRAME_PORT_MEASURE | WEFT_FRAME_PORT_GUESS,
				     .udp_port = 9338};
	uint8_t settings = (uint8_t)(raw | vlan << 1);
	struct sim *sim = sim_create(7);
	struct sim_node *node[2];
	struct sim_port *port;
	struct traffic *t;
	const char *why;
	unsigned int i;

	for (i = 0; i < 2; i++, pp.ip++) {
		struct sim_node_params np = {.ports = &port, .num_ports = 1, .config = config};

		port = sim_port_create(sim, &pp);
		sim_filter(port, keep, &settings);
		node[i] = sim_node_create(sim, &np);
	}
	t = traffic_create(sim, node, 2, &conf);
	why = traffic_run(t, 20 * SIM_S);
	if (why) {
		fprintf(stderr, "make_frames: %s\n", why);
		exit(1);
	}
	sim_close_nodes(sim);
	traffic_destroy(t);
	sim_destroy(sim);
}

/* A frame with an empty message is shorter than WEFT_RX_PATTERN: the quick parser leaves it. */
static void short_frame(void)
{
	const struct weft_frame_hdr hdr = {
		.type = WEFT_FRAME_DATA,
		.length = weft_put16(sizeof(hdr) + sizeof(struct weft_frame_msg))};
	uint8_t f[sizeof(struct rte_ether_hdr) + sizeof(hdr) + sizeof(struct weft_frame_msg)] = {0};

	static_assert(sizeof(f) < WEFT_RX_PATTERN, "short");
	memcpy(f + sizeof(struct rte_ether_hdr), &hdr, sizeof(hdr));
	write_seed(0x79, f, sizeof(f)); /* raw Ethernet, all repairs */
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	dir = argv[1];
	if (mkdir(dir, 0777) && errno != EEXIST) {
		fprintf(stderr, "make_frames: can't make %s: %s\n", dir, strerror(errno));
		return 1;
	}
	session(false, false, "CSUM=crc32c");
	session(false, false, "CSUM=none RNDV_THRESH=1k");
	session(false, false, "CSUM=udp");
	session(false, true, "CSUM=crc32c");
	session(true, false, "CSUM=crc32c");
	session(true, true, "CSUM=none");
	short_frame();
	if (pings == 0) {
		fprintf(stderr, "make_frames: no PING has been seen\n");
		return 1;
	}
	printf("make_frames: %u frames\n", written);
	return 0;
}
