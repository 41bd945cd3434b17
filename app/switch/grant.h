/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file switch/grant.h
 * Which process gets a port: the well-known socket, users and their limits. All in the control
 * thread.
 */
#ifndef APP_SWITCH_GRANT_H
#define APP_SWITCH_GRANT_H

#include "switch/switch.h"

/** @return APP_OK or an exit code after an error message */
int sw_listen(struct sw *s);
void sw_unlisten(struct sw *s);

/** Grant a port to each process that waits at the well-known socket, or send it a reason. */
void sw_grant_accept(struct sw *s, uint64_t now);

/** End a grant: its connection has ended, or the port goes to another process. */
void sw_grant_end(struct sw *s, unsigned int port);
/** @param[out] secret  text made from the key of the switch, terminated */
void sw_secret(const struct sw *s, unsigned int port, uid_t uid, char secret[24]);

/** Free a port whose process has neither of the two connections. */
void sw_port_check(struct sw *s, unsigned int port);

/** Does the port have a process? A grant without a memif connection for 5 s does not count. */
bool sw_port_is_taken(const struct sw_port *p, uint64_t now);

/** May this user have one port more? @return NULL = yes, or the reason */
const char *sw_user_limit(const struct sw *s, uid_t user, uint64_t now);

/**
 * Set the members pid, uid and user of @p c, for the process at the other end.
 * @return 0; -ESRCH: the process has ended; or another negative error
 */
int sw_user_of(int fd, struct sw_conn *c);
/** May the user connect once more? Each call counts towards the limit. */
bool sw_user_may_connect(struct sw *s, uid_t user, uint64_t now);
/** Give the user no port for the next 10 s. */
void sw_user_ban(struct sw *s, uid_t user, uint64_t now);
bool sw_user_is_banned(const struct sw *s, uid_t user, uint64_t now);

/**
 * cli_error() for lines that a user can cause: 5 at once for each user, then one a second; 50 at
 * once for all users, then 10 a second. The next line has the number of those that were left out.
 */
void sw_report(struct sw *s, uid_t user, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* APP_SWITCH_GRANT_H */
