/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses as text (FI_ADDR_STR), which come from other processes and may have any contents. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "provider/name.h"
#include "provider/provider.h"

static void random_address(uint8_t addr[FI_NAME_MAX])
{
	size_t zeros = (size_t)rand() % FI_NAME_MAX;

	for (size_t i = 0; i < FI_NAME_MAX; i++)
		addr[i] = i < FI_NAME_MAX - zeros ? (uint8_t)rand() : 0;
}

static bool reads_as(const char *text, size_t size, const uint8_t addr[FI_NAME_MAX])
{
	uint8_t out[FI_NAME_MAX];

	return wfi_text_read(text, size, false, out) && memcmp(out, addr, sizeof(out)) == 0;
}

/* A text leads to its address, and no other text does. */
static void one_text(void **state)
{
	char text[WFI_TEXT_MAX];
	uint8_t addr[FI_NAME_MAX];
	size_t length, at;

	(void)state;
	srand(1);
	for (unsigned int i = 0; i < 2000; i++) {
		random_address(addr);
		length = wfi_text_make(addr, text);
		assert_int_equal(length, strlen(text) + 1);
		assert_true(reads_as(text, length, addr));
		assert_true(reads_as(text, length - 1, addr)); /* its end is that of the memory */
		assert_false(reads_as(text, length - 2, addr));
		at = (size_t)rand() % (length - 1);
		text[at] = (char)(text[at] ^ 1 << rand() % 7);
		assert_false(reads_as(text, length, addr));
	}
	memset(addr, 0xff, sizeof(addr));
	assert_true(wfi_text_make(addr, text) < WFI_TEXT_MAX);
	assert_true(reads_as(text, WFI_TEXT_MAX, addr));
}

static void places(void **state)
{
	static const char *const texts[] = {
		"fi_weft://127.0.0.1:5000", "fi_weft://0.0.0.0:65535",     "fi_weft://[::1]:1",
		"fi_weft://[::]:0",         "fi_weft://[fe80::1%lo]:5000",
	};
	uint8_t addr[FI_NAME_MAX];
	char text[WFI_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_true(wfi_text_read(texts[i], WFI_TEXT_MAX, false, addr));
		assert_true(wfi_name_is(addr, sizeof(addr)));
		wfi_text_make(addr, text);
		assert_string_equal(text, texts[i]);
	}
	assert_true(wfi_text_read("fi_weft://localhost:5000", WFI_TEXT_MAX, true, addr));
	/* A user may write a place in any form. */
	assert_true(wfi_text_read("fi_weft://[0::1]:05000", WFI_TEXT_MAX, true, addr));
	assert_true(wfi_name_is(addr, sizeof(addr)));
}

static void malformed(void **state)
{
	static const char *const texts[] = {
		"",
		"f",
		"fi_weft:",
		"fi_weft://",
		"fi_shm://V2Vm",
		"FI_WEFT://V2Vm",
		"fi_weft:// V2Vm",
		"fi_weft://V2Vm=",
		"fi_weft://V2V+",
		"fi_weft://V2V/",
		"fi_weft://V",   /* less than a byte */
		"fi_weft://V2V", /* bits behind the last byte */
		"fi_weft://V2Vm\n",
		"fi_weft://V2Vm\xff",
		"fi_weft://:",
		"fi_weft://:5000",
		"fi_weft://127.0.0.1:",
		"fi_weft://127.0.0.1:65536",
		"fi_weft://127.0.0.1:99999999999999999999",
		"fi_weft://127.0.0.1:-1",
		"fi_weft://127.0.0.1:+1",
		"fi_weft://127.0.0.1: 1",
		"fi_weft://127.0.0.1:http",
		"fi_weft://127.0.0.1:5000/",
		"fi_weft://127.0.0.1:5000:5000",
		"fi_weft://256.0.0.1:5000",
		"fi_weft://::1:5000",
		"fi_weft://[::1:5000",
		"fi_weft://[]:5000",
		"fi_weft://[:5000",
		"fi_weft://[::1]5000",
		"fi_weft://localhost:5000", /* peers choose no name to resolve */
		/* of an address that has another text */
		"fi_weft://V2VmAA",
		"fi_weft://AAAA",
		"fi_weft://127.0.0.1:05000",
		"fi_weft://127.1:5000",
		"fi_weft://0x7f.0.0.1:5000",
		"fi_weft://[127.0.0.1]:5000",
		"fi_weft://[0::1]:5000",
		"fi_weft://[::A]:5000",
	};
	uint8_t addr[FI_NAME_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (wfi_text_read(texts[i], WFI_TEXT_MAX, false, addr))
			fail_msg("\"%s\" is read", texts[i]);
}

/* Bytes without an end, before memory that must not be read; more digits than an address has. */
static void without_end(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t addr[FI_NAME_MAX];
	char *text;

	(void)state;
	assert_true(memory != MAP_FAILED);
	assert_int_equal(mprotect(memory + page, page, PROT_NONE), 0);
	memset(memory, 'A', page);
	for (size_t length = 0; length <= 300; length++) {
		text = memory + page - length;
		memcpy(text, "fi_weft://", length < 10 ? length : 10);
		wfi_text_read(text, length, false, addr);
		memset(text, 'A', length);
	}
	text = memory + page - WFI_TEXT_MAX;
	memcpy(text, "fi_weft://", 10);
	assert_false(wfi_text_read(text, WFI_TEXT_MAX, false, addr));
	memset(text + 10, 'B', 85); /* the last of the 86 digits has bits behind the last byte */
	assert_true(wfi_text_read(text, 10 + 86, false, addr));
	text[10 + 86] = 'A';
	assert_false(wfi_text_read(text, 10 + 87, false, addr));
	assert_false(wfi_text_read(text, 10 + 88, false, addr));
	munmap(memory, 2 * page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_text),
		cmocka_unit_test(places),
		cmocka_unit_test(malformed),
		cmocka_unit_test(without_end),
	};

	return cmocka_run_group_tests_name("provider_text", tests, NULL, NULL);
}
