/* SPDX-License-Identifier: BSD-3-Clause */

#include "common/reason.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "weft.h"

#define TEXT_MAX 384

/* Protects `first`: threads of the library log, too. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char first[2][TEXT_MAX]; /* WEFT_LOG_ERROR, WEFT_LOG_WARN */

static bool on_line(enum weft_log_level level, const char *source, const char *text, void *arg)
{
	(void)source;
	(void)arg;
	if (level > WEFT_LOG_WARN)
		return false;
	pthread_mutex_lock(&mutex);
	if (!first[level][0])
		snprintf(first[level], TEXT_MAX, "%s", text);
	pthread_mutex_unlock(&mutex);
	return false;
}

void reason_watch(void)
{
	weft_log_set_callback(on_line, NULL);
}

void reason_forget(void)
{
	pthread_mutex_lock(&mutex);
	first[WEFT_LOG_ERROR][0] = '\0';
	first[WEFT_LOG_WARN][0] = '\0';
	pthread_mutex_unlock(&mutex);
}

void reason_error(const char *what, const char *otherwise)
{
	char text[TEXT_MAX];

	pthread_mutex_lock(&mutex);
	memcpy(text, first[WEFT_LOG_ERROR][0] ? first[WEFT_LOG_ERROR] : first[WEFT_LOG_WARN],
	       sizeof(text));
	pthread_mutex_unlock(&mutex);
	if (!text[0]) {
		cli_error("%s: %s", what, otherwise);
		return;
	}
	cli_error("%s (the log above gives the reason)", what);
	cli_set_last_error(what, text);
}
