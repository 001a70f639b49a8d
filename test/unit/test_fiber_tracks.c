/*
 * Tracks of fibers: which one a fiber gets, and when it is another's.
 */
#include "harness.h"
#include "vm_trace/base/fiber_tracks.h"

#include <pthread.h>
#include <stdint.h>

#define new_track rb_vm_trace_fiber_track_new
#define free_track rb_vm_trace_fiber_track_free
#define number rb_vm_trace_fiber_track_number

static void
fibers_that_live_at_once_have_different_tracks(void **state)
{
    (void)state;
    uint32_t threads[3] = { 0, 0, 0 }, tracks[3][100];
    for (unsigned i = 0; i < 100; i++) {
        for (unsigned t = 0; t < 3; t++) {
            tracks[t][i] = new_track(&threads[t]);
            assert_int_not_equal(tracks[t][i], 0);
            assert_int_equal(number(tracks[t][i]), i + 1);
        }
    }
    for (unsigned i = 0; i < 300; i++) {
        for (unsigned k = 0; k < i; k++) assert_int_not_equal(tracks[i % 3][i / 3], tracks[k % 3][k / 3]);
    }
}

static void
track_of_an_ended_fiber_is_taken_next_and_by_its_thread_alone(void **state)
{
    (void)state;
    uint32_t thread = 0, other = 0;
    uint32_t a = new_track(&thread), b = new_track(&thread), c = new_track(&thread);
    free_track(b);
    free_track(a);
    assert_int_equal(number(new_track(&other)), 1);
    assert_int_equal(new_track(&thread), a);
    assert_int_equal(new_track(&thread), b);
    uint32_t d = new_track(&thread);
    assert_int_equal(number(d), 4);
    assert_int_not_equal(d, c);
}

static uint32_t shared_tracks[4][1000];

static void *
take_and_free(void *argument)
{
    uint32_t *own = argument, thread = 0;
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 1000; i++) own[i] = new_track(&thread);
        for (unsigned i = 0; i < 1000; i++) assert_in_range(number(own[i]), 1, 1000);
        for (unsigned i = 0; round < 19 && i < 1000; i++) free_track(own[i]);
    }
    return NULL;
}

static void
native_threads_take_tracks_at_once(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_free, shared_tracks[i]), 0);
    for (unsigned i = 0; i < 4; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    static uint8_t seen[1 << 16];
    for (unsigned i = 0; i < 4000; i++) {
        uint32_t track = shared_tracks[i / 1000][i % 1000];
        assert_in_range(track, 1, sizeof(seen) - 1);
        assert_int_equal(seen[track]++, 0);
    }
}

static void
a_million_tracks_are_there_and_no_more(void **state)
{
    (void)state;
    uint32_t thread = 0, other = 0, last = 0, count = 0;
    for (uint32_t track; (track = new_track(&thread)) != 0; count++) last = track;
    assert_in_range(count, 1000000, 1 << 20);
    assert_int_equal(number(last), count);
    assert_int_equal(new_track(&other), 0);
    free_track(last);
    assert_int_equal(new_track(&other), 0);
    assert_int_equal(new_track(&thread), last);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fibers_that_live_at_once_have_different_tracks),
        cmocka_unit_test(track_of_an_ended_fiber_is_taken_next_and_by_its_thread_alone),
        cmocka_unit_test(native_threads_take_tracks_at_once),
        cmocka_unit_test(a_million_tracks_are_there_and_no_more), /* the last: it takes all */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
