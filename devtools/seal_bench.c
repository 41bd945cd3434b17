/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What sealed frames cost on this machine: ns for one frame, next to the CRC-32C that unsealed
 * frames have and to a copy; microseconds for one connection. Frames are sealed in bursts of 32 in
 * memory that the cache holds. The least and the median of all bursts are printed.
 *
 *	seal_bench [BURSTS]
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/secret.h"
#include "frame/frame.h"
#include "seal/seal.h"

#define BURST 32u
#define CONNECTS 64u
#define HEAD_PLAIN 42u /* a lane header */

struct frame {
	uint8_t bytes[WEFT_SEALED_HEAD + 9000 + WEFT_CIPHER_TAG_LEN];
	struct weft_cipher_seg seg;
} __attribute__((aligned(64)));

struct bench {
	const struct weft_cipher *cipher;
	struct weft_sealed *tx[2], *rx[2]; /* by mode: auth, encrypt */
	struct frame *frames, *copies;
	struct weft_sealed_op ops[BURST];
	unsigned int bursts;
	double *ns;
	uint32_t crc; /* used, so that the compiler can't omit it */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void die(const char *why)
{
	fprintf(stderr, "seal_bench: %s\n", why);
	exit(1);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print(const char *what, double *values, unsigned int num)
{
	qsort(values, num, sizeof(*values), by_size);
	printf("  %-34s %8.1f %8.1f\n", what, values[0], values[num / 2]);
}

/* ------------------------------------------------------------------ frames */

static void lay_out(struct bench *b, size_t body, unsigned int mode, bool open)
{
	for (unsigned int i = 0; i < BURST; i++) {
		struct frame *f = &b->frames[i];

		f->seg = (struct weft_cipher_seg){f->bytes + WEFT_SEALED_HEAD,
						  f->bytes + WEFT_SEALED_HEAD, body};
		b->ops[i] = (struct weft_sealed_op){
			.conn = open ? b->rx[mode] : b->tx[mode],
			.head = f->bytes,
			.segs = &f->seg,
			.num_segs = 1,
			.tag = f->bytes + WEFT_SEALED_HEAD + body,
		};
	}
}

enum what { COPY, CRC, SEAL, OPEN };

static void run(struct bench *b, enum what what, size_t body)
{
	switch (what) {
	case COPY:
		for (unsigned int i = 0; i < BURST; i++)
			memcpy(b->copies[i].bytes, b->frames[i].bytes, HEAD_PLAIN + body);
		break;
	case CRC:
		for (unsigned int i = 0; i < BURST; i++)
			b->crc ^= weft_crc32c(WEFT_CRC32C_INIT, b->frames[i].bytes,
					      HEAD_PLAIN + body);
		break;
	case SEAL:
		if (weft_sealed_seal(b->cipher, b->ops, BURST) != BURST)
			die("a frame was not sealed");
		break;
	case OPEN:
		if (weft_sealed_open(b->cipher, b->ops, BURST, 1) != BURST)
			die("a frame did not open");
		break;
	}
}

static void measure(struct bench *b, const char *name, enum what what, size_t body,
		    unsigned int mode)
{
	for (unsigned int i = 0; i < b->bursts; i++) {
		uint64_t begin;

		if (what == OPEN) { /* fresh frames: others are replays */
			lay_out(b, body, mode, false);
			run(b, SEAL, body);
		}
		lay_out(b, body, mode, what == OPEN);
		begin = now_ns();
		run(b, what, body);
		b->ns[i] = (double)(now_ns() - begin) / BURST;
	}
	print(name, b->ns, b->bursts);
}

static void frames(struct bench *b, const char *title, size_t body)
{
	printf("%s, ns a frame%*s least   median\n", title, (int)(26 - strlen(title)), "");
	measure(b, "copy", COPY, body, 0);
	measure(b, "CRC-32C", CRC, body, 0);
	measure(b, "seal, encrypt", SEAL, body, 1);
	measure(b, "open, encrypt", OPEN, body, 1);
	measure(b, "seal, auth", SEAL, body, 0);
	measure(b, "open, auth", OPEN, body, 0);
}

/* ------------------------------------------------------------------ connections */

struct exchange {
	struct weft_exchange_key key;
	struct weft_exchange x;
	uint8_t hello[WEFT_EXCHANGE_BODY], ack[WEFT_EXCHANGE_BODY], random[2][32];
};

/* One exchange: @initiator and @responder get the microseconds of their ends. */
static void connect_once(struct bench *b, struct exchange *e, enum weft_exchange_kind kind,
			 double *initiator, double *responder)
{
	const struct weft_exchange_conf conf = {3, WEFT_SEAL_ENCRYPT, kind, 0};
	struct weft_sealed_conf sc = {.mode = WEFT_SEAL_ENCRYPT,
				      .slots = 1,
				      .key_due = WEFT_SEALED_KEY_DUE,
				      .bad_tags = WEFT_SEALED_BAD_TAGS};
	struct weft_exchange_secrets secrets;
	struct weft_sealed *s;
	uint64_t t[4];
	int rc;

	t[0] = now_ns();
	if (weft_exchange_offer(&e->x, &e->key, &conf, e->hello, e->random[0]) < 0)
		die("no HELLO");
	t[1] = now_ns();
	if (weft_exchange_check(&e->key, &conf, e->hello, sizeof(e->hello)) != WEFT_HELLO_OK ||
	    weft_exchange_answer(&e->key, &conf, e->hello, sizeof(e->hello), e->ack, e->random[1],
				 &secrets) < 0 ||
	    weft_sealed_create(b->cipher, &sc, &secrets, &s) < 0)
		die("no HELLO_ACK");
	t[2] = now_ns();
	weft_sealed_destroy(s);
	sc.initiator = true;
	t[3] = now_ns();
	if (weft_exchange_finish(&e->x, &e->key, e->ack, sizeof(e->ack), &secrets, &rc) !=
		    WEFT_HELLO_OK ||
	    rc < 0 || weft_sealed_create(b->cipher, &sc, &secrets, &s) < 0)
		die("no connection");
	*initiator = (double)(now_ns() - t[3] + t[1] - t[0]) / 1000;
	*responder = (double)(t[2] - t[1]) / 1000;
	weft_sealed_destroy(s);
}

static void connections(struct bench *b, const char *title, enum weft_exchange_kind kind)
{
	static const uint8_t job_key[WEFT_JOB_KEY_LEN] = {1, 2, 3};
	double *responder = b->ns + CONNECTS;
	struct exchange e;

	memset(&e, 0x11, sizeof(e));
	if (weft_exchange_key_init(&e.key, job_key) < 0)
		die("libcrypto fails");
	for (unsigned int i = 0; i < CONNECTS; i++) {
		memset(e.random, (int)i + 1, sizeof(e.random));
		connect_once(b, &e, kind, &b->ns[i], &responder[i]);
	}
	printf("%s, us a connection%*s least   median\n", title, (int)(21 - strlen(title)), "");
	print("initiator", b->ns, CONNECTS);
	print("responder", responder, CONNECTS);
}

/* ------------------------------------------------------------------ start */

static void open_connections(struct bench *b)
{
	struct weft_exchange_secrets secrets;

	memset(&secrets, 0x33, sizeof(secrets));
	for (unsigned int i = 0; i < 4; i++) {
		const struct weft_sealed_conf conf = {
			.mode = i / 2 ? WEFT_SEAL_ENCRYPT : WEFT_SEAL_AUTH,
			.initiator = i % 2 == 0,
			.slots = 1,
			.key_due = WEFT_SEALED_KEY_DUE,
			.bad_tags = WEFT_SEALED_BAD_TAGS,
		};

		if (weft_sealed_create(b->cipher, &conf, &secrets,
				       i % 2 ? &b->rx[i / 2] : &b->tx[i / 2]) < 0)
			die("no connection");
	}
}

int main(int argc, char **argv)
{
	struct bench b = {.bursts = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 20000};
	char why[256];

	if (argc > 2 || b.bursts < 2 * CONNECTS)
		die("usage: seal_bench [BURSTS], at least 128");
	b.cipher = weft_cipher_create(why, sizeof(why));
	if (!b.cipher)
		die(why);
	b.frames = aligned_alloc(64, BURST * sizeof(*b.frames));
	b.copies = aligned_alloc(64, BURST * sizeof(*b.copies));
	b.ns = malloc(b.bursts * sizeof(*b.ns));
	if (!b.frames || !b.copies || !b.ns)
		die("out of memory");
	memset(b.frames, 0x5a, BURST * sizeof(*b.frames));
	open_connections(&b);
	printf("%s; %u bursts of %u frames\n", weft_cipher_name(b.cipher), b.bursts, BURST);
	frames(&b, "64 B body", 64);
	frames(&b, "MTU 1500", 1500 - 28 - WEFT_SEALED_HEAD - WEFT_CIPHER_TAG_LEN);
	frames(&b, "MTU 9000", 9000 - 28 - WEFT_SEALED_HEAD - WEFT_CIPHER_TAG_LEN);
	connections(&b, "with X25519", WEFT_EXCHANGE_NOISE);
	connections(&b, "without X25519", WEFT_EXCHANGE_PSK);
	printf("memory of a connection: %zu bytes with one path, %zu with %u\n",
	       weft_sealed_size(1), weft_sealed_size(WEFT_SEALED_SLOTS_MAX), WEFT_SEALED_SLOTS_MAX);
	return b.crc == 1; /* never: the CRCs of equal frames cancel out */
}
