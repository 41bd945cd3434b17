/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/gnuplot.h
 * Pictures by gnuplot: its standard input gets the script with the data.
 */
#ifndef APP_GNUPLOT_H
#define APP_GNUPLOT_H

#include <stdbool.h>
#include <stdio.h>

/** @return APP_OK; APP_USAGE after an error message: the name ends in neither .svg nor .png */
int gnuplot_check_name(const char *file);
bool gnuplot_is_installed(void);
/** @return for the script; or NULL with errno for gnuplot_close(), ENOPKG = not installed */
FILE *gnuplot_open(const char *file, const char *title);
/** @param size  in bytes: 65536 is written as "64 KiB" */
void gnuplot_size(FILE *out, double size);
/** Axes of time (us) over size (bytes), both logarithmic, up to @p top bytes. */
void gnuplot_size_time_axes(FILE *out, double top, const char *ylabel);
/** @return "#RRGGBB"; after 8 colours the first returns */
const char *gnuplot_colour(unsigned int i);
/** @param out  NULL: report gnuplot_open()'s errno. @return APP_OK, or APP_FAIL after a message */
int gnuplot_close(FILE *out, const char *file);

#endif /* APP_GNUPLOT_H */
