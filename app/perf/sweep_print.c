/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of --sweep: a line per size, crossings, the result, CSV. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "perf/sweep.h"

void sweep_print_begin(bool csv)
{
	if (csv)
		printf("size,protocol,predicted_us,measured_us,q1_us,q3_us,trials,chosen,best,"
		       "loss_percent,spread_percent\n");
	else
		printf("\nhalf round trips in us: measured (predicted); * = chosen, + = best where "
		       "that is another one\n\n%8s  %7s %7s  %s\n",
		       "size", "loss %", "spread", "protocols");
	fflush(stdout);
}

static void csv_point(const struct sweep_point *pt)
{
	for (unsigned int i = 0; i < pt->num; i++) {
		const struct sweep_proto *p = &pt->proto[i];
		struct sweep_stat s = sweep_stat(p);

		printf("%" PRIu64 ",%s,%.3f,%.3f,%.3f,%.3f,%u,%d,%d,%.2f,%.2f\n", pt->size, p->name,
		       p->predicted * 1e6, s.median * 1e6, s.q1 * 1e6, s.q3 * 1e6, p->trials,
		       i == pt->chosen, i == pt->best, pt->loss * 100, pt->spread * 100);
	}
}

void sweep_print_point(const struct sweep_point *pt, bool csv)
{
	char size[24];

	if (csv) {
		csv_point(pt);
		fflush(stdout);
		return;
	}
	printf("%8s  %7.1f %7.1f ", cli_size_text(pt->size, size, sizeof(size)), pt->loss * 100,
	       pt->spread * 100);
	for (unsigned int i = 0; i < pt->num; i++) {
		const struct sweep_proto *p = &pt->proto[i];

		printf(" %s%s%s %.2f (%.2f)", i ? "| " : "", p->name,
		       i == pt->chosen ? "*"
		       : i == pt->best ? "+"
				       : "",
		       sweep_stat(p).median * 1e6, p->predicted * 1e6);
	}
	printf("%s\n", sweep_good(pt) ? "" : "  <-- loses");
	fflush(stdout);
}

/* The sizes at which @to overtakes @from, measured and predicted, as text; "-" = nowhere. */
static void crossings_of(const struct sweep_point *pts, unsigned int num, const char *from,
			 const char *to, bool predicted, char *buf, size_t len)
{
	size_t at = 0;

	snprintf(buf, len, "-");
	for (unsigned int i = 0; i + 1 < num && at < len; i++) {
		double x = sweep_crossing(&pts[i], &pts[i + 1], from, to, predicted);

		if (x >= 0)
			at += (size_t)snprintf(buf + at, len - at, "%s%.0f", at ? ", " : "", x);
	}
}

/* Only crossings of protocols that follow each other in the automatic choice are printed. */
static void print_crossings(const struct sweep_point *pts, unsigned int num)
{
	char measured[128], predicted[128];

	for (unsigned int i = 0; i + 1 < num; i++) {
		const char *from = pts[i].proto[pts[i].chosen].name;
		const char *to = pts[i + 1].proto[pts[i + 1].chosen].name;

		if (strcmp(from, to) == 0)
			continue;
		crossings_of(pts, num, from, to, false, measured, sizeof(measured));
		crossings_of(pts, num, from, to, true, predicted, sizeof(predicted));
		printf("  %s -> %s: chosen between %" PRIu64 " and %" PRIu64
		       "; faster measured from %s, predicted from %s\n",
		       from, to, pts[i].size, pts[i + 1].size, measured, predicted);
	}
}

void sweep_print_end(const struct sweep_point *pts, unsigned int num, bool csv)
{
	unsigned int good = 0, worst = 0;

	for (unsigned int i = 0; i < num; i++) {
		good += sweep_good(&pts[i]);
		if (pts[i].loss - pts[i].spread > pts[worst].loss - pts[worst].spread)
			worst = i;
	}
	if (csv || num == 0)
		return;
	printf("\ncrossings, bytes:\n");
	print_crossings(pts, num);
	printf("\nthe automatic choice loses at most %.0f %% beyond the spread at %u of %u sizes "
	       "(%.1f %%);\n"
	       "the most at %" PRIu64 " bytes: %.1f %% with a spread of %.1f %%\n",
	       SWEEP_LIMIT * 100, good, num, 100.0 * good / num, pts[worst].size,
	       pts[worst].loss * 100, pts[worst].spread * 100);
	fflush(stdout);
}
