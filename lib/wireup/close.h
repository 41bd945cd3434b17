/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file wireup/close.h
 * Closing and flushing: the steps of a close with which the rest of wire-up has to do.
 */
#ifndef WEFT_WIREUP_CLOSE_H
#define WEFT_WIREUP_CLOSE_H

struct weft_ep;

/** An ep that is being closed is up now, or its timer has expired. */
void weft_ep_closing_step(struct weft_ep *ep);
/** A lane has died: other lanes send its messages, so they must be flushed again. */
void weft_ep_closing_lanes(struct weft_ep *ep);
/** The ep that is being closed is retired: end its close. */
void weft_ep_closing_end(struct weft_ep *ep, int status);
/**
 * Status of the close if the ep ends now with @p status: 0 once the flush is over, because no
 * message is lost then.
 */
int weft_ep_closing_status(const struct weft_ep *ep, int status);

#endif /* WEFT_WIREUP_CLOSE_H */
