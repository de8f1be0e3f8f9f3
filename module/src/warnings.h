/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What endangers the jobs of this node or wastes its memory, as INFO and the log show it. */
#ifndef EMQ_WARNINGS_H
#define EMQ_WARNINGS_H

#include "valkey_api.h"

/* Reads the server's settings, now and whenever they are changed, so that INFO need not ask. False when the server does not
 * tell of changes. */
bool emq_warnings_load(ValkeyModuleCtx *ctx);

/* The section of INFO. */
void emq_warnings_info(ValkeyModuleInfoCtx *info);

#endif
