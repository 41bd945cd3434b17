/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Remote memory: reads, writes, atomics, and what keys allow.
 */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "roce_host.h"

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

/* @behaviour U90 */
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
		CHECK(a.lane_ep->ops->get_zcopy(a.lane_ep, iov, n > 1 ? 2 : 1, reg_a, 1000, key,
						&op.comp) == 0);
		WITHIN(20, op.done == 1);
		CHECK(op.status == 0);
		for (i = 0; i < n; i++)
			CHECK(mem_a[i < first ? 100 + i : 200 + i] == byte_of(9, 1040 + i));
		CHECK(mem_a[99] == 0 && mem_a[200 + n] == 0);
		/* And back to another place. */
		op.done = 0;
		CHECK(a.lane_ep->ops->put_zcopy(a.lane_ep, iov, n > 1 ? 2 : 1, reg_a, (2 << 20) + 8,
						key, &op.comp) == 0);
		WITHIN(20, op.done == 1);
		CHECK(op.status == 0);
		for (i = 0; i < n; i++)
			CHECK(mem_b[(2 << 20) + 48 + i] == byte_of(9, 1040 + i));
	}
	CHECK(b.got == 0);
	iov[0] = (struct iovec){mem_a + 100, a.iface->attr.max_get + 1};
	CHECK(a.lane_ep->ops->get_zcopy(a.lane_ep, iov, 1, reg_a, 0, key, &op.comp) == -EMSGSIZE);
	close_memory();
	return true;
}

/* @behaviour U90 */
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
		while ((rc = a.lane_ep->ops->get_zcopy(a.lane_ep, &iov, 1, reg_a, i * 32768, key,
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
		CHECK(a.lane_ep->ops->amo64(a.lane_ep, WEFT_LANE_AMO_ADD, 3, 0, &old, 800, key,
					    &op.comp) == 0);
		WITHIN(10, op.done == 1);
		CHECK(op.status == 0 && old == 1000 + 3 * i);
	}
	CHECK(*word == 1300);
	op.done = 0;
	CHECK(a.lane_ep->ops->amo64(a.lane_ep, WEFT_LANE_AMO_CSWAP, 7, 1299, &old, 800, key,
				    &op.comp) == 0);
	WITHIN(10, op.done == 1);
	CHECK(old == 1300 && *word == 1300);
	op.done = 0;
	CHECK(a.lane_ep->ops->amo64(a.lane_ep, WEFT_LANE_AMO_CSWAP, 7, 1300, &old, 800, key,
				    &op.comp) == 0);
	WITHIN(10, op.done == 1);
	CHECK(old == 1300 && *word == 7);
	CHECK(a.lane_ep->ops->amo64(a.lane_ep, WEFT_LANE_AMO_ADD, 1, 0, &old, 801, key, &op.comp) ==
	      -EINVAL);
	close_memory();
	return true;
}

/* @behaviour U72, S12 */
static bool a_wrong_key_ends_the_lane_and_reports_it(void)
{
	struct op op = {.comp.done = op_done};
	struct iovec iov;

	CHECK(open_pair(""));
	CHECK(open_memory());
	iov = (struct iovec){mem_a + 100, 64};
	CHECK(a.lane_ep->ops->get_zcopy(a.lane_ep, &iov, 1, reg_a, 0,
					weft_roce_driver.mem_key(b.iface, reg_b) ^ 0x5500,
					&op.comp) == 0);
	WITHIN(10, op.done == 1 && a.down == 1);
	CHECK(op.status < 0);
	CHECK(strstr(a.text, name_a) != NULL && strstr(a.text, "refused access"));
	CHECK(a.lane_ep->ops->get_zcopy(a.lane_ep, &iov, 1, reg_a, 0, 0, &op.comp) == a.status);
	close_memory();
	return true;
}

/*
 * @behaviour S12: RoCE: keys of the hardware end with the registration; a violation of the rules
 * ends the lane
 * @behaviour U72
 */
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
	CHECK(a.lane_ep->ops->get_zcopy(a.lane_ep, &iov, 1, reg_a, 0, key, &op.comp) == 0);
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
		CHECK((reads ? a.lane_ep->ops->get_zcopy : a.lane_ep->ops->put_zcopy)(
			      a.lane_ep, &iov, 1, reg_a, 0, key, &op.comp) == 0);
		WITHIN(10, op.done == 1);
		CHECK(op.status == 0);
		CHECK((reads ? mem_a[100] : mem_b[0]) == (reads ? 2 : 1));
		/* And now what it does not allow: refused, and nothing is touched. */
		op = (struct op){.comp.done = op_done};
		memset(mem_a, 3, 4096);
		CHECK((reads ? a.lane_ep->ops->put_zcopy : a.lane_ep->ops->get_zcopy)(
			      a.lane_ep, &iov, 1, reg_a, 0, key, &op.comp) == 0);
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

const struct behaviour roce_memory[] = {
	BEHAVIOUR(remote_memory_is_read_and_written),
	BEHAVIOUR(reads_under_way_are_bounded_and_all_end),
	BEHAVIOUR(atomics_return_the_old_value),
	BEHAVIOUR(a_wrong_key_ends_the_lane_and_reports_it),
	BEHAVIOUR(a_deregistered_key_is_dead),
	BEHAVIOUR(a_key_allows_no_more_than_it_was_made_for),
	BEHAVIOUR(read_only_memory_is_registered_for_sending_only),
	{NULL, NULL},
};
