/* SPDX-License-Identifier: BSD-3-Clause */

/* Configuration: values as text, messages, unknown names; the text of WEFT_LANES; the log. */

#include <fcntl.h>
#include <unistd.h>

#include "core/config.h"
#include "core/config_text.h"
#include "mock/conn_util.h"
#include "core/lane_list.h"
#include "self/self_lane.h"

extern char **environ;

static int clear_environment(void **state)
{
	char name[128];
	int i;

	(void)state;
	for (i = 0; environ[i] != NULL;) {
		if (strncmp(environ[i], "WEFT_", 5) != 0) {
			i++;
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(environ[i], "="), environ[i]);
		unsetenv(name);
	}
	return 0;
}

static struct weft_config *config;

/* The environment alone: the files of this machine do not count. */
static int read_environment(struct weft_config **c)
{
	struct weft_log_limit limit = {0};
	const struct weft_config_sources from = {.environment = environ, .limit = &limit};

	return weft_config_read_from(&from, c);
}

static int setup(void **state)
{
	clear_environment(state);
	weft_log_setup(WEFT_LOG_WARN, "/dev/null");
	return read_environment(&config);
}

static int teardown(void **state)
{
	(void)state;
	weft_config_release(config);
	weft_log_setup(WEFT_LOG_WARN, NULL);
	return 0;
}

/* What went to the log since the last call. */
static const char *log_text(void)
{
	static char buf[8192];
	int fd = open("weft-test-config.log", O_RDONLY);
	ssize_t n = fd >= 0 ? read(fd, buf, sizeof(buf) - 1) : 0;

	buf[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
	return buf;
}

static void log_begin(void)
{
	weft_log_setup(WEFT_LOG_WARN, NULL);
	unlink("weft-test-config.log");
	weft_log_setup(WEFT_LOG_WARN, "weft-test-config.log");
}

static void log_end(void)
{
	weft_log_setup(WEFT_LOG_WARN, NULL);
	unlink("weft-test-config.log");
}

static int set(const char *name, const char *value)
{
	return weft_config_modify(config, name, value);
}

static void sizes_times_and_words_are_understood(void **state)
{
	struct weft_conf *c = &config->conf;

	(void)state;
	assert_int_equal(set("RNDV_THRESH", "64k"), 0);
	assert_int_equal(c->rndv_thresh, 65536);
	assert_int_equal(set("WEFT_RNDV_THRESH", "1.5M"), 0);
	assert_int_equal(c->rndv_thresh, 1572864);
	assert_int_equal(set("rndv_thresh", "2GiB"), 0);
	assert_true(c->rndv_thresh == 2ull << 30);
	assert_int_equal(set("RNDV_THRESH", "inf"), 0);
	assert_true(c->rndv_thresh == WEFT_CONF_INF);
	assert_int_equal(set("RNDV_THRESH", "auto"), 0);
	assert_true(c->rndv_thresh == WEFT_CONF_AUTO);
	assert_int_equal(set("RNDV_THRESH", "0"), 0);
	assert_int_equal(c->rndv_thresh, 0);
	assert_int_equal(set("PEER_TIMEOUT", "1500ms"), 0);
	assert_true(c->lane.peer_timeout_ns == 1500000000ull);
	assert_int_equal(set("PEER_TIMEOUT", "2"), 0);
	assert_true(c->lane.peer_timeout_ns == 2000000000ull);
	assert_int_equal(set("PEER_TIMEOUT", "2m"), 0);
	assert_true(c->lane.peer_timeout_ns == 120000000000ull);
	assert_int_equal(set("PEER_TIMEOUT", "inf"), 0);
	assert_true(c->lane.peer_timeout_ns == UINT64_MAX);
	assert_int_equal(set("ZCOPY", "off"), 0);
	assert_false(c->lane.zcopy);
	assert_int_equal(set("CSUM", "crc32c"), 0);
	assert_int_equal(c->lane.csum, WEFT_CSUM_CRC32C);
	assert_int_equal(set("ENCAP", "ether"), 0);
	assert_true(c->lane.raw_ethertype);
	assert_int_equal(set("LOG_LEVEL", "warn"), 0);
	assert_int_equal(c->log_level, WEFT_LOG_WARN);
	assert_int_equal(set("SEQ_START", "4294967295"), 0);
	assert_true(c->seq_start == UINT32_MAX);
	assert_int_equal(set("WINDOW", "auto"), 0);
	assert_int_equal(c->lane.window, 0);
	assert_null(c->lane.capture);
	assert_int_equal(set("CAPTURE", "x.pcapng"), 0);
	assert_string_equal(c->lane.capture, "x.pcapng");
	assert_int_equal(set("CAPTURE", ""), 0);
	assert_null(c->lane.capture);
}

/* @behaviour X2 */
static void malformed_values_are_refused_and_change_nothing(void **state)
{
	static const char *const bad[][2] = {
		{"RNDV_THRESH", ""},
		{"RNDV_THRESH", "64q"},
		{"RNDV_THRESH", "-1"},
		{"RNDV_THRESH", "0x10"},
		{"RNDV_THRESH", "nan"},
		{"RNDV_THRESH", "1e300"},
		{"RNDV_THRESH", "64 k"},
		{"EAGER_CREDIT", "0"},
		{"EAGER_CREDIT", "auto"},
		{"EAGER_CREDIT", "inf"},
		{"PATHS", "1.5"},
		{"PATHS", "0"},
		{"PATHS", "17"},
		{"UDP_PORT", "0"},
		{"UDP_PORT", "65536"},
		{"PEER_TIMEOUT", "0"},
		{"PEER_TIMEOUT", "10h"},
		{"CONNECT_TIMEOUT", "inf"},
		{"ZCOPY", "maybe"},
		{"ZCOPY", ""},
		{"CSUM", "crc"},
		{"CSUM", "crc32"},
		{"CSUM", ""},
		{"ENCAP", "u"},
		{"SEQ_START", "4294967296"},
		{"UNEXP_LIMIT", "1"},
		{"LOG_LEVEL", "loud"},
	};
	char before[64], after[64];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		weft_config_get(config, bad[i][0], before, sizeof(before));
		/* "crc32" says which word is meant. */
		if (strcmp(bad[i][1], "crc32") == 0)
			continue;
		if (set(bad[i][0], bad[i][1]) != -EINVAL)
			fail_msg("%s=%s was taken", bad[i][0], bad[i][1]);
		weft_config_get(config, bad[i][0], after, sizeof(after));
		assert_string_equal(before, after);
	}
	assert_int_equal(set("NO_SUCH_OPTION", "1"), -ENOENT);
	assert_int_equal(set(NULL, "1"), -EINVAL);
	assert_int_equal(weft_config_read(NULL), -EINVAL);
	assert_int_equal(weft_config_get(config, "NO_SUCH_OPTION", after, sizeof(after)), -ENOENT);
}

/* @behaviour X2 */
static void errors_name_the_variable_its_value_and_what_was_expected(void **state)
{
	struct weft_config *c;

	(void)state;
	log_begin();
	setenv("WEFT_CSUM", "sha1", 1);
	setenv("WEFT_PATHS", "1000", 1);
	assert_int_equal(read_environment(&c), -EINVAL);
	assert_non_null(strstr(log_text(), "WEFT_CSUM=sha1"));
	assert_non_null(strstr(log_text(), "auto|none|udp|crc32c"));
	assert_non_null(strstr(log_text(), "WEFT_PATHS=1000"));
	assert_non_null(strstr(log_text(), "1 to 16"));
	clear_environment(NULL);
	log_end();
}

/* @behaviour X2 */
static void unknown_variables_are_warned_about_with_the_nearest_name(void **state)
{
	struct weft_config *c;

	(void)state;
	log_begin();
	setenv("WEFT_PEER_TIMEOT", "1s", 1);
	setenv("WEFT_TEST_NO_HUGE", "1", 1); /* the scripts' own */
	assert_int_equal(read_environment(&c), 0);
	weft_config_release(c);
	assert_non_null(strstr(log_text(), "WEFT_PEER_TIMEOT"));
	assert_non_null(strstr(log_text(), "WEFT_PEER_TIMEOUT"));
	assert_null(strstr(log_text(), "NO_HUGE"));
	clear_environment(NULL);
	log_end();
}

static void the_environment_sets_values(void **state)
{
	struct weft_config *c;

	(void)state;
	setenv("WEFT_EAGER_CREDIT", "2M", 1);
	setenv("WEFT_LANES", "self", 1);
	assert_int_equal(read_environment(&c), 0);
	assert_int_equal(c->conf.eager_credit, 2 << 20);
	assert_string_equal(c->conf.lanes, "self");
	weft_config_release(c);
	clear_environment(NULL);
}

/*
 * Every option: a default that is valid, help worth reading, and a printed form that reads back as
 * the same value.
 */
static void every_option_has_help_and_prints_what_it_reads(void **state)
{
	char text[256], again[256], why[256];
	const struct weft_option *o;
	unsigned int i, k;

	(void)state;
	for (i = 0; i < weft_num_options; i++) {
		o = &weft_options[i];
		assert_true(strlen(o->help) > 15);
		assert_true(o->help[strlen(o->help) - 1] == '.');
		assert_non_null(o->unit);
		assert_true(o->type != WEFT_OPT_ENUM || o->words != NULL);
		assert_int_equal(weft_option_set(&config->conf, o, o->def, why, sizeof(why)), 0);
		weft_option_print(&config->conf, o, text, sizeof(text));
		assert_int_equal(weft_option_set(&config->conf, o, text, why, sizeof(why)), 0);
		weft_option_print(&config->conf, o, again, sizeof(again));
		assert_string_equal(text, again);
		for (k = 0; k < i; k++)
			assert_string_not_equal(o->name, weft_options[k].name);
	}
}

static void printed_configuration_is_read_back_by_a_shell(void **state)
{
	char line[512], cmd[1024], *text = NULL, *copy, *p;
	size_t len;
	FILE *f;

	(void)state;
	/* Defaults print as they stand in the table. */
	f = open_memstream(&text, &len);
	weft_config_print(config, f, WEFT_CONFIG_PRINT_F_CHANGED);
	fclose(f);
	assert_string_equal(text, "");
	free(text);
	text = NULL;
	assert_int_equal(set("EAL_ARGS", "--no-huge it's \"so\" $HOME; *"), 0);
	assert_int_equal(set("EAGER_CREDIT", "8k"), 0);
	f = open_memstream(&text, &len);
	weft_config_print(config, f, WEFT_CONFIG_PRINT_F_CHANGED);
	fclose(f);
	assert_non_null(strstr(text, "WEFT_EAGER_CREDIT=8k\n"));
	assert_null(strstr(text, "WEFT_CSUM"));
	copy = strdup(text);
	p = strtok(copy, "\n");
	snprintf(cmd, sizeof(cmd), "%s\nprintf '%%s\\n' \"$WEFT_EAL_ARGS\"", p);
	f = popen(cmd, "r");
	assert_non_null(fgets(line, sizeof(line), f));
	pclose(f);
	assert_string_equal(line, "--no-huge it's \"so\" $HOME; *\n");
	free(copy);
	free(text);
	/* With help: every line is a comment, an assignment or empty. */
	text = NULL;
	f = open_memstream(&text, &len);
	weft_config_print(config, f, WEFT_CONFIG_PRINT_F_HELP);
	fclose(f);
	for (p = strtok(text, "\n"); p; p = strtok(NULL, "\n")) {
		assert_true(p[0] == '#' || strncmp(p, "WEFT_", 5) == 0);
		assert_true(strlen(p) <= 100 || p[0] != '#');
	}
	free(text);
}

static void a_copy_is_independent(void **state)
{
	struct weft_config *copy;

	(void)state;
	assert_int_equal(set("LANES", "mock:1"), 0);
	assert_int_equal(weft_config_copy(config, &copy), 0);
	assert_int_equal(set("LANES", "mock:2"), 0);
	assert_string_equal(copy->conf.lanes, "mock:1");
	weft_config_release(copy);
	weft_config_release(NULL);
}

/* ------------------------------------------------------------------ WEFT_LANES */

static struct weft_lanes_item items[WEFT_LANES_MAX_ITEMS];
static char why[320];

static int parse(const char *text)
{
	return weft_lanes_parse(text, mock_drivers, items, why, sizeof(why));
}

static void lanes_are_parsed(void **state)
{
	(void)state;
	assert_int_equal(parse("mock:0,bw=1;mock:net_memif1 , lat=2,so=3; self;;"), 3);
	assert_ptr_equal(items[0].driver, &mock_driver);
	assert_string_equal(items[0].resource, "0");
	assert_string_equal(items[0].options, "bw=1");
	assert_string_equal(items[1].resource, "net_memif1");
	assert_string_equal(items[1].options, "lat=2,so=3");
	assert_ptr_equal(items[2].driver, &weft_self_driver);
	assert_true(items[2].all);
	assert_int_equal(parse("mock:*,bw=2"), 1);
	assert_true(items[0].all);
	assert_string_equal(items[0].options, "bw=2");
	assert_int_equal(parse(""), 2);
	assert_int_equal(parse("all"), 2);
	assert_int_equal(parse(" ; * "), 2);
	/* '*' takes the rest: what has words of its own keeps them. */
	assert_int_equal(parse("mock:1,bw=3;*"), 3);
	assert_string_equal(items[0].resource, "1");
	assert_string_equal(items[0].options, "bw=3");
	assert_true(items[1].all);
	assert_int_equal(parse("*;mock:1,bw=3"), 3);
	assert_string_equal(items[0].resource, "1");
	/* Or all but some. */
	assert_int_equal(parse("-mock"), 1);
	assert_ptr_equal(items[0].driver, &weft_self_driver);
	assert_int_equal(parse("* ; - self"), 1);
	assert_ptr_equal(items[0].driver, &mock_driver);
	assert_int_equal(parse("mock:1;*;-mock"), 2);
}

/* '*' marks a fallback driver, so that the worker can leave it out; its name does not. */
static void a_fallback_is_marked(void **state)
{
	static const struct weft_lane_driver other = {.name = "other", .fallback = true};
	static const struct weft_lane_driver *const drivers[] = {&other, &mock_driver, NULL};

	(void)state;
	assert_int_equal(weft_lanes_parse("*", drivers, items, why, sizeof(why)), 2);
	assert_ptr_equal(items[0].driver, &other);
	assert_true(items[0].all && items[0].fallback);
	assert_false(items[1].fallback);
	assert_int_equal(weft_lanes_parse("other:*", drivers, items, why, sizeof(why)), 1);
	assert_true(items[0].all);
	assert_false(items[0].fallback);
	assert_int_equal(weft_lanes_parse("*;-other", drivers, items, why, sizeof(why)), 1);
	assert_ptr_equal(items[0].driver, &mock_driver);
}

static void numbers_of_a_lane_go_before_its_drivers(void **state)
{
	struct weft_lane_attr attr = {.bandwidth = 1, .latency = 2, .recv_overhead = 3};

	(void)state;
	/* The mock has bw= and lat= of its own; overhead= is everybody's. */
	assert_int_equal(parse("mock:0,bw=1e9,overhead=100ns,net=1"), 1);
	assert_string_equal(items[0].options, "bw=1e9,net=1");
	assert_int_equal(items[0].numbers.given, 4);
	assert_true(items[0].numbers.overhead == 100 * 1e-9);
	assert_int_equal(parse("self,bw=25Gbps,lat=12us,reg=16us"), 1);
	assert_string_equal(items[0].options, "");
	weft_lane_numbers_apply(&items[0].numbers, &attr);
	assert_true(attr.bandwidth == 25 * 0.125e9);
	assert_true(attr.latency > 11.9e-6 && attr.latency < 12.1e-6);
	assert_true(attr.recv_overhead == 3);
	assert_true(attr.reg_cost > 15.9e-6 && attr.reg_cost < 16.1e-6);
	assert_int_equal(parse("self,bw=25"), -EINVAL);
	assert_non_null(strstr(why, "25Gbps"));
	assert_int_equal(parse("self,lat=12"), -EINVAL);
	assert_non_null(strstr(why, "12us"));
	assert_int_equal(parse("self,overhead=-1ns"), -EINVAL);
	assert_int_equal(parse("mock:0,overhead=2h"), -EINVAL);
	assert_int_equal(parse("self,bw=0Gbps"), -EINVAL);
}

/* @behaviour X3 */
static void bad_lanes_are_refused_with_a_sentence(void **state)
{
	char many[800] = "";
	int i;

	(void)state;
	assert_int_equal(parse("mocc:0"), -EINVAL);
	assert_non_null(strstr(why, "'mock' meant"));
	assert_int_equal(parse("-mocc"), -EINVAL);
	assert_non_null(strstr(why, "'mock' meant"));
	assert_int_equal(parse("-"), -EINVAL);
	assert_int_equal(parse("mock:1;-self"), -EINVAL);
	assert_non_null(strstr(why, "takes a driver out of '*'"));
	assert_int_equal(parse("xyzzy42:0"), -EINVAL);
	assert_non_null(strstr(why, "mock, self"));
	assert_int_equal(parse("mock:"), -EINVAL);
	assert_int_equal(parse("mock:0,ba=1"), -EINVAL);
	assert_non_null(strstr(why, "known: net,"));
	assert_int_equal(parse("self,x=1"), -EINVAL);
	assert_int_equal(parse(":0"), -EINVAL);
	assert_int_equal(parse(","), -EINVAL);
	for (i = 0; i < 40; i++)
		strcat(many, "mock:0;");
	assert_int_equal(parse(many), -EINVAL);
	many[7 * (WEFT_LANES_MAX_ITEMS - 1)] = '*';
	many[7 * (WEFT_LANES_MAX_ITEMS - 1) + 1] = '\0';
	assert_int_equal(parse(many), -EINVAL);
	memset(many, 'a', sizeof(many) - 1);
	memcpy(many, "mock:", 5);
	assert_int_equal(parse(many), -EINVAL);
	memcpy(many, "mock:0,bw=", 10);
	assert_int_equal(parse(many), -EINVAL);
}

static void nearest_words_are_near(void **state)
{
	char near[32];

	(void)state;
	assert_string_equal(weft_nearest_word("gateway", "ip,gw,mtu,gatewey", ",", near,
					      sizeof(near)),
			    "gatewey");
	assert_null(weft_nearest_word("qqqqqq", "ip,gw,mtu", ",", near, sizeof(near)));
	assert_null(weft_nearest_word("x", "", ",", near, sizeof(near)));
}

static bool is_constant(const char *word)
{
	static const char *const kinds[] = {"WEFT_FEATURE_", "WEFT_MEM_", "WEFT_OP_",
					    "WEFT_THREAD_", "WEFT_WORKER_"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strncmp(word, kinds[i], strlen(kinds[i])) == 0)
			return true;
	return false;
}

static bool is_for_users(const char *name)
{
	const struct weft_option *o = weft_option_find(name);

	return o && !o->hidden && !o->profile;
}

/* The manual pages must not name options that are not in weft-config(7). */
static void manual_pages_name_no_unknown_option(void **state)
{
	static const char *const pages[] = {
		"weft.7",      "weft-perf.1", "weft-cat.1",    "weft-info.1",
		"weft-wire.1", "weft-dump.1", "weft-switch.1",
	};
	static const char *const others = " WEFT_PEER_TIMEOT "; /* an example of a mistake */
	char path[512], word[64], find[72], *p;
	static char text[65536];
	size_t i, n;
	FILE *f;

	(void)state;
	for (i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		snprintf(path, sizeof(path), "%s/../../doc/man/%s", WEFT_TEST_DATA, pages[i]);
		f = fopen(path, "r");
		if (!f)
			fail_msg("%s cannot be read", path);
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
		text[n] = '\0';
		for (p = text; (p = strstr(p, "WEFT_")) != NULL; p += strlen(word)) {
			n = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
			snprintf(word, sizeof(word), "%.*s", (int)n, p);
			snprintf(find, sizeof(find), " %s ", word);
			/*
			 * Constants of weft.h, and rights and features among them, are no options.
			 */
			if (n > 5 && !is_for_users(word) && !strstr(others, find) &&
			    !is_constant(word))
				fail_msg("%s speaks of %s", pages[i], word);
		}
	}
}

/* ------------------------------------------------------------------ log */

static void a_flood_of_lines_is_limited(void **state)
{
	struct weft_log_limit limit = {0};
	unsigned int i, lines = 0;
	const char *p;

	(void)state;
	log_begin();
	for (i = 0; i < 1000; i++)
		weft_log_limited(&limit, WEFT_LOG_WARN, "somebody shouts %u", i);
	for (p = log_text(); (p = strstr(p, "shouts")) != NULL; p++)
		lines++;
	assert_int_equal(lines, 5);
	assert_int_equal(limit.suppressed, 995);
	log_end();
}

static void long_lines_are_cut_and_levels_obeyed(void **state)
{
	static char big[5000];

	(void)state;
	log_begin();
	memset(big, 'x', sizeof(big) - 1);
	weft_warn("%s", big);
	weft_info("not this");
	assert_true(strlen(log_text()) <= 1024);
	assert_int_equal(log_text()[strlen(log_text()) - 1], '\n');
	assert_null(strstr(log_text(), "not this"));
	assert_true(weft_log_setup(WEFT_LOG_WARN, "/no/such/dir/x.log") < 0);
	log_end();
}

#define CONFIG_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CONFIG_TEST(sizes_times_and_words_are_understood),
		CONFIG_TEST(malformed_values_are_refused_and_change_nothing),
		CONFIG_TEST(errors_name_the_variable_its_value_and_what_was_expected),
		CONFIG_TEST(unknown_variables_are_warned_about_with_the_nearest_name),
		CONFIG_TEST(the_environment_sets_values),
		CONFIG_TEST(every_option_has_help_and_prints_what_it_reads),
		CONFIG_TEST(printed_configuration_is_read_back_by_a_shell),
		CONFIG_TEST(a_copy_is_independent),
		CONFIG_TEST(lanes_are_parsed),
		CONFIG_TEST(a_fallback_is_marked),
		CONFIG_TEST(numbers_of_a_lane_go_before_its_drivers),
		CONFIG_TEST(bad_lanes_are_refused_with_a_sentence),
		CONFIG_TEST(nearest_words_are_near),
		CONFIG_TEST(manual_pages_name_no_unknown_option),
		CONFIG_TEST(a_flood_of_lines_is_limited),
		CONFIG_TEST(long_lines_are_cut_and_levels_obeyed),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
