/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file seal/seal.h
 * Sealed frames: the exchange of keys, and authenticated encryption. doc/sealing.md has the design.
 * engine/sealed.c and engine/sealed_frame.c use it for the connections of a lane.
 *
 *	seal/crypto.c    the primitives of the exchange, which are libcrypto's
 *	seal/exchange.c  Noise_NNpsk0_25519_AESGCM_SHA256; HELLO and HELLO_ACK: their bytes, their
 *	                 validation, the key schedule; keys of the further lanes of endpoints; the
 *	                 two messages by which a listener gives its address
 *	seal/cipher.c    AES-128-GCM of frames, which is libipsec-mb's
 *	seal/seal.c      a connection: numbers, nonces, keys and their rotation, the window of
 *	                 numbers that have arrived
 *
 * No function here reads a clock or makes random bytes: times and random bytes are arguments, so
 * that the simulator can give them. base/secret.h has the memory for keys, and the job key's file.
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
 * A sealed connection: frame numbers, nonces, the keys of both directions and their rotation, and
 * the replay windows. doc/sealing.md, "Frames", has the rules.
 *
 *	lane header 42 | frame number 8 | body | tag 16
 *
 * The tag covers everything before it. The lane header and the frame number stay readable; the body
 * is encrypted in mode WEFT_SEAL_ENCRYPT.
 *
 * A connection belongs to one thread at a time. Sealing and opening neither allocate nor read a
 * clock; a frame with which the peer's key changes allocates inside libcrypto.
 */

/** The lane header with the frame number behind it: contiguous in each frame. */
#define WEFT_SEALED_HEAD 50u
/** Bytes by which a sealed frame is longer than a plain one without a CRC32C. */
#define WEFT_SEALED_OVERHEAD (8u + WEFT_CIPHER_TAG_LEN)

#define WEFT_SEALED_SLOTS_MAX 16u
/** The slot of the frame GONE (a farewell), which another process may send for this one. */
#define WEFT_SEALED_SLOT_GONE 255u

/** Frames, over all slots, that one key may seal, and after which a new key is due. */
#define WEFT_SEALED_KEY_FRAMES (1ull << 32)
#define WEFT_SEALED_KEY_DUE (1ull << 31)
/** Number of frames with wrong tags after which a connection ends. */
#define WEFT_SEALED_BAD_TAGS (1ull << 36)

#define WEFT_FRAME_SALT_LEN 4u

/** Key and salt of one generation, as they are derived. */
struct weft_frame_key {
	uint8_t key[WEFT_CIPHER_KEY_LEN];
	uint8_t salt[WEFT_FRAME_SALT_LEN];
};

/**
 * Derive a generation's key from @p secret, and replace @p secret by the next generation's secret.
 * @return 0 or -EIO
 */
int weft_frame_key_next(uint8_t secret[WEFT_HASH_LEN], struct weft_frame_key *key);

/** @param number  the frame's number, with the slot in its highest byte */
void weft_frame_nonce(const uint8_t salt[WEFT_FRAME_SALT_LEN], uint64_t number,
		      uint8_t nonce[WEFT_CIPHER_NONCE_LEN]);

struct weft_sealed;

struct weft_sealed_conf {
	enum weft_seal_mode mode;
	bool initiator;
	unsigned int slots; /**< paths of the connection, up to WEFT_SEALED_SLOTS_MAX */
	/** frames that one key may seal; 0 = WEFT_SEALED_KEY_FRAMES, which is the maximum */
	uint64_t key_frames;
	uint64_t key_due;    /**< frames after which a new key is due: 1 to key_frames */
	uint64_t key_due_ns; /**< age of a key at which a new one is due; 0 = no limit */
	uint64_t bad_tags;   /**< number of wrong tags at which the connection ends */
	uint64_t now;
};

enum weft_sealed_verdict {
	WEFT_SEALED_OK,
	WEFT_SEALED_FORMAT, /**< not sealed, or of a slot that the connection does not have */
	WEFT_SEALED_TAG,    /**< wrong tag: changed, forged, or sealed with another key */
	WEFT_SEALED_SEEN,   /**< a replay */
	WEFT_SEALED_OLD,    /**< a replay, or a frame that was overtaken by 4096 others */
	/**
	 * Sealing: the key may not seal another frame, as the peer did not confirm it in time for a
	 * new key. Opening: too many wrong tags. The connection has to end.
	 */
	WEFT_SEALED_SPENT,
};

/** A frame to be sealed or opened. */
struct weft_sealed_op {
	struct weft_sealed *conn;
	uint8_t *head;                      /**< WEFT_SEALED_HEAD bytes */
	const struct weft_cipher_seg *segs; /**< the body: everything between head and tag */
	unsigned int num_segs;
	uint8_t slot;                     /**< for sealing: path, or WEFT_SEALED_SLOT_GONE */
	uint8_t *tag;                     /**< WEFT_CIPHER_TAG_LEN bytes */
	enum weft_sealed_verdict verdict; /**< result */
};

/** @return 0, -EINVAL for @p conf, -ENOMEM, or -EIO of libcrypto */
int weft_sealed_create(const struct weft_cipher *c, const struct weft_sealed_conf *conf,
		       const struct weft_exchange_secrets *secrets, struct weft_sealed **sealed);
/** Overwrite the keys and free the connection. */
void weft_sealed_destroy(struct weft_sealed *s);
/** Bytes of memory that a sealed connection with this number of slots uses. */
size_t weft_sealed_size(unsigned int slots);

/**
 * Number and seal frames, each of any connection. The lane header is complete apart from the flags
 * SEALED and KEY_PHASE, which the call sets. To send a frame again, the caller seals its plain text
 * again.
 * @return number of frames with the verdict OK: the others must not be sent
 */
unsigned int weft_sealed_seal(const struct weft_cipher *c, struct weft_sealed_op *ops,
			      unsigned int num);

/**
 * Verify and decrypt frames. Nothing of a frame may be used unless its verdict is WEFT_SEALED_OK:
 * the body of an invalid frame may have been overwritten, too.
 * @return number of frames that are valid
 */
unsigned int weft_sealed_open(const struct weft_cipher *c, struct weft_sealed_op *ops,
			      unsigned int num, uint64_t now);

/**
 * To be called regularly. Changes the key that seals if a new key is due and the peer has confirmed
 * the present key. Forgets the peer's last key @p keep_ns after the peer has changed it.
 * @param keep_ns  3 RTO
 * @return true: a new key seals from now on
 */
bool weft_sealed_tick(struct weft_sealed *s, const struct weft_cipher *c, uint64_t now,
		      uint64_t keep_ns);

/** Is the next key due, and has the peer not confirmed the present one? */
bool weft_sealed_unsure(const struct weft_sealed *s, uint64_t now);

/** Copy the exporter secret, from which keys of WEFT_EXCHANGE_NEXT are derived. */
void weft_sealed_export(const struct weft_sealed *s, uint8_t secret[WEFT_HASH_LEN]);

/** To be called when the peer acknowledges a frame, or answers a probe, of the present key. */
void weft_sealed_confirm(struct weft_sealed *s);

/* ------------------------------------------------------------------ replay window */

/*
 * The replay window of one slot: which of the newest 4096 frame numbers have arrived. Frames of a
 * slot take one path, so few are reordered. A frame older than the window counts as lost, and its
 * data is sent again under another number.
 */

#define WEFT_REPLAY_NUMBERS 4096u

/** Zero-initialised. */
struct weft_replay {
	uint64_t end;                            /**< highest number accepted + 1 */
	uint64_t seen[WEFT_REPLAY_NUMBERS / 64]; /**< a ring of bits, for the numbers before end */
};

enum weft_replay_verdict {
	WEFT_REPLAY_FRESH,
	WEFT_REPLAY_SEEN,
	WEFT_REPLAY_OLD, /**< the number is below the window */
};

/** Enter @p number. To be called only after the frame's tag was verified. */
enum weft_replay_verdict weft_replay_enter(struct weft_replay *r, uint64_t number);

#endif /* WEFT_SEAL_H */
