/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file msg/protocols.h
 * Which protocols an endpoint uses: its lanes as the model from which they are chosen.
 */
#ifndef WEFT_MSG_PROTOCOLS_H
#define WEFT_MSG_PROTOCOLS_H

struct weft_conf;
struct weft_msg_conf;
struct weft_msg_ep;
struct weft_proto;

/** Read the settings from the configuration. */
void weft_msg_conf_read(struct weft_msg_conf *to, const struct weft_conf *from, double bcopy_bw,
			const struct weft_proto *const *protos);
/**
 * The endpoint's lanes are known, or have changed: find their configuration. Endpoints with equal
 * lanes share it (proto/select.c). Requests that have not begun select their protocol again at
 * their next step.
 * @return 1: another configuration than before; 0: no change, or the first one; -ENOMEM
 */
int weft_proto_select_build(struct weft_msg_ep *me);

#endif /* WEFT_MSG_PROTOCOLS_H */
