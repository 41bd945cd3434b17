/* SPDX-License-Identifier: BSD-3-Clause */

#include "msg/lane_status.h"

#include <errno.h>

#include "core/endpoint.h"
#include "msg/endpoint.h"

int weft_lane_status(const struct weft_msg_ep *me, int status)
{
	int of_ep = me->ep ? me->ep->status : 0;

	/* A lane that closes with its endpoint does not have the reason. */
	if (status == -ECANCELED)
		return of_ep ? of_ep : status;
	/* "Try later" is the result of a call, never of an operation. */
	if (status == -EAGAIN)
		return of_ep ? of_ep : -EIO;
	return status;
}

/*
 * Rights and range were checked against those of the key before a lane got the operation. A later
 * refusal by the peer's device or table means that the key is invalid: RoCE has one status for all
 * three, and shared memory finds another registration in the key's place.
 */
int weft_lane_key_status(const struct weft_msg_ep *me, int status)
{
	if (status == -EACCES || status == -ERANGE)
		return -EKEYREJECTED;
	return weft_lane_status(me, status);
}
