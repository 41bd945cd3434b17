/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Each field at its bytes, as version 3.0 has them. The numbers were recorded from a build of that
 * version, and nothing here is made from wire.def. A field contains the numbers of its bytes, so
 * each struct has the bytes 1, 2, 3 and so on. A change of a layout needs another version
 * (doc/wire.md, "Versions"), and other numbers here.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "lane_tap.h"
#include "msg/msg.h"

#define FOR_VERSION 3

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

static void connecting(void)
{
	BYTES(weft_wire_ref, .index = LE32(0x04030201), .generation = LE32(0x08070605));
	BYTES(weft_wire_wireup, .type = 0x01, .major = 0x02, .minor = 0x03, .lane = 0x04,
	      .conn_sn = LE32(0x08070605), .src_worker = LE64(0x100f0e0d0c0b0a09),
	      .dst_worker = LE64(0x1817161514131211),
	      .src_ep = {.index = LE32(0x1c1b1a19), .generation = LE32(0x201f1e1d)},
	      .dst_ep = {.index = LE32(0x24232221), .generation = LE32(0x28272625)},
	      .status = LE16(0x2a29), .lane_epoch = LE16(0x2c2b), .total = LE16(0x2e2d),
	      .offset = LE16(0x302f), .src_secret = LE64(0x3837363534333231),
	      .dst_secret = LE64(0x403f3e3d3c3b3a39));
	BYTES(weft_wire_lane, .lane = 0x01, .lower_iface = 0x02, .higher_iface = 0x03,
	      .flags = 0x04, .max_frag = LE32(0x08070605), .bandwidth = LE32(0x0c0b0a09),
	      .latency = LE32(0x100f0e0d));
	BYTES(weft_wire_ep_addr, .lane = 0x01, .reserved = 0x02);
	BYTES(weft_wire_boot, .src_iface = 0x01, .dst_iface = 0x02, .attempt = LE16(0x0403));
	BYTES(weft_wire_model, .bcopy_bw = LE32(0x04030201), .reserved = LE32(0x08070605));
	BYTES(weft_wire_next_sn, .conn_sn = LE32(0x04030201));
	BYTES(weft_wire_credit, .bytes = LE64(0x0807060504030201), .seq = LE32(0x0c0b0a09),
	      .small = LE32(0x100f0e0d), .am_seq = LE32(0x14131211));
	BYTES(weft_wire_record, .type = LE16(0x0201), .length = LE16(0x0403));
	BYTES(weft_wire_address, .magic = LE32(0x04030201), .major = 0x05, .minor = 0x06,
	      .length = LE16(0x0807), .crc = LE32(0x0c0b0a09), .reserved = LE32(0x100f0e0d),
	      .worker_id = LE64(0x1817161514131211), .features = LE64(0x201f1e1d1c1b1a19),
	      .name_len = 0x21, .num_ifaces = 0x22, .reserved2 = LE16(0x2423),
	      .secret = LE64(0x2c2b2a2928272625), .host_id = LE64(0x34333231302f2e2d));
	BYTES(weft_wire_iface, .index = 0x01, .driver_len = 0x02, .addr_len = 0x03,
	      .reserved = 0x04, .device = LE64(0x0c0b0a0908070605), .features = LE32(0x100f0e0d),
	      .bandwidth = LE32(0x14131211), .latency = LE32(0x18171615),
	      .send_overhead = LE32(0x1c1b1a19), .recv_overhead = LE32(0x201f1e1d),
	      .reg_cost = LE32(0x24232221), .reg_growth = LE32(0x28272625),
	      .max_short = LE32(0x2c2b2a29), .max_bcopy = LE32(0x302f2e2d),
	      .max_zcopy = LE32(0x34333231), .ep_addr_len = 0x35, .domain = 0x36,
	      .reserved2 = LE16(0x3837));
	BYTES(weft_wire_boot_address, .magic = LE16(0x0201), .major = 0x03, .iface = 0x04,
	      .crc = LE32(0x08070605), .worker_id = LE64(0x100f0e0d0c0b0a09),
	      .secret = LE64(0x1817161514131211), .digest = LE64(0x201f1e1d1c1b1a19),
	      .host = LE32(0x24232221), .host_lane = 0x25,
	      .bytes = {0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f, 0x30, 0x31,
			0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38});
	BYTES(weft_wire_rkey, .magic = LE32(0x04030201), .major = 0x05, .minor = 0x06,
	      .length = LE16(0x0807), .crc = LE32(0x0c0b0a09), .rights = LE32(0x100f0e0d),
	      .key = LE64(0x1817161514131211), .size = LE64(0x201f1e1d1c1b1a19), .low = 0x21,
	      .num_domains = 0x22, .num_workers = 0x23, .reserved = 0x24,
	      .reserved2 = LE32(0x28272625));
	BYTES(weft_wire_rkey_domain, .key = LE64(0x0807060504030201), .domain = 0x09,
	      .reserved = {0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10});
}

static void tagged_messages(void)
{
	BYTES(weft_wire_keys, .offset = LE64(0x0807060504030201));
	BYTES(weft_wire_lane_key, .lane = 0x01, .reserved = 0x02, .key = LE64(0x0a09080706050403));
	BYTES(weft_wire_eager, .seq = LE32(0x04030201), .tag = LE64(0x0c0b0a0908070605));
	BYTES(weft_wire_eager_sync, .e = {.seq = LE32(0x04030201), .tag = LE64(0x0c0b0a0908070605)},
	      .req = {.index = LE32(0x100f0e0d), .generation = LE32(0x14131211)});
	BYTES(weft_wire_frag, .e = {.seq = LE32(0x04030201), .tag = LE64(0x0c0b0a0908070605)},
	      .total = LE64(0x14131211100f0e0d), .offset = LE64(0x1c1b1a1918171615));
	BYTES(weft_wire_frag_sync,
	      .f = {.e = {.seq = LE32(0x04030201), .tag = LE64(0x0c0b0a0908070605)},
		    .total = LE64(0x14131211100f0e0d),
		    .offset = LE64(0x1c1b1a1918171615)},
	      .req = {.index = LE32(0x201f1e1d), .generation = LE32(0x24232221)});
	BYTES(weft_wire_rts, .e = {.seq = LE32(0x04030201), .tag = LE64(0x0c0b0a0908070605)},
	      .total = LE64(0x14131211100f0e0d),
	      .req = {.index = LE32(0x18171615), .generation = LE32(0x1c1b1a19)},
	      .flags = LE32(0x201f1e1d));
	BYTES(weft_wire_rtr, .sreq = {.index = LE32(0x04030201), .generation = LE32(0x08070605)},
	      .rreq = {.index = LE32(0x0c0b0a09), .generation = LE32(0x100f0e0d)},
	      .offset = LE64(0x1817161514131211), .length = LE64(0x201f1e1d1c1b1a19),
	      .flags = LE32(0x24232221));
	BYTES(weft_wire_data, .rreq = {.index = LE32(0x04030201), .generation = LE32(0x08070605)},
	      .offset = LE64(0x100f0e0d0c0b0a09));
	BYTES(weft_wire_ats, .sreq = {.index = LE32(0x04030201), .generation = LE32(0x08070605)},
	      .status = LE32(0x0c0b0a09));
	BYTES(weft_wire_credit_window,
	      .credit = {.bytes = LE64(0x0807060504030201),
			 .seq = LE32(0x0c0b0a09),
			 .small = LE32(0x100f0e0d),
			 .am_seq = LE32(0x14131211)},
	      .type = LE16(0x1615), .length = LE16(0x1817), .window = LE64(0x201f1e1d1c1b1a19));
	BYTES(weft_wire_abort, .e = {.seq = LE32(0x04030201), .tag = LE64(0x0c0b0a0908070605)},
	      .rreq = {.index = LE32(0x100f0e0d), .generation = LE32(0x14131211)},
	      .total = LE64(0x1c1b1a1918171615), .status = LE32(0x201f1e1d),
	      .flags = LE32(0x24232221));
	BYTES(weft_wire_pull, .sreq = {.index = LE32(0x04030201), .generation = LE32(0x08070605)},
	      .rreq = {.index = LE32(0x0c0b0a09), .generation = LE32(0x100f0e0d)},
	      .offset = LE64(0x1817161514131211), .length = LE64(0x201f1e1d1c1b1a19),
	      .lane = LE16(0x2221), .flags = LE16(0x2423));
	BYTES(weft_wire_withdraw, .e = {.seq = LE32(0x04030201), .tag = LE64(0x0c0b0a0908070605)},
	      .sreq = {.index = LE32(0x100f0e0d), .generation = LE32(0x14131211)},
	      .flags = LE32(0x18171615));
	BYTES(weft_wire_put_done,
	      .rreq = {.index = LE32(0x04030201), .generation = LE32(0x08070605)},
	      .offset = LE64(0x100f0e0d0c0b0a09), .length = LE64(0x1817161514131211));
	BYTES(weft_wire_am, .seq = LE32(0x04030201), .id = LE16(0x0605),
	      .header_length = LE16(0x0807));
	BYTES(weft_wire_am_rts, .seq = LE32(0x04030201), .id = LE16(0x0605),
	      .header_length = LE16(0x0807), .total = LE64(0x100f0e0d0c0b0a09),
	      .req = {.index = LE32(0x14131211), .generation = LE32(0x18171615)},
	      .flags = LE32(0x1c1b1a19));
	BYTES(weft_wire_am_frag,
	      .am = {.seq = LE32(0x04030201), .id = LE16(0x0605), .header_length = LE16(0x0807)},
	      .total = LE64(0x100f0e0d0c0b0a09), .offset = LE64(0x1817161514131211));
}

static void other_messages(void)
{
	BYTES(weft_wire_ext, .id = 0x01, .flags = 0x02, .channel = LE16(0x0403),
	      .source_channel = LE16(0x0605), .reserved = LE16(0x0807),
	      .imm = LE64(0x100f0e0d0c0b0a09));
	BYTES(weft_wire_put, .key = LE64(0x0807060504030201), .offset = LE64(0x100f0e0d0c0b0a09),
	      .ref = {.index = LE32(0x14131211), .generation = LE32(0x18171615)},
	      .flags = LE32(0x1c1b1a19));
	BYTES(weft_wire_put_note,
	      .put = {.key = LE64(0x0807060504030201),
		      .offset = LE64(0x100f0e0d0c0b0a09),
		      .ref = {.index = LE32(0x14131211), .generation = LE32(0x18171615)},
		      .flags = LE32(0x1c1b1a19)},
	      .total = LE64(0x24232221201f1e1d), .number = LE32(0x28272625));
	BYTES(weft_wire_get, .key = LE64(0x0807060504030201), .offset = LE64(0x100f0e0d0c0b0a09),
	      .length = LE64(0x1817161514131211), .local = LE64(0x201f1e1d1c1b1a19),
	      .ref = {.index = LE32(0x24232221), .generation = LE32(0x28272625)},
	      .flags = LE32(0x2c2b2a29));
	BYTES(weft_wire_amo, .key = LE64(0x0807060504030201), .offset = LE64(0x100f0e0d0c0b0a09),
	      .operand = LE64(0x1817161514131211), .compare = LE64(0x201f1e1d1c1b1a19),
	      .ref = {.index = LE32(0x24232221), .generation = LE32(0x28272625)}, .op = 0x29,
	      .width = 0x2a, .flags = LE16(0x2c2b), .number = LE32(0x302f2e2d));
	BYTES(weft_wire_amo_rep, .ref = {.index = LE32(0x04030201), .generation = LE32(0x08070605)},
	      .value = LE64(0x100f0e0d0c0b0a09));
	BYTES(weft_wire_rma_nak, .ref = {.index = LE32(0x04030201), .generation = LE32(0x08070605)},
	      .length = LE64(0x100f0e0d0c0b0a09), .status = LE16(0x1211), .flags = LE16(0x1413));
	BYTES(weft_wire_rma_flush, .count = LE64(0x0807060504030201), .flags = LE32(0x0c0b0a09));
	BYTES(weft_wire_rma_flushed, .count = LE64(0x0807060504030201),
	      .naks = LE64(0x100f0e0d0c0b0a09), .errors = LE64(0x1817161514131211),
	      .status = LE32(0x1c1b1a19), .first = LE32(0x201f1e1d), .last = LE32(0x24232221));
	BYTES(weft_wire_key_req, .key = LE64(0x0807060504030201));
	BYTES(weft_wire_key, .key = LE64(0x0807060504030201), .size = LE64(0x100f0e0d0c0b0a09),
	      .rights = LE32(0x14131211), .low = 0x15, .num_domains = 0x16,
	      .reserved = LE16(0x1817));
	BYTES(weft_wire_amov, .key = LE64(0x0807060504030201), .offset = LE64(0x100f0e0d0c0b0a09),
	      .ref = {.index = LE32(0x14131211), .generation = LE32(0x18171615)},
	      .local = LE64(0x201f1e1d1c1b1a19), .op = 0x21, .type = 0x22, .flags = LE16(0x2423),
	      .number = LE32(0x28272625), .count = LE32(0x2c2b2a29));
}

static void records(void)
{
	BYTES(weft_record_head, .magic = LE16(0x0201), .version = 0x03, .kind = 0x04, .am_id = 0x05,
	      .lane = 0x06, .flags = LE16(0x0807), .length = LE32(0x0c0b0a09),
	      .conn_sn = LE32(0x100f0e0d), .from = LE64(0x1817161514131211),
	      .to = LE64(0x201f1e1d1c1b1a19));
	BYTES(weft_record_native, .offset = LE64(0x0807060504030201),
	      .key = LE64(0x100f0e0d0c0b0a09), .local = LE64(0x1817161514131211),
	      .compare = LE64(0x201f1e1d1c1b1a19), .ref_index = LE32(0x24232221),
	      .ref_generation = LE32(0x28272625));
}

/* @behaviour Y20 */
static void every_field_is_at_the_bytes_of_the_version(void **state)
{
	(void)state;
	connecting();
	tagged_messages();
	other_messages();
	records();
	assert_int_equal(WEFT_WIRE_MAJOR, FOR_VERSION);
}

/*
 * Before 2, builds of one number had PUTs of 24 and of 28 bytes: the next field was taken for data.
 */
static void a_put_of_the_version_before_is_malformed_or_refused(void **state)
{
	uint8_t put[28] = {0};

	(void)state;
	for (size_t n = 0; n <= sizeof(put); n++)
		assert_int_equal(weft_wire_check(WEFT_WIRE_PUT, put, n), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_is_at_the_bytes_of_the_version),
		cmocka_unit_test(a_put_of_the_version_before_is_malformed_or_refused),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
