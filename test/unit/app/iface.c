/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is read of a network interface, from a sysfs of the test's own: PCI, virtio, VMBus, bonds,
 * RDMA.
 */

#include <errno.h>
#include <limits.h>
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

#include "info/iface_facts.h"

#define PCI "devices/pci0000:00/0000:00:06.0"

static char root[] = "/tmp/weft-iface.XXXXXX";
static struct iface_facts f;

/* All folders of @p path, below the test's root. */
static void folder(const char *path)
{
	char full[PATH_MAX], *p;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0700);
		*p = '/';
	}
	mkdir(full, 0700);
}

static void file(const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *out;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	out = fopen(full, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void point(const char *path, const char *to)
{
	char full[PATH_MAX], target[PATH_MAX];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	snprintf(target, sizeof(target), "%s/%s", root, to);
	assert_int_equal(symlink(target, full), 0);
}

/* An interface of this device, with what every interface has. */
static void interface(const char *name, const char *device)
{
	char path[256];

	snprintf(path, sizeof(path), "class/net/%s", name);
	folder(path);
	snprintf(path, sizeof(path), "class/net/%s/address", name);
	file(path, "02:00:00:00:00:0a\n");
	snprintf(path, sizeof(path), "class/net/%s/mtu", name);
	file(path, "9001\n");
	snprintf(path, sizeof(path), "class/net/%s/operstate", name);
	file(path, "up\n");
	if (device) {
		snprintf(path, sizeof(path), "class/net/%s/device", name);
		point(path, device);
	}
}

static int make_root(void **state)
{
	(void)state;
	if (!mkdtemp(root))
		return -1;
	folder("bus/pci/drivers/ena");
	folder("bus/pci/drivers/virtio-pci");
	folder("bus/vmbus/drivers/hv_netvsc");
	folder(PCI "/infiniband/rdmap0s6");
	file(PCI "/numa_node", "1\n");
	point(PCI "/driver", "bus/pci/drivers/ena");
	interface("ens6", PCI);
	file("class/net/ens6/speed", "25000\n");
	folder("devices/pci0000:00/0000:00:03.0/virtio0");
	file("devices/pci0000:00/0000:00:03.0/numa_node", "-1\n");
	point("devices/pci0000:00/0000:00:03.0/driver", "bus/pci/drivers/virtio-pci");
	interface("eth0", "devices/pci0000:00/0000:00:03.0/virtio0");
	file("class/net/eth0/speed", "-1\n");
	folder("devices/acpi/f8615163-df3e-46c5-913f-f2d2f965ed0e");
	point("devices/acpi/f8615163-df3e-46c5-913f-f2d2f965ed0e/driver",
	      "bus/vmbus/drivers/hv_netvsc");
	interface("eth1", "devices/acpi/f8615163-df3e-46c5-913f-f2d2f965ed0e");
	interface("bond0", NULL);
	folder("class/net/bond0/bonding");
	file("class/net/bond0/bonding/slaves", "ens6 ens7\n");
	point("class/net/ens6/master", "class/net/bond0");
	interface("ens6.5", NULL);
	folder("class/net/ens6.5/lower_ens6");
	file("class/net/stray", "not a folder\n");
	return 0;
}

static int remove_root(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void a_pci_nic(void **state)
{
	(void)state;
	assert_int_equal(iface_facts_read(root, "ens6", &f), 0);
	assert_string_equal(f.name, "ens6");
	assert_string_equal(f.device, "0000:00:06.0");
	assert_true(f.pci && f.up && !f.bond);
	assert_string_equal(f.driver, "ena");
	assert_string_equal(f.mac, "02:00:00:00:00:0a");
	assert_int_equal(f.mtu, 9001);
	assert_int_equal(f.speed, 25000);
	assert_int_equal(f.numa, 1);
	assert_string_equal(f.rdma, "rdmap0s6");
	assert_string_equal(f.master, "bond0");
	assert_string_equal(f.lower, "");
}

/* The interface is a virtio device's, the NIC and its driver are the PCI device above it. */
static void virtio(void **state)
{
	(void)state;
	assert_int_equal(iface_facts_read(root, "eth0", &f), 0);
	assert_string_equal(f.device, "0000:00:03.0");
	assert_true(f.pci);
	assert_string_equal(f.driver, "virtio-pci");
	assert_int_equal(f.speed, -1);
	assert_int_equal(f.numa, -1);
	assert_string_equal(f.rdma, "");
}

static void vmbus(void **state)
{
	(void)state;
	assert_int_equal(iface_facts_read(root, "eth1", &f), 0);
	assert_false(f.pci);
	assert_string_equal(f.device, "f8615163-df3e-46c5-913f-f2d2f965ed0e");
	assert_string_equal(f.driver, "hv_netvsc");
}

static void a_bond_and_a_vlan(void **state)
{
	(void)state;
	assert_int_equal(iface_facts_read(root, "bond0", &f), 0);
	assert_true(f.bond);
	assert_string_equal(f.members, "ens6 ens7");
	assert_string_equal(f.device, "");
	assert_int_equal(iface_facts_read(root, "ens6.5", &f), 0);
	assert_false(f.bond);
	assert_string_equal(f.lower, "ens6");
}

static void names_that_are_none(void **state)
{
	(void)state;
	assert_int_equal(iface_facts_read(root, "ens7", &f), -ENODEV);
	assert_int_equal(iface_facts_read(root, "stray", &f), -ENODEV);
	assert_int_equal(iface_facts_read(root, "", &f), -EINVAL);
	assert_int_equal(iface_facts_read(root, "..", &f), -EINVAL);
	assert_int_equal(iface_facts_read(root, "../net/ens6", &f), -EINVAL);
	assert_int_equal(iface_facts_read(root, "a-name-too-long-for-the-kernel", &f), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pci_nic),
		cmocka_unit_test(virtio),
		cmocka_unit_test(vmbus),
		cmocka_unit_test(a_bond_and_a_vlan),
		cmocka_unit_test(names_that_are_none),
	};

	return cmocka_run_group_tests_name("app_iface", tests, make_root, remove_root);
}
