/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes: one is killed, ends in order, scribbles, is another user's or elsewhere. */

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/host.h"
#include "shm/shm_socket.h"
#include "unit/shm/shm_end.h"

static uint64_t fresh_id(void)
{
	static unsigned int serial;

	return (uint64_t)getpid() << 32 | ++serial;
}

/* Its address by a pipe, then what the test wants of it. */
static pid_t start(void (*child)(struct end *e), struct shm_addr *addr)
{
	struct end e;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = end_fork();
	if (pid == 0) {
		end_open(&e, fresh_id());
		e.iface->ops->get_address(e.iface, addr);
		if (write(fds[1], addr, sizeof(*addr)) != sizeof(*addr))
			_exit(1);
		child(&e);
		_exit(0);
	}
	assert_int_equal(read(fds[0], addr, sizeof(*addr)), sizeof(*addr));
	close(fds[0]);
	close(fds[1]);
	return pid;
}

static void child_progress(struct end *e)
{
	e->iface->ops->progress(e->iface, (uint64_t)(end_seconds() * 1e9));
}

static void wait_for_connection(struct end *e)
{
	while (e->ups == 0)
		child_progress(e);
}

static void connect_to(struct end *a, const struct shm_addr *addr)
{
	struct weft_lane_ep *lane_ep;

	assert_int_equal(a->iface->ops->ep_connect(a->iface, addr, sizeof(*addr), a, &lane_ep), 0);
	end_run(a, NULL, &a->ups, 1, 10);
}

static void reap(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void path_of(const struct shm_addr *addr, char *path, size_t size)
{
	char folder[WEFT_USER_FOLDER], why[256];

	assert_int_equal(weft_user_folder_find(folder, why, sizeof(why)), 0);
	snprintf(path, size, "%s/shm-%016llx", folder,
		 (unsigned long long)weft_get64(addr->iface_id));
}

static bool name_exists(const struct shm_addr *addr)
{
	char path[128];

	path_of(addr, path, sizeof(path));
	return access(path, F_OK) == 0;
}

/* Any user of the network namespace could connect to a name in the abstract namespace. */
/* @behaviour S22 */
static void no_name_is_abstract(void **state)
{
	FILE *f = fopen("/proc/net/unix", "r");
	char line[512], id[32];
	struct shm_addr addr;
	struct end a;

	(void)state;
	assert_non_null(f);
	end_open(&a, fresh_id());
	a.iface->ops->get_address(a.iface, &addr);
	snprintf(id, sizeof(id), "%016llx", (unsigned long long)weft_get64(addr.iface_id));
	while (fgets(line, sizeof(line), f))
		assert_false(strstr(line, id) && strchr(line, '@'));
	fclose(f);
	assert_true(name_exists(&addr));
	end_close(&a);
	assert_false(name_exists(&addr));
}

/* ------------------------------------------------------------------ ends */

static void send_for_ever(struct end *e)
{
	uint64_t n = 0;

	wait_for_connection(e);
	for (;;) {
		child_progress(e);
		if (e->lane_ep && end_send(e->lane_ep, n, 8 + n * 53 % 9000) == 0)
			n++;
		else
			sched_yield();
	}
}

/*
 * @behaviour R80: The end of a process is reported to all processes that share memory with it; a
 * stopped process is waited for; whatever a killed process was doing, the next one is served
 */
static void killed_in_the_middle(void **state)
{
	char path[128];
	struct shm_addr addr;
	struct end a;
	double at;
	pid_t pid;

	(void)state;
	pid = start(send_for_ever, &addr);
	end_open(&a, fresh_id());
	connect_to(&a, &addr);
	end_run(&a, NULL, &a.received, 5000, 20);
	assert_true(name_exists(&addr));
	kill(pid, SIGKILL);
	at = end_seconds();
	end_run(&a, NULL, &a.downs, 1, 10);
	print_message("told %.0f us after kill -9\n", (end_seconds() - at) * 1e6);
	assert_int_equal(a.wrong, 0);
	assert_int_equal(a.status, -ECONNRESET);
	assert_non_null(strstr(a.text, "has ended without closing the connection"));
	assert_int_equal(end_counter(&a, "conn.died"), 1);
	reap(pid);
	/* A killed process leaves its name. A later process removes it, perhaps already. */
	path_of(&addr, path, sizeof(path));
	assert_true(weft_socket_is_dead(path) || !name_exists(&addr));
	*strrchr(path, '/') = '\0';
	weft_sockets_sweep(path, "shm-", 0);
	assert_false(name_exists(&addr));
	end_close(&a);
}

/* A pipe whose writing end only the test has: its reader lives as long as the test wants. */
static int life[2];

static void fork_and_send(struct end *e)
{
	char byte;

	close(life[1]);
	wait_for_connection(e);
	if (fork() == 0)
		_exit(read(life[0], &byte, 1) == 0 ? 0 : 1);
	send_for_ever(e);
}

/* A child of the peer's has all its descriptors: the socket alone would not tell. */
/* @behaviour R80 */
static void killed_with_a_child_that_lives(void **state)
{
	struct shm_addr addr;
	struct end a;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(life), 0);
	pid = start(fork_and_send, &addr);
	end_open(&a, fresh_id());
	connect_to(&a, &addr);
	end_run(&a, NULL, &a.received, 1000, 20);
	kill(pid, SIGKILL);
	end_run(&a, NULL, &a.downs, 1, 20);
	assert_int_equal(a.wrong, 0);
	reap(pid);
	close(life[0]);
	close(life[1]);
	end_close(&a);
}

static void send_and_end(struct end *e)
{
	wait_for_connection(e);
	for (uint64_t n = 0; n < 1000;) {
		child_progress(e);
		n += end_send(e->lane_ep, n, 8 + n) == 0;
	}
	end_close(e);
}

/* @behaviour R80 */
static void all_arrives_before_an_end_in_order(void **state)
{
	struct shm_addr addr;
	struct end a;
	pid_t pid;

	(void)state;
	pid = start(send_and_end, &addr);
	end_open(&a, fresh_id());
	connect_to(&a, &addr);
	end_run(&a, NULL, &a.gones, 1, 20);
	assert_int_equal(a.received, 1000);
	assert_int_equal(a.wrong, 0);
	assert_int_equal(a.downs, 0);
	reap(pid);
	end_close(&a);
}

/* @behaviour R80 */
static void a_stopped_process_is_not_dead(void **state)
{
	struct shm_addr addr;
	unsigned int never = 0;
	struct end a;
	double until;
	pid_t pid;

	(void)state;
	pid = start(send_for_ever, &addr);
	end_open(&a, fresh_id());
	connect_to(&a, &addr);
	kill(pid, SIGSTOP);
	for (until = end_seconds() + 0.3; end_seconds() < until;)
		end_run(&a, NULL, &never, 0, 1);
	child_progress(&a);
	assert_int_equal(a.downs, 0);
	kill(pid, SIGCONT);
	end_run(&a, NULL, &a.received, a.received + 1000, 20);
	assert_int_equal(a.wrong, 0);
	kill(pid, SIGKILL);
	reap(pid);
	end_close(&a);
}

/* ------------------------------------------------------------------ hostile */

static unsigned int scribbler;

/* All of what it may write, and often enough what looks right. */
static void scribble(struct end *e)
{
	unsigned int seed = scribbler * 7919;
	struct shm_dir *dir;
	struct shm_ep *lane_ep;
	uint32_t at;

	wait_for_connection(e);
	lane_ep = shm_ep(e->lane_ep);
	for (unsigned int i = 0; e->lane_ep; i++) {
		dir = rand_r(&seed) % 2 ? lane_ep->tx.dir : lane_ep->rx.dir;
		at = (uint32_t)rand_r(&seed);
		switch (scribbler % 4) {
		case 0: /* anything anywhere */
			((uint32_t *)lane_ep->segment)[at % (sizeof(struct shm_segment) / 4)] =
				(uint32_t)rand_r(&seed);
			break;
		case 1: /* records that are nearly right */
			dir = lane_ep->tx.dir;
			dir->lines[at % SHM_LINES][1] = (uint64_t)rand_r(&seed) % 40;
			dir->lines[at % SHM_LINES][0] =
				shm_word(at % SHM_LINES, (size_t)rand_r(&seed) % 20000,
					 (uint8_t)(rand_r(&seed) % 40),
					 (unsigned int)rand_r(&seed) % 8);
			break;
		case 2: /* messages that change while they are read */
			end_send(e->lane_ep, i, 8 + at % 16000);
			for (int n = 0; n < 50; n++)
				lane_ep->tx.dir->lines[rand_r(&seed) % (int)SHM_LINES][0] ^=
					1ull << rand_r(&seed) % 64;
			break;
		default: /* positions and counts */
			atomic_store(&dir->ctl.head, at % 1024);
			atomic_store(&dir->ctl.sleeping, at);
			atomic_store(&dir->ctl.done[at % SHM_CHUNKS], (uint8_t)(at >> 8));
		}
		if (i % 64 == 0)
			child_progress(e);
	}
	pause();
}

/*
 * @behaviour R81: A process that overwrites its shared memory, or sends nothing, ends or delays
 * only its own connection
 */
static void a_peer_that_scribbles_harms_no_other_peer(void **state)
{
	struct shm_addr addr;
	struct end a, b;
	double until;
	pid_t pid;

	(void)state;
	end_open(&b, fresh_id());
	for (scribbler = 0; scribbler < 8; scribbler++) {
		pid = start(scribble, &addr);
		end_open(&a, fresh_id());
		connect_to(&a, &addr);
		for (until = end_seconds() + 0.15; end_seconds() < until;) {
			child_progress(&a);
			if (a.lane_ep)
				end_send(a.lane_ep, 1, 8 + (size_t)(end_seconds() * 1e6) % 9000);
		}
		end_connect(&b, &a);
		a.wrong = b.received = b.wrong = 0;
		b.next = 5;
		assert_int_equal(end_send(a.lane_ep, 5, 2000), 0);
		end_run(&a, &b, &b.received, 1, 10);
		assert_int_equal(b.wrong, 0);
		kill(pid, SIGKILL);
		reap(pid);
		end_close(&a);
		end_run(&b, NULL, &b.gones, scribbler + 1, 10);
	}
	end_close(&b);
}

/* @return whether it was answered with a refusal */
static int present(const struct shm_addr *mine, const struct shm_addr *to, int fd)
{
	struct shm_hello hello = {.magic = SHM_HELLO_MAGIC, .version = SHM_VERSION}, answer;
	int sock = shm_socket_connect(to), rc = -EAGAIN, passed[SHM_HELLO_FDS];

	if (sock < 0)
		return sock;
	memcpy(hello.addr, mine, sizeof(*mine));
	memcpy(hello.to, &to->iface_id, sizeof(hello.to));
	shm_socket_send(sock, &hello, &fd, fd >= 0);
	for (double until = end_seconds() + 10; rc == -EAGAIN && end_seconds() < until;)
		rc = shm_socket_recv(sock, &answer, passed);
	for (unsigned int i = 0; i < SHM_HELLO_FDS; i++)
		if (passed[i] >= 0)
			close(passed[i]);
	close(sock);
	return rc == 0 ? answer.status : rc;
}

/* All the connections that it can have, of which none says anything. */
static void send_nothing(struct end *e)
{
	struct shm_addr to;

	(void)e;
	while (read(STDIN_FILENO, &to, sizeof(to)) != sizeof(to))
		usleep(1000);
	for (int i = 0; i < 2 * SHM_HALF_MAX; i++)
		shm_socket_connect(&to);
	for (;;)
		pause();
}

/* @behaviour R81 */
static void silent_connections_keep_no_peer_out(void **state)
{
	struct shm_addr addr, mine;
	struct end a, b;
	int fds[2], saved;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	saved = dup(STDIN_FILENO);
	dup2(fds[0], STDIN_FILENO);
	pid = start(send_nothing, &addr);
	end_open(&a, fresh_id());
	a.iface->ops->get_address(a.iface, &mine);
	assert_int_equal(write(fds[1], &mine, sizeof(mine)), sizeof(mine));
	dup2(saved, STDIN_FILENO);
	close(saved);
	for (double until = end_seconds() + 60; end_counter(&a, "conn.refused.share") == 0;) {
		child_progress(&a);
		assert_true(end_seconds() < until);
	}
	end_open(&b, fresh_id());
	end_connect(&b, &a);
	assert_int_equal(end_counter(&a, "conn.open"), SHM_HALF_ONE + 1);
	kill(pid, SIGKILL);
	reap(pid);
	end_close(&b);
	end_close(&a);
	close(fds[0]);
	close(fds[1]);
}

static void pass_unsealed(struct end *e)
{
	struct shm_addr mine, to;
	int fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	e->iface->ops->get_address(e->iface, &mine);
	while (read(STDIN_FILENO, &to, sizeof(to)) != sizeof(to))
		usleep(1000);
	if (ftruncate(fd, sizeof(struct shm_segment)) < 0)
		_exit(1);
	_exit(present(&mine, &to, fd) == -EPROTO ? 42 : 1);
}

/* Exit code 42: the socket of the address cannot be reached. */
static void as_another_user(struct end *e)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct shm_addr to;
	int fd;

	(void)e;
	while (read(STDIN_FILENO, &to, sizeof(to)) != sizeof(to))
		usleep(1000);
	path_of(&to, un.sun_path, sizeof(un.sun_path));
	if (setgid(65534) < 0 || setuid(65534) < 0)
		_exit(77);
	fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	_exit(connect(fd, (struct sockaddr *)&un, sizeof(un)) < 0 && errno == EACCES ? 42 : 1);
}

/* A TCP socket whose close() waits, since the other end does not read. */
static int lingering_socket(int seconds)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	struct linger linger = {.l_onoff = 1, .l_linger = seconds};
	static char bytes[65536];
	socklen_t len = sizeof(in);

	if (bind(listener, (struct sockaddr *)&in, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&in, &len) ||
	    connect(fd, (struct sockaddr *)&in, len) || accept(listener, NULL, NULL) < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	return fd;
}

/* A broken process of the same user: with its hello comes a socket that lingers, not a memory. */
static void pass_lingering(struct end *e)
{
	struct shm_hello hello = {.magic = SHM_HELLO_MAGIC, .version = SHM_VERSION};
	int fd = lingering_socket(8), sock;
	struct shm_addr mine, to;

	if (fd < 0)
		_exit(77);
	e->iface->ops->get_address(e->iface, &mine);
	while (read(STDIN_FILENO, &to, sizeof(to)) != sizeof(to))
		usleep(1000);
	sock = shm_socket_connect(&to);
	memcpy(hello.addr, &mine, sizeof(mine));
	memcpy(hello.to, &to.iface_id, sizeof(hello.to));
	if (sock < 0 || shm_socket_send(sock, &hello, &fd, 1) < 0)
		_exit(1);
	close(fd);
	close(sock);
	sleep(2); /* the other end of the TCP connection stays, and is not read */
	_exit(42);
}

static double longest_call; /* of progress, in run_with_address(), s */
static bool without_room;   /* it has one number for a descriptor: the accepted socket's */

/* @return the descriptors that take up all numbers but one; -1 behind them */
static int *take_up_numbers(struct rlimit *before)
{
	static int taken[1024];
	struct rlimit few;
	int n = 0;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
	few = *before;
	few.rlim_cur = 256;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((taken[n] = dup(STDERR_FILENO)) >= 0)
		n++;
	assert_true(n > 0);
	close(taken[--n]);
	taken[n] = -1;
	return taken;
}

/* Its standard input is a pipe, by which it gets our address. @return its exit code */
static int run_with_address(struct end *a, void (*child)(struct end *e))
{
	struct shm_addr addr, mine;
	int fds[2], saved, status, *taken = NULL;
	struct rlimit before;
	double until;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	saved = dup(STDIN_FILENO);
	dup2(fds[0], STDIN_FILENO);
	pid = start(child, &addr);
	end_open(a, fresh_id());
	a->iface->ops->get_address(a->iface, &mine);
	assert_int_equal(write(fds[1], &mine, sizeof(mine)), sizeof(mine));
	if (saved >= 0)
		dup2(saved, STDIN_FILENO);
	close(saved);
	close(fds[0]);
	close(fds[1]);
	if (without_room)
		taken = take_up_numbers(&before);
	for (until = end_seconds() + 10; waitpid(pid, &status, WNOHANG) == 0;) {
		double begin = end_seconds();

		child_progress(a);
		if (end_seconds() - begin > longest_call)
			longest_call = end_seconds() - begin;
		assert_true(end_seconds() < until);
	}
	for (; taken && *taken >= 0; taken++)
		close(*taken);
	if (without_room)
		setrlimit(RLIMIT_NOFILE, &before);
	for (int i = 0; i < 10; i++)
		a->iface->ops->progress(a->iface, UINT64_MAX / 2 + (uint64_t)i);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void wait_for_the_end(struct end *e)
{
	(void)e;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* @return how many connections its queue has taken */
static unsigned int fill_queue(const struct shm_addr *of, int *fds, unsigned int max)
{
	struct rlimit limit;
	unsigned int n = 0;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	while (n < max && (fds[n] = shm_socket_connect(of)) >= 0)
		n++;
	assert_true(n < max);
	assert_int_equal(fds[n], -EAGAIN);
	return n;
}

/* The owner of an address can't be queried while its queue is full: no process is taken for it. */
static void a_full_queue_proves_nothing(void **state)
{
	struct shm_hello hello = {.magic = SHM_HELLO_MAGIC, .version = SHM_VERSION};
	struct shm_addr victim, mine;
	struct shm_segment *segment;
	static int fds[8192];
	unsigned int num;
	double until;
	struct end a;
	int sock, fd;
	pid_t pid;

	(void)state;
	pid = start(wait_for_the_end, &victim);
	end_open(&a, fresh_id());
	a.iface->ops->get_address(a.iface, &mine);
	num = fill_queue(&victim, fds, 8192);
	segment = shm_segment_create(&fd);
	assert_non_null(segment);
	sock = shm_socket_connect(&mine);
	assert_true(sock >= 0);
	memcpy(hello.addr, &victim, sizeof(victim));
	memcpy(hello.to, &mine.iface_id, sizeof(hello.to));
	assert_int_equal(shm_socket_send(sock, &hello, &fd, 1), 0);
	for (until = end_seconds() + 0.1; end_seconds() < until;)
		child_progress(&a);
	assert_int_equal(end_counter(&a, "conn.accepted"), 0);
	assert_int_equal(end_counter(&a, "conn.refused.other"), 0);
	/* It can be asked now. */
	while (num > 0)
		close(fds[--num]);
	kill(pid, SIGKILL);
	reap(pid);
	for (until = end_seconds() + 10; end_counter(&a, "conn.refused.other") == 0;) {
		child_progress(&a);
		assert_true(end_seconds() < until);
	}
	assert_int_equal(end_counter(&a, "conn.accepted"), 0);
	close(sock);
	close(fd);
	shm_segment_unmap(segment);
	end_close(&a);
}

static void memory_that_can_shrink_is_refused(void **state)
{
	struct end a;

	(void)state;
	assert_int_equal(run_with_address(&a, pass_unsealed), 42);
	assert_int_equal(end_counter(&a, "conn.refused.other"), 1);
	assert_int_equal(a.ups, 0);
	end_close(&a);
}

/*
 * @behaviour S22: no other user can connect to the socket of a shm lane, and a passed descriptor
 * stops no progress
 */
static void other_users_get_in_nowhere(void **state)
{
	struct end a;
	int rc;

	(void)state;
	if (geteuid() != 0) {
		print_message("left out: only root can become another user\n");
		skip();
	}
	rc = run_with_address(&a, as_another_user);
	if (rc == 77) {
		end_close(&a);
		print_message("left out: this process cannot become another user\n");
		skip();
	}
	assert_int_equal(rc, 42);
	assert_int_equal(end_counter(&a, "conn.refused.user"), 0);
	assert_int_equal(a.ups, 0);
	end_close(&a);
}

/* @behaviour S22 */
static void a_close_that_lingers_stops_no_progress(void **state)
{
	struct end a;
	int rc;

	(void)state;
	longest_call = 0;
	rc = run_with_address(&a, pass_lingering);
	if (rc == 77)
		skip();
	assert_int_equal(rc, 42);
	assert_int_equal(end_counter(&a, "conn.refused.other"), 1);
	assert_true(longest_call < 1.5); /* the close takes 8 s */
	end_close(&a);
}

/* The kernel closes a descriptor for which the receiving process has no number. */
static void nor_does_one_without_room(void **state)
{
	struct end a;
	int rc;

	(void)state;
	longest_call = 0;
	without_room = true;
	rc = run_with_address(&a, pass_lingering);
	without_room = false;
	if (rc == 77)
		skip();
	assert_int_equal(rc, 42);
	assert_true(longest_call < 1.5); /* the close takes 8 s */
	end_close(&a);
}

static bool leave_network(void)
{
	return unshare(CLONE_NEWNET) == 0;
}

/* The folder of sockets is another one where /tmp is. */
static bool leave_tmp(void)
{
	return unshare(CLONE_NEWNS) == 0 && mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", "/tmp", "tmpfs", 0, NULL) == 0;
}

/* A process that has left is elsewhere: other lanes are used. */
static void elsewhere(bool (*leave)(void))
{
	struct shm_addr addr, theirs;
	char why[256];
	struct end a;
	int fds[2], status;
	pid_t pid;

	end_open(&a, fresh_id());
	a.iface->ops->get_address(a.iface, &addr);
	assert_int_equal(pipe(fds), 0);
	pid = end_fork();
	if (pid == 0) {
		struct end e;

		if (!leave())
			_exit(77);
		end_open(&e, fresh_id());
		e.iface->ops->get_address(e.iface, &theirs);
		_exit(write(fds[1], &theirs, sizeof(theirs)) == sizeof(theirs) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WEXITSTATUS(status) == 77) {
		end_close(&a);
		print_message("left out: no other namespace may be made\n");
		skip();
	}
	assert_int_equal(read(fds[0], &theirs, sizeof(theirs)), sizeof(theirs));
	assert_int_equal(a.iface->ops->is_reachable(a.iface, &theirs, sizeof(theirs), why,
						    sizeof(why)),
			 -EACCES);
	assert_non_null(strstr(why, "another /tmp, network or user namespace"));
	close(fds[0]);
	close(fds[1]);
	end_close(&a);
}

static void other_network_namespaces_are_elsewhere(void **state)
{
	(void)state;
	elsewhere(leave_network);
}

/* @behaviour S22 */
static void another_tmp_is_elsewhere(void **state)
{
	(void)state;
	elsewhere(leave_tmp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_in_the_middle),
		cmocka_unit_test(killed_with_a_child_that_lives),
		cmocka_unit_test(all_arrives_before_an_end_in_order),
		cmocka_unit_test(a_stopped_process_is_not_dead),
		cmocka_unit_test(a_peer_that_scribbles_harms_no_other_peer),
		cmocka_unit_test(a_full_queue_proves_nothing),
		cmocka_unit_test(memory_that_can_shrink_is_refused),
		cmocka_unit_test(silent_connections_keep_no_peer_out),
		cmocka_unit_test(other_users_get_in_nowhere),
		cmocka_unit_test(other_network_namespaces_are_elsewhere),
		cmocka_unit_test(another_tmp_is_elsewhere),
		cmocka_unit_test(no_name_is_abstract),
		cmocka_unit_test(a_close_that_lingers_stops_no_progress),
		cmocka_unit_test(nor_does_one_without_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
