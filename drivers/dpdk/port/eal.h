/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/eal.h
 * Starting DPDK's EAL, or accepting one that the application has started.
 *
 * An EAL is started once per process and can't be started again, so a library must accept an
 * existing one. If Weft starts it (WEFT_EAL_ARGS, or the words before `--` on a program's command
 * line), these arguments are added unless given otherwise:
 * - hugepages if they are available, `--no-huge` if not, and the note states which;
 * - no shared files (`--in-memory` or `--no-shconf`): several processes of a host do not conflict,
 *   and a killed one leaves nothing behind; with WEFT_DUMPCAP and hugepages, files are shared;
 * - quiet logs: errors only.
 *
 * Needs DPDK and libc only, so that programs can compile it in.
 */
#ifndef WEFT_EAL_H
#define WEFT_EAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/host.h"

struct weft_eal_conf {
	/** WEFT_PORTS: devices for this process (port/pick.h); NULL or "" = all */
	const char *ports;
	/** WEFT_DUMPCAP: with hugepages, share files, so that secondary processes can attach */
	bool dumpcap;
};

bool weft_eal_is_up(void);

/**
 * Start the EAL from a string of arguments, or accept a running one.
 *
 * @param args      as on a command line: blanks separate, quotes and backslash protect; NULL = none
 * @param[out] note the result, for the log ("EAL started with hugepages"); "" if nothing was done
 * @param[out] why  a sentence on error
 * @return 0; -EINVAL malformed or unknown arguments; -ENOMEM; -ENOENT no driver of DPDK's for pools
 *   of buffers; or the error of weft_pick(), of weft_memif_dead_remove() or of the EAL
 */
int weft_eal_start(const char *args, const struct weft_eal_conf *conf, char *note, size_t note_len,
		   char *why, size_t why_len);

/** weft_eal_start() with arguments as separate words; @p words has no program name. */
int weft_eal_start_words(int count, char *const *words, const struct weft_eal_conf *conf,
			 char *note, size_t note_len, char *why, size_t why_len);

/**
 * With `--`, the words before the first one are the EAL's. Without it, all are the program's, and
 * the EAL gets WEFT_EAL_ARGS. Nothing is started, so that --help needs no port and no root.
 * @param[in,out] argc, argv  become the program's own, argv[0] kept
 * @param[out] eal_words      the EAL's words, without a program name, inside the old argv; NULL
 *   without `--`
 * @return number of the EAL's words; -1 without `--`
 */
int weft_eal_split_args(int *argc, char ***argv, char ***eal_words);

/**
 * Split a string as a shell does, without expansion: blanks separate, '...' and "..." protect. A
 * backslash protects one character outside quotes, and inside "..." a double quote or a backslash.
 * @param[out] words  NULL-terminated; free() frees all of it at once
 * @return number of words, -EINVAL (an open quote, or a backslash at the end) or -ENOMEM
 */
int weft_eal_words(const char *text, char ***words);

/* ---- the folder of the sockets -------------------------------------------------------------- */

/*
 * The folder of the EAL's sockets is /var/run/dpdk; for users other than root
 * $XDG_RUNTIME_DIR/dpdk, or, without that variable (batch jobs, su), /tmp/dpdk, which belongs to
 * the first user that creates it. The EAL does not start if it can't write there, and it accepts a
 * /tmp/dpdk that other users can write to. In both cases Weft gives it a folder of this user.
 */

#define WEFT_EAL_FOLDER_VARIABLE "XDG_RUNTIME_DIR"

enum weft_eal_folder {
	WEFT_EAL_FOLDER_ITS,  /**< the EAL's default is usable */
	WEFT_EAL_FOLDER_OWN,  /**< XDG_RUNTIME_DIR must name @p own */
	WEFT_EAL_FOLDER_NONE, /**< no folder is usable: the EAL must start without telemetry */
};

/**
 * @param runtime   for uid 0: /var/run; else the value of the variable, NULL = it is not set
 * @param tmp       the folder that all users share: /tmp
 * @param[out] own  with WEFT_EAL_FOLDER_OWN: TMP/weft-UID, which the call creates if necessary
 */
enum weft_eal_folder weft_eal_folder_find(uid_t uid, const char *runtime, const char *tmp,
					  char *own, size_t size);

/*
 * A killed process leaves its telemetry sockets behind. If several EALs find one at the same time,
 * one of them (DPDK 22.11) may report "TELEMETRY: Error binding socket" and have no telemetry.
 */

/** Remove this user's dead telemetry sockets in BASE/dpdk/weft, the folder of Weft's EALs. */
void weft_eal_dead_remove(const char *base);

#endif /* WEFT_EAL_H */
