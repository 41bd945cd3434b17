/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/config_text.h
 * Configuration as text: the values of options, and configuration files.
 */
#ifndef WEFT_CONFIG_TEXT_H
#define WEFT_CONFIG_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct weft_conf;
struct weft_option;

/* ------------------------------------------------------------------ values */

/**
 * @param name  for messages: the variable, or a key in a file
 * @param why   gets a sentence with the name, the value and the expected form
 * @return 0, -EINVAL, -ENOMEM; on error the field keeps its value
 */
int weft_option_set_as(struct weft_conf *conf, const struct weft_option *opt, const char *name,
		       const char *text, char *why, size_t why_len);
int weft_option_set(struct weft_conf *conf, const struct weft_option *opt, const char *text,
		    char *why, size_t why_len);

/** weft_option_set() reads the text back. @return as snprintf() */
int weft_option_print(const struct weft_conf *conf, const struct weft_option *opt, char *buf,
		      size_t size);

/** Parse "25Gbps" or "3GBs" into bytes/s. */
bool weft_rate_parse(const char *text, double *value);
/** Parse a time with its unit ("750ns"). */
bool weft_time_parse(const char *text, double *seconds);

/* ------------------------------------------------------------------ files */

/*
 * A line is `WEFT_NAME=value`, a comment that begins with #, or empty. Blanks around the name and
 * the value do not count. A comment may follow a value after a blank. A value in quotation marks is
 * read as a shell reads a word, except that between " a backslash is literal.
 */

/** Bytes; a longer file is refused. */
#define WEFT_CONFIG_FILE_MAX 65536

struct weft_config_file {
	char *text, *rest;
	unsigned int line;
	bool of_root;
};

struct weft_config_line {
	unsigned int number;
	char *name, *value; /**< valid until weft_config_file_release() */
	const char *error;  /**< a sentence; NULL: name and value are set */
};

/**
 * The path is weft.conf in XDG_CONFIG_HOME, or in .config of HOME.
 * @return 0; -ENAMETOOLONG; -ENOENT: neither is an absolute path, or AT_SECURE is set
 */
int weft_config_file_user(char *path, size_t size);

/**
 * The file must be regular, belong to root or to the user of the process, and no other user may be
 * able to write it. A symbolic link must belong to one of these two as well. The call does not
 * block.
 * @param why  out: the reason of an error other than -ENOENT, to follow the file's name
 * @return 0, then weft_config_file_release(); -ENOENT: there is no file, or its folder cannot be
 *   searched; other negative errors
 */
int weft_config_file_read(const char *path, struct weft_config_file *file, char *why,
			  size_t why_len);
void weft_config_file_release(struct weft_config_file *file);

/** Skips empty lines and comments. @return false: the end of the file */
bool weft_config_file_next(struct weft_config_file *file, struct weft_config_line *line);

#endif /* WEFT_CONFIG_TEXT_H */
