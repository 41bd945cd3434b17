/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Drives a libFuzzer target without libFuzzer: replays a corpus, then throws mutations of it at the
 * target. Not guided by coverage, but needs no clang, and a seed reproduces. Takes the subset of
 * libFuzzer's options that devtools/test.sh uses:
 *
 *	fuzz_NAME [-runs=N] [-seed=N] [-max_len=N] [FILE or DIRECTORY...]
 *
 * The input under way is written to $WEFT_FUZZ_CRASH (or ./crash-NAME) when the target dies of a
 * signal or a sanitizer.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));
void __sanitizer_set_death_callback(void (*cb)(void)) __attribute__((weak));

struct input {
	uint8_t *data;
	size_t size;
};

static struct input *corpus;
static size_t corpus_len;
static size_t max_len = 4096;
static uint64_t state;

static const uint8_t *now_data;
static size_t now_size;
static char crash_path[512];

static void die(const char *what, const char *name)
{
	fprintf(stderr, "fuzz: %s %s: %s\n", what, name, strerror(errno));
	exit(2);
}

static void save_crash(void)
{
	ssize_t n = -1;
	int fd;

	if (!now_data)
		return;
	fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd >= 0) {
		n = write(fd, now_data, now_size);
		close(fd);
	}
	dprintf(2, "fuzz: the input is in %s (%zd bytes)\n", crash_path, n);
}

static void on_signal(int sig)
{
	signal(sig, SIG_DFL);
	save_crash();
	raise(sig);
}

static uint64_t random64(void)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15ull); /* splitmix64 */

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static size_t below(size_t n)
{
	return n ? random64() % n : 0;
}

static void run(const uint8_t *data, size_t size)
{
	/* A copy of exactly this size, so that AddressSanitizer sees one byte too far. */
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		die("no memory for", "an input");
	if (size)
		memcpy(copy, data, size);
	now_data = copy;
	now_size = size;
	LLVMFuzzerTestOneInput(copy, size);
	now_data = NULL;
	free(copy);
}

static void add(const char *path);

static void add_directory(const char *path)
{
	struct dirent **names;
	char child[4096];
	int n, i;

	/* Sorted, so that a seed means the same everywhere. */
	n = scandir(path, &names, NULL, alphasort);
	if (n < 0)
		die("can't list", path);
	for (i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			snprintf(child, sizeof(child), "%s/%s", path, names[i]->d_name);
			add(child);
		}
		free(names[i]);
	}
	free(names);
}

static void add(const char *path)
{
	struct input in = {0};
	struct stat st;
	FILE *f;

	if (stat(path, &st))
		die("can't read", path);
	if (S_ISDIR(st.st_mode)) {
		add_directory(path);
		return;
	}
	f = fopen(path, "rb");
	if (!f)
		die("can't read", path);
	in.data = malloc((size_t)st.st_size + 1);
	corpus = realloc(corpus, (corpus_len + 1) * sizeof(*corpus));
	if (!in.data || !corpus)
		die("no memory for", path);
	in.size = fread(in.data, 1, (size_t)st.st_size, f);
	fclose(f);
	corpus[corpus_len++] = in;
}

/* A number that is often on an edge, in little or big endian. */
static void mutate_number(uint8_t *buf, size_t size)
{
	static const uint64_t magic[] = {
		0,          1,          2,           0x7f,       0x80,           0xff,
		0x100,      0x7fff,     0x8000,      0xffff,     0x10000,        0x7fffffff,
		0x80000000, 0xffffffff, 0x100000000, UINT64_MAX, UINT64_MAX >> 1};
	size_t at, width = (size_t)1 << below(4);
	uint64_t value;

	if (size < width)
		return;
	value = magic[below(sizeof(magic) / sizeof(magic[0]))] + below(3) - 1;
	at = below(size - width + 1);
	if (below(2))
		value = __builtin_bswap64(value) >> (64 - 8 * width);
	memcpy(buf + at, &value, width);
}

/* A piece of another input. */
static void mutate_splice(uint8_t *buf, size_t *size)
{
	const struct input *other;
	size_t at, n;

	if (!corpus_len)
		return;
	other = &corpus[below(corpus_len)];
	n = below(other->size + 1);
	at = below(*size + 1);
	if (at + n > max_len)
		return;
	memcpy(buf + at, other->data + below(other->size - n + 1), n);
	if (at + n > *size)
		*size = at + n;
}

static void mutate_once(uint8_t *buf, size_t *size)
{
	size_t at, n;

	switch (below(8)) {
	case 0: /* a bit */
		if (*size)
			buf[below(*size)] ^= (uint8_t)(1u << below(8));
		break;
	case 1: /* a byte */
		if (*size)
			buf[below(*size)] = (uint8_t)random64();
		break;
	case 2:
	case 3:
		mutate_number(buf, *size);
		break;
	case 4: /* shorter */
		*size = below(*size + 1);
		break;
	case 5: /* longer */
		n = below(64);
		if (*size + n > max_len)
			break;
		at = below(*size + 1);
		memmove(buf + at + n, buf + at, *size - at);
		for (; n; n--, ++*size)
			buf[at++] = (uint8_t)random64();
		break;
	case 6: /* a piece less */
		if (!*size)
			break;
		at = below(*size);
		n = below(*size - at) + 1;
		memmove(buf + at, buf + at + n, *size - at - n);
		*size -= n;
		break;
	case 7:
		mutate_splice(buf, size);
		break;
	}
}

/* Where the input that crashes the program is kept, and that it is. */
static void expect_crashes(const char *name)
{
	const char *crash = getenv("WEFT_FUZZ_CRASH");

	if (crash)
		snprintf(crash_path, sizeof(crash_path), "%s", crash);
	else
		snprintf(crash_path, sizeof(crash_path), "crash-%s", name);
	if (__sanitizer_set_death_callback) {
		__sanitizer_set_death_callback(save_crash);
	} else {
		signal(SIGSEGV, on_signal);
		signal(SIGBUS, on_signal);
		signal(SIGFPE, on_signal);
		signal(SIGILL, on_signal);
	}
	signal(SIGABRT, on_signal);
}

/* An input of the corpus, or a new one, changed in a few places. */
static size_t make_input(uint8_t *buf)
{
	const struct input *in;
	size_t size, a;
	int n;

	if (corpus_len && below(16)) {
		in = &corpus[below(corpus_len)];
		size = in->size;
		memcpy(buf, in->data, size);
	} else {
		size = below(below(max_len) + 1);
		for (a = 0; a < size; a++)
			buf[a] = (uint8_t)random64();
	}
	for (n = (int)below(5) + 1; n; n--)
		mutate_once(buf, &size);
	return size;
}

int main(int argc, char **argv)
{
	unsigned long runs = 20000, i;
	const char *name;
	uint64_t seed = 1;
	uint8_t *buf;
	size_t size;
	int a;

	name = strrchr(argv[0], '/');
	name = name ? name + 1 : argv[0];
	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (a = 1; a < argc; a++) {
		if (!strncmp(argv[a], "-runs=", 6))
			runs = strtoul(argv[a] + 6, NULL, 0);
		else if (!strncmp(argv[a], "-seed=", 6))
			seed = strtoull(argv[a] + 6, NULL, 0);
		else if (!strncmp(argv[a], "-max_len=", 9))
			max_len = strtoul(argv[a] + 9, NULL, 0);
		else if (argv[a][0] != '-')
			add(argv[a]);
	}

	expect_crashes(name);
	run(NULL, 0);
	for (i = 0; i < corpus_len; i++)
		run(corpus[i].data, corpus[i].size);

	for (i = 0; i < corpus_len; i++)
		if (corpus[i].size > max_len)
			max_len = corpus[i].size;
	buf = malloc(max_len + 8);
	if (!buf)
		die("no memory for", "mutations");
	for (i = 0; i < runs; i++) {
		/* Each run has a state of its own: the run number and the seed say it all. */
		state = seed * 0xd1342543de82ef95ull + i;
		size = make_input(buf);
		run(buf, size);
	}
	printf("fuzz: %s: %zu inputs replayed, %lu mutations of seed %llu\n", name, corpus_len,
	       runs, (unsigned long long)seed);
	free(buf);
	for (i = 0; i < corpus_len; i++)
		free(corpus[i].data);
	free(corpus);
	return 0;
}
