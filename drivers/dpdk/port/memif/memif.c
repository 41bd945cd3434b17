/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a memif connection.
 *
 * The PMD makes and ends connections in the EAL's interrupt thread, and a start or stop in another
 * thread meets it there. So every start and stop of ours runs in that thread, as an alarm; and the
 * PMD does not see its peer go (see port/memif/relay.h): the thread that polls the port is told,
 * stops touching the rings, and only then has them taken down.
 *
 * A client's start fails while its server is not there, it is sent away by a server that is not
 * ready, and its connection is not made again by itself: then it is started anew, every 100 ms. No
 * time limit is set to a handshake: a server that is stopped in the middle of one goes on with it.
 */

#include <errno.h>
#include <semaphore.h>
#include <string.h>

#include <rte_alarm.h>
#include <rte_cycles.h>
#include <rte_log.h>

#include "port/memif/relay.h"
#include "port/priv.h"

#define RETRY_MS 100

/* ---- in the interrupt thread ---------------------------------------------------------------- */

static bool has_link(const struct weft_port_dev *d)
{
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(d->port_id, &link) == 0 &&
	       link.link_status == RTE_ETH_LINK_UP;
}

static int start_quietly(struct weft_port_dev *d)
{
	/* A client logs an error for each try while its server is not there yet. */
	int type = d->memif.name.server ? -1 : rte_log_register("pmd.net.memif");
	int level = type >= 0 ? rte_log_get_level((uint32_t)type) : -1;
	int rc;

	if (level >= 0)
		rte_log_set_level((uint32_t)type, RTE_LOG_EMERG);
	rc = rte_eth_dev_start(d->port_id);
	if (level >= 0)
		rte_log_set_level((uint32_t)type, (uint32_t)level);
	return rc;
}

static void stop_now(struct weft_port_dev *d)
{
	if (d->memif.running)
		rte_eth_dev_stop(d->port_id);
	d->memif.running = false;
	if (d->memif.relay)
		weft_memif_relay_stopped(d->memif.relay);
}

static void do_restart(void *arg)
{
	struct weft_port_dev *d = arg;
	struct weft_port_memif *mi = &d->memif;

	stop_now(d);
	mi->running = start_quietly(d) == 0;
	if (mi->running && mi->relay && weft_memif_relay_started(mi->relay))
		stop_now(d);
	__atomic_store_n(&d->started, mi->running, __ATOMIC_RELEASE);
	__atomic_store_n(&mi->busy, false, __ATOMIC_RELEASE);
}

static void do_open(void *arg)
{
	struct weft_port_dev *d = arg;
	struct weft_port_memif *mi = &d->memif;

	/* Which port of a shared listening socket a client wants is for the PMD to find out. */
	if ((!mi->name.server || mi->alone) &&
	    weft_memif_relay_open(d->port_id, &mi->name, &mi->relay))
		mi->relay = NULL;
	do_restart(d);
}

static void do_close(void *arg)
{
	struct weft_port_dev *d = arg;

	stop_now(d);
	weft_memif_relay_close(d->memif.relay);
	d->memif.relay = NULL;
}

struct wait {
	struct weft_port_dev *d;
	void (*fn)(void *arg);
	sem_t done;
};

static void do_and_tell(void *arg)
{
	struct wait *w = arg;

	w->fn(w->d);
	sem_post(&w->done);
}

/* Run it there and wait for it; here, if it can't be had there. */
static void run_and_wait(struct weft_port_dev *d, void (*fn)(void *arg))
{
	struct wait w = {.d = d, .fn = fn};

	sem_init(&w.done, 0, 0);
	if (rte_eal_alarm_set(1, do_and_tell, &w))
		fn(d);
	else
		while (sem_wait(&w.done) && errno == EINTR)
			;
	sem_destroy(&w.done);
}

static void run_soon(struct weft_port_dev *d, void (*fn)(void *arg))
{
	__atomic_store_n(&d->memif.busy, true, __ATOMIC_RELEASE);
	if (rte_eal_alarm_set(1, fn, d))
		fn(d);
}

/* ---- from the port's owner ------------------------------------------------------------------ */

void weft_memif_start(struct weft_port_dev *d)
{
	run_and_wait(d, do_open);
	d->memif.next_tsc = rte_rdtsc() + rte_get_tsc_hz() * RETRY_MS / 1000;
}

void weft_memif_stop(struct weft_port_dev *d)
{
	d->started = false;
	/* Alarms run one after the other: what was scheduled before is over then. */
	run_and_wait(d, do_close);
}

static bool has_left(const struct weft_port_dev *d)
{
	return d->memif.relay && weft_memif_relay_left(d->memif.relay);
}

void weft_memif_look(struct weft_port_dev *d)
{
	struct weft_port_memif *mi = &d->memif;
	uint64_t now;

	if (__atomic_load_n(&mi->busy, __ATOMIC_ACQUIRE) || (d->started && !has_left(d)))
		return;
	now = rte_rdtsc();
	if (now < mi->next_tsc)
		return;
	mi->next_tsc = now + rte_get_tsc_hz() * RETRY_MS / 1000;
	d->started = false;
	run_soon(d, do_restart);
}

bool weft_memif_link_up(struct weft_port_dev *d)
{
	weft_memif_look(d);
	return d->started && has_link(d) && !has_left(d);
}

/* ---- an owner that sleeps ------------------------------------------------------------------- */

/* Between two looks at a port that has no connection. */
#define LOOK_NS 10000000u

static struct weft_memif_ring *ring_of(const struct weft_port_dev *d)
{
	/* A client that takes without copying gives slots back late, and so the ring tells less. */
	if (!d->memif.relay || d->num_queues > 1 || d->limits.no_extbuf)
		return NULL;
	return weft_memif_relay_ring(d->memif.relay);
}

int weft_memif_wait_fd(struct weft_port_dev *d)
{
	struct weft_memif_ring *r = ring_of(d);

	return r ? weft_memif_ring_fd(r) : -ENOTSUP;
}

int weft_memif_arm(struct weft_port_dev *d, uint64_t *within)
{
	struct weft_memif_ring *r = ring_of(d);
	int rc;

	if (!r)
		return 0;
	d->memif.armed = false;
	rc = weft_memif_link_up(d) ? weft_memif_ring_arm(r) : -ENOTCONN;
	if (rc == -EBUSY)
		return rc;
	d->memif.armed = rc == 0;
	/*
	 * The connection makes itself known, but a client without a server tries again by being
	 * looked at.
	 */
	if (rc)
		*within = RTE_MIN(*within, (uint64_t)LOOK_NS);
	return 0;
}

void weft_memif_disarm(struct weft_port_dev *d)
{
	struct weft_memif_ring *r = ring_of(d);

	if (r && d->memif.armed)
		weft_memif_ring_disarm(r);
	else if (r)
		weft_memif_ring_awake(r);
	d->memif.armed = false;
	weft_memif_look(d);
}
