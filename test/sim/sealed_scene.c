/* SPDX-License-Identifier: BSD-3-Clause */

#include "sealed_scene.h"

#include <stdlib.h>
#include <string.h>

#include <rte_arp.h>

#include "base/log.h"
#include "base/secret.h"

static const uint8_t key[32] = "a job key of the sealed lanes 01";

static struct sealed_record recorded;

static size_t lane_at(const struct sealed_record *r)
{
	return r->ether ? RTE_ETHER_HDR_LEN : RESEAL_LANE;
}

struct weft_frame_hdr *sealed_header(const struct sealed_record *r, uint8_t *f, size_t len)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)f;

	if (len < lane_at(r) + sizeof(struct weft_frame_hdr) ||
	    eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP))
		return NULL;
	return (struct weft_frame_hdr *)(f + lane_at(r));
}

static bool may_be_plain(uint8_t type)
{
	return type == WEFT_FRAME_HELLO || type == WEFT_FRAME_HELLO_ACK ||
	       type == WEFT_FRAME_HELLO_RETRY || type == WEFT_FRAME_RESET ||
	       type == WEFT_FRAME_CHALLENGE;
}

static enum sim_verdict record(struct sim_port *port, uint8_t *data, size_t *len, size_t room,
			       void *arg)
{
	struct sealed_record *r = arg;
	const struct weft_frame_hdr *h = sealed_header(r, data, *len);

	(void)room;
	if (h && weft_get16(h->flags) & WEFT_FRAME_F_SEALED) {
		r->sealed++;
	} else if (h && !may_be_plain(h->type)) {
		r->plain++;
	}
	if (r->n < SEALED_RECORD_MAX) {
		r->frame[r->n].data = malloc(*len);
		memcpy(r->frame[r->n].data, data, *len);
		r->frame[r->n++].len = *len;
	}
	if (r->no_arp &&
	    ((struct rte_ether_hdr *)data)->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP) &&
	    data[RTE_ETHER_HDR_LEN + 7] == RTE_ARP_OP_REPLY)
		return SIM_DROP;
	if (r->mtu != 0 && *len > r->mtu + RTE_ETHER_HDR_LEN)
		return SIM_DROP;
	return r->hook ? r->hook(port, data, *len, r->hook_arg) : SIM_PASS;
}

void sealed_forget(struct sealed_record *r)
{
	while (r->n)
		free(r->frame[--r->n].data);
	memset(r, 0, sizeof(*r));
}

struct sim_port_params sealed_fast = {.up = {.rate = 10 * SIM_GBIT, .delay_ns = 5000},
				      .job_key = key};

/* Ports and hosts, without a connection. */
void sealed_open_hosts(struct sealed_scene *s, struct sim_case *c, const struct sim_port_params *pa,
		       const struct sim_port_params *pb, const char *config)
{
	struct sim_port_params shared = *pa;

	memset(s, 0, sizeof(*s));
	s->rec = &recorded;
	sealed_forget(s->rec);
	s->rec->ether = pa->raw_ethertype;
	s->sim = case_sim_seed(c, c->seed);
	/* A decrypts into other buffers, B in place. */
	shared.no_flags |= WEFT_FRAME_PORT_RX_OWN;
	s->pa = sim_port_create(s->sim, &shared);
	s->pb = sim_port_create(s->sim, pb);
	s->px = sim_port_create(s->sim, pa);
	sim_station(s->px, false, sim_ignore, NULL);
	sim_filter(s->pa, record, s->rec);
	sim_filter(s->pb, record, s->rec);
	s->a = lane_host_create(s->sim, s->pa, config);
	s->b = lane_host_create(s->sim, s->pb, config);
}

void sealed_open(struct sealed_scene *s, struct sim_case *c, const struct sim_port_params *p,
		 const char *config)
{
	sealed_open_hosts(s, c, p, p, config);
	s->e = lane_up(s->a, s->b);
	assert_non_null(s->e);
}

/* Both ways, messages of all kinds and sizes. */
void sealed_traffic(struct sealed_scene *s, uint32_t from, unsigned int n)
{
	assert_int_equal(s->e->downs + lane_passive(s->b)->downs, 0);
	if (!lane_send_all(s->e, from, from + n, 20 * SIM_S))
		fail_msg("traffic stopped: %u received, %s", lane_received(s->b), s->e->text);
	assert_true(lane_exactly_once(s->b, from, from + n));
	if (!lane_send_all(lane_passive(s->b), from + n, from + 2 * n, 20 * SIM_S))
		fail_msg("traffic back stopped: %u received", lane_received(s->a));
	assert_true(lane_exactly_once(s->a, from + n, from + 2 * n));
	assert_int_equal(lane_wrong(s->a) + lane_wrong(s->b), 0);
}

/* Of all that was recorded, nothing is plain. case_end() checks the nonces. */
static void only_sealed(const struct sealed_scene *s)
{
	assert_int_equal(s->rec->plain, 0);
	assert_true(s->rec->sealed > 0 && s->rec->sealed <= sim_nonces().sealed);
	assert_int_equal(sim_port_stats(s->pa)->oversize + sim_port_stats(s->pb)->oversize, 0);
}

void sealed_close(struct sealed_scene *s)
{
	only_sealed(s);
	sealed_forget(s->rec);
}

int sealed_main(int argc, char **argv, const char *name, struct sim_case *cases, size_t n)
{
	const char *path = getenv("SIM_KEYLOG");
	char why[300];
	int fd = path ? weft_keylog_open(path, why, sizeof(why)) : -1, ret;

	sealed_fast.keylog = path ? &fd : NULL;
	ret = sim_test_main(argc, argv, name, cases, n);
	return path && weft_keylog_flush() > 0 ? 1 : ret;
}
