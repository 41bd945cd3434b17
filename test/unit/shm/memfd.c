/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory files of a peer. A file from which the peer can take pages would end this process by
 * SIGBUS at the next access, so it is not mapped.
 */

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "shm/shm_mem.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static int make_file(unsigned int flags, size_t size, int seals)
{
	int fd = memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0)
		return fd;
	if (ftruncate(fd, (off_t)size) < 0 || (seals && fcntl(fd, F_ADD_SEALS, seals) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void a_table_with_all_seals_is_mapped(void **state)
{
	int fd = make_file(0, sizeof(struct shm_reg_table),
			   F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
	const struct shm_reg_table *table;

	(void)state;
	assert_true(fd >= 0);
	table = shm_reg_map(fd);
	assert_non_null(table);
	shm_reg_unmap(table);
	/* The seal is what keeps the pages. */
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
	close(fd);
}

/* @behaviour S21: memory from which the peer can remove pages is not mapped */
static void a_table_that_can_get_holes_is_refused(void **state)
{
	int fd = make_file(0, sizeof(struct shm_reg_table), F_SEAL_SHRINK | F_SEAL_GROW);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
	assert_null(shm_reg_map(fd));
	close(fd);
}

/* @behaviour S21 */
static void a_table_that_can_shrink_is_refused(void **state)
{
	int fd = make_file(0, sizeof(struct shm_reg_table), F_SEAL_GROW | F_SEAL_FUTURE_WRITE);

	(void)state;
	assert_true(fd >= 0);
	assert_null(shm_reg_map(fd));
	close(fd);
}

/* A file of huge pages has the size of a table, with all seals. */
/* @behaviour S21 */
static void huge_pages_are_refused(void **state)
{
	int fd = make_file(MFD_HUGETLB, sizeof(struct shm_reg_table),
			   F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);

	(void)state;
	if (fd < 0) {
		print_message("the kernel has no memory files of huge pages\n");
		skip();
	}
	assert_string_equal(shm_memfd_check(fd, F_SEAL_SHRINK, sizeof(struct shm_reg_table)),
			    "the memory file it passed has no ordinary pages");
	assert_null(shm_reg_map(fd));
	close(fd);
}

/* @behaviour S21 */
static void a_segment_has_all_seals_and_its_size(void **state)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	int shorter = make_file(0, sizeof(struct shm_segment) - 4096, seals);
	int open_ended = make_file(0, sizeof(struct shm_segment), F_SEAL_SHRINK | F_SEAL_GROW);
	const char *why;

	(void)state;
	assert_null(shm_segment_map(shorter, &why));
	assert_string_equal(why, "the segment it passed has another size");
	assert_null(shm_segment_map(open_ended, &why));
	assert_string_equal(why, "what it passed is no sealed memory file");
	close(shorter);
	close(open_ended);
}

static void files_on_a_disk_are_refused(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_null(shm_reg_map(fd));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_with_all_seals_is_mapped),
		cmocka_unit_test(a_table_that_can_get_holes_is_refused),
		cmocka_unit_test(a_table_that_can_shrink_is_refused),
		cmocka_unit_test(huge_pages_are_refused),
		cmocka_unit_test(a_segment_has_all_seals_and_its_size),
		cmocka_unit_test(files_on_a_disk_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
