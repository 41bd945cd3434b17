/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sealed lanes (doc/sealing.md) over the simulated network: modes, faults, keys, refusals.
 */

#include <errno.h>
#include <string.h>

#include "seal/exchange.h"
#include "seal/seal.h"
#include "sealed_scene.h"

static const uint8_t other_key[32] = "a job key of the sealed lanes 02";

/* ---- every mode ------------------------------------------------------------------------------ */

/* @behaviour Y62: with a job key every frame behind the handshake is sealed, in all modes */
static void every_mode_seals_all_frames(struct sim_case *c)
{
	struct sealed_scene s;

	for (unsigned int i = 0; i < 16; i++) {
		struct sim_port_params p = sealed_fast;

		p.seal_auth = i & 1;
		p.seal_psk = i & 2;
		p.raw_ethertype = i & 4;
		p.flags = i & 8 ? WEFT_FRAME_PORT_MEMORY : 0;
		p.frame_size = i & 1 ? 9014 : 0;
		sealed_open(&s, c, &p, i & 8 ? NULL : "CSUM=udp");
		sealed_traffic(&s, 0, 300);
		sealed_close(&s);
	}
}

static bool contains(const struct sealed_frame *f, const void *text, size_t len)
{
	for (size_t i = 0; i + len <= f->len; i++)
		if (memcmp(f->data + i, text, len) == 0)
			return true;
	return false;
}

/* @behaviour Y63: with WEFT_SEAL=encrypt no byte of a message can be read on the wire, and with
 * auth they can */
static void bodies_are_readable_with_auth_only(struct sim_case *c)
{
	struct sealed_scene s;

	for (unsigned int auth = 0; auth < 2; auth++) {
		struct sim_port_params p = sealed_fast;
		unsigned int readable = 0;
		uint8_t text[LANE_HDR + 16];
		uint32_t head[2] = {7, 600};

		p.seal_auth = auth;
		sealed_open(&s, c, &p, NULL);
		assert_true(lane_send(s.e, LANE_SHORT, 7, 600) >= 0);
		sim_run(s.sim, 10 * SIM_MS, NULL, NULL);
		assert_int_equal(lane_got(s.b, 7), 1);
		memcpy(text, head, sizeof(head));
		for (unsigned int i = 0; i < s.rec->n; i++)
			readable += contains(&s.rec->frame[i], text, sizeof(head));
		assert_int_equal(readable > 0, auth);
		sealed_close(&s);
	}
}

/* @behaviour Y64: a sealed lane survives loss, duplicates, reordering and corruption */
static void faults_of_the_network_are_repaired(struct sim_case *c)
{
	static const struct sim_link links[] = {
		{.rate = 10 * SIM_GBIT, .delay_ns = 5000, .loss = 0.05},
		{.rate = 10 * SIM_GBIT, .delay_ns = 5000, .dup = 0.1},
		{.rate = 10 * SIM_GBIT, .delay_ns = 5000, .reorder = 0.2, .reorder_ns = 200000},
		{.rate = 10 * SIM_GBIT, .delay_ns = 5000, .corrupt = 0.05},
		{.rate = 10 * SIM_GBIT, .delay_ns = 5000, .truncate = 0.05},
	};
	struct sealed_scene s;

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		struct sim_port_params p = sealed_fast;

		p.up = links[i];
		sealed_open_hosts(&s, c, &p, &p, "CONNECT_TIMEOUT=10s");
		s.e = lane_connect(s.a, s.b);
		sim_run(s.sim, 2 * SIM_S, NULL, NULL);
		assert_true(s.e->up);
		sealed_traffic(&s, 0, 1000);
		if (links[i].dup > 0)
			assert_true(lane_counter(s.b, "drop.seal_replay") > 0);
		if (links[i].corrupt > 0)
			assert_true(lane_counter(s.b, "drop.seal_tag") > 0);
		sealed_close(&s);
	}
}

/*
 * @behaviour Y100: with auth a lane sends from user memory without a copy, also again after a loss;
 * with encrypt it does not
 */
static void auth_sends_from_user_memory(struct sim_case *c)
{
	struct sealed_scene s;

	for (unsigned int auth = 0; auth < 2; auth++) {
		struct sim_port_params p = sealed_fast;

		p.seal_auth = auth;
		p.up.loss = 0.05;
		p.frame_size = 9014;
		sealed_open(&s, c, &p, "CONNECT_TIMEOUT=10s");
		for (uint32_t i = 0; i < 200; i++) {
			assert_true(lane_send(s.e, LANE_ZCOPY, i, 4000) >= 0);
			sim_run(s.sim, SIM_MS, NULL, NULL);
		}
		sim_run(s.sim, SIM_S, NULL, NULL);
		assert_true(lane_exactly_once(s.b, 0, 200));
		assert_int_equal(lane_wrong(s.b), 0);
		assert_int_equal(lane_zcopy_pending(s.a), 0);
		if (auth)
			assert_true(sim_port_stats(s.pa)->chains >= 200);
		else
			assert_int_equal(sim_port_stats(s.pa)->chains, 0);
		sealed_close(&s);
	}
}

/* A message that is alone leaves in a copy that was built beside its frame, which is kept. */
static void lone_messages_that_are_lost(struct sim_case *c)
{
	struct sealed_scene s;

	for (unsigned int auth = 0; auth < 2; auth++) {
		struct sim_port_params p = sealed_fast;

		p.seal_auth = auth;
		p.flags = WEFT_FRAME_PORT_MEMORY; /* one path, a fixed window */
		p.up.loss = 0.2;
		sealed_open(&s, c, &p, "CONNECT_TIMEOUT=10s");
		for (uint32_t i = 0; i < 200; i++) {
			assert_true(lane_send(s.e, LANE_SHORT, i, 20 + i) >= 0);
			sim_run(s.sim, 5 * SIM_MS, NULL, NULL);
		}
		sim_run(s.sim, SIM_S, NULL, NULL);
		assert_true(lane_exactly_once(s.b, 0, 200));
		assert_int_equal(lane_wrong(s.b), 0);
		assert_true(lane_counter(s.a, "tx.retransmit.probe") > 10);
		sealed_close(&s);
	}
}

static void parts_and_an_mtu_that_falls(struct sim_case *c)
{
	struct sim_port_params p = sealed_fast;
	struct sealed_scene s;

	p.frame_size = 9014;
	sealed_open(&s, c, &p, NULL);
	sealed_traffic(&s, 0, 200);
	s.rec->mtu = 1500;
	sealed_traffic(&s, 1000, 300);
	assert_true(lane_counter(s.a, "tx.parts") > 0);
	s.rec->mtu = 0;
	sealed_traffic(&s, 3000, 100);
	sealed_close(&s);
}

static void several_paths(struct sim_case *c)
{
	struct sim_port_params p = sealed_fast;
	struct sealed_scene s;

	p.paths = 4;
	p.up.reorder = 0.05;
	p.up.reorder_ns = 100000;
	sealed_open(&s, c, &p, NULL);
	sealed_traffic(&s, 0, 2000);
	sealed_close(&s);
}

/*
 * @behaviour Y73: a sealed connection replaces its keys by their age in both directions, also those
 * of an end that sends no DATA
 */
static void keys_are_replaced_when_old(struct sim_case *c)
{
	struct sim_port_params p = sealed_fast;
	struct sealed_scene s;

	p.up.loss = 0.01;
	p.up.reorder = 0.05;
	p.up.reorder_ns = 100000;
	p.seal_rekey_ns = 20 * SIM_MS;
	sealed_open(&s, c, &p, NULL);
	for (unsigned int i = 0; i < 200; i++) {
		if (!lane_send_all(s.e, 10 * i, 10 * (i + 1), 20 * SIM_S))
			fail_msg("traffic stopped: %s", s.e->text);
		sim_run(s.sim, 10 * SIM_MS, NULL, NULL);
	}
	assert_true(lane_exactly_once(s.b, 0, 2000));
	assert_true(lane_counter(s.a, "seal.rekeys") > 20);
	assert_true(lane_counter(s.b, "seal.rekeys") > 10);
	assert_int_equal(s.e->downs + lane_passive(s.b)->downs, 0);
	sealed_traffic(&s, 5000, 100);
	sealed_close(&s);
}

/* Frames in which a window is closed and buffers are short. */
static void few_buffers(struct sim_case *c)
{
	struct sim_port_params p = sealed_fast;
	struct sealed_scene s;

	p.bufs = 256;
	p.rx_depth = 64;
	p.hdr_bufs = 128;
	sealed_open(&s, c, &p, NULL);
	lane_keep(s.b, 20);
	sealed_traffic(&s, 0, 2000);
	lane_release(s.b);
	sealed_close(&s);
}

/* ---- refusals -------------------------------------------------------------------------------- */

struct refusal {
	const char *counter; /* of the responder */
	struct sim_port_params a, b;
};

/*
 * @behaviour Y71: ends with different job keys, modes or exchanges, or of which one has no key, do
 * not connect; both report the reason
 */
static void ends_that_do_not_seal_alike_are_refused(struct sim_case *c)
{
	struct sim_port_params none = sealed_fast, other = sealed_fast, auth = sealed_fast,
			       psk = sealed_fast;
	struct sealed_scene s;

	none.job_key = NULL;
	other.job_key = other_key;
	auth.seal_auth = true;
	psk.seal_psk = true;
	const struct refusal refusals[] = {
		{"seal.hello_plain", none, sealed_fast}, {"seal.hello_plain", sealed_fast, none},
		{"seal.hello_key", other, sealed_fast},  {"seal.hello_mode", auth, sealed_fast},
		{"seal.hello_mode", sealed_fast, auth},  {"seal.hello_mode", psk, sealed_fast},
	};

	for (size_t k = 0, i; k < 2 * sizeof(refusals) / sizeof(refusals[0]); k++) {
		struct sim_port_params b;

		i = k / 2;
		b = refusals[i].b;
		/* The HELLO names the interface, so this process may answer where others could. */
		b.flags |= k % 2 ? WEFT_FRAME_PORT_SHARED : 0;
		sealed_open_hosts(&s, c, &refusals[i].a, &b, "CONNECT_TIMEOUT=2s");
		s.e = lane_connect(s.a, s.b);
		sim_run(s.sim, 3 * SIM_S, NULL, NULL);
		assert_true(s.e->down && !s.e->ups);
		assert_int_equal(s.e->status, -ECONNREFUSED);
		assert_non_null(strstr(s.e->text, "WEFT_JOB_KEY, WEFT_SEAL and WEFT_SEAL_DH"));
		assert_true(lane_counter(s.b, refusals[i].counter) > 0);
		assert_int_equal(lane_num_passive(s.b), 0);
		assert_int_equal(s.rec->sealed, 0);
		sealed_forget(s.rec);
	}
}

/* Hellos that are lost, and a peer that forgets the half-open connection meanwhile. */
static void a_handshake_with_losses(struct sim_case *c)
{
	struct sim_port_params p = sealed_fast;
	struct sealed_scene s;

	p.up.loss = 0.4;
	for (unsigned int i = 0; i < 20; i++, c->seed++) {
		sealed_open_hosts(&s, c, &p, &p, "CONNECT_TIMEOUT=30s");
		s.e = lane_connect(s.a, s.b);
		for (unsigned int k = 0; k < 100 && !s.e->up; k++)
			sim_run(s.sim, 100 * SIM_MS, NULL, NULL);
		assert_true(s.e->up);
		sealed_close(&s);
	}
	/* The initiator does not poll while its half-open entry expires at the peer. */
	sealed_open_hosts(&s, c, &sealed_fast, &sealed_fast, "CONNECT_TIMEOUT=30s");
	s.e = lane_connect(s.a, s.b);
	sim_run(s.sim, 15 * SIM_US, NULL, NULL);
	while (lane_counter(s.b, "conn.count") == 0)
		sim_run(s.sim, SIM_US, NULL, NULL);
	sim_run(s.sim, 12 * SIM_US, NULL, NULL);
	lane_host_pause(s.a, 7 * SIM_S);
	sim_run(s.sim, 9 * SIM_S, NULL, NULL);
	assert_true(s.e->up);
	sealed_traffic(&s, 0, 100);
	sealed_close(&s);
}

/* ---- the simulator's own check -------------------------------------------------------------- */

static struct weft_sealed_op one_op(struct weft_sealed *conn, uint8_t head[WEFT_SEALED_HEAD],
				    const struct weft_cipher_seg *seg, uint8_t *tag)
{
	memset(head, 0, WEFT_SEALED_HEAD);
	return (struct weft_sealed_op){
		.conn = conn, .head = head, .segs = seg, .num_segs = 1, .tag = tag};
}

/*
 * Two connections with the same secrets begin with the same number. All tests of this folder would
 * fail then.
 */
static void a_repeated_key_and_nonce_are_found(struct sim_case *c)
{
	struct weft_exchange_secrets secrets = {0};
	uint8_t head[WEFT_SEALED_HEAD], body[64] = {0}, tag[WEFT_CIPHER_TAG_LEN];
	const struct weft_cipher_seg seg = {body, body, sizeof(body)};
	struct weft_sealed_conf conf = {
		.slots = 2, .key_due = WEFT_SEALED_KEY_DUE, .bad_tags = WEFT_SEALED_BAD_TAGS};
	struct weft_cipher *cipher;
	struct weft_sealed_op op;
	struct weft_sealed *s[3];
	char why[300];

	case_sim(c);
	cipher = weft_cipher_create(why, sizeof(why));
	assert_non_null(cipher);
	for (unsigned int auth = 0; auth < 2; auth++) {
		conf.mode = auth ? WEFT_SEAL_AUTH : WEFT_SEAL_ENCRYPT;
		sim_nonces_forget();
		for (unsigned int i = 0; i < 3; i++) {
			conf.initiator = i < 2;
			assert_int_equal(weft_sealed_create(cipher, &conf, &secrets, &s[i]), 0);
		}
		op = one_op(s[0], head, &seg, tag);
		assert_int_equal(weft_sealed_seal(cipher, &op, 1), 1);
		op = one_op(s[0], head, &seg, tag);
		op.slot = 1;
		assert_int_equal(weft_sealed_seal(cipher, &op, 1), 1);
		/* A frame that is opened repeats nothing. */
		op.conn = s[2];
		assert_int_equal(weft_sealed_open(cipher, &op, 1, 0), 1);
		assert_int_equal(sim_nonces().sealed, 2);
		assert_int_equal(sim_nonces().repeated, 0);
		op = one_op(s[1], head, &seg, tag);
		assert_int_equal(weft_sealed_seal(cipher, &op, 1), 1);
		assert_int_equal(sim_nonces().sealed, 3);
		assert_int_equal(sim_nonces().repeated, 1);
		for (unsigned int i = 0; i < 3; i++)
			weft_sealed_destroy(s[i]);
	}
	weft_cipher_destroy(cipher);
	sim_nonces_forget();
}

static struct sim_case cases[] = {
	SIM_CASE(every_mode_seals_all_frames),
	SIM_CASE(bodies_are_readable_with_auth_only),
	SIM_CASE(faults_of_the_network_are_repaired),
	SIM_CASE(auth_sends_from_user_memory),
	SIM_CASE(lone_messages_that_are_lost),
	SIM_CASE(parts_and_an_mtu_that_falls),
	SIM_CASE(several_paths),
	SIM_CASE(keys_are_replaced_when_old),
	SIM_CASE(few_buffers),
	SIM_CASE(ends_that_do_not_seal_alike_are_refused),
	SIM_CASE(a_handshake_with_losses),
	SIM_CASE(a_repeated_key_and_nonce_are_found),
};

int main(int argc, char **argv)
{
	return sealed_main(argc, argv, "lane_sealed", cases, sizeof(cases) / sizeof(cases[0]));
}
