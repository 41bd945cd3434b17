/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Key and nonce of each frame that is sealed, of all hosts of a simulation. The linker passes the
 * calls of these functions to their wrappers here (--wrap).
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim_priv.h"
#include "weft_build.h"

#if WEFT_HAVE_SEAL

#include "seal/seal.h"

struct used {
	/* The first round key of AES is the key itself. */
	uint8_t key[WEFT_CIPHER_KEY_LEN];
	uint8_t nonce[WEFT_CIPHER_NONCE_LEN];
	uint32_t is_set;
};

/* A hash table, from which nothing is removed before the next simulation. */
static struct {
	struct used *at;
	size_t size; /* a power of 2 */
	struct sim_nonces count;
} all;

/* Mode auth computes the tag of a received frame by the same function. */
static bool is_sealing;

unsigned int __real_weft_sealed_seal(const struct weft_cipher *c, struct weft_sealed_op *ops,
				     unsigned int num);
unsigned int __wrap_weft_sealed_seal(const struct weft_cipher *c, struct weft_sealed_op *ops,
				     unsigned int num);
void __real_weft_cipher_seal(const struct weft_cipher *c, const struct weft_cipher_key *key,
			     const uint8_t nonce[WEFT_CIPHER_NONCE_LEN], const uint8_t *aad,
			     size_t aad_len, const struct weft_cipher_seg *segs,
			     unsigned int num_segs, uint8_t tag[WEFT_CIPHER_TAG_LEN]);
void __wrap_weft_cipher_seal(const struct weft_cipher *c, const struct weft_cipher_key *key,
			     const uint8_t nonce[WEFT_CIPHER_NONCE_LEN], const uint8_t *aad,
			     size_t aad_len, const struct weft_cipher_seg *segs,
			     unsigned int num_segs, uint8_t tag[WEFT_CIPHER_TAG_LEN]);
void __real_weft_cipher_auth(const struct weft_cipher *c, const struct weft_cipher_key *key,
			     const uint8_t nonce[WEFT_CIPHER_NONCE_LEN], const uint8_t *aad,
			     size_t aad_len, const struct weft_cipher_seg *segs,
			     unsigned int num_segs, uint8_t tag[WEFT_CIPHER_TAG_LEN]);
void __wrap_weft_cipher_auth(const struct weft_cipher *c, const struct weft_cipher_key *key,
			     const uint8_t nonce[WEFT_CIPHER_NONCE_LEN], const uint8_t *aad,
			     size_t aad_len, const struct weft_cipher_seg *segs,
			     unsigned int num_segs, uint8_t tag[WEFT_CIPHER_TAG_LEN]);

/* @return the entry, or the free one in its place */
static struct used *find(const struct used *u)
{
	uint64_t word[4];
	size_t i;

	memcpy(word, u, sizeof(word));
	i = sim_mix64(word[0] ^ sim_mix64(word[1] ^ sim_mix64(word[2] ^ sim_mix64(word[3]))));
	while (all.at[i & (all.size - 1)].is_set &&
	       memcmp(&all.at[i & (all.size - 1)], u, sizeof(*u)) != 0)
		i++;
	return &all.at[i & (all.size - 1)];
}

static void grow(void)
{
	struct used *old = all.at;
	size_t n = all.size;

	all.size = n ? 2 * n : 4096;
	all.at = sim_alloc(all.size * sizeof(*all.at));
	for (size_t i = 0; i < n; i++)
		if (old[i].is_set)
			*find(&old[i]) = old[i];
	free(old);
}

static void note(const struct weft_cipher_key *key, const uint8_t nonce[WEFT_CIPHER_NONCE_LEN])
{
	struct used u = {.is_set = 1}, *at;

	static_assert(sizeof(u) == 32, "find() reads all bytes, none of which is padding");
	if (2 * (all.count.sealed - all.count.repeated) >= all.size)
		grow();
	memcpy(u.key, key->bytes, sizeof(u.key));
	memcpy(u.nonce, nonce, sizeof(u.nonce));
	at = find(&u);
	all.count.sealed++;
	all.count.repeated += at->is_set;
	*at = u;
}

unsigned int __wrap_weft_sealed_seal(const struct weft_cipher *c, struct weft_sealed_op *ops,
				     unsigned int num)
{
	unsigned int n;

	is_sealing = true;
	n = __real_weft_sealed_seal(c, ops, num);
	is_sealing = false;
	return n;
}

void __wrap_weft_cipher_seal(const struct weft_cipher *c, const struct weft_cipher_key *key,
			     const uint8_t nonce[WEFT_CIPHER_NONCE_LEN], const uint8_t *aad,
			     size_t aad_len, const struct weft_cipher_seg *segs,
			     unsigned int num_segs, uint8_t tag[WEFT_CIPHER_TAG_LEN])
{
	note(key, nonce);
	__real_weft_cipher_seal(c, key, nonce, aad, aad_len, segs, num_segs, tag);
}

void __wrap_weft_cipher_auth(const struct weft_cipher *c, const struct weft_cipher_key *key,
			     const uint8_t nonce[WEFT_CIPHER_NONCE_LEN], const uint8_t *aad,
			     size_t aad_len, const struct weft_cipher_seg *segs,
			     unsigned int num_segs, uint8_t tag[WEFT_CIPHER_TAG_LEN])
{
	if (is_sealing)
		note(key, nonce);
	__real_weft_cipher_auth(c, key, nonce, aad, aad_len, segs, num_segs, tag);
}

struct sim_nonces sim_nonces(void)
{
	return all.count;
}

void sim_nonces_forget(void)
{
	free(all.at);
	memset(&all, 0, sizeof(all));
}

#else

struct sim_nonces sim_nonces(void)
{
	return (struct sim_nonces){0};
}

void sim_nonces_forget(void)
{
}

#endif
