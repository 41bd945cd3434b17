/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/ask.h
 * Processes of this host that have raw lanes, found and asked by DPDK's telemetry sockets. What
 * they answer is a stranger's text: it is cut to its field and made printable.
 */
#ifndef INFO_ASK_H
#define INFO_ASK_H

#include <stdbool.h>
#include <stdint.h>

#define ASK_PROCESSES 64
#define ASK_ANSWER 65536

struct ask_process {
	int fd;   /**< -1: it has failed to answer */
	long pid; /**< as the kernel has it */
	/** It is a weft-switch, and knows its own commands alone. */
	bool is_switch;
	/* What it states of itself, printable; "" = nothing. */
	char version[64], program[64], job[64];
};

/**
 * Connect to the processes that know /weft/workers: those of the caller's user and of root. The
 * folders may be anybody's, so the kernel is asked whose process listens. All may take 10 s.
 * @param pid       only this one, which root may ask whosever it is; 0 = all
 * @param switches  weft-switch too
 * @return how many
 */
unsigned int ask_find(long pid, bool switches, struct ask_process *list);
void ask_close(struct ask_process *list, unsigned int n);

/**
 * @return false: there was no answer within 5 s, or one to something else; it is not asked again,
 * since what comes late would be taken for the next answer. Else it is in @p answer, terminated
 */
bool ask(struct ask_process *p, const char *command, char answer[ASK_ANSWER]);

/** A string, or a member: name and text of its value, printable. Array items have the name "". */
typedef void (*ask_value_cb)(const char *name, const char *text, bool is_number, void *arg);

/**
 * Walk over an answer: {"/command": string, array or dictionary of strings and numbers}.
 * @return false: it is none
 */
bool ask_walk(const char *answer, ask_value_cb cb, void *arg);

#endif /* INFO_ASK_H */
