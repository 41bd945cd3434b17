/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric's auth_key is the job key: which keys are taken, that the frames of two processes over
 * UDP sockets are sealed with it, and that addresses by node and service are, too. A capture shows
 * what is on the wire.
 */

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "world.h"

#define VERSION FI_VERSION(1, 17)
/* Longer than one frame's head, and nowhere else in a frame. */
#define TEXT "a message that is readable in a plain frame"

static uint8_t key[33] = "32 bytes of a job key, for ranks.";
static uint8_t other_key[33] = "32 bytes of another one: refused.";

#define CAPTURE_MAX (16u << 20)
static char capture[64];

static struct fi_info *new_hints(void)
{
	const struct world_params params = {.caps = FI_TAGGED};

	return world_hints(&params);
}

static void set_key(uint8_t **to, size_t *size, const uint8_t *bytes, size_t length)
{
	free(*to);
	*to = malloc(length);
	memcpy(*to, bytes, length);
	*size = length;
}

static int query(struct fi_info *hints, struct fi_info **info)
{
	*info = NULL;
	return fi_getinfo(VERSION, NULL, NULL, 0, hints, info);
}

static void sizes(void **state)
{
	struct fi_info *hints, *info;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		hints = new_hints();
		set_key(i ? &hints->ep_attr->auth_key : &hints->domain_attr->auth_key,
			i ? &hints->ep_attr->auth_key_size : &hints->domain_attr->auth_key_size,
			key, 32);
		CHECK(query(hints, &info));
		assert_int_equal(info->domain_attr->auth_key_size, i ? 0 : 32);
		assert_int_equal(info->ep_attr->auth_key_size, i ? 32 : 0);
		assert_memory_equal(i ? info->ep_attr->auth_key : info->domain_attr->auth_key, key,
				    32);
		fi_freeinfo(info);
		for (size_t wrong = 31; wrong <= 33; wrong += 2) {
			*(i ? &hints->ep_attr->auth_key_size : &hints->domain_attr->auth_key_size) =
				wrong;
			assert_int_equal(query(hints, &info), -FI_ENODATA);
		}
		fi_freeinfo(hints);
	}
}

static int opens(const struct fi_info *info, struct fid_fabric **fabric, struct fid_domain **domain)
{
	struct fi_info *mine = fi_dupinfo(info);
	int rc;

	CHECK(fi_fabric(mine->fabric_attr, fabric, NULL));
	rc = fi_domain(*fabric, mine, domain, NULL);
	if (rc < 0)
		CHECK(fi_close(&(*fabric)->fid));
	fi_freeinfo(mine);
	return rc;
}

static void close_domain(struct fid_fabric *fabric, struct fid_domain *domain)
{
	CHECK(fi_close(&domain->fid));
	CHECK(fi_close(&fabric->fid));
}

static void refused(const struct fi_info *info)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;

	assert_int_equal(opens(info, &fabric, &domain), -FI_EINVAL);
}

/* All domains of a process share one worker, and its key. */
static void one_key(void **state)
{
	struct fid_fabric *fabric[2];
	struct fid_domain *domain[2];
	struct fi_info *hints = new_hints(), *info;
	struct fid_ep *ep;

	(void)state;
	CHECK(query(hints, &info));
	fi_freeinfo(hints);
	CHECK(opens(info, &fabric[0], &domain[0]));
	set_key(&info->domain_attr->auth_key, &info->domain_attr->auth_key_size, key, 32);
	refused(info); /* the first domain has none */
	close_domain(fabric[0], domain[0]);

	CHECK(opens(info, &fabric[0], &domain[0]));
	CHECK(opens(info, &fabric[1], &domain[1]));
	close_domain(fabric[1], domain[1]);
	set_key(&info->ep_attr->auth_key, &info->ep_attr->auth_key_size, other_key, 32);
	refused(info);
	assert_int_equal(fi_endpoint(domain[0], info, &ep, NULL), -FI_EINVAL);
	set_key(&info->domain_attr->auth_key, &info->domain_attr->auth_key_size, other_key, 32);
	refused(info);
	info->domain_attr->auth_key_size = 31;
	refused(info);
	close_domain(fabric[0], domain[0]);

	/* After the last domain another key is as good, here the endpoint's. */
	info->domain_attr->auth_key_size = 0;
	CHECK(opens(info, &fabric[0], &domain[0]));
	CHECK(fi_endpoint(domain[0], info, &ep, NULL));
	CHECK(fi_close(&ep->fid));
	close_domain(fabric[0], domain[0]);
	fi_freeinfo(info);
}

/* @return has the capture of this side the text in it? */
static bool is_readable(void)
{
	FILE *f = fopen(capture, "r");
	char *bytes = malloc(CAPTURE_MAX);
	size_t n = f ? fread(bytes, 1, CAPTURE_MAX, f) : 0;
	bool found = memmem(bytes, n, TEXT, sizeof(TEXT)) != NULL;

	assert_non_null(f);
	assert_true(n > 1000 && n < CAPTURE_MAX);
	fclose(f);
	free(bytes);
	return found;
}

static void exchange(const uint8_t *auth_key)
{
	const struct world_params params = {.caps = FI_TAGGED, .auth_key = auth_key};
	char buf[sizeof(TEXT)] = {0};
	struct world w;

	/* Another name for each: the process may still have the last one open. */
	snprintf(capture, sizeof(capture), "/tmp/weft-auth-key-%d-%d.pcapng", (int)getpid(),
		 auth_key != NULL);
	setenv("WEFT_CAPTURE", capture, 1);
	world_open(&w, &params);
	if (w.me == 0) {
		world_send(&w, TEXT, sizeof(TEXT), 1);
	} else {
		world_recv(&w, buf, sizeof(buf), 1);
		assert_string_equal(buf, TEXT);
	}
	world_close(&w);
	unsetenv("WEFT_CAPTURE");
	assert_int_equal(is_readable(), auth_key == NULL);
	unlink(capture);
}

static void frames(void **state)
{
	(void)state;
	exchange(NULL);
	exchange(key);
}

/* Nothing is delivered between two keys. */
static void two_keys(void **state)
{
	const struct world_params params = {.caps = FI_TAGGED,
					    .auth_key = world_side ? other_key : key};
	struct fi_cq_err_entry error;
	struct world w;

	(void)state;
	setenv("WEFT_CONNECT_TIMEOUT", "2s", 1);
	world_open(&w, &params);
	if (w.me == 0) {
		CHECK(fi_tsend(w.ep, TEXT, sizeof(TEXT), NULL, w.peer, 1, NULL));
		error = world_next_error(&w);
		assert_int_not_equal(error.err, 0);
	}
	world_barrier_progress(&w);
	world_close(&w);
	unsetenv("WEFT_CONNECT_TIMEOUT");
}

/* ------------------------------------------------------------------ by node and service */

static struct world_params with_key(const void *auth_key)
{
	return (struct world_params){.caps = FI_TAGGED, .auth_key = auth_key};
}

/* Insert the address of the server on @p port. @return 0 or libfabric's error, positive */
static int insert(struct world *w, const char *port)
{
	fi_addr_t server;
	int error = -1, n;

	n = fi_av_insertsvc(w->av, "127.0.0.1", port, &server, FI_SYNC_ERR, &error);
	assert_int_equal(n, error == 0);
	assert_int_equal(server == FI_ADDR_NOTAVAIL, error != 0);
	return error;
}

static void insert_with(const char *port, const void *auth_key, int expected)
{
	struct world_params params = with_key(auth_key);
	struct world w;

	world_open_at(&w, &params, NULL, NULL, 0);
	assert_int_equal(insert(&w, port), expected);
	world_shut(&w);
}

static int connect_to(const char *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_port = htons((uint16_t)atoi(port));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* What a program without the key gets: the greeting, and never an address. */
static void get_nothing(const char *port, const char *greeting, size_t length)
{
	char reply[256];
	int fd = connect_to(port);

	assert_int_equal(send(fd, greeting, length, 0), length);
	assert_int_equal(recv(fd, reply, sizeof(reply), MSG_WAITALL), 8);
	assert_memory_equal(reply, "weft-fk2", 8);
	close(fd);
}

/* A client of each kind, while a server with @p auth_key listens at the other side. */
static void clients(void **state)
{
	static const char forged[56] = "weft-fk2 48 bytes that were made without any key";
	struct world_params params = with_key(key);
	char port[8], sync;
	struct world w;

	(void)state;
	world_free_port(port);
	if (world_side == 0) {
		world_open_at(&w, &params, NULL, port, FI_SOURCE);
		world_barrier();
		world_take(&sync, 1);
		world_shut(&w);
		world_barrier();
		return;
	}
	world_barrier();
	insert_with(port, key, 0);
	insert_with(port, other_key, FI_EACCES);
	insert_with(port, NULL, FI_EACCES);
	get_nothing(port, "weft-fi2", 8);
	get_nothing(port, forged, sizeof(forged));
	insert_with(port, key, 0);
	world_give("", 1);
	world_barrier();
}

/* A client with the key and a server without one, or with bytes that were made without it. */
static void servers(void **state)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct world_params params = with_key(NULL);
	char port[8], sync, bytes[8 + 128] = "weft-fk2";
	int fd, on = 1, client;
	struct world w;

	(void)state;
	world_free_port(port);
	if (world_side == 1) {
		world_barrier();
		insert_with(port, key, FI_EACCES);
		world_give("", 1);
		world_barrier();
		insert_with(port, key, FI_EACCES);
		world_barrier();
		return;
	}
	world_open_at(&w, &params, NULL, port, FI_SOURCE);
	world_barrier();
	world_take(&sync, 1);
	world_shut(&w);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	a.sin_port = htons((uint16_t)atoi(port));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	world_barrier();
	client = accept(fd, NULL, NULL);
	assert_int_equal(send(client, bytes, sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
	world_barrier();
	close(client);
	close(fd);
}

/* The key of WEFT_JOB_KEY is as good as auth_key; with WEFT_SEAL=off it is not used. */
static void from_file(void **state)
{
	struct world_params params = with_key(NULL);
	char port[8], path[64], sync;
	struct world w;
	int fd;

	(void)state;
	world_free_port(port);
	snprintf(path, sizeof(path), "/tmp/weft-auth-key-%d.key", (int)getpid());
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	assert_int_equal(write(fd, key, 32), 32);
	close(fd);
	setenv("WEFT_JOB_KEY", path, 1);
	if (world_side == 0) {
		world_open_at(&w, &params, NULL, port, FI_SOURCE);
		world_barrier();
		world_take(&sync, 1);
		world_shut(&w);
	} else {
		world_barrier();
		get_nothing(port, "weft-fi2", 8);
		insert_with(port, NULL, 0);
		setenv("WEFT_SEAL", "off", 1);
		insert_with(port, NULL, FI_EACCES);
		unsetenv("WEFT_SEAL");
		world_give("", 1);
	}
	unsetenv("WEFT_JOB_KEY");
	unlink(path);
	world_barrier();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),     cmocka_unit_test(one_key), cmocka_unit_test(frames),
		cmocka_unit_test(two_keys),  cmocka_unit_test(clients), cmocka_unit_test(servers),
		cmocka_unit_test(from_file),
	};

	world_begin();
	setenv("FI_WEFT_LANES", "udp:lo", 1);
	return world_end(cmocka_run_group_tests_name("provider_auth_key", tests, NULL, NULL));
}
