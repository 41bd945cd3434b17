/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file port/claim_dev.h
 * The names by which a device is claimed (port/claim.h), so that one process has it:
 *
 *   weft/netdev/INDEX/QUEUE  a kernel interface's receive queue. net_af_xdp has the queues that it
 *                            was given; net_af_packet receives from all, so it claims all
 *   weft/pci/ADDRESS         a device, with its bus and name as in DPDK
 *   weft/memif/END/ID/HASH   one end of a connection; the hash is of the socket
 *
 * Needs libc only: devices are chosen before the EAL starts.
 */
#ifndef WEFT_CLAIM_DEV_H
#define WEFT_CLAIM_DEV_H

#include "port/claim.h"

/** Queues of an interface that are claimed at most. */
#define WEFT_CLAIM_QUEUES 256u

/** A device as the EAL names it. */
struct weft_device {
	const char *bus;  /**< "pci", "vdev" */
	const char *name; /**< "0000:3b:02.0", "net_af_xdp0" */
	const char *args; /**< "iface=eth1,start_queue=2"; NULL = none */
};

/** Names that are held, or the reason why they are not. */
struct weft_device_claim {
	int *fds; /**< by malloc() */
	unsigned int num;
	struct weft_claim_owner owner; /**< of the name that could not be claimed */
	char what[160];                /**< such as "queue 2 of kernel interface eth1" */
};

/** @return the number of queues that receive a kernel interface's frames */
unsigned int weft_claim_receive_queues(unsigned int if_index);

void weft_claim_queue_name(char name[WEFT_CLAIM_NAME], unsigned int if_index, unsigned int queue);
void weft_claim_bus_name(char name[WEFT_CLAIM_NAME], const char *bus, const char *device);

/** The value of @p key in a device's arguments. @return false: there is none */
bool weft_device_arg(const char *args, const char *key, char *buf, size_t size);

/**
 * Hold all names of a device.
 *
 * @param claim  weft_claim() or weft_claim_now()
 * @return 0, also for a virtual device without names, which no other process could have; else as
 * @p claim, -ENODEV (the kernel interface does not exist) or -ENOMEM, and nothing is held
 */
int weft_device_claim(const struct weft_device *d,
		      int (*claim)(const char *name, struct weft_claim_owner *owner),
		      struct weft_device_claim *c);
void weft_device_unclaim(struct weft_device_claim *c);

#endif /* WEFT_CLAIM_DEV_H */
