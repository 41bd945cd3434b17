/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a process holds: verbs objects, files, memory.
 */

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mock/fd_limit.h"
#include "roce_footprint.h"

/*
 * "rdma resource" has a line for each device: how many protection domains, completion queues, queue
 * pairs, regions, contexts and shared receive queues it has.
 */
static bool count_objects(struct footprint *f)
{
	char line[160], *mr, *rest;
	size_t len = 0;
	FILE *p = popen("rdma resource show", "r");

	f->objects[0] = '\0';
	f->regions = 0;
	if (!p)
		return false;
	while (fgets(line, sizeof(line), p)) {
		mr = strstr(line, " mr ");
		if (!mr || len + sizeof(line) > sizeof(f->objects))
			continue;
		f->regions += (unsigned int)strtoul(mr + 4, &rest, 10);
		len += (size_t)sprintf(f->objects + len, "%.*s%s", (int)(mr - line), line, rest);
	}
	return pclose(p) == 0 && strstr(f->objects, " qp ") != NULL;
}

/* Bytes of address space, the heap's too. */
static size_t count_mapped(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	size_t pages = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%zu", &pages) != 1)
		pages = 0;
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

bool footprint_take(struct footprint *f)
{
	struct mallinfo2 heap;

	f->files = count_fds();
	if (!count_objects(f))
		return false;
	heap = mallinfo2();
	f->heap = heap.uordblks + heap.hblkhd;
	f->mapped = count_mapped() - heap.arena - heap.hblkhd;
	return f->files > 0;
}

static void print_lines(const char *text)
{
	size_t n;

	for (; *text != '\0'; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		printf("# %.*s\n", (int)n, text);
	}
}

bool footprint_same(const char *when, const struct footprint *before, const struct footprint *after,
		    struct footprint_slack slack)
{
	bool ok = strcmp(before->objects, after->objects) == 0;

	printf("# %s: regions %u -> %u, files %u -> %u, heap %zu -> %zu, other memory %zu -> %zu\n",
	       when, before->regions, after->regions, before->files, after->files, before->heap,
	       after->heap, before->mapped, after->mapped);
	if (!ok) {
		printf("# verbs objects before and after:\n");
		print_lines(before->objects);
		print_lines(after->objects);
	}
	return ok && before->files == after->files &&
	       after->regions <= before->regions + slack.regions &&
	       after->heap <= before->heap + slack.heap &&
	       after->mapped <= before->mapped + slack.mapped;
}
