/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file seal/seal.h
 * Sealed frames; doc/sealing.md has the design. engine/sealed.c and engine/sealed_frame.c use this
 * folder.
 *
 *	seal/crypto.c    primitives of the exchange, by libcrypto
 *	seal/exchange.c  Noise; HELLO and HELLO_ACK; the key schedule; keys of further lanes; the
 *	                 two messages by which a listener gives its address
 *	seal/cipher.c    AES-128-GCM of frames, by libipsec-mb
 *	seal/seal.c      a connection: nonces, rotation of keys, replay windows
 *
 * Times and random bytes are arguments, so that the simulator can give them. base/secret.h has the
 * memory for keys, and the job key's file.
 */
#ifndef WEFT_SEAL_H
#define WEFT_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "seal/cipher.h"
#include "seal/exchange.h"
#include "weft_build.h"

/*
 * A sealed frame (rules: doc/sealing.md, "Frames"):
 *
 *	lane header 42 | frame number 8 | body | tag 16
 *
 * The tag covers all before it. Only mode WEFT_SEAL_ENCRYPT encrypts, and only the body.
 *
 * A connection belongs to one thread at a time. Sealing and opening do not allocate, except that
 * libcrypto does for the frame with which the peer's key changes.
 */

/** Lane header and frame number, contiguous in each frame. */
#define WEFT_SEALED_HEAD 50u
/** Bytes of a sealed frame beyond those of a plain one without a CRC32C. */
#define WEFT_SEALED_OVERHEAD (8u + WEFT_CIPHER_TAG_LEN)

#define WEFT_SEALED_SLOTS_MAX 16u
/** Slot of the frame GONE, which another process may send for this one. */
#define WEFT_SEALED_SLOT_GONE 255u

/** Frames, over all slots, that one key may seal, and after which a new key is due. */
#define WEFT_SEALED_KEY_FRAMES (1ull << 32)
#define WEFT_SEALED_KEY_DUE (1ull << 31)
/** Frames with wrong tags after which a connection ends. */
#define WEFT_SEALED_BAD_TAGS (1ull << 36)

#define WEFT_FRAME_SALT_LEN 4u

/** One generation of a direction's key. */
struct weft_frame_key {
	uint8_t key[WEFT_CIPHER_KEY_LEN];
	uint8_t salt[WEFT_FRAME_SALT_LEN];
};

/** Derives the key of @p secret's generation; @p secret becomes the next one. @return 0 or -EIO */
int weft_frame_key_next(uint8_t secret[WEFT_HASH_LEN], struct weft_frame_key *key);

/** @param number  the frame's number, with the slot in its highest byte */
void weft_frame_nonce(const uint8_t salt[WEFT_FRAME_SALT_LEN], uint64_t number,
		      uint8_t nonce[WEFT_CIPHER_NONCE_LEN]);

struct weft_sealed;

struct weft_sealed_conf {
	enum weft_seal_mode mode;
	bool initiator;
	unsigned int slots; /**< paths, up to WEFT_SEALED_SLOTS_MAX */
	/** frames that one key may seal; 0 = the maximum, WEFT_SEALED_KEY_FRAMES */
	uint64_t key_frames;
	uint64_t key_due;    /**< frames after which a new key is due: 1 to key_frames */
	uint64_t key_due_ns; /**< age at which a new key is due; 0 = no limit */
	uint64_t bad_tags;   /**< wrong tags at which the connection ends */
	uint64_t now;
};

enum weft_sealed_verdict {
	WEFT_SEALED_OK,
	WEFT_SEALED_FORMAT, /**< not sealed, or of a slot that the connection lacks */
	WEFT_SEALED_TAG,    /**< wrong tag: changed, forged, or sealed with another key */
	WEFT_SEALED_SEEN,
	WEFT_SEALED_OLD, /**< a replay, or overtaken by 4096 others of its slot */
	/**
	 * The connection has to end. Sealing: the key is used up, and the peer has not confirmed
	 * it. Opening: too many wrong tags.
	 */
	WEFT_SEALED_SPENT,
};

struct weft_sealed_op {
	struct weft_sealed *conn;
	uint8_t *head; /**< WEFT_SEALED_HEAD bytes */
	const struct weft_cipher_seg *segs;
	unsigned int num_segs;
	uint8_t slot; /**< for sealing: path, or WEFT_SEALED_SLOT_GONE */
	uint8_t *tag; /**< WEFT_CIPHER_TAG_LEN bytes */
	enum weft_sealed_verdict verdict;
};

/** @return 0; -EINVAL for @p conf; -ENOMEM; -EIO of libcrypto */
int weft_sealed_create(const struct weft_cipher *c, const struct weft_sealed_conf *conf,
		       const struct weft_exchange_secrets *secrets, struct weft_sealed **sealed);
/** Overwrites the keys. */
void weft_sealed_destroy(struct weft_sealed *s);
size_t weft_sealed_size(unsigned int slots);

/**
 * Number and seal frames, also of several connections. The lane header is complete apart from the
 * flags SEALED and KEY_PHASE. A frame sent again is sealed again, from its plain text.
 * @return number of frames with the verdict OK: the others must not be sent
 */
unsigned int weft_sealed_seal(const struct weft_cipher *c, struct weft_sealed_op *ops,
			      unsigned int num);

/**
 * Verify and decrypt frames. A frame without the verdict OK must not be used, and its body may be
 * overwritten.
 * @return number of valid frames
 */
unsigned int weft_sealed_open(const struct weft_cipher *c, struct weft_sealed_op *ops,
			      unsigned int num, uint64_t now);

/**
 * To be called regularly. Changes the sealing key if a new one is due and the peer has confirmed
 * the present one. Forgets the peer's last key @p keep_ns after the peer has changed it.
 * @param keep_ns  3 RTO
 * @return true: a new key seals from now on
 */
bool weft_sealed_tick(struct weft_sealed *s, const struct weft_cipher *c, uint64_t now,
		      uint64_t keep_ns);

/** Is the next key due, and has the peer not confirmed the present one? */
bool weft_sealed_unsure(const struct weft_sealed *s, uint64_t now);

/** The secret from which keys of kind NEXT are derived. */
void weft_sealed_export(const struct weft_sealed *s, uint8_t secret[WEFT_HASH_LEN]);

/** The peer has acknowledged a frame, or answered a probe, of the present key. */
void weft_sealed_confirm(struct weft_sealed *s);

/* ------------------------------------------------------------------ replay window */

/*
 * The replay window of one slot. A slot's frames take one path, so few are reordered. A frame older
 * than the window counts as lost, and its data is sent again under another number.
 */

#define WEFT_REPLAY_NUMBERS 4096u

/** Zero-initialised. */
struct weft_replay {
	uint64_t end; /**< highest number accepted + 1 */
	uint64_t seen[WEFT_REPLAY_NUMBERS / 64];
};

enum weft_replay_verdict {
	WEFT_REPLAY_FRESH,
	WEFT_REPLAY_SEEN,
	WEFT_REPLAY_OLD,
};

/** Requires that the frame's tag is verified. */
enum weft_replay_verdict weft_replay_enter(struct weft_replay *r, uint64_t number);

#endif /* WEFT_SEAL_H */
