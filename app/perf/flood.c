/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tag_flood: N messages without a posted receive, then one message with a receive, then receives
 * for the N in reverse order of their tags. It tests whether all arrive and whether the expected
 * message is delayed, and measures the memory of the receiver.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf/perf.h"

/*
 * When no send has completed for this time, the remaining ones wait for the receiver.
 */
#define REST_SECONDS 0.05
#define LATE_SECONDS 10.0

enum { KIND_FLOOD = 8, KIND_LATE, KIND_LATE_ACK, KIND_DONE };

struct flood {
	struct perf_side *side;
	struct peer *peer;
	const struct perf_run *run;
	uint64_t outstanding;
	int error;
};

/*
 * A tag has the run, the message and the kind; the receiver takes the messages from the last one.
 */
static uint64_t tag_of(const struct flood *f, uint64_t index, unsigned int kind)
{
	return f->run->id << 40 | index << 8 | kind;
}

static int turn(struct flood *f)
{
	return peer_poll(f->peer) ? -ECANCELED : f->error;
}

/* Wait for a request to end. @return 0 or an error; -ETIMEDOUT after @p seconds (0 = no limit) */
static int wait_for(struct flood *f, int ret, struct weft_request *req, struct weft_completion *c,
		    double seconds)
{
	double end = sys_seconds() + seconds;

	while (ret == WEFT_INPROGRESS) {
		ret = weft_request_test(req, c);
		if (ret != WEFT_INPROGRESS)
			break;
		if (turn(f))
			return -ECANCELED;
		if (seconds > 0 && sys_seconds() > end)
			return -ETIMEDOUT;
	}
	weft_request_free(req);
	return ret;
}

static int send_word(struct flood *f, unsigned int kind)
{
	struct weft_request *req = NULL;
	static const uint64_t word = 1;
	int ret = weft_tag_send(f->peer->ep, &word, sizeof(word), tag_of(f, 0, kind), NULL, &req);

	return wait_for(f, ret, req, NULL, 0);
}

static int post_word(struct flood *f, unsigned int kind, uint64_t *word, struct weft_request **req)
{
	struct weft_op_params params =
		WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_FORCE_REQUEST);

	return weft_tag_recv(f->peer->worker, NULL, word, sizeof(*word), tag_of(f, 0, kind),
			     WEFT_TAG_MASK_FULL, &params, req);
}

/* ---- client */

static void on_sent(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct flood *f = arg;

	(void)req;
	f->outstanding--;
	if (c->status)
		f->error = c->status;
}

static int send_all(struct flood *f, char *buffers, uint64_t stride)
{
	struct weft_op_params params = WEFT_INIT(struct weft_op_params, .cb = on_sent, .cb_arg = f);
	int ret;

	for (uint64_t i = 0; i < f->run->iters; i++) {
		perf_fill(buffers + i * stride, f->run->size, i);
		ret = weft_tag_send(f->peer->ep, buffers + i * stride, f->run->size,
				    tag_of(f, i, KIND_FLOOD), &params, NULL);
		if (ret < 0)
			return ret;
		if (ret == WEFT_INPROGRESS)
			f->outstanding++;
		if (i % 16 == 15 && turn(f))
			return -ECANCELED;
	}
	return 0;
}

static int come_to_rest(struct flood *f)
{
	uint64_t before = f->outstanding;
	double since = sys_seconds();

	while (f->outstanding && sys_seconds() - since < REST_SECONDS) {
		if (turn(f))
			return -ECANCELED;
		if (f->outstanding != before) {
			before = f->outstanding;
			since = sys_seconds();
		}
	}
	return 0;
}

/* Send the expected message, and measure the time to its reply. */
static int send_late(struct flood *f, uint64_t *ns)
{
	struct weft_request *req = NULL;
	double begin = sys_seconds();
	uint64_t word;
	int ret = post_word(f, KIND_LATE_ACK, &word, &req), sent;

	if (ret < 0)
		return ret;
	sent = send_word(f, KIND_LATE);
	if (sent)
		return sent;
	ret = wait_for(f, ret, req, NULL, LATE_SECONDS);
	*ns = (uint64_t)((sys_seconds() - begin) * 1e9);
	if (ret == -ETIMEDOUT)
		cli_error("an expected message got no reply for %g s: the flood blocks it",
			  LATE_SECONDS);
	return ret;
}

static int flood_client(struct flood *f, struct perf_remote *remote)
{
	uint64_t stride = (f->run->size + 63) / 64 * 64 + 64;
	struct weft_request *req = NULL;
	uint64_t word;
	char *buffers;
	int ret, done;

	if (f->run->iters > SIZE_MAX / stride ||
	    posix_memalign((void **)&buffers, 64, f->run->iters * stride))
		return -ENOMEM;
	done = post_word(f, KIND_DONE, &word, &req);
	ret = done < 0 ? done : peer_barrier(f->peer);
	if (!ret)
		ret = send_all(f, buffers, stride);
	if (!ret)
		ret = come_to_rest(f);
	if (!ret)
		ret = send_late(f, &remote->flood_late_ns);
	if (!ret)
		ret = wait_for(f, done, req, NULL, 0);
	while (!ret && f->outstanding)
		ret = turn(f);
	/* After a failure, sends may still use the memory. */
	if (!ret)
		free(buffers);
	return ret;
}

/* ---- server */

static int receive_one(struct flood *f, void *buffer, uint64_t index)
{
	struct weft_completion c = {.size = sizeof(c)};
	struct weft_op_params params = WEFT_INIT(struct weft_op_params, .completion = &c);
	struct weft_request *req = NULL;
	int ret;

	ret = weft_tag_recv(f->peer->worker, NULL, buffer, f->run->size,
			    tag_of(f, index, KIND_FLOOD), WEFT_TAG_MASK_FULL, &params, &req);
	ret = wait_for(f, ret, req, &c, 0);
	if (ret == -EMSGSIZE ||
	    (!ret && (c.length != f->run->size || !perf_check(buffer, f->run->size, index)))) {
		f->side->wrong++;
		ret = 0;
	}
	return ret;
}

static int flood_server(struct flood *f, struct perf_remote *remote)
{
	struct weft_request *req = NULL;
	struct sys_memory memory;
	uint64_t word;
	char *buffer = malloc(f->run->size + 8);
	int ret, late;

	if (!buffer)
		return -ENOMEM;
	memset(buffer, 0, f->run->size + 8);
	late = post_word(f, KIND_LATE, &word, &req);
	sys_reset_peak();
	sys_memory(&memory);
	remote->flood_before = memory.now;
	ret = late < 0 ? late : peer_barrier(f->peer);
	if (!ret)
		ret = wait_for(f, late, req, NULL, 0);
	if (!ret)
		ret = send_word(f, KIND_LATE_ACK);
	for (uint64_t i = f->run->iters; !ret && i-- > 0;) {
		ret = receive_one(f, buffer, i);
		/* Receives that complete at once do not progress the worker. */
		if (!ret && i % 64 == 0)
			ret = turn(f);
	}
	if (!ret)
		ret = send_word(f, KIND_DONE);
	sys_memory(&memory);
	remote->flood_peak = memory.peak;
	if (!ret)
		free(buffer);
	return ret;
}

int perf_flood(struct perf_side *side, struct perf_remote *remote)
{
	struct flood f = {.side = side, .peer = side->peer, .run = side->run};
	int ret = f.peer->server ? flood_server(&f, remote) : flood_client(&f, remote);

	if (ret == -ETIMEDOUT)
		return peer_fail(f.peer, APP_FAIL);
	if (ret)
		return peer_fail_op(f.peer, "the flood failed", ret);
	return f.peer->exit_code;
}
