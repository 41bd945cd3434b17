/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/provider.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "weft.h"

/* ------------------------------------------------------------------ what every object needs */

/* fi_prov_ini() (fabric.c) and wfi_version_start() set the other members of the provider. */

struct fi_provider wfi_provider = {
	.version = FI_VERSION(0, 1),
	.name = WFI_NAME,
};

int wfi_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

int wfi_no_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

int wfi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	return -FI_ENOSYS;
}

/* ------------------------------------------------------------------ versions of libfabric */

static_assert(offsetof(struct fi_domain_attr, tclass) % alignof(struct wfi_domain_attr_1_20) == 0,
	      "the members begin where those of 1.20 do");

void wfi_version_start(void)
{
	uint32_t library = fi_version();

	wfi_provider.fi_version = library < WFI_VERSION_NEWEST ? library : WFI_VERSION_NEWEST;
	FI_INFO(&wfi_provider, FI_LOG_CORE,
		"built with libfabric %u.%u, running with %u.%u: serves requests up to %u.%u\n",
		FI_MAJOR_VERSION, FI_MINOR_VERSION, FI_MAJOR(library), FI_MINOR(library),
		FI_MAJOR(wfi_provider.fi_version), FI_MINOR(wfi_provider.fi_version));
	if (library > WFI_VERSION_NEWEST)
		FI_WARN(&wfi_provider, FI_LOG_CORE,
			"libfabric %u.%u is newer than %u.%u, the newest that was tested: requests "
			"for its version get no provider weft\n",
			FI_MAJOR(library), FI_MINOR(library), FI_MAJOR(WFI_VERSION_NEWEST),
			FI_MINOR(WFI_VERSION_NEWEST));
}

const struct wfi_domain_attr_1_20 *wfi_version_domain_attr(const struct fi_domain_attr *attr)
{
	if (fi_version() < FI_VERSION(1, 20))
		return NULL;
	return (const void *)((const char *)attr + offsetof(struct fi_domain_attr, tclass));
}

/* ------------------------------------------------------------------ the job */

/* Variables that launchers set for ranks only: of Open MPI and PRRTE, of Hydra, and of Slurm. */
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

long wfi_job_rank(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
					    slurm_task, NULL};

	return job_number(names);
}

/* Has this process rank 0? True also for a process without a job. */
static bool is_first_rank(void)
{
	return wfi_job_rank() <= 0;
}

/*
 * Does the launcher report that all ranks of the job are on this host? srun does by reporting one
 * node for the step and one for the job.
 */
static bool is_on_one_host(void)
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

/*
 * @return number of tasks on @p host, from 0; 0: unknown. "4(x2),3": 4 tasks on the first host and
 * on the second, 3 on the third.
 */
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

	/* A rank in a container of its own cannot find its launcher: then all CPUs count. */
	if (pid && sched_getaffinity(pid, sizeof(cpus), &cpus) == 0)
		n = CPU_COUNT(&cpus);
	return given > 0 && given < n ? given : n;
}

bool wfi_job_is_oversubscribed(void)
{
	return wfi_job_local_ranks() > cpus_for_ranks();
}

/* ------------------------------------------------------------------ variables */

#define PREFIX "FI_WEFT_"
#define INTERVAL_US 200
#define INTERVAL_MAX_US 1000000
/*
 * 20 calls that find nothing take about 1 us over shared memory: less than switching to another
 * process and back.
 */
#define YIELD_AFTER 20
#define YIELD_MAX 1000000

static const struct {
	const char *name; /* in lower case, and without FI_WEFT_ */
	enum fi_param_type type;
	const char *help;
} variables[] = {
	{"lanes", FI_PARAM_STRING,
	 "Lanes of the process, as WEFT_LANES, which it overrides. Default: WEFT_LANES; else "
	 "FI_WEFT_JOB_LANES; else shm when the launcher reports that the job is on one host, "
	 "otherwise all available lanes"},
	{"job_lanes", FI_PARAM_STRING,
	 "WEFT_LANES of the job, for hosts that do not set WEFT_LANES. weft-mpirun sets it"},
	{"job_eal_args", FI_PARAM_STRING,
	 "WEFT_EAL_ARGS of the job, for hosts that do not set WEFT_EAL_ARGS. weft-mpirun sets it"},
	{"progress", FI_PARAM_STRING,
	 "requested (default): a thread makes progress when the application makes no calls, after "
	 "FI_WEFT_PROGRESS_INTERVAL if it requests FI_PROGRESS_AUTO, otherwise after 20 ms; auto: "
	 "as if it requested that; manual: no thread, and FI_PROGRESS_AUTO is not offered"},
	{"progress_interval", FI_PARAM_INT,
	 "Microseconds without a call of the application after which the thread of "
	 "FI_PROGRESS_AUTO makes progress, 1 to 1000000. Default: 200"},
	{"yield", FI_PARAM_STRING,
	 "Calls in a row that find nothing (fi_cq_read() and fi_cntr_read()) after which the core "
	 "is left to other ranks, 1 to 1000000; never; or auto: 20 if the host has more ranks "
	 "than the launcher has CPUs, otherwise never. Default: auto"},
};

#define NUM_VARIABLES (sizeof(variables) / sizeof(variables[0]))

void wfi_options_define(void)
{
	for (size_t i = 0; i < NUM_VARIABLES; i++)
		fi_param_define(&wfi_provider, variables[i].name, variables[i].type, "%s",
				variables[i].help);
}

/* ------------------------------------------------------------------ reading */

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One write() for each line, because all ranks of a job share the launcher's standard error. */
static void complain(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "weft: %s\n", text);
}

static bool is_known(const char *name, size_t length)
{
	for (size_t i = 0; i < NUM_VARIABLES; i++)
		if (strlen(variables[i].name) == length &&
		    strncasecmp(variables[i].name, name, length) == 0)
			return true;
	return false;
}

static void find_misspelt(void)
{
	static bool done;
	const char *name, *end;

	if (done || !is_first_rank())
		return;
	done = true;
	for (char **v = environ; *v; v++) {
		if (strncmp(*v, PREFIX, strlen(PREFIX)) != 0)
			continue;
		name = *v + strlen(PREFIX);
		end = strchr(name, '=');
		if (end && !is_known(name, (size_t)(end - name)))
			complain("%.*s is no variable of libfabric's provider weft and is ignored "
				 "(fi_info -e lists them)",
				 (int)(end - *v), *v);
	}
}

void wfi_options_other_version(void)
{
	static bool done;
	const struct timespec moment = {.tv_sec = 1};

	if (done)
		return;
	done = true;
	if (is_first_rank())
		complain("a rank's address comes from another version of libweft-fi.so or "
			 "libweft.so.0: all ranks of a job must have the same one");
	else
		nanosleep(&moment, NULL);
}

/* @return NULL: the variable is not set */
static const char *find_progress(enum wfi_progress_choice *choice, bool *good)
{
	static const char *const words[] = {
		[WFI_PROGRESS_REQUESTED] = "requested",
		[WFI_PROGRESS_MANUAL] = "manual",
		[WFI_PROGRESS_AUTO] = "auto",
	};
	char *text = NULL;

	*choice = WFI_PROGRESS_REQUESTED;
	*good = true;
	if (fi_param_get_str(&wfi_provider, "progress", &text) != 0 || !text)
		return NULL;
	for (int i = 0; i < 3; i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*choice = (enum wfi_progress_choice)i;
			return text;
		}
	}
	*good = strcasecmp(text, "asked") == 0; /* the word of 0.1.0 for "requested" */
	return text;
}

enum wfi_progress_choice wfi_options_progress(void)
{
	enum wfi_progress_choice choice;
	bool good;

	find_progress(&choice, &good);
	return choice;
}

static int read_progress(struct wfi_options *o)
{
	const char *text;
	bool good;

	text = find_progress(&o->progress, &good);
	if (good)
		return 0;
	complain("FI_WEFT_PROGRESS=%s is not understood: fi_info -e lists its values", text);
	return -FI_EINVAL;
}

static int read_yield(struct wfi_options *o)
{
	char *text = NULL, *end;
	long n;

	o->yield_after = UINT_MAX;
	if (fi_param_get_str(&wfi_provider, "yield", &text) != 0 || !text ||
	    strcasecmp(text, "auto") == 0) {
		if (wfi_job_is_oversubscribed()) {
			o->yield_after = YIELD_AFTER;
			FI_INFO(&wfi_provider, FI_LOG_CORE,
				"%ld ranks share fewer CPUs: a rank yields after %d calls that "
				"find nothing\n",
				wfi_job_local_ranks(), YIELD_AFTER);
		}
		return 0;
	}
	if (strcasecmp(text, "never") == 0)
		return 0;
	n = strtol(text, &end, 10);
	if (end == text || *end != '\0' || n < 1 || n > YIELD_MAX) {
		complain("FI_WEFT_YIELD=%s is not understood: it is auto, never, or a number of "
			 "calls that find nothing, 1 to %d",
			 text, YIELD_MAX);
		return -FI_EINVAL;
	}
	o->yield_after = (unsigned int)n;
	return 0;
}

int wfi_options_read(struct wfi_options *o)
{
	int interval = INTERVAL_US, rc;
	char *text = NULL;

	find_misspelt();
	*o = (struct wfi_options){0};
	if (fi_param_get_str(&wfi_provider, "lanes", &text) == 0)
		o->lanes = text;
	if (fi_param_get_str(&wfi_provider, "job_lanes", &text) == 0)
		o->job_lanes = text;
	if (fi_param_get_str(&wfi_provider, "job_eal_args", &text) == 0)
		o->job_eal_args = text;
	rc = fi_param_get_int(&wfi_provider, "progress_interval", &interval);
	if ((rc != 0 && rc != -FI_ENODATA) || interval < 1 || interval > INTERVAL_MAX_US) {
		complain("FI_WEFT_PROGRESS_INTERVAL is not understood: it is a number of "
			 "microseconds, 1 to %d",
			 INTERVAL_MAX_US);
		return -FI_EINVAL;
	}
	o->interval_us = (unsigned int)interval;
	rc = read_yield(o);
	return rc < 0 ? rc : read_progress(o);
}

/* ------------------------------------------------------------------ Weft's variables */

/* Set a default of the provider. The user's environment and files have priority. */
static int set_default(struct weft_config *config, const char *name, const char *value)
{
	char origin[16];

	weft_config_origin(config, name, origin, sizeof(origin));
	return strcmp(origin, "default") == 0 ? weft_config_modify(config, name, value) : 0;
}

static int set_lanes(const struct wfi_options *o, struct weft_config *config)
{
	int rc;

	if (o->lanes) {
		rc = weft_config_modify(config, "WEFT_LANES", o->lanes);
		if (rc < 0)
			complain("FI_WEFT_LANES=%s is not understood: it is a list as WEFT_LANES",
				 o->lanes);
		return rc;
	}
	if (!o->job_lanes)
		return is_on_one_host() ? set_default(config, "WEFT_LANES", "shm") : 0;
	rc = set_default(config, "WEFT_LANES", o->job_lanes);
	if (rc < 0)
		complain("WEFT_LANES=%s of the job (FI_WEFT_JOB_LANES) is not understood: set it "
			 "where the job is started",
			 o->job_lanes);
	return rc;
}

int wfi_options_config(const struct wfi_options *o, struct weft_config **out)
{
	struct weft_config *config;
	int rc;

	rc = weft_config_read(&config);
	if (rc < 0)
		return rc;
	rc = set_lanes(o, config);
	if (rc == 0 && o->job_eal_args)
		rc = set_default(config, "WEFT_EAL_ARGS", o->job_eal_args);
	/*
	 * Ranks compute for minutes without a call. Within a host the end of a process is detected
	 * immediately; the launcher detects a host that is gone.
	 */
	if (rc == 0)
		rc = set_default(config, "WEFT_PEER_TIMEOUT", "inf");
	if (rc == 0)
		rc = set_default(config, "WEFT_CONNECT_TIMEOUT", "3600s");
	/*
	 * RDMA devices execute few of the atomics that the provider offers, and the offer must not
	 * depend on WEFT_ATOMIC_MODE.
	 */
	if (rc == 0)
		rc = weft_config_modify(config, "WEFT_ATOMIC_MODE", "cpu");
	if (rc < 0) {
		weft_config_release(config);
		return rc;
	}
	*out = config;
	return 0;
}
