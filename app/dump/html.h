/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/html.h
 * A report for a browser, in one file.
 */
#ifndef DUMP_HTML_H
#define DUMP_HTML_H

#include <stdio.h>

struct list;

void html_report(FILE *out, struct list *l);

#endif /* DUMP_HTML_H */
