/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/msg.h
 * The message layer, as its modules use it. Tags, active messages, remote memory and rendezvous are
 * modules (msg/state.h); the message layer names none of them.
 *
 *	msg/state.h        modules and handlers; the state of each worker and of each endpoint
 *	msg/state.c        an endpoint's protocols, chosen by a model of its lanes
 *	msg/request.c      one operation: lifetime, references, the hooks of its module; packing and
 *	                   unpacking: contiguous memory, iovs, generic types; what sends wait for,
 *	                   as time; latencies
 *	msg/endpoint.c     lifetime and failure of the message half of an endpoint; flush
 *
 *	msg/eager.c        protocols: the whole message at once, or pieces over all eager lanes at
 *	                   once; headers of messages
 *	msg/send.c         queues and order
 *	msg/transmit.c     which lane gets a piece; one piece on a lane: which call, which length;
 *	                   messages without payload
 *	msg/replay.c       messages of a dead lane, sent over another one
 *
 *	msg/credit.c       how much a peer may send unrequested; which bytes have come, where they
 *	                   go, how a receive ends
 */
#ifndef WEFT_MSG_H
#define WEFT_MSG_H

#include "msg/credit.h"
#include "msg/eager.h"
#include "msg/endpoint.h"
#include "msg/replay.h"
#include "msg/request.h"
#include "msg/send.h"
#include "msg/state.h"
#include "msg/transmit.h"

#endif /* WEFT_MSG_H */
