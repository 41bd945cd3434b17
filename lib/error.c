/* SPDX-License-Identifier: BSD-3-Clause */

#include "weft.h"
#include "weft_build.h"
#include "weft_vcs.h"

const char *weft_version_string(void)
{
	return WEFT_VERSION " (" WEFT_VCS_REVISION ")";
}
