/* SPDX-License-Identifier: BSD-3-Clause */

#include "wire/wire.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"

#define LINE 1024

const char wire_command_help[] = "  [PAIR] [forth|back] LINK   change links, e.g.  1 back loss=5%\n"
				 "  show                       all links\n"
				 "  counters                   the counters so far\n"
				 "  quit                       the end\n";

/* ---- one command ---------------------------------------------------------------------------- */

/* Does the line begin with the word? Then skip it. */
static bool takes(const char **line, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*line, word, n) != 0 || ((*line)[n] && !isspace((unsigned char)(*line)[n])))
		return false;
	*line += n;
	*line += strspn(*line, " \t");
	return true;
}

/* @return 0; -EINVAL after an error message. @first, @last: the selected pairs */
static int which_pairs(const struct wire *w, const char **line, unsigned int *first,
		       unsigned int *last, char *answer, size_t len)
{
	unsigned long n;
	char *end;

	*first = 0;
	*last = w->num_pairs - 1;
	if (!isdigit((unsigned char)**line))
		return 0;
	n = strtoul(*line, &end, 10);
	if ((*end && !isspace((unsigned char)*end)) || n >= w->num_pairs) {
		snprintf(answer, len, "there is no pair '%.*s'; the last one is %u",
			 (int)strcspn(*line, " \t"), *line, w->num_pairs - 1);
		return -EINVAL;
	}
	*first = *last = (unsigned int)n;
	*line = end + strspn(end, " \t");
	return 0;
}

static int change(struct wire *w, const char *line, char *answer, size_t len)
{
	unsigned int first, last, i, dir, from = WIRE_FORTH, to = WIRE_BACK;
	struct sim_link changed[WIRE_PAIRS][2];
	int ret = which_pairs(w, &line, &first, &last, answer, len);

	if (ret)
		return ret;
	if (takes(&line, "forth"))
		to = WIRE_FORTH;
	else if (takes(&line, "back"))
		from = WIRE_BACK;
	if (!*line) {
		snprintf(answer, len, "the change is missing, e.g. loss=5%%");
		return -EINVAL;
	}
	/* Change all of them or none. */
	for (i = first; i <= last; i++) {
		for (dir = from; dir <= to; dir++) {
			changed[i][dir] = w->pair[i].dir[dir].link;
			ret = sim_link_parse(line, &changed[i][dir], answer, len);
			if (ret)
				return ret;
		}
	}
	for (i = first; i <= last; i++)
		for (dir = from; dir <= to; dir++)
			w->pair[i].dir[dir].link = changed[i][dir];
	wire_report_links(w, answer, len);
	return 0;
}

int wire_command(struct wire *w, const char *line, char *answer, size_t len)
{
	line += strspn(line, " \t");
	answer[0] = '\0';
	if (!*line || *line == '#')
		return 0;
	if (takes(&line, "show"))
		wire_report_links(w, answer, len);
	else if (takes(&line, "counters"))
		wire_report_counters(w, answer, len);
	else if (takes(&line, "help"))
		snprintf(answer, len, "%s%s", wire_command_help, sim_link_help);
	else if (takes(&line, "quit"))
		w->ended = true;
	else
		return change(w, line, answer, len);
	if (!*line)
		return 0;
	snprintf(answer, len, "nothing was expected before '%s'", line);
	return -EINVAL;
}

/* ---- standard input ------------------------------------------------------------------------- */

static void do_line(struct wire *w, const char *line)
{
	static char answer[16384];
	int ret;

	rte_ticketlock_lock(&w->lock);
	ret = wire_command(w, line, answer, sizeof(answer));
	rte_ticketlock_unlock(&w->lock);
	if (ret) {
		cli_error("%s", answer);
		return;
	}
	fputs(answer, stdout);
	fflush(stdout);
}

/* @return bytes after the last complete line */
static size_t do_lines(struct wire *w, char *buf, size_t len)
{
	char *line = buf, *end;

	while ((end = memchr(line, '\n', len - (size_t)(line - buf)))) {
		*end = '\0';
		do_line(w, line);
		line = end + 1;
	}
	len -= (size_t)(line - buf);
	memmove(buf, line, len);
	return len;
}

void wire_input(struct wire *w)
{
	static char buf[LINE];
	static size_t len;
	static bool over;
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	ssize_t n;

	if (over || poll(&p, 1, 0) <= 0)
		return;
	n = read(STDIN_FILENO, buf + len, sizeof(buf) - 1 - len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		/* At the end of input the bridge continues; the last line may lack a newline. */
		over = true;
		buf[len] = '\0';
		do_line(w, buf);
		return;
	}
	len = do_lines(w, buf, len + (size_t)n);
	if (len == sizeof(buf) - 1) {
		cli_error("a command is longer than %zu characters", sizeof(buf) - 1);
		len = 0;
	}
}
