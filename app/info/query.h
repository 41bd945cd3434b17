/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/query.h
 * Queries to processes of this host, over their sockets: DPDK's telemetry socket of a process with
 * raw lanes, Weft's own socket of any other (lib/answer.h). A process that has workers of both
 * kinds is in the list twice. Answers are untrusted text: each is cut to its field and made
 * printable.
 */
#ifndef INFO_QUERY_H
#define INFO_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#define QUERY_PROCESSES 256
#define QUERY_ANSWER 65536

struct query_process {
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
unsigned int query_find(long pid, bool switches, struct query_process *list);
void query_close(struct query_process *list, unsigned int n);

/**
 * Send a command.
 * @return true: the answer is in @p answer, terminated. false: there was no answer within 5 s, or
 * one to another command. The process gets no further commands then, because a late answer would be
 * taken for the next one
 */
bool query(struct query_process *p, const char *command, char answer[QUERY_ANSWER]);

/** A string, or a member: name and text of its value, printable. Array items have the name "". */
typedef void (*query_value_cb)(const char *name, const char *text, bool is_number, void *arg);

/**
 * Walk over an answer: {"/command": string, array or dictionary of strings and numbers}.
 * @return false: it is malformed
 */
bool query_walk(const char *answer, query_value_cb cb, void *arg);

#endif /* INFO_QUERY_H */
