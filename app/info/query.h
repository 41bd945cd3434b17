/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/query.h
 * Queries to processes of this host, over their sockets: DPDK's telemetry socket of a process with
 * raw lanes, Weft's own socket of any other (lib/answer.h). A process that has workers of both
 * kinds is in the list twice. Answers are untrusted text: each is cut to its field and made
 * printable.
 * Samples are the counters of all workers of these processes, read one after the other.
 */
#ifndef INFO_QUERY_H
#define INFO_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#define QUERY_PROCESSES 256
#define QUERY_ANSWER 65536

struct query_process {
	int fd;   /**< -1: a query has failed */
	long pid; /**< process id, from the kernel (SO_PEERCRED) */
	/** the process is a weft-switch, which has only commands of its own */
	bool is_switch;
	/* the description that the process gives of itself, printable; "" = none */
	char version[64], program[64], job[64];
};

/**
 * Connect to the processes with the command /weft/workers, of the caller's user and of root. Any
 * user may have made the folders, so the listener's user comes from the kernel. After 10 s no
 * further socket is tried. Removes Weft's sockets of dead processes of the caller's user.
 * @param pid       only this one; root may query processes of any user; 0 = all
 * @param switches  weft-switch too
 * @return number of entries; a process with two sockets has two
 */
unsigned int query_find(long pid, bool switches, struct query_process *list);
/** Is entry @p i the first of its process? */
bool query_first(const struct query_process *list, unsigned int i);
void query_close(struct query_process *list, unsigned int n);

/**
 * Send a command.
 * @return true: the answer is in @p answer, terminated. false: there was no answer within 5 s, or
 * one to another command. The process gets no further commands then, because a late answer would be
 * taken for the next one
 */
bool query(struct query_process *p, const char *command, char answer[QUERY_ANSWER]);

/**
 * Called with one value of an answer. @param name of the member; "" for an array item, and for a
 * value that is the whole answer. @param text the value, printable
 */
typedef void (*query_value_cb)(const char *name, const char *text, bool is_number, void *arg);

/**
 * Walk over an answer: {"/command": value}. The value is a string, a number, or an array or
 * dictionary of these.
 * @return false: it is malformed
 */
bool query_walk(const char *answer, query_value_cb cb, void *arg);

#define SAMPLES_MAX 32768u
#define LANES_MAX 64u

/** A counter of a lane, or of its worker (lane ""). */
struct sample {
	long pid;
	char worker[20], lane[64], name[80];
	double value;
};

struct samples {
	unsigned int num;
	struct sample of[SAMPLES_MAX];
};

/** The lanes of a process: its answer to /weft/workers. */
struct lanes {
	unsigned int num;
	char text[LANES_MAX][96]; /**< "ID dpdk:0 device" */
};

/** @return false: the process gave no answer, or a malformed one */
bool lanes_take(struct query_process *p, struct lanes *lanes);
/** Is lane @p i the first of its worker? */
bool lanes_first(const struct lanes *lanes, unsigned int i);
/** Read all counters of the processes' workers, at most SAMPLES_MAX. A weft-switch has none. */
void samples_take(struct query_process *list, unsigned int n, struct samples *to);
/** The counter of that name of the lane, or worker, of @p like; 0 where there is none. */
double samples_value(const struct samples *s, const struct sample *like, const char *name);

#endif /* INFO_QUERY_H */
