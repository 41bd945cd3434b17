/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * RoCE lanes by the lane contract alone: two interfaces over two devices, in one process and one thread.
 *
 *	roce_lane DEVICE_A DEVICE_B [PATTERN]
 *
 * Prints TAP. PATTERN runs only behaviours whose name contains it.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "drivers/roce/roce.h"

#define CHECK(cond)                                                                        \
	do {                                                                               \
		if (!(cond)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
			printf("# line %d: not so: %s\n", __LINE__, #cond);                \
			return false;                                                      \
		}                                                                          \
	} while (0)

#define WITHIN(seconds, cond)                      \
	do {                                       \
		double end_ = now_s() + (seconds); \
		while (!(cond) && now_s() < end_)  \
			turn();                    \
		CHECK(cond);                       \
	} while (0)

/* ------------------------------------------------------------------ two hosts */

struct host {
	struct weft_lane_iface *iface;
	struct weft_lane_ep *lep, *passive;
	bool asleep;
	unsigned int up, down, gone;
	int status;
	char text[320];
	/* received */
	uint64_t got, bytes, wrong;
	uint32_t next; /* in-order number expected */
	bool keep, ordered;
	void *kept[4096];
	unsigned int num_kept;
	size_t last_len;
	uint8_t last[70000];
};

static struct host a, b;
static const char *name_a, *name_b;
static struct weft_lane_conf conf = {.zcopy = true, .peer_timeout_ns = 30000000000ull};

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void turn_host(struct host *h)
{
	if (h->iface == NULL || h->asleep)
		return;
	h->iface->ops->progress(h->iface, weft_platform_host.now(weft_platform_host.arg));
	if (h->iface->tx_open)
		h->iface->ops->tx_flush(h->iface);
}

static void turn(void)
{
	turn_host(&a);
	turn_host(&b);
}

/* Every byte of a message is a function of its number and its place. */
static uint8_t byte_of(uint32_t number, size_t at)
{
	return (uint8_t)(number * 131u + at * 7u + (at >> 8));
}

static int on_recv(void *arg, struct weft_lane_ep *lep, uint8_t am_id, const void *data,
		   size_t length, void *desc)
{
	struct host *h = arg;
	const uint8_t *p = data;
	uint32_t number;
	size_t i;

	if (lep->passive)
		h->passive = lep;
	h->got++;
	h->bytes += length;
	h->last_len = length;
	if (length <= sizeof(h->last))
		memcpy(h->last, data, length);
	if (am_id == 5 && length >= 4) {
		memcpy(&number, p, 4);
		if (h->ordered && number != h->next)
			h->wrong++;
		h->next = number + 1;
		for (i = 4; i < length; i++)
			h->wrong += p[i] != byte_of(number, i);
	}
	if (h->keep && desc != NULL && h->num_kept < 4096) {
		h->kept[h->num_kept++] = desc;
		return WEFT_LANE_KEEP;
	}
	return 0;
}

static void on_event(void *arg, struct weft_lane_ep *lep, enum weft_lane_event ev, int status,
		     const char *text)
{
	struct host *h = arg;

	if (lep->passive)
		h->passive = lep;
	h->up += ev == WEFT_LANE_EV_UP;
	h->down += ev == WEFT_LANE_EV_DOWN;
	h->gone += ev == WEFT_LANE_EV_GONE;
	h->status = status;
	snprintf(h->text, sizeof(h->text), "%s", text);
	if (ev != WEFT_LANE_EV_UP || h->up < 3)
		printf("# event %d, status %d: %s\n", (int)ev, status, text);
}

static bool open_host(struct host *h, const struct weft_lane_driver *driver, const char *device,
		      const char *options)
{
	struct weft_lane_open params = {
		.resource = device,
		.options = options,
		.worker_id = 7,
		.platform = &weft_platform_host,
		.conf = &conf,
		.recv = on_recv,
		.event = on_event,
		.arg = h,
	};
	char why[320] = "";

	memset(h, 0, sizeof(*h));
	h->ordered = true;
	if (driver->open(&params, &h->iface, why, sizeof(why)) < 0) {
		printf("# %s\n", why);
		return false;
	}
	return true;
}

static void close_host(struct host *h)
{
	if (h->iface != NULL)
		h->iface->ops->close(h->iface);
	h->iface = NULL;
}

static bool connect_pair(void)
{
	uint8_t dev_a[WEFT_LANE_ADDR_MAX], dev_b[WEFT_LANE_ADDR_MAX];
	uint8_t ep_a[WEFT_LANE_ADDR_MAX], ep_b[WEFT_LANE_ADDR_MAX];
	const struct weft_lane_ops *ops = a.iface->ops;
	size_t dev = a.iface->attr.dev_addr_len, ep = a.iface->attr.ep_addr_len;
	unsigned int up_a = a.up, up_b = b.up;

	CHECK(ops->ep_create(a.iface, &a, &a.lep) == 0);
	CHECK(ops->ep_create(b.iface, &b, &b.lep) == 0);
	ops->get_address(a.iface, dev_a);
	ops->get_address(b.iface, dev_b);
	ops->ep_get_address(a.lep, ep_a);
	ops->ep_get_address(b.lep, ep_b);
	CHECK(ops->ep_connect_ep(a.lep, dev_b, dev, ep_b, ep) == 0);
	CHECK(ops->ep_connect_ep(b.lep, dev_a, dev, ep_a, ep) == 0);
	CHECK(!a.lep->up);
	WITHIN(10, a.up > up_a && b.up > up_b);
	CHECK(a.lep->up && b.lep->up);
	return true;
}

static bool open_pair(const char *options)
{
	return open_host(&a, &weft_roce_driver, name_a, options) &&
	       open_host(&b, &weft_roce_driver, name_b, options) && connect_pair();
}

/* ------------------------------------------------------------------ operations */

struct op {
	struct weft_lane_comp comp; /* first */
	unsigned int done;
	int status;
};

static void op_done(struct weft_lane_comp *comp, int status)
{
	struct op *op = (struct op *)comp;

	op->done++;
	op->status = status;
}

struct message {
	uint32_t number;
	size_t length;
};

static void fill(uint8_t *dst, uint32_t number, size_t length)
{
	size_t i;

	memcpy(dst, &number, 4);
	for (i = 4; i < length; i++)
		dst[i] = byte_of(number, i);
}

static ssize_t pack(void *dst, size_t max, void *arg)
{
	const struct message *m = arg;

	if (m->length > max)
		return -EMSGSIZE;
	fill(dst, m->number, m->length);
	return (ssize_t)m->length;
}

/* By short or bcopy; turns the world while there is no room. */
static bool send_one(struct host *h, uint32_t number, size_t length)
{
	struct message m = {number, length};
	uint8_t buf[256];
	double end = now_s() + 20;
	ssize_t n;

	for (;;) {
		if (length <= h->iface->attr.max_short) {
			fill(buf, number, length);
			n = h->lep->ops->am_short(h->lep, 5, buf, 4, buf + 4, length - 4);
		} else {
			n = h->lep->ops->am_bcopy(h->lep, 5, pack, &m);
		}
		if (n != -EAGAIN || now_s() > end)
			break;
		turn();
	}
	if (n < 0)
		printf("# message %u of %zu bytes: %zd\n", number, length, n);
	return n >= 0;
}

static uint64_t counter_value;
static const char *counter_name;

static void on_counter(const char *name, uint64_t value, void *arg)
{
	(void)arg;
	if (strcmp(name, counter_name) == 0)
		counter_value = value;
}

static uint64_t counter(struct host *h, const char *name)
{
	counter_name = name;
	counter_value = 0;
	h->iface->ops->counters(h->iface, on_counter, NULL);
	return counter_value;
}

static int shell(const char *fmt, ...)
{
	char cmd[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	return system(cmd);
}

/* What the kernel counts of a device: "hw_counters" of its port. */
static uint64_t kernel_counter(const char *device, const char *name)
{
	char path[160];
	unsigned long long v = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s", device,
		 name);
	f = fopen(path, "r");
	if (f != NULL && fscanf(f, "%llu", &v) != 1)
		v = 0;
	if (f != NULL)
		fclose(f);
	return v;
}

/* Network device below a RoCE device. */
static const char *netdev(const char *device)
{
	static char buf[64];
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/0", device);
	buf[0] = '\0';
	f = fopen(path, "r");
	if (f != NULL && fscanf(f, "%63s", buf) != 1)
		buf[0] = '\0';
	if (f != NULL)
		fclose(f);
	return buf;
}

/* ------------------------------------------------------------------ behaviours */

static bool messages_of_every_size_arrive_once_and_whole(void)
{
	static const size_t sizes[] = {4,    5,    64,   191,  192,  193, 1000,
				       1024, 4095, 4096, 4097, 8191, 8320};
	uint32_t n = 0;
	size_t i, round;

	CHECK(open_pair(""));
	for (round = 0; round < 3; round++)
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++, n++) {
			CHECK(send_one(&a, n, sizes[i]));
			CHECK(send_one(&b, n, sizes[i]));
		}
	WITHIN(10, a.got == n && b.got == n);
	CHECK(a.wrong == 0 && b.wrong == 0);
	CHECK(a.bytes == b.bytes);
	return true;
}

static bool a_message_that_is_too_long_is_refused(void)
{
	struct message m = {0, 8321};
	uint8_t hdr[4] = {0};
	static uint8_t big[300];

	CHECK(open_pair(""));
	CHECK(a.lep->ops->am_bcopy(a.lep, 5, pack, &m) == -EMSGSIZE);
	CHECK(a.lep->ops->am_short(a.lep, 5, hdr, 4, big, sizeof(big)) == -EMSGSIZE);
	CHECK(send_one(&a, 0, 100));
	WITHIN(10, b.got == 1);
	return true;
}

static bool a_flood_both_ways_loses_nothing(void)
{
	uint32_t i, n = 3000;

	CHECK(open_pair(""));
	for (i = 0; i < n; i++) {
		CHECK(send_one(&a, i, 16 + i % 3000));
		CHECK(send_one(&b, i, 8 + i % 100));
	}
	WITHIN(30, a.got == n && b.got == n);
	CHECK(a.wrong == 0 && b.wrong == 0);
	WITHIN(5, a.lep->queued == 0 && b.lep->queued == 0);
	/* The shared queue never ran dry. */
	CHECK(kernel_counter(name_a, "send_rnr_err") == 0 &&
	      kernel_counter(name_b, "send_rnr_err") == 0);
	CHECK(kernel_counter(name_a, "rcvd_rnr_err") == 0 &&
	      kernel_counter(name_b, "rcvd_rnr_err") == 0);
	/* Doorbells were shared. */
	CHECK(counter(&a, "tx.doorbells") < n);
	return true;
}

static bool a_peer_that_does_not_poll_is_slow_and_not_dead(void)
{
	uint8_t buf[64];
	uint32_t n = 0;
	double end;
	int rc;

	CHECK(open_pair(""));
	b.asleep = true;
	do {
		fill(buf, n, 64);
		rc = a.lep->ops->am_short(a.lep, 5, buf, 4, buf + 4, 60);
		n += rc == 0;
	} while (rc == 0);
	CHECK(rc == -EAGAIN && n >= 4);
	CHECK(!a.lep->tx_room);
	for (end = now_s() + 3; now_s() < end;)
		turn();
	CHECK(a.down == 0 && a.lep->queued > 0);
	CHECK(a.lep->ops->am_short(a.lep, 5, buf, 4, buf + 4, 60) == -EAGAIN);
	b.asleep = false;
	WITHIN(10, b.got == n && a.lep->queued == 0);
	CHECK(a.lep->tx_room);
	CHECK(send_one(&a, n, 64));
	WITHIN(10, b.got == n + 1);
	CHECK(b.wrong == 0);
	return true;
}

static bool a_flush_ends_when_the_peer_has_taken_everything(void)
{
	struct op op = {.comp.done = op_done}, again = {.comp.done = op_done};
	double end;

	CHECK(open_pair(""));
	CHECK(a.lep->ops->ep_flush(a.lep, &op.comp) == WEFT_LANE_IDLE);
	b.asleep = true;
	CHECK(send_one(&a, 0, 100));
	CHECK(send_one(&a, 1, 5000));
	CHECK(a.lep->ops->ep_flush(a.lep, &op.comp) == 0);
	CHECK(a.lep->ops->ep_flush(a.lep, &again.comp) == 0);
	/* The hardware has acknowledged by now; that is not enough. */
	for (end = now_s() + 1; now_s() < end;)
		turn();
	CHECK(op.done == 0 && b.got == 0);
	b.asleep = false;
	WITHIN(10, op.done == 1 && again.done == 1);
	CHECK(op.status == 0 && b.got == 2);
	return true;
}

#define ALL_RIGHTS (WEFT_LANE_ACCESS_LOCAL_WRITE | WEFT_LANE_ACCESS_REMOTE)

static bool reg_mem(struct host *end, void *addr, size_t len, unsigned int access,
		    struct weft_mem_lane **reg)
{
	char why[256] = "";
	int rc =
		weft_roce_driver.mem_register(end->iface, addr, len, access, reg, why, sizeof(why));

	if (rc != 0)
		printf("# registering: %s (%d)\n", why, rc);
	return rc == 0;
}

static bool zero_copy_sends_from_pieces_and_waits_for_the_peer(void)
{
	static uint8_t mem[16384];
	struct weft_mem_lane *reg = NULL;
	struct op op = {.comp.done = op_done};
	struct iovec iov[3];
	size_t at = 4, i;
	double end;

	CHECK(open_pair(""));
	CHECK(reg_mem(&a, mem + 3, sizeof(mem) - 3, ALL_RIGHTS, &reg));
	fill(mem + 100, 0, 6000);
	iov[0] = (struct iovec){mem + 104, 1};
	iov[1] = (struct iovec){mem + 105, 2995};
	iov[2] = (struct iovec){mem + 3100, 3000};
	b.asleep = true;
	CHECK(a.lep->ops->am_zcopy(a.lep, 5, mem + 100, at, iov, 3, reg, &op.comp) == 0);
	for (end = now_s() + 0.5; now_s() < end;)
		turn();
	CHECK(op.done == 0);
	b.asleep = false;
	WITHIN(10, op.done == 1);
	CHECK(op.status == 0 && b.got == 1 && b.wrong == 0 && b.last_len == 6000);
	/* Outside of what is registered. */
	iov[0] = (struct iovec){mem, 4};
	CHECK(a.lep->ops->am_zcopy(a.lep, 5, mem, 4, iov, 1, reg, &op.comp) == -EINVAL);
	for (i = 0; i < 200; i++) {
		op.done = 0;
		fill(mem + 100, (uint32_t)i + 1, 6000);
		iov[0] = (struct iovec){mem + 104, 5996};
		CHECK(a.lep->ops->am_zcopy(a.lep, 5, mem + 100, 4, iov, 1, reg, &op.comp) == 0);
		WITHIN(10, op.done == 1);
	}
	CHECK(b.got == 201 && b.wrong == 0);
	weft_roce_driver.mem_deregister(a.iface, reg);
	return true;
}

static bool kept_buffers_do_not_stop_the_lane(void)
{
	uint32_t i, n = 1200;

	conf.rx_bufs = 512;
	CHECK(open_pair(""));
	b.keep = true;
	for (i = 0; i < n; i++)
		CHECK(send_one(&a, i, 200));
	WITHIN(20, b.got == n);
	CHECK(b.wrong == 0);
	/* As many as could be were kept, then it had to copy. */
	CHECK(b.num_kept > 50 && b.num_kept < 512);
	CHECK(counter(&b, "rx.copied") == n - b.num_kept);
	b.keep = false;
	while (b.num_kept > 0)
		b.iface->ops->release(b.iface, b.kept[--b.num_kept]);
	b.keep = true;
	for (i = 0; i < 20; i++)
		CHECK(send_one(&a, n + i, 200));
	WITHIN(10, b.got == n + 20);
	CHECK(b.num_kept == 20);
	CHECK(kernel_counter(name_b, "send_rnr_err") == 0);
	while (b.num_kept > 0)
		b.iface->ops->release(b.iface, b.kept[--b.num_kept]);
	return true;
}

static bool several_queue_pairs_of_a_lane_share_the_load(void)
{
	uint32_t i, n = 400;
	struct op op = {.comp.done = op_done};
	struct roce_lep *lep;

	CHECK(open_host(&a, &weft_roce_driver, name_a, "qps=4"));
	CHECK(open_host(&b, &weft_roce_driver, name_b, "qps=3"));
	CHECK(connect_pair());
	lep = roce_lep_of(a.lep);
	CHECK(lep->num_qps == 3 && roce_lep_of(b.lep)->num_qps == 3);
	b.ordered = a.ordered = false;
	for (i = 0; i < n; i++)
		CHECK(send_one(&a, i, 1000));
	CHECK(a.lep->ops->ep_flush(a.lep, &op.comp) == 0);
	WITHIN(10, op.done == 1);
	CHECK(b.got == n && b.wrong == 0);
	for (i = 0; i < 3; i++)
		CHECK(lep->chans[i]->credit.sent > n / 5);
	return true;
}

/* Memory of both, registered: a reads and writes b's. */
static uint8_t *mem_a, *mem_b;
static struct weft_mem_lane *reg_a, *reg_b;
#define MEM (4u << 20)

static bool open_memory(void)
{
	size_t i;

	mem_a = mmap(NULL, MEM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mem_b = mmap(NULL, MEM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* Not at the beginning of a page: keys must carry that. */
	CHECK(reg_mem(&a, mem_a + 72, MEM - 72, ALL_RIGHTS, &reg_a));
	CHECK(reg_mem(&b, mem_b + 40, MEM - 40, ALL_RIGHTS, &reg_b));
	for (i = 0; i < MEM; i++)
		mem_b[i] = byte_of(9, i);
	return true;
}

static void close_memory(void)
{
	weft_roce_driver.mem_deregister(a.iface, reg_a);
	weft_roce_driver.mem_deregister(b.iface, reg_b);
	munmap(mem_a, MEM);
	munmap(mem_b, MEM);
}

static bool remote_memory_is_read_and_written(void)
{
	static const size_t sizes[] = {1, 8, 4095, 65536, 1 << 20};
	struct op op = {.comp.done = op_done};
	struct iovec iov[2];
	uint64_t key;
	size_t i, k;

	CHECK(open_pair(""));
	CHECK(open_memory());
	key = weft_roce_driver.mem_key(b.iface, reg_b);
	for (k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		size_t n = sizes[k], first = n > 1 ? n / 3 : n;

		memset(mem_a, 0, MEM);
		iov[0] = (struct iovec){mem_a + 100, first};
		iov[1] = (struct iovec){mem_a + 200 + first, n - first};
		op.done = 0;
		CHECK(a.lep->ops->get_zcopy(a.lep, iov, n > 1 ? 2 : 1, reg_a, 1000, key,
					    &op.comp) == 0);
		WITHIN(20, op.done == 1);
		CHECK(op.status == 0);
		for (i = 0; i < n; i++)
			CHECK(mem_a[i < first ? 100 + i : 200 + i] == byte_of(9, 1040 + i));
		CHECK(mem_a[99] == 0 && mem_a[200 + n] == 0);
		/* And back to another place. */
		op.done = 0;
		CHECK(a.lep->ops->put_zcopy(a.lep, iov, n > 1 ? 2 : 1, reg_a, (2 << 20) + 8, key,
					    &op.comp) == 0);
		WITHIN(20, op.done == 1);
		CHECK(op.status == 0);
		for (i = 0; i < n; i++)
			CHECK(mem_b[(2 << 20) + 48 + i] == byte_of(9, 1040 + i));
	}
	CHECK(b.got == 0);
	iov[0] = (struct iovec){mem_a + 100, a.iface->attr.max_get + 1};
	CHECK(a.lep->ops->get_zcopy(a.lep, iov, 1, reg_a, 0, key, &op.comp) == -EMSGSIZE);
	close_memory();
	return true;
}

static bool reads_under_way_are_bounded_and_all_end(void)
{
	static struct op ops[64];
	struct iovec iov;
	uint64_t key;
	unsigned int i, done, refused = 0;
	int rc;

	CHECK(open_pair(""));
	CHECK(open_memory());
	key = weft_roce_driver.mem_key(b.iface, reg_b);
	for (i = 0; i < 64; i++) {
		ops[i] = (struct op){.comp.done = op_done};
		iov = (struct iovec){mem_a + 72 + i * 32768, 32768};
		while ((rc = a.lep->ops->get_zcopy(a.lep, &iov, 1, reg_a, i * 32768, key,
						   &ops[i].comp)) == -EAGAIN) {
			refused++;
			turn();
		}
		CHECK(rc == 0);
	}
	CHECK(refused > 0);
	do {
		turn();
		for (i = done = 0; i < 64; i++)
			done += ops[i].done;
	} while (done < 64);
	CHECK(memcmp(mem_a + 72, mem_b + 40, 64 * 32768) == 0);
	close_memory();
	return true;
}

static bool atomics_return_the_old_value(void)
{
	struct op op = {.comp.done = op_done};
	uint64_t key, old = 0, *word;
	unsigned int i;

	CHECK(open_pair(""));
	CHECK(open_memory());
	CHECK(a.iface->attr.features & WEFT_LANE_F_AMO64);
	key = weft_roce_driver.mem_key(b.iface, reg_b);
	word = (uint64_t *)(mem_b + 40 + 800);
	*word = 1000;
	for (i = 0; i < 100; i++) {
		op.done = 0;
		CHECK(a.lep->ops->amo64(a.lep, WEFT_LANE_AMO_ADD, 3, 0, &old, 800, key, &op.comp) ==
		      0);
		WITHIN(10, op.done == 1);
		CHECK(op.status == 0 && old == 1000 + 3 * i);
	}
	CHECK(*word == 1300);
	op.done = 0;
	CHECK(a.lep->ops->amo64(a.lep, WEFT_LANE_AMO_CSWAP, 7, 1299, &old, 800, key, &op.comp) ==
	      0);
	WITHIN(10, op.done == 1);
	CHECK(old == 1300 && *word == 1300);
	op.done = 0;
	CHECK(a.lep->ops->amo64(a.lep, WEFT_LANE_AMO_CSWAP, 7, 1300, &old, 800, key, &op.comp) ==
	      0);
	WITHIN(10, op.done == 1);
	CHECK(old == 1300 && *word == 7);
	CHECK(a.lep->ops->amo64(a.lep, WEFT_LANE_AMO_ADD, 1, 0, &old, 801, key, &op.comp) ==
	      -EINVAL);
	close_memory();
	return true;
}

static bool a_wrong_key_ends_the_lane_and_says_so(void)
{
	struct op op = {.comp.done = op_done};
	struct iovec iov;

	CHECK(open_pair(""));
	CHECK(open_memory());
	iov = (struct iovec){mem_a + 100, 64};
	CHECK(a.lep->ops->get_zcopy(a.lep, &iov, 1, reg_a, 0,
				    weft_roce_driver.mem_key(b.iface, reg_b) ^ 0x5500,
				    &op.comp) == 0);
	WITHIN(10, op.done == 1 && a.down == 1);
	CHECK(op.status < 0);
	CHECK(strstr(a.text, name_a) != NULL && strstr(a.text, "refused access") != NULL);
	CHECK(a.lep->ops->get_zcopy(a.lep, &iov, 1, reg_a, 0, 0, &op.comp) == a.status);
	close_memory();
	return true;
}

static bool a_deregistered_key_is_dead(void)
{
	struct op op = {.comp.done = op_done};
	struct iovec iov;
	uint64_t key;

	CHECK(open_pair(""));
	CHECK(open_memory());
	iov = (struct iovec){mem_a + 100, 64};
	key = weft_roce_driver.mem_key(b.iface, reg_b);
	weft_roce_driver.mem_deregister(b.iface, reg_b);
	CHECK(a.lep->ops->get_zcopy(a.lep, &iov, 1, reg_a, 0, key, &op.comp) == 0);
	WITHIN(10, op.done == 1);
	CHECK(op.status < 0);
	CHECK(reg_mem(&b, mem_b, MEM, ALL_RIGHTS, &reg_b));
	close_memory();
	return true;
}

static bool a_key_allows_no_more_than_it_was_made_for(void)
{
	static const unsigned int rights[] = {WEFT_LANE_ACCESS_REMOTE_READ,
					      WEFT_LANE_ACCESS_REMOTE_WRITE};
	struct weft_mem_lane *narrow;
	struct iovec iov;
	struct op op;
	uint64_t key;
	size_t i;

	for (i = 0; i < 2; i++) {
		bool reads = rights[i] == WEFT_LANE_ACCESS_REMOTE_READ;

		CHECK(open_pair(""));
		CHECK(open_memory());
		memset(mem_a, 1, 4096);
		memset(mem_b, 2, 4096);
		CHECK(reg_mem(&b, mem_b, 4096, rights[i], &narrow));
		key = weft_roce_driver.mem_key(b.iface, narrow);
		iov = (struct iovec){mem_a + 100, 64};
		op = (struct op){.comp.done = op_done};
		CHECK((reads ? a.lep->ops->get_zcopy : a.lep->ops->put_zcopy)(
			      a.lep, &iov, 1, reg_a, 0, key, &op.comp) == 0);
		WITHIN(10, op.done == 1);
		CHECK(op.status == 0);
		CHECK((reads ? mem_a[100] : mem_b[0]) == (reads ? 2 : 1));
		/* And now what it does not allow: refused, and nothing is touched. */
		op = (struct op){.comp.done = op_done};
		memset(mem_a, 3, 4096);
		CHECK((reads ? a.lep->ops->put_zcopy : a.lep->ops->get_zcopy)(
			      a.lep, &iov, 1, reg_a, 0, key, &op.comp) == 0);
		WITHIN(10, op.done == 1);
		CHECK(op.status == -EACCES || op.status == -EPROTO);
		CHECK(mem_a[100] == 3 && mem_b[0] == (reads ? 2 : 1));
		weft_roce_driver.mem_deregister(b.iface, narrow);
		close_memory();
		close_host(&a);
		close_host(&b);
	}
	return true;
}

static bool read_only_memory_is_registered_for_sending_only(void)
{
	uint8_t *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct weft_mem_lane *reg;
	char why[256] = "";

	CHECK(open_pair(""));
	CHECK(page != MAP_FAILED);
	CHECK(weft_roce_driver.mem_register(a.iface, page, 4096, WEFT_LANE_ACCESS_LOCAL_WRITE, &reg,
					    why, sizeof(why)) < 0);
	CHECK(why[0] != '\0');
	CHECK(reg_mem(&a, page, 4096, WEFT_LANE_ACCESS_REMOTE_READ, &reg));
	weft_roce_driver.mem_deregister(a.iface, reg);
	munmap(page, 4096);
	return true;
}

static bool closing_tells_the_peer(void)
{
	struct op op = {.comp.done = op_done}, late = {.comp.done = op_done};

	CHECK(open_pair(""));
	CHECK(send_one(&a, 0, 100));
	CHECK(a.lep->ops->ep_flush(a.lep, &op.comp) == 0);
	WITHIN(10, op.done == 1);
	CHECK(send_one(&b, 0, 500));
	CHECK(b.lep->ops->ep_flush(b.lep, &late.comp) == 0);
	/* a has not taken b's message when it closes. */
	a.lep->ops->ep_destroy(a.lep);
	a.lep = NULL;
	WITHIN(10, b.gone == 1);
	CHECK(late.done == 1 && late.status == -ECONNRESET && a.got == 0);
	CHECK(send_one(&b, 1, 100) == false);
	b.lep->ops->ep_destroy(b.lep);
	CHECK(a.down == 0 && b.down == 0);
	return true;
}

static bool what_was_sent_before_closing_arrives(void)
{
	uint32_t i;

	CHECK(open_pair(""));
	for (i = 0; i < 40; i++)
		CHECK(send_one(&a, i, 3000));
	a.lep->ops->ep_destroy(a.lep);
	WITHIN(10, b.gone == 1);
	CHECK(b.got == 40 && b.wrong == 0);
	return true;
}

static bool an_attempt_that_the_peer_gave_up_ends_soon_and_nothing_is_sent_twice(void)
{
	uint8_t dev[WEFT_LANE_ADDR_MAX], ep[WEFT_LANE_ADDR_MAX];
	const struct weft_lane_ops *ops;
	uint64_t retries, exceeded;
	double begin;

	conf.keepalive_ns = 20000000000ull;
	CHECK(open_host(&a, &weft_roce_driver, name_a, ""));
	CHECK(open_host(&b, &weft_roce_driver, name_b, ""));
	retries = kernel_counter(name_a, "completer_retry_err");
	exceeded = kernel_counter(name_a, "retry_exceeded_err");
	ops = a.iface->ops;
	CHECK(ops->ep_create(a.iface, &a, &a.lep) == 0);
	CHECK(ops->ep_create(b.iface, &b, &b.lep) == 0);
	ops->get_address(b.iface, dev);
	ops->ep_get_address(b.lep, ep);
	CHECK(ops->ep_connect_ep(a.lep, dev, a.iface->attr.dev_addr_len, ep,
				 a.iface->attr.ep_addr_len) == 0);
	ops->ep_destroy(b.lep);
	WITHIN(10, LIST_EMPTY(&roce_iface_of(b.iface)->dying));
	WITHIN(10, a.up == 1);
	/* Nobody has asked it for anything yet. */
	begin = now_s();
	WITHIN(10, now_s() - begin > 0.05);
	CHECK(counter(&a, "tx.counts") == 0);
	ops->ep_destroy(a.lep);
	a.lep = NULL;
	WITHIN(10, LIST_EMPTY(&roce_iface_of(a.iface)->dying));
	/* Each time that the machine stops for a quarter of a second in here makes one retry; six were the rule. */
	CHECK(kernel_counter(name_a, "completer_retry_err") - retries <= 3);
	CHECK(kernel_counter(name_a, "retry_exceeded_err") == exceeded);
	return true;
}

static bool a_lane_can_be_destroyed_in_any_state(void)
{
	uint8_t dev[WEFT_LANE_ADDR_MAX], ep[WEFT_LANE_ADDR_MAX];
	struct roce_iface *r;
	struct weft_lane_ep *lep;

	CHECK(open_pair(""));
	r = roce_iface_of(a.iface);
	CHECK(a.iface->ops->ep_create(a.iface, NULL, &lep) == 0);
	lep->ops->ep_destroy(lep);
	CHECK(a.iface->ops->ep_create(a.iface, NULL, &lep) == 0);
	b.iface->ops->get_address(b.iface, dev);
	b.lep->ops->ep_get_address(b.lep, ep);
	CHECK(lep->ops->ep_connect_ep(lep, dev, b.iface->attr.dev_addr_len, ep,
				      b.iface->attr.ep_addr_len) == 0);
	lep->ops->ep_destroy(lep);
	WITHIN(10, LIST_EMPTY(&r->dying));
	/* Damaged addresses. */
	CHECK(a.iface->ops->ep_create(a.iface, NULL, &lep) == 0);
	CHECK(lep->ops->ep_connect_ep(lep, dev, 31, ep, b.iface->attr.ep_addr_len) == -EINVAL);
	ep[1] = 0;
	CHECK(lep->ops->ep_connect_ep(lep, dev, b.iface->attr.dev_addr_len, ep,
				      b.iface->attr.ep_addr_len) == -EINVAL);
	lep->ops->ep_destroy(lep);
	CHECK(send_one(&a, 0, 100));
	WITHIN(10, b.got == 1);
	return true;
}

/* By hand, past the driver: what a hostile peer's device would send. */
static bool post_raw(struct weft_lane_ep *base, enum ibv_wr_opcode opcode, uint32_t imm,
		     unsigned int times)
{
	struct roce_chan *chan = roce_lep_of(base)->chans[0];
	struct ibv_send_wr wr = {.opcode = opcode}, *bad;
	struct roce_slot *slot = &chan->slots[0];

	for (; times > 0; times--) {
		slot->at = chan->sq.head++;
		slot->kind = ROCE_SLOT_WORD;
		chan->sq.posted = chan->sq.head;
		wr.wr_id = (uintptr_t)slot;
		wr.imm_data = htobe32(imm);
		if (ibv_post_send(chan->qp, &wr, &bad) != 0)
			return false;
	}
	return true;
}

static bool hostile_immediate_data_is_dropped_counted_and_ends_the_lane(void)
{
	CHECK(open_pair(""));
	CHECK(post_raw(a.lep, IBV_WR_SEND, 0, 1)); /* none at all */
	WITHIN(10, b.down == 1);
	CHECK(b.status == -EPROTO && counter(&b, "drop.bad_immediate") == 1 && b.got == 0);
	CHECK(strstr(b.text, "breaks the protocol") != NULL);
	close_host(&a);
	close_host(&b);

	CHECK(open_pair(""));
	CHECK(post_raw(a.lep, IBV_WR_SEND_WITH_IMM, weft_roce_imm(0, 5, 1000),
		       1)); /* acks of nothing */
	WITHIN(10, b.down == 1);
	CHECK(b.status == -EPROTO && counter(&b, "drop.bad_count") == 1 && b.got == 0);
	close_host(&a);
	close_host(&b);

	CHECK(open_pair(""));
	CHECK(post_raw(a.lep, IBV_WR_SEND_WITH_IMM, weft_roce_imm(WEFT_ROCE_IMM_CONTROL, 9, 0), 1));
	WITHIN(10, b.down == 1);
	CHECK(b.status == -EPROTO && counter(&b, "drop.bad_immediate") == 1);
	close_host(&a);
	close_host(&b);

	/* Beyond its window. */
	CHECK(open_pair("window=4"));
	b.asleep = true;
	CHECK(post_raw(a.lep, IBV_WR_SEND_WITH_IMM, weft_roce_imm(0, 5, 0), 20));
	usleep(300000);
	b.asleep = false;
	WITHIN(10, b.down == 1);
	CHECK(b.status == -EPROTO && counter(&b, "drop.bad_immediate") == 1 && b.got == 4);
	return true;
}

static bool a_count_written_by_a_liar_ends_the_lane(void)
{
	CHECK(open_pair(""));
	b.asleep = true;
	CHECK(send_one(&a, 0, 100));
	roce_lep_of(a.lep)->words[0] = weft_roce_word(5000);
	WITHIN(10, a.down == 1);
	CHECK(a.status == -EPROTO && counter(&a, "drop.bad_count") == 1);
	close_host(&a);
	b.asleep = false;
	close_host(&b);
	/* Half a word is no word. */
	CHECK(open_pair(""));
	b.asleep = true;
	CHECK(send_one(&a, 0, 100));
	roce_lep_of(a.lep)->words[0].processed = weft_put32(1);
	turn();
	CHECK(a.down == 0 && counter(&a, "rx.torn_count") > 0 && a.lep->queued == 100);
	b.asleep = false;
	WITHIN(10, a.lep->queued == 0);
	return true;
}

static bool a_peer_that_vanishes_is_noticed_in_bounded_time(void)
{
	struct op op = {.comp.done = op_done};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	double begin;

	CHECK(open_host(&a, &weft_roce_driver, name_a, "timeout=14,retry=3"));
	CHECK(open_host(&b, &weft_roce_driver, name_b, ""));
	CHECK(connect_pair());
	/* Its queue pair answers nobody any more. */
	CHECK(ibv_modify_qp(roce_lep_of(b.lep)->chans[0]->qp, &attr, IBV_QP_STATE) == 0);
	CHECK(send_one(&a, 0, 100));
	CHECK(a.lep->ops->ep_flush(a.lep, &op.comp) == 0);
	begin = now_s();
	WITHIN(20, a.down == 1 && op.done == 1);
	CHECK(now_s() - begin < 10);
	CHECK(a.status == -ETIMEDOUT && op.status == -ETIMEDOUT);
	CHECK(strstr(a.text, "gave no answer for") != NULL && strstr(a.text, "retry") != NULL);
	return true;
}

static bool an_idle_peer_that_vanished_is_noticed_by_keepalive(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	conf.keepalive_ns = 500000000;
	CHECK(open_host(&a, &weft_roce_driver, name_a, "timeout=14,retry=3"));
	CHECK(open_host(&b, &weft_roce_driver, name_b, ""));
	CHECK(connect_pair());
	CHECK(ibv_modify_qp(roce_lep_of(b.lep)->chans[0]->qp, &attr, IBV_QP_STATE) == 0);
	WITHIN(20, a.down == 1);
	return true;
}

static bool own_link_going_down_ends_lanes_with_a_sentence(void)
{
	struct op op = {.comp.done = op_done};
	char dev[64];
	bool ok;

	CHECK(open_pair("timeout=14,retry=3"));
	snprintf(dev, sizeof(dev), "%s", netdev(name_a));
	CHECK(send_one(&a, 0, 100));
	WITHIN(10, b.got == 1);
	CHECK(shell("ip link set %s down", dev) == 0);
	send_one(&a, 1, 5000);
	a.lep->ops->ep_flush(a.lep, &op.comp);
	WITHIN(20, a.down == 1 && b.down == 1);
	ok = op.done == 1 && op.status < 0;
	CHECK(shell("ip link set %s up", dev) == 0);
	CHECK(ok);
	CHECK(strstr(a.text, name_a) != NULL && strstr(b.text, name_b) != NULL);
	return true;
}

static bool an_address_that_is_removed_ends_lanes_with_a_sentence(void)
{
	char dev[64];

	CHECK(open_pair("timeout=14,retry=3"));
	snprintf(dev, sizeof(dev), "%s", netdev(name_a));
	CHECK(shell("ip addr del 10.0.0.1/24 dev %s", dev) == 0);
	WITHIN(20, a.down == 1);
	CHECK(shell("ip addr add 10.0.0.1/24 dev %s", dev) == 0);
	CHECK(strstr(a.text, "10.0.0.1") != NULL && strstr(a.text, "removed") != NULL);
	sleep(1); /* the kernel fills its table in its own time */
	return true;
}

static struct weft_lane_ep *many[300][2];

/* @p n pairs at the same time, and a message over each. */
static bool connect_many(unsigned int n)
{
	uint8_t dev[2][WEFT_LANE_ADDR_MAX], ep[2][WEFT_LANE_ADDR_MAX];
	const struct weft_lane_ops *ops = a.iface->ops;
	size_t dev_len = a.iface->attr.dev_addr_len, ep_len = a.iface->attr.ep_addr_len;
	unsigned int i, up_a = a.up + n, up_b = b.up + n;
	uint64_t got = b.got + n;
	uint8_t buf[64];

	ops->get_address(a.iface, dev[0]);
	ops->get_address(b.iface, dev[1]);
	for (i = 0; i < n; i++) {
		CHECK(ops->ep_create(a.iface, NULL, &many[i][0]) == 0);
		CHECK(ops->ep_create(b.iface, NULL, &many[i][1]) == 0);
		ops->ep_get_address(many[i][0], ep[0]);
		ops->ep_get_address(many[i][1], ep[1]);
		CHECK(ops->ep_connect_ep(many[i][0], dev[1], dev_len, ep[1], ep_len) == 0);
		CHECK(ops->ep_connect_ep(many[i][1], dev[0], dev_len, ep[0], ep_len) == 0);
	}
	WITHIN(30, a.up == up_a && b.up == up_b);
	a.ordered = b.ordered = false;
	for (i = 0; i < n; i++) {
		fill(buf, i, 64);
		CHECK(ops->am_short(many[i][0], 5, buf, 4, buf + 4, 60) == 0);
	}
	WITHIN(20, b.got == got);
	return true;
}

static bool many_peers_connect_at_once_and_none_is_refused(void)
{
	CHECK(open_host(&a, &weft_roce_driver, name_a, ""));
	CHECK(open_host(&b, &weft_roce_driver, name_b, ""));
	CHECK(connect_many(300));
	CHECK(b.wrong == 0);
	return true;
}

/* What `rdma resource` lists of @p what with @p words in the line. */
static int resources(const char *what, const char *words)
{
	char command[96];
	int n = -1;
	FILE *f;

	snprintf(command, sizeof(command), "rdma resource show %s | grep -c '%s'", what, words);
	f = popen(command, "r");
	if (f == NULL || fscanf(f, "%d", &n) != 1)
		n = -1;
	if (f != NULL)
		pclose(f);
	return n;
}

/* 50 connections, made and destroyed at both ends. */
static bool connect_and_destroy(void)
{
	uint64_t got = b.got + 50;
	unsigned int k;

	CHECK(connect_many(50));
	CHECK(b.got == got && b.wrong == 0);
	for (k = 0; k < 50; k++) {
		many[k][0]->ops->ep_destroy(many[k][0]);
		many[k][1]->ops->ep_destroy(many[k][1]);
	}
	WITHIN(10, LIST_EMPTY(&roce_iface_of(a.iface)->dying) &&
			   LIST_EMPTY(&roce_iface_of(b.iface)->dying));
	return true;
}

static bool a_thousand_connections_leave_nothing_behind(void)
{
	uint64_t exceeded = kernel_counter(name_a, "retry_exceeded_err") +
			    kernel_counter(name_b, "retry_exceeded_err");
	struct roce_iface *ra, *rb;
	unsigned int i;

	CHECK(open_host(&a, &weft_roce_driver, name_a, ""));
	CHECK(open_host(&b, &weft_roce_driver, name_b, ""));
	ra = roce_iface_of(a.iface);
	rb = roce_iface_of(b.iface);
	for (i = 0; i < 20; i++)
		CHECK(connect_and_destroy());
	CHECK(ra->promised == 0 && rb->promised == 0);
	CHECK(ra->ring_pool.in_use == 0 && ra->tx_pool.in_use == 0);
	CHECK(ra->tx_room == rb->tx_room);
	CHECK(resources("qp", "type RC") == 0);
	/* Neither end left before the other one's last word was acknowledged. */
	CHECK(kernel_counter(name_a, "retry_exceeded_err") +
		      kernel_counter(name_b, "retry_exceeded_err") ==
	      exceeded);
	CHECK(a.down == 0 && b.down == 0);
	return true;
}

/* ------------------------------------------------------------------ the control channel */

static bool open_ud(void)
{
	return open_host(&a, &weft_roce_ud_driver, name_a, "") &&
	       open_host(&b, &weft_roce_ud_driver, name_b, "");
}

static bool ud_connect(void)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];
	unsigned int up = a.up;

	b.iface->ops->get_address(b.iface, addr);
	CHECK(a.iface->ops->ep_connect(a.iface, addr, a.iface->attr.dev_addr_len, &a, &a.lep) == 0);
	CHECK(a.lep->ops->am_short(a.lep, 1, "x", 1, NULL, 0) == -EAGAIN);
	WITHIN(10, a.up == up + 1);
	return true;
}

static bool the_control_channel_carries_messages_both_ways(void)
{
	char text[64];

	CHECK(open_ud());
	CHECK(ud_connect());
	CHECK(a.lep->ops->am_short(a.lep, 1, "hello", 5, " world", 6) == 0);
	WITHIN(10, b.got == 1);
	CHECK(b.up == 1 && b.passive != NULL && b.passive->passive && b.last_len == 11);
	CHECK(memcmp(b.last, "hello world", 11) == 0);
	CHECK(b.passive->ops->am_short(b.passive, 1, "answer", 6, NULL, 0) == 0);
	WITHIN(10, a.got == 1);
	CHECK(a.last_len == 6 && a.passive == NULL);
	b.passive->ops->ep_print(b.passive, text, sizeof(text));
	CHECK(strstr(text, "10.0.0.1") != NULL);
	/* The longest. */
	CHECK(a.lep->ops->am_short(a.lep, 1, mem_a != NULL ? "" : "", 0, b.last, a.lep->max_msg) ==
	      0);
	WITHIN(10, b.got == 2);
	CHECK(b.last_len == a.lep->max_msg);
	CHECK(a.lep->ops->am_short(a.lep, 1, "", 0, b.last, a.lep->max_msg + 1) == -EMSGSIZE);
	a.lep->ops->ep_destroy(a.lep);
	WITHIN(10, b.gone == 1);
	b.passive->ops->ep_destroy(b.passive);
	return true;
}

static bool strangers_and_garbage_on_the_control_channel_are_dropped_and_counted(void)
{
	struct weft_roce_addr addr;
	unsigned int i;
	uint64_t before;

	CHECK(open_ud());
	/* A wrong key: the device drops it. */
	b.iface->ops->get_address(b.iface, &addr);
	addr.qkey = weft_put32(weft_get32(addr.qkey) ^ 1);
	CHECK(a.iface->ops->ep_connect(a.iface, &addr, sizeof(addr), &a, &a.lep) == 0);
	WITHIN(10, a.up == 1);
	for (i = 0; i < 5; i++)
		CHECK(a.lep->ops->am_short(a.lep, 1, "hello", 5, NULL, 0) == 0);
	for (double end = now_s() + 1; now_s() < end;)
		turn();
	CHECK(b.got == 0 && b.up == 0);
	/* The right key, but an id that does not exist. */
	CHECK(ud_connect());
	CHECK(a.lep->ops->am_short(a.lep, 99, "hello", 5, NULL, 0) == 0);
	before = counter(&b, "drop.malformed");
	WITHIN(10,
	       counter(&b, "drop.malformed") == before + 1 || counter(&b, "drop.malformed") == 1);
	CHECK(b.got == 0 && b.up == 0);
	return true;
}

static bool nobody_at_the_address_is_an_error_after_the_kernels_patience(void)
{
	struct weft_roce_addr addr;
	double begin = now_s(), longest = 0, t;

	CHECK(open_ud());
	b.iface->ops->get_address(b.iface, &addr);
	addr.gid[15] = 77;
	CHECK(a.iface->ops->ep_connect(a.iface, &addr, sizeof(addr), &a, &a.lep) == 0);
	while (a.down == 0 && now_s() < begin + 20) {
		t = now_s();
		turn_host(&a);
		t = now_s() - t;
		longest = t > longest ? t : longest;
	}
	CHECK(a.down == 1 && a.status == -EHOSTUNREACH);
	CHECK(strstr(a.text, "10.0.0.77") != NULL && strstr(a.text, "address resolution") != NULL);
	/* Nobody slept meanwhile: the kernel takes a second and more. */
	CHECK(longest < 0.5);
	return true;
}

/* ------------------------------------------------------------------ opening */

static bool refused(const char *device, const char *options, const char *words)
{
	struct weft_lane_open params = {
		.resource = device,
		.options = options,
		.worker_id = 7,
		.platform = &weft_platform_host,
		.conf = &conf,
		.recv = on_recv,
		.event = on_event,
		.arg = &a,
	};
	struct weft_lane_iface *iface = NULL;
	char why[320] = "";
	int rc = weft_roce_driver.open(&params, &iface, why, sizeof(why));

	printf("# %s: %s\n", device, why);
	return rc < 0 && iface == NULL && strstr(why, words) != NULL;
}

static bool what_can_not_be_opened_says_why(void)
{
	CHECK(refused("rxe99", "", "there is no RDMA device 'rxe99'; there are"));
	CHECK(refused(name_a, "gid=200", "no GID with index 200; there are"));
	CHECK(refused(name_a, "subnet=172.16.0.0/12", "no RoCE v2 GID in the subnet 172.16.0.0"));
	CHECK(refused(name_a, "retry=7", "a number from 0 to 6"));
	CHECK(refused(name_a, "mtu=1500", "one of 256, 512, 1024"));
	CHECK(refused("rxe0a:9", "", "no port 9"));
	return true;
}

static bool peers_with_different_path_mtus_use_the_smaller(void)
{
	char text[160];

	CHECK(open_host(&a, &weft_roce_driver, name_a, "mtu=1024"));
	CHECK(open_host(&b, &weft_roce_driver, name_b, "seg=2048"));
	CHECK(connect_pair());
	a.lep->ops->ep_print(a.lep, text, sizeof(text));
	CHECK(strstr(text, "path MTU 1024") != NULL);
	b.lep->ops->ep_print(b.lep, text, sizeof(text));
	CHECK(strstr(text, "path MTU 1024") != NULL);
	CHECK(a.lep->max_msg == 2048 && b.lep->max_msg == 2048);
	CHECK(send_one(&a, 0, 2048) && send_one(&b, 0, 2048));
	WITHIN(10, a.got == 1 && b.got == 1);
	CHECK(a.wrong == 0 && b.wrong == 0);
	return true;
}

static bool an_address_without_a_route_is_not_reachable(void)
{
	struct weft_roce_addr addr;
	char why[160] = "";

	CHECK(open_pair(""));
	b.iface->ops->get_address(b.iface, &addr);
	CHECK(a.iface->ops->is_reachable(a.iface, &addr, sizeof(addr), why, sizeof(why)) == 0);
	addr.gid[12] = 192;
	CHECK(a.iface->ops->is_reachable(a.iface, &addr, sizeof(addr), why, sizeof(why)) < 0);
	printf("# %s\n", why);
	CHECK(strstr(why, "no route") != NULL);
	memset(addr.gid, 0, 16);
	addr.gid[0] = 0xfe;
	addr.gid[1] = 0x80;
	addr.gid[15] = 1;
	CHECK(a.iface->ops->is_reachable(a.iface, &addr, sizeof(addr), why, sizeof(why)) < 0);
	CHECK(strstr(why, "IPv6") != NULL);
	return true;
}

static const struct {
	const char *name;
	bool (*run)(void);
} behaviours[] = {
#define B(f)          \
	{             \
#f, f \
	}
	B(what_can_not_be_opened_says_why),
	B(messages_of_every_size_arrive_once_and_whole),
	B(a_message_that_is_too_long_is_refused),
	B(a_flood_both_ways_loses_nothing),
	B(a_peer_that_does_not_poll_is_slow_and_not_dead),
	B(a_flush_ends_when_the_peer_has_taken_everything),
	B(zero_copy_sends_from_pieces_and_waits_for_the_peer),
	B(kept_buffers_do_not_stop_the_lane),
	B(several_queue_pairs_of_a_lane_share_the_load),
	B(remote_memory_is_read_and_written),
	B(reads_under_way_are_bounded_and_all_end),
	B(atomics_return_the_old_value),
	B(a_wrong_key_ends_the_lane_and_says_so),
	B(a_deregistered_key_is_dead),
	B(a_key_allows_no_more_than_it_was_made_for),
	B(read_only_memory_is_registered_for_sending_only),
	B(peers_with_different_path_mtus_use_the_smaller),
	B(an_address_without_a_route_is_not_reachable),
	B(closing_tells_the_peer),
	B(what_was_sent_before_closing_arrives),
	B(an_attempt_that_the_peer_gave_up_ends_soon_and_nothing_is_sent_twice),
	B(a_lane_can_be_destroyed_in_any_state),
	B(hostile_immediate_data_is_dropped_counted_and_ends_the_lane),
	B(a_count_written_by_a_liar_ends_the_lane),
	B(a_peer_that_vanishes_is_noticed_in_bounded_time),
	B(an_idle_peer_that_vanished_is_noticed_by_keepalive),
	B(the_control_channel_carries_messages_both_ways),
	B(strangers_and_garbage_on_the_control_channel_are_dropped_and_counted),
	B(nobody_at_the_address_is_an_error_after_the_kernels_patience),
	B(many_peers_connect_at_once_and_none_is_refused),
	B(a_thousand_connections_leave_nothing_behind),
	B(an_address_that_is_removed_ends_lanes_with_a_sentence),
	B(own_link_going_down_ends_lanes_with_a_sentence),
};

int main(int argc, char **argv)
{
	unsigned int i, n = 0, failed = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: roce_lane DEVICE_A DEVICE_B [PATTERN]\n");
		return 2;
	}
	name_a = argv[1];
	name_b = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < sizeof(behaviours) / sizeof(behaviours[0]); i++) {
		double begin = now_s();
		bool ok;

		if (argc > 3 && strstr(behaviours[i].name, argv[3]) == NULL)
			continue;
		conf = (struct weft_lane_conf){.zcopy = true, .peer_timeout_ns = 30000000000ull};
		ok = behaviours[i].run();
		close_host(&a);
		close_host(&b);
		failed += !ok;
		printf("%sok %u - %s\n# %.1f s\n", ok ? "" : "not ", ++n, behaviours[i].name,
		       now_s() - begin);
	}
	return failed ? 1 : 0;
}
