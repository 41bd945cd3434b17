/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lifetime of a memif connection.
 *
 * The PMD makes and ends connections in the EAL's interrupt thread, and a start or stop in another
 * thread would race with it. So every start and stop runs in that thread, as an alarm. The PMD does
 * not see its peer leave (see port/memif/relay.h). The thread that polls the port is notified and
 * stops using the rings, and only then has them removed.
 *
 * A client's start fails while its server does not run, and a server that is not ready rejects it.
 * A lost connection is not made again by itself. In each case the client is started again, every
 * 100 ms. A handshake has no time limit: a server that is stopped in the middle of one continues it
 * later.
 */

#include <errno.h>
#include <semaphore.h>

#include <rte_alarm.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_log.h>

#include "port/memif/memif.h"
#include "port/memif/relay.h"
#include "port/memif/ring.h"

#define RETRY_MS 100

/* ---- in the interrupt thread ---------------------------------------------------------------- */

static bool has_link(const struct weft_memif *mi)
{
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(mi->port_id, &link) == 0 &&
	       link.link_status == RTE_ETH_LINK_UP;
}

static int start_quietly(struct weft_memif *mi)
{
	/* A client logs an error for each try while its server does not run yet. */
	int type = mi->name.server ? -1 : rte_log_register("pmd.net.memif");
	int level = type >= 0 ? rte_log_get_level((uint32_t)type) : -1;
	int rc;

	if (level >= 0)
		rte_log_set_level((uint32_t)type, RTE_LOG_EMERG);
	rc = rte_eth_dev_start(mi->port_id);
	if (level >= 0)
		rte_log_set_level((uint32_t)type, (uint32_t)level);
	return rc;
}

static void stop_now(struct weft_memif *mi)
{
	if (mi->running)
		rte_eth_dev_stop(mi->port_id);
	mi->running = false;
	if (mi->relay)
		weft_memif_relay_stopped(mi->relay);
}

static void do_restart(void *arg)
{
	struct weft_memif *mi = arg;

	stop_now(mi);
	mi->running = start_quietly(mi) == 0;
	if (mi->running && mi->relay && weft_memif_relay_started(mi->relay))
		stop_now(mi);
	__atomic_store_n(mi->started, mi->running, __ATOMIC_RELEASE);
	__atomic_store_n(&mi->busy, false, __ATOMIC_RELEASE);
}

static void do_open(void *arg)
{
	struct weft_memif *mi = arg;

	/* Only the PMD can find out which port of a shared listening socket a client requests. */
	if ((!mi->name.server || mi->alone) &&
	    weft_memif_relay_open(mi->port_id, &mi->name, &mi->relay))
		mi->relay = NULL;
	do_restart(mi);
}

static void do_close(void *arg)
{
	struct weft_memif *mi = arg;

	stop_now(mi);
	weft_memif_relay_close(mi->relay);
	mi->relay = NULL;
}

struct wait {
	struct weft_memif *mi;
	void (*fn)(void *arg);
	sem_t done;
};

static void run_and_post(void *arg)
{
	struct wait *w = arg;

	w->fn(w->mi);
	sem_post(&w->done);
}

/* Run @p fn in that thread and wait for it; run it here if no alarm can be set. */
static void run_and_wait(struct weft_memif *mi, void (*fn)(void *arg))
{
	struct wait w = {.mi = mi, .fn = fn};

	sem_init(&w.done, 0, 0);
	if (rte_eal_alarm_set(1, run_and_post, &w))
		fn(mi);
	else
		while (sem_wait(&w.done) && errno == EINTR)
			;
	sem_destroy(&w.done);
}

static void run_soon(struct weft_memif *mi, void (*fn)(void *arg))
{
	__atomic_store_n(&mi->busy, true, __ATOMIC_RELEASE);
	if (rte_eal_alarm_set(1, fn, mi))
		fn(mi);
}

/* ---- from the port's owner ------------------------------------------------------------------ */

void weft_memif_start(struct weft_memif *mi)
{
	run_and_wait(mi, do_open);
	mi->next_tsc = rte_rdtsc() + rte_get_tsc_hz() * RETRY_MS / 1000;
}

void weft_memif_stop(struct weft_memif *mi)
{
	*mi->started = false;
	/* Alarms run one after the other: those that were scheduled before are done then. */
	run_and_wait(mi, do_close);
}

static bool has_left(const struct weft_memif *mi)
{
	return mi->relay && weft_memif_relay_left(mi->relay);
}

void weft_memif_look(struct weft_memif *mi)
{
	uint64_t now;

	if (__atomic_load_n(&mi->busy, __ATOMIC_ACQUIRE) || (*mi->started && !has_left(mi)))
		return;
	now = rte_rdtsc();
	if (now < mi->next_tsc)
		return;
	mi->next_tsc = now + rte_get_tsc_hz() * RETRY_MS / 1000;
	*mi->started = false;
	run_soon(mi, do_restart);
}

bool weft_memif_link_up(struct weft_memif *mi)
{
	weft_memif_look(mi);
	return *mi->started && has_link(mi) && !has_left(mi);
}

/* ---- an owner that sleeps ------------------------------------------------------------------- */

/* ns between two checks of a port that has no connection. */
#define LOOK_NS 10000000u

static struct weft_memif_ring *ring_of(const struct weft_memif *mi)
{
	if (!mi->relay || mi->no_wait)
		return NULL;
	return weft_memif_relay_ring(mi->relay);
}

int weft_memif_wait_fd(struct weft_memif *mi)
{
	struct weft_memif_ring *r = ring_of(mi);

	return r ? weft_memif_ring_fd(r) : -ENOTSUP;
}

int weft_memif_arm(struct weft_memif *mi, uint64_t *within)
{
	struct weft_memif_ring *r = ring_of(mi);
	int rc;

	if (!r)
		return 0;
	mi->armed = false;
	rc = weft_memif_link_up(mi) ? weft_memif_ring_arm(r) : -ENOTCONN;
	if (rc == -EBUSY)
		return rc;
	mi->armed = rc == 0;
	/*
	 * A new connection wakes the owner, but a client without a server retries only when it is
	 * checked.
	 */
	if (rc)
		*within = RTE_MIN(*within, (uint64_t)LOOK_NS);
	return 0;
}

void weft_memif_disarm(struct weft_memif *mi)
{
	struct weft_memif_ring *r = ring_of(mi);

	if (r && mi->armed)
		weft_memif_ring_disarm(r);
	else if (r)
		weft_memif_ring_awake(r);
	mi->armed = false;
	weft_memif_look(mi);
}
