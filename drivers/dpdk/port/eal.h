/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/eal.h
 * Starting DPDK's EAL, or accepting one that the application has started.
 *
 * An EAL is started once per process and can't be started again, so a library must take what is
 * there. When we start it ourselves (WEFT_EAL_ARGS, or what a program's user wrote before `--`)
 * these are added unless the arguments say otherwise:
 *  - hugepages when they can be had, `--no-huge` when not, and the note says which;
 *  - no shared files (`--in-memory` or `--no-shconf`): several processes of a host don't meet, and
 *    a killed one leaves nothing behind; with WEFT_DUMPCAP they are shared;
 *  - quiet logs: errors only.
 *
 * Needs DPDK and libc only, so that programs can compile it in.
 */
#ifndef WEFT_EAL_H
#define WEFT_EAL_H

#include <stdbool.h>
#include <stddef.h>

struct weft_eal_conf {
	const char *ports; /**< WEFT_PORTS: devices for us (port/pick.h); NULL or "" = all */
	bool dumpcap;      /**< WEFT_DUMPCAP: share files, so that secondary processes can attach */
};

/** Has somebody in this process started the EAL? */
bool weft_eal_is_up(void);

/**
 * Start the EAL from a string of arguments, or accept the one that is there.
 *
 * @param args      as on a command line: blanks separate, quotes and backslash protect; NULL = none
 * @param[out] note what was done, for the log ("EAL started: hugepages"); "" when nothing was
 * @param[out] why  on error one sentence
 * @return 0; -EINVAL malformed or unknown arguments; what weft_pick() or the EAL said
 */
int weft_eal_start(const char *args, const struct weft_eal_conf *conf, char *note, size_t note_len,
		   char *why, size_t why_len);

/** The same from words; @p words has no program name. */
int weft_eal_start_words(int count, char *const *words, const struct weft_eal_conf *conf,
			 char *note, size_t note_len, char *why, size_t why_len);

/**
 * A program's command line: with `--`, what is before the first one is the EAL's; without, all is
 * the program's and the EAL gets WEFT_EAL_ARGS. Nothing is started, so that --help needs no port
 * and no root.
 *
 * @param[in,out] argc, argv  become the program's own, argv[0] kept
 * @param[out] eal_words      the EAL's words, without a program name, inside the old argv; NULL
 *                            without `--`
 * @return number of EAL's words; -1 without `--`
 */
int weft_eal_split_args(int *argc, char ***argv, char ***eal_words);

/**
 * Split a string as a shell does, without expansion: blanks separate, '...' and "..." protect,
 * backslash protects one character outside '...'.
 *
 * @param[out] words  NULL-terminated; free() frees all of it at once
 * @return number of words, -EINVAL (an open quote; @p words NULL) or -ENOMEM
 */
int weft_eal_words(const char *text, char ***words);

#endif /* WEFT_EAL_H */
