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
	".Dd November 21, 2026\n"
	".Dt WEFT-CONFIG 7\n"
	".Os\n"
	".Sh NAME\n"
	".Nm weft-config\n"
	".Nd environment variables of Weft\n"
	".Sh DESCRIPTION\n"
	"Weft is configured by environment variables; a program can set the same options by\n"
	".Fn weft_config_modify .\n"
	".Ic weft-info Fl c\n"
	"prints the values in force.\n"
	"A variable that begins with\n"
	".Ev WEFT_\n"
	"and is not in this list causes a warning with the most similar name of the list.\n"
	"An invalid value is an error.\n"
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

		printf(".It Ev WEFT_%s Ns = Ns Ar ", opt->name);
		value(opt);
		putchar('\n');
		text(opt->help);
		if (!opt->def[0])
			printf("The default is empty.\n");
		else
			printf("The default is\n.Sq %s .\n", opt->def);
	}
	fputs(foot, stdout);
	return fflush(stdout) ? 1 : 0;
}
