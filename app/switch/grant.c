/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The well-known socket. A process that connects gets a port at once, or a reason; the switch reads
 * nothing from it. The port belongs to the process until both this connection and the memif
 * connection, which is made with the secret, have ended. So a restarted switch with the key of its
 * predecessor accepts the predecessor's clients. It grants no port before they have had the time to
 * reconnect.
 *
 * A grant without a memif connection for IDLE_NS holds its port only until another process needs
 * it.
 */

#include "switch/switch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cli.h"

#define IDLE_NS 5000000000ull
#define ACCEPTS 64 /* at a time */

/* ---- ports and users ------------------------------------------------------------------------ */

void sw_secret(const struct sw *s, unsigned int port, uid_t uid, char secret[24])
{
	const uint64_t what[2] = {port, uid};
	struct weft_siphash_key other = {s->key.k1, ~s->key.k0};

	memset(secret, 0, 24);
	snprintf(secret, 24, "%016" PRIx64 "%07" PRIx64, weft_siphash(&s->key, what, sizeof(what)),
		 weft_siphash(&other, what, sizeof(what)) >> 36);
}

bool sw_port_is_taken(const struct sw_port *p, uint64_t now)
{
	return p->conn.fd >= 0 || (p->grant >= 0 && now - p->idle_since < IDLE_NS);
}

void sw_port_check(struct sw *s, unsigned int port)
{
	struct sw_port *p = &s->port[port];

	if (p->grant >= 0 || p->conn.fd >= 0)
		return;
	p->uid = p->user = (uid_t)-1;
	p->pid = 0;
}

/*
 * Ports beyond the limit of one user (-u) are for users without a port. The switch's own user has
 * no limit.
 */
const char *sw_user_limit(const struct sw *s, uid_t user, uint64_t now)
{
	unsigned int i, own = 0, taken = 0;

	if (user == geteuid())
		return NULL;
	if (sw_user_is_banned(s, user, now))
		return "an eventfd of this user has blocked; wait 10 s";
	for (i = 0; i < s->plan.ports; i++) {
		if (!sw_port_is_taken(&s->port[i], now))
			continue;
		taken++;
		own += s->port[i].user == user;
	}
	if (own >= s->per_user)
		return "it has the most ports that one user may have (-u)";
	if (own > 0 && taken >= s->per_user)
		return "it has a port, and the remaining ports are for users without one (-u)";
	return NULL;
}

/* Prefer a port without a grant: the process of an idle grant may still connect. */
static int free_port(const struct sw *s, uint64_t now)
{
	unsigned int i;
	int found = -1;

	for (i = 0; i < s->plan.ports; i++) {
		if (sw_port_is_taken(&s->port[i], now))
			continue;
		if (s->port[i].grant < 0)
			return (int)i;
		if (found < 0)
			found = (int)i;
	}
	return found;
}

/* @return a free port; -1 with a reason in @p text */
static int choose(struct sw *s, uid_t user, uint64_t now, char *text, size_t len)
{
	const char *limit = sw_user_limit(s, user, now);
	int found = free_port(s, now);

	if (!sw_user_may_request(s, user, now))
		limit = "it sends too many requests; wait some seconds";
	if (found < 0)
		snprintf(text, len,
			 "weft-switch has %u ports, and all are in use: start it with more "
			 "(-n)",
			 s->plan.ports);
	else if (limit)
		snprintf(text, len, "weft-switch gives user %u no port: %s", (unsigned int)user,
			 limit);
	return limit ? -1 : found;
}

static void fill(const struct sw *s, unsigned int port, uid_t uid, struct weft_switch_grant *g)
{
	g->flags = (s->plan.single ? WEFT_SWITCH_F_SINGLE : 0u) |
		   (s->plan.uplink ? WEFT_SWITCH_F_UPLINK : 0u);
	g->port = (uint16_t)port;
	g->ports = s->plan.ports;
	g->udp_port = s->plan.udp_port;
	g->mtu = s->mtu;
	g->ip = s->plan.prefix ? s->plan.ip[port] : 0;
	g->prefix = s->plan.prefix;
	g->gw = s->plan.gw;
	g->log2_ring = s->log2_ring;
	g->bsize = s->bsize;
	sw_plan_mac(&s->plan, port, g->mac);
	snprintf(g->socket, sizeof(g->socket), "%s.memif", s->path);
	sw_secret(s, port, uid, g->secret);
}

static void grant(struct sw *s, int fd, uint64_t now)
{
	struct weft_switch_grant g = {
		.magic = WEFT_SWITCH_MAGIC,
		.version = WEFT_SWITCH_VERSION,
		.size = sizeof(g),
	};
	struct sw_conn from;
	int port;

	if (sw_user_of(fd, &from)) {
		sw_close(&fd);
		return;
	}
	port = choose(s, from.user, now, g.text, sizeof(g.text));
	g.error = port < 0 ? -EBUSY : 0;
	if (port >= 0)
		fill(s, (unsigned int)port, from.uid, &g);
	if (send(fd, &g, sizeof(g), MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof(g) ||
	    port < 0) {
		sw_close(&fd);
		return;
	}
	if (s->port[port].grant >= 0)
		sw_grant_end(s, (unsigned int)port);
	if (sw_watch(s, fd, sw_tag(SW_TAG_GRANT, (unsigned int)port)) < 0) {
		sw_close(&fd);
		return;
	}
	s->port[port].grant = fd;
	s->port[port].uid = from.uid;
	s->port[port].user = from.user;
	s->port[port].pid = from.pid;
	s->port[port].idle_since = now;
}

void sw_grant_accept(struct sw *s, uint64_t now)
{
	unsigned int i;
	int fd;

	for (i = 0; i < ACCEPTS; i++) {
		fd = accept4(s->grant_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			s->no_files = errno != EAGAIN;
			return;
		}
		grant(s, fd, now);
	}
}

void sw_grant_end(struct sw *s, unsigned int port)
{
	sw_hang_up(s, &s->port[port].grant);
	sw_port_check(s, port);
}
