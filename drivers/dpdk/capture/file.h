/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/file.h
 * Files that captures go to. Frames hold secrets and keys: a file is its owner's alone.
 */
#ifndef WEFT_CAPTURE_FILE_H
#define WEFT_CAPTURE_FILE_H

#include <stddef.h>

/**
 * Make a file, or make it again. A symbolic link, a foreign file or FIFO (root's FIFO or device
 * excepted) and a file that another process writes are refused. A FIFO is taken if somebody reads
 * it.
 * @return descriptor, or a negative errno with a sentence
 */
int weft_capture_file_open(const char *name, char *why, size_t why_len);

/**
 * NAME becomes NAME.1, that NAME.2 and so on, up to NAME.(@p files - 1), whose file goes.
 * @return 0 or a negative errno
 */
int weft_capture_file_rotate(const char *name, unsigned int files);

#endif /* WEFT_CAPTURE_FILE_H */
