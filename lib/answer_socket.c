/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket of a process without raw lanes: clients, and the helper thread (answer.h). */

#include "answer.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/user_folder.h"
#include "weft.h"

#define BACKLOG 16
#define SWEEP_AGE_S 60
#define COMMAND_MAX 1024

static struct {
	int fd; /* -1 = none; does not change while the thread runs */
	struct sockaddr_un name;
	pthread_t thread;
	atomic_bool ending;
	int clients[WEFT_ANSWER_CLIENTS];
	unsigned int num;
	char out[WEFT_ANSWER_SIZE];
} server = {.fd = -1};

/* ---- the helper thread ---------------------------------------------------------------------- */

static bool is_allowed(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

/* A client that does not read its answers is disconnected. */
static bool reply(int fd, size_t len)
{
	return send(fd, server.out, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

/* The first message is the same as DPDK's. */
static bool greet(int fd)
{
	int len = snprintf(server.out, sizeof(server.out),
			   "{\"version\":\"Weft %s\",\"pid\":%d,\"max_output_len\":%d}",
			   weft_version_string(), (int)getpid(), WEFT_ANSWER_SIZE);

	return reply(fd, (size_t)len);
}

static void take_client(void)
{
	const struct timespec pause = {.tv_nsec = 100000000};
	int fd = accept4(server.fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0 && is_allowed(fd) && greet(fd))
		server.clients[server.num++] = fd;
	else if (fd >= 0)
		close(fd);
	else if (errno != EAGAIN && errno != ECONNABORTED && !atomic_load(&server.ending))
		nanosleep(&pause, NULL); /* no descriptors or no memory: poll() returns at once */
}

static bool serve(int fd)
{
	char command[COMMAND_MAX + 1];
	ssize_t n = recv(fd, command, COMMAND_MAX, MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	command[n] = '\0';
	return reply(fd, weft_answer_write(command, server.out));
}

/* In the helper thread, since many sockets of dead processes would delay the program's start. */
static void sweep(void)
{
	char folder[sizeof(server.name.sun_path)];

	memcpy(folder, server.name.sun_path, sizeof(folder));
	*strrchr(folder, '/') = '\0';
	weft_sockets_sweep(folder, WEFT_ANSWERS_PREFIX, SWEEP_AGE_S);
}

static void *run(void *arg)
{
	struct pollfd fds[1 + WEFT_ANSWER_CLIENTS];
	unsigned int i, num;

	(void)arg;
	sweep();
	while (!atomic_load(&server.ending)) {
		num = server.num;
		fds[0] = (struct pollfd){.fd = server.fd, .events = POLLIN};
		if (num == WEFT_ANSWER_CLIENTS)
			fds[0].events = 0; /* only the hang-up of weft_answer_stop() */
		for (i = 0; i < num; i++)
			fds[1 + i] = (struct pollfd){.fd = server.clients[i], .events = POLLIN};
		if (poll(fds, 1 + num, -1) < 0)
			continue;
		for (i = num; i-- > 0;) {
			if (!fds[1 + i].revents || serve(server.clients[i]))
				continue;
			close(server.clients[i]);
			server.clients[i] = server.clients[--server.num];
		}
		if (fds[0].revents & POLLIN)
			take_client();
	}
	while (server.num > 0)
		close(server.clients[--server.num]);
	return NULL;
}

/* ---- lifetime ------------------------------------------------------------------------------- */

static int failed(char *why, size_t why_len)
{
	int error = errno;

	snprintf(why, why_len, "%s: %s", server.name.sun_path, strerror(error));
	if (server.fd >= 0)
		close(server.fd);
	server.fd = -1;
	return -error;
}

static int open_socket(unsigned long long id, char *why, size_t why_len)
{
	char folder[WEFT_USER_FOLDER];
	int rc = weft_user_folder_find(folder, why, why_len);

	if (rc < 0)
		return rc;
	server.name = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(server.name.sun_path, sizeof(server.name.sun_path),
		 "%s/" WEFT_ANSWERS_PREFIX "%016llx", folder, id);
	server.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server.fd < 0 ||
	    bind(server.fd, (struct sockaddr *)&server.name, sizeof(server.name)) < 0)
		return failed(why, why_len);
	if (listen(server.fd, BACKLOG) == 0)
		return 0;
	rc = failed(why, why_len);
	unlink(server.name.sun_path);
	return rc;
}

int weft_answer_listen(unsigned long long id, char *why, size_t why_len)
{
	int rc = open_socket(id, why, why_len);

	if (rc < 0)
		return rc;
	atomic_store(&server.ending, false);
	rc = weft_thread_start("weft-answers", run, NULL, NULL, &server.thread);
	if (rc == 0)
		return 0;
	errno = -rc;
	unlink(server.name.sun_path);
	return failed(why, why_len);
}

void weft_answer_stop(void)
{
	atomic_store(&server.ending, true);
	shutdown(server.fd, SHUT_RDWR); /* poll() returns */
	pthread_join(server.thread, NULL);
	close(server.fd);
	server.fd = -1;
	unlink(server.name.sun_path);
}

void weft_answer_forget(void)
{
	while (server.num > 0)
		close(server.clients[--server.num]);
	if (server.fd >= 0)
		close(server.fd);
	server.fd = -1;
}
