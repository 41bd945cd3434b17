/* SPDX-License-Identifier: BSD-3-Clause */

#include "msg.h"

/*
 * The one place that knows which protocols there are. Between equal times the first wins.
 */
const struct weft_proto *const weft_protos[] = {
	&weft_proto_eager_short, &weft_proto_eager_bcopy, &weft_proto_eager_zcopy,
	&weft_proto_multi_eager, &weft_proto_rndv,        NULL,
};
