/* SPDX-License-Identifier: BSD-3-Clause */
/* Native reads and writes: whole, inside what is registered, with the rights that it has. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/host.h"
#include "unit/shm/shm_end.h"

#define SIZE (1u << 20)
#define READ WEFT_LANE_ACCESS_REMOTE_READ
#define WRITE WEFT_LANE_ACCESS_REMOTE_WRITE

struct wait {
	struct weft_lane_comp comp; /* first */
	unsigned int done;
	int status;
};

static struct end a, b;
static uint8_t *ours, *theirs;

static void on_done(struct weft_lane_comp *comp, int status)
{
	struct wait *w = (struct wait *)comp;

	w->done++;
	w->status = status;
}

static void fill(uint8_t *p, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 5 + (i >> 8) * 3 + seed);
}

static uint64_t register_it(struct end *e, void *at, size_t len, unsigned int access,
			    struct weft_mem_lane **mem)
{
	char why[128];

	assert_int_equal(
		weft_shm_driver.mem_register(e->iface, at, len, access, mem, why, sizeof(why)), 0);
	return weft_shm_driver.mem_key(e->iface, *mem);
}

/* @return the status of the operation, with which it ends inside progress() */
static int transfer(uint8_t *at, size_t len, uint64_t offset, uint64_t key)
{
	struct iovec iov[3] = {{at, len / 3}, {at + len / 3, 0}, {at + len / 3, len - len / 3}};
	struct wait w = {.comp = {on_done}};
	struct weft_lane_ep *lane_ep = a.lane_ep;

	assert_int_equal(lane_ep->ops->get_zcopy(lane_ep, iov, 3, NULL, offset, key, &w.comp), 0);
	assert_int_equal(w.done, 0);
	end_run(&a, NULL, &w.done, 1, 10);
	return w.status;
}

static int setup(void **state)
{
	(void)state;
	end_open(&a, (uint64_t)getpid() << 32 | 1);
	end_open(&b, (uint64_t)getpid() << 32 | 2);
	end_connect(&a, &b);
	ours = malloc(SIZE);
	theirs = malloc(SIZE);
	assert_true(ours && theirs);
	fill(theirs, SIZE, 1);
	fill(ours, SIZE, 2);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	end_close(&a);
	end_close(&b);
	free(ours);
	free(theirs);
	return 0;
}

/* Where the system forbids it there is nothing to be tried. */
static void need_native(void)
{
	if (!(a.iface->attr.features & WEFT_LANE_F_GET) || a.lane_ep->lacks) {
		print_message("left out: the system does not let processes read each other\n");
		skip();
	}
}

static void all_bytes_get_there(void **state)
{
	static const size_t lengths[] = {0, 1, 8, 4097, 262144, 262145, SIZE - 77};
	struct weft_mem_lane *mem;
	uint64_t key;

	(void)state;
	need_native();
	key = register_it(&b, theirs, SIZE, READ | WRITE, &mem);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		fill(ours, SIZE, 2);
		assert_int_equal(transfer(ours, lengths[i], 77, key), 0);
		assert_memory_equal(ours, theirs + 77, lengths[i]);
		assert_int_equal(theirs[0], 1);
	}
	assert_true(end_counter(&a, "native.get_bytes") > SIZE);
	/* In bytes per second: the rate of a copy, on any machine. */
	assert_true(a.iface->attr.get_bandwidth > 1e7 && a.iface->attr.get_bandwidth < 1e13);
	weft_shm_driver.mem_deregister(b.iface, mem);
}

/*
 * Many at once are one call of the kernel's: each ends for itself, with what became of it, in the
 * order of the posts. Those in the middle fail by their key, by their bounds, and by memory that is
 * gone.
 */
/* @behaviour Y31 */
static void each_of_many_ends_for_itself(void **state)
{
	enum { NUM = 12, LEN = 5000 };
	static const int want[NUM] = {
		[3] = -EKEYREJECTED, [4] = -ERANGE, [7] = -EFAULT, [8] = -EFAULT};
	uint8_t *gone = mmap(NULL, LEN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct weft_lane_ep *lane_ep = a.lane_ep;
	struct weft_mem_lane *mem, *of_gone;
	struct wait w[NUM];
	uint64_t key, key_gone;

	(void)state;
	need_native();
	assert_ptr_not_equal(gone, MAP_FAILED);
	key = register_it(&b, theirs, SIZE, READ, &mem);
	key_gone = register_it(&b, gone, LEN, READ, &of_gone);
	munmap(gone, LEN);
	for (unsigned int i = 0; i < NUM; i++) {
		/* One has no bytes, and each has several pieces, of which one is empty. */
		size_t len = i == 5 ? 0 : LEN;
		uint8_t *at = ours + i * LEN;
		const struct iovec iov[] = {{at, len / 2}, {at, 0}, {at + len / 2, len - len / 2}};

		w[i] = (struct wait){.comp = {on_done}};
		assert_int_equal(lane_ep->ops->get_zcopy(lane_ep, iov, 3, NULL,
							 want[i] == -ERANGE   ? SIZE - 1
							 : want[i] == -EFAULT ? 0
									      : i * LEN,
							 want[i] == -EKEYREJECTED ? key ^ 1ull << 40
							 : want[i] == -EFAULT     ? key_gone
										  : key,
							 &w[i].comp),
				 0);
	}
	end_run(&a, NULL, &w[NUM - 1].done, 1, 10);
	for (unsigned int i = 0; i < NUM; i++) {
		assert_int_equal(w[i].done, 1);
		assert_int_equal(w[i].status, want[i]);
		if (want[i] == 0 && i != 5)
			assert_memory_equal(ours + i * LEN, theirs + i * LEN, LEN);
	}
	assert_int_equal(end_counter(&a, "native.failed"), 4);
	assert_int_equal(end_counter(&a, "native.get_bytes"), 7 * LEN);
	weft_shm_driver.mem_deregister(b.iface, mem);
	weft_shm_driver.mem_deregister(b.iface, of_gone);
}

struct ender {
	struct weft_lane_comp comp; /* first */
	unsigned int done;
};

static void on_done_destroy(struct weft_lane_comp *comp, int status)
{
	struct ender *e = (struct ender *)comp;

	(void)status;
	if (e->done++ == 0)
		a.lane_ep->ops->ep_destroy(a.lane_ep);
}

/* The first one's callback ends the lane, and so all others. */
static void a_callback_may_end_the_lane(void **state)
{
	struct ender first = {.comp = {on_done_destroy}};
	struct wait rest = {.comp = {on_done}};
	const struct iovec iov = {ours, 8};
	struct weft_lane_ep *lane_ep = a.lane_ep;
	struct weft_mem_lane *mem;
	uint64_t key;

	(void)state;
	need_native();
	key = register_it(&b, theirs, SIZE, READ, &mem);
	assert_int_equal(lane_ep->ops->get_zcopy(lane_ep, &iov, 1, NULL, 0, key, &first.comp), 0);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(
			lane_ep->ops->get_zcopy(lane_ep, &iov, 1, NULL, 0, key, &rest.comp), 0);
	end_run(&a, NULL, &first.done, 1, 10);
	assert_int_equal(rest.done, 5);
	assert_int_equal(rest.status, -ECANCELED);
	weft_shm_driver.mem_deregister(b.iface, mem);
}

/*
 * @behaviour R82: Native reads and writes stay inside registered memory, and never access a process
 * that has the id of a dead one
 */
static void bounds_and_rights_hold(void **state)
{
	struct weft_mem_lane *mem, *other;
	uint64_t key, next;

	(void)state;
	need_native();
	key = register_it(&b, theirs, 1000, READ, &mem);
	assert_int_equal(transfer(ours, 1000, 0, key), 0);
	assert_int_equal(transfer(ours, 1000, 1, key), -ERANGE);
	assert_int_equal(transfer(ours, 1, 1000, key), -ERANGE);
	assert_int_equal(transfer(ours, 8, UINT64_MAX - 3, key), -ERANGE);
	assert_int_equal(transfer(ours, 8, 0, key ^ 1ull << 40), -EKEYREJECTED);
	assert_int_equal(transfer(ours, 8, 0, key ^ 1), -EKEYREJECTED);
	assert_int_equal(transfer(ours, 8, 0, 0), -EKEYREJECTED);
	assert_int_equal(theirs[0], 1);
	/* Given back, and the slot another's: the key is for neither. */
	weft_shm_driver.mem_deregister(b.iface, mem);
	assert_int_equal(transfer(ours, 8, 0, key), -EKEYREJECTED);
	next = register_it(&b, theirs, 1000, READ | WRITE, &other);
	assert_int_equal(next % SHM_REG_SLOTS, key % SHM_REG_SLOTS);
	assert_int_equal(transfer(ours, 8, 0, key), -EKEYREJECTED);
	assert_int_equal(transfer(ours, 8, 0, next), 0);
	weft_shm_driver.mem_deregister(b.iface, other);
	assert_true(end_counter(&a, "native.failed") >= 7);
}

/* @behaviour R82 */
static void memory_that_is_gone_ends_the_operation(void **state)
{
	struct weft_mem_lane *mem;
	uint8_t *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t key;

	(void)state;
	need_native();
	assert_ptr_not_equal(p, MAP_FAILED);
	key = register_it(&b, p, SIZE, READ | WRITE, &mem);
	munmap(p + SIZE / 2, SIZE / 2);
	assert_int_equal(transfer(ours, SIZE, 0, key), -EFAULT);
	munmap(p, SIZE / 2);
	assert_int_equal(transfer(ours, 8, 0, key), -EFAULT);
	assert_int_equal(a.downs, 0);
	weft_shm_driver.mem_deregister(b.iface, mem);
}

static void what_is_under_way_is_bounded_and_ends_with_the_lane(void **state)
{
	struct wait w = {.comp = {on_done}};
	const struct iovec iov = {ours, 8};
	struct weft_lane_ep *lane_ep = a.lane_ep;
	struct weft_mem_lane *mem;
	uint64_t key, due = UINT64_MAX;
	unsigned int n = 0;

	(void)state;
	need_native();
	key = register_it(&b, theirs, SIZE, READ, &mem);
	while (lane_ep->ops->get_zcopy(lane_ep, &iov, 1, NULL, 0, key, &w.comp) == 0)
		n++;
	assert_int_equal(n, SHM_NATIVES);
	/* No end sleeps while they are to be done. */
	assert_int_equal(a.iface->ops->arm(a.iface, 1, &due), -EBUSY);
	end_run(&a, NULL, &w.done, n, 10);
	assert_int_equal(w.status, 0);
	while (lane_ep->ops->get_zcopy(lane_ep, &iov, 1, NULL, 0, key, &w.comp) == 0)
		n++;
	lane_ep->ops->ep_destroy(lane_ep);
	assert_int_equal(w.done, n);
	assert_int_equal(w.status, -ECANCELED);
	weft_shm_driver.mem_deregister(b.iface, mem);
}

/* @return bytes that one progress call has read of @p n operations of @p len bytes each */
static uint64_t one_slice(unsigned int n, size_t len, uint64_t key, struct wait *w)
{
	uint64_t before = end_counter(&a, "native.get_bytes");
	struct iovec iov = {ours, len};

	*w = (struct wait){.comp = {on_done}};
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(
			a.lane_ep->ops->get_zcopy(a.lane_ep, &iov, 1, NULL, 100, key, &w->comp), 0);
	a.iface->ops->progress(a.iface, weft_platform_host.now(NULL));
	return end_counter(&a, "native.get_bytes") - before;
}

/* A progress call reads 1 MiB at most, of whichever operations, and the next one goes on. */
static void long_reads_go_in_slices(void **state)
{
	const size_t len = 400u << 10, room = 4u << 20;
	uint8_t *far = malloc(room);
	struct weft_mem_lane *mem;
	struct wait w;
	uint64_t key;

	(void)state;
	need_native();
	assert_non_null(far);
	fill(far, room, 7);
	key = register_it(&b, far, room, READ, &mem);
	assert_int_equal(one_slice(3, len, key, &w), 1u << 20);
	assert_int_equal(w.done, 2);
	end_run(&a, NULL, &w.done, 3, 10);
	assert_int_equal(w.status, 0);
	assert_memory_equal(ours, far + 100, len);
	assert_int_equal(one_slice(2, len, key, &w), 2 * len);
	assert_int_equal(w.done, 2);
	assert_int_equal(one_slice(1, 1u << 20, key, &w), 1u << 20);
	assert_int_equal(w.done, 1);
	weft_shm_driver.mem_deregister(b.iface, mem);
	free(far);
}

/* A forked child has closed the table's descriptor, so its own child closes nothing. */
static void a_grandchild_keeps_its_descriptors(void **state)
{
	int fd = shm_iface(a.iface)->reg_fd, status;
	pid_t pid;

	(void)state;
	need_native();
	pid = end_fork();
	if (pid == 0) {
		if (fcntl(fd, F_GETFD) >= 0 || dup2(2, fd) != fd)
			_exit(1);
		pid = fork();
		if (pid == 0)
			_exit(fcntl(fd, F_GETFD) < 0 ? 2 : 0);
		_exit(pid > 0 && waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A peer that passes no table, or lies about its word, is served by copies. */
static void peers_that_show_nothing_are_not_read(void **state)
{
	struct shm_iface *s = shm_iface(b.iface);
	int fd = s->reg_fd;

	(void)state;
	need_native();
	s->reg_fd = -1;
	end_connect(&a, &b);
	assert_int_equal(a.lane_ep->lacks, WEFT_LANE_F_GET);
	assert_non_null(strstr(a.text, "by copies"));
	s->reg_fd = fd;
	end_connect(&a, &b);
	assert_int_equal(a.lane_ep->lacks, 0);
}

static void there_is_room_for_many(void **state)
{
	static struct weft_mem_lane *mem[SHM_REG_SLOTS + 1];
	char why[128] = "";
	unsigned int n;

	(void)state;
	need_native();
	for (n = 0; n <= SHM_REG_SLOTS; n++)
		if (weft_shm_driver.mem_register(a.iface, ours, 8, READ, &mem[n], why,
						 sizeof(why)) < 0)
			break;
	assert_int_equal(n, SHM_REG_SLOTS);
	assert_non_null(strstr(why, "at most"));
	while (n-- > 0)
		weft_shm_driver.mem_deregister(a.iface, mem[n]);
}

/* ------------------------------------------------------------------ two processes */

struct shared {
	_Atomic uint64_t key;
	struct shm_addr addr;
};

static void serve(struct shared *shared)
{
	struct weft_mem_lane *mem;
	struct end e;
	char why[128];

	end_open(&e, (uint64_t)getpid() << 32 | 3);
	e.iface->ops->get_address(e.iface, &shared->addr);
	fill(theirs, SIZE, 9);
	if (weft_shm_driver.mem_register(e.iface, theirs, SIZE, READ | WRITE, &mem, why,
					 sizeof(why)) < 0)
		_exit(1);
	shared->key = weft_shm_driver.mem_key(e.iface, mem);
	for (;;)
		e.iface->ops->progress(e.iface, weft_platform_host.now(NULL));
}

/* @behaviour R82 */
static void another_process_is_read_until_it_dies(void **state)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct weft_lane_ep *lane_ep;
	unsigned int ups = a.ups + 1;
	uint8_t *want = malloc(SIZE);
	int status;
	pid_t pid;

	(void)state;
	need_native();
	assert_ptr_not_equal(shared, MAP_FAILED);
	assert_non_null(want);
	fill(want, SIZE, 9);
	pid = end_fork();
	if (pid == 0)
		serve(shared);
	while (shared->key == 0)
		usleep(1000);
	assert_int_equal(a.iface->ops->ep_connect(a.iface, &shared->addr, sizeof(shared->addr), &a,
						  &lane_ep),
			 0);
	end_run(&a, NULL, &a.ups, ups, 10);
	if (a.lane_ep->lacks == 0) {
		assert_int_equal(transfer(ours, SIZE, 0, shared->key), 0);
		assert_memory_equal(ours, want, SIZE);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* Its number may be another's now. */
	if (a.lane_ep->lacks == 0)
		assert_int_equal(transfer(ours, 8, 0, shared->key), -ECONNRESET);
	free(want);
	munmap(shared, sizeof(*shared));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_bytes_get_there),
		TEST(each_of_many_ends_for_itself),
		TEST(a_callback_may_end_the_lane),
		TEST(bounds_and_rights_hold),
		TEST(memory_that_is_gone_ends_the_operation),
		TEST(what_is_under_way_is_bounded_and_ends_with_the_lane),
		TEST(long_reads_go_in_slices),
		TEST(a_grandchild_keeps_its_descriptors),
		TEST(peers_that_show_nothing_are_not_read),
		TEST(there_is_room_for_many),
		TEST(another_process_is_read_until_it_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
