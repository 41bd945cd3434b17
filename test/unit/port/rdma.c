/* SPDX-License-Identifier: BSD-3-Clause */
/* Which NICs belong to the kernel's RDMA driver, as folders like the kernel's say. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "port/nic_state.h"

static char root[] = "/tmp/test_port_rdma.XXXXXX";

static void folder(const char *name, int (*make)(const char *))
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(make(path), 0);
}

static int make(const char *path)
{
	return mkdir(path, 0700);
}

static const char *const folders[] = {
	"0000:01:00.0", "0000:01:00.0/infiniband", "0000:01:00.0/infiniband/mlx5_0", "0000:02:00.0",
	"0000:03:00.0", "0000:03:00.0/infiniband"};

#define NUM (sizeof(folders) / sizeof(folders[0]))

static int make_root(void **state)
{
	(void)state;
	if (!mkdtemp(root))
		return -1;
	for (size_t i = 0; i < NUM; i++)
		folder(folders[i], make);
	return 0;
}

static int remove_root(void **state)
{
	(void)state;
	for (size_t i = NUM; i-- > 0;)
		folder(folders[i], rmdir);
	return rmdir(root);
}

static void test_rdma_nic_is_found(void **state)
{
	char name[32] = "";

	(void)state;
	assert_true(weft_port_rdma(root, "0000:01:00.0", name, sizeof(name)));
	assert_string_equal(name, "mlx5_0");
}

static void test_others_are_not(void **state)
{
	char name[32] = "";

	(void)state;
	assert_false(weft_port_rdma(root, "0000:02:00.0", name, sizeof(name)));
	/* The RDMA driver is there, its device is gone. */
	assert_false(weft_port_rdma(root, "0000:03:00.0", name, sizeof(name)));
	assert_false(weft_port_rdma(root, "net_memif0", name, sizeof(name)));
	assert_string_equal(name, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rdma_nic_is_found),
		cmocka_unit_test(test_others_are_not),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
