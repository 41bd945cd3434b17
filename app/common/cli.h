/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/cli.h
 * What the programs have in common on their command lines: options, numbers with units, error
 * sentences and exit codes. libc only. EAL's half of a command line is split off by
 * weft_eal_split_args() (drivers/dpdk/port/eal.h).
 */
#ifndef APP_CLI_H
#define APP_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Exit codes of all programs; 128 + N after signal N. */
enum app_exit {
	APP_OK = 0,
	APP_FAIL = 1,  /**< could not start or go on: no lane, no peer, output gone */
	APP_USAGE = 2, /**< wrong option, argument or WEFT_ variable */
	APP_PEER = 3,  /**< the peer died, left early or failed */
	APP_DATA = 4,  /**< bytes arrived wrong, or not as many as were sent */
};

/** Default TCP port of the out-of-band connection. */
#define CLI_DEFAULT_PORT 13377

/** Name in front of every message. Static storage. */
extern const char *cli_program;
/** Are options before a "--" the EAL's? */
extern bool cli_has_eal;
/** How the end that others connect to is started: "weft-perf without a host". Static storage. */
extern const char *cli_server;

/**
 * "program: message" on standard error; what a terminal would take for a command is replaced by
 * '?'.
 */
void cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** The last message of cli_error(): what the peer learns about our end. "" = none. */
const char *cli_last_error(void);

/** What the peer learns instead: "what: why". Prints nothing. */
void cli_set_last_error(const char *what, const char *why);

/**
 * getopt_long() that says what is wrong itself.
 * @return as getopt_long(); '?' after the message was printed
 */
int cli_getopt(int argc, char **argv, const char *shorts, const struct option *longs);

/** Is help or the version asked for? These shall work whatever the environment holds. */
bool cli_asks_for_help(int argc, char **argv);

/*
 * Parsers: 0, or -EINVAL after an error message that names the option. Sizes take k, M, G (powers
 * of 1024), counts the same letters as powers of 1000.
 */
int cli_size(const char *option, const char *text, uint64_t *value);
int cli_count(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *value);
int cli_seconds(const char *option, const char *text, double min, double max, double *value);
int cli_port(const char *text, uint16_t *port);

/**
 * Split NAME, NAME:PORT, IPV6 or [IPV6]:PORT. @p port stays as it is when none is given.
 * @return 0, or -EINVAL after an error message
 */
int cli_host_port(const char *text, char *host, size_t size, uint16_t *port);

/** Sizes as "8", "8,64,1k", "8:4M" (doubling, both ends counted when hit) or mixed. */
struct cli_sizes {
	uint64_t *size;
	unsigned int count;
};

int cli_sizes_parse(const char *option, const char *text, struct cli_sizes *sizes);
void cli_sizes_free(struct cli_sizes *sizes);

/** A size as text: exact where a unit divides it ("64k", "1000"). @return buf */
const char *cli_size_text(uint64_t size, char *buf, size_t len);

#endif /* APP_CLI_H */
