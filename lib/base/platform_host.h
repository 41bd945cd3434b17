/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/platform_host.h
 * The real machine. Not installed: drivers get the platform when an interface is opened.
 */
#ifndef WEFT_PLATFORM_HOST_H
#define WEFT_PLATFORM_HOST_H

#include "base/platform.h"

/** TSC (invariant, calibrated) or clock_gettime(), getrandom(). */
extern const struct weft_platform weft_platform_host;

#endif /* WEFT_PLATFORM_HOST_H */
