/* SPDX-License-Identifier: BSD-3-Clause */

#include "capture/filter.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_common.h>

#include "base/text.h"

#define SNAPLEN 262144
#define LOOK 2048u

struct weft_capture_filter {
	struct bpf_program program;
	atomic_uint users;
};

int weft_capture_filter_make(const char *expression, struct weft_capture_filter **out, char *why,
			     size_t why_len)
{
	struct weft_capture_filter *f;
	pcap_t *p;
	char shown[128];
	int rc = 0;

	*out = NULL;
	if (!expression[0])
		return 0;
	f = calloc(1, sizeof(*f));
	p = pcap_open_dead(DLT_EN10MB, SNAPLEN);
	if (!f || !p) {
		snprintf(why, why_len, "no memory for a filter");
		rc = -ENOMEM;
	} else if (pcap_compile(p, &f->program, expression, 1, PCAP_NETMASK_UNKNOWN)) {
		weft_text_copy(shown, sizeof(shown), expression, strlen(expression));
		snprintf(why, why_len, "filter '%s': %s", shown, pcap_geterr(p));
		rc = -EINVAL;
	}
	if (p)
		pcap_close(p);
	if (rc) {
		free(f);
		return rc;
	}
	atomic_init(&f->users, 1);
	*out = f;
	return 0;
}

struct weft_capture_filter *weft_capture_filter_share(struct weft_capture_filter *f)
{
	/* Relaxed: the caller holds a reference. */
	if (f)
		atomic_fetch_add_explicit(&f->users, 1, memory_order_relaxed);
	return f;
}

void weft_capture_filter_free(struct weft_capture_filter *f)
{
	/* Acquire and release: all other users have finished with it. */
	if (!f || atomic_fetch_sub_explicit(&f->users, 1, memory_order_acq_rel) > 1)
		return;
	pcap_freecode(&f->program);
	free(f);
}

bool weft_capture_filter_takes(const struct weft_capture_filter *f, const struct rte_mbuf *m)
{
	struct pcap_pkthdr h = {.len = m->pkt_len};
	uint8_t copy[LOOK];
	const uint8_t *data;

	h.caplen = m->nb_segs == 1 ? m->data_len : RTE_MIN(m->pkt_len, LOOK);
	data = rte_pktmbuf_read(m, 0, h.caplen, copy);
	return data && pcap_offline_filter(&f->program, &h, data) != 0;
}
