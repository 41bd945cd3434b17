/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/history.h"

#define HEAD "history "
#define TEXT_MAX 32768u
#define EACH_MOST (1ull << 36) /* ns: a slot is not longer */

/* @return the rest of the text behind the head; NULL: it is not the head of a line */
static const char *read_head(struct history_series *s, const char *text)
{
	char kind[8];
	uint32_t zero = 0;
	int at = 0;

	if (sscanf(text,
		   HEAD "delays of %8" SCNx32 " %8" SCNx32 " path %" SCNu32 " zero %" SCNu32
			" from %" SCNu64 " each %" SCNu64 "%1[:]%n",
		   &s->conn, &s->token, &s->path, &zero, &s->from, &s->each, kind, &at) != 7) {
		at = 0;
		s->counts = sscanf(text, HEAD "counts from %" SCNu64 " each %" SCNu64 "%1[:]%n",
				   &s->from, &s->each, kind, &at) == 3;
		if (!s->counts)
			return NULL;
	}
	for (unsigned int i = 0; i < HISTORY_SLOTS; i++)
		s->slot[i].delay = zero;
	if (!at || s->each == 0 || s->each > EACH_MOST || s->from > INT64_MAX)
		return NULL;
	return text + at;
}

static bool read_delay(struct history_slot *slot, const char *word)
{
	int32_t delay;

	if (sscanf(word, "%" SCNd32 "*%" SCNu32, &delay, &slot->samples) != 2)
		return false;
	slot->delay += delay;
	return true;
}

static bool read_counts(struct history_slot *slot, const char *word)
{
	const char *at = word;
	unsigned int i;
	char *end;

	for (i = 0; i < HISTORY_COUNTS; i++) {
		slot->count[i] = (uint32_t)strtoul(at, &end, 10);
		if (end != at && i == HISTORY_CONNS && *end == '\0')
			return true;
		if (end == at || *end != (i + 1 < HISTORY_COUNTS ? '/' : '\0'))
			return false;
		at = end + 1;
	}
	return true;
}

#define MISSED "missed "

static void read_missed(struct history *h, uint16_t iface, const char *text, size_t len,
			uint64_t time)
{
	char copy[24], colon[2];
	uint64_t count;

	snprintf(copy, sizeof(copy), "%.*s", (int)(len < sizeof(copy) ? len : sizeof(copy)), text);
	if (sscanf(copy, MISSED "%10" SCNu64 "%1[:]", &count, colon) != 2 || count > UINT32_MAX)
		return;
	if (!h->missed)
		h->missed = calloc(HISTORY_MISSED, sizeof(*h->missed));
	if (h->missed && h->num_missed < HISTORY_MISSED)
		h->missed[h->num_missed++] = (struct history_missed){time, count, iface};
}

bool history_read(struct history *h, uint16_t iface, const void *text, size_t len, uint64_t time)
{
	char *copy, *word, *rest;
	struct history_series *s;
	const char *list;

	if (len > strlen(MISSED) && memcmp(text, MISSED, strlen(MISSED)) == 0) {
		read_missed(h, iface, text, len, time);
		return true;
	}
	if (len <= strlen(HEAD) || memcmp(text, HEAD, strlen(HEAD)) != 0)
		return false;
	if (!h->series)
		h->series = calloc(HISTORY_SERIES, sizeof(*h->series));
	if (!h->series || h->num == HISTORY_SERIES || len > TEXT_MAX)
		return true;
	copy = strndup(text, len);
	s = &h->series[h->num];
	*s = (struct history_series){.iface = iface};
	list = copy ? read_head(s, copy) : NULL;
	for (word = list ? strtok_r(copy + (list - copy), " ", &rest) : NULL;
	     word && s->num < HISTORY_SLOTS; word = strtok_r(NULL, " ", &rest), s->num++)
		s->slot[s->num].known =
			(s->counts ? read_counts : read_delay)(&s->slot[s->num], word);
	h->num += list != NULL;
	free(copy);
	return true;
}

void history_free(struct history *h)
{
	free(h->series);
	free(h->missed);
	*h = (struct history){0};
}
