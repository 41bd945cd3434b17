/* SPDX-License-Identifier: BSD-3-Clause */
/* Wire-up messages that come in pieces, and never whole. */

#include <string.h>

#include "mock/unknown_sender.h"

/* Pieces of messages @p from to @p to - 1, none of which is ever whole. */
static void send_pieces(struct unknown_sender *s, struct weft_worker *w, unsigned int from,
			unsigned int to)
{
	struct weft_wire_wireup h;
	uint8_t buf[sizeof(h) + 10] = {0};
	unsigned int i;

	for (i = from; i < to; i++) {
		h = unknown_head(s, w, WEFT_WIREUP_REQ, i);
		h.total = weft_put16(8192);
		h.offset = weft_put16((uint16_t)(i % 8000));
		memcpy(buf, &h, sizeof(h));
		mock_unknown_send(s->lane_ep, WEFT_WIRE_WIREUP, buf, sizeof(buf));
	}
}

/* @behaviour Y4 */
static void partial_messages_are_bounded(void **state)
{
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	struct unknown_sender s[1 + WEFT_MAX_PARTIALS];
	unsigned int i;

	(void)state;
	for (i = 0; i < 1 + WEFT_MAX_PARTIALS; i++)
		s[i] = (struct unknown_sender){.lane_ep = mock_unknown(mock_iface(w, 0)),
					       .id = 42 + i};
	/* However many one of them begins, what another one has begun stays. */
	send_pieces(&s[0], w, 0, 1);
	mock_run(3, MS, w, NULL);
	send_pieces(&s[1], w, 0, 1000);
	mock_run(3, MS, w, NULL);
	assert_int_equal(w->conns->num_partials, 1 + WEFT_MAX_PARTIALS_LANE_EP);
	mock_unknown_close(s[0].lane_ep);
	mock_run(3, MS, w, NULL);
	assert_int_equal(w->conns->num_partials, WEFT_MAX_PARTIALS_LANE_EP);
	for (i = 2; i < 1 + WEFT_MAX_PARTIALS; i++)
		send_pieces(&s[i], w, 0, 5);
	mock_run(3, MS, w, NULL);
	assert_int_equal(w->conns->num_partials, WEFT_MAX_PARTIALS);
	for (i = 1; i < 1 + WEFT_MAX_PARTIALS; i++)
		mock_unknown_close(s[i].lane_ep);
	mock_run(3, MS, w, NULL);
	assert_int_equal(w->conns->num_partials, 0);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

/*
 * Hosts with many connections begin messages on all of them; one that has begun its first one keeps
 * it.
 */
/*
 * @behaviour S15: several greedy hosts together leave slots for a new host: of partial messages
 * always, of unclaimed endpoints up to 64 such hosts (a sixteenth of the slots), of half-open
 * connections
 */
static void greedy_hosts_leave_a_newcomers_partial_message(void **state)
{
	enum { HOSTS = 5, EACH = WEFT_MAX_PARTIALS };
	struct weft_context *ctx = mock_context("CONNECT_TIMEOUT=5s", "LOG_FILE=/dev/null", NULL);
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	static struct unknown_sender s[1 + HOSTS * EACH];
	struct weft_partial_host *host;
	unsigned int i, round, kept = 0;
	struct weft_partial *p;

	(void)state;
	for (i = 0; i < 1 + HOSTS * EACH; i++) {
		s[i] = (struct unknown_sender){.lane_ep = mock_unknown(mock_iface(w, 0)),
					       .id = 42 + i};
		mock_unknown_at(s[i].lane_ep, i == 0 ? 700 : 800 + i % HOSTS);
	}
	for (i = 1; i < 1 + HOSTS * EACH; i++)
		send_pieces(&s[i], w, 0, 2);
	mock_run(3, MS, w, NULL);
	assert_int_equal(w->conns->num_partials, WEFT_MAX_PARTIALS);
	send_pieces(&s[0], w, 0, 1);
	for (round = 0; round < 3; round++) {
		for (i = 1; i < 1 + HOSTS * EACH; i++)
			send_pieces(&s[i], w, 10 * round + 3, 10 * round + 8);
		mock_run(3, MS, w, NULL);
	}
	assert_int_equal(w->conns->num_partials, WEFT_MAX_PARTIALS);
	LIST_FOREACH(host, &w->conns->partial_hosts, entry)
		TAILQ_FOREACH(p, &host->partials, entry)
			kept += weft_get64(p->head.src_worker) == s[0].id;
	assert_int_equal(kept, 1);
	for (i = 0; i < 1 + HOSTS * EACH; i++)
		mock_unknown_close(s[i].lane_ep);
	mock_run(3, MS, w, NULL);
	assert_int_equal(w->conns->num_partials, 0);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(partial_messages_are_bounded),
		CONN_TEST(greedy_hosts_leave_a_newcomers_partial_message),
	};

	return cmocka_run_group_tests_name("wireup_piece", tests, NULL, NULL);
}
