/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/secret.h
 * Memory for keys, which is in no core dump and no child process; the file of the job key; the
 * opening of the key log, which base/log.h writes.
 */
#ifndef WEFT_SECRET_H
#define WEFT_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_JOB_KEY_LEN 32u

/** Overwrites with zeros; the compiler cannot omit the stores. */
void weft_secret_wipe(void *data, size_t len);

/**
 * Pages of zeros that core dumps leave out (MADV_DONTDUMP) and that a child of fork() finds empty
 * (MADV_WIPEONFORK).
 * @return NULL: no memory, or the kernel refuses one of the two
 */
void *weft_secret_alloc(size_t size);
/** Overwrites the memory. @p p may be NULL. */
void weft_secret_free(void *p, size_t size);

/**
 * The file must be regular, of 32 bytes that are not all zero, and belong to the effective user;
 * other users must have no permissions for it.
 * @param key     written on success only
 * @param remote  the file is in a network's file system, which deserves a warning
 * @param why     on error: a sentence with path, reason and remedy
 * @return 0; -EACCES for owner or mode; -EINVAL if it is no regular file, or for its content; or
 *   the error of the file system
 */
int weft_job_key_load(const char *path, uint8_t key[WEFT_JOB_KEY_LEN], bool *remote, char *why,
		      size_t why_len);

/**
 * Open a key log to append to it, with mode 0600 if it is new. Another user's file, a symbolic
 * link, a file that other users may use, and all that is no regular file are refused. Processes may
 * share a file.
 * @return a descriptor, or a negative errno
 */
int weft_keylog_open(const char *path, char *why, size_t why_len);

#endif /* WEFT_SECRET_H */
