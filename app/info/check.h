/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/check.h
 * weft-info --check: two hosts find out together why lanes between them do not work.
 */
#ifndef INFO_CHECK_H
#define INFO_CHECK_H

#include <stdint.h>

/**
 * Check the lanes to another host, and print a verdict.
 * @param host  the other end, which waits; NULL: wait for a client at any address
 * @param port  TCP port on which the other end, or this one, listens
 * @return APP_OK: no fault was found; APP_FAIL: a fault was printed; APP_USAGE: @p host has no
 * address, or the name service fails
 */
int info_check(const char *host, uint16_t port);

#endif /* INFO_CHECK_H */
