/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program that links the library statically, as a file with set-user-id cannot find a library by
 * a path relative to itself. It opens a worker; "set ARGUMENTS" gives the EAL arguments of the
 * program's own. With other arguments it starts the EAL as Weft's own programs do.
 */

#include <stdio.h>
#include <string.h>

#include "common/eal_start.h"
#include "weft.h"

static int start_eal(int count, char **words)
{
	struct weft_config *config;
	int ret;

	if (weft_config_read(&config))
		return 1;
	ret = eal_start(count, words, config, -1);
	weft_config_release(config);
	return ret;
}

int main(int argc, char **argv)
{
	struct weft_context_params params =
		WEFT_INIT(struct weft_context_params, .features = WEFT_FEATURE_TAG);
	struct weft_worker *worker = NULL;
	struct weft_context *context;
	struct weft_config *config;
	int ret;

	if (argc > 1 && strcmp(argv[1], "set") != 0)
		return start_eal(argc - 1, argv + 1);
	if (weft_config_read(&config))
		return 1;
	if (argc > 2)
		weft_config_modify(config, "EAL_ARGS", argv[2]);
	params.config = config;
	ret = weft_context_create(&params, &context);
	weft_config_release(config);
	if (ret == 0) {
		ret = weft_worker_create(context, NULL, &worker);
		weft_worker_destroy(worker);
		weft_context_destroy(context);
	}
	printf("worker: %s\n", weft_strerror(ret));
	return ret != 0;
}
