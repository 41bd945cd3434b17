/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/file.h
 * Files that captures write. Frames contain secrets and keys: only the owner can read the file.
 */
#ifndef WEFT_CAPTURE_FILE_H
#define WEFT_CAPTURE_FILE_H

#include <stddef.h>

/**
 * Create a file, or truncate an existing one. Refused are a symbolic link, another user's file or
 * FIFO (except root's FIFO or device), and a file that another process writes. A FIFO needs a
 * reader.
 * @return descriptor, or a negative errno with a sentence
 */
int weft_capture_file_open(const char *name, char *why, size_t why_len);

/**
 * Rename NAME to NAME.1, that to NAME.2 and so on, up to NAME.(@p files - 1), which is replaced.
 * @return 0 or a negative errno
 */
int weft_capture_file_rotate(const char *name, unsigned int files);

#endif /* WEFT_CAPTURE_FILE_H */
