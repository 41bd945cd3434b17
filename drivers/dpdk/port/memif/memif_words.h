/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/memif/memif_words.h
 * memif devices among the words of the EAL. A killed server leaves a socket file on which no other
 * process can bind.
 */
#ifndef WEFT_MEMIF_WORDS_H
#define WEFT_MEMIF_WORDS_H

#include "port/memif/memif.h"

/**
 * Before the EAL starts: a copy of its words in which each `--vdev=net_memif...` without
 * `socket-abstract=` has `socket-abstract=no`. With the PMD's default, an abstract name, each user
 * of the network namespace can be the peer, and the PMD trusts the offsets that a peer writes.
 *
 * @return the words, one block for free(); NULL: out of memory
 */
char **weft_memif_private_words(int count, char *const *words);

/**
 * Before the EAL starts: for each `--vdev=net_memif...,role=server,...,socket-abstract=no` among
 * its words, remove the socket file if no process listens there any more. Libc only.
 *
 * The check does not disturb a live server, which does not notice it. Two servers that start at the
 * very same time on one path can still conflict.
 *
 * @param words  the EAL's words
 * @param[out] why  a sentence on error
 * @return 0; -EADDRINUSE: a process listens there, or the file is no socket
 */
int weft_memif_dead_remove(int count, char *const *words, char *why, size_t why_len);

#endif /* WEFT_MEMIF_WORDS_H */
