/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices that a process could take, and their distance. */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port/pick.h"

#define MAX_CORES 8192

/* ---- distance ------------------------------------------------------------------------------- */

/* The processors that this process may run on. */
struct cores {
	size_t size;
	cpu_set_t *set; /* NULL = unknown */
};

/* Does a list such as "0-3,8-11" contain one of the process's cores? */
static bool has_core(const char *list, const struct cores *mine)
{
	unsigned long first, last;
	const char *at = list;
	char *end;

	while (isdigit((unsigned char)*at)) {
		first = last = strtoul(at, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < MAX_CORES; first++)
			if (CPU_ISSET_S(first, mine->size, mine->set))
				return true;
		at = *end == ',' ? end + 1 : end;
	}
	return false;
}

/* If the cores or the device's position are unknown, all devices are near. */
static bool is_near(const char *device, const struct cores *mine)
{
	char path[PATH_MAX], list[4096];
	bool near = true;
	FILE *f;

	snprintf(path, sizeof(path), "%s/local_cpulist", device);
	f = mine->set ? fopen(path, "re") : NULL;
	if (!f)
		return true;
	if (fgets(list, sizeof(list), f) && isdigit((unsigned char)list[0]))
		near = has_core(list, mine);
	fclose(f);
	return near;
}

/* ---- PCI ------------------------------------------------------------------------------------ */

static bool is_network(const char *device)
{
	char path[600];
	unsigned int class = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/class", device);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%x", &class) != 1)
		class = 0;
	fclose(f);
	return class >> 16 == 2;
}

/* Drivers that give a device to DPDK, or share it with DPDK. */
static bool is_for_dpdk(const char *device)
{
	static const char *const drivers[] = {"vfio-pci",  "uio_pci_generic", "igb_uio",
					      "mlx5_core", "mlx4_core",       "mana"};
	char path[600], target[PATH_MAX];
	const char *name;
	ssize_t n;
	size_t i;

	snprintf(path, sizeof(path), "%s/driver", device);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	name = strrchr(target, '/');
	name = name ? name + 1 : target;
	for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (!strcmp(name, drivers[i]))
			return true;
	return false;
}

struct finder {
	struct weft_candidate *list;
	int num;
	struct cores mine;
	const char *sys;
};

static struct weft_candidate *add_candidate(struct finder *f, const char *name, size_t len)
{
	struct weft_candidate *c = &f->list[f->num];

	if (f->num == WEFT_PICK_MAX || len >= sizeof(c->name))
		return NULL;
	f->num++;
	*c = (struct weft_candidate){.near = true};
	memcpy(c->name, name, len);
	c->name[len] = '\0';
	return c;
}

static void near_pci(const struct finder *f, struct weft_candidate *c)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", f->sys, c->name);
	c->near = is_near(path, &f->mine);
}

static void find_pci(struct finder *f)
{
	char path[256], device[512];
	struct dirent **entries;
	struct weft_candidate *c;
	int n, i;

	snprintf(path, sizeof(path), "%s/bus/pci/devices", f->sys);
	n = scandir(path, &entries, NULL, alphasort);
	for (i = 0; i < n; i++) {
		if (snprintf(device, sizeof(device), "%s/%s", path, entries[i]->d_name) <
			    (int)sizeof(device) &&
		    entries[i]->d_name[0] != '.' && is_network(device) && is_for_dpdk(device)) {
			c = add_candidate(f, entries[i]->d_name, strlen(entries[i]->d_name));
			if (c)
				near_pci(f, c);
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

/* ---- the EAL's words ------------------------------------------------------------------------ */

/*
 * @return the device that the word names with this option, or NULL; @p num is the number of its
 * words
 */
static const char *device_of(int left, char *const *word, const char *option, int *num)
{
	size_t len = strlen(option);

	*num = 1;
	if (strncmp(word[0], option, len) != 0)
		return NULL;
	if (word[0][len] == '\0') {
		*num = 2;
		return left > 1 ? word[1] : NULL;
	}
	if (option[1] == '-')
		return word[0][len] == '=' ? word[0] + len + 1 : NULL;
	return word[0] + len;
}

static void add_word(struct finder *f, const char *device, bool vdev, int at, int num)
{
	size_t len = strcspn(device, ",");
	char iface[32], path[PATH_MAX], full[32];
	struct weft_candidate *c;

	/* In the kernel's form. */
	snprintf(full, sizeof(full), "0000:%.12s", device);
	if (!vdev && len == 7 && device[2] == ':')
		c = add_candidate(f, full, 12);
	else
		c = add_candidate(f, device, len);
	if (!c)
		return;
	c->vdev = vdev;
	c->args = device[len] ? device + len + 1 : NULL;
	c->word = at;
	c->num_words = num;
	if (!vdev) {
		near_pci(f, c);
	} else if (weft_device_arg(c->args, "iface", iface, sizeof(iface))) {
		snprintf(path, sizeof(path), "%s/class/net/%s/device", f->sys, iface);
		c->near = is_near(path, &f->mine);
	}
}

/* @return true: PCI devices are to be searched, as no word names or forbids them */
static bool find_words(struct finder *f, int count, char *const *words)
{
	static const char *const options[] = {"--vdev", "--allow", "-a"};
	const char *device;
	bool all = true;
	int i, num;
	size_t k;

	for (i = 0; i < count; i += num) {
		num = 1;
		if (!strcmp(words[i], "--no-pci"))
			all = false;
		for (k = 0; k < sizeof(options) / sizeof(options[0]); k++) {
			device = device_of(count - i, words + i, options[k], &num);
			if (!device)
				continue;
			all = all && k == 0;
			add_word(f, device, k == 0, i, num);
			break;
		}
		num = num > count - i ? 1 : device ? num : 1;
	}
	return all;
}

static void find_cores(struct cores *mine)
{
	mine->size = CPU_ALLOC_SIZE(MAX_CORES);
	mine->set = CPU_ALLOC(MAX_CORES);
	if (mine->set && sched_getaffinity(0, mine->size, mine->set) < 0) {
		CPU_FREE(mine->set);
		mine->set = NULL;
	}
}

int weft_candidates(const char *sys, int count, char *const *words, struct weft_candidate **list)
{
	struct finder f = {.sys = sys};

	f.list = calloc(WEFT_PICK_MAX, sizeof(*f.list));
	*list = f.list;
	if (!f.list)
		return -ENOMEM;
	find_cores(&f.mine);
	if (find_words(&f, count, words))
		find_pci(&f);
	if (f.mine.set)
		CPU_FREE(f.mine.set);
	return f.num;
}
