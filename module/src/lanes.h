/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lanes: the waiting place of a group, its share of the ring, and the group's count of active jobs.
 *
 * After every command the ring lists exactly the lanes that are serviceable (a backlog, not parked, below the ceiling), and
 * lanes lists exactly the groups with a backlog. A lane is in the ring when it was serviceable before the change; so it is
 * seen, with its counts, before the call's first effect, and tuned after each. */
#ifndef EMQ_LANES_H
#define EMQ_LANES_H

#include "jobs.h"

struct emq_lane {
    emq_entry entry; /* the group's bytes */
    ValkeyModuleString *group;
    emq_key waiting; /* g:<group>:pending */
    bool seen;       /* what follows is known */
    bool parked;
    bool offered;  /* the ring lists it */
    bool searched; /* by emq_lane_search: more than once, perhaps */
    bool leaving;  /* the ring still lists it, until emq_lanes_leave_ring */
    bool counted;  /* active was changed and is to be written at the end */
    enum {
        EMQ_LISTING_UNKNOWN,
        EMQ_LISTED,
        EMQ_UNLISTED
    } listing;       /* in lanes */
    int64_t ceiling; /* 0: none */
    int64_t active;
};

/* The lane of a group; of the group that a row names, NULL when it names none. */
emq_lane *emq_lane_of(emq_call *call, ValkeyModuleString *group);
emq_lane *emq_lane_of_job(emq_call *call, emq_job *job);
void emq_lanes_close(emq_call *call);

/* Refuses a lane key of another kind, else learns the lane's standing. No lane is a lane seen. */
bool emq_lane_see(emq_call *call, emq_lane *lane);
static inline bool emq_lane_see_job(emq_call *call, emq_job *job) {
    return emq_lane_see(call, emq_lane_of_job(call, job));
}

bool emq_lane_serviceable(emq_call *call, emq_lane *lane);

/* Brings lanes and ring in step with a change of the lane. */
void emq_lane_tune(emq_call *call, emq_lane *lane);

/* Changes the number of the group's active jobs. */
void emq_lane_count(emq_lane *lane, int64_t change);

/* Looks for the lane in the ring, so that tuning repairs what foreign writes broke. */
void emq_lane_search(emq_call *call, emq_lane *lane);

/* Moves a lane that was served to the tail of the ring. */
void emq_lane_rotate(emq_call *call, emq_lane *lane);

/* Takes the lanes out of the ring whose leaving was put off. */
void emq_lanes_leave_ring(emq_call *call);

/* Writes the counts of active jobs that changed. */
void emq_lanes_settle(emq_call *call);

#endif
