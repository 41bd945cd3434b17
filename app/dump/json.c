/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>

#include "dump/json.h"

static void quoted(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20) {
			fprintf(out, "\\u%04x", (unsigned char)*text);
			continue;
		}
		if (*text == '"' || *text == '\\')
			putc('\\', out);
		putc(*text, out);
	}
	putc('"', out);
}

static void member(struct json *j, const char *name)
{
	if (j->more)
		putc(',', j->out);
	j->more = true;
	if (!name)
		return;
	quoted(j->out, name);
	putc(':', j->out);
}

void json_begin(struct json *j, const char *name, char bracket)
{
	member(j, name);
	putc(bracket, j->out);
	j->more = false;
}

void json_end(struct json *j, char bracket)
{
	putc(bracket, j->out);
	j->more = true;
}

void json_number(struct json *j, const char *name, uint64_t value)
{
	member(j, name);
	fprintf(j->out, "%" PRIu64, value);
}

void json_real(struct json *j, const char *name, double value)
{
	char buf[40];

	snprintf(buf, sizeof(buf), "%.6f", value);
	json_raw(j, name, buf);
}

void json_raw(struct json *j, const char *name, const char *value)
{
	member(j, name);
	fputs(value, j->out);
}

void json_text(struct json *j, const char *name, const char *text)
{
	member(j, name);
	quoted(j->out, text);
}
