/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/protocols.h
 * `weft-info protocols`: which protocol for which size, and why, over lanes that a file describes.
 * Needs no EAL, no hardware and no rights.
 */
#ifndef APP_INFO_PROTOCOLS_H
#define APP_INFO_PROTOCOLS_H

#include "weft_plan.h"

/** @param argv  argv[0] is "protocols" @return exit code */
int info_protocols(int argc, char **argv);

/**
 * Draw all candidates with the lower envelope and the crossings, by gnuplot.
 * @param file  ends in .svg or .png
 * @return 0, or an exit code after an error message
 */
int info_graph(const struct weft_plan *plan, enum weft_op op, const char *title, const char *file);

#endif /* APP_INFO_PROTOCOLS_H */
