/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/user_folder.h"
#include "port/claim.h"
#include "port/memif/memif.h"
#include "port/memif/memif_words.h"

#define DEFAULT_PATH "/run/memif.sock"

/* The value of key in a device's arguments. @return false: there is none */
static bool device_argument(const char *args, const char *key, char *buf, size_t size)
{
	size_t len = strlen(key), n;
	const char *at;

	for (at = strchr(args, ','); at; at = strchr(at, ',')) {
		at++;
		if (strncmp(at, key, len) || at[len] != '=')
			continue;
		n = strcspn(at + len + 1, ",");
		snprintf(buf, size, "%.*s", (int)n, at + len + 1);
		return true;
	}
	return false;
}

/* The address on which a memif server listens. */
struct server {
	char path[256];
	bool abstract;
	unsigned int id;
};

static bool is_server(const char *device, struct server *s)
{
	char word[16];

	if (strncmp(device, "net_memif", 9) ||
	    !device_argument(device, "role", word, sizeof(word)) ||
	    (strcmp(word, "server") && strcmp(word, "master")))
		return false;
	s->abstract = !device_argument(device, "socket-abstract", word, sizeof(word)) ||
		      strcmp(word, "no");
	if (!device_argument(device, "socket", s->path, sizeof(s->path)))
		snprintf(s->path, sizeof(s->path), "%s", DEFAULT_PATH);
	s->id = device_argument(device, "id", word, sizeof(word))
			? (unsigned int)strtoul(word, NULL, 10)
			: 0;
	return true;
}

static int is_taken(const char *path, const char *holder, char *why, size_t why_len)
{
	snprintf(why, why_len,
		 "the memif server's socket %s is taken: %s listens there; end it, or give another "
		 "socket=",
		 path, holder);
	return -EADDRINUSE;
}

static int make_free(const struct server *s, char *why, size_t why_len)
{
	struct weft_claim_owner owner;
	char name[WEFT_CLAIM_NAME], holder[96];
	const char *path = s->path;
	struct stat st;

	weft_claim_memif_name(name, path, s->abstract, true, s->id);
	if (weft_claimed(name, &owner)) {
		weft_claim_owner_text(&owner, holder, sizeof(holder));
		return is_taken(path, holder, why, why_len);
	}
	if (s->abstract || lstat(path, &st))
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(why, why_len,
			 "the memif server's socket %s can't be made: there is a file that is no "
			 "socket; give another socket=",
			 path);
		return -EADDRINUSE;
	}
	if (weft_socket_is_dead(path) && (!unlink(path) || errno == ENOENT))
		return 0;
	return is_taken(path, "another process", why, why_len);
}

/* @return the device arguments in word @p i: "--vdev=ARGS", or ARGS after "--vdev"; NULL: none */
static const char *device_of(int i, char *const *words)
{
	if (!strncmp(words[i], "--vdev=", 7))
		return words[i] + 7;
	return i > 0 && !strcmp(words[i - 1], "--vdev") ? words[i] : NULL;
}

static char *append_text(char *to, const char *text)
{
	size_t n = strlen(text);

	memcpy(to, text, n);
	return to + n;
}

char **weft_memif_private_words(int count, char *const *words)
{
	static const char private[] = ",socket-abstract=no";
	size_t bytes = ((size_t)count + 1) * sizeof(char *);
	const char *device;
	char **out, *text, word[16];
	int i;

	for (i = 0; i < count; i++)
		bytes += strlen(words[i]) + sizeof(private);
	out = malloc(bytes);
	if (!out)
		return NULL;
	text = (char *)(out + count + 1);
	for (i = 0; i < count; i++) {
		device = device_of(i, words);
		out[i] = text;
		text = append_text(text, words[i]);
		if (device && !strncmp(device, "net_memif", 9) &&
		    !device_argument(device, "socket-abstract", word, sizeof(word)))
			text = append_text(text, private);
		*text++ = '\0';
	}
	out[count] = NULL;
	return out;
}

int weft_memif_dead_remove(int count, char *const *words, char *why, size_t why_len)
{
	const char *device;
	struct server s;
	int i, rc = 0;

	for (i = 0; i < count && rc == 0; i++) {
		device = device_of(i, words);
		if (device && is_server(device, &s))
			rc = make_free(&s, why, why_len);
	}
	return rc;
}
