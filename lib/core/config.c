/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

#include "core/config.h"
#include "base/log.h"
#include "base/text.h"
#include "core/config_text.h"

#define SYSTEM_FILE "/etc/weft.conf"

/* Bytes; no variable sets them. */
#define MIN_CHUNK 4096
#define RNDV_MIN_PIECE 16384

extern char **environ;

/* Variables of scripts and tests, which the library does not read. */
static const char script_variables[] =
	"WEFT_BUILD WEFT_NO_INSTALL WEFT_HUGEPAGES WEFT_NO_HUGE_MB WEFT_TEST_NO_HUGE";

const struct weft_option *weft_option_find(const char *name)
{
	unsigned int i;

	if (strncasecmp(name, "WEFT_", 5) == 0)
		name += 5;
	for (i = 0; i < weft_num_options; i++)
		if (strcasecmp(weft_options[i].name, name) == 0)
			return &weft_options[i];
	return NULL;
}

/* ------------------------------------------------------------------ nearest name */

#define WORD_MAX 40

/* Levenshtein distance without regard to case; at most WORD_MAX. */
static unsigned int distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned int row[WORD_MAX + 1], i, j, diag, up;

	if (a_len > WORD_MAX || b_len > WORD_MAX)
		return WORD_MAX;
	for (j = 0; j <= b_len; j++)
		row[j] = j;
	for (i = 1; i <= a_len; i++) {
		diag = row[0];
		row[0] = i;
		for (j = 1; j <= b_len; j++) {
			up = row[j];
			row[j] = diag + (tolower((unsigned char)a[i - 1]) !=
					 tolower((unsigned char)b[j - 1]));
			if (up + 1 < row[j])
				row[j] = up + 1;
			if (row[j - 1] + 1 < row[j])
				row[j] = row[j - 1] + 1;
			diag = up;
		}
	}
	return row[b_len];
}

const char *weft_nearest_word(const char *word, const char *list, const char *sep, char *buf,
			      size_t size)
{
	size_t len = strlen(word), n;
	unsigned int best = (unsigned int)len / 2 + 1, d;
	const char *found = NULL;

	for (; *list != '\0'; list += n) {
		list += strspn(list, sep);
		n = strcspn(list, sep);
		d = distance(word, len, list, n);
		if (n > 0 && n < size && d < best) {
			best = d;
			memcpy(buf, list, n);
			buf[n] = '\0';
			found = buf;
		}
	}
	return found;
}

static const char *nearest_option(const char *name, char *buf, size_t size)
{
	unsigned int i, best = (unsigned int)strlen(name) / 2 + 1, d;
	const struct weft_option *found = NULL;

	for (i = 0; i < weft_num_options; i++) {
		d = distance(name, strlen(name), weft_options[i].name,
			     strlen(weft_options[i].name));
		if (d < best && !weft_options[i].hidden && !weft_options[i].profile) {
			best = d;
			found = &weft_options[i];
		}
	}
	if (!found)
		return NULL;
	snprintf(buf, size, "WEFT_%s", found->name);
	return buf;
}

/* ------------------------------------------------------------------ life */

static void derive(struct weft_conf *conf)
{
	conf->lane.raw_ethertype = conf->encap == 1;
	if (conf->lane.capture && conf->lane.capture[0] == '\0') {
		free((void *)(uintptr_t)conf->lane.capture);
		conf->lane.capture = NULL;
	}
}

static int set_defaults(struct weft_conf *conf)
{
	char why[256];
	unsigned int i;
	int rc;

	for (i = 0; i < weft_num_options; i++) {
		rc = weft_option_set(conf, &weft_options[i], weft_options[i].def, why, sizeof(why));
		if (rc < 0) {
			weft_error("a default is wrong: %s", why);
			return rc;
		}
	}
	conf->min_chunk = MIN_CHUNK;
	conf->rndv_min_piece = RNDV_MIN_PIECE;
	return 0;
}

void weft_config_release(struct weft_config *config)
{
	unsigned int i;

	if (!config)
		return;
	for (i = 0; i < weft_num_options; i++)
		if (weft_options[i].type == WEFT_OPT_STRING)
			free(*(void **)((char *)&config->conf + weft_options[i].offset));
	for (i = 0; i < WEFT_CONFIG_SOURCES; i++)
		free(config->files[i]);
	free(config);
}

static int config_alloc(struct weft_config **out)
{
	struct weft_config *config = calloc(1, sizeof(*config));
	int rc;

	if (!config)
		return -ENOMEM;
	rc = set_defaults(&config->conf);
	if (rc < 0) {
		weft_config_release(config);
		return rc;
	}
	*out = config;
	return 0;
}

/* ------------------------------------------------------------------ one setting */

struct place {
	const struct weft_config_sources *from;
	char text[320]; /* beginning of messages; "" = the environment */
	bool of_root;   /* false for the environment */
};

#define warn_at(place, fmt, ...) \
	weft_log_limited((place)->from->limit, WEFT_LOG_WARN, "%s" fmt, (place)->text, __VA_ARGS__)

static bool is_script_variable(const char *name, size_t len)
{
	const char *p = strstr(script_variables, name);

	return p != NULL && (p[len] == ' ' || p[len] == '\0') &&
	       (p == script_variables || p[-1] == ' ');
}

/*
 * The user of a program with set-user-id, set-group-id or file capabilities sets its environment. A
 * guarded variable would let this user write files or load a module with the program's rights.
 */
static bool is_refused(const struct weft_option *opt, const struct place *place)
{
	/* One for each variable, so that each ignored one is reported. */
	static struct weft_log_limit limits[WEFT_OPTIONS_MAX];

	if (!opt->guarded || !place->from->secure || place->of_root)
		return false;
	weft_log_limited(&limits[opt - weft_options], WEFT_LOG_WARN,
			 "%sWEFT_%s is ignored: this program has more rights than its user "
			 "(set-user-id, set-group-id or file capabilities)",
			 place->text, opt->name);
	return true;
}

static bool is_removed(const char *name, const char *place)
{
	static atomic_bool reported[WEFT_REMOVED_MAX];
	const struct weft_removed *r = weft_removed, *end = r + weft_num_removed;

	while (r < end && strcasecmp(r->name, name) != 0)
		r++;
	if (r == end)
		return false;
	/* The first use in a process is reported. Relaxed: the flag guards only the message. */
	if (!atomic_exchange_explicit(&reported[r - weft_removed], true, memory_order_relaxed))
		weft_warn("%sWEFT_%s has no effect since Weft %s: %s Remove the setting; a later "
			  "release will not accept it",
			  place, r->name, r->since, r->now);
	return true;
}

static void warn_unknown(const struct place *place, const char *name)
{
	char near[64];

	if (nearest_option(strncmp(name, "WEFT_", 5) == 0 ? name + 5 : name, near, sizeof(near)))
		warn_at(place, "unknown variable %.64s is ignored; is %s meant?", name, near);
	else
		warn_at(place, "unknown variable %.64s is ignored", name);
}

/* @return NULL: ignored; a warning reports other than scripts' and repeated removed variables */
static const struct weft_option *variable(const char *name, const struct place *place)
{
	const struct weft_option *opt = NULL;

	if (strncmp(name, "WEFT_", 5) == 0) {
		if (is_removed(name + 5, place->text))
			return NULL;
		opt = weft_option_find(name);
	}
	if (!opt) {
		if (!is_script_variable(name, strlen(name)))
			warn_unknown(place, name);
		return NULL;
	}
	return is_refused(opt, place) ? NULL : opt;
}

static int set_from(struct weft_config *config, const struct weft_option *opt, const char *value,
		    enum weft_config_source source, const struct place *place, unsigned int line)
{
	struct weft_config_origin *origin = &config->origin[opt - weft_options];
	char why[256];
	int rc = weft_option_set(&config->conf, opt, value, why, sizeof(why));

	if (rc == -EINVAL)
		weft_error("%s%s", place->text, why);
	*origin = (struct weft_config_origin){source, line};
	return rc;
}

/* ------------------------------------------------------------------ the environment */

static int read_variable(struct weft_config *config, const char *var,
			 const struct weft_config_sources *from)
{
	const struct place place = {.from = from};
	const struct weft_option *opt;
	size_t len = strcspn(var, "=");
	char name[64];

	if (len >= sizeof(name) || var[len] != '=')
		return 0;
	memcpy(name, var, len);
	name[len] = '\0';
	opt = weft_option_find(name);
	if (opt && is_refused(opt, &place)) {
		if (opt->offset == offsetof(struct weft_conf, job_key))
			config->conf.job_key_ignored |= var[len + 1] != '\0';
		return 0;
	}
	opt = variable(name, &place);
	return !opt ? 0 : set_from(config, opt, var + len + 1, WEFT_CONFIG_ENVIRONMENT, &place, 0);
}

/* All malformed variables are reported, not only the first. */
static int read_environment(struct weft_config *config, const struct weft_config_sources *from)
{
	char *const *e;
	int rc, first = 0;

	for (e = from->environment; e && *e; e++) {
		if (strncmp(*e, "WEFT_", 5) != 0)
			continue;
		rc = read_variable(config, *e, from);
		if (rc < 0 && first == 0)
			first = rc;
	}
	return first;
}

/* ------------------------------------------------------------------ files */

/* The last line of a file that sets an option; line 0 = none. */
struct setting {
	const char *value;
	unsigned int line;
};

static void set_place(struct place *place, const char *path, unsigned int line)
{
	char shown[300];

	weft_text_copy(shown, sizeof(shown), path, strlen(path));
	snprintf(place->text, sizeof(place->text), "%s:%u: ", shown, line);
}

static int read_line(const struct weft_config_line *line, const struct place *place,
		     struct setting *settings)
{
	const struct weft_option *opt;

	if (line->error) {
		warn_at(place, "%s; the line is ignored", line->error);
		return 0;
	}
	opt = variable(line->name, place);
	if (!opt)
		return 0;
	if (!opt->environment)
		settings[opt - weft_options] = (struct setting){line->value, line->number};
	else if (line->value[0] != '\0')
		warn_at(place, "WEFT_%s has an effect in the environment only", opt->name);
	return 0;
}

/* A value is parsed unless a source of higher precedence sets its option. */
static int read_lines(struct weft_config *config, enum weft_config_source source,
		      struct weft_config_file *file, const struct weft_config_sources *from)
{
	struct setting settings[WEFT_OPTIONS_MAX] = {{0}};
	struct place place = {.from = from, .of_root = file->of_root};
	struct weft_config_line line;
	int rc, first = 0;
	unsigned int i;

	while (weft_config_file_next(file, &line)) {
		set_place(&place, config->files[source], line.number);
		rc = read_line(&line, &place, settings);
		if (rc < 0 && first == 0)
			first = rc;
	}
	for (i = 0; i < weft_num_options; i++) {
		if (settings[i].line == 0 || config->origin[i].source > source)
			continue;
		set_place(&place, config->files[source], settings[i].line);
		rc = set_from(config, &weft_options[i], settings[i].value, source, &place,
			      settings[i].line);
		if (rc < 0 && first == 0)
			first = rc;
	}
	return first;
}

static int file_failed(const struct weft_config_sources *from, enum weft_config_source source,
		       const char *path, int rc, const char *why)
{
	if (source == WEFT_CONFIG_NAMED_FILE) {
		weft_error("WEFT_CONFIG=%.300s can't be used: %s (WEFT_CONFIG=off reads no file)",
			   path, rc == -ENOENT ? "there is no such file" : why);
		return -EINVAL;
	}
	/* The program did not choose this file. */
	if (rc != -ENOENT)
		weft_log_limited(from->limit, WEFT_LOG_WARN,
				 "the configuration file %.300s is ignored: %s", path, why);
	return 0;
}

static int read_file(struct weft_config *config, enum weft_config_source source, const char *path,
		     const struct weft_config_sources *from)
{
	struct weft_config_file file;
	char why[512];
	int rc;

	if (!path || path[0] == '\0')
		return 0;
	rc = weft_config_file_read(path, &file, why, sizeof(why));
	if (rc < 0)
		return rc == -ENOMEM ? rc : file_failed(from, source, path, rc, why);
	config->files[source] = strdup(path);
	rc = config->files[source] ? read_lines(config, source, &file, from) : -ENOMEM;
	weft_config_file_release(&file);
	return rc;
}

static int read_files(struct weft_config *config, const struct weft_config_sources *from)
{
	const char *const paths[] = {
		[WEFT_CONFIG_NAMED_FILE] = config->conf.file,
		[WEFT_CONFIG_USER_FILE] = from->secure ? NULL : from->user_file,
		[WEFT_CONFIG_SYSTEM_FILE] = from->system_file,
	};
	int source, rc, first = 0;

	if (strcmp(config->conf.file, "off") == 0)
		return 0;
	for (source = WEFT_CONFIG_NAMED_FILE; source >= WEFT_CONFIG_SYSTEM_FILE; source--) {
		rc = read_file(config, (enum weft_config_source)source, paths[source], from);
		if (rc < 0 && first == 0)
			first = rc;
	}
	return first;
}

/* ------------------------------------------------------------------ reading and copying */

int weft_config_read_from(const struct weft_config_sources *from, struct weft_config **out)
{
	struct weft_config *config;
	int rc, files;

	rc = config_alloc(&config);
	if (rc < 0)
		return rc;
	rc = read_environment(config, from);
	files = read_files(config, from);
	if (rc == 0)
		rc = files;
	if (rc < 0) {
		weft_config_release(config);
		return rc;
	}
	derive(&config->conf);
	*out = config;
	return 0;
}

int weft_config_read(struct weft_config **out)
{
	static struct weft_log_limit limit;
	char user[PATH_MAX];
	const struct weft_config_sources from = {
		.system_file = SYSTEM_FILE,
		.user_file = weft_config_file_user(user, sizeof(user)) == 0 ? user : NULL,
		.environment = environ,
		.secure = getauxval(AT_SECURE) != 0,
		.limit = &limit,
	};

	return out ? weft_config_read_from(&from, out) : -EINVAL;
}

/* Also after an error, so that no text is shared with the source. */
static int copy_texts(struct weft_config *config)
{
	unsigned int i;
	char **text;
	int rc = 0;

	for (i = 0; i < weft_num_options + WEFT_CONFIG_SOURCES; i++) {
		if (i >= weft_num_options)
			text = &config->files[i - weft_num_options];
		else if (weft_options[i].type == WEFT_OPT_STRING)
			text = (char **)((char *)&config->conf + weft_options[i].offset);
		else
			continue;
		if (!*text)
			continue;
		*text = strdup(*text);
		if (!*text)
			rc = -ENOMEM;
	}
	return rc;
}

int weft_config_copy(const struct weft_config *src, struct weft_config **out)
{
	struct weft_config *config;
	int rc;

	if (!src)
		return weft_config_read(out);
	config = malloc(sizeof(*config));
	if (!config)
		return -ENOMEM;
	*config = *src;
	rc = copy_texts(config);
	if (rc < 0) {
		weft_config_release(config);
		return rc;
	}
	*out = config;
	return 0;
}

/* ------------------------------------------------------------------ weft.h */

static const char *without_prefix(const char *name)
{
	return strncasecmp(name, "WEFT_", 5) == 0 ? name + 5 : name;
}

/* @return NULL also for a key of profiles, without a message */
static const struct weft_option *find_variable(const char *name)
{
	const struct weft_option *opt = weft_option_find(name);

	return opt && !opt->profile ? opt : NULL;
}

int weft_config_modify(struct weft_config *config, const char *name, const char *value)
{
	const struct weft_option *opt;
	char why[256];
	int rc;

	if (!config || !name || !value)
		return -EINVAL;
	if (is_removed(without_prefix(name), ""))
		return 0;
	opt = find_variable(name);
	if (!opt) {
		if (nearest_option(without_prefix(name), why, sizeof(why)))
			weft_error("there is no option %.64s; is %s meant?", name, why);
		else
			weft_error("there is no option %.64s", name);
		return -ENOENT;
	}
	if (opt->environment) {
		weft_error("WEFT_%s has an effect in the environment only", opt->name);
		return -EINVAL;
	}
	rc = weft_option_set(&config->conf, opt, value, why, sizeof(why));
	if (rc == -EINVAL)
		weft_error("%s", why);
	if (rc < 0)
		return rc;
	config->origin[opt - weft_options] =
		(struct weft_config_origin){.source = WEFT_CONFIG_PROGRAM};
	derive(&config->conf);
	return 0;
}

int weft_config_get(const struct weft_config *config, const char *name, char *buf, size_t size)
{
	const struct weft_option *opt;

	if (!config || !name || (!buf && size > 0))
		return -EINVAL;
	if (size > 0)
		buf[0] = '\0';
	opt = find_variable(name);
	return !opt ? -ENOENT : weft_option_print(&config->conf, opt, buf, size);
}

static int print_origin(const struct weft_config *config, const struct weft_option *opt, char *buf,
			size_t size)
{
	const struct weft_config_origin *o = &config->origin[opt - weft_options];
	char path[PATH_MAX];

	switch (o->source) {
	case WEFT_CONFIG_SYSTEM_FILE:
	case WEFT_CONFIG_USER_FILE:
	case WEFT_CONFIG_NAMED_FILE:
		weft_text_copy(path, sizeof(path), config->files[o->source],
			       strlen(config->files[o->source]));
		return snprintf(buf, size, "%s:%u", path, o->line);
	case WEFT_CONFIG_ENVIRONMENT:
		return snprintf(buf, size, "environment");
	case WEFT_CONFIG_PROGRAM:
		return snprintf(buf, size, "program");
	default:
		return snprintf(buf, size, "default");
	}
}

int weft_config_origin(const struct weft_config *config, const char *name, char *buf, size_t size)
{
	const struct weft_option *opt;

	if (!config || !name || (!buf && size > 0))
		return -EINVAL;
	if (size > 0)
		buf[0] = '\0';
	opt = find_variable(name);
	return !opt ? -ENOENT : print_origin(config, opt, buf, size);
}

static void print_quoted(FILE *out, const char *value)
{
	const char *p;

	if (value[0] != '\0' &&
	    strspn(value,
		   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:/=+-") ==
		    strlen(value)) {
		fputs(value, out);
		return;
	}
	fputc('\'', out);
	for (p = value; *p != '\0'; p++) {
		if (*p == '\'')
			fputs("'\\''", out);
		else
			fputc(*p, out);
	}
	fputc('\'', out);
}

static void print_help(FILE *out, const struct weft_option *opt)
{
	const char *p = opt->help;
	size_t col = 100, n;

	for (; *p != '\0'; p += n) {
		p += strspn(p, " ");
		n = strcspn(p, " ");
		if (col + 1 + n > 98) {
			fputs(col == 100 ? "#" : "\n#", out);
			col = 1;
		}
		fprintf(out, " %.*s", (int)n, p);
		col += n + 1;
	}
	fprintf(out, "\n#   %s%s%s%s%s%s%s, default %s\n", opt->unit, opt->words ? ": " : "",
		opt->words ? opt->words : "", opt->has_auto ? " or auto" : "",
		opt->word ? " or " : "", opt->word ? opt->word : "", opt->has_inf ? " or inf" : "",
		opt->def[0] != '\0' ? opt->def : "empty");
}

static void print_option(const struct weft_config *config, FILE *out, unsigned int flags,
			 const struct weft_option *opt, const char *value)
{
	char origin[PATH_MAX + 16];

	if (flags & WEFT_CONFIG_PRINT_F_HELP)
		print_help(out, opt);
	fprintf(out, "WEFT_%s=", opt->name);
	print_quoted(out, value);
	if (flags & WEFT_CONFIG_PRINT_F_ORIGIN) {
		print_origin(config, opt, origin, sizeof(origin));
		fprintf(out, "  # %s", origin);
	}
	fputs(flags & WEFT_CONFIG_PRINT_F_HELP ? "\n\n" : "\n", out);
}

void weft_config_print(const struct weft_config *config, FILE *out, unsigned int flags)
{
	const struct weft_option *opt;
	char stack[256], *value;
	unsigned int i;
	bool changed;
	int n;

	if (!config || !out)
		return;
	for (i = 0; i < weft_num_options; i++) {
		opt = &weft_options[i];
		if (opt->profile)
			continue;
		value = stack;
		n = weft_option_print(&config->conf, opt, stack, sizeof(stack));
		if (n >= (int)sizeof(stack)) {
			value = malloc((size_t)n + 1);
			if (!value)
				continue;
			weft_option_print(&config->conf, opt, value, (size_t)n + 1);
		}
		changed = strcmp(value, opt->def) != 0;
		/* A hidden variable with another value may explain what the program does. */
		if (changed || (!(flags & WEFT_CONFIG_PRINT_F_CHANGED) &&
				(!opt->hidden || flags & WEFT_CONFIG_PRINT_F_ALL)))
			print_option(config, out, flags, opt, value);
		if (value != stack)
			free(value);
	}
}
