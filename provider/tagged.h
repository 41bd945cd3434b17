/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/tagged.h
 * The calls like fi_tsend() and fi_trecv(), and those that query messages before they are received.
 */
#ifndef WFI_TAGGED_H
#define WFI_TAGGED_H

#include "provider/op.h"
#include "provider/provider.h"

extern struct fi_ops_tagged wfi_tagged_ops;

/** The endpoint closes: drop messages that were claimed and not received. Locked. */
void wfi_claims_drop(struct wfi_ep *ep);

#endif /* WFI_TAGGED_H */
