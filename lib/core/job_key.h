/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/job_key.h
 * The job key of a context: given by the program, or read from the file of WEFT_JOB_KEY.
 */
#ifndef WEFT_JOB_KEY_H
#define WEFT_JOB_KEY_H

#include "core/config.h"

/**
 * Find the key and set conf->lane.job_key, to be released by weft_job_key_release(). Where frames
 * are to be sealed and can't be, it is an error: nothing is sent in clear instead.
 * @param given  32 bytes, or NULL
 * @return 0, or an error, which has been logged
 */
int weft_job_key_take(struct weft_conf *conf, const void *given);
void weft_job_key_release(struct weft_conf *conf);

#endif /* WEFT_JOB_KEY_H */
