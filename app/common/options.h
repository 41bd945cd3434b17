/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/options.h
 * The options of a program as a table, from which come the parser, --help, the completion of bash,
 * and the list of options of the manual page.
 *
 * Each program has -h, --help and --version in addition. An entry of the program that is named so
 * and sets nothing takes the place of the common one, as -v for --version. A hidden option prints
 * the two texts of the build: "--print-options manual" or "--print-options completion".
 */
#ifndef APP_OPTIONS_H
#define APP_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

/** The table ends with an entry that is all zero. */
struct cli_option {
	const char *name;     /**< the long name, as "block" for --block */
	char letter;          /**< the short name; 0 = none */
	const char *argument; /**< name of the argument, as "SIZE"; NULL = the option takes none */
	/**
	 * One text without a full stop, which is wrapped where necessary. The manual page adds
	 * details (doc/options_page.py).
	 */
	const char *help;
	/*
	 * What it sets in the options of the program is one of these. An offset is never 0: options
	 * do not begin with one of these members.
	 */
	size_t flag; /**< offset of a bool that becomes true */
	struct {
		size_t at; /**< offset of a uint64_t that becomes the argument */
		uint64_t min, max;
	} number;
	/**
	 * @param option  its name for error messages, as "-b" or "--counters"
	 * @return APP_OK, or an exit code after an error message
	 */
	int (*set)(void *options, const char *option, const char *value);
	/** Instead of all others: the options of this table come here. */
	const struct cli_option *table;
	/** Instead of all others: a line above the options that follow, as "Where". */
	const char *heading;
};

/** The command line of a program. */
struct cli_command {
	const char *name;
	const char *usage; /**< the text before the options */
	const struct cli_option *options;
	const char *after[5]; /**< texts behind the options, one after the other */
};

/**
 * Parse the options; getopt's optind is the first other argument afterwards.
 * @return APP_OK, an exit code after an error message, or -1: a text was printed, and the program
 *         ends with 0
 */
int cli_options_parse(const struct cli_command *cmd, void *options, int argc, char **argv);

#endif /* APP_OPTIONS_H */
