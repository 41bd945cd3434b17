/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/describe.h
 * The comment of a captured frame: its lane and its path.
 */
#ifndef WEFT_CAPTURE_DESCRIBE_H
#define WEFT_CAPTURE_DESCRIBE_H

#include <stddef.h>

/** @param data  the frame's first @p len bytes, which need not be valid */
void weft_capture_describe(const char *lane, const void *data, size_t len, char *buf, size_t size);

#endif /* WEFT_CAPTURE_DESCRIBE_H */
