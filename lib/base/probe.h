/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file base/probe.h
 * USDT probes (doc/capture.md): places in the library at which a tracer may stop or count. A probe
 * is one nop and a note in the file; without SystemTap's header at build time it is nothing.
 *
 * Arguments are values that the code has anyway, so that no instruction computes them. Their number
 * and order is an interface of scripts: new arguments are appended.
 */
#ifndef WEFT_PROBE_H
#define WEFT_PROBE_H

#include "weft_build.h"

#if WEFT_HAVE_SDT
#include <sys/sdt.h>
#define WEFT_PROBE4(name, a, b, c, d) DTRACE_PROBE4(weft, name, a, b, c, d)
#define WEFT_PROBE5(name, a, b, c, d, e) DTRACE_PROBE5(weft, name, a, b, c, d, e)
#else
#define WEFT_PROBE4(name, a, b, c, d) ((void)0)
#define WEFT_PROBE5(name, a, b, c, d, e) ((void)0)
#endif

#endif /* WEFT_PROBE_H */
