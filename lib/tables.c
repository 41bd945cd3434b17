/* SPDX-License-Identifier: BSD-3-Clause */

#include "msg/msg.h"

/*
 * The one place that knows which protocols there are; between equal times the first wins. (Drivers
 * stand in drivers.c: which of them there are is the build's choice.)
 */
/* clang-format off */
static const struct weft_proto *const protos[] = {
	&weft_proto_eager_short,
	&weft_proto_eager_bcopy,
	&weft_proto_eager_zcopy,
	&weft_proto_multi_eager,
	&weft_proto_rndv_get,
	&weft_proto_rndv_pull,
	&weft_proto_rndv_put,
	&weft_proto_rndv_am,
	&weft_proto_data_get,
	&weft_proto_data_pull,
	&weft_proto_data_put,
	&weft_proto_data_am,
	&weft_proto_put_native,
	&weft_proto_put_am,
	&weft_proto_get_native,
	&weft_proto_get_am,
	&weft_proto_amo_native,
	&weft_proto_amo_am,
	NULL,
};
/* clang-format on */

const struct weft_tables weft_tables = {
	.protos = protos,
};
