/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library for LD_PRELOAD: libipsec-mb takes AES-NI, as on a processor that has no VAES. The
 * measure `sealed-aesni` of devtools/bench.sh uses it.
 */

#include <intel-ipsec-mb.h>

/* From version 2 on the functions for AVX2 use VAES, too. */
#if defined(IMB_VERSION_NUM) && IMB_VERSION_NUM >= IMB_VERSION(2, 0, 0)
#define INIT init_mb_mgr_sse
#define ARCH IMB_ARCH_SSE
#else
#define INIT init_mb_mgr_avx2
#define ARCH IMB_ARCH_AVX2
#endif

IMB_DLL_EXPORT void init_mb_mgr_auto(IMB_MGR *mgr, IMB_ARCH *arch)
{
	INIT(mgr);
	*arch = ARCH;
}
