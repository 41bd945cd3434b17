/* SPDX-License-Identifier: BSD-3-Clause */

#include "seal/keyring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	struct weft_table_node node;
	const struct weft_exchange_key *key;
};

static uint64_t number_of(const uint8_t id[WEFT_KEY_ID_LEN])
{
	uint64_t number;

	memcpy(&number, id, sizeof(number));
	return number;
}

static struct entry *find(const struct weft_keyring *r, const uint8_t id[WEFT_KEY_ID_LEN])
{
	struct weft_table_node *node = weft_table_find(&r->by_id, number_of(id));

	return node ? container_of(node, struct entry, node) : NULL;
}

int weft_keyring_add(struct weft_keyring *r, const struct weft_exchange_key *key)
{
	struct entry *e = find(r, key->id);

	if (e)
		return 0;
	e = malloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->key = key;
	if (weft_table_add(&r->by_id, &e->node, number_of(key->id)) == 0)
		return 0;
	free(e);
	return -ENOMEM;
}

const struct weft_exchange_key *weft_keyring_find(const struct weft_keyring *r,
						  const uint8_t id[WEFT_KEY_ID_LEN])
{
	const struct entry *e = find(r, id);

	return e ? e->key : NULL;
}

void weft_keyring_remove(struct weft_keyring *r, const struct weft_exchange_key *key)
{
	struct entry *e = find(r, key->id);

	if (!e || e->key != key)
		return;
	weft_table_remove(&r->by_id, &e->node);
	free(e);
}

void weft_keyring_fini(struct weft_keyring *r)
{
	struct weft_table_node *node;
	uint32_t from = 0;

	while ((node = weft_table_any(&r->by_id, &from))) {
		weft_table_remove(&r->by_id, node);
		free(container_of(node, struct entry, node));
	}
	weft_table_fini(&r->by_id);
}
