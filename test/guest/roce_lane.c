/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * RoCE lanes by the lane contract alone: two interfaces over two devices, in one process and one
 * thread.
 *
 *	roce_lane DEVICE_A DEVICE_B [PATTERN]
 *
 * Prints TAP. PATTERN runs only behaviours whose name contains it.
 */

#include <string.h>

#include "roce_host.h"

/* In this order: first what the others stand on. */
static const struct behaviour *const groups[] = {
	roce_opening, roce_messages, roce_memory, roce_closing, roce_hostile,
	roce_control, roce_many,     roce_shared, roce_broken,
};

static bool run(const struct behaviour *behaviour, unsigned int number)
{
	double begin = now_s();
	bool ok;

	conf = (struct weft_lane_conf){.zcopy = true, .peer_timeout_ns = 30000000000ull};
	ok = behaviour->run();
	close_host(&a);
	close_host(&b);
	printf("%sok %u - %s\n# %.1f s\n", ok ? "" : "not ", number, behaviour->name,
	       now_s() - begin);
	return ok;
}

int main(int argc, char **argv)
{
	const struct behaviour *each;
	unsigned int i, n = 0, failed = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: roce_lane DEVICE_A DEVICE_B [PATTERN]\n");
		return 2;
	}
	name_a = argv[1];
	name_b = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		for (each = groups[i]; each->name; each++)
			if (argc <= 3 || strstr(each->name, argv[3]))
				failed += !run(each, ++n);
	return failed || n == 0 ? 1 : 0;
}
