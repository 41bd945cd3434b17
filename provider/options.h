/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file options.h
 * Variables of the provider, FI_WEFT_*, which `fi_info -e` lists; and what Weft's own variables
 * are set to where the user has not.
 */
#ifndef WFI_OPTIONS_H
#define WFI_OPTIONS_H

struct weft_config;

enum wfi_progress_choice {
	WFI_PROGRESS_ASKED, /**< a thread for who requests FI_PROGRESS_AUTO */
	WFI_PROGRESS_MANUAL,
	WFI_PROGRESS_AUTO,
};

struct wfi_options {
	const char *lanes; /**< NULL: by the job */
	enum wfi_progress_choice progress;
	unsigned int interval_us; /**< how often the thread looks whether the application polls */
	unsigned int yield_after; /**< calls that find nothing; UINT_MAX: never */
};

/** Tell libfabric of the variables; reads nothing. */
void wfi_options_define(void);

/**
 * Read them. Variables that are not known are named once in a job, by its first rank; a value that
 * is wrong by each rank, since the launcher may end the first one before it has a word.
 * @return 0, or -FI_EINVAL
 */
int wfi_options_read(struct wfi_options *options);

/**
 * A rank has another version of the provider: said once in a job. Other ranks than the first wait
 * for a moment, since the launcher ends all as soon as one has failed.
 */
void wfi_options_other_version(void);

/** FI_WEFT_PROGRESS alone, without a word about what is wrong. */
enum wfi_progress_choice wfi_options_progress(void);

/**
 * Weft's configuration for a job: the environment's, and where that says nothing what MPI programs
 * need. To be released by weft_config_release(). @return 0 or a negative error
 */
int wfi_options_config(const struct wfi_options *options, struct weft_config **config);

#endif /* WFI_OPTIONS_H */
