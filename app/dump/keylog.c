/* SPDX-License-Identifier: BSD-3-Clause */

#include "dump/keylog.h"

#include "weft_build.h"

#if WEFT_HAVE_SEAL

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire_frame_def.h"
#include "drivers/dpdk/seal/seal.h"

#define FLAGS_OF_SEAL (WEFT_FRAME_F_SEALED | WEFT_FRAME_F_KEY_PHASE)
#define HEAD ((uint32_t)sizeof(struct weft_frame_hdr))
#define NUMBER ((uint32_t)sizeof(uint64_t))
/*
 * A key may have changed before the capture begins: the number of changes that a search tries, and
 * the number of searches that may fail.
 */
#define LATE 1024u
#define SEARCHES 8u

/* The key of one direction of a connection. */
struct key {
	uint32_t conn, token;
	uint8_t first[WEFT_HASH_LEN];  /* the secret in the file */
	uint8_t secret[WEFT_HASH_LEN]; /* the secret of the generation after that of `now` */
	enum weft_seal_mode mode;
	struct weft_frame_key now, last;
	bool phase, has_last, opened;
	unsigned int searches;
	/* For each slot: 1 plus the greatest number that has opened with `now`; 0 = none has */
	uint64_t after[WEFT_SEALED_SLOTS_MAX];
};

struct dump_keylog {
	struct weft_cipher *cipher;
	struct key *key; /* sorted */
	size_t num, room;
	uint8_t plain[UINT16_MAX + 1];
};

/* ---- the file ------------------------------------------------------------------------------- */

static int by_frame(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->conn != y->conn)
		return x->conn < y->conn ? -1 : 1;
	return x->token < y->token ? -1 : x->token > y->token;
}

static int by_secret(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	int order = by_frame(a, b);

	return order ? order : memcmp(x->secret, y->secret, sizeof(x->secret));
}

/* "WEFT_SEAL_1 encrypt 00000001 89abcdef SECRET". @return false: malformed */
static bool parse(const char *line, struct key *k)
{
	char mode[8], secret[2 * WEFT_HASH_LEN + 1];
	int end = 0;

	memset(k, 0, sizeof(*k));
	if (sscanf(line, "WEFT_SEAL_1 %7s %8" SCNx32 " %8" SCNx32 " %64[0-9a-f]%n", mode, &k->conn,
		   &k->token, secret, &end) != 4 ||
	    strlen(secret) != 2 * WEFT_HASH_LEN || (line[end] != '\n' && line[end] != '\0'))
		return false;
	k->mode = !strcmp(mode, "auth") ? WEFT_SEAL_AUTH : WEFT_SEAL_ENCRYPT;
	if (k->mode == WEFT_SEAL_ENCRYPT && strcmp(mode, "encrypt"))
		return false;
	for (unsigned int i = 0; i < WEFT_HASH_LEN; i++)
		sscanf(secret + 2 * i, "%2hhx", &k->secret[i]);
	memcpy(k->first, k->secret, sizeof(k->first));
	return true;
}

static int add(struct dump_keylog *log, const struct key *k)
{
	size_t room = log->room ? 2 * log->room : 64;
	struct key *more;

	if (log->num == log->room) {
		more = realloc(log->key, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		log->key = more;
		log->room = room;
	}
	log->key[log->num++] = *k;
	return 0;
}

static int first_keys(struct dump_keylog *log)
{
	for (size_t i = 0; i < log->num; i++)
		if (weft_frame_key_next(log->key[i].secret, &log->key[i].now) < 0)
			return -ENOMEM;
	return 0;
}

/*
 * Sort the keys, and remove duplicates: both ends of a connection write its keys, also into a
 * common file.
 */
static int arrange(struct dump_keylog *log)
{
	size_t n = 0;

	if (log->num == 0)
		return 0;
	qsort(log->key, log->num, sizeof(*log->key), by_secret);
	for (size_t i = 0; i < log->num; i++)
		if (n == 0 || by_secret(&log->key[n - 1], &log->key[i]))
			log->key[n++] = log->key[i];
	log->num = n;
	return first_keys(log);
}

static int read_lines(struct dump_keylog *log, FILE *f, unsigned int *at)
{
	char line[256];
	struct key k;
	int rc = 0;

	for (*at = 1; rc == 0 && fgets(line, sizeof(line), f); (*at)++) {
		if (strncmp(line, "WEFT_SEAL_1 ", 12))
			continue; /* a comment, or a later version's */
		rc = parse(line, &k) ? add(log, &k) : -EBADMSG;
		if (rc < 0)
			return rc;
	}
	return 0;
}

struct dump_keylog *dump_keylog_load(const char *name, char *why, size_t why_len)
{
	struct dump_keylog *log = calloc(1, sizeof(*log));
	FILE *f = fopen(name, "re");
	unsigned int at = 0;
	int rc = 0;

	if (!f)
		snprintf(why, why_len, "%s: %s", name, strerror(errno));
	else if (!log)
		snprintf(why, why_len, "no memory");
	else
		log->cipher = weft_cipher_create(why, why_len);
	if (f && log && log->cipher) {
		rc = read_lines(log, f, &at);
		if (rc == 0)
			rc = arrange(log);
		if (rc == -EBADMSG)
			snprintf(why, why_len, "%s:%u: this is no line of a key log", name, at);
		else if (rc < 0)
			snprintf(why, why_len, "no memory");
		else if (log->num == 0)
			snprintf(why, why_len, "%s: this key log contains no key", name);
	}
	if (f)
		fclose(f);
	if (log && log->cipher && rc == 0 && log->num > 0)
		return log;
	dump_keylog_free(log);
	return NULL;
}

bool dump_keylog_rewind(struct dump_keylog *log)
{
	struct key *k;

	if (!log)
		return true;
	for (k = log->key; k < log->key + log->num; k++) {
		struct key first = {.conn = k->conn, .token = k->token, .mode = k->mode};

		memcpy(first.first, k->first, sizeof(first.first));
		memcpy(first.secret, k->first, sizeof(first.secret));
		*k = first;
	}
	return first_keys(log) == 0;
}

void dump_keylog_free(struct dump_keylog *log)
{
	if (!log)
		return;
	weft_cipher_destroy(log->cipher);
	free(log->key);
	free(log);
}

/* ---- frames --------------------------------------------------------------------------------- */

struct sealed {
	const uint8_t *lane;
	uint64_t number;
	uint32_t len; /* bytes of the body that were captured */
	bool cut, phase;
};

/* @return NULL: the number is of a GONE frame, which has no slot */
static uint64_t *after_of(struct key *k, const struct sealed *s)
{
	unsigned int slot = (unsigned int)(s->number >> 56);

	return slot < WEFT_SEALED_SLOTS_MAX ? &k->after[slot] : NULL;
}

static bool opens(struct dump_keylog *log, const struct key *k, const struct weft_frame_key *frame,
		  const struct sealed *s)
{
	uint8_t nonce[WEFT_CIPHER_NONCE_LEN], tag[WEFT_CIPHER_TAG_LEN];
	const uint8_t *body = s->lane + WEFT_SEALED_HEAD;
	const struct weft_cipher_seg seg = {.in = body, .out = log->plain + HEAD, .len = s->len};
	struct weft_cipher_key key;

	weft_frame_nonce(frame->salt, s->number, nonce);
	weft_cipher_expand(log->cipher, frame->key, &key);
	if (k->mode == WEFT_SEAL_AUTH) {
		memcpy(seg.out, seg.in, seg.len);
		weft_cipher_auth(log->cipher, &key, nonce, s->lane, WEFT_SEALED_HEAD, &seg,
				 s->len > 0, tag);
	} else {
		weft_cipher_open(log->cipher, &key, nonce, s->lane, WEFT_SEALED_HEAD, &seg,
				 s->len > 0, tag);
	}
	return s->cut || weft_cipher_tag_equal(tag, body + s->len);
}

static bool next_key(struct key *k)
{
	k->last = k->now;
	k->has_last = true;
	k->phase = !k->phase;
	memset(k->after, 0, sizeof(k->after));
	return weft_frame_key_next(k->secret, &k->now) == 0;
}

/*
 * Does a key of a later generation open the frame? Once a key of this direction has opened a frame,
 * only the next generation is tried. Before that, the capture may have begun late, so a search
 * tries the next LATE generations. After SEARCHES searches without success none is tried.
 */
static bool opens_later(struct dump_keylog *log, struct key *k, const struct sealed *s)
{
	unsigned int most = k->opened ? 1 : k->searches++ < SEARCHES ? LATE : 0;
	struct key later = *k;

	for (unsigned int i = 0; i < most && next_key(&later); i++) {
		if (later.phase == s->phase && opens(log, &later, &later.now, s)) {
			*k = later;
			return true;
		}
	}
	return false;
}

static bool opens_whole(struct dump_keylog *log, struct key *k, const struct sealed *s)
{
	bool now = k->phase == s->phase && opens(log, k, &k->now, s);
	uint64_t *after;

	if (!now && k->phase != s->phase && k->has_last && opens(log, k, &k->last, s))
		return true;
	if (!now && !opens_later(log, k, s))
		return false;
	k->opened = true;
	after = after_of(k, s);
	if (after && *after <= s->number)
		*after = s->number + 1;
	return true;
}

/*
 * No tag confirms the key of a frame that the capture has cut. Its phase and number select the key
 * among those that whole frames have confirmed, and the next one. The present key does not change.
 */
static bool opens_cut(struct dump_keylog *log, struct key *k, const struct sealed *s)
{
	const uint64_t *after = after_of(k, s);
	struct key later = *k;

	if (!k->opened)
		return false;
	if (k->phase == s->phase)
		return opens(log, k, &k->now, s);
	if (k->has_last && (!after || s->number < *after || *after == 0))
		return opens(log, k, &k->last, s);
	return next_key(&later) && opens(log, &later, &later.now, s);
}

enum dump_opened dump_keylog_open(struct dump_keylog *log, const uint8_t *lane, uint32_t cap,
				  uint32_t length, const uint8_t **plain)
{
	struct weft_frame_hdr *hdr = (struct weft_frame_hdr *)log->plain;
	struct sealed s = {.lane = lane, .len = length - WEFT_SEALED_HEAD};
	struct key want, *k, *end = log->key + log->num;
	weft_le64 number;
	uint16_t flags;

	memcpy(hdr, lane, HEAD);
	memcpy(&number, lane + HEAD, sizeof(number));
	s.number = weft_get64(number);
	flags = weft_get16(hdr->flags);
	s.phase = flags & WEFT_FRAME_F_KEY_PHASE;
	s.cut = cap < length + WEFT_CIPHER_TAG_LEN;
	if (cap < length)
		s.len = cap - WEFT_SEALED_HEAD;
	want.conn = weft_get32(hdr->dst_conn);
	want.token = weft_get32(hdr->token);
	k = bsearch(&want, log->key, log->num, sizeof(*k), by_frame);
	if (!k)
		return DUMP_NO_KEY;
	while (k > log->key && by_frame(k - 1, &want) == 0)
		k--;
	for (; k < end && by_frame(k, &want) == 0; k++) {
		if (!(s.cut ? opens_cut(log, k, &s) : opens_whole(log, k, &s)))
			continue;
		hdr->flags = weft_put16(flags & (uint16_t)~FLAGS_OF_SEAL);
		hdr->length = weft_put16((uint16_t)(length - NUMBER));
		*plain = log->plain;
		return DUMP_OPENED;
	}
	return s.cut ? DUMP_NO_KEY : DUMP_BAD_TAG;
}

#else

#include <stdio.h>

struct dump_keylog *dump_keylog_load(const char *name, char *why, size_t why_len)
{
	snprintf(why, why_len,
		 "%s: this build of Weft can't open sealed frames (libcrypto 3 or libipsec-mb was "
		 "missing)",
		 name);
	return NULL;
}

enum dump_opened dump_keylog_open(struct dump_keylog *k, const uint8_t *lane, uint32_t cap,
				  uint32_t length, const uint8_t **plain)
{
	(void)k, (void)lane, (void)cap, (void)length, (void)plain;
	return DUMP_NO_KEY;
}

bool dump_keylog_rewind(struct dump_keylog *k)
{
	(void)k;
	return true;
}

void dump_keylog_free(struct dump_keylog *k)
{
	(void)k;
}

#endif
