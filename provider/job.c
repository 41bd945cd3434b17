/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/job.h"

#include <ctype.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Variables of Open MPI and PRRTE, Hydra, Slurm; ranks have them and launchers do not. */
static const char *const local_names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", NULL};
static const char slurm_task[] = "SLURM_PROCID";

static long number_of(const char *text)
{
	char *end;
	long n;

	if (!text || !isdigit((unsigned char)text[0]))
		return -1;
	n = strtol(text, &end, 10);
	return *end == '\0' ? n : -1;
}

/* @return the number in the first of these variables that has one; -1: none */
static long job_number(const char *const *names)
{
	long n = -1;

	for (; *names && n < 0; names++)
		n = number_of(getenv(*names));
	return n;
}

bool wfi_job_is_first_rank(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
					    slurm_task, NULL};

	return job_number(names) <= 0;
}

bool wfi_job_on_one_host(void)
{
	static const char *const ranks[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
	long n = job_number(ranks);

	/* A single process may spawn others, or connect to them, on any host. */
	if (n > 0 && job_number(local_names) > 0)
		return n > 1 && job_number(local_names) == n;
	return number_of(getenv(slurm_task)) >= 0 &&
	       number_of(getenv("SLURM_STEP_NUM_NODES")) == 1 &&
	       number_of(getenv("SLURM_NNODES")) == 1;
}

/* "4(x2),3": 4 tasks on the first host and on the second, 3 on the third. */
static long slurm_ranks(const char *text, long host)
{
	long tasks, hosts;
	char *end;

	while (text && host >= 0 && isdigit((unsigned char)text[0])) {
		tasks = strtol(text, &end, 10);
		hosts = strncmp(end, "(x", 2) == 0 ? strtol(end + 2, &end, 10) : 1;
		if (host < hosts)
			return tasks;
		host -= hosts;
		text = strchr(end, ',');
		text = text ? text + 1 : NULL;
	}
	return 0;
}

long wfi_job_local_ranks(void)
{
	const char *tasks = getenv("SLURM_STEP_TASKS_PER_NODE");
	long n = job_number(local_names);

	if (n >= 0)
		return n;
	if (number_of(getenv(slurm_task)) < 0)
		return 0;
	return slurm_ranks(tasks ? tasks : getenv("SLURM_TASKS_PER_NODE"),
			   number_of(getenv("SLURM_NODEID")));
}

/* ------------------------------------------------------------------ the launcher */

static pid_t parent_of(pid_t pid)
{
	char path[64], text[256], *p;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	/* "1 (name) S 0": a name may contain any characters, and has at most 15 bytes. */
	p = strrchr(text, ')');
	return p && strlen(p) > 4 ? (pid_t)strtol(p + 4, NULL, 10) : 0;
}

/* Has the environment of a process this variable? False also for a process of another user. */
static bool has_variable(pid_t pid, const char *name)
{
	size_t room = 0, len = strlen(name);
	char path[64], *entry = NULL;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!found && getdelim(&entry, &room, '\0', f) > 0)
		found = strncmp(entry, name, len) == 0 && entry[len] == '=';
	free(entry);
	fclose(f);
	return found;
}

/*
 * The first ancestor that is neither a rank nor a script that the launcher runs for one; 0:
 * unknown.
 */
static pid_t launcher(void)
{
	const char *name = slurm_task;
	pid_t pid = getppid();

	for (int i = 0; local_names[i]; i++)
		if (number_of(getenv(local_names[i])) >= 0) {
			name = local_names[i];
			break;
		}
	while (pid > 1 && has_variable(pid, name))
		pid = parent_of(pid);
	return pid > 1 ? pid : 0;
}

static long cpus_for_ranks(void)
{
	const long given = number_of(getenv("SLURM_CPUS_ON_NODE"));
	const pid_t pid = launcher();
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t cpus;

	/* In a container of its own a rank cannot find its launcher. */
	if (pid && sched_getaffinity(pid, sizeof(cpus), &cpus) == 0)
		n = CPU_COUNT(&cpus);
	return given > 0 && given < n ? given : n;
}

bool wfi_job_is_oversubscribed(void)
{
	return wfi_job_local_ranks() > cpus_for_ranks();
}
