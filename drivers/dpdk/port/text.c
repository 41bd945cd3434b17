/* SPDX-License-Identifier: BSD-3-Clause */
/* The reason why a port cannot be opened or used, in a sentence. */

#include <stdarg.h>
#include <stdio.h>

#include "port/priv.h"

int weft_port_fail(int rc, char *why, size_t why_len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (why_len)
		vsnprintf(why, why_len, fmt, ap);
	va_end(ap);
	return rc;
}

void weft_port_link_text(struct weft_frame_port *fp, char *buf, size_t size)
{
	struct weft_port_dev *d = weft_port_of(fp)->dev;
	char cause[128];

	snprintf(buf, size, "%s", "");
	if (fp->ops->link_up(fp))
		return;
	if (d->limits.kernel_link) {
		weft_kernel_link_why(d->limits.if_index, cause, sizeof(cause));
		snprintf(buf, size, "port %u (%s) has no link: %s", d->port_id, d->name, cause);
	} else if (d->limits.memif && !d->memif.name.server)
		snprintf(buf, size,
			 "port %u (%s) has no link: its memif server is not there; start the other "
			 "side, and see that socket=, id= and secret= are the same",
			 d->port_id, d->name);
	else if (d->limits.memif)
		snprintf(buf, size,
			 "port %u (%s) has no link: no memif client has connected; start the other "
			 "side, and see that socket=, id= and secret= are the same",
			 d->port_id, d->name);
	else
		snprintf(buf, size, "port %u (%s) has no link: check its cable and the switch",
			 d->port_id, d->name);
}
