/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file memif/messages.h
 * The messages on a control socket of memif 2.0, and checks of what they bring. All of these
 * messages have the size that DPDK's net_memif sends.
 */
#ifndef WEFT_MEMIF_MESSAGES_H
#define WEFT_MEMIF_MESSAGES_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define WEFT_MEMIF_VERSION 0x0200u
#define WEFT_MEMIF_SECRET 24u
/** Flag of ADD_RING: the client sends. */
#define WEFT_MEMIF_RING_C2S 1u

enum weft_memif_type {
	WEFT_MEMIF_ACK = 1,
	WEFT_MEMIF_HELLO,
	WEFT_MEMIF_INIT,
	WEFT_MEMIF_ADD_REGION,
	WEFT_MEMIF_ADD_RING,
	WEFT_MEMIF_CONNECT,
	WEFT_MEMIF_CONNECTED,
	WEFT_MEMIF_DISCONNECT,
};

struct __attribute__((packed)) weft_memif_hello {
	char name[32];
	uint16_t min_version, max_version, max_region, max_s2c, max_c2s;
	uint8_t max_log2_ring;
};

struct __attribute__((packed)) weft_memif_init {
	uint16_t version;
	uint32_t id;
	uint8_t mode; /**< 0 = Ethernet frames */
	char secret[WEFT_MEMIF_SECRET], name[32];
};

struct __attribute__((packed)) weft_memif_add_region {
	uint16_t index;
	uint64_t size;
};

struct __attribute__((packed)) weft_memif_add_ring {
	uint16_t flags, index, region;
	uint32_t offset;
	uint8_t log2_size;
	uint16_t private_size;
};

struct __attribute__((packed)) weft_memif_disconnect {
	uint32_t code;
	char text[96];
};

struct __attribute__((packed)) weft_memif_message {
	uint16_t type; /**< enum weft_memif_type */
	union {
		struct weft_memif_hello hello;
		struct weft_memif_init init;
		struct weft_memif_add_region region;
		struct weft_memif_add_ring ring;
		struct weft_memif_disconnect disconnect;
		char connected[32];
		uint8_t all[126];
	};
};

static_assert(sizeof(struct weft_memif_message) == 128, "memif's messages");

/** Compare secrets, in the same time for a wrong one and for the right one. */
bool weft_memif_same_secret(const char a[WEFT_MEMIF_SECRET], const char b[WEFT_MEMIF_SECRET]);

/** A write to any other file that a peer passes could block, or change that file. */
bool weft_memif_is_eventfd(int fd);

#endif /* WEFT_MEMIF_MESSAGES_H */
