/* SPDX-License-Identifier: BSD-3-Clause */
/* A message that carries a range of bytes can be taken apart: the header of each part. */

#include <assert.h>
#include <string.h>

#include "msg/layer.h"
#include "core/wire.h"

static_assert(sizeof(struct weft_wire_frag_sync) <= WEFT_LANE_PIECE_ROOM, "room");
static_assert(sizeof(struct weft_wire_data) <= WEFT_LANE_PIECE_ROOM, "room");

/*
 * What carries a range of bytes can be taken apart: each part is checked and counted as if it had
 * been sent so.
 */
size_t weft_msg_split(uint8_t id, const void *msg, size_t had, void *piece)
{
	struct weft_wire_frag_sync *fs;
	struct weft_wire_data *data;
	struct weft_wire_frag *frag;

	switch (id) {
	case WEFT_WIRE_FRAG:
		frag = piece ? (struct weft_wire_frag *)piece - 1 : NULL;
		if (frag) {
			memcpy(frag, msg, sizeof(*frag));
			frag->offset = weft_put64(weft_get64(frag->offset) + had - sizeof(*frag));
		}
		return sizeof(*frag);
	case WEFT_WIRE_FRAG_SYNC:
		fs = piece ? (struct weft_wire_frag_sync *)piece - 1 : NULL;
		if (fs) {
			memcpy(fs, msg, sizeof(*fs));
			fs->f.offset = weft_put64(weft_get64(fs->f.offset) + had - sizeof(*fs));
		}
		return sizeof(*fs);
	case WEFT_WIRE_DATA:
	case WEFT_WIRE_GET_DATA:
		data = piece ? (struct weft_wire_data *)piece - 1 : NULL;
		if (data) {
			memcpy(data, msg, sizeof(*data));
			data->offset = weft_put64(weft_get64(data->offset) + had - sizeof(*data));
		}
		return sizeof(*data);
	default:
		return 0;
	}
}
