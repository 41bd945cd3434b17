/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote keys of the number alone: the owner checks; lanes' own keys are asked for once. */

#include "mock/ep_pair.h"
#include "msg/msg.h"
#include "rma/rma.h"

#define SIZE 20000u

static _Alignas(8) uint8_t mem[SIZE + 8], buf[SIZE];

struct rig {
	struct pair p;
	struct weft_mem *m;
	struct weft_rkey *rkey;
};

static void up(struct rig *r, const char *lanes, unsigned int rights)
{
	struct weft_mem_params mp = WEFT_INIT(struct weft_mem_params, .flags = rights);

	mock_reset();
	mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_RMA | WEFT_FEATURE_AMO64;
	pair_up(&r->p, lanes);
	mock_features = 0;
	assert_int_equal(weft_mem_register(r->p.ctx, mem, SIZE, &mp, &r->m), 0);
	assert_true(weft_mem_key(r->m) != 0);
	assert_int_equal(weft_rkey_from_key(r->p.x, weft_mem_key(r->m), &r->rkey), 0);
}

static void down(struct rig *r)
{
	weft_rkey_destroy(r->rkey);
	assert_int_equal(weft_mem_deregister(r->m), 0);
	pair_down(&r->p);
}

static int end(struct rig *r, int rc, struct weft_request *req)
{
	for (int i = 0; rc > 0 && i < 3000 && weft_request_test(req, NULL) == rc; i++)
		mock_run(1, MS, r->p.a, r->p.b, NULL);
	return rc > 0 ? status_of(req) : rc;
}

static int put(struct rig *r, size_t len, uint64_t at, uint32_t flags)
{
	struct weft_op_params op =
		WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_DELIVERED | flags);
	struct weft_request *req;
	int rc = weft_put(r->p.x, buf, len, r->rkey, at, &op, &req);

	if (flags & WEFT_OP_F_INJECT)
		memset(buf, 0xdd, len);
	return end(r, rc, req);
}

static int get(struct rig *r, size_t len, uint64_t at)
{
	struct weft_request *req;
	int rc = weft_get(r->p.x, buf, len, r->rkey, at, NULL, &req);

	return end(r, rc, req);
}

static int add(struct rig *r, uint64_t at)
{
	uint64_t old = 0;
	struct weft_atomic_params a = WEFT_INIT(struct weft_atomic_params, .op = WEFT_ATOMIC_ADD,
						.width = 8, .operand = 1, .result = &old);
	struct weft_request *req;
	int rc = weft_atomic(r->p.x, &a, r->rkey, at, NULL, &req);

	return end(r, rc, req);
}

static void the_owner_checks(void **state)
{
	struct rig r;

	(void)state;
	up(&r, two_nics, WEFT_MEM_F_REMOTE_WRITE | WEFT_MEM_F_REMOTE_ATOMIC);
	memset(mem, 0, sizeof(mem));
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)(i * 3 + 1);
	assert_int_equal(put(&r, SIZE, 0, 0), 0);
	assert_memory_equal(mem, buf, SIZE);
	assert_int_equal(put(&r, 2, SIZE - 1, 0), -ERANGE);
	assert_int_equal(put(&r, 1, 1ull << 40, 0), -ERANGE);
	assert_int_equal(mem[SIZE], 0);
	assert_int_equal(get(&r, 8, 0), -EACCES);
	memset(mem, 0, 16);
	assert_int_equal(add(&r, 8), 0);
	assert_int_equal(mem[8], 1);
	assert_int_equal(add(&r, 4), -EINVAL);
	assert_int_equal(add(&r, SIZE), -ERANGE);
	assert_true(r.rkey->unknown);
	down(&r);
	up(&r, two_nics, WEFT_MEM_F_REMOTE_READ);
	r.rkey->key ^= 2;
	assert_int_equal(get(&r, 8, 0), -EKEYREJECTED);
	down(&r);
}

static void what_is_injected_may_be_overwritten(void **state)
{
	struct rig r;

	(void)state;
	for (unsigned int i = 0; i < 40; i++) {
		size_t len = 1 + i * 200;

		up(&r, i % 2 ? two_nics : "mock:0,native=4096,short=64,bcopy=400",
		   WEFT_MEM_F_REMOTE_WRITE);
		memset(buf, 0x5a, sizeof(buf));
		mock_set_eagain(NULL, i % 4 * 240);
		assert_int_equal(put(&r, len, 3, WEFT_OP_F_INJECT), 0);
		for (size_t k = 0; k < len; k++)
			assert_int_equal(mem[3 + k], 0x5a);
		memset(mem, 0, sizeof(mem));
		mock_set_eagain(NULL, 0);
		assert_int_equal(put(&r, WEFT_INJECT_MAX + 1, 0, WEFT_OP_F_INJECT), -EMSGSIZE);
		down(&r);
	}
}

static uint64_t native_bytes(const struct rig *r)
{
	return r->p.a->msg->rma->native_bytes;
}

static void native_keys_come_once(void **state)
{
	struct rig r;

	(void)state;
	up(&r, "mock:0,native=65536", WEFT_MEM_F_REMOTE_WRITE | WEFT_MEM_F_REMOTE_READ);
	memset(buf, 1, sizeof(buf));
	assert_int_equal(put(&r, SIZE, 0, 0), 0);
	assert_int_equal(native_bytes(&r), 0);
	assert_false(r.rkey->unknown);
	assert_true(r.rkey->size == SIZE && r.rkey->num_native == 1);
	assert_true(LIST_EMPTY(&r.p.a->msg->rma->key_queries));
	memset(buf, 2, sizeof(buf));
	assert_int_equal(put(&r, SIZE, 0, 0), 0);
	assert_int_equal(native_bytes(&r), SIZE);
	assert_memory_equal(mem, buf, SIZE);
	/* From now on the call says what is wrong. */
	assert_int_equal(weft_put(r.p.x, buf, 2, r.rkey, SIZE - 1, NULL, NULL), -ERANGE);
	down(&r);
	/* One that goes before the answer. */
	up(&r, "mock:0,native=65536", WEFT_MEM_F_REMOTE_WRITE | WEFT_MEM_F_REMOTE_READ);
	assert_true(weft_put(r.p.x, buf, 8, r.rkey, 0, NULL, NULL) >= 0);
	weft_rkey_destroy(r.rkey);
	assert_int_equal(weft_rkey_from_key(r.p.x, 12345, &r.rkey), 0);
	mock_run(50, MS, r.p.a, r.p.b, NULL);
	assert_int_equal(get(&r, 8, 0), -EKEYREJECTED);
	assert_true(r.rkey->unknown);
	down(&r);
}

static void a_new_endpoint_requests_the_key_again(void **state)
{
	struct mock_err ex;
	struct weft_ep *x;
	struct rig r;

	(void)state;
	up(&r, "mock:0,native=65536", WEFT_MEM_F_REMOTE_WRITE);
	assert_true(weft_put(r.p.x, buf, 8, r.rkey, 0, NULL, NULL) >= 0);
	assert_true(r.rkey->query_sent);
	assert_true(weft_ep_close(r.p.x, WEFT_EP_CLOSE_F_FORCE, NULL, NULL) >= 0);
	mock_run(100, MS, r.p.a, r.p.b, NULL);
	assert_true(r.rkey->unknown);
	x = conn_create(r.p.a, r.p.b, &ex);
	mock_run(100, MS, r.p.a, r.p.b, NULL);
	r.p.x = x;
	assert_int_equal(put(&r, 8, 0, 0), 0);
	assert_false(r.rkey->unknown);
	memset(buf, 3, sizeof(buf));
	assert_int_equal(put(&r, SIZE, 0, 0), 0);
	assert_int_equal(native_bytes(&r), SIZE);
	assert_memory_equal(mem, buf, SIZE);
	down(&r);
}

/* The context has more domains than a reply has room for. */
static void a_worker_replies_with_the_keys_of_its_lanes(void **state)
{
	struct weft_worker *others[WEFT_RKEY_DOMAINS], *owner;
	struct weft_rkey *rkey;
	struct weft_ep *ep;
	char lanes[64];
	struct rig r;

	(void)state;
	up(&r, "mock:0,native=65536", WEFT_MEM_F_REMOTE_WRITE);
	for (unsigned int i = 0; i < WEFT_RKEY_DOMAINS; i++) {
		snprintf(lanes, sizeof(lanes), "mock:0,native=65536,dom=%u", i);
		others[i] = mock_worker(r.p.ctx, lanes);
	}
	owner = mock_worker(r.p.ctx, "mock:0,native=65536,dom=last");
	ep = mock_connect(r.p.a, owner);
	mock_run(100, MS, r.p.a, owner, NULL);
	assert_int_equal(weft_rkey_from_key(ep, weft_mem_key(r.m), &rkey), 0);
	assert_true(weft_put(ep, buf, 8, rkey, 0, NULL, NULL) >= 0);
	mock_run(50, MS, r.p.a, owner, NULL);
	assert_false(rkey->unknown);
	assert_int_equal(rkey->num_native, 1);
	assert_int_equal(rkey->native[0].domain, ep->lanes[0].remote_domain);
	weft_rkey_destroy(rkey);
	weft_worker_destroy(owner);
	for (unsigned int i = 0; i < WEFT_RKEY_DOMAINS; i++)
		weft_worker_destroy(others[i]);
	down(&r);
}

static int register_at(const struct rig *r, void *at, unsigned int rights, uint64_t key,
		       struct weft_mem **m)
{
	const struct weft_mem_params mp =
		WEFT_INIT(struct weft_mem_params, .flags = rights | WEFT_MEM_F_KEY, .key = key);

	return weft_mem_register(r->p.ctx, at, SIZE, &mp, m);
}

/*
 * The application's key may come back for other memory. What a peer has made of the number then
 * leads there: it never keeps bounds and native keys.
 */
static void chosen_keys(void **state)
{
	static uint8_t first[SIZE], second[SIZE];
	struct weft_mem *one, *other, *more[4];
	struct weft_rkey *packed;
	struct rig r;
	size_t length;
	void *blob;

	(void)state;
	up(&r, "mock:0,native=65536", WEFT_MEM_F_REMOTE_WRITE);
	weft_rkey_destroy(r.rkey);
	assert_int_equal(register_at(&r, first, WEFT_MEM_F_REMOTE_WRITE, 0, &one), -EINVAL);
	assert_int_equal(register_at(&r, first, 0, 77, &one), -EINVAL);
	assert_int_equal(register_at(&r, first, WEFT_MEM_F_REMOTE_WRITE, 77, &one), 0);
	assert_true(weft_mem_key(one) == 77);
	assert_int_equal(register_at(&r, second, WEFT_MEM_F_REMOTE_WRITE, 77, &other), -EEXIST);
	assert_int_equal(weft_rkey_from_key(r.p.x, 77, &r.rkey), 0);
	memset(buf, 1, SIZE);
	memset(first, 0, SIZE);
	memset(second, 0, SIZE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(put(&r, SIZE, 0, 0), 0);
	assert_memory_equal(first, buf, SIZE);
	assert_int_equal(weft_rkey_pack(one, &blob, &length), 0);
	assert_int_equal(weft_rkey_unpack(r.p.x, blob, length, &packed), 0);
	assert_int_equal(packed->num_native, 0);
	weft_rkey_release_blob(blob);
	weft_rkey_destroy(packed);
	assert_int_equal(weft_mem_deregister(one), 0);
	assert_int_equal(put(&r, 8, 0, 0), -EKEYREJECTED);
	assert_int_equal(register_at(&r, second, WEFT_MEM_F_REMOTE_WRITE, 77, &other), 0);
	memset(buf, 2, SIZE);
	assert_int_equal(put(&r, SIZE, 0, 0), 0);
	assert_memory_equal(second, buf, SIZE);
	assert_int_equal(first[0], 1);
	assert_true(r.rkey->unknown);
	assert_int_equal(native_bytes(&r), 0);
	/* With the same low bits they are on several levels, and found on each. */
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(register_at(&r, first, WEFT_MEM_F_REMOTE_WRITE,
					     77 + ((i + 1) << 32), &more[i]),
				 0);
	assert_int_equal(weft_mem_deregister(other), 0);
	assert_int_equal(register_at(&r, second, WEFT_MEM_F_REMOTE_WRITE, 77 + (4ull << 32),
				     &other),
			 -EEXIST);
	for (int i = 0; i < 4; i++)
		assert_int_equal(weft_mem_deregister(more[i]), 0);
	down(&r);
}

static void a_key_belongs_to_one_worker(void **state)
{
	struct weft_worker *other;
	struct weft_ep *ep;
	struct rig r;

	(void)state;
	up(&r, two_nics, WEFT_MEM_F_REMOTE_WRITE);
	other = mock_worker(r.p.ctx, two_nics);
	ep = mock_connect(other, r.p.b);
	mock_run(100, MS, other, r.p.b, NULL);
	assert_int_equal(weft_put(ep, buf, 8, r.rkey, 0, NULL, NULL), -EINVAL);
	assert_int_equal(r.rkey->refs, 1);
	assert_int_equal(put(&r, 8, 0, 0), 0);
	weft_worker_destroy(other);
	down(&r);
}

static void wrong_calls(void **state)
{
	struct weft_rkey *k;
	struct rig r;

	(void)state;
	up(&r, two_nics, WEFT_MEM_F_REMOTE_READ);
	assert_int_equal(weft_rkey_from_key(NULL, 1, &k), -EINVAL);
	assert_int_equal(weft_rkey_from_key(r.p.x, 0, &k), -EINVAL);
	assert_int_equal(weft_rkey_from_key(r.p.x, 1, NULL), -EINVAL);
	assert_true(weft_mem_key(NULL) == 0);
	down(&r);
}

static void lengths_of_the_messages(void **state)
{
	uint8_t msg[24 + 16 * 20] = {0};
	struct weft_wire_key *rep = (void *)msg;

	(void)state;
	assert_int_equal(weft_wire_check(WEFT_WIRE_KEY_REQ, msg, 8), 0);
	assert_int_equal(weft_wire_check(WEFT_WIRE_KEY_REQ, msg, 9), -EBADMSG);
	assert_int_equal(weft_wire_check(WEFT_WIRE_KEY, msg, 24), -EBADMSG);
	rep->size = weft_put64(1);
	assert_int_equal(weft_wire_check(WEFT_WIRE_KEY, msg, 24), 0);
	assert_int_equal(weft_wire_check(WEFT_WIRE_KEY, msg, 40), -EBADMSG);
	rep->num_domains = 1;
	assert_int_equal(weft_wire_check(WEFT_WIRE_KEY, msg, 40), 0);
	rep->num_domains = WEFT_RKEY_DOMAINS + 1;
	assert_int_equal(weft_wire_check(WEFT_WIRE_KEY, msg, 24 + 16 * 17), -EBADMSG);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(the_owner_checks),
		CONN_TEST(what_is_injected_may_be_overwritten),
		CONN_TEST(native_keys_come_once),
		CONN_TEST(a_new_endpoint_requests_the_key_again),
		CONN_TEST(chosen_keys),
		CONN_TEST(a_worker_replies_with_the_keys_of_its_lanes),
		CONN_TEST(a_key_belongs_to_one_worker),
		CONN_TEST(wrong_calls),
		cmocka_unit_test(lengths_of_the_messages),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("from_key", tests, NULL, NULL);
}
