/* SPDX-License-Identifier: BSD-3-Clause */

#include "common/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cli.h"

static volatile sig_atomic_t caught;

static void on_signal(int sig)
{
	/* A second Ctrl-C ends the process at once. */
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
