/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What weft.h promises of messages whatever carries them: the same test over every protocol, over
 * lanes that read and write remote memory themselves, and over the loopback. Mock lanes, the whole
 * library.
 */

#include "unit/proto/promises.h"

/* ------------------------------------------------------------------ the table itself */

/* @behaviour T26 */
static void each_way_is_the_protocol_it_is_called(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		struct weft_proto_info info = {.size = sizeof(info)};
		struct stage s;

		stage_open(&s, way);
		assert_int_equal(weft_ep_query_proto(s.ep[0], WEFT_OP_TAG_SEND, way->len, &info),
				 0);
		if (!way->rendezvous) {
			assert_string_equal(info.name, way->name);
		} else {
			assert_memory_equal(info.name, "rndv/", 5);
			assert_int_equal(weft_ep_query_proto(s.ep[1], WEFT_OP_RNDV_DATA, way->len,
							     &info),
					 0);
		}
		stage_close(&s);
	}
}

/* ------------------------------------------------------------------ truncation */

/* @behaviour T26: a truncated receive's own part is filled, by every protocol */
static void a_truncated_receive_is_filled(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		for (int k = 0; k < 8; k++) {
			size_t cap = k & 4 ? way->len / 3 : k & 2 ? 0 : way->len - 1;
			struct op snd, rcv;
			struct stage s;

			stage_open(&s, way);
			if (k & 1)
				op_recv(&rcv, s.w[1], in, cap, 7, FULL);
			op_send(&snd, s.ep[0], out, way->len, 7);
			if (!(k & 1)) {
				run(&s, 60);
				op_recv(&rcv, s.w[1], in, cap, 7, FULL);
			}
			ends(&s, &rcv, -EMSGSIZE);
			assert_int_equal(rcv.c.length, way->len);
			ends(&s, &snd, 0);
			pattern_expect(1, in, cap);
			untouched(cap);
			stage_close(&s);
		}
	}
}

/* ------------------------------------------------------------------ flush */

/*
 * @behaviour T27: a flush waits for the peer and not for its receives; a close waits for the match
 */
static void a_flush_waits_for_the_peer_and_not_for_its_receives(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		for (int sync = 0; sync < 2; sync++) {
			struct op snd, flush = {.rc = 0}, rcv;
			struct weft_op_params p;
			struct stage s;

			stage_open(&s, way);
			op_send_dt(&snd, s.ep[0], out, way->len, 7, sync, NULL);
			p = op_params(&flush, NULL);
			flush.rc = weft_ep_flush(s.ep[0], &p, &flush.req);
			assert_int_equal(flush.rc, WEFT_INPROGRESS);
			for (int i = 0; i < 3000 && !op_done(&flush); i++)
				run(&s, 1);
			op_end(&flush, 0);
			/* It is there at that moment, and its send goes on if it must. */
			assert_true(is_there(&s, 7));
			if (sync || way->rendezvous)
				assert_false(op_done(&snd));
			p = op_params(&flush, NULL);
			flush.rc = weft_worker_flush(s.w[0], &p, &flush.req);
			ends(&s, &flush, 0);
			op_recv(&rcv, s.w[1], in, way->len, 7, FULL);
			wait_for(&s, &rcv);
			op_end_recv(&rcv, in, way->len, 7, 1);
			ends(&s, &snd, 0);
			stage_close(&s);
		}
	}
}

/* @behaviour T27 */
static void a_close_waits_for_the_match(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		for (int sync = 0; sync < 2; sync++) {
			struct op snd, end, rcv;
			struct weft_op_params p;
			struct stage s;

			stage_open(&s, way);
			if (is_self(&s)) { /* both ends close: see below */
				stage_close(&s);
				continue;
			}
			op_send_dt(&snd, s.ep[0], out, way->len, 7, sync, NULL);
			p = op_params(&end, NULL);
			end.rc = weft_ep_close(s.ep[0], 0, &p, &end.req);
			run(&s, 200);
			assert_int_equal(op_done(&end), !(sync || way->rendezvous));
			op_recv(&rcv, s.w[1], in, way->len, 7, FULL);
			wait_for(&s, &rcv);
			op_end_recv(&rcv, in, way->len, 7, 1);
			ends(&s, &end, 0);
			ends(&s, &snd, 0);
			stage_close(&s);
		}
	}
}

/* ------------------------------------------------------------------ unexpected messages, closed */

enum { TAKEN = 1, FORCE = 2, SYNC = 4, ALL = 8 };

/* The handle of a message that its endpoint has taken along. */
static void handle_is_dead(struct stage *s, struct weft_message *m, bool drop)
{
	struct weft_op_params p;
	struct op rcv;

	if (drop) {
		weft_tag_msg_drop(s->w[1], m);
		return;
	}
	p = op_params(&rcv, NULL);
	rcv.rc = weft_tag_msg_recv(s->w[1], m, in, sizeof(in), &p, &rcv.req);
	assert_int_equal(rcv.rc, WEFT_INPROGRESS);
	wait_for(s, &rcv);
	assert_true(rcv.c.status == -ECONNRESET || rcv.c.status == -ECANCELED);
	op_end(&rcv, rcv.c.status);
}

static void stays(struct stage *s, const struct way *way, struct weft_message *m)
{
	struct weft_op_params p;
	struct op rcv;

	p = op_params(&rcv, NULL);
	rcv.rc = m ? weft_tag_msg_recv(s->w[1], m, in, sizeof(in), &p, &rcv.req)
		   : weft_tag_recv(s->w[1], NULL, in, sizeof(in), 7, FULL, &p, &rcv.req);
	wait_for(s, &rcv);
	op_end_recv(&rcv, in, way->len, 7, 1);
	assert_null(rcv.c.ep);
}

static void closed_with_unexpected(const struct way *way, unsigned int k)
{
	bool waits = (k & SYNC) || way->rendezvous;
	struct weft_message *m = NULL;
	struct op snd;
	struct stage s;

	stage_open(&s, way);
	op_send_dt(&snd, s.ep[0], out, way->len, 7, k & SYNC, NULL);
	run(&s, 60);
	assert_true(is_there(&s, 7));
	if (k & TAKEN)
		assert_int_equal(weft_tag_probe(s.w[1], NULL, 7, FULL, NULL, &m, NULL), 0);
	assert_in_range(weft_ep_close(s.ep[1], k & FORCE ? WEFT_EP_CLOSE_F_FORCE : 0, NULL, NULL),
			0, 1);
	if (waits && !(k & FORCE)) /* at once */
		assert_false(is_there(&s, 7));
	run(&s, 100);
	if (!waits) {
		stays(&s, way, m);
		ends(&s, &snd, 0);
	} else {
		assert_false(is_there(&s, 7));
		if (m)
			handle_is_dead(&s, m, way->len & 1);
		ends(&s, &snd, is_self(&s) && (k & FORCE) ? -ECANCELED : -ECONNRESET);
	}
	if (s.w[1]->msg->tag->messages.num || s.w[1]->msg->tag->messages.bytes)
		fail_msg("%s: a message is left", way->name);
	stage_close(&s);
}

/* @behaviour T28: the effect of closing on unexpected messages of each kind */
static void what_closing_does_to_unexpected_messages(void **state)
{
	(void)state;
	EACH_WAY(way)
	for (unsigned int k = 0; k < ALL; k++)
		closed_with_unexpected(way, k);
}

/* @behaviour T28 */
static void a_peer_that_ends_takes_its_synchronous_messages_along(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		for (int sync = 0; sync < 2; sync++) {
			struct op snd, rcv;
			struct stage s;

			stage_open(&s, way);
			if (is_self(&s)) {
				stage_close(&s);
				continue;
			}
			op_send_dt(&snd, s.ep[0], out, way->len, 7, sync, NULL);
			run(&s, 60);
			assert_int_equal(weft_ep_close(s.ep[0], WEFT_EP_CLOSE_F_FORCE, NULL, NULL),
					 0);
			ends(&s, &snd, sync || way->rendezvous ? -ECANCELED : 0);
			run(&s, 60);
			assert_int_equal(s.err[1].status, -ECONNRESET);
			assert_int_equal(is_there(&s, 7), !(sync || way->rendezvous));
			if (is_there(&s, 7)) {
				op_recv(&rcv, s.w[1], in, sizeof(in), 7, FULL);
				op_end_recv(&rcv, in, way->len, 7, 1);
			}
			stage_close(&s);
		}
	}
}

/* Not with its pointer, which the application has given away. */
/* @behaviour T23: no completion, probe or handler names an endpoint that is closed */
static void nothing_names_an_endpoint_that_is_closed(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		for (int force = 0; force < 2; force++) {
			struct weft_completion c = {.size = sizeof(c)};
			struct op snd, rcv;
			struct stage s;

			stage_open(&s, way);
			op_recv(&rcv, s.w[1], in, sizeof(in), 7, FULL);
			op_send(&snd, s.ep[0], out, way->len, 7);
			wait_for(&s, &rcv);
			assert_ptr_equal(rcv.c.ep, s.ep[1]);
			weft_tag_send(s.ep[0], out, 8, 8, NULL, NULL);
			run(&s, 60);
			/* Its close can't end before this is over. */
			mock_hold(NULL);
			weft_tag_send(s.ep[1], out, 8, 9, NULL, NULL);
			weft_ep_close(s.ep[1], force ? WEFT_EP_CLOSE_F_FORCE : 0, NULL, NULL);
			c.ep = s.ep[1];
			if (weft_tag_probe(s.w[1], NULL, 8, FULL, NULL, NULL, &c) == 0)
				assert_null(c.ep);
			assert_int_equal(weft_request_test(rcv.req, &c), 0);
			assert_null(c.ep);
			mock_release(NULL);
			run(&s, 60);
			weft_request_free(rcv.req);
			weft_request_free(snd.req);
			stage_close(&s);
		}
	}
}

/* ------------------------------------------------------------------ pack() fails */

/* @behaviour T29: the results at each end when pack() fails */
static void when_pack_fails_both_ends_have_its_error(void **state)
{
	(void)state;
	EACH_WAY(way)
	{
		for (int k = 0; k < 8; k++) {
			struct broken b = {way->len, k & 4 ? way->len / 2 : 0};
			struct weft_datatype type =
				WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_GENERIC,
					  .ops = &broken_ops, .arg = &b);
			struct op snd, rcv, next[2];
			struct stage s;

			stage_open(&s, way);
			if (k & 1)
				op_recv(&rcv, s.w[1], in, sizeof(in), 7, FULL);
			op_send_dt(&snd, s.ep[0], NULL, 0, 7, k & 2, &type);
			assert_int_equal(snd.rc, WEFT_INPROGRESS);
			op_send(&next[0], s.ep[0], out, 100, 7);
			if (!(k & 1)) {
				run(&s, 60);
				op_recv(&rcv, s.w[1], in, sizeof(in), 7, FULL);
			}
			ends(&s, &rcv, -ENODATA);
			ends(&s, &snd, -ENODATA);
			op_recv(&next[1], s.w[1], in, sizeof(in), 7, FULL);
			wait_for(&s, &next[1]);
			op_end_recv(&next[1], in, 100, 7, 1);
			ends(&s, &next[0], 0);
			stage_close(&s);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_way_is_the_protocol_it_is_called),
		T(a_truncated_receive_is_filled),
		T(a_flush_waits_for_the_peer_and_not_for_its_receives),
		T(a_close_waits_for_the_match),
		T(what_closing_does_to_unexpected_messages),
		T(a_peer_that_ends_takes_its_synchronous_messages_along),
		T(nothing_names_an_endpoint_that_is_closed),
		T(when_pack_fails_both_ends_have_its_error),
	};

	return cmocka_run_group_tests_name("promises", tests, NULL, NULL);
}
