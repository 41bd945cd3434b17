/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose a NIC is: a second process is refused while the first one has it, and a port that was
 * refused leaves nothing behind.
 */

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_ethdev.h>

#include "app/common/eal_start.h"
#include "port/claim.h"
#include "eal.h"
#include "fake/fake_ethdev.h"
#include "port/ethdev.h"

/* ---- a device and its bus ------------------------------------------------------------------- */

static uint64_t device;
static char address[32], name[WEFT_CLAIM_NAME];

const struct rte_bus *__wrap_rte_dev_bus(const struct rte_device *dev);
const char *__wrap_rte_bus_name(const struct rte_bus *bus);
const char *__wrap_rte_dev_name(const struct rte_device *dev);
const struct rte_devargs *__wrap_rte_dev_devargs(const struct rte_device *dev);
int __wrap_rte_dev_dma_map(struct rte_device *dev, void *addr, uint64_t iova, size_t len);

const struct rte_bus *__wrap_rte_dev_bus(const struct rte_device *dev)
{
	return (const struct rte_bus *)dev;
}

const char *__wrap_rte_bus_name(const struct rte_bus *bus)
{
	assert_ptr_equal(bus, &device);
	return "pci";
}

const char *__wrap_rte_dev_name(const struct rte_device *dev)
{
	(void)dev;
	return address;
}

const struct rte_devargs *__wrap_rte_dev_devargs(const struct rte_device *dev)
{
	(void)dev;
	return NULL;
}

/* Nothing can be mapped for it. */
int __wrap_rte_dev_dma_map(struct rte_device *dev, void *addr, uint64_t iova, size_t len)
{
	(void)dev;
	(void)addr;
	(void)iova;
	(void)len;
	return -ENOTSUP;
}

static int setup(void **state)
{
	(void)state;
	/* No other run of this test has it. */
	snprintf(address, sizeof(address), "%04x:03:00.0", (unsigned int)getpid());
	snprintf(name, sizeof(name), "weft/pci/%s", address);
	return 0;
}

static int tidy(void **state)
{
	(void)state;
	fake_eth_reset();
	return 0;
}

static struct fake_eth_port *nic(void)
{
	struct fake_eth_port *f = fake_eth_add(address, fake_eth_pmd("net_ena"));

	fake_eth_traits(f)->device = (struct rte_device *)&device;
	return f;
}

static int open_port(struct fake_eth_port *f, struct weft_frame_port **port, char why[300])
{
	const struct weft_port_opts opts = {.mtu = 1500, .rx_bufs = 32};
	char id[8];

	why[0] = '\0';
	*port = NULL;
	snprintf(id, sizeof(id), "%u", fake_eth_id(f));
	return weft_port_ethdev_open(id, &opts, port, why, 300);
}

/* ---- whose it is ---------------------------------------------------------------------------- */

/* Another process, which has the NIC open. */
static pid_t owner_start(void)
{
	struct weft_claim_owner owner;
	char ok = 0;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "weft-perf");
		ok = weft_claim(name, &owner) >= 0;
		if (write(fds[1], &ok, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(fds[0], &ok, 1), 1);
	close(fds[0]);
	close(fds[1]);
	assert_true(ok);
	return pid;
}

/* @behaviour T18 */
static void a_nic_that_another_process_has_is_refused(void **state)
{
	struct fake_eth_port *f = nic();
	struct weft_frame_port *port;
	pid_t pid = owner_start();
	char why[300], want[128];

	(void)state;
	assert_int_equal(open_port(f, &port, why), -EADDRINUSE);
	assert_null(port);
	snprintf(want, sizeof(want), "(%s) is in use by process %d (weft-perf)", address, (int)pid);
	if (!strstr(why, want))
		fail_msg("%s", why);
	/* And nothing was done to it. */
	assert_int_equal(fake_eth_count(f)->configures, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(open_port(f, &port, why), 0);
	port->ops->close(port);
}

/* @behaviour T18 */
static void an_open_nic_is_claimed_and_a_closed_one_is_not(void **state)
{
	struct fake_eth_port *f = nic();
	struct weft_claim_owner owner;
	struct weft_frame_port *port;
	char why[300];

	(void)state;
	assert_int_equal(open_port(f, &port, why), 0);
	assert_true(weft_claimed(name, &owner));
	assert_int_equal(owner.pid, getpid());
	port->ops->close(port);
	assert_false(weft_claimed(name, &owner));
}

/* ---- refused by its PMD --------------------------------------------------------------------- */

/*
 * @behaviour T12: a port whose queue set-up fails leaves no resources behind and causes no crash at
 * the end
 */
static void a_port_whose_queue_is_refused_leaves_nothing_behind(void **state)
{
	struct fake_eth_port *f = nic();
	struct weft_claim_owner owner;
	struct weft_frame_port *port;
	char why[300];

	(void)state;
	fake_eth_traits(f)->rx_setup_error = -EINVAL;
	assert_int_equal(open_port(f, &port, why), -EINVAL);
	assert_null(port);
	assert_non_null(strstr(why, address));
	assert_false(weft_claimed(name, &owner));
	assert_int_equal(fake_eth_count(f)->starts, 0);
	assert_int_equal(fake_eth_count(f)->closes, 0);
	/* The reason has gone. */
	fake_eth_traits(f)->rx_setup_error = 0;
	assert_int_equal(open_port(f, &port, why), 0);
	port->ops->close(port);
}

/* What programs do at their end: net_af_xdp would read memory that it has freed. */
/* @behaviour T12 */
static void a_port_whose_queue_is_refused_is_not_closed(void **state)
{
	struct fake_eth_port *f = nic(), *good = fake_eth_add("good", fake_eth_pmd("net_ena"));
	struct weft_frame_port *port;
	char why[300];

	(void)state;
	fake_eth_traits(f)->rx_setup_error = -EINVAL;
	assert_int_equal(open_port(f, &port, why), -EINVAL);
	assert_int_equal(open_port(good, &port, why), 0);
	port->ops->close(port);
	fake_eth_traits(f)->driver = fake_eth_traits(good)->driver = "net_af_xdp";
	eal_close_ports();
	assert_int_equal(fake_eth_count(f)->unfit_closes, 0);
	assert_int_equal(fake_eth_count(f)->closes, 0);
	assert_int_equal(fake_eth_count(good)->closes, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_nic_that_another_process_has_is_refused, tidy),
		cmocka_unit_test_teardown(an_open_nic_is_claimed_and_a_closed_one_is_not, tidy),
		cmocka_unit_test_teardown(a_port_whose_queue_is_refused_leaves_nothing_behind,
					  tidy),
		cmocka_unit_test_teardown(a_port_whose_queue_is_refused_is_not_closed, tidy),
	};

	test_eal_init("64");
	return cmocka_run_group_tests_name("port claims", tests, setup, NULL);
}
