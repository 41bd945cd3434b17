/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/info.h
 * Capabilities, flags and limits that the provider offers, for fi_getinfo() and checks in calls.
 */
#ifndef WFI_INFO_H
#define WFI_INFO_H

#include "provider/provider.h"

#define WFI_CAPS_PRIMARY (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)
#define WFI_CAPS_RMA (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define WFI_CAPS_DIRECTION (FI_SEND | FI_RECV | WFI_CAPS_RMA)
/* Capabilities of domains: communication within a host and between hosts. */
#define WFI_CAPS_DOMAIN (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define WFI_CAPS_MEMORY (FI_RMA | FI_ATOMIC)
/*
 * The default mr_mode: the provider chooses keys of regions, and the memory must be mapped. If
 * hints lack FI_MR_PROV_KEY, the application chooses keys.
 */
#define WFI_MR_MODE (FI_MR_PROV_KEY | FI_MR_ALLOCATED)
/*
 * Values of mr_mode, whose names 2.x deprecates. FI_MR_BASIC: peers use virtual addresses.
 * FI_MR_SCALABLE: they use offsets, and the application chooses keys.
 */
#define WFI_MR_BASIC 1
#define WFI_MR_SCALABLE 2
#define WFI_CAPS_FREE (FI_MULTI_RECV | WFI_CAPS_DOMAIN)
/*
 * Capabilities that cost something, or change the meaning of calls: an application that requests
 * any capabilities gets these only if they are among them.
 */
#define WFI_CAPS_REQUESTED (FI_SOURCE | FI_SOURCE_ERR | FI_DIRECTED_RECV | FI_FENCE | FI_RMA_EVENT)
#define WFI_CAPS (WFI_CAPS_PRIMARY | WFI_CAPS_DIRECTION | WFI_CAPS_FREE | WFI_CAPS_REQUESTED)

#define WFI_TX_OP_FLAGS                                                          \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)
#define WFI_RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV)
/* Flags that fi_sendmsg() and fi_tsendmsg() accept. */
#define WFI_SEND_FLAGS (WFI_TX_OP_FLAGS | FI_REMOTE_CQ_DATA | FI_MORE)

/* Messages from one endpoint to another match in the order of their sends. */
#define WFI_ORDER FI_ORDER_SAS
/*
 * Reads, writes and atomics of one endpoint at another take effect in any order. For an endpoint
 * that requests one of these orders, a fence precedes each read, write and atomic.
 */
#define WFI_ORDER_FENCED                                                                \
	(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_RMA_RAR | \
	 FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | \
	 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
/* Completions come in any order: 1.x calls it FI_ORDER_NONE, which is deprecated in 2.x. */
#define WFI_COMP_ORDER 0

/*
 * The maximum number of endpoints and shared receive contexts of a process: addresses have one byte
 * for the number of an endpoint.
 */
#define WFI_ENDPOINTS 256
/*
 * Bytes of the largest message that an endpoint can inject: the least and the greatest value.
 * Open MPI injects all messages up to the endpoint's value, which costs a copy of each.
 */
#define WFI_INJECT_SIZE 4096
#define WFI_INJECT_MAX 16384
#define WFI_CQ_DATA_SIZE 8
#define WFI_MAX_MSG_SIZE (1ull << 40)
/* The maximum `size` of tx_attr and rx_attr. The provider does not limit operations to it. */
#define WFI_QUEUE_SIZE 65536
/* Every bit of a tag can be matched. */
#define WFI_TAG_FORMAT 0xaaaaaaaaaaaaaaaaull
/* Protocols of providers have the highest bit set, for which 2.x has no name. */
#define WFI_PROTOCOL ((1u << 31) | 0x57454654u)
#define WFI_PROTOCOL_VERSION 1

/**
 * The key of attributes that an application has passed: the domain's or the endpoint's.
 * @param[out] key  WFI_KEY_LEN bytes; NULL: there is none
 * @return 0, or -FI_EINVAL: another size, no bytes, or two different keys; a warning is logged
 */
int wfi_info_key(const struct fi_info *info, const uint8_t **key);

int wfi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info);

#endif /* WFI_INFO_H */
