/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/claim_dev.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MEMIF_SOCKET "/run/memif.sock" /* the PMD's own */

unsigned int weft_claim_receive_queues(unsigned int if_index)
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
	return n == 0 ? 1 : n < WEFT_CLAIM_QUEUES ? n : WEFT_CLAIM_QUEUES;
}

void weft_claim_queue_name(char name[WEFT_CLAIM_NAME], unsigned int if_index, unsigned int queue)
{
	snprintf(name, WEFT_CLAIM_NAME, "weft/netdev/%u/%u", if_index, queue);
}

void weft_claim_bus_name(char name[WEFT_CLAIM_NAME], const char *bus, const char *device)
{
	snprintf(name, WEFT_CLAIM_NAME, "weft/%.16s/%.64s", bus, device);
}

bool weft_device_arg(const char *args, const char *key, char *buf, size_t size)
{
	size_t len = strlen(key), n;
	const char *at = args;

	while (at && *at) {
		if (strncmp(at, key, len) == 0 && at[len] == '=') {
			n = strcspn(at + len + 1, ",");
			snprintf(buf, size, "%.*s", (int)n, at + len + 1);
			return true;
		}
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	return false;
}

static unsigned int arg_number(const char *args, const char *key, unsigned int other)
{
	char text[16];

	return weft_device_arg(args, key, text, sizeof(text))
		       ? (unsigned int)strtoul(text, NULL, 10)
		       : other;
}

static bool begins_with(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

/* ---- all names of a device ------------------------------------------------------------------ */

struct claiming {
	int (*claim)(const char *name, struct weft_claim_owner *owner);
	struct weft_device_claim *c;
};

static int hold_name(const struct claiming *g, const char *name)
{
	struct weft_device_claim *c = g->c;
	int fd = g->claim(name, &c->owner);

	if (fd < 0)
		return fd;
	c->fds[c->num++] = fd;
	return 0;
}

static int hold_queues(const struct claiming *g, const char *ifname, const char *args, bool xdp)
{
	unsigned int if_index = if_nametoindex(ifname), first = 0, n, q;
	struct weft_device_claim *c = g->c;
	char name[WEFT_CLAIM_NAME];
	int rc = 0;

	snprintf(c->what, sizeof(c->what), "kernel interface %.32s", ifname);
	if (if_index == 0)
		return -ENODEV;
	n = weft_claim_receive_queues(if_index);
	if (xdp) {
		first = arg_number(args, "start_queue", 0);
		n = arg_number(args, "queue_count", 1);
		n = n < WEFT_CLAIM_QUEUES ? n : WEFT_CLAIM_QUEUES;
	}
	c->fds = calloc(n ? n : 1, sizeof(*c->fds));
	if (!c->fds)
		return -ENOMEM;
	for (q = first; q < first + n && rc == 0; q++) {
		weft_claim_queue_name(name, if_index, q);
		snprintf(c->what, sizeof(c->what), "queue %u of kernel interface %.32s", q, ifname);
		rc = hold_name(g, name);
	}
	return rc;
}

static int hold_memif(const struct claiming *g, const char *args)
{
	struct weft_device_claim *c = g->c;
	char path[108] = MEMIF_SOCKET, word[16] = "", name[WEFT_CLAIM_NAME];
	bool server, abstract;
	unsigned int id;

	weft_device_arg(args, "socket", path, sizeof(path));
	server = weft_device_arg(args, "role", word, sizeof(word)) &&
		 (!strcmp(word, "server") || !strcmp(word, "master"));
	abstract = !weft_device_arg(args, "socket-abstract", word, sizeof(word)) ||
		   strcmp(word, "no") != 0;
	id = arg_number(args, "id", 0);
	weft_claim_memif_name(name, path, abstract, server, id);
	snprintf(c->what, sizeof(c->what), "the %s's end of id=%u on memif socket %.80s",
		 server ? "server" : "client", id, path);
	c->fds = calloc(1, sizeof(*c->fds));
	return c->fds ? hold_name(g, name) : -ENOMEM;
}

static int hold_device(const struct claiming *g, const struct weft_device *d)
{
	char text[108];

	if (strcmp(d->bus, "vdev") != 0) {
		snprintf(g->c->what, sizeof(g->c->what), "the device");
		g->c->fds = calloc(1, sizeof(*g->c->fds));
		if (!g->c->fds)
			return -ENOMEM;
		weft_claim_bus_name(text, d->bus, d->name);
		return hold_name(g, text);
	}
	if (begins_with(d->name, "net_memif"))
		return hold_memif(g, d->args);
	if ((begins_with(d->name, "net_af_packet") || begins_with(d->name, "net_af_xdp")) &&
	    weft_device_arg(d->args, "iface", text, sizeof(text)))
		return hold_queues(g, text, d->args, begins_with(d->name, "net_af_xdp"));
	return 0;
}

int weft_device_claim(const struct weft_device *d,
		      int (*claim)(const char *name, struct weft_claim_owner *owner),
		      struct weft_device_claim *c)
{
	const struct claiming g = {.claim = claim, .c = c};
	int rc;

	*c = (struct weft_device_claim){.owner = {.uid = WEFT_CLAIM_NO_UID}};
	rc = hold_device(&g, d);
	if (rc)
		weft_device_unclaim(c);
	return rc;
}

void weft_device_unclaim(struct weft_device_claim *c)
{
	while (c->num)
		close(c->fds[--c->num]);
	free(c->fds);
	c->fds = NULL;
}
