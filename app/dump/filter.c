/* SPDX-License-Identifier: BSD-3-Clause */
/* tcpdump's filter expressions, by libpcap's compiler. */

#include <stdlib.h>

#include <pcap/pcap.h>

#include "dump/dump.h"

struct dump_filter {
	struct bpf_program program;
};

struct dump_filter *dump_filter_make(const char *expression, char *why, size_t why_len)
{
	struct dump_filter *filter = calloc(1, sizeof(*filter));
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 65535);

	if (!filter || !pcap) {
		snprintf(why, why_len, "no memory");
	} else if (pcap_compile(pcap, &filter->program, expression, 1, PCAP_NETMASK_UNKNOWN)) {
		snprintf(why, why_len, "filter '%s': %s", expression, pcap_geterr(pcap));
	} else {
		pcap_close(pcap);
		return filter;
	}
	if (pcap)
		pcap_close(pcap);
	free(filter);
	return NULL;
}

bool dump_filter_takes(const struct dump_filter *filter, const struct dump_frame *frame)
{
	const struct pcap_pkthdr head = {.caplen = frame->caplen, .len = frame->len};

	/* An expression applies to Ethernet frames only. */
	if (frame->record)
		return false;
	return pcap_offline_filter(&filter->program, &head, frame->data) != 0;
}

void dump_filter_free(struct dump_filter *filter)
{
	if (!filter)
		return;
	pcap_freecode(&filter->program);
	free(filter);
}
