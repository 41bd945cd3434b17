/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/eal_log.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_log.h>

/*
 * Threads of the EAL may hold the stream when it is replaced, so it is never closed, and later
 * writes to it go to standard error.
 */
static struct {
	FILE *stream;
	bool hold;
	size_t used;
	char text[16384];
} held;

static ssize_t on_write(void *cookie, const char *text, size_t len)
{
	size_t room = sizeof(held.text) - held.used;

	(void)cookie;
	if (!held.hold)
		return write(STDERR_FILENO, text, len);
	if (room > len)
		room = len;
	memcpy(held.text + held.used, text, room);
	held.used += room;
	return (ssize_t)len;
}

bool weft_eal_log_nic_bound(const char *sys)
{
	static const char *const drivers[] = {"vfio-pci", "uio_pci_generic", "igb_uio",
					      "uio_hv_generic"};
	char pattern[256];
	bool found = false;
	glob_t g;
	size_t i;

	for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]) && !found; i++) {
		/* A device is a link whose name contains a ':' (PCI) or five '-' (VMBus). */
		snprintf(pattern, sizeof(pattern), "%s/bus/*/drivers/%s/*[0-9a-f][-:]*", sys,
			 drivers[i]);
		if (glob(pattern, 0, NULL, &g) == 0) {
			found = true;
			globfree(&g);
		}
	}
	return found;
}

void weft_eal_log_hold(void)
{
	static const cookie_io_functions_t functions = {.write = on_write};

	if (!held.stream) {
		held.stream = fopencookie(NULL, "w", functions);
		if (!held.stream)
			return;
		setvbuf(held.stream, NULL, _IONBF, 0);
	}
	held.used = 0;
	held.hold = true;
	rte_openlog_stream(held.stream);
}

void weft_eal_log_release(bool show)
{
	if (!held.hold)
		return;
	rte_openlog_stream(NULL);
	fflush(held.stream);
	held.hold = false;
	if (show)
		fwrite(held.text, 1, held.used, stderr);
}
