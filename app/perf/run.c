/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol between client and server: the client sends each run (PARAMS), both execute it, and
 * the server replies with its figures (RESULT). PERF_END ends the session. The first PARAMS has
 * only the kind of the tests, because a bare-port test needs exclusive use of the port.
 */

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/program.h"
#include "perf/flow.h"
#include "perf/print.h"
#include "perf/run.h"
#include "perf/sweep.h"
#include "weft_plan.h"

#define MIN_ITERS 2u
#define DEFAULT_WARMUP 10000u
#define WARMUP_PART 0.1 /* of the seconds of a run, at most WARMUP_SECONDS */
#define WARMUP_SECONDS 0.1
#define FIRST_SECONDS 0.01

/* ---- structs of u64 on the wire */

#define WIRE_MAX 64u

static_assert(sizeof(struct perf_run) % 8 == 0, "only u64");
static_assert(sizeof(struct perf_remote) <= 8 * WIRE_MAX, "room for it");
static_assert(sizeof(struct perf_remote) % 8 == 0, "only u64");

static int send_params(struct peer *p, enum oob_type type, const void *data, size_t length)
{
	uint64_t wire[WIRE_MAX];

	memcpy(wire, data, length);
	for (size_t i = 0; i < length / 8; i++)
		wire[i] = htole64(wire[i]);
	return peer_send(p, type, wire, length);
}

static int recv_params(struct peer *p, enum oob_type type, void *data, size_t length)
{
	uint64_t wire[WIRE_MAX] = {0};
	int ret = peer_recv(p, type, wire, length);

	for (size_t i = 0; i < length / 8; i++)
		wire[i] = le64toh(wire[i]);
	memcpy(data, wire, length);
	return ret;
}

void perf_force_put(struct perf_run *run, const char *proto)
{
	memset(run->proto, 0, sizeof(run->proto));
	for (size_t i = 0; proto[i] && i < PERF_PROTO_MAX; i++)
		run->proto[i / 8] |= (uint64_t)(uint8_t)proto[i] << i % 8 * 8;
}

static int force(struct perf_session *s, const struct perf_run *run)
{
	char name[PERF_PROTO_MAX + 1] = "";
	int ret;

	for (size_t i = 0; i < PERF_PROTO_MAX; i++)
		name[i] = (char)(run->proto[i / 8] >> i % 8 * 8);
	if (!s->peer.ep)
		return APP_OK;
	ret = weft_ep_force_proto(s->peer.ep, name[0] ? name : NULL);
	if (!ret)
		return APP_OK;
	cli_error("the protocol '%.31s' cannot be used: %s", name, weft_strerror(ret));
	return peer_fail(&s->peer, APP_PEER);
}

static int run_datapath(struct perf_session *s, struct perf_side *side, struct perf_remote *remote)
{
	if (perf_is_raw(side->run->test))
		return perf_raw_run(s->raw, side);
	if (side->run->test == PERF_TAG_FLOOD)
		return perf_flood(side, remote);
	if (perf_is_am(side->run->test))
		return perf_am(side, remote);
	if (perf_is_rma(side->run->test))
		return perf_rma(side);
	return perf_tag(side);
}

static int run_here(struct perf_session *s, struct perf_side *side, struct perf_remote *remote)
{
	int ret = force(s, side->run);

	if (ret)
		return ret;
	s->peer.sleeps = side->run->flags & PERF_F_SLEEP;
	s->peer.posting = false;
	ret = run_datapath(s, side, remote);
	s->peer.sleeps = false;
	return ret;
}

static int open_lanes(struct perf_session *s, bool raw)
{
	if (raw)
		return s->raw ? APP_OK : perf_raw_open(&s->peer, &s->raw);
	return s->peer.worker ? APP_OK : peer_open(&s->peer);
}

static int begin_session(struct perf_session *s, bool raw)
{
	struct sys_memory memory;
	int ret;

	ret = open_lanes(s, raw);
	if (!ret)
		ret = raw ? perf_raw_connect(s->raw) : peer_connect(&s->peer);
	sys_memory(&memory);
	s->idle_peak = memory.peak;
	return ret;
}

static void print_losses(struct perf_session *s)
{
	char text[2048];

	if (s->opts->csv || s->opts->json || s->opts->sweep || !s->peer.ep)
		return;
	lane_losses(&s->peer, text, sizeof(text));
	printf("%s\n", text);
	fflush(stdout);
}

static int end_session(struct perf_session *s, int ret)
{
	perf_raw_close(s->raw);
	ret = peer_end(&s->peer, ret);
	free(s->meter);
	return ret;
}

/* ---- server */

static bool run_is_sane(const struct perf_run *run)
{
	if (run->flags & PERF_F_REVERSE && !perf_can_reverse(run->test))
		return false;
	return run->test > PERF_END && run->test < PERF_TESTS && run->iters && run->window &&
	       run->window <= 65536 && run->size <= 1ull << 40 &&
	       perf_size_fits(run->test, run->size) &&
	       (!(run->flags & PERF_F_SLEEP) || perf_can_sleep(run->test));
}

/* @param sign  -1 before a run, 1 after it */
static void read_received(struct perf_session *s, struct perf_remote *remote, int sign)
{
	struct weft_lane_info info = {.size = sizeof(info)};

	for (unsigned int i = 0; s->peer.ep && i < PERF_MAX_LANES; i++)
		if (weft_ep_query_lane(s->peer.ep, i, &info) == 0)
			remote->rx_bytes[i] += (uint64_t)sign * info.rx_bytes;
}

static int serve_run(struct perf_session *s, const struct perf_run *run)
{
	struct perf_side side = {.peer = &s->peer, .run = run};
	struct perf_remote remote = {0};
	struct sys_memory memory;
	int ret;

	if (!run_is_sane(run) || perf_is_raw(run->test) != !!s->raw) {
		cli_error("the client sent invalid parameters; are both ends the same version?");
		return peer_fail(&s->peer, APP_PEER);
	}
	read_received(s, &remote, -1);
	ret = run_here(s, &side, &remote);
	if (ret)
		return ret;
	read_received(s, &remote, 1);
	sys_memory(&memory);
	remote.wrong = side.wrong;
	remote.idle_peak = s->idle_peak;
	remote.peak = memory.peak;
	remote.hugetlb = memory.hugetlb;
	s->wrong += side.wrong;
	return send_params(&s->peer, OOB_RESULT, &remote, sizeof(remote));
}

static int serve(struct perf_session *s)
{
	struct perf_run run;
	int ret = recv_params(&s->peer, OOB_PARAMS, &run, sizeof(run));

	if (!ret)
		ret = begin_session(s, perf_is_raw(run.test));
	if (!ret && s->peer.ep) {
		printf("weft-perf %s, server of %s\n", weft_version_string(),
		       oob_peer_name(s->peer.oob));
		perf_print_lanes(&s->peer);
		fflush(stdout);
	}
	while (!ret) {
		ret = recv_params(&s->peer, OOB_PARAMS, &run, sizeof(run));
		if (ret || run.test == PERF_END)
			break;
		ret = serve_run(s, &run);
	}
	if (!ret)
		print_losses(s);
	if (!ret && s->wrong) {
		cli_error("%llu messages arrived with wrong bytes or length, or were more than "
			  "agreed",
			  (unsigned long long)s->wrong);
		ret = APP_DATA;
	}
	return ret;
}

static int serve_one(const struct perf_options *opts, struct oob_server *door)
{
	struct perf_session s = {.opts = opts};
	int ret = peer_init(&s.peer, &opts->peer);

	s.peer.door = door;
	if (!ret)
		ret = peer_meet(&s.peer);
	if (!ret)
		ret = serve(&s);
	return end_session(&s, ret);
}

int perf_server(const struct perf_options *opts)
{
	struct oob_server *door = NULL;
	int ret;

	if (!opts->keep)
		return serve_one(opts, NULL);
	ret = peer_listen(&opts->peer, &door);
	/* Failures of one client do not end the server; local errors, which would recur, do. */
	while (ret != APP_FAIL && ret != APP_USAGE && !sys_signal())
		ret = serve_one(opts, door);
	oob_server_close(door);
	return ret;
}

/* ---- client */

/* The server's last reports precede its result. */
static int recv_result(struct perf_session *s, struct perf_side *side, struct perf_remote *seen)
{
	struct peer *p = &s->peer;

	while (!s->raw) {
		if (perf_limit_seen(side))
			return p->exit_code;
		if (oob_next(p->oob))
			break;
		if (peer_poll(p))
			return p->exit_code;
	}
	return recv_params(p, OOB_RESULT, seen, sizeof(*seen));
}

int perf_measure(struct perf_session *s, struct perf_run *run, struct perf_side *side,
		 struct perf_remote *remote)
{
	struct perf_remote seen = {0};
	int ret;

	run->id = ++s->next_id;
	side->wrong = 0;
	ret = send_params(&s->peer, OOB_PARAMS, run, sizeof(*run));
	if (!ret)
		ret = run_here(s, side, remote);
	if (!ret)
		ret = recv_result(s, side, &seen);
	/* With a deadline only the client has the number of iterations. */
	if (!ret && run->limit_ns)
		run->iters = s->meter->iters;
	seen.flood_late_ns = remote->flood_late_ns;
	*remote = seen;
	s->wrong += side->wrong + seen.wrong;
	if (!ret && side->wrong + seen.wrong)
		cli_error("%llu of %llu messages of %llu bytes arrived with wrong bytes or length, "
			  "or were more than agreed",
			  (unsigned long long)(side->wrong + seen.wrong),
			  (unsigned long long)run->iters, (unsigned long long)run->size);
	return ret;
}

/* The first total is 10 ms of work at the rate of the last run. */
static void set_deadline(struct perf_session *s, struct perf_run *run, double seconds)
{
	struct perf_figures f = {0};

	if (s->next_id)
		perf_meter_read(s->meter, &f);
	run->limit_ns = (uint64_t)(seconds * 1e9);
	run->iters = f.iters && f.overall > 0 ? (uint64_t)(FIRST_SECONDS / f.overall) : 0;
	if (run->iters < MIN_ITERS)
		run->iters = MIN_ITERS;
}

static int warm_up(struct perf_session *s, struct perf_run *run, struct perf_side *side)
{
	const struct perf_options *o = s->opts;
	struct perf_remote remote = {0};
	uint64_t iters = o->warmup;
	int ret = APP_OK;

	run->iters = o->iters;
	if (run->test == PERF_TAG_FLOOD)
		return APP_OK;
	if (iters != UINT64_MAX) {
		run->iters = iters;
	} else if (o->iters) {
		run->iters = o->iters / 20 < DEFAULT_WARMUP ? o->iters / 20 : DEFAULT_WARMUP;
	} else {
		double want = o->seconds * WARMUP_PART;

		run->iters = MIN_ITERS;
		run->limit_ns = (uint64_t)((want < WARMUP_SECONDS ? want : WARMUP_SECONDS) * 1e9);
	}
	if (run->iters)
		ret = perf_measure(s, run, side, &remote);
	run->limit_ns = 0;
	run->iters = o->iters;
	if (!o->iters)
		set_deadline(s, run, o->seconds);
	return ret;
}

/* Bytes sent; for gets and with -R bytes received; for atomics messages sent. */
static uint64_t carried(const struct perf_run *run, const struct weft_lane_info *info)
{
	uint64_t test = run->test;

	if (test == PERF_GET_LAT || test == PERF_GET_BW || run->flags & PERF_F_REVERSE)
		return info->rx_bytes;
	return perf_is_atomic(test) ? info->tx_msgs : info->tx_bytes;
}

static void read_lanes_of(struct weft_ep *ep, const struct perf_run *run, struct perf_lanes *lanes,
			  int sign)
{
	struct weft_lane_info info = {.size = sizeof(info)};
	unsigned int i;

	for (i = 0; ep && i < PERF_MAX_LANES; i++) {
		if (weft_ep_query_lane(ep, i, &info))
			break;
		snprintf(lanes->name[i], sizeof(lanes->name[i]), "%s", info.name);
		lanes->bytes[i] += (uint64_t)sign * carried(run, &info);
		lanes->retransmits += (uint64_t)sign * info.retransmits;
	}
	if (i > lanes->count)
		lanes->count = i;
}

static void read_lanes(struct perf_session *s, const struct perf_run *run, struct perf_lanes *lanes,
		       int sign)
{
	read_lanes_of(s->peer.ep, run, lanes, sign);
	for (unsigned int i = 0; i < s->peer.num_more; i++)
		read_lanes_of(s->peer.more[i], run, lanes, sign);
}

struct outcome {
	struct perf_run run;
	struct perf_meter meter;
	struct perf_lanes lanes;
	struct perf_remote remote;
	struct weft_proto_info proto;
	struct perf_report report;
};

static enum weft_op operation_of(enum perf_test test)
{
	switch (test) {
	case PERF_TAG_SYNC_LAT:
		return WEFT_OP_TAG_SEND_SYNC;
	case PERF_AM_LAT:
	case PERF_AM_BW:
		return WEFT_OP_AM_SEND;
	case PERF_PUT_LAT:
	case PERF_PUT_BW:
		return WEFT_OP_PUT;
	case PERF_GET_LAT:
	case PERF_GET_BW:
		return WEFT_OP_GET;
	case PERF_FADD_LAT:
	case PERF_CSWAP_LAT:
		return WEFT_OP_AMO_FETCH;
	default:
		return WEFT_OP_TAG_SEND;
	}
}

/* Active messages without credit take another protocol: the figures of the server show it. */
static void name_protocol(struct perf_session *s, struct outcome *out)
{
	enum perf_test test = (enum perf_test)out->run.test;
	enum weft_op op = operation_of(test);
	const char *name = "?";

	out->proto.size = sizeof(out->proto);
	if (perf_is_raw(test))
		name = "bare port";
	else if (perf_is_am(test) && out->remote.am_rndv && out->remote.am_rndv < out->run.iters)
		name = "am/both";
	else if (s->peer.ep && !weft_ep_query_proto(s->peer.ep, op, out->run.size, &out->proto))
		return;
	else if (perf_is_rma(test))
		name = weft_op_name(op);
	out->proto.name = name;
}

static int run_test(struct perf_session *s, enum perf_test test, uint64_t size, struct outcome *out)
{
	const struct perf_options *o = s->opts;
	struct perf_side side = {.peer = &s->peer, .run = &out->run, .meter = s->meter};
	struct perf_ticker ticker = {.opts = o, .run = &out->run, .side = &side};
	int ret;

	memset(out, 0, sizeof(*out));
	out->run.test = test;
	out->run.size = size;
	out->run.flags = o->flags;
	out->run.window = perf_is_latency(test) ? 1 : o->window ? o->window : 32;
	ret = warm_up(s, &out->run, &side);
	if (ret)
		return ret;
	if (!o->final_only && !o->table) {
		side.tick = perf_print_tick;
		side.tick_arg = &ticker;
	}
	read_lanes(s, &out->run, &out->lanes, -1);
	ret = perf_measure(s, &out->run, &side, &out->remote);
	read_lanes(s, &out->run, &out->lanes, 1);
	for (unsigned int i = 0;
	     i < PERF_MAX_LANES && !perf_is_rma(test) && !(out->run.flags & PERF_F_REVERSE); i++)
		if (out->remote.rx_bytes[i] > out->lanes.bytes[i])
			out->lanes.bytes[i] = out->remote.rx_bytes[i];
	out->meter = *s->meter;
	name_protocol(s, out);
	out->report = (struct perf_report){
		.run = &out->run,
		.meter = &out->meter,
		.protocol = out->proto.name,
		.lanes = &out->lanes,
		.remote = &out->remote,
		.idle_peak = s->idle_peak,
		.wrong = side.wrong + out->remote.wrong,
	};
	return ret;
}

static int run_size(struct perf_session *s, uint64_t size, struct outcome *out)
{
	const struct perf_options *o = s->opts;
	int ret = APP_OK;

	for (unsigned int i = 0; i < o->num_tests && !ret; i++) {
		ret = run_test(s, o->tests[i], size, &out[i]);
		if (ret || o->table)
			continue;
		if (o->tests[i] == PERF_TAG_FLOOD)
			perf_print_flood(o, &out[i].report);
		else
			perf_print_run(o, &out[i].report);
	}
	if (!ret && o->table)
		perf_print_table(&out[0].report, &out[1].report);
	return ret;
}

static int run_all(struct perf_session *s)
{
	const struct perf_options *o = s->opts;
	struct perf_run end = {.test = PERF_END};
	struct outcome *out = calloc(PERF_TESTS, sizeof(*out));
	int ret = APP_OK;

	if (!out)
		return peer_fail(&s->peer, APP_FAIL);
	perf_print_begin(o, &s->peer);
	if (o->sweep)
		ret = perf_sweep(s);
	for (unsigned int i = 0; i < o->sizes.count && !ret && !o->sweep; i++)
		ret = run_size(s, o->sizes.size[i], out);
	if (!ret)
		ret = send_params(&s->peer, OOB_PARAMS, &end, sizeof(end));
	if (!ret && !o->sweep)
		perf_print_end(o, &out[0].report);
	if (!ret)
		print_losses(s);
	free(out);
	if (!ret && s->wrong)
		ret = APP_DATA;
	return ret;
}

int perf_client(const struct perf_options *opts)
{
	struct perf_session s = {.opts = opts, .meter = calloc(1, sizeof(struct perf_meter))};
	struct perf_run first = {.test = opts->tests[0]};
	int ret = peer_init(&s.peer, &opts->peer);

	/*
	 * Steps that can fail at this end alone come first, so that the server does not wait for a
	 * client that fails. And a server over virtio_user needs the open vhost port of the client.
	 */
	if (!ret)
		ret = open_lanes(&s, perf_is_raw(first.test));
	if (!ret)
		ret = peer_meet(&s.peer);
	if (!ret)
		ret = send_params(&s.peer, OOB_PARAMS, &first, sizeof(first));
	if (!ret)
		ret = begin_session(&s, perf_is_raw(first.test));
	if (!ret)
		ret = run_all(&s);
	return end_session(&s, ret);
}
