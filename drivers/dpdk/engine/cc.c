/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/cc_list.h"

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
