/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_lcore.h>
#include <rte_pause.h>
#include <rte_spinlock.h>
#include <rte_timer.h>

#include "base/thread.h"
#include "port/event.h"
#include "port/kernel.h"
#include "port/port.h"
#include "port/zcopy.h"

/* ---- events --------------------------------------------------------------------------------- */

/*
 * PMDs report events in DPDK's interrupt thread, or in the thread that runs their timers. The
 * callback changes one word, and unmaps user memory from a device that is freed. The thread that
 * polls the port compares the word with the value that it saw last.
 */

#define ONE_MORE (WEFT_PORT_ENDED + 1)

/* By port number: a late callback finds the word, and the next opening sees the last end. */
static _Atomic uint32_t lives[RTE_MAX_ETHPORTS];

/*
 * The thread that frees vhost's device first reports the loss of the link. So the callback of that
 * event waits for threads that use the port.
 */
static rte_spinlock_t locks[RTE_MAX_ETHPORTS];

void weft_port_events_hold(uint16_t id)
{
	rte_spinlock_lock(&locks[id]);
}

void weft_port_events_release(uint16_t id)
{
	rte_spinlock_unlock(&locks[id]);
}

/* ---- in any thread -------------------------------------------------------------------------- */

static int on_event(uint16_t id, enum rte_eth_event_type type, void *arg, void *ret)
{
	_Atomic uint32_t *life = &lives[id];

	RTE_SET_USED(arg);
	RTE_SET_USED(ret);
	/* Relaxed, here and wherever the word is read: no other data depends on it. */
	if (type == RTE_ETH_EVENT_INTR_RMV)
		atomic_fetch_or_explicit(life, WEFT_PORT_REMOVED, memory_order_relaxed);
	else if (type == RTE_ETH_EVENT_INTR_RESET)
		atomic_fetch_or_explicit(life, WEFT_PORT_RESET, memory_order_relaxed);
	else if (type == RTE_ETH_EVENT_DESTROY)
		atomic_fetch_or_explicit(life, WEFT_PORT_TAKEN, memory_order_relaxed);
	/* The port is stopped, and its struct rte_device is freed after this event. */
	if (type == RTE_ETH_EVENT_DESTROY)
		weft_dma_close(id);
	atomic_fetch_add_explicit(life, ONE_MORE, memory_order_relaxed);
	weft_port_events_hold(id);
	weft_port_events_release(id);
	return 0;
}

static uint32_t life_of(uint16_t id)
{
	return atomic_load_explicit(&lives[id], memory_order_relaxed);
}

/* ---- opening and closing -------------------------------------------------------------------- */

static const enum rte_eth_event_type handled_events[] = {
	RTE_ETH_EVENT_INTR_LSC,
	RTE_ETH_EVENT_INTR_RMV,
	RTE_ETH_EVENT_INTR_RESET,
	RTE_ETH_EVENT_DESTROY,
};

void weft_port_events_on(struct weft_port_dev *d)
{
	size_t i;

	/* Without memory for the callback the port works; its end is then detected by timeouts. */
	for (i = 0; i < RTE_DIM(handled_events); i++)
		rte_eth_dev_callback_register(d->port_id, handled_events[i], on_event, NULL);
	d->life = &lives[d->port_id];
}

void weft_port_events_off(struct weft_port_dev *d)
{
	size_t i;

	for (i = 0; i < RTE_DIM(handled_events); i++) {
		/*
		 * RTE_ETH_EVENT_DESTROY must still come after a removal: then the number is free.
		 */
		if (handled_events[i] == RTE_ETH_EVENT_DESTROY &&
		    life_of(d->port_id) & WEFT_PORT_REMOVED)
			continue;
		/* The callback is running, and returns in a moment. */
		while (rte_eth_dev_callback_unregister(d->port_id, handled_events[i], on_event,
						       NULL) == -EAGAIN)
			rte_pause();
	}
}

void weft_port_events_conf(const struct weft_port_dev *d, struct rte_eth_conf *conf)
{
	uint32_t flags = d->info.dev_flags ? *d->info.dev_flags : 0;

	if (d->limits.link != WEFT_LANE_LINK_NIC)
		return;
	conf->intr_conf.lsc = !!(flags & RTE_ETH_DEV_INTR_LSC);
	conf->intr_conf.rmv = !!(flags & RTE_ETH_DEV_INTR_RMV);
}

int weft_port_revive(const struct weft_port_dev *d, char *why, size_t why_len)
{
	uint16_t id = d->port_id;
	int rc;

	/* The number now belongs to another device, or to the same one again. */
	if (life_of(id) & WEFT_PORT_TAKEN)
		atomic_fetch_and_explicit(&lives[id], ~WEFT_PORT_ENDED, memory_order_relaxed);
	if (life_of(id) & WEFT_PORT_REMOVED || rte_eth_dev_is_removed(id) == 1) {
		snprintf(why, why_len,
			 "port %u (%s) was removed from this machine; when the NIC is back, start "
			 "the process again, or give it to DPDK again (rte_dev_remove(), "
			 "rte_dev_probe())",
			 id, d->name);
		return -ENODEV;
	}
	if (!(life_of(id) & WEFT_PORT_RESET))
		return 0;
	rc = rte_eth_dev_reset(id);
	/* A PMD without this operation resets itself, or is reset when it is configured. */
	if (rc && rc != -ENOTSUP) {
		snprintf(
			why, why_len,
			"port %u (%s) wanted a reset, and does not take it (%s): try again in some "
			"seconds, when its PF or its host is ready",
			id, d->name, rte_strerror(-rc));
		return rc;
	}
	atomic_fetch_and_explicit(&lives[id], ~WEFT_PORT_RESET, memory_order_relaxed);
	return 0;
}

void weft_port_events_begin(struct weft_port *p)
{
	p->life_seen = life_of(p->port_id) & ~WEFT_PORT_ENDED;
	p->link_up = p->fp.ops->link_up(&p->fp);
}

uint32_t weft_port_life(const struct weft_port_dev *d)
{
	return life_of(d->port_id);
}

bool weft_port_is_taken(const struct weft_port_dev *d)
{
	return d->life && life_of(d->port_id) & WEFT_PORT_TAKEN;
}

enum weft_lane_link weft_port_link_kind(const struct weft_port_dev *d)
{
	const struct rte_bus *bus = d->info.device ? rte_bus_find_by_device(d->info.device) : NULL;

	if (d->limits.kernel_link)
		return WEFT_LANE_LINK_HOST;
	/* The link of a virtual device depends on the process at its other end. */
	if (d->limits.no_link || (bus && !strcmp(rte_bus_name(bus), "vdev")))
		return WEFT_LANE_LINK_PEER;
	return WEFT_LANE_LINK_NIC;
}

/* ---- speed ---------------------------------------------------------------------------------- */

static bool speed_known(const struct weft_port_dev *d, const struct rte_eth_link *link)
{
	return !d->limits.guess && link->link_speed != RTE_ETH_SPEED_NUM_NONE &&
	       link->link_speed != RTE_ETH_SPEED_NUM_UNKNOWN;
}

double weft_port_bandwidth(const struct weft_port_dev *d, uint32_t *flags)
{
	struct rte_eth_link link = {0};

	*flags &= ~WEFT_FRAME_PORT_GUESS;
	/* Memory is not measured while connecting: the first access to its pages takes longer. */
	if (d->limits.no_link)
		return 0;
	if (d->limits.guess)
		*flags |= WEFT_FRAME_PORT_GUESS;
	if (rte_eth_link_get_nowait(d->port_id, &link) ||
	    link.link_speed == RTE_ETH_SPEED_NUM_NONE ||
	    link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN) {
		*flags |= WEFT_FRAME_PORT_GUESS;
		return 1.25e9;
	}
	return link.link_speed * 1e6 / 8;
}

static void speed_text(const struct weft_port_dev *d, char *buf, size_t size)
{
	struct rte_eth_link link = {0};

	buf[0] = '\0';
	if (d->limits.no_link || rte_eth_link_get_nowait(d->port_id, &link) ||
	    !speed_known(d, &link))
		return;
	if (link.link_speed < 1000)
		snprintf(buf, size, "%u Mb/s", link.link_speed);
	else
		snprintf(buf, size, "%g Gb/s", link.link_speed / 1000.0);
}

/* ---- in the thread that polls the port ------------------------------------------------------- */

static enum weft_frame_port_what event_ended(const struct weft_port_dev *d, uint32_t life,
					     struct weft_frame_port_event *ev)
{
	if (life & WEFT_PORT_TAKEN && !(life & WEFT_PORT_REMOVED)) {
		ev->status = -ENODEV;
		snprintf(ev->text, sizeof(ev->text),
			 "the application has closed the port or taken its device away "
			 "(rte_eth_dev_close(), rte_dev_remove()); destroy the workers that use "
			 "it first");
	} else if (life & WEFT_PORT_REMOVED) {
		ev->status = -ENODEV;
		snprintf(ev->text, sizeof(ev->text),
			 "the NIC was removed from this machine (unplugged, or its host took it "
			 "away); it is of no use to this process any more");
	} else {
		ev->status = -ENETRESET;
		snprintf(ev->text, sizeof(ev->text),
			 "the NIC wants a reset (its PF, its host or %s requests it); close the "
			 "context and create it again, which does that",
			 d->info.driver_name ? d->info.driver_name : "its driver");
	}
	return WEFT_FRAME_PORT_ENDED;
}

static void link_cause(const struct weft_port_dev *d, char *buf, size_t size)
{
	if (d->limits.kernel_link)
		weft_kernel_link_why(d->limits.if_index, buf, size);
	else if (d->limits.memif)
		snprintf(buf, size, "the other process has closed it, or ended");
	else if (d->limits.link == WEFT_LANE_LINK_NIC)
		snprintf(buf, size, "the cable, the switch, or the other end of it");
}

enum weft_frame_port_what weft_port_look(struct weft_frame_port *fp,
					 struct weft_frame_port_event *ev)
{
	struct weft_port *p = weft_port_of(fp);
	const struct weft_port_dev *d = p->dev;
	uint32_t flags = fp->flags, life = life_of(d->port_id);
	double before = fp->bandwidth;
	bool up;

	ev->text[0] = '\0';
	/* life_seen is not updated, so the port stays halted. */
	if (life & WEFT_PORT_ENDED)
		return event_ended(d, life, ev);
	p->life_seen = life;
	up = fp->ops->link_up(fp);
	if (!up && p->link_up) {
		p->link_up = false;
		link_cause(d, ev->text, sizeof(ev->text));
		return WEFT_FRAME_PORT_LINK_DOWN;
	}
	if (!up)
		return WEFT_FRAME_PORT_NOTHING;
	if (d->limits.link == WEFT_LANE_LINK_NIC) {
		fp->bandwidth = weft_port_bandwidth(d, &flags);
		fp->flags = flags;
	}
	speed_text(d, ev->text, sizeof(ev->text));
	if (!p->link_up) {
		p->link_up = true;
		return WEFT_FRAME_PORT_LINK_UP;
	}
	if (fp->bandwidth == before)
		return WEFT_FRAME_PORT_NOTHING;
	if (ev->text[0] == '\0')
		snprintf(ev->text, sizeof(ev->text), "not known");
	return WEFT_FRAME_PORT_SPEED;
}

/* ---- timers --------------------------------------------------------------------------------- */

/*
 * rte_timer_manage() runs only the timers of the calling lcore, which may include those of the
 * application. It aborts in a thread that is no lcore, as most threads of Weft's users are. So one
 * thread of Weft becomes an lcore, starts ports whose PMDs rely on timers, which makes it the owner
 * of these timers, and runs them. So the watchdog also works while the application computes.
 */

/* Drivers of DPDK 22.11 to 24.11 that use rte_timer for a port's health. */
static const char *const need_timers[] = {"net_ena"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct {
	pthread_t thread;
	unsigned int ports; /* the thread runs while there are any */
	bool starting;      /* port_id is to be started */
	bool lcore;
	bool known; /* `lcore` is valid */
	uint16_t port_id;
	int rc;
} timers;

bool weft_port_needs_timers(const struct weft_port_dev *d)
{
	size_t i;

	for (i = 0; i < RTE_DIM(need_timers); i++)
		if (d->info.driver_name && !strcmp(d->info.driver_name, need_timers[i]))
			return true;
	return false;
}

/* The lock is held. */
static void start_port(void)
{
	uint16_t id = timers.port_id;
	int rc;

	pthread_mutex_unlock(&lock);
	rc = rte_eth_dev_start(id);
	pthread_mutex_lock(&lock);
	timers.rc = rc;
	timers.starting = false;
	pthread_cond_broadcast(&changed);
}

static void *timer_thread(void *arg)
{
	bool lcore = rte_thread_register() == 0;
	struct timespec next;

	RTE_SET_USED(arg);
	pthread_mutex_lock(&lock);
	timers.lcore = lcore;
	timers.known = true;
	pthread_cond_broadcast(&changed);
	while (timers.ports > 0) {
		if (timers.starting) {
			start_port();
			continue;
		}
		clock_gettime(CLOCK_REALTIME, &next);
		next.tv_sec++;
		if (pthread_cond_timedwait(&changed, &lock, &next) != ETIMEDOUT || !lcore)
			continue;
		pthread_mutex_unlock(&lock);
		rte_timer_manage();
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	if (lcore)
		rte_thread_unregister();
	return NULL;
}

static int make_thread(void)
{
	timers.known = timers.lcore = timers.starting = false;
	return weft_thread_start("weft-nic-timers", timer_thread, NULL, NULL, &timers.thread);
}

int weft_port_timers_start(struct weft_port_dev *d)
{
	int rc;

	pthread_mutex_lock(&lock);
	timers.ports++;
	if (timers.ports == 1 && make_thread()) {
		timers.ports--;
		pthread_mutex_unlock(&lock);
		d->warning =
			"its PMD's watchdog does not run, since no thread can be made for it: a "
			"NIC that hangs is found by WEFT_PEER_TIMEOUT only";
		return rte_eth_dev_start(d->port_id);
	}
	d->timers = true;
	while (!timers.known)
		pthread_cond_wait(&changed, &lock);
	if (!timers.lcore)
		d->warning =
			"its PMD's watchdog does not run, since DPDK has no lcore left for it or "
			"secondary processes are attached: a NIC that hangs is found by "
			"WEFT_PEER_TIMEOUT only";
	timers.port_id = d->port_id;
	timers.starting = true;
	pthread_cond_broadcast(&changed);
	while (timers.starting)
		pthread_cond_wait(&changed, &lock);
	rc = timers.rc;
	pthread_mutex_unlock(&lock);
	return rc;
}

void weft_port_timers_stop(struct weft_port_dev *d)
{
	bool last;

	if (!d->timers)
		return;
	d->timers = false;
	pthread_mutex_lock(&lock);
	last = --timers.ports == 0;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	if (last)
		pthread_join(timers.thread, NULL);
}
