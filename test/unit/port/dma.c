/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is mapped for NICs: maps never overlap, few of them serve many registrations, nothing
 * stays behind. The EAL is real, the IOMMU is the test's.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_memory.h>

#include "eal.h"
#include "port/zcopy.h"

#define PAGE 4096u
#define PAGES 1024u
#define PORT 3
#define OTHER 5

/* ---- the IOMMU, before DPDK's in the order of linking ---- */

static struct {
	uintptr_t at;
	size_t len;
} maps[256];
static unsigned int num_maps;
static int map_fails_in; /* the so manieth call from now; 0 = never */
static int map_error;    /* with errno alone, as VFIO's ioctl leaves it */
static bool unmap_fails;
static enum rte_iova_mode iova_mode = RTE_IOVA_VA;
static int hugepages = 1;
static struct rte_device *dev; /* the one that is asked */
static unsigned int wrong;     /* another one was */

static struct rte_device *new_device(void)
{
	return calloc(1, 64);
}

/* As the bus does: of a device that is freed the sanitizer and valgrind tell. */
static void query_device(struct rte_device *d)
{
	uint64_t first;

	memcpy(&first, d, sizeof(first));
	/* To be reported when no lock is held. */
	wrong += d != dev || first != 0;
}

int rte_dev_dma_map(struct rte_device *d, void *addr, uint64_t iova, size_t len)
{
	query_device(d);
	assert_int_equal((uintptr_t)addr % PAGE | len % PAGE, 0);
	assert_int_equal(iova, (uintptr_t)addr);
	/* It wants memory that the EAL knows. */
	assert_non_null(rte_mem_virt2memseg_list(addr));
	if (map_fails_in && --map_fails_in == 0) {
		errno = map_error;
		return -1;
	}
	for (unsigned int i = 0; i < num_maps; i++)
		if ((uintptr_t)addr < maps[i].at + maps[i].len &&
		    maps[i].at < (uintptr_t)addr + len)
			fail_msg("maps overlap");
	maps[num_maps].at = (uintptr_t)addr;
	maps[num_maps++].len = len;
	return 0;
}

int rte_dev_dma_unmap(struct rte_device *d, void *addr, uint64_t iova, size_t len)
{
	query_device(d);
	assert_int_equal(iova, (uintptr_t)addr);
	/* Before it is unregistered. */
	assert_non_null(rte_mem_virt2memseg_list(addr));
	if (unmap_fails)
		return -1;
	for (unsigned int i = 0; i < num_maps; i++) {
		if (maps[i].at != (uintptr_t)addr || maps[i].len != len)
			continue;
		maps[i] = maps[--num_maps];
		return 0;
	}
	fail_msg("unmapped what was not mapped so");
	return -1;
}

enum rte_iova_mode rte_eal_iova_mode(void)
{
	return iova_mode;
}

int rte_eal_has_hugepages(void)
{
	return hugepages;
}

/* ---- */

static uint8_t *area;
static char why[256];

static struct weft_mem_lane *map_at(uint16_t port, uint8_t *at, size_t len, int want)
{
	struct weft_mem_lane *mem = NULL;
	int rc = weft_dma_map(port, WEFT_DMA_USER, at, len, &mem, why, sizeof(why));

	if (rc != want)
		fail_msg("%d, not %d: %s", rc, want, why);
	return mem;
}

static struct weft_mem_lane *map_bytes(uint8_t *at, size_t len, int want)
{
	return map_at(PORT, at, len, want);
}

static struct weft_mem_lane *map_of(uint16_t port, unsigned int page, unsigned int n, int want)
{
	return map_at(port, area + page * PAGE, n * PAGE, want);
}

static struct weft_mem_lane *map(unsigned int page, unsigned int n, int want)
{
	return map_bytes(area + page * PAGE, n * PAGE, want);
}

static unsigned int areas(void)
{
	struct weft_dma_stats s;

	weft_dma_query(&s);
	assert_int_equal(s.areas, num_maps);
	return s.areas;
}

static int nothing_left(void **state)
{
	struct weft_dma_stats s;

	(void)state;
	weft_dma_query(&s);
	assert_int_equal(wrong, 0);
	assert_int_equal(s.areas, 0);
	assert_int_equal(s.bytes, 0);
	assert_int_equal(num_maps, 0);
	assert_null(rte_mem_virt2memseg_list(area));
	map_fails_in = 0;
	map_error = 0;
	iova_mode = RTE_IOVA_VA;
	hugepages = 1;
	return 0;
}

static void what_overlaps_shares_what_is_mapped(void **state)
{
	struct weft_mem_lane *a, *b, *c, *d;

	(void)state;
	a = map_bytes(area + 100, 5000, 0); /* pages 0, 1 */
	b = map_bytes(area + 5100, 10, 0);
	assert_int_equal(areas(), 1);
	c = map(1, 4, 0); /* 1 is there, 2 to 4 are new */
	assert_int_equal(areas(), 2);
	d = map(7, 1, 0);
	assert_int_equal(areas(), 3);
	weft_mem_lane_put(d);
	d = map(0, 8, 0);
	assert_int_equal(areas(), 3);
	weft_mem_lane_put(a);
	weft_mem_lane_put(b);
	weft_mem_lane_put(c);
	assert_int_equal(areas(), 3);
	weft_mem_lane_put(d);
	assert_int_equal(areas(), 0);
}

static void gaps_are_filled(void **state)
{
	struct weft_mem_lane *a = map(1, 1, 0), *b = map(3, 1, 0), *c = map(0, 6, 0);

	(void)state;
	/* 0, 2, and 4 with 5 */
	assert_int_equal(areas(), 5);
	weft_mem_lane_put(c);
	assert_int_equal(areas(), 2);
	weft_mem_lane_put(a);
	weft_mem_lane_put(b);
}

static void there_are_few_and_then_it_reports_it(void **state)
{
	struct weft_mem_lane *m[WEFT_DMA_AREAS], *one;
	struct weft_dma_stats s;
	uint64_t before;
	unsigned int i;

	(void)state;
	for (i = 0; i < WEFT_DMA_AREAS; i++)
		m[i] = map(2 * i, 1, 0);
	weft_dma_query(&s);
	before = s.no_room;
	map(2 * i, 1, -ENOSPC);
	assert_non_null(strstr(why, "64 areas"));
	/* Neither what would need one more on the way. */
	map(0, 3, -ENOSPC);
	weft_dma_query(&s);
	assert_int_equal(s.no_room, before + 2);
	/* What is there serves. */
	one = map_bytes(area + 10, 100, 0);
	weft_mem_lane_put(one);
	weft_mem_lane_put(m[5]);
	m[5] = map(2 * i, 1, 0);
	for (i = 0; i < WEFT_DMA_AREAS; i++)
		weft_mem_lane_put(m[i]);
}

static void a_failure_leaves_nothing_behind(void **state)
{
	struct weft_mem_lane *a = map(1, 1, 0), *b = map(3, 1, 0);

	(void)state;
	for (int i = 1; i <= 3; i++) {
		map_fails_in = i;
		map_error = ENOMEM;
		map(0, 6, -ENOMEM);
		assert_int_equal(areas(), 2);
		assert_non_null(strstr(why, "ulimit -l"));
		assert_null(rte_mem_virt2memseg_list(area));
		assert_null(rte_mem_virt2memseg_list(area + 4 * PAGE));
	}
	map_fails_in = 1;
	map_error = EFAULT;
	map(8, 1, -EFAULT);
	map_fails_in = 1;
	map_error = 0;
	map(8, 1, -EIO);
	weft_mem_lane_put(a);
	weft_mem_lane_put(b);
}

static void what_cannot_be_unmapped_is_never_mapped_over(void **state)
{
	struct weft_mem_lane *a = map(900, 2, 0), *b;

	(void)state;
	unmap_fails = true;
	weft_mem_lane_put(a);
	unmap_fails = false;
	/* VFIO would say yes, and the NIC would read what was there before. */
	map(901, 1, -EOPNOTSUPP);
	assert_non_null(strstr(why, "could not be unmapped"));
	b = map(902, 1, 0);
	weft_mem_lane_put(b);
	assert_int_equal(num_maps, 1);
}

static void memory_of_the_eal_needs_no_map(void **state)
{
	uint8_t *mine = rte_malloc(NULL, 3 * PAGE, PAGE);
	enum weft_dma_reach reach;
	struct weft_mem_lane *mem;
	rte_iova_t iova;

	(void)state;
	assert_non_null(mine);
	for (reach = WEFT_DMA_EAL; reach <= WEFT_DMA_USER; reach++) {
		assert_int_equal(
			weft_dma_map(PORT, reach, mine + 5, 2 * PAGE, &mem, why, sizeof(why)), 0);
		assert_int_equal(weft_mem_lane_iova(mem, mine + 100, PAGE, &iova), PAGE);
		assert_int_equal(iova, (uintptr_t)mine + 100);
		weft_mem_lane_put(mem);
	}
	assert_int_equal(areas(), 0);
	rte_free(mine);
	assert_int_equal(weft_dma_map(PORT, WEFT_DMA_EAL, area, PAGE, &mem, why, sizeof(why)),
			 -EOPNOTSUPP);
	assert_non_null(strstr(why, "IOMMU"));
}

/*
 * Physical addresses are those of the EAL's pages: where they do not follow each other a piece
 * ends.
 */
static void without_an_iommu_pieces_end_where_pages_do(void **state)
{
	const struct rte_memseg_list *msl;
	uint8_t *mine = rte_malloc(NULL, 6 * PAGE, PAGE);
	struct weft_mem_lane *mem;
	rte_iova_t was[4], iova;
	size_t page;

	(void)state;
	iova_mode = RTE_IOVA_PA;
	msl = rte_mem_virt2memseg_list(mine);
	page = msl->page_sz;
	if (page != PAGE)
		skip();
	for (unsigned int i = 0; i < 4; i++) {
		struct rte_memseg *ms = rte_mem_virt2memseg(mine + i * page, msl);

		was[i] = ms->iova;
		ms->iova = i < 2 ? 0x100000 + i * page : 0x900000 - i * page;
	}
	assert_int_equal(weft_dma_map(PORT, WEFT_DMA_EAL, mine + 10, 4 * page - 20, &mem, why,
				      sizeof(why)),
			 0);
	assert_int_equal(weft_mem_lane_iova(mem, mine + 10, (uint32_t)(4 * page - 20), &iova),
			 2 * page - 10);
	assert_int_equal(iova, 0x100000 + 10);
	assert_int_equal(weft_mem_lane_iova(mem, mine + 2 * page + 7, (uint32_t)page, &iova),
			 page - 7);
	assert_int_equal(iova, 0x900000 - 2 * page + 7);
	assert_int_equal(weft_mem_lane_iova(mem, mine + 3 * page, 100, &iova), 100);
	weft_mem_lane_put(mem);
	for (unsigned int i = 0; i < 4; i++)
		((struct rte_memseg *)rte_mem_virt2memseg(mine + i * page, msl))->iova = was[i];
	rte_free(mine);
}

/* The application has registered it for itself, and may take it back. */
static void memory_that_others_registered_is_left_alone(void **state)
{
	(void)state;
	assert_int_equal(rte_extmem_register(area + 10 * PAGE, PAGE, NULL, 0, PAGE), 0);
	map(9, 3, -EOPNOTSUPP);
	map(10, 1, -EOPNOTSUPP);
	assert_non_null(strstr(why, "application"));
	assert_int_equal(rte_extmem_unregister(area + 10 * PAGE, PAGE), 0);
	weft_mem_lane_put(map(9, 3, 0));
}

static void reach_is_found_without_a_frame(void **state)
{
	(void)state;
	assert_int_equal(weft_dma_open(PORT, dev), WEFT_DMA_USER);
	map_fails_in = 1;
	map_error = EINVAL;
	assert_int_equal(weft_dma_open(PORT, dev), WEFT_DMA_EAL);
	iova_mode = RTE_IOVA_PA;
	assert_int_equal(weft_dma_open(PORT, dev), WEFT_DMA_EAL);
	hugepages = 0;
	assert_int_equal(weft_dma_open(PORT, dev), WEFT_DMA_NONE);
	assert_int_equal(areas(), 0);
}

/*
 * The port is closed, the application takes its NIC from DPDK, and memory is still registered for
 * another one.
 */
static void a_device_that_is_gone_is_not_queried_any_more(void **state)
{
	struct rte_device *gone = dev, *heir = new_device();
	struct weft_mem_lane *a, *b, *c;

	(void)state;
	a = map(0, 2, 0);
	b = map(4, 2, 0);
	dev = heir;
	assert_int_equal(weft_dma_open(OTHER, heir), WEFT_DMA_USER);
	c = map_of(OTHER, 6, 1, 0);
	weft_dma_close(PORT);
	free(gone);
	assert_int_equal(areas(), 3);
	weft_mem_lane_put(a);
	assert_int_equal(areas(), 2);
	map(8, 1, -ENODEV);
	/* And back, as another device. */
	dev = new_device();
	assert_int_equal(weft_dma_open(PORT, dev), WEFT_DMA_USER);
	weft_dma_close(OTHER);
	free(heir);
	weft_mem_lane_put(b);
	weft_mem_lane_put(c);
	assert_int_equal(areas(), 0);
}

/* The last one: nothing stays mapped, and the next one reaches what is registered still. */
static void without_any_device_nothing_is_mapped(void **state)
{
	struct weft_mem_lane *a = map(0, 2, 0), *b = map(4, 2, 0);

	(void)state;
	weft_dma_close(PORT);
	weft_dma_close(PORT);
	free(dev);
	assert_int_equal(num_maps, 0);
	assert_null(rte_mem_virt2memseg_list(area));
	weft_mem_lane_put(a);
	dev = new_device();
	/* Not all of it: then this port gets memory of the EAL only. */
	map_fails_in = 2;
	map_error = ENOMEM;
	assert_int_equal(weft_dma_open(PORT, dev), WEFT_DMA_EAL);
	assert_int_equal(num_maps, 0);
	assert_int_equal(weft_dma_open(PORT, dev), WEFT_DMA_USER);
	assert_int_equal(areas(), 1);
	weft_mem_lane_put(b);
	assert_int_equal(areas(), 0);
}

static uint32_t next(uint32_t *x)
{
	*x = *x * 1664525 + 1013904223;
	return *x >> 8;
}

static void any_order_ends_with_nothing(void **state)
{
	struct weft_mem_lane *m[40] = {NULL};
	struct weft_mem_lane *mem;
	unsigned int i, n, refused = 0;
	uint32_t x = 1;
	int rc;

	(void)state;
	for (n = 0; n < 4000; n++) {
		i = next(&x) % 40;
		if (m[i]) {
			weft_mem_lane_put(m[i]);
			m[i] = NULL;
			continue;
		}
		map_fails_in = next(&x) % 20 == 0;
		map_error = ENOMEM;
		mem = NULL;
		rc = weft_dma_map(PORT, WEFT_DMA_USER, area + next(&x) % (800 * PAGE),
				  1 + next(&x) % (30 * PAGE), &mem, why, sizeof(why));
		map_fails_in = 0;
		assert_true(rc == 0 || rc == -ENOMEM || rc == -ENOSPC);
		refused += rc != 0;
		m[i] = mem;
		assert_true(areas() <= WEFT_DMA_AREAS);
	}
	assert_true(refused > 0);
	for (i = 0; i < 40; i++)
		if (m[i])
			weft_mem_lane_put(m[i]);
}

static int start(void **state)
{
	(void)state;
	test_eal_init("64");
	area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	dev = new_device();
	if (area == MAP_FAILED || !dev)
		return -1;
	return weft_dma_open(PORT, dev) == WEFT_DMA_USER ? 0 : -1;
}

#define TIDY(t) cmocka_unit_test_teardown(t, nothing_left)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TIDY(what_overlaps_shares_what_is_mapped),
		TIDY(gaps_are_filled),
		TIDY(there_are_few_and_then_it_reports_it),
		TIDY(a_failure_leaves_nothing_behind),
		TIDY(memory_of_the_eal_needs_no_map),
		TIDY(without_an_iommu_pieces_end_where_pages_do),
		TIDY(memory_that_others_registered_is_left_alone),
		TIDY(reach_is_found_without_a_frame),
		TIDY(a_device_that_is_gone_is_not_queried_any_more),
		TIDY(without_any_device_nothing_is_mapped),
		TIDY(any_order_ends_with_nothing),
		/* Last: what it leaves, it leaves for good. */
		cmocka_unit_test(what_cannot_be_unmapped_is_never_mapped_over),
	};

	return cmocka_run_group_tests_name("port_dma", tests, start, NULL);
}
