/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The write fence: the key whose value names the executor that may write. It is read on every call of a writing command
 * and never written. */
#ifndef EMQ_FENCE_H
#define EMQ_FENCE_H

#include "call.h"

/* Learns whether the server is in cluster mode, where each queue has a fence of its own. */
void emq_fence_load(ValkeyModuleCtx *ctx);

/* Refuses unless the fence is this module's identity. */
bool emq_fence_check(emq_call *call);

/* The value of the fence, kept by the call; NULL when it is absent, no string, or cannot be told. */
ValkeyModuleString *emq_fence_value(emq_call *call);

/* What the last command that looked has found, in a word for INFO. */
const char *emq_fence_state(void);

/* Whether that keeps writing commands out. */
bool emq_fence_endangers(void);

#endif
