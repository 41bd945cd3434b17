/* SPDX-License-Identifier: BSD-3-Clause */

#include "msg/lane_status.h"

#include <errno.h>

#include "core/endpoint.h"
#include "msg/endpoint.h"

int weft_lane_status(const struct weft_msg_ep *me, int status)
{
	int of_ep = me->ep ? me->ep->status : 0;

	/* A lane that closes with its endpoint does not know the reason. */
	if (status == -ECANCELED)
		return of_ep ? of_ep : status;
	/* "Try later" is an answer to a call, and no outcome of an operation. */
	if (status == -EAGAIN)
		return of_ep ? of_ep : -EIO;
	return status;
}

/*
 * Rights and range were checked before a lane had the operation, against those that came with the
 * key. What the peer's device or table refuses later is the key: RoCE has one status for all three,
 * and shared memory finds another registration in the key's place.
 */
int weft_lane_key_status(const struct weft_msg_ep *me, int status)
{
	if (status == -EACCES || status == -ERANGE)
		return -EKEYREJECTED;
	return weft_lane_status(me, status);
}
