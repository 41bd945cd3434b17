/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A memif relay whose descriptors the EAL's interrupt thread does not take, as without memory. The
 * thread is the test: it calls what the relay has registered.
 */

/* Interrupt handles are experimental in 22.11 and stable in later versions. */
#define ALLOW_EXPERIMENTAL_API

#include "memif/control.h"
#include "mock/fd_limit.h"
#include "port/memif/relay.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_interrupts.h>

#define CALLBACKS 16u

static struct {
	int fd;
	rte_intr_callback_fn fn;
	void *arg;
} registered[CALLBACKS];
static unsigned int num_registered;
static int refused;    /* the call that fails, counted from 1; 0 = none */
static bool no_memory; /* for handles */

struct rte_intr_handle *__real_rte_intr_instance_alloc(uint32_t flags);
struct rte_intr_handle *__wrap_rte_intr_instance_alloc(uint32_t flags);

struct rte_intr_handle *__wrap_rte_intr_instance_alloc(uint32_t flags)
{
	return no_memory ? NULL : __real_rte_intr_instance_alloc(flags);
}

int __wrap_rte_intr_callback_register(const struct rte_intr_handle *h, rte_intr_callback_fn fn,
				      void *arg);
int __wrap_rte_intr_callback_unregister(const struct rte_intr_handle *h, rte_intr_callback_fn fn,
					void *arg);

int __wrap_rte_intr_callback_register(const struct rte_intr_handle *h, rte_intr_callback_fn fn,
				      void *arg)
{
	if (refused > 0 && --refused == 0)
		return -ENOMEM;
	assert_true(num_registered < CALLBACKS);
	registered[num_registered].fd = rte_intr_fd_get(h);
	registered[num_registered].fn = fn;
	registered[num_registered++].arg = arg;
	return 0;
}

int __wrap_rte_intr_callback_unregister(const struct rte_intr_handle *h, rte_intr_callback_fn fn,
					void *arg)
{
	for (unsigned int i = 0; i < num_registered; i++) {
		if (registered[i].fd != rte_intr_fd_get(h) || registered[i].fn != fn ||
		    registered[i].arg != arg)
			continue;
		registered[i] = registered[--num_registered];
		return 1;
	}
	return -ENOENT;
}

static struct sockaddr_un address;
static struct weft_memif_name name;

static int set_up(void **state)
{
	(void)state;
	num_registered = 0;
	refused = 0;
	no_memory = false;
	address = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/weft-relay.%d", (int)getpid());
	name = (struct weft_memif_name){.server = false};
	snprintf(name.path, sizeof(name.path), "%s", address.sun_path);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(address.sun_path);
	return 0;
}

static int listener(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static int client(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void a_client_that_is_not_watched_keeps_no_descriptor(void **state)
{
	int server = listener(), pmd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct weft_memif_relay *r;
	unsigned int before;

	(void)state;
	assert_int_equal(connect(pmd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(weft_memif_relay_open(0, &name, &r), 0);
	before = count_fds();
	refused = 1;
	assert_int_equal(weft_memif_relay_started(r), -ENOMEM);
	assert_int_equal(count_fds(), before);
	refused = 2;
	assert_int_equal(weft_memif_relay_started(r), -ENOMEM);
	assert_int_equal(count_fds(), before);
	assert_int_equal(num_registered, 0);
	weft_memif_relay_close(r);
	close(pmd);
	close(server);
}

/* Each attempt gets a connection to the PMD, which must stay: the next attempt uses it. */
static void clients_of_a_server_without_memory_keep_one_descriptor(void **state)
{
	struct weft_memif_relay *r;
	unsigned int before, i;
	int pmd = listener(), peer;

	(void)state;
	name.server = true;
	assert_int_equal(weft_memif_relay_open(1, &name, &r), 0);
	assert_int_equal(num_registered, 1);
	assert_int_equal(weft_memif_relay_started(r), 0);
	before = count_fds();
	for (i = 0; i < 5; i++) {
		peer = client();
		refused = 1;
		registered[0].fn(registered[0].arg);
		close(peer);
		assert_int_equal(count_fds(), before + 1);
	}
	/* With memory again, that connection is the client's: its ends are the peer and the PMD. */
	peer = client();
	registered[0].fn(registered[0].arg);
	assert_int_equal(num_registered, 3);
	assert_int_equal(count_fds(), before + 3);
	close(peer);
	weft_memif_relay_close(r);
	close(pmd);
}

static void send_type(int fd, uint16_t type)
{
	struct weft_memif_message m = {.type = type};

	assert_int_equal(send(fd, &m, sizeof(m), 0), sizeof(m));
}

static void run_callbacks(void)
{
	for (unsigned int i = 0; i < num_registered; i++)
		registered[i].fn(registered[i].arg);
}

/* The PMD would unmap the rings at once, in another thread than the one that polls them. */
static void the_end_of_a_connection_does_not_reach_the_pmd(void **state)
{
	int server = listener(), pmd = socket(AF_UNIX, SOCK_SEQPACKET, 0), peer;
	struct weft_memif_message m;
	struct weft_memif_relay *r;

	(void)state;
	assert_int_equal(connect(pmd, (struct sockaddr *)&address, sizeof(address)), 0);
	peer = accept(server, NULL, NULL);
	assert_int_equal(weft_memif_relay_open(4, &name, &r), 0);
	assert_int_equal(weft_memif_relay_started(r), 0);
	send_type(peer, WEFT_MEMIF_HELLO);
	run_callbacks();
	assert_int_equal(recv(pmd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	assert_int_equal(m.type, WEFT_MEMIF_HELLO);
	send_type(peer, WEFT_MEMIF_DISCONNECT);
	run_callbacks();
	assert_int_equal(recv(pmd, &m, sizeof(m), MSG_DONTWAIT), -1);
	assert_true(weft_memif_relay_left(r));
	weft_memif_relay_close(r);
	close(peer);
	close(pmd);
	close(server);
}

/* A callback that stays registered would use the freed connection. */
static void a_client_is_closed_without_memory(void **state)
{
	int server = listener(), pmd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct weft_memif_relay *r;
	unsigned int before;

	(void)state;
	assert_int_equal(connect(pmd, (struct sockaddr *)&address, sizeof(address)), 0);
	before = count_fds();
	assert_int_equal(weft_memif_relay_open(2, &name, &r), 0);
	assert_int_equal(weft_memif_relay_started(r), 0);
	assert_int_equal(num_registered, 2);
	no_memory = true;
	weft_memif_relay_close(r);
	assert_int_equal(num_registered, 0);
	assert_int_equal(count_fds(), before);
	close(pmd);
	close(server);
}

/* The new port has the number of the old one, which left a connection behind. */
static void a_port_that_is_made_again_keeps_no_descriptor_of_the_old_one(void **state)
{
	struct weft_memif_relay *r;
	unsigned int before;
	int pmd, peer;

	(void)state;
	name.server = true;
	pmd = listener();
	assert_int_equal(weft_memif_relay_open(3, &name, &r), 0);
	before = count_fds();
	assert_int_equal(weft_memif_relay_started(r), 0);
	peer = client();
	refused = 1;
	registered[0].fn(registered[0].arg);
	close(peer);
	assert_int_equal(count_fds(), before + 1);
	weft_memif_relay_close(r);
	close(pmd);
	unlink(address.sun_path);
	pmd = listener();
	assert_int_equal(weft_memif_relay_open(3, &name, &r), 0);
	assert_int_equal(num_registered, 1);
	assert_int_equal(count_fds(), before);
	weft_memif_relay_close(r);
	close(pmd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_client_that_is_not_watched_keeps_no_descriptor,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			clients_of_a_server_without_memory_keep_one_descriptor, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_end_of_a_connection_does_not_reach_the_pmd,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_client_is_closed_without_memory, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			a_port_that_is_made_again_keeps_no_descriptor_of_the_old_one, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
