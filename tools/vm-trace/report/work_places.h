#ifndef WORK_PLACES_H
#define WORK_PLACES_H
/* work_places.h - sampled time by the method that could be changed: the innermost one of the application in each stack,
 * with all that it called in libraries, in Ruby and in C. Stacks without such a method count for their innermost one
 * outside of Ruby's own files.
 *
 *      work_places_of -> the rows, work_places_find -> work_places_free
 *
 * A method and its blocks are one place. A method in C has the line of its caller, and is part of that one's place.
 */
#include "topics/samples/sample_sums.h"
#include "topics/samples/time_samples.h"

enum { WORK_PLACES_MAX = 256 * 1024 };

struct work_place {
    uint32_t method; /* the key: the label of a method, without its line */
    uint64_t ns[TIME_SAMPLE_STATES];
    /* Labels with most of the time in which it ran: its line, and, without lines, the innermost frame and the method for
     * which it ran (STRING_NONE: none, as of <main>). */
    uint32_t line, innermost, caller;
    uint64_t line_ns, innermost_ns, caller_ns;
    uint64_t loading_ns; /* of the time in which it ran, that of Kernel#require and its like */
};

struct work_places {
    struct row_table rows; /* of struct work_place */
    struct map place_of;   /* label, also without its line -> the method with most of its time */
    struct pool *pool;
    uint64_t interpreted_ns;   /* in which Ruby code was interpreted, and no method in C ran */
};

/* Of a profile with states and without threads, whose frames no option leaves out. */
struct work_places work_places_of(const struct time_samples *samples, struct frame_owners *owners);
void work_places_free(struct work_places *places);
/* Returns the place that a label belongs to; if no sample tells, that of its method. */
uint32_t work_place_of(const struct work_places *places, uint32_t label);
/* Returns the method of a label, or of the block that it names: a key of a place, if it is one. */
uint32_t work_method_of(const struct work_places *places, uint32_t label);
/* Returns the row of a method, or NULL. */
const struct work_place *work_places_find(struct work_places *places, uint32_t method);
/* The time in which it ran on a CPU. */
uint64_t work_place_ran_ns(const struct work_place *place);

#endif
