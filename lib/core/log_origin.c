/* SPDX-License-Identifier: BSD-3-Clause */

#include "core/log_origin.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/endpoint.h"

void weft_log_worker_write(enum weft_log_level level, const struct weft_worker *worker,
			   const char *fmt, ...)
{
	char origin[48];
	va_list ap;

	snprintf(origin, sizeof(origin), "[worker %08" PRIx32 "]", (uint32_t)(worker->id >> 32));
	va_start(ap, fmt);
	weft_log_vwrite(level, origin, fmt, ap);
	va_end(ap);
}

void weft_log_ep_write(enum weft_log_level level, const struct weft_ep *ep, const char *fmt, ...)
{
	char origin[96];
	va_list ap;

	snprintf(origin, sizeof(origin),
		 "[worker %08" PRIx32 " ep %" PRIu32 " to %.24s/%08" PRIx32 "]",
		 (uint32_t)(ep->worker->id >> 32), ep->slot, ep->remote_name,
		 (uint32_t)(ep->remote_id >> 32));
	va_start(ap, fmt);
	weft_log_vwrite(level, origin, fmt, ap);
	va_end(ap);
}
