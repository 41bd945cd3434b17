/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/gnuplot.h"

int gnuplot_check_name(const char *file)
{
	const char *end = strrchr(file, '.');

	if (end && (strcmp(end, ".svg") == 0 || strcmp(end, ".png") == 0))
		return APP_OK;
	cli_error("--graph takes a file name that ends in .svg or .png, not '%s'", file);
	return APP_USAGE;
}

/* A string of gnuplot in single quotes: a quote is doubled, and a newline would end the string. */
static void write_quoted(FILE *out, const char *variable, const char *text)
{
	fprintf(out, "%s = '", variable);
	for (; *text; text++) {
		if (*text == '\'')
			fputc('\'', out);
		if (*text != '\n')
			fputc(*text, out);
	}
	fprintf(out, "'\n");
}

bool gnuplot_is_installed(void)
{
	const char *dirs = getenv("PATH");
	char path[PATH_MAX];
	size_t len;

	for (dirs = dirs ? dirs : "/usr/local/bin:/usr/bin:/bin"; *dirs;
	     dirs += len + (dirs[len] == ':')) {
		len = strcspn(dirs, ":");
		if (snprintf(path, sizeof(path), "%.*s/gnuplot", (int)len, dirs) <
			    (int)sizeof(path) &&
		    access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static void remove_if_empty(const char *file)
{
	struct stat st;

	if (lstat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		unlink(file);
}

FILE *gnuplot_open(const char *file, const char *title)
{
	/* gnuplot writes to standard output when it can't open the file, so open it first. */
	FILE *out = fopen(file, "ae");

	if (!out)
		return NULL;
	fclose(out);
	/* popen() succeeds without the program: its shell fails after the script is written. */
	if (!gnuplot_is_installed()) {
		remove_if_empty(file);
		errno = ENOPKG;
		return NULL;
	}
	fflush(stdout);
	/* gnuplot may exit before it has read the script. */
	signal(SIGPIPE, SIG_IGN);
	out = popen("gnuplot", "we");
	if (!out)
		return NULL;
	write_quoted(out, "ARG_FILE", file);
	write_quoted(out, "ARG_TITLE", title);
	if (strcmp(strrchr(file, '.'), ".svg") == 0)
		fprintf(out, "set terminal svg size 1150,720 dynamic enhanced "
			     "font \"Helvetica,14\" background \"white\"\n");
	else
		fprintf(out, "set terminal pngcairo size 1150,720 enhanced font \"Sans,12\" "
			     "background \"white\"\n");
	/* The title is the user's text: no markup. */
	fprintf(out, "set output ARG_FILE\nset title ARG_TITLE noenhanced\n");
	return out;
}

void gnuplot_size(FILE *out, double size)
{
	static const char *const units[] = {"", " KiB", " MiB", " GiB"};
	unsigned long long n = (unsigned long long)size;
	unsigned int u = 0;

	while (n >= 1024 && n % 1024 == 0 && u < 3) {
		n /= 1024;
		u++;
	}
	fprintf(out, "%llu%s", n, units[u]);
}

void gnuplot_size_time_axes(FILE *out, double top, const char *ylabel)
{
	const char *comma = "";

	fprintf(out, "set logscale x 2\nset logscale y 10\nset xrange [1:%.0f]\nset xtics (", top);
	for (double x = 1; x <= top; x *= 4) {
		fprintf(out, "%s\"", comma);
		gnuplot_size(out, x);
		fprintf(out, "\" %.0f", x);
		comma = ", ";
	}
	fprintf(out,
		") nomirror\n"
		"set ytics (\"10 ns\" 0.01, \"100 ns\" 0.1, \"1 us\" 1, \"10 us\" 10, \"100 us\" "
		"100, \"1 ms\" 1e3, \"10 ms\" 1e4, \"100 ms\" 1e5, \"1 s\" 1e6, \"10 s\" 1e7) "
		"nomirror\n"
		"set xlabel \"message size\"\nset ylabel \"%s\"\n"
		"set grid xtics ytics lc rgb \"#E4E4E4\" lw 1\n"
		"set border 3 lc rgb \"#404040\"\n"
		"set key top left Left reverse samplen 3 spacing 1.25 box lc rgb \"#C8C8C8\" "
		"opaque\n",
		ylabel);
}

const char *gnuplot_colour(unsigned int i)
{
	/* The palette of Okabe and Ito, on white: distinct also for colour-blind readers. */
	static const char *const colours[] = {"#0072B2", "#E69F00", "#009E73", "#CC79A7",
					      "#D55E00", "#56B4E9", "#7F7F7F", "#000000"};

	return colours[i % (sizeof(colours) / sizeof(colours[0]))];
}

int gnuplot_close(FILE *out, const char *file)
{
	if (!out) {
		cli_error("--graph %s: %s", file,
			  errno == ENOPKG ? "gnuplot is not installed (Debian: gnuplot-nox)"
					  : strerror(errno));
		return APP_FAIL;
	}
	if (pclose(out) == 0)
		return APP_OK;
	remove_if_empty(file);
	cli_error("--graph %s: gnuplot could not draw it", file);
	return APP_FAIL;
}
