/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

#include "core/config.h"
#include "base/log.h"

extern char **environ;

/* Environment variables of the project's scripts and tests, which the library does not read. */
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

/*
 * Levenshtein distance, without regard to case. Words longer than WORD_MAX are far from everything.
 */
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
		if (d < best) {
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

/* Fields that follow from others. */
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
	free(config);
}

static bool is_script_variable(const char *name, size_t len)
{
	const char *p = strstr(script_variables, name);

	return p != NULL && (p[len] == ' ' || p[len] == '\0') &&
	       (p == script_variables || p[-1] == ' ');
}

/*
 * A program with set-user-id, set-group-id or file capabilities acts with rights that its user does
 * not have, and the environment is the user's. Such a variable would let the user write files or
 * load a module with these rights.
 */
static bool is_refused(const struct weft_option *opt)
{
	/* One limit for each variable, so that each ignored variable is reported. */
	static struct weft_log_limit limits[WEFT_OPTIONS_MAX];

	if (!opt->guarded || !getauxval(AT_SECURE))
		return false;
	weft_log_limited(&limits[opt - weft_options], WEFT_LOG_WARN,
			 "WEFT_%s is ignored: this program has more rights than its user "
			 "(set-user-id, set-group-id or file capabilities)",
			 opt->name);
	return true;
}

/* One "WEFT_NAME=value" of the environment. */
static int read_variable(struct weft_config *config, const char *var)
{
	char name[64], near[64], why[256];
	const struct weft_option *opt;
	size_t len = strcspn(var, "=");
	int rc;

	if (len >= sizeof(name) || var[len] != '=')
		return 0;
	memcpy(name, var, len);
	name[len] = '\0';
	opt = weft_option_find(name);
	if (!opt) {
		static struct weft_log_limit limit;

		if (is_script_variable(name, len))
			return 0;
		if (nearest_option(name + 5, near, sizeof(near)))
			weft_log_limited(&limit, WEFT_LOG_WARN,
					 "unknown variable %s is ignored; is %s meant?", name,
					 near);
		else
			weft_log_limited(&limit, WEFT_LOG_WARN, "unknown variable %s is ignored",
					 name);
		return 0;
	}
	if (is_refused(opt))
		return 0;
	rc = weft_option_set(&config->conf, opt, var + len + 1, why, sizeof(why));
	if (rc == -EINVAL)
		weft_error("%s", why);
	return rc;
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

int weft_config_read(struct weft_config **out)
{
	struct weft_config *config;
	char **e;
	int rc, first = 0;

	rc = config_alloc(&config);
	if (rc < 0)
		return rc;
	/* All malformed variables are named, not only the first. */
	for (e = environ; e && *e; e++) {
		if (strncmp(*e, "WEFT_", 5) != 0)
			continue;
		rc = read_variable(config, *e);
		if (rc < 0 && first == 0)
			first = rc;
	}
	if (first < 0) {
		weft_config_release(config);
		return first;
	}
	derive(&config->conf);
	*out = config;
	return 0;
}

int weft_config_copy(const struct weft_config *src, struct weft_config **out)
{
	struct weft_config *config;
	const char **to;
	const char *from;
	unsigned int i;

	if (!src)
		return weft_config_read(out);
	config = malloc(sizeof(*config));
	if (!config)
		return -ENOMEM;
	*config = *src;
	for (i = 0; i < weft_num_options; i++) {
		if (weft_options[i].type != WEFT_OPT_STRING)
			continue;
		to = (const char **)((char *)&config->conf + weft_options[i].offset);
		from = *to;
		*to = from != NULL ? strdup(from) : NULL;
		if (from && !*to) {
			/* Strings that are not copied yet still belong to the source. */
			for (i++; i < weft_num_options; i++)
				if (weft_options[i].type == WEFT_OPT_STRING)
					*(const char **)((char *)&config->conf +
							 weft_options[i].offset) = NULL;
			weft_config_release(config);
			return -ENOMEM;
		}
	}
	*out = config;
	return 0;
}

/* ------------------------------------------------------------------ weft.h */

int weft_config_modify(struct weft_config *config, const char *name, const char *value)
{
	const struct weft_option *opt;
	char why[256];
	int rc;

	if (!config || !name || !value)
		return -EINVAL;
	opt = weft_option_find(name);
	if (!opt) {
		if (nearest_option(name, why, sizeof(why)))
			weft_error("there is no option %.64s; is %s meant?", name, why);
		else
			weft_error("there is no option %.64s", name);
		return -ENOENT;
	}
	rc = weft_option_set(&config->conf, opt, value, why, sizeof(why));
	if (rc == -EINVAL)
		weft_error("%s", why);
	if (rc == 0)
		derive(&config->conf);
	return rc;
}

int weft_config_get(const struct weft_config *config, const char *name, char *buf, size_t size)
{
	const struct weft_option *opt;

	if (!config || !name || (!buf && size > 0))
		return -EINVAL;
	if (size > 0)
		buf[0] = '\0';
	opt = weft_option_find(name);
	return !opt ? -ENOENT : weft_option_print(&config->conf, opt, buf, size);
}

/* Value in a form that a shell reads back as one word. */
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

/* Help as comment lines of at most 100 columns. */
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

void weft_config_print(const struct weft_config *config, FILE *out, unsigned int flags)
{
	const struct weft_option *opt;
	char stack[256], *value;
	unsigned int i;
	int n;

	if (!config || !out)
		return;
	for (i = 0; i < weft_num_options; i++) {
		opt = &weft_options[i];
		value = stack;
		n = weft_option_print(&config->conf, opt, stack, sizeof(stack));
		if (n >= (int)sizeof(stack)) {
			value = malloc((size_t)n + 1);
			if (!value)
				continue;
			weft_option_print(&config->conf, opt, value, (size_t)n + 1);
		}
		if (!(flags & WEFT_CONFIG_PRINT_CHANGED) || strcmp(value, opt->def) != 0) {
			if (flags & WEFT_CONFIG_PRINT_HELP)
				print_help(out, opt);
			fprintf(out, "WEFT_%s=", opt->name);
			print_quoted(out, value);
			fputc('\n', out);
			if (flags & WEFT_CONFIG_PRINT_HELP)
				fputc('\n', out);
		}
		if (value != stack)
			free(value);
	}
}
