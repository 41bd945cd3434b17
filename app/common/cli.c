/* SPDX-License-Identifier: BSD-3-Clause */

#include "common/cli.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/text.h"
#include "weft.h"

const char *cli_program = "weft";
bool cli_has_eal = true;
const char *cli_server = "the same program without a host";

static char last_error[512];

void cli_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_error, sizeof(last_error), fmt, ap);
	va_end(ap);
	weft_text_printable(last_error, strlen(last_error));
	/* One write: lines of two processes on one terminal do not mix. */
	fprintf(stderr, "%s: %s\n", cli_program, last_error);
}

const char *cli_last_error(void)
{
	return last_error;
}

void cli_set_last_error(const char *what, const char *why)
{
	snprintf(last_error, sizeof(last_error), "%s: %s", what, why);
}

bool cli_wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help") ||
		    !strcmp(argv[i], "--version"))
			return true;
	return false;
}

/* ---- numbers */

static int parse_number(const char *text, unsigned int kilo, uint64_t *value)
{
	unsigned long long number;
	uint64_t unit = 1;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno)
		return -ERANGE;
	switch (*end) {
	case 'G':
	case 'g':
		unit *= kilo;
		/* fall through */
	case 'M':
	case 'm':
		unit *= kilo;
		/* fall through */
	case 'K':
	case 'k':
		unit *= kilo;
		end++;
	}
	if (*end)
		return -EINVAL;
	if (number > UINT64_MAX / unit)
		return -ERANGE;
	*value = number * unit;
	return 0;
}

int cli_size(const char *option, const char *text, uint64_t *value)
{
	if (parse_number(text, 1024, value) == 0 && *value <= SIZE_MAX / 2)
		return 0;
	cli_error("%s takes a size such as 8, 64k or 4M, not '%s'", option, text);
	return -EINVAL;
}

int cli_count(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	if (parse_number(text, 1000, value) == 0 && *value >= min && *value <= max)
		return 0;
	cli_error("%s takes a number from %" PRIu64 " to %" PRIu64 ", not '%s'", option, min, max,
		  text);
	return -EINVAL;
}

int cli_seconds(const char *option, const char *text, double min, double max, double *value)
{
	char *end;

	errno = 0;
	*value = strtod(text, &end);
	if (!errno && end != text && (*end == '\0' || strcmp(end, "s") == 0) && isfinite(*value) &&
	    *value >= min && *value <= max)
		return 0;
	cli_error("%s takes seconds from %g to %g, not '%s'", option, min, max, text);
	return -EINVAL;
}

int cli_port(const char *option, const char *text, uint16_t *port)
{
	uint64_t value;

	if (cli_count(option, text, 1, 65535, &value))
		return -EINVAL;
	*port = (uint16_t)value;
	return 0;
}

int cli_host_port(const char *text, char *host, size_t size, uint16_t *port)
{
	const char *begin = text, *end = text + strlen(text), *colon = strchr(text, ':');
	const char *number = NULL;
	uint64_t value;

	if (*text == '[') {
		end = strchr(text, ']');
		begin = text + 1;
		number = end && end[1] == ':' ? end + 2 : NULL;
		if (!end || (end[1] && !number))
			begin = end = NULL;
	} else if (colon && !strchr(colon + 1, ':')) {
		/* With more than one colon it is an IPv6 address. */
		end = colon;
		number = colon + 1;
	}
	if (begin == end || (size_t)(end - begin) >= size) {
		cli_error("'%s' is no host: use a name or an address, with a port as in "
			  "node1:13377 or [fd00::1]:13377",
			  text);
		return -EINVAL;
	}
	if (number && (parse_number(number, 1000, &value) || value < 1 || value > 65535)) {
		cli_error("'%s': the port after the colon goes from 1 to 65535", text);
		return -EINVAL;
	}
	memcpy(host, begin, (size_t)(end - begin));
	host[end - begin] = '\0';
	if (number)
		*port = (uint16_t)value;
	return 0;
}

/* ---- lists of sizes */

static int sizes_add(struct cli_sizes *sizes, uint64_t size)
{
	uint64_t *bigger = realloc(sizes->size, (sizes->count + 1) * sizeof(*bigger));

	if (!bigger)
		return -ENOMEM;
	sizes->size = bigger;
	sizes->size[sizes->count++] = size;
	return 0;
}

static int sizes_add_item(const char *option, char *item, struct cli_sizes *sizes)
{
	char *colon = strchr(item, ':');
	uint64_t min, max;
	int ret;

	if (colon)
		*colon = '\0';
	ret = cli_size(option, item, &min);
	if (ret)
		return ret;
	if (!colon)
		return sizes_add(sizes, min);
	ret = cli_size(option, colon + 1, &max);
	if (ret)
		return ret;
	if (max < min) {
		cli_error("%s: the range %s:%s ends before it begins", option, item, colon + 1);
		return -EINVAL;
	}
	for (uint64_t size = min; size <= max && !ret; size = size ? size * 2 : 1)
		ret = sizes_add(sizes, size);
	return ret;
}

int cli_sizes_parse(const char *option, const char *text, struct cli_sizes *sizes)
{
	char *copy = strdup(text), *rest = copy, *item;
	int ret = copy ? 0 : -ENOMEM;

	memset(sizes, 0, sizeof(*sizes));
	while (!ret && (item = strsep(&rest, ",")))
		ret = sizes_add_item(option, item, sizes);
	free(copy);
	if (ret)
		cli_sizes_free(sizes);
	return ret;
}

void cli_sizes_free(struct cli_sizes *sizes)
{
	free(sizes->size);
	sizes->size = NULL;
	sizes->count = 0;
}

const char *cli_size_text(uint64_t size, char *buf, size_t len)
{
	const char *unit = "";

	if (size && size % (1ull << 30) == 0) {
		size >>= 30;
		unit = "G";
	} else if (size && size % (1ull << 20) == 0) {
		size >>= 20;
		unit = "M";
	} else if (size && size % 1024 == 0) {
		size >>= 10;
		unit = "k";
	}
	snprintf(buf, len, "%" PRIu64 "%s", size, unit);
	return buf;
}

/* ---- the operating system ------------------------------------------------------------------- */

static volatile sig_atomic_t caught;

static void on_signal(int sig)
{
	if (caught)
		_exit(128 + sig);
	caught = sig;
}

void sys_catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int sys_signal(void)
{
	return caught;
}

int sys_idle(void *arg)
{
	(void)arg;
	return caught ? -EINTR : 0;
}

int sys_pin(unsigned int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (core < CPU_SETSIZE)
		CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set) == 0)
		return 0;
	cli_error("can't run on core %u: %s; see lscpu for the cores of this machine", core,
		  strerror(errno));
	return -errno;
}

void sys_memory(struct sys_memory *memory)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	uint64_t kb;

	memset(memory, 0, sizeof(*memory));
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "VmHWM: %" SCNu64, &kb) == 1)
			memory->peak = kb * 1024;
		else if (sscanf(line, "VmRSS: %" SCNu64, &kb) == 1)
			memory->now = kb * 1024;
		else if (sscanf(line, "HugetlbPages: %" SCNu64, &kb) == 1)
			memory->hugetlb = kb * 1024;
	}
	fclose(f);
}

int sys_reset_peak(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, "5", 1) != 1)
		ret = -errno;
	close(fd);
	return ret;
}

double sys_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* ---- tables of options ---------------------------------------------------------------------- */

#define COLUMN 25 /* from 0: where the help text of an option begins */
#define WIDTH 79
#define OPTIONS_MAX 64
#define LONG_FIRST 256 /* val of an option without a letter: its index is added */

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

/* The cursor is at column COLUMN. */
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

/* "NAME=VALUE" becomes two arguments of mdoc, so that both words are emphasized. */
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

/* Where COMPREPLY stays empty, bash completes names of files ("-o default"). */
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

static bool is_long_option(const struct option *longs, int val)
{
	for (; longs->name; longs++)
		if (longs->val == val)
			return true;
	return false;
}

/*
 * optopt of getopt is the character of an unknown short option, and 0 for an unknown long one. When
 * an argument is missing or superfluous, optopt is the value of the option (struct option.val).
 */
static void print_wrong_option(char **argv, const struct option *longs, int what)
{
	const char *word = argv[optind > 1 ? optind - 1 : 1];
	const char *eal = cli_has_eal ? " (EAL's options go before a \"--\")" : "";

	if (what == ':')
		cli_error("option '%s' needs a value; see --help", word);
	else if (optopt && (optopt > 255 || is_long_option(longs, optopt)) &&
		 strncmp(word, "--", 2) == 0)
		cli_error("option '%s' takes no value; see --help", word);
	else if (optopt && optopt < 256)
		cli_error("there is no option '-%c'; see --help%s", optopt, eal);
	else
		cli_error("there is no option '%s'; see --help%s", word, eal);
}

static int next_option(int argc, char **argv, const char *shorts, const struct option *longs)
{
	int c;

	opterr = 0;
	c = getopt_long(argc, argv, shorts, longs, NULL);
	if (c != '?' && c != ':')
		return c;
	print_wrong_option(argv, longs, c);
	return '?';
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
	while ((c = next_option(argc, argv, words.shorts, words.longs)) != -1) {
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
