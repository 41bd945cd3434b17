/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <linux/if_vlan.h>
#include <linux/sockios.h>

#include "info/check_facts.h"
#include "info/iface_facts.h"
#include "weft_version.h"

/* ---- this host ------------------------------------------------------------------------------ */

/* Does a file of the folder match, and may this process read and write @p device? */
static bool have_device(const char *folder, const char *pattern, const char *device)
{
	const struct dirent *e;
	bool found = false;
	DIR *dir = opendir(folder);

	while (dir && !found && (e = readdir(dir)))
		found = fnmatch(pattern, e->d_name, 0) == 0;
	if (dir)
		closedir(dir);
	return found && access(device, R_OK | W_OK) == 0;
}

static uint32_t kinds_here(void)
{
	uint32_t kinds = 0;

	if (have_device("/sys/class/infiniband", "[!.]*", "/dev/infiniband/uverbs0"))
		kinds |= CHECK_ROCE;
	if (have_device("/sys/bus/pci/drivers/vfio-pci", "*:*:*.*", "/dev/vfio/vfio"))
		kinds |= CHECK_DPDK;
	return kinds != 0 ? kinds : CHECK_UDP;
}

static uint64_t free_huge_kb(void)
{
	unsigned long long free_pages = 0, size = 0, value;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "HugePages_Free: %llu", &value) == 1)
			free_pages = value;
		if (sscanf(line, "Hugepagesize: %llu", &value) == 1)
			size = value;
	}
	if (f)
		fclose(f);
	return free_pages * size;
}

static uint32_t mtu_of(int fd, const char *name)
{
	struct ifreq r = {0};

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	return ioctl(fd, SIOCGIFMTU, &r) == 0 ? (uint32_t)r.ifr_mtu : 0;
}

static uint16_t vlan_of(int fd, const char *name)
{
	struct vlan_ioctl_args v = {.cmd = GET_VLAN_VID_CMD};

	snprintf(v.device1, sizeof(v.device1), "%s", name);
	return ioctl(fd, SIOCGIFVLAN, &v) == 0 ? (uint16_t)v.u.VID : 0;
}

/* A bridge without a device of this host connects containers or guests; no lane uses it. */
static bool is_inner_bridge(const char *name)
{
	char path[96];
	glob_t g;
	bool inner;

	snprintf(path, sizeof(path), "/sys/class/net/%s/bridge", name);
	if (access(path, F_OK) != 0)
		return false;
	snprintf(path, sizeof(path), "/sys/class/net/%s/brif/*/../device", name);
	inner = glob(path, 0, NULL, &g) != 0;
	if (!inner)
		globfree(&g);
	return inner;
}

static void add_iface(struct check_facts *f, int fd, const struct ifaddrs *a)
{
	const struct sockaddr_in *ip = (const void *)a->ifa_addr, *mask = (void *)a->ifa_netmask;
	const unsigned int up = IFF_UP | IFF_RUNNING;
	struct iface_facts more = {.speed = -1};
	struct check_iface *i = &f->iface[f->num];

	if (f->num == CHECK_IFACES || !ip || ip->sin_family != AF_INET || !mask ||
	    (a->ifa_flags & up) != up || a->ifa_flags & (IFF_LOOPBACK | IFF_POINTOPOINT))
		return;
	*i = (struct check_iface){
		.ip = ntohl(ip->sin_addr.s_addr),
		.prefix = (uint8_t)__builtin_popcount(mask->sin_addr.s_addr),
	};
	snprintf(i->name, sizeof(i->name), "%.*s", (int)strcspn(a->ifa_name, ":"), a->ifa_name);
	i->mtu = mtu_of(fd, i->name);
	if (i->mtu < 68 || is_inner_bridge(i->name))
		return; /* an MTU below the least of IPv4: it is gone */
	i->vlan = vlan_of(fd, i->name);
	iface_facts_read("/sys", i->name, &more);
	i->speed = more.speed;
	f->num++;
}

int check_facts_read(struct check_facts *f)
{
	struct ifaddrs *all, *a;
	struct rlimit r = {0};
	int fd;

	*f = (struct check_facts){.uid = geteuid(), .kinds = kinds_here()};
	snprintf(f->version, sizeof(f->version), "%d.%d.%d", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR,
		 WEFT_VERSION_PATCH);
	if (gethostname(f->host, sizeof(f->host) - 1) < 0 || f->host[0] == '\0')
		snprintf(f->host, sizeof(f->host), "host");
	getrlimit(RLIMIT_MEMLOCK, &r);
	f->memlock_kb = r.rlim_cur == RLIM_INFINITY ? UINT64_MAX : r.rlim_cur / 1024;
	f->huge_kb = free_huge_kb();
	if (getrandom(&f->nonce, sizeof(f->nonce), 0) != sizeof(f->nonce) || getifaddrs(&all) < 0)
		return -errno;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	for (a = all; fd >= 0 && a; a = a->ifa_next)
		add_iface(f, fd, a);
	freeifaddrs(all);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* ---- text ----------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 3, 4)))
add(char text[CHECK_TEXT], size_t *at, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text + *at, CHECK_TEXT - *at, fmt, ap);
	va_end(ap);
	if (n > 0)
		*at = *at + (size_t)n < CHECK_TEXT ? *at + (size_t)n : CHECK_TEXT - 1;
}

/* What a name may contain that the other end prints: neither control characters nor blanks. */
static bool is_plain(char c)
{
	return c > ' ' && c < 0x7f;
}

/* The kernel permits other bytes in names, such as UTF-8: they become '?'. */
static const char *plain(const char *name, char buf[64])
{
	size_t n = strnlen(name, 63);

	for (size_t i = 0; i < n; i++)
		buf[i] = is_plain(name[i]) ? name[i] : '?';
	buf[n] = '\0';
	return buf;
}

size_t check_facts_write(const struct check_facts *f, char text[CHECK_TEXT])
{
	const struct check_iface *i = f->iface;
	char name[64];
	size_t at = 0;

	add(text, &at, "weft-check 1\nversion %s\nhost %s\nnonce %016" PRIx64 "\nuid %" PRIu32 "\n",
	    f->version, plain(f->host, name), f->nonce, f->uid);
	add(text, &at, "kinds %" PRIu32 "\nmemlock %" PRIu64 "\nhuge %" PRIu64 "\n", f->kinds,
	    f->memlock_kb, f->huge_kb);
	for (; i < f->iface + f->num; i++)
		add(text, &at,
		    "iface %s ip %08" PRIx32 " %u mtu %" PRIu32 " vlan %u speed %d port %u\n",
		    plain(i->name, name), i->ip, i->prefix, i->mtu, i->vlan, i->speed, i->port);
	add(text, &at, "end\n");
	return at;
}

static bool is_name(const char *s)
{
	const char *end = s;

	while (is_plain(*end))
		end++;
	return end > s && *end == '\0';
}

/* A line of an interface. @return 0 or -EPROTO */
static int parse_iface(const char *line, struct check_facts *f)
{
	struct check_iface i = {0};
	unsigned int prefix, vlan, port;

	if (f->num == CHECK_IFACES ||
	    sscanf(line,
		   "iface %15s ip %8" SCNx32 " %3u mtu %9" SCNu32 " vlan %4u speed %9d port %5u",
		   i.name, &i.ip, &prefix, &i.mtu, &vlan, &i.speed, &port) != 7)
		return -EPROTO;
	if (!is_name(i.name) || prefix > 32 || vlan > 4095 || port == 0 || port > UINT16_MAX ||
	    i.mtu < 68 || i.speed < -1)
		return -EPROTO;
	i.prefix = (uint8_t)prefix;
	i.vlan = (uint16_t)vlan;
	i.port = (uint16_t)port;
	f->iface[f->num++] = i;
	return 0;
}

/* Lines of other words are of another version. @return 0 or -EPROTO */
static int parse_line(const char *line, struct check_facts *f)
{
	if (sscanf(line, "version %31s", f->version) == 1)
		return is_name(f->version) ? 0 : -EPROTO;
	if (sscanf(line, "host %63s", f->host) == 1)
		return is_name(f->host) ? 0 : -EPROTO;
	if (strncmp(line, "iface ", 6) == 0)
		return parse_iface(line, f);
	if (sscanf(line, "nonce %16" SCNx64, &f->nonce) == 1 ||
	    sscanf(line, "uid %10" SCNu32, &f->uid) == 1 ||
	    sscanf(line, "kinds %9" SCNu32, &f->kinds) == 1 ||
	    sscanf(line, "memlock %20" SCNu64, &f->memlock_kb) == 1)
		return 0;
	sscanf(line, "huge %20" SCNu64, &f->huge_kb);
	return 0;
}

int check_facts_parse(char *text, struct check_facts *f)
{
	char *line, *rest = text;
	int err = 0;

	*f = (struct check_facts){0};
	line = strsep(&rest, "\n");
	if (strncmp(line, "weft-check ", 11) != 0)
		return -EPROTO;
	while (err == 0 && (line = strsep(&rest, "\n")) && strcmp(line, "end") != 0)
		err = parse_line(line, f);
	return err == 0 && line && f->version[0] != '\0' && f->host[0] != '\0' ? 0 : -EPROTO;
}

size_t check_seen_write(const struct check_seen *s, unsigned int mine, unsigned int theirs,
			char text[CHECK_TEXT])
{
	size_t at = 0;

	for (unsigned int i = 0; i < mine; i++) {
		for (unsigned int k = 0; k < theirs; k++) {
			const struct check_pair *p = &s->pair[i][k];

			add(text, &at, "pair %u %u route %d arp %u small %d large %d\n", i, k,
			    p->route, (unsigned int)p->arp, p->small, p->large);
		}
	}
	add(text, &at, "end\n");
	return at;
}

int check_seen_parse(char *text, unsigned int mine, unsigned int theirs, struct check_seen *s)
{
	unsigned int i, k, route, arp, small, large;
	char *line, *rest = text;

	*s = (struct check_seen){0};
	while ((line = strsep(&rest, "\n")) && strcmp(line, "end") != 0) {
		if (strncmp(line, "pair ", 5) != 0)
			continue;
		if (sscanf(line, "pair %2u %2u route %1u arp %1u small %1u large %1u", &i, &k,
			   &route, &arp, &small, &large) != 6 ||
		    i >= mine || k >= theirs || route > 1 || arp > CHECK_ARP_FAILED || small > 1 ||
		    large > 1)
			return -EPROTO;
		s->pair[i][k] = (struct check_pair){
			.route = route,
			.arp = (enum check_arp)arp,
			.small = small,
			.large = large,
		};
	}
	return line ? 0 : -EPROTO;
}
