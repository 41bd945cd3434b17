/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>
#include <string.h>

#include "proto/ep_config.h"
#include "base/log.h"
#include "proto/select.h"

void weft_ep_config_fill(struct weft_ep_config *config, enum weft_op op, weft_buf buf)
{
	struct weft_proto_key key = {op, buf};

	weft_proto_choose(&config->model, &key, &config->select[op][buf], NULL, 0);
}

const struct weft_proto_range *weft_ep_config_variant(struct weft_ep_config *config,
						      const struct weft_proto_key *key,
						      size_t length)
{
	struct weft_proto_variant *v = config->variants;

	while (v && (v->key.op != key->op || v->key.buf != key->buf || v->key.lacks != key->lacks))
		v = v->next;
	if (!v) {
		/* Their number is bounded by operations, buffer types and needs: few. */
		v = malloc(sizeof(*v));
		if (!v)
			return NULL;
		v->key = *key;
		weft_proto_choose(&config->model, key, &v->select, NULL, 0);
		v->next = config->variants;
		config->variants = v;
	}
	return weft_proto_range(&v->select, length);
}

static struct weft_ep_config *config_new(const struct weft_model *model)
{
	struct weft_ep_config *config = calloc(1, sizeof(*config));

	if (!config)
		return NULL;
	config->model = *model;
	/* The hot path uses these without a check. */
	for (unsigned int op = 0; op < WEFT_NUM_OPS; op++) {
		weft_ep_config_fill(config, (enum weft_op)op, WEFT_BUF_CONTIG);
		weft_ep_config_fill(config, (enum weft_op)op, WEFT_BUF_CONTIG | WEFT_BUF_REG);
	}
	return config;
}

struct weft_ep_config *weft_ep_config_get(struct weft_ep_configs *list,
					  const struct weft_model *model)
{
	struct weft_ep_config *config;

	/* Few: measured values were rounded when the ends agreed on them (wireup/lanes.c). */
	LIST_FOREACH(config, list, link) {
		if (memcmp(&config->model, model, sizeof(*model)) == 0) {
			config->refs++;
			return config;
		}
	}
	config = config_new(model);
	if (!config)
		return NULL;
	config->refs = 1;
	LIST_INSERT_HEAD(list, config, link);
	return config;
}

void weft_ep_config_put(struct weft_ep_config *config)
{
	if (!config || --config->refs)
		return;
	LIST_REMOVE(config, link);
	while (config->variants) {
		struct weft_proto_variant *v = config->variants;

		config->variants = v->next;
		free(v);
	}
	free(config);
}
