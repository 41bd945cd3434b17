/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/msg.h
 * The message layer, as its modules use it. Tags, active messages, remote memory and rendezvous are
 * modules (msg/module.h); the message layer does not know them by name.
 *
 *	msg/layer.h        functions for the worker and for connections
 *	msg/module.h       modules and handlers
 *	msg/request.c      one operation: lifetime, references, the hooks of its module
 *	msg/endpoint.c     the state of each worker and of each endpoint
 *	msg/fail.c         failure of an endpoint that the message layer has detected
 *	msg/query.c        which protocol a message of an endpoint would use
 *	msg/header.c       headers of tagged and active messages
 *	msg/split.c        headers of the parts of a message that is split
 *	msg/datatype.c     packing and unpacking: contiguous memory, iovs, generic types
 *
 *	msg/eager.c        protocol: the whole message at once
 *	msg/multi_eager.c  protocol: pieces over all eager lanes at once
 *	msg/send.c         queues and order (msg/send.h declares this and the next three)
 *	msg/control.c      messages without payload
 *	msg/piece.c        sending one piece on a lane: which call, which length
 *	msg/flush.c        waiting until everything sent is acknowledged
 *	msg/replay.c       messages of a dead lane, sent over another one
 *	msg/lane_status.c  status codes that an application receives for a lane's error
 *	msg/lanes.c        an endpoint's lanes as the model from which protocols are chosen
 *	msg/stripe.c       which lane gets a piece
 *	msg/lane_load.c    bytes that a lane has outstanding, and how long they take
 *
 *	msg/rx_ranges.c      which bytes have come (msg/recv.h: where they go, how a receive ends)
 *	msg/seq_window.h   sequence numbers of received messages
 *	msg/credit.c       how much a peer may send unrequested
 *	msg/credit_pool.c  how the peers of a worker share its memory for that
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
