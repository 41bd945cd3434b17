/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The version of the wire belongs to its layouts: who changes one of these must give the version
 * another number (doc/wire.md, "Versions"), and this list with it.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "msg/msg.h"

#define FOR_VERSION 3

static const struct {
	const char *name;
	size_t is, was;
} layouts[] = {
#define LAYOUT(name, size)                                   \
	{                                                    \
#name, sizeof(struct weft_wire_##name), size \
	}
	LAYOUT(eager, 12),     LAYOUT(eager_sync, 20),  LAYOUT(frag, 28),
	LAYOUT(frag_sync, 36), LAYOUT(rts, 32),         LAYOUT(rtr, 36),
	LAYOUT(data, 16),      LAYOUT(ats, 12),         LAYOUT(credit, 20),
	LAYOUT(abort, 36),     LAYOUT(pull, 36),        LAYOUT(withdraw, 24),
	LAYOUT(put_done, 24),  LAYOUT(am, 8),           LAYOUT(am_rts, 28),
	LAYOUT(am_frag, 24),   LAYOUT(put, 28),         LAYOUT(get, 44),
	LAYOUT(amo, 48),       LAYOUT(amo_rep, 16),     LAYOUT(rma_nak, 20),
	LAYOUT(rma_flush, 12), LAYOUT(rma_flushed, 36), LAYOUT(wireup, 64),
	LAYOUT(record, 4),     LAYOUT(lane, 16),        LAYOUT(boot, 4),
	LAYOUT(ep_addr, 2),    LAYOUT(model, 8),        LAYOUT(address, 52),
	LAYOUT(iface, 56),     LAYOUT(ref, 8),          LAYOUT(next_sn, 4),
#undef LAYOUT
};

static void the_layouts_are_those_of_the_version(void **state)
{
	unsigned int changed = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].is == layouts[i].was)
			continue;
		print_error("struct weft_wire_%s has %zu bytes, in version %d it had %zu\n",
			    layouts[i].name, layouts[i].is, FOR_VERSION, layouts[i].was);
		changed++;
	}
	if (changed)
		fail_msg("give WEFT_WIRE_MAJOR another number, and this list");
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
		cmocka_unit_test(the_layouts_are_those_of_the_version),
		cmocka_unit_test(a_put_of_the_version_before_is_malformed_or_refused),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
