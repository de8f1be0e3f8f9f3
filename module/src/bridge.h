/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bridge from what happens in the server to those who wait: whoever puts the first job somewhere, be it a command of
 * this module, a script or any other client, fires a keyspace event, and that event is heard here.
 *
 * It is opened by the first wait: as long as nobody has waited, nobody pays for it. */
#ifndef EMQ_BRIDGE_H
#define EMQ_BRIDGE_H

#include <stdbool.h>

#include "valkey_api.h"

/* Listens to what the server itself does. */
bool emq_bridge_load(ValkeyModuleCtx *ctx);

/* Listens to keyspace events, from the first time on. */
void emq_bridge_open(ValkeyModuleCtx *ctx);

#endif
