/* SPDX-License-Identifier: BSD-3-Clause
 *
 * weft-dump's reader: any bytes as a capture, each frame that it finds decoded, checked, printed
 * both ways and followed. What must hold: no read outside of what was read (AddressSanitizer), an
 * end, and no control character in what is printed.
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dump/anomaly.h"
#include "dump/frames.h"
#include "dump/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print(const struct dump_file *file, const struct dump_frame *frame,
		  const struct dump_view *view)
{
	char *text = NULL;
	size_t len, i;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		abort();
	dump_frame_text(out, file, frame, view);
	dump_frame_json(out, file, frame, view);
	fclose(out);
	for (i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 && text[i] != '\n')
			abort();
	free(text);
}

/* One trace for many inputs: it has to bear all that came before. */
static void follow(const struct dump_frame *frame, const struct dump_view *view)
{
	static struct trace_anomaly found[TRACE_ANOMALIES];
	static unsigned int frames;
	static struct trace *t;

	if (!t)
		t = trace_make(1);
	if (!t)
		abort();
	trace_frame(t, frame, view, frame->time);
	if (++frames % 16384)
		return;
	trace_end(t);
	if (trace_anomalies(t, found) > TRACE_ANOMALIES)
		abort();
	trace_free(t);
	t = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct dump_counts counts = {0};
	struct dump_file *file;
	struct dump_frame frame;
	struct dump_view view;
	char name[64], why[400];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	file = dump_file_open(name, 0, why, sizeof(why));
	close(fd);
	if (!file)
		return 0;
	while (dump_file_next(file, &frame)) {
		dump_decode(&frame, &view);
		dump_count(&counts, &view);
		print(file, &frame, &view);
		follow(&frame, &view);
	}
	if (counts.frames > size)
		abort();
	dump_file_close(file);
	return 0;
}
