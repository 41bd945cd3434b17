/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>

#include "core/config.h"
#include "proto/cost.h"
#include "proto/rndv_cost.h"
#include "core/wire.h"

enum how { BY_GET, BY_PUT, BY_AM };

/*
 * WEFT_RNDV_SCHEME: auto means get, natively or by pulls, which every lane supports. If the sender
 * does not offer get, auto is the faster of the other schemes; every sender supports data as
 * messages.
 */
static bool wanted(const struct weft_model *m, const struct weft_proto_key *key, enum how how,
		   struct weft_curve *cv)
{
	static const char *const names[] = {"auto", "get", "put", "am"};
	uint32_t scheme = m->conf.rndv_scheme;
	bool yes;

	if (key->lacks & WEFT_NEEDS_PULL)
		yes = how == BY_PUT ? scheme == WEFT_RNDV_AUTO || scheme == WEFT_RNDV_PUT
				    : how == BY_AM;
	else if (scheme == WEFT_RNDV_AUTO || scheme == WEFT_RNDV_GET)
		yes = how == BY_GET;
	else /* lanes that cannot write get the data as messages */
		yes = how == BY_AM || (how == BY_PUT && scheme == WEFT_RNDV_PUT);
	if (!yes)
		snprintf(cv->why, sizeof(cv->why), "WEFT_RNDV_SCHEME=%s does not move data so",
			 scheme < 4 ? names[scheme] : "?");
	return yes;
}

/* The common part: both ends have a request, the receiver ends with an ATS, d. */
static void begin(const struct weft_model *m, const struct weft_proto_key *key,
		  struct weft_curve *cv)
{
	weft_curve_begin(cv, 0, SIZE_MAX);
	cv->scale = 1 - m->conf.perf_diff / 100;
	weft_curve_once(cv, WEFT_STAGE_SEND_CPU, (struct weft_linear){WEFT_COST_RNDV, 0},
			"keep the request", NULL);
	weft_curve_once(cv, WEFT_STAGE_RECV_CPU,
			(struct weft_linear){WEFT_COST_RNDV + m->lanes[m->am_lane].send_overhead,
					     0},
			"end, send ATS", NULL);
	if (key->op != WEFT_OP_RNDV_DATA)
		weft_cost_control(cv, m, "RTS");
}

int weft_rndv_cost_am(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		      struct weft_curve *cv)
{
	int rc;

	if (!wanted(m, key, BY_AM, cv))
		return -ENOTSUP;
	begin(m, key, cv);
	weft_cost_control(cv, m, "RTR");
	rc = weft_cost_fragments(cv, m, lanes, sizeof(struct weft_wire_data), key->buf);
	if (rc == 0)
		weft_curve_end(cv);
	return rc;
}

int weft_rndv_cost_pull(const struct weft_model *m, const struct weft_proto_key *key,
			uint32_t lanes, struct weft_curve *cv)
{
	int rc;

	if (!wanted(m, key, BY_GET, cv))
		return -ENOTSUP;
	/*
	 * Native reads leave both CPUs to the program, which is not in any time; and the sender has
	 * already registered the memory.
	 */
	if (key->op == WEFT_OP_RNDV_DATA && !(key->lacks & WEFT_NEEDS_NATIVE) &&
	    weft_buf_class(key->buf) == WEFT_DT_CONTIG &&
	    weft_lanes_choose(m, &weft_lanes_rndv_get, key, NULL, 0)) {
		snprintf(cv->why, sizeof(cv->why),
			 "the sender's memory can be read: data/get; pulls serve the other lanes");
		return -ENOTSUP;
	}
	begin(m, key, cv);
	/* Further requests are sent while data comes. */
	weft_cost_control(cv, m, "pull request");
	rc = weft_cost_fragments(cv, m, lanes, sizeof(struct weft_wire_data), key->buf);
	if (rc == 0)
		weft_curve_end(cv);
	return rc;
}

/* Memory that the NICs read and write natively: the same work for get and put. */
static int cost_rma(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		    struct weft_curve *cv, enum weft_stage poster)
{
	uint32_t all;

	if (weft_buf_class(key->buf) != WEFT_DT_CONTIG) {
		snprintf(cv->why, sizeof(cv->why),
			 "only contiguous memory is read and written remotely");
		return -ENOTSUP;
	}
	/*
	 * Lanes without native operations carry their share as messages in the meantime
	 * (rndv/pull.c, rndv/send.c); the other lanes' wires hide their copies. The closed form,
	 * and the tables of senders, are about the native lanes alone.
	 */
	all = lanes;
	if (key->op == WEFT_OP_RNDV_DATA)
		all |= weft_lanes_choose(m, &weft_lanes_rndv_am, key, NULL, 0);
	weft_curve_lanes(cv, m, all);
	/*
	 * The receiver, which decides, uses its own buffer type; the sender's memory is registered,
	 * or there are no keys.
	 */
	if (key->op != WEFT_OP_RNDV_DATA) {
		if (!(key->buf & WEFT_BUF_REG))
			weft_cost_register(cv, m, lanes, WEFT_STAGE_SEND_REG);
		weft_cost_register(cv, m, lanes, WEFT_STAGE_RECV_REG);
	} else if (!(key->buf & WEFT_BUF_REG)) {
		weft_cost_register(cv, m, lanes, WEFT_STAGE_RECV_REG);
	}
	weft_cost_native(cv, m, all, poster);
	return 0;
}

int weft_rndv_cost_get(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv)
{
	struct weft_lanes_sum sum;
	int rc;

	if (!wanted(m, key, BY_GET, cv))
		return -ENOTSUP;
	begin(m, key, cv);
	rc = cost_rma(m, key, lanes, cv, WEFT_STAGE_RECV_CPU);
	if (rc)
		return rc;
	weft_lanes_sum(m, lanes, &sum);
	weft_curve_once(cv, WEFT_STAGE_LATENCY, (struct weft_linear){sum.latency, 0},
			"read requests", "the slowest lane");
	weft_curve_end(cv);
	return 0;
}

int weft_rndv_cost_put(const struct weft_model *m, const struct weft_proto_key *key, uint32_t lanes,
		       struct weft_curve *cv)
{
	int rc;

	if (!wanted(m, key, BY_PUT, cv))
		return -ENOTSUP;
	begin(m, key, cv);
	weft_cost_control(cv, m, "RTR");
	rc = cost_rma(m, key, lanes, cv, WEFT_STAGE_SEND_CPU);
	if (rc)
		return rc;
	/* The writes must be complete, which takes a reply, before the message that reports it. */
	weft_cost_control(cv, m, "acknowledgement of the writes");
	weft_cost_control(cv, m, "all is written");
	weft_curve_end(cv);
	return 0;
}
