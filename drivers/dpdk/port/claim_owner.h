/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/claim_owner.h
 * The owner of a claim's name (port/claim.h), and whether it will soon be free.
 */
#ifndef WEFT_CLAIM_OWNER_H
#define WEFT_CLAIM_OWNER_H

#include <sys/socket.h>
#include <sys/un.h>

#include "port/claim.h"

enum weft_claim_held {
	WEFT_HELD_FREE, /**< no owner is known */
	/** bound without a listener: a claim that begins, or an unrelated socket */
	WEFT_HELD_SILENT,
	WEFT_HELD_UNTRUSTED, /**< by a user that is neither root nor this user */
	WEFT_HELD,           /**< by a process that is alive */
	WEFT_HELD_ENDING,    /**< its process is ending: the kernel closes its files */
	WEFT_HELD_INHERITED, /**< its process has ended, and another one has the descriptor */
};

/** @return a descriptor, or a negative errno */
int weft_claim_socket(void);

enum weft_claim_held weft_claim_look(const struct sockaddr_un *un, socklen_t len,
				     struct weft_claim_owner *owner);

#endif /* WEFT_CLAIM_OWNER_H */
