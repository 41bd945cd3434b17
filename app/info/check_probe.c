/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/netlink.h"
#include "common/cli.h"
#include "info/check_probe.h"

#define EVERY 0.1 /* s between the probes of a pair */
#define LARGEST 9216u
#define IP_UDP 28u

struct probe {
	char magic[8];
	uint64_t nonce; /* the receiver's (struct check_facts) */
	uint8_t from, to, large;
};

static const char magic[8] = {'w', 'e', 'f', 't', 'c', 'h', 'k', '1'};

/* Bytes of the parts that have a meaning; zeros follow. */
#define PROBE_LEN (offsetof(struct probe, large) + 1)

uint32_t check_probe_size(const struct check_iface *i)
{
	return i->mtu < LARGEST ? i->mtu : LARGEST;
}

/* @return a socket, or a negative error */
static int open_socket(struct check_iface *i)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(i->ip)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;
	int out = (int)htonl(if_nametoindex(i->name)), probe = IP_PMTUDISC_PROBE;
	socklen_t len = sizeof(a);

	if (fd < 0)
		return -errno;
	/* As the sockets of a lane. */
	setsockopt(fd, IPPROTO_IP, IP_UNICAST_IF, &out, sizeof(out));
	setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&a, &len) == 0) {
		i->port = ntohs(a.sin_port);
		return fd;
	}
	err = -errno;
	close(fd);
	return err;
}

int check_probe_open(struct check_probe *p, struct check_facts *mine)
{
	for (unsigned int i = 0; i < CHECK_IFACES; i++)
		p->fd[i] = -1;
	for (unsigned int i = 0; i < mine->num; i++) {
		p->fd[i] = open_socket(&mine->iface[i]);
		if (p->fd[i] < 0)
			return p->fd[i];
	}
	return 0;
}

void check_probe_close(struct check_probe *p)
{
	for (unsigned int i = 0; i < CHECK_IFACES; i++)
		if (p->fd[i] >= 0)
			close(p->fd[i]);
}

static void send_probe(int fd, const struct check_iface *mine, const struct check_iface *theirs,
		       const struct probe *what)
{
	uint8_t bytes[LARGEST] = {0};
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(theirs->port),
		.sin_addr.s_addr = htonl(theirs->ip),
	};
	size_t len = what->large ? check_probe_size(mine) - IP_UDP : PROBE_LEN;

	memcpy(bytes, what, PROBE_LEN);
	/* An error is a result, too: nothing arrives. */
	(void)!sendto(fd, bytes, len, 0, (struct sockaddr *)&to, sizeof(to));
}

static void send_all(const struct check_probe *p, const struct check_facts *mine,
		     const struct check_facts *theirs, const struct check_seen *seen)
{
	struct probe what = {.nonce = theirs->nonce};

	memcpy(what.magic, magic, sizeof(magic));
	for (unsigned int i = 0; i < mine->num; i++) {
		for (unsigned int k = 0; k < theirs->num; k++) {
			if (!seen->pair[i][k].route)
				continue;
			what.from = (uint8_t)i;
			what.to = (uint8_t)k;
			what.large = 0;
			send_probe(p->fd[i], &mine->iface[i], &theirs->iface[k], &what);
			what.large = 1;
			if (seen->pair[i][k].small)
				send_probe(p->fd[i], &mine->iface[i], &theirs->iface[k], &what);
		}
	}
}

/* A datagram on the socket of interface @p i. Those that are no probe of the peer's are ignored. */
static void take_probe(const uint8_t *bytes, size_t len, uint32_t src, unsigned int i,
		       const struct check_facts *mine, const struct check_facts *theirs,
		       struct check_seen *seen)
{
	struct probe what = {.large = 0};

	if (len < PROBE_LEN)
		return;
	memcpy(&what, bytes, PROBE_LEN);
	if (memcmp(what.magic, magic, sizeof(magic)) != 0 || what.nonce != mine->nonce ||
	    what.to != i || what.from >= theirs->num || theirs->iface[what.from].ip != src)
		return;
	if (!what.large)
		seen->pair[i][what.from].small = true;
	else if (len + IP_UDP == check_probe_size(&theirs->iface[what.from]))
		seen->pair[i][what.from].large = true;
}

static void receive(const struct check_probe *p, const struct check_facts *mine,
		    const struct check_facts *theirs, int timeout_ms, struct check_seen *seen)
{
	struct pollfd poll_fd[CHECK_IFACES];
	static uint8_t bytes[LARGEST];
	struct sockaddr_in from = {0};
	socklen_t len;
	ssize_t n;

	for (unsigned int i = 0; i < mine->num; i++)
		poll_fd[i] = (struct pollfd){.fd = p->fd[i], .events = POLLIN};
	if (poll(poll_fd, mine->num, timeout_ms) <= 0)
		return;
	for (unsigned int i = 0; i < mine->num; i++) {
		/* A few at a time: a flood does not keep this end from its deadline. */
		for (unsigned int k = 0; k < 64; k++) {
			len = sizeof(from);
			n = recvfrom(p->fd[i], bytes, sizeof(bytes), 0, (struct sockaddr *)&from,
				     &len);
			if (n < 0)
				break;
			take_probe(bytes, (size_t)n, ntohl(from.sin_addr.s_addr), i, mine, theirs,
				   seen);
		}
	}
}

/* A line of /proc/net/arp: does it belong to a pair? */
static void take_arp(const char *line, const struct check_facts *mine,
		     const struct check_facts *theirs, struct check_seen *seen)
{
	char ip[16], dev[IF_NAMESIZE];
	struct in_addr a;
	unsigned int flags;

	if (sscanf(line, "%15s 0x%*x 0x%x %*s %*s %15s", ip, &flags, dev) != 3 ||
	    inet_pton(AF_INET, ip, &a) != 1)
		return;
	for (unsigned int i = 0; i < mine->num; i++)
		for (unsigned int k = 0; k < theirs->num; k++)
			if (strcmp(mine->iface[i].name, dev) == 0 &&
			    theirs->iface[k].ip == ntohl(a.s_addr))
				seen->pair[i][k].arp =
					flags & 2 ? CHECK_ARP_KNOWN : CHECK_ARP_FAILED;
}

static void read_arp(const struct check_facts *mine, const struct check_facts *theirs,
		     struct check_seen *seen)
{
	FILE *f = fopen("/proc/net/arp", "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		take_arp(line, mine, theirs, seen);
	if (f)
		fclose(f);
}

static bool has_route(const struct check_iface *from, const struct check_iface *to)
{
	const struct in_addr src = {htonl(from->ip)}, dst = {htonl(to->ip)};

	/* Without an answer of the kernel, probes show whether there is a route. */
	return weft_netlink_has_route(if_nametoindex(from->name), AF_INET, &src, &dst);
}

void check_probe_run(struct check_probe *p, const struct check_facts *mine,
		     const struct check_facts *theirs, double seconds, struct check_seen *seen)
{
	double now = sys_seconds(), end = now + seconds, next = now;

	*seen = (struct check_seen){0};
	for (unsigned int i = 0; i < mine->num; i++)
		for (unsigned int k = 0; k < theirs->num; k++)
			seen->pair[i][k].route = has_route(&mine->iface[i], &theirs->iface[k]);
	for (; now < end; now = sys_seconds()) {
		if (now >= next) {
			send_all(p, mine, theirs, seen);
			next = now + EVERY;
		}
		receive(p, mine, theirs, 20, seen);
	}
	read_arp(mine, theirs, seen);
}
