/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of shared memory that fail while they begin, and what remains open afterwards. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/shm_socket.h"
#include "unit/shm/shm_end.h"

static bool listen_fails, memfd_fails;

/* These two take the place of the C library's. */
int memfd_create(const char *name, unsigned int flags)
{
	if (memfd_fails) {
		errno = EMFILE;
		return -1;
	}
	return (int)syscall(SYS_memfd_create, name, flags);
}

int listen(int fd, int backlog)
{
	if (listen_fails) {
		errno = EADDRINUSE;
		return -1;
	}
	return (int)syscall(SYS_listen, fd, backlog);
}

static uint64_t fresh_id(void)
{
	static unsigned int serial;

	return (uint64_t)getpid() << 32 | ++serial;
}

static void a_socket_that_cannot_listen_is_an_error(void **state)
{
	struct shm_addr addr = {.iface_id = weft_put64(fresh_id())};
	int fd, before = dup(0);

	(void)state;
	close(before);
	listen_fails = true;
	fd = shm_socket_listen(&addr);
	listen_fails = false;
	assert_int_equal(fd, -EADDRINUSE);
	/* Neither the name nor the descriptor is left. */
	fd = shm_socket_listen(&addr);
	assert_int_equal(fd, before);
	shm_socket_remove(&addr);
	close(fd);
}

/*
 * It listens and answers no hello. A child of its own has all its descriptors, so only the process
 * reports the end.
 */
static pid_t listener(struct shm_addr *addr, const int *life)
{
	struct end e;
	int fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = end_fork();
	if (pid == 0) {
		close(life[1]);
		end_open(&e, fresh_id());
		e.iface->ops->get_address(e.iface, addr);
		if (fork() == 0)
			_exit(read(life[0], &byte, 1) == 0 ? 0 : 1);
		if (write(fds[1], addr, sizeof(*addr)) != sizeof(*addr))
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], addr, sizeof(*addr)), sizeof(*addr));
	close(fds[0]);
	return pid;
}

/* Valgrind does not know the call. */
static void need_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd < 0) {
		print_message("left out: pidfd_open: %s\n", strerror(errno));
		skip();
	}
	close(fd);
}

/* @behaviour R80 */
static void a_process_that_ends_before_its_answer_refuses(void **state)
{
	struct weft_lane_ep *lane_ep;
	struct shm_addr addr;
	int life[2], status;
	struct end a;
	pid_t pid;

	(void)state;
	need_pidfd();
	assert_int_equal(pipe(life), 0);
	pid = listener(&addr, life);
	end_open(&a, fresh_id());
	assert_int_equal(a.iface->ops->ep_connect(a.iface, &addr, sizeof(addr), &a, &lane_ep), 0);
	a.iface->ops->progress(a.iface, (uint64_t)(end_seconds() * 1e9));
	assert_int_equal(a.downs, 0);
	kill(pid, SIGKILL);
	end_run(&a, NULL, &a.downs, 1, 20);
	assert_int_equal(a.status, -ECONNREFUSED);
	assert_non_null(strstr(a.text, "its process has ended"));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(life[0]);
	close(life[1]);
	end_close(&a);
}

/* Peers then copy. */
static void without_a_memory_file_no_native_reads_are_offered(void **state)
{
	uint64_t features;
	struct end a;

	(void)state;
	end_open(&a, fresh_id());
	features = a.iface->attr.features;
	end_close(&a);
	if (!(features & WEFT_LANE_F_GET)) {
		print_message("left out: the system does not let processes read each other\n");
		skip();
	}
	memfd_fails = true;
	end_open(&a, fresh_id());
	memfd_fails = false;
	assert_int_equal(a.iface->attr.features & WEFT_LANE_F_GET, 0);
	assert_int_equal(shm_iface(a.iface)->reg_fd, -1);
	end_close(&a);
}

/* A program without standard input has descriptors from 0 on. */
static void descriptor_0_is_one_like_any_other(void **state)
{
	struct shm_inbox *inbox;
	int saved, fd;

	(void)state;
	saved = fcntl(0, F_DUPFD_CLOEXEC, 3);
	close(0);
	inbox = shm_inbox_new();
	fd = inbox ? shm_inbox_fd(inbox) : -1;
	shm_inbox_close(inbox);
	if (saved >= 0) {
		dup2(saved, 0);
		close(saved);
	}
	assert_int_equal(fd, 0);
}

static void descriptor_0_of_a_process_is_closed(void **state)
{
	int saved, *fd;
	struct end a, b;

	(void)state;
	need_pidfd();
	saved = fcntl(0, F_DUPFD_CLOEXEC, 3);
	end_open(&a, fresh_id());
	end_open(&b, fresh_id());
	end_connect(&a, &b);
	fd = &shm_ep(a.lane_ep)->process.fd;
	assert_true(*fd > 0);
	assert_int_equal(dup2(*fd, 0), 0);
	close(*fd);
	*fd = 0;
	a.lane_ep->ops->ep_destroy(a.lane_ep);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	if (saved >= 0) {
		dup2(saved, 0);
		close(saved);
	}
	end_run(&a, &b, &b.gones, 1, 10);
	end_close(&a);
	end_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_socket_that_cannot_listen_is_an_error),
		cmocka_unit_test(a_process_that_ends_before_its_answer_refuses),
		cmocka_unit_test(without_a_memory_file_no_native_reads_are_offered),
		cmocka_unit_test(descriptor_0_is_one_like_any_other),
		cmocka_unit_test(descriptor_0_of_a_process_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
