/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg.h
 * The calls like fi_send() and fi_recv().
 */
#ifndef WFI_MSG_H
#define WFI_MSG_H

#include "provider/provider.h"

extern struct fi_ops_msg wfi_msg_ops;

#endif /* WFI_MSG_H */
