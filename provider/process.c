/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/process.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "provider/provider.h"

/* The time in which messages of the last endpoint may be sent; peers may be gone. */
#define FLUSH_NS 2000000000ull

struct wfi_process wfi;

void wfi_yield(void)
{
	wfi_unlock();
	sched_yield();
	wfi_lock();
}

/* ------------------------------------------------------------------ the context */

#define FEATURES (WEFT_FEATURE_TAG | WEFT_FEATURE_RMA | WEFT_FEATURE_AMO32 | WEFT_FEATURE_AMO64)

int wfi_process_get(void)
{
	struct weft_context_params params =
		WEFT_INIT(struct weft_context_params, .features = FEATURES);
	struct weft_config *config;
	int rc;

	if (wfi.domains > 0) {
		wfi.domains++;
		return 0;
	}
	rc = wfi_options_read(&wfi.options);
	if (rc < 0)
		return rc;
	rc = wfi_options_config(&wfi.options, &config);
	if (rc < 0)
		return -wfi_errno(rc);
	params.config = config;
	rc = weft_context_create(&params, &wfi.ctx);
	weft_config_release(config);
	if (rc < 0)
		return -wfi_errno(rc);
	wfi.domains = 1;
	return 0;
}

void wfi_process_put(void)
{
	if (--wfi.domains > 0)
		return;
	weft_context_destroy(wfi.ctx);
	wfi.ctx = NULL;
}

/* ------------------------------------------------------------------ the worker */

int wfi_worker_get(void)
{
	struct weft_worker_params params =
		WEFT_INIT(struct weft_worker_params, .thread_mode = WEFT_THREAD_SINGLE,
			  .flags = WEFT_WORKER_SEND_NOW);
	int rc;

	if (!wfi.worker) {
		rc = weft_worker_create(wfi.ctx, &params, &wfi.worker);
		if (rc < 0) {
			wfi.worker = NULL;
			return -wfi_errno(rc);
		}
		wfi.worker_number++;
	}
	wfi.endpoints++;
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Messages that are complete for the application may still wait for credit or a window. */
static void flush(void)
{
	uint64_t end = now_ns() + FLUSH_NS;
	struct weft_request *req = NULL;

	if (weft_worker_flush(wfi.worker, NULL, &req) != WEFT_INPROGRESS)
		return;
	while (weft_request_test(req, NULL) == WEFT_INPROGRESS && now_ns() < end)
		weft_worker_progress(wfi.worker);
	weft_request_free(req);
}

void wfi_worker_put(void)
{
	if (--wfi.endpoints > 0)
		return;
	flush();
	weft_worker_destroy(wfi.worker);
	wfi.worker = NULL;
}

void wfi_process_forked(void)
{
	unsigned int generation = wfi.generation + 1, workers = wfi.worker_number;

	wfi = (struct wfi_process){.generation = generation, .worker_number = workers};
	wfi_lock_forked();
}

/* ------------------------------------------------------------------ errors */

int wfi_errno(int status)
{
	int error = status < 0 ? -status : status;

	switch (error) {
	case EMSGSIZE:
		return FI_ETRUNC;
	case EKEYREJECTED:
	case ERANGE:
		return FI_EACCES;
	case EPROTONOSUPPORT:
		return FI_EOPNOTSUPP;
	default: /* libfabric uses the system's numbers */
		return error;
	}
}
