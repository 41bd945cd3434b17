/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One process for each port: two that receive the same frames, or write the same registers, end
 * each other's connections. What a port stands on is claimed by name (port/claim.h) while it is
 * open:
 *
 *   weft/netdev/INDEX/QUEUE  a kernel interface's receive queue. net_af_xdp has those it was given;
 *                            net_af_packet sees all, so it takes all that there are
 *   weft/pci/ADDRESS         a device, with its bus and name as DPDK has them
 *   weft/memif/END/ID/HASH   one end of a connection; the hash is of the socket
 *
 * Where the claim cannot be had (nothing of the kind is allowed here, or somebody has the name whom
 * root does not heed), or others may receive what is for us (an interface with more queues than
 * ours), the port works and says WEFT_FRAME_PORT_SHARED: see answers_for() in engine/build.c.
 */

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_dev.h>

#include "port/claim.h"
#include "port/priv.h"

#define QUEUES_MAX 256u

/* How many queues bring the interface's frames? */
static unsigned int receive_queues(unsigned int if_index)
{
	struct ethtool_channels ch = {.cmd = ETHTOOL_GCHANNELS};
	struct ifreq ifr;
	unsigned int n = 0;
	int fd;

	memset(&ifr, 0, sizeof(ifr));
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 1;
	ifr.ifr_data = (char *)&ch;
	if (if_indextoname(if_index, ifr.ifr_name) && !ioctl(fd, SIOCETHTOOL, &ifr))
		n = ch.rx_count + ch.combined_count;
	close(fd);
	return RTE_MIN(RTE_MAX(n, 1u), QUEUES_MAX);
}

static int in_use(const struct weft_port_dev *d, const struct weft_claim_owner *owner,
		  const char *what, char *why, size_t why_len)
{
	char who[96];

	weft_claim_owner_text(owner, who, sizeof(who));
	return weft_port_fail(-EADDRINUSE, why, why_len,
			      "port %u (%s) is in use by %s: %s belongs to one process at a time",
			      d->port_id, d->name, who, what);
}

static void note_unheeded(struct weft_port_dev *d, const struct weft_claim_owner *owner,
			  const char *what)
{
	const char *reason = "is not root's";
	char who[96], user[32];

	weft_claim_owner_text(owner, who, sizeof(who));
	snprintf(user, sizeof(user), "user %u", owner->uid);
	if (owner->uid == WEFT_CLAIM_NO_UID) {
		snprintf(user, sizeof(user), "an unknown user");
		reason = "is not known to be root's";
	} else if (owner->uid == 0) {
		reason = "does not listen there";
	}
	snprintf(d->claim_note, sizeof(d->claim_note),
		 "%s of %s claims %s, and is not heeded because it %s: end it if it is not yours",
		 who, user, what, reason);
}

/* @return 0, also where nothing can be claimed; -EADDRINUSE with @p why */
static int claim_name(struct weft_port_dev *d, const char *name, const char *what, char *why,
		      size_t why_len)
{
	struct weft_claim_owner owner;
	int fd = weft_claim(name, &owner);

	if (fd >= 0) {
		d->claims[d->num_claims++] = fd;
		return 0;
	}
	if (fd == -EADDRINUSE)
		return in_use(d, &owner, what, why, why_len);
	d->shared = true;
	d->warning = d->claim_note;
	if (fd == -EPERM)
		note_unheeded(d, &owner, what);
	else
		snprintf(d->claim_note, sizeof(d->claim_note),
			 "%s can't be claimed (%s): see that no other process uses it", what,
			 strerror(-fd));
	return 0;
}

static int claim_queues(struct weft_port_dev *d, char *why, size_t why_len)
{
	const struct weft_port_limits *l = &d->limits;
	unsigned int all = receive_queues(l->if_index), q, first = 0, n = all;
	char ifname[IF_NAMESIZE] = "?", name[WEFT_CLAIM_NAME], what[64];
	int rc = 0;

	if (l->xdp_queues) {
		first = l->xdp_first;
		n = RTE_MIN(l->xdp_queues, QUEUES_MAX);
		d->shared = n < all;
	}
	d->claims = calloc(n, sizeof(*d->claims));
	if (!d->claims)
		return weft_port_fail(-ENOMEM, why, why_len, "no memory for port %u", d->port_id);
	if_indextoname(l->if_index, ifname);
	for (q = first; q < first + n && !rc && (q == first || d->num_claims); q++) {
		snprintf(name, sizeof(name), "weft/netdev/%u/%u", l->if_index, q);
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
		snprintf(name, sizeof(name), "weft/%.16s/%.64s", rte_bus_name(bus), d->name);
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
		close(d->claims[--d->num_claims]);
	free(d->claims);
	d->claims = NULL;
}
