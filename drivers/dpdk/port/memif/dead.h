/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/memif/dead.h
 * A memif server that was killed leaves its socket in the file system, and DPDK's memif cannot bind
 * there again. Libc only.
 */
#ifndef WEFT_MEMIF_DEAD_H
#define WEFT_MEMIF_DEAD_H

#include <stddef.h>

/**
 * Before the EAL starts: for each `--vdev=net_memif...,role=server,...,socket-abstract=no` among
 * its words, remove the socket file if nobody listens there any more.
 *
 * Nobody is disturbed by the question: a living server does not notice it. Two servers that start
 * at the very same time on one path can still get in each other's way.
 *
 * @param words  the EAL's words
 * @param[out] why  a sentence on error
 * @return 0; -EADDRINUSE: a process listens there, or the file is no socket
 */
int weft_memif_dead_remove(int count, char *const *words, char *why, size_t why_len);

#endif /* WEFT_MEMIF_DEAD_H */
