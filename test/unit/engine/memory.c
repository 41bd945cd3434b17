/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of the raw-DPDK lane engine: the parts of a connection that come when they are needed and
 * go, and moments at which there is none.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/conn.h"
#include "engine/iface.h"
#include "engine/lifetime.h"
#include "engine/neighbour.h"
#include "engine/window.h"
#include "mock/raw_pair.h"

#define LANE_AT 42 /* the lane header in an untagged UDP frame */

static struct pair pair;

static struct pair_end *A = &pair.end[0], *B = &pair.end[1];

/* ---- helpers ---- */

static bool no_memory;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_malloc(size_t size)
{
	return no_memory ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return no_memory ? NULL : __real_realloc(p, size);
}

static struct weft_frame_hdr *lane_hdr(uint8_t *frame)
{
	return (struct weft_frame_hdr *)(frame + LANE_AT);
}

static bool is_lane(const uint8_t *frame)
{
	return frame[12] == 8 && frame[13] == 0;
}

static struct raw_conn *conn_of(struct weft_lane_ep *lane_ep)
{
	return (struct raw_conn *)lane_ep;
}

/* ---- flushes ---- */

static unsigned int flushed;

static void on_flushed(struct weft_lane_comp *comp, int status)
{
	(void)comp;
	assert_int_equal(status, 0);
	flushed++;
}

static void a_flush_without_memory_is_refused(void **state)
{
	struct weft_lane_comp comp = {.done = on_flushed};

	(void)state;
	pair_open(&pair, NULL, 12);
	pair_connect(&pair);
	flushed = 0;
	assert_int_equal(pair_send(A, A->lane_ep, 0, 100), 0);
	no_memory = true;
	assert_int_equal(A->iface->ops->ep_flush(A->lane_ep, &comp), -ENOMEM);
	no_memory = false;
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(B->messages, 1);
	assert_int_equal(flushed, 0);
	assert_int_equal(pair_send(A, A->lane_ep, 1, 100), 0);
	assert_int_equal(A->iface->ops->ep_flush(A->lane_ep, &comp), 0);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(flushed, 1);
	pair_close(&pair);
}

/* ---- paths ---- */

static unsigned int readys;

/* Memory lacks from the first PROBE to READY. */
static uint32_t no_memory_at_probe(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	(void)from;
	if (is_lane(frame))
		no_memory = lane_hdr(frame)->type == WEFT_FRAME_PROBE;
	return len;
}

static void without_memory_for_paths_a_connection_has_one(void **state)
{
	const struct pair_params params = {.paths = 4};

	(void)state;
	pair_open(&pair, &params, 13);
	A->wire.edit = no_memory_at_probe;
	pair_begin_connect(&pair);
	assert_true(pair_run(&pair, 1000000000, pair_both_up));
	A->wire.edit = NULL;
	assert_int_equal(pair_counter(A, RAW_NO_MEMORY), 1);
	assert_int_equal(conn_of(A->lane_ep)->path_count, 1);
	assert_int_equal(conn_of(B->accepted)->path_count, 1);
	pair_send(A, A->lane_ep, 0, 100);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(B->messages, 1);
	pair_close(&pair);
}

static uint32_t no_memory_at_ready(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	(void)from;
	no_memory |= is_lane(frame) && lane_hdr(frame)->type == WEFT_FRAME_READY && readys++ == 0;
	return len;
}

static bool memory_ran_out(struct pair *p)
{
	return pair_counter(&p->end[1], RAW_NO_MEMORY) > 0;
}

static void a_ready_that_finds_no_memory_is_taken_when_it_comes_again(void **state)
{
	const struct pair_params params = {.paths = 4};
	const struct raw_conn *c;
	uint32_t at = 0;

	(void)state;
	pair_open(&pair, &params, 14);
	readys = 0;
	A->wire.edit = no_memory_at_ready;
	pair_begin_connect(&pair);
	assert_true(pair_run(&pair, 100000000, memory_ran_out));
	no_memory = false;
	c = raw_table_next((struct raw_iface *)B->iface, &at);
	assert_int_equal(c->state, RAW_HALF_OPEN);
	assert_int_equal(c->path_count, 1);
	assert_int_equal(pair_counter(B, RAW_DROP_BAD_TYPE), 0);
	assert_true(pair_run(&pair, 1000000000, pair_both_up));
	assert_int_equal(conn_of(B->accepted)->path_count, 4);
	pair_close(&pair);
}

static void marks_of_a_path_that_is_not_open_yet_are_counted(void **state)
{
	struct weft_frame_hdr hdr = {.path = 9};
	const struct weft_frame_view v = {.hdr = &hdr, .type = WEFT_FRAME_DATA};
	struct raw_path first;
	struct raw_conn *c;

	(void)state;
	pair_open(&pair, NULL, 15);
	pair_connect(&pair);
	c = conn_of(B->accepted);
	assert_int_equal(c->path_room, 1);
	first = c->path[0];
	raw_window_marked(c, &v);
	raw_window_marked(c, &v);
	assert_int_equal(c->path_room, 10);
	assert_int_equal(c->path[9].marked, 2);
	assert_memory_equal(&c->path[0], &first, sizeof(first));
	no_memory = true;
	hdr.path = 12;
	raw_window_marked(c, &v);
	no_memory = false;
	assert_int_equal(c->path_room, 10);
	assert_int_equal(pair_counter(B, RAW_NO_MEMORY), 1);
	/* The peer reports that it has no such path. */
	pair_send(A, A->lane_ep, 0, 100);
	pair_run(&pair, 1000000, NULL);
	assert_int_equal(B->messages, 1);
	assert_int_equal(pair_counter(A, RAW_DROP_BAD_ACK), 0);
	pair_close(&pair);
}

/* ---- the handshake's state ---- */

static void a_connection_that_is_up_has_no_handshake_state(void **state)
{
	struct raw_conn *a, *b;

	(void)state;
	pair_open(&pair, NULL, 16);
	pair_begin_connect(&pair);
	a = conn_of(A->lane_ep);
	assert_non_null(a->hs);
	assert_true(pair_run(&pair, 1000000000, pair_both_up));
	b = conn_of(B->accepted);
	assert_null(a->hs);
	assert_null(a->search);
	assert_null(b->hs);
	assert_null(b->search);
	pair_close(&pair);
}

static void a_failed_or_closed_attempt_has_no_handshake_state(void **state)
{
	struct raw_conn *c;

	(void)state;
	pair_open(&pair, NULL, 17);
	A->wire.blackhole = true;
	pair_begin_connect(&pair);
	c = conn_of(A->lane_ep);
	pair_run(&pair, 10000000, NULL);
	raw_conn_fail(c, -ETIMEDOUT, "no answer");
	assert_int_equal(c->state, RAW_DOWN);
	assert_null(c->hs);
	A->iface->ops->ep_destroy(A->lane_ep);
	pair_begin_connect(&pair);
	c = conn_of(A->lane_ep);
	A->iface->ops->ep_destroy(A->lane_ep);
	assert_int_equal(c->state, RAW_TIME_WAIT);
	assert_null(c->hs);
	pair_close(&pair);
}

static void a_connection_is_not_begun_without_memory(void **state)
{
	uint32_t conns;
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	int err;

	(void)state;
	pair_open(&pair, NULL, 18);
	B->iface->ops->get_address(B->iface, addr);
	conns = ((struct raw_iface *)A->iface)->conn_count;
	no_memory = true;
	err = A->iface->ops->ep_connect(A->iface, addr, B->iface->attr.dev_addr_len, A,
					&A->lane_ep);
	no_memory = false;
	assert_int_equal(err, -ENOMEM);
	assert_int_equal(((struct raw_iface *)A->iface)->conn_count, conns);
	pair_connect(&pair);
	pair_close(&pair);
}

static int connect_again(void)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	struct weft_lane_ep *lane_ep;

	B->iface->ops->get_address(B->iface, addr);
	return A->iface->ops->ep_connect(A->iface, addr, B->iface->attr.dev_addr_len, A, &lane_ep);
}

static void a_full_table_and_a_lack_of_memory_are_two_errors(void **state)
{
	struct raw_iface *a;
	uint32_t len;

	(void)state;
	pair_open(&pair, NULL, 25);
	a = (struct raw_iface *)A->iface;
	while (a->refs_len == 0 || a->free_num > 0)
		assert_int_equal(connect_again(), 0);
	no_memory = true;
	assert_int_equal(connect_again(), -ENOMEM);
	no_memory = false;
	assert_int_equal(pair_counter(A, RAW_NO_MEMORY), 1);
	len = a->refs_len;
	a->refs_len = RAW_CONNS_MAX;
	assert_int_equal(connect_again(), -ENOSPC);
	a->refs_len = len;
	assert_int_equal(pair_counter(A, RAW_NO_MEMORY), 1);
	assert_int_equal(connect_again(), 0);
	pair_close(&pair);
}

static uint32_t no_memory_at_hello(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	uint8_t type = from == A ? WEFT_FRAME_HELLO : WEFT_FRAME_HELLO_ACK;

	no_memory |= is_lane(frame) && lane_hdr(frame)->type == type && readys++ == 0;
	return len;
}

static bool either_ran_out(struct pair *p)
{
	return pair_counter(&p->end[1], RAW_NO_MEMORY) > 0 ||
	       pair_counter(&p->end[0], RAW_NO_MEMORY) > 0;
}

/* end 0: the responder's entry for HELLO; end 1: the initiator's search, at HELLO_ACK */
static void a_hello_that_finds_no_memory_is_taken_when_it_comes_again(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		pair_open(&pair, NULL, 19 + i);
		readys = 0;
		pair.end[i].wire.edit = no_memory_at_hello;
		pair_begin_connect(&pair);
		assert_true(pair_run(&pair, 100000000, either_ran_out));
		no_memory = false;
		assert_int_equal(pair_counter(B, RAW_DROP_HALF_OPEN_FULL), 0);
		assert_true(pair_run(&pair, 1000000000, pair_both_up));
		pair_close(&pair);
	}
}

static void a_path_that_narrows_while_memory_lacks_is_searched_later(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 21);
	pair_connect(&pair);
	A->wire.max_frame = 1500;
	B->wire.max_frame = 1500;
	pair_send(A, A->lane_ep, 0, 8000);
	no_memory = true;
	pair_run(&pair, 500000000, NULL);
	no_memory = false;
	assert_in_range(pair_counter(A, RAW_NO_MEMORY), 1, 20);
	assert_int_equal(B->messages, 0);
	pair_run(&pair, 2000000000, NULL);
	assert_int_equal(B->messages, 1);
	assert_int_equal(B->bad, 0);
	assert_int_equal(A->downs, 0);
	pair_run(&pair, 3000000000, NULL);
	assert_null(conn_of(A->lane_ep)->search);
	pair_close(&pair);
}

/* ---- the receive window ---- */

static unsigned int datas;

static uint32_t second_data_is_lost(struct pair_end *from, uint8_t *frame, uint32_t len)
{
	(void)from;
	return is_lane(frame) && lane_hdr(frame)->type == WEFT_FRAME_DATA && datas++ == 1 ? 0 : len;
}

static void four_with_one_lost(void)
{
	datas = 0;
	A->wire.edit = second_data_is_lost;
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(pair_send(A, A->lane_ep, i, 5000), 0);
}

/* @behaviour T42 */
static void the_bitmap_of_holes_comes_with_a_loss_and_goes(void **state)
{
	struct raw_conn *b;

	(void)state;
	pair_open(&pair, NULL, 22);
	pair_connect(&pair);
	b = conn_of(B->accepted);
	four_with_one_lost();
	assert_null(b->rx.win.bits);
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(B->messages, 4);
	assert_non_null(b->rx.win.bits);
	/* As idle connections do: it goes. */
	pair_run(&pair, 30000000000ull, NULL);
	assert_null(b->rx.win.bits);
	assert_int_equal(A->downs + B->downs, 0);
	B->messages = 0;
	four_with_one_lost();
	pair_run(&pair, 10000000, NULL);
	assert_int_equal(B->messages, 4);
	pair_close(&pair);
}

static void without_memory_frames_behind_a_hole_count_as_lost(void **state)
{
	(void)state;
	pair_open(&pair, NULL, 23);
	pair_connect(&pair);
	four_with_one_lost();
	no_memory = true;
	pair_run(&pair, 1000000000, NULL);
	no_memory = false;
	assert_int_equal(B->messages, 4);
	assert_int_equal(B->bad, 0);
	assert_true(pair_counter(B, RAW_NO_MEMORY) > 0);
	assert_null(conn_of(B->accepted)->rx.win.bits);
	pair_close(&pair);
}

/* ---- hints ---- */

static void the_state_of_hints_comes_with_the_first_one(void **state)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 99};
	struct raw_conn *a;

	(void)state;
	pair_open(&pair, NULL, 24);
	pair_connect(&pair);
	a = conn_of(A->lane_ep);
	pair_send(A, A->lane_ep, 0, 100);
	pair_run(&pair, 1000000, NULL);
	assert_null(a->move);
	no_memory = true;
	raw_hint_source(a, mac);
	raw_move_look(a);
	no_memory = false;
	assert_null(a->move);
	assert_int_equal(pair_counter(A, RAW_NO_MEMORY), 2);
	assert_int_equal(pair_counter(A, RAW_HINT_LIMITED), 1);
	assert_int_equal(pair_counter(A, RAW_MOVE_REQUESTS), 0);
	raw_hint_source(a, mac);
	assert_non_null(a->move);
	assert_int_equal(pair_counter(A, RAW_MOVE_REQUESTS), 1);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flush_without_memory_is_refused),
		cmocka_unit_test(without_memory_for_paths_a_connection_has_one),
		cmocka_unit_test(a_ready_that_finds_no_memory_is_taken_when_it_comes_again),
		cmocka_unit_test(marks_of_a_path_that_is_not_open_yet_are_counted),
		cmocka_unit_test(a_connection_that_is_up_has_no_handshake_state),
		cmocka_unit_test(a_failed_or_closed_attempt_has_no_handshake_state),
		cmocka_unit_test(a_connection_is_not_begun_without_memory),
		cmocka_unit_test(a_full_table_and_a_lack_of_memory_are_two_errors),
		cmocka_unit_test(a_hello_that_finds_no_memory_is_taken_when_it_comes_again),
		cmocka_unit_test(a_path_that_narrows_while_memory_lacks_is_searched_later),
		cmocka_unit_test(the_bitmap_of_holes_comes_with_a_loss_and_goes),
		cmocka_unit_test(without_memory_frames_behind_a_hole_count_as_lost),
		cmocka_unit_test(the_state_of_hints_comes_with_the_first_one),
	};

	return cmocka_run_group_tests_name("raw_memory", tests, NULL, NULL);
}
