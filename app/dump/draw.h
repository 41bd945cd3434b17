/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/draw.h
 * Pictures as SVG, for separate files and for reports: the parts of all pictures, and lanes over
 * time; and the report for a browser, in one file.
 */
#ifndef DUMP_DRAW_H
#define DUMP_DRAW_H

#include <stdint.h>
#include <stdio.h>

#define SVG_NAME 17 /**< bytes of a name that fits to the left of a picture, with its NUL */
#define SVG_WIDTH 960.0
#define SVG_LEFT 110.0
#define SVG_RIGHT 20.0
#define SVG_TOP 58.0

struct list;

struct svg_scale {
	double begin, end; /**< ns */
};

/** Write text, escaped for HTML and SVG. */
void svg_text(FILE *out, const char *text);
double svg_x(const struct svg_scale *s, double ns);
void svg_label(FILE *out, double x, double y, const char *anchor, const char *text);
void svg_line(FILE *out, double x1, double y1, double x2, double y2, const char *color,
	      double width);
void svg_begin(FILE *out, double height, const char *title);
/** Draw the axis of time below a picture, and its grid lines through the picture. */
void svg_axis(FILE *out, const struct svg_scale *s, double top, double bottom);
/** "4.56 s", "31.2 us". @return buf */
const char *svg_time(double us, char buf[24]);
/** "1.23 MB": powers of ten. @return buf */
const char *svg_bytes(double bytes, char buf[24]);
/** Shorten a name to what fits to the left of a picture. */
void svg_short(char buf[SVG_NAME], const char *name);

/** Draw rate, round trips and bytes in flight of each lane over time. */
void svg_lanes(FILE *out, const struct list *l);

/* ------------------------------------------------------------------ report for a browser */

void html_report(FILE *out, struct list *l);

#endif /* DUMP_DRAW_H */
