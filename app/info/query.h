/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/query.h
 * Queries to processes of this host. Workers with raw lanes answer over DPDK's telemetry socket,
 * and others over Weft's own (lib/answer.h). So a process may have two sockets, and two entries of
 * a list. Answers are untrusted text: each is cut to its field and made printable.
 */
#ifndef INFO_QUERY_H
#define INFO_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#define QUERY_PROCESSES 256
#define QUERY_ANSWER 65536

struct query_process {
	int fd;         /**< -1: a query has failed */
	long pid;       /**< from the kernel (SO_PEERCRED) */
	bool is_switch; /**< a weft-switch, which has only commands of its own */
	char version[64], program[64], job[64]; /**< as the process reports them; "" = none */
};

/**
 * Connect to processes of the caller's user and of root. Any user may have made the folders, so the
 * listener's user comes from the kernel. After 10 s no further socket is tried. The call
 * removes Weft's sockets of dead processes of the caller's user.
 * @param pid       only this one, for root a process of any user; 0 = all
 * @param switches  also find weft-switch
 * @return number of entries, at most QUERY_PROCESSES
 */
unsigned int query_find(long pid, bool switches, struct query_process *list);
/** Is entry @p i the first of its process? */
bool query_first(const struct query_process *list, unsigned int i);
void query_close(struct query_process *list, unsigned int n);

/**
 * @return false: there was no answer within 5 s, or one to another command. The connection is then
 * closed, because a late answer would be taken for that of the next command
 */
bool query(struct query_process *p, const char *command, char answer[QUERY_ANSWER]);

/** @param name  of a member; "" for an item or a single value. @param text  printable value */
typedef void (*query_value_cb)(const char *name, const char *text, bool is_number, void *arg);

/**
 * Call @p cb for each value in {"/command": VALUE}, where VALUE may be an array or dictionary.
 * @return false: the answer is malformed
 */
bool query_walk(const char *answer, query_value_cb cb, void *arg);

#define SAMPLES_MAX 32768u
#define LANES_MAX 64u

struct sample {
	long pid;
	char worker[20], lane[64], name[80]; /**< lane "": a counter of the worker */
	double value;
};

struct samples {
	unsigned int num;
	struct sample of[SAMPLES_MAX];
};

struct lanes {
	unsigned int num;
	char text[LANES_MAX][96]; /**< the worker's id, lane and device: "ID dpdk:0 device" */
};

/** Get the lanes of a process. @return false: its answer is missing or malformed */
bool lanes_take(struct query_process *p, struct lanes *lanes);
/** Is lane @p i the first of its worker? */
bool lanes_first(const struct lanes *lanes, unsigned int i);
/** Read the first SAMPLES_MAX counters of all workers. A weft-switch has no workers. */
void samples_take(struct query_process *list, unsigned int n, struct samples *to);
/** @param like  names process, worker and lane. @return the counter @p name; 0 = none */
double samples_value(const struct samples *s, const struct sample *like, const char *name);

#endif /* INFO_QUERY_H */
