/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/keylog.h
 * The lines of a key log (doc/sealing.md, "Key log"). Its file may be on a server that does not
 * respond, so threads of base/thread.h write it, and callers never wait for it.
 */
#ifndef WEFT_KEYLOG_H
#define WEFT_KEYLOG_H

#include <stdint.h>

/** Lines of the process that may wait to be written. */
#define WEFT_KEYLOG_LINES 256u

/**
 * Append the secret of the frames that have this connection and token in their header. Any thread;
 * returns at once. Lost lines are counted, also those that are lost after the return. The log has
 * the first one since the last flush.
 * @param fd    of weft_keylog_open(); may be closed after this call
 * @param mode  2 encrypt, 1 auth
 * @return 0: it will be written; -ENOBUFS: WEFT_KEYLOG_LINES wait; or another negative errno
 */
int weft_keylog_write(int fd, unsigned int mode, uint32_t conn, uint32_t token,
		      const uint8_t secret[32]);

/**
 * Wait until no line waits, at most for a second.
 * @return lines of the process that are lost, or still wait, since the last flush
 */
unsigned int weft_keylog_flush(void);

#endif /* WEFT_KEYLOG_H */
