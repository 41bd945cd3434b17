/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/reason.h
 * Why the library failed: its log has the sentence, and its calls return a number. The user reads
 * the log; the other end receives the sentence with OOB_BYE.
 */
#ifndef APP_REASON_H
#define APP_REASON_H

/** Watch the library's log from now on. The log is written as before. */
void reason_watch(void);

/** Before a call that may fail: forget the lines of earlier calls. */
void reason_forget(void);

/**
 * Report a failed call. The first error (else the first warning) of the log since reason_forget()
 * is its reason: it stands above the message on this end, and in the message for the other end.
 * @param what       failed, e.g. "no lane could be opened"
 * @param otherwise  the reason, where the log has none
 */
void reason_error(const char *what, const char *otherwise);

#endif /* APP_REASON_H */
