/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/msg.h
 * The message layer, for what stands above it: tags, active messages, remote memory, rendezvous are
 * modules of it (msg/module.h), which it does not know by name.
 *
 *	msg/layer.h        what it does for the worker and for connections
 *	msg/module.h       modules and handlers
 *	msg/request.c      one operation under way: life, references, what its module does for it
 *	msg/endpoint.c     what is kept per worker and per endpoint
 *	msg/fail.c         the end of an endpoint, as its messages find it
 *	msg/query.c        which protocol a message of an endpoint would use
 *	msg/header.c       headers of tagged and active messages
 *	msg/split.c        the headers of a message that is taken apart
 *	msg/datatype.c     packing and unpacking: contiguous memory, iovs, generic types
 *
 *	msg/eager.c        protocol: the whole message at once
 *	msg/multi_eager.c  protocol: pieces over all eager lanes at once
 *	msg/send.c         queues and order (msg/send.h has this and the next three)
 *	msg/control.c      messages without payload
 *	msg/piece.c        pieces onto lanes: by which call, how long
 *	msg/flush.c        when all that was sent is acknowledged
 *	msg/replay.c       what a lane that died had to send, over another one
 *	msg/lane_status.c  what an application receives for a lane's error
 *	msg/lanes.c        an endpoint's lanes as the model that protocols are chosen by
 *	msg/stripe.c       which lane gets a piece
 *	msg/lane_load.c    what a lane has outstanding, and how long that takes
 *
 *	msg/islands.c      which bytes have come (msg/recv.h: where they go, how a receive ends)
 *	msg/seq_window.h   sequence numbers as they come
 *	msg/credit.c       how much a peer may send unasked
 *	msg/credit_pool.c  how a worker's memory for that is shared by its peers
 */
#ifndef WEFT_MSG_H
#define WEFT_MSG_H

#include "msg/credit.h"
#include "msg/endpoint.h"
#include "msg/header.h"
#include "msg/layer.h"
#include "msg/module.h"
#include "msg/recv.h"
#include "msg/request.h"
#include "msg/lane_status.h"
#include "msg/send.h"
#include "msg/stripe.h"

#endif /* WEFT_MSG_H */
