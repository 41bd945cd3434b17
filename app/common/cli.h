/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/cli.h
 * Command lines of all programs, and the calls of the operating system that they need.
 * weft_eal_split_args() (drivers/dpdk/port/eal.h) splits off the arguments of the EAL.
 */
#ifndef APP_CLI_H
#define APP_CLI_H

#include <getopt.h> /* optind, for arguments behind the options */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Exit codes of all programs; 128 + N after signal N. */
enum app_exit {
	APP_OK = 0,
	APP_FAIL = 1,  /**< could not start or continue: no lane, no peer, output closed */
	APP_USAGE = 2, /**< wrong option, argument or WEFT_ variable */
	APP_PEER = 3,  /**< the peer died, left early or failed */
	APP_DATA = 4,  /**< bytes arrived changed, or fewer or more than were sent */
};

#define CLI_DEFAULT_PORT 13377 /**< of the out-of-band connection (TCP) */

/** Name at the beginning of each message. Static storage. */
extern const char *cli_program;
/** Does the program pass arguments before a "--" to the EAL? */
extern bool cli_has_eal;
/** How the server is started, for messages: "weft-perf without a host". Static storage. */
extern const char *cli_server;

/**
 * "program: message" on standard error; '?' replaces control characters, which a terminal could
 * execute.
 */
void cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** The last message of cli_error(), which OOB_BYE sends to the peer. "" = none. */
const char *cli_last_error(void);

/** Replace the message that the peer receives by "what: why". Prints nothing. */
void cli_set_last_error(const char *what, const char *why);

/** If true, the caller reads no WEFT_ variables: help is printed although one is wrong. */
bool cli_wants_help(int argc, char **argv);

/*
 * Parsers: 0, or -EINVAL after an error message that names the option. Sizes take k, M, G (powers
 * of 1024), counts the same letters as powers of 1000.
 */
int cli_size(const char *option, const char *text, uint64_t *value);
int cli_count(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *value);
int cli_seconds(const char *option, const char *text, double min, double max, double *value);
int cli_port(const char *option, const char *text, uint16_t *port);

/**
 * Split NAME, NAME:PORT, IPV6 or [IPV6]:PORT. @p port stays as it is when none is given.
 * @return 0, or -EINVAL after an error message
 */
int cli_host_port(const char *text, char *host, size_t size, uint16_t *port);

/** From "8", "8,64,1k", or "8:4M": 8 and its doubles up to 4M; 4M only if it is one of them. */
struct cli_sizes {
	uint64_t *size;
	unsigned int count;
};

/** @return 0; -EINVAL after an error message; -ENOMEM. The caller frees @p sizes after success */
int cli_sizes_parse(const char *option, const char *text, struct cli_sizes *sizes);
void cli_sizes_free(struct cli_sizes *sizes);

/** A size as text, with the largest unit that divides it ("64k", "1000"). @return buf */
const char *cli_size_text(uint64_t size, char *buf, size_t len);

/**
 * Catch SIGINT, SIGTERM and SIGHUP for sys_signal(), so that the peer is notified. A second signal
 * ends the process at once. SIGPIPE is ignored, so that writes return EPIPE.
 */
void sys_catch_signals(void);

/** @return 0 before the first signal */
int sys_signal(void);

/** A callback for waits (oob_idle_cb). @return -EINTR once a signal has come, else 0 */
int sys_idle(void *arg);

/** Pin the calling thread. @return 0 or a negative error after an error message */
int sys_pin(unsigned int core);

/** Memory of this process in bytes, from /proc/self/status. */
struct sys_memory {
	uint64_t peak;    /**< VmHWM; hugepages are not in it */
	uint64_t now;     /**< VmRSS */
	uint64_t hugetlb; /**< HugetlbPages */
};

void sys_memory(struct sys_memory *memory);

/** Reset VmHWM to the present value. @return 0 or a negative error (the kernel may refuse it) */
int sys_reset_peak(void);

/** Monotonic time in seconds. */
double sys_seconds(void);

/* ---- tables of options ---------------------------------------------------------------------- */

/*
 * The options of a program as a table: the source of the parser, --help, the completion of bash,
 * and the list of options of the manual page. The build gets the last two by a hidden option:
 * "--print-options completion" and "--print-options manual".
 *
 * Each program has -h, --help and --version in addition. A program's own entry with such a name,
 * which sets nothing, takes the place of the common one: it may add -v to --version.
 */

/** The table ends with an entry that is all zero. */
struct cli_option {
	const char *name;     /**< the long name, as "block" for --block */
	char letter;          /**< the short name; 0 = none */
	const char *argument; /**< name of the argument, as "SIZE"; NULL = the option takes none */
	/** without line breaks and full stop; doc/options_page.py adds details for the manual */
	const char *help;
	/*
	 * An entry has at most one of flag, number and set. The offset 0 is none, so the struct of
	 * a program's options begins with another member.
	 */
	size_t flag; /**< offset, in that struct, of a bool that becomes true */
	struct {
		size_t at; /**< offset of a uint64_t that becomes the argument */
		uint64_t min, max;
	} number;
	/** @param option  "-b" or "--block". @return APP_OK or an exit code, after a message */
	int (*set)(void *options, const char *option, const char *value);
	/** An entry with a table has no other member: that table's options take its place. */
	const struct cli_option *table;
	/** An entry with a heading has no other member: the heading is a line of --help. */
	const char *heading;
};

struct cli_command {
	const char *name;
	const char *usage;
	const struct cli_option *options;
	const char *after[5]; /**< texts of --help behind the options; NULL = none */
};

/**
 * Afterwards argv[optind] (getopt) is the first argument that is no option.
 * @return APP_OK, an exit code after an error message, or -1: a text was printed, and the program
 *         ends with 0
 */
int cli_options_parse(const struct cli_command *cmd, void *options, int argc, char **argv);

#endif /* APP_CLI_H */
