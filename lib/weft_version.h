/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file weft_version.h
 * Version of the headers, and of the library that runs. Comes with weft.h.
 */
#ifndef WEFT_PUBLIC_VERSION_H
#define WEFT_PUBLIC_VERSION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 2
#define WEFT_VERSION_PATCH 0

/** A version as one number, for comparisons: `#if WEFT_VERSION >= WEFT_VERSION_NUMBER(0, 2, 0)`. */
#define WEFT_VERSION_NUMBER(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))

/** Version of the headers with which the program is compiled. */
#define WEFT_VERSION WEFT_VERSION_NUMBER(WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH)

/** Version of the library that runs, as #WEFT_VERSION. Any thread. */
WEFT_API uint32_t weft_version(void);

/** Version and revision of the library that runs: "0.2.0 (1a2b3c4)". Static text. Any thread. */
WEFT_API const char *weft_version_string(void);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_PUBLIC_VERSION_H */
