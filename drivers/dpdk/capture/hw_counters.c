/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture/hw_counters.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH 160
#define DEVICE 32

struct text {
	char *buf;
	size_t len, size;
};

/* @return false: it is no number */
static bool read_value(int dir, const char *name, uint64_t *value)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	char text[32], *end;
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	*value = strtoull(text, &end, 10);
	return end != text;
}

static void add_counter(struct text *t, const char *port, const char *name, uint64_t value)
{
	int n = snprintf(t->buf + t->len, t->size - t->len, " %s/%s=%" PRIu64, port, name, value);

	if (n > 0 && (size_t)n < t->size - t->len)
		t->len += (size_t)n;
	t->buf[t->len] = '\0';
}

static void add_port(struct text *t, const char *device, const char *port)
{
	const struct dirent *d;
	char path[PATH];
	uint64_t value;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%.8s/hw_counters", device,
		 port);
	dir = opendir(path);
	if (!dir)
		return;
	/* The interval in which the kernel reads the device again is no counter. */
	while ((d = readdir(dir)))
		if (d->d_name[0] != '.' && strcmp(d->d_name, "lifespan") &&
		    read_value(dirfd(dir), d->d_name, &value))
			add_counter(t, port, d->d_name, value);
	closedir(dir);
}

size_t weft_hw_counters_text(const char *lane, char *buf, size_t size)
{
	struct text t = {.buf = buf, .size = size};
	char device[DEVICE], path[PATH];
	const struct dirent *d;
	size_t begin;
	DIR *dir;

	if (sscanf(lane, "roce:%31[^:, /]", device) != 1)
		return 0;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports", device);
	dir = opendir(path);
	if (!dir)
		return 0;
	t.len = begin = (size_t)snprintf(buf, size, "hw_counters %s", device);
	while ((d = readdir(dir)))
		if (d->d_name[0] != '.')
			add_port(&t, device, d->d_name);
	closedir(dir);
	return t.len > begin ? t.len : 0;
}
