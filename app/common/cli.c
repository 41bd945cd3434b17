/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cli.h"
#include "lib/base/text.h"

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

/* ---- options */

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

int cli_getopt(int argc, char **argv, const char *shorts, const struct option *longs)
{
	int c;

	opterr = 0;
	c = getopt_long(argc, argv, shorts, longs, NULL);
	if (c != '?' && c != ':')
		return c;
	print_wrong_option(argv, longs, c);
	return '?';
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

/* Digits, then at most one unit letter; nothing else, not even a sign. */
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

int cli_port(const char *text, uint16_t *port)
{
	uint64_t value;

	if (cli_count("-p", text, 1, 65535, &value))
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
	/* A second signal ends the process at once. */
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
