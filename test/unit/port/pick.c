/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WEFT_PORTS: processes with the same patterns take a device each, near ones first, and a process
 * that comes too late gets their number. Devices are files of a made-up /sys; claims are real.
 */

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "drivers/dpdk/port/pick.h"

#define TAKERS 8

static char sys[64], domain[8];
static pid_t takers[TAKERS];
static int num_takers;

/* ---- a made-up machine ---------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void file(const char *text, const char *fmt, ...)
{
	char path[256], *slash;
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	for (slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* A network device of this driver, near to these processors. */
static void nic(const char *slot, const char *driver, const char *cores)
{
	char path[256], link[320], target[64];

	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s:%s", sys, domain, slot);
	file("0x020000\n", "%s/class", path);
	file(cores, "%s/local_cpulist", path);
	snprintf(link, sizeof(link), "%s/driver", path);
	snprintf(target, sizeof(target), "../../drivers/%s", driver);
	assert_int_equal(symlink(target, link), 0);
}

/* No other run of this test has these devices. */
static int setup(void **state)
{
	(void)state;
	snprintf(sys, sizeof(sys), "/tmp/weft-pick.XXXXXX");
	snprintf(domain, sizeof(domain), "%04x", (unsigned int)getpid() & 0xffff);
	return mkdtemp(sys) ? 0 : -1;
}

static void end_takers(void)
{
	while (num_takers) {
		kill(takers[--num_takers], SIGKILL);
		waitpid(takers[num_takers], NULL, 0);
	}
}

static int tidy(void **state)
{
	char command[96];

	(void)state;
	end_takers();
	snprintf(command, sizeof(command), "rm -r %s", sys);
	return system(command);
}

/* ---- a process that takes ------------------------------------------------------------------- */

static char output[1024];

static void pick_and_print(const struct weft_pick *p, int count, char *const *words, int fd)
{
	char note[256], why[700], text[sizeof(output)] = "", **out;
	size_t used = 0;
	int i, n;

	n = weft_pick(p, count, words, &out, note, sizeof(note), why, sizeof(why));
	if (n < 0)
		used = (size_t)snprintf(text, sizeof(text), "%d %s", n, why);
	for (i = 0; i < n; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "",
					 out[i]);
	if (write(fd, text, used + 1) < 0)
		_exit(1);
}

static uid_t taker; /* of the process that takes; 0 = ours */

/* It has what it took until the test's end. @return the EAL's words, or the error and why */
static const char *take(const char *ports, long rank, long size, int count,
			const char *const *words)
{
	const struct weft_pick p = {.ports = ports, .sys = sys, .local = {rank, size}};
	int fds[2];
	ssize_t n;
	pid_t pid;

	assert_in_range(num_takers, 0, TAKERS - 1);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		if (taker && setuid(taker))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pick_and_print(&p, count, (char *const *)(uintptr_t)words, fds[1]);
		pause();
		_exit(1);
	}
	takers[num_takers++] = pid;
	close(fds[1]);
	n = read(fds[0], output, sizeof(output) - 1);
	close(fds[0]);
	assert_true(n > 0);
	output[n] = '\0';
	return output;
}

/* "-a DOMAIN:SLOT" */
static void expect_nic(const char *got, const char *slot)
{
	char want[64];

	snprintf(want, sizeof(want), "-a %s:%s", domain, slot);
	assert_string_equal(got, want);
}

static char *pattern(const char *slots)
{
	static char text[64];

	snprintf(text, sizeof(text), "%s:%s", domain, slots);
	return text;
}

static void expect_words(const char *got, int error, const char *one, const char *two)
{
	assert_int_equal(atoi(got), error);
	if (!strstr(got, one) || !strstr(got, two))
		fail_msg("%s", got);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void processes_take_one_each_until_none_is_left(void **state)
{
	char holder[64];

	(void)state;
	nic("3b:02.0", "vfio-pci", "\n");
	nic("3b:02.1", "vfio-pci", "\n");
	nic("3b:03.0", "vfio-pci", "\n"); /* does not match */
	expect_nic(take(pattern("3b:02.*"), -1, -1, 0, NULL), "3b:02.0");
	expect_nic(take(pattern("3b:02.*"), -1, -1, 0, NULL), "3b:02.1");
	snprintf(holder, sizeof(holder), "process %d", (int)takers[0]);
	expect_words(take(pattern("3b:02.*"), -1, 12, 0, NULL), -EBUSY,
		     "this host has 12 processes of the job, and 2 ports; all 2", holder);
	/* A process that ends leaves it to the next one. */
	kill(takers[1], SIGKILL);
	waitpid(takers[1], NULL, 0);
	takers[1] = takers[--num_takers];
	expect_nic(take(pattern("3b:02.*"), -1, -1, 0, NULL), "3b:02.1");
}

/* A user's claims keep nothing from root: not a device, nor a start where the others are busy. */
static void claims_of_users_stop_no_process_of_roots(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("left out: only root has claims of other users\n");
		skip();
	}
	nic("3b:02.0", "vfio-pci", "\n");
	nic("3b:02.1", "vfio-pci", "\n");
	assert_int_equal(chmod(sys, 0755), 0);
	taker = 65534;
	expect_nic(take(pattern("3b:02.0"), -1, -1, 0, NULL), "3b:02.0");
	taker = 0;
	expect_nic(take(pattern("3b:02.*"), -1, -1, 0, NULL), "3b:02.1");
	expect_nic(take(pattern("3b:02.*"), -1, -1, 0, NULL), "3b:02.0");
}

static void ranks_begin_at_different_ones(void **state)
{
	(void)state;
	nic("3b:02.0", "vfio-pci", "\n");
	nic("3b:02.1", "vfio-pci", "\n");
	nic("3b:02.2", "uio_pci_generic", "\n");
	expect_nic(take(pattern("3b:02.*"), 2, 3, 0, NULL), "3b:02.2");
	expect_nic(take(pattern("3b:02.*"), 1, 3, 0, NULL), "3b:02.1");
	/* Taken: the next one round the ring. */
	expect_nic(take(pattern("3b:02.*"), 4, 9, 0, NULL), "3b:02.0");
}

/* Some processor that this process may run on, and one that it may not. */
static void near_ones_come_first(void **state)
{
	char mine[16], others[16];
	int core, here = -1, there = -1;
	cpu_set_t set;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (core = 0; core < CPU_SETSIZE; core++) {
		if (CPU_ISSET(core, &set))
			here = core;
		else
			there = core;
	}
	snprintf(mine, sizeof(mine), "%d,%d-%d\n", there, here, here);
	snprintf(others, sizeof(others), "%d\n", there);
	nic("3b:02.0", "vfio-pci", others);
	nic("3b:02.1", "vfio-pci", mine);
	nic("3b:02.2", "vfio-pci", mine);
	expect_nic(take(pattern("3b:02.*"), 1, 3, 0, NULL), "3b:02.2");
	expect_nic(take(pattern("3b:02.*"), 0, 3, 0, NULL), "3b:02.1");
	expect_nic(take(pattern("3b:02.*"), 2, 3, 0, NULL), "3b:02.0");
}

/* What the EAL was given is all there is; it keeps its arguments, and others stay. */
static void words_of_the_eal_are_candidates(void **state)
{
	static const char *const words[] = {"--no-pci",
					    "--vdev=net_null0,size=64",
					    "--vdev",
					    "net_null1,size=64",
					    "--vdev=net_ring0",
					    "-l",
					    "0"};

	(void)state;
	assert_string_equal(take("net_null*", -1, -1, 7, words),
			    "--no-pci --vdev=net_null0,size=64 --vdev=net_ring0 -l 0");
	assert_string_equal(take("net_null*", -1, -1, 7, words),
			    "--no-pci --vdev net_null1,size=64 --vdev=net_ring0 -l 0");
	expect_words(take("net_null*", 2, 3, 7, words), -EBUSY, "3 processes", "2 ports");
}

/* The EAL would probe all PCI devices, and with uio reset those that others have. */
static void a_process_with_a_vdev_probes_no_pci_device(void **state)
{
	static const char *const words[] = {"--vdev=net_null0"};
	char want[64];

	(void)state;
	nic("3b:02.0", "vfio-pci", "\n");
	snprintf(want, sizeof(want), "-a %s:3b:02.0", domain);
	assert_string_equal(take("*", -1, -1, 1, words), "--vdev=net_null0 --no-pci");
	assert_string_equal(take("*", -1, -1, 1, words), want);
}

static void named_devices_keep_their_arguments(void **state)
{
	char first[64], second[64], want[80];
	const char *const words[] = {first, "-a", second};

	(void)state;
	nic("3b:02.5", "vfio-pci", "\n"); /* not among those that were named */
	snprintf(first, sizeof(first), "-a%s:3b:02.0,mprq_en=1", domain);
	snprintf(second, sizeof(second), "%s:3b:02.1,mprq_en=1", domain);
	assert_string_equal(take(pattern("3b:*"), 0, 2, 3, words), first);
	snprintf(want, sizeof(want), "-a %s", second);
	assert_string_equal(take(pattern("3b:*"), 1, 2, 3, words), want);
	assert_int_equal(atoi(take(pattern("3b:*"), 2, 2, 3, words)), -EBUSY);
}

static void of_each_pattern_one(void **state)
{
	char ports[64], want[96];

	(void)state;
	nic("3b:02.0", "vfio-pci", "\n");
	nic("3b:02.1", "vfio-pci", "\n");
	nic("5e:02.0", "vfio-pci", "\n");
	snprintf(ports, sizeof(ports), "%s:3b:*;%s:5e:*", domain, domain);
	snprintf(want, sizeof(want), "-a %s:3b:02.0 -a %s:5e:02.0", domain, domain);
	assert_string_equal(take(ports, -1, -1, 0, NULL), want);
	/* Half of it is nothing: the first one is given back. */
	expect_words(take(ports, -1, -1, 0, NULL), -EBUSY, "all 1 that", "5e:*");
	expect_nic(take(pattern("3b:*"), -1, -1, 0, NULL), "3b:02.1");
}

static void what_dpdk_cannot_have_is_no_candidate(void **state)
{
	static const char *const no_pci[] = {"--no-pci"};

	(void)state;
	nic("3b:02.0", "ixgbevf", "\n");
	expect_words(take(pattern("3b:*"), -1, -1, 0, NULL), -ENODEV, "nothing matches", "3b:*");
	nic("3b:02.1", "vfio-pci", "\n");
	expect_words(take(pattern("3b:*"), -1, -1, 1, no_pci), -ENODEV, "nothing matches", "3b:*");
	expect_nic(take(pattern("3b:*"), -1, -1, 0, NULL), "3b:02.1");
}

/* The same interface by another PMD, or another name, is the same port. */
static void an_interface_is_one_port_whatever_it_is_called(void **state)
{
	static const char *const packet[] = {"--vdev=net_af_packet7,iface=lo"};
	static const char *const xdp[] = {"--vdev=net_af_xdp0,iface=lo,start_queue=0"};
	static const char *const nowhere[] = {"--vdev=net_af_xdp0,iface=nosuch"};

	(void)state;
	assert_string_equal(take("net_af_*", -1, -1, 1, packet), packet[0]);
	expect_words(take("net_af_*", -1, -1, 1, xdp), -EBUSY, "net_af_xdp0", "process");
	expect_words(take("net_af_*", -1, -1, 1, nowhere), -ENODEV, "interface nosuch",
		     "No such device");
}

/* A child is another process: it has none of it, and its end frees nothing. */
static void a_child_has_no_port(void **state)
{
	const struct weft_pick p = {.ports = pattern("3b:*"), .sys = sys, .local = {-1, -1}};
	char name[WEFT_CLAIM_NAME], note[64], why[512], **out;
	int status;
	pid_t pid;

	(void)state;
	nic("3b:02.0", "vfio-pci", "\n");
	snprintf(name, sizeof(name), "weft/pci/%s:3b:02.0", domain);
	assert_int_equal(weft_pick(&p, 0, NULL, &out, note, sizeof(note), why, sizeof(why)), 2);
	free(out);
	assert_true(weft_claim_find(name) >= 0);
	pid = fork();
	if (pid == 0)
		_exit(weft_claim_find(name) >= 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(atoi(take(pattern("3b:*"), -1, -1, 0, NULL)), -EBUSY);
	weft_pick_release();
}

/* One has a process, the other is not there: both are said. */
static void busy_and_missing_devices_are_distinguished(void **state)
{
	static const char *const both[] = {"--vdev=net_af_packet0,iface=lo",
					   "--vdev=net_af_packet1,iface=nosuch"};
	char holder[64];

	(void)state;
	assert_string_equal(take("net_af_*", -1, -1, 2, both), both[0]);
	snprintf(holder, sizeof(holder), "process %d", (int)takers[0]);
	expect_words(take("net_af_*", -1, -1, 2, both), -EBUSY, holder,
		     "except 1 that can't be opened");
	expect_words(take("net_af_*", 1, 2, 2, both), -EBUSY, holder, "except 1");
}

static void what_is_released_is_the_next_ones(void **state)
{
	const struct weft_pick p = {.ports = pattern("3b:*"), .sys = sys, .local = {-1, -1}};
	char note[64], why[512], **out;

	(void)state;
	nic("3b:02.0", "vfio-pci", "\n");
	assert_int_equal(weft_pick(&p, 0, NULL, &out, note, sizeof(note), why, sizeof(why)), 2);
	free(out);
	assert_int_equal(atoi(take(pattern("3b:*"), -1, -1, 0, NULL)), -EBUSY);
	weft_pick_release();
	expect_nic(take(pattern("3b:*"), -1, -1, 0, NULL), "3b:02.0");
}

static void launchers_report_which_rank_it_is(void **state)
{
	struct weft_local l;

	(void)state;
	unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
	unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
	setenv("SLURM_LOCALID", "5", 1);
	setenv("MPI_LOCALNRANKS", "many", 1);
	weft_local_find(&l);
	assert_int_equal(l.rank, 5);
	assert_int_equal(l.size, -1);
	setenv("OMPI_COMM_WORLD_LOCAL_RANK", "3", 1);
	setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "12", 1);
	weft_local_find(&l);
	assert_int_equal(l.rank, 3);
	assert_int_equal(l.size, 12);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, tidy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(processes_take_one_each_until_none_is_left),
		TEST(claims_of_users_stop_no_process_of_roots),
		TEST(ranks_begin_at_different_ones),
		TEST(near_ones_come_first),
		TEST(words_of_the_eal_are_candidates),
		TEST(a_process_with_a_vdev_probes_no_pci_device),
		TEST(named_devices_keep_their_arguments),
		TEST(of_each_pattern_one),
		TEST(what_dpdk_cannot_have_is_no_candidate),
		TEST(an_interface_is_one_port_whatever_it_is_called),
		TEST(a_child_has_no_port),
		TEST(busy_and_missing_devices_are_distinguished),
		TEST(what_is_released_is_the_next_ones),
		TEST(launchers_report_which_rank_it_is),
	};

	/*
	 * Claims are of a network namespace: where we may have one no other claims are in the way.
	 */
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		fputs("claims are those of all\n", stderr);
	return cmocka_run_group_tests_name("WEFT_PORTS", tests, NULL, NULL);
}
