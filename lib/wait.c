/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping until a lane, a timer or another thread has something to do; wait.h has the states. The
 * heartbeat of workers whose owners compute.
 */

#include "wait.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/question.h"
#include "base/thread.h"
#include "core/config.h"
#include "core/worker.h"
#include "listen.h"
#include "msg/msg.h"
#include "wireup/wireup.h"

/*
 * The first sleep if a lane cannot wake the worker, ns. The next ones double, to WEFT_WAIT_SLEEP.
 */
#define SLEEP_MIN_NS 50000u
/* The maximum number of waits that skip polling after polls without result. */
#define SPIN_SKIP_MAX 64u
/* The most by which the kernel's clock and the platform's differ over the longest sleep. */
#define CLOCKS_DIFFER_NS 1000000u
#define NEVER UINT64_MAX
/* A thread that waits until roused sleepers have left checks again for signals after this time. */
#define LEAVING_MAX_NS 100000000u

/* ------------------------------------------------------------------ descriptors */

int weft_wait_fd_of(struct weft_lane_iface *iface)
{
	if (iface->attr.features & WEFT_LANE_F_LOOPBACK)
		return -ENOTSUP;
	return iface->ops->wait_fd ? iface->ops->wait_fd(iface) : -ENOTSUP;
}

static int epoll_add(const struct weft_wait *wait, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(wait->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* The worker polls lanes without a usable descriptor from time to time. */
static void add_ifaces(struct weft_worker *w, struct weft_wait *wait)
{
	unsigned int i;
	int fd;

	for (i = 0; i < w->num_ifaces; i++) {
		fd = weft_wait_fd_of(w->ifaces[i]);
		if (fd >= 0 && epoll_add(wait, fd) == 0)
			wait->in_epoll |= 1u << i;
	}
}

static void close_fds(const struct weft_wait *wait)
{
	if (wait->epoll >= 0)
		close(wait->epoll);
	if (wait->timer >= 0)
		close(wait->timer);
	if (wait->event >= 0)
		close(wait->event);
}

static int open_fds(struct weft_wait *wait)
{
	int rc;

	wait->epoll = epoll_create1(EPOLL_CLOEXEC);
	wait->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	wait->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wait->epoll < 0 || wait->timer < 0 || wait->event < 0)
		return -errno;
	rc = epoll_add(wait, wait->timer);
	return rc < 0 ? rc : epoll_add(wait, wait->event);
}

static void init_left(struct weft_wait *wait)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&wait->left, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&wait->left_lock, NULL);
}

/* Create the state of a worker that waits, at the first call that needs it. Worker locked. */
static int wait_open(struct weft_worker *w)
{
	struct weft_wait *wait;
	int rc;

	if (w->wait)
		return 0;
	wait = calloc(1, sizeof(*wait));
	if (!wait)
		return -ENOMEM;
	wait->timer_at = NEVER;
	rc = open_fds(wait);
	if (rc < 0) {
		close_fds(wait);
		free(wait);
		return rc;
	}
	init_left(wait);
	add_ifaces(w, wait);
	w->wait = wait;
	/*
	 * Sequentially consistent with w->signalled: weft_worker_signal() sees this descriptor, or
	 * the next arm_lanes() sees the flag that it set before.
	 */
	atomic_store(&w->wake_fd, wait->event);
	return 0;
}

void weft_wait_close(struct weft_worker *w)
{
	struct weft_wait *wait = w->wait;

	if (!wait)
		return;
	if (w->armed)
		weft_wait_disarm(w);
	atomic_store(&w->wake_fd, -1);
	w->wait = NULL;
	close_fds(wait);
	pthread_cond_destroy(&wait->left);
	pthread_mutex_destroy(&wait->left_lock);
	free(wait);
}

/* ------------------------------------------------------------------ what others have handled */

/*
 * A thread checks its request, and sleeps while the request is under way. Between the check and the
 * sleep another thread may handle the event, and nothing would wake the sleeper. So a thread sleeps
 * or arms only if it has seen all events that the worker has handled. Each thread has a record for
 * the last few workers, since one thread may wait for several.
 */
#define SEEN_WORKERS 8

static _Thread_local struct seen {
	uint64_t id, handled;
} seen[SEEN_WORKERS];

/* Without a record, a worker counts as one with unseen events: one needless check. Locked. */
static struct seen *seen_of(const struct weft_worker *w)
{
	static _Thread_local unsigned int next;
	unsigned int i;

	for (i = 0; i < SEEN_WORKERS; i++)
		if (seen[i].id == w->id)
			return &seen[i];
	i = next++ % SEEN_WORKERS;
	seen[i] = (struct seen){.id = w->id};
	return &seen[i];
}

/* Has the worker handled events that this thread has not seen? They count as seen then. Locked. */
static bool others_have(struct weft_worker *w)
{
	struct seen *s;
	bool news;

	if (!w->multi)
		return false;
	s = seen_of(w);
	news = s->handled != w->handled;
	s->handled = w->handled;
	return news;
}

/* ------------------------------------------------------------------ arming */

static void disarm_ifaces(struct weft_worker *w)
{
	struct weft_wait *wait = w->wait;
	unsigned int i;

	for (i = 0; wait->armed_ifaces >> i != 0; i++)
		if (wait->armed_ifaces >> i & 1)
			w->ifaces[i]->ops->disarm(w->ifaces[i]);
	wait->armed_ifaces = 0;
}

/*
 * Sleep until a descriptor is readable, or with @p timeout 0 only check. @return 1: only the timer
 * is readable; 0: another descriptor, or none; or an error
 */
static int wait_events(const struct weft_wait *wait, int timeout)
{
	struct epoll_event ev[2];
	int n = epoll_wait(wait->epoll, ev, 2, timeout);

	return n < 0 ? -errno : n == 1 && ev[0].data.fd == wait->timer;
}

void weft_wait_disarm(struct weft_worker *w)
{
	struct weft_wait *wait = w->wait;

	/*
	 * Check again: since the timer expired, the thread may have waited for a core. A frame that
	 * arrived in that time does not show that a wake-up was lost.
	 */
	wait->by_timer = wait->by_timer && wait_events(wait, 0) == 1;
	wait->others =
		w->multi && (wait->sleepers > 0 || !pthread_equal(wait->armer, pthread_self()));
	if (!wait->others)
		wait->roused = false; /* no other thread sleeps, and this one is awake */
	w->armed = false;
	disarm_ifaces(w);
}

/* Sleepers have been roused, and some have not left their wait yet. Worker locked. */
static bool are_leaving(const struct weft_wait *wait)
{
	return wait->roused && wait->sleepers > 0;
}

/* Read the eventfd, which does not block: mostly it has no event. */
static void empty_event(struct weft_wait *wait)
{
	uint64_t count;
	ssize_t n = read(wait->event, &count, sizeof(count));

	(void)n;
	wait->roused = false;
}

/* Has a signal, or a call that roused sleepers, come since the last check? */
static bool take_signal(struct weft_worker *w)
{
	struct weft_wait *wait = w->wait;
	bool found = atomic_exchange(&w->signalled, false);

	if (found && wait->sleepers > 0)
		weft_wait_rouse(w); /* the signal is for the sleepers, too */
	w->handled += found;        /* the next wait of each other thread returns for the signal */
	found = found || wait->roused;
	if (wait->sleepers == 0)
		empty_event(wait);
	return found;
}

/* Arm the lanes. @p due is lowered to the time of their next work. @return 0; -EBUSY: work now */
static int arm_ifaces(struct weft_worker *w, uint64_t now, uint64_t *due)
{
	struct weft_wait *wait = w->wait;
	struct weft_lane_iface *iface;
	bool blind = false;
	unsigned int i;

	for (i = 0; i < w->num_ifaces; i++) {
		iface = w->ifaces[i];
		if (iface->quiet)
			continue;
		if (iface->attr.features & WEFT_LANE_F_LOOPBACK)
			return -EBUSY; /* a loopback iface that is not quiet has work */
		blind = blind || !(wait->in_epoll >> i & 1);
		if (!iface->ops->arm)
			continue;
		if (iface->ops->arm(iface, now, due) != 0)
			return -EBUSY;
		wait->armed_ifaces |= 1u << i;
	}
	if (blind) {
		*due = now + wait->sleep < *due ? now + wait->sleep : *due;
		wait->sleep = wait->sleep * 2;
	}
	return 0;
}

static void limit_sleep(struct weft_worker *w)
{
	uint64_t most = w->ctx->conf->wait_sleep_ns;
	struct weft_wait *wait = w->wait;

	if (wait->sleep < SLEEP_MIN_NS)
		wait->sleep = SLEEP_MIN_NS;
	if (wait->sleep > most)
		wait->sleep = most;
}

static int set_timer(struct weft_wait *wait, uint64_t now, uint64_t due)
{
	struct itimerspec ts = {0};

	/*
	 * A timer that expires too early does no harm, and keeping it saves a system call. But it
	 * must not have expired already by the kernel's clock.
	 */
	if (wait->timer_at == due && due == NEVER)
		return 0;
	if (wait->timer_at <= due && wait->timer_at > now &&
	    wait->timer_at - now > CLOCKS_DIFFER_NS)
		return 0;
	wait->timer_at = due;
	if (due != NEVER) {
		ts.it_value.tv_sec = (time_t)((due - now) / 1000000000u);
		ts.it_value.tv_nsec = (long)((due - now) % 1000000000u);
	}
	return timerfd_settime(wait->timer, 0, &ts, NULL) < 0 ? -errno : 0;
}

/*
 * Arm the lanes and the timer before the thread sleeps. The worker is locked, and not armed yet.
 * @param due  the caller's own deadline
 * @return 0: armed; -EBUSY: progress has work; -EALREADY: a signal, or another thread, requests
 * progress; or another error
 */
static int arm_lanes(struct weft_worker *w, uint64_t due)
{
	struct weft_wait *wait = w->wait;
	bool soon = false;
	uint64_t now;
	int rc;

	if (take_signal(w))
		return -EALREADY;
	if (weft_question_is_posted(w->question) || weft_msg_busy(w, &soon) ||
	    !LIST_EMPTY(&w->conns->dead) ||
	    atomic_load_explicit(&w->ctx->mem_garbage, memory_order_relaxed))
		return -EBUSY;
	now = w->ctx->platform->now(w->ctx->platform->arg);
	due = w->next_timer < due ? w->next_timer : due;
	if (w->connects && weft_connects_ready(w, &due))
		return -EBUSY;
	limit_sleep(w);
	if (soon && now + wait->sleep < due)
		due = now + wait->sleep;
	rc = arm_ifaces(w, now, &due);
	if (rc == 0 && due <= now)
		rc = -EBUSY;
	if (rc == 0)
		rc = set_timer(wait, now, due);
	if (rc != 0) {
		disarm_ifaces(w);
		return rc;
	}
	w->armed = true;
	wait->armed_at = now;
	wait->by_timer = false;
	return 0;
}

/* Do all lanes wake the worker? Events of a lane that the timer polls show no lost wake-up. */
static bool all_wake(const struct weft_worker *w)
{
	for (unsigned int i = 0; i < w->num_ifaces; i++)
		if (!(w->wait->in_epoll >> i & 1) &&
		    !(w->ifaces[i]->attr.features & WEFT_LANE_F_LOOPBACK))
			return false;
	return true;
}

void weft_wait_found(struct weft_worker *w)
{
	struct weft_wait *wait = w->wait;

	if (!wait->by_timer || !all_wake(w))
		return;
	w->count.wake_lost++;
	w->count.wake_lost_ns += w->now - wait->armed_at;
}

void weft_wait_after(struct weft_worker *w, unsigned int n)
{
	struct weft_wait *wait = w->wait;

	if (n > 0)
		wait->sleep = 0;
	if (!wait->others)
		return;
	wait->others = false;
	if (n > 0 || arm_lanes(w, wait->timer_at) != 0)
		weft_wait_rouse(w);
}

int weft_worker_arm(struct weft_worker *w)
{
	bool leaving;
	int rc;

	if (!w)
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_worker_arm");
	weft_worker_lock(w);
	rc = w->in_progress ? -EDEADLK : wait_open(w);
	if (rc == 0 && w->armed)
		weft_wait_disarm(w);
	if (rc == 0)
		rc = others_have(w) ? -EBUSY : arm_lanes(w, NEVER);
	if (rc == 0)
		w->wait->armer = pthread_self();
	leaving = rc == -EALREADY && are_leaving(w->wait);
	weft_worker_unlock_armed(w);
	if (leaving)
		sched_yield(); /* the roused threads need the core */
	return rc == -EALREADY ? -EBUSY : rc;
}

int weft_worker_get_fd(struct weft_worker *w)
{
	int rc;

	if (!w)
		return -EINVAL;
	weft_worker_lock(w);
	rc = wait_open(w);
	if (rc == 0)
		rc = w->wait->epoll;
	weft_worker_unlock_armed(w);
	return rc;
}

/* ------------------------------------------------------------------ waiting */

static uint64_t now_of(const struct weft_worker *w)
{
	return w->ctx->platform->now(w->ctx->platform->arg);
}

static bool want_spin(struct weft_worker *w)
{
	struct weft_wait *wait = w->wait;
	bool yes;

	weft_worker_lock(w);
	yes = wait->spin_skip == 0 && wait->sleepers == 0 && w->ctx->conf->wait_spin_ns > 0;
	if (wait->spin_skip > 0)
		wait->spin_skip--;
	weft_worker_unlock_armed(w);
	return yes;
}

static void learn_spin(struct weft_worker *w, bool found)
{
	struct weft_wait *wait = w->wait;

	weft_worker_lock(w);
	if (found) {
		wait->spin_backoff = 0;
		wait->sleep = 0;
	} else if (wait->spin_backoff < SPIN_SKIP_MAX) {
		wait->spin_backoff = wait->spin_backoff > 0 ? wait->spin_backoff * 2 : 1;
	}
	wait->spin_skip = wait->spin_backoff;
	weft_worker_unlock_armed(w);
}

/*
 * Poll for a short time. Polling finds nothing if peers share the core or are far away, so each
 * failure lets more of the following waits skip it. @return number of events handled
 */
static unsigned int spin_for(struct weft_worker *w, uint64_t until)
{
	uint64_t now = now_of(w), end = now + w->ctx->conf->wait_spin_ns;
	unsigned int n = 0;

	if (now >= until || !want_spin(w))
		return 0;
	end = end < until ? end : until;
	while (n == 0 && now < end) {
		n = weft_worker_progress(w);
		now = now_of(w);
	}
	learn_spin(w, n > 0);
	return n;
}

/* Other threads sleep already: set the timer for this thread's deadline, too. Worker locked. */
static int join_sleepers(struct weft_worker *w, uint64_t until)
{
	struct weft_wait *wait = w->wait;

	return until < wait->timer_at ? set_timer(wait, now_of(w), until) : 0;
}

/* Count this thread as awake. The last of the roused threads ends the wake-up. Worker locked. */
static void leave_sleepers(struct weft_wait *wait)
{
	bool last = are_leaving(wait) && wait->sleepers == 1;

	wait->sleepers--;
	if (!last)
		return;
	/*
	 * weft_worker_signal() sets its flag before it writes to the event, so the next arm_lanes()
	 * finds a signal that is sent from here on.
	 */
	empty_event(wait);
	pthread_mutex_lock(&wait->left_lock);
	wait->wakeups++;
	pthread_cond_broadcast(&wait->left);
	pthread_mutex_unlock(&wait->left_lock);
}

/*
 * Wait until the last sleeper of the wake-up with this number has left, but not beyond @p until and
 * LEAVING_MAX_NS. Worker not locked.
 */
static void await_leaving(struct weft_worker *w, uint64_t number, uint64_t until)
{
	struct weft_wait *wait = w->wait;
	uint64_t now = now_of(w), most = until > now ? until - now : 0;
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	most = most < LEAVING_MAX_NS ? most : LEAVING_MAX_NS;
	ts.tv_nsec += (long)most;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	pthread_mutex_lock(&wait->left_lock);
	while (wait->wakeups == number &&
	       pthread_cond_timedwait(&wait->left, &wait->left_lock, &ts) == 0)
		;
	pthread_mutex_unlock(&wait->left_lock);
}

/*
 * @return 0: awake again; -EAGAIN: roused threads were leaving, try again; -EALREADY: signalled,
 *   roused, or another thread has handled events; -EINTR; -EBUSY: progress has work; or another
 *   error
 */
static int sleep_until(struct weft_worker *w, uint64_t until)
{
	struct weft_wait *wait = w->wait;
	uint64_t wakeups;
	int rc;

	weft_worker_lock(w);
	wakeups = wait->wakeups;
	if (others_have(w))
		rc = -EALREADY;
	else if (are_leaving(wait))
		rc = -EAGAIN;
	else
		rc = w->armed ? join_sleepers(w, until) : arm_lanes(w, until);
	wait->sleepers += rc == 0;
	weft_worker_unlock_armed(w);
	if (rc == -EAGAIN)
		await_leaving(w, wakeups, until);
	if (rc != 0)
		return rc;
	rc = wait_events(wait, -1);
	weft_worker_lock(w);
	wait->by_timer = rc == 1;
	rc = rc > 0 ? 0 : rc;
	wait->armer = pthread_self(); /* its own progress call follows: it rouses no other thread */
	if (rc == 0 && wait->roused)
		rc = -EALREADY;
	leave_sleepers(wait);
	weft_worker_unlock_armed(w);
	return rc;
}

static int wait_until(struct weft_worker *w, uint64_t until)
{
	unsigned int n = weft_worker_progress(w);
	int rc;

	if (n == 0)
		n = spin_for(w, until);
	while (n == 0) {
		if (now_of(w) >= until)
			return -ETIMEDOUT;
		rc = sleep_until(w, until);
		if (rc != 0 && rc != -EBUSY && rc != -EALREADY && rc != -EINTR && rc != -EAGAIN)
			return rc;
		n = weft_worker_progress(w);
		if (n == 0 && (rc == -EINTR || rc == -EALREADY))
			return 0;
		if (n == 0 && rc == -EBUSY)
			sched_yield(); /* other threads may have to wake first */
	}
	return n < INT32_MAX ? (int)n : INT32_MAX;
}

int weft_worker_wait(struct weft_worker *w, int64_t timeout_ns)
{
	uint64_t now, until = NEVER;
	int rc;

	if (!w)
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_worker_wait");
	weft_worker_lock(w);
	rc = w->in_progress ? -EDEADLK : wait_open(w);
	weft_worker_unlock_armed(w);
	if (rc < 0)
		return rc;
	now = now_of(w);
	if (timeout_ns >= 0 && (uint64_t)timeout_ns < NEVER - now)
		until = now + (uint64_t)timeout_ns;
	rc = wait_until(w, until);
	if (w->multi) {
		weft_worker_lock(w);
		others_have(w); /* the caller checks its requests now */
		weft_worker_unlock_armed(w);
	}
	return rc;
}

int weft_wait(struct weft_worker *w, int status, struct weft_request **req,
	      struct weft_completion *c)
{
	int rc;

	if (status != WEFT_INPROGRESS)
		return status;
	if (!w || !req || !*req)
		return -EINVAL;
	while ((status = weft_request_test(*req, c)) == WEFT_INPROGRESS) {
		rc = weft_worker_wait(w, -1);
		if (rc == -EDEADLK || rc == -EBUSY)
			return rc;
		if (rc < 0) /* no descriptor or no memory: poll the worker */
			weft_worker_progress(w);
	}
	weft_request_free(*req);
	*req = NULL;
	return status;
}

/* ------------------------------------------------------------------ heartbeat */

/* A worker whose lock is taken is checked again after its interval divided by this. */
#define BEAT_AGAIN 4u

static struct {
	/* Guards the list. Held during beat(): the thread uses no worker that has left. */
	pthread_mutex_t lock;
	/* Serialises starting and ending the thread; taken before `lock`. */
	pthread_mutex_t life;
	pthread_cond_t changed; /* the list has changed; timeouts are of the monotonic clock */
	LIST_HEAD(, weft_worker) workers;
	pthread_t thread;
} heartbeat = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.life = PTHREAD_MUTEX_INITIALIZER,
	.workers = LIST_HEAD_INITIALIZER(heartbeat.workers),
};

/* Send the worker's heartbeat if it is due. @return ns until the worker is checked again */
static uint64_t beat(struct weft_worker *w)
{
	const struct weft_platform *platform = w->ctx->platform;
	uint64_t every = w->ctx->conf->heartbeat_ns, now, since;

	/* The owner is inside a call, so it makes progress now or soon. */
	if (!weft_lock_try(&w->lock))
		return every / BEAT_AGAIN;
	now = platform->now(platform->arg);
	since = now > w->now ? now - w->now : 0;
	/*
	 * A worker that is armed needs no heartbeat: frames of the peer wake its thread, which
	 * answers them.
	 */
	if (since >= every && !w->armed && !w->destroying) {
		for (unsigned int i = 0; i < w->num_ifaces; i++)
			if (w->ifaces[i]->ops->beat)
				w->ifaces[i]->ops->beat(w->ifaces[i]);
		since = 0;
	}
	weft_lock_release(&w->lock);
	return since < every ? every - since : every;
}

static void add_ns(struct timespec *t, uint64_t ns)
{
	ns += (uint64_t)t->tv_nsec;
	t->tv_sec += (time_t)(ns / 1000000000);
	t->tv_nsec = (long)(ns % 1000000000);
}

static void *run_heartbeat(void *arg)
{
	struct weft_worker *w;
	struct timespec until;
	uint64_t wait, next;

	(void)arg;
	pthread_mutex_lock(&heartbeat.lock);
	while (!LIST_EMPTY(&heartbeat.workers)) {
		wait = UINT64_MAX;
		LIST_FOREACH(w, &heartbeat.workers, heartbeat) {
			next = beat(w);
			wait = next < wait ? next : wait;
		}
		clock_gettime(CLOCK_MONOTONIC, &until);
		add_ns(&until, wait);
		pthread_cond_timedwait(&heartbeat.changed, &heartbeat.lock, &until);
	}
	pthread_mutex_unlock(&heartbeat.lock);
	return NULL;
}

static void init_changed(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&heartbeat.changed, &attr);
	pthread_condattr_destroy(&attr);
}

int weft_heartbeat_add(struct weft_worker *w)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	bool first;
	int rc = 0;

	pthread_once(&once, init_changed);
	pthread_mutex_lock(&heartbeat.life);
	pthread_mutex_lock(&heartbeat.lock);
	first = LIST_EMPTY(&heartbeat.workers);
	LIST_INSERT_HEAD(&heartbeat.workers, w, heartbeat);
	pthread_cond_signal(&heartbeat.changed);
	pthread_mutex_unlock(&heartbeat.lock);
	if (first)
		rc = weft_thread_start("weft-heartbeat", run_heartbeat, NULL, NULL,
				       &heartbeat.thread);
	if (rc != 0)
		LIST_REMOVE(w, heartbeat); /* the list has no other worker, and no thread uses it */
	w->beats = rc == 0;
	pthread_mutex_unlock(&heartbeat.life);
	return rc;
}

void weft_heartbeat_remove(struct weft_worker *w)
{
	bool last;

	if (!w->beats)
		return;
	pthread_mutex_lock(&heartbeat.life);
	pthread_mutex_lock(&heartbeat.lock);
	LIST_REMOVE(w, heartbeat);
	w->beats = false;
	last = LIST_EMPTY(&heartbeat.workers);
	pthread_cond_signal(&heartbeat.changed);
	pthread_mutex_unlock(&heartbeat.lock);
	if (last)
		pthread_join(heartbeat.thread, NULL);
	pthread_mutex_unlock(&heartbeat.life);
}
