/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file provider/options.h
 * Variables of the provider, FI_WEFT_*, which `fi_info -e` lists; and defaults for Weft's own
 * variables that the user has not set.
 */
#ifndef WFI_OPTIONS_H
#define WFI_OPTIONS_H

struct weft_config;

enum wfi_progress_choice {
	/**
	 * WFI_THREAD_AUTO (process.h) for applications that request FI_PROGRESS_AUTO, else
	 * WFI_THREAD_WATCH
	 */
	WFI_PROGRESS_REQUESTED,
	WFI_PROGRESS_MANUAL,
	WFI_PROGRESS_AUTO,
};

struct wfi_options {
	const char *lanes; /**< FI_WEFT_LANES; NULL: not set */
	/** WEFT_LANES and WEFT_EAL_ARGS of the launcher, for hosts without them; NULL: not set */
	const char *job_lanes, *job_eal_args;
	enum wfi_progress_choice progress;
	/** FI_PROGRESS_AUTO: interval at which the thread checks whether the application polls */
	unsigned int interval_us;
	/** calls in a row without an event, after which a rank yields its core; UINT_MAX: never */
	unsigned int yield_after;
};

/** Declare the variables to libfabric; reads nothing. */
void wfi_options_define(void);

/**
 * Read the variables. The first rank of a job reports unknown variables, once. Each rank reports an
 * invalid value, since the launcher may end the first rank before it can report.
 * @return 0, or -FI_EINVAL: a value is invalid
 */
int wfi_options_read(struct wfi_options *options);

/**
 * An address comes from another version of Weft or of the provider: the first rank of the job
 * reports it. Other ranks wait for 1 s, since the launcher ends all ranks as soon as one fails.
 * Later calls have no effect.
 */
void wfi_options_other_version(void);

/** Read FI_WEFT_PROGRESS. An invalid value is WFI_PROGRESS_REQUESTED, and is not reported. */
enum wfi_progress_choice wfi_options_progress(void);

/**
 * Weft's configuration for a job: the environment's, with defaults for MPI programs. To be released
 * by weft_config_release(). @return 0 or a negative error of Weft
 */
int wfi_options_config(const struct wfi_options *options, struct weft_config **config);

#endif /* WFI_OPTIONS_H */
