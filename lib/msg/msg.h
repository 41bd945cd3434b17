/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/msg.h
 * The message layer, for what stands above it: tags, active messages, remote memory, rendezvous are
 * modules of it (msg/module.h), which it does not know by name.
 *
 *	msg/request.h   one operation under way: life, references, what its module does for it
 *	msg/endpoint.h  what is kept per worker and per endpoint
 *	msg/send.h      queues, order, control messages, pieces onto lanes, flush
 *	msg/recv.h      which bytes have come, where they go
 *	msg/credit.h    how much a peer may send unasked
 *	msg/stripe.h    one operation over several lanes
 *	msg/header.h    headers of tagged and active messages
 *	msg/module.h    modules and handlers
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
#include "msg/send.h"
#include "msg/stripe.h"

#endif /* WEFT_MSG_H */
