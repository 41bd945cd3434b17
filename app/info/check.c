/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weft-info --check: both ends exchange their data over TCP, probe each other over UDP, and
 * exchange which probes have arrived. Each then prints the same verdict, from its own side.
 * FACTS_END and SEEN_END count from the start, because on a busy host one text can take a second: a
 * step also gets the time that earlier steps did not need. Bytes of the other end are not trusted:
 * texts have a maximum length, and each step a deadline.
 */

#include "info/commands.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/host.h"
#include "base/tcp.h"
#include "common/cli.h"
#include "info/check_facts.h"

#define CONNECT 1.0   /* s for the TCP connection, at most */
#define FACTS_END 1.7 /* s from the start to the end of the exchange of hosts' data */
#define PROBE 1.0     /* s for which probes are sent */
#define SEEN_END 3.0  /* s from the start to the end of the exchange of what has arrived */

/* ---- TCP ------------------------------------------------------------------------------------ */

static int ready(int fd, short events, double until)
{
	struct pollfd p = {.fd = fd, .events = events};
	double left = until - sys_seconds();
	int n = left > 0 ? poll(&p, 1, (int)(left * 1000) + 1) : 0;

	if (n > 0)
		return 0;
	return n < 0 && errno != EINTR ? -errno : -ETIMEDOUT;
}

static int send_text(int fd, const char *text, size_t len, double until)
{
	ssize_t n;
	int err;

	for (size_t at = 0; at < len; at += (size_t)n) {
		err = ready(fd, POLLOUT, until);
		if (err < 0)
			return err;
		n = send(fd, text + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0)
			n = 0;
	}
	return 0;
}

static bool is_complete(const char *text, size_t len)
{
	return (len >= 5 && memcmp(text + len - 5, "\nend\n", 5) == 0) ||
	       (len == 4 && memcmp(text, "end\n", 4) == 0);
}

/*
 * Nothing follows the line "end", because the other end sends its next text only after it has
 * received this end's. @return 1: the text is complete; 0: more follows; or a negative error
 */
static int recv_some(int fd, char text[CHECK_TEXT], size_t *len)
{
	ssize_t n = recv(fd, text + *len, CHECK_TEXT - 1 - *len, MSG_DONTWAIT);

	if (n == 0)
		return *len == CHECK_TEXT - 1 ? -EPROTO : -ECONNRESET;
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	*len += (size_t)n;
	text[*len] = '\0';
	if (strlen(text) != *len)
		return -EPROTO;
	return is_complete(text, *len);
}

static int recv_text(int fd, char text[CHECK_TEXT], double until)
{
	size_t len = 0;
	int rc = 0;

	while (rc == 0) {
		rc = ready(fd, POLLIN, until);
		if (rc == 0)
			rc = recv_some(fd, text, &len);
	}
	return rc < 0 ? rc : 0;
}

/* ---- probes --------------------------------------------------------------------------------- */

/*
 * Probes are UDP datagrams between all interfaces of the two hosts, except pairs without a route.
 * The other end names the addresses of its interfaces, so probes might flood a third host. They are
 * therefore rare, and short until a short probe of the other end has arrived on the pair.
 */

struct sockets {
	int fd[CHECK_IFACES];
};

#define EVERY 0.1 /* s between the probes of a pair */
#define IP_UDP 28u

struct probe {
	char magic[8];
	uint64_t nonce; /* check_facts.nonce of the end that receives the probe */
	uint8_t from, to, large;
};

static const char magic[8] = {'w', 'e', 'f', 't', 'c', 'h', 'k', '1'};

/* Bytes of a short probe, and of a large one before its zeros. */
#define PROBE_LEN (offsetof(struct probe, large) + 1)

static int open_socket(struct check_iface *i)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(i->ip)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;
	int out = (int)htonl(if_nametoindex(i->name)), probe = IP_PMTUDISC_PROBE;
	socklen_t len = sizeof(a);

	if (fd < 0)
		return -errno;
	/* As on sockets of a udp lane: probes leave by the interface, and are not fragmented. */
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

static int probe_open(struct sockets *p, struct check_facts *mine)
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

static void probe_close(struct sockets *p)
{
	for (unsigned int i = 0; i < CHECK_IFACES; i++)
		if (p->fd[i] >= 0)
			close(p->fd[i]);
}

static void send_probe(int fd, const struct check_iface *mine, const struct check_iface *theirs,
		       const struct probe *what)
{
	uint8_t bytes[CHECK_PROBE_MAX] = {0};
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(theirs->port),
		.sin_addr.s_addr = htonl(theirs->ip),
	};
	size_t len = what->large ? check_probe_size(mine) - IP_UDP : PROBE_LEN;

	memcpy(bytes, what, PROBE_LEN);
	/* An error needs no report: the probe does not arrive. */
	(void)!sendto(fd, bytes, len, 0, (struct sockaddr *)&to, sizeof(to));
}

static void send_all(const struct sockets *p, const struct check_facts *mine,
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

/* Ignore datagrams that are no probe of the peer to interface @p i. */
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

static void receive(const struct sockets *p, const struct check_facts *mine,
		    const struct check_facts *theirs, int timeout_ms, struct check_seen *seen)
{
	struct pollfd poll_fd[CHECK_IFACES];
	static uint8_t bytes[CHECK_PROBE_MAX];
	struct sockaddr_in from = {0};
	socklen_t len;
	ssize_t n;

	for (unsigned int i = 0; i < mine->num; i++)
		poll_fd[i] = (struct pollfd){.fd = p->fd[i], .events = POLLIN};
	if (poll(poll_fd, mine->num, timeout_ms) <= 0)
		return;
	for (unsigned int i = 0; i < mine->num; i++) {
		/* The limit lets this end keep its deadline during a flood. */
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

	/* True also if the kernel gives no answer: then the probes show whether a route exists. */
	return weft_netlink_has_route(if_nametoindex(from->name), AF_INET, &src, &dst);
}

static void probe_run(struct sockets *p, const struct check_facts *mine,
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

/* ---- the exchange --------------------------------------------------------------------------- */

/* @param received  the other end's text, which is changed; NULL = not yet received */
static int exchange_facts(int fd, const struct check_facts *mine, char *received, double until,
			  struct check_facts *theirs)
{
	char text[CHECK_TEXT];
	int err = send_text(fd, text, check_facts_write(mine, text), until);

	if (err == 0 && !received)
		err = recv_text(fd, text, until);
	return err == 0 ? check_facts_parse(received ? received : text, theirs) : err;
}

static int exchange_seen(int fd, struct check_end *here, struct check_end *there, double until)
{
	unsigned int mine = here->facts.num, theirs = there->facts.num;
	char text[CHECK_TEXT];
	int err = send_text(fd, text, check_seen_write(&here->seen, mine, theirs, text), until);

	if (err == 0)
		err = recv_text(fd, text, until);
	return err == 0 ? check_seen_parse(text, theirs, mine, &there->seen) : err;
}

static int run(int fd, struct sockets *probe, char *received, double start, struct check_end *here,
	       struct check_end *there)
{
	int err = exchange_facts(fd, &here->facts, received, start + FACTS_END, &there->facts);

	if (err < 0)
		return err;
	probe_run(probe, &here->facts, &there->facts, PROBE, &here->seen);
	return exchange_seen(fd, here, there, start + SEEN_END);
}

/* ---- output --------------------------------------------------------------------------------- */

static const char *amount(uint64_t kb, char buf[32])
{
	if (kb == UINT64_MAX)
		return "unlimited";
	snprintf(buf, 32, "%" PRIu64 " kB", kb);
	return buf;
}

static void print_facts(const char *where, const struct check_facts *f)
{
	const struct check_iface *i = f->iface;
	char lock[32], huge[32], speed[24] = "";

	printf("%s %s: weft %s, user %" PRIu32
	       ", locked memory %s, free hugepages %s, lanes%s%s%s\n",
	       where, f->host, f->version, f->uid, amount(f->memlock_kb, lock),
	       amount(f->huge_kb, huge), f->kinds & CHECK_ROCE ? " roce" : "",
	       f->kinds & CHECK_DPDK ? " dpdk" : "", f->kinds & CHECK_UDP ? " udp" : "");
	for (; i < f->iface + f->num; i++) {
		if (i->speed > 0)
			snprintf(speed, sizeof(speed), ", %d Mb/s", i->speed);
		printf("  %-15s %u.%u.%u.%u/%u, MTU %" PRIu32 "%s", i->name, i->ip >> 24,
		       i->ip >> 16 & 255, i->ip >> 8 & 255, i->ip & 255, i->prefix, i->mtu,
		       i->speed > 0 ? speed : "");
		if (i->vlan)
			printf(", VLAN %u", i->vlan);
		printf("\n");
	}
}

static void print_pair(const struct check_end *here, const struct check_end *there, unsigned int i,
		       unsigned int k)
{
	static const char *const arp[] = {"not used", "resolved", "no reply"};
	const struct check_pair *a = &here->seen.pair[i][k], *b = &there->seen.pair[k][i];

	if (!a->route && !b->route)
		return;
	printf("%s - %s: UDP out %s, in %s; ARP %s\n", here->facts.iface[i].name,
	       there->facts.iface[k].name, b->small ? b->large ? "yes" : "short frames only" : "no",
	       a->small ? a->large ? "yes" : "short frames only" : "no", arp[a->arp]);
}

static int print_result(const struct check_end *here, const struct check_end *there)
{
	struct check_verdict v;

	print_facts("here ", &here->facts);
	print_facts("there", &there->facts);
	for (unsigned int i = 0; i < here->facts.num; i++)
		for (unsigned int k = 0; k < there->facts.num; k++)
			print_pair(here, there, i, k);
	check_decide(here, there, &v);
	printf("verdict: %s\nremedy: %s\n", v.text, v.remedy);
	if (fflush(stdout) != 0 || v.fault != CHECK_FINE)
		return APP_FAIL;
	return APP_OK;
}

/* ---- client --------------------------------------------------------------------------------- */

static int not_connected(const char *host, uint16_t port, int err)
{
	if (err == -ECONNREFUSED)
		printf("verdict: %s is reached, and no process listens on TCP port %u\n"
		       "remedy: start weft-info --check -l -p %u there\n",
		       host, port, port);
	else if (err == -ENETUNREACH || err == -EHOSTUNREACH)
		printf("verdict: %s is not reached over TCP: %s\n"
		       "remedy: compare ip -br addr of both ends; ip route get ADDRESS shows the "
		       "route\n",
		       host, strerror(-err));
	else
		printf("verdict: no answer from %s on TCP port %u within %.0f s: %s\n"
		       "remedy: check that the host runs (ping), and that no firewall drops this "
		       "port\n",
		       host, port, CONNECT, strerror(-err));
	return APP_FAIL;
}

static int broken(const char *name, int err)
{
	if (err == -EPROTO)
		printf("verdict: the program at %s is not weft-info --check, or of a version that "
		       "is not understood\nremedy: run weft-info --check -l of the same version "
		       "there\n",
		       name);
	else
		printf("verdict: the exchange with %s over TCP ended: %s\n"
		       "remedy: run it again; a firewall may drop long packets (compare the MTU "
		       "of both ends)\n",
		       name, strerror(-err));
	return APP_FAIL;
}

static int unable(int err)
{
	printf("verdict: this host cannot send probes: %s\n"
	       "remedy: check its limits (ulimit -a) and interfaces (ip -br addr), and run it "
	       "again\n",
	       strerror(-err));
	return APP_FAIL;
}

/* @param received  as in exchange_facts(). @param[out] err  0: the exchange was complete */
static int check(int fd, const char *name, char *received, double start, int *err)
{
	struct check_end *end = calloc(2, sizeof(*end));
	struct sockets probe = {.fd = {-1, -1, -1, -1, -1, -1, -1, -1}};
	int ret;

	*err = end ? check_facts_read(&end[0].facts) : -ENOMEM;
	if (*err == 0)
		*err = probe_open(&probe, &end[0].facts);
	if (*err < 0) {
		ret = unable(*err);
	} else {
		*err = run(fd, &probe, received, start, &end[0], &end[1]);
		ret = *err == 0 ? print_result(&end[0], &end[1]) : broken(name, *err);
	}
	probe_close(&probe);
	free(end);
	return ret;
}

/* There is no greeting: the peer's first text shows whether its program is weft-info --check. */
static int greet(struct weft_tcp_connect *c, int fd, uint64_t end)
{
	(void)c;
	(void)fd;
	(void)end;
	return 0;
}

static int client(const char *host, uint16_t port)
{
	struct weft_tcp_connect c = {
		.host = host,
		.port = port,
		.remedy = "",
		.timeout = (uint64_t)(CONNECT * WEFT_TCP_SECOND),
		.end = UINT64_MAX,
		.greet = greet,
	};
	double start = sys_seconds();
	int fd = weft_tcp_connect(&c), err, ret;

	if (fd == -ENOENT || fd == -EAGAIN) {
		cli_error("--check: %s", c.why);
		return APP_USAGE;
	}
	if (fd < 0)
		return not_connected(host, port, fd);
	ret = check(fd, host, NULL, start, &err);
	close(fd);
	return ret;
}

/* ---- server --------------------------------------------------------------------------------- */

static int judge(void *text, const void *bytes, size_t length, struct weft_tcp_answer *answer)
{
	bool complete = is_complete(bytes, length);

	*answer = (struct weft_tcp_answer){0};
	if (memchr(bytes, '\0', length) || (!complete && length == CHECK_TEXT - 1)) {
		snprintf(answer->why, sizeof(answer->why), "it is not weft-info --check");
		return 0;
	}
	if (!complete)
		return -EAGAIN;
	memcpy(text, bytes, length);
	((char *)text)[length] = '\0';
	answer->accepted = true;
	return 0;
}

static void print_refused(void *arg, const char *client, const char *why, bool last)
{
	(void)arg;
	printf("verdict: no check with %s: %s\n"
	       "remedy: run weft-info --check of the same version there\n",
	       client, why);
	if (last)
		printf("further clients that are refused are not printed\n");
	fflush(stdout);
}

static void address_of_peer(int fd, char name[NI_MAXHOST])
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);

	if (getpeername(fd, (struct sockaddr *)&from, &len) != 0) {
		snprintf(name, NI_MAXHOST, "?");
		return;
	}
	weft_tcp_unmap(&from);
	if (getnameinfo((struct sockaddr *)&from, len, name, NI_MAXHOST, NULL, 0, NI_NUMERICHOST))
		snprintf(name, NI_MAXHOST, "?");
}

static int serve_client(struct weft_tcp_server *s, char text[CHECK_TEXT], int *err)
{
	char name[NI_MAXHOST];
	int fd, ret;

	while ((fd = weft_tcp_server_take(s)) < 0)
		weft_tcp_server_run(s, -1, -1);
	address_of_peer(fd, name);
	ret = check(fd, name, text, sys_seconds(), err);
	fflush(stdout);
	close(fd);
	return ret;
}

/* Connections without a complete check, as of a port scan, do not end the server. */
static int server(uint16_t port)
{
	char text[CHECK_TEXT];
	const struct weft_tcp_server_params params = {
		.port = port,
		.backlog = 16,
		.keeps = true,
		.hello = CHECK_TEXT - 1,
		.judge = judge,
		.refused = print_refused,
		.arg = text,
	};
	struct weft_tcp_server *s;
	int err = weft_tcp_server_open(&params, &s), ret;

	if (err < 0) {
		cli_error("--check -l: TCP port %u: %s; -p chooses another one", port,
			  strerror(-err));
		return APP_FAIL;
	}
	fprintf(stderr, "%s: waiting for weft-info --check HOST:%u\n", cli_program, port);
	do {
		ret = serve_client(s, text, &err);
	} while (err < 0);
	weft_tcp_server_close(s);
	return ret;
}

int info_check(const char *host, uint16_t port)
{
	return host ? client(host, port) : server(port);
}
