/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/pdump.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_memzone.h>
#include <rte_pdump.h>

#include "base/log.h"

/* rte_pdump_init() reserves it; it exists if the application has called that before. */
#define PDUMP_MEMZONE "rte_pdump_stats"

static int no_answer(const struct rte_mp_msg *msg, const void *peer)
{
	(void)msg;
	(void)peer;
	return 0;
}

/* No call reports whether the EAL shares files, but otherwise it registers no message handlers. */
static bool shares_files(void)
{
	static const char name[] = "weft_pdump_question";

	if (rte_mp_action_register(name, no_answer))
		return false;
	rte_mp_action_unregister(name);
	return true;
}

/* @return the reason why no process can attach, or NULL */
static const char *why_not(void)
{
	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return "this process is a secondary one itself";
	if (!rte_eal_has_hugepages())
		return "the EAL has no hugepages";
	if (!shares_files())
		return "the EAL shares no files (--in-memory, --no-shconf)";
	if (!rte_memzone_lookup(PDUMP_MEMZONE) && rte_pdump_init())
		return rte_strerror(rte_errno);
	return NULL;
}

static void serve_dumpcap(void)
{
	const char *prefix = rte_eal_get_runtime_dir(), *why = why_not();

	if (why) {
		weft_warn("dpdk: WEFT_DUMPCAP: dpdk-dumpcap can't attach: %s", why);
		return;
	}
	prefix = strrchr(prefix, '/') + 1;
	weft_info("dpdk: for captures: dpdk-dumpcap --file-prefix=%s -i PORT", prefix);
}

void weft_pdump_serve(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, serve_dumpcap);
}
