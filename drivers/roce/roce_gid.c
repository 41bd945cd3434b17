/* SPDX-License-Identifier: BSD-3-Clause */

#include "roce_gid.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "roce_wire.h"

bool weft_roce_gid_in(const uint8_t gid[16], const struct weft_roce_subnet *net)
{
	unsigned int bits = net->prefix, whole = bits / 8, rest = bits % 8;

	if (memcmp(gid, net->net, whole) != 0)
		return false;
	return rest == 0 || ((gid[whole] ^ net->net[whole]) >> (8 - rest)) == 0;
}

/* Kinds of entries, best first. */
enum rank { V2_IPV4, V2_IPV4_LOCAL, V2_IPV6, V2_IPV6_LOCAL, V1, NUM_RANKS };

static const char *const rank_words[NUM_RANKS] = {
	[V2_IPV4] = "RoCE v2 over IPv4",
	[V2_IPV4_LOCAL] = "RoCE v2 over link-local IPv4",
	[V2_IPV6] = "RoCE v2 over IPv6",
	[V2_IPV6_LOCAL] = "RoCE v2 over link-local IPv6",
	[V1] = "RoCE v1",
};

static enum rank rank_of(const struct weft_roce_gid *g)
{
	if (!g->v2)
		return V1;
	if (weft_roce_gid_is_ipv4(g->gid))
		return g->gid[12] == 169 && g->gid[13] == 254 ? V2_IPV4_LOCAL : V2_IPV4;
	return g->gid[0] == 0xfe && (g->gid[1] & 0xc0) == 0x80 ? V2_IPV6_LOCAL : V2_IPV6;
}

/* The @p n-th entry in a list that begins with the best ones. */
static const struct weft_roce_gid *nth_best(const struct weft_roce_gid *table, int num, int n)
{
	int rank, i;

	for (rank = 0; rank < NUM_RANKS; rank++)
		for (i = 0; i < num; i++)
			if (rank_of(&table[i]) == (enum rank)rank && n-- == 0)
				return &table[i];
	return NULL;
}

/* "0: 10.0.0.1 v2, 1: fe80::1 v1 and 3 more", as many as fit, the best ones first. */
static void print_table(const struct weft_roce_gid *table, int num, char *buf, size_t size)
{
	const struct weft_roce_gid *g;
	char addr[48], entry[80];
	size_t used = 0, len;
	int i;

	buf[0] = '\0';
	for (i = 0; i < num; i++) {
		g = nth_best(table, num, i);
		weft_roce_gid_print(g->gid, addr, sizeof(addr));
		len = (size_t)snprintf(entry, sizeof(entry), "%s%u: %s %s", i ? ", " : "", g->index,
				       addr, g->v2 ? "v2" : "v1");
		if (used + len + sizeof(" and 256 more") > size) {
			snprintf(buf + used, size - used, " and %d more", num - i);
			return;
		}
		memcpy(buf + used, entry, len + 1);
		used += len;
	}
}

static int refuse_gid(const struct weft_roce_gid *table, int num, int index,
		      const struct weft_roce_subnet *subnet, char *why, size_t why_len)
{
	char list[160], net[48];

	print_table(table, num, list, sizeof(list));
	if (num == 0)
		snprintf(why, why_len,
			 "it has no GID: give its network device an IP address and set it up");
	else if (index >= 0)
		snprintf(why, why_len, "it has no GID with index %d; there are %s", index, list);
	else if (subnet && subnet->prefix) {
		weft_roce_gid_print(subnet->net, net, sizeof(net));
		snprintf(why, why_len,
			 "it has no RoCE v2 GID in the subnet %s (first %u bits); there are %s",
			 net,
			 weft_roce_gid_is_ipv4(subnet->net) ? subnet->prefix - 96u : subnet->prefix,
			 list);
	} else
		snprintf(why, why_len,
			 "it has no RoCE v2 GID, only %s; RoCE v1 is used only when gid=N requests "
			 "it",
			 list);
	return -EADDRNOTAVAIL;
}

int weft_roce_gid_pick(const struct weft_roce_gid *table, int num, int index,
		       const struct weft_roce_subnet *subnet, char *why, size_t why_len)
{
	int best = -1, same = 0, i;

	for (i = 0; i < num; i++) {
		if (index >= 0) {
			if (table[i].index != index)
				continue;
			snprintf(why, why_len, "%s, requested by gid=%d",
				 rank_words[rank_of(&table[i])], index);
			return i;
		}
		if (rank_of(&table[i]) == V1)
			continue;
		if (subnet && subnet->prefix && !weft_roce_gid_in(table[i].gid, subnet))
			continue;
		if (best >= 0 && rank_of(&table[i]) == rank_of(&table[best]))
			same++;
		if (best < 0 || rank_of(&table[i]) < rank_of(&table[best])) {
			best = i;
			same = 1;
		}
	}
	if (best < 0)
		return refuse_gid(table, num, index, subnet, why, why_len);
	if (same > 1)
		snprintf(why, why_len, "%s%s, the first of %d", rank_words[rank_of(&table[best])],
			 subnet && subnet->prefix ? " in the subnet" : "", same);
	else
		snprintf(why, why_len, "%s%s", rank_words[rank_of(&table[best])],
			 subnet && subnet->prefix ? " in the subnet" : "");
	return best;
}
