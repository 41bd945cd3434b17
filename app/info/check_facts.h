/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/check_facts.h
 * The data that both ends of weft-info --check exchange as text, and the verdict that follows.
 *
 * A text is lines of "WORD VALUES", the last of which is "end". Unknown words are ignored, so that
 * ends of different versions also reach a verdict.
 */
#ifndef INFO_CHECK_FACTS_H
#define INFO_CHECK_FACTS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECK_IFACES 8u
/** Bytes of a text, with the terminating 0. */
#define CHECK_TEXT 8192u
/** Bytes of the longest probe, IP header included. */
#define CHECK_PROBE_MAX 9216u

/** Kinds of lanes to other hosts that the default of WEFT_LANES opens. */
enum { CHECK_ROCE = 1, CHECK_DPDK = 2, CHECK_UDP = 4 };

struct check_iface {
	char name[IF_NAMESIZE];
	uint32_t ip; /**< host order */
	uint8_t prefix;
	uint16_t vlan; /**< 0 = none */
	uint16_t port; /**< UDP port that sends and receives probes; 0 = none yet */
	uint32_t mtu;
	int speed; /**< Mb/s; -1 = not known */
};

struct check_facts {
	char version[32], host[64];
	uint64_t nonce; /**< probes to this end contain it */
	uint32_t uid;
	uint32_t kinds;      /**< bits CHECK_ROCE, CHECK_DPDK, CHECK_UDP */
	uint64_t memlock_kb; /**< UINT64_MAX = unlimited */
	uint64_t huge_kb;    /**< kB of free hugepages of the default size */
	unsigned int num;
	struct check_iface iface[CHECK_IFACES];
};

/** State in the kernel's ARP table. FAILED: the entry has no MAC address. */
enum check_arp { CHECK_ARP_NONE, CHECK_ARP_KNOWN, CHECK_ARP_FAILED };

/** What one end has observed between one of its interfaces and one of the peer's. */
struct check_pair {
	bool route; /**< a route leads there, or the kernel gave no answer */
	enum check_arp arp;
	bool small; /**< a short probe of the peer has arrived */
	bool large; /**< a probe with check_probe_size() of the peer's interface has arrived */
};

struct check_seen {
	struct check_pair pair[CHECK_IFACES][CHECK_IFACES]; /**< [own][the peer's] */
};

/** Bytes of an interface's large probes, IP header included: its MTU or CHECK_PROBE_MAX. */
uint32_t check_probe_size(const struct check_iface *i);

/** The nonce becomes random, and ports 0. @return 0 or a negative error */
int check_facts_read(struct check_facts *f);
/** @return bytes of the text, without the 0 */
size_t check_facts_write(const struct check_facts *f, char text[CHECK_TEXT]);
/** @param text  of the peer, not trusted; the function changes it. @return 0 or -EPROTO */
int check_facts_parse(char *text, struct check_facts *f);

/** @param mine  number of this end's interfaces. @return as check_facts_write() */
size_t check_seen_write(const struct check_seen *s, unsigned int mine, unsigned int theirs,
			char text[CHECK_TEXT]);
/** As check_facts_parse(). @param mine  number of the sender's interfaces; @p theirs: own */
int check_seen_parse(char *text, unsigned int mine, unsigned int theirs, struct check_seen *s);

/* ---- the verdict ---------------------------------------------------------------------------- */

struct check_end {
	struct check_facts facts;
	struct check_seen seen;
};

/**
 * The verdict is the first of these faults that exists. Faults of a host come first. The further
 * frames of a pair get, the earlier its fault comes. With the last two, lanes work.
 */
enum check_fault {
	CHECK_VERSION,
	CHECK_NO_IFACE, /**< an end has no interface that is up and has an IPv4 address */
	CHECK_KINDS,    /**< by default the ends open no lanes of one kind */
	CHECK_ONE_WAY,  /**< UDP arrives in one direction only */
	CHECK_BLOCKED,  /**< no UDP arrives, although routes exist; not CHECK_ARP */
	CHECK_ARP,      /**< in one subnet, and no host answers ARP */
	CHECK_SUBNET,   /**< no UDP arrives; a route is missing in at least one direction */
	CHECK_MTU,      /**< short frames arrive, and frames of an interface's MTU do not */
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
