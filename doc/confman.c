/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the manual page weft-config(7) from the configuration table, so that the page has every
 * option.
 */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/config.h"

static const char head[] =
	".\\\" SPDX-License-Identifier: BSD-3-Clause\n"
	".\\\" Made from lib/core/config_table.c by doc/confman.c.\n"
	".Dd November 26, 2026\n"
	".Dt WEFT-CONFIG 7\n"
	".Os\n"
	".Sh NAME\n"
	".Nm weft-config\n"
	".Nd configuration of Weft: environment variables and files\n"
	".Sh DESCRIPTION\n"
	"Weft is configured by environment variables and by files with the same names.\n"
	"The sources of a value, each with priority over those before it:\n"
	".Bl -enum -compact -offset indent\n"
	".It\n"
	"the default\n"
	".It\n"
	".Pa /etc/weft.conf\n"
	".It\n"
	"the user's file,\n"
	".Pa $XDG_CONFIG_HOME/weft.conf\n"
	"or\n"
	".Pa ~/.config/weft.conf\n"
	".It\n"
	"the file of\n"
	".Ev WEFT_CONFIG\n"
	".It\n"
	"the environment\n"
	".It\n"
	"the program, by\n"
	".Fn weft_config_modify\n"
	"or an option such as\n"
	".Ic weft-perf Fl S .\n"
	".El\n"
	".Pp\n"
	".Ic weft-info Fl c\n"
	"prints the values in force, and the source of each.\n"
	"A variable that begins with\n"
	".Ev WEFT_\n"
	"and is not in this list causes a warning with the most similar name of the list.\n"
	"An invalid value is an error, in a file too, unless a source of higher priority\n"
	"has another value.\n"
	".Pp\n"
	"Bytes take the binary suffixes k, M, G and T, and the words\n"
	".Sq inf\n"
	"and\n"
	".Sq auto\n"
	"where the option allows them.\n"
	"Times take ns, us, ms, s or m; a bare number is seconds.\n"
	"Switches are y or n, yes or no, on or off, true or false, 1 or 0.\n"
	".Sh ENVIRONMENT\n"
	".Bl -tag -width Ds\n";

static const char files[] =
	".El\n"
	".Sh FILES\n"
	"A file has lines\n"
	".Ql WEFT_NAME=value ,\n"
	"empty lines, and comments that begin with #.\n"
	"A comment may follow a value after a blank.\n"
	"A value in quotation marks is read as a shell reads a word, so\n"
	".Ic weft-info Fl C\n"
	"prints lines for a file.\n"
	"Of several lines for one variable the last one counts.\n"
	"A line that is not understood, or has an unknown variable, is ignored with a warning,\n"
	"which has the file and the line.\n"
	"There are no sections.\n"
	".Bd -literal -offset indent\n"
	"# two NICs, and a longer silence\n"
	"WEFT_LANES=dpdk:0,mtu=9000;dpdk:1,mtu=9000\n"
	"WEFT_PEER_TIMEOUT=2m\n"
	".Ed\n"
	".Pp\n"
	"A file is read each time that a program reads the configuration, and not afterwards.\n"
	"It must be a regular file of at most 64 KiB.\n"
	"It must belong to root or to the user of the process, and no other user may be able to\n"
	"write it: a setting can load a module.\n"
	"The same owners are required of a symbolic link.\n"
	"A file that fails one of these tests is ignored with a warning; if\n"
	".Ev WEFT_CONFIG\n"
	"names it, it is an error.\n"
	".Pp\n"
	"A program with more rights than its user (set-user-id, set-group-id or file\n"
	"capabilities) reads\n"
	".Pa /etc/weft.conf\n"
	"only.\n"
	"There it ignores the variables that it ignores in the environment\n"
	".Pq Xr weft 7 ,\n"
	"unless the file belongs to root.\n"
	".Sh REMOVED VARIABLES\n"
	"These variables have no effect.\n"
	"The log reports the first use of each in a process.\n"
	"A later release will not know them.\n"
	".Bl -tag -width Ds\n";

static const char foot[] = ".El\n"
			   ".Sh SEE ALSO\n"
			   ".Xr weft-info 1 ,\n"
			   ".Xr weft 7\n";

/*
 * Escapes text for roff, so that it contains no escape and no control line. Each sentence begins on
 * a line of its own.
 */
static void text(const char *s)
{
	int start = 1;

	for (; *s; s++) {
		if (start && (*s == '.' || *s == '\''))
			fputs("\\&", stdout);
		start = 0;
		if (*s == '\\') {
			fputs("\\e", stdout);
		} else if (*s == '"') {
			fputs("\\(dq", stdout);
		} else if (*s == '\n') {
			putchar('\n');
			start = 1;
		} else if (*s == ' ' && s[-1] == '.' && isupper((unsigned char)s[1])) {
			putchar('\n');
			start = 1;
		} else {
			putchar(*s);
		}
	}
	putchar('\n');
}

static void value(const struct weft_option *opt)
{
	switch (opt->type) {
	case WEFT_OPT_BYTES:
		printf("bytes");
		break;
	case WEFT_OPT_TIME:
		printf("time");
		break;
	case WEFT_OPT_BOOL:
		printf("y|n");
		break;
	case WEFT_OPT_ENUM:
		printf("%s", opt->words);
		break;
	case WEFT_OPT_STRING:
		printf("text");
		break;
	case WEFT_OPT_PORT:
		printf("port");
		break;
	case WEFT_OPT_RATE:
		printf("rate");
		break;
	default:
		printf("number");
		break;
	}
	if (opt->has_auto)
		printf("|auto");
	if (opt->word)
		printf("|%s", opt->word);
	if (opt->has_inf)
		printf("|inf");
}

int main(void)
{
	unsigned int i;

	fputs(head, stdout);
	for (i = 0; i < weft_num_options; i++) {
		const struct weft_option *opt = &weft_options[i];

		if (opt->hidden || opt->profile)
			continue;
		printf(".It Ev WEFT_%s Ns = Ns Ar ", opt->name);
		value(opt);
		putchar('\n');
		text(opt->help);
		if (!opt->def[0])
			printf("The default is empty.\n");
		else
			printf("The default is\n.Sq %s .\n", opt->def);
	}
	fputs(files, stdout);
	for (i = 0; i < weft_num_removed; i++) {
		printf(".It Ev WEFT_%s\nSince Weft %s.\n", weft_removed[i].name,
		       weft_removed[i].since);
		text(weft_removed[i].now);
	}
	fputs(foot, stdout);
	return fflush(stdout) ? 1 : 0;
}
