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
 * Parse @p text in the form of @p opt into the field of @p conf.
 * @param name  for messages: the variable, or a key in a file
 * @param why   gets a sentence with the name, the value and the expected form
 * @return 0, -EINVAL, -ENOMEM; on error the field keeps its value
 */
int weft_option_set_as(struct weft_conf *conf, const struct weft_option *opt, const char *name,
		       const char *text, char *why, size_t why_len);
/** weft_option_set_as() with the name of the option's variable, WEFT_... */
int weft_option_set(struct weft_conf *conf, const struct weft_option *opt, const char *text,
		    char *why, size_t why_len);

/** Write the value as text that weft_option_set() reads back. @return as snprintf() */
int weft_option_print(const struct weft_conf *conf, const struct weft_option *opt, char *buf,
		      size_t size);

/** Parse a rate ("25Gbps", "3GBs") into bytes/s. @return false: the text is no rate */
bool weft_rate_parse(const char *text, double *value);
/** Parse a time with its unit ("750ns") into seconds. @return false: the text is no time */
bool weft_time_parse(const char *text, double *seconds);

/* ------------------------------------------------------------------ files */

/*
 * A configuration file: which one is the user's, its rights, its lines.
 *
 * A line is `WEFT_NAME=value`, a comment that begins with #, or empty. Blanks around the name and
 * the value do not count. A comment may follow a value after a blank. A value in quotation marks is
 * read as a shell reads a word, except that between " a backslash is literal.
 */

/** Bytes of the longest file that is read; a longer one is refused. */
#define WEFT_CONFIG_FILE_MAX 65536

struct weft_config_file {
	char *text, *rest;
	unsigned int line; /**< number of the last line that was returned */
	bool of_root;      /**< root owns the file */
};

struct weft_config_line {
	unsigned int number;
	char *name, *value; /**< inside the file's text: valid until weft_config_file_release() */
	const char *error;  /**< a sentence, or NULL: then name and value are set */
};

/**
 * Path of the user's file: weft.conf in XDG_CONFIG_HOME, or in .config of HOME.
 * @return 0; -ENOENT: neither is an absolute path, or the program has more rights than its user
 *   (AT_SECURE);
 *   -ENAMETOOLONG
 */
int weft_config_file_user(char *path, size_t size);

/**
 * Read a file. It must be a regular file, belong to root or to the user of the process, and no
 * other user may be able to write it. A symbolic link must belong to one of these two as well. The
 * call does not block.
 *
 * @param why  out: the reason of an error other than -ENOENT, to follow the file's name
 * @return 0, then weft_config_file_release(); -ENOENT: there is no file, or its folder cannot be
 *   searched; other negative errors
 */
int weft_config_file_read(const char *path, struct weft_config_file *file, char *why,
			  size_t why_len);
void weft_config_file_release(struct weft_config_file *file);

/** Next line that is neither empty nor a comment. @return false: there is none */
bool weft_config_file_next(struct weft_config_file *file, struct weft_config_line *line);

#endif /* WEFT_CONFIG_TEXT_H */
