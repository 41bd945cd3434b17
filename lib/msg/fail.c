/* SPDX-License-Identifier: BSD-3-Clause */
/* Failures that the message layer detects: reported as events of the worker (core/endpoint.h). */

#include <stdarg.h>
#include <stdio.h>

#include "msg/endpoint.h"

void weft_msg_fail(struct weft_msg_ep *me, int status, const char *fmt, ...)
{
	struct weft_ep *ep = me->ep;
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	ep->worker->ep_events->fail(ep, status, why);
}

void weft_msg_fail_later(struct weft_msg_ep *me, int status, const char *why)
{
	me->ep->worker->ep_events->fail_later(me->ep, status, why);
}
