/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file multi.h
 * FI_MULTI_RECV: a buffer for several messages, one behind the other. A buffer has one receive at a
 * time, for the rest of its space. An endpoint has one such receive, for the buffer posted first:
 * other buffers wait until that is full.
 */
#ifndef WFI_MULTI_H
#define WFI_MULTI_H

#include "provider/op.h"

/** Post an operation with buffer, source and params. Locked. @return 0 or Weft's error */
int wfi_multi_post(struct wfi_op *op);
/** A message has come, or an error. Locked. */
void wfi_multi_received(struct wfi_op *op, const struct weft_completion *c);
/** Cancel an operation that waits. Locked. @return was there one? */
bool wfi_multi_cancel(struct wfi_ep *ep, const void *context);
/** The endpoint closes. Locked. */
void wfi_multi_close(struct wfi_ep *ep);

#endif /* WFI_MULTI_H */
