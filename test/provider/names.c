/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints by node and service, without another exchange of addresses; and addresses as text
 * (FI_ADDR_STR).
 */

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

/* ------------------------------------------------------------------ addresses as text */

static const struct world_params text_params = {.caps = FI_TAGGED | FI_SOURCE, .text = true};

/* Larger than any address, and full of other bytes. */
#define ROOM 200

static size_t own_text(struct world *e, char text[ROOM])
{
	size_t size = ROOM, few = 20;
	char part[20];

	memset(text, 'x', ROOM);
	CHECK(fi_getname(&e->ep->fid, text, &size));
	assert_int_equal(size, strlen(text) + 1);
	assert_memory_equal(text, "fi_weft://", 10);
	assert_int_equal(fi_getname(&e->ep->fid, part, &few), -FI_ETOOSMALL);
	assert_int_equal(few, size);
	assert_memory_equal(part, text, sizeof(part));
	assert_int_equal(fi_setname(&e->ep->fid, text, size), -FI_ENOSYS);
	return size;
}

static void look_up(struct world *e, fi_addr_t place, const char *text)
{
	char out[ROOM], part[12];
	size_t size = sizeof(out);

	CHECK(fi_av_lookup(e->av, place, out, &size));
	assert_int_equal(size, strlen(text) + 1);
	assert_string_equal(out, text);
	size = sizeof(part);
	CHECK(fi_av_lookup(e->av, place, part, &size));
	assert_int_equal(size, strlen(text) + 1);
	assert_memory_equal(part, text, sizeof(part));
	size = sizeof(out);
	assert_string_equal(fi_av_straddr(e->av, text, out, &size), text);
	assert_int_equal(size, strlen(text) + 1);
	size = sizeof(part);
	assert_string_equal(fi_av_straddr(e->av, "fi_weft://?", part, &size), "weft:damage");
}

/* Both ends have the texts of both, one behind the other. */
static void by_text(void **state)
{
	char texts[2 * ROOM], other[ROOM], message[8] = "";
	fi_addr_t places[2], from = FI_ADDR_NOTAVAIL;
	struct fi_cq_tagged_entry entry;
	struct world e;
	size_t size;
	ssize_t n;

	world_open_at(&e, &text_params, NULL, NULL, 0);
	assert_int_equal(e.info->addr_format, FI_ADDR_STR);
	assert_int_equal(e.info->src_addrlen, strlen(e.info->src_addr) + 1);
	assert_int_equal(fi_av_insert(e.av, e.info->src_addr, 1, places, 0, NULL), 0);
	size = own_text(&e, texts);
	world_give(texts, ROOM);
	world_take(other, ROOM);
	memcpy(texts + size, other, ROOM);
	assert_int_equal(fi_av_insert(e.av, texts, 2, places, 0, NULL), 2);
	look_up(&e, places[0], texts);
	look_up(&e, places[1], other);
	CHECK(fi_trecv(e.ep, message, sizeof(message), NULL, places[1], 1, 0, NULL));
	CHECK(fi_tsend(e.ep, "hello", 6, NULL, places[1], 1, NULL));
	for (unsigned int i = 0; i < 2;) {
		n = fi_cq_readfrom(e.cq, &entry, 1, &from);
		if (n == -FI_EAGAIN)
			continue;
		assert_int_equal(n, 1);
		if (entry.flags & FI_RECV)
			assert_int_equal(from, places[1]);
		i++;
	}
	assert_string_equal(message, "hello");
	world_barrier_progress(&e);
	world_shut(&e);
	world_barrier();
}

/* A malformed text between good ones; a text without an end, behind which there is nothing. */
static void bad_texts(void **state)
{
	char texts[3 * ROOM];
	fi_addr_t places[4];
	int errors[4];
	struct world e;
	size_t size, at;

	world_open_at(&e, &text_params, NULL, NULL, 0);
	size = own_text(&e, texts);
	at = size;
	strcpy(texts + at, "fi_weft://V2V");
	at += 14;
	memcpy(texts + at, texts, size);
	at += size;
	assert_int_equal(fi_av_insert(e.av, texts, 3, places, FI_SYNC_ERR, errors), 2);
	assert_int_equal(errors[0] | errors[2], 0);
	assert_int_equal(errors[1], FI_EINVAL);
	assert_true(places[1] == FI_ADDR_NOTAVAIL);
	memset(texts + at, 'A', sizeof(texts) - at);
	assert_int_equal(fi_av_insert(e.av, texts, 4, places, FI_SYNC_ERR, errors), 2);
	/* fi_av(3) describes an array of pointers. */
	assert_int_equal(fi_av_insert(e.av, &(char *){texts}, 1, places, FI_SYNC_ERR, errors), 0);
	world_shut(&e);
	world_barrier();
}

/* HOST:PORT as text: as node of fi_getinfo(), from hints, and for fi_av_insertsvc(). */
static void text_of_place(void **state)
{
	char port[8], text[ROOM];
	fi_addr_t server;
	struct world e;

	world_free_port(port);
	snprintf(text, sizeof(text), "fi_weft://127.0.0.1:%s", port);
	if (world_side == 0) {
		world_open_at(&e, &text_params, text, NULL, FI_SOURCE);
		assert_string_equal(e.info->src_addr, text);
		world_barrier();
	} else {
		world_barrier();
		world_open_at(&e, &text_params, text, NULL, 0);
		assert_string_equal(e.info->dest_addr, text);
		assert_int_equal(fi_av_insert(e.av, e.info->dest_addr, 1, &server, 0, NULL), 1);
		assert_int_equal(fi_av_insertsvc(e.av, text, NULL, &server, 0, NULL), 1);
		assert_int_equal(fi_av_insertsvc(e.av, text, port, &server, 0, NULL), -FI_EINVAL);
		assert_int_equal(fi_av_insertsvc(e.av, "localhost", NULL, &server, 0, NULL),
				 -FI_EINVAL);
	}
	world_barrier();
	world_shut(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_destination), cmocka_unit_test(by_insertsvc),
		cmocka_unit_test(errors),         cmocka_unit_test(without_descriptors),
		cmocka_unit_test(by_text),        cmocka_unit_test(bad_texts),
		cmocka_unit_test(text_of_place),
	};

	world_begin();
	return world_end(cmocka_run_group_tests_name("names", tests, NULL, NULL));
}
