/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weft-farewell: waits for the end of the process that has started it, and then sends the farewells
 * that the process has left in shared memory (drivers/dpdk/frame/farewell.h). The library starts
 * it.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_packet.h>

#include "drivers/dpdk/frame/farewell.h"

#define FD_PROCESS 6
#define ROUNDS 3u           /* farewells are repeated, since frames get lost */
#define ROUND_NS 100000000l /* time between the first two rounds; then it doubles */
#define BURST 64u           /* frames sent before a pause of BURST_NS */
#define BURST_NS 1000000l

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static void wait_ns(long ns)
{
	struct timespec left = {.tv_nsec = ns};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

/*
 * Close the descriptors inherited from the process: a reader of its output must not wait for the
 * end of this process.
 */
static void close_others(void)
{
	long fd, most;
	int null;

	if (syscall(SYS_close_range, FD_PROCESS + 1, ~0u, 0)) {
		most = sysconf(_SC_OPEN_MAX);
		for (fd = FD_PROCESS + 1; fd < (most > 0 && most < 65536 ? most : 65536); fd++)
			close((int)fd);
	}
	null = open("/dev/null", O_RDWR);
	for (fd = 0; fd < 3; fd++)
		if (null < 0 || dup2(null, (int)fd) < 0)
			close((int)fd);
	if (null > 2)
		close(null);
}

/*
 * Wait for the end of the process: the pipe breaks; or, if a child of the process has the pipe,
 * too, the pidfd becomes readable.
 */
static void await_end(void)
{
	struct pollfd fds[2] = {{.fd = WEFT_FAREWELL_FD_ALIVE},
				{.fd = FD_PROCESS, .events = POLLIN}};

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
}

static bool send_packet(const struct weft_farewell_slot *s, uint32_t len)
{
	const struct sockaddr_ll to = {.sll_family = AF_PACKET,
				       .sll_ifindex = (int)s->way.if_index};

	return sendto(WEFT_FAREWELL_FD_SOCKET, s->bytes, len, MSG_DONTWAIT,
		      (const struct sockaddr *)&to, sizeof(to)) >= 0;
}

/*
 * The datagram leaves from the port of the process, if the kernel has already released it: a
 * firewall may pass no other one.
 */
static bool send_udp(const struct weft_farewell_slot *s, uint32_t len)
{
	union weft_farewell_addr from = s->way.from;
	bool six = from.any.sa_family == AF_INET6;
	socklen_t size = six ? sizeof(from.v6) : sizeof(from.v4);
	int fd = socket(from.any.sa_family, SOCK_DGRAM, 0);
	bool sent;

	if (fd < 0)
		return false;
	if (bind(fd, &from.any, size) < 0) {
		if (six)
			from.v6.sin6_port = 0;
		else
			from.v4.sin_port = 0;
		bind(fd, &from.any, size); /* unbound, the kernel would choose the address, too */
	}
	sent = sendto(fd, s->bytes, len, MSG_DONTWAIT, &s->way.to.any, size) >= 0;
	close(fd);
	return sent;
}

static unsigned int send_all(const struct weft_farewell_slot *table)
{
	unsigned int i, sent = 0;
	uint32_t len;

	for (i = 0; i < WEFT_FAREWELL_SLOTS; i++) {
		/* acquire: the frame was written before its length */
		len = atomic_load_explicit(&table[i].len, memory_order_acquire);
		if (len == 0 || len > sizeof(table[i].bytes))
			continue;
		if (table[i].way.kind == WEFT_FAREWELL_UDP ? !send_udp(&table[i], len)
							   : !send_packet(&table[i], len))
			wait_ns(BURST_NS); /* its queue may be full; later rounds repeat it */
		if (++sent % BURST == 0)
			wait_ns(BURST_NS);
	}
	return sent;
}

int main(void)
{
	const size_t len = WEFT_FAREWELL_SLOTS * sizeof(struct weft_farewell_slot);
	const struct weft_farewell_slot *table;
	int process = (int)syscall(SYS_pidfd_open, getppid(), 0);
	unsigned int i;

	if (process >= 0 && process != FD_PROCESS) {
		dup2(process, FD_PROCESS);
		close(process);
	} else if (process < 0) {
		close(FD_PROCESS);
	}
	if (fork() != 0)
		_exit(0);
	setsid(); /* signals for the group of the process are not for this one */
	close_others();
	table = mmap(NULL, len, PROT_READ, MAP_SHARED, WEFT_FAREWELL_FD_TABLE, 0);
	if (table == MAP_FAILED || chdir("/"))
		return 1;
	await_end();
	for (i = 0; i < ROUNDS && send_all(table) > 0; i++)
		wait_ns(ROUND_NS << i);
	return 0;
}
