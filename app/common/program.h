/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/program.h
 * Code that all programs with a peer share: options, main(), and the losses of lanes for the last
 * line of output.
 */
#ifndef APP_PROGRAM_H
#define APP_PROGRAM_H

#include <stddef.h>

#include "common/cli.h"
#include "common/peer.h"

/** Defaults, and the configuration from the environment. @return APP_OK or an exit code */
int peer_options_init(struct peer_options *opts);

/** The common options, for the table of a program whose options begin with struct peer_options. */
extern const struct cli_option peer_option_table[];

/** "-L" with a value of WEFT_LANES, or "-S" with NAME=VALUE. @return APP_OK or an exit code */
int peer_option(void *options, const char *option, const char *value);

/* @param text  as for cli_host_port(). @return APP_OK or APP_USAGE */
int peer_host(struct peer_options *opts, const char *text);
int peer_local(struct peer_options *opts, const char *text);

/**
 * Losses on each lane: "sent again: dpdk:0 12 frames, dpdk:1 0; dropped here: dpdk:0 3, dpdk:1 0".
 * The endpoint counts frames sent again, the interface counts dropped ones. Duplicates and frames
 * for other hosts are not among the dropped ones.
 */
void lane_losses(struct peer *p, char *buf, size_t size);

/** A program: its own options begin with struct peer_options. */
struct program {
	const char *name;
	const char *server; /**< see cli_server */
	/** @return as cli_options_parse() */
	int (*parse)(void *options, int argc, char **argv);
	int (*run)(void *options, int eal_count, char **eal_words);
};

/** @return exit code, for eal_exit(): the caller calls it after it has freed its options */
int program_main(const struct program *p, struct peer_options *options, int argc, char **argv);

/** The caller calls peer_end(), also after a failure. @return APP_OK or an exit code */
int program_connect(struct peer *p, const struct peer_options *options, int eal_count,
		    char **eal_words);

#endif /* APP_PROGRAM_H */
