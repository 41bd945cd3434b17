/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/check.h
 * weft-info --check: two hosts find out together why lanes between them do not work.
 */
#ifndef INFO_CHECK_H
#define INFO_CHECK_H

/** @param argv  begins with "--check". @return APP_OK or an exit code */
int info_check(int argc, char **argv);

#endif /* INFO_CHECK_H */
