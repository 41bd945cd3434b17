/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/describe.h
 * The comment of a captured frame: which lane, and which of its paths.
 */
#ifndef WEFT_CAPTURE_DESCRIBE_H
#define WEFT_CAPTURE_DESCRIBE_H

#include <stddef.h>

/** @param data  the frame's first @p len bytes; nothing in them is believed. */
void weft_capture_describe(const char *lane, const void *data, size_t len, char *buf, size_t size);

#endif /* WEFT_CAPTURE_DESCRIBE_H */
