/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What peers call themselves and why they refuse: the log, error messages and queries have it
 * without what a terminal obeys.
 */

#include <unistd.h>

#include "mock/unknown_sender.h"

#define HOSTILE                \
	"\033]0;owned\007\x9b" \
	"2J\r"
#define SHOWN "?]0;owned??2J?"

static char path[] = "/tmp/weft-peer-text.XXXXXX";

static struct weft_context *context_with_log(void)
{
	char set[64];
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	snprintf(set, sizeof(set), "LOG_FILE=%s", path);
	return mock_context("CONNECT_TIMEOUT=5s", "LOG_LEVEL=debug", set, NULL);
}

/* The log has the words, and lines of printable characters. */
static void log_shows(const char *words)
{
	static char text[1 << 16];
	FILE *file = fopen(path, "r");
	size_t n;

	assert_non_null(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	fclose(file);
	unlink(path);
	for (size_t i = 0; i < n; i++)
		if (text[i] != '\n' && (text[i] < ' ' || text[i] == 0x7f))
			fail_msg("byte %02x in the log", (uint8_t)text[i]);
	assert_non_null(strstr(text, words));
}

/* @behaviour T10 */
static void a_peers_name_commands_no_terminal(void **state)
{
	struct weft_context *ctx = context_with_log();
	struct weft_worker *w = mock_worker(ctx, "mock:0");
	struct unknown_sender s = {.lane_ep = mock_unknown(mock_iface(w, 0)), .id = 42};
	struct weft_wire_wireup h = unknown_head(&s, w, WEFT_WIREUP_REQ, 0), ans;
	struct weft_address a = {.worker_id = s.id, .name = HOSTILE, .num_ifaces = 1};
	struct weft_ep_attr attr = {.size = sizeof(attr)};
	struct weft_records r;

	(void)state;
	a.ifaces[0] = unknown_iface(&s, 2);
	unknown_req(&a, 2, w, &r);
	unknown_send(&s, w, &h, &r);
	assert_int_equal(unknown_answer(&s, &ans), WEFT_WIREUP_REP);
	assert_int_equal(w->num_eps, 1);
	assert_int_equal(weft_ep_query(conn_first_ep(w), &attr), 0);
	assert_string_equal(attr.remote_name, SHOWN);
	mock_unknown_close(s.lane_ep);
	mock_run(3, MS, w, NULL);
	weft_worker_destroy(w);
	assert_int_equal(weft_context_destroy(ctx), 0);
	log_shows(SHOWN);
}

/* @behaviour T10 */
static void an_address_is_read_with_its_name_made_plain(void **state)
{
	struct weft_address a = {.worker_id = 42, .name = HOSTILE};
	struct weft_address_attr attr = {.size = sizeof(attr)};
	uint8_t buf[WEFT_ADDRESS_MAX];

	(void)state;
	assert_int_equal(weft_address_query(buf, weft_address_pack(&a, buf), &attr), 0);
	assert_string_equal(attr.name, SHOWN);
}

/* @behaviour T10 */
static void why_a_peer_refuses_commands_no_terminal(void **state)
{
	struct weft_context *ctx = context_with_log();
	struct weft_worker *w = mock_worker(ctx, "mock:0"), *b = mock_worker(ctx, "mock:0");
	struct mock_err err = {0};
	struct weft_ep *ep = conn_create(b, w, &err);
	struct weft_records r = {.len = 0};
	struct weft_wire_wireup h;
	uint8_t buf[512];

	(void)state;
	mock_hold(mock_iface(b, 0));
	mock_run(5, MS, b, w, NULL);
	weft_records_add(&r, WEFT_RECORD_TEXT, "no: " HOSTILE, strlen("no: " HOSTILE));
	h = (struct weft_wire_wireup){
		.type = WEFT_WIREUP_ERROR,
		.major = WEFT_WIRE_MAJOR,
		.minor = WEFT_WIRE_MINOR,
		.lane = WEFT_WIREUP_ALL_LANES,
		.conn_sn = weft_put32(ep->conn_sn),
		.src_worker = weft_put64(w->id),
		.dst_worker = weft_put64(b->id),
		.dst_ep = {weft_put32(ep->slot), weft_put32(ep->generation)},
		.dst_secret = weft_put64(ep->secret),
		.status = weft_put16(ECONNREFUSED),
		.total = weft_put16((uint16_t)r.len),
	};
	memcpy(buf, &h, sizeof(h));
	memcpy(buf + sizeof(h), r.buf, r.len);
	mock_release(mock_iface(b, 0));
	mock_set_order(MOCK_REVERSE);
	mock_inject(ep->wireup->boot, WEFT_WIRE_WIREUP, buf, sizeof(h) + r.len);
	mock_run(1, MS, b, NULL);
	assert_int_equal(err.calls, 1);
	assert_non_null(strstr(err.why, "no: " SHOWN));
	conn_destroy(ctx, w, b);
	log_shows("no: " SHOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONN_TEST(a_peers_name_commands_no_terminal),
		CONN_TEST(an_address_is_read_with_its_name_made_plain),
		CONN_TEST(why_a_peer_refuses_commands_no_terminal),
	};

	return cmocka_run_group_tests_name("text of peers", tests, NULL, NULL);
}
