/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WEFT_H
#define WEFT_H

#define WEFT_API __attribute__((visibility("default")))

/** The library's version, as in "0.1.0 (git revision)". Any thread; never NULL, never freed. */
WEFT_API const char *weft_version_string(void);

#endif
