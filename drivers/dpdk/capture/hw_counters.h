/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/hw_counters.h
 * The counters that a RoCE device keeps itself, as text in captures: the library sees no
 * retransmission, NAK or CNP of a device.
 */
#ifndef WEFT_CAPTURE_HW_COUNTERS_H
#define WEFT_CAPTURE_HW_COUNTERS_H

#include <stddef.h>

#define WEFT_HW_COUNTERS_TEXT 2048u

/**
 * "hw_counters DEVICE PORT/NAME=VALUE PORT/NAME=VALUE ...", as many as fit.
 * @param lane  name of an interface: "roce:DEVICE..."
 * @return length; 0 = no RoCE lane, or the device has no counters
 */
size_t weft_hw_counters_text(const char *lane, char *buf, size_t size);

#endif /* WEFT_CAPTURE_HW_COUNTERS_H */
