/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Jobs: the row, and the place that it names.
 *
 * A call meets a row once: its fields are read when first needed, and what the call writes is what it reads afterwards, so
 * that a job that occurs twice in one call, or as a parent of several, is always seen as it is at that moment. The payload
 * is the exception: it is never held, because one call may walk thousands of rows. */
#ifndef EMQ_JOBS_H
#define EMQ_JOBS_H

#include "call.h"

typedef struct emq_lane emq_lane;

typedef struct emq_job {
    emq_entry entry; /* the id's bytes */
    ValkeyModuleString *id;
    emq_key row; /* without a name when the id is none, which only a foreign writer can have listed: such a job has no row */
    bool seen, exists, loaded, payload_met;
    uint32_t known; /* bit 1 << emq_field: fields[] holds what the row says */
    size_t unmet;   /* fields of the row that were not met yet, or more; 0: what is not known is not there */
    ValkeyModuleString *fields[EMQ_FIELDS];
    int64_t attempts;
} emq_job;

/* The job of this id. Reads nothing yet. */
emq_job *emq_job_of(emq_call *call, ValkeyModuleString *id);
void emq_jobs_close(emq_call *call);

/* Refuses a row of another kind. Afterwards exists is true when there is a row. */
bool emq_job_peek(emq_call *call, emq_job *job);

/* Peek, and refuse a row whose attempts are damaged. */
bool emq_job_load(emq_call *call, emq_job *job);

/* A field of the row, NULL when it is not there or there is no row; the same as a stored number. */
ValkeyModuleString *emq_job_read(emq_call *call, emq_job *job, emq_field field);
static inline ValkeyModuleString *emq_job_field(emq_call *call, emq_job *job, emq_field field) {
    return job->known & 1u << field ? job->fields[field] : emq_job_read(call, job, field);
}
int64_t emq_job_number(emq_call *call, emq_job *job, emq_field field);

/* The payload, which the caller frees; NULL in a damaged row. */
ValkeyModuleString *emq_job_payload(emq_call *call, emq_job *job);

/* Finds the place that lists the job, NULL when none does. Refuses when a key that it has to ask is no place. */
bool emq_job_place(emq_call *call, emq_job *job, emq_key **place);

/* Whether an entry of `listing` is stale: no row, or the job is elsewhere. Refuses as place does. */
bool emq_job_stale(emq_call *call, emq_job *job, emq_key *listing, bool *stale);

/* Whether the token is the last one given. */
bool emq_job_holds(emq_call *call, emq_job *job, ValkeyModuleString *token);

/* Whether the last lease still counts: active, or back in its waiting place since a reap. */
bool emq_job_owned(emq_call *call, emq_job *job, emq_key *place);

/* Whether the attempts used have reached the cap; no cap is 0. */
bool emq_job_last(emq_call *call, emq_job *job, int64_t max);

/* The first live jobs of a place, at most that many, and the stale entries passed on the way; stops after EMQ_DROP stale
 * ones. Rows are loaded. */
typedef struct emq_heads {
    emq_vector live;  /* emq_job */
    emq_vector stale; /* emq_job */
} emq_heads;

bool emq_heads_collect(emq_call *call, emq_key *place, int64_t most, emq_heads *heads);
void emq_heads_free(emq_heads *heads);

/* Deletes the row and its subkeys. */
void emq_job_erase(emq_call *call, emq_job *job);

/* Writes fields of a row, creating it if need be; removes one. */
typedef struct emq_change {
    emq_field field;
    ValkeyModuleString *value;
} emq_change;

void emq_job_write(emq_call *call, emq_job *job, const emq_change *changes, int count);
void emq_job_clear(emq_call *call, emq_job *job, emq_field field);

/* HSET row field value, for one field. */
static inline void emq_job_set(emq_call *call, emq_job *job, emq_field field, ValkeyModuleString *value) {
    emq_job_write(call, job, &(emq_change){field, value}, 1);
}

/* HSET row: a job comes into being. group is NULL for a flat one. */
void emq_job_create(emq_call *call, emq_job *job, emq_word_id state, ValkeyModuleString *payload, ValkeyModuleString *group);

#endif
