/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/ports.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ether.h>

#include "base/thread.h"
#include "lane.h"
#include "port/claim.h"
#include "port/eal.h"
#include "port/kernel.h"
#include "port/nic_state.h"
#include "port/port.h"

/* ---- texts ---------------------------------------------------------------------------------- */

int weft_port_fail(int rc, char *why, size_t why_len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (why_len)
		vsnprintf(why, why_len, fmt, ap);
	va_end(ap);
	return rc;
}

void weft_port_link_text(struct weft_frame_port *fp, char *buf, size_t size)
{
	struct weft_port_dev *d = weft_port_of(fp)->dev;
	char cause[128];

	snprintf(buf, size, "%s", "");
	if (fp->ops->link_up(fp))
		return;
	if (d->limits.kernel_link) {
		weft_kernel_link_why(d->limits.if_index, cause, sizeof(cause));
		snprintf(buf, size, "port %u (%s) has no link: %s", d->port_id, d->name, cause);
	} else if (d->limits.memif && !d->memif.name.server)
		snprintf(buf, size,
			 "port %u (%s) has no link: its memif server is not there; start the other "
			 "side, and see that socket=, id= and secret= are the same",
			 d->port_id, d->name);
	else if (d->limits.memif)
		snprintf(buf, size,
			 "port %u (%s) has no link: no memif client has connected; start the other "
			 "side, and see that socket=, id= and secret= are the same",
			 d->port_id, d->name);
	else
		snprintf(buf, size, "port %u (%s) has no link: check its cable and the switch",
			 d->port_id, d->name);
}

/* ---- the list ------------------------------------------------------------------------------- */

pthread_mutex_t weft_port_lock = PTHREAD_MUTEX_INITIALIZER;
struct weft_port_dev *weft_port_devs[RTE_MAX_ETHPORTS];

/* Another part of the process may own the port, as for a bond. */
static bool is_ours_to_use(uint16_t id)
{
	struct rte_eth_dev_owner owner;

	if (weft_port_devs[id])
		return true;
	return rte_eth_dev_is_valid_port(id) && rte_eth_dev_owner_get(id, &owner) == 0 &&
	       owner.id == RTE_ETH_DEV_NO_OWNER;
}

void weft_port_name(uint16_t id, char name[RTE_ETH_NAME_MAX_LEN])
{
	if (rte_eth_dev_get_name_by_port(id, name))
		snprintf(name, RTE_ETH_NAME_MAX_LEN, "?");
}

static bool is_picked(const char *device)
{
	char name[WEFT_CLAIM_NAME];

	weft_claim_bus_name(name, "pci", device);
	return weft_claim_find(name) >= 0;
}

/* A port whose NIC the kernel uses, too, is used only if it is named. */
static const char *leave_to_kernel(uint16_t id, char *why, size_t why_len)
{
	struct rte_eth_dev_info info;
	char rdma[48];

	if (rte_eth_dev_info_get(id, &info) || !info.device ||
	    !weft_port_rdma(WEFT_PORT_RDMA_SYSFS, rte_dev_name(info.device), rdma, sizeof(rdma)) ||
	    is_picked(rte_dev_name(info.device)))
		return NULL;
	snprintf(why, why_len,
		 "its NIC has the RDMA device %s: use roce:%s; or name dpdk:%u, which takes "
		 "the NIC's traffic away from the kernel",
		 rdma, rdma, id);
	return why;
}

static int list_missing(weft_lane_resource_cb add, void *arg, int n)
{
	struct rte_devargs *da;
	char why[160];
	int rc;

	RTE_EAL_DEVARGS_FOREACH("vdev", da)
	{
		if (!weft_vdev_is_missing(da, why, sizeof(why)))
			continue;
		rc = add(arg, &(struct weft_lane_resource){.name = da->name, .why = why});
		if (rc < 0)
			return rc;
		n++;
	}
	return n;
}

int weft_port_ethdev_list(weft_lane_resource_cb add, void *arg)
{
	char name[8], why[160];
	uint16_t id;
	int n = 0, rc = 0;

	/* Without the lock, a port that just opens or closes would look like another part's. */
	pthread_mutex_lock(&weft_port_lock);
	for (id = 0; rc == 0 && id < RTE_MAX_ETHPORTS; id++) {
		if (!is_ours_to_use(id))
			continue;
		snprintf(name, sizeof(name), "%u", id);
		rc = add(arg, &(struct weft_lane_resource){
				      .name = name, .why = leave_to_kernel(id, why, sizeof(why))});
		n++;
	}
	pthread_mutex_unlock(&weft_port_lock);
	return rc < 0 ? rc : list_missing(add, arg, n);
}

static bool first_missing(char *why, size_t why_len)
{
	const struct rte_devargs *da;

	RTE_EAL_DEVARGS_FOREACH("vdev", da)
	{
		if (weft_vdev_is_missing(da, why, why_len))
			return true;
	}
	return false;
}

static int no_such_port(const char *resource, char *why, size_t why_len)
{
	char name[RTE_ETH_NAME_MAX_LEN], all[256] = "", address[16], problem[400];
	struct weft_nic_env env;
	size_t used = 0;
	uint16_t id;

	weft_nic_env_here(&env);
	if (weft_nic_address(resource, address) &&
	    weft_nic_problem(&env, address, problem, sizeof(problem)))
		return weft_port_fail(-ENODEV, why, why_len, "there is no DPDK port '%s': %s",
				      resource, problem);
	for (id = 0; id < RTE_MAX_ETHPORTS && used < sizeof(all) - 1; id++) {
		if (!is_ours_to_use(id))
			continue;
		weft_port_name(id, name);
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%u (%s)",
					 used ? ", " : "", id, name);
	}
	if (!used && first_missing(problem, sizeof(problem)))
		return weft_port_fail(-ENODEV, why, why_len, "there is no DPDK port '%s': %s",
				      resource, problem);
	if (!used)
		return weft_port_fail(
			-ENODEV, why, why_len,
			"there is no DPDK port '%s', nor any other: give one in the EAL "
			"arguments (--vdev=net_memif0,role=server) or bind a NIC with weft-bind",
			resource);
	return weft_port_fail(-ENODEV, why, why_len,
			      "there is no DPDK port '%s' for a lane; there are %s", resource, all);
}

int weft_port_find(const char *resource, uint16_t *id, char *why, size_t why_len)
{
	char *end;
	unsigned long v = strtoul(resource, &end, 10);
	int rc = 0;

	if (*resource >= '0' && *resource <= '9' && !*end && v < RTE_MAX_ETHPORTS)
		*id = (uint16_t)v;
	else
		rc = rte_eth_dev_get_port_by_name(resource, id);
	if (rc || !is_ours_to_use(*id))
		return no_such_port(resource, why, why_len);
	return 0;
}

/* ---- one process for each port -------------------------------------------------------------- */

/*
 * Two processes that receive the same frames, or write the same registers, end each other's
 * connections. So the devices under a port are claimed (port/claim.h) while it is open, or from the
 * time when this process has chosen it (port/pick.h).
 *
 * The claim fails if claims are not permitted here, or if the process that has the name is
 * untrusted or does not listen. Other processes may receive this port's frames if its interface has
 * more queues. In both cases the port works, with WEFT_FRAME_PORT_SHARED: answers_for() in
 * engine/build.c.
 */

static int in_use(const struct weft_port_dev *d, const struct weft_claim_owner *owner,
		  const char *what, char *why, size_t why_len)
{
	char holder[96];

	weft_claim_owner_text(owner, holder, sizeof(holder));
	return weft_port_fail(-EADDRINUSE, why, why_len,
			      "port %u (%s) is in use by %s: %s belongs to one process at a time",
			      d->port_id, d->name, holder, what);
}

static void note_untrusted(struct weft_port_dev *d, const struct weft_claim_owner *owner,
			   const char *what)
{
	const char *reason = "is neither root's nor this user's";
	char holder[96], user[32];

	weft_claim_owner_text(owner, holder, sizeof(holder));
	snprintf(user, sizeof(user), "user %u", owner->uid);
	if (owner->uid == WEFT_CLAIM_NO_UID) {
		snprintf(user, sizeof(user), "an unknown user");
		reason = "is not known to be root's or this user's";
	} else if (owner->uid == 0 || owner->uid == geteuid()) {
		reason = "does not listen there";
	}
	snprintf(d->claim_note, sizeof(d->claim_note),
		 "%s of %s claims %s; the claim is ignored because it %s: end the process if it "
		 "is not yours",
		 holder, user, what, reason);
}

static bool is_same(int a, int b)
{
	struct stat one, other;

	return !fstat(a, &one) && !fstat(b, &other) && one.st_ino == other.st_ino;
}

static bool is_open_with(int claim)
{
	const struct weft_port_dev *d;
	unsigned int id, i;

	for (id = 0; id < RTE_MAX_ETHPORTS; id++) {
		d = weft_port_devs[id];
		for (i = 0; d && i < d->num_claims; i++)
			if (is_same(d->claims[i], claim))
				return true;
	}
	return false;
}

/* @return a second descriptor of this process's claim; -1: none, or a port is open with it */
static int take_own(const char *name, const struct weft_claim_owner *owner)
{
	int fd = owner->pid == getpid() ? weft_claim_find(name) : -1;

	return fd < 0 || is_open_with(fd) ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* @return 0, also if the name cannot be claimed; -EADDRINUSE with @p why */
static int claim_name(struct weft_port_dev *d, const char *name, const char *what, char *why,
		      size_t why_len)
{
	struct weft_claim_owner owner;
	int fd = weft_claim(name, &owner), own = -1;

	if (fd == -EADDRINUSE)
		own = take_own(name, &owner);
	if (fd >= 0 || own >= 0) {
		d->claims[d->num_claims++] = fd >= 0 ? fd : own;
		return 0;
	}
	if (fd == -EADDRINUSE)
		return in_use(d, &owner, what, why, why_len);
	d->shared = true;
	d->warning = d->claim_note;
	if (fd == -EPERM)
		note_untrusted(d, &owner, what);
	else
		snprintf(d->claim_note, sizeof(d->claim_note),
			 "%s can't be claimed (%s): see that no other process uses it", what,
			 strerror(-fd));
	return 0;
}

static int claim_queues(struct weft_port_dev *d, char *why, size_t why_len)
{
	const struct weft_port_limits *l = &d->limits;
	unsigned int all = weft_claim_receive_queues(l->if_index), q, first = 0, n = all;
	char ifname[IF_NAMESIZE] = "?", name[WEFT_CLAIM_NAME], what[64];
	int rc = 0;

	if (l->xdp_queues) {
		first = l->xdp_first;
		n = RTE_MIN(l->xdp_queues, WEFT_CLAIM_QUEUES);
		d->shared = n < all;
	}
	d->claims = calloc(n, sizeof(*d->claims));
	if (!d->claims)
		return weft_port_fail(-ENOMEM, why, why_len, "no memory for port %u", d->port_id);
	if_indextoname(l->if_index, ifname);
	for (q = first; q < first + n && !rc && (q == first || d->num_claims); q++) {
		weft_claim_queue_name(name, l->if_index, q);
		snprintf(what, sizeof(what), "queue %u of kernel interface %s", q, ifname);
		rc = claim_name(d, name, what, why, why_len);
	}
	return rc;
}

static int claim_one(struct weft_port_dev *d, char *why, size_t why_len)
{
	const struct weft_memif *mi = &d->memif;
	char name[WEFT_CLAIM_NAME], what[160] = "the device";
	const struct rte_bus *bus;

	if (d->limits.memif) {
		weft_claim_memif_name(name, mi->name.path, mi->name.abstract, mi->name.server,
				      mi->id);
		snprintf(what, sizeof(what), "the %s's end of id=%u on memif socket %.80s",
			 mi->name.server ? "server" : "client", mi->id, mi->name.path);
	} else {
		bus = d->info.device ? rte_dev_bus(d->info.device) : NULL;
		if (!bus || !strcmp(rte_bus_name(bus), "vdev"))
			return 0;
		weft_claim_bus_name(name, rte_bus_name(bus), d->name);
	}
	d->claims = calloc(1, sizeof(*d->claims));
	if (!d->claims)
		return weft_port_fail(-ENOMEM, why, why_len, "no memory for port %u", d->port_id);
	return claim_name(d, name, what, why, why_len);
}

int weft_port_claim(struct weft_port_dev *d, char *why, size_t why_len)
{
	int rc = d->limits.kernel_link ? claim_queues(d, why, why_len) : claim_one(d, why, why_len);

	if (rc)
		weft_port_unclaim(d);
	return rc;
}

void weft_port_unclaim(struct weft_port_dev *d)
{
	while (d->num_claims)
		weft_socket_close_public(d->claims[--d->num_claims]);
	free(d->claims);
	d->claims = NULL;
}

/* ------------------------------------------------------------------ a port of weft-switch */

/* Timeout in s: a switch that was just started waits for the clients of its predecessor. */
#define TIMEOUT_S 10

/* One port for a process, which all its contexts use. Only the end of the process returns it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_switch_place place;
static bool joined;
/* The port belongs to this process while this descriptor is open. */
static int grant_fd = -1;

const char *weft_switch_socket(const char *conf)
{
	if (conf && conf[0] == '/')
		return conf;
	if (conf && strcmp(conf, "auto") != 0)
		return NULL;
	return access(WEFT_SWITCH_SOCKET, F_OK) == 0 ? WEFT_SWITCH_SOCKET : NULL;
}

/* ---- the request ---------------------------------------------------------------------------- */

static int no_answer(const char *path, int err, char *why, size_t why_len)
{
	const char *what =
		err == EACCES ? "this user may not request a port: see its option -M"
		: err == ECONNREFUSED || err == ENOENT
			? "no weft-switch listens there; start it, or set WEFT_SWITCH=off"
			: strerror(err);

	return weft_port_fail(-err, why, why_len, "weft-switch at %s: %s", path, what);
}

static int open_socket(const char *path, char *why, size_t why_len)
{
	struct timeval timeout = {.tv_sec = TIMEOUT_S};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(un.sun_path))
		return weft_port_fail(-EINVAL, why, why_len,
				      "WEFT_SWITCH has a path of more than %zu bytes",
				      sizeof(un.sun_path) - 1);
	memcpy(un.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return no_answer(path, errno, why, why_len);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0)
		return fd;
	err = errno;
	close(fd);
	return no_answer(path, err, why, why_len);
}

/* @return the uid of all users without a number in this user namespace; -1: none, or unknown */
static int64_t overflow_uid(void)
{
	unsigned int inside = 1, outside = 1, count = 0, uid = 0;
	FILE *map = fopen("/proc/self/uid_map", "r"), *file;
	bool good;

	if (!map)
		return -1;
	good = fscanf(map, "%u %u %u", &inside, &outside, &count) == 3;
	fclose(map);
	if (!good || (inside == 0 && outside == 0 && count == UINT32_MAX))
		return -1;
	file = fopen("/proc/sys/kernel/overflowuid", "r");
	if (!file)
		return -1;
	good = fscanf(file, "%u", &uid) == 1;
	fclose(file);
	return good ? (int64_t)uid : -1;
}

/*
 * Root may have no number in a container. Then the socket must be in a folder to which only a user
 * without a number can write: the creator of the container has put the socket there.
 */
static bool is_from_outside(const char *path, uid_t uid)
{
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct stat st;
	char *end;

	if ((int64_t)uid != overflow_uid())
		return false;
	snprintf(folder, sizeof(folder), "%s", path);
	end = strrchr(folder, '/');
	if (!end)
		return false;
	end[end == folder] = '\0';
	return stat(folder, &st) == 0 && st.st_uid == uid && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* The listener gets the frames: it must be of root, of this user, or from outside the container. */
static bool is_trusted(const char *path, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	       (cred.uid == 0 || cred.uid == geteuid() || is_from_outside(path, cred.uid));
}

static bool is_text(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static bool makes_sense(const struct weft_switch_grant *g)
{
	return g->ports > 0 && g->ports <= WEFT_SWITCH_PORTS && g->port < g->ports &&
	       g->prefix <= 32 && g->log2_ring <= 14 && g->mtu >= 1280 &&
	       g->bsize >= (uint32_t)g->mtu + RTE_ETHER_HDR_LEN && g->bsize <= UINT16_MAX &&
	       is_text(g->socket, sizeof(g->socket)) && is_text(g->secret, sizeof(g->secret)) &&
	       !strpbrk(g->socket, ",=") && g->socket[0] == '/';
}

static int read_grant(const char *path, int fd, struct weft_switch_grant *g, char *why,
		      size_t why_len)
{
	ssize_t n;

	do
		n = recv(fd, g, sizeof(*g), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return weft_port_fail(-ETIMEDOUT, why, why_len,
				      "weft-switch at %s gives no answer in %d s", path, TIMEOUT_S);
	if (n < 0)
		return weft_port_fail(-errno, why, why_len,
				      "the answer of weft-switch at %s cannot be received: %s",
				      path, strerror(errno));
	if (n == 0)
		return weft_port_fail(-ECONNRESET, why, why_len,
				      "weft-switch at %s ended the connection without an answer: "
				      "its log has the reason",
				      path);
	if (n != (ssize_t)sizeof(*g) || g->magic != WEFT_SWITCH_MAGIC ||
	    g->version != WEFT_SWITCH_VERSION || !is_text(g->text, sizeof(g->text)))
		return weft_port_fail(-EPROTO, why, why_len,
				      "%s is not a weft-switch of this version", path);
	if (g->error)
		return weft_port_fail(g->error < 0 ? g->error : -EPROTO, why, why_len, "%s",
				      g->text);
	if (!makes_sense(g))
		return weft_port_fail(-EPROTO, why, why_len,
				      "weft-switch at %s: its answer is invalid", path);
	return 0;
}

/* ---- the port ------------------------------------------------------------------------------- */

static void take_grant(const struct weft_switch_grant *g)
{
	bool single = g->flags & WEFT_SWITCH_F_SINGLE;

	place = (struct weft_switch_place){
		.mtu = g->mtu,
		.ip = g->ip,
		.gw = g->gw,
		.prefix = g->prefix,
		.udp_port = single ? (uint16_t)(g->udp_port + g->port) : 0,
		.queue = single ? g->port : 0,
		.queues = single ? g->ports : 0,
		.uplink = g->flags & WEFT_SWITCH_F_UPLINK,
		.farewells = g->flags & WEFT_SWITCH_F_FAREWELLS,
		.id = g->port,
		.log2_ring = g->log2_ring,
		.bsize = g->bsize,
	};
	memcpy(place.mac, g->mac, sizeof(place.mac));
	memcpy(place.socket, g->socket, sizeof(place.socket));
	memcpy(place.secret, g->secret, sizeof(place.secret));
}

static int join_switch(const char *path, char *why, size_t why_len)
{
	struct weft_switch_grant g;
	int fd = open_socket(path, why, why_len), rc = 0;

	if (fd < 0)
		return fd;
	grant_fd = fd; /* from here on a child that is forked in the meantime closes it */
	if (!is_trusted(path, fd))
		rc = weft_port_fail(
			-EPERM, why, why_len,
			"the process that listens at %s is neither root nor this user (in a "
			"container: its folder must be root's)",
			path);
	if (!rc)
		rc = read_grant(path, fd, &g, why, why_len);
	if (!rc)
		take_grant(&g);
	if (rc) {
		grant_fd = -1;
		close(fd);
		return rc;
	}
	joined = true;
	return 0;
}

/* A child has no port of its own, and must not keep the port after the end of its parent. */
static void in_child(void)
{
	/* The thread that held the lock does not exist in the child. */
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	if (grant_fd >= 0)
		close(grant_fd);
	grant_fd = -1;
	joined = false;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

int weft_switch_join(const char *socket, char *why, size_t why_len)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int rc = 0;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	if (!joined)
		rc = join_switch(socket, why, why_len);
	pthread_mutex_unlock(&lock);
	return rc;
}

const struct weft_switch_place *weft_switch_place(void)
{
	bool ours;

	/* Called by threads that have not joined, too. Once joined, the place does not change. */
	pthread_mutex_lock(&lock);
	ours = joined;
	pthread_mutex_unlock(&lock);
	return ours ? &place : NULL;
}
