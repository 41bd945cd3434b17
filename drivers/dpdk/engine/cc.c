/* SPDX-License-Identifier: BSD-3-Clause */

/* The table of the algorithms; and the simplest: the configured window, whatever happens. */

#include "engine/cc.h"
#include "engine/cc_delay.h"
#include "lane.h"

static void fixed_init(struct weft_cc *cc, const struct weft_cc_conf *conf)
{
	cc->window = conf->most;
	cc->limit = conf->most;
}

static void fixed_ack(struct weft_cc *cc, const struct weft_cc_ack *ack)
{
	cc->marked += ack->marked;
}

static void fixed_loss(struct weft_cc *cc, uint32_t bytes, uint64_t now)
{
	(void)now;
	cc->lost_random += bytes;
}

static void fixed_timeout(struct weft_cc *cc, unsigned int tries, uint64_t now)
{
	(void)cc;
	(void)tries;
	(void)now;
}

static void fixed_nothing(struct weft_cc *cc)
{
	(void)cc;
}

static const struct weft_cc_ops weft_cc_fixed = {
	.name = "fixed",
	.init = fixed_init,
	.on_ack = fixed_ack,
	.on_loss = fixed_loss,
	.on_timeout = fixed_timeout,
	.on_spurious = fixed_nothing,
	.on_idle = fixed_nothing,
};

#define WEFT_CC_ENTRY(id, name) [WEFT_CC_##id] = &weft_cc_##name,
static const struct weft_cc_ops *const list[WEFT_CC_COUNT] = {WEFT_CC_LIST(WEFT_CC_ENTRY)};
#undef WEFT_CC_ENTRY

const struct weft_cc_ops *weft_cc_ops(unsigned int number)
{
	return number == WEFT_CC_AUTO || number >= WEFT_CC_COUNT ? &weft_cc_fixed : list[number];
}

const char *weft_cc_mode_name(const struct weft_cc *cc)
{
	static const char *const names[] = {[WEFT_CC_MODE_START] = "start",
					    [WEFT_CC_MODE_DELAY] = "delay",
					    [WEFT_CC_MODE_SHARE] = "share"};

	return cc->ops == &weft_cc_delay ? names[cc->delay.mode] : "";
}

const char *weft_cc_cut_name(const struct weft_cc *cc)
{
	static const char *const names[] = {
		[WEFT_CC_CUT_NONE] = "nothing",    [WEFT_CC_CUT_DELAY] = "delay",
		[WEFT_CC_CUT_MARKS] = "marks",     [WEFT_CC_CUT_QUEUE] = "a full queue",
		[WEFT_CC_CUT_LOSS] = "other loss", [WEFT_CC_CUT_TIMEOUT] = "timeouts",
		[WEFT_CC_CUT_TEST] = "a test"};

	return names[cc->cut];
}
