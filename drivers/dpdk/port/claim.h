/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/claim.h
 * Names that one process of a network namespace holds at a time.
 *
 * A claim is a listening socket with an abstract address. The kernel separates these addresses by
 * network namespace: two containers on the host's network share them. The kernel reports the
 * listener, and frees the name when the last descriptor is closed, however the owner ended.
 *
 * The kernel lets each user bind each name. So a claim counts only if its owner is root or the same
 * user, and listens under the name. A claim of another or an unknown user is reported and ignored.
 *
 * The names by which a device is claimed, so that one process has it:
 *
 *   weft/netdev/INDEX/QUEUE  a kernel interface's receive queue. net_af_xdp claims those of its
 *                            arguments; net_af_packet receives from all, so it claims all
 *   weft/BUS/NAME            a device that is not virtual, by its bus and name in DPDK:
 *                            weft/pci/0000:3b:02.0
 *   weft/memif/END/ID/HASH   one end of a connection; the hash is of the socket
 *   weft/vdev/NAME/HASH      another virtual device that WEFT_PORTS chose; the hash is of its
 *                            arguments
 *
 * Needs libc only: devices are chosen before the EAL starts.
 */
#ifndef WEFT_CLAIM_H
#define WEFT_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of the longest name, with its zero byte. */
#define WEFT_CLAIM_NAME 96

/** The uid of no user, so not root's either. */
#define WEFT_CLAIM_NO_UID ((unsigned int)-1)

struct weft_claim_owner {
	int pid;           /**< 0 = not known */
	unsigned int uid;  /**< #WEFT_CLAIM_NO_UID = not known */
	bool in_container; /**< its PID namespace is not visible to this process */
	char name[32];     /**< name of the process, printable; "" = not known */
};

/**
 * Hold @p name until the descriptor is closed. The call waits up to 10 s for an owner that is
 * ending. It waits up to 1 s for an owner that does not listen, is not found, or has left the
 * descriptor to another process.
 * @return a descriptor; -EADDRINUSE: @p owner has it; -EPERM: the name is bound, but the socket
 *   does not listen, or its owner is unknown or not trusted; another negative errno: nothing can be
 *   claimed here
 */
int weft_claim(const char *name, struct weft_claim_owner *owner);

/** weft_claim() without waiting. -EAGAIN: @p owner may be ending, or may have no claim. */
int weft_claim_now(const char *name, struct weft_claim_owner *owner);

/** @return this process's descriptor of the name, whichever library opened it; -1 = none */
int weft_claim_find(const char *name);

/** Does a trusted owner hold the name? May wait as weft_claim(). */
bool weft_claimed(const char *name, struct weft_claim_owner *owner);

/** Text such as "process 4711 (weft-perf)", "a process of another container". */
void weft_claim_owner_text(const struct weft_claim_owner *owner, char *buf, size_t size);

void weft_claim_memif_name(char name[WEFT_CLAIM_NAME], const char *path, bool abstract, bool server,
			   unsigned int id);

void weft_claim_args_name(char name[WEFT_CLAIM_NAME], const char *device, const char *args);

/* ---- devices -------------------------------------------------------------------------------- */

#define WEFT_CLAIM_QUEUES 256u

struct weft_device {
	const char *bus;  /**< "pci", "vdev" */
	const char *name; /**< "0000:3b:02.0", "net_af_xdp0" */
	const char *args; /**< "iface=eth1,start_queue=2"; NULL = none */
};

struct weft_device_claim {
	int *fds; /**< descriptors that hold the names; from malloc() */
	unsigned int num;
	struct weft_claim_owner owner; /**< owner of the name that could not be claimed */
	/** text for the name that was tried last: "queue 2 of kernel interface eth1" */
	char what[160];
};

/** @return queues that receive the interface's frames, at most WEFT_CLAIM_QUEUES; 1 if unknown */
unsigned int weft_claim_receive_queues(unsigned int if_index);

void weft_claim_queue_name(char name[WEFT_CLAIM_NAME], unsigned int if_index, unsigned int queue);
void weft_claim_bus_name(char name[WEFT_CLAIM_NAME], const char *bus, const char *device);

/** Copy the value of @p key in a device's arguments. @return false: there is none */
bool weft_device_arg(const char *args, const char *key, char *buf, size_t size);

/**
 * Hold all names of a device.
 * @param claim  weft_claim() or weft_claim_now()
 * @return 0, also for a virtual device without a name here; else as @p claim, -ENODEV (no such
 *   kernel interface) or -ENOMEM, and nothing is held
 */
int weft_device_claim(const struct weft_device *d,
		      int (*claim)(const char *name, struct weft_claim_owner *owner),
		      struct weft_device_claim *c);
void weft_device_unclaim(struct weft_device_claim *c);

#endif /* WEFT_CLAIM_H */
