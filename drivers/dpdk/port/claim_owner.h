/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/claim_owner.h
 * Who has the name of a claim (port/claim.h), and whether that is over soon.
 */
#ifndef WEFT_CLAIM_OWNER_H
#define WEFT_CLAIM_OWNER_H

#include <sys/socket.h>
#include <sys/un.h>

#include "port/claim.h"

enum weft_claim_held {
	WEFT_HELD_FREE, /**< nobody is known to have it */
	/** bound, and nobody listens: a claim that begins, or somebody in the way */
	WEFT_HELD_SILENT,
	WEFT_HELD_UNTRUSTED, /**< by neither root nor the own user */
	WEFT_HELD,           /**< by a process that lives */
	WEFT_HELD_ENDING,    /**< the kernel is closing what its process had open */
	WEFT_HELD_INHERITED, /**< its process has ended, and another has the descriptor */
};

/** @return a descriptor, or a negative errno */
int weft_claim_socket(void);

enum weft_claim_held weft_claim_look(const struct sockaddr_un *un, socklen_t len,
				     struct weft_claim_owner *owner);

#endif /* WEFT_CLAIM_OWNER_H */
