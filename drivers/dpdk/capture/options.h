/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file capture/options.h
 * Options of a capture: FILE[,filter=EXPR][,snaplen=N][,ring=SIZE][,size=SIZE][,files=N], as in
 * WEFT_CAPTURE and in the telemetry command. Pure: libc only.
 */
#ifndef WEFT_CAPTURE_OPTIONS_H
#define WEFT_CAPTURE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

struct weft_capture_options {
	char file[512];   /**< %p is replaced by the process id */
	char filter[512]; /**< in tcpdump's syntax; "" = all */
	uint32_t snaplen; /**< bytes of each frame; UINT32_MAX = all */
	uint64_t ring;    /**< bytes, for each interface */
	uint64_t size;    /**< bytes of a file; 0 = no limit */
	uint32_t files;   /**< number of files to keep, including the one that is being written */
};

/** @return 0, or -EINVAL with a sentence */
int weft_capture_options_parse(const char *text, struct weft_capture_options *o, char *why,
			       size_t why_len);

/** Copy a file name; "%p" is replaced by the process id, "%n" by @p number. */
void weft_capture_expand(const char *name, unsigned int number, char *buf, size_t size);

#endif /* WEFT_CAPTURE_OPTIONS_H */
