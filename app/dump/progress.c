/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a large file has been read. */

#include <sys/stat.h>
#include <unistd.h>

#include "dump/dump.h"

#define STEP (256u << 20)

void dump_progress_begin(struct dump_progress *p, const struct dump_file *file)
{
	struct stat st;

	*p = (struct dump_progress){.next = isatty(STDERR_FILENO) ? STEP : UINT64_MAX};
	if (stat(file->name, &st) == 0 && S_ISREG(st.st_mode))
		p->size = (uint64_t)st.st_size;
}

void dump_progress(struct dump_progress *p, const struct dump_file *file)
{
	if (file->at < p->next)
		return;
	p->next = file->at + STEP;
	p->shown = true;
	if (p->size)
		fprintf(stderr, "\r%s: %u %%\033[K", file->name,
			(unsigned int)(100 * file->at / p->size));
	else
		fprintf(stderr, "\r%s: %u MiB\033[K", file->name, (unsigned int)(file->at >> 20));
}

void dump_progress_end(struct dump_progress *p)
{
	if (p->shown)
		fprintf(stderr, "\r\033[K");
}
