/* SPDX-License-Identifier: BSD-3-Clause */

#include "unit/shm/shm_end.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/host.h"

static const struct weft_lane_conf conf = {.connect_timeout_ns = 5000000000u};

double end_seconds(void)
{
	return (double)weft_platform_host.now(NULL) * 1e-9;
}

/* Byte @p i of message @p n; the first eight are the number. */
static uint8_t pattern(uint64_t n, size_t i)
{
	return (uint8_t)(n * 31 + i * 7 + (i >> 8));
}

static int on_message(void *arg, struct weft_lane_ep *lane_ep, uint8_t am_id, const void *data,
		      size_t length, void *desc)
{
	const uint8_t *p = data;
	struct end *e = arg;
	uint64_t n = 0;
	size_t i;

	e->received++;
	if (am_id != END_AM || length < sizeof(n)) {
		e->wrong++;
		return 0;
	}
	memcpy(&n, p, sizeof(n));
	e->wrong += n != e->next;
	e->next = n + 1;
	for (i = sizeof(n); i < length; i++)
		if (p[i] != pattern(n, i))
			break;
	e->wrong += i != length;
	if (e->destroy_in)
		lane_ep->ops->ep_destroy(lane_ep);
	if (!e->keep || !desc || e->num_kept == SHM_BUFS)
		return 0;
	e->kept[e->num_kept++] = desc;
	return WEFT_LANE_KEEP;
}

static void on_event(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev, int status,
		     const char *text)
{
	struct end *e = arg;

	snprintf(e->text, sizeof(e->text), "%s", text);
	e->status = status;
	if (ev == WEFT_LANE_EV_UP) {
		e->ups++;
		e->lane_ep = lane_ep;
		return;
	}
	e->downs += ev == WEFT_LANE_EV_DOWN;
	e->gones += ev == WEFT_LANE_EV_GONE;
	if (e->lane_ep == lane_ep)
		e->lane_ep = NULL;
	lane_ep->ops->ep_destroy(lane_ep);
}

void end_open(struct end *e, uint64_t iface_id)
{
	char why[256] = "";
	struct weft_lane_open params = {
		.resource = "host",
		.options = "",
		.iface_id = iface_id,
		.platform = &weft_platform_host,
		.conf = &conf,
		.recv = on_message,
		.event = on_event,
		.arg = e,
	};

	memset(e, 0, sizeof(*e));
	if (weft_shm_driver.open(&params, &e->iface, why, sizeof(why)) < 0)
		fail_msg("%s", why);
}

void end_close(struct end *e)
{
	if (e->iface)
		e->iface->ops->close(e->iface);
	e->iface = NULL;
}

static void progress(struct end *e)
{
	if (e)
		e->iface->ops->progress(e->iface, weft_platform_host.now(NULL));
}

void end_run(struct end *a, struct end *b, const unsigned int *count, unsigned int want,
	     double seconds)
{
	double until = end_seconds() + seconds;
	unsigned int before, start = *count, idle = 0;

	while ((before = *count) < want) {
		progress(a);
		progress(b);
		if (*count != before) {
			until = end_seconds() + seconds;
			continue;
		}
		/* The other process may share this core. Each yield may cost time slices. */
		if (++idle % 64 == 0)
			sched_yield();
		if (end_seconds() > until)
			fail_msg("%u instead of %u, none for %g s", *count - start, want - start,
				 seconds);
	}
}

void end_connect(struct end *a, struct end *b)
{
	uint8_t addr[SHM_ADDR_LEN];
	char why[256];
	unsigned int ups = a->ups + 1;
	struct weft_lane_ep *lane_ep;

	b->iface->ops->get_address(b->iface, addr);
	assert_int_equal(
		a->iface->ops->is_reachable(a->iface, addr, sizeof(addr), why, sizeof(why)), 0);
	assert_int_equal(a->iface->ops->ep_connect(a->iface, addr, sizeof(addr), a, &lane_ep), 0);
	assert_int_equal(end_send(lane_ep, 0, 8), -EAGAIN);
	end_run(a, b, &a->ups, ups, 10);
}

struct packing {
	uint64_t n;
	size_t length;
};

static ssize_t pack(void *dst, size_t max, void *arg)
{
	const struct packing *p = arg;
	uint8_t *to = dst;

	if (p->length > max)
		return -EMSGSIZE;
	memcpy(to, &p->n, sizeof(p->n));
	for (size_t i = sizeof(p->n); i < p->length; i++)
		to[i] = pattern(p->n, i);
	return (ssize_t)p->length;
}

int end_send(struct weft_lane_ep *lane_ep, uint64_t n, size_t length)
{
	struct packing p = {.n = n, .length = length};
	uint8_t whole[SHM_SHORT_MAX];
	ssize_t done;

	if (length <= SHM_SHORT_MAX) {
		pack(whole, sizeof(whole), &p);
		return lane_ep->ops->am_short(lane_ep, END_AM, whole, 8, whole + 8, length - 8);
	}
	done = lane_ep->ops->am_bcopy(lane_ep, END_AM, pack, &p);
	return done < 0 ? (int)done : 0;
}

struct look {
	const char *name;
	uint64_t value;
	bool found;
};

static void one_counter(const char *name, uint64_t value, void *arg)
{
	struct look *look = arg;

	if (strcmp(name, look->name) != 0)
		return;
	look->value = value;
	look->found = true;
}

uint64_t end_counter(struct end *e, const char *name)
{
	struct look look = {.name = name};

	e->iface->ops->counters(e->iface, one_counter, &look);
	assert_true(look.found);
	return look.value;
}

/* @return whether thread @p tid of this process runs or is about to */
static bool thread_runs(const char *tid)
{
	char path[64], line[512], *state = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", tid);
	f = fopen(path, "r");
	if (!f)
		return false; /* it has ended */
	if (fgets(line, sizeof(line), f))
		state = strrchr(line, ')');
	fclose(f);
	return !state || state[2] != 'S';
}

static bool other_threads_sleep(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	bool sleep = true;

	assert_non_null(dir);
	while (sleep && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != getpid())
			sleep = !thread_runs(entry->d_name);
	closedir(dir);
	return sleep;
}

pid_t end_fork(void)
{
	double until = end_seconds() + 10;
	pid_t pid;

	while (!other_threads_sleep() && end_seconds() < until)
		sched_yield();
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves no process */
		signal(SIGSEGV, SIG_DFL);         /* cmocka's would continue with the tests */
	}
	return pid;
}
