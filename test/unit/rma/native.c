/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote memory by lanes that read and write it themselves: keys, rights, the caller's buffers, and
 * how many operations are under way.
 */

#include "mock/rma_world.h"
#include "wireup/wireup.h"

#define NATIVE "mock:0,native=20000,reg;mock:1,net=1,native=50000,reg,bw=5e8"

static void lanes_with_native_memory_move_registered_buffers(void **state)
{
	static const size_t sizes[] = {1, 200, 5000, 100000, 300000};
	struct world x;
	uint64_t word = 5;
	struct op op;

	(void)state;
	world_open(&x, 1, NATIVE, "ATOMIC_MODE=cpu", false);
	mock_set_eagain(NULL, 300);
	for (int i = 0; i < 5; i++) {
		unsigned int before = mock_num_native();

		pattern_fill((uint64_t)i, 0, x.buf, sizes[i]);
		put(&x, &op, 0, 0, sizes[i]);
		wait_op(&x, &op);
		op_end(&op, 0);
		pattern_expect((uint64_t)i, x.bytes[0], sizes[i]); /* visible without a flush */
		memset(x.buf, 0, sizes[i]);
		get(&x, &op, 0, 0, sizes[i]);
		wait_op(&x, &op);
		op_end(&op, 0);
		pattern_expect((uint64_t)i, x.buf, sizes[i]);
		assert_true(mock_num_native() >= before + 2);
		flush(&x, 0, 0);
	}
	/* What is not registered here, and atomics, go by messages. */
	{
		unsigned int before = mock_num_native();

		assert_in_range(weft_put(x.ep[0], &word, 8, x.rkey[0], 8, NULL, NULL), 0, 1);
		flush(&x, 0, 0);
		amo(&x, &op, 0, WEFT_ATOMIC_ADD, 1, 0, &word, 8);
		wait_op(&x, &op);
		op_end(&op, 0);
		assert_int_equal(word, 5);
		assert_int_equal(mock_num_native(), before);
	}
	mock_set_eagain(NULL, 0);
	world_close(&x);
}

/* Lanes say how many bytes of messages they hold, not how much they read and write. */
/*
 * @behaviour Y27: puts and gets by lanes with native access are spread over all of them by their
 * rates
 */
static void puts_and_gets_are_spread_over_native_lanes_by_their_rates(void **state)
{
	static const char *const lanes[] = {
		"mock:0,native=20000;mock:1,net=1,native=20000",
		"mock:0,native=20000,bw=3e8;mock:1,net=1,native=20000,bw=1e8"};
	static const unsigned int least[] = {40, 20}; /* percent of each lane */
	struct weft_ep_lane_info *info;
	struct world x;
	struct op op;

	(void)state;
	for (int k = 0; k < 2; k++) {
		world_open(&x, 1, lanes[k], "ATOMIC_MODE=cpu", false);
		pattern_fill(4, 0, x.buf, x.size);
		info = x.ep[0]->lane_info;
		info[0].tx_bytes = info[1].tx_bytes = info[0].rx_bytes = info[1].rx_bytes = 0;
		put(&x, &op, 0, 0, x.size);
		wait_op(&x, &op);
		op_end(&op, 0);
		assert_in_range(info[0].tx_bytes * 100 / x.size, least[k], 100 - least[k]);
		assert_in_range(info[1].tx_bytes * 100 / x.size, least[k], 100 - least[k]);
		get(&x, &op, 0, 0, x.size);
		wait_op(&x, &op);
		op_end(&op, 0);
		assert_in_range(info[0].rx_bytes * 100 / x.size, least[k], 100 - least[k]);
		assert_in_range(info[1].rx_bytes * 100 / x.size, least[k], 100 - least[k]);
		if (k == 1)
			assert_true(info[0].tx_bytes > 2 * info[1].tx_bytes);
		world_close(&x);
	}
}

/*
 * Gets, and a rendezvous that its receiver reads, come by messages; puts by the lanes themselves.
 */
/* @behaviour T31: gets from a peer that accepts no reads are done by messages */
static void gets_from_a_peer_that_takes_no_reads_come_by_messages(void **state)
{
	struct weft_proto_info info = {.size = sizeof(info)};
	struct world x;
	struct op op;

	(void)state;
	world_open(&x, 1, "mock:0,native=20000,noreads;mock:1,native=20000,noreads",
		   "ATOMIC_MODE=cpu", false);
	pattern_fill(4, 0, x.bytes[0], x.size);
	assert_int_equal(weft_ep_query_proto(x.ep[0], WEFT_OP_GET, x.size, &info), 0);
	assert_string_equal(info.name, "get/am");
	get(&x, &op, 0, 0, x.size);
	wait_op(&x, &op);
	op_end(&op, 0);
	pattern_expect(4, x.buf, x.size);
	assert_int_equal(mock_num_native(), 0);
	put(&x, &op, 0, 0, x.size);
	wait_op(&x, &op);
	op_end(&op, 0);
	assert_true(mock_num_native() > 0);
	world_close(&x);
	/* Atomics of the device there are none: an error, not a wait without end. */
	world_open(&x, 1, "mock:0,native=20000,noreads", "ATOMIC_MODE=device", false);
	amo(&x, &op, 0, WEFT_ATOMIC_ADD, 1, 0, NULL, 64);
	wait_op(&x, &op);
	op_end(&op, -EOPNOTSUPP);
	world_close(&x);
}

/* Devices that are slower than they say look idle again before each operation. */
static void equal_native_lanes_take_turns(void **state)
{
	struct weft_ep_lane_info *info;
	struct world x;
	struct op op;

	(void)state;
	world_open(&x, 1, "mock:0,native=20000;mock:1,net=1,native=20000", "ATOMIC_MODE=cpu",
		   false);
	pattern_fill(4, 0, x.buf, x.size);
	info = x.ep[0]->lane_info;
	info[0].tx_bytes = info[1].tx_bytes = info[0].rx_bytes = info[1].rx_bytes = 0;
	for (unsigned int i = 0; i < 40; i++) {
		if (i < 20)
			put(&x, &op, 0, 0, 8000);
		else
			get(&x, &op, 0, 0, 8000);
		wait_op(&x, &op);
		op_end(&op, 0);
		mock_now += 100000000;
	}
	for (unsigned int i = 0; i < 2; i++) {
		assert_in_range(info[i].tx_bytes, 20 * 8000 * 4 / 10, 20 * 8000 * 6 / 10);
		assert_in_range(info[i].rx_bytes, 20 * 8000 * 4 / 10, 20 * 8000 * 6 / 10);
	}
	world_close(&x);
}

/* @behaviour U72, Y31, S11 */
static void native_keys_of_withdrawn_memory_are_refused_by_the_lane(void **state)
{
	struct world x;
	struct op op;

	(void)state;
	world_open(&x, 1, NATIVE, "ATOMIC_MODE=cpu", false);
	assert_int_equal(weft_mem_deregister(x.mem[0]), 0);
	put(&x, &op, 0, 0, 100);
	wait_op(&x, &op);
	op_end(&op, -EKEYREJECTED);
	get(&x, &op, 0, 0, 100000);
	wait_op(&x, &op);
	op_end(&op, -EKEYREJECTED);
	for (int i = 0; i < 100; i++)
		assert_int_equal(x.bytes[0][i], 0);
	x.mem[0] = reg(x.ctx[1], x.bytes[0], x.size, RIGHTS);
	world_close(&x);
}

/* RoCE has one status for key, rights and range; the latter two were checked in the call. */
/*
 * @behaviour Y31: a remote operation whose key is invalid ends with -EKEYREJECTED over each kind of
 * lane, whatever its driver reports
 */
static void what_a_device_refuses_is_the_key(void **state)
{
	static const int status[] = {-EKEYREJECTED, -EACCES, -ERANGE};
	struct world x;
	struct op op;

	(void)state;
	for (size_t i = 0; i < sizeof(status) / sizeof(*status); i++) {
		world_open(&x, 1, NATIVE, "ATOMIC_MODE=cpu", false);
		mock_lose_native(1, status[i]);
		get(&x, &op, 0, 0, 100000);
		wait_op(&x, &op);
		op_end(&op, -EKEYREJECTED);
		world_close(&x);
	}
}

/* @behaviour X14, S11 */
static void a_foreign_key_never_reaches_a_native_lane(void **state)
{
	struct weft_rkey *foreign;
	struct world x;
	size_t length;
	void *blob;
	struct op op;
	struct weft_rkey *right;

	(void)state;
	world_open(&x, 1, NATIVE, "ATOMIC_MODE=cpu", false);
	/*
	 * The initiator's own memory, said to be the peer's: its native key means something there.
	 */
	assert_int_equal(weft_mem_deregister(x.local), 0);
	x.local = reg(x.ctx[0], x.buf, x.size, RIGHTS);
	assert_int_equal(weft_rkey_pack(x.local, &blob, &length), 0);
	assert_int_equal(weft_rkey_unpack(x.ep[0], blob, length, &foreign), 0);
	weft_rkey_release_blob(blob);
	right = x.rkey[0];
	x.rkey[0] = foreign;
	memset(x.buf, 7, 100);
	put(&x, &op, 0, 0, 100);
	flush(&x, 0, op.rc == 0 ? -EKEYREJECTED : 0);
	op_end(&op, op.rc == 0 ? 0 : -EKEYREJECTED);
	assert_int_equal(mock_num_native(), 0);
	weft_rkey_destroy(foreign);
	x.rkey[0] = right;
	world_close(&x);
}

static void device_atomics_are_the_lanes_or_nobodys(void **state)
{
	uint64_t old = 0, word = 0;
	struct weft_atomic_params and =
		WEFT_INIT(struct weft_atomic_params, .op = WEFT_ATOMIC_AND, .width = 8);
	struct weft_atomic_params four =
		WEFT_INIT(struct weft_atomic_params, .op = WEFT_ATOMIC_ADD, .width = 4);
	struct world x;
	struct op op;

	(void)state;
	world_open(&x, 1, NATIVE, "ATOMIC_MODE=device", false);
	amo(&x, &op, 0, WEFT_ATOMIC_ADD, 5, 0, &old, 0);
	wait_op(&x, &op);
	op_end(&op, 0);
	assert_int_equal(old, 0);
	amo(&x, &op, 0, WEFT_ATOMIC_CSWAP, 9, 5, &old, 0);
	wait_op(&x, &op);
	op_end(&op, 0);
	assert_int_equal(old, 5);
	amo(&x, &op, 0, WEFT_ATOMIC_ADD, 1, 0, NULL, 0);
	wait_op(&x, &op);
	op_end(&op, 0);
	memcpy(&word, x.bytes[0], 8);
	assert_int_equal(word, 10);
	assert_int_equal(mock_num_native(), 3);
	assert_int_equal(weft_atomic(x.ep[0], &and, x.rkey[0], 0, NULL, NULL), -EOPNOTSUPP);
	assert_int_equal(weft_atomic(x.ep[0], &four, x.rkey[0], 0, NULL, NULL), -EOPNOTSUPP);
	world_close(&x);
	/* Lanes without: not by messages behind the device's back. */
	world_open(&x, 1, "mock:0", "ATOMIC_MODE=device", false);
	amo(&x, &op, 0, WEFT_ATOMIC_ADD, 5, 0, &old, 0);
	op_end(&op, -EOPNOTSUPP);
	world_close(&x);
}

/* Two devices are not atomic against each other, whichever lane is the initiator's first one. */
static void device_atomics_of_all_peers_go_to_one_device_of_the_target(void **state)
{
	static const char *const first[] = {"1e9", "1e10"};
	struct weft_atomic_params add =
		WEFT_INIT(struct weft_atomic_params, .op = WEFT_ATOMIC_ADD, .width = 8);
	struct weft_worker *w;
	struct weft_rkey *rkey;
	struct weft_ep *ep;
	char lanes[200];
	size_t length;
	struct world x;
	struct op op;
	void *blob;

	(void)state;
	for (int i = 0; i < 2; i++) {
		snprintf(lanes, sizeof(lanes),
			 "mock:0,net=1,dom=a,native=65536,bw=%s;"
			 "mock:1,net=2,dom=b,native=65536,bw=%s",
			 first[i], first[!i]);
		world_open(&x, 1, lanes, "ATOMIC_MODE=device", false);
		amo(&x, &op, 0, WEFT_ATOMIC_ADD, 1, 0, NULL, 0);
		wait_op(&x, &op);
		op_end(&op, 0);
		assert_ptr_equal(mock_last_atomic(), mock_iface(x.w, 0));
		world_close(&x);
	}
	world_open(&x, 1, lanes, "ATOMIC_MODE=device", false);
	w = mock_worker(x.ctx[0], "mock:2,net=2,native=65536");
	ep = mock_connect(w, x.peer[0]);
	mock_run(20, MS, w, x.peer[0], NULL);
	assert_int_equal(weft_rkey_pack(x.mem[0], &blob, &length), 0);
	assert_int_equal(weft_rkey_unpack(ep, blob, length, &rkey), 0);
	weft_rkey_release_blob(blob);
	assert_int_equal(weft_atomic(ep, &add, rkey, 0, NULL, NULL), -EOPNOTSUPP);
	weft_rkey_destroy(rkey);
	weft_worker_destroy(w);
	world_close(&x);
}

/* @behaviour U77 */
static void U77_a_fence_orders_native_and_message_operations(void **state)
{
	struct world x;
	struct op a, b;
	uint64_t old;

	(void)state;
	world_open(&x, 1, NATIVE, "ATOMIC_MODE=cpu", false);
	for (int k = 0; k < 20; k++) {
		pattern_fill((uint64_t)k, 0, x.buf + 8, 100000);
		put(&x, &a, 0, 8, 100000);
		assert_int_equal(weft_ep_fence(x.ep[0]), 0);
		amo(&x, &b, 0, WEFT_ATOMIC_ADD, 1, 0, &old, 0);
		wait_op(&x, &b);
		op_end(&b, 0);
		op_end(&a, 0);
		assert_int_equal(old, k);
		pattern_expect((uint64_t)k, x.bytes[0] + 8, 100000);
	}
	world_close(&x);
}

/* ------------------------------------------------------------------ own buffers */

#define BIG 262144

static void transfer_dt(struct world *x, struct op *op, bool is_get, struct weft_mem *mem,
			const struct weft_datatype *type, void *buf, size_t count)
{
	struct weft_op_params p = params(op, mem);

	p.datatype = type;
	op->rc = is_get ? weft_get(x->ep[0], buf, count, x->rkey[0], 64, &p, &op->req)
			: weft_put(x->ep[0], buf, count, x->rkey[0], 64, &p, &op->req);
	wait_op(x, op);
	op_end(op, 0);
}

static bool count_refusals(enum weft_log_level level, const char *source, const char *text,
			   void *arg)
{
	unsigned int *n = arg;

	(void)source;
	*n += level == WEFT_LOG_WARN && strstr(text, "refuses a native operation") != NULL;
	return true;
}

/* As a device does whose limits are others than its driver reports. */
static void an_operation_that_a_lane_refuses_ends_with_its_error(void **state)
{
	unsigned int lines = 0;
	uint64_t old;
	struct world x;
	struct op op;

	(void)state;
	world_open(&x, 1, NATIVE, "ATOMIC_MODE=device", false);
	weft_log_set_callback(count_refusals, &lines);
	weft_log_level = WEFT_LOG_WARN;
	for (int k = 0; k < 6; k++) {
		int status = k / 3 ? -EINVAL : 0;

		mock_fail_rma(status ? status : -EAGAIN, 0);
		if (k % 3 == 0)
			put(&x, &op, 0, 0, x.size);
		else if (k % 3 == 1)
			get(&x, &op, 0, 0, x.size);
		else
			amo(&x, &op, 0, WEFT_ATOMIC_ADD, 1, 0, &old, 64);
		world_run(&x, 20);
		assert_int_equal(op_done(&op), status != 0);
		mock_fail_rma(0, 0);
		wait_op(&x, &op);
		op_end(&op, status);
	}
	weft_log_set_callback(NULL, NULL);
	assert_int_equal(lines, 3);
	flush(&x, 0, 0);
	world_close(&x);
}

/* A strided buffer: every other stretch of @p part bytes. */
static size_t stride(struct iovec *iov, uint8_t *buf, size_t part, size_t num)
{
	for (size_t i = 0; i < num; i++)
		iov[i] = (struct iovec){buf + 2 * i * part, part};
	return part * num;
}

/* @behaviour U79 */
static void strided_buffers_are_read_and_written_by_lanes_in_lists(void **state)
{
	static const struct {
		const char *lanes;
		size_t part, num;
	} cases[] = {
		{"mock:0,native=65536,rmaiov=8", 1000, 100},
		{"mock:0,native=65536,rmaiov=8", 3, 40},
		{"mock:0,native=4096,rmaiov=3", 5000, 20},
		{"mock:0,native=65536", 1, 100},
		{"mock:0,native=65536;mock:1,native=5000,rmaiov=8", 777, 150},
	};
	struct weft_datatype type = WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_IOV);
	struct iovec iov[150];
	struct world x;
	struct op op;

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		size_t part = cases[c].part, num = cases[c].num, len;

		mock_reset();
		mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_RMA | WEFT_FEATURE_AMO32 |
				WEFT_FEATURE_AMO64;
		world_open(&x, 1, cases[c].lanes, "REG_CACHE=off", false);
		pattern_fill(3, 0, x.buf, x.size);
		len = stride(iov, x.buf, part, num);
		transfer_dt(&x, &op, false, x.local, &type, iov, num);
		for (size_t i = 0; i < num; i++)
			assert_memory_equal(x.bytes[0] + 64 + i * part, x.buf + 2 * i * part, part);
		assert_int_equal(x.w->msg->rma->native_bytes, len);
		for (size_t i = 0; i < len; i++)
			x.bytes[0][64 + i] ^= 0x5a;
		transfer_dt(&x, &op, true, x.local, &type, iov, num);
		for (size_t i = 0; i < num; i++)
			assert_memory_equal(x.bytes[0] + 64 + i * part, x.buf + 2 * i * part, part);
		assert_int_equal(x.w->msg->rma->native_bytes, 2 * len);
		world_close(&x);
	}
}

/* @behaviour U79 */
static void unregistered_buffers_are_registered_by_the_library(void **state)
{
	struct weft_datatype type = WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_IOV);
	struct iovec iov[3];
	uint8_t *own = malloc(2 * BIG);
	struct world x;
	struct op op;

	(void)state;
	for (int is_get = 0; is_get < 2; is_get++) {
		mock_reset();
		mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_RMA | WEFT_FEATURE_AMO32 |
				WEFT_FEATURE_AMO64;
		world_open(&x, 1, NATIVE, "REG_CACHE=off", false);
		pattern_fill(3, 0, own, 2 * BIG);
		memcpy(x.bytes[0] + 64, own, BIG);
		transfer_dt(&x, &op, is_get, NULL, NULL, own, BIG);
		assert_memory_equal(x.bytes[0] + 64, own, BIG);
		assert_int_equal(x.w->msg->rma->native_bytes, BIG);
		assert_int_equal(mock_num_mems(), 2);
		/* Each entry by itself; an empty one needs nothing. */
		iov[0] = (struct iovec){own + 100, 100000};
		iov[1] = (struct iovec){own, 0};
		iov[2] = (struct iovec){own + BIG, 50000};
		transfer_dt(&x, &op, is_get, NULL, &type, iov, 3);
		assert_memory_equal(x.bytes[0] + 64, own + 100, 100000);
		assert_memory_equal(x.bytes[0] + 64 + 100000, own + BIG, 50000);
		assert_int_equal(x.w->msg->rma->native_bytes, BIG + 150000);
		assert_int_equal(mock_num_mems(), 2);
		/* Small ones are copied, and so is what can't be registered. */
		transfer_dt(&x, &op, is_get, NULL, NULL, own, 64);
		mock_fail_register(-ENOMEM);
		transfer_dt(&x, &op, is_get, NULL, NULL, own, BIG);
		transfer_dt(&x, &op, is_get, NULL, &type, iov, 3);
		mock_fail_register(0);
		assert_int_equal(x.w->msg->rma->native_bytes, BIG + 150000);
		assert_int_equal(x.w->msg->count.register_failed, 2);
		world_close(&x);
	}
	free(own);
}

/*
 * What has not left is chosen anew when lanes change: what was registered for the first choice is
 * given back.
 */
/* @behaviour U79 */
static void an_operation_that_is_chosen_anew_registers_its_buffer_once(void **state)
{
	struct weft_datatype type = WEFT_INIT(struct weft_datatype, .dt_class = WEFT_DT_IOV);
	uint8_t *own = malloc(2 * BIG);
	struct iovec iov[2] = {{own + 100, 100000}, {own + BIG, 50000}};
	struct world x;
	struct op op;

	(void)state;
	for (int way = 0; way < 4; way++) {
		bool is_iov = way & 1, is_get = way & 2;
		size_t len = is_iov ? 150000 : BIG;
		struct weft_op_params p = params(&op, NULL);

		mock_reset();
		mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_RMA | WEFT_FEATURE_AMO32 |
				WEFT_FEATURE_AMO64;
		world_open(&x, 1, NATIVE, "REG_CACHE=off", false);
		pattern_fill(3, 0, own, 2 * BIG);
		mock_fail_rma(-EAGAIN, 0);
		p.datatype = is_iov ? &type : NULL;
		if (is_get)
			op.rc = weft_get(x.ep[0], is_iov ? (void *)iov : own, is_iov ? 2 : BIG,
					 x.rkey[0], 0, &p, &op.req);
		else
			op.rc = weft_put(x.ep[0], is_iov ? (void *)iov : own, is_iov ? 2 : BIG,
					 x.rkey[0], 0, &p, &op.req);
		assert_int_equal(mock_num_mems(), is_iov ? 4 : 3);
		weft_tx_reset(x.ep[0]->msg);
		assert_int_equal(mock_num_mems(), 2);
		world_run(&x, 3);
		assert_int_equal(mock_num_mems(), is_iov ? 4 : 3);
		mock_fail_rma(0, 0);
		wait_op(&x, &op);
		op_end(&op, 0);
		assert_int_equal(mock_num_mems(), 2);
		assert_int_equal(x.w->msg->rma->native_bytes, len);
		assert_memory_equal(x.bytes[0], is_iov ? own + 100 : own, is_iov ? 100000 : BIG);
		flush(&x, 0, 0);
		world_close(&x);
	}
	free(own);
}

/* @behaviour U79 */
static void a_get_into_memory_that_may_only_be_read_is_not_given_to_a_lane(void **state)
{
	struct world x;
	struct op op;

	(void)state;
	mock_reset();
	mock_features =
		WEFT_FEATURE_TAG | WEFT_FEATURE_RMA | WEFT_FEATURE_AMO32 | WEFT_FEATURE_AMO64;
	world_open(&x, 1, NATIVE, "REG_CACHE=off", false);
	assert_int_equal(weft_mem_deregister(x.local), 0);
	mock_set_read_only(x.buf, x.size);
	x.local = reg(x.ctx[0], x.buf, x.size, 0);
	transfer_dt(&x, &op, false, x.local, NULL, x.buf, BIG);
	assert_int_equal(x.w->msg->rma->native_bytes, BIG);
	transfer_dt(&x, &op, true, x.local, NULL, x.buf, BIG);
	assert_int_equal(x.w->msg->rma->native_bytes, BIG);
	world_close(&x);
}

/* ------------------------------------------------------------------ gets under way */

/* @behaviour U90, T2 */
static void gets_under_way_are_bounded_over_all_peers_and_take_turns(void **state)
{
	static const char *const lanes[] = {"mock:0", "mock:0,native=4096"};

	(void)state;
	for (int native = 0; native < 2; native++) {
		struct world x;
		struct op op[3 * 4];
		size_t len = native ? 60000 : 200000;

		mock_reset();
		mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_RMA | WEFT_FEATURE_AMO32 |
				WEFT_FEATURE_AMO64;
		world_open(&x, 3, lanes[native], "RMA_MAX_GETS=5", false);
		mock_set_rma_window(1000);
		for (int i = 0; i < 3; i++)
			pattern_fill(2, 0, x.bytes[i], x.size);
		for (int k = 0; k < 4; k++)
			for (int i = 0; i < 3; i++)
				get(&x, &op[k * 3 + i], i, 0, len);
		/* Each peer has one whatever the others do: it may be the one that answers. */
		assert_int_equal(x.w->msg->rma->gets.used, native ? 7 : 6);
		for (int k = 0; k < 12; k++) {
			wait_op(&x, &op[k]);
			op_end(&op[k], 0);
		}
		assert_int_equal(x.w->msg->rma->gets.used, 0);
		assert_in_range(x.w->msg->rma->gets.peak, 5, 5 + 2);
		assert_true(x.w->msg->rma->gets_limited > 0);
		pattern_expect(2, x.buf, len);
		world_close(&x);
	}
}

/* @behaviour U90, T2 */
static void a_peer_that_dies_gives_its_share_of_gets_back(void **state)
{
	(void)state;
	for (int native = 0; native < 2; native++) {
		struct op op[2];
		struct world x;

		mock_reset();
		mock_features = WEFT_FEATURE_TAG | WEFT_FEATURE_RMA | WEFT_FEATURE_AMO32 |
				WEFT_FEATURE_AMO64;
		world_open(&x, 2, native ? "mock:0,native=4096" : "mock:0", "RMA_MAX_GETS=2",
			   false);
		mock_hold(NULL);
		get(&x, &op[0], 0, 0, 150000);
		get(&x, &op[1], 1, 0, 150000);
		assert_int_equal(x.w->msg->rma->gets.used, 3);
		weft_ep_fail(x.ep[0], -ECONNRESET, "the test says so");
		mock_release(NULL);
		wait_op(&x, &op[1]);
		op_end(&op[1], 0);
		wait_op(&x, &op[0]);
		/* What a lane held is cancelled with it, and says why. */
		op_end(&op[0], -ECONNRESET);
		assert_int_equal(x.w->msg->rma->gets.used, 0);
		world_close(&x);
	}
}

int main(void)
{
#define T(x) cmocka_unit_test_setup_teardown(x, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(strided_buffers_are_read_and_written_by_lanes_in_lists),
		T(unregistered_buffers_are_registered_by_the_library),
		T(an_operation_that_is_chosen_anew_registers_its_buffer_once),
		T(a_get_into_memory_that_may_only_be_read_is_not_given_to_a_lane),
		T(gets_under_way_are_bounded_over_all_peers_and_take_turns),
		T(a_peer_that_dies_gives_its_share_of_gets_back),
		T(lanes_with_native_memory_move_registered_buffers),
		T(puts_and_gets_are_spread_over_native_lanes_by_their_rates),
		T(gets_from_a_peer_that_takes_no_reads_come_by_messages),
		T(equal_native_lanes_take_turns),
		T(an_operation_that_a_lane_refuses_ends_with_its_error),
		T(native_keys_of_withdrawn_memory_are_refused_by_the_lane),
		T(what_a_device_refuses_is_the_key),
		T(a_foreign_key_never_reaches_a_native_lane),
		T(device_atomics_are_the_lanes_or_nobodys),
		T(device_atomics_of_all_peers_go_to_one_device_of_the_target),
		T(U77_a_fence_orders_native_and_message_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
