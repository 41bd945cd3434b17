/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rma/target.h
 * Operations of peers on memory here.
 */
#ifndef WEFT_RMA_TARGET_H
#define WEFT_RMA_TARGET_H

#include <stddef.h>
#include <stdint.h>

#include "core/wire.h"

struct weft_msg_ep;

/** Count a PUT or counted atomic, which is done, or was refused with @p status. */
void weft_rma_counted(struct weft_msg_ep *me, struct weft_wire_ref ref, uint32_t flags,
		      uint32_t number, int status);
/** Validate and write a PUT's bytes. @return 0, or the error */
int weft_rma_write(struct weft_msg_ep *me, const struct weft_wire_put *put, const void *bytes,
		   size_t length);
/** Send replies, RMA_FLUSHED included, that found no room before. @return events */
unsigned int weft_rma_serve_answers(struct weft_msg_ep *me);

void weft_rma_recv_amov(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_put(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_put_in_place(struct weft_msg_ep *me, const void *header, const void *payload,
				size_t length);
void weft_rma_recv_get(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_amo(struct weft_msg_ep *me, const void *data, size_t payload);
void weft_rma_recv_flush(struct weft_msg_ep *me, const void *data, size_t payload);

#endif /* WEFT_RMA_TARGET_H */
