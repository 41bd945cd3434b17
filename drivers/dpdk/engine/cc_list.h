/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/cc_list.h
 * The list of algorithms, for cc.c and for the files that define them.
 */
#ifndef WEFT_CC_LIST_H
#define WEFT_CC_LIST_H

#include "engine/cc.h"
#include "lane.h"

#define WEFT_CC_DECLARE(id, name) extern const struct weft_cc_ops weft_cc_##name;
WEFT_CC_LIST(WEFT_CC_DECLARE)
#undef WEFT_CC_DECLARE

#endif /* WEFT_CC_LIST_H */
