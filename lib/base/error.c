/* SPDX-License-Identifier: BSD-3-Clause */
/* Error texts, and the version. */

#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "weft.h"
#include "weft_build.h"
#include "weft_vcs.h"

static_assert(WEFT_VERSION == WEFT_BUILD_VERSION_NUMBER, "meson.build and weft_version.h differ");

uint32_t weft_version(void)
{
	return WEFT_VERSION;
}

const char *weft_version_string(void)
{
	return WEFT_BUILD_VERSION " (" WEFT_VCS_REVISION ")";
}

const char *weft_build_info(void)
{
	return "version " WEFT_BUILD_VERSION " (" WEFT_VCS_REVISION ")\n"
	       "compiler " WEFT_BUILD_COMPILER ", " WEFT_BUILD_TYPE "\n"
	       "sanitizers " WEFT_BUILD_SANITIZE "\n"
	       "DPDK " WEFT_BUILD_DPDK "\n"
	       "rdma-core " WEFT_BUILD_RDMA_CORE "\n"
	       "lane drivers"
#if WEFT_HAVE_DPDK
	       " dpdk"
#endif
#if WEFT_HAVE_ROCE
	       " roce"
#endif
	       " shm self\n";
}

/*
 * The meaning of a status in Weft, which often differs from libc's strerror() for the same number.
 * The texts name no object; the log and the callbacks name it.
 */
static const struct {
	int err;
	const char *text;
} sentences[] = {
	{EINVAL, "invalid argument, or damaged input"},
	{ENOMEM, "out of memory"},
	{EAGAIN, "no room now, try again after progress"},
	{ENOENT, "no such name or index"},
	{ENODEV, "no lane could be opened: no usable port or RDMA device was found"},
	{EBUSY, "in use: something still depends on it, or a port has another owner"},
	{EALREADY, "already complete"},
	{ECANCELED, "canceled"},
	{EMSGSIZE, "message truncated: it is longer than the receive buffer"},
	{ENOMSG, "no matching message has arrived"},
	{ENOTCONN, "not connected yet"},
	{ETIMEDOUT, "no valid frame of the peer arrived within the timeout"},
	{ECONNRESET, "the peer closed the connection or was restarted"},
	{ECONNREFUSED, "the peer refused the connection"},
	{EHOSTUNREACH, "the peer cannot be reached from any local interface"},
	{ENETRESET, "the network device must be reset"},
	{ENETDOWN, "the network interface is down"},
	{ENETUNREACH, "no network reaches the peer"},
	{EPROTO, "the peer broke the protocol"},
	{EPROTONOSUPPORT, "the peer runs an incompatible version of Weft"},
	{EOPNOTSUPP, "not supported"},
	{ENOSYS, "not in this build"},
	{EIO, "the device failed"},
	{EPERM, "not permitted (root or a capability may be needed)"},
	{EACCES, "access denied"},
	{ENOSPC, "no space left"},
	{ENOBUFS, "a bound on buffers or objects is reached"},
	{EOVERFLOW, "too large"},
	{ERANGE, "out of range"},
	{ESTALE, "the peer at this address is another one: it was restarted"},
	{EUSERS, "too many connections that the program has not claimed"},
	{EADDRINUSE, "the network address is taken"},
	{EADDRNOTAVAIL, "the network address cannot be used here"},
	{EBADMSG, "damaged message"},
	{EFAULT, "bad address"},
	{EEXIST, "it exists already"},
	{EKEYREJECTED, "the peer does not have this remote key, or has it no longer"},
};

const char *weft_strerror(int status)
{
	size_t i;

	if (status == 0)
		return "success";
	if (status == WEFT_INPROGRESS)
		return "in progress";
	for (i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++)
		if (sentences[i].err == -status)
			return sentences[i].text;
	return "unknown status";
}
