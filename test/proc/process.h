/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file process.h
 * What small test programs by the public interface share: one of them writes its worker's address
 * to a file, others read it there. They end with an error message when something fails.
 */
#ifndef PROC_PROCESS_H
#define PROC_PROCESS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "weft.h"

#define ADDRESS_MAX 2048

static inline void die(const char *what, int status)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, weft_strerror(status));
	exit(1);
}

static inline void check(const char *what, int status)
{
	if (status < 0)
		die(what, status);
}

/** @return s */
static inline double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/** Progress until it is done, for @p timeout_s at most. @return its status */
static inline int wait_done(struct weft_worker *worker, struct weft_request *req,
			    struct weft_completion *c, double timeout_s)
{
	double until = now() + timeout_s;
	int status = 0;

	if (!req)
		return 0;
	while ((status = weft_request_test(req, c)) == WEFT_INPROGRESS) {
		weft_worker_progress(worker);
		if (now() > until)
			die("nothing happens", -ETIMEDOUT);
	}
	weft_request_free(req);
	return status;
}

/** Whole or not at all: a process that sees the file can read it. */
static inline void write_address(struct weft_worker *worker, const char *file)
{
	char tmp[4096];
	size_t len;
	void *addr;
	FILE *f;

	check("address", weft_worker_get_address(worker, &addr, &len));
	snprintf(tmp, sizeof(tmp), "%s.new", file);
	f = fopen(tmp, "w");
	if (!f || fwrite(addr, 1, len, f) != len || fclose(f) || rename(tmp, file)) {
		perror(file);
		exit(1);
	}
	weft_worker_release_address(worker, addr);
}

static inline struct weft_ep *connect_to(struct weft_worker *worker, const char *file)
{
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params, .address = NULL);
	char addr[ADDRESS_MAX];
	struct weft_ep *ep;
	FILE *f = fopen(file, "r");

	if (!f) {
		perror(file);
		exit(1);
	}
	p.address = addr;
	p.address_length = fread(addr, 1, sizeof(addr), f);
	fclose(f);
	check("endpoint", weft_ep_create(worker, &p, &ep));
	return ep;
}

#endif /* PROC_PROCESS_H */
