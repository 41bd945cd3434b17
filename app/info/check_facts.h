/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/check_facts.h
 * weft-info --check: the data of a host that its peer receives, as text, what each end has observed
 * of the other, and the verdict with its remedy, which follows from both.
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
/** Bytes of IP of the longest probe. */
#define CHECK_PROBE_MAX 9216u

/** Kinds of lanes to other hosts that the default of WEFT_LANES opens. */
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
	bool small; /**< a short probe has arrived here */
	bool large; /**< a probe of check_probe_size() of the sender's interface has arrived here */
};

/** Index: own interface, the peer's interface. */
struct check_seen {
	struct check_pair pair[CHECK_IFACES][CHECK_IFACES];
};

/** Bytes of IP with which an interface is probed: its MTU, at most CHECK_PROBE_MAX. */
uint32_t check_probe_size(const struct check_iface *i);

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

/* ---- the verdict ---------------------------------------------------------------------------- */

struct check_end {
	struct check_facts facts;
	struct check_seen seen;
};

/**
 * Faults of a host come first. Of the faults of a pair, the one whose frames get furthest comes
 * first. The last two let lanes work.
 */
enum check_fault {
	CHECK_VERSION,  /**< the ends have different versions */
	CHECK_NO_IFACE, /**< an end has no interface that is up and has an IPv4 address */
	CHECK_KINDS,    /**< the ends choose lanes of different kinds */
	CHECK_ONE_WAY,  /**< UDP arrives in one direction only */
	CHECK_BLOCKED,  /**< routes exist, ARP has not failed in a subnet, and no UDP arrives */
	CHECK_ARP,      /**< the address is in the own subnet, and no host answers for it */
	CHECK_SUBNET,   /**< no route leads from one to the other, as between subnets */
	CHECK_MTU,      /**< frames of an interface's MTU do not arrive */
	CHECK_FINE,
};

struct check_verdict {
	enum check_fault fault;
	unsigned int rails; /**< pairs that carry UDP both ways, each interface counted once */
	char text[512], remedy[512];
};

void check_decide(const struct check_end *here, const struct check_end *there,
		  struct check_verdict *v);

#endif /* INFO_CHECK_FACTS_H */
