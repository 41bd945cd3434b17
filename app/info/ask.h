/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/ask.h
 * Queries to processes of this host, over their sockets: DPDK's telemetry socket of a process with
 * raw lanes, Weft's own socket of any other (lib/answer.h). A process that has workers of both
 * kinds is in the list twice. Answers are untrusted text: each is cut to its field and made
 * printable.
 */
#ifndef INFO_ASK_H
#define INFO_ASK_H

#include <stdbool.h>
#include <stdint.h>

#define ASK_PROCESSES 256
#define ASK_ANSWER 65536

struct ask_process {
	int fd;   /**< -1: a query has failed */
	long pid; /**< from the kernel */
	/** It is a weft-switch, which has only commands of its own. */
	bool is_switch;
	/* Its own description, printable; "" = none. */
	char version[64], program[64], job[64];
};

/**
 * Connect to the processes with the command /weft/workers, of the caller's user and of root. Any
 * user may have made the folders, so the listener's user comes from the kernel. Takes 10 s at most.
 * Removes the sockets of dead processes of the caller's user.
 * @param pid       only this one; root may query processes of any user; 0 = all
 * @param switches  weft-switch too
 * @return number of processes
 */
unsigned int ask_find(long pid, bool switches, struct ask_process *list);
void ask_close(struct ask_process *list, unsigned int n);

/**
 * Send a command.
 * @return true: the answer is in @p answer, terminated. false: there was no answer within 5 s, or
 * one to another command. The process gets no further commands then, because a late answer would be
 * taken for the next one
 */
bool ask(struct ask_process *p, const char *command, char answer[ASK_ANSWER]);

/** A string, or a member: name and text of its value, printable. Array items have the name "". */
typedef void (*ask_value_cb)(const char *name, const char *text, bool is_number, void *arg);

/**
 * Walk over an answer: {"/command": string, array or dictionary of strings and numbers}.
 * @return false: it is malformed
 */
bool ask_walk(const char *answer, ask_value_cb cb, void *arg);

#endif /* INFO_ASK_H */
