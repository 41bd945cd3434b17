/* SPDX-License-Identifier: BSD-3-Clause */

/* As test/unit/core/wire.c, of frames. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "frame/frame.h"

#define LE16(x) weft_put16(x)
#define LE32(x) weft_put32(x)
#define LE64(x) weft_put64(x)
#define BYTES(type, ...)                                          \
	do {                                                      \
		const struct type s = {__VA_ARGS__};              \
		counts_up(#type, (const uint8_t *)&s, sizeof(s)); \
	} while (0)

static void counts_up(const char *name, const uint8_t *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (p[i] != (uint8_t)(i + 1))
			fail_msg("struct %s: byte %zu is that of place %u", name, i, p[i]);
}

static void every_field_is_at_the_bytes_of_version_2(void **state)
{
	(void)state;
	BYTES(weft_frame_hdr, .magic = LE16(0x0201), .version = 0x03, .type = 0x04,
	      .flags = LE16(0x0605), .length = LE16(0x0807), .dst_conn = LE32(0x0c0b0a09),
	      .token = LE32(0x100f0e0d), .seq = LE32(0x14131211), .ack = LE32(0x18171615),
	      .src_conn = LE16(0x1a19), .path = 0x1b, .echo_path = 0x1c, .order = LE32(0x201f1e1d),
	      .ts = LE32(0x24232221), .ts_echo = LE32(0x28272625), .ts_hold = LE16(0x2a29));
	BYTES(weft_frame_sack, .words = LE16(0x0201), .reserved = LE16(0x0403));
	BYTES(weft_frame_ecn, .paths = LE16(0x0201), .reserved = LE16(0x0403));
	BYTES(weft_frame_ecn_path, .path = 0x01, .reserved = 0x02, .marked = LE16(0x0403));
	BYTES(weft_frame_msg, .length = LE16(0x0201), .am_id = 0x03, .flags = 0x04);
	BYTES(weft_frame_hello, .conn = LE32(0x04030201), .token = LE32(0x08070605),
	      .worker_id = LE64(0x100f0e0d0c0b0a09), .iface_id = LE64(0x1817161514131211),
	      .peer_iface = LE64(0x201f1e1d1c1b1a19), .first_seq = LE32(0x24232221),
	      .rx_frames = LE32(0x28272625), .rx_bufs = LE32(0x2c2b2a29),
	      .frame_size = LE16(0x2e2d), .csum = 0x2f, .paths = 0x30, .features = LE32(0x34333231),
	      .udp_port = LE16(0x3635), .steer = 0x37, .rx_shift = 0x38,
	      .secret = LE64(0x403f3e3d3c3b3a39), .cookie = LE64(0x4847464544434241));
	BYTES(weft_frame_probe, .id = LE16(0x0201), .frame_size = LE16(0x0403));
	BYTES(weft_frame_ready, .frame_size = LE16(0x0201), .paths = LE16(0x0403));
	BYTES(weft_frame_reset, .reason = LE16(0x0201), .version_min = 0x03, .version_max = 0x04,
	      .echo_conn = LE32(0x08070605), .echo_token = LE32(0x0c0b0a09));
	BYTES(weft_frame_retry, .cookie = LE64(0x0807060504030201));
	BYTES(weft_frame_challenge, .number = LE64(0x0807060504030201),
	      .proof = LE64(0x100f0e0d0c0b0a09));
	BYTES(weft_frame_part, .offset = LE16(0x0201), .total = LE16(0x0403));
	BYTES(weft_frame_addr, .version = 0x01, .flags = 0x02, .udp_port = LE16(0x0403),
	      .vlan = LE16(0x0605), .frame_size = LE16(0x0807), .ip = LE32(0x0c0b0a09),
	      .prefix = 0x0d, .queues = 0x0e, .mac = {0x0f, 0x10, 0x11, 0x12, 0x13, 0x14},
	      .reserved = LE32(0x18171615), .iface_id = LE64(0x201f1e1d1c1b1a19));
	BYTES(weft_frame_addr6,
	      .ip6 = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d,
		      0x0e, 0x0f, 0x10},
	      .prefix = 0x11, .reserved = {0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_is_at_the_bytes_of_version_2),
	};

	return cmocka_run_group_tests_name("frame_bytes", tests, NULL, NULL);
}
