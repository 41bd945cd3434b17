/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file dump/slice.h
 * A part of several captures as one capture, for Wireshark.
 */
#ifndef DUMP_SLICE_H
#define DUMP_SLICE_H

#include "dump/merge.h"

struct msg_watch;

/**
 * Write the selected frames of all captures to the file of the options.
 * @param w  its frames only; NULL = those of all messages. @return APP_OK or an exit code
 */
int slice_write(struct merge *m, const struct msg_watch *w);

#endif /* DUMP_SLICE_H */
