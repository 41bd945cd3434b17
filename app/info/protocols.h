/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/protocols.h
 * `weft-info protocols`: which protocol for which size, and why, over lanes that a file describes.
 * Needs no EAL, no hardware and no rights.
 */
#ifndef APP_INFO_PROTOCOLS_H
#define APP_INFO_PROTOCOLS_H

/** @param argv  argv[0] is "protocols" @return exit code */
int info_protocols(int argc, char **argv);

#endif /* APP_INFO_PROTOCOLS_H */
