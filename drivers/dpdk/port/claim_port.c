/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One process for each port: two processes that receive the same frames, or write the same
 * registers, end each other's connections. The devices under a port are claimed (port/claim_dev.h)
 * while it is open, or from the time when this process has chosen it (port/pick.h).
 *
 * The claim fails if claims are not permitted here, or if an untrusted process has the name. Other
 * processes may receive this port's frames if its interface has more queues than the port. In both
 * cases the port works and has the flag WEFT_FRAME_PORT_SHARED: see answers_for() in
 * engine/build.c.
 */

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_dev.h>

#include "base/blocking.h"
#include "port/claim_dev.h"
#include "port/priv.h"

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

/* Is it a claim of an open port? */
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

/* This process chose the port when the EAL started. @return another descriptor of the claim */
static int take_own(const char *name, const struct weft_claim_owner *owner)
{
	int fd = owner->pid == getpid() ? weft_claim_find(name) : -1;

	return fd < 0 || is_open_with(fd) ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* @return 0, also if nothing can be claimed; -EADDRINUSE with @p why */
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
