/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a memif connection.
 *
 * The PMD takes a connection down in the EAL's interrupt thread, as soon as its peer's end of the
 * control socket closes: it unmaps the rings while another thread may be copying out of them, and
 * frees what a stop in another thread frees too. Both end in a crash, of the survivor. So (a) every
 * start and stop of ours runs in the interrupt thread, as an alarm, where it can't meet the PMD's
 * handler; and (b) once a connection is up, its control socket is taken away from the interrupt
 * thread: the PMD's descriptor becomes one end of a silent socket pair, the real socket is watched
 * by the thread that polls the port, which stops touching the rings before it has them taken down.
 *
 * A client's start fails while its server is not there, and its connection is not made again by
 * itself: then it is started anew, every 100 ms.
 */

/* Interrupt handles are experimental in 22.11 and stable since. */
#define ALLOW_EXPERIMENTAL_API

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_cycles.h>
#include <rte_interrupts.h>
#include <rte_log.h>

#include "port_priv.h"

#define RETRY_MS 100
/*
 * A handshake that takes longer has failed, and some do. Beware: a server that is stopped for
 * longer in the middle of one finds a connection given up when it wakes, DPDK's memif then closes a
 * socket that its interrupt thread still polls, and the EAL aborts.
 */
#define PATIENCE_MS 1000

/* ---- the control socket --------------------------------------------------------------------- */

static bool is_path(const struct weft_port_memif *mi, const struct sockaddr_un *un, socklen_t len)
{
	size_t n = strlen(mi->path), at = mi->abstract ? 1 : 0;
	size_t have = len - offsetof(struct sockaddr_un, sun_path);

	if (len <= offsetof(struct sockaddr_un, sun_path) || have < at + n)
		return false;
	if (mi->abstract && un->sun_path[0])
		return false;
	return !memcmp(un->sun_path + at, mi->path, n) &&
	       (have == at + n || un->sun_path[at + n] == '\0');
}

static int int_option(int fd, int option)
{
	socklen_t len = sizeof(int);
	int v = -1;

	return getsockopt(fd, SOL_SOCKET, option, &v, &len) ? -1 : v;
}

/* A connected one, by the name of the server's end. */
static bool is_control(const struct weft_port_memif *mi, int fd)
{
	struct sockaddr_un un = {0};
	socklen_t len = sizeof(un);
	int rc;

	if (int_option(fd, SO_DOMAIN) != AF_UNIX || int_option(fd, SO_TYPE) != SOCK_SEQPACKET ||
	    int_option(fd, SO_ACCEPTCONN) != 0)
		return false;
	rc = mi->server ? getsockname(fd, (struct sockaddr *)&un, &len)
			: getpeername(fd, (struct sockaddr *)&un, &len);
	return rc == 0 && un.sun_family == AF_UNIX && is_path(mi, &un, len);
}

static int find_control(const struct weft_port_memif *mi)
{
	long max = sysconf(_SC_OPEN_MAX);
	int fd;

	if (max < 0 || max > 65536)
		max = 65536;
	for (fd = 0; fd < max; fd++)
		if (is_control(mi, fd))
			return fd;
	return -1;
}

static void no_event(void *arg)
{
	RTE_SET_USED(arg);
}

/* The interrupt thread collects its descriptors anew when the set of sources changes. */
static void refresh_interrupts(void)
{
	struct rte_intr_handle *h = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	if (h && fd >= 0 && !rte_intr_fd_set(h, fd) && !rte_intr_type_set(h, RTE_INTR_HANDLE_EXT) &&
	    !rte_intr_callback_register(h, no_event, NULL))
		while (rte_intr_callback_unregister(h, no_event, NULL) == -EAGAIN)
			;
	if (fd >= 0)
		close(fd);
	rte_intr_instance_free(h);
}

/* Runs in the interrupt thread: the handler of this very socket is not running. */
static void adopt(struct weft_port_memif *mi)
{
	int fd = mi->alone ? find_control(mi) : -1, pair[2];

	if (fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair))
		return;
	mi->control = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (mi->control < 0 || dup3(pair[0], fd, O_CLOEXEC) < 0) {
		if (mi->control >= 0)
			close(mi->control);
		mi->control = -1;
		close(pair[1]);
	} else {
		mi->silent = pair[1];
		refresh_interrupts();
	}
	close(pair[0]);
}

static void let_go(struct weft_port_memif *mi)
{
	if (mi->control >= 0)
		close(mi->control);
	if (mi->silent >= 0)
		close(mi->silent);
	mi->control = mi->silent = -1;
}

/* Once connected nothing is said on it but good-bye. */
static bool peer_has_left(const struct weft_port_memif *mi)
{
	char c;

	return mi->control >= 0 && (recv(mi->control, &c, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
				    (errno != EAGAIN && errno != EINTR));
}

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
	int type = d->memif.server ? -1 : rte_log_register("pmd.net.memif");
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
	let_go(&d->memif);
}

static void do_restart(void *arg)
{
	struct weft_port_dev *d = arg;
	struct weft_port_memif *mi = &d->memif;

	stop_now(d);
	mi->running = start_quietly(d) == 0;
	mi->began_tsc = rte_rdtsc();
	mi->adopt_tsc = 0;
	__atomic_store_n(&d->started, mi->running, __ATOMIC_RELEASE);
	__atomic_store_n(&mi->busy, false, __ATOMIC_RELEASE);
}

static void do_adopt(void *arg)
{
	struct weft_port_dev *d = arg;

	if (has_link(d) && d->memif.control < 0)
		adopt(&d->memif);
	__atomic_store_n(&d->memif.busy, false, __ATOMIC_RELEASE);
}

struct wait {
	struct weft_port_dev *d;
	void (*fn)(void *arg);
	sem_t done;
};

static void do_stop(void *arg)
{
	stop_now(arg);
}

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
	d->memif.control = d->memif.silent = -1;
	run_and_wait(d, do_restart);
	d->memif.next_tsc = rte_rdtsc() + rte_get_tsc_hz() * RETRY_MS / 1000;
}

void weft_memif_stop(struct weft_port_dev *d)
{
	d->started = false;
	/* Alarms run one after the other: what was scheduled before is over then. */
	run_and_wait(d, do_stop);
}

void weft_memif_look(struct weft_port_dev *d)
{
	struct weft_port_memif *mi = &d->memif;
	uint64_t now = rte_rdtsc();

	if (__atomic_load_n(&mi->busy, __ATOMIC_ACQUIRE))
		return;
	if (d->started && mi->control >= 0 && !peer_has_left(mi))
		return;
	if (d->started && mi->control < 0 && has_link(d)) {
		if (mi->alone && now >= mi->adopt_tsc) {
			mi->adopt_tsc = now + rte_get_tsc_hz() * RETRY_MS / 1000;
			run_soon(d, do_adopt);
		}
		return;
	}
	if (d->started && mi->control < 0 &&
	    (mi->server || now - mi->began_tsc < rte_get_tsc_hz() * PATIENCE_MS / 1000))
		return;
	if (now < mi->next_tsc)
		return;
	mi->next_tsc = now + rte_get_tsc_hz() * RETRY_MS / 1000;
	d->started = false;
	run_soon(d, do_restart);
}

bool weft_memif_link_up(struct weft_port_dev *d)
{
	weft_memif_look(d);
	return d->started && has_link(d) && !peer_has_left(&d->memif);
}
