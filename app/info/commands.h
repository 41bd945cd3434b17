/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/commands.h
 * The commands of weft-info, a source each: check.c, metrics.c, protocols.c, running.c, why.c.
 */
#ifndef INFO_COMMANDS_H
#define INFO_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "info/query.h"

/* ---- --capture, --recorder, --metrics, --live, --why and --show ----------------------------- */

/** Options of weft-info about processes that run. */
struct info_running {
	bool capture, recorder, metrics, live, why;
	bool once;          /**< with live: one second only */
	const char *show;   /**< what to print of their workers; NULL = nothing */
	const char *listen; /**< with metrics: [HOST:]PORT */
	uint64_t pid;       /**< 0 = all */
};

/** Are these options about processes that run? */
bool info_is_running(const struct info_running *o);
/** Check the value of --show. @return APP_OK, or APP_USAGE after an error message */
int info_show_check(const char *option, const char *value);
/**
 * Do what the options request.
 * @param words  arguments of --capture; "" = none
 * @return APP_OK or an exit code
 */
int info_running(const struct info_running *o, const char *words);

/* ---- --metrics ------------------------------------------------------------------------------ */

/*
 * Counters of running processes in Prometheus' text format: names of totals end with `_total`,
 * times are in seconds, and counters exist from the start, with 0. Every sample has the label host.
 * Those of a process also have program, job (of the batch system, if any) and pid. weft-info
 * --metrics --listen serves them over HTTP, for a scraper.
 */

/** @param list  processes of query_find(), weft-switch included */
void info_metrics(FILE *out, struct query_process *list, unsigned int n);

/**
 * Serve /metrics until a signal ends the program.
 * @param address  [HOST:]PORT, without HOST 127.0.0.1; IPv6 in brackets
 * @param pid      only this process; 0 = all, found again at each request
 * @return exit code
 */
int info_listen(const char *address, long pid);

/* ---- --why ---------------------------------------------------------------------------------- */

/**
 * What limits a running process, from its counters over one second, and from the kernel's times of
 * the thread that has used most CPU time.
 * @return APP_OK, or APP_FAIL after an error message: no worker has answered twice */
int info_why(struct query_process *list, unsigned int n);

/* ---- --check -------------------------------------------------------------------------------- */

/**
 * Two hosts find out together why lanes between them do not work: check the lanes to another host,
 * and print a verdict.
 * @param host  the other end, which waits; NULL: wait for a client at any address
 * @param port  TCP port on which the other end, or this one, listens
 * @return APP_OK: no fault was found; APP_FAIL: a fault was printed; APP_USAGE: @p host has no
 * address, or the name service fails
 */
int info_check(const char *host, uint16_t port);

/* ---- protocols ------------------------------------------------------------------------------ */

/**
 * Which protocol for which size, and why, over lanes that a file describes. Needs no EAL, no
 * hardware and no rights.
 * @param argv  argv[0] is "protocols". @return exit code
 */
int info_protocols(int argc, char **argv);

#endif /* INFO_COMMANDS_H */
