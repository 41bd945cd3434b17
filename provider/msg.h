/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg.h
 * fi_send(), fi_recv() and their like.
 */
#ifndef WFI_MSG_H
#define WFI_MSG_H

#include "provider/provider.h"

extern struct fi_ops_msg wfi_msg_ops;

#endif /* WFI_MSG_H */
