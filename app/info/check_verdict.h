/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/check_verdict.h
 * weft-info --check: what both ends have observed becomes one verdict with a remedy. Pure.
 */
#ifndef INFO_CHECK_VERDICT_H
#define INFO_CHECK_VERDICT_H

#include "info/check_facts.h"

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
	CHECK_BLOCKED,  /**< routes lead there, addresses are resolved, and UDP does not arrive */
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

#endif /* INFO_CHECK_VERDICT_H */
