/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/listen.h
 * weft-info --metrics --listen: the metrics over HTTP, for a scraper.
 */
#ifndef INFO_LISTEN_H
#define INFO_LISTEN_H

/**
 * Serve /metrics until a signal ends the program.
 * @param address  [HOST:]PORT, without HOST 127.0.0.1; IPv6 in brackets
 * @param pid      only this process; 0 = all, found again at each request
 * @return exit code
 */
int info_listen(const char *address, long pid);

#endif /* INFO_LISTEN_H */
