/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/config_file.h
 * A configuration file: which one is the user's, its rights, its lines.
 *
 * A line is `WEFT_NAME=value`, a comment that begins with #, or empty. Blanks around the name and
 * the value do not count. A comment may follow a value after a blank. A value in quotation marks is
 * read as a shell reads a word, without escapes between double ones.
 */
#ifndef WEFT_CONFIG_FILE_H
#define WEFT_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

/** Bytes of the longest file that is read. */
#define WEFT_CONFIG_FILE_MAX 65536

struct weft_config_file {
	char *text, *rest;
	unsigned int line; /**< of the last line that was returned */
	bool of_root;      /**< root owns the file */
};

struct weft_config_line {
	unsigned int number;
	char *name, *value; /**< in the file's text, until it is released */
	const char *error;  /**< a sentence, or NULL: then name and value are set */
};

/**
 * Path of the user's file: weft.conf in XDG_CONFIG_HOME, or in .config of HOME.
 * @return 0; -ENOENT: neither is set, or the program has more rights than its user (AT_SECURE);
 *   -ENAMETOOLONG
 */
int weft_config_file_user(char *path, size_t size);

/**
 * Read a file. Only a regular file that belongs to root or to the user of the process is read, and
 * that no other user can write. A symbolic link must belong to one of these two as well. The call
 * does not block.
 *
 * @param why  out: the reason of an error other than -ENOENT, to follow the file's name
 * @return 0, then weft_config_file_release(); -ENOENT: there is no file; other negative errors
 */
int weft_config_file_read(const char *path, struct weft_config_file *file, char *why,
			  size_t why_len);
void weft_config_file_release(struct weft_config_file *file);

/** Next line that is neither empty nor a comment. @return false: there is none */
bool weft_config_file_next(struct weft_config_file *file, struct weft_config_line *line);

#endif /* WEFT_CONFIG_FILE_H */
