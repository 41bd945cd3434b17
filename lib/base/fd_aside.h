/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/fd_aside.h
 * Closing descriptors that another process may have chosen.
 *
 * A close() can block for as long as the sender of the descriptor likes: a TCP socket that lingers,
 * a file of FUSE, or a Unix socket in whose queue such descriptors wait. The thread that moves
 * messages must not wait for another process, so a thread of its own closes each of them.
 */
#ifndef WEFT_FD_ASIDE_H
#define WEFT_FD_ASIDE_H

#include <stdbool.h>

/** Closes that may be under way in a process at a time. */
#define WEFT_FD_ASIDE_MAX 64u

/**
 * Close @p fd in a thread of its own. Any thread.
 * @return false: WEFT_FD_ASIDE_MAX closes are under way, or no thread can be started. The caller
 *   keeps the descriptor, and should receive no further ones until weft_fd_aside_has_room()
 */
bool weft_fd_close_aside(int fd);

bool weft_fd_aside_has_room(void);

/**
 * No peer can pass descriptors over @p sock any more, nor over connections that it accepts.
 * @return false: the kernel is older than Linux 6.16
 */
bool weft_socket_refuse_fds(int sock);

/**
 * Close a socket to which each user may have connected. If descriptors may wait in it, a thread of
 * its own closes it, and the call returns after at most 20 ms.
 */
void weft_socket_close_public(int sock);

#endif /* WEFT_FD_ASIDE_H */
