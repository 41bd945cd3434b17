/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/commands.h
 * Commands of weft-info; info.c has its options.
 */
#ifndef INFO_COMMANDS_H
#define INFO_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "info/query.h"

/* ---- --capture, --recorder, --metrics, --live, --why and --show ----------------------------- */

struct info_running {
	bool capture, recorder, metrics, live, why;
	bool once;          /**< with live: print once, after a second */
	const char *show;   /**< what to print of each worker, e.g. "lanes"; NULL = no --show */
	const char *listen; /**< with metrics: [HOST:]PORT; NULL = print once */
	uint64_t pid;       /**< 0 = all processes */
};

bool info_is_running(const struct info_running *o);
/** @return APP_OK, or APP_USAGE after an error message */
int info_show_check(const char *option, const char *value);
/** @param words  arguments of --capture; "" = none. @return APP_OK or an exit code */
int info_running(const struct info_running *o, const char *words);

/* ---- --metrics ------------------------------------------------------------------------------ */

/**
 * Print counters in Prometheus' text format: names of totals end with `_total`, times are in
 * seconds, and counters exist from the start, with 0. Each sample has the label host. Samples of a
 * process also have program, pid, and job if a batch system has started the process.
 * @param list  processes of query_find(), weft-switch included
 */
void info_metrics(FILE *out, struct query_process *list, unsigned int n);

/**
 * Serve info_metrics() over HTTP at /metrics, until a signal ends the program. The processes are
 * searched again for each request.
 * @param address  [HOST:]PORT; HOST is 127.0.0.1 by default, an IPv6 address is in brackets
 * @return exit code
 */
int info_listen(const char *address, long pid);

/* ---- --why ---------------------------------------------------------------------------------- */

/**
 * Print what limits processes, from their counters over one second, and from the kernel's times of
 * the thread that has used most CPU time.
 * @return APP_OK, or APP_FAIL after an error message: no worker has answered twice
 */
int info_why(struct query_process *list, unsigned int n);

/* ---- --check -------------------------------------------------------------------------------- */

/**
 * Print why lanes to another host do not work.
 * @param host  the other end, which waits; NULL: wait for a client at any address
 * @param port  TCP port on which the end that waits listens
 * @return APP_OK: no fault was found; APP_FAIL: a fault was printed, or the port cannot be opened;
 * APP_USAGE: @p host has no address, or the name service fails
 */
int info_check(const char *host, uint16_t port);

/* ---- protocols ------------------------------------------------------------------------------ */

/**
 * Print which protocol carries which size, and why, over lanes of a file. It needs no EAL.
 * @param argv  argv[0] is "protocols". @return exit code
 */
int info_protocols(int argc, char **argv);

#endif /* INFO_COMMANDS_H */
