/* SPDX-License-Identifier: BSD-3-Clause */

/* Why NICs are no ports, over folders like the kernel's. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "port/nic_state.h"

#define NIC "0000:00:05.0"

static char root[64], sys_dir[80], dev_dir[80];
static struct weft_nic_env env;

/* Folders on the way are made, too. */
static void make_parents(char *path)
{
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
		*at = '\0';
		mkdir(path, 0755);
		*at = '/';
	}
}

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	make_parents(path);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void put_link(const char *name, const char *target)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	make_parents(path);
	assert_int_equal(symlink(target, path), 0);
}

static int make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/test_nic_state.XXXXXX");
	if (!mkdtemp(root) || chmod(root, 0755))
		return -1;
	snprintf(sys_dir, sizeof(sys_dir), "%s/sys", root);
	snprintf(dev_dir, sizeof(dev_dir), "%s/dev", root);
	env = (struct weft_nic_env){.sys = sys_dir, .dev = dev_dir, .hugepages = true};
	put("sys/bus/pci/devices/" NIC "/class", "0x020000\n");
	return 0;
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void bind_to(const char *driver)
{
	char target[128];

	snprintf(target, sizeof(target), "../../../../bus/pci/drivers/%s", driver);
	put_link("sys/bus/pci/devices/" NIC "/driver", target);
}

static void expect_report(const char *address, const char *const parts[])
{
	char why[512] = "";

	assert_true(weft_nic_problem(&env, address, why, sizeof(why)));
	for (; *parts; parts++)
		if (!strstr(why, *parts))
			fail_msg("'%s' is not in: %s", *parts, why);
}

#define EXPECT_REPORT(address, ...) \
	expect_report(address, (const char *const[]){address, __VA_ARGS__, NULL})

static void expect_no_report(void)
{
	char why[512] = "";

	if (weft_nic_problem(&env, NIC, why, sizeof(why)))
		fail_msg("%s", why);
}

static void a_nic_that_is_not_there(void **state)
{
	(void)state;
	EXPECT_REPORT("0000:00:06.0", "no PCI device of this machine", "--status");
}

static void put_group(void)
{
	put_link("sys/bus/pci/devices/" NIC "/iommu_group", "../../../../kernel/iommu_groups/12");
}

static void a_nic_without_a_driver(void **state)
{
	(void)state;
	put_group();
	EXPECT_REPORT(NIC, "has no driver", "dpdk-devbind.py -b vfio-pci " NIC);
	assert_true(weft_nic_any(&env));
}

static void a_nic_that_the_kernel_has(void **state)
{
	(void)state;
	put_group();
	bind_to("virtio-pci");
	EXPECT_REPORT(NIC, "still the kernel's", "virtio-pci", "interface none");
	put("sys/bus/pci/devices/" NIC "/virtio3/net/eth7/mtu", "1500\n");
	EXPECT_REPORT(NIC, "interface eth7", "-b vfio-pci " NIC);
	assert_false(weft_nic_is_bound(&env, NIC));
	assert_false(weft_nic_any(&env));
	/* Something that is no NIC, and has no driver. */
	put("sys/bus/pci/devices/0000:00:07.0/class", "0x030000\n");
	assert_false(weft_nic_any(&env));
	put("sys/bus/vmbus/drivers/uio_hv_generic/f8b3781a-1e82-4818/vendor", "0x1414\n");
	assert_true(weft_nic_any(&env));
}

static void a_nic_that_kernel_and_dpdk_share_is_right(void **state)
{
	(void)state;
	bind_to("mlx5_core");
	expect_no_report();
	assert_true(weft_nic_any(&env));
}

static void vfio_without_an_iommu(void **state)
{
	(void)state;
	bind_to("vfio-pci");
	EXPECT_REPORT(NIC, "no IOMMU of this machine is on", "intel_iommu=on", "uio_pci_generic");
	assert_true(weft_nic_is_bound(&env, NIC));
}

/* vfio-pci would refuse it, so that it has no driver then. */
static void without_an_iommu_the_remedy_is_not_vfio(void **state)
{
	(void)state;
	EXPECT_REPORT(NIC, "has no driver", "no IOMMU is on", "weft-bind " NIC, "intel_iommu=on");
	env.noiommu = true;
	EXPECT_REPORT(NIC, "has no driver", "-b vfio-pci " NIC);
	env.noiommu = false;
	bind_to("e1000e");
	EXPECT_REPORT(NIC, "still the kernel's", "no IOMMU is on", "weft-bind " NIC,
		      "intel_iommu=on");
}

static void vfio_whose_group_is_not_whole(void **state)
{
	(void)state;
	bind_to("vfio-pci");
	put_group();
	EXPECT_REPORT(NIC, "vfio/12 is not there", "all devices of IOMMU group 12");
	put("dev/vfio/12", "");
	expect_no_report();
	env.noiommu = true;
	EXPECT_REPORT(NIC, "vfio/noiommu-12");
}

static void files_that_we_may_not_open(void **state)
{
	bool is_root = getuid() == 0;

	(void)state;
	bind_to("uio_pci_generic");
	put("sys/bus/pci/devices/" NIC "/uio/uio4/name", "uio\n");
	put("dev/uio4", "");
	expect_no_report();
	/* access() asks for the real user. */
	if (is_root)
		assert_int_equal(setreuid(65534, (uid_t)-1), 0);
	else
		assert_int_equal(chmod(dev_dir, 0), 0);
	EXPECT_REPORT(NIC, "you may not open", "dev/uio4", "run as root");
	if (is_root)
		assert_int_equal(setreuid(0, (uid_t)-1), 0);
	else
		assert_int_equal(chmod(dev_dir, 0700), 0);
}

static void uio_without_hugepages(void **state)
{
	(void)state;
	bind_to("uio_pci_generic");
	env.hugepages = false;
	EXPECT_REPORT(NIC, "uio_pci_generic", "needs hugepages", "nr_hugepages", "vfio-pci");
}

static void hugepages_on_the_wrong_node(void **state)
{
	char why[512];

	(void)state;
#define PAGES "hugepages/hugepages-2048kB/free_hugepages"
	put("sys/devices/system/node/node0/" PAGES, "3\n");
	put("sys/devices/system/node/node1/" PAGES, "256\n");
	weft_nic_node_memory(&env, 1, why, sizeof(why));
	assert_string_equal(why, "");
	weft_nic_node_memory(&env, -1, why, sizeof(why));
	assert_string_equal(why, "");
	weft_nic_node_memory(&env, 0, why, sizeof(why));
	if (!strstr(why, "on NUMA node 0, where 6 MiB") || !strstr(why, "node 1 has 512") ||
	    !strstr(why, "node0/hugepages"))
		fail_msg("%s", why);
	env.hugepages = false;
	weft_nic_node_memory(&env, 0, why, sizeof(why));
	assert_string_equal(why, "");
}

static void addresses_are_read_as_people_write_them(void **state)
{
	char address[16];

	(void)state;
	assert_true(weft_nic_address("00:05.0", address));
	assert_string_equal(address, NIC);
	assert_true(weft_nic_address("0001:AF:1f.7", address));
	assert_string_equal(address, "0001:af:1f.7");
	assert_false(weft_nic_address("net_memif0", address));
	assert_false(weft_nic_address("0000:00:05.0x", address));
	assert_false(weft_nic_address("0", address));
	assert_false(weft_nic_address("", address));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_nic_that_is_not_there),
		CASE(a_nic_without_a_driver),
		CASE(a_nic_that_the_kernel_has),
		CASE(a_nic_that_kernel_and_dpdk_share_is_right),
		CASE(without_an_iommu_the_remedy_is_not_vfio),
		CASE(vfio_without_an_iommu),
		CASE(vfio_whose_group_is_not_whole),
		CASE(files_that_we_may_not_open),
		CASE(uio_without_hugepages),
		CASE(hugepages_on_the_wrong_node),
		CASE(addresses_are_read_as_people_write_them),
	};

	return cmocka_run_group_tests_name("nic_state", tests, NULL, NULL);
}
