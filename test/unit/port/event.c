/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Lives of ports: links that come late or flap, speeds that change, NICs that vanish or want a
 * reset.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_ethdev.h>

#include "eal.h"
#include "fake/fake_ethdev.h"
#include "port/ethdev.h"

static struct weft_frame_port *opened[2]; /* closed after a test that fails, too */
static struct weft_frame_port_event ev;

static void close_port(struct weft_frame_port *port)
{
	for (unsigned int i = 0; i < RTE_DIM(opened); i++)
		if (opened[i] == port)
			opened[i] = NULL;
	port->ops->close(port);
}

static int tidy(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(opened); i++)
		if (opened[i])
			close_port(opened[i]);
	fake_eth_reset();
	return 0;
}

static int try_open(struct fake_eth_port *f, struct weft_frame_port **port, char why[300])
{
	const struct weft_port_opts o = {.rx_bufs = 32, .queues = 1};
	char id[8];
	int rc;

	*port = NULL;
	why[0] = '\0';
	snprintf(id, sizeof(id), "%u", fake_eth_id(f));
	rc = weft_port_ethdev_open(id, &o, port, why, 300);
	for (unsigned int i = 0; *port && i < RTE_DIM(opened); i++) {
		if (opened[i])
			continue;
		opened[i] = *port;
		break;
	}
	return rc;
}

static struct weft_frame_port *must_open(struct fake_eth_port *f)
{
	struct weft_frame_port *port;
	char why[300];

	if (try_open(f, &port, why))
		fail_msg("%s", why);
	return port;
}

static enum weft_frame_port_what look(struct weft_frame_port *port)
{
	port->event = false;
	return port->ops->look(port, &ev);
}

static struct rte_mbuf *frame_of(struct weft_frame_port *port)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(port->pool);

	assert_non_null(m);
	memset(rte_pktmbuf_append(m, 100), 0, 100);
	return m;
}

static uint16_t poll_once(struct weft_frame_port *port)
{
	struct rte_mbuf *m;
	uint16_t n = port->ops->rx_burst(port, &m, 1);

	if (n)
		rte_pktmbuf_free(m);
	return n;
}

static struct fake_eth_port *nic(const char *pmd, uint32_t speed)
{
	struct fake_eth_port *f = fake_eth_add("0000:00:05.0", fake_eth_pmd(pmd));

	fake_eth_traits(f)->speed = speed;
	return f;
}

/* ---- links ---------------------------------------------------------------------------------- */

static void a_link_that_comes_late_reports_its_speed(void **state)
{
	struct fake_eth_port *f = nic("net_e1000_em", 1000);
	struct weft_frame_port *port;

	(void)state;
	fake_eth_traits(f)->link_ms = 2000;
	port = must_open(f);
	assert_int_equal(port->link, WEFT_LANE_LINK_NIC);
	assert_false(port->ops->link_up(port));
	assert_true(port->flags & WEFT_FRAME_PORT_GUESS);
	assert_int_equal(look(port), WEFT_FRAME_PORT_NOTHING);
	fake_eth_skip(2000);
	assert_int_equal(look(port), WEFT_FRAME_PORT_LINK_UP);
	assert_string_equal(ev.text, "1 Gb/s");
	assert_false(port->flags & WEFT_FRAME_PORT_GUESS);
	assert_true(port->bandwidth == 1.25e8);
	assert_int_equal(look(port), WEFT_FRAME_PORT_NOTHING);
}

static void an_interrupt_is_noticed_by_whoever_polls(void **state)
{
	struct fake_eth_port *f = nic("net_e1000_em", 1000);
	struct weft_frame_port *port;

	(void)state;
	fake_eth_traits(f)->link_ms = 0;
	port = must_open(f);
	assert_true(fake_eth_conf(f)->intr_conf.lsc);
	assert_true(port->ops->link_up(port));
	poll_once(port);
	assert_false(port->event);
	fake_eth_plug(f, false);
	poll_once(port);
	assert_true(port->event);
	assert_int_equal(look(port), WEFT_FRAME_PORT_LINK_DOWN);
	poll_once(port);
	assert_false(port->event);
	/* Sends go on: what is lost meanwhile is sent again. */
	fake_eth_plug(f, true);
	poll_once(port);
	assert_true(port->event);
	assert_int_equal(look(port), WEFT_FRAME_PORT_LINK_UP);
	assert_int_equal(look(port), WEFT_FRAME_PORT_NOTHING);
}

/* Not every PMD has the interrupt: the lane looks from time to time anyway. */
static void a_link_without_interrupts_is_found_by_looking(void **state)
{
	struct fake_eth_port *f = nic("net_e1000_em", 1000);
	struct weft_frame_port *port;

	(void)state;
	fake_eth_traits(f)->link_ms = 0;
	fake_eth_traits(f)->events = 0;
	port = must_open(f);
	assert_false(fake_eth_conf(f)->intr_conf.lsc);
	fake_eth_plug(f, false);
	assert_int_equal(look(port), WEFT_FRAME_PORT_LINK_DOWN);
	assert_int_equal(look(port), WEFT_FRAME_PORT_NOTHING);
	fake_eth_plug(f, true);
	assert_int_equal(look(port), WEFT_FRAME_PORT_LINK_UP);
}

static void a_speed_that_changes_is_read_again(void **state)
{
	struct fake_eth_port *f = nic("net_iavf", 10000);
	struct weft_frame_port *port;

	(void)state;
	fake_eth_traits(f)->link_ms = 0;
	port = must_open(f);
	assert_true(port->bandwidth == 1.25e9);
	fake_eth_traits(f)->speed = 25000;
	assert_int_equal(look(port), WEFT_FRAME_PORT_SPEED);
	assert_string_equal(ev.text, "25 Gb/s");
	assert_true(port->bandwidth == 3.125e9);
	fake_eth_traits(f)->speed = 0;
	assert_int_equal(look(port), WEFT_FRAME_PORT_SPEED);
	assert_string_equal(ev.text, "not known");
	assert_true(port->flags & WEFT_FRAME_PORT_GUESS);
	fake_eth_traits(f)->speed = 100;
	assert_int_equal(look(port), WEFT_FRAME_PORT_SPEED);
	assert_string_equal(ev.text, "100 Mb/s");
	assert_false(port->flags & WEFT_FRAME_PORT_GUESS);
}

/* ---- ends ----------------------------------------------------------------------------------- */

/* Nothing goes to the PMD any more: its registers may be gone. */
static void check_ended(struct fake_eth_port *f, struct weft_frame_port *port, int status,
			const char *part)
{
	struct rte_mbuf *m = frame_of(port);
	uint64_t sent = fake_eth_count(f)->tx_frames;
	int i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(poll_once(port), 0);
		assert_true(port->event);
		assert_int_equal(look(port), WEFT_FRAME_PORT_ENDED);
		assert_int_equal(ev.status, status);
		assert_int_equal(port->ops->tx_burst(port, &m, 1), 0);
	}
	if (!strstr(ev.text, part))
		fail_msg("\"%s\" does not say \"%s\"", ev.text, part);
	assert_true(strlen(ev.text) < sizeof(ev.text) - 1);
	assert_false(port->ops->link_up(port));
	assert_int_equal(fake_eth_count(f)->tx_frames, sent);
	rte_pktmbuf_free(m);
}

static void a_port_that_wants_a_reset_gets_it_when_it_is_opened_again(void **state)
{
	struct fake_eth_port *f = nic("net_iavf", 10000);
	struct weft_frame_port *port = must_open(f);
	struct rte_mbuf *m;

	(void)state;
	fake_eth_break(f);
	check_ended(f, port, -ENETRESET, "wants a reset");
	close_port(port);
	assert_int_equal(fake_eth_count(f)->resets, 0);
	port = must_open(f);
	assert_int_equal(fake_eth_count(f)->resets, 1);
	assert_int_equal(poll_once(port), 0);
	assert_false(port->event);
	m = frame_of(port);
	assert_int_equal(port->ops->tx_burst(port, &m, 1), 1);
	/* Once. */
	close_port(port);
	must_open(f);
	assert_int_equal(fake_eth_count(f)->resets, 1);
}

static void a_removed_port_reports_it_until_it_is_back(void **state)
{
	struct fake_eth_port *f = nic("net_iavf", 10000);
	struct weft_frame_port *port;
	char why[300];

	(void)state;
	fake_eth_traits(f)->events |= RTE_BIT64(RTE_ETH_EVENT_INTR_RMV);
	port = must_open(f);
	fake_eth_remove(f);
	check_ended(f, port, -ENODEV, "was removed");
	close_port(port);
	assert_int_equal(try_open(f, &port, why), -ENODEV);
	assert_non_null(strstr(why, "0000:00:05.0"));
	assert_non_null(strstr(why, "was removed"));
	fake_eth_return(f);
	port = must_open(f);
	poll_once(port);
	assert_false(port->event);
}

/*
 * By the application, under open lanes: nothing is called with the number any more, which may be
 * another device's by then.
 */
static void a_device_that_the_application_takes_away_ends_its_port(void **state)
{
	struct fake_eth_port *f = nic("net_iavf", 10000);
	struct weft_frame_port *port = must_open(f), *other;
	uint64_t stops;
	char why[300];

	(void)state;
	fake_eth_detach(f);
	check_ended(f, port, -ENODEV, "rte_dev_remove()");
	assert_int_equal(try_open(f, &other, why), -EBUSY);
	assert_non_null(strstr(why, "taken away"));
	/* The next device under this number has an owner already. */
	fake_eth_return(f);
	assert_int_equal(
		rte_eth_dev_configure(fake_eth_id(f), 0, 0, &(const struct rte_eth_conf){0}), 0);
	check_ended(f, port, -ENODEV, "rte_dev_remove()");
	stops = fake_eth_count(f)->stops;
	close_port(port);
	assert_int_equal(fake_eth_count(f)->stops, stops);
	port = must_open(f);
	assert_int_equal(poll_once(port), 0);
	assert_false(port->event);
}

/* Another worker of the process must not get what is about to be reset. */
static void a_port_that_has_ended_takes_no_further_worker(void **state)
{
	struct fake_eth_port *f = nic("net_iavf", 10000);
	struct weft_frame_port *port = must_open(f), *other;
	char why[300];

	(void)state;
	fake_eth_break(f);
	assert_int_equal(try_open(f, &other, why), -EBUSY);
	assert_non_null(strstr(why, "wants a reset"));
	close_port(port);
	must_open(f);
}

/* ---- watchdog ------------------------------------------------------------------------------- */

static bool within_10_s(bool (*so)(void *arg), void *arg)
{
	for (int i = 0; i < 1000 && !so(arg); i++)
		usleep(10000);
	return so(arg);
}

static bool was_watched(void *arg)
{
	return fake_eth_count(arg)->watched > 0;
}

static bool has_event(void *arg)
{
	struct weft_frame_port *port = arg;

	poll_once(port);
	return port->event;
}

static void a_watchdog_that_is_a_dpdk_timer_runs(void **state)
{
	struct fake_eth_port *f = nic("net_ena", 0);
	struct weft_frame_port *port = must_open(f);

	(void)state;
	assert_true(within_10_s(was_watched, f));
	look(port);
	fake_eth_hang(f);
	assert_true(within_10_s(has_event, port));
	check_ended(f, port, -ENETRESET, "net_ena");
	close_port(port);
	/* And again in the next life. */
	must_open(f);
	fake_eth_hang(f);
	assert_int_equal(fake_eth_count(f)->resets, 1);
	assert_true(within_10_s(has_event, opened[0]));
	check_ended(f, opened[0], -ENETRESET, "wants a reset");
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, tidy)
	const struct CMUnitTest tests[] = {
		T(a_link_that_comes_late_reports_its_speed),
		T(an_interrupt_is_noticed_by_whoever_polls),
		T(a_link_without_interrupts_is_found_by_looking),
		T(a_speed_that_changes_is_read_again),
		T(a_port_that_wants_a_reset_gets_it_when_it_is_opened_again),
		T(a_removed_port_reports_it_until_it_is_back),
		T(a_device_that_the_application_takes_away_ends_its_port),
		T(a_port_that_has_ended_takes_no_further_worker),
		T(a_watchdog_that_is_a_dpdk_timer_runs),
	};

	test_eal_init("256");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
