/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/container.h"
#include "core/config.h"
#include "core/config_text.h"

/* ------------------------------------------------------------------ files: which one */

int weft_config_file_user(char *path, size_t size)
{
	/* NULL with AT_SECURE, because the user sets both. */
	const char *folder = secure_getenv("XDG_CONFIG_HOME"), *below = "";
	int n;

	/* The XDG specification ignores a relative path. */
	if (!folder || folder[0] != '/') {
		folder = secure_getenv("HOME");
		below = "/.config";
	}
	if (!folder || folder[0] != '/')
		return -ENOENT;
	n = snprintf(path, size, "%s%s/weft.conf", folder, below);
	return n < (int)size ? 0 : -ENAMETOOLONG;
}

/* ------------------------------------------------------------------ files: reading */

static int refuse(char *why, size_t why_len, const char *text)
{
	snprintf(why, why_len, "%s", text);
	return -EPERM;
}

static int refuse_errno(char *why, size_t why_len)
{
	int rc = -errno;

	snprintf(why, why_len, "%s", strerror(-rc));
	return rc;
}

static bool is_trusted(uid_t owner)
{
	return owner == 0 || owner == geteuid();
}

/* Another user could otherwise choose arguments of the EAL, which loads modules. */
static int check_rights(const char *path, const struct stat *st, char *why, size_t why_len)
{
	if (!S_ISREG(st->st_mode))
		return refuse(why, why_len, "it is not a regular file");
	if (!is_trusted(st->st_uid)) {
		snprintf(why, why_len,
			 "it belongs to user %u; it must belong to root or to the user of this "
			 "process, %u",
			 (unsigned int)st->st_uid, (unsigned int)geteuid());
		return -EPERM;
	}
	if (st->st_mode & (S_IWGRP | S_IWOTH)) {
		snprintf(why, why_len, "other users can write it; remedy: chmod go-w '%.300s'",
			 path);
		return -EPERM;
	}
	if (st->st_size > WEFT_CONFIG_FILE_MAX)
		return refuse(why, why_len, "it is longer than 64 KiB");
	return 0;
}

/*
 * The rights are tested before the open, since opening a device can have an effect. They are tested
 * again on the open file, because another file may have taken its place. O_NONBLOCK: a pipe may
 * have no writer.
 */
static int open_checked(const char *path, struct stat *st, char *why, size_t why_len)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, fd, rc;

	/* A folder that cannot be searched may be another user's home: it has no file. */
	if (lstat(path, st) != 0)
		return errno == ENOTDIR || errno == EACCES ? -ENOENT : refuse_errno(why, why_len);
	if (!S_ISLNK(st->st_mode)) {
		flags |= O_NOFOLLOW;
	} else if (!is_trusted(st->st_uid)) {
		return refuse(why, why_len, "it is a symbolic link of another user");
	} else if (stat(path, st) != 0) {
		rc = errno;
		snprintf(why, why_len, "the target of the symbolic link: %s", strerror(rc));
		return -EPERM;
	}
	rc = check_rights(path, st, why, why_len);
	if (rc < 0)
		return rc;
	fd = open(path, flags);
	if (fd < 0)
		return refuse_errno(why, why_len);
	rc = fstat(fd, st) != 0 ? refuse_errno(why, why_len) : check_rights(path, st, why, why_len);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

static ssize_t read_all(int fd, char *buf, size_t size)
{
	size_t have = 0;
	ssize_t n;

	while (have < size) {
		n = read(fd, buf + have, size - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

static int check_text(const char *text, size_t length, char *why, size_t why_len)
{
	const char *zero, *p = text;
	unsigned int line = 1;

	if (length > WEFT_CONFIG_FILE_MAX)
		return refuse(why, why_len, "it is longer than 64 KiB");
	zero = memchr(text, '\0', length);
	if (!zero)
		return 0;
	while ((p = memchr(p, '\n', (size_t)(zero - p))) != NULL) {
		p++;
		line++;
	}
	snprintf(why, why_len, "it is not a text file: line %u has a zero byte", line);
	return -EPERM;
}

int weft_config_file_read(const char *path, struct weft_config_file *file, char *why,
			  size_t why_len)
{
	struct stat st;
	int fd, rc = 0;
	ssize_t n;

	*file = (struct weft_config_file){0};
	why[0] = '\0';
	fd = open_checked(path, &st, why, why_len);
	if (fd < 0)
		return fd;
	file->text = malloc(WEFT_CONFIG_FILE_MAX + 2);
	n = file->text ? read_all(fd, file->text, WEFT_CONFIG_FILE_MAX + 1) : -ENOMEM;
	close(fd);
	if (n < 0)
		snprintf(why, why_len, "%s", strerror((int)-n));
	rc = n < 0 ? (int)n : check_text(file->text, (size_t)n, why, why_len);
	if (rc < 0) {
		weft_config_file_release(file);
		return rc;
	}
	file->text[n] = '\0';
	file->rest = file->text;
	file->of_root = st.st_uid == 0;
	return 0;
}

void weft_config_file_release(struct weft_config_file *file)
{
	free(file->text);
	*file = (struct weft_config_file){0};
}

/* ------------------------------------------------------------------ files: lines */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static char *skip_blanks(char *s)
{
	while (is_blank(*s))
		s++;
	return s;
}

static void cut_blanks(char *s)
{
	size_t n = strlen(s);

	while (n > 0 && is_blank(s[n - 1]))
		n--;
	s[n] = '\0';
}

/* The byte of '=' precedes the value: p[-1] exists. */
static void read_plain(char *value)
{
	char *p;

	for (p = value; *p != '\0'; p++) {
		if (*p == '#' && is_blank(p[-1])) {
			*p = '\0';
			break;
		}
	}
	cut_blanks(value);
}

/* The quotes are those of weft_config_print(). @return NULL, or an error */
static const char *read_quoted(char *value)
{
	char *from = value, *to = value, quote;

	while (*from != '\0' && !is_blank(*from)) {
		quote = *from;
		if (quote != '\'' && quote != '"') {
			if (quote == '\\' && from[1] != '\0')
				from++;
			*to++ = *from++;
			continue;
		}
		for (from++; *from != quote; from++) {
			if (*from == '\0')
				return "the quotation mark is not closed";
			*to++ = *from;
		}
		from++;
	}
	from = skip_blanks(from);
	if (*from != '\0' && *from != '#')
		return "text follows the quoted value";
	*to = '\0';
	return NULL;
}

static void split(char *text, struct weft_config_line *line)
{
	char *equals = strchr(text, '=');

	if (*text == '[') {
		line->error = "a configuration file has no sections";
		return;
	}
	if (!equals || equals == text) {
		line->error = "the line is not understood: expected WEFT_NAME=value";
		return;
	}
	*equals = '\0';
	cut_blanks(text);
	line->name = text;
	line->value = skip_blanks(equals + 1);
	if (line->value[0] == '\'' || line->value[0] == '"')
		line->error = read_quoted(line->value);
	else
		read_plain(line->value);
}

bool weft_config_file_next(struct weft_config_file *file, struct weft_config_line *line)
{
	char *text, *end;

	while (*file->rest != '\0') {
		text = file->rest;
		end = strchr(text, '\n');
		file->rest = end ? end + 1 : text + strlen(text);
		if (end)
			*end = '\0';
		file->line++;
		text = skip_blanks(text);
		if (*text == '\0' || *text == '#')
			continue;
		*line = (struct weft_config_line){.number = file->line};
		split(text, line);
		return true;
	}
	return false;
}

/* ------------------------------------------------------------------ values */

static inline void *field(const struct weft_conf *conf, const struct weft_option *opt)
{
	return (char *)(uintptr_t)conf + opt->offset;
}

static void expected(const struct weft_option *opt, char *buf, size_t size)
{
	static const char *const kinds[] = {
		[WEFT_OPT_BYTES] = "a number of bytes such as 4096, 64k or 1M",
		[WEFT_OPT_TIME] = "a time such as 500us, 20ms or 30s",
		[WEFT_OPT_BOOL] = "y or n",
		[WEFT_OPT_ENUM] = "one of ",
		[WEFT_OPT_UINT] = "a whole number",
		[WEFT_OPT_U32] = "a whole number below 2^32",
		[WEFT_OPT_PORT] = "a port number",
		[WEFT_OPT_DOUBLE] = "a number",
		[WEFT_OPT_RATE] = "a rate such as 25Gbps, 3GBs or 1.25e9Bs",
		[WEFT_OPT_STRING] = "text",
	};

	snprintf(buf, size, "%s%s%s%s%s%s", kinds[opt->type],
		 opt->type == WEFT_OPT_ENUM ? opt->words : "", opt->has_auto ? ", or auto" : "",
		 opt->word ? ", or " : "", opt->word ? opt->word : "",
		 opt->has_inf ? ", or inf" : "");
}

/* No sign, no hex, no nan. *end = what follows */
static int number(const char *text, double *value, const char **end)
{
	char *stop;

	if (*text != '.' && (*text < '0' || *text > '9'))
		return -EINVAL;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return -EINVAL;
	errno = 0;
	*value = strtod(text, &stop);
	if (stop == text || errno == ERANGE || !isfinite(*value))
		return -EINVAL;
	*end = stop;
	return 0;
}

struct suffix {
	const char *name;
	double factor;
};

static int with_suffix(const char *text, const struct suffix *list, bool exact, double *value)
{
	const char *end;

	if (number(text, value, &end) < 0)
		return -EINVAL;
	for (; list->name; list++) {
		if ((exact ? strcmp : strcasecmp)(end, list->name) == 0) {
			*value *= list->factor;
			return 0;
		}
	}
	return -EINVAL;
}

static const struct suffix sizes[] = {
	{"", 1},
	{"b", 1},
	{"k", 1024.0},
	{"kb", 1024.0},
	{"kib", 1024.0},
	{"m", 1048576.0},
	{"mb", 1048576.0},
	{"mib", 1048576.0},
	{"g", 1073741824.0},
	{"gb", 1073741824.0},
	{"gib", 1073741824.0},
	{"t", 1099511627776.0},
	{NULL, 0},
};

static const struct suffix times[] = {
	{"", 1e9}, {"s", 1e9},  {"ms", 1e6},   {"us", 1e3},
	{"ns", 1}, {"m", 60e9}, {"min", 60e9}, {NULL, 0},
};

static const struct suffix rates[] = {
	{"Bs", 1},          {"kBs", 1e3},       {"MBs", 1e6},       {"GBs", 1e9},
	{"TBs", 1e12},      {"B/s", 1},         {"kB/s", 1e3},      {"MB/s", 1e6},
	{"GB/s", 1e9},      {"TB/s", 1e12},     {"bps", .125},      {"kbps", .125e3},
	{"Mbps", .125e6},   {"Gbps", .125e9},   {"Tbps", .125e12},  {"bit/s", .125},
	{"kbit/s", .125e3}, {"Mbit/s", .125e6}, {"Gbit/s", .125e9}, {NULL, 0},
};

bool weft_time_parse(const char *text, double *seconds)
{
	/* A bare number would be seconds, which is hardly meant. */
	if (text[0] == '\0' || strchr("0123456789.", text[strlen(text) - 1]) ||
	    with_suffix(text, times, false, seconds) < 0)
		return false;
	*seconds *= 1e-9;
	return true;
}

bool weft_rate_parse(const char *text, double *value)
{
	return with_suffix(text, rates, true, value) == 0;
}

static const struct suffix none[] = {{"", 1}, {NULL, 0}};

static int parse_bool(const char *text, bool *value)
{
	static const char *const words[] = {"n", "no",  "off", "false", "0",
					    "y", "yes", "on",  "true",  "1"};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*value = i >= 5;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_enum(const char *text, const char *words)
{
	size_t len = strlen(text), n;
	int i;

	for (i = 0; *words != '\0'; i++) {
		n = strcspn(words, "|");
		/* Four letters are enough: "warn" for "warning". */
		if (len > 0 && (n == len || (len >= 4 && n > len)) &&
		    strncasecmp(text, words, len) == 0)
			return i;
		words += n;
		words += *words == '|';
	}
	return -EINVAL;
}

static int parse_number(const struct weft_option *opt, const char *text, double *value)
{
	const struct suffix *list = opt->type == WEFT_OPT_BYTES  ? sizes
				    : opt->type == WEFT_OPT_TIME ? times
				    : opt->type == WEFT_OPT_RATE ? rates
								 : none;

	/* Bits and bytes of rates differ by the case of a letter. */
	if (with_suffix(text, list, list == rates, value) < 0)
		return -EINVAL;
	if (opt->type != WEFT_OPT_DOUBLE && opt->type != WEFT_OPT_RATE) {
		/* Doubles represent integers exactly up to 2^53; no size is AUTO or INF. */
		if (*value > 9007199254740992.0)
			return -ERANGE;
		if (opt->type != WEFT_OPT_BYTES && opt->type != WEFT_OPT_TIME &&
		    *value != floor(*value))
			return -EINVAL;
		*value = floor(*value + 0.5);
	}
	if (*value < opt->min || (opt->max > 0 && *value > opt->max))
		return -ERANGE;
	return 0;
}

static void store_number(struct weft_conf *conf, const struct weft_option *opt, double value)
{
	void *p = field(conf, opt);

	switch (opt->type) {
	case WEFT_OPT_BYTES:
		*(size_t *)p = (size_t)value;
		break;
	case WEFT_OPT_TIME:
		*(uint64_t *)p = (uint64_t)value;
		break;
	case WEFT_OPT_UINT:
		*(unsigned int *)p = (unsigned int)value;
		break;
	case WEFT_OPT_U32:
		*(uint32_t *)p = (uint32_t)value;
		break;
	case WEFT_OPT_PORT:
		*(uint16_t *)p = (uint16_t)value;
		break;
	default:
		*(double *)p = value;
		break;
	}
}

static void store_size(struct weft_conf *conf, const struct weft_option *opt, size_t value)
{
	if (opt->type == WEFT_OPT_BYTES)
		*(size_t *)field(conf, opt) = value;
	else if (opt->type == WEFT_OPT_TIME && value == WEFT_CONF_INF)
		*(uint64_t *)field(conf, opt) = WEFT_NEVER;
	else
		store_number(conf, opt, (double)value);
}

static int set_string(struct weft_conf *conf, const struct weft_option *opt, const char *text)
{
	const char **p = field(conf, opt);
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free((void *)(uintptr_t)*p);
	*p = copy;
	return 0;
}

static int set_value(struct weft_conf *conf, const struct weft_option *opt, const char *text)
{
	double value;
	int rc;

	if (opt->type == WEFT_OPT_STRING)
		return set_string(conf, opt, text);
	if (opt->type == WEFT_OPT_BOOL)
		return parse_bool(text, field(conf, opt));
	if (opt->type == WEFT_OPT_ENUM) {
		rc = parse_enum(text, opt->words);
		if (rc >= 0)
			*(unsigned int *)field(conf, opt) = (unsigned int)rc;
		return rc < 0 ? rc : 0;
	}
	if (opt->has_auto && strcasecmp(text, "auto") == 0) {
		store_size(conf, opt, opt->auto_value);
		return 0;
	}
	if (opt->has_inf && strcasecmp(text, "inf") == 0) {
		store_size(conf, opt, WEFT_CONF_INF);
		return 0;
	}
	if (opt->word && strcasecmp(text, opt->word) == 0) {
		store_size(conf, opt, opt->word_value);
		return 0;
	}
	rc = parse_number(opt, text, &value);
	if (rc == 0)
		store_number(conf, opt, value);
	return rc;
}

static void print_bound(const struct weft_option *opt, double bound, char *buf, size_t size)
{
	struct weft_conf tmp = {0};

	store_number(&tmp, opt, bound);
	weft_option_print(&tmp, opt, buf, size);
}

int weft_option_set(struct weft_conf *conf, const struct weft_option *opt, const char *text,
		    char *why, size_t why_len)
{
	char name[64];

	snprintf(name, sizeof(name), "WEFT_%s", opt->name);
	return weft_option_set_as(conf, opt, name, text, why, why_len);
}

int weft_option_set_as(struct weft_conf *conf, const struct weft_option *opt, const char *name,
		       const char *text, char *why, size_t why_len)
{
	char what[160], low[32], high[32];
	int rc = set_value(conf, opt, text);

	if (rc == 0)
		return 0;
	if (rc == -ENOMEM) {
		snprintf(why, why_len, "no memory for the value of %s", name);
		return rc;
	}
	if (rc == -ERANGE) {
		print_bound(opt, opt->min, low, sizeof(low));
		if (opt->max > 0)
			print_bound(opt, opt->max, high, sizeof(high));
		else
			snprintf(high, sizeof(high), "2^53");
		snprintf(why, why_len, "%s=%.64s is out of range: expected %s to %s", name, text,
			 low, high);
	} else {
		expected(opt, what, sizeof(what));
		snprintf(why, why_len, "%s=%.64s is not understood: expected %s", name, text, what);
	}
	return -EINVAL;
}

static int print_size(size_t v, char *buf, size_t size)
{
	static const char suffix[] = "\0kMGT";
	unsigned int i = 0;

	if (v == WEFT_CONF_INF)
		return snprintf(buf, size, "inf");
	while (v != 0 && v % 1024 == 0 && i < 4) {
		v /= 1024;
		i++;
	}
	return i == 0 ? snprintf(buf, size, "%zu", v) : snprintf(buf, size, "%zu%c", v, suffix[i]);
}

static int print_time(uint64_t ns, char *buf, size_t size)
{
	if (ns == WEFT_NEVER)
		return snprintf(buf, size, "inf");
	if (ns % 1000000000 == 0)
		return snprintf(buf, size, "%" PRIu64 "s", ns / 1000000000);
	if (ns % 1000000 == 0)
		return snprintf(buf, size, "%" PRIu64 "ms", ns / 1000000);
	if (ns % 1000 == 0)
		return snprintf(buf, size, "%" PRIu64 "us", ns / 1000);
	return snprintf(buf, size, "%" PRIu64 "ns", ns);
}

static int print_word(const char *words, unsigned int index, char *buf, size_t size)
{
	for (; index > 0 && *words != '\0'; index--) {
		words += strcspn(words, "|");
		words += *words == '|';
	}
	return snprintf(buf, size, "%.*s", (int)strcspn(words, "|"), words);
}

int weft_option_print(const struct weft_conf *conf, const struct weft_option *opt, char *buf,
		      size_t size)
{
	const void *p = field(conf, opt);
	const char *s;

	switch (opt->type) {
	case WEFT_OPT_BYTES:
		if (opt->has_auto && *(const size_t *)p == opt->auto_value)
			return snprintf(buf, size, "auto");
		if (opt->word && *(const size_t *)p == opt->word_value)
			return snprintf(buf, size, "%s", opt->word);
		return print_size(*(const size_t *)p, buf, size);
	case WEFT_OPT_TIME:
		if (opt->word && *(const uint64_t *)p == opt->word_value)
			return snprintf(buf, size, "%s", opt->word);
		return print_time(*(const uint64_t *)p, buf, size);
	case WEFT_OPT_BOOL:
		return snprintf(buf, size, "%c", *(const bool *)p ? 'y' : 'n');
	case WEFT_OPT_ENUM:
		return print_word(opt->words, *(const unsigned int *)p, buf, size);
	case WEFT_OPT_UINT:
		if (opt->has_auto && *(const unsigned int *)p == opt->auto_value)
			return snprintf(buf, size, "auto");
		return snprintf(buf, size, "%u", *(const unsigned int *)p);
	case WEFT_OPT_U32:
		if (opt->word && *(const uint32_t *)p == opt->word_value)
			return snprintf(buf, size, "%s", opt->word);
		return snprintf(buf, size, "%" PRIu32, *(const uint32_t *)p);
	case WEFT_OPT_PORT:
		return snprintf(buf, size, "%u", *(const uint16_t *)p);
	case WEFT_OPT_DOUBLE:
		return snprintf(buf, size, "%.15g", *(const double *)p);
	case WEFT_OPT_RATE:
		if (opt->has_auto && !(*(const double *)p > 0))
			return snprintf(buf, size, "auto");
		return snprintf(buf, size, "%.15gBs", *(const double *)p);
	case WEFT_OPT_STRING:
		s = *(const char *const *)p;
		return snprintf(buf, size, "%s", s ? s : "");
	}
	return snprintf(buf, size, "?");
}
