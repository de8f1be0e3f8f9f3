/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the server is told of a command: its arity and its key, and for COMMAND DOCS its grammar, which is that of the
 * parser (args.c), both made from the command's row. */
#ifndef EMQ_DOCS_H
#define EMQ_DOCS_H

#include "command.h"

/* False when the server refuses; its log says why. */
bool emq_describe(ValkeyModuleCommand *registered, const emq_command *command);

#endif
