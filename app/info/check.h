/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/check.h
 * weft-info --check: two hosts find out together why lanes between them do not work.
 */
#ifndef INFO_CHECK_H
#define INFO_CHECK_H

#include <stdint.h>

/** @param host  of the other end; NULL: be that end. @return APP_OK or an exit code */
int info_check(const char *host, uint16_t port);

#endif /* INFO_CHECK_H */
