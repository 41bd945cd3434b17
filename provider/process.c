/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/process.h"

#include <errno.h>
#include <limits.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/secret.h"
#include "base/thread.h"
#include "provider/provider.h"

/* ------------------------------------------------------------------ the lock */

struct wfi_lock wfi_the_lock = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

/* With the mutex: end alone mode, and wait until no thread holds the lock by a store. */
static void exclude(void)
{
	struct wfi_lock *l = &wfi_the_lock;

	/*
	 * Acquire: if wfi_lock_shared() has set `alone` to false, this thread sees `inside`, which
	 * is true while the caller of wfi_lock_shared() holds the lock by a store.
	 */
	if (atomic_load_explicit(&l->alone, memory_order_acquire)) {
		atomic_store_explicit(&l->alone, false, memory_order_relaxed);
		membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	}
	/* Acquire: changes that a thread made inside are visible. */
	while (atomic_load_explicit(&l->inside, memory_order_acquire))
		sched_yield();
	l->by_store = false;
	l->wanted = false;
}

void wfi_lock_any(void)
{
	pthread_mutex_lock(&wfi_the_lock.mutex);
	exclude();
}

/*
 * Another thread may enable alone mode while this one waits for the mutex. Then no thread is
 * inside: in alone mode the callers of wfi_lock() serialize their calls.
 */
void wfi_lock_slow(void)
{
	struct wfi_lock *l = &wfi_the_lock;

	pthread_mutex_lock(&l->mutex);
	/* Acquire: as in exclude(). */
	if (!atomic_load_explicit(&l->alone, memory_order_acquire))
		while (atomic_load_explicit(&l->inside, memory_order_acquire))
			sched_yield();
	l->by_store = false;
}

/* With the mutex: has register_process() been started as a thread, and not been joined? */
static bool has_thread;
static pthread_t registrar;

/* Enable alone mode, if that is wanted and possible. With the mutex. */
static void enable(void)
{
	struct wfi_lock *l = &wfi_the_lock;

	if (l->wanted && l->registered)
		/*
		 * Release: a thread that takes the lock by a store sees changes made with the
		 * mutex.
		 */
		atomic_store_explicit(&l->alone, true, memory_order_release);
}

static void *register_process(void *arg)
{
	bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;

	pthread_mutex_lock(&wfi_the_lock.mutex);
	wfi_the_lock.registered = registered;
	enable();
	pthread_mutex_unlock(&wfi_the_lock.mutex);
	return arg;
}

void wfi_unlock_alone(void)
{
	struct wfi_lock *l = &wfi_the_lock;

	l->wanted = true;
	/* In a process with one thread the registration does not wait. */
	if (!l->registered && __libc_single_threaded)
		l->registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
	/* There is one attempt until the thread is joined; if it fails, the mutex is the lock. */
	if (!l->registered && !has_thread)
		has_thread = weft_thread_start("weft-register", register_process, NULL, NULL,
					       &registrar) == 0;
	enable();
	pthread_mutex_unlock(&l->mutex);
}

/* Release the mutex, which the caller has locked, and join the thread of register_process(). */
static void unlock_and_join(void)
{
	pthread_t joined = registrar;
	bool join = has_thread;

	has_thread = false;
	pthread_mutex_unlock(&wfi_the_lock.mutex);
	if (join)
		pthread_join(joined, NULL);
}

void wfi_lock_join(void)
{
	pthread_mutex_lock(&wfi_the_lock.mutex);
	unlock_and_join();
}

void wfi_lock_join_at_exit(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	if (pthread_mutex_clocklock(&wfi_the_lock.mutex, CLOCK_MONOTONIC, &until) == 0)
		unlock_and_join();
}

void wfi_lock_forked(void)
{
	/* Relaxed: the child has one thread. */
	atomic_store_explicit(&wfi_the_lock.alone, false, memory_order_relaxed);
	atomic_store_explicit(&wfi_the_lock.inside, false, memory_order_relaxed);
	wfi_the_lock.by_store = false;
	wfi_the_lock.wanted = false;
	wfi_the_lock.registered = false;
	has_thread = false;
	pthread_mutex_init(&wfi_the_lock.mutex, NULL);
}

/* ------------------------------------------------------------------ state of the process */

/*
 * The last endpoint waits for peers to take its messages: until nothing has happened for FLUSH_NS,
 * and at most for FLUSH_MAX_NS. A peer that lives can be without processor time for seconds, and a
 * slow one grants credit only when half a window is used. WEFT_PEER_TIMEOUT is inf by default
 * (provider.c), so FLUSH_NS ends the wait for a host that is gone. FLUSH_MAX_NS is for a peer that
 * sends without end, which must not stop the exit.
 */
#define FLUSH_NS 30000000000ull
#define FLUSH_MAX_NS 120000000000ull

struct wfi_process wfi;

void wfi_yield(void)
{
	wfi_unlock();
	sched_yield();
	wfi_lock();
}

/* ------------------------------------------------------------------ the context */

#define FEATURES                                                                      \
	(WEFT_FEATURE_TAG | WEFT_FEATURE_AM | WEFT_FEATURE_RMA | WEFT_FEATURE_AMO32 | \
	 WEFT_FEATURE_AMO64)

bool wfi_process_has_key(const uint8_t *key)
{
	if (!key || (wfi.key && memcmp(key, wfi.key, WFI_KEY_LEN) == 0))
		return true;
	FI_WARN(&wfi_provider, FI_LOG_CORE,
		"auth_key: all domains of a process share one job key, and the first one that was "
		"opened has another one, or none: give all domains and endpoints the same one\n");
	return false;
}

/* @return 0 or -FI_ENOMEM */
static int keep_key(const uint8_t *key)
{
	wfi.key = key ? weft_secret_alloc(WFI_KEY_LEN) : NULL;
	if (key && !wfi.key)
		return -FI_ENOMEM;
	if (key)
		memcpy(wfi.key, key, WFI_KEY_LEN);
	return 0;
}

/*
 * Keep the key by which frames are sealed, if they are. weft_context_create() has validated the key
 * and WEFT_SEAL. @return 0 or a negative error
 */
static int keep_seal_key(const struct weft_config *config)
{
	char seal[16] = "", path[PATH_MAX] = "", why[512];
	bool remote;
	int rc = 0;

	weft_config_get(config, "SEAL", seal, sizeof(seal));
	weft_config_get(config, "JOB_KEY", path, sizeof(path));
	if (strcmp(seal, "off") == 0 || (!wfi.key && path[0] == '\0'))
		return 0;
	wfi.seal_key = weft_secret_alloc(WFI_KEY_LEN);
	if (!wfi.seal_key)
		return -ENOMEM;
	if (wfi.key)
		memcpy(wfi.seal_key, wfi.key, WFI_KEY_LEN);
	else
		rc = weft_job_key_load(path, wfi.seal_key, &remote, why, sizeof(why));
	if (rc < 0)
		FI_WARN(&wfi_provider, FI_LOG_CORE, "WEFT_JOB_KEY: %s\n", why);
	return rc;
}

static void forget_keys(void)
{
	weft_secret_free(wfi.key, WFI_KEY_LEN);
	weft_secret_free(wfi.seal_key, WFI_KEY_LEN);
	wfi.key = wfi.seal_key = NULL;
}

/* Ranks on several nodes may have one process number, in containers for example. */
static const char *name_of_rank(char name[64])
{
	long rank = wfi_job_rank();

	if (rank < 0)
		return NULL;
	snprintf(name, 64, "%.30s-rank%ld-%d", program_invocation_short_name, rank, (int)getpid());
	return name;
}

static int create_context(void)
{
	char name[64];
	struct weft_context_params params =
		WEFT_INIT(struct weft_context_params, .name = name_of_rank(name),
			  .features = FEATURES, .job_key = wfi.key);
	struct weft_config *config;
	int rc;

	rc = wfi_options_config(&wfi.options, &config);
	if (rc < 0)
		return -wfi_errno(rc);
	params.config = config;
	rc = weft_context_create(&params, &wfi.ctx);
	if (rc == 0) {
		rc = keep_seal_key(config);
		if (rc < 0) {
			weft_context_destroy(wfi.ctx);
			wfi.ctx = NULL;
		}
	}
	weft_config_release(config);
	return rc < 0 ? -wfi_errno(rc) : 0;
}

int wfi_process_get(const uint8_t *key)
{
	int rc;

	if (wfi.domains > 0) {
		if (!wfi_process_has_key(key))
			return -FI_EINVAL;
		wfi.domains++;
		return 0;
	}
	rc = wfi_options_read(&wfi.options);
	if (rc == 0)
		rc = keep_key(key);
	if (rc < 0)
		return rc;
	rc = create_context();
	if (rc < 0) {
		forget_keys();
		return rc;
	}
	wfi.domains = 1;
	return 0;
}

void wfi_process_put(void)
{
	if (--wfi.domains > 0)
		return;
	weft_context_destroy(wfi.ctx);
	wfi.ctx = NULL;
	forget_keys();
}

/* ------------------------------------------------------------------ the worker */

int wfi_worker_get(void)
{
	struct weft_worker_params params =
		WEFT_INIT(struct weft_worker_params, .thread_mode = WEFT_THREAD_SINGLE,
			  .flags = WEFT_WORKER_F_SEND_NOW);
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

static void connection_closed(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	wfi.closing--;
}

void wfi_connection_close(struct weft_ep *ep)
{
	struct weft_op_params params = WEFT_INIT(struct weft_op_params, .cb = connection_closed);

	if (weft_ep_close(ep, 0, &params, NULL) == WEFT_INPROGRESS)
		wfi.closing++;
}

/*
 * Messages that are complete for the application may still wait for credit or a window. A flush of
 * the worker leaves out closed connections, which still send such messages. So their closes must
 * end before the worker is destroyed.
 */
static void flush(void)
{
	uint64_t now = now_ns(), last = now + FLUSH_MAX_NS, end = now + FLUSH_NS;
	struct weft_request *req = NULL;

	weft_worker_flush(wfi.worker, NULL, &req);
	while (((req && weft_request_test(req, NULL) == WEFT_INPROGRESS) || wfi.closing > 0) &&
	       now < end && now < last) {
		now = now_ns();
		if (weft_worker_progress(wfi.worker) > 0)
			end = now + FLUSH_NS;
		sched_yield(); /* the peer may need this core */
	}
	if (req)
		weft_request_free(req);
}

void wfi_worker_put(void)
{
	if (--wfi.endpoints > 0)
		return;
	flush();
	weft_worker_destroy(wfi.worker);
	wfi.worker = NULL;
	wfi.closing = 0; /* closes that flush() did not see end have ended with the worker */
}

/* ------------------------------------------------------------------ domains */

#define APP_DOMAINS 256

/* Numbers in use, by domains in which the application chooses keys. */
static bool numbers[APP_DOMAINS];

int wfi_domain_number_take(struct wfi_domain *domain)
{
	if (!domain->app_keys)
		return 0;
	for (unsigned int i = 0; i < APP_DOMAINS; i++) {
		if (numbers[i])
			continue;
		numbers[i] = true;
		domain->number = (uint8_t)i;
		return 0;
	}
	return -FI_EMFILE;
}

void wfi_domain_number_put(const struct wfi_domain *domain)
{
	if (domain->app_keys)
		numbers[domain->number] = false;
}

void wfi_process_forked(void)
{
	unsigned int generation = wfi.generation + 1, workers = wfi.worker_number;

	wfi = (struct wfi_process){.generation = generation, .worker_number = workers};
	memset(numbers, 0, sizeof(numbers));
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

/* ------------------------------------------------------------------ sleeping */

#define REARMS 8

static LIST_HEAD(, wfi_wait) sleepers = LIST_HEAD_INITIALIZER(sleepers);

static int add(const struct wfi_wait *wait, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(wait->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int wfi_wait_open(struct wfi_wait *wait)
{
	int rc;

	wait->sleeping = 0;
	wait->worker = 0; /* the new epoll set has no worker's descriptor yet */
	wait->epoll = epoll_create1(EPOLL_CLOEXEC);
	wait->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = wait->epoll < 0 || wait->event < 0 ? -errno : add(wait, wait->event);
	if (rc < 0)
		wfi_wait_close(wait);
	return rc;
}

static void disarm(struct wfi_wait *wait)
{
	if (!wait->armed)
		return;
	wait->armed = false;
	LIST_REMOVE(wait, entry);
	wfi.sleepers--;
}

void wfi_wait_close(struct wfi_wait *wait)
{
	disarm(wait);
	if (wait->epoll >= 0)
		close(wait->epoll);
	if (wait->event >= 0)
		close(wait->event);
	wait->epoll = -1;
	wait->event = -1;
}

void wfi_wait_signal(struct wfi_wait *wait)
{
	uint64_t one = 1;
	ssize_t n;

	if (wait->event < 0)
		return;
	n = write(wait->event, &one, sizeof(one)); /* a full event is readable already */
	(void)n;
}

/* Wake all sleepers; or only the progress thread and sleepers whose rearms are used up. */
static void wake(bool all)
{
	struct wfi_wait *wait, *next;

	for (wait = LIST_FIRST(&sleepers); wait; wait = next) {
		next = LIST_NEXT(wait, entry);
		if (!all && !wait->shy && wait->rearms-- > 0)
			continue;
		wfi_wait_signal(wait);
		disarm(wait);
	}
}

void wfi_arm_for_sleepers(void)
{
	wake(false);
	if (wfi.sleepers != 0 && wfi.worker && weft_worker_arm(wfi.worker) < 0)
		wake(true);
}

/* Consume a signal. @return was there one? */
static bool take_signal(const struct wfi_wait *wait)
{
	uint64_t count;

	return read(wait->event, &count, sizeof(count)) == (ssize_t)sizeof(count);
}

static int add_worker(struct wfi_wait *wait)
{
	int fd, rc;

	/* The descriptor of an earlier worker left the set when it was closed. */
	if (!wfi.worker || wait->worker == wfi.worker_number)
		return 0;
	fd = weft_worker_get_fd(wfi.worker);
	rc = fd < 0 ? fd : add(wait, fd);
	if (rc == 0)
		wait->worker = wfi.worker_number;
	return rc;
}

int wfi_wait_arm(struct wfi_wait *wait)
{
	int rc;

	/* Alone mode ends: other threads must be able to take the lock and wake the sleeper. */
	wfi_lock_shared();
	if (take_signal(wait))
		return -FI_EAGAIN;
	rc = add_worker(wait);
	if (rc == 0 && wfi.worker)
		rc = weft_worker_arm(wfi.worker);
	if (rc < 0)
		return rc == -EBUSY ? -FI_EAGAIN : -wfi_errno(rc);
	wait->rearms = REARMS;
	if (!wait->armed) {
		wait->armed = true;
		LIST_INSERT_HEAD(&sleepers, wait, entry);
		wfi.sleepers++;
	}
	return 0;
}

void wfi_unlock_armed(void)
{
	wfi_lock_release();
}

int wfi_wait_sleep(struct wfi_wait *wait, int timeout)
{
	struct pollfd fd = {.fd = wait->epoll, .events = POLLIN};
	int rc;

	rc = wfi_wait_arm(wait);
	if (rc == -FI_EAGAIN) {
		wfi_unlock();
		sched_yield();
		wfi_lock_any(); /* by the mutex, as after poll() */
		return 0;
	}
	if (rc < 0)
		return rc;
	wait->sleeping++;
	wfi_unlock_armed();
	poll(&fd, 1, timeout); /* if interrupted, the caller polls and sleeps again */
	/* By the mutex: in the meantime the lock may be in alone mode for another thread. */
	wfi_lock_any();
	if (--wait->sleeping == 0)
		disarm(wait);
	return 0;
}

void wfi_wait_forked(void)
{
	LIST_INIT(&sleepers);
}

/* ------------------------------------------------------------------ deadlines */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

struct wfi_deadline wfi_deadline(int timeout)
{
	if (timeout < 0)
		return (struct wfi_deadline){.never = true};
	return (struct wfi_deadline){.at = now_ms() + (unsigned int)timeout};
}

int wfi_deadline_left(const struct wfi_deadline *deadline)
{
	uint64_t now;

	if (deadline->never)
		return -1;
	now = now_ms();
	return now < deadline->at ? (int)(deadline->at - now) : 0;
}

/* ------------------------------------------------------------------ progress thread */

/* The maximum progress calls of the thread before it releases the lock. */
#define ROUNDS 64
/* The worker's descriptor wakes the thread; this is a safety timeout. */
#define SLEEP_MS 1000
/*
 * WFI_THREAD_WATCH: the interval of the checks, 20 ms, and the least time between two rounds of
 * progress, 0.5 ms. They limit the time that the thread takes from an application that computes.
 */
static const struct timespec watch_interval = {.tv_nsec = 20000000};
static const struct timespec watch_rest = {.tv_nsec = 500000};

/*
 * `lifetime` guards starting and stopping of the thread. It is taken before the lock of the
 * process, which the thread needs to end.
 */
static pthread_mutex_t lifetime = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;
static unsigned int users;
static struct wfi_wait idle = WFI_WAIT_CLOSED;
/* `stop` and `autos` are read without a lock: a change takes effect in the thread's next round. */
static atomic_bool stop;
static atomic_uint autos; /* users of the kind WFI_THREAD_AUTO */
static struct timespec interval;

/* @return has the application made a call that makes progress, since the last check? */
static bool is_polled(void)
{
	static unsigned int seen;
	/* Relaxed: only whether the number changes matters. */
	unsigned int calls = atomic_load_explicit(&wfi.progress_calls, memory_order_relaxed);
	bool called = seen != calls;

	seen = calls;
	return called;
}

/*
 * Make progress, also for threads of the application that sleep: a completion wakes those that wait
 * for it. Before this thread sleeps, it arms the worker for itself and for the others, since all
 * epoll sets have the worker's descriptor. Locked. @return is there nothing more to do?
 */
static bool work(void)
{
	unsigned int more = wfi.worker ? 1 : 0;

	for (int i = 0; i < ROUNDS && more > 0; i++)
		more = weft_worker_progress(wfi.worker);
	return more == 0;
}

/* Sleep for this time, or until wfi_wait_signal(&idle). Not locked. */
static void rest(const struct timespec *time)
{
	struct pollfd fd = {.fd = idle.event, .events = POLLIN};

	if (ppoll(&fd, 1, time, NULL) > 0)
		take_signal(&idle);
}

static void make_progress(void)
{
	int rc;

	wfi_lock_any();
	rc = work() ? wfi_wait_sleep(&idle, SLEEP_MS) : 0;
	wfi_unlock();
	if (rc < 0)
		rest(&interval);
}

/*
 * Frames that the window or the port holds back, and lost ones, leave with a later call of their
 * sender, and an application whose send is complete may make none. Threads of the application that
 * sleep in calls make progress themselves.
 */
static void make_progress_for_others(void)
{
	wfi_lock_any();
	if (wfi.sleepers == 0 && work())
		wfi_wait_sleep(&idle, SLEEP_MS); /* after an error the next round tries again */
	if (wfi.sleepers == 0 && wfi.serialized)
		wfi_unlock_alone();
	else
		wfi_unlock();
	rest(&watch_rest);
}

static void *run(void *arg)
{
	bool automatic;

	(void)arg;
	idle.shy = true;
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		automatic = atomic_load_explicit(&autos, memory_order_relaxed) > 0;
		if (is_polled())
			rest(automatic ? &interval : &watch_interval);
		else if (automatic)
			make_progress();
		else
			make_progress_for_others();
	}
	return NULL;
}

/* Start the thread. @return 0, or a negative error: the thread does not run */
static int first_user(unsigned int interval_us)
{
	int rc;

	interval.tv_sec = interval_us / 1000000;
	interval.tv_nsec = (long)(interval_us % 1000000) * 1000;
	atomic_store(&stop, false);
	rc = wfi_wait_open(&idle);
	if (rc == 0) {
		rc = weft_thread_start("weft-progress", run, NULL, NULL, &thread);
		if (rc < 0)
			wfi_wait_close(&idle);
	}
	return rc;
}

int wfi_thread_start(enum wfi_thread kind, unsigned int interval_us)
{
	int rc;

	pthread_mutex_lock(&lifetime);
	atomic_fetch_add(&autos, kind == WFI_THREAD_AUTO);
	rc = users == 0 ? first_user(interval_us) : 0;
	if (rc == 0)
		users++;
	else
		atomic_fetch_sub(&autos, kind == WFI_THREAD_AUTO);
	wfi_wait_signal(&idle);
	pthread_mutex_unlock(&lifetime);
	return rc;
}

void wfi_thread_stop(enum wfi_thread kind)
{
	pthread_mutex_lock(&lifetime);
	atomic_fetch_sub(&autos, kind == WFI_THREAD_AUTO);
	if (--users == 0) {
		atomic_store(&stop, true);
		wfi_wait_signal(&idle);
		pthread_join(thread, NULL);
		wfi_lock_any();
		wfi_wait_close(&idle);
		wfi_unlock();
	}
	pthread_mutex_unlock(&lifetime);
}

void wfi_thread_forked(void)
{
	pthread_mutex_init(&lifetime, NULL);
	users = 0;
	atomic_store(&autos, 0);
	idle = (struct wfi_wait)WFI_WAIT_CLOSED;
}
