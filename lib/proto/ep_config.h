/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file proto/ep_config.h
 * The configuration that endpoints with equal lanes share: their model, and the arrays from which
 * the protocol of a message is chosen. Computed once per set of lanes and settings, stored per
 * worker, with a reference count.
 */
#ifndef WEFT_EP_CONFIG_H
#define WEFT_EP_CONFIG_H

#include <sys/queue.h>

#include "proto/proto.h"

struct weft_conf;

/**
 * Read the settings that affect the choice of protocols. @param bcopy_bw  used when none is set,
 * bytes/s
 */
void weft_model_conf_read(struct weft_model_conf *to, const struct weft_conf *from, double bcopy_bw,
			  const struct weft_proto *const *protos);

/** An array for operations that lack what some protocols need, made at the first of them. */
struct weft_proto_variant {
	struct weft_proto_variant *next;
	struct weft_proto_key key;
	struct weft_proto_select select;
};

struct weft_ep_config {
	/**
	 * By operation and buffer type. num == 0: not computed yet (buffers that are not contiguous
	 * are computed at the first use).
	 */
	struct weft_proto_select select[WEFT_NUM_OPS][WEFT_NUM_BUFS];
	struct weft_proto_variant *variants;
	struct weft_model model;
	LIST_ENTRY(weft_ep_config) link;
	uint32_t refs;
	bool logged; /* WEFT_PROTO_INFO has logged it */
};

LIST_HEAD(weft_ep_configs, weft_ep_config);

/**
 * The configuration for @p model: an existing one, or a new one. Release it by
 * weft_ep_config_put().
 * @return NULL = no memory
 */
struct weft_ep_config *weft_ep_config_get(struct weft_ep_configs *list,
					  const struct weft_model *model);
void weft_ep_config_put(struct weft_ep_config *config);

/** Compute the array of a buffer type at its first use. */
void weft_ep_config_fill(struct weft_ep_config *config, enum weft_op op, weft_buf buf);

/** The array for an operation and a buffer. */
static inline const struct weft_proto_select *weft_ep_config_select(struct weft_ep_config *config,
								    enum weft_op op, weft_buf buf)
{
	struct weft_proto_select *sel = &config->select[op][buf];

	if (__builtin_expect(sel->num == 0, 0))
		weft_ep_config_fill(config, op, buf);
	return sel;
}

/**
 * The range of @p length among the protocols that do not need what the key lacks. @return NULL = no
 * memory
 */
const struct weft_proto_range *weft_ep_config_variant(struct weft_ep_config *config,
						      const struct weft_proto_key *key,
						      size_t length);

/**
 * The range of @p length for an operation. The general array serves if the protocol it gives needs
 * nothing that the key lacks.
 */
static inline const struct weft_proto_range *weft_ep_config_range(struct weft_ep_config *config,
								  const struct weft_proto_key *key,
								  size_t length)
{
	const struct weft_proto_range *r =
		weft_proto_range(weft_ep_config_select(config, key->op, key->buf), length);

	if (r->proto && !(r->proto->needs & key->lacks))
		return r;
	return key->lacks ? weft_ep_config_variant(config, key, length) : r;
}

#endif /* WEFT_EP_CONFIG_H */
