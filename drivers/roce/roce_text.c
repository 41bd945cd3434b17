/* SPDX-License-Identifier: BSD-3-Clause */

#include "roce_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The meaning of a completion's status for messages; @p hint = what to check. */
static const struct {
	int error;
	const char *what, *hint;
} wc_words[] = {
	[IBV_WC_LOC_LEN_ERR] = {-EPROTO, "sent more than a receive buffer holds",
				"do both ends run the same version?"},
	[IBV_WC_LOC_QP_OP_ERR] = {-EIO, "can't be reached any more: the queue pair can't send",
				  "was the network device taken down, or its address removed?"},
	[IBV_WC_LOC_PROT_ERR] = {-EFAULT, "is not at fault: own memory is not registered any more",
				 "was memory unmapped while it was being sent?"},
	[IBV_WC_BAD_RESP_ERR] = {-EPROTO, "answered with something unexpected", NULL},
	[IBV_WC_LOC_ACCESS_ERR] = {-EFAULT, "is not at fault: own memory may not be written", NULL},
	[IBV_WC_REM_INV_REQ_ERR] = {-EPROTO, "refused a request as invalid", NULL},
	[IBV_WC_REM_ACCESS_ERR] = {-EACCES, "refused access to its memory",
				   "was that memory deregistered?"},
	[IBV_WC_REM_OP_ERR] = {-EREMOTEIO, "could not carry out a request", NULL},
	[IBV_WC_RETRY_EXC_ERR] = {-ETIMEDOUT, "gave no answer",
				  "is the program there, and its link up?"},
	[IBV_WC_RNR_RETRY_EXC_ERR] = {-ETIMEDOUT, "had no receive buffer", NULL},
	[IBV_WC_REM_ABORT_ERR] = {-ECONNABORTED, "ended the operation", NULL},
	[IBV_WC_FATAL_ERR] = {-EIO, "can't be reached any more: the device failed", NULL},
	[IBV_WC_RESP_TIMEOUT_ERR] = {-ETIMEDOUT, "gave no answer", NULL},
	[IBV_WC_GENERAL_ERR] = {-EIO, "can't be reached any more: the device reports an error",
				NULL},
};

#define NUM_WC (sizeof(wc_words) / sizeof(wc_words[0]))

static const char *status_words(enum ibv_wc_status status)
{
	static const char *const words[] = {
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local queue pair operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "request flushed",
		[IBV_WC_BAD_RESP_ERR] = "bad response",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "receiver-not-ready retry counter exceeded",
		[IBV_WC_REM_ABORT_ERR] = "remote abort",
		[IBV_WC_FATAL_ERR] = "fatal error",
		[IBV_WC_RESP_TIMEOUT_ERR] = "response timeout",
		[IBV_WC_GENERAL_ERR] = "general error",
	};
	unsigned int i = (unsigned int)status;

	return i < sizeof(words) / sizeof(words[0]) && words[i] ? words[i] : "unknown status";
}

int weft_roce_wc_error(enum ibv_wc_status status)
{
	unsigned int i = (unsigned int)status;

	return i < NUM_WC && wc_words[i].error ? wc_words[i].error : -EIO;
}

void weft_roce_text_wc(const struct weft_roce_names *names, enum ibv_wc_status status,
		       uint64_t waited_ns, char *buf, size_t size)
{
	unsigned int i = (unsigned int)status;
	const char *what = i < NUM_WC && wc_words[i].what
				   ? wc_words[i].what
				   : "can't be reached any more: the queue pair is in error";
	const char *hint = i < NUM_WC ? wc_words[i].hint : NULL;
	char waited[32] = "";

	if (status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR ||
	    status == IBV_WC_RESP_TIMEOUT_ERR)
		snprintf(waited, sizeof(waited), " for %.1f s", (double)waited_ns * 1e-9);
	snprintf(buf, size, "%s: peer %s %s%s (%s)%s%s", names->device, names->peer, what, waited,
		 status_words(status), hint ? ": " : "", hint ? hint : "");
}

void weft_roce_text_connect(const struct weft_roce_names *names, int err, char *buf, size_t size)
{
	const char *why, *hint = "";

	switch (err) {
	case ETIMEDOUT:
	case EHOSTUNREACH:
		why = "does not answer address resolution";
		hint = ": is it on this network, and its link up?";
		break;
	case ENETUNREACH:
		why = "can't be reached: there is no route to it";
		break;
	case EINVAL:
		why = "can't be connected to: the kernel refuses its address or the lane's "
		      "settings";
		hint = ": did the device's own address vanish?";
		break;
	case ENODEV:
		why = "can't be connected to: the device is gone";
		break;
	default:
		snprintf(buf, size, "%s: peer %s can't be connected to: %s", names->device,
			 names->peer, strerror(err));
		return;
	}
	snprintf(buf, size, "%s: peer %s %s%s", names->device, names->peer, why, hint);
}

void weft_roce_text_qp_event(const struct weft_roce_names *names, enum ibv_event_type type,
			     char *buf, size_t size)
{
	const char *what;

	switch (type) {
	case IBV_EVENT_QP_ACCESS_ERR:
		what = "used memory that it has no key for";
		break;
	case IBV_EVENT_QP_REQ_ERR:
		what = "sent an invalid request";
		break;
	case IBV_EVENT_QP_FATAL:
		what = "can't be reached any more: its queue pair failed";
		break;
	default:
		what = "can't be reached any more: its queue pair is in error";
		break;
	}
	snprintf(buf, size, "%s: peer %s %s", names->device, names->peer, what);
}

void weft_roce_text_setup(const char *device, const char *what, int err, uint64_t memlock,
			  char *buf, size_t size)
{
	if (err == ENOMEM && memlock != UINT64_MAX)
		snprintf(
			buf, size,
			"%s: no %s: %sthe limit of locked memory is %llu KiB; raise it ('ulimit -l "
			"unlimited', or memlock in /etc/security/limits.conf)",
			device, what,
			memlock < (64ull << 20) ? "" : "memory is short, most likely because ",
			(unsigned long long)(memlock >> 10));
	else if (err == EPERM || err == EACCES)
		snprintf(buf, size,
			 "%s: no %s: permission denied; give this user the right to open "
			 "/dev/infiniband/uverbs*",
			 device, what);
	else
		snprintf(buf, size, "%s: no %s: %s", device, what, strerror(err));
}
