/* SPDX-License-Identifier: BSD-3-Clause */

/* As test/unit/core/wire.c, of RoCE lanes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "drivers/roce/roce_wire.h"

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

static void every_field_is_at_the_bytes_of_version_3(void **state)
{
	(void)state;
	BYTES(weft_roce_rx_state,
	      .processed = {LE32(0x04030201), LE32(0x08070605), LE32(0x0c0b0a09), LE32(0x100f0e0d),
			    LE32(0x14131211), LE32(0x18171615), LE32(0x1c1b1a19),
			    LE32(0x201f1e1d)});
	BYTES(weft_roce_word, .processed = LE32(0x04030201), .check = LE32(0x08070605));
	BYTES(weft_roce_addr, .version = 0x01, .kind = 0x02, .mtu = 0x03, .v1 = 0x04,
	      .qpn = LE32(0x08070605), .qkey = LE32(0x0c0b0a09), .seg = LE32(0x100f0e0d),
	      .gid = {0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d,
		      0x1e, 0x1f, 0x20});
	BYTES(weft_roce_ep_addr, .version = 0x01, .num_qps = 0x02, .reads = 0x03, .reserved = 0x04,
	      .window = LE32(0x08070605), .psn = LE32(0x0c0b0a09), .word_rkey = LE32(0x100f0e0d),
	      .word_addr = LE64(0x1817161514131211),
	      .qpn = {LE32(0x1c1b1a19), LE32(0x201f1e1d), LE32(0x24232221), LE32(0x28272625),
		      LE32(0x2c2b2a29), LE32(0x302f2e2d), LE32(0x34333231), LE32(0x38373635)});
	BYTES(weft_roce_ud_head, .magic = LE16(0x0201), .version = 0x03, .am_id = 0x04,
	      .src_conn = LE32(0x08070605), .dst_conn = LE32(0x0c0b0a09),
	      .src_qkey = LE32(0x100f0e0d), .length = LE16(0x1211), .mtu = 0x13, .reserved = 0x14,
	      .cookie = LE64(0x1c1b1a1918171615));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_is_at_the_bytes_of_version_3),
	};

	return cmocka_run_group_tests_name("roce_bytes", tests, NULL, NULL);
}
