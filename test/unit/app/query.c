/* SPDX-License-Identifier: BSD-3-Clause */
/* weft-info queries sockets of any owner, and processes that send no answer. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "info/query.h"

#define SERVERS 4u
#define CONNECTIONS 8u

/*
 * Sends one reply for each message it receives; NULL = none from there on. It takes several
 * connections at once, because a weft-info of another test searches the same folders.
 */
struct server {
	int fd;
	pthread_t threads[CONNECTIONS];
	char folder[96], path[128];
	const char *replies[4];
};

static char folder[] = "/tmp/weft-ask-XXXXXX", answer[QUERY_ANSWER];
static struct server server[SERVERS];
static struct query_process list[QUERY_PROCESSES];

static void *serve(void *arg)
{
	struct server *s = arg;
	int fd = accept(s->fd, NULL, NULL);
	char received[256];

	for (unsigned int i = 0; fd >= 0 && i < 4 && s->replies[i]; i++)
		if (send(fd, s->replies[i], strlen(s->replies[i]), MSG_NOSIGNAL) < 0 ||
		    recv(fd, received, sizeof(received), 0) <= 0)
			break;
	while (fd >= 0 && recv(fd, received, sizeof(received), 0) > 0)
		;
	close(fd);
	return NULL;
}

static void begin(struct server *s, const char *first, const char *second, const char *third)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(s->folder, sizeof(s->folder), "%s/dpdk/%d", folder, (int)(s - server));
	assert_int_equal(mkdir(s->folder, 0700), 0);
	snprintf(s->path, sizeof(s->path), "%s/dpdk_telemetry.v2", s->folder);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", s->path);
	s->replies[0] = first;
	s->replies[1] = second;
	s->replies[2] = third;
	s->fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(s->fd, CONNECTIONS), 0);
	for (unsigned int i = 0; i < CONNECTIONS; i++)
		assert_int_equal(pthread_create(&s->threads[i], NULL, serve, s), 0);
}

static void end(struct server *s)
{
	shutdown(s->fd, SHUT_RDWR);
	for (unsigned int i = 0; i < CONNECTIONS; i++)
		pthread_join(s->threads[i], NULL);
	close(s->fd);
	unlink(s->path);
	rmdir(s->folder);
}

static void the_kernel_reports_whose_socket_it_is(void **state)
{
	unsigned int n;

	(void)state;
	begin(&server[0], "{\"version\":\"DPDK\",\"pid\":1,\"max_output_len\":16384}",
	      "{\"/weft/workers\":[\"0123 dpdk:0 net_null0\"]}", NULL);
	n = query_find(getpid(), false, list);
	assert_int_equal(n, 1);
	assert_int_equal(list[0].pid, getpid());
	query_close(list, n);
	end(&server[0]);
}

/* XDG_RUNTIME_DIR is one of the folders /tmp/weft-*. */
static void a_socket_in_two_searched_folders_is_one_process(void **state)
{
	unsigned int n;

	(void)state;
	begin(&server[0], "{\"pid\":1}", "{\"/weft/workers\":[\"0123 dpdk:0 net_null0\"]}",
	      "{\"/weft/process\":{\"program\":\"one\"}}");
	n = query_find(getpid(), false, list);
	assert_int_equal(n, 1);
	query_close(list, n);
	end(&server[0]);
}

static void entries_of_one_process_need_not_be_neighbours(void **state)
{
	const struct query_process some[] = {{.pid = 7}, {.pid = 8}, {.pid = 7}, {.pid = 8}};

	(void)state;
	assert_true(query_first(some, 0));
	assert_true(query_first(some, 1));
	assert_false(query_first(some, 2));
	assert_false(query_first(some, 3));
}

static void a_process_without_the_command_is_left_out(void **state)
{
	(void)state;
	begin(&server[0], "{\"pid\":1}", "{\"/weft/workers\" : \n null}", NULL);
	begin(&server[1], "{\"pid\":1}", "nonsense", NULL);
	assert_int_equal(query_find(getpid(), false, list), 0);
	end(&server[0]);
	end(&server[1]);
}

static void an_answer_to_something_else_is_the_last(void **state)
{
	unsigned int n;

	(void)state;
	begin(&server[0], "{\"pid\":1}", "{\"/weft/workers\":[]}", "{\"/weft/workers\":[]}");
	n = query_find(getpid(), false, list);
	assert_int_equal(n, 1);
	assert_false(query(&list[0], "/weft/counters,1,dpdk", answer));
	assert_int_equal(list[0].fd, -1);
	assert_false(query(&list[0], "/weft/counters,1,dpdk", answer));
	query_close(list, n);
	end(&server[0]);
}

static void silent_sockets_of_others_cost_no_time(void **state)
{
	struct timespec from, to;

	(void)state;
	for (unsigned int i = 0; i < SERVERS; i++)
		begin(&server[i], NULL, NULL, NULL);
	clock_gettime(CLOCK_MONOTONIC, &from);
	assert_int_equal(query_find(1, false, list), 0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	assert_true(to.tv_sec - from.tv_sec < 5 * (long)SERVERS - 1);
	for (unsigned int i = 0; i < SERVERS; i++)
		end(&server[i]);
}

static int set_up(void **state)
{
	char name[64];

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(name, sizeof(name), "%s/dpdk", folder);
	return mkdir(name, 0700) || setenv("XDG_RUNTIME_DIR", folder, 1);
}

static int tear_down(void **state)
{
	char name[64];

	(void)state;
	snprintf(name, sizeof(name), "%s/dpdk", folder);
	return rmdir(name) || rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernel_reports_whose_socket_it_is),
		cmocka_unit_test(a_socket_in_two_searched_folders_is_one_process),
		cmocka_unit_test(entries_of_one_process_need_not_be_neighbours),
		cmocka_unit_test(a_process_without_the_command_is_left_out),
		cmocka_unit_test(an_answer_to_something_else_is_the_last),
		cmocka_unit_test(silent_sockets_of_others_cost_no_time),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
