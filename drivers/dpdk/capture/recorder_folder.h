/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/recorder_folder.h
 * The default folder for files of the flight recorder: the user's own, in which no other user can
 * create or replace a file.
 */
#ifndef WEFT_CAPTURE_RECORDER_FOLDER_H
#define WEFT_CAPTURE_RECORDER_FOLDER_H

#include <stddef.h>
#include <stdint.h>

/**
 * Limits for all processes of the user: the newest files that are kept, and their bytes in total.
 */
#define WEFT_RECORDER_FILES 20u
#define WEFT_RECORDER_FILES_BYTES (64ull << 20)

/**
 * Find the folder: weft-UID in TMPDIR; without TMPDIR weft_user_folder_find().
 * @return 0, or a negative errno value with a sentence in @p path
 */
int weft_recorder_folder_find(char *path, size_t size);

/**
 * Create a file recorder-PID-RANDOM.pcapng in @p folder. Also in a signal handler.
 * @param[out] name  the file, or a sentence on error
 * @return a descriptor, or a negative errno value
 */
int weft_recorder_folder_create(const char *folder, char *name, size_t size);

/**
 * Remove the oldest files of the user's flight recorders in @p folder, until at most @p files are
 * left with at most @p bytes; the newest file always stays.
 */
void weft_recorder_folder_prune(const char *folder, unsigned int files, uint64_t bytes);

#endif /* WEFT_CAPTURE_RECORDER_FOLDER_H */
