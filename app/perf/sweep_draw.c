/* SPDX-License-Identifier: BSD-3-Clause */
/* The picture of a sweep: measured points, predicted lines, and the choice. */

#include <inttypes.h>
#include <string.h>

#include "common/gnuplot.h"
#include "perf/sweep.h"

#define MAX_NAMES 16u

struct names {
	const char *name[MAX_NAMES];
	unsigned int num;
};

static void add_name(struct names *n, const char *name)
{
	for (unsigned int i = 0; i < n->num; i++)
		if (strcmp(n->name[i], name) == 0)
			return;
	if (n->num < MAX_NAMES)
		n->name[n->num++] = name;
}

/* size, predicted, median, quartiles of one protocol, in us. */
static void write_proto(FILE *out, const struct sweep_point *pts, unsigned int num,
			const char *name)
{
	for (unsigned int i = 0; i < num; i++) {
		for (unsigned int k = 0; k < pts[i].num; k++) {
			const struct sweep_proto *p = &pts[i].proto[k];
			struct sweep_stat s = sweep_stat(p);

			if (strcmp(p->name, name) == 0)
				fprintf(out, "%" PRIu64 " %.9g %.9g %.9g %.9g\n", pts[i].size,
					p->predicted * 1e6, s.median * 1e6, s.q1 * 1e6, s.q3 * 1e6);
		}
	}
}

static void write_data(FILE *out, const struct sweep_point *pts, unsigned int num,
		       const struct names *n)
{
	for (unsigned int i = 0; i < n->num; i++) {
		fprintf(out, "$proto%u << EOD\n", i);
		write_proto(out, pts, num, n->name[i]);
		fprintf(out, "EOD\n");
	}
	fprintf(out, "$chosen << EOD\n");
	for (unsigned int i = 0; i < num; i++)
		fprintf(out, "%" PRIu64 " %.9g\n", pts[i].size,
			sweep_stat(&pts[i].proto[pts[i].chosen]).median * 1e6);
	fprintf(out, "EOD\n");
}

int sweep_draw(const struct sweep_point *pts, unsigned int num, const char *path)
{
	FILE *out = gnuplot_open(path, "every protocol at every size: measured (points, quartiles) "
				       "and predicted (dashed)");
	struct names n = {.num = 0};

	if (!out || num == 0)
		return gnuplot_close(out, path);
	for (unsigned int i = 0; i < num; i++)
		for (unsigned int k = 0; k < pts[i].num; k++)
			add_name(&n, pts[i].proto[k].name);
	write_data(out, pts, num, &n);
	gnuplot_size_time_axes(out, (double)pts[num - 1].size, "half round trip");
	fprintf(out, "plot $chosen using 1:2 with lines lw 9 lc rgb \"#D4D4D4\" title \"chosen\"");
	for (unsigned int i = 0; i < n.num; i++)
		fprintf(out,
			", \\\n  $proto%u using 1:2 with lines lw 1.4 dt 2 lc rgb \"%s\" notitle"
			", \\\n  $proto%u using 1:3:4:5 with yerrorlines lw 1.8 pt 7 ps 0.5 lc rgb "
			"\"%s\" title \"%s\" noenhanced",
			i, gnuplot_colour(i), i, gnuplot_colour(i), n.name[i]);
	fprintf(out, "\n");
	return gnuplot_close(out, path);
}
