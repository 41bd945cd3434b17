/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sealed_scene.h
 * Two hosts with a sealed lane, and another host on their net. Each frame that either end sends is
 * recorded, and only those of the exchange are plain.
 */
#ifndef SIM_SEALED_SCENE_H
#define SIM_SEALED_SCENE_H

#include "frame/frame_port.h"
#include "lane_host.h"
#include "reseal.h"
#include "sim_test.h"

#define SEALED_RECORD_MAX 20000

struct sealed_frame {
	size_t len;
	uint8_t *data;
};

/* What has crossed the wire. */
struct sealed_record {
	struct sealed_frame frame[SEALED_RECORD_MAX];
	unsigned int n, plain, sealed;
	struct sim_link *down;
	size_t mtu; /* longer frames vanish; 0 = none */
	bool ether;
	bool no_arp; /* answers of the two hosts vanish */
	/* What the test does with a recorded frame; NULL = it passes. */
	enum sim_verdict (*hook)(struct sim_port *port, uint8_t *data, size_t len, void *arg);
	void *hook_arg;
};

struct sealed_scene {
	struct sim *sim;
	struct sim_port *pa, *pb, *px; /* px: another host on the same net */
	struct lane_host *a, *b;
	struct lane_end *e;
	struct sealed_record *rec;
};

/** A fast net, and a job key. */
extern struct sim_port_params sealed_fast;

/** @return NULL: no frame of a lane */
struct weft_frame_hdr *sealed_header(const struct sealed_record *r, uint8_t *f, size_t len);

/** Ports and hosts, without a connection. */
void sealed_open_hosts(struct sealed_scene *s, struct sim_case *c, const struct sim_port_params *pa,
		       const struct sim_port_params *pb, const char *config);

/** Connected. */
void sealed_open(struct sealed_scene *s, struct sim_case *c, const struct sim_port_params *p,
		 const char *config);

/** Both ways, messages of all kinds and sizes. */
void sealed_traffic(struct sealed_scene *s, uint32_t from, unsigned int n);

/** Of all that was recorded, nothing is plain. */
void sealed_close(struct sealed_scene *s);

void sealed_forget(struct sealed_record *r);

/** sim_test_main(). With SIM_KEYLOG=FILE the keys are in that file, for a capture (-w). */
int sealed_main(int argc, char **argv, const char *name, struct sim_case *cases, size_t n);

#endif /* SIM_SEALED_SCENE_H */
