/* SPDX-License-Identifier: BSD-3-Clause */

/* WIREUP messages: a run of pieces, each preceded by its length, put together and judged. */

#include <stdlib.h>
#include <string.h>

#include "wireup/wireup.h"

static void one(struct weft_conns *conns, struct weft_lane_ep *lane_ep, const uint8_t *data,
		size_t n)
{
	struct weft_wire_wireup head;
	struct weft_partial *done;
	struct weft_wireup_msg m;
	const void *records;
	const char *why;
	uint8_t *exact;
	size_t len;

	exact = malloc(n > 0 ? n : 1);
	if (!exact)
		return;
	memcpy(exact, data, n);
	if (weft_partial_add(conns, lane_ep, exact, n, &head, &records, &len, &done) == 1) {
		if (weft_wireup_parse(&head, records, len, &m, &why) == 0 &&
		    m.num_lanes > WEFT_MAX_LANES)
			abort();
		weft_partial_done(done);
	}
	free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weft_conns *conns = calloc(1, sizeof(*conns));
	static const struct weft_lane_ops ops; /* one that can't tell hosts apart */
	struct weft_lane_ep lane_ep = {.ops = &ops};
	struct weft_wire_wireup head;
	size_t n;

	if (!conns)
		return 0;
	/* As it is, as a whole message... */
	one(conns, &lane_ep, data, size);
	/* ...with lengths that fit, so that the records are looked at... */
	if (size >= sizeof(head) && size <= sizeof(head) + WEFT_WIREUP_MAX) {
		uint8_t *copy = malloc(size);

		if (copy) {
			memcpy(&head, data, sizeof(head));
			head.total = weft_put16((uint16_t)(size - sizeof(head)));
			head.offset = weft_put16(0);
			memcpy(copy, data, size);
			memcpy(copy, &head, sizeof(head));
			one(conns, &lane_ep, copy, size);
			free(copy);
		}
	}
	/* ...and cut up. */
	while (size > 1) {
		n = data[0] < size - 1 ? data[0] : size - 1;
		one(conns, &lane_ep, data + 1, n);
		data += 1 + n;
		size -= 1 + n;
	}
	weft_partial_forget(conns, &lane_ep);
	if (conns->num_partials != 0)
		abort();
	free(conns);
	return 0;
}
