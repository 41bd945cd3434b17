/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>

#include "base/tcp.h"
#include "seal_util.h"

#define TEXT 200u
#define ANSWER (TEXT + WEFT_GREETING_OVERHEAD)

/* vectors.py computes them, from doc/sealing.md. */
static const char request_hex[] =
	"815fb6314405e007d04ed215c223d5cd4b799d07bb7189ad10dbf324ea5342713d9c022ad5cc46b2"
	"87e83a110f9bd837";
static const char answer_hex[] =
	"0cd33b7ae5d4f23a1e820949c543157d3d24408b196ff9ce29a9ce715c6d21393f4e789046a70de4"
	"908ca346c455f28a1e2349c1e795d76bf6f2539674898ccf6e06ec6afd4434432cf4fd199d049281"
	"4ca0cb734e07d4f631daecd99bd1c4932c556d1cd15cd1b32710ed57e3c2d5583ba909f512bf39bb"
	"ad370de492d92284551b6fc02b20f2bacf47769a5f195766cd56c667355b06c6967dd336052129de"
	"6cd119324e4b859461ec1e0d00ba3522b35103501176a600e8d354d2d7a6455eed1e351206c4e759"
	"7d80bb8d4a9881242faf835b3bd9c36cbdcee7f35e19c22e40d0a30ddd61a23e1204a9dc9158412b"
	"cef27df8841aa34d039a04029f33903e78c73afa3319c166";

static const struct weft_greeting_ops *const ops = &weft_sealed_greeting;

struct ends {
	struct weft_greeting_key client, server;
	uint8_t text[TEXT], request[WEFT_GREETING_REQUEST], answer[ANSWER];
};

static void ends_init(struct ends *e)
{
	for (unsigned int i = 0; i < 32; i++)
		e->client.job_key[i] = e->server.job_key[i] = (uint8_t)i;
	memset(e->client.random, 'c', sizeof(e->client.random));
	memset(e->server.random, 's', sizeof(e->server.random));
	for (unsigned int i = 0; i < TEXT; i++)
		e->text[i] = (uint8_t)i;
}

static void exchange(struct ends *e)
{
	ends_init(e);
	assert_int_equal(ops->request(&e->client, e->request), 0);
	assert_int_equal(ops->answer(&e->server, e->request, e->text, TEXT, e->answer), 0);
}

static void the_messages_are_those_of_the_document(void **state)
{
	uint8_t got[TEXT];
	struct ends e;

	(void)state;
	exchange(&e);
	expect_hex(e.request, sizeof(e.request), request_hex);
	expect_hex(e.answer, sizeof(e.answer), answer_hex);
	assert_int_equal(ops->open(&e.client, e.answer, ANSWER, got), 0);
	assert_memory_equal(got, e.text, TEXT);
}

/* The key of X25519 has a bit that does not count; the hash contains it, as all others. */
static void each_changed_bit_is_refused(void **state)
{
	uint8_t got[TEXT], spare[ANSWER];
	struct ends e;

	(void)state;
	exchange(&e);
	for (unsigned int bit = 0; bit < 8 * WEFT_GREETING_REQUEST; bit++) {
		e.request[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(ops->answer(&e.server, e.request, e.text, TEXT, spare), -EBADMSG);
		e.request[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (unsigned int bit = 0; bit < 8 * ANSWER; bit++) {
		e.answer[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(ops->open(&e.client, e.answer, ANSWER, got), -EBADMSG);
		e.answer[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (unsigned int len = 0; len < ANSWER; len++)
		assert_int_equal(ops->open(&e.client, e.answer, len, got), -EBADMSG);
	assert_int_equal(ops->open(&e.client, e.answer, ANSWER, got), 0);
}

static void other_keys_and_other_requests_are_refused(void **state)
{
	uint8_t got[TEXT], again[ANSWER];
	struct ends e;

	(void)state;
	exchange(&e);
	e.server.job_key[31] ^= 1;
	assert_int_equal(ops->answer(&e.server, e.request, e.text, TEXT, again), -EBADMSG);
	e.server.job_key[31] ^= 1;
	e.client.job_key[31] ^= 1;
	assert_int_equal(ops->open(&e.client, e.answer, ANSWER, got), -EBADMSG);
	e.client.job_key[31] ^= 1;
	/* The answer to another request, such as that of a recording. */
	e.client.random[0] ^= 8;
	assert_int_equal(ops->open(&e.client, e.answer, ANSWER, got), -EBADMSG);
	e.client.random[0] ^= 8;
	/* A request that is repeated has another answer. */
	e.server.random[0] ^= 8;
	assert_int_equal(ops->answer(&e.server, e.request, e.text, TEXT, again), 0);
	assert_memory_not_equal(again + WEFT_GREETING_REQUEST, e.answer + WEFT_GREETING_REQUEST,
				TEXT);
	assert_int_equal(ops->open(&e.client, again, ANSWER, got), 0);
	assert_memory_equal(got, e.text, TEXT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_messages_are_those_of_the_document),
		cmocka_unit_test(each_changed_bit_is_refused),
		cmocka_unit_test(other_keys_and_other_requests_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
