/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rma/native.h
 * Native operations on remote memory: lanes that access it themselves, and the initiator's buffer.
 */
#ifndef WEFT_RMA_NATIVE_H
#define WEFT_RMA_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct weft_request;

/** Can native lanes execute the operation? Registers the buffer if that is worth it. */
bool weft_rma_native_begin(struct weft_request *req);
/** Hand over to native lanes. @return 0, -EAGAIN, or the lane's error */
int weft_rma_native_step(struct weft_request *req);
/** Release the registrations that a native operation made; the user's stays. */
void weft_rma_local_put(struct weft_request *req);

#endif /* WEFT_RMA_NATIVE_H */
