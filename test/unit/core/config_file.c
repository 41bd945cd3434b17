/* SPDX-License-Identifier: BSD-3-Clause */

/* Configuration files: lines, precedence, origins, refused files; removed variables. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/config.h"
#include "core/config_text.h"
#include "mock/conn_util.h"

static char folder[64], logged[16384];
static char paths[WEFT_CONFIG_SOURCES][128];

static bool take_line(enum weft_log_level level, const char *source, const char *text, void *arg)
{
	size_t n = strlen(logged);

	(void)level;
	(void)source;
	(void)arg;
	snprintf(logged + n, sizeof(logged) - n, "%s\n", text);
	return true;
}

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/weft-config-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	for (int i = 0; i < WEFT_CONFIG_SOURCES; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/%d.conf", folder, i);
	logged[0] = '\0';
	weft_log_level = WEFT_LOG_WARN;
	weft_log_set_callback(take_line, NULL);
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	weft_log_set_callback(NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void put_bytes(const char *path, const char *text, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, length), length);
	close(fd);
}

static void put(enum weft_config_source source, const char *text)
{
	put_bytes(paths[source], text, strlen(text));
}

/* Reads the files of the folder. @p variables  "NAME=value", NULL-terminated */
static int read_with(char *const *variables, bool secure, struct weft_config **config)
{
	struct weft_log_limit limit = {0};
	const struct weft_config_sources from = {
		.system_file = paths[WEFT_CONFIG_SYSTEM_FILE],
		.user_file = paths[WEFT_CONFIG_USER_FILE],
		.environment = variables,
		.secure = secure,
		.limit = &limit,
	};

	return weft_config_read_from(&from, config);
}

static struct weft_config *read_files(void)
{
	struct weft_config *config;

	assert_int_equal(read_with(NULL, false, &config), 0);
	return config;
}

static void expect(const struct weft_config *config, const char *name, const char *value,
		   const char *origin)
{
	char text[256];

	weft_config_get(config, name, text, sizeof(text));
	assert_string_equal(text, value);
	weft_config_origin(config, name, text, sizeof(text));
	assert_string_equal(text, origin);
}

/* A text with the path of a file in front: "PATH:LINE..." */
static const char *at(enum weft_config_source source, const char *text)
{
	static char buf[512];

	snprintf(buf, sizeof(buf), "%s:%s", paths[source], text);
	return buf;
}

static void reported(const char *text)
{
	if (!strstr(logged, text))
		fail_msg("the log has no '%s': %s", text, logged);
}

/* ------------------------------------------------------------------ what a file sets */

static void each_source_has_priority_over_those_before(void **state)
{
	static const char *const names[] = {"PATHS", "RX_BUFS", "MIN_LANES", "UDP_PORT", "ENCAP"};
	char named[160], port[] = "WEFT_UDP_PORT=104", encap[] = "WEFT_ENCAP=udp";
	char *const variables[] = {named, port, encap, NULL};
	struct weft_config *config, *copy;

	(void)state;
	snprintf(named, sizeof(named), "WEFT_CONFIG=%s", paths[WEFT_CONFIG_NAMED_FILE]);
	put(WEFT_CONFIG_SYSTEM_FILE, "WEFT_PATHS=1\nWEFT_RX_BUFS=101\nWEFT_MIN_LANES=1\n"
				     "WEFT_UDP_PORT=101\nWEFT_ENCAP=ether\n");
	put(WEFT_CONFIG_USER_FILE, "WEFT_RX_BUFS=102\nWEFT_MIN_LANES=2\nWEFT_UDP_PORT=102\n");
	put(WEFT_CONFIG_NAMED_FILE, "WEFT_MIN_LANES=3\n\nWEFT_UDP_PORT=bad\n");
	assert_int_equal(read_with(variables, false, &config), 0);
	assert_int_equal(weft_config_modify(config, "ENCAP", "ether"), 0);
	/* A copy has sources of its own. */
	assert_int_equal(weft_config_copy(config, &copy), 0);
	for (int i = 0; i < 2; i++) {
		const struct weft_config *c = i ? copy : config;

		expect(c, names[0], "1", at(WEFT_CONFIG_SYSTEM_FILE, "1"));
		expect(c, names[1], "102", at(WEFT_CONFIG_USER_FILE, "1"));
		expect(c, names[2], "3", at(WEFT_CONFIG_NAMED_FILE, "1"));
		expect(c, names[3], "104", "environment");
		expect(c, names[4], "ether", "program");
		expect(c, "CSUM", "auto", "default");
		if (!i)
			weft_config_release(config);
	}
	weft_config_release(copy);
	assert_string_equal(logged, "");
}

static void without_files_all_is_default(void **state)
{
	struct weft_config *config = read_files();

	(void)state;
	expect(config, "PATHS", "auto", "default");
	assert_int_equal(weft_config_origin(config, "NO_SUCH", NULL, 0), -ENOENT);
	assert_int_equal(weft_config_origin(NULL, "PATHS", NULL, 0), -EINVAL);
	weft_config_release(config);
	assert_string_equal(logged, "");
}

static void lines_have_comments_blanks_and_quotes(void **state)
{
	static const struct {
		const char *line, *value;
	} t[] = {
		{"WEFT_EAL_ARGS=--no-huge -m 64", "--no-huge -m 64"},
		{"  WEFT_EAL_ARGS \t= \t a b \t\r", "a b"},
		{"WEFT_EAL_ARGS=a #b", "a"},
		{"WEFT_EAL_ARGS=a#b", "a#b"},
		{"WEFT_EAL_ARGS=#b", "#b"},
		{"WEFT_EAL_ARGS= #b", ""},
		{"WEFT_EAL_ARGS=", ""},
		{"WEFT_EAL_ARGS=a=b", "a=b"},
		{"WEFT_EAL_ARGS=it's", "it's"},
		{"WEFT_EAL_ARGS=' a # b ' # c", " a # b "},
		{"WEFT_EAL_ARGS=\"it's\"", "it's"},
		{"WEFT_EAL_ARGS='it'\\''s'", "it's"},
		{"WEFT_EAL_ARGS='a'b\"c\"", "abc"},
		{"weft_eal_args=a", ""}, /* as in the environment */
		{"#WEFT_EAL_ARGS=a", ""},
		{"WEFT_EAL_ARGS=a\nWEFT_EAL_ARGS=b\n", "b"},
	};
	struct weft_config *config;
	char value[64];

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		put(WEFT_CONFIG_USER_FILE, t[i].line);
		config = read_files();
		weft_config_get(config, "EAL_ARGS", value, sizeof(value));
		if (strcmp(value, t[i].value) != 0)
			fail_msg("%s: '%s'", t[i].line, value);
		weft_config_release(config);
	}
}

/* `weft-info -c >FILE` is a file that has the same values. */
static void a_printed_configuration_is_a_file(void **state)
{
	static const char args[] = " it's # \"so\" ";
	struct weft_config *config = read_files();
	char value[64];
	FILE *f;

	(void)state;
	assert_int_equal(weft_config_modify(config, "EAL_ARGS", args), 0);
	assert_int_equal(weft_config_modify(config, "SEQ_START", "7"), 0);
	f = fopen(paths[WEFT_CONFIG_USER_FILE], "w");
	assert_non_null(f);
	weft_config_print(config, f,
			  WEFT_CONFIG_PRINT_F_HELP | WEFT_CONFIG_PRINT_F_ORIGIN |
				  WEFT_CONFIG_PRINT_F_ALL);
	fclose(f);
	chmod(paths[WEFT_CONFIG_USER_FILE], 0644);
	weft_config_release(config);
	config = read_files();
	assert_string_equal(logged, "");
	for (unsigned int i = 0; i < weft_num_options; i++) {
		const struct weft_option *o = &weft_options[i];

		if (o->profile || o->environment || !strcmp(o->name, "EAL_ARGS") ||
		    !strcmp(o->name, "SEQ_START"))
			continue;
		weft_config_get(config, o->name, value, sizeof(value));
		assert_string_equal(value, o->def);
		assert_int_equal(config->origin[i].source, WEFT_CONFIG_USER_FILE);
	}
	weft_config_get(config, "EAL_ARGS", value, sizeof(value));
	assert_string_equal(value, args);
	assert_int_equal(config->conf.seq_start, 7);
	weft_config_release(config);
}

static void bad_lines_are_reported_with_their_place_and_ignored(void **state)
{
	struct weft_config *config;

	(void)state;
	put(WEFT_CONFIG_USER_FILE, "# a comment\nWEFT_PEER_TIMEOT=1s\nPATHS=3\n[section]\n"
				   "nonsense\nWEFT_LANES='a\n");
	config = read_files();
	expect(config, "PEER_TIMEOUT", "30s", "default");
	expect(config, "PATHS", "auto", "default");
	expect(config, "LANES", "", "default");
	weft_config_release(config);
	reported(at(WEFT_CONFIG_USER_FILE, "2: unknown variable WEFT_PEER_TIMEOT is ignored; is "
					   "WEFT_PEER_TIMEOUT meant?"));
	reported(at(WEFT_CONFIG_USER_FILE, "3: unknown variable PATHS is ignored; is WEFT_PATHS"));
	reported(at(WEFT_CONFIG_USER_FILE, "4: a configuration file has no sections"));
	reported(at(WEFT_CONFIG_USER_FILE, "5: the line is not understood: expected WEFT_NAME="));
	reported(at(WEFT_CONFIG_USER_FILE, "6: the quotation mark is not closed"));
}

/* As in the environment. */
static void a_malformed_value_is_an_error_with_its_place(void **state)
{
	struct weft_config *config;

	(void)state;
	put(WEFT_CONFIG_SYSTEM_FILE, "\nWEFT_CSUM=sha1\n");
	put(WEFT_CONFIG_USER_FILE, "WEFT_PATHS=1000\n");
	assert_int_equal(read_with(NULL, false, &config), -EINVAL);
	reported(at(WEFT_CONFIG_SYSTEM_FILE, "2: WEFT_CSUM=sha1 is not understood: expected one"));
	reported(at(WEFT_CONFIG_USER_FILE, "1: WEFT_PATHS=1000 is out of range: expected 1 to 16"));
}

static void a_removed_variable_is_reported_once_and_changes_nothing(void **state)
{
	char diff[] = "WEFT_RNDV_PERF_DIFF=50", chunk[] = "WEFT_MIN_CHUNK=nonsense";
	char *const variables[] = {diff, chunk, NULL};
	struct weft_config *config;
	char text[32];

	(void)state;
	put(WEFT_CONFIG_USER_FILE, "WEFT_ZCOPY_THRESH=1\n");
	assert_int_equal(read_with(variables, false, &config), 0);
	assert_true(config->conf.rndv_perf_diff == 1);
	assert_int_equal(config->conf.min_chunk, 4096);
	assert_true(config->conf.zcopy_thresh == WEFT_CONF_AUTO);
	assert_int_equal(weft_config_modify(config, "MAX_EAGER_LANES", "1"), 0);
	assert_int_equal(config->conf.max_eager_lanes, 16);
	assert_int_equal(weft_config_get(config, "MAX_EAGER_LANES", text, sizeof(text)), -ENOENT);
	reported("WEFT_RNDV_PERF_DIFF has no effect since Weft 0.2.0: The model favours");
	reported("WEFT_MIN_CHUNK has no effect since");
	reported("WEFT_MAX_EAGER_LANES has no effect since");
	reported(at(WEFT_CONFIG_USER_FILE, "1: WEFT_ZCOPY_THRESH has no effect since"));
	weft_config_release(config);
	logged[0] = '\0';
	assert_int_equal(read_with(variables, false, &config), 0);
	assert_string_equal(logged, "");
	weft_config_release(config);
}

static void a_removed_variable_is_no_variable(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < weft_num_removed; i++) {
		const struct weft_option *o = weft_option_find(weft_removed[i].name);

		assert_true(!o || o->profile);
	}
	for (unsigned int i = 0, known = 0; i < weft_num_options; i++, known = 0) {
		for (unsigned int k = 0; k < weft_num_removed; k++)
			known += !strcmp(weft_removed[k].name, weft_options[i].name);
		assert_int_equal(known, weft_options[i].profile);
	}
}

static unsigned int printed(const struct weft_config *config, unsigned int flags, const char *find)
{
	unsigned int n = 0;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	weft_config_print(config, f, flags);
	fclose(f);
	for (const char *p = text; (p = strstr(p, find)) != NULL; p++)
		n++;
	free(text);
	return n;
}

static void at_most_40_variables_are_for_users(void **state)
{
	struct weft_config *config = read_files();

	(void)state;
	/* Four of them are those of sealed lanes, which have a secret, a mode and two choices. */
	assert_true(printed(config, 0, "WEFT_") <= 40);
	assert_int_equal(printed(config, 0, "WEFT_SEQ_START="), 0);
	assert_int_equal(printed(config, WEFT_CONFIG_PRINT_F_ALL, "WEFT_SEQ_START="), 1);
	assert_int_equal(printed(config, WEFT_CONFIG_PRINT_F_ALL, "PERF_DIFF"), 0);
	/* A hidden variable that is set is printed. */
	assert_int_equal(weft_config_modify(config, "SEQ_START", "7"), 0);
	assert_int_equal(printed(config, WEFT_CONFIG_PRINT_F_CHANGED, "WEFT_"), 1);
	assert_int_equal(printed(config, WEFT_CONFIG_PRINT_F_CHANGED | WEFT_CONFIG_PRINT_F_ORIGIN,
				 "WEFT_SEQ_START=7  # program\n"),
			 1);
	weft_config_release(config);
}

/* ------------------------------------------------------------------ WEFT_CONFIG */

static int read_named(const char *path)
{
	char named[256], *const variables[] = {named, NULL};
	struct weft_config *config = NULL;
	int rc;

	snprintf(named, sizeof(named), "WEFT_CONFIG=%s", path);
	rc = read_with(variables, false, &config);
	if (rc == 0) {
		char text[32];

		weft_config_get(config, "PATHS", text, sizeof(text));
		rc = strcmp(text, "auto") ? atoi(text) : 0;
	}
	weft_config_release(config);
	return rc;
}

static void off_reads_no_file_and_empty_is_unset(void **state)
{
	(void)state;
	put(WEFT_CONFIG_SYSTEM_FILE, "WEFT_PATHS=3\n");
	put(WEFT_CONFIG_USER_FILE, "WEFT_PATHS=4\n");
	assert_int_equal(read_named("off"), 0);
	assert_int_equal(read_named(""), 4);
	assert_string_equal(logged, "");
}

static void a_named_file_that_cannot_be_used_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(read_named(paths[WEFT_CONFIG_NAMED_FILE]), -EINVAL);
	reported("can't be used: there is no such file (WEFT_CONFIG=off reads no file)");
	assert_int_equal(read_named(folder), -EINVAL);
	reported("can't be used: it is not a regular file");
}

static void a_name_in_a_file_or_by_a_call_has_no_effect(void **state)
{
	struct weft_config *config;

	(void)state;
	put(WEFT_CONFIG_USER_FILE, "WEFT_CONFIG=/etc/passwd\n");
	config = read_files();
	reported(at(WEFT_CONFIG_USER_FILE, "1: WEFT_CONFIG has an effect in the environment only"));
	assert_int_equal(weft_config_modify(config, "CONFIG", "off"), -EINVAL);
	weft_config_release(config);
}

static void the_users_file_follows_xdg(void **state)
{
	char path[PATH_MAX];

	(void)state;
	setenv("HOME", "/home/x", 1);
	unsetenv("XDG_CONFIG_HOME");
	assert_int_equal(weft_config_file_user(path, sizeof(path)), 0);
	assert_string_equal(path, "/home/x/.config/weft.conf");
	setenv("XDG_CONFIG_HOME", "relative", 1);
	assert_int_equal(weft_config_file_user(path, sizeof(path)), 0);
	assert_string_equal(path, "/home/x/.config/weft.conf");
	setenv("XDG_CONFIG_HOME", "/xdg", 1);
	assert_int_equal(weft_config_file_user(path, sizeof(path)), 0);
	assert_string_equal(path, "/xdg/weft.conf");
	assert_int_equal(weft_config_file_user(path, 8), -ENAMETOOLONG);
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("HOME");
	assert_int_equal(weft_config_file_user(path, sizeof(path)), -ENOENT);
}

/* ------------------------------------------------------------------ hostile files */

/* The file is ignored with a warning that has @p reason, and the program goes on. */
static void is_ignored(const char *reason)
{
	static const struct weft_config_file none;
	struct weft_config_file file;
	struct weft_config *config;
	char why[256];

	assert_true(weft_config_file_read(paths[WEFT_CONFIG_USER_FILE], &file, why, sizeof(why)) <
		    0);
	if (!strstr(why, reason))
		fail_msg("'%s' has no '%s'", why, reason);
	assert_memory_equal(&file, &none, sizeof(file));
	config = read_files();
	expect(config, "PATHS", "auto", "default");
	weft_config_release(config);
}

static void what_is_no_regular_file_is_ignored(void **state)
{
	const char *path = paths[WEFT_CONFIG_USER_FILE];

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	is_ignored("it is not a regular file"); /* a FIFO without a writer would block */
	reported("is ignored: it is not a regular file");
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	is_ignored("it is not a regular file");
	rmdir(path);
	assert_int_equal(symlink("/dev/zero", path), 0);
	is_ignored("it is not a regular file");
	unlink(path);
	assert_int_equal(symlink("nowhere", path), 0);
	is_ignored("the target of the symbolic link: No such file");
}

static void long_files_and_zero_bytes_are_ignored(void **state)
{
	const char *path = paths[WEFT_CONFIG_USER_FILE];
	static char text[WEFT_CONFIG_FILE_MAX + 1];
	static const char zero[] = "WEFT_PATHS=3\n\nWEFT_PA\0THS=3\n";
	struct weft_config *config;

	(void)state;
	put_bytes(path, zero, sizeof(zero) - 1);
	is_ignored("it is not a text file: line 3 has a zero byte");
	assert_int_equal(truncate(path, 1 << 30), 0);
	is_ignored("it is longer than 64 KiB");
	unlink(path);
	/* One line without an end, as long as is allowed, and one byte more. */
	memset(text, 'x', sizeof(text));
	memcpy(text, "WEFT_PATHS=3\n", 13);
	put_bytes(path, text, sizeof(text));
	is_ignored("it is longer than 64 KiB");
	put_bytes(path, text, sizeof(text) - 1);
	config = read_files();
	expect(config, "PATHS", "3", at(WEFT_CONFIG_USER_FILE, "1"));
	weft_config_release(config);
	/* Text of a file can't control a terminal: log.c. Random bytes do no harm. */
	for (unsigned int seed = 1; seed < 300; seed++) {
		srand(seed);
		for (size_t i = 0; i < 400; i++)
			text[i] = "WEFT_PATHS=3\n\n'\"\\ \t#[]=\x1b\xff"[rand() % 25];
		put_bytes(path, text, 400);
		if (read_with(NULL, false, &config) == 0)
			weft_config_release(config);
	}
}

static void what_others_can_write_is_ignored(void **state)
{
	const char *path = paths[WEFT_CONFIG_USER_FILE];

	(void)state;
	put(WEFT_CONFIG_USER_FILE, "WEFT_PATHS=3\n");
	chmod(path, 0620);
	is_ignored("other users can write it; remedy: chmod go-w '");
	chmod(path, 0602);
	is_ignored("other users can write it");
}

static void files_and_links_of_others_are_ignored(void **state)
{
	const char *path = paths[WEFT_CONFIG_USER_FILE], *target = paths[WEFT_CONFIG_NAMED_FILE];
	struct weft_config *config;

	(void)state;
	if (geteuid() != 0)
		skip();
	put(WEFT_CONFIG_USER_FILE, "WEFT_PATHS=3\n");
	assert_int_equal(chown(path, 65534, 65534), 0);
	is_ignored("it belongs to user 65534; it must belong to root or");
	unlink(path);
	/* A link of root to a file of root is used; of another user it is not. */
	put(WEFT_CONFIG_NAMED_FILE, "WEFT_PATHS=3\n");
	assert_int_equal(symlink(target, path), 0);
	config = read_files();
	expect(config, "PATHS", "3", at(WEFT_CONFIG_USER_FILE, "1"));
	weft_config_release(config);
	assert_int_equal(lchown(path, 65534, 65534), 0);
	is_ignored("it is a symbolic link of another user");
}

/* ------------------------------------------------------------------ AT_SECURE */

static void more_rights_read_the_systems_file_only(void **state)
{
	char named[160], *const variables[] = {named, NULL};
	struct weft_config *config;

	(void)state;
	if (geteuid() != 0)
		skip();
	snprintf(named, sizeof(named), "WEFT_CONFIG=%s", paths[WEFT_CONFIG_NAMED_FILE]);
	put(WEFT_CONFIG_SYSTEM_FILE, "WEFT_PATHS=3\nWEFT_CAPTURE=/x\nWEFT_EAL_ARGS=-d y\n");
	put(WEFT_CONFIG_USER_FILE, "WEFT_PATHS=4\n");
	put(WEFT_CONFIG_NAMED_FILE, "WEFT_PATHS=5\n");
	/* The file is root's: its settings of files and modules count. */
	assert_int_equal(read_with(variables, true, &config), 0);
	expect(config, "PATHS", "3", at(WEFT_CONFIG_SYSTEM_FILE, "1"));
	expect(config, "CAPTURE", "/x", at(WEFT_CONFIG_SYSTEM_FILE, "2"));
	expect(config, "EAL_ARGS", "-d y", at(WEFT_CONFIG_SYSTEM_FILE, "3"));
	expect(config, "CONFIG", "", "default");
	weft_config_release(config);
	reported("WEFT_CONFIG is ignored: this program has more rights than its user");
}

/* The file belongs to the user of the process, which is not root: file capabilities. */
static void a_systems_file_of_a_user_names_no_file(void **state)
{
	struct weft_config *config;

	(void)state;
	if (geteuid() != 0)
		skip();
	put(WEFT_CONFIG_SYSTEM_FILE, "WEFT_PATHS=3\nWEFT_CAPTURE=/x\nWEFT_EAL_ARGS=-d y\n");
	assert_int_equal(chown(paths[WEFT_CONFIG_SYSTEM_FILE], 65534, 65534), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(seteuid(65534), 0);
	assert_int_equal(read_with(NULL, true, &config), 0);
	assert_int_equal(seteuid(0), 0);
	expect(config, "PATHS", "3", at(WEFT_CONFIG_SYSTEM_FILE, "1"));
	expect(config, "CAPTURE", "", "default");
	expect(config, "EAL_ARGS", "", "default");
	weft_config_release(config);
	reported(at(WEFT_CONFIG_SYSTEM_FILE, "2: WEFT_CAPTURE is ignored: this program has more"));
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(bad_lines_are_reported_with_their_place_and_ignored),
		FILE_TEST(each_source_has_priority_over_those_before),
		FILE_TEST(without_files_all_is_default),
		FILE_TEST(lines_have_comments_blanks_and_quotes),
		FILE_TEST(a_printed_configuration_is_a_file),
		FILE_TEST(a_malformed_value_is_an_error_with_its_place),
		FILE_TEST(a_removed_variable_is_reported_once_and_changes_nothing),
		FILE_TEST(a_removed_variable_is_no_variable),
		FILE_TEST(at_most_40_variables_are_for_users),
		FILE_TEST(off_reads_no_file_and_empty_is_unset),
		FILE_TEST(a_named_file_that_cannot_be_used_is_an_error),
		FILE_TEST(a_name_in_a_file_or_by_a_call_has_no_effect),
		FILE_TEST(the_users_file_follows_xdg),
		FILE_TEST(what_is_no_regular_file_is_ignored),
		FILE_TEST(long_files_and_zero_bytes_are_ignored),
		FILE_TEST(what_others_can_write_is_ignored),
		FILE_TEST(files_and_links_of_others_are_ignored),
		FILE_TEST(more_rights_read_the_systems_file_only),
		FILE_TEST(a_systems_file_of_a_user_names_no_file),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("config_file", tests, NULL, NULL);
}
