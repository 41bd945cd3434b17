/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connects a lane_ep to that of the peer. The calls into the kernel run in a thread of the device,
 * and the worker polls for their end.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "roce.h"

static int to_rtr(struct roce_lane_ep *lane_ep, unsigned int i)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)lane_ep->mtu,
		.dest_qp_num = lane_ep->remote_qpn[i],
		.rq_psn = lane_ep->remote_psn,
		.max_dest_rd_atomic = (uint8_t)roce_reads_max(r->dev->attr.max_qp_rd_atom),
		.min_rnr_timer = (uint8_t)r->opts.rnr_timer,
		.ah_attr = {.is_global = 1,
			    .port_num = (uint8_t)r->port,
			    .grh = {.sgid_index = lane_ep->sgid_index,
				    .hop_limit = 64,
				    .traffic_class = (uint8_t)r->opts.tc,
				    /* Becomes the UDP source port: switches that hash it
				     * spread queue pairs over paths. */
				    .flow_label = (lane_ep->psn ^ (i * 0x3c6efu)) & 0xfffff}},
	};

	memcpy(attr.ah_attr.grh.dgid.raw, lane_ep->remote_gid, 16);
	return ibv_modify_qp(lane_ep->chans[i]->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct roce_lane_ep *lane_ep, unsigned int i)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = (uint8_t)r->opts.timeout,
		.retry_cnt = (uint8_t)r->opts.retry,
		.rnr_retry = 6,
		.sq_psn = lane_ep->psn,
		.max_rd_atomic = (uint8_t)lane_ep->chans[i]->max_reads,
	};

	return ibv_modify_qp(lane_ep->chans[i]->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* Runs in a thread of the device: the kernel resolves the peer's Ethernet address in this call. */
static void connect_job(struct roce_job *job)
{
	struct roce_lane_ep *lane_ep =
		(struct roce_lane_ep *)((char *)job - offsetof(struct roce_lane_ep, job));
	unsigned int i;
	int err = 0;

	for (i = 0; i < lane_ep->num_qps && err == 0; i++) {
		err = to_rtr(lane_ep, i);
		if (err == 0)
			err = to_rts(lane_ep, i);
	}
	job->err = err < 0 ? -err : err;
}

/* Destroy queue pairs for which the peer has none. */
static void drop_extra(struct roce_lane_ep *lane_ep, unsigned int keep)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct roce_chan *chan;

	while (lane_ep->num_qps > keep) {
		chan = lane_ep->chans[--lane_ep->num_qps];
		lane_ep->promised -= chan->credit.own_window + 1;
		r->promised -= chan->credit.own_window + 1;
		roce_chan_free(r, chan);
	}
}

/* Set up one queue pair from the peer's address of the lane_ep. */
static int connect_qp(struct roce_lane_ep *lane_ep, unsigned int i,
		      const struct weft_roce_ep_addr *e)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct roce_chan *chan = lane_ep->chans[i];
	/* A message is complete when both the peer and the device have completed it. */
	uint32_t places = ROCE_RING_PLACES, k;

	lane_ep->remote_qpn[i] = weft_get32(e->qpn[i]);
	chan->credit.window = weft_get32(e->window);
	chan->word_remote = weft_get64(e->word_addr) + i * sizeof(struct weft_roce_word);
	chan->max_reads = roce_reads_max(r->dev->attr.max_qp_init_rd_atom);
	if (chan->max_reads > e->reads)
		chan->max_reads = e->reads;
	/* Without read resources a read would wait for ever, so messages carry the data instead. */
	if (chan->max_reads == 0)
		lane_ep->base.lacks = WEFT_LANE_F_GET | WEFT_LANE_F_AMO64;
	while (places < chan->credit.window)
		places *= 2;
	chan->unacked_mask = places - 1;
	chan->unacked = calloc(places, sizeof(*chan->unacked));
	if (!chan->unacked)
		return -ENOMEM;
	for (k = 1; k < places / ROCE_RING_PLACES; k++) {
		chan->rings[k] = roce_pool_get(&r->ring_pool);
		if (!chan->rings[k])
			return -ENOMEM;
	}
	return 0;
}

int roce_ep_connect_ep(struct weft_lane_ep *base, const void *dev_addr, size_t dev_len,
		       const void *ep_addr, size_t ep_len)
{
	struct roce_lane_ep *lane_ep = roce_lane_ep_of(base);
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct weft_roce_ep_addr e;
	struct weft_roce_addr a;
	char why[160];
	unsigned int i;
	int rc;

	rc = weft_roce_addr_check(dev_addr, dev_len, WEFT_ROCE_RC, why, sizeof(why));
	if (rc == 0)
		rc = weft_roce_ep_addr_check(ep_addr, ep_len, why, sizeof(why));
	if (rc < 0) {
		r->count.bad_addr++;
		weft_warn("%s: a peer can't be connected to: %s", r->base.name, why);
		return rc;
	}
	if (lane_ep->state != ROCE_CREATED)
		return -EALREADY;
	memcpy(&a, dev_addr, sizeof(a));
	memcpy(&e, ep_addr, sizeof(e));
	memcpy(lane_ep->remote_gid, a.gid, 16);
	weft_roce_gid_print(a.gid, lane_ep->peer, sizeof(lane_ep->peer));
	drop_extra(lane_ep, e.num_qps);
	lane_ep->mtu = a.mtu < r->mtu ? a.mtu : r->mtu;
	lane_ep->remote_psn = weft_get32(e.psn);
	lane_ep->remote_rkey = weft_get32(e.word_rkey);
	base->max_msg =
		(uint32_t)(weft_get32(a.seg) < r->opts.seg ? weft_get32(a.seg) : r->opts.seg);
	for (i = 0; i < lane_ep->num_qps; i++) {
		rc = connect_qp(lane_ep, i, &e);
		if (rc < 0)
			return rc;
	}
	lane_ep->job.run = connect_job;
	memcpy(lane_ep->job.host, lane_ep->remote_gid, sizeof(lane_ep->job.host));
	rc = roce_job_start(r->dev, &lane_ep->job);
	if (rc < 0) {
		lane_ep->job.run = NULL; /* no thread has it */
		return rc;
	}
	lane_ep->state = ROCE_CONNECTING;
	lane_ep->connecting = true;
	lane_ep->since = r->now;
	TAILQ_INSERT_TAIL(&r->connecting, lane_ep, connect_link);
	return 0;
}

/* ------------------------------------------------------------------ the thread has finished */

static void lane_connected(struct roce_lane_ep *lane_ep)
{
	struct roce_iface *r = roce_lane_ep_iface(lane_ep);
	struct weft_roce_names names = roce_names(lane_ep);
	char text[256];
	unsigned int i;

	if (lane_ep->job.err != 0) {
		weft_roce_text_connect(&names, lane_ep->job.err, text, sizeof(text));
		roce_lane_ep_fail(lane_ep, WEFT_LANE_EV_DOWN, -EHOSTUNREACH, text);
		return;
	}
	lane_ep->state = ROCE_UP;
	lane_ep->base.up = true;
	lane_ep->base.tx_room = true;
	/* The keepalive interval starts here. */
	for (i = 0; i < lane_ep->num_qps; i++)
		lane_ep->chans[i]->busy_since = lane_ep->chans[i]->last_rx_at = r->now;
	snprintf(text, sizeof(text), "%s: peer %s, path MTU %u, %u queue pair%s", names.device,
		 names.peer, 128u << lane_ep->mtu, lane_ep->num_qps,
		 lane_ep->num_qps > 1 ? "s" : "");
	r->event(r->arg, &lane_ep->base, WEFT_LANE_EV_UP, 0, text);
}

unsigned int roce_connect_progress(struct roce_iface *r)
{
	struct roce_lane_ep *lane_ep, *next;
	unsigned int events = 0;

	for (lane_ep = TAILQ_FIRST(&r->connecting); lane_ep; lane_ep = next) {
		next = TAILQ_NEXT(lane_ep, connect_link);
		if (!roce_job_done(&lane_ep->job))
			continue;
		TAILQ_REMOVE(&r->connecting, lane_ep, connect_link);
		lane_ep->connecting = false;
		if (lane_ep->state != ROCE_CONNECTING) {
			roce_lane_ep_ended_meanwhile(lane_ep);
			continue;
		}
		events++;
		lane_connected(lane_ep);
		next = TAILQ_FIRST(&r->connecting); /* the callback may have changed the list */
	}
	return events;
}
