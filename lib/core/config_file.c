/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/config_file.h"

/* ------------------------------------------------------------------ which file */

int weft_config_file_user(char *path, size_t size)
{
	/* Both are NULL in a program that has more rights than its user: the user sets them. */
	const char *folder = secure_getenv("XDG_CONFIG_HOME"), *below = "";
	int n;

	/* The XDG specification: a relative path is invalid and ignored. */
	if (!folder || folder[0] != '/') {
		folder = secure_getenv("HOME");
		below = "/.config";
	}
	if (!folder || folder[0] != '/')
		return -ENOENT;
	n = snprintf(path, size, "%s%s/weft.conf", folder, below);
	return n < (int)size ? 0 : -ENAMETOOLONG;
}

/* ------------------------------------------------------------------ reading */

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

/* Another user could otherwise choose the arguments of the EAL, which loads modules. */
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
 * The rights are tested before the file is opened, since opening a device can have an effect. They
 * are tested again on the open file, which another file may have replaced. O_NONBLOCK: opening a
 * pipe does not wait for its writer.
 */
static int open_checked(const char *path, struct stat *st, char *why, size_t why_len)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, fd, rc;

	/* A folder that this user cannot search may be another user's home. */
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

/* The whole file, or one byte more than is allowed. @return bytes, or a negative error */
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

/* ------------------------------------------------------------------ lines */

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

/* A value without quotes ends before a comment, or with the line. A character precedes it. */
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

/* A word as a shell quotes it: weft_config_print() writes such words. @return NULL, or an error */
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
