/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/gap.h"

#include <rte_common.h>

#define UNIT_NS 16000u
/* A block may be lost: this number of frames in a row has it. */
#define TIMES 5u

void raw_gap_note(struct raw_iface *iface, uint64_t ns)
{
	struct raw_gaps *g = &iface->gaps;

	g->total += ns;
	g->recent[g->count++ % RAW_GAPS_KEPT] =
		(uint16_t)RTE_MIN(ns / UNIT_NS, (uint64_t)UINT16_MAX);
}

void raw_gap_init(struct raw_conn *c, bool reads)
{
	c->gap = (struct raw_conn_gap){.reads = reads, .sent = c->iface->gaps.count};
}

/* The longest gap since the last block, among the newest RAW_GAPS_KEPT. */
static uint16_t longest_since(const struct raw_gaps *g, uint32_t sent)
{
	uint32_t n = RTE_MIN(g->count - sent, RAW_GAPS_KEPT);
	uint16_t most = 0;

	for (uint32_t i = 1; i <= n; i++)
		most = RTE_MAX(most, g->recent[(g->count - i) % RAW_GAPS_KEPT]);
	return most;
}

bool raw_gap_take(struct raw_conn *c, struct weft_frame_progress *block)
{
	const struct raw_gaps *g = &c->iface->gaps;
	struct raw_conn_gap *gap = &c->gap;

	if (!gap->reads)
		return false;
	if (gap->sent != g->count) {
		gap->longest = longest_since(g, gap->sent);
		gap->sent = g->count;
		gap->times = TIMES;
	}
	if (gap->times == 0)
		return false;
	gap->times--;
	block->longest = weft_put16(gap->longest);
	block->total = weft_put16((uint16_t)(g->total / UNIT_NS));
	return true;
}

void raw_gap_input(struct raw_conn *c, const struct weft_frame_progress *block)
{
	uint16_t longest = weft_get16(block->longest), total = weft_get16(block->total);
	uint16_t sum = (uint16_t)(total - c->gap.peer_total);

	if (c->gap.reported && (sum == 0 || (sum > INT16_MAX && longest + 1u < sum)))
		return; /* a repeated block, or one that a newer block has overtaken */
	/*
	 * The total is of the peer's iface: the first one includes gaps from before. The total has
	 * 16 bits, so a long gap may wrap it.
	 */
	if (!c->gap.reported || sum < longest)
		sum = longest;
	c->gap.reported = true;
	c->gap.peer_total = total;
	raw_count(c->iface, RAW_PEER_GAPS);
	c->iface->counter[RAW_PEER_GAP_NS] += (uint64_t)sum * UNIT_NS;
}
