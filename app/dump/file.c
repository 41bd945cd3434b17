/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/pcap.h>

#include "lane_tap.h"

#define BUFFER (256u << 10)
#define PCAPNG_FIRST 0x0a

volatile sig_atomic_t dump_file_stop;

void dump_iface_lane(struct dump_iface *iface)
{
	size_t word = strcspn(iface->name, " ");

	snprintf(iface->lane, sizeof(iface->lane), "%.*s", (int)word, iface->name);
	if (!iface->lane[0])
		snprintf(iface->lane, sizeof(iface->lane), "?");
}

static int open_pcap(struct dump_file *file, char *why, size_t why_len)
{
	char text[PCAP_ERRBUF_SIZE] = "";

	file->pcap =
		pcap_fopen_offline_with_tstamp_precision(file->f, PCAP_TSTAMP_PRECISION_NANO, text);
	if (!file->pcap) {
		snprintf(why, why_len, "%s is no capture, neither pcapng nor pcap (%s)", file->name,
			 text);
		return -EBADMSG;
	}
	file->f = NULL; /* libpcap closes it */
	file->num_ifaces = 1;
	snprintf(file->iface[0].name, sizeof(file->iface[0].name), "0");
	dump_iface_lane(&file->iface[0]);
	file->iface[0].ethernet = pcap_datalink(file->pcap) == DLT_EN10MB;
	file->iface[0].records = pcap_datalink(file->pcap) == WEFT_RECORD_LINKTYPE;
	return 0;
}

/* setvbuf() respects the size only with memory of the caller: without, glibc takes 4096 bytes. */
static void set_buffer(struct dump_file *file)
{
	static char input[BUFFER]; /* stdin is not closed, so its buffer stays */

	if (file->f != stdin)
		file->buffer = malloc(BUFFER);
	if (file->f == stdin)
		setvbuf(file->f, input, _IOFBF, BUFFER);
	else if (file->buffer)
		setvbuf(file->f, file->buffer, _IOFBF, BUFFER);
}

static int open_stream(struct dump_file *file, char *why, size_t why_len)
{
	int first;

	file->f = strcmp(file->name, "-") ? fopen(file->name, "rbe") : stdin;
	if (!file->f) {
		snprintf(why, why_len, "%s: %s", file->name, strerror(errno));
		return -errno;
	}
	set_buffer(file);
	first = getc(file->f);
	if (first == EOF) {
		snprintf(why, why_len, "%s: %s", file->name,
			 ferror(file->f) ? strerror(errno) : "an empty file, no capture");
		return -EBADMSG;
	}
	ungetc(first, file->f);
	return first == PCAPNG_FIRST ? 0 : open_pcap(file, why, why_len);
}

struct dump_file *dump_file_open(const char *name, uint8_t index, char *why, size_t why_len)
{
	struct dump_file *file = calloc(1, sizeof(*file));

	if (!file) {
		snprintf(why, why_len, "no memory");
		return NULL;
	}
	file->name = name;
	file->index = index;
	if (open_stream(file, why, why_len)) {
		dump_file_close(file);
		return NULL;
	}
	return file;
}

static bool pcap_one(struct dump_file *file, struct dump_frame *frame)
{
	struct pcap_pkthdr *head;
	const uint8_t *data;
	int rc = pcap_next_ex(file->pcap, &head, &data);

	if (rc == PCAP_ERROR)
		snprintf(file->why, sizeof(file->why), "%s: damaged behind frame %ju: %s",
			 file->name, (uintmax_t)file->frames, pcap_geterr(file->pcap));
	if (rc != 1)
		return false;
	*frame = (struct dump_frame){
		.data = data,
		.caplen = head->caplen,
		.len = head->len < head->caplen ? head->caplen : head->len,
		/* tv_usec holds nanoseconds */
		.time = (uint64_t)head->ts.tv_sec * 1000000000u + (uint64_t)head->ts.tv_usec,
	};
	file->at += 16 + (uint64_t)head->caplen;
	return true;
}

uint64_t dump_file_dropped(const struct dump_file *file)
{
	uint64_t sum = file->dropped_before;
	const struct dump_iface *i;
	unsigned int n;

	for (n = 0; n < file->num_ifaces; n++) {
		i = &file->iface[n];
		sum += i->dropped > i->reported ? i->dropped : i->reported;
	}
	return sum;
}

bool dump_file_next(struct dump_file *file, struct dump_frame *frame)
{
	for (;;) {
		if (file->why[0])
			return false;
		if (dump_file_stop)
			return false;
		if (!(file->pcap ? pcap_one(file, frame) : dump_pcapng_next(file, frame))) {
			if (dump_file_stop) /* it has interrupted a read: that is no damage */
				file->why[0] = '\0';
			return false;
		}
		frame->number = ++file->frames;
		frame->file = file->index;
		frame->record = file->iface[frame->iface].records;
		if (frame->record || file->iface[frame->iface].ethernet)
			return true;
		file->foreign++;
	}
}

void dump_file_close(struct dump_file *file)
{
	if (file->pcap)
		pcap_close(file->pcap);
	if (file->f && file->f != stdin)
		fclose(file->f);
	free(file->block);
	free(file->buffer);
	free(file);
}
