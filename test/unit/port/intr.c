/* SPDX-License-Identifier: BSD-3-Clause */

/* RX interrupts: owners of ports that sleep, and PMDs that wake them, or say so and do not. */

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_ethdev.h>

#include "eal.h"
#include "fake/fake_ethdev.h"
#include "port/ethdev.h"
#include "port/port.h"
#include "port/rxtx.h"

#define US 1000ull
#define MS 1000000ull
#define FOREVER UINT64_MAX

static struct weft_frame_port *opened;

static int tidy(void **state)
{
	(void)state;
	if (opened)
		opened->ops->close(opened);
	opened = NULL;
	fake_eth_reset();
	return 0;
}

/* A PMD whose link is there at once. */
static struct fake_eth_port *nic(const char *pmd)
{
	struct fake_eth_port *f = fake_eth_add("0000:00:05.0", fake_eth_pmd(pmd));

	fake_eth_traits(f)->link_ms = 0;
	return f;
}

static struct weft_frame_port *open_as(enum weft_rx_intr mode)
{
	const struct weft_port_opts o = {.rx_bufs = 128, .rx_intr = mode};
	char why[300];

	if (weft_port_ethdev_open("0", &o, &opened, why, sizeof(why)))
		fail_msg("%s", why);
	return opened;
}

static struct weft_frame_port *open_port(void)
{
	return open_as(WEFT_RX_INTR_AUTO);
}

struct wanted {
	const char *name;
	uint64_t value;
};

static void take(const char *name, uint64_t value, void *arg)
{
	struct wanted *w = arg;

	if (!strcmp(name, w->name))
		w->value = value;
}

static uint64_t counter(struct weft_frame_port *port, const char *name)
{
	struct wanted w = {name, UINT64_MAX};

	port->ops->counters(port, take, &w);
	return w.value;
}

static bool readable(struct weft_frame_port *port)
{
	struct pollfd p = {.fd = port->ops->wait_fd(port), .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* A frame whose last byte tells which it is. */
static void frame_comes(struct fake_eth_port *f, uint8_t number)
{
	uint8_t frame[64] = {0};

	frame[63] = number;
	assert_true(fake_eth_input(f, frame, sizeof(frame)));
}

/* As an owner that goes to sleep. @return arm()'s; @p limit: how long it may sleep */
static int arm(struct weft_frame_port *port, uint64_t *limit)
{
	*limit = FOREVER;
	return port->ops->arm(port, limit);
}

/* Receives up to @p n frames, which must be numbered from @p first. @return how many */
static uint16_t receive(struct weft_frame_port *port, uint16_t n, uint8_t first)
{
	struct rte_mbuf *m[64];
	uint16_t got = port->ops->rx_burst(port, m, n);

	for (uint16_t i = 0; i < got; i++) {
		assert_int_equal(*rte_pktmbuf_mtod_offset(m[i], uint8_t *, 63), first + i);
		rte_pktmbuf_free(m[i]);
	}
	return got;
}

/* Sleeps, is woken by a frame, and takes it. */
static void woken(struct fake_eth_port *f, struct weft_frame_port *port)
{
	uint64_t limit;

	assert_int_equal(arm(port, &limit), 0);
	assert_false(readable(port));
	frame_comes(f, 1);
	assert_true(readable(port));
	port->ops->disarm(port);
	assert_int_equal(receive(port, 32, 1), 1);
}

/* ---- that wake ------------------------------------------------------------------------------ */

static void a_frame_wakes_a_sleeping_thread(void **state)
{
	struct fake_eth_port *f = nic("net_virtio");
	struct weft_frame_port *port = open_port();

	(void)state;
	assert_true(fake_eth_conf(f)->intr_conf.rxq);
	assert_true(fake_eth_conf(f)->intr_conf.lsc);
	assert_false(fake_eth_intr_is_on(f, 0)); /* it had begun with it on */
	for (int i = 1; i <= 3; i++) {
		woken(f, port);
		assert_int_equal(counter(port, "rx_intr.wakes"), i);
		assert_false(fake_eth_intr_is_on(f, 0));
		assert_false(readable(port));
	}
	assert_int_equal(counter(port, "rx_intr.missed"), 0);
}

static void a_polling_worker_does_not_use_them(void **state)
{
	struct fake_eth_port *f = nic("net_virtio");
	struct weft_frame_port *port = open_port();
	uint64_t on = fake_eth_count(f)->intr_on, off = fake_eth_count(f)->intr_off;

	(void)state;
	for (uint8_t i = 0; i < 100; i++) {
		frame_comes(f, i);
		assert_int_equal(receive(port, 32, i), 1);
		/* The table that polls at once: nothing of ours stands between. */
		assert_ptr_equal(port->ops, weft_port_intr_modes.ops);
		assert_ptr_equal(port->ops->rx_burst, weft_port_ops.rx_burst);
	}
	assert_int_equal(fake_eth_count(f)->intr_on, on);
	assert_int_equal(fake_eth_count(f)->intr_off, off);
	woken(f, port);
	assert_ptr_equal(port->ops->rx_burst, weft_port_ops.rx_burst);
}

/* @behaviour U75 */
static void what_came_before_is_found_and_kept(void **state)
{
	struct fake_eth_port *f = nic("net_virtio");
	struct weft_frame_port *port = open_port();
	uint64_t limit;
	uint8_t i;

	(void)state;
	/* More than are kept, after the last poll. */
	for (i = 0; i < 40; i++)
		frame_comes(f, i);
	assert_int_equal(arm(port, &limit), -EBUSY);
	assert_false(fake_eth_intr_is_on(f, 0));
	assert_int_equal(arm(port, &limit), -EBUSY); /* nothing is lost by a second try */
	for (i = 0; i < 40;)
		i = (uint8_t)(i + receive(port, 5, i));
	assert_int_equal(receive(port, 5, 0), 0);
	assert_int_equal(counter(port, "rx_intr.late"), 1);
	woken(f, port);
}

static void what_is_kept_at_the_end_goes_back(void **state)
{
	struct fake_eth_port *f = nic("net_e1000_igb");
	struct weft_frame_port *port = open_port();
	char name[RTE_MEMPOOL_NAMESIZE];
	uint64_t limit;

	(void)state;
	snprintf(name, sizeof(name), "%s", port->pool->name);
	for (uint8_t i = 0; i < 7; i++)
		frame_comes(f, i);
	assert_int_equal(arm(port, &limit), -EBUSY);
	assert_int_equal(receive(port, 2, 0), 2);
	assert_non_null(rte_mempool_lookup(name));
	port->ops->close(port);
	opened = NULL;
	/* A pool that misses buffers stays. */
	assert_null(rte_mempool_lookup(name));
}

static void each_queue_has_its_own(void **state)
{
	struct fake_eth_port *f = nic("net_e1000_igb");
	const struct weft_port_opts o = {.rx_bufs = 64, .queues = 2};
	struct weft_frame_port *second;
	uint64_t limit;
	char why[300];

	(void)state;
	assert_int_equal(weft_port_ethdev_open("0", &o, &opened, why, sizeof(why)), 0);
	assert_int_equal(weft_port_ethdev_open("0", &o, &second, why, sizeof(why)), 0);
	assert_int_equal(arm(opened, &limit), 0);
	assert_int_equal(arm(second, &limit), 0);
	frame_comes(f, 1); /* no UDP: the first queue */
	assert_true(readable(opened));
	assert_false(readable(second));
	second->ops->close(second);
	opened->ops->disarm(opened);
	assert_int_equal(receive(opened, 32, 1), 1);
}

/* ---- that do not, or wake for nothing ------------------------------------------------------- */

static void one_for_nothing_is_taken_once(void **state)
{
	struct fake_eth_port *f = nic("net_virtio");
	struct weft_frame_port *port = open_port();
	uint64_t limit;

	(void)state;
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(arm(port, &limit), 0);
		fake_eth_interrupt(f, 0);
		assert_true(readable(port));
		port->ops->disarm(port);
		/* The eventfd is not emptied. It must not wake for ever. */
		assert_false(readable(port));
		assert_int_equal(receive(port, 32, 0), 0);
		assert_int_equal(counter(port, "rx_intr.empty"), i);
	}
	assert_int_equal(counter(port, "rx_intr.wakes"), 0);
	woken(f, port);
}

/* Sleeps until its limit, finds a frame without an interrupt if @p frame. @return the limit */
static uint64_t sleeps_through(struct fake_eth_port *f, struct weft_frame_port *port, bool frame)
{
	uint64_t limit;

	assert_int_equal(arm(port, &limit), 0);
	assert_in_range(limit, 1, 100 * MS);
	if (frame)
		frame_comes(f, 1);
	/* DPDK's estimate of the TSC frequency may be 1 % wrong where its calibration waited. */
	usleep((useconds_t)(limit / US * 21 / 20 + 100));
	assert_false(readable(port));
	port->ops->disarm(port);
	assert_int_equal(receive(port, 32, 1), frame);
	return limit;
}

static void without_proof_a_sleep_is_no_longer_than_without_interrupts(void **state)
{
	struct fake_eth_port *f = nic("net_virtio");
	struct weft_frame_port *port = open_port();

	(void)state;
	fake_eth_traits(f)->rx_intr_dead = true;
	assert_int_equal(sleeps_through(f, port, false), 50 * US);
	assert_int_equal(sleeps_through(f, port, false), 100 * US);
	assert_int_equal(sleeps_through(f, port, true), 200 * US);
	assert_int_equal(counter(port, "rx_intr.missed"), 1);
	/* From the start, when something has come. */
	assert_int_equal(sleeps_through(f, port, false), 50 * US);
	for (int i = 0; i < 10; i++)
		assert_true(sleeps_through(f, port, false) <= MS);
	assert_int_equal(sleeps_through(f, port, false), MS);
}

/* @behaviour U75 */
static void interrupts_that_stop_coming_are_trusted_no_more(void **state)
{
	struct fake_eth_port *f = nic("net_virtio");
	struct weft_frame_port *port = open_port();

	(void)state;
	woken(f, port);
	assert_int_equal(sleeps_through(f, port, false), 100 * MS);
	assert_int_equal(counter(port, "rx_intr.missed"), 0); /* there was nothing to tell of */
	fake_eth_traits(f)->rx_intr_dead = true;
	assert_int_equal(sleeps_through(f, port, true), 100 * MS);
	assert_int_equal(counter(port, "rx_intr.missed"), 1);
	assert_true(sleeps_through(f, port, false) <= MS);
	/* And trusted again when several have come. */
	fake_eth_traits(f)->rx_intr_dead = false;
	for (int i = 0; i < 9; i++) {
		assert_true(sleeps_through(f, port, false) <= MS);
		woken(f, port);
	}
	assert_int_equal(sleeps_through(f, port, false), 100 * MS);
}

static void a_frame_beside_another_waking_is_no_loss(void **state)
{
	struct fake_eth_port *f = nic("net_virtio");
	struct weft_frame_port *port = open_port();
	uint64_t limit;

	(void)state;
	woken(f, port);
	assert_int_equal(arm(port, &limit), 0);
	port->ops->disarm(port); /* another lane, or a timer */
	frame_comes(f, 1);
	assert_int_equal(receive(port, 32, 1), 1);
	assert_int_equal(counter(port, "rx_intr.missed"), 0);
	assert_int_equal(arm(port, &limit), 0);
	assert_int_equal(limit, 100 * MS);
	port->ops->disarm(port);
}

static void a_port_without_interrupts_polls_now_and_then(void **state)
{
	struct fake_eth_port *f = nic("net_virtio");
	struct weft_frame_port *port = open_port();
	uint64_t limit;

	(void)state;
	woken(f, port);
	fake_eth_traits(f)->rx_intr_enable_error = -EIO;
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(arm(port, &limit), 0);
		assert_in_range(limit, 50 * US, MS);
		frame_comes(f, 1);
		port->ops->disarm(port);
		assert_int_equal(receive(port, 32, 1), 1);
		assert_int_equal(counter(port, "rx_intr.refused"), i);
	}
	assert_int_equal(counter(port, "rx_intr.missed"), 0);
}

static void what_has_ended_is_not_touched(void **state)
{
	struct fake_eth_port *f = nic("mlx5_pci");
	struct weft_frame_port *port = open_port();
	uint64_t limit, off, on;

	(void)state;
	assert_int_equal(arm(port, &limit), 0);
	assert_true(fake_eth_intr_is_on(f, 0));
	fake_eth_remove(f);
	off = fake_eth_count(f)->intr_off;
	on = fake_eth_count(f)->intr_on;
	port->ops->disarm(port);
	assert_int_equal(receive(port, 32, 0), 0);
	assert_true(port->event);
	assert_int_equal(arm(port, &limit), 0);
	assert_true(limit <= MS);
	port->ops->disarm(port);
	assert_int_equal(fake_eth_count(f)->intr_off, off);
	assert_int_equal(fake_eth_count(f)->intr_on, on);
	/* The next test's is another one. */
	port->ops->close(port);
	opened = NULL;
	fake_eth_return(f);
}

/* ---- that can't be had ---------------------------------------------------------------------- */

static void no_interrupts(struct fake_eth_port *f, struct weft_frame_port *port)
{
	char text[320];

	weft_port_intr_text(port, text, sizeof(text));
	assert_int_equal(strncmp(text, "no RX interrupts: ", 18), 0);
	assert_ptr_equal(port->ops, &weft_port_ops);
	assert_null(port->ops->wait_fd);
	assert_int_equal(counter(port, "rx_intr.wakes"), UINT64_MAX);
	/* And it works. */
	assert_true(fake_eth_conf(f)->intr_conf.lsc);
	frame_comes(f, 1);
	assert_int_equal(receive(port, 32, 1), 1);
}

static bool no_epoll;

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);

int __wrap_epoll_create1(int flags)
{
	if (!no_epoll)
		return __real_epoll_create1(flags);
	errno = EMFILE;
	return -1;
}

static void the_limit_on_files_is_the_reason(void **state)
{
	struct fake_eth_port *f = nic("net_ixgbe");
	struct weft_frame_port *port;
	char text[320];

	(void)state;
	no_epoll = true;
	port = open_port();
	no_epoll = false;
	weft_port_intr_text(port, text, sizeof(text));
	assert_non_null(strstr(text, "ulimit -n"));
	no_interrupts(f, port);
}

static void link_events_come_first(void **state)
{
	struct fake_eth_port *f = nic("net_ixgbe");

	(void)state;
	fake_eth_traits(f)->rx_intr_lsc_error = -EINVAL;
	no_interrupts(f, open_port());
	assert_false(fake_eth_conf(f)->intr_conf.rxq);
}

static unsigned int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Tried twice, the thread for the PMD's timers is there once, and ends with the port. */
static void a_device_that_does_not_start_with_them_starts_without(void **state)
{
	const unsigned int before = threads();

	for (int watchdog = 0; watchdog < 2; watchdog++) {
		struct fake_eth_port *f = nic("net_ena");

		fake_eth_traits(f)->rx_intr_start_error = -ENOTSUP;
		fake_eth_traits(f)->watchdog = watchdog;
		no_interrupts(f, open_port());
		assert_false(fake_eth_conf(f)->intr_conf.rxq);
		assert_int_equal(fake_eth_count(f)->starts, 1);
		assert_int_equal(threads(), before + 1); /* net_ena has timers */
		tidy(state);
		assert_int_equal(threads(), before);
	}
}

static void a_device_without_descriptor_is_polled(void **state)
{
	struct fake_eth_port *f = nic("net_vmxnet3");

	(void)state;
	fake_eth_traits(f)->rx_intr = false;
	no_interrupts(f, open_port());
}

static void another_error_is_reported_as_ever(void **state)
{
	const struct weft_port_opts o = {.rx_bufs = 64};
	struct fake_eth_port *f = nic("net_virtio");
	char why[300];

	(void)state;
	fake_eth_traits(f)->least = UINT16_MAX;
	assert_int_equal(weft_port_ethdev_open("0", &o, &opened, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "does not take receive queue 0"));
	assert_null(opened);
}

static void interrupts_are_enabled_by_pmd_and_mode(void **state)
{
	static const struct {
		const char *pmd;
		enum weft_rx_intr mode;
		bool enabled;
	} rows[] = {
		{"net_virtio", WEFT_RX_INTR_AUTO, true},
		{"net_virtio", WEFT_RX_INTR_NO, false},
		{"net_iavf", WEFT_RX_INTR_AUTO, false}, /* descriptors come back later then */
		{"net_iavf", WEFT_RX_INTR_YES, true},
		{"net_e1000_em", WEFT_RX_INTR_AUTO, false}, /* its interrupts come late or never */
		{"net_e1000_em", WEFT_RX_INTR_YES, true},
		{"mlx5_pci", WEFT_RX_INTR_AUTO, true},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct fake_eth_port *f = nic(rows[i].pmd);

		open_as(rows[i].mode);
		if (fake_eth_conf(f)->intr_conf.rxq != rows[i].enabled)
			fail_msg("row %zu: %s", i, rows[i].pmd);
		tidy(state);
	}
}

/* ---- PCI devices ---------------------------------------------------------------------------- */

static char root[] = "/tmp/weft-test-port-intr.XXXXXX";

static void pci(const char *driver, const uint8_t *config, size_t len)
{
	char path[200], to[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/d", root);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/d/driver", root);
	unlink(path);
	snprintf(to, sizeof(to), "../../drivers/%s", driver);
	assert_int_equal(symlink(to, path), 0);
	snprintf(path, sizeof(path), "%s/d/config", root);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(config, 1, len, f), len);
	fclose(f);
}

static void vectors_are_counted_where_dpdk_has_the_device(void **state)
{
	uint8_t c[256] = {[0x34] = 0x50};

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_int_equal(weft_port_intr_vectors(root, "no-such"), UINT_MAX);
	/* Another capability, and then MSI-X with a table of 5. */
	c[0x50] = 1;
	c[0x51] = 0xf0;
	c[0xf0] = 0x11;
	c[0xf2] = 4;
	c[0xf3] = 0x80;
	pci("vfio-pci", c, sizeof(c));
	assert_int_equal(weft_port_intr_vectors(root, "d"), 5);
	pci("mlx5_core", c, sizeof(c));
	assert_int_equal(weft_port_intr_vectors(root, "d"), UINT_MAX);
	pci("uio_pci_generic", c, sizeof(c));
	assert_int_equal(weft_port_intr_vectors(root, "d"), 1);
	pci("igb_uio", c, sizeof(c));
	assert_int_equal(weft_port_intr_vectors(root, "d"), 1);
	/* As much as others than root may read. */
	pci("vfio-pci", c, 64);
	assert_int_equal(weft_port_intr_vectors(root, "d"), 0);
	/* Lists that a device has no end of, or that lead out of it. */
	c[0xf0] = 2;
	c[0xf1] = 0x50;
	pci("vfio-pci", c, sizeof(c));
	assert_int_equal(weft_port_intr_vectors(root, "d"), 0);
	c[0xf1] = 0xfe;
	pci("vfio-pci", c, sizeof(c));
	assert_int_equal(weft_port_intr_vectors(root, "d"), 0);
}

static int remove_pci(void **state)
{
	static const char *const names[] = {"/d/driver", "/d/config", "/d", ""};
	char path[200];

	(void)state;
	for (size_t i = 0; i < RTE_DIM(names); i++) {
		snprintf(path, sizeof(path), "%s%s", root, names[i]);
		remove(path);
	}
	return 0;
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, tidy)
	const struct CMUnitTest tests[] = {
		T(a_frame_wakes_a_sleeping_thread),
		T(a_polling_worker_does_not_use_them),
		T(what_came_before_is_found_and_kept),
		T(what_is_kept_at_the_end_goes_back),
		T(each_queue_has_its_own),
		T(one_for_nothing_is_taken_once),
		T(without_proof_a_sleep_is_no_longer_than_without_interrupts),
		T(interrupts_that_stop_coming_are_trusted_no_more),
		T(a_frame_beside_another_waking_is_no_loss),
		T(a_port_without_interrupts_polls_now_and_then),
		T(what_has_ended_is_not_touched),
		T(the_limit_on_files_is_the_reason),
		T(link_events_come_first),
		T(a_device_that_does_not_start_with_them_starts_without),
		T(a_device_without_descriptor_is_polled),
		T(another_error_is_reported_as_ever),
		T(interrupts_are_enabled_by_pmd_and_mode),
		cmocka_unit_test_teardown(vectors_are_counted_where_dpdk_has_the_device,
					  remove_pci),
	};

	test_eal_init("256");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
