/* SPDX-License-Identifier: BSD-3-Clause */

#include "common/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "weft.h"

#define COLUMN 25 /* the help of an option begins at this column */
#define WIDTH 79  /* columns of --help */
#define OPTIONS_MAX 64
#define LONG_FIRST 256 /* the values of options without a letter, by their place */

static const struct cli_option common[] = {
	{"help", 'h', NULL, "this text"},
	{"version", 0, NULL, "version and build"},
	{0},
};

static const struct cli_option hidden[] = {
	{.name = "print-options", .argument = "FORMAT"},
	{0},
};

/* ---- the entries of a program ---------------------------------------------------------------- */

struct entries {
	const struct cli_option *at[OPTIONS_MAX];
	unsigned int num;
};

static bool has_option(const struct entries *e, const char *name)
{
	for (unsigned int i = 0; name && i < e->num; i++)
		if (e->at[i]->name && strcmp(e->at[i]->name, name) == 0)
			return true;
	return false;
}

/* An option of the program takes the place of a common one of that name. */
static void entries_add(struct entries *e, const struct cli_option *o)
{
	for (; o->name || o->table || o->heading; o++) {
		if (o->table)
			entries_add(e, o->table);
		else if (e->num < OPTIONS_MAX && !has_option(e, o->name))
			e->at[e->num++] = o;
	}
}

static void entries_of(struct entries *e, const struct cli_command *cmd)
{
	e->num = 0;
	entries_add(e, cmd->options);
	entries_add(e, common);
}

/* ---- --help ---------------------------------------------------------------------------------- */

/* Print words from column COLUMN on; the cursor is there already. */
static void print_wrapped(const char *text, FILE *out)
{
	size_t column = COLUMN, length;

	while (*text) {
		length = strcspn(text, " ");
		if (column > COLUMN && column + 1 + length > WIDTH) {
			fprintf(out, "\n%*s", COLUMN, "");
			column = COLUMN;
		} else if (column > COLUMN) {
			fputc(' ', out);
			column++;
		}
		fwrite(text, 1, length, out);
		column += length;
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void print_option(const struct cli_option *o, FILE *out)
{
	char left[80], letter[8] = "    ";

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	snprintf(left, sizeof(left), "  %s--%s%s%s", letter, o->name, o->argument ? " " : "",
		 o->argument ? o->argument : "");
	if (strlen(left) >= COLUMN)
		fprintf(out, "%s\n%*s", left, COLUMN, "");
	else
		fprintf(out, "%-*s", COLUMN, left);
	print_wrapped(o->help, out);
}

static void print_help(const struct cli_command *cmd, FILE *out)
{
	struct entries e;

	entries_of(&e, cmd);
	fputs(cmd->usage, out);
	for (unsigned int i = 0; i < e.num; i++) {
		if (e.at[i]->heading)
			fprintf(out, "%s%s:\n", i > 0 ? "\n" : "", e.at[i]->heading);
		else
			print_option(e.at[i], out);
	}
	for (unsigned int i = 0; i < sizeof(cmd->after) / sizeof(cmd->after[0]); i++)
		if (cmd->after[i])
			fputs(cmd->after[i], out);
}

/* ---- the manual ------------------------------------------------------------------------------ */

/* Plain text as one line of mdoc. */
static void print_roff(const char *text, FILE *out)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", out);
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\e", out);
		else
			fputc(*text, out);
	}
}

/* "NAME=VALUE" is two arguments for the reader. */
static void print_argument(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '=')
			fputs(" Ns = Ns Ar ", out);
		else
			fputc(tolower((unsigned char)*text), out);
	}
}

static void print_item(const struct cli_option *o, FILE *out)
{
	fputs(".It", out);
	if (o->letter)
		fprintf(out, " Fl %c ,", o->letter);
	fprintf(out, " Fl -%s", o->name);
	if (o->argument) {
		fputs(" Ar ", out);
		print_argument(o->argument, out);
	}
	fputc('\n', out);
	print_roff(o->help, out);
	fputs(".\n", out);
}

static void print_manual(const struct cli_command *cmd, FILE *out)
{
	bool in_list = false;
	struct entries e;

	entries_of(&e, cmd);
	for (unsigned int i = 0; i < e.num; i++) {
		if (e.at[i]->heading) {
			fprintf(out, "%s.Ss %s\n", in_list ? ".El\n" : "", e.at[i]->heading);
			in_list = false;
			continue;
		}
		if (!in_list)
			fputs(".Bl -tag -width Ds\n", out);
		in_list = true;
		print_item(e.at[i], out);
	}
	fputs(".El\n", out);
}

/* ---- completion ------------------------------------------------------------------------------ */

/*
 * After an option with an argument, and for other arguments, bash completes names of files
 * ("-o default").
 */
static void print_completion(const struct cli_command *cmd, FILE *out)
{
	const char *before = "\t";
	struct entries e;

	entries_of(&e, cmd);
	fprintf(out,
		"# The completion of %s for bash, made from its table of options.\n"
		"_%s()\n"
		"{\n"
		"\tlocal word=${COMP_WORDS[COMP_CWORD]}\n"
		"\n"
		"\tCOMPREPLY=()\n"
		"\tcase ${COMP_WORDS[COMP_CWORD - 1]} in\n",
		cmd->name, cmd->name);
	for (unsigned int i = 0; i < e.num; i++) {
		if (e.at[i]->heading || !e.at[i]->argument)
			continue;
		fprintf(out, "%s--%s", before, e.at[i]->name);
		before = " | ";
		if (e.at[i]->letter)
			fprintf(out, " | -%c", e.at[i]->letter);
	}
	fprintf(out,
		"%s\n"
		"\tesac\n"
		"\t[[ $word == -* ]] || return 0\n"
		"\tmapfile -t COMPREPLY < <(compgen -W '",
		*before == '\t' ? "\t'') ;;" : ") return 0 ;;");
	for (unsigned int i = 0; i < e.num; i++) {
		if (e.at[i]->heading)
			continue;
		fprintf(out, "--%s ", e.at[i]->name);
		if (e.at[i]->letter)
			fprintf(out, "-%c ", e.at[i]->letter);
	}
	fprintf(out,
		"' -- \"$word\")\n"
		"}\n"
		"complete -o default -F _%s %s\n",
		cmd->name, cmd->name);
}

/* ---- parsing --------------------------------------------------------------------------------- */

struct getopt_words {
	char shorts[2 * OPTIONS_MAX + 2];
	struct option longs[OPTIONS_MAX + 1];
};

static int value_of(const struct entries *e, unsigned int i)
{
	return e->at[i]->letter ? e->at[i]->letter : LONG_FIRST + (int)i;
}

static void getopt_words_make(struct getopt_words *g, const struct entries *e)
{
	struct option *l = g->longs;
	char *s = g->shorts;

	*s++ = ':';
	for (unsigned int i = 0; i < e->num; i++) {
		const struct cli_option *o = e->at[i];

		if (o->heading)
			continue;
		*l++ = (struct option){.name = o->name,
				       .has_arg = o->argument ? required_argument : no_argument,
				       .val = value_of(e, i)};
		if (!o->letter)
			continue;
		*s++ = o->letter;
		if (o->argument)
			*s++ = ':';
	}
	*l = (struct option){0};
	*s = '\0';
}

/* @return -1: the text was printed; or an exit code after an error message */
static int print_text(const struct cli_command *cmd, const struct cli_option *o, const char *format)
{
	if (strcmp(o->name, "help") == 0) {
		print_help(cmd, stdout);
	} else if (strcmp(o->name, "version") == 0) {
		fputs(weft_build_info(), stdout);
	} else if (strcmp(format, "manual") == 0) {
		print_manual(cmd, stdout);
	} else if (strcmp(format, "completion") == 0) {
		print_completion(cmd, stdout);
	} else {
		cli_error("--print-options takes manual or completion, not '%s'", format);
		return APP_USAGE;
	}
	if (fflush(stdout) == 0 && !ferror(stdout))
		return -1;
	cli_error("standard output: %s", strerror(errno));
	return APP_FAIL;
}

static int option_set(const struct cli_option *o, void *options, const char *value)
{
	char name[64];

	if (o->letter)
		snprintf(name, sizeof(name), "-%c", o->letter);
	else
		snprintf(name, sizeof(name), "--%s", o->name);
	if (o->set)
		return o->set(options, name, value);
	if (o->flag) {
		*(bool *)((char *)options + o->flag) = true;
		return APP_OK;
	}
	return cli_count(name, value, o->number.min, o->number.max,
			 (uint64_t *)((char *)options + o->number.at))
		       ? APP_USAGE
		       : APP_OK;
}

int cli_options_parse(const struct cli_command *cmd, void *options, int argc, char **argv)
{
	const struct cli_option *o;
	struct getopt_words words;
	struct entries e;
	unsigned int i;
	int c, ret;

	entries_of(&e, cmd);
	entries_add(&e, hidden);
	getopt_words_make(&words, &e);
	while ((c = cli_getopt(argc, argv, words.shorts, words.longs)) != -1) {
		for (i = 0; i < e.num && (e.at[i]->heading || value_of(&e, i) != c); i++)
			;
		if (i == e.num)
			return APP_USAGE;
		o = e.at[i];
		ret = o->set || o->flag || o->number.at ? option_set(o, options, optarg)
							: print_text(cmd, o, optarg);
		if (ret)
			return ret;
	}
	return APP_OK;
}
