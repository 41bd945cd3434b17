/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/dpdk/frame/frame.h"
#include "dump/state.h"

#define HEAD "path "
#define TEXT_MAX 256u

static const char *const modes[STATE_MODES] = {"-", "start", "delay", "share"};

const char *state_mode_name(uint8_t mode)
{
	return mode == STATE_NONE || mode >= STATE_MODES ? "" : modes[mode];
}

#define NUMBERS 7u

/* @return false: the text is none that Weft writes */
static bool read_text(const char *text, struct state_path *p, struct state_point *s)
{
	uint32_t *const to[NUMBERS] = {&s->window, &s->in_flight, &s->rtt,   &s->least,
				       &s->base,   &s->noise,     &s->target};
	uint64_t v[NUMBERS];
	char mode[16];
	int end = 0;

	if (sscanf(text,
		   HEAD "%2" SCNu32 " of %8" SCNx32 " %8" SCNx32 ": window %10" SCNu64
			" in_flight %10" SCNu64 " rtt %10" SCNu64 " least %10" SCNu64
			" base %10" SCNu64 " noise %10" SCNu64 " target %10" SCNu64 " mode %15s%n",
		   &p->path, &p->conn, &p->token, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
		   mode, &end) != NUMBERS + 4)
		return false;
	for (unsigned int i = 0; i < NUMBERS; i++) {
		if (v[i] > UINT32_MAX)
			return false;
		*to[i] = (uint32_t)v[i];
	}
	if (text[end] || p->path >= WEFT_FRAME_PATHS_MAX)
		return false;
	for (s->mode = 0; s->mode < STATE_MODES && strcmp(modes[s->mode], mode) != 0;)
		s->mode++;
	return s->mode < STATE_MODES;
}

/* @return NULL: there are too many paths, or no memory */
static struct state_path *find(struct states *s, const struct state_path *key)
{
	struct state_path *p;

	if (!s->path)
		s->path = calloc(STATE_PATHS, sizeof(*s->path));
	if (!s->path)
		return NULL;
	for (p = s->path; p < s->path + s->num; p++)
		if (p->iface == key->iface && p->conn == key->conn && p->token == key->token &&
		    p->path == key->path)
			return p;
	if (s->num == STATE_PATHS)
		return NULL;
	p = &s->path[s->num++];
	p->iface = key->iface;
	p->conn = key->conn;
	p->token = key->token;
	p->path = key->path;
	p->each = 1;
	return p;
}

static void keep(struct state_path *p, const struct state_point *s)
{
	unsigned int i;

	p->last = *s;
	if (p->seen++ % p->each)
		return;
	if (p->num == STATE_POINTS) {
		for (i = 0; i < STATE_POINTS / 2; i++)
			p->point[i] = p->point[2 * i];
		p->num = STATE_POINTS / 2;
		p->each *= 2;
	}
	p->point[p->num++] = *s;
}

bool state_read(struct states *s, uint16_t iface, const void *text, size_t len, uint64_t time)
{
	struct state_point point = {.time = time};
	static struct state_path key;
	struct state_path *p;
	char copy[TEXT_MAX];

	if (len <= strlen(HEAD) || memcmp(text, HEAD, strlen(HEAD)) != 0)
		return false;
	if (len >= sizeof(copy))
		return true;
	memcpy(copy, text, len);
	copy[len] = '\0';
	key.iface = iface;
	if (strlen(copy) != len || !read_text(copy, &key, &point))
		return true;
	p = find(s, &key);
	/* Times of a writer grow: what contradicts that has no place in a picture. */
	if (p && (!p->seen || point.time >= p->last.time))
		keep(p, &point);
	return true;
}

void state_free(struct states *s)
{
	free(s->path);
	*s = (struct states){0};
}
