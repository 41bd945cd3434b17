/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <string.h>

#include "info/check_probe.h"
#include "info/check_verdict.h"

/* A pair of interfaces, seen from both ends. */
struct link {
	const struct check_iface *i, *k;
	bool in, out; /* UDP arrives here; there */
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

/* The fault of a pair that is meant to work. */
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

static void explain_one_way(struct check_verdict *v, const struct check_end *here,
			    const struct check_end *there, const struct link *l)
{
	const struct check_end *from = l->in ? here : there, *to = l->in ? there : here;
	const struct check_iface *f = l->in ? l->i : l->k, *t = l->in ? l->k : l->i;
	char a[16], b[16];

	TEXT(v, "UDP from %s (%s, %s) to %s (%s, %s) does not arrive; the other direction works",
	     from->facts.host, f->name, ip_text(f->ip, a), to->facts.host, t->name,
	     ip_text(t->ip, b));
	REMEDY(v,
	       "a firewall drops it: at %s accept UDP that comes in from %s (nft list ruleset), "
	       "at %s UDP that goes out, then check what is between; ports= of a udp lane limits "
	       "the ports",
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
	else
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

static void explain_mtu(struct check_verdict *v, const struct link *l)
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
	else
		REMEDY(v,
		       "a switch or router between has a smaller MTU: raise it there, or set the "
		       "smaller one at both ends");
}

static const char *kind_text(uint32_t kinds)
{
	if (kinds & CHECK_ROCE)
		return kinds & CHECK_DPDK ? "roce and dpdk" : "roce";
	return kinds & CHECK_DPDK ? "dpdk" : "udp";
}

/* Faults of the hosts, not of a pair. @return true: there is one */
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
		explain_mtu(v, l);
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

/* The pair that explains most: one in a common subnet, and of these the one that got furthest. */
static bool explains_more(const struct link *a, const struct link *b)
{
	if (a->same_subnet != b->same_subnet)
		return a->same_subnet;
	return fault_of(a) < fault_of(b);
}

/* Pairs in one subnet, and others that work, are meant to work. */
static bool is_meant(const struct link *l)
{
	return l->same_subnet || (l->in && l->out);
}

/* Interfaces that have a partner. */
struct used {
	bool i[CHECK_IFACES], k[CHECK_IFACES];
};

/* Pairs that work, each interface counted once; those in one subnet come first. */
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

/* Each end has an interface without a partner, and these two cannot reach each other. */
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
