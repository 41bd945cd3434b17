/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/reason.h
 * The reason of a failure in the library: its calls return a number, and its log has a sentence.
 * The user reads the log; OOB_BYE sends the sentence to the peer.
 */
#ifndef APP_REASON_H
#define APP_REASON_H

/** Record lines of the library's log from now on. The log is written as before. */
void reason_watch(void);

/** Before a call that may fail: discard the recorded lines of earlier calls. */
void reason_forget(void);

/**
 * Report a failed call. Its reason is the first error (else the first warning) of the log since
 * reason_forget(). At this end the reason is already above the message; the message for the peer
 * includes it.
 * @param what       what failed, e.g. "no lane could be opened"
 * @param otherwise  the reason, where the log has none
 */
void reason_error(const char *what, const char *otherwise);

#endif /* APP_REASON_H */
