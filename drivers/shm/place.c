/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes share memory if they have the same system, user, network and user namespace, and
 * the same folder of sockets. The sockets would also reach other network namespaces. But a network
 * namespace counts as a separate host, which tests and containers connect by a network.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/user_folder.h"
#include "shm/shm.h"

/* Hashes instead of the numbers: addresses leave the host, and must not reveal the numbers. */
static const struct weft_siphash_key place_key = {0x7765667420736d31ull, 0x706c616365303031ull};

struct place {
	uint64_t host, folder_dev, folder_ino, net_dev, net_ino, user_dev, user_ino, uid;
};

static int find_place(struct place *p, char *why, size_t why_len)
{
	char path[WEFT_USER_FOLDER];
	struct stat folder, net, user;
	int rc = weft_user_folder_find(path, why, why_len);

	if (rc < 0)
		return rc;
	if (stat(path, &folder) < 0 || stat("/proc/self/ns/net", &net) < 0 ||
	    stat("/proc/self/ns/user", &user) < 0) {
		rc = -errno;
		snprintf(why, why_len,
			 "the namespaces of this process are unknown (/proc/self/ns): is /proc "
			 "mounted?");
		return rc;
	}
	p->folder_dev = folder.st_dev;
	p->folder_ino = folder.st_ino;
	p->net_dev = net.st_dev;
	p->net_ino = net.st_ino;
	p->user_dev = user.st_dev;
	p->user_ino = user.st_ino;
	p->uid = geteuid();
	return 0;
}

int shm_place_init(struct shm_addr *own, const struct weft_lane_open *params, char *why,
		   size_t why_len)
{
	const struct weft_platform *platform = params->platform;
	struct place p = {0};
	int rc;

	memset(own, 0, sizeof(*own));
	p.host = platform->host_id ? platform->host_id(platform->arg) : 0;
	if (p.host == 0) {
		snprintf(why, why_len,
			 "the system's boot id is unknown "
			 "(/proc/sys/kernel/random/boot_id): is /proc mounted?");
		return -ENOENT;
	}
	rc = find_place(&p, why, why_len);
	if (rc < 0)
		return rc;
	own->host = weft_put64(p.host);
	own->place = weft_put64(weft_siphash(&place_key, &p, sizeof(p)));
	own->iface_id = weft_put64(params->iface_id);
	own->version = weft_put16(SHM_VERSION);
	return 0;
}

int shm_place_reachable(const struct shm_addr *own, const void *addr, size_t len, char *why,
			size_t why_len)
{
	struct shm_addr a;

	if (len != sizeof(a)) {
		snprintf(why, why_len, "its address has %zu bytes instead of %zu", len, sizeof(a));
		return -EINVAL;
	}
	memcpy(&a, addr, sizeof(a));
	if (weft_get16(a.version) != SHM_VERSION) {
		snprintf(why, why_len, "it has version %u of shared memory, this process %u",
			 weft_get16(a.version), SHM_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (weft_get64(a.host) != weft_get64(own->host)) {
		snprintf(why, why_len, "it is on another host");
		return -EHOSTUNREACH;
	}
	if (weft_get64(a.place) != weft_get64(own->place)) {
		snprintf(why, why_len,
			 "it is on this host, but has another user, or another /tmp, network or "
			 "user namespace");
		return -EACCES;
	}
	return 0;
}

void shm_place_print(const void *addr, size_t len, char *buf, size_t size)
{
	struct shm_addr a;

	if (len != sizeof(a)) {
		snprintf(buf, size, "malformed address");
		return;
	}
	memcpy(&a, addr, sizeof(a));
	snprintf(buf, size, "shared memory %016llx on host %016llx",
		 (unsigned long long)weft_get64(a.iface_id),
		 (unsigned long long)weft_get64(a.host));
}
