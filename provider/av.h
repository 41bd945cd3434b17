/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file av.h
 * Address vectors. An fi_addr_t is the index of an address in its vector, for FI_AV_MAP as for
 * FI_AV_TABLE. Inserting an address does not connect: the first operation does.
 */
#ifndef WFI_AV_H
#define WFI_AV_H

#include "provider/domain.h"
#include "provider/peer.h"

struct wfi_av_entry {
	struct wfi_peer *peer; /**< NULL: the entry is free */
	uint16_t number;       /**< number of the endpoint in its process */
	struct wfi_addr addr;
};

struct wfi_av {
	struct fid_av av;
	struct wfi_domain *domain;
	struct wfi_eq *eq; /**< FI_EVENT: insertions are reported to it */
	unsigned int refs; /**< endpoints */
	bool events;
	size_t count, size; /**< end of the used entries; number of entries */
	struct wfi_av_entry *entries;
	size_t hash_size;
	uint32_t *hash; /**< index + 1, by worker and number; 0: free; UINT32_MAX: removed */
};

int wfi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		void *context);

/** The entry of an address. Locked. @return NULL: there is none */
static inline struct wfi_av_entry *wfi_av_entry(const struct wfi_av *av, fi_addr_t addr)
{
	if (addr >= av->count || !av->entries[addr].peer)
		return NULL;
	return &av->entries[addr];
}

/** The fi_addr_t of an endpoint. Locked. @return FI_ADDR_NOTAVAIL: it is not in the vector */
fi_addr_t wfi_av_find(const struct wfi_av *av, uint64_t id, uint16_t number);

#endif /* WFI_AV_H */
