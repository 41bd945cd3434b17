/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/claim.h
 * Names that one process of a network namespace holds at a time.
 *
 * A claim is a listening socket with an abstract address. The kernel separates these addresses by
 * network namespace, as it does interface indices, independent of the files that the processes see:
 * two containers on the host's network share them, two with networks of their own do not. The
 * kernel reports the listener. It frees the name when the last descriptor is closed, however the
 * owner ended. There is no file that could be stale, or be another user's link.
 *
 * The kernel lets each user bind each name. So a claim counts only if its owner is root or the same
 * user, and listens under the name. A claim of another or an unknown user is reported and ignored.
 */
#ifndef WEFT_CLAIM_H
#define WEFT_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Longest name, with its zero byte, that fits a socket address. */
#define WEFT_CLAIM_NAME 96

/** The uid of no user, so not root's either. */
#define WEFT_CLAIM_NO_UID ((unsigned int)-1)

struct weft_claim_owner {
	int pid;           /**< 0 = not known */
	unsigned int uid;  /**< #WEFT_CLAIM_NO_UID = not known */
	bool in_container; /**< its PID namespace is not visible to this process */
	char name[32];     /**< of the process, printable; "" = not known */
};

/**
 * Hold @p name until the descriptor is closed. The call waits for an owner that is ending, for up
 * to 10 s. It waits for up to 1 s for an owner that does not listen, or that has ended and left the
 * descriptor to another process.
 * @return a descriptor; -EADDRINUSE: @p owner has it; -EPERM: @p owner has it and is not trusted;
 * another negative errno: nothing can be claimed here
 */
int weft_claim(const char *name, struct weft_claim_owner *owner);

/** The same without waiting. -EAGAIN: @p owner has it, and it may soon be free */
int weft_claim_now(const char *name, struct weft_claim_owner *owner);

/**
 * Does this process hold it, by any of its libraries?
 * @return the descriptor, or -1
 */
int weft_claim_find(const char *name);

/** Does a trusted owner hold it? */
bool weft_claimed(const char *name, struct weft_claim_owner *owner);

/** Text such as "process 4711 (weft-perf)", "a process of another container". */
void weft_claim_owner_text(const struct weft_claim_owner *owner, char *buf, size_t size);

/** The name of one end of a memif connection. */
void weft_claim_memif_name(char name[WEFT_CLAIM_NAME], const char *path, bool abstract, bool server,
			   unsigned int id);

/** The name of a virtual device with its arguments. */
void weft_claim_args_name(char name[WEFT_CLAIM_NAME], const char *device, const char *args);

#endif /* WEFT_CLAIM_H */
