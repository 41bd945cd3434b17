/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/program.h
 * The main() of every program with a peer.
 */
#ifndef WEFT_APP_PROGRAM_H
#define WEFT_APP_PROGRAM_H

#include "common/peer.h"

/** A program: its own options begin with struct peer_options. */
struct program {
	const char *name;
	const char *server; /**< see cli_server */
	/** @return 0, an exit code, or -1: --help or --version is done */
	int (*parse)(void *options, int argc, char **argv);
	/** @return exit code */
	int (*run)(void *options, int eal_count, char **eal_words);
};

/**
 * Split the command line, catch signals, read configuration, parse, run. The caller ends with
 * eal_exit(), after it has freed what its options hold.
 * @return exit code
 */
int program_main(const struct program *p, struct peer_options *options, int argc, char **argv);

/**
 * The common start of a program: the EAL, the lanes, the out-of-band connection, the endpoint. The
 * caller calls peer_end() afterwards, also after a failure.
 * @return APP_OK or an exit code after an error message
 */
int program_connect(struct peer *p, const struct peer_options *options, int eal_count,
		    char **eal_words);

#endif /* WEFT_APP_PROGRAM_H */
