/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cat/io.h
 * Standard input and output that never block, so that the lanes keep moving while a reader or
 * writer is slow.
 *
 * O_NONBLOCK belongs to the open file that other processes share (a shell and its terminal), so it
 * is not set on what we were given: pipes and terminals are opened again through /proc/self/fd,
 * sockets are asked call by call, regular files don't block. Where none of that works, poll() comes
 * first and pieces are small.
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

/** Take over descriptor @p fd. */
void cat_io_open(struct cat_io *io, int fd, bool output);

/** @return bytes, 0 = end, -EAGAIN = nothing now, or an error */
ssize_t cat_io_read(struct cat_io *io, void *buf, size_t len);

/** @return bytes, -EAGAIN = no room now, or an error (-EPIPE: the reader has gone) */
ssize_t cat_io_write(struct cat_io *io, const void *buf, size_t len);

/** May poll() report when it goes on? */
bool cat_io_can_poll(const struct cat_io *io);

/**
 * Close, with what the kernel reports only at the end (no space, I/O error). @return 0 or a
 * negative error
 */
int cat_io_close(struct cat_io *io);

#endif /* APP_CAT_IO_H */
