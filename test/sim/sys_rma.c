/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote memory and active messages over real lane engines in virtual time: loss, duplicates,
 * reordering, several lanes. What is checked is what their users rely on: bytes, counts, order.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/worker.h"
#include "scene.h"

#define BLOCKS 16
#define BLOCK (64u << 10)
#define SIZE (BLOCKS * BLOCK + 64)

struct side {
	uint8_t *bytes; /* registered; counters at the end */
	struct weft_mem *mem;
	struct weft_rkey *rkey; /* of the other side's memory */
	struct scene_ep *e;
};

struct stage {
	struct scene *s;
	struct side side[2];
};

static const struct scene_conf lossy = {
	.lanes = {3, 3},
	.up = {.rate = SIM_GBIT,
	       .delay_ns = 10000,
	       .loss = 0.03,
	       .reorder = 0.2,
	       .reorder_ns = SIM_MS,
	       .dup = 0.02},
};

static void share(struct stage *t, int owner)
{
	struct weft_mem_params mp =
		WEFT_INIT(struct weft_mem_params, .flags = WEFT_MEM_F_REMOTE_READ |
							   WEFT_MEM_F_REMOTE_WRITE |
							   WEFT_MEM_F_REMOTE_ATOMIC);
	struct weft_context *ctx = scene_worker(t->s, (unsigned int)owner)->ctx;
	size_t length;
	void *blob;

	t->side[owner].bytes = calloc(1, SIZE);
	assert_int_equal(
		weft_mem_register(ctx, t->side[owner].bytes, SIZE, &mp, &t->side[owner].mem), 0);
	assert_int_equal(weft_rkey_pack(t->side[owner].mem, &blob, &length), 0);
	assert_int_equal(
		weft_rkey_unpack(t->side[!owner].e->ep, blob, length, &t->side[!owner].rkey), 0);
	weft_rkey_release_blob(blob);
}

static void stage_open(struct stage *t, struct sim_case *c, const struct scene_conf *conf)
{
	t->s = scene_open(c, conf);
	t->side[0].e = scene_up(t->s, 0, 1);
	t->side[1].e = scene_up(t->s, 1, 0);
	scene_run(t->s, 50 * SIM_MS);
	share(t, 0);
	share(t, 1);
}

static void stage_close(struct stage *t)
{
	for (int i = 0; i < 2; i++) {
		weft_rkey_destroy(t->side[i].rkey);
		assert_int_equal(weft_mem_deregister(t->side[i].mem), 0);
		free(t->side[i].bytes);
	}
}

struct wait {
	unsigned int left;
	int status;
};

static void done(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct wait *w = arg;

	w->left--;
	if (c->status)
		w->status = c->status;
	weft_request_free(req);
}

static bool none_left(void *arg)
{
	return ((struct wait *)arg)->left == 0;
}

static void settle(struct stage *t, struct wait *w)
{
	assert_true(sim_run(t->s->sim, 20 * SIM_S, none_left, w));
	assert_int_equal(w->status, 0);
}

static void flush(struct stage *t, int side)
{
	static struct wait w; /* outlives a failing case */
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = done, .cb_arg = &w);

	w = (struct wait){1, 0};
	if (weft_worker_flush(scene_worker(t->s, (unsigned int)side), &p, NULL) == 0)
		w.left = 0;
	settle(t, &w);
}

/*
 * A round of random traffic both ways: what is written, and how often each side's counter was added
 * to.
 */
struct mess {
	struct stage t;
	struct sim_rng dice;
	uint64_t adds[2], olds[2][BLOCKS];
	uint8_t *buf; /* of the one side, then of the other */
};

static uint8_t mess_byte(int round, unsigned int i)
{
	return (uint8_t)(round * 7 + (int)i);
}

static void mess_write(struct mess *m, struct wait *w, int round)
{
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = done, .cb_arg = w);

	*w = (struct wait){0, 0};
	for (unsigned int i = 0; i < 2 * BLOCKS; i++) {
		int from = i & 1;
		struct side *s = &m->t.side[from];
		unsigned int b = i / 2;
		size_t len = 1 + sim_below(&m->dice, sim_chance(&m->dice, 0.5) ? 100 : BLOCK);
		uint8_t *mine = m->buf + i * BLOCK;
		struct weft_atomic_params add =
			WEFT_INIT(struct weft_atomic_params, .op = WEFT_ATOMIC_ADD, .width = 8,
				  .operand = 1, .result = &m->olds[from][b]);
		int rc;

		memset(mine, mess_byte(round, i), len);
		w->left += 2;
		p.flags = b & 1 ? WEFT_OP_F_DELIVERED : 0;
		rc = weft_put(s->e->ep, mine, len, s->rkey, b * BLOCK, &p, NULL);
		assert_in_range(rc, 0, 1);
		w->left -= rc == 0;
		p.flags = 0;
		rc = weft_atomic(s->e->ep, &add, s->rkey, BLOCKS * BLOCK, &p, NULL);
		assert_int_equal(rc, WEFT_INPROGRESS);
		m->adds[!from]++;
	}
	settle(&m->t, w);
	flush(&m->t, 0);
	flush(&m->t, 1);
}

/* Read all of it back, and compare with what lies there. */
static void mess_read(struct mess *m, struct wait *w, int round)
{
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = done, .cb_arg = w);

	*w = (struct wait){2, 0};
	for (int from = 0; from < 2; from++)
		assert_int_equal(weft_get(m->t.side[from].e->ep,
					  m->buf + from * (int)(BLOCKS * BLOCK), BLOCKS * BLOCK,
					  m->t.side[from].rkey, 0, &p, NULL),
				 WEFT_INPROGRESS);
	settle(&m->t, w);
	for (int from = 0; from < 2; from++) {
		const uint8_t *got = m->buf + from * (int)(BLOCKS * BLOCK);

		assert_memory_equal(got, m->t.side[!from].bytes, BLOCKS * BLOCK);
		for (unsigned int b = 0; b < BLOCKS; b++)
			assert_int_equal(got[b * BLOCK],
					 mess_byte(round, 2 * b + (unsigned int)from));
	}
}

/* @behaviour U79 */
static void random_puts_gets_and_atomics_keep_every_byte_and_count(struct sim_case *c)
{
	static struct wait w;
	uint64_t first = c->seed, count;

	for (; c->seed < first + 5; c->seed++) {
		struct mess m = {.dice = sim_rng_make(c->seed, 1),
				 .buf = malloc(2 * BLOCKS * BLOCK)};

		stage_open(&m.t, c, &lossy);
		for (int round = 0; round < 10; round++) {
			mess_write(&m, &w, round);
			for (int side = 0; side < 2; side++) {
				memcpy(&count, m.t.side[side].bytes + BLOCKS * BLOCK, 8);
				assert_int_equal(count, m.adds[side]);
			}
			mess_read(&m, &w, round);
		}
		stage_close(&m.t);
		free(m.buf);
	}
	c->seed = first;
}

/*
 * ---- memory that goes while puts are under way ------------------------------------------------
 */

#define REVOKE_PUTS 300
#define REVOKE_ROOM 32768 /* of each put */
#define REVOKE_GETS 80

struct revoke_put {
	struct revoke *r;
	unsigned int number;
	size_t length;
	bool late; /* posted after the memory was gone */
	bool over;
	int status;
};

struct revoke {
	struct stage t;
	struct sim_rng dice;
	uint8_t *bytes, *before, *mine; /* the peer's memory, as it was when it went; ours */
	struct weft_mem *mem;
	struct weft_rkey *rkey;
	struct revoke_put puts[REVOKE_PUTS];
	unsigned int posted, under_way, gets;
	bool gone;
	uint8_t *into;
};

static uint8_t revoke_byte(unsigned int number, size_t i)
{
	return (uint8_t)(number * 31 + i * 7 + (i >> 8) + 1);
}

static void revoke_open(struct revoke *r, struct sim_case *c)
{
	struct weft_mem_params mp =
		WEFT_INIT(struct weft_mem_params, .flags = WEFT_MEM_F_REMOTE_WRITE);
	size_t size = (size_t)REVOKE_PUTS * REVOKE_ROOM, length;
	void *blob;

	stage_open(&r->t, c, &lossy);
	r->dice = sim_rng_make(c->seed, 3);
	r->bytes = calloc(1, size);
	r->before = malloc(size);
	r->mine = malloc(size);
	r->into = malloc(BLOCK);
	for (unsigned int n = 0; n < REVOKE_PUTS; n++)
		for (size_t i = 0; i < REVOKE_ROOM; i++)
			r->mine[(size_t)n * REVOKE_ROOM + i] = revoke_byte(n, i);
	assert_int_equal(
		weft_mem_register(scene_worker(r->t.s, 1)->ctx, r->bytes, size, &mp, &r->mem), 0);
	assert_int_equal(weft_rkey_pack(r->mem, &blob, &length), 0);
	assert_int_equal(weft_rkey_unpack(r->t.side[0].e->ep, blob, length, &r->rkey), 0);
	weft_rkey_release_blob(blob);
}

static void revoke_put_done(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct revoke_put *p = arg;

	(void)req;
	p->over = true;
	p->status = c->status;
	p->r->under_way--;
}

static void revoke_get_done(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct revoke *r = arg;

	(void)req;
	assert_int_equal(c->status, 0);
	r->gets--;
}

/* Gets keep the peer's answers waiting for its lanes, refusals among them. */
static void revoke_post(struct revoke *r)
{
	struct weft_op_params get =
		WEFT_INIT(struct weft_op_params, .cb = revoke_get_done, .cb_arg = r);
	struct revoke_put *p = &r->puts[r->posted];
	struct weft_op_params put = WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_DELIVERED,
					      .cb = revoke_put_done, .cb_arg = p);
	struct weft_ep *ep = r->t.side[0].e->ep;

	while (r->gets < REVOKE_GETS) {
		r->gets++;
		assert_int_equal(weft_get(ep, r->into, 10000, r->t.side[0].rkey, 0, &get, NULL),
				 WEFT_INPROGRESS);
	}
	*p = (struct revoke_put){.r = r, .number = r->posted++, .late = r->gone};
	p->length = 1 + sim_below(&r->dice, sim_chance(&r->dice, 0.5) ? 100 : REVOKE_ROOM);
	r->under_way++;
	assert_int_equal(weft_put(ep, r->mine + (size_t)p->number * REVOKE_ROOM, p->length, r->rkey,
				  (uint64_t)p->number * REVOKE_ROOM, &put, NULL),
			 WEFT_INPROGRESS);
}

static bool revoke_over(void *arg)
{
	const struct revoke *r = arg;

	return r->under_way + r->gets == 0;
}

static void revoke_check(const struct revoke *r)
{
	for (const struct revoke_put *p = r->puts; p < r->puts + REVOKE_PUTS; p++) {
		const size_t at = (size_t)p->number * REVOKE_ROOM;

		assert_true(p->over);
		assert_true(p->status == 0 || p->status == -EKEYREJECTED);
		if (p->late && p->status == 0)
			fail_msg("put %u of %zu bytes, posted after the memory was gone, ended "
				 "well",
				 p->number, p->length);
		if (p->status == 0 && memcmp(r->bytes + at, r->mine + at, p->length) != 0)
			fail_msg("put %u of %zu bytes is not there", p->number, p->length);
	}
	assert_memory_equal(r->bytes, r->before, (size_t)REVOKE_PUTS * REVOKE_ROOM);
}

/* @behaviour T22: a put to deregistered memory never completes without an error */
static void a_put_to_memory_that_is_gone_never_ends_well(struct sim_case *c)
{
	uint64_t first = c->seed;

	for (; c->seed < first + 6; c->seed++) {
		static struct revoke r;
		unsigned int end;

		r = (struct revoke){.gone = false};
		revoke_open(&r, c);
		end = 20 + (unsigned int)sim_below(&r.dice, REVOKE_PUTS / 2);
		while (r.posted < REVOKE_PUTS) {
			if (r.posted >= end && !r.gone) {
				assert_int_equal(weft_mem_deregister(r.mem), 0);
				memcpy(r.before, r.bytes, (size_t)REVOKE_PUTS * REVOKE_ROOM);
				r.gone = true;
			}
			for (uint64_t k = sim_below(&r.dice, 12); k && r.posted < REVOKE_PUTS; k--)
				revoke_post(&r);
			scene_run(r.t.s, sim_below(&r.dice, 500000));
		}
		assert_true(sim_run(r.t.s->sim, 60 * SIM_S, revoke_over, &r));
		revoke_check(&r);
		weft_rkey_destroy(r.rkey);
		stage_close(&r.t);
		free(r.bytes);
		free(r.before);
		free(r.mine);
		free(r.into);
	}
	c->seed = first;
}

/* @behaviour U77 */
static void a_flag_after_a_fence_is_seen_after_the_data(struct sim_case *c)
{
	struct stage t;
	uint8_t *buf = malloc(BLOCK);

	stage_open(&t, c, &lossy);
	for (uint64_t i = 1; i <= 40; i++) {
		uint64_t seen = 0;
		struct weft_ep *ep = t.side[0].e->ep;
		unsigned int steps = 0;

		memset(buf, (int)i, BLOCK);
		assert_in_range(weft_put(ep, buf, BLOCK, t.side[0].rkey, 0, NULL, NULL), 0, 1);
		assert_int_equal(weft_ep_fence(ep), 0);
		assert_in_range(weft_put(ep, &i, 8, t.side[0].rkey, BLOCKS * BLOCK, NULL, NULL), 0,
				1);
		while (seen != i) {
			assert_true(steps++ < 100000);
			scene_run(t.s, 20000);
			memcpy(&seen, t.side[1].bytes + BLOCKS * BLOCK, 8);
		}
		for (unsigned int k = 0; k < BLOCK; k++)
			assert_int_equal(t.side[1].bytes[k], (uint8_t)i);
		/* `i` is on the stack of this loop. */
		flush(&t, 0);
	}
	stage_close(&t);
	free(buf);
}

struct inbox {
	uint64_t next;
	uint64_t done;
	uint8_t into[200000];
	struct weft_worker *w;
	size_t length;
};

static void got_data(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct inbox *in = arg;

	(void)req;
	assert_int_equal(c->status, 0);
	in->done++;
}

static int on_message(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = got_data, .cb_arg = arg);
	struct inbox *in = arg;
	uint64_t n;
	int rc;

	memcpy(&n, msg->header, 8);
	assert_int_equal(n, in->next);
	in->next++;
	if (!(msg->flags & WEFT_AM_F_RNDV)) {
		for (size_t i = 0; i < msg->length; i++)
			assert_int_equal(((const uint8_t *)msg->data)[i], (uint8_t)n);
		in->done++;
		return 0;
	}
	rc = weft_am_recv_data(worker, msg->desc, in->into, msg->length, &p, NULL);
	assert_in_range(rc, 0, 1);
	in->done += rc == 0;
	return 0;
}

/* @behaviour U51 */
static void active_messages_come_once_and_in_order(struct sim_case *c)
{
	enum { N = 600 };
	static struct inbox in;
	static uint8_t buf[N / 10 + 1][200000];
	static struct wait w;
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = done, .cb_arg = &w);
	struct sim_rng dice = sim_rng_make(c->seed, 2);
	struct stage t;

	in = (struct inbox){.next = 0};
	stage_open(&t, c, &lossy);
	assert_int_equal(weft_worker_set_am_handler(scene_worker(t.s, 1), 3, on_message, &in, 0),
			 0);
	w = (struct wait){N, 0};
	for (uint64_t n = 0; n < N; n++) {
		struct weft_am_send_params a = WEFT_INIT(struct weft_am_send_params, .id = 3,
							 .header = &n, .header_length = 8);
		static uint8_t small[N][1200];
		size_t len = n % 10 ? sim_below(&dice, 1200) : 2000 + sim_below(&dice, 198000);
		uint8_t *b = n % 10 ? small[n] : buf[n / 10];
		int rc;

		memset(b, (int)n, len);
		rc = weft_am_send(t.side[0].e->ep, &a, b, len, &p, NULL);
		assert_in_range(rc, 0, 1);
		w.left -= rc == 0;
		if (n % 7 == 0)
			scene_run(t.s, 100000);
	}
	settle(&t, &w);
	flush(&t, 0);
	assert_int_equal(in.next, N);
	assert_int_equal(in.done, N);
	stage_close(&t);
}

static int count_message(struct weft_worker *worker, const struct weft_am_msg *msg, void *arg)
{
	unsigned int *calls = arg;

	(void)worker;
	(void)msg;
	++*calls;
	return 0;
}

static void ended(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	struct wait *w = arg;

	assert_true(c->status == 0 || c->status == -ECONNRESET);
	w->left--;
	weft_request_free(req);
}

/* Short, copied, long and asked-for ones, of which the last are under way when the peer closes. */
static unsigned int send_each_kind(struct scene_ep *e, struct wait *w)
{
	static const size_t sizes[] = {8, 1000, 100, 20000, 100000};
	static uint8_t buf[100000];
	struct weft_op_params p = WEFT_INIT(struct weft_op_params, .cb = ended, .cb_arg = w);
	unsigned int i, n = sizeof(sizes) / sizeof(sizes[0]);

	for (i = 0; i < n; i++) {
		struct weft_am_send_params a = WEFT_INIT(struct weft_am_send_params, .id = 3);
		int rc;

		a.flags = i == 2 ? WEFT_AM_SEND_F_RNDV : 0;
		rc = weft_am_send(e->ep, &a, buf, sizes[i], &p, NULL);
		assert_true(rc == 0 || rc == WEFT_INPROGRESS || rc == -ECONNRESET);
		w->left += rc == WEFT_INPROGRESS;
	}
	return n;
}

/* @behaviour U49: short, long and rendezvous messages for a closed endpoint are dropped */
static void U49_active_messages_for_a_closed_endpoint_are_dropped(struct sim_case *c)
{
	static struct wait w;
	static unsigned int calls;
	unsigned int sent = 0, delivered = 0;

	for (unsigned int i = 0; i < 40; i++) {
		const struct scene_conf conf = {.lanes = {2, 2}};
		struct scene *s = scene_open(c, &conf);
		struct scene_ep *e[2] = {scene_up(s, 0, 1), scene_up(s, 1, 0)}, *again;
		struct op *closed;

		w = (struct wait){0, 0};
		calls = 0;
		assert_int_equal(weft_worker_set_am_handler(scene_worker(s, 1), 3, count_message,
							    &calls, 0),
				 0);
		sent += send_each_kind(e[0], &w);
		/* From before the first frame has arrived to after the last. */
		scene_run(s, i * 5000);
		closed = op_close(e[1], i & 1 ? WEFT_EP_CLOSE_F_FORCE : 0);
		sent += send_each_kind(e[0], &w);
		op_expect(closed, 5 * SIM_S, 0);
		assert_true(sim_run(s->sim, 5 * SIM_S, none_left, &w));
		assert_true(calls <= 10);
		delivered += calls;
		/* Both workers go on. */
		calls = 0;
		again = scene_up(s, 0, 1);
		send_each_kind(again, &w);
		assert_true(sim_run(s->sim, 5 * SIM_S, none_left, &w));
		scene_run(s, SIM_MS);
		assert_int_equal(calls, 5);
	}
	/* Some came in time, and some did not. */
	assert_true(delivered > 0 && delivered < sent);
}

static struct sim_case cases[] = {
	SIM_CASE(U49_active_messages_for_a_closed_endpoint_are_dropped),
	SIM_CASE(random_puts_gets_and_atomics_keep_every_byte_and_count),
	SIM_CASE(a_put_to_memory_that_is_gone_never_ends_well),
	SIM_CASE(a_flag_after_a_fence_is_seen_after_the_data),
	SIM_CASE(active_messages_come_once_and_in_order),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_rma", cases, sizeof(cases) / sizeof(cases[0]));
}
