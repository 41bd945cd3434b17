/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of drivers: those of this build, and those that a program has added. */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "roof.h"
#include "self/self_lane.h"
#include "shm/shm_lane.h"
#include "weft_build.h"

#if WEFT_HAVE_DPDK
/*
 * Weak: the library links, and has no raw lanes, while the driver's sources are not in the build.
 */
extern const struct weft_lane_driver weft_dpdk_driver __attribute__((weak));
extern const struct weft_lane_driver weft_udp_driver __attribute__((weak));
#pragma weak weft_capture_messages
#endif

#if WEFT_HAVE_ROCE
extern const struct weft_lane_driver weft_roce_driver;
extern const struct weft_lane_driver weft_roce_ud_driver;
#endif

/* The only list of the drivers of this build. Its order is the order of interfaces in a worker. */
static const struct weft_lane_driver *const built_in[] = {
	&weft_self_driver, &weft_shm_driver,
#if WEFT_HAVE_DPDK
	&weft_dpdk_driver,
#endif
#if WEFT_HAVE_ROCE
	&weft_roce_driver, &weft_roce_ud_driver,
#endif
#if WEFT_HAVE_DPDK
	&weft_udp_driver, /* behind those that reach a NIC without the kernel */
#endif
};

#define NUM_BUILT_IN (sizeof(built_in) / sizeof(built_in[0]))

static pthread_mutex_t added_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct weft_lane_driver *added[WEFT_LANE_DRIVERS_MAX];
static unsigned int num_added;

/* Number @p i of all there are; NULL past the last. */
static const struct weft_lane_driver *driver_at(unsigned int i)
{
	if (i < NUM_BUILT_IN)
		return built_in[i];
	return i - NUM_BUILT_IN < num_added ? added[i - NUM_BUILT_IN] : NULL;
}

const struct weft_lane_driver **weft_drivers_list(void)
{
	const struct weft_lane_driver **list;
	unsigned int n = 0;

	list = calloc(NUM_BUILT_IN + WEFT_LANE_DRIVERS_MAX + 1, sizeof(*list));
	if (!list)
		return NULL;
	pthread_mutex_lock(&added_lock);
	for (unsigned int i = 0; i < NUM_BUILT_IN + num_added; i++)
		if (driver_at(i)) /* a weak one may be missing */
			list[n++] = driver_at(i);
	pthread_mutex_unlock(&added_lock);
	return list;
}

const struct weft_lane_tap_ops *weft_drivers_tap(void)
{
#if WEFT_HAVE_DPDK
	return &weft_capture_messages;
#else
	return NULL;
#endif
}

int weft_recorder_write(const char *reason, char *text, size_t text_len)
{
	const struct weft_lane_tap_ops *ops = weft_drivers_tap();

	if (ops)
		return ops->record(reason, text, text_len);
	snprintf(text, text_len, "this build has no flight recorder");
	return -ENOENT;
}

/* As WEFT_LANES and worker addresses have it. */
static bool name_is_good(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	/* roce_rc is another name of roce (core/lane_list.c). */
	return n > 0 && n < sizeof(((struct weft_iface_info *)NULL)->driver) &&
	       strcmp(name, "roce_rc") != 0 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == n;
}

static int add(const struct weft_lane_driver *driver)
{
	for (unsigned int i = 0; i < NUM_BUILT_IN + num_added; i++) {
		if (driver_at(i) == driver)
			return 0;
		if (driver_at(i) && strcmp(driver_at(i)->name, driver->name) == 0)
			return -EEXIST;
	}
	if (num_added == WEFT_LANE_DRIVERS_MAX)
		return -ENOSPC;
	added[num_added++] = driver;
	return 0;
}

int weft_lane_driver_add(const struct weft_lane_driver *driver)
{
	int rc;

	/*
	 * The number is checked first: the members of another version may lie elsewhere in the
	 * struct.
	 */
	if (driver && driver->abi != WEFT_LANE_ABI)
		return -EPROTONOSUPPORT;
	if (!driver || !driver->query || !driver->open || !name_is_good(driver->name))
		return -EINVAL;
	pthread_mutex_lock(&added_lock);
	rc = add(driver);
	pthread_mutex_unlock(&added_lock);
	return rc;
}
