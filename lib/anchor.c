/* SPDX-License-Identifier: BSD-3-Clause */

/* An archive needs a source of its own before it can take others whole. */
extern const char weft_internal_anchor[];
const char weft_internal_anchor[] = "weft";
