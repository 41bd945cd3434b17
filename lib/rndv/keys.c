/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys let the peer's lanes read or write the memory of one message. There is one per lane, with
 * the lane's number, which is the same at both ends. A record contains no addresses.
 */

#include "mem/mem.h"
#include "rndv/rndv.h"

uint32_t weft_rndv_native_lanes(const struct weft_msg_ep *me, bool put)
{
	uint32_t mask = 0;

	for (uint32_t m = me->rndv_lanes; m; m &= m - 1) {
		int i = __builtin_ctz(m);

		if (put ? me->lanes[i].max_put : me->lanes[i].max_get)
			mask |= 1u << i;
	}
	return mask;
}

size_t weft_rndv_keys_write(const struct weft_msg_ep *me, uint32_t lanes,
			    const struct weft_mem *mem, const void *buf, void *record)
{
	struct weft_wire_record *r = record;
	struct weft_wire_keys *keys = (void *)(r + 1);
	struct weft_wire_lane_key *key = (void *)(keys + 1);
	size_t length;

	for (; lanes; lanes &= lanes - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(lanes);
		struct weft_lane_iface *iface = me->lanes[i].lane_ep->iface;
		struct weft_mem_lane *ml = weft_mem_lane_of(mem, iface);

		if (!ml || !iface->driver->mem_key)
			continue;
		*key++ = (struct weft_wire_lane_key){
			.lane = (uint8_t)i,
			.key = weft_put64(iface->driver->mem_key(iface, ml)),
		};
	}
	if ((void *)key == (void *)(keys + 1))
		return 0;
	keys->offset = weft_put64((uint64_t)((const uint8_t *)buf - (const uint8_t *)mem->address));
	length = (size_t)((uint8_t *)key - (uint8_t *)keys);
	*r = (struct weft_wire_record){weft_put16(WEFT_MSG_RECORD_KEYS),
				       weft_put16((uint16_t)length)};
	return sizeof(*r) + length;
}

void weft_rndv_keys_read(struct weft_rndv_offer *offer, const void *records, size_t length)
{
	const uint8_t *p = records, *end = p + length;
	const struct weft_wire_record *r;
	const struct weft_wire_keys *keys;
	const struct weft_wire_lane_key *key;
	size_t n;

	offer->lanes = 0;
	for (; p < end; p += sizeof(*r) + weft_get16(r->length)) {
		r = (const void *)p;
		if (weft_get16(r->type) != WEFT_MSG_RECORD_KEYS)
			continue;
		keys = (const void *)(r + 1);
		key = (const void *)(keys + 1);
		offer->offset = weft_get64(keys->offset);
		n = (weft_get16(r->length) - sizeof(*keys)) / sizeof(*key);
		for (; n; n--, key++) {
			if (key->lane >= WEFT_MAX_LANES)
				continue; /* the peer's version has more lanes */
			offer->lanes |= 1u << key->lane;
			offer->key[key->lane] = weft_get64(key->key);
		}
		return;
	}
}
