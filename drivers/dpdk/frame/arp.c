/* SPDX-License-Identifier: BSD-3-Clause */

#include "frame/arp.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_byteorder.h>
#include <rte_ether.h>

#include "frame/frame.h"

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

void weft_arp_table_init(struct weft_arp_table *t, uint64_t seed)
{
	memset(t, 0, sizeof(*t));
	t->by_ip.seed = seed;
	for (size_t i = 0; i < WEFT_ARP_KINDS; i++)
		TAILQ_INIT(&t->list[i]);
	pthread_mutex_init(&t->lock, NULL);
}

void weft_arp_init(struct weft_arp *a, uint32_t ip, const uint8_t mac[6], uint64_t seed,
		   struct weft_arp_table *shared)
{
	memset(a, 0, sizeof(*a));
	a->ip = ip;
	memcpy(a->mac, mac, 6);
	weft_arp_table_init(&a->own, seed);
	a->table = shared ? shared : &a->own;
}

/* The functions with "table" in the name are called with the lock held. */

static struct weft_arp_entry *table_find(struct weft_arp_table *t, uint32_t ip)
{
	struct weft_table_node *n = weft_table_find(&t->by_ip, ip);

	return n ? container_of(n, struct weft_arp_entry, by_ip) : NULL;
}

static void table_drop(struct weft_arp_table *t, struct weft_arp_entry *e)
{
	weft_table_remove(&t->by_ip, &e->by_ip);
	TAILQ_REMOVE(&t->list[e->kind], e, link);
	t->num[e->kind]--;
	free(e);
}

void weft_arp_table_fini(struct weft_arp_table *t)
{
	struct weft_arp_entry *e;

	for (size_t i = 0; i < WEFT_ARP_KINDS; i++)
		while ((e = TAILQ_FIRST(&t->list[i])))
			table_drop(t, e);
	weft_table_fini(&t->by_ip);
	pthread_mutex_destroy(&t->lock);
}

void weft_arp_fini(struct weft_arp *a)
{
	weft_arp_table_fini(&a->own);
}

static void table_use(struct weft_arp_table *t, struct weft_arp_entry *e, enum weft_arp_kind kind,
		      uint64_t now)
{
	TAILQ_REMOVE(&t->list[e->kind], e, link);
	t->num[e->kind]--;
	if (e->kind == WEFT_ARP_KIND_THEIRS || kind == WEFT_ARP_KIND_FIXED)
		e->kind = (uint8_t)kind;
	TAILQ_INSERT_TAIL(&t->list[e->kind], e, link);
	t->num[e->kind]++;
	e->used = now;
}

/* Makes room. Entries of FIXED stay, and entries of OURS for WEFT_ARP_BUSY after their last use. */
static bool table_room(struct weft_arp_table *t, enum weft_arp_kind kind, uint64_t now)
{
	static const uint32_t max[WEFT_ARP_KINDS] = {
		[WEFT_ARP_KIND_OURS] = WEFT_ARP_OURS,
		[WEFT_ARP_KIND_THEIRS] = WEFT_ARP_THEIRS,
		[WEFT_ARP_KIND_FIXED] = WEFT_ARP_FIXED_MAX,
	};
	struct weft_arp_entry *e = TAILQ_FIRST(&t->list[kind]);

	if (t->num[kind] < max[kind])
		return true;
	if (kind == WEFT_ARP_KIND_FIXED ||
	    (kind == WEFT_ARP_KIND_OURS && now < e->used + WEFT_ARP_BUSY))
		return false;
	table_drop(t, e);
	return true;
}

static struct weft_arp_entry *table_take(struct weft_arp_table *t, uint32_t ip,
					 enum weft_arp_kind kind, uint64_t now)
{
	struct weft_arp_entry *e;

	if (!table_room(t, kind, now) || !(e = calloc(1, sizeof(*e))))
		return NULL;
	if (weft_table_add(&t->by_ip, &e->by_ip, ip) < 0) {
		free(e);
		return NULL;
	}
	e->kind = (uint8_t)kind;
	e->used = now;
	TAILQ_INSERT_TAIL(&t->list[kind], e, link);
	t->num[kind]++;
	return e;
}

bool weft_arp_lookup(struct weft_arp *a, uint32_t ip, uint64_t now, uint8_t mac[6])
{
	struct weft_arp_entry *e;
	bool known;

	if (ip == 0)
		return false;
	pthread_mutex_lock(&a->table->lock);
	e = table_find(a->table, ip);
	known = e != NULL && e->known;
	if (known) {
		table_use(a->table, e, (enum weft_arp_kind)e->kind, now);
		memcpy(mac, e->mac, 6);
	}
	pthread_mutex_unlock(&a->table->lock);
	return known;
}

unsigned int weft_arp_repliers(struct weft_arp *a, uint32_t ip, uint8_t mac[WEFT_ARP_REPLIERS][6])
{
	const struct weft_arp_entry *e;
	unsigned int n = 0;

	pthread_mutex_lock(&a->table->lock);
	e = table_find(a->table, ip);
	if (e) {
		n = e->num_replies < WEFT_ARP_REPLIERS ? e->num_replies : WEFT_ARP_REPLIERS;
		memcpy(mac, e->repliers, sizeof(e->repliers));
	}
	pthread_mutex_unlock(&a->table->lock);
	return n;
}

static void build_packet(const struct weft_arp *a, struct rte_arp_hdr *pkt, uint16_t op,
			 const uint8_t tha[6], uint32_t tip)
{
	*pkt = (struct rte_arp_hdr){
		.arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER),
		.arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4),
		.arp_hlen = RTE_ETHER_ADDR_LEN,
		.arp_plen = sizeof(pkt->arp_data.arp_sip),
		.arp_opcode = rte_cpu_to_be_16(op),
		.arp_data.arp_sip = rte_cpu_to_be_32(a->ip),
		.arp_data.arp_tip = rte_cpu_to_be_32(tip),
	};
	memcpy(&pkt->arp_data.arp_sha, a->mac, RTE_ETHER_ADDR_LEN);
	memcpy(&pkt->arp_data.arp_tha, tha, RTE_ETHER_ADDR_LEN);
}

static bool table_request(struct weft_arp_table *t, uint32_t ip, enum weft_arp_kind kind,
			  uint64_t now)
{
	struct weft_arp_entry *e = table_find(t, ip);
	uint64_t wait;

	if (!e)
		e = table_take(t, ip, kind, now);
	if (!e)
		return false;
	table_use(t, e, kind, now);
	if (e->known || now < e->next_request)
		return false;
	wait = WEFT_ARP_RETRY_MIN << (e->unanswered < 8 ? e->unanswered : 8);
	e->next_request = now + (wait < WEFT_ARP_RETRY_MAX ? wait : WEFT_ARP_RETRY_MAX);
	e->unanswered++;
	return true;
}

static bool build_request(struct weft_arp *a, uint32_t ip, enum weft_arp_kind kind, uint64_t now,
			  struct rte_arp_hdr *pkt)
{
	static const uint8_t no_mac[6];
	bool due;

	pthread_mutex_lock(&a->table->lock);
	due = table_request(a->table, ip, kind, now);
	pthread_mutex_unlock(&a->table->lock);
	if (due)
		build_packet(a, pkt, RTE_ARP_OP_REQUEST, no_mac, ip);
	return due;
}

bool weft_arp_request(struct weft_arp *a, uint32_t ip, uint64_t now, struct rte_arp_hdr *pkt)
{
	return build_request(a, ip, WEFT_ARP_KIND_OURS, now, pkt);
}

bool weft_arp_request_theirs(struct weft_arp *a, uint32_t ip, uint64_t now, struct rte_arp_hdr *pkt)
{
	return build_request(a, ip, WEFT_ARP_KIND_THEIRS, now, pkt);
}

uint32_t weft_arp_unanswered(struct weft_arp *a, uint32_t ip)
{
	const struct weft_arp_entry *e;
	uint32_t unanswered;

	pthread_mutex_lock(&a->table->lock);
	e = table_find(a->table, ip);
	unanswered = e ? e->unanswered : 0;
	pthread_mutex_unlock(&a->table->lock);
	return unanswered;
}

static int table_fix(struct weft_arp_table *t, uint32_t ip, const uint8_t mac[6])
{
	struct weft_arp_entry *e = table_find(t, ip);

	if (e && e->kind == WEFT_ARP_KIND_FIXED)
		return memcmp(e->mac, mac, 6) == 0 ? 0 : -EEXIST;
	if (t->num[WEFT_ARP_KIND_FIXED] >= WEFT_ARP_FIXED_MAX)
		return -ENOSPC;
	if (e)
		table_use(t, e, WEFT_ARP_KIND_FIXED, 0);
	else
		e = table_take(t, ip, WEFT_ARP_KIND_FIXED, 0);
	if (!e)
		return -ENOMEM;
	memcpy(e->mac, mac, 6);
	memcpy(e->repliers[0], mac, 6);
	e->num_replies = 1;
	e->known = true;
	return 0;
}

int weft_arp_fix(struct weft_arp *a, uint32_t ip, const uint8_t mac[6])
{
	int rc;

	pthread_mutex_lock(&a->table->lock);
	rc = table_fix(a->table, ip, mac);
	pthread_mutex_unlock(&a->table->lock);
	return rc;
}

bool weft_arp_has(const struct weft_arp *a, uint32_t ip)
{
	bool has;

	pthread_mutex_lock(&a->table->lock);
	has = table_find(a->table, ip) != NULL;
	pthread_mutex_unlock(&a->table->lock);
	return has;
}

bool weft_arp_is_fixed(const struct weft_arp *a, uint32_t ip)
{
	const struct weft_arp_entry *e;
	bool fixed;

	pthread_mutex_lock(&a->table->lock);
	e = table_find(a->table, ip);
	fixed = e != NULL && e->kind == WEFT_ARP_KIND_FIXED;
	pthread_mutex_unlock(&a->table->lock);
	return fixed;
}

static void table_forget(struct weft_arp_entry *e)
{
	e->known = false;
	e->unanswered = 0;
	e->next_request = 0;
}

void weft_arp_forget(struct weft_arp *a, uint32_t ip)
{
	struct weft_arp_entry *e;

	pthread_mutex_lock(&a->table->lock);
	e = table_find(a->table, ip);
	if (e && e->kind != WEFT_ARP_KIND_FIXED)
		table_forget(e);
	pthread_mutex_unlock(&a->table->lock);
}

bool weft_arp_recheck(struct weft_arp *a, uint32_t ip, uint64_t now)
{
	struct weft_arp_entry *e;
	bool old;

	pthread_mutex_lock(&a->table->lock);
	e = table_find(a->table, ip);
	old = e != NULL && e->known && e->kind != WEFT_ARP_KIND_FIXED &&
	      now >= e->learned + WEFT_ARP_FRESH;
	if (old)
		table_forget(e);
	pthread_mutex_unlock(&a->table->lock);
	return old;
}

/*
 * A further reply is not trusted, but its MAC is listed: when a peer moves, a neighbour that
 * replies in its name may be faster than the peer. With more replies than places, the first MAC
 * stays. The time and a random seed choose among the others, so that no host can influence the
 * choice.
 * @return true: this MAC was not in the list
 */
static bool add_replier(const struct weft_arp_table *t, struct weft_arp_entry *e,
			const uint8_t mac[6], uint64_t now)
{
	uint64_t k;

	for (k = 0; k < e->num_replies && k < WEFT_ARP_REPLIERS; k++)
		if (memcmp(e->repliers[k], mac, 6) == 0)
			return false;
	e->num_replies++;
	if (e->num_replies > WEFT_ARP_REPLIERS)
		k = 1 + mix(t->by_ip.seed ^ now ^ (uint64_t)e->num_replies << 32) %
				(e->num_replies - 1);
	if (k < WEFT_ARP_REPLIERS)
		memcpy(e->repliers[k], mac, 6);
	return true;
}

static void conflict_set(struct weft_arp_conflict *c, uint32_t ip, const uint8_t known[6],
			 const uint8_t other[6])
{
	c->ip = ip;
	memcpy(c->mac[0], known, 6);
	memcpy(c->mac[1], other, 6);
}

/* An unrequested or a second reply may be forged, so only the first reply is learned. */
static enum weft_arp_result table_learn(struct weft_arp_table *t, uint32_t ip, const uint8_t mac[6],
					uint64_t now, struct weft_arp_conflict *conflict)
{
	struct weft_arp_entry *e;

	if (ip == 0)
		return WEFT_ARP_IGNORED;
	e = table_find(t, ip);
	if (!e || e->kind == WEFT_ARP_KIND_FIXED || now >= e->next_request + WEFT_ARP_OPEN)
		return WEFT_ARP_IGNORED;
	if (e->known && add_replier(t, e, mac, now)) {
		conflict_set(conflict, ip, e->mac, mac);
		return WEFT_ARP_SEVERAL;
	}
	if (e->known || e->unanswered == 0)
		return WEFT_ARP_IGNORED;
	memcpy(e->mac, mac, 6);
	memcpy(e->repliers[0], mac, 6);
	e->num_replies = 1;
	e->known = true;
	e->learned = now;
	e->unanswered = 0;
	return WEFT_ARP_LEARNED;
}

/* At most WEFT_ARP_LOOKS entries of a kind are checked: any host can cause this search. */
static bool answers_for_others(const struct weft_arp *a, const uint8_t mac[6])
{
	const struct weft_arp_entry *e;
	unsigned int n;
	bool found = false;

	pthread_mutex_lock(&a->table->lock);
	for (size_t kind = 0; kind < WEFT_ARP_KINDS && !found; kind++) {
		n = 0;
		TAILQ_FOREACH_REVERSE(e, &a->table->list[kind], weft_arp_list, link)
		{
			found = e->known && memcmp(e->mac, mac, 6) == 0;
			if (found || ++n == WEFT_ARP_LOOKS)
				break;
		}
	}
	pthread_mutex_unlock(&a->table->lock);
	return found;
}

enum weft_arp_result weft_arp_input(struct weft_arp *a, const struct rte_arp_hdr *pkt, uint64_t now,
				    struct rte_arp_hdr *reply)
{
	const uint8_t *sha = pkt->arp_data.arp_sha.addr_bytes;
	uint32_t sip = rte_be_to_cpu_32(pkt->arp_data.arp_sip);
	uint32_t tip = rte_be_to_cpu_32(pkt->arp_data.arp_tip);
	uint16_t op = rte_be_to_cpu_16(pkt->arp_opcode);
	enum weft_arp_result result;

	if ((op != RTE_ARP_OP_REQUEST && op != RTE_ARP_OP_REPLY) ||
	    rte_is_multicast_ether_addr(&pkt->arp_data.arp_sha))
		return WEFT_ARP_IGNORED;
	if (sip == a->ip && memcmp(sha, a->mac, 6) != 0) {
		/*
		 * A proxy that replies for all addresses replies to our probe, too, with the target
		 * 0.0.0.0. The table may have no other entry with its MAC.
		 */
		if ((op == RTE_ARP_OP_REPLY && tip == 0) || answers_for_others(a, sha))
			return WEFT_ARP_IGNORED;
		conflict_set(&a->conflict, a->ip, a->mac, sha);
		return WEFT_ARP_CONFLICT;
	}
	if (sip == a->ip)
		return WEFT_ARP_IGNORED; /* our own packet, reflected by the link */
	if (op == RTE_ARP_OP_REQUEST) {
		if (tip != a->ip)
			return WEFT_ARP_IGNORED;
		build_packet(a, reply, RTE_ARP_OP_REPLY, sha, sip);
		return WEFT_ARP_ANSWER;
	}
	pthread_mutex_lock(&a->table->lock);
	result = table_learn(a->table, sip, sha, now, &a->conflict);
	pthread_mutex_unlock(&a->table->lock);
	return result;
}

void weft_arp_probe(const struct weft_arp *a, struct rte_arp_hdr *pkt)
{
	static const uint8_t no_mac[6];

	build_packet(a, pkt, RTE_ARP_OP_REQUEST, no_mac, a->ip);
	pkt->arp_data.arp_sip = 0;
}

bool weft_arp_hint(const struct weft_arp *a, const struct rte_arp_hdr *pkt,
		   struct weft_arp_hint *hint)
{
	rte_be32_t sip = pkt->arp_data.arp_sip, tip = pkt->arp_data.arp_tip;

	if (rte_is_multicast_ether_addr(&pkt->arp_data.arp_sha) ||
	    memcmp(&pkt->arp_data.arp_sha, a->mac, 6) == 0)
		return false;
	hint->ip = rte_be_to_cpu_32(sip != 0 ? sip : tip);
	hint->begins = sip == 0 || sip == tip;
	memcpy(hint->mac, &pkt->arp_data.arp_sha, 6);
	return hint->ip != 0 && hint->ip != a->ip;
}

/* ---------------------------------------------------------------- addresses */

bool weft_lane_is_unicast(uint32_t ip)
{
	return ip >> 24 != 0 && ip >> 24 != 127 && ip >> 28 < 14;
}

static uint32_t mask_of(unsigned int prefix)
{
	return prefix ? UINT32_MAX << (32 - prefix) : 0;
}

/* The first and the last address of a network belong to no host, unless it has only two or one. */
bool weft_lane_is_hosts(uint32_t ip, unsigned int prefix)
{
	uint32_t host = ip & ~mask_of(prefix);

	return weft_lane_is_unicast(ip) &&
	       (prefix >= 31 || (host != 0 && host != ~mask_of(prefix)));
}

bool weft_lane_same_net(uint32_t a, uint32_t b, unsigned int prefix)
{
	return ((a ^ b) & mask_of(prefix)) == 0;
}

uint32_t weft_lane_link_local(const uint8_t mac[6])
{
	uint32_t h = 2166136261u; /* FNV-1a spreads similar MACs over the range */
	int i;

	for (i = 0; i < 6; i++)
		h = (h ^ mac[i]) * 16777619u;
	h ^= h >> 16;
	/* 169.254.0.* and 169.254.255.* are reserved. */
	return 0xa9fe0100u + h % (254u * 256u);
}

bool weft_ip6_is_unicast(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}, zeros[15];

	/* Not a group, not ::/120 (with :: and ::1), and not ::ffff:0:0/96 (IPv4). */
	return ip[0] != 0xff && memcmp(ip, zeros, sizeof(zeros)) != 0 &&
	       memcmp(ip, mapped, sizeof(mapped)) != 0;
}

bool weft_ip6_same_net(const uint8_t a[16], const uint8_t b[16], unsigned int prefix)
{
	unsigned int bytes = prefix / 8, bits = prefix % 8;

	return memcmp(a, b, bytes) == 0 && (bits == 0 || (a[bytes] ^ b[bytes]) >> (8 - bits) == 0);
}

void weft_ip6_from_mac(uint8_t ip[16], const uint8_t mac[6])
{
	memcpy(ip + 8, mac, 3);
	/* The universal/local bit: an interface identifier has the inverse of the MAC's. */
	ip[8] ^= 2;
	ip[11] = 0xff;
	ip[12] = 0xfe;
	memcpy(ip + 13, mac + 3, 3);
}

void weft_ip6_group(const uint8_t *ip, uint8_t group[16], uint8_t mac[6])
{
	static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};
	static const uint8_t solicited[16] = {0xff, 0x02, [11] = 1, [12] = 0xff};

	memcpy(group, ip ? solicited : all_nodes, 16);
	if (ip)
		memcpy(group + 13, ip + 13, 3);
	mac[0] = mac[1] = 0x33;
	memcpy(mac + 2, group + 12, 4);
}

/* ------------------------------------------------------------------ hosts of an IPv6 lane */

/* The engine refuses numbers that are no unicast IPv4 addresses, so numbers are in 10.0.0.0/8. */
#define NET 0x0a000000u
#define SLOT_BITS 12u
#define GENERATIONS 4096u
#define WAYS 8u /* consecutive slots, one of which an address may have */

static_assert(1u << SLOT_BITS == WEFT_HOSTS, "a slot has SLOT_BITS");

static uint32_t number_of(const struct weft_hosts *h, uint32_t slot)
{
	return NET | h->host[slot].generation << SLOT_BITS | slot;
}

static bool is_ip(const struct weft_host *host, const void *ip)
{
	return host->used != 0 && memcmp(&host->ip, ip, sizeof(host->ip)) == 0;
}

static bool has(const struct weft_hosts *h, uint32_t number)
{
	uint32_t slot = number % WEFT_HOSTS;

	return h->host[slot].used != 0 && number_of(h, slot) == number;
}

static uint32_t first_slot(const struct weft_hosts *h, const void *ip)
{
	return (uint32_t)weft_siphash(&h->key, ip, sizeof(struct in6_addr));
}

uint32_t weft_hosts_find(const struct weft_hosts *h, const void *ip)
{
	uint32_t first = first_slot(h, ip), slot;

	for (uint32_t i = 0; i < WAYS; i++) {
		slot = (first + i) % WEFT_HOSTS;
		if (is_ip(&h->host[slot], ip))
			return number_of(h, slot);
	}
	return 0;
}

uint32_t weft_hosts_number(struct weft_hosts *h, const void *ip)
{
	uint32_t first = first_slot(h, ip), slot;
	struct weft_host *host, *least = NULL;

	for (uint32_t i = 0; i < WAYS; i++) {
		slot = (first + i) % WEFT_HOSTS;
		host = &h->host[slot];
		if (is_ip(host, ip)) {
			host->used = ++h->uses;
			return number_of(h, slot);
		}
		if (host->held == 0 && (!least || host->used < least->used))
			least = host;
	}
	if (!least)
		return 0;
	least->generation = (least->generation + 1) % GENERATIONS;
	memcpy(&least->ip, ip, sizeof(least->ip));
	least->used = ++h->uses;
	return number_of(h, (uint32_t)(least - h->host));
}

void weft_hosts_hold(struct weft_hosts *h, uint32_t number, bool yes)
{
	/* Another host may have got the slot in the meantime: then the connection times out. */
	if (has(h, number))
		h->host[number % WEFT_HOSTS].held += yes ? 1 : -1u;
}

const struct in6_addr *weft_hosts_ip(const struct weft_hosts *h, uint32_t number)
{
	return has(h, number) ? &h->host[number % WEFT_HOSTS].ip : NULL;
}

struct weft_hosts *weft_hosts_new(const void *own)
{
	struct weft_hosts *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	/* If there are no random bytes, a peer can choose the host that it replaces. */
	if (getrandom(&h->key, sizeof(h->key), 0) != sizeof(h->key))
		memset(&h->key, 0, sizeof(h->key));
	weft_hosts_hold(h, weft_hosts_number(h, own), true);
	return h;
}

/* ------------------------------------------------------------------ neighbour discovery */

#define SOLICIT 135u
#define ADVERTISE 136u
#define ANSWERS 0x40u   /* flag of an advertisement: it answers a solicitation */
#define OVERRIDES 0x20u /* flag of an advertisement: it replaces a known MAC address */
#define HOPS 255u
#define OPTION_SOURCE 1u
#define OPTION_TARGET 2u
#define OPTION_UNITS 1u /* length of an option, in units of 8 bytes */

struct nd_msg {
	uint8_t type, code;
	rte_be16_t checksum;
	uint8_t flags[4];
	uint8_t target[16];
	uint8_t option, units;
	uint8_t mac[6];
} __attribute__((packed));

/* ---------------------------------------------------------------- reading */

static bool read_solicit(const struct weft_rx_filter *conf, struct weft_hosts *hosts,
			 const struct weft_nd *nd, uint32_t *sip, uint32_t *tip)
{
	bool ours = memcmp(nd->target, conf->ip6, sizeof(conf->ip6)) == 0;

	*tip = ours ? conf->ip : weft_hosts_find(hosts, nd->target);
	*sip = 0;
	if (!nd->src)
		return *tip != 0;
	*sip = ours ? weft_hosts_number(hosts, nd->src) : weft_hosts_find(hosts, nd->src);
	return *sip != 0;
}

bool weft_nd_read(const struct weft_rx_filter *conf, struct weft_hosts *hosts,
		  const struct weft_nd *nd, struct rte_arp_hdr *arp)
{
	uint32_t sip, tip = conf->ip;

	if (nd->solicit) {
		if (!read_solicit(conf, hosts, nd, &sip, &tip))
			return false;
	} else {
		sip = weft_hosts_find(hosts, nd->target);
		if (sip == 0)
			return false;
		if (nd->to_group)
			tip = sip;
	}
	*arp = (struct rte_arp_hdr){
		.arp_opcode =
			nd->solicit ? RTE_BE16(RTE_ARP_OP_REQUEST) : RTE_BE16(RTE_ARP_OP_REPLY),
		.arp_data.arp_sip = rte_cpu_to_be_32(sip),
		.arp_data.arp_tip = rte_cpu_to_be_32(tip),
	};
	memcpy(&arp->arp_data.arp_sha, nd->mac, RTE_ETHER_ADDR_LEN);
	return true;
}

/* ---------------------------------------------------------------- writing */

struct way {
	const uint8_t *target;
	uint8_t dst[16], dst_mac[6];
	bool probe; /* a test for a duplicate address: the source is ::, and there is no option */
};

static bool find_way(const struct weft_rx_filter *conf, const struct weft_hosts *hosts,
		     const struct rte_arp_hdr *arp, bool request, struct way *w)
{
	uint32_t tip = rte_be_to_cpu_32(arp->arp_data.arp_tip);
	const struct in6_addr *to = weft_hosts_ip(hosts, tip);

	*w = (struct way){.target = conf->ip6};
	if (request) {
		if (!to)
			return false;
		w->probe = arp->arp_data.arp_sip == 0;
		w->target = to->s6_addr;
		weft_ip6_group(w->target, w->dst, w->dst_mac);
	} else if (tip == 0 || tip == conf->ip) {
		weft_ip6_group(NULL, w->dst, w->dst_mac);
	} else {
		if (!to)
			return false;
		memcpy(w->dst, to, sizeof(w->dst));
		memcpy(w->dst_mac, &arp->arp_data.arp_tha, sizeof(w->dst_mac));
	}
	return true;
}

static void fill_msg(const struct weft_rx_filter *conf, const struct rte_arp_hdr *arp, bool request,
		     const struct way *w, struct nd_msg *msg)
{
	uint32_t tip = rte_be_to_cpu_32(arp->arp_data.arp_tip);

	msg->type = request ? SOLICIT : ADVERTISE;
	/* An announcement (tip is our own) has no flags, so that it replaces no known MAC. */
	if (!request && tip != conf->ip)
		msg->flags[0] = tip != 0 ? ANSWERS | OVERRIDES : OVERRIDES;
	memcpy(msg->target, w->target, sizeof(msg->target));
	msg->option = request ? OPTION_SOURCE : OPTION_TARGET;
	msg->units = OPTION_UNITS;
	memcpy(msg->mac, conf->mac, sizeof(msg->mac));
}

uint32_t weft_nd_write(const struct weft_rx_filter *conf, const struct weft_hosts *hosts,
		       const struct rte_arp_hdr *arp, uint8_t *frame)
{
	bool request = arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REQUEST);
	struct rte_ipv6_hdr *ip;
	struct nd_msg *msg;
	struct way w;
	uint16_t len;
	uint8_t l2;

	if (!find_way(conf, hosts, arp, request, &w))
		return 0;
	memset(frame, 0, WEFT_ND_MAX);
	l2 = weft_encap_l2(frame, w.dst_mac, conf->mac, conf->vlan, RTE_ETHER_TYPE_IPV6);
	ip = (struct rte_ipv6_hdr *)(frame + l2);
	msg = (struct nd_msg *)(ip + 1);
	fill_msg(conf, arp, request, &w, msg);
	len = w.probe ? offsetof(struct nd_msg, option) : sizeof(*msg);
	ip->vtc_flow = RTE_BE32(6u << 28);
	ip->payload_len = rte_cpu_to_be_16(len);
	ip->proto = IPPROTO_ICMPV6;
	ip->hop_limits = HOPS;
	if (!w.probe)
		memcpy(&ip->src_addr, conf->ip6, sizeof(conf->ip6));
	memcpy(&ip->dst_addr, w.dst, sizeof(w.dst));
	msg->checksum = (uint16_t)~weft_ip6_sum(ip, msg, len);
	return l2 + (uint32_t)sizeof(*ip) + len;
}
