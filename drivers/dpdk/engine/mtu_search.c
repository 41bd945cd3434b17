/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/mtu_search.h"

#include <stddef.h>

/*
 * Usual MTUs: AWS 9001, 8500 between regions; bare metal 9000, a VXLAN in it 8950; GCP 8896, 1460;
 * Azure 3900; IB and old jumbo frames 4096; Ethernet 1500; OpenStack's VXLAN 1450; WireGuard 1420;
 * VPNs 1400; IPv6's least 1280.
 */
static const uint16_t usual[] = {9001, 9000, 8950, 8896, 8500, 4096, 3900,
				 1500, 1460, 1450, 1420, 1400, 1280};

#define NUM_USUAL (sizeof(usual) / sizeof(usual[0]))

static void try_size(struct weft_mtu_search *s, uint16_t size, uint64_t now)
{
	s->size = size;
	s->small_acks = 0;
	s->rounds = 0;
	s->first = (uint16_t)(s->id + 1);
	s->next = now;
}

void weft_mtu_search_begin(struct weft_mtu_search *s, uint16_t full, uint16_t least, uint8_t l2,
			   uint64_t now)
{
	*s = (struct weft_mtu_search){.begin = now, .full = full, .least = least, .l2 = l2};
	try_size(s, full, now);
}

void weft_mtu_search_again(struct weft_mtu_search *s, uint16_t full, uint16_t least, uint8_t l2,
			   uint16_t lo, uint64_t now)
{
	uint16_t id = s->id;

	weft_mtu_search_begin(s, full, least, l2, now);
	s->id = id;
	s->first = (uint16_t)(id + 1);
	s->lo = lo;
	s->quick = true;
}

enum weft_mtu_result weft_mtu_search_round(struct weft_mtu_search *s, uint64_t now,
					   unsigned int *big, unsigned int *small)
{
	uint64_t most = s->size == s->full && !s->quick ? WEFT_MTU_WAIT_FULL : WEFT_MTU_WAIT_STEP;
	uint64_t wait = WEFT_MTU_WAIT_MIN << (s->rounds < 10 ? s->rounds : 10);
	bool first = s->size == s->full && s->rounds == 0;

	*big = 0;
	*small = 0;
	if (now < s->next)
		return WEFT_MTU_GOES_ON;
	if (s->lo != 0 && now - s->begin >= WEFT_MTU_TIME)
		return WEFT_MTU_FOUND;
	/* Usually the first probe arrives, and no other is sent. */
	*big = first ? 1 : WEFT_MTU_BIG;
	*small = first && !s->quick ? 0 : 1;
	s->id++;
	if (s->rounds < UINT8_MAX)
		s->rounds++;
	s->next = now + (wait < most ? wait : most);
	return WEFT_MTU_GOES_ON;
}

/* @return the middle one of the usual sizes that are not decided; 0 = there is none */
static uint16_t usual_size(const struct weft_mtu_search *s)
{
	uint16_t left[NUM_USUAL + 1], size;
	unsigned int n = 0;

	for (size_t i = 0; i < NUM_USUAL; i++) {
		size = (uint16_t)(usual[i] + s->l2);
		if (size >= s->least && size > s->lo && size < s->hi)
			left[n++] = size;
	}
	/* The search must find out whether any frame passes, whatever the least size is. */
	if (s->lo == 0 && s->least < s->hi && (n == 0 || left[n - 1] != s->least))
		left[n++] = s->least;
	return n > 0 ? left[n / 2] : 0;
}

/* Choose the next size, after lo or hi has changed. */
static enum weft_mtu_result next_size(struct weft_mtu_search *s, uint64_t now)
{
	uint16_t size = usual_size(s);

	if (size == 0 && s->lo == 0)
		return WEFT_MTU_NARROW;
	if (size == 0 && s->hi - s->lo <= (int)WEFT_MTU_GRAIN)
		return WEFT_MTU_FOUND;
	if (size == 0) {
		/* Usually the path has a usual MTU, and the next size above fails. */
		size = (uint16_t)(s->lo + (s->between ? (s->hi - s->lo) / 2 : (int)WEFT_MTU_GRAIN));
		s->between = true;
	}
	try_size(s, size, now);
	return WEFT_MTU_GOES_ON;
}

static enum weft_mtu_result size_passed(struct weft_mtu_search *s, uint16_t size, uint64_t now)
{
	if (size <= s->lo || size > s->full || size < s->least)
		return WEFT_MTU_GOES_ON;
	s->lo = size;
	if (size == s->full)
		return WEFT_MTU_FOUND;
	/* The answer was late, so this size has not failed; only the full size is known to fail. */
	if (s->hi == 0 || size >= s->hi)
		s->hi = s->full;
	return next_size(s, now);
}

enum weft_mtu_result weft_mtu_search_ack(struct weft_mtu_search *s, uint16_t id, uint16_t size,
					 uint64_t now)
{
	if (size != 0)
		return size_passed(s, size, now);
	/* On a long path, answers to small probes of the previous size still arrive. */
	if (s->rounds == 0 || (uint16_t)(id - s->first) > (uint16_t)(s->id - s->first))
		return WEFT_MTU_GOES_ON;
	if (++s->small_acks < WEFT_MTU_SMALL_ACKS)
		return WEFT_MTU_GOES_ON;
	if (s->hi == 0 || s->size < s->hi)
		s->hi = s->size;
	return next_size(s, now);
}
