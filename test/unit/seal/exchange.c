/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>

#include "seal/exchange.h"
#include "seal_util.h"

/* Both ends of an exchange, with the bodies of their hellos. */
struct ends {
	struct weft_exchange_key i_key, r_key;
	struct weft_exchange_conf i_conf, r_conf;
	struct weft_exchange x;
	uint8_t hello[WEFT_EXCHANGE_BODY], ack[WEFT_EXCHANGE_BODY];
	struct weft_exchange_secrets i, r;
	uint64_t seed;
};

static const enum weft_exchange_kind kinds[] = {WEFT_EXCHANGE_NOISE, WEFT_EXCHANGE_PSK,
						WEFT_EXCHANGE_NEXT};

static void ends_init(struct ends *e, enum weft_exchange_kind kind, uint64_t seed)
{
	uint8_t job_key[32];

	memset(e, 0, sizeof(*e));
	e->seed = seed;
	dice(&e->seed, job_key, sizeof(job_key));
	assert_int_equal(weft_exchange_key_init(&e->i_key, job_key), 0);
	assert_int_equal(weft_exchange_key_init(&e->r_key, job_key), 0);
	e->i_conf = (struct weft_exchange_conf){
		.version = 3,
		.mode = WEFT_SEAL_ENCRYPT,
		.kind = kind,
		.lane = kind == WEFT_EXCHANGE_NEXT ? 2 : 0,
	};
	e->r_conf = e->i_conf;
	dice(&e->seed, e->hello, WEFT_EXCHANGE_AT);
	dice(&e->seed, e->ack, WEFT_EXCHANGE_AT);
}

static void offer(struct ends *e)
{
	uint8_t random[32];

	dice(&e->seed, random, sizeof(random));
	assert_int_equal(weft_exchange_offer(&e->x, &e->i_key, &e->i_conf, e->hello, random), 0);
}

static int answer(struct ends *e)
{
	uint8_t random[32];

	dice(&e->seed, random, sizeof(random));
	return weft_exchange_answer(&e->r_key, &e->r_conf, e->hello, sizeof(e->hello), e->ack,
				    random, &e->r);
}

static enum weft_hello_verdict check(const struct ends *e)
{
	return weft_exchange_check(&e->r_key, &e->r_conf, e->hello, sizeof(e->hello));
}

static enum weft_hello_verdict finish(struct ends *e)
{
	int rc;
	enum weft_hello_verdict v =
		weft_exchange_finish(&e->x, &e->i_key, e->ack, sizeof(e->ack), &e->i, &rc);

	assert_int_equal(rc, 0);
	return v;
}

/* A whole exchange without an attacker. */
static void exchange(struct ends *e)
{
	offer(e);
	assert_int_equal(check(e), WEFT_HELLO_OK);
	assert_int_equal(answer(e), 0);
	assert_int_equal(finish(e), WEFT_HELLO_OK);
}

/* ------------------------------------------------------------------ agreement */

static void both_ends_derive_the_same_three_secrets(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < 3; k++) {
		struct ends e;

		ends_init(&e, kinds[k], 10 + k);
		exchange(&e);
		assert_memory_equal(&e.i, &e.r, sizeof(e.i));
		assert_memory_not_equal(e.i.initiator, e.i.responder, 32);
		assert_memory_not_equal(e.i.initiator, e.i.exporter, 32);
		assert_memory_not_equal(e.i.responder, e.i.exporter, 32);
	}
}

/* The same workers, interfaces and key: only the random bytes differ. */
static void a_second_exchange_has_other_secrets(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < 3; k++) {
		struct weft_exchange_secrets first;
		struct ends e;

		ends_init(&e, kinds[k], 20);
		exchange(&e);
		first = e.i;
		exchange(&e);
		assert_memory_not_equal(&first.initiator, &e.i.initiator, 32);
		assert_memory_not_equal(&first.responder, &e.i.responder, 32);
		assert_memory_not_equal(&first.exporter, &e.i.exporter, 32);
	}
}

/* One end's random bytes are enough: a replayed hello meets fresh ones of the other end. */
static void either_end_alone_makes_the_secrets_fresh(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < 3; k++) {
		struct weft_exchange_secrets first;
		struct ends e;

		ends_init(&e, kinds[k], 30);
		exchange(&e);
		first = e.r;
		/* The same HELLO again, as a replay. */
		assert_int_equal(check(&e), WEFT_HELLO_OK);
		assert_int_equal(answer(&e), 0);
		assert_memory_not_equal(&first.initiator, &e.r.initiator, 32);
		assert_memory_not_equal(&first.responder, &e.r.responder, 32);
	}
}

static void the_cookie_may_change_after_the_offer(void **state)
{
	struct ends e;

	(void)state;
	ends_init(&e, WEFT_EXCHANGE_NOISE, 40);
	offer(&e);
	memset(e.hello + WEFT_EXCHANGE_COOKIE, 0x77, 8);
	assert_int_equal(check(&e), WEFT_HELLO_OK);
	assert_int_equal(answer(&e), 0);
	assert_int_equal(finish(&e), WEFT_HELLO_OK);
	assert_memory_equal(&e.i, &e.r, sizeof(e.i));
}

/* The transcript: each byte of either hello, version and lane, changes all secrets. */
static void secrets_depend_on_each_byte_of_the_first_hello(void **state)
{
	(void)state;
	for (unsigned int at = 0; at < WEFT_EXCHANGE_COOKIE; at++) {
		struct ends a, b;

		ends_init(&a, WEFT_EXCHANGE_PSK, 50);
		ends_init(&b, WEFT_EXCHANGE_PSK, 50);
		b.hello[at] ^= 1;
		exchange(&a);
		exchange(&b);
		assert_memory_not_equal(a.i.initiator, b.i.initiator, 32);
		ends_init(&b, WEFT_EXCHANGE_PSK, 50);
		b.ack[at] ^= 1;
		exchange(&b);
		assert_memory_not_equal(a.i.initiator, b.i.initiator, 32);
		assert_memory_not_equal(a.i.exporter, b.i.exporter, 32);
	}
}

static void secrets_depend_on_version_mode_and_lane(void **state)
{
	struct ends a, b;

	(void)state;
	ends_init(&a, WEFT_EXCHANGE_NEXT, 60);
	exchange(&a);
	ends_init(&b, WEFT_EXCHANGE_NEXT, 60);
	b.i_conf.version = b.r_conf.version = 4;
	exchange(&b);
	assert_memory_not_equal(a.i.initiator, b.i.initiator, 32);
	ends_init(&b, WEFT_EXCHANGE_NEXT, 60);
	b.i_conf.mode = b.r_conf.mode = WEFT_SEAL_AUTH;
	exchange(&b);
	assert_memory_not_equal(a.i.initiator, b.i.initiator, 32);
	ends_init(&b, WEFT_EXCHANGE_NEXT, 60);
	b.i_conf.lane = b.r_conf.lane = 3;
	exchange(&b);
	assert_memory_not_equal(a.i.initiator, b.i.initiator, 32);
}

/* ------------------------------------------------------------------ refusals */

/* Only the cookie may change on the path. */
static void each_changed_bit_of_a_hello_is_refused(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < 3; k++) {
		struct ends e;

		ends_init(&e, kinds[k], 70);
		offer(&e);
		for (unsigned int bit = 0; bit < sizeof(e.hello) * 8; bit++) {
			bool cookie = bit / 8 >= WEFT_EXCHANGE_COOKIE && bit / 8 < WEFT_EXCHANGE_AT;

			e.hello[bit / 8] ^= (uint8_t)(1 << bit % 8);
			if (cookie)
				assert_int_equal(check(&e), WEFT_HELLO_OK);
			else
				assert_int_not_equal(check(&e), WEFT_HELLO_OK);
			e.hello[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
}

static void each_changed_bit_of_an_answer_is_refused(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < 3; k++) {
		struct ends e;

		ends_init(&e, kinds[k], 80);
		offer(&e);
		assert_int_equal(answer(&e), 0);
		for (unsigned int bit = 0; bit < sizeof(e.ack) * 8; bit++) {
			if (bit / 8 >= WEFT_EXCHANGE_COOKIE && bit / 8 < WEFT_EXCHANGE_AT)
				continue;
			e.ack[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_not_equal(finish(&e), WEFT_HELLO_OK);
			e.ack[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		/* None of them has ended the exchange. */
		assert_int_equal(finish(&e), WEFT_HELLO_OK);
		assert_memory_equal(&e.i, &e.r, sizeof(e.i));
	}
}

static void an_answer_to_an_earlier_hello_is_refused(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < 3; k++) {
		uint8_t old[WEFT_EXCHANGE_BODY];
		struct ends e;

		ends_init(&e, kinds[k], 90);
		exchange(&e);
		memcpy(old, e.ack, sizeof(old));
		offer(&e);
		assert_int_equal(answer(&e), 0);
		memcpy(e.ack, old, sizeof(old));
		assert_int_equal(finish(&e), WEFT_HELLO_MAC);
	}
}

/* A hello that is sent back to its sender is no answer, and an answer is no hello. */
static void a_reflected_hello_is_refused(void **state)
{
	struct ends e;

	(void)state;
	ends_init(&e, WEFT_EXCHANGE_PSK, 100);
	offer(&e);
	assert_int_equal(answer(&e), 0);
	memcpy(e.hello, e.ack, sizeof(e.hello));
	assert_int_equal(check(&e), WEFT_HELLO_MAC);
	ends_init(&e, WEFT_EXCHANGE_PSK, 100);
	offer(&e);
	memcpy(e.ack, e.hello, sizeof(e.ack));
	assert_int_equal(finish(&e), WEFT_HELLO_MAC);
}

static void what_ends_have_configured_otherwise_is_named(void **state)
{
	struct ends e;
	uint8_t other[32] = {1};

	(void)state;
	ends_init(&e, WEFT_EXCHANGE_NOISE, 110);
	assert_int_equal(weft_exchange_key_init(&e.i_key, other), 0);
	offer(&e);
	assert_int_equal(check(&e), WEFT_HELLO_KEY);

	ends_init(&e, WEFT_EXCHANGE_NOISE, 110);
	e.i_conf.mode = WEFT_SEAL_AUTH;
	offer(&e);
	assert_int_equal(check(&e), WEFT_HELLO_MODE);

	ends_init(&e, WEFT_EXCHANGE_PSK, 110);
	offer(&e);
	e.r_conf.kind = WEFT_EXCHANGE_NOISE;
	assert_int_equal(check(&e), WEFT_HELLO_KIND);

	ends_init(&e, WEFT_EXCHANGE_NEXT, 110);
	offer(&e);
	e.r_conf.lane = 3;
	assert_int_equal(check(&e), WEFT_HELLO_KIND);

	/* The version is not in the body, and is covered all the same. */
	ends_init(&e, WEFT_EXCHANGE_NOISE, 110);
	offer(&e);
	e.r_conf.version = 4;
	assert_int_equal(check(&e), WEFT_HELLO_MAC);
}

static void a_hello_of_another_length_is_judged(void **state)
{
	uint8_t longer[WEFT_EXCHANGE_BODY_MAX + 1] = {0};
	struct ends e;

	(void)state;
	ends_init(&e, WEFT_EXCHANGE_NOISE, 120);
	offer(&e);
	memcpy(longer, e.hello, sizeof(e.hello));
	for (size_t len = 0; len < WEFT_EXCHANGE_BODY; len++) {
		assert_int_equal(weft_exchange_check(&e.r_key, &e.r_conf, longer, len),
				 WEFT_HELLO_PLAIN);
		assert_null(weft_exchange_key_id(longer, len));
	}
	assert_memory_equal(weft_exchange_key_id(longer, WEFT_EXCHANGE_BODY), e.i_key.id,
			    WEFT_KEY_ID_LEN);
	/* Bytes that a later version appends are covered by the MAC, too. */
	assert_int_equal(weft_exchange_check(&e.r_key, &e.r_conf, longer, WEFT_EXCHANGE_BODY + 1),
			 WEFT_HELLO_MAC);
	assert_int_equal(weft_exchange_check(&e.r_key, &e.r_conf, longer, sizeof(longer)),
			 WEFT_HELLO_LENGTH);
}

/* A member of the job can make a valid MAC over anything: Noise refuses it, all the same. */
static void a_hello_with_a_valid_mac_and_a_wrong_proof_is_refused(void **state)
{
	struct ends e;
	uint8_t text[2 + WEFT_TAG_LEN + WEFT_EXCHANGE_BODY] = {3, 1}, mac[32];
	struct weft_seal_hello *h;

	(void)state;
	ends_init(&e, WEFT_EXCHANGE_NOISE, 130);
	offer(&e);
	h = (struct weft_seal_hello *)(e.hello + WEFT_EXCHANGE_AT);
	h->proof[3] ^= 1;
	memset(h->mac, 0, sizeof(h->mac));
	memcpy(text + 2 + WEFT_TAG_LEN, e.hello, sizeof(e.hello));
	memset(text + 2 + WEFT_TAG_LEN + WEFT_EXCHANGE_COOKIE, 0, 8);
	assert_int_equal(weft_hmac(e.i_key.mac, 32, text, sizeof(text), mac), 0);
	memcpy(h->mac, mac, sizeof(h->mac));
	assert_int_equal(check(&e), WEFT_HELLO_OK);
	assert_int_equal(answer(&e), -EBADMSG);
}

/* A later version's bytes are named as such, and not as a forgery. */
static void bytes_of_no_known_format_are_named(void **state)
{
	struct weft_seal_hello *h;
	struct ends e;

	(void)state;
	for (unsigned int i = 0; i < 4 + 3; i++) {
		ends_init(&e, WEFT_EXCHANGE_PSK, 131);
		offer(&e);
		h = (struct weft_seal_hello *)(e.hello + WEFT_EXCHANGE_AT);
		if (i < sizeof(h->reserved))
			h->reserved[i] = 1;
		else if (i == 4)
			h->cipher = WEFT_EXCHANGE_AES128_GCM + 1;
		else if (i == 5)
			h->lane = 1;
		else
			h->proof[15] = 1;
		assert_int_equal(check(&e), WEFT_HELLO_FORMAT);
	}
}

static void each_refusal_has_its_own_sentence(void **state)
{
	(void)state;
	for (unsigned int v = 0; v < WEFT_HELLO_COUNT; v++) {
		assert_true(strlen(weft_hello_verdict_text(v)) > 10);
		for (unsigned int w = 0; w < v; w++)
			assert_string_not_equal(weft_hello_verdict_text(v),
						weft_hello_verdict_text(w));
	}
}

/* ------------------------------------------------------------------ the schedule's own vectors */

/*
 * Fixed inputs, so that a change of a label or of the transcript is noticed. vectors.py in this
 * folder is another implementation of doc/sealing.md and prints the same values.
 */
static void exchange_of_vectors(struct ends *e, enum weft_exchange_kind kind, const uint8_t key[32])
{
	uint8_t random[32];

	ends_init(e, kind, 0);
	e->i_conf.lane = e->r_conf.lane = kind == WEFT_EXCHANGE_NEXT;
	assert_int_equal(weft_exchange_key_init(&e->i_key, key), 0);
	e->r_key = e->i_key;
	for (unsigned int i = 0; i < WEFT_EXCHANGE_AT; i++) {
		e->hello[i] = (uint8_t)(0x40 + i);
		e->ack[i] = (uint8_t)(0x90 + i);
	}
	memset(random, 0xa1, sizeof(random));
	assert_int_equal(weft_exchange_offer(&e->x, &e->i_key, &e->i_conf, e->hello, random), 0);
	assert_int_equal(check(e), WEFT_HELLO_OK);
	memset(random, 0xb2, sizeof(random));
	assert_int_equal(weft_exchange_answer(&e->r_key, &e->r_conf, e->hello, sizeof(e->hello),
					      e->ack, random, &e->r),
			 0);
}

static void the_schedule_is_that_of_the_document(void **state)
{
	uint8_t job_key[32], lane = 9;
	struct ends e, next;

	(void)state;
	for (unsigned int i = 0; i < 32; i++)
		job_key[i] = (uint8_t)i;
	exchange_of_vectors(&e, WEFT_EXCHANGE_PSK, job_key);
	assert_false(weft_exchange_is_next(e.hello, sizeof(e.hello), &lane));
	expect_hex(e.i_key.id, 8, "adfcbdac821e53a2");
	expect_hex(e.hello + 136, 16, "491ac548b918a0a9c88d97f1a9346749");
	expect_hex(e.ack + 136, 16, "d3ccba4edbf19b113c676aef088d9316");
	expect_hex(e.r.initiator, 32,
		   "7caf036395f2bb422eb176fdc239c2272862c25f33ca0c84cdb798ecc072078c");
	expect_hex(e.r.responder, 32,
		   "f1dc33681e4e0fdbd808d254753682ca4d32c0e7ebbbe78e4fb1012fed839717");
	expect_hex(e.r.exporter, 32,
		   "882cffe8f705bc7be4e8f6b1d77b4104f041cce3e27ff2e5af5a1cee0d21105e");

	/* Lane 1 of the same endpoint. */
	exchange_of_vectors(&next, WEFT_EXCHANGE_NEXT, e.r.exporter);
	assert_true(weft_exchange_is_next(next.hello, sizeof(next.hello), &lane));
	assert_int_equal(lane, 1);
	assert_false(weft_exchange_is_next(next.hello, sizeof(next.hello) - 1, &lane));
	expect_hex(next.i_key.id, 8, "f7b146d1068a3438");
	expect_hex(next.hello + 136, 16, "5690ea0ff197fc306900cb653e52f507");
	expect_hex(next.ack + 136, 16, "1f2bb525a3d7dac038a7a66c15bb25ce");
	expect_hex(next.r.initiator, 32,
		   "01148d1fa4274c3debbadbf37fbf01a9cad6b361f74f6e48a889a07696bb3667");
	expect_hex(next.r.responder, 32,
		   "de1d1f328b01d62a62f25c3ef6b3d2b14d15cf4a2cda825d5712b8fb016d3d53");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_derive_the_same_three_secrets),
		cmocka_unit_test(a_second_exchange_has_other_secrets),
		cmocka_unit_test(either_end_alone_makes_the_secrets_fresh),
		cmocka_unit_test(the_cookie_may_change_after_the_offer),
		cmocka_unit_test(secrets_depend_on_each_byte_of_the_first_hello),
		cmocka_unit_test(secrets_depend_on_version_mode_and_lane),
		cmocka_unit_test(each_changed_bit_of_a_hello_is_refused),
		cmocka_unit_test(each_changed_bit_of_an_answer_is_refused),
		cmocka_unit_test(an_answer_to_an_earlier_hello_is_refused),
		cmocka_unit_test(a_reflected_hello_is_refused),
		cmocka_unit_test(what_ends_have_configured_otherwise_is_named),
		cmocka_unit_test(a_hello_of_another_length_is_judged),
		cmocka_unit_test(a_hello_with_a_valid_mac_and_a_wrong_proof_is_refused),
		cmocka_unit_test(bytes_of_no_known_format_are_named),
		cmocka_unit_test(each_refusal_has_its_own_sentence),
		cmocka_unit_test(the_schedule_is_that_of_the_document),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
