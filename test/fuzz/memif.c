/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A hostile peer of a memif lane. First byte of an input: RINGS or the control socket, and which
 * end is the peer. For the control socket each further record is a message that would be valid,
 * with bytes that are changed. For rings each record is bytes that the peer writes into the memory
 * while this end receives and sends.
 *
 * What must hold: no access outside the region (AddressSanitizer); what is delivered lies in it;
 * a connection that has ended has no memory.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "memif/control.h"

#define RINGS 0x01
#define PEER_IS_SERVER 0x02

#define MUST(cond)               \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

static uint8_t next(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->at++;
}

/* ------------------------------------------------------------------ rings */

#define LOG2 2u
#define BSIZE 64u
#define BUFS 512u
#define LEN (BUFS + 4 * BSIZE)

static unsigned int sum;

static bool inside(const struct weft_mring_buf *b, const struct weft_mregion *regions,
		   unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (b->at >= regions[i].at && b->at + b->len <= regions[i].at + regions[i].len)
			return true;
	return false;
}

static void read_all(struct weft_mring *r, const struct weft_mregion *regions, unsigned int num)
{
	struct weft_mring_buf b;
	int n = weft_mring_poll(r);

	MUST(n <= r->size);
	for (int i = 0; i < n; i++) {
		b = weft_mring_frame(r, (unsigned int)i);
		if (!b.at)
			continue;
		MUST(inside(&b, regions, num));
		for (uint32_t k = 0; k < b.len; k++)
			sum += b.at[k];
	}
	if (n > 0)
		weft_mring_return(r, (unsigned int)n);
}

static void fill_all(struct weft_mring *r, const struct weft_mregion *regions, unsigned int num)
{
	struct weft_mring_buf b;
	int n = weft_mring_poll(r);

	MUST(n <= r->size);
	for (int i = 0; i < n; i++) {
		b = weft_mring_room(r, (unsigned int)i);
		if (!b.at)
			continue;
		MUST(inside(&b, regions, num));
		if (b.len > 0)
			b.at[b.len - 1] = 0x5a;
		weft_mring_fill(r, (unsigned int)i, b.len);
	}
	if (n > 0)
		weft_mring_done(r, (unsigned int)n);
}

static void rings(struct input *in, bool peer_is_server)
{
	struct weft_mregion region = {aligned_alloc(64, LEN), LEN};
	struct weft_mring client, server, *own = peer_is_server ? &client : &server;
	bool sends = next(in) & 1;
	uint8_t n;

	MUST(region.at);
	memset(region.at, 0, LEN);
	weft_mring_make(&client, &region, 0, BUFS, BSIZE, LOG2, sends);
	MUST(weft_mring_attach(&server, &region, 1, 0, 0, LOG2) == 0);
	weft_mring_open(&client);
	while (in->left > 0) {
		/* Indices and descriptors are at the beginning. */
		for (n = next(in) % 8; n > 0; n--)
			region.at[next(in)] = next(in);
		if (sends == peer_is_server)
			fill_all(own, &region, 1);
		else
			read_all(own, &region, 1);
	}
	free(region.at);
}

/* ------------------------------------------------------------------ the control socket */

static void put(uint8_t *to, uint64_t value, size_t n)
{
	memcpy(to, &value, n);
}

/* A message as a peer would send it, little-endian. */
static void message(uint8_t m[128], uint8_t type)
{
	memset(m, 0, 128);
	put(m, type, 2);
	if (type == WEFT_MEMIF_HELLO) {
		put(m + 34, 0x0200, 2);
		put(m + 36, 0x0200, 2);
		put(m + 44, 4, 1);
	} else if (type == WEFT_MEMIF_INIT) {
		put(m + 2, 0x0200, 2);
	} else if (type == WEFT_MEMIF_ADD_REGION) {
		put(m + 4, 8192, 8);
	}
}

static void ring_message(uint8_t m[128], bool sends)
{
	message(m, WEFT_MEMIF_ADD_RING);
	put(m + 2, sends, 2);
	put(m + 8, sends ? 0 : 4096, 4);
	put(m + 12, 4, 1);
}

static int memory(void)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint32_t cookie = WEFT_MRING_COOKIE;

	MUST(fd >= 0 && ftruncate(fd, 8192) == 0);
	MUST(pwrite(fd, &cookie, sizeof(cookie), 0) == sizeof(cookie));
	MUST(pwrite(fd, &cookie, sizeof(cookie), 4096) == sizeof(cookie));
	MUST(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	return fd;
}

/* One record: type, descriptor and changes of the message. */
static void give_record(struct input *in, int to, const int fds[4])
{
	uint8_t what = next(in), changes = next(in), m[136] = {0};
	size_t len = 128;
	int fd;

	if (what % 9 == WEFT_MEMIF_ADD_RING)
		ring_message(m, what & 0x80);
	else
		message(m, what % 9);
	for (; changes & 7; changes--)
		m[next(in) % 128] = next(in);
	if (changes & 0x80)
		len = next(in) % sizeof(m);
	fd = fds[(what / 16) % 4];
	(void)!weft_socket_send_fds(to, m, len, &fd, fd >= 0);
}

static void control(struct input *in, bool peer_is_server)
{
	const struct weft_mconn_conf conf = {
		.server = !peer_is_server, .bsize = 256, .log2_ring = 4};
	const int fds[4] = {-1, eventfd(0, EFD_CLOEXEC), memory(), epoll_create1(EPOLL_CLOEXEC)};
	struct weft_mconn c;
	int pair[2];

	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
	weft_mconn_init(&c, &conf, fds[3]);
	MUST(weft_mconn_start(&c, pair[0]) == 0);
	while (in->left > 0 && c.fd >= 0) {
		give_record(in, pair[1], fds);
		weft_mconn_input(&c);
		MUST(c.fd >= 0 || (c.num_regions == 0 && !c.rx.shm && !c.tx.shm && c.why[0]));
		if (c.state == WEFT_MCONN_UP) {
			read_all(&c.rx, c.region, c.num_regions);
			fill_all(&c.tx, c.region, c.num_regions);
		}
	}
	weft_mconn_end(&c, NULL);
	close(pair[1]);
	for (int i = 1; i < 4; i++)
		close(fds[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	uint8_t how = next(&in);

	if (how & RINGS)
		rings(&in, how & PEER_IS_SERVER);
	else
		control(&in, how & PEER_IS_SERVER);
	return 0;
}
