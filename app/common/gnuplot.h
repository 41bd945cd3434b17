/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/gnuplot.h
 * Pictures by gnuplot: its standard input gets the script with the data.
 */
#ifndef APP_GNUPLOT_H
#define APP_GNUPLOT_H

#include <stdbool.h>
#include <stdio.h>

/**
 * Check the value of --graph: the name of a picture ends in .svg or .png.
 * @return APP_OK, or APP_USAGE after an error message
 */
int gnuplot_check_name(const char *file);
/** Is there a program gnuplot in PATH? */
bool gnuplot_is_installed(void);
/**
 * Start gnuplot with the terminal and output that @p file requests, and a title (any text).
 * @return where the script goes; or NULL with errno set, which gnuplot_close() reports. ENOPKG:
 * gnuplot is not installed
 */
FILE *gnuplot_open(const char *file, const char *title);
/** Write a size for a label: "64 KiB". */
void gnuplot_size(FILE *out, double size);
/** Axes of time (us) over size (bytes), both logarithmic, up to @p top bytes. */
void gnuplot_size_time_axes(FILE *out, double top, const char *ylabel);
/** Colour number @p i, as "#0072B2": most people can distinguish them. */
const char *gnuplot_colour(unsigned int i);
/**
 * Wait for gnuplot, when the script is written. A picture without content is removed if gnuplot
 * fails.
 * @param out  of gnuplot_open(); NULL: report its errno
 * @return APP_OK, or APP_FAIL after an error message
 */
int gnuplot_close(FILE *out, const char *file);

#endif /* APP_GNUPLOT_H */
