/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/check_facts.h
 * weft-info --check: the data of a host that its peer receives, as text, and what each end has
 * observed of the other.
 *
 * A text is lines of "WORD VALUES", the last of which is "end". Words that are not known are
 * ignored, so that ends of different versions understand each other as far as possible.
 */
#ifndef INFO_CHECK_FACTS_H
#define INFO_CHECK_FACTS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECK_IFACES 8u
/** Bytes of a text, with the 0 behind it. */
#define CHECK_TEXT 8192u

/** Kinds of lanes to other hosts that `*` opens. */
enum { CHECK_ROCE = 1, CHECK_DPDK = 2, CHECK_UDP = 4 };

struct check_iface {
	char name[IF_NAMESIZE];
	uint32_t ip; /**< host order */
	uint8_t prefix;
	uint16_t vlan; /**< 0 = none */
	uint16_t port; /**< UDP port that receives probes */
	uint32_t mtu;
	int speed; /**< Mb/s; -1 = not known */
};

struct check_facts {
	char version[32], host[64];
	uint64_t nonce; /**< probes to this end contain it */
	uint32_t uid;
	uint32_t kinds;      /**< CHECK_* */
	uint64_t memlock_kb; /**< UINT64_MAX = unlimited */
	uint64_t huge_kb;    /**< kB of free hugepages */
	unsigned int num;
	struct check_iface iface[CHECK_IFACES];
};

/** State of an address in the kernel's ARP table. */
enum check_arp { CHECK_ARP_NONE, CHECK_ARP_KNOWN, CHECK_ARP_FAILED };

/** What an end has observed between one of its interfaces and one of the peer's. */
struct check_pair {
	bool route; /**< a route leads there */
	enum check_arp arp;
	bool small, large; /**< probes that have arrived here: short, of the sender's MTU */
};

/** Index: own interface, the peer's interface. */
struct check_seen {
	struct check_pair pair[CHECK_IFACES][CHECK_IFACES];
};

/** Read this host's data; the nonce is random, and ports are 0. @return 0 or a negative error */
int check_facts_read(struct check_facts *f);
/** @return bytes of the text, without the 0 */
size_t check_facts_write(const struct check_facts *f, char text[CHECK_TEXT]);
/** @param text  of the peer, not trusted; is changed. @return 0 or -EPROTO */
int check_facts_parse(char *text, struct check_facts *f);

/** check_facts_write() of what this end has observed between its interfaces and the peer's. */
size_t check_seen_write(const struct check_seen *s, unsigned int mine, unsigned int theirs,
			char text[CHECK_TEXT]);
/**
 * @param text    of the peer, not trusted; is changed
 * @param mine    interfaces of the end that has sent the text; @p theirs: of its peer
 * @return 0 or -EPROTO
 */
int check_seen_parse(char *text, unsigned int mine, unsigned int theirs, struct check_seen *s);

#endif /* INFO_CHECK_FACTS_H */
