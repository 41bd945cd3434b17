/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cat/io.h
 * Standard input and output that never block, so that the lanes make progress while a reader or
 * writer is slow.
 *
 * O_NONBLOCK is a flag of the open file description, which other processes share (a shell and its
 * terminal). So inherited descriptors do not get it: pipes and terminals are opened again through
 * /proc/self/fd, calls on sockets have MSG_DONTWAIT, and regular files do not block. Where none of
 * these works, poll() precedes each call, and calls are short.
 */
#ifndef APP_CAT_IO_H
#define APP_CAT_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum cat_kind {
	CAT_PLAIN,    /**< never blocks for long: a file, /dev/null */
	CAT_NONBLOCK, /**< opened again with O_NONBLOCK */
	CAT_SOCKET,
	CAT_POLLED,
};

struct cat_io {
	int fd; /**< -1 = closed */
	enum cat_kind kind;
	bool output;
};

/** Use descriptor @p fd; cat_io_close() closes it. */
void cat_io_open(struct cat_io *io, int fd, bool output);

/** @return bytes, 0 = end, -EAGAIN = no bytes now, or a negative error */
ssize_t cat_io_read(struct cat_io *io, void *buf, size_t len);

/** @return bytes, -EAGAIN = no space now, or a negative error (-EPIPE: the reader has closed) */
ssize_t cat_io_write(struct cat_io *io, const void *buf, size_t len);

/** Does poll() report when the descriptor is ready again? */
bool cat_io_can_poll(const struct cat_io *io);

/**
 * Close. The kernel reports some errors only here (no space, I/O error). @return 0 or a negative
 * error
 */
int cat_io_close(struct cat_io *io);

#endif /* APP_CAT_IO_H */
