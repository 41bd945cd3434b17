/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What hostile messages cost their receiver: heap and time per message, until the endpoint fails or
 * NUM have come. Run by hand; doc/results/2026-11-22-peers.md has its table.
 *
 *	hostile_bench [NUM]
 */

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mock/pair.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/** Message number @p i: fills @p buf. @return its length, wire header of the message included */
struct hostile {
	const char *name;
	uint8_t id;
	size_t (*make)(uint8_t *buf, uint32_t i);
	bool deaf; /**< takes no answer */
};

static struct weft_wire_rts rts_of(uint32_t i)
{
	return (struct weft_wire_rts){.e = {weft_put32(i), weft_put64(1)},
				      .total = weft_put64(1u << 20),
				      .req = {weft_put32(i), weft_put32(1)},
				      .flags = weft_put32(WEFT_RTS_F_PULL)};
}

static size_t make_rts(uint8_t *buf, uint32_t i)
{
	struct weft_wire_rts rts = rts_of(i);

	memcpy(buf, &rts, sizeof(rts));
	return sizeof(rts);
}

static size_t make_rts_keys(uint8_t *buf, uint32_t i)
{
	struct {
		struct weft_wire_rts rts;
		struct weft_wire_record rec;
		struct weft_wire_keys keys;
		struct weft_wire_lane_key key;
	} __attribute__((packed)) m = {
		.rts = rts_of(i),
		.rec = {weft_put16(WEFT_MSG_RECORD_KEYS),
			weft_put16(sizeof(m.keys) + sizeof(m.key))},
	};

	memcpy(buf, &m, sizeof(m));
	return sizeof(m);
}

static size_t make_abort(uint8_t *buf, uint32_t i)
{
	struct weft_wire_abort a = {.e = {weft_put32(i), weft_put64(1)},
				    .total = weft_put64(1),
				    .status = weft_put32(5)};

	memcpy(buf, &a, sizeof(a));
	return sizeof(a);
}

static size_t make_range(uint8_t *buf, uint32_t i)
{
	struct weft_wire_frag f = {.e = {weft_put32(0), weft_put64(1)},
				   .total = weft_put64(1u << 20),
				   .offset = weft_put64((1u << 20) - 1 - 2 * (uint64_t)i)};

	memcpy(buf, &f, sizeof(f));
	buf[sizeof(f)] = 0;
	return sizeof(f) + 1;
}

static size_t make_am_rts(uint8_t *buf, uint32_t i)
{
	struct weft_wire_am_rts r = {.seq = weft_put32(i),
				     .id = weft_put16(9),
				     .total = weft_put64(1u << 20),
				     .req = {weft_put32(i), weft_put32(1)},
				     .flags = weft_put32(WEFT_RTS_F_PULL)};

	memcpy(buf, &r, sizeof(r));
	return sizeof(r);
}

static void run(const struct hostile *h, uint32_t num)
{
	uint8_t *buf = malloc(256);
	size_t before, each = 0, length = 0;
	struct pair p;
	uint32_t i;
	double t;

	pair_defaults(&p);
	pair_open(&p, 1, NULL);
	p.null = !h->deaf; /* what is answered goes nowhere */
	if (h->deaf)
		pair_room(&p, 1, 0);
	before = heap();
	t = now();
	for (i = 0; i < num && p.fail_status[1] == 0; i++) {
		length = h->make(buf, i);
		weft_msg_recv(&p.ep[1], 0, h->id, buf, length);
		if (p.fail_status[1])
			break;
		if (i % 4096 == 4095)
			each = (heap() - before) / (i + 1);
	}
	t = now() - t;
	printf("%-40s %5zu B  %8u  %10zu  %8.1f ns  %s\n", h->name, length, i, each,
	       i ? t / i * 1e9 : 0, i < num ? "endpoint failed" : "goes on");
	free(buf);
}

int main(int argc, char **argv)
{
	static const struct hostile list[] = {
		{"RTS that nobody receives", WEFT_WIRE_RTS, make_rts, false},
		{"the same with keys", WEFT_WIRE_RTS, make_rts_keys, false},
		{"ABORT before any piece", WEFT_WIRE_ABORT, make_abort, false},
		{"one-byte islands, backwards", WEFT_WIRE_FRAG, make_range, false},
		{"AM_RTS refused, answers not taken", WEFT_WIRE_AM_RTS, make_am_rts, true},
	};
	uint32_t num = argc > 1 ? (uint32_t)atol(argv[1]) : 400000;

	printf("%-40s %7s  %8s  %10s  %11s\n", "message", "size", "taken", "heap B each",
	       "CPU each");
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		run(&list[i], num);
	return 0;
}
