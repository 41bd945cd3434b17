/* SPDX-License-Identifier: BSD-3-Clause */

/* Worker addresses: as they are, and with a checksum that makes the rest be looked at. */

#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "core/address.h"

/* As a boot address, with the right first bytes and checksum, too. */
static void boot(const uint8_t *data, size_t size)
{
	struct weft_wire_boot_address w = {{0}};
	uint8_t again[WEFT_BOOT_ADDRESS_MAX];
	struct weft_boot b;
	char why[160];

	weft_boot_unpack(&b, data, size, why, sizeof(why));
	if (size < 37 || size > sizeof(w))
		return;
	memcpy(&w, data, size);
	w.magic = weft_put16(WEFT_BOOT_ADDRESS_MAGIC);
	w.major = w.major % 4 ? WEFT_WIRE_MAJOR : w.major;
	w.crc = weft_put32(weft_crc32c_of(&w, size, 4));
	if (weft_boot_unpack(&b, &w, size, why, sizeof(why)) == 0 &&
	    (weft_boot_pack(&b, again) != size || memcmp(again, &w, size) != 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weft_wire_address head = {0};
	struct weft_address a, b;
	uint8_t *copy, *again;
	char why[160];
	size_t n;

	boot(data, size);
	weft_address_unpack(&a, data, size, why, sizeof(why));
	if (size < 16 || size > UINT16_MAX)
		return 0;
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	head.magic = weft_put32(WEFT_ADDRESS_MAGIC);
	memcpy(copy, &head.magic, sizeof(head.magic));
	copy[4] = copy[4] % 4 ? WEFT_WIRE_MAJOR : copy[4];
	copy[6] = (uint8_t)size;
	copy[7] = (uint8_t)(size >> 8);
	weft_address_seal(copy, size);
	if (weft_address_unpack(&a, copy, size, why, sizeof(why)) == 0) {
		/* What was taken can be packed, and is then the same. */
		n = weft_address_size(&a);
		again = malloc(n);
		if (!again || weft_address_pack(&a, again) != n ||
		    weft_address_unpack(&b, again, n, why, sizeof(why)) != 0 ||
		    b.num_ifaces != a.num_ifaces ||
		    memcmp(a.ifaces, b.ifaces, sizeof(a.ifaces)) != 0)
			abort();
		free(again);
	}
	free(copy);
	return 0;
}
