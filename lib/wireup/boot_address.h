/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/boot_address.h
 * A peer of which only the boot address is known: the address that follows from it.
 */
#ifndef WEFT_BOOT_ADDRESS_H
#define WEFT_BOOT_ADDRESS_H

struct weft_address;
struct weft_boot;
struct weft_ep;
struct weft_worker;

/** Make the part of an address that follows from a boot address. @return 0, or -EINVAL: damaged */
int weft_learn_address(struct weft_worker *w, const struct weft_boot *b, struct weft_address *a);
/** The peer's whole address is @p remote. */
void weft_learn_from(struct weft_ep *ep, const struct weft_address *remote);

#endif /* WEFT_BOOT_ADDRESS_H */
