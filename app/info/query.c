/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/host.h"
#include "base/text.h"
#include "common/cli.h"
#include "info/query.h"

#define TIMEOUT_MS 5000u
#define FIND_MS 10000u /* query_find() tries no further socket after this time */
#define TEXT_MAX 512

/* ---- JSON, as DPDK writes it ---------------------------------------------------------------- */

static const char *blanks(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* @return the text behind the string; NULL: it has no end */
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

static const char *scalar(const char *p, const char *name, query_value_cb cb, void *arg)
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

static bool members(const char *p, char end, query_value_cb cb, void *arg)
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

/* Parse {"/command": value}. @return the value; NULL: @p answer is malformed */
static const char *value_of(const char *answer, char command[TEXT_MAX])
{
	const char *p = blanks(answer);

	if (*p != '{')
		return NULL;
	p = string(blanks(p + 1), command);
	p = p ? blanks(p) : "";
	return *p == ':' ? blanks(p + 1) : NULL;
}

bool query_walk(const char *answer, query_value_cb cb, void *arg)
{
	char command[TEXT_MAX];
	const char *p = value_of(answer, command);

	if (!p)
		return false;
	if (*p == '{' || *p == '[')
		return members(p + 1, *p == '{' ? '}' : ']', cb, arg);
	return scalar(p, "", cb, arg) != NULL;
}

/* ---- processes ------------------------------------------------------------------------------ */

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void set_timeout(int fd, uint64_t ms)
{
	const struct timeval timeout = {.tv_sec = (time_t)(ms / 1000),
					.tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
}

static bool receive(int fd, char answer[QUERY_ANSWER])
{
	ssize_t n;

	do
		n = recv(fd, answer, QUERY_ANSWER - 1, 0);
	while (n < 0 && errno == EINTR);
	answer[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* An answer repeats its command, without the parameters that follow a comma. */
static bool answers(const char *answer, const char *command)
{
	size_t len = strcspn(command, ",");
	char name[TEXT_MAX];

	return value_of(answer, name) && strlen(name) == len && !memcmp(name, command, len);
}

bool query(struct query_process *p, const char *command, char answer[QUERY_ANSWER])
{
	if (p->fd < 0)
		return false;
	if (send(p->fd, command, strlen(command), MSG_NOSIGNAL) == (ssize_t)strlen(command) &&
	    receive(p->fd, answer) && answers(answer, command))
		return true;
	close(p->fd);
	p->fd = -1;
	return false;
}

/* The answer to an unknown command has the value null. */
static bool has_command(struct query_process *p, const char *command, char answer[QUERY_ANSWER])
{
	char name[TEXT_MAX];

	return query(p, command, answer) && strncmp(value_of(answer, name), "null", 4);
}

static void on_member(const char *name, const char *text, bool is_number, void *arg)
{
	struct query_process *p = arg;

	if (is_number)
		return;
	if (!strcmp(name, "version"))
		snprintf(p->version, sizeof(p->version), "%s", text);
	else if (!strcmp(name, "program"))
		snprintf(p->program, sizeof(p->program), "%s", text);
	else if (!strcmp(name, "job"))
		snprintf(p->job, sizeof(p->job), "%s", text);
}

/* @param switches  accept a weft-switch, too. Older versions of Weft lack /weft/process. */
static bool is_weft(struct query_process *p, bool switches)
{
	static char answer[QUERY_ANSWER];

	p->version[0] = p->program[0] = p->job[0] = '\0';
	p->is_switch = false;
	/* The first message comes unrequested, and names no command. */
	if (!receive(p->fd, answer))
		return false;
	if (has_command(p, "/weft/workers", answer)) {
		if (has_command(p, "/weft/process", answer))
			query_walk(answer, on_member, p);
		return true;
	}
	if (!switches || !has_command(p, "/weft_switch/process", answer))
		return false;
	query_walk(answer, on_member, p);
	p->is_switch = true;
	return true;
}

/* A tried socket: two of the searched folders may be one, as with XDG_RUNTIME_DIR=/tmp. */
struct tried {
	dev_t dev;
	ino_t ino;
};

/* A socket whose listener has a full backlog. */
struct busy {
	SLIST_ENTRY(busy) next;
	char path[];
};

struct search {
	long pid;
	bool switches;
	uint64_t until;
	struct query_process *list;
	unsigned int num, left_out;
	struct tried *tried;
	size_t num_tried;
	SLIST_HEAD(, busy) busy;
};

static bool trusted(uid_t uid, long pid)
{
	return uid == 0 || uid == geteuid() || (pid && geteuid() == 0);
}

/* @return false: the socket was tried before, or there is no memory to record it */
static bool try_once(struct search *s, const struct stat *st)
{
	struct tried *more;

	for (size_t i = 0; i < s->num_tried; i++)
		if (s->tried[i].dev == st->st_dev && s->tried[i].ino == st->st_ino)
			return false;
	more = realloc(s->tried, (s->num_tried + 1) * sizeof(*more));
	if (!more)
		return false;
	s->tried = more;
	more[s->num_tried++] = (struct tried){st->st_dev, st->st_ino};
	return true;
}

/* @return the state in /proc/PID/stat, 'T' or 't' = stopped; '?' = not known */
static char state_of(long pid)
{
	char path[40], text[512] = "";
	const char *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return '?';
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	p = strrchr(text, ')'); /* the name may contain brackets and blanks */
	return p && p[1] == ' ' && p[2] ? p[2] : '?';
}

static bool is_stopped(long pid)
{
	char state = state_of(pid);

	return state == 'T' || state == 't';
}

static bool join(struct search *s, uint64_t ms, struct query_process *p)
{
	int fd = p->fd;
	socklen_t len = sizeof(struct ucred);
	struct ucred peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || !trusted(peer.uid, s->pid) ||
	    (s->pid && s->pid != peer.pid))
		return false;
	if (is_stopped(peer.pid)) {
		if (!s->pid)
			cli_error("process %d is stopped (by a signal, or a debugger)", peer.pid);
		return false;
	}
	set_timeout(fd, ms);
	p->pid = peer.pid;
	errno = 0;
	if (is_weft(p, s->switches)) {
		set_timeout(fd, TIMEOUT_MS);
		return true;
	}
	if (errno == EAGAIN)
		cli_error("process %ld did not respond for %.1f s", p->pid, (double)ms / 1e3);
	return false;
}

static void try_later(const char *path, struct search *s)
{
	size_t len = strlen(path) + 1;
	struct busy *busy = malloc(sizeof(*busy) + len);

	if (!busy)
		return;
	memcpy(busy->path, path, len);
	SLIST_INSERT_HEAD(&s->busy, busy, next);
}

/* @param wait  wait for a place in the listener's backlog; otherwise try_later() */
static void try_path(const char *path, struct search *s, bool wait)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	uint64_t now = now_ms(), ms;
	struct query_process *p = &s->list[s->num];

	if (s->num == QUERY_PROCESSES)
		return;
	if (now >= s->until) {
		s->left_out++;
		return;
	}
	ms = s->until - now < TIMEOUT_MS ? s->until - now : TIMEOUT_MS;
	memcpy(address.sun_path, path, strlen(path) + 1);
	p->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (wait ? 0 : SOCK_NONBLOCK), 0);
	if (p->fd < 0)
		return;
	set_timeout(p->fd, ms);
	if (connect(p->fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		s->num += fcntl(p->fd, F_SETFL, 0) == 0 && join(s, ms, p);
	else if (errno == EAGAIN && wait)
		cli_error("the process of %s did not respond for %.1f s", path, (double)ms / 1e3);
	else if (errno == EAGAIN)
		try_later(path, s);
	if (p == &s->list[s->num])
		query_close(p, 1);
}

static void find_at(const char *pattern, struct search *s)
{
	glob_t found;
	struct stat st;

	if (glob(pattern, 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		if (strlen(found.gl_pathv[i]) < sizeof(((struct sockaddr_un *)0)->sun_path) &&
		    stat(found.gl_pathv[i], &st) == 0 && trusted(st.st_uid, s->pid) &&
		    try_once(s, &st))
			try_path(found.gl_pathv[i], s, false);
	globfree(&found);
}

/* Sockets with a full backlog come last: their process may be stopped, and delay the search. */
static void find_busy(struct search *s)
{
	struct busy *busy;

	while ((busy = SLIST_FIRST(&s->busy))) {
		SLIST_REMOVE_HEAD(&s->busy, next);
		if (!s->pid || !s->num)
			try_path(busy->path, s, true);
		free(busy);
	}
}

static void find_in(const char *folder, struct search *s)
{
	char pattern[512];

	if (!folder)
		return;
	snprintf(pattern, sizeof(pattern), "%s/dpdk/*/dpdk_telemetry.v2*", folder);
	find_at(pattern, s);
}

/* Processes without raw lanes have their sockets in the folders of weft_user_folder_find(). */
static void find_without_raw_lanes(struct search *s)
{
	char own[WEFT_USER_FOLDER], why[256];

	if (weft_user_folder_find(own, why, sizeof(why)) == 0)
		weft_sockets_sweep(own, WEFT_ANSWERS_PREFIX, 0);
	find_at("/tmp/weft-*/" WEFT_ANSWERS_PREFIX "*", s);
	find_at("/run/user/*/weft/" WEFT_ANSWERS_PREFIX "*", s);
	find_at("/run/weft-0/" WEFT_ANSWERS_PREFIX "*", s);
}

unsigned int query_find(long pid, bool switches, struct query_process *list)
{
	struct search s = {
		.pid = pid, .switches = switches, .until = now_ms() + FIND_MS, .list = list};

	find_in("/var/run", &s);
	/* The folder of the EAL for users other than root. */
	find_in(secure_getenv("XDG_RUNTIME_DIR"), &s);
	find_in("/tmp", &s);
	/* Weft gives this folder to the EAL if /tmp/dpdk is another user's. */
	find_in("/tmp/weft-*", &s);
	find_without_raw_lanes(&s);
	find_busy(&s);
	if (pid && !s.num && is_stopped(pid))
		cli_error("process %ld is stopped (by a signal, or a debugger)", pid);
	if (s.left_out)
		cli_error("%u telemetry sockets were not tried: others did not respond for %u s; "
			  "choose a process with --pid",
			  s.left_out, FIND_MS / 1000);
	free(s.tried);
	return s.num;
}

bool query_first(const struct query_process *list, unsigned int i)
{
	unsigned int k;

	for (k = 0; k < i && list[k].pid != list[i].pid; k++)
		;
	return k == i;
}

void query_close(struct query_process *list, unsigned int n)
{
	while (n--)
		if (list[n].fd >= 0)
			close(list[n].fd);
}

/* ---- counters of all workers ---------------------------------------------------------------- */

static char answer[QUERY_ANSWER];

static void on_lane(const char *name, const char *text, bool is_number, void *arg)
{
	struct lanes *l = arg;

	(void)name;
	if (!is_number && l->num < LANES_MAX)
		snprintf(l->text[l->num++], sizeof(l->text[0]), "%s", text);
}

bool lanes_take(struct query_process *p, struct lanes *lanes)
{
	lanes->num = 0;
	return query(p, "/weft/workers", answer) && query_walk(answer, on_lane, lanes);
}

bool lanes_first(const struct lanes *lanes, unsigned int i)
{
	unsigned int k;

	for (k = 0; k < i && strncmp(lanes->text[k], lanes->text[i], 16); k++)
		;
	return k == i;
}

struct place {
	struct samples *to;
	struct sample like;
	size_t skip; /* bytes of each counter's name that name the lane */
};

static void on_counter(const char *name, const char *text, bool is_number, void *arg)
{
	struct place *p = arg;
	struct sample *s;

	if (!is_number || p->to->num == SAMPLES_MAX || strlen(name) <= p->skip)
		return;
	s = &p->to->of[p->to->num++];
	*s = p->like;
	snprintf(s->name, sizeof(s->name), "%s", name + p->skip);
	s->value = strtod(text, NULL);
}

static void take_lane(struct query_process *p, const char *text, bool first, struct samples *to)
{
	static const char *const others[] = {"ep.",       "wireup.", "tag.",    "am.",
					     "rma.",      "rndv.",   "msg.",    "regcache.",
					     "progress.", "stall.",  "latency."};
	struct place place = {.to = to, .like = {.pid = p->pid}};
	char command[160], device[64];

	if (sscanf(text, "%19s %63s %63s", place.like.worker, place.like.lane, device) < 2)
		return;
	snprintf(command, sizeof(command), "/weft/counters,%s,%s.,all", place.like.worker,
		 place.like.lane);
	place.skip = strlen(place.like.lane) + 1;
	if (query(p, command, answer))
		query_walk(answer, on_counter, &place);
	if (!first)
		return;
	/* One query for each prefix, since an answer of DPDK has 250 counters at most. */
	place.skip = 0;
	place.like.lane[0] = '\0';
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(command, sizeof(command), "/weft/counters,%s,%s,all", place.like.worker,
			 others[i]);
		if (query(p, command, answer))
			query_walk(answer, on_counter, &place);
	}
}

void samples_take(struct query_process *list, unsigned int n, struct samples *to)
{
	static struct lanes lanes;
	unsigned int i, j;

	to->num = 0;
	for (i = 0; i < n; i++) {
		if (list[i].is_switch || !lanes_take(&list[i], &lanes))
			continue;
		for (j = 0; j < lanes.num; j++)
			take_lane(&list[i], lanes.text[j], lanes_first(&lanes, j), to);
	}
}

double samples_value(const struct samples *s, const struct sample *like, const char *name)
{
	for (unsigned int i = 0; i < s->num; i++)
		if (s->of[i].pid == like->pid && !strcmp(s->of[i].worker, like->worker) &&
		    !strcmp(s->of[i].lane, like->lane) && !strcmp(s->of[i].name, name))
			return s->of[i].value;
	return 0;
}
