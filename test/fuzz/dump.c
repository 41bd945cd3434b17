/* SPDX-License-Identifier: BSD-3-Clause
 *
 * weft-dump's reader: any bytes as a capture, each frame that it finds decoded, checked, printed
 * both ways and followed. What must hold: no read outside of what was read (AddressSanitizer), an
 * end, and no control character in what is printed.
 */

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drivers/dpdk/frame/frame.h"
#include "dump/anomaly.h"
#include "dump/frames.h"
#include "dump/roce_flow.h"
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

/*
 * The frame in memory of exactly its length, so that AddressSanitizer detects a read behind it. A
 * message of ICMPv6 gets the right checksum: without it few would be read further.
 */
static uint8_t *exact_copy(const struct dump_frame *frame)
{
	const uint32_t head = RTE_ETHER_HDR_LEN + sizeof(struct rte_ipv6_hdr);
	uint8_t *p = malloc(frame->caplen ? frame->caplen : 1);
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)(p + RTE_ETHER_HDR_LEN);
	uint32_t len;
	uint16_t sum;

	if (!p)
		abort();
	memcpy(p, frame->data, frame->caplen);
	if (frame->record || frame->caplen < head + 4 || p[12] != 0x86 || p[13] != 0xdd ||
	    ip->proto != IPPROTO_ICMPV6)
		return p;
	len = weft_be16(ip->payload_len);
	if (len < 4 || len > frame->caplen - head)
		return p;
	memset(p + head + 2, 0, sizeof(sum));
	sum = (uint16_t)~weft_ip6_sum(ip, p + head, len);
	memcpy(p + head + 2, &sum, sizeof(sum));
	return p;
}

/* Connections of RoCE v2, also for many inputs. */
static void follow_roce(const struct dump_frame *frame, const struct dump_view *view)
{
	static struct roce *r;
	char text[1200];

	if (view->what != DUMP_ROCE)
		return;
	if (!r)
		r = roce_make();
	if (!r)
		abort();
	roce_packet(r, frame, view, frame->time);
	if (!r->num)
		return;
	roce_fault_text(r, (unsigned int)frame->number % r->num, "", 0, text, sizeof(text));
	if (r->num > ROCE_FLOWS || strlen(text) >= sizeof(text))
		abort();
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
	uint8_t *copy;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	file = dump_file_open(name, 0, why, sizeof(why));
	close(fd);
	if (!file)
		return 0;
	while (dump_file_next(file, &frame)) {
		copy = exact_copy(&frame);
		frame.data = copy;
		dump_decode(&frame, &view);
		dump_count(&counts, &view);
		print(file, &frame, &view);
		follow(&frame, &view);
		follow_roce(&frame, &view);
		free(copy);
	}
	if (counts.frames > size)
		abort();
	dump_file_close(file);
	return 0;
}
