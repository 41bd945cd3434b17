/* SPDX-License-Identifier: BSD-3-Clause */
/* What is learned of a memif ring from the messages on its control socket, and sleeping on it. */

#include "port/memif/memif.h"
#include "mock/fd_limit.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_config.h>

#define LOG2 4
#define SIZE (1u << LOG2)
#define OFFSET 4096u
#define COOKIE 0x3E31F20u
#define MASKED 1u

/* The peer's side: memory with one ring, and what it rings. */
static int region, event;
static uint8_t *memory;
static struct weft_memif_ring *ring;
static unsigned int fds_before;

static uint16_t *field(size_t at)
{
	return (uint16_t *)(memory + OFFSET + at);
}

static uint16_t *flags(void)
{
	return field(4);
}

static uint16_t *head(void)
{
	return field(6);
}

static uint16_t *tail(void)
{
	return field(RTE_CACHE_LINE_SIZE);
}

static int setup(void **state)
{
	uint32_t cookie = COOKIE;

	(void)state;
	fds_before = count_fds();
	region = memfd_create("ring", MFD_CLOEXEC);
	event = eventfd(0, EFD_CLOEXEC);
	assert_true(region >= 0 && event >= 0);
	assert_int_equal(ftruncate(region, OFFSET + 4096), 0);
	memory = mmap(NULL, OFFSET + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, region, 0);
	assert_true(memory != MAP_FAILED);
	memcpy(memory + OFFSET, &cookie, sizeof(cookie));
	*flags() = MASKED;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	weft_memif_ring_free(ring);
	ring = NULL;
	munmap(memory, OFFSET + 4096);
	close(region);
	close(event);
	assert_int_equal(count_fds(), fds_before);
	return 0;
}

struct __attribute__((packed)) message {
	uint16_t type;
	union __attribute__((packed)) {
		struct __attribute__((packed)) {
			uint16_t index;
			uint64_t size;
		} region;
		struct __attribute__((packed)) {
			uint16_t flags, index, region;
			uint32_t offset;
			uint8_t log2;
		} ring;
		uint8_t rest[126];
	};
};

static struct message region_message(void)
{
	return (struct message){.type = 4, .region = {0, OFFSET + 4096}};
}

static struct message ring_message(bool from_client)
{
	return (struct message){.type = 5, .ring = {from_client, 0, 0, OFFSET, LOG2}};
}

static void receive(const struct message *m, int fd)
{
	weft_memif_ring_message(ring, m, sizeof(*m), &fd, 1);
}

static bool readable(void)
{
	struct pollfd p = {.fd = weft_memif_ring_fd(ring), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void connect_ring(bool server)
{
	struct message r = region_message(), m = ring_message(server);

	ring = weft_memif_ring_make(server);
	assert_non_null(ring);
	assert_false(readable());
	receive(&r, region);
	receive(&m, event);
	assert_true(readable()); /* a sleeper learns that there is something to arm */
	weft_memif_ring_awake(ring);
	assert_false(readable());
	/* A client has given all slots. */
	*head() = server ? 0 : SIZE;
}

static void the_peer_rings_while_the_owner_sleeps(void **state)
{
	int server;

	(void)state;
	for (server = 0; server < 2; server++) {
		connect_ring(server);
		assert_int_equal(weft_memif_ring_arm(ring), 0);
		assert_int_equal(*flags() & MASKED, 0);
		assert_false(readable());
		eventfd_write(event, 1);
		assert_true(readable());
		weft_memif_ring_disarm(ring);
		assert_false(readable());
		assert_int_equal(*flags() & MASKED, MASKED);
		weft_memif_ring_free(ring);
		ring = NULL;
	}
}

/* The peer had sent before it could see that it should ring. */
/* @behaviour U75 */
static void frames_that_are_there_are_not_slept_on(void **state)
{
	int server;

	(void)state;
	for (server = 0; server < 2; server++) {
		connect_ring(server);
		*(server ? head() : tail()) += 1;
		assert_int_equal(weft_memif_ring_arm(ring), -EBUSY);
		assert_int_equal(*flags() & MASKED, MASKED);
		*(server ? tail() : head()) += 1; /* the PMD takes it */
		assert_int_equal(weft_memif_ring_arm(ring), 0);
		weft_memif_ring_disarm(ring);
		weft_memif_ring_free(ring);
		ring = NULL;
		*tail() = 0;
	}
}

static void messages_of_the_peer_are_checked(void **state)
{
	struct message good = region_message(), bad[8], short_one = ring_message(true);
	unsigned int i;

	(void)state;
	for (i = 0; i < 8; i++)
		bad[i] = ring_message(true);
	bad[0].ring.offset = OFFSET + 4096;
	bad[1].ring.offset = UINT32_MAX - RTE_CACHE_LINE_SIZE + 1;
	bad[2].ring.offset = OFFSET + 2;
	bad[3].ring.offset = 0; /* no cookie */
	bad[4].ring.log2 = 200;
	bad[5].ring.region = 1;
	bad[6].ring.index = 1;
	bad[7].ring.flags = 0; /* the other direction */
	for (i = 0; i < 8; i++) {
		ring = weft_memif_ring_make(true);
		receive(&good, region);
		receive(&bad[i], event);
		assert_int_equal(weft_memif_ring_arm(ring), -ENOTCONN);
		weft_memif_ring_free(ring);
	}
	ring = weft_memif_ring_make(true);
	receive(&short_one, event); /* before its region */
	weft_memif_ring_message(ring, &short_one, 5, &event, 1);
	weft_memif_ring_message(ring, &short_one, sizeof(short_one), &event, 0);
	receive(&short_one, -1);
	assert_int_equal(weft_memif_ring_arm(ring), -ENOTCONN);
}

static void a_region_that_is_cut_short_is_no_ring(void **state)
{
	struct message r = region_message(), m = ring_message(true);

	(void)state;
	assert_int_equal(ftruncate(region, OFFSET + 64), 0);
	ring = weft_memif_ring_make(true);
	receive(&r, region);
	receive(&m, event);
	assert_int_equal(weft_memif_ring_arm(ring), -ENOTCONN);
	assert_int_equal(ftruncate(region, OFFSET + 4096), 0);
}

/* The peer may ring on: its eventfd lives as long as it does. */
static void a_connection_that_is_over_wakes_no_thread(void **state)
{
	struct message r = region_message(), m = ring_message(true);

	(void)state;
	connect_ring(true);
	assert_int_equal(weft_memif_ring_arm(ring), 0);
	weft_memif_ring_disarm(ring);
	weft_memif_ring_forget(ring);
	eventfd_write(event, 1);
	assert_false(readable());
	assert_int_equal(weft_memif_ring_arm(ring), -ENOTCONN);
	/* And the next one does. */
	receive(&r, region);
	receive(&m, event);
	weft_memif_ring_awake(ring);
	assert_int_equal(weft_memif_ring_arm(ring), 0);
	assert_true(readable());
	weft_memif_ring_disarm(ring);
}

#define RING(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RING(the_peer_rings_while_the_owner_sleeps),
		RING(frames_that_are_there_are_not_slept_on),
		RING(messages_of_the_peer_are_checked),
		RING(a_region_that_is_cut_short_is_no_ring),
		RING(a_connection_that_is_over_wakes_no_thread),
	};

	return cmocka_run_group_tests_name("memif_ring", tests, NULL, NULL);
}
