/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file engine/rx.h
 * Receiving frames.
 */
#ifndef WEFT_ENGINE_RX_H
#define WEFT_ENGINE_RX_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/iface.h"

/* @return frames received */
unsigned int raw_rx_poll(struct raw_iface *iface);

#endif /* WEFT_ENGINE_RX_H */
