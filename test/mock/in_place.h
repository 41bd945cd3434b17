/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mock/in_place.h
 * A message as a lane delivers it that leaves it where the peer can change it: lane.h,
 * weft_lane_recv_in_place_cb.
 */
#ifndef MOCK_IN_PLACE_H
#define MOCK_IN_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire.h"
#include "lane.h"

#define MOCK_IN_PLACE_HEAD 64u
#define MOCK_IN_PLACE_MAX UINT16_MAX /* no frame is longer */

static inline size_t mock_in_place_header(uint8_t id, const void *data)
{
	if (id == WEFT_WIRE_EAGER)
		return sizeof(struct weft_wire_eager);
	return id == WEFT_WIRE_PUT ? sizeof(struct weft_wire_put)
				   : weft_msg_split(id, data, 0, NULL);
}

/** The message that is being received in place; NULL = none. Weak: files share the definition. */
__attribute__((weak)) const uint8_t *mock_shared;
__attribute__((weak)) size_t mock_shared_len;

/**
 * The peer overwrites the header as soon as it has been copied. Both copies have exactly their
 * length, and are gone after the call.
 */
static inline bool mock_in_place(weft_lane_recv_in_place_cb recv, struct weft_lane_ep *lane_ep,
				 uint8_t id, const void *data, size_t length)
{
	uint8_t *head, *shared;
	bool taken;

	if (!recv || length < MOCK_IN_PLACE_HEAD || length > MOCK_IN_PLACE_MAX)
		return false;
	head = malloc(MOCK_IN_PLACE_HEAD);
	shared = malloc(length);
	if (!head || !shared)
		abort();
	memcpy(head, data, MOCK_IN_PLACE_HEAD);
	memcpy(shared, data, length);
	memset(shared, 0xff, mock_in_place_header(id, data));
	mock_shared = shared;
	mock_shared_len = length;
	taken = recv(lane_ep, id, head, MOCK_IN_PLACE_HEAD, shared, length);
	mock_shared = NULL;
	free(head);
	free(shared);
	return taken;
}

#endif /* MOCK_IN_PLACE_H */
