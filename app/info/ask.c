/* SPDX-License-Identifier: BSD-3-Clause */

#include "info/ask.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"

#define PATIENCE_S 5
#define TEXT_MAX 512

/* ---- JSON, as DPDK writes it ---------------------------------------------------------------- */

static const char *blanks(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* @return what follows the string, or NULL */
static const char *string(const char *p, char text[TEXT_MAX])
{
	char raw[TEXT_MAX];
	size_t n = 0;

	if (*p++ != '"')
		return NULL;
	for (; *p && *p != '"'; p++) {
		if (*p == '\\' && p[1])
			p++;
		if (n < sizeof(raw))
			raw[n++] = *p;
	}
	weft_text_copy(text, TEXT_MAX, raw, n);
	return *p ? p + 1 : NULL;
}

/* A string or a number. */
static const char *scalar(const char *p, const char *name, ask_value_cb cb, void *arg)
{
	char text[TEXT_MAX];
	size_t n;

	if (*p == '"') {
		p = string(p, text);
		if (p)
			cb(name, text, false, arg);
		return p;
	}
	n = strspn(p, "0123456789.-+eE");
	if (n == 0 || n >= sizeof(text))
		return NULL;
	weft_text_copy(text, sizeof(text), p, n);
	cb(name, text, true, arg);
	return p + n;
}

static bool members(const char *p, char end, ask_value_cb cb, void *arg)
{
	char name[TEXT_MAX] = "";

	for (p = blanks(p); *p != end; p = blanks(p)) {
		if (end == '}') {
			p = string(p, name);
			p = p ? blanks(p) : "";
			if (*p++ != ':')
				return false;
		}
		p = scalar(blanks(p), name, cb, arg);
		if (!p)
			return false;
		p = blanks(p);
		if (*p != ',')
			break;
		p++;
	}
	return *p == end;
}

bool ask_walk(const char *answer, ask_value_cb cb, void *arg)
{
	char command[TEXT_MAX];
	const char *p = blanks(answer);

	if (*p != '{')
		return false;
	p = string(blanks(p + 1), command);
	p = p ? blanks(p) : "";
	if (*p != ':')
		return false;
	p = blanks(p + 1);
	if (*p == '{' || *p == '[')
		return members(p + 1, *p == '{' ? '}' : ']', cb, arg);
	return scalar(p, "", cb, arg) != NULL;
}

/* ---- processes ------------------------------------------------------------------------------ */

static bool receive(int fd, char answer[ASK_ANSWER])
{
	ssize_t n;

	do
		n = recv(fd, answer, ASK_ANSWER - 1, 0);
	while (n < 0 && errno == EINTR);
	answer[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool ask(const struct ask_process *p, const char *command, char answer[ASK_ANSWER])
{
	return send(p->fd, command, strlen(command), MSG_NOSIGNAL) == (ssize_t)strlen(command) &&
	       receive(p->fd, answer);
}

/* What DPDK says first is not wrapped in a command. */
static long pid_of(const char *greeting)
{
	const char *p = strstr(greeting, "\"pid\":");

	return p ? strtol(p + 6, NULL, 10) : 0;
}

static bool join(const char *path, long pid, struct ask_process *p)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	static char answer[ASK_ANSWER];

	if (strlen(path) >= sizeof(address.sun_path))
		return false;
	memcpy(address.sun_path, path, strlen(path) + 1);
	p->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		return false;
	setsockopt(p->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(p->fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	    receive(p->fd, answer)) {
		p->pid = pid_of(answer);
		if ((!pid || pid == p->pid) && ask(p, "/weft/workers", answer) &&
		    !strstr(answer, "null"))
			return true;
	}
	close(p->fd);
	return false;
}

static unsigned int find_in(const char *folder, long pid, struct ask_process *list, unsigned int n)
{
	char pattern[512];
	glob_t found;
	size_t i;

	if (!folder)
		return n;
	snprintf(pattern, sizeof(pattern), "%s/dpdk/*/dpdk_telemetry.v2*", folder);
	if (glob(pattern, 0, NULL, &found))
		return n;
	for (i = 0; i < found.gl_pathc && n < ASK_PROCESSES; i++)
		if (join(found.gl_pathv[i], pid, &list[n]))
			n++;
	globfree(&found);
	return n;
}

unsigned int ask_find(long pid, struct ask_process *list)
{
	const char *user = getenv("XDG_RUNTIME_DIR");
	unsigned int n = find_in("/var/run", pid, list, 0);

	/* Where the EAL of who is not root has them. */
	n = find_in(user, pid, list, n);
	return find_in("/tmp", pid, list, n);
}

void ask_close(struct ask_process *list, unsigned int n)
{
	while (n--)
		close(list[n].fd);
}
