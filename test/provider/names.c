/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints by node and service, without another exchange of addresses. */

#include "world.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct world_params params = {.caps = FI_TAGGED | FI_SOURCE};

static void next(struct world *e)
{
	struct fi_cq_tagged_entry entry;
	ssize_t n;

	do {
		n = fi_cq_read(e->cq, &entry, 1);
	} while (n == -FI_EAGAIN);
	assert_int_equal(n, 1);
}

/* As fabtests do: the client sends its own address, and gets an answer. */
static void serve(struct world *e)
{
	char addr[FI_NAME_MAX];
	fi_addr_t client;

	CHECK(fi_trecv(e->ep, addr, sizeof(addr), NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	next(e);
	assert_int_equal(fi_av_insert(e->av, addr, 1, &client, 0, NULL), 1);
	CHECK(fi_tsend(e->ep, "answer", 7, NULL, client, 2, NULL));
	next(e);
}

static void call(struct world *e, fi_addr_t server)
{
	char own[FI_NAME_MAX], answer[8] = "";
	size_t size = sizeof(own);

	CHECK(fi_getname(&e->ep->fid, own, &size));
	assert_int_equal(size, sizeof(own));
	CHECK(fi_trecv(e->ep, answer, sizeof(answer), NULL, server, 2, 0, NULL));
	CHECK(fi_tsend(e->ep, own, sizeof(own), NULL, server, 1, NULL));
	next(e);
	next(e);
	assert_string_equal(answer, "answer");
}

static void by_destination(void **state)
{
	static const char *const hosts[] = {"127.0.0.1", "localhost"};
	fi_addr_t server;
	struct world e;
	char port[8];

	for (unsigned int i = 0; i < 2; i++) {
		world_free_port(port);
		if (world_side == 0) {
			world_open_at(&e, &params, NULL, port, FI_SOURCE);
			serve(&e);
		} else {
			/* The server may start later. */
			world_open_at(&e, &params, hosts[i], port, 0);
			assert_int_equal(fi_av_insert(e.av, e.info->dest_addr, 1, &server, 0, NULL),
					 1);
			call(&e, server);
		}
		world_barrier();
		world_shut(&e);
	}
}

static void by_insertsvc(void **state)
{
	fi_addr_t server;
	struct world e;
	char port[8];

	world_free_port(port);
	if (world_side == 0) {
		world_open_at(&e, &params, "127.0.0.1", port, FI_SOURCE);
		serve(&e);
	} else {
		world_open_at(&e, &params, NULL, NULL, 0);
		assert_int_equal(fi_av_insertsvc(e.av, "127.0.0.1", port, &server, 0, NULL), 1);
		call(&e, server);
	}
	world_barrier();
	world_shut(&e);
}

/* Two endpoints for one port, a client without a server, and a server that is none of Weft's. */
static void errors(void **state)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int wrong = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	struct fid_ep *second;
	fi_addr_t server;
	struct world e;
	char port[8];

	world_free_port(port);
	if (world_side == 1) {
		close(wrong);
		world_barrier();
		return;
	}
	world_open_at(&e, &params, NULL, port, FI_SOURCE);
	CHECK(fi_endpoint(e.domain, e.info, &second, NULL));
	CHECK(fi_close(&second->fid));
	world_shut(&e);
	world_open_at(&e, &params, "127.0.0.1", port, 0);
	assert_int_equal(fi_av_insert(e.av, e.info->dest_addr, 1, &server, 0, NULL), 0);
	assert_true(server == FI_ADDR_NOTAVAIL);
	a.sin_port = htons((uint16_t)atoi(port));
	setsockopt(wrong, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(wrong, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(wrong, 1), 0);
	assert_int_equal(fi_av_insert(e.av, e.info->dest_addr, 1, &server, 0, NULL), 0);
	close(wrong);
	world_shut(&e);
	world_barrier();
}

/* @return /proc/self/task/N/stat of the thread that sends addresses, open */
static int name_thread(void)
{
	DIR *tasks = opendir("/proc/self/task");
	char path[300], text[512];
	struct dirent *d;
	int fd = -1;
	ssize_t n;

	assert_non_null(tasks);
	while (fd < 0 && (d = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/stat", d->d_name);
		fd = open(path, O_RDONLY);
		if (fd < 0)
			continue;
		n = read(fd, text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = '\0';
		if (!strstr(text, "(weft-name)")) {
			close(fd);
			fd = -1;
		}
	}
	closedir(tasks);
	assert_true(fd >= 0);
	return fd;
}

/* Its time on a core. */
static unsigned long ticks_of(int fd)
{
	unsigned long user = 0, kernel = 0;
	char text[512];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	assert_true(n > 0);
	text[n] = '\0';
	assert_int_equal(sscanf(strchr(text, ')') + 2,
				"%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
				&kernel),
			 2);
	return user + kernel;
}

/* Lets this process open no other descriptor. @return the limit before */
static struct rlimit open_no_more(int fd)
{
	int lowest = dup(fd);
	struct rlimit was, few;

	assert_true(lowest >= 0);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	return was;
}

/* The thread sleeps while it cannot accept a client, and serves it later. */
static void without_descriptors(void **state)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	char port[8], address[FI_NAME_MAX];
	unsigned long ticks;
	struct rlimit was;
	int client, task;
	struct world e;

	world_free_port(port);
	if (world_side == 1) {
		world_barrier();
		return;
	}
	world_open_at(&e, &params, "127.0.0.1", port, FI_SOURCE);
	task = name_thread();
	client = socket(AF_INET, SOCK_STREAM, 0);
	a.sin_port = htons((uint16_t)atoi(port));
	was = open_no_more(client);
	assert_int_equal(connect(client, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(send(client, "weft-fi2", 8, 0), 8);
	ticks = ticks_of(task);
	usleep(500000);
	ticks = ticks_of(task) - ticks;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	if (ticks >= (unsigned long)sysconf(_SC_CLK_TCK) / 10)
		fail_msg("the thread ran for %lu ticks of 0.5 s", ticks);
	assert_int_equal(recv(client, address, sizeof(address), MSG_WAITALL), sizeof(address));
	close(client);
	close(task);
	world_shut(&e);
	world_barrier();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_destination),
		cmocka_unit_test(by_insertsvc),
		cmocka_unit_test(errors),
		cmocka_unit_test(without_descriptors),
	};

	world_begin();
	return world_end(cmocka_run_group_tests_name("names", tests, NULL, NULL));
}
