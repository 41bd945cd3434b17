/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/fork.h"

#include <pthread.h>

#include "provider/ep.h"
#include "provider/op.h"
#include "provider/peer.h"
#include "provider/process.h"
#include "provider/thread.h"
#include "provider/wait.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int error;

/*
 * Another thread of the parent may have held the lock, with a table half changed. So the child
 * reads no state: everything is initialized again, and the memory is leaked.
 */
static void in_child(void)
{
	wfi_process_forked();
	wfi_thread_forked();
	wfi_wait_forked();
	wfi_eps_forked();
	wfi_peers_forked();
	wfi_ops_forked();
}

static void watch(void)
{
	error = -pthread_atfork(NULL, NULL, in_child);
}

int wfi_fork_watch(void)
{
	pthread_once(&once, watch);
	return error;
}
