/* SPDX-License-Identifier: BSD-3-Clause */

#include "info/check_facts.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/if_vlan.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "info/iface_facts.h"
#include "weft_version.h"

/* ---- this host ------------------------------------------------------------------------------ */

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

/* A bridge without a NIC connects containers or guests: udp:* opens no lane on it. */
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
		return; /* IPv4 needs an MTU of 68 bytes; 0: the interface has gone */
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

/* The other end prints names, and splits lines at blanks: printable ASCII only, no blanks. */
static bool is_plain(char c)
{
	return c > ' ' && c < 0x7f;
}

/* The kernel permits other bytes in names, such as UTF-8. */
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

/* Lines with unknown words come from another version, and are ignored. */
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

uint32_t check_probe_size(const struct check_iface *i)
{
	return i->mtu < CHECK_PROBE_MAX ? i->mtu : CHECK_PROBE_MAX;
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

/* ---- the verdict ---------------------------------------------------------------------------- */

struct link {
	const struct check_iface *i, *k;
	bool in, out; /* in: UDP from there arrives here; out: UDP from here arrives there */
	bool in_large, out_large;
	bool same_subnet, routes;
	bool arp_failed;
};

static bool in_subnet(const struct check_iface *of, uint32_t ip)
{
	uint32_t mask = of->prefix == 0 ? 0 : UINT32_MAX << (32 - of->prefix);

	return ((of->ip ^ ip) & mask) == 0;
}

static struct link link_of(const struct check_end *here, const struct check_end *there,
			   unsigned int i, unsigned int k)
{
	const struct check_pair *a = &here->seen.pair[i][k], *b = &there->seen.pair[k][i];
	const struct check_iface *mine = &here->facts.iface[i], *theirs = &there->facts.iface[k];

	return (struct link){
		.i = mine,
		.k = theirs,
		.in = a->small,
		.out = b->small,
		.in_large = a->large,
		.out_large = b->large,
		/* Bridges of containers have one address on all hosts. */
		.same_subnet = in_subnet(mine, theirs->ip) && in_subnet(theirs, mine->ip) &&
			       mine->ip != theirs->ip,
		.routes = a->route && b->route,
		.arp_failed = a->arp == CHECK_ARP_FAILED || b->arp == CHECK_ARP_FAILED,
	};
}

static enum check_fault fault_of(const struct link *l)
{
	if (l->in != l->out)
		return CHECK_ONE_WAY;
	if (l->in)
		return l->in_large && l->out_large ? CHECK_FINE : CHECK_MTU;
	if (l->same_subnet && l->arp_failed)
		return CHECK_ARP;
	return l->routes ? CHECK_BLOCKED : CHECK_SUBNET;
}

static const char *ip_text(uint32_t ip, char buf[16])
{
	snprintf(buf, 16, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
	return buf;
}

#define TEXT(v, ...) snprintf((v)->text, sizeof((v)->text), __VA_ARGS__)
#define REMEDY(v, ...) snprintf((v)->remedy, sizeof((v)->remedy), __VA_ARGS__)

/* ---- text of each fault --------------------------------------------------------------------- */

/*
 * The route to a subnet leads over one of the host's interfaces there. A strict reverse path filter
 * drops frames that come in over another one.
 */
static bool has_two(const struct check_facts *f, const struct check_iface *of)
{
	unsigned int i, n = 0;

	for (i = 0; i < f->num; i++)
		n += in_subnet(of, f->iface[i].ip);
	return n > 1;
}

/* @return true: the remedy is about an end, the first one before the other, with two interfaces */
static bool remedy_filter(struct check_verdict *v, const struct check_end *first,
			  const struct check_iface *i, const struct check_end *other,
			  const struct check_iface *k, const char *otherwise)
{
	bool two = has_two(&first->facts, i);

	if (!two && !has_two(&other->facts, k))
		return false;
	REMEDY(v,
	       "%s has two interfaces in the subnet of %s, so its reverse path filter may drop it: "
	       "there sysctl -w net.ipv4.conf.all.rp_filter=2, or give each interface a subnet of "
	       "its own; otherwise %s",
	       two ? first->facts.host : other->facts.host, two ? i->name : k->name, otherwise);
	return true;
}

#define FIREWALL "a firewall drops it (nft list ruleset)"
#define SMALLER_MTU "a switch or router between has a smaller MTU"

static void explain_one_way(struct check_verdict *v, const struct check_end *here,
			    const struct check_end *there, const struct link *l)
{
	const struct check_end *from = l->in ? here : there, *to = l->in ? there : here;
	const struct check_iface *f = l->in ? l->i : l->k, *t = l->in ? l->k : l->i;
	char a[16], b[16];

	TEXT(v, "UDP from %s (%s, %s) to %s (%s, %s) does not arrive; the other direction works",
	     from->facts.host, f->name, ip_text(f->ip, a), to->facts.host, t->name,
	     ip_text(t->ip, b));
	if (!remedy_filter(v, to, t, from, f, FIREWALL))
		REMEDY(v,
		       "a firewall drops it: at %s accept UDP that comes in from %s (nft list "
		       "ruleset), at %s UDP that goes out, then check what is between; ports= of a "
		       "udp lane limits the ports",
		       to->facts.host, a, from->facts.host);
}

static void explain_blocked(struct check_verdict *v, const struct check_end *here,
			    const struct check_end *there, const struct link *l)
{
	char a[16], b[16];

	TEXT(v,
	     "UDP between %s (%s, %s) and %s (%s, %s) arrives in neither direction; routes exist",
	     here->facts.host, l->i->name, ip_text(l->i->ip, a), there->facts.host, l->k->name,
	     ip_text(l->k->ip, b));
	if (l->i->vlan != l->k->vlan)
		REMEDY(v, "the VLANs differ, %u here and %u there: use interfaces of one VLAN",
		       l->i->vlan, l->k->vlan);
	else if (!remedy_filter(v, here, l->i, there, l->k, FIREWALL))
		REMEDY(v,
		       "firewalls at both ends or between drop UDP: accept it from %s at %s and "
		       "from %s at %s (nft list ruleset)",
		       b, here->facts.host, a, there->facts.host);
}

static void explain_arp(struct check_verdict *v, const struct link *l)
{
	char a[16], b[16];

	TEXT(v, "no host answers ARP between %s (%s) here and %s (%s) there, which share a subnet",
	     l->i->name, ip_text(l->i->ip, a), l->k->name, ip_text(l->k->ip, b));
	REMEDY(v,
	       "they are not in one network: check the cable, the switch port's VLAN (%u here, %u "
	       "there), and that each address is the right one (ip -br addr)",
	       l->i->vlan, l->k->vlan);
}

static void explain_subnet(struct check_verdict *v, const struct link *l)
{
	char a[16], b[16];

	TEXT(v,
	     "%s here has %s/%u, %s there %s/%u: other subnets, and no route leads from one to "
	     "the other",
	     l->i->name, ip_text(l->i->ip, a), l->i->prefix, l->k->name, ip_text(l->k->ip, b),
	     l->k->prefix);
	REMEDY(v,
	       "give both an address of one subnet (ip addr add ADDRESS/BITS dev %s), or a route "
	       "at both ends (ip route add %s via ROUTER dev %s)",
	       l->i->name, b, l->i->name);
}

static void explain_mtu(struct check_verdict *v, const struct check_end *here,
			const struct check_end *there, const struct link *l)
{
	uint32_t i = check_probe_size(l->i), k = check_probe_size(l->k);

	TEXT(v,
	     "lanes work, but frames of the MTU do not arrive between %s here (MTU %u) and %s "
	     "there (MTU %u): smaller ones are used",
	     l->i->name, l->i->mtu, l->k->name, l->k->mtu);
	if (i != k)
		REMEDY(v,
		       "set one MTU at both ends: ip link set dev %s mtu %u here, or ip link "
		       "set dev %s mtu %u there",
		       l->i->name, k, l->k->name, i);
	else if (!remedy_filter(v, here, l->i, there, l->k, SMALLER_MTU))
		REMEDY(v, SMALLER_MTU ": raise it there, or set the "
				      "smaller one at both ends");
}

static const char *kind_text(uint32_t kinds)
{
	if (kinds & CHECK_ROCE)
		return kinds & CHECK_DPDK ? "roce and dpdk" : "roce";
	return kinds & CHECK_DPDK ? "dpdk" : "udp";
}

/* @return true: a host has a fault, which is in @p v; faults of pairs then do not matter */
static bool decide_hosts(const struct check_facts *here, const struct check_facts *there,
			 struct check_verdict *v)
{
	if (strcmp(here->version, there->version) != 0) {
		v->fault = CHECK_VERSION;
		TEXT(v, "Weft %s here, %s at %s: processes of one job need the same version",
		     here->version, there->version, there->host);
		REMEDY(v, "install one version at both ends (weft-info -v prints it)");
		return true;
	}
	if (here->num == 0 || there->num == 0) {
		v->fault = CHECK_NO_IFACE;
		TEXT(v, "%s has no interface that is up and has an IPv4 address",
		     here->num == 0 ? here->host : there->host);
		REMEDY(v, "ip link set dev NAME up; ip addr add ADDRESS/BITS dev NAME");
		return true;
	}
	if ((here->kinds & there->kinds) == 0) {
		v->fault = CHECK_KINDS;
		TEXT(v, "by default, lanes here are %s, and at %s %s: they do not connect",
		     kind_text(here->kinds), there->host, kind_text(there->kinds));
		REMEDY(v, "WEFT_LANES='udp:*;shm' (-L) at both ends");
		return true;
	}
	return false;
}

static void explain(struct check_verdict *v, const struct check_end *here,
		    const struct check_end *there, const struct link *l)
{
	size_t n;

	switch (v->fault) {
	case CHECK_ONE_WAY:
		explain_one_way(v, here, there, l);
		break;
	case CHECK_BLOCKED:
		explain_blocked(v, here, there, l);
		break;
	case CHECK_ARP:
		explain_arp(v, l);
		break;
	case CHECK_SUBNET:
		explain_subnet(v, l);
		break;
	case CHECK_MTU:
		explain_mtu(v, here, there, l);
		break;
	default:
		TEXT(v, "all is well: %u rail%s", v->rails, v->rails == 1 ? "" : "s");
		REMEDY(v, "none is needed");
		return;
	}
	n = strlen(v->text);
	if (v->rails > 0 && v->fault != CHECK_MTU)
		snprintf(v->text + n, sizeof(v->text) - n, "; lanes work over %u other rail%s",
			 v->rails, v->rails == 1 ? "" : "s");
}

/* A pair in one subnet explains more than others; then the pair whose frames got further. */
static bool explains_more(const struct link *a, const struct link *b)
{
	if (a->same_subnet != b->same_subnet)
		return a->same_subnet;
	return fault_of(a) < fault_of(b);
}

/* A pair of different subnets counts only if it works: hosts need not connect all subnets. */
static bool is_meant(const struct link *l)
{
	return l->same_subnet || (l->in && l->out);
}

/* Interfaces of this end (i) and of the peer (k) that count_rails() has put into pairs. */
struct used {
	bool i[CHECK_IFACES], k[CHECK_IFACES];
};

/* Pair interfaces that reach each other, each one once, and first those of one subnet. */
static unsigned int count_rails(const struct check_end *here, const struct check_end *there,
				struct used *used)
{
	unsigned int n = 0;
	struct link l;

	for (unsigned int pass = 0; pass < 2; pass++) {
		for (unsigned int i = 0; i < here->facts.num; i++) {
			for (unsigned int k = 0; k < there->facts.num; k++) {
				l = link_of(here, there, i, k);
				if (!l.in || !l.out || used->i[i] || used->k[k] ||
				    (pass == 0 && !l.same_subnet))
					continue;
				used->i[i] = used->k[k] = true;
				n++;
			}
		}
	}
	return n;
}

/* @param[out] l  two interfaces outside all pairs, without a route between them */
static bool find_unpaired(const struct check_end *here, const struct check_end *there,
			  const struct used *used, struct link *l)
{
	for (unsigned int i = 0; i < here->facts.num; i++) {
		for (unsigned int k = 0; k < there->facts.num; k++) {
			if (used->i[i] || used->k[k])
				continue;
			*l = link_of(here, there, i, k);
			if (fault_of(l) == CHECK_SUBNET)
				return true;
		}
	}
	return false;
}

void check_decide(const struct check_end *here, const struct check_end *there,
		  struct check_verdict *v)
{
	struct link l, worst = {0}, nearest = {0};
	struct used used = {0};

	*v = (struct check_verdict){.fault = CHECK_FINE};
	if (decide_hosts(&here->facts, &there->facts, v))
		return;
	v->rails = count_rails(here, there, &used);
	for (unsigned int i = 0; i < here->facts.num; i++) {
		for (unsigned int k = 0; k < there->facts.num; k++) {
			l = link_of(here, there, i, k);
			if (!nearest.i || explains_more(&l, &nearest))
				nearest = l;
			if (is_meant(&l) && fault_of(&l) < v->fault) {
				v->fault = fault_of(&l);
				worst = l;
			}
		}
	}
	if (v->rails == 0 && v->fault == CHECK_FINE) {
		worst = nearest;
		v->fault = fault_of(&nearest);
	}
	if (v->fault == CHECK_FINE && find_unpaired(here, there, &used, &worst))
		v->fault = CHECK_SUBNET;
	explain(v, here, there, &worst);
}
