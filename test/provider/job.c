/* SPDX-License-Identifier: BSD-3-Clause */
/* What the launcher reports of a job, in the variables of each launcher. */

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "provider/provider.h"

static const char *const names[] = {
	"OMPI_COMM_WORLD_LOCAL_SIZE",
	"MPI_LOCALNRANKS",
	"SLURM_PROCID",
	"SLURM_NODEID",
	"SLURM_STEP_TASKS_PER_NODE",
	"SLURM_TASKS_PER_NODE",
	"SLURM_CPUS_ON_NODE",
	"OMPI_COMM_WORLD_RANK",
	"PMIX_RANK",
	"PMI_RANK",
};

static int clear(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	return 0;
}

static void set_number(const char *name, long n)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", n);
	setenv(name, text, 1);
}

static long cpus(void)
{
	cpu_set_t mask;

	assert_int_equal(sched_getaffinity(0, sizeof(mask), &mask), 0);
	return CPU_COUNT(&mask);
}

static void a_process_without_a_job_is_not_oversubscribed(void **state)
{
	(void)state;
	assert_int_equal(wfi_job_local_ranks(), 0);
	assert_false(wfi_job_is_oversubscribed());
}

static void each_launcher_reports_the_rank(void **state)
{
	static const char *const of_launchers[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
						   "SLURM_PROCID"};

	assert_int_equal(wfi_job_rank(), -1);
	for (size_t i = 0; i < sizeof(of_launchers) / sizeof(of_launchers[0]); i++) {
		clear(state);
		set_number(of_launchers[i], 15);
		assert_int_equal(wfi_job_rank(), 15);
		set_number(of_launchers[i], 0);
		assert_int_equal(wfi_job_rank(), 0);
	}
	clear(state);
	setenv("PMIX_RANK", "no number", 1);
	assert_int_equal(wfi_job_rank(), -1);
}

static void each_launcher_reports_the_ranks_of_this_host(void **state)
{
	clear(state);
	set_number("OMPI_COMM_WORLD_LOCAL_SIZE", 3);
	assert_int_equal(wfi_job_local_ranks(), 3);
	clear(state);
	set_number("MPI_LOCALNRANKS", 5);
	assert_int_equal(wfi_job_local_ranks(), 5);
}

static void slurm_reports_ranks_as_a_list_of_hosts(void **state)
{
	static const struct {
		const char *tasks, *host;
		long ranks;
	} cases[] = {
		{"7", "0", 7},         {"4(x2),3", "0", 4},    {"4(x2),3", "1", 4},
		{"4(x2),3", "2", 3},   {"4(x2),3", "3", 0},    {"1,2(x3),9", "3", 2},
		{"1,2(x3),9", "4", 9}, {"", "0", 0},           {"x", "0", 0},
		{"4(x", "1", 0},       {"4(x2),", "2", 0},     {"4", "-1", 0},
		{"4", "many", 0},      {"4(x999999)", "9", 4}, {"4,,5", "2", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		clear(NULL);
		setenv("SLURM_PROCID", "0", 1);
		setenv("SLURM_TASKS_PER_NODE", cases[i].tasks, 1);
		setenv("SLURM_NODEID", cases[i].host, 1);
		assert_int_equal(wfi_job_local_ranks(), cases[i].ranks);
	}
	/* A step may have fewer tasks than its allocation. */
	setenv("SLURM_TASKS_PER_NODE", "9", 1);
	setenv("SLURM_STEP_TASKS_PER_NODE", "2", 1);
	setenv("SLURM_NODEID", "0", 1);
	assert_int_equal(wfi_job_local_ranks(), 2);
	/* The variables of an allocation alone are those of a shell in it. */
	unsetenv("SLURM_PROCID");
	assert_int_equal(wfi_job_local_ranks(), 0);
}

static void a_job_is_oversubscribed_with_more_ranks_than_cpus(void **state)
{
	(void)state;
	set_number("OMPI_COMM_WORLD_LOCAL_SIZE", cpus());
	assert_false(wfi_job_is_oversubscribed());
	set_number("OMPI_COMM_WORLD_LOCAL_SIZE", sysconf(_SC_NPROCESSORS_ONLN) + 1);
	assert_true(wfi_job_is_oversubscribed());
	setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "many", 1);
	assert_false(wfi_job_is_oversubscribed());
}

static void slurm_gives_fewer_cpus_than_the_host_has(void **state)
{
	(void)state;
	setenv("SLURM_PROCID", "0", 1);
	setenv("SLURM_NODEID", "0", 1);
	setenv("SLURM_TASKS_PER_NODE", "2", 1);
	setenv("SLURM_CPUS_ON_NODE", "1", 1);
	assert_true(wfi_job_is_oversubscribed());
	setenv("SLURM_CPUS_ON_NODE", "2", 1);
	assert_int_equal(wfi_job_is_oversubscribed(), cpus() < 2);
}

/* A rank's own mask: one CPU. */
static void bind_to_one(void)
{
	cpu_set_t mask, one;
	int cpu = 0;

	sched_getaffinity(0, sizeof(mask), &mask);
	while (!CPU_ISSET(cpu, &mask))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/*
 * A rank as its launcher starts it: with variables that the launcher does not have, bound by it.
 * @return 1: crowded, 0: not
 */
static int in_rank(const char *ranks, const char *script)
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		setenv("OMPI_COMM_WORLD_LOCAL_SIZE", ranks, 1);
		bind_to_one();
		execl("/bin/sh", "sh", "-c", script, NULL);
		_exit(9);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status);
}

static char program[4096];

static void a_bound_rank_is_counted_against_its_launchers_cpus(void **state)
{
	char by_script[sizeof(program) + 32], itself[sizeof(program) + 32];

	(void)state;
	if (cpus() < 2) {
		print_message("one CPU\n");
		skip();
	}
	snprintf(itself, sizeof(itself), "exec '%s' rank", program);
	snprintf(by_script, sizeof(by_script), "'%s' rank; exit $?", program);
	/* Two ranks that have a CPU each; then one more than there are CPUs. */
	assert_int_equal(in_rank("2", itself), 0);
	assert_int_equal(in_rank("2", by_script), 0);
	assert_int_equal(in_rank("100000", itself), 1);
	assert_int_equal(in_rank("100000", by_script), 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_process_without_a_job_is_not_oversubscribed, clear),
		cmocka_unit_test_setup(each_launcher_reports_the_rank, clear),
		cmocka_unit_test_setup(each_launcher_reports_the_ranks_of_this_host, clear),
		cmocka_unit_test_setup(slurm_reports_ranks_as_a_list_of_hosts, clear),
		cmocka_unit_test_setup(a_job_is_oversubscribed_with_more_ranks_than_cpus, clear),
		cmocka_unit_test_setup(slurm_gives_fewer_cpus_than_the_host_has, clear),
		cmocka_unit_test_setup(a_bound_rank_is_counted_against_its_launchers_cpus, clear),
	};
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	(void)argv;
	if (argc > 1)
		return wfi_job_is_oversubscribed();
	return n > 0 ? cmocka_run_group_tests_name("the launcher's job", tests, NULL, NULL) : 1;
}
