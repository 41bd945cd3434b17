/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info.h
 * What the provider offers: one place, used by fi_getinfo() and by the checks of calls.
 */
#ifndef WFI_INFO_H
#define WFI_INFO_H

#include "provider/provider.h"

/* Capabilities: primary ones, and those that an application may request in addition. */
#define WFI_CAPS_PRIMARY (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)
#define WFI_CAPS_RMA (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define WFI_CAPS_DIRECTION (FI_SEND | FI_RECV | WFI_CAPS_RMA)
/* Capabilities of a domain, independent of a direction. */
#define WFI_CAPS_DOMAIN (FI_LOCAL_COMM | FI_REMOTE_COMM)
/* Capabilities for peers' memory. */
#define WFI_CAPS_MEMORY (FI_RMA | FI_ATOMIC)
/* Memory regions for peers: the provider chooses keys, and the memory must be mapped. */
#define WFI_MR_MODE (FI_MR_PROV_KEY | FI_MR_ALLOCATED)
#define WFI_CAPS_FREE (FI_MULTI_RECV | WFI_CAPS_DOMAIN)
/*
 * These cost something, or change the meaning of calls: only applications that request them get
 * them.
 */
#define WFI_CAPS_ASKED (FI_SOURCE | FI_DIRECTED_RECV)
#define WFI_CAPS (WFI_CAPS_PRIMARY | WFI_CAPS_DIRECTION | WFI_CAPS_FREE | WFI_CAPS_ASKED)

#define WFI_TX_OP_FLAGS                                                          \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)
#define WFI_RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV)
/* Flags of calls that have flags. */
#define WFI_SEND_FLAGS (WFI_TX_OP_FLAGS | FI_REMOTE_CQ_DATA | FI_MORE)

/*
 * Messages from one endpoint to another match in the order of their sends; nothing else is ordered.
 */
#define WFI_ORDER FI_ORDER_SAS
/* Completions come in any order: 1.x calls it FI_ORDER_NONE, which is deprecated in 2.x. */
#define WFI_COMP_ORDER 0

/* Endpoints of a process. */
#define WFI_ENDPOINTS 256
#define WFI_INJECT_SIZE 4096
#define WFI_CQ_DATA_SIZE 8
#define WFI_MAX_MSG_SIZE (1ull << 40)
/* The provider has no limit of queued operations. */
#define WFI_QUEUE_SIZE 65536
/* Every bit of a tag can be matched. */
#define WFI_TAG_FORMAT 0xaaaaaaaaaaaaaaaaull
/* Protocols of providers have the highest bit set, for which 2.x has no name. */
#define WFI_PROTOCOL ((1u << 31) | 0x57454654u)
#define WFI_PROTOCOL_VERSION 1

int wfi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info);

#endif /* WFI_INFO_H */
