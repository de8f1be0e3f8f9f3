/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What this module is, and what it serves. */
#ifndef EMQ_ABOUT_H
#define EMQ_ABOUT_H

#include "valkey_api.h"

/* INFO emq */
void emq_about_info(ValkeyModuleInfoCtx *info, int for_crash_report);

#endif
